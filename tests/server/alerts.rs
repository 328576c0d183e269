//! Alerts: stored, delivered to webhooks once, and never lost.

use crate::harness::{
    Client, Kind, Options, Place, SOON, Server, carried, encoded, made, on_every_store, read_head, wait_for,
};
use crate::services::{POSTGRES, change, change_after, execute};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use ring::hmac;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use uuid::Uuid;

on_every_store! {
    a_regression_is_delivered_once_signed_and_with_a_link
    late_runs_cause_no_message_and_worse_ones_do
    a_killed_server_judges_after_its_restart
    redirects_are_failures_and_slow_hooks_delay_no_other
    alerts_for_removed_webhooks_are_dropped
    a_webhook_gets_twelve_attempts
    alerts_are_acknowledged_with_a_reason
    alerts_of_named_runs_are_listed_however_old_they_are
    thresholds_are_configurable
    corrected_runs_are_judged_again
    alerts_of_a_replaced_result_stay_acknowledged
}

/// A webhook's receiver.
struct Ear {
    url: String,
    heard: Receiver<Told>,
}

/// A request that it received.
struct Told {
    head: String,
    body: String,
}

impl Told {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name}: {}", self.head))
    }
}

impl Ear {
    /// Returns a receiver that answers with these statuses in turn, then accepts everything.
    fn new(answers: &'static [u16]) -> Ear {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?key=s3cret", listener.local_addr().unwrap());
        let (tell, heard) = channel();
        thread::spawn(move || {
            for (place, wire) in listener.incoming().enumerate() {
                let mut wire = BufReader::new(wire.unwrap());
                let head = read_head(&mut wire);
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                let mut body = vec![0; length.parse().unwrap()];
                wire.read_exact(&mut body).unwrap();
                let status = answers.get(place).unwrap_or(&204);
                let answer = format!("HTTP/1.1 {status} -\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                wire.get_mut().write_all(answer.as_bytes()).unwrap();
                if tell.send(Told { head, body: String::from_utf8(body).unwrap() }).is_err() {
                    return;
                }
            }
        });
        Ear { url, heard }
    }

    fn next(&self) -> Told {
        self.heard.recv_timeout(SOON).unwrap()
    }
}

/// Uploads the runs of a time line in order; returns the id of the last.
fn put(owner: &Client, cluster: &str, step_times_s: &[f64]) -> String {
    let mut last = String::new();
    for step_time_s in step_times_s {
        let run = carried(*step_time_s, cluster).run;
        assert_eq!(owner.put(&run).status, 201);
        last = run.id.to_string();
    }
    last
}

/// Waits until a run has an alert.
fn wait_for_alert(owner: &Client, run: &str) {
    wait_for("alert", SOON, || {
        let alerts = owner.json("/alerts");
        alerts["items"].as_array().unwrap().iter().find(|alert| alert["run"] == run).map(drop)
    });
}

fn a_regression_is_delivered_once_signed_and_with_a_link(kind: Kind) {
    const SECRET: &str = "c2l4IGFuZCB0d2VudHkgYnl0ZXMgYXQgbGVhc3Q=";
    let ear = Ear::new(&[500]);
    let arguments =
        ["--webhook", &ear.url, "--webhook-allow-private", "--public-url", "https://t.example.org/plan/"];
    let environment = [("TRAINPLAN_WEBHOOK_SECRET", &*format!("whsec_{SECRET}"))];
    let options = Options { arguments: &arguments, environment: &environment, ..Options::default() };
    let server = Server::with(&Place::new(kind), &options);
    let owner = server.owner();

    let first = put(&owner, "alpha", &[9.4, 9.4, 9.4, 9.4, 9.4, 9.4, 10.5]);
    // As slow as the run before it: an alert, but no delivery.
    let second = put(&owner, "alpha", &[10.5]);
    let other = put(&owner, "beta", &[9.4, 9.4, 9.4, 9.4, 9.4, 9.4, 10.5]);
    // One message for the three thresholds that a run exceeded.
    let expected: BTreeSet<_> = [&first, &other].into_iter().cloned().collect();

    let mut told = BTreeSet::new();
    let mut ids = BTreeSet::new();
    let refused = ear.next();
    while told.len() < expected.len() {
        let one = ear.next();
        let body: Value = serde_json::from_str(&one.body).unwrap();
        let word = |name: &str| body[name].as_str().unwrap_or_else(|| panic!("{name}: {body}")).to_owned();
        let (run, link) = (word("run"), format!("https://t.example.org/plan/run?id={}", word("run")));
        assert_eq!(word("link"), link);
        let cluster = if run == other { "beta" } else { "alpha" };
        let begins = format!("llama3.1-8b/h100/fp8/8@25.04 on {cluster}: 10.5 s");
        assert!(word("text").starts_with(&begins) && word("text").ends_with(&link), "{body}");
        // A line for each threshold, and the link.
        assert_eq!(word("text").lines().count(), 4, "{body}");
        assert_eq!(body["measured_s"], 10.5);

        let [id, at, signed] =
            ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|h| one.header(h));
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &BASE64_STANDARD.decode(SECRET).unwrap());
        let tag = BASE64_STANDARD.decode(signed.strip_prefix("v1,").unwrap()).unwrap();
        hmac::verify(&secret, format!("{id}.{at}.{}", one.body).as_bytes(), &tag).unwrap();
        assert!(one.head.starts_with("POST /hook?key=s3cret "), "{}", one.head);
        assert!(told.insert(run) && ids.insert(id.to_owned()), "told twice: {body}");
    }
    assert_eq!(told, expected);
    wait_for_alert(&owner, &second);
    // The refused delivery was repeated with the same id.
    assert!(ids.contains(refused.header("webhook-id")), "{ids:?}: {}", refused.head);
    let output = server.output();
    assert!(output.contains("127.0.0.1 did not accept an alert (attempt 1)"), "{output}");
    assert!(!output.contains("s3cret") && !output.contains(SECRET), "{output}");
}

fn late_runs_cause_no_message_and_worse_ones_do(kind: Kind) {
    let ear = Ear::new(&[]);
    // A lasting change is another threshold, which would have its own message.
    let arguments = ["--webhook", &ear.url, "--webhook-allow-private", "--threshold", "change=off"];
    let server = Server::with(&Place::new(kind), &Options { arguments: &arguments, ..Options::default() });
    let owner = server.owner();
    let put_at = |step_time_s: f64, cluster: &str, hours_ago: i64| {
        let mut run = carried(step_time_s, cluster).run;
        let at = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours_ago);
        run.carried.as_mut().unwrap().jobs[0].started = Some(at.to_string());
        assert_eq!(owner.put(&run).status, 201);
        let unjudged = || server.place.number("SELECT count(*) FROM unjudged");
        wait_for("judgement", SOON, || (unjudged() == 0).then_some(()));
        run.id.to_string()
    };
    for hours_ago in (15..21).rev() {
        put_at(9.4, "alpha", hours_ago);
    }
    let first = put_at(10.5, "alpha", 3);
    // Logs that arrive newest first are from before the run that people know about.
    for hours_ago in [4, 5, 6] {
        wait_for_alert(&owner, &put_at(10.5, "alpha", hours_ago));
    }
    wait_for_alert(&owner, &put_at(10.5, "alpha", 2));
    let worse = put_at(10.9, "alpha", 1);
    // Another time line, whose first run is more than a week old.
    wait_for_alert(&owner, &put_at(11.0, "beta", 8 * 24));
    let last = put_at(11.0, "gamma", 1);
    for expected in [first, worse, last] {
        let body: Value = serde_json::from_str(&ear.next().body).unwrap();
        assert_eq!(body["run"], expected, "{body}");
    }
}

fn redirects_are_failures_and_slow_hooks_delay_no_other(kind: Kind) {
    // It accepts connections and never answers.
    let slow = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/", slow.local_addr().unwrap());
    let ear = Ear::new(&[302]);
    let arguments = ["--webhook", &silent, "--webhook", &ear.url, "--webhook-allow-private"];
    let server = Server::with(&Place::new(kind), &Options { arguments: &arguments, ..Options::default() });
    let owner = server.owner();
    for cluster in ["a", "b", "c", "d"] {
        put(&owner, cluster, &[9.4, 9.4, 9.4, 9.4, 9.4, 9.4, 10.5]);
    }
    // A message for each of four clusters. The refused one is repeated, while the slow hook gets its first.
    let told: Vec<Told> = (0..5).map(|_| ear.next()).collect();
    let ids: BTreeSet<_> = told.iter().map(|told| told.header("webhook-id")).collect();
    assert_eq!(ids.len(), 4);
    let output = server.output();
    assert!(output.contains("(attempt 1): it answered 302 Found; redirects are not followed"), "{output}");
}

fn a_killed_server_judges_after_its_restart(kind: Kind) {
    let mut server = Server::at(&Place::new(kind));
    let mut slow = Vec::new();
    for cluster in ["a", "b", "c", "d", "e", "f"] {
        put(&server.owner(), cluster, &[9.4; 6]);
        slow.push(put(&server.owner(), cluster, &[10.5]));
        server = Server::at(&server.kill());
    }
    for run in slow {
        wait_for_alert(&server.owner(), &run);
    }
}

/// In SQLite, writers wait for each other, so a run is deleted before or after its alert is stored.
#[test]
fn a_run_that_is_deleted_while_it_is_judged_delays_no_other() {
    let place = Place::local().with_database(POSTGRES.database());
    let server = Server::at(&place);
    let [gone, kept] = ["alpha", "beta"].map(|cluster| {
        put(&server.owner(), cluster, &[9.4; 6]);
        put(&server.owner(), cluster, &[10.5])
    });
    let unjudged = || place.number("SELECT count(*) FROM unjudged");
    wait_for("judgement", SOON, || (unjudged() == 0).then_some(()));
    drop(server);
    let again = format!(
        "DELETE FROM alerts; INSERT INTO unjudged (id) SELECT id FROM runs WHERE id IN ('{gone}', '{kept}')"
    );
    execute(&place.address(), &again).unwrap();
    let mut server = None;
    let judge = || {
        server = Some(Server::at(&place));
        let waiting = "SELECT count(*) FROM pg_stat_activity \
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        // The judge waits for the end of the deletion. This thread is one of another runtime.
        thread::scope(|scope| {
            let wait = || wait_for("judge", SOON, || (place.number(waiting) > 0).then_some(()));
            scope.spawn(wait).join().unwrap();
        });
    };
    let delete = format!("DELETE FROM runs WHERE id = '{gone}'");
    change_after(&place.address(), &["BEGIN", delete.as_str()], judge, "SELECT 1");
    let server = server.unwrap();
    wait_for_alert(&server.owner(), &kept);
    assert!(!server.output().contains("could not be judged"), "{}", server.output());
    assert_eq!(place.number(&format!("SELECT count(*) FROM alerts WHERE run = '{gone}'")), 0);
    wait_for("judgement", SOON, || (unjudged() == 0).then_some(()));
}

fn corrected_runs_are_judged_again(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let slow = made(12.39);
    owner.put_all(&slow);
    let alerts = || owner.json("/alerts")["items"].as_array().unwrap().clone();
    let what = |alert: &Value| alert["alert"]["what"].as_str().unwrap().to_owned();
    wait_for("alert", SOON, || (!alerts().is_empty()).then_some(()));
    assert_eq!(alerts().iter().map(what).collect::<Vec<_>>(), ["llama3.1-8b/h100/fp8/8@25.04"]);
    // A run that its log contradicts is not judged.
    for (recipe, expected) in [("llama3.1-8b/h100/bf16/8@25.04", 0), ("llama3.1-8b/h100/fp8/8@25.04", 1)] {
        let path = format!("/runs/{}/scores?recipe={}", slow.run.id, encoded(recipe));
        assert_eq!(owner.ask("POST", &path, &[], None).status, 200);
        let unjudged = || server.place.number("SELECT count(*) FROM unjudged");
        wait_for("judgement", SOON, || (unjudged() == 0).then_some(()));
        assert_eq!(alerts().len(), expected, "{recipe}");
    }
}

fn alerts_of_a_replaced_result_stay_acknowledged(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    put(&owner, "alpha", &[9.4; 6]);
    let mut slow = carried(10.5, "alpha").run;
    assert_eq!(owner.put(&slow).status, 201);
    // Much sooner than the judge looks by itself.
    let judged = || {
        let unjudged = || place.number("SELECT count(*) FROM unjudged");
        wait_for("judgement", Duration::from_secs(20), || (unjudged() == 0).then_some(()));
    };
    judged();
    let before = owner.json("/alerts")["items"].as_array().unwrap().len();
    assert!(before > 0);
    let path = format!("/runs/{}", slow.id);
    let reason = serde_json::json!({ "reason": "A switch was broken." }).to_string();
    let acknowledged = owner.ask("PUT", &format!("{path}/acknowledgement"), &[], Some(reason.as_bytes()));
    assert_eq!(acknowledged.status, 204);
    for acknowledged in [true, false] {
        if !acknowledged {
            assert_eq!(owner.delete(&format!("{path}/acknowledgement")).status, 204);
        }
        let spoil = "UPDATE results SET file = substr(file, 1, 200) WHERE id =";
        change(&place.address(), &format!("{spoil} '{}'", slow.id));
        // Another file with the result of the same log.
        slow.provenance.program.push('x');
        assert_eq!(owner.put(&slow).json()["outcome"], "known");
        judged();
        let alerts = owner.json("/alerts")["items"].as_array().unwrap().clone();
        assert_eq!(alerts.len(), before);
        for alert in alerts {
            assert_eq!(alert["run"], slow.id.to_string());
            let reason = if acknowledged { "A switch was broken.".into() } else { Value::Null };
            assert_eq!(alert["acknowledged"]["reason"], reason);
        }
    }
}

fn alerts_for_removed_webhooks_are_dropped(kind: Kind) {
    // Nobody listens at either address.
    let [gone, kept] = ["http://127.0.0.1:9/gone?key=s3cret", "http://127.0.0.1:9/kept"];
    let with = |place: &Place, hooks: &[&str]| {
        let mut arguments = vec!["--webhook-allow-private"];
        arguments.extend(hooks.iter().flat_map(|hook| ["--webhook", hook]));
        Server::with(place, &Options { arguments: &arguments, ..Options::default() })
    };
    let server = with(&Place::new(kind), &[gone, kept]);
    let run = put(&server.owner(), "alpha", &[9.4, 9.4, 9.4, 9.4, 9.4, 9.4, 10.5]);
    wait_for_alert(&server.owner(), &run);
    let waiting = |place: &Place, url: &str| {
        place.number(&format!("SELECT count(*) FROM deliveries WHERE url = '{url}'"))
    };
    wait_for("delivery", SOON, || (waiting(&server.place, kept) == 1).then_some(()));
    let place = server.kill();
    // Another server may still have the webhook.
    let server = with(&place, &[kept]);
    assert_eq!(server.owner().get("/me").status, 200);
    assert_eq!(waiting(&place, gone), 1);
    drop(server);
    for url in [gone, kept] {
        let old = "UPDATE deliveries SET due = '2026-01-01T00:00:00.000000Z' WHERE url = ";
        change(&place.address(), &format!("{old} '{url}'"));
    }
    let server = with(&place, &[kept]);
    wait_for("end of the delivery", SOON, || (waiting(&place, gone) == 0).then_some(()));
    assert_eq!(waiting(&place, kept), 1);
    let said = || Some(server.output()).filter(|output| output.contains("was dropped"));
    let output = wait_for("note", SOON, said);
    assert!(output.contains("127.0.0.1") && !output.contains("s3cret"), "{output}");
}

fn a_webhook_gets_twelve_attempts(kind: Kind) {
    // Nobody listens there.
    let arguments = ["--webhook", "http://127.0.0.1:9/", "--webhook-allow-private"];
    let server = Server::with(&Place::new(kind), &Options { arguments: &arguments, ..Options::default() });
    let run = put(&server.owner(), "alpha", &[9.4, 9.4, 9.4, 9.4, 9.4, 9.4, 10.5]);
    wait_for_alert(&server.owner(), &run);
    let number = |what: &str| server.place.number(&format!("SELECT {what} FROM deliveries"));
    wait_for("attempt", SOON, || (number("coalesce(max(tries), 0)") > 0).then_some(()));
    let due = jiff::Timestamp::now();
    change(&server.place.address(), &format!("UPDATE deliveries SET tries = 11, due = '{due:.6}'"));
    wait_for("end of the delivery", SOON, || (number("count(*)") == 0).then_some(()));
    wait_for("note", SOON, || server.output().contains("(attempt 12)").then_some(()));
    // The alert itself stays.
    wait_for_alert(&server.owner(), &run);
}

fn alerts_are_acknowledged_with_a_reason(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let run = put(&owner, "alpha", &[9.4, 9.4, 9.4, 9.4, 9.4, 9.4, 10.5]);
    wait_for_alert(&owner, &run);
    let path = format!("/runs/{run}/acknowledgement");
    let acknowledge = |reason: &str| {
        owner.ask("PUT", &path, &[], Some(serde_json::json!({ "reason": reason }).to_string().as_bytes()))
    };
    let acknowledged = || owner.json("/alerts")["items"][0]["acknowledged"].clone();
    assert_eq!(acknowledged(), Value::Null);
    for wrong in ["", " ", "\u{200b}\u{202e}", &"x".repeat(1001)] {
        acknowledge(wrong).problem(422);
    }
    assert_eq!(acknowledge("A switch was broken.").status, 204);
    let known = acknowledged();
    assert_eq!((&known["by"], &known["reason"]), (&"owner".into(), &"A switch was broken.".into()));
    assert_eq!(known["name"], Value::Null);
    let writer = server.by(&server.place.token("upload", &["--name", "nightly"]));
    let reason = br#"{"reason": "A switch was broken."}"#;
    assert_eq!(writer.ask("PUT", &path, &[], Some(reason)).status, 204);
    let known = acknowledged();
    assert_eq!(known["name"], "nightly");
    assert!(known["by"].as_str().is_some_and(|by| by.len() == 36), "{known}");
    assert!(known["at"].as_str().unwrap().starts_with("20"));
    assert_eq!(owner.delete(&path).status, 204);
    assert_eq!(acknowledged(), Value::Null);
    let reader = server.by(&server.place.token("read", &[]));
    reader.delete(&path).problem(403);
    let other = put(&owner, "beta", &[9.4]);
    owner.delete(&format!("/runs/{other}/acknowledgement")).problem(404);
}

fn alerts_of_named_runs_are_listed_however_old_they_are(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let old = put(&owner, "alpha", &[9.4, 9.4, 9.4, 9.4, 9.4, 9.4, 10.5]);
    wait_for_alert(&owner, &old);
    let other = put(&owner, "beta", &[9.4]);
    // As many newer alerts as a list has.
    let newer = format!(
        "WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 1000) \
        INSERT INTO alerts (id, at, run, kind, body) \
        SELECT 'newer-' || number, '2999-01-01T00:00:00.000000Z', '{other}', 'newer-' || number, '{{}}' FROM numbers"
    );
    execute(&server.place.address(), &newer).unwrap();
    let runs = |query: &str| -> BTreeSet<String> {
        let alerts = owner.json(&format!("/alerts{query}"));
        let alerts = alerts["items"].as_array().unwrap();
        alerts.iter().map(|alert| alert["run"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(runs(""), BTreeSet::from([other]));
    assert_eq!(runs(&format!("?ids={old}")), BTreeSet::from([old.clone()]));
    assert_eq!(runs(&format!("?ids={}", Uuid::now_v7())), BTreeSet::new());
    assert_eq!(runs("?ids="), BTreeSet::new());
    owner.get("/alerts?ids=1").problem(404);
    assert!(owner.get(&format!("/alerts?run={old}")).problem(400).contains("Allowed: ids"));
}

fn thresholds_are_configurable(kind: Kind) {
    let thresholds = ["baseline-percent=off", "sigma=off", "change=off", "previous-percent=50"];
    let arguments = thresholds.map(|threshold| ["--threshold", threshold]).concat();
    let server = Server::with(&Place::new(kind), &Options { arguments: &arguments, ..Options::default() });
    let owner = server.owner();
    put(&owner, "alpha", &[9.4, 9.4, 9.4, 9.4, 9.4, 9.4, 10.5]);
    let slow = put(&owner, "alpha", &[15.0]);
    wait_for_alert(&owner, &slow);
    // Runs are judged in the order in which they were received.
    let alerts = owner.json("/alerts");
    let told: Vec<_> =
        alerts["items"].as_array().unwrap().iter().map(|alert| (&alert["run"], &alert["kind"])).collect();
    assert_eq!(told, [(&slow.into(), &"previous".into())]);
}

#[test]
fn invalid_webhooks_prevent_the_start() {
    let place = Place::local();
    let refused = |arguments: &[&str], secret: &str| {
        let environment = [("TRAINPLAN_WEBHOOK_SECRET", secret)];
        Server::try_with(&place, &Options { arguments, environment: &environment, ..Options::default() })
            .map(|server| server.output())
            .unwrap_err()
    };
    let private = refused(&["--webhook", "http://127.0.0.1:9/"], "");
    assert!(private.contains("--webhook-allow-private"), "{private}");
    let secret = refused(&["--webhook", "https://hooks.example.com/x"], "guess");
    assert!(secret.contains("openssl rand") && !secret.contains("guess"), "{secret}");
    let link = refused(&["--public-url", "trainplan.example.org"], "");
    assert!(link.contains("https://trainplan.example.org"), "{link}");
}
