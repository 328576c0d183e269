//! Raw logs: uploaded in pieces, read as lines.

use serde::{Deserialize, Serialize};

super::ids! {
    /// What is wrong with a stored raw log or result. Uploading it again replaces it.
    LogFault {
        /// It is not where it was stored.
        Missing "missing",
        /// Its content is not what was uploaded.
        Damaged "damaged",
    }
}

/// How much of a raw log the server has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LogProgress {
    /// The number of raw bytes that arrived: the next piece starts here. 0 where the log was complete before.
    pub offset: u64,
    /// Whether the log is complete and matches the result's SHA-256.
    pub complete: bool,
}

/// The raw log that belongs to an uploaded result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExpectedLog {
    /// The log's SHA-256, in hexadecimal.
    pub sha256: String,
    /// How much of it the server has.
    #[serde(flatten)]
    pub progress: LogProgress,
}

/// A line of a raw log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LogLine {
    /// The line's number, from 1.
    #[serde(rename = "line")]
    pub number: u64,
    /// The line's text; the server cuts it after 4096 bytes.
    pub text: String,
    /// Whether the text was cut. Left out if it was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// Some lines of a raw log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LogLines {
    /// The lines, in order.
    #[serde(rename = "items")]
    pub lines: Vec<LogLine>,
    /// The line number to continue from; null at the end of the log.
    pub next: Option<u64>,
    /// The number of lines in the log; null where the end was not reached.
    pub total: Option<u64>,
}
