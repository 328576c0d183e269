//! Sets what the selected logs ran, where they don't say it or say it wrong.

use super::{PICKS, Results};
use crate::address::Address;
use crate::components::field::ProblemText;
use crate::components::run_table::split;
use crate::desk::Desk;
use crate::message::{Answer, Question, Row};
use leptos::html::Input;
use leptos::prelude::*;
use leptos::web_sys::FocusOptions;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::LogColumn;

/// A recipe is enough; without one, the others are needed.
const FIELDS: [Field; 5] = [Field::Recipe, Field::Model, Field::Gpu, Field::Gpus, Field::Gbs];

/// What can be done with the dropped logs among the selected runs: select the others of their folders, and set what they ran.
#[component]
pub(super) fn IdentifyPicked(picked: Memo<Vec<String>>) -> impl IntoView {
    let (desk, address) = (Desk::of_app(), Address::of_page());
    let Results { rows, identifies: is_open, .. } = Results::of_page();
    let ids = Memo::new(move |_| {
        let is_dropped = |id: &String| rows.with(|rows| rows.iter().any(|(row, _)| row.id == *id));
        picked.get().into_iter().filter(is_dropped).collect::<Vec<_>>()
    });
    // The selected runs with the other logs of their folders, if there are others.
    let of_folders = Memo::new(move |_| {
        let picked = picked.get();
        rows.with(|rows| {
            let folder_of = |id: &String| {
                let (row, _) = rows.iter().find(|(row, _)| row.id == *id)?;
                Some(split(&row.path).0)
            };
            let folders: Vec<String> = picked.iter().filter_map(folder_of).collect();
            let is_other = |id: &String, path: &str| {
                !id.is_empty() && !picked.contains(id) && folders.contains(&split(path).0)
            };
            let others = rows.iter().filter(|(row, _)| is_other(&row.id, &row.path));
            let others: Vec<String> = others.map(|(row, _)| row.id.clone()).collect();
            (!others.is_empty()).then(|| [picked.clone(), others].concat())
        })
    });
    let said = RwSignal::new(Spec::default());
    let problem = RwSignal::new(None::<Problem>);
    let set = move |query: String| {
        problem.set(None);
        desk.ask(Question::Identify { ids: ids.get_untracked(), query }, move |answer| match answer {
            Ok(Answer::Checked(Some(refusal))) => problem.set(Some(refusal.into())),
            Ok(_) => is_open.set(false),
            Err(_) => {
                problem.set(Some(Problem::new(Field::Recipe, "", "Something went wrong. Reload the page.")));
            }
        });
    };
    // The focus goes to the first field when the form opens. The form is over the page, which stays where it is.
    let first = NodeRef::<Input>::new();
    Effect::new(move |_| {
        if let Some(input) = first.get() {
            let stay = FocusOptions::new();
            stay.set_prevent_scroll(true);
            // It fails only for elements that are gone.
            let _ = input.focus_with_options(&stay);
        }
    });
    // The form starts closed for the next selection. `try_set`: the page may have been left.
    on_cleanup(move || {
        is_open.try_set(false);
    });
    let field = move |field: Field| {
        let node_ref = if field == FIELDS[0] { first } else { NodeRef::new() };
        view! {
            <label>
                {field.label()} " "
                <input
                    type="text"
                    autocomplete="off"
                    spellcheck="false"
                    placeholder="from the log"
                    node_ref=node_ref
                    prop:value=move || said.with(|said| said.raw(field).to_string())
                    on:input=move |event| said.update(|said| said.set(field, event_target_value(&event)))
                />
            </label>
        }
    };
    view! {
        <Show when=move || of_folders.with(Option::is_some)>
            <button type="button" class="action" on:click=move |_| {
                address.set_own(PICKS, of_folders.get_untracked().unwrap_or_default().join(","));
            }>"Select the whole folder"</button>
        </Show>
        <Show when=move || !ids.with(Vec::is_empty)>
            <button
                type="button"
                class="action"
                aria-expanded=move || is_open.get().to_string()
                on:click=move |_| is_open.update(|open| *open = !*open)
            >"Identify the run"</button>
            <Show when=move || is_open.get()>
                <form class="identify" on:submit=move |event| { event.prevent_default(); set(said.with_untracked(link::write)); }>
                    {FIELDS.map(field).collect_view()}
                    <button type="submit" class="action primary">
                        {move || match ids.with(Vec::len) {
                            1 => "Set for 1 log".to_string(),
                            count => format!("Set for {count} logs"),
                        }}
                    </button>
                    <button type="button" class="action" on:click=move |_| set(String::new())>"Reset to what the logs say"</button>
                    <p role="alert">{move || problem.get().map(|problem| {
                        let field = problem.field;
                        let choose = Callback::new(move |value: String| said.update(|said| said.set(field, value)));
                        view! { <ProblemText problem address choose /> }
                    })}</p>
                </form>
            </Show>
        </Show>
    }
}

/// The button that selects a scored log whose recipe is not known, and opens the form; none for another row.
pub(super) fn identify_button(address: Address, row: &Row) -> AnyView {
    if !row.status.is_scored() || row.id.is_empty() || row.text(LogColumn::Recipe.key()).is_some() {
        return ().into_any();
    }
    let (id, is_open) = (row.id.clone(), Results::of_page().identifies);
    let press = move |_| {
        address.set_own(PICKS, id.clone());
        is_open.set(true);
    };
    // Other rows have such a button too.
    let name = format!("Identify the run: {}", row.path);
    view! {
        <small><button type="button" class="link" aria-label=name on:click=press>"Identify the run"</button></small>
    }
    .into_any()
}
