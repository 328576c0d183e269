//! Share links.

use super::runs::segment;
use super::server;
use crate::message::{Answer, RequestError, Share};
use trainplan_shared::api::{CallerAccess, NewShareLink, ShareLink, ShareLinkRequest, ShareLinks};
use trainplan_shared::units::minute;

/// Returns the share link that the guest uses.
pub(super) async fn opened() -> Result<Share, RequestError> {
    let CallerAccess { runs, until, .. } = server::get("/me").await?;
    let expires_at = minute(&until.unwrap_or_default());
    Ok(Share { runs: runs.map_or(0, |runs| runs.len()), expires_at, ..Share::default() })
}

pub(super) async fn list() -> Result<Vec<Share>, RequestError> {
    let ShareLinks { items } = server::get("/shares").await?;
    let share = |ShareLink { id, runs, expires_at, .. }: ShareLink| Share {
        id,
        runs: runs.len(),
        expires_at: minute(&expires_at),
    };
    Ok(items.into_iter().map(share).collect())
}

pub(super) async fn create(ids: Vec<String>, days: u32) -> Result<Answer, RequestError> {
    let wanted = ShareLinkRequest { ids, expires_in_days: days };
    let NewShareLink { secret, share } = server::create("/shares", &wanted).await?;
    Ok(Answer::Shared { id: share.id, secret })
}

pub(super) async fn revoke(id: &str) -> Result<Answer, RequestError> {
    server::delete(&format!("/shares/{}", segment(id))).await.map(|()| Answer::Done)
}
