//! Fetching what a run wrote on its cluster, over the same scripts as everything else: it needs no sftp, and goes on where it
//! was cut off.

use crate::ssh::{Link, LinkError, Script};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// What is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The pattern of the run's directory, as a shell reads it.
    pub(crate) experiment_dir: String,
    /// The run's log, where it is known: it tells which of the directories is the run's own.
    pub(crate) log: Option<String>,
    /// Its job: where several runs share a directory, their files have it in their names.
    pub(crate) job: String,
    /// Checkpoints too.
    pub(crate) checkpoints: bool,
    /// Profiles too.
    pub(crate) profiles: bool,
}

/// Why fetching stopped; what is here stays, and the next time goes on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The cluster.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The script there.
    #[error("the cluster can't list or read the files: {0}")]
    There(String),
    /// There is nothing.
    #[error("nothing is at {0}")]
    Nothing(String),
    /// The disk here.
    #[error("{}: {error}", path.display())]
    Here {
        /// Where.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// What came is not what is there.
    #[error("{} is not what is on the cluster: it is still being written, or was changed; fetch again", path.display())]
    Differs {
        /// Where.
        path: PathBuf,
    },
}

/// A file of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Bytes.
    pub(crate) size: u64,
    /// Below the run's directory.
    pub(crate) path: String,
}

const SHORT: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(300);
const PIECE: u64 = 16 << 20;

/// Lists the files: the run's directory there, and what is in it.
pub(crate) async fn list(link: &Link, wanted: &Wanted) -> Result<(String, Vec<Entry>), FetchError> {
    let script = Script::new("list", include_str!("slurm/remote/list.sh"))
        .set("pattern", wanted.experiment_dir.clone())
        .set("log", wanted.log.clone().unwrap_or_default())
        .set("job", wanted.job.clone())
        .set("checkpoints", if wanted.checkpoints { "1" } else { "" })
        .set("profiles", if wanted.profiles { "1" } else { "" });
    let output = link.run(&script, SHORT).await?;
    if output.code != 0 {
        return Err(FetchError::There(output.stderr.trim().to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut records = text.split('\0').filter(|record| !record.is_empty());
    let Some(folder) = records.next() else { return Err(FetchError::Nothing(wanted.experiment_dir.clone())) };
    let entries = records.filter_map(entry).collect();
    Ok((folder.trim_start_matches('\n').to_string(), entries))
}

/// `SIZE PATH`; a path that would leave the folder is none of ours.
fn entry(record: &str) -> Option<Entry> {
    let (size, path) = record.trim_start_matches('\n').split_once(' ')?;
    let plain =
        !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    plain.then_some(Entry { size: size.parse().ok()?, path: path.to_string() })
}

/// Fetches one file below `to`; says how many bytes came. What is there whole already is not fetched again.
pub(crate) async fn fetch(link: &Link, folder: &str, entry: &Entry, to: &Path) -> Result<u64, FetchError> {
    let path = to.join(&entry.path);
    let here = |error| FetchError::Here { path: path.clone(), error };
    if fs::metadata(&path).is_ok_and(|known| known.len() == entry.size) {
        return Ok(0);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(here)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut file = File::options().create(true).append(true).open(&part).map_err(here)?;
    let mut have = file.metadata().map_err(here)?.len();
    if have > entry.size {
        file.set_len(0).map_err(here)?;
        have = 0;
    }
    let mut came = 0;
    while have < entry.size {
        let script = Script::new("piece", include_str!("slurm/remote/piece.sh"))
            .set("file", format!("{folder}/{}", entry.path))
            .set("from", (have + 1).to_string())
            .set("most", PIECE.min(entry.size - have).to_string());
        let output = link.run(&script, LONG).await?;
        if output.code != 0 || output.stdout.is_empty() {
            return Err(FetchError::There(format!("{}: {}", entry.path, output.stderr.trim())));
        }
        file.write_all(&output.stdout).map_err(here)?;
        have += output.stdout.len() as u64;
        came += output.stdout.len() as u64;
    }
    file.sync_all().map_err(here)?;
    let script = Script::new("sum", include_str!("slurm/remote/sum.sh"))
        .set("file", format!("{folder}/{}", entry.path))
        .set("size", entry.size.to_string());
    let output = link.run(&script, LONG).await?;
    let there = String::from_utf8_lossy(&output.stdout).trim().to_string();
    if output.code != 0 || (!there.is_empty() && there != sum(&part).map_err(here)?) {
        let _ = fs::remove_file(&part);
        return Err(FetchError::Differs { path });
    }
    fs::rename(&part, &path).map_err(here)?;
    Ok(came)
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
    fn no_listing_leaves_the_folder() {
        assert_eq!(entry("12 a/b c"), Some(Entry { size: 12, path: "a/b c".into() }));
        for bad in ["12 ../x", "12 /etc/passwd", "12 ", "x y", "12 a/../../b"] {
            assert_eq!(entry(bad), None, "{bad}");
        }
    }
}
