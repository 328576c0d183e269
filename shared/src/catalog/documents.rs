//! The documents that publish recipes, and how each counts FLOPs and names peaks.

use super::Release;
use crate::data_file::{DataError, FromRow, Row};
use crate::precision::Dtype;
use std::str::FromStr;

/// A document that publishes recipes.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The release.
    pub release: Release,
    /// The beginning of the ids of its models.
    pub family: String,
    /// The title.
    pub title: String,
    /// The source.
    pub source: String,
}

/// The formula that a document counts model FLOPs by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formula {
    /// Multi-head attention, and an MLP of four times the hidden width.
    Mha,
    /// Grouped-query attention, and the actual FFN width.
    Gqa,
    /// Attention, MLP and Mamba-2 in chunks.
    Hybrid,
}

/// How a document counts a model's FLOPs.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentFlops {
    /// The document's release.
    pub release: Release,
    /// The model.
    pub model: String,
    /// Its formula.
    pub formula: Formula,
    /// The query groups that it counts, if they differ from the model's.
    pub query_groups: Option<u32>,
    /// The rounded number behind its MFU, if it differs from the formula's.
    pub model_flops: Option<f64>,
    /// Whether the document prints that number; otherwise its results imply it.
    pub stated: bool,
    /// Why the document's number and the formula's differ.
    pub reason: String,
}

/// The peak that a document's MFU divides by.
#[derive(Debug, Clone, PartialEq)]
pub struct Peak {
    /// The document's release.
    pub release: Release,
    /// The document's family.
    pub family: String,
    /// GPU type.
    pub gpu: String,
    /// Precision.
    pub precision: Dtype,
    /// The stated peak, TFLOPS.
    pub stated_tflops: f64,
    /// The peak that its results imply, TFLOPS.
    pub used_tflops: f64,
    /// Why the two differ; empty if they are equal.
    pub reason: String,
}

impl Document {
    /// Returns its address; none if the source doesn't name a repository, a tag and a path.
    pub fn url(&self) -> Option<String> {
        let mut words = self.source.split(' ');
        let (repository, tag, path) = (words.next()?, words.next()?, words.next()?);
        Some(format!("https://github.com/{repository}/blob/{tag}/{path}"))
    }
}

impl FromRow for Document {
    fn from_row(row: &Row<'_>) -> Result<Document, DataError> {
        Ok(Document {
            release: row.value("release")?,
            family: row.string("family")?,
            title: row.string("title")?,
            source: row.string("source")?,
        })
    }
}

impl FromStr for Formula {
    type Err = ();

    fn from_str(text: &str) -> Result<Formula, ()> {
        match text {
            "mha" => Ok(Formula::Mha),
            "gqa" => Ok(Formula::Gqa),
            "hybrid" => Ok(Formula::Hybrid),
            _ => Err(()),
        }
    }
}

impl FromRow for DocumentFlops {
    fn from_row(row: &Row<'_>) -> Result<DocumentFlops, DataError> {
        Ok(DocumentFlops {
            release: row.value("release")?,
            model: row.string("model")?,
            formula: row.value("formula")?,
            query_groups: row.optional("query_groups")?,
            model_flops: row.optional_number("model_flops")?,
            stated: row.yes("stated")?,
            reason: row.string("reason")?,
        })
    }
}

impl FromRow for Peak {
    fn from_row(row: &Row<'_>) -> Result<Peak, DataError> {
        Ok(Peak {
            release: row.value("release")?,
            family: row.string("family")?,
            gpu: row.string("gpu")?,
            precision: row.value("precision")?,
            stated_tflops: row.number("stated_tflops")?,
            used_tflops: row.number("used_tflops")?,
            reason: row.string("reason")?,
        })
    }
}
