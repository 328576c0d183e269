//! What the reader says about a file: notes on defaults, fields that it doesn't understand, unknown families and errors.

use super::published::changed;
use crate::architecture::AttentionKind;
use crate::catalog::Catalog;
use crate::hugging_face::{read, table, without_infinities};

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
