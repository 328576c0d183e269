//! What the question asks of plans: its goal, the limits beside it, and the length of sequences that it leaves open.

use super::Findings;
use crate::message::search::{AskedGoal, FoundPlan, Spread};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::question::Chance;

impl Findings {
    /// Returns the goal of the question.
    pub(in crate::pages::plan) fn goal(&self) -> AskedGoal {
        self.asked.as_ref().map_or(AskedGoal::Open, |asked| asked.goal)
    }

    /// Returns the longest time that a plan may take without a deadline, in days; none if any time will do.
    fn longest_days(&self) -> Option<f64> {
        self.asked.as_ref()?.longest_days
    }

    /// Returns the time that plans may take, in days: the deadline, or the longest time without one; none if any time will do.
    pub(in crate::pages::plan) fn most_days(&self) -> Option<f64> {
        match self.goal() {
            AskedGoal::Deadline(limit) => Some(limit),
            AskedGoal::Budget(_) | AskedGoal::Open => self.longest_days(),
        }
    }

    /// Whether plans must hold the limits at the slow and expensive ends of their ranges.
    pub(in crate::pages::plan) fn is_by_slow_end(&self) -> bool {
        self.asked.as_ref().and_then(|asked| asked.chance) == Some(Chance::NineInTen)
    }

    /// Returns the budget: the goal, or the limit beside a deadline.
    pub(in crate::pages::plan) fn budget(&self) -> Option<f64> {
        match self.goal() {
            AskedGoal::Budget(budget) => Some(budget),
            AskedGoal::Deadline(_) | AskedGoal::Open => self.asked.as_ref()?.max_cost,
        }
    }

    /// Returns the sequence length that is assumed for an imported model; none for other models, or if one is typed.
    pub(in crate::pages::plan) fn own_sequences(&self) -> Option<u32> {
        let question = link::read(&self.query).spec;
        let text = question.raw(Field::Model);
        let is_own = Catalog::embedded().model(text).is_err() && question.get(Field::SeqLen).is_none();
        Some(Catalog::embedded().model_or_own(text).ok().filter(|_| is_own)?.seq_len)
    }
}

/// Whether a plan costs no more than the budget, if there is one: at the expensive end of its range, or in the middle.
pub(in crate::pages::plan) fn is_within(plan: &FoundPlan, budget: Option<f64>, by_slow_end: bool) -> bool {
    let end = |cost: Spread| if by_slow_end { cost.high } else { cost.mid };
    budget.is_none_or(|budget| plan.cost.is_none_or(|cost| end(cost) <= budget))
}
