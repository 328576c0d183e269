//! The connection that `trainplan connect` makes and later commands use: the way past a password or a second
//! factor.

use super::config::{ControlDir, ControlDirError, SshConfig, is_dead};
use super::error::LinkError;
use super::master::{Destination, Master};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, io};
use tokio::process::Command;
use tokio::time::timeout;

/// How long to wait for a master to end.
const ENDING: Duration = Duration::from_secs(5);

/// The kept connection to a host, whether or not it is open.
#[derive(Debug)]
pub(crate) struct KeptConnection {
    host: String,
    socket: PathBuf,
    config: SshConfig,
}

/// Why `trainplan connect` did not connect.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    /// The directory of its socket can't be used.
    #[error("{} {}", .0, .0.what_to_do())]
    Directory(#[from] ControlDirError),
    /// ssh can't resolve the host's configuration.
    #[error(transparent)]
    Destination(LinkError),
    #[error("Can't start ssh: {0}. Check that OpenSSH is installed.")]
    Start(io::Error),
    /// ssh did not connect, and has printed why.
    #[error("Can't connect to {0}. The message of ssh is above.")]
    Ssh(String),
}

impl KeptConnection {
    /// Returns the kept connection of a host, open or not.
    pub(crate) async fn of(host: &str) -> Result<KeptConnection, KeptError> {
        let directory = ControlDir::open()?;
        directory.sweep();
        let config = directory.asking()?;
        let destination = Destination::of(host, &config)
            .await
            .map_err(|failed| KeptError::Destination(failed.of(host, "trainplan connect")))?;
        let socket = directory.kept(&destination.identity);
        Ok(KeptConnection { host: host.to_string(), socket, config })
    }

    /// Returns whether it is open and works.
    pub(crate) async fn answers(&self) -> bool {
        Master::adopt(self.socket.clone()).await.is_some()
    }

    /// Opens it, and leaves its master in the background. ssh may ask for input at the terminal.
    pub(crate) async fn open(&self, persist: &str) -> Result<(), KeptError> {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.config.path()).arg("-M").arg("-S").arg(&self.socket);
        ssh.args(["-f", "-N", "-o", &format!("ControlPersist={persist}"), "--", &self.host]);
        // ssh writes its questions to the terminal, not to stdout.
        let status = ssh.stdout(Stdio::null()).status().await.map_err(KeptError::Start)?;
        if status.success() { Ok(()) } else { Err(KeptError::Ssh(self.host.clone())) }
    }

    /// Closes it. Returns whether it was open.
    pub(crate) async fn close(&self) -> bool {
        if is_dead(&self.socket) {
            return false;
        }
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.config.path()).arg("-S").arg(&self.socket);
        ssh.args(["-O", "exit", "--", &self.host]);
        ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let _ = timeout(ENDING, ssh.status()).await;
        // A master that does not react loses its socket, and ends by its keepalives.
        let _ = fs::remove_file(&self.socket);
        true
    }
}
