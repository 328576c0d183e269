//! A run of a certification with all of its repeats, and what it proves.

use super::reference::{ReferenceSource, RunReference};
use crate::catalog::Catalog;
use crate::estimate::Interval;
use crate::launch::container_image;
use crate::result::{LaunchRecord, TOO_FAST, sentence, steady_difference};
use crate::units::significant;
use serde::Serialize;

/// What a run proves about a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// It is fast enough, by the repeats that were scored.
    Passed,
    /// It is slower than 95 % of the published speed, or than the interval of the prediction.
    Slow,
    /// None of its repeats has a step time.
    NotScored,
}

impl RunVerdict {
    /// Returns the verdict as a word or two.
    pub fn in_words(self) -> &'static str {
        match self {
            RunVerdict::Passed => "passed",
            RunVerdict::Slow => "slow",
            RunVerdict::NotScored => "not scored",
        }
    }
}

/// A run of a certification, with all of its repeats.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CertifiedRun {
    /// Its name in the campaign.
    pub run: String,
    /// The recipe.
    pub recipe: Option<String>,
    /// GPUs.
    pub gpus: u32,
    /// How often it ran.
    pub repeats: usize,
    /// The mean step time of each repeat that was scored, in seconds.
    pub step_times_s: Vec<f64>,
    /// The step time by which each of these repeats is judged, in seconds.
    pub judged_times_s: Vec<f64>,
    /// What it is compared with.
    pub reference: RunReference,
    /// Where a published reference is from; null if nothing is published.
    pub source: Option<ReferenceSource>,
    /// The container that its job is known to use, or else the one of its recipe's release; null if unknown.
    pub container: Option<String>,
    /// The speed of its scored steps in percent of the reference's; null if no repeat was scored.
    pub speed_percent: Option<f64>,
    /// The seconds per step by which it is judged, the mean of its repeats: of the scored steps, or of all steps after the warm-up if
    /// fewer than 5 are scored. Null if no repeat was scored.
    pub judged_s: Option<f64>,
    /// The speed by which it is judged, in percent of the reference's; null if no repeat was scored.
    pub judged_speed_percent: Option<f64>,
    /// What it proves.
    pub verdict: RunVerdict,
    /// What to check before the pass counts, as a sentence; null unless the run is much faster than its reference.
    pub remark: Option<String>,
    /// Why repeats have no step time: sentences.
    pub reasons: Vec<String>,
    /// What could explain that it is slow: sentences. Null if nothing is known, or if it isn't slow.
    pub cause: Option<String>,
    /// How it was launched; null if unknown.
    pub launch: Option<LaunchRecord>,
    /// The ids of its stored results.
    pub results: Vec<String>,
}

impl CertifiedRun {
    /// Returns a run of `repeats` repeats, with the step times of those that were scored: the scored one, and that by which the
    /// repeat is judged. `reasons` says why the others were not scored.
    pub fn new(
        run: &str,
        recipe: Option<&str>,
        gpus: u32,
        (repeats, step_times_s): (usize, Vec<(f64, f64)>),
        predicted: Interval,
        reasons: Vec<String>,
    ) -> CertifiedRun {
        let reference = RunReference::of(recipe, predicted);
        let in_catalog = recipe.and_then(|id| Catalog::embedded().recipe(id).ok());
        let (step_times_s, judged_times_s): (Vec<f64>, Vec<f64>) = step_times_s.into_iter().unzip();
        let (scored_s, judged_s) = (mean(&step_times_s), mean(&judged_times_s));
        let speed = |step_time_s: f64| 100.0 * reference.step_time_s() / step_time_s;
        let verdict = match judged_s {
            None => RunVerdict::NotScored,
            Some(judged_s) if judged_s > reference.limit_s() => RunVerdict::Slow,
            Some(_) => RunVerdict::Passed,
        };
        let remark = judged_s.filter(|judged_s| *judged_s < reference.least_s()).map(|judged_s| {
            format!("It ran at {} % of the reference's speed, {TOO_FAST}.", significant(speed(judged_s), 3))
        });
        let missing = repeats.saturating_sub(step_times_s.len());
        let mut sentences: Vec<String> = Vec::new();
        if repeats > 1 && missing > 0 {
            let were = if missing == 1 { "was" } else { "were" };
            sentences.push(format!("{missing} of {repeats} repeats {were} not scored."));
        }
        for reason in reasons {
            let reason = sentence(&reason);
            if !sentences.contains(&reason) {
                sentences.push(reason);
            }
        }
        let reasons = if sentences.is_empty() { Vec::new() } else { vec![sentences.join(" ")] };
        CertifiedRun {
            run: run.to_owned(),
            recipe: recipe.map(str::to_owned),
            gpus,
            speed_percent: scored_s.map(speed),
            judged_s,
            judged_speed_percent: judged_s.map(speed),
            repeats,
            step_times_s,
            judged_times_s,
            reference,
            source: in_catalog.and_then(ReferenceSource::of),
            container: in_catalog.and_then(|recipe| container_image(&recipe.id)),
            verdict,
            remark,
            reasons,
            cause: None,
            launch: None,
            results: Vec::new(),
        }
    }

    /// Returns the number of its repeats that have no step time.
    pub fn missing(&self) -> usize {
        self.repeats.saturating_sub(self.step_times_s.len())
    }

    /// Returns a sentence if the run used another container than its reference.
    pub fn container_remark(&self) -> Option<String> {
        let own = self.container.as_ref()?;
        let reference = self.source.as_ref()?.container.as_ref()?;
        (own != reference).then(|| {
            format!(
                "It uses {own}, but its reference was measured in {reference}. The container alone can change the speed."
            )
        })
    }

    pub(super) fn measured(&self) -> String {
        let Some((scored_s, judged_s)) = mean(&self.step_times_s).zip(self.judged_s) else {
            return "-".to_owned();
        };
        let repeats = self.averaged().map_or(String::new(), |repeats| format!(", {repeats}"));
        let scored = steady_difference(scored_s, judged_s)
            .map_or(String::new(), |_| format!(" (scored: {} s)", precise(scored_s)));
        format!("{} s{repeats}{scored}", precise(judged_s))
    }

    /// Returns which repeats its measured step time is the mean of; none for a single run.
    pub(super) fn averaged(&self) -> Option<String> {
        match (self.step_times_s.len(), self.repeats) {
            (0, _) | (1, 0..=1) => None,
            (1, all) => Some(format!("1 of {all} repeats")),
            (several, all) if several >= all => Some(format!("mean of {several}")),
            (several, all) => Some(format!("mean of {several} of {all} repeats")),
        }
    }

    /// Returns the shortest and the longest step time of its repeats, in seconds; none if fewer than two were scored.
    pub(super) fn spread_s(&self) -> Option<(f64, f64)> {
        let [first, others @ ..] = &*self.judged_times_s else { return None };
        let ends = |(low, high): (f64, f64), time_s: &f64| (low.min(*time_s), high.max(*time_s));
        (!others.is_empty()).then(|| others.iter().fold((*first, *first), ends))
    }

    pub(super) fn speed(&self) -> String {
        self.judged_speed_percent.map_or("-".to_owned(), |percent| format!("{percent:.1}"))
    }
}

/// Returns a step time, in seconds, with a digit more than other tables have: the speed beside it would seem wrong otherwise.
pub(super) fn precise(step_time_s: f64) -> String {
    significant(step_time_s, 4)
}

/// Returns the mean; none without values.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::campaign::Certificate;
    use crate::catalog::Release;

    pub(in super::super) fn of(recipe: &str, times: &[f64]) -> CertifiedRun {
        judged(recipe, times.iter().map(|time| (*time, *time)).collect())
    }

    fn judged(recipe: &str, times: Vec<(f64, f64)>) -> CertifiedRun {
        let predicted = Interval { low: 9.0, mid: 10.0, high: 11.0 };
        CertifiedRun::new("run", Some(recipe), 64, (times.len().max(1), times), predicted, Vec::new())
    }

    #[test]
    fn a_run_is_judged_by_the_best_reference() {
        // 1,664 tokens/s per GPU are published at 64 GPUs.
        let published = 256.0 * 8192.0 / (1664.0 * 64.0);
        let exact = "llama3.1-70b/h100/fp8/64@26.06.01";
        assert_eq!(of(exact, &[published / 0.951]).verdict, RunVerdict::Passed);
        assert_eq!(of(exact, &[published / 0.949]).verdict, RunVerdict::Slow);
        let scaled = of("llama3.1-70b/h100/fp8/512@26.06.01", &[published]);
        assert!(matches!(scaled.reference, RunReference::WeakScaled { gpus: 64, .. }));
        assert!(scaled.speed_percent.is_some_and(|percent| (percent - 100.0).abs() < 1e-3));
        let predicted = "llama3.1-8b/h100/bf16/64@26.06.01";
        assert_eq!(of(predicted, &[10.9]).verdict, RunVerdict::Passed);
        assert_eq!(of(predicted, &[11.1]).verdict, RunVerdict::Slow);
        assert_eq!(of(predicted, &[]).verdict, RunVerdict::NotScored);
    }

    #[test]
    fn a_run_that_stalls_beside_its_scored_step_is_slow() {
        let published = 256.0 * 8192.0 / (1664.0 * 64.0);
        let stalls = judged("llama3.1-70b/h100/fp8/64@26.06.01", vec![(published, published / 0.9)]);
        assert_eq!(stalls.verdict, RunVerdict::Slow);
        let speeds = [stalls.speed_percent, stalls.judged_speed_percent].map(|speed| speed.unwrap().round());
        assert_eq!(speeds, [100.0, 90.0]);
        assert_eq!(stalls.measured(), "21.88 s (scored: 19.69 s)");
    }

    #[test]
    fn a_run_that_is_much_faster_than_its_reference_passes_with_a_remark() {
        let published = 256.0 * 8192.0 / (1664.0 * 64.0);
        let exact = "llama3.1-70b/h100/fp8/64@26.06.01";
        let predicted = "llama3.1-8b/h100/bf16/64@26.06.01";
        for (recipe, time, has_remark) in [
            (exact, published / 1.59, true),
            (exact, published / 1.11, true),
            (exact, published / 1.09, false),
            // 9.00 to 11.0 s: 111 % of the speed is still within the interval.
            (predicted, 9.01, false),
            (predicted, 8.99, true),
        ] {
            let run = of(recipe, &[time]);
            assert_eq!((run.verdict, run.remark.is_some()), (RunVerdict::Passed, has_remark), "{time}");
        }
        let fast = of(exact, &[published / 1.59]);
        let start = "It ran at 159 % of the reference's speed,";
        assert!(fast.remark.is_some_and(|remark| remark.starts_with(start)));
        assert_eq!(of(exact, &[]).remark, None);
    }

    #[test]
    fn a_run_in_another_container_than_its_reference_has_a_remark() {
        let card = of("gpt-oss-120b/gb200/bf16/64@bridge-main", &[5.0]);
        assert_eq!(
            card.container_remark().unwrap(),
            "It uses nemo:26.08, but its reference was measured in nemo:26.06. The container alone can change the speed."
        );
        let same = of("llama3.1-70b/h100/fp8/64@26.06.01", &[20.0]);
        assert_eq!(same.container_remark(), None);
        let other = CertifiedRun { container: Some("nemo:26.06".to_owned()), ..same };
        assert!(other.container_remark().is_some());
        assert_eq!(of("llama3.1-8b/h100/bf16/64@26.06.01", &[10.0]).container_remark(), None);
    }

    #[test]
    fn a_run_is_judged_by_the_repeats_that_were_scored() {
        let recipe = Some("llama3.1-70b/h100/fp8/64@26.06.01");
        let predicted = Interval { low: 9.0, mid: 10.0, high: 11.0 };
        let run = |repeats: usize, times: &[f64], reasons: &[&str]| {
            let times: Vec<(f64, f64)> = times.iter().map(|time| (*time, *time)).collect();
            let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
            CertifiedRun::new("run", recipe, 64, (repeats, times), predicted, reasons)
        };
        let cancelled = "the job was cancelled";
        let one = run(2, &[19.8], &[cancelled]);
        assert_eq!((one.verdict, one.missing()), (RunVerdict::Passed, 1));
        assert_eq!(one.measured(), "19.8 s, 1 of 2 repeats");
        assert_eq!(one.reasons, ["1 of 2 repeats was not scored. The job was cancelled."]);
        assert_eq!(run(3, &[21.0, 21.2], &[cancelled]).verdict, RunVerdict::Slow);
        assert_eq!(run(3, &[21.0, 21.2], &[cancelled]).measured(), "21.1 s, mean of 2 of 3 repeats");
        assert_eq!(run(2, &[21.0, 21.2], &[]).measured(), "21.1 s, mean of 2");
        let none = run(2, &[], &[cancelled, cancelled]);
        assert_eq!(none.verdict, RunVerdict::NotScored);
        assert_eq!(none.reasons, ["2 of 2 repeats were not scored. The job was cancelled."]);
        assert_eq!(run(1, &[], &[cancelled]).reasons, ["The job was cancelled."]);
        let certificate = Certificate {
            cluster: "alpha".to_owned(),
            gpu: "h100".to_owned(),
            gpus: 64,
            release: Release::R26_06_01,
            began: "2026-11-25 02:00".to_owned(),
            runs: vec![one],
            untested: Vec::new(),
            command: "trainplan certify".to_owned(),
        };
        assert_eq!(certificate.summary(), "1 of 1 runs passed. 1 run was judged without all of its repeats.");
    }
}
