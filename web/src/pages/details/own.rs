//! Plans beyond the recipes: another model, a model from its `config.json`, another GPU, a custom GPU.

use super::edits::{own_property, with_gpu, with_model, with_property, without_recipe};
use super::{BROKEN, CatalogEntry, Plan};
use crate::components::field::ChoiceField;
use crate::message::{Imported, ImportedValue};
use crate::pages::plan::question::{has_scenario, value_title};
use leptos::ev::DragEvent;
use leptos::html::{Div, Input};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::{Element, File, FileList};
use trainplan_shared::catalog::{Catalog, Gpu};
use trainplan_shared::field::Field;
use trainplan_shared::question::split_gpu_types;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;
use wasm_bindgen_futures::JsFuture;

/// The choice of a model from the catalog, or the imported one.
#[component]
pub(super) fn ModelChoice() -> impl IntoView {
    let plan = Plan::of_page();
    let options = Signal::derive(move || {
        let known = Catalog::embedded().models().iter().map(|model| (model.id.clone(), model.title.clone()));
        known.chain(custom(plan, Field::Model, |scenario| scenario.model.title.clone())).collect()
    });
    let default = recipe_value(
        plan,
        |plan| {
            let CatalogEntry(recipe) = plan.recipe.get()?;
            Catalog::embedded().model(&recipe.id.model).ok().map(|model| model.title.clone())
        },
        |scenario| scenario.model.title.clone(),
    );
    let choose = Callback::new(move |model: String| take_model(plan, &model));
    view! { <ChoiceField field=Field::Model options default choose /> }
}

/// The choice of a GPU type from the catalog, or the custom one.
#[component]
pub(super) fn GpuChoice() -> impl IntoView {
    let plan = Plan::of_page();
    let options = Signal::derive(move || {
        let known = Catalog::embedded().gpus().iter();
        let known = known.map(|gpu| (gpu.id.clone(), format!("{} {}", gpu.name, gpu.form)));
        known.chain(custom(plan, Field::Gpu, |scenario| scenario.gpu.name.clone())).collect()
    });
    let default = recipe_value(
        plan,
        |plan| {
            let CatalogEntry(recipe) = plan.recipe.get()?;
            Catalog::embedded().gpu(&recipe.id.gpu).ok().map(|gpu| gpu.name.clone())
        },
        |scenario| scenario.gpu.name.clone(),
    );
    let choose = Callback::new(move |gpu: String| take_gpu(plan, gpu));
    view! { <ChoiceField field=Field::Gpu options default choose /> }
}

/// Sets the GPU type of the plan that the address describes. Where a search chooses the plan, the question gets it instead of
/// another one of the same type, or of that of the shown plan.
fn take_gpu(plan: Plan, gpu: String) {
    if gpu.is_empty() || plan.address.with_spec_untracked(has_scenario) {
        plan.address.set(Field::Gpu, gpu);
        return;
    }
    let shown = plan.scenario.with_untracked(|scenario| Some(scenario.as_ref().ok()?.gpu.id.clone()));
    let asked = plan.question.with_untracked(|question| question.raw(Field::GpuTypes).to_string());
    plan.state.ask_edit(Field::GpuTypes, &with_gpu(split_gpu_types(&asked), gpu, shown.as_deref()));
}

/// Returns the imported model, custom GPU or custom software, if there is one, as a choice: its text and its title.
pub(super) fn custom(plan: Plan, field: Field, title: fn(&Scenario) -> String) -> Option<(String, String)> {
    let text = plan.spec.with(|spec| spec.raw(field).to_string());
    let title = plan.scenario.with(|scenario| scenario.as_ref().map(title).unwrap_or("Custom".into()));
    text.contains(':').then_some((text, title))
}

/// Returns the name of the recipe's value, for an empty field.
///
/// Without a recipe it is the value of the shown plan, which the question or the search gave.
fn recipe_value(
    plan: Plan,
    name: fn(Plan) -> Option<String>,
    of_plan: fn(&Scenario) -> String,
) -> Signal<String> {
    let of_plan = move || plan.scenario.with(|scenario| scenario.as_ref().ok().map(of_plan));
    Signal::derive(move || match name(plan) {
        Some(name) => format!("{name} (recipe)"),
        None => of_plan().unwrap_or_else(|| "Choose …".into()),
    })
}

/// Switches to another model.
fn take_model(plan: Plan, model: &str) {
    let scenario = plan.scenario.get_untracked().ok();
    let spec = plan.spec.with_untracked(|spec| with_model(spec, scenario.as_ref(), model));
    plan.address.turn_to(|typed| *typed = spec);
}

/// Continues without the recipe, with its values typed into the fields.
pub(super) fn leave_recipe(plan: Plan) {
    if let Ok(scenario) = plan.scenario.get_untracked() {
        let spec = plan.spec.with_untracked(|spec| without_recipe(spec, &scenario));
        plan.address.turn_to(|typed| *typed = spec);
    }
}

/// Imports a model from its `config.json`, or a cluster from its probe: dropped, chosen or pasted.
#[component]
pub(super) fn ConfigImport() -> impl IntoView {
    let plan = Plan::of_page();
    let imported = plan.calculator.imported;
    let input = NodeRef::<Input>::new();
    let over = RwSignal::new(false);
    let read = move |files: Option<FileList>| {
        plan.was_dropped.set(false);
        import_file(plan, files);
    };
    let pasted = move |event| {
        plan.was_dropped.set(false);
        let text = event_target_value(&event);
        match text.trim().is_empty() {
            true => imported.set(None),
            false => plan.calculator.import(text, String::new()),
        }
    };
    let choose = move |_| {
        if let Some(input) = input.get_untracked() {
            input.click();
        }
    };
    let chosen = move |_| {
        if let Some(input) = input.get_untracked() {
            read(input.files());
            // Otherwise choosing the same file again causes no event.
            input.set_value("");
        }
    };
    view! {
        <details>
            <summary>"Import a config.json or a probe of your cluster"</summary>
            <div
                class="drop"
                class:over=over
                on:dragover=move |event: DragEvent| { event.prevent_default(); over.set(true); }
                on:dragleave=move |_| over.set(false)
                on:drop=move |_| over.set(false)
            >
                <div class="field">
                    <label for="config">"Drop the file here, or paste its contents"</label>
                    <textarea
                        id="config"
                        spellcheck="false"
                        placeholder="{ \"model_type\": …"
                        on:input=pasted
                        aria-describedby="config-note"
                    ></textarea>
                </div>
                <button type="button" class="action" on:click=choose>"Choose a file"</button>
                <input
                    node_ref=input
                    type="file"
                    hidden
                    data-config
                    on:change=chosen
                />
            </div>
            <div id="config-note" class="imported" aria-live="polite">
                {move || plan.calculator.is_broken().then(|| view! { <p class="error">{BROKEN}</p> })}
                {move || imported.get().map(|imported| match imported {
                    Ok(imported) => view! { <ImportNotes imported /> }.into_any(),
                    Err(_) if plan.was_dropped.get() => ().into_any(),
                    Err(what) => view! { <p class="error">{what}</p> }.into_any(),
                })}
            </div>
        </details>
    }
}

/// Imports a file that is dropped anywhere on the page.
pub(super) fn take_drops(plan: Plan) {
    let mark = |is_over: bool| {
        if let Some(body) = document().body() {
            // The name of the class is valid.
            let _ = body.class_list().toggle_with_force("dropping", is_over);
        }
    };
    let over = window_event_listener(leptos::ev::dragover, move |event| {
        let holds_files = event.data_transfer().is_some_and(|transfer| {
            transfer.types().iter().any(|kind| kind.as_string().is_some_and(|kind| kind == "Files"))
        });
        if holds_files {
            event.prevent_default();
            mark(true);
        }
    });
    let left = window_event_listener(leptos::ev::dragleave, move |event| {
        // Only when the pointer leaves the window.
        if event.related_target().is_none() {
            mark(false);
        }
    });
    let dropped = window_event_listener(leptos::ev::drop, move |event| {
        mark(false);
        let files = event.data_transfer().and_then(|transfer| transfer.files());
        if files.as_ref().is_some_and(|files| files.length() > 0) {
            event.prevent_default();
            let in_form = event.target().and_then(|target| target.dyn_into::<Element>().ok());
            let in_form = in_form.is_some_and(|target| matches!(target.closest(".drop"), Ok(Some(_))));
            plan.was_dropped.set(!in_form);
            import_file(plan, files);
        }
    });
    on_cleanup(move || {
        over.remove();
        left.remove();
        dropped.remove();
    });
}

/// How a dropped file was read, or why it can't be used. The style sheet puts it first on the page, where no later answer moves it. It
/// scrolls into view, because the file may have been dropped far below.
#[component]
pub(super) fn ImportNotice() -> impl IntoView {
    let plan = Plan::of_page();
    // A memo, so that it scrolls into view once.
    let dropped = Memo::new(move |_| {
        let imported = plan.calculator.imported.get().filter(|_| plan.was_dropped.get());
        imported.filter(|imported| match imported {
            // Only as long as the plan is for this model.
            Ok(Imported { value: ImportedValue::Model(model), .. }) => {
                let is_its = |spec: &Spec| spec.raw(Field::Model) == model;
                plan.question.with(is_its) || plan.spec.with(is_its)
            }
            _ => true,
        })
    });
    let note = NodeRef::<Div>::new();
    Effect::new(move |_| {
        if let (Some(_), Some(note)) = (dropped.get(), note.get()) {
            note.scroll_into_view_with_bool(false);
        }
    });
    view! {
        {move || dropped.get().map(|imported| {
            let is_wrong = imported.is_err();
            let says = match imported {
                Ok(imported) => view! { <ImportNotes imported /> }.into_any(),
                Err(what) => view! { "This file can't be used: " {what} }.into_any(),
            };
            view! { <div class="notice" class:wrong=is_wrong node_ref=note role="alert">{says}</div> }
        })}
    }
}

/// Imports the first of the files.
fn import_file(plan: Plan, files: Option<FileList>) {
    if let Some(file) = files.and_then(|files| files.get(0)) {
        let imported = plan.calculator.imported;
        spawn_local(async move {
            match text(&file).await {
                Some(text) => plan.calculator.import(text, file.name()),
                None => imported.set(Some(Err("The browser couldn't read the file.".into()))),
            }
        });
    }
}

/// Takes everything that is imported: for the scenario of the address, or for the question.
pub(super) fn take_imports(plan: Plan) {
    Effect::new(move |_| {
        let Some(Ok(imported)) = plan.calculator.imported.get() else { return };
        let has_scenario = untrack(|| plan.address.with_spec(has_scenario));
        match (imported.value, has_scenario) {
            (ImportedValue::Model(model), true) => take_model(plan, &model),
            (ImportedValue::Model(model), false) => plan.state.ask(&[(Field::Model, &model)]),
            (ImportedValue::Cluster { factors, gpu }, true) => take_cluster(plan, &factors, &gpu),
            // The factors are those of one GPU type.
            (ImportedValue::Cluster { factors, gpu }, false) => {
                plan.state.ask(&[(Field::GpuTypes, &gpu), (Field::ClusterFactor, changed(&factors))]);
            }
        }
    });
}

/// Takes the factors of a cluster for the scenario of the address, if that has the same GPU type.
fn take_cluster(plan: Plan, factors: &str, gpu: &str) {
    let other =
        plan.scenario.get_untracked().ok().map(|scenario| scenario.gpu).filter(|other| other.id != gpu);
    match other {
        Some(other) => {
            let measured = value_title(Field::Gpu, gpu);
            let why = format!("The probe measured {measured}, but the plan is for {}.", other.name);
            plan.calculator.imported.set(Some(Err(why)));
        }
        None => plan.address.turn_to(|typed| typed.set(Field::ClusterFactor, changed(factors))),
    }
}

/// Returns factors as a value of their field, which is empty if they change nothing.
fn changed(factors: &str) -> &str {
    if factors == "1" { "" } else { factors }
}

async fn text(file: &File) -> Option<String> {
    JsFuture::from(file.text()).await.ok()?.as_string()
}

/// The title of what was imported, the ignored fields and the assumptions.
#[component]
fn ImportNotes(imported: Imported) -> impl IntoView {
    let list = |title: &'static str, lines: Vec<String>| {
        (!lines.is_empty()).then(|| view! {
            <p>{title}</p>
            <ul class="plain">{lines.into_iter().map(|line| view! { <li>{line}</li> }).collect_view()}</ul>
        })
    };
    let heading = match imported.value {
        ImportedValue::Model(_) => "How the file was read:",
        ImportedValue::Cluster { .. } => "What the probe measured:",
    };
    view! {
        <p><strong>{format!("Imported {}.", imported.title)}</strong></p>
        {list("Ignored fields (may affect the result):", imported.unknown)}
        {list(heading, imported.notes)}
    }
}

/// A property of a GPU: its column in the catalog, its label, and its value for a GPU of the catalog.
type GpuProperty = (&'static str, &'static str, fn(&Gpu) -> Option<f64>);

const GPU_PROPERTIES: [GpuProperty; 7] = [
    ("hbm_gb", "Memory, GiB", |gpu| Some(gpu.hbm_gb)),
    ("hbm_tbps", "Memory, TB/s", |gpu| Some(gpu.hbm_tbps)),
    ("bf16_tflops", "BF16, TFLOPS", |gpu| Some(gpu.bf16_tflops)),
    ("fp8_tflops", "FP8, TFLOPS", |gpu| gpu.fp8_tflops),
    ("nvlink_gbps", "NVLink, GB/s", |gpu| Some(gpu.nvlink_gbps)),
    ("nvlink_domain", "NVLink, GPUs", |gpu| Some(f64::from(gpu.nvlink_domain))),
    ("nic_gbit", "Network, Gbit/s", |gpu| Some(gpu.nic_gbit)),
];

/// The properties of a custom GPU; an empty one is that of the chosen GPU type.
#[component]
pub(super) fn CustomGpu() -> impl IntoView {
    let plan = Plan::of_page();
    let is_used = untrack(|| gpu_text(plan).contains(':'));
    let title = move || {
        let text = gpu_text(plan);
        let base = Catalog::embedded().gpu(text.split(':').next().unwrap_or_default());
        base.map_or("Custom GPU".to_string(), |base| format!("Custom GPU, based on {}", base.name))
    };
    view! {
        <details open=is_used>
            <summary>{title}</summary>
            <div class="grid small">
                {GPU_PROPERTIES.map(|(column, label, value)| view! {
                    <GpuPropertyField column label value />
                }).collect_view()}
            </div>
            <small>"Per GPU. TFLOPS are dense; NVLink bandwidth is in one direction."</small>
        </details>
    }
}

#[component]
fn GpuPropertyField(
    column: &'static str,
    label: &'static str,
    value: fn(&Gpu) -> Option<f64>,
) -> impl IntoView {
    let plan = Plan::of_page();
    let id = format!("gpu-{column}");
    let default = move || {
        let text = gpu_text(plan);
        let gpu = Catalog::embedded().gpu(text.split(':').next().unwrap_or_default());
        gpu.ok().and_then(value).map_or("none".into(), |value| value.to_string())
    };
    let own = move || own_property(&gpu_text(plan), column).to_string();
    let set = move |event| {
        let text = with_property(&gpu_text(plan), column, &event_target_value(&event));
        let is_recipes = plan.recipe.get().is_some_and(|CatalogEntry(recipe)| recipe.id.gpu == text);
        take_gpu(plan, if is_recipes { String::new() } else { text });
    };
    view! {
        <div class="field" class:changed=move || !own().is_empty()>
            <label for=id.clone()>{label}</label>
            <input
                id=id
                type="text"
                inputmode="decimal"
                autocomplete="off"
                placeholder=default
                prop:value=own
                on:input=set
                aria-describedby="field-gpu-note"
            />
        </div>
    }
}

/// Returns the GPU field's text: the typed one, else the recipe's.
fn gpu_text(plan: Plan) -> String {
    let typed = plan.spec.with(|spec| spec.get(Field::Gpu).map(str::to_string));
    let of_recipe = || plan.recipe.get().map(|CatalogEntry(recipe)| recipe.id.gpu.clone());
    typed.or_else(of_recipe).unwrap_or_default()
}
