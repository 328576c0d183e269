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

mod configuration;
mod curves;
mod difference;
mod item;
mod workload;

pub use configuration::{ConfigurationGroup, ConfigurationRow};
pub use curves::{Curve, Curves, ReferenceLevel, ReferenceLevelKind};
pub use difference::{Difference, RunComparison, RunToRun, Verdict};
pub use item::{RunFigures, SteadySteps};
pub use workload::WorkloadDifference;

use crate::result::{RunResult, View, ViewedRun};
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
}

impl ComparisonOptions {
    /// 10 steps: releases from 25.05 on score no earlier step.
    pub const WARM_UP_STEPS: u64 = 10;

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
    /// The verdict on all other runs; null for a single run.
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
        let difference = Difference::of(&items, &workloads, options);
        let reasons = reasons(&items, &difference);
        Self {
            verdict: difference.verdict(),
            comparable: !items.is_empty() && reasons.is_empty(),
            reason: match items.is_empty() {
                true => Some("No runs to compare.".to_owned()),
                false => Some(reasons.join(" ")).filter(|reason| !reason.is_empty()),
            },
            configuration: configuration::all(&seen),
            curves: Curves::of(&seen, &items, options),
            items,
            difference,
        }
    }
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
