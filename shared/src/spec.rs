//! What a user typed, by field. The command line, links, campaign files and forms all make a [`Spec`], so that they
//! report the same mistake in the same way.

use crate::field::Field;
use crate::problem::Problem;
use crate::units::parse_count;
use std::str::FromStr;

/// Texts by field, as typed. They are few: a list in the order of the fields serves as well as a map, and weighs less
/// in the browser.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec(Vec<(Field, String)>);

impl Spec {
    /// What was typed into a field; blanks count as nothing.
    pub fn get(&self, field: Field) -> Option<&str> {
        Some(self.raw(field).trim()).filter(|text| !text.is_empty())
    }

    /// What was typed into a field to the letter, for the place that it was typed into.
    pub fn raw(&self, field: Field) -> &str {
        self.place(field).map_or("", |place| self.0[place].1.as_str())
    }

    /// Types into a field; an empty text clears it.
    pub fn set(&mut self, field: Field, text: impl Into<String>) {
        let text = text.into();
        match (self.place(field), text.trim().is_empty()) {
            (Ok(place), true) => drop(self.0.remove(place)),
            (Ok(place), false) => self.0[place].1 = text,
            (Err(_), true) => {}
            (Err(place), false) => self.0.insert(place, (field, text)),
        }
    }

    /// Where the field's text is, or where it would be.
    fn place(&self, field: Field) -> Result<usize, usize> {
        self.0.binary_search_by_key(&field, |(field, _)| *field)
    }

    /// The same with a field typed.
    #[must_use]
    pub fn with(mut self, field: Field, text: impl Into<String>) -> Spec {
        self.set(field, text);
        self
    }

    /// What remains when another scenario takes the place of this one: a step time was that of the old one and goes
    /// too.
    #[must_use]
    pub fn without_scenario(&self) -> Spec {
        let stays = |field: Field| !field.is_of_scenario() && field != Field::StepTime;
        Spec(self.0.iter().filter(|(field, _)| stays(*field)).cloned().collect())
    }

    /// Every typed field in order.
    pub fn iter(&self) -> impl Iterator<Item = (Field, &str)> {
        self.0.iter().map(|(field, text)| (*field, text.as_str()))
    }

    /// The field as a value of its type; none if nothing was typed.
    ///
    /// # Errors
    /// The type's own problem, under this field.
    pub fn parse<T: FromStr<Err = Problem>>(&self, field: Field) -> Result<Option<T>, Problem> {
        self.get(field).map(|text| text.parse().map_err(|problem| Problem { field, ..problem })).transpose()
    }

    /// The field as a whole number.
    ///
    /// # Errors
    /// It is none, or is below `least`.
    pub fn whole(&self, field: Field, least: u32) -> Result<Option<u32>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        let refuse = |what: &str| {
            Problem::clause(field, text, what).allowed(format!("a whole number, {least} or more"))
        };
        match parse_count(text) {
            Some(count) if count.fract() != 0.0 => Err(refuse("is no whole number").nearest([count as u32])),
            Some(count) if count > f64::from(u32::MAX) => Err(refuse("is too large")),
            Some(count) if count < f64::from(least) => Err(refuse("is too small").nearest([least])),
            Some(count) => Ok(Some(count as u32)),
            None => Err(refuse("is no whole number")),
        }
    }

    /// The field as a positive count, which may have a suffix: `15T`.
    ///
    /// # Errors
    /// It is no such number.
    pub fn count(&self, field: Field) -> Result<Option<f64>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        match parse_count(text) {
            Some(count) if count > 0.0 => Ok(Some(count)),
            _ => Err(Problem::clause(field, text, "is no positive number")
                .allowed("a number above 0, with K, M, B or T behind it if you like: 15T, 1e12, 12.37")),
        }
    }
}
