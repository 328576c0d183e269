//! The notice of a plan that was chosen above the fold and is shown below it.

use super::Plan;
use crate::pages::plan::handover::details_element;
use crate::pages::plan::question::has_scenario;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::HtmlElement;
use std::time::Duration;
use trainplan_shared::field::Field;
use trainplan_shared::units::group_digits;

/// How long the notice stays.
const STAYS: Duration = Duration::from_secs(8);

/// The id of the heading of the shown plan.
pub(super) const HEADLINE_ID: &str = "headline";

/// Says that another plan is shown, with a button that leads to it, if it is outside of the window.
#[component]
pub(super) fn ChosenNotice() -> impl IntoView {
    let plan = Plan::of_page();
    let notice = RwSignal::new(None::<String>);
    let until = StoredValue::new(None::<TimeoutHandle>);
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
            Some(format!("{gpus} × {}, {} is shown below.", scenario.gpu.name, scenario.dtype.title()))
        });
        if text.is_some() {
            let hide = move || drop(notice.try_set(None));
            let timer = set_timeout_with_handle(hide, STAYS).ok();
            if let Some(earlier) = until.try_update_value(|until| std::mem::replace(until, timer)).flatten() {
                earlier.clear();
            }
        }
        notice.set(text);
        now
    });
    let go = move |_| {
        notice.set(None);
        let headline = document().get_element_by_id(HEADLINE_ID);
        if let Some(headline) = headline.and_then(|headline| headline.dyn_into::<HtmlElement>().ok()) {
            headline.scroll_into_view();
            // It fails only for what has no focus.
            let _ = headline.focus();
        }
    };
    view! {
        <div class="chosen" role="status">
            {move || notice.get().map(|text| view! {
                <p>{text} " " <button type="button" class="link" on:click=go>"See it"</button></p>
            })}
        </div>
    }
}

/// Whether the head of the shown plan is outside of the window.
fn is_out_of_sight() -> bool {
    /// The height of the head that must be visible, in CSS pixels.
    const HEAD: f64 = 120.0;
    let Some(place) = details_element().map(|details| details.get_bounding_client_rect()) else {
        return false;
    };
    let height = window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or_default();
    place.top() + HEAD > height || place.bottom() < HEAD
}
