//! What torchtitan stated before its steps, as fields of a scenario.

use crate::catalog::{Catalog, Gpu, Model};
use crate::field::Field;
use crate::log::{StatedBatch, StatedRecompute, StatedSetup};
use crate::precision::Dtype;
use crate::units::group_digits;

/// The models of torchtitan that are in the catalog, by family and size. Source: the registries of models in pytorch/torchtitan,
/// `torchtitan/models/*/__init__.py`.
const MODELS: [(&str, &str); 17] = [
    ("llama2 7B", "llama2-7b"),
    ("llama2 13B", "llama2-13b"),
    ("llama2 70B", "llama2-70b"),
    ("llama3 8B", "llama3.1-8b"),
    ("llama3 70B", "llama3.1-70b"),
    ("llama3 405B", "llama3.1-405b"),
    ("llama4 17bx16e", "llama4-scout"),
    ("llama4 17bx128e", "llama4-maverick"),
    ("deepseek_v3 16B", "deepseek-v2-lite"),
    ("deepseek_v3 671B", "deepseek-v3"),
    ("qwen3 8B", "qwen3-8b"),
    ("qwen3 14B", "qwen3-14b"),
    ("qwen3 32B", "qwen3-32b"),
    ("qwen3 30B-A3B", "qwen3-30b-a3b"),
    ("qwen3 235B-A22B", "qwen3-235b-a22b"),
    ("gpt_oss 20b", "gpt-oss-20b"),
    ("gpt_oss 120b", "gpt-oss-120b"),
];

/// How far the number of parameters may differ from the catalog's, as a fraction: that one leaves out norms and biases.
const TOLERANCE: f64 = 0.03;

/// Returns the model; none if the catalog lacks it.
///
/// # Errors
/// Returns a sentence if the model has another size than its name says, as after a change of its configuration.
pub(super) fn model(setup: &StatedSetup) -> Result<Option<&'static Model>, String> {
    let Some((named, told)) = setup.model.as_deref().zip(setup.parameters) else { return Ok(None) };
    let id = MODELS.iter().find(|(known, _)| known.eq_ignore_ascii_case(named)).map(|(_, id)| *id);
    let Some(model) = id.and_then(|id| Catalog::embedded().model(id).ok()) else { return Ok(None) };
    let (told, known) = (told as f64, model.architecture.parameters());
    match (told / known - 1.0).abs() <= TOLERANCE {
        true => Ok(Some(model)),
        false => Err(format!(
            "The log calls its model {named}, but it has {} parameters instead of {}.",
            group_digits(told),
            group_digits(known)
        )),
    }
}

/// Returns the GPU type; none if the catalog lacks it.
pub(super) fn gpu(setup: &StatedSetup) -> Option<&'static Gpu> {
    Gpu::of_device(Catalog::embedded().gpus(), setup.device.as_deref()?, setup.device_bytes)
}

/// Returns a number that the mesh and the batch state.
pub(super) fn number(setup: &StatedSetup, batch: Option<StatedBatch>, field: Field) -> Option<u32> {
    let mesh = setup.mesh?;
    let ep = mesh.ep.filter(|_| field != Field::Gpus);
    match field {
        Field::Gpus => Some(mesh.gpus),
        // Without EP, the layout isn't known.
        Field::Tp => ep.map(|_| mesh.tp),
        Field::Pp => ep.map(|_| mesh.pp),
        Field::Cp => ep.map(|_| mesh.cp),
        Field::Ep => ep.filter(|ep| *ep > 1),
        Field::ExpertTp => mesh.expert_tp.filter(|_| ep.is_some_and(|ep| ep > 1)),
        // A pipeline divides the local batch.
        Field::Mbs => batch?.local_batch_size.filter(|_| ep.is_some() && mesh.pp == 1),
        _ => None,
    }
}

/// Returns the precision. A log of BF16 doesn't say so, but its mesh and its model show that it is there from the start.
pub(super) fn dtype(setup: &StatedSetup) -> Option<Dtype> {
    match setup.float8 {
        Some(float8) => float8.id().parse().ok(),
        None => (setup.mesh.is_some() && setup.model.is_some()).then_some(Dtype::Bf16),
    }
}

/// Returns what is recomputed, unless it is nothing or something that has no name here.
pub(super) fn recompute(setup: &StatedSetup) -> Option<&'static str> {
    setup.recompute.filter(|recompute| *recompute != StatedRecompute::Other).map(StatedRecompute::id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{StatedFloat8, StatedMesh};

    #[test]
    fn every_named_model_is_in_the_catalog() {
        for (named, id) in MODELS {
            let known = Catalog::embedded().model(id).unwrap();
            let of = |parameters: f64| {
                let setup = StatedSetup {
                    model: Some(named.to_ascii_uppercase()),
                    parameters: Some(parameters as u64),
                    ..StatedSetup::default()
                };
                model(&setup).map(|model| model.map(|model| model.id.clone()))
            };
            let parameters = known.architecture.parameters();
            assert_eq!(of(parameters), Ok(Some(id.to_owned())));
            let smaller = of(0.9 * parameters).unwrap_err();
            assert!(smaller.contains("parameters instead of"), "{smaller}");
        }
    }

    #[test]
    fn an_unknown_degree_leaves_the_layout_open() {
        let mesh = StatedMesh { gpus: 256, tp: 2, pp: 1, cp: 1, ep: None, expert_tp: None };
        let batch = StatedBatch { global_batch_size: 256, seq_len: 4096, local_batch_size: Some(2) };
        let of = |mesh: StatedMesh| {
            let setup = StatedSetup { mesh: Some(mesh), ..StatedSetup::default() };
            [Field::Gpus, Field::Tp, Field::Pp, Field::Mbs].map(|field| number(&setup, Some(batch), field))
        };
        assert_eq!(of(mesh), [Some(256), None, None, None]);
        let known = StatedMesh { ep: Some(1), ..mesh };
        assert_eq!(of(known), [Some(256), Some(2), Some(1), Some(2)]);
        assert_eq!(of(StatedMesh { pp: 2, ..known }), [Some(256), Some(2), Some(2), None]);
    }

    #[test]
    fn the_gpu_type_is_found_by_name_and_memory() {
        let of = |device: &str, gib: f64| {
            let setup = StatedSetup {
                device: Some(device.into()),
                device_bytes: Some(gib * 1_073_741_824.0),
                ..StatedSetup::default()
            };
            gpu(&setup).map(|gpu| gpu.id.as_str())
        };
        assert_eq!(of("NVIDIA H100 80GB HBM3", 79.1), Some("h100"));
        assert_eq!(of("NVIDIA H100", 95.04), Some("h100-500w"));
        assert_eq!(of("AMD Instinct MI300X", 191.98), None);
    }

    #[test]
    fn a_whole_setup_without_a_line_about_precision_is_of_bf16() {
        let mesh = StatedMesh { gpus: 8, tp: 1, pp: 1, cp: 1, ep: Some(1), expert_tp: None };
        let whole =
            StatedSetup { mesh: Some(mesh), model: Some("llama3 8B".into()), ..StatedSetup::default() };
        assert_eq!(dtype(&whole), Some(Dtype::Bf16));
        assert_eq!(dtype(&StatedSetup { model: None, ..whole.clone() }), None);
        for (float8, dtype_of) in [
            (StatedFloat8::Any, Dtype::Fp8),
            (StatedFloat8::Current, Dtype::Fp8Current),
            (StatedFloat8::Mxfp8, Dtype::Mxfp8),
        ] {
            assert_eq!(dtype(&StatedSetup { float8: Some(float8), ..whole.clone() }), Some(dtype_of));
        }
    }
}
