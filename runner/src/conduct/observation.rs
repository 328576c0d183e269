//! Observation: polls the cluster for the states of jobs and the growth of logs, and takes in the answer.

use super::conductor::{Conductor, LONG, Observer, Polling, TaskResult, fresh_mark, printed};
use super::decide;
use super::error::ConductError;
use super::live::LiveRun;
use crate::journal::{Event, Phase, now_ms};
use crate::slurm::{ClusterView, PollRequest};
use crate::ssh::{LinkError, ScriptOutput};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The most bytes of all logs in one poll, and the bounds for each of them.
const ALL_LOGS: u64 = 32 << 20;
const LARGEST_SHARE: u64 = 8 << 20;
const SMALLEST_SHARE: u64 = 64 << 10;

impl Conductor<'_> {
    /// Starts a poll, unless one is under way, none is due, or there is nothing to see.
    pub(super) fn poll(&mut self, tasks: &mut JoinSet<TaskResult>) {
        let has_jobs = |live: &LiveRun| matches!(live.run.status.phase, Phase::Submitted | Phase::Ended);
        if self.polling.is_some() || self.next_poll > Instant::now() || !self.runs.iter().any(has_jobs) {
            return;
        }
        let mut request = PollRequest::default();
        for (index, live) in self.runs.iter().enumerate().filter(|(_, live)| has_jobs(live)) {
            live.add_to(index as u64, &mut request);
        }
        request.cap = (ALL_LOGS / (request.tails.len().max(1) as u64)).clamp(SMALLEST_SHARE, LARGEST_SHARE);
        let mark = fresh_mark();
        let (link, script) = (self.link.clone(), request.script(&mark));
        self.polling = Some(Polling { mark, cap: request.cap });
        self.figures.polls += 1;
        self.last_poll = Instant::now();
        tasks.spawn(async move { TaskResult::Polled(link.run(&script, LONG).await) });
    }

    /// Makes the next poll due as soon as the interval allows: something has probably changed.
    pub(super) fn poll_soon(&mut self) {
        let soonest = self.last_poll + Duration::from_secs_f64(self.options.interval_s);
        self.next_poll = self.next_poll.min(soonest);
    }

    pub(super) async fn take_in_poll(
        &mut self,
        result: Result<ScriptOutput, LinkError>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let Some(Polling { mark, cap }) = self.polling.take() else { return Ok(()) };
        self.next_poll = Instant::now() + Duration::from_secs_f64(self.options.interval_s.max(1.0));
        let output = match result {
            Ok(output) => output,
            Err(error) => return self.not_reached(None, &error, observer).await,
        };
        let view = match ClusterView::read(&output.stdout, &mark) {
            Ok(view) => view,
            Err(error) => {
                return self.unreachable(&format!("{error}: {}", printed(&output)), observer).await;
            }
        };
        self.reached(observer);
        if view.queue_answered() {
            let at_ms = now_ms();
            self.seen_ms = Some(at_ms);
            self.journal.see(&self.round.id, at_ms).await?;
        }
        let more = self.copy_logs(&view, cap, observer).await?;
        let mut changed = false;
        for index in 0..self.runs.len() {
            changed |= self.observe(index, &view, observer).await?;
        }
        let pause = if more { 0.0 } else { decide::pause(&self.runs, self.options.interval_s, changed) };
        self.next_poll = Instant::now() + Duration::from_secs_f64(pause);
        Ok(())
    }

    /// Appends to the copies of logs. Returns whether the cluster has more of one.
    async fn copy_logs(
        &mut self,
        view: &ClusterView,
        cap: u64,
        observer: &mut dyn Observer,
    ) -> Result<bool, ConductError> {
        for (key, path) in &view.found {
            let index = *key as usize;
            let Some(live) = self.runs.get(index) else { continue };
            let is_new = live.copy.as_ref().is_none_or(|copy| copy.copied.path != *path);
            if let Some(job) = live.first_job().filter(|_| is_new && live.is_better_log(path)) {
                self.record(index, Event::Found { job: job.clone(), path: path.clone() }, observer).await?;
                self.runs[index].begin_copy(&job, path)?;
            }
        }
        let mut more = false;
        for chunk in &view.chunks {
            let index = chunk.key as usize;
            let Some(live) = self.runs.get_mut(index) else { continue };
            if let Some(why) = live.append(chunk)? {
                let job = live.first_job().unwrap_or_default();
                self.record(index, Event::Restarted { job, why }, observer).await?;
            }
            more |= chunk.bytes.len() as u64 >= cap;
        }
        let grown = self.runs.iter().filter(|live| live.grown);
        let copied = grown.filter_map(|live| Some((live.run.id.as_str(), &live.copy.as_ref()?.copied)));
        self.journal.set_copied(copied).await?;
        for live in self.runs.iter_mut().filter(|live| live.grown) {
            live.grown = false;
            live.update_progress();
        }
        Ok(more)
    }

    /// Records what the view says of a run's jobs. Returns whether anything changed.
    async fn observe(
        &mut self,
        index: usize,
        view: &ClusterView,
        observer: &mut dyn Observer,
    ) -> Result<bool, ConductError> {
        let status = &self.runs[index].run.status;
        if !matches!(status.phase, Phase::Submitted | Phase::Ended) {
            return Ok(false);
        }
        if !view.queue_answered() {
            let why = match &view.queue {
                Some(Err(why)) => why.clone(),
                _ => "squeue did not answer".into(),
            };
            self.lose_sight(index, &why, observer).await?;
            return Ok(false);
        }
        if status.unseen.is_some() {
            self.record(index, Event::SeenAgain, observer).await?;
        }
        let mut changed = false;
        for (job, sighting) in self.runs[index].changed_jobs(index as u64, view) {
            changed = true;
            self.record(index, Event::Observed { job, sighting }, observer).await?;
        }
        for job in self.runs[index].newly_missing() {
            self.record(index, Event::Missing { job }, observer).await?;
        }
        if let Some(event) = self.runs[index].quiet(self.options.hang_after_s) {
            self.record(index, event, observer).await?;
        }
        if let Some(why) = self.runs[index].over_queue_budget(now_ms()) {
            self.ask_to_cancel(index, &why, observer).await?;
        }
        if self.runs[index].run.status.phase == Phase::Ended
            && let Some(event) = self.runs[index].drained()
        {
            self.record(index, event, observer).await?;
        }
        Ok(changed)
    }
}
