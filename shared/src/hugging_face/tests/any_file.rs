//! No file makes the reader panic, and what it reads is a valid model.

use super::published::{ELSEWHERE, IN_CATALOG};
use crate::catalog::Model;
use crate::hugging_face::{parse, read};
use proptest::prelude::*;

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
