//! The headline of a comparison.

use crate::message::Compared;
use leptos::prelude::*;
use trainplan_shared::compare::BriefLabels;

/// Returns the brief labels of the runs of a comparison.
pub(crate) fn brief_labels(compared: &Compared) -> BriefLabels {
    BriefLabels::of(compared.rows.iter().map(|row| row.path.as_str()))
}

/// The headline, in which only the first mention of a run has its long label. Lines break between words, never inside of a run's name.
pub(crate) fn headline(compared: &Compared) -> AnyView {
    let text = brief_labels(compared).shorten_repeated(&compared.headline).replace("job ", "job\u{a0}");
    let words = text.split(' ').map(|word| view! { <span>{word.to_string()}</span> " " });
    words.collect_view().into_any()
}
