//! The best layouts as a campaign that measures them.

use super::found::SearchedGpu;
use crate::cli::{Failure, note};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use trainplan_shared::campaign::{Campaign, Name, Run, Settings};
use trainplan_shared::estimate::{MemoryEstimate, MemoryVerdict};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{LaunchOptions, ScriptSoftware, Style, launch};
use trainplan_shared::problem::{Problem, one_of};
use trainplan_shared::question::PlannedRun;
use trainplan_shared::range::ValueRange;
use trainplan_shared::result::Scoring;
use trainplan_shared::spec::Spec;
use trainplan_shared::stack::Software;
use trainplan_shared::units::significant;

/// Returns the comment at the top of a campaign whose runs train `steps` steps.
fn head(steps: u32) -> String {
    let scored = Scoring::of(None, None).window;
    format!(
        "\
# The best layouts of a search. Each run trains {steps} steps on synthetic data and measures its step time.
# Steps {scored} are scored: a run needs those, and max-steps sets how many it makes.
# Run it with: trainplan run THIS_FILE
"
    )
}

/// Refuses a file that exists, before the search.
pub(super) fn refuse_existing(file: &Path) -> Result<(), Failure> {
    match file.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(existing(file)),
        Err(error) => Err(Failure::File { path: file.into(), error }),
    }
}

fn existing(file: &Path) -> Failure {
    Failure::Contents {
        path: file.into(),
        what: "The file exists, and a search overwrites nothing. Choose another name for --campaign.".into(),
    }
}

/// Writes the campaign, with the best layouts of each GPU type in turn, at most as many as are listed.
pub(super) fn write(file: &Path, cluster: Name, found: &[SearchedGpu<'_>]) -> Result<(), Failure> {
    let Some(first) = found.first() else { return Ok(()) };
    let mut runs: Vec<Run> = Vec::new();
    let mut types: Vec<&str> = Vec::new();
    let mut scripts: Vec<ScriptSoftware> = Vec::new();
    let mut steps = 0;
    'all: for place in 0..first.top {
        for found in found.iter().filter(|found| found.answer.best().is_some()) {
            if runs.len() == first.top {
                break 'all;
            }
            let Some(plan) = found.answer.layouts.get(place) else { continue };
            match run(found, plan, place + 1) {
                Ok(MeasuringRun { run, script, steps: own }) => {
                    steps = own;
                    scripts.push(script);
                    types.push(&found.offer.gpu.id);
                    runs.push(run);
                }
                Err(problems) => {
                    let why: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    note(&format!("{} can't be launched: {}", plan.layout.candidate, why.join(" ")));
                }
            }
        }
    }
    if runs.is_empty() {
        note(&format!("{} was not written: no layout can be launched", file.display()));
        return Ok(());
    }
    types.sort_unstable();
    types.dedup();
    if types.len() > 1 {
        note(&format!(
            "the campaign has runs on {}: remove those on GPUs that {cluster} doesn't have",
            types.join(" and ")
        ));
    }
    compare_software(first.offer.options.software, &scripts);
    let campaign = Campaign {
        name: Name::closest(&format!("search-{}", first.question.model.title.to_ascii_lowercase())),
        cluster,
        // Written out, so that a user sees what a measurement costs and where to change it.
        defaults: Settings {
            spec: Spec::default().with(Field::MaxSteps, steps.to_string()),
            ..Settings::default()
        },
        runs,
    };
    create(file, &format!("{}{}", head(steps), campaign.to_text()))?;
    note(&format!(
        "wrote {} with {} runs: `trainplan run {0} --dry-run` previews it",
        file.display(),
        campaign.runs.len()
    ));
    Ok(())
}

/// Says how the software of the runs differs from the one that the search predicted.
fn compare_software(predicted: Software, scripts: &[ScriptSoftware]) {
    let differing: Vec<&ScriptSoftware> = scripts.iter().filter(|script| script.differs()).collect();
    let Some(first) = differing.first() else { return };
    let mut slowdowns: Vec<f64> = differing.iter().map(|script| script.slowdown).collect();
    slowdowns.sort_by(f64::total_cmp);
    let times = match (&*slowdowns, first.changes_speed()) {
        ([fastest, ..], true) => {
            let slowest = slowdowns.last().unwrap_or(fastest);
            let range = ValueRange { low: *fastest, high: *slowest };
            let ratio = range.readable(|ratio| significant(ratio, 3));
            format!(" Their steps take about {ratio} times as long.")
        }
        _ => String::new(),
    };
    let lacks = first.lacks();
    let without = match first.is_other() || lacks.is_empty() {
        true => String::new(),
        false => format!(" without {}", one_of(&lacks)),
    };
    let factors = if first.is_other() { " and without cluster factors" } else { "" };
    note(&format!(
        "the search predicted {}, but the runs use Megatron-LM{without}.{times} Each run is predicted as what its script \
         runs{factors}. `--stack {}` searches for layouts that are best there",
        predicted.title(),
        first.software
    ));
}

/// A run that measures a plan.
struct MeasuringRun {
    run: Run,
    /// The software of its script.
    script: ScriptSoftware,
    /// The steps that it makes.
    steps: u32,
}

/// Returns the run that measures a plan. If the software of its script differs noticeably from what the search
/// predicted, the run names it, and is predicted as its script runs.
fn run(found: &SearchedGpu<'_>, plan: &PlannedRun, rank: usize) -> Result<MeasuringRun, Vec<Problem>> {
    // Tokens are of the whole run, not of the measurement.
    let spec = plan.spec(found.question, found.offer).with(Field::Tokens, "");
    let mut spec: Spec = spec.with(Field::Style, Style::MegatronLm.to_string());
    let mut scenario = spec.scenario()?;
    let script = ScriptSoftware::of(&scenario, &LaunchOptions::from_spec(&spec)?);
    if script.differs() {
        spec = spec.with(Field::Stack, script.software.to_string());
        if script.is_other() {
            // The factors are of the other software.
            spec = spec.with(Field::ClusterFactor, "");
        }
        scenario = spec.scenario()?;
    }
    let steps = launch(&scenario, &LaunchOptions::from_spec(&spec)?)?.steps;
    if MemoryEstimate::of(&scenario.inputs()).verdict() == MemoryVerdict::DoesNotFit {
        let message = format!("It does not fit in memory with {}.", script.software.title());
        return Err(vec![Problem::new(Field::Stack, script.software, message)]);
    }
    let layout = &plan.layout.candidate;
    let text = format!(
        "{}-{}-{}-tp{}-pp{}-{rank}",
        found.offer.gpu.id, plan.gpus, layout.dtype, layout.tp, layout.pp
    );
    let settings = Settings { spec, ..Settings::default() };
    Ok(MeasuringRun { run: Run { name: Name::closest(&text), after: Vec::new(), settings }, script, steps })
}

/// Writes a new file.
fn create(file: &Path, text: &str) -> Result<(), Failure> {
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let written = created.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => existing(file),
        _ => Failure::File { path: file.into(), error },
    })
}
