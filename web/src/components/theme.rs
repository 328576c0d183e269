//! The choice of light or dark colours; the system's by default.

use crate::storage::Kept;
use leptos::prelude::*;
use leptos::web_sys::Event;

const KEY: &str = "theme";

/// The event on the window by which one program of a page tells the others of a new theme.
const CHANGED: &str = "themechange";

/// The event on the window that `web/build/register.js` sends when the system's theme changes.
const SYSTEM_CHANGED: &str = "schemechange";

/// Whether the page is dark; `None` follows the system.
#[derive(Clone, Copy)]
pub(crate) struct Theme(RwSignal<Option<bool>>);

/// Returns the choice that the browser stored.
fn chosen() -> Option<bool> {
    Kept::InBrowser.get::<String>(KEY).map(|name| name == "dark")
}

impl Theme {
    /// Restores the choice that the browser stored.
    pub(crate) fn provide() {
        let theme = Theme(RwSignal::new(chosen()));
        provide_context(theme);
        Effect::new(move |_| {
            let Some(root) = document().document_element() else { return };
            // Without access to storage, the choice holds until the page is left.
            match theme.0.get() {
                None => {
                    let _ = root.remove_attribute("data-theme");
                    Kept::InBrowser.delete(KEY);
                }
                Some(dark) => {
                    let name = if dark { "dark" } else { "light" };
                    let _ = root.set_attribute("data-theme", name);
                    Kept::InBrowser.set(KEY, name);
                }
            }
            if let Ok(event) = Event::new(CHANGED) {
                let _ = window().dispatch_event(&event);
            }
        });
        // The choice stays, but charts have the colours of the theme in which they were drawn.
        let listener = window_event_listener_untyped(SYSTEM_CHANGED, move |_| theme.0.notify());
        on_cleanup(move || listener.remove());
    }

    /// Follows the theme of the page's other program, which draws the button.
    pub(crate) fn follow() {
        let theme = Theme(RwSignal::new(chosen()));
        provide_context(theme);
        let listener = window_event_listener_untyped(CHANGED, move |_| theme.0.set(chosen()));
        on_cleanup(move || listener.remove());
    }

    /// Subscribes to changes of the theme, which charts must be redrawn for.
    pub(crate) fn track() {
        if let Some(Theme(theme)) = use_context() {
            theme.track();
        }
    }
}

/// A button that switches between system, light and dark.
#[component]
pub(crate) fn ThemeButton() -> impl IntoView {
    let Some(Theme(theme)) = use_context() else { return ().into_any() };
    let next = move |_| {
        theme.update(|theme| {
            *theme = match *theme {
                None => Some(false),
                Some(false) => Some(true),
                Some(true) => None,
            };
        });
    };
    let name = move || match theme.get() {
        None => "Auto",
        Some(false) => "Light",
        Some(true) => "Dark",
    };
    view! {
        <button type="button" class="theme" on:click=next aria-label=move || format!("Colours: {}", name())>
            <span aria-hidden="true">"◐ "</span>{name}
        </button>
    }
    .into_any()
}
