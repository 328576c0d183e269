//! The whole run of a predicted scenario: its time with failures, its cost and its energy.

use super::{Predicted, RunSettings};
use crate::cost::{Power, RunCost, RunEnergy};
use crate::estimate::Interval;
use crate::explain::Line;
use crate::goodput::{RunLoad, RunTime, checkpoint_bytes};
use crate::message::Message;
use crate::problem::Problem;
use crate::range::ValueRange;
use crate::scenario::Scenario;
use crate::spec::Spec;
use serde::Serialize;

/// A whole run: training steps with failures, saves and overheads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunPlan {
    /// Tokens that it trains.
    pub tokens: f64,
    /// Days with failures, saves and overheads; null if failures come too often for the run to end.
    pub days: ValueRange,
    /// Days with failures at the predicted step time and the middle of the failure rates.
    pub expected_days: f64,
    /// Why the run is not expected to end, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never_ends: Option<Message>,
    /// The share of the time that trains.
    pub goodput: ValueRange,
    /// Failures expected in the run.
    pub failures: ValueRange,
    /// The source of the failure rates.
    pub failure_rate_source: String,
    /// Its time in detail.
    pub time: RunTime,
    /// Its time at the predicted step time and the middle of the failure rates.
    #[serde(skip)]
    pub expected: RunTime,
    /// The currency of the costs.
    pub currency: String,
    /// Its cost at the user's price, or at each published price of the GPU; empty if no price is known.
    pub costs: Vec<RunCost>,
    /// Its energy. Every cost contains it.
    pub energy: RunEnergy,
    /// The derivation.
    pub explain: Vec<Line>,
}

impl RunPlan {
    /// Returns the plan of a scenario that trains `tokens` tokens with this step time.
    pub fn new(scenario: &Scenario, step_time_s: Interval, tokens: f64, settings: &RunSettings) -> RunPlan {
        let load = RunLoad {
            gpus: scenario.layout.gpus(),
            gpus_per_node: scenario.gpu.gpus_per_node,
            step_time_s,
            steps: tokens / scenario.batch.tokens(),
            checkpoint_bytes: checkpoint_bytes(scenario.architecture.parameters()),
        };
        let time = RunTime::of(&load, &settings.disruptions);
        let expected = load.expected(&settings.disruptions);
        let power = Power::of(&scenario.gpu, settings.power);
        let prices = settings.prices(&scenario.gpu.id).into_iter();
        let costs: Vec<RunCost> = prices.map(|price| settings.cost(&time, tokens, price, power)).collect();
        let energy = RunEnergy::of(&time, power, settings.electricity());
        let currency = settings.currency.to_string();
        let mut explain = time.explain(&settings.disruptions);
        explain.extend(costs.iter().flat_map(|cost| cost.explain(&time, &currency)));
        explain.extend(energy.explain(&time));
        RunPlan {
            tokens,
            days: time.days(),
            expected_days: expected.high.days,
            never_ends: expected.never_ends(),
            goodput: time.goodput(),
            failures: time.failures(),
            failure_rate_source: settings.disruptions.failure_rate.source(),
            time,
            expected,
            currency,
            costs,
            energy,
            explain,
        }
    }

    /// Returns the derivation of the expected days, and of their cost at the price that a search would assume.
    pub fn explain_expected(&self, scenario: &Scenario, settings: &RunSettings) -> Vec<Line> {
        let mut lines = self.expected.explain(&settings.disruptions);
        if let Some(rate) = lines.first_mut() {
            rate.formula = "√(lowest · highest)".to_string();
        }
        if let Some(price) = settings.usual_price(&scenario.gpu.id) {
            let cost = settings.cost(&self.expected, self.tokens, price.middle(), self.energy.power);
            lines.extend(cost.explain(&self.expected, &self.currency));
        }
        lines
    }
}

impl Spec {
    /// Returns the whole run of a predicted scenario; none for a proxy, which is never trained to the end.
    ///
    /// # Errors
    /// Every field of the whole run that is invalid or contradicts others.
    pub fn run_plan(&self, predicted: &Predicted) -> Result<Option<RunPlan>, Vec<Problem>> {
        let settings = self.run_settings()?;
        if predicted.scenario.is_proxy() {
            return Ok(None);
        }
        let Predicted { scenario, estimate, metrics, .. } = predicted;
        Ok(Some(RunPlan::new(scenario, estimate.step_time_s, metrics.tokens, &settings)))
    }

    /// Returns the prediction and the whole run of the scenario that the fields describe.
    ///
    /// # Errors
    /// Every field that is invalid or contradicts others, of the scenario as well as of the whole run.
    pub fn estimate_run(&self) -> Result<(Predicted, Option<RunPlan>), Vec<Problem>> {
        match (self.estimate(), self.run_settings()) {
            (Err(problems), settings) => {
                Err(problems.into_iter().chain(settings.err().unwrap_or_default()).collect())
            }
            (Ok(_), Err(problems)) => Err(problems),
            (Ok(predicted), Ok(_)) => {
                let plan = self.run_plan(&predicted)?;
                Ok((predicted, plan))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{PriceSource, PurchaseForm};
    use crate::field::Field;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        let recipe = Spec::default().with(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04");
        fields.iter().fold(recipe, |spec, (field, text)| spec.with(*field, *text))
    }

    fn plan(fields: &[(Field, &str)]) -> RunPlan {
        spec(fields).estimate_run().unwrap().1.unwrap()
    }

    #[test]
    fn a_plan_has_a_range_of_days_and_a_cost_for_each_form_of_purchase() {
        let (predicted, plan) = spec(&[]).estimate_run().unwrap();
        let plan = plan.unwrap();
        let undisturbed = predicted.time_to_train_days.unwrap();
        assert!((plan.time.days_undisturbed.mid / undisturbed.mid - 1.0).abs() < 1e-12);
        assert!(plan.days.low > undisturbed.low && plan.days.high > undisturbed.high);
        assert!(plan.goodput.low > 0.8 && plan.goodput.high < 1.0, "{:?}", plan.goodput);
        let forms: Vec<_> = plan.costs.iter().map(|cost| cost.price.source).collect();
        assert!(matches!(
            forms[..],
            [
                PriceSource::Assumed { form: PurchaseForm::Owned, .. },
                PriceSource::Assumed { form: PurchaseForm::Reserved, .. },
                PriceSource::Assumed { form: PurchaseForm::OnDemand, .. },
            ]
        ));
        assert!(plan.energy.mwh.low > 0.0);
        let derived: Vec<&str> = plan.explain.iter().map(|line| line.name.as_str()).collect();
        for name in ["failure rate", "days with failures", "total cost in USD (on demand)", "energy"] {
            assert!(derived.contains(&name), "{name}: {derived:?}");
        }
    }

    #[test]
    fn the_expected_days_and_cost_have_a_derivation_without_a_low_end() {
        let spec = spec(&[]);
        let (predicted, plan) = spec.estimate_run().unwrap();
        let (plan, settings) = (plan.unwrap(), spec.run_settings().unwrap());
        let lines = plan.explain_expected(&predicted.scenario, &settings);
        let value = |name: &str| lines.iter().find(|line| line.name == name).expect(name).value;
        assert_eq!(value("days with failures"), plan.expected_days);
        // Only the usual form of purchase.
        let totals: Vec<&str> = lines
            .iter()
            .map(|line| line.name.as_str())
            .filter(|name| name.starts_with("total cost"))
            .collect();
        assert_eq!(totals.len(), 1, "{totals:?}");
        assert!(lines.iter().all(|line| !line.note.contains("low end")), "{lines:?}");
        assert!(plan.explain.iter().any(|line| line.note.contains("low end")));
    }

    #[test]
    fn own_numbers_replace_the_ranges() {
        let plan = plan(&[(Field::Price, "2.95"), (Field::FailureRate, "0"), (Field::SaveTime, "0")]);
        assert_eq!(plan.costs.len(), 1);
        assert_eq!(plan.costs[0].price.source, PriceSource::Yours);
        let undisturbed = plan.time.days_undisturbed;
        assert!((plan.days.low / undisturbed.low - 1.0).abs() < 1e-9);
        assert!((plan.days.high / undisturbed.high - 1.0).abs() < 1e-9);
        assert_eq!(plan.failures, ValueRange::of(0.0));
    }

    #[test]
    fn a_price_of_0_leaves_the_energy_and_the_storage() {
        let plan = plan(&[(Field::Price, "0"), (Field::Purchase, "owned")]);
        let [cost] = plan.costs[..] else { panic!("{:?}", plan.costs) };
        assert!(cost.total.low > 0.0 && cost.energy == plan.energy.cost);
        assert_eq!(cost.total, cost.storage.plus(plan.energy.cost.unwrap()));
    }

    #[test]
    fn twice_the_tokens_take_twice_as_long_and_cost_twice_as_much() {
        let [one, two] = ["1T", "2T"].map(|tokens| plan(&[(Field::Tokens, tokens)]));
        assert!((two.days.high / one.days.high - 2.0).abs() < 0.01);
        let cost = |plan: &RunPlan| plan.costs[0].per_trillion_tokens.high;
        assert!((cost(&two) / cost(&one) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_run_that_never_ends_says_so_and_has_no_figures() {
        let plan = plan(&[(Field::FailureRate, "1"), (Field::Price, "0"), (Field::Purchase, "owned")]);
        assert!(plan.expected_days.is_infinite() && plan.days.low.is_infinite(), "{:?}", plan.days);
        assert!(plan.costs[0].total.high.is_infinite() && plan.energy.mwh.high.is_infinite());
        let why = plan.never_ends.unwrap().to_string();
        assert!(why.contains("so the run never ends. Lower --failure-rate (published: 1.97e-5.."), "{why}");
    }

    #[test]
    fn a_proxy_has_no_plan() {
        let fields = [(Field::Layers, "16"), (Field::Pp, "1"), (Field::Vp, "1")];
        assert_eq!(spec(&fields).estimate_run().unwrap().1, None);
    }

    #[test]
    fn mistakes_in_the_scenario_and_in_the_run_are_named_at_once() {
        let problems = spec(&[(Field::Gpus, "many"), (Field::Price, "cheap")]).estimate_run().unwrap_err();
        let fields: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [Field::Gpus, Field::Price]);
    }
}
