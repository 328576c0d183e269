//! What a person, or a program, is told while a round is carried out.

use crate::conduct::{LiveRun, Observer, RunOutcome};
use crate::journal::{Event, Phase, Run};
use crate::slurm::{End, Launcher, State};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// A line of JSON for every event, on standard output.
pub(super) struct Lines {
    campaign: String,
}

/// An event, for programs.
#[derive(Serialize)]
struct Line<'a> {
    at: String,
    campaign: &'a str,
    run: &'a str,
    repeat: u32,
    id: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

impl Lines {
    pub(super) fn new(campaign: &str) -> Lines {
        Lines { campaign: campaign.to_string() }
    }

    fn line(&self, run: &Run, at_ms: i64, event: &Event) -> serde_json::Result<String> {
        serde_json::to_string(&Line {
            at: time(at_ms),
            campaign: &self.campaign,
            run: &run.plan.name,
            repeat: run.plan.repeat,
            id: &run.id,
            event,
        })
    }
}

impl Observer for Lines {
    fn event(&mut self, run: &Run, at_ms: i64, event: &Event) {
        if let Ok(line) = self.line(run, at_ms, event) {
            // A reader that has left does not stop the campaign.
            let mut out = io::stdout().lock();
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        }
    }

    fn tick(&mut self, _runs: &[LiveRun]) {}

    fn note(&mut self, text: &str) {
        super::note(text);
    }
}

/// Sentences on standard error, and on a terminal a line below them for each run that is under way.
pub(super) struct Screen {
    bars: Option<MultiProgress>,
    lines: BTreeMap<String, ProgressBar>,
    rest: Option<ProgressBar>,
    pause: Pause,
    /// What is to be said after a pause.
    later: Vec<String>,
}

/// Keeps a screen quiet while the person is asked something.
#[derive(Clone, Default)]
pub(super) struct Pause(Arc<AtomicU8>);

const GOES_ON: u8 = 0;
const WANTED: u8 = 1;
const QUIET: u8 = 2;

impl Pause {
    /// Waits until the screen is quiet.
    pub(super) async fn begin(&self) {
        self.0.store(WANTED, Ordering::SeqCst);
        for _ in 0..100 {
            if self.0.load(Ordering::SeqCst) == QUIET {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Lets it go on.
    pub(super) fn end(&self) {
        self.0.store(GOES_ON, Ordering::SeqCst);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst) != GOES_ON
    }
}

/// Runs that have a line of their own.
const MOST_LINES: usize = 16;

impl Screen {
    /// With lines if `live`.
    pub(super) fn new(live: bool) -> Screen {
        let bars = live.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(4)));
        Screen { bars, lines: BTreeMap::new(), rest: None, pause: Pause::default(), later: Vec::new() }
    }

    /// What keeps it quiet.
    pub(super) fn pause(&self) -> Pause {
        self.pause.clone()
    }

    /// Takes the lines away, so that something else can be shown.
    fn clear(&mut self) {
        for bar in std::mem::take(&mut self.lines).into_values().chain(self.rest.take()) {
            bar.finish_and_clear();
        }
        if let Some(bars) = &self.bars {
            let _ = bars.clear();
        }
    }

    /// Says what is still to be said, and takes the lines away.
    pub(super) fn finish(&mut self) {
        self.pause.end();
        self.clear();
        for text in std::mem::take(&mut self.later) {
            self.print(&text);
        }
    }

    fn print(&mut self, text: &str) {
        if self.pause.is_on() {
            self.later.push(text.to_string());
            return;
        }
        match &self.bars {
            Some(bars) => drop(bars.println(text)),
            None => drop(writeln!(io::stderr(), "{text}")),
        }
    }

    fn bar(bars: &MultiProgress) -> ProgressBar {
        let style = ProgressStyle::with_template("{spinner} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = bars.add(ProgressBar::new_spinner().with_style(style));
        bar.enable_steady_tick(Duration::from_millis(250));
        bar
    }
}

impl Observer for Screen {
    fn event(&mut self, run: &Run, at_ms: i64, event: &Event) {
        // What is only worth looking up stays for `jobs show`.
        if matches!(
            event,
            Event::Found { .. } | Event::Drained { .. } | Event::Stored { .. } | Event::Uploaded { .. }
        ) {
            return;
        }
        if let Some(text) = sentence(run, event) {
            self.print(&format!("{}  {}: {text}", clock(at_ms), run.plan.title()));
        }
    }

    fn tick(&mut self, runs: &[LiveRun]) {
        if self.pause.is_on() {
            self.clear();
            self.pause.0.store(QUIET, Ordering::SeqCst);
            return;
        }
        for text in std::mem::take(&mut self.later) {
            self.print(&text);
        }
        let Some(bars) = &self.bars else { return };
        let under_way = |live: &&LiveRun| {
            !matches!(live.run.status.phase, Phase::Planned | Phase::Stored | Phase::Failed)
        };
        let shown: Vec<&LiveRun> = runs.iter().filter(under_way).collect();
        self.lines.retain(|id, bar| {
            let stays = shown.iter().take(MOST_LINES).any(|live| live.run.id == *id);
            if !stays {
                bar.finish_and_clear();
            }
            stays
        });
        for live in shown.iter().take(MOST_LINES) {
            let bar = self.lines.entry(live.run.id.clone()).or_insert_with(|| Self::bar(bars));
            bar.set_message(state_of(live));
        }
        let waiting = runs.iter().filter(|live| live.run.status.phase == Phase::Planned).count();
        let over = runs.iter().filter(|live| live.run.status.is_over()).count();
        let more = shown.len().saturating_sub(MOST_LINES);
        let more = if more > 0 { format!("{more} more under way, ") } else { String::new() };
        let rest = self.rest.get_or_insert_with(|| Self::bar(bars));
        rest.set_message(format!(
            "{over} of {} runs over, {more}{waiting} to come; Ctrl-C to leave or to cancel",
            runs.len()
        ));
    }

    fn note(&mut self, text: &str) {
        self.print(&format!("note: {text}"));
    }
}

/// One line on a run that is under way.
pub(super) fn state_of(live: &LiveRun) -> String {
    let (run, progress) = (&live.run, &live.progress);
    let mut parts = vec![format!("{}: {}", run.plan.title(), in_words(run))];
    if progress.steps > 0 {
        let all = u64::from(run.plan.launched.steps);
        parts.push(format!("step {} of {all}", progress.steps));
        if let Some(step) = progress.step_time_s {
            parts.push(format!("{} s a step", super::estimate::rounded(step)));
            let left = all.saturating_sub(progress.steps) as f64 * step;
            if left > 0.0 {
                parts.push(format!("{} to go", duration(left)));
            }
        }
        parts.extend(progress.mfu.map(|mfu| format!("MFU {:.1} %", mfu * 100.0)));
    }
    parts.join(", ")
}

/// How far a run is that nobody has looked at since then, in words.
pub(super) fn in_words_since(run: &Run, since_ms: i64) -> String {
    let words = in_words(run);
    match run.status.phase {
        // What Slurm has goes on, and may long be over.
        Phase::Submitted if run.status.unseen.is_none() => {
            format!("unknown, last seen {} ({words})", clock(since_ms))
        }
        _ => words,
    }
}

/// How far a run is, in words.
pub(super) fn in_words(run: &Run) -> String {
    let status = &run.status;
    if let Some((since, _)) = &status.unseen {
        let known = status.jobs.first().and_then(|(_, seen)| seen.as_ref());
        let known = known.map_or("submitted".to_string(), |seen| seen.state.to_string());
        return format!("unknown, last seen {} ({known})", clock(*since));
    }
    let cancelling = status.cancel.is_some() && status.phase < Phase::Ended;
    match status.phase {
        _ if cancelling => "being cancelled".into(),
        Phase::Planned => "planned".into(),
        Phase::Staged => "on the cluster, not submitted".into(),
        Phase::Intended => "being submitted".into(),
        Phase::Submitted | Phase::Ended => {
            let jobs = status.jobs.iter().map(|(job, seen)| match seen {
                _ if status.missing.contains(job) => format!("job {job} left the queue"),
                None => format!("job {job} submitted"),
                Some(seen) if seen.state == State::Pending && !seen.reason.is_empty() => {
                    format!("job {job} waiting ({})", seen.reason)
                }
                Some(seen) => format!("job {job} {}", seen.state),
            });
            let hangs = status.quiet.filter(|_| status.phase == Phase::Submitted);
            let hangs = hangs.map(|for_s| format!("no step for {}", duration(for_s as f64)));
            jobs.chain(hangs).collect::<Vec<_>>().join(", ")
        }
        Phase::Drained | Phase::Parsed => "log copied".into(),
        Phase::Stored => match RunOutcome::of(run) {
            RunOutcome::Scored => "scored".into(),
            _ => match &status.jobs.first() {
                Some((_, Some(seen))) if seen.state != State::Ended(End::Completed) => seen.state.to_string(),
                _ => "not scored".into(),
            },
        },
        Phase::Failed if status.cancel.is_some() => "cancelled".into(),
        Phase::Failed => "failed".into(),
    }
}

/// What happened, as a sentence about the run; none where there is nothing to say.
pub(super) fn sentence(run: &Run, event: &Event) -> Option<String> {
    Some(match event {
        Event::Planned | Event::Staged { .. } | Event::CancelSent { .. } => return None,
        Event::Intended { attempt: 1, .. } => "its launch is started".into(),
        Event::Intended { attempt, .. } => format!("its launch is started again (attempt {attempt})"),
        Event::Submitted { jobs, launcher } => {
            let jobs = if jobs.len() == 1 {
                format!("job {}", jobs[0])
            } else {
                format!("jobs {}", jobs.join(", "))
            };
            match launcher {
                Launcher::Ended(0) => format!("submitted as {jobs}"),
                Launcher::Ended(code) => {
                    format!("submitted as {jobs}, though its launcher ended with code {code}")
                }
                _ => format!("submitted as {jobs}; its launcher did not live to say so"),
            }
        }
        Event::NotSubmitted { why, again: true } => {
            format!("not submitted: {why}. No job was made, so it is tried again")
        }
        Event::NotSubmitted { why, .. } => format!("not submitted: {why}"),
        Event::Observed { job, sighting } => {
            let reason = match (&sighting.state, sighting.reason.as_str(), sighting.exit_code) {
                (State::Pending, reason, _) if !reason.is_empty() => format!(" ({reason})"),
                (State::Ended(_), _, Some(code)) if code != 0 => format!(" (exit code {code})"),
                _ => String::new(),
            };
            format!("job {job} {}{reason}, says {}", sighting.state, sighting.source.id())
        }
        Event::Missing { job } => format!("job {job} left the queue; how it ended is not known yet"),
        Event::Unseen { why } => format!("can't be seen: {}", why.lines().next().unwrap_or_default()),
        Event::SeenAgain => "is seen again".into(),
        Event::Found { path, .. } => format!("its log is {path}"),
        Event::Restarted { why, .. } => why.to_string(),
        Event::Quiet { for_s, steps } => format!(
            "no step for {} (the log has {steps}): it may hang; `trainplan jobs cancel {}` ends it",
            duration(*for_s as f64),
            run.plan.title()
        ),
        Event::Moving => "steps come again".into(),
        Event::CancelAsked { why } => format!("is to be cancelled: {why}"),
        Event::Drained { bytes } => format!("its log is copied ({bytes} bytes)"),
        Event::Parsed { status, reason, step_time_s, mfu, speed_percent, error, within } => {
            let mut parts = vec![status.id().to_string()];
            parts.extend(reason.clone());
            parts.extend(step_time_s.map(|s| format!("{} s a step", super::estimate::rounded(s))));
            parts.extend(mfu.map(|mfu| format!("MFU {:.1} %", mfu * 100.0)));
            parts.extend(error.map(|error| {
                let within = if *within == Some(true) { "within" } else { "outside" };
                format!("{:+.1} % against the plan, {within} its interval", error * 100.0)
            }));
            parts.extend(speed_percent.map(|percent| format!("{percent:.1} % of the published speed")));
            parts.join(", ")
        }
        Event::Stored { result } => format!("result {result} is kept"),
        Event::Failed { why } => format!("failed: {why}"),
        Event::Uploaded { to } => format!("its result is on {to}"),
        Event::NotUploaded { why, again: true, .. } => format!("its result will be sent later: {why}"),
        Event::NotUploaded { to, why, .. } => format!("its result is not taken by {to}: {why}"),
    })
}

/// A time as RFC 3339.
pub(super) fn time(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map(|time| time.to_string()).unwrap_or_default()
}

/// A time of the day, and the day if it is another one, where the person is.
pub(super) fn clock(at_ms: i64) -> String {
    let Ok(time) = Timestamp::from_millisecond(at_ms) else { return String::new() };
    let (time, now) = (time.to_zoned(TimeZone::system()), Timestamp::now().to_zoned(TimeZone::system()));
    let format = if time.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    time.strftime(format).to_string()
}

/// Seconds as a person says them.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 90.0 * 60.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
