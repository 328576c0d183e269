//! Saves a recipe that the user set for a run on the server.

use crate::address::Address;
use crate::components::trouble::RequestErrorNote;
use crate::desk::Desk;
use crate::message::{Compared, Question, RequestError, Scope};
use leptos::prelude::*;
use std::sync::Arc;
use trainplan_shared::field::Field;

/// A note that the page shows the run with another recipe than the server, and a button to save it there.
#[component]
pub(super) fn KeepRecipe(id: Memo<String>, compared: Memo<Arc<Compared>>) -> impl IntoView {
    let (desk, address) = (Desk::of_app(), Address::of_page());
    let may = desk.may(Scope::Admin, || true);
    let recipe = Memo::new(move |_| address.text(Field::Recipe));
    // A campaign's run has its recipe from the campaign.
    let is_open = move || {
        let is_kept = compared.with(|run| !run.on_server.is_empty() && !run.source.is_carried);
        is_kept && desk.shared().is_none() && !recipe.with(String::is_empty)
    };
    let failed = RwSignal::new(None::<RequestError>);
    let keep = move |_| {
        let question = Question::Rescore { id: id.get_untracked(), recipe: recipe.get_untracked() };
        failed.set(None);
        desk.ask(question, move |answer| match answer {
            Ok(_) => address.set(Field::Recipe, ""),
            Err(trouble) => failed.set(Some(trouble)),
        });
    };
    view! {
        <Show when=is_open>
            <div class="buttons">
                <p>"Only you see this run with the recipe " <code>{recipe}</code> "."</p>
                {move || match may.get() {
                    true => view! { <button type="button" class="action" on:click=keep>"Save for everyone"</button> }.into_any(),
                    false => view! { <p class="basis">"Users with the scope admin can save it for everyone."</p> }.into_any(),
                }}
            </div>
            <RequestErrorNote trouble=failed />
        </Show>
    }
}
