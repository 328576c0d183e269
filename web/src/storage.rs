//! What the browser keeps for the pages, as JSON.
//!
//! The browser itself reads and writes the JSON, and values are converted like messages of workers: a reader and a writer
//! of JSON of our own would make each program several kilobytes larger.

use leptos::prelude::window;
use leptos::wasm_bindgen::JsValue;
use leptos::web_sys::{self, js_sys::JSON};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_wasm_bindgen::Serializer;

/// Where values are kept under names. Where a browser gives no access, nothing is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// In the tab, until it is closed.
    InTab,
    /// In the browser, until it is deleted.
    InBrowser,
}

impl Kept {
    fn storage(self) -> Option<web_sys::Storage> {
        let storage = match self {
            Kept::InTab => window().session_storage(),
            Kept::InBrowser => window().local_storage(),
        };
        storage.ok()?
    }

    /// Returns the value under a name; none if there is none of this type.
    pub(crate) fn get<T: DeserializeOwned>(self, name: &str) -> Option<T> {
        let text = self.storage()?.get_item(name).ok()??;
        serde_wasm_bindgen::from_value(JSON::parse(&text).ok()?).ok()
    }

    /// Keeps a value under a name.
    pub(crate) fn set(self, name: &str, value: &(impl Serialize + ?Sized)) {
        if let (Some(storage), Ok(text)) = (self.storage(), json(value, 0)) {
            // It fails where the browser has no room.
            let _ = storage.set_item(name, &text);
        }
    }

    /// Deletes the value under a name.
    pub(crate) fn delete(self, name: &str) {
        if let Some(storage) = self.storage() {
            // It never fails.
            let _ = storage.remove_item(name);
        }
    }
}

/// Returns a value as JSON, in lines indented by a number of spaces, or in one line without any.
///
/// # Errors
/// The value can't be converted to a JavaScript object.
pub(crate) fn json(value: &(impl Serialize + ?Sized), indent: u8) -> Result<String, JsValue> {
    let value = value.serialize(&Serializer::json_compatible())?;
    Ok(JSON::stringify_with_replacer_and_space(&value, &JsValue::NULL, &indent.into())?.into())
}
