//! What other runs on a cluster say about a job: whether marks survive there, and which jobs are theirs.

use super::{Journal, JournalError};
use std::collections::BTreeSet;

impl Journal {
    /// Returns whether Slurm showed the marks of the last jobs on a cluster; false if nobody has looked.
    pub(crate) async fn marks_survive(&self, cluster: &str) -> Result<bool, JournalError> {
        let select = sqlx::query_scalar::<_, i64>(
            "SELECT json_extract(event, '$.marked') FROM event JOIN run ON run.id = event.run JOIN round ON \
             round.id = run.round WHERE round.cluster = ? AND event LIKE '%\"marked\"%' AND \
             json_extract(event, '$.marked') IS NOT NULL ORDER BY event.number DESC LIMIT 1",
        );
        let select = select.bind(cluster);
        self.located(async { Ok(select.fetch_optional(&self.pool).await? == Some(1)) }).await
    }

    /// Returns the jobs of all runs on a cluster but one.
    pub(crate) async fn jobs_of_others(
        &self,
        cluster: &str,
        run: &str,
    ) -> Result<BTreeSet<String>, JournalError> {
        let select = sqlx::query_scalar(
            "SELECT DISTINCT job.value FROM event JOIN run ON run.id = event.run JOIN round ON round.id = \
             run.round, json_each(event.event, '$.jobs') AS job WHERE round.cluster = ? AND run.id <> ? AND \
             event LIKE '{\"event\":\"submitted\"%'",
        );
        let select = select.bind(cluster).bind(run);
        self.located(async { Ok(select.fetch_all(&self.pool).await?.into_iter().collect()) }).await
    }

    /// Returns the names of the jobs that other runs on a cluster may be submitting now.
    pub(crate) async fn names_being_launched(
        &self,
        cluster: &str,
        run: &str,
    ) -> Result<BTreeSet<String>, JournalError> {
        let select = sqlx::query_scalar(
            "SELECT DISTINCT name.value FROM run JOIN round ON round.id = run.round, json_each(run.plan, \
             '$.job_names') AS name WHERE round.cluster = ? AND round.ended_ms IS NULL AND run.id <> ? AND \
             (SELECT json_extract(event, '$.event') FROM event WHERE event.run = run.id ORDER BY number DESC \
             LIMIT 1) IN ('intended', 'cancel_asked')",
        );
        let select = select.bind(cluster).bind(run);
        self.located(async { Ok(select.fetch_all(&self.pool).await?.into_iter().collect()) }).await
    }
}
