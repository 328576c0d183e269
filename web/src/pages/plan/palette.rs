//! The command palette: everything that the page can do, found by typing. Ctrl-K, ⌘K or `?` opens it, and Ctrl-Z undoes.

use super::Planner;
use super::front::FrontQuantity;
use super::handover::DETAILS_ID;
use super::saved::TITLE_ID;
use super::state::{DetailsTab, SETTINGS_ID, TAB_KEY, Y_KEY};
use crate::address;
use crate::components::focus::focus;
use leptos::ev::KeyboardEvent;
use leptos::html::{Dialog, Input};
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::{Element, HtmlElement};

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageCommand {
    /// Moves the focus to the element with this id.
    Focus(&'static str),
    /// Changes the quantity of the chart.
    Show(FrontQuantity),
    /// Opens a tab of the details.
    Open(DetailsTab),
    /// Loads a page.
    Visit(&'static str),
    /// Takes the next of the system's, light and dark colours.
    Theme,
    Undo,
    Redo,
    Print,
}

/// Returns every command with its title.
fn commands() -> Vec<(String, PageCommand)> {
    let fields = [
        ("Change the model", "ask-model"),
        ("Change the number of tokens", "ask-tokens"),
        ("Add a GPU type", "ask-gpu"),
        ("Choose a deadline, GPU count or budget", "ask-goal"),
        ("Change the price", "ask-price"),
        ("Change the batch: tokens per step", "field-batch-tokens"),
        ("Change the failure rate", "field-failure-rate"),
        ("Change other settings", SETTINGS_ID),
        ("Go to the saved plans", TITLE_ID),
    ];
    let fields = fields.map(|(title, id)| (title.to_string(), PageCommand::Focus(id)));
    let show = FrontQuantity::ALL
        .map(|quantity| (format!("Chart: {}", quantity.title()), PageCommand::Show(quantity)));
    let open = DetailsTab::ALL.map(|tab| (format!("Details: {}", tab.title()), PageCommand::Open(tab)));
    let pages = [
        ("Benchmarks", "/benchmarks"),
        ("Results", "/results"),
        ("Compare", "/compare"),
        ("History", "/history"),
    ];
    let visit = pages.map(|(title, path)| (format!("Go to {title}"), PageCommand::Visit(path)));
    let others = [
        ("Theme: next of auto, light, dark", PageCommand::Theme),
        ("Undo", PageCommand::Undo),
        ("Redo", PageCommand::Redo),
        ("Print a report", PageCommand::Print),
    ];
    let others = others.map(|(title, command)| (title.to_string(), command));
    fields.into_iter().chain(show).chain(open).chain(others).chain(visit).collect()
}

/// Returns the commands whose title contains every word.
fn found(typed: &str) -> Vec<(String, PageCommand)> {
    let typed = typed.to_ascii_lowercase();
    let has_words =
        |title: &str| typed.split_whitespace().all(|word| title.to_ascii_lowercase().contains(word));
    commands().into_iter().filter(|(title, _)| has_words(title)).collect()
}

impl PageCommand {
    fn run(self, planner: Planner) {
        // Where a browser refuses, nothing happens.
        match self {
            PageCommand::Focus(id) => focus(id),
            PageCommand::Show(quantity) => planner.address.set_own(Y_KEY, quantity.id()),
            PageCommand::Open(tab) => {
                planner.address.set_own(TAB_KEY, tab.id());
                if let Some(details) = document().get_element_by_id(DETAILS_ID) {
                    details.scroll_into_view();
                }
                focus(&tab.button_id());
            }
            PageCommand::Visit(path) => drop(window().location().assign(path)),
            PageCommand::Theme => {
                let button = document().query_selector(".theme").ok().flatten();
                if let Some(button) = button.and_then(|button| button.dyn_into::<HtmlElement>().ok()) {
                    button.click();
                }
            }
            PageCommand::Undo => address::undo(),
            PageCommand::Redo => address::redo(),
            PageCommand::Print => planner.wants_print.set(true),
        }
    }
}

/// Whether a key typed there is text.
fn is_typing(event: &KeyboardEvent) -> bool {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    target.is_some_and(|target| matches!(target.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT"))
}

/// The palette, closed until a key opens it.
#[component]
pub(super) fn Palette() -> impl IntoView {
    let planner = Planner::of_page();
    let dialog = NodeRef::<Dialog>::new();
    let input = NodeRef::<Input>::new();
    let typed = RwSignal::new(String::new());
    let place = RwSignal::new(0);
    let shown = Memo::new(move |_| typed.with(|typed| found(typed)));
    let open = move || {
        typed.set(String::new());
        place.set(0);
        if let Some(dialog) = dialog.get_untracked() {
            // It fails if the palette is open already.
            let _ = dialog.show_modal();
        }
    };
    Effect::new(move |_| {
        if planner.asks_palette.get() {
            planner.asks_palette.set(false);
            open();
        }
    });
    let run = move |command: PageCommand| {
        if let Some(dialog) = dialog.get_untracked() {
            dialog.close();
        }
        command.run(planner);
    };
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        let has_control = event.ctrl_key() || event.meta_key();
        let command = match event.key().to_ascii_lowercase().as_str() {
            "k" if has_control => None,
            "?" if !is_typing(&event) => None,
            // In a field, the browser undoes the typing.
            "z" if has_control && !is_typing(&event) => match event.shift_key() {
                true => Some(PageCommand::Redo),
                false => Some(PageCommand::Undo),
            },
            _ => return,
        };
        event.prevent_default();
        match command {
            Some(command) => command.run(planner),
            None => open(),
        }
    });
    on_cleanup(move || keys.remove());
    let key = move |event: KeyboardEvent| {
        let count = shown.with_untracked(Vec::len);
        match event.key().as_str() {
            "ArrowDown" if count > 0 => place.update(|place| *place = (*place + 1) % count),
            "ArrowUp" if count > 0 => place.update(|place| *place = (*place + count - 1) % count),
            "Enter" => {
                let chosen = shown
                    .with_untracked(|shown| shown.get(place.get_untracked()).map(|(_, command)| *command));
                chosen.map(run);
            }
            _ => return,
        }
        event.prevent_default();
    };
    let option = move |index: usize, title: String, command: PageCommand| {
        view! {
            <li
                role="option"
                id=option_id(index)
                aria-selected=move || (place.get() == index).to_string()
                on:click=move |_| run(command)
            >{title}</li>
        }
    };
    view! {
        <dialog class="palette" node_ref=dialog aria-label="Commands">
            <input
                type="text"
                node_ref=input
                role="combobox"
                aria-label="Command"
                aria-expanded="true"
                aria-controls="palette-list"
                aria-activedescendant=move || option_id(place.get())
                autocomplete="off"
                placeholder="Type a command"
                prop:value=typed
                on:input=move |event| { typed.set(event_target_value(&event)); place.set(0); }
                on:keydown=key
            />
            <ul role="listbox" id="palette-list" aria-label="Commands">
                {move || shown.get().into_iter().enumerate().map(|(index, (title, command))| option(index, title, command)).collect_view()}
            </ul>
            <Show when=move || shown.with(Vec::is_empty)>
                <p role="status">"No matching command"</p>
            </Show>
            <p><small>
                <kbd>"↑"</kbd> <kbd>"↓"</kbd> " choose, " <kbd>"Enter"</kbd> " runs, " <kbd>"Esc"</kbd> " closes. "
                <kbd>"Ctrl K"</kbd> ", " <kbd>"⌘ K"</kbd> " or " <kbd>"?"</kbd> " opens this list; "
                <kbd>"Ctrl Z"</kbd> " undoes a change."
            </small></p>
        </dialog>
    }
}

fn option_id(index: usize) -> String {
    format!("command-{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_words_in_any_order() {
        let titles = |typed: &str| found(typed).into_iter().map(|(title, _)| title).collect::<Vec<_>>();
        assert_eq!(titles("cost chart"), ["Chart: Cost", "Chart: Cost per 1T tokens"]);
        assert_eq!(titles("memory"), ["Details: Memory"]);
        assert_eq!(titles("").len(), commands().len());
        assert!(titles("nothing like it").is_empty());
    }
}
