//! The question and what is assumed for it.

use super::currency;
use trainplan_shared::field::Field;
use trainplan_shared::gpu_counts::GpuCounts;
use trainplan_shared::problem::one_of;
use trainplan_shared::question::{Goal, GpuOffer, Objective, Question};
use trainplan_shared::tables::cells;
use trainplan_shared::units::{group_digits, rounded_count, significant};

/// Returns the question in a sentence, with the date that was typed as the deadline.
pub(in crate::cli::search) fn restated(question: &Question, date: Option<&str>) -> String {
    let tokens = match (question.tokens_are_assumed, question.budget()) {
        (true, None) => " (assumed: compute-optimal)",
        (true, Some(_)) => {
            " (assumed: compute-optimal; --objective most-tokens finds the most that the budget trains)"
        }
        (false, _) => "",
    };
    let gpus: Vec<&str> = question.offers.iter().map(|offer| &*offer.gpu.name).collect();
    let often = question.chance.title();
    let by = date.map_or(String::new(), |date| format!(", by {date}"));
    let goal = match question.goal {
        Goal::Deadline(days) if question.goal_is_assumed => format!(" within {days} days (assumed; {often})"),
        Goal::Deadline(1.0) => format!(" within 1 day{by} ({often})"),
        Goal::Deadline(days) => format!(" within {} days{by} ({often})", significant(days, 4)),
        Goal::Budget(_) | Goal::Open => question
            .longest_days()
            .map_or(String::new(), |longest| format!(" within {} days (assumed)", significant(longest, 4))),
    };
    let budget = question.budget();
    let budget = budget.map(|budget| {
        // With a deadline, its chance counts for both.
        let often = match question.goal {
            Goal::Deadline(_) => String::new(),
            Goal::Budget(_) | Goal::Open => format!(" ({often})"),
        };
        format!(" for at most {}{often}", cells::money(budget, currency(question)))
    });
    let goal = goal + &budget.unwrap_or_default();
    let objective = match question.objective {
        Objective::FewestGpus => "on the fewest GPUs",
        Objective::Fastest => "as fast as possible",
        Objective::Worthwhile => "as fast as possible without much waste",
        Objective::Cheapest => "at the lowest cost",
        Objective::MostTokens => "with the most tokens for the money",
    };
    let counts = match &question.counts {
        GpuCounts::UpTo(most) => format!("up to {} GPUs", group_digits((*most).into())),
        GpuCounts::Range(least, most) => {
            format!("{}–{} GPUs", group_digits((*least).into()), group_digits((*most).into()))
        }
        GpuCounts::Only(counts) => {
            let counts: Vec<String> = counts.iter().map(|count| group_digits((*count).into())).collect();
            format!("{} GPUs", one_of(&counts))
        }
    };
    format!(
        "Train {} ({}) on {} tokens{tokens}{goal} on {}, {objective}, {counts}.",
        question.model.title,
        question.model.parameters_of(&question.model.architecture),
        rounded_count(question.tokens),
        one_of(&gpus)
    )
}

/// Returns everything else that the answer rests on.
pub(in crate::cli::search) fn assumptions(question: &Question) -> String {
    let tokens = |gbs: u32| rounded_count(f64::from(gbs) * f64::from(question.seq_len));
    let batch = match question.gbs.sizes() {
        [first, .., last] => {
            format!("{}–{} sequences ({}–{} tokens)", first, last, tokens(*first), tokens(*last))
        }
        [one] => format!("{} sequences ({} tokens)", group_digits((*one).into()), tokens(*one)),
        [] => String::new(),
    };
    let assumed = match question.gbs.are_assumed() {
        true => {
            ", or up to 25 % more or fewer to suit the number of GPUs (assumed; change it with --batch-tokens)"
        }
        false => "",
    };
    let mut parts =
        vec![format!("Step: {batch} of {} tokens each{assumed}.", group_digits(question.seq_len.into()))];
    if let Some(offer) = question.offers.first() {
        parts.push(format!("Software: {}.", offer.options.software.title()));
        if !offer.options.cluster.is_neutral() {
            parts.push(format!("Cluster factors: {}.", offer.options.cluster.with_own_runs(None)));
        }
    }
    let each = |write: &dyn Fn(&GpuOffer) -> String| {
        let texts: Vec<String> = question.offers.iter().map(write).collect();
        texts.join("; ")
    };
    parts.push(format!(
        "Precisions: {}.",
        each(&|offer| {
            let titles: Vec<&str> = offer.dtypes.iter().map(|dtype| dtype.title()).collect();
            format!("{} {}", offer.gpu.name, one_of(&titles))
        })
    ));
    parts.push(format!("GPU-hour: {}.", each(&|offer| price(offer, currency(question)))));
    if !question.locks.is_empty() {
        parts.push(format!("Locked: {}.", question.locks));
    }
    if question.headroom_bytes > 0.0 {
        parts.push(format!("Headroom: {} GiB.", cells::gib(question.headroom_bytes)));
    }
    let spares = question.settings.disruptions.spare_share;
    let source = if question.spec.get(Field::SpareNodes).is_some() { "yours" } else { "assumed" };
    let mut prices = question.offers.iter().filter_map(|offer| offer.price);
    let paid = if prices.clone().all(|price| price.is_of_owned()) { "" } else { ", also paid for" };
    parts.push(match spares {
        0.0 => "No spare nodes.".to_string(),
        _ => format!(
            "Spare nodes: {} % on top of the training GPUs{paid} ({source}).",
            significant(spares * 100.0, 3)
        ),
    });
    // Where the GPUs cost nothing, the cost is mostly that of electricity.
    if prices.any(|price| price.is_free())
        && let Some(price) = question.settings.electricity().per_kwh()
    {
        let source = if question.settings.electricity_per_kwh.is_some() { "yours" } else { "assumed" };
        let price = significant(price, 3);
        parts.push(format!("Electricity: {price} {} per kWh ({source}).", currency(question)));
    }
    let rate = question.settings.disruptions.failure_rate;
    let range = rate.per_gpu_hour().readable(|rate| format!("{rate:e}"));
    let source = if rate.source() == "yours" { "yours" } else { "published studies" };
    parts.push(format!("Failures per GPU-hour: {range} ({source})."));
    if question.offers.len() > 1 {
        parts.push(format!("First: {}.", question.objective.first_rule()));
    }
    parts.join(" ")
}

/// Returns the price of a GPU-hour with its source.
fn price(offer: &GpuOffer, currency: &str) -> String {
    let name = &offer.gpu.name;
    let Some(price) = offer.price else { return format!("{name} unknown, set it with --price") };
    let estimated =
        price.source.estimated_from().map(|gpu| format!(", estimated from {gpu}")).unwrap_or_default();
    let quotes = if price.is_single_quote() { ", one quote" } else { "" };
    let source = match price.source.purchase() {
        Some(purchase) => format!("assumed: {purchase}{estimated}{quotes}"),
        None => price.note(),
    };
    let range = price.per_gpu_hour.readable(|price| format!("{price:.2}"));
    format!("{name} {range} {currency} ({source})")
}
