//! The log of a run, a page of lines at a time. It is text that a cluster wrote, and is shown as text.

use super::{FIND, FROM};
use crate::address::Address;
use crate::components::copy::save_address;
use crate::components::trouble::TroubleNote;
use crate::desk::Desk;
use crate::message::{Answer, Line, Question, Trouble};
use leptos::ev::SubmitEvent;
use leptos::html::Input;
use leptos::prelude::*;
use trainplan_shared::units::group_digits;

/// As many lines as a page has, as the worker asks for them.
pub(crate) const LINES: u64 = 500;

/// Lines of the log, with search. `#L120` in the address leads to a line.
#[component]
pub(super) fn LogView(id: Memo<String>) -> impl IntoView {
    let (address, desk) = (Address::of_page(), Desk::of_app());
    let find = Memo::new(move |_| address.own(FIND));
    let from = Memo::new(move |_| first(address, &find.get()));
    let lines = desk.answer(
        move || Some(Question::Lines { id: id.get(), from: from.get(), find: find.get() }),
        |answer| if let Answer::Lines(lines) = answer { Some(lines) } else { None },
    );
    // Where the lines are, once they are there.
    Effect::new(move |_| {
        let there = lines.get().is_some();
        let hash = window().location().hash().unwrap_or_default();
        if let (true, Some(line)) =
            (there, hash.strip_prefix('#').and_then(|id| document().get_element_by_id(id)))
        {
            line.scroll_into_view();
        }
    });
    let shown = move || lines.get().map(|lines| lines.lines.clone()).unwrap_or_default();
    let place = move || {
        let lines = lines.get()?;
        let (first, last) = (lines.lines.first()?.number as f64, lines.lines.last()?.number as f64);
        let total = lines.total.map_or(String::new(), |total| format!(" of {}", group_digits(total as f64)));
        Some(format!("Lines {} to {}{total}", group_digits(first), group_digits(last)))
    };
    let go = move |from: u64| {
        address.turn_to_own(&[(FROM, if from > 1 { from.to_string() } else { String::new() })]);
    };
    let next = move || lines.get().and_then(|lines| lines.next);
    let failed = RwSignal::new(None::<Trouble>);
    let save = move |_| {
        let id = id.get_untracked();
        desk.ask(Question::LogFile { id: id.clone() }, move |answer| {
            let saved = answer.and_then(|answer| match answer {
                Answer::Address(address) => save_address(&address, &format!("{id}.log"))
                    .map_err(|_| Trouble::Other("the browser could not save it".into())),
                _ => Err(Trouble::NoServer),
            });
            failed.set(saved.err());
        });
    };
    view! {
        <section class="scaling log" aria-labelledby="log">
            <h2 id="log">"Log"</h2>
            <TroubleNote trouble=Signal::derive(move || lines.trouble()) alone="The server has no log of this run." />
            <Show when=move || lines.get().is_some()>
                <Search />
                <p class="basis" role="status">
                    {move || place().unwrap_or_else(|| "No line has this text.".into())}
                </p>
                <div class="scroll tall" tabindex="0" role="region" aria-label="Lines of the log" class:stale=move || lines.is_open()>
                    <ol class="lines">
                        <For each=shown key=|line| (line.number, line.text.clone()) let(line)>
                            <LogLine line />
                        </For>
                    </ol>
                </div>
                <div class="buttons">
                    <Show when=move || { from.get() > 1 }>
                        <button type="button" class="action" on:click=move |_| go(1)>"First lines"</button>
                    </Show>
                    <Show when=move || { from.get() > 1 && find.with(String::is_empty) }>
                        <button type="button" class="action" on:click=move |_| go(from.get_untracked().saturating_sub(LINES))>"Lines before"</button>
                    </Show>
                    {move || next().map(|next| view! {
                        <button type="button" class="action" on:click=move |_| go(next)>"Next lines"</button>
                    })}
                    <button type="button" class="action" on:click=save>"Save the whole log"</button>
                </div>
                <TroubleNote trouble=failed />
            </Show>
        </section>
    }
}

/// The first line to show: as the address has it, or so that the line that it names stands in the page.
fn first(address: Address, find: &str) -> u64 {
    let hash = window().location().hash().unwrap_or_default();
    let named = hash.strip_prefix("#L").and_then(|line| line.parse::<u64>().ok()).filter(|_| find.is_empty());
    let typed = address.own(FROM).parse().ok();
    typed.or(named.map(|line| (line.saturating_sub(1) / LINES) * LINES + 1)).unwrap_or(1).max(1)
}

#[component]
fn Search() -> impl IntoView {
    let address = Address::of_page();
    let input = NodeRef::<Input>::new();
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if let Some(input) = input.get_untracked() {
            address.turn_to_own(&[(FIND, input.value()), (FROM, String::new())]);
        }
    };
    view! {
        <form role="search" class="buttons" on:submit=submit>
            <label class="visually-hidden" for="find">"Find in the log"</label>
            <input id="find" type="search" autocomplete="off" spellcheck="false" placeholder="Find in the log" node_ref=input prop:value=move || address.own(FIND) />
            <button type="submit" class="action">"Find"</button>
        </form>
    }
}

#[component]
fn LogLine(line: Line) -> impl IntoView {
    let id = format!("L{}", line.number);
    view! {
        <li id=id.clone()>
            <a href=format!("#{id}") aria-label=format!("Line {}", line.number) rel="external">{line.number}</a>
            <code>{line.text}</code>
        </li>
    }
}
