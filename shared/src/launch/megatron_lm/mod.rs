//! Any scenario, without a release: a batch job that runs Megatron-LM's own pre-training program.
//!
//! A job is made in one pass, like the plan of a release: the model, its layout and its training each add
//! their flags, or a problem. The flags and their values are those of Megatron-LM's `arguments.py`.
//! `megatron_lm_flags.csv` lists them with their source, and a test checks every emitted flag against it.

mod experts;
mod graphs;
mod job;
mod model;
mod name;
mod parallel;
mod pattern;
mod precision;
mod script;
mod slurm;
mod software;
mod steps;
mod support;
mod training;

use super::choice::{ClusterType, Style};
use super::options::LaunchOptions;
use super::plan::{LaunchPlan, LaunchWarning, WarningTopic};
use super::{Launch, LaunchComparability};
use crate::estimate::MemoryVerdict;
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::problem::{Problem, one_of};
use crate::scenario::Scenario;
use crate::units::{longer, significant};
use job::MegatronJob;
pub use software::ScriptSoftware;

/// Returns the launch of a scenario with Megatron-LM, without the check of its memory.
///
/// # Errors
/// Every problem, with values that work.
pub(super) fn launch(scenario: &Scenario, options: &LaunchOptions) -> Result<Launch, Vec<Problem>> {
    let mut job = MegatronJob::new(scenario, options);
    unused(&mut job);
    let slowdown = compare_software(&mut job);
    slurm::check(&mut job, slowdown);
    model::apply(&mut job);
    parallel::apply(&mut job);
    precision::apply(&mut job);
    graphs::apply(&mut job);
    training::apply(&mut job);
    job.take_environment();
    if !job.problems.is_empty() {
        return Err(job.problems);
    }
    let outputs = steps::outputs(&job);
    Ok(Launch {
        release: None,
        fallback: None,
        software: software::software(scenario, options),
        runs: None,
        by_recipe: Vec::new(),
        style: Style::MegatronLm,
        cluster_type: ClusterType::Slurm,
        prepare: steps::prepare(&job),
        cwd: ".".into(),
        commands: vec![format!("sbatch launch-{}.sh", job.name)],
        script: script::script(&job),
        job: slurm::request(&job),
        check: steps::check(&job, &outputs),
        outputs,
        steps: job.steps,
        comparable: comparable(&job),
        slowdown,
        memory: MemoryVerdict::default(),
        needs: job.needs().into_iter().map(String::from).collect(),
        env: job.env.into_iter().collect(),
        warnings: job.warnings,
    })
}

/// Warns if the estimate is for other software than the script runs, and says how much that matters. Returns how many times as long
/// its steps take, if that is noticeable.
fn compare_software(job: &mut MegatronJob) -> Option<f64> {
    let script = ScriptSoftware::of(job.scenario, job.options);
    let planned = job.scenario.options.software;
    let lacks_graphs = script.software.properties().cuda_graphs != planned.properties().cuda_graphs;
    if !script.differs() && !lacks_graphs {
        return None;
    }
    let lacks = script.lacks();
    let mut text = match (script.is_other(), lacks.is_empty()) {
        (true, _) => format!("The plan is for {}, but this script runs Megatron-LM", planned.title()),
        (false, true) => "The script runs Megatron-LM".to_string(),
        (false, false) => format!("The script runs Megatron-LM without {}", one_of(&lacks)),
    };
    if script.changes_speed() {
        text += &format!(": steps take about {}", longer(script.slowdown, "with the planned software"));
    }
    text += ".";
    let wants_graphs = job.scenario.options.uses_cuda_graphs(&job.scenario.architecture);
    let obstacle = support::graph_obstacle(job.scenario, job.options, script.software.properties());
    if let Some(why) = obstacle.filter(|_| wants_graphs && !script.is_other()) {
        text += &format!(" CUDA graphs are off because {why}.");
    }
    let more = script.more_bytes / f64::from(1 << 30);
    if more.abs() >= 0.1 {
        let amount = significant(more.abs(), 2);
        text += &format!(" Each GPU needs {amount} GiB {}.", if more > 0.0 { "more" } else { "less" });
    }
    job.warnings.push(LaunchWarning {
        topic: WarningTopic::Software,
        text: text.into(),
        fix: message!["Set ", Setting::new(Field::Stack, script.software), " for an estimate of the script."],
    });
    script.changes_speed().then_some(script.slowdown)
}

/// Returns whether the run can be compared with a published number, which other software reached.
fn comparable(job: &MegatronJob) -> LaunchComparability {
    let published = job.scenario.published_as().filter(|_| job.scenario.baseline().is_some());
    let mut reasons = match published {
        Some(recipe) => {
            vec![format!("it runs Megatron-LM, not the software of release {}", recipe.id.release)]
        }
        None => Vec::new(),
    };
    reasons.extend(job.incomparable.iter().cloned());
    LaunchComparability {
        yes: reasons.is_empty(),
        reasons,
        baseline: published.map(|recipe| recipe.id.to_string()),
        by_weak_scaling: false,
    }
}

/// Refuses or warns of options that have no effect without a release.
fn unused(job: &mut MegatronJob) {
    let options = job.options;
    if let Some(release) = options.release {
        let message = message![
            Setting::new(Field::Style, Style::MegatronLm),
            " runs your checkout of Megatron-LM, not a release. Remove ",
            Field::Release,
            ", or choose another style."
        ];
        job.refuse(Problem::new(Field::Release, release, message));
    }
    if options.cluster_type != ClusterType::Slurm {
        let message = message![Setting::new(Field::Style, Style::MegatronLm), " launches only on Slurm."];
        job.refuse(Problem::new(Field::ClusterType, options.cluster_type, message).suggest(["slurm"]));
    }
    if options.recipe_dir.is_some() {
        job.warn(message!["Megatron-LM has no recipe, so ", Field::RecipeDir, " has no effect."], "");
    }
    let contained = options.container_image.is_some();
    if contained && options.venv.is_some() {
        job.warn(
            message!["In a container, ", Field::Venv, " has no effect."],
            message!["Remove ", Field::Venv, " or ", Field::ContainerImage, "."],
        );
    }
    if !contained && options.mounts.is_some() {
        job.warn(
            message!["Without a container, ", Field::Mounts, " has no effect."],
            message!["Set ", Field::ContainerImage, "."],
        );
    }
}

/// Warns of options that only Megatron-LM uses, in a launch with a release.
pub(super) fn warn_of_unused(plan: &mut LaunchPlan) {
    if plan.options.container_image.is_some() && plan.style != Style::TrainSh {
        let style = Setting::new(Field::Style, Style::MegatronLm);
        plan.warn(
            message![
                Field::ContainerImage,
                " has no effect without ",
                style,
                ": a release has its own container."
            ],
            "",
        );
    }
}
