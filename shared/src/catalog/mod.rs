//! What is published: GPUs, models, recipes and their baselines, read from the data files of this crate.

mod baselines;
mod documents;
mod facets;
mod filter;
mod gpus;
mod models;
mod own;
mod recipes;

pub use crate::releases::Release;
pub use baselines::{Baseline, BaselineKind};
pub use documents::{Document, DocumentFlops, Formula, Peak};
pub use facets::{Choice, Facet};
pub use filter::Filter;
pub use gpus::{Generation, Gpu};
pub use models::Model;
pub use recipes::{Recipe, RecipeId, Scaling};

use crate::data_file::embedded;
use crate::field::Field;
use crate::precision::Dtype;
use crate::problem::Problem;
use std::sync::LazyLock;

/// Everything published, with what binds it together.
#[derive(Debug)]
pub struct Catalog {
    gpus: Vec<Gpu>,
    models: Vec<Model>,
    documents: Vec<Document>,
    flops: Vec<DocumentFlops>,
    peaks: Vec<Peak>,
    recipes: Vec<Recipe>,
    baselines: Vec<Baseline>,
}

impl Catalog {
    /// The catalog that this program carries.
    pub fn embedded() -> &'static Catalog {
        static EMBEDDED: LazyLock<Catalog> = LazyLock::new(|| {
            let series: Vec<recipes::MatrixRow> = embedded!("recipes.csv");
            Catalog {
                gpus: embedded!("gpus.csv"),
                models: embedded!("models.csv"),
                documents: embedded!("documents.csv"),
                flops: embedded!("document_flops.csv"),
                peaks: embedded!("document_peaks.csv"),
                recipes: series.into_iter().flat_map(recipes::MatrixRow::into_recipes).collect(),
                baselines: embedded!("baselines.csv"),
            }
        });
        &EMBEDDED
    }

    /// Every GPU type.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Every model.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Every recipe, by release and then as its document lists them.
    pub fn recipes(&self) -> &[Recipe] {
        &self.recipes
    }

    /// Every published number.
    pub fn baselines(&self) -> &[Baseline] {
        &self.baselines
    }

    /// The GPU type of that name or alias.
    ///
    /// # Errors
    /// None has it: says which there are.
    pub fn gpu(&self, id: &str) -> Result<&Gpu, Problem> {
        let wanted = id.trim().to_ascii_lowercase();
        self.gpus
            .iter()
            .find(|gpu| gpu.answers_to(&wanted))
            .ok_or_else(|| Problem::unknown(Field::Gpu, id, self.gpus.iter().map(|gpu| gpu.id.as_str())))
    }

    /// The model of that name.
    ///
    /// # Errors
    /// None has it: names the nearest, and where to see all.
    pub fn model(&self, id: &str) -> Result<&Model, Problem> {
        let wanted = id.trim().to_ascii_lowercase();
        self.models.iter().find(|model| model.id == wanted).ok_or_else(|| {
            Problem::unknown(Field::Model, id, self.models.iter().map(|model| model.id.as_str()))
        })
    }

    /// The recipe of that name; without its release, the newest release that published a number for it, or the
    /// newest at all where none did.
    ///
    /// # Errors
    /// None has it: names the nearest.
    pub fn recipe(&self, id: &str) -> Result<&Recipe, Problem> {
        let wanted = id.trim().to_ascii_lowercase();
        let named = self.recipes.iter().filter(|recipe| match wanted.contains('@') {
            true => recipe.id.to_string() == wanted,
            false => recipe.id.without_release() == wanted,
        });
        named
            .max_by_key(|recipe| (self.baseline(&recipe.id).is_some(), recipe.id.release))
            .ok_or_else(|| self.unknown_recipe(id))
    }

    fn unknown_recipe(&self, id: &str) -> Problem {
        let with_release = id.contains('@');
        let known: Vec<String> = self
            .recipes
            .iter()
            .map(|recipe| if with_release { recipe.id.to_string() } else { recipe.id.without_release() })
            .collect();
        Problem::unknown(Field::Recipe, id, known.iter().map(String::as_str))
    }

    /// The published measurement of a recipe.
    pub fn baseline(&self, id: &RecipeId) -> Option<&Baseline> {
        self.baselines.iter().find(|baseline| baseline.is_of(id))
    }

    /// The document that publishes a recipe.
    pub fn document(&self, id: &RecipeId) -> Option<&Document> {
        let family = &self.model(&id.model).ok()?.family;
        self.documents.iter().find(|document| {
            document.release == id.release && id.model.starts_with(&document.family) && !family.is_empty()
        })
    }

    /// How a release's document counts a model's FLOPs.
    pub fn document_flops(&self, release: Release, model: &str) -> Option<&DocumentFlops> {
        self.flops.iter().find(|flops| flops.release == release && flops.model == model)
    }

    /// The peak that a release's document divides a model's MFU by.
    pub fn document_peak(&self, release: Release, model: &str, gpu: &str, dtype: Dtype) -> Option<&Peak> {
        self.peaks.iter().find(|peak| {
            peak.release == release
                && model.starts_with(&peak.family)
                && peak.gpu == gpu
                && peak.precision.width() == dtype.width()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_matrices_hold_123_recipes_107_without_their_release() {
        let catalog = Catalog::embedded();
        let ids: BTreeSet<_> = catalog.recipes.iter().map(|recipe| recipe.id.to_string()).collect();
        let short: BTreeSet<_> = catalog.recipes.iter().map(|recipe| recipe.id.without_release()).collect();
        assert_eq!((catalog.recipes.len(), ids.len(), short.len()), (123, 123, 107));
    }

    #[test]
    fn every_published_measurement_belongs_to_one_recipe() {
        let catalog = Catalog::embedded();
        let measured = catalog.baselines.iter().filter(|baseline| baseline.kind == BaselineKind::Table);
        let with_recipe = catalog.recipes.iter().filter(|recipe| catalog.baseline(&recipe.id).is_some());
        assert_eq!((measured.count(), with_recipe.count()), (75, 75));
    }

    #[test]
    fn every_recipe_has_its_document_flops_and_peak() {
        let catalog = Catalog::embedded();
        for recipe in &catalog.recipes {
            let RecipeId { release, model, gpu, dtype, .. } = &recipe.id;
            assert!(catalog.document(&recipe.id).is_some(), "{}", recipe.id);
            assert!(catalog.document_flops(*release, model).is_some(), "{}", recipe.id);
            assert!(catalog.document_peak(*release, model, gpu, *dtype).is_some(), "{}", recipe.id);
            assert!(catalog.gpu(gpu).is_ok() && catalog.model(model).is_ok(), "{}", recipe.id);
        }
    }

    #[test]
    fn a_short_name_means_the_newest_release_with_a_number() {
        let catalog = Catalog::embedded();
        let release = |id: &str| catalog.recipe(id).unwrap().id.release.to_string();
        assert_eq!(release("nemotron4-340b/h100/fp8/256"), "25.04", "25.12 lists it and publishes no number");
        assert_eq!(release("nemotron4-340b/h100/fp8/128"), "24.11");
        assert_eq!(release("nemotron4-340b/gb200/fp8/256/strong"), "25.12");
        assert_eq!(release("nemotron4-340b/h100/fp8/256@25.12"), "25.12");
    }

    #[test]
    fn an_unknown_recipe_names_the_nearest() {
        let problem = Catalog::embedded().recipe("llama3.1-405b/h100/fp8/500").unwrap_err();
        assert_eq!(problem.closest.as_deref(), Some("llama3.1-405b/h100/fp8/512"));
    }
}
