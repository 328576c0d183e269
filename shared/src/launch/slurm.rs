//! What a launch tells Slurm when a script submits for it: through the variables that the script or sbatch
//! reads.

use super::choice::Style;
use super::plan::Plan;
use super::values::SlurmParam;
use super::word::Word;
use crate::field::Field;
use crate::problem::Problem;

/// What sbatch reads from its environment, by its parameter's name.
const READ_BY_SBATCH: [(&str, &str); 6] = [
    ("qos", "SBATCH_QOS"),
    ("reservation", "SBATCH_RESERVATION"),
    ("constraint", "SBATCH_CONSTRAINT"),
    ("exclusive", "SBATCH_EXCLUSIVE"),
    ("wckey", "SBATCH_WCKEY"),
    ("signal", "SBATCH_SIGNAL"),
];

/// For the styles whose script calls sbatch itself.
pub(super) fn apply(plan: &mut Plan) {
    if !plan.on_slurm() {
        return;
    }
    time_limit(plan);
    gres(plan);
    swallowed_params(plan);
    let params = &plan.options.slurm_params;
    if params.iter().any(is_given_anyway) {
        let text =
            format!("exclusive is left out: the jobs of release {} are exclusive anyway.", plan.release());
        plan.warn(text, "");
    }
    let (carried, left): (Vec<&SlurmParam>, Vec<&SlurmParam>) =
        params.iter().filter(|param| !is_given_anyway(param)).partition(|param| variable(param).is_some());
    for param in carried {
        if let (Some(name), Some(value)) = (variable(param), &param.value) {
            plan.export(name, Word::of(value));
        }
    }
    if left.is_empty() {
        return;
    }
    let names: Vec<String> = left.iter().map(|param| format!("--{param}")).collect();
    plan.warn(
        format!(
            "{} can't be carried to the job: the script of release {} reads no ADDITIONAL_SLURM_PARAMS, and \
             sbatch no variable for it.",
            names.join(" "),
            plan.release()
        ),
        "Put a program named sbatch that adds it before Slurm's own in PATH; release 26.02 is the first \
         whose script takes it.",
    );
}

/// Says which parameters hold what looks like another: values may hold commas and spaces, so it stays there.
pub(super) fn swallowed_params(plan: &mut Plan) {
    for param in plan.options.slurm_params.iter() {
        if let Some(other) = param.swallowed() {
            plan.warn(
                format!("--{param} is taken as one parameter, with {other} in its value."),
                format!("Put ; between parameters: ;{other} if it is one of its own."),
            );
        }
    }
}

/// Checks GRES against the GPUs of a node, which it should name all.
pub(super) fn gres_per_node(plan: &mut Plan) -> Option<String> {
    let gres = plan.options.gres.as_ref()?;
    let per_node = plan.target.gpus_per_node;
    if let Some(count) = gres.count().filter(|count| *count != per_node) {
        let what = format!("is not all of a node's {per_node} GPUs");
        plan.refuse(Problem::clause(Field::Gres, count, what).nearest([format!("gpu:{per_node}")]));
    }
    Some(gres.per_node(per_node))
}

fn time_limit(plan: &mut Plan) {
    if let Some(limit) = plan.options.time_limit
        && !plan.set(Field::TimeLimit, Word::of(limit))
    {
        plan.export("SBATCH_TIMELIMIT", Word::of(limit));
    }
}

fn gres(plan: &mut Plan) {
    // llmb-run overwrites it by what its installation knows, and says so with account and partition.
    if let Some(gres) = gres_per_node(plan)
        && plan.style != Style::LlmbRun
    {
        plan.export("SBATCH_GPUS_PER_NODE", Word::of(gres));
    }
}

fn variable(param: &SlurmParam) -> Option<&'static str> {
    let known = READ_BY_SBATCH.iter().find(|(key, _)| *key == param.key);
    known.filter(|_| param.value.is_some()).map(|(_, variable)| *variable)
}

/// Every release's jobs have their nodes for themselves.
fn is_given_anyway(param: &SlurmParam) -> bool {
    param.key == "exclusive" && param.value.is_none()
}
