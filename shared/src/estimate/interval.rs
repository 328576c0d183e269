//! How far off a prediction may be, by how far off such predictions were.

use super::{Basis, BasisKind, Inputs};
use crate::catalog::{DataError, FromRow, Row, read};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// A number with the ends between which four of five measurements are expected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Interval {
    /// One of ten measurements is expected below.
    pub low: f64,
    /// The prediction.
    pub mid: f64,
    /// One of ten measurements is expected above.
    pub high: f64,
}

impl Interval {
    /// The same of something that is `factor` times as much.
    #[must_use]
    pub fn times(self, factor: f64) -> Interval {
        Interval { low: self.low * factor, mid: self.mid * factor, high: self.high * factor }
    }
}

/// The kinds of predictions that are about equally far off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A dense model, corrected by measurements of the same shape and GPU.
    DenseInterpolated,
    /// A dense model that nobody measured on such GPUs.
    DenseExtrapolated,
    /// A routed model, corrected by measurements of the same shape and GPU.
    RoutedInterpolated,
    /// A routed model that nobody measured on such GPUs.
    RoutedExtrapolated,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 4] = [
        Class::DenseInterpolated,
        Class::DenseExtrapolated,
        Class::RoutedInterpolated,
        Class::RoutedExtrapolated,
    ];

    /// Its name in data files and reports.
    pub const fn id(self) -> &'static str {
        match self {
            Class::DenseInterpolated => "dense, interpolated",
            Class::DenseExtrapolated => "dense, extrapolated",
            Class::RoutedInterpolated => "routed, interpolated",
            Class::RoutedExtrapolated => "routed, extrapolated",
        }
    }

    /// The class of a prediction.
    pub fn of(inputs: &Inputs<'_>, basis: &Basis) -> Class {
        match (inputs.architecture.moe.is_some(), basis.kind != BasisKind::Modelled) {
            (false, true) => Class::DenseInterpolated,
            (false, false) => Class::DenseExtrapolated,
            (true, true) => Class::RoutedInterpolated,
            (true, false) => Class::RoutedExtrapolated,
        }
    }
}

/// How far measurements lay from held-out predictions, by class.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread(Vec<Reach>);

/// Where four of five measured over predicted step times of one class lie.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    class: String,
    low: f64,
    high: f64,
}

impl FromRow for Reach {
    fn from_row(row: &Row<'_>) -> Result<Reach, DataError> {
        Ok(Reach { class: row.string("class")?, low: row.value("low")?, high: row.value("high")? })
    }
}

impl Reach {
    /// The interval around a prediction.
    pub fn around(&self, mid: f64) -> Interval {
        Interval { low: mid * self.low, mid, high: mid * self.high }
    }
}

impl Spread {
    /// What this program carries.
    pub fn embedded() -> &'static Spread {
        static EMBEDDED: LazyLock<Spread> = LazyLock::new(|| {
            #[expect(
                clippy::expect_used,
                reason = "the file is fixed when this is built, and every test reads it"
            )]
            Spread(
                read("intervals.csv", include_str!("../../data/intervals.csv"))
                    .expect("the intervals are well formed"),
            )
        });
        &EMBEDDED
    }

    /// How far a prediction from `inputs` that rests on `basis` may be off.
    pub fn of(&self, inputs: &Inputs<'_>, basis: &Basis) -> &Reach {
        let class = Class::of(inputs, basis).id();
        // Every class has its row; were one missing, the last would be the widest.
        let found = self.0.iter().find(|reach| reach.class == class).or(self.0.last());
        found.unwrap_or(const { &Reach { class: String::new(), low: 0.5, high: 2.0 } })
    }
}
