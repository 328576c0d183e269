//! `trainplan compare`: runs beside each other, beside their plan and beside what is published.

mod find;
mod rows;

use super::Failure;
use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::scenario::ScenarioArgs;
use trainplan_shared::compare::{Comparison, Options};
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{RunResult, View};
use trainplan_shared::tables::{ComparedRun, ComparisonColumn};

/// Compare runs with each other, with their plan and with the published number
///
/// The first is the reference. The step times of each other one are held against it, over the steps after the warm-up, by
/// Welch's interval with as many steps as are independent; `docs/comparing.md` has the details. Runs of another model, batch,
/// number or type of GPUs are not compared in silence: what differs is listed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan compare before.log after.log
  trainplan compare nightly/llama-8b 0197f2c1 --window 35-44
  trainplan compare results/0197f2c1-5a3e-7cc0-9d43-1f0b8f0a2b11.result.json after.log --format json
  trainplan compare one.log other.log --recipe llama3.1-70b/h100/fp8/256

Exit codes:
  0 compared; whether the runs may be compared says the verdict
  2 wrong use, or no such run
  4 none of the runs was scored")]
pub(super) struct Args {
    /// Logs, saved results, - for standard input, or runs in the store: an id, what only one id begins with, or a name such as
    /// nightly/llama-8b or nightly/llama-8b#2, of which the newest counts
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// The steps that count in all of them, by the numbers that the logs print: last, 11-44, any A-B [default: each as its
    /// release scores it, and the difference over all steps after the warm-up]
    #[arg(long, value_name = "WINDOW")]
    window: Option<Window>,
    /// How many steps of each run are warm-up, at most half of them
    #[arg(long, value_name = "STEPS", default_value_t = Options::WARM_UP_STEPS, conflicts_with = "window")]
    warm_up: u64,
    /// A difference of the step time below this is none that matters, percent
    #[arg(long, value_name = "PERCENT", default_value_t = Options::MARGIN_PERCENT, value_parser = margin)]
    margin_percent: f64,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    data: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let view = View::of(self.scenario.spec()?, self.window)?;
        let runs = find::all(&self.runs, &view, &self.data)?;
        let options = Options {
            view,
            warm_up_steps: self.warm_up,
            margin_percent: self.margin_percent,
            ..Options::default()
        };
        let comparison = Comparison::of(&runs.iter().collect::<Vec<&RunResult>>(), &options);
        match self.format.choose() {
            Format::Json => output::json(&comparison)?,
            Format::Csv => {
                output::csv_table(&ComparisonColumn::csv(&ComparedRun::all(&comparison, self.window)))?;
            }
            Format::Table => rows::table(&comparison)?,
        }
        match comparison.items.iter().any(|item| item.status == Status::Scored) {
            true => Ok(()),
            false => Err(Failure::NothingScored),
        }
    }
}

fn margin(text: &str) -> Result<f64, String> {
    let margin = text.parse::<f64>().ok().filter(|margin| (0.0..=100.0).contains(margin));
    margin.ok_or_else(|| "give percent from 0 to 100".into())
}
