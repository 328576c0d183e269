//! Files to save, and their formats.

use serde::{Deserialize, Serialize};

/// The format of a saved table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TableFormat {
    Csv,
    Json,
}

impl TableFormat {
    /// Returns the extension of the file's name.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            TableFormat::Csv => "csv",
            TableFormat::Json => "json",
        }
    }
}

/// The formats of a comparison's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ComparisonFormat {
    Csv,
    Json,
    Markdown,
    Html,
}

impl ComparisonFormat {
    /// Returns the extension of the file's name.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            ComparisonFormat::Csv => "csv",
            ComparisonFormat::Json => "json",
            ComparisonFormat::Markdown => "md",
            ComparisonFormat::Html => "html",
        }
    }
}

/// A file to save.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) name: String,
    pub(crate) text: String,
}
