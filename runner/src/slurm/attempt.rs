//! An attempt at launching a run: it is started at most once, and examined as often as needed.

use crate::ssh::Script;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Returns the token of an attempt, `trainplan:RUN/ATTEMPT`. With a slash and a number it marks each job, in
/// its comment.
pub(crate) fn token(run: &str, attempt: u32) -> String {
    format!("trainplan:{run}/{attempt}")
}

/// Returns the SHA-256 of a text, in hexadecimal.
pub(crate) fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the remote script that writes a run's script to the cluster. It can be repeated.
pub(crate) fn stage(run: &str, script: &str) -> Script {
    Script::new("stage", include_str!("remote/stage.sh"))
        .set("run", run)
        .set("script", script)
        .set("wrapper", include_str!("remote/sbatch.sh"))
        .set("sha256", sha256(script))
}

/// Returns the remote script that starts an attempt unless it was started, waits up to `wait_s` seconds for
/// its launcher, and reports on it. It can be repeated. The caller adds the secrets.
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

/// Returns the remote script that cancels jobs.
pub(crate) fn cancel(jobs: &[String], mark: &str) -> Script {
    Script::new("cancel", include_str!("remote/cancel.sh")).set("jobs", jobs.join(" ")).set("mark", mark)
}

/// The answer of scancel for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CancelAnswer {
    pub(crate) job: String,
    /// The exit code; 0 if scancel accepted the request.
    pub(crate) code: i32,
    pub(crate) message: String,
}

/// Reads the answer to [`cancel`]: lines `MARK scancel JOB CODE MESSAGE`.
pub(crate) fn cancel_answers(answer: &[u8], mark: &str) -> Vec<CancelAnswer> {
    let answer = String::from_utf8_lossy(answer);
    let read = |line: &str| {
        let mut words = line.strip_prefix(mark)?.trim_start().strip_prefix("scancel ")?.splitn(3, ' ');
        let (job, code) = (words.next()?.to_string(), words.next()?.parse().ok()?);
        Some(CancelAnswer { job, code, message: words.next().unwrap_or_default().trim().to_string() })
    };
    answer.lines().filter_map(read).collect()
}

/// The state of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttemptReport {
    pub(crate) launcher: Launcher,
    /// The jobs that it submitted, in order.
    pub(crate) jobs: Vec<String>,
    /// Whether it called sbatch and the outcome is not known.
    pub(crate) in_doubt: bool,
    /// Whether the queue answered: a job that it does not list is not queued or running.
    pub(crate) queue_asked: bool,
    /// Whether the accounting answered: a job that it does not list never existed.
    pub(crate) accounting_asked: bool,
    /// The last 4000 bytes of the launcher's output.
    pub(crate) output: String,
}

/// The state of a launcher's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Launcher {
    Running,
    /// It ended with this exit code.
    Ended(i32),
    /// It runs on another login node than the one that answered, so its state is not visible.
    Elsewhere,
    /// It was killed, and left no exit code.
    Gone,
}

impl AttemptReport {
    /// Reads the answer to [`submit`].
    pub(crate) fn read(answer: &[u8], mark: &str) -> AttemptReport {
        let text = String::from_utf8_lossy(answer);
        let (mut launcher, mut output) = (Launcher::Gone, String::new());
        let (mut queue_asked, mut accounting_asked) = (false, false);
        // By number in the attempt. Jobs without one come last.
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
        AttemptReport {
            launcher,
            in_doubt: jobs.iter().any(|(_, id)| id.is_none()),
            jobs: jobs.into_iter().filter_map(|(_, id)| id).collect(),
            queue_asked,
            accounting_asked,
            output,
        }
    }
}

/// Adds a job by its number in the attempt. An id, once known, stays.
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
    fn jobs_that_only_the_queue_knows_are_in_the_report() {
        let answer = "m code 1\nm job 1 41\nm intent 2\nm asked squeue\nm known 42|autojob \
                      trainplan:r/1/2\nm known 41|trainplan:r/1/1\nm output\nboom\nm job 9 9\n";
        let report = AttemptReport::read(answer.as_bytes(), "m");
        assert_eq!(report.jobs, ["41", "42"]);
        assert_eq!((report.launcher, report.in_doubt, report.queue_asked), (Launcher::Ended(1), false, true));
        assert_eq!(report.output, "boom\nm job 9 9");
        let doubtful = AttemptReport::read(b"m killed n1\nm intent 1\nm output\n", "m");
        assert!(doubtful.in_doubt && !doubtful.queue_asked && doubtful.jobs.is_empty());
    }

    #[test]
    fn the_answer_of_scancel_is_read_for_each_job() {
        let answer = "m scancel 40 0 \nm scancel 41 1 scancel: error: Invalid job id 0 \nnoise 0\n";
        let read = cancel_answers(answer.as_bytes(), "m");
        let expected =
            |job: &str, code, message: &str| CancelAnswer { job: job.into(), code, message: message.into() };
        assert_eq!(read, [expected("40", 0, ""), expected("41", 1, "scancel: error: Invalid job id 0")]);
    }
}
