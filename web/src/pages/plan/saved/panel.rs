//! The saved plans side by side, with their differences.

use super::facts::PlanFact;
use super::links::comparison_link;
use super::tables::{data, table};
use super::{SavedPlan, SavedPlans};
use crate::components::copy::{CopyButton, DownloadButton};
use crate::components::focus::focus;
use crate::components::gpu_mark::GpuSign;
use crate::components::passing_note::PassingNote;
use crate::pages::plan::amounts::unbroken;
use crate::storage::json;
use leptos::prelude::*;

/// The id of the heading of the saved plans.
const TITLE_ID: &str = "saved-title";

/// The saved plans side by side, with their differences.
#[component]
pub(in crate::pages::plan) fn SavedPanel() -> impl IntoView {
    let saved = SavedPlans::of_page();
    let plans = saved.plans;
    let markdown = Signal::derive(move || plans.with(|plans| table(plans).to_markdown()));
    let csv = Signal::derive(move || plans.with(|plans| data(plans).to_csv().unwrap_or_default()));
    let json = Signal::derive(move || plans.with(|plans| json(plans, 2).unwrap_or_default()));
    let link = Signal::derive(move || plans.with(|plans| comparison_link(plans)));
    let has_any =
        move || !plans.with(Vec::is_empty) || !saved.sought.with(Vec::is_empty) || saved.lacks_some.get();
    let about = move || match (saved.are_linked, saved.sought.with(Vec::is_empty), saved.lacks_some.get()) {
        (false, ..) => "They are stored in this browser. Percentages compare with the first plan.",
        (true, false, _) => "Searching for the plans of the link …",
        (true, true, true) => "The search no longer finds all plans of the link.",
        (true, true, false) => {
            "They are kept in the link, not in this browser. Percentages compare with the first plan."
        }
    };
    // The plans that were removed together, until another is saved.
    let removed = RwSignal::new(Vec::<SavedPlan>::new());
    let remove_all = move |_| {
        removed.set(plans.get_untracked());
        plans.set(Vec::new());
    };
    let was_emptied = move || plans.with(Vec::is_empty) && removed.with(|removed| !removed.is_empty());
    let see = Callback::new(|()| focus(TITLE_ID));
    // A single plan differs from none.
    let only_differences = RwSignal::new(true);
    let is_one_of_several = move || plans.with(|plans| plans.len() > 1);
    view! {
        <PassingNote text=saved.note title="See saved plans" act=see />
        <Show when=was_emptied>
            <p role="status">
                "The saved plans were removed. "
                <button type="button" class="link" on:click=move |_| plans.set(removed.get_untracked())>"Undo"</button>
            </p>
        </Show>
        <Show when=has_any>
            <section class="saved panel-card" aria-labelledby=TITLE_ID>
                <header>
                    <h2 id=TITLE_ID tabindex="-1">"Saved plans"</h2>
                    <div class="buttons">
                        <Show when=is_one_of_several>
                            <button
                                type="button"
                                class="chip"
                                aria-pressed=move || only_differences.get().to_string()
                                on:click=move |_| only_differences.update(|only| *only = !*only)
                            >"Only differences"</button>
                        </Show>
                        <CopyButton text=link label="Copy comparison link" />
                        <CopyButton text=markdown label="Copy as Markdown" />
                        <DownloadButton text=csv name="plans.csv" label="CSV" />
                        <DownloadButton text=json name="plans.json" label="JSON" />
                        <button type="button" class="link" on:click=remove_all>
                            "Remove all"
                        </button>
                    </div>
                </header>
                <div class="scroll" tabindex="0" role="region" aria-labelledby=TITLE_ID>
                    {move || {
                        let is_short = only_differences.get();
                        plans.with(|plans| (!plans.is_empty()).then(|| side_by_side(saved, plans, is_short)))
                    }}
                </div>
                <p role="status"><small>{about}</small></p>
            </section>
        </Show>
    }
}

/// Returns the table of plans; a short one has only the rows in which they differ.
fn side_by_side(saved: SavedPlans, plans: &[SavedPlan], is_short: bool) -> impl IntoView + use<> {
    let head = |plan: &SavedPlan| {
        let query = plan.query().to_string();
        let (name, mark) = (plan.name(), plan.mark());
        // Two plans may differ in nothing else.
        let about = format!("{} · {}", plan.model, unbroken(&plan.plan.layout));
        let label = format!("Remove {name}");
        view! {
            <th scope="col">
                <GpuSign mark /><a href=format!("/?{query}") rel="external">{name}</a>
                <button type="button" class="save" aria-label=label title="Remove" on:click=move |_| saved.remove(&query)>
                    "×"
                </button>
                <small>{about}</small>
            </th>
        }
    };
    let row = |fact: PlanFact| {
        let texts: Vec<String> = plans.iter().map(|plan| fact.text(plan)).collect();
        let differs = texts.iter().any(|text| *text != texts[0]);
        // The head of the table says them.
        let is_in_head = matches!(fact, PlanFact::Model | PlanFact::Layout);
        if is_in_head || (is_short && plans.len() > 1 && !differs) {
            return None;
        }
        let best = fact.best(plans);
        let cells = plans.iter().zip(texts).enumerate().map(|(place, (plan, text))| {
            let difference = fact.difference(&plans[0], plan);
            let is_best = best == Some(place);
            let tag = is_best.then(|| view! { <span class="tag">"best"</span> });
            view! { <td class:best=is_best>{text} " " <small>{difference} {tag}</small></td> }
        });
        Some(
            view! { <tr class:differs=differs><th scope="row">{fact.title()}</th>{cells.collect_view()}</tr> },
        )
    };
    view! {
        <table class="side-by-side">
            <thead><tr><td></td>{plans.iter().map(head).collect_view()}</tr></thead>
            <tbody>{PlanFact::ALL.map(row)}</tbody>
        </table>
    }
}
