//! The time that one block of each kind takes on a GPU for one micro batch.

use super::constants::Constants;
use super::links::Links;
use super::speed::Speed;
use crate::architecture::{AttentionKind, LinearAttention, Mlp, Moe, SlidingWindow};
use crate::catalog::Generation;
use crate::cluster_factors::ClusterFactor;
use crate::estimate::Inputs;
use crate::options::Recompute;
use crate::precision::Dtype;
use crate::stack::ExpertKernels;
use std::ops::{Add, Mul};

/// Bytes of a BF16 number.
const BF16: f64 = 2.0;

/// Seconds of one GPU for one micro batch, by activity.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct BlockCost {
    /// Matrix multiplications.
    pub(super) matmul: f64,
    /// Scores and weighted sums of attention.
    pub(super) attention: f64,
    /// Kernels limited by memory bandwidth: norms, activation functions, casts, sorting, scans.
    pub(super) memory: f64,
    /// Exposed communication of tensor parallelism.
    pub(super) tp: f64,
    /// Exposed communication of context parallelism.
    pub(super) cp: f64,
    /// Exposed all-to-all exchange between experts.
    pub(super) ep: f64,
    /// Time of the host to launch the kernels. It overlaps with the GPU's time and is not part of it.
    pub(super) host: f64,
}

impl BlockCost {
    /// Returns the seconds of the GPU.
    pub(super) fn device_s(&self) -> f64 {
        self.matmul + self.attention + self.memory + self.tp + self.cp + self.ep
    }
}

impl Add for BlockCost {
    type Output = BlockCost;

    fn add(self, other: BlockCost) -> BlockCost {
        BlockCost {
            matmul: self.matmul + other.matmul,
            attention: self.attention + other.attention,
            memory: self.memory + other.memory,
            tp: self.tp + other.tp,
            cp: self.cp + other.cp,
            ep: self.ep + other.ep,
            host: self.host + other.host,
        }
    }
}

impl Mul<f64> for BlockCost {
    type Output = BlockCost;

    fn mul(self, times: f64) -> BlockCost {
        BlockCost {
            matmul: self.matmul * times,
            attention: self.attention * times,
            memory: self.memory * times,
            tp: self.tp * times,
            cp: self.cp * times,
            ep: self.ep * times,
            host: self.host * times,
        }
    }
}

/// Computes the cost of the blocks of a run.
pub(super) struct BlockCosts<'a> {
    inputs: &'a Inputs<'a>,
    constants: &'a Constants,
    pub(super) speed: Speed,
    pub(super) links: Links<'a>,
    /// Tokens of a micro batch on a rank.
    tokens: f64,
    /// Tokens of the sequence.
    sequence: f64,
    tp: f64,
    /// Ranks that share the residual stream: all tensor-parallel ranks with sequence parallelism, otherwise
    /// 1.
    shared: f64,
    hidden: f64,
    host_s: f64,
    graphed: bool,
    /// NVIDIA's stacks take as long for sinks with a window as if they computed all scores of such blocks and
    /// masked them.
    unfuses_sinks: bool,
    /// Share of tensor parallelism's communication that is exposed.
    tp_exposed: f64,
    /// Bytes of a number that tensor-parallel ranks gather: Transformer Engine casts before it gathers.
    gathered_bytes: f64,
}

impl<'a> BlockCosts<'a> {
    pub(super) fn new(inputs: &'a Inputs<'a>, constants: &'a Constants) -> BlockCosts<'a> {
        BlockCosts::at(Speed::new(inputs, constants), inputs, constants)
    }

    /// Returns the costs at the rates `speed`, which do not depend on the layout.
    pub(super) fn at(speed: Speed, inputs: &'a Inputs<'a>, constants: &'a Constants) -> BlockCosts<'a> {
        let (layout, batch, options) = (inputs.layout, inputs.batch, inputs.options);
        let software = options.software.properties();
        let tp = f64::from(layout.tp());
        let shares = options.shares_sequence();
        let graphed = options.uses_cuda_graphs(inputs.architecture);
        let host_tp = software.host_tp_in_pipelines.filter(|_| layout.pp() > 1).unwrap_or(constants.host_tp);
        BlockCosts {
            inputs,
            constants,
            speed,
            links: Links::new(inputs, constants),
            tokens: f64::from(batch.mbs()) * f64::from(batch.seq_len()) / f64::from(layout.cp()),
            sequence: f64::from(batch.seq_len()),
            tp,
            shared: if shares { tp } else { 1.0 },
            hidden: f64::from(inputs.architecture.hidden),
            host_s: constants.host_s
                * options.cluster.of(ClusterFactor::Host)
                * (1.0 + host_tp * (tp - 1.0))
                * if software.eager { constants.host_eager } else { 1.0 }
                * if graphed { constants.host_graphed } else { 1.0 },
            graphed,
            unfuses_sinks: !software.fuses_sinks,
            gathered_bytes: if software.transformer_engine { speed.operand_bytes } else { BF16 },
            tp_exposed: if options.overlaps_tp() { constants.tp_exposed } else { 1.0 },
        }
    }

    /// Returns the cost of an attention block, forward and backward.
    pub(super) fn attention(&self) -> BlockCost {
        let attention = &self.inputs.architecture.attention;
        let heads = f64::from(attention.heads) / self.tp;
        let (forward, training, width, d_qk, d_v, kv_bytes) = match attention.kind {
            AttentionKind::Gqa { kv_heads, head_dim } => {
                let d = f64::from(head_dim);
                // Groups are replicated if there are fewer than ranks.
                let groups = (f64::from(kv_heads) / self.tp).max(1.0);
                let qkv = (heads + 2.0 * groups) * d + attention.gate_width() / self.tp;
                let (up, down) = (self.linear(self.hidden, qkv), self.linear(heads * d, self.hidden));
                (up.0 + down.0, up.1 + down.1, qkv + heads * d, d, d, 2.0 * BF16 * groups * d)
            }
            AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => {
                let (nope, rope, v) = (f64::from(qk_nope), f64::from(qk_rope), f64::from(v_head));
                let (q, kv) = (f64::from(q_lora), f64::from(kv_lora));
                let queries = match q_lora {
                    0 => self.linear(self.hidden, heads * (nope + rope)),
                    _ => sum([self.linear(self.hidden, q), self.linear(q, heads * (nope + rope))]),
                };
                let up = self.linear(kv, heads * (nope + v));
                let parts =
                    [queries, self.linear(self.hidden, kv + rope), up, self.linear(heads * v, self.hidden)];
                let (forward, mut training) = sum(parts);
                if self.inputs.options.modules.mla_up_proj {
                    training += up.0 + if q_lora > 0 { self.linear(q, heads * (nope + rope)).0 } else { 0.0 };
                }
                let width = q + kv + heads * (2.0 * (nope + rope) + 2.0 * v);
                (forward, training, width, nope + rope, v, BF16 * heads * (nope + rope + v))
            }
        };
        let core = self.core(heads, d_qk, d_v);
        let again = self.again();
        BlockCost {
            matmul: training + again * forward,
            attention: core,
            memory: self.passes(width, again) + self.ring(heads * d_v, again),
            tp: self.tensor_parallel(again),
            cp: self.context_parallel(kv_bytes, again),
            ep: 0.0,
            host: self.host(1.0),
        }
    }

    /// Returns the seconds of attention's scores and sums, forward, backward and recomputed, averaged over
    /// blocks with and without a window.
    fn core(&self, heads: f64, d_qk: f64, d_v: f64) -> f64 {
        let attention = &self.inputs.architecture.attention;
        let full_again = self.again();
        if !self.inputs.options.software.properties().fuses_attention() {
            let again = match self.inputs.options.recompute {
                Recompute::None => 0.0,
                Recompute::Selective | Recompute::Full => 1.0,
            };
            return self.unfused(heads, d_qk + d_v, again);
        }
        let whole = self.sequence / 2.0;
        let mut masked = 0.0;
        let context = match &attention.window {
            Some(window) if attention.layers > 0 && attention.sinks && self.unfuses_sinks => {
                let share = f64::from(window.layers.min(attention.layers)) / f64::from(attention.layers);
                masked = share * self.unfused(heads, d_qk + d_v, full_again);
                (1.0 - share) * whole
            }
            Some(window) if attention.layers > 0 => {
                let w = f64::from(window.tokens).min(self.sequence);
                let seen = SlidingWindow::mean_context(w, self.sequence);
                let share = f64::from(window.layers.min(attention.layers)) / f64::from(attention.layers);
                share * seen + (1.0 - share) * whole
            }
            _ => whole,
        };
        // Two products forward, five backward: the backward pass recomputes the scores.
        let forward = 2.0 * self.tokens * context * heads * (d_qk + d_v);
        // Selective recomputation runs the fused kernel a second time, although it never stores scores.
        let again = match self.inputs.options.recompute {
            Recompute::Selective => 1.0,
            Recompute::None | Recompute::Full => full_again,
        };
        masked + self.speed.attention_s(forward * (3.5 + again), (d_qk + d_v) / 2.0)
    }

    /// Returns the seconds of attention by batched products, which computes all scores and then masks them:
    /// two products forward, four backward, and passes over the scores.
    fn unfused(&self, heads: f64, widths: f64, again: f64) -> f64 {
        let products = 2.0 * self.tokens * self.sequence * heads * widths;
        let scores = self.tokens * self.sequence * heads * BF16;
        self.speed.batched_s(products) * (3.0 + again)
            + self.speed.memory_s(scores) * self.constants.attention_scores * (3.0 + again) / 3.0
    }

    /// Returns the cost of a dense MLP block.
    pub(super) fn mlp(&self, mlp: &Mlp) -> BlockCost {
        let again = if self.inputs.options.modules.mlp { 1.0 } else { self.again() };
        let (forward, training, width) = self.dense(f64::from(mlp.ffn) / self.tp, mlp.gated);
        BlockCost {
            matmul: training + again * forward,
            memory: self.passes(width, again),
            tp: self.tensor_parallel(again),
            host: self.host(1.0),
            ..BlockCost::default()
        }
    }

    /// Returns forward seconds, training seconds and activation width of an MLP with inner width `ffn`.
    fn dense(&self, ffn: f64, gated: bool) -> (f64, f64, f64) {
        let up = if gated { 2.0 } else { 1.0 };
        let (forward, training) = sum([self.linear(self.hidden, up * ffn), self.linear(ffn, self.hidden)]);
        (forward, training, (up + 1.0) * ffn)
    }

    /// Returns the cost of a routed MLP block.
    pub(super) fn moe(&self, moe: &Moe) -> BlockCost {
        let (layout, options) = (self.inputs.layout, self.inputs.options);
        let (ep, expert_tp) = (layout.ep(), f64::from(layout.expert_tp()));
        let again = if options.modules.moe { 1.0 } else { self.again() };
        let (experts, top_k) = (f64::from(moe.experts), f64::from(moe.top_k));
        let uneven = if options.token_drop { 1.0 } else { 1.0 + self.constants.imbalance };
        let width = moe.latent.map_or(self.hidden, f64::from);
        // Copies of tokens that this rank sends to experts; with balanced routing it receives as many.
        let rows = self.tokens / self.tp * top_k * expert_tp;
        let local = experts / f64::from(ep);
        let per_expert = rows / local;
        let (ffn, up) = (f64::from(moe.ffn) / expert_tp, if moe.gated { 2.0 } else { 1.0 });
        // From 26.06, gated experts in MXFP8 and NVFP4 on Blackwell are fused with their casts.
        let new_path = options.software.properties().experts == ExpertKernels::Fused
            && moe.gated
            && matches!(self.inputs.dtype, Dtype::Mxfp8 | Dtype::Nvfp4);
        let before_2606 = self.inputs.dtype != Dtype::Bf16 && !new_path;
        let slower = if before_2606 { 1.0 / self.constants.experts_before_2606 } else { 1.0 };
        let unfused = if before_2606 { 1.0 + self.constants.unfused_before_2606 } else { 1.0 };
        let keep = match self.inputs.dtype {
            Dtype::Bf16 => self.constants.experts,
            _ => self.constants.experts_narrow / slower,
        };
        let product = |n: f64, k: f64| {
            let forward = self.speed.gemm_s(per_expert, n, k);
            let backward = self.speed.gemm_s(per_expert, k, n) + self.speed.gemm_s(k, n, per_expert);
            (forward, forward + backward)
        };
        let (forward, training) = sum([product(up * ffn, width), product(width, ffn)]);
        let routed = (training + again * forward) * local * uneven / keep;

        let shared_ffn = f64::from(moe.shared_ffn) / self.tp;
        let (mut shared, mut shared_width) = (0.0, 0.0);
        if moe.shared_ffn > 0 {
            let (forward, training, width) = self.dense(shared_ffn, moe.gated);
            let again = if options.modules.shared_experts { 1.0 } else { again };
            (shared, shared_width) = (training + again * forward, width);
        }
        let mut latent = 0.0;
        if moe.latent.is_some() {
            let (down, back) = (self.linear(self.hidden, width), self.linear(width, self.hidden));
            latent = down.1 + back.1 + again * (down.0 + back.0);
        }
        let act_again = if options.modules.moe_act { 1.0 } else { again };
        let passes = 1.0 + again / 3.0;
        let routed_passes = self.constants.passes_routed * unfused + self.passes_before_2509();
        let routed_bytes = rows * uneven * BF16 * width * routed_passes * passes;
        let act_bytes = rows
            * uneven
            * BF16
            * (up + 1.0)
            * ffn
            * (self.constants.passes_wide + self.speed.cast_passes)
            * (1.0 + act_again / 3.0)
            * unfused;
        let exchanged = rows / expert_tp * BF16 * width * uneven;
        let exposed = match options.hides_experts(layout) {
            true => self.constants.ep_exposed,
            false => 1.0,
        };
        // Newer dispatchers send a token once to each NVLink domain that has experts for it.
        let copies = options.sends_once_per_domain().then_some(top_k);
        let exchange = self.links.exchange_s(
            exchanged * f64::from(ep - 1) / f64::from(ep),
            ep,
            layout.expert_tp(),
            copies,
        );
        // Without CUDA graphs, the host waits for the token counts before it launches the experts.
        let route_host = match (self.graphed, options.token_drop) {
            (true, _) | (_, true) => 0.0,
            (false, false) => self.constants.route_host_s,
        };
        let shared_tp = if moe.shared_ffn > 0 { self.tensor_parallel(again) } else { 0.0 };
        BlockCost {
            matmul: routed + shared + latent,
            memory: self.passes(shared_width, again)
                + self.speed.memory_s(routed_bytes + act_bytes)
                + self.constants.route_s * unfused,
            tp: shared_tp,
            // Dispatch and combine, forward and backward.
            ep: exchange * exposed * (4.0 + 2.0 * again),
            host: self.host(1.0) + route_host,
            ..BlockCost::default()
        }
    }

    /// Returns the passes that NeMo's releases before 25.09 add to routing on Blackwell. They are many for models whose
    /// experts are narrow and that send a token to many of them.
    fn passes_before_2509(&self) -> f64 {
        let is_early = self.inputs.options.software.properties().experts == ExpertKernels::Early;
        match is_early && self.inputs.gpu.generation == Generation::Blackwell {
            true => self.constants.passes_before_2509,
            false => 0.0,
        }
    }

    /// Returns the cost of a Mamba-2 block.
    pub(super) fn mamba(&self, mamba: &crate::architecture::Mamba) -> BlockCost {
        let (heads, head_dim) = (f64::from(mamba.heads) / self.tp, f64::from(mamba.head_dim));
        let (state, groups) = (f64::from(mamba.state), (f64::from(mamba.groups) / self.tp).max(1.0));
        let inner = heads * head_dim;
        let wide = 2.0 * inner + 2.0 * groups * state + heads;
        let again = self.again();
        let (forward, training) = sum([self.linear(self.hidden, wide), self.linear(inner, self.hidden)]);
        let scan = self.tokens * BF16 * (inner + 2.0 * groups * state) * self.constants.passes_scan;
        BlockCost {
            matmul: training + again * forward,
            memory: self.passes(wide + inner, again) + self.speed.memory_s(scan) * (1.0 + again / 3.0),
            tp: self.tensor_parallel(again),
            host: self.host(1.5),
            ..BlockCost::default()
        }
    }

    /// Returns the cost of a block of linear attention. Its scan of keys and values in chunks is that of Mamba-2, which works on
    /// the same principle (arXiv:2412.06464, section 3.3).
    pub(super) fn linear_attention(&self, linear: &LinearAttention) -> BlockCost {
        let of_rank = |width: f64| width / self.tp;
        let (wide, values) = (of_rank(linear.projected_width()), of_rank(linear.value_width()));
        let scanned = 2.0 * of_rank(linear.repeated_key_width()) + values;
        let again = self.again();
        let (forward, training) = sum([self.linear(self.hidden, wide), self.linear(values, self.hidden)]);
        let scan = self.tokens * BF16 * scanned * self.constants.passes_scan;
        BlockCost {
            matmul: training + again * forward,
            memory: self.passes(wide + values, again) + self.speed.memory_s(scan) * (1.0 + again / 3.0),
            tp: self.tensor_parallel(again),
            host: self.host(1.5),
            ..BlockCost::default()
        }
    }

    /// Returns the cost of the head and the loss, which run in BF16 in every precision.
    pub(super) fn head(&self) -> BlockCost {
        let vocab = f64::from(self.inputs.architecture.vocab) / self.tp;
        let (m, n, k) = (self.tokens, vocab, self.hidden);
        BlockCost {
            matmul: self.speed.gemm_bf16_s(m, n, k)
                + self.speed.gemm_bf16_s(m, k, n)
                + self.speed.gemm_bf16_s(k, n, m),
            memory: self.speed.memory_s(self.constants.passes_wide * self.tokens * vocab * BF16),
            tp: self.tensor_parallel(0.0) / 2.0,
            host: self.host_s * 2.0,
            ..BlockCost::default()
        }
    }

    /// Returns the elements that a rank sends to the next stage per micro batch.
    pub(super) fn boundary_elements(&self) -> f64 {
        self.tokens * self.hidden / self.tp
    }

    /// Returns forward and training seconds of a projection of all tokens from width `k` to width `n`.
    fn linear(&self, k: f64, n: f64) -> (f64, f64) {
        let m = self.tokens;
        let forward = self.speed.gemm_s(m, n, k);
        (forward, forward + self.speed.gemm_s(m, k, n) + self.speed.gemm_s(k, n, m))
    }

    /// Returns the seconds of a block's memory-bound kernels. Its activations are `width` wide on this rank;
    /// the share `again` of its forward pass is recomputed.
    fn passes(&self, width: f64, again: f64) -> f64 {
        let (hidden, casts) = (self.hidden / self.shared, self.speed.cast_passes);
        let norms = if self.inputs.options.modules.layernorm { 1.0 } else { again };
        let bytes = (self.constants.passes_hidden * (1.0 + norms / 3.0) + casts) * hidden
            + (self.constants.passes_wide + casts) * (1.0 + again / 3.0) * width;
        let eager =
            if self.inputs.options.software.properties().eager { self.constants.kernels_eager } else { 1.0 };
        self.speed.memory_s(self.tokens * BF16 * bytes) * eager
    }

    /// Returns the exposed seconds of tensor parallelism in a block: gather and scatter forward, both and a
    /// second gather backward, and the forward ones again if recomputed.
    fn tensor_parallel(&self, again: f64) -> f64 {
        let layout = self.inputs.layout;
        let numbers = self.tokens * self.hidden * (self.tp - 1.0) / self.tp;
        let seconds = |bytes: f64| self.links.ring_s(bytes * numbers, layout.tp());
        let scatters = 2.0 + again;
        // All-reduces, without sequence parallelism, need no second gather.
        let (gathers, gathered) = match self.shared > 1.0 {
            true => (scatters + 1.0, self.gathered_bytes),
            false => (scatters, BF16),
        };
        (gathers * seconds(gathered) + scatters * seconds(BF16)) * self.tp_exposed
    }

    /// Returns the seconds to merge the partial outputs of ring attention, `width` wide.
    fn ring(&self, width: f64, again: f64) -> f64 {
        let steps = f64::from(self.inputs.layout.cp() - 1);
        self.speed.memory_s(self.tokens * BF16 * width * steps * self.constants.passes_ring)
            * (1.0 + again / 3.0)
    }

    /// Returns the exposed seconds of context parallelism in a block with `kv_bytes` of keys and values per
    /// token: once around the ring forward, twice backward.
    fn context_parallel(&self, kv_bytes: f64, again: f64) -> f64 {
        let layout = self.inputs.layout;
        let volume = self.tokens * kv_bytes * f64::from(layout.cp() - 1);
        let exposed = if self.inputs.options.overlap { self.constants.cp_exposed } else { 1.0 };
        self.links.collective_s(volume, layout.cp(), layout.tp()) * (3.0 + again) * exposed
    }

    /// Returns the host's seconds to launch a block's kernels, relative to an attention block's.
    fn host(&self, kernels: f64) -> f64 {
        self.host_s * kernels * (2.0 + self.again())
    }

    /// Returns the share of the forward pass that is recomputed.
    fn again(&self) -> f64 {
        if self.inputs.options.recompute == Recompute::Full { 1.0 } else { 0.0 }
    }
}

/// Sums pairs of forward and training seconds.
fn sum<const N: usize>(parts: [(f64, f64); N]) -> (f64, f64) {
    parts.into_iter().fold((0.0, 0.0), |(a, b), (forward, training)| (a + forward, b + training))
}
