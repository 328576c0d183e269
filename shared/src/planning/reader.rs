//! Reads the values of a scenario from fields. Where a field is empty, its recipe's value counts.

use super::missing;
use crate::catalog::{Catalog, Gpu, Model, Recipe, Scaling};
use crate::field::Field;
use crate::precision::Dtype;
use crate::problem::Problem;
use crate::scenario::RecipeChange;
use crate::spec::Spec;
use crate::stack::Software;
use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

/// Reads the fields of a scenario and collects problems and changes.
pub(super) struct ScenarioReader<'a> {
    pub(super) spec: &'a Spec,
    pub(super) recipe: Option<&'static Recipe>,
    pub(super) problems: Vec<Problem>,
    pub(super) changes: Vec<RecipeChange>,
}

impl<'a> ScenarioReader<'a> {
    /// Returns a reader of the fields.
    ///
    /// # Errors
    /// The recipe is unknown. The other fields depend on it, so their problems would only distract.
    pub(super) fn new(spec: &'a Spec) -> Result<ScenarioReader<'a>, Problem> {
        let recipe = spec.get(Field::Recipe).map(|id| Catalog::embedded().recipe(id)).transpose()?;
        Ok(ScenarioReader { spec, recipe, problems: Vec::new(), changes: Vec::new() })
    }

    /// Returns the model.
    pub(super) fn model(&mut self) -> Option<Cow<'static, Model>> {
        let base = self.recipe.map(|recipe| recipe.id.model.as_str());
        self.named(Field::Model, base, |text| Catalog::embedded().model_or_own(text), |model| &model.id)
    }

    /// Returns the GPU type.
    pub(super) fn gpu(&mut self) -> Option<Cow<'static, Gpu>> {
        let base = self.recipe.map(|recipe| recipe.id.gpu.as_str());
        self.named(Field::Gpu, base, |text| Catalog::embedded().gpu_or_own(text), |gpu| &gpu.id)
    }

    /// Returns the number of GPUs.
    pub(super) fn gpus(&mut self) -> Option<u32> {
        self.whole(Field::Gpus, self.recipe.map(|recipe| recipe.id.gpus))
    }

    /// Returns the precision. `fp8` is the exact precision that it means in the recipe, where that is known.
    pub(super) fn precision(&mut self) -> Option<Dtype> {
        let Some(recipe) = self.recipe else { return self.value(Field::Dtype, Some(Dtype::Bf16)) };
        let exact = |typed| if typed == recipe.id.dtype { recipe.dtype() } else { typed };
        let typed = self.spec.parse(Field::Dtype).map(|typed| typed.map(exact));
        self.settle(Field::Dtype, typed, Some(recipe.dtype()))
    }

    /// Returns the tokens of a sequence.
    pub(super) fn seq_len(&mut self, model: Option<&Model>) -> Option<u32> {
        let usual = self.recipe.map(|recipe| recipe.seq_len).or(model.map(|model| model.seq_len));
        self.whole(Field::SeqLen, usual)
    }

    /// Returns the number of layers. Another model than the recipe's has all of its layers.
    pub(super) fn layers(&mut self, model: Option<&Model>) -> Option<u32> {
        let of_recipe = self.recipe_of(model).map(|recipe| recipe.layers);
        self.whole(Field::Layers, of_recipe.or(model.map(|model| model.architecture.layers)))
    }

    /// Returns the recipe, if it trains this model.
    pub(super) fn recipe_of(&self, model: Option<&Model>) -> Option<&'static Recipe> {
        self.recipe.filter(|recipe| model.is_some_and(|model| model.id == recipe.id.model))
    }

    /// Returns the recipe's global batch, scaled with the GPU count in a weak series.
    pub(super) fn global_batch(&mut self, gpus: Option<u32>) -> Option<u32> {
        let Some(recipe) = self.recipe else { return self.whole(Field::Gbs, None) };
        let weak = recipe.scaling == Some(Scaling::Weak);
        if self.spec.get(Field::Gbs).is_some() || !weak || gpus.is_none_or(|gpus| gpus == recipe.id.gpus) {
            return self.whole(Field::Gbs, Some(recipe.gbs));
        }
        let gpus = u64::from(gpus?);
        let (batch, per) = (u64::from(recipe.gbs) * gpus, u64::from(recipe.id.gpus));
        match u32::try_from(batch / per) {
            Ok(gbs) if batch.is_multiple_of(per) => {
                self.note_change(Field::Gbs, recipe.gbs, gbs, true);
                Some(gbs)
            }
            // The layout or the batch then reports the problem, with values that work.
            _ => Some(recipe.gbs),
        }
    }

    /// Returns the training software.
    pub(super) fn software(&mut self) -> Option<Software> {
        self.value(Field::Stack, Some(self.recipe.map_or_else(Software::default, Recipe::software)))
    }

    fn named<T: Clone>(
        &mut self,
        field: Field,
        base: Option<&str>,
        find: impl Fn(&str) -> Result<Cow<'static, T>, Problem>,
        id: impl Fn(&T) -> &str,
    ) -> Option<Cow<'static, T>> {
        let Some(text) = self.spec.get(field).or(base) else {
            self.problems.push(missing(field));
            return None;
        };
        match find(text) {
            Ok(found) => {
                if let Some(base) = base {
                    self.note_change(field, base, id(&found), false);
                }
                Some(found)
            }
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    pub(super) fn value<T: FromStr<Err = Problem> + Display + PartialEq>(
        &mut self,
        field: Field,
        base: Option<T>,
    ) -> Option<T> {
        let typed = self.spec.parse(field);
        self.settle(field, typed, base)
    }

    pub(super) fn whole(&mut self, field: Field, base: Option<u32>) -> Option<u32> {
        let typed = self.spec.whole(field);
        self.settle(field, typed, base)
    }

    pub(super) fn switch(&mut self, field: Field, base: bool) -> bool {
        let word = |on: bool| if on { "on" } else { "off" };
        let typed = self.spec.switch(field).map(|on| on.map(word));
        self.settle(field, typed, Some(word(base))) == Some("on")
    }

    pub(super) fn settle<T: Display>(
        &mut self,
        field: Field,
        typed: Result<Option<T>, Problem>,
        base: Option<T>,
    ) -> Option<T> {
        match (typed, base) {
            (Err(problem), _) => {
                self.problems.push(problem);
                None
            }
            (Ok(Some(typed)), base) => {
                if let (Some(base), true) = (base, self.recipe.is_some()) {
                    self.note_change(field, base, &typed, false);
                }
                Some(typed)
            }
            (Ok(None), Some(base)) => Some(base),
            (Ok(None), None) => {
                // Sequence length and layers come from the model, whose absence is already reported.
                if !matches!(field, Field::SeqLen | Field::Layers) {
                    self.problems.push(missing(field));
                }
                None
            }
        }
    }

    fn note_change(&mut self, field: Field, from: impl Display, to: impl Display, follows: bool) {
        let (from, to) = (from.to_string(), to.to_string());
        if from != to {
            self.changes.push(RecipeChange { field, from, to, follows });
        }
    }
}
