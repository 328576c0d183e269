//! Who the caller is, and what they may do.
//!
//! There are no cookies: a browser sends a token only when the page adds it, so other sites can't send
//! requests in a person's name. Behind a proxy with a login, the proxy's header identifies a person, who may
//! read.

use super::Server;
use super::problem::Problem;
use super::rates::network;
use crate::store::{Access, LOGIN};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use subtle::ConstantTimeEq;
use trainplan_shared::api::{AccessToken, TokenScope};
use uuid::Uuid;

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Caller {
    /// An anonymous caller.
    Anyone {
        /// Whether the server lets everyone read.
        reads: bool,
    },
    /// A caller with a token.
    Token {
        /// The token's id.
        id: String,
        /// Its name.
        name: String,
        /// What it allows.
        scope: TokenScope,
        /// The number of bytes that it may upload per day, if it has its own quota.
        quota_bytes: Option<u64>,
    },
    /// The person who started the server, by the token that it printed.
    Owner,
    /// A visitor with a share link.
    Guest {
        /// The runs that the link shows.
        runs: BTreeSet<Uuid>,
        /// When the link expires.
        until: String,
    },
    /// A person who is logged in at the proxy.
    Person(String),
}

/// The name that a caller's requests and event streams are counted under: the id of a token, or else the
/// network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CountedAs(pub(super) String);

impl Caller {
    /// Returns the name under which the store records what the caller does.
    pub(super) fn name(&self) -> &str {
        match self {
            Caller::Anyone { .. } | Caller::Guest { .. } => "anyone",
            Caller::Token { id, .. } => id,
            Caller::Owner => "owner",
            Caller::Person(name) => name,
        }
    }

    /// Returns the name under which the store records the caller's share links. A person may have the id of a token as login.
    pub(super) fn creator(&self) -> String {
        match self {
            Caller::Person(name) => format!("{LOGIN}{name}"),
            _ => self.name().to_owned(),
        }
    }

    /// Refuses callers who lack a scope.
    pub(super) fn may(&self, needed: TokenScope) -> Result<(), Problem> {
        let has = match self {
            Caller::Owner => return Ok(()),
            Caller::Token { scope, .. } => Some(*scope),
            Caller::Person(_) | Caller::Anyone { reads: true } => Some(TokenScope::Read),
            Caller::Guest { .. } => {
                return Err(Problem::new(StatusCode::FORBIDDEN, "This share link shows only its runs."));
            }
            Caller::Anyone { reads: false } => None,
        };
        match has {
            Some(scope) if scope >= needed => Ok(()),
            Some(has) if matches!(self, Caller::Token { .. } | Caller::Person(_)) => {
                let (needed, has) = (needed.id(), has.id());
                let detail = format!("This requires scope {needed}; yours is {has}.");
                Err(Problem::new(StatusCode::FORBIDDEN, detail))
            }
            _ => Err(Problem::unauthorized(&format!("This requires a token with scope {}.", needed.id()))),
        }
    }

    /// Refuses callers who may not read these runs.
    pub(super) fn may_read(&self, runs: &[Uuid]) -> Result<(), Problem> {
        match self {
            // The answer does not reveal whether the other runs exist.
            Caller::Guest { runs: shown, .. } if runs.iter().all(|run| shown.contains(run)) => Ok(()),
            Caller::Guest { .. } => {
                Err(Problem::new(StatusCode::FORBIDDEN, "This share link does not show that run."))
            }
            _ => self.may(TokenScope::Read),
        }
    }

    pub(super) fn is_admin(&self) -> bool {
        self.may(TokenScope::Admin).is_ok()
    }
}

/// Identifies the caller, counts the request against its rate, and passes the [`Caller`] on with the request.
pub(super) async fn identify(
    State(server): State<Server>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let address = client(&server, peer, request.headers());
    let secret = bearer(request.headers())?;
    let caller = match secret {
        Some(secret) => match caller(&server, secret).await? {
            Some(caller) => caller,
            None => {
                // Invalid tokens have a lower rate, against guessing.
                server.rates.guess(address)?;
                return Err(Problem::unauthorized("The token is unknown, expired or revoked."));
            }
        },
        None => match person(&server, peer, request.headers()) {
            Some(name) => {
                let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
                if changes && is_cross_site(request.headers()) {
                    return Err(Problem::new(
                        StatusCode::FORBIDDEN,
                        "Requests from pages of other sites are refused.",
                    ));
                }
                Caller::Person(name)
            }
            None => Caller::Anyone { reads: server.options.is_public },
        },
    };
    let counted = match &caller {
        Caller::Token { id, .. } => id.clone(),
        _ => address.map_or_else(String::new, |address| network(address).to_string()),
    };
    server.rates.request(&counted)?;
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(CountedAs(counted));
    Ok(next.run(request).await)
}

async fn caller(server: &Server, secret: &str) -> Result<Option<Caller>, Problem> {
    if let Some(owner) = &server.owner
        && bool::from(owner.as_bytes().ct_eq(secret.as_bytes()))
    {
        return Ok(Some(Caller::Owner));
    }
    Ok(server.store.access(secret).await?.map(|access| match access {
        Access::Token(token) => {
            let AccessToken { id, name, scope, quota_bytes, .. } = token;
            Caller::Token { id, name, scope, quota_bytes }
        }
        Access::Share { runs, expires_at } => Caller::Guest { runs, until: expires_at },
    }))
}

/// Returns the secret that a request carries.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    // A proxy may have checked another one than the server would.
    if values.next().is_some() {
        let detail = "The request has several Authorization headers. Send one.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    let secret = value.to_str().ok().and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(secret.trim())
    });
    secret
        .map(Some)
        .ok_or_else(|| Problem::unauthorized("Send the token as \"Authorization: Bearer TOKEN\"."))
}

/// Returns the person whom a trusted proxy names. The header of anyone else is ignored.
fn person(server: &Server, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<String> {
    let name = server.options.login_header.as_ref()?;
    let is_proxy = peer.is_some_and(|peer| server.options.trusted_proxies.contains(&peer));
    let mut values = headers.get_all(name).iter();
    // A second value would be the client's own.
    let (value, None) = (values.next()?, values.next()) else { return None };
    let text = value.to_str().ok().map(str::trim).filter(|text| !text.is_empty())?;
    is_proxy.then(|| text.to_owned())
}

/// Returns the address of the client as reported by a trusted proxy, or else the address of the connection.
fn client(server: &Server, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
    let is_proxy = peer.is_some_and(|peer| server.options.trusted_proxies.contains(&peer));
    if !is_proxy {
        return peer;
    }
    // The proxy appends the address that it saw; earlier ones are the client's claims.
    let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
    let last = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    last.or(peer)
}

/// Returns whether a browser sent the request for a page of another site.
fn is_cross_site(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    match text("sec-fetch-site") {
        Some(site) => !matches!(site, "same-origin" | "none"),
        // Older browsers send only the origin.
        None => text("origin").is_some_and(|origin| {
            let host = text("host").unwrap_or_default();
            origin.split_once("://").is_none_or(|(_, origin)| origin != host)
        }),
    }
}
