//! Locks, set beside each field of a layout.

use super::Plan;
use crate::components::field::FieldLocks;
use crate::pages::plan::locks::read;
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::search::{CHOSEN_FIELDS, Lock};

/// Returns the value of a field that a search chooses; none for other fields.
pub(super) fn chosen_value(scenario: &Scenario, field: Field) -> Option<String> {
    CHOSEN_FIELDS.contains(&field).then(|| scenario.value(field)).flatten()
}

/// Returns the text with a lock of a field on a value, or without one if the field has a lock.
fn toggled(text: &str, field: Field, value: &str) -> String {
    let locks = read(text);
    let mut left = locks.without(field);
    if left == locks {
        left.0.push(Lock { field, values: vec![value.to_ascii_lowercase()], excludes: false });
    }
    left.to_string()
}

/// Provides a lock beside each field of a layout.
pub(super) fn provide(plan: Plan) {
    let locked = Memo::new(move |_| plan.question.with(|question| read(question.raw(Field::Lock)).fields()));
    provide_context(FieldLocks {
        lockable: &CHOSEN_FIELDS,
        locked,
        toggle: Callback::new(move |field| {
            let value = plan.scenario.with_untracked(|scenario| chosen_value(scenario.as_ref().ok()?, field));
            let typed = plan.address.with_spec_untracked(|spec| spec.get(field).map(str::to_string));
            let value = typed.or(value).unwrap_or_default();
            let text =
                plan.question.with_untracked(|question| toggled(question.raw(Field::Lock), field, &value));
            plan.state.refine(Field::Lock, &text);
        }),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::link;

    #[test]
    fn a_lock_is_set_and_removed() {
        let text = toggled("recompute!=full", Field::Tp, "8");
        assert_eq!(text, "recompute!=full,tp=8");
        assert_eq!(toggled(&text, Field::Tp, "4"), "recompute!=full");
    }

    #[test]
    fn every_chosen_field_has_a_value() {
        let scenario = link::read("r=llama3.1-405b/h100/fp8/512@25.04").spec.scenario().expect("a recipe");
        for field in CHOSEN_FIELDS {
            assert!(chosen_value(&scenario, field).is_some(), "{field:?}");
        }
        assert_eq!(chosen_value(&scenario, Field::Tp).as_deref(), Some("8"));
        assert_eq!(chosen_value(&scenario, Field::Model), None);
    }
}
