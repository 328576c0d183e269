//! Moves the focus, and says when it leaves a list.

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::{Element, EventTarget, HtmlElement};

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

/// Calls `close` whenever the pointer or the focus goes elsewhere than into an element that matches `selector`.
pub(crate) fn when_left(selector: &'static str, close: impl Fn() + Copy + 'static) {
    let leave = move |target: Option<EventTarget>| {
        let element = target.and_then(|target| target.dyn_into::<Element>().ok());
        let stays = element.is_some_and(|element| element.closest(selector).ok().flatten().is_some());
        if !stays {
            close();
        }
    };
    let clicks = window_event_listener(leptos::ev::click, move |event| leave(event.target()));
    let moves = window_event_listener(leptos::ev::focusin, move |event| leave(event.target()));
    on_cleanup(move || {
        clicks.remove();
        moves.remove();
    });
}
