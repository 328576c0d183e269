//! The physical model against cases that can be computed by hand.

#![allow(missing_docs, reason = "a test's name says what it shows")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use trainplan_shared::estimate::{Breakdown, Constants};
use trainplan_shared::link;

/// Returns the modelled step of a query's scenario.
fn modelled(query: &str) -> Breakdown {
    let scenario = link::read(query).spec.scenario().unwrap();
    Breakdown::of(&scenario.inputs(), Constants::embedded())
}

/// 126 layers in `pp` stages on 64 GPUs for each, with `gbs` sequences for 8 data-parallel ranks.
fn pipeline(pp: u32, vp: u32, gbs: u32) -> Breakdown {
    modelled(&format!(
        "m=llama3.1-405b&gpu=h100&n={}&tp=8&pp={pp}&vp={vp}&gbs={gbs}&stack=megatron-bridge-26.06",
        64 * pp
    ))
}

/// Seconds that the slowest stage works on a step.
fn work_s(step: &Breakdown) -> f64 {
    step.matmul + step.attention + step.memory_bound + step.tensor_parallel + step.host
}

#[test]
fn a_pipeline_of_one_stage_has_no_bubble() {
    assert_eq!(pipeline(1, 1, 64).bubble.to_bits(), 0.0_f64.to_bits());
}

/// A pipeline fills and drains once per step: PP - 1 micro batches' time, however many there are.
#[test]
fn the_bubble_is_one_micro_batch_for_each_further_stage() {
    for pp in [2, 3, 7] {
        let (few, many) = (pipeline(pp, 1, 64), pipeline(pp, 1, 128));
        assert!((few.bubble / many.bubble - 1.0).abs() < 1e-9, "PP {pp}: {} {}", few.bubble, many.bubble);
        // 64 sequences are 8 micro batches on each rank. The last stage also computes the loss, so the others are faster.
        let micro_batches = few.bubble / (work_s(&few) / 8.0);
        let most = f64::from(pp - 1);
        assert!((0.8 * most..=most).contains(&micro_batches), "PP {pp}: {micro_batches}");
    }
}

#[test]
fn interleaving_divides_the_bubble() {
    let (whole, parts) = (pipeline(7, 1, 64), pipeline(7, 6, 64));
    assert!((whole.bubble / parts.bubble - 6.0).abs() < 0.1, "{} {}", whole.bubble, parts.bubble);
}

/// Transformer Engine casts activations before tensor-parallel ranks gather them: 3 of 5 transfers are half as large in FP8 and a
/// quarter in NVFP4. Other software gathers BF16.
#[test]
fn narrow_precisions_gather_fewer_bytes() {
    let ratio = |gpu: &str, dtype: &str, stack: &str| {
        let tensor_parallel_s = |dtype: &str| {
            // With so many tokens, latency hardly counts: at most 4 % of the narrowest.
            let layout = "n=40&tp=8&pp=5&mbs=8&gbs=64";
            modelled(&format!("m=llama3.1-70b&gpu={gpu}&{layout}&dtype={dtype}&stack={stack}"))
                .tensor_parallel
        };
        tensor_parallel_s(dtype) / tensor_parallel_s("bf16")
    };
    for (gpu, dtype, stack, expected) in [
        ("h100", "fp8-current", "megatron-bridge-26.06", 3.5 / 5.0),
        ("b300", "nvfp4", "megatron-bridge-26.06", 2.75 / 5.0),
        ("h100", "fp8-current", "torchtitan", 1.0),
    ] {
        let ratio = ratio(gpu, dtype, stack);
        assert!((ratio / expected - 1.0).abs() < 0.04, "{dtype} {stack}: {ratio}");
    }
}

/// DeepSeek-V3 sends a token to 8 of 256 narrow experts, Mixtral to 2 of 8 wide ones.
#[test]
fn early_software_on_blackwell_slows_down_narrow_experts_more_than_wide_ones() {
    let slowdown = |query: &str| {
        let step_s = |stack: &str| modelled(&format!("{query}&gpu=b200&stack={stack}")).step_time_s();
        step_s("nemo-2") / step_s("megatron-bridge-25.09")
    };
    let wide = slowdown("m=mixtral-8x7b&n=64&ep=8&gbs=256");
    let narrow = slowdown("m=deepseek-v3&n=256&ep=64&gbs=2048");
    assert!(narrow > 1.2 * wide, "{narrow} {wide}");
    // Mixtral was once predicted three to four times too slow.
    assert!((0.9..1.5).contains(&wide), "{wide}");
}

/// Activations go through PCIe 5.0 at 64 GB/s on an H100, and through NVLink-C2C at 450 GB/s on a GH200.
#[test]
fn copies_to_cpu_memory_cost_what_computation_does_not_hide() {
    let host_s = |gpu: &str, layers: u32| {
        modelled(&format!(
            "m=llama3.1-70b&gpu={gpu}&n=64&fsdp=on&gbs=256&stack=megatron-bridge-26.06&ol={layers}"
        ))
        .host
    };
    assert_eq!(host_s("gh200", 79).to_bits(), host_s("gh200", 0).to_bits());
    // One layer is copied while all others compute.
    assert_eq!(host_s("h100", 1).to_bits(), host_s("h100", 0).to_bits());
    assert!(host_s("h100", 79) > host_s("h100", 60));
    assert!(host_s("h100", 60) > host_s("h100", 0));
}
