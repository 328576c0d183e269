//! The exact commands that start a scenario, with the scripts of a release or with Megatron-LM.
//!
//! A launch with a release is built in one pass. The `Target` finds the recipe that runs the scenario, a
//! style defines how its script is called, and each option adds what it needs to a `LaunchPlan` or a problem.
//! What the scripts read and support is in [`releases`](crate::releases) and the data files `launch_*.csv`.

mod bridge;
mod check;
mod checkpoint;
mod choice;
mod chunks;
mod configuration;
mod environment;
mod facts;
mod fallback;
mod forced;
mod measuring;
mod megatron_lm;
mod memory;
mod offers;
mod options;
mod outputs;
mod overrides;
mod plan;
mod prepare;
mod readme;
mod release;
mod render;
mod request;
mod runai;
mod script;
mod slurm;
mod style;
mod target;
mod values;
mod word;

pub use bridge::BridgeCommand;
pub use choice::{ClusterType, Style};
pub use fallback::Fallback;
pub use megatron_lm::ScriptSoftware;
pub use options::LaunchOptions;
pub use outputs::Outputs;
pub use plan::{LaunchWarning, WarningTopic};
pub use prepare::Instruction;
pub use request::JobRequest;
pub use script::ShellScript;
pub use values::{EnvOverrides, Gres, SlurmParam, SlurmParams, TimeLimit};
pub use word::ShellWord;

use crate::catalog::{RecipeId, ReferenceClass, Release};
use crate::estimate::MemoryVerdict;
use crate::field::Field;
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::stack::Software;
use facts::Limits;
use plan::LaunchPlan;
use serde::Serialize;
use std::collections::BTreeMap;
use target::Target;

/// The exact commands that start a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Launch {
    /// The release whose scripts run it; `None` for Megatron-LM.
    pub release: Option<Release>,
    /// Why it runs Megatron-LM; `None` if a release runs it, or if that was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    /// The software that the script runs.
    #[serde(skip)]
    pub software: Software,
    /// The launcher.
    pub style: Style,
    /// The cluster manager.
    pub cluster_type: ClusterType,
    /// What to do once before the first launch.
    pub prepare: Vec<Instruction>,
    /// The directory to run the commands in, as a shell word.
    pub cwd: String,
    /// The commands, quoted for a shell.
    pub commands: Vec<String>,
    /// The variables that the script sets. `$NAME` refers to a variable where it runs.
    pub env: BTreeMap<String, ShellWord>,
    /// The variables that must be set where the script runs: secrets, and settings that were not given.
    pub needs: Vec<String>,
    /// The whole script, for a POSIX shell.
    pub script: ShellScript,
    /// What the release's script runs in the end, with the values that it forces; `None` where that isn't known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<BridgeCommand>,
    /// The fields of the layout that the release's recipe sets like the scenario, so that the script doesn't name them, each with its value.
    #[serde(skip)]
    pub by_recipe: Vec<(Field, String)>,
    /// What its job asks Slurm for.
    #[serde(skip)]
    pub job: JobRequest,
    /// Training steps that will run.
    pub steps: u32,
    /// The files that the run writes.
    pub outputs: Outputs,
    /// How to check the run.
    pub check: Vec<Instruction>,
    /// Whether the run can be compared with the published number.
    pub comparable: LaunchComparability,
    /// Step time of the script as a multiple of the estimated one, if its software differs noticeably.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<f64>,
    /// Whether the script's run fits in memory.
    #[serde(skip)]
    pub memory: MemoryVerdict,
    /// Warnings.
    pub warnings: Vec<LaunchWarning>,
}

impl Launch {
    /// Returns the warnings beside an estimate with this verdict: without one about memory that would only repeat it.
    pub fn warnings_beside(&self, verdict: MemoryVerdict) -> impl Iterator<Item = &LaunchWarning> {
        let repeats = self.memory == verdict;
        self.warnings.iter().filter(move |warning| !(repeats && warning.topic == WarningTopic::Memory))
    }
}

/// Whether a run can be compared with the published number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaunchComparability {
    /// Whether it runs like the published measurements.
    pub yes: bool,
    /// Why not: clauses; empty if it does.
    pub reasons: Vec<String>,
    /// The recipe with the published number, if any.
    pub baseline: Option<String>,
    /// Whether that recipe runs on another number of GPUs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_weak_scaling: bool,
}

/// Returns the container image in which a recipe's release runs it, such as `nemo:25.02.01`; none if it is not known.
pub fn container_image(recipe: &RecipeId) -> Option<String> {
    let limits = Limits::of(recipe.release, &recipe.model, &recipe.gpu)?;
    (!limits.image.is_empty()).then(|| format!("nemo:{}", limits.image))
}

/// Returns the launch of a scenario. Without a recipe, a release or a style, the newest release that runs exactly the planned
/// software launches it, otherwise the usual release for such a scenario.
///
/// # Errors
/// Every problem, with values that work.
pub fn launch(scenario: &Scenario, options: &LaunchOptions) -> Result<Launch, Vec<Problem>> {
    if options.style == Some(Style::MegatronLm) {
        let mut launch = megatron_lm::launch(scenario, options)?;
        let (verdict, warning) = memory::check(scenario, options, None);
        launch.memory = verdict;
        launch.warnings.extend(warning);
        return Ok(launch);
    }
    with_release(scenario, options)
}

/// Returns the launch of a scenario. If no style and no release was chosen and no release launches it or has its software, the
/// script runs Megatron-LM directly, and [`Launch::fallback`] says why. Searches, the campaigns that they write, pages and
/// `trainplan launch` all ask this function, so that they name the same launcher.
///
/// # Errors
/// Every problem, with values that work: first those of a launch with a release.
pub fn launch_or_fall_back(scenario: &Scenario, options: &LaunchOptions) -> Result<Launch, Vec<Problem>> {
    let is_free = options.style.is_none() && options.release.is_none();
    let with_megatron_lm =
        || launch(scenario, &LaunchOptions { style: Some(Style::MegatronLm), ..options.clone() });
    // Flags of Megatron-LM turn on parts of such software, a release none.
    let is_unreleased = scenario.recipe.is_none() && !offers::is_released(scenario.options.software);
    if is_free
        && is_unreleased
        && let Ok(launch) = with_megatron_lm()
    {
        return Ok(Launch { fallback: Fallback::for_software(scenario), ..launch });
    }
    let problems = match launch(scenario, options) {
        // An option that a release doesn't support is a mistake, not a reason for other software.
        Err(problems) if is_free && problems.iter().all(|problem| problem.field.is_of_scenario()) => problems,
        other => return other,
    };
    match with_megatron_lm() {
        Ok(launch) => Ok(Launch { fallback: Some(Fallback::of(scenario, problems)), ..launch }),
        Err(own) => Err(problems.into_iter().chain(own).collect()),
    }
}

fn with_release(scenario: &Scenario, options: &LaunchOptions) -> Result<Launch, Vec<Problem>> {
    match as_planned(scenario, options) {
        Some(launch) => Ok(launch),
        None => with_target(Target::find(scenario, options)?, scenario, options),
    }
}

/// Returns the launch with the newest release that runs exactly the planned software, without turning anything off that would slow
/// it noticeably; `None` if no release does, or if the launch can't choose its release.
fn as_planned(scenario: &Scenario, options: &LaunchOptions) -> Option<Launch> {
    if !Target::is_free(scenario, options) {
        return None;
    }
    offers::with_planned_software(scenario).into_iter().find_map(|release| {
        let target = Target::of(release, scenario, options).ok()?;
        with_target(target, scenario, options).ok().filter(|launch| launch.slowdown.is_none())
    })
}

fn with_target(target: Target, scenario: &Scenario, options: &LaunchOptions) -> Result<Launch, Vec<Problem>> {
    let (style, changed) = style::choose(scenario, options, &target).map_err(|problem| vec![problem])?;
    let mut plan = LaunchPlan::new(scenario, options, target, style);
    plan.warnings.extend(changed);
    root(&mut plan);
    let mut invocation = style::apply(&mut plan);
    measuring::apply(&mut plan);
    checkpoint::apply(&mut plan);
    release::apply(&mut plan);
    overrides::apply(&mut plan);
    let slowdown = release::slowdown(&plan);
    measuring::check_time(&mut plan, slowdown);
    megatron_lm::warn_of_unused(&mut plan);
    workload(&mut plan);
    style::finish(&mut plan, &mut invocation);
    if !plan.problems.is_empty() {
        return Err(plan.problems);
    }
    let outputs = Outputs::of(&plan);
    let reference = release::reference(&plan);
    let software = release::software_of_script(&plan);
    let (memory, warning) = memory::check(scenario, options, Some(software));
    plan.warnings.extend(warning);
    Ok(Launch {
        release: Some(plan.release()),
        fallback: None,
        software,
        style,
        cluster_type: options.cluster_type,
        prepare: prepare::steps(&plan),
        cwd: invocation.cwd.shell(),
        commands: vec![render::line(&invocation.command)],
        script: render::script(&plan, &invocation),
        runs: bridge::command(&plan),
        by_recipe: plan.target.layout_by_recipe(scenario),
        job: slurm::request(&plan),
        check: check::steps(&plan, &outputs),
        outputs,
        steps: plan.steps,
        comparable: LaunchComparability {
            yes: plan.incomparable.is_empty(),
            baseline: reference
                .map(|reference| RecipeId { gpus: reference.gpus, ..plan.recipe_id() }.to_string()),
            by_weak_scaling: reference.is_some_and(|reference| reference.class == ReferenceClass::WeakScaled),
            reasons: plan.incomparable,
        },
        slowdown,
        memory,
        needs: plan.needs.into_iter().map(|need| need.name).collect(),
        env: plan.env.into_iter().collect(),
        warnings: plan.warnings,
    })
}

/// Whether the script of a launch needs its release's top directory, because neither the launch nor its variables name it.
#[cfg(feature = "campaign")]
pub(crate) fn needs_top_directory(launch: &Launch, scenario: &Scenario) -> bool {
    let script = launch.release.and_then(|release| facts::ReleaseScript::of(release, &scenario.model));
    script.is_some_and(|script| launch.needs.contains(&script.root))
}

/// Exports the top directory first: other values may refer to it.
fn root(plan: &mut LaunchPlan) {
    let name = &plan.script().root;
    match &plan.options.install_path {
        Some(path) => {
            plan.set(Field::InstallPath, path.clone());
        }
        None => plan.need(
            name,
            match plan.style {
                Style::TrainSh => "the directory for experiments and the container image",
                _ => "the directory where the recipes were set up",
            },
        ),
    }
}

/// Exports LLMB_WORKLOAD if a value refers to it, as in the documents' paths: launch.sh sets it too late.
fn workload(plan: &mut LaunchPlan) {
    const NAME: &str = "LLMB_WORKLOAD";
    let refers = plan.env.iter().any(|(_, value)| value.variables().any(|name| name == NAME));
    if refers && !plan.exports(NAME) && !plan.script().workload.is_empty() {
        // After the top directory, and before every value that refers to it.
        let after_root = usize::from(plan.options.install_path.is_some());
        plan.env.insert(after_root, (NAME.into(), plan.home()));
    }
}
