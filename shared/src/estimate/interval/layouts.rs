//! The intervals of all layouts of a model.

use super::Interval;
use super::ends::Ends;
use crate::estimate::EvidenceKind;
use crate::estimate::evidence::SIMILAR;

/// The intervals of all layouts of a model on some GPUs with some software, around a prediction of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LayoutIntervals {
    pub(super) interpolated: Ends,
    pub(super) extrapolated: Ends,
    /// Of layouts with parallelism that is rarely measured.
    pub(super) rare: Ends,
    /// See `ClassInterval::per_doubt` and `ClassInterval::growth`.
    pub(super) per_doubt: f64,
    pub(super) growth: f64,
}

impl LayoutIntervals {
    /// Returns the interval around `mid`, predicted with evidence of that kind, with [`Evidence::unlike`](crate::estimate::Evidence::unlike),
    /// [`Evidence::doubt`](crate::estimate::Evidence::doubt) and [`Evidence::is_rare`](crate::estimate::Evidence::is_rare).
    pub(crate) fn around(
        &self,
        mid: f64,
        evidence: EvidenceKind,
        unlike: f64,
        doubt: f64,
        is_rare: bool,
    ) -> Interval {
        let ends = match evidence {
            _ if is_rare => self.rare,
            EvidenceKind::Modelled => self.extrapolated,
            EvidenceKind::Published | EvidenceKind::Interpolated => {
                self.interpolated.towards(self.extrapolated, distant_share(unlike, self.growth))
            }
        };
        let Ends { low, high } = ends.with_doubt(self.per_doubt * doubt);
        Interval { low: mid * low, mid, high: mid * high }
    }

    /// Returns the least ratio of the slow end to the prediction, without any doubt about the correction: of layouts that may be
    /// similar to a measured run, or of all others with or without parallelism that is rarely measured. Measured runs of a layout only
    /// move its slow end up ([`Interval::containing`]).
    pub(crate) fn slow_end(&self, may_be_similar: bool, is_rare: bool) -> f64 {
        match (may_be_similar, is_rare) {
            (true, _) => self.interpolated.high.min(self.extrapolated.high),
            (false, false) => self.extrapolated.high,
            (false, true) => self.rare.high,
        }
    }
}

/// Returns how far the interval of an interpolated prediction is on its way to that of an extrapolated one, from 0 for a measured
/// layout to 1 where the nearest run is hardly similar, by [`Evidence::unlike`](crate::estimate::Evidence::unlike): the larger `growth`, the
/// later. So no interval changes abruptly from a layout to the next.
pub(crate) fn distant_share(unlike: f64, growth: f64) -> f64 {
    libm::pow((unlike / (1.0 - SIMILAR * SIMILAR)).min(1.0), growth)
}
