//! The colour and the shape of each GPU type. They belong to the type, not to its place in a list, so that a type looks the
//! same in cards, charts, tables and saved plans.

use leptos::prelude::*;

/// How a GPU type is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GpuMark {
    /// A colour with a contrast of at least 3:1 with light and dark backgrounds. Green is left to success, and red to errors.
    pub(crate) colour: &'static str,
    /// Plotly's name of the shape.
    pub(crate) symbol: &'static str,
    /// The same shape as a character.
    pub(crate) sign: &'static str,
}

const fn mark(colour: &'static str, symbol: &'static str, sign: &'static str) -> GpuMark {
    GpuMark { colour, symbol, sign }
}

/// The GPU types of the catalog with their marks. Types whose colours look alike to colour-blind people have different
/// shapes.
const MARKS: [(&str, GpuMark); 14] = [
    ("a100", mark("#64748b", "triangle-up", "▲")),
    ("a100-40gb", mark("#8a7f55", "triangle-right", "▶")),
    ("a800", mark("#a878cc", "star", "★")),
    ("h100", mark("#2f7de1", "circle", "●")),
    ("h100-500w", mark("#4a66d8", "triangle-left", "◀")),
    ("h800", mark("#8454a8", "pentagon", "⬟")),
    ("h200", mark("#0891a8", "square", "■")),
    ("gh200", mark("#9a7209", "triangle-down", "▼")),
    ("gh200-96gb", mark("#ae8838", "triangle-right", "▶")),
    ("b200", mark("#dd6b20", "diamond", "◆")),
    ("gb200", mark("#c0399f", "star", "★")),
    ("b300", mark("#8b5cf6", "square", "■")),
    ("gb300", mark("#87880a", "triangle-up", "▲")),
    ("vr200", mark("#c2557f", "hexagon", "⬢")),
];

/// The mark of a GPU type of a user's own.
const OWN: GpuMark = mark("#a8543c", "cross", "✚");

impl GpuMark {
    /// Returns the mark of the GPU type with an id.
    pub(crate) fn of(id: &str) -> GpuMark {
        MARKS.iter().find(|(known, _)| *known == id).map_or(OWN, |(_, mark)| *mark)
    }
}

/// The mark of a GPU type before its name.
#[component]
pub(crate) fn GpuSign(mark: GpuMark) -> impl IntoView {
    view! { <span class="gpu-sign" aria-hidden="true" style:color=mark.colour>{mark.sign}</span> }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use trainplan_shared::catalog::Catalog;

    #[test]
    fn every_gpu_type_has_a_colour_of_its_own() {
        let known: Vec<&str> = Catalog::embedded().gpus().iter().map(|gpu| gpu.id.as_str()).collect();
        assert_eq!(MARKS.map(|(id, _)| id).to_vec(), known);
        let colours: BTreeSet<&str> = MARKS.iter().map(|(_, mark)| mark.colour).chain([OWN.colour]).collect();
        assert_eq!(colours.len(), MARKS.len() + 1);
        assert_eq!(GpuMark::of("h100:hbm_gb=96"), OWN);
    }
}
