//! What a search may not change or choose.

use crate::field::Field;
use crate::message;
use crate::options::Recompute;
use crate::precision::Dtype;
use crate::problem::Problem;
use crate::words::words;
use std::fmt;

/// The fields that a search chooses.
pub const CHOSEN_FIELDS: [Field; 12] = [
    Field::Dtype,
    Field::Tp,
    Field::Pp,
    Field::Cp,
    Field::Ep,
    Field::ExpertTp,
    Field::Vp,
    Field::PipelineSplit,
    Field::Mbs,
    Field::Gbs,
    Field::Recompute,
    Field::Fsdp,
];

/// The lock value for a recipe's list of layers per stage. The list itself has commas, which separate locks.
pub(crate) const PUBLISHED_SPLIT: &str = "published";

/// The largest degree that others are tried for.
const LARGEST_DEGREE: u32 = 1 << 16;

/// How many powers of two are tried on each side of a degree.
const DOUBLINGS: u32 = 3;

/// The values that a field may or may not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// The field.
    pub field: Field,
    /// The values, as a user types them.
    pub values: Vec<String>,
    /// Whether the field may have any value but these.
    pub excludes: bool,
}

/// Locks on the fields that a search chooses, as in `tp=4|8,recompute!=full`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Locks(pub Vec<Lock>);

impl Locks {
    /// Whether nothing is locked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a field may have a value.
    pub fn permit(&self, field: Field, value: impl fmt::Display) -> bool {
        let mut locks = self.0.iter().filter(|lock| lock.field == field).peekable();
        if locks.peek().is_none() {
            return true;
        }
        let text = value.to_string();
        locks.all(|lock| lock.values.contains(&text) != lock.excludes)
    }

    /// Returns the locks other than those of a field.
    #[must_use]
    pub fn without(&self, field: Field) -> Locks {
        Locks(self.0.iter().filter(|lock| lock.field != field).cloned().collect())
    }

    /// Returns the locks with other values of a field that is locked on one number: powers of two on both sides of it, the nearest first.
    pub(crate) fn with_other_values(&self, field: Field) -> Vec<Locks> {
        let of_field = self.0.iter().filter(|lock| lock.field == field && !lock.excludes);
        let values: Vec<u32> =
            of_field.flat_map(|lock| &lock.values).filter_map(|value| value.parse().ok()).collect();
        let [value @ 1..=LARGEST_DEGREE] = values[..] else { return Vec::new() };
        let below = (value - 1).checked_ilog2().map_or(0, |log| 1_u32 << log);
        let above = (value + 1).next_power_of_two();
        let others = (0..DOUBLINGS).flat_map(|doublings| [below >> doublings, above << doublings]);
        let with = |value: u32| self.with(&Locks(vec![Lock::on(field, &value.to_string())]));
        others.filter(|value| *value > 0).map(with).collect()
    }

    /// Returns the locks with others, which replace those of the same fields.
    #[must_use]
    pub fn with(&self, others: &Locks) -> Locks {
        let kept = self.0.iter().filter(|lock| others.0.iter().all(|other| other.field != lock.field));
        Locks(kept.chain(&others.0).cloned().collect())
    }

    /// Returns the locked fields, each once.
    pub fn fields(&self) -> Vec<Field> {
        CHOSEN_FIELDS.into_iter().filter(|field| self.0.iter().any(|lock| lock.field == *field)).collect()
    }

    /// Returns locks from a text such as `tp=8,recompute!=full,pp=1|2|4`.
    ///
    /// # Errors
    /// A part without `=`, a field that a search does not choose, or a missing value.
    pub fn parse(text: &str, field: Field) -> Result<Locks, Problem> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| Lock::parse(part, field)).collect::<Result<_, _>>().map(Locks)
    }
}

impl Lock {
    /// Returns the lock of a field on its value in a layout.
    pub fn on(field: Field, value: &str) -> Lock {
        let is_list = field == Field::PipelineSplit && value.contains(',');
        let value = if is_list { PUBLISHED_SPLIT.to_string() } else { value.to_ascii_lowercase() };
        Lock { field, values: vec![value], excludes: false }
    }

    fn parse(part: &str, field: Field) -> Result<Lock, Problem> {
        let Some((name, values)) = part.split_once('=') else {
            let message = words!("\"{part}\" is not a lock. Write a field and its value, such as tp=8.");
            return Err(Problem::new(field, part, message));
        };
        let (name, excludes) = match name.strip_suffix('!') {
            Some(name) => (name.trim(), true),
            None => (name.trim(), false),
        };
        if name.ends_with(['<', '>']) {
            let message =
                words!("A lock names its values, such as pp=1|2|4 or pp!=8, but \"{part}\" is a bound.");
            return Err(Problem::new(field, part, message));
        }
        let Some(locked) = CHOSEN_FIELDS.into_iter().find(|chosen| chosen.flag() == name) else {
            let message = words!("A search does not choose \"{name}\", so it can't be locked.");
            return Err(Problem::new(field, name, message).allow(CHOSEN_FIELDS.map(Field::flag)));
        };
        let values: Vec<String> = values
            .split('|')
            .map(|value| value.trim().to_ascii_lowercase())
            .filter(|value| !value.is_empty())
            .collect();
        if values.is_empty() {
            let message = message!["The lock \"", part.to_string(), "\" lacks a value, such as tp=8."];
            return Err(Problem::new(field, part, message));
        }
        let values =
            values.into_iter().map(|value| checked(locked, value, field)).collect::<Result<_, _>>()?;
        Ok(Lock { field: locked, values, excludes })
    }
}

/// Returns a lock's value as layouts have it, if the field can have it.
fn checked(locked: Field, value: String, field: Field) -> Result<String, Problem> {
    let choices = match locked {
        Field::Dtype => Dtype::ALL.map(Dtype::id).to_vec(),
        Field::Recompute => Recompute::ALL.map(Recompute::id).to_vec(),
        // Those that a search tries.
        Field::PipelineSplit => vec!["even", "counted", PUBLISHED_SPLIT],
        Field::Fsdp => vec!["on", "off"],
        _ => Vec::new(),
    };
    let refuse = |wanted: &str| {
        let flag = locked.flag();
        Problem::new(field, &value, words!("The lock {flag}={value} must have {wanted}."))
    };
    match locked {
        _ if choices.contains(&&*value) => Ok(value),
        Field::Fsdp if value == "yes" => Ok("on".into()),
        Field::Fsdp if value == "no" => Ok("off".into()),
        _ if !choices.is_empty() => Err(refuse("one of the allowed values").allow(choices)),
        // Without virtual stages, every stage is one chunk.
        Field::Vp if matches!(&*value, "none" | "off") => Ok("1".into()),
        _ => match value.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number.to_string()),
            _ => Err(refuse(match locked {
                Field::Tp => "a divisor of the model's attention heads, such as 4",
                Field::Ep => "a divisor of the model's experts, such as 8",
                _ => "a whole number of at least 1, such as 2",
            })),
        },
    }
}

impl fmt::Display for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, lock) in self.0.iter().enumerate() {
            let sign = if lock.excludes { "!=" } else { "=" };
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}{sign}{}", lock.field.flag(), lock.values.join("|"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_permit_what_they_name() {
        let locks = Locks::parse("tp=4|8, recompute!=full", Field::Tp).unwrap();
        assert_eq!(locks.to_string(), "tp=4|8,recompute!=full");
        assert!(locks.permit(Field::Tp, 8) && !locks.permit(Field::Tp, 2) && locks.permit(Field::Pp, 3));
        assert!(locks.permit(Field::Recompute, "none") && !locks.permit(Field::Recompute, "full"));
        assert_eq!(locks.without(Field::Tp).to_string(), "recompute!=full");
    }

    #[test]
    fn other_locks_replace_those_of_their_fields() {
        let [locks, others] =
            ["tp=4|8,recompute!=full", "pp=2,tp=16"].map(|text| Locks::parse(text, Field::Lock).unwrap());
        assert_eq!(locks.with(&others).to_string(), "recompute!=full,pp=2,tp=16");
    }

    #[test]
    fn other_values_of_a_lock_are_the_powers_of_two_nearby() {
        let others = |text: &str, field: Field| {
            let locks = Locks::parse(text, Field::Lock).unwrap().with_other_values(field);
            locks.iter().map(Locks::to_string).collect::<Vec<_>>()
        };
        assert_eq!(others("tp=16", Field::Tp), ["tp=8", "tp=32", "tp=4", "tp=64", "tp=2", "tp=128"]);
        assert_eq!(others("pp=3,cp=1", Field::Pp)[..2], ["cp=1,pp=2", "cp=1,pp=4"]);
        assert_eq!(others("pp=3,cp=1", Field::Cp), ["pp=3,cp=2", "pp=3,cp=4", "pp=3,cp=8"]);
        for text in ["tp=8|16", "tp!=16", "fsdp=on", "pp=4"] {
            assert_eq!(others(text, Field::Tp), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_is_not_a_lock_is_refused() {
        for text in ["tp", "tp=", "gpus=8", "tq=4"] {
            assert!(Locks::parse(text, Field::Tp).is_err(), "{text}");
        }
        for (text, wanted) in [
            ("vp=foo", "The lock vp=foo must have a whole number of at least 1, such as 2."),
            ("tp=4|0", "The lock tp=0 must have a divisor of the model's attention heads, such as 4."),
            ("pp!=none", "a whole number of at least 1, such as 2."),
            ("recompute=fll", "The lock recompute=fll must have one of the allowed values."),
            ("dtype=fp9", "one of the allowed values."),
            ("fsdp=1", "one of the allowed values."),
        ] {
            let problem = Locks::parse(text, Field::Lock).unwrap_err().to_string();
            assert!(problem.contains(wanted), "{problem}");
        }
        for none in ["vp=none", "vp=off"] {
            assert_eq!(Locks::parse(none, Field::Tp).unwrap().to_string(), "vp=1");
        }
        assert_eq!(Locks::parse("", Field::Tp), Ok(Locks::default()));
    }
}
