//! What to do next, from what is known; pure.

use super::live::Live;
use crate::journal::{Phase, Status, now_ms};
use crate::slurm::{Launcher, Report, State};

/// What is next for a run that Slurm does not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing now.
    Nothing,
    /// To put its launch on the cluster.
    Stage,
    /// To start its launch, or to ask how far it is.
    Launch { attempt: u32 },
}

/// Runs that write to the same place start so long after one another: releases name their folders by the second.
const APART_MS: i64 = 1_500;

/// What is next for the run at `index`.
pub(super) fn next(runs: &[Live], index: usize, at_once: usize, quitting: bool) -> Next {
    let run = &runs[index].run;
    let status = &run.status;
    match status.phase {
        Phase::Intended => return Next::Launch { attempt: status.attempt },
        Phase::Planned | Phase::Staged => {}
        _ => return Next::Nothing,
    }
    if quitting || status.cancel.is_some() {
        return Next::Nothing;
    }
    let is_over = |name: &String| {
        runs.iter().filter(|other| other.run.plan.name == *name).all(|other| other.run.status.is_over())
    };
    if !run.plan.after.iter().all(is_over) {
        return Next::Nothing;
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
        return Next::Nothing;
    }
    let active = |other: &&Live| other.run.status.is_active();
    if runs.iter().filter(active).count() >= at_once {
        return Next::Nothing;
    }
    if run.plan.singleton && runs.iter().filter(active).any(|other| other.run.plan.singleton) {
        return Next::Nothing;
    }
    match status.phase {
        Phase::Planned => Next::Stage,
        _ => Next::Launch { attempt: status.attempt + 1 },
    }
}

/// What a report on an attempt comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It can't be told yet.
    Wait,
    /// These jobs are its own.
    Jobs(Vec<String>),
    /// It made none.
    NoJob { why: String, again: bool },
}

/// So long an accepted job may take to be seen.
const SETTLE_MS: i64 = 30_000;
/// So long a queue surely remembers a job that is over; clusters can be set to forget after two seconds, but say so only to
/// whoever asks.
const REMEMBERED_MS: i64 = 240_000;
/// So long a launcher on another login node is waited for.
const ELSEWHERE_MS: i64 = 30 * 60_000;
/// Launches that surely made no job are tried so many times, if what stopped them may pass.
const ATTEMPTS: u32 = 3;

/// Whether an attempt made jobs. `now_ms` is compared to when it was begun.
///
/// A run is only launched again where surely no job was made: the launcher is gone, and every job that it may have made would
/// be known to someone who answered.
pub(super) fn doubt(status: &Status, report: &Report, now_ms: i64) -> Doubt {
    let since = now_ms - status.intended_ms;
    let ended = match report.launcher {
        Launcher::Running => return Doubt::Wait,
        Launcher::Elsewhere if report.jobs.is_empty() && since < ELSEWHERE_MS => return Doubt::Wait,
        Launcher::Elsewhere | Launcher::Gone => None,
        Launcher::Ended(code) => Some(code),
    };
    let mut jobs = report.jobs.clone();
    if jobs.is_empty() && !report.in_doubt {
        jobs = printed_jobs(&report.output);
    }
    if report.in_doubt && since < SETTLE_MS {
        return Doubt::Wait;
    }
    if !jobs.is_empty() {
        return Doubt::Jobs(jobs);
    }
    let said = last_words(&report.output);
    if report.in_doubt || report.launcher == Launcher::Elsewhere {
        if !report.queue_asked {
            return Doubt::Wait;
        }
        if !report.accounting_asked && since > REMEMBERED_MS || report.launcher == Launcher::Elsewhere {
            let why = format!(
                "its launcher is gone, and whether it made a job can't be told: the queue has forgotten what is over. \
                 It is not launched again. {said}"
            );
            return Doubt::NoJob { why, again: false };
        }
    }
    let more = status.attempt < ATTEMPTS;
    match ended {
        None => Doubt::NoJob { why: "its launcher was killed before it made a job".into(), again: more },
        Some(0) => {
            Doubt::NoJob { why: format!("its launcher ended well, but made no job. {said}"), again: false }
        }
        Some(code) => Doubt::NoJob {
            why: format!("its launcher ended with code {code}: {said}"),
            again: more && may_pass(&report.output),
        },
    }
}

/// Whether what stopped a launcher may be over in a minute.
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

/// Jobs that a launcher printed which called another sbatch than the one in its PATH.
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

/// The end of what a launcher printed, on one line.
fn last_words(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" | ");
    if last.is_empty() { "It printed nothing.".into() } else { format!("It said: {last}") }
}

/// Seconds until the next look: often where something moves, seldom where all wait; never two runners in step.
pub(super) fn pause(runs: &[Live], least_s: f64, changed: bool) -> f64 {
    let wanted = runs.iter().map(|live| {
        let status = &live.run.status;
        let running = status
            .jobs
            .iter()
            .any(|(_, seen)| seen.as_ref().is_some_and(|seen| seen.state == State::Running));
        match status.phase {
            Phase::Ended => 0.0,
            Phase::Submitted if running => live.step_s().clamp(2.0, 15.0),
            // What was submitted just now may start at once; what has waited for an hour may wait for another.
            Phase::Submitted => waited_s(status).div_euclid(5.0).clamp(2.0, 15.0),
            _ => f64::INFINITY,
        }
    });
    let wanted = wanted.fold(30.0, f64::min);
    let wanted = if changed { 0.0 } else { wanted };
    wanted.max(least_s) * (0.85 + 0.3 * fastrand::f64())
}

fn waited_s(status: &Status) -> f64 {
    status.submitted_ms.map_or(0.0, |at_ms| (now_ms() - at_ms) as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(launcher: Launcher, jobs: &[&str], in_doubt: bool, asked: bool) -> Report {
        Report {
            launcher,
            jobs: jobs.iter().map(ToString::to_string).collect(),
            in_doubt,
            queue_asked: asked,
            accounting_asked: false,
            output: "sbatch: error: Batch job submission failed: Invalid partition".into(),
        }
    }

    fn status() -> Status {
        Status { phase: Phase::Intended, attempt: 1, ..Status::default() }
    }

    #[test]
    fn a_launch_is_tried_again_only_where_surely_no_job_was_made() {
        let of = |report: &Report, since| doubt(&status(), report, since);
        // Clear cases.
        assert_eq!(of(&report(Launcher::Running, &["1"], false, true), 0), Doubt::Wait);
        assert_eq!(of(&report(Launcher::Ended(1), &["1"], false, true), 0), Doubt::Jobs(vec!["1".into()]));
        assert!(matches!(
            of(&report(Launcher::Ended(1), &[], false, true), 0),
            Doubt::NoJob { again: false, .. }
        ));
        assert!(matches!(
            of(&report(Launcher::Gone, &[], false, false), 0),
            Doubt::NoJob { again: true, .. }
        ));
        // An intent without a number.
        let doubtful = report(Launcher::Gone, &[], true, true);
        assert_eq!(of(&doubtful, 1_000), Doubt::Wait);
        assert!(matches!(of(&doubtful, 60_000), Doubt::NoJob { again: true, .. }));
        assert!(matches!(of(&doubtful, 600_000), Doubt::NoJob { again: false, .. }));
        let remembered = Report { accounting_asked: true, ..doubtful.clone() };
        assert!(matches!(of(&remembered, 600_000), Doubt::NoJob { again: true, .. }));
        assert_eq!(of(&report(Launcher::Gone, &[], true, false), 600_000), Doubt::Wait, "nobody answered");
    }

    #[test]
    fn jobs_are_found_in_what_launchers_print() {
        let text = "Submitted batch job 12\n- Job id: 13\nJobID: 14, Workdir: /x\nLAUNCHED: a dtype=b jobid=14\n- Job id: none";
        assert_eq!(printed_jobs(text), ["12", "13", "14"]);
    }
}
