//! How the GPU types compare, and what their plans miss, cost or leave unspent.

use super::currency;
use super::unmet::unmet_sentence;
use crate::cli::search::found::SearchedGpu;
use crate::cli::search::ranking::{best_first, contender};
use trainplan_shared::cost::{Price, PurchaseForm};
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::message;
use trainplan_shared::message::Front;
use trainplan_shared::problem::{all_of, one_of};
use trainplan_shared::question::{
    Goal, LITTLE_WASTE, Objective, PlannedRun, Question, chance_text, gpus_of_type,
};
use trainplan_shared::range::ValueRange;
use trainplan_shared::tables::cells;
use trainplan_shared::units::{difference, duration, group_digits, rounded_count};

/// Returns the comparison of the GPU types, or why none has a plan.
pub(in crate::cli::search) fn verdict(found: &[SearchedGpu<'_>]) -> String {
    let ranked = best_first(found);
    let Some(question) = ranked.first().map(|found| found.question) else { return String::new() };
    let reaching: Vec<(&SearchedGpu<'_>, &PlannedRun)> =
        ranked.iter().filter_map(|found| Some((found, found.answer.best()?))).collect();
    let mut sentences: Vec<String> = match &*reaching {
        [] => Vec::new(),
        [(found, run)] => vec![alone(found, run)],
        [first, others @ ..] => others.iter().map(|other| compared(*first, *other)).collect(),
    };
    if let [(best, run), (second, other), ..] = reaching[..]
        && let Some(why) = question.objective.why_first(&contender(best, run), &contender(second, other))
    {
        sentences.push(format!("{} comes first because {why}.", best.offer.gpu.name));
    }
    sentences.extend(late(question, &reaching));
    sentences.extend(unspent(question, &reaching));
    sentences.extend(more_tokens(question, &reaching));
    sentences.extend(in_bf16(&reaching));
    sentences.extend(reservations(&reaching));
    sentences.extend(whole_term(question, &reaching));
    let missing = ranked.iter().filter_map(|found| Some(unmet_sentence(found.answer.unmet?, found)));
    sentences.extend(missing);
    sentences.join(" ")
}

/// Returns the sentence about the only plan.
fn alone(found: &SearchedGpu<'_>, run: &PlannedRun) -> String {
    let [take, costs] = if run.gpus == 1 { ["takes", "costs"] } else { ["take", "cost"] };
    let cost = run.cost.zip(run.expected_cost);
    let cost = cost.map_or(String::new(), |(cost, expected)| {
        format!(" and {costs} {}", cells::money_range(expected, cost.total, currency(found.question)))
    });
    format!(
        "{} {take} {}{cost}.",
        gpus_of_type(run.gpus, &found.offer.gpu.name),
        cells::time(run.days, run.time.days())
    )
}

/// Returns the comparison of the best GPU type with another one.
fn compared(best: (&SearchedGpu<'_>, &PlannedRun), other: (&SearchedGpu<'_>, &PlannedRun)) -> String {
    let ((best, run), (against, than)) = (best, other);
    let (name, other) = (&best.offer.gpu.name, &against.offer.gpu.name);
    let is_deadline = matches!(best.question.goal, Goal::Deadline(_));
    // The GPUs that a deadline needs are as uncertain as the days that a plan takes.
    let needed = |run: &PlannedRun| run.time.days().times(f64::from(run.gpus) / run.days);
    let (mut text, first_is_sure) = match is_deadline {
        true => {
            let words = ["fewer GPUs than", "more GPUs than", "times as many GPUs as", "as many GPUs as"];
            let gpus = difference(run.gpus.into(), than.gpus.into(), words);
            let [own, its] = [run.gpus, than.gpus].map(|gpus| group_digits(gpus.into()));
            let counts = if run.gpus == than.gpus { own } else { format!("{own} instead of {its}") };
            (format!("{name} needs {gpus} {other} ({counts})"), !overlap(needed(run), needed(than)))
        }
        false => {
            let words = ["less time than", "more time than", "times as long as", "as long as"];
            let days = difference(run.days, than.days, words);
            (format!("{name} takes {days} {other}"), !overlap(run.time.days(), than.time.days()))
        }
    };
    if let Some((own, its)) = run.expected_cost.zip(than.expected_cost) {
        let cost = difference(own, its, ["less", "more", "times as much", "the same"]);
        text += &format!(" and costs {cost}");
    }
    let cost_is_sure = run.cost.zip(than.cost).map(|(own, its)| !overlap(own.total, its.total));
    let first = if is_deadline { "GPUs" } else { "time" };
    let rest = match (first_is_sure, cost_is_sure) {
        (true, Some(true)) => "Both differences are larger than the uncertainty.".to_string(),
        (true, None) => "The difference is larger than the uncertainty.".to_string(),
        (true, Some(false)) => "The difference in cost is within the uncertainty.".to_string(),
        (false, Some(true)) => format!("The difference in {first} is within the uncertainty."),
        (false, Some(false)) => "Both differences are within the uncertainty.".to_string(),
        (false, None) => "The difference is within the uncertainty.".to_string(),
    };
    format!("{text}. {rest}")
}

fn overlap(one: ValueRange, other: ValueRange) -> bool {
    one.low <= other.high && other.low <= one.high
}

/// Returns which plans miss the deadline at the slow end of their range, and which exceed the budget at the expensive end.
fn late(question: &Question, reaching: &[(&SearchedGpu<'_>, &PlannedRun)]) -> Vec<String> {
    let ends = |is_missed: &dyn Fn(&PlannedRun) -> bool, words: [&str; 3]| {
        let missing: Vec<&SearchedGpu<'_>> =
            reaching.iter().filter(|(_, run)| is_missed(run)).map(|(found, _)| *found).collect();
        let names: Vec<String> = missing.iter().map(|found| found.offer.gpu.name.clone()).collect();
        Some((at_the_end(&names, words)?, missing))
    };
    let mut sentences = Vec::new();
    if let Goal::Deadline(limit) = question.goal {
        let words = ["slow end", "misses the deadline", "miss the deadline"];
        if let Some((text, missing)) = ends(&|run| run.time.days().high > limit, words) {
            sentences.push(text);
            let chances: Vec<String> = missing
                .iter()
                .filter_map(|found| {
                    let chance = chance_text(found.answer.best()?.in_time_of_ten(limit));
                    Some(match reaching {
                        [_] => chance,
                        _ => format!("{chance} with {}", found.offer.gpu.name),
                    })
                })
                .collect();
            sentences.push(format!("It is met {}.", all_of(&chances)));
        }
    }
    if let Some(limit) = question.budget() {
        let words = ["expensive end", "exceeds the budget", "exceed the budget"];
        let is_over = |run: &PlannedRun| run.cost.is_some_and(|cost| cost.total.high > limit);
        if let Some((text, exceeding)) = ends(&is_over, words) {
            sentences.push(text);
            let chances: Vec<String> = exceeding
                .iter()
                .filter_map(|found| {
                    let chance = chance_text(found.answer.best()?.within_budget_of_ten(limit)?);
                    Some(match reaching {
                        [_] => chance,
                        _ => format!("{chance} with {}", found.offer.gpu.name),
                    })
                })
                .collect();
            sentences.push(format!("The cost stays within it {}.", all_of(&chances)));
        }
    }
    let others = reaching.iter().filter_map(|(found, run)| {
        let other = found.answer.with_other_chance.as_ref().filter(|other| other.gpus != run.gpus)?;
        Some(gpus_of_type(other.gpus, &found.offer.gpu.name))
    });
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        let reach = match (question.goal, question.max_cost) {
            (Goal::Deadline(_), None) => "meet the deadline",
            (Goal::Deadline(_), Some(_)) => "meet the deadline and stay within the budget",
            (Goal::Budget(_) | Goal::Open, _) => "stay within the limits",
        };
        let often = question.chance.other().title();
        sentences.push(format!("{} would {reach} {often}.", one_of(&others)));
    }
    sentences
}

/// Returns "At the slow end of its range, B200 misses the deadline."; none without names.
fn at_the_end(names: &[String], [end, misses, miss]: [&str; 3]) -> Option<String> {
    Some(match names {
        [] => return None,
        [name] => format!("At the {end} of its range, {name} {misses}."),
        names => format!("At the {end} of their ranges, {} {miss}.", all_of(names)),
    })
}

/// Returns why the best plan spends only a part of the budget, if faster plans within the limits are left out because of their cost.
fn unspent(question: &Question, reaching: &[(&SearchedGpu<'_>, &PlannedRun)]) -> Option<String> {
    let (found, best) = *reaching.first().filter(|_| question.objective == Objective::Worthwhile)?;
    question.budget()?;
    let faster = found.answer.points.iter().filter(|run| run.days < best.days && question.reaches(run));
    let fastest = faster.min_by(|one, other| one.days.total_cmp(&other.days))?;
    Some(format!(
        "Faster plans on {} cost more than {LITTLE_WASTE} times as much as the cheapest: {} GPUs would take {}, for {}.",
        found.offer.gpu.name,
        group_digits(fastest.gpus.into()),
        duration(fastest.days),
        cells::money(fastest.expected_cost?, currency(question))
    ))
}

/// Returns the most tokens that the limits allow on each GPU type, if they are what is wanted and fewer were given.
fn more_tokens(question: &Question, reaching: &[(&SearchedGpu<'_>, &PlannedRun)]) -> Option<String> {
    let wanted = reaching.iter().filter(|_| question.objective == Objective::MostTokens);
    let texts = wanted.filter_map(|(found, _)| {
        let most = found.answer.most_tokens(question, found.offer)?;
        (most.tokens > question.tokens).then(|| {
            let (gpus, time) = (gpus_of_type(most.run.gpus, &found.offer.gpu.name), duration(most.run.days));
            format!("at least {} tokens on {gpus} ({time})", rounded_count(most.tokens))
        })
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| {
        message![
            format!("The limits allow {}. To plan the most, leave out ", one_of(&texts)),
            Field::Tokens,
            "."
        ]
        .text(Front::Search)
    })
}

/// Returns the best plans if only BF16 may be used.
fn in_bf16(reaching: &[(&SearchedGpu<'_>, &PlannedRun)]) -> Option<String> {
    let plans = reaching.iter().filter_map(|(found, _)| {
        let run = found.in_bf16?;
        let cost = run.expected_cost.map(|cost| cells::money(cost, currency(found.question)));
        Some(format!(
            "{} ({}{})",
            gpus_of_type(run.gpus, &found.offer.gpu.name),
            duration(run.days),
            cost.map_or(String::new(), |cost| format!(", {cost}"))
        ))
    });
    let plans: Vec<String> = plans.collect();
    (!plans.is_empty()).then(|| format!("In BF16, the run would take {}.", one_of(&plans)))
}

/// Returns for which reservations the plans' costs are, and what they cost on demand; none without a reservation.
fn reservations(reaching: &[(&SearchedGpu<'_>, &PlannedRun)]) -> Option<String> {
    let (mut reserved, mut costs) = (Vec::new(), Vec::new());
    for (found, run) in reaching {
        let price = found.offer.price.filter(Price::is_reservation);
        let Some(purchase) = price.and_then(|price| price.source.purchase()) else { continue };
        let name = &found.offer.gpu.name;
        reserved.push((name, purchase));
        if let Some(Interval { low, mid, high }) = run.on_demand_cost(found.offer) {
            let cost = cells::money_range(mid, ValueRange { low, high }, currency(found.question));
            costs.push(if reaching.len() == 1 { cost } else { format!("{cost} with {name}") });
        }
    }
    let (_, first) = reserved.first()?;
    let is_shared =
        reserved.len() == reaching.len() && reserved.iter().all(|(_, purchase)| purchase == first);
    let reserved: Vec<String> = match is_shared {
        true => vec![format!("GPUs {first}")],
        false => reserved.iter().map(|(name, purchase)| format!("{name} {purchase}")).collect(),
    };
    let on_demand = match costs.is_empty() {
        true => String::new(),
        false => format!("; on demand, the run would cost about {}", all_of(&costs)),
    };
    Some(format!("The cost is for {}{on_demand}.", all_of(&reserved)))
}

/// Returns what renting the plans' GPUs for the whole term of their reservation costs, if the runs are shorter, and whether that is more
/// than the budget. If it is, names the setting for prices on demand.
fn whole_term(question: &Question, reaching: &[(&SearchedGpu<'_>, &PlannedRun)]) -> Option<String> {
    let (mut terms, mut costs, mut exceeding) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_on_demand = false;
    let money = |amount: f64| cells::money(amount, currency(question));
    for (found, run) in reaching {
        let name = &found.offer.gpu.name;
        let price =
            found.offer.price.and_then(|price| Some((price.term_beyond(run.days)?, price.whole_term()?)));
        let Some((term, of_gpu)) = price else { continue };
        let ValueRange { low, high } = of_gpu.times(run.time.paid_gpus.into());
        terms.push(term.to_string());
        let cost = if low == high { money(low) } else { format!("{} to {}", money(low), money(high)) };
        costs.push(format!("{cost} for {name}"));
        let beyond = run.beyond_budget(question, found.offer);
        if beyond.whole_term {
            exceeding.push(name.clone());
            has_on_demand |= found.offer.on_demand.is_some();
        }
    }
    terms.dedup();
    let budget = question.budget().map_or(String::new(), money);
    let exceeds = match exceeding.len() {
        0 => String::new(),
        all if all == costs.len() => format!(", more than the budget of {budget}"),
        _ => format!("; for {}, that is more than the budget of {budget}", all_of(&exceeding)),
    };
    let instead = match has_on_demand {
        true => {
            let on_demand = message::Setting::new(Field::Purchase, PurchaseForm::OnDemand.id());
            message![" To plan without a reservation, set ", on_demand, "."].text(Front::Search)
        }
        false => String::new(),
    };
    (!costs.is_empty()).then(|| {
        let (terms, costs) = (one_of(&terms), all_of(&costs));
        format!(
            "The reservation is for {terms}, longer than the run: the whole term costs {costs}{exceeds}.{instead}"
        )
    })
}
