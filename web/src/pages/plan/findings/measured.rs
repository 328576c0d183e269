//! What measured runs and measured software make of the plans that were found.

use super::asked::is_within;
use super::{Findings, OfferFindings};
use crate::message::search::{AskedGoal, FoundPlan, Spread};
use trainplan_shared::benchmarks::BestMeasured;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::link;

/// By how much a prediction may exceed every measured run without a warning.
const WORTH_A_WARNING: f64 = 0.1;

impl Findings {
    /// Returns the fastest measured run of the question's model on a GPU type.
    pub(in crate::pages::plan) fn best_measured(
        &self,
        offer: &OfferFindings,
    ) -> Option<&'static BestMeasured> {
        let question = link::read(&self.query).spec;
        let model = Catalog::embedded().model(question.raw(Field::Model)).ok()?;
        BestMeasured::of(&model.id, &offer.gpu.id)
    }

    /// Returns the days of the best plan of a GPU type at the throughput of the fastest measured run, if it is predicted to be
    /// clearly faster.
    pub(in crate::pages::plan) fn best_as_measured_days(&self, offer: &OfferFindings) -> Option<f64> {
        self.as_measured_days(offer, offer.answer.as_ref()?.plan.as_ref()?)
    }

    /// Returns the days of a plan on a GPU type at the throughput of the fastest measured run there, if the plan is predicted to be
    /// clearly faster.
    pub(in crate::pages::plan) fn as_measured_days(
        &self,
        offer: &OfferFindings,
        found: &FoundPlan,
    ) -> Option<f64> {
        let ratio = self.best_measured(offer)?.exceeded(found.tokens_per_s_per_gpu);
        (ratio >= 1.0 + WORTH_A_WARNING).then_some(found.days.mid * ratio)
    }

    /// Returns the plan on the fewest GPUs that is in time even at the throughput of the fastest measured run, within the budget: as
    /// predicted, and with the figures that it then has; none if the best plan is in time.
    pub(in crate::pages::plan) fn in_time_as_measured(
        &self,
        offer: &OfferFindings,
    ) -> Option<(FoundPlan, FoundPlan)> {
        let AskedGoal::Deadline(limit) = self.goal() else { return None };
        let best = offer.answer.as_ref()?.plan.as_ref()?;
        if self.best_as_measured_days(offer)? <= limit {
            return None;
        }
        let run = self.best_measured(offer)?;
        let more = offer.points.iter().filter(|point| point.gpus > best.gpus);
        let mut both =
            more.map(|point| (point, point.slowed(run.exceeded(point.tokens_per_s_per_gpu).max(1.0))));
        let by_slow_end = self.is_by_slow_end();
        let (plan, slowed) = both
            .find(|(_, slowed)| slowed.days.mid <= limit && is_within(slowed, self.budget(), by_slow_end))?;
        Some((plan.clone(), slowed))
    }

    /// Returns what a plan takes with software that was measured, if it misses the goal only with that, or if it is the best one of a GPU
    /// type: the title of the software, the days, and the cost if that is known.
    pub(in crate::pages::plan) fn with_measured_software(
        &self,
        is_it: impl Fn(&FoundPlan) -> bool,
    ) -> Option<(String, Spread, Option<Spread>)> {
        let judged = self.plans().find_map(|(_, found)| {
            let software = found.measured_software.as_ref().filter(|_| is_it(found))?;
            Some((software.clone(), found.days, found.cost))
        });
        let beside = || {
            self.offers.iter().find_map(|offer| {
                let answer = offer.answer.as_ref()?;
                let (software, days) = answer.with_measured_software.as_ref()?;
                answer.plan.as_ref().filter(|plan| is_it(plan))?;
                Some((software.clone(), *days, None))
            })
        };
        judged.or_else(beside)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answered, plan, spread};
    use super::*;
    use crate::message::search::FoundFamily;

    #[test]
    fn a_plan_that_is_in_time_at_the_measured_speed_keeps_its_predicted_cost() {
        let fastest = BestMeasured::of("llama3.1-70b", "b200").expect("a measured run").tokens_per_s_per_gpu;
        // A quarter faster than any measured run.
        let of = |gpus: u32, days: f64| FoundPlan {
            tokens_per_s_per_gpu: fastest * 1.25,
            ..plan(gpus, days, 2e6)
        };
        let mut findings = answered(&[("B200", Some(of(512, 55.0)))]);
        findings.query = "m=llama3.1-70b".into();
        findings.offers[0].points = vec![of(512, 55.0), of(544, 50.0), of(640, 45.0)];
        let (plan, slowed) = findings.in_time_as_measured(&findings.offers[0]).expect("a plan");
        let cost = |plan: &FoundPlan| plan.cost.map(|cost| cost.mid.round());
        assert_eq!((plan.gpus, cost(&plan), cost(&slowed)), (640, Some(2e6), Some(2.5e6)));
    }

    #[test]
    fn a_plan_has_figures_with_measured_software_where_its_card_says_them() {
        let of = |query: &str, days: f64| FoundPlan { query: query.into(), ..plan(512, days, 4e6) };
        let mut findings = answered(&[("H100", Some(of("a", 55.0))), ("B200", Some(of("b", 55.0)))]);
        let with = |findings: &Findings, query: &str| {
            findings
                .with_measured_software(|plan| plan.query == query)
                .map(|(_, days, cost)| (days.mid, cost))
        };
        assert_eq!(with(&findings, "b"), None);
        let answer = findings.offers[1].answer.as_mut().expect("an answer");
        answer.with_measured_software = Some(("NeMo 2".into(), spread(61.0)));
        assert_eq!((with(&findings, "a"), with(&findings, "b")), (None, Some((61.0, None))));
        // Where it decides, its figures are known as a whole, for other layouts too.
        let judged = |query: &str, days: f64| FoundFamily {
            best: FoundPlan { measured_software: Some("NeMo 2".into()), ..of(query, days) },
            others: Vec::new(),
        };
        let answer = findings.offers[1].answer.as_mut().expect("an answer");
        answer.layouts = vec![judged("b", 61.0), judged("c", 63.0)];
        assert_eq!(with(&findings, "b"), Some((61.0, Some(spread(4e6)))));
        assert_eq!(with(&findings, "c"), Some((63.0, Some(spread(4e6)))));
    }
}
