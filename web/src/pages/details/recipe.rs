//! The choice of the recipe to start from.

use super::{CatalogEntry, Plan, SettingsGroup};
use crate::address::href;
use crate::pages::plan::question::has_scenario;
use crate::pages::plan::state::FIRST_RECIPE;
use leptos::prelude::*;
use trainplan_shared::catalog::{Catalog, Facet, FacetValue};
use trainplan_shared::field::Field;
use trainplan_shared::spec::Spec;

/// Chooses a recipe by model, GPU, precision, GPU count, scaling and release; each choice selects an existing
/// recipe.
#[component]
pub(super) fn RecipePicker() -> impl IntoView {
    let plan = Plan::of_page();
    let has_recipe = move || plan.recipe.get().is_some();
    let note = Signal::derive(move || {
        let note = match (has_recipe(), plan.address.with_spec(has_scenario)) {
            (true, _) => "Each choice selects another published recipe.",
            (false, true) => "Custom plan. You set the model, GPUs, batch size and layout.",
            (false, false) => "The search chose this plan.",
        };
        note.to_string()
    });
    view! {
        <SettingsGroup title="Published recipe" note>
            <Show when=has_recipe fallback=move || view! { <NoRecipe /> }>
            <div class="grid">
                <Facets label="Model" facet=Facet::Model />
                <Facets label="GPU" facet=Facet::Gpu />
                <Facets label="Precision" facet=Facet::Dtype />
                <Facets label="Scaling" facet=Facet::Scaling />
                <Facets label="Release" facet=Facet::Release />
            </div>
            <Counts />
            {move || plan.recipe.get().map(|CatalogEntry(recipe)| view! {
                <p class="source">
                    <code>{recipe.id.to_string()}</code>
                    {Catalog::embedded().source_of(recipe).map(|source| view! { <small>{source}</small> })}
                    {(!recipe.note.is_empty()).then(|| view! { <small>{recipe.note.clone()}</small> })}
                </p>
            })}
            <p><a href=move || href("/benchmarks", &same_model(plan)) rel="external">"All benchmarks of this model"</a></p>
            </Show>
        </SettingsGroup>
    }
}

/// A button to start from a recipe.
#[component]
fn NoRecipe() -> impl IntoView {
    let plan = Plan::of_page();
    let start = move |_| {
        let model = plan.question.with_untracked(|question| question.raw(Field::Model).to_string());
        let recipe = recipe_of(&model);
        plan.address.turn_to(|spec| {
            *spec = spec.without_scenario();
            spec.set(Field::Recipe, recipe);
        });
    };
    view! { <button type="button" class="action" on:click=start>"Start from a recipe"</button> }
}

/// Returns the id of a model's newest recipe; of the first recipe for its model, or if the model has none.
fn recipe_of(model: &str) -> String {
    if Catalog::embedded().recipe(FIRST_RECIPE).is_ok_and(|recipe| recipe.id.model == model) {
        return FIRST_RECIPE.to_string();
    }
    let recipes = Catalog::embedded().recipes().iter().filter(|recipe| recipe.id.model == model);
    let newest = recipes.max_by(|one, other| one.id.release.cmp(&other.id.release));
    newest.map_or(FIRST_RECIPE.to_string(), |recipe| recipe.id.to_string())
}

fn same_model(plan: Plan) -> Spec {
    match plan.recipe.get() {
        Some(CatalogEntry(recipe)) => Spec::default().with(Field::Model, recipe.id.model.clone()),
        None => Spec::default(),
    }
}

fn choices(plan: Plan, facet: Facet) -> Vec<FacetValue> {
    plan.recipe
        .get()
        .map_or(Vec::new(), |CatalogEntry(recipe)| Catalog::embedded().choices(&recipe.id, facet))
}

/// Switches to the recipe with this value, and discards the changes to the previous recipe.
fn choose(plan: Plan, facet: Facet, value: &str) {
    let Some(CatalogEntry(current)) = plan.recipe.get_untracked() else { return };
    if let Some(chosen) = Catalog::embedded().choose(&current.id, facet, value) {
        plan.address.turn_to(|spec| {
            *spec = spec.without_scenario();
            spec.set(Field::Recipe, chosen.id.to_string());
        });
    }
}

fn is_chosen(plan: Plan, facet: Facet, value: &str) -> bool {
    plan.recipe.get().is_some_and(|CatalogEntry(recipe)| facet.value(&recipe.id) == value)
}

/// The choice of one of many values.
#[component]
fn Facets(label: &'static str, facet: Facet) -> impl IntoView {
    let plan = Plan::of_page();
    let id = format!("facet-{}", label.to_ascii_lowercase());
    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <select id=id on:change=move |event| choose(plan, facet, &event_target_value(&event))>
                <For each=move || choices(plan, facet) key=|choice| choice.value.clone() let(choice)>
                    {
                        let own = choice.value.clone();
                        let selected = move || is_chosen(plan, facet, &own);
                        view! { <option value=choice.value prop:selected=selected>{choice.title}</option> }
                    }
                </For>
            </select>
        </div>
    }
}

/// The choice of a GPU count, with all counts visible.
#[component]
fn Counts() -> impl IntoView {
    let plan = Plan::of_page();
    view! {
        <div class="field">
            <span class="label" id="facet-gpus">"GPUs"</span>
            <div class="chips" role="group" aria-labelledby="facet-gpus">
                <For each=move || choices(plan, Facet::Gpus) key=|choice| choice.value.clone() let(choice)>
                    {
                        let (own, take) = (choice.value.clone(), choice.value.clone());
                        view! {
                            <button
                                type="button"
                                class="chip"
                                aria-pressed=move || is_chosen(plan, Facet::Gpus, &own).to_string()
                                on:click=move |_| choose(plan, Facet::Gpus, &take)
                            >
                                {choice.title}
                            </button>
                        }
                    }
                </For>
            </div>
        </div>
    }
}
