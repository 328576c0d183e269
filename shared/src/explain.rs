//! Derivations: how a number is computed, step by step.

use serde::Serialize;

/// One line of a derivation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Name of the result.
    pub name: String,
    /// Formula in symbols.
    pub formula: String,
    /// Formula with numbers.
    pub numbers: String,
    /// Result.
    pub value: f64,
    /// Unit: "FLOPs/token", "s", "%".
    pub unit: &'static str,
    /// Source or comment; may be empty.
    pub note: String,
}

impl Line {
    /// Returns a line without a note.
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

    /// Returns the line with a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Line {
        self.note = note.into();
        self
    }
}
