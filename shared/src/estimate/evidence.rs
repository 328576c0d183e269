//! The measurements behind a predicted step time, and how far they can be trusted.

use crate::choices::choices;
use serde::Serialize;

/// The measurements behind a predicted step time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// How close the nearest measurements are.
    pub kind: EvidenceKind,
    /// Step time by the physical model alone, s.
    pub modelled_s: f64,
    /// Factor by which measurements correct the physical model.
    pub correction: f64,
    /// The nearest of those measurements, nearest first.
    pub anchors: Vec<Anchor>,
}

/// How close the nearest measurements are to a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// The scenario itself was measured.
    Published,
    /// The same model was measured on the same GPU in a similar layout.
    Interpolated,
    /// Only distant runs of the model were measured, or none.
    Modelled,
}

impl EvidenceKind {
    /// Returns the id that JSON and stored plans use.
    pub const fn id(self) -> &'static str {
        match self {
            EvidenceKind::Published => "published",
            EvidenceKind::Interpolated => "interpolated",
            EvidenceKind::Modelled => "modelled",
        }
    }
}

/// A measurement that corrects a prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Anchor {
    /// Model, GPUs, precision and source of the measured run, for display.
    pub what: String,
    /// How much it has in common with the scenario, from 0 to 1.
    pub likeness: f64,
}

choices! {
    /// How far a prediction can be trusted.
    Confidence {
        /// No run of the model was measured.
        Lowest "lowest",
        /// Only distant runs of the model were measured.
        Low "low",
        /// The model was measured on the same GPU in a similar layout.
        Medium "medium",
        /// The scenario itself was measured.
        High "high",
    }
}

impl Evidence {
    /// Returns how far the prediction can be trusted.
    pub fn confidence(&self) -> Confidence {
        match (self.kind, self.anchors.is_empty()) {
            (EvidenceKind::Published, _) => Confidence::High,
            (EvidenceKind::Interpolated, _) => Confidence::Medium,
            (EvidenceKind::Modelled, false) => Confidence::Low,
            (EvidenceKind::Modelled, true) => Confidence::Lowest,
        }
    }

    /// Returns the sentences that the terminal and the page both show under a prediction.
    pub fn summary(&self) -> String {
        let percent = 100.0 * (self.correction - 1.0);
        let size = format!("{:.1} %", percent.abs());
        let estimate = match size.as_str() {
            "0.0 %" => "do not change the model's estimate".to_string(),
            _ if percent < 0.0 => format!("lower the model's estimate by {size}"),
            _ => format!("raise the model's estimate by {size}"),
        };
        match self.confidence() {
            Confidence::High => {
                format!(
                    "High confidence: this exact layout was measured with this software. Measurements {estimate}."
                )
            }
            Confidence::Medium => format!(
                "Medium confidence: the same model was measured on this GPU, with this software and precision, in \
                 similar layouts. They {estimate}."
            ),
            Confidence::Low => {
                format!(
                    "Low confidence: no measured run of this model has a similar layout with this GPU, software and \
                     precision. Its other measurements {estimate}."
                )
            }
            Confidence::Lowest => {
                "Lowest confidence: no measurements of this model. Physics-based estimate only.".to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(kind: EvidenceKind, correction: f64, anchors: usize) -> Evidence {
        let anchor = Anchor { what: "llama3.1-8b".to_string(), likeness: 1.0 };
        Evidence { kind, modelled_s: 1.0, correction, anchors: vec![anchor; anchors] }
    }

    #[test]
    fn the_summary_names_confidence_and_correction() {
        let of = |kind, correction, anchors| evidence(kind, correction, anchors).summary();
        assert_eq!(
            of(EvidenceKind::Published, 0.943, 1),
            "High confidence: this exact layout was measured with this software. Measurements lower the model's estimate by 5.7 %."
        );
        assert!(
            of(EvidenceKind::Interpolated, 1.02, 1).ends_with("They raise the model's estimate by 2.0 %.")
        );
        assert!(
            of(EvidenceKind::Modelled, 0.9999, 1)
                .ends_with("measurements do not change the model's estimate.")
        );
        assert!(of(EvidenceKind::Modelled, 1.0, 0).starts_with("Lowest confidence: no measurements"));
    }

    #[test]
    fn ids_are_those_of_json() {
        for kind in [EvidenceKind::Published, EvidenceKind::Interpolated, EvidenceKind::Modelled] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.id());
        }
    }
}
