//! The steps that a run is scored by.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Span;

/// The steps that are scored, by the numbers in the log: `last`, or a range such as `35-44`.
///
/// The same numbers are not the same steps in every format: in a log that counts from 0, 35-44 are the 36th to 45th.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Window {
    /// The last step.
    Last,
    /// A range of steps.
    Labels(Span),
}

/// Why a text is not a window.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WindowError {
    /// It is not a range.
    #[error("'{0}' is not a window: use 'last' or a range of steps such as '35-44'")]
    NotAWindow(String),
    /// It ends before it starts.
    #[error("the window '{from}-{to}' ends before it starts: use '{to}-{from}'")]
    Reversed {
        /// The first step as given.
        from: u64,
        /// The last step as given.
        to: u64,
    },
}

impl Window {
    /// Returns the window of the steps `from` to `to`, both included.
    ///
    /// # Errors
    /// `to` is less than `from`.
    pub fn labels(from: u64, to: u64) -> Result<Self, WindowError> {
        if to < from {
            return Err(WindowError::Reversed { from, to });
        }
        Ok(Self::Labels(Span { first: from, last: to }))
    }

    /// Returns the window for people: `last`, `35–44`, `49`.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Last => "last".to_owned(),
            Self::Labels(span) => span.words(),
        }
    }
}

impl FromStr for Window {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("last") {
            return Ok(Self::Last);
        }
        let not_a_window = || WindowError::NotAWindow(text.chars().take(40).collect());
        let (from, to) = text.split_once(['-', '–']).ok_or_else(not_a_window)?;
        let label = |text: &str| {
            let text = text.trim();
            // At most 15 digits, as in a log. `parse` alone would let a sign pass.
            if text.len() > 15 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            text.parse().ok()
        };
        match (label(from), label(to)) {
            (Some(from), Some(to)) => Self::labels(from, to),
            _ => Err(not_a_window()),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => f.write_str("last"),
            Self::Labels(span) => span.fmt(f),
        }
    }
}

impl TryFrom<String> for Window {
    type Error = WindowError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Window> for String {
    fn from(window: Window) -> Self {
        window.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn windows_are_read_and_printed() {
        for (text, printed) in
            [("last", "last"), (" LAST ", "last"), ("11-44", "11-44"), ("35 – 44", "35-44"), ("0-0", "0-0")]
        {
            assert_eq!(text.parse::<Window>().map(|window| window.to_string()), Ok(printed.to_owned()));
        }
    }

    #[test]
    fn people_read_a_window_of_one_step_as_its_number() {
        let words = |text: &str| text.parse::<Window>().unwrap().words();
        assert_eq!(["last", "49-49", "35-44"].map(words), ["last", "49", "35–44"]);
    }

    #[test]
    fn errors_say_what_to_write() {
        let error = |text: &str| text.parse::<Window>().map_err(|error| error.to_string());
        assert_eq!(
            error("44"),
            Err("'44' is not a window: use 'last' or a range of steps such as '35-44'".into())
        );
        assert_eq!(error("44-35"), Err("the window '44-35' ends before it starts: use '35-44'".into()));
        for text in ["", "-", "a-b", "1-", "-1", "+1-2", "1-2-3", "1.5-2", "1-99999999999999999999"] {
            assert!(error(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_window_is_a_string_in_json() {
        let window: Window = serde_json::from_str("\"11-44\"").unwrap();
        assert_eq!(serde_json::to_string(&window).unwrap(), "\"11-44\"");
        assert!(serde_json::from_str::<Window>("\"44-11\"").is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(first in 0..1_000_000_u64, more in 0..1_000_u64) {
            let window = Window::Labels(Span { first, last: first + more });
            prop_assert_eq!(window.to_string().parse(), Ok(window));
        }

        #[test]
        fn anything_is_read_or_refused(text in ".*") {
            if let Ok(window) = text.parse::<Window>() {
                prop_assert_eq!(window.to_string().parse(), Ok(window));
            }
        }
    }
}
