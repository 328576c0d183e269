//! The star beside a plan, which saves it.

use super::links::link_of;
use super::{MOST, SavedPlans, saved_plan};
use crate::message::search::FoundPlan;
use crate::pages::plan::Planner;
use leptos::prelude::*;
use trainplan_shared::units::group_digits;

/// Why another plan is not saved.
const FULL: &str = "Four plans are saved, as many as fit side by side. Remove one to save another.";

/// A button that saves a plan, or removes it from the saved ones.
#[component]
pub(in crate::pages::plan) fn SaveButton(
    /// The GPU type's id.
    gpu: String,
    plan: FoundPlan,
) -> impl IntoView {
    let (planner, saved) = (Planner::of_page(), SavedPlans::of_page());
    let query = planner.search.findings.with_untracked(|findings| link_of(findings, &plan));
    let opened = query.clone();
    let is_saved = Memo::new(move |_| saved.contains(&opened));
    let name = format!("Save {} GPUs, {}", group_digits(plan.gpus.into()), plan.layout);
    let toggle = move |event: leptos::ev::MouseEvent| {
        // The row below the button would choose its plan.
        event.stop_propagation();
        if is_saved.get_untracked() {
            saved.remove(&query);
            return saved.note.set(Some("The plan is no longer saved.".into()));
        }
        if untrack(|| saved.is_full()) {
            return saved.note.set(Some(FULL.into()));
        }
        planner.search.findings.with_untracked(|findings| {
            if let Some(offer) = findings.offers.iter().find(|offer| offer.gpu.id == gpu) {
                let new = saved_plan(findings, offer, &plan);
                let (name, model) = (new.name(), new.model.clone());
                saved.plans.update(|plans| plans.push(new));
                let count = saved.plans.with_untracked(Vec::len);
                let [does, kept] = match saved.are_linked {
                    true => ["Added", " in the link"],
                    false => ["Saved", ""],
                };
                saved.note.set(Some(format!("{does}: {model} on {name}. {count} of {MOST} plans{kept}.")));
            }
        });
    };
    let is_refused = move || !is_saved.get() && saved.is_full();
    view! {
        <button
            type="button"
            class="save"
            aria-label=name
            aria-pressed=move || is_saved.get().to_string()
            // It can be clicked, and then says why it does nothing.
            aria-disabled=move || is_refused().to_string()
            title=move || match (is_saved.get(), is_refused()) {
                (true, _) => "Remove from the saved plans",
                (false, true) => FULL,
                (false, false) => "Save, to compare side by side",
            }
            on:click=toggle
        >
            {move || if is_saved.get() { "★" } else { "☆" }}
        </button>
    }
}
