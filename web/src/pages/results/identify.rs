//! Sets what the selected logs ran, where they don't say it or say it wrong.

use super::{PICKS, Results};
use crate::address::Address;
use crate::components::run_table::split;
use crate::desk::Desk;
use crate::message::{Answer, Question};
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::message::Front;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

/// A recipe is enough; without one, the others are needed.
const FIELDS: [Field; 5] = [Field::Recipe, Field::Model, Field::Gpu, Field::Gpus, Field::Gbs];

/// What can be done with the dropped logs among the selected runs: select the others of their folders, and set what they ran.
#[component]
pub(super) fn IdentifyPicked(picked: Memo<Vec<String>>) -> impl IntoView {
    let (desk, address) = (Desk::of_app(), Address::of_page());
    let rows = Results::of_page().rows;
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
    let is_open = RwSignal::new(false);
    let said = RwSignal::new(Spec::default());
    let problem = RwSignal::new(None::<String>);
    let set = move |query: String| {
        problem.set(None);
        desk.ask(Question::Identify { ids: ids.get_untracked(), query }, move |answer| match answer {
            Ok(Answer::Checked(Some(refusal))) => {
                problem.set(Some(Problem::from(refusal).text(Front::Page)));
            }
            Ok(_) => is_open.set(false),
            Err(_) => problem.set(Some("This failed. Reload the page.".into())),
        });
    };
    let field = move |field: Field| {
        view! {
            <label>
                {field.label()} " "
                <input
                    type="text"
                    autocomplete="off"
                    spellcheck="false"
                    placeholder="from the log"
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
            >"Set what ran"</button>
            <Show when=move || is_open.get()>
                <form class="identify" on:submit=move |event| { event.prevent_default(); set(said.with_untracked(link::write)); }>
                    {FIELDS.map(field).collect_view()}
                    <button type="submit" class="action primary">
                        {move || match ids.with(Vec::len) {
                            1 => "Set for 1 log".to_string(),
                            count => format!("Set for {count} logs"),
                        }}
                    </button>
                    <button type="button" class="action" on:click=move |_| set(String::new())>"Take it from the logs"</button>
                    <p role="alert" class="error">{problem}</p>
                </form>
            </Show>
        </Show>
    }
}
