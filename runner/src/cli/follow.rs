//! What a person asked for when following a round: the lines of the logs, and a command or a webhook at the end of each
//! run.

use super::ended_run::EndedRun;
use super::note;
use super::webhook::{AddressParser, TypedAddress, Webhook};
use crate::conduct::{LiveRun, Observer};
use crate::journal::{Event, Round, Run};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The flags of commands that follow a round.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct FollowArgs {
    /// Print the last lines of each run's log, and then the new ones
    #[arg(long)]
    pub(super) log: bool,
    /// Run this shell command whenever a run ends. TRAINPLAN_OUTCOME is scored, failed or
    /// cancelled; TRAINPLAN_CAMPAIGN, _CLUSTER, _RUN, _RUN_ID, _WHY, _STEP_TIME_S, _JUDGED_S, _MFU and _RESULT
    /// give details
    #[arg(long, value_name = "COMMAND")]
    on_end: Option<String>,
    /// Post a JSON message to this address whenever a run ends, and when the round is over (docs/running.md describes
    /// the messages)
    #[arg(long, value_name = "URL", env = "TRAINPLAN_WEBHOOK", hide_env_values = true, value_parser = AddressParser)]
    webhook: Option<TypedAddress>,
}

/// An observer that also prints the logs, and runs a command or calls a webhook at the end of each run.
pub(super) struct Follower<'a> {
    observer: &'a mut dyn Observer,
    log: Option<LogLines>,
    end: Option<EndCommand>,
    webhook: Option<Webhook>,
}

impl<'a> Follower<'a> {
    /// Returns a follower of a round. With a webhook, it needs a Tokio runtime.
    pub(super) fn new(args: &FollowArgs, round: &Round, observer: &'a mut dyn Observer) -> Follower<'a> {
        let end = args.on_end.as_ref().map(|command| EndCommand {
            command: command.clone(),
            campaign: round.title(),
            cluster: round.cluster.clone(),
            running: Vec::new(),
        });
        let address = args.webhook.as_ref().and_then(|address| address.0.as_ref());
        let webhook = address.and_then(|url| {
            let webhook = Webhook::new(url, round);
            webhook.map_err(|why| observer.note(&why)).ok()
        });
        Follower { observer, log: args.log.then(LogLines::default), end, webhook }
    }

    /// Shows an event that happened before this process followed the round.
    pub(super) fn past_event(&mut self, run: &Run, at_ms: i64, event: &Event) {
        self.observer.event(run, at_ms, event);
    }

    /// Returns whether to show the lines of logs.
    pub(super) fn wants_log(&self) -> bool {
        self.log.is_some()
    }

    /// Prints what is new in the copy of a run's log.
    pub(super) fn show_log(&mut self, run: &Run, file: &Path, length: u64) {
        let Some(log) = &mut self.log else { return };
        // The copy moves to the store at the end of its run.
        for line in log.news(&run.id, file, length).unwrap_or_default() {
            self.observer.log_line(run, &line);
        }
    }

    /// Reports the end of the round to the webhook if `over` has its runs. Waits up to a minute for commands that still run,
    /// and up to half a minute for undelivered messages.
    pub(super) async fn finish(&mut self, over: Option<&[Run]>) {
        if let (Some(webhook), Some(runs)) = (&self.webhook, over) {
            webhook.round_ended(runs);
        }
        if let Some(end) = &mut self.end {
            end.finish();
        }
        if let Some(webhook) = &mut self.webhook {
            for text in webhook.finish().await {
                self.observer.note(&text);
            }
        }
    }

    /// Shows which messages the webhook did not take.
    fn show_undelivered(&mut self) {
        for text in self.webhook.as_mut().map(Webhook::news).unwrap_or_default() {
            self.observer.note(&text);
        }
    }
}

impl Observer for Follower<'_> {
    fn event(&mut self, run: &Run, at_ms: i64, event: &Event) {
        self.observer.event(run, at_ms, event);
        if matches!(event, Event::Stored { .. } | Event::Failed { .. }) {
            let ended = EndedRun::of(run, event);
            if let Some(end) = &mut self.end {
                end.start(&ended);
            }
            if let Some(webhook) = &self.webhook {
                webhook.run_ended(&ended);
            }
        }
        self.show_undelivered();
    }

    fn tick(&mut self, runs: &[LiveRun]) {
        if self.wants_log() {
            for live in runs {
                if let Some((file, length)) = live.log_copy() {
                    self.show_log(&live.run, file, length);
                }
            }
        }
        self.show_undelivered();
        self.observer.tick(runs);
    }

    fn log_line(&mut self, run: &Run, line: &str) {
        self.observer.log_line(run, line);
    }

    fn note(&mut self, text: &str) {
        self.observer.note(text);
    }
}

/// How many lines of a log are printed at first.
const FIRST_LINES: usize = 10;

/// How far each run's log is printed.
#[derive(Default)]
struct LogLines {
    shown: BTreeMap<String, ShownLog>,
}

/// How far a log is printed.
#[derive(Default)]
struct ShownLog {
    /// The length of the compressed copy that is read.
    length: u64,
    /// The start of a line whose end is not there yet.
    begun: Vec<u8>,
}

impl LogLines {
    /// Returns the lines of a compressed copy, up to this length, that were not returned before; for a new log, its last
    /// lines. Each extension of a copy is a separate zstd frame.
    fn news(&mut self, run: &str, file: &Path, length: u64) -> io::Result<Vec<String>> {
        let is_new = !self.shown.contains_key(run);
        let shown = self.shown.entry(run.to_string()).or_default();
        if length < shown.length {
            // The copy was started again.
            *shown = ShownLog::default();
        }
        if length == shown.length {
            return Ok(Vec::new());
        }
        let mut packed = File::open(file)?;
        packed.seek(SeekFrom::Start(shown.length))?;
        let text = zstd::Decoder::new(packed.take(length - shown.length))?;
        let mut text = BufReader::new(io::Cursor::new(std::mem::take(&mut shown.begun)).chain(text));
        let (mut lines, most) = (VecDeque::new(), if is_new { FIRST_LINES } else { usize::MAX });
        loop {
            let mut line = Vec::new();
            text.read_until(b'\n', &mut line)?;
            if line.pop_if(|last| *last == b'\n').is_none() {
                shown.begun = line;
                break;
            }
            if lines.len() == most {
                lines.pop_front();
            }
            lines.push_back(String::from_utf8_lossy(&line).trim_end_matches('\r').to_string());
        }
        shown.length = length;
        Ok(lines.into())
    }
}

/// How long a command may run on after the round.
const LONGEST: Duration = Duration::from_secs(60);

/// A command that runs once for each run that ends.
struct EndCommand {
    command: String,
    campaign: String,
    cluster: String,
    running: Vec<(String, Child)>,
}

impl EndCommand {
    /// Starts the command for a run that is over. Its variables hold texts from logs, which no shell reads as code.
    fn start(&mut self, ended: &EndedRun) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &self.command]).stdin(Stdio::null()).stdout(io::stderr());
        let mut set = |name: &str, value: &str| {
            command.env(format!("TRAINPLAN_{name}"), value.replace('\0', ""));
        };
        set("CAMPAIGN", &self.campaign);
        set("CLUSTER", &self.cluster);
        set("RUN", &ended.run);
        set("RUN_ID", &ended.run_id);
        set("OUTCOME", ended.outcome);
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        set("WHY", ended.why.as_deref().unwrap_or_default());
        set("STEP_TIME_S", &number(ended.step_time_s));
        set("JUDGED_S", &number(ended.judged_s));
        set("MFU", &number(ended.mfu));
        set("RESULT", ended.result.as_deref().unwrap_or_default());
        match command.spawn() {
            Ok(child) => self.running.push((ended.run.clone(), child)),
            Err(error) => note(&format!("The command of --on-end didn't start for {}: {error}", ended.run)),
        }
    }

    fn finish(&mut self) {
        let begun = Instant::now();
        for (run, mut child) in std::mem::take(&mut self.running) {
            loop {
                match child.try_wait() {
                    Ok(None) if begun.elapsed() < LONGEST => std::thread::sleep(Duration::from_millis(50)),
                    Ok(None) => {
                        note(&format!(
                            "The command of --on-end is still running for {run}. It is not stopped."
                        ));
                        break;
                    }
                    Ok(Some(status)) if status.success() => break,
                    Ok(Some(status)) => {
                        note(&format!("The command of --on-end failed for {run}: {status}."));
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn new_lines_of_a_growing_log_are_returned_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("7.log.zst");
        let append = |text: &str| {
            let mut stream = File::options().create(true).append(true).open(&file).unwrap();
            stream.write_all(&zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
            stream.metadata().unwrap().len()
        };
        let mut log = LogLines::default();
        let all: String = (0..50).map(|step| format!("step {step}\n")).collect();
        let length = append(&(all + "ste"));
        let first = log.news("a", &file, length).unwrap();
        assert_eq!((first.len(), first[0].as_str(), first[9].as_str()), (10, "step 40", "step 49"));
        assert_eq!(log.news("a", &file, length).unwrap(), [""; 0]);
        let many: String = (51..80).map(|step| format!("step {step}\r\n")).collect();
        let length = append(&format!("p 50\n{many}"));
        let news = log.news("a", &file, length).unwrap();
        assert_eq!((news.len(), news[0].as_str(), news[29].as_str()), (30, "step 50", "step 79"));
        // Bytes that the journal does not list yet are left.
        append("step 80\n");
        assert_eq!(log.news("a", &file, length).unwrap(), [""; 0]);
        assert!(log.news("b", &folder.path().join("none"), 9).is_err());
    }
}
