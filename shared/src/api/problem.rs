//! Errors.

use serde::{Deserialize, Serialize};

/// An error (RFC 9457, `application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProblemDetails {
    /// The HTTP status in words.
    pub title: String,
    /// The HTTP status code.
    pub status: u16,
    /// What is wrong, and what to do.
    pub detail: String,
}
