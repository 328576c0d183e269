//! The regressions that nobody acknowledged, at the top of the page.

use crate::address::Address;
use crate::components::run_table::{history_href, run_href};
use crate::message::TimeLine;
use leptos::prelude::*;
use leptos_router::components::A;
use std::sync::Arc;

/// The open regressions among the time lines, each with links to its line, where it can be acknowledged, and to its run; nothing
/// without one.
#[component]
pub(super) fn OpenRegressions(lines: Memo<Arc<Vec<TimeLine>>>) -> impl IntoView {
    let address = Address::of_page();
    move || {
        lines.with(|lines| {
            let open: Vec<_> =
                lines.iter().filter(|line| line.is_open()).map(|line| told(address, line)).collect();
            let heading = match open.len() {
                0 => return None,
                1 => "1 open regression".to_string(),
                count => format!("{count} open regressions"),
            };
            Some(view! {
                <section class="notice wrong" aria-label="Open regressions">
                    <p><strong>{heading}</strong></p>
                    <ul class="plain">{open}</ul>
                </section>
            })
        })
    }
}

/// By how much which run is slower.
fn told(address: Address, line: &TimeLine) -> impl IntoView + use<> {
    let text = format!(": {} ", line.slower.as_deref().unwrap_or_default());
    let run = line.slow_run.as_ref().map(|id| {
        let run = line.points.iter().find(|point| point.id == *id).map(|point| point.run.clone());
        view! { <A href=run_href(address, id)>"Run " {run}</A> }
    });
    let title = line.title.clone();
    view! { <li><p><A href=history_href(line)>{title}</A> {text} {run}</p></li> }
}
