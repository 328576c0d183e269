//! A text field with a list of choices that typing narrows.

use leptos::ev::KeyboardEvent;
use leptos::html::Input;
use leptos::prelude::*;
use trainplan_shared::matching::places_matching;

/// A choice: its value, its title and a note beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) title: String,
    pub(crate) note: String,
}

/// A last entry of the list that typing does not narrow.
#[derive(Clone, Copy)]
pub(crate) struct LastEntry {
    pub(crate) title: &'static str,
    /// Called instead of choosing a value.
    pub(crate) run: Callback<()>,
}

/// The most choices that the list shows.
const MOST: usize = 60;

/// Returns the choices that contain every word of `typed`, the best matches first.
fn matching<'a>(choices: &'a [Choice], typed: &str) -> Vec<&'a Choice> {
    let text = |choice: &Choice| format!("{} {} {}", choice.title, choice.value, choice.note);
    let texts: Vec<String> = choices.iter().map(text).collect();
    places_matching(&texts, typed).into_iter().take(MOST).map(|place| &choices[place]).collect()
}

/// A text field with a list of choices. Text that matches no choice is given to `choose` unchanged.
#[component]
pub(crate) fn Combobox(
    id: &'static str,
    label: &'static str,
    /// The title of the chosen value.
    #[prop(into)]
    title: Signal<String>,
    /// All choices.
    #[prop(into)]
    choices: Signal<Vec<Choice>>,
    /// Called with the chosen value.
    choose: Callback<String>,
    #[prop(optional)] placeholder: &'static str,
    #[prop(optional)] last: Option<LastEntry>,
    /// Whether the chosen value is wrong.
    #[prop(optional, into)]
    is_wrong: Signal<bool>,
) -> impl IntoView {
    let input = NodeRef::<Input>::new();
    let is_open = RwSignal::new(false);
    // None until something is typed: then all choices are listed.
    let typed = RwSignal::new(None::<String>);
    // None until an arrow key moves it: then it is the first match of what was typed, if any.
    let moved = RwSignal::new(None::<usize>);
    let shown = Memo::new(move |_| {
        let typed = typed.get().unwrap_or_default();
        choices.with(|choices| matching(choices, &typed).into_iter().cloned().collect::<Vec<_>>())
    });
    let active = Memo::new(move |_| {
        let is_typed = typed.with(|typed| typed.as_deref().is_some_and(|typed| !typed.trim().is_empty()));
        let has_match = is_typed && shown.with(|shown| !shown.is_empty());
        moved.get().or(has_match.then_some(0))
    });
    let close = move || {
        is_open.set(false);
        typed.set(None);
        moved.set(None);
    };
    let show_title = move || {
        if let Some(input) = input.get_untracked() {
            input.set_value(&title.get_untracked());
        }
    };
    // The focus stays, so that Tab moves to the next field.
    let take = move |value: String| {
        close();
        choose.run(value);
        show_title();
    };
    let take_last = move || {
        close();
        show_title();
        if let Some(last) = last {
            last.run.run(());
        }
    };
    let select = move || {
        if let Some(input) = input.get_untracked() {
            input.select();
        }
    };
    let key = move |event: KeyboardEvent| {
        let count = shown.with_untracked(Vec::len) + usize::from(last.is_some());
        match event.key().as_str() {
            "ArrowDown" | "ArrowUp" if count > 0 => {
                event.prevent_default();
                // The first press only opens the list.
                if is_open.get_untracked() {
                    // After typing, the first press of the arrow down stays on the first match.
                    let next = match (event.key() == "ArrowDown", moved.get_untracked()) {
                        (true, moved) => moved.map_or(0, |moved| (moved + 1) % count),
                        (false, moved) => moved.map_or(count - 1, |moved| (moved + count - 1) % count),
                    };
                    moved.set(Some(next));
                    scroll_to(id, next);
                }
                is_open.set(true);
            }
            "Enter" if is_open.get_untracked() => {
                event.prevent_default();
                let own = typed.get_untracked();
                let active = active.get_untracked();
                let chosen =
                    active.and_then(|active| shown.with_untracked(|shown| shown.get(active).cloned()));
                match (chosen, active, own) {
                    (Some(choice), ..) => take(choice.value),
                    (None, Some(_), _) => take_last(),
                    (None, None, Some(text)) if !text.trim().is_empty() => take(text),
                    _ => {
                        close();
                        show_title();
                    }
                }
            }
            "Escape" => {
                // What the list is in stays open.
                if is_open.get_untracked() {
                    event.prevent_default();
                }
                close();
                show_title();
            }
            _ => {}
        }
    };
    let option = move |(index, choice): (usize, Choice)| {
        let value = choice.value.clone();
        let is_chosen = title.with_untracked(|title| *title == choice.title);
        // Before the blur, which closes the list.
        let pick = move |event: leptos::ev::MouseEvent| {
            event.prevent_default();
            take(value.clone());
        };
        view! {
            <li
                id=format!("{id}-{index}")
                role="option"
                class:chosen=is_chosen
                aria-selected=move || (active.get() == Some(index)).to_string()
                on:mousedown=pick
            >
                {choice.title}
                {(!choice.note.is_empty()).then(|| view! { <small>{choice.note}</small> })}
            </li>
        }
    };
    view! {
        <span class="combobox">
            <input
                node_ref=input
                id=id
                type="text"
                role="combobox"
                aria-label=label
                aria-invalid=move || is_wrong.get().to_string()
                aria-expanded=move || is_open.get().to_string()
                aria-controls=format!("{id}-list")
                aria-autocomplete="list"
                aria-activedescendant=move || {
                    active.get().filter(|_| is_open.get()).map(|active| format!("{id}-{active}"))
                }
                autocomplete="off"
                spellcheck="false"
                placeholder=placeholder
                prop:value=title
                // Long names are cut.
                title=title
                size=move || title.with(|title| title.chars().count().clamp(6, 24)).to_string()
                // A list that opened with the focus would cover what is below, although the user didn't ask for
                // it.
                on:focus=move |_| select()
                on:click=move |_| if !is_open.get_untracked() {
                    is_open.set(true);
                    select();
                }
                on:blur=move |_| {
                    close();
                    show_title();
                }
                on:input=move |event| {
                    is_open.set(true);
                    moved.set(None);
                    typed.set(Some(event_target_value(&event)));
                }
                on:keydown=key
            />
            // A scrolling list would be a separate tab stop.
            <ul id=format!("{id}-list") role="listbox" tabindex="-1" aria-label=label hidden=move || !is_open.get()>
                {move || {
                    let shown = if is_open.get() { shown.get() } else { Vec::new() };
                    let is_empty = shown.is_empty() && is_open.get();
                    let last = last.filter(|_| is_open.get()).map(|last| (shown.len(), last));
                    view! {
                        {shown.into_iter().enumerate().map(option).collect_view()}
                        {is_empty.then(|| view! { <li class="none" role="option" aria-selected="false" aria-disabled="true">"No match"</li> })}
                        {last.map(|(index, last)| view! {
                            <li
                                id=format!("{id}-{index}")
                                role="option"
                                class="last"
                                aria-selected=move || (active.get() == Some(index)).to_string()
                                on:mousedown=move |event| {
                                    event.prevent_default();
                                    take_last();
                                }
                            >{last.title}</li>
                        })}
                    }
                }}
            </ul>
        </span>
    }
}

fn scroll_to(id: &str, index: usize) {
    if let Some(option) = document().get_element_by_id(&format!("{id}-{index}")) {
        option.scroll_into_view_with_bool(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_typed_word_must_match() {
        let choice = |value: &str, title: &str| Choice {
            value: value.into(),
            title: title.into(),
            note: String::new(),
        };
        let choices = [
            choice("llama3.1-70b", "Llama 3.1 70B"),
            choice("llama3.1-8b", "Llama 3.1 8B"),
            choice("kimi-k2", "Kimi K2"),
        ];
        let values = |typed: &str| {
            matching(&choices, typed).iter().map(|choice| choice.value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(values("llama 70"), ["llama3.1-70b"]);
        assert_eq!(values("K2"), ["kimi-k2"]);
        assert_eq!(values("").len(), 3);
        assert!(values("mixtral").is_empty());
    }

    #[test]
    fn choices_with_the_typed_word_come_before_those_with_a_longer_one() {
        let choice = |title: &str, note: &str| Choice {
            value: title.to_ascii_lowercase().replace(' ', "-"),
            title: title.into(),
            note: note.into(),
        };
        let choices = [
            choice("GH200", ""),
            choice("Nemotron 4 15B", "15.6B"),
            choice("Phi 14.8B", "14.8B"),
            choice("Qwen3 8B-A1B", "8.19B"),
            choice("H200", ""),
        ];
        let titles = |typed: &str| {
            matching(&choices, typed).iter().map(|choice| choice.title.clone()).collect::<Vec<_>>()
        };
        assert_eq!(titles("8B"), ["Qwen3 8B-A1B", "Phi 14.8B"]);
        assert_eq!(titles("h200"), ["H200", "GH200"]);
        assert_eq!(titles("1"), ["Nemotron 4 15B", "Phi 14.8B", "Qwen3 8B-A1B"]);
        assert_eq!(titles("qwen3 8").len(), 1);
    }
}
