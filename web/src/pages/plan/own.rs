//! Planning what no recipe plans: another model, a model from its `config.json`, another GPU, a GPU by its numbers.

use super::{BROKEN, Of, Plan};
use crate::components::field::ChoiceField;
use crate::message::Imported;
use leptos::ev::DragEvent;
use leptos::html::Input;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::web_sys::{File, FileList};
use trainplan_shared::catalog::{Catalog, Gpu};
use trainplan_shared::field::Field;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;
use wasm_bindgen_futures::JsFuture;

/// The models of the catalog, and the user's own if there is one.
#[component]
pub(super) fn ModelChoice() -> impl IntoView {
    let plan = Plan::of_page();
    let options = Signal::derive(move || {
        let known = Catalog::embedded().models().iter().map(|model| (model.id.clone(), model.title.clone()));
        known.chain(own(plan, Field::Model, |scenario| scenario.model.title.clone())).collect()
    });
    let default = as_recipe(plan, |plan| {
        let Of(recipe) = plan.recipe.get()?;
        Catalog::embedded().model(&recipe.id.model).ok().map(|model| model.title.clone())
    });
    let choose = Callback::new(move |model: String| take_model(plan, &model));
    view! { <ChoiceField field=Field::Model options default choose /> }
}

/// The GPU types of the catalog, and the user's own if there is one.
#[component]
pub(super) fn GpuChoice() -> impl IntoView {
    let plan = Plan::of_page();
    let options = Signal::derive(move || {
        let known = Catalog::embedded().gpus().iter();
        let known = known.map(|gpu| (gpu.id.clone(), format!("{} {}", gpu.name, gpu.form)));
        known.chain(own(plan, Field::Gpu, |scenario| scenario.gpu.name.clone())).collect()
    });
    let default = as_recipe(plan, |plan| {
        let Of(recipe) = plan.recipe.get()?;
        Catalog::embedded().gpu(&recipe.id.gpu).ok().map(|gpu| gpu.name.clone())
    });
    view! { <ChoiceField field=Field::Gpu options default /> }
}

/// What was typed of one's own, with its title, as a choice.
fn own(plan: Plan, field: Field, title: fn(&Scenario) -> String) -> Option<(String, String)> {
    let text = plan.spec.with(|spec| spec.raw(field).to_string());
    let title = plan.scenario.with(|scenario| scenario.as_ref().map(title).unwrap_or("your own".into()));
    text.contains(':').then_some((text, title))
}

fn as_recipe(plan: Plan, name: fn(Plan) -> Option<String>) -> Signal<String> {
    Signal::derive(move || name(plan).map_or("choose".into(), |name| format!("{name} (recipe)")))
}

/// Takes a model: as it stands if that can be, otherwise without the recipe and its layout.
fn take_model(plan: Plan, model: &str) {
    let here =
        plan.spec.with_untracked(|spec| spec.clone().with(Field::Model, model).with(Field::Layers, ""));
    let plain = plan.scenario.with_untracked(|scenario| {
        let scenario = scenario.as_ref().ok()?;
        let bare = here.without_scenario().with(Field::Model, model);
        let bare = on_gpus(bare, scenario).with(Field::Gbs, scenario.batch.gbs().to_string());
        let gpus = scenario.layout.gpus().to_string();
        Some([bare.clone().with(Field::Tp, "8"), bare.clone(), bare.with(Field::Gbs, gpus)])
    });
    let works = |spec: &Spec| spec.scenario().is_ok();
    let taken = std::iter::once(here.clone()).chain(plain.into_iter().flatten()).find(works).unwrap_or(here);
    plan.address.turn_to(|spec| *spec = taken);
}

/// Says everything that the recipe says, and lets it go.
pub(super) fn leave_recipe(plan: Plan) {
    let said = plan.scenario.with_untracked(|scenario| {
        let scenario = scenario.as_ref().ok()?;
        let (layout, batch) = (&scenario.layout, &scenario.batch);
        let numbers = [
            (Field::Tp, layout.tp(), 1),
            (Field::Pp, layout.pp(), 1),
            (Field::Cp, layout.cp(), 1),
            (Field::Ep, layout.ep(), 1),
            (Field::ExpertTp, layout.expert_tp(), 1),
            (Field::Vp, layout.vp(), 1),
            (Field::Mbs, batch.mbs(), 1),
            (Field::Gbs, batch.gbs(), 0),
            (Field::SeqLen, batch.seq_len(), scenario.model.seq_len),
            (Field::Layers, scenario.architecture.layers, scenario.model.architecture.layers),
        ];
        let spec = plan.spec.with_untracked(Clone::clone).with(Field::Recipe, "");
        let split = scenario.layout.split().to_string();
        let spec = spec.with(Field::Model, scenario.model.id.clone()).with(Field::PipelineSplit, split);
        let spec = on_gpus(spec, scenario).with(Field::Stack, scenario.options.stack.id());
        let numbers = numbers.into_iter().filter(|(_, value, usual)| value != usual);
        Some(numbers.fold(spec, |spec, (field, value, _)| spec.with(field, value.to_string())))
    });
    if let Some(said) = said {
        plan.address.turn_to(|spec| *spec = said);
    }
}

/// On the GPUs of a scenario, in its precision.
fn on_gpus(spec: Spec, scenario: &Scenario) -> Spec {
    let gpus = scenario.layout.gpus().to_string();
    let spec = spec.with(Field::Gpu, scenario.gpu.id.clone()).with(Field::Gpus, gpus);
    spec.with(Field::Dtype, scenario.dtype.id())
}

/// A model from its `config.json`: dropped, chosen or pasted.
#[component]
pub(super) fn ConfigImport() -> impl IntoView {
    let plan = Plan::of_page();
    let imported = plan.helper.imported;
    let input = NodeRef::<Input>::new();
    let over = RwSignal::new(false);
    let read = move |files: Option<FileList>| {
        if let Some(file) = files.and_then(|files| files.get(0)) {
            spawn_local(async move {
                match text(&file).await {
                    Some(text) => plan.helper.import(text),
                    None => imported.set(Some(Err("can't be read by this browser".into()))),
                }
            });
        }
    };
    let dropped = move |event: DragEvent| {
        over.set(false);
        let files = event.data_transfer().and_then(|transfer| transfer.files());
        // Dropped text goes where the browser puts it: into the text area.
        if files.as_ref().is_some_and(|files| files.length() > 0) {
            event.prevent_default();
            read(files);
        }
    };
    let pasted = move |event| {
        let text = event_target_value(&event);
        match text.trim().is_empty() {
            true => imported.set(None),
            false => plan.helper.import(text),
        }
    };
    Effect::new(move |_| {
        if let Some(Ok(imported)) = imported.get() {
            take_model(plan, &imported.model);
        }
    });
    view! {
        <details>
            <summary>"A model from its config.json"</summary>
            <div
                class="drop"
                class:over=over
                on:dragover=move |event: DragEvent| { event.prevent_default(); over.set(true); }
                on:dragleave=move |_| over.set(false)
                on:drop=dropped
            >
                <div class="field">
                    <label for="config">"Drop the file here, or paste what it holds"</label>
                    <textarea id="config" spellcheck="false" placeholder="{ \"model_type\": …" on:input=pasted aria-describedby="config-note"></textarea>
                </div>
                <button type="button" class="action" on:click=move |_| { let _ = input.get_untracked().map(|input| input.click()); }>"Choose a file"</button>
                <input
                    node_ref=input
                    type="file"
                    hidden
                    data-config
                    on:change=move |_| if let Some(input) = input.get_untracked() { read(input.files()); input.set_value(""); }
                />
            </div>
            <div id="config-note" class="imported" aria-live="polite">
                {move || plan.helper.is_broken().then(|| view! { <p class="error">{BROKEN}</p> })}
                {move || imported.get().map(|imported| match imported {
                    Ok(imported) => view! { <ImportNotes imported /> }.into_any(),
                    Err(what) => view! { <p class="error">{format!("The file {what}.")}</p> }.into_any(),
                })}
            </div>
        </details>
    }
}

async fn text(file: &File) -> Option<String> {
    JsFuture::from(file.text()).await.ok()?.as_string()
}

/// What was read, what was assumed, and what was not understood.
#[component]
fn ImportNotes(imported: Imported) -> impl IntoView {
    let list = |title: &'static str, lines: Vec<String>| {
        (!lines.is_empty()).then(|| view! {
            <p>{title}</p>
            <ul class="plain">{lines.into_iter().map(|line| view! { <li>{line}</li> }).collect_view()}</ul>
        })
    };
    view! {
        <p><strong>{format!("Read: {}.", imported.title)}</strong></p>
        {list("Not understood, so that the model may be another:", imported.unknown)}
        {list("Assumed, because the file does not say:", imported.notes)}
    }
}

/// A number of a GPU: the column that it is known by, its label, and what the catalog says.
type GpuNumber = (&'static str, &'static str, fn(&Gpu) -> Option<f64>);

const GPU_NUMBERS: [GpuNumber; 7] = [
    ("hbm_gb", "Memory, GB", |gpu| Some(gpu.hbm_gb)),
    ("hbm_tbps", "Memory, TB/s", |gpu| Some(gpu.hbm_tbps)),
    ("bf16_tflops", "BF16, TFLOPS", |gpu| Some(gpu.bf16_tflops)),
    ("fp8_tflops", "FP8, TFLOPS", |gpu| gpu.fp8_tflops),
    ("nvlink_gbps", "NVLink, GB/s", |gpu| Some(gpu.nvlink_gbps)),
    ("nvlink_domain", "NVLink, GPUs", |gpu| Some(f64::from(gpu.nvlink_domain))),
    ("nic_gbit", "Network, Gbit/s", |gpu| Some(gpu.nic_gbit)),
];

/// A GPU by its numbers, where they differ from those of the type that is chosen.
#[component]
pub(super) fn GpuNumbers() -> impl IntoView {
    let plan = Plan::of_page();
    let is_used = gpu_text(plan).contains(':');
    view! {
        <details open=is_used>
            <summary>"A GPU by its numbers"</summary>
            <div class="grid small">
                {GPU_NUMBERS.map(|(column, label, value)| view! { <GpuNumberField column label value /> }).collect_view()}
            </div>
            <small>"Dense rates, each of one GPU; NVLink in one direction."</small>
        </details>
    }
}

#[component]
fn GpuNumberField(
    column: &'static str,
    label: &'static str,
    value: fn(&Gpu) -> Option<f64>,
) -> impl IntoView {
    let plan = Plan::of_page();
    let id = format!("gpu-{column}");
    let usual = move || {
        let text = gpu_text(plan);
        let gpu = Catalog::embedded().gpu(text.split(':').next().unwrap_or_default());
        gpu.ok().and_then(value).map_or("none".into(), |value| value.to_string())
    };
    let own = move || {
        let text = gpu_text(plan);
        let (_, pairs) = text.split_once(':').unwrap_or_default();
        let own = pairs.split(',').filter_map(|pair| pair.split_once('='));
        own.filter(|(own, _)| *own == column).map(|(_, value)| value.to_string()).next().unwrap_or_default()
    };
    let set = move |event| {
        // These mean something else in the text that a GPU is known by.
        let typed = event_target_value(&event).replace([',', ':', '='], "");
        let text = with_number(&gpu_text(plan), column, typed.trim());
        let is_recipes = plan.recipe.get().is_some_and(|Of(recipe)| recipe.id.gpu == text);
        plan.address.set(Field::Gpu, if is_recipes { String::new() } else { text });
    };
    view! {
        <div class="field" class:changed=move || !own().is_empty()>
            <label for=id.clone()>{label}</label>
            <input id=id type="text" inputmode="decimal" autocomplete="off" placeholder=usual prop:value=own on:input=set aria-describedby="field-gpu-note" />
        </div>
    }
}

/// The GPU that counts, as it was typed or as the recipe has it.
fn gpu_text(plan: Plan) -> String {
    let typed = plan.spec.with(|spec| spec.get(Field::Gpu).map(str::to_string));
    typed.or(plan.recipe.get().map(|Of(recipe)| recipe.id.gpu.clone())).unwrap_or_default()
}

/// The text of a GPU with one of its numbers changed; an empty one is the base's again.
fn with_number(text: &str, column: &str, number: &str) -> String {
    let (base, pairs) = text.split_once(':').unwrap_or((text, ""));
    let others = pairs.split(',').filter(|pair| !pair.is_empty() && pair.split('=').next() != Some(column));
    let mut pairs: Vec<String> = others.map(str::to_string).collect();
    if !number.is_empty() {
        pairs.push(format!("{column}={number}"));
    }
    match pairs.is_empty() {
        true => base.to_string(),
        false => format!("{base}:{}", pairs.join(",")),
    }
}
