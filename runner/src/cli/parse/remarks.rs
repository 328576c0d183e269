//! Notes on a report beyond its row of the table.

use super::super::output::printable;
use trainplan_shared::log::Status;
use trainplan_shared::result::{Report, Slowdown};

/// Returns why a log was not scored or is not comparable, what could explain that it is slower than predicted, and its notes.
pub(in crate::cli) fn remarks(report: &Report) -> Vec<String> {
    // For a log that was not scored, the status reason is enough.
    let reasons = report.comparable.reasons.iter().filter(|_| report.status == Status::Scored);
    let reasons = reasons.map(|reason| format!("not comparable: {reason}"));
    let slowdown = report.slowdown.as_ref().map(Slowdown::sentence);
    let remarks = report.reason.iter().cloned().chain(reasons).chain(slowdown);
    remarks.chain(report.notes.iter().cloned()).map(|remark| printable(&remark)).collect()
}
