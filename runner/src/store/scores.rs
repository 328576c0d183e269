//! Later scores of raw logs, by a newer parser or for a corrected recipe. The uploaded result stays; the
//! newest score counts.

use super::alerts::Acknowledged;
use super::columns::RunRow;
use super::database::Typed;
use super::files::{ResultFile, StoredFile, read_score, score_hash, stored_time};
use super::logs::of_other_log;
use super::{Store, StoreError, now, pack, unpack};
use crate::migrations::Engine;
use sqlx::{Any, Transaction};
use std::io::{self, Read};
use trainplan_shared::api::{EventKind, ScoreVersion};
use trainplan_shared::result::{self, Intake, Report, RunResult, Source, View};
use trainplan_shared::spec::Spec;
use uuid::Uuid;

impl Store {
    /// Returns all scores of a run, newest first, the uploaded result last; empty if the run is not stored. Reads
    /// one result file at a time.
    pub(crate) async fn scores(&self, id: Uuid) -> Result<Vec<ScoreVersion>, StoreError> {
        let mut scores = Vec::new();
        for (parser_version, scored_at) in self.scored_by(id).await? {
            // It may have been deleted meanwhile.
            let stored = self.stored_score(&self.database.readers, id, parser_version).await?;
            if let Some(stored) = stored {
                scores.push(version(&read_score(id, stored).await?, Some(scored_at)));
            }
        }
        if let Some(run) = self.uploaded(id).await? {
            scores.push(version(&run, None));
        }
        Ok(scores)
    }

    /// Returns the parser versions that scored a run, newest first, each with the time of its score.
    ///
    /// # Errors
    /// [`StoreError::DamagedScore`] if one of them has the wrong type.
    pub(super) async fn scored_by(&self, id: Uuid) -> Result<Vec<(i64, String)>, StoreError> {
        let select = "SELECT scores.parser_version, scored_at FROM scores JOIN runs USING (id) WHERE id = $1 \
            ORDER BY scores.parser_version DESC";
        let select = sqlx::query_as(select).bind(id.to_string());
        let rows: Result<Vec<(Typed<i64>, Typed<String>)>, _> =
            select.fetch_all(&self.database.readers).await;
        let rows = rows.map_err(|error| self.failed(error))?.into_iter();
        let scores: Option<Vec<_>> = rows.map(|(version, at)| version.0.zip(at.0)).collect();
        scores.ok_or_else(|| StoreError::DamagedScore {
            id,
            what: "its parser version or its time has the wrong type".into(),
        })
    }

    /// Scores a run's raw log again, as a run of `scenario` or of what it was before. Returns none if the
    /// store does not have the log, otherwise whether the score changed.
    ///
    /// # Errors
    /// A scenario is given although a campaign launched the run; the log or the database fails.
    pub(crate) async fn reparse(&self, id: Uuid, scenario: Option<Spec>) -> Result<Option<bool>, StoreError> {
        match self.score_again(id, scenario).await {
            // The run and its log were deleted in the meantime.
            Err(_) if self.is_deleted(id).await? => Ok(None),
            scored => scored,
        }
    }

    async fn score_again(&self, id: Uuid, scenario: Option<Spec>) -> Result<Option<bool>, StoreError> {
        let Some(sha256) = self.log(id).await? else { return Ok(None) };
        let (run, is_lost) = match self.get(id).await {
            // The new score replaces the damaged one.
            Err(StoreError::DamagedScore { .. }) => (self.uploaded(id).await?, true),
            run => (run?, false),
        };
        let Some(run) = run else { return Ok(None) };
        if run.source.sha256 != sha256.as_str() {
            return Err(of_other_log(id));
        }
        if let (Some(carried), Some(_)) = (&run.carried, &scenario) {
            return Err(StoreError::Carried { id, campaign: carried.campaign.clone() });
        }
        let log = self.read_log(&sha256).await?;
        let is_corrected = scenario.is_some();
        let scenario = scenario.unwrap_or_else(|| run.identity.scenario.clone());
        let known = run.clone();
        let mut new = match log.read(move |raw| read_again(&known, &scenario, raw)).await {
            Ok(new) => new,
            Err(error) => return Err(self.log_error(&sha256, error).await),
        };
        new.provenance.scored_at = run.provenance.scored_at.clone();
        if new == run && !is_lost {
            let mut writing = self.database.write().await?;
            if self.locked_row(&mut writing, id).await?.is_some() {
                self.discard_damaged_scores(&mut writing, id).await?;
            }
            return self.commit(writing).await.map(|()| Some(false));
        }
        // The clock may have been set back since the last score.
        new.provenance.scored_at = run.provenance.scored_at.clone().max(Some(now()));
        Ok(self.store_score(&new, is_corrected).await?.then_some(true))
    }

    /// Stores a score from another store, unless this one has a newer score by the same parser version.
    /// Returns whether the run is stored.
    pub(crate) async fn put_score(&self, run: &RunResult) -> Result<bool, StoreError> {
        self.store_score(run, false).await
    }

    /// Stores a score. If the recipe was corrected, deletes the run's alerts and has it judged again.
    async fn store_score(&self, run: &RunResult, is_corrected: bool) -> Result<bool, StoreError> {
        let packed = self.pack_score(run)?;
        let mut writing = self.database.write().await?;
        // The run may have been deleted meanwhile.
        let Some(row) = self.locked_row(&mut writing, run.id).await? else { return Ok(false) };
        self.add_score(&mut writing, &row, run, packed).await?;
        if is_corrected {
            self.judge_again(&mut writing, &row.id, Acknowledged::Deleted).await?;
        }
        self.commit(writing).await.map(|()| true)
    }

    /// Returns the file of a score, compressed.
    ///
    /// # Errors
    /// The score is not accepted.
    pub(super) fn pack_score(&self, run: &RunResult) -> Result<Vec<u8>, StoreError> {
        result::admit(run)?;
        pack(result::write(run)?.as_bytes()).map_err(|error| self.failed(sqlx::Error::Io(error)))
    }

    /// Adds a score to a stored run, unless the run has a newer one by the same parser version. Updates the run's row.
    pub(super) async fn add_score(
        &self,
        writing: &mut Transaction<'static, Any>,
        row: &RunRow,
        run: &RunResult,
        packed: Vec<u8>,
    ) -> Result<(), StoreError> {
        let scored_at = stored_time(run.provenance.scored_at.as_deref());
        let failed = |error| self.failed(error);
        self.discard_damaged_scores(writing, run.id).await?;
        let insert = "INSERT INTO scores (id, parser_version, scored_at, file, sha256) VALUES ($1, $2, $3, $4, $5) \
            ON CONFLICT (id, parser_version) DO UPDATE \
            SET scored_at = excluded.scored_at, file = excluded.file, sha256 = excluded.sha256 \
            WHERE excluded.scored_at >= scores.scored_at";
        let insert = sqlx::query(insert).bind(&row.id).bind(i64::from(run.provenance.parser_version));
        let hash = score_hash(&packed);
        insert.bind(scored_at).bind(packed).bind(hash).execute(&mut **writing).await.map_err(failed)?;
        let newest = self.stored_file(&mut **writing, run.id, ResultFile::Score).await?;
        let newest = newest.ok_or_else(|| failed(sqlx::Error::RowNotFound))?;
        let computed = row.computed_again(&unpack(run.id, &newest.packed)?);
        let fixed = [&row.damaged[..], &["score_fault"]].concat();
        computed.update(&fixed).query().execute(&mut **writing).await.map_err(failed)?;
        self.change(writing, EventKind::Run, &row.id).await?;
        Ok(())
    }

    /// Deletes the alerts of a run and has it judged again. Acknowledged ones can be kept.
    pub(super) async fn judge_again(
        &self,
        writing: &mut Transaction<'static, Any>,
        id: &str,
        acknowledged: Acknowledged,
    ) -> Result<(), StoreError> {
        let delete = match acknowledged {
            Acknowledged::Kept => "DELETE FROM alerts WHERE run = $1 AND acknowledged_at IS NULL",
            Acknowledged::Deleted => "DELETE FROM alerts WHERE run = $1",
        };
        for statement in [delete, "INSERT INTO unjudged (id) VALUES ($1) ON CONFLICT DO NOTHING"] {
            let done = sqlx::query(statement).bind(id).execute(&mut **writing).await;
            done.map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Deletes the scores of a run that are damaged. The newest one would count otherwise, and the list of all scores could not be
    /// read.
    async fn discard_damaged_scores(
        &self,
        writing: &mut Transaction<'static, Any>,
        id: Uuid,
    ) -> Result<(), StoreError> {
        // Only SQLite stores parser versions that are not integers. They would be the newest scores, or stay unread.
        if self.database.engine == Engine::Sqlite {
            let delete = "DELETE FROM scores WHERE id = $1 AND typeof(parser_version) <> 'integer'";
            let deleted = sqlx::query(delete).bind(id.to_string()).execute(&mut **writing).await;
            let deleted = deleted.map_err(|error| self.failed(error))?.rows_affected();
            if deleted > 0 {
                tracing::warn!(
                    "damaged scores of run {id} are deleted: their parser versions are not integers"
                );
            }
        }
        let select =
            sqlx::query_scalar("SELECT parser_version FROM scores WHERE id = $1").bind(id.to_string());
        let versions: Result<Vec<i64>, _> = select.fetch_all(&mut **writing).await;
        for version in versions.map_err(|error| self.failed(error))? {
            let stored = self.stored_score(&mut **writing, id, version).await?;
            if let Some(stored) = stored
                && is_damaged(id, stored).await?
            {
                let delete = sqlx::query("DELETE FROM scores WHERE id = $1 AND parser_version = $2");
                let delete = delete.bind(id.to_string()).bind(version).execute(&mut **writing).await;
                delete.map_err(|error| self.failed(error))?;
            }
        }
        Ok(())
    }
}

/// Reads the log of a result again, as a run of this scenario; returns the new result of the same run.
pub(crate) fn read_again(run: &RunResult, scenario: &Spec, mut raw: impl Read) -> io::Result<RunResult> {
    let mut intake = Intake::new(&run.source.path, scenario).with_job(run.job.clone());
    let mut piece = vec![0; 1 << 18];
    loop {
        match raw.read(&mut piece)? {
            0 => return Ok(with_known_facts(run, intake.finish())),
            count => intake.feed(&piece[..count]),
        }
    }
}

/// Returns whether a stored score is damaged, and says so in the program's output.
async fn is_damaged(id: Uuid, stored: StoredFile) -> Result<bool, StoreError> {
    match read_score(id, stored).await {
        Err(StoreError::DamagedScore { what, .. }) => {
            tracing::warn!("a damaged score of run {id} is deleted: {what}");
            Ok(true)
        }
        score => score.map(|_| false),
    }
}

fn version(run: &RunResult, scored_at: Option<String>) -> ScoreVersion {
    let parser_version = run.provenance.parser_version;
    ScoreVersion { parser_version, scored_at, report: Report::of(run, &View::default()) }
}

/// Returns a new result of the same log, with the facts that are not in the log.
fn with_known_facts(run: &RunResult, read: RunResult) -> RunResult {
    let source = Source { began_at: read.source.began_at.clone(), ..run.source.clone() };
    let read = RunResult { source, ..read };
    let Some(carried) = run.carried.clone() else { return RunResult { id: run.id, ..read } };
    let mut new = read.of_run(run.id, carried);
    // What the runner observed of the run itself stays true.
    for reason in &run.comparable.reasons {
        if !new.comparable.reasons.contains(reason) {
            new.comparable.reasons.push(reason.clone());
        }
    }
    new.comparable.yes = new.comparable.reasons.is_empty();
    new
}
