//! The folds of held-out rows, fixed in a file before anything was fitted.

use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::measurements::Measurement;
use std::collections::BTreeMap;

choices! {
    /// The property that rows held out together share. The ids are the columns of the split.
    Grouping {
        /// The model, or its shape in collections that measure unnamed shapes.
        Model "model",
        /// The model and the GPU type.
        ModelGpu "model_gpu" "model and GPU",
        /// The mapping: everything but the software release.
        Mapping "mapping",
    }
}

/// The folds of each row, by the row's id.
#[derive(Debug, Clone, Default)]
pub struct FrozenSplit(BTreeMap<String, [String; 3]>);

/// A row of `split.csv`: a row's id and its fold in each grouping.
struct Folds(String, [String; 3]);

impl FromRow for Folds {
    fn from_row(row: &Row<'_>) -> Result<Folds, DataError> {
        let [model, model_gpu, mapping] = Grouping::ALL.map(|by| row.string(by.id()));
        Ok(Folds(row.string("id")?, [model?, model_gpu?, mapping?]))
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
        match self.0.get(&row.id) {
            Some(folds) => folds[by as usize].clone(),
            None => FrozenSplit::derive(row)[by as usize].clone(),
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
