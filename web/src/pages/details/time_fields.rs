//! The fields of the time to train, with its derivation.

use super::Plan;
use super::figures::{step_time, whole_run};
use super::step_time::{PlannedStep, StepTimeSource};
use crate::components::field::{ChoiceField, TextField};
use crate::components::maths::Maths;
use leptos::prelude::*;
use trainplan_shared::convention::Convention;
use trainplan_shared::estimate::Interval;
use trainplan_shared::explain::Line;
use trainplan_shared::field::Field;
use trainplan_shared::flops::ModelFlops;
use trainplan_shared::planning::RunPlan;
use trainplan_shared::spec::Spec;

/// The fields of the time to train, with its derivation.
#[component]
pub(super) fn TimeFields() -> impl IntoView {
    let plan = Plan::of_page();
    let flops = Signal::derive(move || {
        plan.scenario.with(|scenario| {
            scenario.as_ref().map_or(Vec::new(), |scenario| ModelFlops::of(scenario).explain)
        })
    });
    let steps = Signal::derive(move || plan.step.with(|step| step.as_ref().map_or(Vec::new(), derivation)));
    let run = Signal::derive(move || run_derivation(plan).unwrap_or_default());
    view! {
        <div class="controls">
            <TextField
                field=Field::StepTime
                default=step_time_default(plan)
                help="Seconds per step, or an assumed MFU (40%)."
            />
            <ChoiceField
                field=Field::Convention
                options=conventions()
                default=convention_default(plan)
                help="How model FLOPs are counted."
            />
        </div>
        <Maths title="Show the maths: from step time to days and MFU" lines=steps />
        <Show when=move || run.with(|lines| !lines.is_empty())>
            <Maths title="Show the maths: failures, checkpoints and cost" lines=run />
        </Show>
        <Maths title="Show the maths: model FLOPs per sequence" lines=flops />
    }
}

/// Returns the derivation of the expected days and cost of the whole run; none if [`whole_run`] returns none.
fn run_derivation(plan: Plan) -> Option<Vec<Line>> {
    whole_run(plan)?;
    let prediction = plan.calculator.prediction.latest()?;
    let step_time_s = Interval { low: prediction.low_s, mid: prediction.mid_s, high: prediction.high_s };
    let settings = plan.spec.with(Spec::run_settings).ok()?;
    let tokens = plan.step.with(|step| step.as_ref().map(|step| step.metrics.tokens))?;
    plan.scenario.with(|scenario| {
        let scenario = scenario.as_ref().ok()?;
        Some(RunPlan::new(scenario, step_time_s, tokens, &settings).explain_expected(scenario, &settings))
    })
}

fn step_time_default(plan: Plan) -> Signal<String> {
    Signal::derive(move || {
        let Some(step) = plan.step.get() else { return "–".into() };
        match step.source {
            StepTimeSource::Published => format!("{} (published)", step_time(&step)),
            StepTimeSource::Predicted { .. } => format!("{} (predicted)", step_time(&step)),
            StepTimeSource::RecipeMfu => format!("{} (assumed)", step_time(&step)),
            StepTimeSource::Typed | StepTimeSource::TypedMfu => String::new(),
        }
    })
}

const FULL: &str = "full attention, grouped queries";

fn conventions() -> Vec<(String, String)> {
    vec![
        (Convention::Full.to_string(), FULL.into()),
        (Convention::Causal.to_string(), "causal attention, grouped queries".into()),
    ]
}

fn convention_default(plan: Plan) -> Signal<String> {
    Signal::derive(move || match plan.recipe.get() {
        Some(_) => "recipe: as published".into(),
        None => FULL.into(),
    })
}

fn derivation(step: &PlannedStep) -> Vec<Line> {
    step.metrics.explain.clone()
}
