//! The answer of a search in a sentence, and what its question leaves out.

use super::found::SearchedGpu;
use super::ranking::best_first;
use super::sentences::{change_text, currency};
use trainplan_shared::field::Field;
use trainplan_shared::gpu_counts::GpuCounts;
use trainplan_shared::problem::one_of;
use trainplan_shared::question::{
    Chance, Goal, LimitsInWords, PlanInWords, Question, Relaxation, Unmet, cost_in_words, limit_text,
};
use trainplan_shared::tables::cells;
use trainplan_shared::units::{group_digits, nearest_multiples, parse_count, parse_days, rounded_count};

/// Returns the answer in a sentence, which the headline of the Plan page has too; if no plan reaches the goal, with the smallest change
/// that does.
pub(super) fn headline(found: &[SearchedGpu<'_>]) -> String {
    let ranked = best_first(found);
    let Some(first) = ranked.first() else { return String::new() };
    let (question, answer) = (first.question, first.answer);
    let change = least_change(&ranked).map_or(String::new(), |(found, change)| {
        let gpu = if found.offer.gpu.id == first.offer.gpu.id { "It" } else { &*found.offer.gpu.name };
        format!(" {gpu} works {}.", change_text(change, true))
    });
    let Some(run) = answer.shown() else {
        let names: Vec<&str> = found.iter().map(|found| &*found.offer.gpu.name).collect();
        return format!("No layout of {} works on {}.{change}", question.model.title, one_of(&names));
    };
    let plan = PlanInWords {
        gpus: run.gpus,
        gpu: &first.offer.gpu.name,
        days: run.days_interval(),
        most_cost: run.cost.map(|cost| cost.total.high),
        measured_software: answer.measured_software(),
    };
    let money = |amount: f64| cells::money(amount, currency(question));
    let has_deadline = matches!(question.goal, Goal::Deadline(_));
    let (time, budget) = (question.most_days().map(limit_text), question.budget().map(money));
    let Some(unmet) = answer.unmet else {
        let purchase = first.offer.price.and_then(|price| price.source.purchase());
        let on_demand = run.on_demand_cost(first.offer).map(|cost| money(cost.mid));
        let beyond = run.beyond_budget(question, first.offer);
        let cost = run.expected_cost;
        let cost = cost.map(|cost| cost_in_words(money(cost), purchase.as_deref(), on_demand, beyond));
        return match first.sought_tokens() {
            Some(tokens) => plan.trains(&tokens, budget.as_deref(), cost),
            None => plan.finishes(has_deadline, cost),
        };
    };
    let enough = match unmet {
        Unmet::TooExpensive { tokens, gpus, .. } if tokens > 0.0 => {
            Some(format!("enough for {} tokens on {} GPUs", rounded_count(tokens), group_digits(gpus.into())))
        }
        _ => None,
    };
    let limits = LimitsInWords {
        time: time.as_deref(),
        has_deadline,
        budget: budget.as_deref(),
        by_slow_end: question.chance == Chance::NineInTen,
        cost: &money,
        enough: enough.as_deref(),
    };
    let is_most = answer.points.last().is_some_and(|most| most.gpus == run.gpus);
    format!("{}{change}", plan.misses(unmet, is_most, &limits))
}

/// Returns the smallest change that makes a plan reach the goal, and its GPU type; none if a plan already reaches it, or if no
/// change was found.
fn least_change<'a>(ranked: &[SearchedGpu<'a>]) -> Option<(SearchedGpu<'a>, &'a Relaxation)> {
    if ranked.iter().any(|found| found.answer.best().is_some()) {
        return None;
    }
    let changes = ranked.iter().flat_map(|found| {
        let reaching = found.answer.relaxations.iter().filter(|change| change.reaches_goal);
        reaching.map(move |change| (*found, change))
    });
    changes.min_by(|(one, its), (other, change)| size(one, its).total_cmp(&size(other, change)))
}

/// Returns the factor of a change to a limit. A change without a number, such as another chance, counts as the
/// smallest.
fn size(found: &SearchedGpu<'_>, change: &Relaxation) -> f64 {
    let (question, value) = (found.question, &change.setting.value);
    let factor = match change.setting.field {
        Field::GpuRange => {
            // Not only those with a layout: none may have one.
            let searched = question.counts.of_nodes(found.offer.gpu.gpus_per_node);
            searched.last().map(|searched| f64::from(change.run.gpus) / f64::from(*searched))
        }
        Field::Deadline => parse_days(value).zip(question.most_days()).map(|(days, limit)| days / limit),
        Field::Tokens => parse_count(value).map(|tokens| question.tokens / tokens),
        Field::Budget => parse_count(value).zip(question.budget()).map(|(amount, budget)| amount / budget),
        _ => None,
    };
    factor.map_or(1.0, |factor| factor.max(1.0 / factor))
}

/// Returns the numbers of GPUs that don't fill nodes, with the nearest that do, as sentences for notes: such jobs leave GPUs of a node
/// to others.
pub(super) fn broken_nodes(question: &Question) -> Vec<String> {
    let GpuCounts::Only(counts) = &question.counts else { return Vec::new() };
    let of_offers = question.offers.iter().flat_map(|offer| {
        let node = offer.gpu.gpus_per_node.max(1);
        // A part of a single node that divides it is usual.
        let is_broken = move |count: &&u32| !count.is_multiple_of(node) && !node.is_multiple_of(**count);
        counts.iter().filter(is_broken).map(move |count| {
            let nearest: Vec<String> = nearest_multiples(*count, node).iter().map(u32::to_string).collect();
            let (count, name) = (group_digits((*count).into()), &offer.gpu.name);
            let nearest = one_of(&nearest);
            format!("{count} GPUs don't fill nodes of {node} {name}. The nearest that do: --gpus {nearest}.")
        })
    });
    of_offers.collect()
}
