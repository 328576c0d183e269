//! Launches, as a cluster's programs see them.
//!
//! The generated scripts run in real shells, with stand-ins for `launch.sh`, `sbatch`, `llmb-run` and `srun`
//! that record their working directory, arguments and environment.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what can't go on in a test has failed")]

mod bridge;
mod documents;
mod hostile;
mod megatron_lm;
mod options;
mod refusals;
mod shell;

use trainplan_shared::field::Field;
use trainplan_shared::launch::{Launch, LaunchOptions, launch};
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

/// Returns the launch of a recipe with some fields set.
fn try_launch(recipe: &str, fields: &[(Field, &str)]) -> Result<Launch, Vec<Problem>> {
    let spec = Spec::default().with(Field::Recipe, recipe);
    let spec = fields.iter().fold(spec, |spec, (field, text)| spec.with(*field, *text));
    launch(&spec.scenario()?, &LaunchOptions::from_spec(&spec)?)
}

fn launched(recipe: &str, fields: &[(Field, &str)]) -> Launch {
    try_launch(recipe, fields).unwrap()
}

/// Returns the only problem of a launch.
fn refused(recipe: &str, fields: &[(Field, &str)]) -> Problem {
    let problems = try_launch(recipe, fields).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.into_iter().next().unwrap()
}

/// Returns whether a warning contains a text.
fn warns(launch: &Launch, text: &str) -> bool {
    launch.warnings.iter().any(|warning| warning.to_string().contains(text))
}
