//! Shows a round in progress: live lines for people, JSON lines for programs.

use super::judged_run::JudgedRun;
use super::output::printable;
use crate::conduct::{LiveRun, Observer, RunOutcome};
use crate::journal::{Event, Phase, Run, now_ms};
use crate::slurm::{End, Launcher, State};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Prints a line of JSON to stdout for every event.
pub(super) struct JsonLines {
    campaign: String,
}

/// An event as a JSON line.
#[derive(Serialize)]
struct JsonLine<'a> {
    at: String,
    campaign: &'a str,
    run: &'a str,
    repeat: u32,
    id: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

impl JsonLines {
    pub(super) fn new(campaign: &str) -> JsonLines {
        JsonLines { campaign: campaign.to_string() }
    }

    fn line(&self, run: &Run, at_ms: i64, event: &Event) -> serde_json::Result<String> {
        serde_json::to_string(&JsonLine {
            at: time(at_ms),
            campaign: &self.campaign,
            run: &run.plan.name,
            repeat: run.plan.repeat,
            id: &run.id,
            event,
        })
    }
}

impl Observer for JsonLines {
    fn event(&mut self, run: &Run, at_ms: i64, event: &Event) {
        if let Ok(line) = self.line(run, at_ms, event) {
            // The campaign continues even if the reader has left.
            let mut out = io::stdout().lock();
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        }
    }

    fn tick(&mut self, _runs: &[LiveRun]) {}

    fn log_line(&mut self, run: &Run, line: &str) {
        let line = serde_json::json!({
            "at": time(now_ms()), "campaign": self.campaign, "run": run.plan.name, "repeat": run.plan.repeat, "id": run.id,
            "event": "log", "line": line,
        });
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    fn note(&mut self, text: &str) {
        super::note(text);
    }
}

/// Prints events to stderr, and on a terminal a live line for each run in progress.
pub(super) struct LiveScreen {
    bars: Option<MultiProgress>,
    lines: BTreeMap<String, ProgressBar>,
    rest: Option<ProgressBar>,
    pause: Pause,
    /// Texts to print after a pause.
    later: Vec<String>,
}

/// Suspends a screen during a question to the user.
#[derive(Clone, Default)]
pub(super) struct Pause(Arc<AtomicU8>);

const GOES_ON: u8 = 0;
const WANTED: u8 = 1;
const QUIET: u8 = 2;

impl Pause {
    /// Waits until the screen is suspended, for two seconds at most.
    pub(super) async fn begin(&self) {
        self.0.store(WANTED, Ordering::SeqCst);
        for _ in 0..100 {
            if self.0.load(Ordering::SeqCst) == QUIET {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Resumes the screen.
    pub(super) fn end(&self) {
        self.0.store(GOES_ON, Ordering::SeqCst);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst) != GOES_ON
    }
}

/// The maximum number of runs with a live line.
const MOST_LINES: usize = 16;

impl LiveScreen {
    /// Returns a screen, with live lines if wanted.
    pub(super) fn new(live: bool) -> LiveScreen {
        let bars = live.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(4)));
        LiveScreen { bars, lines: BTreeMap::new(), rest: None, pause: Pause::default(), later: Vec::new() }
    }

    /// Returns the handle that suspends the screen.
    pub(super) fn pause(&self) -> Pause {
        self.pause.clone()
    }

    /// Removes the live lines.
    fn clear(&mut self) {
        for bar in std::mem::take(&mut self.lines).into_values().chain(self.rest.take()) {
            bar.finish_and_clear();
        }
        if let Some(bars) = &self.bars {
            let _ = bars.clear();
        }
    }

    /// Prints what a pause held back, and removes the live lines.
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

impl Observer for LiveScreen {
    fn event(&mut self, run: &Run, at_ms: i64, event: &Event) {
        // Details are left to `jobs show`.
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
        let more = if more > 0 { format!("{more} more in progress, ") } else { String::new() };
        let rest = self.rest.get_or_insert_with(|| Self::bar(bars));
        rest.set_message(format!(
            "{over} of {} runs finished, {more}{waiting} waiting. Press Ctrl-C to detach, quit or cancel.",
            runs.len()
        ));
    }

    fn log_line(&mut self, run: &Run, line: &str) {
        self.print(&printable(&format!("{} | {line}", run.plan.title())));
    }

    fn note(&mut self, text: &str) {
        self.print(&format!("note: {text}"));
    }
}

/// Returns the live line of a run in progress.
pub(super) fn state_of(live: &LiveRun) -> String {
    let (run, progress) = (&live.run, &live.progress);
    let mut parts = vec![format!("{}: {}", run.plan.title(), in_words(run))];
    if progress.steps > 0 {
        let all = u64::from(run.plan.launched.steps);
        parts.push(format!("step {} of {all}", progress.steps));
        if let Some(step) = progress.step_time_s {
            let planned = run.plan.predicted.step_time_s.mid;
            parts.push(format!(
                "{} s per step ({:.1} % of the planned speed)",
                super::estimate::rounded(step),
                100.0 * planned / step
            ));
            let left = all.saturating_sub(progress.steps) as f64 * step;
            if left > 0.0 {
                parts.push(format!("{} left", duration(left)));
            }
        }
        parts.extend(progress.mfu.map(|mfu| format!("MFU {:.1} %", mfu * 100.0)));
    }
    parts.join(", ")
}

/// Returns the state of a run that no process has observed since then.
pub(super) fn in_words_since(run: &Run, since_ms: i64) -> String {
    let words = in_words(run);
    match run.status.phase {
        // Its jobs may be over by now.
        Phase::Submitted if run.status.unseen.is_none() => {
            format!("not followed since {} ({words})", clock(since_ms))
        }
        _ => words,
    }
}

/// Returns the state of a run for people.
pub(super) fn in_words(run: &Run) -> String {
    let status = &run.status;
    if let Some((since, _)) = &status.unseen {
        let known = status.jobs.first().and_then(|(_, seen)| seen.as_ref());
        let known = known.map_or("submitted".to_string(), |seen| seen.state.to_string());
        return format!("unknown, last seen {} ({known})", clock(*since));
    }
    let cancelling = status.cancel.is_some() && status.phase < Phase::Ended;
    match status.phase {
        _ if cancelling => "cancelling".into(),
        Phase::Planned => "planned".into(),
        Phase::Staged => "staged".into(),
        Phase::Intended => "submitting".into(),
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

/// Returns an event in words; none for events that are not shown.
pub(super) fn sentence(run: &Run, event: &Event) -> Option<String> {
    Some(match event {
        Event::Planned | Event::Staged { .. } | Event::CancelSent { .. } => return None,
        Event::Intended { attempt: 1, .. } => "launching".into(),
        Event::Intended { attempt, .. } => format!("launching again (attempt {attempt})"),
        Event::Submitted { jobs, launcher, marked, by_name } => {
            let jobs = if jobs.len() == 1 {
                format!("job {}", jobs[0])
            } else {
                format!("jobs {}", jobs.join(", "))
            };
            let launched = match launcher {
                Launcher::Ended(0) => format!("submitted as {jobs}"),
                Launcher::Ended(code) => {
                    format!("submitted as {jobs}, though the launcher failed with exit code {code}")
                }
                _ => format!("submitted as {jobs}; the launcher did not finish"),
            };
            match (by_name, marked) {
                (true, _) => format!("{launched}; found by name, since Slurm shows no mark of it"),
                (_, Some(false)) => format!(
                    "{launched}; Slurm shows no mark of it, so a launch whose answer is lost is not repeated"
                ),
                _ => launched,
            }
        }
        Event::NotSubmitted { why, again: true } => {
            format!("not submitted, will be tried again: {why}")
        }
        Event::NotSubmitted { why, .. } => format!("not submitted: {why}"),
        Event::Observed { job, sighting } => {
            let reason = match (&sighting.state, sighting.reason.as_str(), sighting.exit_code) {
                (State::Pending, reason, _) if !reason.is_empty() => format!(" ({reason})"),
                (State::Ended(_), _, Some(code)) if code != 0 => format!(" (exit code {code})"),
                _ => String::new(),
            };
            format!("job {job} {}{reason} [{}]", sighting.state, sighting.source.id())
        }
        Event::Missing { job } => format!("job {job} left the queue; its end state is not known yet"),
        Event::Unseen { why, .. } => format!("state unknown: {}", why.lines().next().unwrap_or_default()),
        Event::SeenAgain => "state known again".into(),
        Event::Found { path, .. } => format!("log found: {path}"),
        Event::Restarted { why, .. } => why.to_string(),
        Event::Quiet { for_s, steps } => format!(
            "no step for {} (the log has {steps} steps). The run may hang. To cancel it, use `trainplan \
             jobs cancel {}`.",
            duration(*for_s as f64),
            run.plan.title()
        ),
        Event::Moving => "steps continue".into(),
        Event::CancelAsked { why } => format!("cancelling: {why}"),
        Event::Drained { bytes } => format!("log copied ({bytes} bytes)"),
        Event::Parsed { status, reason, mfu, .. } => {
            let judged = JudgedRun::of(event, run.plan.predicted.step_time_s);
            let mut parts = vec![status.id().to_string()];
            parts.extend(reason.clone());
            parts.extend(judged.map(JudgedRun::in_words));
            parts.extend(mfu.map(|mfu| format!("MFU {:.1} %", mfu * 100.0)));
            if let Some(judged) = judged {
                parts.extend(judged.plan.and_then(|plan| {
                    let within = if plan.within == Some(true) { "within" } else { "outside" };
                    Some(format!("{:.1} % of the planned speed, {within} its interval", plan.speed_percent?))
                }));
                let published = judged.speed_percent;
                parts.extend(published.map(|percent| format!("{percent:.1} % of the published speed")));
            }
            parts.join(", ")
        }
        Event::Stored { result } => format!("result {result} stored"),
        Event::Failed { why } => format!("failed: {why}"),
        Event::Uploaded { to } => format!("result uploaded to {to}"),
        Event::NotUploaded { why, again: true, .. } => format!("the result will be uploaded later: {why}"),
        Event::NotUploaded { to, why, .. } => format!("{to} rejected the result: {why}"),
    })
}

/// Formats a time by RFC 3339.
pub(super) fn time(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map(|time| time.to_string()).unwrap_or_default()
}

/// Formats a local time, with the date unless it is today.
pub(super) fn clock(at_ms: i64) -> String {
    let Ok(time) = Timestamp::from_millisecond(at_ms) else { return String::new() };
    let (time, now) = (time.to_zoned(TimeZone::system()), Timestamp::now().to_zoned(TimeZone::system()));
    let format = if time.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    time.strftime(format).to_string()
}

/// Formats a duration for people.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 90.0 * 60.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
