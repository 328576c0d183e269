//! Which rows are held out together, frozen in a file before anything was fitted.

use crate::catalog::{DataError, FromRow, Row, read};
use crate::measurements::Measurement;
use std::collections::BTreeMap;

/// What rows are kept together by when they are held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The model, or the shape where a collection measures shapes without names.
    Model,
    /// The model on one GPU type.
    ModelGpu,
    /// The mapping: all but the release of the software.
    Mapping,
}

impl By {
    /// Every way.
    pub const ALL: [By; 3] = [By::Model, By::ModelGpu, By::Mapping];

    /// In words.
    pub const fn title(self) -> &'static str {
        match self {
            By::Model => "model",
            By::ModelGpu => "model and GPU",
            By::Mapping => "mapping",
        }
    }
}

/// The folds of each row, by its id.
#[derive(Debug, Clone, Default)]
pub struct Split(BTreeMap<String, [String; 3]>);

struct Folds(String, [String; 3]);

impl FromRow for Folds {
    fn from_row(row: &Row<'_>) -> Result<Folds, DataError> {
        Ok(Folds(row.string("id")?, [row.string("model")?, row.string("model_gpu")?, row.string("mapping")?]))
    }
}

impl Split {
    /// The frozen split of the embedded measurements.
    pub fn embedded() -> Split {
        #[expect(
            clippy::expect_used,
            reason = "the file is fixed when this is built, and every test reads it"
        )]
        let rows: Vec<Folds> =
            read("split.csv", include_str!("../../data/split.csv")).expect("the split is well formed");
        Split(rows.into_iter().map(|Folds(id, folds)| (id, folds)).collect())
    }

    /// The fold that a row is held out with.
    pub fn fold(&self, row: &Measurement, by: By) -> String {
        let index = By::ALL.iter().position(|one| *one == by).unwrap_or(0);
        match self.0.get(&row.id) {
            Some(folds) => folds[index].clone(),
            None => Split::derive(row)[index].clone(),
        }
    }

    /// The folds of a row that the file does not know, by the rule that the file was made with: mappings fall on twelve
    /// folds by their hash.
    pub fn derive(row: &Measurement) -> [String; 3] {
        let Ok(subject) = &row.subject else { return [const { String::new() }; 3] };
        // Collections without model names measure shapes.
        let unnamed = matches!(&*row.model, "gpt-custom" | "bloom-proxy");
        let model = if unnamed { subject.shape.clone() } else { row.model.clone() };
        let hash = subject
            .mapping
            .bytes()
            .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
        let model_gpu = format!("{model} {}", subject.gpu.id);
        [model, model_gpu, format!("{}", (hash >> 8) % 12)]
    }
}
