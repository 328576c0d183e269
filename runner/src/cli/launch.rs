//! `trainplan launch`: the commands that start a scenario.

use super::fields::field_args;
use super::output::{self, Format};
use super::scenario::ScenarioArgs;
use super::{Failure, note};
use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::launch::{
    Fallback, LaunchComparability, LaunchOptions, Style, launch, launch_or_fall_back,
};
use trainplan_shared::message::Front;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;

/// Print the script that launches a scenario on a cluster
///
/// The script goes to stdout and warnings go to stderr. Run the script with `sh`; it submits
/// the job itself. Exception: a script of --style megatron-lm is a batch script, so submit it with `sbatch`.
///
/// If you name no recipe, release or style, the newest release that has the planned software and runs the
/// scenario comes first. If no NVIDIA recipe runs the scenario or its software, the script uses Megatron-LM
/// directly, and a note on stderr says why.
///
/// With --format json, the output also has the preparation steps, the paths of logs, profiles and checkpoints,
/// whether the run can be compared with a published number, and from release 26.06.01 on, what launch.sh runs.
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
    job: JobArgs,
    /// Output format: table prints the script, csv the variables that it sets
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

field_args! {
    /// The flags that describe where a launch runs.
    ClusterArgs, "Cluster", Field::of_group(FieldGroup::Cluster)
}

field_args! {
    /// The flags that describe what a launched job does.
    JobArgs, "Job", Field::of_group(FieldGroup::Job)
}

impl Args {
    /// Returns everything that was typed.
    fn spec(&self) -> Result<Spec, Failure> {
        let typed = self.cluster.0.iter().chain(self.job.0.iter());
        Ok(typed.fold(self.scenario.spec()?, |spec, (field, text)| spec.with(field, text)))
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        let spec = self.spec()?;
        let (scenario, options) = (spec.scenario_or_all_problems()?, LaunchOptions::from_spec(&spec)?);
        let made = match scenario.recipe {
            // A named recipe is not replaced by other software.
            Some(_) => launch(&scenario, &options),
            None => launch_or_fall_back(&scenario, &options),
        };
        let launch = made.inspect_err(|_| {
            let own = LaunchOptions { style: Some(Style::MegatronLm), release: None, ..options.clone() };
            if options.style.is_none() && launch(&scenario, &own).is_ok() {
                note("--style megatron-lm launches this scenario without a release");
            }
        })?;
        if let Some(fallback) = &launch.fallback {
            let why = why_megatron_lm(&scenario, fallback, Front::Terminal);
            note(&format!("{why} Submit it with `sbatch`."));
        }
        match self.format {
            Format::Json => return output::json(&launch),
            Format::Csv => {
                let needed = launch.needs.iter().map(|name| [name.clone(), format!("${name}")]);
                let set = launch.env.iter().map(|(name, value)| [name.clone(), value.to_string()]);
                output::csv(["variable", "value"], needed.chain(set))?;
            }
            Format::Table => output::text(&launch.script)?,
        }
        for warning in &launch.warnings {
            note(&warning.to_string());
        }
        for text in comparability(&launch.comparable) {
            note(&text);
        }
        Ok(())
    }
}

/// Returns why a scenario's script uses Megatron-LM directly, as sentences.
pub(super) fn why_megatron_lm(scenario: &Scenario, fallback: &Fallback, front: Front) -> String {
    let Some(release) = fallback.release else {
        return format!(
            "NVIDIA publishes no recipe for {} on the {} in {}, so this script uses Megatron-LM directly.",
            scenario.model.title,
            scenario.gpu.name,
            scenario.dtype.title()
        );
    };
    let why: Vec<String> = fallback.problems.iter().map(|problem| problem.text(front)).collect();
    format!(
        "No NVIDIA recipe runs this scenario, so this script uses Megatron-LM directly. The nearest release is \
         {release}: {}",
        why.join(" ")
    )
}

/// Returns why the run can't be compared with a published number.
fn comparability(LaunchComparability { reasons, baseline, .. }: &LaunchComparability) -> Vec<String> {
    let unpublished = "no published number to compare this run with";
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
    fn slurm_parameters_may_start_with_dashes() {
        let typed =
            ["launch", "--recipe", "llama3.1-8b/h100/fp8/8", "--slurm-params", "--exclusive", "--profile"];
        let args = Line::try_parse_from(typed).map(|line| line.args).expect("the arguments are valid");
        assert_eq!(args.cluster.0.get(Field::SlurmParams), Some("--exclusive"));
        assert_eq!(args.job.0.get(Field::Profile), Some("yes"));
    }

    #[test]
    fn reasons_are_given_for_runs_that_cannot_be_compared() {
        let of = |baseline: Option<&str>, reasons: &[&str]| {
            comparability(&LaunchComparability {
                yes: reasons.is_empty(),
                reasons: reasons.iter().map(ToString::to_string).collect(),
                baseline: baseline.map(Into::into),
                by_weak_scaling: false,
            })
        };
        assert!(of(Some("recipe"), &[]).is_empty());
        let published = of(Some("recipe"), &["a", "b"]);
        assert_eq!(published, ["a", "b"].map(|r| format!("not comparable with the published number: {r}")));
        assert_eq!(of(None, &[]), ["no published number to compare this run with"]);
        assert_eq!(of(None, &["a", "b"]), ["no published number to compare this run with (a; b)"]);
    }
}
