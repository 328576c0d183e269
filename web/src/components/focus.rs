//! Moves the focus.

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::HtmlElement;

/// Moves the focus to the element with an id, and shows it.
pub(crate) fn focus(id: &str) {
    let element = document().get_element_by_id(id).and_then(|element| element.dyn_into::<HtmlElement>().ok());
    if let Some(element) = element {
        let mut around = element.closest("details").ok().flatten();
        while let Some(closed) = around {
            // Nothing in a closed one takes the focus.
            let _ = closed.set_attribute("open", "");
            around = closed.parent_element().and_then(|parent| parent.closest("details").ok().flatten());
        }
        element.scroll_into_view();
        // It fails only for elements that are gone.
        let _ = element.focus();
    }
}
