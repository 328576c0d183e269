//! The form of the scenario, with an error beside each invalid value.

use super::locks::chosen_value;
use super::software::{CustomSoftware, SoftwareChoice};
use super::{CatalogEntry, Plan, SettingsGroup, own};
use crate::components::field::{ChoiceField, FormField, TextField};
use crate::pages::plan::question::has_scenario;
use leptos::prelude::*;
use trainplan_shared::catalog::Recipe;
use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::options::Recompute;
use trainplan_shared::precision::Dtype;
use trainplan_shared::scenario::{RecipeChange, Scenario};
use trainplan_shared::units::group_digits;

/// The fields of the scenario. An empty field shows in grey the value that applies: the recipe's, or the
/// default.
#[component]
pub(super) fn Changes() -> impl IntoView {
    let plan = Plan::of_page();
    // The value of the shown plan; for an invalid one, the recipe's.
    let number = move |field: Field, value: fn(&Recipe) -> u32| {
        Signal::derive(move || {
            let shown = plan.scenario.with(|scenario| match (scenario, plan.recipe.get()) {
                (Ok(scenario), None) if field == Field::Gpus => Some(scenario.layout.gpus().to_string()),
                (Ok(scenario), None) => chosen_value(scenario, field),
                _ => None,
            });
            let of_recipe = || plan.recipe.get().map(|CatalogEntry(recipe)| value(recipe).to_string());
            shown.or_else(of_recipe).unwrap_or_else(|| if field == Field::Gpus { "" } else { "1" }.into())
        })
    };
    let of_scenario = move |value: fn(&Scenario) -> u32, of_recipe: fn(&Recipe) -> u32| {
        Signal::derive(move || {
            let own = plan.scenario.with(|scenario| scenario.as_ref().ok().map(value));
            own.or(plan.recipe.get().map(|CatalogEntry(recipe)| of_recipe(recipe)))
                .map_or(String::new(), |value| value.to_string())
        })
    };
    let dtypes: Vec<_> =
        Dtype::ALL.into_iter().map(|dtype| (dtype.id().to_string(), dtype.title().to_string())).collect();
    let dtype = Signal::derive(move || match plan.recipe.get() {
        Some(CatalogEntry(recipe)) => format!("{} (recipe)", recipe.id.dtype.title()),
        None => plan.scenario.with(|scenario| match scenario {
            Ok(scenario) if !plan.address.with_spec(has_scenario) => scenario.dtype.title().to_string(),
            _ => Dtype::Bf16.title().to_string(),
        }),
    });
    let split = Signal::derive(move || {
        let of_plan =
            || plan.scenario.with(|scenario| chosen_value(scenario.as_ref().ok()?, Field::PipelineSplit));
        let of_recipe = plan.recipe.get().map(|CatalogEntry(recipe)| recipe.degrees.split.to_string());
        of_recipe.or_else(of_plan).unwrap_or_else(|| "even".into())
    });
    let has_recipe = move || plan.recipe.get().is_some();
    let is_own = move || plan.address.with_spec(has_scenario);
    let title = Signal::derive(move || {
        let title = match (has_recipe(), is_own()) {
            (true, _) => "Changes to the recipe",
            (false, true) => "Your layout",
            (false, false) => "Layout, chosen by the search",
        };
        title.to_string()
    });
    let grey = Signal::derive(move || {
        let grey = match (has_recipe(), is_own()) {
            (true, _) => "Grey = from the recipe. Type to override.",
            (false, true) => "Grey = default. Type to override.",
            (false, false) => {
                "Grey = chosen by the search. Type to override, or lock a value that the search must use."
            }
        };
        grey.to_string()
    });
    let in_question = Signal::derive(move || {
        let note = if is_own() { "" } else { "The question at the top sets both. Describe your own here." };
        note.to_string()
    });
    let gbs = of_scenario(|scenario| scenario.batch.gbs(), |recipe| recipe.gbs);
    let seq_len = of_scenario(|scenario| scenario.batch.seq_len(), |recipe| recipe.seq_len);
    let layers = of_scenario(|scenario| scenario.architecture.layers, |recipe| recipe.layers);
    let changed = move || {
        plan.spec.with(|spec| spec.iter().any(|(field, _)| field.is_of_scenario() && field != Field::Recipe))
    };
    view! {
        <SettingsGroup title="Model and GPU" note=in_question>
            <div class="halves">
                // The bar asks for both, unless the plan is the user's own.
                <div><Show when=is_own><own::ModelChoice /></Show> <own::ConfigImport /></div>
                <div><Show when=is_own><own::GpuChoice /></Show> <own::CustomGpu /></div>
            </div>
        </SettingsGroup>
        <SettingsGroup title note=grey>
            <ChangeChips />
            <div class="grid">
                <TextField field=Field::Gpus default=number(Field::Gpus, |recipe| recipe.id.gpus) />
                <ChoiceField field=Field::Dtype options=dtypes default=dtype />
                <TextField field=Field::Layers default=layers />
                <TextField field=Field::PipelineSplit default=split />
            </div>
            <div class="grid small">
                <TextField field=Field::Tp default=number(Field::Tp, |recipe| recipe.degrees.tp) />
                <TextField field=Field::Pp default=number(Field::Pp, |recipe| recipe.degrees.pp) />
                <TextField field=Field::Cp default=number(Field::Cp, |recipe| recipe.degrees.cp) />
                <TextField field=Field::Ep default=number(Field::Ep, |recipe| recipe.degrees.ep) />
                <TextField field=Field::Vp default=number(Field::Vp, |recipe| recipe.degrees.vp) />
            </div>
            <div class="buttons">
                <Show when=move || has_recipe() && changed()>
                    <button type="button" class="action" on:click=move |_| reset(plan)>
                        "Back to the recipe"
                    </button>
                </Show>
                <Show when=is_own>
                    <button type="button" class="action" on:click=move |_| plan.state.ask(&[])>
                        "Use the best plan"
                    </button>
                </Show>
                <Show when=has_recipe>
                    <button type="button" class="action" on:click=move |_| own::leave_recipe(plan)>
                        "Plan without a recipe"
                    </button>
                </Show>
            </div>
        </SettingsGroup>
        <SettingsGroup title="Batch" note="">
            <div class="grid small">
                <TextField field=Field::Gbs default=gbs />
                <TextField field=Field::Mbs default=number(Field::Mbs, |recipe| recipe.mbs) />
                <TextField field=Field::SeqLen default=seq_len />
            </div>
        </SettingsGroup>
        <SettingsGroup title="Software and memory" note="">
            <More />
        </SettingsGroup>
    }
}

/// The fields above [`More`]. The recipe has its own form.
const MAIN_FIELDS: [Field; 15] = [
    Field::Recipe,
    Field::Model,
    Field::Gpu,
    Field::Gpus,
    Field::Dtype,
    Field::Tp,
    Field::Pp,
    Field::Cp,
    Field::Ep,
    Field::Vp,
    Field::Mbs,
    Field::Gbs,
    Field::SeqLen,
    Field::Layers,
    Field::PipelineSplit,
];

/// The fields that need their own choice or default.
const OPTIONS: [Field; 6] =
    [Field::Recompute, Field::Fsdp, Field::Overlap, Field::Stack, Field::GemmTflops, Field::ExpertTp];

/// The scenario fields that are rarely changed; open if one of them is.
#[component]
fn More() -> impl IntoView {
    let plan = Plan::of_page();
    let fields = || Field::of_group(FieldGroup::Scenario).filter(|field| !MAIN_FIELDS.contains(field));
    let is_used = plan.spec.with_untracked(|spec| fields().any(|field| spec.get(field).is_some()));
    let others = fields().filter(|field| !OPTIONS.contains(field));
    let choice = |id: &str, title: &str| (id.to_string(), title.to_string());
    // An empty field has the value of the shown plan.
    let of_plan = move |field: Field, otherwise: &'static str| {
        Signal::derive(move || {
            let is_set = plan.address.with_spec(|spec| spec.get(field).is_some());
            let shown = || plan.scenario.with(|scenario| chosen_value(scenario.as_ref().ok()?, field));
            Some(()).filter(|()| !is_set).and_then(|()| shown()).unwrap_or_else(|| otherwise.to_string())
        })
    };
    let others_than = move |default: Signal<String>, all: Vec<(String, String)>| {
        Signal::derive(move || {
            all.iter().filter(|(id, _)| default.with(|default| id != default)).cloned().collect::<Vec<_>>()
        })
    };
    let switch = || vec![choice("on", "on"), choice("off", "off")];
    let recompute = of_plan(Field::Recompute, "none");
    let recomputes =
        others_than(recompute, Recompute::ALL.iter().map(|each| choice(each.id(), each.title())).collect());
    let (fsdp, overlap) = (of_plan(Field::Fsdp, "off"), of_plan(Field::Overlap, "on"));
    let (fsdp_choices, overlap_choices) = (others_than(fsdp, switch()), others_than(overlap, switch()));
    let expert_tp = of_plan(Field::ExpertTp, "1");
    view! {
        <details open=is_used>
            <summary>"Recomputation, sharding, software"</summary>
            <div class="grid">
                <ChoiceField
                    field=Field::Recompute
                    options=recomputes
                    default=recompute
                    help=Field::Recompute.hint()
                />
                <ChoiceField field=Field::Fsdp options=fsdp_choices default=fsdp help=Field::Fsdp.hint() />
                <ChoiceField
                    field=Field::Overlap
                    options=overlap_choices
                    default=overlap
                    help=Field::Overlap.hint()
                />
                <TextField field=Field::ExpertTp default=expert_tp help=Field::ExpertTp.hint() />
                <SoftwareChoice />
                <TextField
                    field=Field::GemmTflops
                    default="typical for the GPU"
                    help=Field::GemmTflops.hint()
                />
                {others.map(|field| view! {
                    <FormField field default="default" help=field.hint() />
                }).collect_view()}
            </div>
            <CustomSoftware />
        </details>
    }
}

fn reset(plan: Plan) {
    plan.address.turn_to(|spec| {
        let recipe = spec.raw(Field::Recipe).to_string();
        *spec = spec.without_scenario();
        spec.set(Field::Recipe, recipe);
    });
}

/// The changes to the recipe; a click undoes one.
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
                        let RecipeChange { field, from, to, follows } = change;
                        let text = format!("{} {} → {}", field.label(), shown(&from), shown(&to));
                        if follows {
                            view! {
                                <span class="chip follows" title="Follows the GPU count (weak scaling)">
                                    {text} " (follows)"
                                </span>
                            }.into_any()
                        } else {
                            view! {
                                <button
                                    type="button"
                                    class="chip removable"
                                    on:click=back(field)
                                    title="Reset to the recipe's value"
                                >
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

/// Returns a field's text for people to read: whole numbers with thousands separators, and no list of the
/// whole shape of an imported model.
fn shown(text: &str) -> String {
    match text.parse::<u32>() {
        Ok(number) => group_digits(number.into()),
        Err(_) if text.starts_with("own:") => "imported model".to_string(),
        Err(_) => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_values_are_shown_for_people() {
        assert_eq!(shown("16384"), "16,384");
        assert_eq!(shown("own:layers=32,hidden=4096"), "imported model");
        assert_eq!(shown("h100:hbm_gb=96"), "h100:hbm_gb=96");
    }

    #[test]
    fn every_field_of_a_scenario_has_one_place_in_the_form() {
        for field in Field::of_group(FieldGroup::Scenario) {
            let places = MAIN_FIELDS.iter().chain(&OPTIONS).filter(|placed| **placed == field).count();
            assert!(places <= 1, "{field:?}");
        }
        assert!(MAIN_FIELDS.iter().chain(&OPTIONS).all(|field| field.is_of_scenario()));
    }
}
