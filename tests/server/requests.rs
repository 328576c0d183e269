//! Requests with small faults, which are refused with a reason instead of being understood in one way or another.

use crate::harness::{Kind, Place, Server, carried, digest, file_of, on_every_store, progress, read_all};
use serde_json::{Value, json};
use std::io::Write;

on_every_store! {
    a_share_link_names_each_run_once
    lifetimes_and_quotas_that_do_not_fit_are_refused
}

#[test]
fn a_second_authorization_header_is_refused() {
    let server = Server::start();
    let owner = server.owner();
    for second in [format!("Bearer {}", server.owner), "Bearer tp_x".into(), "Basic eDp5".into()] {
        for path in ["/runs", "/limits", "//metrics"] {
            let detail = owner.ask("GET", path, &[("authorization", &second)], None).problem(400);
            assert!(detail.contains("several Authorization headers"), "{path}: {detail}");
        }
    }
    assert_eq!(owner.get("/runs").status, 200);
}

fn a_share_link_names_each_run_once(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, run) = (server.owner(), carried(12.0, "eos").run);
    assert_eq!(owner.put(&run).status, 201);
    let id = run.id.to_string();
    for other in [id.clone(), id.to_uppercase(), id.replace('-', "")] {
        let share = json!({ "ids": [id, other], "expires_in_days": 1 });
        let detail = owner.post("/shares", &share).problem(422);
        assert!(detail.starts_with(&format!("ids names {id} twice")), "{detail}");
    }
    assert_eq!(owner.json("/shares")["items"], json!([]));
}

fn lifetimes_and_quotas_that_do_not_fit_are_refused(kind: Kind) {
    const LARGEST: u64 = i64::MAX as u64;
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let create = |field: &str, value: Value| {
        let mut token = json!({ "name": "x", "scope": "read" });
        token[field] = value;
        owner.post("/tokens", &token)
    };
    // The first of each list are numbers that the API can express.
    for (field, named, others) in [
        (
            "expires_in_days",
            [json!(0), json!(36_501), json!(3_000_000), json!(u32::MAX)].to_vec(),
            [json!(1_u64 << 32), json!(u64::MAX), json!(-1), json!(1e300), json!(1.5)],
        ),
        (
            "quota_bytes",
            [json!(LARGEST + 1), json!(u64::MAX)].to_vec(),
            [json!(-1), json!(1e300), json!(1.5), json!("1"), json!([])],
        ),
    ] {
        for value in named {
            let detail = create(field, value.clone()).problem(422);
            assert!(detail.starts_with(&format!("{field} is {value}, but must be ")), "{detail}");
        }
        for value in others {
            create(field, value).problem(422);
        }
    }
    let share = json!({ "ids": [], "expires_in_days": u32::MAX });
    assert!(owner.post("/shares", &share).problem(422).starts_with("expires_in_days is 4294967295"));
    assert_eq!(owner.json("/tokens")["items"], json!([]));

    // The command line accepts longer ones, but none becomes unlimited or the server's default.
    server.place.token("read", &["--expires", "5000000d", "--quota-bytes", &u64::MAX.to_string()]);
    let token = owner.json("/tokens")["items"][0].clone();
    assert!(token["expires_at"].as_str().unwrap().starts_with("9999-"), "{token}");
    assert_eq!(token["quota_bytes"], LARGEST);
    let token = create("quota_bytes", json!(LARGEST));
    assert_eq!((token.status, &token.json()["quota_bytes"]), (201, &json!(LARGEST)));
    assert_eq!(create("expires_in_days", json!(36_500)).status, 201);
}

#[test]
fn bodies_with_an_unknown_content_encoding_are_refused() {
    let server = Server::start();
    let (owner, run) = (server.owner(), carried(12.0, "eos").run);
    let path = format!("/runs/{}", run.id);
    let token = json!({ "name": "x", "scope": "read" });
    let requests = [
        ("POST", "/tokens".to_owned(), token.clone()),
        ("POST", "/shares".to_owned(), json!({ "ids": [run.id], "expires_in_days": 1 })),
        ("POST", format!("{path}/progress"), progress(1)),
        ("PUT", format!("{path}/acknowledgement"), json!({ "reason": "x" })),
    ];
    for (method, path, body) in &requests {
        for coding in ["gzip", "br", "zstd", "nonsense", "identity, gzip"] {
            let body = body.to_string();
            let answer = owner.ask(method, path, &[("content-encoding", coding)], Some(body.as_bytes()));
            let detail = answer.problem(415);
            assert!(detail.contains("Send the body uncompressed"), "{path}, {coding}: {detail}");
        }
    }
    let (token, identity) = (token.to_string(), [("content-encoding", "identity")]);
    assert_eq!(owner.ask("POST", "/tokens", &identity, Some(token.as_bytes())).status, 201);
    // Of two codings, none is believed.
    let (file, both) = (file_of(&run), ["zstd", "gzip"]);
    let digest = digest(&file);
    let headers = both.map(|coding| ("content-encoding", coding));
    let headers = [&headers[..], &[("content-digest", digest.as_str())]].concat();
    owner.ask("PUT", &path, &headers, Some(&file)).problem(415);
    assert_eq!(owner.put(&run).status, 201);
}

#[test]
fn addresses_almost_of_the_api_are_answered_with_json() {
    let server = Server::start();
    for path in [
        "//api/v1/runs",
        "///api/v1/runs",
        "/api//v1/runs",
        "/api/v1//runs",
        "/api/v2/runs",
        "/api/v1",
        "/api/",
        "/api",
    ] {
        for method in ["GET", "POST"] {
            let mut wire = server.wire();
            write!(
                wire,
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nContent-Length: 0\r\n\
                 Connection: close\r\n\r\n"
            )
            .unwrap();
            let answer = read_all(&mut wire);
            assert!(answer.starts_with("HTTP/1.1 404 "), "{method} {path}: {answer}");
            assert!(answer.contains("content-type: application/problem+json"), "{method} {path}: {answer}");
            assert!(answer.contains("x-content-type-options: nosniff"), "{method} {path}: {answer}");
        }
    }
}

#[test]
fn hundreds_of_query_parameters_are_refused() {
    let server = Server::start();
    let (owner, made) = (server.owner(), carried(12.0, "eos"));
    owner.put_all(&made);
    let run = format!("/runs/{}", made.run.id);
    let many = |parameter: &str, count: usize| vec![parameter; count].join("&");
    for (method, path, parameter) in [
        ("GET", "/runs".to_owned(), "recipe=x"),
        ("GET", "/history".to_owned(), "recipe=x"),
        ("GET", "/history".to_owned(), "sigma=3"),
        ("GET", "/compare".to_owned(), "window=last"),
        ("GET", format!("{run}/log/lines"), "q=x"),
        ("POST", format!("{run}/scores"), "recipe=x"),
        ("GET", "/limits".to_owned(), "x"),
    ] {
        let path = format!("{path}?{}", many(parameter, 300));
        let detail = owner.ask(method, &path, &[], None).problem(422);
        assert!(detail.contains("300 parameters; at most 64"), "{detail}");
    }
    // So many are read.
    assert!(owner.get(&format!("/runs?{}", many("recipe=x", 64))).problem(400).contains("repeats"));
    // What is between two separators may be nothing.
    assert_eq!(owner.get(&format!("/runs?{}", many("", 300))).status, 200);
}

#[test]
fn repeated_query_parameters_are_refused() {
    let server = Server::start();
    let (owner, made) = (server.owner(), carried(12.0, "eos"));
    owner.put_all(&made);
    let run = format!("/runs/{}", made.run.id);
    for (method, path, name, values) in [
        ("GET", "/runs".to_owned(), "limit", ["1", "2"]),
        ("GET", "/runs".to_owned(), "limit", ["1", "1"]),
        ("GET", "/runs".to_owned(), "recipe", ["", ""]),
        ("GET", "/history".to_owned(), "cluster", ["eos", "dgx"]),
        ("GET", "/history".to_owned(), "sigma", ["3", "4"]),
        ("GET", "/compare".to_owned(), "window", ["last", "last"]),
        ("GET", "/compare".to_owned(), "ids", [&run[6..], &run[6..]]),
        ("GET", format!("{run}/log/lines"), "from", ["1", "2"]),
        ("GET", run.clone(), "upload", ["", ""]),
        ("POST", format!("{run}/scores"), "recipe", ["x", "y"]),
    ] {
        let [one, other] = values;
        // Its name may be encoded, and other parameters may be between the two.
        let encoded = format!("%{:02X}{}", name.as_bytes()[0], &name[1..]);
        for query in [
            format!("{name}={one}&{name}={other}"),
            format!("{name}={one}&gpus=8&{encoded}={other}"),
            format!("{name}&{name}={other}"),
        ] {
            let detail = owner.ask(method, &format!("{path}?{query}"), &[], None).problem(400);
            assert!(detail.starts_with(&format!("The query repeats the parameter \"{name}\"")), "{detail}");
        }
    }
    assert_eq!(owner.get("/runs?limit=1&cluster=eos").status, 200);
}

#[test]
fn query_parameters_that_are_not_utf_8_are_refused() {
    let server = Server::start();
    let (owner, made) = (server.owner(), carried(12.0, "eos"));
    owner.put_all(&made);
    let run = format!("/runs/{}", made.run.id);
    for (method, path, query, name) in [
        ("GET", "/runs".to_owned(), "recipe=%FF", "recipe"),
        ("GET", "/runs".to_owned(), "limit=1&cluster=a%c3", "cluster"),
        ("GET", "/runs".to_owned(), "campaign=%C3%28", "campaign"),
        ("GET", "/history".to_owned(), "line=%ED%A0%80", "line"),
        ("GET", "/compare".to_owned(), "window=%80", "window"),
        ("GET", format!("{run}/log/lines"), "q=x%FE", "q"),
        ("POST", format!("{run}/scores"), "recipe=%FF", "recipe"),
        ("GET", "/runs".to_owned(), "a%FF=1", "a\u{fffd}"),
    ] {
        let detail = owner.ask(method, &format!("{path}?{query}"), &[], None).problem(400);
        assert!(detail.starts_with(&format!("The parameter \"{name}\" is not UTF-8.")), "{detail}");
    }
    // Valid UTF-8, also the character that stands for invalid bytes, and signs that are not escapes.
    for query in ["cluster=%C3%BC", "campaign=%EF%BF%BD", "cluster=%25FF", "q=100%", "q=%zz&from=1"] {
        let path = if query.starts_with("q=") { format!("{run}/log/lines") } else { "/runs".to_owned() };
        assert_eq!(owner.get(&format!("{path}?{query}")).status, 200, "{query}");
    }
}
