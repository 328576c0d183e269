//! Numbers without a unit: how many digits they have, and the separators between them.

use crate::decimal::{parse_decimal, write_decimal, write_exponential, write_rounded};

/// Returns a number with three significant digits and thousands separators: 8,621,236 as `8,620,000`, 88.25 as `88.2`.
pub fn group_three_digits(value: f64) -> String {
    match parse_decimal(&write_exponential(value, 2)) {
        Some(rounded) if rounded >= 1000.0 => group_digits(rounded),
        _ => significant(value, 3),
    }
}

/// Returns a number rounded to an integer, with thousands separators: `8,621,236`.
pub fn group_digits(value: f64) -> String {
    if value.is_infinite() {
        return "∞".to_string();
    }
    let digits = write_rounded(value.abs(), 0);
    let mut grouped = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value < 0.0 {
        grouped.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns a number with `digits` significant digits and without trailing zeros.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return write_decimal(value);
    }
    let magnitude = libm::log10(value.abs()).floor() as i32;
    if !(-5..9).contains(&magnitude) {
        let text = write_exponential(value, digits.saturating_sub(1));
        return match text.split_once('e') {
            Some((mantissa, exponent)) if mantissa.contains('.') => {
                format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => text,
        };
    }
    let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
    let text = write_rounded(value, decimals);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Returns the numbers with the decimals that the first one has with `digits` significant digits, so that a value and its interval
/// have the same precision: 48, 47.9994 and 48.001 as `48.000`, `47.999` and `48.001`. Zeros at the end of all of them are left out.
pub fn alike<const N: usize>(values: [f64; N], digits: usize) -> [String; N] {
    let magnitude = values.first().filter(|first| **first != 0.0 && first.is_finite());
    let magnitude = magnitude.map(|first| libm::log10(first.abs()).floor() as i32);
    let Some(magnitude) = magnitude.filter(|magnitude| (-5..9).contains(magnitude)) else {
        return values.map(|value| significant(value, digits));
    };
    let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
    let texts = values.map(|value| format!("{value:.decimals$}"));
    let zeros = |text: &String| text.len() - text.trim_end_matches('0').len();
    // A dot ends the zeros, because all have the same decimals.
    let shared = texts.iter().map(zeros).min().unwrap_or(0).min(decimals);
    texts.map(|text| text[..text.len() - shared].trim_end_matches('.').to_owned())
}

/// Returns a positive number rounded up to `digits` significant digits: 3.95 as 4 with two of them.
pub fn significant_up(value: f64, digits: i32) -> f64 {
    let exponent = digits - 1 - libm::log10(value).floor() as i32;
    // A power of ten is exact only if it is at least one.
    let scale = libm::pow(10.0, f64::from(exponent.abs()));
    if exponent < 0 { (value / scale).ceil() * scale } else { (value * scale).ceil() / scale }
}

/// Returns a number for people to read: always three significant digits, so that a value and its interval have
/// the same precision, thousands separators, and no rounding of the whole part: `0.444`, `5.90`, `169,535`.
pub fn readable(value: f64) -> String {
    if value.is_infinite() {
        return "∞".to_string();
    }
    // The exponent of the rounded value: 9.996 becomes 10.0, not 10.00.
    let exponent = format!("{value:.2e}").rsplit_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    match exponent {
        Some(2..15i32) => group_digits(value),
        Some(exponent @ -5..2) if value != 0.0 => format!("{value:.*}", (2 - exponent) as usize),
        _ => significant(value, 3),
    }
}

/// Returns a range for people to read, the lower end first whatever the order of `ends`: `131–147`.
pub fn readable_range(ends: (f64, f64), write: fn(f64) -> String) -> String {
    format!("{}–{}", write(ends.0.min(ends.1)), write(ends.0.max(ends.1)))
}

/// Returns a number with one decimal and thousands separators: `1,024.5`, `79.1`.
pub fn one_decimal(value: f64) -> String {
    let text = format!("{:.1}", value.abs());
    let (whole, decimal) = text.split_once('.').unwrap_or((&text, "0"));
    let sign = if value < 0.0 && text != "0.0" { "-" } else { "" };
    format!("{sign}{}.{decimal}", group_digits(parse_decimal(whole).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::super::readable_days;
    use super::*;

    #[test]
    fn numbers_are_written_short() {
        assert_eq!(group_digits(8_621_236.0), "8,621,236");
        assert_eq!(group_digits(12.0), "12");
        assert_eq!(group_three_digits(8_621_236.0), "8,620,000");
        assert_eq!([12.0, 88.249, 999.6].map(group_three_digits), ["12", "88.2", "1,000"]);
        assert_eq!(significant(0.44351, 3), "0.444");
        assert_eq!(significant(8.621236e15, 4), "8.621e15");
        assert_eq!(significant(12.37, 4), "12.37");
        assert_eq!(significant(1e20, 4), "1e20");
        assert_eq!(significant(100.0, 2), "100");
    }

    #[test]
    fn a_value_and_its_interval_have_the_same_decimals() {
        for (values, expected) in [
            ([48.0, 47.9994, 48.001], ["48.000", "47.999", "48.001"]),
            ([9.4566, 9.443, 9.4703], ["9.4566", "9.4430", "9.4703"]),
            ([12.39, 12.39, 12.39], ["12.39", "12.39", "12.39"]),
            ([12.0, 12.0, 12.0], ["12", "12", "12"]),
            ([136.667, 0.0, 316.29], ["136.67", "0.00", "316.29"]),
            ([123_456.7, 100.2, 200_000.0], ["123457", "100", "200000"]),
            ([0.0, 1.5, 2.25], ["0", "1.5", "2.25"]),
            ([f64::NAN, 1.5, 2.25], ["NaN", "1.5", "2.25"]),
        ] {
            assert_eq!(alike(values, 5), expected);
        }
    }

    #[test]
    fn numbers_are_rounded_up() {
        for (value, digits, expected) in [
            (3.95, 2, 4.0),
            (3.95, 3, 3.95),
            (59.961, 3, 60.0),
            (1_234_567.0, 3, 1_240_000.0),
            (0.0512, 2, 0.052),
        ] {
            assert_eq!(significant_up(value, digits), expected, "{value}");
        }
    }

    #[test]
    fn readable_numbers_have_three_digits_and_keep_their_whole_part() {
        for (value, text) in [
            (0.444_35, "0.444"),
            (5.9, "5.90"),
            (0.099_96, "0.100"),
            (9.996, "10.0"),
            (12.37, "12.4"),
            (-40.0, "-40.0"),
            (99.96, "100"),
            (123.4, "123"),
            (169_535.2, "169,535"),
            (0.0, "0"),
        ] {
            assert_eq!(readable(value), text);
        }
    }

    #[test]
    fn a_range_begins_with_its_lower_end_and_both_are_as_precise() {
        assert_eq!(readable_range((147.2, 131.4), readable_days), "131–147");
        assert_eq!(readable_range((11.24, 12.96), readable), "11.2–13.0");
        assert_eq!(readable_range((7.6, 8.38), readable_days), "7.60–8.38");
        assert_eq!(readable_range((9.87, 10.9), readable_days), "9.87–11");
    }

    #[test]
    fn a_number_that_rounds_to_zero_has_no_sign() {
        assert_eq!([-0.04, -2.25, 0.0].map(one_decimal), ["0.0", "-2.2", "0.0"]);
    }
}
