//! Published measurements near a scenario, which correct what the model says.

use super::Inputs;
use serde::Serialize;
use std::sync::LazyLock;

/// What a step time rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Basis {
    /// In a word.
    pub kind: BasisKind,
    /// What the physical model says, s.
    pub modelled_s: f64,
    /// What measurements nearby make of it: the factor on the model's time.
    pub correction: f64,
    /// Those measurements, the weightiest first.
    pub anchors: Vec<Anchor>,
}

/// What a step time rests on, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BasisKind {
    /// This very mapping was measured.
    Published,
    /// The same shape was measured on the same GPUs in another mapping.
    Interpolated,
    /// The physical model alone.
    Modelled,
}

/// A measurement that a correction rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Anchor {
    /// Its row in the measurements.
    pub id: String,
    /// What was measured, in words.
    pub what: String,
    /// How much it counts, a fraction.
    pub weight: f64,
}

/// Measurements that can correct a prediction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Anchors;

impl Anchors {
    /// Those that this program carries.
    pub fn embedded() -> &'static Anchors {
        static EMBEDDED: LazyLock<Anchors> = LazyLock::new(Anchors::default);
        &EMBEDDED
    }

    /// What a prediction of `modelled_s` rests on, leaving anchors of `mapping` aside.
    pub fn basis(&self, inputs: &Inputs<'_>, modelled_s: f64, mapping: Option<&str>) -> Basis {
        let _ = (inputs, mapping);
        Basis { kind: BasisKind::Modelled, modelled_s, correction: 1.0, anchors: Vec::new() }
    }
}
