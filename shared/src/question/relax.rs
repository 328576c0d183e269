//! Changes of a question that no plan satisfies: each is tried, so that it works.

use super::answer::LITTLE_MORE;
use super::batches::GlobalBatches;
use super::limits::Reach;
use super::unmet::{Nearby, Relaxation, Unmet};
use super::{Goal, PlannedRun, Question, Survey, TrainableTokens};
use crate::decimal::write_decimal;
use crate::field::Field;
use crate::gpu_counts::GpuCounts;
use crate::message::Setting;
use crate::sorting::sorted;
use crate::units::{format_count, parse_count, significant_up};

/// The largest number of GPUs that is suggested.
const MOST_SUGGESTED: u32 = 65_536;

/// The longest deadline that is suggested, in days.
const MOST_DAYS: f64 = 365.0;

/// Searches beyond the largest number of GPUs, before none is suggested.
const MOST_TRIED: usize = 8;

/// Whole nodes, at most, that are all tried before a number of GPUs is suggested.
const MOST_BETWEEN: u32 = 16;

impl Question {
    /// Returns changes that make a plan work, if none works without them.
    pub(super) fn relaxations(
        &self,
        survey: &Survey<'_>,
        unmet: Unmet,
        nearby: &Nearby<'_>,
    ) -> Vec<Relaxation> {
        let Nearby { nearest, affordable, tried, .. } = *nearby;
        let by_tokens = nearby.enough_tokens.map(by_tokens);
        match (unmet, nearest, self.goal) {
            (Unmet::NoLayout, ..) => self.with_a_layout(survey, tried).into_iter().collect(),
            (Unmet::TooSlow { days }, Some(_), Goal::Deadline(limit)) => [
                tried.last().and_then(|most| self.with_more_gpus(survey, *most, days / limit)),
                nearby.with_other_chance.map(|run| self.by_chance(run)),
                affordable.and_then(|run| self.with_deadline(run)),
                by_tokens,
            ]
            .into_iter()
            .flatten()
            .collect(),
            // A deadline replaces the longest time that is assumed for a budget.
            (Unmet::TooSlow { .. }, Some(run), Goal::Budget(_)) => {
                let by_chance = nearby.with_other_chance.map(|run| self.by_chance(run));
                let later = Some(run).filter(|run| self.is_affordable(run));
                let later = later.and_then(|run| self.with_deadline(run));
                by_chance.into_iter().chain(later).chain(by_tokens).collect()
            }
            (Unmet::TooExpensive { cost, .. }, Some(run), _) => {
                let budget = significant_up(cost, 3);
                let budget = Setting::new(Field::Budget, format_count(budget));
                let budget = Relaxation { setting: budget, run: run.clone(), reaches_goal: true };
                let later = affordable.and_then(|run| self.with_deadline(run));
                let by_chance = nearby.with_other_chance.map(|run| self.by_chance(run));
                std::iter::once(budget).chain(by_chance).chain(later).chain(by_tokens).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the smallest change that makes a plan reach the goal, in this order: less headroom, another value of a lock or one
    /// lock less; another number of GPUs; a larger global batch. If none does, returns the smallest that at least makes a layout
    /// work.
    fn with_a_layout(&self, survey: &Survey<'_>, tried: &[u32]) -> Option<Relaxation> {
        let most = tried.last().copied()?;
        let reaches_goal =
            |change: &Option<Relaxation>| change.as_ref().is_some_and(|change| change.reaches_goal);
        let with_less_fixed = first_working(survey, self.with_less_fixed());
        if reaches_goal(&with_less_fixed) {
            return with_less_fixed;
        }
        let with_other_gpus = self.with_other_gpus(survey, tried, most);
        if reaches_goal(&with_other_gpus) {
            return with_other_gpus;
        }
        let with_larger_batch = first_working(survey, self.with_larger_batches());
        match reaches_goal(&with_larger_batch) {
            true => with_larger_batch,
            false => with_less_fixed.or(with_other_gpus).or(with_larger_batch),
        }
    }

    /// Returns the most tokens that one of the plans trains within the limits, if none trains the given ones, and the plan that a
    /// question for them has.
    pub(super) fn enough_tokens(&self, survey: &Survey<'_>) -> Option<TrainableTokens> {
        let Survey { offer, ref points, .. } = *survey;
        // With fewer tokens, these numbers of GPUs are searched too; which ones between them are depends on the tokens.
        let counts = self.counts.of_nodes(offer.gpu.gpus_per_node);
        let points = points.iter().filter(|run| counts.binary_search(&run.gpus).is_ok());
        let tokens = |run: &PlannedRun| self.reach(run).map_or(0.0, Reach::tokens);
        let run = points.max_by(|one, other| tokens(one).total_cmp(&tokens(other)))?;
        let enough = self.within_limits(offer, run)?;
        // For fewer tokens, other GPUs may be better. Plans with the times of their launch scripts are not those of a survey.
        let question = Question { tokens: enough.tokens, ..self.clone() };
        let planned = survey.again(&question, offer).best_run(run.gpus);
        let is_planned = planned.is_some_and(|planned| planned.layout == run.layout);
        match is_planned.then(|| question.answered(survey)).flatten() {
            Some((run, true)) => Some(TrainableTokens { run, ..enough }),
            _ => Some(enough),
        }
    }

    /// Returns the plan that answers the question, and whether it reaches the goal; none if no layout works. `survey` is of the
    /// question that this one changes.
    fn answered(&self, survey: &Survey<'_>) -> Option<(PlannedRun, bool)> {
        let mut survey = survey.again(self, survey.offer);
        while survey.step().is_ok() {}
        let chosen = self.choose(&survey.points);
        let shown = chosen.or_else(|| self.nearest(&survey.points))?;
        Some((survey.points.swap_remove(shown), chosen.is_some()))
    }

    /// Returns the question without headroom, and with other values of each of its locks, or without it.
    fn with_less_fixed(&self) -> Vec<(Setting, Question)> {
        let mut changes = Vec::new();
        if self.headroom_bytes > 0.0 {
            let question = Question { headroom_bytes: 0.0, ..self.clone() };
            changes.push((Setting::new(Field::Headroom, 0), question));
        }
        for field in self.locks.fields() {
            for locks in self.locks.with_other_values(field).into_iter().chain([self.locks.without(field)]) {
                changes.push((Setting::new(Field::Lock, &locks), Question { locks, ..self.clone() }));
            }
        }
        changes
    }

    /// Returns the question with larger global batches, within the field's bounds.
    fn with_larger_batches(&self) -> Vec<(Setting, Question)> {
        let Some(largest) = self.gbs.sizes().last() else { return Vec::new() };
        // A power of two divides by most degrees.
        let size = largest.next_power_of_two();
        let sizes = [size, size.saturating_mul(2), size.saturating_mul(4)].into_iter();
        let sizes = sizes.filter(|gbs| Field::Gbs.bounds().contains(f64::from(*gbs), parse_count));
        let with = |gbs| Question { gbs: GlobalBatches::fixed(gbs), ..self.clone() };
        sizes.map(|gbs| (Setting::new(Field::Gbs, gbs), with(gbs))).collect()
    }

    /// Returns the number of GPUs nearest to `most` with a layout, or the fewest that reach the goal if the plan there doesn't; if none
    /// do, the nearest.
    fn with_other_gpus(&self, survey: &Survey<'_>, tried: &[u32], most: u32) -> Option<Relaxation> {
        let Survey { offer, ref search, .. } = *survey;
        let mut nodes = GpuCounts::default().of_nodes(offer.gpu.gpus_per_node);
        nodes.retain(|gpus| tried.binary_search(gpus).is_err());
        let nodes = sorted(&nodes, |one, other| one.abs_diff(most).cmp(&other.abs_diff(most)));
        let run = nodes.into_iter().find_map(|gpus| PlannedRun::best_of(search, self, offer, gpus))?;
        if self.reaches(&run) {
            return Some(by_gpus(run, true));
        }
        let times = self.most_days().map_or(1.0, |limit| run.days_with(self.chance) / limit);
        self.with_more_gpus(survey, run.gpus, times).or_else(|| Some(by_gpus(run, false)))
    }

    /// Returns the fewest GPUs beyond `most_tried` that reach the goal, while more GPUs are faster. `times` is how many times too
    /// slow the best plan is, so that fewer GPUs than as many times more can't be enough.
    fn with_more_gpus(&self, survey: &Survey<'_>, most_tried: u32, times: f64) -> Option<Relaxation> {
        let least = f64::from(most_tried) * times;
        let offer = survey.offer;
        let mut survey = survey.again(self, offer);
        let mut reaching =
            |gpus| survey.best_run(gpus).filter(|run| self.is_in_time(run) && self.is_affordable(run));
        let node = offer.gpu.gpus_per_node.max(1);
        let counts = GpuCounts::UpTo(MOST_SUGGESTED).of_nodes(node);
        let larger = counts.into_iter().filter(|gpus| f64::from(*gpus) >= least).take(MOST_TRIED);
        let mut too_few = most_tried.max(least.floor() as u32) / node;
        let mut run = None;
        for gpus in larger {
            run = reaching(gpus);
            if run.is_some() {
                break;
            }
            too_few = gpus / node;
        }
        let mut run = run?;
        while run.gpus / node > too_few + MOST_BETWEEN {
            let between = (too_few + run.gpus / node) / 2;
            match reaching(between * node) {
                Some(fewer) => run = fewer,
                None => too_few = between,
            }
        }
        // A count that is too slow doesn't rule out fewer GPUs: their number may divide the batch better.
        let between = too_few + 1..run.gpus / node;
        let run = between.map(|nodes| nodes * node).find_map(&mut reaching).unwrap_or(run);
        // The roundest number that is hardly larger, as a search chooses it: see `Question::rounder`.
        let powers = (run.gpus.trailing_zeros() + 1..=MOST_SUGGESTED.ilog2()).rev();
        let rounder = powers
            .map(|power| (power, run.gpus.next_multiple_of(1 << power)))
            .filter(|(power, gpus)| gpus.trailing_zeros() == *power && gpus.is_multiple_of(node))
            .filter(|(_, gpus)| f64::from(*gpus) <= f64::from(run.gpus) * LITTLE_MORE)
            .find_map(|(_, gpus)| reaching(gpus).filter(|rounder| rounder.is_little_more_than(&run)));
        Some(by_gpus(rounder.unwrap_or(run), true))
    }

    /// Returns the other chance to reach the goal.
    fn by_chance(&self, run: &PlannedRun) -> Relaxation {
        let setting = Setting::new(Field::Chance, self.chance.other());
        Relaxation { setting, run: run.clone(), reaches_goal: true }
    }

    /// Returns the deadline that a plan meets; none if nobody would wait that long.
    fn with_deadline(&self, run: &PlannedRun) -> Option<Relaxation> {
        let days = run.days_with(self.chance);
        if days > MOST_DAYS {
            return None;
        }
        let days = significant_up(days, if days < 10.0 { 2 } else { 3 });
        let setting = Setting::new(Field::Deadline, write_decimal(days) + "d");
        Some(Relaxation { setting, run: run.clone(), reaches_goal: true })
    }
}

/// Returns the first change whose question has a plan that reaches the goal; if none does, the first with a layout.
fn first_working(survey: &Survey<'_>, changes: Vec<(Setting, Question)>) -> Option<Relaxation> {
    let mut first = None;
    for (setting, question) in changes {
        if let Some((run, reaches_goal)) = question.answered(survey) {
            let change = Relaxation { setting, run, reaches_goal };
            if reaches_goal {
                return Some(change);
            }
            first = first.or(Some(change));
        }
    }
    first
}

/// Returns the change to the number of tokens that a plan trains within the goal.
fn by_tokens(enough: &TrainableTokens) -> Relaxation {
    let setting = Setting::new(Field::Tokens, format_count(enough.tokens));
    Relaxation { setting, run: enough.run.clone(), reaches_goal: true }
}

/// Returns the number of GPUs of a plan.
fn by_gpus(run: PlannedRun, reaches_goal: bool) -> Relaxation {
    Relaxation { setting: Setting::new(Field::GpuRange, run.gpus), run, reaches_goal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    #[test]
    fn larger_batches_are_within_the_bounds_of_the_field() {
        let sizes = |gbs: &str| -> Vec<String> {
            let spec = Spec::default().with(Field::Model, "llama3.1-8b").with(Field::GpuTypes, "h100");
            let question = spec.with(Field::Gbs, gbs).question().unwrap();
            question.with_larger_batches().into_iter().map(|(setting, _)| setting.value).collect()
        };
        assert_eq!(sizes("1000"), ["1024", "2048", "4096"]);
        assert_eq!(sizes("2000000"), ["2097152", "4194304"]);
    }
}
