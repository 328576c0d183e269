use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use trainplan_shared::result::{Intake, RunResult, write};
use trainplan_shared::spec::Spec;

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
    let dir = tempfile::tempdir().unwrap();
    router::<App>(&server(&dir).await).oneshot(request(method, path, headers)).await.unwrap()
}

/// A server on loopback, and the token that it would print.
const OWNER: &str = "tp_owner";

async fn server(dir: &TempDir) -> Server {
    let (_, ends) = flag::channel(false);
    Server::new(store(dir).await, &ServeOptions::default(), Some(OWNER.into()), ends).unwrap()
}

fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

async fn store(dir: &TempDir) -> Store {
    Store::open(&DataDir::open(Some(dir.path().into())).unwrap()).await.unwrap()
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
async fn pages_are_found_with_and_without_slash_and_query() {
    for path in ["/", "/?v=1", "/recipes", "/benchmarks/", "/benchmarks?gpu=h100", "/recipes/index.html"] {
        let response = get(path, &[]).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(header(&response, "content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert_eq!(header(&response, "cache-control"), Some("no-cache"), "{path}");
    }
}

#[tokio::test]
async fn every_file_has_its_content_type() {
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
async fn only_files_with_a_hash_in_their_name_are_cached_forever() {
    let forever = Some("public, max-age=31536000, immutable");
    assert_eq!(header(&get(SCRIPT, &[]).await, "cache-control"), forever);
    assert_eq!(header(&get("/app-0123456789abcdef_bg.wasm", &[]).await, "cache-control"), forever);
    assert_eq!(header(&get("/icon.svg", &[]).await, "cache-control"), Some("no-cache"));
}

#[tokio::test]
async fn the_smallest_accepted_encoding_is_sent() {
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
async fn encodings_that_were_not_built_are_skipped() {
    let response = get("/icon.svg", &[("accept-encoding", "br, gzip")]).await;
    assert_eq!(header(&response, "content-encoding"), Some("gzip"));
    let response = get("/", &[("accept-encoding", "br, gzip")]).await;
    assert_eq!(header(&response, "content-encoding"), None);
}

#[tokio::test]
async fn unchanged_files_are_answered_with_304() {
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
async fn each_encoding_has_its_own_etag() {
    let plain = get(SCRIPT, &[]).await;
    let brotli = get(SCRIPT, &[("accept-encoding", "br")]).await;
    assert_ne!(header(&plain, "etag"), header(&brotli, "etag"));
}

#[tokio::test]
async fn unknown_paths_return_a_page_to_browsers_and_a_line_to_others() {
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
async fn head_returns_headers_only_and_other_methods_are_refused() {
    let head = answer::<Fixture>(Method::HEAD, SCRIPT, &[]).await;
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(header(&head, "content-length"), Some("4"));
    assert_eq!(text(head).await, "");
    let post = answer::<Fixture>(Method::POST, "/", &[]).await;
    assert_eq!(post.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
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
async fn healthz_answers_ok() {
    let response = get("/healthz", &[]).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(text(response).await, "ok\n");
}

#[tokio::test]
async fn without_a_web_app_pages_explain_how_to_build_it() {
    let response = answer::<NotBuilt>(Method::GET, "/", &[("accept", "text/html")]).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(text(response).await.contains("make web"));
}

#[tokio::test]
async fn an_address_in_use_is_named_in_the_error() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = taken.local_addr().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(Some(dir.path().into())).unwrap();
    let error = serve(addr, data, ServeOptions::default()).await.unwrap_err();
    assert!(matches!(error, ServeError::AddressInUse(in_use) if in_use == addr));
    assert!(error.to_string().contains("--listen"));
}

/// A store with three runs, the last one with its log, and its routes.
struct StoredRuns {
    dir: TempDir,
    runs: Vec<RunResult>,
    log: String,
}

impl StoredRuns {
    async fn make() -> StoredRuns {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir).await;
        let (mut runs, mut log) = (Vec::new(), String::new());
        for seconds in ["12.39", "11.5", "nan"] {
            log = (0..50)
                .map(|step| {
                    format!("Training epoch 0, iteration {step}/49 | global_batch_size: 128 | train_step_timing in s: {seconds} |\n")
                })
                .collect();
            let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out", &Spec::default());
            intake.feed(log.as_bytes());
            let run = intake.finish();
            let file = dir.path().join("log.zst");
            std::fs::write(&file, zstd::encode_all(log.as_bytes(), 3).unwrap()).unwrap();
            store.put(&run, (seconds == "nan").then_some(file.as_path())).await.unwrap();
            runs.push(run);
        }
        StoredRuns { dir, runs, log }
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        let router = router::<Fixture>(&server(&self.dir).await);
        router.oneshot(request(Method::GET, &format!("/api/v1{path}"), headers)).await.unwrap()
    }

    async fn list(&self, query: &str) -> Value {
        let response = self.get(&format!("/runs{query}"), &[]).await;
        assert_eq!(response.status(), StatusCode::OK, "{query}");
        serde_json::from_str(&text(response).await).unwrap()
    }
}

/// The detail of a problem, after making sure that it is one.
async fn problem(response: Response<Body>, status: StatusCode) -> String {
    assert_eq!(response.status(), status);
    assert_eq!(header(&response, "content-type"), Some("application/problem+json"));
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["status"], status.as_u16());
    assert_eq!(problem["title"], status.canonical_reason().unwrap());
    problem["detail"].as_str().unwrap().to_owned()
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn runs_are_listed_newest_first_in_pages() {
    let stored = StoredRuns::make().await;
    let put: Vec<String> = stored.runs.iter().rev().map(|run| run.id.to_string()).collect();
    let all = stored.list("").await;
    assert_eq!(ids(&all), put);
    assert_eq!(all["next_cursor"], Value::Null);
    assert_eq!(all["items"][2]["step_time_s"]["mean"], 12.39);
    assert_eq!(all["items"][2]["recipe"], "llama3.1-8b/h100/fp8/8@25.04");
    assert_eq!(all["items"][0]["has_log"], true);
    let first = stored.list("?limit=2").await;
    assert_eq!(ids(&first), put[..2]);
    let cursor = first["next_cursor"].as_str().unwrap().replace(':', "%3A");
    let last = stored.list(&format!("?limit=2&cursor={cursor}")).await;
    assert_eq!((ids(&last), &last["next_cursor"]), (vec![put[2].as_str()], &Value::Null));
}

#[tokio::test]
async fn runs_are_filtered_and_invalid_queries_are_explained() {
    let stored = StoredRuns::make().await;
    // A short form means what it means on the command line.
    assert_eq!(
        ids(&stored.list("?recipe=llama3.1-8b%2Fh100%2Ffp8%2F8%4025.04&status=scored").await).len(),
        2
    );
    assert_eq!(stored.list("?cluster=eos").await["items"], json!([]));
    for (query, told) in [
        ("?limit=0", "1 to 1000"),
        ("?limit=many", "1 to 1000"),
        ("?cursor=x", "next_cursor"),
        ("?status=great", "scored, invalid"),
        ("?clutser=eos", "cluster"),
    ] {
        let response = stored.get(&format!("/runs{query}"), &[]).await;
        let detail = problem(response, StatusCode::BAD_REQUEST).await;
        assert!(detail.contains(told), "{query}: {detail}");
    }
}

#[tokio::test]
async fn results_are_returned_byte_for_byte() {
    let stored = StoredRuns::make().await;
    let run = &stored.runs[0];
    let path = format!("/runs/{}", run.id);
    let response = stored.get(&path, &[]).await;
    assert_eq!(header(&response, "content-type"), Some("application/json"));
    assert_eq!(text(response).await, write(run).unwrap());
    let packed = stored.get(&path, &[("accept-encoding", "gzip, zstd")]).await;
    assert_eq!(header(&packed, "content-encoding"), Some("zstd"));
    let packed = axum::body::to_bytes(packed.into_body(), usize::MAX).await.unwrap();
    assert_eq!(zstd::decode_all(&packed[..]).unwrap(), write(run).unwrap().into_bytes());
}

#[tokio::test]
async fn logs_are_returned_as_text_attachments() {
    let stored = StoredRuns::make().await;
    let path = format!("/runs/{}/log", stored.runs[2].id);
    let response = stored.get(&path, &[]).await;
    assert_eq!(header(&response, "content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(header(&response, "x-content-type-options"), Some("nosniff"));
    assert!(header(&response, "content-disposition").unwrap().starts_with("attachment;"));
    assert_eq!(header(&response, "content-encoding"), None);
    assert_eq!(text(response).await, stored.log);
    let packed = stored.get(&path, &[("accept-encoding", "zstd")]).await;
    assert_eq!(header(&packed, "content-encoding"), Some("zstd"));
    let packed = axum::body::to_bytes(packed.into_body(), usize::MAX).await.unwrap();
    assert_eq!(zstd::decode_all(&packed[..]).unwrap(), stored.log.as_bytes());
}

#[tokio::test]
async fn missing_resources_are_problems_and_never_the_app() {
    let stored = StoredRuns::make().await;
    let known = stored.runs[0].id;
    for path in [
        "/runs/0195d5a2-0000-7000-8000-000000000000",
        "/runs/x",
        "/runs/0195d5a2-0000-7000-8000-000000000000/log",
        &format!("/runs/{known}/log"),
        "/nowhere",
        "",
        "/",
    ] {
        let response = stored.get(path, &[("accept", "text/html")]).await;
        assert!(!problem(response, StatusCode::NOT_FOUND).await.is_empty(), "{path}");
    }
    let router = router::<Fixture>(&server(&stored.dir).await);
    let post = router.oneshot(request(Method::POST, &format!("/api/v1/runs/{known}"), &[])).await.unwrap();
    assert!(problem(post, StatusCode::METHOD_NOT_ALLOWED).await.contains("openapi.json"));
}

#[tokio::test]
async fn a_server_on_loopback_answers_only_to_loopback_names() {
    let dir = tempfile::tempdir().unwrap();
    let router = router::<Fixture>(&server(&dir).await).layer(from_fn(host::only_own));
    let ask = async |host| {
        let headers = [("host", host)];
        router.clone().oneshot(request(Method::GET, "/api/v1/runs", &headers)).await.unwrap()
    };
    for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:9", "127.8.8.8", "[::1]:8080", "[::1]"] {
        assert_eq!(ask(host).await.status(), StatusCode::OK, "{host}");
    }
    for host in
        ["evil.example", "localhost.evil.example:8080", "127.0.0.1.nip.io", "0.0.0.0:8080", "u@localhost", ""]
    {
        let detail = problem(ask(host).await, StatusCode::FORBIDDEN).await;
        assert!(detail.contains("localhost"), "{host}: {detail}");
    }
    for headers in [&[][..], &[("host", "localhost"), ("host", "evil.example")]] {
        let answer = router.clone().oneshot(request(Method::GET, "/api/v1/runs", headers)).await.unwrap();
        let detail = problem(answer, StatusCode::BAD_REQUEST).await;
        assert!(detail.contains("one host"), "{headers:?}: {detail}");
    }
}
