//! What newer parsers made of raw logs. The result that was uploaded stays; the newest one counts.

use super::{ChangeKind, LEVEL, Store, StoreError, Summary, now, unpack};
use serde::Serialize;
use trainplan_shared::log::PARSER_VERSION;
use trainplan_shared::result::{self, Intake, Report, RunResult, View};
use uuid::Uuid;

/// What one version of the parser made of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Score {
    /// The parser's version.
    pub(crate) parser_version: u32,
    /// When; none of the result that was uploaded.
    pub(crate) scored_at: Option<String>,
    /// What it says.
    pub(crate) report: Report,
}

impl Store {
    /// All that was made of a run, the newest first; empty if it is not here.
    pub(crate) async fn scores(&self, id: Uuid) -> Result<Vec<Score>, StoreError> {
        let rows: Vec<(String, Vec<u8>)> =
            sqlx::query_as("SELECT scored_at, file FROM scores WHERE id = $1 ORDER BY parser_version DESC")
                .bind(id.to_string())
                .fetch_all(&self.database.readers)
                .await
                .map_err(|error| self.failed(error))?;
        let mut files: Vec<_> = rows.into_iter().map(|(at, file)| (Some(at), file)).collect();
        files.extend(self.file(id).await?.map(|file| (None, file)));
        let score = |(scored_at, file): (Option<String>, Vec<u8>)| {
            let run = unpack(id, &file)?;
            let parser_version = run.provenance.parser_version;
            Ok(Score { parser_version, scored_at, report: Report::of(&run, &View::default()) })
        };
        files.into_iter().map(score).collect()
    }

    /// Reads a run's raw log again by this program's parser. None if the log is not here; otherwise whether that made
    /// another result than the one that counted.
    pub(crate) async fn reparse(&self, id: Uuid) -> Result<Option<bool>, StoreError> {
        let (Some(sha256), Some(run)) = (self.log(id).await?, self.get(id).await?) else { return Ok(None) };
        let log = self.read_log(&sha256).await?;
        let (path, said) = (run.source.path.clone(), run.identity.scenario.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut intake = Intake::new(&path, &said);
            let mut raw = log.raw()?;
            let mut piece = vec![0; 1 << 18];
            loop {
                match std::io::Read::read(&mut raw, &mut piece)? {
                    0 => return Ok::<_, std::io::Error>(intake.finish()),
                    count => intake.feed(&piece[..count]),
                }
            }
        });
        let read = read.await.map_err(std::io::Error::other).and_then(|read| read);
        let read = read.map_err(|error| StoreError::Damaged { id, what: format!("its log: {error}") })?;
        let new = again(&run, read);
        if new == run {
            return Ok(Some(false));
        }
        self.enter_score(&new).await.map(|()| Some(true))
    }

    async fn enter_score(&self, run: &RunResult) -> Result<(), StoreError> {
        let id = run.id.to_string();
        let packed = zstd::bulk::compress(result::write(run)?.as_bytes(), LEVEL)
            .map_err(|error| self.failed(sqlx::Error::Io(error)))?;
        let summary = Summary::of(run, now(), true);
        let mut writing = self.database.write().await?;
        let insert = "INSERT INTO scores (id, parser_version, scored_at, file) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (id, parser_version) DO UPDATE SET scored_at = excluded.scored_at, file = excluded.file";
        let insert = sqlx::query(insert).bind(&id).bind(i64::from(PARSER_VERSION)).bind(now()).bind(packed);
        insert.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        summary.update().query().execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        self.change(&mut writing, ChangeKind::Run, &id).await?;
        self.commit(writing).await
    }

    /// The newest file that a parser made of a run's log.
    pub(super) async fn newest_score(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        sqlx::query_scalar("SELECT file FROM scores WHERE id = $1 ORDER BY parser_version DESC LIMIT 1")
            .bind(id.to_string())
            .fetch_optional(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }
}

/// A result of the same log, with what the log does not tell.
fn again(run: &RunResult, read: RunResult) -> RunResult {
    let read = RunResult { source: run.source.clone(), ..read };
    let Some(carried) = run.carried.clone() else { return RunResult { id: run.id, ..read } };
    let mut new = read.of_run(run.id, carried);
    // What was seen of the run itself stays true.
    for reason in &run.comparable.reasons {
        if !new.comparable.reasons.contains(reason) {
            new.comparable.reasons.push(reason.clone());
        }
    }
    new.comparable.yes = new.comparable.reasons.is_empty();
    new
}
