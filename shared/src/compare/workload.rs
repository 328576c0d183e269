//! Workloads: the step times of two runs are comparable if their workloads are the same.

use crate::field::Field;
use crate::log::Format;
use crate::precision::Dtype;
use crate::result::ViewedRun;
use serde::{Deserialize, Serialize};

/// The fields of a workload. If one of them differs, a step is a different amount of work or the machine is different. The
/// layout is not among them, because comparing layouts is the purpose of comparisons.
const FIELDS: [Field; 7] =
    [Field::Model, Field::Layers, Field::SeqLen, Field::Gbs, Field::Gpu, Field::Gpus, Field::Dtype];

/// A field in which two workloads differ, or that is unknown for one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkloadDifference {
    /// The field's flag: `gbs`.
    pub key: String,
    /// The field's label: `GBS`.
    pub label: String,
    /// The reference's value; null if it is unknown.
    pub reference: Option<String>,
    /// The other run's value; null if it is unknown.
    pub other: Option<String>,
}

impl WorkloadDifference {
    /// Returns the differences as sentences: different values in one, unknown ones in up to three.
    pub(super) fn sentences(differences: &[Self]) -> Vec<String> {
        let different = differences.iter().filter_map(|one| match (&one.reference, &one.other) {
            (Some(reference), Some(other)) => Some(format!("{} {other} (reference {reference})", one.label)),
            _ => None,
        });
        let different: Vec<String> = different.collect();
        let mut sentences = Vec::new();
        if !different.is_empty() {
            sentences.push(format!("Different workload: {}.", different.join(", ")));
        }
        // Whether the reference's value is known, and the other run's.
        for (known, what) in [
            ((true, false), "Unknown for this run"),
            ((false, true), "Unknown for the reference"),
            ((false, false), "Unknown for both runs"),
        ] {
            let unknown =
                differences.iter().filter(|one| (one.reference.is_some(), one.other.is_some()) == known);
            let labels: Vec<&str> = unknown.map(|one| one.label.as_str()).collect();
            if !labels.is_empty() {
                sentences.push(format!("{what}: {}.", labels.join(", ")));
            }
        }
        sentences
    }
}

/// The known values of a run's workload, in the order of [`FIELDS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Workload {
    values: [Option<String>; FIELDS.len()],
    /// Whether the log lists its program's arguments, which are everything but the GPU type.
    lists_arguments: bool,
    /// The framework that wrote the log.
    format: Option<Format>,
}

impl Workload {
    pub(super) fn of(seen: &ViewedRun<'_>) -> Self {
        Self {
            values: FIELDS.map(|field| value(seen, field)),
            lists_arguments: !seen.log.arguments.is_empty(),
            format: seen.report.format,
        }
    }

    fn value(&self, field: Field) -> Option<&str> {
        let place = FIELDS.iter().position(|one| *one == field)?;
        self.values.get(place)?.as_deref()
    }

    /// Returns the differences from another workload. Layers may be unknown for both: they follow from the model. So may
    /// the GPU type of logs that list all the rest: their reports say that it is assumed to be the same. And so may what
    /// [`Self::assumed`] returns.
    pub(super) fn unlike(&self, other: &Self) -> Vec<WorkloadDifference> {
        let both_list = self.lists_arguments && other.lists_arguments;
        let assumed = self.assumed(other);
        let pairs = FIELDS.iter().zip(self.values.iter().zip(&other.values));
        let unlike = pairs.filter(|(field, (one, other))| match (one, other) {
            (None, None) if assumed.contains(*field) => false,
            (None, None) if **field == Field::Gpu => !both_list,
            (None, None) => **field != Field::Layers,
            (Some(one), Some(other)) if **field == Field::Dtype => !may_be(one, other),
            _ => one != other,
        });
        unlike
            .map(|(field, (one, other))| WorkloadDifference {
                key: field.flag().to_owned(),
                label: field.label().to_owned(),
                reference: one.clone(),
                other: other.clone(),
            })
            .collect()
    }

    /// Returns the fields that are unknown for both workloads and assumed to be the same, because the format of the logs and the
    /// global batch size are. Such logs usually come from one script, before and after a change.
    pub(super) fn assumed(&self, other: &Self) -> Vec<Field> {
        let lists_arguments = self.lists_arguments || other.lists_arguments;
        let gbs = self.value(Field::Gbs);
        let states_the_same = self.format.is_some()
            && self.format == other.format
            && gbs.is_some()
            && gbs == other.value(Field::Gbs);
        if lists_arguments || !states_the_same {
            return Vec::new();
        }
        // Layers follow from the model.
        let is_unknown = |field: &Field| {
            *field != Field::Layers && self.value(*field).is_none() && other.value(*field).is_none()
        };
        FIELDS.into_iter().filter(is_unknown).collect()
    }
}

/// Returns whether two precisions may be the same.
fn may_be(one: &str, other: &str) -> bool {
    match (one.parse::<Dtype>(), other.parse()) {
        (Ok(one), Ok(other)) => one.may_be(other),
        _ => one == other,
    }
}

/// Returns a field of a run's scenario, if it is known.
pub(super) fn value(seen: &ViewedRun<'_>, field: Field) -> Option<String> {
    let Some(scenario) = &seen.scenario else {
        let typed = seen.identity.scenario.get(field).map(str::to_owned);
        let printed = || seen.report.global_batch_size.map(|size| size.to_string());
        return if field == Field::Gbs { typed.or_else(printed) } else { typed };
    };
    match field {
        Field::Recipe => Some(scenario.published_as().or(scenario.recipe)?.id.to_string()),
        _ => scenario.value(field).or_else(|| seen.identity.scenario.get(field).map(str::to_owned)),
    }
}
