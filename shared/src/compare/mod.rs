//! Comparisons of runs with each other, with their plans and with published numbers.
//!
//! [`Comparison::of`] takes any results and compares each with the first, the reference. Runs of different workloads are
//! not comparable: the verdict says so, and the differences are listed. The numbers are given all the same, because
//! tokens per second per GPU can be useful even then.
//!
//! ```
//! use trainplan_shared::compare::{Comparison, ComparisonOptions, Verdict};
//! use trainplan_shared::result::Intake;
//! use trainplan_shared::spec::Spec;
//!
//! let run = |job: u32, ms: u32| {
//!     let mut intake = Intake::new(format!("log-acct.pretrain_llama3.1_8b_fp8_8_{job}_0.out"), &Spec::default());
//!     for step in 0..50 {
//!         let time = f64::from(ms + step % 7) / 1000.0;
//!         intake.feed(format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {time} |\n").as_bytes());
//!     }
//!     intake.finish()
//! };
//! let comparison = Comparison::of(&[&run(1, 12_000), &run(2, 12_600)], &ComparisonOptions::default());
//! assert_eq!(comparison.verdict, Some(Verdict::Slower));
//! let change = comparison.difference.each[0].step_time.unwrap();
//! assert_eq!(change.percent.round(), 5.0);
//! assert!(change.low.unwrap() > 4.9 && change.high.unwrap() < 5.1);
//! ```

mod brief;
mod configuration;
mod curves;
mod difference;
mod item;
mod mapping;
mod verdict;
mod workload;

pub use brief::BriefLabels;
pub use configuration::{ConfigurationGroup, ConfigurationRow};
pub use curves::{Curve, Curves, ReferenceLevel, ReferenceLevelKind, sustained_peak};
pub use difference::{Difference, RunComparison, RunToRun};
pub use item::{RunFigures, SteadySteps};
pub use mapping::{PooledDifference, PooledRuns};
pub use verdict::Verdict;
pub use workload::WorkloadDifference;

use crate::log::Steps;
use crate::result::{RunResult, View, ViewedRun};
use crate::statistics::MeanDifference;
use mapping::Mapping;
use serde::{Deserialize, Serialize};

/// How runs are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonOptions {
    /// The view of every run.
    pub view: View,
    /// The number of warm-up steps that the difference leaves out of every run, at most half of them. A window in the view
    /// replaces this.
    pub warm_up_steps: u64,
    /// The smallest difference of the step time that matters, in percent.
    pub margin_percent: f64,
    /// The most points of a curve.
    pub points: usize,
    /// The index of the first run of the second side, if the reader says which runs are repeats: those before it are
    /// pooled, and so are the others. Without it, runs with the same settings are pooled.
    pub second_side: Option<usize>,
}

impl ComparisonOptions {
    /// That of the log.
    pub const WARM_UP_STEPS: u64 = Steps::WARM_UP_STEPS;

    /// 1 %, about the variation between repeats of a run.
    pub const MARGIN_PERCENT: f64 = 1.0;

    /// 1,000 points, as many as a chart can show.
    pub const POINTS: usize = 1000;
}

impl Default for ComparisonOptions {
    fn default() -> Self {
        Self {
            view: View::default(),
            warm_up_steps: Self::WARM_UP_STEPS,
            margin_percent: Self::MARGIN_PERCENT,
            points: Self::POINTS,
            second_side: None,
        }
    }
}

/// A comparison of runs. The same runs in the same order give the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Comparison {
    /// The runs, in the given order; the first is the reference.
    pub items: Vec<RunFigures>,
    /// The differences of the other runs from the reference.
    pub difference: Difference,
    /// The mappings, with their runs pooled; empty if no mapping has repeats.
    #[serde(default)]
    pub pooled: Vec<PooledRuns>,
    /// The verdict on all other runs, or mappings if there are several with repeats; null for a single run.
    pub verdict: Option<Verdict>,
    /// Whether all runs are comparable with the reference.
    pub comparable: bool,
    /// Why they are not comparable.
    pub reason: Option<String>,
    /// Everything known about their configurations, the differences first.
    pub configuration: Vec<ConfigurationRow>,
    /// The step times and losses by step.
    pub curves: Curves,
}

impl Comparison {
    /// Compares any number of runs. A run may be listed several times.
    #[must_use]
    pub fn of(runs: &[&RunResult], options: &ComparisonOptions) -> Self {
        let seen: Vec<(&RunResult, ViewedRun<'_>)> =
            runs.iter().map(|run| (*run, ViewedRun::of(run, &options.view))).collect();
        let items = item::all(&seen, options);
        let workloads: Vec<_> = seen.iter().map(|(_, seen)| workload::Workload::of(seen)).collect();
        let configuration = configuration::all(&seen);
        let mappings = Mapping::all(runs, &items, &workloads, &configuration, options);
        let difference = Difference::of(&items, &workloads, &mappings, options);
        let pooled = PooledRuns::all(&mappings, &items, options.margin_percent);
        let reasons = reasons(&items, &difference);
        Self {
            verdict: Verdict::of_all(verdicts(&items, &pooled, &difference).iter().map(|one| one.verdict)),
            comparable: !items.is_empty() && reasons.is_empty(),
            reason: match items.is_empty() {
                true => Some("No runs to compare.".to_owned()),
                false => Some(reasons.join(" ")).filter(|reason| !reason.is_empty()),
            },
            configuration,
            curves: Curves::of(&seen, &items, options),
            items,
            pooled,
            difference,
        }
    }
}

/// What a comparison says of a mapping with repeats, or of a run without.
#[derive(Debug, Clone, Copy)]
pub struct LabelledVerdict<'a> {
    /// The label of the mapping or run.
    pub label: &'a str,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict with its numbers, in words.
    pub text: &'a str,
    /// The change of the mean step time.
    pub step_time: Option<MeanDifference>,
    /// The run's own comparison; none for a mapping.
    pub run: Option<&'a RunComparison>,
}

impl Comparison {
    /// Returns the reference: the first mapping, if any other is compared with it, or else the first run.
    #[must_use]
    pub fn reference_label(&self) -> &str {
        match self.pooled.as_slice() {
            [first, _, ..] => &first.label,
            _ => self.items.first().map_or("", |item| &item.label),
        }
    }

    /// Returns the brief labels of the runs, for sentences after the first that name them.
    #[must_use]
    pub fn brief_labels(&self) -> BriefLabels {
        BriefLabels::of(self.items.iter().map(|item| item.label.as_str()))
    }

    /// Returns the verdicts: on each mapping, and on each run of none. If only one mapping, or none, has repeats, on each
    /// run.
    #[must_use]
    pub fn verdicts(&self) -> Vec<LabelledVerdict<'_>> {
        verdicts(&self.items, &self.pooled, &self.difference)
    }
}

fn verdicts<'a>(
    items: &'a [RunFigures],
    pooled: &'a [PooledRuns],
    difference: &'a Difference,
) -> Vec<LabelledVerdict<'a>> {
    let of_mapping = |pooled: &'a PooledRuns| {
        let PooledDifference { verdict, text, step_time } = pooled.against.as_ref()?;
        let (verdict, step_time) = (*verdict, *step_time);
        Some(LabelledVerdict { label: &pooled.label, verdict, text, step_time, run: None })
    };
    let of_run = |run: &'a RunComparison| LabelledVerdict {
        label: items.get(run.item).map_or("", |item| &item.label),
        verdict: run.verdict,
        text: &run.text,
        step_time: run.step_time,
        run: Some(run),
    };
    let mappings: Vec<LabelledVerdict<'a>> = pooled.iter().filter_map(of_mapping).collect();
    let is_pooled = |item: usize| !mappings.is_empty() && pooled.iter().any(|one| one.items.contains(&item));
    let runs: Vec<LabelledVerdict<'a>> =
        difference.each.iter().filter(|run| !is_pooled(run.item)).map(of_run).collect();
    mappings.into_iter().chain(runs).collect()
}

/// Returns why runs are not comparable with the reference, or why a single run is not comparable with others.
fn reasons(items: &[RunFigures], difference: &Difference) -> Vec<String> {
    if let [alone] = items {
        return alone.comparable.reasons.clone();
    }
    let sentence = |against: &RunComparison| {
        let label = items.get(against.item).map_or("", |item| &item.label);
        format!("{label}: {}", against.reasons.join(" "))
    };
    difference.each.iter().filter(|against| !against.comparable).map(sentence).collect()
}
