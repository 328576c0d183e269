//! Values for each kind of block in a model.

use crate::architecture::Architecture;

/// A value for each kind of block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PerKind<T> {
    /// Attention.
    pub(super) attention: T,
    /// Dense MLP.
    pub(super) mlp: T,
    /// Routed MLP.
    pub(super) moe: T,
    /// Mamba-2.
    pub(super) mamba: T,
    /// Linear attention.
    pub(super) linear: T,
}

impl PerKind<f64> {
    /// Returns the number of blocks of each kind in the whole model.
    pub(super) fn counts(architecture: &Architecture) -> PerKind<f64> {
        PerKind {
            attention: f64::from(architecture.attention.layers),
            mlp: architecture.mlp.as_ref().map_or(0.0, |mlp| f64::from(mlp.layers)),
            moe: architecture.moe.as_ref().map_or(0.0, |moe| f64::from(moe.layers)),
            mamba: architecture.mamba.as_ref().map_or(0.0, |mamba| f64::from(mamba.layers)),
            linear: architecture.linear.as_ref().map_or(0.0, |linear| f64::from(linear.layers)),
        }
    }
}

impl<T> PerKind<T> {
    /// Returns the values in order: attention, dense MLP, routed MLP, Mamba-2, linear attention.
    pub(super) fn all(&self) -> [&T; 5] {
        [&self.attention, &self.mlp, &self.moe, &self.mamba, &self.linear]
    }

    /// Returns the values of the blocks that follow attention in a layer, in order: dense MLP, routed MLP, Mamba-2.
    pub(super) fn after_attention(&self) -> [&T; 3] {
        [&self.mlp, &self.moe, &self.mamba]
    }

    /// Applies `f` to each value.
    pub(super) fn map<U>(&self, f: impl Fn(&T) -> U) -> PerKind<U> {
        PerKind {
            attention: f(&self.attention),
            mlp: f(&self.mlp),
            moe: f(&self.moe),
            mamba: f(&self.mamba),
            linear: f(&self.linear),
        }
    }
}
