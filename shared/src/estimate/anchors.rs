//! Published measurements near a scenario, which correct what the model says.
//!
//! What the model misses of one run it misses of its neighbours too: runs of the same shape have some of it in common,
//! runs of it on the same GPU more, in the same precision, software or layout more still. The correction is the best
//! linear guess from all measured runs of the shape under that assumption (kriging); runs of other shapes say nothing.

use super::Inputs;
use crate::architecture::Architecture;
use crate::catalog::{DataError, FromRow, Row, read};
use crate::options::Stack;
use crate::precision::Dtype;
use serde::Serialize;
use std::sync::LazyLock;

/// What a step time rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Basis {
    /// In a word.
    pub kind: BasisKind,
    /// What the physical model says, s.
    pub modelled_s: f64,
    /// What measurements nearby make of it: the factor on the model's time.
    pub correction: f64,
    /// Those measurements, the nearest first.
    pub anchors: Vec<Anchor>,
}

/// What a step time rests on, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BasisKind {
    /// This very mapping was measured.
    Published,
    /// The same shape was measured on the same GPUs by the same software, in a layout nearby.
    Interpolated,
    /// The physical model, at most corrected by runs of the shape that have less in common.
    Modelled,
}

/// A measurement that a correction rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Anchor {
    /// What was measured, in words.
    pub what: String,
    /// How much it has in common with the scenario, from 0 to 1.
    pub likeness: f64,
}

/// How alike a measured run must be for a prediction to count as interpolated.
const NEAR: f64 = 0.6;

/// How much of what the model misses, as a variance, runs have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kinship {
    /// Runs of the same shape.
    pub shape: f64,
    /// On the same GPU besides.
    pub gpu: f64,
    /// In the same width of numbers besides.
    pub width: f64,
    /// By the same software besides.
    pub stack: f64,
    /// In a layout nearby besides.
    pub layout: f64,
    /// How far that reaches, in doublings of degrees and batch.
    pub reach: f64,
    /// What a run has in common with none, not even with itself repeated.
    pub noise: f64,
}

/// What a run has that others may have too.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    shape: u64,
    gpu: u64,
    dtype: Dtype,
    stack: Stack,
    /// Logarithms to base 2 of GPUs, degrees, batch, sequence and layers; recomputation and sharding.
    place: [f64; 11],
}

impl Kinship {
    /// What this program carries.
    pub fn embedded() -> Kinship {
        struct Value(f64);
        impl FromRow for Value {
            fn from_row(row: &Row<'_>) -> Result<Value, DataError> {
                row.value("value").map(Value)
            }
        }
        #[expect(
            clippy::expect_used,
            reason = "the file is fixed when this is built, and every test reads it"
        )]
        let values: Vec<Value> =
            read("kinship.csv", include_str!("../../data/kinship.csv")).expect("the kinship is well formed");
        let at = |index: usize| values.get(index).map_or(0.0, |value| value.0);
        Kinship {
            shape: at(0),
            gpu: at(1),
            width: at(2),
            stack: at(3),
            layout: at(4),
            reach: at(5),
            noise: at(6),
        }
    }
}

impl Features {
    /// The cells of the data file of anchors: shape, GPU, precision, software, place.
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

    /// Of an estimate's inputs.
    pub fn of(inputs: &Inputs<'_>) -> Features {
        let (layout, batch) = (inputs.layout, inputs.batch);
        let log = |count: u32| libm::log2(f64::from(count.max(1)));
        Features {
            shape: shape(inputs.architecture),
            gpu: hash(inputs.gpu.id.split(':').next().unwrap_or_default().bytes().map(u32::from)),
            dtype: inputs.dtype,
            stack: inputs.options.stack,
            place: [
                // Thousands of GPUs differ less from each other than a few from one another.
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

    /// Whether a run of `inputs` has the same shape.
    #[cfg(feature = "calibrate")]
    pub(crate) fn is_alike(&self, inputs: &Inputs<'_>) -> bool {
        self.shape == shape(inputs.architecture)
    }

    /// Whether it is the same run. A recipe's own FP8 is whichever its release has.
    fn is_the_same(&self, other: &Features) -> bool {
        let alike = match (self.dtype, other.dtype) {
            (Dtype::Fp8, any) | (any, Dtype::Fp8) => any.width() == Dtype::Fp8.width(),
            (one, another) => one == another,
        };
        let rest = |features: &Features| (features.shape, features.gpu, features.stack);
        alike && rest(self) == rest(other) && self.place == other.place
    }

    /// What two runs of the same shape have in common of what the model misses, as a variance.
    fn in_common(&self, other: &Features, kinship: &Kinship) -> f64 {
        let same_gpu = self.gpu == other.gpu;
        let same_width = self.dtype.width() == other.dtype.width();
        let same_stack = self.stack == other.stack;
        let mut common = kinship.shape;
        if same_gpu {
            common += kinship.gpu;
        }
        if same_gpu && same_width {
            common += kinship.width;
        }
        if same_stack && same_width {
            common += kinship.stack;
        }
        if same_gpu && same_width {
            let far: f64 = self.place.iter().zip(&other.place).map(|(a, b)| (a - b).abs()).sum();
            let stack = if same_stack { 1.0 } else { 0.5 };
            common += kinship.layout * libm::exp(-far / kinship.reach) * stack;
        }
        common
    }
}

/// A number that architectures share if they differ in nothing but their count of layers.
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

/// A measured run, as an anchor.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// What was measured, in words.
    pub what: String,
    /// What it has that others may have too.
    pub features: Features,
    /// The logarithm of measured over modelled.
    pub missed: f64,
}

/// An anchor as its data file holds it.
struct Stored {
    known: Known,
    pull: f64,
}

impl FromRow for Stored {
    fn from_row(row: &Row<'_>) -> Result<Stored, DataError> {
        let hexadecimal = |column: &str| {
            u64::from_str_radix(row.text(column)?, 16)
                .map_err(|_| row.error(format!("{column} is no hexadecimal number")))
        };
        let mut place = [0.0; 11];
        let mut numbers = row.text("place")?.split(' ');
        for number in &mut place {
            let text = numbers.next().unwrap_or_default();
            *number =
                text.parse().map_err(|_| row.error(format!("“{text}” in column place can't be read")))?;
        }
        let choice = |column: &str, problem: crate::problem::Problem| {
            row.error(format!("{column}: {}", problem.message))
        };
        Ok(Stored {
            known: Known {
                what: row.string("what")?,
                features: Features {
                    shape: hexadecimal("shape")?,
                    gpu: hexadecimal("gpu")?,
                    dtype: row.text("dtype")?.parse().map_err(|problem| choice("dtype", problem))?,
                    stack: row.text("stack")?.parse().map_err(|problem| choice("stack", problem))?,
                    place,
                },
                missed: row.value("missed")?,
            },
            pull: row.value("pull")?,
        })
    }
}

/// Measurements that can correct a prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Anchors {
    kinship: Kinship,
    known: Vec<Known>,
    /// What each counts, so that their sum by what they have in common with a scenario is its correction.
    pulls: Vec<f64>,
}

impl Anchors {
    /// Anchors from measured runs.
    pub fn new(kinship: Kinship, mut known: Vec<Known>) -> Anchors {
        known.sort_by_key(|known| known.features.shape);
        let mut pulls = Vec::with_capacity(known.len());
        for group in known.chunk_by(|a, b| a.features.shape == b.features.shape) {
            pulls.extend(solve(group, &kinship));
        }
        Anchors { kinship, known, pulls }
    }

    /// Those that this program carries.
    pub fn embedded() -> &'static Anchors {
        static EMBEDDED: LazyLock<Anchors> = LazyLock::new(Anchors::read);
        &EMBEDDED
    }

    fn read() -> Anchors {
        #[expect(
            clippy::expect_used,
            reason = "the file is fixed when this is built, and every test reads it"
        )]
        let rows: Vec<Stored> =
            read("anchors.csv", include_str!("../../data/anchors.csv")).expect("the anchors are well formed");
        let (known, pulls) = rows.into_iter().map(|row| (row.known, row.pull)).unzip();
        Anchors { kinship: Kinship::embedded(), known, pulls }
    }

    /// Each anchor, with what it counts.
    pub fn iter(&self) -> impl Iterator<Item = (&Known, f64)> {
        self.known.iter().zip(self.pulls.iter().copied())
    }

    /// What a prediction of `modelled_s` rests on.
    pub fn basis(&self, inputs: &Inputs<'_>, modelled_s: f64) -> Basis {
        let features = Features::of(inputs);
        let itself = features.in_common(&features, &self.kinship);
        // What was measured on a GPU says less of one whose numbers its user changed.
        let own = inputs.gpu.id.contains(':');
        let mut missed = 0.0;
        let mut kind = BasisKind::Modelled;
        let mut near: Vec<(f64, &Known)> = Vec::new();
        let first = self.known.partition_point(|known| known.features.shape < features.shape);
        for (known, pull) in self.known.iter().zip(&self.pulls).skip(first) {
            if known.features.shape != features.shape {
                break;
            }
            let common = known.features.in_common(&features, &self.kinship);
            let likeness = common / itself;
            missed += common * pull;
            if own {
                // The kind stays.
            } else if known.features.is_the_same(&features) {
                kind = BasisKind::Published;
            } else if known.features.gpu == features.gpu && likeness >= NEAR && kind == BasisKind::Modelled {
                kind = BasisKind::Interpolated;
            }
            near.push((likeness, known));
        }
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        let anchors =
            near.into_iter().take(5).map(|(likeness, known)| Anchor { what: known.what.clone(), likeness });
        Basis { kind, modelled_s, correction: libm::exp(missed), anchors: anchors.collect() }
    }
}

/// What each run of a shape counts: the inverse of what they have in common, times what the model misses of them.
fn solve(group: &[Known], kinship: &Kinship) -> Vec<f64> {
    let n = group.len();
    let mut lower = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let mut sum = group[i].features.in_common(&group[j].features, kinship);
            if i == j {
                sum += kinship.noise;
            }
            for (left, right) in lower[i][..j].iter().zip(&lower[j][..j]) {
                sum -= left * right;
            }
            // A sum of covariances and noise is positive definite.
            lower[i][j] = if i == j { libm::sqrt(sum.max(f64::MIN_POSITIVE)) } else { sum / lower[j][j] };
        }
    }
    let mut pulls: Vec<f64> = group.iter().map(|known| known.missed).collect();
    for i in 0..n {
        for j in 0..i {
            pulls[i] -= lower[i][j] * pulls[j];
        }
        pulls[i] /= lower[i][i];
    }
    for i in (0..n).rev() {
        for j in i + 1..n {
            pulls[i] -= lower[j][i] * pulls[j];
        }
        pulls[i] /= lower[i][i];
    }
    pulls
}
