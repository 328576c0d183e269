//! The search of one GPU type, count by count.

use super::plan::LISTED_LAYOUTS;
use super::{Goal, GpuAnswer, GpuOffer, Objective, PlannedRun, Question};
use crate::precision::Dtype;
use crate::search::{LayoutSearch, PublishedSplit, SearchSpace};
use std::collections::VecDeque;

/// The share of the days below which another batch than the question's is worth it.
const WORTH_ANOTHER_BATCH: f64 = 0.98;

/// The numbers of GPUs that are searched, at most, between the largest round one and the limit.
const MOST_TOWARDS_LIMIT: usize = 16;

/// The search of one GPU type for a question. Each count takes milliseconds, so that a page can show results as they come and
/// stop when the question changes.
pub struct Survey<'a> {
    pub(super) question: &'a Question,
    pub(super) offer: &'a GpuOffer,
    /// How many layouts the answer lists.
    pub(super) listed: usize,
    pub(super) search: LayoutSearch<'a>,
    /// The searches with batches that suit some numbers of GPUs better. They are few, and a map would make the worker larger.
    suited: Vec<(Vec<u32>, LayoutSearch<'a>)>,
    waiting: VecDeque<u32>,
    /// The best plan of each number of GPUs, ascending.
    pub(super) points: Vec<PlannedRun>,
    /// Counts without a layout, ascending.
    pub(super) empty: Vec<u32>,
}

impl Question {
    /// Returns the space of layouts for an offer.
    pub fn space<'a>(&'a self, offer: &'a GpuOffer) -> SearchSpace<'a> {
        SearchSpace {
            model: self.model.id_in_recipes(),
            architecture: &self.model.architecture,
            gpu: &offer.gpu,
            dtypes: offer.dtypes.clone(),
            gbs: self.gbs.sizes().to_vec(),
            seq_len: self.seq_len,
            options: offer.options,
            splits: PublishedSplit::of_model(&self.model.id, self.model.architecture.layers),
            locks: self.locks.clone(),
            headroom_bytes: self.headroom_bytes,
        }
    }
}

impl<'a> Survey<'a> {
    /// Prepares the search of an offer.
    pub fn new(question: &'a Question, offer: &'a GpuOffer) -> Survey<'a> {
        Survey::with(question, offer, LayoutSearch::new(question.space(offer)))
    }

    /// Prepares the search for a question that differs in nothing but its goal, tokens, numbers of GPUs, batches, locks or headroom, and
    /// of an offer that differs in nothing but precisions that it lacks. What this survey has computed of the layouts that both have,
    /// that one needs not.
    #[must_use]
    pub fn again<'b>(&self, question: &'b Question, offer: &'b GpuOffer) -> Survey<'b> {
        let space = question.space(offer);
        // Locks decide which layouts there are.
        let search = match question.locks == self.question.locks {
            true => self.search.in_space(space),
            false => LayoutSearch::new(space),
        };
        Survey::with(question, offer, search)
    }

    fn with(question: &'a Question, offer: &'a GpuOffer, search: LayoutSearch<'a>) -> Survey<'a> {
        Survey {
            question,
            offer,
            listed: LISTED_LAYOUTS,
            search,
            suited: Vec::new(),
            waiting: question.counts.of_nodes(offer.gpu.gpus_per_node).into(),
            points: Vec::new(),
            empty: Vec::new(),
        }
    }

    /// Returns the survey with another number of layouts in its answer.
    #[must_use]
    pub fn listing(self, listed: usize) -> Survey<'a> {
        Survey { listed, ..self }
    }

    /// Returns how many counts are known to be left to search.
    pub fn remaining(&self) -> usize {
        self.waiting.len()
    }

    /// Searches the next number of GPUs, and returns its best plan; none if no layout works there.
    ///
    /// # Errors
    /// Nothing is left to search.
    pub fn step(&mut self) -> Result<Option<&PlannedRun>, Finished> {
        if self.waiting.is_empty() && self.question.counts.is_coarse() {
            self.waiting = self.finer_counts().into();
            if self.waiting.is_empty() {
                self.waiting.extend(self.count_towards_other_chance());
            }
        }
        let Some(gpus) = self.waiting.pop_front() else { return Err(Finished) };
        let Some(run) = self.best_run(gpus) else {
            self.has_no_plan(gpus);
            return Ok(None);
        };
        let place = self.points.partition_point(|point| point.gpus < gpus);
        self.points.insert(place, run);
        Ok(Some(&self.points[place]))
    }

    /// Keeps that a number of GPUs has no plan, so that it is not searched again.
    pub(super) fn has_no_plan(&mut self, gpus: u32) {
        let place = self.empty.partition_point(|count| *count < gpus);
        self.empty.insert(place, gpus);
    }

    /// Returns the best plan on a number of GPUs, with the question's batch or with one that suits the number.
    pub(super) fn best_run(&mut self, gpus: u32) -> Option<PlannedRun> {
        let (question, offer) = (self.question, self.offer);
        let usual = PlannedRun::best_of(&self.search, question, offer, gpus);
        let sizes = question.gbs.suited(gpus);
        if sizes.is_empty() {
            return usual;
        }
        if self.suited(&sizes).is_none() {
            let search = self.search.with_batches(sizes.clone());
            self.suited.push((sizes.clone(), search));
        }
        let suited =
            self.suited(&sizes).and_then(|search| PlannedRun::best_of(search, question, offer, gpus));
        let is_better = |one: &PlannedRun, than: &PlannedRun| {
            one.time.high.days < than.time.high.days * WORTH_ANOTHER_BATCH
        };
        match (usual, suited) {
            (Some(usual), Some(suited)) if is_better(&suited, &usual) => Some(suited),
            (usual @ Some(_), _) => usual,
            (None, suited) => suited,
        }
    }

    /// Returns the search that found a plan.
    pub(super) fn search_of(&self, run: &PlannedRun) -> &LayoutSearch<'a> {
        let is_usual = self.question.gbs.sizes().contains(&run.layout.candidate.gbs);
        let suited = self.suited(&self.question.gbs.suited(run.gpus));
        suited.filter(|_| !is_usual).unwrap_or(&self.search)
    }

    /// Returns the search with these batches, which suit some numbers of GPUs better.
    fn suited(&self, sizes: &[u32]) -> Option<&LayoutSearch<'a>> {
        let (_, search) = self.suited.iter().find(|(of, _)| of == sizes)?;
        Some(search)
    }

    /// Searches everything that is left.
    pub fn finish(mut self) -> GpuAnswer {
        while self.step().is_ok() {}
        self.answer()
    }

    /// Returns the best plan of those searched so far.
    pub fn best(&self) -> Option<&PlannedRun> {
        self.question.choose(&self.points).map(|index| &self.points[index])
    }

    /// Returns every whole node between the best count and the one below it: fewer GPUs may be enough. If no round count reaches
    /// the goal, a count between the largest one and the limit may.
    fn finer_counts(&self) -> Vec<u32> {
        let node = self.offer.gpu.gpus_per_node.max(1);
        if matches!(self.question.goal, Goal::Open) {
            return Vec::new();
        }
        // Between a count that is too slow and one that is too expensive, another may be neither.
        let first_in_time = || self.points.iter().position(|point| self.question.is_in_time(point));
        // Not rounded up: a count below the fewest of these may be enough.
        let best = self.question.choose_with(self.question.chance, &self.points).or_else(first_in_time);
        let empty_below = |most: u32| self.empty.iter().rev().find(|gpus| **gpus < most).copied();
        let (above, most) = match best.map(|best| (best.checked_sub(1), self.points[best].gpus - 1)) {
            Some((Some(before), most)) => (self.points[before].gpus, most),
            Some((None, most)) => (empty_below(most).unwrap_or(0), most),
            None => {
                let Some(limit) = self.question.counts.limit() else { return Vec::new() };
                let round = self.question.counts.of_nodes(node).last().copied();
                (round.unwrap_or(0), limit)
            }
        };
        let nodes = above / node + 1..=most / node;
        // Below the best count, each is tried. Towards a limit, a count in each part of the gap is.
        let step = if best.is_some() {
            1
        } else {
            (nodes.clone().count().div_ceil(MOST_TOWARDS_LIMIT)).next_power_of_two()
        };
        let is_new = |gpus: &u32| {
            self.empty.binary_search(gpus).is_err()
                && self.points.binary_search_by_key(gpus, |point| point.gpus).is_err()
        };
        nodes
            .filter(|nodes| (*nodes as usize).is_multiple_of(step))
            .map(|nodes| nodes * node)
            .filter(is_new)
            .collect()
    }

    /// Returns the count halfway between the smallest that is known to meet the deadline at the other chance and the next smaller
    /// searched one. None if they are neighbours, or if no count meets it.
    fn count_towards_other_chance(&self) -> Option<u32> {
        let node = self.offer.gpu.gpus_per_node.max(1);
        // Where nothing reaches the deadline, nothing was refined either.
        self.question.choose(&self.points)?;
        // Only for the fewest GPUs are the counts below the best one worse.
        let other = self.question.with_other_chance(&self.points);
        let other = other.filter(|_| self.question.objective == Objective::FewestGpus)?;
        let most = self.points[other].gpus;
        let planned = other.checked_sub(1).map(|before| self.points[before].gpus);
        let empty = self.empty.iter().rev().find(|gpus| **gpus < most).copied();
        let between = (planned.max(empty)? + most) / 2 / node * node;
        (planned.max(empty)? < between && between < most).then_some(between)
    }
}

impl GpuAnswer {
    /// Returns the best plan if only BF16 may be used; none if the best plan uses it, or another precision is not a choice.
    pub fn in_bf16(&self, question: &Question, offer: &GpuOffer) -> Option<PlannedRun> {
        let offer = offer
            .in_bf16()
            .filter(|_| self.best().is_some_and(|run| run.layout.candidate.dtype != Dtype::Bf16))?;
        let mut survey = Survey::new(question, &offer);
        while survey.step().is_ok() {}
        survey.best().cloned()
    }
}

/// Nothing is left to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished;
