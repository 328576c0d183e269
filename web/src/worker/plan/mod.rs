//! What the worker does for the Plan page: predict, launch, read models.

mod campaign;
mod launch;
mod predict;

use super::post;
use crate::message::Imported;
use crate::message::plan::{ForPage, ForWorker};
use trainplan_shared::hugging_face;

pub(in crate::worker) use launch::refusal;

/// Does what the planner wants.
pub(super) fn hear(message: ForWorker) {
    match message {
        ForWorker::Predict { query } => {
            if let Some(prediction) = predict::predict(&query) {
                post(&ForPage::Predicted { query, prediction });
            }
        }
        ForWorker::Launch { query } => {
            if let Some(launched) = launch::launch(&query) {
                post(&ForPage::Launched { query, launched });
            }
        }
        ForWorker::Import { text } => post(&ForPage::Imported(import(&text))),
    }
}

/// The model that a `config.json` describes.
fn import(text: &str) -> Result<Imported, String> {
    let imported = hugging_face::read(text).map_err(|error| error.to_string())?;
    Ok(Imported {
        model: imported.model.to_text(),
        title: imported.model.title,
        notes: imported.notes,
        unknown: imported.unknown,
    })
}
