//! Command-line flags made from the table of fields.

use clap::{Arg, ArgAction, ArgMatches, Command};
use trainplan_shared::field::{Field, FieldValue};
use trainplan_shared::spec::Spec;

/// Returns the name of a field's flag.
pub(super) type FlagName = fn(Field) -> &'static str;

/// The fields that are lists: each further flag adds to the list. Any other flag replaces what was given before.
const LISTS: [Field; 2] = [Field::GpuTypes, Field::Lock];

/// Returns the flag of a field. Its value is taken as text, so that the field's own type reports a mistake, in the
/// same words as on a page.
fn flag(field: Field, name: FlagName) -> Arg {
    let arg = Arg::new(name(field)).long(name(field)).help(field.help());
    let arg = if field.placeholder().is_empty() { arg } else { arg.value_name(field.placeholder()) };
    match field.value() {
        FieldValue::Switch if field.placeholder().is_empty() => arg.action(ArgAction::SetTrue),
        FieldValue::Switch => arg.num_args(0..=1).default_missing_value("on"),
        FieldValue::Variables => arg.action(ArgAction::Append),
        FieldValue::Whole | FieldValue::Number => arg,
        FieldValue::Text if LISTS.contains(&field) => arg.action(ArgAction::Append),
        // Parameters may be typed as sbatch takes them, with dashes.
        FieldValue::Text => arg.allow_hyphen_values(field == Field::SlurmParams),
    }
}

/// Returns the command with the flags of these fields under a heading.
pub(super) fn add(
    command: Command,
    heading: &'static str,
    fields: impl Iterator<Item = Field>,
    name: FlagName,
) -> Command {
    command.args(fields.map(|field| flag(field, name).help_heading(heading)))
}

/// Returns what was typed into the flags of these fields.
pub(super) fn read(matches: &ArgMatches, fields: impl Iterator<Item = Field>, name: FlagName) -> Spec {
    let mut spec = Spec::default();
    for field in fields {
        let id = name(field);
        let text = match field.value() {
            FieldValue::Switch if field.placeholder().is_empty() => {
                if matches.get_flag(id) {
                    "yes".to_string()
                } else {
                    String::new()
                }
            }
            _ => {
                let texts = matches.get_many::<String>(id).into_iter().flatten();
                let texts: Vec<&str> = texts.map(String::as_str).collect();
                match field {
                    Field::Lock => joined_locks(&texts),
                    _ if LISTS.contains(&field) => texts.join(","),
                    _ => texts.join("\n"),
                }
            }
        };
        spec.set(field, text);
    }
    spec
}

/// Returns the locks of several flags as one text. The locks of a flag replace those of earlier flags on the same fields.
fn joined_locks(flags: &[&str]) -> String {
    flags.iter().fold(String::new(), |earlier, later| {
        let replaced: Vec<&str> = later.split(',').map(locked_field).collect();
        let is_kept = |lock: &&str| !lock.is_empty() && !replaced.contains(&locked_field(lock));
        let kept = earlier.split(',').filter(is_kept);
        kept.chain([*later]).collect::<Vec<_>>().join(",")
    })
}

/// Returns the field of a lock such as `tp=8` or `recompute!=full`, as typed.
fn locked_field(lock: &str) -> &str {
    lock.split(['=', '!']).next().unwrap_or_default().trim()
}

/// Declares a group of flags for `#[command(flatten)]`: a type that holds what was typed as a [`Spec`].
macro_rules! field_args {
    ($(#[$doc:meta])* $name:ident, $heading:literal, $fields:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name(trainplan_shared::spec::Spec);

        impl clap::FromArgMatches for $name {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<$name, clap::Error> {
                Ok($name($crate::cli::fields::read(
                    matches,
                    $fields,
                    trainplan_shared::field::Field::flag,
                )))
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                *self = $name::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl clap::Args for $name {
            fn augment_args(command: clap::Command) -> clap::Command {
                $crate::cli::fields::add(
                    command,
                    $heading,
                    $fields,
                    trainplan_shared::field::Field::flag,
                )
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                $name::augment_args(command)
            }
        }
    };
}
pub(super) use field_args;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_later_flags_replace_those_on_the_same_fields() {
        assert_eq!(joined_locks(&[]), "");
        assert_eq!(joined_locks(&["tp=4|8, pp!=2"]), "tp=4|8, pp!=2");
        assert_eq!(joined_locks(&["tp=4", "pp=2"]), "tp=4,pp=2");
        assert_eq!(joined_locks(&["tp=4,cp=1,tp!=2", "tp!=8", "pp=2"]), "cp=1,tp!=8,pp=2");
        // A mistake is kept, so that it is reported.
        assert_eq!(joined_locks(&["tp", "pp=2"]), "tp,pp=2");
    }
}
