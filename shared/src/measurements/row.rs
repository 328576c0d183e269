//! A row of measurements as its file says it.

use super::subject::Subject;
use crate::catalog::{DataError, FromRow, Row};

/// A measured training run.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// Its name in the file.
    pub id: String,
    /// The collection that it was read from.
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
    /// What the row is good for.
    pub usage: String,
    /// Seconds per step, where measured.
    pub step_time_s: Option<f64>,
    /// Memory of the fullest GPU, bytes, where measured.
    pub memory_bytes: Option<f64>,
    /// How that was measured.
    pub memory_kind: String,
    /// What was run, or why it can't be predicted.
    pub subject: Result<Box<Subject>, String>,
}

impl FromRow for Measurement {
    fn from_row(row: &Row<'_>) -> Result<Measurement, DataError> {
        let cell = |column: &str| row.text(column).unwrap_or("").trim().to_string();
        let number =
            |column: &str| cell(column).parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
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
            step_time_s: number("step_time_s"),
            memory_bytes: number("memory_gib").map(|gib| gib * f64::from(1 << 30)),
            memory_kind: cell("memory_kind"),
            subject: Subject::read(&cell).map(Box::new),
        })
    }
}

impl Measurement {
    /// What was measured, in words.
    pub fn in_words(&self) -> String {
        let Ok(subject) = &self.subject else { return self.id.clone() };
        let gpus = subject.layout.gpus();
        format!(
            "{} on {gpus} {} in {}, {} {}",
            self.model, self.gpu, self.precision, self.source, self.release
        )
    }
}
