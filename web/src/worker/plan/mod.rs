//! The worker of the Plan page: predictions, launch scripts and imported models.

mod by_scripts;
mod campaign;
mod launch;
mod predict;

use super::post;
use crate::message::plan::{CalculatorReply, CalculatorRequest};
use crate::message::{Imported, ImportedValue};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::hugging_face;
use trainplan_shared::probe::{Probe, ProbeReport, SlowNode};
use trainplan_shared::units::{percent, readable};

/// Answers a request of the planner.
pub(super) fn answer(message: CalculatorRequest) {
    match message {
        CalculatorRequest::Predict { query } => {
            if let Some(prediction) = predict::predict(&query) {
                post(&CalculatorReply::Predicted { query, prediction: Box::new(prediction) });
            }
        }
        CalculatorRequest::Launch { query } => {
            if let Some(launched) = launch::launch(&query) {
                post(&CalculatorReply::Launched { query, launched });
            }
        }
        CalculatorRequest::Scripts { plans } => {
            let scripts = plans.into_iter().map(|(plan, query)| (plan, launch::script_effect(&query)));
            post(&CalculatorReply::Scripts(scripts.collect()));
        }
        CalculatorRequest::ByScripts { query, offers } => {
            for found in offers.into_iter().filter_map(|offer| by_scripts::find(&query, offer)) {
                post(&CalculatorReply::FoundByScripts(Box::new(found)));
            }
        }
        CalculatorRequest::Import { text, name } => {
            post(&CalculatorReply::Imported(import(&text, &name)));
        }
    }
}

/// Returns what a file describes: the model of a `config.json`, or a probed cluster. `name` is the file's name; it may be empty.
fn import(text: &str, name: &str) -> Result<Imported, String> {
    if Probe::is_meant(text) {
        return import_probe(text);
    }
    let imported = hugging_face::read(text).map_err(|error| error.to_string())?.named_after(name);
    Ok(Imported {
        value: ImportedValue::Model(imported.model.to_text()),
        title: imported.model.title,
        notes: imported.notes,
        unknown: imported.unknown,
    })
}

/// Returns the factors of a probed cluster, with what is slow there.
fn import_probe(text: &str) -> Result<Imported, String> {
    let catalog = Catalog::embedded();
    let probe = Probe::parse(text).map_err(|problem| problem.to_string())?;
    let report = ProbeReport::of(&probe, catalog);
    let gpu = report.gpu.as_ref().and_then(|id| catalog.gpu(id).ok());
    let Some(gpu) = gpu else {
        return Err(format!("The probe measured {}, which Trainplan does not know.", probe.device));
    };
    let slow = report.figures.iter().filter(|figure| figure.is_slow()).map(|figure| {
        let share = figure.score.map_or(String::new(), percent);
        let measured = readable(figure.measured);
        format!(
            "{}: {measured} {}, {share} of what a healthy machine reaches.",
            figure.figure.title(),
            figure.unit
        )
    });
    let nodes = report.slow_nodes();
    let slow_gpus = nodes.iter().take(SlowNode::SHOWN).map(SlowNode::in_words);
    let mut notes: Vec<String> = slow.chain(slow_gpus).collect();
    if nodes.len() > SlowNode::SHOWN {
        notes.push(format!("{} nodes in all have slow GPUs.", nodes.len()));
    }
    if !nodes.is_empty() {
        notes.push(
            "A run waits for its slowest GPU, so the plan assumes that the slow ones are left out.".into(),
        );
    }
    if notes.is_empty() {
        notes.push(
            "Everything measured is as fast as on a healthy cluster, so the plan doesn't change.".into(),
        );
    }
    notes.push(format!(
        "Only {} was measured, so other GPU types are removed from the question. Undo brings them back.",
        gpu.name
    ));
    if !report.missing.is_empty() {
        let missing: Vec<&str> = report.missing.iter().map(|kind| kind.title()).collect();
        notes.push(format!("Not measured, and assumed to be healthy: {}.", missing.join("; ")));
    }
    Ok(Imported {
        value: ImportedValue::Cluster { factors: report.cluster_factor, gpu: gpu.id.clone() },
        title: match &probe.cluster {
            Some(name) => format!("cluster {name} ({})", gpu.name),
            None => format!("the probe of a cluster with {} GPUs", gpu.name),
        },
        notes,
        unknown: Vec::new(),
    })
}
