//! A scenario: all that a prediction or a launch needs to know of a training run.

use crate::architecture::Architecture;
use crate::batch::Batch;
use crate::catalog::{Baseline, Catalog, Gpu, Model, Recipe};
use crate::convention::Convention;
use crate::field::Field;
use crate::layout::Layout;
use crate::options::Options;
use crate::precision::Dtype;
use serde::Serialize;
use std::borrow::Cow;

/// A model on GPUs with a layout and a batch that fit each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The model.
    pub model: Cow<'static, Model>,
    /// Its shape, with fewer layers in a proxy.
    pub architecture: Architecture,
    /// GPU type.
    pub gpu: Cow<'static, Gpu>,
    /// Precision.
    pub dtype: Dtype,
    /// How the model is spread over the GPUs.
    pub layout: Layout,
    /// What a step takes.
    pub batch: Batch,
    /// Recomputation, sharding, software.
    pub options: Options,
    /// The recipe that it started from, which gives its document's ways of counting.
    pub recipe: Option<&'static Recipe>,
    /// What differs from that recipe.
    pub changes: Vec<Change>,
    /// How its FLOPs are counted.
    pub convention: Convention,
}

/// One thing in which a scenario differs from its recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What differs.
    pub field: Field,
    /// The recipe's value.
    pub from: String,
    /// The scenario's value.
    pub to: String,
    /// Whether nobody asked for it and it only follows another change.
    pub follows: bool,
}

impl Scenario {
    /// What works but not as well as its neighbours would.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.layout.warnings(&self.architecture);
        warnings.extend(self.batch.warnings(&self.layout));
        let (tp, domain) = (self.layout.tp(), self.gpu.nvlink_domain);
        if tp > domain {
            warnings.push(format!(
                "TP = {tp} reaches beyond the {domain} GPUs that NVLink joins: every layer then waits for the network"
            ));
        }
        warnings
    }

    /// Whether it has fewer layers than its model.
    pub fn is_proxy(&self) -> bool {
        self.architecture.layers != self.model.architecture.layers
    }

    /// The recipe that it is, if it is one: its own where nothing differs, otherwise another of the same release
    /// that it happens to equal, otherwise one of any release.
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

    /// Its published measurement, if it has one.
    pub fn baseline(&self) -> Option<&'static Baseline> {
        self.published_as().and_then(|recipe| Catalog::embedded().baseline(&recipe.id))
    }

    fn equals(&self, recipe: &Recipe) -> bool {
        let degrees = &recipe.degrees;
        // Without a recipe nobody chose the release's software, and its measurement still says most.
        let stack = match self.recipe {
            Some(_) => recipe.id.release.contract().stack,
            None => self.options.stack,
        };
        recipe.id.model == self.model.id
            && recipe.id.gpu == self.gpu.id
            && recipe.id.dtype == self.dtype
            && recipe.layers == self.architecture.layers
            && recipe.seq_len == self.batch.seq_len()
            && recipe.mbs == self.batch.mbs()
            && recipe.gbs == self.batch.gbs()
            && self.options == Options { stack, ..Options::default() }
            && Layout::new(degrees, &self.architecture).as_ref() == Ok(&self.layout)
    }
}
