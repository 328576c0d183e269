//! Why no plan reaches the goal, and what would help.

use super::{PlannedRun, TrainableTokens};
use crate::message::Setting;
use serde::{Deserialize, Serialize};

/// Why no plan reaches the goal. The figures are those of [`GpuAnswer::shown`](super::GpuAnswer::shown), the plan that comes nearest to
/// the goal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unmet {
    /// No layout works on any of the numbers of GPUs.
    NoLayout,
    /// Every plan takes longer than the deadline.
    TooSlow {
        /// The days in which the fastest plan ends at the chosen chance.
        days: f64,
    },
    /// The cheapest of the plans in time may cost more than the budget.
    TooExpensive {
        /// The cost that this plan doesn't exceed at the chosen chance.
        cost: f64,
        /// The tokens of the relaxation that changes them: the most, rounded down, that a plan trains within the goal; 0 if none
        /// was found.
        tokens: f64,
        /// The number of GPUs that train these tokens.
        gpus: u32,
    },
    /// The goal is a budget, but no price is known.
    NoPrice,
}

impl Unmet {
    /// Whether measured software decided. To reach a goal 9 times in 10, a plan has to pass two tests: with the end of its range,
    /// which ignores that its software is unmeasured, and with the expected days and cost of measured software. `slowest_days` and
    /// `most_cost` are the ends of the ranges of the plan that comes nearest.
    pub fn is_by_measured_software(self, slowest_days: f64, most_cost: Option<f64>) -> bool {
        match self {
            Unmet::TooSlow { days } => days > slowest_days,
            Unmet::TooExpensive { cost, .. } => most_cost.is_some_and(|most| cost > most),
            Unmet::NoLayout | Unmet::NoPrice => false,
        }
    }

    /// Returns by how much the goal is missed if the steps of the plan that comes nearest take `slowdown` times as long.
    #[must_use]
    pub fn slowed(self, slowdown: f64) -> Unmet {
        match self {
            Unmet::TooSlow { days } => Unmet::TooSlow { days: days * slowdown },
            Unmet::TooExpensive { cost, tokens, gpus } => {
                Unmet::TooExpensive { cost: cost * slowdown, tokens, gpus }
            }
            Unmet::NoLayout | Unmet::NoPrice => self,
        }
    }

    /// Returns by what factor the nearest plan exceeds the limits of the question: the GPU type with the smallest factor comes
    /// first. `cost` is the cost that this plan doesn't exceed, at the chance of the question. Types without a price come after
    /// those that exceed a limit, and types without a layout come last.
    pub fn excess(self, most_days: Option<f64>, budget: Option<f64>, cost: Option<f64>) -> f64 {
        let of_budget = |cost: f64| budget.map_or(1.0, |budget| cost / budget);
        match self {
            Unmet::TooExpensive { cost, .. } => of_budget(cost),
            // It may be too expensive as well.
            Unmet::TooSlow { days } => {
                most_days.map_or(1.0, |most| days / most).max(cost.map_or(1.0, of_budget))
            }
            Unmet::NoPrice => f64::MAX,
            Unmet::NoLayout => f64::INFINITY,
        }
    }
}

/// A change of the question that makes a plan work.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxation {
    /// The field to change, with its new value; an empty value clears it.
    pub setting: Setting,
    /// The plan with it.
    pub run: PlannedRun,
    /// Whether the plan reaches the goal. If not, it is the answer to a question without any layout, and no change that was tried
    /// reaches the goal.
    pub reaches_goal: bool,
}

/// The plans that do not reach the goal, but come near.
pub(super) struct Nearby<'a> {
    /// The plan that comes nearest.
    pub(super) nearest: Option<&'a PlannedRun>,
    /// The fastest that a budget covers.
    pub(super) affordable: Option<&'a PlannedRun>,
    /// The best that reaches the goal with the other chance.
    pub(super) with_other_chance: Option<&'a PlannedRun>,
    /// The most tokens that a plan trains within the goal.
    pub(super) enough_tokens: Option<&'a TrainableTokens>,
    /// The numbers of GPUs that were searched, ascending.
    pub(super) tried: &'a [u32],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_that_misses_its_limits_by_the_least_comes_nearest() {
        let expensive = |cost: f64| Unmet::TooExpensive { cost, tokens: 0.0, gpus: 0 };
        let excess = |unmet: Unmet, cost: f64| unmet.excess(Some(60.0), Some(2e6), Some(cost));
        let nearest_first = [
            excess(Unmet::TooSlow { days: 61.0 }, 1e6),
            excess(expensive(2.1e6), 2.1e6),
            excess(Unmet::TooSlow { days: 90.0 }, 1e6),
            // Late by a day, but twice as expensive as allowed.
            excess(Unmet::TooSlow { days: 61.0 }, 4e6),
            excess(expensive(9e6), 9e6),
            excess(Unmet::NoPrice, 0.0),
            excess(Unmet::NoLayout, 0.0),
        ];
        assert!(nearest_first.is_sorted_by(|one, other| one < other), "{nearest_first:?}");
        let late = Unmet::TooSlow { days: 90.0 };
        assert_eq!([late.excess(Some(60.0), None, Some(1e6)), late.excess(None, None, None)], [1.5, 1.0]);
    }
}
