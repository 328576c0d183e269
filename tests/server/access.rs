//! Tokens, share links and quotas.

use crate::harness::{
    Kind, Place, SOON, Server, carried, digest, file_of, made, on_every_store, progress, read_all, wait_for,
};
use crate::services::change;
use serde_json::{Value, json};
use std::io::Write;
use std::thread;
use uuid::Uuid;

on_every_store! {
    tokens_are_created_listed_and_revoked
    a_token_is_revoked_by_its_name_if_no_other_has_it
    a_share_link_shows_its_runs_until_it_is_revoked
    links_of_an_invalid_token_are_not_listed
    a_deleted_run_that_returns_is_not_shared
    a_token_has_its_quota
    a_quota_counts_what_is_stored
    logs_do_not_exceed_a_quota
    a_quota_counts_uploads_that_are_refused
    a_count_of_bytes_does_not_overflow
    callers_learn_their_name
    tokens_have_names_that_people_can_read
    an_unreadable_expiry_is_over
    a_token_with_an_unknown_scope_grants_nothing
}

fn tokens_are_created_listed_and_revoked(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let made = owner.post("/tokens", &json!({ "name": "nightly", "scope": "upload", "expires_in_days": 1 }));
    assert_eq!(made.status, 201);
    let made = made.json();
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("tp_") && secret.len() == 33, "{secret}");
    let token = server.by(secret);
    assert_eq!(token.json("/me")["scope"], "upload");
    assert_eq!(token.put(&super::harness::made(12.39).run).status, 201);
    let listed = owner.json("/tokens");
    assert_eq!(listed["items"][0]["id"], made["id"]);
    assert!(listed["items"][0]["last_used_at"].is_string(), "{listed}");
    assert!(!listed.to_string().contains(secret), "secrets are not listed");
    assert_eq!(server.place.number(&format!("SELECT count(*) FROM tokens WHERE sha256 = '{secret}'")), 0);

    let path = format!("/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(owner.delete(&path).status, 204);
    token.get("/me").problem(401);
    assert!(owner.json("/tokens")["items"][0]["revoked_at"].is_string());
    owner.delete(&format!("/tokens/{}", Uuid::now_v7())).problem(404);
    for wrong in [
        json!({ "name": "", "scope": "read" }),
        json!({ "name": "x".repeat(101), "scope": "read" }),
        json!({ "name": "x", "scope": "all" }),
        json!({ "name": "x" }),
        json!({ "name": "x", "scope": "read", "expires_in_days": -1 }),
        json!({ "name": "x", "scope": "read", "scopes": ["admin"] }),
    ] {
        owner.post("/tokens", &wrong).problem(422);
    }

    // The command line and the server share the tokens.
    let other = server.place.token("read", &["--expires", "12h"]);
    assert_eq!(server.by(&other).json("/me")["scope"], "read");
    let listed = server.place.trainplan(&["token", "list", "--format", "json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(server.place.trainplan(&["token", "revoke", "read"]).code, Some(0));
    server.by(&other).get("/me").problem(401);
}

fn a_token_is_revoked_by_its_name_if_no_other_has_it(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let create = || owner.post("/tokens", &json!({ "name": "dup", "scope": "read" })).json();
    let ids = [create(), create()].map(|token| token["id"].as_str().unwrap().to_owned());
    let detail = owner.delete("/tokens/dup").problem(409);
    assert!(detail.contains("Several tokens have the name dup"), "{detail}");
    let refused = server.place.trainplan(&["token", "revoke", "dup"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("Several tokens have the name dup"), "{}", refused.stderr);
    assert_eq!(owner.delete(&format!("/tokens/{}", ids[0])).status, 204);
    // Revoked tokens don't count.
    assert_eq!(owner.delete("/tokens/dup").status, 204);
    assert!(owner.delete("/tokens/dup").problem(404).contains("id or name dup"));
}

fn an_unreadable_expiry_is_over(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let run = carried(10.0, "eos").run;
    assert_eq!(server.owner().put(&run).status, 201);
    let token = server.by(&server.place.token("admin", &["--expires", "12h"]));
    let shared = token.post("/shares", &json!({ "ids": [run.id], "expires_in_days": 1 })).json();
    let shared = server.by(shared["secret"].as_str().unwrap());
    let path = format!("/runs/{}/summary", run.id);
    let expire = |table: &str, at: &str| {
        change(&server.place.address(), &format!("UPDATE {table} SET expires_at = {at}"));
    };
    let times: &[&str] = match kind {
        Kind::Local => &["'soon'", "''", "'9999'", "X'00'"],
        Kind::Shared => &["'soon'", "''", "'9999'"],
    };
    for at in times {
        assert_eq!((token.get("/me").status, shared.get(&path).status), (200, 200), "{at}");
        expire("tokens", at);
        token.get("/me").problem(401);
        shared.get(&path).problem(401);
        expire("tokens", "'2199-01-01T00:00:00.000000Z'");
    }
    assert_eq!(shared.get(&path).status, 200);
    expire("shares", "'soon'");
    shared.get(&path).problem(401);
    let said = "the time of its expiry can't be read";
    wait_for("note", SOON, || server.output().contains(said).then_some(()));
}

fn a_token_with_an_unknown_scope_grants_nothing(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let token = server.by(&server.place.token("upload", &[]));
    assert_eq!(token.get("/me").status, 200);
    change(&server.place.address(), "UPDATE tokens SET scope = 'Upload'");
    token.get("/me").problem(401);
    change(&server.place.address(), "UPDATE tokens SET scope = 'upload'");
    assert_eq!(token.get("/me").status, 200);
}

/// PostgreSQL accepts no values of another type.
#[test]
fn a_damaged_row_does_not_hide_the_other_rows_of_its_list() {
    let server = Server::start();
    let (owner, place) = (server.owner(), &server.place);
    let slow: Vec<String> = [12.39, 13.0]
        .map(|step_time_s| {
            let run = made(step_time_s).run;
            assert_eq!(owner.put(&run).status, 201);
            run.id.to_string()
        })
        .into();
    let unfinished = [0; 2].map(|_| Uuid::now_v7());
    for id in unfinished {
        assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(1)).status, 204);
    }
    for name in ["one", "other"] {
        assert_eq!(owner.post("/tokens", &json!({ "name": name, "scope": "read" })).status, 201);
        assert_eq!(owner.post("/shares", &json!({ "ids": [slow[0]], "expires_in_days": 1 })).status, 201);
    }
    wait_for("judgement", SOON, || (place.number("SELECT count(*) FROM unjudged") == 0).then_some(()));
    for (path, table, column) in [
        ("/alerts", "alerts", "body"),
        ("/progress", "progress", "body"),
        ("/tokens", "tokens", "name"),
        ("/shares", "shares", "created_by"),
    ] {
        let count = || owner.json(path)["items"].as_array().unwrap().len();
        let before = count();
        assert!(before > 1, "{path}: {before}");
        let damage = format!("UPDATE {table} SET {column} = X'00' WHERE id = (SELECT max(id) FROM {table})");
        change(&place.address(), &damage);
        assert_eq!(count(), before - 1, "{path}");
        let said = format!("of the table {table} is left out");
        wait_for("note", SOON, || server.output().contains(&said).then_some(()));
    }
}

fn a_share_link_shows_its_runs_until_it_is_revoked(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let [shown, hidden] = [12.0, 13.0].map(|seconds| carried(seconds, "eos"));
    for made in [&shown, &hidden] {
        owner.put_all(made);
    }
    let share = owner.post("/shares", &json!({ "ids": [shown.run.id], "expires_in_days": 7 }));
    assert_eq!(share.status, 201);
    let share = share.json();
    let guest = server.by(share["secret"].as_str().unwrap());
    assert_eq!(guest.json("/me")["runs"], json!([shown.run.id]));
    assert_eq!(guest.json("/me")["until"], share["expires_at"]);
    let path = format!("/runs/{}", shown.run.id);
    for page in ["", "/summary", "/scores", "/log", "/log/lines"] {
        assert_eq!(guest.get(&format!("{path}{page}")).status, 200, "{page}");
    }
    assert_eq!(guest.get(&format!("/compare?ids={}", shown.run.id)).status, 200);
    assert_eq!(owner.json("/shares")["items"][0]["id"], share["id"]);
    assert_eq!(owner.delete(&format!("/shares/{}", share["id"].as_str().unwrap())).status, 204);
    guest.get(&path).problem(401);
    assert_eq!(owner.json("/shares")["items"], json!([]));
    for wrong in [
        json!({ "ids": [], "expires_in_days": 7 }),
        json!({ "ids": [shown.run.id], "expires_in_days": 0 }),
        json!({ "ids": [shown.run.id], "expires_in_days": 367 }),
        json!({ "ids": [shown.run.id] }),
    ] {
        owner.post("/shares", &wrong).problem(422);
    }
    owner.post("/shares", &json!({ "ids": [Uuid::now_v7()], "expires_in_days": 1 })).problem(404);
}

fn links_of_an_invalid_token_are_not_listed(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, run) = (server.owner(), carried(12.0, "eos").run);
    assert_eq!(owner.put(&run).status, 201);
    let [valid, revoked, expired] = ["valid", "revoked", "expired"].map(|name| {
        let token =
            owner.post("/tokens", &json!({ "name": name, "scope": "read", "expires_in_days": 1 })).json();
        let client = server.by(token["secret"].as_str().unwrap());
        client.post("/shares", &json!({ "ids": [run.id], "expires_in_days": 1 })).json()
    });
    assert_eq!(owner.json("/shares")["items"].as_array().unwrap().len(), 3);
    assert_eq!(owner.delete("/tokens/revoked").status, 204);
    let expire = "UPDATE tokens SET expires_at = '2000-01-01T00:00:00.000000Z' WHERE name = 'expired'";
    change(&server.place.address(), expire);
    let listed = owner.json("/shares");
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["id"], valid["id"]);
    for share in [revoked, expired] {
        server.by(share["secret"].as_str().unwrap()).get(&format!("/runs/{}", run.id)).problem(401);
    }
}

fn a_deleted_run_that_returns_is_not_shared(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let [gone, kept] = [12.0, 13.0].map(|seconds| carried(seconds, "eos"));
    for made in [&gone, &kept] {
        owner.put_all(made);
    }
    let guest = |ids: Value| {
        let share = owner.post("/shares", &json!({ "ids": ids, "expires_in_days": 7 })).json();
        server.by(share["secret"].as_str().unwrap())
    };
    let (both, alone) = (guest(json!([gone.run.id, kept.run.id])), guest(json!([gone.run.id])));
    let path = format!("/runs/{}", gone.run.id);
    assert_eq!((both.get(&path).status, alone.get(&path).status), (200, 200));
    assert_eq!(owner.delete(&path).status, 204);
    assert_eq!(owner.post(&format!("{path}/restore"), &Value::Null).status, 204);
    owner.put_all(&gone);
    both.get(&path).problem(403);
    alone.get(&path).problem(401);
    assert_eq!(both.get(&format!("/runs/{}", kept.run.id)).status, 200);
}

fn a_token_has_its_quota(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (first, second) = (made(12.0), made(13.0));
    let enough = file_of(&first.run).len().to_string();
    let token = server.by(&server.place.token("upload", &["--quota-bytes", &enough]));
    assert_eq!(token.put(&first.run).status, 201);
    assert!(token.put(&second.run).problem(429).contains("per day"));
    assert!(token.put_log(first.run.id, 0, false, b"x").problem(429).contains("per day"));
    assert_eq!(server.owner().put(&second.run).status, 201);
}

fn a_quota_counts_what_is_stored(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let run = made(12.0).run;
    assert_eq!(server.owner().put(&run).status, 201);
    // The same random bytes twice, too far apart for the store's compression.
    let random: Vec<u8> = (0..3 << 20).map(|_| fastrand::u8(..)).collect();
    let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packed.window_log(23).unwrap();
    packed.long_distance_matching(true).unwrap();
    packed.write_all(&random.repeat(2)).unwrap();
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 4 << 20, "{}", packed.len());
    let put = |quota: u64| {
        let token = server.by(&server.place.token("upload", &["--quota-bytes", &quota.to_string()]));
        let headers = [("upload-offset", "0"), ("upload-complete", "?0"), ("content-encoding", "zstd")];
        token.ask("PUT", &format!("/runs/{}/log", run.id), &headers, Some(&packed))
    };
    let counted = || server.place.number("SELECT max(bytes) FROM uploaded");
    assert!(put(4 << 20).problem(429).contains("per day"));
    assert_eq!((server.place.blobs(), counted()), (Vec::new(), packed.len() as i64));
    assert_eq!(put(8 << 20).status, 200);
    assert!(counted() > 6 << 20);
}

fn logs_do_not_exceed_a_quota(kind: Kind) {
    const QUOTA: u64 = 12_000;
    let server = Server::at(&Place::new(kind));
    let runs = [0; 8].map(|_| carried(12.0, "eos").run);
    for run in &runs {
        assert_eq!(server.owner().put(run).status, 201);
    }
    let secret = server.place.token("upload", &["--quota-bytes", &QUOTA.to_string()]);
    let random: Vec<u8> = (0..10 << 20).map(|_| fastrand::u8(..)).collect();
    // What is known to be too large is refused at once.
    let refused = server.by(&secret).put_log(runs[0].id, 0, false, &random);
    assert!(refused.problem(429).contains("12,000 bytes per day"));
    assert_eq!(server.place.number("SELECT max(bytes) FROM uploaded"), 0);
    let put = |id: Uuid| {
        let mut wire = server.wire();
        write!(
            wire,
            "PUT /api/v1/runs/{id}/log HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {secret}\r\n\
             Upload-Offset: 0\r\nUpload-Complete: ?0\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        .unwrap();
        for chunk in random[..1 << 16].chunks(5000) {
            // The server may close the connection.
            let _ = write!(wire, "{:x}\r\n", chunk.len());
            let _ = wire.write_all(&[chunk, b"\r\n"].concat());
        }
        let _ = wire.write_all(b"0\r\n\r\n");
        read_all(&mut wire)
    };
    let put = &put;
    thread::scope(|scope| {
        for id in runs.map(|run| run.id) {
            scope.spawn(move || {
                let answer = put(id);
                assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
            });
        }
    });
    let size = |name: String| std::fs::metadata(server.place.blob_folder().join(name)).unwrap().len();
    let stored: u64 = server.place.blobs().into_iter().map(size).sum();
    assert!(stored <= QUOTA, "{stored}");
}

fn a_quota_counts_uploads_that_are_refused(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let run = made(12.0).run;
    let file = file_of(&run);
    let twice = (2 * file.len()).to_string();
    let token = server.by(&server.place.token("upload", &["--quota-bytes", &twice]));
    let digest = digest(&file);
    let put = |id: Uuid, digest: &str| {
        token.ask("PUT", &format!("/runs/{id}"), &[("content-digest", digest)], Some(&file))
    };
    // The result of another run, a body that did not arrive as it was sent, and one that is sound.
    assert!(put(Uuid::now_v7(), &digest).problem(422).contains(&run.id.to_string()));
    assert_eq!(server.place.number("SELECT max(bytes) FROM uploaded"), file.len() as i64);
    put(run.id, "sha-256=:AAAA:").problem(400);
    assert!(put(run.id, &digest).problem(429).contains("per day"));
    assert_eq!(server.owner().all(""), [""; 0]);
}

fn a_count_of_bytes_does_not_overflow(kind: Kind) {
    const LARGEST: u64 = i64::MAX as u64;
    for (quota, status) in [(1 << 20, 429), (LARGEST, 201)] {
        let server = Server::at(&Place::new(kind));
        let token = server.by(&server.place.token("upload", &["--quota-bytes", &quota.to_string()]));
        assert_eq!(token.put(&made(12.0).run).status, 201);
        change(&server.place.address(), &format!("UPDATE uploaded SET bytes = {LARGEST}"));
        assert_eq!(token.put(&made(13.0).run).status, status, "{quota}");
    }
}

fn callers_learn_their_name(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let anyone = server.anyone();
    let name = |given: Option<&str>| {
        let headers: Vec<_> = given.iter().map(|given| ("x-request-id", *given)).collect();
        anyone.ask("GET", "/limits", &headers, None).header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(name(Some("build-7")), "build-7");
    assert_ne!(name(None), name(None));
    for wrong in ["two words", "a\"quote", &"x".repeat(65)] {
        assert_ne!(name(Some(wrong)), wrong);
    }
}

fn tokens_have_names_that_people_can_read(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let create = |name: &str| owner.post("/tokens", &json!({ "name": name, "scope": "read" }));
    for name in ["nightly", "Nächtliche Läufe 1", &"\u{e9}".repeat(100)] {
        let made = create(name).json();
        assert_eq!(server.by(made["secret"].as_str().unwrap()).json("/me")["name"], name);
    }
    let invisible =
        "\u{202e}\u{2066}\u{2069}\n\u{ad}\u{200b}\u{200d}\u{2028}\u{2060}\u{3164}\u{fe0f}\u{feff}\u{e0041}";
    let odd = invisible.chars().map(|c| format!("a{c}b")).chain(["\u{e9}".repeat(101), "\u{200b}".into()]);
    for name in odd {
        assert!(create(&name).problem(422).contains("1 to 100 printable characters"));
        let made = server.place.trainplan(&["token", "create", "--name", &name, "--scope", "read"]);
        assert_eq!(made.code, Some(2), "{name:?}: {}", made.stderr);
    }
    assert_eq!(owner.json("/tokens")["items"].as_array().unwrap().len(), 3);
}
