//! How certain it is that the plans hold the limits of the question.

use super::{all_of, needs_reservation, sentences};
use crate::message::search::{AskedGoal, FoundAnswer, FoundPlan, Spread, Trust};
use crate::pages::plan::amounts::limit_text;
use crate::pages::plan::findings::{Findings, is_within};
use trainplan_shared::estimate::Interval;
use trainplan_shared::problem::one_of;
use trainplan_shared::question::{Chance, chance_as_measured, gpus_of_type};
use trainplan_shared::units::duration;

/// Returns how likely the plans meet the deadline, and which plans would with the other chance, as sentences.
pub(super) fn late(findings: &Findings) -> String {
    let AskedGoal::Deadline(limit) = findings.goal() else { return String::new() };
    let Some(chance) = findings.asked.as_ref().and_then(|asked| asked.chance) else { return String::new() };
    let all = reaching(findings, |_| true);
    // Cards name the plans that meet the deadline 5 times in 10.
    let named = if chance == Chance::Even { &*all } else { &[] };
    let others = named.iter().filter_map(|(name, answer)| {
        let other = answer.with_other_chance.as_ref()?;
        let is_another = answer.plan.as_ref().is_some_and(|plan| plan.gpus != other.gpus);
        let is_affordable = is_within(other, findings.budget(), true);
        (is_another && is_affordable).then(|| gpus_of_type(other.gpus, name))
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
                all.iter().find_map(|(name, answer)| Some((name, answer.with_measured_software.clone()?)));
            let it_meets = with_verb(findings, all, ["meets", "meet"]);
            let is_unmeasured = all
                .iter()
                .any(|(_, answer)| answer.plan.as_ref().is_some_and(|plan| plan.trust == Trust::Unmeasured));
            let bet = match (bet, is_unmeasured) {
                (Some((name, (software, Spread { low, mid, high }))), _) => {
                    // The sentence names a single type itself.
                    let name = if all.len() > 1 { format!("{name} ") } else { String::new() };
                    let chance = chance_as_measured(&software, Interval { low, mid, high }, limit);
                    format!(" at the predicted speed, and {name}{chance}")
                }
                (None, true) => ", if the prediction holds: nobody measured this model".to_string(),
                (None, false) => String::new(),
            };
            format!("{it_meets} the deadline of {} {}{bet}.", limit_text(limit), chance.title())
        }
    };
    sentences([text, others])
}

/// Returns which plans exceed the budget at the expensive end of their range, or how likely they stay within it, as a sentence.
pub(super) fn overspent(findings: &Findings) -> String {
    let Some(limit) = findings.budget() else { return String::new() };
    if findings.is_by_slow_end() && matches!(findings.goal(), AskedGoal::Budget(_)) {
        let plans = reaching(findings, |_| true);
        if plans.is_empty() {
            return String::new();
        }
        let it_stays = with_verb(findings, &plans, ["stays", "stay"]);
        let condition = if needs_reservation(findings) { " if you already hold the reservation" } else { "" };
        return format!("{it_stays} within the budget {}{condition}.", Chance::NineInTen.title());
    }
    let overspent = reaching(findings, |plan| plan.cost.is_some_and(|cost| cost.high > limit));
    at_the_end(&overspent, ["expensive end", "exceeds the budget", "exceed the budget"])
}

/// Returns how long a plan on a GPU type takes at the throughput of the fastest measured run there, as a sentence.
pub(in crate::pages::plan) fn at_measured_speed(gpu: &str, days: f64) -> String {
    format!("At the speed of the fastest measured run on {gpu}, the plan takes {}.", duration(days))
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

#[cfg(test)]
mod tests {
    use super::super::tests::lead;
    use super::*;
    use crate::pages::plan::findings::tests::{answered, plan, spread};

    #[test]
    fn a_chance_at_the_predicted_speed_is_beside_that_at_the_measured_speed() {
        let mut findings = answered(&[("B200", Some(plan(640, 49.0, 2.3e6)))]);
        findings.asked.as_mut().expect("a question").chance = Some(Chance::NineInTen);
        findings.offers[0].answer.as_mut().expect("an answer").with_measured_software =
            Some(("NeMo 2".into(), spread(59.0)));
        assert_eq!(
            lead(&findings).1,
            "The plan meets the deadline of 60 days 9 times in 10 at the predicted speed, and about 6 times in 10 at the measured \
             speed of NeMo 2 (59 days), where 5 times in 10 is required."
        );
        // Another type is the best one, and the figures are not its own.
        let best = ("GB300", Some(plan(448, 49.0, 2.3e6)));
        let mut findings = answered(&[best, ("B200", Some(plan(640, 49.0, 2.3e6)))]);
        findings.asked.as_mut().expect("a question").chance = Some(Chance::NineInTen);
        findings.offers[1].answer.as_mut().expect("an answer").with_measured_software =
            Some(("NeMo 2".into(), spread(59.0)));
        let rest = lead(&findings).1;
        assert!(
            rest.contains("at the predicted speed, and B200 about 6 times in 10 at the measured"),
            "{rest}"
        );
    }
}
