//! Benchmarks: every measured pre-training run and every published recipe, for the page that compares them.
//!
//! The page fetches them as `data/benchmarks.csv`, which [`file`](mod@file) writes from the measurements, the recipes and
//! the held-out errors.

mod best;
mod facets;
#[cfg(feature = "calibrate")]
pub mod file;
mod models;

pub use best::BestMeasured;
pub use facets::{BenchmarkFacet, BenchmarkFilter, FacetCount};
pub use models::{models_by_use, with_named_models};

use crate::catalog::{Catalog, Collection, Gpu, Recipe, is_unnamed_shape, measured_model_title};
use crate::choices::choices;
use crate::cost::{Price, PurchaseForm};
use crate::data_file::{DataError, FromRow, Row, read};
use crate::field::Field;
use crate::link;
use crate::precision::Dtype;
use crate::range::ValueRange;
use crate::spec::Spec;
use crate::units::DAY_S;

choices! {
    /// Number formats, for comparing runs: the kinds of FP8 scaling count as one.
    PrecisionFamily {
        /// 16 bits.
        Bf16 "bf16" "BF16",
        /// 8 bits with a scale for a tensor, a row or a block.
        Fp8 "fp8" "FP8",
        /// 8 bits with a scale for 32 values.
        Mxfp8 "mxfp8" "MXFP8",
        /// 4 bits.
        Nvfp4 "nvfp4" "NVFP4",
        /// The source leaves open which of the two it is.
        Fp8OrNvfp4 "fp8-or-nvfp4" "FP8 or NVFP4",
    }
}

/// The precision of a run, if its source gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPrecision {
    /// One of the catalog's.
    Known(Dtype),
    /// FP8 with a scale for each row.
    Fp8Row,
    /// FP8 or NVFP4.
    Fp8OrNvfp4,
}

impl RunPrecision {
    const FP8_ROW: &'static str = "fp8-row";

    fn read(text: &str) -> Option<RunPrecision> {
        match text {
            RunPrecision::FP8_ROW => Some(RunPrecision::Fp8Row),
            _ if text == PrecisionFamily::Fp8OrNvfp4.id() => Some(RunPrecision::Fp8OrNvfp4),
            _ => text.parse().ok().map(RunPrecision::Known),
        }
    }

    #[cfg(feature = "calibrate")]
    fn id(self) -> &'static str {
        match self {
            RunPrecision::Known(dtype) => dtype.id(),
            RunPrecision::Fp8Row => RunPrecision::FP8_ROW,
            RunPrecision::Fp8OrNvfp4 => PrecisionFamily::Fp8OrNvfp4.id(),
        }
    }

    /// Returns the family.
    pub const fn family(self) -> PrecisionFamily {
        match self {
            RunPrecision::Known(Dtype::Bf16) => PrecisionFamily::Bf16,
            RunPrecision::Known(Dtype::Mxfp8) => PrecisionFamily::Mxfp8,
            RunPrecision::Known(Dtype::Nvfp4) => PrecisionFamily::Nvfp4,
            RunPrecision::Known(Dtype::Fp8 | Dtype::Fp8Current | Dtype::Fp8Delayed | Dtype::Fp8Block)
            | RunPrecision::Fp8Row => PrecisionFamily::Fp8,
            RunPrecision::Fp8OrNvfp4 => PrecisionFamily::Fp8OrNvfp4,
        }
    }

    /// Returns the name for people.
    pub const fn title(self) -> &'static str {
        match self {
            RunPrecision::Known(dtype) => dtype.title(),
            RunPrecision::Fp8Row => "FP8 row",
            RunPrecision::Fp8OrNvfp4 => "FP8 or NVFP4",
        }
    }
}

choices! {
    /// Why a run can't be opened in the planner.
    PlanObstacle {
        /// Nobody published the architecture.
        Architecture "architecture" "The model's architecture isn't published, so Plan can't describe it.",
        /// The model is not in the catalog.
        Shape "shape" "Plan's catalog doesn't have a model of this shape.",
        /// The source's values contradict each other, or some are missing.
        Incomplete "incomplete" "The source's layout is incomplete or contradicts itself.",
        /// No scenario describes it.
        Layout "layout" "Plan can't describe this layout.",
    }
}

choices! {
    /// The quantity that runs are compared by.
    BenchmarkQuantity {
        /// Tokens per second of each GPU.
        TokensPerGpu "tokens-per-gpu" "Tokens/s per GPU",
        /// Model FLOPs per second over the GPU's BF16 peak, percent.
        Mfu "mfu" "MFU, % of the BF16 peak",
        /// US dollars for a million tokens.
        Cost "cost" "$ per 1M tokens",
    }
}

choices! {
    /// What kind of model a run trains.
    ModelKind {
        /// A model that people know by its name.
        Named "named" "named models",
        /// A shape without a name, made to compare layouts.
        Shape "shapes" "unnamed shapes",
        /// A tiny model on one node, which resembles no real plan.
        Tiny "tiny" "tiny models",
    }
}

/// The degrees of parallelism of a run, and its batch. A run's source may leave some open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunLayout {
    /// Tensor parallelism.
    pub tp: u32,
    /// Pipeline parallelism.
    pub pp: u32,
    /// Context parallelism.
    pub cp: u32,
    /// Expert parallelism.
    pub ep: u32,
    /// Virtual stages of a GPU.
    pub vp: u32,
    /// Data parallelism; none if the source doesn't give it.
    pub dp: Option<u32>,
    /// Whether weights and gradients are sharded over the data-parallel ranks.
    pub fsdp: bool,
    /// Micro batch size; none if the source doesn't give it.
    pub mbs: Option<u32>,
}

/// A measured run, or a recipe that nobody measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Benchmark {
    /// The id: of the measurement, or of the recipe.
    pub id: String,
    /// The id of the collection.
    pub source: String,
    /// The release of the collection or of the software.
    pub release: String,
    /// The id of the model.
    pub model: String,
    /// Layers, if they are not those of the catalog's model.
    pub layers: Option<u32>,
    /// Hidden width, if the model is not in the catalog.
    pub hidden: Option<u32>,
    /// The id of the GPU type.
    pub gpu: String,
    /// Precision.
    pub precision: RunPrecision,
    /// Number of GPUs.
    pub gpus: u32,
    /// Sequence length, in tokens.
    pub seq_len: u32,
    /// Global batch size, in sequences.
    pub gbs: u32,
    /// Parallelism and micro batch.
    pub layout: RunLayout,
    /// Seconds per step; none if nobody measured it.
    pub step_time_s: Option<f64>,
    /// Tokens per second of each GPU.
    pub tokens_per_s_per_gpu: Option<f64>,
    /// Model FLOPs per second of each GPU, in TFLOPS, with full attention, however the source counts; none without a known
    /// architecture.
    pub tflops: Option<f64>,
    /// The error of the prediction of its step time without its mapping: predicted over measured, minus 1; none if no
    /// prediction was judged on it.
    pub held_out_error: Option<f64>,
    /// The recipe that it measures.
    pub recipe: Option<&'static Recipe>,
    /// Why it can't be opened in the planner.
    pub obstacle: Option<PlanObstacle>,
    /// Whether the run has settings that the planner has no fields for.
    pub is_approximate: bool,
    /// The fields of its scenario beside model, GPUs, layout and batch, as a query.
    more: String,
    /// The address of the table, log or paper; empty if only the collection's is known.
    pub url: String,
    /// Why the fit leaves the run out; empty if it does not.
    pub note: String,
    /// Whether it is one of the tiny models on one node, which resemble no real plan.
    pub is_tiny: bool,
}

impl FromRow for Benchmark {
    fn from_row(row: &Row<'_>) -> Result<Benchmark, DataError> {
        let recipe = match row.text("recipe")? {
            "" => None,
            id => Some(Catalog::embedded().recipe(id).map_err(|problem| row.error(problem.to_string()))?),
        };
        let obstacle = match row.text("obstacle")? {
            "" => None,
            id => PlanObstacle::ALL.into_iter().find(|obstacle| obstacle.id() == id),
        };
        let precision = row.text("precision")?;
        let unknown = || row.error(format!("the precision {precision} is unknown"));
        Ok(Benchmark {
            id: row.string("id")?,
            source: row.string("source")?,
            release: row.string("release")?,
            model: row.string("model")?,
            layers: row.optional("layers")?,
            hidden: row.optional("hidden")?,
            gpu: row.string("gpu")?,
            precision: RunPrecision::read(precision).ok_or_else(unknown)?,
            gpus: row.value("gpus")?,
            seq_len: row.value("seq_len")?,
            gbs: row.value("gbs")?,
            layout: RunLayout {
                tp: row.value("tp")?,
                pp: row.value("pp")?,
                cp: row.value("cp")?,
                ep: row.value("ep")?,
                vp: row.value("vp")?,
                dp: row.optional("dp")?,
                fsdp: row.yes("fsdp")?,
                mbs: row.optional("mbs")?,
            },
            step_time_s: row.optional_number("step_time_s")?,
            tokens_per_s_per_gpu: row.optional_number("tokens")?,
            tflops: row.optional_number("tflops")?,
            held_out_error: row.optional_number("held_out")?,
            recipe,
            obstacle,
            is_approximate: row.yes("approximate")?,
            more: row.string("more")?,
            url: row.string("url")?,
            note: row.string("note")?,
            is_tiny: row.yes("tiny")?,
        })
    }
}

/// Returns the benchmarks of a file, in its order.
///
/// # Errors
/// A sentence about the first row that is not a benchmark.
pub fn parse(text: &str) -> Result<Vec<Benchmark>, String> {
    read("benchmarks.csv", text).map_err(|error| error.to_string())
}

impl Benchmark {
    /// Returns the name of the model for people.
    pub fn model_title(&self) -> &str {
        measured_model_title(&self.model)
    }

    /// Returns the kind of its model.
    pub fn model_kind(&self) -> ModelKind {
        match () {
            () if self.is_tiny => ModelKind::Tiny,
            () if is_unnamed_shape(&self.model) => ModelKind::Shape,
            () => ModelKind::Named,
        }
    }

    /// Returns how the model differs from the catalog's, or its shape.
    pub fn shape(&self) -> Option<String> {
        match (self.layers, self.hidden) {
            (Some(layers), Some(hidden)) => Some(format!("{layers} layers, hidden {hidden}")),
            (Some(layers), None) => {
                let model = Catalog::embedded().model(&self.model);
                let of_all =
                    model.map_or(String::new(), |model| format!(" of {}", model.architecture.layers));
                Some(format!("proxy, {layers}{of_all} layers"))
            }
            _ => None,
        }
    }

    /// Whether it ran fewer layers than its model has, so that its throughput says little about the model.
    pub fn is_proxy(&self) -> bool {
        self.layers.is_some() && self.hidden.is_none()
    }

    /// Returns when its release came out, as a text that sorts by time: `2026-08`, or a year or a day if that is known.
    pub fn released(&self) -> String {
        release_date(&self.release)
    }

    /// Returns the collection and the release that it belongs to. A run of another collection whose number is the reference of a
    /// recipe also belongs to those of the recipe.
    fn origins(&self) -> Vec<(&str, &str)> {
        let own = (&*self.source, &*self.release);
        let of_recipe = self.recipe.map(|recipe| {
            let release = recipe.id.release;
            (release.software().measured.0, release.id())
        });
        let other = of_recipe.filter(|origin| *origin != own);
        [Some(own), other].into_iter().flatten().collect()
    }

    /// Returns the collection and the release of the recipe whose reference it is, if they are not its own:
    /// `DGX Cloud recipes 26.06.01`.
    pub fn reference_of(&self) -> Option<String> {
        self.origins().get(1).map(|(source, release)| Collection::with_release(source, release))
    }

    /// Returns the GPU type, if it is in the catalog.
    pub fn gpu_type(&self) -> Option<&'static Gpu> {
        Catalog::embedded().gpu(&self.gpu).ok()
    }

    /// Returns the name of the GPU type.
    pub fn gpu_title(&self) -> &str {
        self.gpu_type().map_or(&self.gpu, |gpu| &gpu.name)
    }

    /// Returns the collection with the release.
    pub fn source_title(&self) -> String {
        Collection::with_release(&self.source, &self.release)
    }

    /// Returns the address of its source.
    pub fn source_url(&self) -> Option<&str> {
        match &*self.url {
            "" => Collection::of(&self.source).map(|source| &*source.url),
            url => Some(url),
        }
    }

    /// Returns model, GPUs and precision in one line.
    pub fn title(&self) -> String {
        let shape = self.shape().map_or(String::new(), |shape| format!(" ({shape})"));
        let (model, gpu, precision) = (self.model_title(), self.gpu_title(), self.precision.title());
        format!("{model}{shape} on {} {gpu}, {precision}", self.gpus)
    }

    /// Returns the weights that a token visits; none of a model whose architecture the catalog lacks.
    pub fn active_parameters(&self) -> Option<f64> {
        let known =
            self.hidden.is_none().then_some(&Catalog::embedded().model(&self.model).ok()?.architecture)?;
        let layers = self.layers.unwrap_or(known.layers);
        known.with_layers(layers).ok().map(|architecture| architecture.active_parameters())
    }

    /// Returns the layout in one line, without degrees of 1: `TP 4 · PP 2 · DP 16`.
    pub fn layout_text(&self) -> String {
        let RunLayout { tp, pp, cp, ep, vp, dp, fsdp, .. } = self.layout;
        let degrees = [
            ("TP", Some(tp)),
            ("PP", Some(pp)),
            ("VP", Some(vp)),
            ("CP", Some(cp)),
            ("EP", Some(ep)),
            ("DP", dp),
        ];
        let shown = degrees.into_iter().filter_map(|(name, degree)| match degree {
            Some(degree) if degree > 1 => Some(format!("{name} {degree}")),
            _ => None,
        });
        let mut words: Vec<String> = shown.collect();
        words.extend(fsdp.then(|| "FSDP".to_string()));
        if words.is_empty() { "one GPU".to_string() } else { words.join(" · ") }
    }

    /// Returns tokens per second of all GPUs.
    pub fn tokens_per_s(&self) -> Option<f64> {
        self.tokens_per_s_per_gpu.map(|tokens| tokens * f64::from(self.gpus))
    }

    /// Returns the days that 10¹² tokens take without interruption; none for a proxy.
    pub fn days_for_1t(&self) -> Option<f64> {
        self.tokens_per_s().filter(|_| !self.is_proxy()).map(|tokens| 1e12 / tokens / DAY_S)
    }

    /// Returns the model FLOPs per second over the GPU's BF16 peak, a fraction. With one peak for all precisions, a faster
    /// precision has the higher value.
    pub fn mfu_of_bf16(&self) -> Option<f64> {
        Some(self.tflops? / self.gpu_type()?.mfu_tflops(Dtype::Bf16))
    }

    /// Returns the price of a million tokens at the usual price of the GPU type, in US dollars; none if no price is known.
    pub fn cost_per_1m(&self) -> Option<ValueRange> {
        let price = usual_price(&self.gpu)?.per_gpu_hour;
        let million_hours = 1e6 / self.tokens_per_s_per_gpu? / 3600.0;
        Some(ValueRange { low: price.low * million_hours, high: price.high * million_hours })
    }

    /// Returns the value of a quantity. A price is the middle of its range.
    pub fn value(&self, quantity: BenchmarkQuantity) -> Option<f64> {
        match quantity {
            BenchmarkQuantity::TokensPerGpu => self.tokens_per_s_per_gpu,
            BenchmarkQuantity::Mfu => self.mfu_of_bf16().map(|mfu| mfu * 100.0),
            BenchmarkQuantity::Cost => self.cost_per_1m().map(|cost| (cost.low + cost.high) / 2.0),
        }
    }

    /// Returns the fields that open the run in the planner; none if there is an obstacle.
    pub fn spec(&self) -> Option<Spec> {
        if let Some(recipe) = self.recipe {
            return Some(Spec::default().with(Field::Recipe, recipe.id.to_string()));
        }
        if self.obstacle.is_some() {
            return None;
        }
        let RunLayout { tp, pp, cp, ep, vp, fsdp, mbs, .. } = self.layout;
        let mut spec = Spec::default()
            .with(Field::Model, &*self.model)
            .with(Field::Gpu, &*self.gpu)
            .with(Field::Gpus, self.gpus.to_string())
            .with(Field::SeqLen, self.seq_len.to_string())
            .with(Field::Gbs, self.gbs.to_string());
        if let RunPrecision::Known(dtype) = self.precision {
            spec.set(Field::Dtype, dtype.id());
        }
        let degrees = [
            (Field::Tp, tp),
            (Field::Pp, pp),
            (Field::Cp, cp),
            (Field::Ep, ep),
            // Without a pipeline there is nothing to interleave.
            (Field::Vp, if pp > 1 { vp } else { 1 }),
            (Field::Mbs, mbs.unwrap_or(1)),
        ];
        for (field, degree) in degrees.into_iter().filter(|(_, degree)| *degree > 1) {
            spec.set(field, degree.to_string());
        }
        if fsdp {
            spec.set(Field::Fsdp, "on");
        }
        if let Some(layers) = self.layers {
            spec.set(Field::Layers, layers.to_string());
        }
        for (field, text) in link::read(&self.more).spec.iter() {
            spec.set(field, text);
        }
        Some(spec)
    }
}

/// Returns when a release came out, as a text that sorts by time.
fn release_date(release: &str) -> String {
    let rounds = [
        ("v4.1", "2024-11"),
        ("v5.0", "2025-06"),
        ("v5.1", "2025-11"),
        ("bridge-main", "2026-08"),
        ("bridge-0.6.0", "2026-08"),
    ];
    if let Some((_, month)) = rounds.into_iter().find(|(round, _)| release.ends_with(round)) {
        return month.to_string();
    }
    let is_date = |word: &&str| word.starts_with("20") && word.len() >= 4;
    let mut words = release.split(|sign: char| !sign.is_ascii_digit() && !"-.".contains(sign));
    words
        .find(is_date)
        // NVIDIA's releases are named by year and month: 26.04.01.
        .map_or_else(|| format!("20{}", release.replace('.', "-")), str::to_string)
}

/// Returns the price that runs on a GPU type are compared by, in US dollars: that of a reservation, or of the cheapest form
/// of purchase that has a price.
pub fn usual_price(gpu: &str) -> Option<Price> {
    let assumed = |form| Price::assumed(gpu, form);
    assumed(PurchaseForm::Reserved).or_else(|| PurchaseForm::ALL.into_iter().find_map(assumed))
}

/// Returns model FLOPs per second in TFLOPS, from FLOPs per sequence and tokens per second.
#[cfg(feature = "calibrate")]
fn tflops(per_sequence: f64, seq_len: u32, tokens_per_s: f64) -> f64 {
    per_sequence / f64::from(seq_len) * tokens_per_s / crate::units::TERA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_has_a_date() {
        let rows = parse(include_str!("../../data/benchmarks.csv")).unwrap();
        for row in &rows {
            let year = row.released().get(..4).and_then(|year| year.parse::<u32>().ok());
            assert!(year.is_some_and(|year| (2020..2100).contains(&year)), "{}", row.release);
        }
        let released =
            |release: &str| rows.iter().find(|row| row.release == release).map(Benchmark::released).unwrap();
        assert_eq!(released("26.04.01"), "2026-04-01");
        assert_eq!(released("26.08 (2026-08-19)"), "2026-08-19");
        assert_eq!(released("v1.2 2026-05"), "2026-05");
        assert_eq!(released("MLPerf v5.1"), "2025-11");
        assert_eq!(released("2023-24"), "2023-24");
    }
}
