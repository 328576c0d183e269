//! Carrying a round out: one loop that decides, writes down what it is about to do, has it done, and takes in what comes
//! back. What is under way runs in tasks that know nothing of each other; only the loop changes anything.

mod copy;
mod decide;
mod live;
mod outcome;
mod secrets;

pub(crate) use live::Live;
pub(crate) use outcome::Outcome;
pub(crate) use secrets::{SecretError, check as check_secrets, find as find_secret};

use crate::journal::{Event, Journal, JournalError, Phase, Round, Run, now_ms};
use crate::slurm::{self, Look, Report, View};
use crate::ssh::{Link, LinkError, Output};
use crate::store::{Store, StoreError};
use crate::upload::{Herald, News, Outbox};
use decide::{Doubt, Next};
use futures_util::FutureExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How a round is carried out.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Seconds between two looks at least.
    pub(crate) interval_s: f64,
    /// Runs that may be in Slurm's hands at once.
    pub(crate) at_once: usize,
    /// Seconds without a step until a run is said to hang, at least.
    pub(crate) hang_after_s: u64,
    /// How long the cluster may be out of reach before this gives up for now; none is for ever.
    pub(crate) patience: Option<Duration>,
}

/// What the person at the terminal wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// To leave; the jobs go on.
    Detach,
    /// To end every job.
    Cancel,
    /// To submit nothing more, and to leave when what runs is over.
    Quit,
}

/// Who is told of what happens.
pub(crate) trait Watch {
    /// Something happened to a run, and is written down.
    fn event(&mut self, run: &Run, at_ms: i64, event: &Event);
    /// Time passed.
    fn tick(&mut self, runs: &[Live], figures: &Figures);
    /// The person has to know.
    fn say(&mut self, text: &str);
}

/// What carrying out costs the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Figures {
    /// Looks at the queue and the logs.
    pub(crate) looks: u64,
    /// Since the round was taken up.
    pub(crate) elapsed_s: f64,
}

/// Why carrying out stopped before its end. What was done is written down, and the next `trainplan run` goes on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConductError {
    /// The journal can't be kept: going on could do something twice.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store refuses a result; the log is kept here.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A log's copy can't be kept.
    #[error("cannot keep the copy of a log in {}: {error}; the jobs go on, and `trainplan run` will too once there is room", path.display())]
    Copy {
        /// Where.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The cluster can't be reached.
    #[error("{0}; what runs there goes on, and `trainplan run` again will too")]
    Unreachable(String),
}

/// How carrying out ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Every run is over.
    Over,
    /// Some are not; the person wanted to leave.
    Left,
}

/// What a task did.
enum Done {
    Staged(usize, Result<Output, LinkError>),
    Attempted(usize, Result<Report, String>),
    Looked(Result<Output, LinkError>),
    Cancelled(Vec<usize>, Result<Output, LinkError>),
}

/// The longest that a launcher is waited for in one remote command.
const LAUNCHER_WAIT_S: u64 = 20;
const SHORT: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(120);
/// Launches that are started at the same time.
const LAUNCHES_AT_ONCE: usize = 3;
/// Bytes of all logs in one look, and of each at most and at least.
const ALL: u64 = 32 << 20;
const MOST: u64 = 8 << 20;
const LEAST: u64 = 64 << 10;

pub(crate) struct Conductor<'a> {
    journal: &'a Journal,
    store: &'a Store,
    link: Link,
    round: Round,
    options: Options,
    runs: Vec<Live>,
    /// Whether no more runs are submitted.
    quitting: bool,
    /// The runs after whose end this leaves; with none, all.
    only: Vec<String>,
    outbox: Outbox,
    herald: Herald,
    looking: Option<Looking>,
    next_look: Instant,
    last_look: Instant,
    /// Whether the cluster ever answered.
    reached_once: bool,
    /// Since when the cluster is out of reach, and why.
    out_of_reach: Option<(Instant, String)>,
    figures: Figures,
    begun: Instant,
}

/// A look that is under way.
struct Looking {
    mark: String,
    cap: u64,
}

impl<'a> Conductor<'a> {
    /// Takes a round up where it is.
    pub(crate) async fn take_up(
        journal: &'a Journal,
        store: &'a Store,
        link: Link,
        round: Round,
        options: Options,
    ) -> Result<Conductor<'a>, ConductError> {
        let mut runs = Vec::new();
        for run in journal.runs(&round.id).await? {
            runs.push(Live::take_up(journal, run).await?);
        }
        let now = Instant::now();
        Ok(Conductor {
            journal,
            store,
            link,
            round,
            options,
            runs,
            quitting: false,
            only: Vec::new(),
            outbox: Outbox::begin(journal, store),
            herald: Herald::begin(),
            looking: None,
            next_look: now,
            last_look: now,
            reached_once: false,
            out_of_reach: None,
            figures: Figures::default(),
            begun: now,
        })
    }

    /// The same, but submits nothing and leaves when these runs are over, if there are any.
    pub(crate) fn until(self, only: Vec<String>) -> Conductor<'a> {
        Conductor { quitting: !only.is_empty(), only, ..self }
    }

    /// Carries the round out until every run is over, or somebody wants to leave.
    pub(crate) async fn conduct(
        &mut self,
        watch: &mut dyn Watch,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) -> Result<Ending, ConductError> {
        let mut tasks: JoinSet<Done> = JoinSet::new();
        loop {
            self.hear_wishes(watch).await?;
            self.submit(&mut tasks, watch).await?;
            self.cancel(&mut tasks, watch).await?;
            for index in 0..self.runs.len() {
                self.finish(index, watch).await?;
            }
            self.tell_servers();
            let open = |live: &Live| !live.run.status.is_over();
            if !self.runs.iter().any(open) {
                self.journal.end(&self.round.id, now_ms()).await?;
                return Ok(Ending::Over);
            }
            let awaited = |live: &Live| self.only.contains(&live.run.id) && open(live);
            if !self.only.is_empty() && !self.runs.iter().any(awaited) {
                return Ok(Ending::Left);
            }
            let idle = |live: &Live| !live.run.status.is_active() && live.run.status.phase != Phase::Ended;
            if self.quitting && tasks.is_empty() && self.runs.iter().all(idle) {
                return Ok(Ending::Left);
            }
            self.look(&mut tasks);
            self.figures.elapsed_s = self.begun.elapsed().as_secs_f64();
            watch.tick(&self.runs, &self.figures);
            tokio::select! {
                Some(done) = tasks.join_next(), if !tasks.is_empty() => match done {
                    Ok(done) => self.take_in(done, watch).await?,
                    Err(error) => tracing::error!("a task broke down: {error}"),
                },
                Some(news) = self.outbox.next() => self.hear(&news, watch),
                Some(order) = orders.recv() => match order {
                    Order::Detach => return Ok(Ending::Left),
                    Order::Quit => self.quitting = true,
                    Order::Cancel => {
                        for index in 0..self.runs.len() {
                            self.ask_to_cancel(index, "asked at the terminal", watch).await?;
                        }
                    }
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

    /// Tries once more what could not be sent to a server. It ends soon where no server answers, or with the next order.
    pub(crate) async fn send_off(
        &mut self,
        watch: &mut dyn Watch,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) {
        self.outbox.finish();
        let mut silence = pin!(self.outbox.silence());
        let mut slow = pin!(tokio::time::sleep(Duration::from_secs(2)).fuse());
        loop {
            tokio::select! {
                () = &mut slow => watch.say("results are still being sent; Ctrl-C leaves the rest for later"),
                news = self.outbox.next() => match news {
                    Some(news) => self.hear(&news, watch),
                    None => break,
                },
                () = &mut silence => {
                    watch.say("the results server says nothing: what is left will be sent later");
                    break;
                }
                _ = orders.recv() => return,
            }
        }
        let told = async {
            while !self.herald.is_idle() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        // Nobody waits for a word.
        let _ = tokio::time::timeout(Duration::from_secs(1), told).await;
    }

    /// Takes in what became of sending a result; it is written down already.
    fn hear(&mut self, news: &News, watch: &mut dyn Watch) {
        // It may be of an earlier round.
        let Some(live) = self.runs.iter_mut().find(|live| live.run.id == news.run) else { return };
        live.run.status.apply(news.at_ms, &news.event);
        watch.event(&live.run, news.at_ms, &news.event);
    }

    /// Tells servers where runs are, where they are to be told and it is time.
    fn tell_servers(&mut self) {
        for live in &mut self.runs {
            let Some((upload, id, progress)) = live.word(&self.round) else { continue };
            self.herald.tell(&upload, id, progress);
        }
    }

    /// What it cost the cluster.
    pub(crate) fn figures(&self) -> Figures {
        self.figures
    }

    /// Writes down what happened, and tells.
    async fn note(&mut self, index: usize, event: Event, watch: &mut dyn Watch) -> Result<(), ConductError> {
        let live = &mut self.runs[index];
        let at_ms = now_ms();
        self.journal.write(&live.run.id, at_ms, &event).await?;
        live.run.status.apply(at_ms, &event);
        watch.event(&live.run, at_ms, &event);
        Ok(())
    }

    /// Does what is next for every run that Slurm does not have yet.
    async fn submit(&mut self, tasks: &mut JoinSet<Done>, watch: &mut dyn Watch) -> Result<(), ConductError> {
        for index in 0..self.runs.len() {
            if self.runs[index].busy || self.runs[index].not_before > Instant::now() {
                continue;
            }
            let launching = self.runs.iter().filter(|live| live.busy).count();
            if launching >= LAUNCHES_AT_ONCE {
                return Ok(());
            }
            let next = decide::next(&self.runs, index, self.options.at_once, self.quitting);
            let link = self.link.clone();
            let live = &self.runs[index];
            match next {
                Next::Nothing => {}
                Next::Stage => {
                    let script = slurm::stage(&live.run.id, &live.run.plan.script);
                    self.runs[index].busy = true;
                    tasks.spawn(async move { Done::Staged(index, link.run(&script, SHORT).await) });
                }
                Next::Launch { attempt } => {
                    if live.run.status.phase == Phase::Staged {
                        let token = slurm::token(&live.run.id, attempt);
                        self.note(index, Event::Intended { attempt, token }, watch).await?;
                    }
                    let live = &mut self.runs[index];
                    live.busy = true;
                    let mark = fresh_mark();
                    let script =
                        slurm::submit(&live.run.id, live.run.plan.is_job, attempt, LAUNCHER_WAIT_S, &mark);
                    let secrets = live.run.plan.secrets.clone();
                    tasks.spawn(async move {
                        let secrets = match secrets::Found::all(&secrets).await {
                            Ok(secrets) => secrets,
                            Err(error) => return Done::Attempted(index, Err(error.to_string())),
                        };
                        let script = secrets.add(script);
                        let report = match link.run(&script, SHORT).await {
                            Ok(output) if output.code == 0 => {
                                let report = Report::read(&output.stdout, &mark);
                                Ok(Report { output: secrets.redact(&report.output), ..report })
                            }
                            Ok(output) => Err(said(&output)),
                            Err(error) => Err(error.to_string()),
                        };
                        Done::Attempted(index, report)
                    });
                }
            }
        }
        Ok(())
    }

    /// Tells Slurm of the runs that are to be cancelled.
    async fn cancel(&mut self, tasks: &mut JoinSet<Done>, watch: &mut dyn Watch) -> Result<(), ConductError> {
        let (mut jobs, mut whose) = (Vec::new(), Vec::new());
        for index in 0..self.runs.len() {
            let live = &mut self.runs[index];
            if live.run.status.cancel.is_none() || live.cancelling || live.cancel_not_before > Instant::now()
            {
                continue;
            }
            match live.run.status.phase {
                Phase::Planned | Phase::Staged if !live.busy => {
                    let why = "cancelled before it was submitted".to_string();
                    self.note(index, Event::Failed { why }, watch).await?;
                }
                Phase::Submitted => {
                    live.cancelling = true;
                    jobs.extend(live.open_jobs());
                    whose.push(index);
                }
                _ => {}
            }
        }
        if !whose.is_empty() {
            let (link, script) = (self.link.clone(), slurm::cancel(&jobs, &fresh_mark()));
            tasks.spawn(async move { Done::Cancelled(whose, link.run(&script, SHORT).await) });
        }
        Ok(())
    }

    /// Looks at the cluster, unless a look is under way or it is not time.
    fn look(&mut self, tasks: &mut JoinSet<Done>) {
        let worth = |live: &Live| matches!(live.run.status.phase, Phase::Submitted | Phase::Ended);
        if self.looking.is_some() || self.next_look > Instant::now() || !self.runs.iter().any(worth) {
            return;
        }
        let mut look = Look::default();
        for (index, live) in self.runs.iter().enumerate().filter(|(_, live)| worth(live)) {
            live.add_to(index as u64, &mut look);
        }
        look.cap = (ALL / (look.tails.len().max(1) as u64)).clamp(LEAST, MOST);
        let mark = fresh_mark();
        let (link, script) = (self.link.clone(), look.script(&mark));
        self.looking = Some(Looking { mark, cap: look.cap });
        self.figures.looks += 1;
        self.last_look = Instant::now();
        tasks.spawn(async move { Done::Looked(link.run(&script, LONG).await) });
    }

    /// Looks as soon as may be: something is likely to have changed.
    fn look_soon(&mut self) {
        self.next_look =
            self.next_look.min(self.last_look + Duration::from_secs_f64(self.options.interval_s));
    }

    async fn take_in(&mut self, done: Done, watch: &mut dyn Watch) -> Result<(), ConductError> {
        match done {
            Done::Staged(index, result) => self.take_in_staged(index, result, watch).await,
            Done::Attempted(index, report) => self.take_in_attempt(index, report, watch).await,
            Done::Looked(result) => self.take_in_look(result, watch).await,
            Done::Cancelled(whose, result) => {
                for index in whose {
                    self.runs[index].cancelling = false;
                    self.runs[index].cancel_not_before = Instant::now() + Duration::from_secs(15);
                    if let Ok(output) = &result {
                        // Slurm confirms by the state of the job; until then it is asked again.
                        let answer = String::from_utf8_lossy(&output.stdout);
                        let refused: Vec<&str> =
                            answer.lines().filter(|line| !line.contains(" 0 ")).collect();
                        let first =
                            self.runs[index].run.status.cancel.as_ref().is_some_and(|(_, sent)| !sent);
                        if first {
                            let answer = refused.join("\n");
                            self.note(index, Event::CancelSent { answer }, watch).await?;
                        }
                    }
                }
                self.look_soon();
                Ok(())
            }
        }
    }

    async fn take_in_staged(
        &mut self,
        index: usize,
        result: Result<Output, LinkError>,
        watch: &mut dyn Watch,
    ) -> Result<(), ConductError> {
        self.runs[index].busy = false;
        match result {
            Ok(output) if output.code == 0 => {
                self.reached(watch);
                let folder = String::from_utf8_lossy(&output.stdout).trim().to_string();
                let sha256 = slurm::sha256(&self.runs[index].run.plan.script);
                self.note(index, Event::Staged { sha256, folder }, watch).await
            }
            Ok(output) => {
                let why = format!("its launch can't be put on the cluster: {}", said(&output));
                self.give_up_or_wait(index, &why, watch).await
            }
            Err(error) => self.not_reached(Some(index), &error, watch).await,
        }
    }

    async fn take_in_attempt(
        &mut self,
        index: usize,
        report: Result<Report, String>,
        watch: &mut dyn Watch,
    ) -> Result<(), ConductError> {
        self.runs[index].busy = false;
        let report = match report {
            Ok(report) => report,
            Err(why) => {
                // Whatever happened there: the same attempt is looked at again, and never started twice.
                self.runs[index].wait(Duration::from_secs(5));
                tracing::warn!("{}: {why}", self.runs[index].run.plan.title());
                return self.out_of_reach(&why, watch).await;
            }
        };
        self.reached(watch);
        let live = &mut self.runs[index];
        match decide::doubt(&live.run.status, &report, now_ms()) {
            Doubt::Wait => {
                live.wait(Duration::from_secs(2));
                Ok(())
            }
            Doubt::Jobs(jobs) => {
                self.look_soon();
                self.note(index, Event::Submitted { jobs, launcher: report.launcher }, watch).await
            }
            Doubt::NoJob { why, again } => {
                live.wait(Duration::from_secs(10));
                self.note(index, Event::NotSubmitted { why, again }, watch).await
            }
        }
    }

    async fn take_in_look(
        &mut self,
        result: Result<Output, LinkError>,
        watch: &mut dyn Watch,
    ) -> Result<(), ConductError> {
        let Some(Looking { mark, cap }) = self.looking.take() else { return Ok(()) };
        let output = match result {
            Ok(output) => output,
            Err(error) => {
                self.next_look = Instant::now() + Duration::from_secs_f64(self.options.interval_s.max(1.0));
                return self.not_reached(None, &error, watch).await;
            }
        };
        let view = match View::read(&output.stdout, &mark) {
            Ok(view) => view,
            Err(error) => {
                self.next_look = Instant::now() + Duration::from_secs_f64(self.options.interval_s.max(1.0));
                return self.out_of_reach(&format!("{error}: {}", said(&output)), watch).await;
            }
        };
        self.reached(watch);
        let more = self.copy_logs(&view, cap, watch).await?;
        let mut changed = false;
        for index in 0..self.runs.len() {
            changed |= self.observe(index, &view, watch).await?;
        }
        if view.queue_answered() {
            self.journal.see(&self.round.id, now_ms()).await?;
        }
        let pause = if more { 0.0 } else { decide::pause(&self.runs, self.options.interval_s, changed) };
        self.next_look = Instant::now() + Duration::from_secs_f64(pause);
        Ok(())
    }

    /// Takes in what logs grew by; says whether there is more already.
    async fn copy_logs(
        &mut self,
        view: &View,
        cap: u64,
        watch: &mut dyn Watch,
    ) -> Result<bool, ConductError> {
        for (key, path) in &view.found {
            let index = *key as usize;
            let Some(live) = self.runs.get(index) else { continue };
            if let Some(job) =
                live.first_job().filter(|_| live.copy.as_ref().is_none_or(|copy| copy.copied.path != *path))
                && live.is_better_log(path)
            {
                self.note(index, Event::Found { job: job.clone(), path: path.clone() }, watch).await?;
                self.runs[index].begin_copy(&job, path)?;
            }
        }
        let mut more = false;
        for chunk in &view.chunks {
            let index = chunk.key as usize;
            let Some(live) = self.runs.get_mut(index) else { continue };
            if let Some(why) = live.append(chunk)? {
                let job = live.first_job().unwrap_or_default();
                self.note(index, Event::Restarted { job, why }, watch).await?;
            }
            more |= chunk.bytes.len() as u64 >= cap;
        }
        let grown = self.runs.iter().filter(|live| live.grown);
        let copied = grown.filter_map(|live| Some((live.run.id.as_str(), &live.copy.as_ref()?.copied)));
        self.journal.set_copied(copied).await?;
        for live in self.runs.iter_mut().filter(|live| live.grown) {
            live.grown = false;
            live.see_progress();
        }
        Ok(more)
    }

    /// Takes in what the view says of a run's jobs; says whether anything changed.
    async fn observe(
        &mut self,
        index: usize,
        view: &View,
        watch: &mut dyn Watch,
    ) -> Result<bool, ConductError> {
        if !matches!(self.runs[index].run.status.phase, Phase::Submitted | Phase::Ended) {
            return Ok(false);
        }
        if !view.queue_answered() {
            let why = match &view.queue {
                Some(Err(why)) => why.clone(),
                _ => "squeue said nothing".into(),
            };
            if self.runs[index].run.status.unseen.is_none()
                && self.runs[index].run.status.phase == Phase::Submitted
            {
                self.note(index, Event::Unseen { why }, watch).await?;
            }
            return Ok(false);
        }
        if self.runs[index].run.status.unseen.is_some() {
            self.note(index, Event::SeenAgain, watch).await?;
        }
        let mut changed = false;
        for (job, sighting) in self.runs[index].news(index as u64, view) {
            changed = true;
            self.note(index, Event::Observed { job, sighting }, watch).await?;
        }
        for job in self.runs[index].newly_missing() {
            self.note(index, Event::Missing { job }, watch).await?;
        }
        if let Some(event) = self.runs[index].quiet(self.options.hang_after_s) {
            self.note(index, event, watch).await?;
        }
        if let Some(why) = self.runs[index].waits_too_long(now_ms()) {
            self.ask_to_cancel(index, &why, watch).await?;
        }
        if self.runs[index].run.status.phase == Phase::Ended
            && let Some(event) = self.runs[index].drained()
        {
            self.note(index, event, watch).await?;
        }
        Ok(changed)
    }

    /// From a copied log to a stored result.
    async fn finish(&mut self, index: usize, watch: &mut dyn Watch) -> Result<(), ConductError> {
        if self.runs[index].run.status.phase == Phase::Drained {
            let event = outcome::parsed(&self.runs[index], &self.round);
            self.note(index, event, watch).await?;
        }
        if self.runs[index].run.status.phase == Phase::Parsed {
            let event = match outcome::result(&self.runs[index], &self.round) {
                Some((result, log)) => {
                    match self.store.put(&result, Some(&log)).await {
                        // A process before this one put it there, of an older version perhaps: the first stays.
                        Ok(_) | Err(StoreError::Conflict { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                    Event::Stored { result: result.id.to_string() }
                }
                None => Event::Failed { why: outcome::nothing_to_keep(&self.runs[index].run) },
            };
            let stored = matches!(event, Event::Stored { .. });
            self.note(index, event, watch).await?;
            if stored {
                self.outbox.stir();
                // The store has the log now.
                self.runs[index].drop_copy();
            }
        }
        Ok(())
    }

    async fn hear_wishes(&mut self, watch: &mut dyn Watch) -> Result<(), ConductError> {
        for wish in self.journal.wishes().await? {
            let Some(index) = self.runs.iter().position(|live| live.run.id == wish) else { continue };
            self.ask_to_cancel(index, "asked by `trainplan jobs cancel`", watch).await?;
        }
        Ok(())
    }

    async fn ask_to_cancel(
        &mut self,
        index: usize,
        why: &str,
        watch: &mut dyn Watch,
    ) -> Result<(), ConductError> {
        let status = &self.runs[index].run.status;
        if status.cancel.is_some() || status.phase >= Phase::Ended {
            return Ok(());
        }
        self.note(index, Event::CancelAsked { why: why.to_string() }, watch).await
    }

    /// The cluster answered.
    fn reached(&mut self, watch: &mut dyn Watch) {
        self.reached_once = true;
        if self.out_of_reach.take().is_some() {
            watch.say(&format!("cluster {} answers again", self.round.cluster));
        }
    }

    async fn not_reached(
        &mut self,
        index: Option<usize>,
        error: &LinkError,
        watch: &mut dyn Watch,
    ) -> Result<(), ConductError> {
        if let Some(index) = index {
            self.runs[index].wait(Duration::from_secs(2));
        }
        // A host that let us in before may do so again, once somebody has connected; one that never did will not.
        if !self.reached_once && matches!(error, LinkError::Refused { .. }) {
            return Err(ConductError::Unreachable(error.to_string()));
        }
        self.out_of_reach(&error.to_string(), watch).await
    }

    /// Nothing is known of what happens there: that is said of every run that may have jobs.
    async fn out_of_reach(&mut self, why: &str, watch: &mut dyn Watch) -> Result<(), ConductError> {
        if self.out_of_reach.is_none() {
            self.out_of_reach = Some((Instant::now(), why.to_string()));
            watch.say(&format!("cluster {} can't be seen: {why}", self.round.cluster));
        }
        for index in 0..self.runs.len() {
            let status = &self.runs[index].run.status;
            if status.phase == Phase::Submitted && status.unseen.is_none() {
                self.note(index, Event::Unseen { why: why.to_string() }, watch).await?;
            }
        }
        Ok(())
    }

    /// What could not begin is tried a few times.
    async fn give_up_or_wait(
        &mut self,
        index: usize,
        why: &str,
        watch: &mut dyn Watch,
    ) -> Result<(), ConductError> {
        const TRIES: u32 = 5;
        let live = &mut self.runs[index];
        live.tries += 1;
        if live.tries >= TRIES {
            return self.note(index, Event::Failed { why: why.to_string() }, watch).await;
        }
        live.wait(Duration::from_secs(5 * u64::from(live.tries)));
        watch.say(&format!("{}: {why}; it is tried again", self.runs[index].run.plan.title()));
        Ok(())
    }
}

/// A word that no log and no output holds.
fn fresh_mark() -> String {
    format!("trainplan-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..))
}

/// What a remote script said, for a person.
fn said(output: &Output) -> String {
    let text = if output.stderr.trim().is_empty() {
        String::from_utf8_lossy(&output.stdout).into_owned()
    } else {
        output.stderr.clone()
    };
    let text = text.trim();
    if text.is_empty() { format!("it ended with code {}", output.code) } else { text.to_string() }
}
