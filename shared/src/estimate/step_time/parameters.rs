//! Parameters of the fullest rank, by how they are replicated.

use crate::estimate::Inputs;

/// Parameters of a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RankParameters {
    /// Dense parameters, replicated over data and context parallelism.
    pub(super) dense: f64,
    /// Parameters of routed experts, replicated over fewer ranks.
    pub(super) experts: f64,
}

/// Returns the parameters of the fullest rank. Without a pipeline it holds both embeddings, otherwise one.
pub(super) fn fullest_rank(inputs: &Inputs<'_>) -> RankParameters {
    let (architecture, layout) = (inputs.architecture, inputs.layout);
    let most = layout.stages().iter().copied().max().unwrap_or(architecture.layers);
    let share = f64::from(most) / f64::from(architecture.layers) / f64::from(layout.tp());
    let embedding = f64::from(architecture.vocab) * f64::from(architecture.hidden) / f64::from(layout.tp());
    let tables = if layout.pp() == 1 && !architecture.tied_embeddings { 2.0 } else { 1.0 };
    let experts = architecture.moe.as_ref().map_or(0.0, |moe| {
        moe.expert_weights(f64::from(architecture.hidden)) * f64::from(moe.experts) * f64::from(moe.layers)
    });
    RankParameters {
        dense: architecture.projection_weights() * share + tables * embedding,
        experts: experts * f64::from(most)
            / f64::from(architecture.layers)
            / f64::from(layout.ep() * layout.expert_tp()),
    }
}
