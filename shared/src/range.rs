//! Ranges of values, and how people write them.

use crate::units::{parse_count, readable_range};
use serde::Serialize;

/// A range of values without a best one: the ends come from sources that disagree, or from the user.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ValueRange {
    /// Lower end.
    pub low: f64,
    /// Upper end. It can be infinite, which JSON writes as `null`.
    pub high: f64,
}

impl ValueRange {
    /// Returns the range of a single value.
    pub const fn of(value: f64) -> ValueRange {
        ValueRange { low: value, high: value }
    }

    /// Returns the range between two values in either order.
    pub fn between(one: f64, other: f64) -> ValueRange {
        ValueRange { low: one.min(other), high: one.max(other) }
    }

    /// Returns the narrowest range that contains all values; none without values.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Option<ValueRange> {
        values.into_iter().map(ValueRange::of).reduce(ValueRange::hull)
    }

    /// Returns the narrowest range that contains both.
    #[must_use]
    pub fn hull(self, other: ValueRange) -> ValueRange {
        ValueRange { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Returns the range that a person wrote, `2.95` or `1.99..3.50`; none if it is anything else or if its ends are
    /// in the wrong order. Numbers can have a suffix, as in [`parse_count`].
    pub fn parse(text: &str) -> Option<ValueRange> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let range = ValueRange { low: parse_count(low)?, high: parse_count(high)? };
        (range.low <= range.high).then_some(range)
    }

    /// Returns the range with both ends multiplied by a factor that is not negative.
    #[must_use]
    pub fn times(self, factor: f64) -> ValueRange {
        ValueRange { low: self.low * factor, high: self.high * factor }
    }

    /// Returns the range of sums, low with low and high with high.
    #[must_use]
    pub fn plus(self, other: ValueRange) -> ValueRange {
        ValueRange { low: self.low + other.low, high: self.high + other.high }
    }

    /// Returns the range for people: `131–147`, or one number if both ends read the same. An infinite end is `∞`.
    pub fn readable(self, write: fn(f64) -> String) -> String {
        if self.high.is_infinite() {
            let low = if self.low.is_infinite() { "∞".to_string() } else { write(self.low) };
            return if self.low.is_infinite() { low } else { format!("{low}–∞") };
        }
        let (low, high) = (write(self.low), write(self.high));
        if low == high { low } else { readable_range((self.low, self.high), write) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::readable_days;

    #[test]
    fn a_range_is_one_number_or_two() {
        assert_eq!(ValueRange::parse("2.95"), Some(ValueRange::of(2.95)));
        assert_eq!(ValueRange::parse("1.99 .. 3.50"), Some(ValueRange { low: 1.99, high: 3.5 }));
        assert_eq!(ValueRange::parse("2e-5..1.2e-4"), Some(ValueRange { low: 2e-5, high: 1.2e-4 }));
        for text in ["", "3..2", "..", "1..", "a", "-1", "1...2"] {
            assert_eq!(ValueRange::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_contains_all_its_values() {
        assert_eq!(ValueRange::around([2.0, 1.0, 1.5]), Some(ValueRange { low: 1.0, high: 2.0 }));
        assert_eq!(ValueRange::around([]), None);
    }

    #[test]
    fn equal_ends_are_written_once() {
        assert_eq!(ValueRange::between(147.2, 131.4).readable(readable_days), "131–147");
        assert_eq!(ValueRange::between(131.2, 131.4).readable(readable_days), "131");
        assert_eq!(ValueRange::between(9.5, f64::INFINITY).readable(readable_days), "9.50–∞");
        assert_eq!(ValueRange::of(f64::INFINITY).readable(readable_days), "∞");
    }
}
