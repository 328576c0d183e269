//! Amounts as the Plan page writes them: money, days, energy and large numbers.

use super::question::value_title;
use crate::message::search::{AskedGpu, Spread};
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
pub(super) use trainplan_shared::question::limit_text;
use trainplan_shared::question::{chance_text, in_time_of_ten};
use trainplan_shared::units::{
    duration, duration_range, group_digits, group_three_digits, readable, readable_range, significant,
};

/// Returns the time of a run and its range: `60 days` and `54–66`, `28 minutes` and `23–33`.
pub(crate) fn time_texts(days: Spread) -> (String, String) {
    (duration(days.mid), duration_range(days.mid, (days.low, days.high)))
}

/// Returns the time of a run with its range: `60 days (54–66)`.
pub(crate) fn time_text(days: Spread) -> String {
    let (time, range) = time_texts(days);
    format!("{time} ({range})")
}

/// Returns how likely a run ends within a limit, in words: `about 6 times in 10`.
pub(super) fn chance_within(Spread { low, mid, high }: Spread, limit: f64) -> String {
    chance_text(in_time_of_ten(Interval { low, mid, high }, limit))
}

/// Returns an amount with the sign of its currency and three digits: `$4.12M`.
pub(crate) fn money(amount: f64, currency: &str) -> String {
    format!("{}{}", currency_sign(currency), rounded_count(amount))
}

/// Returns a calculated cost as the cards show it, always with three digits: `$1.70M`. [`money`] is for amounts that a person typed.
pub(super) fn cost_text(amount: f64, currency: &str) -> String {
    format!("{}{}", currency_sign(currency), count_text(amount))
}

/// Returns a calculated large number, always with three digits: `9.70M`. [`rounded_count`] is for numbers that a person typed.
pub(crate) fn count_text(value: f64) -> String {
    let (step, suffix) = suffix_of(value);
    format!("{}{suffix}", readable(value / step))
}

/// Returns a cost and its range: `$4.10M` and `$3.60–4.90M`.
pub(crate) fn cost_texts(cost: Spread, currency: &str) -> (String, String) {
    let sign = currency_sign(currency);
    let (cost, range) = count_texts(cost);
    (format!("{sign}{cost}"), format!("{sign}{range}"))
}

/// Returns a calculated large number and its range with three digits each, and one suffix if both ends have it: `4.10M` and `3.60–4.90M`,
/// `980k` and `766k–1.14M`.
pub(crate) fn count_texts(count: Spread) -> (String, String) {
    let (step, suffix) = suffix_of(count.mid);
    let low = match suffix_of(count.high).1 == suffix {
        true => readable(count.low / step),
        false => count_text(count.low),
    };
    (count_text(count.mid), format!("{low}–{}", count_text(count.high)))
}

/// Returns what `gpus` cost for a whole term: `$46.4M`, or from least to most.
pub(super) fn cost_range((least, most): (f64, f64), gpus: u32, currency: &str) -> String {
    let [low, high] = [least, most].map(|cost| cost_text(cost * f64::from(gpus), currency));
    if low == high { low } else { format!("{low}–{high}") }
}

/// Whether the reservation of the assumed price lasts longer than a run of some days, which pays for a share of it.
pub(super) fn outlasts(gpu: &AskedGpu, days: f64) -> bool {
    let term = gpu.whole_term.zip(gpu.price);
    term.is_some_and(|((_, cost), (per_hour, _))| cost > per_hour * 24.0 * days)
}

/// Returns the price of a GPU-hour and how it is paid; none if no price is known.
pub(super) fn price_text(gpu: &AskedGpu, currency: &str) -> Option<String> {
    let (low, high) = gpu.price?;
    let range = if low == high { readable(low) } else { readable_range((low, high), readable) };
    let purchase = gpu.purchase.as_ref().map_or(String::new(), |purchase| format!(", {purchase}"));
    let from = gpu
        .price_from
        .as_ref()
        .map_or(String::new(), |from| format!(", estimated from the {}", value_title(Field::Gpu, from)));
    let quote = if gpu.is_single_quote { ", one quote" } else { "" };
    let free = if high == 0.0 { "; only energy and storage are counted" } else { "" };
    Some(format!("{}{range} per GPU-hour{purchase}{from}{quote}{free}", currency_sign(currency)))
}

/// Returns a line of values that breaks only between them.
pub(super) fn unbroken(line: &str) -> String {
    let values = line.split(" · ").map(|value| value.replace(' ', "\u{a0}"));
    values.collect::<Vec<_>>().join("\u{a0}· ")
}

fn currency_sign(currency: &str) -> String {
    match currency {
        "" | "USD" => "$".to_string(),
        "EUR" => "€".to_string(),
        other => format!("{other} "),
    }
}

/// Returns an energy in MWh and its range, in one unit and with three significant digits: `2.24 GWh` and `1.76–2.31`.
pub(crate) fn energy_range(mwh: Spread) -> (String, String) {
    let (unit, factor) = if mwh.mid >= 10_000.0 { ("GWh", 1e-3) } else { ("MWh", 1.0) };
    let text = |value: f64| group_three_digits(value * factor);
    (format!("{} {unit}", text(mwh.mid)), format!("{}–{}", text(mwh.low), text(mwh.high)))
}

/// Returns a large number with three significant digits and a suffix: `4.12M`, `980k`.
pub(super) fn rounded_count(value: f64) -> String {
    match suffix_of(value) {
        (_, "") => group_digits(value),
        (step, suffix) => format!("{}{suffix}", significant((value / step).max(1.0), 3)),
    }
}

/// Returns the unit of a large number with its suffix; 1 without a suffix.
fn suffix_of(value: f64) -> (f64, &'static str) {
    let steps = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")];
    // 999,600 is 1M with three digits.
    let step = steps.into_iter().find(|(step, _)| value >= step * 0.9995);
    step.filter(|_| value >= 9995.0).unwrap_or((1.0, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_three_digits_and_one_unit() {
        let spread = |low: f64, mid: f64, high: f64| Spread { low, mid, high };
        let energy = energy_range(spread(1_757_172.0, 2_000_123.0, 2_237_273.0));
        assert_eq!(energy, ("2,000 GWh".to_string(), "1,760–2,240".to_string()));
        assert_eq!(energy_range(spread(950.4, 1021.7, 1100.0)).0, "1,020 MWh");
        let cost = cost_texts(spread(3_600_000.0, 4_123_456.0, 4_900_000.0), "USD");
        assert_eq!(cost, ("$4.12M".to_string(), "$3.60–4.90M".to_string()));
        assert_eq!(cost_texts(spread(9e5, 1e6, 1.1e6), "EUR").1, "€0.900–1.10M");
        assert_eq!(cost_texts(spread(766_000.0, 980_000.0, 1_143_000.0), "USD").1, "$766k–1.14M");
        assert_eq!(
            count_texts(spread(2.05e6, 2.28e6, 2.53e6)),
            ("2.28M".to_string(), "2.05–2.53M".to_string())
        );
    }

    #[test]
    fn a_reservation_of_years_outlasts_a_run_of_days() {
        let price = Some((1.3, 1.3));
        let reserved = AskedGpu { price, whole_term: Some((34_187.4, 34_187.4)), ..AskedGpu::default() };
        assert_eq!([60.0, 1200.0].map(|days| outlasts(&reserved, days)), [true, false]);
        assert!(!outlasts(&AskedGpu { price, ..AskedGpu::default() }, 60.0));
    }

    #[test]
    fn an_assumed_price_says_that_it_rests_on_a_single_quote() {
        let text = |is_single_quote: bool| {
            let purchase = Some("reserved for 3 years".to_string());
            let gpu = AskedGpu { price: Some((1.3, 1.3)), purchase, is_single_quote, ..AskedGpu::default() };
            price_text(&gpu, "USD").expect("a price")
        };
        assert_eq!(text(true), "$1.30 per GPU-hour, reserved for 3 years, one quote");
        // Several sellers may ask the same.
        assert_eq!(text(false), "$1.30 per GPU-hour, reserved for 3 years");
    }

    #[test]
    fn a_price_of_0_says_what_is_counted() {
        let gpu = AskedGpu { price: Some((0.0, 0.0)), ..AskedGpu::default() };
        assert_eq!(
            price_text(&gpu, "USD").expect("a price"),
            "$0 per GPU-hour; only energy and storage are counted"
        );
    }

    #[test]
    fn amounts_have_three_digits_and_a_suffix() {
        assert_eq!(money(4_123_456.0, "USD"), "$4.12M");
        assert_eq!(money(980_400.0, ""), "$980k");
        assert_eq!(money(950.0, "EUR"), "€950");
        assert_eq!(money(1.5e9, "CHF"), "CHF 1.5B");
        assert_eq!(cost_text(1_699_000.0, "USD"), "$1.70M");
        assert_eq!(cost_text(950.0, "EUR"), "€950");
        assert_eq!([8.9e12, 9_699_328.0, 950.0].map(count_text), ["8.90T", "9.70M", "950"]);
    }
}
