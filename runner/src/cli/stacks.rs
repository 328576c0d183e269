//! `trainplan stacks`: the software that `--stack` takes, and what each does.

use super::output::{self, Format, FormatArg};
use super::{Failure, stack_file};
use serde::Serialize;
use serde_json::{Map, Value};
use trainplan_shared::stack::{Software, Stack, StackProperties};

/// List the known training software, or the properties of one
///
/// Without STACK, lists every known software. With STACK, lists what that software does: the properties that a custom
/// stack can change (docs/stacks.md).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan stacks
  trainplan stacks nanotron
  trainplan stacks ours.stack.toml
  trainplan stacks --format csv")]
pub(super) struct Args {
    /// A value of --stack: known software, your own as text, or a file
    #[arg(value_name = "STACK")]
    stack: Option<String>,
    #[command(flatten)]
    format: FormatArg,
}

/// A software with the value of each property, as text.
#[derive(Serialize)]
struct ListedStack {
    id: String,
    title: String,
    properties: Map<String, Value>,
}

impl ListedStack {
    fn new(software: Software) -> ListedStack {
        let names = StackProperties::ALL.map(|property| property.name.to_string());
        let values = software.values().into_iter().map(Value::from);
        let properties = names.into_iter().zip(values).collect();
        ListedStack { id: software.to_string(), title: software.title(), properties }
    }
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        match &self.stack {
            None => self.list(),
            Some(text) => self.properties(stack_file::software(text)?),
        }
    }

    /// Prints every known software.
    fn list(&self) -> Result<(), Failure> {
        const WIDTH: usize = StackProperties::ALL.len() + 2;
        let known = Stack::ALL.map(Software::from);
        match self.format.choose() {
            Format::Json => output::json(&known.map(ListedStack::new)),
            Format::Csv => {
                let names = StackProperties::ALL.into_iter().map(|property| property.name);
                let mut header = ["id", "title"].into_iter().chain(names);
                let header: [&str; WIDTH] = std::array::from_fn(|_| header.next().unwrap_or_default());
                let row = |software: Software| -> [String; WIDTH] {
                    let mut cells =
                        [software.to_string(), software.title()].into_iter().chain(software.values());
                    std::array::from_fn(|_| cells.next().unwrap_or_default())
                };
                output::csv(header, known.into_iter().map(row))
            }
            Format::Table => output::table(
                ["id", "title"],
                &[],
                known.into_iter().map(|software| [software.to_string(), software.title()]),
            ),
        }
    }

    /// Prints the properties of a software.
    fn properties(&self, software: Software) -> Result<(), Failure> {
        let base = Software::from(software.base());
        let values = software.values().into_iter().zip(base.values());
        let rows = StackProperties::ALL.into_iter().zip(values).map(|(property, (value, base))| {
            [property.name.to_string(), value, base, property.meaning().replace('`', "")]
        });
        let header = ["property", "value", base.base().id(), "meaning"];
        let known = |[property, value, _, meaning]: [String; 4]| [property, value, meaning];
        match (self.format.choose(), software.known()) {
            (Format::Json, _) => output::json(&ListedStack::new(software)),
            (Format::Csv, _) => output::csv(["property", "value", "base", "meaning"], rows),
            (Format::Table, None) => output::table(header, &[], rows),
            (Format::Table, Some(_)) => output::table(["property", "value", "meaning"], &[], rows.map(known)),
        }
    }
}
