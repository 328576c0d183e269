//! Questions whose deadline may be a date: the browser has the clock that the shared code lacks.

use trainplan_shared::deadline::{date_of, with_days};
use trainplan_shared::problem::Problem;
use trainplan_shared::question::Question;
use trainplan_shared::spec::Spec;
use web_sys::js_sys::Date;

/// Reads a question with the days from today in place of a date.
pub(crate) fn question(spec: Spec) -> Result<Question, Vec<Problem>> {
    from_today(spec).map_err(|problem| vec![problem])?.question()
}

/// Returns the spec with the days from today in place of a date.
pub(crate) fn from_today(spec: Spec) -> Result<Spec, Problem> {
    if date_of(&spec).is_none() {
        return Ok(spec);
    }
    with_days(spec, &today())
}

/// Returns today's local date, as the terminal does: `2027-03-01`.
pub(crate) fn today() -> String {
    let now = Date::new_0();
    // A time that is as far from UTC as the local time is, since only UTC is written as a date.
    now.set_time(now.get_time() - 60e3 * now.get_timezone_offset());
    String::from(now.to_iso_string()).chars().take(10).collect()
}
