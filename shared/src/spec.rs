//! What a user typed, by field. The command line, links, campaign files and forms all make a [`Spec`], so that they
//! report the same mistake in the same way.

use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::units::parse_count;
use std::str::FromStr;

/// The texts that a user typed, by field. A sorted list, because it makes less code in the browser than a map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec(Vec<(Field, String)>);

impl Spec {
    /// Returns the text of a field without surrounding blanks; none if it is empty.
    pub fn get(&self, field: Field) -> Option<&str> {
        Some(self.raw(field).trim()).filter(|text| !text.is_empty())
    }

    /// Returns the text of a field exactly as typed.
    pub fn raw(&self, field: Field) -> &str {
        self.place(field).map_or("", |place| self.0[place].1.as_str())
    }

    /// Sets the text of a field; an empty text clears it.
    pub fn set(&mut self, field: Field, text: impl Into<String>) {
        let text = text.into();
        match (self.place(field), text.trim().is_empty()) {
            (Ok(place), true) => drop(self.0.remove(place)),
            (Ok(place), false) => self.0[place].1 = text,
            (Err(_), true) => {}
            (Err(place), false) => self.0.insert(place, (field, text)),
        }
    }

    /// Returns the index of the field's text, or where to insert it.
    fn place(&self, field: Field) -> Result<usize, usize> {
        self.0.binary_search_by_key(&field, |(field, _)| *field)
    }

    /// Returns the spec with a field set.
    #[must_use]
    pub fn with(mut self, field: Field, text: impl Into<String>) -> Spec {
        self.set(field, text);
        self
    }

    /// Returns the spec without the scenario and the step time, which belongs to the scenario.
    #[must_use]
    pub fn without_scenario(&self) -> Spec {
        let stays = |field: Field| !field.is_of_scenario() && field != Field::StepTime;
        Spec(self.0.iter().filter(|(field, _)| stays(*field)).cloned().collect())
    }

    /// Returns the spec with the fields of the scenario only.
    #[must_use]
    pub fn only_scenario(&self) -> Spec {
        Spec(self.0.iter().filter(|(field, _)| field.is_of_scenario()).cloned().collect())
    }

    /// Returns every field that has a text, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Field, &str)> {
        self.0.iter().map(|(field, text)| (*field, text.as_str()))
    }

    /// Returns the parsed value of a field; none if it is empty.
    ///
    /// # Errors
    /// The problem that the type reports, for this field.
    pub fn parse<T: FromStr<Err = Problem>>(&self, field: Field) -> Result<Option<T>, Problem> {
        self.get(field).map(|text| text.parse().map_err(|problem| Problem { field, ..problem })).transpose()
    }

    /// Returns a field as a whole number within its [bounds](Field::bounds).
    ///
    /// # Errors
    /// The text is another number, or not a number.
    pub fn whole(&self, field: Field) -> Result<Option<u32>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        let Some(count) = parse_count(text) else { return Err(field.refuse(text)) };
        let nearest = field.bounds().nearest(count.floor(), parse_count);
        if nearest == count {
            Ok(Some(count as u32))
        } else {
            Err(field.refuse(text).suggest([nearest as u32]))
        }
    }

    /// Returns a field as a number within its [bounds](Field::bounds), which may have a suffix: `15T`.
    ///
    /// # Errors
    /// The text is another number, or not a number.
    pub fn count(&self, field: Field) -> Result<Option<f64>, Problem> {
        self.number(field, parse_count)
    }

    /// Returns the budget, which people also write as `$3,000,000`.
    ///
    /// # Errors
    /// The text is not an amount within the bounds.
    pub fn budget(&self) -> Result<Option<f64>, Problem> {
        self.number(Field::Budget, |text| parse_count(text.trim_start_matches('$')))
    }

    /// Returns a field as a number within its [bounds](Field::bounds), as `read` reads both.
    pub(crate) fn number(&self, field: Field, read: fn(&str) -> Option<f64>) -> Result<Option<f64>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        field.bounds().number(text, read).map(Some).ok_or_else(|| field.refuse(text))
    }

    /// Returns a field as on or off.
    ///
    /// # Errors
    /// The text is neither.
    pub fn switch(&self, field: Field) -> Result<Option<bool>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "on" | "1" | "yes" | "true" => Ok(Some(true)),
            "off" | "0" | "no" | "false" => Ok(Some(false)),
            _ => {
                let message = message![field, format!(" must be on or off, not \"{text}\".")];
                Err(Problem::new(field, text, message))
            }
        }
    }
}
