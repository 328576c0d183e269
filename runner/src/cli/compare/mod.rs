//! `trainplan compare`: compares runs with each other, with their plans and with published numbers.

mod find;
mod rows;

use super::Failure;
use super::data_dir::StoreArgs;
use super::output;
use super::scenario::ScenarioArgs;
use clap::ValueEnum;
use std::io::{IsTerminal, stdout};
use trainplan_shared::compare::{Comparison, ComparisonOptions};
use trainplan_shared::comparison_file::ComparisonDocument;
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{RunResult, View};
use trainplan_shared::tables::{ComparedRun, ComparisonColumn};

/// How a comparison is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ComparisonFormat {
    /// For people
    Table,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
    /// For a pull request
    Markdown,
    /// One file with tables and charts, which a browser opens offline
    Html,
}

/// Compare runs with each other, their plans and published numbers
///
/// The first run is the reference. The mean step time of every other run, over the steps after the warm-up, is
/// compared with the reference's. The confidence interval accounts for autocorrelation (see docs/comparing.md). If runs differ in
/// the model, the batch or the GPU, for example, they are reported as not comparable, with the differences.
///
/// Runs with the same name and settings are repeats: their means are pooled, and the confidence intervals include the
/// variation between them. With --against, you say which runs are repeats.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan compare before.log after.log
  trainplan compare nightly/llama-8b 0197f2c1 --window 35-44
  trainplan compare results/0197f2c1-5a3e-7cc0-9d43-1f0b8f0a2b11.result.json after.log --format json
  trainplan compare old-1.log old-2.log old-3.log --against new-1.log new-2.log new-3.log
  trainplan compare before.log after.log --format markdown | gh pr comment --body-file -
  trainplan compare before.log after.log --format html > comparison.html
  trainplan compare one.log other.log --recipe llama3.1-70b/h100/fp8/256

Exit codes:
  0 compared (the verdict says whether the runs are comparable)
  2 invalid arguments, or unknown run
  4 no run was scored")]
pub(super) struct Args {
    /// Logs, saved results, - for stdin, or stored runs. A stored run is named by its id, a unique prefix of the
    /// id, or a name such as nightly/llama-8b (the newest run) or nightly/llama-8b#2 (its second repeat)
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Pool the runs before this flag and the runs after it, and compare the two means
    #[arg(long, value_name = "RUN", num_args = 1..)]
    against: Vec<String>,
    /// The steps to score and compare: last (the last step), or a range of the logs' step numbers such as 11-44
    /// [default: scores use the steps that the release prescribes; differences use all steps after the warm-up]
    #[arg(long, value_name = "WINDOW")]
    window: Option<Window>,
    /// Number of warm-up steps to leave out of each run, at most half of its steps
    #[arg(long, value_name = "STEPS", default_value_t = ComparisonOptions::WARM_UP_STEPS, conflicts_with = "window")]
    warm_up: u64,
    /// Smallest difference of the step time that matters, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = ComparisonOptions::MARGIN_PERCENT, value_parser = margin)]
    margin_percent: f64,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    data: StoreArgs,
    /// How to write the result [default: table on a terminal, json otherwise]
    #[arg(long, value_enum)]
    format: Option<ComparisonFormat>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let view = View::of(self.scenario.spec()?, self.window)?;
        let names: Vec<String> = self.runs.iter().chain(&self.against).cloned().collect();
        let runs = find::all(&names, &view, &self.data)?;
        let options = ComparisonOptions {
            view,
            warm_up_steps: self.warm_up,
            margin_percent: self.margin_percent,
            second_side: (!self.against.is_empty()).then_some(self.runs.len()),
            ..ComparisonOptions::default()
        };
        let comparison = Comparison::of(&runs.iter().collect::<Vec<&RunResult>>(), &options);
        let for_people =
            if stdout().is_terminal() { ComparisonFormat::Table } else { ComparisonFormat::Json };
        match self.format.unwrap_or(for_people) {
            ComparisonFormat::Json => output::json(&comparison)?,
            ComparisonFormat::Csv => {
                output::csv_table(&ComparisonColumn::csv(&ComparedRun::all(&comparison, self.window)))?;
            }
            ComparisonFormat::Table => rows::table(&comparison)?,
            ComparisonFormat::Markdown => {
                output::text(&ComparisonDocument::new(&comparison, self.window).to_markdown())?;
            }
            ComparisonFormat::Html => {
                output::text(&ComparisonDocument::new(&comparison, self.window).to_html())?;
            }
        }
        match comparison.items.iter().any(|item| item.status == Status::Scored) {
            true => Ok(()),
            false => Err(Failure::NothingScored),
        }
    }
}

fn margin(text: &str) -> Result<f64, String> {
    let margin = text.parse::<f64>().ok().filter(|margin| (0.0..=100.0).contains(margin));
    margin.ok_or_else(|| "use a percentage from 0 to 100".into())
}
