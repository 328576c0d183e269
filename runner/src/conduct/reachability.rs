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
            let status = &self.runs[index].run.status;
            if status.phase == Phase::Submitted && status.unseen.is_none() {
                self.record(index, Event::Unseen { why: why.to_string() }, observer).await?;
            }
        }
        Ok(())
    }
}
