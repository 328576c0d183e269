//! `trainplan models` and `trainplan gpus`: the ids that `--model` and `--gpu` take.

use super::Failure;
use super::output::{self, Format, FormatArg};
use serde::Serialize;
use trainplan_shared::catalog::{Catalog, Gpu, Model};
use trainplan_shared::precision::Dtype;
use trainplan_shared::tables::{TerminalHeading, TerminalTable};

/// List the known models
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan models
  trainplan models --format csv")]
pub(super) struct ModelsArgs {
    #[command(flatten)]
    format: FormatArg,
}

/// List the known GPU types
///
/// Peaks are those of the datasheet, dense. MFUs divide by the peaks of NVIDIA's published recipes (mfu_…), which differ on
/// GB200 and GB300.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan gpus
  trainplan gpus --format json")]
pub(super) struct GpusArgs {
    #[command(flatten)]
    format: FormatArg,
}

#[derive(Serialize)]
struct ListedModel<'a> {
    id: &'a str,
    title: &'a str,
    params_b: f64,
    active_b: f64,
    layers: u32,
    seq_len: u32,
}

impl ListedModel<'_> {
    fn new(model: &Model) -> ListedModel<'_> {
        ListedModel {
            id: &model.id,
            title: &model.title,
            params_b: model.params_b,
            active_b: model.active_b,
            layers: model.architecture.layers,
            seq_len: model.seq_len,
        }
    }
}

#[derive(Serialize)]
struct ListedGpu<'a> {
    id: &'a str,
    name: &'a str,
    form: &'a str,
    bf16_tflops: f64,
    fp8_tflops: Option<f64>,
    hbm_gb: f64,
    gpus_per_node: u32,
    /// The peaks that MFUs divide by, which are those of published recipes.
    mfu_bf16_tflops: f64,
    mfu_fp8_tflops: Option<f64>,
}

impl ListedGpu<'_> {
    fn new(gpu: &Gpu) -> ListedGpu<'_> {
        ListedGpu {
            id: &gpu.id,
            name: &gpu.name,
            form: &gpu.form,
            bf16_tflops: gpu.bf16_tflops,
            fp8_tflops: gpu.fp8_tflops,
            hbm_gb: gpu.hbm_gb,
            gpus_per_node: gpu.gpus_per_node,
            mfu_bf16_tflops: gpu.mfu_tflops(Dtype::Bf16),
            mfu_fp8_tflops: gpu.fp8_tflops.map(|_| gpu.mfu_tflops(Dtype::Fp8)),
        }
    }
}

impl ModelsArgs {
    pub(super) fn run(self) -> Result<(), Failure> {
        const HEADER: [&str; 6] = ["id", "title", "params_b", "active_b", "layers", "seq_len"];
        let listed: Vec<_> = Catalog::embedded().models().iter().map(ListedModel::new).collect();
        let rows = listed.iter().map(|model| {
            let [params, active] = [model.params_b, model.active_b].map(|billions| billions.to_string());
            let [layers, seq_len] = [model.layers, model.seq_len].map(|count| count.to_string());
            [model.id.to_string(), model.title.to_string(), params, active, layers, seq_len]
        });
        match self.format.choose() {
            Format::Json => output::json(&listed),
            Format::Csv => output::csv(HEADER, rows),
            Format::Table => output::table(HEADER, &[2, 3, 4, 5], rows),
        }
    }
}

impl GpusArgs {
    pub(super) fn run(self) -> Result<(), Failure> {
        const HEADER: [&str; 9] = [
            "id",
            "name",
            "form",
            "bf16_tflops",
            "fp8_tflops",
            "hbm_gb",
            "gpus_per_node",
            "mfu_bf16_tflops",
            "mfu_fp8_tflops",
        ];
        let listed: Vec<_> = Catalog::embedded().gpus().iter().map(ListedGpu::new).collect();
        let rows = listed.iter().map(|gpu| {
            let [id, name, form] = [gpu.id, gpu.name, gpu.form].map(str::to_string);
            let [fp8, mfu_fp8] = [gpu.fp8_tflops, gpu.mfu_fp8_tflops]
                .map(|tflops| tflops.map_or(String::new(), |tflops| tflops.to_string()));
            let [bf16, memory, mfu_bf16] =
                [gpu.bf16_tflops, gpu.hbm_gb, gpu.mfu_bf16_tflops].map(|number| number.to_string());
            [id, name, form, bf16, fp8, memory, gpu.gpus_per_node.to_string(), mfu_bf16, mfu_fp8]
        });
        match self.format.choose() {
            Format::Json => output::json(&listed),
            Format::Csv => output::csv(HEADER, rows),
            Format::Table => {
                let [id, name, form, bf16, fp8, memory, per_node, mfu_bf16, mfu_fp8] =
                    HEADER.map(TerminalHeading::new);
                let headings = vec![
                    id,
                    name,
                    form.extra(1),
                    bf16.number(),
                    fp8.number(),
                    memory.number(),
                    per_node.number(),
                    mfu_bf16.number().extra(2),
                    mfu_fp8.number().extra(2),
                ];
                let rows = rows.map(|row| row.map(Some).to_vec()).collect();
                output::text_table(TerminalTable::new(headings, rows))
            }
        }
    }
}
