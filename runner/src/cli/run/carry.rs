//! Starts or continues a round of a campaign, and prints its outcome.

use super::super::data_dir::DataDirArg;
use super::super::follow::{FollowArgs, Follower};
use super::super::output::{self, Format};
use super::super::summary::{self, Summary};
use super::super::watch::{self, JsonLines, LiveScreen};
use super::super::{Failure, note};
use super::orders::send_orders;
use super::plans::{is_of, plans_of};
use super::readiness::{check_cluster, check_uploads};
use super::scope::{RoundScope, failed, is_of_other_version};
use super::{noted, refusal, warn};
use crate::conduct::{ConductOptions, Conductor, Ending, Observer, RoundFigures, RunOutcome};
use crate::data::DataDir;
use crate::journal::{Event, Journal, Phase, Plan, Round, Run, has_jobs, now_ms};
use crate::secrets;
use crate::slurm::sha256;
use crate::ssh::{Link, LinkOptions};
use crate::store::Store;
use serde::Serialize;
use std::io::{self, IsTerminal as _};
use std::time::Duration;
use tokio::sync::mpsc;
use trainplan_shared::campaign::{Campaign, Cluster, NodeList, Planned};
use uuid::Uuid;

/// The flags of commands that carry out a round.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CarryArgs {
    #[command(flatten)]
    pub(in crate::cli) data: DataDirArg,
    /// Maximum number of runs queued or running at once
    #[arg(long, value_name = "RUNS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    at_once: u32,
    /// Minimum time between two polls of the cluster
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = interval)]
    interval: f64,
    /// Report a run as possibly hung after this long without a step, or after ten step times if that is
    /// longer
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    hang_after: u64,
    /// Nodes to leave out of further launches, such as n3,n[7-9], in addition to those of the campaign
    #[arg(long, value_name = "NODES")]
    exclude: Option<NodeList>,
    /// Stop when the cluster has been unreachable for this long; submitted jobs continue [default: no
    /// limit on a terminal, else 60]
    #[arg(long, value_name = "MINUTES", value_parser = seconds)]
    patience: Option<f64>,
    #[command(flatten)]
    pub(in crate::cli) follow: FollowArgs,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "use a number, 0 or more".into())
}

fn interval(text: &str) -> Result<f64, String> {
    seconds(text).ok().filter(|seconds| *seconds >= 0.2).ok_or_else(|| "use a number, 0.2 or more".into())
}

impl CarryArgs {
    fn options(&self) -> ConductOptions {
        let usual = if io::stderr().is_terminal() { None } else { Some(60.0) };
        ConductOptions {
            interval_s: self.interval,
            at_once: self.at_once as usize,
            hang_after_s: self.hang_after,
            exclude: self.exclude.as_ref().map(ToString::to_string),
            patience: self
                .patience
                .or(usual)
                .map(|minutes| Duration::from_secs_f64((minutes * 60.0).min(1e9))),
        }
    }
}

/// Whether the round that [`campaign`] would continue has jobs. Nothing is created.
pub(super) fn continues_jobs(
    campaign: &Campaign,
    cluster: &Cluster,
    args: &CarryArgs,
    new: NewRound,
) -> Result<bool, Failure> {
    let data = args.data.find().filter(|data| !new.wanted && Journal::file(data).exists());
    let Some(data) = data else { return Ok(false) };
    block_on(async {
        let journal = Journal::open(&data).await?;
        match journal.open_round(campaign.name.as_str(), cluster.name.as_str()).await? {
            Some(round) => Ok(has_jobs(&journal.runs(&round.id).await?)),
            None => Ok(false),
        }
    })
}

/// Returns whether the newest round of a campaign has the same plans, so that their notes were printed when it began. Nothing is
/// created. If the journal can't be read, the answer is no.
pub(in crate::cli) fn has_begun(
    campaign: &Campaign,
    cluster: &Cluster,
    planned: &[Planned],
    args: &CarryArgs,
) -> bool {
    let data = args.data.find().filter(|data| Journal::file(data).exists());
    let plans: Vec<Plan> = planned.iter().flat_map(plans_of).collect();
    let (Some(data), Ok(digest)) = (data, digest_of(&plans)) else { return false };
    let begun = block_on(async {
        let journal = Journal::open(&data).await?;
        is_newest(&journal, campaign.name.as_str(), cluster.name.as_str(), &digest).await
    });
    begun.unwrap_or_default()
}

/// Returns whether the newest round of a campaign on a cluster has the plans with this digest.
async fn is_newest(journal: &Journal, name: &str, cluster: &str, digest: &str) -> Result<bool, Failure> {
    let is_its = |round: &&Round| round.campaign == name && round.cluster == cluster;
    let rounds = journal.rounds().await?;
    Ok(rounds.iter().find(is_its).is_some_and(|newest| newest.sha256 == digest))
}

/// Returns the digest by which a round recognises its plans.
fn digest_of(plans: &[Plan]) -> Result<String, Failure> {
    let text = serde_json::to_string(plans).map_err(|error| Failure::Format(error.to_string()))?;
    Ok(sha256(&text))
}

/// Starts a round of a campaign, or continues the one that is not finished.
pub(in crate::cli) fn campaign(
    campaign: &Campaign,
    cluster: &Cluster,
    planned: &[Planned],
    args: &CarryArgs,
    new: NewRound,
    scope: RoundScope,
    format: Format,
) -> Result<(), Failure> {
    let data = args.data.open()?;
    block_on(async {
        let journal = Journal::open(&data).await?;
        let (name, cluster_name) = (campaign.name.as_str(), cluster.name.as_str());
        let _lock = journal.lock(name, cluster_name)?;
        let mut plans: Vec<Plan> = planned.iter().flat_map(plans_of).collect();
        // Of the whole campaign, even if a round has only some of its runs: whether the campaign was changed doesn't depend on them.
        let digest = digest_of(&plans)?;
        let open = journal.open_round(name, cluster_name).await?;
        let (continued, left) = if new.wanted { (None, open) } else { (open, None) };
        let begun = match &continued {
            Some(round) => journal.runs(&round.id).await?,
            None => Vec::new(),
        };
        if let (RoundScope::Failed { cancelled, .. }, None) = (scope, &continued) {
            plans = failed(&journal, name, cluster_name, plans, cancelled).await?;
            if plans.is_empty() {
                note(&format!("No run of {name} failed or is missing. Nothing was submitted."));
                return Ok(());
            }
        }
        // A round of failed runs that is continued has only these.
        let is_chosen = |run: &&Planned| match &continued {
            Some(_) => begun.iter().any(|begun| is_of(run, &begun.plan)),
            None => plans.iter().any(|plan| is_of(run, plan)),
        };
        let planned: &[Planned] = &planned.iter().filter(is_chosen).cloned().collect::<Vec<_>>();
        let all = planned.iter().flat_map(|run| run.env.secrets());
        let short: Vec<&str> = secrets::check(all).await?.into_iter().collect();
        if !short.is_empty() {
            note(&format!(
                "Copies of logs don't hide secrets of fewer than {} characters: {}. Don't let runs print them.",
                secrets::SHORTEST_HIDDEN,
                short.join(", ")
            ));
        }
        check_uploads(planned).await?;
        let is_submitted = has_jobs(&begun);
        if let Some(round) = &continued {
            let since = watch::clock(round.begun_ms);
            if round.sha256 == digest {
                note(&format!("Continuing the round of {since}."));
            } else if is_of_other_version(&journal, round, &begun, &plans).await? {
                note(&format!(
                    "Continuing the round of {since}, which another version of Trainplan began, with the scripts and \
                     predictions of that version."
                ));
            } else {
                return Err(Failure::Changed { campaign: round.campaign.clone(), since });
            }
        }
        if let RoundScope::Failed { anyway, .. } = scope {
            warn(planned, is_newest(&journal, name, cluster_name, &digest).await?);
            // Another version of the program may have submitted them, with other predictions.
            if let (Some(failure), false) = (refusal(planned), anyway || is_submitted) {
                return Err(noted(failure));
            }
        }
        let link = link_to(continued.as_ref().map_or(&cluster.ssh, |round| &round.ssh), cluster_name);
        if !is_submitted && !new.skip_checks {
            check_cluster(cluster, planned, &link, args.options().patience).await?;
        }
        if let Some(round) = &left {
            leave(&journal, round, new.abandon).await?;
        }
        let round = match continued {
            Some(round) => round,
            None => {
                let runs: Vec<(String, Plan)> =
                    plans.into_iter().map(|plan| (Uuid::now_v7().to_string(), plan)).collect();
                let begun = Round {
                    id: Uuid::now_v7().to_string(),
                    campaign: campaign.name.to_string(),
                    cluster: cluster.name.to_string(),
                    ssh: cluster.ssh.clone(),
                    sha256: digest,
                    begun_ms: now_ms(),
                    seen_ms: None,
                    ended_ms: None,
                    number: 0,
                    is_newest: true,
                };
                journal.begin(&begun, &runs).await?;
                // The journal numbers it.
                let same = |round: &Round| round.id == begun.id;
                journal.rounds().await?.into_iter().find(same).unwrap_or(begun)
            }
        };
        carry_over(&data, &journal, &link, round, args, format, Vec::new()).await
    })
}

fn link_to(host: &str, cluster: &str) -> Link {
    Link::new(host, LinkOptions { cluster: Some(cluster.to_string()), ..LinkOptions::default() })
}

/// How a round begins.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(in crate::cli) struct NewRound {
    /// Start a new round (a pass through the campaign), even if the last one is not finished
    #[arg(long = "new", id = "new")]
    pub(in crate::cli) wanted: bool,
    /// With --new, abandon the jobs of the unfinished round: they keep running, but nothing follows them
    #[arg(long, requires = "new")]
    abandon: bool,
    /// Submit without checking partitions, accounts, paths and free space on the cluster first
    #[arg(long)]
    skip_checks: bool,
}

/// Leaves an unfinished round for a new one. Its runs without a job will never have one; if it has no other runs, it
/// is over.
///
/// # Errors
/// It has jobs, or may have, and `abandon` does not allow to leave them.
async fn leave(journal: &Journal, round: &Round, abandon: bool) -> Result<(), Failure> {
    let runs: Vec<Run> =
        journal.runs(&round.id).await?.into_iter().filter(|run| !run.status.is_over()).collect();
    let (waiting, with_jobs): (Vec<&Run>, Vec<&Run>) =
        runs.iter().partition(|run| run.status.phase < Phase::Intended);
    if !with_jobs.is_empty() && !abandon {
        let told = |run: &&Run| {
            let jobs: Vec<&str> = run.status.jobs.iter().map(|(job, _)| job.as_str()).collect();
            format!(
                "{}/{} ({})",
                round.title(),
                run.plan.title(),
                match &*jobs {
                    [] => "being launched".into(),
                    jobs => format!("job {}", jobs.join(", ")),
                }
            )
        };
        let runs = with_jobs.iter().map(told).collect();
        return Err(Failure::WouldAbandon { campaign: round.campaign.clone(), runs });
    }
    for run in waiting {
        let why = "a new round was started before it was submitted".to_string();
        journal.write(&run.id, now_ms(), &Event::Failed { why }).await?;
    }
    if with_jobs.is_empty() {
        journal.end(&round.id, now_ms()).await?;
    } else {
        note(&format!(
            "No process is following the unfinished runs of round {0}. To follow them, use `trainplan jobs follow {0}`.",
            round.title()
        ));
    }
    Ok(())
}

/// Runs a future to its end.
pub(in crate::cli) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(future);
    // A thread may still wait for an answer at the terminal.
    runtime.shutdown_background();
    done
}

/// Carries out a round. The caller holds its lock.
pub(in crate::cli) async fn carry(
    data: &DataDir,
    journal: &Journal,
    round: Round,
    args: &CarryArgs,
    format: Format,
) -> Result<(), Failure> {
    carry_until(data, journal, round, args, format, Vec::new()).await
}

/// Runs a round without submitting anything until these runs are over, or all runs if the list is empty.
pub(in crate::cli) async fn carry_until(
    data: &DataDir,
    journal: &Journal,
    round: Round,
    args: &CarryArgs,
    format: Format,
    only: Vec<String>,
) -> Result<(), Failure> {
    let link = link_to(&round.ssh, &round.cluster);
    carry_over(data, journal, &link, round, args, format, only).await
}

/// Does the same over a link that may be connected already.
async fn carry_over(
    data: &DataDir,
    journal: &Journal,
    link: &Link,
    round: Round,
    args: &CarryArgs,
    format: Format,
    only: Vec<String>,
) -> Result<(), Failure> {
    let leaves_early = !only.is_empty();
    let store = Store::open(data).await?;
    let live = matches!(format, Format::Table) && io::stderr().is_terminal();
    let screen = LiveScreen::new(live);
    let pause = live.then(|| screen.pause());
    let mut reporter: Box<dyn Reporter> = match format {
        Format::Json => Box::new(JsonLines::new(&round.campaign)),
        _ => Box::new(screen),
    };
    let (orders, mut received) = mpsc::unbounded_channel();
    let signals = tokio::spawn(send_orders(orders, pause));
    let mut conductor =
        Conductor::take_up(journal, &store, link.clone(), round.clone(), args.options()).await?.until(only);
    let mut follower = Follower::new(&args.follow, &round, reporter.observer());
    let ended = conductor.conduct(&mut follower, &mut received).await;
    if let Ok(Ending::Over) = ended {
        conductor.finish_uploads(&mut follower, &mut received).await;
    }
    // Another process may have uploaded a result of this round.
    let runs = journal.runs(&round.id).await;
    follower
        .finish(match (&ended, &runs) {
            (Ok(Ending::Over), Ok(runs)) => Some(runs.as_slice()),
            _ => None,
        })
        .await;
    signals.abort();
    reporter.finish();
    let figures = conductor.figures();
    let runs = runs?;
    print_outcome(&round, &runs, format)?;
    log_figures(link, &figures);
    let others = journal.due().await?.iter().filter(|due| runs.iter().all(|run| run.id != due.run)).count();
    if others > 0 {
        note(&format!(
            "{others} results of other rounds are not uploaded yet. To upload them, use `trainplan upload \
             --pending`."
        ));
    }
    match ended? {
        // A command that cancels runs succeeds when they are over.
        Ending::Over | Ending::Left if leaves_early => Ok(()),
        Ending::Over if are_scored(&runs) => Ok(()),
        Ending::Over => Err(Failure::RunFailed),
        Ending::Left => {
            let open = || runs.iter().filter(|run| !run.status.is_over());
            let submitted = open().filter(|run| run.status.phase >= Phase::Intended).count();
            Err(Failure::Left { open: open().count(), all: runs.len(), submitted, campaign: round.campaign })
        }
    }
}

/// Returns whether all runs have a score. A run that was tried again counts by its last try.
pub(in crate::cli) fn are_scored(runs: &[Run]) -> bool {
    let is_last = |run: &&Run| !runs.iter().any(|other| run.plan.is_retried_by(&other.plan));
    runs.iter().filter(is_last).all(|run| RunOutcome::of(run) == RunOutcome::Scored)
}

/// An observer with an end.
trait Reporter {
    fn observer(&mut self) -> &mut dyn Observer;
    fn finish(&mut self) {}
}

impl Reporter for JsonLines {
    fn observer(&mut self) -> &mut dyn Observer {
        self
    }
}

impl Reporter for LiveScreen {
    fn observer(&mut self) -> &mut dyn Observer {
        self
    }

    fn finish(&mut self) {
        LiveScreen::finish(self);
    }
}

fn log_figures(link: &Link, figures: &RoundFigures) {
    let link = link.figures();
    tracing::info!(
        "{} remote commands ({} polls), {} bytes received, {} reconnections in {:.0} s",
        link.commands,
        figures.polls,
        link.received,
        link.reconnects,
        figures.elapsed_s
    );
}

fn print_outcome(round: &Round, runs: &[Run], format: Format) -> Result<(), Failure> {
    let summaries: Vec<Summary> = runs.iter().map(|run| Summary::of(round, run, None)).collect();
    match format {
        Format::Json => {
            for summary in &summaries {
                let line = serde_json::to_string(&Ended { event: "summary", summary })
                    .map_err(|error| Failure::Format(error.to_string()))?;
                output::text_line(&line)?;
            }
            Ok(())
        }
        Format::Csv => summary::csv(summaries.iter()),
        Format::Table => summary::table(&summaries),
    }
}

#[derive(Serialize)]
struct Ended<'a> {
    event: &'static str,
    #[serde(flatten)]
    summary: &'a Summary<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::{plan, round};

    #[tokio::test]
    async fn the_newest_round_of_a_campaign_is_recognised_by_its_plans() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(Some(folder.path().into())).unwrap();
        let journal = Journal::open(&data).await.unwrap();
        let [first, second] = ["a", "b"].map(|name| digest_of(&[plan(name)]).unwrap());
        let begin = async |id: &str, digest: &str, begun_ms: i64| {
            let begun = Round { sha256: digest.into(), begun_ms, ..round(id) };
            journal.begin(&begun, &[(format!("run-{id}"), plan("a"))]).await.unwrap();
        };
        let known = async |cluster: &str, digest: &str| {
            is_newest(&journal, "nightly", cluster, digest).await.unwrap()
        };
        assert!(!known("alpha", &first).await);
        begin("one", &first, 1).await;
        assert!(known("alpha", &first).await);
        assert!(!known("alpha", &second).await && !known("beta", &first).await);
        // The campaign was changed in between.
        begin("two", &second, 2).await;
        assert!(known("alpha", &second).await && !known("alpha", &first).await);
    }
}
