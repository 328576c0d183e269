//! Bamba, Granite 4 and Falcon-H1, whose layers hold Mamba-2, attention and an MLP.
//!
//! An architecture with Mamba-2 has one block in each layer, so a layer of the file becomes two or three.

use super::families::{self, Family};
use super::fields::ConfigFields;
use super::{Architecture, ConfigError};
use crate::architecture::{Attention, AttentionKind, Mamba, Mlp};

/// Fields of Mamba-2.
const MAMBA: [&str; 7] = [
    "mamba_chunk_size",
    "mamba_d_conv",
    "mamba_d_head",
    "mamba_d_state",
    "mamba_expand",
    "mamba_n_groups",
    "mamba_n_heads",
];

impl Family {
    /// Returns the architecture of a file whose layers hold several kinds of blocks, and its number of layers in the
    /// file.
    pub(super) fn mixed(
        &self,
        fields: &mut ConfigFields<'_>,
        tied_embeddings: bool,
    ) -> Result<(Architecture, u32), ConfigError> {
        let layers = families::layers(fields)?;
        let hidden = fields.needed(&["hidden_size"])?;
        let (attention_layers, mamba_layers) = mixers(fields, layers)?;
        if mamba_layers == 0 {
            // Granite's files without Mamba-2 have its fields too.
            MAMBA.iter().for_each(|name| {
                fields.has(name);
            });
            return self.architecture(fields, tied_embeddings).map(|architecture| (architecture, layers));
        }
        if attention_layers == 0 {
            return Err(ConfigError::Unsound("has no attention layers, and Trainplan needs one".to_string()));
        }
        let heads = fields.needed(&["num_attention_heads"])?;
        let attention = Attention {
            layers: attention_layers,
            heads,
            kind: AttentionKind::Gqa {
                kv_heads: fields.or_default(&["num_key_value_heads"], Some(heads))?,
                head_dim: fields.or_default(&["head_dim"], hidden.checked_div(heads))?,
            },
            window: None,
            output_gate: false,
            sinks: false,
        };
        let mamba = mamba(fields, hidden, mamba_layers)?;
        let moe = self.moe(fields, layers)?;
        let ffn = self.ffn(fields, hidden, moe.is_none())?;
        let blocks = attention_layers + mamba_layers + layers;
        fields.note(format!("The {layers} layers are counted as {blocks}, one for each block."));
        let architecture = Architecture {
            layers: blocks,
            hidden,
            vocab: fields.needed(&["vocab_size"])?,
            tied_embeddings,
            attention,
            linear: None,
            mlp: moe.is_none().then_some(Mlp { layers, ffn, gated: self.gated }),
            moe,
            mamba: Some(mamba),
            mtp_layers: 0,
        };
        Ok((architecture, layers))
    }
}

/// Returns the number of layers with attention and with Mamba-2. In Falcon-H1, each layer has both.
fn mixers(fields: &mut ConfigFields<'_>, layers: u32) -> Result<(u32, u32), ConfigError> {
    let listed = fields.wholes("attn_layer_indices")?;
    let types = match fields.texts("layers_block_type")? {
        Some(types) => Some(types),
        None => fields.texts("layer_types")?,
    };
    if fields.family == "falcon_h1" {
        return Ok((layers, layers));
    }
    let is_attention = |kind: &&&str| matches!(**kind, "attention" | "full_attention");
    let attention = match (types, listed) {
        (Some(types), _) if types.len() != layers as usize => {
            return Err(ConfigError::Wrong {
                field: "layer_types".to_string(),
                found: format!("a list of {}", types.len()),
                wanted: format!("a list with one entry for each of {layers} layers"),
            });
        }
        (Some(types), _) => types.iter().filter(is_attention).count() as u32,
        (None, Some(listed)) => (0..layers).filter(|layer| listed.contains(layer)).count() as u32,
        (None, None) => 0,
    };
    Ok((attention, layers - attention))
}

fn mamba(fields: &mut ConfigFields<'_>, hidden: u32, layers: u32) -> Result<Mamba, ConfigError> {
    let heads = fields.needed(&["mamba_n_heads"])?;
    let width = fields.whole(&["mamba_d_ssm"])?;
    let expand = fields.whole(&["mamba_expand"])?.unwrap_or(2);
    let inner = width.unwrap_or(hidden.saturating_mul(expand));
    if fields.whole(&["mamba_d_conv"])?.is_some_and(|tokens| tokens != 4) {
        fields.note_partly_read("mamba_d_conv (read as 4)".to_string());
    }
    // It is always the inner width / heads; in some files it is "auto".
    fields.has("mamba_d_head");
    Ok(Mamba {
        layers,
        heads,
        head_dim: inner.checked_div(heads).unwrap_or(0),
        state: fields.needed(&["mamba_d_state"])?,
        groups: fields.needed(&["mamba_n_groups"])?,
        chunk: fields.whole(&["mamba_chunk_size"])?,
    })
}
