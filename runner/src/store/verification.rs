//! Checks stored results: their files against their hashes, and their rows in lists against their files.

use super::columns::RunRow;
use super::database::Typed;
use super::files::{apart, read_apart, read_score};
use super::{Origin, Store, StoreError};
use crate::migrations::Engine;
use futures_util::TryStreamExt;
use jiff::Timestamp;
use sqlx::{Any, Transaction};
use std::io::Read as _;
use trainplan_shared::api::EventKind;
use trainplan_shared::result::{self, RunResult};
use uuid::Uuid;

/// The number of runs that [`Store::runs_after`] returns at once.
const PAGE: i64 = 500;

/// The most bytes of a result's file that is read although its hash is not known.
const LARGEST_UNHASHED: u64 = 64 << 20;

/// What is wrong with a stored result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResultFault {
    /// A file is missing or damaged: of the result, or of a later score. The sentence says which, and why.
    File(String),
    /// These columns of its row contradicted its file, and were recomputed.
    Columns(Vec<&'static str>),
    /// Its row was lost or was that of another run, and is its own again. The sentence says which.
    Row(String),
}

/// The numbers of rows of the table `runs` with invalid values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InvalidRows {
    /// Rows whose id is not a UUID in lower case, so that no statement finds them.
    pub(crate) ids: usize,
    /// Rows with a valid id whose time of receipt can't be read.
    pub(crate) times: usize,
}

impl Store {
    /// Returns the first damages that SQLite finds in its file, also of pages that no result needs; none for PostgreSQL.
    pub(crate) async fn damages(&self) -> Result<Vec<String>, StoreError> {
        if self.database.engine != Engine::Sqlite {
            return Ok(Vec::new());
        }
        let check = sqlx::query_scalar::<_, String>("PRAGMA integrity_check(20)");
        let mut rows = check.fetch(&self.database.readers);
        let mut found = Vec::new();
        loop {
            match rows.try_next().await.map_err(|error| self.failed(error)) {
                Ok(Some(text)) => found.extend(text.lines().filter(|line| *line != "ok").map(str::to_owned)),
                Ok(None) => return Ok(found),
                // The check itself can fail at a damaged page, before or after it named the damage.
                Err(error) if self.is_damage(&error) => {
                    if found.is_empty() {
                        found.push("a page is malformed, so that it can't be checked".to_owned());
                    }
                    return Ok(found);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether an error means that pages of the SQLite file are damaged.
    pub(crate) fn is_damage(&self, error: &StoreError) -> bool {
        self.database.is_damage(error)
    }

    /// Returns how many rows of runs have an invalid id or time.
    pub(crate) async fn invalid_rows(&self) -> Result<InvalidRows, StoreError> {
        let select = sqlx::query_as::<_, (Typed<String>, Typed<String>)>("SELECT id, received_at FROM runs");
        let mut rows = select.fetch(&self.database.readers);
        let mut invalid = InvalidRows::default();
        while let Some((id, time)) = rows.try_next().await.map_err(|error| self.failed(error))? {
            let has_id = id.0.is_some_and(|id| valid_id(&id).is_some());
            let has_time = time.0.is_some_and(|time| time.parse::<Timestamp>().is_ok());
            invalid.ids += usize::from(!has_id);
            invalid.times += usize::from(has_id && !has_time);
        }
        Ok(invalid)
    }

    /// Returns the ids of the next runs, in their order.
    pub(crate) async fn runs_after(&self, after: &str) -> Result<Vec<String>, StoreError> {
        let found: Vec<Typed<String>> =
            sqlx::query_scalar("SELECT id FROM runs WHERE id > $1 ORDER BY id LIMIT $2")
                .bind(after)
                .bind(PAGE)
                .fetch_all(&self.database.readers)
                .await
                .map_err(|error| self.failed(error))?;
        // Ids of the wrong type come last. No other statement finds their rows.
        Ok(found.into_iter().filter_map(|Typed(id)| id).collect())
    }

    /// Returns what is wrong with the rows of runs that [`Store::runs_after`] does not return: they have no id, or one of the wrong
    /// type. Each is a sentence.
    pub(crate) async fn rows_without_id(&self) -> Result<Vec<String>, StoreError> {
        let select = sqlx::query_as::<_, (Typed<String>, Typed<String>, Typed<String>)>(
            "SELECT id, received_at, path FROM runs",
        );
        let mut rows = select.fetch(&self.database.readers);
        let mut found = Vec::new();
        while let Some((Typed(id), Typed(time), Typed(path))) =
            rows.try_next().await.map_err(|error| self.failed(error))?
        {
            if id.is_some_and(|id| !id.is_empty()) {
                continue;
            }
            let unknown = || "unknown".to_owned();
            found.push(format!(
                "A run has no valid id, so it can't be found. Its path is {}, and its time of receipt {}. Upload or import it again.",
                path.unwrap_or_else(unknown),
                time.unwrap_or_else(unknown)
            ));
        }
        Ok(found)
    }

    /// Returns the ids of results whose rows in the table `runs` are lost; none for an id of the wrong type.
    pub(crate) async fn lost_runs(&self) -> Result<Vec<Option<String>>, StoreError> {
        let select =
            "SELECT results.id FROM results LEFT JOIN runs ON runs.id = results.id WHERE runs.id IS NULL";
        let found: Result<Vec<Typed<String>>, _> =
            sqlx::query_scalar(select).fetch_all(&self.database.readers).await;
        Ok(found.map_err(|error| self.failed(error))?.into_iter().map(|Typed(id)| id).collect())
    }

    /// Returns the ids of runs that have scores, but neither a row nor a result.
    pub(crate) async fn lost_results(&self) -> Result<Vec<String>, StoreError> {
        let select = "SELECT DISTINCT scores.id FROM scores \
            LEFT JOIN runs ON runs.id = scores.id LEFT JOIN results ON results.id = scores.id \
            WHERE runs.id IS NULL AND results.id IS NULL ORDER BY scores.id";
        let found: Result<Vec<Typed<String>>, _> =
            sqlx::query_scalar(select).fetch_all(&self.database.readers).await;
        let found = found.map_err(|error| self.failed(error))?.into_iter();
        Ok(found.map(|Typed(id)| id.unwrap_or_default()).collect())
    }

    /// Makes the row of a result again whose row in the table `runs` is lost or has another id. Returns what was wrong and the id of
    /// the run; none if the row is there.
    pub(crate) async fn restore_run(&self, text: &str) -> Result<Option<(String, ResultFault)>, StoreError> {
        let select = format!(
            "SELECT {} FROM results WHERE id = $1 \
            AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = results.id)",
            self.as_bytes("file")
        );
        let packed: Result<Option<Option<Vec<u8>>>, _> =
            sqlx::query_scalar(&select).bind(text).fetch_optional(&self.database.readers).await;
        let Some(packed) = packed.map_err(|error| self.failed(error))? else { return Ok(None) };
        let of_file = |what: String| Some((text.to_owned(), ResultFault::File(what)));
        let id = valid_id(text).unwrap_or_default();
        let read = apart(id, move || read_unhashed(&packed.unwrap_or_default())).await?;
        let (run, file) = match read {
            Ok(read) => read,
            Err(what) => {
                let what = format!(
                    "Its row is lost, and the result's file {what}. Upload or import the result again."
                );
                return Ok(of_file(what));
            }
        };
        let refused = |error: StoreError| format!("Its row is lost, and can't be recreated: {error}");
        let entry = match self.prepare(&run, &file) {
            Ok(entry) => entry,
            Err(error @ StoreError::Invalid(_)) => return Ok(of_file(refused(error))),
            Err(error) => return Err(error),
        };
        let was_sound = self.checked_upload(run.id).await?.is_some_and(|known| known.is_sound());
        self.rename_row(run.id, &entry.sha256).await?;
        match self.enter_without_log(&run, entry, Origin::Imported).await {
            Ok(_) => {}
            Err(error @ (StoreError::Conflict { .. } | StoreError::Deleted { .. })) => {
                return Ok(of_file(refused(error)));
            }
            Err(error) => return Err(error),
        }
        let own = run.id.to_string();
        if own != text {
            // The file is stored under the run's own id now.
            let mut writing = self.database.write().await?;
            let delete = sqlx::query("DELETE FROM results WHERE id = $1").bind(text);
            delete.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
            self.commit(writing).await?;
        }
        if was_sound {
            let what = format!(
                "Its row is lost, and its file was replaced by that of the run {own}, which is stored too. Upload or import the result \
                 again."
            );
            return Ok(of_file(what));
        }
        // Lists show what the newest score says.
        self.verify_result(&own).await?;
        let what = "The run's row was lost or had another id, and was recreated from the result's file.";
        Ok(Some((own, ResultFault::Row(what.into()))))
    }

    /// Restores the lost rows of all results whose files are sound.
    pub(crate) async fn restore_runs(&self) -> Result<(), StoreError> {
        for id in self.lost_runs().await?.into_iter().flatten() {
            if let Some((run, ResultFault::File(what) | ResultFault::Row(what))) =
                self.restore_run(&id).await?
            {
                tracing::warn!("run {run}: {what}");
            }
        }
        Ok(())
    }

    /// Gives the row with this file hash the id of the file's result, if the row has no file under its own id, and no other row
    /// has the id or the hash.
    async fn rename_row(&self, id: Uuid, sha256: &str) -> Result<(), StoreError> {
        let update = "UPDATE runs SET id = $1 WHERE sha256 = $2 \
            AND NOT EXISTS (SELECT 1 FROM results WHERE results.id = runs.id) \
            AND NOT EXISTS (SELECT 1 FROM runs AS known WHERE known.id = $1) \
            AND (SELECT count(*) FROM runs AS same WHERE same.sha256 = $2) = 1";
        let mut writing = self.database.write().await?;
        let updated = sqlx::query(update).bind(id.to_string()).bind(sha256).execute(&mut *writing).await;
        if updated.map_err(|error| self.failed(error))?.rows_affected() > 0 {
            self.change(&mut writing, EventKind::Run, &id.to_string()).await?;
            // The earlier id is gone from lists and histories, and nobody knows which it was.
            self.change(&mut writing, EventKind::Again, "").await?;
        }
        self.commit(writing).await
    }

    /// Reads all files of a run and compares them with their hash, with each other and with the run's row.
    /// Computes a row again that does not follow from its files.
    pub(crate) async fn verify_result(&self, text: &str) -> Result<Vec<ResultFault>, StoreError> {
        let Some(id) = valid_id(text) else {
            return Ok(vec![ResultFault::File(format!("The id {text} is not a UUID in lower case."))]);
        };
        let (mut faults, mut exchanged) = (Vec::new(), None);
        let mut why = self.upload_fault(id).await?;
        if why.is_some() {
            let mut writing = self.database.write().await?;
            exchanged = self.exchange_rows(&mut writing, id).await?;
            self.commit(writing).await?;
            if exchanged.is_some() {
                why = self.upload_fault(id).await?;
            }
        }
        if let Some(why) = why {
            faults.push(ResultFault::File(format!("The result's file {why}.")));
        }
        let scores = match self.scored_by(id).await {
            Err(StoreError::DamagedScore { what, .. }) => {
                faults.push(ResultFault::File(format!("A score is damaged: {what}.")));
                self.record_newest(id).await?;
                Vec::new()
            }
            scores => scores?,
        };
        if !scores.is_empty() {
            self.record_newest(id).await?;
        }
        for (parser_version, _) in scores {
            // It may have been deleted meanwhile.
            let stored = self.stored_score(&self.database.readers, id, parser_version).await?;
            let Some(stored) = stored else { continue };
            let why = match read_score(id, stored).await {
                Err(StoreError::DamagedScore { what, .. }) => what,
                Err(error) => return Err(error),
                Ok(_) => continue,
            };
            faults.push(ResultFault::File(format!(
                "The file of the score by parser {parser_version} is damaged: {why}."
            )));
        }
        // A damaged file says nothing about the columns.
        if faults.is_empty() {
            let mut writing = self.database.write_exclusive(text).await?;
            let row = self.locked_row(&mut writing, id).await?;
            let newest = self.newest(id).await?;
            let mut columns = match (&row, &newest) {
                (Some(row), Some(newest)) => self.mend_row(&mut writing, row, newest).await?,
                _ => Vec::new(),
            };
            if self.forget_score_fault(&mut writing, text).await? {
                columns.push("score_fault");
            }
            self.commit(writing).await?;
            // In a separate transaction: like uploads of a log, it excludes others from the log before it locks the row.
            let lost_log = columns.contains(&"log_sha256");
            if (lost_log || row.is_some_and(|row| row.log_sha256.is_none()))
                && let Some(newest) = &newest
                && self.restore_log(id, &newest.source.sha256).await?
                && !lost_log
            {
                columns.push("log_sha256");
            }
            // A row that came from another run was wrong as a whole.
            if exchanged.is_none() && !columns.is_empty() {
                faults.push(ResultFault::Columns(columns));
            }
        }
        if let Some(other) = exchanged {
            let what = format!("The run had the row of run {other}, and now has its own again.");
            faults.push(ResultFault::Row(what));
        }
        Ok(faults)
    }

    /// Makes the row of a run again that is about to be stored, if it is lost or is that of another run. `sha256` is the hash of
    /// the result's file.
    pub(super) async fn settle_row(&self, id: Uuid, sha256: &str) -> Result<(), StoreError> {
        // The row may be lost, or may have another hash.
        let select = "SELECT (SELECT count(*) FROM results WHERE id = $1 \
                AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = results.id)), \
            (SELECT count(*) FROM runs WHERE id = $1 AND sha256 <> $2)";
        let select = sqlx::query_as(select).bind(id.to_string()).bind(sha256);
        let counts = select.fetch_one(&self.database.readers).await;
        let (lost, mut others): (i64, i64) = counts.map_err(|error| self.failed(error))?;
        if lost > 0 {
            self.restore_run(&id.to_string()).await?;
            // The restored row may belong to another file.
            others += 1;
        }
        if others > 0 {
            let mut writing = self.database.write().await?;
            self.exchange_rows(&mut writing, id).await?;
            self.commit(writing).await?;
        }
        Ok(())
    }

    /// Swaps the rows of two runs if the other run's row has the hash of this run's file and this run's row doesn't. Returns
    /// the id of the other run.
    pub(super) async fn exchange_rows(
        &self,
        writing: &mut Transaction<'static, Any>,
        id: Uuid,
    ) -> Result<Option<Uuid>, StoreError> {
        let failed = |error| self.failed(error);
        let claims = self.claims(&mut **writing, id).await?;
        let Some(claims) = claims.filter(|claims| claims.id == id && !claims.is_of_row) else {
            return Ok(None);
        };
        let select = sqlx::query_scalar("SELECT id FROM runs WHERE sha256 = $1 LIMIT 2").bind(&claims.sha256);
        let others: Vec<Typed<String>> = select.fetch_all(&mut **writing).await.map_err(failed)?;
        // If two rows have this hash, it is unknown which of them to swap.
        let [Typed(Some(other))] = &others[..] else { return Ok(None) };
        let Some(other) = valid_id(other) else { return Ok(None) };
        let (Some(row), Some(others)) =
            (self.locked_row(writing, id).await?, self.locked_row(writing, other).await?)
        else {
            return Ok(None);
        };
        for (id, row) in [(id, others), (other, row)] {
            let row = row.of_run(&id.to_string());
            row.replace().query().execute(&mut **writing).await.map_err(failed)?;
            self.change(writing, EventKind::Run, &row.id).await?;
        }
        Ok(Some(other))
    }

    /// Deletes the fault of a run's newest score if the run has no score; returns whether there was one.
    async fn forget_score_fault(
        &self,
        writing: &mut Transaction<'static, Any>,
        id: &str,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE runs SET score_fault = NULL WHERE id = $1 AND score_fault IS NOT NULL \
            AND NOT EXISTS (SELECT 1 FROM scores WHERE scores.id = runs.id)";
        let updated = sqlx::query(update).bind(id).execute(&mut **writing).await;
        let is_updated = updated.map_err(|error| self.failed(error))?.rows_affected() > 0;
        if is_updated {
            self.change(writing, EventKind::Run, id).await?;
        }
        Ok(is_updated)
    }

    /// Reads the newest score of a run, and records whether it is damaged.
    async fn record_newest(&self, id: Uuid) -> Result<(), StoreError> {
        match self.get(id).await {
            Ok(_) | Err(StoreError::Damaged { .. } | StoreError::DamagedScore { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns what is wrong with an uploaded result's file, as the rest of a sentence, and records it.
    async fn upload_fault(&self, id: Uuid) -> Result<Option<String>, StoreError> {
        // It may have been deleted meanwhile.
        let Some(checked) = self.checked_upload(id).await? else { return Ok(None) };
        self.record_result(id, &checked).await;
        let file = match checked.into_file() {
            Ok(file) => file,
            Err(fault) => return Ok(Some(fault.what)),
        };
        match read_apart(id, file).await {
            Ok(run) if run.id == id => Ok(None),
            Ok(run) => Ok(Some(format!("is the result of another run, {}", run.id))),
            Err(StoreError::Damaged { what, .. }) => Ok(Some(format!("can't be read: {what}"))),
            Err(error) => Err(error),
        }
    }

    /// Computes the row of a run again from its newest result; returns the columns that change by that.
    pub(super) async fn mend_row(
        &self,
        writing: &mut Transaction<'static, Any>,
        row: &RunRow,
        newest: &RunResult,
    ) -> Result<Vec<&'static str>, StoreError> {
        let wanted = row.computed_again(newest);
        let mut wrong = row.damaged.clone();
        // Also if its version is newer. A damaged one would stay forever; a newer program computes its own rows again.
        wrong.extend(row.differing(&wanted).into_iter().filter(|column| !row.damaged.contains(column)));
        if !wrong.is_empty() {
            let updated = wanted.update(&row.damaged).query().execute(&mut **writing).await;
            updated.map_err(|error| self.failed(error))?;
        }
        if row.log_sha256.as_ref().is_some_and(|log| log.as_str() != newest.source.sha256) {
            wrong.push("log_sha256");
        }
        if wrong.contains(&"log_sha256") {
            // The next upload of the run's own log brings it back.
            let update = "UPDATE runs SET log_sha256 = NULL, log_fault = NULL WHERE id = $1";
            let updated = sqlx::query(update).bind(&row.id).execute(&mut **writing).await;
            updated.map_err(|error| self.failed(error))?;
        }
        if !wrong.is_empty() {
            self.change(writing, EventKind::Run, &row.id).await?;
        }
        Ok(wrong)
    }
}

/// Decompresses and reads a result whose hash is not known. The error is the rest of a sentence about its file.
fn read_unhashed(packed: &[u8]) -> Result<(RunResult, Vec<u8>), String> {
    let mut file = Vec::new();
    let read = zstd::Decoder::with_buffer(packed)
        .and_then(|raw| raw.take(LARGEST_UNHASHED + 1).read_to_end(&mut file));
    read.map_err(|error| format!("can't be decompressed: {error}"))?;
    if file.len() as u64 > LARGEST_UNHASHED {
        return Err("is too large".into());
    }
    let run = result::read(&file).map_err(|error| format!("can't be read: {error}"))?;
    Ok((run, file))
}

/// Returns the UUID of a run's id in the store. Statements find only ids in lower case with hyphens.
pub(crate) fn valid_id(text: &str) -> Option<Uuid> {
    text.parse().ok().filter(|id: &Uuid| id.to_string() == text)
}
