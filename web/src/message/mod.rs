//! What pages and their worker say to each other, program by program. A file that is handed over comes beside its message.

pub(crate) mod plan;
pub(crate) mod results;

pub(crate) use plan::{Bars, Imported, Launch, Launched, Part, Prediction, Refusal, Remedy, Step, Warning};
pub(crate) use results::*;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::JsValue;

/// Something to post.
pub(crate) trait Message: Serialize + DeserializeOwned {
    /// An object to post.
    fn to_js(&self) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(self)?)
    }

    /// The message in what was posted.
    fn from_js(message: JsValue) -> Option<Self> {
        serde_wasm_bindgen::from_value(message).ok()
    }
}
