//! The plans of a campaign's runs, as the journal has them.

use super::names_of;
use crate::journal::Plan;
use crate::slurm::sha256;
use trainplan_shared::campaign::{AfterEnd, Planned};
use trainplan_shared::launch::{Style, TimeLimit};
use trainplan_shared::link;
use trainplan_shared::result::{Comparability, LaunchRecord, PredictionRecord};

/// Returns whether a plan is one of a run's repeats.
pub(super) fn is_of(run: &Planned, plan: &Plan) -> bool {
    plan.name == run.run.name.as_str()
}

/// Returns the plans of a run's repeats.
pub(super) fn plans_of(planned: &Planned) -> Vec<Plan> {
    let Planned { run, launch, predicted, .. } = planned;
    let estimate = &predicted.estimate;
    let basis = estimate.evidence.kind.id();
    let is_job = launch.style == Style::MegatronLm;
    let script = if is_job { launch.script.with_first(STATE_LINES) } else { launch.script.to_string() };
    let plan = |repeat| Plan {
        name: run.name.to_string(),
        repeat,
        repeats: planned.repeats,
        after: run.after.iter().map(|after| after.run.to_string()).collect(),
        after_success: names_of(&run.after, AfterEnd::Success).map(ToString::to_string).collect(),
        retries: planned.retries,
        retry: 0,
        exclude: planned.exclude.map(ToString::to_string),
        singleton: planned.singleton,
        queue_budget_s: planned.queue_budget.map(TimeLimit::seconds).map(u64::from),
        recipe: planned.recipe.clone(),
        scenario: link::write(&planned.spec),
        gpus: predicted.scenario.layout.gpus(),
        script: script.clone(),
        is_job,
        secrets: planned.env.secrets().map(|(name, secret)| (name.to_string(), secret.clone())).collect(),
        job_names: launch.outputs.jobs.clone(),
        experiment_dir: launch.outputs.experiment_dir.shell(),
        log_glob: launch.outputs.log_glob.shell(),
        launched: LaunchRecord {
            release: launch.release.map(|release| release.id().to_string()),
            style: launch.style.to_string(),
            script_sha256: sha256(&script),
            steps: launch.steps,
            comparable: Comparability {
                yes: launch.comparable.yes,
                reasons: launch.comparable.reasons.clone(),
            },
        },
        predicted: PredictionRecord {
            step_time_s: estimate.step_time_s,
            memory_bytes: estimate.memory.total_bytes(),
            capacity_bytes: estimate.memory.capacity_bytes,
            basis: basis.into(),
            calibration: concat!("trainplan ", env!("CARGO_PKG_VERSION")).into(),
        },
        baseline_s: predicted.scenario.reference().map(|reference| reference.baseline.step_time_s),
        upload: planned.upload.cloned(),
    };
    (1..=planned.repeats).map(plan).collect()
}

/// Lines with which a job records its start and its end, for clusters whose Slurm soon forgets jobs.
const STATE_LINES: &str = "\
if [ -n \"${TRAINPLAN_STATE:-}\" ]; then
    echo \"start $SLURM_JOB_ID $(date +%s)\" >>\"$TRAINPLAN_STATE\"
    trap 'code=$?; echo \"end $SLURM_JOB_ID $(date +%s) $code\" >>\"$TRAINPLAN_STATE\"' EXIT
fi
";
