//! Compares runs, and prepares the comparison for the page.

use super::headline::{self, headline, label, not_comparable, notes, outcome};
use super::typography::{page_cells, unbroken};
use super::{files, runs};
use crate::message::{
    Compared, ComparisonFormat, Plot, PlotLevel, PlotLine, RequestError, Row, RowStatus, Saved, Setting,
    Source, Table,
};
use std::rc::Rc;
use trainplan_shared::compare::{
    BriefLabels, Comparison, ComparisonOptions, ConfigurationRow, Curve, ReferenceLevelKind, RunFigures,
};
use trainplan_shared::comparison_file::ComparisonDocument;
use trainplan_shared::field::Field;
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{Report, RunClock, RunResult, Scoring, Slowdown, View, sentence};
use trainplan_shared::sorting::order;
use trainplan_shared::tables::{ComparedRun, ComparisonColumn, PooledColumn, cells};
use trainplan_shared::text::capital;
use trainplan_shared::units::{minute, parse_decimal};

/// The number of recent runs that are searched for the newest comparison.
const RECENT: usize = 50;

/// Compares the runs of these ids with a view; without ids, those that were dropped, or else the newest comparable runs.
pub(super) async fn compare(ids: Vec<String>, view: View) -> Result<Compared, RequestError> {
    let ids = if ids.is_empty() { newest().await? } else { ids };
    Ok(compared(FoundRuns::of(ids).await?, view))
}

/// Compares the newest run with the comparable ones before it.
pub(super) async fn compare_newest() -> Result<Compared, RequestError> {
    let mut found = FoundRuns::of(newest().await?).await?;
    found.runs = like_last(found.runs);
    let mut compared = compared(found, View::default());
    compared.on_server.retain(|id| compared.rows.iter().any(|row| row.id == *id));
    Ok(compared)
}

/// Returns the last run, after those that are comparable with it.
fn like_last(runs: Vec<Rc<RunResult>>) -> Vec<Rc<RunResult>> {
    let last_first: Vec<Rc<RunResult>> = runs.into_iter().rev().collect();
    let against = comparison(&last_first, View::default()).difference.each;
    let is_alike = |place: usize| against.iter().all(|one| one.item != place || one.comparable);
    let alike = last_first.into_iter().enumerate().filter(|(place, _)| is_alike(*place));
    let mut alike: Vec<Rc<RunResult>> = alike.map(|(_, run)| run).collect();
    alike.reverse();
    alike
}

fn compared(FoundRuns { runs, on_server, missing }: FoundRuns, view: View) -> Compared {
    let asked = view.window;
    let comparison = comparison(&runs, view);
    let failure_line = match comparison.items.as_slice() {
        [alone] => alone.failure_line,
        _ => None,
    };
    // The table has the full labels, which would fill the headline.
    let labels = BriefLabels::of(comparison.items.iter().map(|item| item.label.as_str()));
    let words = |headline: String| unbroken(&headline).replace(". job ", ". Job ");
    let in_full = headline(&comparison);
    let short = words(labels.shorten_long(&in_full));
    let in_full = words(labels.shorten_repeated(&in_full));
    let brief = |lines: Vec<String>| lines.iter().map(|line| unbroken(&labels.shorten(line))).collect();
    Compared {
        headline_in_full: Some(in_full).filter(|in_full| *in_full != short),
        headline: short,
        failure_line,
        outcome: outcome(&comparison),
        unlike: brief(not_comparable(&comparison)),
        notes: brief(notes(&comparison)),
        method: unbroken(&comparison.difference.method),
        pooled: pooled(&comparison),
        step_time: Plot {
            levels: levels(&comparison),
            is_time: true,
            ..plot(&comparison, &comparison.curves.step_time_s)
        },
        loss: plot(&comparison, &comparison.curves.loss),
        settings: comparison
            .configuration
            .iter()
            .filter(|row| !row.only_tells_logs_apart())
            .map(setting)
            .collect(),
        rows: ComparedRun::all(&comparison, asked).iter().map(row).collect(),
        missing,
        on_server,
        scored: unbroken(&scored(&comparison, asked).unwrap_or_default()),
        source: source(&runs, &comparison),
    }
}

/// Returns which steps of a run alone are scored and why, and where to choose others.
fn scored(comparison: &Comparison, asked: Option<Window>) -> Option<String> {
    let [item] = comparison.items.as_slice() else { return None };
    let sentence = scoring(asked, item).sentence(item.window.as_deref()?);
    Some(format!("{sentence} Choose others under {}.", Field::Window.label()))
}

fn scoring(asked: Option<Window>, item: &RunFigures) -> Scoring {
    Scoring::of(asked, item.release.as_deref().and_then(|release| release.parse().ok()))
}

/// Returns the origin of a run alone.
fn source(runs: &[Rc<RunResult>], comparison: &Comparison) -> Source {
    let ([run], [item]) = (runs, comparison.items.as_slice()) else { return Source::default() };
    let ran = |(at, clock): (&str, RunClock)| match clock {
        RunClock::Slurm => minute(at),
        RunClock::Log => format!("{} by the log's clock", minute(at).trim_end_matches(" UTC")),
        RunClock::File => format!("{} (file time)", minute(at)),
    };
    Source {
        path: item.path.clone(),
        ran: run.ran_at().map_or_else(String::new, ran),
        recipe: item.recipe.clone().unwrap_or_default(),
        is_carried: run.carried.is_some(),
    }
}

/// Returns the comparison as a file.
pub(super) async fn file(
    ids: Vec<String>,
    view: View,
    format: ComparisonFormat,
) -> Result<Saved, RequestError> {
    let asked = view.window;
    let comparison = comparison(&FoundRuns::of(ids).await?.runs, view);
    let failed = |error: &dyn std::fmt::Display| RequestError::Other(error.to_string());
    let text = match format {
        ComparisonFormat::Csv => {
            let csv = ComparisonColumn::csv(&ComparedRun::all(&comparison, asked)).to_csv();
            csv.map_err(|error| failed(&error))?
        }
        ComparisonFormat::Json => {
            serde_json::to_string_pretty(&comparison).map_err(|error| failed(&error))?
        }
        ComparisonFormat::Markdown => ComparisonDocument::new(&comparison, asked).to_markdown(),
        ComparisonFormat::Html => ComparisonDocument::new(&comparison, asked).to_html(),
    };
    Ok(Saved { name: format!("trainplan-comparison.{}", format.extension()), text })
}

fn comparison(runs: &[Rc<RunResult>], view: View) -> Comparison {
    let runs: Vec<&RunResult> = runs.iter().map(Rc::as_ref).collect();
    Comparison::of(&runs, &ComparisonOptions { view, ..ComparisonOptions::default() })
}

/// The runs of a comparison.
#[derive(Default)]
struct FoundRuns {
    runs: Vec<Rc<RunResult>>,
    /// The ids of runs on the server.
    on_server: Vec<String>,
    /// The ids of runs that were not found, each with the reason as a sentence.
    missing: Vec<(String, String)>,
}

impl FoundRuns {
    async fn of(ids: Vec<String>) -> Result<FoundRuns, RequestError> {
        let mut found = FoundRuns::default();
        for id in ids {
            match runs::find(&id).await {
                Ok((run, is_on_server)) => {
                    found.runs.push(run);
                    found.on_server.extend(is_on_server.then_some(id));
                }
                Err(RequestError::Other(why)) => found.missing.push((id, sentence(&why))),
                Err(RequestError::NoServer) => {
                    let why = format!("Run {id} was not dropped in this tab, and there is no server.");
                    found.missing.push((id, why));
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(found)
    }
}

/// The most dropped runs that are compared by default, because more lines in a chart are hard to distinguish.
const MOST_DROPPED: usize = 8;

/// Returns the ids of the comparable runs that were dropped, of the newest one's recipe or like it without one, the oldest first.
/// If none were dropped, of the two newest runs on the server with the newest one's recipe, or of that run alone. Runs are ordered by
/// when they ran, because logs may arrive in any order.
async fn newest() -> Result<Vec<String>, RequestError> {
    let runs = files::runs();
    let ran_at = |place: usize| (runs[place].1.ran_at().map(|(at, _)| at), place);
    let dropped: Vec<(String, Option<String>)> =
        order(runs.len(), &|one, other| ran_at(other).cmp(&ran_at(one)))
            .into_iter()
            .map(|place| (&runs[place].0, Report::of(&runs[place].1, &View::default())))
            .filter(|(_, report)| report.status == Status::Scored && report.comparable.yes)
            .map(|(id, report)| (id.clone(), report.recipe))
            .collect();
    if let Some((_, recipe)) = dropped.first() {
        let alike = dropped.iter().filter(|(_, other)| other == recipe).take(MOST_DROPPED);
        let mut ids: Vec<String> = alike.map(|(id, _)| id.clone()).collect();
        ids.reverse();
        return Ok(ids);
    }
    let items = runs::list("status=scored&sort=-ran_at", RECENT).await?.items;
    let comparable: Vec<(String, Option<String>)> = items
        .iter()
        .filter(|item| item.comparable)
        .map(|item| (item.id.clone(), item.recipe.clone()))
        .collect();
    Ok(match comparable.is_empty() {
        true => items.into_iter().take(1).map(|item| item.id).collect(),
        false => newest_of(&comparable),
    })
}

/// Returns the ids to compare, from ids and recipes, the newest first.
fn newest_of(runs: &[(String, Option<String>)]) -> Vec<String> {
    let Some((newest, recipe)) = runs.first() else { return Vec::new() };
    let before = runs.iter().skip(1).find(|(_, other)| recipe.is_some() && other == recipe);
    before.into_iter().map(|(id, _)| id).chain([newest]).cloned().collect()
}

/// Returns the table row of a run.
fn row(run: &ComparedRun<'_>) -> Row {
    let item = run.item;
    // For a run alone the verdict has the reason and the note on its publication.
    let in_headline = |text: &String| run.runs == 1 && headline::why_alone(item).as_ref() == Some(text);
    let reasons = item.comparable.reasons.iter().filter(|_| item.status == Status::Scored);
    let reasons = reasons.map(|reason| format!("Not comparable: {}", sentence(reason)));
    let slowdown = item.slowdown.as_ref().map(Slowdown::sentence);
    let remarks = item.reason.iter().cloned().chain(reasons).chain(slowdown);
    let remarks = remarks
        .chain(item.notes.iter().cloned())
        .map(|remark| sentence(&remark))
        .filter(|remark| !in_headline(remark));
    Row {
        number: 0,
        id: item.id.clone(),
        path: item.label.clone(),
        status: RowStatus::of(item.status, item.ending),
        remarks: remarks.map(|remark| unbroken(&remark)).collect(),
        campaign: item.campaign.clone(),
        cluster: item.cluster.clone(),
        recipe: None,
        cells: page_cells(ComparisonColumn::page_cells(run)),
    }
}

/// Returns the mappings with their repeats pooled.
fn pooled(comparison: &Comparison) -> Table {
    let table = PooledColumn::terminal(&comparison.pooled).without_empty_columns();
    let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "–".into());
    // A comma before the unit, as in the table of runs.
    let title = |title: &&str| match title.rsplit_once(' ') {
        Some((name, unit @ ("s" | "%"))) => format!("{}, {unit}", capital(name)),
        _ => capital(title),
    };
    Table {
        caption: "Repeats: runs with the same settings, pooled".into(),
        head: table.titles.iter().map(title).collect(),
        rows: table.rows.iter().map(|row| row.iter().map(cell).collect()).collect(),
    }
}

fn plot(comparison: &Comparison, curves: &[Curve]) -> Plot {
    let line = |curve: &Curve| PlotLine {
        name: label(comparison, curve.item).to_string(),
        steps: curve.steps.iter().map(|step| *step as f64).collect(),
        values: curve.values.clone(),
    };
    Plot { lines: curves.iter().map(line).collect(), window: window(&comparison.items), ..Plot::default() }
}

/// Returns the scored steps, if they are the same for all runs.
fn window(items: &[RunFigures]) -> Option<(f64, f64)> {
    let window = items.first()?.window.as_ref()?;
    let same = items.iter().all(|item| item.window.as_ref() == Some(window));
    let (first, last) = window.split_once('-').unwrap_or((window, window));
    same.then_some((first.parse().ok()?, last.parse().ok()?))
}

/// Returns the levels of plans, predictions and published numbers. Runs with the same level share one.
fn levels(comparison: &Comparison) -> Vec<PlotLevel> {
    let mut levels: Vec<PlotLevel> = Vec::new();
    for (kind, what) in [
        (ReferenceLevelKind::Plan, "Planned"),
        (ReferenceLevelKind::Prediction, "Predicted"),
        (ReferenceLevelKind::Published, "Published"),
    ] {
        let mut of_kind: Vec<(PlotLevel, Vec<&str>)> = Vec::new();
        for level in comparison.curves.levels.iter().filter(|level| level.kind == kind) {
            let (of, value) = (label(comparison, level.item), level.step_time_s);
            let interval = level.low_s.zip(level.high_s);
            match of_kind.iter_mut().find(|(other, _)| (other.value, other.interval) == (value, interval)) {
                Some((_, runs)) => runs.push(of),
                None => of_kind.push((PlotLevel { name: what.into(), value, interval }, vec![of])),
            }
        }
        let is_one = of_kind.len() < 2;
        levels.extend(of_kind.into_iter().map(|(level, runs)| match is_one {
            true => level,
            false => PlotLevel { name: format!("{what}: {}", runs.join(", ")), ..level },
        }));
    }
    levels
}

/// Returns the row of a setting. The page has memory in GiB, where the file has bytes.
fn setting(setting: &ConfigurationRow) -> Setting {
    let memory = setting.label.strip_suffix(", bytes");
    let value = |value: &Option<String>| {
        let value = value.as_deref().unwrap_or_default();
        let bytes = memory.and_then(|_| parse_decimal(value));
        bytes.map_or_else(|| value.to_string(), cells::gib)
    };
    Setting {
        group: setting.group.title().to_string(),
        label: memory.map_or_else(|| setting.label.clone(), |memory| format!("{memory}, GiB")),
        values: setting.values.iter().map(value).collect(),
        differs: setting.differs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::result::Intake;
    use trainplan_shared::spec::Spec;

    #[test]
    fn only_runs_like_the_newest_are_compared_with_it() {
        let run = |gpus: u32, job: usize| {
            let path = format!("log-acct.pretrain_llama3.1_8b_fp8_{gpus}_{job}_0.out");
            let mut intake = Intake::new(path, &Spec::default());
            for step in 0..50 {
                let line = format!(
                    "Training epoch 0, iteration {step}/49 | train_step_timing in s: 12.{} |\n",
                    step % 7
                );
                intake.feed(line.as_bytes());
            }
            Rc::new(intake.finish())
        };
        let alike = |gpus: [u32; 3]| -> Vec<Option<u64>> {
            let runs = (1..).zip(gpus).map(|(job, gpus)| run(gpus, job)).collect();
            like_last(runs).iter().map(|run| run.name.job_id).collect()
        };
        assert_eq!(alike([8, 16, 8]), [Some(1), Some(3)]);
        assert_eq!(alike([16, 8, 8]), [Some(2), Some(3)]);
        assert_eq!(alike([8, 8, 16]), [Some(3)]);
        assert!(like_last(Vec::new()).is_empty());
    }
}
