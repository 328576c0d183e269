//! The worker of the Plan page: predictions, launch scripts and imported models.

mod campaign;
mod launch;
mod predict;

use super::post;
use crate::message::Imported;
use crate::message::plan::{CalculatorReply, CalculatorRequest};
use trainplan_shared::hugging_face;

/// Answers a request of the planner.
pub(super) fn answer(message: CalculatorRequest) {
    match message {
        CalculatorRequest::Predict { query } => {
            if let Some(prediction) = predict::predict(&query) {
                post(&CalculatorReply::Predicted { query, prediction });
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
        CalculatorRequest::Import { text } => post(&CalculatorReply::Imported(import(&text))),
    }
}

/// Returns the model of a `config.json`.
fn import(text: &str) -> Result<Imported, String> {
    let imported = hugging_face::read(text).map_err(|error| error.to_string())?;
    Ok(Imported {
        model: imported.model.to_text(),
        title: imported.model.title,
        notes: imported.notes,
        unknown: imported.unknown,
    })
}
