//! Every operation of the OpenAPI document with every kind of credential, by every method and with odd parameters. All of it is
//! generated from the document, so that an operation that is added without protection fails here.

use crate::document::{operations, query_parameters, security};
use crate::harness::{Kind, Options, Place, Server, carried, encoded, on_every_store, read_head};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufReader, Write};
use uuid::Uuid;

on_every_store! {
    every_operation_needs_the_scope_that_the_document_names
    methods_that_the_document_does_not_name_are_refused
    odd_values_of_every_parameter_are_answered
}

/// Scopes in order: each includes those before it.
const SCOPES: [&str; 3] = ["read", "upload", "admin"];

/// Methods of HTTP, one of WebDAV, and one that differs in case.
const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"];

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Someone without any credential.
    Anyone,
    /// Someone whose credential is unknown, revoked or malformed.
    Invalid,
    /// A visitor with a share link of another run.
    Guest,
    /// Someone whose token or login has this scope.
    Has(&'static str),
}

/// A caller, with the headers of its requests.
struct Caller {
    what: &'static str,
    who: Who,
    headers: Vec<(&'static str, String)>,
}

/// Starts a server behind a proxy that names people, which lets everyone read or nobody without a token.
fn start(kind: Kind, read: &str) -> Server {
    let arguments = ["--read", read, "--trusted-proxy", "127.0.0.1", "--login-header", "x-user"];
    let arguments = [&arguments[..], &["--requests-per-minute", "4000000000"]].concat();
    Server::with(&Place::new(kind), &Options { arguments: &arguments, ..Options::default() })
}

/// Returns a caller of each kind; the share link shows this run.
fn callers(server: &Server, shown: Uuid) -> Vec<Caller> {
    let owner = server.owner();
    let token = |scope: &str| owner.post("/tokens", &json!({ "name": scope, "scope": scope })).json();
    let revoked = token("admin");
    assert_eq!(owner.delete(&format!("/tokens/{}", revoked["id"].as_str().unwrap())).status, 204);
    let share = owner.post("/shares", &json!({ "ids": [shown], "expires_in_days": 1 })).json();
    let bearer = |secret: &str| vec![("authorization", format!("Bearer {secret}"))];
    let with = |what, who, secret: &str| Caller { what, who, headers: bearer(secret) };
    let mut all = vec![
        Caller { what: "nobody", who: Who::Anyone, headers: Vec::new() },
        with("an unknown token", Who::Invalid, "tp_unknownunknownunknownunknown01"),
        with("a revoked token", Who::Invalid, revoked["secret"].as_str().unwrap()),
        with("an empty token", Who::Invalid, ""),
        Caller {
            what: "another scheme",
            who: Who::Invalid,
            headers: vec![("authorization", format!("Basic {}", server.owner))],
        },
        with("a share link", Who::Guest, share["secret"].as_str().unwrap()),
        Caller { what: "a person", who: Who::Has("read"), headers: vec![("x-user", "ann".into())] },
        with("the owner", Who::Has("admin"), &server.owner),
    ];
    for scope in SCOPES {
        all.push(with(scope, Who::Has(scope), token(scope)["secret"].as_str().unwrap()));
    }
    all
}

/// Returns the status with which an operation is refused; none if it is allowed.
fn refusal(needed: &[Option<String>], who: Who, is_public: bool) -> Option<u16> {
    let rank = |scope: &str| SCOPES.iter().position(|known| *known == scope).unwrap();
    let scope = needed.iter().flatten().next();
    match (who, scope) {
        (Who::Invalid, _) => Some(401),
        (_, None) => None,
        (Who::Anyone, _) if is_public && needed.contains(&None) => None,
        (Who::Anyone, _) => Some(401),
        (Who::Guest, _) => Some(403),
        (Who::Has(has), Some(scope)) => (rank(has) < rank(scope)).then_some(403),
    }
}

/// Returns who may call an operation.
fn needed(method: &str, template: &str) -> Vec<Option<String>> {
    security(method, template)
        .unwrap_or_else(|| panic!("{method} {template}: the document does not say who may call it"))
}

/// Returns the path of an operation on a run, token or share link.
fn path(template: &str, id: &str) -> String {
    let query = if template == "/compare" { format!("?ids={id}") } else { String::new() };
    template.replace("{id}", id) + &query
}

/// Sends a request without a body, as if from another address each time; returns the head and the status of its answer.
/// Every error must be a problem in JSON.
fn ask(server: &Server, method: &str, path: &str, headers: &[(&'static str, String)]) -> (String, u16) {
    // One address may send only a few invalid tokens.
    let address = [(); 3].map(|()| fastrand::u8(..));
    let mut head = format!("{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    head += &format!("X-Forwarded-For: 10.{}.{}.{}\r\n", address[0], address[1], address[2]);
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut wire = server.wire();
    write!(wire, "{head}Content-Length: 0\r\n\r\n").unwrap();
    let answer = read_head(&mut BufReader::new(wire));
    let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("{method} {path}: no answer"));
    let status: u16 = status.parse().unwrap();
    let is_problem = answer.contains("content-type: application/problem+json");
    assert!(status < 400 || is_problem, "{method} {path}: {answer}");
    assert!(status < 500, "{method} {path}: {answer}");
    (answer, status)
}

/// Asserts that someone is refused, or not.
fn assert_refusal(refusal: Option<u16>, status: u16, asked: &str) {
    match refusal {
        Some(refusal) => assert_eq!(status, refusal, "{asked}"),
        None => assert!(![401, 403, 405].contains(&status), "{asked}: {status}"),
    }
}

fn every_operation_needs_the_scope_that_the_document_names(kind: Kind) {
    for read in ["private", "public"] {
        let server = start(kind, read);
        let (shown, hidden) = (carried(12.0, "eos"), carried(13.0, "eos"));
        for made in [&shown, &hidden] {
            server.owner().put_all(made);
        }
        let callers = callers(&server, shown.run.id);
        for (method, template) in operations() {
            let needed = needed(&method, &template);
            for caller in &callers {
                let refusal = refusal(&needed, caller.who, read == "public");
                let mut ids = vec![Uuid::now_v7()];
                // Who is refused does not learn whether the run exists. Who is not might delete it.
                ids.extend(refusal.map(|_| hidden.run.id));
                for id in ids {
                    let path = path(&template, &id.to_string());
                    let (_, status) = ask(&server, &method, &path, &caller.headers);
                    assert_refusal(refusal, status, &format!("{method} {path} by {}, {read}", caller.what));
                }
            }
        }
        assert_eq!(server.owner().all("").len(), 2);
    }
}

#[test]
fn few_operations_need_no_token() {
    let of = |(method, template): (String, String)| (needed(&method, &template), method, template);
    let all: Vec<_> = operations().into_iter().map(of).collect();
    let open = all.iter().filter(|(needed, ..)| needed.iter().all(Option::is_none));
    let open: Vec<_> = open.map(|(_, method, template)| format!("{method} {template}")).collect();
    assert_eq!(open, ["GET /limits", "GET /me"]);
    // A server that everyone can read can't be changed by everyone.
    for (needed, method, template) in all.iter().filter(|(needed, ..)| needed.contains(&None)) {
        let is_read = needed.iter().flatten().all(|scope| scope == "read");
        assert!(matches!(&**method, "GET" | "HEAD") && is_read, "{method} {template}: {needed:?}");
    }
}

fn methods_that_the_document_does_not_name_are_refused(kind: Kind) {
    let server = start(kind, "private");
    let shown = carried(12.0, "eos");
    server.owner().put_all(&shown);
    let mut callers = callers(&server, shown.run.id);
    callers.retain(|caller| ["nobody", "a revoked token", "read", "admin"].contains(&caller.what));
    let known: BTreeSet<(String, String)> = operations().into_iter().collect();
    let templates: BTreeSet<&String> = known.iter().map(|(_, template)| template).collect();
    for template in templates {
        let has = |method: &str| known.contains(&(method.to_owned(), template.clone()));
        for method in METHODS {
            // HEAD is answered like GET.
            let is_get = method == "HEAD" && has("GET");
            for caller in callers.iter().filter(|_| !has(method)) {
                let refusal = match caller.who {
                    who if is_get => refusal(&needed("GET", template), who, false),
                    Who::Invalid => Some(401),
                    _ => Some(405),
                };
                let path = path(template, &Uuid::now_v7().to_string());
                let (head, status) = ask(&server, method, &path, &caller.headers);
                assert_refusal(refusal, status, &format!("{method} {path} by {}", caller.what));
                // RFC 9110 requires the list of methods.
                assert!(status != 405 || head.contains("allow: "), "{method} {path}: {head}");
            }
        }
    }
}

/// The server neither waits for a body that it will refuse, nor keeps it in memory.
#[test]
fn whoever_is_refused_sends_no_body() {
    let server = start(Kind::Local, "private");
    let shown = carried(12.0, "eos");
    server.owner().put_all(&shown);
    let mut callers = callers(&server, shown.run.id);
    callers.retain(|caller| ["nobody", "read", "upload"].contains(&caller.what));
    for (method, template) in operations() {
        for caller in &callers {
            let Some(refusal) = refusal(&needed(&method, &template), caller.who, false) else { continue };
            let path = path(&template, &shown.run.id.to_string());
            let mut head = format!("{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n");
            for (name, value) in &caller.headers {
                head += &format!("{name}: {value}\r\n");
            }
            // A server that reads the body says first that it may be sent.
            let mut wire = server.wire();
            write!(wire, "{head}Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n").unwrap();
            let answer = read_head(&mut BufReader::new(wire));
            let expected = format!("HTTP/1.1 {refusal} ");
            assert!(answer.starts_with(&expected), "{method} {path} by {}: {answer}", caller.what);
        }
    }
}

/// Returns values that are not numbers, are too large, or have a meaning in SQL, paths or headers, encoded for a URL.
fn odd_values() -> Vec<String> {
    let texts = [
        "",
        "\0",
        "a\0b",
        "-1",
        "0",
        "+1",
        " 1",
        "1.5",
        "1e999",
        "NaN",
        "inf",
        "18446744073709551616",
        "*",
        "%_\\",
        "'",
        "\"",
        "\r\nX: y",
        "..",
        "../..",
        "😀",
        "\u{202e}",
        "[]",
        "{}",
        "$1",
    ];
    let mut all: Vec<String> = texts.map(encoded).into();
    // The first two are not UTF-8, and the last two are not valid encodings.
    all.extend(["%FF%FE", "%ED%A0%80", "%", "%zz"].map(str::to_owned));
    all
}

fn odd_values_of_every_parameter_are_answered(kind: Kind) {
    let server = start(kind, "private");
    let made = carried(12.0, "eos");
    server.owner().put_all(&made);
    let headers = [("authorization", format!("Bearer {}", server.owner))];
    for (method, template) in operations() {
        for value in odd_values() {
            for name in query_parameters(&method, &template) {
                let path = template.replace("{id}", &made.run.id.to_string());
                ask(&server, &method, &format!("{path}?{name}={value}"), &headers);
                let repeated = format!("{path}?{name}=1&{name}={value}");
                let (_, status) = ask(&server, &method, &repeated, &headers);
                assert_eq!(status, 400, "{method} {repeated}");
            }
            if template.contains("{id}") && !value.is_empty() {
                let (_, status) = ask(&server, &method, &path(&template, &value), &headers);
                assert!((400..500).contains(&status), "{method} {template}, {value}: {status}");
            }
        }
    }
    assert_eq!(server.owner().all(""), [made.run.id.to_string()]);
}
