//! Certification of a cluster: a campaign of a release's recipes at one GPU count, and what its runs prove.
//!
//! A run is compared with the best reference that exists: the published result of its recipe, that of the same layout at another
//! GPU count, or, where nothing is published, the prediction.

mod html;

use super::{Campaign, Name, Run, Settings};
use crate::catalog::{Catalog, Recipe, Reference, ReferenceClass, Release};
use crate::estimate::Interval;
use crate::field::Field;
use crate::log::Stat;
use crate::problem::{Problem, one_of};
use crate::result::{LaunchRecord, sentence, steady_difference};
use crate::spec::Spec;
use crate::units::{group_digits, readable, readable_range, significant};
use serde::Serialize;
use std::fmt::Write;

/// The least speed, in percent of the published one, of a run that passes: the threshold of NVIDIA's exemplar certification.
pub const LEAST_SPEED_PERCENT: f64 = 95.0;

/// The speed, in percent of the reference's, above which a pass gets a remark. The same recipe on the same GPUs differs from its
/// reference by a few percent, so a run that gains twice what it may lose probably did other work.
const MOST_SPEED_PERCENT: f64 = 110.0;

/// Returns the campaign that certifies a cluster: every recipe of a release at full size for a GPU type and a GPU count.
///
/// # Errors
/// The release has no such recipe; the problem names the GPU counts that have some.
pub fn certification(
    cluster: &Name,
    gpu: &str,
    gpus: u32,
    release: Release,
    repeats: u32,
) -> Result<Campaign, Problem> {
    let catalog = Catalog::embedded();
    let on_gpu = |recipe: &&Recipe| {
        recipe.id.release == release && recipe.id.gpu == gpu && exclusion(recipe).is_none()
    };
    let recipes = || catalog.recipes().iter().filter(on_gpu);
    let runs: Vec<Run> = recipes().filter(|recipe| recipe.id.gpus == gpus).map(run).collect();
    if runs.is_empty() {
        let mut counts: Vec<u32> = recipes().map(|recipe| recipe.id.gpus).collect();
        counts.sort_unstable();
        counts.dedup();
        let title = catalog.gpu(gpu).map_or(gpu, |gpu| &gpu.name);
        return Err(match counts.is_empty() {
            true => {
                let message = format!("Release {release} has no recipe for the {title}.");
                Problem::new(Field::Release, release, message)
            }
            false => {
                let message = format!("Release {release} has no recipe for {gpus} {title}s.");
                Problem::new(Field::Gpus, gpus, message).allow(counts)
            }
        });
    }
    let defaults = Settings { repeats: Some(repeats).filter(|repeats| *repeats > 1), ..Settings::default() };
    Ok(Campaign {
        name: Name::closest(&format!("certify-{gpu}-{gpus}-{release}")),
        cluster: cluster.clone(),
        defaults,
        runs,
    })
}

/// Returns the name of a recipe's run: its model and precision.
fn run_name(recipe: &Recipe) -> String {
    format!("{}-{}", recipe.id.model, recipe.id.dtype)
}

fn run(recipe: &Recipe) -> Run {
    let spec = Spec::default().with(Field::Recipe, recipe.id.to_string());
    Run {
        name: Name::closest(&run_name(recipe)),
        after: Vec::new(),
        settings: Settings { spec, ..Settings::default() },
    }
}

/// Why a certification doesn't run a recipe of its release and GPU type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UntestedReason {
    /// The model has recipes in this precision, but only for other GPU counts.
    GpuCount,
    /// Its batch doesn't grow with the GPUs.
    StrongScaling,
    /// Its recipe for this GPU count has fewer layers than the model.
    Proxy,
    /// It is a variant of another recipe.
    Variant,
}

impl UntestedReason {
    const ALL: [UntestedReason; 4] = [
        UntestedReason::GpuCount,
        UntestedReason::StrongScaling,
        UntestedReason::Proxy,
        UntestedReason::Variant,
    ];
}

/// A recipe that a certification doesn't run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UntestedRecipe {
    /// Its model and precision, named like a run, and its variant.
    pub recipe: String,
    /// Why it doesn't run.
    pub reason: UntestedReason,
    /// The GPU counts for which the release has it; in place of a proxy, those for which it has the full size.
    pub gpus: Vec<u32>,
}

/// Returns why no certification runs a recipe, whatever the GPU count.
fn exclusion(recipe: &Recipe) -> Option<UntestedReason> {
    if recipe.id.strong {
        return Some(UntestedReason::StrongScaling);
    }
    if recipe.id.variant.is_some() {
        return Some(UntestedReason::Variant);
    }
    Catalog::embedded().is_proxy(recipe).then_some(UntestedReason::Proxy)
}

/// Returns the recipes of a release for a GPU type that a certification at this GPU count doesn't run.
pub fn untested(gpu: &str, gpus: u32, release: Release) -> Vec<UntestedRecipe> {
    let recipes = Catalog::embedded().recipes().iter();
    let recipes: Vec<&Recipe> =
        recipes.filter(|recipe| recipe.id.release == release && recipe.id.gpu == gpu).collect();
    let runs = |recipe: &Recipe| recipe.id.gpus == gpus && exclusion(recipe).is_none();
    let is_tested = |name: &str| recipes.iter().any(|recipe| runs(recipe) && run_name(recipe) == name);
    let is_proxy = |recipe: &Recipe| exclusion(recipe) == Some(UntestedReason::Proxy);
    let has_proxy = |name: &str| {
        recipes.iter().any(|recipe| recipe.id.gpus == gpus && is_proxy(recipe) && run_name(recipe) == name)
    };
    let mut found: Vec<UntestedRecipe> = Vec::new();
    for recipe in &recipes {
        let mut name = run_name(recipe);
        let reason = match exclusion(recipe) {
            Some(reason) if recipe.id.gpus == gpus => reason,
            None if is_tested(&name) => continue,
            None if has_proxy(&name) => UntestedReason::Proxy,
            None => UntestedReason::GpuCount,
            _ => continue,
        };
        if let Some(variant) = &recipe.id.variant {
            let _ = write!(name, "+{variant}");
        }
        let counts = (!is_proxy(recipe)).then_some(recipe.id.gpus);
        match found.iter_mut().find(|known| known.reason == reason && known.recipe == name) {
            Some(known) => known.gpus.extend(counts),
            None => found.push(UntestedRecipe { recipe: name, reason, gpus: counts.into_iter().collect() }),
        }
    }
    found
}

/// What a run of a certification is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RunReference {
    /// The published result of its recipe.
    Published {
        /// Seconds per step.
        step_time_s: f64,
    },
    /// The published result of the same layout at another GPU count.
    WeakScaled {
        /// Seconds per step.
        step_time_s: f64,
        /// The GPU count of the result.
        gpus: u32,
    },
    /// The prediction: nothing is published.
    Predicted {
        /// Seconds per step, with the interval of 80 %.
        step_time_s: Interval,
    },
}

impl RunReference {
    /// Returns the reference of a recipe, with the prediction for it.
    pub fn of(recipe: Option<&str>, predicted: Interval) -> RunReference {
        let catalog = Catalog::embedded();
        let recipe = recipe.and_then(|id| catalog.recipe(id).ok());
        RunReference::new(recipe.and_then(|recipe| catalog.reference(recipe)), predicted)
    }

    /// Returns a published result as the reference, or the prediction if there is none.
    pub fn new(published: Option<Reference>, predicted: Interval) -> RunReference {
        match published {
            None => RunReference::Predicted { step_time_s: predicted },
            Some(reference) => {
                let step_time_s = reference.baseline.step_time_s;
                match reference.class {
                    ReferenceClass::Exact => RunReference::Published { step_time_s },
                    ReferenceClass::WeakScaled => {
                        RunReference::WeakScaled { step_time_s, gpus: reference.gpus }
                    }
                }
            }
        }
    }

    /// Returns its step time, in seconds.
    pub fn step_time_s(self) -> f64 {
        match self {
            RunReference::Published { step_time_s } | RunReference::WeakScaled { step_time_s, .. } => {
                step_time_s
            }
            RunReference::Predicted { step_time_s } => step_time_s.mid,
        }
    }

    /// Returns the longest step time with which a run passes, in seconds.
    fn limit_s(self) -> f64 {
        match self {
            RunReference::Predicted { step_time_s } => step_time_s.high,
            published => published.step_time_s() * 100.0 / LEAST_SPEED_PERCENT,
        }
    }

    /// Returns the shortest step time that a healthy cluster explains, in seconds: for a prediction, not above its interval.
    fn least_s(self) -> f64 {
        let least_s = self.step_time_s() * 100.0 / MOST_SPEED_PERCENT;
        match self {
            RunReference::Predicted { step_time_s } => least_s.min(step_time_s.low),
            _ => least_s,
        }
    }

    /// Returns its step time and where it comes from: `12.4 s, published`.
    pub fn in_words(self) -> String {
        self.written(readable)
    }

    /// Returns the same, with a published step time written by a function.
    fn written(self, number: fn(f64) -> String) -> String {
        match self {
            RunReference::Published { step_time_s } => format!("{} s, published", number(step_time_s)),
            RunReference::WeakScaled { step_time_s, gpus } => {
                format!("{} s, published on {gpus} GPUs", number(step_time_s))
            }
            RunReference::Predicted { step_time_s } => format!(
                "{} s ({}), predicted",
                readable(step_time_s.mid),
                readable_range((step_time_s.low, step_time_s.high), readable)
            ),
        }
    }
}

/// What a run proves about a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// It is fast enough, by the repeats that were scored.
    Passed,
    /// It is slower than 95 % of the published speed, or than the interval of the prediction.
    Slow,
    /// None of its repeats has a step time.
    NotScored,
}

/// A run of a certification, with all of its repeats.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CertifiedRun {
    /// Its name in the campaign.
    pub run: String,
    /// The recipe.
    pub recipe: Option<String>,
    /// GPUs.
    pub gpus: u32,
    /// How often it ran.
    pub repeats: usize,
    /// The mean step time of each repeat that was scored, in seconds.
    pub step_times_s: Vec<f64>,
    /// The step time by which each of these repeats is judged, in seconds.
    pub judged_times_s: Vec<f64>,
    /// What it is compared with.
    pub reference: RunReference,
    /// The speed of its scored steps in percent of the reference's; null if no repeat was scored.
    pub speed_percent: Option<f64>,
    /// The seconds per step by which it is judged, the mean of its repeats: of the scored steps, or of all steps after the warm-up if
    /// fewer than 5 are scored. Null if no repeat was scored.
    pub judged_s: Option<f64>,
    /// The speed by which it is judged, in percent of the reference's; null if no repeat was scored.
    pub judged_speed_percent: Option<f64>,
    /// What it proves.
    pub verdict: RunVerdict,
    /// What to check before the pass counts, as a sentence; null unless the run is much faster than its reference.
    pub remark: Option<String>,
    /// Why repeats have no step time: sentences.
    pub reasons: Vec<String>,
    /// What could explain that it is slow: sentences. Null if nothing is known, or if it isn't slow.
    pub cause: Option<String>,
    /// How it was launched; null if unknown.
    pub launch: Option<LaunchRecord>,
    /// The ids of its stored results.
    pub results: Vec<String>,
}

impl CertifiedRun {
    /// Returns a run of `repeats` repeats, with the step times of those that were scored: the scored one, and that by which the
    /// repeat is judged. `reasons` says why the others were not scored.
    pub fn new(
        run: &str,
        recipe: Option<&str>,
        gpus: u32,
        (repeats, step_times_s): (usize, Vec<(f64, f64)>),
        predicted: Interval,
        reasons: Vec<String>,
    ) -> CertifiedRun {
        let reference = RunReference::of(recipe, predicted);
        let (step_times_s, judged_times_s): (Vec<f64>, Vec<f64>) = step_times_s.into_iter().unzip();
        let (scored_s, judged_s) = (mean(&step_times_s), mean(&judged_times_s));
        let speed = |step_time_s: f64| 100.0 * reference.step_time_s() / step_time_s;
        let verdict = match judged_s {
            None => RunVerdict::NotScored,
            Some(judged_s) if judged_s > reference.limit_s() => RunVerdict::Slow,
            Some(_) => RunVerdict::Passed,
        };
        let remark = judged_s.filter(|judged_s| *judged_s < reference.least_s()).map(|judged_s| {
            format!(
                "It ran at {} % of the reference's speed, more than a healthy cluster explains: check that it ran the whole model, \
                 batch and precision of the recipe.",
                significant(speed(judged_s), 3)
            )
        });
        let missing = repeats.saturating_sub(step_times_s.len());
        let mut sentences: Vec<String> = Vec::new();
        if repeats > 1 && missing > 0 {
            let were = if missing == 1 { "was" } else { "were" };
            sentences.push(format!("{missing} of {repeats} repeats {were} not scored."));
        }
        for reason in reasons {
            let reason = sentence(&reason);
            if !sentences.contains(&reason) {
                sentences.push(reason);
            }
        }
        let reasons = if sentences.is_empty() { Vec::new() } else { vec![sentences.join(" ")] };
        CertifiedRun {
            run: run.to_owned(),
            recipe: recipe.map(str::to_owned),
            gpus,
            speed_percent: scored_s.map(speed),
            judged_s,
            judged_speed_percent: judged_s.map(speed),
            repeats,
            step_times_s,
            judged_times_s,
            reference,
            verdict,
            remark,
            reasons,
            cause: None,
            launch: None,
            results: Vec::new(),
        }
    }

    /// Returns the number of its repeats that have no step time.
    pub fn missing(&self) -> usize {
        self.repeats.saturating_sub(self.step_times_s.len())
    }

    fn measured(&self) -> String {
        let Some((scored_s, judged_s)) = mean(&self.step_times_s).zip(self.judged_s) else {
            return "-".to_owned();
        };
        let repeats = self.averaged().map_or(String::new(), |repeats| format!(", {repeats}"));
        let scored = steady_difference(scored_s, judged_s)
            .map_or(String::new(), |_| format!(" (scored: {} s)", precise(scored_s)));
        format!("{} s{repeats}{scored}", precise(judged_s))
    }

    /// Returns which repeats its measured step time is the mean of; none for a single run.
    fn averaged(&self) -> Option<String> {
        match (self.step_times_s.len(), self.repeats) {
            (0, _) | (1, 0..=1) => None,
            (1, all) => Some(format!("1 of {all} repeats")),
            (several, all) if several >= all => Some(format!("mean of {several}")),
            (several, all) => Some(format!("mean of {several} of {all} repeats")),
        }
    }

    /// Returns the shortest and the longest step time of its repeats, in seconds; none if fewer than two were scored.
    fn spread_s(&self) -> Option<(f64, f64)> {
        let [first, others @ ..] = &*self.judged_times_s else { return None };
        let ends = |(low, high): (f64, f64), time_s: &f64| (low.min(*time_s), high.max(*time_s));
        (!others.is_empty()).then(|| others.iter().fold((*first, *first), ends))
    }

    fn speed(&self) -> String {
        self.judged_speed_percent.map_or("-".to_owned(), |percent| format!("{percent:.1}"))
    }
}

impl UntestedRecipe {
    /// Returns its name, with the GPU counts that it needs if these are why it didn't run.
    fn in_words(&self) -> String {
        let counts: Vec<String> = self.gpus.iter().map(|gpus| group_digits(f64::from(*gpus))).collect();
        let counts = one_of(&counts);
        match self.reason {
            UntestedReason::GpuCount => format!("{} ({counts} GPUs)", self.recipe),
            UntestedReason::Proxy if !counts.is_empty() => {
                format!("{} (full size: {counts} GPUs)", self.recipe)
            }
            _ => self.recipe.clone(),
        }
    }
}

impl RunVerdict {
    /// Returns the verdict as a word or two.
    pub fn in_words(self) -> &'static str {
        match self {
            RunVerdict::Passed => "passed",
            RunVerdict::Slow => "slow",
            RunVerdict::NotScored => "not scored",
        }
    }
}

/// Returns a step time, in seconds, with a digit more than other tables have: the speed beside it would seem wrong otherwise.
fn precise(step_time_s: f64) -> String {
    significant(step_time_s, 4)
}

/// Returns the mean; none without values.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// What a campaign proves about a cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// The cluster's name.
    pub cluster: String,
    /// GPU type.
    pub gpu: String,
    /// GPU count of each run.
    pub gpus: u32,
    /// The release whose recipes ran.
    pub release: Release,
    /// When the runs began: a date and time.
    pub began: String,
    /// The runs.
    pub runs: Vec<CertifiedRun>,
    /// The release's recipes for the GPU type that did not run.
    pub untested: Vec<UntestedRecipe>,
    /// The command that measures it again.
    pub command: String,
}

impl Certificate {
    /// Returns the runs with this verdict.
    pub fn with(&self, verdict: RunVerdict) -> impl Iterator<Item = &CertifiedRun> {
        self.runs.iter().filter(move |run| run.verdict == verdict)
    }

    /// Returns the result as a sentence.
    pub fn summary(&self) -> String {
        let count = |verdict| self.with(verdict).count();
        let (slow, open) = (count(RunVerdict::Slow), count(RunVerdict::NotScored));
        let predicted =
            self.runs.iter().filter(|run| matches!(run.reference, RunReference::Predicted { .. }));
        let mut text = format!("{} of {} runs passed", count(RunVerdict::Passed), self.runs.len());
        if slow > 0 {
            let _ = write!(text, ", {slow} {} slow", if slow == 1 { "is" } else { "are" });
        }
        if open > 0 {
            let _ = write!(text, ", {open} {} not scored", if open == 1 { "was" } else { "were" });
        }
        text += ".";
        match predicted.count() {
            0 => {}
            predicted => {
                let they_were = if predicted == 1 { "it was" } else { "they were" };
                let _ = write!(
                    text,
                    " For {predicted} of them nothing is published: {they_were} compared with the prediction."
                );
            }
        }
        let judged = self.runs.iter().filter(|run| run.verdict != RunVerdict::NotScored);
        match judged.filter(|run| run.missing() > 0).count() {
            0 => {}
            1 => text += " 1 run was judged without all of its repeats.",
            several => {
                let _ = write!(text, " {several} runs were judged without all of their repeats.");
            }
        }
        text
    }

    /// Returns what to check before passes count: a sentence for each run that is much faster than its reference, after its name.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.runs.iter().filter_map(|run| Some(format!("{}: {}", run.run, run.remark.as_ref()?)))
    }

    /// Returns what was not tested: a sentence for each reason.
    pub fn untested_in_words(&self) -> impl Iterator<Item = String> {
        UntestedReason::ALL.into_iter().filter_map(move |reason| {
            let of_reason = self.untested.iter().filter(|recipe| recipe.reason == reason);
            let names: Vec<String> = of_reason.map(UntestedRecipe::in_words).collect();
            let gpus = group_digits(self.gpus.into());
            let why = match reason {
                UntestedReason::GpuCount => format!("the release has no recipe for {gpus} GPUs"),
                UntestedReason::StrongScaling => {
                    "their batch doesn't grow with the GPUs (strong scaling)".to_owned()
                }
                UntestedReason::Proxy => {
                    format!("their recipes for {gpus} GPUs have fewer layers than the model (proxies)")
                }
                UntestedReason::Variant => "they are variants of other recipes".to_owned(),
            };
            (!names.is_empty()).then(|| format!("Not tested because {why}: {}.", names.join(", ")))
        })
    }

    /// Returns the rows of a table: run, measured, reference, speed in percent, verdict.
    pub fn rows(&self) -> impl Iterator<Item = [String; 5]> {
        self.runs.iter().map(|run| {
            let verdict = run.verdict.in_words().to_owned();
            [run.run.clone(), run.measured(), run.reference.written(precise), run.speed(), verdict]
        })
    }

    fn title(&self) -> String {
        format!("Certification of {}", self.cluster)
    }

    /// Returns what was certified, and when: a sentence.
    fn subject(&self, began: &str) -> String {
        let Certificate { gpu, gpus, release, .. } = self;
        let gpu = Catalog::embedded().gpu(gpu).map_or(gpu.as_str(), |gpu| &gpu.name);
        format!("{gpus} × {gpu}, recipes of release {release}, {began}.")
    }

    /// Returns the report to hand on, in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# {}\n\n{}\n\n{}\n\n| Run | Step time | Reference | Speed, % | Verdict |\n|---|--:|---|--:|---|\n",
            self.title(),
            self.subject(&self.began),
            self.summary()
        );
        for cells in self.rows() {
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        let _ = write!(text, "\n{}\n", criteria());
        let reasons: Vec<String> = self
            .runs
            .iter()
            .flat_map(|run| run.reasons.iter().map(|why| format!("- {}: {why}\n", run.run)))
            .collect();
        let remarks: Vec<String> = self.remarks().map(|remark| format!("- {remark}\n")).collect();
        if !remarks.is_empty() {
            let _ =
                write!(text, "\nRuns that are much faster than their references:\n\n{}", remarks.concat());
        }
        if !reasons.is_empty() {
            let _ = write!(text, "\nWhy runs or repeats were not scored:\n\n{}", reasons.concat());
        }
        let causes: Vec<String> = self
            .runs
            .iter()
            .filter_map(|run| Some(format!("- {}: {}\n", run.run, run.cause.as_ref()?)))
            .collect();
        if !causes.is_empty() {
            let _ = write!(text, "\nWhat could explain slow runs:\n\n{}", causes.concat());
        }
        for untested in self.untested_in_words() {
            let _ = writeln!(text, "\n{untested}");
        }
        let _ = writeln!(text, "\nTo measure it again:\n\n    {}", self.command);
        text
    }
}

/// Returns when a run passes, and how sure that is: sentences.
fn criteria() -> String {
    format!(
        "A run passes if it reaches {LEAST_SPEED_PERCENT} % of the published speed. A published result of the same layout \
         at another GPU count counts, because with weak scaling a step takes the same time. Where nothing is published, the run \
         passes if its step time is not above the 80 % interval of Trainplan's prediction: one healthy cluster in \
         ten is expected to fail that test. Where fewer than {few} steps are scored, a run is judged by the mean of all its steps \
         after the warm-up, because a single step may miss a stall.",
        few = Stat::FEW
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: Release = Release::R26_06_01;

    #[test]
    fn the_gpu_counts_of_an_untested_recipe_are_a_list() {
        let gpus = vec![16, 32, 64, 1024];
        let reason = UntestedReason::GpuCount;
        let untested = UntestedRecipe { recipe: "llama3.1-8b".to_owned(), reason, gpus };
        assert_eq!(untested.in_words(), "llama3.1-8b (16, 32, 64 or 1,024 GPUs)");
    }

    fn of(recipe: &str, times: &[f64]) -> CertifiedRun {
        judged(recipe, times.iter().map(|time| (*time, *time)).collect())
    }

    fn judged(recipe: &str, times: Vec<(f64, f64)>) -> CertifiedRun {
        let predicted = Interval { low: 9.0, mid: 10.0, high: 11.0 };
        CertifiedRun::new("run", Some(recipe), 64, (times.len().max(1), times), predicted, Vec::new())
    }

    #[test]
    fn a_certification_runs_every_recipe_of_a_size() {
        let cluster: Name = "alpha".parse().unwrap();
        let campaign = certification(&cluster, "h100", 64, RELEASE, 2).unwrap();
        assert_eq!((campaign.name.as_str(), campaign.runs.len()), ("certify-h100-64-26.06.01", 8));
        let (read, _) = Campaign::parse_with_lines(&campaign.to_text()).unwrap();
        assert_eq!(read, campaign);
        let problem = certification(&cluster, "h100", 48, RELEASE, 1).unwrap_err();
        assert!(problem.allowed.contains(&"64".to_owned()) && problem.field == Field::Gpus);
        assert_eq!(certification(&cluster, "a100", 64, RELEASE, 1).unwrap_err().field, Field::Release);
    }

    #[test]
    fn recipes_that_do_not_run_have_a_reason() {
        let of = |gpu: &str, gpus: u32, release: Release, name: &str| -> Vec<UntestedReason> {
            let named = untested(gpu, gpus, release).into_iter().filter(|recipe| recipe.recipe == name);
            named.map(|recipe| recipe.reason).collect()
        };
        assert!(of("h100", 64, RELEASE, "llama3.1-70b-fp8").is_empty());
        assert_eq!(of("h100", 64, RELEASE, "deepseek-v3-fp8"), [UntestedReason::GpuCount]);
        let strong = of("gb200", 128, Release::R25_12, "nemotron4-340b-bf16");
        assert!(strong.contains(&UntestedReason::StrongScaling), "{strong:?}");
        let proxy = of("h100", 64, Release::R25_04, "llama3.1-405b-bf16");
        assert_eq!(proxy, [UntestedReason::Proxy]);
        // Proxies for other GPU counts are not listed.
        assert!(!of("h100", 512, Release::R25_04, "llama3.1-405b-bf16").contains(&UntestedReason::Proxy));
        let variant = of("h100", 256, Release::BridgeMain, "qwen3-235b-a22b-bf16+hybridep_dev");
        assert_eq!(variant, [UntestedReason::Variant]);
    }

    #[test]
    fn a_proxy_is_listed_once_with_the_gpu_counts_of_the_full_size() {
        let certificate = Certificate {
            cluster: "alpha".to_owned(),
            gpu: "h100".to_owned(),
            gpus: 64,
            release: Release::R25_04,
            began: "2026-11-25 02:00".to_owned(),
            runs: Vec::new(),
            untested: untested("h100", 64, Release::R25_04),
            command: "trainplan certify".to_owned(),
        };
        let sentences: Vec<String> = certificate.untested_in_words().collect();
        let said =
            "Not tested because their recipes for 64 GPUs have fewer layers than the model (proxies): ";
        let [proxies] =
            &sentences.iter().filter(|told| told.contains("llama3.1-405b-bf16")).collect::<Vec<_>>()[..]
        else {
            panic!("{sentences:?}")
        };
        let full = "llama3.1-405b-bf16 (full size: 512, 1,024 or 2,048 GPUs)";
        assert!(proxies.starts_with(said) && proxies.contains(full), "{proxies}");
    }

    #[test]
    fn a_run_is_judged_by_the_best_reference() {
        // 1,664 tokens/s per GPU are published at 64 GPUs.
        let published = 256.0 * 8192.0 / (1664.0 * 64.0);
        let exact = "llama3.1-70b/h100/fp8/64@26.06.01";
        assert_eq!(of(exact, &[published / 0.951]).verdict, RunVerdict::Passed);
        assert_eq!(of(exact, &[published / 0.949]).verdict, RunVerdict::Slow);
        let scaled = of("llama3.1-70b/h100/fp8/512@26.06.01", &[published]);
        assert!(matches!(scaled.reference, RunReference::WeakScaled { gpus: 64, .. }));
        assert!(scaled.speed_percent.is_some_and(|percent| (percent - 100.0).abs() < 1e-3));
        let predicted = "llama3.1-8b/h100/bf16/64@26.06.01";
        assert_eq!(of(predicted, &[10.9]).verdict, RunVerdict::Passed);
        assert_eq!(of(predicted, &[11.1]).verdict, RunVerdict::Slow);
        assert_eq!(of(predicted, &[]).verdict, RunVerdict::NotScored);
    }

    #[test]
    fn a_run_that_stalls_beside_its_scored_step_is_slow() {
        let published = 256.0 * 8192.0 / (1664.0 * 64.0);
        let stalls = judged("llama3.1-70b/h100/fp8/64@26.06.01", vec![(published, published / 0.9)]);
        assert_eq!(stalls.verdict, RunVerdict::Slow);
        let speeds = [stalls.speed_percent, stalls.judged_speed_percent].map(|speed| speed.unwrap().round());
        assert_eq!(speeds, [100.0, 90.0]);
        assert_eq!(stalls.measured(), "21.88 s (scored: 19.69 s)");
    }

    #[test]
    fn a_run_that_is_much_faster_than_its_reference_passes_with_a_remark() {
        let published = 256.0 * 8192.0 / (1664.0 * 64.0);
        let exact = "llama3.1-70b/h100/fp8/64@26.06.01";
        let predicted = "llama3.1-8b/h100/bf16/64@26.06.01";
        for (recipe, time, has_remark) in [
            (exact, published / 1.59, true),
            (exact, published / 1.11, true),
            (exact, published / 1.09, false),
            // 9.00 to 11.0 s: 111 % of the speed is still within the interval.
            (predicted, 9.01, false),
            (predicted, 8.99, true),
        ] {
            let run = of(recipe, &[time]);
            assert_eq!((run.verdict, run.remark.is_some()), (RunVerdict::Passed, has_remark), "{time}");
        }
        let fast = of(exact, &[published / 1.59]);
        let start = "It ran at 159 % of the reference's speed,";
        assert!(fast.remark.is_some_and(|remark| remark.starts_with(start)));
        assert_eq!(of(exact, &[]).remark, None);
    }

    #[test]
    fn a_run_is_judged_by_the_repeats_that_were_scored() {
        let recipe = Some("llama3.1-70b/h100/fp8/64@26.06.01");
        let predicted = Interval { low: 9.0, mid: 10.0, high: 11.0 };
        let run = |repeats: usize, times: &[f64], reasons: &[&str]| {
            let times: Vec<(f64, f64)> = times.iter().map(|time| (*time, *time)).collect();
            let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
            CertifiedRun::new("run", recipe, 64, (repeats, times), predicted, reasons)
        };
        let cancelled = "the job was cancelled";
        let one = run(2, &[19.8], &[cancelled]);
        assert_eq!((one.verdict, one.missing()), (RunVerdict::Passed, 1));
        assert_eq!(one.measured(), "19.8 s, 1 of 2 repeats");
        assert_eq!(one.reasons, ["1 of 2 repeats was not scored. The job was cancelled."]);
        assert_eq!(run(3, &[21.0, 21.2], &[cancelled]).verdict, RunVerdict::Slow);
        assert_eq!(run(3, &[21.0, 21.2], &[cancelled]).measured(), "21.1 s, mean of 2 of 3 repeats");
        assert_eq!(run(2, &[21.0, 21.2], &[]).measured(), "21.1 s, mean of 2");
        let none = run(2, &[], &[cancelled, cancelled]);
        assert_eq!(none.verdict, RunVerdict::NotScored);
        assert_eq!(none.reasons, ["2 of 2 repeats were not scored. The job was cancelled."]);
        assert_eq!(run(1, &[], &[cancelled]).reasons, ["The job was cancelled."]);
        let certificate = Certificate {
            cluster: "alpha".to_owned(),
            gpu: "h100".to_owned(),
            gpus: 64,
            release: RELEASE,
            began: "2026-11-25 02:00".to_owned(),
            runs: vec![one],
            untested: Vec::new(),
            command: "trainplan certify".to_owned(),
        };
        assert_eq!(certificate.summary(), "1 of 1 runs passed. 1 run was judged without all of its repeats.");
    }

    #[test]
    fn a_report_says_what_was_compared_with_what() {
        let certificate = Certificate {
            cluster: "alpha".to_owned(),
            gpu: "h100".to_owned(),
            gpus: 64,
            release: RELEASE,
            began: "2026-11-25 02:00".to_owned(),
            runs: vec![
                of("llama3.1-70b/h100/fp8/64@26.06.01", &[20.0]),
                of("llama3.1-8b/h100/bf16/64@26.06.01", &[12.0]),
            ],
            untested: untested("h100", 64, RELEASE),
            command: "trainplan certify".to_owned(),
        };
        let text = certificate.markdown();
        assert!(!text.contains("much faster"), "{text}");
        let fast = vec![of("llama3.1-70b/h100/fp8/64@26.06.01", &[10.0])];
        let text_of_fast = Certificate { runs: fast, ..certificate.clone() }.markdown();
        assert!(
            text_of_fast.contains("\n- run: It ran at 197 % of the reference's speed,"),
            "{text_of_fast}"
        );
        let summary = "1 of 2 runs passed, 1 is slow. For 1 of them nothing is published: it was compared with the prediction.\n";
        assert!(text.contains(summary), "{text}");
        assert!(text.contains("19.69 s, published |") && text.contains("(9.00–11.0), predicted"), "{text}");
        assert!(text.contains("\n\nNot tested because the release has no recipe for 64 GPUs: "), "{text}");
        assert!(text.contains("llama3.1-405b-bf16 (1,024 GPUs)"), "{text}");
        assert!(text.contains("qwen3-235b-a22b-bf16 (256 or 512 GPUs)"), "{text}");
    }
}
