//! An attempt at launching a run: it is started at most once, and examined as often as needed.

use crate::ssh::Script;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How every token begins.
const TOKEN: &str = "trainplan:";

/// Returns the token of an attempt, `trainplan:RUN/ATTEMPT`. With a slash and a number it marks each job, in
/// its comment.
pub(crate) fn token(run: &str, attempt: u32) -> String {
    format!("{TOKEN}{run}/{attempt}")
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

/// The order for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptOrder {
    /// Start it unless it was started, and report on it.
    Start,
    /// Report on it. If it was not started, it can't be started later.
    Examine,
}

/// An attempt at launching a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    /// The run's id.
    pub(crate) run: &'a str,
    /// Whether its script is the job's own, for sbatch.
    pub(crate) is_job: bool,
    /// Counted from 1.
    pub(crate) number: u32,
    /// Nodes that its jobs avoid, in Slurm's notation; may be empty.
    pub(crate) exclude: &'a str,
}

/// Returns the remote script that executes an order for an attempt, after waiting up to `wait_s` seconds for its
/// launcher. It can be repeated. The caller adds the secrets.
pub(crate) fn submit(attempt: Attempt, order: AttemptOrder, wait_s: u64, mark: &str) -> Script {
    const BODY: &str = concat!(include_str!("remote/report.sh"), include_str!("remote/submit.sh"));
    let Attempt { run, is_job, number, exclude } = attempt;
    Script::new("submit", BODY)
        .set("run", run)
        .set("launcher", if is_job { "sbatch" } else { "sh" })
        .set("attempt", number.to_string())
        .set("token", token(run, number))
        .set("start", if order == AttemptOrder::Start { "yes" } else { "" })
        .set("exclude", exclude)
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
    /// The jobs that it submitted by its notes and marks, in order.
    pub(crate) jobs: Vec<String>,
    /// Whether it called the sbatch in its PATH, which takes notes and marks jobs.
    pub(crate) noted: bool,
    /// Whether it called sbatch and the outcome is not known.
    pub(crate) in_doubt: bool,
    /// Whether Slurm shows the marks of its jobs; none if Slurm shows none of its jobs.
    pub(crate) marked: Option<bool>,
    /// The user's other jobs since it began, without those that another run has marked.
    pub(crate) others: Vec<NamedJob>,
    /// Whether the queue answered: a job that it does not list is not queued or running.
    pub(crate) queue_asked: bool,
    /// Whether the accounting answered: a job that it does not list never existed.
    pub(crate) accounting_asked: bool,
    /// The jobs in the launcher's output, for launchers that don't call the sbatch in their PATH.
    pub(crate) printed: Vec<String>,
    /// Whether the launcher failed by something that may be over in a minute.
    pub(crate) may_pass: bool,
    /// The last 4000 bytes of the launcher's output.
    pub(crate) output: String,
}

/// A job in Slurm's lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedJob {
    pub(crate) id: String,
    pub(crate) name: String,
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
    /// It was never started, and never will be.
    Withheld,
    /// Its run's folder was removed, so its state is unknown.
    Removed,
}

impl AttemptReport {
    /// Reads the answer to [`submit`] for the attempt with that token.
    pub(crate) fn read(answer: &[u8], mark: &str, token: &str) -> AttemptReport {
        let text = String::from_utf8_lossy(answer);
        let (mut launcher, mut output) = (Launcher::Gone, String::new());
        let (mut queue_asked, mut accounting_asked, mut noted) = (false, false, false);
        // By number in the attempt. Jobs without one come last.
        let mut jobs: Vec<(u32, Option<String>)> = Vec::new();
        let (mut listed, mut has_mark) = (Vec::new(), false);
        let mut rest = &text[..];
        while let Some((line, after)) = rest.split_once('\n') {
            rest = after;
            let Some(line) = line.strip_prefix(mark) else { continue };
            let words: Vec<&str> = line.split_whitespace().collect();
            noted |= matches!(words[..], ["job" | "intent" | "refused", ..]);
            match words[..] {
                ["code", code] => launcher = Launcher::Ended(code.parse().unwrap_or(1)),
                ["running"] => launcher = Launcher::Running,
                ["withheld"] => launcher = Launcher::Withheld,
                ["removed"] => launcher = Launcher::Removed,
                ["elsewhere", ..] => launcher = Launcher::Elsewhere,
                ["job", number, id] => note(&mut jobs, number, Some(id)),
                ["intent", number] => note(&mut jobs, number, None),
                ["asked", "squeue"] => queue_asked = true,
                ["asked", "sacct"] => accounting_asked = true,
                [kind @ ("queued" | "accounted"), ..] => {
                    let record = line.trim_start().split_once(' ').map_or("", |(_, record)| record);
                    let cells: Vec<&str> = record.splitn(4, '|').collect();
                    let [id, _, name, comment] = cells[..] else { continue };
                    match comment.split_once(token).and_then(|(_, rest)| rest.strip_prefix('/')) {
                        Some(number) => {
                            has_mark = true;
                            let digits = number.split(|c: char| !c.is_ascii_digit()).next();
                            note(&mut jobs, digits.unwrap_or_default(), Some(id));
                        }
                        // The accounting of many sites has no comments.
                        None => {
                            let job = NamedJob { id: id.to_string(), name: name.to_string() };
                            listed.push((job, kind == "queued", comment.contains(TOKEN)));
                        }
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
        let in_doubt = jobs.iter().any(|(_, id)| id.is_none());
        let jobs: Vec<String> = jobs.into_iter().filter_map(|(_, id)| id).collect();
        let printed = printed_jobs(&output);
        let is_unmarked = listed
            .iter()
            .any(|(job, in_queue, _)| *in_queue && (jobs.contains(&job.id) || printed.contains(&job.id)));
        let mut others: Vec<NamedJob> = Vec::new();
        let foreign = |id: &str| listed.iter().any(|(job, _, is_foreign)| *is_foreign && job.id == id);
        for (job, ..) in &listed {
            if !jobs.contains(&job.id) && !foreign(&job.id) && others.iter().all(|known| known.id != job.id) {
                others.push(job.clone());
            }
        }
        AttemptReport {
            launcher,
            noted,
            in_doubt,
            marked: if has_mark { Some(true) } else { is_unmarked.then_some(false) },
            others,
            jobs,
            queue_asked,
            accounting_asked,
            printed,
            may_pass: may_pass(&output),
            output,
        }
    }
}

/// Returns whether the launcher failed by something that may be over in a minute, by the messages of Slurm's
/// commands.
fn may_pass(output: &str) -> bool {
    const PASSING: [&str; 6] = [
        "timed out",
        "unable to contact slurm controller",
        "connection refused",
        "communication connection failure",
        "zero bytes were transmitted",
        "temporarily unable",
    ];
    let output = output.to_ascii_lowercase();
    PASSING.iter().any(|text| output.contains(text))
}

/// Returns the jobs in a launcher's output.
fn printed_jobs(output: &str) -> Vec<String> {
    const BEFORE: [&str; 5] = ["Submitted batch job ", "- Job id: ", "JobID: ", "jobid=", "job_id: "];
    let mut jobs = Vec::new();
    for line in output.lines() {
        let rest = BEFORE.iter().find_map(|before| line.split_once(before)).map(|(_, rest)| rest);
        let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
        if let Some(job) = rest.map(digits).filter(|job| !job.is_empty() && !jobs.contains(job)) {
            jobs.push(job);
        }
    }
    jobs
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

    fn read(answer: &str) -> AttemptReport {
        AttemptReport::read(answer.as_bytes(), "m", "trainplan:r/1")
    }

    #[test]
    fn jobs_that_only_the_queue_knows_are_in_the_report() {
        let report = read(
            "m code 1\nm job 1 41\nm intent 2\nm asked squeue\nm queued 42|9|a|autojob \
             trainplan:r/1/2\nm queued 41|9|a|trainplan:r/1/1\nm queued 43|9|a|trainplan:r/11/1\n\
             m queued 44|9|b c|\nm output\nboom\nm job 9 9\n",
        );
        assert_eq!(report.jobs, ["41", "42"]);
        assert_eq!((report.launcher, report.in_doubt, report.queue_asked), (Launcher::Ended(1), false, true));
        assert_eq!((report.noted, report.marked), (true, Some(true)));
        assert_eq!(report.others, [NamedJob { id: "44".into(), name: "b c".into() }]);
        assert_eq!(report.output, "boom\nm job 9 9");
        let doubtful = read("m killed n1\nm intent 1\nm output\n");
        assert!(doubtful.in_doubt && !doubtful.queue_asked && doubtful.jobs.is_empty());
    }

    #[test]
    fn a_mark_that_slurm_does_not_show_is_noticed() {
        let lost = read("m code 0\nm job 1 41\nm asked squeue\nm queued 41|9|a|site comment\nm output\n");
        assert_eq!((lost.marked, &lost.jobs[..]), (Some(false), &["41".to_string()][..]));
        // An accounting without comments says nothing, and so does a queue without the job.
        for line in ["m accounted 41|9|a|", "m queued 40|9|a|"] {
            let unknown = read(&format!("m code 0\nm job 1 41\n{line}\nm output\n"));
            assert_eq!(unknown.marked, None, "{line}");
        }
        let printed = read("m code 0\nm queued 41|9|a|\nm output\nSubmitted batch job 41\n");
        assert_eq!((printed.noted, printed.marked), (false, Some(false)));
        let refused = read("m code 1\nm refused 1\nm output\n");
        assert_eq!((refused.noted, refused.in_doubt), (true, false));
    }

    #[test]
    fn jobs_are_found_in_the_output_of_launchers() {
        let text = "Submitted batch job 12\n- Job id: 13\nJobID: 14, Workdir: /x\nLAUNCHED: a dtype=b \
                    jobid=14\n- Job id: none";
        assert_eq!(printed_jobs(text), ["12", "13", "14"]);
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
