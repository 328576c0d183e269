//! The page's side of the worker that searches for plans: it asks whenever the question changes, and keeps what was
//! found.

use crate::message::search::ScriptEffect;
use crate::message::search::{
    AskedGoal, AskedGpu, AskedQuestion, FoundAnswer, FoundByScripts, FoundFamily, FoundPlan, SearchNews,
    SearchReply, SearchRequest, Spread, Trust,
};
use crate::reader::{PageWorker, SEARCH_WORKER};
use leptos::prelude::*;
use std::time::Duration;
use trainplan_shared::benchmarks::BestMeasured;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::problem::Problem;
use trainplan_shared::question::{Chance, Contender, Objective, Unmet, doubt};
use trainplan_shared::sorting::sorted;
use trainplan_shared::spec::Spec;

/// How long typing must pause before the worker is asked.
const PAUSE: Duration = Duration::from_millis(120);

/// By how much a prediction may exceed every measured run without a warning.
const WORTH_A_WARNING: f64 = 0.1;

/// The search worker and what it found.
#[derive(Clone, Copy)]
pub(super) struct Search {
    worker: StoredValue<Option<PageWorker>, LocalStorage>,
    state: RwSignal<WorkerState>,
    /// The number of the latest question.
    number: RwSignal<u32>,
    pub(super) findings: RwSignal<Findings>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    Starting,
    Ready,
    Broken,
}

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

    /// Whether the launch script of the best plan can't be relied on: it may not fit in memory, or can't be written.
    fn is_unsure(&self) -> bool {
        self.script.is_some_and(|effect| effect.may_lack_memory || effect.is_unavailable)
    }
}

impl Findings {
    /// Adds what the worker says about the latest question. Returns whether that changes what is shown.
    fn hear(&mut self, news: SearchNews) -> bool {
        if let SearchNews::Refused(refusals) = news {
            self.problems = refusals.into_iter().map(Problem::from).collect();
            self.is_done = true;
            self.next = None;
            return true;
        }
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

    /// Adds what the worker says about the question that this answers.
    fn add(&mut self, news: SearchNews) {
        match news {
            SearchNews::Refused(_) => {}
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
    fn ask(&mut self, query: String) {
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

    /// Returns the GPU types whose plans must be searched by launch scripts, because that of the best plan doesn't run it as planned: their
    /// indices, after the question. None while the latest question is searched.
    pub(super) fn by_scripts(&self) -> Option<String> {
        let is_slowed = |offer: &OfferFindings| {
            let plan = offer.answer.as_ref().and_then(|answer| answer.plan.as_ref());
            let effect = plan.and_then(|plan| effect_on(&self.scripts, &plan.query));
            offer.script.is_none() && effect.is_some_and(|effect| !effect.is_none() || effect.is_unavailable)
        };
        let mut text = self.query.clone();
        for (index, _) in self.offers.iter().enumerate().filter(|(_, offer)| is_slowed(offer)) {
            text += &format!(" {index}");
        }
        (self.is_done && self.next.is_none() && text != self.query).then_some(text)
    }

    /// Keeps the answer for a GPU type by launch scripts, if it is one to this question.
    pub(super) fn hear_by_scripts(&mut self, found: FoundByScripts) {
        let FoundByScripts { query, offer, answer, points, in_bf16, effect } = found;
        let Some(offer) = self.offers.get_mut(offer).filter(|_| query == self.query) else { return };
        // The question may not contain the round numbers of GPUs, which only the chart shows.
        for point in &mut offer.points {
            *point = point.slowed(effect.slowdown);
        }
        for point in points {
            offer.add(point);
        }
        offer.in_bf16 = Some(in_bf16);
        offer.answer = Some(answer);
        offer.script = Some(effect);
    }

    /// Returns the queries of the plans whose launch scripts matter: the best plan of each GPU type.
    pub(super) fn queries_to_launch(&self) -> Vec<String> {
        let best = self.offers.iter().filter_map(|offer| offer.answer.as_ref()?.plan.as_ref());
        best.map(|plan| plan.query.clone()).collect()
    }

    /// Returns the fastest measured run of the question's model on a GPU type.
    pub(super) fn best_measured(&self, offer: &OfferFindings) -> Option<&'static BestMeasured> {
        let question = link::read(&self.query).spec;
        let model = Catalog::embedded().model(question.raw(Field::Model)).ok()?;
        BestMeasured::of(&model.id, &offer.gpu.id)
    }

    /// Returns the days of the best plan of a GPU type at the throughput of the fastest measured run, if it is predicted to be
    /// clearly faster.
    pub(super) fn best_as_measured_days(&self, offer: &OfferFindings) -> Option<f64> {
        self.as_measured_days(offer, offer.answer.as_ref()?.plan.as_ref()?)
    }

    /// Returns the days of a plan on a GPU type at the throughput of the fastest measured run there, if the plan is predicted to be
    /// clearly faster.
    pub(super) fn as_measured_days(&self, offer: &OfferFindings, found: &FoundPlan) -> Option<f64> {
        let ratio = self.best_measured(offer)?.exceeded(found.tokens_per_s_per_gpu);
        (ratio >= 1.0 + WORTH_A_WARNING).then_some(found.days.mid * ratio)
    }

    /// Returns the plan on the fewest GPUs that is in time even at the throughput of the fastest measured run, within the budget, with the
    /// figures that it then has; none if the best plan is in time.
    pub(super) fn in_time_as_measured(&self, offer: &OfferFindings) -> Option<FoundPlan> {
        let AskedGoal::Deadline(limit) = self.goal() else { return None };
        let best = offer.answer.as_ref()?.plan.as_ref()?;
        if self.best_as_measured_days(offer)? <= limit {
            return None;
        }
        let run = self.best_measured(offer)?;
        let more = offer.points.iter().filter(|point| point.gpus > best.gpus);
        let mut as_measured =
            more.map(|point| point.slowed(run.exceeded(point.tokens_per_s_per_gpu).max(1.0)));
        let by_slow_end = self.is_by_slow_end();
        as_measured.find(|plan| plan.days.mid <= limit && is_within(plan, self.budget(), by_slow_end))
    }

    /// Returns what a plan takes with software that was measured, if it misses the goal only with that, or if it is the best one of a GPU
    /// type: the title of the software, the days, and the cost if that is known.
    pub(super) fn with_measured_software(
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

    /// Returns the sequence length that is assumed for an imported model; none for other models, or if one is typed.
    pub(super) fn own_sequences(&self) -> Option<u32> {
        let question = link::read(&self.query).spec;
        let text = question.raw(Field::Model);
        let is_own = Catalog::embedded().model(text).is_err() && question.get(Field::SeqLen).is_none();
        Some(Catalog::embedded().model_or_own(text).ok().filter(|_| is_own)?.seq_len)
    }

    /// Returns the goal of the question.
    pub(super) fn goal(&self) -> AskedGoal {
        self.asked.as_ref().map_or(AskedGoal::Open, |asked| asked.goal)
    }

    /// Returns the longest time that a plan may take without a deadline, in days; none if any time will do.
    pub(super) fn longest_days(&self) -> Option<f64> {
        self.asked.as_ref()?.longest_days
    }

    /// Returns the time that plans may take, in days: the deadline, or the longest time without one; none if any time will do.
    pub(super) fn most_days(&self) -> Option<f64> {
        match self.goal() {
            AskedGoal::Deadline(limit) => Some(limit),
            AskedGoal::Budget(_) | AskedGoal::Open => self.longest_days(),
        }
    }

    /// Whether plans must hold the limits at the slow and expensive ends of their ranges.
    pub(super) fn is_by_slow_end(&self) -> bool {
        self.asked.as_ref().and_then(|asked| asked.chance) == Some(Chance::NineInTen)
    }

    /// Returns the budget: the goal, or the limit beside a deadline.
    pub(super) fn budget(&self) -> Option<f64> {
        match self.goal() {
            AskedGoal::Budget(budget) => Some(budget),
            AskedGoal::Deadline(_) | AskedGoal::Open => self.asked.as_ref()?.max_cost,
        }
    }

    /// Returns the indices of the GPU types with a plan that reaches the goal, best first; those whose launch script can't be relied on come last.
    pub(super) fn reaching(&self) -> Vec<usize> {
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
    pub(super) fn ranked(&self) -> Vec<usize> {
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
    pub(super) fn best(&self) -> Option<usize> {
        let has_plan =
            |index: &usize| self.offers[*index].answer.as_ref().is_some_and(|answer| answer.plan.is_some());
        self.ranked().into_iter().find(has_plan)
    }

    /// Returns what the plan of the headline is called on the card of its GPU type, once every GPU type is answered: only one that
    /// reaches the goal, by its launch script too, is the best.
    pub(super) fn badge(&self, index: usize) -> Option<&'static str> {
        let answer = self.offers.get(index)?.answer.as_ref()?;
        let is_first = self.is_answered() && self.best() == Some(index);
        // That no script can be written is not a limit of the user's.
        let may_lack_memory = self.offers[index].script.is_some_and(|effect| effect.may_lack_memory);
        let misses = answer.unmet.is_some() || may_lack_memory;
        is_first.then_some(if misses { "Nearest" } else { "Best" })
    }

    /// Returns the best plan of the best GPU type, once every GPU type is answered.
    pub(super) fn best_plan(&self) -> Option<&FoundPlan> {
        if !self.is_answered() {
            return None;
        }
        self.offers[self.best()?].answer.as_ref()?.plan.as_ref()
    }

    /// Returns the best plan of a GPU type, once every GPU type is answered.
    pub(super) fn best_plan_on(&self, gpu: &str) -> Option<&FoundPlan> {
        let offer = self.offers.iter().find(|offer| offer.gpu.id == gpu).filter(|_| self.is_answered())?;
        offer.answer.as_ref()?.plan.as_ref()
    }

    /// Whether every GPU type is answered.
    pub(super) fn is_answered(&self) -> bool {
        !self.offers.is_empty() && self.offers.iter().all(|offer| offer.answer.is_some())
    }

    /// Whether the GPU types can be put in their order: each is answered, and none is searched again by launch scripts.
    pub(super) fn is_settled(&self) -> bool {
        self.is_answered() && self.by_scripts().is_none()
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

impl Search {
    /// Starts a worker that answers the question whenever it changes.
    pub(super) fn start(question: Memo<Spec>) -> Search {
        let search = Search {
            worker: StoredValue::new_local(None),
            state: RwSignal::new(WorkerState::Starting),
            number: RwSignal::new(0),
            findings: RwSignal::new(Findings::default()),
        };
        // An effect runs after the page is drawn.
        Effect::new(move |_| match PageWorker::start(SEARCH_WORKER, move |reply| search.receive(reply)) {
            Ok(worker) => search.worker.set_value(Some(worker)),
            Err(_) => search.state.set(WorkerState::Broken),
        });
        let mut ask = debounce(PAUSE, move |query| search.ask(query));
        Effect::new(move |before: Option<()>| {
            let query = question.with(link::write);
            if search.state.get() == WorkerState::Ready {
                let is_first = search.number.get_untracked() == 0;
                // From now on, news of the previous question is old.
                search.number.update(|number| *number += 1);
                search.findings.update(|findings| findings.ask(query.clone()));
                // The first question needs no pause.
                match before.is_none() || is_first {
                    true => search.ask(query),
                    false => ask(query),
                }
            }
        });
        search
    }

    /// Whether the worker did not start or stopped.
    pub(super) fn is_broken(self) -> bool {
        self.state.get() == WorkerState::Broken
    }

    fn ask(self, query: String) {
        // `try_`: the page may have been left meanwhile.
        let Some(number) = self.number.try_get_untracked() else { return };
        let request = SearchRequest { number, query };
        let sent = self
            .worker
            .try_with_value(|worker| worker.as_ref().is_some_and(|worker| worker.send(&request).is_ok()));
        if sent == Some(false) {
            self.state.set(WorkerState::Broken);
        }
    }

    fn receive(self, reply: Option<SearchReply>) {
        match reply {
            None => self.state.set(WorkerState::Broken),
            Some(SearchReply::Ready) => self.state.set(WorkerState::Ready),
            Some(SearchReply::News { number, news }) if number == self.number.get_untracked() => {
                self.findings.maybe_update(|findings| findings.hear(news));
            }
            Some(SearchReply::News { .. }) => {}
        }
    }
}

/// Returns a plan on a GPU type as far as it decides which type is best.
pub(super) fn contender(gpu: &str, plan: &FoundPlan) -> Contender<Trust> {
    let (days, cost) = (plan.days, plan.cost.map(|cost| cost.mid));
    let is_unmeasured = Catalog::embedded().gpu(gpu).is_ok_and(|gpu| !gpu.is_measured());
    let doubt = if is_unmeasured { doubt(days.mid, days.high) } else { 1.0 };
    Contender { gpus: plan.gpus, days: days.mid, cost, confidence: plan.trust, doubt }
}

/// Returns what the launch script of a plan, given as a query, does; none if it is not known.
pub(super) fn effect_on(scripts: &[(String, ScriptEffect)], query: &str) -> Option<ScriptEffect> {
    scripts.iter().find(|(plan, _)| plan == query).map(|(_, effect)| *effect)
}

/// Whether a plan costs no more than the budget, if there is one: at the expensive end of its range, or in the middle.
pub(super) fn is_within(plan: &FoundPlan, budget: Option<f64>, by_slow_end: bool) -> bool {
    let end = |cost: Spread| if by_slow_end { cost.high } else { cost.mid };
    budget.is_none_or(|budget| plan.cost.is_none_or(|cost| end(cost) <= budget))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

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

    #[test]
    fn plans_have_the_figures_of_launch_scripts_where_these_differ() {
        let of =
            |query: &str, gpus: u32, days: f64| FoundPlan { query: query.into(), ..plan(gpus, days, 4e6) };
        let mut findings =
            answered(&[("H100", Some(of("a", 1024, 55.0))), ("B200", Some(of("b", 512, 55.0)))]);
        findings.query = "t=5T".into();
        findings.offers[1].points = vec![of("c", 256, 110.0), of("b", 512, 55.0)];
        assert_eq!(
            (findings.queries_to_launch(), findings.by_scripts()),
            (vec!["a".into(), "b".into()], None)
        );
        let effect = |slowdown: f64| ScriptEffect { slowdown, may_lack_memory: false, is_unavailable: false };
        findings.scripts = vec![("a".into(), effect(1.0)), ("b".into(), effect(1.2))];
        assert_eq!(findings.by_scripts().as_deref(), Some("t=5T 1"));
        let found = FoundByScripts {
            query: "t=5T".into(),
            offer: 1,
            answer: FoundAnswer { plan: Some(of("d", 640, 50.0)), ..FoundAnswer::default() },
            points: vec![of("d", 640, 50.0), of("b", 512, 66.0)],
            in_bf16: None,
            effect: effect(1.1),
        };
        let mut other = findings.clone();
        other.hear_by_scripts(FoundByScripts { query: "t=6T".into(), ..found.clone() });
        assert_eq!(other, findings);
        findings.hear_by_scripts(found);
        let points: Vec<(u32, f64)> =
            findings.offers[1].points.iter().map(|point| (point.gpus, point.days.mid.round())).collect();
        assert_eq!(points, [(256, 121.0), (512, 66.0), (640, 50.0)]);
        assert_eq!(findings.best_plan_on("b200").map(|plan| plan.gpus), Some(640));
        // It is asked once.
        findings.scripts.push(("d".into(), effect(1.1)));
        assert_eq!(findings.by_scripts(), None);
        assert_eq!([0, 1].map(|index| findings.badge(index)), [None, Some("Best")]);
        findings.offers[1].script = Some(ScriptEffect { may_lack_memory: true, ..effect(1.1) });
        assert_eq!([0, 1].map(|index| findings.badge(index)), [Some("Best"), None]);
    }

    #[test]
    fn the_order_is_settled_unless_launch_scripts_are_searched() {
        let of = |query: &str| FoundPlan { query: query.into(), ..plan(512, 55.0, 4e6) };
        let mut findings = answered(&[("H100", Some(of("a"))), ("B200", Some(of("b"))), ("GB300", None)]);
        assert!(findings.is_settled());
        let effect = |slowdown: f64| ScriptEffect { slowdown, may_lack_memory: false, is_unavailable: false };
        findings.scripts = vec![("a".into(), effect(1.3)), ("b".into(), effect(1.2))];
        assert!(!findings.is_settled());
        findings.offers[1].script = Some(effect(1.2));
        assert!(!findings.is_settled(), "one is still searched");
        findings.offers[0].script = Some(effect(1.3));
        assert!(findings.is_settled());
        findings.offers[0].answer = None;
        assert!(!findings.is_settled());
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
        findings.hear(SearchNews::Refused(Vec::new()));
        assert!(findings.is_behind && !findings.is_searching());
        assert_eq!(findings.best_plan().map(|plan| plan.gpus), Some(1024));
        let asked = findings.asked.clone().expect("a question");
        findings.ask("by=50d".into());
        findings.hear(SearchNews::Asked(asked));
        findings.hear(answer(0, 80));
        assert!(!findings.is_behind);
    }
}
