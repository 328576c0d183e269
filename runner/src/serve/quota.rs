//! Upload quotas per token and day. An upload counts with the bytes that were received or those that it
//! occupies in the store, whichever are more: a small body may decompress to a large log. An upload that is refused after its body
//! arrived counts too, deliberately: it is received, decompressed and read like any other, and a token that sends nothing valid
//! would have no limit but the rate of requests.

use super::Server;
use super::guard::Caller;
use super::problem::Problem;
use axum::http::{StatusCode, header};
use jiff::Timestamp;
use trainplan_shared::units::group_digits;

/// Counts received or stored bytes; refuses them if the token exceeded its quota. The server's owner has none.
pub(super) async fn count(server: &Server, caller: &Caller, bytes: u64) -> Result<(), Problem> {
    let Caller::Token { id, quota_bytes, .. } = caller else { return Ok(()) };
    let quota = quota_bytes.unwrap_or(server.options.limits.max_uploaded_bytes_per_day);
    if server.store.count_upload(id, bytes).await? <= quota {
        return Ok(());
    }
    let quota = group_digits(quota as f64);
    let detail = format!(
        "This token may upload {quota} bytes per day (UTC), and today's are used up. Continue tomorrow, or use another token."
    );
    let day = 24 * 60 * 60;
    let rest = day - Timestamp::now().as_second().rem_euclid(day);
    Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).with(header::RETRY_AFTER, rest))
}

/// Counts the bytes of an upload beyond those that are counted already. It was received and stored, so it is not
/// refused: the token's next upload is.
pub(super) async fn count_more(
    server: &Server,
    caller: &Caller,
    counted: u64,
    bytes: u64,
) -> Result<(), Problem> {
    if let Caller::Token { id, .. } = caller
        && bytes > counted
    {
        server.store.count_upload(id, bytes - counted).await?;
    }
    Ok(())
}
