//! FLOPs counted with the formulas of the recipes' documents.

use super::{Convention, DocumentNumber, ModelFlops, MultiplyAccumulates};
use crate::architecture::{Architecture, AttentionKind, Mlp};
use crate::catalog::{DocumentFlops, Formula};
use crate::explain::Line;
use crate::units::group_digits;

pub(super) fn count(
    architecture: &Architecture,
    seq_len: u32,
    document: &DocumentFlops,
    published: bool,
) -> ModelFlops {
    let parts = match document.formula {
        Formula::Mha => every_head_its_own(architecture, seq_len),
        Formula::Gqa => query_groups(architecture, seq_len, document.query_groups),
        Formula::Hybrid => hybrid(architecture, seq_len),
    };
    let per_token = parts.attention + parts.mlp + parts.embedding + parts.mamba.unwrap_or(0.0);
    let per_sequence = f64::from(seq_len) * per_token;
    let mut explain = parts.lines;
    let total = Line::new(
        "model FLOPs",
        "s · (sum of the parts)",
        format!("{seq_len} · {}", group_digits(per_token)),
        per_sequence,
        "FLOPs/sequence",
    );
    explain.push(total.note(&document.reason));
    ModelFlops {
        convention: Convention::Recipe,
        seq_len,
        per_sequence,
        attention: parts.attention,
        mlp: parts.mlp,
        embedding: parts.embedding,
        mamba: parts.mamba,
        document: document
            .model_flops
            .filter(|_| published)
            .map(|value| DocumentNumber { value, reason: document.reason.clone() }),
        multiply_accumulates: parts.multiply_accumulates,
        explain,
    }
}

/// Training FLOPs per token, by part.
struct Parts {
    attention: f64,
    mlp: f64,
    embedding: f64,
    mamba: Option<f64>,
    multiply_accumulates: Option<MultiplyAccumulates>,
    lines: Vec<Line>,
}

/// Releases 24.11 and 25.04 of Nemotron-4: 24·L·h² + 12·L·h·s, 48·L·h², 6·V·h.
fn every_head_its_own(architecture: &Architecture, seq_len: u32) -> Parts {
    let [layers, hidden, vocab, seq] =
        [architecture.layers, architecture.hidden, architecture.vocab, seq_len].map(f64::from);
    let attention = 24.0 * layers * hidden * hidden + 12.0 * layers * hidden * seq;
    let mlp = 48.0 * layers * hidden * hidden;
    let lines = vec![
        part(
            "attention",
            "24·L·h² + 12·L·h·s",
            format!("24·{layers}·{hidden}² + 12·{layers}·{hidden}·{seq}"),
            attention,
        )
        .note("as if every head had its own keys and values"),
        part("MLP", "48·L·h²", format!("48·{layers}·{hidden}²"), mlp),
    ];
    with_embedding(attention, mlp, hidden, vocab, lines)
}

/// Release 25.12 of Nemotron-4 and release 25.04 of Llama 3.1: 12·L·h²·(1 + K/H + s/h), 6·L·g·h·f, 6·V·h.
fn query_groups(architecture: &Architecture, seq_len: u32, counted_groups: Option<u32>) -> Parts {
    let [layers, hidden, vocab, seq] =
        [architecture.layers, architecture.hidden, architecture.vocab, seq_len].map(f64::from);
    let heads = f64::from(architecture.attention.heads);
    let groups = f64::from(counted_groups.unwrap_or(match architecture.attention.kind {
        AttentionKind::Gqa { kv_heads, .. } => kv_heads,
        AttentionKind::Mla { .. } => architecture.attention.heads,
    }));
    // Term by term, so that every product of whole numbers stays whole.
    let attention = 12.0 * layers * hidden * hidden
        + 12.0 * layers * hidden * hidden * groups / heads
        + 12.0 * layers * hidden * seq;
    let (ffn, projections) = match &architecture.mlp {
        Some(Mlp { ffn, gated, .. }) => (f64::from(*ffn), f64::from(Mlp::projections(*gated))),
        None => (0.0, 0.0),
    };
    let factor = 6.0 * projections;
    let mlp = factor * layers * hidden * ffn;
    let lines = vec![
        part(
            "attention",
            "12·L·h²·(1 + K/H + s/h)",
            format!("12·{layers}·{hidden}²·(1 + {groups}/{heads} + {seq}/{hidden})"),
            attention,
        ),
        part("MLP", format!("{factor}·L·h·f"), format!("{factor}·{layers}·{hidden}·{ffn}"), mlp),
    ];
    with_embedding(attention, mlp, hidden, vocab, lines)
}

fn with_embedding(attention: f64, mlp: f64, hidden: f64, vocab: f64, mut lines: Vec<Line>) -> Parts {
    let embedding = 6.0 * vocab * hidden;
    lines.push(part("embedding", "6·V·h", format!("6·{vocab}·{hidden}"), embedding));
    Parts { attention, mlp, embedding, mamba: None, multiply_accumulates: None, lines }
}

/// Release 25.05 of Nemotron-H: multiply-accumulates per sequence of each kind of block, times 6.
fn hybrid(architecture: &Architecture, seq_len: u32) -> Parts {
    let [hidden, vocab, seq] = [architecture.hidden, architecture.vocab, seq_len].map(f64::from);
    let (mlp_layers, ffn) =
        architecture.mlp.as_ref().map_or((0.0, 0.0), |mlp| (mlp.layers.into(), mlp.ffn.into()));
    let mlp = 2.0 * seq * hidden * ffn * mlp_layers;

    let attention_layers = f64::from(architecture.attention.layers);
    let heads = f64::from(architecture.attention.heads);
    let (groups, width) = match architecture.attention.kind {
        AttentionKind::Gqa { kv_heads, head_dim } => (f64::from(kv_heads), f64::from(head_dim)),
        AttentionKind::Mla { v_head, .. } => (heads, f64::from(v_head)),
    };
    let attention =
        (2.0 * seq * hidden * heads * width + 2.0 * seq * hidden * groups * width + 2.0 * seq * seq * hidden)
            * attention_layers;

    let (mamba, mamba_numbers) = architecture.mamba.as_ref().map_or((0.0, String::new()), |mamba| {
        let [layers, heads, width, state, groups] =
            [mamba.layers, mamba.heads, mamba.head_dim, mamba.state, mamba.groups].map(f64::from);
        let (expand, chunk) = (heads * width / hidden, f64::from(mamba.chunk.unwrap_or(0)));
        let block = seq * hidden * (heads * width * 3.0 + groups * state * 2.0 + heads)
            + seq * hidden * expand * chunk
            + 2.0 * seq * hidden * expand * state
            + seq * chunk * state * groups;
        let numbers = format!(
            "{layers}·[{seq}·{hidden}·({heads}·{width}·3 + {groups}·{state}·2 + {heads}) + {seq}·{hidden}·{expand}·{chunk} + 2·{seq}·{hidden}·{expand}·{state} + {seq}·{chunk}·{state}·{groups}]"
        );
        (block * layers, numbers)
    });
    let head = seq * hidden * vocab;

    // The document multiplies every part by 6: two FLOPs per multiply-accumulate, three passes.
    let per_token = |accumulates: f64| 6.0 * accumulates / seq;
    let lines = vec![
        part(
            "MLP",
            "6/s · 2·s·h·f·L",
            format!("6/{seq} · 2·{seq}·{hidden}·{ffn}·{mlp_layers}"),
            per_token(mlp),
        ),
        part(
            "attention",
            "6/s · (2·s·h·H·d + 2·s·h·K·d + 2·s²·h)·L",
            format!(
                "6/{seq} · (2·{seq}·{hidden}·{heads}·{width} + 2·{seq}·{hidden}·{groups}·{width} + 2·{seq}²·{hidden})·{attention_layers}"
            ),
            per_token(attention),
        ),
        part(
            "Mamba-2",
            "6/s · L·[s·h·(3·H·d + 2·G·n + H) + s·h·e·c + 2·s·h·e·n + s·c·n·G]",
            format!("6/{seq} · {mamba_numbers}"),
            per_token(mamba),
        )
        .note("e: expansion, c: tokens of a chunk"),
        part("head", "6/s · s·h·V", format!("6/{seq} · {seq}·{hidden}·{vocab}"), per_token(head)),
    ];
    Parts {
        attention: per_token(attention),
        mlp: per_token(mlp),
        embedding: per_token(head),
        mamba: Some(per_token(mamba)),
        multiply_accumulates: Some(MultiplyAccumulates { mlp, attention, mamba, head }),
        lines,
    }
}

fn part(name: &str, formula: impl Into<String>, numbers: String, value: f64) -> Line {
    Line::new(name, formula, numbers, value, "FLOPs/token")
}
