//! `trainplan run`: a campaign on its cluster.

mod carry;

pub(super) use carry::{CarryArgs, block_on, carry, carry_until};

use super::estimate::{self, contract, in_words, rounded};
use super::output::{self, Format, FormatArg};
use super::profiles::{self, mistakes};
use super::{Failure, model_file, note};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trainplan_shared::campaign::{Campaign, Cluster, Clusters, Name, Planned, Secret, Upload, plan};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::launch::{Launch, TimeLimit};
use trainplan_shared::problem::Problem;
use trainplan_shared::units::significant;

/// Carry a campaign out on its cluster, or go on with one that was begun
///
/// A campaign is a file *.campaign.toml of runs: each a recipe or a scenario, under the names of the flags of `trainplan
/// estimate` and `trainplan launch`. The cluster's profile stands in clusters.toml, in the folder trainplan of your
/// configuration (~/.config). Every run is submitted exactly once, followed, scored, compared with its plan and with the
/// published number, and kept; `trainplan serve` shows it. Whatever interrupts this, the same command goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan run nightly.campaign.toml --dry-run
  trainplan run nightly.campaign.toml
  trainplan run nightly.campaign.toml --format json --patience 120 >>nightly.jsonl

Exit codes:
  0 every run was scored (with --dry-run: can be launched, and fits)
  1 something failed here, or it was told to leave; jobs go on
  2 invalid input
  3 a run does not fit
  4 a run failed, or was not scored
  5 the cluster can't be reached; jobs go on")]
pub(super) struct Args {
    /// The campaign
    #[arg(value_name = "CAMPAIGN")]
    campaign: PathBuf,
    /// Print the plan and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Begin anew, though an earlier round of the campaign is not over
    #[arg(long)]
    new: bool,
    /// Run even what is predicted not to fit
    #[arg(long)]
    anyway: bool,
    /// The profiles of your clusters [default: trainplan/clusters.toml in your configuration]
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    #[command(flatten)]
    carry: CarryArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// A run of the plan, for programs.
#[derive(Debug, Serialize)]
struct Output<'a> {
    campaign: &'a Name,
    cluster: &'a Name,
    ssh: &'a str,
    run: &'a Name,
    recipe: Option<&'a str>,
    repeats: u32,
    after: &'a [Name],
    singleton: bool,
    queue_budget_s: Option<u32>,
    upload: Option<&'a Upload>,
    gpus: u32,
    fits: bool,
    step_time_s: Interval,
    steps: u32,
    /// Of one repeat; starting the job comes besides.
    training_time_s: Interval,
    /// Of all jobs and repeats.
    gpu_hours: Interval,
    estimate: estimate::Output<'a>,
    launch: &'a Launch,
    /// Where the runner will find what is secret.
    secrets: BTreeMap<&'a str, &'a Secret>,
    warnings: &'a [String],
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let text = profiles::read(&self.campaign)?;
        let file = self.clusters.map_or_else(profiles::usual, Ok)?;
        let profiles_text = profiles::read_profiles(&file)?;
        // Both files at once: a person mends them together.
        let campaign = Campaign::parse_with_lines(&text).map_err(|found| mistakes(&self.campaign, &found));
        let clusters = Clusters::parse(&profiles_text).map_err(|found| mistakes(&file, &found));
        let ((campaign, lines), clusters) = match (campaign, clusters) {
            (Ok(campaign), Ok(clusters)) => (campaign, clusters),
            (Err(campaign), Err(clusters)) => return Err(Failure::Several(vec![campaign, clusters])),
            (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => return Err(failure),
        };
        let cluster = clusters.get(&campaign.cluster).ok_or_else(|| Failure::Contents {
            path: file.clone(),
            what: profiles::no_cluster(&campaign.cluster, &clusters),
        })?;
        let folder = self.campaign.parent().unwrap_or(Path::new("")).to_path_buf();
        let planned = plan(&campaign, &lines, cluster, |model| own_model(&folder, model))
            .map_err(|found| mistakes(&self.campaign, &found))?;
        if !self.dry_run {
            warn(&planned);
            let unfit: Vec<&str> =
                planned.iter().filter(|run| !may_run(run)).map(|run| run.run.name.as_str()).collect();
            if !unfit.is_empty() && !self.anyway {
                note(&format!(
                    "{}: --dry-run shows by how much, and --anyway runs it all the same",
                    unfit.join(", ")
                ));
                return Err(Failure::DoesNotFit);
            }
            return carry::campaign(
                &campaign,
                cluster,
                &planned,
                &self.carry,
                self.new,
                self.format.choose(),
            );
        }
        let outputs: Vec<Output> = planned.iter().map(|run| of(&campaign, cluster, run)).collect();
        match self.format.choose() {
            Format::Json => output::json(&outputs)?,
            Format::Csv => csv(&outputs)?,
            Format::Table => table(&campaign, cluster, &planned, &outputs)?,
        }
        warn(&planned);
        if outputs.iter().all(|run| run.fits) { Ok(()) } else { Err(Failure::DoesNotFit) }
    }
}

/// Whether a run fits; what is published ran.
fn may_run(planned: &Planned) -> bool {
    planned.predicted.estimate.memory.fits() || planned.predicted.published.is_some()
}

fn of<'a>(campaign: &'a Campaign, cluster: &'a Cluster, planned: &'a Planned) -> Output<'a> {
    let Planned { run, repeats, singleton, queue_budget, upload, predicted, launch, env, .. } = planned;
    Output {
        campaign: &campaign.name,
        cluster: &cluster.name,
        ssh: &cluster.ssh,
        run: &run.name,
        recipe: planned.recipe.as_deref(),
        repeats: *repeats,
        after: &run.after,
        singleton: *singleton,
        queue_budget_s: queue_budget.map(TimeLimit::seconds),
        upload: *upload,
        gpus: predicted.scenario.layout.gpus(),
        fits: predicted.estimate.memory.fits(),
        step_time_s: predicted.estimate.step_time_s,
        steps: launch.steps,
        training_time_s: planned.training_s,
        gpu_hours: planned.gpu_hours,
        estimate: contract(predicted),
        launch,
        secrets: env.secrets().collect(),
        warnings: &planned.warnings,
    }
}

/// What to know of the runs, alike ones once.
fn warn(planned: &[Planned]) {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for planned in planned {
        let of_launch = planned.launch.warnings.iter().map(ToString::to_string);
        let predicted = planned.predicted.warnings.iter().map(ToString::to_string);
        let own = planned.warnings.iter().cloned().chain(predicted);
        for text in own.chain(of_launch) {
            let name = planned.run.name.as_str();
            match said.iter_mut().find(|(earlier, _)| *earlier == text) {
                Some((_, names)) => names.push(name),
                None => said.push((text, vec![name])),
            }
        }
    }
    for (text, names) in said {
        note(&format!("{}: {text}", names.join(", ")));
    }
}

fn csv(outputs: &[Output]) -> Result<(), Failure> {
    let header = [
        "run",
        "recipe",
        "repeats",
        "gpus",
        "fits",
        "step_time_s",
        "step_time_low_s",
        "step_time_high_s",
        "steps",
        "training_time_s",
        "gpu_hours",
        "command",
    ];
    output::csv(
        header,
        outputs.iter().map(|run| {
            [
                run.run.to_string(),
                run.recipe.unwrap_or_default().to_string(),
                run.repeats.to_string(),
                run.gpus.to_string(),
                run.fits.to_string(),
                run.step_time_s.mid.to_string(),
                run.step_time_s.low.to_string(),
                run.step_time_s.high.to_string(),
                run.steps.to_string(),
                run.training_time_s.mid.to_string(),
                run.gpu_hours.mid.to_string(),
                run.launch.commands.join("\n"),
            ]
        }),
    )
}

fn table(
    campaign: &Campaign,
    cluster: &Cluster,
    planned: &[Planned],
    outputs: &[Output],
) -> Result<(), Failure> {
    let Campaign { name, .. } = campaign;
    output::text_line(&format!("Campaign {name} on cluster {} (ssh {}).\n", cluster.name, cluster.ssh))?;
    let header =
        ["run", "times", "GPUs", "step, s", "low to high", "fits", "steps", "training, min", "GPU-hours"];
    let rows = outputs.iter().map(|run| {
        let step = run.step_time_s;
        [
            run.run.to_string(),
            run.repeats.to_string(),
            run.gpus.to_string(),
            rounded(step.mid),
            format!("{} to {}", rounded(step.low), rounded(step.high)),
            if run.fits { "yes" } else { "NO" }.to_string(),
            run.steps.to_string(),
            format!("{:.1}", run.training_time_s.mid / 60.0),
            rounded(run.gpu_hours.mid),
        ]
    });
    output::table(header, &[1, 2, 3, 6, 7, 8], rows)?;
    let hours = |of: fn(Interval) -> f64| {
        significant(outputs.iter().map(|run| of(run.gpu_hours)).sum::<f64>(), 3).to_string()
    };
    let (low, mid, high) = (hours(|of| of.low), hours(|of| of.mid), hours(|of| of.high));
    output::text_line(&format!(
        "\n{mid} GPU-hours of training in all ({low} to {high}); queueing and starting up come besides."
    ))?;
    for (planned, output) in planned.iter().zip(outputs) {
        details(planned, output)?;
    }
    Ok(())
}

/// One run: what it is, what decides when it runs, and its script.
fn details(planned: &Planned, output: &Output) -> Result<(), Failure> {
    let mut lines = vec![format!("\n{}: {}", output.run, in_words(&planned.predicted.scenario))];
    let mut order = Vec::new();
    if !output.after.is_empty() {
        let names: Vec<&str> = output.after.iter().map(Name::as_str).collect();
        order.push(format!("after {}", names.join(", ")));
    }
    order.extend(output.singleton.then(|| "alone among the singletons".to_string()));
    order.extend(planned.queue_budget.map(|budget| format!("given up after {budget} in the queue")));
    order.extend(output.upload.map(|upload| match upload.logs {
        true => format!("result and log to {}", upload.to),
        false => format!("result to {}", upload.to),
    }));
    if !order.is_empty() {
        lines.push(format!("  {}", order.join("; ")));
    }
    for (name, secret) in &output.secrets {
        lines.push(format!("  {name}: {}", place(secret)));
    }
    lines.extend(output.launch.script.lines().map(|line| format!("    {line}")));
    output::text_line(&lines.join("\n"))
}

/// Where a secret will come from; a word of a command as a shell would show it, so that no control character acts.
fn place(secret: &Secret) -> String {
    match secret {
        Secret::Env(name) => format!("secret, from ${name} of your environment"),
        Secret::Command(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            format!("secret, printed by {}", words.join(" "))
        }
    }
}

/// A model that is a file, beside the campaign unless its path is absolute.
fn own_model(folder: &Path, model: &str) -> Result<Option<String>, Problem> {
    if model.starts_with("own:") || Catalog::embedded().model(model).is_ok() {
        return Ok(None);
    }
    match folder.join(model).to_str() {
        Some(path) => model_file::read(path),
        None => Err(Problem::clause(Field::Model, model, "is in a folder whose name is no text in UTF-8")),
    }
}
