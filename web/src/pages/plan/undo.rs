//! The keys that take back and repeat changes.

use crate::address::{redo, undo};
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::Element;

/// Takes back a change of the page with Ctrl-Z, and repeats it with Ctrl-Shift-Z. In a field, the browser undoes the typing.
pub(super) fn undo_by_keys() {
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        let has_control = event.ctrl_key() || event.meta_key();
        if !has_control || !event.key().eq_ignore_ascii_case("z") || is_typing(&event) {
            return;
        }
        event.prevent_default();
        match event.shift_key() {
            true => redo(),
            false => undo(),
        }
    });
    on_cleanup(move || keys.remove());
}

/// Whether a key typed there is text.
fn is_typing(event: &KeyboardEvent) -> bool {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    target.is_some_and(|target| matches!(target.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT"))
}
