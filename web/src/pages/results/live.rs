//! Unfinished runs.

use crate::desk::Desk;
use crate::message::{Answer, LiveRun, Question};
use leptos::prelude::*;
use std::time::Duration;

/// How often the times since the last report are updated.
const EVERY: Duration = Duration::from_mins(1);

/// The runs that report progress, and those that ended recently without a result; nothing without any.
#[component]
pub(super) fn Live() -> impl IntoView {
    let desk = Desk::of_app();
    let minutes = RwSignal::new(0_u32);
    let runs = desk.answer(
        move || {
            desk.track_live();
            desk.track_runs();
            minutes.track();
            (desk.has_server() == Some(true)).then_some(Question::Live)
        },
        |answer| if let Answer::Live(runs) = answer { Some(runs) } else { None },
    );
    let runs = Memo::new(move |_| runs.get().map(|runs| runs.to_vec()).unwrap_or_default());
    let of = move |is_over| {
        let runs = runs.get().into_iter().filter(|run| run.is_over == is_over);
        runs.collect::<Vec<_>>()
    };
    if let Ok(timer) = set_interval_with_handle(
        move || {
            if !document().hidden() && !runs.with_untracked(Vec::is_empty) {
                minutes.update(|count| *count += 1);
            }
        },
        EVERY,
    ) {
        on_cleanup(move || timer.clear());
    }
    view! {
        <LiveRuns id="live" title="Running now" seen="Last update" runs=Memo::new(move |_| of(false)) />
        <LiveRuns id="ended" title="Ended without a result" seen="Ended" runs=Memo::new(move |_| of(true)) />
    }
}

#[component]
fn LiveRuns(
    id: &'static str,
    title: &'static str,
    /// The title of the last column.
    seen: &'static str,
    runs: Memo<Vec<LiveRun>>,
) -> impl IntoView {
    view! {
        <Show when=move || !runs.with(Vec::is_empty)>
            <section class="server" aria-labelledby=id>
                <h2 id=id>{title}</h2>
                <div class="scroll" tabindex="0" role="region" aria-label=format!("{title}, as a table")>
                    <table class="cards live">
                        <thead>
                            <tr>
                                <th scope="col">"Run"</th>
                                <th scope="col">"State"</th>
                                <th scope="col">"Step"</th>
                                <th scope="col" class="number">"Step time, s"</th>
                                <th scope="col" class="number">"Planned, s"</th>
                                <th scope="col">{seen}</th>
                            </tr>
                        </thead>
                        <tbody>{move || runs.get().into_iter().map(|run| view! { <LiveRow run seen /> }).collect_view()}</tbody>
                    </table>
                </div>
            </section>
        </Show>
    }
}

#[component]
fn LiveRow(run: LiveRun, seen: &'static str) -> impl IntoView {
    let or_none = |text: &str| if text.is_empty() { "–".to_string() } else { text.to_string() };
    let step = match (run.step, run.steps) {
        (Some(step), Some(steps)) if run.is_over => format!("{step} of {steps}").into_any(),
        (Some(step), Some(steps)) => view! {
            <progress value=step.to_string() max=steps.to_string() aria-label=format!("Steps of {}", run.name)></progress>
            {format!(" {step} of {steps}")}
        }.into_any(),
        (Some(step), None) => step.to_string().into_any(),
        _ => "–".into_any(),
    };
    view! {
        <tr data-status=if run.is_over { "failed" } else { "" }>
            <th scope="row" data-label="Run">
                {run.name.clone()}
                <small>{run.place.clone()}</small>
                {(!run.recipe.is_empty()).then(|| view! { <small>{run.recipe.clone()}</small> })}
            </th>
            <td data-label="State"><span class="status">{run.state.title()}</span></td>
            <td data-label="Step">{step}</td>
            <td data-label="Step time, s" class="number">{or_none(&run.step_time)}</td>
            <td data-label="Planned, s" class="number">{or_none(&run.planned)}</td>
            <td data-label=seen>{run.seen}</td>
        </tr>
    }
}
