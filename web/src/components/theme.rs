//! Light or dark: as the system says, unless the reader chose.

use gloo_storage::{LocalStorage, Storage};
use leptos::prelude::*;

const KEY: &str = "theme";

/// What the page looks like; `None` follows the system.
#[derive(Clone, Copy)]
pub(crate) struct Theme(RwSignal<Option<bool>>);

impl Theme {
    /// Takes up what the reader chose the last time.
    pub(crate) fn provide() {
        let chosen = LocalStorage::get::<String>(KEY).ok();
        let theme = Theme(RwSignal::new(chosen.map(|name| name == "dark")));
        provide_context(theme);
        Effect::new(move |_| {
            let Some(root) = document().document_element() else { return };
            // A page whose storage is closed still changes its colours.
            match theme.0.get() {
                None => {
                    let _ = root.remove_attribute("data-theme");
                    LocalStorage::delete(KEY);
                }
                Some(dark) => {
                    let name = if dark { "dark" } else { "light" };
                    let _ = root.set_attribute("data-theme", name);
                    let _ = LocalStorage::set(KEY, name);
                }
            }
        });
    }

    /// Changes whenever colours do by the reader's choice; charts draw themselves anew.
    pub(crate) fn track() {
        if let Some(Theme(theme)) = use_context() {
            theme.track();
        }
    }
}

/// Walks through system, light and dark.
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
