//! The interval of a prediction, from the errors of similar predictions.

mod class;
mod distance;
mod ends;
mod layouts;
mod table;

pub use class::IntervalClass;
pub use distance::{Distance, FAR};
pub(crate) use layouts::LayoutIntervals;
#[cfg(feature = "calibrate")]
pub(crate) use layouts::distant_share;
pub use table::IntervalTable;
#[cfg(feature = "calibrate")]
pub(crate) use table::OF_80_PERCENT;

use crate::range::ValueRange;
use serde::{Deserialize, Serialize};

/// A predicted value with its 80 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Interval {
    /// Lower end: one measurement in ten is expected below.
    pub low: f64,
    /// The prediction.
    pub mid: f64,
    /// Upper end: one measurement in ten is expected above.
    pub high: f64,
}

impl Interval {
    /// Returns the interval with all three values multiplied by `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Interval {
        Interval { low: self.low * factor, mid: self.mid * factor, high: self.high * factor }
    }

    /// Returns the interval, widened to contain measured values; none of them changes nothing.
    #[must_use]
    pub(crate) fn containing(self, measured: Option<ValueRange>) -> Interval {
        match measured {
            Some(ValueRange { low, high }) => {
                Interval { low: self.low.min(low), high: self.high.max(high), ..self }
            }
            None => self,
        }
    }
}
