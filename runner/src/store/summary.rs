//! Summaries of results, for lists.

use super::time;
use jiff::{SignedDuration, Timestamp};
use trainplan_shared::api::RunSummary;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::log::Status;
use trainplan_shared::result::{Report, RunResult, View, sentence};
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;

/// The longest reason of a run without a comparable step time, in bytes.
pub(super) const LONGEST_REASON: usize = 1000;

/// The longest text of a scenario in doubt that lists show, in bytes: an own model with all its fields is shorter. Filters with `*` are
/// compared with every such text.
const LONGEST_IN_DOUBT: usize = 1024;

/// How far a run's time may be ahead of the time at which it was received: logs have local times, which are taken as UTC.
const AHEAD: SignedDuration = SignedDuration::from_hours(24);

/// Returns the summary of a run that the store received at this time.
pub(super) fn summary(run: &RunResult, received_at: String, has_log: bool) -> RunSummary {
    let report = Report::of(run, &View::default());
    let scenario = report.scenario.scenario().ok();
    // PostgreSQL accepts no NUL in a text.
    let text = |text: &str| text.replace('\0', "\u{fffd}");
    // Where parts of the scenario are in doubt, single fields may still be known.
    let known = |field: Field, of: fn(&Scenario) -> String| {
        let in_doubt = || report.scenario.get(field).filter(|text| text.len() <= LONGEST_IN_DOUBT);
        let known = scenario.as_ref().map(of).or_else(|| in_doubt().map(str::to_owned));
        known.map(|known| text(&known))
    };
    let carried = run.carried.as_ref();
    let job = carried.and_then(|carried| carried.jobs.first());
    let reason = reason(&report).map(|reason| shortened(text(&reason)));
    RunSummary {
        id: run.id.to_string(),
        ran_at: ran_at(run, &received_at).unwrap_or_else(|| received_at.clone()),
        received_at,
        model: known(Field::Model, |scenario| scenario.model.id.clone()),
        gpu: known(Field::Gpu, |scenario| scenario.gpu.id.clone()),
        gpus: known(Field::Gpus, |scenario| scenario.layout.gpus().to_string())
            .and_then(|gpus| gpus.parse::<u32>().ok())
            .filter(|gpus| *gpus > 0),
        dtype: known(Field::Dtype, |scenario| scenario.dtype.id().to_owned()),
        path: text(&report.path),
        campaign: carried.map(|carried| text(&carried.campaign)),
        round: carried.and_then(|carried| carried.round),
        run: carried.map(|carried| text(&carried.run)),
        repeat: carried.map(|carried| carried.repeat),
        attempt: job.and_then(|job| job.attempt),
        attempts: job.and_then(|job| job.attempts),
        job: job.and_then(|job| number(&job.id)).or(run.name.job_id),
        cluster: run.cluster().map(text),
        line: scenario.is_some().then(|| link::write(&work(&report.scenario))),
        recipe: report.recipe,
        status: report.status,
        ending: report.ending,
        step_time_s: report.step_time_s,
        judged_s: report.judged_s,
        steady_mean_s: report.steady.map(|steady| steady.mean_s),
        tokens_per_s: report.tokens_per_s,
        mfu: report.mfu,
        convention: report.convention,
        baseline: report.baseline,
        plan: report.plan,
        prediction: report.prediction,
        comparable: report.comparable.yes,
        reason,
        parser_version: run.provenance.parser_version,
        has_log,
        log_fault: None,
        result_fault: None,
    }
}

/// Returns sentences that say why a run has no comparable step time; none if it has one.
fn reason(report: &Report) -> Option<String> {
    let sentences: Vec<String> = match report.status {
        Status::Scored => report.comparable.reasons.iter().map(|reason| sentence(reason)).collect(),
        _ => report.reason.clone().into_iter().collect(),
    };
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Returns a text with at most [`LONGEST_REASON`] bytes; an ellipsis replaces what is left out.
fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_REASON {
        text.truncate(text.floor_char_boundary(LONGEST_REASON - '…'.len_utf8()));
        text.push('…');
    }
    text
}

/// Returns the number at the start of a job's id, such as that of `71_3`, a task of an array.
fn number(job: &str) -> Option<u64> {
    job.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the fields that describe what was run: account, partition, time limit and other fields of its launch don't
/// change the work.
fn work(scenario: &Spec) -> Spec {
    let of_work = scenario.iter().filter(|(field, _)| field.is_of_scenario());
    of_work.fold(Spec::default(), |spec, (field, text)| spec.with(field, text))
}

/// Returns when the run began, or else when its log was last written. None if that is too far [`AHEAD`] of the time at which it was
/// received: the run would stay the newest of its time line, and later ones would not be judged.
fn ran_at(run: &RunResult, received_at: &str) -> Option<String> {
    let (at, _) = run.ran_at()?;
    let at: Timestamp = at.parse().ok()?;
    let latest = received_at.parse::<Timestamp>().ok()?.checked_add(AHEAD).ok()?;
    (at <= latest).then(|| time(at))
}

#[cfg(test)]
mod tests {
    use super::super::blobs::hex;
    use super::super::columns::SUMMARY_VERSION;
    use super::{LONGEST_REASON, number, shortened, summary};
    use sha2::{Digest, Sha256};
    use trainplan_shared::catalog::Catalog;
    use trainplan_shared::estimate::{Estimate, Interval};
    use trainplan_shared::field::Field;
    use trainplan_shared::result::{Comparability, Intake, RunResult};
    use trainplan_shared::spec::Spec;

    #[test]
    fn a_run_without_a_comparable_step_time_has_a_reason() {
        let run = |first_loss: &str| {
            let line = |step| {
                let loss = if step == 0 { first_loss } else { "11.0" };
                format!(
                    "Training epoch 0, iteration {step}/49 | lr: 0.0001 | global_batch_size: 128 | global_step: {step} | \
                     reduced_train_loss: {loss} | train_step_timing in s: 9.4 |\n"
                )
            };
            let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_8_4711_0.out", &Spec::default());
            intake.feed((0..50).map(line).collect::<String>().as_bytes());
            intake.finish()
        };
        let of = |run: &RunResult| summary(run, "2026-05-10T10:00:00.000000Z".into(), false);
        let mut scored = run("11.0");
        assert_eq!((of(&scored).reason, of(&scored).job), (None, Some(4711)));
        let reason = of(&run("nan")).reason.unwrap();
        assert!(reason.starts_with("The loss is NaN or infinite at step 0"), "{reason}");
        let reasons = vec!["it was profiled".into(), "One node was slow.".into()];
        scored.comparable = Comparability { yes: false, reasons };
        assert_eq!(of(&scored).reason.as_deref(), Some("It was profiled. One node was slow."));
    }

    #[test]
    fn long_reasons_are_shortened() {
        let longest = "é".repeat(LONGEST_REASON / 2);
        assert_eq!(shortened(longest.clone()), longest);
        let short = shortened(format!("{longest}."));
        assert!(short.len() <= LONGEST_REASON && short.ends_with("é…"), "{short}");
    }

    #[test]
    fn the_number_of_a_job_is_that_of_its_array() {
        assert_eq!(["71", "71_3", "71+0", "x", ""].map(number), [Some(71), Some(71), Some(71), None, None]);
    }

    /// The SHA-256 of the predictions for all recipes, and the version of the summaries that hold such predictions.
    const PREDICTIONS: (&str, i64) = ("ad106805f0b42832d983d5b41b48ffa52b2561e9f151deb704329b35d2647409", 11);

    /// Lists would otherwise show other predictions than the page of a run, and `verify-store` would call the rows wrong.
    #[test]
    fn changed_predictions_are_stored_under_a_new_version() {
        let mut digest = Sha256::new();
        for recipe in Catalog::embedded().recipes() {
            let spec = Spec::default().with(Field::Recipe, recipe.id.to_string());
            let Interval { low, mid, high } = Estimate::of(&spec.scenario().unwrap()).step_time_s;
            for seconds in [low, mid, high] {
                digest.update(seconds.to_le_bytes());
            }
        }
        let found = hex(&digest.finalize());
        assert_eq!(
            (found.as_str(), SUMMARY_VERSION),
            PREDICTIONS,
            "predictions changed: increase SUMMARY_VERSION, unless no build with its present value was in use, and put both into \
             PREDICTIONS"
        );
    }
}
