//! The notice of a plan that was chosen above the fold and is shown below it.

use super::Plan;
use crate::components::passing_note::PassingNote;
use crate::pages::plan::question::has_scenario;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::HtmlElement;
use trainplan_shared::field::Field;
use trainplan_shared::units::group_digits;

/// The id of the heading of the shown plan.
pub(super) const HEADLINE_ID: &str = "headline";

/// Says that another plan is shown, with a button that leads to it, if it is outside of the window.
#[component]
pub(super) fn ChosenNotice() -> impl IntoView {
    let plan = Plan::of_page();
    let notice = RwSignal::new(None::<String>);
    let chosen = Memo::new(move |_| {
        let is_of_plan = |(field, _): &(Field, &str)| field.is_of_scenario();
        plan.address.with_spec(|spec| {
            spec.iter().filter(is_of_plan).map(|(field, text)| (field, text.to_string())).collect::<Vec<_>>()
        })
    });
    Effect::new(move |before: Option<Vec<(Field, String)>>| {
        let now = chosen.get();
        let is_new =
            before.is_some_and(|before| before != now) && plan.address.with_spec_untracked(has_scenario);
        let text = plan.scenario.with_untracked(|scenario| {
            let scenario = scenario.as_ref().ok().filter(|_| is_new && is_out_of_sight())?;
            let gpus = group_digits(scenario.layout.gpus().into());
            Some(format!(
                "The plan on {gpus} × {} in {} is shown below.",
                scenario.gpu.name,
                scenario.dtype.title()
            ))
        });
        notice.set(text);
        now
    });
    let go = Callback::new(|()| {
        let headline = document().get_element_by_id(HEADLINE_ID);
        if let Some(headline) = headline.and_then(|headline| headline.dyn_into::<HtmlElement>().ok()) {
            headline.scroll_into_view();
            // It fails only for what has no focus.
            let _ = headline.focus();
        }
    });
    view! { <PassingNote text=notice title="See it" act=go /> }
}

/// Whether the head of the shown plan is outside of the window.
fn is_out_of_sight() -> bool {
    /// The height of the head that must be visible, in CSS pixels.
    const HEAD: f64 = 120.0;
    // Not the element that the details are drawn in, which has no box where they are beside the chart.
    let Some(shown) = document().query_selector(".shown").ok().flatten() else { return false };
    let place = shown.get_bounding_client_rect();
    let height = window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or_default();
    place.top() + HEAD > height || place.bottom() < HEAD
}
