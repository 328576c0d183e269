//! Steppers beside the memory chart: each halves or doubles a value that memory depends on.

use super::Plan;
use super::locks::chosen_value;
use leptos::prelude::*;
use trainplan_shared::field::Field;

/// The values that can be stepped.
const STEPPED: [Field; 5] = [Field::Tp, Field::Pp, Field::Cp, Field::Ep, Field::Mbs];

#[component]
pub(super) fn Steppers() -> impl IntoView {
    let plan = Plan::of_page();
    let is_routed = Memo::new(move |_| {
        plan.scenario
            .with(|scenario| scenario.as_ref().is_ok_and(|scenario| scenario.architecture.moe.is_some()))
    });
    view! {
        <div class="steppers" role="group" aria-label="Change the layout">
            {move || {
                let fields = STEPPED.into_iter().filter(|field| *field != Field::Ep || is_routed.get());
                fields.map(|field| view! { <Stepper field /> }).collect_view()
            }}
        </div>
    }
}

#[component]
fn Stepper(field: Field) -> impl IntoView {
    let plan = Plan::of_page();
    // While the layout is invalid, the typed value.
    let value = Memo::new(move |_| {
        let of_plan = plan.scenario.with(|scenario| chosen_value(scenario.as_ref().ok()?, field));
        let text = of_plan.unwrap_or_else(|| plan.address.text(field));
        text.parse::<u32>().unwrap_or(1).max(1)
    });
    let set = move |next: u32| plan.address.set(field, next.to_string());
    let button = move |sign: &'static str, verb: &'static str, next: fn(u32) -> u32| {
        view! {
            <button
                type="button"
                aria-label=format!("{verb} {}", field.label())
                disabled=move || next(value.get()) == value.get()
                on:click=move |_| set(next(value.get_untracked()))
            >{sign}</button>
        }
    };
    view! {
        <span class="stepper">
            <span>{field.label()}</span>
            {button("−", "Halve", halved)}
            <output>{value}</output>
            {button("+", "Double", doubled)}
        </span>
    }
}

/// Returns half the value, rounded down, but at least 1.
fn halved(value: u32) -> u32 {
    (value / 2).max(1)
}

fn doubled(value: u32) -> u32 {
    value.saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_halved_down_to_one_and_doubled() {
        assert_eq!([8, 5, 2, 1].map(halved), [4, 2, 1, 1]);
        assert_eq!(doubled(4), 8);
    }
}
