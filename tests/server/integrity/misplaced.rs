//! Rows, files and scores of one run at the place of another.

use super::{blob, execute_unchecked, replace_file, uploaded, verified};
use crate::harness::{Kind, Made, Place, SOON, Server, file_of, on_every_store, wait_for};
use crate::services;
use uuid::Uuid;

on_every_store! {
    runs_with_each_others_rows_get_their_own_again
    rows_are_exchanged_around_a_circle
    a_run_in_whose_place_another_is_stored_is_replaced
    a_lost_row_whose_file_was_replaced_is_named
    scores_without_their_run_are_named_and_not_served
}

/// Uploads runs, and waits until they are judged: later judgements would change their rows.
fn judged<const N: usize>(server: &Server, step_times_s: [f64; N]) -> [Made; N] {
    let made = step_times_s.map(|step_time_s| uploaded(server, step_time_s));
    let unjudged = || server.place.number("SELECT count(*) FROM unjudged");
    wait_for("judgement", SOON, || (unjudged() == 0).then_some(()));
    made
}

/// Gives each of these runs the row of the next one.
fn rotate_rows(place: &Place, kind: Kind, made: &[Made]) {
    let ids: Vec<String> = made.iter().map(|made| made.run.id.to_string()).collect();
    let rename = |from: &str, to: &str| format!("UPDATE runs SET id = '{to}' WHERE id = '{from}'");
    let mut statements = vec![rename(&ids[0], "x")];
    statements.extend(ids.windows(2).map(|pair| rename(&pair[1], &pair[0])));
    statements.push(rename("x", ids.last().unwrap()));
    execute_unchecked(place, kind, &statements.join("; "));
}

fn runs_with_each_others_rows_get_their_own_again(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let made = judged(&server, [9.37, 4.98]);
    let summaries = || made.each_ref().map(|made| owner.json(&format!("/runs/{}/summary", made.run.id)));
    let before = summaries();
    let are_whole = || {
        for made in &made {
            let path = format!("/runs/{}", made.run.id);
            assert_eq!(owner.get(&path).body, file_of(&made.run));
            assert_eq!(owner.get(&format!("{path}/log")).body, made.log);
        }
        assert_eq!(summaries(), before);
        assert_eq!(verified(place), []);
    };
    rotate_rows(place, kind, &made);
    for made in &made {
        let path = format!("/runs/{}", made.run.id);
        let detail = owner.get(&format!("{path}/log")).problem(500);
        assert!(detail.contains("another run's log"), "{detail}");
        assert!(owner.get(&path).problem(500).contains("its SHA-256 differs"));
    }
    let found = verified(place);
    // Both rows are in place as soon as one is checked.
    assert_eq!(found.len(), 1, "{found:?}");
    let first = made.iter().map(|made| made.run.id).min().unwrap();
    assert_eq!((found[0].0.as_str(), &found[0].1), ("lost_row", &first.to_string()));
    assert!(found[0].2.contains("had the row of run"), "{found:?}");
    are_whole();

    rotate_rows(place, kind, &made);
    assert_eq!(owner.put(&made[1].run).json()["outcome"], "known");
    are_whole();

    // A deletion deletes the log of its run, and no other one.
    rotate_rows(place, kind, &made);
    let [deleted, kept] = &made;
    assert_eq!(owner.delete(&format!("/runs/{}", deleted.run.id)).status, 204);
    assert_eq!(owner.get(&format!("/runs/{}/log", kept.run.id)).body, kept.log);
    assert!(!place.blobs().iter().any(|name| name.contains(&deleted.run.source.sha256)));
    assert_eq!(owner.put(&deleted.run).status, 410);
    assert_eq!(verified(place), []);
}

fn rows_are_exchanged_around_a_circle(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let made = judged(&server, [9.37, 4.98, 6.5]);
    rotate_rows(place, kind, &made);
    assert_eq!(verified(place).len(), 2);
    for made in &made {
        let path = format!("/runs/{}", made.run.id);
        assert_eq!(owner.get(&path).body, file_of(&made.run));
        assert_eq!(owner.get(&format!("{path}/log")).body, made.log);
    }
    assert_eq!(verified(place), []);
}

fn a_run_in_whose_place_another_is_stored_is_replaced(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let [bad, other] = judged(&server, [9.37, 4.98]);
    let path = format!("/runs/{}", bad.run.id);
    // Its file, and the hashes of its file and of its log.
    let spoil = || {
        replace_file(place, &bad, &format!("(SELECT file FROM results WHERE id = '{}')", other.run.id));
        for column in ["sha256", "log_sha256"] {
            let update = format!(
                "UPDATE runs SET {column} = (SELECT {column} FROM runs WHERE id = '{}') WHERE id = '{}'",
                other.run.id, bad.run.id
            );
            services::change(&place.address(), &update);
        }
    };
    spoil();
    let detail = owner.get(&format!("{path}/log")).problem(500);
    assert!(detail.contains("another run's log"), "{detail}");
    let found = verified(place);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].2.contains(&format!("is the result of another run, {}", other.run.id)), "{found:?}");
    assert_eq!(owner.put(&bad.run).json()["outcome"], "known");
    assert_eq!(owner.get(&path).body, file_of(&bad.run));
    assert_eq!(owner.get(&format!("{path}/log")).body, bad.log);
    assert_eq!(verified(place), []);

    spoil();
    assert_eq!(owner.delete(&path).status, 204);
    assert!(blob(place, &other).exists());
    assert_eq!(owner.get(&format!("/runs/{}/log", other.run.id)).body, other.log);
    assert_eq!(verified(place), []);
}

fn a_lost_row_whose_file_was_replaced_is_named(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let [lost, other] = judged(&server, [9.37, 4.98]);
    replace_file(place, &lost, &format!("(SELECT file FROM results WHERE id = '{}')", other.run.id));
    execute_unchecked(place, kind, &format!("DELETE FROM runs WHERE id = '{}'", lost.run.id));
    let found = verified(place);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0.as_str(), &found[0].1), ("damaged_result", &lost.run.id.to_string()));
    assert!(found[0].2.contains(&format!("that of the run {}", other.run.id)), "{found:?}");
    owner.put_all(&lost);
    for made in [&lost, &other] {
        assert_eq!(owner.get(&format!("/runs/{}", made.run.id)).body, file_of(&made.run));
    }
    assert_eq!(verified(place), []);
}

fn scores_without_their_run_are_named_and_not_served(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let [made] = judged(&server, [9.37]);
    let lost = Uuid::now_v7();
    let insert = || {
        execute_unchecked(
            place,
            kind,
            &format!(
                "INSERT INTO scores (id, parser_version, scored_at, file) \
                SELECT '{lost}', 99, '2026-01-01T00:00:00Z', file FROM results WHERE id = '{}'",
                made.run.id
            ),
        );
    };
    insert();
    owner.get(&format!("/runs/{lost}/scores")).problem(404);
    let found = verified(place);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0.as_str(), &found[0].1), ("damaged_result", &lost.to_string()));
    assert!(found[0].2.contains("Only scores of the run are stored"), "{found:?}");
    assert_eq!(owner.delete(&format!("/runs/{lost}")).status, 204);
    assert_eq!(verified(place), []);
    // The command finds it too.
    insert();
    let deleted = place.trainplan(&["results", "delete", &lost.to_string()]);
    assert_eq!(deleted.code, Some(0), "{}", deleted.stderr);
    assert_eq!(verified(place), []);
}
