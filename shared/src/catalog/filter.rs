//! Filters of recipes.

use super::{Catalog, Recipe, Release, Scaling};
use crate::field::Field;
use crate::precision::Dtype;
use crate::problem::{Problem, all_of};
use crate::spec::Spec;

/// A filter of recipes. Empty fields match every recipe.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    model: Option<String>,
    gpu: Option<String>,
    gpus: Option<u32>,
    dtype: Option<Dtype>,
    release: Option<Release>,
    scaling: Option<Scaling>,
    measured: bool,
}

impl Filter {
    /// Returns the filter of the fields model (an id or its beginning), gpu, gpus, dtype, release, scaling and measured.
    ///
    /// # Errors
    /// Every field with an unknown value.
    pub fn from_spec(spec: &Spec) -> Result<Filter, Vec<Problem>> {
        let mut problems = Vec::new();
        let filter = Filter {
            model: keep(model(spec), &mut problems),
            gpu: keep(gpu(spec), &mut problems),
            gpus: keep(spec.whole(Field::Gpus), &mut problems),
            dtype: keep(spec.parse(Field::Dtype), &mut problems),
            release: keep(spec.parse(Field::Release), &mut problems),
            scaling: keep(spec.parse(Field::Scaling), &mut problems),
            measured: keep(measured(spec), &mut problems).unwrap_or(false),
        };
        if problems.is_empty() { Ok(filter) } else { Err(problems) }
    }

    /// Returns whether a recipe matches.
    pub fn keeps(&self, recipe: &Recipe) -> bool {
        let id = &recipe.id;
        self.model.as_ref().is_none_or(|model| id.model.starts_with(model.as_str()))
            && self.gpu.as_ref().is_none_or(|gpu| id.gpu == *gpu)
            && self.gpus.is_none_or(|gpus| id.gpus == gpus)
            && self.dtype.is_none_or(|dtype| id.dtype == dtype)
            && self.release.is_none_or(|release| id.release == release)
            && self.scaling.is_none_or(|scaling| recipe.scaling == Some(scaling))
            && (!self.measured || Catalog::embedded().is_measured(id))
    }
}

fn keep<T>(read: Result<Option<T>, Problem>, problems: &mut Vec<Problem>) -> Option<T> {
    read.unwrap_or_else(|problem| {
        problems.push(problem);
        None
    })
}

fn model(spec: &Spec) -> Result<Option<String>, Problem> {
    let Some(text) = spec.get(Field::Model) else { return Ok(None) };
    let wanted = text.to_ascii_lowercase();
    let mut known: Vec<&str> = Vec::new();
    for recipe in Catalog::embedded().recipes() {
        if !known.contains(&recipe.id.model.as_str()) {
            known.push(&recipe.id.model);
        }
    }
    if known.iter().any(|id| id.starts_with(&wanted)) {
        return Ok(Some(wanted));
    }
    Err(match Catalog::embedded().model(&wanted) {
        Ok(model) => {
            let list = all_of(&known);
            let message = format!("No recipe is published for {}, only for {list}.", model.title);
            Problem::new(Field::Model, text, message)
        }
        Err(_) => Problem::unknown(Field::Model, text, known),
    })
}

fn gpu(spec: &Spec) -> Result<Option<String>, Problem> {
    spec.get(Field::Gpu).map(|text| Catalog::embedded().gpu(text).map(|gpu| gpu.id.clone())).transpose()
}

fn measured(spec: &Spec) -> Result<Option<bool>, Problem> {
    match spec.get(Field::Measured) {
        None => Ok(None),
        Some("yes") => Ok(Some(true)),
        Some(other) => Err(Problem::unknown(Field::Measured, other, ["yes"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(fields: &[(Field, &str)]) -> usize {
        let spec = fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
        let filter = Filter::from_spec(&spec).unwrap();
        Catalog::embedded().recipes().iter().filter(|recipe| filter.keeps(recipe)).count()
    }

    #[test]
    fn filters_narrow() {
        assert_eq!(kept(&[]), 987);
        assert_eq!(kept(&[(Field::Measured, "yes")]), 130);
        assert_eq!(kept(&[(Field::Model, "llama3.1")]), 322);
        assert_eq!(kept(&[(Field::Scaling, "strong"), (Field::Gpu, "b200")]), 8);
        assert_eq!(kept(&[(Field::Release, "24.11"), (Field::Dtype, "fp8"), (Field::Gpus, "512")]), 1);
    }

    #[test]
    fn every_wrong_field_is_named() {
        let spec = Spec::default().with(Field::Model, "lama").with(Field::Scaling, "week");
        let problems = Filter::from_spec(&spec).unwrap_err();
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[1].closest.as_deref(), Some("weak"));
    }
}
