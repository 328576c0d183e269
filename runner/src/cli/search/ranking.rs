//! The order of GPU types.

use super::found::SearchedGpu;
use trainplan_shared::estimate::{Confidence, Interval};
use trainplan_shared::question::{Contender, PlannedRun, Unmet, doubt};
use trainplan_shared::sorting::sorted;

/// Returns the properties of a GPU type's best plan that decide which type is best.
pub(super) fn contender(found: &SearchedGpu<'_>, run: &PlannedRun) -> Contender<Confidence> {
    let cost = run.cost.zip(run.expected_cost);
    Contender {
        gpus: run.gpus,
        days: run.days,
        cost: cost.map(|(cost, mid)| Interval { low: cost.total.low, mid, high: cost.total.high }),
        confidence: run.layout.confidence,
        doubt: match found.offer.gpu.is_measured() {
            true => 1.0,
            false => doubt(run.days, run.time.high.days),
        },
    }
}

/// Returns the GPU types, best first: those with a plan that reaches the goal, then the others by how near theirs comes to it.
pub(super) fn best_first<'a>(found: &[SearchedGpu<'a>]) -> Vec<SearchedGpu<'a>> {
    let Some(question) = found.first().map(|found| found.question) else { return Vec::new() };
    let (reaching, missing): (Vec<SearchedGpu<'a>>, Vec<SearchedGpu<'a>>) =
        found.iter().copied().partition(|found| found.answer.best().is_some());
    let contenders: Vec<_> =
        reaching.iter().filter_map(|found| Some(contender(found, found.answer.best()?))).collect();
    let order = question.objective.across_gpu_types(&contenders);
    let excess = |found: &SearchedGpu<'_>| {
        let cost = found.answer.shown().and_then(|run| run.cost_with(question.chance));
        let unmet = found.answer.unmet.unwrap_or(Unmet::NoLayout);
        unmet.excess(question.most_days(), question.budget(), cost)
    };
    let missing = sorted(&missing, |one, other| excess(one).total_cmp(&excess(other)));
    order.into_iter().map(|place| reaching[place]).chain(missing).collect()
}
