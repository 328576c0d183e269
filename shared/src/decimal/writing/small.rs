//! Writing decimal numbers without the code of the standard library.

use crate::decimal::parse_decimal;
use crate::decimal::reading::{divide_by_ten, multiply};

/// Returns the same as `format!("{number}")`. A number below the smallest normal one is written with all its digits.
pub(super) fn write_decimal(number: f64) -> String {
    write(number, |exact| exact.shortest(number.abs()).text())
}

/// Returns the same as `format!("{number:.decimals$}")`.
pub(super) fn write_rounded(number: f64, decimals: usize) -> String {
    write(number, |exact| exact.rounded(decimals as i64).text())
}

/// Returns the same as `format!("{number:.decimals$e}")`.
pub(super) fn write_exponential(number: f64, decimals: usize) -> String {
    write(number, |exact| {
        let decimals = decimals as i64;
        let mut rounded = exact.rounded(exact.decimals - exact.digits.len() as i64 + decimals + 1);
        // 9.96 with one decimal becomes 10.0, which has a digit too many.
        if rounded.digits.len() as i64 > decimals + 1 {
            rounded.digits.pop();
            rounded.decimals -= 1;
        }
        let exponent = if number == 0.0 { 0 } else { decimals - rounded.decimals };
        let mantissa = DecimalDigits { decimals, ..rounded }.text();
        format!("{mantissa}e{exponent}")
    })
}

/// Returns a number whose digits `text` writes, with its sign.
fn write(number: f64, text: impl FnOnce(DecimalDigits) -> String) -> String {
    if number.is_nan() {
        return "NaN".to_string();
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let text = if number.is_infinite() { "inf".to_string() } else { text(DecimalDigits::of(number.abs())) };
    [sign, &text].concat()
}

/// A number that is not negative, as decimal digits: 12.5 as 1, 2 and 5 with one decimal.
#[derive(Clone)]
struct DecimalDigits {
    /// The highest comes first, and is not 0.
    digits: Vec<u8>,
    /// How many of them are behind the point. A negative number of them are zeros before it that are left out.
    decimals: i64,
}

impl DecimalDigits {
    /// Returns all digits of a number.
    fn of(number: f64) -> DecimalDigits {
        if number == 0.0 {
            return DecimalDigits { digits: Vec::new(), decimals: 0 };
        }
        let bits = number.to_bits();
        let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
        // The number is this whole number times a power of two.
        let (whole, power) =
            if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        let zeros = whole.trailing_zeros().min(power.min(0).unsigned_abs());
        let (whole, power) = (whole >> zeros, power + zeros as i32);
        let mut parts = vec![whole as u32, (whole >> 32) as u32];
        // A half is five tenths.
        let factor = if power < 0 { 5 } else { 2 };
        for _ in 0..power.unsigned_abs() {
            multiply(&mut parts, factor, 0);
        }
        let mut digits = Vec::new();
        while !parts.is_empty() {
            digits.push(divide_by_ten(&mut parts) as u8);
        }
        digits.reverse();
        DecimalDigits { digits, decimals: i64::from(-power.min(0)) }
    }

    /// Returns the number with another number of decimals, rounded to the nearest, and a tie to an even digit.
    fn rounded(&self, decimals: i64) -> DecimalDigits {
        let Ok(dropped) = usize::try_from(self.decimals - decimals) else {
            let mut digits = self.digits.clone();
            digits.resize(digits.len() + (decimals - self.decimals) as usize, 0);
            return DecimalDigits { digits, decimals };
        };
        let Some(kept) = self.digits.len().checked_sub(dropped) else {
            return DecimalDigits { digits: Vec::new(), decimals };
        };
        let (kept, rest) = self.digits.split_at(kept);
        let is_up = match rest.split_first() {
            Some((5, after)) => {
                kept.last().is_some_and(|last| last % 2 == 1) || after.iter().any(|digit| *digit > 0)
            }
            Some((first, _)) => *first > 5,
            None => false,
        };
        let down = DecimalDigits { digits: kept.to_vec(), decimals };
        if is_up { down.incremented() } else { down }
    }

    /// Returns the number with its last digit one higher.
    fn incremented(mut self) -> DecimalDigits {
        match self.digits.iter().rposition(|digit| *digit < 9) {
            Some(place) => {
                self.digits[place] += 1;
                self.digits[place + 1..].fill(0);
            }
            None => {
                self.digits.fill(0);
                self.digits.insert(0, 1);
            }
        }
        self
    }

    /// Returns the fewest digits that read back as `number`, whose digits these are.
    fn shortest(self, number: f64) -> DecimalDigits {
        let count = self.digits.len();
        for kept in 1..count {
            let decimals = self.decimals - (count - kept) as i64;
            let down = DecimalDigits { digits: self.digits[..kept].to_vec(), decimals };
            // The nearest first. Below a power of two, numbers are closer together, so that only the one above may read back.
            let up = down.clone().incremented();
            let candidates = if self.digits[kept] < 5 { [down, up] } else { [up, down] };
            let reads_back = |candidate: &DecimalDigits| parse_decimal(&candidate.text()) == Some(number);
            if let Some(mut found) = candidates.into_iter().find(reads_back) {
                while found.digits.last() == Some(&0) {
                    found.digits.pop();
                    found.decimals -= 1;
                }
                return found;
            }
        }
        self
    }

    /// Returns the digits with the point between them, and with zeros up to it.
    fn text(&self) -> String {
        let (before, behind) = (self.digits.len() as i64 - self.decimals, self.decimals.max(0));
        let mut text = String::new();
        for power in (-behind..before.max(1)).rev() {
            if power == -1 {
                text.push('.');
            }
            let digit = usize::try_from(before - 1 - power).ok().and_then(|index| self.digits.get(index));
            text.push(char::from(b'0' + digit.unwrap_or(&0)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fails if a number is written otherwise than by the standard library.
    fn check(number: f64) {
        assert_eq!(write_decimal(number), number.to_string());
        for decimals in 0..8 {
            assert_eq!(write_rounded(number, decimals), format!("{number:.decimals$}"), "{number}");
            assert_eq!(write_exponential(number, decimals), format!("{number:.decimals$e}"), "{number}");
        }
    }

    #[test]
    fn corner_cases_are_written_as_by_the_standard_library() {
        for number in [
            0.0,
            0.04,
            0.05,
            0.25,
            0.3,
            0.5,
            1.5,
            2.5,
            9.5,
            9.96,
            99.96,
            0.099_96,
            1e-6,
            12.37,
            100.0,
            1e21,
            1e23,
            9_007_199_254_740_992.0,
            1.234_567e-300,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::INFINITY,
        ] {
            check(number);
            check(-number);
        }
        assert_eq!(write_decimal(f64::NAN), "NaN");
    }

    // The numbers below each are closer together than those above.
    #[test]
    fn powers_of_two_are_written_as_by_the_standard_library() {
        for power in -80..80 {
            check(libm::exp2(f64::from(power)));
        }
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_by_the_standard_library(fraction in 1.0_f64..2.0, power in -80_i32..80) {
            check(fraction * libm::exp2(f64::from(power)));
        }

        #[test]
        fn usual_numbers_are_written_as_by_the_standard_library(number in -1e7_f64..1e7, decimals in 0_usize..8) {
            check(number);
            // Numbers with few digits, as people write them.
            check(parse_decimal(&format!("{number:.decimals$}")).unwrap());
        }
    }
}
