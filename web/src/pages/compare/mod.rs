//! The Compare page: runs compared with each other, with their plans and with published numbers.

use crate::address::{Address, name_page};
use crate::components::copy::{CopyButton, as_file, to_clipboard};
use crate::components::field::AddressProblems;
use crate::components::numbers::Numbers;
use crate::components::plots::{Plots, SCALE};
use crate::components::run_table::{RunTable, compare_href, view_of};
use crate::components::settings::Settings;
use crate::components::share::ShareLinks;
use crate::components::trouble::RequestErrorNote;
use crate::desk::{Asked, Desk};
use crate::message::{Answer, Compared, ComparisonFormat, Question, Row, Runs, Scope};
use crate::pages::results::intake::Entries;
use crate::pages::results::{Drop, ViewFields, provide_problems};
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use std::time::Duration;
use trainplan_shared::link;
use trainplan_shared::sorting::sorted;
use trainplan_shared::tables::{ComparisonColumn, StoredRunColumn};

/// The address's key of the runs, the reference first.
const IDS: &str = "ids";
const KEYS: [&str; 2] = [IDS, SCALE];

/// The state that the page's parts share.
#[derive(Clone, Copy)]
struct Shown {
    address: Address,
    compared: Memo<Arc<Compared>>,
}

impl Shown {
    /// Returns the ids of the shown runs, also if the address has none.
    fn ids(self) -> Vec<String> {
        let named = ids(self.address);
        if named.is_empty() {
            self.compared.with(|compared| compared.rows.iter().map(|row| row.id.clone()).collect())
        } else {
            named
        }
    }

    fn turn_to(self, ids: &[String]) {
        self.address.turn_to_own(&[(IDS, ids.join(","))]);
    }
}

fn ids(address: Address) -> Vec<String> {
    address.own(IDS).split(',').filter(|id| !id.is_empty()).map(str::to_string).collect()
}

/// Asks for the comparison of `ids` with the window, convention and recipe of the address.
pub(crate) fn ask(address: Address, ids: impl Fn() -> Option<Vec<String>> + 'static) -> Asked<Compared> {
    let desk = Desk::of_app();
    let query = Memo::new(move |_| link::write(&view_of(address)));
    desk.answer(
        move || Some(Question::Comparison { ids: ids()?, query: query.get() }),
        |answer| if let Answer::Comparison(compared) = answer { Some(*compared) } else { None },
    )
}

/// The Compare page.
#[component]
pub(crate) fn ComparePage() -> impl IntoView {
    let address = Address::provide_routed("/compare", &KEYS);
    provide_problems(address);
    let settled = Entries::of_app().settled();
    let named = Memo::new(move |_| ids(address));
    let desk = Desk::of_app();
    desk.follow();
    let asked = ask(address, move || {
        if named.with(Vec::is_empty) {
            desk.track_runs();
        }
        // A dropped file may be a missing run.
        let _ = settled.get();
        Some(named.get())
    });
    let compared = Memo::new(move |_| asked.get().unwrap_or_default());
    let shown = Shown { address, compared };
    name_page(move || {
        let names =
            compared.with(|compared| compared.rows.iter().map(|row| row.path.clone()).collect::<Vec<_>>());
        if names.len() < 2 { "Compare".into() } else { names.join(" and ") }
    });
    let is_empty = Memo::new(move |_| compared.with(|compared| compared.rows.is_empty()));
    view! {
        <div class="results-page">
            <h1>"Compare"</h1>
            <AddressProblems address />
            <RequestErrorNote trouble=Signal::derive(move || asked.trouble()) alone="This site has no results server. Drop logs or result files to compare them." />
            <Missing shown />
            <Show when=move || !is_empty.get() fallback=move || view! { <Nothing asked /> }>
                <div class="results-page" class:stale=move || asked.is_open()>
                    <Verdict compared />
                    <Export shown />
                    <ViewFields />
                    <Repeats compared />
                    <Members shown />
                    <AddRun shown />
                    <Plots compared />
                    <Settings compared />
                </div>
            </Show>
        </div>
    }
}

/// What the page shows without runs: where to drop them.
#[component]
fn Nothing(asked: Asked<Compared>) -> impl IntoView {
    let desk = Desk::of_app();
    view! {
        <Show when=move || !asked.is_open()>
            // A guest sees only the runs of the share link.
            <Show when=move || desk.shared().is_none()>
                <section class="begin" aria-label="How to begin">
                    <div>
                        <h2>"Nothing to compare yet"</h2>
                        <p>"Drop logs or result files below: two or more to compare them, or one to compare it with its plan and the published number."</p>
                        <p>"Or select runs on the " <a href="/results">"Results"</a> " page."</p>
                    </div>
                </section>
                <Drop />
            </Show>
        </Show>
    }
}

/// The runs of the address that were not found.
#[component]
fn Missing(shown: Shown) -> impl IntoView {
    let remove = move |id: String| {
        let ids: Vec<String> = shown.ids().into_iter().filter(|other| *other != id).collect();
        shown.turn_to(&ids);
    };
    let note = move |(id, why): (String, String)| {
        let gone = id.clone();
        view! {
            <p class="notice wrong">
                <span>{why}</span>
                <button type="button" class="nearest" on:click=move |_| remove(gone.clone())>"Remove from comparison"</button>
            </p>
        }
    };
    view! { <div aria-live="polite">{move || shown.compared.get().missing.iter().cloned().map(note).collect_view()}</div> }
}

/// The verdict, the reasons and the notes.
#[component]
pub(crate) fn Verdict(
    /// The comparison.
    #[prop(into)]
    compared: Signal<Arc<Compared>>,
    /// Whether the page shows a log to link to.
    #[prop(optional, into)]
    has_log: Signal<bool>,
) -> impl IntoView {
    move || {
        let compared = compared.get();
        let others = compared.rows.len().saturating_sub(1);
        let unlike =
            format!("{} of {others} runs are not comparable with the reference", compared.unlike.len());
        let notes = format!("{} notes on the comparison", compared.notes.len());
        view! {
            <section class="answers verdict" data-verdict=compared.outcome.id() aria-label="Verdict">
                <p class="headline" role="status" title=compared.headline_in_full.clone()>
                    {compared.headline.clone()}
                    {compared.failure_line.filter(|_| has_log.get()).map(|line| view! {
                        " " <a href=format!("#L{line}") rel="external">{format!("Go to line {line}")}</a>
                    })}
                </p>
                {few_or_folded(&compared.unlike, "notice wrong", unlike, true)}
                {few_or_folded(&compared.notes, "basis", notes, false)}
                {(others > compared.unlike.len()).then(|| view! { <p class="basis">{compared.method.clone()}</p> })}
            </section>
        }
    }
}

/// A paragraph for each line, or a list of more than two that can be folded.
fn few_or_folded(lines: &[String], class: &'static str, summary: String, is_open: bool) -> AnyView {
    if lines.len() > 2 {
        let lines = lines.iter().map(|line| view! { <li>{line.clone()}</li> }).collect_view();
        view! {
            <details class=class open=is_open>
                <summary>{summary}</summary>
                <ul class="plain">{lines}</ul>
            </details>
        }
        .into_any()
    } else {
        lines.iter().map(|line| view! { <p class=class>{line.clone()}</p> }).collect_view().into_any()
    }
}

/// Why runs that are only in this tab have no link, and what to do instead.
#[component]
pub(crate) fn NoLink() -> impl IntoView {
    let desk = Desk::of_app();
    let may_upload = desk.may(Scope::Upload, move || desk.has_server() == Some(true));
    view! {
        <p class="basis">
            "These logs are only in this tab. "
            <Show when=move || may_upload.get() fallback=|| "To share them, save and send the files.">
                "To get a link, upload them on the " <a href="/results">"Results"</a> " page; or save and send the files."
            </Show>
        </p>
    }
}

/// Links to the comparison, and files of it.
#[component]
fn Export(shown: Shown) -> impl IntoView {
    let desk = Desk::of_app();
    let failed = RwSignal::new(false);
    let question = move |format: ComparisonFormat| {
        let query = link::write(&view_of(shown.address));
        Question::ComparisonFile { ids: shown.ids(), query, format }
    };
    let copied = RwSignal::new("Copy Markdown");
    let copy = move |_| {
        desk.ask(question(ComparisonFormat::Markdown), move |answer| {
            spawn_local(async move {
                let is_copied =
                    matches!(answer, Ok(Answer::File(file)) if to_clipboard(&file.text).await.is_ok());
                // `try_set`: the page may have been left meanwhile.
                copied.try_set(if is_copied { "Copied" } else { "Copying failed" });
                set_timeout(
                    move || {
                        copied.try_set("Copy Markdown");
                    },
                    Duration::from_secs(2),
                );
            });
        });
    };
    let save = move |format: ComparisonFormat| {
        move |_| {
            desk.ask(question(format), move |answer| {
                failed.set(
                    !matches!(answer, Ok(Answer::File(file)) if as_file(&file.text, &file.name).is_ok()),
                );
            });
        }
    };
    let on_server = Memo::new(move |_| shown.compared.with(|compared| compared.on_server.clone()));
    let to = Signal::derive(move || {
        let origin = window().location().origin().unwrap_or_default();
        format!("{origin}{}", on_server.with(|ids| compare_href(shown.address, ids)))
    });
    let only_here = Memo::new(move |_| {
        shown.compared.with(|compared| {
            let rows = compared.rows.iter().filter(|row| !compared.on_server.contains(&row.id));
            rows.map(|row| row.path.clone()).collect::<Vec<_>>()
        })
    });
    let is_of_none = Signal::derive(move || on_server.with(Vec::is_empty));
    view! {
        <div class="buttons">
            <CopyButton text=to label="Copy link" disabled=is_of_none />
            <details class="menu">
                <summary class="action">"Export"</summary>
                <div class="buttons">
                    <button type="button" class="action" on:click=copy><span aria-live="polite">{copied}</span></button>
                    <button type="button" class="action" on:click=save(ComparisonFormat::Html)>"Save as HTML"</button>
                    <button type="button" class="action" on:click=save(ComparisonFormat::Csv)>"Save as CSV"</button>
                    <button type="button" class="action" on:click=save(ComparisonFormat::Json)>"Save as JSON"</button>
                </div>
            </details>
            {move || failed.get().then(|| view! { <span class="error" role="status">"Couldn't save the file."</span> })}
        </div>
        <Show when=move || !only_here.with(Vec::is_empty)>
            <Show when=move || !is_of_none.get() fallback=NoLink>
                <p class="basis">{move || format!("Only in this tab, so not in the link: {}.", only_here.get().join(", "))}</p>
            </Show>
        </Show>
        <Show when=move || !is_of_none.get() && desk.shared().is_none()>
            <ShareLinks ids=on_server to=to />
        </Show>
    }
}

/// The table of the mappings, with their repeats pooled.
#[component]
fn Repeats(compared: Memo<Arc<Compared>>) -> impl IntoView {
    let table = Signal::derive(move || compared.with(|compared| compared.pooled.clone()));
    view! {
        <Show when=move || compared.with(|compared| !compared.pooled.rows.is_empty())>
            <Numbers table />
        </Show>
    }
}

/// The table of the runs.
#[component]
fn Members(shown: Shown) -> impl IntoView {
    let rows = Memo::new(move |_| {
        shown.compared.with(|compared| compared.rows.iter().cloned().map(Arc::new).collect::<Vec<_>>())
    });
    let more = move |row: &Row| {
        let (id, is_reference) = (row.id.clone(), shown.ids().first() == Some(&row.id));
        let name = row.path.clone();
        let first = {
            let id = id.clone();
            move |_| {
                let others = shown.ids().into_iter().filter(|other| *other != id);
                shown.turn_to(&std::iter::once(id.clone()).chain(others).collect::<Vec<_>>());
            }
        };
        let remove = move |_| {
            shown.turn_to(&shown.ids().into_iter().filter(|other| *other != id).collect::<Vec<_>>());
        };
        let is_only = shown.compared.with(|compared| compared.rows.len() < 2);
        view! {
            <span class="buttons">
                {(!is_reference).then(|| view! {
                    <button type="button" class="link" on:click=first>"Make reference"<span class="visually-hidden">{format!(": {name}")}</span></button>
                })}
                {(!is_only).then(|| view! {
                    <button type="button" class="link" on:click=remove>"Remove"<span class="visually-hidden">{format!(" {name}")}</span></button>
                })}
            </span>
        }.into_any()
    };
    view! { <RunTable label="Compared runs" first="Run" columns=ComparisonColumn::page_headings() rows more below=true /> }
}

/// A list of runs to add, those of the reference's recipe first.
#[component]
fn AddRun(shown: Shown) -> impl IntoView {
    let (desk, entries) = (Desk::of_app(), Entries::of_app());
    let runs = desk.answer(
        // A guest may not list other runs.
        move || {
            (desk.has_server() != Some(false) && desk.shared().is_none())
                .then(|| Question::Runs { query: String::new() })
        },
        |answer| if let Answer::Runs(runs) = answer { Some(runs) } else { None },
    );
    let others = Memo::new(move |_| others(shown, runs.get().as_deref(), entries));
    let add = move |event| {
        let id = event_target_value(&event);
        if !id.is_empty() {
            let ids: Vec<String> = shown.ids().into_iter().chain([id]).collect();
            shown.turn_to(&ids);
        }
    };
    view! {
        <Show when=move || desk.shared().is_none() || !others.with(Vec::is_empty)>
            <div class="field inline">
                <label for="add-run">"Add a run"</label>
                <select id="add-run" on:change=add>
                    <option value="">{move || if others.with(Vec::is_empty) { "no other runs" } else { "choose" }}</option>
                    <For each=move || others.get() key=|(id, _)| id.clone() let((id, name))>
                        <option value=id>{name}</option>
                    </For>
                </select>
            </div>
        </Show>
    }
}

/// Returns the ids and names of runs that are not shown.
fn others(shown: Shown, on_server: Option<&Runs>, entries: Entries) -> Vec<(String, String)> {
    let shown_ids = shown.ids();
    let recipe = shown.compared.with(|compared| recipe(compared.rows.first()?).map(str::to_string));
    let dropped = entries.rows();
    let rows =
        dropped.iter().map(|(row, _)| row.as_ref()).chain(on_server.into_iter().flat_map(|runs| &runs.rows));
    let rows: Vec<&Row> = rows.filter(|row| !row.id.is_empty() && !shown_ids.contains(&row.id)).collect();
    let is_another = |row: &Row| self::recipe(row) != recipe.as_deref();
    let rows = sorted(&rows, |one, other| is_another(one).cmp(&is_another(other)));
    let name = |row: &Row| {
        let ran = row.text(StoredRunColumn::Ran.key());
        [Some(row.path.as_str()), self::recipe(row), ran].into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    rows.into_iter().map(|row| (row.id.clone(), name(row))).collect()
}

fn recipe(row: &Row) -> Option<&str> {
    row.text(ComparisonColumn::Recipe.key())
}
