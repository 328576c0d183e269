//! What the two programs of the Plan page tell each other, apart from the address: the first one loads the second, and
//! names the best plan.

use leptos::prelude::*;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::{Event, HtmlElement, HtmlScriptElement};

/// The id of the element that the details are drawn in.
pub(crate) const DETAILS_ID: &str = "details";

/// The attribute of that element with the best plan, as a query.
const BEST: &str = "data-best";

/// The event on that element after a change of [`BEST`].
const CHANGED: &str = "bestplan";

/// Returns the element for the details, if this is the Plan page.
pub(crate) fn details_element() -> Option<HtmlElement> {
    document().get_element_by_id(DETAILS_ID)?.dyn_into().ok()
}

/// Tells the program of the details which plan is the best one; none while the first search runs.
pub(super) fn name_best(plan: Option<&str>) {
    let Some(element) = details_element() else { return };
    // Neither call fails: the attribute's name is valid, and the event is not dispatched yet.
    let _ = match plan {
        Some(query) => element.set_attribute(BEST, query),
        None => element.remove_attribute(BEST),
    };
    if let Ok(event) = Event::new(CHANGED) {
        let _ = element.dispatch_event(&event);
    }
}

/// Returns the best plan, as a query. It follows what the first program says.
pub(crate) fn best_plan() -> ReadSignal<Option<String>> {
    let read = || details_element().and_then(|element| element.get_attribute(BEST));
    let best = RwSignal::new(read());
    if let Some(element) = details_element() {
        let heard = leptos::wasm_bindgen::closure::Closure::<dyn FnMut()>::new(move || best.set(read()));
        let _ = element.add_event_listener_with_callback(CHANGED, heard.as_ref().unchecked_ref());
        // The details stay for as long as the page.
        heard.forget();
    }
    best.read_only()
}

/// Loads the program of the details.
///
/// # Errors
/// The page does not name the program's script.
pub(super) fn load_details() -> Result<(), JsValue> {
    let document = document();
    let meta = document.query_selector("meta[name=details-src]")?.ok_or(JsValue::NULL)?;
    let script: HtmlScriptElement = document.create_element("script")?.dyn_into()?;
    script.set_type("module");
    script.set_src(&meta.get_attribute("content").unwrap_or_default());
    document.head().ok_or(JsValue::NULL)?.append_child(&script)?;
    Ok(())
}
