//! How many tokens the limits of a question allow with a plan.

use super::{GpuOffer, PlannedRun, Question};
use crate::field::Field;
use crate::units::parse_count;

/// Rounded numbers of tokens that are tried with a plan, at most. Restarts and the last step's rounding don't shrink with the tokens, so
/// that the first may be too many.
const MOST_TRIED: u32 = 4;

/// Tokens that are within the limits of a question, with a plan that trains them.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainableTokens {
    /// The tokens, with two significant digits: more would promise more than a prediction can.
    pub tokens: f64,
    /// The plan that trains them.
    pub run: PlannedRun,
}

impl Question {
    /// Returns the most tokens, rounded down, that the limits allow with the GPUs and the layout of a plan; none if nothing limits
    /// them, without the price that a budget needs, or if they allow fewer tokens than any question may have. Every text that names
    /// a sufficient number of tokens uses this one.
    pub(super) fn within_limits(&self, offer: &GpuOffer, run: &PlannedRun) -> Option<TrainableTokens> {
        let bounds = Field::Tokens.bounds();
        let most = Some(self.reach(run)?.tokens()).filter(|most| most.is_finite())?;
        // Commands and links with these tokens must be accepted.
        let most = most.min(bounds.nearest(most, parse_count));
        let step = libm::pow(10.0, libm::log10(most).floor() - 1.0);
        let steps = (most / step).floor();
        let tried = (0..MOST_TRIED).map(|fewer| (steps - f64::from(fewer)) * step);
        tried.filter(|tokens| bounds.contains(*tokens, parse_count)).find_map(|tokens| {
            let question = Question { tokens, ..self.clone() };
            let days_as_measured = run.days_as_measured.map(|days| days * tokens / self.tokens);
            let run = PlannedRun::new(&question, offer, run.gpus, run.layout);
            let run = PlannedRun { days_as_measured, ..run };
            self.reaches(&run).then_some(TrainableTokens { tokens, run })
        })
    }

    /// Returns how many tokens the limits allow with a plan; none without the price that a budget needs. Days and cost grow with
    /// the tokens.
    pub(super) fn reach(&self, run: &PlannedRun) -> Option<Reach> {
        let for_budget = match self.budget() {
            Some(budget) => self.tokens * (budget / run.cost_with(self.chance)?),
            None => f64::INFINITY,
        };
        let in_time = self.most_days().map_or(f64::INFINITY, |most| most / run.days_with(self.chance));
        Some(Reach { in_time: self.tokens * in_time, for_budget })
    }
}

/// How many tokens the limits allow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    in_time: f64,
    for_budget: f64,
}

impl Reach {
    /// Whether time limits the tokens, rather than money.
    pub(super) fn is_by_time(self) -> bool {
        self.in_time <= self.for_budget
    }

    pub(super) fn tokens(self) -> f64 {
        self.in_time.min(self.for_budget)
    }
}
