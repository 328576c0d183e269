//! `trainplan search`: which GPUs, how many, which layout, when done, at what cost.

mod campaign;
mod flags;
mod found;
mod headline;
mod markdown;
mod output;
mod ranking;
mod sentences;
mod tables;

use super::output::{csv_table, json};
use super::stack_file::with_files;
use super::{Failure, note};
use campaign::{MeasuringRuns, RANKED_PER_RUN};
use clap::ValueEnum;
use flags::SearchFlags;
use found::SearchedGpu;
use headline::{broken_nodes, headline};
use output::SearchOutput;
use ranking::best_first;
use sentences::{by_script, verdict};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use trainplan_shared::campaign::Name;
use trainplan_shared::deadline::{date_of, with_days};
use trainplan_shared::field::Field;
use trainplan_shared::message::Front;
use trainplan_shared::question::{GpuAnswer, PlanScript, PlannedRun, Survey};
use trainplan_shared::tables::PlanColumn;

/// Layouts of each GPU type in Markdown, and those that a campaign measures after a table.
const TOP_OF_TABLE: u8 = 5;

/// Layouts of each GPU type in JSON and CSV.
const TOP_OF_FILE: u8 = 10;

/// The most layouts that a search lists.
const MOST: u8 = 100;

/// How the result of a search is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SearchFormat {
    /// For people
    Table,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
    /// For a pull request or a design document
    Markdown,
}

/// Find the GPU type, GPU count and layout that train a model on time or within budget
///
/// Searches every layout that the software can run, on each number of GPUs (--gpus). Prints the answer in one
/// sentence, then the best plan for each GPU type with ranges for days to train, cost and energy. --top adds the
/// next-best layouts and the published one. The last lines are the commands that estimate and launch the best plan.
///
/// Only --model is required. Values that you leave out are assumed, and the output names each assumption.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan search --model llama3.1-70b --gpu h100,b200 --tokens 10T --deadline 60d
  trainplan search --model llama3.1-8b --gpu h100 --tokens 1T --price 2.95 --budget 200K
  trainplan search --model llama3.1-8b --gpus 64..256 --lock tp=1|2,recompute=none --format csv
  trainplan search --model llama3.1-405b --gpu h100 --gpus 1024 --batch-tokens 4M..16M --top 10
  trainplan search --model llama3.1-70b --deadline 60d --format markdown > plan.md

Exit codes: 0 a plan was found; 2 invalid input; 3 no plan fits, or none reaches the goal (the result names what would help).")]
pub(super) struct Args {
    #[command(flatten)]
    flags: SearchFlags,
    /// Layouts to list for each GPU type, at most 100 [default: none in a table, 5 in Markdown, otherwise 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST)), help_heading = "Result")]
    top: Option<u8>,
    /// Write the best layouts (at most --top in total, across all GPU types) and the published ones to a campaign
    /// file, so that you can measure them with `trainplan run`
    #[arg(long, value_name = "FILE", requires = "cluster", help_heading = "Result")]
    campaign: Option<PathBuf>,
    /// Cluster of the campaign, from your clusters.toml
    #[arg(long, value_name = "NAME", requires = "campaign", help_heading = "Result")]
    cluster: Option<Name>,
    /// How to write the result [default: table on a terminal, json otherwise]
    #[arg(long, value_enum)]
    format: Option<SearchFormat>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let typed = self.flags.0;
        let today = jiff::Zoned::now().date().to_string();
        let spec = with_files(typed.clone(), Path::new("")).and_then(|spec| with_days(spec, &today));
        let spec = spec.map_err(|problem| Failure::in_search(vec![problem]))?;
        if let (Some(date), Some(days)) = (date_of(&typed), spec.get(Field::Deadline)) {
            let days = days.trim_end_matches('d');
            let noun = if days == "1" { "day" } else { "days" };
            note(&format!("the deadline {date} is {days} {noun} from today, {today}"));
        }
        let mut question = spec.question().map_err(Failure::in_search)?;
        if question.seeks_tokens() {
            let sought = question.with_most_tokens();
            question = sought.map_err(|problem| Failure::in_search(vec![problem]))?;
        }
        if let Some(file) = &self.campaign {
            campaign::refuse_existing(file)?;
        }
        let is_terminal = io::stdout().is_terminal();
        let default = if is_terminal { SearchFormat::Table } else { SearchFormat::Json };
        let format = self.format.unwrap_or(default);
        let is_for_people = matches!(format, SearchFormat::Table | SearchFormat::Markdown);
        let top = self.top.unwrap_or(if is_for_people { TOP_OF_TABLE } else { TOP_OF_FILE });
        // What a search counts and says of its layouts is the same in every format.
        let listed = top.max(TOP_OF_FILE).into();
        let survey = |offer, listed| Survey::new(&question, offer).listing(listed).finish_as_launched();
        let (answers, scripts): (Vec<GpuAnswer>, Vec<Option<PlanScript>>) =
            question.offers.iter().map(|offer| survey(offer, listed)).unzip();
        let in_bf16: Vec<Option<PlannedRun>> = question
            .offers
            .iter()
            .zip(&answers)
            .map(|(offer, answer)| answer.launched_in_bf16(&question, offer))
            .collect();
        let missing_with: Vec<_> = question
            .offers
            .iter()
            .zip(&answers)
            .map(|(offer, answer)| answer.layouts_missing_with(&question, offer))
            .collect();
        let found: Vec<SearchedGpu<'_>> = question
            .offers
            .iter()
            .zip(&answers)
            .zip(in_bf16.iter().zip(&scripts).zip(&missing_with))
            .map(|((offer, answer), ((in_bf16, script), missing_with))| SearchedGpu {
                question: &question,
                typed: &typed,
                offer,
                answer,
                in_bf16: in_bf16.as_ref(),
                script: script.as_ref(),
                missing_with,
                top: top.into(),
                measured: &[],
            })
            .collect();
        let most = if self.campaign.is_some() { usize::from(top) * RANKED_PER_RUN } else { 0 };
        let rank = |offer| survey(offer, most).0.layouts;
        let ranked: Vec<Vec<PlannedRun>> = match most {
            0 => Vec::new(),
            _ => question.offers.iter().map(rank).collect(),
        };
        let runs = MeasuringRuns::choose(&found, &ranked);
        let measured: Vec<Vec<(u32, &PlannedRun)>> =
            found.iter().zip(&ranked).map(|(found, ranked)| runs.among(found, ranked)).collect();
        let found: Vec<SearchedGpu<'_>> = (0..)
            .zip(found)
            .map(|(place, found)| SearchedGpu {
                measured: measured.get(place).map(Vec::as_slice).unwrap_or_default(),
                ..found
            })
            .collect();
        for found in &found {
            for caution in found.answer.best().map(|best| best.cautions(&question)).unwrap_or_default() {
                note(&format!("{}: {}", found.offer.gpu.name, caution.text(Front::Search)));
            }
        }
        for sentence in broken_nodes(&question) {
            note(&sentence);
        }
        match format {
            SearchFormat::Json => {
                json(&SearchOutput::new(&question, &found, headline(&found), verdict(&found)))?;
            }
            SearchFormat::Csv => {
                // A row has no place for it.
                for found in &found {
                    if let Some(sentence) = by_script(found) {
                        note(&format!("{}: {sentence}", found.offer.gpu.name));
                    }
                }
                csv_table(&PlanColumn::csv(&found.iter().flat_map(SearchedGpu::rows).collect::<Vec<_>>()))?;
            }
            SearchFormat::Table => {
                // Every layout that a campaign measures is listed.
                let lists_layouts = self.top.is_some() || self.campaign.is_some();
                tables::print(&question, &best_first(&found), lists_layouts)?;
            }
            SearchFormat::Markdown => markdown::print(&question, &best_first(&found))?,
        }
        if let (Some(file), Some(cluster)) = (self.campaign, self.cluster) {
            campaign::write(&file, cluster, &found, runs)?;
        }
        if answers.iter().all(|answer| answer.best().is_none()) { Err(Failure::NoPlan) } else { Ok(()) }
    }
}
