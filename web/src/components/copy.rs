//! Buttons that copy text to the clipboard or save it as a file.

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::{
    self, Blob, BlobPropertyBag, HtmlAnchorElement, HtmlDocument, HtmlTextAreaElement, Url,
};
use std::time::Duration;
use wasm_bindgen_futures::JsFuture;

/// A button that copies a text to the clipboard and shows whether that succeeded.
#[component]
pub(crate) fn CopyButton(
    /// The text to copy.
    #[prop(into)]
    text: Signal<String>,
    /// The button's label.
    label: &'static str,
    /// Whether it is the main button of its panel.
    #[prop(optional)]
    primary: bool,
    /// Whether there is nothing to copy yet.
    #[prop(optional, into)]
    disabled: Signal<bool>,
) -> impl IntoView {
    let shown = RwSignal::new(label);
    let copy = move |_| {
        let text = text.get_untracked();
        spawn_local(async move {
            let copied = to_clipboard(&text).await.is_ok();
            // `try_set`: the page may have been left meanwhile.
            shown.try_set(if copied { "Copied" } else { "Copying failed" });
            set_timeout(
                move || {
                    shown.try_set(label);
                },
                Duration::from_secs(2),
            );
        });
    };
    view! {
        <button type="button" class="action" class:primary=primary disabled=disabled on:click=copy>
            <span aria-live="polite">{shown}</span>
        </button>
    }
}

/// A button that saves a text as a file.
#[component]
pub(crate) fn DownloadButton(
    /// The text to save.
    #[prop(into)]
    text: Signal<String>,
    /// The file's name.
    #[prop(into)]
    name: Signal<String>,
    /// The button's label.
    label: &'static str,
    /// Whether there is nothing to save yet.
    #[prop(optional, into)]
    disabled: Signal<bool>,
) -> impl IntoView {
    let failed = RwSignal::new(false);
    let save = move |_| failed.set(as_file(&text.get_untracked(), &name.get_untracked()).is_err());
    view! {
        <button type="button" class="action" disabled=disabled on:click=save>
            {move || if failed.get() { "Saving failed" } else { label }}
        </button>
    }
}

/// Copies a text to the clipboard.
pub(crate) async fn to_clipboard(text: &str) -> Result<(), JsValue> {
    // Browsers allow the clipboard API on https and localhost only; a company's own server may use plain
    // http.
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

/// Saves a text as a download with this file name.
pub(crate) fn as_file(text: &str, name: &str) -> Result<(), JsValue> {
    let options = BlobPropertyBag::new();
    options.set_type("text/plain;charset=utf-8");
    let parts = web_sys::js_sys::Array::of1(&JsValue::from_str(text));
    let url = Url::create_object_url_with_blob(&Blob::new_with_str_sequence_and_options(&parts, &options)?)?;
    save_address(&url, name)?;
    Url::revoke_object_url(&url)
}

/// Saves the content of a URL as a download with this file name.
pub(crate) fn save_address(url: &str, name: &str) -> Result<(), JsValue> {
    let anchor: HtmlAnchorElement = document().create_element("a")?.dyn_into()?;
    anchor.set_href(url);
    anchor.set_download(name);
    anchor.click();
    Ok(())
}
