//! Tables of numbers, such as the data of a chart.

pub(crate) use crate::message::Table;
use leptos::prelude::*;

/// A table of numbers that scrolls if it is too wide.
#[component]
pub(crate) fn Numbers(
    /// The table's contents.
    #[prop(into)]
    table: Signal<Table>,
    /// Whether the first column contains numbers.
    #[prop(optional)]
    by_number: bool,
    /// Whether it scrolls vertically.
    #[prop(optional)]
    tall: bool,
) -> impl IntoView {
    let caption = move || table.with(|table| table.caption.clone());
    let cells = move |cells: &[String], scope: &'static str| {
        let cells = cells.iter().enumerate().map(|(index, cell)| {
            let number = index > 0 || by_number;
            match index == 0 || scope == "col" {
                true => view! { <th scope=scope class:number=number>{cell.clone()}</th> }.into_any(),
                false => view! { <td class="number">{cell.clone()}</td> }.into_any(),
            }
        });
        view! { <tr>{cells.collect_view()}</tr> }
    };
    view! {
        <div class="scroll" class:tall=tall tabindex="0" role="region" aria-label=caption>
            <table class="numbers">
                <caption>{caption}</caption>
                <thead>{move || table.with(|table| cells(&table.head, "col"))}</thead>
                <tbody>
                    {move || table.with(|table| {
                        table.rows.iter().map(|row| cells(row, "row")).collect_view()
                    })}
                </tbody>
            </table>
        </div>
    }
}
