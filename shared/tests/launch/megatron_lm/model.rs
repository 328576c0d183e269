//! The flags that describe the model and how its layers are divided among stages.

use super::{EVERYTHING, fields, flags, of, try_launch, value};
use crate::warns;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::launch::Launch;
use trainplan_shared::spec::Spec;

#[test]
fn uneven_stages_are_written_layer_by_layer() {
    for text in [
        "model=deepseek-v3 gpu=h100 gpus=256 gbs=2048 pp=16 vp=2 ep=16",
        "model=deepseek-v3 gpu=h100 gpus=256 gbs=2048 pp=4 vp=3 ep=64 pipeline-split=15,16,16,14",
        "model=llama3.1-405b gpu=h100 gpus=256 gbs=256 tp=8 pp=8 vp=5 pipeline-split=counted",
        "model=llama3.1-8b gpu=h100 gpus=24 gbs=24 pp=3",
    ] {
        let spec =
            fields(text).into_iter().fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
        let scenario = spec.scenario().unwrap();
        let layout = value(&of(text), "--pipeline-model-parallel-layout").unwrap();
        let (pp, mtp) = (scenario.layout.pp() as usize, scenario.architecture.mtp_layers as usize);
        assert!(layout.starts_with('E') && layout.ends_with(&format!("{}L", "m".repeat(mtp))), "{layout}");
        let mut stages = vec![0; pp];
        let chunks: Vec<&str> = layout.split('|').collect();
        assert_eq!(chunks.len() as u32, scenario.layout.pp() * scenario.layout.vp());
        for (chunk, layers) in chunks.into_iter().enumerate() {
            let layers = layers.trim_matches(['E', 'm', 'L']);
            let count = layers.strip_prefix("t*").map_or(layers.len() as u32, |count| count.parse().unwrap());
            stages[chunk % pp] += count;
        }
        assert_eq!(stages, scenario.layout.stages(), "{layout}");
    }
    // What the plain flags can say, they say.
    let even = of("model=llama3.1-8b gpu=h100 gpus=16 gbs=32 pp=4 vp=2");
    assert_eq!(value(&even, "--pipeline-model-parallel-layout"), None);
    assert_eq!(value(&even, "--num-virtual-stages-per-pipeline-rank"), Some("2".into()));
    let named = of("model=llama3.1-8b gpu=h100 gpus=16 gbs=32 pp=4 pipeline-split=8,8,8,8");
    assert_eq!(value(&named, "--pipeline-model-parallel-layout"), None);
}

#[test]
fn multi_token_prediction_shortens_the_last_stage() {
    let text = "model=deepseek-v3 gpu=h100 gpus=256 gbs=2048 pp=4 vp=4 ep=64";
    assert!(warns(&of(text), "Set --pipeline-split 16,16,16,13."));
    let better = of(&format!("{text} pipeline-split=16,16,16,13"));
    assert!(!warns(&better, "multi-token prediction"));
    // As in Megatron-Bridge's recipe for GB300: the last chunk has one layer, the prediction and the loss.
    let chunks = value(&better, "--pipeline-model-parallel-layout").unwrap();
    assert_eq!(chunks, format!("Et*4|{}tmL", "t*4|".repeat(14)));
}

#[test]
fn kinds_of_layers_are_counted() {
    let hybrid = of("model=nemotron-h-56b gpu=h100 gpus=64 gbs=64 tp=8");
    assert!(flags(&hybrid).0.ends_with("/pretrain_mamba.py"));
    let pattern = value(&hybrid, "--hybrid-override-pattern").unwrap();
    let count = |letter: char| pattern.matches(letter).count();
    assert_eq!((count('M'), count('-'), count('*'), pattern.len()), (54, 54, 10, 118));
    assert!(warns(&hybrid, "spread evenly") && warns(&hybrid, "--hybrid-layer-pattern"));
    let dense = of("model=nemotron-h-47b gpu=h100 gpus=64 gbs=64 tp=8");
    assert!(value(&dense, "--hybrid-override-pattern").unwrap().starts_with('-'));
    let routed = of("model=deepseek-v3 gpu=h100 gpus=256 gbs=256 ep=64");
    assert_eq!(value(&routed, "--moe-layer-freq"), Some("[0]*3+[1]*58".into()));
    assert_eq!(value(&routed, "--mtp-num-layers"), Some("1".into()));
    assert!(warns(&routed, "--moe-router-force-load-balancing"));
    let windowed = of("model=gpt-oss-120b gpu=h100 gpus=64 gbs=64 ep=64");
    assert_eq!(value(&windowed, "--window-size"), Some("127,0".into()));
    assert_eq!(value(&windowed, "--window-attn-skip-freq"), Some("([1]*1+[0]*1)*18".into()));
}

#[test]
fn every_version_trains_the_same_vocabulary() {
    let number = |launch: &Launch, flag: &str| value(launch, flag).unwrap().parse::<u32>().unwrap();
    for model in Catalog::embedded().models().iter().filter(|model| model.architecture.mamba.is_none()) {
        for tp in [1, 2, 4] {
            let Ok(launch) =
                try_launch(&fields(&format!("model={} gpu=h100 gpus=128 gbs=128 tp={tp}", model.id)))
            else {
                continue;
            };
            let multiple = number(&launch, "--make-vocab-size-divisible-by") * tp;
            // Megatron-Core 0.18 and later count no further token for the end of a document.
            let tokens = number(&launch, "--vocab-size");
            for tokens in [tokens, tokens + 1] {
                let wanted = model.architecture.vocab.next_multiple_of(tp);
                assert_eq!(tokens.next_multiple_of(multiple), wanted, "{} TP {tp}", model.id);
            }
        }
    }
}

#[test]
fn routers_are_the_models() {
    let launch = |model: &str| of(&format!("model={model} gpu=h100 gpus=256 gbs=256 ep=8"));
    let router = |model: &str| {
        let (_, flags) = flags(&launch(model));
        let of_router = flags
            .into_iter()
            .filter(|(flag, _)| flag.starts_with("--moe-router-") && *flag != "--moe-router-topk");
        of_router
            .map(|(flag, values)| {
                [&flag["--moe-router-".len()..]]
                    .into_iter()
                    .chain(values.iter().map(String::as_str))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        router("deepseek-v3"),
        [
            "bias-update-rate 1e-3",
            "dtype fp32",
            "enable-expert-bias",
            "force-load-balancing",
            "group-topk 4",
            "load-balancing-type seq_aux_loss",
            "num-groups 8",
            "score-function sigmoid",
            "topk-scaling-factor 2.5",
        ]
    );
    // DeepEP takes weights in FP32.
    assert_eq!(
        router("mixtral-8x7b"),
        ["dtype fp32", "force-load-balancing", "load-balancing-type aux_loss"]
    );
    assert_eq!(router("gpt-oss-20b"), ["force-load-balancing", "load-balancing-type aux_loss"]);
    let llama4 =
        ["dtype fp32", "force-load-balancing", "load-balancing-type aux_loss", "score-function sigmoid"];
    assert_eq!(router("llama4-scout"), llama4);
    assert!(router("kimi-k2").contains(&"topk-scaling-factor 2.827".to_string()));
    assert!(router("deepseek-v2").contains(&"pre-softmax".to_string()));
    assert!(
        warns(&launch("grok-1"), "router scores experts")
            && !warns(&launch("mixtral-8x7b"), "scores experts")
    );
    // Megatron-LM refuses a softmax over one expert.
    let single = EVERYTHING[13].replace("top_k=2", "top_k=1");
    assert!(value(&of(&single), "--moe-router-pre-softmax").is_some());
}

#[test]
fn attention_is_the_models() {
    let has_norm = |text: &str| flags(&of(text)).1.contains_key("--qk-layernorm");
    assert!(has_norm("model=qwen3-8b gpu=h100 gpus=8 gbs=128"));
    assert!(has_norm("model=qwen3-30b-a3b gpu=h100 gpus=8 gbs=512 ep=8"));
    assert!(!has_norm("model=llama3.1-8b gpu=h100 gpus=8 gbs=128"));
    let base = |model: &str| value(&of(&format!("model={model} gpu=h100 gpus=8 gbs=128")), "--rotary-base");
    assert_eq!(base("llama3.1-8b").as_deref(), Some("500000"));
    assert_eq!(base("qwen3-8b").as_deref(), Some("1000000"));
    assert_eq!(base("llama2-7b"), None, "Megatron-LM's default");
    assert_eq!(base("nemotron-h-8b"), None, "a hybrid without rotary positions");
}
