//! How far a plan can be trusted, in a word.

use crate::message::search::Trust;
use leptos::prelude::*;

/// How far the plan can be trusted.
#[component]
pub(super) fn TrustMark(trust: Trust) -> impl IntoView {
    let (class, text, title) = trust_text(trust);
    view! { <span class=format!("trust {class}") title=title>{text}</span> }
}

/// Returns a class, a word and an explanation.
pub(super) fn trust_text(trust: Trust) -> (&'static str, &'static str, &'static str) {
    match trust {
        Trust::Measured => ("measured", "Measured", "High confidence: this layout was measured."),
        Trust::Near => {
            ("near", "Near", "Medium confidence: the model was measured on this GPU in similar layouts.")
        }
        Trust::Modelled => (
            "modelled",
            "Modelled",
            "Low confidence: nothing like this was measured. The physical model predicts it.",
        ),
    }
}
