//! Tokens, and links that show some runs.

use super::super::Server;
use super::super::guard::Caller;
use super::super::limits::whole;
use super::super::problem::Problem;
use super::runs::unprocessable;
use super::{By, NEVER_KEPT, nowhere};
use crate::store::{NewShare, NewToken, Scope, Share, Token};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::SignedDuration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// No request here is longer.
const LARGEST: usize = 64 * 1024;

/// A share without an end would be forgotten, and stay.
const LONGEST_SHARE_DAYS: u32 = 366;

/// Who asks.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Me {
    /// What the caller is called.
    name: String,
    /// What the caller may do; none: nothing, or only read some runs.
    scope: Option<Scope>,
    /// The runs that a link shows, for who has one.
    runs: Option<Vec<String>>,
    /// When that link ends.
    until: Option<String>,
}

/// Ask what the token that is sent allows
#[utoipa::path(get, path = "/me", responses((status = 200, body = Me)))]
pub(super) async fn me(Extension(by): By) -> Response {
    let scope = [Scope::Admin, Scope::Upload, Scope::Read].into_iter().find(|scope| by.may(*scope).is_ok());
    let (runs, until) = match &by {
        Caller::Guest { runs, until } => {
            (Some(runs.iter().map(Uuid::to_string).collect()), Some(until.clone()))
        }
        _ => (None, None),
    };
    (NEVER_KEPT, Json(Me { name: by.name().to_owned(), scope, runs, until })).into_response()
}

/// All tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Tokens {
    /// The newest first.
    items: Vec<Token>,
}

/// List the tokens, without their secrets
#[utoipa::path(get, path = "/tokens", responses((status = 200, body = Tokens)))]
pub(super) async fn tokens(State(server): State<Server>, Extension(by): By) -> Result<Response, Problem> {
    by.may(Scope::Admin)?;
    Ok((NEVER_KEPT, Json(Tokens { items: server.store.tokens().await? })).into_response())
}

/// A token to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedToken {
    /// Its name for people.
    name: String,
    /// What it is to allow.
    scope: Scope,
    /// For how long; none means until it is revoked.
    expires_in_days: Option<u32>,
    /// The most bytes that it may upload in a day.
    quota_bytes: Option<u64>,
}

/// Make a token: its secret is told now and never again
#[utoipa::path(post, path = "/tokens", request_body = WantedToken, responses((status = 201, body = NewToken)))]
pub(super) async fn create_token(
    State(server): State<Server>,
    Extension(by): By,
    body: Body,
) -> Result<Response, Problem> {
    by.may(Scope::Admin)?;
    let wanted: WantedToken = json(&server, body).await?;
    if wanted.name.trim().is_empty() || wanted.name.len() > 100 || wanted.name.contains(char::is_control) {
        return Err(unprocessable("name: give it 1 to 100 characters that can be printed"));
    }
    let lasts = wanted.expires_in_days.map(days);
    let token =
        server.store.create_token(wanted.name.trim(), wanted.scope, lasts, wanted.quota_bytes).await?;
    tracing::info!("token {} was made by {}", token.token.id, by.name());
    Ok((StatusCode::CREATED, NEVER_KEPT, Json(token)).into_response())
}

/// Revoke a token
#[utoipa::path(
    delete, path = "/tokens/{id}", params(("id" = String, Path)),
    responses((status = 204, description = "It opens nothing any more"))
)]
pub(super) async fn revoke_token(
    State(server): State<Server>,
    Extension(by): By,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    by.may(Scope::Admin)?;
    let revoked = server.store.revoke_token(&id).await?;
    revoked.ok_or_else(|| nowhere(&format!("there is no token {id}")))?;
    tracing::info!("token {id} was revoked by {}", by.name());
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// All links.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Shares {
    /// The newest first.
    items: Vec<Share>,
}

/// List the links that the caller made; with the scope admin everyone's
#[utoipa::path(get, path = "/shares", responses((status = 200, body = Shares)))]
pub(super) async fn shares(State(server): State<Server>, Extension(by): By) -> Result<Response, Problem> {
    shares_of(&by)?;
    let items = server.store.shares(own(&by)).await?;
    Ok((NEVER_KEPT, Json(Shares { items })).into_response())
}

/// A link to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedShare {
    /// The runs that it shows.
    ids: Vec<String>,
    /// For how many days, up to 366.
    expires_in_days: u32,
}

/// Make a link that shows some runs and nothing else, to whoever has it
#[utoipa::path(post, path = "/shares", request_body = WantedShare, responses((status = 201, body = NewShare)))]
pub(super) async fn create_share(
    State(server): State<Server>,
    Extension(by): By,
    body: Body,
) -> Result<Response, Problem> {
    shares_of(&by)?;
    let wanted: WantedShare = json(&server, body).await?;
    if !(1..=LONGEST_SHARE_DAYS).contains(&wanted.expires_in_days) {
        return Err(unprocessable(&format!("expires_in_days: allowed: 1 to {LONGEST_SHARE_DAYS}")));
    }
    if wanted.ids.is_empty() || wanted.ids.len() > server.options.limits.max_compared {
        let detail = format!("ids: give 1 to {} runs", server.options.limits.max_compared);
        return Err(unprocessable(&detail));
    }
    let mut runs = Vec::new();
    for id in &wanted.ids {
        let run = super::id(id)?;
        server.store.summary(run).await?.ok_or_else(|| super::no_run(id))?;
        runs.push(run);
    }
    let share = server.store.create_share(&runs, by.name(), days(wanted.expires_in_days)).await?;
    Ok((StatusCode::CREATED, NEVER_KEPT, Json(share)).into_response())
}

/// End a link
#[utoipa::path(
    delete, path = "/shares/{id}", params(("id" = String, Path)),
    responses((status = 204, description = "It opens nothing any more"))
)]
pub(super) async fn revoke_share(
    State(server): State<Server>,
    Extension(by): By,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    shares_of(&by)?;
    if !server.store.revoke_share(&id, own(&by)).await? {
        return Err(nowhere(&format!("there is no link {id} of yours")));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Whoever is known and may read may show what they read: who is not known could not end the link.
fn shares_of(by: &Caller) -> Result<(), Problem> {
    by.may(Scope::Read)?;
    match by {
        Caller::Anyone { .. } => Err(Problem::unknown("links need a token, so that you can end them")),
        _ => Ok(()),
    }
}

/// Whose links the caller sees: all of them, for an administrator.
fn own(by: &Caller) -> Option<&str> {
    (!by.is_admin()).then(|| by.name())
}

fn days(days: u32) -> SignedDuration {
    SignedDuration::from_hours(24 * i64::from(days))
}

async fn json<T: DeserializeOwned>(server: &Server, body: Body) -> Result<T, Problem> {
    let (body, _room) = whole(body, LARGEST, &server.room).await?;
    serde_json::from_slice(&body).map_err(|error| unprocessable(&error.to_string()))
}
