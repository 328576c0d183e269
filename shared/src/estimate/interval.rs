//! The interval of a prediction, from the errors of similar predictions.

use super::{EvidenceKind, Inputs};
use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::stack::Software;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

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
}

choices! {
    /// The classes of predictions, each with its own interval. The titles are the names in data files and reports.
    ///
    /// Interpolated: the same model was measured on the same GPU. Extrapolated: it was not.
    IntervalClass {
        /// Dense model, interpolated.
        DenseInterpolated "dense_interpolated" "dense, interpolated",
        /// Dense model, extrapolated.
        DenseExtrapolated "dense_extrapolated" "dense, extrapolated",
        /// Mixture of experts, interpolated.
        RoutedInterpolated "routed_interpolated" "routed, interpolated",
        /// Mixture of experts, extrapolated.
        RoutedExtrapolated "routed_extrapolated" "routed, extrapolated",
        /// Software without fused kernels, interpolated.
        PlainInterpolated "plain_interpolated" "plain software, interpolated",
        /// Software without fused kernels, extrapolated.
        PlainExtrapolated "plain_extrapolated" "plain software, extrapolated",
    }
}

impl IntervalClass {
    /// Returns the class of the prediction from `inputs`.
    pub fn of(inputs: &Inputs<'_>, is_interpolated: bool) -> IntervalClass {
        IntervalClass::of_model(inputs.architecture.moe.is_some(), &inputs.options.software, is_interpolated)
    }

    fn of_model(is_routed: bool, software: &Software, is_interpolated: bool) -> IntervalClass {
        // A user's own software is as little known as software without fused kernels, whose interval is the widest of dense
        // models. That of routed models is wider.
        let is_own = software.known().is_none() && !is_routed;
        let is_plain = software.properties().eager || is_own;
        match (is_plain, is_routed, is_interpolated) {
            (true, _, true) => IntervalClass::PlainInterpolated,
            (true, _, false) => IntervalClass::PlainExtrapolated,
            (false, false, true) => IntervalClass::DenseInterpolated,
            (false, false, false) => IntervalClass::DenseExtrapolated,
            (false, true, true) => IntervalClass::RoutedInterpolated,
            (false, true, false) => IntervalClass::RoutedExtrapolated,
        }
    }

    /// Whether its models were measured on the same GPU.
    pub const fn is_interpolated(self) -> bool {
        matches!(
            self,
            IntervalClass::DenseInterpolated
                | IntervalClass::RoutedInterpolated
                | IntervalClass::PlainInterpolated
        )
    }
}

/// The interval of each class of predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalTable(Vec<ClassInterval>);

/// The 80 % interval of measured over predicted step times in one class.
#[derive(Debug, Clone, PartialEq)]
struct ClassInterval {
    class: IntervalClass,
    low: f64,
    high: f64,
}

impl FromRow for ClassInterval {
    fn from_row(row: &Row<'_>) -> Result<ClassInterval, DataError> {
        let title = row.text("class")?;
        let class = IntervalClass::ALL.into_iter().find(|class| class.title() == title);
        let class = class.ok_or_else(|| row.error(format!("the class \"{title}\" is unknown")))?;
        Ok(ClassInterval { class, low: row.number("low")?, high: row.number("high")? })
    }
}

impl IntervalTable {
    /// Returns the embedded table.
    pub fn embedded() -> &'static IntervalTable {
        static EMBEDDED: LazyLock<IntervalTable> =
            LazyLock::new(|| IntervalTable(embedded!("intervals.csv")));
        &EMBEDDED
    }

    /// Returns the interval around `mid`, predicted from `inputs` with evidence of that kind.
    pub fn around(&self, mid: f64, inputs: &Inputs<'_>, evidence: EvidenceKind) -> Interval {
        let (low, high) = self.ends(IntervalClass::of(inputs, evidence != EvidenceKind::Modelled));
        Interval { low: mid * low, mid, high: mid * high }
    }

    /// Returns the ratio of the slow end to the prediction for layouts that are similar to no measured run, and the least for
    /// those that may be.
    pub(crate) fn slow_ends(&self, is_routed: bool, software: &Software) -> (f64, f64) {
        let slow_end =
            |is_interpolated| self.ends(IntervalClass::of_model(is_routed, software, is_interpolated)).1;
        let distant = slow_end(false);
        (distant, slow_end(true).min(distant))
    }

    fn ends(&self, class: IntervalClass) -> (f64, f64) {
        // Every class has a row; if one were missing, the last row is the widest.
        let found = self.0.iter().find(|row| row.class == class).or(self.0.last());
        found.map_or((0.5, 2.0), |row| (row.low, row.high))
    }
}
