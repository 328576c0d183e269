//! Model FLOPs: the computation that a training step needs regardless of the software, under the chosen
//! convention.
//!
//! Training takes three times the forward pass: once forward, twice backward. Recomputed activations do not
//! count. Parts are training FLOPs per token.

mod blocks;
mod document;

use crate::architecture::Architecture;
use crate::catalog::{Catalog, DocumentFlops};
use crate::convention::Convention;
use crate::explain::Line;
use crate::scenario::Scenario;
use serde::Serialize;

/// The model FLOPs of one sequence, with their parts and derivation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFlops {
    /// How FLOPs are counted.
    pub convention: Convention,
    /// Tokens of the sequence.
    pub seq_len: u32,
    /// Training FLOPs of one sequence, by the formula.
    #[serde(rename = "model_flops_per_sequence")]
    pub per_sequence: f64,
    /// Attention, training FLOPs per token.
    #[serde(rename = "attention_flops")]
    pub attention: f64,
    /// Dense and routed MLPs, training FLOPs per token.
    #[serde(rename = "mlp_flops")]
    pub mlp: f64,
    /// The head (documents call it embedding), training FLOPs per token.
    #[serde(rename = "embedding_flops")]
    pub embedding: f64,
    /// Mamba-2 blocks, training FLOPs per token; none without any.
    #[serde(rename = "mamba_flops", skip_serializing_if = "Option::is_none")]
    pub mamba: Option<f64>,
    /// The number behind the MFU in the recipe's document, if it differs from the formula's and the scenario is the
    /// document's.
    #[serde(rename = "document_model_flops", skip_serializing_if = "Option::is_none")]
    pub document: Option<DocumentNumber>,
    /// Multiply-accumulates per sequence, which the document of release 25.05 prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiply_accumulates: Option<MultiplyAccumulates>,
    /// The derivation.
    pub explain: Vec<Line>,
}

/// A document's number that differs from the formula's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DocumentNumber {
    /// Training FLOPs of one sequence behind the document's MFU.
    pub value: f64,
    /// Why it differs from the formula's value.
    pub reason: String,
}

/// Multiply-accumulates of the forward pass of one sequence, by part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MultiplyAccumulates {
    /// MLP blocks.
    pub mlp: f64,
    /// Attention blocks.
    pub attention: f64,
    /// Mamba-2 blocks.
    pub mamba: f64,
    /// Head.
    pub head: f64,
}

impl ModelFlops {
    /// Returns the FLOPs counted by block, with full or causal attention, for every architecture.
    pub fn by_blocks(architecture: &Architecture, seq_len: u32, causal: bool) -> ModelFlops {
        blocks::count(architecture, seq_len, causal)
    }

    /// Returns [`ModelFlops::per_sequence`] counted by block.
    pub fn per_sequence_by_blocks(architecture: &Architecture, seq_len: u32, causal: bool) -> f64 {
        blocks::per_sequence(architecture, seq_len, causal)
    }

    /// Returns the FLOPs counted with the formula of a release's document.
    ///
    /// `published` is whether the architecture and the sequence length are the document's, so that its rounded number
    /// applies.
    pub fn by_document(
        architecture: &Architecture,
        seq_len: u32,
        document: &DocumentFlops,
        published: bool,
    ) -> ModelFlops {
        document::count(architecture, seq_len, document, published)
    }

    /// Returns the FLOPs of a scenario in its convention.
    pub fn of(scenario: &Scenario) -> ModelFlops {
        let (architecture, seq_len) = (&scenario.architecture, scenario.batch.seq_len());
        let document = scenario.recipe.and_then(|recipe| {
            Catalog::embedded()
                .document_flops(recipe.id.release, &scenario.model.id)
                .map(|flops| (recipe, flops))
        });
        match (scenario.convention, document) {
            (Convention::Recipe, Some((recipe, document))) => {
                let published = recipe.layers == architecture.layers && recipe.seq_len == seq_len;
                ModelFlops::by_document(architecture, seq_len, document, published)
            }
            (convention, _) => ModelFlops::by_blocks(architecture, seq_len, convention == Convention::Causal),
        }
    }

    /// Returns the number behind the MFU: the document's if it has one, otherwise the formula's.
    pub fn for_mfu(&self) -> f64 {
        self.document.as_ref().map_or(self.per_sequence, |document| document.value)
    }
}
