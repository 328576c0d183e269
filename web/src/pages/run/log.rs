//! The log of a run, a page of lines at a time. A log is untrusted text, and is shown as text only.

use super::{FIND, FROM};
use crate::address::Address;
use crate::components::copy::{CopyButton, save_address};
use crate::components::trouble::RequestErrorNote;
use crate::desk::Desk;
use crate::message::{Answer, LINES, Question, RequestError};
use leptos::ev::{MouseEvent, SubmitEvent, popstate};
use leptos::html::Input;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsValue;
use leptos_router::components::A;
use leptos_router::hooks::use_location;
use trainplan_shared::api::{self, LogFault, LogLines};
use trainplan_shared::units::group_digits;

/// The lines of the log, with search. `#L120` in the address selects a line, `#L120-L124` a range.
#[component]
pub(super) fn LogView(id: Memo<String>) -> impl IntoView {
    let (address, desk, marks) = (Address::of_page(), Desk::of_app(), Marks::of_page());
    let find = Memo::new(move |_| address.own(FIND));
    let from = Memo::new(move |_| {
        let from = address.own(FROM).parse().unwrap_or(1).max(1);
        // Search results may not contain the selected lines.
        let marked = marks.lines.get().filter(|_| find.with(String::is_empty));
        piece(from, marked)
    });
    let lines = desk.answer(
        move || Some(Question::Lines { id: id.get(), from: from.get(), find: find.get() }),
        |answer| if let Answer::Lines(lines) = answer { Some(lines) } else { None },
    );
    // The server may notice a fault only when it reads the log.
    let fault = desk.answer(
        move || {
            let _ = lines.trouble();
            Some(Question::LogFault { id: id.get() })
        },
        |answer| if let Answer::LogFault(fault) = answer { Some(fault) } else { None },
    );
    let fault = Memo::new(move |_| fault.get().and_then(|fault| *fault));
    // Scroll to the selected line once it is loaded.
    Effect::new(move |_| {
        let there = lines.get().is_some();
        let line = marks.goal.get().and_then(|line| document().get_element_by_id(&format!("L{line}")));
        if let (true, Some(line)) = (there, line) {
            line.scroll_into_view();
        }
    });
    let shown = move || lines.get().map(|lines| lines.lines.clone()).unwrap_or_default();
    let status = move || match lines.get() {
        Some(answer) if !lines.is_open() => in_words(&answer, from.get(), &find.get()),
        _ => "Loading the log.".to_string(),
    };
    let go = move |from: u64| {
        address.turn_to_own(&[(FROM, if from > 1 { from.to_string() } else { String::new() })]);
    };
    // From the search results to the lines around the selection.
    let whole = move |_| {
        let marked = marks.lines.get_untracked();
        address.turn_to_own(&[(FIND, String::new()), (FROM, String::new())]);
        if let Some(marked) = marked {
            marks.set(marked);
        }
    };
    let next = move || lines.get().and_then(|lines| lines.next);
    let failed = RwSignal::new(None::<RequestError>);
    let save = move |_| {
        let id = id.get_untracked();
        desk.ask(Question::LogFile { id: id.clone() }, move |answer| {
            let saved = answer.and_then(|answer| match answer {
                Answer::Address(address) => save_address(&address, &format!("{id}.log"))
                    .map_err(|_| RequestError::Other("The browser couldn't save the log.".into())),
                _ => Err(RequestError::NoServer),
            });
            failed.set(saved.err());
        });
    };
    let href = Signal::derive(move || {
        marks.lines.track();
        window().location().href().unwrap_or_default()
    });
    view! {
        <section class="scaling log" aria-labelledby="log">
            <h2 id="log">"Log"</h2>
            {move || match fault.get() {
                Some(fault) => view! { <FaultNote fault /> }.into_any(),
                None => {
                    let trouble = Signal::derive(move || lines.trouble());
                    view! { <RequestErrorNote trouble alone="The server has no log of this run." /> }.into_any()
                }
            }}
            <Show when=move || lines.get().is_some() && fault.get().is_none()>
                <Search />
                <p class="basis" role="status">{status}</p>
                <div class="scroll tall" tabindex="0" role="region" aria-label="Lines of the log" class:stale=move || lines.is_open()>
                    <ol class="lines">
                        <For each=shown key=|line| (line.number, line.text.clone()) let(line)>
                            <LogLine line marks />
                        </For>
                    </ol>
                </div>
                <div class="buttons">
                    <Show when=move || { from.get() > 1 }>
                        <button type="button" class="action" on:click=move |_| go(1)>"First lines"</button>
                    </Show>
                    <Show when=move || { from.get() > 1 && find.with(String::is_empty) }>
                        <button type="button" class="action" on:click=move |_| go(from.get_untracked().saturating_sub(LINES))>"Previous lines"</button>
                    </Show>
                    {move || next().map(|next| view! {
                        <button type="button" class="action" on:click=move |_| go(next)>"Next lines"</button>
                    })}
                    <Show when=move || marks.lines.get().is_some()>
                        <Show when=move || !find.with(String::is_empty)>
                            <button type="button" class="action" on:click=whole>"Show in context"</button>
                        </Show>
                        <CopyButton text=href label="Copy link to selection" />
                    </Show>
                    <button type="button" class="action" on:click=save>"Save log"</button>
                </div>
                <RequestErrorNote trouble=failed />
            </Show>
        </section>
    }
}

/// Says what is wrong with the server's copy of the log.
#[component]
fn FaultNote(fault: LogFault) -> impl IntoView {
    let what = match fault {
        LogFault::Missing => "The server lost its copy of this log",
        LogFault::Damaged => "The server's copy of this log is damaged",
    };
    view! {
        <p class="notice wrong" role="status">{what} "; " <A href="/results">"upload the log again"</A> " to replace it."</p>
    }
}

/// The selected lines of the log.
#[derive(Clone, Copy)]
struct Marks {
    /// The first line and the last, if any.
    lines: RwSignal<Option<(u64, u64)>>,
    /// The line to scroll to; none after a click, because that line is in view.
    goal: RwSignal<Option<u64>>,
}

impl Marks {
    fn of_page() -> Marks {
        let marks = Marks { lines: RwSignal::new(None), goal: RwSignal::new(None) };
        marks.read();
        // The address changes by navigation within the page, by the back button or by typing.
        let search = use_location().search;
        Effect::new(move |_| {
            search.track();
            marks.read();
        });
        let listener = window_event_listener(popstate, move |_| marks.read());
        on_cleanup(move || listener.remove());
        marks
    }

    fn read(self) {
        let lines = named(&window().location().hash().unwrap_or_default());
        self.goal.set(lines.map(|(first, _)| first));
        self.lines.set(lines);
    }

    /// Selects lines, also in the address, without a new history entry.
    fn set(self, lines: (u64, u64)) {
        let hash = match lines {
            (first, last) if first == last => format!("#L{first}"),
            (first, last) => format!("#L{first}-L{last}"),
        };
        let location = window().location();
        let path = location.pathname().unwrap_or_default() + &location.search().unwrap_or_default() + &hash;
        if let Ok(history) = window().history() {
            let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&path));
        }
        self.goal.set(None);
        self.lines.set(Some(lines));
    }
}

/// Returns the lines of an address's hash: `#L120`, `#L120-L124`.
fn named(hash: &str) -> Option<(u64, u64)> {
    let (first, last) =
        hash.strip_prefix("#L").map(|lines| lines.split_once("-L").unwrap_or((lines, lines)))?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some((first.min(last), first.max(last)))
}

/// Returns the first line to show: the address's, unless the selection starts on another page.
fn piece(from: u64, marked: Option<(u64, u64)>) -> u64 {
    match marked {
        Some((line, _)) if !(from..from.saturating_add(LINES)).contains(&line) => {
            line.saturating_sub(1) / LINES * LINES + 1
        }
        _ => from,
    }
}

/// Returns which lines are shown, in words.
fn in_words(LogLines { lines, next, total }: &LogLines, from: u64, find: &str) -> String {
    let number = |number: u64| group_digits(number as f64);
    if find.is_empty() {
        let total = total.map_or(String::new(), |total| format!(" of {}", number(total)));
        return match (lines.first(), lines.last()) {
            (Some(first), Some(last)) => {
                format!("Lines {} to {}{total}", number(first.number), number(last.number))
            }
            _ => format!("The log has no line {}.", number(from)),
        };
    }
    let count = match lines.len() {
        0 => "No line contains".to_string(),
        1 => "1 line contains".to_string(),
        count => format!("{count} lines contain"),
    };
    let part = match next {
        Some(next) => format!(" in lines {} to {}", number(from), number(next - 1)),
        None if from > 1 => format!(" from line {} on", number(from)),
        None => String::new(),
    };
    format!("{count} \"{find}\"{part}")
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
fn LogLine(line: api::LogLine, marks: Marks) -> impl IntoView {
    let number = line.number;
    // The log itself may contain an ellipsis; only the page's own one has a title.
    let cut = line.is_cut.then_some("Line cut after 4,096 bytes. Save the log for all of it.");
    let text = line.text + if line.is_cut { " …" } else { "" };
    let id = format!("L{number}");
    let current = move || {
        marks.lines.get().is_some_and(|(first, last)| (first..=last).contains(&number)).then_some("true")
    };
    let mark = move |event: MouseEvent| {
        // With these keys the browser opens a new tab.
        if event.ctrl_key() || event.meta_key() {
            return;
        }
        event.prevent_default();
        let first =
            marks.lines.get_untracked().filter(|_| event.shift_key()).map_or(number, |(first, _)| first);
        marks.set((first.min(number), first.max(number)));
    };
    // Otherwise shift selects the text in between.
    let press = |event: MouseEvent| {
        if event.shift_key() {
            event.prevent_default();
        }
    };
    view! {
        <li id=id.clone()>
            <a href=format!("#{id}") aria-label=format!("Line {number}") rel="external" aria-current=current on:mousedown=press on:click=mark>
                {number}
            </a>
            <code title=cut>{text}</code>
        </li>
    }
}
