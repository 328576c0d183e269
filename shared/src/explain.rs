//! How a number was made, for a reader to follow.

use serde::Serialize;

/// One line of a derivation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// What it yields.
    pub name: String,
    /// In symbols.
    pub formula: String,
    /// With the numbers in place.
    pub numbers: String,
    /// The value.
    pub value: f64,
    /// Of what: "FLOPs/token", "s", "%".
    pub unit: &'static str,
    /// Where formula or number comes from, or what to know of it; may be empty.
    pub note: String,
}

impl Line {
    /// A line without a note.
    pub fn new(
        name: impl Into<String>,
        formula: impl Into<String>,
        numbers: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) -> Line {
        let (name, formula, numbers) = (name.into(), formula.into(), numbers.into());
        Line { name, formula, numbers, value, unit, note: String::new() }
    }

    /// Adds what to know of it.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Line {
        self.note = note.into();
        self
    }
}
