//! What the search found: it grows with the news of the search worker, and is replaced as a whole when another question is answered.

mod asked;
mod by_scripts;
mod measured;
mod ranking;

pub(super) use asked::is_within;
pub(super) use by_scripts::effect_on;
pub(super) use ranking::{CardOrder, contender};

use crate::message::Refusal;
use crate::message::search::{
    AskedGpu, AskedQuestion, FoundAnswer, FoundFamily, FoundPlan, ScriptEffect, SearchNews,
};
use trainplan_shared::problem::Problem;

/// What the search found. The answer to a question stays until every GPU type of the next question is answered: then all of
/// it is replaced at once, so that no part of the page mixes two answers. Only the first answer is shown while it grows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Findings {
    /// The question, as a query; the search worker got it.
    pub(super) query: String,
    /// The question as the worker read it; none before the first answer.
    pub(super) asked: Option<AskedQuestion>,
    /// What was found for each GPU type of the question.
    pub(super) offers: Vec<OfferFindings>,
    /// The problems of the latest question.
    pub(super) problems: Vec<Problem>,
    /// Whether the latest question is fully answered.
    pub(super) is_done: bool,
    /// Whether this answers the previous question: from a change of the question until every GPU type is answered. It stays so
    /// while the question has problems.
    pub(super) is_behind: bool,
    /// What the launch scripts of plans do otherwise than planned, each with the query of the plan; also those of earlier answers.
    pub(super) scripts: Vec<(String, ScriptEffect)>,
    /// What was found for the latest question, while it is searched and this answers the previous one.
    next: Option<Box<Findings>>,
}

/// What was found for a GPU type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OfferFindings {
    pub(super) gpu: AskedGpu,
    /// The best plan on each number of GPUs, ascending.
    pub(super) points: Vec<FoundPlan>,
    pub(super) answer: Option<FoundAnswer>,
    /// The best plan if only BF16 may be used, which may be none; none before it was searched.
    pub(super) in_bf16: Option<Option<Box<FoundPlan>>>,
    /// What the launch script of the best plan does otherwise than planned, if all plans here have the figures of their launch scripts.
    pub(super) script: Option<ScriptEffect>,
}

impl OfferFindings {
    /// Adds the best plan on a number of GPUs, in the place of an earlier one.
    fn add(&mut self, plan: FoundPlan) {
        match self.points.binary_search_by_key(&plan.gpus, |point| point.gpus) {
            Ok(place) => self.points[place] = plan,
            Err(place) => self.points.insert(place, plan),
        }
    }
}

impl Findings {
    /// Adds what the worker says about the latest question. Returns whether that changes what is shown.
    pub(super) fn hear(&mut self, news: SearchNews) -> bool {
        let was_refused = matches!(news, SearchNews::Asked(_)) && !self.problems.is_empty();
        if was_refused {
            self.problems.clear();
        }
        let Some(mut next) = self.next.take() else {
            self.add(news);
            return true;
        };
        next.add(news);
        let is_due = next.is_answered() || next.is_done;
        match is_due {
            true => {
                next.scripts = std::mem::take(&mut self.scripts);
                *self = *next;
            }
            false => self.next = Some(next),
        }
        is_due || was_refused
    }

    /// Keeps the problems of the latest question, which is not searched.
    pub(super) fn refuse(&mut self, refusals: Vec<Refusal>) {
        self.problems = refusals.into_iter().map(Problem::from).collect();
        self.is_done = true;
        self.next = None;
    }

    /// Adds what the worker says about the question that this answers.
    fn add(&mut self, news: SearchNews) {
        match news {
            // Another worker says why.
            SearchNews::Refused => {}
            SearchNews::Asked(asked) => {
                let offer = |gpu: &AskedGpu| OfferFindings { gpu: gpu.clone(), ..OfferFindings::default() };
                self.offers = asked.offers.iter().map(offer).collect();
                self.asked = Some(asked);
            }
            SearchNews::Point { offer, plan } => {
                let Some(offer) = self.offers.get_mut(offer) else { return };
                offer.add(*plan);
            }
            SearchNews::Answered { offer, answer } => {
                let Some(offer) = self.offers.get_mut(offer) else { return };
                offer.answer = Some(*answer);
            }
            SearchNews::InBf16 { offer, plan } => {
                let Some(offer) = self.offers.get_mut(offer) else { return };
                offer.in_bf16 = Some(plan);
            }
            SearchNews::Done => self.is_done = true,
        }
    }

    /// Begins with another question, given as a query.
    pub(super) fn ask(&mut self, query: String) {
        let next = Findings { query, ..Findings::default() };
        match self.is_answered() {
            true => {
                self.is_done = false;
                self.is_behind = true;
                self.next = Some(Box::new(next));
            }
            // Nothing of a search that was given up is worth showing.
            false => {
                let (problems, scripts) =
                    (std::mem::take(&mut self.problems), std::mem::take(&mut self.scripts));
                *self = Findings { problems, scripts, ..next };
            }
        }
    }

    /// Whether every GPU type is answered.
    pub(super) fn is_answered(&self) -> bool {
        !self.offers.is_empty() && self.offers.iter().all(|offer| offer.answer.is_some())
    }

    /// Whether the latest question is still to be answered.
    pub(super) fn is_searching(&self) -> bool {
        self.next.is_some() || !self.is_done && !self.is_answered()
    }

    /// Returns the plans that were found, of every GPU type.
    pub(super) fn plans(&self) -> impl Iterator<Item = (&OfferFindings, &FoundPlan)> {
        self.offers.iter().flat_map(|offer| {
            let of_answer = offer.answer.iter().flat_map(|answer| {
                let published = answer.published.iter().map(|(_, plan)| plan);
                let layouts = answer.layouts.iter().flat_map(FoundFamily::plans);
                // Layouts first: they have the figures by which they miss the goal.
                layouts.chain(published).chain(&answer.plan).chain(&answer.with_other_chance)
            });
            let in_bf16 = offer.in_bf16.iter().flatten().map(|plan| &**plan);
            of_answer.chain(in_bf16).chain(&offer.points).map(move |plan| (offer, plan))
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::message::search::{AskedGoal, Spread};
    use trainplan_shared::question::{Chance, Objective};

    pub(in super::super) fn spread(mid: f64) -> Spread {
        Spread { low: mid * 0.9, mid, high: mid * 1.1 }
    }

    pub(in super::super) fn plan(gpus: u32, days: f64, cost: f64) -> FoundPlan {
        FoundPlan { gpus, days: spread(days), cost: Some(spread(cost)), ..FoundPlan::default() }
    }

    /// Returns the findings of a question with a deadline of 60 days.
    pub(in super::super) fn answered(plans: &[(&str, Option<FoundPlan>)]) -> Findings {
        let gpu = |name: &str| AskedGpu { id: name.to_lowercase(), name: name.into(), ..AskedGpu::default() };
        let mut findings = Findings::default();
        findings.hear(SearchNews::Asked(AskedQuestion {
            goal: AskedGoal::Deadline(60.0),
            chance: Some(Chance::Even),
            objective: Some(Objective::FewestGpus),
            offers: plans.iter().map(|(name, _)| gpu(name)).collect(),
            ..AskedQuestion::default()
        }));
        for (offer, (_, plan)) in plans.iter().enumerate() {
            let answer = Box::new(FoundAnswer { plan: plan.clone(), ..FoundAnswer::default() });
            findings.hear(SearchNews::Answered { offer, answer });
        }
        findings.hear(SearchNews::Done);
        findings
    }

    fn point(offer: usize, gpus: u32) -> SearchNews {
        SearchNews::Point { offer, plan: Box::new(plan(gpus, 900.0, 4e6)) }
    }

    fn answer(offer: usize, gpus: u32) -> SearchNews {
        let plan = Some(plan(gpus, 50.0, 2e6));
        SearchNews::Answered { offer, answer: Box::new(FoundAnswer { plan, ..FoundAnswer::default() }) }
    }

    #[test]
    fn an_answer_is_replaced_as_a_whole_once_every_gpu_type_is_answered() {
        let mut findings =
            answered(&[("H100", Some(plan(1024, 58.0, 4e6))), ("B200", Some(plan(512, 59.0, 3e6)))]);
        let before = findings.clone();
        let asked = AskedQuestion { tokens: 5e12, ..before.asked.clone().expect("a question") };
        findings.ask("t=5T".into());
        for news in [SearchNews::Asked(asked), point(0, 64), answer(1, 96), point(1, 32)] {
            findings.hear(news);
            assert!(findings.is_behind && findings.is_searching());
            let shown = (&findings.asked, &findings.offers, &findings.query);
            assert_eq!(shown, (&before.asked, &before.offers, &before.query));
        }
        findings.hear(answer(0, 80));
        assert!(!findings.is_behind && !findings.is_searching());
        assert_eq!(findings.query, "t=5T");
        assert_eq!(findings.best_plan().map(|plan| plan.gpus), Some(80));
        // Points that arrive later are added.
        findings.hear(point(0, 72));
        let counts: Vec<u32> = findings.offers[0].points.iter().map(|point| point.gpus).collect();
        assert_eq!(counts, [64, 72]);
    }

    #[test]
    fn the_first_answer_is_shown_while_it_grows() {
        let mut findings = Findings::default();
        assert!(findings.is_searching());
        findings.ask(String::new());
        findings.hear(SearchNews::Asked(AskedQuestion {
            offers: vec![AskedGpu::default(), AskedGpu::default()],
            ..AskedQuestion::default()
        }));
        findings.hear(answer(1, 96));
        assert!(findings.offers[1].answer.is_some() && findings.is_searching() && !findings.is_behind);
        assert_eq!(findings.best_plan(), None);
    }

    #[test]
    fn a_refused_question_keeps_the_previous_answer() {
        let mut findings = answered(&[("H100", Some(plan(1024, 58.0, 4e6)))]);
        findings.ask("by=soon".into());
        findings.refuse(Vec::new());
        assert!(findings.is_behind && !findings.is_searching());
        assert_eq!(findings.best_plan().map(|plan| plan.gpus), Some(1024));
        let asked = findings.asked.clone().expect("a question");
        findings.ask("by=50d".into());
        findings.hear(SearchNews::Asked(asked));
        findings.hear(answer(0, 80));
        assert!(!findings.is_behind);
    }
}
