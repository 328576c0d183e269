//! Published scenarios.

use super::Release;
use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row};
use crate::layout::{Degrees, PipelineSplit};
use crate::options::{Modules, Recompute, TrainingOptions};
use crate::precision::Dtype;
use crate::problem::{LONGEST_MISSPELT, most_alike};
use crate::releases::BridgeModel;
use crate::sorting::sorted;
use crate::stack::Software;
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt;

/// The id of a recipe: `llama3.1-405b/h100/fp8/512@25.04`, with `/strong` before the `@` for strong scaling. A variant follows the
/// number of GPUs: `deepseek-v3/h100/fp8-block/1024+large_scale@bridge-main`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecipeId {
    /// Model id.
    pub model: String,
    /// GPU type id.
    pub gpu: String,
    /// Precision.
    pub dtype: Dtype,
    /// Total number of GPUs.
    pub gpus: u32,
    /// The release's name of a variant; none for the usual recipe.
    pub variant: Option<String>,
    /// Whether it is strong scaling: the same global batch for every GPU count.
    pub strong: bool,
    /// The release.
    pub release: Release,
}

impl RecipeId {
    /// Returns the id without the release, which several releases can share.
    pub fn without_release(&self) -> String {
        let RecipeId { model, gpu, dtype, strong, .. } = self;
        format!("{model}/{gpu}/{dtype}/{}{}", self.scale(), if *strong { "/strong" } else { "" })
    }

    /// Returns the part of the id with the number of GPUs and the variant: `256` or `256+large_scale`.
    pub(super) fn scale(&self) -> String {
        let variant = self.variant.as_ref().map_or(String::new(), |variant| format!("+{variant}"));
        format!("{}{variant}", self.gpus)
    }

    /// Returns Megatron-Bridge's name of one of its own recipes, without `_config`: `llama31_405b_pretrain_256gpu_gb300_fp8cs`.
    /// `None` for recipes of a collection.
    pub(crate) fn bridge_name(&self) -> Option<String> {
        let model = BridgeModel::of(self.release, &self.model).filter(|model| model.form.is_none())?;
        let dtype = match self.dtype {
            Dtype::Bf16 => "bf16",
            Dtype::Nvfp4 => "nvfp4",
            Dtype::Mxfp8 => "fp8mx",
            Dtype::Fp8Block => "fp8sc",
            Dtype::Fp8Delayed => "fp8ds",
            Dtype::Fp8 | Dtype::Fp8Current => "fp8cs",
        };
        let variant = self.variant.as_ref().map_or(String::new(), |variant| format!("_{variant}"));
        Some(format!("{}_pretrain_{}gpu_{}_{dtype}{variant}", model.recipe, self.gpus, self.gpu))
    }

    /// Returns how the names of experiments with one of Megatron-Bridge's own recipes begin: with its name, and with its version
    /// unless it is of the main branch. `None` for recipes of a collection.
    pub(crate) fn bridge_experiment(&self) -> Option<String> {
        let version = if self.release == Release::Bridge060 { "_v060" } else { "" };
        Some(format!("{}{version}", self.bridge_name()?))
    }

    /// Returns whether the other id differs only in the GPU count.
    pub fn same_series(&self, other: &RecipeId) -> bool {
        RecipeId { gpus: other.gpus, ..self.clone() } == *other
    }
}

impl fmt::Display for RecipeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.without_release(), self.release)
    }
}

impl Serialize for RecipeId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

choices! {
    /// How a series of recipes grows.
    Scaling of Field::Scaling {
        /// The global batch grows with the GPUs.
        Weak "weak",
        /// The global batch stays the same.
        Strong "strong",
    }
}

/// A published scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The id.
    pub id: RecipeId,
    /// How its series grows; none for a proxy.
    pub scaling: Option<Scaling>,
    /// Number of layers; a proxy has fewer than the model.
    pub layers: u32,
    /// Its degrees of parallelism.
    pub degrees: Degrees,
    /// What `fp8` in its id means; none if its release's contract says it, or if it isn't FP8.
    pub fp8: Option<Dtype>,
    /// Whether its script shards weights and gradients over the data-parallel ranks (FSDP).
    pub fsdp: bool,
    /// What the backward pass recomputes.
    pub recompute: Recompute,
    /// Further parts of a layer that are recomputed.
    pub modules: Modules,
    /// Layers whose activations are kept in CPU memory.
    pub offload_layers: u32,
    /// EP as printed; none where the document prints NA or no such column.
    pub printed_ep: Option<u32>,
    /// Tokens of a sequence.
    pub seq_len: u32,
    /// Micro batch size.
    pub mbs: u32,
    /// Global batch size.
    pub gbs: u32,
    /// The line of its document; none if no document lists what its script runs.
    pub line: Option<u32>,
    /// A note on the row; usually empty.
    pub note: String,
}

impl Recipe {
    /// Returns the precision of its scenario: the exact one where it is known for the recipe.
    pub fn dtype(&self) -> Dtype {
        self.fp8.unwrap_or(self.id.dtype)
    }

    /// Returns the precision that its script runs.
    pub fn runs(&self) -> Dtype {
        match self.dtype() {
            Dtype::Fp8 => self.id.release.software().fp8.runs,
            exact => exact,
        }
    }

    /// Returns the data-parallel size.
    pub fn dp(&self) -> u32 {
        let Degrees { gpus, tp, pp, cp, .. } = self.degrees;
        gpus / (tp * pp * cp).max(1)
    }

    /// Returns the micro batches that a GPU processes in a step (gradient accumulation).
    pub fn ga(&self) -> u32 {
        self.gbs / (self.mbs * self.dp()).max(1)
    }

    /// Returns the software that its script runs.
    pub fn software(&self) -> Software {
        self.id.release.software().stack.into()
    }

    /// Returns the options that its script runs with.
    pub fn options(&self) -> TrainingOptions {
        TrainingOptions {
            recompute: self.recompute,
            modules: self.modules,
            offload_layers: self.offload_layers,
            fsdp: self.fsdp,
            software: self.software(),
            ..TrainingOptions::default()
        }
        .as_in_recipes(&self.id.model, &self.id.gpu, self.dtype())
    }

    /// Returns whether another recipe of its series runs the same layout on its own number of GPUs, with a batch in
    /// proportion: by weak scaling, both take as long for a step.
    pub fn is_weak_scaled(&self, other: &Recipe) -> bool {
        let same_degrees = Degrees { gpus: other.degrees.gpus, ..self.degrees.clone() } == other.degrees;
        let same_settings = (self.mbs, self.seq_len, self.layers, self.ga())
            == (other.mbs, other.seq_len, other.layers, other.ga());
        self.id.same_series(&other.id)
            && self.scaling == Some(Scaling::Weak)
            && same_degrees
            && same_settings
            && self.runs() == other.runs()
            && self.options() == other.options()
    }
}

/// Returns the number of GPUs in the text of a recipe's id, and the id in `known` that differs only in this number and is nearest
/// by ratio. None without such an id.
pub(super) fn of_nearest_size(id: &str, known: impl Iterator<Item = String>) -> Option<(u32, String)> {
    let wanted = id.trim().to_ascii_lowercase();
    let (gpus, rest) = split_size(&wanted).filter(|(gpus, _)| *gpus > 0)?;
    let ratio = |size: u32| f64::from(size.max(gpus)) / f64::from(size.min(gpus).max(1));
    let of_series = known.filter_map(|name| {
        let (size, other) = split_size(&name)?;
        (other == rest).then(|| ratio(size)).map(|ratio| (ratio, name))
    });
    let (_, nearest) = of_series.min_by(|one, other| one.0.total_cmp(&other.0))?;
    Some((gpus, nearest))
}

/// The most ids that are named instead of an unknown one.
const MOST_NAMED: usize = 3;

/// Returns the ids that have most parts in common with the text of an unknown one, best first and three at most. The model must be the same.
/// Its GPU type and its release count more than its precision and its number of GPUs. A misspelt part counts as the known one that it is
/// most like. Empty if the text has a single part, or no model with a recipe is like its first part.
pub(super) fn with_most_in_common(text: &str, recipes: &[Recipe]) -> Vec<String> {
    if text.len() > LONGEST_MISSPELT {
        return Vec::new();
    }
    let wanted = text.trim().to_ascii_lowercase();
    let (path, release) = match wanted.split_once('@') {
        Some((path, release)) => (path, Some(release)),
        None => (wanted.as_str(), None),
    };
    let Some((model, rest)) = path.split_once('/') else { return Vec::new() };
    let Some(model) = spelled(model, recipes.iter().map(|recipe| recipe.id.model.as_str())) else {
        return Vec::new();
    };
    let mut parts = rest.split('/');
    let [gpu, dtype, scale, strong] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    let gpu = spelled(gpu, recipes.iter().map(|recipe| recipe.id.gpu.as_str()));
    let dtype = spelled(dtype, Dtype::ALL.map(Dtype::id)).and_then(|id| id.parse::<Dtype>().ok());
    let (gpus, variant) = match scale.split_once('+') {
        Some((gpus, variant)) => (gpus, Some(variant)),
        None => (scale, None),
    };
    let gpus: Option<u32> = gpus.parse().ok();
    let release = release.map(|release| spelled(release, Release::ALL.map(Release::id)));
    let rank = |recipe: &Recipe| {
        let id = &recipe.id;
        let has_other_gpu = gpu != Some(id.gpu.as_str());
        let has_other_release = release.is_some_and(|release| release != Some(id.release.id()));
        let has_other_form = (variant, strong == "strong") != (id.variant.as_deref(), id.strong);
        let others = [dtype != Some(id.dtype), gpus != Some(id.gpus), has_other_form];
        let count = others.into_iter().filter(|other| *other).count();
        let has_other_width = dtype.map(Dtype::width) != Some(id.dtype.width());
        // By ratio, in thousandths.
        let ratio =
            gpus.map_or(0, |gpus| u64::from(gpus.max(id.gpus)) * 1000 / u64::from(gpus.min(id.gpus).max(1)));
        // A proxy has fewer layers.
        let is_proxy = recipe.scaling.is_none();
        let likeness = (has_other_width, is_proxy, ratio, Reverse(id.release));
        ((has_other_gpu, has_other_release, count), likeness)
    };
    let of_model = recipes.iter().filter(|recipe| recipe.id.model == model);
    let ranked: Vec<_> = of_model.map(|recipe| (rank(recipe), recipe)).collect();
    let ranked = sorted(&ranked, |(one, _), (other, _)| one.cmp(other));
    let mut ids = Vec::new();
    for ((in_common, _), recipe) in &ranked {
        if ranked.first().is_some_and(|((best, _), _)| best != in_common) || ids.len() == MOST_NAMED {
            break;
        }
        let id = match release {
            Some(_) => recipe.id.to_string(),
            None => recipe.id.without_release(),
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Returns the word of `known` ones that a text is or is most like.
fn spelled<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut words: Vec<&str> = Vec::new();
    for word in known {
        if word == text {
            return Some(word);
        }
        if !words.contains(&word) {
            words.push(word);
        }
    }
    most_alike(text, words)
}

/// Splits the text of a recipe's id into the number of GPUs and what is before and after it.
fn split_size(id: &str) -> Option<(u32, [&str; 2])> {
    let (slash, _) = id.match_indices('/').nth(2)?;
    let (before, rest) = id.split_at(slash + 1);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = rest.split_at(digits);
    Some((number.parse().ok()?, [before, after]))
}

/// A line of recipes.csv: one recipe for each release, GPU type, precision and GPU count.
#[derive(Debug)]
pub(super) struct MatrixRow {
    releases: Vec<Release>,
    model: String,
    precisions: String,
    gpu_types: String,
    scaling: Option<Scaling>,
    gpus: Vec<u32>,
    variant: Option<String>,
    seq_len: u32,
    layers: u32,
    tp: u32,
    pp: u32,
    cp: u32,
    ep: Option<u32>,
    vp: Option<u32>,
    mbs: u32,
    gbs: u32,
    split: PipelineSplit,
    fp8: Option<Dtype>,
    expert_tp: Option<u32>,
    fsdp: bool,
    recompute: Recompute,
    modules: Modules,
    offload_layers: u32,
    line: Option<u32>,
    note: String,
}

impl FromRow for MatrixRow {
    fn from_row(row: &Row<'_>) -> Result<MatrixRow, DataError> {
        Ok(MatrixRow {
            // Texts and lists come last, because reading anything after them adds code that drops them.
            scaling: row.optional("scaling")?,
            seq_len: row.value("seq_len")?,
            layers: row.value("layers")?,
            tp: row.value("tp")?,
            pp: row.value("pp")?,
            cp: row.value("cp")?,
            ep: row.optional("ep")?,
            vp: row.optional("vp")?,
            mbs: row.value("mbs")?,
            gbs: row.value("gbs")?,
            fp8: row.optional("fp8")?,
            expert_tp: row.optional("expert_tp")?,
            fsdp: row.yes("fsdp")?,
            recompute: row.optional("recompute")?.unwrap_or_default(),
            modules: row.value("modules")?,
            offload_layers: row.optional("offload_layers")?.unwrap_or_default(),
            line: row.optional("line")?,
            split: row.value("split")?,
            releases: row.list("release")?,
            gpus: row.list("gpus")?,
            model: row.string("model")?,
            precisions: row.string("precisions")?,
            gpu_types: row.string("gpu")?,
            variant: Some(row.string("variant")?).filter(|variant| !variant.is_empty()),
            note: row.string("note")?,
        })
    }
}

impl MatrixRow {
    pub(super) fn into_recipes(self) -> Vec<Recipe> {
        let mut recipes = Vec::new();
        for release in &self.releases {
            for gpu in self.gpu_types.split(' ') {
                let precisions = self.precisions.split(' ').filter_map(|precision| precision.parse().ok());
                for dtype in precisions {
                    recipes.extend(self.gpus.iter().map(|gpus| self.recipe(*release, gpu, dtype, *gpus)));
                }
            }
        }
        recipes
    }

    fn recipe(&self, release: Release, gpu: &str, dtype: Dtype, gpus: u32) -> Recipe {
        let first = self.gpus.first().copied().unwrap_or(1).max(1);
        // By weak scaling; a row of one GPU count has its own values.
        let scaled = |value: u32| (u64::from(value) * u64::from(gpus) / u64::from(first)) as u32;
        Recipe {
            id: RecipeId {
                model: self.model.clone(),
                gpu: gpu.to_string(),
                dtype,
                gpus,
                variant: self.variant.clone(),
                strong: self.scaling == Some(Scaling::Strong),
                release,
            },
            scaling: self.scaling,
            layers: self.layers,
            degrees: Degrees {
                gpus,
                tp: self.tp,
                pp: self.pp,
                cp: self.cp,
                ep: self.ep.unwrap_or(1),
                expert_tp: self.expert_tp.unwrap_or(1),
                vp: self.vp.unwrap_or(1),
                split: self.split.clone(),
            },
            fp8: self.fp8.filter(|_| dtype == Dtype::Fp8),
            fsdp: self.fsdp,
            recompute: self.recompute,
            modules: self.modules,
            offload_layers: self.offload_layers,
            printed_ep: self.ep,
            seq_len: self.seq_len,
            mbs: self.mbs,
            gbs: scaled(self.gbs),
            line: self.line,
            note: self.note.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::data_file::read;

    /// The figures that a document prints beside the layout.
    struct Printed {
        releases: usize,
        gpu_types: usize,
        precisions: usize,
        gpus: Vec<u32>,
        dp: u32,
        ga: u32,
    }

    impl FromRow for Printed {
        fn from_row(row: &Row<'_>) -> Result<Printed, DataError> {
            let count = |column| row.list::<String>(column).map(|words| words.len());
            let [releases, gpu_types, precisions] = ["release", "gpu", "precisions"].map(count);
            let [releases, gpu_types, precisions] = [releases?, gpu_types?, precisions?];
            let gpus = row.list("gpus")?;
            Ok(Printed { releases, gpu_types, precisions, gpus, dp: row.value("dp")?, ga: row.value("ga")? })
        }
    }

    #[test]
    fn every_layout_gives_the_dp_and_ga_that_its_document_prints() {
        let rows: Vec<Printed> = read("recipes.csv", include_str!("../../data/recipes.csv")).unwrap();
        let printed = rows.iter().flat_map(|row| {
            let of_gpus = |gpus: &u32| (row.dp * gpus / row.gpus[0], row.ga);
            let of_row: Vec<(u32, u32)> = row.gpus.iter().map(of_gpus).collect();
            of_row.repeat(row.releases * row.gpu_types * row.precisions)
        });
        let derived = Catalog::embedded().recipes().iter().map(|recipe| (recipe.dp(), recipe.ga()));
        assert_eq!(printed.collect::<Vec<_>>(), derived.collect::<Vec<_>>());
    }
}
