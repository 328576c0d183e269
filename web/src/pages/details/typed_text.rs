//! Marks a field of the question bar whose text is not part of the answered question yet.

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::HtmlInputElement;

/// Gives a text field of the question the class `typed` while it has the focus and its text differs from the answered question. The
/// styles mark such a field and dim the answer. Here, because the program of the question loads before the first answers, and this
/// one after them.
pub(super) fn mark_fields() {
    for name in ["focusin", "input", "change", "focusout"] {
        let heard = window_event_listener_untyped(name, move |event| {
            let target = event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
            let Some(field) = target.filter(|field| field.class_list().contains("blank")) else { return };
            let is_typed = event.type_() == "input" && field.value() != field.default_value();
            // It never fails: the name is valid.
            let _ = field.class_list().toggle_with_force("typed", is_typed);
        });
        on_cleanup(move || heard.remove());
    }
}
