//! Faults around the server: kills, full disks, missing databases and buckets, clocks.

use crate::harness::{
    Client, Events, Kind, Made, Options, Place, SOON, Server, carried, digest, file_of, made_long, progress,
    wait_for,
};
use crate::integrity::verified;
use crate::services::{PASSWORD, POSTGRES, Postgres, S3 as S3Server, change_after, execute, number};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Asserts that an answer reports an unreachable store and when to try again.
fn is_out_of_reach(answer: &crate::harness::Answer) {
    answer.problem(503);
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
}

#[test]
fn the_server_is_killed_while_many_upload_to_sqlite() {
    killed_while_many_upload(Kind::Local);
}

#[test]
fn the_server_is_killed_while_many_upload_to_postgres() {
    killed_while_many_upload(Kind::Shared);
}

fn killed_while_many_upload(kind: Kind) {
    let mut place = Place::new(kind);
    // What the server acknowledged: each run, and whether also its log.
    let acknowledged: Mutex<BTreeMap<Uuid, (Made, bool)>> = Mutex::default();
    let mut interrupted: Vec<Made> = Vec::new();
    for round in 1..=2 {
        let server = Server::at(&place);
        thread::scope(|scope| {
            let uploads: Vec<_> = (0..6)
                .map(|_| {
                    let (owner, acknowledged) = (server.owner(), &acknowledged);
                    scope.spawn(move || upload_until_it_fails(&owner, acknowledged))
                })
                .collect();
            wait_for("uploads", SOON, || (acknowledged.lock().unwrap().len() >= 15 * round).then_some(()));
            place = server.kill();
            interrupted.extend(uploads.into_iter().map(|upload| upload.join().unwrap()));
        });
        let server = Server::at(&place);
        let owner = server.owner();
        let listed = owner.all("limit=50");
        let known = acknowledged.lock().unwrap();
        for (id, (made, has_log)) in known.iter() {
            let id = id.to_string();
            assert_eq!(listed.iter().filter(|listed| **listed == id).count(), 1, "{id}");
            assert_eq!(owner.get(&format!("/runs/{id}")).body, file_of(&made.run));
            if *has_log {
                assert!(owner.get(&format!("/runs/{id}/log")).body == made.log, "the log of {id} is whole");
            }
        }
        drop(known);
        // A repeated upload succeeds as if nothing had happened.
        for made in interrupted.drain(..) {
            assert!([200, 201].contains(&owner.put(&made.run).status));
            if let Some(offset) = owner.offset(made.run.id) {
                assert_eq!(owner.put_log(made.run.id, offset, true, &made.log[offset..]).status, 200);
            }
            assert!(owner.get(&format!("/runs/{}/log", made.run.id)).body == made.log);
            acknowledged.lock().unwrap().insert(made.run.id, (made, true));
        }
        assert_blobs_are_complete(&place);
        assert_eq!(owner.all("limit=50").len(), acknowledged.lock().unwrap().len(), "none is there twice");
    }
}

/// Uploads until a request fails; returns the run without an answer.
fn upload_until_it_fails(owner: &Client, acknowledged: &Mutex<BTreeMap<Uuid, (Made, bool)>>) -> Made {
    loop {
        let made = carried(10.0 + fastrand::f64(), "eos");
        let id = made.run.id;
        let Ok(answer) = owner.try_put(&made.run) else { return made };
        assert_eq!(answer.status, 201);
        acknowledged.lock().unwrap().insert(id, (made.clone(), false));
        let half = made.log.len() / 2;
        for (offset, end) in [(0, half), (half, made.log.len())] {
            let is_last = end == made.log.len();
            let Ok(answer) = owner.try_put_log(id, offset, is_last, &made.log[offset..end]) else {
                return made;
            };
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        acknowledged.lock().unwrap().insert(id, (made, true));
    }
}

/// Asserts that every file with the name of a log contains that log.
fn assert_blobs_are_complete(place: &Place) {
    for name in place.blobs() {
        let Some((_, hash)) = name.split_once('/').filter(|(folder, _)| folder.len() == 2) else { continue };
        // Incomplete files do not have the name of a log.
        let Some(hash) = hash.strip_suffix(".zst") else { continue };
        let raw = zstd::decode_all(&fs::read(place.blob_folder().join(&name)).unwrap()[..]).unwrap();
        let is: String = Sha256::digest(&raw).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(is, hash);
    }
}

/// A disk of this size, until the value is dropped.
struct Disk(PathBuf);

impl Disk {
    /// Returns none if only root could create it.
    fn make(bytes: usize) -> Option<Disk> {
        let folder = tempfile::tempdir().unwrap().keep();
        let size = format!("size={bytes}");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).output().unwrap();
        mount.status.success().then_some(Disk(folder))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

/// Asserts that an answer reports a full disk and when to try again.
fn is_full(answer: &crate::harness::Answer) {
    assert!(answer.problem(507).contains("disk is full"));
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
}

#[test]
fn the_database_file_is_private_and_an_emptied_one_is_refused() {
    let place = Place::local();
    fs::set_permissions(place.dir(), Permissions::from_mode(0o755)).unwrap();
    let server = Server::at(&place);
    server.owner().put_all(&carried(12.0, "eos"));
    let file = place.dir().join("store.sqlite");
    let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    // Pieces of uploads leave no folders.
    assert_eq!(fs::read_dir(place.blob_folder().join("arriving")).map_or(0, Iterator::count), 0);
    server.kill();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    Server::at(&place).kill();
    assert_eq!(mode(), 0o600);
    for end in ["", "-wal", "-shm"] {
        let _ = fs::write(place.dir().join(format!("store.sqlite{end}")), "");
    }
    let said = Server::try_with(&place, &Options::default()).unwrap_err();
    assert!(said.contains("is an empty file: it lost its content"), "{said}");
}

#[test]
fn the_disk_is_full() {
    let Some(disk) = Disk::make(48 << 20) else {
        println!("left out: only root can mount a small disk");
        return;
    };
    let filler = disk.0.join("filler");
    let server = Server::at(&Place::in_folder(&disk.0));
    let (owner, first) = (server.owner(), carried(12.0, "eos"));
    owner.put_all(&first);
    let long = made_long(7 << 20);
    assert_eq!(owner.put(&long.run).status, 201);
    let free = |left: usize| {
        let stat =
            Command::new("stat").args(["--file-system", "--format=%a %S"]).arg(&disk.0).output().unwrap();
        let text = String::from_utf8(stat.stdout).unwrap();
        let (blocks, size) = text.trim().split_once(' ').unwrap();
        let free = blocks.parse::<usize>().unwrap() * size.parse::<usize>().unwrap();
        fs::write(&filler, vec![b'x'; free.saturating_sub(left)]).unwrap();
    };
    free(2 << 20);
    is_full(&owner.put_log(long.run.id, 0, true, &long.log));
    fs::remove_file(&filler).unwrap();
    free(0);
    // Results fail later: the database file may have free pages.
    let refused = (0..200).map(|_| owner.put(&carried(12.0, "eos").run)).find(|answer| answer.status != 201);
    is_full(&refused.unwrap());
    // Reading still works.
    let listed = owner.all("");
    assert!(listed.contains(&first.run.id.to_string()));
    assert_eq!(owner.get(&format!("/runs/{}/log", first.run.id)).body, first.log);
    // Everything works again when there is space.
    fs::remove_file(&filler).unwrap();
    let offset = owner.offset(long.run.id).unwrap();
    assert_eq!(owner.put_log(long.run.id, offset, true, &long.log[offset..]).status, 200);
    assert!(owner.get(&format!("/runs/{}/log", long.run.id)).body == long.log);
    owner.put_all(&carried(12.5, "eos"));
    assert_blobs_are_complete(&server.place);
    let count = owner.all("").len();
    assert_eq!(server.again().anyone().all("").len(), count);
}

/// Asserts that impossible numbers of changes, which come into the database by `damage`, are set back after an upload that they
/// make fail, and by `verify-store`.
fn assert_numbers_are_set_back(server: &Server, damage: &str) {
    let (owner, place) = (server.owner(), &server.place);
    let spoil = || execute(&place.address(), damage).unwrap();
    let mut events = owner.watch(None);
    spoil();
    let run = carried(12.0, "eos").run;
    let stored = || match owner.put(&run).status {
        201 => Some(()),
        // Not that the disk is full.
        503 => None,
        status => panic!("{damage}: {status}"),
    };
    wait_for("repair", SOON, stored);
    wait_for("reload", SOON, || (events.told().0 == "again").then_some(()));
    assert_eq!(verified(place), [], "{damage}");
    let other = carried(12.0, "eos").run;
    assert_eq!(owner.put(&other).status, 201, "{damage}");
    wait_for("the next run", SOON, || (events.told().1 == other.id.to_string()).then_some(()));

    spoil();
    let found = verified(place);
    assert_eq!((found.len(), found[0].0.as_str()), (1, "database"), "{damage}: {found:?}");
    assert!(found[0].2.contains("change numbers"), "{found:?}");
    assert_eq!(verified(place), [], "{damage}");
    assert_eq!(owner.put(&carried(12.0, "eos").run).status, 201, "{damage}");
}

#[test]
fn the_numbers_of_changes_are_exhausted() {
    let mut server = Server::start();
    let place = server.place.clone();
    assert_eq!(server.owner().put(&carried(12.0, "eos").run).status, 201);
    for damage in [
        "UPDATE sqlite_sequence SET seq = 9223372036854775807",
        "UPDATE changes SET seq = 9223372036854775807 WHERE seq = (SELECT max(seq) FROM changes)",
    ] {
        assert_numbers_are_set_back(&server, damage);
        execute(&place.address(), damage).unwrap();
        server = server.again();
        let number = "SELECT count(*) FROM sqlite_sequence WHERE seq > 1000000";
        wait_for("repair at the start", SOON, || (place.number(number) == 0).then_some(()));
        wait_for("upload", SOON, || {
            (server.owner().put(&carried(12.0, "eos").run).status == 201).then_some(())
        });
    }
}

#[test]
fn the_sequence_of_changes_is_exhausted_on_postgres() {
    let server = Server::at(&Place::new(Kind::Shared));
    assert_eq!(server.owner().put(&carried(12.0, "eos").run).status, 201);
    assert_numbers_are_set_back(&server, "SELECT setval('changes_seq_seq', 9223372036854775807)");
}

#[test]
fn the_database_disappears_and_returns() {
    let postgres = Postgres::start();
    let place = Place::local().with_database(postgres.database());
    let server = Server::at(&place);
    let token = place.token("upload", &[]);
    let (owner, by_token) = (server.owner(), server.by(&token));
    let made = carried(12.0, "eos");
    owner.put_all(&made);
    let mut events = owner.watch(None);
    postgres.stop();
    let other = carried(13.0, "eos");
    for path in ["/runs", "/progress", &format!("/runs/{}", made.run.id), "//healthz"] {
        is_out_of_reach(&owner.get(path));
    }
    is_out_of_reach(&owner.put(&other.run));
    is_out_of_reach(&owner.post(&format!("/runs/{}/progress", other.run.id), &progress(1)));
    // A token that can't be looked up is not reported as invalid.
    is_out_of_reach(&by_token.get("/runs"));
    assert_eq!(server.anyone().get("/limits").status, 200);
    let said = Server::try_with(&place.beside(), &Options::default()).unwrap_err();
    assert!(said.contains("does not answer"), "{said}");

    postgres.start_again();
    wait_for("recovery", SOON, || (owner.get("//healthz").status == 200).then_some(()));
    assert_eq!(owner.all(""), [made.run.id.to_string()]);
    assert_eq!(by_token.put(&other.run).status, 201);
    // The first run may be judged only now, which is a separate event.
    let arrival = ("run".to_owned(), other.run.id.to_string());
    while events.told() != arrival {}
}

#[test]
fn the_bucket_disappears_and_returns() {
    let s3 = S3Server::start();
    let server = Server::at(&Place::local().with_bucket(s3.place(), s3.environment()));
    let (owner, made, other) = (server.owner(), carried(12.0, "eos"), carried(13.0, "eos"));
    owner.put_all(&made);
    assert_eq!(owner.put(&other.run).status, 201);
    assert_eq!(owner.put_log(other.run.id, 0, false, &other.log[..500]).status, 200);
    s3.stop();
    thread::scope(|scope| {
        // Each request takes a while to give up.
        scope.spawn(|| is_out_of_reach(&owner.put_log(other.run.id, 500, true, &other.log[500..])));
        scope.spawn(|| is_out_of_reach(&owner.get(&format!("/runs/{}/log", made.run.id))));
        scope.spawn(|| is_out_of_reach(&owner.put(&carried(14.0, "eos").run)));
    });
    // Requests without logs still work.
    assert_eq!(owner.all("").len(), 2);
    assert_eq!(owner.get(&format!("/compare?ids={},{}", made.run.id, other.run.id)).status, 200);
    s3.start_again();
    assert_eq!(owner.offset(other.run.id), Some(500));
    assert_eq!(owner.put_log(other.run.id, 500, true, &other.log[500..]).status, 200);
    for made in [&made, &other] {
        assert_eq!(owner.get(&format!("/runs/{}/log", made.run.id)).body, made.log);
    }
}

#[test]
fn two_servers_share_a_database_and_a_bucket() {
    let place = Place::new(Kind::Shared);
    let servers = [Server::at(&place), Server::at(&place.beside())];
    let owners = [servers[0].owner(), servers[1].owner()];
    // The same run uploaded to both at once is stored once.
    for number in 0..10 {
        let made = carried(12.0 + f64::from(number), "eos");
        let mut answers = at_once(&owners, |owner| owner.put(&made.run).status);
        answers.sort_unstable();
        assert_eq!(answers, [200, 201]);
        // Of two results with one id, one is stored.
        let id = Uuid::now_v7();
        let files = ["eos", "dgx"].map(|cluster| {
            let mut run = carried(12.0, cluster).run;
            run.id = id;
            file_of(&run)
        });
        let mut answers = at_once(&[(0, &owners[0]), (1, &owners[1])], |(which, owner)| {
            let file = &files[*which];
            owner.ask("PUT", &format!("/runs/{id}"), &[("content-digest", &digest(file))], Some(file)).status
        });
        answers.sort_unstable();
        assert_eq!(answers, [201, 409]);
    }
    assert_eq!(owners[0].all("limit=3"), owners[1].all("limit=7"));

    let mut events = owners[1].watch(None);
    let made = made_long(1 << 20);
    assert_eq!(owners[0].put(&made.run).status, 201);
    let told = |kind: &str| (kind.to_owned(), made.run.id.to_string());
    heard(&mut events, &told("run"));
    let mut offset = 0;
    for number in 0.. {
        let end = made.log.len().min(offset + 100_000);
        let is_last = end == made.log.len();
        let owner = &owners[number % 2];
        assert_eq!(owner.offset(made.run.id), Some(offset));
        assert_eq!(owner.put_log(made.run.id, offset, is_last, &made.log[offset..end]).status, 200);
        if is_last {
            break;
        }
        offset = end;
    }
    assert!(owners.iter().all(|owner| owner.get(&format!("/runs/{}/log", made.run.id)).body == made.log));
    heard(&mut events, &told("run"));

    let token = owners[0].post("/tokens", &json!({ "name": "x", "scope": "read" })).json();
    let reader = servers[1].by(token["secret"].as_str().unwrap());
    assert_eq!(reader.get("/runs").status, 200);
    assert_eq!(owners[0].delete(&format!("/tokens/{}", token["id"].as_str().unwrap())).status, 204);
    reader.get("/runs").problem(401);
    assert_eq!(owners[0].delete(&format!("/runs/{}", made.run.id)).status, 204);
    heard(&mut events, &told("deleted"));
    owners[1].get(&format!("/runs/{}/log", made.run.id)).problem(404);
}

#[test]
fn clients_that_complete_the_same_log_cause_no_errors() {
    let place = Place::local();
    let servers = [Server::at(&place), Server::at(&place)];
    let owners = [servers[0].owner(), servers[1].owner()];
    for _ in 0..4 {
        let made = made_long(200_000);
        assert_eq!(owners[0].put(&made.run).status, 201);
        // To join many pieces takes a while.
        let pieces: Vec<&[u8]> = made.log.chunks(4000).collect();
        let (last, earlier) = pieces.split_last().unwrap();
        let mut offset = 0;
        for piece in earlier {
            assert_eq!(owners[0].put_log(made.run.id, offset, false, piece).status, 200);
            offset += piece.len();
        }
        let clients: Vec<_> = owners.iter().cycle().take(8).collect();
        let answers = at_once(&clients, |client| client.put_log(made.run.id, offset, true, last).status);
        // 409 and 503 ask to try again.
        assert!(answers.contains(&200), "{answers:?}");
        assert!(answers.iter().all(|status| [200, 409, 503].contains(status)), "{answers:?}");
        for owner in &owners {
            assert_eq!(owner.offset(made.run.id), None);
            assert_eq!(owner.get(&format!("/runs/{}/log", made.run.id)).body, made.log);
        }
    }
    for server in &servers {
        let said = server.output();
        assert!(!said.contains("ERROR"), "{said}");
    }
}

/// Waits for an event; earlier events of other servers may arrive late.
fn heard(events: &mut Events, wanted: &(String, String)) {
    while events.told() != *wanted {}
}

/// Calls a function for all values concurrently; returns the results.
fn at_once<A: Sync, B: Send>(all: &[A], ask: impl Fn(&A) -> B + Sync) -> Vec<B> {
    let start = std::sync::Barrier::new(all.len());
    thread::scope(|scope| {
        let asked: Vec<_> = all
            .iter()
            .map(|one| {
                scope.spawn(|| {
                    start.wait();
                    ask(one)
                })
            })
            .collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    })
}

#[test]
fn servers_start_at_once_on_a_new_database() {
    let place = Place::new(Kind::Shared);
    let places = [place.clone(), place.beside(), place.beside(), place.beside()];
    let servers = at_once(&places, Server::at);
    for (number, server) in servers.iter().enumerate() {
        server.owner().put_all(&carried(12.0 + number as f64, "eos"));
    }
    let all = servers[0].owner().all("");
    assert_eq!(all.len(), servers.len());
    assert!(servers.iter().all(|server| server.owner().all("") == all));
}

#[test]
fn what_is_locked_in_postgres_is_waited_for_for_a_while() {
    let server = Server::at(&Place::new(Kind::Shared));
    let owner = server.owner();
    let lock = ["BEGIN", "LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"];
    let asked = || {
        is_out_of_reach(&owner.get("/runs"));
        is_out_of_reach(&owner.put(&carried(12.0, "eos").run));
    };
    change_after(&server.place.address(), &lock, asked, "SELECT 1");
    assert_eq!(owner.get("/runs").status, 200);
}

#[test]
fn a_server_keeps_its_connections_to_postgres() {
    let place = Place::new(Kind::Shared);
    let _server = Server::at(&place);
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    wait_for("12 connections", SOON, || (place.number(others) == 12).then_some(()));
}

/// A database whose owner may have so many connections: its address as the tests' own user, to whom limits don't apply, and as its
/// owner, and the owner's name.
fn limited(connections: u32) -> (String, String, String) {
    let address = POSTGRES.database();
    let name = address.rsplit_once('/').unwrap().1.to_owned();
    let create = format!("CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT {connections}");
    execute(&address, &create).unwrap();
    execute(&address, &format!("ALTER DATABASE {name} OWNER TO {name}")).unwrap();
    let limited = address.replacen("trainplan:", &format!("{name}:"), 1);
    (address, limited, name)
}

fn open_connections(address: &str, user: &str) -> i64 {
    number(address, &format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{user}'")).unwrap()
}

#[test]
fn a_server_leaves_connections_to_other_servers() {
    let (address, limited, name) = limited(20);
    // A quarter of 20, each.
    let servers = [(); 2].map(|()| Server::at(&Place::local().with_database(limited.clone())));
    wait_for("10 connections", SOON, || (open_connections(&address, &name) == 10).then_some(()));
    for server in &servers {
        assert_eq!(server.owner().put(&carried(12.0, "eos").run).status, 201);
    }
}

#[test]
fn a_program_that_gets_too_few_connections_says_so_at_once() {
    for connections in [0, 1] {
        let (_, limited, _) = limited(connections);
        let place = Place::local().with_database(limited);
        let begun = Instant::now();
        for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["token", "list"]] {
            let told = place.trainplan(command);
            assert_eq!(told.code, Some(5), "{}", told.stderr);
            assert!(told.stderr.contains("grants no further connection"), "{}", told.stderr);
            assert!(told.stderr.contains("too many connections for role"), "{}", told.stderr);
        }
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
}

#[test]
fn a_server_to_which_postgres_grants_few_connections_uses_those() {
    let (address, limited, name) = limited(5);
    let wanted = Options { arguments: &["--database-connections", "6"], ..Options::default() };
    let server = Server::with(&Place::local().with_database(limited), &wanted);
    assert!(server.output().contains("only 5 of 6 connections"), "{}", server.output());
    let owner = server.owner();
    let answers = at_once(&[&owner; 40], |owner| {
        [owner.put(&carried(12.0, "eos").run).status, owner.get("/runs").status]
    });
    assert!(answers.iter().all(|answer| *answer == [201, 200]), "{answers:?}");
    assert_eq!(open_connections(&address, &name), 5);
}

#[test]
fn a_read_only_postgres_is_reported() {
    let server = Server::at(&Place::new(Kind::Shared));
    let owner = server.owner();
    assert_eq!(owner.put(&carried(12.0, "eos").run).status, 201);
    let address = server.place.address();
    let (postgres, name) = address.rsplit_once('/').unwrap();
    let postgres = format!("{postgres}/postgres");
    let alter = |change: &str| execute(&postgres, &format!("ALTER DATABASE {name} {change}")).unwrap();
    alter("SET default_transaction_read_only = on");
    // Only new connections have the setting.
    let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity";
    execute(&postgres, &format!("{end} WHERE datname = '{name}'")).unwrap();
    let refused = owner.put(&carried(13.0, "eos").run);
    is_out_of_reach(&refused);
    assert!(refused.problem(503).contains("read-only"), "{}", refused.text());
    assert_eq!(owner.all("").len(), 1);
    // Connections that are still read-only are replaced.
    alter("RESET default_transaction_read_only");
    assert_eq!(owner.put(&carried(13.0, "eos").run).status, 201);
}

#[test]
fn the_clock_is_moved() {
    // What faketime starts outlives it: the server is started as it would start it.
    let Ok(told) = Command::new("faketime").args(["-f", "+0h", "printenv", "LD_PRELOAD"]).output() else {
        println!("skipped: faketime is not installed");
        return;
    };
    let library = String::from_utf8(told.stdout).unwrap();
    let place = Place::local();
    let at = |shift: &str| {
        let environment = [("LD_PRELOAD", library.trim()), ("FAKETIME", shift), ("DONT_FAKE_MONOTONIC", "1")];
        Server::with(&place, &Options { environment: &environment, ..Options::default() })
    };
    let token = place.token("upload", &["--expires", "1h"]);
    let mut put = Vec::new();
    for (shift, is_good) in [("+0h", true), ("+5h", false), ("-5h", true)] {
        let server = at(shift);
        assert_eq!(server.by(&token).get("/me").status == 200, is_good, "{shift}");
        let (owner, made) = (server.owner(), carried(12.0, "eos"));
        let mut events = owner.watch(None);
        owner.put_all(&made);
        assert_eq!(events.told(), ("run".to_owned(), made.run.id.to_string()), "{shift}");
        let live = Uuid::now_v7();
        assert_eq!(owner.post(&format!("/runs/{live}/progress"), &progress(1)).status, 204);
        let shown = owner.json("/progress");
        assert!(
            shown["items"].as_array().unwrap().iter().any(|run| run["id"] == live.to_string()),
            "{shift}"
        );
        let day = json!({ "ids": [made.run.id], "expires_in_days": 1 });
        let share = owner.post("/shares", &day).json();
        let guest = server.by(share["secret"].as_str().unwrap());
        assert_eq!(guest.get(&format!("/runs/{}", made.run.id)).status, 200, "{shift}");
        put.push(made.run.id.to_string());
    }
    // By the time that each was received at, whatever the clock was; each once, in pages of any size.
    let server = at("+0h");
    let wanted = [&put[1], &put[0], &put[2]];
    for limit in 1..=3 {
        assert_eq!(server.owner().all(&format!("limit={limit}")).iter().collect::<Vec<_>>(), wanted);
    }
    let page = server.owner().json("/runs");
    let times: Vec<&Value> =
        page["items"].as_array().unwrap().iter().map(|run| &run["received_at"]).collect();
    assert!(times.is_sorted_by(|a, b| a.as_str() > b.as_str()), "{times:?}");
}
