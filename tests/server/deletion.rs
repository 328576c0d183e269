//! Runs that are deleted: by a person, or because they are old.

use crate::harness::{Kind, Made, Options, Place, SOON, Server, carried, on_every_store, progress, wait_for};
use crate::integrity::{blob, write_endless};
use crate::services::change;
use serde_json::Value;
use std::io::Write;
use std::thread;
use std::time::Duration;

on_every_store! {
    deleted_runs_are_gone
    a_log_that_arrives_during_the_deletion_is_gone_too
    a_log_whose_run_is_deleted_before_it_is_read_is_not_found
    a_deleted_run_comes_back_only_after_it_is_restored
    old_runs_are_deleted_if_configured
    a_clock_that_is_ahead_deletes_nothing
    runs_with_unreadable_times_are_not_deleted
}

fn deleted_runs_are_gone(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), carried(12.39, "eos"));
    owner.put_all(&made);
    let other = carried(11.0, "eos");
    assert_eq!(owner.put(&other.run).status, 201);
    assert_eq!(owner.put_log(other.run.id, 0, false, &other.log[..50]).status, 200);
    assert_eq!(server.place.blobs().len(), 2);
    for made in [&made, &other] {
        let path = format!("/runs/{}", made.run.id);
        assert_eq!(owner.delete(&path).status, 204);
        owner.delete(&path).problem(404);
        for page in ["", "/summary", "/scores", "/log", "/log/lines"] {
            owner.get(&format!("{path}{page}")).problem(404);
        }
    }
    assert_eq!(owner.all(""), [""; 0]);
    for table in ["runs", "results", "scores", "progress", "alerts"] {
        assert_eq!(server.place.number(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    assert_eq!(server.place.blobs(), [""; 0]);
}

fn a_log_that_arrives_during_the_deletion_is_gone_too(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    for round in 0..40_u8 {
        let made = carried(10.0 + f64::from(round) / 100.0, "eos");
        assert_eq!(owner.put(&made.run).status, 201);
        let log = thread::scope(|scope| {
            let log = scope.spawn(|| server.owner().put_log(made.run.id, 0, true, &made.log));
            thread::sleep(Duration::from_millis(u64::from(round)));
            assert_eq!(owner.delete(&format!("/runs/{}", made.run.id)).status, 204);
            log.join().unwrap()
        });
        if log.status == 200 {
            assert_eq!(log.json()["complete"], true, "round {round}");
        } else {
            log.problem(410);
        }
        assert_eq!(server.place.blobs(), [""; 0], "round {round}");
    }
}

/// The number of logs that are read whole at a time: a constant of the server.
const READS: usize = 8;

fn a_log_whose_run_is_deleted_before_it_is_read_is_not_found(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = &server.owner();
    let [held, deleted] = [carried(10.0, "eos"), carried(11.0, "eos")];
    for made in [&held, &deleted] {
        owner.put_all(made);
    }
    write_endless(&blob(&server.place, &held));
    let request =
        format!("GET /api/v1/runs/{}/log/lines?q=x HTTP/1.1\r\nHost: localhost\r\n\r\n", held.run.id);
    // While these are connected, other readers wait.
    let wires: Vec<_> = (0..READS)
        .map(|_| {
            let mut wire = server.wire();
            wire.write_all(request.as_bytes()).unwrap();
            wire
        })
        .collect();
    let run = &format!("/runs/{}", deleted.run.id);
    thread::scope(|scope| {
        let readers = ["log", "log/lines"].map(|page| {
            wait_for("reader that waits", SOON, || {
                let reader = scope.spawn(move || owner.get(&format!("{run}/{page}")));
                thread::sleep(Duration::from_millis(500));
                (!reader.is_finished()).then_some(reader)
            })
        });
        assert_eq!(owner.delete(run).status, 204);
        drop(wires);
        for reader in readers {
            let detail = reader.join().unwrap().problem(404);
            assert!(detail.contains("does not have the log"), "{detail}");
        }
    });
}

fn a_deleted_run_comes_back_only_after_it_is_restored(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), carried(10.0, "eos"));
    let path = format!("/runs/{}", made.run.id);
    owner.post(&format!("{path}/restore"), &Value::Null).problem(404);
    owner.put_all(&made);
    assert_eq!(owner.delete(&path).status, 204);
    let detail = owner.put(&made.run).problem(410);
    assert!(
        detail.contains("was deleted here on 20") && detail.contains(&format!("{path}/restore")),
        "{detail}"
    );
    owner.put_log(made.run.id, 0, true, &made.log).problem(410);
    assert_eq!(owner.ask("HEAD", &format!("{path}/log"), &[], None).status, 410);
    assert_eq!(owner.post(&format!("{path}/progress"), &progress(3)).status, 204);
    assert_eq!(owner.json("/progress")["items"], Value::Array(Vec::new()));
    assert_eq!(owner.all(""), [""; 0]);
    let uploader = server.by(&server.place.token("upload", &[]));
    uploader.post(&format!("{path}/restore"), &Value::Null).problem(403);
    assert_eq!(owner.post(&format!("{path}/restore"), &Value::Null).status, 204);
    owner.post(&format!("{path}/restore"), &Value::Null).problem(404);
    owner.put_all(&made);
    assert_eq!(owner.get(&format!("{path}/log")).body, made.log);

    // Deleting the progress of an unfinished run does not refuse its result.
    let live = carried(11.0, "eos");
    let path = format!("/runs/{}", live.run.id);
    assert_eq!(owner.post(&format!("{path}/progress"), &progress(3)).status, 204);
    assert_eq!(owner.delete(&path).status, 204);
    assert_eq!(owner.put(&live.run).status, 201);
}

/// Returns the time of this many days ago, as the store writes it.
fn days_ago(days: i64) -> String {
    format!("{:.6}", jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days))
}

/// Makes a run one that was received this many days ago.
fn age(place: &Place, made: &Made, days: i64) {
    let (at, id) = (days_ago(days), made.run.id);
    change(&place.address(), &format!("UPDATE runs SET received_at = '{at}' WHERE id = '{id}'"));
}

/// Starts a server that deletes runs after 30 days, and waits until it looked for old ones.
fn retaining(place: &Place, said: &str) -> Server {
    let options = Options { arguments: &["--retain-days", "30"], ..Options::default() };
    let server = Server::with(place, &options);
    wait_for(said, SOON, || server.output().contains(said).then_some(()));
    server
}

fn old_runs_are_deleted_if_configured(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let [old, recent, new] = [12.39, 11.0, 10.0].map(|step_time_s| carried(step_time_s, "eos"));
    for made in [&old, &recent, &new] {
        server.owner().put_all(made);
    }
    age(&server.place, &old, 31);
    age(&server.place, &recent, 29);
    let place = server.kill();
    let server = Server::at(&place);
    assert_eq!(server.owner().all("").len(), 3);
    let place = server.kill();
    // Deletions begin after a grace period.
    let server = retaining(&place, "Deletions by --retain-days 30 begin at ");
    assert_eq!(server.owner().all("").len(), 3);
    let place = server.kill();
    change(&place.address(), &format!("UPDATE clock SET steady_since = '{}'", days_ago(4)));
    let server = retaining(&place, &format!("run {} was deleted: received before ", old.run.id));
    assert_eq!(server.owner().all(""), [&new, &recent].map(|made| made.run.id.to_string()));
    wait_for("deletion of the log", SOON, || (place.blobs().len() == 2).then_some(()));
    assert!(place.blobs().iter().all(|blob| !blob.contains(&old.run.source.sha256)));
}

fn runs_with_unreadable_times_are_not_deleted(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let old = carried(12.39, "eos");
    server.owner().put_all(&old);
    age(&server.place, &old, 31);
    // The last one sorts after all times.
    for (step_time_s, received_at) in [(9.0, ""), (9.1, "-5"), (9.2, "0"), (9.3, "2000-01"), (9.4, "a")] {
        let run = carried(step_time_s, "eos").run;
        assert_eq!(server.owner().put(&run).status, 201);
        let update = format!("UPDATE runs SET received_at = '{received_at}' WHERE id = '{}'", run.id);
        change(&server.place.address(), &update);
    }
    server.owner().put_all(&carried(10.0, "eos"));
    let place = server.kill();
    let server = retaining(&place, "Deletions by --retain-days 30 begin at ");
    let place = server.kill();
    change(&place.address(), &format!("UPDATE clock SET steady_since = '{}'", days_ago(4)));
    let mut server = retaining(&place, &format!("run {} was deleted: received before ", old.run.id));
    assert_eq!(place.number("SELECT count(*) FROM runs"), 6);
    // A time that can't be read, or that is still to come, starts the grace period again.
    let damages: &[&str] = match kind {
        Kind::Local => &["seen_at = X'00'", "steady_since = 'soon'", "steady_since = '9999-01-01T00:00:00Z'"],
        Kind::Shared => &["steady_since = 'soon'", "steady_since = '9999-01-01T00:00:00Z'"],
    };
    for damage in damages {
        drop(server);
        change(&place.address(), &format!("UPDATE clock SET {damage}"));
        server = retaining(&place, "Deletions by --retain-days 30 begin at ");
    }
}

fn a_clock_that_is_ahead_deletes_nothing(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let runs = [12.39, 11.0, 10.0].map(|step_time_s| carried(step_time_s, "eos"));
    for made in &runs {
        server.owner().put_all(made);
    }
    // All runs were received a year ago by the clock, and it ran steadily: the newest is as old as the others.
    for (made, days) in runs.iter().zip([396, 380, 365]) {
        age(&server.place, made, days);
    }
    let place = server.kill();
    let server = retaining(&place, "Deletions by --retain-days 30 begin at ");
    let place = server.kill();
    change(&place.address(), &format!("UPDATE clock SET steady_since = '{}'", days_ago(4)));
    let server = retaining(&place, &format!("run {} was deleted: received before ", runs[0].run.id));
    assert_eq!(server.owner().all("").len(), 2);
    // A run is received with the time of a clock that jumped.
    server.owner().put_all(&carried(9.0, "eos"));
    let place = server.kill();
    change(&place.address(), &format!("UPDATE clock SET seen_at = '{}'", days_ago(365)));
    let server = retaining(&place, "The clock jumped from ");
    assert_eq!(server.owner().all("").len(), 3);
}
