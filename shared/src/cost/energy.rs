//! The energy of a run.

use super::Power;
use crate::assumption::Assumption;
use crate::explain::Line;
use crate::goodput::RunTime;
use crate::range::ValueRange;
use crate::units::{group_digits, significant};
use serde::Serialize;

/// kWh in a MWh.
const MEGA_PER_KILO: f64 = 1000.0;

/// The price of electricity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ElectricityPrice {
    /// Assumed, in US dollars.
    Assumed,
    /// The user's, per kWh in the user's currency.
    Own(f64),
    /// Unknown: the user's currency is not the one of the assumed price.
    Unknown,
}

impl ElectricityPrice {
    /// Returns the price per kWh, if known.
    pub fn per_kwh(self) -> Option<f64> {
        match self {
            ElectricityPrice::Assumed => Some(Assumption::ElectricityPrice.value()),
            ElectricityPrice::Own(price) => Some(price),
            ElectricityPrice::Unknown => None,
        }
    }
}

/// The energy of a run. It is part of every price of GPU-hours but 0: never add its cost to another one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunEnergy {
    /// Power of the GPUs that train, in kW each. Spare nodes are not counted.
    pub power: Power,
    /// MWh.
    pub mwh: ValueRange,
    /// Price of electricity per kWh, if known.
    pub price_per_kwh: Option<f64>,
    /// Cost of the energy, if the price is known.
    pub cost: Option<ValueRange>,
}

impl RunEnergy {
    /// Returns the energy of a run. It allocates nothing.
    pub fn of(run: &RunTime, power: Power, electricity: ElectricityPrice) -> RunEnergy {
        let mwh = run.days().times(24.0 * f64::from(run.gpus) * power.kw_per_gpu / MEGA_PER_KILO);
        let price_per_kwh = electricity.per_kwh();
        let cost = price_per_kwh.map(|price| mwh.times(price * MEGA_PER_KILO));
        RunEnergy { power, mwh, price_per_kwh, cost }
    }

    /// Returns the derivation of the upper end.
    pub fn explain(&self, run: &RunTime) -> Vec<Line> {
        let days = run.days().high;
        vec![
            Line::new("power per GPU", "", "", self.power.kw_per_gpu, "kW").note(self.power.note()),
            Line::new(
                "energy",
                "days · 24 · GPUs · power / 1000",
                format!(
                    "{} · 24 · {} · {} / 1000",
                    significant(days, 4),
                    group_digits(f64::from(run.gpus)),
                    self.power.kw_per_gpu
                ),
                self.mwh.high,
                "MWh",
            )
            .note("contained in every price of GPU-hours but 0"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::estimate::Interval;
    use crate::goodput::{Disruptions, FailureRate, RunLoad, SaveTime};
    use crate::units::DAY_S;

    #[test]
    fn a_thousand_h100_need_1_7_mw() {
        let load = RunLoad {
            gpus: 1000,
            gpus_per_node: 8,
            step_time_s: Interval { low: 10.0, mid: 10.0, high: 10.0 },
            steps: DAY_S / 10.0,
            checkpoint_bytes: 1e9,
        };
        let disruptions = Disruptions {
            failure_rate: FailureRate::Own(ValueRange::of(0.0)),
            save: SaveTime::Seconds(0.0),
            ..Disruptions::default()
        };
        let run = RunTime::of(&load, &disruptions);
        let power = Power::of(Catalog::embedded().gpu("h100").unwrap(), None);
        let energy = RunEnergy::of(&run, power, ElectricityPrice::Own(0.1));
        assert!((energy.mwh.high - 1.73 * 24.0).abs() < 1e-9, "{:?}", energy.mwh);
        assert!((energy.cost.unwrap().high - 4152.0).abs() < 1e-6);
        assert_eq!(RunEnergy::of(&run, power, ElectricityPrice::Unknown).cost, None);
    }
}
