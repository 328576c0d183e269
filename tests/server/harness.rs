//! A server under test, its clients, and results to upload.

use crate::document;
use crate::services::{POSTGRES, S3, files, number};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};
use tempfile::TempDir;
use trainplan_shared::estimate::Interval;
use trainplan_shared::result::{
    self, CampaignRun, Comparability, Intake, LaunchRecord, PredictionRecord, RunResult, SlurmJob,
};
use trainplan_shared::spec::Spec;
use trainplan_tests::{Run, binary, run_of};
use ureq::http;
use uuid::Uuid;

/// A timeout for events that are due soon, also on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Waits until a value is available.
pub(crate) fn wait_for<T>(what: &str, limit: Duration, look: impl FnMut() -> Option<T>) -> T {
    wait_for_or(limit, look, || format!("no {what} within {limit:?}"))
}

/// The same, with details for the failure message.
pub(crate) fn wait_for_or<T>(
    limit: Duration,
    mut look: impl FnMut() -> Option<T>,
    otherwise: impl FnOnce() -> String,
) -> T {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{}", otherwise());
}

/// The kind of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SQLite and a folder, in the data directory.
    Local,
    /// PostgreSQL and a bucket.
    Shared,
}

/// Makes a test of a function for each kind of store.
macro_rules! on_every_store {
    ($($test:ident)*) => {
        mod sqlite_and_folder { $( #[test] fn $test() { super::$test(crate::harness::Kind::Local); } )* }
        mod postgres_and_bucket { $( #[test] fn $test() { super::$test(crate::harness::Kind::Shared); } )* }
    };
}
pub(crate) use on_every_store;

/// The place of a server's store, with ways to inspect it from outside.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    dir: Arc<TempDir>,
    pub(crate) database: Option<String>,
    pub(crate) bucket: Option<String>,
    environment: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn new(kind: Kind) -> Place {
        let place = Place::local();
        match kind {
            Kind::Local => place,
            Kind::Shared => {
                place.with_database(POSTGRES.database()).with_bucket(S3.place(), S3.environment())
            }
        }
    }

    pub(crate) fn local() -> Place {
        Place {
            dir: Arc::new(tempfile::tempdir().unwrap()),
            database: None,
            bucket: None,
            environment: Vec::new(),
        }
    }

    /// Returns a place with another directory, but the same database and bucket.
    pub(crate) fn beside(&self) -> Place {
        Place { dir: Arc::new(tempfile::tempdir().unwrap()), ..self.clone() }
    }

    /// Returns the place in a folder of this one.
    pub(crate) fn in_folder(folder: &Path) -> Place {
        Place { dir: Arc::new(tempfile::tempdir_in(folder).unwrap()), ..Place::local() }
    }

    pub(crate) fn with_database(self, address: String) -> Place {
        let mut environment = self.environment;
        environment.push(("TRAINPLAN_DATABASE_URL".into(), address.clone()));
        Place { database: Some(address), environment, ..self }
    }

    pub(crate) fn with_bucket(self, bucket: String, credentials: Vec<(String, String)>) -> Place {
        let mut environment = self.environment;
        environment.push(("TRAINPLAN_STORE".into(), bucket.clone()));
        environment.extend(credentials);
        Place { bucket: Some(bucket), environment, ..self }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the address of its database.
    pub(crate) fn address(&self) -> String {
        let file = || format!("sqlite://{}", self.dir().join("store.sqlite").display());
        self.database.clone().unwrap_or_else(file)
    }

    /// Returns the number that an SQL query yields in its database.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        number(&self.address(), sql).unwrap()
    }

    /// Returns the names of all files of raw logs and pieces, on disk or in the bucket.
    pub(crate) fn blobs(&self) -> Vec<String> {
        let name = |path: PathBuf| path.strip_prefix(self.blob_folder()).unwrap().display().to_string();
        // The S3 server stores metadata beside the objects.
        files(&self.blob_folder()).into_iter().map(name).filter(|name| !name.contains(".s3s")).collect()
    }

    /// Returns the folder of those files.
    pub(crate) fn blob_folder(&self) -> PathBuf {
        self.bucket.as_ref().map_or_else(|| self.dir().join("blobs"), |bucket| S3.folder(bucket))
    }

    /// Runs another command of the program on this store.
    pub(crate) fn trainplan(&self, arguments: &[&str]) -> Run {
        run_of(&self.command(arguments).output().unwrap())
    }

    /// Returns another command of the program on this store, which is not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).arg("--data-dir").arg(self.dir()).envs(self.environment.iter().cloned());
        command
    }

    /// Creates a token with the command line.
    pub(crate) fn token(&self, scope: &str, more: &[&str]) -> String {
        let create = ["token", "create", "--name", scope, "--scope", scope, "--format", "table"];
        let made = self.trainplan(&[&create[..], more].concat());
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        made.stdout.trim().to_owned()
    }
}

/// Options of a server under test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options<'a> {
    /// Additional arguments.
    pub(crate) arguments: &'a [&'a str],
    /// Additional environment variables.
    pub(crate) environment: &'a [(&'a str, &'a str)],
    /// A command that starts the server, such as `prlimit`, with its own arguments.
    pub(crate) by: &'a [&'a str],
}

/// A server that runs until this value is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) place: Place,
    pub(crate) address: SocketAddr,
    /// The token that it printed; empty if it is not on loopback.
    pub(crate) owner: String,
    child: Child,
    output: Arc<Mutex<String>>,
}

impl Server {
    /// Starts a server on a new local store.
    pub(crate) fn start() -> Server {
        Server::at(&Place::local())
    }

    /// Starts a server on a store, new or existing.
    pub(crate) fn at(place: &Place) -> Server {
        Server::with(place, &Options::default())
    }

    pub(crate) fn with(place: &Place, options: &Options) -> Server {
        Server::try_with(place, options).unwrap_or_else(|said| panic!("the server did not start: {said}"))
    }

    /// Starts a server; returns its output if it does not start.
    pub(crate) fn try_with(place: &Place, options: &Options) -> Result<Server, String> {
        let mut command = Command::new(options.by.first().map_or_else(binary, PathBuf::from));
        if let Some((_, arguments)) = options.by.split_first() {
            command.args(arguments).arg(binary());
        }
        command.arg("serve").arg("--data-dir").arg(place.dir());
        if !options.arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command
            .args(options.arguments)
            .envs(place.environment.iter().cloned())
            .envs(options.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn({
            let output = Arc::clone(&output);
            move || {
                for line in stderr.lines().map_while(Result::ok) {
                    let _ = writeln!(output.lock().unwrap(), "{line}");
                }
            }
        });
        let said = || output.lock().unwrap().clone();
        let start = wait_for_or(
            SOON,
            || {
                let (all, ended) = (said(), child.try_wait().unwrap().is_some());
                // Its output may arrive after its end.
                let start = announced(&all);
                if start.is_none() && ended {
                    thread::sleep(Duration::from_millis(100));
                    return Some(Err(said()));
                }
                start.map(Ok)
            },
            || format!("no server: {}", said()),
        );
        let (address, owner) = start?;
        Ok(Server { place: place.clone(), address, owner, child, output })
    }

    /// Returns its output so far.
    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it.
    pub(crate) fn kill(mut self) -> Place {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.place.clone()
    }

    /// Asks it to stop.
    pub(crate) fn tell_to_end(&self) {
        let status = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end; returns whether it succeeded.
    pub(crate) fn wait(mut self) -> bool {
        let status = wait_for("end", SOON, || self.child.try_wait().unwrap());
        status.success()
    }

    /// Restarts it on the same store.
    pub(crate) fn again(self) -> Server {
        let place = self.place.clone();
        self.tell_to_end();
        assert!(self.wait());
        Server::at(&place)
    }

    /// Returns a client with the token that the server printed.
    pub(crate) fn owner(&self) -> Client {
        Client::new(self.address, Some(&self.owner))
    }

    /// Returns a client without a token.
    pub(crate) fn anyone(&self) -> Client {
        Client::new(self.address, None)
    }

    /// Returns a client with this token.
    pub(crate) fn by(&self, token: &str) -> Client {
        Client::new(self.address, Some(token))
    }

    /// Opens a raw connection.
    pub(crate) fn wire(&self) -> TcpStream {
        wire(self.address)
    }

    /// Returns its peak memory in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Returns the processor time that it used so far, in ticks of 10 ms.
    pub(crate) fn processor_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        // After the name of the program: its state, then 10 other values.
        let (_, after) = stat.rsplit_once(')').unwrap();
        after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("-- the server at {} said:\n{}", self.address, self.output());
        }
    }
}

/// Returns the address and the token in the output of a starting server; an empty token if it prints none.
fn announced(said: &str) -> Option<(SocketAddr, String)> {
    if let Some((_, after)) = said.split_once("listens on ") {
        return Some((after.split_whitespace().next()?.parse().ok()?, String::new()));
    }
    let address = said.split_once("Trainplan is at http://")?.1.split_whitespace().next()?.parse().ok()?;
    let (token, _) = said.split_once("#token=")?.1.split_once('\n')?;
    Some((address, token.to_owned()))
}

pub(crate) fn wire(address: SocketAddr) -> TcpStream {
    let wire = TcpStream::connect(address).unwrap();
    wire.set_read_timeout(Some(2 * SOON)).unwrap();
    wire.set_write_timeout(Some(2 * SOON)).unwrap();
    wire
}

/// A client of the API, which checks each answer against the OpenAPI document.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
    agent: ureq::Agent,
}

/// An answer of the server.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>) -> Client {
        let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0);
        let config = config.timeout_global(Some(2 * SOON)).accept_encoding("identity");
        Client { address, token: token.map(str::to_owned), agent: config.build().into() }
    }

    /// Sends a request; `path` is below `/api/v1`, or below the root if it begins with `//`.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Answer {
        self.try_ask(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The same, for a server that may be gone.
    pub(crate) fn try_ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Answer, ureq::Error> {
        let answer = self.send(method, path, headers, body)?;
        document::check(method, path, &answer);
        Ok(answer)
    }

    /// The same, without checking the answer against the document.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Answer, ureq::Error> {
        let at = match path.strip_prefix("//") {
            Some(path) => format!("http://{}/{path}", self.address),
            None => format!("http://{}/api/v1{path}", self.address),
        };
        let mut request = http::Request::builder().method(method).uri(at);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = match body {
            Some(body) => self.agent.run(request.body(body)?),
            None => self.agent.run(request.body(())?),
        };
        let (head, mut body) = answer?.into_parts();
        let body = body.with_config().limit(u64::MAX).read_to_vec()?;
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], None)
    }

    /// Returns the JSON of a successful GET.
    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], Some(body.to_string().as_bytes()))
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, &[], None)
    }

    /// Uploads a result.
    pub(crate) fn put(&self, run: &RunResult) -> Answer {
        self.try_put(run).unwrap()
    }

    /// The same, for a server that may be gone.
    pub(crate) fn try_put(&self, run: &RunResult) -> Result<Answer, ureq::Error> {
        let file = file_of(run);
        self.try_ask("PUT", &format!("/runs/{}", run.id), &[("content-digest", &digest(&file))], Some(&file))
    }

    /// Uploads a piece of a log.
    pub(crate) fn put_log(&self, id: Uuid, offset: usize, is_last: bool, bytes: &[u8]) -> Answer {
        self.try_put_log(id, offset, is_last, bytes).unwrap()
    }

    pub(crate) fn try_put_log(
        &self,
        id: Uuid,
        offset: usize,
        is_last: bool,
        bytes: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let (offset, last) = (offset.to_string(), if is_last { "?1" } else { "?0" });
        let headers = [("upload-offset", offset.as_str()), ("upload-complete", last)];
        self.try_ask("PUT", &format!("/runs/{id}/log"), &headers, Some(bytes))
    }

    /// Returns the uploaded part of a log; none if it is complete.
    pub(crate) fn offset(&self, id: Uuid) -> Option<usize> {
        let answer = self.ask("HEAD", &format!("/runs/{id}/log"), &[], None);
        assert_eq!(answer.status, 200);
        match answer.header("upload-complete") {
            Some("?1") => None,
            Some("?0") => Some(answer.header("upload-offset").unwrap().parse().unwrap()),
            other => panic!("upload-complete: {other:?}"),
        }
    }

    /// Uploads a result and its log.
    pub(crate) fn put_all(&self, made: &Made) {
        assert_eq!(self.put(&made.run).status, 201);
        assert_eq!(self.put_log(made.run.id, 0, true, &made.log).status, 200);
    }

    /// Returns the ids on all pages of a list.
    pub(crate) fn all(&self, query: &str) -> Vec<String> {
        let mut all = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.json(&format!("/runs?{query}{cursor}"));
            all.extend(ids(&page));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={}", encoded(next)),
                None => return all,
            }
        }
    }

    /// Opens the event stream after the event with this number.
    pub(crate) fn watch(&self, last: Option<i64>) -> Events {
        self.watch_after(last.map(|last| last.to_string()).as_deref())
    }

    /// The same, after any text.
    pub(crate) fn watch_after(&self, last: Option<&str>) -> Events {
        let mut wire = wire(self.address);
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let last = last.map(|last| format!("Last-Event-ID: {last}\r\n"));
        let (token, last) = (token.unwrap_or_default(), last.unwrap_or_default());
        write!(wire, "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n{token}{last}\r\n", self.address).unwrap();
        let mut lines = BufReader::new(wire);
        let head = read_head(&mut lines);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        Events { lines }
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Returns the detail of a problem with this status.
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], status);
        problem["detail"].as_str().unwrap().to_owned()
    }
}

/// An open event stream.
pub(crate) struct Events {
    lines: BufReader<TcpStream>,
}

impl Events {
    /// Returns the next event: number, kind and run. None at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<(i64, String, String)> {
        let (mut seq, mut kind) = (0, String::new());
        let start = Instant::now();
        loop {
            // Keep-alive comments arrive forever.
            assert!(start.elapsed() < SOON, "no event within {SOON:?}");
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Chunk sizes and comments between the lines of events are not fields.
            match line.trim_end().split_once(": ") {
                Some(("id", value)) => seq = value.parse().unwrap(),
                Some(("event", value)) => kind = value.to_owned(),
                Some(("data", value)) => {
                    let data: Value = serde_json::from_str(value).unwrap();
                    return Some((seq, kind, data["id"].as_str().unwrap().to_owned()));
                }
                _ => {}
            }
        }
    }

    /// Returns the next event other than an alert, without its number.
    pub(crate) fn told(&mut self) -> (String, String) {
        loop {
            let (_, kind, id) = self.next().unwrap();
            if kind != "alert" {
                return (kind, id);
            }
        }
    }
}

/// Reads a response's head.
pub(crate) fn read_head(wire: &mut impl BufRead) -> String {
    let mut head = String::new();
    while wire.read_line(&mut head).unwrap() > 2 {}
    head
}

/// Reads a connection until the other side closes it.
pub(crate) fn read_all(wire: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let _ = wire.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

/// Returns the ids on a page of runs.
pub(crate) fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

/// Encodes a text for a query.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "%{byte:02X}");
        text
    })
}

/// Returns the `Content-Digest` of a body.
pub(crate) fn digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", BASE64_STANDARD.encode(Sha256::digest(body)))
}

/// Returns the file of a result.
pub(crate) fn file_of(run: &RunResult) -> Vec<u8> {
    result::write(run).unwrap().into_bytes()
}

/// A result with its log.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) run: RunResult,
    pub(crate) log: Vec<u8>,
}

/// Returns a run with this step time that no campaign launched: its id follows from its log.
pub(crate) fn made(step_time_s: f64) -> Made {
    made_of(log(step_time_s, 50))
}

/// Returns the run of a log.
pub(crate) fn made_of(log: Vec<u8>) -> Made {
    let mut intake = Intake::new("e/log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out", &Spec::default());
    intake.feed(&log);
    Made { run: intake.finish(), log }
}

/// Returns a run that a campaign launched on a cluster.
pub(crate) fn carried(step_time_s: f64, cluster: &str) -> Made {
    let made = made(step_time_s);
    let carried = CampaignRun {
        campaign: "nightly".into(),
        run: "llama-8b".into(),
        repeat: 1,
        cluster: cluster.into(),
        jobs: vec![SlurmJob { id: "12345".into(), ..SlurmJob::default() }],
        launch: LaunchRecord {
            release: Some("25.04".into()),
            style: "launch-sh".into(),
            script_sha256: "0".repeat(64),
            steps: 50,
            comparable: Comparability { yes: true, reasons: Vec::new() },
        },
        plan: PredictionRecord {
            step_time_s: Interval { low: 9.0, mid: 10.0, high: 12.0 },
            memory_bytes: 6e10,
            capacity_bytes: 8e10,
            basis: "published".into(),
            calibration: "trainplan 0.1.0".into(),
        },
    };
    Made { run: made.run.of_run(Uuid::now_v7(), carried), ..made }
}

/// Returns a log with this many steps of this many seconds.
pub(crate) fn log(step_time_s: f64, steps: usize) -> Vec<u8> {
    let last = steps - 1;
    let line = |step| {
        format!(
            "Training epoch 0, iteration {step}/{last} | lr: 0.0001 | global_batch_size: 128 | global_step: {step} | \
             reduced_train_loss: 11.0 | train_step_timing in s: {step_time_s} |\n"
        )
    };
    (0..steps).map(line).collect::<String>().into_bytes()
}

/// Returns a run whose log has at least this many bytes and hardly compresses.
pub(crate) fn made_long(bytes: usize) -> Made {
    let mut text = log(12.39, 50);
    while text.len() < bytes {
        let random: String = (0..100).map(|_| fastrand::alphanumeric()).collect();
        text.extend_from_slice(random.as_bytes());
        text.push(b'\n');
    }
    made_of(text)
}

/// Returns a progress report.
pub(crate) fn progress(step: u64) -> Value {
    json!({
        "campaign": "nightly", "run": "llama-8b", "repeat": 1, "cluster": "eos", "recipe": null, "state": "running",
        "step": step, "steps": 50, "step_time_s": 12.4, "planned_s": 12.0, "jobs": ["12345"], "at": "2026-11-21T12:00:00Z"
    })
}
