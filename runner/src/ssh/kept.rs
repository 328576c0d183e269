//! A master that a person makes and later runs use: the one way past a password or a second factor.

use super::config::{Config, ControlDir, ControlDirError, is_dead};
use super::link::LinkError;
use super::master::{Destination, Master};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, io};
use tokio::process::Command;
use tokio::time::timeout;

/// How long a master may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// Where the kept master of a host is, whether or not there is one.
#[derive(Debug)]
pub(crate) struct Kept {
    host: String,
    socket: PathBuf,
    config: Config,
}

/// Why there is none afterwards.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    /// There is no place for it.
    #[error("{}: {}", .0, .0.what_to_do())]
    Directory(#[from] ControlDirError),
    /// ssh can't say where the host is.
    #[error(transparent)]
    Destination(LinkError),
    /// ssh can't be started.
    #[error("ssh cannot be started: {0}: see that OpenSSH is installed")]
    Start(io::Error),
    /// ssh did not connect; it has said why itself.
    #[error("{0}: ssh did not connect; what it said stands above")]
    Ssh(String),
}

impl Kept {
    /// The place for a host.
    ///
    /// # Errors
    /// There can be none.
    pub(crate) async fn of(host: &str) -> Result<Kept, KeptError> {
        let directory = ControlDir::open()?;
        directory.sweep();
        let config = directory.asking()?;
        let destination = Destination::of(host, &config)
            .await
            .map_err(|failed| KeptError::Destination(failed.of(host, "trainplan connect")))?;
        let socket = directory.kept(&destination.identity);
        Ok(Kept { host: host.to_string(), socket, config })
    }

    /// Whether there is one, and the host answers through it.
    pub(crate) async fn answers(&self) -> bool {
        Master::adopt(self.socket.clone()).await.is_some()
    }

    /// Connects, with ssh asking at the terminal whatever it has to, and leaves the master behind.
    ///
    /// # Errors
    /// ssh did not connect.
    pub(crate) async fn open(&self, persist: &str) -> Result<(), KeptError> {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.config.path()).arg("-M").arg("-S").arg(&self.socket);
        ssh.args(["-f", "-N", "-o", &format!("ControlPersist={persist}"), "--", &self.host]);
        // Its questions go to the terminal itself, not to standard output.
        let status = ssh.stdout(Stdio::null()).status().await.map_err(KeptError::Start)?;
        if status.success() { Ok(()) } else { Err(KeptError::Ssh(self.host.clone())) }
    }

    /// Ends it. Says whether there was one.
    pub(crate) async fn close(&self) -> bool {
        if is_dead(&self.socket) {
            return false;
        }
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.config.path()).arg("-S").arg(&self.socket);
        ssh.args(["-O", "exit", "--", &self.host]);
        ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let _ = timeout(ENDING, ssh.status()).await;
        // One that does not react is left without its name; its keepalives end it.
        let _ = fs::remove_file(&self.socket);
        true
    }
}
