//! Runs beside each other, beside their plan and beside what is published.
//!
//! [`Comparison::of`] takes any results. The first is the reference; each other one stands against it. Runs of unlike
//! workloads are never compared in silence: what differs is listed, and the verdict says so. The figures are there all
//! the same, since tokens per second and GPU may tell something even then.
//!
//! ```
//! use trainplan_shared::compare::{Comparison, Options, Verdict};
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
//! let comparison = Comparison::of(&[&run(1, 12_000), &run(2, 12_600)], &Options::default());
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

pub use configuration::{Group, Setting};
pub use curves::{Curve, Curves, Level, LevelKind};
pub use difference::{Against, Difference, RunToRun, Verdict};
pub use item::{Item, Steady};
pub use workload::Unlike;

use crate::result::{RunResult, Seen, View};
use serde::{Deserialize, Serialize};

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How to look at every run.
    pub view: View,
    /// How many steps of every run are left out of the difference as warm-up, at most half of them. A window that the view
    /// names takes the place of this.
    pub warm_up_steps: u64,
    /// A difference of the step time below this is none that matters, percent.
    pub margin_percent: f64,
    /// How many points a curve has at most.
    pub points: usize,
    /// What whoever looks can do about what is not known of a run, as a clause, where that is not to give its flag.
    pub remedy: Option<&'static str>,
}

impl Options {
    /// The releases from 25.05 on score no step before the tenth.
    pub const WARM_UP_STEPS: u64 = 10;

    /// About what the same run differs by from one time to the next.
    pub const MARGIN_PERCENT: f64 = 1.0;

    /// As many points as a chart has room for.
    pub const POINTS: usize = 1000;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            view: View::default(),
            warm_up_steps: Self::WARM_UP_STEPS,
            margin_percent: Self::MARGIN_PERCENT,
            points: Self::POINTS,
            remedy: None,
        }
    }
}

/// Runs beside each other. The same runs in the same order give the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Comparison {
    /// The runs, in the order given; the first is the reference.
    pub items: Vec<Item>,
    /// The others against the first.
    pub difference: Difference,
    /// What holds of every other run against the first; none of a single run.
    pub verdict: Option<Verdict>,
    /// Whether all of them may be compared with the first.
    pub comparable: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Everything that is known of their configuration: first what differs.
    pub configuration: Vec<Setting>,
    /// Every step of them.
    pub curves: Curves,
}

impl Comparison {
    /// Compares `runs`, of which there may be any number; a run may come several times.
    #[must_use]
    pub fn of(runs: &[&RunResult], options: &Options) -> Self {
        let seen: Vec<(&RunResult, Seen<'_>)> =
            runs.iter().map(|run| (*run, Seen::of(run, &options.view))).collect();
        let items = item::all(&seen, options);
        let workloads: Vec<_> = seen.iter().map(|(_, seen)| workload::Workload::of(seen)).collect();
        let difference = Difference::of(&items, &workloads, options);
        let reasons = reasons(&items, &difference);
        Self {
            verdict: difference.verdict(),
            comparable: !items.is_empty() && reasons.is_empty(),
            reason: match items.is_empty() {
                true => Some("there is no run to compare".to_owned()),
                false => Some(reasons.join("; ")).filter(|reason| !reason.is_empty()),
            },
            configuration: configuration::all(&seen),
            curves: Curves::of(&seen, &items, options),
            items,
            difference,
        }
    }
}

/// Why runs can't be compared with the first; of a single one, why it stands beside nothing.
fn reasons(items: &[Item], difference: &Difference) -> Vec<String> {
    if let [alone] = items {
        return alone.comparable.reasons.clone();
    }
    let told = |against: &Against| {
        let label = items.get(against.item).map_or("", |item| &item.label);
        format!("{label}: {}", against.reasons.join(", "))
    };
    difference.each.iter().filter(|against| !against.comparable).map(told).collect()
}
