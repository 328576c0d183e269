//! Reading a scenario from fields, with the values of its recipe where fields are empty.

use super::reader::ScenarioReader;
use crate::architecture::Architecture;
use crate::batch::Batch;
use crate::catalog::{Catalog, Gpu, Model, Recipe};
use crate::convention::Convention;
use crate::field::Field;
use crate::layout::{Degrees, Layout, PipelineSplit};
use crate::options::TrainingOptions;
use crate::precision::Dtype;
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::search::PublishedSplit;
use crate::spec::Spec;
use std::borrow::Cow;

impl Spec {
    /// Returns the scenario that the fields describe.
    ///
    /// With a recipe, empty fields have its values, except that the global batch of a weak series follows the GPU
    /// count. Without one, model, GPU type, GPU count and GBS are required; precision is BF16, the sequence length is
    /// the model's usual one, and everything else is 1.
    ///
    /// # Errors
    /// Every field that is invalid or contradicts others.
    pub fn scenario(&self) -> Result<Scenario, Vec<Problem>> {
        let mut reader = ScenarioReader::new(self).map_err(|problem| vec![problem])?;
        let draft = reader.draft();
        let (Some(draft), true) = (draft, reader.problems.is_empty()) else { return Err(reader.problems) };

        let layout = Layout::new(&draft.degrees, &draft.architecture)?;
        let batch = Batch::new(draft.seq_len, draft.mbs, draft.gbs, &layout)?;
        if draft.gpu.datasheet_tflops(draft.dtype).is_none() {
            let has = Dtype::ALL.into_iter().filter(|dtype| draft.gpu.datasheet_tflops(*dtype).is_some());
            let message = format!("The {} doesn't support {}.", draft.gpu.name, draft.dtype.title());
            return Err(vec![Problem::new(Field::Dtype, draft.dtype, message).suggest(has)]);
        }
        Ok(Scenario {
            model: draft.model,
            architecture: draft.architecture,
            gpu: draft.gpu,
            dtype: draft.dtype,
            layout,
            batch,
            options: draft.options,
            recipe: reader.recipe,
            changes: reader.changes,
            convention: draft.convention,
        })
    }
}

impl Spec {
    /// Returns the scenario, or every problem that can be found. If required fields are missing, this includes
    /// contradictions among the other fields.
    ///
    /// # Errors
    /// Those of [`Spec::scenario`], and problems of the layout.
    pub fn scenario_or_all_problems(&self) -> Result<Scenario, Vec<Problem>> {
        self.scenario().map_err(|mut problems| {
            let is_only_missing = problems.iter().all(|problem| problem.given.is_empty());
            if is_only_missing {
                problems.extend(self.problems_beside(&problems));
            }
            problems
        })
    }

    /// Returns the problems that remain with any value of the missing fields: with stand-ins that fit the others.
    fn problems_beside(&self, missing: &[Problem]) -> Vec<Problem> {
        let lacks = |field| missing.iter().any(|problem| problem.field == field);
        let whole = |field| self.whole(field).ok().flatten().unwrap_or(1);
        let product = |fields: &[Field]| {
            fields.iter().try_fold(1_u32, |product, field| product.checked_mul(whole(*field)))
        };
        if lacks(Field::Model) {
            return Vec::new();
        }
        let mut probe = self.clone();
        if lacks(Field::Gpu) {
            let Some(gpu) = Catalog::embedded().gpus().last() else { return Vec::new() };
            probe.set(Field::Gpu, &gpu.id);
        }
        if lacks(Field::Gpus) {
            let Some(gpus) = product(&[Field::Tp, Field::Pp, Field::Cp, Field::Ep]) else {
                return Vec::new();
            };
            probe.set(Field::Gpus, gpus.to_string());
        }
        if lacks(Field::Gbs) {
            let gbs = product(&[Field::Mbs, Field::Pp])
                .and_then(|batch| batch.checked_mul(probe.whole(Field::Gpus).ok()??));
            let Some(gbs) = gbs else { return Vec::new() };
            probe.set(Field::Gbs, gbs.to_string());
        }
        let problems = probe.scenario().err().unwrap_or_default();
        let is_real = |problem: &Problem| {
            // The precisions of an unknown GPU type are unknown.
            let of_gpu = problem.field == Field::Dtype && lacks(Field::Gpu);
            !lacks(problem.field) && !of_gpu && !problem.given.is_empty()
        };
        problems.into_iter().filter(is_real).collect()
    }
}

/// Valid values that may still contradict each other.
struct Draft {
    model: Cow<'static, Model>,
    architecture: Architecture,
    gpu: Cow<'static, Gpu>,
    dtype: Dtype,
    degrees: Degrees,
    seq_len: u32,
    mbs: u32,
    gbs: u32,
    options: TrainingOptions,
    convention: Convention,
}

impl ScenarioReader<'_> {
    fn draft(&mut self) -> Option<Draft> {
        let recipe = self.recipe;
        let (model, gpu, dtype) = (self.model(), self.gpu(), self.precision());
        let base = recipe.map(|recipe| recipe.degrees.clone()).unwrap_or_default();
        let gpus = self.gpus();
        let mut degree = |field, base| self.whole(field, Some(base)).unwrap_or(base);
        let (tp, pp, cp) =
            (degree(Field::Tp, base.tp), degree(Field::Pp, base.pp), degree(Field::Cp, base.cp));
        let (ep, expert_tp) = (degree(Field::Ep, base.ep), degree(Field::ExpertTp, base.expert_tp));
        let vp = degree(Field::Vp, base.vp);
        let mbs = self.whole(Field::Mbs, recipe.map(|recipe| recipe.mbs).or(Some(1))).unwrap_or(1);
        let (seq_len, layers) = (self.seq_len(model.as_deref()), self.layers(model.as_deref()));
        // A list of stages is for one pipeline. The recipes of the model list those of others.
        let is_other = (pp, vp) != (base.pp, base.vp);
        let usual_split = match (&base.split, self.recipe_of(model.as_deref()), layers) {
            (PipelineSplit::Explicit(_), Some(recipe), Some(layers))
                if is_other || layers != recipe.layers =>
            {
                PublishedSplit::find(&recipe.id.model, layers, pp, vp).cloned().unwrap_or_default()
            }
            _ => base.split,
        };
        let split = self.value(Field::PipelineSplit, Some(usual_split)).unwrap_or(PipelineSplit::Even);
        let gbs = self.global_batch(gpus);
        let options = self.options();
        let default = match recipe {
            Some(recipe) if recipe.id.release.software().has_flops_formulas => Convention::Recipe,
            Some(_) => Convention::Causal,
            None => Convention::Full,
        };
        let convention = match self.spec.parse(Field::Convention) {
            Ok(Some(Convention::Recipe)) if recipe.is_some() => default,
            Ok(convention) => convention.unwrap_or(default),
            Err(problem) => {
                self.problems.push(problem);
                default
            }
        };
        let (model, gpu, gpus, seq_len, gbs) = (model?, gpu?, gpus?, seq_len?, gbs?);
        let architecture = match model.architecture.with_layers(layers?) {
            Ok(architecture) => architecture,
            Err(problem) => {
                self.problems.push(problem);
                return None;
            }
        };
        self.problems.extend(options.modules.problem(&architecture, options.recompute));
        self.problems.extend(options.offload_problem(&architecture, pp));
        self.problems.extend(options.gemm_problem(&gpu.name, gpu.bf16_tflops));
        if convention == Convention::Recipe && recipe.is_none() {
            self.problems.push(Convention::needs_recipe());
        }
        let dtype = dtype?;
        let degrees = Degrees { gpus, tp, pp, cp, ep, expert_tp, vp, split };
        let options = options.as_in_recipes(model.id_in_recipes(), &gpu.id, dtype);
        Some(Draft { model, architecture, gpu, dtype, degrees, seq_len, mbs, gbs, options, convention })
    }

    fn options(&mut self) -> TrainingOptions {
        let default = self.recipe.map_or_else(TrainingOptions::default, Recipe::options);
        let recompute = self.value(Field::Recompute, Some(default.recompute)).unwrap_or_default();
        let gemm_tflops = self.spec.count(Field::GemmTflops).unwrap_or_else(|problem| {
            self.problems.push(problem);
            None
        });
        let modules = self.value(Field::RecomputeModules, Some(default.modules)).unwrap_or_default();
        let offload_layers = self.spec.whole(Field::OffloadLayers);
        let offload_layers = self.settle(Field::OffloadLayers, offload_layers, Some(default.offload_layers));
        TrainingOptions {
            recompute,
            modules,
            offload_layers: offload_layers.unwrap_or_default(),
            fsdp: self.switch(Field::Fsdp, default.fsdp),
            overlap: self.switch(Field::Overlap, default.overlap),
            software: self.software().unwrap_or(default.software),
            gemm_tflops,
            cluster: self.value(Field::ClusterFactor, Some(default.cluster)).unwrap_or_default(),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    #[test]
    fn every_recipe_is_a_scenario_that_derives_what_its_document_prints() {
        for recipe in Catalog::embedded().recipes() {
            let scenario = Spec::default().with(Field::Recipe, recipe.id.to_string()).scenario().unwrap();
            let (dp, ga) = (scenario.layout.dp(), scenario.batch.ga());
            assert_eq!((dp, ga), (recipe.dp(), recipe.ga()), "{}", recipe.id);
            assert_eq!(scenario.published_as().map(|published| &published.id), Some(&recipe.id));
            // 61 and 94 layers can't be divided evenly: the scripts place the embedding and the loss by hand.
            let chunks = recipe.degrees.pp * recipe.degrees.vp;
            let is_uneven =
                recipe.degrees.split == PipelineSplit::Even && !recipe.layers.is_multiple_of(chunks);
            assert_eq!(scenario.warnings().len(), usize::from(is_uneven), "{}", recipe.id);
            assert!(scenario.changes.is_empty(), "{}", recipe.id);
        }
    }

    #[test]
    fn the_batch_of_a_weak_series_follows_the_gpus() {
        let fields = [(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04"), (Field::Gpus, "1024")];
        let scenario = spec(&fields).scenario().unwrap();
        assert_eq!((scenario.batch.gbs(), scenario.batch.ga()), (512, 64));
        assert_eq!(scenario.changes.iter().map(|change| change.follows).collect::<Vec<_>>(), [false, true]);
        let published = scenario.published_as().unwrap();
        assert_eq!(published.id.to_string(), "llama3.1-405b/h100/fp8/1024@25.04");
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let fields = [
            (Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04"),
            (Field::Gpus, "many"),
            (Field::Gpu, "h1000"),
            (Field::Tp, "0"),
        ];
        let problems = spec(&fields).scenario().unwrap_err();
        let fields: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [Field::Gpu, Field::Gpus, Field::Tp]);
        assert_eq!(problems[2].suggestions, ["1"]);
    }

    #[test]
    fn without_a_recipe_what_is_needed_is_named() {
        let problems = Spec::default().scenario().unwrap_err();
        let fields: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [Field::Model, Field::Gpu, Field::Gpus, Field::Gbs]);
    }

    #[test]
    fn problems_beside_missing_fields_are_named_too() {
        let named = |fields: &[(Field, &str)]| -> Vec<Field> {
            let problems = spec(fields).scenario_or_all_problems().unwrap_err();
            problems.iter().map(|problem| problem.field).collect()
        };
        let model = (Field::Model, "llama3.1-70b");
        let gpu = (Field::Gpu, "h100");
        assert_eq!(named(&[model, gpu, (Field::Gpus, "64")]), [Field::Gbs]);
        assert_eq!(named(&[model, gpu, (Field::Gpus, "60"), (Field::Tp, "8")]), [Field::Gbs, Field::Gpus]);
        let uneven = named(&[model, gpu, (Field::Gpus, "56"), (Field::Tp, "7")]);
        assert!(uneven[0] == Field::Gbs && uneven[1..].contains(&Field::Tp), "{uneven:?}");
        let uneven = named(&[model, (Field::Tp, "7")]);
        assert!(
            uneven[..3] == [Field::Gpu, Field::Gpus, Field::Gbs] && uneven[3..].contains(&Field::Tp),
            "{uneven:?}"
        );
        let old = [model, (Field::Gpu, "a100"), (Field::Gpus, "8"), (Field::Tp, "8"), (Field::Dtype, "fp8")];
        assert_eq!(named(&old), [Field::Gbs, Field::Dtype]);
        assert_eq!(named(&[(Field::Tp, "7")]), [Field::Model, Field::Gpu, Field::Gpus, Field::Gbs]);
        assert_eq!(named(&[model, gpu, (Field::Gpus, "many")]), [Field::Gpus, Field::Gbs]);
        let largest = [model, gpu, (Field::Gpus, "1000000"), (Field::Mbs, "1000000")];
        assert_eq!(named(&largest), [Field::Gbs]);
    }

    #[test]
    fn a_gpu_without_the_precision_is_refused() {
        let fields =
            [(Field::Model, "llama3.1-8b"), (Field::Gpu, "a100"), (Field::Gpus, "8"), (Field::Gbs, "128")];
        assert!(spec(&fields).scenario().is_ok());
        let problem = spec(&fields).with(Field::Dtype, "fp8").scenario().unwrap_err().remove(0);
        assert_eq!(problem.suggestions, ["bf16"]);
    }
}
