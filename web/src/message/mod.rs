//! The messages between a page and its worker, one module for each kind of worker. A file is posted
//! right after the message that announces it.

pub(crate) mod plan;
mod refusal;
pub(crate) mod results;
pub(crate) mod search;

pub(crate) use plan::{
    Bars, EvidenceRun, FieldChange, Imported, ImportedValue, Launch, Launched, Part, PredictedLine,
    Prediction, Remedy, RunAsMeasured, Step, Warning, WholeRun,
};
pub(crate) use refusal::Refusal;
pub(crate) use results::*;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::JsValue;

/// A message between a page and its worker.
pub(crate) trait WorkerMessage: Serialize + DeserializeOwned {
    /// Returns the message as an object to post.
    fn to_js(&self) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(self)?)
    }

    /// Returns the message of a posted object, or `None` if it is not one of this type.
    fn from_js(message: JsValue) -> Option<Self> {
        serde_wasm_bindgen::from_value(message).ok()
    }
}

/// The number of log lines that the page shows at a time, and the worker requests.
pub(crate) const LINES: u64 = 500;
