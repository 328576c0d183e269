//! Why no plan reaches the goal, and what would help.

use super::PlannedRun;
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
    /// The cheapest plan costs more than the budget.
    TooExpensive {
        /// Cost of the cheapest plan.
        cost: f64,
        /// Tokens for which the budget is enough on the cheapest plan.
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
}
