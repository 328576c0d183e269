//! Protects a server on loopback from other sites' pages.
//!
//! Any site can point a name of its own at 127.0.0.1 and then send requests to this server as if it were its
//! own (DNS rebinding). It can't change the `Host` header, in which the browser sends that name.

use super::problem::Problem;
use axum::extract::Request;
use axum::http::{StatusCode, header, uri::Authority};
use axum::middleware::Next;
use axum::response::Response;
use std::net::IpAddr;

/// Refuses requests to names other than those of the loopback interface.
pub(super) async fn only_own(request: Request, next: Next) -> Result<Response, Problem> {
    let named = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    // Clients other than browsers may send no name.
    let named = named.or_else(|| request.uri().authority().map(Authority::as_str));
    if named.is_none_or(is_own) {
        return Ok(next.run(request).await);
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "This server answers only to localhost, 127.0.0.1 and [::1]. Behind a proxy, make it send one of these as Host.",
    ))
}

/// Returns whether a host names the loopback interface. Any port is allowed: a tunnel may have changed it.
fn is_own(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    !host.contains('@')
        && (name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback()))
}
