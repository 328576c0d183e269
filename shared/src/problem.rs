//! What is wrong with a user's input, and what would work instead.

use crate::field::Field;
use crate::message;
use crate::message::{Front, Message};
use crate::units::group_digits;
use crate::words::HAS_WORDS;
use serde::Serialize;
use std::fmt;

/// The most values that an error lists. For a longer list, only the closest value is named.
const MOST_LISTED: usize = 12;

/// The most letters of a word that must be spelled more like the given one to be suggested.
const SHORT_WORD: usize = 4;

/// The most bytes of a text that a similar one is sought for, because the time grows with the square of the length.
pub(crate) const LONGEST_MISSPELT: usize = 200;

/// A field's value that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The field.
    pub field: Field,
    /// The value as typed; empty if none was.
    pub given: String,
    /// What is wrong and why, as whole sentences that name the field.
    pub message: Message,
    /// The known value whose spelling is closest to the given one.
    pub closest: Option<String>,
    /// Values that work instead; beside a closest value, further ones that may be meant.
    pub suggestions: Vec<String>,
    /// Every allowed value, where they can be listed.
    pub allowed: Vec<String>,
}

impl Problem {
    /// Returns a problem without suggestions. The message is a whole sentence. If the search worker may find the problem,
    /// make the message with [`message!`] or `words!`, so that this worker has no code for it.
    pub fn new(field: Field, given: impl fmt::Display, message: impl Into<Message>) -> Problem {
        Problem {
            field,
            given: if HAS_WORDS { given.to_string() } else { String::new() },
            message: message.into(),
            closest: None,
            suggestions: Vec::new(),
            allowed: Vec::new(),
        }
    }

    /// Returns the problem of a value that is not in `known`, with the closest of them.
    pub fn unknown<'a>(field: Field, given: &str, known: impl IntoIterator<Item = &'a str>) -> Problem {
        let message = message![format!("Unknown {} \"{given}\".", sentence_case(field.label()))];
        Problem::new(field, given, message).worded(|problem| {
            let known: Vec<&str> = known.into_iter().collect();
            problem.closest_to(given, known.iter().copied()).allow(known)
        })
    }

    /// Adds the known value whose spelling is closest to a text.
    #[must_use]
    pub(crate) fn closest_to<'a>(self, text: &str, known: impl IntoIterator<Item = &'a str>) -> Problem {
        self.worded(|problem| Problem { closest: most_alike(text, known).map(str::to_string), ..problem })
    }

    /// Returns the problem with more words, in a program that has words.
    #[must_use]
    pub(crate) fn worded(self, add: impl FnOnce(Problem) -> Problem) -> Problem {
        if HAS_WORDS { add(self) } else { self }
    }

    /// Returns the problem of a field that is needed and was not given. `when` says when it is needed.
    pub fn missing(field: Field, when: impl Into<Message>) -> Problem {
        Problem::new(field, "", message!["Missing: ", field, " ("].and(when).and(")."))
    }

    /// Adds values that work instead.
    #[must_use]
    pub fn suggest<T: ToString>(self, values: impl IntoIterator<Item = T>) -> Problem {
        self.worded(|mut problem| {
            problem.suggestions.extend(values.into_iter().map(|value| value.to_string()));
            problem
        })
    }

    /// Adds values that are allowed.
    #[must_use]
    pub fn allow<T: ToString>(self, values: impl IntoIterator<Item = T>) -> Problem {
        self.worded(|mut problem| {
            problem.allowed.extend(values.into_iter().map(|value| value.to_string()));
            problem
        })
    }

    /// Returns everything as text: what is wrong, the closest value, values that work, and what is allowed.
    pub fn text(&self, front: Front) -> String {
        let mut text = self.message.text(front);
        if let Some(closest) = &self.closest {
            let meant: Vec<&str> =
                std::iter::once(closest).chain(&self.suggestions).map(String::as_str).collect();
            text += &format!(" Did you mean {}?", one_of(&meant));
        }
        match self.suggestions.as_slice() {
            _ if self.closest.is_some() => {}
            [] => {}
            [state] if matches!(state.as_str(), "on" | "off") => {
                text += &[" Turn ", &sentence_case(self.field.label()), " ", state, "."].concat();
            }
            values => {
                let values: Vec<String> = values.iter().map(|value| grouped(value)).collect();
                text += &format!(" Use {}.", one_of(&values));
            }
        }
        if let Some(listed) = self.listed() {
            text += &format!(" Allowed: {}.", listed.join(", "));
        } else if let (Some([command, base]), true) = (self.listing_command(), front != Front::Page) {
            text += &[" `trainplan ", command, base, "` lists all."].concat();
            if self.field == Field::Stack && self.closest.is_none() && base.is_empty() {
                text += " A file can describe other software: see docs/stacks.md.";
            }
        }
        text
    }

    /// Returns the allowed values if there are few enough to show.
    pub fn listed(&self) -> Option<&[String]> {
        (1..=MOST_LISTED).contains(&self.allowed.len()).then_some(&self.allowed)
    }

    /// Returns the command of `trainplan` that lists the allowed values, with its argument, if there are more than an error shows.
    fn listing_command(&self) -> Option<[&str; 2]> {
        match self.field {
            _ if self.allowed.len() <= MOST_LISTED => None,
            Field::Model => Some(["models", ""]),
            Field::Gpu | Field::GpuTypes => Some(["gpus", ""]),
            Field::Recipe => Some(["recipes", ""]),
            // The properties of a custom stack are those of its base.
            Field::Stack => {
                Some(self.given.split_once(':').map_or(["stacks", ""], |(base, _)| ["stacks ", base]))
            }
            _ => None,
        }
    }
}

/// Takes the problems that a check finds.
pub(crate) trait Refusals {
    fn add(&mut self, problem: impl FnOnce() -> Problem);

    fn is_empty(&self) -> bool;
}

impl Refusals for Vec<Problem> {
    fn add(&mut self, problem: impl FnOnce() -> Problem) {
        self.push(problem());
    }

    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }
}

/// Whether a check found a problem. A search discards layouts with one, and its program has no code that words it.
#[derive(Default)]
pub(crate) struct Unworded {
    is_refused: bool,
}

impl Refusals for Unworded {
    fn add(&mut self, _problem: impl FnOnce() -> Problem) {
        self.is_refused = true;
    }

    fn is_empty(&self) -> bool {
        !self.is_refused
    }
}

/// Returns a whole number with thousands separators, as sentences show it, and any other text unchanged.
fn grouped(value: &str) -> String {
    match value.parse::<u32>() {
        Ok(whole) => group_digits(f64::from(whole)),
        Err(_) => value.to_string(),
    }
}

/// Returns "a", "a or b", "a, b or c".
pub fn one_of<T: AsRef<str>>(values: &[T]) -> String {
    joined(values, "or")
}

/// Returns "a", "a and b", "a, b and c".
pub fn all_of<T: AsRef<str>>(values: &[T]) -> String {
    joined(values, "and")
}

fn joined<T: AsRef<str>>(values: &[T], word: &str) -> String {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    match values.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} {word} {last}", first.join(", ")),
        values => values.concat(),
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Front::Terminal))
    }
}

impl std::error::Error for Problem {}

/// Returns the candidate whose spelling is closest to `given`, or none if all are too different.
pub fn most_alike<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > LONGEST_MISSPELT {
        return None;
    }
    let given = given.to_ascii_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| given.len() <= 2 * candidate.len() + SHORT_WORD)
        .map(|candidate| {
            let name = candidate.to_ascii_lowercase();
            // People leave out parts of a name: "qwen3-235b" for qwen3-235b-a22b, not for qwen3-32b.
            let mut parts = name.split('-');
            let is_shortened = given.len() > SHORT_WORD
                && given.split('-').all(|own| parts.any(|part| part.starts_with(own)));
            (strsim::jaro_winkler(&given, &name) + f64::from(u8::from(is_shortened)), candidate)
        })
        .filter(|(likeness, candidate)| {
            // Two common letters already make short words alike: "some" and "none" reach 0.67.
            let is_short = given.len().min(candidate.len()) <= SHORT_WORD;
            *likeness > if is_short { 0.75 } else { 0.7 }
        })
        // The first of equals, so that the result depends only on the order of the candidates.
        .fold(None, |best: Option<(f64, &str)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        })
        .map(|(_, candidate)| candidate)
}

/// Returns a label in the form for the middle of a sentence: lower case, except for acronyms.
pub(crate) fn sentence_case(label: &str) -> String {
    label
        .split(' ')
        .map(|word| match word.chars().skip(1).any(|c| c.is_ascii_uppercase()) {
            true => word.to_string(),
            false => word.to_ascii_lowercase(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_name_stands_for_the_whole_one() {
        let models = ["qwen3-32b", "qwen3-235b-a22b", "llama3.1-8b", "llama3.1-405b"];
        for (given, closest) in [("qwen3-235b", 1), ("qwen3-235", 1), ("llama-405b", 3), ("quen3-32b", 0)] {
            assert_eq!(most_alike(given, models), Some(models[closest]), "{given}");
        }
    }

    #[test]
    fn an_unknown_value_is_answered_with_the_closest_known_one() {
        let problem = Problem::unknown(Field::Gpu, "h10", ["a100", "h100", "b200"]);
        assert_eq!(problem.closest.as_deref(), Some("h100"));
        assert_eq!(problem.to_string(), "Unknown GPU \"h10\". Did you mean h100? Allowed: a100, h100, b200.");
    }

    #[test]
    fn short_words_are_suggested_only_for_close_spellings() {
        let recompute = ["none", "selective", "full"];
        for (given, candidates, closest) in [
            ("some", &recompute[..], None),
            ("non", &recompute, Some("none")),
            ("ful", &recompute, Some("full")),
            ("selected", &recompute, Some("selective")),
            ("fp9", &["bf16", "fp8"], Some("fp8")),
            ("bash", &["llmb-run", "sbatch"], Some("sbatch")),
            ("smal", &["a", "small"], Some("small")),
        ] {
            assert_eq!(most_alike(given, candidates.iter().copied()), closest, "{given}");
        }
    }

    #[test]
    fn long_texts_are_not_compared() {
        assert_eq!(most_alike(&"llama3.1-8b".repeat(20), ["llama3.1-8b"]), None);
        assert_eq!(most_alike(&"a".repeat(5 << 20), ["a100"]), None);
    }

    #[test]
    fn a_long_list_is_replaced_by_the_command_that_prints_it() {
        let known: Vec<String> = (0..60).map(|number| format!("llama-{number}")).collect();
        let problem = Problem::unknown(Field::Model, "llama-60", known.iter().map(String::as_str));
        assert_eq!(
            problem.to_string(),
            "Unknown model \"llama-60\". Did you mean llama-0? `trainplan models` lists all."
        );
        assert!(!problem.text(Front::Page).contains("trainplan"));
    }

    #[test]
    fn values_that_work_come_last() {
        let message = message![Field::Gpus, " must be a multiple of 32."];
        let problem = Problem::new(Field::Gpus, 1200, message).suggest([1184, 1216]);
        assert_eq!(problem.to_string(), "--gpus must be a multiple of 32. Use 1,184 or 1,216.");
        assert_eq!(problem.text(Front::Page), "GPUs must be a multiple of 32. Use 1,184 or 1,216.");
    }

    #[test]
    fn a_switch_is_turned_on_or_off() {
        let fsdp = Problem::new(Field::Fsdp, "on", "The script doesn't shard.").suggest(["off"]);
        assert_eq!(fsdp.to_string(), "The script doesn't shard. Turn FSDP off.");
        let overlap = Problem::new(Field::Overlap, "off", "The script overlaps.").suggest(["on"]);
        assert_eq!(overlap.to_string(), "The script overlaps. Turn overlap on.");
    }

    #[test]
    fn a_missing_value_names_its_field() {
        let problem = Problem::missing(Field::Gbs, message!["required without ", Field::Recipe]);
        assert_eq!(problem.to_string(), "Missing: --gbs (required without --recipe).");
        assert_eq!(problem.text(Front::Page), "Missing: GBS (required without Recipe).");
    }
}
