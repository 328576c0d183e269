//! The launch panel: the commands that start the scenario, to copy or save.

use leptos::prelude::*;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

/// What is wrong with the launch options.
pub(super) fn problems(_spec: &Spec) -> Vec<Problem> {
    Vec::new()
}

/// The launch panel.
#[component]
pub(super) fn LaunchPanel() -> impl IntoView {}
