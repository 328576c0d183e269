//! Telling the server what a log is a run of, where that was not said at its upload.

use crate::address::Address;
use crate::components::trouble::TroubleNote;
use crate::desk::Desk;
use crate::message::{Compared, Question, Scope, Trouble};
use leptos::prelude::*;
use std::sync::Arc;
use trainplan_shared::problem::Field;

/// Offers to keep the recipe by which the page shows the run, for whoever may.
#[component]
pub(super) fn KeepRecipe(id: Memo<String>, compared: Memo<Arc<Compared>>) -> impl IntoView {
    let (desk, address) = (Desk::of_app(), Address::of_page());
    let may = desk.may(Scope::Admin, || true);
    let recipe = Memo::new(move |_| address.text(Field::Recipe));
    // A campaign has said what it carried out.
    let is_open = move || compared.with(|run| !run.on_server.is_empty() && !run.source.is_carried);
    let failed = RwSignal::new(None::<Trouble>);
    let keep = move |_| {
        let question = Question::Rescore { id: id.get_untracked(), recipe: recipe.get_untracked() };
        failed.set(None);
        desk.ask(question, move |answer| match answer {
            Ok(_) => address.set(Field::Recipe, ""),
            Err(trouble) => failed.set(Some(trouble)),
        });
    };
    view! {
        <Show when=move || may.get() && is_open() && !recipe.with(String::is_empty)>
            <div class="buttons">
                <p>"Only you see it as a run of " <code>{recipe}</code> "."</p>
                <button type="button" class="action" on:click=keep>"Keep it so on the server"</button>
            </div>
            <TroubleNote trouble=failed />
        </Show>
    }
}
