//! The loop of a round: it starts what is due, waits for the first event, and handles it.

use super::conductor::{Conductor, Ending, Observer, Order, TaskResult};
use super::error::ConductError;
use super::live::LiveRun;
use super::outcome;
use crate::journal::{Event, Phase, Plan, Run, RunStatus, now_ms};
use crate::store::StoreError;
use crate::upload::SendUpdate;
use futures_util::FutureExt as _;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

impl Conductor<'_> {
    /// Carries out the round until every run is over, or an order makes this process leave.
    pub(crate) async fn conduct(
        &mut self,
        observer: &mut dyn Observer,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) -> Result<Ending, ConductError> {
        let mut tasks: JoinSet<TaskResult> = JoinSet::new();
        loop {
            self.take_in_cancel_requests(observer).await?;
            self.submit(&mut tasks, observer).await?;
            self.cancel(&mut tasks, observer).await?;
            for index in 0..self.runs.len() {
                if !self.read_settings(index, &mut tasks) {
                    self.finish(index, observer).await?;
                }
            }
            self.retry(observer).await?;
            self.report_progress();
            if let Some(ending) = self.ending(tasks.is_empty()).await? {
                return Ok(ending);
            }
            self.poll(&mut tasks);
            self.figures.elapsed_s = self.begun.elapsed().as_secs_f64();
            observer.tick(&self.runs);
            tokio::select! {
                Some(done) = tasks.join_next(), if !tasks.is_empty() => match done {
                    Ok(done) => self.take_in(done, observer).await?,
                    Err(error) => tracing::error!("A task panicked: {error}"),
                },
                Some(news) = self.outbox.next() => self.take_in_upload(&news, observer),
                Some(order) = orders.recv() => match order {
                    Order::Detach => return Ok(Ending::Left),
                    Order::Quit => self.quitting = true,
                    Order::Cancel => self.ask_to_cancel_all(observer).await?,
                },
                () = tokio::time::sleep(Duration::from_millis(500)) => {}
            }
            if let (Some(patience), Some((since, why))) = (self.options.patience, &self.out_of_reach)
                && since.elapsed() > patience
            {
                return Err(ConductError::Unreachable(why.clone()));
            }
        }
    }

    /// Returns how the round ended, if there is nothing left to do.
    async fn ending(&self, is_idle: bool) -> Result<Option<Ending>, ConductError> {
        let open = |live: &LiveRun| !live.run.status.is_over();
        if !self.runs.iter().any(open) {
            self.journal.end(&self.round.id, now_ms()).await?;
            return Ok(Some(Ending::Over));
        }
        let awaited = |live: &LiveRun| self.only.contains(&live.run.id) && open(live);
        if !self.only.is_empty() && !self.runs.iter().any(awaited) {
            return Ok(Some(Ending::Left));
        }
        let waits = |live: &LiveRun| !live.run.status.is_active() && live.run.status.phase != Phase::Ended;
        Ok((self.quitting && is_idle && self.runs.iter().all(waits)).then_some(Ending::Left))
    }

    async fn take_in(&mut self, done: TaskResult, observer: &mut dyn Observer) -> Result<(), ConductError> {
        match done {
            TaskResult::Staged(index, result) => self.take_in_staged(index, result, observer).await,
            TaskResult::Secrets(index, secrets) => self.take_in_secrets(index, secrets, observer).await,
            TaskResult::Attempted(index, report) => self.take_in_attempt(index, report, observer).await,
            TaskResult::Polled(result) => self.take_in_poll(result, observer).await,
            TaskResult::Settings(index, files) => {
                self.take_in_settings(index, files);
                Ok(())
            }
            TaskResult::Cancelled { runs, mark, result } => {
                self.take_in_cancelled(&runs, &mark, result.as_ref().ok(), observer).await
            }
        }
    }

    /// Parses the log of a run that is over, and stores its result.
    async fn finish(&mut self, index: usize, observer: &mut dyn Observer) -> Result<(), ConductError> {
        if self.runs[index].run.status.phase == Phase::Drained {
            let event = outcome::parsed(&self.runs[index].run, self.runs[index].copy.as_ref(), &self.round);
            self.record(index, event, observer).await?;
        }
        if self.runs[index].run.status.phase != Phase::Parsed {
            return Ok(());
        }
        let live = &self.runs[index];
        let Some((result, log)) = outcome::result(&live.run, live.copy.as_ref(), &self.round) else {
            let why = outcome::no_result(&live.run);
            return self.record(index, Event::Failed { why }, observer).await;
        };
        match self.store.put(&result, Some(&log)).await {
            // An earlier process stored it, perhaps of another version: the first one stays. Or it was deleted since then.
            Ok(_) | Err(StoreError::Conflict { .. } | StoreError::Deleted { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.record(index, Event::Stored { result: result.id.to_string() }, observer).await?;
        self.outbox.notify();
        // The store has the log now.
        self.runs[index].drop_copy();
        Ok(())
    }

    /// Adds another try for each run that ended by a temporary cause. The try has its own events and result.
    async fn retry(&mut self, observer: &mut dyn Observer) -> Result<(), ConductError> {
        for index in 0..self.runs.len() {
            let run = &self.runs[index].run;
            let is_retried = self.runs.iter().any(|other| run.plan.is_retried_by(&other.run.plan));
            if is_retried || !outcome::may_be_retried(run) {
                continue;
            }
            let plan = Plan { retry: run.plan.retry + 1, ..run.plan.clone() };
            let (id, at_ms, round) = (Uuid::now_v7().to_string(), now_ms(), self.round.id.clone());
            self.journal.add_run(&round, &id, &plan, at_ms).await?;
            let mut run = Run { id, round, plan, status: RunStatus::default() };
            run.status.apply(at_ms, &Event::Planned);
            observer.event(&run, at_ms, &Event::Planned);
            self.runs.push(LiveRun::take_up(self.journal, run).await?);
        }
        Ok(())
    }

    /// Tries once more to upload what could not be uploaded. Ends soon if no server answers, and at any
    /// order.
    pub(crate) async fn finish_uploads(
        &mut self,
        observer: &mut dyn Observer,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) {
        self.outbox.finish();
        let mut silence = pin!(self.outbox.silence());
        let mut slow = pin!(tokio::time::sleep(Duration::from_secs(2)).fuse());
        loop {
            tokio::select! {
                () = &mut slow => observer.note("Uploading results. Press Ctrl-C to leave the rest for \
                                                 later."),
                news = self.outbox.next() => match news {
                    Some(news) => self.take_in_upload(&news, observer),
                    None => break,
                },
                () = &mut silence => {
                    observer.note("The results server does not answer. The remaining results will be \
                                   uploaded later.");
                    break;
                }
                _ = orders.recv() => return,
            }
        }
        let reported = async {
            while !self.reporter.is_idle() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        // Progress reports are not worth a longer wait.
        let _ = tokio::time::timeout(Duration::from_secs(1), reported).await;
    }

    /// Applies and shows what became of an upload. The outbox has written it to the journal.
    fn take_in_upload(&mut self, news: &SendUpdate, observer: &mut dyn Observer) {
        // The result may belong to an earlier round.
        let Some(live) = self.runs.iter_mut().find(|live| live.run.id == news.run) else { return };
        live.run.status.apply(news.at_ms, &news.event);
        observer.event(&live.run, news.at_ms, &news.event);
    }

    /// Reports the progress of runs to the servers that their plans name.
    fn report_progress(&mut self) {
        for live in &mut self.runs {
            let Some((upload, id, progress)) = live.progress_report(&self.round) else { continue };
            self.reporter.report(&upload, id, progress);
        }
    }
}
