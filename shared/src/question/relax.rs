//! Changes of a question that no plan satisfies: each is tried, so that it works.

use super::answer::LITTLE_MORE;
use super::batches::GlobalBatches;
use super::unmet::{Nearby, Relaxation, Unmet};
use super::{Goal, GpuOffer, PlannedRun, Question, Survey, TrainableTokens};
use crate::field::Field;
use crate::gpu_counts::GpuCounts;
use crate::message::Setting;
use crate::search::LayoutSearch;
use crate::sorting::sorted;
use crate::units::{format_count, significant_up};

/// The largest number of GPUs that is suggested.
const MOST_SUGGESTED: u32 = 65_536;

/// The longest deadline that is suggested, in days.
const MOST_DAYS: f64 = 365.0;

/// Searches beyond the largest number of GPUs, before none is suggested.
const MOST_TRIED: usize = 8;

/// Whole nodes, at most, that are all tried before a number of GPUs is suggested.
const MOST_BETWEEN: u32 = 16;

impl Question {
    /// Returns changes with which a plan works, after none did.
    pub(super) fn relaxations(&self, offer: &GpuOffer, unmet: Unmet, nearby: &Nearby<'_>) -> Vec<Relaxation> {
        let Nearby { nearest, affordable, tried, .. } = *nearby;
        let by_tokens = nearby.enough_tokens.map(by_tokens);
        match (unmet, nearest, self.goal) {
            (Unmet::NoLayout, ..) => self.with_a_layout(offer, tried).into_iter().collect(),
            (Unmet::TooSlow { days }, Some(_), Goal::Deadline(limit)) => [
                self.with_more_gpus(offer, tried, days / limit),
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
                let budget = Relaxation { setting: budget, run: run.clone() };
                let later = affordable.and_then(|run| self.with_deadline(run));
                let by_chance = nearby.with_other_chance.map(|run| self.by_chance(run));
                std::iter::once(budget).chain(by_chance).chain(later).chain(by_tokens).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the smallest change with which a layout works, in this order: less headroom; one lock less; another number of
    /// GPUs; a larger global batch.
    fn with_a_layout(&self, offer: &GpuOffer, tried: &[u32]) -> Option<Relaxation> {
        let most = tried.last().copied()?;
        let with = |question: &Question, gpus: u32, setting: Setting| {
            let run = PlannedRun::best_of(&LayoutSearch::new(question.space(offer)), question, offer, gpus)?;
            Some(Relaxation { setting, run })
        };
        if self.headroom_bytes > 0.0 {
            let question = Question { headroom_bytes: 0.0, ..self.clone() };
            if let Some(found) = with(&question, most, Setting::new(Field::Headroom, 0)) {
                return Some(found);
            }
        }
        for field in self.locks.fields() {
            let locks = self.locks.without(field);
            let setting = Setting::new(Field::Lock, &locks);
            let question = Question { locks, ..self.clone() };
            if let Some(found) = with(&question, most, setting) {
                return Some(found);
            }
        }
        let search = LayoutSearch::new(self.space(offer));
        let mut nodes = GpuCounts::default().of_nodes(offer.gpu.gpus_per_node);
        nodes.retain(|gpus| tried.binary_search(gpus).is_err());
        // The nearest count is the smallest change.
        for gpus in sorted(&nodes, |one, other| one.abs_diff(most).cmp(&other.abs_diff(most))) {
            if let Some(run) = PlannedRun::best_of(&search, self, offer, gpus) {
                return Some(Relaxation { setting: Setting::new(Field::GpuRange, gpus), run });
            }
        }
        // A power of two divides by most degrees.
        let size = self.gbs.sizes().last().copied()?.next_power_of_two();
        for gbs in [size, size.saturating_mul(2), size.saturating_mul(4)] {
            let question = Question { gbs: GlobalBatches::fixed(gbs), ..self.clone() };
            if let Some(found) = with(&question, most, Setting::new(Field::Gbs, gbs)) {
                return Some(found);
            }
        }
        None
    }

    /// Returns the fewest GPUs beyond those tried that reach the deadline, as far as more GPUs are faster. `times` is how many
    /// times too slow the best plan is, so that fewer GPUs than as many times more can't be enough.
    fn with_more_gpus(&self, offer: &GpuOffer, tried: &[u32], times: f64) -> Option<Relaxation> {
        let most_tried = *tried.last()?;
        let least = f64::from(most_tried) * times;
        let mut survey = Survey::new(self, offer);
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
        let run = rounder.unwrap_or(run);
        Some(Relaxation { setting: Setting::new(Field::GpuRange, run.gpus), run })
    }

    /// Returns the other chance to reach the goal.
    fn by_chance(&self, run: &PlannedRun) -> Relaxation {
        Relaxation { setting: Setting::new(Field::Chance, self.chance.other()), run: run.clone() }
    }

    /// Returns the deadline that a plan reaches; none that nobody would wait for.
    fn with_deadline(&self, run: &PlannedRun) -> Option<Relaxation> {
        let days = run.days_with(self.chance);
        if days > MOST_DAYS {
            return None;
        }
        let days = significant_up(days, if days < 10.0 { 2 } else { 3 });
        let setting = Setting::new(Field::Deadline, format!("{days}d"));
        Some(Relaxation { setting, run: run.clone() })
    }
}

/// Returns the tokens with which a plan reaches the goal.
fn by_tokens(enough: &TrainableTokens) -> Relaxation {
    let setting = Setting::new(Field::Tokens, format_count(enough.tokens));
    Relaxation { setting, run: enough.run.clone() }
}
