//! Every family's fields give its published shapes.

mod any_file;
mod published;
mod reports;

use super::*;
use crate::architecture::{AttentionKind, SlidingWindow};
use crate::catalog::Catalog;
use published::{ELSEWHERE, IN_CATALOG, changed, nemotron_3_super};

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
fn the_files_name_becomes_the_title() {
    let named = |name: &str| {
        read(&changed("llama2-7b", "{", &format!(r#"{{"_name_or_path": "{name}", "#))).unwrap().model.title
    };
    assert_eq!(named("meta-llama/Llama-2-7b-hf"), "Llama-2-7b-hf");
    for nothing in ["", "./", ".", "\\u0007"] {
        assert_eq!(named(nothing), "custom model, 6.74B", "{nothing}");
    }
    let nameless = |file: &str| read(&changed("llama2-7b", "{", "{")).unwrap().named_after(file).model;
    for (file, name) in
        [("config.json", "llama"), ("config (1).json", "llama"), ("", "llama"), ("my-llm.json", "my-llm")]
    {
        let model = nameless(file);
        assert_eq!(model.title, format!("{name}, 6.74B"), "{file}");
        assert_eq!(Model::own(&model.id).unwrap().title, model.title);
    }
    let named = read(&changed("llama2-7b", "{", r#"{"_name_or_path": "acme/one", "#)).unwrap();
    assert_eq!(named.named_after("two.json").model.title, "one");
    // Latent attention has no separate KV heads.
    let AttentionKind::Mla { q_lora, .. } =
        read(&changed("deepseek-v2-lite", "{", "{")).unwrap().model.architecture.attention.kind
    else {
        panic!("MLA")
    };
    assert_eq!(q_lora, 0);
}
