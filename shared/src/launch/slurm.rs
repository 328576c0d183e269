//! Slurm options of launches whose script calls sbatch itself: they go through variables that the script or
//! sbatch reads.

use super::choice::Style;
use super::facts::Variable;
use super::plan::LaunchPlan;
use super::request::JobRequest;
use super::values::SlurmParam;
use super::word::ShellWord;
use crate::field::Field;
use crate::message;
use crate::problem::Problem;

/// The variables that sbatch reads, by parameter.
const READ_BY_SBATCH: [(&str, &str); 6] = [
    ("qos", "SBATCH_QOS"),
    ("reservation", "SBATCH_RESERVATION"),
    ("constraint", "SBATCH_CONSTRAINT"),
    ("exclusive", "SBATCH_EXCLUSIVE"),
    ("wckey", "SBATCH_WCKEY"),
    ("signal", "SBATCH_SIGNAL"),
];

pub(super) fn apply(plan: &mut LaunchPlan) {
    if !plan.on_slurm() {
        return;
    }
    time_limit(plan);
    gres(plan);
    swallowed_params(plan);
    let params = &plan.options.slurm_params;
    if params.iter().any(is_given_anyway) {
        let text = format!(
            "The parameter exclusive is omitted: jobs of release {} are always exclusive.",
            plan.release()
        );
        plan.warn(text, "");
    }
    if let Some(variable) = plan.script().variable_of(Field::SlurmParams) {
        by_script(plan, variable);
        return;
    }
    let (carried, left): (Vec<&SlurmParam>, Vec<&SlurmParam>) =
        params.iter().filter(|param| !is_given_anyway(param)).partition(|param| variable(param).is_some());
    for param in carried {
        if let (Some(name), Some(value)) = (variable(param), &param.value) {
            plan.export(name, ShellWord::of(value));
        }
    }
    if left.is_empty() {
        return;
    }
    let names: Vec<String> = left.iter().map(ToString::to_string).collect();
    plan.warn(
        format!(
            "The script of release {} can't pass on {}: neither the script nor sbatch reads a variable for \
             it.",
            plan.release(),
            names.join("; ")
        ),
        "Put a program named sbatch that adds it before Slurm's own in PATH.",
    );
}

/// Returns what the job asks Slurm for.
pub(super) fn request(plan: &LaunchPlan) -> JobRequest {
    JobRequest {
        nodes: plan.nodes(),
        gpus_per_node: plan.target.gpus_per_node,
        asks_for_gpus: plan.options.gres.is_some() && !plan.style.configures().contains(&Field::Gres),
        time_limit: plan.time_limit(),
        qos: plan.options.qos(),
    }
}

/// Hands the parameters to a script that reads them from a variable.
fn by_script(plan: &mut LaunchPlan, variable: &Variable) {
    let given = plan.options.slurm_params.iter().filter(|param| !is_given_anyway(param));
    let params: Vec<String> = given.map(ToString::to_string).collect();
    if params.is_empty() {
        return;
    }
    let value = ShellWord::of(params.join(";"));
    if let Some(fault) = value.unquoted_fault().filter(|_| variable.unquoted()) {
        let message = message![Field::SlurmParams, format!(" {fault}.")];
        plan.refuse(Problem::new(Field::SlurmParams, &value, message));
    }
    plan.export(&variable.name, value);
}

/// Warns of parameters whose value seems to contain another one. Values can contain commas and spaces, so
/// they are passed on unchanged.
pub(super) fn swallowed_params(plan: &mut LaunchPlan) {
    for param in plan.options.slurm_params.iter() {
        if let Some(other) = param.swallowed() {
            let (text, fix) = swallowed(param, other);
            plan.warn(text, fix);
        }
    }
}

/// Returns the warning of a parameter whose value contains what looks like `other`.
pub(super) fn swallowed(param: &SlurmParam, other: &str) -> (String, String) {
    (
        format!("Slurm parameter {param} is passed as a single parameter, with {other} in its value."),
        format!("If {other} is another parameter, put a semicolon before it: ;{other}"),
    )
}

/// Returns GRES for a node, and refuses one that requests fewer GPUs than the node has.
pub(super) fn gres_per_node(plan: &mut LaunchPlan) -> Option<String> {
    let gres = plan.options.gres.as_ref()?;
    let per_node = plan.target.gpus_per_node;
    if let Some(count) = gres.count().filter(|count| *count != per_node) {
        let message =
            message![Field::Gres, format!(" requests {count} GPUs per node, but nodes have {per_node}.")];
        plan.refuse(Problem::new(Field::Gres, count, message).suggest([format!("gpu:{per_node}")]));
    }
    Some(gres.per_node(per_node))
}

fn time_limit(plan: &mut LaunchPlan) {
    if let Some(limit) = plan.options.time_limit
        && !plan.set(Field::TimeLimit, ShellWord::of(limit))
    {
        plan.export("SBATCH_TIMELIMIT", ShellWord::of(limit));
    }
}

fn gres(plan: &mut LaunchPlan) {
    // llmb-run sets it from its installation.
    if let Some(gres) = gres_per_node(plan)
        && plan.style != Style::LlmbRun
    {
        plan.export("SBATCH_GPUS_PER_NODE", ShellWord::of(gres));
    }
}

fn variable(param: &SlurmParam) -> Option<&'static str> {
    let known = READ_BY_SBATCH.iter().find(|(key, _)| *key == param.key);
    known.filter(|_| param.value.is_some()).map(|(_, variable)| *variable)
}

/// Returns whether the parameter requests something that every release's jobs already do.
fn is_given_anyway(param: &SlurmParam) -> bool {
    param.key == "exclusive" && param.value.is_none()
}
