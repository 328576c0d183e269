//! Finds lasting changes in a time line, as Hunter does (Fleming, Kołaczkowski et al., ICPE 2023): E-divisive (Matteson and
//! James, JASA 109, 2014) proposes the place, and a t test decides. The t test replaces random permutations, so that the
//! result is reproducible.

use super::TimeLinePoint;
use crate::statistics::two_sided_p;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The fewest runs of a segment.
const LEAST: usize = 3;

/// The largest p of a change. It is small because the place is chosen among many.
const MOST_P: f64 = 0.001;

/// The largest p of a proposed change. It is larger because another change nearby hides a change at first.
const WORTH_A_LOOK: f64 = 0.1;

/// The most runs that are searched, the newest ones: the time grows with the square of their number.
const MOST_POINTS: usize = 1000;

/// A place in a time line where the step time changed for good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangePoint {
    /// The index of the first run with the new step time among the points.
    pub index: usize,
    /// That run's id.
    pub point: String,
    /// When that run ran.
    pub at: String,
    /// The geometric mean of the seconds per step since the previous change.
    pub before_s: f64,
    /// The geometric mean of the seconds per step until the next change.
    pub after_s: f64,
    /// The change of the step time, in percent.
    pub percent: f64,
    /// The p of Student's t test of the two stretches.
    pub p: f64,
}

/// Returns the changes of at least `margin_percent`, oldest first. Points that are not comparable are ignored.
pub(super) fn find(points: &[TimeLinePoint], margin_percent: f64) -> Vec<ChangePoint> {
    let measured = points.iter().enumerate().filter_map(|(index, point)| Some((index, point.measured_s()?)));
    let (places, times): (Vec<usize>, Vec<f64>) = measured.unzip();
    let skipped = times.len().saturating_sub(MOST_POINTS);
    let (places, times) =
        (places.get(skipped..).unwrap_or_default(), times.get(skipped..).unwrap_or_default());

    let mut cuts = Vec::new();
    split(times, 0..times.len(), &mut cuts);
    cuts.sort_unstable();
    prune(times, &mut cuts, margin_percent);
    let changes = (0..cuts.len()).filter_map(|place| {
        let (before, after) = beside(times, &cuts, place);
        let (index, tested) = (*places.get(cuts[place])?, StretchTest::of(before, after)?);
        let point = points.get(index)?;
        Some(ChangePoint {
            index,
            point: point.id.clone(),
            at: point.at.clone(),
            before_s: tested.before_s,
            after_s: tested.after_s,
            percent: tested.percent,
            p: tested.p,
        })
    });
    changes.collect()
}

/// Cuts a stretch at its best proposal, and then the two parts.
fn split(times: &[f64], stretch: Range<usize>, cuts: &mut Vec<usize>) {
    let part = times.get(stretch.clone()).unwrap_or_default();
    let Some(cut) = most_divided(part) else { return };
    let (before, after) = part.split_at(cut);
    if StretchTest::of(before, after).is_some_and(|tested| tested.p < WORTH_A_LOOK) {
        let cut = stretch.start + cut;
        cuts.push(cut);
        split(times, stretch.start..cut, cuts);
        split(times, cut..stretch.end, cuts);
    }
}

/// Removes the cuts that are not significant between their neighbours, the least significant first.
fn prune(times: &[f64], cuts: &mut Vec<usize>, margin_percent: f64) {
    loop {
        let weak = (0..cuts.len()).filter_map(|place| {
            let (before, after) = beside(times, cuts, place);
            let tested = StretchTest::of(before, after)?;
            (!tested.counts(MOST_P, margin_percent)).then_some((place, tested.p))
        });
        let Some((weakest, _)) = weak.max_by(|one, other| one.1.total_cmp(&other.1)) else { return };
        cuts.remove(weakest);
    }
}

/// Returns the stretches on both sides of a cut.
fn beside<'a>(times: &'a [f64], cuts: &[usize], place: usize) -> (&'a [f64], &'a [f64]) {
    let start = place.checked_sub(1).and_then(|before| cuts.get(before)).copied().unwrap_or(0);
    let end = cuts.get(place + 1).copied().unwrap_or(times.len());
    times.get(start..end).unwrap_or_default().split_at(cuts[place] - start)
}

/// Returns the place with the largest E-divisive statistic, which compares distances across a cut with those within its
/// sides. Returns the first of equal places, or none if there are too few times for two sides.
fn most_divided(times: &[f64]) -> Option<usize> {
    let n = times.len();
    if n < 2 * LEAST {
        return None;
    }
    let logarithms: Vec<f64> = times.iter().map(|time| libm::log(*time)).collect();
    let distances = |one: f64, others: &[f64]| others.iter().map(|other| (one - other).abs()).sum::<f64>();
    // Sums of distances within the left side, within the right side, and across.
    let within =
        |side: &[f64]| (0..side.len()).map(|place| distances(side[place], &side[place + 1..])).sum::<f64>();
    let (mut left, mut right, mut across) = (0.0, within(&logarithms), 0.0);
    let mut best: Option<(usize, f64)> = None;
    for cut in 1..=n - LEAST {
        let moved = logarithms[cut - 1];
        let (to_left, to_right) =
            (distances(moved, &logarithms[..cut - 1]), distances(moved, &logarithms[cut..]));
        left += to_left;
        right -= to_right;
        across += to_right - to_left;
        if cut < LEAST {
            continue;
        }
        let (before, after) = (cut as f64, (n - cut) as f64);
        let energy = 2.0 * across / (before * after)
            - 2.0 * left / (before * (before - 1.0))
            - 2.0 * right / (after * (after - 1.0));
        let statistic = before * after / (before + after) * energy;
        if best.is_none_or(|(_, most)| statistic > most) {
            best = Some((cut, statistic));
        }
    }
    best.map(|(cut, _)| cut)
}

/// The t test of two stretches.
struct StretchTest {
    before_s: f64,
    after_s: f64,
    percent: f64,
    p: f64,
}

impl StretchTest {
    /// Returns Student's t test of the logarithms, as Hunter does. It assumes the same noise on both sides, so that three
    /// runs that happen to be equal prove nothing. None if a side is empty.
    fn of(before: &[f64], after: &[f64]) -> Option<Self> {
        let (one, other) = (Stretch::of(before)?, Stretch::of(after)?);
        let (difference, freedom) = (other.mean - one.mean, one.n + other.n - 2.0);
        let variance = (one.squares + other.squares) / freedom.max(1.0);
        let error = (variance * (1.0 / one.n + 1.0 / other.n)).sqrt();
        let p = match error > 0.0 {
            true => two_sided_p(difference / error, freedom),
            false if difference == 0.0 => 1.0,
            false => 0.0,
        };
        Some(Self {
            before_s: libm::exp(one.mean),
            after_s: libm::exp(other.mean),
            percent: 100.0 * libm::expm1(difference),
            p,
        })
    }

    fn counts(&self, most_p: f64, margin_percent: f64) -> bool {
        self.p < most_p && self.percent.abs() >= margin_percent
    }
}

/// The mean and the spread of the logarithms of a stretch.
struct Stretch {
    n: f64,
    mean: f64,
    /// The sum of the squared distances from the mean.
    squares: f64,
}

impl Stretch {
    fn of(times: &[f64]) -> Option<Self> {
        let logarithms: Vec<f64> = times.iter().map(|time| libm::log(*time)).collect();
        let (n, first) = (times.len() as f64, *logarithms.first()?);
        // Relative to the first value, so that equal times have a spread of exactly 0.
        let mean = first + logarithms.iter().map(|value| value - first).sum::<f64>() / n;
        let squares = logarithms.iter().map(|value| (value - mean) * (value - mean)).sum();
        Some(Self { n, mean, squares })
    }
}
