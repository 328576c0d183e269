//! What a store accepts of a result: every text and list has a maximum, and every figure makes sense.

use super::{CampaignRun, RunResult, SlurmJob};
use crate::estimate::Interval;
use crate::field::Field;
use crate::log::{FIGURES, STEP_TIMES};
use crate::units::group_digits;
use thiserror::Error;

/// The most bytes of a name, such as a campaign's.
pub const LONGEST_NAME: usize = 200;

/// The most bytes of a path or of a scenario's field.
pub const LONGEST_PATH: usize = 4096;

/// The most bytes of a sentence or of a list of nodes.
const LONGEST_SENTENCE: usize = 8192;

/// The most bytes of a whole scenario: of all its fields, or as the query of a share link.
pub const LONGEST_SCENARIO: usize = 16_384;

/// A result that a store does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} {what}.")]
pub struct InvalidResult {
    /// The field's path in the result file.
    pub field: &'static str,
    /// What is wrong with it, as the rest of a sentence.
    pub what: String,
}

/// The largest accepted size of a field of a result.
#[derive(Debug)]
pub struct Maximum {
    /// The field's path in the result file.
    pub field: &'static str,
    /// The largest size.
    pub most: usize,
    /// What is counted: bytes, or the items of a list.
    pub unit: &'static str,
    /// Returns the largest size in a result.
    size: fn(&RunResult) -> usize,
}

macro_rules! maxima {
    ($($field:literal: $most:expr, $unit:literal, $size:expr;)+) => {
        &[$(Maximum { field: $field, most: $most, unit: $unit, size: $size }),+]
    };
}

/// The largest accepted size of each text and list of a result.
pub const MAXIMA: &[Maximum] = maxima! {
    "source.path": LONGEST_PATH, "bytes", |run| run.source.path.len();
    "source.written_at": LONGEST_NAME, "bytes", |run| longest(&run.source.written_at);
    "name.experiment": LONGEST_PATH, "bytes", |run| run.name.experiment.len();
    "name.model": LONGEST_NAME, "bytes", |run| longest(&run.name.model);
    "name.size": LONGEST_NAME, "bytes", |run| longest(&run.name.size);
    "name.dtype": LONGEST_NAME, "bytes", |run| longest(&run.name.dtype);
    "identity.scenario.recipe": LONGEST_NAME, "bytes", |run| {
        run.identity.scenario.get(Field::Recipe).map_or(0, str::len)
    };
    "identity.scenario": LONGEST_SCENARIO, "bytes", |run| {
        run.identity.scenario.iter().map(|(_, text)| text.len()).sum()
    };
    "identity.doubts": 100, "items", |run| run.identity.doubts.len();
    "identity.doubts[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.identity.doubts);
    "identity.conflicts": 100, "items", |run| run.identity.conflicts.len();
    "identity.conflicts[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.identity.conflicts);
    "comparable.reasons": 100, "items", |run| run.comparable.reasons.len();
    "comparable.reasons[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.comparable.reasons);
    "log.steps.label": 1_000_000, "items", |run| run.log.steps.len();
    "log.not_finite": 10, "items", |run| run.log.not_finite.len();
    "log.checkpoints": 100_000, "items", |run| run.log.checkpoints.len();
    "log.failures": 1000, "items", |run| run.log.failures.len();
    "log.failures[].ranks": 1000, "items", |run| {
        run.log.failures.iter().map(|failure| failure.ranks.len()).max().unwrap_or_default()
    };
    "log.failures[].text": LONGEST_SENTENCE, "bytes", |run| {
        longest(run.log.failures.iter().map(|failure| &failure.text))
    };
    "job.parts": 1000, "items", |run| run.job.parts.len();
    "job.parts[].name": LONGEST_NAME, "bytes", |run| longest(run.job.parts.iter().map(|part| &part.name));
    "job.failures": 1000, "items", |run| run.job.failures.len();
    "job.failures[].ranks": 1000, "items", |run| {
        run.job.failures.iter().map(|failure| failure.ranks.len()).max().unwrap_or_default()
    };
    "job.failures[].text": LONGEST_SENTENCE, "bytes", |run| {
        longest(run.job.failures.iter().map(|failure| &failure.text))
    };
    "job.failures[].file": LONGEST_NAME, "bytes", |run| {
        longest(run.job.failures.iter().filter_map(|failure| failure.file.as_ref()))
    };
    "log.arguments": 2000, "items", |run| run.log.arguments.iter().count();
    "log.arguments (names)": LONGEST_NAME, "bytes", |run| {
        longest(run.log.arguments.iter().map(|(name, _)| name))
    };
    "log.arguments (values)": LONGEST_PATH, "bytes", |run| {
        longest(run.log.arguments.iter().map(|(_, value)| value))
    };
    "provenance.program": LONGEST_NAME, "bytes", |run| run.provenance.program.len();
    "provenance.scored_at": LONGEST_NAME, "bytes", |run| longest(&run.provenance.scored_at);
    "carried.campaign": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.campaign));
    "carried.run": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.run));
    "carried.cluster": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.cluster));
    "carried.jobs": 1000, "items", |run| jobs(run).count();
    "carried.jobs[].id": LONGEST_NAME, "bytes", |run| longest(jobs(run).map(|job| &job.id));
    "carried.jobs[].name": LONGEST_NAME, "bytes", |run| longest(jobs(run).map(|job| &job.name));
    "carried.jobs[].state": LONGEST_NAME, "bytes", |run| longest(jobs(run).map(|job| &job.state));
    "carried.jobs[].submitted": LONGEST_NAME, "bytes", |run| longest(jobs(run).filter_map(|job| job.submitted.as_ref()));
    "carried.jobs[].started": LONGEST_NAME, "bytes", |run| longest(jobs(run).filter_map(|job| job.started.as_ref()));
    "carried.jobs[].ended": LONGEST_NAME, "bytes", |run| longest(jobs(run).filter_map(|job| job.ended.as_ref()));
    "carried.jobs[].nodes": LONGEST_SENTENCE, "bytes", |run| longest(jobs(run).filter_map(|job| job.nodes.as_ref()));
    "carried.launch.release": LONGEST_NAME, "bytes", |run| {
        longest(carried(run).and_then(|carried| carried.launch.release.as_ref()))
    };
    "carried.launch.style": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.launch.style));
    "carried.launch.comparable.reasons": 100, "items", |run| launch_reasons(run).count();
    "carried.launch.comparable.reasons[]": LONGEST_SENTENCE, "bytes", |run| longest(launch_reasons(run));
    "carried.plan.basis": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.plan.basis));
    "carried.plan.calibration": LONGEST_NAME, "bytes", |run| {
        longest(carried(run).map(|carried| &carried.plan.calibration))
    };
};

/// Checks a result before a store accepts it.
///
/// # Errors
/// A text or list exceeds its maximum, a figure is not finite or not possible, or a hash is not one.
pub fn admit(run: &RunResult) -> Result<(), InvalidResult> {
    for maximum in MAXIMA {
        let (size, Maximum { field, most, unit, .. }) = ((maximum.size)(run), maximum);
        if size > *most {
            let (size, most) = (group_digits(size as f64), group_digits(*most as f64));
            return Err(InvalidResult {
                field,
                what: format!("has {size} {unit}; at most {most} are accepted"),
            });
        }
    }
    let refuse = |field, what: &str| Err(InvalidResult { field, what: what.to_owned() });
    let is_hash =
        |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hash(&run.source.sha256) {
        return refuse("source.sha256", "must be 64 hexadecimal digits in lower case");
    }
    let steps = &run.log.steps;
    let all = 0..steps.len();
    if steps.step_time_s.values(all.clone()).any(|seconds| !STEP_TIMES.contains(&seconds)) {
        return refuse("log.steps.step_time_s", "must be from 0.000001 to 1,000,000,000 seconds");
    }
    for (field, column) in [
        ("log.steps.tflops_per_gpu", &steps.tflops_per_gpu),
        ("log.steps.tokens_per_s_per_gpu", &steps.tokens_per_s_per_gpu),
        ("log.steps.memory_peak_bytes", &steps.memory_peak_bytes),
        ("log.steps.memory_allocated_bytes", &steps.memory_allocated_bytes),
        ("log.steps.consumed_samples", &steps.consumed_samples),
        ("log.steps.global_batch_size", &steps.global_batch_size),
    ] {
        if column.values(all.clone()).any(|figure| !FIGURES.contains(&figure)) {
            return refuse(field, "must be from 0 to 1e24");
        }
    }
    let Some(carried) = &run.carried else { return Ok(()) };
    if !is_hash(&carried.launch.script_sha256) {
        return refuse("carried.launch.script_sha256", "must be 64 hexadecimal digits in lower case");
    }
    let Interval { low, mid, high } = carried.plan.step_time_s;
    if ![low, mid, high].iter().all(|seconds| STEP_TIMES.contains(seconds)) || low > mid || mid > high {
        return refuse("carried.plan.step_time_s", "must be positive seconds with low ≤ mid ≤ high");
    }
    let is_counted = |job: &SlurmJob| match (job.attempt, job.attempts) {
        (None, None) => true,
        (Some(attempt), Some(attempts)) => (1..=attempts).contains(&attempt),
        _ => false,
    };
    if !jobs(run).all(is_counted) {
        return refuse("carried.jobs[].attempt", "must be from 1 to carried.jobs[].attempts");
    }
    for (field, bytes) in [
        ("carried.plan.memory_bytes", carried.plan.memory_bytes),
        ("carried.plan.capacity_bytes", carried.plan.capacity_bytes),
    ] {
        if !FIGURES.contains(&bytes) {
            return refuse(field, "must be from 0 to 1e24");
        }
    }
    Ok(())
}

fn carried(run: &RunResult) -> Option<&CampaignRun> {
    run.carried.as_ref()
}

fn jobs(run: &RunResult) -> impl Iterator<Item = &SlurmJob> {
    carried(run).into_iter().flat_map(|carried| &carried.jobs)
}

fn launch_reasons(run: &RunResult) -> impl Iterator<Item = &String> {
    carried(run).into_iter().flat_map(|carried| &carried.launch.comparable.reasons)
}

/// Returns the bytes of the longest text.
fn longest<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> usize {
    texts.into_iter().map(|text| text.as_ref().len()).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Intake;
    use crate::spec::Spec;

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
        let job = |attempt, attempts| SlurmJob { attempt, attempts, ..SlurmJob::default() };
        for (attempt, attempts, is_admitted) in
            [(None, None, true), (Some(2), Some(3), true), (Some(4), Some(3), false), (Some(1), None, false)]
        {
            let carried = CampaignRun { jobs: vec![job(attempt, attempts)], ..carried_out() };
            let run = run.clone().of_run(run.id, carried);
            assert_eq!(admit(&run).is_ok(), is_admitted, "{attempt:?} of {attempts:?}");
        }
        run.source.sha256 = run.source.sha256.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A");
        assert_eq!(admit(&run).unwrap_err().field, "source.sha256");
    }
}
