//! Whether the cluster answers, and what it means for the runs if it does not.

use super::conductor::{Conductor, Observer};
use super::error::ConductError;
use crate::journal::{Event, Phase, now_ms};
use crate::ssh::{LONGEST_PAUSE, LinkError};
use jiff::{Timestamp, tz::TimeZone};
use std::time::{Duration, Instant};

/// Returns a sentence about how often a cluster that can't be reached is tried again, until when from now on, and how to stop that.
pub(crate) fn trying_again(patience: Option<Duration>) -> String {
    let until = patience.and_then(|patience| {
        let until_ms = now_ms().checked_add(i64::try_from(patience.as_millis()).ok()?)?;
        let until = Timestamp::from_millisecond(until_ms).ok()?.to_zoned(TimeZone::system());
        let is_today = until.date() == Timestamp::now().to_zoned(TimeZone::system()).date();
        let format = if is_today { " until %H:%M" } else { " until %Y-%m-%d %H:%M" };
        Some(until.strftime(format).to_string())
    });
    format!(
        "Trying again at least every {} s{}; Ctrl-C stops.",
        LONGEST_PAUSE.as_secs(),
        until.unwrap_or_default()
    )
}

impl Conductor<'_> {
    pub(super) fn reached(&mut self, observer: &mut dyn Observer) {
        self.reached_once = true;
        if self.out_of_reach.take().is_some() {
            observer.note(&format!("Cluster {} answers again.", self.round.cluster));
        }
    }

    pub(super) async fn not_reached(
        &mut self,
        index: Option<usize>,
        error: &LinkError,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        if let Some(index) = index {
            self.runs[index].wait(Duration::from_secs(2));
        }
        // A host that has accepted us before may do so again, after `trainplan connect`. One that never did
        // will not.
        if !self.reached_once && matches!(error, LinkError::Refused { .. }) {
            return Err(ConductError::Unreachable(error.to_string()));
        }
        self.unreachable(&error.to_string(), observer).await
    }

    /// Records for every submitted run that its state is unknown.
    pub(super) async fn unreachable(
        &mut self,
        why: &str,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        if self.out_of_reach.is_none() {
            self.out_of_reach = Some((Instant::now(), why.to_string()));
            observer.note(&format!(
                "Cluster {} can't be reached: {}. {}",
                self.round.cluster,
                why.trim_end_matches('.'),
                trying_again(self.options.patience)
            ));
        }
        for index in 0..self.runs.len() {
            self.lose_sight(index, why, observer).await?;
        }
        Ok(())
    }

    /// Records that the state of a submitted run is unknown, unless that is recorded.
    pub(super) async fn lose_sight(
        &mut self,
        index: usize,
        why: &str,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let status = &self.runs[index].run.status;
        if status.phase != Phase::Submitted || status.unseen.is_some() {
            return Ok(());
        }
        // The cluster also answered when the run was submitted.
        let last_seen_ms = self.seen_ms.max(status.submitted_ms);
        self.record(index, Event::Unseen { why: why.to_string(), last_seen_ms }, observer).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_until_when_a_cluster_is_tried_again() {
        assert_eq!(trying_again(None), "Trying again at least every 60 s; Ctrl-C stops.");
        let centuries = Duration::from_secs(u64::MAX);
        assert_eq!(trying_again(Some(centuries)), trying_again(None));
        let years = trying_again(Some(Duration::from_secs(1_000_000_000)));
        assert!(
            years.starts_with("Trying again at least every 60 s until 2") && years.contains('-'),
            "{years}"
        );
        let now = trying_again(Some(Duration::ZERO));
        let clock = now.strip_prefix("Trying again at least every 60 s until ").unwrap();
        assert_eq!(clock.len(), "10:14; Ctrl-C stops.".len(), "{now}");
    }
}
