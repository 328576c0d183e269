//! A deadline that is a date. This crate has no clock: who knows today's date turns the deadline into days.

use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::spec::Spec;
use crate::units::parse_days;
use crate::words::words;

/// Returns the typed deadline if it is meant as a date: `2027-03-01`.
pub fn date_of(typed: &Spec) -> Option<&str> {
    typed.get(Field::Deadline).filter(|text| {
        let year = text.split_once('-').map_or("", |(year, _)| year);
        year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns the spec with the days from `today` in place of a date. `today` is the user's local date, such as
/// `2026-11-28`.
///
/// # Errors
/// The date does not exist, is not after today, or is further away than any deadline may be.
pub fn with_days(spec: Spec, today: &str) -> Result<Spec, Problem> {
    let Some(text) = date_of(&spec) else { return Ok(spec) };
    let bounds = Field::Deadline.bounds();
    let days = day_number(text).zip(day_number(today)).map(|(date, today)| format!("{}d", date - today));
    match days.filter(|days| bounds.number(days, parse_days).is_some()) {
        Some(days) => Ok(spec.with(Field::Deadline, days)),
        None => {
            let message = words!(
                " must be a date from 1d to {} after today, {today}, or a time such as 60d, not \"{text}\".",
                bounds.most
            );
            Err(Problem::new(Field::Deadline, text, message![Field::Deadline, message]))
        }
    }
}

/// Returns the number of a date's day, counted from the same day for all dates; none if the date does not exist.
fn day_number(date: &str) -> Option<i32> {
    let is_shaped = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    if date.len() != 10 || !date.bytes().enumerate().all(is_shaped) {
        return None;
    }
    let number = |digits: &str| digits.bytes().fold(0, |number, digit| number * 10 + i32::from(digit - b'0'));
    let (year, month, day) = (number(&date[..4]), number(&date[5..7]), number(&date[8..]));
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=12).contains(&month) || !(1..=last).contains(&day) {
        return None;
    }
    // From March on, the months before this one have (153 × their number + 2) / 5 days, and a leap day ends its year.
    let (year, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * months + 2) / 5 + day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline(text: &str) -> Result<String, String> {
        let spec = Spec::default().with(Field::Deadline, text);
        let read = with_days(spec, "2026-11-28").map_err(|problem| problem.to_string())?;
        Ok(read.raw(Field::Deadline).to_owned())
    }

    #[test]
    fn a_date_is_days_from_today() {
        assert_eq!(deadline("2026-11-29").unwrap(), "1d");
        assert_eq!(deadline(" 2027-03-01 ").unwrap(), "93d");
        assert_eq!(deadline("2028-03-01").unwrap(), "459d");
        // A time is left as typed, and so is what the question refuses.
        for text in ["60d", "8w", "soon", "-5d", "1e9d"] {
            assert_eq!(deadline(text).unwrap(), text);
        }
    }

    #[test]
    fn a_date_that_cannot_be_met_is_refused_with_the_range() {
        for text in [
            "2026-11-28",
            "2020-01-01",
            "2027-02-29",
            "2027-04-31",
            "2027-13-01",
            "2027-3",
            "2027-03-é",
            "9999-01-01",
        ] {
            let said = format!(
                "--deadline must be a date from 1d to 3650d after today, 2026-11-28, or a time such as 60d, not \"{text}\"."
            );
            assert_eq!(deadline(text), Err(said));
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let lengths =
            |year: i32| [31, if year % 4 == 0 { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let dates = (2001..2100).flat_map(|year| {
            let months = lengths(year).into_iter().enumerate();
            months.flat_map(move |(month, last)| {
                (1..=last).map(move |day| format!("{year}-{:02}-{day:02}", month + 1))
            })
        });
        let first = day_number("2001-01-01").unwrap();
        for (days, date) in dates.enumerate() {
            assert_eq!(day_number(&date), Some(first + i32::try_from(days).unwrap()), "{date}");
        }
        // A century is a leap year only every 400 years.
        assert_eq!((day_number("2100-02-29"), day_number("2000-02-29").is_some()), (None, true));
    }
}
