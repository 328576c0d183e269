//! What a run of a certification is compared with, and how far it may be from that.

use crate::catalog::{Catalog, Recipe, RecipeId, Reference, ReferenceClass};
use crate::estimate::Interval;
use crate::launch::container_image;
use crate::result::MOST_SPEED_PERCENT;
use crate::units::{group_digits, readable, readable_range};
use serde::Serialize;

/// The least speed, in percent of the published one, of a run that passes: the threshold of NVIDIA's exemplar certification.
pub const LEAST_SPEED_PERCENT: f64 = 95.0;

/// What a run of a certification is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RunReference {
    /// The published result of its recipe.
    Published {
        /// Seconds per step.
        step_time_s: f64,
    },
    /// The published result of the same layout at another GPU count.
    WeakScaled {
        /// Seconds per step.
        step_time_s: f64,
        /// The GPU count of the result.
        gpus: u32,
    },
    /// The prediction: nothing is published.
    Predicted {
        /// Seconds per step, with the interval of 80 %.
        step_time_s: Interval,
    },
}

impl RunReference {
    /// Returns the reference of a recipe, with the prediction for it.
    pub fn of(recipe: Option<&str>, predicted: Interval) -> RunReference {
        let catalog = Catalog::embedded();
        let recipe = recipe.and_then(|id| catalog.recipe(id).ok());
        RunReference::new(recipe.and_then(|recipe| catalog.reference(recipe)), predicted)
    }

    /// Returns a published result as the reference, or the prediction if there is none.
    pub fn new(published: Option<Reference>, predicted: Interval) -> RunReference {
        match published {
            None => RunReference::Predicted { step_time_s: predicted },
            Some(reference) => {
                let step_time_s = reference.baseline.step_time_s;
                match reference.class {
                    ReferenceClass::Exact => RunReference::Published { step_time_s },
                    ReferenceClass::WeakScaled => {
                        RunReference::WeakScaled { step_time_s, gpus: reference.gpus }
                    }
                }
            }
        }
    }

    /// Returns its step time, in seconds.
    pub fn step_time_s(self) -> f64 {
        match self {
            RunReference::Published { step_time_s } | RunReference::WeakScaled { step_time_s, .. } => {
                step_time_s
            }
            RunReference::Predicted { step_time_s } => step_time_s.mid,
        }
    }

    /// Returns how near it is to the run.
    pub(super) fn class(self) -> String {
        match self {
            RunReference::Published { .. } => "exact".to_owned(),
            RunReference::WeakScaled { gpus, .. } => {
                format!("weak-scaled from {} GPUs", group_digits(gpus.into()))
            }
            RunReference::Predicted { .. } => "predicted".to_owned(),
        }
    }

    /// Returns the longest step time with which a run passes, in seconds.
    pub(super) fn limit_s(self) -> f64 {
        match self {
            RunReference::Predicted { step_time_s } => step_time_s.high,
            published => published.step_time_s() * 100.0 / LEAST_SPEED_PERCENT,
        }
    }

    /// Returns the shortest step time that a healthy cluster explains, in seconds: for a prediction, not above its interval.
    pub(super) fn least_s(self) -> f64 {
        let least_s = self.step_time_s() * 100.0 / MOST_SPEED_PERCENT;
        match self {
            RunReference::Predicted { step_time_s } => least_s.min(step_time_s.low),
            _ => least_s,
        }
    }

    /// Returns its step time and where it comes from: `12.4 s, published`.
    pub fn in_words(self) -> String {
        self.written(readable)
    }

    /// Returns the same, with a published step time written by a function.
    pub(super) fn written(self, number: fn(f64) -> String) -> String {
        match self {
            RunReference::Published { step_time_s } => format!("{} s, published", number(step_time_s)),
            RunReference::WeakScaled { step_time_s, gpus } => {
                format!("{} s, published on {gpus} GPUs", number(step_time_s))
            }
            RunReference::Predicted { step_time_s } => format!(
                "{} s ({}), predicted",
                readable(step_time_s.mid),
                readable_range((step_time_s.low, step_time_s.high), readable)
            ),
        }
    }
}

/// Where the published result is from that a run is compared with. A published number holds for its container: another one can be
/// much faster or slower.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReferenceSource {
    /// Who published it, with the release: `Megatron-Bridge 26.04.01`.
    pub publication: String,
    /// The container in which it was measured, such as `nemo:26.04.01`; null if unknown.
    pub container: Option<String>,
}

impl ReferenceSource {
    /// Returns the source of the result that runs of a recipe are compared with; none if nothing is published.
    pub fn of(recipe: &Recipe) -> Option<ReferenceSource> {
        let baseline = Catalog::embedded().reference(recipe)?.baseline;
        let container = match baseline.container.as_str() {
            "" => container_image(&RecipeId { release: baseline.release, ..recipe.id.clone() }),
            container => Some(container.to_owned()),
        };
        Some(ReferenceSource { publication: baseline.publication(), container })
    }

    /// Returns who published it, and the container in which it was measured: `Megatron-Bridge 26.04.01, nemo:26.04.01`.
    pub fn in_words(&self) -> String {
        let container = self.container.as_ref().map_or(String::new(), |container| format!(", {container}"));
        format!("{}{container}", self.publication)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_number_has_its_container() {
        let catalog = Catalog::embedded();
        let source = |id: &str| ReferenceSource::of(catalog.recipe(id).unwrap());
        for (id, expected) in [
            ("llama3.1-70b/h100/fp8/64@26.06.01", "Megatron-Bridge 26.04.01, nemo:26.04.01"),
            ("llama3.1-70b/h100/fp8/512@26.06.01", "Megatron-Bridge 26.04.01, nemo:26.04.01"),
            ("gpt-oss-120b/gb300/mxfp8/64@bridge-main", "Megatron-Bridge 26.08, nemo:26.08"),
            (
                "gpt-oss-120b/gb200/bf16/64@bridge-main",
                "Megatron-Bridge verification card of 2026-08-17, nemo:26.06",
            ),
        ] {
            assert_eq!(source(id).unwrap().in_words(), expected, "{id}");
        }
        let own = source("nemotron4-340b/h100/bf16/256@25.04").unwrap();
        assert_eq!(own.container.as_deref(), Some("nemo:25.02.01"));
        assert_eq!(source("llama3.1-8b/h100/bf16/64@26.06.01"), None);
        let mut published = catalog.recipes().iter().filter_map(ReferenceSource::of);
        assert!(published.all(|source| source.container.is_some()));
    }
}
