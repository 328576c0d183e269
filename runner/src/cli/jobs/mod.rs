//! `trainplan jobs`: the runs of campaigns.

mod failures;

use super::data_dir::DataDirArg;
use super::follow::{FollowArgs, Follower};
use super::output::{self, Format, FormatArg};
use super::run::{CarryArgs, are_scored, block_on, carry};
use super::summary::{ListedState, Summary, counts, csv, table};
use super::watch::{self, JsonLines, LiveScreen};
use super::{Failure, note};
use crate::conduct::Observer;
use crate::data::DataDir;
use crate::fetch::{self, FetchRequest};
use crate::journal::{Event, Journal, JournalError, Phase, Round, Run};
use crate::ssh::{Link, LinkOptions};
use crate::store::Store;
use clap::Subcommand;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// List, show, follow, cancel or fetch the runs of campaigns, and count their failures
///
/// Works from any terminal of this machine, whether or not `trainplan run` is active. RUN is a run's name (llama-8b),
/// a repeat of it (llama-8b#2 is the second), or, if several campaigns use the name, the name with its campaign
/// (nightly/llama-8b). The first 8 digits of an id also work. A name refers to the run in the campaign's newest round
/// (a round is one pass through the campaign). Rounds are numbered: nightly@2/llama-8b is the run in the second round
/// of nightly.
///
/// These commands don't read clusters.toml and have no --clusters option: each round keeps its cluster's ssh host.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan jobs list
  trainplan jobs show llama-405b
  trainplan jobs follow --log
  trainplan jobs follow nightly --on-end 'echo \"$TRAINPLAN_RUN $TRAINPLAN_OUTCOME\" | mail -s Trainplan me'
  trainplan jobs follow nightly --webhook https://hooks.example.com/trainplan
  trainplan jobs cancel llama-405b#2
  trainplan jobs fetch llama-405b --to results/
  trainplan jobs failures --cluster alpha

Exit codes:
  0  Success
  1  The command failed, or detached. Submitted jobs keep running
  2  Invalid arguments, or an unknown run
  4  A followed run failed, or could not be scored
  5  The cluster can't be reached. Submitted jobs keep running")]
pub(super) struct Args {
    #[command(subcommand)]
    command: JobsCommand,
}

#[derive(Debug, Subcommand)]
enum JobsCommand {
    /// List the runs of each campaign's newest round, and of unfinished rounds
    List {
        /// List the runs of all rounds
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        filter: RunFilter,
        #[command(flatten)]
        data: DataDirArg,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Show the events of a run, with their times and sources
    Show {
        /// Name of the run, or the beginning of its id
        #[arg(value_name = "RUN")]
        run: String,
        #[command(flatten)]
        data: DataDirArg,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Continue a campaign, or watch the process that is running it
    Follow {
        /// Name of the campaign, or of one of its rounds (nightly@2) [default: the newest unfinished one]
        #[arg(value_name = "CAMPAIGN")]
        campaign: Option<String>,
        #[command(flatten)]
        carry: CarryArgs,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Cancel runs, and wait until Slurm confirms it
    Cancel {
        /// Names of the runs, or the beginnings of their ids
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
        #[command(flatten)]
        carry: CarryArgs,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Fetch the files of a run from its cluster
    ///
    /// Files that were already fetched are skipped. If the command is interrupted, repeat it to continue.
    Fetch {
        /// Name of the run, or the beginning of its id
        #[arg(value_name = "RUN")]
        run: String,
        /// Folder for the files
        #[arg(long, value_name = "DIR", default_value = ".")]
        to: PathBuf,
        /// Fetch checkpoints as well, which can be terabytes
        #[arg(long)]
        checkpoints: bool,
        /// Fetch profiles as well
        #[arg(long)]
        profiles: bool,
        #[command(flatten)]
        data: DataDirArg,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Count the GPU-hours and interruptions of past runs, and print the failure rate to plan with
    ///
    /// Reads all rounds of the journal. Prints how the jobs ended, the interruptions per 1,000 GPU-hours with their
    /// exact 80 % interval, mean waiting times, and the --failure-rate to plan with.
    ///
    /// As in the published studies, an interruption is unplanned: a lost node, a preemption, a requeue, or a job that
    /// failed after its first step. A job that fails before its first step, runs out of memory, hits its time limit or
    /// is cancelled does not count. The logs of stored results show why a job failed.
    Failures {
        /// Only jobs on this cluster
        #[arg(long, value_name = "NAME")]
        cluster: Option<String>,
        #[command(flatten)]
        data: DataDirArg,
        #[command(flatten)]
        format: FormatArg,
    },
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            JobsCommand::List { all, filter, data, format } => {
                block_on(list(&data.open()?, all, &filter, format.choose()))
            }
            JobsCommand::Show { run, data, format } => block_on(show(&data.open()?, &run, format.choose())),
            JobsCommand::Follow { campaign, carry, format } => {
                block_on(follow(campaign.as_deref(), &carry, format.choose()))
            }
            JobsCommand::Cancel { runs, carry, format } => block_on(cancel(&runs, &carry, format.choose())),
            JobsCommand::Failures { cluster, data, format } => {
                block_on(failures::failures(&data.open()?, cluster.as_deref(), format.choose()))
            }
            JobsCommand::Fetch { run, to, checkpoints, profiles, data, format } => {
                let what = (checkpoints, profiles);
                block_on(fetch_run(&data.open()?, &run, &to, what, format.choose()))
            }
        }
    }
}

/// Which runs to list.
#[derive(Debug, clap::Args)]
struct RunFilter {
    /// Only runs of this campaign, or of one of its rounds (nightly@2)
    #[arg(long, value_name = "NAME")]
    campaign: Option<String>,
    /// Only runs on this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only runs in one of these states
    #[arg(long, value_enum, value_name = "STATE", value_delimiter = ',')]
    state: Vec<ListedState>,
}

impl RunFilter {
    fn takes_round(&self, round: &Round) -> bool {
        self.campaign.as_ref().is_none_or(|name| is_named(round, name))
            && self.cluster.as_ref().is_none_or(|cluster| round.cluster == *cluster)
    }

    fn takes(&self, run: &Summary) -> bool {
        self.state.is_empty() || self.state.contains(&run.listed)
    }
}

/// Returns whether a name is that of a round or its campaign.
fn is_named(round: &Round, name: &str) -> bool {
    round.campaign == name || round.title() == name
}

async fn list(data: &DataDir, all: bool, filter: &RunFilter, format: Format) -> Result<(), Failure> {
    let journal = Journal::open(data).await?;
    let mut rounds = journal.rounds().await?;
    let is_any = !rounds.is_empty();
    rounds.retain(|round| {
        let is_listed =
            all || round.is_newest || round.ended_ms.is_none() || filter.campaign == Some(round.title());
        is_listed && filter.takes_round(round)
    });
    let mut of_rounds = Vec::new();
    for round in rounds {
        let runs = journal.runs(&round.id).await?;
        of_rounds.push((round, runs));
    }
    let mut listed: Vec<(&Round, Vec<Summary>)> = Vec::new();
    for (round, runs) in &of_rounds {
        let unwatched = unwatched(&journal, round);
        let runs = runs.iter().map(|run| Summary::of(round, run, unwatched));
        listed.push((round, runs.filter(|run| filter.takes(run)).collect()));
    }
    listed.retain(|(_, runs)| !runs.is_empty());
    match format {
        Format::Json => {
            let every: Vec<&Summary> = listed.iter().flat_map(|(_, runs)| runs).collect();
            return output::json(&every);
        }
        Format::Csv => return csv(listed.iter().flat_map(|(_, runs)| runs)),
        Format::Table => {}
    }
    if !is_any {
        note("No campaigns have been run yet. Start one with `trainplan run CAMPAIGN`.");
    } else if listed.is_empty() {
        note("No run matches. `trainplan jobs list --all` lists the runs of all rounds.");
    }
    for (round, runs) in &listed {
        let state = match (round.ended_ms, journal.carried_out_by(round)) {
            (Some(ended), _) => format!("finished {}", watch::clock(ended)),
            (None, Some(holder)) => format!("run by process {holder}"),
            (None, None) => format!("paused: to continue, use `trainplan jobs follow {}`", round.title()),
        };
        output::prose(&format!(
            "Campaign {} on cluster {}, started {}; {state}.\n",
            round.title(),
            round.cluster,
            watch::clock(round.begun_ms)
        ))?;
        table(runs)?;
        output::prose(&format!("{}\n", counts(runs)))?;
    }
    Ok(())
}

/// Returns since when no process has observed a round's jobs; none if one does, or the round is over.
fn unwatched(journal: &Journal, round: &Round) -> Option<i64> {
    let free = round.ended_ms.is_none() && journal.carried_out_by(round).is_none();
    free.then(|| round.seen_ms.unwrap_or(round.begun_ms))
}

/// A run with its events, as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    summary: Summary<'a>,
    /// Path of its log on the cluster.
    log: Option<&'a String>,
    /// Path of the local copy, compressed by zstd.
    copy: Option<String>,
    events: Vec<Happened<'a>>,
}

#[derive(Serialize)]
struct Happened<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a Event,
}

async fn show(data: &DataDir, name: &str, format: Format) -> Result<(), Failure> {
    let journal = Journal::open(data).await?;
    let (round, run) = find(&journal, name).await?;
    let events = journal.events(&run.id, 0).await?;
    let copy = copy_of_log(data, &journal, &run).await?;
    let log = run.status.jobs.first().and_then(|(job, _)| run.status.logs.get(job));
    let summary = Summary::of(&round, &run, unwatched(&journal, &round));
    if format == Format::Json {
        let happened = |(_, at_ms, event): &'_ (i64, i64, Event)| (watch::time(*at_ms), event.clone());
        let kept: Vec<(String, Event)> = events.iter().map(happened).collect();
        let events = kept.iter().map(|(at, event)| Happened { at: at.clone(), event }).collect();
        return output::json(&Shown { summary, log, copy, events });
    }
    table(&[summary])?;
    let copy = copy.as_deref().unwrap_or("none");
    let text = format!("\nRun {} of campaign {}. Local copy of the log: {copy}", run.id, round.campaign);
    output::prose_around(&text, &[copy])?;
    for (_, at_ms, event) in &events {
        let text = watch::sentence(&run, event).unwrap_or_else(|| match event {
            Event::Planned => "planned".into(),
            Event::Staged { folder, .. } => format!("script written to {folder}"),
            Event::CancelSent { answer } if answer.is_empty() => "scancel called".into(),
            Event::CancelSent { answer } => format!("scancel failed: {answer}"),
            _ => String::new(),
        });
        let whole: Vec<&str> = copied(event).into_iter().collect();
        output::prose_around(&format!("  {}  {text}", watch::clock(*at_ms)), &whole)?;
    }
    Ok(())
}

/// Returns the path or the address in an event, which a user may copy.
fn copied(event: &Event) -> Option<&str> {
    match event {
        Event::Staged { folder, .. } => Some(folder),
        Event::Found { path, .. } => Some(path),
        Event::Uploaded { to } | Event::NotUploaded { to, .. } => Some(to),
        _ => None,
    }
}

/// Returns the path of the local copy of a run's log, in the data directory or in the store.
async fn copy_of_log(data: &DataDir, journal: &Journal, run: &Run) -> Result<Option<String>, Failure> {
    if run.status.phase == Phase::Stored {
        let store = Store::open(data).await?;
        let id = Uuid::parse_str(&run.id).unwrap_or_default();
        return Ok(store.log_name(id).await?);
    }
    let job = run.status.jobs.first().map_or("", |(job, _)| job.as_str());
    let path = journal.logs().join(&run.id).join(format!("{job}.log.zst"));
    Ok(path.exists().then(|| path.display().to_string()))
}

async fn follow(campaign: Option<&str>, args: &CarryArgs, format: Format) -> Result<(), Failure> {
    let data = args.data.open()?;
    let journal = Journal::open(&data).await?;
    let rounds = journal.rounds().await?;
    let wanted = |round: &&Round| match campaign {
        Some(name) => is_named(round, name),
        None => round.ended_ms.is_none(),
    };
    let Some(round) = rounds.iter().find(wanted).cloned() else {
        let what = match campaign {
            Some(name) => format!("Unknown campaign \"{name}\". `trainplan jobs list` lists all."),
            None => "No campaign is in progress. Start one with `trainplan run CAMPAIGN`.".into(),
        };
        return Err(Failure::NoRun(what));
    };
    match journal.lock_round(&round) {
        Ok(_lock) => {
            note(&format!("Continuing campaign {} on cluster {}.", round.campaign, round.cluster));
            carry(&data, &journal, round, args, format).await
        }
        Err(JournalError::Busy { holder, .. }) => {
            note(&format!(
                "Watching process {holder}, which is running {}. Ctrl-C stops watching only.",
                round.campaign
            ));
            watch_journal(&journal, &round, &[], &args.follow, format).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows what another process does, until all runs are over, or those in `only`.
async fn watch_journal(
    journal: &Journal,
    round: &Round,
    only: &[String],
    args: &FollowArgs,
    format: Format,
) -> Result<(), Failure> {
    let mut observer: Box<dyn Observer> = match format {
        Format::Json => Box::new(JsonLines::new(&round.campaign)),
        Format::Table | Format::Csv => Box::new(LiveScreen::new(false)),
    };
    let mut follower = Follower::new(args, round, &mut *observer);
    let ended = until_the_end(journal, round, only, &mut follower).await;
    follower
        .finish(match &ended {
            Ok(runs) if only.is_empty() => Some(runs.as_slice()),
            _ => None,
        })
        .await;
    if only.is_empty() && !are_scored(&ended?) { Err(Failure::RunFailed) } else { Ok(()) }
}

/// Shows the events of a round until its runs, or those in `only`, are over. Returns all runs of the round.
///
/// # Errors
/// Nobody carries out the round any more, or the journal can't be read.
async fn until_the_end(
    journal: &Journal,
    round: &Round,
    only: &[String],
    follower: &mut Follower<'_>,
) -> Result<Vec<Run>, Failure> {
    let (mut is_past, mut has_ended) = (true, false);
    let counts = |run: &&Run| only.is_empty() || only.contains(&run.id);
    let mut shown: BTreeMap<String, i64> = BTreeMap::new();
    loop {
        let runs = journal.runs(&round.id).await?;
        let mut news = Vec::new();
        for run in runs.iter().filter(counts) {
            let after = shown.get(&run.id).copied().unwrap_or(0);
            let events = journal.events(&run.id, after).await?;
            news.extend(events.into_iter().map(|(number, at_ms, event)| (number, at_ms, run, event)));
        }
        news.sort_by_key(|(number, ..)| *number);
        for (number, at_ms, run, event) in news {
            match is_past {
                true => follower.past_event(run, at_ms, &event),
                false => follower.event(run, at_ms, &event),
            }
            shown.insert(run.id.clone(), number);
        }
        is_past = false;
        if follower.wants_log() {
            for run in runs.iter().filter(counts).filter(|run| !run.status.is_over()) {
                for copied in journal.copied(&run.id).await? {
                    let file = journal.logs().join(&run.id).join(format!("{}.log.zst", copied.job));
                    follower.show_log(run, &file, copied.kept);
                }
            }
        }
        if runs.iter().filter(counts).all(|run| run.status.is_over()) {
            return Ok(runs);
        }
        if journal.carried_out_by(round).is_none() {
            if has_ended {
                return Err(Failure::Abandoned { campaign: round.title() });
            }
            // It may have ended the last run since the runs were read.
            has_ended = true;
            continue;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn cancel(names: &[String], args: &CarryArgs, format: Format) -> Result<(), Failure> {
    let data = args.data.open()?;
    let journal = Journal::open(&data).await?;
    let mut by_round: BTreeMap<String, (Round, Vec<String>)> = BTreeMap::new();
    for name in names {
        let (round, run) = find_open(&journal, name).await?;
        if run.status.is_over() {
            note(&format!("{} is already over: {}.", run.plan.title(), watch::in_words(&run)));
            continue;
        }
        by_round.entry(round.id.clone()).or_insert_with(|| (round, Vec::new())).1.push(run.id);
    }
    for (round, ids) in by_round.into_values() {
        for id in &ids {
            journal.request_cancel(id).await?;
        }
        match journal.lock_round(&round) {
            Ok(_lock) => super::run::carry_until(&data, &journal, round, args, format, ids).await?,
            Err(JournalError::Busy { .. }) => {
                watch_journal(&journal, &round, &ids, &args.follow, format).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn fetch_run(
    data: &DataDir,
    name: &str,
    to: &std::path::Path,
    (checkpoints, profiles): (bool, bool),
    format: Format,
) -> Result<(), Failure> {
    let journal = Journal::open(data).await?;
    let (round, run) = find(&journal, name).await?;
    let Some((job, _)) = run.status.jobs.first() else {
        return Err(Failure::NoRun(format!("{} has no job yet, so it has no files.", run.plan.title())));
    };
    let request = FetchRequest {
        experiment_dir: run.below_its_folder(&run.plan.experiment_dir),
        log: run.status.logs.get(job).cloned(),
        job: job.clone(),
        checkpoints,
        profiles,
    };
    let link =
        Link::new(&round.ssh, LinkOptions { cluster: Some(round.cluster.clone()), ..LinkOptions::default() });
    let (folder, entries) = fetch::list(&link, &request).await?;
    let to = to.join(format!("{}-{job}", run.plan.title().replace('#', "-")));
    let mut bytes = 0;
    for entry in &entries {
        bytes += fetch::fetch(&link, &folder, entry, &to).await?;
        note(&format!("{} ({} bytes)", entry.path, entry.size));
    }
    let all: u64 = entries.iter().map(|entry| entry.size).sum();
    if format == Format::Json {
        let to = to.display().to_string();
        return output::json(&serde_json::json!({
            "run": run.plan.name, "id": run.id, "from": folder, "to": to, "files": entries.len(), "bytes": all, "fetched_bytes": bytes,
        }));
    }
    output::text_line(&format!(
        "{} files with {all} bytes in {} ({bytes} bytes fetched now)",
        entries.len(),
        to.display()
    ))
}

/// Finds a run by its name (`large`, `large#2`, `nightly/large`) in the newest round of each campaign, by its name in
/// another round (`nightly@2/large`), or by the beginning of its id.
async fn find(journal: &Journal, name: &str) -> Result<(Round, Run), Failure> {
    let mut fitting = fitting(journal, name).await?;
    match fitting.len() {
        1 => Ok(fitting.remove(0)),
        _ => Err(several(name, &fitting)),
    }
}

/// Returns the runs that a name may mean, at least one. Within a round, `large` is the run with this title, or else each
/// of its repeats.
async fn fitting(journal: &Journal, name: &str) -> Result<Vec<(Round, Run)>, Failure> {
    let (scope, title) = name.rsplit_once('/').map_or((None, name), |(scope, title)| (Some(scope), title));
    let (mut fitting, mut known) = (Vec::new(), Vec::new());
    for round in journal.rounds().await? {
        let in_scope = match scope {
            None => round.is_newest,
            Some(scope) => round.title() == scope || (round.is_newest && round.campaign == scope),
        };
        let (mut exact, mut alike) = (Vec::new(), Vec::new());
        for run in journal.runs(&round.id).await? {
            if (in_scope && run.plan.title() == title) || has_id(&run, name) {
                exact.push((round.clone(), run));
            } else if in_scope && run.plan.name == title {
                alike.push((round.clone(), run));
            } else {
                known.push(run.plan.title());
            }
        }
        fitting.extend(if exact.is_empty() { alike } else { exact });
    }
    if fitting.is_empty() {
        let nearest = trainplan_shared::problem::most_alike(title, known.iter().map(String::as_str));
        let nearest = nearest.map_or(String::new(), |nearest| format!(" Did you mean {nearest}?"));
        return Err(Failure::NoRun(format!(
            "Unknown run \"{name}\".{nearest} `trainplan jobs list` lists all."
        )));
    }
    Ok(fitting)
}

/// Returns whether a name is the beginning of a run's id.
fn has_id(run: &Run, name: &str) -> bool {
    name.len() >= 8 && run.id.starts_with(name)
}

/// Finds the run to cancel: if several fit the name, the only one that is not over. If a run is over in the newest round, the
/// same run of an older round counts instead.
async fn find_open(journal: &Journal, name: &str) -> Result<(Round, Run), Failure> {
    let mut fitting = fitting(journal, name).await?;
    let mut open = Vec::new();
    for (round, run) in &fitting {
        if !run.status.is_over() {
            open.push((round.clone(), run.clone()));
        } else if !has_id(run, name) && !name.contains('@') {
            open.extend(still_open(journal, round, run).await?);
        }
    }
    // A later try of a repeat may fit the name too.
    let mut seen = BTreeSet::new();
    open.retain(|(_, run)| seen.insert(run.id.clone()));
    match (fitting.len(), open.len()) {
        (1, 0) => Ok(fitting.remove(0)),
        (1, 1) => Ok(open.remove(0)),
        (1, _) => Err(several(name, &open)),
        (_, 1) => {
            let (round, run) = open.remove(0);
            let left = full_name(&round, &run);
            note(&format!("Several runs match {name}. Only {left} is not over, so it is cancelled."));
            Ok((round, run))
        }
        _ => Err(several(name, &fitting)),
    }
}

/// Returns the runs of a campaign's unfinished rounds that are the same as one that is over, and are not over.
async fn still_open(journal: &Journal, of: &Round, over: &Run) -> Result<Vec<(Round, Run)>, Failure> {
    let mut open = Vec::new();
    for round in journal.rounds().await? {
        if round.ended_ms.is_none() && round.campaign == of.campaign {
            let runs = journal.runs(&round.id).await?.into_iter();
            let (name, repeat) = (&over.plan.name, over.plan.repeat);
            // Of the same repeat, a later try may go on.
            let same = runs
                .filter(|run| run.plan.name == *name && run.plan.repeat == repeat && !run.status.is_over());
            open.extend(same.map(|run| (round.clone(), run)));
        }
    }
    Ok(open)
}

/// Returns the name that no other run has: `nightly@2/large#1`.
fn full_name(round: &Round, run: &Run) -> String {
    format!("{}/{}", round.title(), run.plan.title())
}

fn several(name: &str, runs: &[(Round, Run)]) -> Failure {
    let which = |(round, run): &(Round, Run)| format!("{} ({})", full_name(round, run), run.id);
    let which: Vec<String> = runs.iter().map(which).collect();
    Failure::NoRun(format!(
        "Several runs match {name}. Use one of these:\n       {}",
        which.join("\n       ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Plan;
    use crate::journal::tests::{plan, round};

    #[tokio::test]
    async fn a_name_that_several_campaigns_use_means_none_of_them_unless_one_run_is_left_to_cancel() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(Some(folder.path().into())).unwrap();
        let journal = Journal::open(&data).await.unwrap();
        let of = |campaign: &str| Round { campaign: campaign.into(), ..round(campaign) };
        let repeat = |number: u32| Plan { repeat: number, repeats: 2, ..plan("a") };
        journal.begin(&of("kill"), &[("kill-a".to_owned(), plan("a"))]).await.unwrap();
        let repeats = [("s2-a-1".to_owned(), repeat(1)), ("s2-a-2".to_owned(), repeat(2))];
        journal.begin(&of("s2"), &repeats).await.unwrap();
        let stored = Event::Stored { result: "kill-a".into() };
        journal.write("kill-a", 2, &stored).await.unwrap();
        let all = ["kill@1/a (", "s2@1/a#1 (", "s2@1/a#2 ("];
        let refused = |found: Result<(Round, Run), Failure>| {
            let said = found.unwrap_err().to_string();
            assert!(
                said.starts_with("Several runs match a.") && all.iter().all(|run| said.contains(run)),
                "{said}"
            );
        };
        refused(find(&journal, "a").await);
        refused(find_open(&journal, "a").await);
        // The campaign tells which one is meant, over or not.
        assert_eq!(find_open(&journal, "kill/a").await.unwrap().1.id, "kill-a");

        journal.write("s2-a-2", 3, &stored).await.unwrap();
        refused(find(&journal, "a").await);
        assert_eq!(find_open(&journal, "a").await.unwrap().1.id, "s2-a-1");

        journal.write("s2-a-1", 4, &stored).await.unwrap();
        refused(find_open(&journal, "a").await);
    }
}
