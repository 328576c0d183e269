//! Published measurements.

use super::{Collection, RecipeId, Release};
use crate::data_file::{DataError, FromRow, Row};
use crate::precision::Dtype;
use crate::units::parse_decimal;
use std::str::FromStr;

/// A published measurement. Numbers that a document prints are kept as printed, since the number of digits says
/// how far they can be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// The document's release.
    pub release: Release,
    /// The model; empty where an example names none.
    pub model: String,
    /// Precision, if named.
    pub precision: Option<Dtype>,
    /// GPU type, if named.
    pub gpu: String,
    /// GPUs in all, if named.
    pub gpus: Option<u32>,
    /// Seconds per step.
    pub step_time_s: f64,
    /// Tokens per second, as printed.
    pub printed_tokens_per_s: String,
    /// MFU in percent, as printed.
    pub printed_mfu_pct: String,
    /// Days to train 10¹² tokens, as printed.
    pub printed_days_1t: String,
    /// Whether it is a measurement or an example.
    pub kind: BaselineKind,
    /// Tokens of a sequence.
    pub seq_len: u32,
    /// Global batch size.
    pub gbs: u32,
    /// The document's family.
    pub family: String,
    /// The line of its document.
    pub line: u32,
    /// The document that has the number; empty if it is the release's own.
    published_in: String,
    /// The container in which that document measured it, such as `nemo:26.04.01`; empty if it is that of the release.
    pub container: String,
}

/// Where a number stands in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaselineKind {
    /// In a performance table: a measurement.
    Table,
    /// In a worked example or a sample line.
    Example,
}

/// A published result that runs of a recipe are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// The result.
    pub baseline: &'static Baseline,
    /// The GPU count at which it was measured.
    pub gpus: u32,
    /// How near it is.
    pub class: ReferenceClass,
}

/// How near a published result is to a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceClass {
    /// It was measured with this recipe.
    Exact,
    /// It was measured with the same layout at another GPU count: if communication costs the same, a step takes as long.
    WeakScaled,
}

impl FromRow for Baseline {
    fn from_row(row: &Row<'_>) -> Result<Baseline, DataError> {
        Ok(Baseline {
            release: row.value("release")?,
            model: row.string("model")?,
            precision: row.optional("precision")?,
            gpu: row.string("gpu")?,
            gpus: row.optional("gpus")?,
            step_time_s: row.number("step_time_s")?,
            printed_tokens_per_s: row.string("tokens_per_s")?,
            printed_mfu_pct: row.string("mfu_pct")?,
            printed_days_1t: row.string("days_1t")?,
            kind: row.value("kind")?,
            seq_len: row.value("seq_len")?,
            gbs: row.value("gbs")?,
            family: row.string("family")?,
            line: row.value("line")?,
            published_in: row.string("published_in")?,
            container: row.string("container")?,
        })
    }
}

/// A recipe that a table of a document measures.
pub(super) struct MeasuredRecipe {
    release: Release,
    model: String,
    precision: Dtype,
    gpu: String,
    gpus: u32,
}

impl FromRow for MeasuredRecipe {
    fn from_row(row: &Row<'_>) -> Result<MeasuredRecipe, DataError> {
        Ok(MeasuredRecipe {
            release: row.value("release")?,
            model: row.string("model")?,
            precision: row.value("precision")?,
            gpu: row.string("gpu")?,
            gpus: row.value("gpus")?,
        })
    }
}

impl MeasuredRecipe {
    /// Whether it is that recipe. No document measured a strong series.
    pub(super) fn is(&self, id: &RecipeId) -> bool {
        !id.strong
            && id.variant.is_none()
            && self.release == id.release.described_as()
            && self.model == id.model
            && self.gpu == id.gpu
            && self.precision == id.dtype
            && self.gpus == id.gpus
    }
}

impl FromStr for BaselineKind {
    type Err = ();

    fn from_str(text: &str) -> Result<BaselineKind, ()> {
        match text {
            "table" => Ok(BaselineKind::Table),
            "example" => Ok(BaselineKind::Example),
            _ => Err(()),
        }
    }
}

impl Baseline {
    /// Whether it measures that recipe. No document measured a strong series.
    pub(super) fn is_of(&self, id: &RecipeId) -> bool {
        self.kind == BaselineKind::Table
            && !id.strong
            && id.variant.is_none()
            && self.release == id.release.described_as()
            && self.model == id.model
            && self.gpu == id.gpu
            && self.precision == Some(id.dtype)
            && self.gpus == Some(id.gpus)
    }

    /// Returns who published it, with the release: `Megatron-Bridge 26.04.01`. For some recipes of the collection, Megatron-Bridge
    /// published the number, and its release has another name.
    pub fn publication(&self) -> String {
        match self.published_in.as_str() {
            "" => {
                let (collection, release) = self.release.software().measured;
                Collection::with_release(collection, release)
            }
            document => document.to_string(),
        }
    }

    /// MFU as printed, a fraction.
    pub fn printed_mfu(&self) -> Option<f64> {
        parse_decimal(&self.printed_mfu_pct).map(|percent| percent / 100.0)
    }

    /// Days to train 10¹² tokens, as printed.
    pub fn printed_days(&self) -> Option<f64> {
        parse_decimal(&self.printed_days_1t)
    }

    /// Tokens per second, as printed.
    pub fn printed_tokens(&self) -> Option<f64> {
        parse_decimal(&self.printed_tokens_per_s)
    }
}
