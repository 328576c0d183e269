//! The best layouts as a campaign that measures them.

use super::found::SearchedGpu;
use crate::cli::{Failure, note};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use trainplan_shared::campaign::{Campaign, Name, Run, Settings};
use trainplan_shared::estimate::{MemoryEstimate, MemoryVerdict};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{LaunchOptions, Style, launch};
use trainplan_shared::problem::Problem;
use trainplan_shared::question::PlannedRun;
use trainplan_shared::spec::Spec;
use trainplan_shared::stack::Stack;

const HEAD: &str = "\
# The best layouts of a search. Each run trains a few steps on synthetic data and measures its step time.
# Run it with: trainplan run THIS_FILE
";

/// The software that a run is predicted as if it is not NVIDIA's. Scripts set Megatron-LM up like NVIDIA's recipes for plans of
/// their software, and leave its defaults for others.
const LAUNCHED: Stack = Stack::MegatronLm014;

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
    'all: for place in 0..first.top {
        for found in found.iter().filter(|found| found.answer.best().is_some()) {
            if runs.len() == first.top {
                break 'all;
            }
            let Some(plan) = found.answer.layouts.get(place) else { continue };
            match run(found, plan, place + 1) {
                Ok(run) => {
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
    let predicted = first.offer.options.software;
    if predicted.is_nvidia_megatron() {
        note(&format!(
            "the runs use Megatron-LM, set up like NVIDIA's recipes. The search predicted {}, which can be faster",
            predicted.title()
        ));
    } else if predicted.base() != LAUNCHED {
        note(&format!(
            "the runs use {}, not {}, and are predicted as such, without cluster factors. `--stack {LAUNCHED}` searches for \
             layouts that are best there",
            LAUNCHED.title(),
            predicted.title()
        ));
    }
    let campaign = Campaign {
        name: Name::closest(&format!("search-{}", first.question.model.title.to_ascii_lowercase())),
        cluster,
        defaults: Settings::default(),
        runs,
    };
    create(file, &format!("{HEAD}{}", campaign.to_text()))?;
    note(&format!(
        "wrote {} with {} runs: `trainplan run {0} --dry-run` previews it",
        file.display(),
        campaign.runs.len()
    ));
    Ok(())
}

/// Returns the run that measures a plan.
fn run(found: &SearchedGpu<'_>, plan: &PlannedRun, rank: usize) -> Result<Run, Vec<Problem>> {
    // Tokens are of the whole run, not of the measurement.
    let spec = plan.spec(found.question, found.offer).with(Field::Tokens, "");
    let mut spec: Spec = spec.with(Field::Style, Style::MegatronLm.to_string());
    let software = found.offer.options.software;
    if !software.is_nvidia_megatron() && software.base() != LAUNCHED {
        spec = spec.with(Field::Stack, LAUNCHED.to_string()).with(Field::ClusterFactor, "");
    }
    let scenario = spec.scenario()?;
    launch(&scenario, &LaunchOptions::from_spec(&spec)?)?;
    if MemoryEstimate::of(&scenario.inputs()).verdict() == MemoryVerdict::DoesNotFit {
        let message = format!("It does not fit in memory with {}.", LAUNCHED.title());
        return Err(vec![Problem::new(Field::Stack, LAUNCHED, message)]);
    }
    let layout = &plan.layout.candidate;
    let text = format!(
        "{}-{}-{}-tp{}-pp{}-{rank}",
        found.offer.gpu.id, plan.gpus, layout.dtype, layout.tp, layout.pp
    );
    Ok(Run {
        name: Name::closest(&text),
        after: Vec::new(),
        settings: Settings { spec, ..Settings::default() },
    })
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
