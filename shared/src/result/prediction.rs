//! The comparison of a run with what is predicted for its scenario.

use super::slow_period::median;
use super::slowdown::{MeasuredStep, Slowdown};
use super::warnings::SlowSteps;
use super::{AssumedSettings, PlanComparison, Report, states_software};
use crate::estimate::{Estimate, MemoryVerdict};
use crate::log::{Log, Nccl, Status};
use crate::scenario::Scenario;
use crate::units::gib;
use std::ops::Range;

const GIB: f64 = 1_073_741_824.0;

impl Report {
    /// Compares the run with the prediction for its scenario, unless it has a plan. If it is clearly slower than predicted or
    /// planned, looks for what could explain that.
    pub(super) fn predict(
        &mut self,
        log: &Log,
        scenario: Option<&Scenario>,
        assumed: AssumedSettings,
        slow: &SlowSteps,
    ) {
        let (Some(scenario), Some(times), Some(judged)) = (scenario, self.times(), self.judged_steps())
        else {
            return;
        };
        if self.status != Status::Scored {
            return;
        }
        // Nobody measured the framework, so that any prediction is one of other software, unless the user described it.
        let unmeasured = self.format.filter(|format| format.is_unmeasured());
        let software = scenario.options.software;
        let other = unmeasured.filter(|_| software.known().is_some());
        if let (Some(format), None, false) = (unmeasured, self.plan, states_software(&self.scenario)) {
            self.notes.push(format!(
                "No prediction, because the speed of {} isn't known. Set the software to see a prediction for it.",
                format.title()
            ));
            return;
        }
        let assumes_layout = assumed.layout && self.plan.is_none();
        if self.plan.is_none() {
            let estimate = Estimate::of(scenario);
            if assumes_layout && estimate.memory.verdict() == MemoryVerdict::DoesNotFit {
                self.notes.push(format!(
                    "No prediction, because the log doesn't state the layout, and with TP 1, PP 1 and MBS 1, a GPU would need {} of {}. \
                     Set TP, PP, MBS, recomputation and FSDP.",
                    gib(estimate.memory.needed_bytes() / GIB),
                    gib(estimate.memory.capacity_bytes / GIB)
                ));
                return;
            }
            let predicted = estimate.step_time_s;
            let is_usable = predicted.low > 0.0 && predicted.mid.is_finite() && predicted.high.is_finite();
            self.prediction = is_usable.then(|| PlanComparison::of(predicted, Some(times)));
            self.assumed_software = assumed.software.filter(|_| is_usable);
            self.notes.extend(self.assumed_software.map(|software| {
                format!(
                    "The prediction assumes {}, because the log doesn't state the exact software. Set it if the run \
                     used other software.",
                    software.title()
                )
            }));
            self.notes.extend(other.filter(|_| is_usable).map(|format| {
                let (title, format) = (software.title(), format.title());
                format!(
                    "The prediction is for {title}, but {format} wrote the log, and its speed isn't known."
                )
            }));
            if assumes_layout && is_usable {
                self.notes.push(
                    "The prediction assumes TP 1, PP 1 and MBS 1, because the log doesn't state the layout. Set the layout if the run \
                     used another."
                        .to_owned(),
                );
            }
            self.warn_of_speed();
        }
        let reference = self
            .plan
            .or(self.prediction)
            .filter(|_| self.comparable.yes && other.is_none() && !assumes_layout);
        let Some(reference) = reference else { return };
        // A few slow steps raise the mean, or are the only steps that judge the run. The notes name them; the parts of a step
        // don't explain them.
        let steps = &log.steps;
        let median_of = |rows: Range<usize>| median(steps.step_time_s.values(rows).collect());
        let medians = [median_of(steps.rows(judged)), median_of(steps.len() / 2..steps.len())];
        let beside_slow = slow.periods.iter().map(|slow| slow.others_s);
        let usual_s = medians.into_iter().flatten().chain(beside_slow).fold(times.judged_s, f64::min);
        let step = MeasuredStep { mean_s: times.judged_s, usual_s, slow_steps_period: slow.every };
        let uses_sockets = log.nccl.as_ref().is_some_and(Nccl::uses_sockets);
        self.slowdown = Slowdown::of(scenario, reference.step_time_s, step, uses_sockets);
    }
}
