//! The files that a run writes.

use super::bridge;
use super::choice::ClusterType;
use super::plan::LaunchPlan;
use super::word::ShellWord;
use crate::releases::{ExperimentName, TraceRun};
use serde::{Serialize, Serializer};

/// Paths as shell words, ready to type in a command: quoted where necessary, with wildcards for times and job
/// numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outputs {
    /// The names of the jobs that the launch submits, the measured one first.
    pub jobs: Vec<String>,
    /// The directory of the run.
    #[serde(serialize_with = "shell")]
    pub experiment_dir: ShellWord,
    /// The training logs.
    #[serde(serialize_with = "shell")]
    pub log_glob: ShellWord,
    /// The profiles of a profiled run.
    #[serde(serialize_with = "shell_or_none")]
    pub profile_glob: Option<ShellWord>,
    /// The logs with the NCCL trace of a traced run.
    #[serde(serialize_with = "shell_or_none")]
    pub trace_glob: Option<ShellWord>,
    /// The checkpoints of a run that saves one.
    #[serde(serialize_with = "shell_or_none")]
    pub checkpoint_dir: Option<ShellWord>,
}

impl Outputs {
    pub(super) fn of(plan: &LaunchPlan) -> Outputs {
        match plan.rules().experiment {
            ExperimentName::JobScript => Outputs::of_job_script(plan),
            ExperimentName::Short
            | ExperimentName::WithLayout { .. }
            | ExperimentName::Bridge
            | ExperimentName::BridgeRecipe => Outputs::of_nemo_run(plan),
        }
    }

    /// The outputs of a job script: one directory for each precision, size and GPU count.
    fn of_job_script(plan: &LaunchPlan) -> Outputs {
        let (dtype, size) = (plan.scenario.dtype, plan.size());
        let family = plan.rules().family;
        // The script names directory and log by this variable, if it is set.
        let gpus = plan.options.env.get("SBATCH_GPUS").cloned().unwrap_or_else(|| ShellWord::of(plan.gpus()));
        let results = plan.root().then(format!("/results/{}/{dtype}/{size}/", plan.release())).join(&gpus);
        let log = results
            .clone()
            .then(format!("/log-nemo_{family}_{size}_"))
            .join(&gpus)
            .then("_")
            .then_any()
            .then(".out");
        // Slurm replaces %j by the job's number.
        let log = plan.options.env.get("SRUN_OUTPUT").map_or(log, |chosen| chosen.with_any_for("%j"));
        let profile = || {
            results
                .clone()
                .then(format!("/nsys/{family}-{size}-{dtype}_"))
                .join(&gpus)
                .then("g_")
                .then_any()
                .then(".nsys-rep")
        };
        Outputs {
            jobs: vec!["nemotron".into()],
            log_glob: log,
            profile_glob: plan.options.profile.then(profile),
            trace_glob: None,
            checkpoint_dir: None,
            experiment_dir: results,
        }
    }

    /// The outputs of NeMo-Run: `<experiment>/<experiment>_<unix time>/<job>`.
    fn of_nemo_run(plan: &LaunchPlan) -> Outputs {
        let home = match plan.options.cluster_type {
            ClusterType::Slurm => plan.home(),
            ClusterType::Runai => {
                plan.options.env.get("PVC_DIR").cloned().unwrap_or_else(|| ShellWord::variable("PVC_DIR"))
            }
        };
        let experiment = experiment(plan);
        let run = home.then(format!("/experiments/{experiment}/{experiment}_")).then_any();
        let apart = plan.has_own_jobs();
        let by_bridge = plan.rules().experiment == ExperimentName::Bridge;
        let profiles = if by_bridge { "profile_" } else { "nsys_profile/profile_" };
        let (profile, trace) = (plan.options.profile, plan.options.nccl_trace);
        let plain = match plan.rules().experiment {
            ExperimentName::BridgeRecipe => "training".to_owned(),
            _ => experiment.clone(),
        };
        let job = |suffix: &str| match apart {
            true => format!("{plain}{suffix}"),
            false => plain.clone(),
        };
        let (profiled, traced) = (job("_nsys"), job("_nccltrace"));
        let jobs: Vec<String> = match apart {
            true => [(plan.runs_plain(), &plain), (profile, &profiled), (trace, &traced)]
                .into_iter()
                .filter(|(runs, _)| *runs)
                .map(|(_, job)| job.clone())
                .collect(),
            false => vec![plain.clone()],
        };
        let within = |job: &str, path: &str| run.clone().then(format!("/{job}/{path}"));
        let log = |job: &str| within(job, "log").then_any().then(".out");
        Outputs {
            log_glob: log(jobs.first().unwrap_or(&plain)),
            profile_glob: profile.then(|| within(&profiled, profiles).then_any().then(".nsys-rep")),
            trace_glob: trace.then(|| log(&traced)),
            checkpoint_dir: plan.options.save_checkpoint.then(|| match by_bridge {
                true => ShellWord::variable("CHECKPOINT_DIR"),
                false => within(&experiment, "code/nemo_experiments/default/checkpoints"),
            }),
            experiment_dir: run,
            jobs,
        }
    }
}

/// Returns the name that the release's script gives its experiment.
fn experiment(plan: &LaunchPlan) -> String {
    let scenario = plan.scenario;
    let (layout, batch) = (&scenario.layout, &scenario.batch);
    let (dtype, size, gpus) = (scenario.dtype, plan.size(), plan.gpus());
    let nsys = plan.options.profile && !plan.has_own_jobs();
    let traced = plan.options.nccl_trace && matches!(plan.rules().trace, TraceRun::ReplacesRun(_));
    match plan.rules().experiment {
        ExperimentName::WithLayout { family, vp } => {
            let vp = if vp { layout.vp().to_string() } else { "None".into() };
            format!(
                "pretrain_{family}_{size}_{dtype}_gpus{gpus}_tp{}_pp{}_cp{}_vp{vp}_mbs{}_gbs{}{}",
                layout.tp(),
                layout.pp(),
                layout.cp(),
                batch.mbs(),
                batch.gbs(),
                if traced { "_nccltrace" } else { "" }
            )
        }
        ExperimentName::Bridge => bridge::experiment(plan),
        ExperimentName::BridgeRecipe => plan.bridge_experiment(),
        ExperimentName::Short | ExperimentName::JobScript => {
            let pinned =
                plan.options.env.get("CPU_PER_TASK_PINNING").is_some_and(|cpus| cpus != &ShellWord::of(0));
            let suffixes = [(pinned, "_pinned"), (nsys, "_nsys")];
            let suffix: String = suffixes.iter().filter(|(on, _)| *on).map(|(_, suffix)| *suffix).collect();
            format!("pretrain_{}_{size}_{dtype}_{gpus}{suffix}", plan.rules().family)
        }
    }
}

fn shell<S: Serializer>(word: &ShellWord, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&word.shell())
}

fn shell_or_none<S: Serializer>(word: &Option<ShellWord>, serializer: S) -> Result<S::Ok, S::Error> {
    word.as_ref().map(ShellWord::shell).serialize(serializer)
}
