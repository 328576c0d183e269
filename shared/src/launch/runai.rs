//! Run:ai. Scripts submit to it through NeMo-Run.

use super::offers;
use super::plan::{LaunchPlan, given_fields};
use crate::field::Field;
use crate::message;
use crate::problem::Problem;

/// The variables that launch.sh reads on Run:ai, with what to set them to.
const NEEDS: [(&str, &str); 7] = [
    ("HF_TOKEN", "your Hugging Face token"),
    ("BASE_URL", "the address of the Run:ai API, https://HOST/api/v1"),
    ("APP_ID", "the name of a Run:ai application"),
    ("APP_SECRET", "the secret of that application"),
    ("PROJECT_NAME", "the Run:ai project to run in"),
    ("PVC_DIR", "the path of nemo-run in the mounted volume"),
    ("RUN_CONF_MOUNTS", "the volume claims to mount, each as name:path:claim"),
];

pub(super) fn apply(plan: &mut LaunchPlan) {
    if plan.script().variable_of(Field::ClusterType).is_none() {
        let message = format!("Release {} doesn't launch on Run:ai.", plan.release());
        let problem = Problem::new(Field::ClusterType, "runai", message).suggest(["slurm"]);
        plan.refuse(offers::elsewhere(plan.scenario, problem));
        return;
    }
    if plan.options.recipe_dir.is_none() {
        let message = message![
            format!(
                "The scripts of release {} don't work on Run:ai: the version of NeMo that they install refuses to start \
                 without an account, which Run:ai doesn't have. Launch on Slurm, or repair a copy of the scripts and set ",
                plan.release()
            ),
            Field::RecipeDir,
            " to it."
        ];
        plan.refuse(Problem::new(Field::ClusterType, "runai", message).suggest(["slurm"]));
    }
    plan.warn(
        "On Run:ai, NeMo-Run writes no log-*.out files, whatever the release's document says.",
        "Read the logs with the Run:ai command-line tool, and save them in files to score them.",
    );
    for (name, what) in NEEDS {
        let by_option = name == "RUN_CONF_MOUNTS" && plan.options.mounts.is_some();
        if !by_option && plan.options.env.get(name).is_none() {
            plan.need(name, what);
        }
    }
    claims(plan);
    plan.warn(
        "Security: launch.sh puts HF_TOKEN and APP_SECRET on its command line, where any user of that \
         machine can see them during submission.",
        "Submit from a machine that others can't log in to.",
    );
    if plan.options.env.get("RUN_CONF_IMAGE").is_some() {
        plan.warn("Run:ai ignores RUN_CONF_IMAGE and pulls the release's container.", "Remove it.");
    }
    let options = plan.options;
    let ignored = given_fields(&[
        (Field::Account, options.account.is_some()),
        (Field::Partition, options.partition.is_some()),
        (Field::Gres, options.gres.is_some()),
        (Field::TimeLimit, options.time_limit.is_some()),
        (Field::SlurmParams, options.slurm_params.iter().next().is_some()),
    ]);
    if let Some(fields) = ignored {
        plan.warn(message!["Run:ai ignores "].and(fields).and("."), "");
    }
}

/// Run:ai mounts volume claims, not directories.
fn claims(plan: &mut LaunchPlan) {
    let Some(mounts) = &plan.options.mounts else { return };
    let shown = mounts.to_string();
    let is_claim = |mount: &str| {
        let parts: Vec<&str> = mount.split(':').collect();
        matches!(parts.as_slice(), [name, path, claim]
            if !name.is_empty() && path.starts_with('/') && !claim.is_empty())
    };
    if let Some(mount) = shown.split(',').find(|mount| !is_claim(mount)) {
        let message =
            format!(" \"{mount}\" is not a Run:ai volume claim. Write name:path:claim, separated by commas.");
        plan.refuse(Problem::new(Field::Mounts, mount, message![Field::Mounts, message]));
    }
}
