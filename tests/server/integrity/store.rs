//! Checks and exports of a whole store.

use super::{blob, fault, flip, metric, uploaded, verified, write_endless};
use crate::harness::{Kind, Made, Place, SOON, Server, carried, file_of, on_every_store, wait_for};
use crate::services::{self, POSTGRES};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::process::Stdio;
use trainplan_tests::Run;

on_every_store! {
    exports_contain_everything_that_is_sound
    exports_name_runs_with_invalid_ids_and_times
    the_store_is_verified
    impossible_times_of_checks_do_not_count
}

fn exports_contain_everything_that_is_sound(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let made: Vec<Made> = (0..12).map(|run| uploaded(&server, 10.0 + f64::from(run))).collect();
    flip(&server.place, &made[2]);
    fs::remove_file(blob(&server.place, &made[5])).unwrap();
    let (backup, other) = (tempfile::tempdir().unwrap(), Place::new(kind));
    let folder = backup.path().to_str().unwrap();
    let export = server.place.trainplan(&["export", folder]);
    assert_eq!(export.code, Some(1));
    assert!(export.stderr.contains("wrote 12 results, 10 raw logs"), "{}", export.stderr);
    for (bad, what) in [(&made[2], "is damaged"), (&made[5], "is missing")] {
        let line = export.stderr.lines().find(|line| line.contains(&bad.run.id.to_string())).unwrap();
        assert!(line.contains(&bad.run.source.sha256) && line.contains(what), "{line}");
    }
    assert_eq!(fault(&server.owner(), &made[2]), "damaged");

    // A log that was damaged in the folder does not refuse its result.
    fs::write(backup.path().join(format!("{}.log.zst", made[7].run.id)), "no log").unwrap();
    let import = other.trainplan(&["import", folder, "--format", "json"]);
    assert_eq!(import.code, Some(1), "{}", import.stderr);
    let rows: serde_json::Value = serde_json::from_str(&import.stdout).unwrap();
    let bad: Vec<_> = rows.as_array().unwrap().iter().filter(|row| row["outcome"] == "bad_log").collect();
    assert_eq!((bad.len(), &bad[0]["id"]), (1, &made[7].run.id.to_string().into()));
    let restored = Server::at(&other);
    assert_eq!(restored.owner().all("").len(), 12);
    let logs = made.iter().filter(|made| restored.owner().offset(made.run.id).is_none()).count();
    assert_eq!(logs, 9);
}

fn exports_name_runs_with_invalid_ids_and_times(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let made: Vec<Made> = (0..4).map(|run| carried(10.0 + f64::from(run), "eos")).collect();
    for made in &made {
        assert_eq!(server.owner().put(&made.run).status, 201);
    }
    let export = || {
        let backup = tempfile::tempdir().unwrap();
        let export = server.place.trainplan(&["export", backup.path().to_str().unwrap()]);
        let is_written = |made: &Made| backup.path().join(made.run.file_name()).exists();
        (export.code, export.stderr, made.iter().map(is_written).collect::<Vec<_>>())
    };
    assert_eq!(export().0, Some(0));
    let spoil = |sql: &str, made: &Made| {
        services::change(
            &server.place.address(),
            &format!("UPDATE runs SET {sql} WHERE id = '{}'", made.run.id),
        );
    };
    spoil("received_at = ''", &made[0]);
    let (code, said, written) = export();
    assert!(said.contains("1 run with an unreadable time"), "{said}");
    // Nothing is left out.
    assert_eq!((code, written), (Some(0), vec![true; 4]), "{said}");
    // PostgreSQL accepts no values of another type, and compares references.
    if kind == Kind::Local {
        spoil("received_at = X'00'", &made[0]);
        for (damage, made) in ["id = NULL", "id = X'00'", "id = upper(id)"].iter().zip(&made[1..]) {
            let sql =
                format!("PRAGMA foreign_keys = OFF; UPDATE runs SET {damage} WHERE id = '{}'", made.run.id);
            services::execute(&server.place.address(), &sql).unwrap();
        }
        let (code, said, written) = export();
        assert!(said.contains("3 runs left out") && said.contains("1 run with an unreadable time"), "{said}");
        assert_eq!((code, written), (Some(1), vec![true, false, false, false]), "{said}");
    }
}

fn the_store_is_verified(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let made: Vec<Made> = (0..4).map(|run| uploaded(&server, 10.0 + f64::from(run))).collect();
    let verify = |more: &[&str]| -> (Run, serde_json::Value) {
        let run = server.place.trainplan(&[&["verify-store", "--format", "json"], more].concat());
        let rows = serde_json::from_str(&run.stdout).unwrap_or_default();
        (run, rows)
    };
    let (run, rows) = verify(&[]);
    assert_eq!((run.code, rows), (Some(0), serde_json::json!([])));
    assert!(run.stderr.contains("checked 4 results and 4 logs; 0 faults"), "{}", run.stderr);
    // What was just checked is only skipped on request, as after an interruption.
    let said = verify(&["--skip-checked", "1"]).0.stderr;
    assert!(said.contains("and 0 logs; 0 faults found"), "{said}");
    assert!(said.contains("4 logs were checked within the last day and skipped"), "{said}");
    let said = verify(&[]).0.stderr;
    assert!(said.contains("and 4 logs; 0 faults found") && !said.contains("skipped"), "{said}");

    flip(&server.place, &made[1]);
    fs::remove_file(blob(&server.place, &made[3])).unwrap();
    let (run, rows) = verify(&[]);
    assert_eq!(run.code, Some(1));
    let mut found: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| (&row["fault"], &row["runs"][0])).collect();
    found.sort_by_key(|(fault, _)| fault.as_str().map(str::to_owned));
    let id = |made: &Made| serde_json::Value::from(made.run.id.to_string());
    assert_eq!(found, [(&"damaged".into(), &id(&made[1])), (&"missing".into(), &id(&made[3]))]);
    assert_eq!((metric(&owner, "damaged"), metric(&owner, "missing")), ("1".into(), "1".into()));
    // Faults are checked again each time, until they are gone.
    let said = verify(&["--skip-checked", "2"]).0.stderr;
    assert!(said.contains("checked 4 results and 2 logs; 2 faults found"), "{said}");
    assert!(said.contains("2 logs were checked within the last 2 days and skipped"), "{said}");
    for bad in [&made[1], &made[3]] {
        assert_eq!(owner.put_log(bad.run.id, 0, true, &bad.log).json()["complete"], true);
    }
    assert_eq!(verify(&[]).0.code, Some(0));
}

fn impossible_times_of_checks_do_not_count(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    uploaded(&server, 10.0);
    let checked = || server.place.trainplan(&["verify-store", "--skip-checked", "1"]).stderr;
    assert!(checked().contains("and 1 log;"));
    let times: &[&str] = match kind {
        Kind::Local => &["'2999-01-01T00:00:00.000000Z'", "'soon'", "'2'", "''", "X'00'"],
        Kind::Shared => &["'2999-01-01T00:00:00.000000Z'", "'soon'", "'2'", "''"],
    };
    for at in times {
        services::change(&server.place.address(), &format!("UPDATE runs SET log_checked_at = {at}"));
        let said = checked();
        assert!(said.contains("and 1 log;"), "{at}: {said}");
        // This check counts.
        let said = checked();
        assert!(said.contains("and 0 logs;"), "{at}: {said}");
    }
}

#[test]
fn a_killed_check_continues_where_it_was_on_sqlite() {
    a_killed_check_continues_where_it_was(&Place::local());
}

#[test]
fn a_killed_check_continues_where_it_was_on_postgres() {
    a_killed_check_continues_where_it_was(&Place::local().with_database(POSTGRES.database()));
}

fn a_killed_check_continues_where_it_was(place: &Place) {
    let server = Server::at(place);
    let mut made: Vec<Made> = (0..7).map(|run| uploaded(&server, 10.0 + f64::from(run))).collect();
    // Logs are checked in the order of their hashes.
    made.sort_by(|one, other| one.run.source.sha256.cmp(&other.run.source.sha256));
    let [_, damaged, _, held, _, missing, _] = &made[..] else { unreachable!() };
    flip(place, damaged);
    fs::remove_file(blob(place, missing)).unwrap();
    // So that the check stays at this log.
    let (log, aside) = (blob(place, held), place.dir().join("aside"));
    fs::rename(&log, &aside).unwrap();
    write_endless(&log);
    let mut check =
        place.command(&["verify-store"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let count = |what: &str| place.number(&format!("SELECT count(*) FROM runs WHERE {what} IS NOT NULL"));
    wait_for("check of two sound logs", SOON, || (count("log_checked_at") == 2).then_some(()));
    assert_eq!(check.try_wait().unwrap(), None, "it ended before it was killed");
    check.kill().unwrap();
    check.wait().unwrap();
    fs::remove_file(&log).unwrap();
    fs::rename(&aside, &log).unwrap();
    assert_eq!((count("log_checked_at"), count("log_fault")), (2, 1));

    // A check that skips sound logs reads those that were not checked, and those with a fault.
    let verify = || -> (Run, Vec<(String, String)>) {
        let run = place.trainplan(&["verify-store", "--skip-checked", "1", "--format", "json"]);
        let rows: Vec<serde_json::Value> = serde_json::from_str(&run.stdout).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let mut rows: Vec<_> = rows.iter().map(|row| (text(&row["fault"]), text(&row["runs"][0]))).collect();
        rows.sort();
        (run, rows)
    };
    let (run, rows) = verify();
    assert!(run.stderr.contains("checked 7 results and 5 logs; 2 faults found"), "{}", run.stderr);
    let of = |fault: &str, made: &Made| (fault.to_owned(), made.run.id.to_string());
    assert_eq!((run.code, rows), (Some(1), vec![of("damaged", damaged), of("missing", missing)]));
    for bad in [damaged, missing] {
        assert_eq!(server.owner().put_log(bad.run.id, 0, true, &bad.log).json()["complete"], true);
    }
    let (run, rows) = verify();
    assert!(run.stderr.contains("checked 7 results and 2 logs; 0 faults found"), "{}", run.stderr);
    assert_eq!((run.code, rows), (Some(0), Vec::new()));
}

/// Overwrites a page in an SQLite file that no program has open.
fn destroy_page(place: &Place, page: i64, byte: u8) {
    // The last connection that is closed moves all pages into the file.
    let size = place.number("SELECT page_size FROM pragma_page_size");
    let mut file = fs::OpenOptions::new().write(true).open(place.dir().join("store.sqlite")).unwrap();
    file.seek(SeekFrom::Start(u64::try_from((page - 1) * size).unwrap())).unwrap();
    file.write_all(&vec![byte; usize::try_from(size).unwrap()]).unwrap();
}

/// Overwrites the first page of an index.
fn destroy_index(place: &Place, index: &str) {
    let page = place.number(&format!("SELECT rootpage FROM sqlite_schema WHERE name = '{index}'"));
    destroy_page(place, page, 0xff);
}

/// Returns the page that has the text of a row of the table `runs`.
fn page_of(place: &Place, text: &str) -> i64 {
    let size = usize::try_from(place.number("SELECT page_size FROM pragma_page_size")).unwrap();
    let file = fs::read(place.dir().join("store.sqlite")).unwrap();
    let has_text = |page: &&[u8]| {
        // The leaf of a table. Those of indexes begin with 10.
        page[0] == 13 && page.windows(text.len()).any(|piece| piece == text.as_bytes())
    };
    let pages: Vec<_> = file.chunks(size).enumerate().filter(|(_, page)| has_text(page)).collect();
    assert_eq!(pages.len(), 1, "{text}");
    i64::try_from(pages[0].0 + 1).unwrap()
}

#[test]
fn export_reads_around_damaged_pages_of_sqlite() {
    let server = Server::start();
    let place = server.place.clone();
    let made: Vec<Made> = (0..40).map(|run| uploaded(&server, 10.5 + f64::from(run))).collect();
    drop(server);
    // Rows of about ten runs, none of their files.
    let page = page_of(&place, &made[20].run.source.sha256);
    destroy_page(&place, page, 0);
    let backup = tempfile::tempdir().unwrap();
    let export = place.trainplan(&["export", backup.path().to_str().unwrap()]);
    assert_eq!(export.code, Some(1), "{}", export.stderr);
    assert!(export.stderr.contains("wrote 40 results, 40 raw logs"), "{}", export.stderr);
    for made in &made {
        let path = backup.path().join(made.run.file_name());
        assert_eq!(fs::read(path).unwrap(), file_of(&made.run));
    }
}

#[test]
fn a_damaged_index_of_sqlite_is_named_and_nothing_is_lost() {
    for index in ["runs_by_mfu", "runs_by_summary", "sqlite_autoindex_runs_1", "sqlite_autoindex_results_1"] {
        let server = Server::start();
        let place = server.place.clone();
        let made = [uploaded(&server, 10.0), uploaded(&server, 11.0)];
        drop(server);
        destroy_index(&place, index);
        let found = verified(&place);
        assert_eq!((found.len(), found[0].0.as_str()), (1, "database"), "{index}: {found:?}");
        assert!(found[0].2.contains("SQLite finds damage"), "{index}: {found:?}");
        assert!(found[0].2.contains("`trainplan export FOLDER`"), "{index}: {found:?}");

        let (backup, other) = (tempfile::tempdir().unwrap(), Place::local());
        let folder = backup.path().to_str().unwrap();
        let export = place.trainplan(&["export", folder]);
        assert_eq!(export.code, Some(1), "{index}: {}", export.stderr);
        assert!(export.stderr.contains("wrote 2 results, 2 raw logs"), "{index}: {}", export.stderr);
        assert!(export.stderr.contains("The database file is damaged"), "{index}: {}", export.stderr);
        // The copy of the tables is removed.
        assert_eq!(services::files(backup.path()).len(), 4, "{index}");
        let import = other.trainplan(&["import", folder]);
        assert_eq!(import.code, Some(0), "{index}: {}", import.stderr);
        let restored = Server::at(&other);
        for made in &made {
            let path = format!("/runs/{}", made.run.id);
            assert_eq!(restored.owner().get(&path).body, file_of(&made.run), "{index}");
            assert_eq!(restored.owner().get(&format!("{path}/log")).body, made.log, "{index}");
        }
    }
}
