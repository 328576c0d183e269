//! Questions and their answers.

mod budgets;
mod deadlines;
mod plans;
mod reading;

use super::*;
use crate::field::Field;
use crate::problem::Problem;
use crate::spec::Spec;

fn spec(fields: &[(Field, &str)]) -> Spec {
    fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
}

fn ask(fields: &[(Field, &str)]) -> Question {
    spec(fields).question().unwrap()
}

fn refused(fields: &[(Field, &str)]) -> Vec<Problem> {
    spec(fields).question().unwrap_err()
}

/// Llama 3.1 8B on 1T tokens with the H100, and more.
fn small(more: &[(Field, &str)]) -> Question {
    let fields = [(Field::Model, "llama3.1-8b"), (Field::Tokens, "1T"), (Field::GpuTypes, "h100")];
    ask(&[&fields, more].concat())
}

fn answer(question: &Question) -> GpuAnswer {
    Survey::new(question, &question.offers[0]).finish()
}

/// Returns the question with a change, and asserts that a plan reaches its goal.
fn assert_change_works(fields: &[(Field, &str)], change: &Relaxation) {
    let changed = spec(fields).with(change.setting.field, &change.setting.value).question().unwrap();
    let found = answer(&changed);
    let best =
        found.best().unwrap_or_else(|| panic!("{:?} does not work: {:?}", change.setting, found.unmet));
    // Which may be better than the plan that was tried.
    assert!(best.gpus <= change.run.gpus, "{:?}", change.setting);
}
