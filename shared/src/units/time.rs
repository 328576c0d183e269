//! Times: seconds and days that people write, and days, hours and minutes for them to read.

use super::digits::{group_digits, readable, readable_range};
use crate::decimal::parse_decimal;

/// Seconds in an hour.
pub(crate) const HOUR_S: f64 = 3600.0;
/// Seconds in a day.
pub const DAY_S: f64 = 86_400.0;

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

/// Returns a number of days for people to read: whole days from 10 on, three significant digits below:
/// `9.50`, `139`.
pub fn readable_days(days: f64) -> String {
    if days >= 9.995 { group_digits(days) } else { readable(days) }
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

/// Returns a time in hours and minutes: `1 h 55 min`.
pub(crate) fn hours_and_minutes(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// Returns a time to the minute, `2026-11-21 16:15 UTC`; a text that is not RFC 3339 in UTC is returned
/// unchanged.
pub fn minute(rfc3339: &str) -> String {
    match (rfc3339.get(..16), rfc3339.ends_with('Z')) {
        (Some(minute), true) => format!("{} UTC", minute.replace('T', " ")),
        _ => rfc3339.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn no_line_breaks_between_days_and_their_unit() {
        assert_eq!(days(59.6), "60\u{a0}days");
    }
}
