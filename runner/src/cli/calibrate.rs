//! `trainplan calibrate`: the constants of the estimate, or one cluster's factor.

use super::output::{self, Format, FormatArg};
use super::{Failure, note, parse, side_by_side, validate};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use trainplan_shared::calibration::cluster::ClusterFactor;
use trainplan_shared::calibration::{By, Calibrator, Files, HeldOut, Summary};
use trainplan_shared::estimate::Estimate;
use trainplan_shared::measurements::{self, Measurement};

/// Fit the estimate's constants to measurements, or find one factor for your own cluster
///
/// Without files it fits the embedded measurements and comes to the embedded constants, bit for bit. With --cluster, logs,
/// results or a CSV of your own runs give the factor by which your cluster is slower than predicted, and how sure that is:
/// `trainplan estimate --cluster-factor` takes it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan calibrate --output /tmp/fit          # data files and accuracy report of the embedded measurements
  trainplan calibrate runs.csv --output /tmp/fit # of your own file, with the columns of measurements.csv
  trainplan calibrate --cluster results/         # one factor for your cluster")]
pub(super) struct Args {
    /// Measured runs to fit instead of the embedded ones; with --cluster, logs, results, folders or CSV files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Find one factor for a cluster
    #[arg(long, requires = "files")]
    cluster: bool,
    /// Folder for calibration.csv, anchors.csv, intervals.csv, accuracy.md and accuracy.svg
    #[arg(short, long, value_name = "DIR", conflicts_with = "cluster")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArg,
}

#[derive(Debug, Serialize)]
struct Output {
    rows: usize,
    /// Name to fitted value.
    constants: serde_json::Map<String, serde_json::Value>,
    /// Errors of rows that were held out, by how and by what.
    held_out: Vec<HeldOutBy>,
    files: Vec<PathBuf>,
}

#[derive(Debug, Serialize)]
struct HeldOutBy {
    held_out_by: &'static str,
    modelled: Option<Summary>,
    corrected: Option<Summary>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.cluster {
            return self.factor();
        }
        let own: Vec<Measurement>;
        let rows = match &self.files[..] {
            [] => measurements::embedded(),
            files => {
                own = files.iter().map(|file| validate::read(file)).collect::<Result<Vec<_>, _>>()?.concat();
                &own
            }
        };
        let calibrator = Calibrator::new(rows);
        if calibrator.is_empty() {
            let path = self.files.first().cloned().unwrap_or_default();
            let what =
                "holds no row with a step time that can be predicted; `trainplan validate` says why".into();
            return Err(Failure::Contents { path, what });
        }
        let values = calibrator.fit();
        let judged = By::ALL.map(|by| {
            let folds = calibrator.folds(by);
            side_by_side::map(&folds, |fold| calibrator.judge(fold, &values)).concat()
        });
        let files = calibrator.finish(&values, &judged, rows);
        let written = match &self.output {
            Some(folder) => write(folder, &files)?,
            None => Vec::new(),
        };
        let constants =
            calibrator.named(&values).map(|(name, value)| (name.to_string(), value.into())).collect();
        let held_out = By::ALL
            .into_iter()
            .zip(&judged)
            .map(|(by, rows)| {
                let of = |value: fn(&HeldOut<'_>) -> f64| {
                    Summary::of(rows.iter().map(|one| value(one) / one.step_time_s - 1.0))
                };
                HeldOutBy {
                    held_out_by: by.title(),
                    modelled: of(|one| one.modelled_s),
                    corrected: of(|one| one.anchored_s),
                }
            })
            .collect();
        let result = Output { rows: calibrator.len(), constants, held_out, files: written };
        match self.format.choose() {
            Format::Json => output::json(&result),
            Format::Csv => output::csv(
                ["name", "value"],
                result.constants.iter().map(|(name, value)| [name.clone(), value.to_string()]),
            ),
            Format::Table => table(&result),
        }
    }

    fn factor(self) -> Result<(), Failure> {
        let is_table = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "csv");
        let (tables, logs): (Vec<PathBuf>, Vec<PathBuf>) = self.files.iter().cloned().partition(is_table);
        let mut pairs = Vec::new();
        for table in &tables {
            for row in validate::read(table)? {
                match (&row.subject, row.step_time_s) {
                    (Ok(subject), Some(measured)) => {
                        pairs.push((measured, Estimate::from_embedded(&subject.inputs()).step_time_s.mid));
                    }
                    (Err(reason), _) => note(&format!("{}: {reason}", row.id)),
                    (_, None) => note(&format!("{}: no step time is given", row.id)),
                }
            }
        }
        if !logs.is_empty() {
            for report in parse::reports(&logs) {
                let measured = report.step_time_s.as_ref().map(|stat| stat.mean);
                match (measured, report.scenario.scenario()) {
                    (Some(measured), Ok(scenario)) => {
                        pairs.push((measured, Estimate::of(&scenario).step_time_s.mid));
                    }
                    (None, _) => note(&format!("{}: not scored", report.path)),
                    (_, Err(_)) => note(&format!("{}: nothing tells what it is a run of", report.path)),
                }
            }
        }
        let factor = ClusterFactor::of(&pairs).ok_or(Failure::NothingScored)?;
        if factor.outliers > 0 {
            note(&format!(
                "{} of {} runs lie far from the others and count little",
                factor.outliers, factor.n
            ));
        }
        if factor.is_doubtful() {
            note("a factor so far from 1 more likely means that the runs are not what they were taken for");
        }
        match self.format.choose() {
            Format::Json => output::json(&factor),
            Format::Csv => output::csv(
                ["factor", "low", "high", "n", "outliers"],
                [[factor.factor, factor.low, factor.high, factor.n as f64, factor.outliers as f64]
                    .map(|value| value.to_string())],
            ),
            Format::Table => output::text_line(&format!(
                "{:.3} ({:.3} to {:.3}, from {} runs): give estimates --cluster-factor {:.3}",
                factor.factor, factor.low, factor.high, factor.n, factor.factor
            )),
        }
    }
}

fn write(folder: &Path, files: &Files) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::File { path: folder.into(), error })?;
    let named = [
        ("calibration.csv", &files.constants),
        ("anchors.csv", &files.anchors),
        ("intervals.csv", &files.intervals),
        ("accuracy.md", &files.report),
        ("accuracy.svg", &files.scatter),
    ];
    named
        .into_iter()
        .map(|(name, text)| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| Failure::File { path: path.clone(), error })?;
            Ok(path)
        })
        .collect()
}

fn table(result: &Output) -> Result<(), Failure> {
    output::table(
        ["constant", "value"],
        &[1],
        result.constants.iter().map(|(name, value)| [name.clone(), value.to_string()]),
    )?;
    output::text_line(&format!("\n{} rows. Held out:\n", result.rows))?;
    let percent = |summary: &Option<Summary>| {
        summary.map_or("–".to_string(), |summary| format!("{:.2} %", summary.mape * 100.0))
    };
    output::table(
        ["by", "modelled", "corrected"],
        &[1, 2],
        result
            .held_out
            .iter()
            .map(|one| [one.held_out_by.to_string(), percent(&one.modelled), percent(&one.corrected)]),
    )?;
    for file in &result.files {
        output::text_line(&format!("wrote {}", file.display()))?;
    }
    Ok(())
}
