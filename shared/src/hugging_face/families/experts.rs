//! Routed experts: their number, their widths, and which layers have them.

use super::{ExpertRule, Family, zero};
use crate::architecture::Moe;
use crate::hugging_face::fields::ConfigFields;
use crate::hugging_face::{ConfigError, shown_type};

const EXPERTS: &[&str] = &["num_local_experts", "num_experts", "moe_num_experts"];

/// Every name that known families have for the number of routed experts.
const EXPERT_COUNTS: [&str; 4] = ["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"];

/// Unambiguous names of the width of a routed expert.
const EXPERT_WIDTHS: [&str; 3] = ["moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size"];

const TOP_K: &[&str] =
    &["num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k"];

impl Family {
    pub(in crate::hugging_face) fn moe(
        &self,
        fields: &mut ConfigFields<'_>,
        layers: u32,
    ) -> Result<Option<Moe>, ConfigError> {
        let (experts, ffn, shared_ffn, routed) = match self.experts {
            ExpertRule::None => return Ok(None),
            ExpertRule::Every | ExpertRule::EveryAndShared => {
                let experts = fields.needed(EXPERTS)?;
                let ffn = fields.needed(&["intermediate_size"])?;
                let shared_ffn = match self.experts {
                    ExpertRule::EveryAndShared => ffn,
                    _ => shared_width(fields, ffn)?,
                };
                let routed = routed_by_type(fields, layers)?.unwrap_or(layers);
                (experts, ffn, shared_ffn, if experts == 0 { 0 } else { routed })
            }
            ExpertRule::Sparse(shared) => {
                let experts = fields.needed(&["num_experts", "num_local_experts"])?;
                let shared_ffn = match shared {
                    Some(_) => fields.or_default(&["shared_expert_intermediate_size"], shared)?,
                    None => 0,
                };
                let routed = if experts == 0 { 0 } else { sparse_layers(fields, layers)? };
                (experts, fields.needed(&["moe_intermediate_size"])?, shared_ffn, routed)
            }
            ExpertRule::DeepSeek { first, shared } => {
                if fields.is_null("n_routed_experts") {
                    return Ok(None);
                }
                let experts = fields.needed(&["n_routed_experts", "num_experts"])?;
                let ffn = fields.needed(&["moe_intermediate_size"])?;
                // Null means none.
                let shared = match fields.is_null("n_shared_experts") {
                    true => 0,
                    false => fields.or_default(&["n_shared_experts", "num_shared_experts"], Some(shared))?,
                };
                (experts, ffn, shared.saturating_mul(ffn), deepseek_layers(fields, layers, first)?)
            }
            ExpertRule::Ernie => {
                let experts = fields.needed(EXPERTS)?;
                let ffn = fields.needed(&["moe_intermediate_size"])?;
                (experts, ffn, shared_width(fields, ffn)?, ernie_layers(fields, layers)?)
            }
            ExpertRule::ByFields => match by_fields(fields, layers)? {
                Some(experts) => experts,
                None => return Ok(None),
            },
            ExpertRule::Dbrx => return dbrx(fields, layers, self.gated),
            ExpertRule::Llama4 => {
                let experts = fields.needed(&["num_local_experts"])?;
                let ffn = fields.needed(&["intermediate_size"])?;
                (experts, ffn, ffn, llama4_layers(fields, layers)?)
            }
        };
        if routed == 0 {
            fields.whole(TOP_K)?;
            return Ok(None);
        }
        let top_k = fields.needed(TOP_K)?;
        Ok(Some(Moe { layers: routed, experts, top_k, ffn, shared_ffn, latent: None, gated: self.gated }))
    }
}

/// Returns the experts, their width, the width of the shared experts and the routed layers of an unknown family; none if the file has
/// no experts. Every choice among the meanings that known families give to a field is noted.
fn by_fields(
    fields: &mut ConfigFields<'_>,
    layers: u32,
) -> Result<Option<(u32, u32, u32, u32)>, ConfigError> {
    let Some(experts) = fields.whole(&EXPERT_COUNTS)?.filter(|experts| *experts > 0) else { return Ok(None) };
    let ffn = match fields.whole(&EXPERT_WIDTHS)? {
        Some(ffn) => ffn,
        None => {
            let ffn = fields.needed(&["intermediate_size"])?;
            fields.note(format!("Width of an expert assumed: {ffn}, the intermediate_size (as in Mixtral)."));
            ffn
        }
    };
    let width = fields.whole(&["shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"])?;
    let number = fields.whole(&["n_shared_experts"])?;
    let by_number = shared_width(fields, ffn)?;
    let shared_ffn = match (width, number) {
        (Some(width), _) => width,
        (None, Some(number)) => number.saturating_mul(ffn),
        (None, None) => by_number,
    };
    if shared_ffn == 0 {
        fields.note("No shared experts assumed (the file has no field for them, or 0).".to_string());
    }
    let routed = if fields.names("first_k_dense_replace") || fields.names("moe_layer_freq") {
        deepseek_layers(fields, layers, 0)?
    } else {
        let selects = ["mlp_layer_types", "decoder_sparse_step", "mlp_only_layers"];
        if !selects.iter().any(|name| fields.names(name)) {
            fields.note(format!(
                "Experts assumed in every one of the {layers} layers (no field says otherwise)."
            ));
        }
        sparse_layers(fields, layers)?
    };
    Ok(Some((experts, ffn, shared_ffn, routed)))
}

/// Returns the width of the shared experts, given as a width or as a number of experts of width `ffn`.
fn shared_width(fields: &mut ConfigFields<'_>, ffn: u32) -> Result<u32, ConfigError> {
    let width = fields.whole(&["shared_intermediate_size"])?;
    let experts = fields.whole(&["moe_num_shared_experts", "num_shared_experts"])?.unwrap_or(0);
    Ok(width.unwrap_or(experts.saturating_mul(ffn)))
}

/// Returns the number of routed layers by `mlp_layer_types`, if the file has it.
fn routed_by_type(fields: &mut ConfigFields<'_>, layers: u32) -> Result<Option<u32>, ConfigError> {
    const NAME: &str = "mlp_layer_types";
    let Some(types) = fields.texts(NAME)? else { return Ok(None) };
    let wrong = |found, wanted| Err(ConfigError::Wrong { field: NAME.to_string(), found, wanted });
    if types.len() != layers as usize {
        let found = format!("a list of {}", types.len());
        return wrong(found, format!("a list with one entry for each of {layers} layers"));
    }
    match types.iter().find(|kind| !matches!(**kind, "dense" | "sparse")) {
        Some(other) => wrong(shown_type(other), "dense or sparse for each layer".to_string()),
        None => Ok(Some(types.iter().filter(|kind| **kind == "sparse").count() as u32)),
    }
}

/// Returns the number of Ernie's routed layers.
fn ernie_layers(fields: &mut ConfigFields<'_>, layers: u32) -> Result<u32, ConfigError> {
    const STEP: &str = "moe_layer_interval";
    let first = fields.or_default(&["moe_layer_start_index"], Some(1))?;
    // -1 means the last layer.
    let last = fields.last_layer("moe_layer_end_index", layers)?;
    match fields.or_default(&[STEP], Some(1))? {
        0 => Err(zero(STEP)),
        step => {
            let routes = |layer: &u32| (first..=last).contains(layer) && (layer + 1).is_multiple_of(step);
            Ok((0..layers).filter(routes).count() as u32)
        }
    }
}

/// Returns the routed layers that DBRX's `ffn_config` describes.
fn dbrx(fields: &mut ConfigFields<'_>, layers: u32, gated: bool) -> Result<Option<Moe>, ConfigError> {
    let Some(mut moe) = fields.object("ffn_config")? else { return Err(fields.missing(&["ffn_config"])) };
    Ok(Some(Moe {
        layers,
        experts: moe.or_default(&["moe_num_experts"], Some(4))?,
        top_k: moe.or_default(&["moe_top_k"], Some(1))?,
        ffn: moe.or_default(&["ffn_hidden_size"], Some(3584))?,
        shared_ffn: 0,
        latent: None,
        gated,
    }))
}

/// Returns the number of Qwen's routed layers.
fn sparse_layers(fields: &mut ConfigFields<'_>, layers: u32) -> Result<u32, ConfigError> {
    let step = fields.whole(&["decoder_sparse_step"])?.unwrap_or(1);
    let dense = fields.wholes("mlp_only_layers")?.unwrap_or_default();
    if let Some(routed) = routed_by_type(fields, layers)? {
        return Ok(routed);
    }
    if step == 0 {
        return Err(zero("decoder_sparse_step"));
    }
    let routes = |layer: &u32| !dense.contains(layer) && (layer + 1).is_multiple_of(step);
    Ok((0..layers).filter(routes).count() as u32)
}

/// Returns the number of DeepSeek's routed layers.
fn deepseek_layers(fields: &mut ConfigFields<'_>, layers: u32, first: u32) -> Result<u32, ConfigError> {
    const STEP: &str = "moe_layer_freq";
    if let Some(routed) = routed_by_type(fields, layers)? {
        fields.whole(&["first_k_dense_replace"])?;
        return Ok(routed);
    }
    let first = fields.or_default(&["first_k_dense_replace"], Some(first))?;
    if fields.is_list(STEP) {
        let each = fields.wholes(STEP)?.unwrap_or_default();
        if each.len() != layers as usize {
            return Err(ConfigError::Wrong {
                field: STEP.to_string(),
                found: format!("a list of {}", each.len()),
                wanted: format!("a list with one entry for each of {layers} layers"),
            });
        }
        let routes =
            |layer: &u32| *layer >= first && each.get(*layer as usize).is_some_and(|routes| *routes > 0);
        return Ok((0..layers).filter(routes).count() as u32);
    }
    match fields.whole(&[STEP])?.unwrap_or(1) {
        0 => Err(zero(STEP)),
        step => Ok((0..layers).filter(|layer| *layer >= first && layer.is_multiple_of(step)).count() as u32),
    }
}

/// Returns the number of Llama 4's routed layers.
fn llama4_layers(fields: &mut ConfigFields<'_>, layers: u32) -> Result<u32, ConfigError> {
    const STEP: &str = "interleave_moe_layer_step";
    let step = fields.whole(&[STEP])?;
    if let Some(listed) = fields.wholes("moe_layers")? {
        return Ok((0..layers).filter(|layer| listed.contains(layer)).count() as u32);
    }
    match step {
        Some(0) => Err(zero(STEP)),
        Some(step) => Ok(layers / step),
        None => Ok(layers / fields.or_default(&[STEP], Some(1))?.max(1)),
    }
}
