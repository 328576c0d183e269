//! The Results page: what runs measured, from logs read in the browser, which nothing leaves, and from the server that
//! the page came from, if it has any.

mod curves;
pub(crate) mod intake;
mod save;
mod table;

use crate::address::{Address, name_page};
use crate::components::field::{ChoiceField, Problems, TextField};
use crate::files;
use crate::message::{Curve, Row};
use crate::pages::plan::AddressProblems;
use intake::Entries;
use leptos::ev::DragEvent;
use leptos::html::Input;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use std::time::Duration;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::flops::Convention;
use trainplan_shared::link;
use trainplan_shared::log::Window;
use trainplan_shared::problem::{Field, Problem};
use trainplan_shared::spec::Spec;

/// How often to look for what is new on the server.
const EVERY: Duration = Duration::from_secs(15);

/// What the parts of the page share.
#[derive(Clone, Copy)]
struct Results {
    /// What to show of every file, by path, and its steps.
    rows: Memo<Vec<(Arc<Row>, Arc<Curve>)>>,
}

impl Results {
    fn of_page() -> Results {
        #[expect(clippy::expect_used, reason = "the page provides it before its parts are made")]
        use_context().expect("the Results page provides its results")
    }
}

/// The Results page.
#[component]
pub(crate) fn ResultsPage() -> impl IntoView {
    let address = Address::provide("/results");
    name_page(|| "Results".into());
    let entries = Entries::of_app();
    provide_context(Problems(Memo::new(move |_| problems(&address.spec()))));
    provide_context(Results { rows: Memo::new(move |_| entries.rows()) });
    Effect::new(move |_| entries.look(link::write(&address.spec())));
    // After the page stands.
    Effect::new(move |_| entries.ask());
    if let Ok(timer) = set_interval_with_handle(move || entries.keep_up(), EVERY) {
        on_cleanup(move || timer.clear());
    }
    view! {
        <div class="results-page">
            <h1>"Results"</h1>
            <AddressProblems address />
            <Drop />
            <p class="error" role="alert">{move || entries.problem()}</p>
            <Show when=move || !entries.is_empty()>
                <Progress />
                <Options />
                <table::ReportTable />
                <save::SaveButtons />
                <curves::Curves />
            </Show>
        </div>
    }
}

/// What of the address can't be understood.
fn problems(spec: &Spec) -> Vec<Problem> {
    let window = spec.get(Field::Window).and_then(|text| {
        let error = text.parse::<Window>().err()?;
        Some(Problem::new(Field::Window, text, error.to_string()))
    });
    let convention = spec.parse::<Convention>(Field::Convention).err();
    let recipe = spec.get(Field::Recipe).and_then(|id| Catalog::embedded().recipe(id).err());
    window.into_iter().chain(convention).chain(recipe).collect()
}

/// Where files are dropped or chosen.
#[component]
fn Drop() -> impl IntoView {
    let entries = Entries::of_app();
    let over = RwSignal::new(false);
    let (files_input, folder_input) = (NodeRef::<Input>::new(), NodeRef::<Input>::new());
    let drop = move |event: DragEvent| {
        event.prevent_default();
        over.set(false);
        let dropped = files::dropped(event.data_transfer());
        spawn_local(async move {
            match files::walk(dropped).await {
                Ok(found) => entries.take(found),
                Err(_) => entries.refuse("the browser could not list what was dropped"),
            }
        });
    };
    let chosen = move |input: NodeRef<Input>| {
        move |_| {
            if let Some(input) = input.get_untracked() {
                entries.take(files::chosen(input.files()));
                // So that the same files can be chosen again.
                input.set_value("");
            }
        }
    };
    let press = move |input: NodeRef<Input>| {
        move |_| {
            if let Some(input) = input.get_untracked() {
                input.click();
            }
        }
    };
    view! {
        <div
            class="drop"
            class:over=over
            on:dragover=move |event: DragEvent| { event.prevent_default(); over.set(true); }
            on:dragleave=move |_| over.set(false)
            on:drop=drop
        >
            <p>
                <strong>"Drop training logs here"</strong>
                ": files, folders, a whole " <code>"experiments/"</code> " tree, or saved " <code>"*.result.json"</code>
                ". They are read in this browser and leave it nowhere."
            </p>
            <div class="buttons">
                <button type="button" class="action primary" on:click=press(files_input)>"Choose files"</button>
                <button type="button" class="action" on:click=press(folder_input)>"Choose a folder"</button>
            </div>
            <input node_ref=files_input type="file" multiple hidden data-files on:change=chosen(files_input) />
            <input node_ref=folder_input type="file" prop:webkitdirectory=true hidden data-folder on:change=chosen(folder_input) />
        </div>
    }
}

/// How far reading is, with a way to stop it.
#[component]
fn Progress() -> impl IntoView {
    let entries = Entries::of_app();
    let text = move || {
        let (done, all, now) = entries.progress();
        match now {
            Some((path, percent)) => format!("Read {done} of {all}; {percent} % of {path}"),
            None => format!("Read {done} of {all} files"),
        }
    };
    view! {
        <div class="progress">
            <span role="status">{text}</span>
            <Show when=move || entries.is_busy()>
                <button type="button" class="action" on:click=move |_| entries.cancel()>"Stop"</button>
            </Show>
            <Show when=move || !entries.is_busy()>
                <button type="button" class="action" on:click=move |_| entries.clear()>"Clear"</button>
            </Show>
        </div>
    }
}

/// How the results are looked at.
#[component]
fn Options() -> impl IntoView {
    let conventions =
        Convention::ALL.map(|convention| (convention.id().to_string(), convention.id().to_string()));
    view! {
        <div class="controls">
            <TextField field=Field::Window default="the release's own" numeric=false help="last, 11-44, 35-44, or any A-B." />
            <ChoiceField field=Field::Convention options=conventions.to_vec() default="recipe where there is one" />
            <TextField field=Field::Recipe default="as the log tells" numeric=false help="The recipe that the logs ran, if they do not tell." />
        </div>
    }
}
