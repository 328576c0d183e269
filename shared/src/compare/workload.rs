//! What a run trains on what: two runs of the same workload may be compared by their step times.

use super::Options;
use crate::problem::{Field, Wording as _};
use crate::result::Seen;
use serde::{Deserialize, Serialize};

/// What makes a workload: where one of these differs, a step is another amount of work, or the machine is another. How the
/// work is spread over the machine is what comparisons are made for.
const FIELDS: [Field; 7] =
    [Field::Model, Field::Layers, Field::SeqLen, Field::Gbs, Field::Gpu, Field::Gpus, Field::Dtype];

/// One thing in which two workloads differ, or of which that can't be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Unlike {
    /// What, as a flag is called: `gbs`.
    pub key: String,
    /// What, as people call it: `GBS`.
    pub label: String,
    /// The reference's; none where that is not known.
    pub reference: Option<String>,
    /// The other's.
    pub other: Option<String>,
}

impl Unlike {
    /// It as a clause.
    pub(super) fn what(&self) -> String {
        let label = self.label.to_lowercase_unless_acronym();
        match (&self.reference, &self.other) {
            (Some(reference), Some(other)) => format!("{label} {other} and not {reference}"),
            (Some(_), None) => format!("its {label} is not known"),
            (None, Some(_)) => format!("the reference's {label} is not known"),
            (None, None) => format!("the {label} of neither is known"),
        }
    }

    /// What to do about all that is not known, as a clause; none where everything is.
    pub(super) fn remedy(unlike: &[Self], options: &Options) -> Option<String> {
        let unknown = unlike.iter().filter(|unlike| unlike.reference.is_none() || unlike.other.is_none());
        let flags: Vec<String> = unknown.map(|unlike| format!("--{}", unlike.key)).collect();
        let by_flags = || format!("say {}", flags.join(", "));
        (!flags.is_empty()).then(|| options.remedy.map_or_else(by_flags, str::to_owned))
    }
}

/// The workload of a run, as far as it is known, in the order of [`FIELDS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Workload([Option<String>; FIELDS.len()]);

impl Workload {
    pub(super) fn of(seen: &Seen<'_>) -> Self {
        Self(FIELDS.map(|field| value(seen, field)))
    }

    /// In what `other` differs from this one. Of the layers nothing need be known: a model has as many as it has.
    pub(super) fn unlike(&self, other: &Self) -> Vec<Unlike> {
        let pairs = FIELDS.iter().zip(self.0.iter().zip(&other.0));
        let unlike = pairs.filter(|(field, (one, other))| match (one, other) {
            (None, None) => **field != Field::Layers,
            _ => one != other,
        });
        unlike
            .map(|(field, (one, other))| Unlike {
                key: field.flag().to_owned(),
                label: field.label().to_owned(),
                reference: one.clone(),
                other: other.clone(),
            })
            .collect()
    }
}

/// A field of a run's scenario, as far as that is known.
pub(super) fn value(seen: &Seen<'_>, field: Field) -> Option<String> {
    let Some(scenario) = &seen.scenario else {
        let typed = seen.identity.scenario.get(field).map(str::to_owned);
        let printed = || seen.report.global_batch_size.map(|size| size.to_string());
        return if field == Field::Gbs { typed.or_else(printed) } else { typed };
    };
    let (layout, batch, options) = (&scenario.layout, &scenario.batch, &scenario.options);
    let on = |on: bool| if on { "on" } else { "off" };
    Some(match field {
        Field::Model => scenario.model.id.clone(),
        Field::Layers => scenario.architecture.layers.to_string(),
        Field::SeqLen => batch.seq_len().to_string(),
        Field::Gbs => batch.gbs().to_string(),
        Field::Mbs => batch.mbs().to_string(),
        Field::Gpu => scenario.gpu.id.clone(),
        Field::Gpus => layout.gpus().to_string(),
        Field::Dtype => scenario.dtype.id().to_owned(),
        Field::Tp => layout.tp().to_string(),
        Field::Pp => layout.pp().to_string(),
        Field::Cp => layout.cp().to_string(),
        Field::Ep => layout.ep().to_string(),
        Field::ExpertTp => layout.expert_tp().to_string(),
        Field::Vp => layout.vp().to_string(),
        Field::PipelineSplit => layout.split().to_string(),
        Field::Recompute => options.recompute.to_string(),
        Field::Fsdp => on(options.fsdp).to_owned(),
        Field::Overlap => on(options.overlap).to_owned(),
        Field::Stack => options.stack.to_string(),
        Field::GemmTflops => options.gemm_tflops?.to_string(),
        Field::ClusterFactor => options.cluster_factor?.to_string(),
        Field::Recipe => scenario.published_as().or(scenario.recipe)?.id.to_string(),
        _ => return seen.identity.scenario.get(field).map(str::to_owned),
    })
}
