//! Runs beside each other, beside their plan and beside what is published.

use super::{files, runs};
use crate::message::sentence;
use crate::message::{Compared, Plot, PlotLevel, PlotLine, Row, Saved, Setting, Source, Trouble};
use std::rc::Rc;
use trainplan_shared::compare::{Against, Comparison, Curve, Item, LevelKind, Options, Verdict};
use trainplan_shared::field::Field;
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{Report, RunResult, Scoring, View};
use trainplan_shared::tables::{ComparedRun, ComparisonColumn, cells};
use trainplan_shared::units::minute;

/// Among how many of the server's runs the newest comparison is looked for.
const RECENT: usize = 50;

/// The runs of these ids beside each other, by a view; of no ids the newest that there is something to say of.
pub(super) async fn compare(ids: Vec<String>, view: View) -> Result<Compared, Trouble> {
    let ids = if ids.is_empty() { newest().await? } else { ids };
    let Found { runs, on_server, missing } = Found::of(ids).await?;
    let asked = view.window;
    let comparison = comparison(&runs, view);
    let headline = headline(&comparison);
    let mut rows: Vec<Row> = ComparedRun::all(&comparison, asked).iter().map(row).collect();
    if let [alone] = rows.as_mut_slice() {
        // What the headline says already.
        alone.remarks.retain(|remark| sentence(remark) != headline);
    }
    Ok(Compared {
        headline,
        verdict: verdict(&comparison).to_string(),
        unlike: unlike(&comparison),
        notes: notes(&comparison),
        method: format!(
            "Intervals are {:.0} %: {}.",
            comparison.difference.level * 100.0,
            comparison.difference.method
        ),
        step_time: Plot { levels: levels(&comparison), ..plot(&comparison, &comparison.curves.step_time_s) },
        loss: plot(&comparison, &comparison.curves.loss),
        settings: comparison.configuration.iter().map(setting).collect(),
        rows,
        missing,
        on_server,
        scored: scored(&comparison, asked).unwrap_or_default(),
        source: source(&runs, &comparison),
    })
}

/// Which steps of a run alone were scored, by whose choice, and where to choose others.
fn scored(comparison: &Comparison, asked: Option<Window>) -> Option<String> {
    let [item] = comparison.items.as_slice() else { return None };
    let told = scoring(asked, item).sentence(item.window.as_deref()?);
    Some(format!("{told} Any others can be chosen under {}.", Field::Window.label()))
}

fn scoring(asked: Option<Window>, item: &Item) -> Scoring {
    Scoring::of(asked, item.release.as_deref().and_then(|release| release.parse().ok()))
}

/// Where a run alone comes from.
fn source(runs: &[Rc<RunResult>], comparison: &Comparison) -> Source {
    let ([run], [item]) = (runs, comparison.items.as_slice()) else { return Source::default() };
    let jobs = run.carried.as_ref().map_or(&[][..], |carried| &carried.jobs);
    let started = jobs.first().and_then(|job| job.started.as_deref());
    Source {
        path: item.path.clone(),
        ran: started.or(run.source.written_at.as_deref()).map_or_else(String::new, minute),
        recipe: item.recipe.clone().unwrap_or_default(),
        is_carried: run.carried.is_some(),
    }
}

/// What holds of the runs, as a word; of one alone whether it was scored.
fn verdict(comparison: &Comparison) -> &'static str {
    match (comparison.verdict, comparison.items.first()) {
        (Some(verdict), _) => verdict.id(),
        (None, Some(item)) if item.status != Status::Scored => item.status.id(),
        (None, _) => "alone",
    }
}

/// The same as a file.
pub(super) async fn file(ids: Vec<String>, view: View, form: &str) -> Result<Saved, Trouble> {
    let asked = view.window;
    let comparison = comparison(&Found::of(ids).await?.runs, view);
    let failed = |error: &dyn std::fmt::Display| Trouble::Other(error.to_string());
    let text = match form {
        "csv" => {
            let csv = ComparisonColumn::csv(&ComparedRun::all(&comparison, asked)).to_csv();
            csv.map_err(|error| failed(&error))?
        }
        _ => serde_json::to_string_pretty(&comparison).map_err(|error| failed(&error))?,
    };
    Ok(Saved { name: format!("trainplan-comparison.{form}"), text })
}

fn comparison(runs: &[Rc<RunResult>], view: View) -> Comparison {
    let runs: Vec<&RunResult> = runs.iter().map(Rc::as_ref).collect();
    let remedy = Some("fill in under Recipe what it ran");
    Comparison::of(&runs, &Options { view, remedy, ..Options::default() })
}

/// Runs that were looked for.
#[derive(Default)]
struct Found {
    runs: Vec<Rc<RunResult>>,
    /// Those that the server has.
    on_server: Vec<String>,
    /// Those that nobody has, each with the reason.
    missing: Vec<(String, String)>,
}

impl Found {
    async fn of(ids: Vec<String>) -> Result<Found, Trouble> {
        let mut found = Found::default();
        for id in ids {
            match runs::find(&id).await {
                Ok((run, is_on_server)) => {
                    found.runs.push(run);
                    found.on_server.extend(is_on_server.then_some(id));
                }
                Err(Trouble::Other(why)) => found.missing.push((id, why)),
                Err(Trouble::NoServer) => {
                    found
                        .missing
                        .push((id, "there is no server here, and it was not dropped in this tab".into()));
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(found)
    }
}

/// The two newest comparable runs of the newest run's recipe, the older one first; or the newest run, to stand beside its
/// plan and the published number. What was dropped here is newer than what the server has.
async fn newest() -> Result<Vec<String>, Trouble> {
    let dropped: Vec<(String, Option<String>)> = files::runs()
        .into_iter()
        .rev()
        .map(|run| (Report::of(&run, &View::default()), run))
        .filter(|(report, _)| report.status == Status::Scored && report.comparable.yes)
        .map(|(report, run)| (run.id.to_string(), report.recipe))
        .collect();
    if !dropped.is_empty() {
        return Ok(newest_of(&dropped));
    }
    let items = runs::list("status=scored", RECENT).await?.items;
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

/// The same of ids and recipes, the newest first.
fn newest_of(runs: &[(String, Option<String>)]) -> Vec<String> {
    let Some((newest, recipe)) = runs.first() else { return Vec::new() };
    let before = runs.iter().skip(1).find(|(_, other)| recipe.is_some() && other == recipe);
    before.into_iter().map(|(id, _)| id).chain([newest]).cloned().collect()
}

fn label(comparison: &Comparison, place: usize) -> &str {
    comparison.items.get(place).map_or("", |item| &item.label)
}

/// What holds of the runs, in a sentence or two.
fn headline(comparison: &Comparison) -> String {
    let reference = label(comparison, 0);
    let mut said = match comparison.difference.each.as_slice() {
        [] => String::new(),
        [one] => of_pair(reference, label(comparison, one.item), one),
        several => {
            let told = |one: &Against| {
                let percent = one.step_time.map(|change| change.percent).filter(|_| one.comparable);
                let percent = percent.map_or(String::new(), |percent| format!(" ({percent:+.1} % a step)"));
                format!("{} {}{percent}", label(comparison, one.item), one.verdict.title())
            };
            let (alike, unlike): (Vec<&Against>, _) = several.iter().partition(|one| one.comparable);
            let mut counted: Vec<String> = alike.into_iter().map(told).collect();
            match unlike.len() {
                0..=2 => counted.extend(unlike.into_iter().map(told)),
                // Which ones stands below, each with its reason.
                count => counted.push(format!("{count} runs not comparable")),
            }
            format!("Against {reference}: {}.", counted.join("; "))
        }
    };
    if let Some(last) = comparison.items.last() {
        let of_plan = last.plan.and_then(|plan| {
            let where_to = if plan.within? { "within" } else { "outside" };
            Some(format!("{} than planned, {where_to} the interval", cells::deviation_from_plan(plan)))
        });
        let speed = last.baseline.and_then(|baseline| baseline.speed_percent);
        let of_published = speed.map(|speed| format!("runs at {speed:.1} % of the published speed"));
        let both: Vec<String> = of_published.into_iter().chain(of_plan).collect();
        if !both.is_empty() {
            said = format!("{said} {} {}.", last.label, both.join(" and "));
        } else if comparison.items.len() == 1 {
            said = sentence(&alone(last));
        }
    }
    said.trim().to_string()
}

/// Why a run alone was not scored, or what there is nothing to hold it against for.
fn alone(item: &Item) -> String {
    match (&item.reason, &item.recipe) {
        (Some(reason), _) => reason.clone(),
        (None, None) if !item.comparable.yes => {
            "It is not held against a published number, since what it is said to be does not fit its log"
                .to_string()
        }
        // What it ran is known, and something else than what is published.
        (None, None) if item.mfu.is_some() => {
            let note = item.notes.iter().find(|note| note.starts_with("nothing is published"));
            note.cloned().unwrap_or_else(|| "There is no published number to hold it against".to_string())
        }
        (None, None) => {
            "There is no published number to hold it against, since what it ran is not known: fill in its \
            recipe under Recipe"
                .to_string()
        }
        (None, Some(recipe)) if item.baseline.is_some() => {
            format!("It is not comparable with what is published for {recipe}")
        }
        (None, Some(recipe)) => format!("Nothing is published for {recipe} to hold it against"),
    }
}

/// Which of two runs is faster, by how much, and how sure that is.
fn of_pair(reference: &str, other: &str, against: &Against) -> String {
    let change = against.step_time;
    let interval = change.and_then(|change| Some((change.low?, change.high?)));
    match (against.verdict, change, interval) {
        (verdict @ (Verdict::Faster | Verdict::Slower), Some(change), Some((low, high))) => {
            let (word, sign) = if verdict == Verdict::Slower { ("longer", 1.0) } else { ("less", -1.0) };
            let mut ends = [low * sign, high * sign];
            ends.sort_by(f64::total_cmp);
            let [low, high] = ends;
            format!(
                "{other} takes {:.2} % {word} per step than {reference} ({low:.2} to {high:.2} %).",
                change.percent * sign
            )
        }
        // Why stands below.
        (Verdict::NotComparable, ..) => format!("{other} is not comparable with {reference}."),
        _ => format!("{other} against {reference}: {}.", against.text.trim_end_matches('.')),
    }
}

/// What makes the comparison doubtful, loudly.
fn unlike(comparison: &Comparison) -> Vec<String> {
    let of = |against: &Against| {
        let other = label(comparison, against.item);
        format!("{other} is no run like {}: {}.", label(comparison, 0), against.reasons.join(", "))
    };
    comparison.difference.each.iter().filter(|against| !against.comparable).map(of).collect()
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let of = |against: &Against| {
        let other = label(comparison, against.item).to_string();
        against.notes.iter().map(move |note| format!("{other}: {note}.")).collect::<Vec<_>>()
    };
    comparison.difference.each.iter().flat_map(of).collect()
}

/// A run and its figures.
fn row(run: &ComparedRun<'_>) -> Row {
    let item = run.item;
    let mut remarks: Vec<String> = item.reason.iter().cloned().collect();
    let reasons = item.comparable.reasons.iter().filter(|_| item.status == Status::Scored);
    remarks.extend(reasons.map(|reason| format!("Not comparable: {reason}.")));
    remarks.extend(item.notes.iter().cloned());
    Row {
        number: 0,
        id: item.id.clone(),
        path: item.label.clone(),
        status: item.status.id().to_string(),
        remarks,
        campaign: item.campaign.clone(),
        cluster: item.cluster.clone(),
        cells: ComparisonColumn::page_cells(run),
    }
}

fn plot(comparison: &Comparison, curves: &[Curve]) -> Plot {
    let line = |curve: &Curve| PlotLine {
        name: label(comparison, curve.item).to_string(),
        steps: curve.steps.iter().map(|step| *step as f64).collect(),
        values: curve.values.clone(),
    };
    Plot { lines: curves.iter().map(line).collect(), levels: Vec::new(), window: window(&comparison.items) }
}

/// The scored steps, where they are the same of every run.
fn window(items: &[Item]) -> Option<(f64, f64)> {
    let window = items.first()?.window.as_ref()?;
    let same = items.iter().all(|item| item.window.as_ref() == Some(window));
    let (first, last) = window.split_once('-').unwrap_or((window, window));
    same.then_some((first.parse().ok()?, last.parse().ok()?))
}

/// Plans and published numbers; what several runs have in common once.
fn levels(comparison: &Comparison) -> Vec<PlotLevel> {
    let mut levels: Vec<PlotLevel> = Vec::new();
    for (kind, what) in [(LevelKind::Plan, "Planned"), (LevelKind::Published, "Published")] {
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

fn setting(setting: &trainplan_shared::compare::Setting) -> Setting {
    Setting {
        group: setting.group.title().to_string(),
        label: setting.label.clone(),
        values: setting.values.iter().map(|value| value.clone().unwrap_or_default()).collect(),
        differs: setting.differs,
    }
}
