//! The most tokens that a budget, a deadline or both train.

use super::{Goal, GpuOffer, Objective, PlannedRun, Question, Survey};
use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::units::format_count;

/// Digits of the answer. More would promise more than a prediction can.
const DIGITS: f64 = 100.0;

impl Question {
    /// Whether it asks for the number of tokens: the objective is the most of them, and none is given.
    pub fn seeks_tokens(&self) -> bool {
        self.objective == Objective::MostTokens && self.tokens_are_assumed
    }

    /// Returns the question with the most tokens, rounded down, that one of its GPU types can train within the budget, the
    /// deadline or both.
    ///
    /// # Errors
    /// Nothing limits the tokens, no price is known, or no layout works.
    pub fn with_most_tokens(&self) -> Result<Question, Problem> {
        let is_limited = self.budget().is_some()
            || (matches!(self.goal, Goal::Deadline(_)) && !self.goal_is_assumed && !self.counts.is_coarse());
        let refuse = |message| Problem::new(Field::Objective, self.objective, message);
        if !is_limited {
            return Err(refuse(message![
                "The most tokens need a limit: set ",
                Field::Budget,
                ", or ",
                Field::Deadline,
                " and ",
                Field::GpuRange,
                "."
            ]));
        }
        let most = self.offers.iter().filter_map(|offer| self.most_tokens_of(offer)).fold(0.0, f64::max);
        let step = libm::pow(10.0, libm::log10(most).floor()) / DIGITS * 10.0;
        let tokens = (most / step).floor() * step;
        // It is not a number if no plan is within the limits.
        if tokens.is_nan() || tokens < 1.0 {
            return Err(refuse(message![
                "No tokens can be trained: no layout works on these GPUs, or no price is known. Set ",
                Field::Tokens,
                " to see why."
            ]));
        }
        let spec = self.spec.clone().with(Field::Tokens, format_count(tokens));
        Ok(Question { spec, tokens, tokens_are_assumed: false, ..self.clone() })
    }

    /// Returns the most tokens that a GPU type can train; none without a layout or a price.
    fn most_tokens_of(&self, offer: &GpuOffer) -> Option<f64> {
        let mut survey = Survey::new(self, offer);
        let node = offer.gpu.gpus_per_node.max(1);
        let counts = self.counts.of_nodes(node);
        let reached: Vec<(u32, Reach)> =
            counts.iter().filter_map(|gpus| Some((*gpus, self.reach(&survey.best_run(*gpus)?)?))).collect();
        let best = reached.iter().max_by(|one, other| one.1.tokens().total_cmp(&other.1.tokens()))?;
        let mut most = best.1.tokens();
        if !self.counts.is_coarse() {
            return Some(most);
        }
        // Time limits small numbers of GPUs, and money large ones: between them, another number may train more.
        let slow = reached.iter().rev().find(|(_, reach)| reach.in_time <= reach.for_budget)?.0;
        let dear = reached.iter().find(|(gpus, _)| *gpus > slow).map_or(slow, |(gpus, _)| *gpus);
        let (mut slow, mut dear) = (slow / node, dear / node);
        while dear > slow + 1 {
            let between = (slow + dear) / 2;
            let reach = survey.best_run(between * node).and_then(|run| self.reach(&run));
            match reach {
                Some(reach) if reach.in_time <= reach.for_budget => slow = between,
                _ => dear = between,
            }
            most = most.max(reach.map_or(0.0, Reach::tokens));
        }
        Some(most)
    }

    /// Returns how many tokens the limits allow with a plan; none without the price that a budget needs. Days and cost grow with
    /// the tokens.
    fn reach(&self, run: &PlannedRun) -> Option<Reach> {
        let for_budget = match self.budget() {
            Some(budget) => self.tokens * (budget / run.expected_cost?),
            None => f64::INFINITY,
        };
        let in_time = match (self.goal, self.longest_days()) {
            (Goal::Deadline(limit), _) => limit / run.days_with(self.chance),
            (_, Some(longest)) => longest / run.days,
            _ => f64::INFINITY,
        };
        Some(Reach { in_time: self.tokens * in_time, for_budget })
    }
}

/// How many tokens the limits allow.
#[derive(Debug, Clone, Copy)]
struct Reach {
    in_time: f64,
    for_budget: f64,
}

impl Reach {
    fn tokens(self) -> f64 {
        self.in_time.min(self.for_budget)
    }
}
