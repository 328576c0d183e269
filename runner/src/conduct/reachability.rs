//! Whether the cluster answers, and what it means for the runs if it does not.

use super::conductor::{Conductor, Observer};
use super::error::ConductError;
use crate::journal::{Event, Phase};
use crate::ssh::LinkError;
use std::time::{Duration, Instant};

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
            observer.note(&format!("Cluster {} can't be reached: {why}", self.round.cluster));
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
