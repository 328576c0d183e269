//! What the costs depend on: a reservation of the GPUs, or a price of the user's.

use crate::message::search::{AskedGpu, FoundPlan, Spread};
use crate::pages::plan::amounts::{cost_range, cost_texts, money, outlasts};
use crate::pages::plan::findings::Findings;
use trainplan_shared::question::BeyondBudget;

/// Returns that the whole reservation of an assumed price, which lasts longer than a run of `days`, costs more for `paid_gpus` than the
/// budget, as a sentence; empty if it doesn't, or if the GPUs to pay for are not known.
pub(in crate::pages::plan) fn reserved_beyond(
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

/// Returns what would exceed the budget at another price than a plan's share of a reservation; nothing without a budget.
pub(in crate::pages::plan) fn beyond_budget(
    gpu: &AskedGpu,
    plan: &FoundPlan,
    budget: Option<f64>,
) -> BeyondBudget {
    let Some(budget) = budget else { return BeyondBudget::default() };
    let term = gpu.whole_term.filter(|_| outlasts(gpu, plan.days.mid));
    let on_demand = plan.cost.zip(gpu.on_demand_factor);
    BeyondBudget {
        whole_term: term.is_some_and(|(least, _)| least * f64::from(plan.paid_gpus) > budget),
        on_demand: on_demand.is_some_and(|(cost, factor)| cost.mid * factor.mid > budget),
    }
}

/// Whether the best plan keeps the budget only with a reservation that the budget doesn't pay for, while prices on demand are known.
pub(in crate::pages::plan) fn needs_reservation(findings: &Findings) -> bool {
    let best = findings.reaching().first().and_then(|index| findings.offers.get(*index));
    best.is_some_and(|offer| {
        let plan = offer.answer.as_ref().and_then(|answer| answer.plan.as_ref());
        let is_beyond = |plan| beyond_budget(&offer.gpu, plan, findings.budget()).whole_term;
        offer.gpu.on_demand_factor.is_some() && plan.is_some_and(is_beyond)
    })
}

/// Returns the reservation that an assumed price needs, what it costs in all for `paid_gpus` if they are known, and the cost without it,
/// as sentences; empty for other prices.
pub(in crate::pages::plan) fn terms(
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
pub(super) fn shared_price(findings: &Findings) -> String {
    let mut offers = findings.offers.iter().map(|offer| &offer.gpu);
    let (Some(first), true) = (offers.next(), findings.offers.len() > 1) else { return String::new() };
    let is_own = |gpu: &AskedGpu| gpu.price.is_some() && gpu.purchase.is_none();
    match is_own(first) && offers.all(|gpu| is_own(gpu) && gpu.price == first.price) {
        true => "Your price is used for every GPU type.".to_string(),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::for_budget;
    use super::super::{Verdict, verdict};
    use super::needs_reservation;
    use crate::message::search::FoundPlan;
    use crate::pages::plan::findings::tests::plan;

    #[test]
    fn a_reservation_that_exceeds_the_budget_is_named_beside_the_lead() {
        let paid = |paid_gpus: u32| FoundPlan { paid_gpus, ..plan(512, 60.0, 2e6) };
        let Verdict { lead, rest, more } = verdict(&for_budget(paid(544))).expect("a verdict");
        assert_eq!(
            lead,
            "512 B200 GPUs take 60 days and cost $2.00M if you already hold GPUs reserved for 3 years; on demand, the run costs $5.00M, \
             more than the budget."
        );
        let expected = "GPUs reserved for 3 years cost $41.5M in all, more than the budget of $4M, which covers only the run's share.";
        assert!(rest.contains(expected), "{rest}");
        assert!(more.contains("the GPUs are reserved for 3 years and cost $41.5M in all."), "{more}");
        assert!(
            more.ends_with("On demand, the run costs $5.00M ($3.60–6.60M), more than the budget."),
            "{more}"
        );
        let within = for_budget(paid(40));
        let Verdict { lead, rest, .. } = verdict(&within).expect("a verdict");
        assert!(!rest.contains("in all") && !lead.contains("already hold"), "{lead} {rest}");
        assert_eq!([&for_budget(paid(544)), &within].map(needs_reservation), [true, false]);
    }
}
