//! Sentences for users. A sentence that names a setting holds the [`Field`] itself, so that each front end can use its
//! own name for it: a flag in the terminal, a label on a page, a key in a campaign file.

use crate::decimal::parse_decimal;
use crate::field::{Field, FieldValue};
use crate::words::HAS_WORDS;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// Where a sentence is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// The command line: `--tp`, `--tp 8`.
    Terminal,
    /// The command line of `trainplan search`, with its own [flags](Field::search_flag): `--gpu` for the GPU types.
    Search,
    /// A page: `TP`, `TP 8`.
    Page,
    /// A campaign file or a cluster profile: `tp`, `tp = 8`.
    File,
}

/// A field with a value, such as `--tp 8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The field.
    pub field: Field,
    /// Its value, as a user would type it.
    pub value: String,
}

impl Setting {
    /// Returns the field with this value.
    pub fn new(field: Field, value: impl fmt::Display) -> Setting {
        Setting { field, value: value.to_string() }
    }
}

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Words that are the same everywhere.
    Text(Cow<'static, str>),
    /// A field by name.
    Field(Field),
    /// A field with a value.
    Setting(Setting),
}

impl Part {
    fn text(&self, front: Front) -> Cow<'_, str> {
        let setting = match self {
            Part::Text(text) => return Cow::Borrowed(text),
            Part::Field(field) => {
                return match front {
                    Front::Terminal => Cow::Owned(format!("--{}", field.flag())),
                    Front::Search => Cow::Owned(format!("--{}", field.search_flag())),
                    Front::Page => Cow::Borrowed(field.label()),
                    Front::File => Cow::Borrowed(field.flag()),
                };
            }
            Part::Setting(setting) => setting,
        };
        let Setting { field, value } = setting;
        let plain = matches!(field.value(), FieldValue::Whole | FieldValue::Number)
            && parse_decimal(value).is_some()
            || matches!(value.as_str(), "true" | "false");
        Cow::Owned(match front {
            // A job's switches take no value in the terminal.
            Front::Terminal if field.value() == FieldValue::Switch && field.placeholder().is_empty() => {
                format!("--{}", field.flag())
            }
            Front::Terminal => format!("--{} {value}", field.flag()),
            Front::Search => format!("--{} {value}", field.search_flag()),
            Front::Page => format!("{} {value}", field.label()),
            Front::File if plain => format!("{} = {value}", field.flag()),
            Front::File => format!("{} = \"{value}\"", field.flag()),
        })
    }
}

impl From<&'static str> for Part {
    fn from(text: &'static str) -> Part {
        Part::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Part {
    fn from(text: String) -> Part {
        Part::Text(Cow::Owned(text))
    }
}

impl From<Field> for Part {
    fn from(field: Field) -> Part {
        Part::Field(field)
    }
}

impl From<Setting> for Part {
    fn from(setting: Setting) -> Part {
        Part::Setting(setting)
    }
}

/// One or several whole sentences. `Display` and JSON give the terminal's form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message(Vec<Part>);

impl Message {
    /// Returns the sentence as a front end shows it.
    pub fn text(&self, front: Front) -> String {
        self.0.iter().map(|part| part.text(front)).collect()
    }

    /// Returns the fields with a value that it names, which a page can set with a button.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.0.iter().filter_map(|part| match part {
            Part::Setting(setting) => Some(setting),
            Part::Text(_) | Part::Field(_) => None,
        })
    }

    /// Returns the message with another part or message behind it.
    #[must_use]
    pub fn and(mut self, more: impl Into<Message>) -> Message {
        if HAS_WORDS {
            self.0.extend(more.into().0);
        }
        self
    }
}

impl<const N: usize> From<[Part; N]> for Message {
    fn from(parts: [Part; N]) -> Message {
        Message(parts.into())
    }
}

macro_rules! messages_of_one_part {
    ($($type:ty)*) => { $(impl From<$type> for Message {
        fn from(part: $type) -> Message {
            crate::message![part]
        }
    })* };
}
messages_of_one_part!(&'static str String Field Setting);

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| f.write_str(&part.text(Front::Terminal)))
    }
}

impl Serialize for Message {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Makes a [`Message`] of texts, fields and settings: `message!["Set ", Field::Tp, " to 8 or less."]`. It is empty, and no part is
/// evaluated, in a program without [words](crate::words::HAS_WORDS).
#[macro_export]
macro_rules! message {
    ($($part:expr),+ $(,)?) => {
        if $crate::words::HAS_WORDS {
            $crate::message::Message::from([$($crate::message::Part::from($part)),+])
        } else {
            $crate::message::Message::default()
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_front_end_has_its_own_name_for_a_field() {
        let message =
            message!["Set ", Field::Tp, " to 8, or use ", Setting::new(Field::Stack, "nemo-2"), "."];
        assert_eq!(message.to_string(), "Set --tp to 8, or use --stack nemo-2.");
        assert_eq!(message.text(Front::Page), "Set TP to 8, or use Software nemo-2.");
        assert_eq!(message.text(Front::File), "Set tp to 8, or use stack = \"nemo-2\".");
        assert!(message.settings().eq([&Setting::new(Field::Stack, "nemo-2")]));
    }

    #[test]
    fn a_search_has_flags_of_its_own() {
        let message = message!["Leave out ", Field::GpuTypes, ", or use ", Setting::new(Field::GpuRange, 64)];
        assert_eq!(message.text(Front::Search), "Leave out --gpu, or use --gpus 64");
        assert_eq!(message.to_string(), "Leave out --gpu-types, or use --gpu-range 64");
    }

    #[test]
    fn numbers_and_switches_are_written_without_quotes_in_a_file() {
        let message = message![Setting::new(Field::Tp, 8), ", ", Setting::new(Field::Profile, true)];
        assert_eq!(message.to_string(), "--tp 8, --profile");
        assert_eq!(message.text(Front::File), "tp = 8, profile = true");
    }
}
