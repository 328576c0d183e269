//! Writing decimal numbers.

use super::parse_decimal;
use super::reading::{MOST_EXACT_POWER, divide_by_ten, multiply};

/// The least number with more than 15 digits. No two numbers with at most 15 decimal digits are the same `f64`.
const FIFTEEN_DIGITS: u64 = 1_000_000_000_000_000;
/// Numbers from this to 10¹⁵ with at most 15 digits have at most [`MOST_EXACT_POWER`] decimals.
const LEAST_USUAL: f64 = 1e-7;
/// No number needs more digits to be read back, except those below the smallest normal one, which are never read back.
const ENOUGH_DIGITS: usize = 17;

/// Returns the shortest text that reads back as the number: the same as `format!("{number}")`.
///
/// That needs 17 kB of code, which a program contains as soon as it formats an `f64`. A number below the smallest normal one is
/// written with all its digits.
pub(crate) fn write_decimal(number: f64) -> String {
    write(number, |number| {
        let few = DecimalDigits::few(number);
        few.unwrap_or_else(|| DecimalDigits::of(number).shortest(number)).text()
    })
}

/// Returns a number with this many decimals: the same as `format!("{number:.decimals$}")`.
pub(crate) fn write_rounded(number: f64, decimals: usize) -> String {
    write(number, |number| {
        let clear = DecimalDigits::clearly_rounded(number, decimals);
        clear.unwrap_or_else(|| DecimalDigits::of(number).rounded(decimals as i64)).text()
    })
}

/// Returns a number with this many decimals and a power of ten: the same as `format!("{number:.decimals$e}")`.
pub(crate) fn write_exponential(number: f64, decimals: usize) -> String {
    write(number, |number| {
        let (exact, decimals) = (DecimalDigits::of(number), decimals as i64);
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

/// Returns a number with its sign. `text` writes it without one.
fn write(number: f64, text: impl FnOnce(f64) -> String) -> String {
    if number.is_nan() {
        return "NaN".to_string();
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let text = if number.is_infinite() { "inf".to_string() } else { text(number.abs()) };
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

    /// Returns the digits of a number that has at most 15, as do most numbers that people write. No other 15 digits read back as it, so
    /// that this is much faster than trying all of its digits.
    fn few(number: f64) -> Option<DecimalDigits> {
        let mut scale = 1.0;
        for decimals in 0..=MOST_EXACT_POWER {
            let whole = (number * scale + 0.5) as u64;
            if whole >= FIFTEEN_DIGITS {
                break;
            }
            // Both are exact, so the quotient is rounded once, as when the digits are read.
            if whole as f64 / scale == number {
                return Some(DecimalDigits::of_whole(whole, decimals.into()));
            }
            scale *= 10.0;
        }
        None
    }

    /// Returns a number with this many decimals, rounded to the nearest, unless it is large or so near to a tie that all of its digits
    /// decide.
    fn clearly_rounded(number: f64, decimals: usize) -> Option<DecimalDigits> {
        let scaled = number * (0..decimals).fold(1.0, |scale, _| scale * 10.0);
        // The product is rounded once, so it is off by less than a thousandth.
        let is_precise = decimals <= MOST_EXACT_POWER as usize && scaled < 1e12;
        let is_clear = (scaled - scaled.floor() - 0.5).abs() > 1e-3;
        (is_precise && is_clear).then(|| DecimalDigits::of_whole((scaled + 0.5) as u64, decimals as i64))
    }

    /// Returns a whole number over a power of ten.
    fn of_whole(mut whole: u64, decimals: i64) -> DecimalDigits {
        let mut digits = Vec::new();
        while whole > 0 {
            digits.push((whole % 10) as u8);
            whole /= 10;
        }
        digits.reverse();
        DecimalDigits { digits, decimals }
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

    /// Returns the fewest digits that read back as `number`, whose digits these are. It has no [`few`](Self::few) digits.
    fn shortest(self, number: f64) -> DecimalDigits {
        let count = self.digits.len();
        let least = if (LEAST_USUAL..FIFTEEN_DIGITS as f64).contains(&number) { 16 } else { 1 };
        for kept in least..count.min(ENOUGH_DIGITS + 1) {
            let decimals = self.decimals - (count - kept) as i64;
            let down = DecimalDigits { digits: self.digits[..kept].to_vec(), decimals };
            // The nearest first. Below a power of two, numbers are closer together, so that only the one above may read back.
            let candidates = [self.rounded(decimals), down.clone(), down.incremented()];
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
            0.1 + 0.2,
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
            1e-7,
            1.234_567_890_123_45e-7,
            9.999_999_999_999_99e-8,
            0.499_9,
            0.500_1,
            0.15,
            1.005,
            123_456.0,
            999_999_999_999.5,
            1e12 - 0.501,
            999_999_999_999_999.0,
            999_999_999_999_999.9,
            1e15,
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
        // Below the smallest normal number, nothing reads back.
        for bits in [1, 123_456_789, (1 << 52) - 1] {
            let number = f64::from_bits(bits);
            assert_eq!(write_decimal(number), format!("{number:.1074}").trim_end_matches('0'));
            assert_eq!(write_rounded(number, 3), "0.000");
            assert_eq!(write_exponential(number, 5), format!("{number:.5e}"));
        }
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
