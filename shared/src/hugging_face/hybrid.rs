//! Nemotron-H and its successors, where each layer is one block: attention, Mamba-2, MLP or routed MLP.

use super::fields::ConfigFields;
use super::{Architecture, ConfigError};
use crate::architecture::{Attention, AttentionKind, MOST_LAYERS, Mamba, Mlp, Moe};

/// Its MLPs use squared ReLU and are not gated.
const GATED: bool = false;

/// The number of blocks of each kind in a pattern.
#[derive(Debug, Default, PartialEq)]
struct HybridBlocks {
    attention: u32,
    mamba: u32,
    mlp: u32,
    moe: u32,
}

/// Returns the architecture that the fields of a hybrid define.
pub(super) fn architecture(
    fields: &mut ConfigFields<'_>,
    tied_embeddings: bool,
) -> Result<Architecture, ConfigError> {
    let blocks = blocks(fields, "hybrid_override_pattern", &["layers_block_type", "layer_types"])?
        .ok_or_else(|| fields.missing(&["hybrid_override_pattern", "layers_block_type"]))?;
    let layers = blocks.attention + blocks.mamba + blocks.mlp + blocks.moe;
    if let Some(said) = fields.whole(&["num_hidden_layers"])?.filter(|said| *said != layers) {
        return Err(ConfigError::Wrong {
            field: "num_hidden_layers".to_string(),
            found: said.to_string(),
            wanted: format!("{layers}, the number of layers in the pattern"),
        });
    }
    let attention = Attention {
        layers: blocks.attention,
        heads: fields.needed(&["num_attention_heads"])?,
        kind: AttentionKind::Gqa {
            kv_heads: fields.or_default(&["num_key_value_heads"], Some(8))?,
            head_dim: fields.or_default(&["head_dim", "attention_head_dim"], Some(128))?,
        },
        window: None,
        output_gate: false,
        sinks: false,
    };
    // Files without dense MLPs can have the field too.
    let ffn = fields.whole(&["intermediate_size"])?;
    let mlp = match (blocks.mlp, ffn) {
        (0, _) => None,
        (layers, Some(ffn)) => Some(Mlp { layers, ffn, gated: GATED }),
        (_, None) => return Err(fields.missing(&["intermediate_size"])),
    };
    Ok(Architecture {
        layers,
        hidden: fields.needed(&["hidden_size"])?,
        vocab: fields.needed(&["vocab_size"])?,
        tied_embeddings,
        attention,
        linear: None,
        mlp,
        moe: moe(fields, blocks.moe)?,
        mamba: mamba(fields, blocks.mamba)?,
        mtp_layers: mtp_layers(fields)?,
    })
}

/// Returns the blocks of a pattern of characters or of a list of words. If the file has both, they must
/// agree.
fn blocks(
    fields: &mut ConfigFields<'_>,
    pattern: &'static str,
    lists: &[&'static str],
) -> Result<Option<HybridBlocks>, ConfigError> {
    let wrong = |field: &str, found: String, wanted: &str| ConfigError::Wrong {
        field: field.to_string(),
        found,
        wanted: wanted.to_string(),
    };
    let mut found: Option<HybridBlocks> = None;
    let mut kinds: Vec<(&'static str, Vec<&str>)> = Vec::new();
    let text = fields.text(pattern)?;
    if let Some(text) = text {
        kinds.push((pattern, text.split("").filter(|kind| !kind.is_empty()).collect()));
    }
    for list in lists {
        kinds.extend(fields.texts(list)?.map(|names| (*list, names)));
    }
    for (field, kinds) in kinds {
        if kinds.len() > MOST_LAYERS as usize {
            return Err(wrong(field, format!("{} layers long", kinds.len()), "at most 10,000 layers long"));
        }
        let mut blocks = HybridBlocks::default();
        for kind in kinds {
            match kind {
                "*" | "attention" | "full_attention" => blocks.attention += 1,
                "M" | "mamba" | "linear_attention" => blocks.mamba += 1,
                "-" | "mlp" => blocks.mlp += 1,
                "E" | "moe" => blocks.moe += 1,
                other => {
                    let wanted = "a pattern of M, *, - and E (mamba, attention, mlp and moe)";
                    return Err(wrong(field, format!("a pattern with {}", super::shown_type(other)), wanted));
                }
            }
        }
        match &found {
            Some(before) if *before != blocks => {
                return Err(wrong(field, "another pattern".to_string(), "the same in both fields"));
            }
            _ => found = Some(blocks),
        }
    }
    Ok(found)
}

fn moe(fields: &mut ConfigFields<'_>, layers: u32) -> Result<Option<Moe>, ConfigError> {
    // Files without routed MLPs can have the fields too.
    let experts = fields.whole(&["n_routed_experts", "num_local_experts"])?;
    let top_k = fields.whole(&["num_experts_per_tok"])?;
    let ffn = fields.whole(&["moe_intermediate_size"])?;
    let latent = fields.whole(&["moe_latent_size"])?;
    let shared_ffn = fields.whole(&["moe_shared_expert_intermediate_size"])?;
    let shared = fields.whole(&["n_shared_experts"])?.unwrap_or(1);
    if layers == 0 {
        return Ok(None);
    }
    if shared > 1 {
        // The model's code creates one expert of that width for any number.
        fields.note_partly_read(format!("n_shared_experts = {shared} (read as 1)"));
    }
    let shared_ffn = match (shared, shared_ffn) {
        (0, _) => 0,
        (_, Some(width)) => width,
        (_, None) => return Err(fields.missing(&["moe_shared_expert_intermediate_size"])),
    };
    Ok(Some(Moe {
        layers,
        experts: experts.ok_or_else(|| fields.missing(&["n_routed_experts"]))?,
        top_k: top_k.ok_or_else(|| fields.missing(&["num_experts_per_tok"]))?,
        ffn: ffn.ok_or_else(|| fields.missing(&["moe_intermediate_size"]))?,
        shared_ffn,
        latent,
        gated: GATED,
    }))
}

fn mamba(fields: &mut ConfigFields<'_>, layers: u32) -> Result<Option<Mamba>, ConfigError> {
    if layers == 0 {
        return Ok(None);
    }
    Ok(Some(Mamba {
        layers,
        heads: fields.needed(&["mamba_num_heads"])?,
        head_dim: fields.needed(&["mamba_head_dim"])?,
        state: fields.needed(&["ssm_state_size"])?,
        groups: fields.needed(&["n_groups", "mamba_n_groups"])?,
        chunk: fields.whole(&["chunk_size", "mamba_chunk_size"])?,
    }))
}

/// Returns the number of multi-token prediction layers, each with attention and one MLP.
fn mtp_layers(fields: &mut ConfigFields<'_>) -> Result<u32, ConfigError> {
    const PATTERN: &str = "mtp_hybrid_override_pattern";
    let layers = fields.whole(&["num_nextn_predict_layers"])?.unwrap_or(0);
    let each = blocks(fields, PATTERN, &["mtp_layers_block_type"])?;
    let usual =
        |blocks: &HybridBlocks| blocks.attention == 1 && blocks.mlp + blocks.moe == 1 && blocks.mamba == 0;
    if layers > 0 && !each.as_ref().is_none_or(usual) {
        fields.note_partly_read(format!("{PATTERN} (read as one attention and one MLP block)"));
    }
    Ok(layers)
}
