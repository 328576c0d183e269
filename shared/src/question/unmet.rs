//! Why no plan reaches the goal, and what would help.

use super::{PlannedRun, TrainableTokens};
use crate::message::Setting;

/// Why no plan reaches the goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unmet {
    /// No layout works on any of the numbers of GPUs.
    NoLayout,
    /// Every plan takes longer than the deadline.
    TooSlow {
        /// Days within which the best plan ends with the chance that was asked for.
        days: f64,
    },
    /// The cheapest plan may cost more than the budget.
    TooExpensive {
        /// Cost within which the cheapest plan stays with the chance that was asked for.
        cost: f64,
        /// The tokens of the relaxation that changes them: the most, rounded down, with which a plan reaches the goal; 0 if none
        /// was found.
        tokens: f64,
    },
    /// The goal is a budget, but no price is known.
    NoPrice,
}

/// A change of the question with which a plan works.
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
    /// The most tokens with which one reaches it.
    pub(super) enough_tokens: Option<&'a TrainableTokens>,
    /// The numbers of GPUs that were searched, ascending.
    pub(super) tried: &'a [u32],
}
