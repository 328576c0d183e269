//! Any scenario, without a release: a batch job that runs Megatron-LM's own pre-training program.
//!
//! A job is made in one pass, like the plan of a release: the model, its layout and how it trains each add their
//! flags, or say why Megatron-LM can't do what is asked. Which flags there are, and what they take, was read in
//! Megatron-LM's `arguments.py`; `megatron_lm_flags.csv` says where, and a test holds every emitted flag against it.

mod job;
mod model;
mod name;
mod parallel;
mod pattern;
mod precision;
mod script;
mod slurm;
mod steps;
mod training;

use super::choice::{ClusterType, Style};
use super::options::Options;
use super::plan::{Plan, flags_of};
use super::{Comparable, Launch};
use crate::field::Field;
use crate::problem::Problem;
use crate::scenario::Scenario;
use job::Job;

/// Makes the launch of a scenario by Megatron-LM.
///
/// # Errors
/// Everything that can't work, with what would.
pub(super) fn launch(scenario: &Scenario, options: &Options) -> Result<Launch, Vec<Problem>> {
    let mut job = Job::new(scenario, options);
    unused(&mut job);
    slurm::check(&mut job);
    model::apply(&mut job);
    parallel::apply(&mut job);
    precision::apply(&mut job);
    training::apply(&mut job);
    job.take_environment();
    if !job.problems.is_empty() {
        return Err(job.problems);
    }
    let outputs = steps::outputs(&job);
    Ok(Launch {
        release: None,
        style: Style::MegatronLm,
        cluster_type: ClusterType::Slurm,
        prepare: steps::prepare(&job),
        cwd: ".".into(),
        commands: vec![format!("sbatch launch-{}.sh", job.name)],
        script: script::script(&job),
        check: steps::check(&job, &outputs),
        outputs,
        steps: job.steps,
        comparable: comparable(&job),
        needs: job.needs().into_iter().map(String::from).collect(),
        env: job.env.into_iter().collect(),
        warnings: job.warnings,
    })
}

/// What it would take instead of the release's software.
fn comparable(job: &Job) -> Comparable {
    let published = job.scenario.published_as().filter(|_| job.scenario.baseline().is_some());
    let mut reasons = match published {
        Some(recipe) => {
            vec![format!("Megatron-LM runs it, not the software of release {}", recipe.id.release)]
        }
        None => Vec::new(),
    };
    reasons.extend(job.incomparable.iter().cloned());
    Comparable { yes: reasons.is_empty(), reasons, baseline: published.map(|recipe| recipe.id.to_string()) }
}

/// Says which options have no meaning without a release, and which stand in the way.
fn unused(job: &mut Job) {
    let options = job.options;
    if let Some(release) = options.release {
        let what = "is not used by --style megatron-lm, which runs your checkout of Megatron-LM";
        job.refuse(Problem::clause(Field::Release, release, what).allowed("none, or another style"));
    }
    if options.cluster_type != ClusterType::Slurm {
        let what = "is no kind of cluster that --style megatron-lm launches on";
        job.refuse(Problem::clause(Field::ClusterType, options.cluster_type, what).nearest(["slurm"]));
    }
    if options.recipe_dir.is_some() {
        job.warn("Megatron-LM has no recipe: --recipe-dir has no effect.", "Leave it out.");
    }
    let contained = options.container_image.is_some();
    if contained && options.venv.is_some() {
        job.warn("In a container --venv has no effect.", "Leave it out, or --container-image.");
    }
    if !contained && options.mounts.is_some() {
        job.warn("Without a container --mounts has no effect.", "Give --container-image, or leave it out.");
    }
}

/// For the styles of a release, which bring their own container.
pub(super) fn say_what_is_its_own(plan: &mut Plan) {
    if let Some(flags) = flags_of(&[(Field::ContainerImage, plan.options.container_image.is_some())]) {
        plan.warn(
            format!(
                "{flags} is for --style megatron-lm and has no effect: a release brings its own container."
            ),
            "Leave it out.",
        );
    }
}
