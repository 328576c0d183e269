//! The import of a model from the question bar. The program of the details reads files that are dropped on the page; a file
//! that is chosen here takes the same way.

use super::handover::DETAILS_ID;
use leptos::html::Input;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsValue;
use leptos::web_sys::{DataTransfer, DragEvent, DragEventInit, File};
use std::time::Duration;

/// How long the program of the details may take to load, in steps of [`STEP`].
const TRIES: u32 = 100;
const STEP: Duration = Duration::from_millis(100);

/// The input for a `config.json`; a click on it opens the file chooser.
#[component]
pub(super) fn ImportInput(node: NodeRef<Input>) -> impl IntoView {
    let chosen = move |_| {
        let Some(input) = node.get_untracked() else { return };
        if let Some(file) = input.files().and_then(|files| files.get(0)) {
            hand_over(file, TRIES);
        }
        // Otherwise choosing the same file again causes no event.
        input.set_value("");
    };
    view! { <input node_ref=node id="ask-config" type="file" hidden accept=".json,application/json" on:change=chosen /> }
}

/// Drops a file on the page once the program of the details has drawn itself.
fn hand_over(file: File, tries: u32) {
    let is_loaded = document().get_element_by_id(DETAILS_ID).is_some_and(|details| details.has_child_nodes());
    match (is_loaded, tries) {
        // Nothing is left to do if the browser refuses: the drawer has a field to paste the file into.
        (true, _) => drop(drop_on_page(&file)),
        (false, 0) => {}
        (false, _) => set_timeout(move || hand_over(file, tries - 1), STEP),
    }
}

fn drop_on_page(file: &File) -> Result<(), JsValue> {
    let files = DataTransfer::new()?;
    files.items().add_with_file(file)?;
    let dropped = DragEventInit::new();
    dropped.set_data_transfer(Some(&files));
    let dropped = DragEvent::new_with_event_init_dict("drop", &dropped)?;
    window().dispatch_event(&dropped)?;
    Ok(())
}
