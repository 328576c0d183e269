//! Tokens, share links, and the caller's own rights.

use super::super::Server;
use super::super::guard::Caller;
use super::super::problem::Problem;
use super::query::repeated;
use super::{NEVER_KEPT, id, json, no_run, not_found, unprocessable};
use crate::store::{Revocation, Store};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::SignedDuration;
use trainplan_shared::api::{
    CallerAccess, NewShareLink, NewToken, ShareLinkRequest, ShareLinks, TokenRequest, TokenScope, Tokens,
    is_token_name,
};
use uuid::Uuid;

/// The longest lifetime of a token that expires: 100 years.
const LONGEST_TOKEN_DAYS: u32 = 36_500;

/// The longest lifetime of a share link, so that forgotten links expire.
const LONGEST_SHARE_DAYS: u32 = 366;

/// The most active share links of one creator.
const MOST_SHARES: u64 = 1000;

/// Read your own rights
#[utoipa::path(get, path = "/me", tag = "access", security(()), responses((status = 200, body = CallerAccess)))]
pub(super) async fn me(Extension(caller): Extension<Caller>) -> Response {
    let scope = TokenScope::ALL.iter().rev().copied().find(|scope| caller.may(*scope).is_ok());
    let (runs, until) = match &caller {
        Caller::Guest { runs, until } => {
            (Some(runs.iter().map(Uuid::to_string).collect()), Some(until.clone()))
        }
        _ => (None, None),
    };
    let name = match &caller {
        Caller::Token { name, .. } => name.as_str(),
        _ => caller.name(),
    };
    (NEVER_KEPT, Json(CallerAccess { name: name.to_owned(), scope, runs, until })).into_response()
}

/// List tokens, without their secrets
///
/// Requires scope admin.
#[utoipa::path(
    get, path = "/tokens", tag = "access", security(("token" = ["admin"])),
    responses((status = 200, body = Tokens))
)]
pub(super) async fn tokens(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Admin)?;
    Ok((NEVER_KEPT, Json(Tokens { items: server.store.tokens().await? })).into_response())
}

/// Create a token
///
/// Requires scope admin. The response contains the secret, which can't be read again.
#[utoipa::path(
    post, path = "/tokens", tag = "access", security(("token" = ["admin"])),
    request_body = TokenRequest, responses((status = 201, body = NewToken))
)]
pub(super) async fn create_token(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Admin)?;
    let TokenRequest { name, scope, expires_in_days, quota_bytes } = json(&server, &headers, body).await?;
    let name = name.trim();
    if !is_token_name(name) {
        return Err(unprocessable("name must have 1 to 100 printable characters, such as \"nightly\"."));
    }
    if let Some(wanted) = expires_in_days {
        bound_days(wanted, LONGEST_TOKEN_DAYS)?;
    }
    if let Some(wanted) = quota_bytes.filter(|wanted| *wanted > Store::LARGEST_QUOTA) {
        let most = Store::LARGEST_QUOTA;
        return Err(unprocessable(&format!("quota_bytes is {wanted}, but must be at most {most}.")));
    }
    let token = server.store.create_token(name, scope, expires_in_days.map(days), quota_bytes).await?;
    tracing::info!("token {} was created by {}", token.token.id, caller.name());
    Ok((StatusCode::CREATED, NEVER_KEPT, Json(token)).into_response())
}

/// Revoke a token
///
/// Requires scope admin. The share links that the token created stop working too. If several tokens have the name, the answer is
/// 409.
#[utoipa::path(
    delete, path = "/tokens/{id}", tag = "access", security(("token" = ["admin"])),
    params(("id" = String, Path, description = "The token's id or name")),
    responses((status = 204, description = "The token is revoked"))
)]
pub(super) async fn revoke_token(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Admin)?;
    match server.store.revoke_token(&id).await? {
        Revocation::Revoked(token) => {
            tracing::info!("token {} was revoked by {}", token.id, caller.name());
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Revocation::Unknown => {
            let detail = format!("No token has the id or name {id}. GET /api/v1/tokens lists all.");
            Err(not_found(&detail))
        }
        Revocation::Ambiguous => {
            let detail = format!(
                "Several tokens have the name {id}. Give the id of the one to revoke; GET /api/v1/tokens lists all."
            );
            Err(Problem::new(StatusCode::CONFLICT, detail))
        }
    }
}

/// List active share links
///
/// Returns the links that your token created; with scope admin, all links.
#[utoipa::path(
    get, path = "/shares", tag = "access", security(("token" = ["read"])),
    responses((status = 200, body = ShareLinks))
)]
pub(super) async fn shares(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    may_share(&caller)?;
    let items = server.store.shares(creator(&caller).as_deref()).await?;
    Ok((NEVER_KEPT, Json(ShareLinks { items })).into_response())
}

/// Create a share link
///
/// Anyone who has the link can view its runs and their logs, and nothing else, until it expires or is
/// revoked. The response contains the secret, which can't be read again.
#[utoipa::path(
    post, path = "/shares", tag = "access", security(("token" = ["read"])),
    request_body = ShareLinkRequest, responses((status = 201, body = NewShareLink))
)]
pub(super) async fn create_share(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    may_share(&caller)?;
    let wanted: ShareLinkRequest = json(&server, &headers, body).await?;
    let (days_wanted, most) = (wanted.expires_in_days, server.options.limits.max_compared);
    bound_days(days_wanted, LONGEST_SHARE_DAYS)?;
    if wanted.ids.is_empty() || wanted.ids.len() > most {
        let detail = format!("ids has {} runs, but a share link shows 1 to {most}.", wanted.ids.len());
        return Err(unprocessable(&detail));
    }
    let runs = wanted.ids.iter().map(|text| id(text)).collect::<Result<Vec<Uuid>, Problem>>()?;
    if let Some(twice) = repeated(&runs) {
        return Err(unprocessable(&format!("ids names {twice} twice. Name each run once.")));
    }
    for run in &runs {
        server.store.summary(*run).await?.ok_or_else(|| no_run(&run.to_string()))?;
    }
    let share = server.store.create_share(&runs, &caller.creator(), days(days_wanted), MOST_SHARES).await?;
    let share = share.ok_or_else(|| {
        let detail = format!(
            "You have {MOST_SHARES} active share links, which is the maximum. Revoke one, and try again."
        );
        Problem::new(StatusCode::CONFLICT, detail)
    })?;
    Ok((StatusCode::CREATED, NEVER_KEPT, Json(share)).into_response())
}

/// Revoke a share link
#[utoipa::path(
    delete, path = "/shares/{id}", tag = "access", security(("token" = ["read"])), params(("id" = String, Path)),
    responses((status = 204, description = "The link is revoked"))
)]
pub(super) async fn revoke_share(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    may_share(&caller)?;
    if !server.store.revoke_share(&id, creator(&caller).as_deref()).await? {
        return Err(not_found(&format!(
            "None of your share links has the id {id}. GET /api/v1/shares lists them."
        )));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Refuses callers who may not create share links: those who may not read, and anonymous ones, who could not
/// revoke them.
fn may_share(caller: &Caller) -> Result<(), Problem> {
    caller.may(TokenScope::Read)?;
    match caller {
        Caller::Anyone { .. } => {
            Err(Problem::unauthorized("Share links need a token, so that you can revoke them."))
        }
        _ => Ok(()),
    }
}

/// Returns whose share links the caller sees; none means everyone's.
fn creator(caller: &Caller) -> Option<String> {
    (!caller.is_admin()).then(|| caller.creator())
}

/// Refuses lifetimes that are too short or too long.
fn bound_days(wanted: u32, most: u32) -> Result<(), Problem> {
    if (1..=most).contains(&wanted) {
        return Ok(());
    }
    let detail = format!("expires_in_days is {wanted}, but must be between 1 and {most}.");
    Err(unprocessable(&detail))
}

fn days(days: u32) -> SignedDuration {
    SignedDuration::from_hours(24 * i64::from(days))
}
