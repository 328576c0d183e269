use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use tower::ServiceExt;

use super::*;

/// A small web app: an index, one page, hashed files, an icon.
#[derive(Embed)]
#[folder = "src/serve/fixture"]
struct Fixture;

/// What a binary holds that was built before the web app.
#[derive(Embed)]
#[folder = "src/serve/no-such-folder"]
#[allow_missing = true]
struct NotBuilt;

const SCRIPT: &str = "/app-0123456789abcdef.js";

async fn answer<App: Embed + 'static>(
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    router::<App>().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn get(path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    answer::<Fixture>(Method::GET, path, headers).await
}

async fn text(response: Response<Body>) -> String {
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn pages_are_found_with_and_without_a_slash_and_a_query() {
    for path in ["/", "/?v=1", "/recipes", "/recipes/", "/recipes?gpu=h100", "/recipes/index.html"] {
        let response = get(path, &[]).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(header(&response, "content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert_eq!(header(&response, "cache-control"), Some("no-cache"), "{path}");
    }
}

#[tokio::test]
async fn every_file_has_its_type() {
    for (path, wanted) in [
        (SCRIPT, "text/javascript; charset=utf-8"),
        ("/app-0123456789abcdef_bg.wasm", "application/wasm"),
        ("/icon.svg", "image/svg+xml"),
        ("/manifest.webmanifest", "application/manifest+json"),
    ] {
        assert_eq!(header(&get(path, &[]).await, "content-type"), Some(wanted), "{path}");
    }
}

#[tokio::test]
async fn only_files_named_by_their_content_are_kept_without_asking() {
    let forever = Some("public, max-age=31536000, immutable");
    assert_eq!(header(&get(SCRIPT, &[]).await, "cache-control"), forever);
    assert_eq!(header(&get("/app-0123456789abcdef_bg.wasm", &[]).await, "cache-control"), forever);
    assert_eq!(header(&get("/icon.svg", &[]).await, "cache-control"), Some("no-cache"));
}

#[tokio::test]
async fn the_encoding_is_the_smallest_that_the_client_takes() {
    for (accepted, encoding, body) in [
        ("gzip, deflate, br, zstd", Some("br"), "app in brotli\n"),
        ("gzip", Some("gzip"), "app in gzip\n"),
        ("GZip;q=0.5", Some("gzip"), "app in gzip\n"),
        ("br;q=0, gzip", Some("gzip"), "app in gzip\n"),
        ("br; q=0.0, *", Some("gzip"), "app in gzip\n"),
        ("*", Some("br"), "app in brotli\n"),
        ("*;q=0", None, "app\n"),
        ("identity", None, "app\n"),
        ("", None, "app\n"),
    ] {
        let response = get(SCRIPT, &[("accept-encoding", accepted)]).await;
        assert_eq!(header(&response, "content-encoding"), encoding, "{accepted}");
        assert_eq!(header(&response, "vary"), Some("accept-encoding"), "{accepted}");
        assert_eq!(header(&response, "content-type"), Some("text/javascript; charset=utf-8"), "{accepted}");
        assert_eq!(text(response).await, body, "{accepted}");
    }
}

#[tokio::test]
async fn an_encoding_that_was_not_built_is_passed_over() {
    let response = get("/icon.svg", &[("accept-encoding", "br, gzip")]).await;
    assert_eq!(header(&response, "content-encoding"), Some("gzip"));
    let response = get("/", &[("accept-encoding", "br, gzip")]).await;
    assert_eq!(header(&response, "content-encoding"), None);
}

#[tokio::test]
async fn what_the_client_has_is_not_sent_again() {
    let first = get("/", &[]).await;
    let tag = header(&first, "etag").unwrap();
    for known in [tag.to_owned(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
        let second = get("/", &[("if-none-match", &known)]).await;
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(header(&second, "etag"), Some(tag), "{known}");
        assert_eq!(text(second).await, "", "{known}");
    }
    assert_eq!(get("/", &[("if-none-match", "\"other\"")]).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn each_encoding_has_a_tag_of_its_own() {
    let plain = get(SCRIPT, &[]).await;
    let brotli = get(SCRIPT, &[("accept-encoding", "br")]).await;
    assert_ne!(header(&plain, "etag"), header(&brotli, "etag"));
}

#[tokio::test]
async fn an_unknown_path_gives_a_browser_the_app_and_others_a_line() {
    let page = get("/nowhere", &[("accept", "text/html,application/xhtml+xml,*/*;q=0.8")]).await;
    assert_eq!(page.status(), StatusCode::NOT_FOUND);
    assert_eq!(header(&page, "content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(text(page).await, "<title>app</title>\n");

    for path in ["/nowhere", "/../Cargo.toml", "/%2e%2e/Cargo.toml", "//etc/passwd"] {
        let line = get(path, &[("accept", "*/*")]).await;
        assert_eq!(line.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(header(&line, "content-type"), Some("text/plain; charset=utf-8"), "{path}");
    }
}

#[tokio::test]
async fn head_gives_the_headers_alone_and_other_methods_are_refused() {
    let head = answer::<Fixture>(Method::HEAD, SCRIPT, &[]).await;
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(header(&head, "content-length"), Some("4"));
    assert_eq!(text(head).await, "");
    let post = answer::<Fixture>(Method::POST, "/", &[]).await;
    assert_eq!(post.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn every_answer_carries_the_security_headers() {
    for path in ["/", "/nowhere", "/healthz"] {
        let response = get(path, &[]).await;
        let policies = response.headers().get_all("content-security-policy");
        let policies: Vec<_> = policies.iter().map(|policy| policy.to_str().unwrap()).collect();
        assert!(policies[0].starts_with("default-src 'none';"), "{path}");
        assert_eq!(policies[1], "frame-ancestors 'none'", "{path}");
        assert_eq!(header(&response, "x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(header(&response, "referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(header(&response, "cross-origin-opener-policy"), Some("same-origin"), "{path}");
    }
}

#[tokio::test]
async fn health_is_one_word() {
    let response = get("/healthz", &[]).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(text(response).await, "ok\n");
}

#[tokio::test]
async fn without_a_web_app_every_page_says_how_to_build_it() {
    let response = answer::<NotBuilt>(Method::GET, "/", &[("accept", "text/html")]).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(text(response).await.contains("make web"));
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = taken.local_addr().unwrap();
    let error = serve(addr).await.unwrap_err();
    assert!(matches!(error, ServeError::AddressInUse(in_use) if in_use == addr));
    assert!(error.to_string().contains("--listen"));
}
