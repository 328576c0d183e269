//! The answer in a sentence, which the Plan page and `trainplan search` begin with. Each front writes amounts of money in its own way.

use super::{BeyondBudget, Chance, Unmet, chance_text, in_time_of_ten};
use crate::estimate::Interval;
use crate::units::{duration, duration_range, group_digits, significant};

/// Returns the days of a deadline with their unit: `60 days`.
pub fn limit_text(days: f64) -> String {
    let unit = if days == 1.0 { "day" } else { "days" };
    let days = if days >= 1000.0 { group_digits(days) } else { significant(days, 3) };
    format!("{days} {unit}")
}

/// Returns a number of GPUs of a type, for a sentence: `512 B200 GPUs`.
pub fn gpus_of_type(gpus: u32, name: &str) -> String {
    let unit = if gpus == 1 { "GPU" } else { "GPUs" };
    format!("{} {name} {unit}", group_digits(gpus.into()))
}

/// Returns that a figure is that of software that was measured on the GPU type, while nobody measured the plan's software there: `at the
/// measured speed of NeMo 2`. `software` is its title, if it is known.
pub fn as_measured(software: Option<&str>) -> String {
    let of = software.map_or(String::new(), |software| format!(" of {software}"));
    format!("at the measured speed{of}")
}

/// Returns the chance of a plan that must meet a deadline 9 times in 10, at the measured speed of other software, with the chance that is
/// required there: `about 6 times in 10 at the measured speed of NeMo 2 (59 days), where 5 times in 10 is required`.
pub fn chance_as_measured(software: &str, days: Interval, limit: f64) -> String {
    format!(
        "{} {} ({}), where {} is required",
        chance_text(in_time_of_ten(days, limit)),
        as_measured(Some(software)),
        duration(days.mid),
        Chance::Even.title()
    )
}

/// Returns that fewer GPUs would be enough at the predicted speed, as a sentence.
pub fn enough_as_predicted(gpus: u32, software: &str) -> String {
    let (gpus, measured) = (group_digits(gpus.into()), as_measured(Some(software)));
    format!("At the predicted speed, {gpus} GPUs would be enough, but not {measured}.")
}

/// Returns that the GPUs of a plan meet the deadline even at the speed of the fastest measured run, after their number: `would still
/// meet the deadline at that speed.` `costs` are those of the plan as predicted and at that speed.
pub fn in_time_at_that_speed(costs: Option<[String; 2]>) -> String {
    let costs = costs.map_or(String::new(), |[predicted, slower]| {
        format!(" They cost {predicted} as predicted, or {slower} at that speed.")
    });
    format!("would still meet the deadline at that speed.{costs}")
}

/// A plan as the sentence describes it.
#[derive(Debug, Clone, Copy)]
pub struct PlanInWords<'a> {
    /// Number of GPUs.
    pub gpus: u32,
    /// Name of the GPU type.
    pub gpu: &'a str,
    /// Days to train, with failures.
    pub days: Interval,
    /// The expensive end of the range of its cost; none without a price.
    pub most_cost: Option<f64>,
    /// The title of measured software that would make it clearly slower, if its own is unmeasured.
    pub measured_software: Option<&'a str>,
}

/// The limits of a question, as the front writes them.
pub struct LimitsInWords<'a> {
    /// The time that a plan may take, such as `60 days`; none if any will do.
    pub time: Option<&'a str>,
    /// Whether that is a deadline, not what is assumed for a budget.
    pub has_deadline: bool,
    /// The budget, if there is one.
    pub budget: Option<&'a str>,
    /// Whether the slow and expensive ends of the ranges count.
    pub by_slow_end: bool,
    /// Writes a cost.
    pub cost: &'a dyn Fn(f64) -> String,
    /// What the budget is enough for, such as `enough for 220B tokens on 40 GPUs`; none if that is not known.
    pub enough: Option<&'a str>,
}

impl PlanInWords<'_> {
    /// Returns what a plan takes: `512 B200 GPUs take about 59 days and cost $3.60M.` `cost` is its expected cost, as [`cost_in_words`]
    /// writes it.
    pub fn finishes(&self, has_deadline: bool, cost: Option<String>) -> String {
        let about = if has_deadline { "about " } else { "" };
        let [take, costs] = if self.gpus == 1 { ["takes", " and costs "] } else { ["take", " and cost "] };
        let (time, cost) = (duration(self.days.mid), cost_text(costs, cost));
        format!("{} {take} {about}{time}{cost}.", self.gpus_text())
    }

    /// Returns the most tokens that the limits of a question train, and what the plan that trains them takes: `$5M trains at least
    /// 19T tokens on 384 B200 GPUs in 150 days, for $4.18M.` They are rounded down, and not every number of GPUs is tried. Without a
    /// `budget`, only time limits them. `cost` is as in [`PlanInWords::finishes`].
    pub fn trains(&self, tokens: &str, budget: Option<&str>, cost: Option<String>) -> String {
        let (on, time, cost) = (self.gpus_text(), duration(self.days.mid), cost_text(", for ", cost));
        match budget {
            Some(budget) => format!("{budget} trains at least {tokens} tokens on {on} in {time}{cost}."),
            None if self.gpus == 1 => format!("{on} trains at least {tokens} tokens in {time}{cost}."),
            None => format!("{on} train at least {tokens} tokens in {time}{cost}."),
        }
    }

    fn gpus_text(&self) -> String {
        gpus_of_type(self.gpus, self.gpu)
    }

    /// Returns that no plan reaches the goal, and by how much this one, the nearest, misses it. `is_most` says that it has the most
    /// GPUs searched.
    pub fn misses(&self, unmet: Unmet, is_most: bool, limits: &LimitsInWords<'_>) -> String {
        let LimitsInWords { time, has_deadline, budget, by_slow_end, cost, enough } = *limits;
        let by_measured = by_slow_end && unmet.is_by_measured_software(self.days.high, self.most_cost);
        let chance = Chance::NineInTen.title();
        let often = match (by_slow_end, by_measured) {
            (false, _) => String::new(),
            (true, false) => format!(" {chance}"),
            (true, true) => format!(" both at the predicted speed, {chance}, and {}", as_measured(None)),
        };
        let within = time.map_or(String::new(), |time| format!(" within {time}"));
        let on = format!("on {}", self.gpus_text());
        let budget = budget.unwrap_or_default();
        let costs = |amount: f64| match (by_slow_end, self.most_cost.filter(|_| by_measured)) {
            (_, Some(most)) => format!(
                "is predicted to cost up to {}, but would cost {} {}",
                cost(most),
                cost(amount),
                as_measured(self.measured_software)
            ),
            (true, None) => format!("costs up to {}", cost(amount)),
            (false, None) => format!("costs {}", cost(amount)),
        };
        match unmet {
            Unmet::TooExpensive { cost: amount, .. } if has_deadline => format!(
                "No plan finishes{within} for at most {budget}{often}. The cheapest that finishes in time {}, {on}.",
                costs(amount)
            ),
            Unmet::TooExpensive { cost: amount, .. } => format!(
                "{budget} is not enough. The cheapest plan{within} {}, {on}{}.",
                costs(amount),
                enough.map_or(String::new(), |enough| format!("; the budget is {enough}"))
            ),
            Unmet::TooSlow { days } => {
                let Interval { low, mid, high } = self.days;
                let predicted = format!("about {} ({})", duration(mid), duration_range(mid, (low, high)));
                let takes = match (by_slow_end, by_measured) {
                    (_, true) => format!(
                        "is predicted to take {predicted}, but would take {} {}",
                        duration(days),
                        as_measured(self.measured_software)
                    ),
                    (true, false) => format!("takes {predicted}"),
                    (false, false) => format!("takes about {}", duration(days)),
                };
                let most = if is_most { ", the largest number searched" } else { "" };
                format!("No plan finishes{within}{often}. The nearest {takes}, {on}{most}.")
            }
            Unmet::NoPrice | Unmet::NoLayout => {
                "Enter a price per GPU-hour to plan for a budget.".to_string()
            }
        }
    }
}

/// Returns the cost of a plan after some words: `, for $3.60M`. Empty if it is not known.
fn cost_text(words: &str, cost: Option<String>) -> String {
    cost.map_or(String::new(), |cost| format!("{words}{cost}"))
}

/// Returns a cost with how the GPUs are paid for, if that is assumed: `$3.60M (GPUs on demand)`. The price of a reservation holds only
/// for those who use it to its end, so the cost `on_demand` is beside it: `$3.60M with GPUs reserved for 3 years, or $9.10M on demand`.
/// If the budget doesn't pay for the reservation, the cost has that condition.
pub fn cost_in_words(
    cost: String,
    purchase: Option<&str>,
    on_demand: Option<String>,
    beyond: BeyondBudget,
) -> String {
    match (purchase, on_demand) {
        (Some(purchase), on_demand) if beyond.whole_term => {
            let exceeds = if beyond.on_demand { ", more than the budget" } else { "" };
            let on_demand = on_demand.map_or(String::new(), |on_demand| {
                format!("; on demand, the run costs {on_demand}{exceeds}")
            });
            format!("{cost} if you already hold GPUs {purchase}{on_demand}")
        }
        (Some(purchase), Some(on_demand)) => format!("{cost} with GPUs {purchase}, or {on_demand} on demand"),
        (Some(purchase), None) => format!("{cost} (GPUs {purchase})"),
        (None, _) => cost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_at_the_measured_speed_is_beside_the_one_that_is_required() {
        let days = Interval { low: 53.0, mid: 59.0, high: 65.0 };
        assert_eq!(
            chance_as_measured("NeMo 2", days, 60.0),
            "about 6 times in 10 at the measured speed of NeMo 2 (59 days), where 5 times in 10 is required"
        );
        assert_eq!(
            enough_as_predicted(1584, "NeMo 2"),
            "At the predicted speed, 1,584 GPUs would be enough, but not at the measured speed of NeMo 2."
        );
    }

    #[test]
    fn a_cost_at_the_speed_of_a_measured_run_is_beside_the_predicted_one() {
        let costs = ["$2.26M", "$2.83M"].map(str::to_string);
        assert_eq!(
            in_time_at_that_speed(Some(costs)),
            "would still meet the deadline at that speed. They cost $2.26M as predicted, or $2.83M at that speed."
        );
    }

    #[test]
    fn the_cost_of_a_reservation_is_beside_that_on_demand() {
        let beside = |purchase: Option<&str>, on_demand: Option<&str>, beyond: BeyondBudget| {
            cost_in_words("$4.10M".to_string(), purchase, on_demand.map(str::to_string), beyond)
        };
        let cost = |purchase, on_demand| beside(purchase, on_demand, BeyondBudget::default());
        assert_eq!(
            cost(Some("reserved for 3 years"), Some("$9.10M")),
            "$4.10M with GPUs reserved for 3 years, or $9.10M on demand"
        );
        assert_eq!(cost(Some("on demand"), None), "$4.10M (GPUs on demand)");
        assert_eq!(cost(None, None), "$4.10M");
        // The budget pays only for the run's share of the reservation.
        let held = |on_demand: Option<&str>, is_over: bool| {
            let beyond = BeyondBudget { whole_term: true, on_demand: is_over };
            beside(Some("reserved for 3 years"), on_demand, beyond)
        };
        let condition = "$4.10M if you already hold GPUs reserved for 3 years";
        assert_eq!(held(None, false), condition);
        assert_eq!(held(Some("$4.20M"), false), format!("{condition}; on demand, the run costs $4.20M"));
        assert_eq!(
            held(Some("$9.10M"), true),
            format!("{condition}; on demand, the run costs $9.10M, more than the budget")
        );
    }

    #[test]
    fn a_plan_is_a_sentence_with_its_cost_or_with_what_it_misses() {
        let days = Interval { low: 55.0, mid: 61.0, high: 70.0 };
        let (most_cost, measured_software) = (Some(99.0), Some("NeMo 2"));
        let plan = PlanInWords { gpus: 1024, gpu: "H100", days, most_cost, measured_software };
        assert_eq!(
            plan.finishes(true, Some("4.10M USD".to_string())),
            "1,024 H100 GPUs take about 61 days and cost 4.10M USD."
        );
        assert_eq!(plan.finishes(false, None), "1,024 H100 GPUs take 61 days.");
        let single = PlanInWords { gpus: 1, ..plan };
        let single = single.finishes(false, Some("$4.10k".to_string()));
        assert_eq!(single, "1 H100 GPU takes 61 days and costs $4.10k.");
        assert_eq!(
            plan.trains("19T", Some("$5M"), Some("$4.10M".to_string())),
            "$5M trains at least 19T tokens on 1,024 H100 GPUs in 61 days, for $4.10M."
        );
        assert_eq!(plan.trains("19T", None, None), "1,024 H100 GPUs train at least 19T tokens in 61 days.");
        let limits = |has_deadline: bool| LimitsInWords {
            time: Some("60 days"),
            has_deadline,
            budget: Some("$50k"),
            by_slow_end: true,
            cost: &|cost| format!("${cost}"),
            enough: Some("enough for 220B tokens on 40 GPUs"),
        };
        assert_eq!(
            plan.misses(Unmet::TooSlow { days: 70.0 }, true, &limits(true)),
            "No plan finishes within 60 days 9 times in 10. The nearest takes about 61 days (55–70), on 1,024 H100 GPUs, the largest \
             number searched."
        );
        assert_eq!(
            plan.misses(Unmet::TooSlow { days: 81.0 }, false, &limits(true)),
            "No plan finishes within 60 days both at the predicted speed, 9 times in 10, and at the measured speed. The nearest \
             is predicted to take about 61 days (55–70), but would take 81 days at the measured speed of NeMo 2, on 1,024 H100 GPUs."
        );
        let expensive = Unmet::TooExpensive { cost: 99.0, tokens: 2.2e11, gpus: 40 };
        assert_eq!(
            plan.misses(expensive, true, &limits(false)),
            "$50k is not enough. The cheapest plan within 60 days costs up to $99, on 1,024 H100 GPUs; the budget is enough for 220B \
             tokens on 40 GPUs."
        );
        assert!(
            plan.misses(expensive, true, &limits(true))
                .starts_with("No plan finishes within 60 days for at most $50k 9 times")
        );
        // The range of its cost ends at $99.
        let beyond = Unmet::TooExpensive { cost: 120.0, tokens: 0.0, gpus: 0 };
        assert!(
            plan.misses(beyond, true, &limits(true)).ends_with(
                "for at most $50k both at the predicted speed, 9 times in 10, and at the measured speed. The cheapest that \
                 finishes in time is predicted to cost up to $99, but would cost $120 at the measured speed of NeMo 2, on \
                 1,024 H100 GPUs."
            )
        );
        // At the expected days, only one test counts.
        let even = LimitsInWords { by_slow_end: false, ..limits(true) };
        assert_eq!(
            plan.misses(Unmet::TooSlow { days: 61.0 }, false, &even),
            "No plan finishes within 60 days. The nearest takes about 61 days, on 1,024 H100 GPUs."
        );
        let unnamed = PlanInWords { measured_software: None, ..plan };
        assert!(
            unnamed
                .misses(beyond, true, &limits(true))
                .ends_with("would cost $120 at the measured speed, on 1,024 H100 GPUs.")
        );
    }
}
