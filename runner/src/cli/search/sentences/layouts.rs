//! How many layouts were considered, in which order they are listed, and how far to trust that order.

use crate::cli::search::found::SearchedGpu;
use trainplan_shared::layout::PipelineSplit;
use trainplan_shared::question::{CLEARLY_FASTER, Goal, GpuAnswer, PlannedRun, Question};
use trainplan_shared::search::{COUNTED_SPLIT, ORDER, Rule, SearchCounts, SearchRegret};
use trainplan_shared::tables::{PlanRow, cells};
use trainplan_shared::units::{duration, group_digits, percent};

/// Returns how many layouts were considered, and which rule discarded how many, as far as that doesn't depend on how many are listed.
pub(in crate::cli::search) fn considered(counts: &SearchCounts) -> String {
    let mut reasons: Vec<(Rule, u64)> = counts.reasons().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let reasons: Vec<String> = reasons
        .iter()
        .map(|(rule, count)| format!("{} because {}", group_digits(*count as f64), rule.title()))
        .collect();
    let discarded =
        if reasons.is_empty() { String::new() } else { format!(" Discarded: {}.", reasons.join("; ")) };
    format!("{}{discarded}", counted(counts))
}

/// Returns how many layouts were considered and how many of them the software can run.
pub(in crate::cli::search) fn counted(counts: &SearchCounts) -> String {
    let [all, valid] = [counts.combinations, counts.valid()].map(|count| group_digits(count as f64));
    format!("Considered {all} layouts; the software can run {valid} of them, if they fit in memory.")
}

/// Returns how the listed layouts are ordered, if not simply by their step times.
pub(in crate::cli::search) fn order(answer: &GpuAnswer) -> Option<String> {
    let seconds: Vec<f64> = answer.layouts.iter().map(|run| run.layout.s_per_sequence()).collect();
    match answer.first_is_moved_up {
        true => Some(format!(
            "{ORDER} The first one is moved up, because it finishes in time and the next one doesn't."
        )),
        false => (!seconds.is_sorted()).then(|| ORDER.to_owned()),
    }
}

/// Returns what a counted split is, if a listed layout has one.
pub(in crate::cli::search) fn counted_split(rows: &[PlanRow<'_>]) -> Option<String> {
    let is_counted = |row: &PlanRow<'_>| *row.run.layout.candidate.split == PipelineSplit::Counted;
    rows.iter().any(is_counted).then(|| COUNTED_SPLIT.to_string())
}

/// Returns which layout is expected to be clearly faster than the best one, which is best because its range ends earlier. With a
/// deadline, the number of GPUs follows from the range.
pub(in crate::cli::search) fn faster_layout(found: &SearchedGpu<'_>) -> Option<String> {
    let best = found.answer.best().filter(|_| !matches!(found.question.goal, Goal::Deadline(_)))?;
    let limit = best.days * CLEARLY_FASTER;
    let faster = found.answer.layouts.iter().filter(|run| run.days <= limit);
    let run = faster.min_by(|one, other| one.days.total_cmp(&other.days))?;
    Some(format!(
        "With the layout {}, the run may take only {}, but that prediction is less certain.",
        run.layout.candidate,
        cells::time(run.days, run.time.days())
    ))
}

/// Returns what trusting the order of layouts costs, for a model with experts: their exchange is the hardest part to predict.
pub(in crate::cli::search) fn regret(question: &Question) -> Option<String> {
    let architecture = &question.model.architecture;
    let SearchRegret { groups, mean, .. } =
        SearchRegret::of(architecture).filter(|_| architecture.moe.is_some())?;
    Some(format!(
        "Measure the best few layouts before a long run (--campaign): in {groups} comparisons of measured MoE layouts, the one \
         predicted to be fastest was on average {} slower than the fastest.",
        percent(*mean)
    ))
}

/// How many times the GPUs of a plan one on more GPUs may have, if its number divides badly: with many more, it may be slower for other
/// reasons.
const LITTLE_MORE_GPUS: f64 = 1.1;

/// How many times the days of the other plan are worth a word.
const CLEARLY_SLOWER: f64 = 1.05;

/// Returns that a number of GPUs near the one to show is slower than a smaller one, because fewer layouts divide it.
pub(in crate::cli::search) fn slower_with_more(found: &SearchedGpu<'_>) -> Option<String> {
    let shown = found.answer.shown()?;
    let is_slower = |fewer: &PlannedRun, more: &PlannedRun| {
        more.gpus > fewer.gpus
            && f64::from(more.gpus) <= f64::from(fewer.gpus) * LITTLE_MORE_GPUS
            // The power of two that divides it says how many layouts do.
            && more.gpus.trailing_zeros() < fewer.gpus.trailing_zeros()
            && more.days >= fewer.days * CLEARLY_SLOWER
    };
    let points = &found.answer.points;
    let below = points.iter().rev().find(|run| is_slower(run, shown)).map(|run| (run, shown));
    let (fewer, more) =
        below.or_else(|| points.iter().find(|run| is_slower(shown, run)).map(|run| (shown, run)))?;
    Some(format!(
        "{} GPUs would take {}, longer than {} GPUs ({}), because fewer layouts divide that number.",
        group_digits(more.gpus.into()),
        duration(more.days),
        group_digits(fewer.gpus.into()),
        duration(fewer.days)
    ))
}
