//! How fast logs are parsed, beside what `grep -c train_step_timing` must do with the same bytes.

#![allow(missing_docs, reason = "criterion's macros make public items")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use memchr::{memchr, memmem};
use std::hint::black_box;
use trainplan_shared::log::parse;

const SIZE: usize = 64 << 20;

/// The traces of many ranks, with a step now and then: what fills gigabytes.
fn trace() -> Vec<u8> {
    filled(|line| match line % 20_000 {
        0 => step(line / 20_000),
        _ => format!(
            "n{}:4123:5021 [{}] NCCL INFO AllGather: opCount {:x} sendbuff 0x7ffb{:08x} recvbuff 0x7ffb4713c200 count \
             {} datatype 9 op 0 root 0 comm 0x55556b100660 [nranks=128] stream 0x5555630c58b0\n",
            line % 512,
            line % 8,
            line / 8,
            line * 4099,
            line * 31 % 100_000
        ),
    })
}

/// Nothing but steps: the most that can be found.
fn steps() -> Vec<u8> {
    filled(step)
}

fn step(iteration: usize) -> String {
    format!(
        "Training epoch 0, iteration {iteration}/9999999 | lr: 7.496e-06 | global_batch_size: 128 | global_step: \
         {iteration} | peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: 11.96 | \
         train_step_timing in s: 12.39 | TFLOPS_per_GPU: 1.601e+03 | consumed_samples: {}\n",
        128 * (iteration + 1)
    )
}

fn filled(line: impl Fn(usize) -> String) -> Vec<u8> {
    let mut log = Vec::with_capacity(SIZE + 4096);
    for number in 0.. {
        if log.len() >= SIZE {
            break;
        }
        log.extend_from_slice(line(number).as_bytes());
    }
    log
}

/// How many lines have the words, as grep counts them.
fn grep(log: &[u8]) -> usize {
    let words = memmem::Finder::new("train_step_timing");
    let mut rest = log;
    let mut count = 0;
    while let Some(at) = words.find(rest) {
        count += 1;
        let end = memchr(b'\n', &rest[at..]).map_or(rest.len(), |end| at + end);
        rest = &rest[end..];
    }
    count
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("log");
    group.sample_size(10);
    for (name, log) in [("trace", trace()), ("steps", steps())] {
        group.throughput(Throughput::Bytes(log.len() as u64));
        group.bench_function(BenchmarkId::new("parse", name), |b| b.iter(|| parse(black_box(&log))));
        group.bench_function(BenchmarkId::new("grep", name), |b| b.iter(|| grep(black_box(&log))));
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
