//! `trainplan launch`: the commands that start a scenario.

use super::output::{self, Format};
use super::scenario::ScenarioArgs;
use super::{Failure, note};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{Comparable, Options, Style, launch};

/// Print the commands that launch a scenario on a cluster
///
/// The script goes to stdout, ready for `sh`, or for `sbatch` with --style megatron-lm; what to know of it goes to stderr. With --format json come also the
/// preparation, where logs, profiles and checkpoints will be, and whether the run can be compared with the published
/// number.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan launch --recipe llama3.1-405b/h100/fp8/512 --account research --partition batch > run.sh
  trainplan launch --recipe nemotron4-340b/gb200/fp8/256@25.12 --style launch-sh --profile
  trainplan launch --recipe nemotron4-340b/h100/bf16/128@24.11 --gres gpu:8 --format json
  trainplan launch --model mixtral-8x7b --gpu h100 --gpus 64 --gbs 512 --ep 8 --style megatron-lm")]
pub(super) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    run: RunArgs,
    /// How to write the result: table is the script alone, csv the variables that it sets
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Where it runs")]
struct ClusterArgs {
    /// Release whose scripts run it: 24.11, 25.04, 25.05, 25.12 [default: the recipe's]
    #[arg(long, value_name = "RELEASE")]
    release: Option<String>,
    /// What it is handed to: llmb-run, launch-sh, sbatch, or for any scenario megatron-lm [default: the release's own]
    #[arg(long, value_name = "STYLE")]
    style: Option<String>,
    /// What manages the cluster: slurm, runai
    #[arg(long, value_name = "TYPE")]
    cluster_type: Option<String>,
    /// Slurm account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Slurm partition
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// GPUs of a node [default: the GPU type's usual]
    #[arg(long, value_name = "N")]
    gpus_per_node: Option<String>,
    /// Generic resource to ask Slurm for, such as gpu:8, where the cluster needs it
    #[arg(long, value_name = "GRES")]
    gres: Option<String>,
    /// Where the release is installed (STAGE_PATH, LLMB_INSTALL), or Megatron-LM is checked out (MEGATRON_PATH)
    #[arg(long, value_name = "PATH")]
    install_path: Option<String>,
    /// Where the recipe's scripts are
    #[arg(long, value_name = "PATH")]
    recipe_dir: Option<String>,
    /// Python environment to activate
    #[arg(long, value_name = "PATH")]
    venv: Option<String>,
    /// Further Slurm parameters: "nodelist=n1,n2;exclusive"
    // A parameter may be typed as sbatch takes it, with its dashes.
    #[arg(long, value_name = "PARAMS", allow_hyphen_values = true)]
    slurm_params: Option<String>,
    /// Container mounts
    #[arg(long, value_name = "MOUNTS")]
    mounts: Option<String>,
    /// Container image for megatron-lm, as Slurm's pyxis takes it; without it the job runs in none
    #[arg(long, value_name = "IMAGE")]
    container_image: Option<String>,
    /// Environment variable for the run, NAME=value; may be given again
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What it does")]
struct RunArgs {
    /// Training steps
    #[arg(long, value_name = "N")]
    max_steps: Option<String>,
    /// Time limit of the job, HH:MM:SS
    #[arg(long, value_name = "TIME")]
    time_limit: Option<String>,
    /// Profile with Nsight Systems
    #[arg(long)]
    profile: bool,
    /// First profiled step
    #[arg(long, value_name = "N")]
    profile_start_step: Option<String>,
    /// Last profiled step
    #[arg(long, value_name = "N")]
    profile_stop_step: Option<String>,
    /// Collect GPU metrics while profiling
    #[arg(long)]
    gpu_metrics: bool,
    /// Trace NCCL calls into the log
    #[arg(long)]
    nccl_trace: bool,
    /// Save a checkpoint at the end
    #[arg(long)]
    save_checkpoint: bool,
    /// Load a checkpoint from this directory
    #[arg(long, value_name = "PATH")]
    load_checkpoint: Option<String>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Args { scenario, cluster, run, format } = self;
        let mut spec = scenario.spec()?;
        let switch = |on: bool| on.then(|| "yes".to_string());
        for (field, text) in [
            (Field::Release, cluster.release),
            (Field::Style, cluster.style),
            (Field::ClusterType, cluster.cluster_type),
            (Field::Account, cluster.account),
            (Field::Partition, cluster.partition),
            (Field::GpusPerNode, cluster.gpus_per_node),
            (Field::Gres, cluster.gres),
            (Field::InstallPath, cluster.install_path),
            (Field::RecipeDir, cluster.recipe_dir),
            (Field::Venv, cluster.venv),
            (Field::SlurmParams, cluster.slurm_params),
            (Field::Mounts, cluster.mounts),
            (Field::ContainerImage, cluster.container_image),
            (Field::Env, Some(cluster.env.join("\n"))),
            (Field::MaxSteps, run.max_steps),
            (Field::TimeLimit, run.time_limit),
            (Field::Profile, switch(run.profile)),
            (Field::ProfileStartStep, run.profile_start_step),
            (Field::ProfileStopStep, run.profile_stop_step),
            (Field::GpuMetrics, switch(run.gpu_metrics)),
            (Field::NcclTrace, switch(run.nccl_trace)),
            (Field::SaveCheckpoint, switch(run.save_checkpoint)),
            (Field::LoadCheckpoint, run.load_checkpoint),
        ] {
            spec.set(field, text.unwrap_or_default());
        }
        let (scenario, options) = (spec.scenario()?, Options::from_spec(&spec)?);
        let launch = launch(&scenario, &options).inspect_err(|_| {
            let own = Options { style: Some(Style::MegatronLm), ..options.clone() };
            if options.style.is_none() && launch(&scenario, &own).is_ok() {
                note("--style megatron-lm launches it as it is, without a release");
            }
        })?;
        match format {
            Format::Json => return output::json(&launch),
            Format::Csv => {
                let needed = launch.needs.iter().map(|name| [name.clone(), format!("${name}")]);
                let set = launch.env.iter().map(|(name, value)| [name.clone(), value.to_string()]);
                output::csv(["variable", "value"], needed.chain(set))?;
            }
            Format::Table => output::text(&launch.script)?,
        }
        for warning in &launch.warnings {
            note(format!("{} {}", warning.text, warning.fix).trim());
        }
        for text in comparability(&launch.comparable) {
            note(&text);
        }
        Ok(())
    }
}

/// What keeps the run from standing beside a published number; nothing can where there is none.
fn comparability(Comparable { reasons, baseline, .. }: &Comparable) -> Vec<String> {
    let unpublished = "no number is published for it";
    match baseline {
        Some(_) => reasons
            .iter()
            .map(|reason| format!("not comparable with the published number: {reason}"))
            .collect(),
        None if reasons.is_empty() => vec![unpublished.into()],
        None => vec![format!("{unpublished} ({})", reasons.join("; "))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn slurm_parameters_may_have_their_dashes() {
        let typed =
            ["launch", "--recipe", "llama3.1-8b/h100/fp8/8", "--slurm-params", "--exclusive", "--profile"];
        let args = Line::try_parse_from(typed).map(|line| line.args).expect("it is a command line");
        assert_eq!((args.cluster.slurm_params.as_deref(), args.run.profile), (Some("--exclusive"), true));
    }

    #[test]
    fn only_a_published_number_can_be_compared_with() {
        let of = |baseline: Option<&str>, reasons: &[&str]| {
            comparability(&Comparable {
                yes: reasons.is_empty(),
                reasons: reasons.iter().map(ToString::to_string).collect(),
                baseline: baseline.map(Into::into),
            })
        };
        assert!(of(Some("recipe"), &[]).is_empty());
        let published = of(Some("recipe"), &["a", "b"]);
        assert_eq!(published, ["a", "b"].map(|r| format!("not comparable with the published number: {r}")));
        assert_eq!(of(None, &[]), ["no number is published for it"]);
        assert_eq!(of(None, &["a", "b"]), ["no number is published for it (a; b)"]);
    }
}
