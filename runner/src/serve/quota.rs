//! Upload quotas per token and day. An upload counts with the bytes that were received or those that it
//! occupies in the store, whichever are more: a small body may decompress to a large log. Each piece of a log is charged before it
//! is stored, so that no token stores more than its quota. An upload that is refused after its body
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
    let Some((token, quota)) = limit(server, caller) else { return Ok(()) };
    if server.store.count_upload(token, bytes).await? <= quota { Ok(()) } else { Err(used_up(quota)) }
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

/// The account of an upload of unknown size, which is charged for each piece before that is stored.
pub(super) struct UploadAccount<'a> {
    server: &'a Server,
    caller: &'a Caller,
    /// The bytes that the token had left when the upload began.
    left: u64,
    charged: u64,
}

impl<'a> UploadAccount<'a> {
    pub(super) async fn open(server: &'a Server, caller: &'a Caller) -> Result<UploadAccount<'a>, Problem> {
        let left = match limit(server, caller) {
            Some((token, quota)) => quota.saturating_sub(server.store.count_upload(token, 0).await?),
            None => u64::MAX,
        };
        Ok(UploadAccount { server, caller, left, charged: 0 })
    }

    /// Refuses to receive more bytes than the token had left when the upload began.
    pub(super) fn afford(&self, bytes: u64) -> Result<(), Problem> {
        match limit(self.server, self.caller) {
            Some((_, quota)) if bytes > self.left => Err(used_up(quota)),
            _ => Ok(()),
        }
    }

    /// Charges the token for this many bytes of the upload in all. Refuses them, and charges nothing more, if they would exceed its
    /// quota, also because of its other uploads.
    pub(super) async fn charge(&mut self, bytes: u64) -> Result<(), Problem> {
        if let Some((token, quota)) = limit(self.server, self.caller)
            && bytes > self.charged
        {
            if !self.server.store.charge_upload(token, bytes - self.charged, quota).await? {
                return Err(used_up(quota));
            }
            self.charged = bytes;
        }
        Ok(())
    }

    /// Counts received bytes that were not charged.
    pub(super) async fn close(self, received: u64) -> Result<(), Problem> {
        count_more(self.server, self.caller, self.charged, received).await
    }
}

/// Returns the id of the caller's token and the bytes that it may upload per day; none for a caller without a limit.
fn limit<'a>(server: &Server, caller: &'a Caller) -> Option<(&'a str, u64)> {
    let Caller::Token { id, quota_bytes, .. } = caller else { return None };
    Some((id.as_str(), quota_bytes.unwrap_or(server.options.limits.max_uploaded_bytes_per_day)))
}

fn used_up(quota: u64) -> Problem {
    let quota = group_digits(quota as f64);
    let detail = format!(
        "This token may upload {quota} bytes per day (UTC), and too few of today's are left. Continue tomorrow, or use another token."
    );
    let day = 24 * 60 * 60;
    let rest = day - Timestamp::now().as_second().rem_euclid(day);
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).with(header::RETRY_AFTER, rest)
}
