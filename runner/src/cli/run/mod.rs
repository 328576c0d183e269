//! `trainplan run`: runs a campaign on its cluster.

mod carry;
mod orders;
mod plans;
mod readiness;
mod scope;

pub(super) use carry::{
    CarryArgs, NewRound, are_scored, block_on, campaign as carry_campaign, carry, carry_until, has_begun,
};
pub(super) use scope::RoundScope;

use super::estimate::{self, contract, in_words};
use super::output::{self, Format, FormatArg};
use super::profiles::{self, mistakes};
use super::stack_file::with_files;
use super::{Failure, note};
use crate::{secrets, upload};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use trainplan_shared::campaign::{
    After, AfterEnd, Campaign, Cluster, Clusters, Name, NodeList, Planned, RunReference, Secret, Upload, plan,
};
use trainplan_shared::estimate::{Interval, MemoryVerdict};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{Launch, TimeLimit, WarningTopic};
use trainplan_shared::message::{Front, Message};
use trainplan_shared::units::{readable, readable_range};

/// Run a campaign on its cluster, or continue one
///
/// A campaign file (*.campaign.toml) lists runs. Each run names a recipe or describes a scenario. Its TOML keys have
/// the names of the flags of `trainplan estimate` and `trainplan launch`. The cluster's profile is in
/// ~/.config/trainplan/clusters.toml.
///
/// Every run is submitted exactly once, and followed. When it ends, it is scored: its step time, tokens per second
/// and MFU are computed from its log. They are compared with the plan and with the published number, and stored.
/// `trainplan serve` shows the results. If the command is interrupted, repeat it to continue. A run with `after` waits
/// for the end of other runs, even a failed or cancelled one; with on = "success", it needs their score.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan run nightly.campaign.toml --dry-run
  trainplan run nightly.campaign.toml
  trainplan run nightly.campaign.toml --failed
  trainplan run nightly.campaign.toml --format json --patience 120 >>nightly.jsonl

Exit codes:
  0  Every run was scored (with --dry-run: every run would be submitted)
  1  The command failed, or detached. Submitted jobs keep running
  2  Invalid arguments or input
  3  A run does not fit in GPU memory
  4  A run failed, or could not be scored
  5  The cluster can't be reached. Submitted jobs keep running")]
pub(super) struct Args {
    /// The campaign file
    #[arg(value_name = "CAMPAIGN")]
    campaign: PathBuf,
    /// Print the plan without submitting anything
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    new: NewRound,
    /// Start a new round with only the runs whose last attempt failed, and those that have not run yet. If the
    /// last round is not finished, it is continued instead
    #[arg(long, conflicts_with_all = ["new", "dry_run"])]
    failed: bool,
    /// With --failed, also start the runs that were cancelled
    #[arg(long, requires = "failed")]
    cancelled: bool,
    /// Submit runs even if they are predicted not to fit in GPU memory or in their time limit
    #[arg(long)]
    anyway: bool,
    /// File with your cluster profiles [default: ~/.config/trainplan/clusters.toml]
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    #[command(flatten)]
    carry: CarryArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// A planned run, as JSON.
#[derive(Debug, Serialize)]
struct PlannedRun<'a> {
    campaign: &'a Name,
    cluster: &'a Name,
    ssh: &'a str,
    run: &'a Name,
    recipe: Option<&'a str>,
    repeats: u32,
    after: Vec<&'a Name>,
    /// Those of them that must have a score.
    after_success: Vec<&'a Name>,
    retries: u32,
    exclude: Option<&'a NodeList>,
    singleton: bool,
    queue_budget_s: Option<u32>,
    upload: Option<&'a Upload>,
    gpus: u32,
    /// Whether it fits by the estimate, however small the margin.
    fits: bool,
    /// Whether it fits, if the estimate may be off.
    verdict: MemoryVerdict,
    step_time_s: Interval,
    /// What its measured step time can be compared with.
    reference: RunReference,
    steps: u32,
    /// Training time of one repeat, without startup.
    training_time_s: Interval,
    /// GPU-hours of all repeats.
    gpu_hours: Interval,
    estimate: estimate::Output<'a>,
    launch: &'a Launch,
    /// The sources of secrets.
    secrets: BTreeMap<&'a str, &'a Secret>,
    warnings: &'a [String],
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let text = profiles::read(&self.campaign)?;
        let (file, profiles_text) = profiles::read_profiles(self.clusters)?;
        // Report the mistakes of both files at once.
        let campaign = Campaign::parse_with_lines(&text).map_err(|found| mistakes(&self.campaign, &found));
        let clusters = Clusters::parse(&profiles_text).map_err(|found| mistakes(&file, &found));
        let ((campaign, lines), clusters) = match (campaign, clusters) {
            (Ok(campaign), Ok(clusters)) => (campaign, clusters),
            (Err(campaign), Err(clusters)) => return Err(Failure::Several(vec![campaign, clusters])),
            (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => return Err(failure),
        };
        let cluster = &profiles::find(&clusters, &campaign.cluster, &file)?;
        let folder = self.campaign.parent().unwrap_or(Path::new("")).to_path_buf();
        let planned = plan(&campaign, &lines, cluster, |spec| with_files(spec, &folder))
            .map_err(|found| mistakes(&self.campaign, &found))?;
        if self.failed {
            // Which of the runs start, and are checked, depends on the journal.
            let scope = RoundScope::Failed { cancelled: self.cancelled, anyway: self.anyway };
            let format = self.format.choose();
            return carry::campaign(&campaign, cluster, &planned, &self.carry, self.new, scope, format);
        }
        let refused = match refusal(&planned) {
            Some(_) if self.anyway => None,
            // Another version of the program may have submitted them, with other predictions.
            Some(_) if carry::continues_jobs(&campaign, cluster, &self.carry, self.new)? => None,
            refused => refused,
        };
        let is_known = has_begun(&campaign, cluster, &planned, &self.carry);
        if !self.dry_run {
            warn(&planned, is_known);
            if let Some(failure) = refused {
                return Err(noted(failure));
            }
            let (all, format) = (RoundScope::All, self.format.choose());
            return carry::campaign(&campaign, cluster, &planned, &self.carry, self.new, all, format);
        }
        let outputs: Vec<PlannedRun> = planned.iter().map(|run| of(&campaign, cluster, run)).collect();
        match self.format.choose() {
            Format::Json => output::json(&outputs)?,
            Format::Csv => csv(&outputs)?,
            Format::Table => table(&campaign, cluster, &planned, &outputs)?,
        }
        warn(&planned, is_known);
        note_unset_secrets(&planned);
        self.format.note_unasked_json();
        refused.map_or(Ok(()), Err)
    }
}

/// Returns why runs are not submitted: some don't fit in memory, or can't finish within their time limit.
fn refusal(planned: &[Planned]) -> Option<Failure> {
    let unfit = planned.iter().filter(|run| !may_run(run)).map(|run| run.run.name.to_string());
    let unfit: Vec<String> = unfit.collect();
    if !unfit.is_empty() {
        return Some(Failure::RunsDoNotFit(unfit));
    }
    let short: Vec<String> = planned.iter().filter_map(needed_limit).collect();
    (!short.is_empty()).then_some(Failure::ShortTimeLimits(short))
}

/// Returns why runs are not submitted, after a note on what to do if they don't fit.
fn noted(refusal: Failure) -> Failure {
    if matches!(refusal, Failure::RunsDoNotFit(_)) {
        note("Use --dry-run to see the whole plan, or --anyway to run it regardless.");
    }
    refusal
}

/// Returns whether a run fits by its estimate, or has a published result and so has run before.
fn may_run(planned: &Planned) -> bool {
    planned.predicted.estimate.memory.verdict() != MemoryVerdict::DoesNotFit
        || planned.predicted.published.is_some()
}

/// Returns which run can't finish within its time limit, and a limit that is long enough. `None` if it can.
fn needed_limit(planned: &Planned) -> Option<String> {
    let mut warnings = planned.launch.warnings.iter();
    let short = warnings.find(|warning| warning.topic == WarningTopic::TimeLimit)?;
    Some(format!("{}: {}", planned.run.name, short.fix.text(Front::File)))
}

fn of<'a>(campaign: &'a Campaign, cluster: &'a Cluster, planned: &'a Planned) -> PlannedRun<'a> {
    let Planned { run, repeats, singleton, queue_budget, upload, predicted, launch, env, .. } = planned;
    PlannedRun {
        campaign: &campaign.name,
        cluster: &cluster.name,
        ssh: &cluster.ssh,
        run: &run.name,
        recipe: planned.recipe.as_deref(),
        repeats: *repeats,
        after: run.after.iter().map(|after| &after.run).collect(),
        after_success: names_of(&run.after, AfterEnd::Success).collect(),
        retries: planned.retries,
        exclude: planned.exclude,
        singleton: *singleton,
        queue_budget_s: queue_budget.map(TimeLimit::seconds),
        upload: *upload,
        gpus: predicted.scenario.layout.gpus(),
        fits: predicted.estimate.memory.fits(),
        verdict: predicted.estimate.memory.verdict(),
        step_time_s: predicted.estimate.step_time_s,
        reference: reference(planned),
        steps: launch.steps,
        training_time_s: planned.training_s,
        gpu_hours: planned.gpu_hours,
        estimate: contract(predicted),
        launch,
        secrets: env.secrets().collect(),
        warnings: &planned.warnings,
    }
}

/// Returns what the step time of a run can be compared with. A calibration of the prediction doesn't change what runs.
fn reference(planned: &Planned) -> RunReference {
    let uncalibrated = [Field::GemmTflops, Field::ClusterFactor]
        .iter()
        .fold(planned.spec.clone(), |spec, field| spec.with(*field, ""));
    let published = uncalibrated.scenario().ok().and_then(|scenario| scenario.reference());
    RunReference::new(published, planned.predicted.estimate.step_time_s)
}

/// Prints the warnings of the runs, each text once, with the keys of a campaign file. If they are known from the campaign's last round,
/// they are only counted, except with `-v`.
pub(super) fn warn(planned: &[Planned], is_known: bool) {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for planned in planned {
        let in_file = |message: &Message| message.text(Front::File);
        let verdict = planned.predicted.estimate.memory.verdict();
        let of_launch = planned.launch.warnings_beside(verdict).map(|warning| {
            let (text, fix) = (in_file(&warning.text), in_file(&warning.fix));
            format!("{text} {fix}").trim_end().to_string()
        });
        let predicted = planned.predicted.warnings.iter().map(in_file);
        let own = planned.warnings.iter().cloned().chain(predicted);
        for text in own.chain(of_launch) {
            let name = planned.run.name.as_str();
            match said.iter_mut().find(|(earlier, _)| *earlier == text) {
                Some((_, names)) => names.push(name),
                None => said.push((text, vec![name])),
            }
        }
    }
    if is_known && !tracing::enabled!(tracing::Level::INFO) {
        match said.len() {
            0 => {}
            1 => note("1 note is the same as in the campaign's last round. To see it, add -v."),
            count => note(&format!(
                "{count} notes are the same as in the campaign's last round. To see them, add -v."
            )),
        }
        return;
    }
    for (text, names) in said {
        note(&format!("{}: {text}", names.join(", ")));
    }
}

/// Notes the environment variables of secrets that are not set here, each once: without them nothing is submitted.
fn note_unset_secrets(planned: &[Planned]) {
    let of_runs = planned.iter().flat_map(|run| run.env.secrets());
    let unset = of_runs.filter_map(|(name, secret)| secrets::unset(name, secret));
    let uploads = planned.iter().filter_map(|run| run.upload);
    let tokens = uploads.filter_map(|upload| secrets::unset(&upload::token_of(&upload.to), &upload.token));
    let unset: BTreeSet<String> = unset.chain(tokens).map(|error| error.to_string()).collect();
    for error in unset {
        note(&error);
    }
}

fn csv(outputs: &[PlannedRun]) -> Result<(), Failure> {
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
        "reference",
        "reference_step_time_s",
        "verdict",
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
                run.reference.in_words(),
                run.reference.step_time_s().to_string(),
                run.verdict.to_string(),
            ]
        }),
    )
}

fn table(
    campaign: &Campaign,
    cluster: &Cluster,
    planned: &[Planned],
    outputs: &[PlannedRun],
) -> Result<(), Failure> {
    let Campaign { name, .. } = campaign;
    output::text_line(&format!(
        "Campaign {name} on cluster {} ({}).\n",
        cluster.name,
        cluster.ssh_command()
    ))?;
    let header =
        ["run", "repeats", "GPUs", "step s", "interval", "fits", "steps", "training min", "GPU-hours"];
    let rows = outputs.iter().map(|run| {
        let step = run.step_time_s;
        [
            run.run.to_string(),
            run.repeats.to_string(),
            run.gpus.to_string(),
            readable(step.mid),
            readable_range((step.low, step.high), readable),
            in_table(run.verdict).to_string(),
            run.steps.to_string(),
            format!("{:.1}", run.training_time_s.mid / 60.0),
            readable(run.gpu_hours.mid),
        ]
    });
    output::table(header, &[1, 2, 3, 6, 7, 8], rows)?;
    let hours = |of: fn(Interval) -> f64| outputs.iter().map(|run| of(run.gpu_hours)).sum::<f64>();
    output::prose(&format!(
        "\nTotal: {} GPU-hours ({}) of training, without queueing and startup.",
        readable(hours(|of| of.mid)),
        readable_range((hours(|of| of.low), hours(|of| of.high)), readable)
    ))?;
    for (planned, output) in planned.iter().zip(outputs) {
        details(planned, output)?;
    }
    Ok(())
}

/// Returns whether a run fits, in a word or two.
fn in_table(verdict: MemoryVerdict) -> &'static str {
    match verdict {
        MemoryVerdict::Fits => "yes",
        MemoryVerdict::TooClose => "too close",
        MemoryVerdict::DoesNotFit => "NO",
    }
}

/// Returns the names of the runs that must end in some way.
fn names_of(after: &[After], on: AfterEnd) -> impl Iterator<Item = &Name> {
    after.iter().filter(move |after| after.on == on).map(|after| &after.run)
}

/// Prints a run: its scenario, when it may run, and its script.
fn details(planned: &Planned, output: &PlannedRun) -> Result<(), Failure> {
    let mut lines = vec![
        format!("\n{}: {}", output.run, in_words(&planned.predicted.scenario)),
        format!("  Reference: {}", output.reference.in_words()),
    ];
    let mut order = Vec::new();
    for (on, how) in [(AfterEnd::Any, ""), (AfterEnd::Success, ", if scored")] {
        let names: Vec<&str> = names_of(&planned.run.after, on).map(Name::as_str).collect();
        if !names.is_empty() {
            order.push(format!("after {}{how}", names.join(", ")));
        }
    }
    order.extend(output.singleton.then(|| "no other singleton at the same time".to_string()));
    order.extend(match planned.retries {
        0 => None,
        1 => Some("one retry after a node failure or a preemption".to_string()),
        retries => Some(format!("up to {retries} retries after a node failure or a preemption")),
    });
    order.extend(planned.exclude.map(|nodes| format!("not on {nodes}")));
    order.extend(planned.queue_budget.map(|budget| format!("cancelled after {budget} in the queue")));
    order.extend(output.upload.map(|upload| match upload.logs {
        true => format!("result and log to {}", upload.to),
        false => format!("result to {}", upload.to),
    }));
    if !order.is_empty() {
        lines.push(format!("  {}", order.join("; ")));
    }
    let mut commands = Vec::new();
    for (name, secret) in &output.secrets {
        lines.push(format!("  {name}: {}", place(secret)));
        if let Secret::Command(words) = secret {
            commands.push(quoted(words));
        }
    }
    let whole: Vec<&str> = commands.iter().map(String::as_str).collect();
    output::prose_around(&lines.join("\n"), &whole)?;
    let script: Vec<String> = output.launch.script.lines().map(|line| format!("    {line}")).collect();
    output::text_line(&script.join("\n"))
}

/// Returns where a secret comes from.
fn place(secret: &Secret) -> String {
    match secret {
        Secret::Env(name) => format!("secret, from the environment variable {name}"),
        Secret::Command(words) => format!("secret, printed by {}", quoted(words)),
    }
}

/// Returns a command whose words are quoted, so that control characters have no effect.
fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" ")
}
