//! The intervals of predictions, from the errors on held-out rows.

use super::held_out::HeldOutRow;
use super::is_routed;
use super::split::{FrozenSplit, Grouping};
use crate::estimate::{Distance, EvidenceKind, IntervalClass, distant_share};
use crate::statistics::quantile;
use std::collections::BTreeSet;

/// Share of measurements that an interval should cover.
const COVERAGE: f64 = 0.8;
/// The step of narrowing the tails, which starts at a tenth.
const TAIL_STEP: f64 = 0.0025;
/// Steps that are tried.
const TAIL_STEPS: u32 = 37;

/// The interval of one class of predictions, from held-out rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedInterval {
    /// The class of predictions.
    pub class: IntervalClass,
    /// Number of held-out rows.
    pub n: usize,
    /// Lower end of measured over predicted.
    pub low: f64,
    /// Upper end of measured over predicted.
    pub high: f64,
    /// How many times the doubt about its correction ([`Evidence::doubt`](crate::estimate::Evidence::doubt)) widens the interval.
    pub per_doubt: f64,
    /// How the interval grows with the distance to the nearest run: the exponent of
    /// [`distant_share`](crate::estimate::distant_share); 0 of classes that are not interpolated.
    pub growth: f64,
    /// Share of rows within an interval computed from the rows of all other folds.
    pub coverage: f64,
}

/// The rows of each distance, in the order of [`Distance::ALL`], with the names of their folds.
pub type DistantRows<'a> = [Vec<(String, Vec<HeldOutRow<'a>>)>; Distance::ALL.len()];

/// Returns the interval of each class: of interpolated predictions from held-out mappings, of extrapolated
/// ones from held-out models, and of distant ones from the rows of their distance. Tiny models on one node are left out.
pub fn intervals(judged: &[Vec<HeldOutRow<'_>>; 3], distant: &DistantRows<'_>) -> Vec<FittedInterval> {
    let [by_model, _, by_mapping] = judged;
    let split = FrozenSplit::embedded();
    let per_doubt = per_doubt(by_mapping);
    let class_interval = |class: IntervalClass, extrapolated: Option<(&FittedInterval, f64)>| {
        let (rows, by) = match class.is_interpolated() {
            true => (by_mapping, Grouping::Mapping),
            false => (by_model, Grouping::Model),
        };
        let ratios: Vec<(String, f64)> = rows
            .iter()
            .filter(|one| class_of(one) == Some(class))
            .map(|one| (split.fold(one.row, by), unexplained(one, per_doubt, extrapolated)))
            .collect();
        // Errors within a fold are correlated, so the 10 % and 90 % quantiles of the other folds cover
        // less than 80 % of it. The tails are narrowed until they cover enough.
        let tails = (0..TAIL_STEPS).map(|step| (0.1 - f64::from(step) * TAIL_STEP, 1.0));
        let growth = extrapolated.map_or(0.0, |(_, growth)| growth);
        fitted(class, &ratios, tails).map(|interval| FittedInterval { per_doubt, growth, ..interval })
    };
    let pairs = [
        (IntervalClass::DenseInterpolated, IntervalClass::DenseExtrapolated),
        (IntervalClass::RoutedInterpolated, IntervalClass::RoutedExtrapolated),
        (IntervalClass::PlainInterpolated, IntervalClass::PlainExtrapolated),
    ];
    let wide: Vec<(IntervalClass, Option<FittedInterval>)> = pairs
        .into_iter()
        .map(|(interpolated, extrapolated)| (interpolated, class_interval(extrapolated, None)))
        .collect();
    let growth = growth(by_mapping, per_doubt, &wide);
    let near = wide.iter().flat_map(|(interpolated, extrapolated)| {
        [class_interval(*interpolated, extrapolated.as_ref().map(|wide| (wide, growth))), *extrapolated]
    });
    let mut near: Vec<FittedInterval> = near.flatten().collect();
    not_narrower_than_dense(&mut near);
    let far = Distance::ALL.into_iter().zip(distant).flat_map(|(distance, folds)| {
        [false, true].into_iter().filter_map(move |routed| {
            let ratios: Vec<(String, f64)> = folds
                .iter()
                .flat_map(|(fold, rows)| rows.iter().map(move |one| (fold, one)))
                .filter(|(_, one)| is_routed(one.row) == routed)
                .map(|(fold, one)| (fold.clone(), one.step_time_s / one.corrected_s))
                .collect();
            fitted(distance.class(routed), &ratios, stretches())
        })
    });
    near.into_iter().chain(far).chain(rare_interval(by_model, &split)).collect()
}

/// Returns the widths to try where few folds show errors and the next may differ from all of them. So the quantiles are stretched
/// instead of replaced by the extremes.
fn stretches() -> impl DoubleEndedIterator<Item = (f64, f64)> + Clone {
    (0..STRETCHES).map(|step| (0.1, 1.0 + f64::from(step) * STRETCH_STEP))
}

/// Returns the interval of mixtures of experts with parallelism that is rarely measured, from the rows held out by model. They are
/// so few that the side of the predictions on which most lie is chance, so each counts on both sides.
fn rare_interval(by_model: &[HeldOutRow<'_>], split: &FrozenSplit) -> Option<FittedInterval> {
    let rows = by_model.iter().filter(|one| one.is_rare && class_of(one).is_some());
    let ratios: Vec<(String, f64)> = rows
        .flat_map(|one| {
            let fold = split.fold(one.row, Grouping::Model);
            let ratio = one.step_time_s / one.corrected_s;
            [(fold.clone(), ratio), (fold, 1.0 / ratio)]
        })
        .collect();
    let interval = fitted(IntervalClass::RoutedRare, &ratios, stretches())?;
    Some(FittedInterval { n: ratios.len() / 2, ..interval })
}

/// Widens the intervals of mixtures of experts to those of dense models: they are harder to predict. That the few interpolated ones
/// scatter less is chance.
fn not_narrower_than_dense(near: &mut [FittedInterval]) {
    let pairs = [
        (IntervalClass::RoutedInterpolated, IntervalClass::DenseInterpolated),
        (IntervalClass::RoutedExtrapolated, IntervalClass::DenseExtrapolated),
    ];
    for (routed, dense) in pairs {
        let ends = near.iter().find(|interval| interval.class == dense).map(|dense| (dense.low, dense.high));
        let routed = near.iter_mut().find(|interval| interval.class == routed);
        if let Some((routed, (low, high))) = routed.zip(ends) {
            (routed.low, routed.high) = (routed.low.min(low), routed.high.max(high));
        }
    }
}

/// Returns the class of a held-out row, if nothing but its model and layout is unmeasured; none of tiny models.
fn class_of(one: &HeldOutRow<'_>) -> Option<IntervalClass> {
    let scenario = one.row.scenario.as_ref().ok().filter(|_| !one.row.is_tiny())?;
    Some(IntervalClass::of(&scenario.inputs(), one.kind != EvidenceKind::Modelled))
}

/// Returns the part of the ratio of measured to predicted step time that the doubt about the correction does not
/// explain.
fn without_doubt(one: &HeldOutRow<'_>, per_doubt: f64) -> f64 {
    let error = libm::log(one.step_time_s / one.corrected_s);
    let explained = per_doubt * one.doubt;
    libm::exp(libm::copysign(((error * error - explained * explained).max(0.0)).sqrt(), error))
}

/// Returns the part of the ratio of measured to predicted step time that is explained neither by the doubt about the correction
/// nor by an interpolated prediction's distance to its nearest run, using the interval of extrapolated predictions.
fn unexplained(one: &HeldOutRow<'_>, per_doubt: f64, extrapolated: Option<(&FittedInterval, f64)>) -> f64 {
    let ratio = without_doubt(one, per_doubt);
    let Some((FittedInterval { low, high, .. }, growth)) = extrapolated else { return ratio };
    let error = libm::log(ratio);
    let end = libm::log(if error < 0.0 { 1.0 / low } else { *high });
    // The rest of the interval is that of measured layouts, and none of it is left for the most distant ones.
    let share = distant_share(one.unlike, growth).min(MOST_DISTANT);
    let rest = (error * error - end * end * share).max(0.0) / (1.0 - share);
    libm::exp(libm::copysign(rest.sqrt(), error))
}

/// A share below 1, so that the rest of an error can be divided by what is left.
const MOST_DISTANT: f64 = 0.95;

/// The step between the tried exponents of that growth, and their number.
const GROWTH_STEP: f64 = 0.25;
const GROWTH_STEPS: u32 = 24;

/// Returns the exponent with which intervals grow with the distance to the nearest run (see `distant_share`): the largest at which
/// they cover the third of the held-out predictions with the least similar runs as often as all predictions. `wide` has the
/// extrapolated interval beside each interpolated class.
fn growth(
    by_mapping: &[HeldOutRow<'_>],
    per_doubt: f64,
    wide: &[(IntervalClass, Option<FittedInterval>)],
) -> f64 {
    let mut rows: Vec<(IntervalClass, &HeldOutRow<'_>)> = by_mapping
        .iter()
        .filter_map(|one| Some((class_of(one).filter(|class| class.is_interpolated())?, one)))
        .collect();
    rows.sort_by(|(_, one), (_, other)| other.unlike.total_cmp(&one.unlike));
    let unlike = &rows[..rows.len() / 3];
    let covers = |growth: f64| {
        let inside = wide.iter().map(|(class, wide)| {
            let ratio =
                |one: &HeldOutRow<'_>| unexplained(one, per_doubt, wide.as_ref().map(|wide| (wide, growth)));
            let of_class = |rows: &[(IntervalClass, &HeldOutRow<'_>)]| -> Vec<f64> {
                rows.iter().filter(|(own, _)| own == class).map(|(_, one)| ratio(one)).collect()
            };
            let mut all = of_class(&rows);
            all.sort_by(f64::total_cmp);
            let range = quantile(&all, 0.1)..=quantile(&all, 0.9);
            of_class(unlike).into_iter().filter(|ratio| range.contains(ratio)).count()
        });
        inside.sum::<usize>() as f64 >= COVERAGE * unlike.len() as f64
    };
    let mut tried = (1..=GROWTH_STEPS).rev().map(|step| f64::from(step) * GROWTH_STEP);
    tried.clone().find(|growth| covers(*growth)).or(tried.next_back()).unwrap_or(1.0)
}

/// The step between the tried widenings by the doubt about a correction, and their number.
const DOUBT_STEP: f64 = 0.05;
const DOUBT_STEPS: u32 = 80;

/// Returns how much intervals widen with the doubt about a correction, so that they cover the third of the held-out
/// predictions with the most doubtful corrections as often as all predictions.
fn per_doubt(by_mapping: &[HeldOutRow<'_>]) -> f64 {
    let mut rows: Vec<(IntervalClass, &HeldOutRow<'_>)> = by_mapping
        .iter()
        .filter_map(|one| Some((class_of(one).filter(|class| class.is_interpolated())?, one)))
        .collect();
    rows.sort_by(|(_, one), (_, other)| other.doubt.total_cmp(&one.doubt));
    let doubtful = &rows[..rows.len() / 3];
    let covers = |per_doubt: f64| {
        let ends: Vec<(IntervalClass, f64, f64)> = IntervalClass::ALL
            .into_iter()
            .filter(|class| class.is_interpolated())
            .map(|class| {
                let of = rows.iter().filter(|(own, _)| *own == class);
                let mut ratios: Vec<f64> = of.map(|(_, one)| without_doubt(one, per_doubt)).collect();
                ratios.sort_by(f64::total_cmp);
                (class, quantile(&ratios, 0.1), quantile(&ratios, 0.9))
            })
            .collect();
        let inside = doubtful.iter().filter(|(class, one)| {
            let ratio = without_doubt(one, per_doubt);
            ends.iter().any(|(own, low, high)| own == class && (*low..=*high).contains(&ratio))
        });
        inside.count() as f64 >= COVERAGE * doubtful.len() as f64
    };
    let mut tried = (0..DOUBT_STEPS).map(|step| f64::from(step) * DOUBT_STEP);
    tried.clone().find(|per_doubt| covers(*per_doubt)).or(tried.next_back()).unwrap_or_default()
}

/// The step of stretching the logarithms of quantiles.
const STRETCH_STEP: f64 = 0.01;
/// Steps that are tried.
const STRETCHES: u32 = 401;

/// Returns the interval of a class from the ratios of measured to predicted step time, each with its fold: the first of
/// `widths`, a tail and a stretch, that covers enough; none without rows.
fn fitted(
    class: IntervalClass,
    ratios: &[(String, f64)],
    mut widths: impl DoubleEndedIterator<Item = (f64, f64)> + Clone,
) -> Option<FittedInterval> {
    let folds: BTreeSet<&str> = ratios.iter().map(|(fold, _)| &**fold).collect();
    let sorted = |without: Option<&str>| {
        let others = ratios.iter().filter(|(fold, _)| Some(&**fold) != without);
        let mut values: Vec<f64> = others.map(|(_, ratio)| *ratio).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    // Quantiles of sorted ratios, whose logarithms are stretched away from that of the median.
    let ends = |values: &[f64], (tail, stretch): (f64, f64)| {
        let (median, low) = (quantile(values, 0.5), quantile(values, tail));
        let high = quantile(values, 1.0 - tail);
        let more = |end: f64| libm::pow(end / median, stretch - 1.0);
        (low * more(low), high * more(high))
    };
    let others: Vec<(&str, Vec<f64>)> = folds.into_iter().map(|fold| (fold, sorted(Some(fold)))).collect();
    let covered = |width: (f64, f64)| {
        let inside = others.iter().map(|(fold, others)| {
            let (low, high) = ends(others, width);
            let own = ratios.iter().filter(|(own, _)| own == fold);
            own.filter(|(_, ratio)| (low..=high).contains(ratio)).count()
        });
        inside.sum::<usize>() as f64 / ratios.len() as f64
    };
    let width = widths.clone().find(|width| covered(*width) >= COVERAGE).or(widths.next_back())?;
    let (low, high) = ends(&sorted(None), width);
    let n = ratios.len();
    (n > 0).then(|| FittedInterval {
        class,
        n,
        low,
        high,
        per_doubt: 0.0,
        growth: 0.0,
        coverage: covered(width),
    })
}
