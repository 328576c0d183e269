//! The question bar: one sentence of fields that asks for a plan.

use super::Planner;
use super::amounts::money;
use super::import::ImportInput;
use super::most_tokens;
use super::question::{FIRST_DEADLINE, FIRST_MODEL, FIRST_TOKENS, GoalKind, days_text, value_title};
use crate::components::combobox::{Choice, Combobox, LastEntry};
use crate::components::field::ProblemText;
use crate::components::focus::focus;
use crate::components::gpu_mark::{GpuMark, GpuSign};
use leptos::ev::KeyboardEvent;
use leptos::html::Input;
use leptos::prelude::*;
use leptos::web_sys::HtmlInputElement;
use trainplan_shared::benchmarks::models_by_use;
use trainplan_shared::catalog::{Catalog, Model};
use trainplan_shared::cost::PurchaseForm;
use trainplan_shared::deadline::date_of;
use trainplan_shared::field::Field;
use trainplan_shared::problem::Problem;
use trainplan_shared::question::{Chance, Objective, USUAL_GPU_TYPES, split_gpu_types};
use trainplan_shared::spec::Spec;
use trainplan_shared::units::{rounded_count, significant, significant_up};

/// The width in characters of a field with a long text, such as a list of GPU counts.
const LONGEST_TEXT: usize = 24;

/// The id of the button that opens the sheet on a phone.
const OPENER_ID: &str = "ask-open";

/// The question in one sentence. On a phone it is a line at the bottom that opens a sheet.
#[component]
pub(super) fn QuestionBar() -> impl IntoView {
    let plan = Planner::of_page();
    let is_open = RwSignal::new(false);
    let summary = move || plan.question.with(summary);
    let escape = move |event: KeyboardEvent| {
        // An open list takes the first one.
        if event.key() == "Escape" && !event.default_prevented() && is_open.get_untracked() {
            event.prevent_default();
            is_open.set(false);
            focus(OPENER_ID);
        }
    };
    view! {
        <div class="scrim" class:open=is_open on:click=move |_| is_open.set(false)></div>
        <form
            class="question"
            class:open=is_open
            aria-label="Question"
            on:submit=|event| event.prevent_default()
            on:keydown=escape
        >
            <button
                type="button"
                id=OPENER_ID
                class="ask-summary"
                aria-expanded=move || is_open.get().to_string()
                aria-controls="ask"
                on:click=move |_| is_open.update(|open| *open = !*open)
            >
                <span>{summary}</span>
                <strong>{move || if is_open.get() { "Done" } else { "Change" }}</strong>
            </button>
            // Over the page, so that it moves nothing.
            <span class="searching" role="status">
                {move || plan.search.findings.with(|findings| findings.is_behind && findings.is_searching()).then_some("Searching …")}
            </span>
            <div class="ask" id="ask">
                <span class="slot"><span>"Train"</span> <ModelBox /></span>
                <span class="slot">
                    <span>"on"</span> <Slot field=Field::Tokens label="Tokens to train" width=3 placeholder="most" /> <span>"tokens"</span>
                </span>
                <span class="slot types"><span>"with"</span> <GpuTypes /></span>
                <span class="slot"><GoalBox /></span>
                <span class="slot">
                    <span>"at"</span>
                    <Slot field=Field::Price label="Price per GPU-hour" width=5 placeholder="usual" />
                    <span>"$/GPU-h"</span> <PurchaseBox />
                </span>
            </div>
        </form>
    }
}

/// Returns the question in a line.
pub(super) fn summary(question: &Spec) -> String {
    let model = Catalog::embedded().model_or_own(question.raw(Field::Model));
    let model = model.map_or_else(|_| question.raw(Field::Model).to_string(), |model| model.title.clone());
    let types: Vec<String> =
        split_gpu_types(question.raw(Field::GpuTypes)).iter().map(|id| gpu_name(id)).collect();
    let kind = GoalKind::of(question);
    let [days, gpus, budget] = GoalKind::FIELDS.map(|field| question.raw(field));
    let budget = without_sign(budget);
    let often = match chance_of(question) {
        Chance::USUAL => String::new(),
        other => format!(", {}", other.title()),
    };
    let time = match date_of(question) {
        Some(date) => format!("by {date}"),
        None => format!("within {}", days_text(days)),
    };
    let goal = match kind {
        GoalKind::Deadline => format!("{time}{often}"),
        GoalKind::Gpus => format!("on {gpus} GPUs"),
        GoalKind::Budget => format!("for ${budget}{often}"),
        GoalKind::GpusByDeadline => format!("on {gpus} GPUs, {time}{often}"),
        GoalKind::DeadlineAndBudget => format!("{time}, for ${budget}{often}"),
        GoalKind::GpusForBudget => format!("on {gpus} GPUs, for ${budget}{often}"),
        GoalKind::All => format!("on {gpus} GPUs, {time}, for ${budget}{often}"),
        GoalKind::TokensByDeadline => format!("most tokens on {gpus} GPUs, {time}{often}"),
        GoalKind::TokensForBudget => format!("most tokens for ${budget}{often}"),
    };
    format!("{model} · {} · {} · {goal}", question.raw(Field::Tokens), types.join(", "))
}

/// Returns an amount of money as typed, without the dollar sign that the bar shows before or behind it.
fn without_sign(amount: &str) -> &str {
    amount.trim().trim_start_matches('$')
}

/// Returns the name of a GPU type; its text if it is unknown.
pub(super) fn gpu_name(id: &str) -> String {
    Catalog::embedded().gpu_or_own(id).map_or_else(|_| id.to_string(), |gpu| gpu.name.clone())
}

/// The choice of the model.
#[component]
fn ModelBox() -> impl IntoView {
    let plan = Planner::of_page();
    let title = Signal::derive(move || {
        plan.question.with(|question| {
            let text = question.raw(Field::Model);
            Catalog::embedded()
                .model_or_own(text)
                .map_or_else(|_| text.to_string(), |model| model.title.clone())
        })
    });
    let choices = models_by_use().into_iter().map(|model| Choice {
        value: model.id.clone(),
        title: model.title.clone(),
        note: parameters(model.architecture.parameters()),
    });
    let choices: Vec<Choice> = choices.collect();
    let choose = Callback::new(move |model: String| plan.state.ask(&[(Field::Model, &model)]));
    // Titles of the catalog say how large the model is.
    let own_size = move || {
        plan.question.with(|question| {
            let text = question.raw(Field::Model);
            let is_known = Catalog::embedded().model(text).is_ok();
            let model = Catalog::embedded().model_or_own(text).ok().filter(|_| !is_known)?;
            size(&model)
        })
    };
    let file = NodeRef::<Input>::new();
    let import = Callback::new(move |()| {
        if let Some(file) = file.get_untracked() {
            file.click();
        }
    });
    let last = LastEntry { title: "Your own: import a config.json …", run: import };
    view! {
        <Combobox id="ask-model" label="Model" title choices=Signal::stored(choices) choose last is_wrong=Signal::derive(move || plan.problem(Field::Model).is_some()) />
        <ImportInput node=file />
        {move || own_size().map(|size| view! { <small class="model-size">{size}</small> })}
    }
}

fn parameters(count: f64) -> String {
    match count >= 1e12 {
        true => format!("{}T", significant(count / 1e12, 3)),
        false => format!("{}B", significant(count / 1e9, 3)),
    }
}

/// Returns the parameters of a model that its title doesn't say: `8.03B`, or `235B, 22.2B active` for a mixture of experts.
fn size(model: &Model) -> Option<String> {
    let all = Some(parameters(model.params_b * 1e9)).filter(|all| !model.title.contains(all));
    let is_mixture = model.active_b < model.params_b;
    let active = is_mixture.then(|| format!("{} active", parameters(model.active_b * 1e9)));
    let parts: Vec<String> = all.into_iter().chain(active).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// How the GPUs without a price of the user's own are paid for.
#[component]
fn PurchaseBox() -> impl IntoView {
    let plan = Planner::of_page();
    let form = Memo::new(move |_| {
        let typed = plan.question.with(|question| {
            let text = question.raw(Field::Purchase);
            PurchaseForm::ALL.into_iter().find(|form| form.id() == text)
        });
        typed.unwrap_or_default()
    });
    let choose = move |event| plan.address.commit(Field::Purchase, event_target_value(&event));
    view! {
        <select
            id="ask-purchase"
            class="goal"
            aria-label="Purchase"
            title="How GPUs are paid for, unless you set their price. Owned: their total cost of ownership"
            on:change=choose
        >
            {[PurchaseForm::Reserved, PurchaseForm::OnDemand, PurchaseForm::Owned].map(|each| view! {
                <option value=each.id() prop:selected=move || form.get() == each>{each.title().to_ascii_lowercase()}</option>
            })}
        </select>
    }
}

/// The GPU types to compare, each with a button to remove it, and a field to add one.
#[component]
fn GpuTypes() -> impl IntoView {
    let plan = Planner::of_page();
    let types =
        Memo::new(move |_| plan.question.with(|question| split_gpu_types(question.raw(Field::GpuTypes))));
    // No question has no GPU types, so the address keeps those of the answered one until another is added.
    let shown = Memo::new(move |_| if plan.lacks_gpu.get() { Vec::new() } else { types.get() });
    Effect::new(move |_| {
        types.track();
        plan.lacks_gpu.set(false);
    });
    let set = move |types: Vec<String>| {
        plan.lacks_gpu.set(types.is_empty());
        if !types.is_empty() {
            plan.state.ask(&[(Field::GpuTypes, &types.join(","))]);
        }
    };
    let choices = Signal::derive(move || {
        let gpus = Catalog::embedded().gpus().iter();
        shown.with(|types| {
            gpus.filter(|gpu| !types.contains(&gpu.id))
                .map(|gpu| Choice { value: gpu.id.clone(), title: gpu.name.clone(), note: gpu.form.clone() })
                .collect::<Vec<_>>()
        })
    });
    let add = Callback::new(move |gpu: String| {
        let mut types = shown.get_untracked();
        types.push(gpu);
        set(types);
    });
    view! {
        <span class="type-chips">
            <For each=move || shown.get() key=Clone::clone let(id)>
                {
                    let (name, mark) = (gpu_name(&id), GpuMark::of(&id));
                    let title = format!("Remove {name}");
                    let is_unknown = Catalog::embedded().gpu_or_own(&id).is_err();
                    let own = id.clone();
                    let remove = move |_| {
                        set(shown.get_untracked().into_iter().filter(|id| *id != own).collect());
                        // The button is gone.
                        focus("ask-gpu");
                    };
                    view! {
                        <button
                            type="button"
                            class="chip removable"
                            class:wrong=is_unknown
                            aria-label=title
                            aria-invalid=is_unknown.then_some("true")
                            on:click=remove
                        >
                            <GpuSign mark />{name} <span aria-hidden="true">" ×"</span>
                        </button>
                    }
                }
            </For>
        </span>
        <Combobox id="ask-gpu" label="Add a GPU type" title="" choices choose=add placeholder="+ GPU" />
    }
}

/// Says that the last GPU type was removed from the bar, and suggests some.
#[component]
fn MissingGpu() -> impl IntoView {
    let plan = Planner::of_page();
    let suggestion = move |id: String| {
        let title = format!("Add {}", gpu_name(&id));
        let add = move |_| {
            plan.lacks_gpu.set(false);
            plan.state.ask(&[(Field::GpuTypes, &id)]);
            focus("ask-gpu");
        };
        view! { <button type="button" class="nearest" on:click=add>{title}</button> }
    };
    // The removed one first, so that it can be taken back.
    let mut types = plan.question.with_untracked(|question| split_gpu_types(question.raw(Field::GpuTypes)));
    for usual in split_gpu_types(USUAL_GPU_TYPES) {
        if !types.contains(&usual) {
            types.push(usual);
        }
    }
    view! {
        <span class="slot-problem" role="alert">
            <span class="error">"Add a GPU type."</span>
            {types.into_iter().map(suggestion).collect_view()}
        </span>
    }
}

/// The problems of the fields of the bar, which the answer shows below its headline: there they move nothing.
#[component]
pub(super) fn BarProblems() -> impl IntoView {
    let plan = Planner::of_page();
    view! {
        {move || plan.bar_problems().into_iter().map(|problem| view! { <SlotProblem problem /> }).collect_view()}
        {move || plan.lacks_gpu.get().then(|| view! { <MissingGpu /> })}
    }
}

/// The id of the text with the problems.
pub(super) const PROBLEMS_ID: &str = "bar-problems";

/// What the run must reach: its kind and its value.
#[component]
fn GoalBox() -> impl IntoView {
    let plan = Planner::of_page();
    let kind = Memo::new(move |_| plan.question.with(GoalKind::of));
    // What was typed, for when its kind is chosen again.
    let typed = StoredValue::new(Spec::default());
    let choose = move |event| {
        let id = event_target_value(&event);
        let chosen = GoalKind::ALL.into_iter().find(|kind| kind.id() == id).unwrap_or(GoalKind::Deadline);
        plan.question.with_untracked(|question| {
            for field in GoalKind::FIELDS {
                if let Some(text) = question.get(field) {
                    typed.update_value(|typed| typed.set(field, text));
                }
            }
        });
        let value = |field| {
            let before = typed.with_value(|typed| typed.get(field).map(str::to_string));
            before.unwrap_or_else(|| usual_value(plan, field))
        };
        let values = GoalKind::FIELDS.map(|field| match chosen.fields().contains(&field) {
            true => (field, value(field)),
            false => (field, String::new()),
        });
        let mut changes: Vec<(Field, &str)> =
            values.iter().map(|(field, value)| (*field, value.as_str())).collect();
        // Another objective stays, as it was chosen in the settings.
        match (chosen.seeks_tokens(), kind.get_untracked().seeks_tokens()) {
            (true, _) => changes.push((Field::Objective, Objective::MostTokens.id())),
            (false, true) => changes.push((Field::Objective, "")),
            (false, false) => {}
        }
        plan.state.ask(&changes);
    };
    view! {
        <select id="ask-goal" aria-label="Goal" class="goal" on:change=choose>
            {GoalKind::ALL.map(|own| view! {
                <option value=own.id() prop:selected=move || kind.get() == own>{own.title()}</option>
            })}
        </select>
        {move || {
            let fields = kind.get().fields();
            let is_alone = fields.len() == 1;
            fields.iter().map(|field| {
                let (label, width, [before, after]) = match field {
                    Field::GpuRange => ("Number of GPUs", 5, ["on", "GPUs"]),
                    Field::Budget => ("Budget", 6, ["for $", ""]),
                    _ => ("Deadline", 3, ["within", ""]),
                };
                let is_date = move || *field == Field::Deadline && plan.question.with(|question| date_of(question).is_some());
                let before = move || if is_date() { "by" } else { before };
                // The choice itself says what a single value is.
                let before = (!is_alone).then(|| view! { <span>{before}</span> });
                let after = (!is_alone && !after.is_empty()).then(|| view! { <span>{after}</span> });
                // It is the chance to hold all limits.
                let is_last_limit = *field != Field::GpuRange && fields.last() == Some(field);
                let chance = is_last_limit.then(|| view! { <ChanceBox /> });
                view! { {before} <Slot field=*field label width asks=true /> {after} {chance} }
            }).collect_view()
        }}
    }
}

/// How likely the plan must meet the deadline and the budget.
#[component]
fn ChanceBox() -> impl IntoView {
    let plan = Planner::of_page();
    let chance = Memo::new(move |_| plan.question.with(chance_of));
    let choose = move |event| {
        let chosen = event_target_value(&event);
        let text = if chosen == Chance::USUAL.id() { "" } else { &*chosen };
        plan.state.ask(&[(Field::Chance, text)]);
    };
    view! {
        <select id="ask-chance" class="goal" aria-label="Chance of staying within the limits" title=Field::Chance.hint() on:change=choose>
            {Chance::ALL.map(|each| view! {
                <option value=each.id() prop:selected=move || chance.get() == each>{each.title()}</option>
            })}
        </select>
    }
}

/// Returns how likely plans must meet the deadline and the budget of a question.
fn chance_of(question: &Spec) -> Chance {
    question.get(Field::Chance).and_then(|text| text.parse().ok()).unwrap_or(Chance::USUAL)
}

/// Returns a value of a goal that was just chosen for the first time: that of the plan on the page.
fn usual_value(plan: Planner, field: Field) -> String {
    let shown = plan.search.findings.with_untracked(|findings| findings.best_plan().cloned());
    match (field, shown) {
        (Field::GpuRange, shown) => shown.map_or("1024".into(), |shown| shown.gpus.to_string()),
        (Field::Budget, shown) => {
            // Usually a plan must stay within it at the expensive end of its range.
            let cost = shown.and_then(|shown| shown.cost).map(|cost| cost.high);
            rounded_count(cost.map_or(5e6, |cost| significant_up(cost, 2)))
        }
        (_, Some(shown)) => format!("{}d", significant(shown.days.high.ceil(), 3)),
        (_, None) => FIRST_DEADLINE.into(),
    }
}

/// A field in the sentence.
#[component]
fn Slot(
    field: Field,
    label: &'static str,
    /// The width in characters, if a longer value doesn't need more.
    width: usize,
    #[prop(optional)] placeholder: &'static str,
    /// Whether a change asks for another plan, which leaves the chosen one.
    #[prop(optional)]
    asks: bool,
) -> impl IntoView {
    let plan = Planner::of_page();
    let text = move || {
        // They are what is asked for.
        if field == Field::Tokens && most_tokens::are_sought(plan) {
            return String::new();
        }
        plan.question.with(|question| match (field, question.raw(field)) {
            // With separators, as in the answers.
            (Field::GpuRange, raw) => value_title(field, raw),
            (Field::Budget | Field::Price, raw) => without_sign(raw).to_string(),
            (_, raw) => raw.to_string(),
        })
    };
    let set = move |event| {
        let typed = event_target_value(&event);
        match asks {
            true => plan.state.ask(&[(field, &typed)]),
            false => plan.address.commit(field, typed),
        }
        // A cleared field has its usual value again.
        event_target::<HtmlInputElement>(&event).set_value(&untrack(text));
    };
    let is_wrong = move || plan.problem(field).is_some();
    view! {
        <input
            id=format!("ask-{}", field.flag())
            type="text"
            aria-label=label
            title=field.hint()
            class="blank"
            style:width=move || format!("{}ch", width.max(text().len().min(LONGEST_TEXT)) + 3)
            autocomplete="off"
            spellcheck="false"
            placeholder=placeholder
            // What is asked, beside what is typed.
            value=text
            prop:value=text
            on:change=set
            aria-invalid=move || is_wrong().to_string()
            aria-describedby=move || is_wrong().then_some(PROBLEMS_ID)
        />
    }
}

/// The problem of a field of the sentence.
#[component]
fn SlotProblem(problem: Problem) -> impl IntoView {
    let plan = Planner::of_page();
    let field = problem.field;
    let usual = usual(&problem).map(|value| {
        let set = value.to_string();
        let title = match value {
            "" => "Clear it".to_string(),
            value => format!("Use {}", value_title(field, value)),
        };
        view! {
            <button type="button" class="nearest" on:click=move |_| plan.address.commit(field, set.clone())>{title}</button>
        }
    });
    // What is wrong comes first, then what to do.
    view! {
        <span class="slot-problem" role="alert"><ProblemText problem address=plan.address /> {usual}</span>
    }
}

/// Returns a value that works, for a problem that suggests none.
fn usual(problem: &Problem) -> Option<&'static str> {
    let is_helped = problem.closest.is_some() || !problem.suggestions.is_empty();
    match problem.field {
        _ if is_helped => None,
        Field::Deadline => Some(FIRST_DEADLINE),
        Field::Budget => Some("5M"),
        Field::GpuRange => Some("1024"),
        Field::Tokens => Some(FIRST_TOKENS),
        Field::Price | Field::Purchase | Field::GpuTypes | Field::Lock => Some(""),
        Field::Model => Some(FIRST_MODEL),
        _ => None,
    }
}

/// The two questions to start from, until one is asked.
#[component]
pub(super) fn Samples() -> impl IntoView {
    let plan = Planner::of_page();
    let is_first = move || plan.address.spec().iter().next().is_none();
    view! {
        <Show when=is_first>
            <p class="samples">
                "Also try "
                <a href="/?v=1&m=llama3.1-405b&t=15T&gs=h100,b200&bud=60M">
                    {format!("Llama 3.1 405B for {}", money(6e7, "USD"))}
                </a>
                " or "
                <a href="/?v=1&m=qwen3-235b-a22b&t=10T&gs=b200&by=45d">"Qwen3 235B-A22B on B200 in 45 days"</a>
            </p>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::link;

    #[test]
    fn a_question_is_summed_up_in_a_line() {
        let line = |query: &str| summary(&link::read(query).spec);
        assert_eq!(
            line("m=llama3.1-70b&t=10T&gs=h100,b200&by=60d"),
            "Llama 3.1 70B · 10T · H100, B200 · within 60 days"
        );
        assert!(line("m=kimi-k2&by=8w&odds=even").ends_with("within 8 weeks, 5 times in 10"));
        assert!(line("m=kimi-k2&by=2027-03-01&bud=5M").ends_with("by 2027-03-01, for $5M"));
        for budget in ["5M", "$5M"] {
            let query = format!("m=kimi-k2&t=1T&gs=b200&bud={budget}");
            assert_eq!(line(&query), "Kimi K2 · 1T · B200 · for $5M");
        }
        assert_eq!(line("m=kimi-k2&t=1T&gs=b200&nr=512"), "Kimi K2 · 1T · B200 · on 512 GPUs");
    }
}
