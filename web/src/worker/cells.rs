//! Figures of runs as people read them, wherever they stand.

use crate::message::Cell;
use trainplan_shared::estimate::Interval;
use trainplan_shared::flops::Convention;
use trainplan_shared::log::Stat;
use trainplan_shared::result::{Against, AgainstPlan};
pub(super) use trainplan_shared::units::minute;
use trainplan_shared::units::{group_digits, significant};
use web_sys::js_sys::Date;

pub(super) fn cell(text: Option<String>, more: Option<String>) -> Cell {
    Cell { text: text.unwrap_or_default(), more: more.unwrap_or_default() }
}

/// Seconds per step, and how far its steps lie apart.
pub(super) fn step_time(stat: Option<Stat>) -> Cell {
    let of_several = stat.filter(|stat| stat.n > 1);
    let text = stat.map(|stat| {
        let std = of_several.and_then(|stat| stat.std);
        let spread = std.map_or(String::new(), |std| format!(" ± {}", significant(std, 2)));
        format!("{}{spread}", significant(stat.mean, 5))
    });
    cell(text, of_several.map(|stat| format!("{} std", stat.std_kind.id())))
}

pub(super) fn tokens(per_s: Option<f64>) -> Cell {
    cell(per_s.map(group_digits), None)
}

/// The utilization in percent, never without how it is counted.
pub(super) fn mfu(mfu: Option<f64>, convention: Option<Convention>, peak_tflops: Option<f64>) -> Cell {
    let peak = peak_tflops.map_or(String::new(), |peak| format!(" of {} TFLOPS", group_digits(peak)));
    let counted = convention.filter(|_| mfu.is_some()).map(|convention| format!("{convention}{peak}"));
    cell(mfu.map(|mfu| format!("{:.2}", mfu * 100.0)), counted)
}

/// The speed in percent of the published one.
pub(super) fn published(baseline: Option<Against>) -> Cell {
    let percent = baseline.and_then(|baseline| baseline.speed_percent);
    cell(percent.map(|percent| format!("{percent:.1}")), None)
}

/// What was predicted, and how far off that was.
pub(super) fn planned(plan: Option<AgainstPlan>) -> Cell {
    let seconds = |seconds| significant(seconds, 4);
    let text = plan.map(|AgainstPlan { step_time_s: Interval { low, mid, high }, .. }| {
        format!("{} ({} to {})", seconds(mid), seconds(low), seconds(high))
    });
    cell(text, plan.map(off))
}

/// How far a run was off its plan.
pub(super) fn off(plan: AgainstPlan) -> String {
    match plan.error {
        Some(error) => {
            format!("took {:.1} % {}", error.abs() * 100.0, if error < 0.0 { "less" } else { "more" })
        }
        None => "not scored".into(),
    }
}

/// What a run is called that was carried out: its name tells more than that of its log.
pub(super) fn title(campaign: &str, run: &str, repeat: u32, cluster: &str) -> String {
    let repeat = if repeat > 1 { format!(" #{repeat}") } else { String::new() };
    format!("{campaign}/{run} on {cluster}{repeat}")
}

/// How long ago a time of the server's is, as people say it.
pub(super) fn ago(rfc3339: &str) -> String {
    let minutes = (Date::now() - Date::parse(rfc3339)) / 60_000.0;
    match minutes {
        ..1.0 => "just now".into(),
        ..60.0 => format!("{minutes:.0} min ago"),
        _ => format!("{:.0} h ago", minutes / 60.0),
    }
}
