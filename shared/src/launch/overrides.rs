//! Variables that a person sets besides, held against what the release's script makes of them.

use super::facts::{Usage, Variable};
use super::plan::Plan;
use crate::field::Field;
use crate::problem::Problem;

/// Variables that sbatch reads and that options of ours set.
const SET_FOR_SBATCH: [(&str, Field); 5] = [
    ("SBATCH_ACCOUNT", Field::Account),
    ("SBATCH_PARTITION", Field::Partition),
    ("SBATCH_TIMELIMIT", Field::TimeLimit),
    ("SBATCH_GPUS_PER_NODE", Field::Gres),
    ("SBATCH_GRES", Field::Gres),
];

pub(super) fn apply(plan: &mut Plan) {
    for (name, value) in plan.options.env.iter() {
        let variable = plan.script().variables().find(|variable| variable.name == name);
        let option = variable.and_then(Variable::field);
        let for_sbatch = SET_FOR_SBATCH.iter().find(|(known, _)| *known == name).map(|(_, field)| *field);
        if let Some(field) = option.or(for_sbatch) {
            let what = format!("has an option of its own: --{}", field.flag());
            plan.refuse(Problem::clause(Field::Env, name, what));
            continue;
        }
        if plan.exports(name) {
            plan.refuse(Problem::clause(Field::Env, name, "is set by another option already"));
            continue;
        }
        let release = plan.release();
        if let Some(variable) = variable {
            let note = match variable.note.is_empty() {
                true => String::new(),
                false => format!(": {}", variable.note),
            };
            match variable.usage {
                Usage::Option | Usage::Open | Usage::Moves => {}
                Usage::Changes => plan.incomparable.push(format!("{name} changes what runs{note}")),
                Usage::Ignored => {
                    plan.warn(format!("{name} has no effect at release {release}{note}."), "Leave it out.");
                }
                Usage::Refused => {
                    let what = format!("stops the script of release {release}{note}");
                    plan.refuse(Problem::clause(Field::Env, name, what));
                }
            }
            if variable.unquoted()
                && let Err(problem) = value.must_be_plain(Field::Env, "the release's script")
            {
                plan.refuse(Problem { given: name.into(), ..problem });
            }
        }
        plan.export(name, value.clone());
    }
}
