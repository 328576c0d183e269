//! What the documents ask for before the first launch.

use super::choice::{ClusterType, Style};
use super::plan::Plan;
use super::word::Word;
use crate::releases::SetupStep;
use serde::Serialize;

/// Something to do, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What it is for.
    pub title: String,
    /// What to type; empty where it is not done in a shell.
    pub commands: Vec<String>,
    /// What to know of it; may be empty.
    pub note: String,
}

impl Step {
    pub(super) fn new(
        title: impl Into<String>,
        commands: impl IntoIterator<Item = String>,
        note: impl Into<String>,
    ) -> Step {
        Step { title: title.into(), commands: commands.into_iter().collect(), note: note.into() }
    }
}

/// What the document of a plan's release asks for before the first launch.
pub(super) fn steps(plan: &Plan) -> Vec<Step> {
    let runai = plan.options.cluster_type == ClusterType::Runai;
    let mut steps: Vec<Step> = access(plan).into_iter().collect();
    steps.push(top_directory(plan));
    let setup = if runai { plan.contract().runai_setup } else { plan.contract().setup };
    steps.extend(setup.iter().map(|step| match step {
        SetupStep::PythonEnvironment => python(plan),
        SetupStep::Installer { or_by_hand } => installer(plan, *or_by_hand),
        SetupStep::SetupOnLoginNode => setup_on_login_node(plan),
        SetupStep::SetupAsJob => setup_as_job(plan),
        SetupStep::SetupByHand => setup_by_hand(plan),
        SetupStep::ImportContainer => import_container(plan),
        SetupStep::RunaiSetup => setup_runai(plan),
        SetupStep::RunaiLogin => login_runai(),
    }));
    steps.extend(room_for_checkpoint(plan));
    steps.extend(activate(plan));
    steps
}

fn access(plan: &Plan) -> Option<Step> {
    let needed = plan.needs.iter().any(|need| need.name == "HF_TOKEN") || plan.exports("HF_TOKEN");
    let access = plan.rules().access;
    needed.then(|| {
        Step::new(
            "Get a Hugging Face token",
            ["export HF_TOKEN".to_string()],
            format!(
                "Create it on your Hugging Face account's page, and keep it out of files that others can read. {access}"
            )
            .trim_end(),
        )
    })
}

fn top_directory(plan: &Plan) -> Step {
    let name = &plan.script().root;
    let (path, choose) = match &plan.options.install_path {
        Some(path) => (format!("export {name}={}", path.shell()), ""),
        None => (
            format!("export {name}"),
            " Set it to a directory with room for containers of tens of gigabytes.",
        ),
    };
    let moved = plan.contract().moved;
    let note =
        format!("Every node must see it, and set-up and launches must use the same one.{choose} {moved}");
    let note = note.trim_end();
    Step::new(format!("Choose the top directory, {name}"), [path], note)
}

fn setup_on_login_node(plan: &Plan) -> Step {
    let gpus = plan.target.gpus_per_node;
    let image = image(plan);
    Step::new(
        "Set the recipe up",
        [
            format!("export SLURM_GPUS_PER_NODE={gpus}"),
            "export SLURM_ACCOUNT SLURM_PARTITION".into(),
            "bash ./setup.sh".into(),
        ],
        format!(
            "In the directory {} of the release. It imports the container to {image} and copies what \
             the launch needs beside it. The document sets SLURM_GPUS_PER_NODE to null in its next line, \
             for clusters whose Slurm does not count GPUs; the launch script sets it back.",
            plan.script().checkout
        ),
    )
}

fn python(plan: &Plan) -> Step {
    let venv = venv(plan).shell();
    let (python, conda) = (&plan.script().python, &plan.script().conda);
    Step::new(
        format!("Make a Python environment ({python})"),
        [format!("python3 -m venv {venv}"), format!(". {venv}/bin/activate")],
        format!("With conda instead: conda create -n {conda} python=3.12, then conda activate {conda}."),
    )
}

fn setup_as_job(plan: &Plan) -> Step {
    let submit = format!(
        "sbatch -A {} -p {} -N 1 ./setup.sh",
        given_or(plan.options.account.as_ref(), "SBATCH_ACCOUNT"),
        given_or(plan.options.partition.as_ref(), "SBATCH_PARTITION")
    );
    Step::new(
        "Set the recipe up",
        [submit],
        format!(
            "In the directory {} of the release, with the Python environment active. It is a job: it \
             installs NeMo beside itself and imports the container to {}. An error about tritonclient and \
             urllib3 does no harm.",
            plan.script().checkout,
            image(plan)
        ),
    )
}

fn installer(plan: &Plan, or_by_hand: bool) -> Step {
    let own_setup = if or_by_hand { " Or set it up by hand, with the following steps." } else { "" };
    Step::new(
        "Install the recipe",
        ["./install.sh".to_string()],
        format!(
            "In a checkout of release {}. Choose {} for GPU type {}: it brings container, Python \
             environment and llmb-run's cluster_config.yaml, with account and partition. One installation \
             serves one GPU type.{own_setup}",
            plan.release(),
            plan.script().workload,
            plan.scenario.gpu.id
        ),
    )
}

fn setup_by_hand(plan: &Plan) -> Step {
    Step::new(
        "By hand: set the recipe up",
        ["./setup.sh".to_string()],
        format!(
            "In the directory {} of the release, with the Python environment active. An error about \
             tritonclient and urllib3 does no harm.",
            plan.script().checkout
        ),
    )
}

fn import_container(plan: &Plan) -> Step {
    let tag = &plan.target.limits.image;
    let account = given_or(plan.options.account.as_ref(), "SBATCH_ACCOUNT");
    let partition = given_or(plan.options.partition.as_ref(), "SBATCH_PARTITION");
    let output = plan.root().then(format!("/images/nvidia+nemo+{tag}.sqsh")).shell();
    Step::new(
        "By hand: import the container",
        [format!(
            "srun --account {account} --partition {partition} enroot import --output {output} \
             docker://nvcr.io#nvidia/nemo:{tag}"
        )],
        "With the Python environment left again: deactivate.",
    )
}

fn setup_runai(plan: &Plan) -> Step {
    Step::new(
        "Set the recipe up for Run:ai",
        ["export CLUSTER_TYPE=runai".to_string(), "./setup.sh".to_string()],
        format!(
            "In the directory {} of the release, with the Python environment active. An error about tritonclient \
             and urllib3 does no harm.",
            plan.script().checkout
        ),
    )
}

fn login_runai() -> Step {
    Step::new(
        "Log in to the cluster",
        ["runai login", "runai kubeconfig set", "runai cluster"].map(String::from),
        "Install the Run:ai command-line tool from the web interface of your cluster, and put the \
         kubeconfig that its administrator gives you at ~/.kube/config. Without a browser: runai login \
         remote-browser.",
    )
}

fn room_for_checkpoint(plan: &Plan) -> Option<Step> {
    let size = &plan.target.limits.checkpoint;
    (plan.options.save_checkpoint && !size.is_empty()).then(|| {
        let note = format!("A checkpoint of {} takes about {size}.", plan.scenario.model.title);
        Step::new("Make room for the checkpoint", [format!("df -h {}", plan.root().shell())], note)
    })
}

/// llmb-run activates the recipe's environment itself, and a job of 24.11 needs none.
fn activate(plan: &Plan) -> Option<Step> {
    (plan.style == Style::LaunchSh && plan.options.venv.is_none()).then(|| {
        Step::new(
            "Before each launch: activate the Python environment",
            [format!(". {}/bin/activate", venv(plan).shell())],
            "Or conda activate it; --venv has the launch script do it.",
        )
    })
}

/// Where the documents put it: beside everything else, or below `venvs` under the workload's name.
fn venv(plan: &Plan) -> Word {
    if let Some(venv) = &plan.options.venv {
        return venv.clone();
    }
    match plan.script().workload.as_str() {
        "" => plan.root().then("/venv"),
        workload => plan.root().then(format!("/venvs/{workload}")),
    }
}

fn image(plan: &Plan) -> String {
    plan.root().then(format!("/nvidia+nemo+{}.sqsh", plan.target.limits.image)).to_string()
}

fn given_or(given: Option<&Word>, variable: &str) -> String {
    given.map_or_else(|| Word::variable(variable).shell(), Word::shell)
}
