//! Finds the file that a path names, and sends it in the encoding and with the caching that suit it.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{Embed, EmbeddedFile};

/// What Trunk built: empty when this binary was built before it.
#[derive(Embed)]
#[folder = "../dist"]
#[allow_missing = true]
pub(super) struct Dist;

/// The encodings that the build made siblings for, smallest first: token in HTTP, suffix of the file.
const ENCODINGS: [(&str, &str); 2] = [("br", "br"), ("gzip", "gz")];

const NOT_BUILT: &str = "This trainplan was built without its web app.\n\n\
    In the source folder, `make run` builds both and serves them; or build the web app with `make web`, and then\n\
    this program again.\n";

/// Answers a GET: the file, the page at that path, or that there is none.
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
        None => (StatusCode::NOT_FOUND, "There is nothing at this address.\n").into_response(),
    }
}

/// The file at `path` in the best encoding that the request accepts, or 304 if the client has that already.
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
    // Each encoding is a file of its own, so its hash is a strong validator.
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

/// A file with its content's hash in its name never changes; any other is asked for again each time.
fn cache_control(path: &str) -> &'static str {
    // Trunk's hashes are 64 bits in hexadecimal without leading zeros.
    let is_hash = |part: &str| part.len() >= 12 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if path.split(['-', '_', '.']).any(is_hash) { "public, max-age=31536000, immutable" } else { "no-cache" }
}

/// Whether the request takes this content coding: named, or else by `*`, with a weight above zero (RFC 9110, 12.5.3).
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

/// The items of a header that holds a list, over all its lines.
fn values<'a>(request: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    request
        .get_all(name)
        .iter()
        .filter_map(|line: &HeaderValue| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
}
