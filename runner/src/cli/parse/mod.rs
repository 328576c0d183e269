//! `trainplan parse`: from logs to what they measured.

mod read;
mod remarks;
mod shelf;
mod walk;

pub(super) use shelf::SaveError;

use super::output::{self, Format, FormatArg, printable};
use super::scenario::ScenarioArgs;
use super::{Failure, note};
pub(super) use remarks::remarks;
use shelf::Shelf;
use std::path::{Path, PathBuf};
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{Report, RunResult, View};
use trainplan_shared::tables::LogColumn;

/// Turn training logs into step times, tokens per second and MFU
///
/// Reads the logs of every release: of NeMo, Megatron-Bridge, torchtitan, MaxText and paxml. A log's name tells which
/// recipe it is a run of; where it does not, scenario flags do. Folders are searched for *.out, *.log, *.txt and
/// *.result.json. Whatever can't be scored is listed with the reason.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan parse experiments/
  trainplan parse log-acct.pretrain_llama3.1_70b_fp8_256_12345_0.out --window 35-44
  trainplan parse train.log --recipe llama3.1-70b/h100/fp8/256 --format json
  zcat old.log.gz | trainplan parse - --save results/

Exit codes:
  0 at least one log was scored
  1 a result could not be saved
  2 wrong use or invalid input
  4 nothing could be scored")]
pub(super) struct Args {
    /// Logs, saved results, folders, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The steps that count, by the numbers that the log prints: last, 11-44, 35-44, any A-B [default: as the release
    /// has it]
    #[arg(long, value_name = "WINDOW")]
    window: Option<Window>,
    /// Save what each log tells in this folder, as ID.result.json
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// What logs, results and folders of them tell, each in its release's own window.
pub(super) fn reports(paths: &[PathBuf]) -> Vec<Report> {
    read::read_all(&walk::find(paths), &View::default(), None)
}

/// What the logs and saved results of one path tell, each; what gave nothing as the row that says why.
pub(super) fn runs(path: &Path, view: &View) -> Vec<Result<RunResult, Box<Report>>> {
    let found = walk::find(&[path.to_path_buf()]);
    found.iter().map(|found| read::run_of(found, view)).collect()
}

/// The logs of a folder.
///
/// # Errors
/// It has none.
pub(super) fn logs(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let (mut logs, mut what) = (Vec::new(), "there is no log in it".to_owned());
    for found in walk::find(&[folder.to_path_buf()]) {
        match found {
            walk::Found::File(path) => logs.push(path),
            walk::Found::Nothing { reason, .. } => what = reason.to_string(),
            walk::Found::Stdin => {}
        }
    }
    match logs.is_empty() {
        true => Err(Failure::Contents { path: folder.to_path_buf(), what }),
        false => Ok(logs),
    }
}

/// What one log tells.
///
/// # Errors
/// What says why it tells nothing.
pub(super) fn log(path: &Path, view: &View) -> Result<RunResult, Box<Report>> {
    let run = read::run_of(&walk::Found::File(path.to_path_buf()), view)?;
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
                output::text_table(&LogColumn::terminal(&reports))?;
                for report in &reports {
                    for remark in remarks(report) {
                        output::text_line(&format!("  {}: {remark}", printable(&report.path)))?;
                    }
                }
            }
        }
        if let Some(shelf) = shelf {
            let results = shelf.close()?;
            note(&format!("{results} {} saved", if results == 1 { "result" } else { "results" }));
        }
        match reports.iter().any(|report| report.status == Status::Scored) {
            true => Ok(()),
            false => Err(Failure::NothingScored),
        }
    }
}
