use crate::{csv, json, refusal};

#[test]
fn the_340b_as_its_document_derives_it() {
    let flops = json(&["flops", "--recipe", "nemotron4-340b/h100/bf16/256@25.12"]);
    assert_eq!(flops["convention"], "recipe");
    assert_eq!(flops["attention_flops"].as_f64(), Some(510_966_890_496.0));
    assert_eq!(flops["mlp_flops"].as_f64(), Some(1_565_515_579_392.0));
    assert_eq!(flops["embedding_flops"].as_f64(), Some(28_311_552_000.0));
    assert_eq!(flops["model_flops_per_sequence"].as_f64(), Some(8_621_236_313_653_248.0));
    assert_eq!(flops["document_model_flops"]["value"].as_f64(), Some(8.62124e15));
    assert!(flops.get("mamba_flops").is_none());
    let explain = flops["explain"].as_array().unwrap();
    assert_eq!(explain[0]["formula"], "12·L·h²·(1 + K/H + s/h)");
    assert!(explain[0]["numbers"].as_str().unwrap().contains("18432²"));
}

#[test]
fn the_hybrid_as_its_document_derives_it() {
    let flops = json(&["flops", "--recipe", "nemotron-h-56b/h100/fp8/256"]);
    assert_eq!(flops["recipe"], "nemotron-h-56b/h100/fp8/256@25.05");
    assert_eq!(flops["multiply_accumulates"]["mamba"].as_f64(), Some(199_690_209_460_224.0));
    // Six FLOPs for each, over the tokens of the sequence.
    assert_eq!(flops["mamba_flops"].as_f64(), Some(199_690_209_460_224.0 * 6.0 / 8192.0));
}

#[test]
fn any_model_under_either_convention() {
    let total = |convention: &str| {
        let flops =
            json(&["flops", "--model", "llama3.1-8b", "--seq-len", "8192", "--convention", convention]);
        flops["model_flops_per_sequence"].as_f64().unwrap()
    };
    assert!((total("full") / 4.74e14 - 1.0).abs() < 1e-3);
    assert!((total("causal") / 4.216e14 - 1.0).abs() < 1e-3);
    let default = json(&["flops", "--model", "deepseek-v3"]);
    assert_eq!((&default["convention"], &default["seq_len"]), (&"full".into(), &4096.into()));
}

#[test]
fn fewer_layers_make_a_proxy() {
    let layers = |layers: &str| {
        let flops = json(&["flops", "--model", "llama3.1-405b", "--layers", layers, "--seq-len", "8192"]);
        flops["mlp_flops"].as_f64().unwrap()
    };
    assert_eq!(layers("126"), 2.0 * layers("63"));
}

#[test]
fn csv_is_rectangular() {
    let (_, rows) = csv(&["flops", "--model", "kimi-k2"]);
    assert!(rows.len() > 4);
}

#[test]
fn what_can_not_be_counted_says_why() {
    assert!(refusal(&["flops"]).contains("--model"));
    assert!(refusal(&["flops", "--model", "llama3.1-405"]).contains("Did you mean llama3.1-405b?"));
    assert!(
        refusal(&["flops", "--model", "llama3.1-8b", "--convention", "recipe"])
            .contains("no recipe is given")
    );
    assert!(refusal(&["flops", "--model", "nemotron-h-56b", "--layers", "60"]).contains("Use 59 or 118."));
}
