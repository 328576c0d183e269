//! `trainplan calibrate`: fits the constants of the estimate, or the factors of one cluster.

use super::output::{self, Format, FormatArg};
use super::parse::{self, FileReport};
use super::{Failure, note, stack_file, validate};
use crate::side_by_side;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use trainplan_shared::benchmarks;
use trainplan_shared::calibration::cluster::{
    ClusterFit, ClusterRun, FittedFactor, JudgedRun, MACHINE_SPREAD,
};
use trainplan_shared::calibration::{
    CalibrationFiles, Calibrator, ErrorSummary, Grouping, HeldOutErrors, HeldOutRow,
};
use trainplan_shared::estimate::{Anchors, Constants, Distance};
use trainplan_shared::field::Field;
use trainplan_shared::log::{Status, Window};
use trainplan_shared::measurements::{self, Measurement};
use trainplan_shared::message::Front;
use trainplan_shared::problem::{Problem, all_of};
use trainplan_shared::range::ValueRange;
use trainplan_shared::result::{Report, View, sentence};
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;
use trainplan_shared::units::significant;

/// Fit the estimate to measured runs, or compute correction factors for your cluster
///
/// Without files, it fits the embedded measurements and reproduces the embedded constants bit for bit. With
/// --cluster, it compares your own runs with their predictions. From this it computes factors for
/// --cluster-factor: for the whole step time, the host, the network and its latency, matrix multiplications and a
/// step's fixed time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan calibrate --output /tmp/fit            # fit the embedded measurements, write data files and report
  trainplan calibrate runs.csv --output /tmp/fit   # fit your own file (columns of measurements.csv)
  trainplan calibrate --cluster results/           # compute the factors of your cluster
  trainplan calibrate --cluster logs/ --gpu h100   # from logs that don't name the GPU type")]
pub(super) struct Args {
    /// CSV files to fit instead of the embedded measurements. With --cluster: the CSV files, logs, results or
    /// folders of your runs
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compute the factors of your cluster instead, for --cluster-factor
    #[arg(long, requires = "files")]
    cluster: bool,
    /// Folder for the constants, the corrections, the intervals, the held-out errors, the regret of searches and the
    /// report. If you give no FILE, benchmarks.csv and best_measured.csv are written too
    #[arg(short, long, value_name = "DIR", conflicts_with = "cluster")]
    output: Option<PathBuf>,
    /// Software of rows whose framework is own: a value of --stack, or a file (docs/stacks.md)
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
    /// GPU type of logs that don't name it, with --cluster (`trainplan gpus` lists all)
    #[arg(long, value_name = "GPU", requires = "cluster")]
    gpu: Option<String>,
    /// The steps to score in logs and results, with --cluster: last (the last step), or a range of the log's step
    /// numbers such as 35-44 [default: the steps that the release prescribes, or if these are fewer than 5, all after the
    /// warm-up]
    #[arg(long, value_name = "WINDOW", requires = "cluster")]
    window: Option<Window>,
    #[command(flatten)]
    format: FormatArg,
}

#[derive(Debug, Serialize)]
struct Output {
    rows: usize,
    /// Fitted values by name.
    constants: serde_json::Map<String, serde_json::Value>,
    /// Errors of held-out rows, by grouping.
    held_out: Vec<ErrorGroup>,
    files: Vec<PathBuf>,
}

#[derive(Debug, Serialize)]
struct ErrorGroup {
    held_out_by: &'static str,
    modelled: Option<ErrorSummary>,
    corrected: Option<ErrorSummary>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.cluster {
            return self.cluster();
        }
        let software = self.stack.as_deref().map(stack_file::software).transpose()?;
        let own: Vec<Measurement>;
        let rows = match &self.files[..] {
            [] => measurements::embedded(),
            files => {
                own = files
                    .iter()
                    .map(|file| validate::read(file, software))
                    .collect::<Result<Vec<_>, _>>()?
                    .concat();
                &own
            }
        };
        let calibrator = Calibrator::new(rows);
        if calibrator.is_empty() {
            let path = self.files.first().cloned().unwrap_or_default();
            let what =
                "No row with a step time can be predicted. `trainplan validate` shows the reasons.".into();
            return Err(Failure::Contents { path, what });
        }
        let values = calibrator.fit();
        let judged = Grouping::ALL.map(|by| {
            let folds = calibrator.folds(by);
            side_by_side::map(&folds, |fold| calibrator.judge(fold, &values)).concat()
        });
        let distant = Distance::ALL.map(|distance| {
            let folds = calibrator.distant_folds(distance);
            side_by_side::map(&folds, |fold| (fold.name.clone(), calibrator.judge(fold, &values)))
        });
        let files = calibrator.finish(&values, &judged, &distant, rows);
        let mut written = match &self.output {
            Some(folder) => write(folder, &files)?,
            None => Vec::new(),
        };
        // The other files describe any rows; these list the embedded ones.
        if let (Some(folder), true) = (&self.output, self.files.is_empty()) {
            let lists = [
                ("benchmarks.csv", benchmarks::file::write(&HeldOutErrors::of(&judged))),
                ("best_measured.csv", benchmarks::file::write_best()),
            ];
            for (name, text) in lists {
                let path = folder.join(name);
                fs::write(&path, text).map_err(|error| Failure::File { path: path.clone(), error })?;
                written.push(path);
            }
        }
        let constants =
            calibrator.named(&values).map(|(name, value)| (name.to_string(), value.into())).collect();
        let held_out = Grouping::ALL
            .into_iter()
            .zip(&judged)
            .map(|(by, rows)| {
                let of = |value: fn(&HeldOutRow<'_>) -> f64| {
                    ErrorSummary::of(rows.iter().map(|one| value(one) / one.step_time_s - 1.0))
                };
                ErrorGroup {
                    held_out_by: by.title(),
                    modelled: of(|one| one.modelled_s),
                    corrected: of(|one| one.corrected_s),
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

    fn cluster(self) -> Result<(), Failure> {
        let is_table = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "csv");
        let (tables, logs): (Vec<PathBuf>, Vec<PathBuf>) = self.files.iter().cloned().partition(is_table);
        let software = self.stack.as_deref().map(stack_file::software).transpose()?;
        let tables =
            tables.iter().map(|table| validate::read(table, software)).collect::<Result<Vec<_>, _>>()?;
        let mut runs = Vec::new();
        for row in tables.iter().flatten() {
            match (&row.scenario, row.step_time_s) {
                (Ok(scenario), Some(step_time_s)) => {
                    runs.push(ClusterRun { name: &row.id, inputs: scenario.inputs(), step_time_s });
                }
                (Err(reason), _) => note(&format!("{}: {reason}", row.id)),
                (_, None) => note(&format!("{}: step_time_s is missing.", row.id)),
            }
        }
        let said = Spec::default().with(Field::Gpu, self.gpu.as_deref().unwrap_or_default());
        let view = View::of(said, self.window)?;
        let read = if logs.is_empty() { Vec::new() } else { parse::reports(&logs, &view) };
        let all = read.len();
        let reports = distinct(read);
        match all - reports.len() {
            0 => {}
            1 => note(&format!(
                "1 of {all} logs and saved results belongs to the same run as another. The run counts once."
            )),
            same => note(&format!(
                "{same} of {all} logs and saved results belong to the same runs as others. Each run counts once."
            )),
        }
        let mut scored: Vec<(&str, Scenario, f64)> = Vec::new();
        let mut left_out: BTreeMap<&str, usize> = BTreeMap::new();
        for report in &reports {
            match usable(report) {
                Ok((scenario, step_time_s)) => scored.push((report.path.as_str(), scenario, step_time_s)),
                Err((kind, why)) => {
                    note(&format!("{}: {why}", report.path));
                    *left_out.entry(kind).or_default() += 1;
                }
            }
        }
        if !left_out.is_empty() {
            let kinds = left_out.iter().map(|(kind, count)| match reports.len() {
                1 => (*kind).to_owned(),
                _ => format!("{count} {kind}"),
            });
            let kinds: Vec<String> = kinds.collect();
            let logs = match (reports.len() - scored.len(), reports.len()) {
                (_, 1) => "The log was".to_owned(),
                (1, all) => format!("1 of {all} logs was"),
                (count, all) => format!("{count} of {all} logs were"),
            };
            note(&format!("{logs} left out: {}.", kinds.join(", ")));
        }
        runs.extend(scored.iter().map(|(name, scenario, step_time_s)| ClusterRun {
            name,
            inputs: scenario.inputs(),
            step_time_s: *step_time_s,
        }));
        let mut fit = ClusterFit::of(&runs, Constants::embedded(), Anchors::embedded()).ok_or(
            Failure::NothingJudged("No run could be compared with its prediction. The notes say why."),
        )?;
        // Saved results are read in the order of their file names, which are ids.
        fit.runs.sort_by(|one, other| one.name.cmp(&other.name));
        if fit.is_doubtful() {
            note(&format!(
                "{} of {} runs are far from their predictions. Before you use any factors, check the model, GPUs, layout, \
                 software (--stack) and step time of these runs, and whether something disturbed them.",
                fit.outliers, fit.n
            ));
        } else if fit.outliers > 0 {
            note(&format!("{} of {} runs are outliers and have little influence.", fit.outliers, fit.n));
        }
        match self.format.choose() {
            Format::Json => output::json(&fit),
            Format::Csv => output::csv(
                ["factor", "value", "low", "high"],
                fit.factors.iter().map(|FittedFactor { factor, value, interval }| {
                    let end = |end: fn(&ValueRange) -> f64| {
                        interval.as_ref().map_or(String::new(), |range| end(range).to_string())
                    };
                    [factor.to_string(), value.to_string(), end(|range| range.low), end(|range| range.high)]
                }),
            ),
            Format::Table => cluster_table(&fit),
        }
    }
}

/// Returns one report for each run. If both its log and a saved result were read, returns the usable one. If both are usable,
/// the saved one wins, because a user may have set parts of its scenario.
fn distinct(mut read: Vec<FileReport>) -> Vec<Report> {
    read.sort_by_cached_key(|one| (usable(&one.report).is_err(), !one.is_saved));
    // Both are compared: a campaign's result has its own id, and an id may belong to a log that has grown since.
    let (mut ids, mut hashes) = (BTreeSet::new(), BTreeSet::new());
    read.retain(|FileReport { report, sha256, .. }| {
        // A log without an id has no data. Such logs may be equal and yet of different runs.
        let Some(id) = &report.id else { return true };
        let is_new_id = ids.insert(id.clone());
        let is_new_log = hashes.insert(sha256.clone());
        is_new_id && is_new_log
    });
    read.into_iter().map(|one| one.report).collect()
}

/// Returns the scenario of a run, and the seconds per step by which it is judged. Only a scored run can show how its
/// cluster differs from the estimate. Otherwise returns in a word or two why not, and a sentence that says so.
fn usable(report: &Report) -> Result<(Scenario, f64), (&'static str, String)> {
    if report.status != Status::Scored {
        let status = report.status.title();
        let reason = report.reason.as_deref().map_or_else(String::new, |why| format!(" {}", sentence(why)));
        return Err((status, format!("The run was left out, because its status is {status}.{reason}")));
    }
    match (report.scenario.scenario(), report.judged_s) {
        (Ok(scenario), Some(step_time_s)) => Ok((scenario, step_time_s)),
        (Err(problems), _) => Err(unknown(&problems)),
        (_, None) => {
            Err(("no step time", "The run was left out, because its log has no step time.".to_owned()))
        }
    }
}

/// Returns in a word or two that a run's scenario is unknown, and a sentence that says what is missing and how to give it.
fn unknown(problems: &[Problem]) -> (&'static str, String) {
    let missing = || problems.iter().filter(|problem| problem.given.is_empty()).map(|problem| problem.field);
    let labels: Vec<&str> = missing().map(Field::label).collect();
    if labels.len() < problems.len() {
        let why: Vec<String> = problems.iter().map(|problem| problem.text(Front::Terminal)).collect();
        return ("unknown scenario", format!("The run was left out. {}", why.join(" ")));
    }
    if let [Field::Gpu] = *missing().collect::<Vec<_>>() {
        let why = "The run was left out, because its log doesn't name the GPU type. Set it with --gpu.";
        return ("without GPU type", why.to_owned());
    }
    let flags: Vec<String> = missing().map(|field| format!("--{} …", field.flag())).collect();
    let why = format!(
        "The run was left out, because its log doesn't give {}. Save its result with `trainplan parse LOG {} --save DIR`, and \
         calibrate with DIR.",
        all_of(&labels),
        flags.join(" ")
    );
    ("unknown scenario", why)
}

/// Prints the factors of a cluster, and how much they help.
fn cluster_table(fit: &ClusterFit) -> Result<(), Failure> {
    let percent = |error: f64| format!("{:.1} %", error * 100.0);
    let seconds = |seconds: f64| significant(seconds, 4);
    output::table(
        ["run", "measured s", "predicted s", "with factors s", "measured / predicted", ""],
        &[1, 2, 3, 4],
        fit.runs.iter().map(|run| {
            let JudgedRun { name, measured_s, predicted_s, corrected_s, is_outlier } = run;
            [
                name.clone(),
                seconds(*measured_s),
                seconds(*predicted_s),
                seconds(*corrected_s),
                format!("{:.2}", measured_s / predicted_s),
                if *is_outlier { "outlier" } else { "" }.to_string(),
            ]
        }),
    )?;
    output::text_line("")?;
    let range = |range: &ValueRange| format!("{:.3}–{:.3}", range.low, range.high);
    output::table(
        ["factor", "on", "value", "80 % interval"],
        &[2],
        fit.factors.iter().map(|FittedFactor { factor, value, interval }| {
            let interval = interval.as_ref().map_or("not fitted".to_string(), range);
            [factor.to_string(), factor.title().to_string(), format!("{value:.3}"), interval]
        }),
    )?;
    let runs = if fit.n == 1 { "1 run".to_string() } else { format!("{} runs", fit.n) };
    output::text_line(&format!(
        "\nWithout factors, the estimate is off by {} on average ({runs}).",
        percent(fit.error_before)
    ))?;
    let is_confirmed = fit.factors().is_default();
    if is_confirmed {
        output::text_line("Factors would not improve it.")?;
    } else if let Some(error) = fit.error_left_out {
        output::text_line(&format!("With factors from the other runs, it is off by {}.", percent(error)))?;
    }
    if fit.is_only_step() {
        output::prose(&format!(
            "\nMeasured / predicted is {:.3} ({}{runs}). The factor is shrunk from there towards 1, because machines of one type \
             usually differ by less than {}, and one run may be off by {} for other reasons.",
            fit.median,
            if fit.n == 1 { "" } else { "median of " },
            percent(MACHINE_SPREAD),
            percent(fit.scatter)
        ))?;
    }
    if let Some(own) = fit.own_runs {
        output::prose(&format!(
            "\nThe runs scatter by {} around estimates with factors from the others. If nobody else measured their GPU type or \
             software, this narrows the interval of estimates for them. It doesn't narrow what other layouts add.",
            percent(own.scatter)
        ))?;
    }
    if fit.is_doubtful() || (is_confirmed && fit.own_runs.is_none()) {
        return Ok(());
    }
    output::text_line(&format!("\nUse the factors with --cluster-factor {}", fit.cluster_factor))
}

fn write(folder: &Path, files: &CalibrationFiles) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::File { path: folder.into(), error })?;
    let named = [
        ("calibration.csv", &files.constants),
        ("anchors.csv", &files.anchors),
        ("anchor_runs.csv", &files.anchor_runs),
        ("intervals.csv", &files.intervals),
        ("measured_extent.csv", &files.extent),
        ("held_out.csv", &files.held_out),
        ("regret.csv", &files.regret),
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
    output::text_line(&format!(
        "\n{} rows were fitted. Mean absolute errors on held-out rows:\n",
        result.rows
    ))?;
    let percent = |summary: &Option<ErrorSummary>| {
        summary.map_or("–".to_string(), |summary| format!("{:.2} %", summary.mape * 100.0))
    };
    output::table(
        ["held out by", "model alone", "corrected"],
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
