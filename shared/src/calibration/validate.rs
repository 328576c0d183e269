//! Predicting every row of a file, and how far off that is.

use super::Summary;
use crate::estimate::{Anchors, BasisKind, Constants, Kinship, Known, Memory};
use crate::measurements::{Measurement, embedded};
use serde::Serialize;
use std::collections::BTreeMap;

/// A row, predicted.
#[derive(Debug, Clone, Serialize)]
pub struct Validated {
    /// Its name.
    pub id: String,
    /// Measured seconds per step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_time_s: Option<f64>,
    /// Predicted seconds per step, corrected by measurements nearby that are not of the same mapping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_s: Option<f64>,
    /// Predicted over measured, less one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// What the physical model alone predicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modelled_s: Option<f64>,
    /// The error of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modelled_error: Option<f64>,
    /// What the prediction rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<BasisKind>,
    /// Measured bytes of the fullest GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    /// Predicted bytes, counted as the row counts them: tensors, or with what is reserved besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_memory_bytes: Option<f64>,
    /// Predicted over measured, less one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_error: Option<f64>,
    /// Why it can't be predicted or judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A file, predicted.
#[derive(Debug, Clone, Serialize)]
pub struct Validation {
    /// Every row of the file.
    pub rows: Vec<Validated>,
    /// Errors of all step times.
    pub summary: Option<Summary>,
    /// Errors of the physical model alone.
    pub modelled: Option<Summary>,
    /// Errors of all memory figures.
    pub memory: Option<Summary>,
    /// Errors of step times in groups: by use, source, model, gpu, precision.
    pub by: BTreeMap<&'static str, BTreeMap<String, Groups>>,
}

/// Errors of a group.
#[derive(Debug, Clone, Serialize)]
pub struct Groups {
    /// As predicted.
    #[serde(flatten)]
    pub predicted: Summary,
    /// By the physical model alone.
    pub modelled: Summary,
}

/// Predicts rows. No measurement of a row's own mapping, in any release, corrects it.
pub struct Validator {
    anchors: Vec<(String, Known)>,
}

impl Default for Validator {
    fn default() -> Validator {
        Validator { anchors: Known::of_measurements(embedded(), Constants::embedded()) }
    }
}

/// Brings predicted rows together, which must be in the order of `rows`.
pub fn summarize(rows: &[Measurement], validated: Vec<Validated>) -> Validation {
    let of = |rows: &mut dyn Iterator<Item = &Validated>, error: fn(&Validated) -> Option<f64>| {
        Summary::of(rows.filter_map(error))
    };
    let mut by = BTreeMap::new();
    type Key = fn(&Measurement) -> &str;
    let keys: [(&str, Key); 5] = [
        ("use", |row| &row.usage),
        ("source", |row| &row.source),
        ("model", |row| &row.model),
        ("gpu", |row| &row.gpu),
        ("precision", |row| &row.precision),
    ];
    for (name, key) in keys {
        let mut groups: BTreeMap<String, Vec<&Validated>> = BTreeMap::new();
        for (row, validated) in rows.iter().zip(&validated) {
            groups.entry(key(row).to_string()).or_default().push(validated);
        }
        let groups = groups.into_iter().filter_map(|(group, rows)| {
            let predicted = of(&mut rows.iter().copied(), |row| row.error)?;
            let modelled = of(&mut rows.iter().copied(), |row| row.modelled_error)?;
            Some((group, Groups { predicted, modelled }))
        });
        by.insert(name, groups.collect());
    }
    Validation {
        summary: of(&mut validated.iter(), |row| row.error),
        modelled: of(&mut validated.iter(), |row| row.modelled_error),
        memory: of(&mut validated.iter(), |row| row.memory_error),
        rows: validated,
        by,
    }
}

impl Validator {
    /// Predicts a row.
    pub fn row(&self, row: &Measurement) -> Validated {
        let constants = Constants::embedded();
        let mut validated = Validated {
            id: row.id.clone(),
            step_time_s: row.step_time_s,
            predicted_s: None,
            error: None,
            modelled_s: None,
            modelled_error: None,
            basis: None,
            memory_bytes: row.memory_bytes,
            predicted_memory_bytes: None,
            memory_error: None,
            reason: None,
        };
        let subject = match &row.subject {
            Ok(subject) => subject,
            Err(reason) => {
                validated.reason = Some(reason.clone());
                return validated;
            }
        };
        let inputs = subject.inputs();
        let Some(modelled_s) = super::fit::predict(row, constants) else { return validated };
        let others = self
            .anchors
            .iter()
            .filter(|(mapping, known)| *mapping != subject.mapping && known.features.is_alike(&inputs))
            .map(|(_, known)| known.clone());
        let basis = Anchors::new(Kinship::embedded(), others.collect()).basis(&inputs, modelled_s);
        let predicted_s = modelled_s * basis.correction;
        validated.predicted_s = Some(predicted_s);
        validated.modelled_s = Some(modelled_s);
        validated.basis = Some(basis.kind);
        match row.step_time_s {
            Some(measured) => {
                validated.error = Some(predicted_s / measured - 1.0);
                validated.modelled_error = Some(modelled_s / measured - 1.0);
            }
            None => validated.reason = Some("no step time is given".into()),
        }
        if let Some(measured) = row.memory_bytes {
            let memory = Memory::of(&inputs);
            let reserved =
                if row.memory_kind.contains("max_allocated") { 0.0 } else { memory.reserved_bytes };
            let predicted = memory.total_bytes() + reserved;
            validated.predicted_memory_bytes = Some(predicted);
            validated.memory_error = Some(predicted / measured - 1.0);
        }
        validated
    }
}

impl Known {
    /// What the model misses of each measurement that is good for fitting, with its mapping.
    fn of_measurements(rows: &[Measurement], constants: &Constants) -> Vec<(String, Known)> {
        let good = rows.iter().filter(|row| matches!(&*row.usage, "fit" | "small"));
        let points = super::fit::points(good);
        let mappings =
            points.iter().filter_map(|point| Some(point.row.subject.as_ref().ok()?.mapping.clone()));
        mappings.zip(super::held_out::known(&points, constants)).collect()
    }
}
