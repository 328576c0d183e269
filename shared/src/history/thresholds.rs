//! The thresholds beyond which a run is a regression.

use crate::compare::ComparisonOptions;
use crate::units::significant;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The thresholds beyond which a run is a regression. A threshold of null is off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Thresholds {
    /// The lowest speed, in percent of the published one.
    pub baseline_percent: Option<f64>,
    /// By how many percent a step may be slower than the median of the previous runs.
    pub previous_percent: Option<f64>,
    /// By how many standard deviations a step may be slower than the median of the previous runs.
    pub sigma: Option<f64>,
    /// Whether a lasting slowdown among the newest runs is a regression.
    pub change: bool,
    /// The number of previous runs to compare with.
    pub previous: usize,
    /// The fewest previous runs needed.
    pub minimum: usize,
    /// The smallest difference that matters, in percent.
    pub margin_percent: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            baseline_percent: Some(95.0),
            previous_percent: Some(5.0),
            sigma: Some(3.0),
            change: true,
            previous: 10,
            minimum: 5,
            margin_percent: ComparisonOptions::MARGIN_PERCENT,
        }
    }
}

/// Why a threshold is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ThresholdError {
    /// The name is unknown.
    #[error("unknown threshold '{given}'; the thresholds are {}", Thresholds::NAMES.join(", "))]
    Unknown {
        /// The given text.
        given: String,
    },
    /// The value is invalid.
    #[error("{name}: '{given}' is invalid; use {wanted}")]
    Value {
        /// The threshold.
        name: &'static str,
        /// The given text.
        given: String,
        /// What to use instead.
        wanted: &'static str,
    },
}

impl Thresholds {
    /// The names of the thresholds, as flags and as keys of a query.
    pub const NAMES: [&str; 7] =
        ["baseline-percent", "previous-percent", "sigma", "change", "previous", "minimum", "margin-percent"];

    /// Sets a threshold by its name.
    ///
    /// # Errors
    /// The name is unknown, or the text is not a valid value.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ThresholdError> {
        let Some(name) = Self::NAMES.into_iter().find(|known| *known == name) else {
            return Err(ThresholdError::Unknown { given: name.chars().take(40).collect() });
        };
        let text = text.trim();
        let refuse = |wanted| ThresholdError::Value { name, given: text.chars().take(40).collect(), wanted };
        let above_0 =
            || text.parse::<f64>().ok().filter(|value| *value > 0.0 && value.is_finite() && *value <= 1e6);
        let or_off = || match text {
            "off" => Ok(None),
            _ => above_0().map(Some).ok_or_else(|| refuse("a number above 0, or off")),
        };
        let count = || {
            let count = text.parse::<usize>().ok().filter(|count| (1..=1000).contains(count));
            count.ok_or_else(|| refuse("a whole number from 1 to 1000"))
        };
        match name {
            "baseline-percent" => self.baseline_percent = or_off()?,
            "previous-percent" => self.previous_percent = or_off()?,
            "sigma" => self.sigma = or_off()?,
            "change" => {
                self.change = match text {
                    "on" => true,
                    "off" => false,
                    _ => return Err(refuse("on or off")),
                }
            }
            "previous" => self.previous = count()?,
            "minimum" => self.minimum = count()?,
            _ => self.margin_percent = above_0().ok_or_else(|| refuse("a number above 0"))?,
        }
        Ok(())
    }

    /// Returns the default thresholds with some of them set by name and text.
    ///
    /// # Errors
    /// As [`Thresholds::set`].
    pub fn parse<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ThresholdError> {
        let mut thresholds = Self::default();
        texts.into_iter().try_for_each(|(name, text)| thresholds.set(name, text))?;
        Ok(thresholds)
    }
}

impl fmt::Display for Thresholds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<f64>| value.map_or("off".to_owned(), |value| significant(value, 6));
        write!(
            f,
            "baseline-percent {}, previous-percent {}, sigma {}, change {}, previous {}, minimum {}, margin-percent {}",
            number(self.baseline_percent),
            number(self.previous_percent),
            number(self.sigma),
            if self.change { "on" } else { "off" },
            self.previous,
            self.minimum,
            number(Some(self.margin_percent)),
        )
    }
}
