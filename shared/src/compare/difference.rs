//! Each run against the first: by how much its steps take longer, how sure that is, and whether it may be said at all.

use super::workload::{Unlike, Workload};
use super::{Item, Options};
use crate::choices::choices;
use crate::log::Status;
use crate::statistics::{LEVEL, MeanDifference, Sample, Variance, deviation};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The runs against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Difference {
    /// The place of the reference among the items.
    pub reference: usize,
    /// How the intervals are made, for people.
    pub method: String,
    /// How sure they are, a fraction.
    pub level: f64,
    /// A difference of the step time below this is none that matters, percent.
    pub margin_percent: f64,
    /// By how much repeats of the same run differ, where the comparison has some: every interval counts it in.
    pub run_to_run: Option<RunToRun>,
    /// Every other run, in the order of the items.
    pub each: Vec<Against>,
}

/// How far repeats of the same run lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunToRun {
    /// The standard deviation of their mean step times, percent.
    pub percent: f64,
    /// How many runs tell it.
    pub runs: usize,
    /// Its degrees of freedom: the runs, less one for every group of repeats.
    pub freedom: f64,
}

/// A run against the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ComparedWith))]
pub struct Against {
    /// The place of the run among the items.
    pub item: usize,
    /// What holds of it.
    pub verdict: Verdict,
    /// The verdict as a sentence with its figures.
    pub text: String,
    /// Whether its step time may be compared with the reference's.
    pub comparable: bool,
    /// Why not.
    pub reasons: Vec<String>,
    /// In what the two workloads differ.
    pub unlike: Vec<Unlike>,
    /// By how much its mean step takes longer, in the steady steps of both.
    pub step_time: Option<MeanDifference>,
    /// By how much its median step takes longer, percent.
    pub median_percent: Option<f64>,
    /// By how much the step time that it is scored by is longer, percent.
    pub scored_percent: Option<f64>,
    /// By how much more tokens a GPU takes in a second, percent: also of unlike batches and numbers of GPUs.
    pub tokens_per_s_per_gpu_percent: Option<f64>,
    /// The difference of the means in standard deviations of a single step (Cohen's d): how far apart the two clouds of
    /// steps are. None where no step differs from another.
    pub effect_size: Option<f64>,
    /// What else to know of this pair.
    pub notes: Vec<String>,
}

choices! {
    /// What holds of a run against the reference.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    Verdict {
        /// Its steps take less time.
        Faster "faster",
        /// Its steps take longer.
        Slower "slower",
        /// No difference that matters is shown.
        NoDifference "no_difference" "no difference",
        /// The two may not be compared.
        NotComparable "not_comparable" "not comparable",
        /// Of several runs some are this and some are that.
        Mixed "mixed",
    }
}

impl Difference {
    pub(super) fn of(items: &[Item], workloads: &[Workload], options: &Options) -> Self {
        let run_to_run = RunToRun::of(items);
        let mut each = Vec::new();
        if let (Some(reference), Some(workload)) = (items.first(), workloads.first()) {
            for (place, (item, other)) in items.iter().zip(workloads).enumerate().skip(1) {
                let unlike = workload.unlike(other);
                let pair = Pair { reference, item, run_to_run, options };
                each.push(pair.against(place, unlike));
            }
        }
        let steps = match options.view.window {
            Some(window) => format!("the steps {window}"),
            None => {
                format!("the steps after the first {} (at most half of them)", options.warm_up_steps)
            }
        };
        let repeats = match run_to_run {
            Some(run_to_run) => {
                format!("the {:.2} % by which repeats of a run differ are counted in", run_to_run.percent)
            }
            None => "how much a run differs from its repeats is not known and not counted in".to_owned(),
        };
        Self {
            reference: 0,
            method: format!(
                "Welch's interval of the ratio of the mean step times, over {steps}; the steps count for as many as are \
                 independent, by Geyer's initial monotone sequence of their autocorrelation; {repeats}"
            ),
            level: LEVEL,
            margin_percent: options.margin_percent,
            run_to_run,
            each,
        }
    }

    /// What holds of all of them; none where there is nothing but the reference.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let first = self.each.first()?.verdict;
        let same = self.each.iter().all(|against| against.verdict == first);
        Some(if same { first } else { Verdict::Mixed })
    }
}

/// With one degree of freedom an interval is so wide that nothing differs.
const LEAST_FREEDOM: f64 = 2.0;

impl RunToRun {
    /// From the repeats among the items: the pooled variance of the logarithms of their mean step times. Runs of the same
    /// repeat are of different rounds, where more may have changed than chance; and two repeats alone tell too little.
    fn of(items: &[Item]) -> Option<Self> {
        let mut repeats: BTreeMap<_, BTreeMap<&str, (Option<u32>, f64)>> = BTreeMap::new();
        for item in items.iter().filter(|item| item.comparable.yes) {
            let (Some(campaign), Some(run), Some(steady)) = (&item.campaign, &item.run, item.steady) else {
                continue;
            };
            let logarithm = libm::log(steady.step_time_s.mean);
            let group = repeats.entry((campaign, run, &item.cluster)).or_default();
            group.insert(&item.id, (item.repeat, logarithm));
        }
        let (mut squares, mut freedom, mut runs) = (0.0, 0.0, 0);
        for group in repeats.into_values() {
            let numbers: BTreeSet<Option<u32>> = group.values().map(|(repeat, _)| *repeat).collect();
            if numbers.len() < group.len() {
                continue;
            }
            let means: Vec<f64> = group.into_values().map(|(_, mean)| mean).collect();
            if let Some(deviation) = deviation(&means).filter(|deviation| deviation.is_finite()) {
                squares += deviation * deviation * (means.len() - 1) as f64;
                freedom += (means.len() - 1) as f64;
                runs += means.len();
            }
        }
        let percent = 100.0 * (squares / freedom).sqrt();
        (freedom >= LEAST_FREEDOM).then_some(Self { percent, runs, freedom })
    }

    /// The variance that it adds to the logarithm of a ratio of two runs.
    fn variance(self) -> Variance {
        let deviation = self.percent / 100.0;
        Variance { variance: 2.0 * deviation * deviation, freedom: self.freedom }
    }
}

/// The reference and another run.
struct Pair<'a> {
    reference: &'a Item,
    item: &'a Item,
    run_to_run: Option<RunToRun>,
    options: &'a Options,
}

impl Pair<'_> {
    fn against(&self, place: usize, unlike: Vec<Unlike>) -> Against {
        let Self { reference, item, .. } = *self;
        let samples = self.samples();
        let step_time = samples.and_then(|(from, to)| {
            MeanDifference::between(from, to, self.run_to_run.map(RunToRun::variance))
        });
        let mut reasons = Unlike::clauses(&unlike);
        reasons.extend(Unlike::remedy(&unlike, self.options));
        let (own, of_reference) = (&item.comparable.reasons, &reference.comparable.reasons);
        reasons.extend(own.iter().map(|reason| match of_reference.contains(reason) {
            true => format!("of both: {reason}"),
            false => reason.clone(),
        }));
        let rest = of_reference.iter().filter(|reason| !own.contains(reason));
        reasons.extend(rest.map(|reason| format!("of the reference: {reason}")));
        if reasons.is_empty() && step_time.is_none_or(|change| change.low.is_none()) {
            reasons
                .push("a single step tells nothing of how sure a difference is: log every step".to_owned());
        }
        let verdict = self.verdict(step_time, !reasons.is_empty());
        Against {
            item: place,
            verdict,
            text: self.text(verdict, step_time, &reasons),
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

    fn samples(&self) -> Option<(&Sample, &Sample)> {
        let (from, to) = (self.reference.steady.as_ref()?, self.item.steady.as_ref()?);
        Some((&from.step_time_s, &to.step_time_s))
    }

    /// Over the same steps as the step times, whatever steps the tokens per second of the two stand for.
    fn tokens_percent(&self, samples: Option<(&Sample, &Sample)>) -> Option<f64> {
        let (from, to) = samples?;
        percent(self.reference.tokens_per_gpu()? / from.mean, self.item.tokens_per_gpu()? / to.mean)
    }

    fn verdict(&self, step_time: Option<MeanDifference>, spoilt: bool) -> Verdict {
        let Some(MeanDifference { percent, low: Some(low), high: Some(high), .. }) = step_time else {
            return Verdict::NotComparable;
        };
        let matters = percent.abs() >= self.options.margin_percent;
        match () {
            () if spoilt => Verdict::NotComparable,
            () if matters && low > 0.0 => Verdict::Slower,
            () if matters && high < 0.0 => Verdict::Faster,
            () => Verdict::NoDifference,
        }
    }

    fn text(&self, verdict: Verdict, step_time: Option<MeanDifference>, reasons: &[String]) -> String {
        let figures = step_time.map(|change| match (change.low, change.high) {
            (Some(low), Some(high)) => {
                format!("step time {} % ({} to {} %)", signed(change.percent), signed(low), signed(high))
            }
            _ => format!("step time {} %", signed(change.percent)),
        });
        let told = match verdict {
            Verdict::NotComparable => format!("not comparable: {}", reasons.join(", ")),
            Verdict::NoDifference => match step_time.and_then(|change| change.p) {
                Some(p) if p < 1.0 - LEVEL => {
                    format!("no difference of {} % or more", self.options.margin_percent)
                }
                _ => "no difference shown".to_owned(),
            },
            other => other.title().to_owned(),
        };
        match figures {
            Some(figures) => format!("{told}: {figures}"),
            None => told,
        }
    }

    fn notes(&self) -> Vec<String> {
        let Self { reference, item, options, .. } = *self;
        let mut notes = Vec::new();
        if reference.id == item.id {
            notes.push("it is the same run as the reference".to_owned());
        }
        let scored = [reference, item].iter().all(|item| item.status == Status::Scored);
        if let (Some(one), Some(other)) = (&reference.window, &item.window)
            && one != other
            && options.view.window.is_none()
            && scored
        {
            notes.push(format!(
                "it is scored by the steps {other} and the reference by {one}: the difference is taken over the steps after \
                 the warm-up of either"
            ));
        }
        if let (Some(one), Some(other)) = (reference.convention, item.convention)
            && (one != other || reference.peak_tflops != item.peak_tflops)
        {
            notes.push(
                "the two MFU are counted or divided differently: name a convention to compare them"
                    .to_owned(),
            );
        }
        notes
    }
}

/// Percent with their sign; what rounds to nothing is not a little less than nothing.
fn signed(percent: f64) -> String {
    format!("{:+.2}", if percent.abs() < 0.005 { 0.0 } else { percent })
}

/// By how much `to` is more than `from`, percent.
fn percent(from: f64, to: f64) -> Option<f64> {
    Some(100.0 * (to / from - 1.0)).filter(|percent| from > 0.0 && percent.is_finite())
}

/// Cohen's d, with the pooled deviation.
fn effect_size(from: &Sample, to: &Sample) -> Option<f64> {
    let share = |sample: &Sample| Some((sample.std? * sample.std?, (sample.n - 1) as f64));
    let ((one, of_one), (other, of_other)) = (share(from)?, share(to)?);
    let pooled = ((one * of_one + other * of_other) / (of_one + of_other)).sqrt();
    (pooled > 0.0).then(|| (to.mean - from.mean) / pooled)
}
