//! Keeping other sites out of a server on loopback.
//!
//! A page of any site may have its own name point to 127.0.0.1 and then ask this server as if it were its own. What it
//! can't do is change the name that the browser says it asks: the `Host` header.

use super::problem::Problem;
use axum::extract::Request;
use axum::http::{StatusCode, header, uri::Authority};
use axum::middleware::Next;
use axum::response::Response;
use std::net::IpAddr;

/// Refuses requests to names that are not this machine's own.
pub(super) async fn only_own(request: Request, next: Next) -> Result<Response, Problem> {
    let named = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    // What is no browser may name nothing.
    let named = named.or_else(|| request.uri().authority().map(Authority::as_str));
    if named.is_none_or(is_own) {
        return Ok(next.run(request).await);
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "this server listens on this machine alone, and answers to localhost, 127.0.0.1 and [::1]; behind a proxy, have \
         it send one of these as Host",
    ))
}

/// Whether a host, with any port, is a name of the loopback: a tunnel may have changed the port.
fn is_own(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    !host.contains('@')
        && (name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback()))
}
