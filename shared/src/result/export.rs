//! Reports as rows, for spreadsheets and programs; and which files of a folder are worth reading.

use super::{FILE_ENDING, Report};
use crate::log::{Name, Role};

/// The endings of what training writes its log to, and of what we save.
const LOG_ENDINGS: [&str; 4] = [".out", ".log", ".txt", FILE_ENDING];

/// Whether a file of a folder looks like a log or a saved result. What someone names is read whatever it looks like.
#[must_use]
pub fn is_log_name(path: &str) -> bool {
    LOG_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// What a batch script printed is of no interest beside the training log of the same job.
#[must_use]
pub fn is_told_elsewhere(name: &Name, beside: &[Name]) -> bool {
    let of_same_job = |other: &Name| other.role == Role::Training && other.job_id == name.job_id;
    name.role == Role::Batch && beside.iter().any(of_same_job)
}

/// The columns of [`csv`].
const COLUMNS: [&str; 34] = [
    "path",
    "status",
    "reason",
    "format",
    "steps",
    "window",
    "step_time_s_mean",
    "step_time_s_std",
    "std_kind",
    "n",
    "tokens_per_s",
    "mfu",
    "convention",
    "peak_tflops",
    "model_tflops_per_gpu",
    "logged_tflops_per_gpu",
    "recipe",
    "published_step_time_s",
    "speed_percent",
    "comparable",
    "id",
    "parser_version",
    "logged_tflops_per_gpu_std",
    "not_comparable_because",
    "notes",
    "failures",
    "checkpoint_saves",
    "checkpoint_save_s",
    "checkpoint_loads",
    "checkpoint_load_s",
    "memory_peak_bytes",
    "loss_first",
    "loss_last",
    "global_batch_size",
];

/// Reports as CSV: a header, and as many cells in every row.
///
/// # Errors
/// None that memory does not give.
pub fn csv<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for report in reports {
        writer.write_record(cells(report))?;
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn cells(report: &Report) -> [String; COLUMNS.len()] {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let stat = report.step_time_s;
    let failures: Vec<&str> = report.failures.iter().map(|failure| failure.kind.what()).collect();
    [
        report.path.clone(),
        report.status.id().into(),
        text(&report.reason),
        report.format.map_or(String::new(), |format| format.name().into()),
        report.steps.to_string(),
        report.window.map_or(String::new(), |window| window.to_string()),
        number(stat.map(|stat| stat.mean)),
        number(stat.and_then(|stat| stat.std)),
        stat.map_or(String::new(), |stat| stat.std_kind.id().into()),
        stat.map_or(String::new(), |stat| stat.n.to_string()),
        number(report.tokens_per_s),
        number(report.mfu),
        report.convention.map_or(String::new(), |convention| convention.to_string()),
        number(report.peak_tflops),
        number(report.model_tflops_per_gpu),
        number(report.tflops_per_gpu.map(|stat| stat.mean)),
        text(&report.recipe),
        number(report.baseline.map(|baseline| baseline.step_time_s)),
        number(report.baseline.and_then(|baseline| baseline.speed_percent)),
        if report.comparable.yes { "yes" } else { "no" }.into(),
        text(&report.id),
        report.parser_version.to_string(),
        number(report.tflops_per_gpu.and_then(|stat| stat.std)),
        report.comparable.reasons.join("; "),
        report.notes.join("; "),
        failures.join("; "),
        report.checkpoint.saves.to_string(),
        number(report.checkpoint.save_s),
        report.checkpoint.loads.to_string(),
        number(report.checkpoint.load_s),
        number(report.memory.peak_bytes),
        number(report.loss.first),
        number(report.loss.last),
        report.global_batch_size.map_or(String::new(), |size| size.to_string()),
    ]
}
