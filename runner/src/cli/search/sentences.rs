//! What a search says in words.

use super::found::SearchedGpu;
use super::ranking::{best_first, contender};
use trainplan_shared::benchmarks::BestMeasured;
use trainplan_shared::cost::Price;
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::gpu_counts::GpuCounts;
use trainplan_shared::layout::PipelineSplit;
use trainplan_shared::message;
use trainplan_shared::message::Front;
use trainplan_shared::problem::one_of;
use trainplan_shared::question::{
    CLEARLY_FASTER, Chance, DeadlineEffect, Goal, GpuAnswer, GpuOffer, LITTLE_WASTE, Objective, PlanScript,
    PlannedRun, Question, Relaxation, ScriptRun, ScriptedPlan, Unmet, as_measured, chance_text,
};
use trainplan_shared::range::ValueRange;
use trainplan_shared::search::{COUNTED_SPLIT, ORDER, Rule, SearchCounts, SearchRegret};
use trainplan_shared::tables::{PlanRow, cells};
use trainplan_shared::units::{
    difference, duration, group_digits, percent, readable_days, rounded_count, significant, time_unit,
};

/// Returns the question in a sentence, with the date that was typed as the deadline.
pub(super) fn restated(question: &Question, date: Option<&str>) -> String {
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
pub(super) fn assumptions(question: &Question) -> String {
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

/// Returns the comparison of the GPU types, or why none has a plan.
pub(super) fn verdict(found: &[SearchedGpu<'_>]) -> String {
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
        Some(format!("{} × {}", group_digits(other.gpus.into()), found.offer.gpu.name))
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
            let (gpus, time) = (group_digits(most.run.gpus.into()), duration(most.run.days));
            let tokens = rounded_count(most.tokens);
            format!("at least {tokens} tokens on {gpus} × {} ({time})", found.offer.gpu.name)
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

/// Returns "At the slow end of its range, B200 misses the deadline."; none without names.
fn at_the_end(names: &[String], [end, misses, miss]: [&str; 3]) -> Option<String> {
    Some(match names {
        [] => return None,
        [name] => format!("At the {end} of its range, {name} {misses}."),
        names => format!("At the {end} of their ranges, {} {miss}.", all_of(names)),
    })
}

/// Returns "a", "a and b", "a, b and c".
fn all_of(texts: &[String]) -> String {
    match texts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        texts => texts.concat(),
    }
}

/// Returns the best plans if only BF16 may be used.
fn in_bf16(reaching: &[(&SearchedGpu<'_>, &PlannedRun)]) -> Option<String> {
    let plans = reaching.iter().filter_map(|(found, _)| {
        let run = found.in_bf16?;
        let cost = run.expected_cost.map(|cost| cells::money(cost, currency(found.question)));
        Some(format!(
            "{} × {} ({}{})",
            group_digits(run.gpus.into()),
            found.offer.gpu.name,
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
/// than the budget.
fn whole_term(question: &Question, reaching: &[(&SearchedGpu<'_>, &PlannedRun)]) -> Option<String> {
    let (mut terms, mut costs, mut exceeding) = (Vec::new(), Vec::new(), Vec::new());
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
        if question.budget().is_some_and(|budget| low > budget) {
            exceeding.push(name.clone());
        }
    }
    terms.dedup();
    let budget = question.budget().map_or(String::new(), money);
    let exceeds = match exceeding.len() {
        0 => String::new(),
        all if all == costs.len() => format!(", more than the budget of {budget}"),
        _ => format!("; for {}, that is more than the budget of {budget}", all_of(&exceeding)),
    };
    (!costs.is_empty()).then(|| {
        let (terms, costs) = (one_of(&terms), all_of(&costs));
        format!("The reservation is for {terms}, longer than the run: the whole term costs {costs}{exceeds}.")
    })
}

/// Returns the sentence about the only plan.
fn alone(found: &SearchedGpu<'_>, run: &PlannedRun) -> String {
    let cost = run.cost.zip(run.expected_cost);
    let cost = cost.map_or(String::new(), |(cost, expected)| {
        format!(" and cost {}", cells::money_range(expected, cost.total, currency(found.question)))
    });
    format!(
        "{} × {} take {}{cost}.",
        group_digits(run.gpus.into()),
        found.offer.gpu.name,
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

/// Returns why a GPU type has no plan, and what would help.
pub(super) fn unmet_sentence(unmet: Unmet, found: &SearchedGpu<'_>) -> String {
    let SearchedGpu { question, offer, answer, .. } = *found;
    let name = &offer.gpu.name;
    let reaches = answer.relaxations.iter().any(|change| change.reaches_goal);
    let changes: Vec<String> = answer.relaxations.iter().map(|change| change_text(change, reaches)).collect();
    let changed = || match &*changes {
        [] => String::new(),
        changes if reaches => format!(" It works {}.", one_of(changes)),
        changes => {
            format!(" A layout works {}, but no single change reaches the goal.", one_of(changes))
        }
    };
    let is_by_measured = answer.is_by_measured_software();
    let measured = || format!(" {}", as_measured(answer.measured_software()));
    match unmet {
        Unmet::NoLayout if changes.is_empty() => {
            format!("No layout works on {name}, and no single change helps.")
        }
        Unmet::NoLayout => format!("No layout works on {name}.{}", changed()),
        Unmet::TooSlow { days } => {
            let shown = answer.shown();
            let gpus = shown.map_or(0, |run| run.gpus);
            let (unit, of_day) = time_unit(days);
            let time = readable_days(days * of_day);
            let limit = match question.goal {
                // A plan that is late by hours is not "60 days, not 60".
                Goal::Deadline(limit) if time == readable_days(limit * of_day) => {
                    format!(", slightly more than {}", significant(limit * of_day, 4))
                }
                Goal::Deadline(limit) => format!(", not {}", significant(limit * of_day, 4)),
                Goal::Budget(_) | Goal::Open => String::new(),
            };
            let (within, by) = match question.chance {
                Chance::NineInTen if is_by_measured => ("takes", measured()),
                Chance::NineInTen => ("may take up to", String::new()),
                Chance::Even => ("takes", String::new()),
            };
            let is_last = answer.points.last().is_some_and(|run| run.gpus == gpus);
            let most = if is_last { ", the most that were searched" } else { "" };
            format!(
                "The nearest plan on {name} {within} {time} {unit}{by}{limit}, on {} GPUs{most}.{}",
                group_digits(gpus.into()),
                changed()
            )
        }
        Unmet::TooExpensive { cost, .. } => {
            let limit = match (question.max_cost, question.longest_days()) {
                (Some(_), _) => " that meets the deadline".to_string(),
                (None, Some(longest)) => format!(" that takes at most {} days", significant(longest, 4)),
                (None, None) => String::new(),
            };
            let (costs, by) = match question.chance {
                Chance::NineInTen if is_by_measured => ("costs", measured()),
                Chance::NineInTen => ("may cost up to", String::new()),
                Chance::Even => ("costs", String::new()),
            };
            format!(
                "The cheapest plan on {name}{limit} {costs} {}{by}.{}",
                cells::money(cost, currency(question)),
                changed()
            )
        }
        Unmet::NoPrice => message![
            format!("No price is known for the {name}, so no budget can be met: set "),
            message::Setting::new(Field::Price, format!("{}=2.95", offer.gpu.id)),
            ", for example."
        ]
        .text(Front::Search),
    }
}

/// Returns a change with the plan that works with it: "with --gpus 512 (61 days on 512 GPUs)". If other changes reach the goal, says
/// that the plan misses it.
pub(super) fn change_text(change: &Relaxation, others_reach: bool) -> String {
    let setting = &change.setting;
    let text = match setting.value.is_empty() {
        true => message!["without ", setting.field],
        false => message!["with ", setting.clone()],
    };
    let (gpus, time) = (group_digits(change.run.gpus.into()), duration(change.run.days));
    let misses = if others_reach && !change.reaches_goal { ", which misses the goal" } else { "" };
    format!("{} ({time} on {gpus} GPUs{misses})", text.text(Front::Search))
}

/// Returns how the best layout compares with the published one.
pub(super) fn beside_published(found: &SearchedGpu<'_>) -> Option<String> {
    let (recipe, published) = found.answer.published.as_ref()?;
    let best = found.answer.layouts.first()?;
    if best.layout.candidate == published.layout.candidate {
        return Some(format!("The best layout is the one published for {}.", recipe.id));
    }
    let Interval { low, mid, high } = best.speed_over(published);
    let whole = |ratio: f64| format!("{:.0}", (ratio - 1.0) * 100.0);
    Some(match low > 1.0 {
        true => format!(
            "The best layout is {} % faster than the one published for {} ({}–{} %).",
            whole(mid),
            recipe.id,
            whole(low),
            whole(high)
        ),
        false => format!(
            "With this batch, precision and software, the published layout of {} is predicted to take {} s per step, this one \
             {} s: the difference is within the uncertainty of ±{} %.",
            recipe.id,
            significant(published.layout.step_time_s.mid, 3),
            significant(best.layout.step_time_s.mid, 3),
            whole((high / mid).max(2.0 - low / mid))
        ),
    })
}

/// Returns how the best plan compares with the fastest run that anybody measured of the model on this GPU type, or that nobody can
/// have measured one.
pub(super) fn beside_measured(found: &SearchedGpu<'_>) -> Option<String> {
    if found.offer.gpu.generation.is_planned() {
        return Some(format!(
            "The {} is not available yet, so nobody has measured it. The estimate rests on its published peaks.",
            found.offer.gpu.name
        ));
    }
    let measured = BestMeasured::of(&found.question.model.id, &found.offer.gpu.id)?;
    let best = found.answer.shown()?;
    Some(measured.compared(&found.offer.gpu.name, best.tokens_per_s_per_gpu, best.days))
}

/// Returns how long the best plan takes with software that was measured on this GPU type, if its own was not and is predicted to be
/// clearly faster, and how likely it then meets the deadline that it meets as predicted.
pub(super) fn beside_measured_software(found: &SearchedGpu<'_>) -> Option<String> {
    let (software, run) = found.answer.with_measured_software.as_ref()?;
    let enough = found.answer.enough_as_predicted(found.question);
    let enough = enough.map_or(String::new(), |gpus| {
        format!(
            " At the predicted speed, {} GPUs would be enough, but not with that software.",
            group_digits(gpus.into())
        )
    });
    let chance = match (found.question.goal, found.answer.best()) {
        (Goal::Deadline(limit), Some(_)) => {
            format!(", and meet the deadline {}", chance_text(run.in_time_of_ten(limit)))
        }
        _ => String::new(),
    };
    Some(format!(
        "No published run of this model on {} used {}. With {}, as in the nearest run, the plan would take {}{chance}.{enough}",
        found.offer.gpu.name,
        found.offer.options.software.title(),
        software.title(),
        cells::time(run.days, run.time.days())
    ))
}

/// Returns the fewest GPUs that are in time even at the fastest measured throughput, if the best plan is not.
pub(super) fn in_time_as_measured(found: &SearchedGpu<'_>) -> Option<String> {
    let Goal::Deadline(limit) = found.question.goal else { return None };
    let measured = BestMeasured::of(&found.question.model.id, &found.offer.gpu.id)?;
    let is_in_time =
        |run: &&PlannedRun| run.days * measured.exceeded(run.tokens_per_s_per_gpu).max(1.0) <= limit;
    let best = found.answer.best().filter(|run| !is_in_time(run))?;
    let points = &found.answer.points;
    let run = points.iter().find(|run| run.gpus > best.gpus && is_in_time(run))?;
    Some(format!(
        "On {} GPUs, the run would meet the deadline even at that speed.",
        group_digits(run.gpus.into())
    ))
}

/// Returns what trusting the order of layouts costs, for a model with experts: their exchange is the hardest part to predict.
pub(super) fn regret(question: &Question) -> Option<String> {
    let architecture = &question.model.architecture;
    let SearchRegret { groups, mean, .. } =
        SearchRegret::of(architecture).filter(|_| architecture.moe.is_some())?;
    Some(format!(
        "Measure the best few layouts before a long run (--campaign): in {groups} comparisons of measured MoE layouts, the one \
         predicted to be fastest was on average {} slower than the fastest.",
        percent(*mean)
    ))
}

/// Returns how many layouts were considered and how many of them the software can run.
pub(super) fn counted(counts: &SearchCounts) -> String {
    let [all, valid] = [counts.combinations, counts.valid()].map(|count| group_digits(count as f64));
    format!("Considered {all} layouts; the software can run {valid} of them, if they fit in memory.")
}

/// Returns how the listed layouts are ordered, if not simply by their step times.
pub(super) fn order(answer: &GpuAnswer) -> Option<String> {
    let seconds: Vec<f64> = answer.layouts.iter().map(|run| run.layout.s_per_sequence()).collect();
    match answer.first_is_moved_up {
        true => Some(format!(
            "{ORDER} The first one is moved up, because it finishes in time and the next one doesn't."
        )),
        false => (!seconds.is_sorted()).then(|| ORDER.to_owned()),
    }
}

/// Returns what a counted split is, if a listed layout has one.
pub(super) fn counted_split(rows: &[PlanRow<'_>]) -> Option<String> {
    let is_counted = |row: &PlanRow<'_>| *row.run.layout.candidate.split == PipelineSplit::Counted;
    rows.iter().any(is_counted).then(|| COUNTED_SPLIT.to_string())
}

/// Returns which software the launch script of the plan runs, if that differs from the planned one. The plan has its time.
pub(super) fn by_script(found: &SearchedGpu<'_>) -> Option<String> {
    let text = match found.script? {
        PlanScript::AsPlanned => return None,
        PlanScript::Unavailable(problems) => {
            let why: Vec<String> = problems.iter().map(|problem| problem.text(Front::Terminal)).collect();
            format!("No launch script can be written for the best plan: {}", why.join(" "))
        }
        PlanScript::Other(plan) => {
            let ScriptRun { software, planned, days, slowdown, .. } = &plan.script;
            let runs = match software == planned {
                true => format!("turns off parts of {planned}"),
                false => format!("runs {software}, not {planned}"),
            };
            let range = ValueRange { low: days.low, high: days.high };
            let effects = consequences(found.question, plan);
            let joined = |by: &str| match &*effects {
                [] => String::new(),
                effects => format!(", {by} {}", all_of(effects)),
            };
            match *slowdown == 1.0 {
                true => format!("The launch script {runs}. It is about as fast{}.", joined("but")),
                false => {
                    let (time, effects) = (cells::time(days.mid, range), joined("which"));
                    let is_counted = found.answer.shown() == Some(&plan.run);
                    let others = match is_counted {
                        true => " The other layouts are assumed to slow down by the same factor.",
                        false => "",
                    };
                    format!("The launch script {runs}: about {time}{effects}.{others}")
                }
            }
        }
    };
    Some(text)
}

/// Returns what a script with other software makes of a plan that reaches the goal: "misses the deadline".
fn consequences(question: &Question, ScriptedPlan { script, run, .. }: &ScriptedPlan) -> Vec<String> {
    let mut effects = Vec::new();
    if let Goal::Deadline(limit) = question.goal {
        match script.effect_on(limit) {
            DeadlineEffect::Unchanged => {}
            DeadlineEffect::MayMiss => effects.push("may miss the deadline".to_string()),
            DeadlineEffect::Misses => effects.push("misses the deadline".to_string()),
        }
    }
    if let Some(longest) = question.longest_days() {
        let limit = significant(longest, 4);
        if run.days > longest {
            effects.push(format!("takes longer than {limit} days"));
        } else if run.days_with(question.chance) > longest {
            effects.push(format!("may take longer than {limit} days"));
        }
    }
    if let Some(budget) = question.budget() {
        let exceeds = |cost: Option<f64>| cost.is_some_and(|cost| cost > budget);
        if exceeds(run.expected_cost) {
            effects.push("exceeds the budget".to_string());
        } else if exceeds(run.cost_with(question.chance)) {
            effects.push("may exceed the budget".to_string());
        }
    }
    if script.may_lack_memory {
        effects.push("may not fit in memory".to_string());
    }
    effects
}

/// Returns which layout is expected to be clearly faster than the best one, which is best because its range ends earlier. With a
/// deadline, the number of GPUs follows from the range.
pub(super) fn faster_layout(found: &SearchedGpu<'_>) -> Option<String> {
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

/// Returns how many layouts were considered, and which rule discarded how many, as far as that doesn't depend on how many are listed.
pub(super) fn considered(counts: &SearchCounts) -> String {
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

pub(super) fn currency(question: &Question) -> &str {
    question.settings.currency.label()
}
