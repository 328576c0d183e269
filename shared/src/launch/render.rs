//! The script: what a person pastes into a shell or runs with `sh`.

use super::plan::Plan;
use super::release::baseline;
use super::style::Invocation;
use super::word::Word;

/// A command as a shell reads it.
pub(super) fn line(words: &[Word]) -> String {
    let words: Vec<String> = words.iter().map(Word::shell).collect();
    words.join(" ")
}

pub(super) fn script(plan: &Plan, invocation: &Invocation) -> String {
    let mut lines = vec!["#!/bin/sh".to_string(), format!("# {} by {}", plan.recipe_id(), plan.style)];
    lines.push(format!("# {}", what_it_does(plan)));
    lines.push(
        "# Run it on a login node, outside of any job. It forgets what an earlier launch left in the shell."
            .into(),
    );
    // In a subshell, so that pasting it neither ends the shell at a failure nor leaves variables behind.
    lines.push("(".into());
    lines.push("set -eu".into());
    for need in &plan.needs {
        lines.push(format!(": \"${{{}:?set it to {}}}\"", need.name, need.what));
    }
    if !plan.needs.is_empty() {
        let names: Vec<&str> = plan.needs.iter().map(|need| need.name.as_str()).collect();
        lines.push(format!("export {}", names.join(" ")));
    }
    lines.extend(plan.env.iter().map(|(name, value)| format!("export {name}={}", value.shell())));
    // After the exports, which may refer to what is forgotten.
    lines.extend(unset(&plan.leftovers()));
    lines.push(format!("cd {}", invocation.cwd.shell()));
    lines.push(line(&invocation.command));
    lines.push(")".into());
    lines.join("\n") + "\n"
}

fn what_it_does(plan: &Plan) -> String {
    let steps = match plan.steps {
        1 => "1 training step".to_string(),
        steps => format!("{steps} training steps"),
    };
    match plan.incomparable.is_empty() && baseline(plan).is_some() {
        true => format!("It measures: {steps} on synthetic data, as the published numbers were made."),
        false => format!("It runs {steps} on synthetic data; not comparable with a published number."),
    }
}

/// `unset` of all names, in lines of readable width.
fn unset(names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + name.len() < 100 => *line += &format!(" {name}"),
            _ => lines.push(format!("unset {name}")),
        }
    }
    lines
}
