//! Filters of the server's runs, kept in the address.

use crate::address::Address;
use crate::desk::Desk;
use crate::message::{Answer, Question};
use leptos::prelude::*;
use std::time::Duration;
use trainplan_shared::log::Status;

/// A filter: its key in the address, and its label.
pub(crate) type Filter = (&'static str, &'static str);

/// The key of the filter by GPU type. `gpu` is the field of the GPU type of dropped logs.
pub(crate) const GPU_FILTER: &str = "gpu-type";

/// Returns the key of a filter in the server's queries.
fn asked_key(key: &'static str) -> &'static str {
    if key == GPU_FILTER { "gpu" } else { key }
}

/// The address's key of the page of a list. Changing a filter returns to the first page.
pub(crate) const AFTER: &str = "after";

/// The pause in typing after which a filter is applied.
const PAUSE: Duration = Duration::from_millis(300);

/// Returns the set filters as a query for the server. A part of a name is enough.
pub(crate) fn asked(address: Address, filters: &[Filter]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (key, _) in filters {
        let words = address.own(key);
        let words: Vec<&str> = words.split_whitespace().collect();
        let value = match (*key, words.join("*")) {
            (_, words) if words.is_empty() => continue,
            ("status", status) if Status::ALL.iter().any(|known| known.id() == status) => status,
            ("status", _) => continue,
            // The start must match: B200 is not GB200, and FP8 is not MXFP8.
            (GPU_FILTER | "dtype", start) => format!("{start}*"),
            (_, words) => format!("*{words}*"),
        };
        query.append_pair(asked_key(key), &value);
    }
    query.finish()
}

/// Returns whether any filter is set.
pub(crate) fn is_any(address: Address, filters: &[Filter]) -> bool {
    filters.iter().any(|(key, _)| !address.own(key).is_empty())
}

/// Sets filters and returns to the first page.
fn set(address: Address, filters: impl Iterator<Item = (&'static str, String)>) {
    address.turn_to_own(&filters.chain([(AFTER, String::new())]).collect::<Vec<_>>());
}

/// A field for each filter.
#[component]
pub(crate) fn Filters(
    filters: &'static [Filter],
    /// The values that a filter suggests.
    known: Callback<&'static str, Vec<String>>,
) -> impl IntoView {
    let address = Address::of_page();
    let field = move |(key, label): Filter| {
        let id = format!("filter-{key}");
        let input = match key {
            "status" => view! {
                <select id=id.clone() on:change=move |event| set(address, [(key, event_target_value(&event))].into_iter())>
                    <option value="" prop:selected=move || address.own(key).is_empty()>"any"</option>
                    {Status::ALL.map(|status| view! {
                        <option value=status.id() prop:selected=move || address.own(key) == status.id()>{status.title()}</option>
                    }).collect_view()}
                </select>
            }.into_any(),
            _ => view! { <Typed id=id.clone() key known /> }.into_any(),
        };
        view! { <div class="field" class:changed=move || !address.own(key).is_empty()><label for=id>{label}</label>{input}</div> }
    };
    view! { <div class="controls filters">{filters.iter().map(|filter| field(*filter)).collect_view()}</div> }
}

/// A filter that applies while the user types.
#[component]
fn Typed(id: String, key: &'static str, known: Callback<&'static str, Vec<String>>) -> impl IntoView {
    let address = Address::of_page();
    let typed = RwSignal::new(String::new());
    // Follow the address, except for changes made by this field, which may be behind the typed text.
    let set_last = StoredValue::new(String::new());
    Effect::new(move |_| {
        let now = address.own(key);
        if now != set_last.get_value() {
            set_last.set_value(now.clone());
            typed.set(now);
        }
    });
    let waiting = StoredValue::new(None::<TimeoutHandle>);
    let stop = move || {
        if let Some(timer) = waiting.try_update_value(Option::take).flatten() {
            timer.clear();
        }
    };
    on_cleanup(stop);
    let act = move || {
        stop();
        let text = typed.get_untracked();
        if text != set_last.get_value() {
            set_last.set_value(text.clone());
            address.set_owns(&[(key, text), (AFTER, String::new())]);
        }
    };
    let input = move |event| {
        typed.set(event_target_value(&event));
        stop();
        waiting.set_value(set_timeout_with_handle(act, PAUSE).ok());
    };
    view! {
        <input
            id=id.clone() type="text" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="any"
            list=format!("{id}-known")
            prop:value=typed
            on:input=input
            on:change=move |_| act()
        />
        <datalist id=format!("{id}-known")>
            {move || known.run(key).into_iter().map(|value| view! { <option value=value></option> }).collect_view()}
        </datalist>
    }
}

/// The note that no run matches, with the filters that match none and buttons to clear them.
#[component]
pub(crate) fn NothingFound(filters: &'static [Filter]) -> impl IntoView {
    let address = Address::of_page();
    let unmet = Desk::of_app().answer(
        move || Some(Question::Unmet { query: asked(address, filters) }),
        |answer| if let Answer::Unmet(keys) = answer { Some(keys) } else { None },
    );
    let unmet = move || {
        let keys = unmet.get().unwrap_or_default();
        let unmet = filters.iter().filter(|(key, _)| keys.iter().any(|unmet| unmet == asked_key(key)));
        unmet.copied().collect::<Vec<_>>()
    };
    let culprit = move |(key, label): Filter| {
        view! {
            <p>
                {format!("No runs with {label} “{}”. ", address.own(key))}
                <button type="button" class="action" on:click=move |_| set(address, [(key, String::new())].into_iter())>
                    {format!("Clear {label}")}
                </button>
            </p>
        }
    };
    // With a single filter, its own sentence is enough.
    let is_said =
        move || unmet().len() == filters.iter().filter(|(key, _)| !address.own(key).is_empty()).count();
    let clear = move |_| set(address, filters.iter().map(|(key, _)| (*key, String::new())));
    view! {
        <div class="notice nothing" role="status">
            // First, because the other sentences come later and would move its button.
            <Show when=move || !is_said()>
                <p>"No runs match these filters. " <button type="button" class="action" on:click=clear>"Show all runs"</button></p>
            </Show>
            {move || unmet().into_iter().map(culprit).collect_view()}
        </div>
    }
}
