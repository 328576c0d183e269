//! The Results page: runs from logs dropped in the browser, which stay there, and from the server, if there is one.

mod curves;
mod identify;
pub(crate) mod intake;
mod live;
mod newest;
mod picks;
mod regressions;
mod save;
mod server;

use crate::address::{Address, name_page};
use crate::components::field::{AddressProblems, ChoiceField, Problems, TextField};
use crate::components::filters::{AFTER, Filter, GPU_FILTER, is_any};
use crate::components::plots::SCALE;
use crate::components::run_table::{RunTable, view_of};
use crate::desk::Desk;
use crate::files;
use crate::message::{Answer, LogCurve, Question, Row};
use intake::Entries;
use leptos::ev::DragEvent;
use leptos::html::Input;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use trainplan_shared::convention::Convention;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::log::Window;
use trainplan_shared::problem::Problem;
use trainplan_shared::result::sentence;
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::LogColumn;

/// The keys of the address: the selected runs, the filters and the order.
const PICKS: &str = "pick";
const SORT: &str = "sort";
const FILTERS: [Filter; 7] = [
    ("recipe", "Recipe"),
    ("model", "Model"),
    (GPU_FILTER, "GPU"),
    ("dtype", "Precision"),
    ("cluster", "Cluster"),
    ("campaign", "Campaign"),
    ("status", "Status"),
];
const KEYS: [&str; 11] =
    [PICKS, AFTER, SORT, SCALE, "recipe", "model", GPU_FILTER, "dtype", "cluster", "campaign", "status"];

/// The state that the page's parts share.
#[derive(Clone, Copy)]
struct Results {
    /// The dropped files' rows, by path, and their steps.
    rows: Memo<Vec<(Arc<Row>, Arc<LogCurve>)>>,
    /// The ids of the selected runs.
    picked: Memo<Vec<String>>,
    /// Whether the form is open that sets what the selected logs ran.
    identifies: RwSignal<bool>,
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
    let address = Address::provide_routed("/results", &KEYS);
    name_page(|| "Results".into());
    let (desk, entries) = (Desk::of_app(), Entries::of_app());
    provide_problems(address);
    let rows = Memo::new(move |_| entries.rows());
    let picked = Memo::new(move |_| picks::picks(address));
    provide_context(Results { rows, picked, identifies: RwSignal::new(false) });
    // The scored ones first.
    let dropped = Memo::new(move |_| {
        rows.with(|rows| {
            let of =
                |is_scored: bool| rows.iter().filter(move |(row, _)| row.status.is_scored() == is_scored);
            of(true).chain(of(false)).map(|(row, _)| row.clone()).collect::<Vec<_>>()
        })
    });
    Effect::new(move |_| entries.look(link::write(&address.spec())));
    desk.follow();
    let on_server = server::ask(address);
    let has_runs = Memo::new(move |_| {
        on_server.get().is_some_and(|runs| !runs.rows.is_empty() || is_any(address, &FILTERS))
    });
    // Not while the server has yet to answer, so that nothing flashes.
    let has_nothing = Memo::new(move |_| {
        let is_known = on_server.get().is_some() || desk.has_server() == Some(false);
        entries.is_empty() && !has_runs.get() && is_known
    });
    view! {
        <div class="results-page">
            <h1>"Results"</h1>
            <AddressProblems address />
            <regressions::Regressions />
            <live::Live />
            <Drop is_small=Signal::derive(move || !has_nothing.get()) />
            <Show when=move || has_nothing.get()><Begin /></Show>
            <newest::Newest />
            <Show when=move || !entries.is_empty()>
                <Progress />
                <ViewFields />
                <RunTable label="Results" first="Log" columns=LogColumn::page_headings() rows=dropped more=move |row: &Row| picks::pick(address, row) remedy=move |row: &Row| identify::identify_button(address, row) />
                <save::SaveButtons />
                <curves::Curves />
            </Show>
            <server::ServerRuns runs=on_server />
            <picks::ComparePicked />
        </div>
    }
}

/// Provides the problems of the view's fields. The worker checks the recipe and the GPU type.
pub(crate) fn provide_problems(address: Address) {
    let set = Memo::new(move |_| {
        let fields = [Field::Recipe, Field::Gpu].into_iter();
        link::write(&fields.fold(Spec::default(), |spec, field| spec.with(field, address.text(field))))
    });
    let checked = Desk::of_app().answer(
        move || Some(Question::LogFields { query: set.get() }),
        |answer| if let Answer::Wrong(refusals) = answer { Some(refusals) } else { None },
    );
    provide_context(Problems(Memo::new(move |_| {
        let refusals = checked.get().filter(|_| !checked.is_open());
        let refusals = refusals.map(|refusals| refusals.to_vec()).unwrap_or_default();
        let spec = address.spec();
        let window = spec.get(Field::Window).and_then(|text| {
            let error = text.parse::<Window>().err()?;
            // It says itself what was given.
            Some(Problem::new(Field::Window, "", sentence(&error.to_string())))
        });
        let convention = spec.parse::<Convention>(Field::Convention).err();
        window.into_iter().chain(convention).chain(refusals.into_iter().map(Problem::from)).collect()
    })));
}

/// Shown while there are no runs: which files to drop, what they give, and how to get a first log.
#[component]
fn Begin() -> impl IntoView {
    view! {
        <section class="begin" aria-label="How to begin">
            <div>
                <h2>"What to drop"</h2>
                <p>
                    "What a training job printed: logs of NeMo, Megatron-LM, Megatron-Bridge, torchtitan, MaxText or paxml. "
                    "In a folder, the logs are found for you."
                </p>
            </div>
            <div>
                <h2>"What you get"</h2>
                <p>
                    "Step time, tokens per second and MFU, beside the published number and the prediction. "
                    "Select two runs to compare them step by step."
                </p>
            </div>
            <div>
                <h2>"No log yet?"</h2>
                <p>"Plan a run and copy its launch script, or look at what others measured."</p>
                <p class="buttons">
                    <a href="/?tab=launch" rel="external" class="action">"Plan a run"</a>
                    <a href="/benchmarks" rel="external" class="action">"See benchmarks"</a>
                </p>
            </div>
        </section>
    }
}

/// Where files are dropped or chosen.
#[component]
pub(crate) fn Drop(
    /// Whether it is a single line above the results.
    #[prop(optional, into)]
    is_small: Signal<bool>,
) -> impl IntoView {
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
                Err(_) => entries.refuse("The browser couldn't list the dropped items."),
            }
        });
    };
    let chosen = move |input: NodeRef<Input>| {
        move |_| {
            if let Some(input) = input.get_untracked() {
                entries.take(files::chosen(input.files()));
                // Reset, so that the same files can be chosen again.
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
            class:small=is_small
            on:dragover=move |event: DragEvent| { event.prevent_default(); over.set(true); }
            on:dragleave=move |_| over.set(false)
            on:drop=drop
        >
            <p>
                <strong>"Drop training logs here"</strong>
                <span class="kinds">": files, folders, a whole " <code>"experiments/"</code> " tree, or saved " <code>"*.result.json"</code></span>
                ". They stay in this browser unless you upload them."
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

/// The progress of reading, with a button to stop.
#[component]
fn Progress() -> impl IntoView {
    let (entries, rows) = (Entries::of_app(), Results::of_page().rows);
    let text = move || {
        let (done, all, now) = entries.progress();
        match now {
            Some((path, percent)) => format!("Read {done} of {all}; {percent} % of {path}"),
            None => {
                let scored = rows.with(|rows| rows.iter().filter(|(row, _)| row.status.is_scored()).count());
                format!("Read {done} of {all} files; {scored} scored")
            }
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

/// The window, the convention, the recipe and the GPU type. They are open once one of them is set.
#[component]
pub(crate) fn ViewFields() -> impl IntoView {
    let address = Address::of_page();
    let is_open =
        Memo::new(move |before| before == Some(&true) || !link::write(&view_of(address)).is_empty());
    let conventions =
        Convention::ALL.map(|convention| (convention.id().to_string(), convention.id().to_string()));
    view! {
        <details open=move || is_open.get()>
            <summary>"Change window, FLOPs convention, recipe or GPU"</summary>
            <div class="controls">
                <TextField field=Field::Window default="release default" help="Steps to score: last, or a range such as 35-44." />
                <ChoiceField field=Field::Convention options=conventions.to_vec() default="recipe's, if known" />
                <TextField field=Field::Recipe default="from the log" help="If the logs don't name it." />
                <TextField field=Field::Gpu default="from the log" help="Such as h100, if the logs don't name it." />
            </div>
        </details>
    }
}
