//! `trainplan check`: finds regressions among the newest runs.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::stored::Stored;
use super::{Failure, note};
use crate::history::point;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::collections::HashMap;
use trainplan_shared::api::RunSummary;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::history::{
    Regression, ThresholdCheck, ThresholdKind, Thresholds, TimeLine, TimeLinePoint, time_lines,
};
use trainplan_shared::tables::{CheckColumn, CheckedTimeLine};
use trainplan_shared::units::minute;

/// Check whether the newest run of each recipe or custom scenario is too slow
///
/// Runs of a recipe, or of your own scenario, on a cluster form a timeline. Its newest run is compared with the
/// published speed and with the median and spread of earlier runs. The timeline is also searched for lasting
/// slowdowns (E-divisive and a t-test, the method of the tool Hunter). Earlier runs that are not comparable, such as
/// profiled ones, are skipped. If the newest run is not comparable, it is not judged. If the newest run is one of
/// several repeats, the mean of its round's repeats is judged as well.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan check
  trainplan check --recipe llama3.1-405b/h100/fp8/512 --cluster alpha --format json
  trainplan check --since 2026-03-01 --baseline-percent 90 --sigma off

Exit codes:
  0 no regression found
  2 invalid arguments or input
  4 the newest run of a timeline was not scored, or no run could be checked
  6 a regression was found")]
pub(super) struct Args {
    /// Only runs of this recipe. Without @RELEASE, runs of all its releases
    #[arg(long, value_name = "ID")]
    recipe: Option<String>,
    /// Only runs on this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only runs of this campaign
    #[arg(long, value_name = "NAME")]
    campaign: Option<String>,
    /// Only timelines whose newest run is at or after this date or time (UTC), such as 2026-03-01 or
    /// 2026-03-01T06:00:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    #[command(flatten)]
    thresholds: ThresholdArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// Thresholds of a regression. They are parsed by shared code, so that mistakes have the same messages as on
/// the server.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Thresholds")]
struct ThresholdArgs {
    /// Lowest speed, in percent of the published speed, or off [default: 95]
    #[arg(long, value_name = "PERCENT|off", allow_negative_numbers = true)]
    baseline_percent: Option<String>,
    /// Largest percentage by which the step time may exceed the median of earlier runs, or off [default: 5]
    #[arg(long, value_name = "PERCENT|off", allow_negative_numbers = true)]
    previous_percent: Option<String>,
    /// Largest number of standard deviations by which the step time may exceed that median, or off. The standard
    /// deviation is estimated from the median absolute deviation [default: 3]
    #[arg(long, value_name = "N|off", allow_negative_numbers = true)]
    sigma: Option<String>,
    /// Whether to report a lasting slowdown that began within the last --previous runs [default: on]
    #[arg(long, value_name = "on|off")]
    change: Option<String>,
    /// Number of earlier runs to compare with [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    previous: Option<String>,
    /// Fewest earlier runs needed; with fewer, only the published speed is checked [default: 5]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    minimum: Option<String>,
    /// Differences below this many percent are ignored by --sigma and --change [default: 1]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    margin_percent: Option<String>,
}

impl ThresholdArgs {
    fn read(&self) -> Result<Thresholds, Failure> {
        let texts = [
            ("baseline-percent", &self.baseline_percent),
            ("previous-percent", &self.previous_percent),
            ("sigma", &self.sigma),
            ("change", &self.change),
            ("previous", &self.previous),
            ("minimum", &self.minimum),
            ("margin-percent", &self.margin_percent),
        ];
        let given = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
        Ok(Thresholds::parse(given)?)
    }
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct Judged<'a> {
    thresholds: Thresholds,
    /// The number of timelines that could be checked.
    judged: usize,
    /// The number of regressions among them.
    regressions: usize,
    /// The number of timelines whose newest run was not scored.
    not_scored: usize,
    series: &'a [TimeLine],
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let thresholds = self.thresholds.read()?;
        let stored = Stored::open(&self.store)?;
        let runs = stored.summaries()?;
        if let (Some(recipe), false) = (&self.recipe, runs.iter().any(|run| self.wants(run))) {
            // A recipe without runs may be mistyped.
            Catalog::embedded().recipe(recipe)?;
        }
        let mut lines = time_lines(runs.iter().filter(|run| self.wants(run)).map(point), &thresholds);
        lines.retain(|line| self.is_recent(line));
        let repeats: Repeats<'_> = runs.iter().filter_map(repeat).collect();
        for line in &mut lines {
            judge_round(line, &repeats, &thresholds);
        }
        let judged = lines.iter().filter(|line| line.is_judged()).count();
        let regressions = lines.iter().filter(|line| !line.alerts.is_empty()).count();
        let not_scored = lines.iter().filter(|line| newest_not_scored(line).is_some()).count();

        let rows = CheckedTimeLine::all(&lines);
        match self.format.choose() {
            Format::Json => {
                output::json(&Judged { thresholds, judged, regressions, not_scored, series: &lines })?;
            }
            Format::Csv => output::csv_table(&CheckColumn::csv(&rows))?,
            Format::Table => {
                output::text_table(CheckColumn::terminal_table(&rows))?;
                lines.iter().flat_map(|line| skipped(line, &thresholds)).for_each(|text| note(&text));
                note(&format!("thresholds: {thresholds}"));
            }
        }
        match (regressions, not_scored, judged) {
            (0, 0, 0) if lines.is_empty() => Err(Failure::NothingJudged(
                "nothing to check: the store has no such runs of a known scenario. Add runs with \
                 `trainplan import`, `trainplan upload` or `trainplan run`",
            )),
            (0, 0, 0) => Err(Failure::NothingJudged("no run could be checked. Each row says why")),
            (0, 0, _) => Ok(()),
            (0, not_scored, _) => Err(Failure::NewestNotScored { not_scored, all: lines.len() }),
            _ => Err(Failure::Regression(in_words(&lines, judged))),
        }
    }

    fn wants(&self, run: &RunSummary) -> bool {
        let is = |wanted: &Option<String>, it: &Option<String>| wanted.is_none() || wanted == it;
        let of_recipe = self.recipe.as_ref().is_none_or(|wanted| {
            let recipe = run.recipe.as_deref().unwrap_or_default();
            recipe == wanted || recipe.split('@').next() == Some(wanted)
        });
        of_recipe && is(&self.cluster, &run.cluster) && is(&self.campaign, &run.campaign)
    }

    fn is_recent(&self, line: &TimeLine) -> bool {
        let Some(since) = self.since else { return true };
        let newest = line.points.last().and_then(|point| point.at.parse::<Timestamp>().ok());
        newest.is_some_and(|newest| newest >= since)
    }
}

/// Returns how many of the checked series became slower, and how many others are only slower than published, as a sentence.
fn in_words(lines: &[TimeLine], judged: usize) -> String {
    let count = |is_slower: bool| {
        let became_slower = |line: &&TimeLine| {
            let mut alerts = line.alerts.iter();
            !line.alerts.is_empty() && alerts.any(|alert| alert.kind != ThresholdKind::Baseline) == is_slower
        };
        lines.iter().filter(became_slower).count()
    };
    let (slower, below) = (count(true), count(false));
    let are = if below == 1 { "is" } else { "are" };
    match (slower, below) {
        (_, 0) => format!("{slower} of {judged} timelines became slower."),
        (0, _) => format!("{below} of {judged} timelines {are} too far below the published speed."),
        _ => format!(
            "{slower} of {judged} timelines became slower, and {below} more {are} too far below the published speed."
        ),
    }
}

/// Returns the newest run of a series if it was not scored.
fn newest_not_scored(line: &TimeLine) -> Option<&TimeLinePoint> {
    line.points.last().filter(|newest| newest.step_time_s.is_none())
}

/// The most runs of a time line that notes name because nothing is compared with them.
const MOST_SKIPPED: usize = 3;

/// Returns which of the runs just before the newest one it is not compared with, oldest first, and why.
fn skipped(line: &TimeLine, thresholds: &Thresholds) -> Vec<String> {
    let before = line.points.split_last().map_or(&[][..], |(_, before)| before);
    let recent = before.get(before.len().saturating_sub(thresholds.previous)..).unwrap_or_default();
    let title = &line.label;
    let told = |point: &TimeLinePoint| {
        let what = match point.step_time_s {
            None => "was not scored",
            Some(_) => "can't be compared",
        };
        let why = point.reason.as_deref().unwrap_or_default();
        let told = format!("{title}: run {} of {} {what}. {why}", point.id, minute(&point.at));
        told.trim_end().to_owned()
    };
    let skipped: Vec<&TimeLinePoint> = recent.iter().filter(|point| point.measured_s().is_none()).collect();
    let (earlier, last) = skipped.split_at(skipped.len().saturating_sub(MOST_SKIPPED));
    let count = match earlier.len() {
        0 => None,
        count => Some(format!("{title}: earlier runs that can't be compared: {count}.")),
    };
    last.iter().copied().map(told).chain(count).collect()
}

/// The campaign, the name and the repeat of each run of a campaign, by the run's id.
type Repeats<'a> = HashMap<&'a str, (&'a str, &'a str, u32)>;

fn repeat(run: &RunSummary) -> Option<(&str, (&str, &str, u32))> {
    Some((run.id.as_str(), (run.campaign.as_deref()?, run.run.as_deref()?, run.repeat?)))
}

/// Judges the mean of the newest round's repeats, if there are several and the newest run alone is fast enough. If the mean is a
/// regression, its checks replace those of the newest run.
fn judge_round(line: &mut TimeLine, repeats: &Repeats<'_>, thresholds: &Thresholds) {
    if !line.alerts.is_empty() {
        return;
    }
    let first = first_of_round(&line.points, repeats);
    let (before, round) = line.points.split_at(first);
    let scored: Vec<&TimeLinePoint> = round.iter().filter(|point| point.measured_s().is_some()).collect();
    let (Some(newest), 2..) = (scored.last(), scored.len()) else { return };
    let mean = |figure: fn(&TimeLinePoint) -> Option<f64>| {
        Some(scored.iter().filter_map(|point| figure(point)).sum::<f64>() / scored.len() as f64)
    };
    let pooled = TimeLinePoint {
        step_time_s: mean(TimeLinePoint::scored_s),
        steady_mean_s: mean(TimeLinePoint::measured_s),
        std_s: None,
        n: scored.iter().map(|point| point.n).min().unwrap_or_default(),
        ..TimeLinePoint::clone(newest)
    };
    let points = before.iter().cloned().chain([pooled]).collect();
    let judged = TimeLine::of(line.key.clone(), points, thresholds);
    if judged.alerts.is_empty() {
        return;
    }
    let told = |text: &str| format!("mean of {} repeats: {text}", scored.len());
    let checks = judged.checks.into_iter().map(|check| ThresholdCheck { text: told(&check.text), ..check });
    let alerts = judged.alerts.into_iter().map(|alert| Regression { text: told(&alert.text), ..alert });
    (line.checks, line.alerts) = (checks.collect(), alerts.collect());
}

/// Returns the place of the first run in the round of the newest one. Results don't name their round, but the numbers
/// of its repeats ascend, because they are submitted in this order.
fn first_of_round(points: &[TimeLinePoint], repeats: &Repeats<'_>) -> usize {
    let of = |point: &TimeLinePoint| repeats.get(point.id.as_str()).copied();
    let Some((campaign, run, _)) = points.last().and_then(of) else { return points.len() };
    let mut next = u32::MAX;
    let other = points.iter().rposition(|point| match of(point) {
        // The attempts of a repeat that failed have its number, too.
        Some((its_campaign, its_run, repeat)) if (its_campaign, its_run) == (campaign, run) => {
            let is_earlier = repeat < next || (repeat == next && point.measured_s().is_none());
            next = next.min(repeat);
            !is_earlier
        }
        _ => true,
    });
    other.map_or(0, |place| place + 1)
}

/// Reads a date or a time.
fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let day: Result<Date, _> = text.parse();
    let start = day.and_then(|day| day.to_zoned(TimeZone::UTC));
    start
        .map(|start| start.timestamp())
        .map_err(|_| "use a date or a time, such as 2026-03-01 or 2026-03-01T06:00:00Z".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_the_ascending_repeats_up_to_the_newest_run() {
        // Each run with its repeat, and whether it was scored.
        let first = |runs: &[(&str, u32, bool)]| {
            let ids: Vec<String> = (0..runs.len()).map(|place| place.to_string()).collect();
            let repeats = ids.iter().zip(runs);
            let repeats: Repeats<'_> =
                repeats.map(|(id, (run, repeat, _))| (id.as_str(), ("nightly", *run, *repeat))).collect();
            let points: Vec<TimeLinePoint> = ids
                .iter()
                .zip(runs)
                .map(|(id, (_, _, is_scored))| TimeLinePoint {
                    id: id.clone(),
                    step_time_s: is_scored.then_some(9.4),
                    comparable: *is_scored,
                    ..TimeLinePoint::default()
                })
                .collect();
            first_of_round(&points, &repeats)
        };
        assert_eq!(
            first(&[("a", 1, true), ("a", 2, true), ("a", 1, true), ("a", 2, true), ("a", 3, true)]),
            2
        );
        // The second repeat was tried twice.
        assert_eq!(first(&[("a", 1, true), ("a", 2, false), ("a", 2, true), ("a", 3, true)]), 0);
        // The last round has one run yet, and the repeats are those of one run.
        assert_eq!(first(&[("a", 1, true), ("a", 2, true), ("a", 1, true)]), 2);
        assert_eq!(first(&[("b", 1, true), ("a", 2, true)]), 1);
        assert_eq!(first_of_round(&[TimeLinePoint::default()], &Repeats::new()), 1);
    }
}
