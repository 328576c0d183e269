//! The shown plan: its headline, its figures and what they rest on.

use super::chosen::HEADLINE_ID;
use super::figures::{Figures, as_measured, whole_cost, whole_run};
use super::fit::{Fit, LaunchFit};
use super::scenario_summary::ScenarioSummary;
use super::step_time::{PlannedStep, StepTimeSource};
use super::{BROKEN, CatalogEntry, Plan};
use crate::address::name_page;
use crate::components::copy::CopyButton;
use crate::components::field::ProblemText;
use crate::pages::plan::amounts::cost_texts;
use crate::pages::plan::question::{has_scenario, with_plan};
use crate::pages::plan::state::MeasuredStep;
use leptos::prelude::*;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::units::{days, group_digits, percent, readable};

/// The headline, the figures and their derivation.
#[component]
pub(super) fn Answers() -> impl IntoView {
    let plan = Plan::of_page();
    let problems = move || {
        let problems = plan.problems.get().into_iter();
        problems.filter(|problem| problem.field.is_of_scenario()).collect::<Vec<_>>()
    };
    let has_problems = move || !problems().is_empty();
    name_page(move || headline(plan));
    // With every field of the question and of the plan, so that other defaults show the same one day.
    let link = Signal::derive(move || {
        let (typed, asked) = (plan.address.spec(), plan.question.get());
        let whole = match has_scenario(&typed) {
            true => typed,
            false => plan.spec.with(|shown| with_plan(&typed, &asked, shown)),
        };
        plan.address.link_to(&whole)
    });
    view! {
        <section class="answers" aria-labelledby=HEADLINE_ID>
            <header>
                <div>
                    <small>{move || kind(plan)} {move || brief(plan)}</small>
                    <h2 id=HEADLINE_ID tabindex="-1">{move || headline(plan)}</h2>
                </div>
                <CopyButton text=link label="Copy link" />
            </header>
            <Show when=has_problems>
                <div class="notice wrong" role="alert">
                    <ul>
                        {move || problems().into_iter().map(|problem| view! {
                            <li><ProblemText problem address=plan.address /></li>
                        }).collect_view()}
                    </ul>
                </div>
            </Show>
            <Figures />
            <p class="basis">{move || {
                let (lead, sentence) = basis(plan);
                // What the figures rest on, unless they rest on what the user typed.
                let figures = plan.step.with(|step| match step.as_ref().filter(|step| !step.is_stale)?.source {
                    StepTimeSource::Predicted { .. } => Some("are predicted"),
                    StepTimeSource::Published => Some("use the recipe’s published step time"),
                    _ => None,
                });
                match plan.measured().zip(figures) {
                    Some((MeasuredStep { step_time_s, source }, figures)) => view! {
                        <strong>{format!("Measured: {}\u{a0}s per step.", readable(step_time_s))}</strong>
                        {format!(" {source}. The figures above {figures}. {sentence}")}
                    }.into_any(),
                    None => view! { <strong>{lead}</strong> " " {sentence} }.into_any(),
                }
            }}</p>
            <Fit />
            <LaunchFit />
            <ScenarioSummary />
        </section>
    }
}

/// Returns where the shown plan comes from.
fn kind(plan: Plan) -> &'static str {
    match plan.address.with_spec(has_scenario) {
        true if plan.recipe.get().is_some() => "Your plan, from a published recipe",
        true => "Your plan",
        false => "Proposed plan",
    }
}

/// Returns the days and the cost of the shown plan, which stay in sight with its heading, and its days with measured software if
/// nobody measured the plan's: ` · 53 days · $2.29M · 61 days with NeMo 2`.
fn brief(plan: Plan) -> String {
    if plan.cannot_run() {
        return String::new();
    }
    let run = whole_run(plan);
    let time = match &run {
        Some(run) => Some(days(run.expected_days)),
        None => plan.step.with(|step| step.as_ref()?.metrics.time_to_train_days.map(days)),
    };
    let cost = run.and_then(|run| Some(cost_texts(whole_cost(&run)?, &run.currency).0));
    let with_measured = as_measured(plan)
        .map(|measured| format!("{} with {}", days(measured.run.expected_days), measured.software));
    time.into_iter().chain(cost).chain(with_measured).map(|figure| format!(" · {figure}")).collect()
}

/// Returns the title of the scenario; if it has problems, the title of its recipe.
fn headline(plan: Plan) -> String {
    plan.scenario.with(|scenario| match scenario {
        Ok(scenario) => scenario_title(scenario),
        Err(problems) if problems.is_empty() => "Proposed plan".to_string(),
        Err(_) => plan
            .recipe
            .get()
            .map_or("Custom plan".into(), |CatalogEntry(recipe)| Catalog::embedded().title(&recipe.id)),
    })
}

fn scenario_title(scenario: &Scenario) -> String {
    let proxy = match scenario.is_proxy() {
        true => format!(" (proxy of {} layers)", scenario.architecture.layers),
        false => String::new(),
    };
    let gpus = group_digits(scenario.layout.gpus().into());
    let (model, gpu, dtype) = (&scenario.model.title, &scenario.gpu.name, scenario.dtype.title());
    format!("{model}{proxy} on {gpus} × {gpu}, {dtype}")
}

/// Returns the source of the step time: a lead in bold, and a sentence that may be empty.
fn basis(plan: Plan) -> (&'static str, String) {
    plan.scenario.with(|scenario| match (scenario, plan.step.get()) {
        (Err(problems), _) if problems.is_empty() => ("Searching …", String::new()),
        (Err(_), _) => {
            ("This plan can't run. The figures above are those of the previous one.", String::new())
        }
        (Ok(scenario), Some(step)) => {
            let evidence = plan.calculator.prediction.latest().map(|prediction| prediction.basis.clone());
            step_basis(scenario, &step, &evidence.unwrap_or_default())
        }
        (Ok(_), None) if plan.calculator.is_predicting() => ("Predicting …", String::new()),
        (Ok(_), None) if plan.calculator.is_broken() => {
            ("No step time.", format!("{BROKEN} You can also type a measured step time or an assumed MFU."))
        }
        // A typing error: its field shows the message.
        (Ok(_), None) => ("", String::new()),
    })
}

/// Returns the source of a step time. `evidence` says what a prediction rests on.
fn step_basis(scenario: &Scenario, step: &PlannedStep, evidence: &str) -> (&'static str, String) {
    let metrics = &step.metrics;
    let mfu = || percent(metrics.mfu.unwrap_or(0.0)).replace(' ', "\u{a0}");
    let is_own_gpu = scenario.gpu.id.contains(':');
    let evidence = if is_own_gpu { "Nothing was measured on this custom GPU." } else { evidence };
    match step.source {
        _ if step.is_stale => ("Predicting …", String::new()),
        StepTimeSource::Published => {
            let source = scenario.baseline().map(|baseline| format!("Source: {}.", baseline.publication()));
            ("Published measurement.", source.unwrap_or_default())
        }
        StepTimeSource::Typed => ("Your step time.", String::new()),
        StepTimeSource::TypedMfu => {
            ("Assumed MFU.", format!("Calculated from an MFU of {}, not predicted.", mfu()))
        }
        StepTimeSource::Predicted { .. } => {
            ("Predicted, not measured.", format!("{evidence} Ranges are 80\u{a0}% intervals."))
        }
        StepTimeSource::RecipeMfu => {
            let mfu = mfu();
            ("Assumed MFU.", format!("{BROKEN} Calculated from the recipe's published MFU of {mfu} instead."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::details::step_time::{PredictionState, plan_step};
    use trainplan_shared::spec::Spec;

    fn scenario(link: &str) -> (Spec, Scenario) {
        let spec = trainplan_shared::link::read(link).spec;
        let scenario = spec.scenario().expect("a valid scenario");
        (spec, scenario)
    }

    fn sentence(link: &str) -> (&'static str, String) {
        let (spec, scenario) = scenario(link);
        let prediction = PredictionState::Ready { low_s: 11.0, mid_s: 12.0, high_s: 14.0 };
        let step = plan_step(&spec, &scenario, prediction, None).expect("a step time");
        step_basis(&scenario, &step, "High confidence.")
    }

    #[test]
    fn each_source_of_a_step_time_is_named() {
        for (link, lead, text) in [
            (
                "r=llama3.1-405b/h100/fp8/512@25.04",
                "Published measurement.",
                "Source: DGX Cloud recipes 25.04.",
            ),
            (
                "r=llama3.1-70b/h100/fp8/64@26.06.01",
                "Published measurement.",
                "Source: Megatron-Bridge 26.04.01.",
            ),
            ("r=llama3.1-405b/h100/fp8/512@25.04&st=9", "Your step time.", ""),
            (
                "r=llama3.1-405b/h100/fp8/512@25.04&st=40%25",
                "Assumed MFU.",
                "Calculated from an MFU of 40.0\u{a0}%, not predicted.",
            ),
            (
                "r=llama3.1-405b/h100/fp8/512@25.04&n=4096",
                "Predicted, not measured.",
                "High confidence. Ranges are 80\u{a0}% intervals.",
            ),
            (
                "r=llama3.1-405b/h100/bf16/64@25.04&mbs=2&n=128",
                "Predicted, not measured.",
                "High confidence. Ranges are 80\u{a0}% intervals.",
            ),
        ] {
            assert_eq!(sentence(link), (lead, text.to_string()), "{link}");
        }
    }

    #[test]
    fn the_title_names_model_gpus_and_precision() {
        let (_, scenario) = scenario("r=llama3.1-405b/h100/fp8/512@25.04");
        assert_eq!(scenario_title(&scenario), "Llama 3.1 405B on 512 × H100, FP8");
    }
}
