//! `trainplan flops`: model FLOPs with their derivation.

use super::Failure;
use super::output::{self, Format, FormatArg};
use super::scenario::ScenarioArgs;
use serde::Serialize;
use trainplan_shared::catalog::{ParameterCounts, RecipeId};
use trainplan_shared::explain::Line;
use trainplan_shared::flops::ModelFlops;
use trainplan_shared::units::{group_digits, significant};

/// Count the model FLOPs of a sequence, with the derivation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan flops --recipe nemotron4-340b/h100/bf16/256@25.12
  trainplan flops --model deepseek-v3 --seq-len 4096 --convention causal
  trainplan flops --model llama3.1-405b --layers 30 --format json")]
pub(super) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    format: FormatArg,
}

#[derive(Debug, Serialize)]
struct Output<'a> {
    model: &'a str,
    recipe: Option<&'a RecipeId>,
    layers: u32,
    parameters: ParameterCounts,
    #[serde(flatten)]
    flops: &'a ModelFlops,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let counted = self.scenario.spec()?.model_flops()?;
        let flops = &counted.flops;
        let parameters = counted.model.parameters_of(&counted.architecture);
        match self.format.choose() {
            Format::Json => output::json(&Output {
                model: &counted.model.id,
                recipe: counted.recipe.map(|recipe| &recipe.id),
                layers: counted.architecture.layers,
                parameters,
                flops,
            }),
            Format::Csv => output::csv(
                ["part", "formula", "numbers", "value", "unit", "note"],
                flops.explain.iter().map(derivation),
            ),
            Format::Table => {
                output::prose(&format!(
                    "{} ({parameters}), {} layers, {} tokens, convention {}: {} FLOPs per sequence",
                    counted.model.title,
                    counted.architecture.layers,
                    flops.seq_len,
                    flops.convention,
                    significant(flops.per_sequence, 6),
                ))?;
                if let Some(document) = &flops.document {
                    output::prose(&format!(
                        "Its document divides by {}: {}.",
                        significant(document.value, 6),
                        document.reason
                    ))?;
                }
                output::text_line("")?;
                output::table(
                    ["part", "formula", "numbers", "value", "unit"],
                    &[3],
                    flops.explain.iter().map(|line| {
                        let [part, formula, numbers, _, unit, _] = derivation(line);
                        [part, formula, numbers, group_digits(line.value), unit]
                    }),
                )
            }
        }
    }
}

fn derivation(line: &Line) -> [String; 6] {
    let Line { name, formula, numbers, value, unit, note } = line.clone();
    [name, formula, numbers, value.to_string(), unit.to_string(), note]
}
