//! The facts of saved plans in words, and how they compare.

use super::SavedPlan;
use crate::message::search::Spread;
use crate::pages::plan::amounts::{
    cost_range, cost_texts, count_text, energy_range, limit_text, rounded_count, time_texts,
};
use crate::pages::plan::trust::trust_text;
use trainplan_shared::question::chance_text;
use trainplan_shared::units::{
    below_days, group_digits, group_three_digits, percent, readable, readable_range, signed_percent,
};

/// A fact about a plan: a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanFact {
    Model,
    Tokens,
    Gpu,
    Gpus,
    Precision,
    Layout,
    Software,
    Days,
    AsMeasured,
    ByScript,
    InTime,
    Price,
    Cost,
    OnDemand,
    WholeTerm,
    Energy,
    BatchTokens,
    StepTime,
    TokensPerGpu,
    Mfu,
    FreeMemory,
    Confidence,
}

impl PlanFact {
    pub(super) const ALL: [PlanFact; 22] = [
        PlanFact::Model,
        PlanFact::Tokens,
        PlanFact::Gpu,
        PlanFact::Gpus,
        PlanFact::Precision,
        PlanFact::Layout,
        PlanFact::Software,
        PlanFact::Days,
        PlanFact::AsMeasured,
        PlanFact::ByScript,
        PlanFact::InTime,
        PlanFact::Price,
        PlanFact::Cost,
        PlanFact::OnDemand,
        PlanFact::WholeTerm,
        PlanFact::Energy,
        PlanFact::BatchTokens,
        PlanFact::StepTime,
        PlanFact::TokensPerGpu,
        PlanFact::Mfu,
        PlanFact::FreeMemory,
        PlanFact::Confidence,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            PlanFact::Model => "Model",
            PlanFact::Tokens => "Tokens",
            PlanFact::Gpu => "GPU",
            PlanFact::Gpus => "GPUs",
            PlanFact::Precision => "Precision",
            PlanFact::Layout => "Layout",
            PlanFact::Software => "Software",
            PlanFact::Days => "Days",
            PlanFact::AsMeasured => "Days at the fastest measured speed",
            PlanFact::ByScript => "Days with the launch script",
            PlanFact::InTime => "In time",
            PlanFact::Price => "Price",
            PlanFact::Cost => "Cost",
            PlanFact::OnDemand => "Cost on demand",
            PlanFact::WholeTerm => "Whole reservation",
            PlanFact::Energy => "Energy",
            PlanFact::BatchTokens => "Tokens per step",
            PlanFact::StepTime => "Step time, s",
            PlanFact::TokensPerGpu => "Tokens/s/GPU",
            PlanFact::Mfu => "MFU (full)",
            PlanFact::FreeMemory => "Free memory, GiB",
            PlanFact::Confidence => "Confidence",
        }
    }

    pub(super) fn text(self, saved: &SavedPlan) -> String {
        let plan = &saved.plan;
        let range = |value: Spread| {
            format!("{} ({})", readable(value.mid), readable_range((value.low, value.high), readable))
        };
        match self {
            PlanFact::Model => saved.model.clone(),
            PlanFact::Tokens => rounded_count(saved.tokens),
            PlanFact::Gpu => saved.gpu.clone(),
            PlanFact::Gpus => group_digits(plan.gpus.into()),
            PlanFact::Precision => plan.precision.clone(),
            PlanFact::Layout => plan.layout.clone(),
            PlanFact::Software => saved.software.clone(),
            PlanFact::Days => days_text(plan.days),
            PlanFact::ByScript => match saved.script {
                None => "–".into(),
                Some(script) if script.is_unavailable => "no script".into(),
                Some(script) => {
                    let lacks = if script.may_lack_memory { ", may not fit in memory" } else { "" };
                    match script.slowdown == 1.0 {
                        true => format!("as planned{lacks}"),
                        false => format!("{}{lacks}", days_text(saved.days_by_script())),
                    }
                }
            },
            PlanFact::AsMeasured => saved.as_measured_days.map_or("–".into(), below_days),
            PlanFact::InTime => {
                let chance = saved.limit_days.zip(saved.in_time_of_ten());
                chance.map_or("–".into(), |(limit, of_ten)| {
                    format!("{} within {}", chance_text(of_ten), limit_text(limit))
                })
            }
            PlanFact::Price => saved.price.clone().unwrap_or("–".into()),
            PlanFact::OnDemand => saved.on_demand_cost().map_or("–".into(), |cost| {
                let (cost, range) = cost_texts(cost, &saved.currency);
                format!("{cost} ({range})")
            }),
            PlanFact::WholeTerm => {
                let term = saved.whole_term;
                term.map_or("–".into(), |term| cost_range(term, plan.paid_gpus, &saved.currency))
            }
            PlanFact::Cost => plan.cost.map_or("–".into(), |cost| {
                let (cost, range) = cost_texts(cost, &saved.currency);
                format!("{cost} ({range})")
            }),
            PlanFact::Energy => {
                let (energy, range) = energy_range(plan.mwh);
                format!("{energy} ({range})")
            }
            PlanFact::BatchTokens => count_text(plan.batch_tokens),
            PlanFact::StepTime => range(plan.step_s),
            PlanFact::TokensPerGpu => group_three_digits(plan.tokens_per_s_per_gpu),
            PlanFact::Mfu => percent(plan.mfu),
            PlanFact::FreeMemory => format!("{:.1}", plan.spare_gib),
            PlanFact::Confidence => trust_text(plan.trust).word.into(),
        }
    }

    /// Returns the value of a fact that is compared in percent.
    pub(super) fn value(self, saved: &SavedPlan) -> Option<f64> {
        let plan = &saved.plan;
        match self {
            PlanFact::Gpus => Some(plan.gpus.into()),
            PlanFact::Days => Some(plan.days.mid),
            PlanFact::Cost => Some(plan.cost?.mid),
            PlanFact::Energy => Some(plan.mwh.mid),
            PlanFact::StepTime => Some(plan.step_s.mid),
            PlanFact::TokensPerGpu => Some(plan.tokens_per_s_per_gpu),
            _ => None,
        }
    }

    /// Returns the range of a fact whose best value is marked. Others are not better if they are less, as the number of GPUs.
    fn range(self, saved: &SavedPlan) -> Option<Spread> {
        match self {
            PlanFact::Days => Some(saved.plan.days),
            PlanFact::Cost => saved.plan.cost,
            PlanFact::Energy => Some(saved.plan.mwh),
            _ => None,
        }
    }

    /// Returns the place of the plan with the least value; none if its range overlaps with that of another plan.
    pub(super) fn best(self, plans: &[SavedPlan]) -> Option<usize> {
        let ranges = plans.iter().enumerate().filter_map(|(place, saved)| Some((place, self.range(saved)?)));
        let ranges: Vec<(usize, Spread)> = ranges.collect();
        let (best, least) =
            ranges.iter().min_by(|(_, one), (_, other)| one.mid.total_cmp(&other.mid)).copied()?;
        let is_clear = |(place, range): &(usize, Spread)| *place == best || !range.overlaps(least);
        (ranges.len() > 1 && ranges.iter().all(is_clear)).then_some(best)
    }

    /// Returns how a plan compares with the first one: `−25.0 %`, and from twice as much on `3.0 times`; none if both have the same value
    /// or the fact is not a number.
    pub(super) fn difference(self, first: &SavedPlan, saved: &SavedPlan) -> Option<String> {
        let (one, other) = (self.value(first)?, self.value(saved)?);
        let ratio = other / one;
        (one != other && one > 0.0).then(|| match ratio {
            2.0.. => format!("{ratio:.1} times"),
            _ => signed_percent(ratio - 1.0),
        })
    }
}

/// Returns days with their range.
fn days_text(days: Spread) -> String {
    format!("{} ({})", below_days(days.mid), time_texts(days).1)
}

#[cfg(test)]
mod tests {
    use super::super::tests::two;
    use super::*;
    use crate::message::search::ScriptEffect;
    use crate::pages::plan::findings::tests::{plan, spread};

    #[test]
    fn numbers_are_compared_with_the_first_plan() {
        let plans = two();
        let difference = |fact: PlanFact| fact.difference(&plans[0], &plans[1]);
        assert_eq!(difference(PlanFact::Gpus).as_deref(), Some("−50.0 %"));
        assert_eq!(difference(PlanFact::Cost).as_deref(), Some("−25.0 %"));
        assert_eq!((difference(PlanFact::Days), difference(PlanFact::Layout)), (None, None));
        let longer = SavedPlan { plan: plan(1000, 173.65, 4e6), ..plans[0].clone() };
        assert_eq!(PlanFact::Days.difference(&plans[0], &longer).as_deref(), Some("3.0 times"));
    }

    #[test]
    fn the_least_value_is_the_best_if_the_ranges_are_apart() {
        let mut plans = two();
        assert_eq!(PlanFact::Cost.best(&plans), Some(1));
        plans[1].plan.cost = Some(spread(3.8e6));
        assert_eq!((PlanFact::Cost.best(&plans), PlanFact::Days.best(&plans)), (None, None));
        assert_eq!((PlanFact::Gpus.best(&plans), PlanFact::TokensPerGpu.best(&plans)), (None, None));
        assert_eq!(PlanFact::Cost.best(&plans[..1]), None);
    }

    #[test]
    fn the_days_by_the_launch_script_decide_whether_a_plan_is_in_time() {
        let mut plans = two();
        let before = plans[0].in_time_of_ten();
        plans[0].script = Some(ScriptEffect {
            slowdown: 1.5,
            may_lack_memory: false,
            is_unavailable: false,
            runs_megatron_lm: false,
        });
        assert!(plans[0].in_time_of_ten() < before);
        assert_eq!(PlanFact::ByScript.text(&plans[0]), "87 (78–96)");
        assert_eq!(PlanFact::ByScript.text(&plans[1]), "–");
        plans[1].script = Some(ScriptEffect {
            slowdown: 1.0,
            may_lack_memory: false,
            is_unavailable: true,
            runs_megatron_lm: false,
        });
        assert_eq!(PlanFact::ByScript.text(&plans[1]), "no script");
    }
}
