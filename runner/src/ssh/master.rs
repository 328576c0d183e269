//! A master: the connection to a host that all sessions share.

use super::config::{ControlDir, SshConfig, is_dead};
use super::error::LinkError;
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

/// Time limit of a connection, from resolving the name to authentication, jump hosts included.
const CONNECTING: Duration = Duration::from_secs(18);

/// Time limit of a probe.
pub(super) const PROBING: Duration = Duration::from_secs(5);

/// Time limit of ssh commands on this machine. They take long only if the configuration runs programs.
const ASKING: Duration = Duration::from_secs(5);

/// A master that has connected.
#[derive(Debug)]
pub(super) struct Master {
    session: Session,
    socket: PathBuf,
    /// Its process, if this process started it.
    process: Option<Pid>,
}

impl Master {
    /// Adopts the master of a socket, if a script runs over it. The master alone would answer even if its
    /// connection hangs.
    pub(super) async fn adopt(socket: PathBuf) -> Option<Master> {
        if is_dead(&socket) {
            return None;
        }
        let session = Session::resume_mux(socket.clone().into(), None);
        let master = Master { session, socket, process: None };
        master.answers(&AtomicU64::new(0)).await.then_some(master)
    }

    /// Connects to a host. The master ends after being idle for so long, unless it is ended before.
    pub(super) async fn start(
        host: &str,
        directory: &ControlDir,
        config: &SshConfig,
        idle: Duration,
    ) -> Result<Master, SshFailure> {
        let socket = directory.fresh();
        // The ssh to a jump host writes its error there as well.
        let log = socket.with_extension("log");
        let stderr = File::create(&log).map_err(|error| SshFailure(format!("{}: {error}", log.display())))?;
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(config.path()).arg("-M").arg("-S").arg(&socket);
        ssh.args(["-f", "-N", "-o", &format!("ControlPersist={}", idle.as_secs()), "--", host]);
        ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).kill_on_drop(true);
        let ended = timeout(CONNECTING, async { ssh.spawn()?.wait().await }).await;
        let output = fs::read(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        let output = String::from_utf8_lossy(&output).replace('\r', "");
        match ended {
            Err(_) => Err(SshFailure(format!("connecting timed out after {} s", CONNECTING.as_secs()))),
            Ok(Err(error)) => Err(SshFailure(format!("{NO_SSH}: {error}"))),
            Ok(Ok(status)) if !status.success() => Err(SshFailure(output)),
            Ok(Ok(_)) => {
                let process = process_of(host, &socket, config).await;
                Ok(Master { session: Session::resume_mux(socket.clone().into(), None), socket, process })
            }
        }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Returns whether its process is alive. The connection may be broken all the same.
    pub(super) fn is_there(&self) -> bool {
        !is_dead(&self.socket)
    }

    /// Returns whether a script runs over it.
    pub(super) async fn answers(&self, received: &AtomicU64) -> bool {
        let probe = Script::new("probe", "true");
        timeout(PROBING, exchange(&self.session, &probe, PROBING, received))
            .await
            .is_ok_and(|answer| answer.is_ok())
    }

    /// Ends its process if this process started it, by SIGKILL if needed.
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

    /// Signals its process. While the socket has a listener, the process id has not been reused.
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

/// Returns the jump host's error if that is why a host can't be reached. An ssh that starts a master does not
/// print it.
pub(super) async fn ask_jump_host(failed: SshFailure, host: &str, config: &SshConfig) -> SshFailure {
    let its_end = ["Connection closed by", "Connection reset by", "Broken pipe"];
    if !its_end.iter().any(|words| failed.0.contains(words)) {
        return failed;
    }
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(config.path()).args(["-S", "none", "--", host, "exit"]);
    ssh.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    match timeout(ASKING, ssh.output()).await {
        Ok(Ok(output)) if !output.status.success() => {
            SshFailure(String::from_utf8_lossy(&output.stderr).replace('\r', ""))
        }
        _ => failed,
    }
}

/// The error output of ssh.
#[derive(Debug)]
pub(super) struct SshFailure(String);

/// Begins the error if ssh can't be started.
const NO_SSH: &str = "can't start ssh";

impl SshFailure {
    /// Returns the error for the user. ssh has one exit code for all errors, so its messages decide; they
    /// have not changed for many years.
    pub(super) fn of(self, host: &str, connect: &str) -> LinkError {
        let SshFailure(output) = self;
        let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        // The lines about the end of a jump host's connection don't say why it ended.
        let says_why =
            |line: &&&str| !line.starts_with("kex_exchange_identification") && !line.contains("UNKNOWN port");
        let last = lines.iter().rfind(says_why).or(lines.last());
        let last = last.map_or("ssh failed without a message", |line| line.trim_end_matches('.'));
        let has = |words: &[&str]| words.iter().any(|words| output.contains(words));
        let refused = |why: String, what_to_do: String| LinkError::Refused { why, what_to_do };
        if has(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
            return refused(
                format!("{host}: its host key does not match the one in your known_hosts"),
                format!(
                    "Ask the site whether the key has changed. If so, remove the old one (ssh-keygen -R) \
                     and run `{connect}`."
                ),
            );
        }
        if has(&["Host key verification failed", "host key is known for"]) {
            return refused(
                format!("{host}: its host key is not in your known_hosts"),
                format!("Run `{connect}`, which shows the fingerprint and asks you to confirm it."),
            );
        }
        if has(&["Permission denied", "Too many authentication failures", "Authentication failed"]) {
            return refused(
                format!("{host}: {last}"),
                format!(
                    "If the host asks for a password or a second factor, run `{connect}` and answer once. \
                     If it needs a key, load it with ssh-add."
                ),
            );
        }
        if has(&["configuration option", "Bad owner or permissions", NO_SSH]) {
            return refused(
                format!("{host}: {last}"),
                "Check that OpenSSH is installed and that `ssh -G` accepts your configuration.".into(),
            );
        }
        LinkError::Unreachable { why: format!("{host}: {last}"), retry_after: Duration::ZERO }
    }
}

/// Where a host's name leads by ssh's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    /// Equal for two names of the same connection.
    pub(super) identity: String,
    /// The socket of a master, if the user's configuration has one.
    pub(super) control_path: Option<PathBuf>,
    /// Whether it is reached through another host.
    pub(super) is_behind: bool,
}

impl Destination {
    /// Asks ssh, without connecting.
    pub(super) async fn of(host: &str, config: &SshConfig) -> Result<Destination, SshFailure> {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(config.path()).args(["-G", "--", host]).stdin(Stdio::null()).kill_on_drop(true);
        let output = match timeout(ASKING, ssh.output()).await {
            Err(_) => return Err(SshFailure(format!("ssh -G took more than {} s", ASKING.as_secs()))),
            Ok(output) => output.map_err(|error| SshFailure(format!("{NO_SSH}: {}", in_full(&error))))?,
        };
        if !output.status.success() {
            return Err(SshFailure(String::from_utf8_lossy(&output.stderr).replace('\r', "")));
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

/// Returns the process of the master that listens to a socket.
async fn process_of(host: &str, socket: &Path, config: &SshConfig) -> Option<Pid> {
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(config.path()).arg("-S").arg(socket).args(["-O", "check", "--", host]);
    ssh.stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(ASKING, ssh.output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let number = text.split("pid=").nth(1)?.split(')').next()?.parse().ok()?;
    Pid::from_raw(number)
}
