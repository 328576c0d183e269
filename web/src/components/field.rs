//! Fields that write into the address, keep what was typed, and say beside it what is wrong with it.

use crate::address::Address;
use crate::message::Refusal;
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::message::Front;
use trainplan_shared::problem::Problem;

/// The problems of the page, for the fields that they belong to.
#[derive(Clone, Copy)]
pub(crate) struct Problems(pub(crate) Memo<Vec<Problem>>);

impl Problems {
    fn of(self, field: Field) -> Option<Problem> {
        self.0.with(|problems| problems.iter().find(|problem| problem.field == field).cloned())
    }
}

/// The id of a field's input.
fn input_id(field: Field) -> String {
    format!("field-{}", field.flag())
}

/// A field that takes text. Empty, it shows in grey what counts instead.
#[component]
pub(crate) fn TextField(
    /// The field.
    field: Field,
    /// What counts while nothing is typed.
    #[prop(into)]
    default: Signal<String>,
    /// Whether a phone should show its number keys.
    #[prop(default = true)]
    numeric: bool,
    /// What may be typed, if that is not plain.
    #[prop(optional)]
    help: &'static str,
) -> impl IntoView {
    let state = FieldState::new(field);
    view! {
        <Labelled state help>
            <input
                id=input_id(field)
                type="text"
                inputmode=if numeric { "numeric" } else { "text" }
                autocomplete="off"
                autocapitalize="off"
                spellcheck="false"
                placeholder=default
                prop:value=move || state.text()
                on:input=move |event| state.set(event_target_value(&event))
                aria-invalid=move || state.wrong().to_string()
                aria-describedby=state.note_id()
            />
        </Labelled>
    }
}

/// A field that takes several lines.
#[component]
pub(crate) fn AreaField(
    /// The field.
    field: Field,
    /// What may be typed.
    help: &'static str,
) -> impl IntoView {
    let state = FieldState::new(field);
    view! {
        <Labelled state help>
            <textarea
                id=input_id(field)
                spellcheck="false"
                prop:value=move || state.text()
                on:input=move |event| state.set(event_target_value(&event))
                aria-invalid=move || state.wrong().to_string()
                aria-describedby=state.note_id()
            ></textarea>
        </Labelled>
    }
}

/// A field that takes one of a few values. The first option means the default; a typed value that is none of them is
/// kept and marked.
#[component]
pub(crate) fn ChoiceField(
    /// The field.
    field: Field,
    /// Values with what people read.
    #[prop(into)]
    options: Signal<Vec<(String, String)>>,
    /// What the empty choice says.
    #[prop(into)]
    default: Signal<String>,
    /// What to know of it.
    #[prop(optional)]
    help: &'static str,
    /// What choosing does, if more than to type.
    #[prop(optional)]
    choose: Option<Callback<String>>,
) -> impl IntoView {
    let state = FieldState::new(field);
    let chosen = move |value: String| match choose {
        Some(choose) => choose.run(value),
        None => state.set(value),
    };
    let stray = move || {
        let typed = state.text();
        let known = options.with(|options| options.iter().any(|(value, _)| *value == typed));
        (!typed.is_empty() && !known).then_some(typed)
    };
    view! {
        <Labelled state help>
            <select
                id=input_id(field)
                on:change=move |event| chosen(event_target_value(&event))
                aria-invalid=move || state.wrong().to_string()
                aria-describedby=state.note_id()
            >
                <option value="" selected=move || state.text().is_empty()>{default}</option>
                {move || stray().map(|typed| view! { <option value=typed.clone() selected>{typed.clone()}</option> })}
                <For each=move || options.get() key=Clone::clone let((value, title))>
                    {
                        let own = value.clone();
                        view! { <option value=value selected=move || state.text() == own>{title}</option> }
                    }
                </For>
            </select>
        </Labelled>
    }
}

/// A field's label above it and its note below.
#[component]
fn Labelled(state: FieldState, help: &'static str, children: Children) -> impl IntoView {
    view! {
        <div class="field" class:changed=move || state.typed() class:wrong=move || state.wrong()>
            <label for=input_id(state.field) title=state.field.hint()>{state.field.label()}</label>
            {children()}
            <FieldNote state help />
        </div>
    }
}

/// A field that is on or off; on is written `yes`.
#[component]
pub(crate) fn SwitchField(
    /// The field.
    field: Field,
    /// What to know of it.
    #[prop(optional)]
    help: &'static str,
) -> impl IntoView {
    let state = FieldState::new(field);
    view! {
        <div class="field switch" class:changed=move || state.typed() class:wrong=move || state.wrong()>
            <label>
                <input
                    id=input_id(field)
                    type="checkbox"
                    prop:checked=move || state.text() == "yes"
                    on:change=move |event| state.set(if event_target_checked(&event) { "yes" } else { "" })
                    aria-describedby=state.note_id()
                />
                {field.label()}
            </label>
            <FieldNote state help />
        </div>
    }
}

/// What a field knows of itself.
#[derive(Clone, Copy)]
struct FieldState {
    field: Field,
    address: Address,
    problem: Memo<Option<Problem>>,
}

impl FieldState {
    fn new(field: Field) -> FieldState {
        let problems: Option<Problems> = use_context();
        let problem = Memo::new(move |_| problems.and_then(|problems| problems.of(field)));
        FieldState { field, address: Address::of_page(), problem }
    }

    /// What was typed.
    fn text(self) -> String {
        self.address.text(self.field)
    }

    fn set(self, text: impl Into<String>) {
        self.address.set(self.field, text);
    }

    fn typed(self) -> bool {
        !self.text().trim().is_empty()
    }

    fn wrong(self) -> bool {
        self.problem.with(Option::is_some)
    }

    fn note_id(self) -> String {
        format!("{}-note", input_id(self.field))
    }
}

/// What is wrong with a field, with the nearest values to take instead; or else what to know of it.
#[component]
fn FieldNote(state: FieldState, help: &'static str) -> impl IntoView {
    let address = state.address;
    view! {
        <div class="field-note" id=state.note_id()>
            {move || match state.problem.get() {
                Some(problem) => view! { <ProblemText problem address /> }.into_any(),
                None => help.into_any(),
            }}
        </div>
    }
}

/// A problem in words, its nearest values as buttons.
#[component]
pub(crate) fn ProblemText(problem: Problem, address: Address) -> impl IntoView {
    let allowed = problem.listed().map(|values| format!("Allowed: {}", values.join(", ")));
    let Problem { field, message, closest, suggestions, .. } = problem;
    let buttons = closest.into_iter().chain(suggestions).map(|value| {
        let take = value.clone();
        view! {
            <button type="button" class="nearest" on:click=move |_| address.set(field, take.clone())>
                {format!("Use {value}")}
            </button>
        }
    });
    view! {
        <span class="error">{message.text(Front::Page)}</span>
        {buttons.collect_view()}
        {allowed.map(|allowed| view! { <span class="allowed">{allowed}</span> })}
    }
}

/// What of the address could not be understood, and a recipe that is none.
#[component]
pub(crate) fn AddressProblems(address: Address) -> impl IntoView {
    let recipe = move || {
        let problems: Option<Problems> = use_context();
        problems
            .and_then(|problems| problems.0.get().into_iter().find(|problem| problem.field == Field::Recipe))
    };
    view! {
        <div aria-live="polite">
            {move || address.problems().into_iter().map(|problem| view! { <p class="notice wrong">{problem}</p> }).collect_view()}
            {move || recipe().map(|problem| view! { <p class="notice wrong"><ProblemText problem address /></p> })}
        </div>
    }
}

/// What the worker refuses, as the page's own problems are.
pub(crate) fn problem(refusal: &Refusal) -> Option<Problem> {
    let Refusal { flag, given, message, closest, suggestions, allowed } = refusal.clone();
    let field = Field::from_flag(&flag)?;
    Some(Problem { field, given, message: message.into(), closest, suggestions, allowed })
}
