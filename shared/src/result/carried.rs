//! What a campaign records of a run beside its log.

use super::{Comparability, sentence};
use crate::estimate::Interval;
use crate::log::{FailureKind, Log, Status, clock_time};
use crate::units::significant;
use serde::{Deserialize, Serialize};

/// The most time that the steps of a log may take, as a multiple of the time that the job ran. Slurm's times are whole seconds.
pub const MOST_OF_JOB: f64 = 1.1;

/// A run of a campaign: its cluster, jobs, launch and prediction. It contains no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignRun {
    /// The campaign's name.
    pub campaign: String,
    /// The number of the round, from 1; none if an older program launched the run. Programs before this field ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The run's name in the campaign.
    pub run: String,
    /// The number of the repeat, from 1.
    pub repeat: u32,
    /// The name of the cluster's profile.
    pub cluster: String,
    /// Its jobs, the measured one first.
    pub jobs: Vec<SlurmJob>,
    /// How it was launched.
    pub launch: LaunchRecord,
    /// The prediction made before it started.
    pub plan: PredictionRecord,
}

impl CampaignRun {
    /// Returns a sentence about the attempts before this one; none if it is the first.
    pub(super) fn retry_note(&self) -> Option<String> {
        let job = self.jobs.first()?;
        let (attempt, attempts) = job.attempt.filter(|attempt| *attempt > 1).zip(job.attempts)?;
        let earlier = match attempt {
            2 => "The first one lost a node or was preempted.",
            _ => "The earlier ones lost a node or were preempted.",
        };
        Some(format!("This is attempt {attempt} of {attempts}. {earlier}"))
    }

    /// Returns a sentence if the steps of the log take longer than the measured job ran; none if they don't, or if its times are
    /// not known.
    pub(super) fn impossible_steps_note(&self, log: &Log) -> Option<String> {
        let ran_s = self.jobs.first()?.ran_s()?;
        let steps_s: f64 = log.steps.step_time_s.values(0..log.steps.len()).sum();
        // A restarted log may be that of several starts of the job.
        (log.restarts == 0 && steps_s > MOST_OF_JOB * ran_s).then(|| {
            format!(
                "The steps in the log take {} s in all, but the job ran for {} s. Check that the log is the job's own.",
                significant(steps_s, 3),
                significant(ran_s, 3)
            )
        })
    }

    /// Returns the status of a run without a score, and why it has none, from how its measured job ended. `status` and `reason` are
    /// what the log alone says. None if the job completed, or if the log says as much.
    pub(super) fn without_score(&self, log: &Log, status: Status, reason: &str) -> Option<(Status, String)> {
        let job = self.jobs.first().filter(|_| status != Status::Scored)?;
        let (ended, kind) = job.early_end()?;
        let is_unknown = job.state == UNKNOWN;
        let is_cancelled = kind == Some(FailureKind::Cancelled);
        let is_named = log.cause().is_some_and(|cause| is_unknown || Some(cause.kind) == kind);
        let after_steps =
            || sentence(&format!("{ended} after {} of {} steps", log.steps.len(), self.launch.steps));
        Some(match status {
            // The log alone could be that of a job that still runs.
            Status::Incomplete if !log.is_complete() && log.hang().is_none() => {
                let status = match is_cancelled {
                    true => Status::Cancelled,
                    false if is_unknown => status,
                    false => Status::Failed,
                };
                (status, after_steps())
            }
            Status::Cancelled if is_cancelled => (status, after_steps()),
            _ if is_named => return None,
            // Slurm knows better why the job was ended.
            Status::Cancelled => (Status::Failed, format!("{} {reason}", sentence(&ended))),
            _ => (status, format!("{} {reason}", sentence(&ended))),
        })
    }
}

/// Returns the name of a campaign's run, with the number of the round if that is known.
///
/// ```
/// use trainplan_shared::result::run_name;
///
/// assert_eq!(run_name("nightly", None, "llama-8b", 1), "nightly/llama-8b");
/// assert_eq!(run_name("nightly", Some(3), "llama-8b", 2), "nightly@3/llama-8b#2");
/// ```
#[must_use]
pub fn run_name(campaign: &str, round: Option<u32>, run: &str, repeat: u32) -> String {
    let round = round.map_or_else(String::new, |round| format!("@{round}"));
    let repeat = if repeat > 1 { format!("#{repeat}") } else { String::new() };
    format!("{campaign}{round}/{run}{repeat}")
}

/// A job of a run, as Slurm reports it. Times are RFC 3339 with the offset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlurmJob {
    /// Slurm's job id.
    pub id: String,
    /// The job's name.
    pub name: String,
    /// Slurm's final state, such as `COMPLETED`; `UNKNOWN` if Slurm no longer knew the job.
    pub state: String,
    /// The script's exit code, if known.
    pub exit_code: Option<i32>,
    /// When the job was submitted.
    pub submitted: Option<String>,
    /// When the job started.
    pub started: Option<String>,
    /// When the job ended.
    pub ended: Option<String>,
    /// The nodes, as Slurm lists them.
    pub nodes: Option<String>,
    /// Which attempt at the run it belongs to, from 1; none if the campaign allows no retries of the run. Programs before
    /// this field ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The most attempts that the campaign allows: the first one and the retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

/// The state of a job that Slurm no longer knew.
const UNKNOWN: &str = "UNKNOWN";

impl SlurmJob {
    /// Returns how the job ended, as a clause, and the failure by which its log may name that. None if it completed.
    #[must_use]
    pub fn early_end(&self) -> Option<(String, Option<FailureKind>)> {
        let (clause, kind) = match self.state.as_str() {
            "FAILED" => ("the job failed", None),
            "CANCELLED" => ("the job was cancelled", Some(FailureKind::Cancelled)),
            "TIMEOUT" => ("the job reached its time limit", Some(FailureKind::TimeLimit)),
            "NODE_FAIL" => ("the job lost a node", Some(FailureKind::NodeFailure)),
            "OUT_OF_MEMORY" => ("the job ran out of memory", None),
            "PREEMPTED" => ("the job was preempted", Some(FailureKind::Preempted)),
            UNKNOWN => ("the job ended (Slurm no longer knows how)", None),
            _ => return None,
        };
        let code = self.exit_code.filter(|_| self.state == "FAILED");
        let code = code.map_or_else(String::new, |code| format!(" with exit code {code}"));
        Some((format!("{clause}{code}"), kind))
    }

    /// Returns how long the job ran, in seconds; none if its start or its end is not known.
    fn ran_s(&self) -> Option<f64> {
        let at = |time: Option<&str>| clock_time(time.filter(|time| time.ends_with('Z'))?.as_bytes());
        let ran_s = at(self.ended.as_deref())?.checked_sub(at(self.started.as_deref())?)?;
        (ran_s > 0).then_some(ran_s as f64)
    }
}

/// The launch of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// The release whose scripts launched it, if any.
    pub release: Option<String>,
    /// The launch style.
    pub style: String,
    /// The SHA-256 of the submitted script without its secrets, in hexadecimal.
    pub script_sha256: String,
    /// The number of planned steps.
    pub steps: u32,
    /// Whether its result can be compared with the published number.
    pub comparable: Comparability,
}

/// The prediction for a run, as it was made at launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictionRecord {
    /// Seconds per step.
    pub step_time_s: Interval,
    /// The memory that a GPU needs.
    pub memory_bytes: f64,
    /// The memory that a GPU has.
    pub capacity_bytes: f64,
    /// The evidence behind the step time.
    pub basis: String,
    /// The program and its version, which determine the constants.
    pub calibration: String,
}

#[cfg(test)]
mod tests {
    use super::super::{Intake, Report, View};
    use super::*;
    use crate::spec::Spec;

    fn carried(jobs: Vec<SlurmJob>) -> CampaignRun {
        CampaignRun {
            campaign: "nightly".into(),
            round: None,
            run: "llama-8b".into(),
            repeat: 1,
            cluster: "alpha".into(),
            jobs,
            launch: LaunchRecord {
                release: None,
                style: "launch-sh".into(),
                script_sha256: "0".repeat(64),
                steps: 50,
                comparable: Comparability { yes: true, reasons: Vec::new() },
            },
            plan: PredictionRecord {
                step_time_s: Interval { low: 9.0, mid: 10.0, high: 11.0 },
                memory_bytes: 6e10,
                capacity_bytes: 8e10,
                basis: "published".into(),
                calibration: "here".into(),
            },
        }
    }

    #[test]
    fn a_job_without_retries_is_written_and_read_as_before() {
        let old = r#"{"id":"7","name":"a","state":"COMPLETED","exit_code":null,"submitted":null,"started":null,"ended":null,"nodes":null}"#;
        let job: SlurmJob = serde_json::from_str(old).unwrap();
        assert_eq!((job.attempt, job.attempts), (None, None));
        assert_eq!(serde_json::to_string(&job).unwrap(), old);
        let retried = SlurmJob { attempt: Some(2), attempts: Some(3), ..job };
        let text = serde_json::to_string(&retried).unwrap();
        assert!(text.ends_with(r#""attempt":2,"attempts":3}"#), "{text}");
        assert_eq!(serde_json::from_str::<SlurmJob>(&text).unwrap(), retried);
    }

    #[test]
    fn a_run_without_a_score_says_how_its_job_ended() {
        let told = |state: &str, end: &str| {
            let step = "Training epoch 0, iteration 31/49 | global_batch_size: 128 | global_step: 31 | \
                        train_step_timing in s: 9.4\n";
            let mut intake = Intake::new("log-a.pretrain_llama3.1_8b_fp8_8_7_0.out", &Spec::default());
            intake.feed(step.as_bytes());
            intake.feed(end.as_bytes());
            let run = intake.finish();
            let id = run.id;
            let job = SlurmJob { state: state.into(), exit_code: Some(7), ..SlurmJob::default() };
            let report = Report::of(&run.of_run(id, carried(vec![job])), &View::default());
            (report.status, report.reason.unwrap())
        };
        let line = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-20T12:00:00 ***\n";
        let cancelled = (Status::Cancelled, "The job was cancelled after 1 of 50 steps.".to_owned());
        // Whether or not its log has the line that says so.
        assert_eq!(told("CANCELLED", ""), cancelled);
        assert_eq!(told("CANCELLED", line), cancelled);
        let failed = "The job failed with exit code 7 after 1 of 50 steps.";
        assert_eq!(told("FAILED", ""), (Status::Failed, failed.into()));
        let unknown = "The job ended (Slurm no longer knows how) after 1 of 50 steps.";
        assert_eq!(told("UNKNOWN", ""), (Status::Incomplete, unknown.into()));
        let (status, reason) = told("UNKNOWN", line);
        assert_eq!(status, Status::Cancelled);
        assert!(reason.starts_with("The log ends at step 31 of "), "{reason}");
        let (status, reason) = told("PREEMPTED", line);
        assert_eq!(status, Status::Failed);
        assert!(reason.starts_with("The job was preempted. The log ends at step 31 of "), "{reason}");
        let limit = line.replace(" ***\n", " DUE TO TIME LIMIT ***\n");
        let (status, reason) = told("TIMEOUT", &limit);
        assert_eq!(status, Status::Failed);
        assert!(reason.contains("the job hit its time limit (line 2). Request more time"), "{reason}");
        // Of a job that completed, and of one that an older program described, the log says more.
        for state in ["COMPLETED", ""] {
            assert_eq!(told(state, "").0, Status::Incomplete, "{state}");
        }
    }

    #[test]
    fn a_report_says_which_attempt_it_is() {
        let note = |attempt, attempts| {
            let run = Intake::new("x.out", &Spec::default()).finish();
            let job = SlurmJob { attempt, attempts, ..SlurmJob::default() };
            let id = run.id;
            let report = Report::of(&run.of_run(id, carried(vec![job])), &View::default());
            report.notes.into_iter().find(|note| note.contains("attempt"))
        };
        let second = "This is attempt 2 of 3. The first one lost a node or was preempted.";
        assert_eq!(note(Some(2), Some(3)).as_deref(), Some(second));
        let third = "This is attempt 3 of 3. The earlier ones lost a node or were preempted.";
        assert_eq!(note(Some(3), Some(3)).as_deref(), Some(third));
        assert_eq!((note(Some(1), Some(3)), note(None, None)), (None, None));
        assert_eq!(carried(Vec::new()).retry_note(), None);
    }

    #[test]
    fn steps_that_take_longer_than_the_job_are_noted() {
        let note = |started: &str, ended: &str| {
            let mut intake = Intake::new("x.out", &Spec::default());
            for step in 0..50 {
                let line =
                    format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: 12.0 |\n");
                intake.feed(line.as_bytes());
            }
            let run = intake.finish();
            let [started, ended] = [started, ended].map(|time| Some(format!("2026-11-28T{time}")));
            let (id, job) = (run.id, SlurmJob { started, ended, ..SlurmJob::default() });
            let report = Report::of(&run.of_run(id, carried(vec![job])), &View::default());
            report.notes.into_iter().find(|note| note.contains("job ran"))
        };
        // The steps take 600 s.
        let told = "The steps in the log take 600 s in all, but the job ran for 20 s. Check that the log is the job's own.";
        assert_eq!(note("12:00:00Z", "12:00:20Z").as_deref(), Some(told));
        assert!(note("12:00:00Z", "12:09:00Z").is_some());
        for (started, ended) in [
            ("12:00:00Z", "12:11:00Z"),
            // Within the rounding of Slurm's times.
            ("12:00:00Z", "12:09:30Z"),
            ("12:00:00Z", "12:00:00Z"),
            ("12:00:00+01:00", "12:00:20Z"),
            ("12:00:00Z", "soon"),
        ] {
            assert_eq!(note(started, ended), None, "{started} {ended}");
        }
    }
}
