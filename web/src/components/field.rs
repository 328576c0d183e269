//! Form fields. Their texts are kept in the address, and each shows its own problem below it.

use crate::address::Address;
use leptos::prelude::*;
use leptos::web_sys::HtmlInputElement;
use trainplan_shared::field::{Field, FieldValue};
use trainplan_shared::message::Front;
use trainplan_shared::problem::Problem;

/// The problems of all fields of the page.
#[derive(Clone, Copy)]
pub(crate) struct Problems(pub(crate) Memo<Vec<Problem>>);

impl Problems {
    fn of(self, field: Field) -> Option<Problem> {
        self.0.with(|problems| problems.iter().find(|problem| problem.field == field).cloned())
    }
}

/// The locks that a page offers beside fields.
#[derive(Clone, Copy)]
pub(crate) struct FieldLocks {
    /// The fields that can be locked.
    pub(crate) lockable: &'static [Field],
    /// The locked fields, with the values that the search may use.
    pub(crate) locked: Memo<Vec<(Field, String)>>,
    /// Locks a field or removes its lock.
    pub(crate) toggle: Callback<Field>,
}

/// A button that locks a field, on a page that offers it.
#[component]
fn LockButton(field: Field) -> impl IntoView {
    let locks: Option<FieldLocks> = use_context();
    locks.filter(|locks| locks.lockable.contains(&field)).map(|FieldLocks { locked, toggle, .. }| {
        let values = move || {
            locked
                .with(|locked| locked.iter().find(|(own, _)| *own == field).map(|(_, values)| values.clone()))
        };
        view! {
            <button
                type="button"
                class="lock"
                aria-label=format!("Lock {}", field.label())
                title="Make the search use this value"
                aria-pressed=move || values().is_some().to_string()
                on:click=move |_| toggle.run(field)
            >
                {move || values().map_or("Lock".to_string(), |values| format!("Locked: {values}"))}
            </button>
        }
    })
}

/// Returns the HTML id of a field's input.
fn input_id(field: Field) -> String {
    format!("field-{}", field.flag())
}

/// A field of the form that its kind of value needs.
#[component]
pub(crate) fn FormField(
    field: Field,
    /// The value that applies while the field is empty.
    #[prop(into)]
    default: Signal<String>,
    /// A note shown below the field.
    help: &'static str,
) -> impl IntoView {
    match field.value() {
        // Others have a choice of on and off.
        FieldValue::Switch if field.placeholder().is_empty() => {
            view! { <SwitchField field help /> }.into_any()
        }
        FieldValue::Variables => view! { <AreaField field help /> }.into_any(),
        _ => view! { <TextField field default help /> }.into_any(),
    }
}

/// A text field. Empty, it shows in grey the value that applies.
#[component]
pub(crate) fn TextField(
    field: Field,
    /// The value that applies while the field is empty.
    #[prop(into)]
    default: Signal<String>,
    /// A note shown below the field.
    #[prop(optional)]
    help: &'static str,
) -> impl IntoView {
    let state = FieldState::new(field);
    // Phones show the number keys. Other numbers may have a suffix, such as 15T.
    let is_number = field.value() == FieldValue::Whole;
    let mode = if is_number { "numeric" } else { "text" };
    view! {
        <Labelled state help>
            <input
                id=input_id(field)
                type="text"
                inputmode=mode
                autocomplete="off"
                autocapitalize="off"
                spellcheck="false"
                placeholder=default
                prop:value=move || state.text()
                on:input=move |event| state.set(event_target_value(&event))
                // A number is replaced, not continued.
                on:focus=move |event| if is_number { event_target::<HtmlInputElement>(&event).select() }
                aria-invalid=move || state.is_wrong().to_string()
                aria-describedby=state.note_id()
            />
        </Labelled>
    }
}

/// A text field of several lines.
#[component]
pub(crate) fn AreaField(
    field: Field,
    /// A note shown below the field.
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
                aria-invalid=move || state.is_wrong().to_string()
                aria-describedby=state.note_id()
            ></textarea>
        </Labelled>
    }
}

/// A choice of one of a few values. The first option is the default; an unknown value from the address is
/// added as an option.
#[component]
pub(crate) fn ChoiceField(
    field: Field,
    /// The values with their titles.
    #[prop(into)]
    options: Signal<Vec<(String, String)>>,
    /// The title of the default.
    #[prop(into)]
    default: Signal<String>,
    /// A note shown below the field.
    #[prop(optional)]
    help: &'static str,
    /// Called instead of setting the field, with the chosen value.
    #[prop(optional)]
    choose: Option<Callback<String>>,
) -> impl IntoView {
    let state = FieldState::new(field);
    let chosen = move |value: String| match choose {
        Some(choose) => choose.run(value),
        None => state.set(value),
    };
    let unknown = move || {
        let typed = state.text();
        let known = options.with(|options| options.iter().any(|(value, _)| *value == typed));
        (!typed.is_empty() && !known).then_some(typed)
    };
    view! {
        <Labelled state help>
            <select
                id=input_id(field)
                class:unset=move || state.text().is_empty()
                on:change=move |event| chosen(event_target_value(&event))
                aria-invalid=move || state.is_wrong().to_string()
                aria-describedby=state.note_id()
            >
                <option value="" prop:selected=move || state.text().is_empty()>{default}</option>
                {move || unknown().map(|typed| view! {
                    <option value=typed.clone() selected>{typed.clone()}</option>
                })}
                <For each=move || options.get() key=Clone::clone let((value, title))>
                    {
                        let own = value.clone();
                        view! { <option value=value prop:selected=move || state.text() == own>{title}</option> }
                    }
                </For>
            </select>
        </Labelled>
    }
}

/// A field with its label above and its note below.
#[component]
fn Labelled(state: FieldState, help: &'static str, children: Children) -> impl IntoView {
    view! {
        <div class="field" class:changed=move || state.is_set() class:wrong=move || state.is_wrong()>
            <div class="label-line">
                <label for=input_id(state.field) title=state.field.hint()>{state.field.label()}</label>
                <LockButton field=state.field />
            </div>
            {children()}
            <FieldNote state help />
        </div>
    }
}

/// A checkbox; its text in the address is `yes` or empty.
#[component]
pub(crate) fn SwitchField(
    field: Field,
    /// A note shown below the field.
    #[prop(optional)]
    help: &'static str,
) -> impl IntoView {
    let state = FieldState::new(field);
    view! {
        <div class="field switch" class:changed=move || state.is_set() class:wrong=move || state.is_wrong()>
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

/// The state of a field.
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

    /// Returns the typed text.
    fn text(self) -> String {
        self.address.text(self.field)
    }

    fn set(self, text: impl Into<String>) {
        self.address.set(self.field, text);
    }

    fn is_set(self) -> bool {
        !self.text().trim().is_empty()
    }

    fn is_wrong(self) -> bool {
        self.problem.with(Option::is_some)
    }

    fn note_id(self) -> String {
        format!("{}-note", input_id(self.field))
    }
}

/// The problem of a field, or else its help.
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

/// Returns a value of a field in words. Pages with the catalog provide this, so that others don't need to load the catalog.
#[derive(Clone, Copy)]
pub(crate) struct ValueTitle(pub(crate) fn(Field, &str) -> String);

/// A problem with buttons for the suggested values.
#[component]
pub(crate) fn ProblemText(
    problem: Problem,
    address: Address,
    /// Called instead of setting the field, with the chosen value.
    #[prop(optional)]
    choose: Option<Callback<String>>,
) -> impl IntoView {
    let allowed = problem.listed().map(|values| format!("Allowed: {}", values.join(", ")));
    let Problem { field, message, closest, suggestions, .. } = problem;
    let title_of: Option<ValueTitle> = use_context();
    let chosen = move |value: String| match choose {
        Some(choose) => choose.run(value),
        None => address.commit(field, value),
    };
    let buttons = closest.into_iter().chain(suggestions).map(|value| {
        let title = title_of.map_or_else(|| value.clone(), |ValueTitle(title)| title(field, &value));
        let take = value.clone();
        view! {
            <button type="button" class="nearest" on:click=move |_| chosen(take.clone())>
                {match &*value {
                    "on" | "off" => format!("Turn {} {title}", field.label()),
                    _ => format!("Use {title}"),
                }}
            </button>
        }
    });
    view! {
        <span class="error">{message.text(Front::Page)}</span>
        " "
        {buttons.collect_view()}
        {allowed.map(|allowed| view! { <span class="allowed">{allowed}</span> })}
    }
}

/// The unknown parts of the address, and an unknown recipe.
#[component]
pub(crate) fn AddressProblems(
    address: Address,
    /// Whether to show the problem of the recipe, on a page that may not have the field.
    #[prop(optional)]
    recipe: bool,
) -> impl IntoView {
    let recipe = move || {
        let problems: Option<Problems> = use_context().filter(|_| recipe);
        problems
            .and_then(|problems| problems.0.get().into_iter().find(|problem| problem.field == Field::Recipe))
    };
    view! {
        <div aria-live="polite">
            {move || address.problems().into_iter().map(|problem| view! {
                <p class="notice wrong">{problem}</p>
            }).collect_view()}
            {move || recipe().map(|problem| view! {
                <p class="notice wrong"><ProblemText problem address /></p>
            })}
        </div>
    }
}
