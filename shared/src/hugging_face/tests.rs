//! Published files, reduced to the facts of a model's shape.

use super::*;
use crate::architecture::{AttentionKind, SlidingWindow};
use crate::catalog::Catalog;
use proptest::prelude::*;

/// Published models that are in the catalog; their files must give the same shapes.
const IN_CATALOG: &[(&str, &str)] = &[
    (
        "llama3.1-8b",
        r#"{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu",
            "max_position_embeddings": 131072, "mlp_bias": false, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
            "rope_scaling": {"factor": 8.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
            "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true}"#,
    ),
    (
        "llama3.2-1b",
        r#"{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
            "tie_word_embeddings": true, "rope_scaling": {"original_max_position_embeddings": 8192}}"#,
    ),
    (
        "llama2-7b",
        r#"{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "vocab_size": 32000, "max_position_embeddings": 4096}"#,
    ),
    (
        "nemotron4-340b",
        r#"{"model_type": "nemotron", "hidden_size": 18432, "intermediate_size": 73728, "num_hidden_layers": 96,
            "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 192, "vocab_size": 256000,
            "hidden_act": "relu2", "max_position_embeddings": 4096, "norm_eps": 1e-05,
            "partial_rotary_factor": 0.5, "tie_word_embeddings": false}"#,
    ),
    (
        "mixtral-8x7b",
        r#"{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8,
            "num_experts_per_tok": 2, "router_aux_loss_coef": 0.02, "sliding_window": null}"#,
    ),
    (
        "qwen2.5-7b",
        r#"{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
            "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "max_window_layers": 28,
            "sliding_window": 131072, "use_sliding_window": false, "tie_word_embeddings": false}"#,
    ),
    (
        "qwen3-8b",
        r#"{"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
            "max_window_layers": 36, "sliding_window": null, "use_sliding_window": false}"#,
    ),
    (
        "qwen3-30b-a3b",
        r#"{"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 48,
            "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
            "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "mlp_only_layers": [],
            "decoder_sparse_step": 1, "norm_topk_prob": true, "output_router_logits": false}"#,
    ),
    (
        "qwen2-57b-a14b",
        r#"{"model_type": "qwen2_moe", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
            "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 151936, "num_experts": 64,
            "num_experts_per_tok": 8, "moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480,
            "decoder_sparse_step": 1, "use_sliding_window": false, "sliding_window": 65536}"#,
    ),
    (
        "deepseek-v2-lite",
        r#"{"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "num_hidden_layers": 27,
            "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 102400, "q_lora_rank": null,
            "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
            "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_layer_freq": 1,
            "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "topk_method": "greedy", "n_group": 1}"#,
    ),
    (
        "deepseek-v3",
        r#"{"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
            "num_attention_heads": 128, "num_key_value_heads": 128, "vocab_size": 129280, "q_lora_rank": 1536,
            "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
            "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_layer_freq": 1,
            "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "num_nextn_predict_layers": 1,
            "topk_method": "noaux_tc", "scoring_func": "sigmoid", "topk_group": 4, "n_group": 8, "ep_size": 1,
            "rope_scaling": {"original_max_position_embeddings": 4096, "type": "yarn"},
            "quantization_config": {"quant_method": "fp8"}, "max_position_embeddings": 163840}"#,
    ),
    (
        "kimi-k2",
        r#"{"model_type": "kimi_k2", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
            "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 163840, "q_lora_rank": 1536,
            "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
            "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_layer_freq": 1,
            "moe_intermediate_size": 2048, "first_k_dense_replace": 1, "num_nextn_predict_layers": 0}"#,
    ),
    (
        "gpt-oss-20b",
        r#"{"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
            "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
            "num_local_experts": 32, "experts_per_token": 4, "num_experts_per_tok": 4, "sliding_window": 128,
            "initial_context_length": 4096, "swiglu_limit": 7.0, "attention_bias": true}"#,
    ),
    (
        "llama4-scout",
        r#"{"model_type": "llama4", "boi_token_index": 200080, "vision_config": {"hidden_size": 1408},
            "text_config": {"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
            "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
            "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048, "num_local_experts": 16,
            "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "attention_chunk_size": 8192,
            "no_rope_layers": [], "use_qk_norm": true}}"#,
    ),
    (
        "llama4-maverick",
        r#"{"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
            "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
            "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048, "num_local_experts": 128,
            "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "attention_chunk_size": 8192}"#,
    ),
    (
        "nemotron-h-8b",
        r#"{"model_type": "nemotron_h", "hidden_size": 4096, "intermediate_size": 21504, "num_hidden_layers": 52,
            "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
            "num_attention_heads": 32, "num_key_value_heads": 8, "attention_head_dim": 128, "vocab_size": 131072,
            "mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4,
            "chunk_size": 128, "expand": 2, "mlp_hidden_act": "relu2", "time_step_limit": [0.0, Infinity],
            "max_position_embeddings": 8192, "tie_word_embeddings": false}"#,
    ),
    (
        "nemotron-3-nano-30b",
        r#"{"model_type": "nemotron_h", "hidden_size": 2688, "intermediate_size": 1856, "num_hidden_layers": 52,
            "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
            "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 131072,
            "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
            "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 6, "n_group": 1,
            "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712, "chunk_size": 128,
            "max_position_embeddings": 262144, "routed_scaling_factor": 2.5, "sliding_window": null}"#,
    ),
    (
        "mpt-7b",
        r#"{"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4,
            "max_seq_len": 2048, "vocab_size": 50368, "no_bias": true, "learned_pos_emb": true,
            "attn_config": {"alibi": true, "attn_type": "multihead_attention", "attn_impl": "torch"}}"#,
    ),
];

/// Published models that are not in the catalog, with their parameters in billions.
const ELSEWHERE: &[(f64, &str)] = &[
    // Mistral 7B v0.1.
    (
        7.242,
        r#"{"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "sliding_window": 4096}"#,
    ),
    // Gemma 7B.
    (
        8.538,
        r#"{"model_type": "gemma", "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
            "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "vocab_size": 256000,
            "hidden_act": "gelu"}"#,
    ),
    // Gemma 2 9B.
    (
        9.242,
        r#"{"model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
            "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000,
            "sliding_window": 4096, "attn_logit_softcapping": 50.0, "query_pre_attn_scalar": 256}"#,
    ),
    // Gemma 3 4B, whose file leaves most to the defaults; without its vision encoder.
    (
        3.884,
        r#"{"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "eos_token_id": [1, 106],
            "mm_tokens_per_image": 256, "image_token_index": 262144, "vision_config": {"hidden_size": 1152},
            "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
            "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024}}"#,
    ),
    // GPT-2.
    (
        0.12444,
        r#"{"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_ctx": 1024, "n_positions": 1024,
            "vocab_size": 50257, "activation_function": "gelu_new", "summary_type": "cls_index"}"#,
    ),
    // GPT-NeoX 20B.
    (
        20.55,
        r#"{"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 44,
            "num_attention_heads": 64, "vocab_size": 50432, "rotary_pct": 0.25, "use_parallel_residual": true}"#,
    ),
    // Phi-3 mini.
    (
        3.821,
        r#"{"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064, "sliding_window": 2047,
            "original_max_position_embeddings": 4096, "max_position_embeddings": 4096}"#,
    ),
    // OLMo 2 7B.
    (
        7.299,
        r#"{"model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 100352}"#,
    ),
    // GLM-4.5-Air without its layer of multi-token prediction.
    (
        106.85,
        r#"{"model_type": "glm4_moe", "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46,
            "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151552,
            "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "use_qk_norm": false,
            "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1}"#,
    ),
    // BLOOM.
    (
        176.25,
        r#"{"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112,
            "vocab_size": 250880, "attention_softmax_in_fp32": true, "masked_softmax_fusion": true,
            "seq_length": 2048, "slow_but_exact": false}"#,
    ),
    // Falcon 7B.
    (
        6.922,
        r#"{"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
            "vocab_size": 65024, "multi_query": true, "new_decoder_architecture": false, "parallel_attn": true}"#,
    ),
    // Granite 3.1 8B.
    (
        8.171,
        r#"{"model_type": "granite", "hidden_size": 4096, "intermediate_size": 12800, "num_hidden_layers": 40,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 49155,
            "tie_word_embeddings": true, "logits_scaling": 16.0, "residual_multiplier": 0.22}"#,
    ),
];

/// Nemotron 3 Super 120B-A12B, with its blocks in another order.
fn nemotron_3_super() -> String {
    let pattern = format!("{}{}{}", "M".repeat(40), "E".repeat(40), "*".repeat(8));
    let file = r#"{"model_type": "nemotron_h", "hidden_size": 4096, "num_hidden_layers": 88, "vocab_size": 131072,
        "hybrid_override_pattern": "PATTERN", "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
        "mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
        "n_routed_experts": 512, "n_shared_experts": 1, "num_experts_per_tok": 22, "moe_latent_size": 1024,
        "moe_intermediate_size": 2688, "moe_shared_expert_intermediate_size": 5376,
        "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E", "moe_shared_expert_overlap": false}"#;
    file.replace("PATTERN", &pattern)
}

fn changed(id: &str, from: &str, to: &str) -> String {
    let (_, file) = IN_CATALOG.iter().find(|(known, _)| *known == id).unwrap();
    assert!(file.contains(from), "{from}");
    file.replace(from, to)
}

#[test]
fn a_published_file_gives_the_model_of_the_catalog() {
    for (id, file) in IN_CATALOG {
        let imported = read(file).unwrap_or_else(|error| panic!("{id}: {error}"));
        let published = Catalog::embedded().model(id).unwrap();
        let mut architecture = imported.model.architecture.clone();
        if let (Some(ours), Some(theirs)) = (&mut architecture.mamba, &published.architecture.mamba) {
            // The catalog has the chunk size only if a paper states it.
            ours.chunk = theirs.chunk;
        }
        assert_eq!(architecture, published.architecture, "{id}");
        assert_eq!(imported.model.qk_norm, published.qk_norm, "{id}");
        assert_eq!(imported.unknown, [""; 0], "{id}");
        let ratio = imported.model.params_b / published.params_b;
        assert!((ratio - 1.0).abs() < 0.005, "{id}: {ratio}");
        assert_eq!(Model::own(&imported.model.id).unwrap().architecture, imported.model.architecture, "{id}");
    }
}

#[test]
fn a_published_file_gives_the_published_parameters() {
    for (params_b, file) in ELSEWHERE {
        let imported = read(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let ratio = imported.model.params_b / params_b;
        assert!((ratio - 1.0).abs() < 0.005, "{}: {file}", imported.model.params_b);
        assert_eq!(imported.unknown, [""; 0], "{file}");
    }
}

#[test]
fn the_sequence_length_is_the_one_before_extension() {
    for (id, seq_len) in
        [("llama3.1-8b", 8192), ("deepseek-v3", 4096), ("gpt-oss-20b", 4096), ("mpt-7b", 2048)]
    {
        let imported = read(&changed(id, "{", "{")).unwrap();
        assert_eq!(imported.model.seq_len, seq_len, "{id}");
        assert!(
            imported.notes.iter().any(|note| note.starts_with("Training sequence length")),
            "{:?}",
            imported.notes
        );
    }
}

#[test]
fn a_model_of_the_catalog_is_named() {
    let says = |file: &str| {
        let notes = read(file).unwrap().notes;
        notes.into_iter().find(|note| note.starts_with("This is the shape of"))
    };
    let expected = "This is the shape of Llama 3.1 8B: choose that model to plan with its recipes.";
    assert_eq!(says(&changed("llama3.1-8b", "{", "{")).as_deref(), Some(expected));
    let other = changed("llama3.1-8b", "\"intermediate_size\": 14336", "\"intermediate_size\": 14848");
    assert_eq!(says(&other), None);
}

#[test]
fn the_rotary_base_is_read_where_it_is_not_megatrons_default() {
    let base = |from: &str, to: &str| read(&changed("llama3.1-8b", from, to)).unwrap().model.rope_base;
    let theta = "\"rope_theta\": 500000.0";
    assert_eq!(base("{", "{"), Some(500_000));
    assert_eq!(base(theta, "\"rope_theta\": 10000.0"), None);
    assert_eq!(base(theta, "\"rope_theta\": 10000.5"), None);
    assert_eq!(base(theta, "\"rope_parameters\": {\"rope_theta\": 1000000}"), Some(1_000_000));
    assert_eq!(base(theta, "\"rope_theta\": null"), None);
    let model = read(&changed("llama3.1-8b", "{", "{")).unwrap().model;
    assert_eq!(Model::own(&model.id).unwrap().rope_base, Some(500_000));
}

#[test]
fn queries_and_keys_are_normalized_by_family() {
    let qk_norm = |file: &str| read(file).unwrap().model.qk_norm;
    assert!(qk_norm(&changed("qwen3-8b", "{", "{")));
    assert!(!qk_norm(&changed("llama3.1-8b", "{", "{")));
    let glm = |on: &str| {
        let (_, file) = ELSEWHERE.iter().find(|(_, file)| file.contains("glm4_moe")).unwrap();
        qk_norm(&file.replace("\"use_qk_norm\": false", &format!("\"use_qk_norm\": {on}")))
    };
    assert!(glm("true") && !glm("false"));
    // Llama 4's norm has no weights.
    assert!(IN_CATALOG.iter().filter(|(id, _)| id.starts_with("llama4")).all(|(_, file)| !qk_norm(file)));
}

#[test]
fn a_hybrid_can_route_through_a_latent_width() {
    let imported = read(&nemotron_3_super()).unwrap();
    let model = &imported.model;
    assert_eq!(model.architecture.moe.as_ref().unwrap().latent, Some(1024));
    assert_eq!((model.architecture.mtp_layers, imported.unknown.len()), (1, 0));
    assert!((model.params_b / 120.0 - 1.0).abs() < 0.01, "{}", model.params_b);
    assert!((model.active_b / 12.0 - 1.0).abs() < 0.1, "{}", model.active_b);
}

#[test]
fn each_family_has_its_windows_on_its_layers() {
    let window = |file: &str| read(file).unwrap().model.architecture.attention.window;
    let some = |tokens, layers| Some(SlidingWindow { tokens, layers });
    assert_eq!(window(ELSEWHERE[0].1), some(4096, 32), "Mistral: every layer");
    assert_eq!(window(&ELSEWHERE[0].1.replace(": 4096}", ": null}")), None, "later Mistral: none");
    assert_eq!(window(ELSEWHERE[2].1), some(4096, 21), "Gemma 2: every other");
    assert_eq!(window(ELSEWHERE[3].1), some(1024, 29), "Gemma 3: all but every sixth");
    let switched = changed("qwen2.5-7b", r#""use_sliding_window": false"#, r#""use_sliding_window": true"#);
    assert_eq!(window(&switched), None, "the first windowed layer is beyond the last");
    let switched = switched.replace(r#""max_window_layers": 28"#, r#""max_window_layers": 20"#);
    assert_eq!(window(&switched), some(131_072, 8));
    let types =
        r#""layer_types": ["full_attention", "sliding_attention", "sliding_attention"], "hidden_size""#;
    let typed = changed("gpt-oss-20b", r#""hidden_size""#, types).replace(": 24,", ": 3,");
    assert_eq!(window(&typed), some(128, 2), "layer_types overrides the rule");
}

#[test]
fn each_family_routes_its_layers() {
    let routed = |file: &str| read(file).unwrap().model.architecture.moe.unwrap().layers;
    let sparse = |step: &str, dense: &str| {
        changed("qwen3-30b-a3b", r#""mlp_only_layers": []"#, &format!(r#""mlp_only_layers": {dense}"#))
            .replace(r#""decoder_sparse_step": 1"#, &format!(r#""decoder_sparse_step": {step}"#))
    };
    assert_eq!(routed(&sparse("2", "[]")), 24);
    assert_eq!(routed(&sparse("1", "[0, 1, 2]")), 45);
    assert_eq!(routed(&sparse("2", "[0, 1, 2]")), 23, "layer 1 is listed as dense");
    let freq = |freq: &str| {
        changed("deepseek-v3", r#""moe_layer_freq": 1"#, &format!(r#""moe_layer_freq": {freq}"#))
    };
    assert_eq!(routed(&freq("2")), 29, "layers 4, 6, … 60");
    let each = format!("[{}0, 1, 1, 0, 1]", "1, ".repeat(56));
    assert_eq!(routed(&freq(&each)), 53 + 3);
    assert!(read(&freq("[1, 1]")).unwrap_err().to_string().contains("one entry for each of 61 layers"));
    let listed = r#""moe_layers": [1, 3, 99], "interleave_moe_layer_step": 2"#;
    assert_eq!(routed(&changed("llama4-maverick", r#""interleave_moe_layer_step": 2"#, listed)), 2);
}

#[test]
fn a_default_is_noted_and_a_missing_required_field_refused() {
    let imported = read(&changed("llama2-7b", "{", "{")).unwrap();
    let notes = imported.notes.join("\n");
    for field in ["tie_word_embeddings", "num_key_value_heads", "head_dim"] {
        assert!(notes.contains(&format!("{field} assumed: ")), "{notes}");
    }
    assert!(notes.contains("(default of llama)"), "{notes}");
    let shared = |id: &str, from: &str, to: &str| {
        let imported = read(&changed(id, from, to)).unwrap();
        (imported.model.architecture.moe.unwrap().shared_ffn, imported.notes.join("\n"))
    };
    let (width, notes) = shared("qwen2-57b-a14b", r#""shared_expert_intermediate_size": 20480,"#, "");
    assert!(width == 5632 && notes.contains("shared_expert_intermediate_size assumed: 5632"), "{notes}");
    let (width, notes) = shared("deepseek-v3", r#""n_shared_experts": 1,"#, "");
    assert!(width == 2048 && notes.contains("n_shared_experts assumed: 1"), "{notes}");
    assert_eq!(shared("deepseek-v3", r#""n_shared_experts": 1"#, r#""n_shared_experts": null"#).0, 0);
    let plain = changed("mixtral-8x7b", r#""num_key_value_heads": 8"#, r#""num_key_value_heads": null"#);
    assert!(matches!(
        read(&plain).unwrap().model.architecture.attention.kind,
        AttentionKind::Gqa { kv_heads: 32, head_dim: 128 }
    ));
    let error = read(&changed("llama2-7b", r#""hidden_size": 4096,"#, "")).unwrap_err();
    assert!(error.to_string().contains("has no hidden_size or n_embd"), "{error}");
    let error = read(&changed("mixtral-8x7b", r#""num_local_experts": 8,"#, "")).unwrap_err();
    assert!(error.to_string().contains("has no num_local_experts"), "{error}");
}

#[test]
fn fields_that_are_not_understood_are_listed() {
    let file = changed("llama2-7b", "{", r#"{"index_topk": 2048, "sliding_window": 128, "foo": null, "#);
    assert_eq!(read(&file).unwrap().unknown, ["index_topk = 2048", "sliding_window = 128"]);
    let file = changed("mpt-7b", "{", r#"{"ffn_config": {"ffn_type": "mptglu"}, "#);
    assert_eq!(read(&file).unwrap().unknown, ["ffn_config.ffn_type = \"mptglu\""]);
}

#[test]
fn an_unknown_family_is_read_like_llama_only_if_it_resembles_it() {
    let like = changed("llama3.1-8b", r#""llama","#, r#""newcomer","#);
    let imported = read(&like).unwrap();
    assert_eq!(imported.model.architecture, Catalog::embedded().model("llama3.1-8b").unwrap().architecture);
    assert!(imported.unknown[0].contains("\"newcomer\" (read like Llama)"), "{:?}", imported.unknown);
    assert!(imported.notes[0].contains("(Llama's default)"), "{:?}", imported.notes);
    for (from, to, reason) in [
        (r#""silu""#, r#""relu2""#, "hidden_act is \"relu2\""),
        (r#""hidden_act": "silu","#, "", "hidden_act is missing"),
        (r#""vocab_size": 128256,"#, "", "vocab_size is missing"),
        ("{", r#"{"num_experts": 8, "#, "num_experts_per_tok or"),
        (
            "{",
            r#"{"num_experts": 8, "num_experts_per_tok": 2, "moe_every": 2, "#,
            "the file has moe_every = 2",
        ),
        ("{", r#"{"kv_lora_rank": 512, "#, "the file has kv_lora_rank = 512"),
    ] {
        let error = read(&like.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(reason) && error.starts_with("model_type \"newcomer\" is unknown"), "{error}");
    }
    let error =
        read(r#"{"model_type": "gemma5", "n_embd": 768, "layer_types": ["odd"]}"#).unwrap_err().to_string();
    assert!(
        error.starts_with("model_type \"gemma5\" is unknown") && error.contains("Did you mean \"gemma"),
        "{error}"
    );
    let nearest = |text: &str| table::most_alike(text);
    assert_eq!((nearest("lama"), nearest("newcomer"), nearest("")), (Some("llama"), None, None));
}

#[test]
fn experts_of_an_unknown_family_are_read_by_their_fields() {
    let file = |more: &str| {
        format!(
            r#"{{"model_type": "zephyr_moe", "hidden_size": 2048, "num_hidden_layers": 28, "num_attention_heads": 16,
            "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "hidden_act": "silu", "num_experts_per_tok": 6,
            "intermediate_size": 10944, "tie_word_embeddings": false, "router_aux_loss_coef": 0.001, {more}}}"#
        )
    };
    let moe = |more: &str| {
        let imported = read(&file(more)).unwrap();
        let moe = imported.model.architecture.moe.clone().unwrap();
        ((moe.experts, moe.top_k, moe.ffn, moe.shared_ffn, moe.layers), imported)
    };
    let (shape, imported) = moe(r#""num_experts": 64, "moe_intermediate_size": 1408"#);
    assert_eq!(shape, (64, 6, 1408, 0, 28));
    let known = "\"zephyr_moe\" (read like Llama with 64 experts of width 1408, 6 for each token, in 28 of 28 layers)";
    assert_eq!(imported.unknown, [format!("model_type = {known}")]);
    let notes = imported.notes.join(" ");
    assert!(notes.contains("Experts assumed in every one of the 28 layers"), "{notes}");
    assert!(notes.contains("No shared experts assumed"), "{notes}");
    let (shape, _) = moe(
        r#""n_routed_experts": 64, "moe_intermediate_size": 1408, "n_shared_experts": 2, "first_k_dense_replace": 1"#,
    );
    assert_eq!(shape, (64, 6, 1408, 2816, 27));
    let (shape, imported) = moe(r#""num_local_experts": 8"#);
    assert_eq!(shape, (8, 6, 10944, 0, 28));
    assert!(imported.notes.join(" ").contains("as in Mixtral"), "{:?}", imported.notes);
    let (shape, _) = moe(
        r#""num_experts": 64, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 2"#,
    );
    assert_eq!(shape, (64, 6, 1408, 5632, 14));
}

#[test]
fn layers_with_linear_attention_are_counted() {
    let file = |more: &str| {
        format!(
            r#"{{"model_type": "qwen3_5_moe", "text_config": {{"model_type": "qwen3_5_moe_text", "num_hidden_layers": 40,
            "hidden_size": 2048, "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512{more}}}}}"#
        )
    };
    let linear = |more: &str| read(&file(more)).map(|read| read.model.architecture.linear);
    let read_by_default = read(&file("")).unwrap();
    assert_eq!(
        read_by_default.model.architecture,
        Architecture {
            mtp_layers: 0,
            ..Catalog::embedded().model("qwen3.5-35b-a3b").unwrap().architecture.clone()
        }
    );
    assert!(
        read_by_default
            .notes
            .iter()
            .any(|note| note.starts_with("Full attention assumed in every 4th layer"))
    );
    let layers = |more: &str| linear(more).unwrap().map(|linear| linear.layers);
    assert_eq!(layers(r#", "full_attention_interval": 8"#), Some(35));
    assert_eq!(layers(r#", "full_attention_interval": 1"#), None);
    let typed = |first: &str, times: usize| {
        let types = vec![first; times].into_iter().chain(vec!["full_attention"; 40 - times]);
        format!(r#", "layer_types": {:?}"#, types.collect::<Vec<_>>())
    };
    assert_eq!(layers(&typed("linear_attention", 24)), Some(24));
    let refused = |more: &str| linear(more).unwrap_err().to_string();
    assert!(refused(&typed("sliding_attention", 1)).contains("full_attention or linear_attention"));
    assert!(refused(r#", "full_attention_interval": 0"#).contains("must be 1 or more"));
    assert!(refused(&typed("linear_attention", 40)).contains("attention layers"));
    assert!(refused(r#", "linear_num_key_heads": 12"#).contains("can't be divided among 12 key heads"));
}

#[test]
fn a_family_beyond_an_architecture_is_refused_by_name() {
    let nested = r#"{"model_type": "qwen4_exp", "text_config": {"model_type": "qwen4_exp_text"}}"#;
    for (file, model_type, reason) in [
        (r#"{"model_type": "kimi_linear"}"#, "kimi_linear", "linear attention"),
        (nested, "qwen4_exp_text", "linear attention"),
        (r#"{"model_type": "jamba"}"#, "jamba", "Mamba-1"),
        (r#"{"model_type": "t5"}"#, "t5", "decoder-only"),
    ] {
        let error = read(file).unwrap_err().to_string();
        let named = format!("model_type \"{model_type}\" is not supported: ");
        assert!(error.starts_with(&named) && error.contains(reason), "{error}");
    }
}

#[test]
fn a_file_saved_by_transformers_5_is_read() {
    let renamed = changed("qwen3-30b-a3b", r#""num_experts""#, r#""num_local_experts""#);
    assert_eq!(read(&renamed).unwrap().model.architecture.moe.unwrap().experts, 128);
    let (_, bloom) = ELSEWHERE.iter().find(|(_, file)| file.contains("bloom")).unwrap();
    assert_eq!(read(bloom).unwrap().model.seq_len, 2048);
    let shared = changed("deepseek-v2-lite", r#""n_shared_experts": 2,"#, "");
    assert_eq!(read(&shared).unwrap().model.architecture.moe.unwrap().shared_ffn, 2 * 1408);
    let every = ELSEWHERE[2].1.replace("{", r#"{"sliding_window_pattern": 0, "#);
    assert_eq!(read(&every).unwrap().model.architecture.attention.window.unwrap().layers, 42);
    let off = ELSEWHERE[0].1.replace("{", r#"{"use_sliding_window": false, "#);
    assert_eq!(read(&off).unwrap().model.architecture.attention.window, None);
}

#[test]
fn the_outer_file_decides_whether_embeddings_are_tied() {
    // In a multimodal model, the outer field decides.
    let file = format!(
        r#"{{"model_type": "newcomer", "tie_word_embeddings": true, "text_config": {}}}"#,
        changed("llama2-7b", "{", r#"{"tie_word_embeddings": false, "#)
    );
    assert!(read(&file).unwrap().model.architecture.tied_embeddings);
}

#[test]
fn cohere_ties_its_embeddings_and_has_windows() {
    let file = r#"{"model_type": "cohere2", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 256000,
        "sliding_window": 4096, "sliding_window_pattern": 4, "max_position_embeddings": 132096}"#;
    // Command R7B.
    let model = read(file).unwrap().model;
    assert!(
        model.architecture.tied_embeddings && (model.params_b - 8.028).abs() < 0.001,
        "{}",
        model.params_b
    );
    assert_eq!(model.architecture.attention.window, Some(SlidingWindow { tokens: 4096, layers: 24 }));
}

#[test]
fn dbrx_has_its_published_parameters() {
    // Its default config can't be instantiated by transformers.
    let file = r#"{"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768,
        "vocab_size": 100352, "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "rope_theta": 500000}, "ffn_config":
        {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}, "tie_word_embeddings": false}"#;
    let model = read(file).unwrap().model;
    assert!((model.params_b - 131.597).abs() < 0.01, "{}", model.params_b);
    assert!((model.active_b - 36.5).abs() < 0.5, "{}", model.active_b);
}

#[test]
fn fields_without_influence_raise_no_alarm() {
    let file = changed(
        "llama2-7b",
        "{",
        r#"{"chunk_size_feed_forward": 0, "use_mrope": false, "is_encoder_decoder": false, "num_beams": 1, "#,
    );
    assert_eq!(read(&file).unwrap().unknown, [""; 0]);
    let file = changed("llama2-7b", "{", r#"{"is_encoder_decoder": true, "#);
    assert_eq!(read(&file).unwrap().unknown, ["is_encoder_decoder = true"]);
    let notes = read(&changed("deepseek-v3", "{", "{")).unwrap().notes.join("\n");
    assert!(notes.contains("quantization_config is ignored"), "{notes}");
}

#[test]
fn thousands_of_unknown_fields_are_summarized() {
    let fields: String = (0..20_000).map(|number| format!("\"field_{number}\": 1, ")).collect();
    let unknown = read(&changed("llama2-7b", "{", &format!("{{{fields}"))).unwrap().unknown;
    assert_eq!((unknown.len(), unknown[20].as_str()), (21, "19,980 other fields"));
}

#[test]
fn every_error_names_the_field_and_valid_values() {
    let said = |from: &str, to: &str| read(&changed("llama3.1-8b", from, to)).unwrap_err().to_string();
    assert_eq!(
        said(": 4096", ": 4096.5"),
        "hidden_size is 4096.5; it must be a whole number up to 4,294,967,295."
    );
    assert!(said(": 4096", ": \"wide\"").contains("hidden_size is \"wide\""));
    assert!(said(": 4096", ": -1").contains("hidden_size is -1"));
    assert!(said(": 4096", ": 1e300").contains("hidden_size is 1e+300"));
    assert!(said(": 4096", ": 0").contains("needs hidden width of 1 or more"));
    assert!(said(": 4096", ": [4096]").contains("a list of 1"));
    assert!(said(": 32,", ": 4000000000,").contains("a number from 1 to 10000"));
    assert!(said(": 8,", ": 5,").contains("among 5 KV heads"));
    assert!(said("false", "\"no\"").contains("must be true or false"));
    assert!(said("{", "").starts_with("The file is not valid JSON: "));
    assert!(said("\"llama\"", "7").contains("model_type is 7; it must be text"));
    assert!(said("{", r#"{"n_embd": 5, "#).contains("n_embd is 5; it must be 4096, like hidden_size"));
    assert!(read("[]").unwrap_err().to_string().contains("contains a list of 0 instead of an object"));
    assert!(read("{}").unwrap_err().to_string().contains("describes no model: it has no model_type"));
    assert!(read("").is_err() && read(&"[".repeat(100_000)).is_err());
    let pattern = changed("nemotron-h-8b", "M-M-M-M*", "M-M-M-Mx").to_string();
    assert!(
        read(&pattern)
            .unwrap_err()
            .to_string()
            .contains("hybrid_override_pattern is a pattern with \"x\"; it must be")
    );
    let pattern = changed("nemotron-h-8b", "\"M-M", "\"MM-M");
    assert!(read(&pattern).unwrap_err().to_string().contains("num_hidden_layers is 52; it must be 53"));
}

#[test]
fn infinities_are_replaced_only_outside_strings() {
    assert_eq!(without_infinities(r#"{"a": -Infinity, "b": [NaN]}"#), r#"{"a": null, "b": [null]}"#);
    assert_eq!(
        without_infinities(r#"{"NaN\"NaN": "Infinity\\", "x": NaN}"#),
        r#"{"NaN\"NaN": "Infinity\\", "x": null}"#
    );
}

#[test]
fn the_files_name_becomes_the_title() {
    let named = |name: &str| {
        read(&changed("llama2-7b", "{", &format!(r#"{{"_name_or_path": "{name}", "#))).unwrap().model.title
    };
    assert_eq!(named("meta-llama/Llama-2-7b-hf"), "Llama-2-7b-hf");
    for nothing in ["", "./", ".", "\\u0007"] {
        assert_eq!(named(nothing), "own model, 6.74B", "{nothing}");
    }
    // A latent attention has no KV heads of its own.
    let AttentionKind::Mla { q_lora, .. } =
        read(&changed("deepseek-v2-lite", "{", "{")).unwrap().model.architecture.attention.kind
    else {
        panic!("MLA")
    };
    assert_eq!(q_lora, 0);
}

/// Values of a field, valid or not.
fn values() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::json;
    prop_oneof![
        4 => (0u32..9).prop_map(|number| json!(number)),
        2 => (0u32..300).prop_map(|number| json!(number * 64)),
        1 => any::<u32>().prop_map(|number| json!(number)),
        1 => any::<f64>().prop_map(|number| json!(number)),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => any::<bool>().prop_map(|flag| json!(flag)),
        1 => "\\PC{0,5}".prop_map(|text| json!(text)),
        1 => "[M*E-]{0,6}".prop_map(|text| json!(text)),
        1 => proptest::collection::vec(0u32..9, 0..9).prop_map(|list| json!(list)),
        1 => Just(json!(null)),
        1 => Just(json!({"original_max_position_embeddings": -1, "kv_n_heads": 3})),
    ]
}

proptest! {
    #[test]
    fn no_file_panics(
        base in 0usize..IN_CATALOG.len() + ELSEWHERE.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), values()), 0..6),
        nested: bool,
    ) {
        let files: Vec<&str> =
            IN_CATALOG.iter().map(|(_, file)| *file).chain(ELSEWHERE.iter().map(|(_, file)| *file)).collect();
        let mut names: Vec<String> = Vec::new();
        for file in &files {
            names.extend(parse(file).unwrap().as_object().unwrap().keys().cloned());
        }
        let mut value = parse(files[base]).unwrap();
        for (index, change) in changes {
            value[index.get(&names).as_str()] = change;
        }
        if nested {
            value = serde_json::json!({"text_config": value, "model_type": "any"});
        }
        if let Ok(imported) = read(&value.to_string()) {
            let again = Model::own(&imported.model.id).unwrap();
            prop_assert_eq!(again.architecture, imported.model.architecture);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC*|[{}\\[\\]\",:0-9eNaInfinity\\\\ -]{0,60}") {
        let _ = read(&text);
    }
}
