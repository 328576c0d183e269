//! No kind of request keeps others from being answered.

use crate::harness::{Kind, Place, SOON, Server, carried, on_every_store};
use crate::services::execute;
use std::sync::mpsc::channel;
use std::thread;

on_every_store! {
    expensive_reads_delay_no_upload
}

/// The number of expensive reads at a time: a constant of the server.
const READS: usize = 3;

/// Makes every read of a later score of a run take longer than any test.
fn hold_scores(place: &Place, kind: Kind) {
    let endless = match kind {
        Kind::Local => {
            "SELECT count(*) FROM (WITH RECURSIVE numbers (n) AS \
             (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT n FROM numbers)"
        }
        Kind::Shared => "SELECT pg_sleep(600)::text",
    };
    let hold = format!(
        "INSERT INTO scores (id, parser_version, scored_at, file) \
           SELECT id, 1, '2026-01-01T00:00:00.000000Z', file FROM results; \
         ALTER TABLE scores RENAME TO stored_scores; \
         CREATE VIEW scores AS SELECT id, parser_version, scored_at, sha256, \
           CASE WHEN ({endless}) IS NOT NULL THEN file END AS file FROM stored_scores"
    );
    execute(&place.address(), &hold).unwrap();
}

fn expensive_reads_delay_no_upload(kind: Kind) {
    const ASKED: usize = READS + 5;
    let server = Server::at(&Place::new(kind));
    let held = carried(12.0, "eos").run;
    assert_eq!(server.owner().put(&held).status, 201);
    let place = server.kill();
    hold_scores(&place, kind);
    let server = Server::at(&place);
    let owner = server.owner();
    let (tell, answers) = channel();
    for number in 0..ASKED {
        let (anyone, tell) = (server.anyone(), tell.clone());
        let path = match number % 2 {
            0 => format!("/compare?ids={}", held.id),
            _ => format!("/runs/{}/scores", held.id),
        };
        // Held requests fail when the server ends, and then nobody listens.
        thread::spawn(move || {
            if let Ok(answer) = anyone.send("GET", &path, &[], None) {
                let _ = tell.send(answer);
            }
        });
    }
    // The server holds as many as it serves at a time and refuses the others: every turn is taken.
    for _ in READS..ASKED {
        let refused = answers.recv_timeout(SOON).unwrap();
        let detail = refused.problem(503);
        assert!(detail.contains("busy with other histories"), "{detail}");
        assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    }
    assert!(answers.try_recv().is_err(), "a read that should be held was answered");
    let other = carried(13.0, "eos");
    owner.put_all(&other);
    assert_eq!(owner.all("").len(), 2);
    assert_eq!(owner.get(&format!("/runs/{}/log", other.run.id)).body, other.log);
    for path in ["/progress", "/alerts", "//healthz"] {
        assert_eq!(owner.get(path).status, 200, "{path}");
    }
    assert!(answers.try_recv().is_err(), "a read that should be held was answered");
}
