//! The model: its widths and counts as Megatron-LM's flags.

use super::experts;
use super::job::MegatronJob;
use super::pattern::{interleave, list};
use crate::architecture::{
    Architecture, Attention, AttentionKind, CONVOLUTION, LinearAttention, Mamba, Mlp, Moe,
};
use crate::catalog::RouterScore;
use crate::field::Field;
use crate::launch::word::ShellWord;
use crate::message;
use crate::message::Setting;
use crate::problem::Problem;

/// The largest token of the synthetic data.
const MOCK_TOKENS: u32 = 4096;

pub(super) fn apply(job: &mut MegatronJob) {
    let architecture = &job.scenario.architecture;
    job.group("Model");
    job.set("--num-layers", architecture.layers);
    job.set("--hidden-size", architecture.hidden);
    feed_forward(job, architecture);
    attention(job, &architecture.attention);
    if let Some(linear) = &architecture.linear {
        linear_attention(job, linear, architecture.layers);
    }
    let seq_len = job.scenario.batch.seq_len();
    job.set("--seq-length", seq_len);
    job.set("--max-position-embeddings", seq_len);
    // Hybrids learn positions in their Mamba layers.
    job.set("--position-embedding-type", if architecture.mamba.is_some() { "none" } else { "rope" });
    if let (Some(base), None) = (job.scenario.model.rope_base, &architecture.mamba) {
        job.set("--rotary-base", base);
    }
    job.flag("--disable-bias-linear");
    job.set("--attention-dropout", 0);
    job.set("--hidden-dropout", 0);
    if !architecture.tied_embeddings {
        job.flag("--untie-embeddings-and-output-weights");
    }
    vocabulary(job, architecture.vocab);
    if let Some(moe) = &architecture.moe {
        mixture(job, moe, architecture);
    }
    if let Some(mamba) = &architecture.mamba {
        hybrid(job, mamba, architecture);
    }
    if architecture.mtp_layers > 0 {
        multi_token_prediction(job, architecture);
    }
}

/// Returns the program that trains the model.
pub(super) fn program(architecture: &Architecture) -> &'static str {
    if architecture.mamba.is_some() { "pretrain_mamba.py" } else { "pretrain_gpt.py" }
}

/// A model with experts in every layer has no dense width. Megatron-LM would assume one and report FLOPs for
/// it.
fn feed_forward(job: &mut MegatronJob, architecture: &Architecture) {
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
        // GELU, Megatron-LM's default.
        (false, false) => {}
    }
    if gated || architecture.mamba.is_some() {
        job.set("--normalization", "RMSNorm");
    }
}

fn attention(job: &mut MegatronJob, attention: &Attention) {
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
                    format!(
                        "With TP {tp}, ranks share the {kv_heads} KV heads, which Megatron-Core before \
                         0.16 doesn't support."
                    ),
                    message!["Use 0.16 or later, or ", Setting::new(Field::Tp, kv_heads), " or less."],
                );
            }
        }
        AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => {
            job.flag("--multi-latent-attention");
            // MLA ignores this width, but without it the hidden size must be a multiple of the heads.
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
    if job.scenario.model.qk_norm {
        job.flag("--qk-layernorm");
    }
    if attention.output_gate {
        job.flag("--attention-output-gate");
    }
    let Some(window) = &attention.window else { return };
    // The flag counts the tokens before and after a query; the window includes the query.
    job.set("--window-size", format!("{},0", window.tokens.saturating_sub(1)));
    if window.layers < attention.layers {
        let layers =
            interleave(&[(true, window.layers), (false, attention.layers.saturating_sub(window.layers))]);
        job.set("--window-attn-skip-freq", list(&layers));
        job.warn(
            format!(
                "{} of {} layers have a window of {} tokens, but their order is unknown. They are spread \
                 evenly.",
                window.layers, attention.layers, window.tokens
            ),
            "If the model's order differs, change --window-attn-skip-freq in the script.",
        );
    }
}

/// Linear attention in most layers. The last of each group of layers has full attention, as in Qwen3-Next.
fn linear_attention(job: &mut MegatronJob, linear: &LinearAttention, layers: u32) {
    job.set("--experimental-attention-variant", "gated_delta_net");
    let full = layers.saturating_sub(linear.layers);
    job.set("--linear-attention-freq", list(&interleave(&[(true, linear.layers), (false, full)])));
    job.set("--linear-conv-kernel-dim", CONVOLUTION as u32);
    job.set("--linear-num-key-heads", linear.key_heads);
    job.set("--linear-num-value-heads", linear.value_heads);
    job.set("--linear-key-head-dim", linear.key_dim);
    job.set("--linear-value-head-dim", linear.value_dim);
    job.warn(
        "Linear attention needs Megatron-Core 0.16 or later, and the Python package flash-linear-attention.",
        "Update the checkout, and install the package.",
    );
}

/// The null tokenizer needs no file. Before Megatron-Core 0.18 it adds one token to the given number. Either number is
/// padded to a single multiple as large as the model's vocabulary, so that every version trains the same model. The
/// catalog's vocabularies are padded.
fn vocabulary(job: &mut MegatronJob, vocab: u32) {
    let tp = job.scenario.layout.tp();
    job.set("--tokenizer-type", "NullTokenizer");
    job.set("--vocab-size", vocab.saturating_sub(1));
    // Megatron-LM pads to a multiple of this number times TP.
    job.set("--make-vocab-size-divisible-by", vocab.div_ceil(tp));
    // Versions of 2025 use tokens up to there, regardless of the vocabulary.
    if vocab <= MOCK_TOKENS {
        job.warn(
            format!(
                "The synthetic data has tokens up to {MOCK_TOKENS}, more than the vocabulary of {vocab}."
            ),
            "Use Megatron-LM of 2026 or later, or real data.",
        );
    }
    if !vocab.is_multiple_of(tp) {
        let padded = vocab.next_multiple_of(tp);
        job.warn(
            format!("Megatron-LM pads the vocabulary from {vocab} to {padded}, a multiple of TP {tp}."),
            "",
        );
    }
}

fn mixture(job: &mut MegatronJob, moe: &Moe, architecture: &Architecture) {
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
            "Experts in a latent space (--moe-latent-size) need Megatron-LM of 2026 or later.",
            "Update the checkout.",
        );
    }
    let dense = architecture.mlp.as_ref().map_or(0, |mlp| mlp.layers);
    // A hybrid's pattern holds the order. In other models, the dense layers come first.
    if architecture.mamba.is_none() && dense > 0 {
        let layers: Vec<bool> = (0..architecture.layers).map(|layer| layer >= dense).collect();
        job.set("--moe-layer-freq", list(&layers));
        // With every other layer dense, as in Llama 4, the dense layers are not the first ones.
        if dense >= moe.layers {
            job.warn(
                format!(
                    "The order of dense and MoE layers is unknown: the first {dense} are assumed dense, \
                     the other {} MoE.",
                    moe.layers
                ),
                "If the model's order differs, change --moe-layer-freq in the script.",
            );
        }
    }
    job.flag("--moe-grouped-gemm");
    job.flag("--moe-permute-fusion");
    router(job, moe);
    experts::dispatch(job);
    job.flag("--moe-router-force-load-balancing");
    job.warn(
        "Routing is forced to be balanced, because an untrained router overloads experts.",
        "Remove --moe-router-force-load-balancing from the script for real training.",
    );
}

/// How a token's experts are chosen and weighed. Megatron-LM's default is the softmax over the chosen experts.
fn router(job: &mut MegatronJob, moe: &Moe) {
    let router = job.scenario.model.router;
    let score = router.map_or(RouterScore::SoftmaxOfChosen, |router| router.score);
    match score {
        RouterScore::Sigmoid => job.set("--moe-router-score-function", "sigmoid"),
        RouterScore::Softmax => job.flag("--moe-router-pre-softmax"),
        // transformer_config.py refuses a softmax over a single expert, which has no gradient.
        RouterScore::SoftmaxOfChosen if moe.top_k == 1 => job.flag("--moe-router-pre-softmax"),
        RouterScore::SoftmaxOfChosen => {}
    }
    // As in NVIDIA's scripts for DeepSeek-V3. DeepEP and HybridEP take weights in FP32 only.
    if score == RouterScore::Sigmoid || experts::dispatcher(job).is_some() {
        job.set("--moe-router-dtype", "fp32");
    }
    if let Some([groups, chosen]) = router.and_then(|router| router.groups) {
        job.set("--moe-router-num-groups", groups);
        job.set("--moe-router-group-topk", chosen);
    }
    if let Some(scaling) = router.and_then(|router| router.scaling) {
        job.set("--moe-router-topk-scaling-factor", scaling);
    }
    // transformer_config.py allows the bias only with a sigmoid.
    if router.is_some_and(|router| router.has_bias) && score == RouterScore::Sigmoid {
        job.flag("--moe-router-enable-expert-bias");
        job.set("--moe-router-bias-update-rate", "1e-3");
    }
    match router.and_then(|router| router.sequence_loss) {
        Some(coefficient) => {
            job.set("--moe-router-load-balancing-type", "seq_aux_loss");
            job.set("--moe-aux-loss-coeff", coefficient);
        }
        None => {
            job.set("--moe-router-load-balancing-type", "aux_loss");
            job.set("--moe-aux-loss-coeff", "1e-2");
        }
    }
    if router.is_none() {
        job.warn(
            "How the model's router scores experts, and whether it chooses them in groups, is unknown. The script uses a \
             softmax without groups.",
            "If the model differs, add --moe-router-score-function and its companions to the script.",
        );
    }
}

fn hybrid(job: &mut MegatronJob, mamba: &Mamba, architecture: &Architecture) {
    job.group("Hybrid");
    job.flag("--is-hybrid-model");
    let spec = ["megatron.core.models.mamba.mamba_layer_specs", "mamba_stack_spec"];
    job.words("--spec", spec.into_iter().map(ShellWord::of).collect());
    let counts = [
        ('M', mamba.layers),
        ('-', architecture.mlp.as_ref().map_or(0, |mlp| mlp.layers)),
        ('E', architecture.moe.as_ref().map_or(0, |moe| moe.layers)),
        ('*', architecture.attention.layers),
    ];
    job.set_joined("--hybrid-override-pattern", interleave(&counts).into_iter().collect::<String>());
    job.set("--mamba-num-heads", mamba.heads);
    job.set("--mamba-head-dim", mamba.head_dim);
    job.set("--mamba-state-dim", mamba.state);
    job.set("--mamba-num-groups", mamba.groups);
    job.warn(
        "The order of Mamba, MLP and attention layers is unknown. They are spread evenly.",
        "If the model's order differs, change --hybrid-override-pattern in the script.",
    );
    job.warn(
        "The newest Megatron-LM trains hybrids with pretrain_hybrid.py and --hybrid-layer-pattern.",
        "With such a checkout, change both names in the script.",
    );
    if architecture.moe.is_some() {
        job.warn("Hybrids with experts need Megatron-LM of 2026 or later.", "Update the checkout.");
    }
}

fn multi_token_prediction(job: &mut MegatronJob, architecture: &Architecture) {
    if architecture.mamba.is_some() {
        let message = format!(
            "{} is a hybrid with multi-token prediction. Megatron-LM needs the kinds of its prediction \
             layers, which are unknown. Use a hybrid without them.",
            job.scenario.model.title
        );
        job.refuse(Problem::new(Field::Model, &job.scenario.model.id, message));
        return;
    }
    job.group("Multi-token prediction");
    job.set("--mtp-num-layers", architecture.mtp_layers);
}
