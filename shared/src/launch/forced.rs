//! The values that launch scripts force for a recipe, regardless of their own variables:
//! `data/launch_overrides.csv`.

use crate::catalog::{RecipeId, Release};
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::precision::Dtype;
use std::sync::LazyLock;

/// What a script forces for a recipe.
#[derive(Debug)]
pub(super) struct ForcedValues {
    release: Release,
    model: String,
    gpu: String,
    precision: Dtype,
    gpus: u32,
    /// Arguments of the program that the script calls: key and value.
    pub(super) arguments: Vec<(String, String)>,
    /// Environment variables.
    pub(super) env: Vec<(String, String)>,
}

impl ForcedValues {
    /// Returns what is forced for a recipe.
    pub(super) fn of(id: &RecipeId) -> Option<&'static ForcedValues> {
        static OVERRIDES: LazyLock<Vec<ForcedValues>> = LazyLock::new(|| embedded!("launch_overrides.csv"));
        OVERRIDES.iter().find(|ForcedValues { release, model, gpu, precision, gpus, .. }| {
            (release, model, gpu, precision, gpus) == (&id.release, &id.model, &id.gpu, &id.dtype, &id.gpus)
        })
    }
}

/// Returns whether a script forces a field's value for a recipe.
pub(super) fn is_forced(id: &RecipeId, field: Field) -> bool {
    ForcedValues::of(id).is_some_and(|forced| forced.arguments.iter().any(|(key, _)| key == field.flag()))
}

impl FromRow for ForcedValues {
    fn from_row(row: &Row<'_>) -> Result<ForcedValues, DataError> {
        let pairs = |column: &str| -> Result<Vec<(String, String)>, DataError> {
            let pair = |text: &str| {
                let (key, value) = text.split_once('=')?;
                Some((key.to_owned(), value.to_owned()))
            };
            let words = row.text(column)?.split_whitespace();
            words
                .map(|word| {
                    pair(word)
                        .ok_or_else(|| row.error(format!("\"{word}\" in the column {column} has no value")))
                })
                .collect()
        };
        Ok(ForcedValues {
            release: row.value("release")?,
            model: row.string("model")?,
            gpu: row.string("gpu")?,
            precision: row.value("precision")?,
            gpus: row.value("gpus")?,
            arguments: pairs("arguments")?,
            env: pairs("env")?,
        })
    }
}
