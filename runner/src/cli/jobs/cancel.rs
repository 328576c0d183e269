//! `trainplan jobs cancel`: cancels runs, and waits until Slurm confirms it.

use super::follow::watch_journal;
use super::names::find_open;
use crate::cli::output::Format;
use crate::cli::run::{CarryArgs, carry_until};
use crate::cli::{Failure, note, watch};
use crate::journal::{Journal, JournalError, Round};
use std::collections::BTreeMap;

pub(super) async fn cancel(names: &[String], args: &CarryArgs, format: Format) -> Result<(), Failure> {
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
            Ok(_lock) => carry_until(&data, &journal, round, args, format, ids).await?,
            Err(JournalError::Busy { .. }) => {
                watch_journal(&journal, &round, &ids, &args.follow, format).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
