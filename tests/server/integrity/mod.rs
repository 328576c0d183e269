//! Damage in the store: found, refused, reported and replaced.

mod logs;
mod misplaced;
mod results;
mod rows;
mod store;

use crate::harness::{Client, Kind, Made, Place, Server, carried};
use crate::services;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the file of a run's log.
pub(crate) fn blob(place: &Place, made: &Made) -> PathBuf {
    let name = place.blobs().into_iter().find(|name| name.contains(&made.run.source.sha256)).unwrap();
    place.blob_folder().join(name)
}

/// Writes a compressed log of some 250 GB of zeros, which no test waits for.
pub(crate) fn write_endless(path: &Path) {
    fs::write(path, zstd::encode_all(&vec![0; 64 << 20][..], 1).unwrap().repeat(4000)).unwrap();
}

pub(crate) fn uploaded(server: &Server, step_time_s: f64) -> Made {
    let made = carried(step_time_s, "eos");
    server.owner().put_all(&made);
    made
}

pub(crate) fn metric_of(owner: &Client, what: &str, fault: &str) -> String {
    let metrics = owner.get("//metrics").text();
    let name = format!("trainplan_{what}{{fault=\"{fault}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap().to_owned()
}

/// Runs `verify-store`; returns the rows of its output, each with its fault and its run.
pub(crate) fn verified(place: &Place) -> Vec<(String, String, String)> {
    let run = place.trainplan(&["verify-store", "--format", "json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(run.code, Some(i32::from(!rows.is_empty())), "{}", run.stderr);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    rows.iter().map(|row| (text(&row["fault"]), text(&row["runs"][0]), text(&row["detail"]))).collect()
}

/// Returns bytes as a value in SQL.
pub(crate) fn value(kind: Kind, bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match kind {
        Kind::Local => format!("X'{digits}'"),
        Kind::Shared => format!("decode('{digits}', 'hex')"),
    }
}

/// Changes the stored file of a result.
pub(crate) fn replace_file(place: &Place, made: &Made, file: &str) {
    let update = format!("UPDATE results SET file = {file} WHERE id = '{}'", made.run.id);
    services::change(&place.address(), &update);
}

/// Runs SQL without the checks of references between tables.
pub(crate) fn execute_unchecked(place: &Place, kind: Kind, sql: &str) {
    let unchecked = match kind {
        Kind::Local => "PRAGMA foreign_keys = OFF",
        Kind::Shared => "SET session_replication_role = replica",
    };
    services::execute(&place.address(), &format!("{unchecked}; {sql}")).unwrap();
}

/// Changes one bit in the middle of a log's file.
pub(crate) fn flip(place: &Place, made: &Made) {
    let path = blob(place, made);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

pub(crate) fn fault(owner: &Client, made: &Made) -> serde_json::Value {
    owner.json(&format!("/runs/{}/summary", made.run.id))["log_fault"].clone()
}

pub(crate) fn metric(owner: &Client, fault: &str) -> String {
    metric_of(owner, "bad_logs", fault)
}
