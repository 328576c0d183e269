//! The collections of measured runs, and the titles of models that are measured but not in the catalog.

use super::Catalog;
use crate::data_file::{DataError, FromRow, Row, embedded};
use std::sync::LazyLock;

/// A collection of measured runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// The id in `measurements.csv`.
    pub id: String,
    /// The name for people.
    pub title: String,
    /// The address of the collection.
    pub url: String,
}

impl FromRow for Collection {
    fn from_row(row: &Row<'_>) -> Result<Collection, DataError> {
        Ok(Collection { id: row.string("id")?, title: row.string("title")?, url: row.string("url")? })
    }
}

impl Collection {
    /// Returns the collection with an id.
    pub fn of(id: &str) -> Option<&'static Collection> {
        static SOURCES: LazyLock<Vec<Collection>> = LazyLock::new(|| embedded!("sources.csv"));
        SOURCES.iter().find(|source| source.id == id)
    }

    /// Returns a collection's title with a release: `Megatron-Bridge 26.06`. An unknown id is its own title.
    pub fn with_release(id: &str, release: &str) -> String {
        let title = Collection::of(id).map_or(id, |source| &source.title);
        match release {
            "" => title.to_string(),
            // MLPerf's rounds are named after it.
            _ if release.starts_with(title) => release.to_string(),
            _ => format!("{title} {release}"),
        }
    }
}

/// A row of `measured_models.csv`.
struct MeasuredModel {
    id: String,
    title: String,
    /// Whether it is a shape without a name, made to compare layouts.
    is_shape: bool,
}

impl FromRow for MeasuredModel {
    fn from_row(row: &Row<'_>) -> Result<MeasuredModel, DataError> {
        Ok(MeasuredModel { id: row.string("id")?, title: row.string("title")?, is_shape: row.yes("shape")? })
    }
}

impl MeasuredModel {
    /// Returns the model with an id that the catalog of models doesn't have.
    fn of(id: &str) -> Option<&'static MeasuredModel> {
        static MODELS: LazyLock<Vec<MeasuredModel>> = LazyLock::new(|| embedded!("measured_models.csv"));
        MODELS.iter().find(|model| model.id == id)
    }
}

/// Returns the name of a measured model for people. An unknown id is its own name.
pub fn measured_model_title(id: &str) -> &str {
    // Not `Catalog::model`, which looks for similar names: a calibration asks millions of times.
    match Catalog::embedded().models().iter().find(|model| model.id == id) {
        Some(model) => &model.title,
        None => MeasuredModel::of(id).map_or(id, |model| &model.title),
    }
}

/// Returns whether a measured model is a shape without a name, made to compare layouts.
pub fn is_unnamed_shape(id: &str) -> bool {
    MeasuredModel::of(id).is_some_and(|model| model.is_shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_follows_the_title_of_its_collection_once() {
        assert_eq!(Collection::with_release("megatron-bridge", "26.06"), "Megatron-Bridge 26.06");
        assert_eq!(Collection::with_release("mlperf", "MLPerf v5.1"), "MLPerf v5.1");
        assert_eq!(Collection::with_release("own", ""), "own");
    }

    #[test]
    fn measured_models_have_titles() {
        assert_eq!(measured_model_title("llama3.1-8b"), "Llama 3.1 8B");
        assert_eq!(measured_model_title("gpt-custom"), "GPT shapes");
        assert_eq!(measured_model_title("own"), "own");
    }

    #[cfg(feature = "calibrate")]
    #[test]
    fn every_measured_run_has_a_collection_and_a_model_with_a_title() {
        for row in crate::measurements::embedded() {
            assert!(Collection::of(&row.source).is_some(), "{}", row.source);
            assert_ne!(measured_model_title(&row.model), row.model, "{}", row.id);
        }
    }
}
