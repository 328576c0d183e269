//! Why a run may be slower than predicted: causes that alone could explain the difference.
//!
//! A log has the time of a step but not that of its parts. So each cause is a question to the step model: how much slower
//! would this part have to be if everything else were as predicted? An answer is listed if it is plausible.

use crate::choices::choices;
use crate::cluster_factors::{ClusterFactor, ClusterFactors};
use crate::estimate::{Breakdown, Constants, Inputs, Interval, StepPart};
use crate::layout::Layout;
use crate::options::TrainingOptions;
use crate::scenario::Scenario;
use crate::units::{longer, readable, significant};
use serde::{Deserialize, Serialize};

/// How much longer than predicted, as a fraction, a step must take before causes are listed. The interval of a measured recipe is
/// narrower than this, and a healthy run may be as slow.
const MARGIN: f64 = 0.05;

/// The most causes that are listed.
const MOST_CAUSES: usize = 4;

/// Slow steps are named only if they raise the mean by at least this share of the predicted step. Less is noise.
const LEAST_FROM_SLOW_STEPS: f64 = 0.01;

/// The largest plausible factor on communication through TCP sockets: those of a management network of 1 Gbit/s instead of 400 or
/// 800.
const MOST_WITH_SOCKETS: f64 = 1000.0;

/// The number of bisections when searching for a factor: enough for seven digits.
const HALVINGS: u32 = 32;

/// A step that took longer than predicted, by a clear margin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Slowdown {
    /// The seconds that a step took: the step time that judges the run.
    pub step_time_s: f64,
    /// By how many seconds that is longer than predicted.
    pub excess_s: f64,
    /// How many of these seconds are due to steps that are slower than usual; 0 if no step is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slow_steps_s: f64,
    /// Every how many steps these come; null if they are not at regular intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_steps_period: Option<u64>,
    /// The upper end of the prediction's 80 % interval, in seconds.
    pub high_s: f64,
    /// Possible causes of the extra seconds of every step, each sufficient by itself, the smallest change first; empty if no
    /// single cause suffices. With TCP sockets, the network and what crosses it come first, and communication that doesn't cross
    /// it is left out.
    pub causes: Vec<SlowCause>,
    /// Whether NCCL connected nodes through TCP sockets, which is a frequent cause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uses_sockets: bool,
}

/// The measured step time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeasuredStep {
    /// The mean of the steps by which the run is judged, in seconds.
    pub(super) mean_s: f64,
    /// What a usual step takes, in seconds, at most `mean_s`.
    pub(super) usual_s: f64,
    /// Every how many steps a slow one comes, if they are at regular intervals.
    pub(super) slow_steps_period: Option<u64>,
}

/// A change of the predicted step that would make it as long as the measured one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SlowCause {
    /// What would have to be slower.
    pub kind: SlowCauseKind,
    /// How many times as slow as predicted it would have to be; null for `no_overlap`, which has no degree.
    pub factor: Option<f64>,
    /// The seconds that this would add to a step.
    pub added_s: f64,
}

choices! {
    /// What could make a step longer than predicted.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    SlowCauseKind {
        /// Communication does not overlap with computation.
        NoOverlap "no_overlap",
        /// All GPUs compute more slowly, or the slowest one, for which the others wait.
        Compute "compute",
        /// The network between nodes has less bandwidth.
        Network "network",
        /// Exposed communication of tensor parallelism.
        TensorParallel "tensor_parallel",
        /// Exposed communication of context parallelism.
        ContextParallel "context_parallel",
        /// Exposed all-to-all exchange between experts.
        ExpertParallel "expert_parallel",
        /// Exposed transfers between pipeline stages.
        PipelineParallel "pipeline_parallel",
        /// Exposed communication of gradients and weights.
        DataParallel "data_parallel",
        /// The pipeline bubble.
        Bubble "bubble",
        /// The host launches kernels more slowly.
        Host "host",
        /// The optimizer step.
        Optimizer "optimizer",
    }
}

impl SlowCauseKind {
    /// Returns the parts of the predicted step that would be slower; none where the model itself says what changes.
    const fn parts(self) -> &'static [StepPart] {
        match self {
            Self::NoOverlap | Self::Network | Self::Host => &[],
            // While the pipeline fills and drains, GPUs wait for others that compute.
            Self::Compute => {
                &[StepPart::Matmul, StepPart::Attention, StepPart::MemoryBound, StepPart::Bubble]
            }
            Self::TensorParallel => &[StepPart::TensorParallel],
            Self::ContextParallel => &[StepPart::ContextParallel],
            Self::ExpertParallel => &[StepPart::ExpertParallel],
            Self::PipelineParallel => &[StepPart::PipelineParallel],
            Self::DataParallel => &[StepPart::DataParallel],
            Self::Bubble => &[StepPart::Bubble],
            Self::Optimizer => &[StepPart::Optimizer],
        }
    }

    /// Returns over how many GPUs with consecutive ranks it communicates; none if it isn't communication.
    fn reach(self, layout: &Layout) -> Option<u32> {
        match self {
            Self::TensorParallel => Some(layout.tp()),
            Self::ContextParallel => Some(layout.tp() * layout.cp()),
            Self::ExpertParallel => Some(layout.expert_tp() * layout.ep()),
            Self::DataParallel => Some(layout.gpus() / layout.pp()),
            Self::Network | Self::PipelineParallel => Some(layout.gpus()),
            Self::NoOverlap | Self::Compute | Self::Bubble | Self::Host | Self::Optimizer => None,
        }
    }

    /// Returns the largest plausible factor.
    const fn most(self) -> f64 {
        match self {
            // A GPU with the lowest clocks of its power limit still runs at about half its speed.
            Self::Compute => 2.5,
            // One of eight network adapters is in use.
            Self::Network => 8.0,
            // Beyond that, the recipe or something else is wrong.
            _ => 3.0,
        }
    }
}

impl Slowdown {
    /// Returns the possible causes of a scenario's slow steps; none if the usual step is not clearly longer than predicted.
    /// `uses_sockets` says that TCP sockets connect the NVLink domains.
    pub(super) fn of(
        scenario: &Scenario,
        predicted: Interval,
        measured: MeasuredStep,
        uses_sockets: bool,
    ) -> Option<Self> {
        let MeasuredStep { mean_s, usual_s, slow_steps_period } = measured;
        let limit = predicted.high.max(predicted.mid * (1.0 + MARGIN));
        (predicted.mid > 0.0 && mean_s.is_finite() && usual_s > limit).then_some(())?;
        let has_slow_steps = mean_s - usual_s >= LEAST_FROM_SLOW_STEPS * predicted.mid;
        let step_time_s = if has_slow_steps { usual_s } else { mean_s };
        let step = StepModel::new(scenario, predicted);
        // Whether communication is through sockets; none where that doesn't matter.
        let by_socket = |kind: SlowCauseKind| {
            let reach = kind.reach(&scenario.layout).filter(|_| uses_sockets)?;
            Some(reach > scenario.gpu.nvlink_domain)
        };
        let cause = |kind: SlowCauseKind| match by_socket(kind) {
            None => step.cause(kind, kind.most(), step_time_s),
            Some(true) => step.cause(kind, MOST_WITH_SOCKETS, step_time_s),
            Some(false) => None,
        };
        let mut causes: Vec<SlowCause> = SlowCauseKind::ALL.into_iter().filter_map(cause).collect();
        let change = |cause: &SlowCause| cause.factor.unwrap_or(1.0);
        let place = |cause: &SlowCause| {
            (uses_sockets && cause.kind != SlowCauseKind::Network, by_socket(cause.kind).is_none())
        };
        causes.sort_by(|one, other| {
            place(one).cmp(&place(other)).then_with(|| change(one).total_cmp(&change(other)))
        });
        causes.truncate(MOST_CAUSES);
        Some(Self {
            step_time_s: mean_s,
            excess_s: mean_s - predicted.mid,
            slow_steps_s: mean_s - step_time_s,
            slow_steps_period: slow_steps_period.filter(|_| has_slow_steps),
            high_s: predicted.high,
            causes,
            uses_sockets,
        })
    }

    /// Returns the slowdown and its possible causes in a few sentences.
    #[must_use]
    pub fn sentence(&self) -> String {
        let seconds = |seconds: f64| format!("{} s", readable(seconds));
        let sockets = match self.uses_sockets {
            true => " NCCL connected nodes through TCP sockets, a likely cause: fix the network first.",
            false => "",
        };
        let every_step_s = seconds(self.excess_s - self.slow_steps_s);
        let (split, explained) = match self.slow_steps_s > 0.0 {
            true => {
                let slow_steps = match self.slow_steps_period {
                    Some(period) => format!("stalls every {period} steps"),
                    None => "slower steps".to_owned(),
                };
                let split = format!(
                    ": {every_step_s} on every step, and {} from {slow_steps}",
                    seconds(self.slow_steps_s)
                );
                (split, format!("the {every_step_s}"))
            }
            false => (String::new(), "it".to_owned()),
        };
        let causes: Vec<String> = self.causes.iter().map(SlowCause::text).collect();
        let causes = match causes.as_slice() {
            [] => format!(
                "No single part of the predicted step explains {explained}, because each would have to be implausibly slow. \
                 Check that the recipe is right, and look for time that the model doesn't count: data loading, logging, other \
                 jobs on the nodes."
            ),
            [one] => format!("This would explain {explained}: {one}."),
            several => format!("Each of these alone would explain {explained}: {}.", several.join("; ")),
        };
        format!(
            "A step took {}, {} longer than predicted ({}, 80 % range up to {}){split}.{sockets} {causes}",
            seconds(self.step_time_s),
            seconds(self.excess_s),
            seconds(self.step_time_s - self.excess_s),
            seconds(self.high_s)
        )
    }
}

impl SlowCause {
    /// Returns the cause as a part of a sentence.
    fn text(&self) -> String {
        let factor = self.factor.unwrap_or(1.0);
        let percent = format!("{} %", significant(100.0 / factor, 2));
        let longer = longer(factor, "predicted");
        match self.kind {
            SlowCauseKind::NoOverlap => {
                format!("communication that doesn't overlap with computation (+{} s)", readable(self.added_s))
            }
            SlowCauseKind::Compute => format!(
                "computation at {percent} of the predicted speed, on all GPUs or the slowest (clocks, power limit)"
            ),
            SlowCauseKind::Network => {
                format!("the network between nodes at {percent} of the predicted bandwidth")
            }
            SlowCauseKind::TensorParallel => format!("exposed tensor-parallel communication {longer}"),
            SlowCauseKind::ContextParallel => format!("exposed context-parallel communication {longer}"),
            SlowCauseKind::ExpertParallel => {
                format!("exposed expert all-to-all {longer} (uneven routing, network)")
            }
            SlowCauseKind::PipelineParallel => format!("exposed pipeline transfers {longer}"),
            SlowCauseKind::DataParallel => format!("exposed data-parallel communication {longer}"),
            SlowCauseKind::Bubble => format!("a pipeline bubble {longer} (uneven stages)"),
            SlowCauseKind::Host => {
                format!("kernel launches on the host {longer} (CPU, process binding, no CUDA graphs)")
            }
            SlowCauseKind::Optimizer => format!("an optimizer step {longer}"),
        }
    }
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// The model of a scenario's step, scaled to its prediction.
struct StepModel<'a> {
    scenario: &'a Scenario,
    predicted: Interval,
    /// The parts of the predicted step.
    parts: Breakdown,
    /// Predicted over modelled seconds.
    scale: f64,
}

impl<'a> StepModel<'a> {
    fn new(scenario: &'a Scenario, predicted: Interval) -> Self {
        let modelled = Breakdown::of(&scenario.inputs(), Constants::embedded());
        let scale = predicted.mid / modelled.step_time_s();
        Self { scenario, predicted, parts: modelled.scaled(scale), scale }
    }

    /// Returns how slow one thing would have to be, by a factor of at most `most`, for the step to take `step_time_s`; none if that
    /// is not plausible.
    fn cause(&self, kind: SlowCauseKind, most: f64, step_time_s: f64) -> Option<SlowCause> {
        let excess_s = step_time_s - self.predicted.mid;
        let (factor, added_s) = match kind {
            SlowCauseKind::NoOverlap => (None, self.without_overlap_s(step_time_s)?),
            SlowCauseKind::Network => (self.factor(ClusterFactor::Network, most, step_time_s), excess_s),
            SlowCauseKind::Host => (self.factor(ClusterFactor::Host, most, step_time_s), excess_s),
            _ => (Some(1.0 + excess_s / self.part_s(kind)), excess_s),
        };
        let is_plausible = match factor {
            None => kind == SlowCauseKind::NoOverlap,
            Some(factor) => factor <= most,
        };
        is_plausible.then_some(SlowCause { kind, factor, added_s })
    }

    /// Returns the predicted seconds of the parts that a cause makes slower, with the wait for the slowest GPU, which is a share of
    /// the other parts.
    fn part_s(&self, kind: SlowCauseKind) -> f64 {
        let own = self.parts.parts().into_iter().filter(|(part, _)| kind.parts().contains(part));
        let step_s = self.parts.step_time_s();
        own.map(|(_, seconds)| seconds).sum::<f64>() * step_s / (step_s - self.parts.straggling)
    }

    /// Returns the predicted seconds of the step with other options.
    fn step_s(&self, options: &TrainingOptions) -> f64 {
        let inputs = Inputs { options, ..self.scenario.inputs() };
        self.scale * Breakdown::of(&inputs, Constants::embedded()).step_time_s()
    }

    /// Returns the seconds that the step takes longer without overlap; none if the step of `step_time_s` is not in the interval of
    /// that prediction.
    fn without_overlap_s(&self, step_time_s: f64) -> Option<f64> {
        let options = self.scenario.options;
        let without_s =
            options.overlap.then(|| self.step_s(&TrainingOptions { overlap: false, ..options }))?;
        let Interval { low, high, .. } = self.predicted.times(without_s / self.predicted.mid);
        (low..=high).contains(&step_time_s).then_some(without_s - self.predicted.mid)
    }

    /// Returns how many times as slow, at most `most`, something of the cluster is if the step takes `step_time_s`.
    fn factor(&self, factor: ClusterFactor, most: f64, step_time_s: f64) -> Option<f64> {
        let options = self.scenario.options;
        let step_s = |times: f64| {
            let cluster = slower(options.cluster, factor, times);
            self.step_s(&TrainingOptions { cluster, ..options })
        };
        if step_s(most) < step_time_s {
            return None;
        }
        let (mut low, mut high) = (1.0, most);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            match step_s(middle) < step_time_s {
                true => low = middle,
                false => high = middle,
            }
        }
        Some(high)
    }
}

/// Returns the factors of a cluster whose factor `slow` is `times` times as slow.
fn slower(cluster: ClusterFactors, slow: ClusterFactor, times: f64) -> ClusterFactors {
    // The factor of the network is on its bandwidth, that of the host on its time.
    let times = if slow == ClusterFactor::Network { 1.0 / times } else { times };
    let factor =
        |factor: ClusterFactor| if factor == slow { cluster.of(factor) * times } else { cluster.of(factor) };
    ClusterFactors::new(ClusterFactor::ALL.map(factor))
}

#[cfg(test)]
mod tests {
    use super::super::{Intake, Report, View};
    use super::*;
    use crate::catalog::Catalog;
    use crate::estimate::Estimate;
    use crate::field::Field;
    use crate::spec::Spec;

    /// A step time with no slower steps.
    fn steady(step_time_s: f64) -> MeasuredStep {
        MeasuredStep { mean_s: step_time_s, usual_s: step_time_s, slow_steps_period: None }
    }

    fn scenarios() -> impl Iterator<Item = Scenario> {
        let recipes = Catalog::embedded().recipes().iter();
        recipes
            .filter_map(|recipe| Spec::default().with(Field::Recipe, recipe.id.to_string()).scenario().ok())
    }

    #[test]
    fn every_cause_makes_the_predicted_step_as_long_as_the_measured_one() {
        let mut kinds = std::collections::BTreeSet::new();
        for scenario in scenarios() {
            let predicted = Estimate::of(&scenario).step_time_s;
            let step_time_s = 1.3 * predicted.high;
            let slowdown = Slowdown::of(&scenario, predicted, steady(step_time_s), false).unwrap();
            assert!(slowdown.causes.len() <= MOST_CAUSES);
            let factors: Vec<f64> = slowdown.causes.iter().map(|cause| cause.factor.unwrap_or(1.0)).collect();
            assert!(factors.is_sorted(), "{slowdown:?}");
            let step = StepModel::new(&scenario, predicted);
            for SlowCause { kind, factor, added_s } in slowdown.causes {
                kinds.insert(kind);
                let factor = factor.unwrap_or(1.0);
                assert!((1.0..=kind.most()).contains(&factor), "{kind}: {factor}");
                let of_cluster = match kind {
                    SlowCauseKind::NoOverlap => continue,
                    SlowCauseKind::Network => Some(ClusterFactor::Network),
                    SlowCauseKind::Host => Some(ClusterFactor::Host),
                    _ => None,
                };
                let options = scenario.options;
                let with_cause = match of_cluster {
                    Some(slow) => {
                        let cluster = slower(options.cluster, slow, factor);
                        step.step_s(&TrainingOptions { cluster, ..options })
                    }
                    None => predicted.mid + (factor - 1.0) * step.part_s(kind),
                };
                assert!(
                    (with_cause / step_time_s - 1.0).abs() < 1e-6,
                    "{kind}: {with_cause} of {step_time_s}"
                );
                assert!((predicted.mid + added_s - step_time_s).abs() < 1e-6 * step_time_s, "{kind}");
            }
        }
        assert!(kinds.contains(&SlowCauseKind::Compute) && kinds.len() > 2, "{kinds:?}");
    }

    #[test]
    fn a_step_that_takes_as_long_as_without_overlap_names_that_first() {
        let mut named = 0;
        for scenario in scenarios().filter(|scenario| scenario.options.overlap) {
            let predicted = Estimate::of(&scenario).step_time_s;
            let without = TrainingOptions { overlap: false, ..scenario.options };
            let step_time_s = StepModel::new(&scenario, predicted).step_s(&without);
            let Some(slowdown) = Slowdown::of(&scenario, predicted, steady(step_time_s), false) else {
                continue;
            };
            assert_eq!(slowdown.causes[0].kind, SlowCauseKind::NoOverlap, "{slowdown:?}");
            assert!((slowdown.causes[0].added_s - slowdown.excess_s).abs() < 1e-9 * step_time_s);
            named += 1;
        }
        assert!(named > 0);
    }

    #[test]
    fn sockets_keep_the_network_and_leave_out_what_does_not_cross_it() {
        let crosses = |scenario: &Scenario| scenario.layout.gpus() > scenario.gpu.nvlink_domain;
        let mut named = 0;
        for scenario in scenarios().filter(crosses) {
            let predicted = Estimate::of(&scenario).step_time_s;
            let cluster = slower(scenario.options.cluster, ClusterFactor::Network, 40.0);
            let options = TrainingOptions { cluster, ..scenario.options };
            let step_time_s = StepModel::new(&scenario, predicted).step_s(&options);
            let of = |uses_sockets| Slowdown::of(&scenario, predicted, steady(step_time_s), uses_sockets);
            let (Some(sockets), Some(other)) = (of(true), of(false)) else { continue };
            assert!(other.causes.iter().all(|cause| cause.kind != SlowCauseKind::Network), "{other:?}");
            let first = sockets.causes[0];
            assert_eq!(first.kind, SlowCauseKind::Network, "{sockets:?}");
            assert!(first.factor.is_some_and(|factor| (factor / 40.0 - 1.0).abs() < 1e-3), "{sockets:?}");
            assert!(first.text().ends_with("2.5 % of the predicted bandwidth"), "{}", first.text());
            let has_tp = sockets.causes.iter().any(|cause| cause.kind == SlowCauseKind::TensorParallel);
            assert!(!has_tp || scenario.layout.tp() > scenario.gpu.nvlink_domain, "{sockets:?}");
            named += 1;
        }
        assert!(named > 0);
    }

    #[test]
    fn only_a_step_clearly_above_the_prediction_is_slow() {
        let scenario =
            Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04").scenario().unwrap();
        let of = |low, high, step_time_s| {
            Slowdown::of(&scenario, Interval { low, mid: 10.0, high }, steady(step_time_s), false)
        };
        assert_eq!(of(9.7, 10.3, 10.4), None, "within the margin");
        assert_eq!(of(8.0, 12.0, 11.9), None, "within the interval");
        assert_eq!(of(9.7, 10.3, f64::INFINITY), None);
        assert_eq!(of(9.7, 10.3, f64::NAN), None);
        let slow = of(9.7, 10.3, 12.0).unwrap();
        assert_eq!((slow.step_time_s, slow.excess_s, slow.high_s), (12.0, 2.0, 10.3));
        assert_eq!((slow.slow_steps_s, slow.slow_steps_period), (0.0, None));
        assert!(of(9.7, 10.3, 1e6).unwrap().causes.is_empty(), "nothing is that slow");
    }

    #[test]
    fn stalls_are_told_from_what_makes_every_step_longer() {
        let scenario =
            Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04").scenario().unwrap();
        let of = |mean_s, usual_s| {
            let measured = MeasuredStep { mean_s, usual_s, slow_steps_period: Some(6) };
            Slowdown::of(&scenario, Interval { low: 9.7, mid: 10.0, high: 10.3 }, measured, false)
        };
        let stalls = of(13.0, 12.0).unwrap();
        assert_eq!((stalls.step_time_s, stalls.excess_s, stalls.slow_steps_s), (13.0, 3.0, 1.0));
        assert_eq!(stalls.causes, of(12.0, 12.0).unwrap().causes, "they explain what every step takes");
        // Less is noise, and then the causes explain the mean.
        let noise = of(12.05, 12.0).unwrap();
        assert_eq!((noise.excess_s, noise.slow_steps_s, noise.slow_steps_period), (12.05 - 10.0, 0.0, None));
        assert_eq!(of(13.0, 10.0), None, "the usual step is as predicted");
    }

    #[test]
    fn the_sentence_has_the_numbers_and_every_cause() {
        let cause = |kind, factor, added_s| SlowCause { kind, factor, added_s };
        let mut slow = Slowdown {
            step_time_s: 9.1,
            excess_s: 1.9,
            slow_steps_s: 0.0,
            slow_steps_period: None,
            high_s: 7.6,
            causes: vec![
                cause(SlowCauseKind::NoOverlap, None, 1.8),
                cause(SlowCauseKind::Compute, Some(1.41), 1.9),
                cause(SlowCauseKind::ExpertParallel, Some(2.41), 1.9),
            ],
            uses_sockets: false,
        };
        assert_eq!(
            slow.sentence(),
            "A step took 9.10 s, 1.90 s longer than predicted (7.20 s, 80 % range up to 7.60 s). Each of these alone would \
             explain it: communication that doesn't overlap with computation (+1.80 s); computation at 71 % of the predicted \
             speed, on all GPUs or the slowest (clocks, power limit); exposed expert all-to-all 2.4 times as long as predicted \
             (uneven routing, network)."
        );
        let stalls = Slowdown {
            step_time_s: 15.1,
            excess_s: 7.9,
            slow_steps_s: 6.0,
            slow_steps_period: Some(6),
            ..slow.clone()
        };
        let start = "A step took 15.1 s, 7.90 s longer than predicted (7.20 s, 80 % range up to 7.60 s): 1.90 s on every step, and \
                     6.00 s from stalls every 6 steps. Each of these alone would explain the 1.90 s: communication";
        assert!(stalls.sentence().starts_with(start), "{}", stalls.sentence());
        let irregular = Slowdown { slow_steps_period: None, ..stalls };
        assert!(
            irregular.sentence().contains("and 6.00 s from slower steps. Each"),
            "{}",
            irregular.sentence()
        );
        slow.uses_sockets = true;
        assert!(
            slow.sentence().contains("up to 7.60 s). NCCL connected nodes through TCP sockets"),
            "{}",
            slow.sentence()
        );
        slow.causes.truncate(1);
        assert!(slow.sentence().contains("This would explain it: communication"), "{}", slow.sentence());
        slow.causes.clear();
        assert!(slow.sentence().contains("No single part of the predicted step"), "{}", slow.sentence());
    }

    #[test]
    fn a_log_of_a_known_recipe_has_a_prediction_and_a_slow_one_its_causes() {
        let report = |name: &str, seconds: fn(u32) -> f64, window: &str| {
            let mut intake = Intake::new(name, &Spec::default());
            for step in 0..50 {
                let seconds = seconds(step);
                let line =
                    format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {seconds} |\n");
                intake.feed(line.as_bytes());
            }
            Report::of(&intake.finish(), &View { window: window.parse().ok(), ..View::default() })
        };
        let known = "log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out";
        let healthy = report(known, |_| 9.4, "last");
        assert!(healthy.prediction.is_some_and(|prediction| prediction.error.is_some()));
        assert_eq!((healthy.plan, healthy.slowdown), (None, None));
        let slow = report(known, |_| 13.0, "last");
        assert_eq!(slow.prediction.map(|prediction| prediction.within), Some(Some(false)));
        let causes = slow.slowdown.unwrap().causes;
        assert!(causes.iter().any(|cause| cause.kind == SlowCauseKind::Compute), "{causes:?}");
        // A few slow steps, which other notes name, don't make the whole step suspicious.
        let uneven = report(known, |step| if step == 40 { 90.0 } else { 9.4 }, "35-44");
        assert_eq!((uneven.prediction.map(|one| one.within), uneven.slowdown), (Some(Some(false)), None));
        let last = report(known, |step| if step == 49 { 13.0 } else { 9.4 }, "last");
        assert_eq!((last.prediction.map(|one| one.within), last.slowdown), (Some(Some(false)), None));
        // Stalls are named beside what every step takes longer, if they are scored.
        let stalled = |step: u32| if step.is_multiple_of(6) { 43.0 } else { 13.0 };
        let stalls = report(known, stalled, "35-44").slowdown.unwrap();
        assert_eq!((stalls.step_time_s, stalls.slow_steps_period), (19.0, Some(6)));
        assert!((stalls.slow_steps_s - 6.0).abs() < 1e-9, "{stalls:?}");
        let usual = report(known, stalled, "last").slowdown.unwrap();
        assert_eq!((usual.slow_steps_s, usual.slow_steps_period), (0.0, None));
        let unknown = report("train.log", |_| 13.0, "last");
        assert_eq!((unknown.prediction, unknown.slowdown), (None, None));
    }
}
