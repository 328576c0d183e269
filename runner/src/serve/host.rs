//! Protects a server on loopback from other sites' pages.
//!
//! Any site can point its own name at 127.0.0.1 and then send requests to this server as if it were its own
//! (DNS rebinding). It can't change the `Host` header, which contains that name.

use super::problem::Problem;
use axum::extract::Request;
use axum::http::{StatusCode, header, uri::Authority};
use axum::middleware::Next;
use axum::response::Response;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Refuses requests to names other than those of the loopback interface, and those with no or several names.
pub(super) async fn only_own(request: Request, next: Next) -> Result<Response, Problem> {
    let hosts = request.headers().get_all(header::HOST).iter();
    let named: BTreeSet<&str> = hosts
        .map(|host| host.to_str().unwrap_or_default())
        // A request to a proxy has the name in its target too.
        .chain(request.uri().authority().map(Authority::as_str))
        .collect();
    if named.len() != 1 {
        let detail = "The request must name one host. Send one Host header, such as Host: localhost.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    if named.into_iter().all(is_own) {
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
