//! The model and the GPUs of a plan, without its layout.

use super::reader::ScenarioReader;
use crate::catalog::{Gpu, Model};
use crate::precision::Dtype;
use crate::spec::Spec;
use crate::stack::Software;
use std::borrow::Cow;

/// The model and the GPUs of a plan. It takes far less code than the whole scenario, and doesn't say whether the plan can run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// The model.
    pub model: Cow<'static, Model>,
    /// The GPU type.
    pub gpu: Cow<'static, Gpu>,
    /// The number of GPUs.
    pub gpus: u32,
    /// The precision.
    pub dtype: Dtype,
    /// The training software.
    pub software: Software,
    /// Tokens of a sequence.
    pub seq_len: u32,
    /// The global batch size, in sequences.
    pub gbs: u32,
    /// Whether it has another number of layers than its model.
    pub is_proxy: bool,
}

impl Spec {
    /// Returns the outline of the scenario that the fields describe, with the same values as [`Spec::scenario`]; none if one of these
    /// values is missing or can't be read. There may be an outline of a plan that can't run.
    pub fn outline(&self) -> Option<Outline> {
        let mut reader = ScenarioReader::new(self).ok()?;
        let (model, gpu, dtype, gpus) = (reader.model()?, reader.gpu()?, reader.precision()?, reader.gpus()?);
        let (seq_len, layers) = (reader.seq_len(Some(&*model))?, reader.layers(Some(&*model))?);
        let (gbs, software) = (reader.global_batch(Some(gpus))?, reader.software()?);
        let is_proxy = layers != model.architecture.layers;
        Some(Outline { model, gpu, gpus, dtype, software, seq_len, gbs, is_proxy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::field::Field;
    use crate::scenario::Scenario;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    fn outline_of(scenario: &Scenario) -> Outline {
        Outline {
            model: scenario.model.clone(),
            gpu: scenario.gpu.clone(),
            gpus: scenario.layout.gpus(),
            dtype: scenario.dtype,
            software: scenario.options.software,
            seq_len: scenario.batch.seq_len(),
            gbs: scenario.batch.gbs(),
            is_proxy: scenario.is_proxy(),
        }
    }

    fn assert_agrees(spec: &Spec) {
        let scenario = spec.scenario().unwrap_or_else(|problems| panic!("{spec:?}: {problems:?}"));
        assert_eq!(spec.outline(), Some(outline_of(&scenario)), "{spec:?}");
    }

    const RECIPE: (Field, &str) = (Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04");

    #[test]
    fn it_agrees_with_the_scenario_of_every_recipe() {
        for recipe in Catalog::embedded().recipes() {
            assert_agrees(&Spec::default().with(Field::Recipe, recipe.id.to_string()));
        }
    }

    #[test]
    fn it_agrees_with_the_scenario_of_typed_fields() {
        let own =
            [(Field::Model, "llama3.1-8b"), (Field::Gpu, "h100"), (Field::Gpus, "8"), (Field::Gbs, "128")];
        assert_agrees(&spec(&own));
        for (field, text) in [
            (Field::Gpu, "h100:hbm_gb=96"),
            (Field::Dtype, "fp8"),
            (Field::SeqLen, "4096"),
            (Field::Layers, "16"),
            (Field::Stack, "meta-llama3"),
        ] {
            assert_agrees(&spec(&own).with(field, text));
        }
        // The batch of its series follows the number of GPUs.
        let wide = spec(&[RECIPE, (Field::Gpus, "1024")]);
        assert_agrees(&wide);
        assert_eq!(wide.outline().map(|outline| outline.gbs), Some(512));
        assert_agrees(&spec(&[RECIPE, (Field::Dtype, "bf16"), (Field::Gbs, "512")]));
    }

    #[test]
    fn a_plan_that_cannot_run_has_an_outline_if_its_values_can_be_read() {
        let outline = |field: Field, text: &str| spec(&[RECIPE]).with(field, text).outline();
        let uneven = outline(Field::Tp, "3");
        assert_eq!(uneven.map(|outline| outline.gpus), Some(512));
        for (field, text) in [
            (Field::Gpus, "many"),
            (Field::Gpu, "h1000"),
            (Field::Stack, "unknown"),
            (Field::Recipe, "unknown"),
        ] {
            assert_eq!(outline(field, text), None, "{text}");
        }
        assert_eq!(Spec::default().outline(), None);
    }
}
