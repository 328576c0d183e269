//! The printed report: what the page's question was, when and where it was answered.

use super::Planner;
use super::amounts::price_text;
use super::bar::summary;
use super::findings::Findings;
use super::question::{GoalKind, is_in_bar};
use crate::deadline::today;
use leptos::prelude::*;
use std::time::Duration;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::question::Chance;

/// How long the details and the chart take to follow a new answer.
const REST: Duration = Duration::from_millis(600);

/// Prints the report that the user asked for, once the search is done.
pub(super) fn print_when_answered(planner: Planner) {
    Effect::new(move |was_waiting: Option<bool>| {
        let wants_print = planner.wants_print.get();
        let is_waiting = wants_print && planner.search.findings.with(Findings::is_searching);
        if wants_print && !is_waiting {
            planner.wants_print.set(false);
            // If the browser doesn't print, nothing happens.
            let print = || drop(window().print());
            set_timeout(print, if was_waiting == Some(true) { REST } else { Duration::ZERO });
        }
        is_waiting
    });
}

/// A button that prints the answer on a page.
#[component]
pub(super) fn PrintButton() -> impl IntoView {
    let wants_print = Planner::of_page().wants_print;
    view! {
        <button type="button" class="link" id="print-report" on:click=move |_| wants_print.set(true)>
            {move || if wants_print.get() { "Printing starts after the search …" } else { "Print a report" }}
        </button>
    }
}

/// What only the printed page shows above the answer.
#[component]
pub(super) fn ReportHead() -> impl IntoView {
    let planner = Planner::of_page();
    // The bar has a field for the chance, which is therefore not in its summary.
    let question = move || {
        planner.question.with(|question| {
            let is_usual = question.get(Field::Chance).is_none();
            let often = match is_usual && GoalKind::of(question) != GoalKind::Gpus {
                true => format!(", {}", Chance::USUAL.title()),
                false => String::new(),
            };
            format!("{}{often}", summary(question))
        })
    };
    let prices = move || {
        planner.search.findings.with(|findings| {
            let currency = findings.asked.as_ref().map_or("", |asked| asked.currency.as_str());
            let prices = findings.offers.iter().filter_map(|offer| {
                let price = price_text(&offer.gpu, currency)?;
                Some(format!("{} {price}", offer.gpu.name))
            });
            prices.collect::<Vec<_>>().join("; ")
        })
    };
    // What the line of the question leaves out.
    let settings = move || {
        planner.question.with(|question| {
            let others = question.iter().filter(|(field, _)| !is_in_bar(*field));
            let others = others.map(|(field, text)| format!("{}: {text}", field.label()));
            others.collect::<Vec<_>>().join("; ")
        })
    };
    // An address without a question would ask another one when the first question of the page changes.
    let link = move || {
        let is_bare = planner.address.spec().iter().next().is_none();
        let location = window().location();
        match (is_bare, location.origin()) {
            (true, Ok(origin)) => format!("{origin}/?{}", planner.question.with(link::write)),
            _ => location.href().unwrap_or_default(),
        }
    };
    // The browser's own command prints at once.
    let unfinished = move || {
        planner.search.findings.with(|findings| match (findings.is_behind, findings.is_searching()) {
            (true, true) => "The search was still running. These figures answer the previous question.",
            (true, false) => "The question has a problem. These figures answer the previous question.",
            (false, true) => "The search was still running.",
            (false, false) => "",
        })
    };
    view! {
        <div class="printed">
            <p><strong>"Trainplan"</strong> " · " {today()}</p>
            <p><strong>{unfinished}</strong></p>
            <p>"Question: " {question}</p>
            <p>"Prices: " {prices}</p>
            {move || Some(settings()).filter(|text| !text.is_empty()).map(|text| view! { <p>"Settings: " {text}</p> })}
            <p><small>{link}</small></p>
        </div>
    }
}
