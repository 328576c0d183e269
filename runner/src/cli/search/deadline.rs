//! A deadline that is a date. Shared code has no clock, so it is turned into days here.

use jiff::civil::Date;
use trainplan_shared::field::Field;
use trainplan_shared::message;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;
use trainplan_shared::units::parse_days;

/// Returns the typed deadline if it is meant as a date: `2027-03-01`.
pub(super) fn date_of(typed: &Spec) -> Option<&str> {
    typed.get(Field::Deadline).filter(|text| {
        let year = text.split_once('-').map_or("", |(year, _)| year);
        year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns the spec with the days from today in place of a date.
///
/// # Errors
/// The date does not exist, is not after today, or is further away than any deadline may be.
pub(super) fn with_days(spec: Spec, today: Date) -> Result<Spec, Problem> {
    let Some(text) = date_of(&spec) else { return Ok(spec) };
    let bounds = Field::Deadline.bounds();
    let days = text.parse::<Date>().ok().map(|date| {
        // Both are whole days, and dates have no daylight saving time.
        format!("{}d", today.duration_until(date).as_hours() / 24)
    });
    match days.filter(|days| bounds.number(days, parse_days).is_some()) {
        Some(days) => Ok(spec.with(Field::Deadline, days)),
        None => {
            let message = format!(
                " must be a date from 1d to {} after today, {today}, or a time such as 60d, not \"{text}\".",
                bounds.most
            );
            Err(Problem::new(Field::Deadline, text, message![Field::Deadline, message]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn deadline(text: &str) -> Result<String, String> {
        let spec = Spec::default().with(Field::Deadline, text);
        let read = with_days(spec, date(2026, 11, 28)).map_err(|problem| problem.to_string())?;
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
        for text in ["2026-11-28", "2020-01-01", "2027-02-30", "2027-3", "9999-01-01"] {
            let said = format!(
                "--deadline must be a date from 1d to 3650d after today, 2026-11-28, or a time such as 60d, not \"{text}\"."
            );
            assert_eq!(deadline(text), Err(said));
        }
    }
}
