//! Estimates per second on one core, which limits how many scenarios a search can examine.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use trainplan_shared::batch::Batch;
use trainplan_shared::catalog::{Catalog, Gpu, Model};
use trainplan_shared::estimate::{Breakdown, Constants, Estimate, Inputs, peak_bytes};
use trainplan_shared::layout::{Degrees, Layout};
use trainplan_shared::options::TrainingOptions;
use trainplan_shared::precision::Dtype;

/// Dense, routed and hybrid models, small and large.
const MODELS: &[&str] = &[
    "llama3.1-8b",
    "llama3.1-405b",
    "gpt3-175b",
    "mixtral-8x7b",
    "qwen3-235b-a22b",
    "deepseek-v3",
    "nemotron-h-56b",
];
const GPUS: &[(&str, Dtype)] = &[("h100", Dtype::Bf16), ("h100", Dtype::Fp8), ("gb200", Dtype::Mxfp8)];

/// The owned inputs of an estimate.
struct Case {
    model: &'static Model,
    gpu: &'static Gpu,
    dtype: Dtype,
    layout: Layout,
    batch: Batch,
    options: TrainingOptions,
}

impl Case {
    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            architecture: &self.model.architecture,
            gpu: self.gpu,
            dtype: self.dtype,
            layout: &self.layout,
            batch: &self.batch,
            options: &self.options,
        }
    }
}

/// Layouts of every model on every GPU, through pipelines of 1 to 16 stages.
fn cases() -> Vec<Case> {
    let catalog = Catalog::embedded();
    let mut cases = Vec::new();
    for model in MODELS {
        let model = catalog.model(model).unwrap();
        for (gpu, dtype) in GPUS {
            for (tp, pp) in [(1, 1), (2, 2), (4, 4), (8, 8), (4, 16)] {
                let ep = if model.architecture.moe.is_some() { 8 } else { 1 };
                let degrees = Degrees { gpus: 1024, tp, pp, ep, ..Degrees::default() };
                let Ok(layout) = Layout::new(&degrees, &model.architecture) else { continue };
                let batch = Batch::new(model.seq_len, 1, 1024, &layout).unwrap();
                let gpu = catalog.gpu(gpu).unwrap();
                cases.push(Case {
                    model,
                    gpu,
                    dtype: *dtype,
                    layout,
                    batch,
                    options: TrainingOptions::default(),
                });
            }
        }
    }
    cases
}

fn benches(c: &mut Criterion) {
    let cases = cases();
    let inputs: Vec<Inputs<'_>> = cases.iter().map(Case::inputs).collect();
    let constants = Constants::embedded();
    let mut group = c.benchmark_group("estimate");
    // One element is one estimate: criterion's elements per second are estimates per second.
    group.throughput(Throughput::Elements(inputs.len() as u64));
    let mut measure = |name: &str, estimate: &dyn Fn(&Inputs<'_>) -> f64| {
        group.bench_function(name, |b| {
            b.iter(|| inputs.iter().map(|inputs| estimate(black_box(inputs))).sum::<f64>());
        });
    };
    measure("step time", &|inputs| Breakdown::of(inputs, constants).step_time_s());
    measure("memory", &|inputs| peak_bytes(inputs));
    measure("both, as a search needs them", &|inputs| {
        Breakdown::of(inputs, constants).step_time_s() + peak_bytes(inputs)
    });
    measure("with anchors and allocation", &|inputs| Estimate::from_embedded(inputs).step_time_s.mid);
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
