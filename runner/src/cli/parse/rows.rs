//! Reports for people: a few columns, and beneath them what to know of each.

use super::super::output::printable;
use trainplan_shared::log::{Stat, Status};
use trainplan_shared::result::Report;
use trainplan_shared::units::{group_digits, significant};

pub(super) const TABLE_HEADER: [&str; 10] =
    ["status", "window", "step s", "std", "tokens/s", "MFU %", "counted by", "published %", "recipe", "log"];

/// The columns of the table that hold numbers.
pub(super) const NUMBERS: [usize; 5] = [2, 3, 4, 5, 7];

pub(super) fn table_row(report: &Report) -> [String; 10] {
    let number = |value: Option<f64>, shown: fn(f64) -> String| value.map_or("–".into(), shown);
    let text = |text: Option<String>| text.unwrap_or("–".into());
    let step = report.step_time_s;
    let counted = match (report.convention, report.peak_tflops) {
        (Some(convention), Some(peak)) => Some(format!("{convention}, peak {peak}")),
        _ => None,
    };
    [
        report.status.id().into(),
        text(report.window.map(|window| window.to_string())),
        number(step.map(|step| step.mean), |mean| significant(mean, 5)),
        text(step.filter(|step| step.n > 1).and_then(deviation)),
        number(report.tokens_per_s, group_digits),
        number(report.mfu, |mfu| format!("{:.2}", mfu * 100.0)),
        text(counted),
        number(report.baseline.and_then(|baseline| baseline.speed_percent), |percent| {
            format!("{percent:.1}")
        }),
        text(report.recipe.clone()),
        printable(&report.path),
    ]
}

/// A standard deviation, and which of the two it is.
fn deviation(stat: Stat) -> Option<String> {
    Some(format!("{} {}", significant(stat.std?, 2), stat.std_kind.id()))
}

/// What to know of a report beyond its row of the table.
pub(in crate::cli) fn remarks(report: &Report) -> Vec<String> {
    // Of what was not scored the reason says enough.
    let reasons = report.comparable.reasons.iter().filter(|_| report.status == Status::Scored);
    let reasons = reasons.map(|reason| format!("not comparable: {reason}"));
    let remarks = report.reason.iter().cloned().chain(reasons).chain(report.notes.iter().cloned());
    remarks.map(|remark| printable(&remark)).collect()
}
