//! The page's side of the worker that searches for plans: it asks whenever the question changes, and keeps what was
//! found.

use crate::message::search::{
    AskedGoal, AskedGpu, AskedQuestion, FoundAnswer, FoundPlan, SearchNews, SearchReply, SearchRequest,
};
use crate::reader::{PageWorker, SEARCH_WORKER};
use leptos::prelude::*;
use std::time::Duration;
use trainplan_shared::link;
use trainplan_shared::problem::Problem;
use trainplan_shared::question::Objective;
use trainplan_shared::spec::Spec;

/// How long typing must pause before the worker is asked.
const PAUSE: Duration = Duration::from_millis(120);

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

/// What the search found so far. What belongs to the previous question stays until it is replaced.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Findings {
    /// The question; none before the first answer.
    pub(super) asked: Option<AskedQuestion>,
    /// What was found for each GPU type of the question.
    pub(super) offers: Vec<OfferFindings>,
    /// The problems of the latest question.
    pub(super) problems: Vec<Problem>,
    /// Whether the latest question is fully answered.
    pub(super) is_done: bool,
    /// Whether anything here belongs to the previous question: from a change of the question until every GPU type is answered.
    /// It stays so while the question has problems.
    pub(super) is_behind: bool,
}

/// What was found for a GPU type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OfferFindings {
    pub(super) gpu: AskedGpu,
    /// The best plan on each number of GPUs, ascending.
    pub(super) points: Vec<FoundPlan>,
    pub(super) answer: Option<FoundAnswer>,
    /// Whether the answer belongs to the previous question.
    pub(super) is_old: bool,
    /// Whether the points belong to the previous question.
    has_old_points: bool,
}

impl OfferFindings {
    /// Drops the points of the previous question before the first of this one is added.
    fn drop_old_points(&mut self) {
        if std::mem::take(&mut self.has_old_points) {
            self.points.clear();
        }
    }
}

impl Findings {
    /// Adds what the worker says about the latest question.
    fn hear(&mut self, news: SearchNews) {
        match news {
            SearchNews::Refused(refusals) => {
                self.problems = refusals.into_iter().map(Problem::from).collect();
                self.is_done = true;
            }
            SearchNews::Asked(asked) => {
                self.problems.clear();
                let mut before = std::mem::take(&mut self.offers);
                let offer = |gpu: &AskedGpu| {
                    let old = before.iter_mut().find(|offer| offer.gpu.id == gpu.id).map(std::mem::take);
                    OfferFindings {
                        gpu: gpu.clone(),
                        is_old: true,
                        has_old_points: true,
                        ..old.unwrap_or_default()
                    }
                };
                self.offers = asked.offers.iter().map(offer).collect();
                self.asked = Some(asked);
            }
            SearchNews::Point { offer, plan } => {
                let Some(offer) = self.offers.get_mut(offer) else { return };
                offer.drop_old_points();
                match offer.points.binary_search_by_key(&plan.gpus, |point| point.gpus) {
                    Ok(place) => offer.points[place] = *plan,
                    Err(place) => offer.points.insert(place, *plan),
                }
            }
            SearchNews::Answered { offer, answer } => {
                let Some(offer) = self.offers.get_mut(offer) else { return };
                offer.drop_old_points();
                offer.answer = Some(*answer);
                offer.is_old = false;
                self.is_behind = self.offers.iter().any(|offer| offer.is_old);
            }
            SearchNews::Done => {
                self.is_done = true;
                self.is_behind = false;
            }
        }
    }

    /// Marks everything as the answer to the previous question.
    fn fall_behind(&mut self) {
        self.is_done = false;
        self.is_behind = self.asked.is_some();
    }

    /// Returns the goal of the question.
    pub(super) fn goal(&self) -> AskedGoal {
        self.asked.as_ref().map_or(AskedGoal::Open, |asked| asked.goal)
    }

    /// Returns the budget: the goal, or the limit beside a deadline.
    pub(super) fn budget(&self) -> Option<f64> {
        match self.goal() {
            AskedGoal::Budget(budget) => Some(budget),
            AskedGoal::Deadline(_) | AskedGoal::Open => self.asked.as_ref()?.max_cost,
        }
    }

    /// Returns the indices of the GPU types with a plan that reaches the goal, best first.
    pub(super) fn reaching(&self) -> Vec<usize> {
        let plan = |index: &usize| {
            let answer = self.offers[*index].answer.as_ref()?;
            answer.plan.as_ref().filter(|_| answer.unmet.is_none())
        };
        let mut reaching: Vec<usize> = (0..self.offers.len()).filter(|index| plan(index).is_some()).collect();
        let is_priced = reaching.iter().filter_map(plan).all(|plan| plan.cost.is_some());
        let objective = self.asked.as_ref().and_then(|asked| asked.objective).unwrap_or(Objective::Fastest);
        let value = |index: &usize| {
            plan(index).map_or(f64::INFINITY, |plan| {
                let cost = plan.cost.map(|cost| cost.mid);
                objective.across_gpu_types(plan.gpus, plan.days.mid, cost, is_priced)
            })
        };
        reaching.sort_by(|one, other| value(one).total_cmp(&value(other)));
        reaching
    }

    /// Returns the index of the GPU type with the best plan; if none reaches the goal, of the one that comes nearest to it.
    pub(super) fn best(&self) -> Option<usize> {
        let missing = |index: usize| {
            let plan = self.offers[index].answer.as_ref()?.plan.as_ref()?;
            let value = match (self.goal(), plan.cost) {
                (AskedGoal::Budget(_), Some(cost)) => cost.mid,
                _ => plan.days.mid,
            };
            Some((index, value))
        };
        let nearest =
            || (0..self.offers.len()).filter_map(missing).min_by(|one, other| one.1.total_cmp(&other.1));
        self.reaching().first().copied().or_else(|| Some(nearest()?.0))
    }

    /// Returns the best plan of the best GPU type, once every GPU type is answered.
    pub(super) fn best_plan(&self) -> Option<&FoundPlan> {
        if self.offers.iter().any(|offer| offer.answer.is_none()) {
            return None;
        }
        self.offers[self.best()?].answer.as_ref()?.plan.as_ref()
    }

    /// Whether every GPU type is answered, by this question or the previous one.
    pub(super) fn is_answered(&self) -> bool {
        !self.offers.is_empty() && self.offers.iter().all(|offer| offer.answer.is_some())
    }

    /// Whether any GPU type is still to be answered.
    pub(super) fn is_searching(&self) -> bool {
        !self.is_done && self.offers.iter().any(|offer| offer.is_old || offer.answer.is_none())
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
                search.findings.update(Findings::fall_behind);
                // The first question needs no pause.
                match before.is_some() && search.number.get_untracked() > 0 {
                    true => ask(query),
                    false => search.ask(query),
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
        let number = number + 1;
        self.number.set(number);
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
                self.findings.update(|findings| findings.hear(news));
            }
            Some(SearchReply::News { .. }) => {}
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::message::search::Spread;

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
        assert!(!findings.is_searching());
    }

    #[test]
    fn old_answers_stay_until_they_are_replaced() {
        let mut findings = answered(&[("H100", Some(plan(1024, 58.0, 4e6)))]);
        let asked = findings.asked.clone().expect("a question");
        findings.fall_behind();
        assert!(findings.is_behind);
        findings.hear(SearchNews::Asked(asked));
        assert!(findings.offers[0].is_old && findings.offers[0].answer.is_some());
        assert!(findings.is_searching());
        findings.hear(SearchNews::Point { offer: 0, plan: Box::new(plan(64, 900.0, 4e6)) });
        findings.hear(SearchNews::Point { offer: 0, plan: Box::new(plan(32, 1800.0, 4e6)) });
        let counts: Vec<u32> = findings.offers[0].points.iter().map(|point| point.gpus).collect();
        assert_eq!(counts, [32, 64]);
        // The answer is still the old one.
        assert!(findings.offers[0].is_old && findings.is_searching() && findings.is_behind);
        findings.hear(SearchNews::Answered { offer: 0, answer: Box::default() });
        assert!(!findings.offers[0].is_old && !findings.is_searching() && !findings.is_behind);
    }

    #[test]
    fn answers_are_behind_until_every_gpu_type_is_answered() {
        let mut findings =
            answered(&[("H100", Some(plan(1024, 58.0, 4e6))), ("B200", Some(plan(512, 59.0, 3e6)))]);
        let asked = findings.asked.clone().expect("a question");
        findings.fall_behind();
        findings.hear(SearchNews::Asked(asked));
        findings.hear(SearchNews::Answered { offer: 1, answer: Box::default() });
        assert!(findings.is_behind && !findings.offers[1].is_old);
        findings.hear(SearchNews::Answered { offer: 0, answer: Box::default() });
        assert!(!findings.is_behind);
        findings.fall_behind();
        findings.hear(SearchNews::Refused(Vec::new()));
        assert!(findings.is_behind);
    }
}
