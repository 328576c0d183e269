//! How far a plan can be trusted.

use crate::message::search::Trust;
use leptos::prelude::*;

/// How far the plan can be trusted, where no heading says that this is about confidence.
#[component]
pub(super) fn TrustMark(trust: Trust) -> impl IntoView {
    let TrustText { class, word, why } = trust_text(trust);
    view! { <span class=format!("trust {class}") title=why>{word} " confidence"</span> }
}

/// How a page shows confidence.
pub(super) struct TrustText {
    /// The class of its colour.
    pub(super) class: &'static str,
    /// High, medium, low or lowest.
    pub(super) word: &'static str,
    /// What it rests on, in a sentence.
    pub(super) why: &'static str,
}

/// Returns how a page shows confidence.
pub(super) fn trust_text(trust: Trust) -> TrustText {
    let (class, word, why) = match trust {
        Trust::Measured => ("measured", "High", "This layout was measured with this software."),
        Trust::Near => {
            ("near", "Medium", "The model was measured on this GPU with this software, in similar layouts.")
        }
        Trust::Modelled => {
            ("modelled", "Low", "This model was measured only on other GPUs or with other layouts.")
        }
        Trust::Unmeasured => (
            "modelled",
            "Lowest",
            "No run of this model was measured: the estimate rests on physics and on other models.",
        ),
    };
    TrustText { class, word, why }
}
