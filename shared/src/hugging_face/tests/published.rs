//! Published files, reduced to the facts of a model's shape.

/// Published models that are in the catalog; their files must give the same shapes.
pub(super) const IN_CATALOG: &[(&str, &str)] = &[
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
pub(super) const ELSEWHERE: &[(f64, &str)] = &[
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
pub(super) fn nemotron_3_super() -> String {
    let pattern = format!("{}{}{}", "M".repeat(40), "E".repeat(40), "*".repeat(8));
    let file = r#"{"model_type": "nemotron_h", "hidden_size": 4096, "num_hidden_layers": 88, "vocab_size": 131072,
        "hybrid_override_pattern": "PATTERN", "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
        "mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
        "n_routed_experts": 512, "n_shared_experts": 1, "num_experts_per_tok": 22, "moe_latent_size": 1024,
        "moe_intermediate_size": 2688, "moe_shared_expert_intermediate_size": 5376,
        "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E", "moe_shared_expert_overlap": false}"#;
    file.replace("PATTERN", &pattern)
}

pub(super) fn changed(id: &str, from: &str, to: &str) -> String {
    let (_, file) = IN_CATALOG.iter().find(|(known, _)| *known == id).unwrap();
    assert!(file.contains(from), "{from}");
    file.replace(from, to)
}
