//! Telling the server what a log is a run of, where that was not said at its upload.

use crate::address::Address;
use crate::components::trouble::TroubleNote;
use crate::desk::Desk;
use crate::message::{Compared, Question, Scope, Trouble};
use leptos::prelude::*;
use std::sync::Arc;
use trainplan_shared::field::Field;

/// Says that the page shows the run by another recipe than the server, and offers to keep it so there to whoever may.
#[component]
pub(super) fn KeepRecipe(id: Memo<String>, compared: Memo<Arc<Compared>>) -> impl IntoView {
    let (desk, address) = (Desk::of_app(), Address::of_page());
    let may = desk.may(Scope::Admin, || true);
    let recipe = Memo::new(move |_| address.text(Field::Recipe));
    // A campaign has said what it carried out.
    let is_open = move || {
        let is_kept = compared.with(|run| !run.on_server.is_empty() && !run.source.is_carried);
        is_kept && desk.shared().is_none() && !recipe.with(String::is_empty)
    };
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
        <Show when=is_open>
            <div class="buttons">
                <p>"Only you see it as a run of " <code>{recipe}</code> "."</p>
                {move || match may.get() {
                    true => view! { <button type="button" class="action" on:click=keep>"Keep it so on the server"</button> }.into_any(),
                    false => view! { <p class="basis">"Who is signed in with the scope admin can keep it so."</p> }.into_any(),
                }}
            </div>
            <TroubleNote trouble=failed />
        </Show>
    }
}
