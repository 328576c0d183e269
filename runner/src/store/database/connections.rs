//! The connections of a program to PostgreSQL.

use super::{Database, StoreError};
use crate::migrations::Engine;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, Connection, Executor};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most connections to PostgreSQL of a program, unless the user sets their number.
pub(super) const MOST_CONNECTIONS: u32 = 12;

/// The fewest connections: one for transactions that write, and one to read meanwhile.
pub(crate) const FEWEST_CONNECTIONS: u32 = 2;

/// A server takes at most this part of the connections that PostgreSQL allows, so that others get some too.
const PART: i64 = 4;

/// The fewest connections that a server takes for that reason.
const LEAST_PART: i64 = 4;

/// One in this many connections is for transactions that write.
const WRITING: u32 = 3;

/// The time to wait for PostgreSQL. It is short, so that clients get an answer and try again.
const ANSWER: Duration = Duration::from_secs(5);

/// How long a connection may be idle before it is tested.
const UNTESTED: Duration = Duration::from_millis(10);

/// The longest wait for a lock that another transaction holds, like [`ANSWER`].
const LOCK_TIMEOUT: &str = "SET lock_timeout = '5s'";

/// The most connections that PostgreSQL allows this user to have to this database, with those of other programs. The user of a
/// server is not a superuser, for whom some are reserved.
const ALLOWED: &str = "SELECT least( \
    current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint \
        - coalesce(current_setting('reserved_connections', true)::bigint, 0), \
    (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = session_user), \
    (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()))";

/// When PostgreSQL last refused a change because it is read-only.
pub(super) type ReadOnlyAt = Arc<Mutex<Option<Instant>>>;

impl Database {
    /// Opens all connections of a server to PostgreSQL: this many, or else a part of those that PostgreSQL allows. If PostgreSQL
    /// grants fewer, the pools become smaller. Otherwise a pool with room would open a new connection instead of waiting for an
    /// existing one, and would try for [`ANSWER`] while PostgreSQL refuses.
    pub(in super::super) async fn open_all(&mut self, wanted: Option<u32>) -> Result<(), StoreError> {
        if self.engine == Engine::Sqlite {
            return Ok(());
        }
        let wanted = match wanted {
            Some(wanted) => wanted,
            None => {
                let allowed: i64 = sqlx::query_scalar(ALLOWED)
                    .fetch_one(&self.readers)
                    .await
                    .map_err(|error| self.failed(error))?;
                u32::try_from((allowed / PART).max(LEAST_PART)).unwrap_or(u32::MAX).min(MOST_CONNECTIONS)
            }
        };
        if wanted != MOST_CONNECTIONS {
            self.resize(wanted).await;
        }
        if fill([&self.writer, &self.readers]).await {
            return Ok(());
        }
        let granted = self.writer.size() + self.readers.size();
        tracing::warn!(
            "PostgreSQL grants this server only {granted} of {wanted} connections, so requests may wait for each other. Raise its \
             max_connections or the limit of the user, or set --database-connections, and restart this server."
        );
        self.resize(granted).await;
        // Connections that another program took in the meantime are opened later.
        fill([&self.writer, &self.readers]).await;
        Ok(())
    }

    /// Replaces the pools by others with this many connections.
    async fn resize(&mut self, count: u32) {
        self.writer.close().await;
        self.readers.close().await;
        [self.writer, self.readers] = pools(&self.options, count, &self.read_only_at);
    }
}

/// Returns the pools for transactions that write and for the rest, with at most `count` connections together, but at
/// least one each. They keep their connections, because new ones may be refused. A transaction that writes may read through
/// another connection: if both came from one pool, many of them could wait for each other.
pub(super) fn pools(options: &AnyConnectOptions, count: u32, read_only_at: &ReadOnlyAt) -> [AnyPool; 2] {
    let pool = |most| {
        AnyPoolOptions::new()
            .max_connections(most)
            .acquire_timeout(ANSWER)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .after_connect(|connection, _| {
                Box::pin(async { connection.execute(LOCK_TIMEOUT).await.map(|_| ()) })
            })
    };
    let writers = (count / WRITING).max(1);
    let [writers, readers] = [writers, count.saturating_sub(writers).max(1)].map(pool);
    let read_only_at = Arc::clone(read_only_at);
    // A connection may stay read-only after the database is writable again.
    let writers = writers.before_acquire(move |connection, used| {
        let at = *read_only_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newer = at.is_none_or(|at| used.age < at.elapsed());
        Box::pin(async move { Ok(is_newer && is_alive(connection, used.idle_for).await) })
    });
    let readers = readers.before_acquire(|connection, used| {
        Box::pin(async move { Ok(is_alive(connection, used.idle_for).await) })
    });
    [writers, readers].map(|pool| pool.connect_lazy_with(options.clone()))
}

/// Returns whether a connection works. One that was used a moment ago is not tested: that takes as long as a small query, and an
/// upload makes several.
async fn is_alive(connection: &mut AnyConnection, idle_for: Duration) -> bool {
    idle_for < UNTESTED || connection.ping().await.is_ok()
}

/// Opens all connections of two pools; returns whether that was possible.
async fn fill(pools: [&AnyPool; 2]) -> bool {
    for pool in pools {
        let mut open = Vec::new();
        for _ in 0..pool.options().get_max_connections() {
            let Ok(connection) = pool.acquire().await else { return false };
            open.push(connection);
        }
    }
    true
}
