//! Published runs that correct the physical model.
//!
//! The model's error on one run is correlated with its error on similar runs: most for the same model on the
//! same GPU with the same precision, software and a similar layout. The correction is the best linear
//! prediction of the error from all measured runs of the model under that covariance (kriging). Runs of other
//! models have no influence.

use super::evidence::SIMILAR;
use super::{Anchor, Confidence, Evidence, EvidenceKind, Inputs, Record};
use crate::architecture::Architecture;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::options::Stack;
use crate::precision::Dtype;
use std::sync::LazyLock;

/// Anchors that an estimate lists.
const LISTED: usize = 5;

/// The parts of the variance of the model's logarithmic error that two runs of one model share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Covariance {
    /// Shared by all runs of the model.
    pub shape: f64,
    /// Added on the same GPU.
    pub gpu: f64,
    /// Added on the same GPU with numbers of the same width.
    pub width: f64,
    /// Added with the same software and numbers of the same width.
    pub stack: f64,
    /// Added for similar layouts; it falls exponentially with their distance.
    pub layout: f64,
    /// Distance at which that part has fallen to 1/e, in doublings of degrees and batch.
    pub reach: f64,
    /// Variance between repeated measurements of one run.
    pub noise: f64,
}

/// The properties of a run that decide how its error correlates with others.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Hash of the architecture without its number of layers.
    shape: u64,
    /// Hash of the GPU type.
    gpu: u64,
    dtype: Dtype,
    stack: Stack,
    /// Logarithms to base 2 of GPUs, degrees, batch, sequence length and layers; then recomputation and FSDP.
    place: [f64; 11],
}

impl Covariance {
    /// Returns the embedded covariance (`kinship.csv`).
    pub fn embedded() -> Covariance {
        static EMBEDDED: LazyLock<Covariance> = LazyLock::new(|| {
            let parts: Vec<CovarianceRow> = embedded!("kinship.csv");
            let value =
                |name: &str| parts.iter().find(|part| part.name == name).map_or(f64::NAN, |part| part.value);
            Covariance {
                shape: value("shape"),
                gpu: value("gpu"),
                width: value("width"),
                stack: value("stack"),
                layout: value("layout"),
                reach: value("reach"),
                noise: value("noise"),
            }
        });
        *EMBEDDED
    }
}

/// A row of `kinship.csv`.
struct CovarianceRow {
    name: String,
    value: f64,
}

impl FromRow for CovarianceRow {
    fn from_row(row: &Row<'_>) -> Result<CovarianceRow, DataError> {
        Ok(CovarianceRow { name: row.string("name")?, value: row.value("value")? })
    }
}

impl Features {
    /// Returns its cells in `anchors.csv`: shape, GPU, precision, software, place.
    #[cfg(feature = "calibrate")]
    pub(crate) fn cells(&self) -> [String; 5] {
        let place = self.place.map(|number| number.to_string()).join(" ");
        [
            format!("{:016x}", self.shape),
            format!("{:016x}", self.gpu),
            self.dtype.to_string(),
            self.stack.to_string(),
            place,
        ]
    }

    /// Returns the features of an estimate's inputs.
    pub fn of(inputs: &Inputs<'_>) -> Features {
        let (layout, batch) = (inputs.layout, inputs.batch);
        let log = |count: u32| libm::log2(f64::from(count.max(1)));
        Features {
            shape: shape(inputs.architecture),
            gpu: hash(inputs.gpu.id.split(':').next().unwrap_or_default().bytes().map(u32::from)),
            dtype: inputs.dtype,
            stack: inputs.options.stack,
            place: [
                // Doubling the GPUs changes a run less than doubling a degree.
                log(layout.gpus()) / 3.0,
                log(layout.tp()),
                log(layout.pp()),
                log(layout.cp()),
                log(layout.ep()),
                log(batch.mbs()),
                log(batch.ga()) / 2.0,
                log(batch.seq_len()),
                log(inputs.architecture.layers) / 2.0,
                f64::from(inputs.options.recompute as u8),
                f64::from(u8::from(inputs.options.fsdp)),
            ],
        }
    }

    /// Whether a run of `inputs` trains the same model, with any number of layers.
    #[cfg(feature = "calibrate")]
    pub(crate) fn has_shape_of(&self, inputs: &Inputs<'_>) -> bool {
        self.shape == shape(inputs.architecture)
    }

    /// Returns the layout in one line, without degrees of 1: `TP 4 · PP 2 · MBS 1`.
    fn layout(&self) -> String {
        let [_, tp, pp, cp, ep, mbs, ..] = self.place.map(|log| libm::round(libm::exp2(log)));
        let mut text = String::new();
        for (name, degree) in [("TP", tp), ("PP", pp), ("CP", cp), ("EP", ep)] {
            if degree > 1.0 {
                text += &format!("{name} {degree} · ");
            }
        }
        let sharding = if self.place[10] > 0.0 { " · FSDP" } else { "" };
        format!("{text}MBS {mbs}{sharding}")
    }

    /// Whether it is the same run. `fp8` of a recipe matches every kind of FP8, because its release chooses
    /// the kind.
    fn is_same_run(&self, other: &Features) -> bool {
        let same_dtype = match (self.dtype, other.dtype) {
            (Dtype::Fp8, any) | (any, Dtype::Fp8) => any.width() == Dtype::Fp8.width(),
            (one, another) => one == another,
        };
        let rest = |features: &Features| (features.shape, features.gpu, features.stack);
        same_dtype && rest(self) == rest(other) && self.place == other.place
    }

    /// Whether it is the same run, perhaps with other software.
    fn is_same_mapping(&self, other: &Features) -> bool {
        let rest = |features: &Features| (features.shape, features.gpu, features.dtype);
        rest(self) == rest(other) && self.place == other.place
    }

    /// Returns the covariance of the model's errors on two runs of one model.
    fn covariance(&self, other: &Features, parts: &Covariance) -> f64 {
        let same_gpu = self.gpu == other.gpu;
        let same_width = self.dtype.width() == other.dtype.width();
        let same_stack = self.stack == other.stack;
        let mut common = parts.shape;
        if same_gpu {
            common += parts.gpu;
        }
        if same_gpu && same_width {
            common += parts.width;
        }
        if same_stack && same_width {
            common += parts.stack;
        }
        if same_gpu && same_width {
            let distance: f64 = self.place.iter().zip(&other.place).map(|(a, b)| (a - b).abs()).sum();
            let stack = if same_stack { 1.0 } else { 0.5 };
            common += parts.layout * libm::exp(-distance / parts.reach) * stack;
        }
        common
    }
}

/// Returns a hash that is the same for architectures that differ only in their number of layers.
fn shape(architecture: &Architecture) -> u64 {
    use crate::architecture::AttentionKind::{Gqa, Mla};
    let attention = match architecture.attention.kind {
        Gqa { kv_heads, head_dim } => [kv_heads, head_dim, 0, 0, 0],
        Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => [q_lora, kv_lora, qk_nope, qk_rope, v_head],
    };
    let mlp = architecture.mlp.as_ref().map_or([0; 2], |mlp| [mlp.ffn, u32::from(mlp.gated)]);
    let moe = architecture
        .moe
        .as_ref()
        .map_or([0; 5], |moe| [moe.experts, moe.top_k, moe.ffn, moe.shared_ffn, moe.latent.unwrap_or(0)]);
    let mamba =
        architecture.mamba.as_ref().map_or([0; 3], |mamba| [mamba.heads, mamba.head_dim, mamba.state]);
    let rest = [architecture.hidden, architecture.vocab, architecture.attention.heads];
    hash(rest.into_iter().chain(attention).chain(mlp).chain(moe).chain(mamba))
}

/// FNV-1a: the same on every machine.
fn hash(parts: impl Iterator<Item = u32>) -> u64 {
    parts.fold(0xcbf2_9ce4_8422_2325, |hash, part| (hash ^ u64::from(part)).wrapping_mul(0x0100_0000_01b3))
}

/// The physical model's error on a measured run.
#[derive(Debug, Clone, PartialEq)]
pub struct Residual {
    /// What was measured, for display.
    pub record: Record,
    /// The properties that decide which runs it corrects.
    pub features: Features,
    /// Logarithm of measured over modelled step time.
    pub log_ratio: f64,
}

/// A row of `anchors.csv`.
struct AnchorRow {
    residual: Residual,
    weight: f64,
}

impl FromRow for AnchorRow {
    fn from_row(row: &Row<'_>) -> Result<AnchorRow, DataError> {
        let hexadecimal = |column: &str| {
            u64::from_str_radix(row.text(column)?, 16)
                .map_err(|_| row.error(format!("{column} is not a hexadecimal number")))
        };
        let mut place = [0.0; 11];
        let mut numbers = row.text("place")?.split(' ');
        for number in &mut place {
            let text = numbers.next().unwrap_or_default();
            *number =
                text.parse().map_err(|_| row.error(format!("“{text}” in column place is not a number")))?;
        }
        Ok(AnchorRow {
            residual: Residual {
                // The place is known when all rows are read.
                record: Record::Embedded(0),
                features: Features {
                    shape: hexadecimal("shape")?,
                    gpu: hexadecimal("gpu")?,
                    dtype: row.value("dtype")?,
                    stack: row.value("stack")?,
                    place,
                },
                log_ratio: row.value("missed")?,
            },
            weight: row.value("pull")?,
        })
    }
}

/// The correction of a prediction by measured runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Correction {
    /// Factor on the physical model's step time.
    pub(crate) factor: f64,
    /// How close the nearest run is.
    pub(crate) kind: EvidenceKind,
    /// How far the prediction can be trusted.
    pub(crate) confidence: Confidence,
}

/// Measured runs that correct predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct Anchors {
    covariance: Covariance,
    /// Sorted by the hash of their shape.
    residuals: Vec<Residual>,
    /// Kriging weight of each residual: the sum of weight × covariance with a scenario is its correction.
    weights: Vec<f64>,
}

impl Anchors {
    /// Computes the weights of measured runs.
    pub fn new(covariance: Covariance, mut residuals: Vec<Residual>) -> Anchors {
        residuals.sort_by_key(|residual| residual.features.shape);
        let mut weights = Vec::with_capacity(residuals.len());
        for group in residuals.chunk_by(|a, b| a.features.shape == b.features.shape) {
            weights.extend(solve(group, &covariance));
        }
        Anchors { covariance, residuals, weights }
    }

    /// Returns the embedded anchors.
    pub fn embedded() -> &'static Anchors {
        static EMBEDDED: LazyLock<Anchors> = LazyLock::new(|| {
            let rows: Vec<AnchorRow> = embedded!("anchors.csv");
            let rows = rows.into_iter().enumerate();
            let (residuals, weights) = rows
                .map(|(place, row)| {
                    (Residual { record: Record::Embedded(place), ..row.residual }, row.weight)
                })
                .unzip();
            Anchors { covariance: Covariance::embedded(), residuals, weights }
        });
        &EMBEDDED
    }

    /// Iterates over the residuals with their weights.
    pub fn iter(&self) -> impl Iterator<Item = (&Residual, f64)> {
        self.residuals.iter().zip(self.weights.iter().copied())
    }

    /// Returns a lower bound of the correction of any layout of the model, GPU, precision and software in `inputs`.
    ///
    /// Only the similarity of layouts varies among them; it is at most that of equal layouts and at least none.
    pub(crate) fn least_correction(&self, inputs: &Inputs<'_>) -> f64 {
        let features = Features::of(inputs);
        let parts = &self.covariance;
        let first = self.residuals.partition_point(|residual| residual.features.shape < features.shape);
        let mut log_correction = 0.0;
        for (residual, weight) in self.residuals.iter().zip(&self.weights).skip(first) {
            let other = &residual.features;
            if other.shape != features.shape {
                break;
            }
            let at_place = |place| {
                let own = Features { place, ..features.clone() };
                other.covariance(&own, parts) * weight
            };
            // At an infinite distance nothing of the layout is shared.
            log_correction += at_place(other.place).min(at_place([f64::INFINITY; 11]));
        }
        // Less than rounding could add.
        libm::exp(log_correction) * (1.0 - 1e-9)
    }

    /// Returns the measurements that correct a prediction of `modelled_s`, and the correction.
    pub fn evidence(&self, inputs: &Inputs<'_>, modelled_s: f64) -> Evidence {
        let mut found: Vec<(f64, &Residual)> = Vec::new();
        let (correction, kind) = self.compare(inputs, |likeness, residual| found.push((likeness, residual)));
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        Evidence { kind, modelled_s, correction, anchors: nearest(&found) }
    }

    /// Returns the correction of a prediction without the measurements behind it, for a search of many layouts.
    pub(crate) fn correction(&self, inputs: &Inputs<'_>) -> Correction {
        let mut is_measured = false;
        let (factor, kind) = self.compare(inputs, |_, _| is_measured = true);
        Correction { factor, kind, confidence: kind.confidence(is_measured) }
    }

    /// Returns the correction of a prediction and its kind. `see` gets each measured run of the model with its likeness.
    fn compare<'a>(
        &'a self,
        inputs: &Inputs<'_>,
        mut see: impl FnMut(f64, &'a Residual),
    ) -> (f64, EvidenceKind) {
        let features = Features::of(inputs);
        let variance = features.covariance(&features, &self.covariance);
        // A GPU whose numbers the user changed was never measured.
        let is_own_gpu = inputs.gpu.id.contains(':');
        let mut log_correction = 0.0;
        let mut kind = EvidenceKind::Modelled;
        let first = self.residuals.partition_point(|residual| residual.features.shape < features.shape);
        for (residual, weight) in self.residuals.iter().zip(&self.weights).skip(first) {
            let other = &residual.features;
            if other.shape != features.shape {
                break;
            }
            let common = other.covariance(&features, &self.covariance);
            let likeness = common / variance;
            log_correction += common * weight;
            if is_own_gpu {
                // The kind stays `Modelled`.
            } else if other.is_same_run(&features) {
                kind = EvidenceKind::Published;
            } else if other.gpu == features.gpu && likeness >= SIMILAR && kind == EvidenceKind::Modelled {
                kind = EvidenceKind::Interpolated;
            }
            see(likeness, residual);
        }
        (libm::exp(log_correction), kind)
    }
}

/// Returns the nearest anchors from residuals in the order of their likeness. Measurements of one mapping with other software
/// are one anchor.
fn nearest(found: &[(f64, &Residual)]) -> Vec<Anchor> {
    let mut listed: Vec<(&Features, Anchor)> = Vec::new();
    for (likeness, residual) in found {
        let record = &residual.record;
        let is_full = listed.len() == LISTED;
        match listed.iter_mut().find(|(features, _)| features.is_same_mapping(&residual.features)) {
            Some((_, anchor)) => anchor.records.push(record.clone()),
            None if is_full => {}
            None => {
                let layout = residual.features.layout();
                let anchor = Anchor { layout, likeness: *likeness, records: vec![record.clone()] };
                listed.push((&residual.features, anchor));
            }
        }
    }
    listed.into_iter().map(|(_, anchor)| anchor).collect()
}

/// Returns the kriging weight of each run of one model: the inverse of their covariance matrix times the
/// residuals, by Cholesky decomposition.
fn solve(group: &[Residual], covariance: &Covariance) -> Vec<f64> {
    let n = group.len();
    let mut lower = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let mut sum = group[i].features.covariance(&group[j].features, covariance);
            if i == j {
                sum += covariance.noise;
            }
            for (left, right) in lower[i][..j].iter().zip(&lower[j][..j]) {
                sum -= left * right;
            }
            // Covariance plus noise is positive definite.
            lower[i][j] = if i == j { libm::sqrt(sum.max(f64::MIN_POSITIVE)) } else { sum / lower[j][j] };
        }
    }
    let mut weights: Vec<f64> = group.iter().map(|residual| residual.log_ratio).collect();
    for i in 0..n {
        for j in 0..i {
            weights[i] -= lower[i][j] * weights[j];
        }
        weights[i] /= lower[i][i];
    }
    for i in (0..n).rev() {
        for j in i + 1..n {
            weights[i] -= lower[j][i] * weights[j];
        }
        weights[i] /= lower[i][i];
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_covariance_is_in_its_file() {
        let Covariance { shape, gpu, width, stack, layout, reach, noise } = Covariance::embedded();
        assert!([shape, gpu, width, stack, layout, reach, noise].iter().all(|value| *value > 0.0));
    }
}
