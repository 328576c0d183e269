//! The profiles of clusters, found and read.

use super::Failure;
use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trainplan_shared::campaign::{CampaignProblem, Cluster, Clusters, Name};
use trainplan_shared::problem::most_alike;

/// Far more than a person writes.
const LARGEST: u64 = 4 << 20;

/// The profile of a cluster, in the file given or else the usual one.
pub(super) fn cluster(name: &Name, given: Option<PathBuf>) -> Result<Cluster, Failure> {
    let path = given.map_or_else(usual, Ok)?;
    let clusters = Clusters::parse(&read_profiles(&path)?).map_err(|found| mistakes(&path, &found))?;
    let cluster = clusters.get(name).cloned();
    cluster.ok_or_else(|| Failure::Contents { what: no_cluster(name, &clusters), path })
}

/// What is wrong in a file that a person wrote.
pub(super) fn mistakes(path: &Path, found: &[CampaignProblem]) -> Failure {
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    Failure::Contents { path: path.to_path_buf(), what: found.join("\n       ") }
}

/// That there is no profile of that name, and which there are.
pub(super) fn no_cluster(name: &Name, clusters: &Clusters) -> String {
    let names: Vec<&str> = clusters.names().collect();
    let nearest = most_alike(name.as_str(), names.iter().copied());
    let nearest = nearest.map_or(String::new(), |nearest| format!("; nearest: {nearest}"));
    match names.is_empty() {
        true => {
            format!("has no cluster {name}, nor any other: begin with [cluster.{name}] and ssh = \"HOST\"")
        }
        false => format!("has no cluster {name}{nearest}; it has: {}", names.join(", ")),
    }
}

/// The profiles in the user's configuration.
pub(super) fn usual() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let configuration =
        absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    configuration.map(|folder| folder.join("trainplan").join("clusters.toml")).ok_or(Failure::Refused(
        "neither XDG_CONFIG_HOME nor HOME says where your configuration is: name the profiles with --clusters",
    ))
}

/// Reads the profiles; that there are none is worth a word.
pub(super) fn read_profiles(path: &Path) -> Result<String, Failure> {
    read(path).map_err(|failure| match failure {
        Failure::File { path, error } if error.kind() == io::ErrorKind::NotFound => Failure::Contents {
            what: "there are no profiles of clusters: write version = 1, [cluster.NAME] and ssh = \"HOST\" there, or \
                   name another file with --clusters"
                .into(),
            path,
        },
        other => other,
    })
}

/// Reads a file that a person wrote.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::File { path: path.to_path_buf(), error };
    let refuse = |what: String| Failure::Contents { path: path.to_path_buf(), what };
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(refuse(format!("is larger than {} MiB", LARGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        refuse(format!("line {line}: is no text in UTF-8"))
    })
}
