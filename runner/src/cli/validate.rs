//! `trainplan validate`: measured runs against their prediction.

use super::output::{self, Format, FormatArg};
use super::{Failure, side_by_side};
use std::fs;
use std::path::{Path, PathBuf};
use trainplan_shared::calibration::Summary;
use trainplan_shared::calibration::validate::{Validation, Validator, summarize};
use trainplan_shared::measurements::{self, Measurement};

/// Predict every measured run of a file, and say how far off that is
///
/// The file is a CSV with the columns of shared/data/measurements.csv; columns may be missing where their cells would be
/// empty. A row is corrected by published runs nearby, never by one of the same mapping in any release; the error of the
/// physical model alone stands beside. The constants were fitted to the embedded measurements: figures of rows that the
/// fit has not seen are in docs/accuracy.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan validate runs.csv
  trainplan validate shared/data/measurements.csv --format csv > errors.csv

A row needs: model, gpu, precision, framework, gpus, seq_len, tp, pp, cp, gbs; and step_time_s or memory_gib to be judged.
layers, hidden, heads, ffn, vocab define or change the architecture. framework is a software stack as estimate --stack
takes it, or as measurements.csv names it.

Exit codes: 0 done; 1 a file can't be read; 2 it is no such table; 4 no row could be judged.")]
pub(super) struct Args {
    /// Measured runs
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,
    #[command(flatten)]
    format: FormatArg,
}

/// Reads a file of measurements.
pub(super) fn read(path: &Path) -> Result<Vec<Measurement>, Failure> {
    let text = fs::read(path).map_err(|error| Failure::File { path: path.into(), error })?;
    let wrong = |what: String| Failure::Contents { path: path.into(), what };
    let text = String::from_utf8(text).map_err(|_| wrong("is no text in UTF-8".into()))?;
    let rows = measurements::parse(&text).map_err(wrong)?;
    if rows.is_empty() {
        return Err(wrong("holds no rows under a header of columns".into()));
    }
    Ok(rows)
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let rows = read(&self.file)?;
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
    ];
    output::csv(header, rows)
}

fn table(validation: &Validation) -> Result<(), Failure> {
    let header = ["group", "", "n", "mean abs. error", "median", "p90", "bias", "modelled"];
    let numbers = [2, 3, 4, 5, 6, 7];
    let line = |group: &str, name: &str, summary: &Summary, modelled: Option<&Summary>| {
        let Summary { n, mape, median, p90, bias } = *summary;
        [
            group.to_string(),
            name.to_string(),
            n.to_string(),
            percent(mape),
            percent(median),
            percent(p90),
            percent(bias),
            modelled.map_or(String::new(), |modelled| percent(modelled.mape)),
        ]
    };
    let mut lines = Vec::new();
    if let Some(summary) = &validation.summary {
        lines.push(line("all", "", summary, validation.modelled.as_ref()));
    }
    if let Some(memory) = &validation.memory {
        lines.push(line("memory", "", memory, None));
    }
    for (by, groups) in &validation.by {
        for (name, group) in groups {
            lines.push(line(by, name, &group.predicted, Some(&group.modelled)));
        }
    }
    output::table(header, &numbers, lines)?;
    let reasons: Vec<[String; 2]> =
        validation.rows.iter().filter_map(|row| Some([row.id.clone(), row.reason.clone()?])).collect();
    if reasons.is_empty() {
        return Ok(());
    }
    output::text_line(&format!("\n{} rows could not be judged:\n", reasons.len()))?;
    output::table(["row", "reason"], &[], reasons)
}

fn percent(value: f64) -> String {
    format!("{:.2} %", value * 100.0)
}
