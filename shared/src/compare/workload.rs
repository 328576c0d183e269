//! What a run trains on what: two runs of the same workload may be compared by their step times.

use super::Options;
use crate::field::Field;
use crate::problem::sentence_case;
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
    /// All of them as clauses: what differs one by one, and what is not known together.
    pub(super) fn clauses(unlike: &[Self]) -> Vec<String> {
        let label = |one: &Self| sentence_case(&one.label);
        let differs = unlike.iter().filter_map(|one| match (&one.reference, &one.other) {
            (Some(reference), Some(other)) => Some(format!("{} {other} and not {reference}", label(one))),
            _ => None,
        });
        let mut clauses: Vec<String> = differs.collect();
        // Whether that of the reference is known, and that of the other.
        for (known, of, ends) in [
            ((true, false), "its", ["is not known", "are not known"]),
            ((false, true), "the reference's", ["is not known", "are not known"]),
            ((false, false), "the", ["of neither is known"; 2]),
        ] {
            let of_these =
                unlike.iter().filter(|one| (one.reference.is_some(), one.other.is_some()) == known);
            match of_these.map(label).collect::<Vec<_>>().as_slice() {
                [] => {}
                [alone] => clauses.push(format!("{of} {alone} {}", ends[0])),
                [first @ .., last] => {
                    clauses.push(format!("{of} {} and {last} {}", first.join(", "), ends[1]));
                }
            }
        }
        clauses
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
