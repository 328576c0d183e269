//! Error responses (RFC 9457).

use crate::store::{BlobError, StoreError};
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::fmt::Display;
use std::time::Duration;
use trainplan_shared::api::ProblemDetails;

/// An error response, with any header that belongs to it.
#[derive(Debug)]
pub(crate) struct Problem {
    details: ProblemDetails,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        let title = status.canonical_reason().unwrap_or("Error").to_owned();
        let details = ProblemDetails { title, status: status.as_u16(), detail: detail.into() };
        Problem { details, header: None }
    }

    /// Returns 401: the request needs a valid token.
    pub(super) fn unauthorized(detail: &str) -> Problem {
        let problem = Problem::new(StatusCode::UNAUTHORIZED, detail);
        problem.with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// Returns 429: the caller exceeded its request rate.
    pub(super) fn too_often(wait: Duration) -> Problem {
        // Rounded up, so that the caller does not retry too early.
        let seconds = wait.as_secs() + 1;
        let detail = format!("Too many requests. Try again in {seconds} s.");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).with(header::RETRY_AFTER, seconds)
    }

    /// Logs an error of the server and returns 500 without its details.
    pub(super) fn broken(error: impl Display) -> Problem {
        tracing::error!("{error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The server failed. Its output has the reason.")
    }

    /// Returns 503 without the reason, which may contain paths and addresses.
    pub(super) fn out_of_reach() -> Problem {
        let detail = "The server can't reach its database or its logs. Try again in a few seconds.";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with(header::RETRY_AFTER, 5)
    }

    /// Returns the same problem with a header.
    pub(super) fn with(self, name: HeaderName, value: impl Into<HeaderValue>) -> Problem {
        Problem { header: Some((name, value.into())), ..self }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match &error {
            StoreError::Conflict { .. } | StoreError::Carried { .. } => {
                Problem::new(StatusCode::CONFLICT, error.to_string())
            }
            StoreError::Deleted { id, .. } => {
                let how = format!(
                    "To let it be uploaded again, an administrator sends POST /api/v1/runs/{id}/restore."
                );
                Problem::new(StatusCode::GONE, format!("{error} {how}"))
            }
            StoreError::Invalid(_) | StoreError::Blob(BlobError::OtherLog { .. } | BlobError::NoHash(_)) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
            }
            StoreError::BadLog { .. } | StoreError::Damaged { .. } | StoreError::DamagedScore { .. } => {
                tracing::error!("{error}");
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
            }
            StoreError::Full { .. } | StoreError::Blob(BlobError::Full { .. }) => {
                tracing::error!("{error}");
                let detail = "The server's disk is full. Tell its administrator, and try again later.";
                Problem::new(StatusCode::INSUFFICIENT_STORAGE, detail).with(header::RETRY_AFTER, 60)
            }
            StoreError::ReadOnly { .. } => {
                tracing::error!("{error}");
                let detail = "The server's database is read-only at the moment, so nothing can be stored. Reading works. \
                    Try again in a few seconds.";
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with(header::RETRY_AFTER, 5)
            }
            // Clients that send the same log at the same time get here, and find it complete when they ask again.
            StoreError::Blob(BlobError::PiecesGone) => {
                tracing::debug!("{error}");
                let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
                problem.with(header::RETRY_AFTER, 1)
            }
            StoreError::Locked { .. }
            | StoreError::Gone { .. }
            | StoreError::Refused { .. }
            | StoreError::Exhausted { .. }
            | StoreError::Blob(_) => {
                tracing::error!("{error}");
                Problem::out_of_reach()
            }
            _ => Problem::broken(error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.details.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(header::CONTENT_TYPE, "application/problem+json"), (header::CACHE_CONTROL, "no-store")];
        (status, kind, self.header.map(|header| [header]), Json(self.details)).into_response()
    }
}
