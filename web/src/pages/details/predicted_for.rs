//! The line of a tab that says which software its predictions are for.

use super::Plan;
use super::figures::as_measured;
use crate::message::RunAsMeasured;
use leptos::prelude::*;

/// Returns the line of a tab that says which software its predictions are for. `with_measured` returns how the tab's figures differ with
/// measured software, if nobody measured that of the plan, as a clause; none if no figure of the tab differs.
pub(super) fn predicted_for(
    plan: Plan,
    with_measured: impl Fn(&RunAsMeasured) -> Option<String> + Send + 'static,
) -> impl IntoView {
    move || {
        let prediction = plan.calculator.prediction.latest()?;
        let measured = as_measured(plan);
        let measured = measured.and_then(|run| Some(clause(&run.software, &with_measured(&run)?)));
        let text = format!("{}{}", prediction.predicted_for, measured.unwrap_or_default());
        Some(view! { <p class="basis predicted-for">{text}</p> })
    }
}

fn clause(software: &str, figures: &str) -> String {
    format!(" At the measured speed of {software}, {figures}.")
}
