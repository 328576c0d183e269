//! Scenarios: everything that a prediction or a launch needs to know about a training run.

use crate::architecture::Architecture;
use crate::batch::Batch;
use crate::catalog::{Baseline, Catalog, Gpu, Model, Recipe, Reference};
use crate::convention::Convention;
use crate::field::Field;
use crate::layout::Layout;
use crate::message::Message;
use crate::options::TrainingOptions;
use crate::precision::Dtype;
use serde::Serialize;
use std::borrow::Cow;

/// A model on GPUs, with a layout and a batch that fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The model.
    pub model: Cow<'static, Model>,
    /// The model's architecture; a proxy has fewer layers.
    pub architecture: Architecture,
    /// GPU type.
    pub gpu: Cow<'static, Gpu>,
    /// Precision.
    pub dtype: Dtype,
    /// The parallelism.
    pub layout: Layout,
    /// The batch.
    pub batch: Batch,
    /// Recomputation, sharding, software.
    pub options: TrainingOptions,
    /// The recipe that it started from, whose document defines how FLOPs are counted.
    pub recipe: Option<&'static Recipe>,
    /// The differences from that recipe.
    pub changes: Vec<RecipeChange>,
    /// How FLOPs are counted.
    pub convention: Convention,
}

/// A difference between a scenario and its recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecipeChange {
    /// The field.
    pub field: Field,
    /// The recipe's value.
    pub from: String,
    /// The scenario's value.
    pub to: String,
    /// Whether it follows from another change and was not typed.
    pub follows: bool,
}

impl Scenario {
    /// Returns warnings about a scenario that works, but slower than a similar one would.
    pub fn warnings(&self) -> Vec<Message> {
        let mut warnings = self.layout.warnings(&self.architecture);
        warnings.extend(self.batch.warnings(&self.layout, self.options.software));
        let (tp, domain) = (self.layout.tp(), self.gpu.nvlink_domain);
        if tp > domain {
            warnings.push(Message::from(format!(
                "TP {tp} is larger than the {domain} GPUs that NVLink connects, so every layer waits for the network."
            )));
        }
        warnings
    }

    /// Returns the value of a field; none for an option without one, and for a field that no scenario holds.
    pub fn value(&self, field: Field) -> Option<String> {
        let (layout, batch, options) = (&self.layout, &self.batch, &self.options);
        let on = |on: bool| if on { "on" } else { "off" };
        Some(match field {
            Field::Model => self.model.id.clone(),
            Field::Layers => self.architecture.layers.to_string(),
            Field::SeqLen => batch.seq_len().to_string(),
            Field::Gbs => batch.gbs().to_string(),
            Field::Mbs => batch.mbs().to_string(),
            Field::Gpu => self.gpu.id.clone(),
            Field::Gpus => layout.gpus().to_string(),
            Field::Dtype => self.dtype.id().to_owned(),
            Field::Tp => layout.tp().to_string(),
            Field::Pp => layout.pp().to_string(),
            Field::Cp => layout.cp().to_string(),
            Field::Ep => layout.ep().to_string(),
            Field::ExpertTp => layout.expert_tp().to_string(),
            Field::Vp => layout.vp().to_string(),
            Field::PipelineSplit => layout.split().to_string(),
            Field::Recompute => options.recompute.to_string(),
            Field::RecomputeModules if options.modules.names().is_empty() => return None,
            Field::RecomputeModules => options.modules.to_string(),
            Field::OffloadLayers
                if options.offload_layers == 0
                    && self.recipe.is_none_or(|recipe| recipe.offload_layers == 0) =>
            {
                return None;
            }
            Field::OffloadLayers => options.offload_layers.to_string(),
            Field::Fsdp => on(options.fsdp).to_owned(),
            Field::Overlap => on(options.overlap).to_owned(),
            Field::Stack => options.software.to_string(),
            Field::GemmTflops => options.gemm_tflops?.to_string(),
            Field::ClusterFactor if options.cluster.is_default() => return None,
            Field::ClusterFactor => options.cluster.to_string(),
            _ => return None,
        })
    }

    /// Returns whether it has another number of layers than its model.
    pub fn is_proxy(&self) -> bool {
        self.architecture.layers != self.model.architecture.layers
    }

    /// Returns the recipe that equals it: its own if nothing differs, otherwise one of the same release, otherwise one
    /// of any release.
    pub fn published_as(&self) -> Option<&'static Recipe> {
        if let (Some(recipe), true) = (self.recipe, self.changes.is_empty()) {
            return Some(recipe);
        }
        let catalog = Catalog::embedded();
        let release = self.recipe.map(|recipe| recipe.id.release);
        catalog.recipes().iter().filter(|recipe| self.equals(recipe)).max_by_key(|recipe| {
            (Some(recipe.id.release) == release, catalog.baseline(&recipe.id).is_some(), recipe.id.release)
        })
    }

    /// Returns its published measurement.
    pub fn baseline(&self) -> Option<&'static Baseline> {
        self.published_as().and_then(|recipe| Catalog::embedded().baseline(&recipe.id))
    }

    /// Returns the published measurement that its runs are compared with: its own, or by weak scaling another one.
    pub fn reference(&self) -> Option<Reference> {
        self.published_as().and_then(|recipe| Catalog::embedded().reference(recipe))
    }

    /// Returns whether it has a recipe's precision, or the one that its script runs.
    pub(crate) fn has_precision_of(&self, recipe: &Recipe) -> bool {
        [recipe.id.dtype, recipe.runs()].contains(&self.dtype)
    }

    fn equals(&self, recipe: &Recipe) -> bool {
        let degrees = &recipe.degrees;
        // Without a recipe the software is a default, so it does not have to match. Switches follow from the rest.
        let own = &self.options;
        let options = TrainingOptions { switches: own.switches, ..recipe.options() };
        let options = match self.recipe {
            Some(_) => options,
            None => TrainingOptions { software: own.software, ..options },
        };
        recipe.id.model == self.model.id
            && recipe.id.gpu == self.gpu.id
            && self.has_precision_of(recipe)
            && recipe.layers == self.architecture.layers
            && recipe.seq_len == self.batch.seq_len()
            && recipe.mbs == self.batch.mbs()
            && recipe.gbs == self.batch.gbs()
            && *own == options
            && Layout::new(degrees, &self.architecture).as_ref() == Ok(&self.layout)
    }
}
