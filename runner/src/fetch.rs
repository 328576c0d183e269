//! Fetches the files of a run from its cluster by remote scripts. It needs no sftp, and continues an
//! interrupted fetch.

use crate::ssh::{Link, LinkError, Script};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// What to fetch.
#[derive(Debug, Clone)]
pub(crate) struct FetchRequest {
    /// A shell's pattern for the run's directory.
    pub(crate) experiment_dir: String,
    /// The run's log, if known. It decides between several directories.
    pub(crate) log: Option<String>,
    /// The run's job. If several runs share a directory, the names of their files contain it.
    pub(crate) job: String,
    /// Whether to fetch checkpoints.
    pub(crate) checkpoints: bool,
    /// Whether to fetch profiles.
    pub(crate) profiles: bool,
}

/// Why a fetch stopped. Fetched files stay, and the next fetch continues.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The remote script failed.
    #[error("Can't read the run's files on the cluster: {0}")]
    Remote(String),
    #[error("No files found on the cluster at {0}.")]
    Nothing(String),
    /// A file can't be written on this machine.
    #[error("{}: {error}", path.display())]
    Local { path: PathBuf, error: io::Error },
    /// The file changed during the fetch.
    #[error("{} changed on the cluster during the fetch. Repeat the command.", path.display())]
    Differs { path: PathBuf },
}

/// A file of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Size in bytes.
    pub(crate) size: u64,
    /// Path below the run's directory.
    pub(crate) path: String,
}

const SHORT: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(300);
const PIECE: u64 = 16 << 20;

/// Returns the run's directory on the cluster and the files in it.
pub(crate) async fn list(link: &Link, request: &FetchRequest) -> Result<(String, Vec<Entry>), FetchError> {
    let script = Script::new("list", include_str!("slurm/remote/list.sh"))
        .set("pattern", request.experiment_dir.clone())
        .set("log", request.log.clone().unwrap_or_default())
        .set("job", request.job.clone())
        .set("checkpoints", if request.checkpoints { "1" } else { "" })
        .set("profiles", if request.profiles { "1" } else { "" });
    let output = link.run(&script, SHORT).await?;
    if output.code != 0 {
        return Err(FetchError::Remote(output.stderr.trim().to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut records = text.split('\0').filter(|record| !record.is_empty());
    let Some(folder) = records.next() else {
        return Err(FetchError::Nothing(request.experiment_dir.clone()));
    };
    let entries = records.filter_map(entry).collect();
    Ok((folder.trim_start_matches('\n').to_string(), entries))
}

/// Reads `SIZE PATH`. Returns none for a path that leaves the folder.
fn entry(record: &str) -> Option<Entry> {
    let (size, path) = record.trim_start_matches('\n').split_once(' ')?;
    let plain =
        !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    plain.then_some(Entry { size: size.parse().ok()?, path: path.to_string() })
}

/// Fetches a file into a folder, unless it is complete there. Returns the number of bytes transferred.
pub(crate) async fn fetch(link: &Link, folder: &str, entry: &Entry, to: &Path) -> Result<u64, FetchError> {
    let path = to.join(&entry.path);
    let failed = |error| FetchError::Local { path: path.clone(), error };
    if fs::metadata(&path).is_ok_and(|known| known.len() == entry.size) {
        return Ok(0);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut file = File::options().create(true).append(true).open(&part).map_err(failed)?;
    let mut have = file.metadata().map_err(failed)?.len();
    if have > entry.size {
        file.set_len(0).map_err(failed)?;
        have = 0;
    }
    let mut transferred = 0;
    while have < entry.size {
        let script = Script::new("piece", include_str!("slurm/remote/piece.sh"))
            .set("file", format!("{folder}/{}", entry.path))
            .set("from", (have + 1).to_string())
            .set("most", PIECE.min(entry.size - have).to_string());
        let output = link.run(&script, LONG).await?;
        if output.code != 0 || output.stdout.is_empty() {
            return Err(FetchError::Remote(format!("{}: {}", entry.path, output.stderr.trim())));
        }
        file.write_all(&output.stdout).map_err(failed)?;
        have += output.stdout.len() as u64;
        transferred += output.stdout.len() as u64;
    }
    file.sync_all().map_err(failed)?;
    let script = Script::new("sum", include_str!("slurm/remote/sum.sh"))
        .set("file", format!("{folder}/{}", entry.path))
        .set("size", entry.size.to_string());
    let output = link.run(&script, LONG).await?;
    let remote = String::from_utf8_lossy(&output.stdout).trim().to_string();
    if output.code != 0 || (!remote.is_empty() && remote != sum(&part).map_err(failed)?) {
        let _ = fs::remove_file(&part);
        return Err(FetchError::Differs { path });
    }
    fs::rename(&part, &path).map_err(failed)?;
    Ok(transferred)
}

fn sum(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut piece) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        hash.update(&piece[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_folder_are_ignored() {
        assert_eq!(entry("12 a/b c"), Some(Entry { size: 12, path: "a/b c".into() }));
        for bad in ["12 ../x", "12 /etc/passwd", "12 ", "x y", "12 a/../../b"] {
            assert_eq!(entry(bad), None, "{bad}");
        }
    }
}
