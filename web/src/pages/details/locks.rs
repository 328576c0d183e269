//! Locks, set beside each field of a layout.

use super::Plan;
use crate::components::field::FieldLocks;
use crate::pages::plan::locks::{lock_text, read};
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::search::{CHOSEN_FIELDS, Lock};
use trainplan_shared::spec::Spec;

/// Returns the value of a field that a search chooses; none for other fields.
pub(super) fn chosen_value(scenario: &Scenario, field: Field) -> Option<String> {
    CHOSEN_FIELDS.contains(&field).then(|| scenario.value(field)).flatten()
}

/// Returns the text with a lock of a field on a value, or without one if the field has a lock.
fn toggled(text: &str, field: Field, value: &str) -> String {
    let locks = read(text);
    let mut left = locks.without(field);
    if left == locks {
        left.0.push(Lock::on(field, value));
    }
    left.to_string()
}

/// Returns the fields with every lock on the value that was just typed into its field, so that the search uses what the field
/// shows.
pub(super) fn following(before: &Spec, changed: Spec) -> Spec {
    let mut locks = read(changed.raw(Field::Lock));
    for Lock { field, values, excludes } in &mut locks.0 {
        let typed = changed.get(*field).filter(|typed| !*excludes && before.get(*field) != Some(typed));
        if let Some(typed) = typed {
            *values = Lock::on(*field, typed).values;
        }
    }
    if locks.0.is_empty() { changed } else { changed.with(Field::Lock, locks.to_string()) }
}

/// Provides a lock beside each field of a layout.
pub(super) fn provide(plan: Plan) {
    let locked = Memo::new(move |_| {
        let locks = plan.question.with(|question| read(question.raw(Field::Lock)));
        locks.0.into_iter().map(|lock| (lock.field, lock_text(&lock))).collect::<Vec<_>>()
    });
    provide_context(FieldLocks {
        lockable: &CHOSEN_FIELDS,
        locked,
        toggle: Callback::new(move |field| {
            let value = plan.scenario.with_untracked(|scenario| chosen_value(scenario.as_ref().ok()?, field));
            let typed = plan.address.with_spec_untracked(|spec| spec.get(field).map(str::to_string));
            let value = typed.or(value).unwrap_or_default();
            let text =
                plan.question.with_untracked(|question| toggled(question.raw(Field::Lock), field, &value));
            // Another plan than the shown one may be the best with the lock.
            plan.state.ask(&[(Field::Lock, &text)]);
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
    fn a_lock_follows_what_is_typed_into_its_field() {
        let spec = |query: &str| link::read(query).spec;
        let before = spec("n=64&tp=8").with(Field::Lock, "recompute!=full,tp=8");
        let lock = |changed: Spec| following(&before, changed).raw(Field::Lock).to_string();
        assert_eq!(lock(before.clone().with(Field::Tp, "16")), "recompute!=full,tp=16");
        assert_eq!(lock(before.clone().with(Field::Pp, "2")), "recompute!=full,tp=8");
        assert_eq!(lock(before.clone().with(Field::Tp, "")), "recompute!=full,tp=8");
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
