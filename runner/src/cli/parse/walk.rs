//! Finds logs: files that the user names, and folders such as the `experiments/` tree of a recipe.
//!
//! Named paths are listed, and so are files in a folder that look like logs, readable or not. The order depends only on
//! the names, and each folder is read once, even if several links lead to it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use trainplan_shared::log::{LogName, Role, Status, uncompressed_name};
use trainplan_shared::result::{
    FILE_ENDING, SettingsFile, UnreadReason, is_log_name, is_only_log, is_told_elsewhere, parts_of,
};

/// A path to read or to list.
#[derive(Debug)]
pub(super) enum Found {
    /// Standard input.
    Stdin,
    /// A log or a saved result to read.
    File(LogFiles),
    /// A path without a readable log.
    Nothing {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: Why,
    },
}

/// The files of a run's log.
#[derive(Debug, Clone)]
pub(in crate::cli) struct LogFiles {
    /// The logs of the job's starts, in order.
    pub(in crate::cli) parts: Vec<PathBuf>,
    /// What the job's batch script printed: it knows why the job ended.
    pub(super) batch: Vec<PathBuf>,
    /// The files that list settings of the job, or why one can't be used.
    pub(super) settings: Vec<(SettingsFile, Result<PathBuf, UnreadReason>)>,
}

impl LogFiles {
    /// Returns the log in a file, without looking at other files beside it.
    pub(in crate::cli) fn single(path: PathBuf) -> LogFiles {
        LogFiles { parts: vec![path], batch: Vec::new(), settings: Vec::new() }
    }

    /// Returns the path that the log is known by: that of the last start.
    pub(in crate::cli) fn path(&self) -> &Path {
        self.parts.last().map_or(Path::new(""), PathBuf::as_path)
    }
}

impl Found {
    /// Whether it is a saved result rather than a log.
    pub(super) fn is_saved(&self) -> bool {
        matches!(self, Found::File(log) if log.path().to_string_lossy().ends_with(FILE_ENDING))
    }
}

/// Why nothing can be read at a path.
#[derive(Debug, thiserror::Error)]
pub(super) enum Why {
    /// The system refused.
    #[error("{}", explain(.0))]
    Refused(#[from] io::Error),
    /// A link leads nowhere.
    #[error("broken link: remove it, or use the log itself")]
    DeadLink,
    /// A link points to a folder above it.
    #[error("link to a parent folder: not followed")]
    Loop,
    /// A device, a socket or a pipe.
    #[error("neither a file nor a folder; read a pipe with `-`")]
    Special,
    /// A folder has no log.
    #[error("no log in this folder (no *.out, *.log, *.txt or *.result.json)")]
    Empty,
}

impl Why {
    /// Returns the status: unreadable, or without data.
    pub(super) fn status(&self) -> Status {
        match self {
            Why::Refused(_) | Why::DeadLink | Why::Special => Status::Unreadable,
            Why::Loop | Why::Empty => Status::NoData,
        }
    }
}

/// Returns the system's error, and what to do.
pub(super) fn explain(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "ask for read permission",
        _ => "use a copy",
    };
    format!("can't be read: {error}; {advice}")
}

/// Returns everything to read for the paths of the command line, in their order, with folders sorted.
pub(super) fn find(paths: &[PathBuf]) -> Vec<Found> {
    let mut walk = Walk::default();
    for path in paths {
        walk.named(path);
    }
    walk.found
}

#[derive(Default)]
struct Walk {
    found: Vec<Found>,
    /// Files by their path as given, folders by where they really are.
    seen: BTreeSet<PathBuf>,
    /// Links to folders, kept until the folders themselves have been read.
    links: Vec<PathBuf>,
}

impl Walk {
    fn named(&mut self, path: &Path) {
        if path.as_os_str() == "-" {
            if self.seen.insert(path.into()) {
                self.found.push(Found::Stdin);
            }
            return;
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.tree(path),
            // A named pipe may be what a shell makes of `<(...)`.
            Ok(_) => self.file(LogFiles {
                batch: batch_beside(path),
                settings: settings_beside(path),
                ..LogFiles::single(path.into())
            }),
            Err(error) => self.nothing(path, missing(path, error)),
        }
    }

    /// A folder, everything below it, and then the targets of its links.
    fn tree(&mut self, root: &Path) {
        let before = self.found.len();
        let read_before = self.is_seen(root);
        self.folder(root);
        while !self.links.is_empty() {
            let mut links = std::mem::take(&mut self.links);
            links.sort_unstable();
            links.iter().for_each(|link| self.follow(link));
        }
        if self.found.len() == before && !read_before {
            self.nothing(root, Why::Empty);
        }
    }

    fn folder(&mut self, folder: &Path) {
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.into());
        if !self.seen.insert(real) {
            return;
        }
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut paths: Vec<PathBuf> = match entries {
            Ok(entries) => entries.iter().map(fs::DirEntry::path).collect(),
            Err(error) => return self.nothing(folder, Why::Refused(error)),
        };
        paths.sort_unstable();
        let names: Vec<LogName> = paths.iter().map(|path| LogName::of(&text_of_name(path))).collect();
        for (place, (path, name)) in paths.iter().zip(&names).enumerate() {
            let is_link = path.is_symlink();
            match fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() && is_link => self.links.push(path.clone()),
                Ok(metadata) if metadata.is_dir() => self.folder(path),
                _ if !is_log(path) || is_told_elsewhere(name, &names) => {}
                Ok(metadata) if metadata.is_file() => {
                    if let Some(log) = log_of(place, &paths, &names) {
                        self.file(log);
                    }
                }
                Ok(_) => self.nothing(path, Why::Special),
                Err(error) => self.nothing(path, missing(path, error)),
            }
        }
    }

    fn follow(&mut self, link: &Path) {
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_default();
        match link.parent() {
            Some(parent) if real(parent).starts_with(real(link)) => self.nothing(link, Why::Loop),
            _ => self.folder(link),
        }
    }

    fn is_seen(&self, folder: &Path) -> bool {
        fs::canonicalize(folder).is_ok_and(|real| self.seen.contains(&real))
    }

    fn file(&mut self, log: LogFiles) {
        if self.seen.insert(log.path().into()) {
            self.found.push(Found::File(log));
        }
    }

    fn nothing(&mut self, path: &Path, reason: Why) {
        self.found.push(Found::Nothing { path: path.into(), reason });
    }
}

/// Returns the log that a file of a folder is the last part of; none if it is an earlier part.
fn log_of(place: usize, paths: &[PathBuf], names: &[LogName]) -> Option<LogFiles> {
    let is_usable = |place: usize| {
        let is_file = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        paths.get(place).is_some_and(|path| is_log(path) && is_file(path))
    };
    let path = |place: usize| paths.get(place).cloned();
    let parts: Vec<PathBuf> = parts_of(place, names, is_usable)?.into_iter().filter_map(path).collect();
    let own = names.get(place).filter(|own| own.role == Role::Training && own.job_id.is_some());
    let is_batch = |(_, other): &(usize, &LogName)| {
        other.role == Role::Batch && own.is_some_and(|own| own.job_id == other.job_id)
    };
    let batch = names.iter().enumerate().filter(is_batch).map(|(place, _)| place);
    let batch = batch.filter(|place| is_usable(*place)).filter_map(path).collect();
    let settings = parts.last().map(|path| settings_beside(path)).unwrap_or_default();
    Some(LogFiles { parts, batch, settings })
}

/// Returns the files beside a log that list settings of its job. If the folder has the logs of several jobs, a file that doesn't name its
/// job may be another's.
fn settings_beside(path: &Path) -> Vec<(SettingsFile, Result<PathBuf, UnreadReason>)> {
    let (folder, name) = (folder_of(path), text_of_name(path));
    let own = LogName::of(&name);
    let is_own = |file: SettingsFile| {
        file.names_its_job()
            || fs::read_dir(folder).is_ok_and(|entries| {
                let names = entries.flatten().map(|entry| text_of_name(&entry.path()));
                is_only_log(&own, names.filter(|other| *other != name))
            })
    };
    let found = SettingsFile::ALL.into_iter().filter_map(|file| {
        let settings = folder.join(file.path(own.job_id)?);
        settings.is_file().then_some((file, settings))
    });
    found
        .map(|(file, settings)| {
            (file, if is_own(file) { Ok(settings) } else { Err(UnreadReason::Ambiguous) })
        })
        .collect()
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the output of the batch script beside a training log that the user names.
fn batch_beside(path: &Path) -> Vec<PathBuf> {
    let name = LogName::of(&text_of_name(path));
    let entries =
        fs::read_dir(folder_of(path)).ok().filter(|_| name.role == Role::Training && name.job_id.is_some());
    let is_batch = |path: &PathBuf| {
        let other = LogName::of(&text_of_name(path));
        other.role == Role::Batch && other.job_id == name.job_id && is_log(path) && path.is_file()
    };
    let mut batch: Vec<PathBuf> =
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_batch).collect();
    batch.sort_unstable();
    batch
}

fn missing(path: &Path, error: io::Error) -> Why {
    if path.is_symlink() && error.kind() == io::ErrorKind::NotFound {
        Why::DeadLink
    } else {
        Why::Refused(error)
    }
}

fn text_of_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns whether a file looks like a log, which may be compressed.
fn is_log(path: &Path) -> bool {
    is_log_name(uncompressed_name(&text_of_name(path)))
}
