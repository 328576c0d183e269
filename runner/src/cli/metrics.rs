//! `trainplan metrics`: tokens per second, MFU and days to train from a step time.

use super::fields::field_args;
use super::output::{self, Format, FormatArg};
use super::scenario::ScenarioArgs;
use super::{Failure, note};
use serde::Serialize;
use trainplan_shared::catalog::RecipeId;
use trainplan_shared::explain::Line;
use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::message::Message;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::planning::StepTimeSource;
use trainplan_shared::tables::cells;
use trainplan_shared::units::{format_count, group_digits, readable, readable_days, significant};

/// Turn a step time into tokens per second, MFU and days to train
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan metrics --recipe llama3.1-405b/h100/fp8/512 --tokens 15T
  trainplan metrics --recipe llama3.1-8b/h100/fp8/8 --step-time 12.39
  trainplan metrics --seq-len 4096 --gbs 256 --step-time 2.693 --tokens 1T
  trainplan metrics --model llama3.1-8b --gpu h100:hbm_gb=96 --gpus 8 --gbs 128 --step-time 40%")]
pub(super) struct Args {
    #[command(flatten)]
    goal: GoalArgs,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    format: FormatArg,
}

field_args! {
    /// The step time and the tokens to train.
    GoalArgs, "Goal", Field::of_group(FieldGroup::Goal).filter(|field| !field.is_of_whole_run())
}

#[derive(Debug, Serialize)]
struct Output<'a> {
    recipe: Option<&'a RecipeId>,
    step_time_basis: StepTimeSource,
    #[serde(flatten)]
    metrics: &'a Metrics,
    warnings: Vec<Message>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let scenario = self.scenario.spec()?;
        let spec = self.goal.0.iter().fold(scenario, |spec, (field, text)| spec.with(field, text));
        let measured = spec.metrics()?;
        let recipe = measured.published.map(|recipe| &recipe.id);
        let metrics = &measured.metrics;
        if metrics.mfu.is_none() {
            note("no MFU without a model and GPUs: add --recipe, or --model, --gpu and --gpus");
        }
        measured.warnings.iter().for_each(|warning| note(&warning.to_string()));
        match self.format.choose() {
            Format::Json => output::json(&Output {
                recipe,
                step_time_basis: measured.basis,
                metrics,
                warnings: measured.warnings,
            }),
            Format::Csv => {
                output::csv(["metric", "value"], rows(metrics).map(|(name, value, _)| [name, value]))
            }
            Format::Table => {
                let recipe = recipe.map_or("none".into(), cells::recipe);
                let basis = in_words(measured.basis);
                output::prose(&format!("Published recipe: {recipe}. Step time: {basis}.\n"))?;
                output::table(
                    ["metric", "value"],
                    &[1],
                    rows(metrics).map(|(name, _, shown)| [name, shown]),
                )?;
                output::text_line("")?;
                metrics.explain.iter().try_for_each(explain)
            }
        }
    }
}

/// Writes a line of the derivation with its note.
fn explain(line: &Line) -> Result<(), Failure> {
    let numbers = if line.numbers.is_empty() { String::new() } else { format!(" = {}", line.numbers) };
    output::prose(&format!("{}{numbers} = {} {}", line.name, significant(line.value, 6), line.unit))?;
    if line.note.is_empty() { Ok(()) } else { output::prose(&format!("    ({})", line.note)) }
}

fn in_words(basis: StepTimeSource) -> &'static str {
    match basis {
        StepTimeSource::Published => "as published",
        StepTimeSource::Given => "as given",
        StepTimeSource::AssumedMfu => "from the MFU that is assumed",
    }
}

/// Returns the name, exact value and text of each metric.
fn rows(metrics: &Metrics) -> impl Iterator<Item = (String, String, String)> {
    let number = |name: &str, value: Option<f64>, shown: fn(f64) -> String| {
        (
            name.to_string(),
            value.map_or(String::new(), |value| value.to_string()),
            value.map_or("–".into(), shown),
        )
    };
    let convention = metrics.convention.map_or(String::new(), |convention| convention.to_string());
    [
        number("step_time_s", Some(metrics.step_time_s), |value| significant(value, 6)),
        number("tokens_per_s", Some(metrics.tokens_per_s), group_digits),
        number("tokens_per_s_per_gpu", metrics.tokens_per_s_per_gpu, readable),
        number("mfu", metrics.mfu, |value| format!("{:.2} %", value * 100.0)),
        ("convention".into(), convention.clone(), convention),
        number("peak_tflops", metrics.peak_tflops, |value| value.to_string()),
        number("tflops_per_gpu", metrics.tflops_per_gpu, |value| format!("{value:.1}")),
        number("tokens", Some(metrics.tokens), format_count),
        number("time_to_train_days", metrics.time_to_train_days, readable_days),
    ]
    .into_iter()
}
