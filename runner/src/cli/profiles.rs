//! Finds and reads the cluster profiles.

use super::Failure;
use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trainplan_shared::campaign::{CampaignProblem, Cluster, Clusters, Name};
use trainplan_shared::field::Field;
use trainplan_shared::probe::Probe;
use trainplan_shared::problem::most_alike;

/// The largest file that is read: far more than a user writes.
const LARGEST: u64 = 4 << 20;

/// Returns the profile of a cluster, from the given file or the default one.
pub(super) fn cluster(name: &Name, given: Option<PathBuf>) -> Result<Cluster, Failure> {
    let (path, text) = read_profiles(given)?;
    let clusters = Clusters::parse(&text).map_err(|found| mistakes(&path, &found))?;
    find(&clusters, name, &path)
}

/// Returns the profile of a cluster from those of a file. The name of a probe's file is relative to that file; the result has the
/// whole path.
pub(super) fn find(clusters: &Clusters, name: &Name, path: &Path) -> Result<Cluster, Failure> {
    let Some(mut cluster) = clusters.get(name).cloned() else {
        return Err(Failure::Contents { what: no_cluster(name, clusters), path: path.to_path_buf() });
    };
    let factors = cluster.spec.get(Field::ClusterFactor);
    if let Some(file) = factors.filter(|text| Probe::is_file_name(text)).map(|file| path.with_file_name(file))
    {
        let whole = std::path::absolute(&file).map_err(|error| Failure::File { path: file, error })?;
        cluster.spec.set(Field::ClusterFactor, whole.display().to_string());
    }
    Ok(cluster)
}

/// Returns the mistakes in a file as a failure.
pub(super) fn mistakes(path: &Path, found: &[CampaignProblem]) -> Failure {
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    Failure::Contents { path: path.to_path_buf(), what: found.join("\n       ") }
}

/// Returns the message for a missing profile, with the existing ones.
fn no_cluster(name: &Name, clusters: &Clusters) -> String {
    let names: Vec<&str> = clusters.names().collect();
    let nearest = most_alike(name.as_str(), names.iter().copied());
    let nearest = nearest.map_or(String::new(), |nearest| format!(" Did you mean {nearest}?"));
    match names.is_empty() {
        true => format!("No clusters yet. Start with [cluster.{name}] and ssh = \"HOST\"."),
        false => format!("Unknown cluster \"{name}\".{nearest} Known: {}.", names.join(", ")),
    }
}

/// Returns the path of the profiles in the user's configuration.
fn usual() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let configuration =
        absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    configuration.map(|folder| folder.join("trainplan").join("clusters.toml")).ok_or(Failure::Refused(
        "neither XDG_CONFIG_HOME nor HOME is set. Give the file of the cluster profiles with --clusters",
    ))
}

/// Returns the path and the text of the profiles: of the given file or the default one. Explains how to start if there are none.
pub(super) fn read_profiles(given: Option<PathBuf>) -> Result<(PathBuf, String), Failure> {
    let no_file = match given {
        Some(_) => "The file given with --clusters does not exist.",
        None => {
            "No cluster profiles yet. Create the file with version = 1, [cluster.NAME] and ssh = \"HOST\", or give another one \
             with --clusters."
        }
    };
    let path = given.map_or_else(usual, Ok)?;
    match read(&path) {
        Ok(text) => Ok((path, text)),
        Err(Failure::File { path, error }) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::Contents { path, what: no_file.into() })
        }
        Err(other) => Err(other),
    }
}

/// Reads a text file.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::File { path: path.to_path_buf(), error };
    let refuse = |what: String| Failure::Contents { path: path.to_path_buf(), what };
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(refuse(format!("The file is larger than {} MiB.", LARGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        refuse(format!("line {line}: The text is not valid UTF-8."))
    })
}
