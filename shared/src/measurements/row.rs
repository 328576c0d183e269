//! A row of a file of measurements.

use super::subject::MeasuredScenario;
use crate::data_file::{DataError, FromRow, Row};

/// A measured training run.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// Id in the file, or the row's number.
    pub id: String,
    /// Collection of the measurement.
    pub source: String,
    /// Release of the software or of the collection.
    pub release: String,
    /// Model, as the file names it.
    pub model: String,
    /// GPU type, as the file names it.
    pub gpu: String,
    /// Precision, as the file names it.
    pub precision: String,
    /// Software, as the file names it.
    pub framework: String,
    /// Column `use`: `fit`, `small`, `memory`, `exclude`, …
    pub usage: String,
    /// Seconds per step, if measured.
    pub step_time_s: Option<f64>,
    /// Memory of the fullest GPU, bytes, if measured.
    pub memory_bytes: Option<f64>,
    /// How the memory was measured.
    pub memory_kind: String,
    /// The scenario, or why the row can't be predicted.
    pub subject: Result<Box<MeasuredScenario>, String>,
}

impl FromRow for Measurement {
    fn from_row(row: &Row<'_>) -> Result<Measurement, DataError> {
        let cell = |column: &str| row.text(column).unwrap_or("").trim().to_string();
        // A cell that is not a positive number is an error, an empty cell is not.
        let number = |column: &str| match &*cell(column) {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(value) if value.is_finite() && value > 0.0 => Ok(Some(value)),
                _ => Err(format!("{column} “{text}” is not a positive number")),
            },
        };
        let (step_time_s, memory_gib) = (number("step_time_s"), number("memory_gib"));
        let wrong = [&step_time_s, &memory_gib].into_iter().find_map(|number| number.as_ref().err().cloned());
        let id = match cell("id") {
            id if id.is_empty() => row.number().to_string(),
            id => id,
        };
        Ok(Measurement {
            id,
            source: cell("source"),
            release: cell("release"),
            model: cell("model"),
            gpu: cell("gpu"),
            precision: cell("precision"),
            framework: cell("framework"),
            usage: cell("use"),
            step_time_s: step_time_s.unwrap_or_default(),
            memory_bytes: memory_gib.unwrap_or_default().map(|gib| gib * f64::from(1 << 30)),
            memory_kind: cell("memory_kind"),
            subject: wrong.map_or_else(|| MeasuredScenario::read(&cell).map(Box::new), Err),
        })
    }
}

impl Measurement {
    /// Returns model, GPUs, precision and source, for display.
    pub fn title(&self) -> String {
        let Ok(subject) = &self.subject else { return self.id.clone() };
        let gpus = subject.layout.gpus();
        format!(
            "{} on {gpus} {} ({}, {} {})",
            self.model, self.gpu, self.precision, self.source, self.release
        )
    }
}
