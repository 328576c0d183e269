//! Every flag is one that Megatron-LM knows, with a value that it takes.

use super::{EVERYTHING, flags, of, refused};
use std::collections::{BTreeMap, BTreeSet};
use trainplan_shared::catalog::{Catalog, Model};
use trainplan_shared::field::Field;

/// What each flag of the data file takes.
fn known() -> BTreeMap<String, String> {
    let text = include_str!("../../../data/megatron_lm_flags.csv");
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let mut columns = row.split(',').map(String::from);
        (columns.next().unwrap(), columns.next().unwrap())
    })
    .collect()
}

/// Whether a flag of that kind takes such a value.
fn takes(kind: &str, value: &str) -> bool {
    match kind {
        "int" => value.parse::<u32>().is_ok(),
        "float" => value.parse::<f64>().is_ok(),
        "text" => !value.is_empty(),
        "tuple" => value.split(',').all(|part| part.parse::<u32>().is_ok()),
        "list" => value.contains('[') && value.chars().all(|c| "0123456789[]()*+,".contains(c)),
        "stages" => value.chars().all(|c| "EtmL|*0123456789".contains(c)),
        "layers" => value.chars().all(|c| "M-E*".contains(c)),
        choices => choices.split(' ').any(|choice| choice == value),
    }
}

#[test]
fn every_flag_is_one_of_megatron_lm_with_what_it_takes() {
    let known = known();
    let all = Catalog::embedded().models().iter();
    // Megatron-LM would need the kinds of a hybrid's prediction layers.
    let is_open = |model: &&Model| model.architecture.mamba.is_some() && model.architecture.mtp_layers > 0;
    let (open, models): (Vec<&Model>, Vec<&Model>) = all.partition(is_open);
    for model in open {
        let problem = refused(&format!("model={} gpu=h100 gpus=128 gbs=128", model.id));
        assert_eq!(problem.field, Field::Model, "{}", model.id);
    }
    let models = models.into_iter();
    let plain = models.map(|model| format!("model={} gpu=h100 gpus=128 gbs=128", model.id));
    let mut emitted = BTreeSet::new();
    for text in EVERYTHING.into_iter().map(String::from).chain(plain) {
        let (program, flags) = flags(&of(&text));
        assert!(program.starts_with("/opt/megatron-lm/pretrain_"), "{program}");
        for (flag, values) in flags {
            let takes_what = known.get(&flag).unwrap_or_else(|| panic!("{text}: {flag} is not known"));
            let fits = match takes_what.as_str() {
                "" => values.is_empty(),
                "text text" => values.len() == 2,
                kind if kind.starts_with("some ") => {
                    !values.is_empty() && values.iter().all(|value| takes(&kind["some ".len()..], value))
                }
                kind => values.len() == 1 && takes(kind, &values[0]),
            };
            assert!(fits, "{text}: {flag} {values:?}");
            emitted.insert(flag);
        }
    }
    let never: Vec<&String> = known.keys().filter(|flag| !emitted.contains(*flag)).collect();
    assert!(never.is_empty(), "no scenario has {never:?}");
}
