//! Our parameters of each causal language model of Hugging Face `transformers`, compared with those of its own classes.
//!
//! `scripts/model-families.py` writes the figures.

use serde_json::Value;
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
                refused.push(name)
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
