//! An attempt at launching a run: started once, and what came of it.

use crate::ssh::Script;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What marks the jobs of an attempt, in their comments: `trainplan:RUN/ATTEMPT`, and a slash and a number for each.
pub(crate) fn token(run: &str, attempt: u32) -> String {
    format!("trainplan:{run}/{attempt}")
}

/// The SHA-256 of a text, in hexadecimal.
pub(crate) fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The script that puts a launch on the cluster; it can be run again at any time.
pub(crate) fn stage(run: &str, script: &str) -> Script {
    Script::new("stage", include_str!("remote/stage.sh"))
        .set("run", run)
        .set("script", script)
        .set("wrapper", include_str!("remote/sbatch.sh"))
        .set("sha256", sha256(script))
}

/// The script that starts an attempt, unless it was started, waits for it so many seconds, and tells how far it is. It can
/// be run again at any time. Secrets are to be added to it.
pub(crate) fn submit(run: &str, is_job: bool, attempt: u32, wait_s: u64, mark: &str) -> Script {
    const BODY: &str = concat!(include_str!("remote/report.sh"), include_str!("remote/submit.sh"));
    Script::new("submit", BODY)
        .set("run", run)
        .set("launcher", if is_job { "sbatch" } else { "sh" })
        .set("attempt", attempt.to_string())
        .set("token", token(run, attempt))
        .set("wait_s", wait_s.to_string())
        .set("mark", mark)
}

/// The script that cancels jobs.
pub(crate) fn cancel(jobs: &[String], mark: &str) -> Script {
    Script::new("cancel", include_str!("remote/cancel.sh")).set("jobs", jobs.join(" ")).set("mark", mark)
}

/// How far an attempt is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Its process.
    pub(crate) launcher: Launcher,
    /// The jobs that it made, in order.
    pub(crate) jobs: Vec<String>,
    /// Whether it was about to make a job of which nothing is known.
    pub(crate) in_doubt: bool,
    /// Whether the queue answered, so that what it does not list is not there.
    pub(crate) queue_asked: bool,
    /// Whether the accounting answered, so that what it does not list never was.
    pub(crate) accounting_asked: bool,
    /// The last that the launcher printed.
    pub(crate) output: String,
}

/// The process of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Launcher {
    /// It goes on.
    Running,
    /// It ended with a code.
    Ended(i32),
    /// It was started on another login node than the one that was asked, which does not see whether it goes on.
    Elsewhere,
    /// It is gone without a code.
    Gone,
}

impl Report {
    /// Reads the answer to [`submit`].
    pub(crate) fn read(answer: &[u8], mark: &str) -> Report {
        let text = String::from_utf8_lossy(answer);
        let (mut launcher, mut output) = (Launcher::Gone, String::new());
        let (mut queue_asked, mut accounting_asked) = (false, false);
        // By number in the attempt; of none, those that only the queue or the accounting knows come last.
        let mut jobs: Vec<(u32, Option<String>)> = Vec::new();
        let mut rest = &text[..];
        while let Some((line, after)) = rest.split_once('\n') {
            rest = after;
            let Some(line) = line.strip_prefix(mark) else { continue };
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["code", code] => launcher = Launcher::Ended(code.parse().unwrap_or(1)),
                ["running"] => launcher = Launcher::Running,
                ["killed", ..] => launcher = Launcher::Gone,
                ["job", number, id] => note(&mut jobs, number, Some(id)),
                ["intent", number] => note(&mut jobs, number, None),
                ["elsewhere", ..] => launcher = Launcher::Elsewhere,
                ["asked", "squeue"] => queue_asked = true,
                ["asked", "sacct"] => accounting_asked = true,
                ["known", ..] => {
                    let known = line.trim_start().strip_prefix("known ").unwrap_or_default();
                    if let Some((id, comment)) = known.split_once('|') {
                        let number = comment.rsplit('/').next().unwrap_or_default();
                        note(&mut jobs, number.trim(), Some(id));
                    }
                }
                ["output"] => {
                    output = rest.trim().to_string();
                    break;
                }
                _ => {}
            }
        }
        jobs.sort();
        Report {
            launcher,
            in_doubt: jobs.iter().any(|(_, id)| id.is_none()),
            jobs: jobs.into_iter().filter_map(|(_, id)| id).collect(),
            queue_asked,
            accounting_asked,
            output,
        }
    }
}

/// Takes down a job by its number in the attempt; whoever knows its id wins.
fn note(jobs: &mut Vec<(u32, Option<String>)>, number: &str, id: Option<&str>) {
    let number = number.parse().unwrap_or(u32::MAX);
    let id = id.map(|id| id.trim().to_string()).filter(|id| id.starts_with(|c: char| c.is_ascii_digit()));
    match jobs.iter_mut().find(|(known, _)| *known == number) {
        Some((_, known)) => *known = known.take().or(id),
        None => jobs.push((number, id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_with_what_only_the_queue_knows() {
        let answer = "m code 1\nm job 1 41\nm intent 2\nm asked squeue\nm known 42|autojob trainplan:r/1/2\nm known 41|trainplan:r/1/1\nm output\nboom\nm job 9 9\n";
        let report = Report::read(answer.as_bytes(), "m");
        assert_eq!(report.jobs, ["41", "42"]);
        assert_eq!((report.launcher, report.in_doubt, report.queue_asked), (Launcher::Ended(1), false, true));
        assert_eq!(report.output, "boom\nm job 9 9");
        let doubtful = Report::read(b"m killed n1\nm intent 1\nm output\n", "m");
        assert!(doubtful.in_doubt && !doubtful.queue_asked && doubtful.jobs.is_empty());
    }
}
