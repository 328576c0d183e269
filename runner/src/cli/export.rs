//! `trainplan export`: copies a store into a folder of plain files, to back it up or move it.

use super::data_dir::StoreArgs;
use super::import::SCORE_ENDING;
use super::{Failure, note};
use crate::store::{BlobError, Store, StoreError, valid_id};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trainplan_shared::result::FILE_ENDING;
use uuid::Uuid;

/// The name of the file into which the tables of a damaged database are copied, as long as the export takes.
const COPY: &str = "store.sqlite.part";

/// Copy the store into a folder of plain files
///
/// Writes each run as ID.result.json (the uploaded result), ID.log.zst (the raw log, if stored) and ID.score.json
/// (the newest score, if the log was scored again). `trainplan import FOLDER` reads them into any store. Existing
/// files are kept, so a second export adds only new runs. Each result and each log is compared with its hash; missing
/// and damaged ones are reported, and everything else is written.
///
/// The formats of these files are fixed. For a table of the runs, use `trainplan results list --format csv`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan export backup/
  trainplan export backup/ --database-url postgres://trainplan@db/trainplan --store s3://results/logs

Exit codes: 0 success; 1 a stored log or result is missing or damaged, a run has an invalid id or no row, a file can't be written, \
the database file is damaged, or the store failed.")]
pub(super) struct Args {
    /// The folder for the files
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let folder = &self.folder;
        fs::create_dir_all(folder).map_err(|error| unwritten(folder, error))?;
        remove_copy(folder);
        let exported = tokio::runtime::Runtime::new()?.block_on(async {
            let mut store = self.store.existing().await?;
            let is_damaged = !store.damages().await?.is_empty();
            if is_damaged {
                note("the database file is damaged, so its tables are copied first");
                let copied = store.copied_to(&folder.join(COPY)).await;
                match copied {
                    Ok(copy) => {
                        store = copy;
                        // Those whose rows were on damaged pages.
                        store.restore_runs().await?;
                    }
                    Err(error) => note(&format!("the tables can't be copied: {error}")),
                }
            }
            let (mut runs, mut logs, mut scores, mut bad) = (0, 0, 0, 0);
            // By their ids, which name their files. A list by time would lack runs whose time is damaged.
            let mut after = String::new();
            loop {
                let page = store.runs_after(&after).await?;
                let Some(last) = page.last() else { break };
                after.clone_from(last);
                for id in page.iter().filter_map(|text| valid_id(text)) {
                    let written = [
                        (&mut runs, result(&store, id, folder).await),
                        (&mut scores, score(&store, id, folder).await),
                        (&mut logs, log(&store, id, folder).await),
                    ];
                    for (count, written) in written {
                        match written {
                            Ok(is_written) => *count += usize::from(is_written),
                            Err(Failure::Store(
                                error @ (StoreError::BadLog { .. }
                                | StoreError::Damaged { .. }
                                | StoreError::DamagedScore { .. }
                                | StoreError::Database { .. }),
                            )) => {
                                bad += 1;
                                note(&format!("run {id}: {error}"));
                            }
                            Err(error) => return Err(error),
                        }
                    }
                }
            }
            let invalid = store.invalid_rows().await?;
            if invalid.ids > 0 {
                bad += invalid.ids;
                let left_out = counted(invalid.ids, "run");
                note(&format!(
                    "{left_out} left out: the ids in the store's table of runs are not valid UUIDs"
                ));
            }
            let lost = store.lost_runs().await?.len();
            if lost > 0 {
                bad += lost;
                let left_out = counted(lost, "run");
                note(&format!(
                    "{left_out} left out: no row in the store's table of runs; `trainplan verify-store` recreates lost rows"
                ));
            }
            if invalid.times > 0 {
                let damaged = counted(invalid.times, "run");
                note(&format!(
                    "{damaged} with an unreadable time of receipt: the files are written without it"
                ));
            }
            Ok::<_, Failure>((runs, logs, scores, bad, is_damaged))
        });
        remove_copy(folder);
        let (runs, logs, scores, bad, is_damaged) = exported?;
        let folder = folder.display();
        let results = counted(runs, "result");
        let logs = counted(logs, "raw log");
        let scores = counted(scores, "later score");
        note(&format!("wrote {results}, {logs} and {scores} to {folder}"));
        match (bad, is_damaged) {
            (0, false) => Ok(()),
            (0, true) => Err(Failure::DamagedDatabase),
            _ => Err(Failure::NotExported(bad)),
        }
    }
}

/// Removes the copy of a damaged database, also one of an interrupted export.
fn remove_copy(folder: &Path) {
    for end in ["", "-wal", "-shm"] {
        // It may not exist.
        let _ = fs::remove_file(folder.join(format!("{COPY}{end}")));
    }
}

/// Returns `count` with `noun`, which is in the plural unless there is exactly one: "1 result", "0 results".
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Writes a result, unless its file exists.
async fn result(store: &Store, id: Uuid, folder: &Path) -> Result<bool, Failure> {
    let path = folder.join(format!("{id}{FILE_ENDING}"));
    if path.exists() {
        return Ok(false);
    }
    let Some(packed) = store.file(id).await? else { return Ok(false) };
    whole(id, &path, &packed)
}

/// Writes the newest score, unless its file has the same content.
async fn score(store: &Store, id: Uuid, folder: &Path) -> Result<bool, Failure> {
    match store.checked_score(id).await? {
        Some(packed) => whole(id, &folder.join(format!("{id}{SCORE_ENDING}")), &packed),
        None => Ok(false),
    }
}

/// Writes a raw log, unless its file exists or the store has no log.
async fn log(store: &Store, id: Uuid, folder: &Path) -> Result<bool, Failure> {
    let path = folder.join(format!("{id}.log.zst"));
    if path.exists() {
        return Ok(false);
    }
    let Some(sha256) = store.own_log(id).await? else { return Ok(false) };
    let draft = draft(&path);
    match store.copy_log(&sha256, &draft).await {
        Ok(()) => fs::rename(&draft, &path).map_err(|error| unwritten(&path, error))?,
        Err(StoreError::Blob(BlobError::Read { error, .. })) => return Err(unwritten(&path, error)),
        Err(error) => {
            // It may not have been created.
            let _ = fs::remove_file(&draft);
            return Err(error.into());
        }
    }
    Ok(true)
}

/// Decompresses into a file, as a whole or not at all, unless the file has the same content.
fn whole(id: Uuid, path: &Path, packed: &[u8]) -> Result<bool, Failure> {
    let damaged = |error: io::Error| StoreError::Damaged { id, what: error.to_string() };
    let bytes = zstd::decode_all(packed).map_err(damaged)?;
    let draft = draft(path);
    let written = || {
        if fs::read(path).is_ok_and(|there| there == bytes) {
            return Ok(false);
        }
        let mut file = File::create(&draft)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path).map(|()| true)
    };
    written().map_err(|error| unwritten(path, error))
}

fn draft(path: &Path) -> PathBuf {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".part");
    draft.into()
}

fn unwritten(path: &Path, error: io::Error) -> Failure {
    Failure::File { path: path.to_path_buf(), error }
}
