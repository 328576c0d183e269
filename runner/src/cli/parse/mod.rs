//! `trainplan parse`: scores training logs.

mod read;
mod remarks;
mod shelf;
mod walk;

pub(super) use shelf::SaveError;
pub(super) use walk::LogFiles;

use super::output::{self, Format, FormatArg, printable};
use super::scenario::ScenarioArgs;
use super::{Failure, note};
use crate::side_by_side;
pub(super) use remarks::{SharedRemark, remarks};
use shelf::Shelf;
use std::path::{Path, PathBuf};
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{Report, RunResult, View};
use trainplan_shared::tables::LogColumn;

/// Turn training logs into step times, tokens per second and MFU
///
/// Reads logs of NeMo, Megatron-Bridge, Megatron-LM, torchtitan, MaxText and paxml. The log's name identifies the recipe;
/// if it doesn't, use scenario flags. Folders are searched for *.out, *.log, *.txt and *.result.json. Logs that can't be
/// scored are listed with the reason. Logs may be compressed with gzip or zstd. In a folder, the logs of a job that Slurm started again
/// (_0.out, _1.out) are joined, and the output of its batch script (sbatch_*.out, slurm-*.out) says why it ended.
///
/// Three files beside a log complete what it says, and their settings are kept with the result:
/// configs/ConfigContainer.yaml (from Megatron-Bridge), llmb-config_JOB.yaml (from llmb-run) and env_JOB.log (the
/// job's environment). JOB is the number of the log's job.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan parse experiments/
  trainplan parse log-acct.pretrain_llama3.1_70b_fp8_256_12345_0.out --window 35-44
  trainplan parse train.log --recipe llama3.1-70b/h100/fp8/256 --format json
  trainplan parse old.log.gz --save results/

Exit codes:
  0 at least one log was scored
  1 a result could not be saved
  2 invalid arguments or input
  4 no log could be scored")]
pub(super) struct Args {
    /// Logs, saved results, folders, or - for stdin
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The steps to score: last (the last step), or a range of the log's step numbers such as 35-44
    /// [default: the steps that the release prescribes]
    #[arg(long, value_name = "WINDOW")]
    window: Option<Window>,
    /// Save the result of each log in this folder, as ID.result.json. It has all steps of the log, whatever the --window
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// A report, with the facts that identify its run.
pub(super) struct FileReport {
    pub(super) report: Report,
    /// The SHA-256 of the log; none if nothing could be read.
    pub(super) sha256: Option<String>,
    /// Whether it was read from a saved result rather than from the log.
    pub(super) is_saved: bool,
}

/// Returns the reports of logs, results and folders of them.
pub(super) fn reports(paths: &[PathBuf], view: &View) -> Vec<FileReport> {
    side_by_side::map(&walk::find(paths), |found| {
        let is_saved = found.is_saved();
        match read::run_of(found, view) {
            Ok(run) => {
                let report = Report::of(&run, view);
                FileReport { report, sha256: Some(run.source.sha256), is_saved }
            }
            Err(report) => FileReport { report: *report, sha256: None, is_saved },
        }
    })
}

/// Returns the results of one path, or for each file without a result the report that says why.
pub(super) fn runs(path: &Path, view: &View) -> Vec<Result<RunResult, Box<Report>>> {
    let found = walk::find(&[path.to_path_buf()]);
    found.iter().map(|found| read::run_of(found, view)).collect()
}

/// Returns the logs of a folder.
///
/// # Errors
/// The folder has no log.
pub(super) fn logs(folder: &Path) -> Result<Vec<LogFiles>, Failure> {
    let (mut logs, mut what) = (Vec::new(), "no log in this folder".to_owned());
    for found in walk::find(&[folder.to_path_buf()]) {
        match found {
            walk::Found::File(log) => logs.push(log),
            walk::Found::Nothing { reason, .. } => what = reason.to_string(),
            walk::Found::Stdin => {}
        }
    }
    match logs.is_empty() {
        true => Err(Failure::Contents { path: folder.to_path_buf(), what }),
        false => Ok(logs),
    }
}

/// Returns the result of one log.
///
/// # Errors
/// Returns the report that says why the log has no result.
pub(super) fn log(log: &LogFiles, view: &View) -> Result<RunResult, Box<Report>> {
    let run = read::run_of(&walk::Found::File(log.clone()), view)?;
    let report = Report::of(&run, view);
    if report.id.is_some() { Ok(run) } else { Err(Box::new(report)) }
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let view = View::of(self.scenario.spec()?, self.window)?;
        let shelf = self.save.map(Shelf::open).transpose()?;
        let reports = read::read_all(&walk::find(&self.paths), &view, shelf.as_ref());
        match self.format.choose() {
            Format::Json => output::json(&reports)?,
            Format::Csv => output::csv_table(&LogColumn::csv(&reports))?,
            Format::Table => {
                output::text_table(LogColumn::terminal_table(&reports))?;
                let paths: Vec<&str> = reports.iter().map(|report| report.path.as_str()).collect();
                let all: Vec<_> = reports
                    .iter()
                    .zip(remarks::brief_paths(&paths))
                    .map(|(report, path)| (printable(path), remarks(report)))
                    .collect();
                for remark in SharedRemark::merged(&all) {
                    output::prose_around(&format!("  {}", remark.line(all.len())), &remark.names)?;
                }
            }
        }
        if let Some(shelf) = shelf {
            let results = shelf.close()?;
            note(&format!("{results} {} saved", if results == 1 { "result" } else { "results" }));
            if let Some(window) = self.window.filter(|_| results > 0) {
                note(&format!(
                    "The window is not saved, because results keep all steps of a log. Give --window {window} to `trainplan compare` \
                     and `trainplan calibrate --cluster` too."
                ));
            }
        }
        match reports.iter().any(|report| report.status == Status::Scored) {
            true => Ok(()),
            false => Err(Failure::NothingScored),
        }
    }
}
