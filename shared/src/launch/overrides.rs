//! The environment variables that the user sets, and what the release's script does with them.

use super::facts::{Variable, VariableUse};
use super::plan::LaunchPlan;
use crate::field::Field;
use crate::message;
use crate::problem::Problem;

/// Variables that sbatch reads and that other fields set.
const SET_FOR_SBATCH: [(&str, Field); 5] = [
    ("SBATCH_ACCOUNT", Field::Account),
    ("SBATCH_PARTITION", Field::Partition),
    ("SBATCH_TIMELIMIT", Field::TimeLimit),
    ("SBATCH_GPUS_PER_NODE", Field::Gres),
    ("SBATCH_GRES", Field::Gres),
];

pub(super) fn apply(plan: &mut LaunchPlan) {
    for (name, value) in plan.options.env.iter() {
        let variable = plan.script().variables().find(|variable| variable.name == name);
        let option = variable.and_then(Variable::field);
        let for_sbatch = SET_FOR_SBATCH.iter().find(|(known, _)| *known == name).map(|(_, field)| *field);
        let refuse = |plan: &mut LaunchPlan, message| plan.refuse(Problem::new(Field::Env, name, message));
        if let Some(field) = option.or(for_sbatch) {
            refuse(plan, message![format!("{name} can't be set here. Instead, use "), field, "."]);
            continue;
        }
        if plan.exports(name) {
            refuse(plan, format!("{name} is already set by another option.").into());
            continue;
        }
        let release = plan.release();
        if let Some(variable) = variable {
            let note = match variable.note.is_empty() {
                true => String::new(),
                false => format!(": {}", variable.note),
            };
            match variable.usage {
                VariableUse::Option | VariableUse::Open | VariableUse::Moves => {}
                VariableUse::Changes => plan.incomparable.push(format!("{name} changes what runs{note}")),
                VariableUse::Ignored => {
                    plan.warn(format!("Release {release} ignores {name}{note}."), "Remove it.");
                }
                VariableUse::Refused => {
                    refuse(plan, format!("{name} stops the script of release {release}{note}.").into());
                }
            }
            if let Some(fault) = value.unquoted_fault().filter(|_| variable.unquoted()) {
                refuse(plan, format!("The value of {name} {fault}.").into());
            }
        } else if Variable::is_of_another_script(name) {
            plan.warn(format!("The script of release {release} doesn't read {name}."), "Remove it.");
        }
        plan.export(name, value.clone());
    }
}
