//! What a whole run depends on, from fields: failures, saves, prices and power.

use crate::cost::{
    CheckpointStorage, Currency, ElectricityPrice, OwnPrices, Power, PowerChoice, Price, PriceSource,
    PurchaseForm, RunCost, RunEnergy,
};
use crate::field::Field;
use crate::goodput::{Disruptions, Recovery, RunTime, SaveTime};
use crate::message;
use crate::message::Setting;
use crate::problem::Problem;
use crate::spec::Spec;
use crate::units::{parse_count, parse_seconds};

/// Bytes per second in one GB/s.
const GIGA: f64 = 1e9;

/// The fields of a whole run, read and checked; the default is assumed. A search reads them once and then calls [`RunTime::of`] and
/// [`RunSettings::cost`] for every candidate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunSettings {
    /// What keeps the run from training.
    pub disruptions: Disruptions,
    /// The user's prices.
    pub own_prices: Option<OwnPrices>,
    /// How the GPUs are paid for; none for every form.
    pub purchase: Option<PurchaseForm>,
    /// The power that the user chose.
    pub power: Option<PowerChoice>,
    /// The user's price of electricity per kWh.
    pub electricity_per_kwh: Option<f64>,
    /// The currency of the user's prices.
    pub currency: Currency,
}

impl RunSettings {
    /// Returns the price that a run is paid with, whatever its goal: the user's, or the assumed one of the user's form of purchase or
    /// of a reservation, or else of the cheapest form; none if no price is known. Nearly all GPU types have the price of a reservation,
    /// and all of these have the same term.
    pub fn usual_price(&self, gpu: &str) -> Option<Price> {
        let prices = self.prices(gpu);
        let reserved = prices.iter().find(|price| price.is_assumed_for(PurchaseForm::default()));
        reserved.or(prices.first()).copied()
    }

    /// Returns the prices of a GPU type: the user's own, or the assumed one of each form of purchase, from the cheapest
    /// form. It is empty if no price is known.
    pub fn prices(&self, gpu: &str) -> Vec<Price> {
        if let Some(own) = self.own_prices.as_ref().and_then(|prices| prices.of(gpu)) {
            return vec![own];
        }
        if !self.currency.is_assumed() {
            return Vec::new();
        }
        let forms = PurchaseForm::ALL.into_iter();
        let forms = forms.filter(|form| self.purchase.is_none_or(|chosen| chosen == *form));
        forms.filter_map(|form| Price::assumed(gpu, form)).collect()
    }

    /// Returns the cost of a run that trains `tokens` tokens on GPUs of this price and power. It allocates nothing.
    pub fn cost(&self, run: &RunTime, tokens: f64, price: Price, power: Power) -> RunCost {
        let energy = RunEnergy::of(run, power, self.electricity());
        RunCost::of(run, tokens, price, self.storage(&price)).with_energy(&energy)
    }

    /// Returns how kept checkpoints are paid for at a price.
    fn storage(&self, price: &Price) -> CheckpointStorage {
        match price.source {
            PriceSource::Yours if !self.currency.is_assumed() => CheckpointStorage::without_price(),
            _ => CheckpointStorage::assumed(),
        }
    }

    /// Returns the price of electricity.
    pub fn electricity(&self) -> ElectricityPrice {
        match self.electricity_per_kwh {
            Some(price) => ElectricityPrice::Own(price),
            None if self.currency.is_assumed() => ElectricityPrice::Assumed,
            None => ElectricityPrice::Unknown,
        }
    }
}

impl Spec {
    /// Returns what the fields say about the whole run around the training steps.
    ///
    /// # Errors
    /// Every field that is invalid or contradicts others.
    pub fn run_settings(&self) -> Result<RunSettings, Vec<Problem>> {
        let mut problems = Vec::new();
        let assumed = Disruptions::default();
        let failure_rate = keep(&mut problems, self.parse(Field::FailureRate));
        let restart_s = keep(&mut problems, self.seconds(Field::RestartTime));
        let save_s = keep(&mut problems, self.seconds(Field::SaveTime));
        let bandwidth = keep(&mut problems, self.count(Field::CheckpointBandwidth));
        let overhead = keep(&mut problems, self.percent(Field::Overhead));
        let spare_share = keep(&mut problems, self.percent(Field::SpareNodes));
        let save = match (save_s, bandwidth) {
            (Some(seconds), _) => SaveTime::Seconds(seconds),
            (None, Some(gigabytes_per_s)) => SaveTime::Bandwidth(gigabytes_per_s * GIGA),
            (None, None) => assumed.save,
        };
        let own_prices: Option<OwnPrices> = keep(&mut problems, self.parse(Field::Price));
        let currency: Currency = keep(&mut problems, self.parse(Field::Currency)).unwrap_or_default();
        let is_free = own_prices.as_ref().is_some_and(OwnPrices::has_free);
        let missing = match (self.get(Field::Price), self.get(Field::Electricity)) {
            (None, _) => Some(Field::Price),
            (Some(_), None) if is_free => Some(Field::Electricity),
            _ => None,
        };
        if let Some(missing) = missing.filter(|_| !currency.is_assumed()) {
            let message = message![
                "Published prices are in USD, and nothing is converted. Set ",
                missing,
                format!(" to your price in {currency}, or "),
                Setting::new(Field::Currency, Currency::ASSUMED),
                "."
            ];
            problems.push(Problem::new(Field::Currency, &currency, message));
        }
        let settings = RunSettings {
            disruptions: Disruptions {
                failure_rate: failure_rate.unwrap_or(assumed.failure_rate),
                recovery: restart_s
                    .map_or(assumed.recovery, |restart_s| Recovery { restart_s, queue_s: 0.0 }),
                save,
                overhead: overhead.unwrap_or(assumed.overhead),
                spare_share: spare_share.unwrap_or(assumed.spare_share),
            },
            own_prices,
            purchase: keep(&mut problems, self.parse(Field::Purchase)),
            power: keep(&mut problems, self.parse(Field::Power)),
            electricity_per_kwh: keep(&mut problems, self.count(Field::Electricity)),
            currency,
        };
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    /// Returns a field as a time in seconds, which may have a unit: `10m`.
    fn seconds(&self, field: Field) -> Result<Option<f64>, Problem> {
        self.number(field, parse_seconds)
    }

    /// Returns a field in percent, `5` or `5%`, as a fraction.
    fn percent(&self, field: Field) -> Result<Option<f64>, Problem> {
        let percent = self.number(field, |text| parse_count(text.trim_end_matches('%')))?;
        Ok(percent.map(|percent| percent / 100.0))
    }
}

fn keep<T>(problems: &mut Vec<Problem>, read: Result<Option<T>, Problem>) -> Option<T> {
    read.unwrap_or_else(|problem| {
        problems.push(problem);
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goodput::FailureRate;
    use crate::range::ValueRange;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    #[test]
    fn without_fields_everything_is_assumed() {
        let settings = Spec::default().run_settings().unwrap();
        assert_eq!(settings, RunSettings::default());
        assert_eq!(settings.prices("h100").len(), 3);
        assert_eq!(settings.prices("gh200"), [], "no price is known");
    }

    #[test]
    fn every_field_replaces_its_assumption() {
        let settings = spec(&[
            (Field::FailureRate, "5e-5"),
            (Field::RestartTime, "5m"),
            (Field::CheckpointBandwidth, "40"),
            (Field::Overhead, "2.5 %"),
            (Field::SpareNodes, "0"),
            (Field::Price, "h100=2.50"),
            (Field::Power, "tdp"),
            (Field::Electricity, "0.2"),
            (Field::Currency, "EUR"),
        ])
        .run_settings()
        .unwrap();
        let disruptions = settings.disruptions;
        assert_eq!(disruptions.failure_rate, FailureRate::Own(ValueRange::of(5e-5)));
        assert_eq!((disruptions.recovery.seconds(), disruptions.save), (300.0, SaveTime::Bandwidth(40e9)));
        assert_eq!((disruptions.overhead, disruptions.spare_share), (0.025, 0.0));
        assert_eq!(settings.prices("h100"), [Price::own(ValueRange::of(2.5))]);
        assert_eq!(settings.prices("b200"), [], "published prices are in another currency");
        assert_eq!(settings.storage(&settings.prices("h100")[0]), CheckpointStorage::without_price());
        assert_eq!(settings.electricity(), ElectricityPrice::Own(0.2));
    }

    #[test]
    fn a_form_of_purchase_leaves_one_price() {
        let settings = spec(&[(Field::Purchase, "reserved")]).run_settings().unwrap();
        assert_eq!(settings.prices("b200"), [Price::assumed("b200", PurchaseForm::Reserved).unwrap()]);
        let is_usual = |fields: &[(Field, &str)], gpu: &str, form: PurchaseForm| {
            spec(fields).run_settings().unwrap().usual_price(gpu).unwrap().is_assumed_for(form)
        };
        // The goal doesn't change it.
        for goal in [&[(Field::Budget, "5M")][..], &[(Field::Budget, "5M"), (Field::Deadline, "60d")], &[]] {
            assert!(is_usual(goal, "b200", PurchaseForm::Reserved));
        }
        assert!(is_usual(&[(Field::Purchase, "on-demand")], "b200", PurchaseForm::OnDemand));
        assert!(is_usual(&[], "a100", PurchaseForm::OnDemand), "it has no other price");
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let fields = [
            (Field::FailureRate, "never"),
            (Field::RestartTime, "soon"),
            (Field::Overhead, "-1"),
            (Field::SpareNodes, "200"),
            (Field::Price, "-1"),
            (Field::Purchase, "leased"),
            (Field::Currency, "EUR"),
        ];
        let problems = spec(&fields).run_settings().unwrap_err();
        let named: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
        let [rate, restart, overhead, spare, price, purchase, _] = fields.map(|(field, _)| field);
        assert_eq!(named, [rate, restart, overhead, spare, price, purchase]);
        assert_eq!(
            problems[1].to_string(),
            "--restart-time must be a time from 0s to 30d, such as 90s, 10m or 1h, not \"soon\"."
        );
        let problem = spec(&[(Field::Currency, "EUR")]).run_settings().unwrap_err().remove(0);
        assert_eq!(
            problem.to_string(),
            "Published prices are in USD, and nothing is converted. Set --price to your price in EUR, or --currency \
             USD."
        );
        // At a price of 0, the energy is all that is paid for.
        let free = [(Field::Price, "h100=0,b200=4"), (Field::Currency, "EUR")];
        let problem = spec(&free).run_settings().unwrap_err().remove(0);
        assert_eq!(
            problem.to_string(),
            "Published prices are in USD, and nothing is converted. Set --electricity to your price in EUR, or --currency \
             USD."
        );
        assert!(spec(&[&free[..], &[(Field::Electricity, "0.2")]].concat()).run_settings().is_ok());
    }
}
