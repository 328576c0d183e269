//! The currency of prices.

use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::words::words;
use std::fmt;
use std::str::FromStr;

/// The most letters of a currency's name.
const MOST_LETTERS: usize = 8;

/// The currency of the user's prices: a label, such as `EUR` or `credits`. Nothing is converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency(String);

impl Currency {
    /// The currency of every assumed price.
    pub const ASSUMED: &str = "USD";

    /// Returns whether assumed prices can be used with it.
    pub fn is_assumed(&self) -> bool {
        self.0 == Currency::ASSUMED
    }

    /// Returns the label.
    pub fn label(&self) -> &str {
        &self.0
    }
}

impl Default for Currency {
    fn default() -> Currency {
        Currency(Currency::ASSUMED.to_string())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Currency {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Currency, Problem> {
        let label = match text.trim() {
            "$" | "usd" => Currency::ASSUMED,
            label => label,
        };
        let fits = (1..=MOST_LETTERS).contains(&label.chars().count());
        if fits && label.chars().all(is_of_label) {
            return Ok(Currency(label.to_string()));
        }
        let message = words!(" must be a name of at most {MOST_LETTERS} letters, not \"{text}\".");
        Err(Problem::new(Field::Currency, text, message![Field::Currency, message]).suggest(["USD", "EUR"]))
    }
}

/// Whether a currency's label may contain a character. Beyond ASCII these are not only letters and currency signs: the search worker
/// would contain the table of all letters. Blanks and the marks that direct how a text is laid out are left out.
fn is_of_label(c: char) -> bool {
    let is_layout = matches!(c, '\u{61c}' | '\u{2000}'..='\u{206f}' | '\u{feff}');
    c.is_ascii_alphabetic() || (c > '\u{a0}' && !c.is_whitespace() && !is_layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_is_a_short_label() {
        assert!(Currency::default().is_assumed() && "$".parse::<Currency>().unwrap().is_assumed());
        for text in ["EUR", "credits", "zł", "₩"] {
            assert_eq!(text.parse::<Currency>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "12",
            "US dollars",
            "US\u{a0}dollar",
            "abcdefghi",
            "<b>",
            "a\u{202e}b",
            "a\u{61c}",
            "a\u{7f}",
        ] {
            assert!(text.parse::<Currency>().is_err(), "{text}");
        }
    }
}
