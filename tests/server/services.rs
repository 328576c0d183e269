//! What the server may stand on: a real PostgreSQL and a real S3 server, started and stopped at will.

use crate::harness::{wait_for, wait_for_or};
use sqlx::{AnyConnection, Connection, Executor};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use std::{fs, iter};

/// The password of the database, which may be in no output of the server.
pub(crate) const PASSWORD: &str = "pg-s3cret-of-the-database";

/// The same of the bucket.
pub(crate) const S3_SECRET: &str = "s3-s3cret-of-the-bucket";

const START: Duration = Duration::from_secs(60);

/// A program that runs until this value, or this process, ends.
#[derive(Debug)]
struct Kept {
    keeper: Child,
    line: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
}

impl Kept {
    fn start(folder: &Path, signal: &str, command: &Command) -> Kept {
        let mut keeper = Command::new("sh")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/server/keeper.sh"))
            .arg(folder)
            .arg(signal)
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let line = (keeper.stdin.take().unwrap(), BufReader::new(keeper.stdout.take().unwrap()));
        Kept { keeper, line: Mutex::new(Some(line)) }
    }

    fn order(&self, order: &str) {
        let mut line = self.line.lock().unwrap();
        let (orders, answers) = line.as_mut().unwrap();
        writeln!(orders, "{order}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "ok\n", "{order}");
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.line.lock().map(|mut line| line.take()));
        drop(self.keeper.wait());
    }
}

/// A folder that only its keeper removes. Its path stays short, since a socket's may have no more than some
/// 100 characters.
fn folder(prefix: &str) -> PathBuf {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in("/tmp").unwrap().keep();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn is_listening(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// A PostgreSQL of its own, on loopback.
#[derive(Debug)]
pub(crate) struct Postgres {
    kept: Kept,
    folder: PathBuf,
    port: u16,
}

/// One for all tests that do not break it.
pub(crate) static POSTGRES: LazyLock<Postgres> = LazyLock::new(Postgres::start);

impl Postgres {
    /// Makes a new one, and waits until it answers.
    pub(crate) fn start() -> Postgres {
        let folder = folder("pg.");
        let (data, password, port) = (folder.join("data"), folder.join("password"), free_port());
        fs::write(&password, PASSWORD).unwrap();
        let mut init = as_postgres(&folder, "initdb");
        init.args([
            "--username=trainplan",
            "--auth=scram-sha-256",
            "--no-sync",
            "--no-locale",
            "--encoding=UTF8",
        ]);
        let init = init.arg("--pwfile").arg(&password).arg("--pgdata").arg(&data).output().unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        let mut postgres = as_postgres(&folder, "postgres");
        // Tests need no durability, so they don't wait for the disk.
        postgres.args(["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=600"]);
        postgres.arg("-k").arg(&folder).arg("-p").arg(port.to_string()).arg("-D").arg(&data);
        let kept = Kept::start(&folder, "QUIT", &postgres);
        let postgres = Postgres { kept, folder, port };
        postgres.wait();
        postgres
    }

    /// A new database's address.
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("db{}", NEXT.fetch_add(1, Ordering::Relaxed));
        execute(&self.address("postgres"), &format!("CREATE DATABASE {name}")).unwrap();
        self.address(&name)
    }

    fn address(&self, database: &str) -> String {
        format!("postgres://trainplan:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// Ends it as a crash of its machine would.
    pub(crate) fn stop(&self) {
        self.kept.order("stop");
    }

    /// Starts it again, and waits until it answers.
    pub(crate) fn start_again(&self) {
        self.kept.order("start");
        self.wait();
    }

    fn wait(&self) {
        let told = || fs::read_to_string(self.folder.join("output")).unwrap_or_default();
        let ready = || number(&self.address("postgres"), "SELECT 1").ok();
        wait_for_or(START, ready, || format!("no PostgreSQL: {}", told()));
    }
}

/// A program of PostgreSQL, as a user that is not root, since it refuses root.
fn as_postgres(folder: &Path, name: &str) -> Command {
    if Command::new("id").arg("-u").output().unwrap().stdout != b"0\n" {
        return Command::new(program(name));
    }
    let owned = Command::new("chown").arg("-R").arg("postgres").arg(folder).status().unwrap();
    assert!(owned.success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program(name));
    command
}

/// A program's path: on PATH, or where Debian has those that are not.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let debian = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"));
    let found =
        debian.chain(std::env::split_paths(&path)).map(|folder| folder.join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{name} is not installed; run the tests with `scripts/tools test`"))
}

/// An S3 server of its own, on loopback, over a folder.
#[derive(Debug)]
pub(crate) struct S3 {
    kept: Kept,
    folder: PathBuf,
    port: u16,
}

/// One for all tests that do not break it.
pub(crate) static S3: LazyLock<S3> = LazyLock::new(S3::start);

const BUCKET: &str = "results";

impl S3 {
    /// Starts one, and waits until it answers.
    pub(crate) fn start() -> S3 {
        let (folder, port) = (folder("s3."), free_port());
        fs::create_dir_all(folder.join("data").join(BUCKET)).unwrap();
        let mut server = Command::new(program("s3s-fs"));
        server.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--access-key", "trainplan"]);
        server.args(["--secret-key", S3_SECRET]).arg(folder.join("data"));
        let s3 = S3 { kept: Kept::start(&folder, "KILL", &server), folder, port };
        s3.wait();
        s3
    }

    /// A place for logs that no other test uses.
    pub(crate) fn place(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        format!("s3://{BUCKET}/place{}", NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// What a client needs to know.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let own = [
            ("AWS_ACCESS_KEY_ID", "trainplan".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", S3_SECRET.to_owned()),
            ("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ];
        own.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// The folder in which a place's objects are.
    pub(crate) fn folder(&self, place: &str) -> PathBuf {
        self.folder.join("data").join(place.strip_prefix("s3://").unwrap())
    }

    pub(crate) fn stop(&self) {
        self.kept.order("stop");
    }

    pub(crate) fn start_again(&self) {
        self.kept.order("start");
        self.wait();
    }

    fn wait(&self) {
        wait_for("S3", START, || is_listening(self.port).then_some(()));
    }
}

/// Runs SQL in a database, by its address.
pub(crate) fn execute(address: &str, sql: &str) -> sqlx::Result<()> {
    in_database(address, async |database| database.execute(sql).await.map(|_| ()))
}

/// The number that SQL answers.
pub(crate) fn number(address: &str, sql: &str) -> sqlx::Result<i64> {
    in_database(address, async |database| {
        sqlx::query_scalar(&format!("SELECT CAST(({sql}) AS BIGINT)")).fetch_one(database).await
    })
}

/// Changes a database behind the server's back.
pub(crate) fn change(address: &str, sql: &str) {
    let changed = in_database(address, async |database| sqlx::query(sql).execute(database).await);
    assert_eq!(changed.unwrap().rows_affected(), 1, "{sql}");
}

/// Changes a database in a transaction that begins with `lock`, before `meanwhile`, and ends after it.
pub(crate) fn change_after(address: &str, lock: &[&str], meanwhile: impl FnOnce(), sql: &str) {
    let changed = in_database(address, async |database| {
        for statement in lock {
            (&mut *database).execute(*statement).await?;
        }
        meanwhile();
        (&mut *database).execute(sql).await?;
        database.execute("COMMIT").await.map(|_| ())
    });
    changed.unwrap();
}

fn in_database<T>(
    address: &str,
    ask: impl AsyncFnOnce(&mut AnyConnection) -> sqlx::Result<T>,
) -> sqlx::Result<T> {
    sqlx::any::install_default_drivers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut database = AnyConnection::connect(address).await?;
        let answer = ask(&mut database).await;
        database.close().await?;
        answer
    })
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { iter::once(path).collect() }).collect()
}
