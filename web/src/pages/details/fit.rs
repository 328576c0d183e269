//! Whether the plan fits its GPUs, by the estimate and with the software of its launch, and what makes it fit.

use super::Plan;
use crate::message::{FieldChange, Remedy, Warning};
use leptos::prelude::*;
use trainplan_shared::estimate::MemoryVerdict;
use trainplan_shared::field::Field;
use trainplan_shared::launch::WarningTopic;

/// Returns what memory a plan lacks that doesn't fit, as a sentence; none if it may fit.
pub(super) fn lack(plan: Plan) -> Option<String> {
    let prediction = plan.calculator.prediction.latest()?;
    (prediction.memory_verdict == MemoryVerdict::DoesNotFit).then(|| prediction.fit.clone())
}

/// The sign of a verdict about memory.
fn sign(verdict: MemoryVerdict) -> &'static str {
    match verdict {
        MemoryVerdict::Fits => "✓ ",
        MemoryVerdict::TooClose => "≈ ",
        MemoryVerdict::DoesNotFit => "✕ ",
    }
}

/// Whether the scenario fits its GPUs, in words, by a sign and by colour; only in words for a plan that is shown no more.
#[component]
pub(super) fn Fit() -> impl IntoView {
    let plan = Plan::of_page();
    let verdict = move || plan.prediction().memory_verdict;
    view! {
        <Show when=move || plan.calculator.prediction.latest().is_some()>
            <p
                class="fit"
                class:stale=move || plan.is_outdated()
                class:outdated=move || plan.cannot_run()
                class:wrong=move || verdict() == MemoryVerdict::DoesNotFit
                class:doubtful=move || verdict() == MemoryVerdict::TooClose
                data-memory=move || verdict().id()
                aria-live="polite"
            >
                {move || match plan.cannot_run() {
                    true => view! { "The previous plan: " }.into_any(),
                    false => view! { <span aria-hidden="true">{sign(verdict())}</span> }.into_any(),
                }}
                {move || plan.prediction().fit}
            </p>
            <Show when=move || !plan.prediction().remedies.is_empty()>
                <div class="chips">
                    <span class="label">"Changes that make it fit"</span>
                    {move || plan.prediction().remedies.into_iter().map(|remedy| view! {
                        <RemedyChip remedy />
                    }).collect_view()}
                </div>
            </Show>
        </Show>
    }
}

/// Returns the warnings of the launch, without one about memory that would only repeat what the estimate says.
pub(super) fn launch_warnings(plan: Plan) -> Vec<Warning> {
    let launched = plan.calculator.launch.latest();
    let Some(launch) = launched.as_ref().and_then(|launched| launched.launch.as_ref()) else {
        return Vec::new();
    };
    let repeats = launch.memory == plan.prediction().memory_verdict;
    let is_new = |warning: &&Warning| !(repeats && warning.topic == WarningTopic::Memory);
    launch.warnings.iter().filter(is_new).cloned().collect()
}

/// Returns the warning that the plan doesn't fit with the software of its launch, although it fits by the estimate, or that its steps
/// take longer there.
pub(super) fn launch_misfit(plan: Plan) -> Option<Warning> {
    if plan.prediction().memory_verdict == MemoryVerdict::DoesNotFit {
        return None;
    }
    let is_slower = plan.calculator.launch.latest()?.launch.as_ref()?.slowdown.is_some();
    let warnings = launch_warnings(plan);
    let of = |topic: WarningTopic| warnings.iter().find(|warning| warning.topic == topic);
    of(WarningTopic::Memory).or_else(|| of(WarningTopic::Software).filter(|_| is_slower)).cloned()
}

/// A warning if the launch uses other software than the estimate, in which the plan doesn't fit or is slower.
#[component]
pub(super) fn LaunchFit() -> impl IntoView {
    let plan = Plan::of_page();
    let warning = Memo::new(move |_| launch_misfit(plan));
    let change = move |_| {
        if let Some(warning) = warning.get_untracked() {
            plan.address.update(|spec| {
                for (flag, value) in &warning.settings {
                    if let Some(field) = Field::from_flag(flag) {
                        spec.set(field, value.as_str());
                    }
                }
            });
        }
    };
    view! {
        {move || warning.get().map(|warning| view! {
            <p
                class="fit launch-fit"
                class:wrong=warning.topic == WarningTopic::Memory
                class:doubtful=warning.topic != WarningTopic::Memory
                role="status"
            >
                <span aria-hidden="true">{if warning.topic == WarningTopic::Memory { "✕ " } else { "! " }}</span>
                {warning.text} " "
                <button type="button" class="chip" on:click=change>"Plan with the script's software"</button>
            </p>
        })}
    }
}

/// A button for a change that makes the scenario fit.
#[component]
fn RemedyChip(remedy: Remedy) -> impl IntoView {
    let plan = Plan::of_page();
    let Remedy { title, changes } = remedy;
    let change = move |_| {
        plan.address.update(|spec| {
            for FieldChange { field, value } in &changes {
                spec.set(*field, value.clone());
            }
        });
    };
    view! { <button type="button" class="chip" on:click=change>{title}</button> }
}
