//! The Run page: a run's score, its comparison with the plan and the published number, its origin and its log.

mod keep;
mod log;

use crate::address::{Address, name_page, query};
use crate::components::copy::{CopyButton, as_file};
use crate::components::field::AddressProblems;
use crate::components::numbers::Numbers;
use crate::components::plots::{Plots, SCALE};
use crate::components::run_table::{compare_href, run_href};
use crate::components::settings::Settings;
use crate::components::share::ShareLinks;
use crate::components::trouble::RequestErrorNote;
use crate::desk::Desk;
use crate::message::{Answer, Compared, Question, RequestError, Row, Scope};
use crate::pages::compare::{NoLink, Verdict, ask};
use crate::pages::results::intake::Entries;
use crate::pages::results::{ViewFields, provide_problems};
use leptos::prelude::*;
use leptos_router::components::A;
use std::sync::Arc;
use trainplan_shared::result::sentence;
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::{ComparisonColumn, PageCell, PageHeading};

/// The keys of the address: the run, and the shown part of its log.
const ID: &str = "id";
pub(super) const FROM: &str = "from";
pub(super) const FIND: &str = "find";
const KEYS: [&str; 4] = [ID, FROM, FIND, SCALE];

/// The Run page.
#[component]
pub(crate) fn RunPage() -> impl IntoView {
    let address = Address::provide_routed("/run", &KEYS);
    provide_problems(address);
    let desk = Desk::of_app();
    let settled = Entries::of_app().settled();
    let id = Memo::new(move |_| address.own(ID));
    let asked = ask(address, move || {
        let _ = settled.get();
        Some(vec![id.get()]).filter(|_| !id.with(String::is_empty))
    });
    let compared = Memo::new(move |_| asked.get().unwrap_or_default());
    let name = Memo::new(move |_| {
        compared
            .with(|compared| compared.rows.first().map_or_else(|| "Run".to_string(), |row| row.path.clone()))
    });
    name_page(move || name.get());
    let rows = Memo::new(move |_| {
        compared.with(|compared| compared.rows.iter().cloned().map(Arc::new).collect::<Vec<_>>())
    });
    let is_on_server = Memo::new(move |_| compared.with(|compared| !compared.on_server.is_empty()));
    let why = move || compared.with(|compared| compared.missing.first().map(|(_, why)| why.clone()));
    let deleted = RwSignal::new(String::new());
    let is_gone = move || deleted.with(|deleted| !deleted.is_empty() && *deleted == id.get());
    view! {
        <div class="results-page">
            <h1>{name}</h1>
            <AddressProblems address />
            <Show when=is_gone>
                <p class="notice" role="status">"The run and its log were deleted. " <A href="/results">"All results"</A></p>
            </Show>
            <RequestErrorNote trouble=Signal::derive(move || asked.trouble()) />
            <Show when=move || id.with(String::is_empty)>
                <p>"Choose a run on the " <A href="/results">"Results"</A> " page."</p>
            </Show>
            {move || why().map(|why| view! {
                <p class="notice wrong">{sentence(&why)} {desk.shared().is_none().then(|| view! { " " <A href="/results">"All results"</A> })}</p>
            })}
            <Show when=move || !is_gone() && rows.with(|rows| !rows.is_empty())>
                <Verdict compared has_log=is_on_server />
                <Figures rows compared />
                <ViewFields />
                <keep::KeepRecipe id compared />
                <Origin id compared is_on_server />
                <Takeout id is_on_server />
                <Show when=move || is_on_server.get()>
                    <Scores id />
                </Show>
                <Plots compared />
                <Settings compared />
                <Show when=move || is_on_server.get()>
                    <log::LogView id />
                    <Delete id deleted />
                </Show>
            </Show>
        </div>
    }
}

/// The run's id, time, log and history.
#[component]
fn Origin(id: Memo<String>, compared: Memo<Arc<Compared>>, is_on_server: Memo<bool>) -> impl IntoView {
    let desk = Desk::of_app();
    // Ids of campaign runs start with their time, so a shorter prefix could be ambiguous.
    let short = move || id.with(|id| id.get(..13).unwrap_or(id).to_string());
    view! {
        <p class="origin basis">
            <span>"Run " <code title=id>{short}</code></span>
            <CopyButton text=id label="Copy id" />
            {move || {
                let source = compared.with(|compared| compared.source.clone());
                let has_history = !source.recipe.is_empty() && is_on_server.get() && desk.shared().is_none();
                let history = format!("/history?{}", query(&Spec::default(), &[("recipe", source.recipe)]));
                view! {
                    {(!source.ran.is_empty()).then(|| view! { <span>{source.ran}</span> })}
                    <code>{source.path}</code>
                    {has_history.then(|| view! { <A href=history>"History of this recipe"</A> })}
                }
            }}
        </p>
    }
}

/// The button that deletes the run, for users with the scope admin.
#[component]
fn Delete(id: Memo<String>, deleted: RwSignal<String>) -> impl IntoView {
    let desk = Desk::of_app();
    let may = desk.may(Scope::Admin, || true);
    let failed = RwSignal::new(None::<RequestError>);
    let delete = move |_| {
        let id = id.get_untracked();
        desk.ask(Question::Delete { id: id.clone() }, move |answer| match answer {
            Ok(_) => deleted.set(id),
            Err(RequestError::NoNetwork) => {
                failed.set(Some(RequestError::Other("The server did not answer. Try again.".into())));
            }
            Err(trouble) => failed.set(Some(trouble)),
        });
    };
    view! {
        <Show when=move || may.get()>
            <details>
                <summary>"Delete this run"</summary>
                <div class="buttons">
                    <p>"This deletes the result and the raw log permanently. Links to the run stop working, and uploading the log again does not bring the run back."</p>
                    <button type="button" class="action danger" on:click=delete>"Delete permanently"</button>
                </div>
                <RequestErrorNote trouble=failed />
            </details>
        </Show>
    }
}

/// The run's numbers.
#[component]
fn Figures(rows: Memo<Vec<Arc<Row>>>, compared: Memo<Arc<Compared>>) -> impl IntoView {
    let figure = |(heading, cell): (PageHeading, PageCell)| {
        let PageCell { text, detail, .. } = cell;
        view! {
            <div class="figure" class:main=heading.is_main>
                <dt title=heading.hint>{heading.title}</dt>
                <dd>{text}</dd>
                {(!detail.is_empty()).then(|| view! { <dd class="more">{detail}</dd> })}
            </div>
        }
    };
    // The recipe goes beside the status: it is not a figure.
    let recipe = ComparisonColumn::Recipe.key();
    let figures = move |row: &Row| {
        let headings = ComparisonColumn::page_headings().into_iter().filter(|heading| heading.key != recipe);
        let known = headings.filter_map(|heading| {
            row.text(heading.key)?;
            Some((heading, row.cell(heading.key)?.clone()))
        });
        known.map(figure).collect_view()
    };
    let of = move |row: &Row| {
        row.cell(recipe).map(|cell| format!(" {} {}", cell.text, cell.detail)).unwrap_or_default()
    };
    move || {
        rows.get().first().map(|row| view! {
            <section class="answers" aria-label="Score" data-status=row.status.id()>
                <p><span class="status">{row.status.title()}</span>{of(row)}</p>
                <dl class="figures run-figures">{figures(row)}</dl>
                {row.remarks.iter().map(|remark| view! { <p class="notice">{remark.clone()}</p> }).collect_view()}
                {Some(compared.get().scored.clone()).filter(|told| !told.is_empty()).map(|told| view! { <p class="basis">{told}</p> })}
            </section>
        })
    }
}

/// The comparison, the files and the links of the run.
#[component]
fn Takeout(id: Memo<String>, is_on_server: Memo<bool>) -> impl IntoView {
    let (address, desk) = (Address::of_page(), Desk::of_app());
    let failed = RwSignal::new(String::new());
    let save_result = move |_| {
        desk.ask(Question::ResultFile { id: id.get_untracked() }, move |answer| {
            let saved = matches!(answer, Ok(Answer::File(file)) if as_file(&file.text, &file.name).is_ok());
            failed.set(if saved { String::new() } else { "Couldn't save the result.".into() });
        });
    };
    let to = Signal::derive(move || {
        format!("{}{}", window().location().origin().unwrap_or_default(), run_href(address, &id.get()))
    });
    let ids = Signal::derive(move || vec![id.get()]);
    let is_only_here = Signal::derive(move || !is_on_server.get());
    view! {
        <div class="buttons">
            <Show when=move || desk.shared().is_none()>
                <a class="action primary" href=move || compare_href(address, &[id.get()])>"Compare with…"</a>
            </Show>
            <button type="button" class="action" on:click=save_result>"Save result file"</button>
            <CopyButton text=to label="Copy link" disabled=is_only_here />
            <span class="error" role="status">{failed}</span>
        </div>
        <Show when=move || is_only_here.get()>
            <NoLink />
        </Show>
        <Show when=move || is_on_server.get() && desk.shared().is_none()>
            <ShareLinks ids to />
        </Show>
    }
}

/// The scores by each version of the parser, if the server has them.
#[component]
fn Scores(id: Memo<String>) -> impl IntoView {
    let scores = Desk::of_app().answer(
        move || Some(Question::Scores { id: id.get() }),
        |answer| if let Answer::Scores(table) = answer { Some(table) } else { None },
    );
    let table = Signal::derive(move || scores.get().map(|table| table.as_ref().clone()).unwrap_or_default());
    view! {
        <Show when=move || table.with(|table| !table.rows.is_empty())>
            <details>
                <summary>"Scoring history"</summary>
                <Numbers table />
            </details>
        </Show>
    }
}
