//! What went wrong, as programs are told of it: RFC 9457.

use crate::store::{BlobError, StoreError};
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::fmt::Display;
use std::time::Duration;
use trainplan_shared::api::ProblemDetails;

/// An error as a response: RFC 9457, and any header that belongs to it.
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

    /// Nobody that we know.
    pub(super) fn unknown(detail: &str) -> Problem {
        let header = (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Problem { header: Some(header), ..Problem::new(StatusCode::UNAUTHORIZED, detail) }
    }

    /// Asked too often.
    pub(super) fn too_often(wait: Duration) -> Problem {
        let seconds = wait.as_secs() + 1;
        let detail = format!("that is more often than this server answers: ask again in {seconds} s");
        let header = (header::RETRY_AFTER, HeaderValue::from(seconds));
        Problem { header: Some(header), ..Problem::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    /// What went wrong here, and is nobody's business but the server's keeper's.
    pub(super) fn broken(error: impl Display) -> Problem {
        tracing::error!("{error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed; its own output says why")
    }

    /// The store is out of reach. Whoever keeps the server is told why elsewhere; whoever asks needs no paths and addresses.
    pub(super) fn out_of_reach() -> Problem {
        let detail = "the store does not answer: try again in a while";
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        problem.with(header::RETRY_AFTER, HeaderValue::from(5))
    }

    /// With another header.
    pub(super) fn with(self, name: HeaderName, value: impl Into<HeaderValue>) -> Problem {
        Problem { header: Some((name, value.into())), ..self }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let status = match &error {
            StoreError::Conflict { .. } | StoreError::Carried { .. } => StatusCode::CONFLICT,
            StoreError::Blob(BlobError::OtherLog { .. } | BlobError::NoHash(_)) => {
                return Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string());
            }
            StoreError::Locked { .. } | StoreError::Gone { .. } | StoreError::Blob(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status == StatusCode::CONFLICT {
            return Problem::new(status, error.to_string());
        }
        if status != StatusCode::SERVICE_UNAVAILABLE {
            return Problem::broken(error);
        }
        tracing::error!("{error}");
        Problem::out_of_reach()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.details.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(header::CONTENT_TYPE, "application/problem+json"), (header::CACHE_CONTROL, "no-store")];
        (status, kind, self.header.map(|header| [header]), Json(self.details)).into_response()
    }
}
