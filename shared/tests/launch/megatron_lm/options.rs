//! The flags of precision, recomputation, overlap and CUDA graphs: what the planned software does, as far as Megatron-LM can.

use super::{JOB, LLAMA, STYLE, fields, flags, of, refused, srun, value};
use crate::{launched, warns};
use trainplan_shared::field::Field;
use trainplan_shared::launch::Launch;
use trainplan_shared::spec::Spec;

#[test]
fn gradients_and_optimizer_are_stored_as_the_planned_software_does() {
    let launch = launched(LLAMA, &[STYLE]);
    let (_, given) = flags(&launch);
    assert!(given.contains_key("--grad-reduce-in-bf16"));
    // A real training may want FP32: the script and the steps before it say how.
    let says = |launch: &Launch| {
        let steps = launch.prepare.iter().map(|step| step.note.to_string()).collect::<String>();
        [launch.script.to_string(), steps].map(|text| text.contains("emove --grad-reduce-in-bf16"))
    };
    assert_eq!(says(&launch), [true, true]);
    assert!(!given.contains_key("--use-precision-aware-optimizer"), "FP8 keeps whole FP32 weights");
    let bf16 = launched(LLAMA, &[STYLE, (Field::Dtype, "bf16")]);
    assert!(flags(&bf16).1.contains_key("--use-precision-aware-optimizer"));
    // Megatron-LM's own gradients in FP32 are more than the recipe's GPUs hold beside all else.
    let own = launched(LLAMA, &[STYLE, (Field::Stack, "megatron-lm-0.14")]);
    assert!(!flags(&own).1.contains_key("--grad-reduce-in-bf16"));
    assert_eq!(says(&own), [false, false]);
    // It keeps BF16 weights beside those in FP8, and NVIDIA's software does not.
    assert!(given.contains_key("--fp8-param-gather") && !flags(&own).1.contains_key("--fp8-param-gather"));
    assert!(warns(&own, "Does not fit: stage "));
    assert!(warns(&own, "The script has Megatron-LM's default FP32 gradients and optimizer."));
}

#[test]
fn cuda_graphs_are_captured_where_megatron_lm_allows_it() {
    let plan = "model=nemotron4-15b gpu=h100 gpus=8 gbs=128";
    let graphed = format!("{plan} stack=megatron-bridge-26.02");
    let has = |text: &str| value(&of(text), "--cuda-graph-impl");
    let dense = of(&graphed);
    assert_eq!(has(&graphed).as_deref(), Some("transformer_engine"));
    // Whole layers, which is the default of all versions.
    assert_eq!(value(&dense, "--cuda-graph-scope"), None);
    assert!(value(&dense, "--te-rng-tracker").is_some() && !warns(&dense, "CUDA graphs"));
    assert_eq!(dense.env["PYTORCH_CUDA_ALLOC_CONF"].shell(), "expandable_segments:False");
    assert_eq!(dense.env["NCCL_GRAPH_REGISTER"].shell(), "0");
    assert_eq!(has(plan), has(&format!("{plan} stack={}", default_software())));
    assert_eq!(has(&format!("{plan} stack=megatron-lm-0.14")), None);
    assert_eq!(
        has(&format!("{plan} stack=megatron-lm-0.14:cuda_graphs=dense")).as_deref(),
        Some("transformer_engine")
    );
    for excluding in [
        "recompute=selective",
        "recompute=full",
        "fsdp=yes",
        "cp=2",
        "tp=2",
        "dtype=fp8-block",
        "env=PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    ] {
        let text = format!("{graphed} {excluding}");
        assert_eq!(has(&text), None, "{excluding}");
    }
    let sharded = of(&format!("{graphed} fsdp=yes"));
    assert!(!warns(&sharded, "CUDA graphs"), "no plan with FSDP assumes them");
    // The launch says why, also where that hardly costs time.
    let small = "model=llama3.2-1b gpu=b200 gpus=8 gbs=64 stack=megatron-bridge-26.02 cp=2";
    assert!(warns(&of(small), "CUDA graphs are off because context parallelism is not tested with them."));
    // Tensor parallelism without overlap permits graphs. Variables of the user stay.
    assert!(has(&format!("{graphed} tp=2 overlap=off")).is_some());
    let own = of(&format!("{graphed} env=PYTORCH_CUDA_ALLOC_CONF=backend:native"));
    assert_eq!(own.env["PYTORCH_CUDA_ALLOC_CONF"].shell(), "backend:native");
    assert!(value(&own, "--cuda-graph-impl").is_some());
    let experts = of("model=qwen3-30b-a3b gpu=h100 gpus=64 gbs=512 ep=8 stack=megatron-bridge-26.06");
    assert_eq!(value(&experts, "--cuda-graph-scope").as_deref(), Some("attn moe_router moe_preprocess"));
    assert!(warns(&experts, "need Megatron-Core 0.16"));
    // The software of 26.02 captures dense models only, unless recipes say otherwise.
    assert_eq!(has("model=mixtral-8x7b gpu=h100 gpus=64 gbs=512 ep=8 stack=megatron-bridge-26.02"), None);
}

fn default_software() -> String {
    let spec = fields("model=llama3.1-8b gpu=h100 gpus=8 gbs=128").into_iter();
    let spec = spec.fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
    spec.scenario().unwrap().options.software.to_string()
}

#[test]
fn parts_of_a_layer_are_recomputed() {
    let plan = "model=deepseek-v3 gpu=h100 gpus=256 gbs=256 ep=64";
    let modules = |text: &str| value(&of(&format!("{plan} {text}")), "--recompute-modules");
    assert_eq!(modules("recompute=selective"), None, "Megatron-LM's default");
    assert_eq!(modules("recompute-modules=moe_act,mlp").as_deref(), Some("mlp moe_act"));
    assert_eq!(
        modules("recompute=selective recompute-modules=mla_up_proj").as_deref(),
        Some("core_attn mla_up_proj")
    );
    let granularity = value(&of(&format!("{plan} recompute-modules=mlp")), "--recompute-granularity");
    assert_eq!(granularity.as_deref(), Some("selective"));
    for (text, says) in [
        ("recompute-modules=attention", "Allowed"),
        ("recompute-modules=mlp recompute=full", "has no effect"),
        ("recompute-modules=moe_act dtype=fp8-delayed", "with delayed scaling"),
    ] {
        let problem = refused(&format!("{plan} {text}"));
        assert_eq!(problem.field, Field::RecomputeModules);
        assert!(problem.to_string().contains(says), "{problem}");
    }
    let dense = refused("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 recompute-modules=moe_act");
    assert!(dense.to_string().contains("needs a mixture of experts"), "{dense}");
}

#[test]
fn tokens_are_sent_once_to_each_nvlink_domain() {
    let launch = |text: &str| of(&format!("{text} stack=megatron-bridge-26.06"));
    let dispatcher = |launch: &Launch| value(launch, "--moe-token-dispatcher-type").unwrap();
    let deep_ep = launch("model=qwen3-30b-a3b gpu=h100 gpus=256 gbs=2048 pp=8 ep=16");
    assert_eq!(dispatcher(&deep_ep), "flex");
    assert!(value(&deep_ep, "--moe-enable-deepep").is_some());
    assert_eq!(value(&deep_ep, "--moe-router-dtype").as_deref(), Some("fp32"));
    assert!(warns(&deep_ep, "needs DeepEP") && warns(&deep_ep, "sends_once_per_domain=no"));
    assert!(deep_ep.prepare.iter().any(|step| step.note.to_string().contains("DeepEP")));
    let hybrid_ep = launch("model=deepseek-v3 gpu=gb200 gpus=256 gbs=2048 pp=4 vp=4 ep=64 dtype=mxfp8");
    assert_eq!(value(&hybrid_ep, "--moe-flex-dispatcher-backend").as_deref(), Some("hybridep"));
    assert_eq!(value(&hybrid_ep, "--moe-enable-deepep"), None);
    for (name, text) in
        [("NVLINK_DOMAIN_SIZE", "72"), ("USE_MNNVL", "1"), ("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN", "64")]
    {
        assert_eq!(hybrid_ep.env[name].shell(), text, "{name}");
    }
    for without in [
        // DeepEP is for Hopper and later.
        "model=mixtral-8x7b gpu=a100 gpus=16 gbs=64 ep=8",
        "model=mixtral-8x7b gpu=h100 gpus=16 gbs=64 ep=8 expert-tp=2 tp=2",
        "model=gpt-oss-20b gpu=h100 gpus=64 gbs=512 ep=8",
        "model=deepseek-v3 gpu=gb200 gpus=256 gbs=2048 ep=256",
    ] {
        let launch = launch(without);
        assert_eq!(dispatcher(&launch), "alltoall", "{without}");
        assert!(!warns(&launch, "deep_ep"), "{without}");
    }
    // The recipes of the model don't.
    let like_recipe = launch("model=qwen3-235b-a22b gpu=h100 gpus=256 gbs=2048 pp=8 ep=16");
    assert_eq!(dispatcher(&like_recipe), "alltoall");
    let plain = of("model=qwen3-30b-a3b gpu=h100 gpus=256 gbs=2048 pp=8 ep=16 stack=megatron-lm-0.14");
    assert_eq!(dispatcher(&plain), "alltoall");
}

#[test]
fn the_exchange_between_experts_overlaps_in_interleaved_pipelines() {
    const FLAG: &str = "--overlap-moe-expert-parallel-comm";
    let base = "model=qwen3-235b-a22b gpus=256 gbs=2048 pp=2 ep=16 stack=megatron-bridge-26.06";
    let hidden = of(&format!("{base} gpu=h100 vp=47"));
    assert!(value(&hidden, FLAG).is_some());
    assert_eq!(hidden.env["CUDA_DEVICE_MAX_CONNECTIONS"].shell(), "32");
    for without in [
        "gpu=h100",
        "gpu=h100 vp=47 recompute=full",
        "gpu=h100 vp=47 overlap=off",
        // One queue for tensor parallelism, many for this.
        "gpu=h100 vp=47 tp=2",
    ] {
        assert_eq!(value(&of(&format!("{base} {without}")), FLAG), None, "{without}");
    }
    assert!(value(&of(&format!("{base} gpu=b200 dtype=mxfp8 vp=47 tp=2")), FLAG).is_some());
    let planned = base.replace("megatron-bridge-26.06", "megatron-lm-0.14");
    assert_eq!(value(&of(&format!("{planned} gpu=h100 vp=47")), FLAG), None);
}

#[test]
fn overlap_flags_follow_the_layout_and_the_gpu() {
    let has = |text: &str, flag: &str| value(&of(text), flag).is_some();
    let base = "model=llama3.1-70b gpus=64 gbs=128 tp=4";
    for (gpu, connections) in [("h100", true), ("a100", true), ("b200", false)] {
        let launch = of(&format!("{base} gpu={gpu}"));
        assert_eq!(launch.env.contains_key("CUDA_DEVICE_MAX_CONNECTIONS"), connections, "{gpu}");
    }
    let overlap = ["--overlap-grad-reduce", "--overlap-param-gather", "--tp-comm-overlap"];
    for flag in overlap {
        assert!(has(&format!("{base} gpu=h100"), flag), "{flag}");
        assert!(!has(&format!("{base} gpu=h100 overlap=off"), flag), "{flag}");
        // The script does what the planned software does.
        let own = format!("{base} gpu=h100 stack=megatron-lm-0.14");
        assert!(!has(&own, flag), "{flag}");
        assert!(has(&format!("{own}:overlaps_dp=yes,overlaps_tp=yes"), flag), "{flag}");
    }
    // It reaches no further than a node, and not into every format.
    assert!(!has(&format!("{base} gpu=gh200"), "--tp-comm-overlap"));
    for (dtype, on) in [
        ("fp8", true),
        ("fp8-delayed", true),
        ("fp8-current", true),
        ("fp8-block", false),
        ("mxfp8", true),
        ("nvfp4", false),
    ] {
        let gpu = if matches!(dtype, "mxfp8" | "nvfp4") { "b200" } else { "h100" };
        assert_eq!(has(&format!("{base} gpu={gpu} dtype={dtype}"), "--tp-comm-overlap"), on, "{dtype}");
    }
    // In MXFP8, only blocks of 128 overlap: here, a rank has 1,904 channels of the MLP.
    let unaligned = "model=own:layers=4,hidden=4096,ffn=7616,heads=32,kv_heads=32,head_dim=128,vocab=32000,gated=1,\
                     tied_embeddings=0,seq_len=4096 gpu=b200 gpus=8 gbs=8 tp=4";
    assert!(!has(&format!("{unaligned} dtype=mxfp8"), "--tp-comm-overlap"));
    assert!(has(&format!("{unaligned} dtype=fp8-current"), "--tp-comm-overlap"));
    let sharded = of("model=llama3.1-8b gpu=h100 gpus=16 gbs=16 cp=2 fsdp=yes");
    assert!(sharded.script.contains("\nunset CUDA_DEVICE_MAX_CONNECTIONS\n"));
    let seen = srun(&sharded, "sh", &[&JOB[..], &[("CUDA_DEVICE_MAX_CONNECTIONS", "1")]].concat());
    assert!(!seen.env.contains_key("CUDA_DEVICE_MAX_CONNECTIONS"));
    assert_eq!(value(&sharded, "--ckpt-format"), Some("fsdp_dtensor".into()));
    assert!(value(&sharded, "--init-model-with-meta-device").is_some());
}
