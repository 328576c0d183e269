//! Taking text out of the page: to the clipboard and as a file.

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::{
    self, Blob, BlobPropertyBag, HtmlAnchorElement, HtmlDocument, HtmlTextAreaElement, Url,
};
use std::time::Duration;
use wasm_bindgen_futures::JsFuture;

/// A button that puts a text on the clipboard, and says whether it could.
#[component]
pub(crate) fn CopyButton(
    /// What it copies.
    #[prop(into)]
    text: Signal<String>,
    /// What it says.
    label: &'static str,
    /// Whether it is what most people come for.
    #[prop(optional)]
    primary: bool,
    /// Whether there is nothing to copy yet.
    #[prop(optional, into)]
    disabled: Signal<bool>,
) -> impl IntoView {
    let said = RwSignal::new(label);
    let copy = move |_| {
        let text = text.get_untracked();
        spawn_local(async move {
            let copied = to_clipboard(&text).await.is_ok();
            // The page may have gone meanwhile.
            said.try_set(if copied { "Copied" } else { "Could not copy" });
            set_timeout(
                move || {
                    said.try_set(label);
                },
                Duration::from_secs(2),
            );
        });
    };
    view! { <button type="button" class="action" class:primary=primary disabled=disabled on:click=copy><span aria-live="polite">{said}</span></button> }
}

/// A button that saves a text as a file.
#[component]
pub(crate) fn DownloadButton(
    /// What it saves.
    #[prop(into)]
    text: Signal<String>,
    /// The file's name.
    #[prop(into)]
    name: Signal<String>,
    /// What it says.
    label: &'static str,
    /// Whether there is nothing to save yet.
    #[prop(optional, into)]
    disabled: Signal<bool>,
) -> impl IntoView {
    let failed = RwSignal::new(false);
    let save = move |_| failed.set(as_file(&text.get_untracked(), &name.get_untracked()).is_err());
    view! {
        <button type="button" class="action" disabled=disabled on:click=save>
            {move || if failed.get() { "Could not save" } else { label }}
        </button>
    }
}

async fn to_clipboard(text: &str) -> Result<(), JsValue> {
    // Browsers offer the clipboard on https and localhost only; a planner served inside a company may have neither.
    if window().is_secure_context() {
        return JsFuture::from(window().navigator().clipboard().write_text(text)).await.map(|_| ());
    }
    let area: HtmlTextAreaElement = document().create_element("textarea")?.dyn_into()?;
    area.set_value(text);
    let body = document().body().ok_or(JsValue::NULL)?;
    body.append_child(&area)?;
    area.select();
    let copied = document().dyn_into::<HtmlDocument>().map_err(JsValue::from)?.exec_command("copy");
    area.remove();
    if copied? { Ok(()) } else { Err(JsValue::NULL) }
}

/// Has the browser save a text under a name.
pub(crate) fn as_file(text: &str, name: &str) -> Result<(), JsValue> {
    let options = BlobPropertyBag::new();
    options.set_type("text/plain;charset=utf-8");
    let parts = web_sys::js_sys::Array::of1(&JsValue::from_str(text));
    let url = Url::create_object_url_with_blob(&Blob::new_with_str_sequence_and_options(&parts, &options)?)?;
    save_address(&url, name)?;
    Url::revoke_object_url(&url)
}

/// Has the browser save what lies at an address.
pub(crate) fn save_address(url: &str, name: &str) -> Result<(), JsValue> {
    let anchor: HtmlAnchorElement = document().create_element("a")?.dyn_into()?;
    anchor.set_href(url);
    anchor.set_download(name);
    anchor.click();
    Ok(())
}
