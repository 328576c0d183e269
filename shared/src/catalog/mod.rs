//! The catalog: GPUs, models, recipes and baselines, from the embedded data files.

mod baselines;
mod documents;
mod facets;
mod filter;
mod gpus;
mod models;
mod own;
mod recipes;
mod sources;

pub use crate::releases::Release;
use baselines::MeasuredRecipe;
pub use baselines::{Baseline, BaselineKind, Reference, ReferenceClass};
pub use documents::{Document, DocumentFlops, Formula, Peak};
pub use facets::{Facet, FacetValue};
pub use filter::Filter;
pub use gpus::{Generation, Gpu};
pub use models::{Model, ParameterCounts, Router, RouterScore};
pub use recipes::{Recipe, RecipeId, Scaling};
pub use sources::{Collection, is_unnamed_shape, measured_model_title};

use crate::data_file::embedded;
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::precision::Dtype;
use crate::problem::Problem;
use crate::units::group_digits;
use std::sync::LazyLock;

/// GPUs, models, documents, recipes and baselines.
///
/// Each data file is read when it is first needed. A program embeds only the files that it can need.
#[derive(Debug)]
pub struct Catalog(());

/// Declares a method that returns the rows of an embedded data file.
macro_rules! rows {
    ($(#[$meta:meta])* $visibility:vis $name:ident: $row:ty = $rows:expr) => {
        $(#[$meta])*
        $visibility fn $name(&self) -> &'static [$row] {
            static ROWS: LazyLock<Vec<$row>> = LazyLock::new(|| $rows);
            &ROWS
        }
    };
}

impl Catalog {
    /// Returns the embedded catalog.
    pub fn embedded() -> &'static Catalog {
        &Catalog(())
    }

    rows! {
        /// Returns every GPU type.
        pub gpus: Gpu = embedded!("gpus.csv")
    }

    rows! {
        /// Returns every model.
        pub models: Model = embedded!("models.csv")
    }

    rows! {
        /// Returns every recipe, by release and in the order of its document.
        pub recipes: Recipe = embedded!("recipes.csv").into_iter().flat_map(recipes::MatrixRow::into_recipes).collect()
    }

    rows! {
        /// Returns every published result.
        pub baselines: Baseline = embedded!("baselines.csv")
    }

    rows! { measured_recipes: MeasuredRecipe = embedded!("measured_recipes.csv") }

    rows! { documents: Document = embedded!("documents.csv") }

    rows! { flops: DocumentFlops = embedded!("document_flops.csv") }

    rows! { peaks: Peak = embedded!("document_peaks.csv") }

    /// Returns the GPU type with this id or alias.
    ///
    /// # Errors
    /// It is unknown.
    pub fn gpu(&self, id: &str) -> Result<&Gpu, Problem> {
        let wanted = id.trim().to_ascii_lowercase();
        self.gpus()
            .iter()
            .find(|gpu| gpu.answers_to(&wanted))
            .ok_or_else(|| Problem::unknown(Field::Gpu, id, self.gpus().iter().map(|gpu| gpu.id.as_str())))
    }

    /// Returns the model with this id.
    ///
    /// # Errors
    /// It is unknown.
    pub fn model(&self, id: &str) -> Result<&Model, Problem> {
        let wanted = id.trim().to_ascii_lowercase();
        self.models().iter().find(|model| model.id == wanted).ok_or_else(|| {
            Problem::unknown(Field::Model, id, self.models().iter().map(|model| model.id.as_str()))
        })
    }

    /// Returns the recipe with this id. Without a release, it is the newest with a published result, or the newest.
    ///
    /// # Errors
    /// It is unknown.
    pub fn recipe(&self, id: &str) -> Result<&Recipe, Problem> {
        self.recipes_named(id)
            .max_by_key(|recipe| (self.is_measured(&recipe.id), recipe.id.release))
            .ok_or_else(|| self.unknown_recipe(id))
    }

    /// Returns the model of the recipe with this id. It doesn't depend on the release.
    ///
    /// # Errors
    /// The recipe is unknown.
    pub fn model_of_recipe(&self, id: &str) -> Result<&Model, Problem> {
        let recipe = self.recipes_named(id).next().ok_or_else(|| self.unknown_recipe(id))?;
        self.model(&recipe.id.model)
    }

    /// Iterates over the recipes with this id; without a release, those of every release.
    fn recipes_named(&self, id: &str) -> impl Iterator<Item = &'static Recipe> {
        let wanted = id.trim().to_ascii_lowercase();
        self.recipes().iter().filter(move |recipe| match wanted.contains('@') {
            true => recipe.id.to_string() == wanted,
            false => recipe.id.without_release() == wanted,
        })
    }

    fn unknown_recipe(&self, id: &str) -> Problem {
        Problem::unknown(Field::Recipe, id, []).worded(|unknown| {
            let known = self.recipe_names(id.contains('@'));
            let mut alike = recipes::with_most_in_common(id, self.recipes()).into_iter();
            match alike.next() {
                Some(closest) => Problem { closest: Some(closest), ..unknown.suggest(alike).allow(known) },
                None => Problem::unknown(Field::Recipe, id, known.iter().map(String::as_str)),
            }
        })
    }

    fn recipe_names(&self, with_release: bool) -> Vec<String> {
        let name = |recipe: &Recipe| match with_release {
            true => recipe.id.to_string(),
            false => recipe.id.without_release(),
        };
        self.recipes().iter().map(name).collect()
    }

    /// Returns a problem. If only the number of GPUs of the id has no published recipe, the problem names the recipe of the nearest
    /// size, and how to scale it.
    pub fn with_nearest_size(&self, problem: Problem) -> Problem {
        if problem.field != Field::Recipe || self.recipe(&problem.given).is_ok() {
            return problem;
        }
        // A proxy has fewer layers, and doesn't scale.
        let names = self.recipe_names(problem.given.contains('@')).into_iter();
        let scalable = names.filter(|name| self.recipe(name).is_ok_and(|recipe| recipe.scaling.is_some()));
        let Some((gpus, nearest)) = recipes::of_nearest_size(&problem.given, scalable) else {
            return problem;
        };
        let scale = message![
            format!(" To scale a recipe to {} GPUs, set ", group_digits(f64::from(gpus))),
            Setting::new(Field::Gpus, gpus),
            "."
        ];
        let message = problem.message.and(scale);
        Problem { closest: Some(nearest), message, suggestions: Vec::new(), ..problem }
    }

    /// Whether a table of a document has a result of the recipe: [`Catalog::baseline`] without the result.
    pub fn is_measured(&self, id: &RecipeId) -> bool {
        self.measured_recipes().iter().any(|measured| measured.is(id))
    }

    /// Returns the published result of a recipe.
    pub fn baseline(&self, id: &RecipeId) -> Option<&'static Baseline> {
        self.baselines().iter().find(|baseline| baseline.is_of(id))
    }

    /// Returns the published result that runs of a recipe are compared with: its own, or by weak scaling the one of the same
    /// layout at the nearest GPU count.
    pub fn reference(&self, recipe: &Recipe) -> Option<Reference> {
        if let Some(baseline) = self.baseline(&recipe.id) {
            return Some(Reference { baseline, gpus: recipe.id.gpus, class: ReferenceClass::Exact });
        }
        let scaled = self.recipes().iter().filter(|other| recipe.is_weak_scaled(other));
        let measured = scaled.filter_map(|other| Some((other.id.gpus, self.baseline(&other.id)?)));
        let (gpus, baseline) = measured.min_by_key(|(gpus, _)| (gpus.abs_diff(recipe.id.gpus), *gpus))?;
        Some(Reference { baseline, gpus, class: ReferenceClass::WeakScaled })
    }

    /// Returns the document of a recipe.
    pub fn document(&self, id: &RecipeId) -> Option<&Document> {
        self.document_of(id.release, &id.model)
    }

    /// Returns the document with a release's recipes of a model.
    pub fn document_of(&self, release: Release, model: &str) -> Option<&Document> {
        let family = &self.model(model).ok()?.family;
        self.documents().iter().find(|document| {
            document.release == release && model.starts_with(&document.family) && !family.is_empty()
        })
    }

    /// Returns where a recipe was read: its document, or the script, with the line if there is one.
    pub fn source_of(&self, recipe: &Recipe) -> Option<String> {
        let source = &self.document(&recipe.id)?.source;
        Some(match recipe.line {
            Some(line) => format!("{source}, line {line}"),
            None => source.clone(),
        })
    }

    /// Returns how a release's document counts a model's FLOPs.
    pub fn document_flops(&self, release: Release, model: &str) -> Option<&DocumentFlops> {
        self.flops().iter().find(|flops| flops.release == release && flops.model == model)
    }

    /// Returns the peak behind the MFU of a model in a release's document.
    pub fn document_peak(&self, release: Release, model: &str, gpu: &str, dtype: Dtype) -> Option<&Peak> {
        let release = release.described_as();
        self.peaks().iter().find(|peak| {
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
    fn an_mfu_divides_by_the_peak_of_the_documents() {
        let catalog = Catalog::embedded();
        assert!(catalog.peaks().len() > 50);
        for peak in catalog.peaks() {
            let gpu = catalog.gpu(&peak.gpu).unwrap();
            assert_eq!(gpu.mfu_tflops(peak.precision), peak.stated_tflops, "{} {}", peak.gpu, peak.family);
        }
    }

    #[test]
    fn the_releases_hold_987_recipes_608_without_their_release() {
        let catalog = Catalog::embedded();
        let ids: BTreeSet<_> = catalog.recipes().iter().map(|recipe| recipe.id.to_string()).collect();
        let short: BTreeSet<_> = catalog.recipes().iter().map(|recipe| recipe.id.without_release()).collect();
        assert_eq!((catalog.recipes().len(), ids.len(), short.len()), (987, 987, 608));
    }

    #[test]
    fn every_published_measurement_belongs_to_one_recipe() {
        let catalog = Catalog::embedded();
        let measured = catalog.baselines().iter().filter(|baseline| baseline.kind == BaselineKind::Table);
        let with_recipe = catalog.recipes().iter().filter(|recipe| catalog.baseline(&recipe.id).is_some());
        // Those of Megatron-Bridge's main branch are also those of its version 0.6.0, which has the same recipes.
        let (own, shared): (Vec<&Recipe>, Vec<&Recipe>) =
            with_recipe.partition(|recipe| recipe.id.release == recipe.id.release.described_as());
        assert_eq!((measured.count(), own.len(), shared.len()), (115, 115, 15));
        let agrees =
            |recipe: &Recipe| catalog.is_measured(&recipe.id) == catalog.baseline(&recipe.id).is_some();
        assert!(catalog.recipes().iter().all(agrees));
    }

    #[test]
    fn version_0_6_0_of_megatron_bridge_has_the_recipes_of_main_but_six_and_two_differ() {
        let catalog = Catalog::embedded();
        let of =
            |release: Release| catalog.recipes().iter().filter(move |recipe| recipe.id.release == release);
        let on_main = |recipe: &Recipe| {
            let id = RecipeId { release: Release::BridgeMain, ..recipe.id.clone() };
            of(Release::BridgeMain).find(|other| other.id == id).unwrap()
        };
        let differs = |recipe: &&Recipe| {
            let main = on_main(recipe);
            Recipe { id: main.id.clone(), ..(*recipe).clone() } != *main
        };
        let differing: Vec<&Recipe> = of(Release::Bridge060).filter(differs).collect();
        let ids: Vec<String> = differing.iter().map(|recipe| recipe.id.to_string()).collect();
        let nano = "nemotron-3-nano-30b/h100/fp8-current/16@bridge-0.6.0";
        assert_eq!(ids, [nano, "qwen3-30b-a3b/vr200/mxfp8/8@bridge-0.6.0"]);
        // What the two recipes of v0.6.0 set, and those of main.
        let eps = [differing[0], on_main(differing[0])].map(|recipe| recipe.degrees.ep);
        let mbs = [differing[1], on_main(differing[1])].map(|recipe| recipe.mbs);
        assert_eq!((eps, mbs), ([8, 16], [8, 4]));
        assert_eq!((of(Release::Bridge060).count(), of(Release::BridgeMain).count()), (285, 291));
        // So each of them can share the published results of main.
        assert!(differing.iter().all(|recipe| catalog.baseline(&recipe.id).is_none()));
    }

    #[test]
    fn of_release_26_06_01_25_recipes_were_measured_and_56_can_be_scaled() {
        let catalog = Catalog::embedded();
        let newest = catalog.recipes().iter().filter(|recipe| recipe.id.release == Release::R26_06_01);
        let classes: Vec<_> =
            newest.map(|recipe| catalog.reference(recipe).map(|reference| reference.class)).collect();
        let of = |class| classes.iter().filter(|one| **one == class).count();
        assert_eq!(of(Some(ReferenceClass::Exact)), 25);
        assert_eq!(of(Some(ReferenceClass::WeakScaled)), 56);
        assert_eq!(of(None), 207);
    }

    #[test]
    fn every_recipe_has_its_document_flops_and_peak() {
        let catalog = Catalog::embedded();
        for recipe in catalog.recipes() {
            let RecipeId { release, model, gpu, dtype, .. } = &recipe.id;
            assert!(catalog.document(&recipe.id).is_some(), "{}", recipe.id);
            let has_formula = catalog.document_flops(*release, model).is_some();
            assert_eq!(has_formula, release.software().has_flops_formulas, "{}", recipe.id);
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
        let catalog = Catalog::embedded();
        let unknown = |id: &str| catalog.with_nearest_size(catalog.recipe(id).unwrap_err());
        for (id, nearest) in [
            ("llama3.1-405b/h100/fp8/500", "llama3.1-405b/h100/fp8/512"),
            // The 128 GPUs of release 25.04 run a proxy.
            ("llama3.1-405b/h100/fp8/200", "llama3.1-405b/h100/fp8/512"),
            ("llama3.1-405b/gb300/bf16/2048@bridge-main", "llama3.1-405b/gb300/bf16/256@bridge-main"),
            ("llama3.1-405b/h100/fp8/3000@25.04", "llama3.1-405b/h100/fp8/2048@25.04"),
        ] {
            let problem = unknown(id);
            assert_eq!(problem.closest.as_deref(), Some(nearest), "{id}");
            assert!(problem.to_string().contains(" GPUs, set --gpus "), "{problem}");
        }
        let problem = unknown("llama3.1-405b/h100/fp8/1500@25.04");
        assert!(problem.suggestions.is_empty(), "{problem}");
        let problem = unknown("lama3.1-405b/h100/fp8/512");
        assert_eq!(problem.closest.as_deref(), Some("llama3.1-405b/h100/fp8/512"));
        assert!(!problem.to_string().contains("--gpus"), "{problem}");
    }

    #[test]
    fn an_unknown_recipe_names_those_with_most_parts_in_common() {
        let catalog = Catalog::embedded();
        let most = "llama3.1-405b/gb300/fp8";
        for (id, meant) in [
            // Another number of GPUs, nearest first.
            (
                "llama3.1-405b/gb300/fp8/1024@26.06.01",
                [format!("{most}/512@26.06.01"), format!("{most}/256@26.06.01")].to_vec(),
            ),
            // A precision that the release lacks. Precisions of the same width come first.
            (
                "llama3.1-405b/gb300/mxfp8/512@26.06.01",
                [format!("{most}/512@26.06.01"), "llama3.1-405b/gb300/nvfp4/512@26.06.01".into()].to_vec(),
            ),
            // A GPU type that the release lacks, and one that no recipe has.
            ("llama3.1-405b/b200/fp8/512@25.04", vec!["llama3.1-405b/b200/fp8/512@26.06.01".into()]),
            ("llama3.1-405b/t4/fp8/2048@25.04", vec!["llama3.1-405b/h100/fp8/2048@25.04".into()]),
            // A release that doesn't exist, and two misspelt parts.
            ("llama3.1-405b/h100/fp8/512@25.4", vec!["llama3.1-405b/h100/fp8/512@25.04".into()]),
            ("lama3.1-405b/h10/fp8/512@25.04", vec!["llama3.1-405b/h100/fp8/512@25.04".into()]),
            // Proxies with fewer layers come last.
            (
                "llama3.1-405b/h100/fp8/500@25.04",
                [512, 1024, 2048].map(|gpus| format!("llama3.1-405b/h100/fp8/{gpus}@25.04")).to_vec(),
            ),
            // Several releases have the same id without a release.
            ("llama3.1-405b/gb300/fp8/600", [512, 256].map(|gpus| format!("{most}/{gpus}")).to_vec()),
        ] {
            let problem = catalog.recipe(id).unwrap_err();
            let named: Vec<String> = problem.closest.iter().chain(&problem.suggestions).cloned().collect();
            assert_eq!(named, meant, "{id}");
        }
    }

    #[test]
    fn a_text_that_is_no_id_or_too_long_names_no_parts() {
        let recipes = Catalog::embedded().recipes();
        let long = "llama3.1-405b/h100/".to_string() + &"fp8/".repeat(100);
        for text in ["", "/", "//@", "llama3.1-405b", "zzzz/h100/fp8/512", &long] {
            assert!(recipes::with_most_in_common(text, recipes).is_empty(), "{text}");
        }
        // Whatever else is missing, the model counts.
        for text in ["llama3.1-405b/", "llama3.1-405b/h100", "llama3.1-405b/x/y/-1+z/w/v@@"] {
            let named = recipes::with_most_in_common(text, recipes);
            assert!(named.iter().all(|id| id.starts_with("llama3.1-405b/")), "{text}: {named:?}");
            assert!((1..=3).contains(&named.len()), "{text}: {named:?}");
        }
    }
}
