//! Decisions from what is known of the runs. Nothing here reads or writes.

use super::live::LiveRun;
use super::outcome::RunOutcome;
use crate::journal::{Phase, Run, RunStatus, now_ms};
use crate::slurm::{AttemptReport, Launcher, NamedJob, State};
use std::collections::BTreeSet;
use std::time::Duration;

/// The next step of a run that has no job yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Wait,
    /// It can't run any more.
    Fail {
        why: String,
    },
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
    if let Some(name) = run.plan.after_success.iter().find(|name| !has_succeeded(runs, name)) {
        return NextStep::Fail { why: format!("{name} was not scored, and this run needs its success") };
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
    // No run overtakes an earlier one that is being prepared.
    let prepared = runs[..index].iter().filter(|live| live.busy && !live.run.status.is_active()).count();
    if runs.iter().filter(active).count() + prepared >= at_once {
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

/// Returns whether every repeat of a run has a score, at its first try or at a later one.
fn has_succeeded(runs: &[LiveRun], name: &str) -> bool {
    let of_name = || runs.iter().map(|live| &live.run).filter(|run| run.plan.name == name);
    let is_scored = |run: &Run| {
        let same = |other: &&Run| other.plan.repeat == run.plan.repeat;
        of_name().filter(same).any(|other| RunOutcome::of(other) == RunOutcome::Scored)
    };
    of_name().all(is_scored)
}

/// What an attempt at launching came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LaunchVerdict {
    /// Not known yet.
    Unknown,
    /// It submitted these jobs.
    Jobs {
        jobs: Vec<String>,
        /// Whether some are known by their names only.
        by_name: bool,
    },
    /// It submitted no job, or none was found. `again` allows another attempt.
    NoJob { why: String, again: bool },
}

/// The known facts beside the report on an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchEvidence<'a> {
    /// Whether the last jobs on this cluster kept their marks.
    pub(super) marks_survive: bool,
    /// The jobs of all other runs.
    pub(super) claimed: &'a BTreeSet<String>,
    /// The names of the jobs that other runs may be submitting now.
    pub(super) contested: &'a BTreeSet<String>,
    /// How long the launcher is known to be over.
    pub(super) over_for: Duration,
    pub(super) now_ms: i64,
}

/// How long an accepted job may take to appear in the queue.
const SETTLE: Duration = Duration::from_secs(30);
/// How long the queue is trusted to remember a job that is over. The default of Slurm's MinJobAge is 300 s.
const REMEMBERED_MS: i64 = 240_000;
/// How long to wait for a launcher on another login node.
const ELSEWHERE_MS: i64 = 30 * 60_000;
/// The most attempts at launching a run.
const ATTEMPTS: u32 = 3;

/// Judges whether an attempt submitted jobs.
///
/// Another attempt is allowed only if this one certainly submitted no job: it was never started; or its launcher
/// ended and called the sbatch that marks jobs, marks survive on this cluster, and the queue or the accounting
/// answered and would list every marked job. Otherwise a job is searched for by its name.
pub(super) fn judge_attempt(run: &Run, report: &AttemptReport, known: LaunchEvidence) -> LaunchVerdict {
    let since_ms = known.now_ms - run.status.intended_ms;
    let code = match report.launcher {
        Launcher::Withheld => {
            return LaunchVerdict::NoJob { why: "the launcher was never started".into(), again: true };
        }
        Launcher::Running => return LaunchVerdict::Unknown,
        Launcher::Elsewhere if report.jobs.is_empty() && since_ms < ELSEWHERE_MS => {
            return LaunchVerdict::Unknown;
        }
        Launcher::Elsewhere | Launcher::Gone | Launcher::Removed => None,
        Launcher::Ended(code) => Some(code),
    };
    let mut jobs = if report.jobs.is_empty() { report.printed.clone() } else { report.jobs.clone() };
    let is_complete = !jobs.is_empty() && !report.in_doubt;
    let doubtful = report.in_doubt || report.may_pass || code.is_none();
    if is_complete {
        return LaunchVerdict::Jobs { jobs, by_name: false };
    }
    if doubtful && known.over_for < SETTLE {
        return LaunchVerdict::Unknown;
    }
    if jobs.is_empty() && !report.queue_asked && (doubtful || !report.noted) {
        return LaunchVerdict::Unknown;
    }
    let named = named_jobs(run, report, known.claimed);
    let lacking = run.plan.job_names.len().saturating_sub(jobs.len());
    let is_contested = run.plan.job_names.iter().any(|name| known.contested.contains(name));
    // Without the attempt's folder, the time at which it began is not known.
    let is_sure = report.launcher != Launcher::Removed && !is_contested;
    if (1..=lacking).contains(&named.len()) && is_sure {
        jobs.extend(named.iter().map(|job| job.id.clone()));
        return LaunchVerdict::Jobs { jobs, by_name: true };
    }
    if !jobs.is_empty() {
        return LaunchVerdict::Jobs { jobs, by_name: false };
    }
    let failed = match (report.launcher, code) {
        (Launcher::Removed, _) => {
            format!("its folder ~/.trainplan/runs/{} was removed from the cluster", run.id)
        }
        (Launcher::Elsewhere, _) => "its launcher was started on another login node".into(),
        (_, None) => "the launcher was killed".into(),
        (_, Some(0)) => {
            format!("the launcher succeeded, but none of its jobs was found. {}", last_words(&report.output))
        }
        (_, Some(code)) => {
            format!("the launcher failed with exit code {code}. {}", last_words(&report.output))
        }
    };
    let doubt = match () {
        () if !named.is_empty() => {
            let ids: Vec<&str> = named.iter().take(5).map(|job| job.id.as_str()).collect();
            Some(format!("Jobs of yours with its name were submitted since, such as {}", ids.join(", ")))
        }
        () if !doubtful => None,
        () if report.launcher == Launcher::Removed || report.launcher == Launcher::Elsewhere => {
            Some("Whether it submitted a job is unknown".into())
        }
        () if !report.noted => Some(
            "It did not call the sbatch in its PATH, which marks jobs, and no job with the run's name was \
             found"
                .into(),
        ),
        () if !known.marks_survive => Some(
            "Jobs were not seen to keep their marks on this cluster, and no job with the run's name was found"
                .into(),
        ),
        () if !report.accounting_asked && since_ms > REMEMBERED_MS => {
            Some("No job was found, but the queue no longer lists jobs that are over".into())
        }
        () => None,
    };
    match doubt {
        None => {
            let again = doubtful && code != Some(0) && run.status.attempt < ATTEMPTS;
            LaunchVerdict::NoJob { why: failed, again }
        }
        Some(doubt) => {
            let failed = failed.trim_end_matches('.');
            let why = format!(
                "{failed}. {doubt}. The run is not launched again, because that could submit it twice. Look \
                 at `squeue --me` on the cluster, cancel a job that belongs to this run, and start another \
                 round with `trainplan run`."
            );
            LaunchVerdict::NoJob { why, again: false }
        }
    }
}

/// Returns the jobs since the attempt began that have the names of a run's jobs, and belong to no other run. Release
/// scripts put the account before a name: `team-loop.NAME`.
fn named_jobs<'a>(run: &Run, report: &'a AttemptReport, claimed: &BTreeSet<String>) -> Vec<&'a NamedJob> {
    let is_name = |name: &str, wanted: &str| {
        let before = name.strip_suffix(wanted).filter(|_| !wanted.is_empty());
        before.is_some_and(|before| before.is_empty() || before.ends_with(['.', ':']))
    };
    let is_ours = |job: &&NamedJob| {
        !claimed.contains(&job.id) && run.plan.job_names.iter().any(|wanted| is_name(&job.name, wanted))
    };
    report.others.iter().filter(is_ours).collect()
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
    use crate::data::DataDir;
    use crate::journal::{Journal, Plan};

    fn run() -> Run {
        let mut plan = crate::journal::tests::plan("a");
        plan.job_names = vec!["train".into()];
        let status = RunStatus { phase: Phase::Intended, attempt: 1, ..RunStatus::default() };
        Run { id: "r".into(), round: "one".into(), plan, status }
    }

    /// Judges the answer of the remote script on a cluster where marks survive, `s` seconds after the launcher ended.
    fn judged(answer: &str, s: u64) -> LaunchVerdict {
        judged_where(answer, s, true, &[])
    }

    fn judged_where(answer: &str, s: u64, marks_survive: bool, contested: &[&str]) -> LaunchVerdict {
        let report = AttemptReport::read(answer.as_bytes(), "m", "trainplan:r/1");
        let known = LaunchEvidence {
            marks_survive,
            claimed: &BTreeSet::from(["9".to_string()]),
            contested: &contested.iter().map(ToString::to_string).collect(),
            over_for: Duration::from_secs(s),
            now_ms: s as i64 * 1000,
        };
        judge_attempt(&run(), &report, known)
    }

    fn jobs(ids: &[&str], by_name: bool) -> LaunchVerdict {
        LaunchVerdict::Jobs { jobs: ids.iter().map(ToString::to_string).collect(), by_name }
    }

    fn again(verdict: &LaunchVerdict) -> Option<bool> {
        match verdict {
            LaunchVerdict::NoJob { again, .. } => Some(*again),
            _ => None,
        }
    }

    #[tokio::test]
    async fn a_run_that_the_round_lacks_holds_no_other_up() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(Some(folder.path().into())).unwrap();
        let journal = Journal::open(&data).await.unwrap();
        let (before, status) = (vec!["b".to_string()], RunStatus::default());
        let plan = Plan { after: before.clone(), after_success: before, ..crate::journal::tests::plan("a") };
        let run = |plan| Run { id: "r".into(), round: "one".into(), plan, status: status.clone() };
        let mut runs = vec![LiveRun::take_up(&journal, run(plan)).await.unwrap()];
        assert_eq!(next(&runs, 0, 9, false), NextStep::Stage);
        runs.push(LiveRun::take_up(&journal, run(crate::journal::tests::plan("b"))).await.unwrap());
        assert_eq!(next(&runs, 0, 9, false), NextStep::Wait);
        runs[1].run.status.phase = Phase::Failed;
        assert!(matches!(next(&runs, 0, 9, false), NextStep::Fail { .. }));
    }

    const TIMED_OUT: &str = "m output\nsbatch: error: Socket timed out on send/recv operation\n";

    #[test]
    fn a_run_is_launched_again_only_if_certainly_no_job_was_submitted() {
        assert_eq!(judged("m running\nm job 1 1\n", 0), LaunchVerdict::Unknown);
        assert_eq!(judged("m code 1\nm job 1 1\n", 0), jobs(&["1"], false));
        assert_eq!(again(&judged("m withheld\n", 0)), Some(true));
        // sbatch refused the job: this is certain at once, and would happen again.
        assert_eq!(again(&judged("m code 1\nm refused 1\nm output\nInvalid account\n", 0)), Some(false));
        // sbatch was called, and its answer is lost.
        for answer in [
            "m killed\nm intent 1\nm asked squeue\n".to_string(),
            format!("m code 1\nm intent 1\nm asked squeue\n{TIMED_OUT}"),
        ] {
            assert_eq!(judged(&answer, 1), LaunchVerdict::Unknown);
            assert_eq!(again(&judged(&answer, 60)), Some(true), "{answer}");
            assert_eq!(again(&judged(&answer, 600)), Some(false), "the queue forgets jobs");
            let accounted = answer.replace("m asked squeue\n", "m asked squeue\nm asked sacct\n");
            assert_eq!(again(&judged(&accounted, 600)), Some(true));
            let mute = answer.replace("m asked squeue\n", "");
            assert_eq!(judged(&mute, 600), LaunchVerdict::Unknown, "the queue did not answer");
            // Nobody knows whether marks survive here.
            let unsure = judged_where(&accounted, 60, false, &[]);
            assert_eq!(again(&unsure), Some(false), "{unsure:?}");
            // It did not call the sbatch that marks jobs.
            let without = accounted.replace("m intent 1\n", "");
            assert_eq!(again(&judged(&without, 60)), Some(false), "{without}");
        }
        // Nothing is left to examine.
        assert_eq!(again(&judged("m removed\nm asked squeue\nm queued 7|1|train|\n", 60)), Some(false));
    }

    #[test]
    fn an_unmarked_job_is_found_by_its_name() {
        let found = |listed: &str, s| {
            let answer = format!("m code 1\nm asked squeue\nm asked sacct\n{listed}{TIMED_OUT}");
            judged(&answer, s)
        };
        assert_eq!(found("m queued 7|1|train|\n", 1), LaunchVerdict::Unknown);
        assert_eq!(found("m queued 7|1|train|\n", 60), jobs(&["7"], true));
        assert_eq!(found("m accounted 7|1|team-loop.train|site\n", 60), jobs(&["7"], true));
        // A job of another run, or with another name.
        for other in ["9|1|train|", "7|1|train|trainplan:x/1/1", "7|1|retrain|", "7|1|train2|"] {
            assert_eq!(again(&found(&format!("m queued {other}\n"), 60)), Some(false), "{other}");
        }
        // It may be the job of another run that is being launched.
        let answer = format!("m code 1\nm asked squeue\nm queued 7|1|train|\n{TIMED_OUT}");
        let contested = judged_where(&answer, 60, true, &["train"]);
        assert_eq!(again(&contested), Some(false), "{contested:?}");
        // Two could be meant: the person decides.
        let two = found("m queued 7|1|train|\nm queued 8|1|train|\n", 60);
        assert!(
            matches!(&two, LaunchVerdict::NoJob { why, again: false } if why.contains("7, 8")),
            "{two:?}"
        );
    }
}
