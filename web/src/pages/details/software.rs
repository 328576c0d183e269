//! The choice of the training software, and the properties of a custom one.

use super::edits::{own_property, with_property};
use super::{CatalogEntry, Plan, own};
use crate::components::field::ChoiceField;
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::stack::{PropertyGroup, Software, Stack, StackProperties, StackProperty};

/// The choice of a known software, or the custom one.
#[component]
pub(super) fn SoftwareChoice() -> impl IntoView {
    let plan = Plan::of_page();
    let options = Signal::derive(move || {
        let known = Stack::ALL.into_iter().map(|stack| (stack.id().to_string(), stack.title().to_string()));
        let custom = own::custom(plan, Field::Stack, |scenario| {
            format!("{}, custom", scenario.options.software.base().title())
        });
        known.chain(custom).collect()
    });
    let default = Signal::derive(move || match plan.recipe.get() {
        Some(CatalogEntry(recipe)) => format!("{} (recipe)", recipe.id.release.software().stack.title()),
        None => Stack::default().title().to_string(),
    });
    view! { <ChoiceField field=Field::Stack options default help=Field::Stack.hint() /> }
}

/// The properties of a custom software; an empty one is that of the chosen software.
#[component]
pub(super) fn CustomSoftware() -> impl IntoView {
    let plan = Plan::of_page();
    let is_used = untrack(|| text(plan).contains(':'));
    let base_title = move || base(plan).base().title();
    view! {
        <details open=is_used>
            <summary>"Custom software"</summary>
            <small>"Grey = as in " {base_title} ". Hover over a label to see what it means."</small>
            {PropertyGroup::ALL.map(|group| view! {
                <div role="group" aria-label=group.title()>
                    <h4>{group.title()}</h4>
                    <div class="grid software">
                        {StackProperties::ALL.into_iter().enumerate().filter(|(_, property)| property.group == group).map(|(place, property)| view! {
                            <PropertyField place property />
                        }).collect_view()}
                    </div>
                </div>
            })}
            <Show when=move || text(plan).contains(':')>
                <button type="button" class="action" on:click=move |_| set(plan, base(plan).to_string())>
                    "Reset to " {base_title}
                </button>
            </Show>
        </details>
    }
}

#[component]
fn PropertyField(place: usize, property: StackProperty) -> impl IntoView {
    let plan = Plan::of_page();
    let id = format!("stack-{}", property.name);
    let default = move || base(plan).values().swap_remove(place);
    let typed = move || own_property(&text(plan), property.name).to_string();
    let change = move |value: String| set(plan, with_property(&text(plan), property.name, &value));
    let choices = property.choices();
    let input = match choices.is_empty() {
        true => view! {
            <input
                id=id.clone()
                type="text"
                inputmode="decimal"
                autocomplete="off"
                placeholder=default
                prop:value=typed
                on:input=move |event| change(event_target_value(&event))
                aria-describedby="field-stack-note"
            />
        }
        .into_any(),
        false => view! {
            <select
                id=id.clone()
                on:change=move |event| change(event_target_value(&event))
                aria-describedby="field-stack-note"
            >
                <option value="" prop:selected=move || typed().is_empty()>{default}</option>
                <For
                    each=move || choices.clone().into_iter().filter(move |choice| *choice != default())
                    key=|choice| *choice
                    let(choice)
                >
                    <option value=choice prop:selected=move || typed() == choice>{choice}</option>
                </For>
            </select>
        }
        .into_any(),
    };
    view! {
        <div class="field" class:changed=move || !typed().is_empty()>
            <label for=id title=property.meaning().replace('`', "")>{property.label}</label>
            {input}
        </div>
    }
}

/// Returns the text of the software: the typed one, else the recipe's, else the default.
fn text(plan: Plan) -> String {
    let typed = plan.spec.with(|spec| spec.get(Field::Stack).map(str::to_string));
    typed.unwrap_or_else(|| of_recipe(plan).id().to_string())
}

/// Returns the software of the recipe, or the default one.
fn of_recipe(plan: Plan) -> Stack {
    plan.recipe.get().map_or_else(Stack::default, |CatalogEntry(recipe)| recipe.id.release.software().stack)
}

/// Returns the software that the custom one changes.
fn base(plan: Plan) -> Software {
    let text = text(plan);
    let base = text.split(':').next().unwrap_or_default();
    base.parse::<Stack>().unwrap_or_default().into()
}

/// Sets the software; the recipe's own leaves the field empty.
fn set(plan: Plan, text: String) {
    let is_usual = text == of_recipe(plan).id();
    plan.address.set(Field::Stack, if is_usual { String::new() } else { text });
}
