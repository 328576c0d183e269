//! Who asks, and what they may do.
//!
//! There are no cookies: a browser sends a token only where the page puts it, so that no other site can ask in a
//! person's name. Behind a proxy that people log in to, the proxy's header stands for a person who reads.

use super::Server;
use super::problem::Problem;
use crate::store::{Access, Scope};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Caller {
    /// Nobody that we know, on a server that lets everyone read or does not.
    Anyone {
        /// Whether reading is open.
        reads: bool,
    },
    /// The owner of a token.
    Token {
        /// The token's id.
        id: String,
        /// What it allows.
        scope: Scope,
        /// The most bytes a day.
        quota_bytes: Option<u64>,
    },
    /// Who started the server, by the token that it printed.
    Owner,
    /// Who has a link to some runs.
    Guest {
        /// The runs.
        runs: BTreeSet<Uuid>,
        /// When the link ends.
        until: String,
    },
    /// Whom the proxy lets in.
    Person(String),
}

impl Caller {
    /// What the caller is called where something is kept under its name.
    pub(super) fn name(&self) -> &str {
        match self {
            Caller::Anyone { .. } | Caller::Guest { .. } => "anyone",
            Caller::Token { id, .. } => id,
            Caller::Owner => "owner",
            Caller::Person(name) => name,
        }
    }

    /// Refuses who may not do what a scope allows.
    pub(super) fn may(&self, needed: Scope) -> Result<(), Problem> {
        let has = match self {
            Caller::Owner => return Ok(()),
            Caller::Token { scope, .. } => Some(*scope),
            Caller::Person(_) | Caller::Anyone { reads: true } => Some(Scope::Read),
            Caller::Guest { .. } => {
                return Err(Problem::new(StatusCode::FORBIDDEN, "this link shows its runs and nothing else"));
            }
            Caller::Anyone { reads: false } => None,
        };
        match has {
            Some(scope) if scope >= needed => Ok(()),
            Some(_) if matches!(self, Caller::Token { .. } | Caller::Person(_)) => Err(Problem::new(
                StatusCode::FORBIDDEN,
                format!("this needs a token with the scope {}", needed.id()),
            )),
            _ => Err(Problem::unknown(&format!("this needs a token with the scope {}", needed.id()))),
        }
    }

    /// Refuses who may not read these runs.
    pub(super) fn may_read(&self, runs: &[Uuid]) -> Result<(), Problem> {
        match self {
            // Whether there are others is nothing that a guest learns.
            Caller::Guest { runs: shown, .. } if runs.iter().all(|run| shown.contains(run)) => Ok(()),
            Caller::Guest { .. } => {
                Err(Problem::new(StatusCode::FORBIDDEN, "this link does not show that run"))
            }
            _ => self.may(Scope::Read),
        }
    }

    pub(super) fn is_admin(&self) -> bool {
        self.may(Scope::Admin).is_ok()
    }
}

/// Finds out who asks, holds them to the server's rates, and lets the request go on with its [`Caller`].
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
                // Guessing has its own, lower rate.
                server.rates.guess(address)?;
                return Err(Problem::unknown(
                    "the token is none of this server's, or has expired or been revoked",
                ));
            }
        },
        None => match person(&server, peer, request.headers()) {
            Some(name) => {
                let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
                if changes && is_cross_site(request.headers()) {
                    return Err(Problem::new(StatusCode::FORBIDDEN, "another site's page asks for this"));
                }
                Caller::Person(name)
            }
            None => Caller::Anyone { reads: server.options.is_public },
        },
    };
    match &caller {
        Caller::Token { id, .. } => server.rates.request(id)?,
        _ => server.rates.request(&address.map_or_else(String::new, |address| address.to_string()))?,
    }
    request.extensions_mut().insert(caller);
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
            Caller::Token { id: token.id, scope: token.scope, quota_bytes: token.quota_bytes }
        }
        Access::Share { runs, expires_at } => Caller::Guest { runs, until: expires_at },
    }))
}

/// The secret that a request carries.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let secret = value.to_str().ok().and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(secret.trim())
    });
    secret.map(Some).ok_or_else(|| Problem::unknown("give the token as `Authorization: Bearer TOKEN`"))
}

/// Whom the proxy names. Whoever else sends the header is nobody.
fn person(server: &Server, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<String> {
    let name = server.options.login_header.as_ref()?;
    let is_proxy = peer.is_some_and(|peer| server.options.trusted_proxies.contains(&peer));
    let mut values = headers.get_all(name).iter();
    // A second one would be someone's own.
    let (value, None) = (values.next()?, values.next()) else { return None };
    let text = value.to_str().ok().map(str::trim).filter(|text| !text.is_empty())?;
    is_proxy.then(|| text.to_owned())
}

/// Whose address a request comes from: a trusted proxy's word counts, nobody else's.
fn client(server: &Server, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
    let is_proxy = peer.is_some_and(|peer| server.options.trusted_proxies.contains(&peer));
    if !is_proxy {
        return peer;
    }
    // The last one is what the proxy saw itself.
    let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
    let last = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    last.or(peer)
}

/// Whether a browser says that another site's page asks.
fn is_cross_site(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    match text("sec-fetch-site") {
        Some(site) => !matches!(site, "same-origin" | "none"),
        // An older browser names the origin.
        None => text("origin").is_some_and(|origin| {
            let host = text("host").unwrap_or_default();
            origin.split_once("://").is_none_or(|(_, origin)| origin != host)
        }),
    }
}
