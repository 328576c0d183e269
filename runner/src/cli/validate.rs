//! `trainplan validate`: compares measured runs with their predictions.

use super::output::{self, Format, FormatArg};
use super::{Failure, stack_file};
use crate::side_by_side;
use std::fs;
use std::path::{Path, PathBuf};
use trainplan_shared::calibration::ErrorSummary;
use trainplan_shared::calibration::validate::{GroupErrors, ReasonCount, Validation, Validator, summarize};
use trainplan_shared::measurements::{self, Measurement};
use trainplan_shared::stack::Software;

/// Predict every measured run of a CSV file and show the errors
///
/// The file has the columns of shared/data/measurements.csv; you may leave out columns without values. Predictions are
/// corrected with similar published runs, but never with runs that differ only in the software release. The errors
/// of the physical model alone are shown too. Its constants were fitted to the embedded measurements;
/// docs/accuracy.md has the errors on rows that were not used for the fit.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan validate runs.csv
  trainplan validate shared/data/measurements.csv --format csv > errors.csv
  trainplan validate runs.csv --stack ours.stack.toml

Required columns: model, gpu, precision, framework, gpus, seq_len, tp, pp, cp, gbs, and step_time_s or memory_gib.
The columns layers, hidden, heads, ffn and vocab define or change the architecture. framework is a value of --stack, a name
from measurements.csv, or own for the software that --stack describes.

Exit codes: 0 success; 1 the file can't be read; 2 the file is invalid; 4 no row could be compared.")]
pub(super) struct Args {
    /// File of measured runs
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,
    /// Software of rows whose framework is own: a value of --stack, or a file (docs/stacks.md)
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
    #[command(flatten)]
    format: FormatArg,
}

/// Reads a file of measured runs. `own` is the software of rows whose framework is `own`.
pub(super) fn read(path: &Path, own: Option<Software>) -> Result<Vec<Measurement>, Failure> {
    let text = fs::read(path).map_err(|error| Failure::File { path: path.into(), error })?;
    let wrong = |what: String| Failure::Contents { path: path.into(), what };
    let text = String::from_utf8(text).map_err(|_| wrong("The file is not UTF-8 text.".into()))?;
    let rows = measurements::parse(&text, own).map_err(wrong)?;
    if rows.is_empty() {
        return Err(wrong("The file has no rows below a header.".into()));
    }
    Ok(rows)
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let own = self.stack.as_deref().map(stack_file::software).transpose()?;
        let rows = read(&self.file, own)?;
        let validator = Validator::default();
        let validated = side_by_side::map(&rows, |row| validator.row(row));
        let validation = summarize(&rows, validated);
        match self.format.choose() {
            Format::Json => output::json(&validation)?,
            Format::Csv => csv(&validation)?,
            Format::Table => table(&validation)?,
        }
        match (&validation.summary, &validation.memory) {
            (None, None) => Err(Failure::NothingScored),
            _ => Ok(()),
        }
    }
}

fn csv(validation: &Validation) -> Result<(), Failure> {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let rows = validation.rows.iter().map(|row| {
        [
            row.id.clone(),
            number(row.step_time_s),
            number(row.predicted_s),
            number(row.error),
            number(row.modelled_s),
            number(row.modelled_error),
            number(row.memory_bytes),
            number(row.predicted_memory_bytes),
            number(row.memory_error),
            row.reason.clone().unwrap_or_default(),
            number(row.low_s),
            number(row.high_s),
        ]
    });
    let header = [
        "id",
        "step_time_s",
        "predicted_s",
        "error",
        "modelled_s",
        "modelled_error",
        "memory_bytes",
        "predicted_memory_bytes",
        "memory_error",
        "reason",
        "low_s",
        "high_s",
    ];
    output::csv(header, rows)
}

fn table(validation: &Validation) -> Result<(), Failure> {
    let header =
        ["group", "", "n", "mean abs. error", "median", "p90", "bias", "model alone", "in 80 % interval"];
    let numbers = [2, 3, 4, 5, 6, 7, 8];
    let line = |group: &str,
                name: &str,
                summary: &ErrorSummary,
                modelled: Option<&ErrorSummary>,
                coverage: Option<f64>| {
        let ErrorSummary { n, mape, median, p90, bias } = *summary;
        [
            group.to_string(),
            name.to_string(),
            n.to_string(),
            percent(mape),
            percent(median),
            percent(p90),
            percent(bias),
            modelled.map_or(String::new(), |modelled| percent(modelled.mape)),
            coverage.map_or(String::new(), percent),
        ]
    };
    let mut lines = Vec::new();
    if let Some(summary) = &validation.summary {
        lines.push(line("all", "", summary, validation.modelled.as_ref(), validation.coverage));
    }
    if let Some(memory) = &validation.memory {
        lines.push(line("memory", "", memory, None, None));
    }
    for (by, groups) in &validation.by {
        for (name, group) in groups {
            let GroupErrors { predicted, modelled, coverage } = group;
            lines.push(line(by, name, predicted, Some(modelled), Some(*coverage)));
        }
    }
    output::table(header, &numbers, lines)?;
    let all: usize = validation.reasons.iter().map(|reason| reason.n).sum();
    if all == 0 {
        return Ok(());
    }
    let rows = if all == 1 { "row" } else { "rows" };
    output::text_line(&format!("\n{all} {rows} could not be compared:\n"))?;
    let reasons = validation
        .reasons
        .iter()
        .map(|ReasonCount { reason, n, first }| [n.to_string(), first.clone(), reason.clone()]);
    output::table(["rows", "first", "reason"], &[0], reasons.collect::<Vec<_>>())
}

fn percent(value: f64) -> String {
    format!("{:.2} %", value * 100.0)
}
