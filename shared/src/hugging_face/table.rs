//! The families of transformers that can be read.
//!
//! Source of every default: the family's configuration class in Hugging Face `transformers`. Their parameters are
//! compared with its models in `shared/tests/model_families.rs`.

use super::families::{ExpertRule, Family, KvRule, WindowRule};
use super::vectors::{BIASED, Bias, ExpertBias, Norm, QkNorm, RMS, VectorRule};

/// Llama, and the base of most other families.
pub(super) const LLAMA: Family = Family {
    types: &[
        "llama",
        "granite",
        "internlm2",
        "cwm",
        "emu3",
        "emu3_text_model",
        "granite_swa",
        "helium",
        "iquestcoder",
        "smollm3",
    ],
    gated: true,
    vectors: RMS,
    tied: false,
    attention: KvRule::Heads,
    heads: None,
    head_dim: None,
    vocab: None,
    ffn_times: None,
    windows: WindowRule::None,
    linear_attention: false,
    experts: ExpertRule::None,
};

/// An unknown family: Llama, with experts if the file has them.
pub(super) const LLAMA_LIKE: Family = Family { types: &[], experts: ExpertRule::ByFields, ..LLAMA };

/// GPT-2: ungated MLPs, tied embeddings, plain attention, biases everywhere.
const GPT2: Family = Family {
    types: &["gpt2", "gpt-sw3"],
    gated: false,
    vectors: VectorRule { positions: Some(0), ..BIASED },
    tied: true,
    attention: KvRule::Plain,
    ffn_times: Some(4),
    ..LLAMA
};

const QK_PER_HEAD: VectorRule = VectorRule { qk_norm: QkNorm::PerHead, ..RMS };
const QK_WHOLE: VectorRule = VectorRule { qk_norm: QkNorm::Whole, ..RMS };
const FOUR_NORMS: VectorRule = VectorRule { norms: 4, ..RMS };
const QKV_BIASED: VectorRule = VectorRule { qkv_bias: Bias::Always, ..RMS };
/// Attention and MLP in parallel after one norm, biases in the MLP and the head.
const GPTJ: VectorRule =
    VectorRule { norms: 1, qkv_bias: Bias::Never, out_bias: Bias::Never, head_bias: true, ..BIASED };

const FAMILIES: &[Family] = &[
    LLAMA,
    Family { types: &["olmo"], vectors: VectorRule { norm: Norm::None, ..RMS }, ..LLAMA },
    Family { types: &["olmo2"], vectors: QK_WHOLE, ..LLAMA },
    Family { types: &["olmoe"], vectors: QK_WHOLE, experts: ExpertRule::Every, ..LLAMA },
    Family { types: &["flex_olmo"], vectors: QK_WHOLE, experts: ExpertRule::Every, ..LLAMA },
    Family { types: &["olmo3"], vectors: QK_WHOLE, windows: WindowRule::AllButEvery(4, 4096), ..LLAMA },
    Family {
        types: &["mistral", "ministral3"],
        attention: KvRule::Default(8),
        windows: WindowRule::All(Some(4096)),
        ..LLAMA
    },
    Family { types: &["ministral"], attention: KvRule::Default(8), windows: WindowRule::All(None), ..LLAMA },
    Family {
        types: &["mixtral"],
        attention: KvRule::Default(8),
        windows: WindowRule::All(None),
        experts: ExpertRule::Every,
        ..LLAMA
    },
    Family {
        types: &["minimax_m2"],
        vectors: QK_WHOLE,
        attention: KvRule::Default(8),
        experts: ExpertRule::Every,
        ..LLAMA
    },
    Family {
        types: &["qwen2", "qwen2_text"],
        vectors: VectorRule { out_bias: Bias::Never, ..QKV_BIASED },
        attention: KvRule::Default(32),
        windows: WindowRule::Switched,
        ..LLAMA
    },
    Family {
        types: &["qwen3"],
        vectors: QK_PER_HEAD,
        attention: KvRule::Default(32),
        head_dim: Some(128),
        windows: WindowRule::Switched,
        ..LLAMA
    },
    Family {
        types: &["qwen2_moe"],
        vectors: VectorRule {
            qkv_bias: Bias::Unless("qkv_bias"),
            out_bias: Bias::Never,
            expert_bias: ExpertBias::SharedGate,
            ..RMS
        },
        attention: KvRule::Default(16),
        windows: WindowRule::Switched,
        experts: ExpertRule::Sparse(Some(5632)),
        ..LLAMA
    },
    Family {
        types: &["qwen3_moe"],
        vectors: QK_PER_HEAD,
        attention: KvRule::Default(4),
        windows: WindowRule::Switched,
        experts: ExpertRule::Sparse(None),
        ..LLAMA
    },
    Family {
        types: &["qwen3_5", "qwen3_5_text"],
        vectors: QK_PER_HEAD,
        attention: KvRule::Default(4),
        heads: Some(16),
        head_dim: Some(256),
        vocab: Some(248_320),
        linear_attention: true,
        ..LLAMA
    },
    Family {
        types: &["qwen3_next"],
        vectors: VectorRule { expert_bias: ExpertBias::SharedGate, ..QK_PER_HEAD },
        attention: KvRule::Default(2),
        heads: Some(16),
        head_dim: Some(256),
        linear_attention: true,
        experts: ExpertRule::Sparse(Some(512)),
        ..LLAMA
    },
    Family {
        types: &["qwen3_5_moe", "qwen3_5_moe_text"],
        vectors: VectorRule { expert_bias: ExpertBias::SharedGate, ..QK_PER_HEAD },
        attention: KvRule::Default(2),
        heads: Some(16),
        head_dim: Some(256),
        vocab: Some(248_320),
        linear_attention: true,
        experts: ExpertRule::Sparse(Some(512)),
        ..LLAMA
    },
    Family {
        types: &["mellum"],
        vectors: QK_PER_HEAD,
        windows: WindowRule::All(None),
        experts: ExpertRule::Sparse(None),
        ..LLAMA
    },
    Family {
        types: &["flint"],
        vectors: VectorRule { sinks: true, ..QK_PER_HEAD },
        experts: ExpertRule::Sparse(Some(1024)),
        ..LLAMA
    },
    Family {
        types: &["kolibri1"],
        vectors: VectorRule { norms: 4, ..QK_PER_HEAD },
        experts: ExpertRule::Sparse(Some(512)),
        ..LLAMA
    },
    Family {
        types: &["laguna"],
        vectors: VectorRule {
            head_gates: Bias::Unless("gating"),
            expert_bias: ExpertBias::Router,
            ..QK_PER_HEAD
        },
        experts: ExpertRule::Sparse(Some(512)),
        ..LLAMA
    },
    Family {
        types: &["deepseek_v2"],
        attention: KvRule::Latent,
        experts: ExpertRule::DeepSeek { first: 0, shared: 2 },
        ..LLAMA
    },
    Family {
        types: &["deepseek_v3", "kimi_k2"],
        attention: KvRule::Latent,
        experts: ExpertRule::DeepSeek { first: 3, shared: 1 },
        ..LLAMA
    },
    Family {
        types: &["deepseek_v32", "glm_moe_dsa"],
        vectors: VectorRule { indexer: true, ..RMS },
        attention: KvRule::Latent,
        experts: ExpertRule::DeepSeek { first: 3, shared: 1 },
        ..LLAMA
    },
    Family {
        types: &["glm4_moe_lite"],
        attention: KvRule::Latent,
        experts: ExpertRule::DeepSeek { first: 1, shared: 1 },
        ..LLAMA
    },
    Family {
        types: &["axk1"],
        vectors: VectorRule { norms: 3, ..RMS },
        attention: KvRule::Latent,
        experts: ExpertRule::DeepSeek { first: 1, shared: 1 },
        ..LLAMA
    },
    Family { types: &["minicpm3", "youtu"], tied: true, attention: KvRule::Latent, ..LLAMA },
    Family {
        types: &["glm4_moe"],
        vectors: VectorRule { qk_norm: QkNorm::PerHeadIf("use_qk_norm"), out_bias: Bias::Never, ..RMS },
        attention: KvRule::Default(8),
        experts: ExpertRule::DeepSeek { first: 1, shared: 1 },
        ..LLAMA
    },
    Family {
        types: &["solar_open"],
        attention: KvRule::Default(8),
        experts: ExpertRule::DeepSeek { first: 0, shared: 1 },
        ..LLAMA
    },
    Family {
        types: &["dots1", "hy_v3"],
        vectors: QK_PER_HEAD,
        experts: ExpertRule::DeepSeek { first: 1, shared: 1 },
        ..LLAMA
    },
    Family {
        types: &["exaone_moe"],
        vectors: QK_PER_HEAD,
        windows: WindowRule::AllButEvery(4, 4096),
        experts: ExpertRule::DeepSeek { first: 1, shared: 1 },
        ..LLAMA
    },
    Family { types: &["exaone4"], vectors: QK_PER_HEAD, windows: WindowRule::AllButEvery(4, 4096), ..LLAMA },
    Family {
        types: &["gpt_oss"],
        vectors: VectorRule {
            qkv_bias: Bias::Unless("attention_bias"),
            out_bias: Bias::Unless("attention_bias"),
            sinks: true,
            expert_bias: ExpertBias::All,
            ..RMS
        },
        attention: KvRule::Default(8),
        head_dim: Some(64),
        windows: WindowRule::AllButEvery(2, 128),
        experts: ExpertRule::Every,
        ..LLAMA
    },
    Family {
        types: &["llama4", "llama4_text"],
        attention: KvRule::Default(8),
        head_dim: Some(128),
        windows: WindowRule::Chunks,
        experts: ExpertRule::Llama4,
        ..LLAMA
    },
    Family { types: &["phi3", "phi4_multimodal"], windows: WindowRule::All(None), ..LLAMA },
    Family {
        types: &["phimoe"],
        vectors: VectorRule { norm: Norm::WeightAndBias, ..RMS },
        attention: KvRule::Default(8),
        windows: WindowRule::All(None),
        experts: ExpertRule::Every,
        ..LLAMA
    },
    Family {
        types: &["phi"],
        gated: false,
        vectors: VectorRule { norms: 1, head_bias: true, ..BIASED },
        ..LLAMA
    },
    Family { types: &["gemma"], tied: true, attention: KvRule::Default(16), head_dim: Some(256), ..LLAMA },
    Family {
        types: &["gemma2"],
        vectors: FOUR_NORMS,
        tied: true,
        attention: KvRule::Default(4),
        head_dim: Some(256),
        windows: WindowRule::AllButEvery(2, 4096),
        ..LLAMA
    },
    Family {
        types: &["vaultgemma"],
        tied: true,
        attention: KvRule::Default(4),
        head_dim: Some(256),
        windows: WindowRule::AllButEvery(2, 4096),
        ..LLAMA
    },
    Family {
        types: &["gemma3", "gemma3_text"],
        vectors: VectorRule { qk_norm: QkNorm::PerHead, ..FOUR_NORMS },
        tied: true,
        attention: KvRule::Default(4),
        heads: Some(8),
        head_dim: Some(256),
        vocab: Some(262_208),
        windows: WindowRule::AllButEvery(6, 4096),
        ..LLAMA
    },
    Family {
        types: &["cohere"],
        vectors: VectorRule { norms: 1, qk_norm: QkNorm::WholeIf("use_qk_norm"), ..RMS },
        tied: true,
        ..LLAMA
    },
    Family {
        types: &["cohere2"],
        vectors: VectorRule { norms: 1, ..RMS },
        tied: true,
        windows: WindowRule::AllButEvery(4, 4096),
        ..LLAMA
    },
    Family {
        types: &["cohere2_moe"],
        vectors: VectorRule { norms: 1, ..RMS },
        tied: true,
        windows: WindowRule::AllButEvery(4, 4096),
        experts: ExpertRule::Every,
        ..LLAMA
    },
    Family {
        types: &["ernie4_5"],
        vectors: VectorRule {
            qkv_bias: Bias::If("use_bias"),
            out_bias: Bias::If("use_bias"),
            mlp_bias: Bias::If("use_bias"),
            ..RMS
        },
        tied: true,
        ..LLAMA
    },
    Family {
        types: &["ernie4_5_moe"],
        vectors: VectorRule {
            qkv_bias: Bias::If("use_bias"),
            out_bias: Bias::If("use_bias"),
            mlp_bias: Bias::If("use_bias"),
            expert_bias: ExpertBias::Router,
            ..RMS
        },
        tied: true,
        experts: ExpertRule::Ernie,
        ..LLAMA
    },
    Family { types: &["glm"], vectors: VectorRule { out_bias: Bias::Never, ..RMS }, ..LLAMA },
    Family { types: &["glm4"], vectors: VectorRule { out_bias: Bias::Never, ..FOUR_NORMS }, ..LLAMA },
    Family {
        types: &["granitemoe", "granitemoeshared", "granitemoe_swa", "aria_text"],
        experts: ExpertRule::Every,
        ..LLAMA
    },
    Family { types: &["granitemoehybrid"], attention: KvRule::Mixed, experts: ExpertRule::Every, ..LLAMA },
    Family { types: &["bamba", "falcon_h1"], attention: KvRule::Mixed, ..LLAMA },
    Family { types: &["hunyuan_v1_dense"], vectors: QK_PER_HEAD, ..LLAMA },
    Family { types: &["hunyuan_v1_moe"], vectors: QK_PER_HEAD, experts: ExpertRule::EveryAndShared, ..LLAMA },
    Family { types: &["hyperclovax"], vectors: FOUR_NORMS, ..LLAMA },
    Family {
        types: &["internlm3"],
        vectors: VectorRule {
            qkv_bias: Bias::If("qkv_bias"),
            out_bias: Bias::If("bias"),
            mlp_bias: Bias::If("bias"),
            ..RMS
        },
        ..LLAMA
    },
    Family {
        types: &["seed_oss"],
        vectors: VectorRule {
            qkv_bias: Bias::Unless("attention_bias"),
            out_bias: Bias::If("attention_out_bias"),
            ..RMS
        },
        ..LLAMA
    },
    Family {
        types: &["stablelm"],
        vectors: VectorRule {
            norm: Norm::WeightAndBias,
            qkv_bias: Bias::If("use_qkv_bias"),
            out_bias: Bias::Never,
            ..RMS
        },
        ..LLAMA
    },
    // Its attention and its MLPs have a norm before the last projection.
    Family { types: &["bitnet"], vectors: VectorRule { norms: 3, ..RMS }, ..LLAMA },
    Family { types: &["apertus"], gated: false, vectors: QK_PER_HEAD, ..LLAMA },
    Family { types: &["arcee"], gated: false, ..LLAMA },
    Family { types: &["nanochat"], gated: false, vectors: VectorRule { norm: Norm::None, ..RMS }, ..LLAMA },
    Family {
        types: &["jais2"],
        gated: false,
        vectors: VectorRule {
            qkv_bias: Bias::Unless("attention_bias"),
            out_bias: Bias::Unless("attention_bias"),
            mlp_bias: Bias::Unless("mlp_bias"),
            ..BIASED
        },
        ..LLAMA
    },
    Family {
        types: &["persimmon", "fuyu"],
        gated: false,
        vectors: VectorRule { qk_norm: QkNorm::PerHeadIf("qk_layernorm"), ..BIASED },
        ..LLAMA
    },
    Family {
        types: &["starcoder2"],
        gated: false,
        vectors: VectorRule {
            qkv_bias: Bias::Unless("use_bias"),
            out_bias: Bias::Unless("use_bias"),
            mlp_bias: Bias::Unless("use_bias"),
            ..BIASED
        },
        tied: true,
        attention: KvRule::Default(2),
        ..LLAMA
    },
    Family {
        types: &["nemotron"],
        gated: false,
        vectors: VectorRule { norm: Norm::WeightAndBias, ..RMS },
        ..LLAMA
    },
    Family {
        types: &["nemotron_h"],
        gated: false,
        vectors: VectorRule { norms: 1, ..RMS },
        attention: KvRule::Hybrid,
        ..LLAMA
    },
    GPT2,
    Family { types: &["gpt_bigcode"], attention: KvRule::Falcon, ..GPT2 },
    Family {
        types: &["gpt_neo"],
        vectors: VectorRule { positions: Some(0), qkv_bias: Bias::Never, ..BIASED },
        windows: WindowRule::Local,
        ..GPT2
    },
    Family {
        types: &["gpt_neox"],
        vectors: VectorRule {
            qkv_bias: Bias::Unless("attention_bias"),
            out_bias: Bias::Unless("attention_bias"),
            ..BIASED
        },
        tied: false,
        ffn_times: None,
        ..GPT2
    },
    Family {
        types: &["gpt_neox_japanese"],
        vectors: VectorRule { qkv_bias: Bias::Never, out_bias: Bias::Never, mlp_bias: Bias::Never, ..BIASED },
        ..GPT2
    },
    Family { types: &["gptj", "codegen"], vectors: GPTJ, tied: false, ..GPT2 },
    Family {
        types: &["openai-gpt"],
        vectors: VectorRule { positions: Some(0), outer_norms: 0, ..BIASED },
        ..GPT2
    },
    Family { types: &["ctrl"], vectors: VectorRule { head_bias: true, ..BIASED }, ..GPT2 },
    Family { types: &["opt", "biogpt"], vectors: VectorRule { positions: Some(2), ..BIASED }, ..GPT2 },
    // Its positions are sines, which are not learned.
    Family { types: &["xglm"], vectors: BIASED, ..GPT2 },
    // It normalizes the embedding too.
    Family { types: &["bloom"], vectors: VectorRule { outer_norms: 2, ..BIASED }, ..GPT2 },
    Family {
        types: &["falcon"],
        vectors: VectorRule {
            norms: 1,
            qkv_bias: Bias::If("bias"),
            out_bias: Bias::If("bias"),
            mlp_bias: Bias::If("bias"),
            ..BIASED
        },
        attention: KvRule::Falcon,
        ..GPT2
    },
    Family { types: &["mpt"], vectors: RMS, attention: KvRule::Mpt, ..GPT2 },
    Family {
        types: &["dbrx"],
        gated: true,
        vectors: RMS,
        tied: false,
        attention: KvRule::Mpt,
        experts: ExpertRule::Dbrx,
        ..GPT2
    },
];

/// Returns the family of a `model_type`, if it is known.
pub(super) fn family(model_type: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.types.contains(&model_type))
}

/// Returns the known `model_type` most like `text`, if they differ by few letters.
pub(super) fn most_alike(text: &str) -> Option<&'static str> {
    let known = FAMILIES.iter().flat_map(|family| family.types).copied();
    let likeness = known.map(|name| (strsim::normalized_levenshtein(text, name), name));
    let close = likeness.filter(|(likeness, _)| *likeness >= 0.7);
    close.max_by(|(left, _), (right, _)| left.total_cmp(right)).map(|(_, name)| name)
}
