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
        // What is there and no positive number is a reason, not an absence.
        let number = |column: &str| match &*cell(column) {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(value) if value.is_finite() && value > 0.0 => Ok(Some(value)),
                _ => Err(format!("{column} “{text}” is no positive number")),
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
            subject: wrong.map_or_else(|| Subject::read(&cell).map(Box::new), Err),
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
