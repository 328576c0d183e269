//! The most tokens that a budget, a deadline or both train, on any number of GPUs.

use super::limits::Reach;
use super::{Goal, GpuOffer, Objective, PlannedRun, Question, Survey, TrainableTokens};
use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::units::format_count;

impl Question {
    /// Whether it asks for the number of tokens: the objective is the most tokens, and no number is given.
    pub fn seeks_tokens(&self) -> bool {
        self.objective == Objective::MostTokens && self.tokens_are_assumed
    }

    /// Returns the question with the most tokens, rounded down, that one of its GPU types can train within the budget, the
    /// deadline or both, by the launch script of the plan.
    ///
    /// # Errors
    /// Nothing limits the tokens, the limits allow fewer than any question may have, no price is known, or no layout works.
    pub fn with_most_tokens(&self) -> Result<Question, Problem> {
        let refuse = |message| Problem::new(Field::Objective, self.objective, message);
        if !self.limits_tokens() {
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
        let most = self.offers.iter().filter_map(|offer| self.most_tokens_as_launched(offer));
        let tokens = most.map(|most| most.tokens).fold(0.0, f64::max);
        // No plan is within the limits.
        if tokens < 1.0 {
            return Err(refuse(message![
                "No number of tokens can be planned: no layout works on these GPUs, no price is known, or the limits allow \
                 fewer than ",
                Field::Tokens.bounds().least,
                " tokens. Set ",
                Field::Tokens,
                " to see why."
            ]));
        }
        let spec = self.spec.clone().with(Field::Tokens, format_count(tokens));
        Ok(Question { spec, tokens, tokens_are_assumed: false, ..self.clone() })
    }

    /// Whether the question limits the tokens: by a budget, or by a deadline and the numbers of GPUs.
    pub(super) fn limits_tokens(&self) -> bool {
        self.budget().is_some()
            || (matches!(self.goal, Goal::Deadline(_)) && !self.goal_is_assumed && !self.counts.is_coarse())
    }

    /// Returns the most tokens that a GPU type can train as predicted, rounded down, and the plan with them; none without a layout or a
    /// price.
    pub(super) fn most_tokens_of(&self, offer: &GpuOffer) -> Option<TrainableTokens> {
        let mut survey = Survey::new(self, offer);
        let node = offer.gpu.gpus_per_node.max(1);
        let counts = self.counts.of_nodes(node);
        let mut reached: Vec<(PlannedRun, Reach)> = Vec::new();
        for gpus in counts {
            reached.extend(survey.best_run(gpus).and_then(|run| self.with_reach(run)));
        }
        // Time limits small numbers of GPUs, and money large ones: between them, another number may train more.
        let slow = reached.iter().rev().find(|(_, reach)| reach.is_by_time()).map(|(run, _)| run.gpus);
        if let Some(slow) = slow.filter(|_| self.counts.is_coarse()) {
            let dear = reached.iter().find(|(run, _)| run.gpus > slow).map_or(slow, |(run, _)| run.gpus);
            let (mut slow, mut dear) = (slow / node, dear / node);
            while dear > slow + 1 {
                let between = (slow + dear) / 2;
                let found = survey.best_run(between * node).and_then(|run| self.with_reach(run));
                match &found {
                    Some((_, reach)) if reach.is_by_time() => slow = between,
                    _ => dear = between,
                }
                reached.extend(found);
            }
        }
        let best = reached.iter().max_by(|one, other| one.1.tokens().total_cmp(&other.1.tokens()))?;
        self.within_limits(offer, &best.0)
    }

    fn with_reach(&self, run: PlannedRun) -> Option<(PlannedRun, Reach)> {
        let reach = self.reach(&run)?;
        Some((run, reach))
    }
}
