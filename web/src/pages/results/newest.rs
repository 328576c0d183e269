//! The comparison of the newest runs.

use crate::address::Address;
use crate::components::plots::PlotSection;
use crate::components::run_table::{compare_href, run_href};
use crate::desk::Desk;
use crate::message::{Answer, Compared, Question};
use leptos::prelude::*;
use leptos_router::components::A;
use std::sync::Arc;

/// The newest run compared with the previous one, its plan and the published number.
#[component]
pub(super) fn Newest() -> impl IntoView {
    let desk = Desk::of_app();
    let asked = desk.answer(
        move || {
            desk.track_runs();
            (desk.has_server() == Some(true)).then_some(Question::Newest)
        },
        |answer| if let Answer::Comparison(compared) = answer { Some(*compared) } else { None },
    );
    let compared = Memo::new(move |_| asked.get().filter(|compared| !compared.rows.is_empty()));
    // What is below would move when the answer comes.
    let is_awaited =
        move || desk.has_server() != Some(false) && asked.get().is_none() && asked.trouble().is_none();
    view! {
        <Show when=is_awaited><div class="newest-place"></div></Show>
        {move || compared.get().map(|compared| view! { <NewestOf compared /> })}
    }
}

#[component]
fn NewestOf(compared: Arc<Compared>) -> impl IntoView {
    let address = Address::of_page();
    let ids: Vec<String> = compared.rows.iter().map(|row| row.id.clone()).collect();
    // The newest run is the last one.
    let newest = compared.rows.last().map(|row| (run_href(address, &row.id), row.path.clone()));
    let name = newest.map(|(href, path)| view! { ": " <A href>{path}</A> });
    let step_time = compared.step_time.clone();
    let plot = Memo::new(move |_| step_time.clone());
    view! {
        <section class="answers verdict" aria-labelledby="newest" data-verdict=compared.outcome.id()>
            <h2 id="newest">"Newest run" {name}</h2>
            <p class="headline" title=compared.headline_in_full.clone()>{compared.headline.clone()}</p>
            {(ids.len() > 1).then(|| view! { <p><A href=compare_href(address, &ids)>"Open comparison"</A></p> })}
            <PlotSection id="newest-step-time" title="Step time, s" plot />
        </section>
    }
}
