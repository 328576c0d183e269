//! `trainplan recipes`: the published recipes and results.

use super::fields::field_args;
use super::output::{self, Format, FormatArg};
use super::{Failure, note};
use serde::Serialize;
use trainplan_shared::catalog::{Baseline, Catalog, Filter, Recipe, RecipeId, Release, Scaling};
use trainplan_shared::convention::Convention;
use trainplan_shared::field::Field;
use trainplan_shared::launch::container_image;
use trainplan_shared::metrics::DEFAULT_TOKENS;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::precision::Dtype;
use trainplan_shared::problem::Problem;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::RecipeColumn;

/// List the published recipes and their measured results
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan recipes
  trainplan recipes --model llama3.1 --gpu h100 --dtype fp8 --measured
  trainplan recipes --release 25.12 --scaling strong --format csv")]
#[command(mut_arg("model", |flag| flag.value_name("ID").help("Model id, or a prefix of several ids")))]
#[command(mut_arg("gpu", |flag| flag.help("GPU type (`trainplan gpus` lists all)")))]
#[command(mut_arg("release", |flag| flag.help("Release, such as 25.12, or latest")))]
#[command(mut_arg("gpus", |flag| flag.help("Total number of GPUs")))]
pub(super) struct Args {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// The fields that recipes are filtered by.
const FILTERS: [Field; 7] =
    [Field::Model, Field::Gpu, Field::Gpus, Field::Dtype, Field::Release, Field::Scaling, Field::Measured];

field_args! {
    /// The flags that filter recipes.
    FilterArgs, "Filters", FILTERS.into_iter()
}

/// A recipe in the output.
#[derive(Debug, Serialize)]
struct Row<'a> {
    id: &'a RecipeId,
    release: Release,
    model: &'a str,
    gpu: &'a str,
    dtype: Dtype,
    scaling: Option<Scaling>,
    gpus: u32,
    seq_len: u32,
    layers: u32,
    tp: u32,
    pp: u32,
    cp: u32,
    ep: Option<u32>,
    /// GPUs that share each expert; 1 without experts.
    expert_tp: u32,
    vp: Option<u32>,
    dp: u32,
    mbs: u32,
    gbs: u32,
    ga: u32,
    pipeline_split: String,
    /// Whether weights and gradients are sharded over the data-parallel ranks.
    fsdp: bool,
    /// Layers whose activations are kept in CPU memory.
    offload_layers: u32,
    proxy: bool,
    source: String,
    /// The image in which the recipe's release runs it, such as `nemo:25.02.01`; none if it is not known.
    container: Option<String>,
    note: &'a str,
    baseline: Option<BaselineRow>,
}

/// A published result as in its document, and the metrics computed from the same step time.
#[derive(Debug, Serialize)]
pub(super) struct BaselineRow {
    step_time_s: f64,
    tokens_per_s: Option<f64>,
    mfu: Option<f64>,
    time_to_train_days: Option<f64>,
    computed: Computed,
}

#[derive(Debug, Serialize)]
struct Computed {
    tokens_per_s: f64,
    mfu: Option<f64>,
    convention: Option<Convention>,
    peak_tflops: Option<f64>,
    /// None for a proxy.
    time_to_train_days: Option<f64>,
}

impl BaselineRow {
    /// Returns the row of a result.
    pub(super) fn new(baseline: &Baseline, scenario: &Scenario) -> BaselineRow {
        let metrics = Metrics::new(scenario, baseline.step_time_s, DEFAULT_TOKENS);
        BaselineRow {
            step_time_s: baseline.step_time_s,
            tokens_per_s: baseline.printed_tokens(),
            mfu: baseline.printed_mfu(),
            time_to_train_days: baseline.printed_days(),
            computed: Computed {
                tokens_per_s: metrics.tokens_per_s,
                mfu: metrics.mfu,
                convention: metrics.convention,
                peak_tflops: metrics.peak_tflops,
                time_to_train_days: metrics.time_to_train_days,
            },
        }
    }
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let catalog = Catalog::embedded();
        let filter = Filter::from_spec(&self.filter.0)?;
        let recipes: Vec<&'static Recipe> =
            catalog.recipes().iter().filter(|recipe| filter.keeps(recipe)).collect();
        if recipes.is_empty() {
            note("no recipes match these filters; `trainplan recipes` lists all");
        }
        match self.format.choose() {
            Format::Json => {
                let rows: Vec<Row<'_>> = recipes.into_iter().map(row).collect::<Result<_, _>>()?;
                output::json(&rows)
            }
            Format::Csv => output::csv_table(&RecipeColumn::csv(&recipes)),
            Format::Table => {
                if recipes.iter().any(|recipe| is_computed(recipe)) {
                    note(
                        "where a release publishes a step time, but no MFU or days, they are computed from it, as \
                         `trainplan metrics` does",
                    );
                }
                let table = RecipeColumn::terminal_table(&recipes);
                output::text_table(if recipes.is_empty() { table } else { table.without_empty_columns() })
            }
        }
    }
}

/// Returns whether a table shows metrics that no document prints.
fn is_computed(recipe: &Recipe) -> bool {
    Catalog::embedded().baseline(&recipe.id).is_some_and(|baseline| baseline.printed_mfu().is_none())
}

fn row(recipe: &'static Recipe) -> Result<Row<'static>, Vec<Problem>> {
    let catalog = Catalog::embedded();
    let scenario = Spec::default().with(Field::Recipe, recipe.id.to_string()).scenario()?;
    let proxy = scenario.is_proxy();
    let degrees = &recipe.degrees;
    let baseline = catalog.baseline(&recipe.id).map(|baseline| BaselineRow::new(baseline, &scenario));
    Ok(Row {
        id: &recipe.id,
        release: recipe.id.release,
        model: &recipe.id.model,
        gpu: &recipe.id.gpu,
        dtype: recipe.id.dtype,
        scaling: recipe.scaling,
        gpus: recipe.id.gpus,
        seq_len: recipe.seq_len,
        layers: recipe.layers,
        tp: degrees.tp,
        pp: degrees.pp,
        cp: degrees.cp,
        ep: recipe.printed_ep,
        expert_tp: degrees.expert_tp,
        vp: (degrees.vp > 1).then_some(degrees.vp),
        dp: scenario.layout.dp(),
        mbs: recipe.mbs,
        gbs: recipe.gbs,
        ga: scenario.batch.ga(),
        pipeline_split: degrees.split.to_string(),
        fsdp: recipe.fsdp,
        offload_layers: recipe.offload_layers,
        proxy,
        source: catalog.source_of(recipe).unwrap_or_default(),
        container: container_image(&recipe.id),
        note: &recipe.note,
        baseline,
    })
}
