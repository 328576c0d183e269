//! FLOPs counted block by block, for every architecture, with query groups and full or causal attention.
//!
//! Formulas per token and forward pass, h hidden, H heads, K KV heads, d head width, s sequence:
//! Megatron-LM's `num_floating_point_operations`, Megatron-Bridge's `flop_utils`, PaLM (arXiv:2204.02311) app. B.

use super::{Convention, ModelFlops};
use crate::architecture::{
    Architecture, AttentionKind, CONVOLUTION, LinearAttention, Mamba, Mlp, Moe, SlidingWindow,
};
use crate::explain::Line;
use crate::units::{group_digits, significant};

/// Cost of a training step in forward passes: the backward pass costs two.
const TRAINING: f64 = 3.0;

/// Takes the lines of a derivation.
trait Derivation {
    fn add(&mut self, line: impl FnOnce() -> Line);
}

impl Derivation for Vec<Line> {
    fn add(&mut self, line: impl FnOnce() -> Line) {
        self.push(line());
    }
}

/// No derivation. A search counts the FLOPs of every plan, and its program has no code that explains them.
struct Unexplained;

impl Derivation for Unexplained {
    fn add(&mut self, _line: impl FnOnce() -> Line) {}
}

/// The FLOPs of a sequence, and of its parts per token.
struct BlockFlops {
    per_sequence: f64,
    attention: f64,
    mlp: f64,
    embedding: f64,
    mamba: Option<f64>,
}

pub(super) fn count(architecture: &Architecture, seq_len: u32, causal: bool) -> ModelFlops {
    let mut lines = Vec::new();
    let BlockFlops { per_sequence, attention, mlp, embedding, mamba } =
        parts(architecture, seq_len, causal, &mut lines);
    ModelFlops {
        convention: if causal { Convention::Causal } else { Convention::Full },
        seq_len,
        per_sequence,
        attention,
        mlp,
        embedding,
        mamba,
        document: None,
        multiply_accumulates: None,
        explain: lines,
    }
}

/// Returns the FLOPs of a sequence without their derivation.
pub(super) fn per_sequence(architecture: &Architecture, seq_len: u32, causal: bool) -> f64 {
    parts(architecture, seq_len, causal, &mut Unexplained).per_sequence
}

fn parts(architecture: &Architecture, seq_len: u32, causal: bool, lines: &mut impl Derivation) -> BlockFlops {
    let attention = attention(architecture, seq_len, causal, lines);
    let mut mlp = 0.0;
    if let Some(dense) = &architecture.mlp {
        mlp += dense_mlp(architecture, dense, lines);
    }
    if let Some(moe) = &architecture.moe {
        mlp += routed_mlp(architecture, moe, lines);
    }
    let mamba = architecture.mamba.as_ref().map(|mamba| mamba_blocks(architecture, mamba, lines));
    let linear = architecture.linear.as_ref().map(|linear| linear_attention(architecture, linear, lines));
    let embedding = head(architecture, lines);
    let (attention, mlp, mtp_projection) = with_mtp(architecture, attention, mlp, lines);
    let attention = attention + linear.unwrap_or(0.0);
    let per_token = attention + mlp + mamba.unwrap_or(0.0) + embedding + mtp_projection;
    let per_sequence = f64::from(seq_len) * per_token;
    lines.add(|| {
        Line::new(
            "model FLOPs",
            "s · (sum of the parts)",
            format!("{seq_len} · {}", group_digits(per_token)),
            per_sequence,
            "FLOPs/sequence",
        )
    });
    // No document lists the input projection of an MTP layer, so it is counted with the MLPs.
    BlockFlops { per_sequence, attention, mlp: mlp + mtp_projection, embedding, mamba }
}

fn attention(architecture: &Architecture, seq_len: u32, causal: bool, lines: &mut impl Derivation) -> f64 {
    let attention = &architecture.attention;
    let (layers, hidden, heads) =
        (f64::from(attention.layers), f64::from(architecture.hidden), f64::from(attention.heads));
    let (projections, core_width) = match attention.kind {
        AttentionKind::Gqa { kv_heads, head_dim } => {
            let (groups, width) = (f64::from(kv_heads), f64::from(head_dim));
            // The output's gate is as wide as the queries.
            let as_queries = if attention.output_gate { 3.0 } else { 2.0 };
            let projections = TRAINING * layers * 2.0 * hidden * width * (as_queries * heads + 2.0 * groups);
            lines.add(|| {
                Line::new(
                    "attention projections",
                    format!("3 · L · 2·h·d·({as_queries}H + 2K)"),
                    format!("3 · {layers} · 2·{hidden}·{head_dim}·({as_queries}·{heads} + 2·{kv_heads})"),
                    projections,
                    "FLOPs/token",
                )
            });
            // Scores and their sum over values: 2·d each way for every pair.
            (projections, 2.0 * width)
        }
        AttentionKind::Mla { q_lora, qk_nope, qk_rope, v_head, .. } => {
            let [nope, rope, value] = [qk_nope, qk_rope, v_head].map(f64::from);
            let per_token = attention.weights(hidden);
            let projections = TRAINING * layers * 2.0 * per_token;
            lines.add(|| {
                Line::new(
                    "attention projections (MLA)",
                    match q_lora {
                        0 => "3 · L · 2·[h·H(dn+dr) + rkv(h + H(dn+dv)) + h·dr + H·dv·h]",
                        _ => "3 · L · 2·[rq(h + H(dn+dr)) + rkv(h + H(dn+dv)) + h·dr + H·dv·h]",
                    },
                    format!("3 · {layers} · 2·{}", group_digits(per_token)),
                    projections,
                    "FLOPs/token",
                )
            });
            (projections, nope + rope + value)
        }
    };

    // A causal mask leaves half of the pairs.
    let half = if causal { 0.5 } else { 1.0 };
    let core = |layers: f64, context: f64| TRAINING * layers * 2.0 * context * heads * core_width * half;
    let (windowed, context) = match &attention.window {
        Some(window) => (f64::from(window.layers), window_context(seq_len, window.tokens)),
        None => (0.0, 0.0),
    };
    let full = core(layers - windowed, f64::from(seq_len));
    let half_text = if causal { "½ · " } else { "" };
    lines.add(|| {
        Line::new(
            "attention core",
            format!("{half_text}3 · L · 2·s·H·(dqk + dv)"),
            format!("{half_text}3 · {} · 2·{seq_len}·{heads}·{core_width}", layers - windowed),
            full,
            "FLOPs/token",
        )
        .note(if causal {
            "the causal mask leaves half of the pairs"
        } else {
            "every pair counts, masked or not"
        })
    });
    let mut sum = projections + full;
    if windowed > 0.0 {
        let sliding = core(windowed, context);
        lines.add(|| {
            Line::new(
                "attention core, sliding window",
                format!("{half_text}3 · Lw · 2·s′·H·(dqk + dv)"),
                format!("{half_text}3 · {windowed} · 2·{}·{heads}·{core_width}", significant(context, 6)),
                sliding,
                "FLOPs/token",
            )
            .note("s′ = 2w(1 − (w−1)/2s): twice the mean context that the window leaves")
        });
        sum += sliding;
    }
    sum
}

/// Returns twice the mean number of tokens that a token attends to in a causal window, because the caller halves it for
/// causal attention; the sequence length if the window is wider.
fn window_context(seq_len: u32, window: u32) -> f64 {
    let (seq_len, window) = (f64::from(seq_len), f64::from(window));
    if window >= seq_len { seq_len } else { 2.0 * SlidingWindow::mean_context(window, seq_len) }
}

fn dense_mlp(architecture: &Architecture, mlp: &Mlp, lines: &mut impl Derivation) -> f64 {
    let projections = Mlp::projections(mlp.gated);
    let value = TRAINING
        * f64::from(mlp.layers)
        * 2.0
        * f64::from(projections)
        * f64::from(architecture.hidden)
        * f64::from(mlp.ffn);
    lines.add(|| {
        Line::new(
            "MLP",
            format!("3 · L · 2·{projections}·h·f"),
            format!("3 · {} · 2·{projections}·{}·{}", mlp.layers, architecture.hidden, mlp.ffn),
            value,
            "FLOPs/token",
        )
    });
    value
}

fn routed_mlp(architecture: &Architecture, moe: &Moe, lines: &mut impl Derivation) -> f64 {
    let projections = f64::from(Mlp::projections(moe.gated));
    let (layers, hidden, ffn) = (f64::from(moe.layers), f64::from(architecture.hidden), f64::from(moe.ffn));
    let (width, latent) = match moe.latent {
        Some(latent) => (f64::from(latent), 4.0 * hidden * f64::from(latent)),
        None => (hidden, 0.0),
    };
    let routed = TRAINING * layers * (2.0 * projections * width * ffn * f64::from(moe.top_k) + latent);
    lines.add(|| {
        Line::new(
            "routed experts",
            if moe.latent.is_some() {
                format!("3 · L · (2·{projections}·l·fe·k + 4·h·l)")
            } else {
                format!("3 · L · 2·{projections}·h·fe·k")
            },
            format!("3 · {layers} · 2·{projections}·{width}·{ffn}·{}", moe.top_k),
            routed,
            "FLOPs/token",
        )
        .note("the router is left out, as is usual")
    });
    let shared = TRAINING * layers * 2.0 * projections * hidden * f64::from(moe.shared_ffn);
    if moe.shared_ffn > 0 {
        lines.add(|| {
            Line::new(
                "shared experts",
                format!("3 · L · 2·{projections}·h·fs"),
                format!("3 · {layers} · 2·{projections}·{hidden}·{}", moe.shared_ffn),
                shared,
                "FLOPs/token",
            )
        });
    }
    routed + shared
}

fn mamba_blocks(architecture: &Architecture, mamba: &Mamba, lines: &mut impl Derivation) -> f64 {
    let hidden = f64::from(architecture.hidden);
    let [layers, heads, head_dim, state, groups] =
        [mamba.layers, mamba.heads, mamba.head_dim, mamba.state, mamba.groups].map(f64::from);
    let inner = heads * head_dim;
    let input = 2.0 * hidden * (2.0 * inner + 2.0 * groups * state + heads);
    let output = 2.0 * inner * hidden;
    let scan = 7.0 * inner * state;
    let value = TRAINING * layers * (input + output + scan);
    lines.add(|| {
        Line::new(
            "Mamba-2",
            "3 · L · [2h(2di + 2Gn + H) + 2·di·h + 7·di·n]",
            format!(
                "3 · {layers} · [2·{hidden}·(2·{inner} + 2·{groups}·{state} + {heads}) + 2·{inner}·{hidden} + 7·{inner}·{state}]"
            ),
            value,
            "FLOPs/token",
        )
        .note("di = heads · head width")
    });
    value
}

/// Returns the FLOPs of linear attention as Megatron-LM counts them, which don't depend on the sequence.
fn linear_attention(
    architecture: &Architecture,
    linear: &LinearAttention,
    lines: &mut impl Derivation,
) -> f64 {
    let hidden = f64::from(architecture.hidden);
    let (layers, heads, head) =
        (f64::from(linear.layers), f64::from(linear.value_heads), f64::from(linear.value_dim));
    let (keys, values) = (linear.key_width(), linear.value_width());
    let projections = hidden * (linear.projected_width() + values);
    let rule = 4.0 * heads * head * head;
    let value = TRAINING * layers * 2.0 * (projections + CONVOLUTION * linear.convolved_width() + rule);
    lines.add(|| {
        Line::new(
            "linear attention",
            "3 · L · 2·[h(2k + 3v + 2Hv) + 4(2k + v) + 4·Hv·dv²]",
            format!(
                "3 · {layers} · 2·[{hidden}·(2·{keys} + 3·{values} + 2·{heads}) + 4·(2·{keys} + {values}) + 4·{heads}·{head}²]"
            ),
            value,
            "FLOPs/token",
        )
        .note("k and v: width of all keys, and of all values")
    });
    value
}

fn head(architecture: &Architecture, lines: &mut impl Derivation) -> f64 {
    let heads = 1 + architecture.mtp_layers;
    let value =
        TRAINING * 2.0 * f64::from(architecture.hidden) * f64::from(architecture.vocab) * f64::from(heads);
    lines.add(|| {
        let times = if heads > 1 { format!(" · {heads}") } else { String::new() };
        Line::new(
            "head",
            format!("3 · 2·h·V{}", if heads > 1 { "·(1 + MTP)" } else { "" }),
            format!("3 · 2·{}·{}{times}", architecture.hidden, architecture.vocab),
            value,
            "FLOPs/token",
        )
        .note("looking up the input embedding costs no FLOPs")
    });
    value
}

/// Adds the cost of multi-token prediction: more layers of the last kind, each with a projection of two inputs to one.
fn with_mtp(
    architecture: &Architecture,
    attention: f64,
    mlp: f64,
    lines: &mut impl Derivation,
) -> (f64, f64, f64) {
    if architecture.mtp_layers == 0 {
        return (attention, mlp, 0.0);
    }
    let extra = f64::from(architecture.mtp_layers);
    let hidden = f64::from(architecture.hidden);
    let attention_layer = attention / f64::from(architecture.attention.layers.max(1));
    let mlp_layer = last_mlp_layer(architecture);
    let projection = TRAINING * extra * 2.0 * 2.0 * hidden * hidden;
    lines.add(|| {
        Line::new(
            "multi-token prediction",
            "MTP · (attention layer + MLP layer + 3 · 2·2·h²)",
            format!(
                "{extra} · ({} + {}) + {}",
                group_digits(attention_layer),
                group_digits(mlp_layer),
                group_digits(projection)
            ),
            extra * (attention_layer + mlp_layer) + projection,
            "FLOPs/token",
        )
    });
    (attention + extra * attention_layer, mlp + extra * mlp_layer, projection)
}

/// Returns the training FLOPs per token of an MLP block like the last one.
fn last_mlp_layer(architecture: &Architecture) -> f64 {
    match (&architecture.moe, &architecture.mlp) {
        (Some(moe), _) => routed_mlp(architecture, &Moe { layers: 1, ..moe.clone() }, &mut Unexplained),
        (None, Some(mlp)) => dense_mlp(architecture, &Mlp { layers: 1, ..mlp.clone() }, &mut Unexplained),
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn per_sequence(model: &str, seq_len: u32, causal: bool) -> f64 {
        count(&Catalog::embedded().model(model).unwrap().architecture, seq_len, causal).per_sequence
    }

    fn close(value: f64, published: f64, within: f64) {
        assert!((value / published - 1.0).abs() < within, "{value:e} is not {published:e}");
    }

    #[test]
    fn known_totals() {
        close(per_sequence("llama3.1-8b", 8192, false), 4.74e14, 1e-3);
        close(per_sequence("llama3.1-8b", 8192, true), 4.216e14, 1e-3);
        close(per_sequence("nemotron4-15b", 4096, false), 3.850e14, 1e-3);
        close(per_sequence("nemotron4-340b", 4096, false), 8.621_236_313_653_248e15, 1e-12);
        close(per_sequence("nemotron-h-56b", 8192, false), 2.820e15, 1e-3);
        close(per_sequence("gpt3-175b", 2048, false) / 2048.0, 1.076e12, 1e-2);
    }

    #[test]
    fn a_routed_model_computes_what_its_active_parameters_say() {
        // Away from attention over context, training takes 6 FLOPs per active parameter and token; the
        // input embedding holds parameters that cost nothing, and DeepSeek-V3's MTP layer comes on top.
        for id in [
            "mixtral-8x7b",
            "qwen3-235b-a22b",
            "llama4-maverick",
            "deepseek-v2",
            "kimi-k2",
            "qwen3.5-397b-a17b",
        ] {
            let model = Catalog::embedded().model(id).unwrap();
            let flops = count(&model.architecture, 1, true);
            let embedding = f64::from(model.architecture.vocab) * f64::from(model.architecture.hidden);
            close(flops.per_sequence, 6.0 * (model.active_b * 1e9 - embedding), 0.03);
        }
    }

    #[test]
    fn a_window_saves_what_it_hides() {
        let full = count(&Catalog::embedded().model("gpt-oss-20b").unwrap().architecture, 128, true);
        let mut open = Catalog::embedded().model("gpt-oss-20b").unwrap().architecture.clone();
        open.attention.window = None;
        // At the window's own length there is nothing to hide.
        assert_eq!(full.per_sequence, count(&open, 128, true).per_sequence);
        assert!(per_sequence("gpt-oss-20b", 8192, true) < count(&open, 8192, true).per_sequence);
        assert_eq!(window_context(4096, 1), 2.0);
    }

    #[test]
    fn linear_attention_costs_as_much_for_every_sequence() {
        let model = &Catalog::embedded().model("qwen3-next-80b-a3b").unwrap().architecture;
        let linear = model.linear.as_ref().unwrap();
        let cost = linear_attention(model, linear, &mut Unexplained);
        // Megatron-LM's num_floating_point_operations: a block's projections, convolution and delta rule.
        let block =
            2048 * (2 * 2048 + 2 * 4096 + 64) + 4 * (2 * 2048 + 4096) + 32 * 128 * 128 * 4 + 2048 * 4096;
        assert_eq!(cost, f64::from(3 * 2 * block) * 36.0);
        // The share of full attention's scores grows with the sequence; the rest doesn't.
        let of = |seq_len| per_sequence("qwen3-next-80b-a3b", seq_len, false) / f64::from(seq_len);
        let scores = 3.0 * 12.0 * 2.0 * 16.0 * 512.0 * 4096.0;
        close(of(8192) - of(4096), scores, 1e-9);
    }

    #[test]
    fn the_parts_make_the_whole() {
        for model in Catalog::embedded().models() {
            let flops = count(&model.architecture, model.seq_len, false);
            let parts = flops.attention + flops.mlp + flops.embedding + flops.mamba.unwrap_or(0.0);
            close(parts * f64::from(model.seq_len), flops.per_sequence, 1e-12);
            assert!(flops.per_sequence.is_finite() && flops.per_sequence > 0.0);
        }
    }
}
