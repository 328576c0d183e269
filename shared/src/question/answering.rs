//! Turns what a survey searched into its answer.

use super::unmet::Nearby;
use super::{Goal, GpuAnswer, Objective, PlannedRun, Question, Survey};
use crate::catalog::{Catalog, Recipe};
use crate::search::{Candidate, RankedLayout, SearchCounts, SearchSpace};
use crate::sorting::{ascending, sorted};

impl Survey<'_> {
    /// Returns the answer from what was searched so far.
    pub fn answer(&self) -> GpuAnswer {
        let Survey { question, offer, listed, ref points, ref empty, .. } = *self;
        let chosen = question.choose(points);
        let shown = chosen.or_else(|| question.nearest(points));
        let search = shown.map_or(&self.search, |index| self.search_of(&points[index]));
        let gpus = shown.map(|index| points[index].gpus).or(empty.last().copied());
        let run = |gpus: u32, layout: RankedLayout| PlannedRun::new(question, offer, gpus, layout);
        let (mut layouts, mut counts) = (Vec::new(), SearchCounts::default());
        if let Some(gpus) = gpus {
            let ranking = search.rank(gpus, listed);
            counts = ranking.counts;
            layouts = ranking.best.into_iter().map(|layout| run(gpus, layout)).collect();
        }
        let is_moved_up = shown.is_some_and(|index| move_up(&points[index], &mut layouts));
        // Without a limit of time, only launch scripts put another layout first.
        let first_is_moved_up = is_moved_up && question.most_days().is_some();
        let published = gpus.and_then(|gpus| {
            let (recipe, layout) = published(question, search.space(), gpus, layouts.first()?.layout)?;
            Some((recipe, run(gpus, layout)))
        });
        let with_measured_software =
            shown.and_then(|index| points[index].with_measured_software(search.space(), question, offer));
        let enough_tokens = match chosen {
            Some(_) => None,
            None => question.enough_tokens(self),
        };
        let unmet = match chosen {
            Some(_) => None,
            None => Some(question.unmet(points, shown, enough_tokens.as_ref())),
        };
        let nearest = shown.map(|index| &points[index]);
        let tried = || {
            let tried = points.iter().map(|point| point.gpus).chain(empty.iter().copied());
            ascending(&tried.collect::<Vec<_>>())
        };
        let affordable = points.iter().filter(|point| question.is_affordable(point));
        let affordable = affordable.min_by(|one, other| one.days.total_cmp(&other.days));
        let affordable = affordable.filter(|_| matches!(question.goal, Goal::Deadline(_)));
        let best = chosen.map(|index| &points[index]);
        let is_worth_it = |other: &&PlannedRun| {
            let has_fewer =
                |best: &PlannedRun| question.objective == Objective::FewestGpus && other.gpus < best.gpus;
            best.is_none_or(|best| {
                other.days <= best.days || other.expected_cost <= best.expected_cost || has_fewer(best)
            })
        };
        let with_other_chance = question.with_other_chance(points);
        let with_other_chance = with_other_chance
            .map(|fewest| &points[question.rounder(question.chance.other(), points, fewest)]);
        let with_other_chance = with_other_chance.filter(is_worth_it).cloned();
        let relaxations = unmet.map_or(Vec::new(), |unmet| {
            let nearby = Nearby {
                nearest,
                affordable,
                with_other_chance: with_other_chance.as_ref(),
                enough_tokens: enough_tokens.as_ref(),
                tried: &tried(),
            };
            question.relaxations(self, unmet, &nearby)
        });
        GpuAnswer {
            gpu: offer.gpu.clone(),
            points: points.clone(),
            chosen,
            shown,
            layouts,
            first_is_moved_up,
            published,
            counts,
            with_measured_software,
            with_other_chance,
            unmet,
            relaxations,
            slowdown: 1.0,
        }
    }
}

/// Moves the layout of a plan to the first place. Returns whether it had another one.
fn move_up(plan: &PlannedRun, layouts: &mut Vec<PlannedRun>) -> bool {
    let is_its = |run: &PlannedRun| run.layout.candidate == plan.layout.candidate;
    let place = layouts.iter().position(is_its);
    if let Some(place) = place {
        layouts.remove(place);
    }
    layouts.insert(0, plan.clone());
    place != Some(0)
}

/// Returns the layout of the published recipe that is nearest to a number of GPUs, on that number, if it works there.
///
/// `best` gives the precision and the global batch, so that only the layout differs.
fn published(
    question: &Question,
    space: &SearchSpace<'_>,
    gpus: u32,
    best: RankedLayout,
) -> Option<(&'static Recipe, RankedLayout)> {
    let dtype = best.candidate.dtype;
    let recipes = Catalog::embedded().recipes().iter().filter(|recipe| {
        recipe.id.model == question.model.id
            && recipe.id.gpu == space.gpu.id
            && recipe.id.dtype.width() == dtype.width()
            && recipe.layers == space.architecture.layers
    });
    let distance = |recipe: &Recipe| libm::log2(f64::from(recipe.id.gpus) / f64::from(gpus)).abs();
    let recipes: Vec<&'static Recipe> = recipes.collect();
    // The newest of the nearest, in the very precision if there is one.
    let is_other = |recipe: &Recipe| recipe.id.dtype != dtype;
    let recipes = sorted(&recipes, |one, other| {
        let by_distance = distance(one).total_cmp(&distance(other));
        by_distance.then(is_other(one).cmp(&is_other(other))).then(other.id.release.cmp(&one.id.release))
    });
    recipes.into_iter().find_map(|recipe| {
        let candidate = Candidate::of_recipe(recipe, dtype, best.candidate.gbs);
        let layout = space.estimate(&candidate, gpus)?;
        Some((recipe, layout))
    })
}
