//! `trainplan jobs follow`: continues a round, or watches the process that carries it out.

use super::names::is_named;
use crate::cli::follow::{FollowArgs, Follower};
use crate::cli::output::Format;
use crate::cli::run::{CarryArgs, are_scored, carry};
use crate::cli::watch::{JsonLines, LiveScreen};
use crate::cli::{Failure, note};
use crate::conduct::Observer;
use crate::journal::{Journal, JournalError, Round, Run};
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) async fn follow(campaign: Option<&str>, args: &CarryArgs, format: Format) -> Result<(), Failure> {
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
pub(super) async fn watch_journal(
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
