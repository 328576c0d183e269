//! Serves the embedded web app, with content encoding and caching.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{Embed, EmbeddedFile};

/// The output of Trunk; empty if the web app was not built before this binary.
#[derive(Embed)]
#[folder = "../dist"]
#[allow_missing = true]
pub(super) struct Dist;

/// The encodings of the build's files, smallest first: HTTP's name and the file's suffix.
const ENCODINGS: [(&str, &str); 2] = [("br", "br"), ("gzip", "gz")];

const NOT_BUILT: &str = "This trainplan was built without its web app.\n\n\
    In the source folder, run `make run` to build both, or `make web` and then build this program again.\n";

/// Answers GET with the file or the page at a path, or 404.
pub(super) async fn respond<App: Embed>(uri: Uri, request: HeaderMap) -> Response {
    if App::get("index.html").is_none() {
        return (StatusCode::SERVICE_UNAVAILABLE, NOT_BUILT).into_response();
    }
    let path = uri.path().trim_matches('/');
    let page = if path.is_empty() { "index.html".to_owned() } else { format!("{path}/index.html") };
    if let Some(response) = send::<App>(path, &request).or_else(|| send::<App>(&page, &request)) {
        return response;
    }
    let wants_page = values(&request, &header::ACCEPT).any(|accepted| accepted.starts_with("text/html"));
    let page = App::get("404.html").filter(|_| wants_page);
    match page {
        Some(page) => (StatusCode::NOT_FOUND, content_type(&page), page.data).into_response(),
        None => (StatusCode::NOT_FOUND, "Page not found.\n").into_response(),
    }
}

/// Returns the file at `path` in the best encoding that the request accepts, or 304 if the client has it.
fn send<App: Embed>(path: &str, request: &HeaderMap) -> Option<Response> {
    let plain = App::get(path)?;
    let encoded = ENCODINGS
        .iter()
        .filter(|(token, _)| accepts(request, token))
        .find_map(|(token, suffix)| Some((*token, App::get(&format!("{path}.{suffix}"))?)));
    let content_type = content_type(&plain);
    let (encoding, file) = match encoded {
        Some((token, file)) => (Some([(header::CONTENT_ENCODING, token)]), file),
        None => (None, plain),
    };
    // Each encoding is a separate file, so its hash is a strong validator.
    let tag = file.metadata.sha256_hash()[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let tag = format!("\"{tag}\"");
    let cached = values(request, &header::IF_NONE_MATCH)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag);
    let caching = [
        (header::CACHE_CONTROL, cache_control(path).to_owned()),
        (header::ETAG, tag),
        (header::VARY, "accept-encoding".to_owned()),
    ];
    Some(if cached {
        (StatusCode::NOT_MODIFIED, caching).into_response()
    } else {
        (caching, content_type, encoding, file.data).into_response()
    })
}

fn content_type(file: &EmbeddedFile) -> [(HeaderName, String); 1] {
    let mime = file.metadata.mimetype();
    let charset = if mime.starts_with("text/") { "; charset=utf-8" } else { "" };
    [(header::CONTENT_TYPE, format!("{mime}{charset}"))]
}

/// Returns the caching of a file: files with a hash in their names never change, others are revalidated.
fn cache_control(path: &str) -> &'static str {
    // Trunk's hashes are 64 bits in hexadecimal without leading zeros.
    let is_hash = |part: &str| part.len() >= 12 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if path.split(['-', '_', '.']).any(is_hash) { "public, max-age=31536000, immutable" } else { "no-cache" }
}

/// Returns whether the request accepts a content coding, by name or `*`, with a weight above zero (RFC 9110,
/// 12.5.3).
pub(super) fn accepts(request: &HeaderMap, coding: &str) -> bool {
    let weight = |wanted: &str| {
        values(request, &header::ACCEPT_ENCODING).find_map(|item| {
            let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
            let weight = parameters.trim().strip_prefix("q=").and_then(|q| q.trim().parse().ok());
            name.trim().eq_ignore_ascii_case(wanted).then_some(weight.unwrap_or(1.0_f32))
        })
    };
    weight(coding).or_else(|| weight("*")).is_some_and(|weight| weight > 0.0)
}

/// Returns the items of a header's list, over all its lines.
fn values<'a>(request: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    request
        .get_all(name)
        .iter()
        .filter_map(|line: &HeaderValue| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
}
