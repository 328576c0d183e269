//! What someone may try who should not get what they want; each test is named for what it tries.

use crate::harness::{
    Client, Kind, Made, Options, Place, SOON, Server, carried, digest, encoded, file_of, log, made, made_of,
    on_every_store, progress, read_all, wait_for,
};
use crate::services::{PASSWORD, S3_SECRET, change};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use uuid::Uuid;

on_every_store! {
    without_a_token
    with_a_token_of_a_lower_scope
    with_a_revoked_expired_or_invented_token
    with_a_share_link_for_other_runs
    with_the_share_link_of_another_token
    a_path_out_of_the_store
    broken_deep_or_huge_json
    sql_in_every_filter
    a_binary_log
}

/// A server that lets nobody read, with a run and its log, and a client with a token of each scope.
struct Private {
    server: Server,
    made: Made,
    read: Client,
    upload: Client,
    admin: Client,
}

const PRIVATE: Options<'static> = Options { arguments: &["--read", "private"], environment: &[], by: &[] };

impl Private {
    fn start(kind: Kind) -> Private {
        let server = Server::with(&Place::new(kind), &PRIVATE);
        let client = |scope| server.by(&server.place.token(scope, &[]));
        let (read, upload, admin) = (client("read"), client("upload"), client("admin"));
        let made = carried(12.0, "eos");
        upload.put_all(&made);
        Private { server, made, read, upload, admin }
    }

    /// Every request that shows or changes something, by the scope that it needs.
    fn requests(&self) -> Vec<(&'static str, &'static str, String, Vec<u8>)> {
        let id = self.made.run.id;
        let share = json!({ "ids": [id], "expires_in_days": 1 }).to_string().into_bytes();
        let token = json!({ "name": "x", "scope": "admin" }).to_string().into_bytes();
        let mut all: Vec<_> = ["", "/summary", "/scores", "/log", "/log/lines"]
            .map(|page| ("read", "GET", format!("/runs/{id}{page}"), Vec::new()))
            .into();
        all.extend(
            ["/runs", "/progress", "/events", "//metrics"]
                .map(|page| ("read", "GET", page.to_owned(), Vec::new())),
        );
        all.push(("read", "GET", format!("/compare?ids={id}"), Vec::new()));
        all.push(("read", "GET", "/shares".into(), Vec::new()));
        all.push(("read", "POST", "/shares".into(), share));
        all.push(("read", "HEAD", format!("/runs/{id}/log"), Vec::new()));
        all.push(("upload", "PUT", format!("/runs/{id}"), file_of(&self.made.run)));
        all.push(("upload", "PUT", format!("/runs/{id}/log"), self.made.log.clone()));
        all.push((
            "upload",
            "POST",
            format!("/runs/{}/progress", Uuid::now_v7()),
            progress(1).to_string().into_bytes(),
        ));
        let reason = json!({ "reason": "x" }).to_string().into_bytes();
        all.push(("upload", "PUT", format!("/runs/{id}/acknowledgement"), reason));
        all.push(("upload", "DELETE", format!("/runs/{id}/acknowledgement"), Vec::new()));
        all.push(("admin", "POST", format!("/runs/{id}/restore"), Vec::new()));
        all.push(("admin", "POST", format!("/runs/{id}/scores"), Vec::new()));
        all.push(("admin", "GET", "/tokens".into(), Vec::new()));
        all.push(("admin", "POST", "/tokens".into(), token));
        all.push(("admin", "DELETE", format!("/tokens/{}", Uuid::now_v7()), Vec::new()));
        all.push(("admin", "DELETE", format!("/runs/{id}"), Vec::new()));
        all
    }

    /// What `client` is answered to each of them; nothing of what streams for ever is read.
    fn answers(&self, client: &Client) -> Vec<(&'static str, String, u16)> {
        let ask = |(scope, method, path, body): (&'static str, &'static str, String, Vec<u8>)| {
            let digest = digest(&body);
            let headers =
                [("content-digest", digest.as_str()), ("upload-offset", "0"), ("upload-complete", "?1")];
            let has_body = matches!(method, "PUT" | "POST");
            let status = match path.as_str() {
                "/events" => stream_status(client),
                _ => client.ask(method, &path, &headers, has_body.then_some(body.as_slice())).status,
            };
            (scope, format!("{method} {path}"), status)
        };
        self.requests().into_iter().map(ask).collect()
    }
}

/// Returns the status of an event stream.
fn stream_status(client: &Client) -> u16 {
    let mut wire = TcpStream::connect(client.address).unwrap();
    let token =
        client.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(wire, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n{token}\r\n").unwrap();
    let head = crate::harness::read_head(&mut std::io::BufReader::new(wire));
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

fn without_a_token(kind: Kind) {
    let private = Private::start(kind);
    for (_, request, status) in private.answers(&private.server.anyone()) {
        assert_eq!(status, 401, "{request}");
    }
    for path in ["/limits", "/me", "/openapi.json", "//healthz"] {
        assert_eq!(private.server.anyone().get(path).status, 200, "{path}");
    }
}

fn with_a_token_of_a_lower_scope(kind: Kind) {
    let private = Private::start(kind);
    let allowed = |client: &Client, scopes: &[&str]| {
        for (needed, request, status) in private.answers(client) {
            let is_refused = [401, 403].contains(&status);
            assert_eq!(!is_refused, scopes.contains(&needed), "{request}: {status}");
        }
    };
    allowed(&private.read, &["read"]);
    allowed(&private.upload, &["read", "upload"]);
    allowed(&private.admin, &["read", "upload", "admin"]);
}

fn with_a_revoked_expired_or_invented_token(kind: Kind) {
    let private = Private::start(kind);
    let server = &private.server;
    let expired = server.place.token("admin", &["--expires", "1s"]);
    let revoked = private.admin.post("/tokens", &json!({ "name": "y", "scope": "admin" })).json();
    let id = revoked["id"].as_str().unwrap();
    assert_eq!(private.admin.delete(&format!("/tokens/{id}")).status, 204);
    let good = private.admin.token.clone().unwrap();
    wait_for("end of a token", SOON, || (server.by(&expired).get("/me").status == 401).then_some(()));
    let (shorter, longer, other) = (&good[..good.len() - 1], format!("{good}x"), good.to_lowercase());
    for token in [&expired, revoked["secret"].as_str().unwrap(), "", "tp_", "x", shorter, &longer, &other, id]
    {
        let path = format!("/runs/{}", private.made.run.id);
        server.by(token).get(&path).problem(401);
        server.by(token).delete(&path).problem(401);
    }
    // The hash in the database is not a valid token.
    let hash: String = digest(good.as_bytes());
    server.by(&hash).get("/runs").problem(401);
    for header in [format!("Basic {good}"), good.clone(), "Bearer".into(), format!("Bearer {good} {good}")] {
        server.anyone().ask("GET", "/runs", &[("authorization", &header)], None).problem(401);
    }
    assert_eq!(private.admin.get("/runs").status, 200);
}

fn with_a_share_link_for_other_runs(kind: Kind) {
    let private = Private::start(kind);
    let hidden = carried(13.0, "eos");
    private.upload.put_all(&hidden);
    let (shown, hidden) = (private.made.run.id, hidden.run.id);
    let share = private.read.post("/shares", &json!({ "ids": [shown], "expires_in_days": 1 })).json();
    let guest = private.server.by(share["secret"].as_str().unwrap());
    for page in ["", "/summary", "/scores", "/log", "/log/lines"] {
        assert_eq!(guest.get(&format!("/runs/{shown}{page}")).status, 200);
        guest.get(&format!("/runs/{hidden}{page}")).problem(403);
        // A visitor does not learn which runs exist.
        guest.get(&format!("/runs/{}{page}", Uuid::now_v7())).problem(403);
    }
    assert_eq!(guest.get(&format!("/compare?ids={shown}")).status, 200);
    guest.get(&format!("/compare?ids={shown},{hidden}")).problem(403);
    guest.get(&format!("/compare?ids={hidden}")).problem(403);
    for path in ["/runs", "/progress", "/shares", "/tokens", "//metrics", &format!("/runs?recipe={shown}")] {
        guest.get(path).problem(403);
    }
    assert_eq!(stream_status(&guest), 403);
    assert_eq!(guest.put(&made(12.39).run).status, 403);
    assert_eq!(guest.delete(&format!("/runs/{shown}")).status, 403);
    guest.post("/shares", &json!({ "ids": [shown], "expires_in_days": 1 })).problem(403);
    // A deleted run is also gone for visitors.
    assert_eq!(private.admin.delete(&format!("/runs/{shown}")).status, 204);
    guest.get(&format!("/runs/{shown}")).problem(401);
}

fn with_the_share_link_of_another_token(kind: Kind) {
    let private = Private::start(kind);
    let ids = json!({ "ids": [private.made.run.id], "expires_in_days": 1 });
    let share = private.read.post("/shares", &ids).json();
    let path = format!("/shares/{}", share["id"].as_str().unwrap());
    assert_eq!(private.upload.json("/shares")["items"], json!([]), "it is not theirs");
    private.upload.delete(&path).problem(404);
    private.server.by(share["secret"].as_str().unwrap()).delete(&path).problem(403);
    assert_eq!(private.read.json("/shares")["items"].as_array().unwrap().len(), 1);
    assert!(!private.admin.json("/shares").to_string().contains(share["secret"].as_str().unwrap()));
    assert_eq!(private.admin.delete(&path).status, 204);
}

fn a_path_out_of_the_store(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let secret = server.place.dir().join("secret.zst");
    std::fs::write(&secret, zstd::encode_all(&b"secret"[..], 1).unwrap()).unwrap();
    for id in
        ["..", "%2e%2e", "..%2f..%2fsecret", "%2e%2e%2fsecret.zst", "..%5csecret", "%00", "a%00b", "%ff", "."]
    {
        for page in ["", "/log", "/log/lines", "/summary", "/scores"] {
            let answer = owner.get(&format!("/runs/{id}{page}"));
            assert!([400, 404].contains(&answer.status), "{id}{page}: {}", answer.status);
            assert!(!answer.text().contains("secret\n"), "{id}{page}");
        }
    }
    for path in
        ["//../../etc/passwd", "//%2e%2e/%2e%2e/etc/passwd", "//..%2f..%2fetc/passwd", "//assets/../../x"]
    {
        assert_ne!(owner.get(path).status, 200, "{path}");
    }
    // Invalid paths.
    for target in ["../../etc/passwd", "*", "http://[::1", "/api/v1/runs/\u{1}"] {
        let mut wire = server.wire();
        write!(wire, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let answer = read_all(&mut wire);
        assert!(!answer.starts_with("HTTP/1.1 2") && !answer.contains("root:"), "{target}: {answer}");
    }
    // The hash in a result file becomes a file name, so only a hash is accepted.
    let text = String::from_utf8(file_of(&made(12.39).run)).unwrap();
    let hash = made(12.39).run.source.sha256;
    for other in ["../../secret", "", "../store.sqlite", &hash.to_uppercase(), &"../".repeat(21), "\\u0000"] {
        let file = text.replace(&hash, other).into_bytes();
        let id = made(12.39).run.id;
        let put =
            owner.ask("PUT", &format!("/runs/{id}"), &[("content-digest", &digest(&file))], Some(&file));
        assert!(put.problem(422).contains("source.sha256"), "{other}");
        owner.put_log(id, 0, true, b"secret").problem(404);
        assert!(secret.exists());
    }
    assert!(server.place.blobs().is_empty(), "{:?}", server.place.blobs());
}

#[test]
fn a_small_body_that_decompresses_to_a_large_one() {
    let server = Server::start();
    let (owner, run) = (server.owner(), made(12.39).run);
    // 4 GiB of zeros.
    let mut bomb = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let zeros = vec![0; 1 << 24];
    for _ in 0..256 {
        bomb.write_all(&zeros).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    let (digest, path) = (digest(&bomb), format!("/runs/{}", run.id));
    let headers = [("content-digest", digest.as_str()), ("content-encoding", "zstd")];
    owner.ask("PUT", &path, &headers, Some(&bomb)).problem(413);
    assert!(server.peak_memory() < 512 << 20, "{} bytes", server.peak_memory());

    let small = Options { arguments: &["--max-log-bytes", "1000000000"], ..Options::default() };
    let server = Server::with(&Place::local(), &small);
    assert_eq!(server.owner().put(&run).status, 201);
    let headers = [("upload-offset", "0"), ("upload-complete", "?1"), ("content-encoding", "zstd")];
    server.owner().ask("PUT", &format!("{path}/log"), &headers, Some(&bomb)).problem(413);
    assert!(server.peak_memory() < 512 << 20, "{} bytes", server.peak_memory());
    // A frame that requires excessive memory.
    let mut wide = zstd::Encoder::new(Vec::new(), 1).unwrap();
    wide.window_log(30).unwrap();
    wide.write_all(&zeros).unwrap();
    let wide = wide.finish().unwrap();
    let offset = server.owner().offset(run.id).unwrap().to_string();
    let headers =
        [("upload-offset", offset.as_str()), ("upload-complete", "?0"), ("content-encoding", "zstd")];
    server.owner().ask("PUT", &format!("{path}/log"), &headers, Some(&wide)).problem(422);
}

#[test]
fn a_forged_login_header() {
    let place = Place::local();
    let behind = |proxy| {
        let arguments = ["--read", "private", "--login-header", "x-user", "--trusted-proxy", proxy];
        Server::with(&place, &Options { arguments: &arguments, ..Options::default() })
    };
    let ann = [("x-user", "ann")];
    let server = behind("10.0.0.1");
    server.anyone().ask("GET", "/runs", &ann, None).problem(401);
    let forwarded = [("x-user", "ann"), ("x-forwarded-for", "10.0.0.1"), ("forwarded", "for=10.0.0.1")];
    server.anyone().ask("GET", "/runs", &forwarded, None).problem(401);
    drop(server);

    let server = behind("127.0.0.1");
    assert_eq!(server.anyone().ask("GET", "/runs", &ann, None).status, 200);
    assert_eq!(server.anyone().ask("GET", "/me", &ann, None).json()["name"], "ann");
    // A person who is logged in may only read; a second header is ignored.
    server.anyone().ask("GET", "/tokens", &ann, None).problem(403);
    server.anyone().ask("DELETE", &format!("/runs/{}", Uuid::now_v7()), &ann, None).problem(403);
    server.anyone().ask("GET", "/runs", &[("x-user", "ann"), ("x-user", "bob")], None).problem(401);
    server.anyone().ask("GET", "/runs", &[("x-user", " ")], None).problem(401);
    drop(server);

    let alone =
        Server::try_with(&place, &Options { arguments: &["--login-header", "x-user"], ..Options::default() });
    assert!(alone.unwrap_err().contains("--trusted-proxy"));
}

#[test]
fn a_login_that_is_the_id_of_a_token() {
    let place = Place::local();
    let arguments = ["--login-header", "x-user", "--trusted-proxy", "127.0.0.1", "--read", "private"];
    let server = Server::with(&place, &Options { arguments: &arguments, ..Options::default() });
    let (owner, run) = (server.owner(), made(12.39).run);
    assert_eq!(owner.put(&run).status, 201);
    let body = json!({ "ids": [run.id], "expires_in_days": 1 });
    let token = owner.post("/tokens", &json!({ "name": "x", "scope": "read" })).json();
    let (token, id) =
        (server.by(token["secret"].as_str().unwrap()), token["id"].as_str().unwrap().to_owned());
    let shared = |share: Value| format!("/shares/{}", share["id"].as_str().unwrap());
    let [of_token, of_owner] = [&token, &owner].map(|client| shared(client.post("/shares", &body).json()));
    let ask = |method: &str, path: &str, login: &str| {
        let text = body.to_string();
        let sent = (method == "POST").then_some(text.as_bytes());
        server.anyone().ask(method, path, &[("x-user", login)], sent)
    };
    let listed = |login: &str| ask("GET", "/shares", login).json()["items"].as_array().unwrap().len();
    for (login, path) in [(id.as_str(), &of_token), ("owner", &of_owner)] {
        assert_eq!(listed(login), 0, "{login}");
        ask("DELETE", path, login).problem(404);
        let own = shared(ask("POST", "/shares", login).json());
        assert_eq!(listed(login), 1, "{login}");
        token.delete(&own).problem(404);
        assert_eq!(ask("DELETE", &own, login).status, 204);
    }
    assert_eq!(token.json("/shares")["items"].as_array().unwrap().len(), 1);
    // A link of a person that an earlier version stored.
    let own = shared(ask("POST", "/shares", "ann").json());
    change(&place.address(), "UPDATE shares SET created_by = 'ann' WHERE created_by = 'login:ann'");
    assert_eq!((listed("ann"), listed("bob")), (1, 0));
    assert_eq!(ask("DELETE", &own, "ann").status, 204);
    for path in [of_token, of_owner] {
        assert_eq!(owner.delete(&path).status, 204);
    }
}

#[test]
fn a_browser_without_tls() {
    let plain = Server::start();
    let behind = ["--listen", "127.0.0.1:0", "--behind-tls"];
    let behind = Server::with(&Place::local(), &Options { arguments: &behind, ..Options::default() });
    for path in ["//", "//healthz", "/runs", "//api/v1/nothing"] {
        let hsts = |server: &Server| {
            server.anyone().ask("GET", path, &[], None).header("strict-transport-security").map(str::to_owned)
        };
        assert_eq!((hsts(&plain), hsts(&behind)), (None, Some("max-age=31536000".into())), "{path}");
    }
    // Behind a proxy, no token is printed, and reading needs one.
    assert_eq!(behind.owner, "");
    behind.anyone().get("/runs").problem(401);
}

#[test]
fn a_cross_site_request() {
    let place = Place::local();
    let arguments = ["--read", "public", "--login-header", "x-user", "--trusted-proxy", "127.0.0.1"];
    let server = Server::with(&place, &Options { arguments: &arguments, ..Options::default() });
    let run = made(12.39).run;
    assert_eq!(server.owner().put(&run).status, 201);
    let share = json!({ "ids": [run.id], "expires_in_days": 1 }).to_string();
    let ask = |more: &[(&str, &str)]| {
        let headers = [&[("x-user", "ann")], more].concat();
        server.anyone().ask("POST", "/shares", &headers, Some(share.as_bytes())).status
    };
    for site in ["cross-site", "same-site", "anything"] {
        assert_eq!(ask(&[("sec-fetch-site", site)]), 403, "{site}");
    }
    let own = format!("http://{}", server.address);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", &own.replace("http://", "")] {
        assert_eq!(ask(&[("origin", origin)]), 403, "{origin}");
    }
    assert_eq!(server.owner().json("/shares")["items"], json!([]));
    assert_eq!(ask(&[("sec-fetch-site", "same-origin")]), 201);
    assert_eq!(ask(&[("origin", &own)]), 201);
    // Pages of other sites can't read answers either: there are no CORS headers.
    let answer =
        server.anyone().ask("GET", "/runs", &[("origin", "http://evil.example"), ("x-user", "ann")], None);
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
}

#[test]
fn guessing_tokens() {
    let server = Server::start();
    let token = server.place.token("read", &[]);
    let guess = |number| server.by(&format!("tp_{number:030}")).get("/runs").status;
    let answers: Vec<u16> = (0..100).map(guess).collect();
    assert_eq!(answers[0], 401);
    assert!(answers.contains(&429));
    // Valid tokens still work.
    assert_eq!(server.by(&token).get("/runs").status, 200);
    assert_eq!(server.anyone().get("/runs").status, 200);
}

fn broken_deep_or_huge_json(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let run = carried(12.39, "eos").run;
    let (path, good) = (format!("/runs/{}", run.id), file_of(&run));
    let put = |body: &[u8]| {
        let answer = owner.ask("PUT", &path, &[("content-digest", &digest(body))], Some(body));
        answer.problem(422);
    };
    let deep = |open: &str| format!("{{\"version\":1,\"x\":{}", open.repeat(200_000));
    put(deep("[").as_bytes());
    put(deep("{\"a\":").as_bytes());
    let text = String::from_utf8(good.clone()).unwrap();
    put(text.replacen("12.39", "1e999", 1).as_bytes());
    put(text.replacen("\"version\":1", "\"version\":99999999999999999999999", 1).as_bytes());
    put(text.replacen("\"repeat\":1", "\"repeat\":-1", 1).as_bytes());
    put(text.replacen("\"repeat\":1", "\"repeat\":4294967296", 1).as_bytes());
    let mut bad = good.clone();
    bad[good.len() / 2] = 0xff;
    put(&bad);
    for body in [
        &b"\xff\xfe"[..],
        b"null",
        b"[]",
        b"\"",
        b"{\"name\":\"x\",\"name\":\"y\",\"scope\":\"read\"}",
        deep("[").as_bytes(),
    ] {
        let answer = owner.ask("POST", "/tokens", &[], Some(body));
        assert!([413, 422].contains(&answer.status), "{}", answer.text());
    }

    // A broken or changed file is refused or stored as another result.
    let mut runner = TestRunner::new(ProptestConfig {
        // They are read alike with every store.
        cases: if kind == Kind::Local { 200 } else { 40 },
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let changes = (0..good.len(), any::<u8>(), 0..3_u8);
    let result = runner.run(&changes, |(at, byte, how)| {
        let body = match how {
            0 => good[..at].to_vec(),
            1 => [&good[..at], &[byte], &good[at..]].concat(),
            _ => [&good[..at], &[byte], &good[at + 1..]].concat(),
        };
        let answer = owner.ask("PUT", &path, &[("content-digest", &digest(&body))], Some(&body));
        match answer.status {
            201 => {
                // What was stored can be listed, read and compared.
                assert_eq!(owner.get(&format!("{path}?upload")).body, body);
                assert_eq!(owner.get(&format!("/compare?ids={}", run.id)).status, 200);
                assert_eq!(owner.all(""), [run.id.to_string()]);
                assert_eq!(owner.delete(&path).status, 204);
                assert_eq!(owner.ask("POST", &format!("{path}/restore"), &[], Some(b"")).status, 204);
            }
            status => prop_assert_eq!(status, 422, "{}", answer.text()),
        }
        Ok(())
    });
    result.unwrap();
}

/// Texts that mean something to SQL, or to what is around it.
const INJECTIONS: [&str; 12] = [
    "'",
    "' OR '1'='1",
    "\" OR 1=1 --",
    "x'; DROP TABLE runs; --",
    "x') UNION SELECT secret FROM tokens --",
    "$1",
    "?",
    "%",
    "_",
    "\\",
    "\0",
    "eos\u{202e}'\u{0}",
];

fn sql_in_every_filter(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), carried(12.39, "eos"));
    owner.put_all(&made);
    let id = made.run.id;
    for text in INJECTIONS {
        let value = encoded(text);
        for filter in [
            "recipe", "cluster", "campaign", "status", "model", "gpu", "gpus", "dtype", "line", "since",
            "until", "sort", "limit", "cursor",
        ] {
            let answer = owner.get(&format!("/runs?{filter}={value}"));
            match answer.status {
                200 => assert_eq!(answer.json()["items"], json!([]), "{filter}={text}"),
                _ => assert!(!answer.problem(400).is_empty()),
            }
        }
        for cursor in [format!("1{text}_{id}_mfu"), format!("_{id}{text}_mfu"), format!("1_{id}_mfu{text}")] {
            owner.get(&format!("/runs?sort=mfu&cursor={}", encoded(&cursor))).problem(400);
        }
        let lines = owner.json(&format!("/runs/{id}/log/lines?q={value}"));
        let plain = String::from_utf8(made.log.clone()).unwrap();
        let expected = plain.lines().filter(|line| line.contains(text)).count();
        assert_eq!(lines["items"].as_array().unwrap().len(), expected, "{text}");
        for path in [format!("/runs/{value}"), format!("/compare?ids={value}")] {
            owner.get(&path).problem(404);
        }
        for path in [format!("/tokens/{value}"), format!("/shares/{value}")] {
            owner.delete(&path).problem(404);
        }
        let token = owner.post("/tokens", &json!({ "name": text, "scope": "read" }));
        assert!([201, 422].contains(&token.status), "{text}: {}", token.text());
        // In a result, it is data and can be found.
        let mut other = carried(12.0, text);
        let carried = other.run.carried.as_mut().unwrap();
        (carried.campaign, carried.run) = (text.into(), text.into());
        other.run.source.path = text.into();
        assert_eq!(owner.put(&other.run).status, 201, "{text}");
        let summary = owner.json(&format!("/runs/{}/summary", other.run.id));
        if !text.contains('\0') {
            assert_eq!((&summary["cluster"], &summary["path"]), (&json!(text), &json!(text)));
            assert_eq!(owner.all(&format!("cluster={value}&campaign={value}")), [other.run.id.to_string()]);
        }
        let mut word = progress(1);
        for field in ["campaign", "run", "cluster", "recipe", "state"] {
            word[field] = Value::from(text);
        }
        let live = Uuid::now_v7();
        assert_eq!(owner.post(&format!("/runs/{live}/progress"), &word).status, 204, "{text}");
        assert_eq!(owner.json("/progress")["items"][0]["cluster"], text);
        assert_eq!(owner.delete(&format!("/runs/{}", other.run.id)).status, 204);
    }
    assert_eq!(owner.all(""), [id.to_string()]);
}

#[test]
fn secrets_in_output_and_responses() {
    let place = Place::new(Kind::Shared);
    let arguments = ["--requests-per-minute", "100"];
    let environment = [("RUST_LOG", "trace")];
    let server = Server::with(&place, &Options { arguments: &arguments, environment: &environment, by: &[] });
    let (owner, made) = (server.owner(), carried(12.39, "eos"));
    owner.put_all(&made);
    let token = owner.post("/tokens", &json!({ "name": "x", "scope": "upload" })).json();
    let token = token["secret"].as_str().unwrap();
    let share = owner.post("/shares", &json!({ "ids": [made.run.id], "expires_in_days": 1 })).json();
    let share = share["secret"].as_str().unwrap();
    let guess = "tp_guessedguessedguessedguessed01";
    for secret in [token, share, guess] {
        server.by(secret).get(&format!("/runs/{}", made.run.id));
        // Someone may put it into the wrong place.
        server.anyone().get(&format!("/runs?token={secret}"));
    }
    assert_eq!(owner.get(&format!("/runs/{}/log", made.run.id)).body, made.log);
    owner.delete("/runs/x").problem(404);
    let announced = format!("#token={}", server.owner);
    let said = server.output();
    assert!(said.contains("answered with"), "{said}");
    assert_eq!(said.matches(&announced).count(), 1);
    let said = said.replace(&announced, "");
    for secret in [&*server.owner, token, share, guess, PASSWORD, S3_SECRET] {
        let line = said.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
    // Also not in errors.
    let wrong =
        Place::local().with_database(place.database.clone().unwrap().replace("127.0.0.1:", "127.0.0.1:1"));
    let said =
        Server::try_with(&wrong, &Options { environment: &environment, ..Options::default() }).unwrap_err();
    assert!(said.contains("postgres://trainplan@") && !said.contains(PASSWORD), "{said}");
}

fn a_binary_log(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let long = vec![b'y'; 100_000];
    let odd = [&log(12.39, 50)[..], b"\xff\xfe\0\x1b[31m<script>alert(1)</script>\r\n", &long].concat();
    let made = made_of(odd);
    owner.put_all(&made);
    let answer = owner.get(&format!("/runs/{}/log", made.run.id));
    assert_eq!(answer.body, made.log);
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert!(answer.header("content-disposition").unwrap().starts_with("attachment"));
    let lines = owner.json(&format!("/runs/{}/log/lines?from=51", made.run.id));
    assert_eq!(lines["items"].as_array().unwrap().len(), 2);
    assert_eq!(lines["items"][1]["text"].as_str().unwrap().len(), 4096);
}

#[test]
fn a_proxy_before_a_loopback_address() {
    let start = |more: &[&str]| {
        let arguments = [&["--trusted-proxy", "127.0.0.1"], more].concat();
        Server::try_with(&Place::local(), &Options { arguments: &arguments, ..Options::default() })
    };
    let said = start(&[]).map(|server| server.output()).unwrap_err();
    assert!(said.contains("--behind-tls") && said.contains("--read private"), "{said}");
    start(&["--behind-tls"]).unwrap().anyone().get("/runs").problem(401);
    start(&["--read", "private"]).unwrap().anyone().get("/runs").problem(401);
    assert_eq!(start(&["--read", "public"]).unwrap().anyone().get("/runs").status, 200);
}
