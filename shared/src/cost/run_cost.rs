//! The cost of a whole run.

use super::{Price, RunEnergy};
use crate::assumption::Assumption;
use crate::explain::Line;
use crate::goodput::{RunTime, low_end};
use crate::range::ValueRange;
use crate::units::{group_digits, significant};
use serde::Serialize;

/// Days in a month of a storage bill.
const MONTH_DAYS: f64 = 365.25 / 12.0;

/// Bytes in a TB.
const TERABYTE: f64 = 1e12;

/// The checkpoints that are kept during a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckpointStorage {
    /// Number of checkpoints.
    pub kept: f64,
    /// Price per TB and month; 0 leaves storage out.
    pub per_tb_month: f64,
}

impl CheckpointStorage {
    /// Returns the assumed storage, in US dollars.
    pub fn assumed() -> CheckpointStorage {
        CheckpointStorage {
            kept: Assumption::CheckpointsKept.value(),
            per_tb_month: Assumption::StoragePrice.value(),
        }
    }

    /// Returns storage without a price, for a currency in which none is known.
    pub fn without_price() -> CheckpointStorage {
        CheckpointStorage { per_tb_month: 0.0, ..CheckpointStorage::assumed() }
    }
}

/// The cost of a whole run at one price.
///
/// The low end has the fewest days and the lowest price, the high end the most days and the highest price.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunCost {
    /// Price of a GPU-hour.
    pub price: Price,
    /// Hours that GPUs are paid for, spare ones included.
    pub gpu_hours: ValueRange,
    /// Cost of the GPU-hours.
    pub gpus: ValueRange,
    /// Cost of storing checkpoints.
    pub storage: ValueRange,
    /// Cost of the energy, if the price of the GPUs is 0: every other price contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<ValueRange>,
    /// Total cost.
    pub total: ValueRange,
    /// Total cost per 10¹² tokens.
    pub per_trillion_tokens: ValueRange,
    /// Tokens of the run.
    tokens: f64,
}

impl RunCost {
    /// Returns the cost of a run that trains `tokens` tokens, without the energy that a price of 0 doesn't contain. It allocates
    /// nothing, so that a search can call it for every candidate.
    pub fn of(run: &RunTime, tokens: f64, price: Price, storage: CheckpointStorage) -> RunCost {
        let gpu_hours = run.paid_gpu_hours();
        let ValueRange { low, high } = price.per_gpu_hour;
        // What costs nothing, costs nothing for ever.
        let cost = |hours: f64, price: f64| if price > 0.0 { hours * price } else { 0.0 };
        let gpus = ValueRange { low: cost(gpu_hours.low, low), high: cost(gpu_hours.high, high) };
        let terabytes = storage.kept * run.checkpoint_bytes / TERABYTE;
        let storage = match storage.per_tb_month {
            price if price > 0.0 => run.days().times(terabytes * price / MONTH_DAYS),
            _ => ValueRange::of(0.0),
        };
        let total = gpus.plus(storage);
        let per_trillion_tokens = total.times(1e12 / tokens);
        RunCost { price, gpu_hours, gpus, storage, energy: None, total, per_trillion_tokens, tokens }
    }

    /// Returns the cost with the energy of the run, if the price of the GPUs is 0.
    #[must_use]
    pub fn with_energy(self, energy: &RunEnergy) -> RunCost {
        let Some(energy) = energy.cost.filter(|_| self.price.is_free()) else { return self };
        let total = self.total.plus(energy);
        let per_trillion_tokens = total.times(1e12 / self.tokens);
        RunCost { energy: Some(energy), total, per_trillion_tokens, ..self }
    }

    /// Returns the most tokens that a budget pays for at the same throughput: the lower end with the highest cost, the
    /// upper end with the lowest.
    pub fn tokens_for(&self, budget: f64) -> ValueRange {
        let tokens = |total: f64| budget / total * self.tokens;
        ValueRange { low: tokens(self.total.high), high: tokens(self.total.low) }
    }

    /// Returns the derivation of the upper end. `currency` is the label of the prices.
    pub fn explain(&self, run: &RunTime, currency: &str) -> Vec<Line> {
        let text = |value: f64| significant(value, 4);
        let other = |range: ValueRange, unit: &str| {
            low_end(&group_digits(range.low), &group_digits(range.high), unit)
        };
        let form = self.price.source.purchase().map_or(String::new(), |purchase| format!(" ({purchase})"));
        let range = self.price.per_gpu_hour.readable(|price| significant(price, 4));
        let mut lines = vec![
            Line::new(
                "GPU-hours",
                "days · 24 · (GPUs + spare GPUs)",
                format!("{} · 24 · {}", text(run.days().high), group_digits(f64::from(run.paid_gpus))),
                self.gpu_hours.high,
                "h",
            )
            .note(other(self.gpu_hours, "h")),
            Line::new(
                format!("cost of GPUs in {currency}{form}"),
                "GPU-hours · price",
                format!("{} · {}", group_digits(self.gpu_hours.high), self.price.per_gpu_hour.high),
                self.gpus.high,
                "",
            )
            .note(format!("{range} per GPU-hour, {}", self.price.note())),
        ];
        if let Some(energy) = self.energy {
            lines.push(
                Line::new(format!("cost of energy in {currency}"), "energy · price", "", energy.high, "")
                    .note(other(energy, "")),
            );
        }
        if self.storage.high > 0.0 {
            lines.push(
                Line::new(
                    format!("cost of checkpoints in {currency}"),
                    "checkpoints · size · price · months",
                    format!("{} TB each", text(run.checkpoint_bytes / TERABYTE)),
                    self.storage.high,
                    "",
                )
                .note(Assumption::StoragePrice.source().note()),
            );
        }
        lines.push(
            Line::new(format!("total cost in {currency}{form}"), "", "", self.total.high, "")
                .note(other(self.total, "")),
        );
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{ElectricityPrice, Power, PowerSource, PurchaseForm};
    use crate::estimate::Interval;
    use crate::goodput::{Disruptions, FailureRate, RunLoad, SaveTime};
    use crate::units::DAY_S;
    use proptest::prelude::*;

    fn load(gpus: u32, days: f64) -> RunLoad {
        RunLoad {
            gpus,
            gpus_per_node: 8,
            step_time_s: Interval { low: 9.0, mid: 10.0, high: 11.0 },
            steps: days * DAY_S / 10.0,
            checkpoint_bytes: 1e12,
        }
    }

    /// A run that never fails, saves in no time and has no spare nodes.
    fn undisturbed() -> Disruptions {
        Disruptions {
            failure_rate: FailureRate::Own(ValueRange::of(0.0)),
            save: SaveTime::Seconds(0.0),
            spare_share: 0.0,
            ..Disruptions::default()
        }
    }

    #[test]
    fn cost_is_hours_times_price_plus_storage() {
        let run = RunTime::of(&load(1000, MONTH_DAYS), &undisturbed());
        let cost = RunCost::of(
            &run,
            2e12,
            Price::own(ValueRange { low: 2.0, high: 3.0 }),
            CheckpointStorage::assumed(),
        );
        let hours = 1000.0 * 24.0 * MONTH_DAYS;
        assert!((cost.gpus.low / (hours * 0.9 * 2.0) - 1.0).abs() < 1e-12);
        assert!((cost.gpus.high / (hours * 1.1 * 3.0) - 1.0).abs() < 1e-12);
        assert!((cost.storage.low - 0.9 * 2.0 * 23.0).abs() < 1e-9, "two checkpoints of 1 TB for 0.9 months");
        assert!((cost.per_trillion_tokens.high - cost.total.high / 2.0).abs() < 1e-6);
        let free = RunCost::of(&run, 2e12, cost.price, CheckpointStorage::without_price());
        assert_eq!(free.total, free.gpus);
    }

    #[test]
    fn gpus_at_a_price_of_0_cost_their_energy_and_the_storage() {
        let run = RunTime::of(&load(1000, MONTH_DAYS), &undisturbed());
        let power = Power { kw_per_gpu: 1.5, source: PowerSource::Yours };
        let energy = RunEnergy::of(&run, power, ElectricityPrice::Own(0.1));
        let cost = |price: f64| {
            let price = Price::own(ValueRange::of(price));
            RunCost::of(&run, 2e12, price, CheckpointStorage::assumed()).with_energy(&energy)
        };
        let free = cost(0.0);
        assert_eq!((free.gpus, free.energy), (ValueRange::of(0.0), energy.cost));
        assert_eq!(free.total, free.storage.plus(energy.cost.unwrap()));
        assert!((free.total.high / (1000.0 * 24.0 * MONTH_DAYS * 1.1 * 1.5 * 0.1) - 1.0).abs() < 0.01);
        assert!((free.per_trillion_tokens.low - free.total.low / 2.0).abs() < 1e-9);
        assert!((free.tokens_for(free.total.high).low / 2e12 - 1.0).abs() < 1e-9);
        let lines = free.explain(&run, "USD");
        assert_eq!(lines.iter().filter(|line| line.name == "cost of energy in USD").count(), 1);
        assert_eq!(lines.last().unwrap().value, free.total.high);
        // Any other price contains the energy.
        assert_eq!((cost(2.0).energy, cost(2.0).total), (None, cost(2.0).gpus.plus(cost(2.0).storage)));
    }

    #[test]
    fn spare_gpus_are_paid_for() {
        let disruptions = Disruptions { spare_share: 0.05, ..undisturbed() };
        let run = RunTime::of(&load(1600, 10.0), &disruptions);
        assert_eq!(run.spare_nodes, 10);
        assert!((run.paid_gpu_hours().high - 1680.0 * 240.0 * 1.1).abs() < 1e-6);
    }

    #[test]
    fn the_derivation_names_the_source_of_the_price() {
        let run = RunTime::of(&load(512, 30.0), &Disruptions::default());
        let price = Price::assumed("h100", PurchaseForm::Reserved).unwrap();
        let cost = RunCost::of(&run, 1e12, price, CheckpointStorage::assumed());
        let lines = cost.explain(&run, "USD");
        assert!(lines.iter().any(|line| line.note.contains("InferenceX") && line.note.contains("2026-04")));
        assert_eq!(lines.last().unwrap().value, cost.total.high);
    }

    proptest! {
        #[test]
        fn a_budget_buys_the_tokens_that_cost_as_much(
            gpus in 8u32..20_000, days in 1.0f64..200.0, low in 0.5f64..5.0, more in 1.0f64..3.0, tokens in 1e9f64..1e14,
        ) {
            let run = RunTime::of(&load(gpus, days), &Disruptions::default());
            let price = Price::own(ValueRange { low, high: low * more });
            let cost = RunCost::of(&run, tokens, price, CheckpointStorage::assumed());
            prop_assume!(cost.total.high.is_finite());
            prop_assert!(cost.total.low <= cost.total.high);
            prop_assert!((cost.tokens_for(cost.total.high).low / tokens - 1.0).abs() < 1e-9);
            prop_assert!((cost.tokens_for(cost.total.low).high / tokens - 1.0).abs() < 1e-9);
            prop_assert!(cost.tokens_for(2.0 * cost.total.low).high > cost.tokens_for(cost.total.low).high);
        }
    }
}
