//! Predictions of every row of a file, with their errors.

use super::{ErrorSummary, HeldOutErrors};
use crate::estimate::{Anchors, Constants, Covariance, EvidenceKind, Features, IntervalTable, Residual};
use crate::measurements::{Measurement, MeasurementUse, Outcome, embedded};
use crate::stack::Stack;
use serde::Serialize;
use std::collections::BTreeMap;

/// A row with its prediction.
#[derive(Debug, Clone, Serialize)]
pub struct ValidatedRow {
    /// The row's id.
    pub id: String,
    /// Measured step time, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_time_s: Option<f64>,
    /// Predicted step time, s, corrected by similar measurements of other mappings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_s: Option<f64>,
    /// Predicted over measured, minus 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Step time by the physical model alone, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modelled_s: Option<f64>,
    /// Error of the physical model alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modelled_error: Option<f64>,
    /// Lower end of the prediction's 80 % interval, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_s: Option<f64>,
    /// Upper end of the prediction's 80 % interval, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_s: Option<f64>,
    /// How close the nearest measurements are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<EvidenceKind>,
    /// Measured memory of the fullest GPU, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    /// Predicted memory, bytes, counted like the measurement: tensors only, or with reserved memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_memory_bytes: Option<f64>,
    /// Predicted over measured, minus 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_error: Option<f64>,
    /// Why the row can't be predicted or compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The predictions of a file.
#[derive(Debug, Clone, Serialize)]
pub struct Validation {
    /// Every row of the file.
    pub rows: Vec<ValidatedRow>,
    /// Errors of all step times.
    pub summary: Option<ErrorSummary>,
    /// Errors of the physical model alone.
    pub modelled: Option<ErrorSummary>,
    /// Errors of all memory predictions.
    pub memory: Option<ErrorSummary>,
    /// Share of all measured step times within the 80 % intervals of the predictions.
    pub coverage: Option<f64>,
    /// Errors of step times by use, source, software, model, GPU and precision.
    pub by: BTreeMap<&'static str, BTreeMap<String, GroupErrors>>,
    /// The reasons why rows could not be compared, with their numbers, most frequent first.
    pub reasons: Vec<ReasonCount>,
}

impl ValidatedRow {
    /// Whether the measured step time is within the interval; none without either.
    fn is_covered(&self) -> Option<bool> {
        Some((self.low_s?..=self.high_s?).contains(&self.step_time_s?))
    }
}

/// Returns the share of measured step times within the intervals of their predictions.
fn coverage<'a>(rows: impl Iterator<Item = &'a ValidatedRow>) -> f64 {
    let covered: Vec<bool> = rows.filter_map(ValidatedRow::is_covered).collect();
    covered.iter().filter(|is_covered| **is_covered).count() as f64 / covered.len().max(1) as f64
}

/// A reason why rows could not be compared.
#[derive(Debug, Clone, Serialize)]
pub struct ReasonCount {
    /// The reason.
    pub reason: String,
    /// Number of rows.
    pub n: usize,
    /// Id of the first of them.
    pub first: String,
}

/// Returns the reasons of rows, most frequent first.
fn reasons(rows: &[ValidatedRow]) -> Vec<ReasonCount> {
    let mut counts: Vec<ReasonCount> = Vec::new();
    for row in rows {
        let Some(reason) = &row.reason else { continue };
        match counts.iter_mut().find(|count| count.reason == *reason) {
            Some(count) => count.n += 1,
            None => counts.push(ReasonCount { reason: reason.clone(), n: 1, first: row.id.clone() }),
        }
    }
    counts.sort_by_key(|count| std::cmp::Reverse(count.n));
    counts
}

/// Errors of a group.
#[derive(Debug, Clone, Serialize)]
pub struct GroupErrors {
    /// Errors of the corrected predictions.
    #[serde(flatten)]
    pub predicted: ErrorSummary,
    /// Errors of the physical model alone.
    pub modelled: ErrorSummary,
    /// Share of the measured step times within the 80 % intervals of the predictions.
    pub coverage: f64,
}

/// Predicts rows. Measurements of a row's own mapping, in any release, never correct it.
pub struct Validator {
    /// Mappings with the model's error on them.
    residuals: Vec<(String, Residual)>,
}

impl Default for Validator {
    fn default() -> Validator {
        let (constants, errors) = (Constants::embedded(), HeldOutErrors::embedded());
        Validator { residuals: Residual::of_measurements(embedded(), constants, &errors) }
    }
}

/// Summarizes predicted rows, which must be in the order of `rows`.
pub fn summarize(rows: &[Measurement], validated: Vec<ValidatedRow>) -> Validation {
    let of = |rows: &mut dyn Iterator<Item = &ValidatedRow>, error: fn(&ValidatedRow) -> Option<f64>| {
        ErrorSummary::of(rows.filter_map(error))
    };
    let mut by = BTreeMap::new();
    type Key = fn(&Measurement) -> &str;
    let software: Key = |row| {
        row.scenario
            .as_ref()
            .map_or("", |scenario| scenario.options.software.known().map_or("own", Stack::id))
    };
    let keys: [(&str, Key); 6] = [
        ("use", |row| row.usage.map_or("", MeasurementUse::id)),
        ("source", |row| &row.source),
        ("software", software),
        ("model", |row| &row.model),
        ("gpu", |row| &row.gpu),
        ("precision", |row| &row.precision),
    ];
    for (name, key) in keys {
        let mut groups: BTreeMap<String, Vec<&ValidatedRow>> = BTreeMap::new();
        for (row, validated) in rows.iter().zip(&validated) {
            groups.entry(key(row).to_string()).or_default().push(validated);
        }
        let groups = groups.into_iter().filter_map(|(group, rows)| {
            let predicted = of(&mut rows.iter().copied(), |row| row.error)?;
            let modelled = of(&mut rows.iter().copied(), |row| row.modelled_error)?;
            let coverage = coverage(rows.iter().copied());
            Some((group, GroupErrors { predicted, modelled, coverage }))
        });
        by.insert(name, groups.collect());
    }
    Validation {
        summary: of(&mut validated.iter(), |row| row.error),
        modelled: of(&mut validated.iter(), |row| row.modelled_error),
        memory: of(&mut validated.iter(), |row| row.memory_error),
        coverage: validated.iter().any(|row| row.is_covered().is_some()).then(|| coverage(validated.iter())),
        reasons: reasons(&validated),
        rows: validated,
        by,
    }
}

impl Validator {
    /// Predicts a row.
    pub fn row(&self, row: &Measurement) -> ValidatedRow {
        let constants = Constants::embedded();
        let mut validated = ValidatedRow {
            id: row.id.clone(),
            step_time_s: row.step_time_s,
            predicted_s: None,
            error: None,
            modelled_s: None,
            modelled_error: None,
            low_s: None,
            high_s: None,
            basis: None,
            memory_bytes: row.memory_bytes,
            predicted_memory_bytes: None,
            memory_error: None,
            reason: None,
        };
        let scenario = match &row.scenario {
            Ok(scenario) => scenario,
            Err(reason) => {
                validated.reason = Some(reason.clone());
                return validated;
            }
        };
        let inputs = scenario.inputs();
        let Some(modelled_s) = super::fit::predict(row, constants) else { return validated };
        let own = Features::of(&inputs);
        let others = self
            .residuals
            .iter()
            .filter(|(mapping, other)| *mapping != scenario.mapping && other.features.has_shape_of(&own))
            .map(|(_, other)| other.clone());
        let anchors = Anchors::new(Covariance::embedded(), others.collect());
        let evidence = anchors.evidence(&inputs, modelled_s);
        let predicted_s = modelled_s * evidence.correction;
        validated.predicted_s = Some(predicted_s);
        validated.modelled_s = Some(modelled_s);
        validated.basis = Some(evidence.kind);
        let interval = IntervalTable::embedded().around(predicted_s, &inputs, &evidence);
        (validated.low_s, validated.high_s) = (Some(interval.low), Some(interval.high));
        match row.step_time_s {
            Some(measured) => {
                validated.error = Some(predicted_s / measured - 1.0);
                validated.modelled_error = Some(modelled_s / measured - 1.0);
            }
            None => {
                validated.reason = Some(
                    match row.outcome {
                        Outcome::Worked => "step_time_s is missing.",
                        Outcome::OutOfMemory => "The run ran out of memory.",
                        Outcome::Failed => "The run failed.",
                    }
                    .into(),
                );
            }
        }
        if let (Some(measured), Some(predicted)) = (row.memory_bytes, row.predicted_memory_bytes()) {
            validated.predicted_memory_bytes = Some(predicted);
            validated.memory_error = Some(predicted / measured - 1.0);
        }
        validated
    }
}

impl Residual {
    /// Returns the model's error on each measurement that is usable for fitting, with the measurement's
    /// mapping.
    fn of_measurements(
        rows: &[Measurement],
        constants: &Constants,
        errors: &HeldOutErrors,
    ) -> Vec<(String, Residual)> {
        let good = rows.iter().filter(|row| row.is_for_fitting());
        let points = super::fit::points(good);
        let mut residuals = super::held_out::residuals(&points, constants);
        for (residual, point) in residuals.iter_mut().zip(&points) {
            residual.surprise = errors.surprise(&point.row.id);
        }
        let mappings =
            points.iter().filter_map(|point| Some(point.row.scenario.as_ref().ok()?.mapping.clone()));
        mappings.zip(residuals).collect()
    }
}
