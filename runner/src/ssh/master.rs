//! A master: the one connection to a host that all sessions share.

use super::config::{Config, ControlDir, is_dead};
use super::link::LinkError;
use super::script::Script;
use super::session::{exchange, in_full};
use openssh::Session;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

/// For all of a connection, from the name of the host to being let in, jump hosts included.
const CONNECTING: Duration = Duration::from_secs(18);

/// What a probe may take, over a link that works.
pub(super) const PROBING: Duration = Duration::from_secs(5);

/// What may be asked of ssh on this machine takes no time, unless its configuration runs programs.
const ASKING: Duration = Duration::from_secs(5);

/// A living master.
#[derive(Debug)]
pub(super) struct Master {
    session: Session,
    socket: PathBuf,
    /// Its process, if it is ours to end.
    process: Option<Pid>,
}

impl Master {
    /// The master of somebody else, if a script gets through it. Asking the master itself would not tell: it answers
    /// for as long as it lives, even if its connection is long frozen.
    pub(super) async fn adopt(socket: PathBuf) -> Option<Master> {
        if is_dead(&socket) {
            return None;
        }
        let session = Session::resume_mux(socket.clone().into(), None);
        let master = Master { session, socket, process: None };
        master.answers(&AtomicU64::new(0)).await.then_some(master)
    }

    /// Connects to a host. The master ends `idle` after its last session, if nobody ends it before.
    pub(super) async fn start(
        host: &str,
        directory: &ControlDir,
        config: &Config,
        idle: Duration,
    ) -> Result<Master, Failed> {
        let socket = directory.fresh();
        // A jump host's ssh says there, too, why it failed.
        let log = socket.with_extension("log");
        let stderr = File::create(&log).map_err(|error| Failed(format!("{}: {error}", log.display())))?;
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(config.path()).arg("-M").arg("-S").arg(&socket);
        ssh.args(["-f", "-N", "-o", &format!("ControlPersist={}", idle.as_secs()), "--", host]);
        ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).kill_on_drop(true);
        let ended = timeout(CONNECTING, async { ssh.spawn()?.wait().await }).await;
        let said = fs::read(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        let said = String::from_utf8_lossy(&said).replace('\r', "");
        match ended {
            Err(_) => Err(Failed(format!("no connection within {} s", CONNECTING.as_secs()))),
            Ok(Err(error)) => Err(Failed(format!("ssh cannot be started: {error}"))),
            Ok(Ok(status)) if !status.success() => Err(Failed(said)),
            Ok(Ok(_)) => {
                let process = process_of(host, &socket, config).await;
                Ok(Master { session: Session::resume_mux(socket.clone().into(), None), socket, process })
            }
        }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Whether its process is there; the connection may be gone all the same.
    pub(super) fn is_there(&self) -> bool {
        !is_dead(&self.socket)
    }

    /// Whether a script gets through.
    pub(super) async fn answers(&self, received: &AtomicU64) -> bool {
        let probe = Script::new("probe", "true");
        timeout(PROBING, exchange(&self.session, &probe, PROBING, received))
            .await
            .is_ok_and(|told| told.is_ok())
    }

    /// Ends it for good if it is ours, even if it does not react any more.
    pub(super) async fn evict(&self) {
        self.signal(Signal::TERM);
        for _ in 0..10 {
            if !self.is_there() {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        self.signal(Signal::KILL);
        if self.process.is_some() {
            let _ = fs::remove_file(&self.socket);
        }
    }

    /// As long as somebody listens to the socket, the process is the one that it was.
    fn signal(&self, signal: Signal) {
        if let Some(process) = self.process.filter(|_| self.is_there()) {
            let _ = kill_process(process, signal);
        }
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
    }
}

/// Says why a host behind a jump host can't be reached, if the jump host is to blame: of its ssh, one that leaves a
/// master behind shows nothing.
pub(super) async fn ask_jump_host(failed: Failed, host: &str, config: &Config) -> Failed {
    let its_end = ["Connection closed by", "Connection reset by", "Broken pipe"];
    if !its_end.iter().any(|words| failed.0.contains(words)) {
        return failed;
    }
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(config.path()).args(["-S", "none", "--", host, "exit"]);
    ssh.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    match timeout(ASKING, ssh.output()).await {
        Ok(Ok(output)) if !output.status.success() => {
            Failed(String::from_utf8_lossy(&output.stderr).replace('\r', ""))
        }
        _ => failed,
    }
}

/// What ssh said when it failed.
#[derive(Debug)]
pub(super) struct Failed(String);

impl Failed {
    /// What that means, and whether trying again can help. ssh has but words to tell by; they have been the same for
    /// many years.
    pub(super) fn of(self, host: &str, connect: &str) -> LinkError {
        let Failed(said) = self;
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        // A jump host's end is the last that is heard of it, and the least telling.
        let telling =
            |line: &&&str| !line.starts_with("kex_exchange_identification") && !line.contains("UNKNOWN port");
        let last = lines.iter().rfind(telling).or(lines.last());
        let last = last.map_or("ssh failed and did not say why", |line| line.trim_end_matches('.'));
        let has = |words: &[&str]| words.iter().any(|words| said.contains(words));
        let refused = |why: String, what_to_do: String| LinkError::Refused { why, what_to_do };
        if has(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
            return refused(
                format!("{host}: its host key is not the one that your known_hosts has"),
                format!(
                    "ask the site whether its key has changed; if so, remove the old one (ssh-keygen -R) and run \
                     `{connect}`"
                ),
            );
        }
        if has(&["Host key verification failed", "host key is known for"]) {
            return refused(
                format!("{host}: its host key is not in your known_hosts"),
                format!("run `{connect}`, which shows the fingerprint and asks you once"),
            );
        }
        if has(&["Permission denied", "Too many authentication failures", "Authentication failed"]) {
            return refused(
                format!("{host}: {last}"),
                format!(
                    "if it asks for a password or a second factor, run `{connect}` and answer once; if it takes a \
                     key, load it (ssh-add)"
                ),
            );
        }
        if has(&["configuration option", "Bad owner or permissions", "ssh cannot be started"]) {
            return refused(
                format!("{host}: {last}"),
                "see that OpenSSH is installed and that `ssh -G` likes your configuration".into(),
            );
        }
        LinkError::Unreachable { why: format!("{host}: {last}"), retry_after: Duration::ZERO }
    }
}

/// What ssh makes of a host's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    /// The same for two names that mean the same connection.
    pub(super) identity: String,
    /// Where the user's own configuration keeps a master.
    pub(super) control_path: Option<PathBuf>,
    /// Whether it lies behind another host.
    pub(super) is_behind: bool,
}

impl Destination {
    /// Asks ssh; it connects to nothing.
    pub(super) async fn of(host: &str, config: &Config) -> Result<Destination, Failed> {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(config.path()).args(["-G", "--", host]).stdin(Stdio::null()).kill_on_drop(true);
        let output = match timeout(ASKING, ssh.output()).await {
            Err(_) => return Err(Failed(format!("ssh -G took more than {} s", ASKING.as_secs()))),
            Ok(output) => {
                output.map_err(|error| Failed(format!("ssh cannot be started: {}", in_full(&error))))?
            }
        };
        if !output.status.success() {
            return Err(Failed(String::from_utf8_lossy(&output.stderr).replace('\r', "")));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let settings = || text.lines().filter_map(|line| line.split_once(' '));
        let makes_it = ["user", "hostname", "port", "proxyjump", "proxycommand", "hostkeyalias"];
        let identity = settings().filter(|(key, _)| makes_it.contains(key));
        let control_path = settings().find(|(key, value)| *key == "controlpath" && *value != "none");
        Ok(Destination {
            identity: identity.map(|(key, value)| format!("{key} {value}\n")).collect(),
            control_path: control_path.map(|(_, path)| PathBuf::from(path)),
            is_behind: settings()
                .any(|(key, value)| ["proxyjump", "proxycommand"].contains(&key) && value != "none"),
        })
    }
}

/// The process of the master that listens to a socket.
async fn process_of(host: &str, socket: &Path, config: &Config) -> Option<Pid> {
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(config.path()).arg("-S").arg(socket).args(["-O", "check", "--", host]);
    ssh.stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(ASKING, ssh.output()).await.ok()?.ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let number = said.split("pid=").nth(1)?.split(')').next()?.parse().ok()?;
    Pid::from_raw(number)
}
