//! The deadline as a rule over the chart, which is moved with the pointer or the arrow keys.

use super::Planner;
use super::amounts::limit_text;
use crate::components::chart::{ChartFrame, log10};
use leptos::ev::{Event, KeyboardEvent, PointerEvent};
use leptos::html::{Div, Span};
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::wasm_bindgen::closure::Closure;
use leptos::web_sys::HtmlElement;
use trainplan_shared::field::Field;
use trainplan_shared::units::significant;

/// The step of Page Up and Page Down, in days.
const LARGE_STEP: f64 = 10.0;

/// Returns a deadline that people write: whole days from 10 on, otherwise tenths.
fn rounded(days: f64) -> f64 {
    if days >= 10.0 { days.round() } else { (days * 10.0).round().max(1.0) / 10.0 }
}

/// Half the height of the label, with a margin, in CSS pixels.
const HALF_LABEL: f64 = 16.0;

/// Returns the pixels from the top of the axes to a number of days; the axis is logarithmic. The label stays inside of the axes,
/// so that it never covers their ticks.
fn place(frame: ChartFrame, days: f64) -> f64 {
    exact_place(frame, days).clamp(HALF_LABEL, frame.height - HALF_LABEL)
}

fn exact_place(frame: ChartFrame, days: f64) -> f64 {
    let (bottom, top) = frame.y;
    (top - log10(days)) / (top - bottom) * frame.height
}

/// Returns the sign after the days: where the deadline is, or that it can be moved.
fn sign(frame: ChartFrame, days: f64) -> &'static str {
    match exact_place(frame, days) {
        place if place < 0.0 => "↑",
        place if place > frame.height => "↓",
        _ => "↕",
    }
}

/// Returns the days at pixels from the top of the axes.
fn days_at(frame: ChartFrame, pixels: f64) -> f64 {
    let (bottom, top) = frame.y;
    rounded(power_of_ten(top - (pixels / frame.height).clamp(0.0, 1.0) * (top - bottom)))
}

fn power_of_ten(exponent: f64) -> f64 {
    libm::exp(exponent * std::f64::consts::LN_10)
}

/// The rule. Releasing it asks for the new deadline.
#[component]
pub(super) fn DeadlineRule(
    /// The deadline of the question; none if the chart doesn't show it.
    deadline: Memo<Option<f64>>,
    /// Where the axes are.
    frame: RwSignal<Option<ChartFrame>>,
) -> impl IntoView {
    let plan = Planner::of_page();
    // The place of the rule until the new question is answered.
    let moved = RwSignal::new(None::<f64>);
    let is_held = RwSignal::new(false);
    let is_behind = Memo::new(move |_| plan.search.findings.with(|findings| findings.is_behind));
    Effect::new(move |before: Option<Option<f64>>| {
        let now = deadline.get();
        let is_over = before.is_some_and(|before| before != now) || !is_behind.get();
        if is_over && !is_held.get_untracked() {
            moved.set(None);
        }
        now
    });
    let days = move || moved.get().or(deadline.get()).unwrap_or_default();
    let rule = NodeRef::<Div>::new();
    let label = NodeRef::<Span>::new();
    // Written by one effect, and read by one listener: an attribute and a listener each in the view would make the program
    // several kilobytes larger.
    Effect::new(move |_| {
        let (Some(rule), Some(label)) = (rule.get(), label.get()) else { return };
        let (is_shown, frame) = (deadline.get().is_some(), frame.get());
        rule.set_hidden(!is_shown || frame.is_none());
        let (Some(frame), true) = (frame, is_shown) else { return };
        let text = limit_text(days());
        let end = |exponent: f64| format!("{:.0}", power_of_ten(exponent));
        for (name, value) in [
            ("aria-valuemin", end(frame.y.0)),
            ("aria-valuemax", end(frame.y.1)),
            ("aria-valuenow", significant(days(), 4)),
            ("aria-valuetext", text.clone()),
            ("class", if is_held.get() { "deadline-rule held" } else { "deadline-rule" }.to_string()),
        ] {
            // The names are valid.
            let _ = rule.set_attribute(name, &value);
        }
        let Some(above) = rule.parent_element() else { return };
        let (width, height) = (f64::from(above.client_width()), f64::from(above.client_height()));
        let top = frame.top + place(frame, days());
        // Shares of the chart, which is of another size in print.
        for (name, share) in
            [("top", top / height), ("left", frame.left / width), ("width", frame.width / width)]
        {
            let _ = HtmlElement::style(&rule).set_property(name, &format!("{:.2}%", share * 100.0));
        }
        label.set_text_content(Some(&text));
        // Shown by the style, which leaves it out in print.
        let _ = label.set_attribute("data-sign", sign(frame, days()));
    });
    let release = move || {
        if !is_held.get_untracked() {
            return;
        }
        is_held.set(false);
        match moved.get_untracked() {
            Some(days) if Some(days) != deadline.get_untracked() => {
                plan.state.ask_edit(Field::Deadline, &format!("{}d", significant(days, 4)));
            }
            _ => moved.set(None),
        }
    };
    let give_up = move || {
        is_held.set(false);
        moved.set(None);
    };
    let hear = move |event: Event| {
        let pointer = event.dyn_ref::<PointerEvent>();
        let Some(rule) = rule.get_untracked() else { return };
        match (event.type_().as_str(), pointer) {
            ("pointerdown", Some(pointer)) if pointer.button() == 0 => {
                is_held.set(true);
                // Without the capture, the rule follows the pointer only above itself.
                let _ = rule.set_pointer_capture(pointer.pointer_id());
            }
            ("pointermove", Some(pointer)) if is_held.get_untracked() => {
                if let (Some(above), Some(frame)) = (rule.parent_element(), frame.get_untracked()) {
                    let top = above.get_bounding_client_rect().top() + frame.top;
                    moved.set(Some(days_at(frame, f64::from(pointer.client_y()) - top)));
                }
            }
            ("keydown", _) => {
                let key = event.dyn_ref::<KeyboardEvent>().map(KeyboardEvent::key).unwrap_or_default();
                if key == "Escape" {
                    return give_up();
                }
                if let Some(next) = moved_by_key(untrack(days), &key) {
                    event.prevent_default();
                    is_held.set(true);
                    moved.set(Some(next));
                }
            }
            ("pointercancel", _) => give_up(),
            ("pointerup" | "keyup" | "blur", _) => release(),
            _ => {}
        }
    };
    let hear = StoredValue::new_local(Closure::<dyn FnMut(Event)>::new(hear));
    Effect::new(move |_| {
        let Some(rule) = rule.get() else { return };
        hear.with_value(|hear| {
            for event in
                ["pointerdown", "pointermove", "pointerup", "pointercancel", "keydown", "keyup", "blur"]
            {
                // It never fails: the names are valid.
                let _ = rule.add_event_listener_with_callback(event, hear.as_ref().unchecked_ref());
            }
        });
    });
    view! {
        <div
            node_ref=rule
            class="deadline-rule"
            role="slider"
            tabindex="0"
            aria-label="Deadline"
            aria-orientation="vertical"
            aria-valuenow="0"
            title="Drag to change the deadline"
            hidden
        >
            <span node_ref=label></span>
        </div>
    }
}

/// Returns the days after a key is pressed; none if the key does not move the rule.
fn moved_by_key(days: f64, key: &str) -> Option<f64> {
    let step = if days > 10.0 { 1.0 } else { 0.1 };
    let next = match key {
        "ArrowUp" | "ArrowRight" => days + step,
        "ArrowDown" | "ArrowLeft" => days - step,
        "PageUp" => days + LARGE_STEP,
        "PageDown" => (days - LARGE_STEP).max(days / 2.0),
        _ => return None,
    };
    Some(rounded(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_stands_where_its_days_are() {
        let frame = ChartFrame { left: 50.0, top: 12.0, width: 600.0, height: 300.0, y: (1.0, 3.0) };
        assert!((place(frame, 100.0) - 150.0).abs() < 1e-9);
        assert_eq!(days_at(frame, 150.0), 100.0);
        assert_eq!(days_at(frame, 1000.0), 10.0);
        assert_eq!((place(frame, 1e6), sign(frame, 1e6)), (HALF_LABEL, "↑"));
        assert_eq!((place(frame, 1.0), sign(frame, 1.0)), (300.0 - HALF_LABEL, "↓"));
        assert_eq!(sign(frame, 100.0), "↕");
        assert_eq!((rounded(45.4), rounded(7.26)), (45.0, 7.3));
        assert_eq!(moved_by_key(60.0, "ArrowDown"), Some(59.0));
        assert_eq!(moved_by_key(8.0, "ArrowUp"), Some(8.1));
        assert_eq!(moved_by_key(60.0, "Tab"), None);
    }
}
