//! The answer for one GPU type: the best plan, other good layouts, and why the goal can't be reached.

use super::unmet::{Relaxation, Unmet};
use super::{Chance, Goal, GpuOffer, Objective, PlannedRun, Question, TrainableTokens};
use crate::assumption::Assumption;
use crate::catalog::{Gpu, Recipe};
use crate::gpu_counts::GpuCounts;
use crate::search::{SearchCounts, SearchSpace};
use crate::stack::Stack;
use std::borrow::Cow;

/// The share of the days of the best plan below which a less certain layout is worth a look.
pub const CLEARLY_FASTER: f64 = 0.9;

/// How many times the lowest cost is worth fewer days, if the objective is [`Objective::Worthwhile`].
pub const LITTLE_WASTE: f64 = 1.25;

/// How many times the GPUs and the cost of the plan on the fewest GPUs a plan on a rounder number may have.
pub(super) const LITTLE_MORE: f64 = 1.02;

/// What a search of one GPU type found.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuAnswer {
    /// The GPU type.
    pub gpu: Cow<'static, Gpu>,
    /// The best plan of every number of GPUs that has one, ascending.
    pub points: Vec<PlannedRun>,
    /// The index of the best plan; none if no plan reaches the goal.
    pub(super) chosen: Option<usize>,
    /// The index of the best plan, or of the one that comes nearest to the goal; none if no layout works.
    pub(super) shown: Option<usize>,
    /// The best layouts on the GPU count of the plan to show, whose layout comes first.
    pub layouts: Vec<PlannedRun>,
    /// Whether the first layout ranks below the next one, which is not in time.
    pub first_is_moved_up: bool,
    /// The layout of a published recipe of the model on this GPU type and GPU count, with the recipe.
    pub published: Option<(&'static Recipe, PlannedRun)>,
    /// The number of layouts on this GPU count, and why the others were discarded.
    pub counts: SearchCounts,
    /// The same plan with the software of the nearest measured run of the model on this GPU type, if nobody measured the plan's
    /// software there and that one is clearly slower.
    pub with_measured_software: Option<(Stack, PlannedRun)>,
    /// The best plan at the other chance. None without a deadline or a budget, if no plan reaches the goal, or if it is neither
    /// faster nor cheaper than the best one, nor needs fewer GPUs where these count.
    pub with_other_chance: Option<PlannedRun>,
    /// What prevents the goal; none if it is reached.
    pub unmet: Option<Unmet>,
    /// Changes of the question that make a plan reach the goal; empty if one already does.
    pub relaxations: Vec<Relaxation>,
    /// Step times as a multiple of the predicted ones: more than 1 if the plans have those of slower launch scripts.
    pub(super) slowdown: f64,
}

impl GpuAnswer {
    /// Returns the best plan; none if no plan reaches the goal.
    pub fn best(&self) -> Option<&PlannedRun> {
        self.chosen.map(|index| &self.points[index])
    }

    /// Returns the plan to show: the best one, or the one that comes nearest to the goal, which [`Unmet`] describes; none if no layout
    /// works.
    pub fn shown(&self) -> Option<&PlannedRun> {
        self.shown.map(|index| &self.points[index])
    }

    /// Returns the listed layouts and the published one with measured software, each with the software's title, if this software
    /// makes them miss the goal. Empty if it doesn't decide for the plan to show.
    pub fn layouts_missing_with(
        &self,
        question: &Question,
        offer: &GpuOffer,
    ) -> Vec<(&'static str, PlannedRun)> {
        let space = question.space(offer);
        let published = self.published.iter().map(|(_, run)| run);
        let layouts = self.layouts.iter().chain(published);
        layouts.filter_map(|run| self.layout_missing_with(run, &space, question, offer)).collect()
    }

    /// Returns a layout with measured software and the title of this software, if the software makes the layout miss the goal. None
    /// if the plan to show reaches the goal with it, or already misses the goal as predicted. `space` is that of the question.
    pub fn layout_missing_with(
        &self,
        run: &PlannedRun,
        space: &SearchSpace<'_>,
        question: &Question,
        offer: &GpuOffer,
    ) -> Option<(&'static str, PlannedRun)> {
        let is_only_by_it = |run| self.is_by_measured_software() && question.reaches_as_predicted(run);
        let unmet = self.unmet.filter(|_| self.shown().is_some_and(is_only_by_it))?;
        let (software, measured) = run.with_measured_software(space, question, offer)?;
        let decides = match unmet {
            Unmet::TooSlow { .. } => measured.days > run.time.high.days,
            _ => measured.expected_cost > run.cost.map(|cost| cost.total.high),
        };
        decides.then(|| (software.title(), measured))
    }

    /// Returns the fewest GPUs that would reach the goal as predicted, where the best plan has more only because they don't with software
    /// that was measured; none elsewhere.
    pub fn enough_as_predicted(&self, question: &Question) -> Option<u32> {
        let best = self.best().filter(|_| question.objective == Objective::FewestGpus)?;
        let mut fewer = self.points.iter().filter(|run| run.gpus < best.gpus && !question.reaches(run));
        Some(fewer.find(|run| question.reaches_as_predicted(run))?.gpus)
    }

    /// Whether measured software decided that the plan to show misses the goal.
    pub fn is_by_measured_software(&self) -> bool {
        let most_cost = |run: &PlannedRun| run.cost.map(|cost| cost.total.high);
        self.shown()
            .zip(self.unmet)
            .is_some_and(|(run, unmet)| unmet.is_by_measured_software(run.time.high.days, most_cost(run)))
    }

    /// Returns the title of the software of [`GpuAnswer::with_measured_software`].
    pub fn measured_software(&self) -> Option<&'static str> {
        self.with_measured_software.as_ref().map(|(software, _)| software.title())
    }

    /// Returns the most tokens that the budget, the deadline or both allow, rounded down, and the plan with them: on any number of
    /// GPUs if the most tokens are asked for, otherwise on the GPUs of the best plan. None without a plan, or if nothing limits the
    /// tokens.
    pub fn most_tokens(&self, question: &Question, offer: &GpuOffer) -> Option<TrainableTokens> {
        let best = self.best()?;
        match question.objective {
            Objective::MostTokens if question.limits_tokens() => {
                let most = question.most_tokens_of(offer)?;
                // The plans may have the times of slower launch scripts.
                if let Some(point) = self.points.iter().find(|point| point.gpus == most.run.gpus) {
                    return question.within_limits(offer, point);
                }
                if self.slowdown == 1.0 {
                    return Some(most);
                }
                let question = Question { tokens: most.tokens, ..question.clone() };
                question.within_limits(offer, &most.run.slowed(&question, offer, self.slowdown))
            }
            _ => question.within_limits(offer, best),
        }
    }
}

impl PlannedRun {
    /// Whether it uses and costs at most 2 % more than a plan on fewer GPUs.
    pub(super) fn is_little_more_than(&self, fewer: &PlannedRun) -> bool {
        let is_as_cheap = match (self.expected_cost, fewer.expected_cost) {
            (Some(cost), Some(least)) => cost <= least * LITTLE_MORE,
            _ => true,
        };
        is_as_cheap && f64::from(self.gpus) <= f64::from(fewer.gpus) * LITTLE_MORE
    }
}

impl Question {
    /// Returns the index of the best plan that reaches the goal.
    pub(super) fn choose(&self, points: &[PlannedRun]) -> Option<usize> {
        let best = self.choose_with(self.chance, points)?;
        Some(self.rounder(self.chance, points, best))
    }

    /// Returns the index of the plan on the roundest number of GPUs, by the power of two that divides it, of those that use and cost at
    /// most 2 % more than the plan on the fewest. A round number can be divided in more ways, and is what clusters are allocated in.
    /// `points` ascend by GPUs.
    pub(super) fn rounder(&self, chance: Chance, points: &[PlannedRun], fewest: usize) -> usize {
        // Numbers that the user lists are all meant.
        if self.objective != Objective::FewestGpus || matches!(self.counts, GpuCounts::Only(_)) {
            return fewest;
        }
        let mut roundest = fewest;
        for (index, point) in points.iter().enumerate().skip(fewest + 1) {
            let is_rounder = point.gpus.trailing_zeros() > points[roundest].gpus.trailing_zeros();
            if is_rounder && point.is_little_more_than(&points[fewest]) && self.reaches_with(chance, point) {
                roundest = index;
            }
        }
        roundest
    }

    /// Returns the index of the plan that is best if the goal has to be reached with the other chance; none without a deadline or a
    /// budget.
    pub(super) fn with_other_chance(&self, points: &[PlannedRun]) -> Option<usize> {
        let has_limit = !matches!(self.goal, Goal::Open);
        has_limit.then(|| self.choose_with(self.chance.other(), points)).flatten()
    }

    /// Returns the index of the best plan at a chance, before its number of GPUs is rounded up.
    pub(super) fn choose_with(&self, chance: Chance, points: &[PlannedRun]) -> Option<usize> {
        let reaches = |point: &PlannedRun| self.reaches_with(chance, point);
        let cost = |point: &PlannedRun| point.expected_cost.unwrap_or(f64::INFINITY);
        let least_cost = points.iter().filter(|point| reaches(point)).map(cost).fold(f64::INFINITY, f64::min);
        let value = |point: &PlannedRun| match self.objective {
            Objective::FewestGpus => f64::from(point.gpus),
            Objective::Worthwhile if cost(point) > least_cost * LITTLE_WASTE => f64::INFINITY,
            Objective::Fastest | Objective::Worthwhile => point.days,
            // The cheapest run of the given tokens is also the one whose budget buys the most.
            Objective::Cheapest | Objective::MostTokens => cost(point),
        };
        let reaching = points.iter().enumerate().filter(|(_, point)| reaches(point));
        let best = reaching.min_by(|(_, one), (_, other)| {
            value(one).total_cmp(&value(other)).then(one.gpus.cmp(&other.gpus))
        });
        best.map(|(index, _)| index)
    }

    /// Whether a plan reaches the goal at the chosen chance.
    pub fn reaches(&self, point: &PlannedRun) -> bool {
        self.reaches_with(self.chance, point)
    }

    /// Whether a plan reaches the goal if its software performs as predicted.
    fn reaches_as_predicted(&self, point: &PlannedRun) -> bool {
        self.reaches(&PlannedRun { days_as_measured: None, ..point.clone() })
    }

    fn reaches_with(&self, chance: Chance, point: &PlannedRun) -> bool {
        self.is_in_time_with(chance, point) && self.is_affordable_with(chance, point)
    }

    /// Whether a plan meets the deadline, or ends within the days that are assumed without one.
    pub(super) fn is_in_time(&self, point: &PlannedRun) -> bool {
        self.is_in_time_with(self.chance, point)
    }

    fn is_in_time_with(&self, chance: Chance, point: &PlannedRun) -> bool {
        self.most_days().is_none_or(|most| point.days_with(chance) <= most)
    }

    /// Returns the days in which a plan must end at the chosen chance: the deadline, or the assumed one.
    pub fn most_days(&self) -> Option<f64> {
        match self.goal {
            Goal::Deadline(days) => Some(days),
            Goal::Budget(_) | Goal::Open => self.longest_days(),
        }
    }

    /// Returns the days that a run for a budget may take if neither a deadline nor the numbers of GPUs limit them: the cheapest one
    /// would take years on a few nodes. They are judged by the same chance as a deadline.
    pub fn longest_days(&self) -> Option<f64> {
        let is_unlimited = matches!(self.goal, Goal::Budget(_)) && self.counts.is_coarse();
        is_unlimited.then(|| Assumption::LongestRun.value())
    }

    /// Whether a plan stays within the budget, if there is one.
    pub(super) fn is_affordable(&self, point: &PlannedRun) -> bool {
        self.is_affordable_with(self.chance, point)
    }

    fn is_affordable_with(&self, chance: Chance, point: &PlannedRun) -> bool {
        self.budget().is_none_or(|budget| point.cost_with(chance).is_some_and(|cost| cost <= budget))
    }

    /// Returns the budget: the goal, or the limit beside a deadline.
    pub fn budget(&self) -> Option<f64> {
        match self.goal {
            Goal::Budget(budget) => Some(budget),
            Goal::Deadline(_) | Goal::Open => self.max_cost,
        }
    }

    /// Returns the index of the plan that comes nearest to a goal that none reaches: the cheapest of those in time, otherwise
    /// the fastest.
    pub(super) fn nearest(&self, points: &[PlannedRun]) -> Option<usize> {
        let is_any_in_time = points.iter().any(|point| self.is_in_time(point));
        let value = |point: &PlannedRun| match self.budget() {
            // At any price, the plan that takes the fewest GPU-days is the cheapest.
            Some(_) if is_any_in_time => {
                point.cost_with(self.chance).unwrap_or(point.days * f64::from(point.gpus))
            }
            _ => point.days_with(self.chance),
        };
        let all = points.iter().enumerate().filter(|(_, point)| !is_any_in_time || self.is_in_time(point));
        all.min_by(|(_, one), (_, other)| value(one).total_cmp(&value(other))).map(|(index, _)| index)
    }

    pub(super) fn unmet(
        &self,
        points: &[PlannedRun],
        nearest: Option<usize>,
        enough_tokens: Option<&TrainableTokens>,
    ) -> Unmet {
        let Some(nearest) = nearest.map(|index| &points[index]) else { return Unmet::NoLayout };
        match (self.budget().filter(|_| self.is_in_time(nearest)), nearest.cost_with(self.chance)) {
            (Some(_), None) => Unmet::NoPrice,
            (Some(_), Some(cost)) => {
                let (tokens, gpus) =
                    enough_tokens.map_or((0.0, 0), |enough| (enough.tokens, enough.run.gpus));
                Unmet::TooExpensive { cost, tokens, gpus }
            }
            (None, _) => Unmet::TooSlow { days: nearest.days_with(self.chance) },
        }
    }
}
