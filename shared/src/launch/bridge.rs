//! What the launch scripts of newer releases run in the end: Megatron-Bridge's `scripts/performance/setup_experiment.py`, with
//! arguments that each script puts together in its own order.
//!
//! The base configuration of Megatron-Bridge fixes the layout. A script then forces some values, whatever its own variables
//! say; `data/launch_overrides.csv` lists them by recipe.

use super::forced::ForcedValues;
use super::plan::LaunchPlan;
use super::readme;
use super::render::line;
use super::word::ShellWord;
use crate::catalog::Recipe;
use crate::precision::Dtype;
use crate::releases::{BridgeForm, BridgeModel};
use crate::scenario::Scenario;
use serde::Serialize;
use std::collections::BTreeMap;

/// A call of Megatron-Bridge's launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BridgeCommand {
    /// The program and its arguments, quoted for a shell.
    pub command: String,
    /// The environment variables that the script adds.
    pub env: BTreeMap<String, String>,
    /// The values that the script forces, whatever its base configuration and its own variables say: `gbs=1536`.
    pub forced: Vec<String>,
    /// What the release's README prints for the recipe, where another value runs: `mbs=2`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<String>,
}

/// Returns the name of a plan's experiment.
pub(super) fn experiment(plan: &LaunchPlan) -> String {
    let Some(model) = model(plan) else { return String::new() };
    let Scenario { layout, batch, architecture, .. } = plan.scenario;
    let or_none = |value: Option<u32>| value.map_or("None".to_owned(), |value| value.to_string());
    let vp = or_none(Some(layout.vp()).filter(|vp| *vp > 1));
    let expert_tp = or_none(architecture.moe.as_ref().map(|_| layout.expert_tp()));
    format!(
        "pretrain_{}_{}_gpus{}_tp{}_pp{}_cp{}_vp{vp}_ep{}_etp{expert_tp}_mbs{}_gbs{}",
        model.recipe,
        compute_dtype(plan.target.recipe),
        plan.gpus(),
        layout.tp(),
        layout.pp(),
        layout.cp(),
        layout.ep(),
        batch.mbs(),
        batch.gbs()
    )
}

/// Returns what a plan's script runs. `None` if that is unknown: at a GPU count that the release doesn't list, with a layout
/// other than the recipe's, or with options whose effect on the arguments no run recorded.
pub(super) fn command(plan: &LaunchPlan) -> Option<BridgeCommand> {
    let model = model(plan)?;
    let form = model.form?;
    let options = plan.options;
    let is_recorded = plan.target.publishes(plan.gpus())
        && plan.target.taken(plan.scenario).is_empty()
        && !(options.profile || options.save_checkpoint || options.load_checkpoint.is_some())
        && options.mounts.is_none()
        && options.slurm_params.iter().next().is_none()
        && !options.env.iter().any(|(name, _)| plan.script().variables().any(|read| read.is_argument(name)));
    is_recorded.then(|| {
        let forced = ForcedValues::of(&plan.target.recipe.id);
        let arguments = forced.map_or(&[][..], |forced| &forced.arguments);
        let mut words =
            vec![ShellWord::of("python3"), ShellWord::of("scripts/performance/setup_experiment.py")];
        words.extend(BridgeArguments::of(plan, model, arguments).in_order(form));
        BridgeCommand {
            command: line(&words),
            env: forced.map(|forced| forced.env.iter().cloned().collect()).unwrap_or_default(),
            forced: arguments.iter().map(|(key, value)| format!("{key}={value}")).collect(),
            printed: readme::printed(plan),
        }
    })
}

fn model(plan: &LaunchPlan) -> Option<&'static BridgeModel> {
    BridgeModel::of(plan.release(), &plan.scenario.model.id)
}

/// Returns Megatron-Bridge's name of a recipe's precision.
fn compute_dtype(recipe: &Recipe) -> &'static str {
    match recipe.runs() {
        Dtype::Bf16 => "bf16",
        Dtype::Nvfp4 => "nvfp4",
        Dtype::Mxfp8 => "fp8_mx",
        Dtype::Fp8Block => "fp8_sc",
        Dtype::Fp8Delayed => "fp8_ds",
        Dtype::Fp8 | Dtype::Fp8Current => "fp8_cs",
    }
}

/// The arguments, in the groups that every script keeps together.
struct BridgeArguments {
    names: Vec<ShellWord>,
    gpu: Vec<ShellWord>,
    size: Vec<ShellWord>,
    image: Vec<ShellWord>,
    dtype: Vec<ShellWord>,
    mounts: ShellWord,
    forced: Vec<ShellWord>,
    slurm: Vec<ShellWord>,
    steps: u32,
}

impl BridgeArguments {
    fn of(plan: &LaunchPlan, model: &BridgeModel, forced: &[(String, String)]) -> BridgeArguments {
        let limits = plan.target.limits;
        let given = |word: Option<&ShellWord>, variable| {
            word.cloned().unwrap_or_else(|| ShellWord::variable(variable))
        };
        let usual = limits.time_limit.or_else(|| plan.script().time_limit(false));
        let limit = plan.options.time_limit.or(usual).map(|limit| limit.to_string()).unwrap_or_default();
        let image = plan.root().then(format!("/images/nvidia+nemo+{}.sqsh", limits.image));
        BridgeArguments {
            names: words(["--model_family_name", &model.family, "--model_recipe_name", &model.recipe]),
            gpu: words(["--gpu", &plan.target.recipe.id.gpu]),
            size: words([
                "--num_gpus",
                &plan.gpus().to_string(),
                "--gpus_per_node",
                &limits.gpus_per_node.to_string(),
            ]),
            image: vec![ShellWord::of("--container_image"), image],
            dtype: words(["--compute_dtype", compute_dtype(plan.target.recipe)]),
            mounts: plan.root().then("/.cache/huggingface"),
            forced: forced.iter().flat_map(|(key, value)| argument(key, value)).collect(),
            slurm: vec![
                ShellWord::of("--account"),
                given(plan.options.account.as_ref(), "SBATCH_ACCOUNT"),
                ShellWord::of("--partition"),
                given(plan.options.partition.as_ref(), "SBATCH_PARTITION"),
                ShellWord::of("--log_dir"),
                plan.home(),
                ShellWord::of("--time_limit"),
                ShellWord::of(limit),
            ],
            steps: plan.steps,
        }
    }

    fn in_order(self, form: BridgeForm) -> Vec<ShellWord> {
        let BridgeArguments { names, gpu, size, image, dtype, mounts, forced, slurm, steps } = self;
        let offline = words(["--offline"]);
        let unpinned = words(["--enable_pct_binding", "false"]);
        let variant = words(["--config_variant", "v2"]);
        let unpacked = words(["--packager", "none"]);
        let last_steps = words(["--max_steps", &steps.to_string()]);
        let joined = vec![
            ShellWord::of(format!("--max_steps={steps}")),
            ShellWord::of("--custom_mounts=").join(&mounts),
        ];
        let mounted = vec![ShellWord::of("--custom_mounts"), mounts];
        let task = words(["--task", "pretrain"]);
        let unboosted = words(["--enable_vboost", "false"]);
        match form {
            BridgeForm::Llama => {
                [names, gpu, image, size, offline, forced, joined, dtype, unpinned, variant, slurm, unpacked]
                    .concat()
            }
            BridgeForm::GptOss => {
                [names, task, gpu, image, size, variant, unboosted, offline, forced, joined, dtype, slurm]
                    .concat()
            }
            BridgeForm::Qwen => [
                image, offline, dtype, names, gpu, size, mounted, unpinned, forced, slurm, last_steps,
                unpacked,
            ]
            .concat(),
            BridgeForm::NemotronH => {
                [image, dtype, gpu, size, offline, names, forced, unpinned, slurm, last_steps, unpacked]
                    .concat()
            }
            BridgeForm::Usual => [
                image, dtype, gpu, size, offline, names, mounted, unpinned, forced, slurm, last_steps,
                unpacked,
            ]
            .concat(),
        }
    }
}

fn words<const N: usize>(texts: [&str; N]) -> Vec<ShellWord> {
    texts.into_iter().map(ShellWord::of).collect()
}

/// Returns a forced value as arguments: layout and batch by their short options.
fn argument(key: &str, value: &str) -> Vec<ShellWord> {
    let short = match key {
        "tp" => "-tp",
        "pp" => "-pp",
        "vp" => "-vp",
        "ep" => "-ep",
        "mbs" => "-mb",
        "gbs" => "-gb",
        "cuda_graph_impl" => "--cuda_graph_impl",
        _ => return vec![ShellWord::of(format!("--{key}={value}"))],
    };
    words([short, value])
}
