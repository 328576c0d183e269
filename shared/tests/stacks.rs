//! The documentation of software lists every property, with its values and what each known software does.

#![allow(missing_docs, reason = "a test's name says what it shows")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use trainplan_shared::stack::{Software, Stack, StackProperties};

/// The table of the properties, in Markdown.
fn table() -> String {
    let known: Vec<(Stack, Vec<String>)> =
        Stack::ALL.into_iter().map(|stack| (stack, Software::from(stack).values())).collect();
    let mut table = "| property | values | meaning | known software |\n|---|---|---|---|\n".to_string();
    for (place, property) in StackProperties::ALL.into_iter().enumerate() {
        let values = match property.choices() {
            choices if choices.is_empty() => "a number".to_string(),
            choices => choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", "),
        };
        // The stacks of each value, most common value first.
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for (stack, texts) in &known {
            match groups.iter_mut().find(|(value, _)| *value == texts[place]) {
                Some((_, stacks)) => stacks.push(stack.id()),
                None => groups.push((&texts[place], vec![stack.id()])),
            }
        }
        groups.sort_by_key(|(_, stacks)| std::cmp::Reverse(stacks.len()));
        let described: Vec<String> = groups
            .iter()
            .enumerate()
            .map(|(place, (value, stacks))| match place {
                0 => format!("`{value}`"),
                _ => format!("`{value}`: {}", stacks.join(", ")),
            })
            .collect();
        let [name, meaning] = [property.name, property.meaning()];
        table += &format!("| `{name}` | {values} | {meaning} | {} |\n", described.join("; "));
    }
    table
}

#[test]
fn the_documentation_has_the_table_of_properties() {
    let docs = include_str!("../../docs/stacks.md");
    let table = table();
    assert!(docs.contains(&table), "docs/stacks.md should have this table:\n{table}");
}
