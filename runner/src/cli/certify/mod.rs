//! `trainplan certify`: proves that a cluster reaches the published speed of a release's recipes.

mod from_logs;

use super::output::{self, Format, FormatArg};
use super::profiles;
use super::run::{CarryArgs, NewRound, RoundScope, block_on, carry_campaign, has_begun, warn};
use super::stack_file::with_files;
use super::{Failure, note, watch};
use crate::journal::{Event, Journal, Phase, Round, Run};
use crate::store::Store;
use from_logs::ClusterLogs;
use serde::Serialize;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use trainplan_shared::campaign::{
    Campaign, CampaignProblem, Certificate, CertifiedRun, Cluster, Name, Planned, ReferenceSource,
    RunReference, RunVerdict, certification, plan, untested,
};
use trainplan_shared::catalog::{Catalog, Release};
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::problem::Problem;
use trainplan_shared::result::{Report, Slowdown, View};
use trainplan_shared::spec::Spec;
use uuid::Uuid;

/// Prove that a cluster reaches the published speed of NVIDIA's recipes
///
/// Runs the recipes of a release for the cluster's GPU type at one GPU count, except for strong-scaling recipes, proxies and
/// variants, and compares each run with the best reference: the published result of that recipe, the published result of the
/// same layout at another GPU count, or, where nothing is published, the prediction with its interval. A run passes at 95 % of
/// the published speed.
///
/// The runs are a campaign: if the command is interrupted, repeat it to continue. Once all runs have ended, repeating it
/// prints the report again; --new measures again.
///
/// With --from, nothing runs: the logs of runs that are over are scored and compared with the same references. The logs of a
/// recipe are its repeats.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan certify --cluster alpha --gpus 64 --dry-run
  trainplan certify --cluster alpha --gpus 64 --repeats 3 --report alpha.html
  trainplan certify --cluster alpha --gpus 512 --release 26.06.01 --format json
  trainplan certify --cluster alpha --gpu h100 --gpus 64 --from experiments/ --report alpha.html

Exit codes:
  0  Every run passed
  1  The command failed, or detached. Submitted jobs keep running
  2  Invalid arguments or input
  4  A run, or one of its repeats, failed or could not be scored
  5  The cluster can't be reached. Submitted jobs keep running
  6  A run is slower than its reference")]
pub(super) struct Args {
    /// The cluster's profile in clusters.toml. With --from and --gpu, any name for the report
    #[arg(long, value_name = "NAME")]
    cluster: Name,
    /// GPUs of each run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    gpus: u32,
    /// The release whose recipes run [default: the newest in the cluster's profile; with --from, that of the logs]
    #[arg(long, value_name = "RELEASE")]
    release: Option<Release>,
    /// How often each recipe runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Print the campaign file, with the reference of each run, without submitting anything; `trainplan run` accepts it
    #[arg(long)]
    dry_run: bool,
    /// Certify from these logs, saved results or folders, without running anything
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["dry_run", "repeats", "new"])]
    from: Vec<PathBuf>,
    /// With --from, the GPU type [default: that of the cluster's profile]
    #[arg(long, value_name = "TYPE", requires = "from")]
    gpu: Option<String>,
    #[command(flatten)]
    new: NewRound,
    /// Write the report to this file: a page to hand on if its name ends in .html, JSON if it ends in .json, and
    /// Markdown otherwise
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    report: Option<PathBuf>,
    /// File with your cluster profiles [default: ~/.config/trainplan/clusters.toml]
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    #[command(flatten)]
    carry: CarryArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// The last line of the JSON output.
#[derive(Debug, Serialize)]
struct Certified<'a> {
    event: &'static str,
    summary: String,
    #[serde(flatten)]
    certificate: &'a Certificate,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        if !self.from.is_empty() {
            return self.certify_logs();
        }
        let cluster = profiles::cluster(&self.cluster, self.clusters.clone())?;
        let gpu = cluster.spec.get(Field::Gpu).ok_or(Failure::Refused(NO_GPU))?;
        let newest = || installed(&cluster).max();
        let Some(release) = self.release.or_else(newest) else {
            return Err(Failure::Refused(
                "the cluster's profile names no installed release. Add one, or give --release",
            ));
        };
        let gpu = Catalog::embedded().gpu(gpu)?.id.as_str();
        let campaign = certification(&cluster.name, gpu, self.gpus, release, self.repeats)?;
        let text = campaign.to_text();
        // Planned as from a file, so that problems name its lines.
        let path = PathBuf::from(format!("{}.campaign.toml", campaign.name));
        let (campaign, lines) =
            Campaign::parse_with_lines(&text).map_err(|found| profiles::mistakes(&path, &found))?;
        let planned = plan(&campaign, &lines, &cluster, |spec| with_files(spec, Path::new("")))
            .map_err(|found| unplanned(&found, &cluster, gpu, (self.gpus, release)))?;
        warn(&planned, has_begun(&campaign, &cluster, &planned, &self.carry));
        if self.dry_run {
            return output::text(&format!("{}{text}", references(&planned)));
        }
        let format = self.format.choose();
        let newest = || block_on(newest_round(&self.carry, &campaign.name, &cluster.name));
        let carried = match newest()? {
            Some(round) if round.ended_ms.is_some() && !self.new.wanted => {
                note(&format!(
                    "These runs ended on {}. Use --new to measure again.",
                    watch::time(round.ended_ms.unwrap_or_default())
                ));
                Ok(())
            }
            _ => {
                let all = RoundScope::All;
                carry_campaign(&campaign, &cluster, &planned, &self.carry, self.new, all, format)
            }
        };
        match carried {
            Ok(()) | Err(Failure::RunFailed) => {}
            Err(failure) => return Err(failure),
        }
        let Some(round) = newest()? else { return carried };
        let runs = block_on(runs_of(&self.carry, &round))?;
        let mut certified = certified(&runs);
        block_on(complete(&mut certified, &self.carry))?;
        let repeats = runs.iter().map(|run| run.plan.repeats).max().unwrap_or(self.repeats);
        let certificate = Certificate {
            cluster: cluster.name.to_string(),
            gpu: gpu.to_owned(),
            gpus: self.gpus,
            release,
            began: watch::time(round.begun_ms),
            runs: certified,
            untested: untested(gpu, self.gpus, release),
            command: format!(
                "trainplan certify --cluster {} --gpus {} --release {release} --repeats {repeats} --new",
                cluster.name, self.gpus
            ),
        };
        finish(&certificate, self.report.as_deref(), format)
    }

    /// Certifies from logs, without running anything.
    fn certify_logs(&self) -> Result<(), Failure> {
        let profile = match self.gpu {
            Some(_) => None,
            None => Some(profiles::cluster(&self.cluster, self.clusters.clone())?),
        };
        let of_profile = |field| profile.as_ref().and_then(|profile| profile.spec.get(field));
        let gpu = self.gpu.as_deref().or_else(|| of_profile(Field::Gpu)).ok_or(Failure::Refused(NO_GPU))?;
        let gpu = Catalog::embedded().gpu(gpu)?.id.as_str();
        let logs = ClusterLogs::read(&self.from, gpu)?;
        let release = match self.release {
            Some(release) => release,
            None => logs.release()?,
        };
        let campaign = certification(&self.cluster, gpu, self.gpus, release, 1)?;
        let predicted = |recipe: &str| -> Result<Interval, Failure> {
            let mut spec = Spec::default().with(Field::Recipe, recipe);
            spec.set(Field::ClusterFactor, of_profile(Field::ClusterFactor).unwrap_or_default());
            Ok(with_files(spec, Path::new(""))?.estimate()?.estimate.step_time_s)
        };
        let runs = logs.certified(&campaign, self.gpus, predicted)?;
        for log in logs.left_out(&runs) {
            note(&format!("Left out: {log}"));
        }
        let repeats = runs.iter().map(|run| run.repeats).max().unwrap_or(1);
        let certificate = Certificate {
            cluster: self.cluster.to_string(),
            gpu: gpu.to_owned(),
            gpus: self.gpus,
            release,
            began: logs.began(&runs).unwrap_or_else(|| "time unknown".to_owned()),
            runs,
            untested: untested(gpu, self.gpus, release),
            command: format!(
                "trainplan certify --cluster {} --gpus {} --release {release} --repeats {repeats}",
                self.cluster, self.gpus
            ),
        };
        finish(&certificate, self.report.as_deref(), self.format.choose())
    }
}

/// What is wrong with a profile without a GPU type.
const NO_GPU: &str = "the cluster's profile has no GPU type. Add gpu = \"h100\", for example";

/// Writes and prints a certificate.
///
/// # Errors
/// A run is slow, or was not scored.
fn finish(certificate: &Certificate, report: Option<&Path>, format: Format) -> Result<(), Failure> {
    if let Some(path) = report {
        write_report(path, certificate)?;
    }
    print(certificate, format)?;
    let slow = certificate.with(RunVerdict::Slow).count();
    match (certificate.runs.iter().filter(|run| run.missing() > 0).count(), slow) {
        (0, 0) => Ok(()),
        (0, slow) => Err(Failure::Slow { slow, all: certificate.runs.len() }),
        _ => Err(Failure::RunFailed),
    }
}

/// Returns the releases in the cluster's profile.
fn installed(cluster: &Cluster) -> impl Iterator<Item = Release> {
    cluster.installations().into_iter().filter_map(|installed| installed.release)
}

/// Returns why the campaign can't run. Nobody wrote its file, so the failure doesn't name its lines: it names the releases of the
/// profile that can be certified, if the profile lacks this one.
fn unplanned(
    found: &[CampaignProblem],
    cluster: &Cluster,
    gpu: &str,
    (gpus, release): (u32, Release),
) -> Failure {
    let of_recipe = format!(".{}", Field::Recipe.flag());
    if !installed(cluster).any(|there| there == release)
        && found.iter().all(|problem| problem.key.ends_with(&of_recipe))
    {
        let can_run = |there: &Release| certification(&cluster.name, gpu, gpus, *there, 1).is_ok();
        let message = format!(
            "Release {release} isn't in the profile of cluster {0}. Set its install-path under \
             [cluster.{0}.release.\"{release}\"], or certify a release that is there.",
            cluster.name
        );
        return Problem::new(Field::Release, release, message)
            .suggest(installed(cluster).filter(can_run))
            .into();
    }
    let mut texts: Vec<String> = Vec::new();
    for CampaignProblem { key, message, .. } in found {
        let text = format!("{key}: {message}");
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    Failure::Uncertifiable(texts)
}

/// Returns what each run will be compared with, as comments of the campaign file.
fn references(planned: &[Planned]) -> String {
    let mut text = "# The step time that each run is compared with:\n".to_string();
    for planned in planned {
        let predicted = planned.predicted.estimate.step_time_s;
        let reference = RunReference::of(planned.recipe.as_deref(), predicted);
        let recipe = planned.recipe.as_deref().and_then(|id| Catalog::embedded().recipe(id).ok());
        let source = recipe.and_then(ReferenceSource::of);
        let source = source.map_or(String::new(), |source| format!(" ({})", source.in_words()));
        text += &format!("#   {}: {}{source}\n", planned.run.name, reference.in_words());
    }
    text
}

async fn newest_round(args: &CarryArgs, campaign: &Name, cluster: &Name) -> Result<Option<Round>, Failure> {
    let journal = Journal::open(&args.data.open()?).await?;
    let is_of = |round: &Round| round.campaign == campaign.as_str() && round.cluster == cluster.as_str();
    Ok(journal.rounds().await?.into_iter().find(is_of))
}

async fn runs_of(args: &CarryArgs, round: &Round) -> Result<Vec<Run>, Failure> {
    Ok(Journal::open(&args.data.open()?).await?.runs(&round.id).await?)
}

/// Returns the runs with their repeats together, in the order of the campaign.
fn certified(runs: &[Run]) -> Vec<CertifiedRun> {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.plan.name.as_str()) {
            names.push(&run.plan.name);
        }
    }
    let of_name = |name: &str| -> Option<CertifiedRun> {
        let repeats: Vec<&Run> = runs.iter().filter(|run| run.plan.name == name).collect();
        let plan = &repeats.first()?.plan;
        let (mut times, mut reasons) = (Vec::new(), Vec::new());
        for run in &repeats {
            let (step_time_s, why) = match &run.status.parsed {
                Some(Event::Parsed { step_time_s, judged_s, reason, .. }) => {
                    (step_time_s.map(|scored_s| (scored_s, judged_s.unwrap_or(scored_s))), reason.clone())
                }
                _ => (None, None),
            };
            times.extend(step_time_s);
            if step_time_s.is_none() {
                let why = run.status.failure.clone().or(why);
                reasons.push(why.unwrap_or_else(|| watch::in_words(run)));
            }
        }
        let recipe = plan.recipe.as_deref();
        let predicted = plan.predicted.step_time_s;
        let stored = repeats.iter().filter(|run| run.status.phase == Phase::Stored);
        Some(CertifiedRun {
            launch: Some(plan.launched.clone()),
            results: stored.map(|run| run.id.clone()).collect(),
            ..CertifiedRun::new(name, recipe, plan.gpus, (repeats.len(), times), predicted, reasons)
        })
    };
    names.into_iter().filter_map(of_name).collect()
}

/// Adds what the stored results of each run say: the container that it used and, if it is slow, what could explain that. The first
/// result that says something counts.
async fn complete(runs: &mut [CertifiedRun], args: &CarryArgs) -> Result<(), Failure> {
    if runs.iter().all(|run| run.results.is_empty()) {
        return Ok(());
    }
    let store = match Store::open(&args.data.open()?).await {
        Ok(store) => store,
        Err(error) => {
            note(&format!(
                "The report names the containers of the release, and no causes of slow runs: {error}"
            ));
            return Ok(());
        }
    };
    for run in runs {
        let (mut container, is_slow) = (None, run.verdict == RunVerdict::Slow);
        for id in &run.results {
            // If a result can't be read, the report only says less.
            let id = Uuid::parse_str(id).unwrap_or_default();
            let Some(result) = store.get(id).await.ok().flatten() else { continue };
            container = container.or_else(|| result.job.settings.container().map(str::to_owned));
            if is_slow && run.cause.is_none() {
                run.cause = cause(&Report::of(&result, &View::default()));
            }
        }
        if container.is_some() {
            run.container = container;
        }
    }
    Ok(())
}

/// Returns what could explain that a run is slow: sentences.
fn cause(report: &Report) -> Option<String> {
    let slowdown = report.slowdown.as_ref().map(Slowdown::sentence);
    let sentences: Vec<String> = slowdown.into_iter().chain(report.slow_steps.clone()).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn write_report(path: &Path, certificate: &Certificate) -> Result<(), Failure> {
    let text = match path.extension().and_then(OsStr::to_str) {
        Some("html") => certificate.html(),
        Some("json") => {
            serde_json::to_string_pretty(certificate).map_err(|error| Failure::Format(error.to_string()))?
                + "\n"
        }
        _ => certificate.markdown(),
    };
    fs::write(path, text).map_err(|error| Failure::File { path: path.to_path_buf(), error })
}

fn print(certificate: &Certificate, format: Format) -> Result<(), Failure> {
    let header = ["run", "step time", "reference", "speed, %", "verdict"];
    match format {
        Format::Json => {
            let line = Certified { event: "certificate", summary: certificate.summary(), certificate };
            let line = serde_json::to_string(&line).map_err(|error| Failure::Format(error.to_string()))?;
            output::text_line(&line)
        }
        Format::Csv => output::csv(header, certificate.rows()),
        Format::Table => {
            output::text_line("")?;
            output::table(header, &[3], certificate.rows())?;
            output::prose(&format!("\n{}", certificate.summary()))?;
            for remark in certificate.remarks() {
                output::prose(&format!("  {remark}"))?;
            }
            for remark in certificate.container_remarks() {
                output::prose(&format!("  {remark}"))?;
            }
            for run in &certificate.runs {
                for why in run.reasons.iter().chain(&run.cause) {
                    output::prose(&format!("  {}: {why}", run.run))?;
                }
            }
            for untested in certificate.untested_in_words() {
                output::prose(&untested)?;
            }
            Ok(())
        }
    }
}
