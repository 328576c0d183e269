//! The derivation of numbers.

use leptos::prelude::*;
use trainplan_shared::explain::Line;
use trainplan_shared::units::{group_digits, significant};

/// A table of derivations, closed until someone opens it.
#[component]
pub(crate) fn Maths(
    /// The title of the table.
    title: &'static str,
    /// The lines.
    #[prop(into)]
    lines: Signal<Vec<Line>>,
) -> impl IntoView {
    view! {
        <details class="maths">
            <summary>{title}</summary>
            <div class="scroll" tabindex="0" role="region" aria-label=title>
                <table>
                    <thead>
                        <tr>
                            <th scope="col">"Part"</th>
                            <th scope="col" class="number">"Value"</th>
                            <th scope="col">"Formula"</th>
                            <th scope="col">"Numbers"</th>
                        </tr>
                    </thead>
                    <tbody>
                        {move || lines.get().into_iter().map(|line| view! {
                            <tr>
                                <th scope="row">
                                    {line.name.clone()}
                                    {(!line.note.is_empty()).then(|| view! {
                                        <small>{line.note.clone()}</small>
                                    })}
                                </th>
                                <td class="number">
                                    {value(&line)} " " <span class="unit">{line.unit}</span>
                                </td>
                                <td><code>{line.formula.clone()}</code></td>
                                <td><code>{line.numbers.clone()}</code></td>
                            </tr>
                        }).collect_view()}
                    </tbody>
                </table>
            </div>
        </details>
    }
}

/// Returns FLOPs as whole numbers, everything else with six significant digits.
fn value(line: &Line) -> String {
    if line.value >= 1e6 && line.value < 1e18 { group_digits(line.value) } else { significant(line.value, 6) }
}
