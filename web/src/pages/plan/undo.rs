//! The keys that take back and repeat changes.

use crate::address::{redo, undo};
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::{Element, HtmlInputElement};

/// Takes back a change of the page with Ctrl-Z, and repeats it with Ctrl-Shift-Z. In a field, the browser undoes what is typed, but
/// nothing that was already asked: the field would show another question than the answered one.
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

/// Whether the browser has typing to undo there.
fn is_typing(event: &KeyboardEvent) -> bool {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    target.is_some_and(|target| {
        matches!(target.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT") && !is_asked(&target)
    })
}

/// Whether this is a field of the question bar with the text of the question.
fn is_asked(target: &Element) -> bool {
    let field = target.dyn_ref::<HtmlInputElement>();
    field.is_some_and(|field| field.class_list().contains("blank") && field.value() == field.default_value())
}
