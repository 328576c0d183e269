//! What `ssh` is told beyond the user's own configuration, and where the sockets of its masters lie.

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

/// The system takes no longer path for the socket of a master: ssh appends 17 characters to it for a while.
const LONGEST: usize = 90;

/// The longest name of a socket in the directory.
const NAME: usize = 24;

/// Of what wins over the user's own configuration, since the first value holds. All of it reaches jump hosts too, which
/// options of the command line would not.
///
/// The keepalives end a connection that fell silent after some 9 seconds.
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

/// Why there is no place for sockets.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ControlDirError {
    /// It belongs to somebody else, or others may use it.
    #[error("{} is to hold connections that only you may use, but is not a directory of yours alone", .0.display())]
    NotPrivate(PathBuf),
    /// It can't be made or written to.
    #[error("cannot write {}, where connections are kept: {error}", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        error: String,
    },
    /// ssh's configuration has no way to write its name.
    #[error("{0:?} cannot be named in a configuration of ssh, for a \" or a line break in it")]
    Unwritable(PathBuf),
}

impl ControlDirError {
    /// What a person can do.
    pub(crate) fn what_to_do(&self) -> &'static str {
        match self {
            ControlDirError::NotPrivate(_) => "remove it, or point XDG_RUNTIME_DIR elsewhere",
            ControlDirError::Write { .. } => "make room there, or point XDG_RUNTIME_DIR elsewhere",
            ControlDirError::Unwritable(_) => "move it, or set HOME to a path without such characters",
        }
    }
}

/// The directory of the sockets by which masters are reached. Whoever may open one may act in the user's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlDir(PathBuf);

impl ControlDir {
    /// Opens it, and makes it if there is none: where the system keeps such things, else in /tmp.
    pub(crate) fn open() -> Result<ControlDir, ControlDirError> {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let short = |path: &PathBuf| path.as_os_str().len() + 1 + NAME < LONGEST;
        let path = runtime
            .map(|path| path.join("trainplan"))
            .filter(short)
            .unwrap_or_else(|| format!("/tmp/trainplan-{}", getuid().as_raw()).into());
        let failed =
            |error: io::Error| ControlDirError::Write { path: path.clone(), error: error.to_string() };
        // Not with those above it: in /tmp a directory that somebody else made first is refused below.
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_private(&path).map_err(failed)?,
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let found = fs::symlink_metadata(&path).map_err(failed)?;
        let private = found.is_dir() && found.uid() == getuid().as_raw() && found.mode() & 0o077 == 0;
        if private { Ok(ControlDir(path)) } else { Err(ControlDirError::NotPrivate(path)) }
    }

    /// A socket for a master of this process; none had it before.
    pub(super) fn fresh(&self) -> PathBuf {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        self.0.join(format!("m-{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)))
    }

    /// The socket of the master that `trainplan connect` leaves for a destination.
    pub(super) fn kept(&self, destination: &str) -> PathBuf {
        self.0.join(format!("c-{}", digest(destination)))
    }

    /// Removes the sockets that nobody listens to any more, and logs that nobody came back for: what is killed leaves
    /// its own.
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
            // ssh begins a socket under a name of its own, with a dot in it, before it listens.
            let is_left = match found.file_type().is_socket() {
                true => !name.contains('.') && is_dead(&path),
                false => name.ends_with(".log") && is_old(),
            };
            if is_left {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// The configuration that has `ssh` ask nothing and trust only hosts that it knows.
    pub(super) fn silent(&self, user: Option<&Path>) -> Result<Config, ControlDirError> {
        self.config(user, "BatchMode yes\nStrictHostKeyChecking yes\nUpdateHostKeys no\n")
    }

    /// The configuration that has it ask the person at the terminal, of an unknown host too.
    pub(crate) fn asking(&self) -> Result<Config, ControlDirError> {
        self.config(None, "BatchMode no\nStrictHostKeyChecking ask\n")
    }

    fn config(&self, user: Option<&Path>, first: &str) -> Result<Config, ControlDirError> {
        let mut text = format!("{first}{SETTINGS}");
        // `ssh -F` leaves both files out that it reads by itself. It would look for the user's in the home that the
        // system knows, whatever HOME says.
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
            // By its name the file has this text: who writes it at the same time writes the same.
            if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
                return Ok(());
            }
            let new = path.with_extension(process::id().to_string());
            fs::write(&new, &text)?;
            fs::rename(&new, &path)
        };
        write()
            .map_err(|error| ControlDirError::Write { path: path.clone(), error: error.to_string() })
            .map(|()| Config(path.clone()))
    }
}

/// A file for `ssh -F`: our settings, and then the user's own configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config(PathBuf);

impl Config {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Whether a socket has nobody that listens to it. One that can't be asked for other reasons is left alone.
pub(super) fn is_dead(socket: &Path) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    UnixStream::connect(socket).is_err_and(|error| matches!(error.kind(), ConnectionRefused | NotFound))
}

/// A short name for a text, the same in every process.
fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(8).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}
