//! Architectures: the layers of a model and their widths.

mod check;
mod parameters;

pub(crate) use check::MOST_LAYERS;
pub(crate) use parameters::CONVOLUTION;

use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::units::{greatest_common_divisor, nearest_multiples};
use serde::Serialize;

/// A decoder-only model: attention, linear attention, dense MLP, routed MLP and Mamba-2 blocks between an embedding and a
/// head.
///
/// Blocks are counted by kind. In a transformer every layer holds one block of attention, full or linear, and one MLP block;
/// in a hybrid with Mamba-2 each layer holds one block of any kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Architecture {
    /// Layers that a pipeline splits.
    pub layers: u32,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Padded vocabulary.
    pub vocab: u32,
    /// Whether embedding and head share their weights.
    pub tied_embeddings: bool,
    /// Attention blocks.
    pub attention: Attention,
    /// Linear-attention blocks, which replace attention in some layers of a transformer, if any.
    pub linear: Option<LinearAttention>,
    /// Dense MLP blocks, if any.
    pub mlp: Option<Mlp>,
    /// Routed MLP blocks, if any.
    pub moe: Option<Moe>,
    /// Mamba-2 blocks, if any.
    pub mamba: Option<Mamba>,
    /// Extra multi-token-prediction layers.
    pub mtp_layers: u32,
}

/// Attention blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attention {
    /// How many blocks.
    pub layers: u32,
    /// Query heads.
    pub heads: u32,
    /// How keys and values are computed.
    pub kind: AttentionKind,
    /// Blocks that see only a sliding window.
    pub window: Option<SlidingWindow>,
    /// Whether a gate for every number of its output is computed from its input.
    pub output_gate: bool,
    /// Whether each head has a learned sink in the softmax, which older fused kernels do not support.
    pub sinks: bool,
}

/// How keys and values are computed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// Grouped queries: `kv_heads` equal to the heads is plain multi-head attention.
    Gqa {
        /// Heads of keys and values (query groups).
        kv_heads: u32,
        /// Width of a head.
        head_dim: u32,
    },
    /// Multi-head latent attention.
    Mla {
        /// Rank of the compressed queries; 0 where queries are not compressed.
        q_lora: u32,
        /// Rank of the compressed keys and values.
        kv_lora: u32,
        /// Width of a head's part without position.
        qk_nope: u32,
        /// Width of a head's rotary part.
        qk_rope: u32,
        /// Width of a head's values.
        v_head: u32,
    },
}

/// A sliding window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlidingWindow {
    /// Tokens that it spans.
    pub tokens: u32,
    /// Attention blocks that have it.
    pub layers: u32,
}

impl SlidingWindow {
    /// Returns the mean number of tokens that a token attends to in a causal sequence no shorter than the window.
    pub(crate) fn mean_context(tokens: f64, seq_len: f64) -> f64 {
        tokens * (1.0 - (tokens - 1.0) / (2.0 * seq_len))
    }
}

/// Linear-attention blocks: gated delta rule (arXiv:2412.06464), as in Qwen3-Next and Qwen3.5.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinearAttention {
    /// How many blocks.
    pub layers: u32,
    /// Heads of queries and keys.
    pub key_heads: u32,
    /// Heads of values: each key head serves as many of them.
    pub value_heads: u32,
    /// Width of a query's or key's head.
    pub key_dim: u32,
    /// Width of a value's head.
    pub value_dim: u32,
}

/// Dense MLP blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mlp {
    /// How many blocks.
    pub layers: u32,
    /// Width between its two projections.
    pub ffn: u32,
    /// Whether a third projection gates it (SwiGLU and kin).
    pub gated: bool,
}

impl Mlp {
    /// Projections of a block: 3 if gated, else 2.
    pub fn projections(gated: bool) -> u32 {
        if gated { 3 } else { 2 }
    }
}

/// Routed MLP blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moe {
    /// How many blocks.
    pub layers: u32,
    /// Routed experts of a block.
    pub experts: u32,
    /// Experts that a token visits.
    pub top_k: u32,
    /// Width of a routed expert.
    pub ffn: u32,
    /// Total width of the shared experts; 0 without shared experts.
    pub shared_ffn: u32,
    /// Input width of the experts if it differs from the hidden width.
    pub latent: Option<u32>,
    /// Whether experts are gated.
    pub gated: bool,
}

/// Mamba-2 blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mamba {
    /// How many blocks.
    pub layers: u32,
    /// Heads.
    pub heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// Width of the state.
    pub state: u32,
    /// Groups that share a state projection.
    pub groups: u32,
    /// Tokens that the scan processes at a time, if published.
    pub chunk: Option<u32>,
}

impl Architecture {
    /// Returns a proxy: the same model with another number of layers.
    ///
    /// A mixture of experts keeps its dense leading layers, a hybrid the ratio of its kinds of blocks.
    ///
    /// # Errors
    /// No layers, or a number that breaks the ratio of a hybrid.
    pub fn with_layers(&self, layers: u32) -> Result<Architecture, Problem> {
        if layers == self.layers {
            return Ok(self.clone());
        }
        if layers == 0 {
            let message = message![Field::Layers, " must be at least 1."];
            return Err(Problem::new(Field::Layers, layers, message).suggest([1]));
        }
        let mut proxy = self.clone();
        proxy.layers = layers;
        match &self.mamba {
            Some(_) => proxy.scale_hybrid(self.layers)?,
            None => {
                proxy.scale_mixers(self.layers)?;
                if let (Some(moe), dense) = (&mut proxy.moe, &mut proxy.mlp) {
                    let dense_layers = dense.as_ref().map_or(0, |mlp| mlp.layers).min(layers);
                    moe.layers = layers - dense_layers;
                    if let Some(mlp) = dense {
                        mlp.layers = dense_layers;
                    }
                } else if let Some(mlp) = &mut proxy.mlp {
                    mlp.layers = layers;
                }
                if let Some(window) = &mut proxy.attention.window {
                    window.layers =
                        (u64::from(window.layers) * u64::from(layers) / u64::from(self.layers)) as u32;
                }
            }
        }
        Ok(proxy)
    }

    /// Scales full and linear attention of a transformer from `from` layers to `self.layers`.
    fn scale_mixers(&mut self, from: u32) -> Result<(), Problem> {
        let to = self.layers;
        let Some(linear) = &mut self.linear else {
            self.attention.layers = to;
            return Ok(());
        };
        let unit = from / greatest_common_divisor(from, self.attention.layers);
        if !to.is_multiple_of(unit) {
            let message = format!(
                "{to} layers break the ratio of full and linear attention, which repeats every {unit} layers."
            );
            return Err(Problem::new(Field::Layers, to, message).suggest(nearest_multiples(to, unit)));
        }
        self.attention.layers = (u64::from(self.attention.layers) * u64::from(to) / u64::from(from)) as u32;
        linear.layers = to - self.attention.layers;
        Ok(())
    }

    /// Scales the blocks of a hybrid from `from` layers to `self.layers`.
    fn scale_hybrid(&mut self, from: u32) -> Result<(), Problem> {
        let to = self.layers;
        let counts = [
            Some(&mut self.attention.layers),
            self.mlp.as_mut().map(|mlp| &mut mlp.layers),
            self.moe.as_mut().map(|moe| &mut moe.layers),
            self.mamba.as_mut().map(|mamba| &mut mamba.layers),
        ];
        let counts: Vec<&mut u32> = counts.into_iter().flatten().collect();
        let unit = from / counts.iter().fold(from, |common, count| greatest_common_divisor(common, **count));
        if !to.is_multiple_of(unit) {
            let message = format!(
                "{to} layers break the ratio of attention, MLP and Mamba blocks, which repeats every {unit} layers."
            );
            return Err(Problem::new(Field::Layers, to, message).suggest(nearest_multiples(to, unit)));
        }
        for count in counts {
            *count = (u64::from(*count) * u64::from(to) / u64::from(from)) as u32;
        }
        Ok(())
    }

    /// Returns the widths that must be divisible by TP, each with its name.
    pub(crate) fn tp_widths(&self) -> Vec<(&'static str, u32)> {
        let mut widths = vec![("attention heads", self.attention.heads), ("hidden width", self.hidden)];
        if let Some(mlp) = &self.mlp {
            widths.push(("FFN width", mlp.ffn));
        }
        if let Some(linear) = &self.linear {
            widths.extend([
                ("key heads of linear attention", linear.key_heads),
                ("value heads of linear attention", linear.value_heads),
            ]);
        }
        if let Some(mamba) = &self.mamba {
            widths.extend([("Mamba heads", mamba.heads), ("Mamba groups", mamba.groups)]);
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::Catalog;

    #[test]
    fn a_dense_proxy_has_fewer_of_every_block() {
        let proxy = Catalog::embedded().model("llama3.1-405b").unwrap().architecture.with_layers(30).unwrap();
        assert_eq!((proxy.attention.layers, proxy.mlp.unwrap().layers), (30, 30));
    }

    #[test]
    fn a_routed_proxy_keeps_its_dense_layers() {
        let proxy = Catalog::embedded().model("deepseek-v3").unwrap().architecture.with_layers(16).unwrap();
        assert_eq!((proxy.mlp.unwrap().layers, proxy.moe.unwrap().layers), (3, 13));
    }

    #[test]
    fn a_hybrid_proxy_keeps_its_ratio() {
        let model = &Catalog::embedded().model("nemotron-h-56b").unwrap().architecture;
        let proxy = model.with_layers(59).unwrap();
        assert_eq!(
            (proxy.attention.layers, proxy.mlp.unwrap().layers, proxy.mamba.unwrap().layers),
            (5, 27, 27)
        );
        assert_eq!(model.with_layers(60).unwrap_err().suggestions, ["59", "118"]);
    }

    #[test]
    fn a_proxy_with_linear_attention_keeps_its_ratio() {
        let model = &Catalog::embedded().model("qwen3-next-80b-a3b").unwrap().architecture;
        let proxy = model.with_layers(8).unwrap();
        assert_eq!(
            (proxy.attention.layers, proxy.linear.unwrap().layers, proxy.moe.unwrap().layers),
            (2, 6, 8)
        );
        assert_eq!(model.with_layers(10).unwrap_err().suggestions, ["8", "12"]);
    }
}
