//! The regressions among the newest runs on the server.

use crate::components::run_table::history_href;
use crate::desk::Desk;
use crate::message::{Answer, Question, TimeLine};
use leptos::prelude::*;

/// The number of regressions that are shown at first.
const OPEN: usize = 3;

/// A line for each time line with an open regression; nothing without one.
#[component]
pub(super) fn Regressions() -> impl IntoView {
    let desk = Desk::of_app();
    let lines = desk.answer(
        move || {
            desk.track_runs();
            (desk.has_server() == Some(true)).then_some(Question::Regressions)
        },
        |answer| if let Answer::History(lines) = answer { Some(lines) } else { None },
    );
    let lines = Memo::new(move |_| lines.get().unwrap_or_default());
    move || {
        let lines = lines.get();
        let (first, more) = lines.split_at(lines.len().min(OPEN));
        let more = (!more.is_empty()).then(|| {
            view! {
                <details>
                    <summary>{format!("{} more", more.len())}</summary>
                    {more.iter().map(regression).collect_view()}
                </details>
            }
        });
        (!first.is_empty()).then(|| {
            view! {
                <section class="notice wrong" aria-label="Regressions">
                    {first.iter().map(regression).collect_view()}
                    {more}
                </section>
            }
        })
    }
}

/// A regression with how much slower the run is.
fn regression(line: &TimeLine) -> impl IntoView + use<> {
    view! {
        <p>
            "Regression of "
            <a href=history_href(line)>{line.title.clone()}</a>
            ". " {line.slower.clone()}
        </p>
    }
}
