//! A user's own software as a file: `base`, `name` and the properties that differ, in TOML.

use super::{Software, Stack};
use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use toml::de::{DeTable, DeValue};

/// A file that describes a user's own software.
#[derive(Debug, Clone, PartialEq)]
pub struct StackFile {
    /// The name that the user gave it.
    pub name: String,
    /// The software.
    pub software: Software,
}

/// The keys beside the properties.
const BASE: &str = "base";
const NAME: &str = "name";

impl StackFile {
    /// Reads a file.
    ///
    /// # Errors
    /// The text is not valid TOML; `base` or `name` is missing; a property is unknown or has an invalid value.
    pub fn parse(text: &str) -> Result<StackFile, Problem> {
        let at = |offset: usize, problem: Problem| {
            let line = text[..offset].matches('\n').count() + 1;
            Problem { message: message![format!("Line {line}: ")].and(problem.message), ..problem }
        };
        let refuse = |message: String| Problem::new(Field::Stack, "", message);
        let table = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            at(offset, refuse(format!("Invalid TOML: {}.", error.message())))
        })?;
        let table = table.get_ref();
        let word = |key: &str, example: &str| {
            let Some(value) = table.get(key) else {
                return Err(refuse(format!(
                    "The key {key} is missing. Add a line such as {key} = {example}."
                )));
            };
            match value.get_ref() {
                DeValue::String(text) if !text.trim().is_empty() => Ok((value.span().start, text.trim())),
                _ => Err(at(value.span().start, refuse(format!("{key} must be a text, such as {example}.")))),
            }
        };
        let (_, name) = word(NAME, "\"Our trainer\"")?;
        let (place, base) = word(BASE, "\"nanotron\"")?;
        let base: Stack = base.parse().map_err(|problem| at(place, problem))?;
        let mut software = Software::from(base);
        for (key, value) in table.iter().filter(|(key, _)| !matches!(&**key.get_ref(), BASE | NAME)) {
            let set = software.with(key.get_ref(), &text_of(value.get_ref()));
            software = set.map_err(|problem| at(key.span().start, problem))?;
        }
        Ok(StackFile { name: name.to_string(), software })
    }
}

/// Returns a value as in the text of a property.
fn text_of(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Boolean(true) => "yes".to_string(),
        DeValue::Boolean(false) => "no".to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            "a date, a list or a table".to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_software_of_its_text() {
        let text = "name = \"Ours\"\nbase = \"nanotron\"\n\noverlaps_tp = true\nattention = \"tuned\"\n\
                    optimizer_bytes = 8\nfragmentation = 0.05\nbucket_mib = \"none\"\n";
        let file = StackFile::parse(text).unwrap();
        let own =
            "nanotron:attention=tuned,overlaps_tp=yes,bucket_mib=none,optimizer_bytes=8,fragmentation=0.05";
        assert_eq!((&*file.name, file.software), ("Ours", own.parse().unwrap()));
        let base = StackFile::parse("base = \"pytorch\"\nname = \"Plain\"\neager = true").unwrap();
        assert_eq!(base.software, Stack::Pytorch.into());
    }

    #[test]
    fn every_mistake_is_named() {
        let said = |text: &str| StackFile::parse(text).unwrap_err().to_string();
        let ours = |more: &str| said(&format!("name = \"Ours\"\nbase = \"nanotron\"\n{more}"));
        assert!(ours("eager = ").contains("Line 3: Invalid TOML: "), "{}", ours("eager = "));
        assert!(said("base = \"nanotron\"").contains("The key name is missing. Add a line such as name ="));
        assert!(
            said("name = \"x\"").contains("The key base is missing. Add a line such as base = \"nanotron\".")
        );
        assert!(
            said("name = 5\nbase = \"nanotron\"")
                .contains("Line 1: name must be a text, such as \"Our trainer\".")
        );
        assert!(said("name = \"x\"\nbase = \"nanotrn\"").contains("Did you mean nanotron?"));
        assert!(
            ours("eagre = true")
                .contains("Line 3: Unknown property \"eagre\" of a custom stack. Did you mean eager?")
        );
        assert!(ours("eager = 1").contains("must be yes or no, not \"1\"."));
        assert!(ours("weights = \"bf16,eager=no\"").contains("must be fp32, bf16, beside or alone, not"));
        assert!(ours("[eager]\nx = 1").contains("must be yes or no, not"));
    }
}
