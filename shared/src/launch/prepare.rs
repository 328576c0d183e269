//! What to do before the first launch, by the releases' documents.

use super::choice::{ClusterType, Style};
use super::plan::LaunchPlan;
use super::word::ShellWord;
use crate::field::Field;
use crate::message;
use crate::message::Message;
use crate::releases::SetupStep;
use serde::Serialize;

/// An instruction: something to do once, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instruction {
    /// What to do: a short imperative.
    pub title: String,
    /// The commands; empty if it isn't done in a shell.
    pub commands: Vec<String>,
    /// Explanation; may be empty.
    pub note: Message,
}

impl Instruction {
    pub(super) fn new(
        title: impl Into<String>,
        commands: impl IntoIterator<Item = String>,
        note: impl Into<Message>,
    ) -> Instruction {
        Instruction { title: title.into(), commands: commands.into_iter().collect(), note: note.into() }
    }
}

/// Returns the preparation that the document of the plan's release requires before the first launch.
pub(super) fn steps(plan: &LaunchPlan) -> Vec<Instruction> {
    let runai = plan.options.cluster_type == ClusterType::Runai;
    let mut steps: Vec<Instruction> = access(plan).into_iter().collect();
    steps.push(top_directory(plan));
    let setup = if runai { plan.contract().runai_setup } else { plan.contract().setup };
    steps.extend(setup.iter().map(|step| match step {
        SetupStep::PythonEnvironment => python(plan),
        SetupStep::Installer { or_by_hand } => installer(plan, *or_by_hand),
        SetupStep::SetupOnLoginNode => setup_on_login_node(plan),
        SetupStep::SetupAsJob => setup_as_job(plan),
        SetupStep::SetupByHand => setup_by_hand(plan),
        SetupStep::ImportContainer => import_container(plan),
        SetupStep::BridgeCheckout(version) => bridge_checkout(plan, version),
        SetupStep::RunaiSetup => setup_runai(plan),
        SetupStep::RunaiLogin => login_runai(),
    }));
    steps.extend(room_for_checkpoint(plan));
    steps.extend(activate(plan));
    steps
}

fn access(plan: &LaunchPlan) -> Option<Instruction> {
    let needed = plan.needs.iter().any(|need| need.name == "HF_TOKEN") || plan.exports("HF_TOKEN");
    let access = plan.rules().access;
    needed.then(|| {
        Instruction::new(
            "Get a Hugging Face token",
            ["export HF_TOKEN".to_string()],
            format!(
                "Create it on your Hugging Face account's page, and keep it out of files that others can \
                 read. {access}"
            ),
        )
    })
}

fn top_directory(plan: &LaunchPlan) -> Instruction {
    let name = &plan.script().root;
    let (path, choose) = match &plan.options.install_path {
        Some(path) => (format!("export {name}={}", path.shell()), ""),
        None => (format!("export {name}"), " It needs room for containers of tens of gigabytes."),
    };
    let moved = plan.contract().moved;
    let note =
        format!("Every node must see it, and set-up and launches must use the same one.{choose} {moved}");
    Instruction::new(format!("Choose the top directory, {name}"), [path], note)
}

fn setup_on_login_node(plan: &LaunchPlan) -> Instruction {
    let gpus = plan.target.gpus_per_node;
    let image = plan.image();
    Instruction::new(
        "Set the recipe up",
        [
            format!("export SLURM_GPUS_PER_NODE={gpus}"),
            "export SLURM_ACCOUNT SLURM_PARTITION".into(),
            "bash ./setup.sh".into(),
        ],
        format!(
            "In the directory {} of the release. It imports the container to {image} and copies what \
             the launch needs next to it. The document sets SLURM_GPUS_PER_NODE to null in its next line, \
             for clusters whose Slurm doesn't count GPUs; the launch script sets it again.",
            plan.script().checkout
        ),
    )
}

fn python(plan: &LaunchPlan) -> Instruction {
    let venv = venv(plan).shell();
    let (python, conda) = (&plan.script().python, &plan.script().conda);
    Instruction::new(
        format!("Make a Python environment ({python})"),
        [format!("python3 -m venv {venv}"), format!(". {venv}/bin/activate")],
        format!("With conda instead: conda create -n {conda} python=3.12, then conda activate {conda}."),
    )
}

fn setup_as_job(plan: &LaunchPlan) -> Instruction {
    let submit = format!(
        "sbatch -A {} -p {} -N 1 ./setup.sh",
        given_or(plan.options.account.as_ref(), "SBATCH_ACCOUNT"),
        given_or(plan.options.partition.as_ref(), "SBATCH_PARTITION")
    );
    Instruction::new(
        "Set the recipe up",
        [submit],
        format!(
            "In the directory {} of the release, with the Python environment active. This submits a \
             job that installs NeMo next to the script and imports the container to {}. Ignore an error about \
             tritonclient and urllib3.",
            plan.script().checkout,
            plan.image()
        ),
    )
}

fn installer(plan: &LaunchPlan, or_by_hand: bool) -> Instruction {
    let own_setup = if or_by_hand { " Or set it up by hand, with the following steps." } else { "" };
    Instruction::new(
        "Install the recipe",
        ["./install.sh".to_string()],
        format!(
            "In a checkout of release {}. Choose {} for GPU type {}: it installs the container, the Python \
             environment and llmb-run's cluster_config.yaml, with account and partition. Each GPU type \
             needs its own installation.{own_setup}",
            plan.release(),
            plan.script().workload,
            plan.scenario.gpu.id
        ),
    )
}

fn setup_by_hand(plan: &LaunchPlan) -> Instruction {
    Instruction::new(
        "By hand: set the recipe up",
        ["./setup.sh".to_string()],
        format!(
            "In the directory {} of the release, with the Python environment active. Ignore an error about \
             tritonclient and urllib3.",
            plan.script().checkout
        ),
    )
}

fn import_container(plan: &LaunchPlan) -> Instruction {
    let tag = &plan.target.limits.image;
    let account = given_or(plan.options.account.as_ref(), "SBATCH_ACCOUNT");
    let partition = given_or(plan.options.partition.as_ref(), "SBATCH_PARTITION");
    let output = plan.root().then(format!("/images/nvidia+nemo+{tag}.sqsh")).shell();
    Instruction::new(
        "By hand: import the container",
        [format!(
            "srun --account {account} --partition {partition} enroot import --output {output} \
             docker://nvcr.io#nvidia/nemo:{tag}"
        )],
        "Leave the Python environment first: deactivate.",
    )
}

fn bridge_checkout(plan: &LaunchPlan, version: &str) -> Instruction {
    let image = plan.image().shell();
    let tag = &plan.target.limits.image;
    Instruction::new(
        "Check out Megatron-Bridge, and import its container",
        [
            "uv --version".to_string(),
            "git clone https://github.com/NVIDIA-NeMo/Megatron-Bridge".into(),
            format!("git -C Megatron-Bridge checkout {version}"),
            "git -C Megatron-Bridge submodule update --init --recursive".into(),
            format!("enroot import --output {image} docker://nvcr.io#nvidia/nemo:{tag}"),
        ],
        message![
            "train.sh runs uv on the login node: if it isn't there, install it first (https://docs.astral.sh/uv). Every node must \
             see the checkout, which is mounted over the container's own copy, and the image. Set ",
            Field::RecipeDir,
            " to the checkout, and ",
            Field::ContainerImage,
            " for another image."
        ],
    )
}

fn setup_runai(plan: &LaunchPlan) -> Instruction {
    Instruction::new(
        "Set the recipe up for Run:ai",
        [
            "export CLUSTER_TYPE=runai".to_string(),
            format!("export GPU_TYPE={}", plan.scenario.gpu.id),
            "./setup.sh".to_string(),
        ],
        format!(
            "In the directory {} of the release, with the Python environment active. Ignore an error about \
             tritonclient and urllib3.",
            plan.script().checkout
        ),
    )
}

fn login_runai() -> Instruction {
    Instruction::new(
        "Log in to the cluster",
        ["runai login", "runai kubeconfig set", "runai cluster"].map(String::from),
        "Install the Run:ai command-line tool from your cluster's web interface, and save the kubeconfig \
         from its administrator as ~/.kube/config. Without a browser: runai login remote-browser.",
    )
}

fn room_for_checkpoint(plan: &LaunchPlan) -> Option<Instruction> {
    let size = &plan.target.limits.checkpoint;
    (plan.options.save_checkpoint && !size.is_empty()).then(|| {
        let note = format!("A checkpoint of {} takes about {size}.", plan.scenario.model.title);
        Instruction::new("Make room for the checkpoint", [format!("df -h {}", plan.root().shell())], note)
    })
}

/// llmb-run activates the environment itself, and a batch job runs in its container.
fn activate(plan: &LaunchPlan) -> Option<Instruction> {
    (plan.style == Style::LaunchSh && plan.options.venv.is_none()).then(|| {
        Instruction::new(
            "Before each launch: activate the Python environment",
            [format!(". {}/bin/activate", venv(plan).shell())],
            message!["Or conda activate it. With ", Field::Venv, ", the launch script does it."],
        )
    })
}

/// Returns where the documents put it: in the top directory, or in `venvs` under the workload's name.
fn venv(plan: &LaunchPlan) -> ShellWord {
    if let Some(venv) = &plan.options.venv {
        return venv.clone();
    }
    match plan.script().workload.as_str() {
        "" => plan.root().then("/venv"),
        workload => plan.root().then(format!("/venvs/{workload}")),
    }
}

fn given_or(given: Option<&ShellWord>, variable: &str) -> String {
    given.map_or_else(|| ShellWord::variable(variable).shell(), ShellWord::shell)
}
