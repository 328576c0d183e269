//! The model: its widths and counts as Megatron-LM's flags.

use super::job::Job;
use super::pattern::{interleave, list};
use crate::architecture::{Architecture, Attention, AttentionKind, Mamba, Mlp, Moe};
use crate::field::Field;
use crate::launch::word::Word;
use crate::problem::Problem;

/// The tokens of the synthetic data, at most.
const MOCK_TOKENS: u32 = 4096;

pub(super) fn apply(job: &mut Job) {
    let architecture = &job.scenario.architecture;
    job.group("Model");
    job.set("--num-layers", architecture.layers);
    job.set("--hidden-size", architecture.hidden);
    feed_forward(job, architecture);
    attention(job, &architecture.attention);
    let seq_len = job.scenario.batch.seq_len();
    job.set("--seq-length", seq_len);
    job.set("--max-position-embeddings", seq_len);
    // Hybrids take the order of words from their Mamba layers.
    job.set("--position-embedding-type", if architecture.mamba.is_some() { "none" } else { "rope" });
    job.flag("--disable-bias-linear");
    job.set("--attention-dropout", 0);
    job.set("--hidden-dropout", 0);
    if !architecture.tied_embeddings {
        job.flag("--untie-embeddings-and-output-weights");
    }
    vocabulary(job, architecture.vocab);
    if let Some(moe) = &architecture.moe {
        experts(job, moe, architecture);
    }
    if let Some(mamba) = &architecture.mamba {
        hybrid(job, mamba, architecture);
    }
    if architecture.mtp_layers > 0 {
        multi_token_prediction(job, architecture);
    }
}

/// The program that trains such a model.
pub(super) fn program(architecture: &Architecture) -> &'static str {
    if architecture.mamba.is_some() { "pretrain_mamba.py" } else { "pretrain_gpt.py" }
}

/// A model whose layers all route has no dense width; Megatron-LM would make one up and report FLOPs of it.
fn feed_forward(job: &mut Job, architecture: &Architecture) {
    let (dense, routed) = (architecture.mlp.as_ref(), architecture.moe.as_ref());
    let ffn = dense.map(|mlp| mlp.ffn).or(routed.map(|moe| moe.ffn));
    if let Some(ffn) = ffn {
        job.set("--ffn-hidden-size", ffn);
    }
    let gated = dense.map(|mlp: &Mlp| mlp.gated).or(routed.map(|moe| moe.gated)).unwrap_or(false);
    let squared = job.scenario.model.family.starts_with("nemotron");
    match (gated, squared) {
        (true, _) => job.flag("--swiglu"),
        (false, true) => job.flag("--squared-relu"),
        // GELU, Megatron-LM's own.
        (false, false) => {}
    }
    if gated || architecture.mamba.is_some() {
        job.set("--normalization", "RMSNorm");
    }
}

fn attention(job: &mut Job, attention: &Attention) {
    job.set("--num-attention-heads", attention.heads);
    match attention.kind {
        AttentionKind::Gqa { kv_heads, head_dim } => {
            job.set("--kv-channels", head_dim);
            if kv_heads != attention.heads {
                job.flag("--group-query-attention");
                job.set("--num-query-groups", kv_heads);
            }
            let tp = job.scenario.layout.tp();
            if tp > kv_heads {
                job.warn(
                    format!("TP = {tp} gives ranks copies of the {kv_heads} KV heads, which Megatron-Core before 0.16 refuses."),
                    format!("Take 0.16 or later, or --tp {kv_heads} or less."),
                );
            }
        }
        AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => {
            job.flag("--multi-latent-attention");
            // Nothing of MLA is that wide, but without it the hidden width must divide by the heads.
            job.set("--kv-channels", v_head);
            if q_lora > 0 {
                job.set("--q-lora-rank", q_lora);
            }
            job.set("--kv-lora-rank", kv_lora);
            job.set("--qk-head-dim", qk_nope);
            job.set("--qk-pos-emb-head-dim", qk_rope);
            job.set("--v-head-dim", v_head);
        }
    }
    let Some(window) = &attention.window else { return };
    // It counts the tokens to the left and right of a query, which itself is one of the window.
    job.set("--window-size", format!("{},0", window.tokens.saturating_sub(1)));
    if window.layers < attention.layers {
        let layers =
            interleave(&[(true, window.layers), (false, attention.layers.saturating_sub(window.layers))]);
        job.set("--window-attn-skip-freq", list(&layers));
        job.warn(
            format!(
                "Which {} of {} layers see a window of {} tokens is not known: they are spread evenly.",
                window.layers, attention.layers, window.tokens
            ),
            "Mend --window-attn-skip-freq in the script if the model has another order.",
        );
    }
}

/// The tokenizer that needs no file adds a token to as many as it is told; the catalog's vocabularies are padded.
fn vocabulary(job: &mut Job, vocab: u32) {
    job.set("--tokenizer-type", "NullTokenizer");
    job.set("--vocab-size", vocab.saturating_sub(1));
    job.set("--make-vocab-size-divisible-by", 1);
    // Versions of 2025 count up to there without a look at the vocabulary.
    if vocab <= MOCK_TOKENS {
        job.warn(
            format!("The synthetic data has tokens up to {MOCK_TOKENS}, more than a vocabulary of {vocab}."),
            "Take Megatron-LM of 2026 or later, or give the script real data.",
        );
    }
    let tp = job.scenario.layout.tp();
    if !vocab.is_multiple_of(tp) {
        let padded = vocab.next_multiple_of(tp);
        job.warn(
            format!("Megatron-LM pads the vocabulary of {vocab} to {padded}, a multiple of TP = {tp}."),
            "",
        );
    }
}

fn experts(job: &mut Job, moe: &Moe, architecture: &Architecture) {
    job.group("Experts");
    job.set("--num-experts", moe.experts);
    job.set("--moe-router-topk", moe.top_k);
    job.set("--moe-ffn-hidden-size", moe.ffn);
    if moe.shared_ffn > 0 {
        job.set("--moe-shared-expert-intermediate-size", moe.shared_ffn);
    }
    if let Some(latent) = moe.latent {
        job.set("--moe-latent-size", latent);
        job.warn(
            "Experts of a narrower width (--moe-latent-size) need Megatron-LM of 2026 or later.",
            "Update the checkout.",
        );
    }
    let dense = architecture.mlp.as_ref().map_or(0, |mlp| mlp.layers);
    // In a hybrid its pattern says which layers route. Elsewhere the dense layers come first.
    if architecture.mamba.is_none() && dense > 0 {
        let layers: Vec<bool> = (0..architecture.layers).map(|layer| layer >= dense).collect();
        job.set("--moe-layer-freq", list(&layers));
        // One dense layer in two, as in Llama 4, is no row of leading layers.
        if dense >= moe.layers {
            job.warn(
                format!(
                    "The first {dense} layers are dense and the other {} route: the order is assumed.",
                    moe.layers
                ),
                "Mend --moe-layer-freq in the script if the model has another order.",
            );
        }
    }
    job.flag("--moe-grouped-gemm");
    job.flag("--moe-permute-fusion");
    job.set("--moe-token-dispatcher-type", "alltoall");
    job.set("--moe-router-load-balancing-type", "aux_loss");
    job.set("--moe-aux-loss-coeff", "1e-2");
    job.flag("--moe-router-force-load-balancing");
    job.warn(
        "Tokens go to experts at random (--moe-router-force-load-balancing), since a router that has learnt nothing \
         would overload some of them.",
        "Take the flag out of the script to train a model.",
    );
}

fn hybrid(job: &mut Job, mamba: &Mamba, architecture: &Architecture) {
    job.group("Hybrid");
    job.flag("--is-hybrid-model");
    let spec = ["megatron.core.models.mamba.mamba_layer_specs", "mamba_stack_spec"];
    job.words("--spec", spec.into_iter().map(Word::of).collect());
    let counts = [
        ('M', mamba.layers),
        ('-', architecture.mlp.as_ref().map_or(0, |mlp| mlp.layers)),
        ('E', architecture.moe.as_ref().map_or(0, |moe| moe.layers)),
        ('*', architecture.attention.layers),
    ];
    job.set("--hybrid-override-pattern", interleave(&counts).into_iter().collect::<String>());
    job.set("--mamba-num-heads", mamba.heads);
    job.set("--mamba-head-dim", mamba.head_dim);
    job.set("--mamba-state-dim", mamba.state);
    job.set("--mamba-num-groups", mamba.groups);
    job.warn(
        "How many layers are Mamba, MLP and attention is known, in which order they come is not: they are spread evenly.",
        "Mend --hybrid-override-pattern in the script if the model has another order.",
    );
    job.warn(
        "The newest Megatron-LM trains hybrids by pretrain_hybrid.py and calls their order --hybrid-layer-pattern.",
        "With such a checkout, change both names in the script.",
    );
    if architecture.moe.is_some() {
        job.warn("Hybrids with experts need Megatron-LM of 2026 or later.", "Update the checkout.");
    }
}

fn multi_token_prediction(job: &mut Job, architecture: &Architecture) {
    if architecture.mamba.is_some() {
        let what = "predicts several tokens in a hybrid, by layers whose kinds are not known: Megatron-LM needs them";
        let problem = Problem::clause(Field::Model, &job.scenario.model.id, what);
        job.refuse(problem.allowed("a hybrid without MTP layers"));
        return;
    }
    job.group("Multi-token prediction");
    job.set("--mtp-num-layers", architecture.mtp_layers);
}
