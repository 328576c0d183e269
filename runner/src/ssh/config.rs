//! The configuration for `ssh` beyond the user's, and the directory of its masters' sockets.

use crate::data::make_private;
use rustix::process::getuid;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, io, process};

/// The longest path of a socket: the system allows 107 bytes, and ssh temporarily appends 17.
const LONGEST: usize = 90;

/// The longest name of a socket in the directory.
const NAME: usize = 24;

/// Settings that precede the user's configuration, so that they win. Unlike options of the command line they
/// apply to jump hosts too.
///
/// The keepalives end a silent connection after about 9 seconds.
const SETTINGS: &str = "\
ServerAliveInterval 3
ServerAliveCountMax 2
ConnectTimeout 10
ControlMaster no
ForwardAgent no
ForwardX11 no
ClearAllForwardings yes
PermitLocalCommand no
RemoteCommand none
RequestTTY no
EscapeChar none
LogLevel ERROR
";

/// Why the directory of sockets can't be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ControlDirError {
    /// It belongs to another user, or others have access.
    #[error("{} holds your connections, but is not a directory that only you can use.", .0.display())]
    NotPrivate(PathBuf),
    #[error("Can't write {}, where connections are kept: {error}.", path.display())]
    Write { path: PathBuf, error: String },
    /// An ssh configuration can't name it.
    #[error("The path {0:?} contains a \" or a line break, which an ssh configuration does not allow.")]
    Unwritable(PathBuf),
}

impl ControlDirError {
    /// Returns what the user can do.
    pub(crate) fn what_to_do(&self) -> &'static str {
        match self {
            ControlDirError::NotPrivate(_) => "Remove it, or set XDG_RUNTIME_DIR to another directory.",
            ControlDirError::Write { .. } => {
                "Free some space there, or set XDG_RUNTIME_DIR to another directory."
            }
            ControlDirError::Unwritable(_) => "Move it, or set HOME to a path without such characters.",
        }
    }
}

/// The directory of the masters' sockets. Access to a socket allows acting as the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlDir(PathBuf);

impl ControlDir {
    /// Opens the directory, below XDG_RUNTIME_DIR or else in /tmp. Creates it if needed.
    pub(crate) fn open() -> Result<ControlDir, ControlDirError> {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let short = |path: &PathBuf| path.as_os_str().len() + 1 + NAME < LONGEST;
        let path = runtime
            .map(|path| path.join("trainplan"))
            .filter(short)
            .unwrap_or_else(|| format!("/tmp/trainplan-{}", getuid().as_raw()).into());
        let failed =
            |error: io::Error| ControlDirError::Write { path: path.clone(), error: error.to_string() };
        // Not recursively at first: in /tmp, a directory that another user made is refused below.
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_private(&path).map_err(failed)?,
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let found = fs::symlink_metadata(&path).map_err(failed)?;
        let private = found.is_dir() && found.uid() == getuid().as_raw() && found.mode() & 0o077 == 0;
        if private { Ok(ControlDir(path)) } else { Err(ControlDirError::NotPrivate(path)) }
    }

    /// Returns a new path for a socket of this process.
    pub(super) fn fresh(&self) -> PathBuf {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        self.0.join(format!("m-{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the path of the socket of a kept connection.
    pub(super) fn kept(&self, destination: &str) -> PathBuf {
        self.0.join(format!("c-{}", digest(destination)))
    }

    /// Removes what killed processes left: sockets that nobody listens to, and old logs.
    pub(crate) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.0) else { return };
        for entry in entries.filter_map(Result::ok) {
            let (name, path) = (entry.file_name(), entry.path());
            let Some(name) = name.to_str().filter(|name| name.starts_with("m-") || name.starts_with("c-"))
            else {
                continue;
            };
            let Ok(found) = entry.metadata() else { continue };
            let is_old = || {
                let age = found.modified().ok().and_then(|modified| modified.elapsed().ok());
                age.is_some_and(|age| age > Duration::from_secs(3600))
            };
            // ssh first gives a socket another name, with a dot in it. It does not listen there yet.
            let is_left = match found.file_type().is_socket() {
                true => !name.contains('.') && is_dead(&path),
                false => name.ends_with(".log") && is_old(),
            };
            if is_left {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Returns the configuration for `ssh` to ask nothing and trust only known hosts.
    pub(super) fn silent(&self, user: Option<&Path>) -> Result<SshConfig, ControlDirError> {
        self.config(user, "BatchMode yes\nStrictHostKeyChecking yes\nUpdateHostKeys no\n")
    }

    /// Returns the configuration for `ssh` to ask at the terminal, also about an unknown host.
    pub(crate) fn asking(&self) -> Result<SshConfig, ControlDirError> {
        self.config(None, "BatchMode no\nStrictHostKeyChecking ask\n")
    }

    fn config(&self, user: Option<&Path>, first: &str) -> Result<SshConfig, ControlDirError> {
        let mut text = format!("{first}{SETTINGS}");
        // With -F, `ssh` does not read the user's and the system's configuration by itself. It would ignore
        // HOME, too.
        let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let user = user.map(Path::to_path_buf).or_else(|| Some(home?.join(".ssh/config")));
        if let Some(user) = user {
            let name = user.to_str().filter(|name| !name.contains(['"', '\n']));
            let name = name.ok_or_else(|| ControlDirError::Unwritable(user.clone()))?;
            let _ = writeln!(text, "Include \"{name}\"");
        }
        text.push_str("Include /etc/ssh/ssh_config\n");
        let path = self.0.join(format!("config-{}", digest(&text)));
        let write = || {
            // The name is a hash of the text, so concurrent writers write the same.
            if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
                return Ok(());
            }
            let new = path.with_extension(process::id().to_string());
            fs::write(&new, &text)?;
            fs::rename(&new, &path)
        };
        write()
            .map_err(|error| ControlDirError::Write { path: path.clone(), error: error.to_string() })
            .map(|()| SshConfig(path.clone()))
    }
}

/// A file for `ssh -F`: our settings, then the user's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SshConfig(PathBuf);

impl SshConfig {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Returns whether nobody listens to a socket; false if it can't be opened for other reasons.
pub(super) fn is_dead(socket: &Path) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    UnixStream::connect(socket).is_err_and(|error| matches!(error.kind(), ConnectionRefused | NotFound))
}

/// Returns a short hash of a text.
fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(8).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}
