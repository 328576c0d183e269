//! Changes of several fields at once: another model, leaving the recipe, the properties of a custom GPU or software.

use trainplan_shared::field::Field;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;

/// Returns the fields with another model. If it can't run with the recipe's layout, the recipe is dropped and
/// the first layout that works is taken: TP 8, no parallelism, or one sequence per GPU.
pub(super) fn with_model(spec: &Spec, scenario: Option<&Scenario>, model: &str) -> Spec {
    let kept = spec.clone().with(Field::Model, model).with(Field::Layers, "");
    let simple = scenario.map(|scenario| {
        let spec = on_gpus(kept.without_scenario().with(Field::Model, model), scenario)
            .with(Field::Gbs, scenario.batch.gbs().to_string());
        let gpus = scenario.layout.gpus().to_string();
        [spec.clone().with(Field::Tp, "8"), spec.clone(), spec.with(Field::Gbs, gpus)]
    });
    let works = |spec: &Spec| spec.scenario().is_ok();
    std::iter::once(kept.clone()).chain(simple.into_iter().flatten()).find(works).unwrap_or(kept)
}

/// Returns the fields of the same scenario without its recipe.
pub(super) fn without_recipe(spec: &Spec, scenario: &Scenario) -> Spec {
    let (model, layout, batch) = (&scenario.model, &scenario.layout, &scenario.batch);
    // With the default, which needs no typing.
    let numbers = [
        (Field::Tp, layout.tp(), 1),
        (Field::Pp, layout.pp(), 1),
        (Field::Cp, layout.cp(), 1),
        (Field::Ep, layout.ep(), 1),
        (Field::ExpertTp, layout.expert_tp(), 1),
        (Field::Vp, layout.vp(), 1),
        (Field::Mbs, batch.mbs(), 1),
        (Field::Gbs, batch.gbs(), 0),
        (Field::SeqLen, batch.seq_len(), model.seq_len),
        (Field::Layers, scenario.architecture.layers, model.architecture.layers),
    ];
    let spec = on_gpus(spec.clone().with(Field::Recipe, ""), scenario)
        .with(Field::Model, model.id.clone())
        .with(Field::PipelineSplit, layout.split().to_string())
        .with(Field::Stack, scenario.options.software.to_string());
    let typed = numbers.into_iter().filter(|(_, value, default)| value != default);
    typed.fold(spec, |spec, (field, value, _)| spec.with(field, value.to_string()))
}

/// Returns the fields with the GPUs and the precision of a scenario.
fn on_gpus(spec: Spec, scenario: &Scenario) -> Spec {
    spec.with(Field::Gpu, scenario.gpu.id.clone())
        .with(Field::Gpus, scenario.layout.gpus().to_string())
        .with(Field::Dtype, scenario.dtype.id())
}

/// Returns the changed property of the text of a GPU or software, such as `96` of `h100:hbm_gb=96`; empty if it is not
/// changed.
pub(super) fn own_property<'a>(text: &'a str, column: &str) -> &'a str {
    let (_, pairs) = text.split_once(':').unwrap_or_default();
    let mut pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
    pairs.find(|(own, _)| *own == column).map_or("", |(_, value)| value)
}

/// Returns the text of a GPU or software with a property changed; an empty `typed` value removes the change.
pub(super) fn with_property(text: &str, column: &str, typed: &str) -> String {
    let (base, pairs) = text.split_once(':').unwrap_or((text, ""));
    let others = pairs.split(',').filter(|pair| !pair.is_empty() && pair.split('=').next() != Some(column));
    let mut pairs: Vec<String> = others.map(str::to_string).collect();
    // These separate the parts of the text.
    let value = typed.replace([',', ':', '='], "");
    if !value.trim().is_empty() {
        pairs.push(format!("{column}={}", value.trim()));
    }
    match pairs.is_empty() {
        true => base.to_string(),
        false => format!("{base}:{}", pairs.join(",")),
    }
}

/// Returns GPU types with a new one: in place of the one with the same base, such as `h100:hbm_gb=96`, or of the shown one.
pub(super) fn with_gpu(mut types: Vec<String>, gpu: String, shown: Option<&str>) -> String {
    let base = |gpu: &str| gpu.split(':').next().unwrap_or_default().to_string();
    let same = types.iter().position(|each| base(each) == base(&gpu));
    match same.or_else(|| types.iter().position(|each| Some(each.as_str()) == shown)) {
        Some(place) => types[place] = gpu,
        None => types.push(gpu),
    }
    types.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Spec {
        Spec::default().with(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04")
    }

    #[test]
    fn a_plan_without_its_recipe_is_the_same_scenario() {
        let with = recipe().scenario().expect("a recipe");
        let spec = without_recipe(&recipe(), &with);
        let without = spec.scenario().expect("a scenario");
        assert_eq!(spec.get(Field::Recipe), None);
        assert_eq!((&without.layout, &without.batch), (&with.layout, &with.batch));
        assert_eq!((without.dtype, &without.model.id), (with.dtype, &with.model.id));
    }

    #[test]
    fn a_model_that_fits_the_recipe_keeps_it_and_any_other_gets_a_layout_that_works() {
        let scenario = recipe().scenario().expect("a recipe");
        let kept = with_model(&recipe(), Some(&scenario), "llama3.1-405b");
        assert!(kept.get(Field::Recipe).is_some());
        for model in ["llama3.1-8b", "nemotron-h-56b"] {
            let spec = with_model(&recipe(), Some(&scenario), model);
            assert_eq!(spec.scenario().expect("a layout that works").model.id, model);
        }
    }

    #[test]
    fn a_gpu_replaces_that_of_its_base_or_the_shown_one() {
        let types = || vec!["h100".to_string(), "b200".to_string()];
        let with = |gpu: &str, shown| with_gpu(types(), gpu.to_string(), shown);
        assert_eq!(with("h100:hbm_gb=141", Some("b200")), "h100:hbm_gb=141,b200");
        assert_eq!(with("h200", Some("b200")), "h100,h200");
        assert_eq!(with("h200", None), "h100,b200,h200");
    }

    #[test]
    fn properties_of_a_custom_gpu_are_set_and_removed() {
        let gpu = with_property("h100", "hbm_gb", " 9,6 ");
        assert_eq!(gpu, "h100:hbm_gb=96");
        assert_eq!(own_property(&gpu, "hbm_gb"), "96");
        assert_eq!(own_property(&gpu, "hbm_tbps"), "");
        let gpu = with_property(&gpu, "hbm_tbps", "4");
        assert_eq!(gpu, "h100:hbm_gb=96,hbm_tbps=4");
        assert_eq!(with_property(&gpu, "hbm_gb", ""), "h100:hbm_tbps=4");
        assert_eq!(with_property("h100:hbm_gb=96", "hbm_gb", ""), "h100");
    }
}
