//! Reads the precision and the options from the arguments that Megatron-LM printed.

use crate::field::Field;
use crate::log::Arguments;
use crate::options::Modules;
use crate::precision::Dtype;
use crate::result::pipeline_split::pipeline_split;

/// The precision in Megatron-LM's arguments.
pub(super) enum Precision {
    Known(Dtype),
    Other(&'static str),
    Unknown,
}

pub(super) fn precision(arguments: &Arguments) -> Precision {
    let either = |keys: [&str; 2]| keys.into_iter().find_map(|key| arguments.text(key));
    if either(["fp4", "fp4_format"]).is_some() {
        return Precision::Known(Dtype::Nvfp4);
    }
    if either(["fp8", "fp8_format"]).is_some() {
        return Precision::Known(match arguments.text("fp8_recipe") {
            Some("delayed") => Dtype::Fp8Delayed,
            Some("tensorwise") => Dtype::Fp8Current,
            Some("blockwise") => Dtype::Fp8Block,
            Some("mxfp8") => Dtype::Mxfp8,
            _ => Dtype::Fp8,
        });
    }
    match (arguments.flag("bf16"), arguments.flag("fp16")) {
        (Some(true), _) => Precision::Known(Dtype::Bf16),
        (_, Some(true)) => Precision::Other("FP16"),
        (Some(false), Some(false)) => Precision::Other("FP32"),
        _ => Precision::Unknown,
    }
}

/// Returns the options that differ from the default: recomputation, FSDP and the pipeline split.
pub(super) fn options(arguments: &Arguments) -> Vec<(Field, String)> {
    let whole = |key| arguments.whole(key).unwrap_or(1);
    let mut options = Vec::new();
    // By blocks, the first layers of every chunk are recomputed; otherwise all of them.
    let chunks = u64::from(whole("pipeline_model_parallel_size"))
        * u64::from(whole("virtual_pipeline_model_parallel_size"));
    let blocks = chunks.saturating_mul(whole("recompute_num_layers").into());
    let is_whole =
        arguments.text("recompute_method") != Some("block") || blocks >= u64::from(whole("num_layers"));
    match arguments.text("recompute_granularity") {
        Some("full") if is_whole => options.push((Field::Recompute, "full".to_owned())),
        Some("selective") => {
            if arguments.text("recompute_modules").is_none_or(|list| list.contains("core_attn")) {
                options.push((Field::Recompute, "selective".to_owned()));
            }
            let modules = modules(arguments);
            if modules != Modules::default() {
                options.push((Field::RecomputeModules, modules.to_string()));
            }
        }
        _ => {}
    }
    let shards = arguments.text("data_parallel_sharding_strategy") == Some("optim_grads_params");
    if arguments.flag("use_megatron_fsdp") == Some(true) && shards {
        options.push((Field::Fsdp, "on".to_owned()));
    }
    options.extend(pipeline_split(arguments).map(|split| (Field::PipelineSplit, split.to_string())));
    options
}

/// Returns the parts of a layer, beside the core of attention, that selective recomputation includes: those of a list such as
/// `['core_attn', 'moe_act']`. Megatron-LM ignores parts that the model lacks.
fn modules(arguments: &Arguments) -> Modules {
    let list = arguments.text("recompute_modules").unwrap_or_default();
    let words = list.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    let known: Vec<&str> = words.filter(|word| Modules::NAMES.contains(word)).collect();
    let listed: Modules = known.join(",").parse().unwrap_or_default();
    let routes = arguments.text("num_experts").is_some();
    let shares = arguments.whole("moe_shared_expert_intermediate_size").is_some_and(|width| width > 0);
    let has_dense_layers =
        !routes || arguments.text("moe_layer_freq").is_some_and(|frequency| frequency != "1");
    Modules {
        mlp: listed.mlp && has_dense_layers,
        mla_up_proj: listed.mla_up_proj && arguments.flag("multi_latent_attention") == Some(true),
        layernorm: listed.layernorm,
        moe_act: listed.moe_act && routes,
        shared_experts: listed.shared_experts && routes && shares,
        moe: listed.moe && routes,
    }
}
