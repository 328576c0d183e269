//! Prices of GPU-hours.

use crate::catalog::Catalog;
use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::range::ValueRange;
use crate::words::{HAS_WORDS, words};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

choices! {
    /// How GPUs are paid for. It changes the price by a factor of up to five.
    ///
    /// By default, a search assumes a reservation, even for runs shorter than its term. It says so beside the cost, and shows the
    /// cost on demand. A reservation is the only form with a comparable price for nearly all GPU types. The form must not depend on
    /// the length of a plan: at the term, the cost would fall to a third, so the cheapest plan would take years.
    #[derive(Default)]
    PurchaseForm of Field::Purchase {
        /// Bought: the total cost of ownership, with power, cooling and network, from that of a hyperscaler to that of a neocloud.
        Owned "owned" "Owned",
        /// Rented for one to three years.
        #[default]
        Reserved "reserved" "Reserved",
        /// Rented by the hour, at list or market prices.
        OnDemand "on-demand" "On demand",
    }
}

/// How long GPUs must be rented for a price, in whole years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RentalTerm {
    /// The shortest term, which has the highest price.
    pub shortest_years: u32,
    /// The longest term, which has the lowest price.
    pub longest_years: u32,
}

impl fmt::Display for RentalTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RentalTerm { shortest_years, longest_years } = self;
        let unit = if *longest_years == 1 { "year" } else { "years" };
        match shortest_years == longest_years {
            true => write!(f, "{longest_years} {unit}"),
            false => write!(f, "{shortest_years} to {longest_years} {unit}"),
        }
    }
}

impl Serialize for RentalTerm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where a price comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceSource {
    /// From the data file.
    Assumed {
        /// How the GPUs are paid for.
        form: PurchaseForm,
        /// How long the GPUs must be rented for that price; none if no term is agreed.
        term: Option<RentalTerm>,
        /// The GPU type from whose price this one is estimated.
        #[serde(skip_serializing_if = "Option::is_none")]
        estimated_from: Option<&'static str>,
        /// The source.
        source: &'static str,
        /// Its date: `2026-04`.
        date: &'static str,
    },
    /// From the user.
    Yours,
}

impl PriceSource {
    /// Returns how the GPUs are paid for, and for how long they must be rented: "reserved for 3 years"; none for the user's own
    /// price.
    pub fn purchase(self) -> Option<String> {
        let PriceSource::Assumed { form, term, .. } = self else { return None };
        let form = form.title().to_ascii_lowercase();
        Some(term.map_or(form.clone(), |term| format!("{form} for {term}")))
    }

    /// Returns the GPU type from whose price this one is estimated; none if it is a price that somebody asks.
    pub fn estimated_from(self) -> Option<&'static str> {
        match self {
            PriceSource::Assumed { estimated_from, .. } => estimated_from,
            PriceSource::Yours => None,
        }
    }

    /// Returns the source for people: "assumed: …, 2026-04" or "yours".
    pub fn note(self) -> String {
        match self {
            PriceSource::Assumed { term: None, source, date, .. } => format!("assumed: {source}, {date}"),
            PriceSource::Assumed { term: Some(term), source, date, .. } => {
                format!("assumed, for a term of {term}: {source}, {date}")
            }
            PriceSource::Yours => "yours".to_string(),
        }
    }
}

/// A price per GPU-hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// The price of a GPU for an hour, in US dollars if assumed, otherwise in the user's currency.
    pub per_gpu_hour: ValueRange,
    /// Where it comes from.
    pub source: PriceSource,
}

impl Price {
    /// Returns the user's own price.
    pub fn own(per_gpu_hour: ValueRange) -> Price {
        Price { per_gpu_hour, source: PriceSource::Yours }
    }

    /// Returns the assumed price of a GPU type; none if no price is known. A GPU with overrides, such as `h100:hbm_gb=96`,
    /// has the price of the GPU before the colon.
    pub fn assumed(gpu: &str, form: PurchaseForm) -> Option<Price> {
        let row = rows().iter().find(|row| row.form == form && row.gpu == base_id(gpu))?;
        let source = PriceSource::Assumed {
            form,
            term: row.term,
            estimated_from: row.estimated_from.as_deref(),
            source: &row.source,
            date: &row.date,
        };
        Some(Price { per_gpu_hour: row.per_gpu_hour, source })
    }

    /// Returns what renting a GPU for the whole term of a reservation costs, from the shortest term at its price to the longest at its
    /// price; none if no term is agreed.
    pub fn whole_term(&self) -> Option<ValueRange> {
        let PriceSource::Assumed { term: Some(term), .. } = self.source else { return None };
        let ValueRange { low, high } = self.per_gpu_hour;
        let hours = |years: u32| f64::from(years) * YEAR_H;
        Some(ValueRange::between(hours(term.shortest_years) * high, hours(term.longest_years) * low))
    }

    /// Whether the GPUs cost nothing, such as those that a user owns, so that only the energy and the storage of a run are paid for.
    pub fn is_free(&self) -> bool {
        self.per_gpu_hour.high == 0.0
    }

    /// Returns whether the user owns the GPUs, so that spare ones cost nothing.
    pub fn is_of_owned(&self) -> bool {
        self.is_free() || matches!(self.source, PriceSource::Assumed { form: PurchaseForm::Owned, .. })
    }

    /// Returns the source for people, and what is counted at a price of 0.
    pub fn note(&self) -> String {
        match self.is_free() {
            true => format!("{}: only energy and storage are counted", self.source.note()),
            false => self.source.note(),
        }
    }

    /// Returns the middle of its range, as a price without one.
    #[must_use]
    pub fn middle(self) -> Price {
        let ValueRange { low, high } = self.per_gpu_hour;
        // Prices span a factor, so the geometric mean is their middle.
        Price { per_gpu_hour: ValueRange::of((low * high).sqrt()), ..self }
    }

    /// Whether it is an assumed price that rests on a single quote, so that its range says nothing about other sellers.
    pub fn is_single_quote(&self) -> bool {
        self.source != PriceSource::Yours && self.per_gpu_hour.low == self.per_gpu_hour.high
    }

    /// Returns the agreed term if it is longer than a run of these days, so that unused days are also paid for; none without a
    /// term.
    pub fn term_beyond(&self, days: f64) -> Option<RentalTerm> {
        let PriceSource::Assumed { term: Some(term), .. } = self.source else { return None };
        (days * 24.0 < f64::from(term.shortest_years) * YEAR_H).then_some(term)
    }

    /// Whether it is the assumed price of a reservation.
    pub fn is_reservation(&self) -> bool {
        self.is_assumed_for(PurchaseForm::Reserved)
    }

    /// Whether it is the assumed price of a form of purchase.
    pub fn is_assumed_for(&self, form: PurchaseForm) -> bool {
        matches!(self.source, PriceSource::Assumed { form: own, .. } if own == form)
    }
}

const YEAR_H: f64 = 365.25 * 24.0;

/// Returns the id of the known GPU that a GPU of the user's own is based on.
pub(super) fn base_id(gpu: &str) -> &str {
    gpu.split(':').next().unwrap_or(gpu)
}

/// A row of the data file.
struct PriceRow {
    gpu: String,
    form: PurchaseForm,
    term: Option<RentalTerm>,
    per_gpu_hour: ValueRange,
    estimated_from: Option<String>,
    source: String,
    date: String,
}

impl FromRow for PriceRow {
    fn from_row(row: &Row<'_>) -> Result<PriceRow, DataError> {
        Ok(PriceRow {
            // Texts come last, because reading anything after them adds code that drops them.
            form: row.value("form")?,
            term: row
                .optional("shortest_years")?
                .zip(row.optional("longest_years")?)
                .map(|(shortest_years, longest_years)| RentalTerm { shortest_years, longest_years }),
            per_gpu_hour: ValueRange { low: row.number("low")?, high: row.number("high")? },
            estimated_from: row.optional("estimated_from")?,
            gpu: row.string("gpu")?,
            source: row.string("source")?,
            date: row.string("date")?,
        })
    }
}

fn rows() -> &'static [PriceRow] {
    static EMBEDDED: LazyLock<Vec<PriceRow>> = LazyLock::new(|| embedded!("prices.csv"));
    &EMBEDDED
}

/// The prices that a user typed: one for every GPU type, `2.95`, or one for each, `h100=2.95,b200=3.90..4.50`.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnPrices(Vec<OwnPrice>);

/// A user's price.
#[derive(Debug, Clone, PartialEq)]
struct OwnPrice {
    /// The GPU's id; none for every GPU.
    gpu: Option<String>,
    per_gpu_hour: ValueRange,
}

impl OwnPrices {
    /// Returns the price of a GPU type; none if the user gave one for other types only.
    pub fn of(&self, gpu: &str) -> Option<Price> {
        let gpu = base_id(gpu);
        let own = self.0.iter().find(|own| own.gpu.as_deref().is_none_or(|named| named == gpu))?;
        Some(Price::own(own.per_gpu_hour))
    }

    /// Whether any GPU type has a price of 0.
    pub fn has_free(&self) -> bool {
        self.0.iter().any(|own| Price::own(own.per_gpu_hour).is_free())
    }
}

impl FromStr for OwnPrices {
    type Err = Problem;

    fn from_str(text: &str) -> Result<OwnPrices, Problem> {
        let mut prices: Vec<OwnPrice> = Vec::new();
        for part in text.split(',').map(str::trim) {
            // People also write `B200 4.20`.
            let named = part.split_once('=').or_else(|| {
                let (gpu, price) = part.split_once(char::is_whitespace)?;
                Catalog::embedded().gpu(gpu).is_ok().then_some((gpu, price))
            });
            let (gpu, price) = match named {
                None => (None, part),
                Some((gpu, price)) => {
                    let found = Catalog::embedded().gpu(gpu);
                    let found = found.map_err(|problem| {
                        let message = message![Field::Price, format!(" names an unknown GPU, \"{gpu}\".")];
                        Problem { field: Field::Price, message, ..problem }
                    })?;
                    (Some(found.id.clone()), price)
                }
            };
            if prices.iter().any(|earlier| earlier.gpu.is_none() || earlier.gpu == gpu || gpu.is_none()) {
                let message = match gpu {
                    Some(gpu) if prices.iter().all(|earlier| earlier.gpu.is_some()) => {
                        words!(" sets the {gpu} twice.")
                    }
                    _ => " must be one price for every GPU, or GPU=PRICE for each, such as h100=2.95,b200=4.50."
                        .to_string(),
                };
                return Err(Problem::new(Field::Price, text, message![Field::Price, message]));
            }
            prices
                .push(OwnPrice { gpu, per_gpu_hour: own_range(price.trim().trim_start_matches('$'), text)? });
        }
        Ok(OwnPrices(prices))
    }
}

/// Reads the price or the range of prices in a part of the user's text. No range begins at 0: prices span a factor.
fn own_range(price: &str, text: &str) -> Result<ValueRange, Problem> {
    let bounds = Field::Price.bounds();
    let free = || ValueRange::parse(price).filter(|range| range.high == 0.0);
    if let Some(range) = bounds.range(price).or_else(free) {
        return Ok(range);
    }
    let ends = price.split_once("..").filter(|_| HAS_WORDS);
    let swapped = ends.map(|(low, high)| format!("{}..{}", high.trim(), low.trim()));
    if let Some(swapped) = swapped.filter(|swapped| bounds.range(swapped).is_some()) {
        let message = format!(" has its lower end last: \"{price}\".");
        return Err(Problem::new(Field::Price, text, message![Field::Price, message]).suggest([swapped]));
    }
    let refused = Field::Price.refuse(price);
    Err(refused.worded(|problem| Problem { given: text.to_string(), ..problem }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_price_is_of_a_known_gpu_and_occurs_once() {
        for (place, row) in rows().iter().enumerate() {
            assert!(Catalog::embedded().gpu(&row.gpu).is_ok(), "{}", row.gpu);
            assert!(0.0 < row.per_gpu_hour.low && row.per_gpu_hour.low <= row.per_gpu_hour.high);
            assert!(!row.source.is_empty() && row.date.starts_with("20"));
            assert!(
                !rows()[..place].iter().any(|earlier| earlier.gpu == row.gpu && earlier.form == row.form)
            );
        }
    }

    #[test]
    fn an_h100_spans_a_factor_of_nearly_five() {
        let price = |form| Price::assumed("h100", form).unwrap().per_gpu_hour;
        assert_eq!(price(PurchaseForm::Owned), ValueRange { low: 1.30, high: 1.69 });
        assert!((price(PurchaseForm::OnDemand).high / price(PurchaseForm::Owned).low - 4.7).abs() < 0.05);
        assert_eq!(
            Price::assumed("h100:hbm_gb=96", PurchaseForm::Owned),
            Price::assumed("h100", PurchaseForm::Owned)
        );
        assert_eq!(Price::assumed("b300", PurchaseForm::OnDemand), None, "no price is known");
    }

    #[test]
    fn a_reserved_price_names_its_term() {
        let purchase = |form| Price::assumed("b200", form).unwrap().source.purchase();
        assert_eq!(purchase(PurchaseForm::Reserved).as_deref(), Some("reserved for 3 years"));
        assert_eq!(purchase(PurchaseForm::Owned).as_deref(), Some("owned"));
        assert_eq!(PriceSource::Yours.purchase(), None);
        let estimated = |gpu| Price::assumed(gpu, PurchaseForm::Reserved).unwrap().source.estimated_from();
        assert_eq!([estimated("gb300"), estimated("gb200")], [Some("gb200"), None]);
        assert!(rows().iter().all(|row| row.term.is_some() == (row.form == PurchaseForm::Reserved)));
        let whole_term = |gpu, form| Price::assumed(gpu, form).unwrap().whole_term();
        let h100 = whole_term("h100", PurchaseForm::Reserved).unwrap();
        for end in [h100.low, h100.high] {
            assert!((end / (3.0 * 1.30 * 8766.0) - 1.0).abs() < 1e-9, "three years");
        }
        let terms: Vec<&RentalTerm> = rows().iter().filter_map(|row| row.term.as_ref()).collect();
        assert!(terms.iter().all(|term| *term == terms[0]), "GPU types are compared by equal terms");
        assert_eq!(whole_term("b200", PurchaseForm::Owned), None);
        let beyond = |form, days| Price::assumed("b200", form).unwrap().term_beyond(days);
        assert_eq!(beyond(PurchaseForm::Reserved, 60.0).map(|term| term.shortest_years), Some(3));
        assert_eq!((beyond(PurchaseForm::Reserved, 1200.0), beyond(PurchaseForm::Owned, 60.0)), (None, None));
    }

    #[test]
    fn one_quote_is_no_range() {
        let single = |gpu, form| Price::assumed(gpu, form).unwrap().is_single_quote();
        assert!(single("b200", PurchaseForm::OnDemand) && single("b200", PurchaseForm::Reserved));
        assert!(!single("h100", PurchaseForm::OnDemand) && !single("b200", PurchaseForm::Owned));
        assert!(!Price::own(ValueRange::of(2.0)).is_single_quote());
        assert_eq!(Price::assumed("b200", PurchaseForm::OnDemand).unwrap().per_gpu_hour, ValueRange::of(8.6));
        assert!(rows().iter().all(|row| !row.source.contains("assumed")), "every price is a quote");
    }

    #[test]
    fn own_prices_are_for_every_gpu_or_for_each() {
        let price =
            |text: &str, gpu: &str| text.parse::<OwnPrices>().unwrap().of(gpu).map(|own| own.per_gpu_hour);
        assert_eq!(price("2.95", "b200"), Some(ValueRange::of(2.95)));
        assert_eq!(price("1.99..3.50", "h100"), Some(ValueRange { low: 1.99, high: 3.5 }));
        assert_eq!(price("h100=2.95, b200=4.50", "b200"), Some(ValueRange::of(4.5)));
        assert_eq!(price("h100=2.95,b200=3.9..4.5", "h100:hbm_gb=96"), Some(ValueRange::of(2.95)));
        assert_eq!(price("h100=2.95", "b200"), None);
        assert_eq!(price("B200 4.20", "b200"), Some(ValueRange::of(4.2)));
    }

    #[test]
    fn a_wrong_price_is_named_with_what_works() {
        let problem = |text: &str| text.parse::<OwnPrices>().unwrap_err();
        assert_eq!(
            problem("cheap").to_string(),
            "--price must be 0, or the price of a GPU-hour from 0.01 to 1M, such as 2.95, 1.99..3.50 or h100=2.95,b200=4.50, \
             not \"cheap\"."
        );
        assert_eq!(problem("3.50..1.99").suggestions, ["1.99..3.50"]);
        assert_eq!(problem("h10=2.95").closest.as_deref(), Some("h100"));
        assert!(
            problem("h10=2.95")
                .to_string()
                .starts_with("--price names an unknown GPU, \"h10\". Did you mean h100?")
        );
        assert_eq!(problem("h100=2,h100=3").to_string(), "--price sets the h100 twice.");
        for text in ["", "0..2", "-1", "2,3", "h100=2,3", "2.95,h100=3", "h100=", "=2"] {
            assert_eq!(problem(text).field, Field::Price, "{text}");
        }
    }

    #[test]
    fn owned_gpus_may_cost_nothing() {
        for (text, is_free) in [("0", true), ("$0.00", true), ("h100=0,b200=4", true), ("0.01", false)] {
            let prices: OwnPrices = text.parse().unwrap();
            let price = prices.of("h100").unwrap();
            assert_eq!((price.is_free(), prices.has_free()), (is_free, is_free), "{text}");
            assert_eq!(price.middle().per_gpu_hour, price.per_gpu_hour);
        }
        assert_eq!(Price::own(ValueRange::of(0.0)).note(), "yours: only energy and storage are counted");
        assert_eq!(Price::own(ValueRange::of(2.0)).note(), "yours");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = text.parse::<OwnPrices>();
        }
    }
}
