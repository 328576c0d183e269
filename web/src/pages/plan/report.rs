//! The printed report: what the page's question was, when and where it was answered.

use super::Planner;
use super::bar::summary;
use super::question::GoalKind;
use super::verdict::price_text;
use leptos::prelude::*;
use leptos::web_sys::js_sys::Date;
use trainplan_shared::field::Field;

/// A button that prints the answer on a page.
#[component]
pub(super) fn PrintButton() -> impl IntoView {
    // If the browser doesn't print, nothing happens.
    let print = move |_| {
        let _ = window().print();
    };
    view! { <button type="button" class="link" on:click=print>"Print a report"</button> }
}

/// What only the printed page shows above the answer.
#[component]
pub(super) fn ReportHead() -> impl IntoView {
    let planner = Planner::of_page();
    let question = move || planner.question.with(summary);
    let date = || String::from(Date::new_0().to_iso_string()).chars().take(10).collect::<String>();
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
            let shown = [Field::Model, Field::Tokens, Field::GpuTypes, Field::Price, Field::Purchase];
            let others = question
                .iter()
                .filter(|(field, _)| !shown.contains(field) && !GoalKind::FIELDS.contains(field));
            let others = others.map(|(field, text)| format!("{}: {text}", field.label()));
            others.collect::<Vec<_>>().join("; ")
        })
    };
    let link = move || {
        planner.address.spec();
        window().location().href().unwrap_or_default()
    };
    view! {
        <div class="printed">
            <p><strong>"Trainplan"</strong> " · " {date}</p>
            <p>"Question: " {question}</p>
            <p>"Prices: " {prices}</p>
            {move || Some(settings()).filter(|text| !text.is_empty()).map(|text| view! { <p>"Settings: " {text}</p> })}
            <p><small>{link}</small></p>
        </div>
    }
}
