//! Changing the recipe: every value of the scenario, with live errors.

use super::{Of, Plan};
use crate::components::field::{ChoiceField, TextField};
use leptos::prelude::*;
use trainplan_shared::catalog::{Catalog, Recipe};
use trainplan_shared::precision::Dtype;
use trainplan_shared::problem::Field;
use trainplan_shared::scenario::Change;

/// The fields of the scenario. Empty ones keep the recipe's value, which they show in grey.
#[component]
pub(super) fn Changes() -> impl IntoView {
    let plan = Plan::of_page();
    let number = move |value: fn(&Recipe) -> u32| {
        Signal::derive(move || {
            plan.recipe.get().map_or(String::new(), |Of(recipe)| value(recipe).to_string())
        })
    };
    let batch = Signal::derive(move || {
        let follows =
            plan.scenario.with(|scenario| scenario.as_ref().ok().map(|scenario| scenario.batch.gbs()));
        let own = plan.recipe.get().map(|Of(recipe)| recipe.gbs);
        follows.or(own).map_or(String::new(), |gbs| gbs.to_string())
    });
    let catalog = Catalog::embedded();
    let gpus: Vec<_> =
        catalog.gpus().iter().map(|gpu| (gpu.id.clone(), format!("{} {}", gpu.name, gpu.form))).collect();
    let dtypes: Vec<_> =
        Dtype::ALL.into_iter().map(|dtype| (dtype.id().to_string(), dtype.title())).collect();
    let gpu = Signal::derive(move || {
        let name =
            |recipe: &Recipe| catalog.gpu(&recipe.id.gpu).map_or(String::new(), |gpu| gpu.name.clone());
        as_recipe(plan.recipe.get().map(|Of(recipe)| name(recipe)))
    });
    let dtype =
        Signal::derive(move || as_recipe(plan.recipe.get().map(|Of(recipe)| recipe.id.dtype.title())));
    let split = Signal::derive(move || {
        plan.recipe.get().map_or("even".into(), |Of(recipe)| recipe.degrees.split.to_string())
    });
    let changed = move || {
        plan.spec.with(|spec| spec.iter().any(|(field, _)| field.is_of_scenario() && field != Field::Recipe))
    };
    view! {
        <fieldset class="changes">
            <legend>"Change it"</legend>
            <p><small>"Grey values are the recipe's."</small></p>
            <ChangeChips />
            <div class="grid">
                <TextField field=Field::Gpus default=number(|recipe| recipe.id.gpus) />
                <ChoiceField field=Field::Dtype options=dtypes default=dtype />
            </div>
            <ChoiceField field=Field::Gpu options=gpus default=gpu />
            <div class="grid small">
                <TextField field=Field::Tp default=number(|recipe| recipe.degrees.tp) />
                <TextField field=Field::Pp default=number(|recipe| recipe.degrees.pp) />
                <TextField field=Field::Cp default=number(|recipe| recipe.degrees.cp) />
                <TextField field=Field::Ep default=number(|recipe| recipe.degrees.ep) />
                <TextField field=Field::Vp default=number(|recipe| recipe.degrees.vp) />
                <TextField field=Field::Mbs default=number(|recipe| recipe.mbs) />
            </div>
            <div class="grid">
                <TextField field=Field::Gbs default=batch />
                <TextField field=Field::SeqLen default=number(|recipe| recipe.seq_len) />
                <TextField field=Field::Layers default=number(|recipe| recipe.layers) />
                <TextField field=Field::PipelineSplit default=split numeric=false />
            </div>
            <Show when=changed>
                <button type="button" class="action" on:click=move |_| reset(plan)>"Back to the recipe"</button>
            </Show>
        </fieldset>
    }
}

fn as_recipe(value: Option<String>) -> String {
    value.map_or("choose".into(), |value| format!("{value} (recipe)"))
}

fn reset(plan: Plan) {
    plan.address.turn_to(|spec| {
        let recipe = spec.raw(Field::Recipe).to_string();
        *spec = spec.without_scenario();
        spec.set(Field::Recipe, recipe);
    });
}

/// What differs from the recipe, each with a way back.
#[component]
fn ChangeChips() -> impl IntoView {
    let plan = Plan::of_page();
    let changes = move || {
        plan.scenario
            .with(|scenario| scenario.as_ref().map_or(Vec::new(), |scenario| scenario.changes.clone()))
    };
    let back = move |field| move |_| plan.address.set(field, "");
    view! {
        <Show when=move || !changes().is_empty()>
            <p class="chips" aria-live="polite">
                <span class="label">"Changed from the recipe"</span>
                <For each=changes key=|change| (change.field, change.to.clone()) let(change)>
                    {
                        let Change { field, from, to, follows } = change;
                        let text = format!("{} {from} → {to}", field.label());
                        if follows {
                            view! { <span class="chip follows" title="Follows the GPU count (weak scaling)">{text} " (follows)"</span> }.into_any()
                        } else {
                            view! {
                                <button type="button" class="chip removable" on:click=back(field) title="Back to the recipe's value">
                                    {text} <span aria-hidden="true">" ×"</span>
                                </button>
                            }.into_any()
                        }
                    }
                </For>
            </p>
        </Show>
    }
}
