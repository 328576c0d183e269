//! The best layouts as a campaign that measures them.

use super::found::SearchedGpu;
use crate::cli::launch::why_megatron_lm;
use crate::cli::{Failure, note};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use trainplan_shared::campaign::{Campaign, Name, Run, Settings};
use trainplan_shared::catalog::Recipe;
use trainplan_shared::estimate::{MemoryEstimate, MemoryVerdict};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{
    LaunchOptions, ScriptSoftware, Style, TimeLimit, WarningTopic, launch, launch_or_fall_back,
};
use trainplan_shared::layout::PipelineSplit;
use trainplan_shared::message::Front;
use trainplan_shared::problem::{Problem, one_of};
use trainplan_shared::question::PlannedRun;
use trainplan_shared::range::ValueRange;
use trainplan_shared::releases::Release;
use trainplan_shared::result::Scoring;
use trainplan_shared::search::Candidate;
use trainplan_shared::spec::Spec;
use trainplan_shared::stack::Software;
use trainplan_shared::units::significant;

/// Returns the comment at the top of a campaign whose runs train `steps` steps, with these releases or with Megatron-LM.
fn head(steps: u32, releases: &[Option<Release>]) -> String {
    let windows = releases.iter().map(|release| Scoring::of(None, *release).window.to_string());
    let windows: BTreeSet<String> = windows.collect();
    let scored = one_of(&windows.into_iter().collect::<Vec<_>>());
    format!(
        "\
# The best layouts of a search. Each run trains {steps} steps on synthetic data and measures its step time.
# Steps {scored} are scored: a run needs those, and max-steps sets how many it makes. A run's time-limit is half an hour to start, and
# its steps at the slow end of the prediction.
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
        what: "The file already exists, and a search never overwrites files. Choose another name for --campaign.".into(),
    }
}

/// How many layouts a search ranks for each that a campaign measures. Most layouts have fewer than ten variants that differ in the
/// chunks of a stage or the division of layers only.
pub(super) const RANKED_PER_RUN: usize = 12;

/// The layouts of a GPU type in the order in which a campaign measures them: each layout once, in its best variant, then the other
/// variants.
fn without_variants(layouts: &[PlannedRun]) -> Vec<&PlannedRun> {
    let key = |run: &PlannedRun| Candidate { vp: 1, split: &PipelineSplit::Even, ..run.layout.candidate };
    let mut seen = BTreeSet::new();
    let (mut first, variants): (Vec<_>, Vec<_>) = layouts.iter().partition(|run| seen.insert(key(run)));
    first.extend(variants);
    first
}

/// Writes the campaign.
pub(super) fn write(
    file: &Path,
    cluster: Name,
    found: &[SearchedGpu<'_>],
    measured: MeasuringRuns<'_>,
) -> Result<(), Failure> {
    let Some(first) = found.first() else { return Ok(()) };
    let MeasuringRuns { runs, mut types, releases, scripts, reasons, steps, comments, .. } = measured;
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
    for reason in &reasons {
        note(reason);
    }
    compare_software(first.offer.options.software, &scripts, runs.len());
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
    let mut text = campaign.to_text();
    for (run, comment) in comments {
        let entry = format!("[[run]]\nname = \"{run}\"\n");
        text = text.replacen(&entry, &format!("# {comment}\n{entry}"), 1);
    }
    create(file, &format!("{}{text}", head(steps, &releases)))?;
    note(&format!(
        "wrote {} with {} runs: `trainplan run {0} --dry-run` previews it",
        file.display(),
        campaign.runs.len()
    ));
    Ok(())
}

/// Says for how many of `runs` runs the software of the script differs from the predicted one.
fn compare_software(predicted: Software, scripts: &[ScriptSoftware], runs: usize) {
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
    let which = match differing.len() {
        all if all == runs => "the runs use".to_string(),
        1 => format!("1 of the {runs} runs uses"),
        some => format!("{some} of the {runs} runs use"),
    };
    let factors = if first.is_other() { " and without cluster factors" } else { "" };
    note(&format!(
        "the search predicted {}, but {which} Megatron-LM{without}.{times} Each run is predicted as what its script \
         runs{factors}. `--stack {}` searches for layouts that are best there",
        predicted.title(),
        first.software
    ));
}

/// The runs of a campaign in the making.
#[derive(Default)]
pub(super) struct MeasuringRuns<'a> {
    runs: Vec<Run>,
    /// The GPU types of the runs.
    types: Vec<&'a str>,
    /// What each run measures.
    plans: Vec<&'a PlannedRun>,
    /// The release that launches each run; none for Megatron-LM.
    releases: Vec<Option<Release>>,
    /// The software of the scripts that run Megatron-LM.
    scripts: Vec<ScriptSoftware>,
    /// Sentences that say why runs without an NVIDIA recipe use Megatron-LM.
    reasons: BTreeSet<String>,
    /// The steps that a run makes.
    steps: u32,
    /// Notes on a run, for a comment before it.
    comments: Vec<(Name, String)>,
}

impl<'a> MeasuringRuns<'a> {
    /// Chooses the best layouts of each GPU type in turn, at most as many as are listed, and the published layout of each type. `ranked`
    /// has more layouts of each type than are listed.
    pub(super) fn choose(found: &[SearchedGpu<'a>], ranked: &'a [Vec<PlannedRun>]) -> MeasuringRuns<'a> {
        let mut measured = MeasuringRuns::default();
        let of_types: Vec<_> = found
            .iter()
            .zip(ranked)
            .filter(|(found, _)| found.answer.best().is_some())
            .map(|(found, ranked)| (found, without_variants(ranked)))
            .collect();
        let most = ranked.iter().map(Vec::len).max().unwrap_or_default();
        'all: for place in 0..most {
            for (found, layouts) in &of_types {
                if measured.runs.len() == found.top {
                    break 'all;
                }
                if let Some(plan) = layouts.get(place).copied() {
                    measured.add(found, plan, None, &(place + 1).to_string());
                }
            }
        }
        for (found, _) in &of_types {
            if let Some((recipe, plan)) = &found.answer.published
                && !measured.has(found, plan)
            {
                note(&format!("the campaign also measures the published layout of {}", recipe.id));
                measured.add(found, plan, Some(*recipe), "published");
            }
        }
        measured
    }

    /// Returns those of the ranked layouts of a GPU type that a run measures, with their ranks.
    pub(super) fn among<'b>(
        &self,
        found: &SearchedGpu<'_>,
        ranked: &'b [PlannedRun],
    ) -> Vec<(u32, &'b PlannedRun)> {
        (1..).zip(ranked).filter(|(_, plan)| self.has(found, plan)).collect()
    }

    /// Adds the run of a plan, or says why it can't be launched. `published` is the recipe that publishes its layout.
    fn add(
        &mut self,
        found: &SearchedGpu<'a>,
        plan: &'a PlannedRun,
        published: Option<&'static Recipe>,
        name: &str,
    ) {
        match run(found, plan, published, name) {
            Ok(MeasuringRun { run, release, script, reason, steps, comment }) => {
                self.steps = steps;
                self.comments.extend(comment.map(|comment| (run.name.clone(), comment)));
                self.releases.push(release);
                self.scripts.extend(script);
                self.reasons.extend(reason);
                self.types.push(&found.offer.gpu.id);
                self.plans.push(plan);
                self.runs.push(run);
            }
            Err(problems) => {
                let why: Vec<String> = problems.iter().map(ToString::to_string).collect();
                note(&format!("{} can't be launched: {}", plan.layout.candidate, why.join(" ")));
            }
        }
    }

    /// Returns whether a run measures the same layout on the same GPU type.
    fn has(&self, found: &SearchedGpu<'_>, plan: &PlannedRun) -> bool {
        self.types
            .iter()
            .zip(&self.plans)
            .any(|(gpu, other)| *gpu == found.offer.gpu.id && other.layout.candidate == plan.layout.candidate)
    }
}

/// A run that measures a plan.
struct MeasuringRun {
    run: Run,
    /// The release that launches it; none for Megatron-LM.
    release: Option<Release>,
    /// The software of its script; none if a release runs it.
    script: Option<ScriptSoftware>,
    /// Why it uses Megatron-LM, if NVIDIA has no recipe: a sentence.
    reason: Option<String>,
    /// The steps that it makes.
    steps: u32,
    /// Notes on it.
    comment: Option<String>,
}

/// Seconds from a job's start to its first step: the container, the model and the first compilations.
const START_UP_S: f64 = 1800.0;

/// Returns the run that measures a plan. A published layout uses the script of its recipe if possible; other plans use the launcher
/// that `trainplan launch` chooses. If the software of its script differs noticeably from what the search predicted, the run names
/// it, and is predicted as its script runs.
fn run(
    found: &SearchedGpu<'_>,
    plan: &PlannedRun,
    published: Option<&'static Recipe>,
    place: &str,
) -> Result<MeasuringRun, Vec<Problem>> {
    // Tokens are of the whole run, not of the measurement.
    let mut spec: Spec = plan.spec(found.question, found.offer).with(Field::Tokens, "");
    // With the planned software, also where the search counts that of the launch script.
    let planned = spec.estimate()?;
    let mut scenario = planned.scenario;
    let (mut script, mut reason) = (None, None);
    let mut slowest_s = planned.estimate.step_time_s.high;
    let (release, comment) = match published.map(|recipe| (recipe, as_published(&spec, recipe))) {
        Some((recipe, Ok(own))) => {
            let predicted = own.estimate()?;
            slowest_s = slowest_s.max(predicted.estimate.step_time_s.high);
            (spec, scenario) = (own, predicted.scenario);
            let comment = format!("The published layout, with the script of {}.", recipe.id);
            (Some(recipe.id.release), Some(comment))
        }
        own => {
            let launch = launch_or_fall_back(&scenario, &LaunchOptions::from_spec(&spec)?)?;
            let launcher =
                launch.release.map_or("Megatron-LM".to_owned(), |release| format!("release {release}"));
            let mut comment = own.and_then(|own| why_not_as_published(own, &launcher));
            let differs = match launch.release {
                Some(release) => {
                    spec = spec.with(Field::Release, release.to_string());
                    let mut warnings = launch.warnings.iter();
                    let warning = warnings.find(|warning| warning.topic == WarningTopic::Software);
                    comment = comment.or_else(|| warning.map(|warning| warning.text.text(Front::File)));
                    launch.slowdown.is_some()
                }
                None => {
                    spec = spec.with(Field::Style, Style::MegatronLm.to_string());
                    if let Some(fallback) = &launch.fallback {
                        let why = why_megatron_lm(&scenario, fallback, Front::File);
                        match fallback.release {
                            // All runs of a GPU type and precision have the same reason.
                            None => reason = Some(why),
                            Some(_) => comment = comment.or(Some(why)),
                        }
                    }
                    let of_script = ScriptSoftware::of(&scenario, &LaunchOptions::from_spec(&spec)?);
                    let differs = of_script.differs();
                    script = Some(of_script);
                    differs
                }
            };
            slowest_s *= launch.slowdown.unwrap_or(1.0).max(1.0);
            if differs {
                if launch.software.base() != scenario.options.software.base() {
                    // The factors are of the other software.
                    spec = spec.with(Field::ClusterFactor, "");
                }
                spec = spec.with(Field::Stack, launch.software.to_string());
                scenario = spec.scenario()?;
            }
            (launch.release, comment)
        }
    };
    let steps = launch(&scenario, &LaunchOptions::from_spec(&spec)?)?.steps;
    let limit = TimeLimit::covering(START_UP_S + f64::from(steps) * slowest_s);
    let spec = spec.with(Field::TimeLimit, limit.to_string());
    // A published run fits, whatever its estimate says.
    let has_run = scenario.reference().is_some() && release.is_some();
    if !has_run && MemoryEstimate::of(&scenario.inputs()).verdict() == MemoryVerdict::DoesNotFit {
        let software = scenario.options.software;
        let message = format!("It does not fit in memory with {}.", software.title());
        return Err(vec![Problem::new(Field::Stack, software, message)]);
    }
    let layout = &plan.layout.candidate;
    let text = format!(
        "{}-{}-{}-tp{}-pp{}-{place}",
        found.offer.gpu.id, plan.gpus, layout.dtype, layout.tp, layout.pp
    );
    let settings = Settings { spec, ..Settings::default() };
    Ok(MeasuringRun {
        run: Run { name: Name::closest(&text), after: Vec::new(), settings },
        release,
        script,
        reason,
        steps,
        comment,
    })
}

/// Returns the fields of a plan as its recipe's script runs it, with the recipe's software.
///
/// # Errors
/// Why the script can't.
fn as_published(spec: &Spec, recipe: &Recipe) -> Result<Spec, Vec<Problem>> {
    let mut own = spec.clone().with(Field::Recipe, recipe.id.to_string());
    // The recipe names its model, its GPU type and its software.
    for field in [Field::Model, Field::Gpu, Field::Stack] {
        own.set(field, "");
    }
    if spec.scenario()?.options.software != recipe.options().software {
        // The factors are of the other software.
        own.set(Field::ClusterFactor, "");
    }
    launch(&own.scenario()?, &LaunchOptions::from_spec(&own)?)?;
    Ok(own)
}

/// Returns why `launcher` runs a published layout, and not its recipe's script: a comment. None if the script can.
fn why_not_as_published(
    (recipe, own): (&Recipe, Result<Spec, Vec<Problem>>),
    launcher: &str,
) -> Option<String> {
    let why: Vec<String> = own.err()?.iter().map(|problem| problem.text(Front::File)).collect();
    let why = why.join(" ");
    Some(format!(
        "The published layout of {} with {launcher}, because its own script can't run it: {why}",
        recipe.id
    ))
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
