//! Results and logs on their way to a server that is killed, and by a sender that is.

use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use trainplan_tests::{Run, Served, binary, run_of, trainplan};

const LOG: &str = "log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out";

/// A folder with a log, the folder of its result, and a server.
struct Place {
    dir: TempDir,
    served: Served,
}

impl Place {
    /// Creates a log with this many incompressible lines in addition to its steps.
    fn make(lines: u64) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let mut text: String = (0..50)
            .map(|step| {
                format!("Training epoch 0, iteration {step}/49 | global_batch_size: 128 | train_step_timing in s: 12.39 |\n")
            })
            .collect();
        let mut state = 1_u64;
        for _ in 0..lines {
            for _ in 0..6 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                write!(text, "{state:016x}").unwrap();
            }
            text.push('\n');
        }
        fs::write(dir.path().join(LOG), text).unwrap();
        let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        let parsed = trainplan(["parse", &path(LOG), "--save", &path("results")]);
        assert_eq!(parsed.code, Some(0), "{}", parsed.stderr);
        let served = Served::start(&dir.path().join("server"));
        Place { dir, served }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn result(&self) -> PathBuf {
        fs::read_dir(self.path("results")).unwrap().next().unwrap().unwrap().path()
    }

    fn id(&self) -> String {
        self.result().file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("upload")
            .args(arguments)
            .args([Path::new("--data-dir"), &self.path("data")])
            .args(["--format", "json"])
            .env("TRAINPLAN_SERVER", self.served.url())
            .env("TRAINPLAN_TOKEN", &self.served.token)
            .current_dir(&self.dir);
        command
    }

    fn upload(&self, arguments: &[&str]) -> (Run, Value) {
        let run = run_of(&self.command(arguments).output().unwrap());
        let rows = serde_json::from_str(&run.stdout).unwrap_or(Value::Null);
        (run, rows)
    }

    /// Returns how much of the log arrived; none if it is complete.
    fn offset(&self) -> Option<u64> {
        let (head, _) = self.served.ask("HEAD", &format!("/api/v1/runs/{}/log", self.id()));
        let header = |name| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if header("upload-complete: ") == Some("?1") {
            return None;
        }
        // Before its result arrived, the server does not know the run.
        Some(header("upload-offset: ").map_or(0, |offset| offset.parse().unwrap()))
    }

    fn wait_for_some_of_the_log(&self) {
        let begun = Instant::now();
        while self.offset() == Some(0) {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing comes");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn assert_the_log_is_there(&self) {
        let (_, log) = self.served.ask("GET", &format!("/api/v1/runs/{}/log", self.id()));
        assert!(log.as_bytes() == fs::read(self.path(LOG)).unwrap());
    }
}

#[test]
fn a_run_that_was_deleted_is_skipped_until_it_is_restored() {
    let place = Place::make(0);
    assert_eq!(place.upload(&["results"]).0.code, Some(0));
    let server = place.path("server");
    let results = |command: &str| {
        let server = server.to_str().unwrap();
        let run =
            trainplan(["results", command, &place.id()[..13], "--data-dir", server, "--format", "json"]);
        assert!(run.code != Some(0) || run.stdout.contains(&place.id()), "{}", run.stdout);
        run
    };
    assert_eq!(results("delete").code, Some(0));
    let (run, rows) = place.upload(&["results"]);
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(0), &"deleted".into()), "{}", run.stderr);
    assert!(rows[0]["reason"].as_str().unwrap().contains("was deleted here on 20"), "{rows}");
    assert!(run.stderr.contains("Skipped 1 run that was deleted on the server"), "{}", run.stderr);
    let imported = || {
        let (file, server) = (place.result().to_string_lossy().into_owned(), server.to_str().unwrap());
        let run = trainplan(["import", &file, "--data-dir", server, "--format", "csv"]);
        (run.code, run.stdout)
    };
    let (code, rows) = imported();
    assert!(code == Some(0) && rows.contains("deleted,") && rows.contains("results restore"), "{rows}");
    assert_eq!(results("restore").code, Some(0));
    let again = results("restore");
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("no deleted run has the id"), "{}", again.stderr);
    let (run, rows) = place.upload(&["results"]);
    assert_eq!((run.code, &rows[0]["outcome"], &rows[0]["log"]), (Some(0), &"new".into(), &"sent".into()));
    place.assert_the_log_is_there();
}

#[test]
fn files_folders_and_stored_runs_are_uploaded_once() {
    let place = Place::make(0);
    let (run, rows) = place.upload(&["results", "--no-log"]);
    assert_eq!((run.code, &rows[0]["outcome"], &rows[0]["log"]), (Some(0), &"new".into(), &Value::Null));
    // The log is found at its path if it is unchanged.
    let log = fs::read(place.path(LOG)).unwrap();
    fs::write(place.path(LOG), [log.as_slice(), b"more\n"].concat()).unwrap();
    let (run, rows) = place.upload(&["results"]);
    assert_eq!((run.code, &rows[0]["log"]), (Some(0), &Value::Null), "{}", run.stderr);
    fs::write(place.path(LOG), log).unwrap();
    let (run, rows) = place.upload(&["results"]);
    assert_eq!((&rows[0]["outcome"], &rows[0]["log"]), (&"known".into(), &"sent".into()), "{}", run.stderr);
    // Another log is refused.
    let file = place.result().to_string_lossy().into_owned();
    fs::write(place.path("other"), "another log\n").unwrap();
    let (run, rows) = place.upload(&[&file, "--log", "other"]);
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(1), &"refused".into()), "{}", run.stderr);
    assert!(rows[0]["reason"].as_str().unwrap().contains("is not the log"), "{rows}");
    let (run, rows) = place.upload(&[&file, "--log", LOG]);
    assert_eq!((run.code, &rows[0]["log"]), (Some(0), &"known".into()), "{}", run.stderr);
    place.assert_the_log_is_there();
    // A stored run, by the beginning of its id.
    let kept = trainplan(["import", &file, "--data-dir", place.path("data").to_str().unwrap()]);
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    let (run, rows) = place.upload(&[&place.id()[..13]]);
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(0), &"known".into()), "{}", run.stderr);
    let page: Value = serde_json::from_str(&place.served.ask("GET", "/api/v1/runs").1).unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    // Results never change.
    let changed = fs::read_to_string(&file).unwrap().replace("12.39", "11.39");
    fs::write(&file, changed).unwrap();
    let (run, rows) = place.upload(&["results"]);
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(1), &"conflict".into()), "{}", run.stderr);
}

#[test]
fn an_uploaded_log_has_the_cluster_that_the_user_named() {
    let place = Place::make(0);
    let cluster = || {
        let page: Value = serde_json::from_str(&place.served.ask("GET", "/api/v1/runs").1).unwrap();
        assert_eq!(page["items"].as_array().unwrap().len(), 1);
        page["items"][0]["cluster"].clone()
    };
    assert_eq!(place.upload(&[LOG]).0.code, Some(0));
    assert_eq!(cluster(), Value::Null);
    // A run that has none gets it, and keeps it.
    for arguments in
        [&[LOG, "--cluster", "alpha"][..], &["results", "--cluster", "alpha"], &[LOG], &["results"]]
    {
        let (run, _) = place.upload(arguments);
        assert_eq!((run.code, cluster()), (Some(0), "alpha".into()), "{arguments:?}: {}", run.stderr);
    }
    let (run, rows) = place.upload(&[LOG, "--cluster", "beta"]);
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(1), &"conflict".into()), "{}", run.stderr);
    let reason = rows[0]["reason"].as_str().unwrap();
    assert!(reason.contains("this log as a run on cluster alpha, not beta"), "{reason}");
    assert_eq!(cluster(), "alpha");
    let (run, _) = place.upload(&[LOG, "--cluster", "no name"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
}

#[test]
fn a_log_is_uploaded_once_wherever_it_is() {
    let place = Place::make(0);
    let (run, rows) = place.upload(&[LOG]);
    let row = &rows[0];
    assert_eq!((run.code, &row["outcome"], &row["log"]), (Some(0), &"new".into(), &"sent".into()), "{rows}");
    assert_eq!(row["id"], place.id());
    place.assert_the_log_is_there();
    // A copy with another time is the same run, and so is its result file.
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::write(place.path("elsewhere").join(LOG), fs::read(place.path(LOG)).unwrap()).unwrap();
    for again in ["elsewhere", "results"] {
        let (run, rows) = place.upload(&[again]);
        let row = &rows[0];
        let became = (run.code, &row["outcome"], &row["log"]);
        assert_eq!(became, (Some(0), &"known".into(), &"known".into()), "{rows}");
    }
    // Also under another name.
    fs::copy(place.path(LOG), place.path("train.log")).unwrap();
    for more in [&[][..], &["--recipe", "llama3.1-8b/h100/fp8/8"]] {
        let (run, rows) = place.upload(&[&["train.log"], more].concat());
        assert_eq!((run.code, &rows[0]["outcome"]), (Some(0), &"known".into()), "{rows}");
    }
    // With another recipe, it is another result, which is refused.
    let (run, rows) = place.upload(&[LOG, "--recipe", "llama3.1-70b/h100/fp8/256"]);
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(1), &"conflict".into()), "{}", run.stderr);
    let reason = rows[0]["reason"].as_str().unwrap();
    assert!(reason.contains("this log as a run of llama3.1-8b/h100/fp8/8@25.04, not"), "{reason}");
    let page: Value = serde_json::from_str(&place.served.ask("GET", "/api/v1/runs").1).unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
}

#[test]
fn each_failure_has_its_exit_code() {
    let mut place = Place::make(0);
    let code = |arguments: &[&str]| place.upload(arguments).0;
    assert!(code(&["--pending"]).stderr.contains("Nothing to send"));
    for wrong in [&["nothing"][..], &["00000000"], &[], &["results", "--pending"], &["results", "--to", "x"]]
    {
        assert_eq!(code(wrong).code, Some(2), "{wrong:?}");
    }
    fs::write(place.dir.path().join("notes.txt"), "nothing that trains\n").unwrap();
    let notes = place.upload(&["notes.txt"]);
    assert_eq!((notes.0.code, &notes.1[0]["outcome"]), (Some(1), &"unreadable".into()), "{}", notes.0.stderr);
    // Other files in a folder are listed, but not a failure.
    fs::create_dir(place.path("experiments")).unwrap();
    fs::copy(place.path(LOG), place.path("experiments").join(LOG)).unwrap();
    fs::copy(place.path("notes.txt"), place.path("experiments").join("notes.txt")).unwrap();
    let (run, rows) = place.upload(&["experiments"]);
    let outcomes: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!((run.code, outcomes), (Some(0), vec!["new", "no_run"]), "{}", run.stderr);
    let with =
        |token: &str| run_of(&place.command(&["results"]).env("TRAINPLAN_TOKEN", token).output().unwrap());
    let stranger = with("tp_nobody");
    assert_eq!(stranger.code, Some(1));
    assert!(
        stranger.stdout.contains("\"denied\"") && stranger.stdout.contains("token"),
        "{}",
        stranger.stdout
    );
    let nobody = with("");
    assert_eq!(nobody.code, Some(2), "{}", nobody.stderr);
    place.served.kill();
    let away = place.upload(&["results", "experiments"]);
    assert_eq!((away.0.code, &away.1[0]["outcome"]), (Some(5), &"unreachable".into()), "{}", away.0.stderr);
    // The rest is counted, not tried and listed.
    assert_eq!(away.1.as_array().unwrap().len(), 1, "{}", away.1);
    let to = away.1[0]["to"].as_str().unwrap();
    let said = format!("The server {to} was not tried again: 2 more files or results were not sent.");
    assert!(away.0.stderr.contains(&said), "{}", away.0.stderr);
    assert!(!away.0.stderr.contains(&place.served.token) && !away.0.stdout.contains(&place.served.token));
}

#[test]
fn a_server_that_fails_is_not_called_unreachable() {
    let place = Place::make(0);
    let failing = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", failing.local_addr().unwrap());
    std::thread::spawn(move || {
        for wire in failing.incoming() {
            let mut wire = wire.unwrap();
            if wire.read(&mut [0; 1 << 16]).is_ok_and(|count| count > 0) {
                let answer =
                    "HTTP/1.1 500 Internal Server Error\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                let _ = wire.write_all(answer.as_bytes());
                // Unread bytes would reset the connection before the answer is read.
                let _ = wire.shutdown(Shutdown::Write);
                let _ = io::copy(&mut wire, &mut io::sink());
            }
        }
    });
    let run = run_of(&place.command(&["results"]).env("TRAINPLAN_SERVER", url).output().unwrap());
    let rows: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(1), &"failed".into()), "{}", run.stderr);
    let reason = rows[0]["reason"].as_str().unwrap();
    assert!(reason.contains(" failed: it answers 500") && !reason.contains("reached"), "{reason}");
}

#[test]
fn logs_of_running_runs_are_skipped() {
    let place = Place::make(0);
    fs::create_dir(place.path("experiments")).unwrap();
    let log = place.path("experiments").join("log-acct.pretrain_llama3.1_8b_fp8_8_77_0.out");
    let whole = fs::read_to_string(place.path(LOG)).unwrap();
    let half: String = whole.split_inclusive('\n').take(whole.lines().count() / 2).collect();
    fs::write(&log, &half).unwrap();
    let send = |what: &str| {
        let (run, rows) = place.upload(&[what]);
        assert_eq!((run.code, rows.as_array().unwrap().len()), (Some(0), 1), "{}", run.stderr);
        (rows[0]["outcome"].as_str().unwrap().to_owned(), run)
    };
    let (outcome, run) = send("experiments");
    assert!(outcome == "running" && run.stderr.contains("Skipped 1 log"), "{outcome}: {}", run.stderr);
    // The run is over.
    fs::write(&log, &whole).unwrap();
    assert_eq!(send("experiments").0, "new");
    let other = place.path("experiments").join("log-acct.pretrain_llama3.1_8b_fp8_8_78_0.out");
    fs::rename(&log, place.path("done.out")).unwrap();
    fs::write(&other, &half).unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(61 * 60);
    fs::File::options().write(true).open(&other).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(send("experiments").0, "new");
    // A named log is always sent.
    fs::write(&other, half + "\n").unwrap();
    assert_eq!(send("experiments").0, "running");
    assert_eq!(send(other.to_str().unwrap()).0, "new");
}

#[test]
fn a_killed_upload_resumes() {
    let place = Place::make(250_000);
    let file = place.result().to_string_lossy().into_owned();
    let mut child =
        place.command(&[&file, "--log", LOG]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    place.wait_for_some_of_the_log();
    child.kill().unwrap();
    child.wait().unwrap();
    if let Some(offset) = place.offset() {
        assert!(offset > 0, "what arrived stays");
    }
    let (run, rows) = place.upload(&[&file, "--log", LOG]);
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(0), &"known".into()), "{}", run.stderr);
    place.assert_the_log_is_there();
}

#[test]
fn an_upload_survives_a_killed_server() {
    let mut place = Place::make(250_000);
    let file = place.result().to_string_lossy().into_owned();
    let child =
        place.command(&[&file, "--log", LOG]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    place.wait_for_some_of_the_log();
    place.served.kill();
    std::thread::sleep(Duration::from_secs(1));
    place.served.start_again(&place.dir.path().join("server"));
    let run = run_of(&child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    place.assert_the_log_is_there();
}

#[test]
fn compressed_and_restarted_logs_arrive_as_their_text() {
    let place = Place::make(0);
    let text = fs::read(place.path(LOG)).unwrap();
    let (one, two) = text.split_at(text.len() / 2);
    fs::create_dir(place.path("compressed")).unwrap();
    fs::write(place.path("compressed").join(format!("{LOG}.zst")), zstd::encode_all(&*text, 3).unwrap())
        .unwrap();
    fs::create_dir(place.path("parts")).unwrap();
    fs::write(place.path("parts").join(LOG), one).unwrap();
    fs::write(place.path("parts").join(LOG.replace("_0.out", "_1.out")), two).unwrap();
    for (folder, outcome, log) in [("compressed", "new", "sent"), ("parts", "known", "known")] {
        let (run, rows) = place.upload(&[folder]);
        assert_eq!((run.code, rows.as_array().unwrap().len()), (Some(0), 1), "{}", run.stderr);
        assert_eq!(
            (&rows[0]["outcome"], &rows[0]["log"]),
            (&outcome.into(), &log.into()),
            "{folder}: {rows}"
        );
        assert_eq!(rows[0]["id"], *place.id(), "{folder}");
    }
}
