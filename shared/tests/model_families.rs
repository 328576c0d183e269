//! Our parameters of each causal language model of Hugging Face `transformers`, compared with those of its own classes.
//!
//! `scripts/model-families.py` writes the figures.

#![allow(missing_docs, reason = "a test's name says what it shows")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use serde_json::{Value, json};
use trainplan_shared::hugging_face;

/// Each line that has a config, with its `model_type`.
fn families() -> impl Iterator<Item = (String, Value)> {
    let file = include_str!("data/model_families.jsonl");
    file.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let family: Value = serde_json::from_str(line).unwrap();
        (family["model_type"].as_str().unwrap().to_string(), family)
    })
}

/// The largest relative difference of parameters.
const TOLERANCE: f64 = 1e-4;

#[test]
fn parameters_are_those_of_transformers() {
    let (mut wrong, mut refused, mut worst) = (Vec::new(), Vec::new(), 0f64);
    for (name, family) in families() {
        match hugging_face::read(&family["config"].to_string()) {
            Err(error) => refused.push(format!("{name}: {error}")),
            // No family is known, but the fields are those of Llama.
            Ok(imported) if imported.unknown.iter().any(|field| field.starts_with("model_type")) => {
                refused.push(name);
            }
            Ok(imported) => {
                if !imported.unknown.is_empty() {
                    wrong.push(format!("{name}: not understood: {:?}", imported.unknown));
                }
                for (field, ours) in
                    [("parameters", imported.model.params_b), ("active", imported.model.active_b)]
                {
                    let Some(theirs) = family[field].as_f64() else { continue };
                    let difference = ours * 1e9 / theirs - 1.0;
                    worst = worst.max(difference.abs());
                    if difference.abs() > TOLERANCE {
                        wrong.push(format!(
                            "{name}: {field} {:.0}, {theirs} in transformers: {difference:+.6}",
                            ours * 1e9
                        ));
                    }
                }
            }
        }
    }
    println!("refused: {}\n{}", refused.len(), refused.join("\n"));
    println!("worst difference: {worst:.6}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused.len() < 90, "{} refused:\n{}", refused.len(), refused.join("\n"));
}

/// Values of a field, valid or not.
fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0u32..300).prop_map(|number| json!(number)),
        any::<u32>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<bool>().prop_map(|flag| json!(flag)),
        proptest::collection::vec(0u32..9, 0..9).prop_map(|list| json!(list)),
        proptest::collection::vec("mamba|attention|sparse|full_attention", 0..33)
            .prop_map(|list| json!(list)),
        Just(json!(null)),
        Just(json!({})),
    ]
}

proptest! {
    #[test]
    fn no_changed_config_panics(
        family in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), values()), 0..6),
    ) {
        let families: Vec<(String, Value)> = families().collect();
        let mut config = family.get(&families).1["config"].clone();
        let names: Vec<String> = config.as_object().unwrap().keys().cloned().collect();
        for (index, value) in changes {
            config[index.get(&names).as_str()] = value;
        }
        let _ = hugging_face::read(&config.to_string());
    }
}
