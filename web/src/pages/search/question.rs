//! The question of the page: which of its fields are typed, and which are assumed.

use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::question::USUAL_GPU_TYPES;
use trainplan_shared::spec::Spec;

/// The question of an address that asks none: a model that many know, by a deadline.
pub(super) const FIRST_MODEL: &str = "llama3.1-70b";
pub(super) const FIRST_TOKENS: &str = "10T";
pub(super) const FIRST_DEADLINE: &str = "60d";

/// The fields that a question may have in addition to those of the search and of the run.
const SHARED_FIELDS: [Field; 8] = [
    Field::Model,
    Field::Tokens,
    Field::SeqLen,
    Field::Gbs,
    Field::Stack,
    Field::Overlap,
    Field::GemmTflops,
    Field::ClusterFactor,
];

/// What the run must reach, as the bar shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoalKind {
    Deadline,
    Gpus,
    Budget,
}

impl GoalKind {
    pub(super) const ALL: [GoalKind; 3] = [GoalKind::Deadline, GoalKind::Gpus, GoalKind::Budget];

    /// Returns the field of its value.
    pub(super) fn field(self) -> Field {
        match self {
            GoalKind::Deadline => Field::Deadline,
            GoalKind::Gpus => Field::GpuRange,
            GoalKind::Budget => Field::Budget,
        }
    }

    /// Returns the kind whose field a question sets.
    pub(super) fn of(question: &Spec) -> GoalKind {
        let is_set = |kind: &GoalKind| question.get(kind.field()).is_some();
        GoalKind::ALL.into_iter().find(is_set).unwrap_or(GoalKind::Deadline)
    }
}

/// Returns every field of the question: the typed ones, and those of the first question where they are missing.
pub(super) fn question(spec: &Spec) -> Spec {
    let belongs = |field: Field| {
        let is_of_run = field.group() == FieldGroup::Goal && field != Field::StepTime;
        is_of_run || field.group() == FieldGroup::Search || SHARED_FIELDS.contains(&field)
    };
    let typed = spec.iter().filter(|(field, _)| belongs(*field));
    let mut question = typed.fold(Spec::default(), |question, (field, text)| question.with(field, text));
    let has_goal = GoalKind::ALL.iter().any(|kind| question.get(kind.field()).is_some());
    let first = [
        (Field::Model, FIRST_MODEL),
        (Field::Tokens, FIRST_TOKENS),
        (Field::GpuTypes, USUAL_GPU_TYPES),
        (Field::Deadline, if has_goal { "" } else { FIRST_DEADLINE }),
    ];
    for (field, value) in first {
        if question.get(field).is_none() {
            question.set(field, value);
        }
    }
    question
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::link;

    fn asked(query: &str) -> String {
        link::write(&question(&link::read(query).spec))
    }

    #[test]
    fn an_empty_address_asks_the_first_question() {
        assert_eq!(asked(""), link::write(&link::read("m=llama3.1-70b&t=10T&gs=h100,b200&by=60d").spec));
    }

    #[test]
    fn typed_fields_replace_the_assumed_ones() {
        let expected = link::read("m=llama3.1-405b&t=10T&gs=h100,b200&bud=50M").spec;
        assert_eq!(asked("m=llama3.1-405b&bud=50M"), link::write(&expected));
    }
}
