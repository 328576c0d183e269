//! Links that let others see runs.

use super::runs::segment;
use super::server;
use crate::message::{Answer, Share, Trouble};
use serde::Deserialize;
use serde_json::json;
use trainplan_shared::units::minute;

#[derive(Deserialize)]
struct Shares {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    id: String,
    runs: Vec<String>,
    expires_at: String,
}

#[derive(Deserialize)]
struct Me {
    #[serde(default)]
    runs: Vec<String>,
    until: String,
}

#[derive(Deserialize)]
struct New {
    id: String,
    #[serde(alias = "token")]
    secret: String,
}

/// What the link that is shown to the server opens.
pub(super) async fn opened() -> Result<Share, Trouble> {
    let Me { runs, until } = server::get("/me").await?;
    Ok(Share { runs: runs.len(), expires_at: minute(&until), ..Share::default() })
}

pub(super) async fn list() -> Result<Vec<Share>, Trouble> {
    let Shares { items } = server::get("/shares").await?;
    let share =
        |Item { id, runs, expires_at }: Item| Share { id, runs: runs.len(), expires_at: minute(&expires_at) };
    Ok(items.into_iter().map(share).collect())
}

pub(super) async fn create(ids: Vec<String>, days: u32) -> Result<Answer, Trouble> {
    let New { id, secret } =
        server::create("/shares", &json!({ "ids": ids, "expires_in_days": days })).await?;
    Ok(Answer::Shared { id, secret })
}

pub(super) async fn revoke(id: &str) -> Result<Answer, Trouble> {
    server::delete(&format!("/shares/{}", segment(id))).await.map(|()| Answer::Done)
}
