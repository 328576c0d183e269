//! Counts with the suffixes K, M, B and T.

use super::digits::significant;
use crate::decimal::{parse_decimal, write_decimal, write_exponential};

/// The powers of a thousand, ascending: suffix, word and factor.
const SUFFIXES: [(&str, &str, f64); 4] =
    [("K", "thousand", 1e3), ("M", "million", 1e6), ("B", "billion", 1e9), ("T", "trillion", 1e12)];

/// Returns the count that a person wrote: `1000000000000`, `1e12`, `1T`, `15 T`, `15 trillion`, `1_000` or `1,000`.
///
/// Returns `None` for any other text, a negative number or one that is not finite.
pub fn parse_count(text: &str) -> Option<f64> {
    let text: String = text.chars().filter(|c| !matches!(c, '_' | ' ')).collect();
    // Who writes 12,37 or 0,125 means a decimal comma, not 1237 or 125.
    let is_thousand = |group: &str| group.bytes().take_while(u8::is_ascii_digit).count() == 3;
    if !text.split(',').skip(1).all(is_thousand) || text.contains(',') && text.starts_with(['0', ',']) {
        return None;
    }
    let text = text.replace(',', "");
    let split = SUFFIXES.iter().zip(1..).find_map(|((suffix, word, _), thousands)| {
        let digits = without_end(&text, word).or_else(|| without_end(&text, suffix))?;
        Some((digits, thousands))
    });
    let (digits, thousands) = split.unwrap_or((text.as_str(), 0));
    // `parse_decimal` also reads "+1".
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    // Read as one number, because a product would be rounded twice: 8.2 times 1e12 is not 8.2e12.
    let count = match thousands {
        0 => parse_decimal(digits)?,
        thousands => parse_decimal(&format!("{digits}e{}", 3 * thousands))?,
    };
    count.is_finite().then_some(count)
}

/// Returns a text without its end, whatever its case; none if it ends otherwise.
fn without_end<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let (rest, last) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    last.eq_ignore_ascii_case(end).then_some(rest)
}

/// Returns the number of a limit that a person wrote: `<=1024`, `≤ 8M`, `..512` or `up to 64`; none for any other text.
pub(crate) fn limit(text: &str) -> Option<&str> {
    let text = text.trim();
    ["up to", "Up to", "<=", "≤", ".."].into_iter().find_map(|sign| text.strip_prefix(sign))
}

/// Returns a count with a suffix if the text reads back as the same number: 15e12 as `15T`, 128 as `128`.
pub fn format_count(count: f64) -> String {
    for (suffix, _, factor) in SUFFIXES.iter().rev() {
        let scaled = count / factor;
        // A suffix must not lose digits.
        let text = format!("{}{suffix}", write_decimal(scaled));
        if scaled >= 1.0 && text.len() <= 8 && parse_count(&text) == Some(count) {
            return text;
        }
    }
    write_decimal(count)
}

/// Returns a count with three significant digits and a suffix: 8,388,608 as `8.39M`, 1.5e13 as `15T`.
pub fn rounded_count(count: f64) -> String {
    let rounded = parse_decimal(&write_exponential(count, 2)).unwrap_or(count);
    let suffix = SUFFIXES.iter().rev().find(|(_, _, factor)| rounded >= *factor);
    match suffix {
        Some((suffix, _, factor)) => format!("{}{suffix}", significant(rounded / factor, 3)),
        None => significant(rounded, 3),
    }
}

/// Returns a count with a suffix, rounded if it doesn't fit otherwise: 12.37e12 as `12.37T`, 443,799,306,240 as `444B`.
pub fn short_count(count: f64) -> String {
    let exact = format_count(count);
    if exact.len() > 8 { rounded_count(count) } else { exact }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_count_is_rounded_to_three_digits_with_a_suffix() {
        let counts = [8_388_608.0, 1.5e13, 8.117e12, 24_714_936_320.0, 512.0, 999_999.0];
        assert_eq!(counts.map(rounded_count), ["8.39M", "15T", "8.12T", "24.7B", "512", "1M"]);
    }

    #[test]
    fn counts_are_parsed_with_suffixes_and_separators() {
        for (text, count) in [
            ("1T", 1e12),
            ("15 T", 15e12),
            ("1e12", 1e12),
            ("1_000", 1e3),
            ("1,000", 1e3),
            ("1,234,567.5", 1_234_567.5),
            ("1,000T", 1e15),
            ("2.5b", 2.5e9),
            ("14.8 trillion", 14.8e12),
            ("500Billion", 5e11),
            ("3 MILLION", 3e6),
            ("8 thousand", 8e3),
            ("0", 0.0),
        ] {
            assert_eq!(parse_count(text), Some(count), "{text}");
        }
        for text in [
            "",
            "T",
            "-1",
            "+1",
            "inf",
            "nan",
            "1TT",
            "1e999",
            "abc",
            "trillion",
            "1 zillion",
            "1 trillionT",
            "é",
            "12,37",
            "1,5T",
            "1,0000",
            "0,125",
            ",125",
        ] {
            assert_eq!(parse_count(text), None, "{text}");
        }
    }

    #[test]
    fn counts_are_written_short() {
        assert_eq!(format_count(15e12), "15T");
        assert_eq!(format_count(1.5e12), "1.5T");
        assert_eq!(format_count(8.2e12), "8.2T");
        assert_eq!(format_count(512.0), "512");
    }

    proptest! {
        #[test]
        fn formatted_counts_parse_to_the_same_number(count in 0.0f64..1e18) {
            prop_assert_eq!(parse_count(&format_count(count)), Some(count));
        }

        #[test]
        fn parsing_never_panics(text in "\\PC*") {
            let _ = parse_count(&text);
        }
    }
}
