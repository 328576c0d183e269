//! Numbers in the forms that people write and read.

pub use crate::decimal::parse_decimal;

/// Seconds in an hour.
pub(crate) const HOUR_S: f64 = 3600.0;
/// Seconds in a day.
pub const DAY_S: f64 = 86_400.0;

/// FLOPs per second in one TFLOPS.
pub const TERA: f64 = 1e12;

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

/// Returns the seconds of a time that a person wrote: `600`, `90s`, `10m`, `1.5h` or `2 d`; none for any other text.
pub fn parse_seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let unit = text.chars().last()?.to_ascii_lowercase();
    let factor = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        'd' => DAY_S,
        _ => return parse_decimal(text).filter(|seconds| seconds.is_finite() && *seconds >= 0.0),
    };
    let number = text[..text.len() - 1].trim_end();
    let is_plain = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    parse_decimal(number).map(|number| number * factor).filter(|seconds| is_plain && seconds.is_finite())
}

/// Returns a count with a suffix if the text reads back as the same number: 15e12 as `15T`, 128 as `128`.
pub fn format_count(count: f64) -> String {
    for (suffix, _, factor) in SUFFIXES.iter().rev() {
        let scaled = count / factor;
        // A suffix must not lose digits.
        let text = format!("{scaled}{suffix}");
        if scaled >= 1.0 && text.len() <= 8 && parse_count(&text) == Some(count) {
            return text;
        }
    }
    format!("{count}")
}

/// Returns a count with three significant digits and a suffix: 8,388,608 as `8.39M`, 1.5e13 as `15T`.
pub fn rounded_count(count: f64) -> String {
    let rounded = parse_decimal(&format!("{count:.2e}")).unwrap_or(count);
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

/// Returns a number with three significant digits and thousands separators: 8,621,236 as `8,620,000`, 88.25 as `88.2`.
pub fn group_three_digits(value: f64) -> String {
    match parse_decimal(&format!("{value:.2e}")) {
        Some(rounded) if rounded >= 1000.0 => group_digits(rounded),
        _ => significant(value, 3),
    }
}

/// Returns a number rounded to an integer, with thousands separators: `8,621,236`.
pub fn group_digits(value: f64) -> String {
    if value.is_infinite() {
        return "∞".to_string();
    }
    let digits = format!("{:.0}", value.abs());
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
        return format!("{value}");
    }
    let magnitude = libm::log10(value.abs()).floor() as i32;
    if !(-5..9).contains(&magnitude) {
        let text = format!("{value:.*e}", digits.saturating_sub(1));
        return match text.split_once('e') {
            Some((mantissa, exponent)) if mantissa.contains('.') => {
                format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => text,
        };
    }
    let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
    let text = format!("{value:.decimals$}");
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

/// Returns a number of days for people to read: whole days from 10 on, three significant digits below:
/// `9.50`, `139`.
pub fn readable_days(days: f64) -> String {
    if days >= 9.995 { group_digits(days) } else { readable(days) }
}

/// Reads a number of days, weeks or months of 30 days: `60d`, `60 days`, `8w`, `2 months`, `60`. None for anything else, and for none or negative
/// days.
pub fn parse_days(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text[number.len()..].trim() {
        "" | "d" | "day" | "days" => 1.0,
        "w" | "week" | "weeks" => 7.0,
        "mo" | "month" | "months" => 30.0,
        _ => return None,
    };
    let days = parse_decimal(number.trim())? * unit;
    (days > 0.0 && days.is_finite()).then_some(days)
}

/// Returns a range for people to read, the lower end first whatever the order of `ends`: `131–147`.
pub fn readable_range(ends: (f64, f64), write: fn(f64) -> String) -> String {
    format!("{}–{}", write(ends.0.min(ends.1)), write(ends.0.max(ends.1)))
}

/// Returns a number with its unit after a space where no line breaks.
fn with_unit(number: &str, unit: &str) -> String {
    format!("{number}\u{a0}{unit}")
}

/// Returns the unit in which people read so many days, and how many of it a day has: hours below 2 days, minutes below 2 hours.
pub fn time_unit(days: f64) -> (&'static str, f64) {
    match days * 24.0 {
        ..2.0 => ("minutes", 1440.0),
        ..48.0 => ("hours", 24.0),
        _ => ("days", 1.0),
    }
}

/// Returns a number of days in the unit that suits it: `60 days`, `6.50 hours`, `28 minutes`.
pub fn duration(days: f64) -> String {
    let (unit, of_day) = time_unit(days);
    format!("{} {unit}", readable_days(days * of_day))
}

/// Returns a range of days in the unit of [`duration`] for `days`: `131–147`.
pub fn duration_range(days: f64, ends: (f64, f64)) -> String {
    let (_, of_day) = time_unit(days);
    readable_range((ends.0 * of_day, ends.1 * of_day), readable_days)
}

/// Returns a number of days below a heading that says so: `60`; with its unit if it is another one: `28 minutes`.
pub fn below_days(days: f64) -> String {
    let text = duration(days);
    match text.strip_suffix(" days") {
        Some(number) => number.to_string(),
        None => text,
    }
}

/// Returns [`duration`] with a space where no line breaks.
pub fn days(days: f64) -> String {
    duration(days).replace(' ', "\u{a0}")
}

/// Returns seconds with three significant digits and their unit: `5.90 s`.
pub fn seconds(seconds: f64) -> String {
    with_unit(&readable(seconds), "s")
}

/// Returns a part of a step with three significant digits, in seconds or milliseconds: `5.90 s`, `12.4 ms`. What is taken from the
/// step is negative: `−0.310 s`.
pub fn short_seconds(duration: f64) -> String {
    if duration < 0.0 {
        return format!("−{}", short_seconds(-duration));
    }
    if duration < 0.0995 { with_unit(&readable(duration * 1e3), "ms") } else { seconds(duration) }
}

/// Returns GiB with one decimal and their unit: `128.8 GiB`.
pub fn gib(gib: f64) -> String {
    with_unit(&one_decimal(gib), "GiB")
}

/// Returns the memory of a GPU, which is a whole number of GiB: `80 GiB`.
pub fn capacity(gib: f64) -> String {
    with_unit(&group_digits(gib), "GiB")
}

/// Returns a number with one decimal and thousands separators: `1,024.5`, `79.1`.
pub fn one_decimal(value: f64) -> String {
    let text = format!("{:.1}", value.abs());
    let (whole, decimal) = text.split_once('.').unwrap_or((&text, "0"));
    let sign = if value < 0.0 && text != "0.0" { "-" } else { "" };
    format!("{sign}{}.{decimal}", group_digits(parse_decimal(whole).unwrap_or_default()))
}

/// Returns a fraction in percent, always with three significant digits: `44.4 %`, `40.0 %`. The space is an ordinary one, because
/// terminals print it too.
pub fn percent(fraction: f64) -> String {
    format!("{} %", readable(fraction * 100.0))
}

/// Returns how much longer something takes than planned, for a ratio of times: `4 % longer than planned`, `3 % shorter than
/// planned`, `2.1 times as long as planned`.
pub fn longer(ratio: f64, planned: &str) -> String {
    match ratio {
        2.0.. => format!("{} times as long as {planned}", significant(ratio, 2)),
        1.0.. => format!("{:.0} % longer than {planned}", (ratio - 1.0) * 100.0),
        _ => format!("{:.0} % shorter than {planned}", (1.0 - ratio) * 100.0),
    }
}

/// Whether two values are the same in [`difference`].
pub fn is_same(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < 0.005
}

/// Returns how a value compares with another: `58 % fewer`, `7 % more`, `as many` if they are the same in whole percent, and from twice
/// as much on `2.4 times as many`. The words are those for less, for more, for a multiple and for the same.
pub fn difference(one: f64, other: f64, [less, more, times, same]: [&str; 4]) -> String {
    let ratio = one / other;
    let percent = ((ratio - 1.0).abs() * 100.0).round();
    match ratio {
        _ if is_same(one, other) => same.to_string(),
        2.0.. => format!("{} {times}", significant(ratio, 2)),
        1.0.. => format!("{percent} % {more}"),
        _ => format!("{percent} % {less}"),
    }
}

/// Returns a difference in percent with its sign and one decimal, `+5.7 %` or `−5.7 %`; one that rounds to zero has
/// no sign.
pub fn signed_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() < 0.05 { "0.0 %".to_string() } else { format!("{} %", signed(percent, 1)) }
}

/// Returns a number with its sign and some decimals: `+5.70`, `−5.70`. The minus sign is as wide as the plus sign, unlike a hyphen.
pub fn signed(value: f64, decimals: usize) -> String {
    format!("{value:+.decimals$}").replace('-', "−")
}

/// Returns a time to the minute, `2026-11-21 16:15 UTC`; a text that is not RFC 3339 in UTC is returned
/// unchanged.
pub fn minute(rfc3339: &str) -> String {
    match (rfc3339.get(..16), rfc3339.ends_with('Z')) {
        (Some(minute), true) => format!("{} UTC", minute.replace('T', " ")),
        _ => rfc3339.to_owned(),
    }
}

/// Returns the greatest multiple of `step` at or below `near`, unless it is 0, and the least one above
/// `near`.
pub fn nearest_multiples(near: u32, step: u32) -> Vec<u32> {
    let step = step.max(1);
    let below = near / step * step;
    [Some(below).filter(|below| *below > 0), below.checked_add(step)].into_iter().flatten().collect()
}

/// Returns the divisors of `of` next to `near`: the greatest below it and the least above it.
pub fn nearest_divisors(near: u32, of: u32) -> Vec<u32> {
    let divides = |candidate: &u32| of.is_multiple_of(*candidate);
    let below = (1..near.min(of.saturating_add(1))).rev().find(divides);
    let above = (near.saturating_add(1)..=of).find(divides);
    [below, above].into_iter().flatten().collect()
}

/// Returns the greatest number that divides both; every number divides 0.
pub fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Returns a time in hours and minutes: `1 h 55 min`.
pub(crate) fn hours_and_minutes(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
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
    fn times_have_a_unit_or_are_seconds() {
        for (text, seconds) in [
            ("600", 600.0),
            ("90s", 90.0),
            ("10m", 600.0),
            ("10 M", 600.0),
            ("1.5h", 5400.0),
            ("2d", 172_800.0),
        ] {
            assert_eq!(parse_seconds(text), Some(seconds), "{text}");
        }
        for text in ["", "m", "-1", "-1m", "inf", "nan", "10 minutes", "1e999", "1e308d", "µ"] {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_written_short() {
        assert_eq!(format_count(15e12), "15T");
        assert_eq!(format_count(1.5e12), "1.5T");
        assert_eq!(format_count(8.2e12), "8.2T");
        assert_eq!(format_count(512.0), "512");
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
    fn days_are_whole_from_ten_on() {
        for (days, text) in
            [(0.5, "0.500"), (9.534, "9.53"), (9.997, "10"), (68.27, "68"), (1024.04, "1,024")]
        {
            assert_eq!(readable_days(days), text);
        }
    }

    #[test]
    fn short_times_are_hours_or_minutes() {
        let times = [60.0, 2.0, 1.99, 0.0834, 0.0197].map(duration);
        assert_eq!(times, ["60 days", "2.00 days", "48 hours", "2.00 hours", "28 minutes"]);
        assert_eq!([60.0, 0.5].map(below_days), ["60", "12 hours"]);
        // The ends have the unit of the middle.
        assert_eq!(duration_range(0.0197, (0.0163, 0.0231)), "23–33");
        assert_eq!(duration_range(1.9, (1.8, 2.1)), "43–50");
    }

    #[test]
    fn days_and_weeks_are_read() {
        let texts = [
            "60d",
            "60 days",
            "8w",
            " 8 Weeks ",
            "2mo",
            "2 months",
            "1.5",
            "0",
            "-3d",
            "soon",
            "2 years",
            "inf",
        ];
        let days = texts.map(parse_days);
        let read = [60.0, 60.0, 56.0, 56.0, 60.0, 60.0, 1.5].map(Some);
        assert_eq!(days[..7], read);
        assert!(days[7..].iter().all(Option::is_none));
    }

    #[test]
    fn a_range_begins_with_its_lower_end_and_both_are_as_precise() {
        assert_eq!(readable_range((147.2, 131.4), readable_days), "131–147");
        assert_eq!(readable_range((11.24, 12.96), readable), "11.2–13.0");
        assert_eq!(readable_range((7.6, 8.38), readable_days), "7.60–8.38");
        assert_eq!(readable_range((9.87, 10.9), readable_days), "9.87–11");
    }

    #[test]
    fn percentages_have_a_space_and_only_differences_a_sign() {
        assert_eq!(percent(0.443_49), "44.3 %");
        assert_eq!(percent(0.4), "40.0 %");
        assert_eq!(signed_percent(0.057), "+5.7 %");
        assert_eq!(signed_percent(-0.057), "−5.7 %");
        assert_eq!(signed_percent(-0.000_1), "0.0 %");
    }

    #[test]
    fn from_twice_as_much_on_a_difference_is_a_multiple() {
        let words = ["fewer", "more", "times as many", "as many"];
        let texts = [42.0, 99.7, 107.0, 199.0, 240.0].map(|one| difference(one, 100.0, words));
        assert_eq!(texts, ["58 % fewer", "as many", "7 % more", "99 % more", "2.4 times as many"]);
    }

    #[test]
    fn no_line_breaks_between_a_number_and_its_unit() {
        assert_eq!(days(59.6), "60\u{a0}days");
        assert_eq!(seconds(5.9), "5.90\u{a0}s");
        assert_eq!(short_seconds(0.1), "0.100\u{a0}s");
        assert_eq!([-0.31, -0.0124].map(short_seconds), ["−0.310\u{a0}s", "−12.4\u{a0}ms"]);
        assert_eq!([0.0124, 4e-5].map(short_seconds), ["12.4\u{a0}ms", "0.0400\u{a0}ms"]);
        assert_eq!(gib(128.77), "128.8\u{a0}GiB");
        assert_eq!(capacity(80.0), "80\u{a0}GiB");
        assert_eq!(gib(1234.5), "1,234.5\u{a0}GiB");
        assert_eq!([-0.04, -2.25, 0.0].map(one_decimal), ["0.0", "-2.2", "0.0"]);
    }

    #[test]
    fn nearest_values_lie_on_either_side() {
        assert_eq!(nearest_multiples(500, 128), [384, 512]);
        assert_eq!(nearest_multiples(5, 128), [128]);
        assert_eq!(nearest_divisors(7, 96), [6, 8]);
        assert_eq!(nearest_divisors(97, 96), [96]);
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
