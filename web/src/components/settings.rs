//! The configuration and provenance of runs, differences first.

use crate::message::{Compared, Setting};
use leptos::prelude::*;
use std::sync::Arc;

/// The configuration and provenance of the runs of a comparison.
#[component]
pub(crate) fn Settings(
    /// The comparison.
    #[prop(into)]
    compared: Signal<Arc<Compared>>,
) -> impl IntoView {
    let of = move |differs: bool| {
        compared.with(|compared| {
            let settings = compared.settings.iter().filter(|setting| setting.differs == differs);
            settings.cloned().collect::<Vec<_>>()
        })
    };
    let names = move || {
        compared.with(|compared| compared.rows.iter().map(|row| row.path.clone()).collect::<Vec<_>>())
    };
    let is_alone = move || names().len() < 2;
    view! {
        <section class="scaling" aria-labelledby="settings">
            <h2 id="settings">
                {move || if is_alone() { "Configuration and provenance" } else { "Differences" }}
            </h2>
            {move || {
                let (differing, equal) = (of(true), of(false));
                let count = equal.len();
                match (is_alone(), differing.is_empty()) {
                    (true, _) => view! {
                        <SettingsTable caption="Settings of the run" names=names() settings=equal />
                    }.into_any(),
                    (false, nothing) => view! {
                        {nothing.then(|| view! { <p>"No known differences."</p> })}
                        {(!nothing).then(|| view! {
                            <SettingsTable caption="Different settings" names=names() settings=differing />
                        })}
                        <details>
                            <summary>{format!("Show {count} identical settings")}</summary>
                            <SettingsTable caption="Identical settings" names=names() settings=equal />
                        </details>
                    }.into_any(),
                }
            }}
        </section>
    }
}

#[component]
fn SettingsTable(caption: &'static str, names: Vec<String>, settings: Vec<Setting>) -> impl IntoView {
    let is_alone = names.len() < 2;
    let columns = (names.len() + 1).to_string();
    let row = |setting: &Setting| {
        let cell = |(value, name): (&String, &String)| {
            let short = start_of_hash(value).map(|start| format!("{start}…"));
            let whole = short.is_some().then(|| value.clone());
            let value =
                if value.is_empty() { "–".to_string() } else { short.unwrap_or_else(|| value.clone()) };
            view! { <td data-label=name.clone() title=whole>{value}</td> }
        };
        view! {
            <tr>
                <th scope="row">{setting.label.clone()}</th>
                {setting.values.iter().zip(&names).map(cell).collect_view()}
            </tr>
        }
    };
    // A heading for each group.
    let group = |settings: &[Setting]| {
        let title = settings.first().map(|setting| setting.group.clone());
        view! {
            <tbody>
                <tr><th scope="rowgroup" colspan=columns.clone() class="group">{title}</th></tr>
                {settings.iter().map(row).collect_view()}
            </tbody>
        }
    };
    let groups = settings.chunk_by(|one, other| one.group == other.group).map(group).collect_view();
    let head = names
        .into_iter()
        .map(|name| view! { <th scope="col">{if is_alone { "Value".to_string() } else { name }}</th> });
    view! {
        <div class="scroll tall" tabindex="0" role="region" aria-label=caption>
            <table class="settings" class:several=!is_alone>
                <caption class="visually-hidden">{caption}</caption>
                <thead><tr><th scope="col">"Setting"</th>{head.collect_view()}</tr></thead>
                {groups}
            </table>
        </div>
    }
}

/// Returns the first digits of a SHA-256 hash, which are enough to distinguish hashes; none for other values.
fn start_of_hash(value: &str) -> Option<&str> {
    let is_hash = value.len() == 64 && value.bytes().all(|digit| digit.is_ascii_hexdigit());
    value.get(..12).filter(|_| is_hash)
}
