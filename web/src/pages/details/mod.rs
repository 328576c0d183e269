//! The details of the Plan page: the shown plan with its step time, memory, evidence and launch script, and all settings.
//! They are a separate program, loaded after the first answers of `pages/plan`.

mod answers;
mod assumptions;
mod by_scripts;
mod calculator;
mod changes;
mod chosen;
mod edits;
mod estimate;
mod evidence;
mod figures;
mod fit;
mod launch;
mod locks;
mod own;
mod predicted_for;
mod recipe;
mod run_fields;
pub(crate) mod scaling;
mod scenario_summary;
mod software;
mod step_time;
mod steppers;
mod tabs;
mod time_fields;
mod typed_text;

use crate::address::Address;
use crate::components::field::Problems;
use crate::components::theme::Theme;
use crate::deadline;
use crate::message::Prediction;
use crate::pages::plan::handover::{self, PlanCheck};
use crate::pages::plan::question;
use crate::pages::plan::state::{MEASURED_KEY, MeasuredStep, PlanState, SETTINGS_ID, nearest_recipe};
use calculator::Calculator;
use leptos::ev::{FocusEvent, MouseEvent};
use leptos::html::{Details, Summary};
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::{Element, HtmlDetailsElement, HtmlElement};
use std::time::Duration;
use step_time::PlannedStep;
use trainplan_shared::catalog::Recipe;
use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::flops::ModelFlops;
use trainplan_shared::link;
use trainplan_shared::metrics::PeakTflops;
use trainplan_shared::planning::StepTime;
use trainplan_shared::problem::Problem;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;
use trainplan_shared::units::readable;

/// The message for a worker that did not start or stopped.
const BROKEN: &str = "The calculator failed to start. Reload the page.";

/// The state that the parts of the details share.
#[derive(Clone, Copy)]
struct Plan {
    state: PlanState,
    address: Address,
    question: Memo<Spec>,
    spec: Memo<Spec>,
    /// The scenario of the shown plan, or its problems. The list of problems is empty while the first search runs.
    scenario: Memo<Result<Scenario, Vec<Problem>>>,
    /// The recipe that the plan starts from; for an unknown id, the most similar one.
    recipe: Memo<Option<CatalogEntry<Recipe>>>,
    /// The step time with the figures that follow from it; none until there is one.
    step: Memo<Option<PlannedStep>>,
    calculator: Calculator,
    /// Whether the latest imported file was dropped on the page, outside the form.
    was_dropped: RwSignal<bool>,
    /// The problems of all fields; each field shows its own.
    problems: Memo<Vec<Problem>>,
}

/// An entry of the catalog. The catalog holds each entry once, so entries are equal if their addresses are.
struct CatalogEntry<T: 'static>(&'static T);

impl<T> Clone for CatalogEntry<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for CatalogEntry<T> {}
impl<T> PartialEq for CatalogEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Plan {
    fn of_page() -> Plan {
        #[expect(clippy::expect_used, reason = "the details provide it before their parts are made")]
        use_context().expect("the details provide their plan")
    }

    /// Whether the fields describe a plan that can't run, so that the figures are those of the previous one.
    fn cannot_run(self) -> bool {
        self.scenario.with(|scenario| scenario.as_ref().is_err_and(|problems| !problems.is_empty()))
    }

    /// Whether the figures are not yet, or not, those of the fields.
    fn is_outdated(self) -> bool {
        self.calculator.is_predicting() || self.cannot_run()
    }

    fn provide() -> Plan {
        let heard = handover::best_plan();
        let can_run = |plan: &Spec| Some(plan.scenario().is_ok());
        let state = PlanState::provide(|_| Memo::new(move |_| heard.get()), can_run);
        let PlanState { address, question, best, spec, .. } = state;
        let scenario =
            Memo::new(move |_| if state.is_waiting() { Err(Vec::new()) } else { spec.with(Spec::scenario) });
        Effect::new(move |_| {
            if !state.is_waiting() {
                let plan = spec.with(|spec| link::write(&spec.only_scenario()));
                handover::name_check(PlanCheck { plan, can_run: scenario.with(Result::is_ok) });
            }
        });
        address.complete_with(move |before, changed| {
            let shown = best.get_untracked().map(|_| spec.get_untracked());
            let asked = question.get_untracked();
            locks::following(before, question::completed(before, changed, &asked, shown.as_ref()))
        });
        let recipe = Memo::new(move |_| {
            spec.with(|spec| spec.get(Field::Recipe).map(nearest_recipe).map(CatalogEntry))
        });
        let predicted = move || spec.with(|spec| link::write(&predicted_fields(spec)));
        let is_valid = move || scenario.with(Result::is_ok);
        let calculator = Calculator::start(
            Memo::new(move |_| is_valid().then(predicted)),
            Memo::new(move |_| is_valid().then(|| spec.with(link::write))),
            plans_to_launch(address),
        );
        Effect::new(move |_| calculator.scripts.with(|scripts| handover::name_scripts(scripts)));
        by_scripts::answer_questions();
        let step = Memo::new(move |before: Option<&Option<PlannedStep>>| {
            let state = calculator.prediction_state();
            let before = before.cloned().flatten();
            spec.with(|spec| {
                scenario.with(|scenario| match scenario {
                    Ok(scenario) => step_time::plan_step(spec, scenario, state, before),
                    Err(_) => before.map(|before| PlannedStep { is_stale: true, ..before }),
                })
            })
        });
        let problems = Memo::new(move |_| {
            let mut problems = spec.with(typing_problems);
            let mut invalid = scenario.with(|scenario| scenario.as_ref().err().cloned().unwrap_or_default());
            spec.with(|spec| spec.prefer_fitting(&mut invalid));
            problems.append(&mut invalid);
            // The launch panel shows which scenario fields a release refuses: such a scenario can still be
            // planned.
            let launched = calculator.launch.latest();
            let refused = launched.iter().flat_map(|launched| launched.refusals.clone()).map(Problem::from);
            problems.extend(refused.filter(|problem| !problem.field.is_of_scenario()));
            // Those of the search and of the whole run, whose fields are in the drawer.
            let asked = deadline::question(question.get()).err().unwrap_or_default();
            problems.extend(asked.into_iter().filter(|problem| !problem.field.is_of_scenario()));
            problems
        });
        provide_context(Problems(problems));
        let was_dropped = RwSignal::new(false);
        let plan = Plan {
            state,
            address,
            question,
            spec,
            scenario,
            recipe,
            step,
            calculator,
            was_dropped,
            problems,
        };
        provide_context(plan);
        own::take_imports(plan);
        own::take_drops(plan);
        locks::provide(plan);
        plan
    }

    /// Returns the measured step time of the benchmark that was opened, as long as the plan is the measured one.
    fn measured(self) -> Option<MeasuredStep> {
        let text = self.address.own(MEASURED_KEY);
        if text.is_empty() { None } else { self.address.with_spec(|spec| MeasuredStep::read(&text, spec)) }
    }

    /// Returns the latest prediction; an empty one before the first.
    fn prediction(self) -> Prediction {
        let latest = self.calculator.prediction.latest();
        latest.map_or_else(Prediction::default, |prediction| (*prediction).clone())
    }

    /// Returns the label of an MFU, with its FLOPs convention and the peak that it divides by.
    fn mfu_label(self) -> String {
        self.scenario.with(|scenario| {
            let Ok(scenario) = scenario else { return "MFU".to_string() };
            let convention = ModelFlops::of(scenario).convention;
            let peak = readable(PeakTflops::of(scenario).tflops);
            format!("MFU (convention: {convention}, peak: {peak} TFLOPS)")
        })
    }
}

/// Returns the query of each plan that the first program names, with that of its scenario and the options of the launch.
fn plans_to_launch(address: Address) -> Memo<Vec<(String, String)>> {
    let named = handover::named_plans();
    Memo::new(move |_| {
        let named = named.get().unwrap_or_default();
        address.with_spec(|typed| {
            let is_option = |field: Field| matches!(field.group(), FieldGroup::Cluster | FieldGroup::Job);
            let launched = |query: &str| {
                let options = typed.iter().filter(|(field, _)| is_option(*field));
                let spec = options.fold(link::read(query).spec, |spec, (field, text)| spec.with(field, text));
                (query.to_string(), link::write(&spec))
            };
            named.split_whitespace().map(launched).collect()
        })
    })
}

/// Returns the fields that describe the scenario and the whole run, without those of its launch and of the page.
fn predicted_fields(spec: &Spec) -> Spec {
    let is_of_run = |field: Field| field.group() == FieldGroup::Goal && field != Field::StepTime;
    let is_predicted = |field: Field| field.is_of_scenario() || is_of_run(field);
    let fields = spec.iter().filter(|(field, _)| is_predicted(*field));
    fields.fold(Spec::default(), |spec, (field, text)| spec.with(field, text))
}

/// Returns the problems of the token count and the step time, which are not part of the scenario.
fn typing_problems(spec: &Spec) -> Vec<Problem> {
    let step_time = spec.parse::<StepTime>(Field::StepTime).err();
    spec.tokens().err().into_iter().chain(step_time).collect()
}

/// Keeps the heading of the shown plan right below the question bar, where the styles make it stay in sight. The bar's height depends
/// on the question.
fn follow_bar(question: Memo<Spec>) {
    /// In CSS pixels, so that nothing is seen between the bar and the heading.
    const OVERLAP: f64 = 4.0;
    let measure = || {
        let find = |selector: &str| document().query_selector(selector).ok().flatten();
        let heading = find(".answers > header").and_then(|heading| heading.dyn_into::<HtmlElement>().ok());
        if let (Some(bar), Some(heading)) = (find(".question"), heading) {
            let top = format!("{}px", bar.get_bounding_client_rect().height() - OVERLAP);
            // It does not fail: the name is valid.
            let _ = HtmlElement::style(&heading).set_property("top", &top);
        }
    };
    Effect::new(move |_| {
        question.track();
        // The other program draws the question meanwhile.
        set_timeout(measure, Duration::ZERO);
    });
    let resized = window_event_listener(leptos::ev::resize, move |_| measure());
    on_cleanup(move || resized.remove());
}

/// The width up to which the settings lie over the page, in CSS pixels, as in plan.css.
const NARROW: f64 = 720.0;

/// The settings also lie over the page from this width on.
const WIDE: f64 = 1440.0;

/// Whether the window is so narrow or so wide that the settings lie over the page.
fn lie_over_page() -> bool {
    let width = window().inner_width().ok().and_then(|width| width.as_f64());
    width.is_some_and(|width| width <= NARROW || width >= WIDE)
}

/// What had the focus when the settings were opened from elsewhere; none if their own heading opened them.
type Opener = StoredValue<Option<HtmlElement>, LocalStorage>;

/// Closes the settings, and moves the focus to where they were opened, or to their heading.
fn close(drawer: &HtmlDetailsElement, opener: Opener, heading: NodeRef<Summary>) {
    drawer.set_open(false);
    let opener = opener.try_update_value(Option::take).flatten();
    let target = opener.filter(|opener| opener.is_connected()).or_else(|| heading.get_untracked());
    if let Some(target) = target {
        // Not by its id: `components::focus` opens what is around an element. It fails only for elements that are gone.
        let _ = target.focus();
    }
}

/// Closes the settings on Escape if the focus is in them or nowhere, and gives it back.
fn close_on_escape(drawer: NodeRef<Details>, heading: NodeRef<Summary>, opener: Opener) {
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        // An open list or a note takes the first one.
        if event.key() != "Escape" || event.default_prevented() || event.is_composing() {
            return;
        }
        let Some(drawer) = drawer.get_untracked().filter(HtmlDetailsElement::open) else { return };
        let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
        let is_concerned = target.is_some_and(|target| {
            target.tag_name() == "BODY" || matches!(target.closest(".drawer"), Ok(Some(_)))
        });
        if is_concerned {
            event.prevent_default();
            close(&drawer, opener, heading);
        }
    });
    on_cleanup(move || keys.remove());
}

/// A group of settings: a title and a note, which may be empty, beside the fields.
#[component]
fn SettingsGroup(
    #[prop(into)] title: Signal<String>,
    #[prop(into)] note: Signal<String>,
    children: Children,
) -> impl IntoView {
    view! {
        <fieldset>
            <legend>{title}</legend>
            <small>{note}</small>
            <div>{children()}</div>
        </fieldset>
    }
}

/// The shown plan, and all settings.
#[component]
pub(crate) fn PlanDetails() -> impl IntoView {
    Theme::follow();
    let plan = Plan::provide();
    follow_bar(plan.question);
    typed_text::mark_fields();
    // An address with changed settings opens them, unless they would cover the plan.
    let describes_plan = plan.address.with_spec_untracked(|spec| {
        spec.iter().any(|(field, _)| field.is_of_scenario() && field != Field::Recipe)
            && spec.get(Field::GpuTypes).is_none()
    });
    let opened = !lie_over_page() && describes_plan;
    let has_problem = Memo::new(move |_| {
        let is_inside = |problem: &Problem| {
            matches!(problem.field.group(), FieldGroup::Search | FieldGroup::Goal)
                && !run_fields::IN_BAR.contains(&problem.field)
        };
        plan.problems.with(|problems| problems.iter().any(is_inside))
    });
    let drawer = NodeRef::<Details>::new();
    Effect::new(move |_| {
        if let (true, Some(drawer)) = (has_problem.get(), drawer.get()) {
            drawer.set_open(true);
        }
    });
    let heading = NodeRef::<Summary>::new();
    let opener = StoredValue::new_local(None);
    // After the notes above them listen.
    Effect::new(move |_| close_on_escape(drawer, heading, opener));
    let remember = move |event: FocusEvent| {
        let from = event.related_target().and_then(|target| target.dyn_into::<HtmlElement>().ok());
        let from = from.filter(|from| !matches!(from.closest(".drawer"), Ok(Some(_))));
        if let (Some(from), Some(drawer)) = (from, drawer.get_untracked()) {
            opener.set_value(drawer.open().then_some(from));
        }
    };
    let leave = move |event: MouseEvent| {
        let open = drawer.get_untracked().filter(|drawer| drawer.open() && lie_over_page());
        if let Some(drawer) = open {
            // The browser would close them after this, but what they hide on a phone takes no focus until then.
            event.prevent_default();
            close(&drawer, opener, heading);
        }
    };
    view! {
        <own::ImportNotice />
        <chosen::ChosenNotice />
        <div class="shown">
            <answers::Answers />
            <tabs::Tabs />
        </div>
        <details class="drawer" open=opened node_ref=drawer on:focusin=remember>
            <summary id=SETTINGS_ID node_ref=heading on:click=leave>"All settings"</summary>
            <div class="inputs">
                <recipe::RecipePicker />
                <changes::Changes />
                <run_fields::RunFields />
            </div>
        </details>
        <assumptions::Assumptions />
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_depends_on_the_fields_of_the_scenario_and_of_the_run_only() {
        let typed = link::read("r=llama3.1-405b/h100/fp8/512@25.04&n=1024&t=15T&acc=research").spec;
        assert_eq!(
            link::write(&predicted_fields(&typed)),
            "v=1&r=llama3.1-405b/h100/fp8/512@25.04&n=1024&t=15T"
        );
    }

    #[test]
    fn the_tokens_and_the_step_time_have_problems_of_their_own() {
        let typed = link::read("r=llama3.1-405b/h100/fp8/512@25.04&t=many&st=10 s").spec;
        let fields: Vec<Field> = typing_problems(&typed).iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [Field::Tokens, Field::StepTime]);
    }
}
