//! The order of the GPU types by their plans, and the best plan.

use super::{Findings, OfferFindings};
use crate::message::search::{FoundPlan, Spread, Trust};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::estimate::Interval;
use trainplan_shared::question::{Contender, Objective, Unmet, doubt};
use trainplan_shared::sorting::sorted;

impl OfferFindings {
    /// Whether the launch script of the best plan can't be relied on: it may not fit in memory, or can't be written.
    fn is_unsure(&self) -> bool {
        self.script.is_some_and(|effect| effect.may_lack_memory || effect.is_unavailable)
    }
}

impl Findings {
    /// Returns the indices of the GPU types with a plan that reaches the goal, best first; those whose launch script can't be relied on come last.
    pub(in crate::pages::plan) fn reaching(&self) -> Vec<usize> {
        let (mut reaching, mut contenders) = (Vec::new(), Vec::new());
        for (index, offer) in self.offers.iter().enumerate() {
            let answer = offer.answer.as_ref().filter(|answer| answer.unmet.is_none());
            if let Some(plan) = answer.and_then(|answer| answer.plan.as_ref()) {
                reaching.push(index);
                contenders.push(contender(&offer.gpu.id, plan));
            }
        }
        let objective = self.asked.as_ref().and_then(|asked| asked.objective).unwrap_or(Objective::Fastest);
        let order = objective.across_gpu_types(&contenders).into_iter().map(|place| reaching[place]);
        let (unsure, mut sure): (Vec<usize>, Vec<usize>) =
            order.partition(|index| self.offers[*index].is_unsure());
        sure.extend(unsure);
        sure
    }

    /// Returns the indices of all GPU types, best first: those with a plan that reaches the goal, then the others by how near theirs
    /// comes to it.
    pub(in crate::pages::plan) fn ranked(&self) -> Vec<usize> {
        let mut ranked = self.reaching();
        let missing: Vec<usize> = (0..self.offers.len()).filter(|index| !ranked.contains(index)).collect();
        let excess = |index: &usize| {
            let answer = self.offers[*index].answer.as_ref();
            let cost = answer.and_then(|answer| answer.plan.as_ref()?.cost);
            let cost = cost.map(|cost| if self.is_by_slow_end() { cost.high } else { cost.mid });
            let unmet = answer.and_then(|answer| answer.unmet).unwrap_or(Unmet::NoLayout);
            unmet.excess(self.most_days(), self.budget(), cost)
        };
        ranked.extend(sorted(&missing, |one, other| excess(one).total_cmp(&excess(other))));
        ranked
    }

    /// Returns the index of the GPU type with the best plan; if none reaches the goal, of the one that comes nearest to it.
    pub(in crate::pages::plan) fn best(&self) -> Option<usize> {
        let has_plan =
            |index: &usize| self.offers[*index].answer.as_ref().is_some_and(|answer| answer.plan.is_some());
        self.ranked().into_iter().find(has_plan)
    }

    /// Returns what the plan of the headline is called on the card of its GPU type, once every GPU type is answered: only one that
    /// reaches the goal, by its launch script too, is the best.
    pub(in crate::pages::plan) fn badge(&self, index: usize) -> Option<&'static str> {
        let answer = self.offers.get(index)?.answer.as_ref()?;
        let is_first = self.is_answered() && self.best() == Some(index);
        // That no script can be written is not a limit of the user's.
        let may_lack_memory = self.offers[index].script.is_some_and(|effect| effect.may_lack_memory);
        let misses = answer.unmet.is_some() || may_lack_memory;
        is_first.then_some(if misses { "Nearest" } else { "Best" })
    }

    /// Returns the best plan of the best GPU type, once every GPU type is answered.
    pub(in crate::pages::plan) fn best_plan(&self) -> Option<&FoundPlan> {
        if !self.is_answered() {
            return None;
        }
        self.offers[self.best()?].answer.as_ref()?.plan.as_ref()
    }

    /// Returns the best plan of a GPU type, once every GPU type is answered.
    pub(in crate::pages::plan) fn best_plan_on(&self, gpu: &str) -> Option<&FoundPlan> {
        let offer = self.offers.iter().find(|offer| offer.gpu.id == gpu).filter(|_| self.is_answered())?;
        offer.answer.as_ref()?.plan.as_ref()
    }
}

/// The order of the cards of the GPU types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::pages::plan) struct CardOrder {
    /// The question, as a query.
    query: String,
    /// Whether the best come first.
    is_ranked: bool,
    /// The indices of the GPU types.
    pub(in crate::pages::plan) types: Vec<usize>,
}

impl CardOrder {
    /// Returns the order after `before`. The best come first once every GPU type is answered. From then on, cards keep their places
    /// until another question is answered: answers by launch scripts come in later, and a badge marks the best of them.
    pub(in crate::pages::plan) fn next(before: Option<&CardOrder>, findings: &Findings) -> CardOrder {
        let of_question = before.filter(|before| before.query == findings.query && before.is_ranked);
        let is_ranked = findings.is_answered();
        let types = match of_question {
            Some(before) => before.types.clone(),
            None if is_ranked => findings.ranked(),
            None => (0..findings.offers.len()).collect(),
        };
        CardOrder { query: findings.query.clone(), is_ranked, types }
    }
}

/// Returns a plan on a GPU type as far as it decides which type is best.
pub(in crate::pages::plan) fn contender(gpu: &str, plan: &FoundPlan) -> Contender<Trust> {
    let days = plan.days;
    let cost = plan.cost.map(|Spread { low, mid, high }| Interval { low, mid, high });
    let is_unmeasured = Catalog::embedded().gpu(gpu).is_ok_and(|gpu| !gpu.is_measured());
    let doubt = if is_unmeasured { doubt(days.mid, days.high) } else { 1.0 };
    Contender { gpus: plan.gpus, days: days.mid, cost, confidence: plan.trust, doubt }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answered, plan};
    use super::*;

    #[test]
    fn the_cheapest_type_is_best_for_a_deadline() {
        let findings =
            answered(&[("H100", Some(plan(1024, 58.0, 4e6))), ("B200", Some(plan(512, 59.0, 3e6)))]);
        assert_eq!(findings.best(), Some(1));
        assert_eq!(findings.best_plan().map(|plan| plan.gpus), Some(512));
        assert_eq!(findings.best_plan_on("h100").map(|plan| plan.gpus), Some(1024));
        assert_eq!(findings.best_plan_on("b300"), None);
        assert!(!findings.is_searching());
    }

    #[test]
    fn a_difference_in_cost_within_the_uncertainty_is_not_worth_more_gpus() {
        let with_cost_of_h100 = |cost: f64| {
            let plans = [("H100", Some(plan(1024, 58.0, cost))), ("B200", Some(plan(512, 59.0, 3e6)))];
            answered(&plans).best()
        };
        assert_eq!([2.8e6, 2e6].map(with_cost_of_h100), [Some(1), Some(0)]);
    }

    #[test]
    fn the_type_whose_plan_misses_the_limits_by_the_least_comes_nearest_to_a_goal() {
        let plans = [("H100", 70.0, 2e6), ("B200", 49.0, 3e6), ("GB300", 37.0, 4e6)];
        let mut findings = answered(&plans.map(|(name, days, cost)| (name, Some(plan(512, days, cost)))));
        let expensive = |cost: f64| Unmet::TooExpensive { cost, tokens: 0.0, gpus: 0 };
        let unmet = [Unmet::TooSlow { days: 77.0 }, expensive(3.3e6), expensive(4.4e6)];
        for (offer, unmet) in findings.offers.iter_mut().zip(unmet) {
            offer.answer.as_mut().expect("an answer").unmet = Some(unmet);
        }
        let mut with_budget = |budget: f64| {
            findings.asked.as_mut().expect("a question").max_cost = Some(budget);
            (findings.best(), findings.ranked())
        };
        assert_eq!(with_budget(3e6), (Some(1), vec![1, 0, 2]));
        // 28 % late, but within the budget.
        assert_eq!(with_budget(2.1e6), (Some(0), vec![0, 1, 2]));
    }

    #[test]
    fn cards_keep_their_places_until_another_question_is_answered() {
        let mut findings =
            answered(&[("H100", Some(plan(1024, 58.0, 4e6))), ("B200", Some(plan(512, 59.0, 3e6)))]);
        let answer = findings.offers[0].answer.take();
        let growing = CardOrder::next(None, &findings);
        assert_eq!(growing.types, [0, 1]);
        findings.offers[0].answer = answer;
        let order = CardOrder::next(Some(&growing), &findings);
        assert_eq!(order.types, [1, 0]);
        // By its launch script, the plan costs more.
        let answer = findings.offers[1].answer.as_mut().expect("an answer");
        answer.plan = Some(plan(1024, 59.0, 6e6));
        assert_eq!(findings.ranked(), [0, 1]);
        let order = CardOrder::next(Some(&order), &findings);
        assert_eq!((&*order.types, findings.badge(0)), (&[1, 0][..], Some("Best")));
        findings.query = "t=5T".into();
        assert_eq!(CardOrder::next(Some(&order), &findings).types, [0, 1]);
    }

    #[test]
    fn only_a_plan_that_reaches_the_goal_is_called_the_best() {
        let of =
            |query: &str, days: f64, cost: f64| FoundPlan { query: query.into(), ..plan(512, days, cost) };
        let plans = [("H100", Some(of("a", 58.0, 4e6))), ("B200", Some(of("b", 59.0, 3e6)))];
        let mut findings = answered(&plans);
        let badges = |findings: &Findings| [0, 1].map(|index| findings.badge(index));
        assert_eq!(badges(&findings), [None, Some("Best")]);
        for offer in &mut findings.offers {
            offer.answer.as_mut().expect("an answer").unmet = Some(Unmet::TooSlow { days: 70.0 });
        }
        assert!(badges(&findings).contains(&Some("Nearest")) && !badges(&findings).contains(&Some("Best")));
        assert_eq!(answered(&[("H100", None)]).badge(0), None);
    }
}
