//! What a store accepts of a result: every text and list has a maximum, and every figure makes sense.

mod file;
mod maxima;
mod times;

pub use file::{DEEPEST, FileParts, LONGEST_TEXT, UNKNOWN_BYTES, admit_file, count_parts};
pub(crate) use maxima::MOST_JOBS;
pub use maxima::{LONGEST_NAME, LONGEST_PATH, LONGEST_SCENARIO, MAXIMA, Maximum};
pub(crate) use times::{TIME, is_time};

use super::{Comparability, RunResult, SlurmJob, id_of_log};
use crate::estimate::Interval;
use crate::log::{FIGURES, Failure, STEP_TIMES};
use crate::units::group_digits;
use maxima::jobs;
use std::borrow::Cow;
use std::ops::Range;
use thiserror::Error;

/// A result that a store does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} {what}.")]
pub struct InvalidResult {
    /// The field's path in the result file.
    pub field: Cow<'static, str>,
    /// What is wrong with it, as the rest of a sentence.
    pub what: String,
}

/// Checks a result before a store accepts it.
///
/// # Errors
/// A text or list exceeds its maximum, a figure is not finite or not possible, a hash is not one, or a run is comparable despite
/// reasons against it.
pub fn admit(run: &RunResult) -> Result<(), InvalidResult> {
    for maximum in MAXIMA {
        let (size, Maximum { field, most, unit, .. }) = ((maximum.size)(run), maximum);
        if size > *most {
            let (size, most) = (group_digits(size as f64), group_digits(*most as f64));
            return Err(InvalidResult {
                field: (*field).into(),
                what: format!("has {size} {unit}; at most {most} are accepted"),
            });
        }
    }
    let refuse =
        |field: &'static str, what: &str| Err(InvalidResult { field: field.into(), what: what.to_owned() });
    let is_hash =
        |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hash(&run.source.sha256) {
        return refuse("source.sha256", "must be 64 hexadecimal digits in lower case");
    }
    // Otherwise, another result could take the id of a log or of an unfinished run, whose own result would be refused.
    let may_differ = run.carried.is_some() && run.id.get_version_num() != LOG_ID_VERSION;
    if !may_differ && id_of_log(&run.source.sha256) != Some(run.id) {
        return refuse(
            "id",
            "must be that of the log, a UUID of version 8 that follows from source.sha256; only a run of a campaign has \
             another one, of another version",
        );
    }
    for (field, at) in
        [("source.written_at", &run.source.written_at), ("source.began_at", &run.source.began_at)]
    {
        if at.as_ref().is_some_and(|at| !is_time(at)) {
            return refuse(field, TIME);
        }
    }
    if !is_consistent(&run.comparable) {
        return refuse("comparable.yes", "must be true without comparable.reasons, and false with them");
    }
    let steps = &run.log.steps;
    let all = 0..steps.len();
    if steps.step_time_s.values(all.clone()).any(|seconds| !STEP_TIMES.contains(&seconds)) {
        return refuse("log.steps.step_time_s", STEP_TIME);
    }
    for (field, column) in [
        ("log.steps.tflops_per_gpu", &steps.tflops_per_gpu),
        ("log.steps.tokens_per_s_per_gpu", &steps.tokens_per_s_per_gpu),
        ("log.steps.mfu", &steps.mfu),
    ] {
        if column.values(all.clone()).any(|figure| !FIGURES.contains(&figure)) {
            return refuse(field, "must be at least 0 and less than 1e24");
        }
    }
    for (field, column) in [
        ("log.steps.memory_peak_bytes", &steps.memory_peak_bytes),
        ("log.steps.memory_allocated_bytes", &steps.memory_allocated_bytes),
        ("log.steps.consumed_samples", &steps.consumed_samples),
        ("log.steps.global_batch_size", &steps.global_batch_size),
    ] {
        if !column.values(all.clone()).all(is_amount) {
            return refuse(field, AMOUNT);
        }
    }
    let mut durations = run.log.checkpoints.iter().filter_map(|checkpoint| checkpoint.duration_s);
    if !durations.all(|seconds| DURATIONS.contains(&seconds)) {
        return refuse("log.checkpoints[].duration_s", DURATION);
    }
    let mut idle = run.job.parts.iter().filter_map(|part| part.idle_s);
    if !idle.all(|seconds| DURATIONS.contains(&seconds)) {
        return refuse("job.parts[].idle_s", DURATION);
    }
    for (field, count) in [
        ("log.bytes", run.log.bytes),
        ("log.lines", run.log.lines),
        ("log.duplicates", run.log.duplicates),
        ("log.restarts", run.log.restarts),
        ("log.pause.seconds", run.log.pause.map_or(0, |pause| pause.seconds)),
        ("log.harmless", run.log.harmless),
        ("log.failures[] (counts and offsets)", largest_count(&run.log.failures)),
        ("job.failures[] (counts and offsets)", largest_count(&run.job.failures)),
    ] {
        if count > LARGEST_COUNT {
            return refuse(field, "must be at most 9,007,199,254,740,992");
        }
    }
    let Some(carried) = &run.carried else { return Ok(()) };
    if !is_hash(&carried.launch.script_sha256) {
        return refuse("carried.launch.script_sha256", "must be 64 hexadecimal digits in lower case");
    }
    if !is_consistent(&carried.launch.comparable) {
        return refuse(
            "carried.launch.comparable.yes",
            "must be true without carried.launch.comparable.reasons, and false with them",
        );
    }
    let Interval { low, mid, high } = carried.plan.step_time_s;
    if ![low, mid, high].iter().all(|seconds| STEP_TIMES.contains(seconds)) || low > mid || mid > high {
        return refuse("carried.plan.step_time_s", "must be positive seconds with low ≤ mid ≤ high");
    }
    if carried.repeat == 0 {
        return refuse("carried.repeat", "must be at least 1");
    }
    if carried.round == Some(0) {
        return refuse("carried.round", "must be at least 1");
    }
    let is_counted = |job: &SlurmJob| match (job.attempt, job.attempts) {
        (None, None) => true,
        (Some(attempt), Some(attempts)) => (1..=attempts).contains(&attempt),
        _ => false,
    };
    if !jobs(run).all(is_counted) {
        return refuse("carried.jobs[].attempt", "must be from 1 to carried.jobs[].attempts");
    }
    // It becomes the time at which the run ran.
    if carried.jobs.first().and_then(|job| job.started.as_ref()).is_some_and(|at| !is_time(at)) {
        return refuse("carried.jobs[].started", TIME);
    }
    for (field, bytes) in [
        ("carried.plan.memory_bytes", carried.plan.memory_bytes),
        ("carried.plan.capacity_bytes", carried.plan.capacity_bytes),
    ] {
        if !is_amount(bytes) {
            return refuse(field, AMOUNT);
        }
    }
    Ok(())
}

/// What a step time must be.
pub(crate) const STEP_TIME: &str = "must be at least 0.000001 and less than 1,000,000,000 seconds";

/// The version of the UUIDs that follow from logs ([`id_of_log`]).
const LOG_ID_VERSION: usize = 8;

/// The largest accepted count or offset: JSON numbers are exact up to 2^53.
const LARGEST_COUNT: u64 = 1 << 53;

/// The seconds that saving a checkpoint, or a pause between two logs, can take.
const DURATIONS: Range<f64> = 0.0..1e9;

/// What a duration must be.
const DURATION: &str = "must be at least 0 and less than 1,000,000,000 seconds";

/// What a number of bytes or samples must be.
const AMOUNT: &str = "must be 0, or at least 1 and less than 1e24";

/// Returns whether a figure can be a number of bytes or samples.
fn is_amount(figure: f64) -> bool {
    FIGURES.contains(&figure) && (figure == 0.0 || figure >= 1.0)
}

/// Returns whether exactly the runs that can't be compared have a reason, because lists rely on the reasons.
fn is_consistent(comparable: &Comparability) -> bool {
    comparable.yes == comparable.reasons.is_empty()
}

/// Returns the largest number in a list of failures.
fn largest_count(failures: &[Failure]) -> u64 {
    let all = failures.iter().flat_map(|one| [one.count, one.line, one.offset, one.last_offset]);
    all.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{MOST_CALL_KINDS, Nccl, NcclCallKind, NcclCalls, NcclOperation};
    use crate::result::{CampaignRun, Intake};
    use crate::spec::Spec;
    use uuid::Uuid;

    #[test]
    fn only_the_result_of_a_log_has_the_id_of_the_log() {
        let mut run = Intake::new("x.out", &Spec::default()).finish();
        assert_eq!(admit(&run), Ok(()));
        run.source.sha256 = "0".repeat(64);
        assert_eq!(admit(&run).unwrap_err().field, "id");
        assert_eq!(admit(&run.clone().of_run(run.id, carried_out())).unwrap_err().field, "id");
        run.id = Uuid::nil();
        assert_eq!(admit(&run).unwrap_err().field, "id");
        assert_eq!(admit(&run.of_run(Uuid::nil(), carried_out())), Ok(()));
    }

    #[test]
    fn the_result_of_a_log_with_impossible_figures_is_admitted_without_them() {
        let mut intake = Intake::new("x.out", &Spec::default());
        for (step, time) in [(0, "0.0"), (1, "1e-9"), (2, "-3"), (3, "1e12"), (4, "12.5")] {
            let line = format!(
                "Training epoch 0, iteration {step}/4 | global_batch_size: -1e30 | global_step: {step} | \
                 reduced_train_loss: 11.0 | train_step_timing in s: {time} | consumed_samples: -7\n"
            );
            intake.feed(line.as_bytes());
        }
        let run = intake.finish();
        assert_eq!(admit(&run), Ok(()));
        let steps = &run.log.steps;
        assert_eq!(steps.step_time_s.values(0..steps.len()).collect::<Vec<_>>(), [12.5]);
    }

    fn carried_out() -> CampaignRun {
        serde_json::from_value(serde_json::json!({
            "campaign": "nightly", "run": "llama-8b", "repeat": 1, "cluster": "alpha", "jobs": [],
            "launch": {
                "release": null, "style": "launch-sh", "script_sha256": "0".repeat(64), "steps": 50,
                "comparable": { "yes": true, "reasons": [] }
            },
            "plan": {
                "step_time_s": { "low": 9.0, "mid": 10.0, "high": 11.0 }, "memory_bytes": 6e10,
                "capacity_bytes": 8e10, "basis": "published", "calibration": "here"
            }
        }))
        .unwrap()
    }

    #[test]
    fn a_result_at_its_limits_is_admitted_and_one_beyond_is_not() {
        let mut run = Intake::new("x.out", &Spec::default()).finish();
        run.source.path = "x".repeat(LONGEST_PATH);
        assert_eq!(admit(&run), Ok(()));
        run.source.path.push('x');
        let error = admit(&run).unwrap_err().to_string();
        assert_eq!(error, "source.path has 4,097 bytes; at most 4,096 are accepted.");
        run.source.path.clear();
        let kind = NcclCallKind { operation: NcclOperation::Send, up_to_bytes: 1, count: 1, bytes: 1 };
        for (kinds, is_admitted) in [(MOST_CALL_KINDS, true), (MOST_CALL_KINDS + 1, false)] {
            let calls = NcclCalls { kinds: vec![kind; kinds], ..NcclCalls::default() };
            let mut run = run.clone();
            run.log.nccl = Some(Nccl { calls: Some(calls), ..Nccl::default() });
            assert_eq!(admit(&run).is_ok(), is_admitted, "{kinds} kinds of calls");
        }
        let job = |attempt, attempts| SlurmJob { attempt, attempts, ..SlurmJob::default() };
        for (attempt, attempts, is_admitted) in
            [(None, None, true), (Some(2), Some(3), true), (Some(4), Some(3), false), (Some(1), None, false)]
        {
            let carried = CampaignRun { jobs: vec![job(attempt, attempts)], ..carried_out() };
            let run = run.clone().of_run(run.id, carried);
            assert_eq!(admit(&run).is_ok(), is_admitted, "{attempt:?} of {attempts:?}");
        }
        for (at, is_admitted) in [
            ("2026-11-21T12:00:00Z", true),
            ("2024-02-29T23:59:59.123456Z", true),
            ("2026-11-21T12:00:00+01:00", true),
            ("1970-01-01T00:00:00Z", true),
            ("2199-12-31T23:59:59Z", true),
            ("2199-12-31T23:59:59-00:00", true),
            ("2199-12-31T23:58:59-00:01", true),
            ("2200-01-01T00:00:00+00:01", true),
            ("1970-01-01T14:00:00+14:00", true),
            ("1969-12-31T12:00:00-12:00", true),
            ("2199-12-31T23:59:59-23:59", false),
            ("2199-12-31T23:59:59-00:01", false),
            ("2200-01-01T00:00:00Z", false),
            ("2200-01-01T00:01:00+00:01", false),
            ("1970-01-01T00:00:00+14:00", false),
            ("1970-01-01T13:59:59+14:00", false),
            ("1969-12-31T11:59:59-12:00", false),
            ("0000-01-01T00:00:00+23:59", false),
            ("2026-11-21T12:00:00+24:00", false),
            ("2026-11-21T12:00:00+01:60", false),
            ("yesterday", false),
            ("", false),
            ("9999-12-31T23:59:59Z", false),
            ("2023-02-29T12:00:00Z", false),
            ("2026-13-01T12:00:00Z", false),
            ("2026-11-21T24:00:00Z", false),
            ("2026-11-21T12:00:00", false),
            ("2026-11-21T12:00:00.Z", false),
            ("2026-11-21T12:00:00ZZ", false),
            ("2026-11-21 12:00:00Z", false),
        ] {
            run.source.written_at = Some(at.into());
            assert_eq!(admit(&run).is_ok(), is_admitted, "{at}");
        }
        run.source.written_at = None;
        run.source.sha256 = run.source.sha256.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A");
        assert_eq!(admit(&run).unwrap_err().field, "source.sha256");
    }
}
