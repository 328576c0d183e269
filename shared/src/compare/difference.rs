//! The difference of each run from the reference: the change of the step time, its interval, and the verdict.

use super::mapping::Mapping;
use super::verdict::Verdict;
use super::workload::{Workload, WorkloadDifference};
use super::{ComparisonOptions, RunFigures};
use crate::field::Field;
use crate::log::{Status, Window};
use crate::result::NOT_SCORED;
use crate::statistics::{LEVEL, MeanDifference, RepeatSpread, RunMean, Sample};
use serde::{Deserialize, Serialize};

/// The differences of runs from the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Difference {
    /// The index of the reference among the items.
    pub reference: usize,
    /// How the intervals are computed, in sentences.
    pub method: String,
    /// The confidence level of the intervals, a fraction.
    pub level: f64,
    /// The smallest difference of the step time that matters, in percent.
    pub margin_percent: f64,
    /// The variation between repeats; null if the comparison has none.
    pub run_to_run: Option<RunToRun>,
    /// Whether the intervals include that variation. They don't if all runs have one mapping and aren't named as repeats of
    /// each other, because a difference between them would then count as variation.
    #[serde(default)]
    pub includes_run_to_run: bool,
    /// The other runs, in the order of the items.
    pub each: Vec<RunComparison>,
}

/// The variation between repeats of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunToRun {
    /// The standard deviation of the repeats' mean step times, in percent.
    pub percent: f64,
    /// The number of runs that it is computed from.
    pub runs: usize,
    /// The degrees of freedom: the number of runs, less one for each group of repeats.
    pub freedom: f64,
}

/// The difference of a run from the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ComparedWith))]
pub struct RunComparison {
    /// The index of the run among the items.
    pub item: usize,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict with its numbers, in words.
    pub text: String,
    /// Whether its step time is comparable with the reference's.
    pub comparable: bool,
    /// Why it is not comparable, as sentences.
    pub reasons: Vec<String>,
    /// The differences between the workloads.
    pub unlike: Vec<WorkloadDifference>,
    /// The change of the mean step time, over the steady steps of both runs.
    pub step_time: Option<MeanDifference>,
    /// The change of the median step time, in percent.
    pub median_percent: Option<f64>,
    /// The change of the scored step time, in percent.
    pub scored_percent: Option<f64>,
    /// The change of the tokens per second per GPU, in percent, also for different batches and GPU counts.
    pub tokens_per_s_per_gpu_percent: Option<f64>,
    /// The difference of the means in standard deviations of a single step (Cohen's d); null if all steps take the same
    /// time.
    pub effect_size: Option<f64>,
    /// Notes on the comparison, as sentences.
    pub notes: Vec<String>,
}

impl RunComparison {
    /// Returns the workload fields that are unknown for one of the two runs. Setting them may make the runs comparable.
    #[must_use]
    pub fn unknown_fields(&self) -> Vec<Field> {
        let unknown = self.unlike.iter().filter(|one| one.reference.is_none() || one.other.is_none());
        unknown.filter_map(|one| Field::from_flag(&one.key)).collect()
    }
}

impl Difference {
    pub(super) fn of(
        items: &[RunFigures],
        workloads: &[Workload],
        mappings: &[Mapping],
        options: &ComparisonOptions,
    ) -> Self {
        let spread = RepeatSpread::of(mappings.iter().map(|mapping| mapping.means.as_slice()));
        let run_to_run = spread.map(|spread| RunToRun::of(spread, mappings));
        let included =
            spread.filter(|_| mappings.len() > 1 || mappings.iter().all(|mapping| mapping.is_named));
        let mut each = Vec::new();
        if let (Some(reference), Some(workload)) = (items.first(), workloads.first()) {
            for (place, (item, other)) in items.iter().zip(workloads).enumerate().skip(1) {
                let unlike = workload.unlike(other);
                let assumed = workload.assumed(other);
                let pair = RunPair { reference, item, assumed: &assumed, spread: included, options };
                each.push(pair.against(place, unlike));
            }
        }
        Self {
            reference: 0,
            method: method(options, run_to_run, included.is_some()),
            level: LEVEL,
            margin_percent: options.margin_percent,
            run_to_run,
            includes_run_to_run: included.is_some(),
            each,
        }
    }
}

/// Returns how the intervals are computed.
fn method(options: &ComparisonOptions, run_to_run: Option<RunToRun>, is_included: bool) -> String {
    let steps = match options.view.window {
        Some(Window::Last) => "the last step".to_owned(),
        Some(Window::Labels(span)) => span.with_noun(),
        None => format!("all steps after a warm-up of {} (at most half)", options.warm_up_steps),
    };
    let level = 100.0 * LEVEL;
    match run_to_run {
        Some(RunToRun { percent, runs, freedom }) if is_included => {
            let noun = if (freedom - 1.0).abs() < 0.5 { "degree" } else { "degrees" };
            format!(
                "{level:.0} % confidence interval over {steps}, from the means of repeats (random effects, Student's t \
                 with {freedom:.0} {noun} of freedom). Run-to-run variation of {percent:.2} %, from {runs} runs, is \
                 included."
            )
        }
        Some(RunToRun { percent, .. }) => format!(
            "Welch's {level:.0} % confidence interval over {steps}, corrected for autocorrelation. These runs have the same \
             settings, and their means vary by {percent:.2} %. The interval doesn't include that variation, because it is \
             the difference that you compare. It covers the variation between steps only."
        ),
        None => format!(
            "Welch's {level:.0} % confidence interval over {steps}, corrected for autocorrelation. Run-to-run variation is \
             unknown (no repeats) and not included."
        ),
    }
}

impl RunToRun {
    fn of(spread: RepeatSpread, mappings: &[Mapping]) -> Self {
        let runs = mappings.iter().map(|mapping| mapping.runs.len()).filter(|runs| *runs > 1).sum();
        Self { percent: 100.0 * spread.deviation, runs, freedom: spread.freedom }
    }
}

/// The reference and the run compared with it.
struct RunPair<'a> {
    reference: &'a RunFigures,
    item: &'a RunFigures,
    /// The fields of the workload that are unknown for both and assumed to be the same.
    assumed: &'a [Field],
    spread: Option<RepeatSpread>,
    options: &'a ComparisonOptions,
}

impl RunPair<'_> {
    fn against(&self, place: usize, unlike: Vec<WorkloadDifference>) -> RunComparison {
        let Self { reference, item, options, .. } = *self;
        let samples = self.samples();
        let step_time = samples.and_then(|(from, to)| self.difference(from, to));
        let mut reasons = WorkloadDifference::sentences(&unlike);
        let (own, of_reference) = (&item.comparable.reasons, &reference.comparable.reasons);
        reasons.extend(own.iter().map(|reason| match of_reference.contains(reason) {
            true if reason == NOT_SCORED => "Neither run was scored.".to_owned(),
            true => format!("Both runs: {reason}"),
            false => reason.clone(),
        }));
        let rest = of_reference.iter().filter(|reason| !own.contains(reason));
        reasons.extend(rest.map(|reason| match reason.as_str() {
            NOT_SCORED => "The reference was not scored.".to_owned(),
            _ => format!("The reference: {reason}"),
        }));
        if reasons.is_empty() && step_time.is_none_or(|change| change.low.is_none()) {
            reasons.push("One step is not enough for a confidence interval. Log every step.".to_owned());
        }
        let verdict = Verdict::of(step_time, !reasons.is_empty(), options.margin_percent);
        RunComparison {
            item: place,
            verdict,
            text: verdict.text(step_time, &self.explanations(verdict, &reasons), options.margin_percent),
            comparable: reasons.is_empty(),
            reasons,
            unlike,
            step_time,
            median_percent: samples.and_then(|(from, to)| percent(from.median, to.median)),
            scored_percent: reference
                .step_time_s
                .zip(item.step_time_s)
                .and_then(|(from, to)| percent(from.mean, to.mean)),
            tokens_per_s_per_gpu_percent: self.tokens_percent(samples),
            effect_size: samples.and_then(|(from, to)| effect_size(from, to)),
            notes: self.notes(),
        }
    }

    /// Returns the verdict's sentences other than its numbers: why the runs are not comparable, which of them ended early, and
    /// what widened the interval.
    fn explanations(&self, verdict: Verdict, reasons: &[String]) -> Vec<String> {
        let Self { reference, item, .. } = *self;
        let ended = |who: &str, run: &RunFigures| run.ended_early.as_ref().map(|how| format!("{who} {how}."));
        let slow = |who: &str, run: &RunFigures| {
            let slow = run.slow_steps.as_ref().filter(|_| verdict == Verdict::Inconclusive)?;
            Some(format!("{who}{slow}"))
        };
        let own = [ended("It", item), ended("The reference", reference)];
        let slow = [slow("", item), slow("The reference: ", reference)];
        reasons.iter().cloned().chain(own.into_iter().chain(slow).flatten()).collect()
    }

    fn samples(&self) -> Option<(&Sample, &Sample)> {
        let (from, to) = (self.reference.steady.as_ref()?, self.item.steady.as_ref()?);
        Some((&from.step_time_s, &to.step_time_s))
    }

    fn difference(&self, from: &Sample, to: &Sample) -> Option<MeanDifference> {
        let means = RunMean::of(from).zip(RunMean::of(to));
        match self.spread.zip(means) {
            Some((spread, (from, to))) => spread.difference(&[from], &[to]),
            None => MeanDifference::between(from, to),
        }
    }

    /// Returns the change of the tokens per second per GPU, over the same steps as the step times.
    fn tokens_percent(&self, samples: Option<(&Sample, &Sample)>) -> Option<f64> {
        let (from, to) = samples?;
        percent(self.reference.tokens_per_gpu()? / from.mean, self.item.tokens_per_gpu()? / to.mean)
    }

    fn notes(&self) -> Vec<String> {
        let Self { reference, item, options, .. } = *self;
        let mut notes = Vec::new();
        if reference.id == item.id {
            notes.push("This is the same run as the reference.".to_owned());
        } else if !self.assumed.is_empty() {
            let labels: Vec<&str> = self.assumed.iter().map(|field| field.label()).collect();
            notes.push(format!("Unknown for both runs and assumed to be the same: {}.", labels.join(", ")));
        }
        let scored = [reference, item].iter().all(|item| item.status == Status::Scored);
        if let (Some(one), Some(other)) = (&reference.window, &item.window)
            && one != other
            && options.view.window.is_none()
            && scored
        {
            let words = |item: &RunFigures| item.window_words().unwrap_or_default();
            notes.push(format!(
                "The scores use different steps: {} here, {} in the reference. The difference is taken over all steps \
                 after the warm-up.",
                words(item),
                words(reference)
            ));
        }
        notes.extend(self.mfu_note());
        notes
    }

    /// Returns why the two MFUs are not comparable, and what to compare.
    fn mfu_note(&self) -> Option<String> {
        let (one, other) = self.reference.convention.zip(self.item.convention)?;
        if one != other {
            return Some(
                "The two MFUs are counted differently. Set a convention to compare them.".to_owned(),
            );
        }
        let (of_reference, own) = self.reference.peak_tflops.zip(self.item.peak_tflops)?;
        own.total_cmp(&of_reference).is_ne().then(|| {
            format!(
                "The two MFUs are relative to different peaks: {own} TFLOPS here, {of_reference} TFLOPS in the reference. \
                 Compare tokens per second or TFLOPS instead."
            )
        })
    }
}

/// Returns by how much `to` exceeds `from`, in percent.
fn percent(from: f64, to: f64) -> Option<f64> {
    Some(100.0 * (to / from - 1.0)).filter(|percent| from > 0.0 && percent.is_finite())
}

/// Returns Cohen's d, with the pooled deviation.
fn effect_size(from: &Sample, to: &Sample) -> Option<f64> {
    let share = |sample: &Sample| Some((sample.std? * sample.std?, (sample.n - 1) as f64));
    let ((one, of_one), (other, of_other)) = (share(from)?, share(to)?);
    let pooled = ((one * of_one + other * of_other) / (of_one + of_other)).sqrt();
    (pooled > 0.0).then(|| (to.mean - from.mean) / pooled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::View;

    #[test]
    fn the_method_counts_degrees_and_names_steps_as_people_do() {
        let of = |window: Option<&str>, freedom: f64| {
            let window = window.map(|window| window.parse().unwrap());
            let view = View { window, ..View::default() };
            let options = ComparisonOptions { view, ..ComparisonOptions::default() };
            method(&options, Some(RunToRun { percent: 0.5, runs: 3, freedom }), true)
        };
        let expected = "95 % confidence interval over step 49, from the means of repeats (random effects, Student's t \
                        with 1 degree of freedom). Run-to-run variation of 0.50 %, from 3 runs, is included.";
        assert_eq!(of(Some("49-49"), 1.0), expected);
        let several = of(Some("35-44"), 2.0);
        assert!(
            several.contains("over steps 35–44, ") && several.contains("2 degrees of freedom"),
            "{several}"
        );
        assert!(of(Some("last"), 2.0).contains("over the last step, "));
        assert!(of(None, 2.0).contains("over all steps after a warm-up of 10 (at most half), "));
    }
}
