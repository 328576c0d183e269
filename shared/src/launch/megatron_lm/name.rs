//! The name of a job's experiment. [`LogName`](crate::log::LogName) reads the configuration from it.

use crate::precision::Dtype;
use crate::scenario::Scenario;

/// Returns a name such as `megatron-lm_llama3.1_405b_fp8_gpus512_tp8_pp8_cp2_vp8_mbs1_gbs252`.
pub(super) fn experiment(scenario: &Scenario) -> String {
    let (layout, batch) = (&scenario.layout, &scenario.batch);
    let experts =
        if scenario.architecture.moe.is_some() { format!("_ep{}", layout.ep()) } else { String::new() };
    format!(
        "megatron-lm_{}_{}_gpus{}_tp{}_pp{}_cp{}_vp{}{experts}_mbs{}_gbs{}",
        model(if scenario.model.id.contains(':') { &scenario.model.title } else { &scenario.model.id }),
        dtype(scenario.dtype),
        layout.gpus(),
        layout.tp(),
        layout.pp(),
        layout.cp(),
        layout.vp(),
        batch.mbs(),
        batch.gbs()
    )
}

/// Returns a model's id with its sizes as separate words and the rest in one word: a lone number would be
/// read as a number of GPUs. Only characters that are safe in a shell, in Slurm and in the parser are kept.
fn model(id: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for part in id.split(['-', '_', '/', ' ']) {
        let part: String = part.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
        let part = part.to_ascii_lowercase();
        let of_size = is_size(&part) || part.strip_prefix('a').is_some_and(is_size);
        match words.last_mut() {
            Some(last) if !of_size && !is_size(last) => *last += &part,
            _ if part.is_empty() => {}
            _ => words.push(part),
        }
    }
    if words.is_empty() { "model".into() } else { words.join("_") }
}

/// Returns whether the parser reads the word as a size: `340b`, `1.5b`, `8x7b`.
fn is_size(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(['b', 't', 'm'])
}

/// Returns the precision as the releases write it, with the kind of FP8 as a separate word.
fn dtype(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Fp8Current => "fp8_cs",
        Dtype::Fp8Delayed => "fp8_ds",
        Dtype::Fp8Block => "fp8_sc",
        Dtype::Bf16 | Dtype::Fp8 | Dtype::Mxfp8 | Dtype::Nvfp4 => dtype.id(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_keeps_its_sizes_apart() {
        for (id, name) in [
            ("llama3.1-405b", "llama3.1_405b"),
            ("nemotron-h-56b", "nemotronh_56b"),
            ("nemotron-3-nano-30b", "nemotron3nano_30b"),
            ("qwen3-235b-a22b", "qwen3_235b_a22b"),
            ("deepseek-v3", "deepseekv3"),
            ("grok-1", "grok1"),
            ("../My Model$(id)", "..mymodelid"),
            ("$'\"", "model"),
        ] {
            assert_eq!(model(id), name);
        }
    }
}
