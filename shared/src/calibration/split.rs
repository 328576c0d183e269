//! The folds of held-out rows, fixed in a file before anything was fitted.

use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::measurements::Measurement;
use std::collections::BTreeMap;

/// The property that rows held out together share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// The model, or its shape in collections that measure unnamed shapes.
    Model,
    /// The model and the GPU type.
    ModelGpu,
    /// The mapping: everything but the software release.
    Mapping,
}

impl Grouping {
    /// Every grouping, in the order of the split's columns.
    pub const ALL: [Grouping; 3] = [Grouping::Model, Grouping::ModelGpu, Grouping::Mapping];

    /// Returns the name that reports show.
    pub const fn title(self) -> &'static str {
        match self {
            Grouping::Model => "model",
            Grouping::ModelGpu => "model and GPU",
            Grouping::Mapping => "mapping",
        }
    }
}

/// The folds of each row, by the row's id.
#[derive(Debug, Clone, Default)]
pub struct FrozenSplit(BTreeMap<String, [String; 3]>);

/// A row of `split.csv`: a row's id and its fold in each grouping.
struct Folds(String, [String; 3]);

impl FromRow for Folds {
    fn from_row(row: &Row<'_>) -> Result<Folds, DataError> {
        Ok(Folds(row.string("id")?, [row.string("model")?, row.string("model_gpu")?, row.string("mapping")?]))
    }
}

impl FrozenSplit {
    /// Returns the split of the embedded measurements.
    pub fn embedded() -> FrozenSplit {
        let rows: Vec<Folds> = embedded!("split.csv");
        FrozenSplit(rows.into_iter().map(|Folds(id, folds)| (id, folds)).collect())
    }

    /// Returns the fold of a row.
    pub fn fold(&self, row: &Measurement, by: Grouping) -> String {
        let index = Grouping::ALL.iter().position(|one| *one == by).unwrap_or(0);
        match self.0.get(&row.id) {
            Some(folds) => folds[index].clone(),
            None => FrozenSplit::derive(row)[index].clone(),
        }
    }

    /// Returns the folds of a row that the file does not contain, by the rule that created the file: mappings
    /// are hashed to twelve folds.
    pub fn derive(row: &Measurement) -> [String; 3] {
        let Ok(scenario) = &row.scenario else { return [const { String::new() }; 3] };
        // These collections measure unnamed shapes.
        let unnamed = matches!(&*row.model, "gpt-custom" | "bloom-proxy");
        let model = if unnamed { scenario.shape.clone() } else { row.model.clone() };
        let hash = scenario
            .mapping
            .bytes()
            .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
        let model_gpu = format!("{model} {}", scenario.gpu.id);
        [model, model_gpu, format!("{}", (hash >> 8) % 12)]
    }
}
