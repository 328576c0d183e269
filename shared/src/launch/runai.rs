//! Run:ai, which release 25.12 can submit to through NeMo-Run.

use super::offers;
use super::plan::{Plan, flags_of};
use crate::field::Field;
use crate::problem::Problem;

/// What launch.sh reads on Run:ai, and what to set it to.
const NEEDS: [(&str, &str); 7] = [
    ("HF_TOKEN", "your Hugging Face token"),
    ("BASE_URL", "the address of the Run:ai API, https://HOST/api/v1"),
    ("APP_ID", "the name of a Run:ai application"),
    ("APP_SECRET", "the secret of that application"),
    ("PROJECT_NAME", "the Run:ai project to run in"),
    ("PVC_DIR", "the path of nemo-run in the mounted volume"),
    ("RUN_CONF_MOUNTS", "the volume claims to mount, each as name:path:claim"),
];

pub(super) fn apply(plan: &mut Plan) {
    if plan.script().variable_of(Field::ClusterType).is_none() {
        let what = format!("is no kind of cluster that release {} launches on", plan.release());
        let problem = Problem::clause(Field::ClusterType, "runai", what).nearest(["slurm"]);
        plan.refuse(offers::elsewhere(plan.scenario, problem));
        return;
    }
    for (name, what) in NEEDS {
        let by_option = name == "RUN_CONF_MOUNTS" && plan.options.mounts.is_some();
        if !by_option && plan.options.env.get(name).is_none() {
            plan.need(name, what);
        }
    }
    claims(plan);
    plan.warn(
        "launch.sh passes HF_TOKEN and APP_SECRET on as arguments: while it submits, whoever can list \
         processes on that machine can read them.",
        "Submit from a machine that others can't log in to.",
    );
    if plan.options.env.get("RUN_CONF_IMAGE").is_some() {
        plan.warn(
            "RUN_CONF_IMAGE has no effect on Run:ai, which pulls the release's own container.",
            "Leave it out.",
        );
    }
    let options = plan.options;
    let without_use = flags_of(&[
        (Field::Account, options.account.is_some()),
        (Field::Partition, options.partition.is_some()),
        (Field::Gres, options.gres.is_some()),
        (Field::TimeLimit, options.time_limit.is_some()),
        (Field::SlurmParams, options.slurm_params.iter().next().is_some()),
    ]);
    if let Some(flags) = without_use {
        plan.warn(format!("Run:ai has no use for {flags}."), "Leave it out.");
    }
}

/// Run:ai mounts volume claims, not directories.
fn claims(plan: &mut Plan) {
    let Some(mounts) = &plan.options.mounts else { return };
    let shown = mounts.to_string();
    let is_claim = |mount: &str| {
        let parts: Vec<&str> = mount.split(':').collect();
        matches!(parts.as_slice(), [name, path, claim]
            if !name.is_empty() && path.starts_with('/') && !claim.is_empty())
    };
    if let Some(mount) = shown.split(',').find(|mount| !is_claim(mount)) {
        let problem = Problem::clause(Field::Mounts, mount, "is no volume claim of Run:ai");
        plan.refuse(problem.allowed("name:path:claim, with commas between several"));
    }
}
