//! The server as a whole: its limits, health, metrics, end and restart, and its document.

use crate::document::operations;
use crate::harness::{
    Kind, Place, SOON, Server, carried, digest, file_of, made, on_every_store, progress, read_all, read_head,
    wait_for,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use uuid::Uuid;

on_every_store! {
    limits_health_and_metrics_are_reported
    a_stopping_server_finishes_open_requests
    everything_survives_a_restart
    every_documented_operation_answers
}

fn limits_health_and_metrics_are_reported(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, anyone) = (server.owner(), server.anyone());
    let limits = anyone.json("/limits");
    assert_eq!((&limits["max_page"], &limits["max_compared"]), (&json!(1000), &json!(16)));
    assert_eq!(anyone.get("//healthz").text(), "ok\n");
    assert_eq!(owner.put(&made(12.39).run).status, 201);
    assert_eq!(owner.put(&made(12.39).run).status, 200);
    let metrics = owner.get("//metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let metrics = metrics.text();
    for line in [
        "trainplan_uploads_total{outcome=\"new\"} 1",
        "trainplan_uploads_total{outcome=\"known\"} 1",
        "trainplan_requests_total{method=\"PUT\",route=\"/api/v1/runs/{id}\",status=\"201\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    assert!(metrics.ends_with("# EOF\n"));
    for path in ["/nowhere", "/runs/x", "/runs/%2e%2e", "/runs/%ff", "/runs/a%2Fb", "/tokens/x/y"] {
        let answer = owner.get(path);
        assert!([400, 404].contains(&answer.status), "{path}");
        assert!(!answer.problem(answer.status).is_empty(), "{path}");
    }
    for (method, path) in [("POST", "/limits"), ("DELETE", "/runs"), ("PATCH", "/tokens")] {
        let answer = owner.ask(method, path, &[], if method == "DELETE" { None } else { Some(b"") });
        answer.problem(405);
    }
}

fn a_stopping_server_finishes_open_requests(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let made = made(12.39);
    let (id, file) = (made.run.id, file_of(&made.run));
    let mut wire = server.wire();
    write!(
        wire,
        "PUT /api/v1/runs/{id} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Digest: {}\r\n\
         Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        server.owner,
        digest(&file),
        file.len()
    )
    .unwrap();
    let mut answers = BufReader::new(wire.try_clone().unwrap());
    assert!(read_head(&mut answers).starts_with("HTTP/1.1 100"), "the server waits for the body");
    let mut idle = server.wire();
    server.tell_to_end();
    wait_for("end of taking connections", SOON, || {
        std::net::TcpStream::connect(server.address).is_err().then_some(())
    });
    assert_eq!(read_all(&mut idle), "", "who only waits is let go");
    wire.write_all(&file).unwrap();
    assert!(read_head(&mut answers).starts_with("HTTP/1.1 201"));
    let place = server.place.clone();
    assert!(server.wait());
    assert_eq!(Server::at(&place).anyone().all(""), [id.to_string()]);
}

fn everything_survives_a_restart(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made, half) = (server.owner(), carried(12.39, "eos"), carried(11.0, "eos"));
    owner.put_all(&made);
    assert_eq!(owner.put(&half.run).status, 201);
    assert_eq!(owner.put_log(half.run.id, 0, false, &half.log[..500]).status, 200);
    assert_eq!(owner.post(&format!("/runs/{}/progress", Uuid::now_v7()), &progress(1)).status, 204);
    let token = server.place.token("read", &[]);
    let pages = ["/runs".to_owned(), "/progress".to_owned(), format!("/runs/{}/scores", made.run.id)];
    let before: BTreeMap<_, _> = pages.iter().map(|page| (page, owner.json(page))).collect();
    let old = server.owner.clone();
    let server = server.again();
    let owner = server.owner();
    for (page, before) in before {
        assert_eq!(owner.json(page), before, "{page}");
    }
    assert_eq!(owner.offset(half.run.id), Some(500));
    assert_eq!(owner.put_log(half.run.id, 500, true, &half.log[500..]).status, 200);
    assert_eq!(server.by(&token).json("/me")["scope"], "read");
    server.by(&old).get("/me").problem(401);
}

/// Every answer of every test is checked against the document; here each operation has at least one
/// successful answer.
fn every_documented_operation_answers(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), carried(12.39, "eos"));
    owner.put_all(&made);
    let (id, file) = (made.run.id, file_of(&made.run));
    let token = owner.post("/tokens", &json!({ "name": "x", "scope": "read" })).json();
    let share = owner.post("/shares", &json!({ "ids": [id], "expires_in_days": 1 })).json();
    wait_for("alert", SOON, || owner.json("/alerts")["items"][0]["run"].as_str().map(drop));
    for (method, template) in operations() {
        let asked = format!("{method} {template}");
        let body = match asked.as_str() {
            "PUT /runs/{id}" => file.clone(),
            "PUT /runs/{id}/log" => made.log.clone(),
            "POST /runs/{id}/progress" => progress(1).to_string().into_bytes(),
            "POST /tokens" => json!({ "name": "y", "scope": "read" }).to_string().into_bytes(),
            "POST /shares" => json!({ "ids": [id], "expires_in_days": 1 }).to_string().into_bytes(),
            "PUT /runs/{id}/acknowledgement" => json!({ "reason": "x" }).to_string().into_bytes(),
            _ => Vec::new(),
        };
        let of = match template.as_str() {
            "/tokens/{id}" => token["id"].as_str().unwrap().to_owned(),
            "/shares/{id}" => share["id"].as_str().unwrap().to_owned(),
            // The other operations need the run.
            _ if ["DELETE /runs/{id}", "POST /runs/{id}/restore"].contains(&asked.as_str()) => {
                let other = carried(12.39, "eos").run;
                assert_eq!(owner.put(&other).status, 201);
                if template.ends_with("/restore") {
                    assert_eq!(owner.delete(&format!("/runs/{}", other.id)).status, 204);
                }
                other.id.to_string()
            }
            _ => id.to_string(),
        };
        let mut path = template.replace("{id}", &of);
        if template == "/compare" {
            path.push_str(&format!("?ids={id}"));
        }
        if template == "/events" {
            owner.watch(None);
            continue;
        }
        let digest = digest(&file);
        let headers = match asked.as_str() {
            "PUT /runs/{id}" => vec![("content-digest", digest.as_str())],
            "PUT /runs/{id}/log" => vec![("upload-offset", "0"), ("upload-complete", "?1")],
            _ => Vec::new(),
        };
        let has_body = matches!(method.as_str(), "PUT" | "POST");
        let answer = owner.ask(&method, &path, &headers, has_body.then_some(body.as_slice()));
        assert!((200..300).contains(&answer.status), "{asked}: {} {}", answer.status, answer.text());
    }
    let document = owner.json("/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
}
