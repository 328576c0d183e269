//! The answer in a sentence: which GPU type needs fewer GPUs, and which costs less.

use super::amounts::{
    chance_within, cost_range, cost_text, cost_texts, count_text, limit_text, money, outlasts, time_text,
};
use super::findings::{Findings, OfferFindings, contender, is_within};
use crate::message::search::ScriptEffect;
use crate::message::search::{AskedGoal, AskedGpu, FoundAnswer, FoundFamily, FoundPlan, Spread, Trust};
use trainplan_shared::estimate::Interval;
use trainplan_shared::problem::one_of;
use trainplan_shared::question::{
    CLEARLY_FASTER, Chance, LimitsInWords, Objective, PlanInWords, Unmet, cost_in_words,
};
use trainplan_shared::units::{difference, duration, group_digits, is_same, longer};

/// The answer in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The answer.
    pub(super) lead: String,
    /// The risk, and the comparison with the next GPU type; may be empty.
    pub(super) rest: String,
    /// What the costs depend on, and what further GPU types take; may be empty.
    pub(super) more: String,
}

/// Returns the verdict, once every GPU type is answered.
pub(super) fn verdict(findings: &Findings) -> Option<Verdict> {
    if findings.offers.is_empty() || findings.offers.iter().any(|offer| offer.answer.is_none()) {
        return None;
    }
    let mut reaching = findings.reaching().into_iter().filter_map(|index| {
        let offer = &findings.offers[index];
        Some((offer, offer.answer.as_ref()?.plan.as_ref()?))
    });
    let (first, second) = (reaching.next(), reaching.next());
    let goal = findings.goal();
    let currency = findings.asked.as_ref().map_or("", |asked| asked.currency.as_str());
    Some(match (first, second) {
        (None, _) => unreached(findings, currency),
        (Some((offer, plan)), second) => {
            let (budget, days, paid_gpus) = (findings.budget(), plan.days.mid, Some(plan.paid_gpus));
            let objective = findings.asked.as_ref().and_then(|asked| asked.objective);
            let compared =
                second.map_or(String::new(), |second| compared((offer, plan), second, goal, objective));
            Verdict {
                lead: alone(&offer.gpu, plan, goal, currency),
                // The risk first.
                rest: sentences([
                    by_script(findings),
                    missed(findings),
                    late(findings),
                    reserved_beyond(&offer.gpu, days, paid_gpus, budget, currency),
                    faster_layout(goal, offer),
                    overspent(findings),
                    unspent(findings, offer, plan, currency),
                    compared,
                ]),
                more: sentences([
                    others(reaching.collect::<Vec<_>>().as_slice(), currency),
                    terms(&offer.gpu, plan.cost, paid_gpus, budget, currency),
                    shared_price(findings),
                ]),
            }
        }
    })
}

fn sentences<const N: usize>(sentences: [String; N]) -> String {
    sentences.into_iter().filter(|sentence| !sentence.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns what the launch scripts of the plans do otherwise than planned, as a sentence. The figures are those of the scripts.
fn by_script(findings: &Findings) -> String {
    if findings.by_scripts().is_some() {
        return "Searching again with what the launch scripts run …".to_string();
    }
    let plans = findings.reaching().into_iter().filter_map(|index| {
        let offer = findings.offers.get(index)?;
        let effect = offer.script.filter(|effect| !effect.is_none())?;
        Some(format!("on {}, {}", offer.gpu.name, script_text(effect)))
    });
    let plans: Vec<String> = plans.collect();
    if plans.is_empty() {
        String::new()
    } else {
        format!("These figures are for the launch scripts: {}.", plans.join("; "))
    }
}

/// Returns how much longer than planned the steps of a launch script take, and whether it may not fit in memory: `21 % longer than
/// planned`.
pub(super) fn script_text(ScriptEffect { slowdown, may_lack_memory, .. }: ScriptEffect) -> String {
    let time = if slowdown == 1.0 { "as long as planned".to_string() } else { longer(slowdown, "planned") };
    let lacks = if may_lack_memory { ", and may not fit in memory" } else { "" };
    time + lacks
}

/// Returns how likely the plans meet the deadline, and which plans would with the other chance, as sentences.
fn late(findings: &Findings) -> String {
    let AskedGoal::Deadline(limit) = findings.goal() else { return String::new() };
    let Some(chance) = findings.asked.as_ref().and_then(|asked| asked.chance) else { return String::new() };
    let all = reaching(findings, |_| true);
    // Cards name the plans that meet the deadline 5 times in 10.
    let named = if chance == Chance::Even { &*all } else { &[] };
    let others = named.iter().filter_map(|(name, answer)| {
        let other = answer.with_other_chance.as_ref()?;
        let is_another = answer.plan.as_ref().is_some_and(|plan| plan.gpus != other.gpus);
        let is_affordable = is_within(other, findings.budget(), true);
        (is_another && is_affordable).then(|| format!("{} × {name}", group_digits(other.gpus.into())))
    });
    let others: Vec<String> = others.collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("{} would meet the deadline {}.", one_of(&others), chance.other().title()),
    };
    let text = match (chance, &*all) {
        (Chance::Even, _) => {
            let late = reaching(findings, |plan| plan.days.high > limit);
            at_the_end(&late, ["slow end", "misses the deadline", "miss the deadline"])
        }
        (_, []) => String::new(),
        (_, all) => {
            // The best one comes first.
            let bet =
                all.iter().find_map(|(name, answer)| Some((name, answer.with_measured_software.as_ref()?.1)));
            let it_meets = with_verb(findings, all, ["meets", "meet"]);
            let is_unmeasured = all
                .iter()
                .any(|(_, answer)| answer.plan.as_ref().is_some_and(|plan| plan.trust == Trust::Unmeasured));
            let bet = match (bet, is_unmeasured) {
                (Some((name, days)), _) => format!(
                    " as predicted, and {} with measured software ({} on {name})",
                    chance_within(days, limit),
                    duration(days.mid)
                ),
                (None, true) => ", if the prediction holds: nobody measured this model".to_string(),
                (None, false) => String::new(),
            };
            format!("{it_meets} the deadline of {} {}{bet}.", limit_text(limit), chance.title())
        }
    };
    sentences([text, others])
}

/// Returns how long a plan on a GPU type takes at the throughput of the fastest measured run there, as a sentence.
pub(super) fn at_measured_speed(gpu: &str, days: f64) -> String {
    format!("At the speed of the fastest measured run on {gpu}, the plan takes {}.", duration(days))
}

/// Returns which layout is expected to be clearly faster than the best one, which is best because its range ends earlier, as a
/// sentence. With a deadline, the number of GPUs follows from the range.
fn faster_layout(goal: AskedGoal, offer: &OfferFindings) -> String {
    let Some(answer) = offer.answer.as_ref().filter(|_| !matches!(goal, AskedGoal::Deadline(_))) else {
        return String::new();
    };
    let limit = answer.plan.as_ref().map_or(0.0, |plan| plan.days.mid * CLEARLY_FASTER);
    let faster = answer.layouts.iter().flat_map(FoundFamily::plans).filter(|plan| plan.days.mid <= limit);
    let faster = faster.min_by(|one, other| one.days.mid.total_cmp(&other.days.mid));
    faster.map_or(String::new(), |plan| {
        format!(
            "With the layout {}, the run may take only {}, but that prediction is less certain.",
            plan.layout,
            time_text(plan.days)
        )
    })
}

/// Returns which plans exceed the budget at the expensive end of their range, or how likely they stay within it, as a sentence.
fn overspent(findings: &Findings) -> String {
    let Some(limit) = findings.budget() else { return String::new() };
    if findings.is_by_slow_end() && matches!(findings.goal(), AskedGoal::Budget(_)) {
        let plans = reaching(findings, |_| true);
        if plans.is_empty() {
            return String::new();
        }
        let it_stays = with_verb(findings, &plans, ["stays", "stay"]);
        return format!("{it_stays} within the budget {}.", Chance::NineInTen.title());
    }
    let overspent = reaching(findings, |plan| plan.cost.is_some_and(|cost| cost.high > limit));
    at_the_end(&overspent, ["expensive end", "exceeds the budget", "exceed the budget"])
}

/// Returns the names and answers of the GPU types whose best plan has a property.
fn reaching(findings: &Findings, has: impl Fn(&FoundPlan) -> bool) -> Vec<(&str, &FoundAnswer)> {
    let answers = findings.reaching().into_iter().filter_map(|index| {
        let offer = findings.offers.get(index)?;
        Some((offer.gpu.name.as_str(), offer.answer.as_ref()?))
    });
    answers.filter(|(_, answer)| answer.plan.as_ref().is_some_and(&has)).collect()
}

/// Returns some of the plans that reach the goal, with a verb: "The plan meets", "B200 meets", "The plans meet", "B200 and H100 meet".
fn with_verb(findings: &Findings, plans: &[(&str, &FoundAnswer)], [meets, meet]: [&str; 2]) -> String {
    match plans {
        [(name, _)] if findings.offers.len() > 1 => format!("{name} {meets}"),
        [_] => format!("The plan {meets}"),
        _ if plans.len() == findings.reaching().len() => format!("The plans {meet}"),
        _ => {
            let names: Vec<&str> = plans.iter().map(|(name, _)| *name).collect();
            format!("{} {meet}", all_of(&names))
        }
    }
}

/// Returns "At the slow end of its range, B200 misses the deadline."; empty without plans.
fn at_the_end(plans: &[(&str, &FoundAnswer)], [end, misses, miss]: [&str; 3]) -> String {
    match plans {
        [] => String::new(),
        [(name, _)] => format!("At the {end} of its range, {name} {misses}."),
        plans => {
            let names: Vec<&str> = plans.iter().map(|(name, _)| *name).collect();
            format!("At the {end} of their ranges, {} {miss}.", all_of(&names))
        }
    }
}

/// Returns that the whole reservation of an assumed price, which lasts longer than a run of `days`, costs more for `paid_gpus` than the
/// budget, as a sentence; empty if it doesn't, or if the GPUs to pay for are not known.
pub(super) fn reserved_beyond(
    gpu: &AskedGpu,
    days: f64,
    paid_gpus: Option<u32>,
    budget: Option<f64>,
    currency: &str,
) -> String {
    let term = gpu.whole_term.zip(gpu.purchase.as_ref()).filter(|_| outlasts(gpu, days));
    let (Some((term, purchase)), Some((gpus, budget))) = (term, paid_gpus.zip(budget)) else {
        return String::new();
    };
    match term.0 * f64::from(gpus) > budget {
        true => format!(
            "GPUs {purchase} cost {} in all, more than the budget of {}, which covers only the run's share.",
            cost_range(term, gpus, currency),
            money(budget, currency)
        ),
        false => String::new(),
    }
}

/// Returns the reservation that an assumed price needs, what it costs in all for `paid_gpus` if they are known, and the cost without it,
/// as sentences; empty for other prices.
pub(super) fn terms(
    gpu: &AskedGpu,
    cost: Option<Spread>,
    paid_gpus: Option<u32>,
    budget: Option<f64>,
    currency: &str,
) -> String {
    let (Some(purchase), Some(cost), Some(term)) = (&gpu.purchase, cost, gpu.whole_term) else {
        return String::new();
    };
    let in_all = paid_gpus
        .map_or(String::new(), |gpus| format!(" and cost {} in all", cost_range(term, gpus, currency)));
    let on_demand = gpu.on_demand_factor.map_or("No on-demand price is known".to_string(), |factor| {
        let on_demand = cost.product(factor);
        let exceeds = match budget.is_some_and(|budget| on_demand.mid > budget) {
            true => ", more than the budget",
            false => "",
        };
        let (cost, range) = cost_texts(on_demand, currency);
        format!("On demand, the run costs {cost} ({range}){exceeds}")
    });
    format!("The cost is the run's share: the GPUs are {purchase}{in_all}. {on_demand}.")
}

/// Returns the sentence about a price of the user's that is used for every GPU type.
fn shared_price(findings: &Findings) -> String {
    let mut offers = findings.offers.iter().map(|offer| &offer.gpu);
    let (Some(first), true) = (offers.next(), findings.offers.len() > 1) else { return String::new() };
    let is_own = |gpu: &AskedGpu| gpu.price.is_some() && gpu.purchase.is_none();
    match is_own(first) && offers.all(|gpu| is_own(gpu) && gpu.price == first.price) {
        true => "Your price is used for every GPU type.".to_string(),
        false => String::new(),
    }
}

/// Returns "a", "a and b", "a, b and c".
fn all_of(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// Returns what a plan takes, as a sentence.
pub(super) fn alone(gpu: &AskedGpu, plan: &FoundPlan, goal: AskedGoal, currency: &str) -> String {
    let text = |cost: Spread| cost_text(cost.mid, currency);
    let cost = plan.cost.map(|cost| {
        let on_demand = gpu.on_demand_factor.map(|factor| text(cost.product(factor)));
        cost_in_words(text(cost), gpu.purchase.as_deref(), on_demand)
    });
    in_words(gpu, plan).finishes(matches!(goal, AskedGoal::Deadline(_)), cost)
}

fn in_words<'a>(gpu: &'a AskedGpu, plan: &FoundPlan) -> PlanInWords<'a> {
    let Spread { low, mid, high } = plan.days;
    PlanInWords {
        gpus: plan.gpus,
        gpu: &gpu.name,
        days: Interval { low, mid, high },
        most_cost: plan.cost.map(|cost| cost.high),
        measured_software: None,
    }
}

/// Returns the comparison of the best GPU type with the second one.
fn compared(
    (best, plan): (&OfferFindings, &FoundPlan),
    (second, other): (&OfferFindings, &FoundPlan),
    goal: AskedGoal,
    objective: Option<Objective>,
) -> String {
    let (name, against) = (&best.gpu.name, &second.gpu.name);
    // GPUs needed are proportional to the days that a plan takes, and so is their uncertainty.
    let needed = |plan: &FoundPlan| plan.days.times(f64::from(plan.gpus) / plan.days.mid);
    // On as many GPUs, only the time differs.
    let is_by_gpus = matches!(goal, AskedGoal::Deadline(_)) && plan.gpus != other.gpus;
    let (verb, one, than, words) = match is_by_gpus {
        true => ("needs", f64::from(plan.gpus), f64::from(other.gpus), GPU_WORDS),
        false => ("takes", plan.days.mid, other.days.mid, TIME_WORDS),
    };
    let first = format!("{name} {verb} {} {against}", difference(one, than, words));
    let is_sure = |one: Spread, other: Spread| !one.overlaps(other);
    let first_is_sure = match is_by_gpus {
        true => is_sure(needed(plan), needed(other)),
        false => is_sure(plan.days, other.days),
    };
    let cost_is_sure = plan.cost.zip(other.cost).map(|(one, other)| is_sure(one, other));
    let what = if is_by_gpus { "GPUs" } else { "time" };
    let is_alike = (first_is_sure, cost_is_sure) == (true, Some(false));
    let cost = plan.cost.zip(other.cost).map(|(cost, than)| {
        let compared = difference(cost.mid, than.mid, COST_WORDS);
        match is_alike && !is_same(cost.mid, than.mid) {
            true => format!(" and probably costs {compared}, though the ranges overlap"),
            false => format!(" and costs {compared}"),
        }
    });
    let rest = match (first_is_sure, cost_is_sure) {
        (true, Some(true)) => " Both differences are larger than the uncertainty.".to_string(),
        (true, None) => " The difference is larger than the uncertainty.".to_string(),
        (true, Some(false)) => String::new(),
        (false, Some(true)) => format!(" The difference in {what} is within the uncertainty."),
        (false, Some(false)) => " Both differences are within the uncertainty.".to_string(),
        (false, None) => " The difference is within the uncertainty.".to_string(),
    };
    let why = objective.and_then(|objective| {
        objective.why_first(&contender(&best.gpu.id, plan), &contender(&second.gpu.id, other))
    });
    let why = why.map_or(String::new(), |why| format!(" {name} comes first because {why}."));
    // No line breaks between a number and its unit.
    format!("{first}{}.{rest}{why}", cost.unwrap_or_default()).replace(" %", "\u{a0}%")
}

/// How numbers of GPUs, times and costs are compared, for [`difference`].
const GPU_WORDS: [&str; 4] =
    ["fewer GPUs than", "more GPUs than", "times as many GPUs as", "as many GPUs as"];
const TIME_WORDS: [&str; 4] = ["less time than", "more time than", "times as long as", "as long as"];
const COST_WORDS: [&str; 4] = ["less", "more", "times as much", "the same"];

/// Returns what the plans of further GPU types take, as sentences.
fn others(others: &[(&OfferFindings, &FoundPlan)], currency: &str) -> String {
    let each = others.iter().map(|(offer, plan)| {
        let cost = plan.cost.map_or(String::new(), |cost| format!(" and {}", cost_text(cost.mid, currency)));
        let gpus = group_digits(plan.gpus.into());
        format!("{} would take {gpus} GPUs, {}{cost}.", offer.gpu.name, duration(plan.days.mid))
    });
    each.collect::<Vec<_>>().join(" ")
}

/// Returns why a plan spends only a part of a budget, as a sentence, if faster plans are left out because of their cost.
fn unspent(findings: &Findings, offer: &OfferFindings, plan: &FoundPlan, currency: &str) -> String {
    let objective = findings.asked.as_ref().and_then(|asked| asked.objective);
    let (AskedGoal::Budget(_), Some(Objective::Worthwhile)) = (findings.goal(), objective) else {
        return String::new();
    };
    let is_faster = |point: &&FoundPlan| {
        point.days.mid < plan.days.mid && is_within(point, findings.budget(), findings.is_by_slow_end())
    };
    let faster = offer.points.iter().filter(is_faster);
    let fastest = faster.min_by(|one, other| one.days.mid.total_cmp(&other.days.mid));
    let named = fastest.and_then(|point| Some((point, point.cost?)));
    named.map_or(String::new(), |(point, cost)| {
        format!(
            "Faster plans cost more than 1.25 times as much as the cheapest: {} GPUs would take {}, for {}.",
            group_digits(point.gpus.into()),
            duration(point.days.mid),
            cost_text(cost.mid, currency)
        )
    })
}

/// Returns the sentence for a goal that no plan reaches: about the plan that comes nearest, which the page shows.
fn unreached(findings: &Findings, currency: &str) -> Verdict {
    let nearest = findings.best().and_then(|index| {
        let offer = &findings.offers[index];
        let answer = offer.answer.as_ref()?;
        Some((offer, answer, answer.plan.as_ref()?, answer.unmet?))
    });
    let (time, budget) =
        (findings.most_days().map(limit_text), findings.budget().map(|budget| money(budget, currency)));
    let lead = match nearest {
        Some((offer, answer, plan, unmet)) => {
            let enough = match unmet {
                Unmet::TooExpensive { tokens, gpus, .. } if tokens > 0.0 => Some(enough_for(tokens, gpus)),
                _ => None,
            };
            let limits = LimitsInWords {
                time: time.as_deref(),
                has_deadline: matches!(findings.goal(), AskedGoal::Deadline(_)),
                budget: budget.as_deref(),
                by_slow_end: findings.is_by_slow_end(),
                cost: &|cost| cost_text(cost, currency),
                enough: enough.as_deref(),
            };
            let is_most = offer.points.last().is_some_and(|point| point.gpus == plan.gpus);
            let measured_software = answer.measured_software();
            PlanInWords { measured_software, ..in_words(&offer.gpu, plan) }.misses(unmet, is_most, &limits)
        }
        None => "No layout of this model works on these GPUs. The cards say what to change.".to_string(),
    };
    Verdict { lead, rest: sentences([by_script(findings), unpriced(findings)]), more: String::new() }
}

/// Returns for how many tokens a budget is enough, and with how many GPUs: `enough for 220B tokens on 40 GPUs`.
pub(super) fn enough_for(tokens: f64, gpus: u32) -> String {
    format!("enough for {} tokens on {} GPUs", count_text(tokens), group_digits(gpus.into()))
}

/// Returns the GPU types that need a price but have none, as a sentence.
fn unpriced(findings: &Findings) -> String {
    of_types(findings, &|unmet, _| matches!(unmet, Unmet::NoPrice), "No price is known for {}.")
}

/// Returns a sentence with the names of the GPU types whose answers have a property in the place of `{}`; empty if there are none.
fn of_types(findings: &Findings, has: &dyn Fn(&Unmet, &FoundAnswer) -> bool, says: &str) -> String {
    let is_one = |answer: &FoundAnswer| answer.unmet.as_ref().is_some_and(|unmet| has(unmet, answer));
    let offers = findings.offers.iter().filter(|offer| offer.answer.as_ref().is_some_and(is_one));
    let names: Vec<&str> = offers.map(|offer| offer.gpu.name.as_str()).collect();
    if names.is_empty() { String::new() } else { says.replace("{}", &all_of(&names)) }
}

/// Returns the GPU types that miss the goal, as a sentence.
fn missed(findings: &Findings) -> String {
    let of = |has: &dyn Fn(&Unmet, &FoundAnswer) -> bool, says| of_types(findings, has, says);
    // Whether the best plan is certainly too slow.
    let is_slow = |unmet: &Unmet, answer: &FoundAnswer| {
        let Unmet::TooSlow { .. } = unmet else { return None };
        let limit = findings.most_days()?;
        Some(!findings.is_by_slow_end() || answer.plan.as_ref().is_some_and(|plan| plan.days.low > limit))
    };
    sentences([
        of(&|unmet, _| matches!(unmet, Unmet::NoLayout), "No layout works on {}."),
        of(&|unmet, answer| is_slow(unmet, answer) == Some(true), "{} can't finish in time."),
        of(&|unmet, answer| is_slow(unmet, answer) == Some(false), "{} may not finish in time."),
        of(&|unmet, _| matches!(unmet, Unmet::TooExpensive { .. }), "{} would cost more than the budget."),
        unpriced(findings),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{answered, plan, spread};
    use super::*;

    fn lead(findings: &Findings) -> (String, String) {
        let Verdict { lead, rest, .. } = verdict(findings).expect("a verdict");
        (lead, rest)
    }

    #[test]
    fn two_types_are_compared_with_their_uncertainty() {
        let findings =
            answered(&[("H100", Some(plan(1000, 58.0, 4e6))), ("B200", Some(plan(500, 59.0, 3.6e6)))]);
        let (lead, rest) = lead(&findings);
        assert_eq!(lead, "500 × B200 take about 59 days and cost $3.60M.");
        assert_eq!(
            rest,
            "At the slow end of their ranges, B200 and H100 miss the deadline. B200 needs 50\u{a0}% fewer GPUs than H100 and \
             probably costs 10\u{a0}% less, though the ranges overlap."
        );
    }

    #[test]
    fn a_short_run_takes_hours() {
        let findings = answered(&[("B200", Some(plan(64, 0.5, 1e4)))]);
        assert_eq!(lead(&findings).0, "64 × B200 take about 12 hours and cost $10.0k.");
    }

    /// Returns the findings of a question with a budget of 4 million for a single plan with reserved GPUs.
    fn for_budget(plan: FoundPlan) -> Findings {
        let mut findings = answered(&[("B200", Some(plan))]);
        let gpu = &mut findings.offers[0].gpu;
        gpu.price = Some((2.9, 2.9));
        gpu.purchase = Some("reserved for 3 years".into());
        gpu.whole_term = Some((76_263.0, 76_263.0));
        gpu.on_demand_factor = Some(Spread { low: 2.0, mid: 2.5, high: 3.0 });
        let asked = findings.asked.as_mut().expect("a question");
        asked.goal = AskedGoal::Budget(4e6);
        asked.longest_days = Some(180.0);
        findings
    }

    #[test]
    fn a_reservation_that_exceeds_the_budget_is_named_beside_the_lead() {
        let paid = |paid_gpus: u32| FoundPlan { paid_gpus, ..plan(512, 60.0, 2e6) };
        let Verdict { lead, rest, more } = verdict(&for_budget(paid(544))).expect("a verdict");
        assert_eq!(
            lead,
            "512 × B200 take 60 days and cost $2.00M with GPUs reserved for 3 years, or $5.00M on demand."
        );
        let expected = "GPUs reserved for 3 years cost $41.5M in all, more than the budget of $4M, which covers only the run's share.";
        assert!(rest.contains(expected), "{rest}");
        assert!(more.contains("the GPUs are reserved for 3 years and cost $41.5M in all."), "{more}");
        assert!(
            more.ends_with("On demand, the run costs $5.00M ($3.60–6.60M), more than the budget."),
            "{more}"
        );
        let rest = verdict(&for_budget(paid(40))).expect("a verdict").rest;
        assert!(!rest.contains("in all"), "{rest}");
    }

    #[test]
    fn a_plan_that_spends_a_part_of_the_budget_says_what_the_rest_would_buy() {
        let mut findings = for_budget(plan(512, 60.0, 1.2e6));
        findings.asked.as_mut().expect("a question").objective = Some(Objective::Worthwhile);
        let is_said = |findings: &Findings| lead(findings).1.contains("Faster plans");
        assert!(!is_said(&findings));
        // The last one may exceed the budget.
        findings.offers[0].points =
            vec![plan(512, 60.0, 1.2e6), plan(2048, 20.0, 2e6), plan(8192, 10.0, 9e6)];
        let (_, rest) = lead(&findings);
        let expected = "Faster plans cost more than 1.25 times as much as the cheapest: 2,048 GPUs would take 20 days, for $2.00M.";
        assert!(rest.contains(expected), "{rest}");
    }

    #[test]
    fn the_times_of_launch_scripts_are_said_to_be_counted() {
        let mut findings = for_budget(plan(512, 60.0, 2e6));
        let effect = ScriptEffect { slowdown: 1.2, may_lack_memory: false, is_unavailable: false };
        findings.offers[0].script = Some(effect);
        let rest = lead(&findings).1;
        assert!(
            rest.starts_with("These figures are for the launch scripts: on B200, 20 % longer than planned."),
            "{rest}"
        );
        let effect = ScriptEffect { slowdown: 1.0, may_lack_memory: true, is_unavailable: false };
        assert_eq!(script_text(effect), "as long as planned, and may not fit in memory");
    }

    #[test]
    fn a_plan_with_unmeasured_software_is_beside_its_figures_with_measured_software() {
        let mut findings = answered(&[("B200", Some(plan(640, 49.0, 2.3e6)))]);
        findings.asked.as_mut().expect("a question").chance = Some(Chance::NineInTen);
        findings.offers[0].answer.as_mut().expect("an answer").with_measured_software =
            Some(("NeMo 2".into(), spread(59.0)));
        assert_eq!(
            lead(&findings).1,
            "The plan meets the deadline of 60 days 9 times in 10 as predicted, and about 6 times in 10 with measured software \
             (59 days on B200)."
        );
    }

    #[test]
    fn equal_values_are_not_compared_in_percent() {
        let findings =
            answered(&[("H100", Some(plan(500, 40.0, 3e6))), ("B200", Some(plan(500, 40.0, 3e6)))]);
        assert!(lead(&findings).1.starts_with("H100 takes as long as B200 and costs the same."));
    }

    #[test]
    fn the_only_type_that_finishes_in_time_is_named() {
        let mut findings =
            answered(&[("H100", Some(plan(16_384, 82.0, 4e6))), ("B200", Some(plan(512, 59.0, 3e6)))]);
        findings.offers[0].answer.as_mut().unwrap().unmet = Some(Unmet::TooSlow { days: 82.0 });
        let (first, _) = lead(&findings);
        assert_eq!(first, "512 × B200 take about 59 days and cost $3.00M.");
        findings.offers[1].answer.as_mut().unwrap().with_other_chance = Some(plan(576, 52.0, 3.1e6));
        let (_, rest) = lead(&findings);
        let late = "At the slow end of its range, B200 misses the deadline. 576 × B200 would meet the deadline 9 times in 10.";
        assert_eq!(rest, format!("H100 can't finish in time. {late}"));
        findings.offers[1].answer.as_mut().unwrap().unmet = Some(Unmet::TooSlow { days: 90.0 });
        let expected = "No plan finishes within 60 days. The nearest takes about 82 days, on 16,384 × H100.";
        assert_eq!(lead(&findings).0, expected);
    }

    #[test]
    fn a_goal_that_no_plan_reaches_is_explained_by_the_plan_that_is_shown() {
        let mut findings =
            answered(&[("H100", Some(plan(1392, 52.0, 2.4e6))), ("B200", Some(plan(640, 49.0, 2.5e6)))]);
        let enough = [(2.74e6, 64), (2.57e6, 40)];
        for (offer, (cost, gpus)) in findings.offers.iter_mut().zip(enough) {
            let answer = offer.answer.as_mut().expect("an answer");
            answer.unmet = Some(Unmet::TooExpensive { cost, tokens: 2.2e11, gpus });
        }
        let asked = findings.asked.as_mut().expect("a question");
        asked.max_cost = Some(5e4);
        asked.chance = Some(Chance::NineInTen);
        assert_eq!(
            lead(&findings).0,
            "No plan finishes within 60 days for at most $50k 9 times in 10. The cheapest that finishes in time costs up to \
             $2.57M, on 640 × B200."
        );
        assert_eq!(findings.best_plan().map(|plan| plan.gpus), Some(640));
        let asked = findings.asked.as_mut().expect("a question");
        (asked.goal, asked.max_cost, asked.longest_days) = (AskedGoal::Budget(5e4), None, Some(180.0));
        assert_eq!(
            lead(&findings).0,
            "$50k is not enough. The cheapest plan within 180 days costs up to $2.57M, on 640 × B200; the budget is enough \
             for 220B tokens on 40 GPUs."
        );
        // The largest number of GPUs that was searched, with software that nobody measured.
        findings.asked.as_mut().expect("a question").goal = AskedGoal::Budget(5e6);
        findings.offers[1].points = vec![plan(640, 49.0, 2.5e6)];
        for offer in &mut findings.offers {
            offer.answer.as_mut().expect("an answer").unmet = Some(Unmet::TooSlow { days: 190.0 });
        }
        findings.offers[1].answer.as_mut().expect("an answer").unmet = Some(Unmet::TooSlow { days: 185.0 });
        assert_eq!(
            lead(&findings).0,
            "No plan finishes within 180 days both as predicted, 9 times in 10, and with measured software. The nearest is \
             predicted to take about 49 days (44–54), but would take 185 days with measured software, on 640 × B200, the largest \
             number searched."
        );
    }
}
