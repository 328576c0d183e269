//! Times in the lines of a log, such as `2025-12-19 10:49:15` and `2025-12-19T10:49:15`. They have no time zone.

use std::ops::Range;

/// The length of a time.
const LENGTH: usize = "2025-12-19 10:49:15".len();

/// The signs between the numbers of a time, by their places.
const SEPARATORS: [(usize, &[u8]); 5] = [(4, b"-"), (7, b"-"), (10, b" T"), (13, b":"), (16, b":")];

const DAY_S: i64 = 86_400;

/// Returns the first time in a text, in seconds since 1970 by the clock that wrote it.
pub(crate) fn time(text: &[u8]) -> Option<i64> {
    text.windows(LENGTH).find_map(read)
}

/// Returns the time that a text of its length is.
fn read(text: &[u8]) -> Option<i64> {
    if !SEPARATORS.iter().all(|(place, signs)| text.get(*place).is_some_and(|sign| signs.contains(sign))) {
        return None;
    }
    let number = |places: Range<usize>| {
        let digits = text.get(places).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        Some(digits.iter().fold(0, |number, digit| 10 * number + i64::from(digit - b'0')))
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let is_time =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    is_time.then(|| DAY_S * days(year, month, day) + 3600 * hour + 60 * minute + second)
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // A year that starts in March ends with its leap day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_lines() {
        let at = |text: &str| time(text.as_bytes());
        assert_eq!(at("1970-01-01 00:00:00"), Some(0));
        assert_eq!(at(" [2025-12-19 10:49:15.123456] iteration"), Some(1_766_141_355));
        assert_eq!(at("CANCELLED AT 2026-11-20T12:00:20 DUE TO TIME LIMIT"), Some(1_795_176_020));
        let leap = at("2024-03-01 00:00:00").zip(at("2024-02-28 00:00:00"));
        assert_eq!(leap.map(|(later, earlier)| later - earlier), Some(2 * DAY_S));
        for text in ["", "2025-12-19", "2025-13-19 10:49:15", "2025-12-19 25:49:15", "2025-12-1x 10:49:15"] {
            assert_eq!(at(text), None, "{text}");
        }
    }
}
