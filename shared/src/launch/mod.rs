//! From a scenario to the exact commands that start it, under a release of the recipe collection or without one.
//!
//! A launch of a release is made in one pass: the `Target` says which recipe's script can run the scenario, a style how
//! that script is called, and every option then adds what it needs to a `Plan` or says why it can't. What
//! the scripts read and support stands in the data files `launch_*.csv`.

mod check;
mod checkpoint;
mod choice;
mod environment;
mod facts;
mod measuring;
mod megatron_lm;
mod memory;
mod offers;
mod options;
mod outputs;
mod overrides;
mod plan;
mod prepare;
mod release;
mod render;
mod runai;
mod slurm;
mod style;
mod target;
mod values;
mod word;

pub use choice::{ClusterType, Style};
pub use options::Options;
pub use outputs::Outputs;
pub use plan::Warning;
pub use prepare::Step;
pub use values::{EnvOverrides, Gres, SlurmParam, SlurmParams, TimeLimit};
pub use word::Word;

use crate::catalog::Release;
use crate::problem::Problem;
use crate::scenario::Scenario;
use plan::Plan;
use serde::Serialize;
use std::collections::BTreeMap;
use target::Target;

/// The exact commands that start a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Launch {
    /// The release whose scripts run it; none where Megatron-LM itself does.
    pub release: Option<Release>,
    /// What it is handed to.
    pub style: Style,
    /// What manages the cluster.
    pub cluster_type: ClusterType,
    /// What has to be done once before.
    pub prepare: Vec<Step>,
    /// Where the commands run, as a shell word.
    pub cwd: String,
    /// The commands, as a shell reads them.
    pub commands: Vec<String>,
    /// The variables that the script sets; `$NAME` is what the variable of that name holds where it runs.
    pub env: BTreeMap<String, Word>,
    /// The variables that must hold something where the script runs: secrets, and what nobody has said yet.
    pub needs: Vec<String>,
    /// All of it, for a POSIX shell.
    pub script: String,
    /// Training steps that will run.
    pub steps: u32,
    /// Where the run leaves what it writes.
    pub outputs: Outputs,
    /// How to see what it did.
    pub check: Vec<Step>,
    /// Whether it measures what the published number measured.
    pub comparable: Comparable,
    /// What works otherwise than one would think.
    pub warnings: Vec<Warning>,
}

/// Whether a run can stand beside the published number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparable {
    /// Whether it runs as the published measurements did.
    pub yes: bool,
    /// Why it does not; empty where it does.
    pub reasons: Vec<String>,
    /// The recipe with the published number, if there is one.
    pub baseline: Option<String>,
}

/// Makes the launch of a scenario.
///
/// # Errors
/// Everything that can't work, with what would.
pub fn launch(scenario: &Scenario, options: &Options) -> Result<Launch, Vec<Problem>> {
    let mut launch = assemble(scenario, options)?;
    launch.warnings.extend(memory::warning(scenario, launch.style));
    Ok(launch)
}

fn assemble(scenario: &Scenario, options: &Options) -> Result<Launch, Vec<Problem>> {
    if options.style == Some(Style::MegatronLm) {
        return megatron_lm::launch(scenario, options);
    }
    let target = Target::find(scenario, options)?;
    let (style, changed) = style::choose(scenario, options, &target).map_err(|problem| vec![problem])?;
    let mut plan = Plan::new(scenario, options, target, style);
    plan.warnings.extend(changed);
    root(&mut plan);
    let invocation = style::apply(&mut plan);
    measuring::apply(&mut plan);
    checkpoint::apply(&mut plan);
    release::apply(&mut plan);
    overrides::apply(&mut plan);
    measuring::check_time(&mut plan);
    megatron_lm::say_what_is_its_own(&mut plan);
    workload(&mut plan);
    if style == Style::LlmbRun {
        style::llmb_run::say_what_it_decides(&mut plan);
    }
    if !plan.problems.is_empty() {
        return Err(plan.problems);
    }
    let outputs = Outputs::of(&plan);
    Ok(Launch {
        release: Some(plan.release()),
        style,
        cluster_type: options.cluster_type,
        prepare: prepare::steps(&plan),
        cwd: invocation.cwd.shell(),
        commands: vec![render::line(&invocation.command)],
        script: render::script(&plan, &invocation),
        check: check::steps(&plan, &outputs),
        outputs,
        steps: plan.steps,
        comparable: Comparable {
            yes: plan.incomparable.is_empty(),
            baseline: release::baseline(&plan).map(|_| plan.recipe_id().to_string()),
            reasons: plan.incomparable,
        },
        needs: plan.needs.into_iter().map(|need| need.name).collect(),
        env: plan.env.into_iter().collect(),
        warnings: plan.warnings,
    })
}

/// The top directory comes first: other values may refer to it.
fn root(plan: &mut Plan) {
    let name = &plan.script().root;
    match &plan.options.install_path {
        Some(path) => plan.export(name, path.clone()),
        None => plan.need(name, "the directory that the recipes were set up in"),
    }
}

/// The documents write paths from LLMB_WORKLOAD, which nothing sets before launch.sh does.
fn workload(plan: &mut Plan) {
    const NAME: &str = "LLMB_WORKLOAD";
    let refers = plan.env.iter().any(|(_, value)| value.variables().any(|name| name == NAME));
    if refers && !plan.exports(NAME) && !plan.script().workload.is_empty() {
        // The top directory is known by then, and all that refer to it come later.
        let after_root = usize::from(plan.options.install_path.is_some());
        plan.env.insert(after_root, (NAME.into(), plan.home()));
    }
}
