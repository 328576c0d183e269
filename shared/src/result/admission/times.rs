//! The times that a result may have.

/// What a time must be.
pub(crate) const TIME: &str =
    "must be a time (RFC 3339) from 1970 to 2199 in UTC, such as 2026-11-21T12:00:00Z";

/// Returns whether a text is a time in RFC 3339, of a year from 1970 to 2199 in UTC.
pub(crate) fn is_time(text: &str) -> bool {
    let has_form = |text: &str, form: &str| {
        let is_like =
            |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
        text.len() == form.len() && text.bytes().zip(form.bytes()).all(is_like)
    };
    let (Some(time), Some(rest)) = (text.get(..19), text.get(19..)) else { return false };
    if !has_form(time, "0000-00-00T00:00:00") {
        return false;
    }
    let number = |text: Option<&str>| text.and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(u32::MAX);
    let (year, month, day) = (number(time.get(..4)), number(time.get(5..7)), number(time.get(8..10)));
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    let (hour, minute) = (number(time.get(11..13)), number(time.get(14..16)));
    let is_clock = hour < 24 && minute < 60 && number(time.get(17..)) <= 60;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() { "" } else { zone }
        }
        None => rest,
    };
    let (hours, minutes) = match zone {
        "Z" => (0, 0),
        _ if has_form(zone, "+00:00") || has_form(zone, "-00:00") => {
            (number(zone.get(1..3)), number(zone.get(4..)))
        }
        _ => return false,
    };
    let is_zone = hours < 24 && minutes < 60;
    // A zone differs from UTC by less than a day, so only the first and the last day of a year can be in another one.
    let (since_midnight, offset) = (60 * hour + minute, 60 * hours + minutes);
    let utc_year = match (month, day) {
        (1, 1) if zone.starts_with('+') && since_midnight < offset => year.saturating_sub(1),
        (12, 31) if zone.starts_with('-') && since_midnight + offset >= 24 * 60 => year + 1,
        _ => year,
    };
    (1970..2200).contains(&utc_year) && (1..=days).contains(&day) && is_clock && is_zone
}
