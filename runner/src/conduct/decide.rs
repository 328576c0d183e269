//! Decisions from what is known of the runs. Nothing here reads or writes.

use super::live::LiveRun;
use crate::journal::{Phase, RunStatus, now_ms};
use crate::slurm::{AttemptReport, Launcher, State};

/// The next step of a run that has no job yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Wait,
    /// Write its script on the cluster.
    Stage,
    /// Start this attempt, or ask how far it is if it was started.
    Launch {
        attempt: u32,
    },
}

/// The least time between two runs that write to the same place: releases name folders by the second.
const APART_MS: i64 = 1_500;

/// Returns the next step of the run at `index`.
pub(super) fn next(runs: &[LiveRun], index: usize, at_once: usize, quitting: bool) -> NextStep {
    let run = &runs[index].run;
    let status = &run.status;
    match status.phase {
        Phase::Intended => return NextStep::Launch { attempt: status.attempt },
        Phase::Planned | Phase::Staged => {}
        _ => return NextStep::Wait,
    }
    if quitting || status.cancel.is_some() {
        return NextStep::Wait;
    }
    let is_over = |name: &String| {
        runs.iter().filter(|other| other.run.plan.name == *name).all(|other| other.run.status.is_over())
    };
    if !run.plan.after.iter().all(is_over) {
        return NextStep::Wait;
    }
    let repeat_before = runs[..index]
        .iter()
        .any(|other| other.run.plan.name == run.plan.name && other.run.status.phase < Phase::Submitted);
    let too_near = runs.iter().enumerate().any(|(place, other)| {
        let status = &other.run.status;
        let at_work = other.busy || status.phase == Phase::Intended;
        let just_now = status.submitted_ms.is_some_and(|at_ms| now_ms() - at_ms < APART_MS);
        place != index && other.run.plan.log_glob == run.plan.log_glob && (at_work || just_now)
    });
    if repeat_before || too_near {
        return NextStep::Wait;
    }
    let active = |other: &&LiveRun| other.run.status.is_active();
    if runs.iter().filter(active).count() >= at_once {
        return NextStep::Wait;
    }
    if run.plan.singleton && runs.iter().filter(active).any(|other| other.run.plan.singleton) {
        return NextStep::Wait;
    }
    match status.phase {
        Phase::Planned => NextStep::Stage,
        _ => NextStep::Launch { attempt: status.attempt + 1 },
    }
}

/// What an attempt at launching came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LaunchVerdict {
    /// Not known yet.
    Unknown,
    /// It submitted these jobs.
    Jobs(Vec<String>),
    /// It submitted no job. `again` allows another attempt.
    NoJob { why: String, again: bool },
}

/// How long an accepted job may take to appear in the queue.
const SETTLE_MS: i64 = 30_000;
/// How long the queue is trusted to remember a job that is over. The default of Slurm's MinJobAge is 300 s.
const REMEMBERED_MS: i64 = 240_000;
/// How long to wait for a launcher on another login node.
const ELSEWHERE_MS: i64 = 30 * 60_000;
/// The most attempts at launching a run.
const ATTEMPTS: u32 = 3;

/// Judges whether an attempt submitted jobs. `now_ms` is compared with the attempt's start.
///
/// Another attempt is allowed only if this one certainly submitted no job: its launcher has ended, and every
/// job that it could have submitted would be known to the queue or the accounting, which answered.
pub(super) fn judge_attempt(status: &RunStatus, report: &AttemptReport, now_ms: i64) -> LaunchVerdict {
    let since = now_ms - status.intended_ms;
    let ended = match report.launcher {
        Launcher::Running => return LaunchVerdict::Unknown,
        Launcher::Elsewhere if report.jobs.is_empty() && since < ELSEWHERE_MS => {
            return LaunchVerdict::Unknown;
        }
        Launcher::Elsewhere | Launcher::Gone => None,
        Launcher::Ended(code) => Some(code),
    };
    let mut jobs = report.jobs.clone();
    if jobs.is_empty() && !report.in_doubt {
        jobs = printed_jobs(&report.output);
    }
    if report.in_doubt && since < SETTLE_MS {
        return LaunchVerdict::Unknown;
    }
    if !jobs.is_empty() {
        return LaunchVerdict::Jobs(jobs);
    }
    let said = last_words(&report.output);
    if report.in_doubt || report.launcher == Launcher::Elsewhere {
        if !report.queue_asked {
            return LaunchVerdict::Unknown;
        }
        if !report.accounting_asked && since > REMEMBERED_MS || report.launcher == Launcher::Elsewhere {
            let why = format!(
                "the launcher has ended, but whether it submitted a job is unknown: the queue no longer \
                 lists jobs that are over. The run is not launched again, because that could submit it \
                 twice. {said}"
            );
            return LaunchVerdict::NoJob { why, again: false };
        }
    }
    let more = status.attempt < ATTEMPTS;
    match ended {
        None => LaunchVerdict::NoJob {
            why: "the launcher was killed before it submitted a job".into(),
            again: more,
        },
        Some(0) => LaunchVerdict::NoJob {
            why: format!("the launcher succeeded, but submitted no job. {said}"),
            again: false,
        },
        Some(code) => LaunchVerdict::NoJob {
            why: format!("the launcher failed with exit code {code}. {said}"),
            again: more && may_pass(&report.output),
        },
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

/// Returns the jobs in a launcher's output, for launchers that don't call the sbatch in their PATH.
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

/// Returns the last three lines of a launcher's output as one.
fn last_words(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" | ");
    if last.is_empty() { "It printed nothing.".into() } else { format!("Its output ends with: {last}") }
}

/// Returns the seconds until the next poll: few while steps come, more while all runs wait. Random by 15 %,
/// so that several runners don't poll in step.
pub(super) fn pause(runs: &[LiveRun], least_s: f64, changed: bool) -> f64 {
    let wanted = runs.iter().map(|live| {
        let status = &live.run.status;
        let running = status
            .jobs
            .iter()
            .any(|(_, seen)| seen.as_ref().is_some_and(|seen| seen.state == State::Running));
        match status.phase {
            Phase::Ended => 0.0,
            Phase::Submitted if running => live.step_s().clamp(2.0, 15.0),
            // A job that was just submitted may start at once; one that has waited for an hour may wait for
            // another.
            Phase::Submitted => waited_s(status).div_euclid(5.0).clamp(2.0, 15.0),
            _ => f64::INFINITY,
        }
    });
    let wanted = wanted.fold(30.0, f64::min);
    let wanted = if changed { 0.0 } else { wanted };
    wanted.max(least_s) * (0.85 + 0.3 * fastrand::f64())
}

fn waited_s(status: &RunStatus) -> f64 {
    status.submitted_ms.map_or(0.0, |at_ms| (now_ms() - at_ms) as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(launcher: Launcher, jobs: &[&str], in_doubt: bool, asked: bool) -> AttemptReport {
        AttemptReport {
            launcher,
            jobs: jobs.iter().map(ToString::to_string).collect(),
            in_doubt,
            queue_asked: asked,
            accounting_asked: false,
            output: "sbatch: error: Batch job submission failed: Invalid partition".into(),
        }
    }

    fn status() -> RunStatus {
        RunStatus { phase: Phase::Intended, attempt: 1, ..RunStatus::default() }
    }

    #[test]
    fn a_run_is_launched_again_only_if_certainly_no_job_was_submitted() {
        let of = |report: &AttemptReport, since| judge_attempt(&status(), report, since);
        // The launcher's record has the job's number, or it ended before sbatch.
        assert_eq!(of(&report(Launcher::Running, &["1"], false, true), 0), LaunchVerdict::Unknown);
        assert_eq!(
            of(&report(Launcher::Ended(1), &["1"], false, true), 0),
            LaunchVerdict::Jobs(vec!["1".into()])
        );
        assert!(matches!(
            of(&report(Launcher::Ended(1), &[], false, true), 0),
            LaunchVerdict::NoJob { again: false, .. }
        ));
        assert!(matches!(
            of(&report(Launcher::Gone, &[], false, false), 0),
            LaunchVerdict::NoJob { again: true, .. }
        ));
        // sbatch was called, and its answer is lost.
        let doubtful = report(Launcher::Gone, &[], true, true);
        assert_eq!(of(&doubtful, 1_000), LaunchVerdict::Unknown);
        assert!(matches!(of(&doubtful, 60_000), LaunchVerdict::NoJob { again: true, .. }));
        assert!(matches!(of(&doubtful, 600_000), LaunchVerdict::NoJob { again: false, .. }));
        let remembered = AttemptReport { accounting_asked: true, ..doubtful.clone() };
        assert!(matches!(of(&remembered, 600_000), LaunchVerdict::NoJob { again: true, .. }));
        assert_eq!(
            of(&report(Launcher::Gone, &[], true, false), 600_000),
            LaunchVerdict::Unknown,
            "neither queue nor accounting answered"
        );
    }

    #[test]
    fn jobs_are_found_in_the_output_of_launchers() {
        let text = "Submitted batch job 12\n- Job id: 13\nJobID: 14, Workdir: /x\nLAUNCHED: a dtype=b \
                    jobid=14\n- Job id: none";
        assert_eq!(printed_jobs(text), ["12", "13", "14"]);
    }
}
