//! What the worker does for the Plan page: predict, launch, read models.

mod campaign;
mod launch;
mod predict;

use crate::message::Imported;
use trainplan_shared::hugging_face;

pub(crate) use launch::launch;
pub(crate) use predict::predict;

/// The model that a `config.json` describes.
pub(crate) fn import(text: &str) -> Result<Imported, String> {
    let imported = hugging_face::read(text).map_err(|error| error.to_string())?;
    Ok(Imported {
        model: imported.model.to_text(),
        title: imported.model.title,
        notes: imported.notes,
        unknown: imported.unknown,
    })
}
