//! Layouts per second on one core: the whole space of a model on a number of GPUs, and its ten best layouts.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use trainplan_shared::field::Field;
use trainplan_shared::question::Survey;
use trainplan_shared::search::LayoutSearch;
use trainplan_shared::spec::Spec;

/// Layouts that a search lists.
const MOST: usize = 10;

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("search");
    group.sample_size(10);
    for (model, gpu, gpus) in
        [("llama3.1-70b", "h100", 512), ("qwen3-235b-a22b", "b200", 512), ("deepseek-v3", "h100", 1024)]
    {
        let spec = Spec::default().with(Field::Model, model).with(Field::GpuTypes, gpu);
        let question = spec.question().unwrap();
        let offer = &question.offers[0];
        let name = format!("{model} on {gpus} {gpu}");
        let search = LayoutSearch::new(question.space(offer));
        let counts = search.rank(gpus, MOST).counts;
        group.throughput(Throughput::Elements(counts.combinations));
        group.bench_function(BenchmarkId::new("whole", &name), |bencher| {
            bencher.iter(|| LayoutSearch::new(black_box(question.space(offer))).rank(gpus, MOST));
        });
        // A question searches many numbers of GPUs and prepares once.
        group.bench_function(BenchmarkId::new("rank", &name), |bencher| {
            bencher.iter(|| search.rank(black_box(gpus), MOST));
        });
    }
    group.finish();
    // What the Plan page asks: all round numbers of GPUs of both types, then every node below the best.
    let mut group = c.benchmark_group("question");
    group.sample_size(10);
    for model in ["llama3.1-70b", "qwen3-235b-a22b"] {
        let spec = Spec::default().with(Field::Model, model).with(Field::GpuTypes, "h100,b200");
        let question = spec.with(Field::Tokens, "10T").with(Field::Deadline, "60d").question().unwrap();
        group.bench_function(format!("{model} on H100 or B200"), |bencher| {
            let answer = |offer| Survey::new(&question, offer).finish();
            bencher.iter(|| question.offers.iter().map(answer).collect::<Vec<_>>());
        });
    }
    group.finish();
}

criterion_group!(search, benches);
criterion_main!(search);
