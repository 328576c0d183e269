//! How much one token may upload in a day.

use super::Server;
use super::guard::Caller;
use super::problem::Problem;
use axum::http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;

/// Counts bytes that came, and refuses them where they are too many. Who started the server has no quota.
pub(super) async fn count(server: &Server, by: &Caller, bytes: u64) -> Result<(), Problem> {
    let Caller::Token { id, quota_bytes, .. } = by else { return Ok(()) };
    let most = quota_bytes.unwrap_or(server.options.limits.max_uploaded_bytes_per_day);
    if server.store.count_upload(id, bytes).await? <= most {
        return Ok(());
    }
    let detail =
        format!("this token uploads at most {most} bytes a day (UTC): go on tomorrow, or with another token");
    let day = 24 * 60 * 60;
    let rest = day - Timestamp::now().as_second().rem_euclid(day);
    Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
        .with(header::RETRY_AFTER, HeaderValue::from(rest)))
}
