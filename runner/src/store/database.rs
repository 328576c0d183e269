//! The database of a store: SQLite in a file, or PostgreSQL for several servers. Both run the same
//! statements.

mod connections;
mod group_sync;

pub(crate) use connections::FEWEST_CONNECTIONS;

use super::{StoreError, invalid_text};
use crate::migrations::{Engine, MigrationError, migrate, retry_locked};
use connections::{MOST_CONNECTIONS, ReadOnlyAt};
use group_sync::GroupSync;
use sqlx::any::{
    AnyArguments, AnyConnectOptions, AnyPoolOptions, AnyRow, AnyTypeInfo, AnyValueRef,
    install_default_drivers,
};
use sqlx::error::{BoxDynError, DatabaseError};
use sqlx::query::{Query, QueryAs};
use sqlx::{
    Any, AnyConnection, AnyPool, Arguments, ConnectOptions, Connection, Decode, Encode, Executor, FromRow,
    Transaction, Type,
};
use std::fmt::{Display, Write as _};
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::str::{FromStr, Utf8Error};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use uuid::Uuid;

/// The time to wait for a connection to an SQLite file while other programs write. Storing a result takes
/// milliseconds.
const BUSY: Duration = Duration::from_secs(60);

/// Readers don't wait for writers. Commits survive a loss of power with [`GroupSync`].
const PRAGMAS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 30000; \
    PRAGMA foreign_keys = ON; PRAGMA cache_size = -65536";

/// The migrations, which both engines understand: BLOB and SEQUENCE stand for types with different names.
const STEPS: [&str; 15] = [
    include_str!("migrations/0001_runs.sql"),
    include_str!("migrations/0002_server.sql"),
    include_str!("migrations/0003_log_faults.sql"),
    include_str!("migrations/0004_clock.sql"),
    include_str!("migrations/0005_deletions_and_alerts.sql"),
    include_str!("migrations/0006_attempts.sql"),
    include_str!("migrations/0007_result_faults.sql"),
    include_str!("migrations/0008_score_faults.sql"),
    include_str!("migrations/0009_score_hashes.sql"),
    include_str!("migrations/0010_predictions.sql"),
    include_str!("migrations/0011_endings.sql"),
    include_str!("migrations/0012_steady_means.sql"),
    include_str!("migrations/0013_judged_step_times.sql"),
    include_str!("migrations/0014_reasons.sql"),
    include_str!("migrations/0015_rounds.sql"),
];

/// A database whose tables are up to date.
#[derive(Debug, Clone)]
pub(super) struct Database {
    pub(super) engine: Engine,
    /// The name for messages: its file, or its address without the password.
    pub(super) name: String,
    /// With SQLite one connection, so that this program's writers queue here instead of at the file's lock.
    writer: AnyPool,
    pub(super) readers: AnyPool,
    options: Arc<AnyConnectOptions>,
    /// The permit to look for invalid text: to do it twice at a time would gain nothing.
    isolation: Arc<Semaphore>,
    read_only_at: ReadOnlyAt,
    /// Brings commits in an SQLite file to the disk.
    group_sync: Option<Arc<GroupSync>>,
}

impl Database {
    /// Opens an SQLite file, which only its owner can read; creates it if needed.
    ///
    /// # Errors
    /// The file is empty: it lost its content, since a new one appears with its first page.
    pub(super) async fn file(path: &Path) -> Result<Database, StoreError> {
        let name = path.display().to_string();
        let failed = |error| StoreError::Database { store: name.clone(), error: sqlx::Error::Io(error) };
        match fs::metadata(path) {
            Ok(found) if found.len() == 0 => return Err(StoreError::Emptied { store: name }),
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
            }
            Ok(_) => {}
            Err(_) => create(path, &name).await?,
        }
        let options = options(&sqlite_address(path), &name)?;
        let pool = |most| {
            AnyPoolOptions::new()
                .max_connections(most)
                .acquire_timeout(BUSY)
                // A file does not break a connection.
                .test_before_acquire(false)
                // When the disk is full, SQLite ends a transaction itself, which sqlx does not notice.
                .before_acquire(|connection, _| {
                    let is_sound = !connection.is_in_transaction();
                    Box::pin(async move { Ok(is_sound) })
                })
                .after_connect(|connection, _| {
                    Box::pin(async { connection.execute(PRAGMAS).await.map(|_| ()) })
                })
                .connect_lazy_with(options.clone())
        };
        let group_sync = Some(Arc::new(GroupSync::new(path).map_err(failed)?));
        let database =
            Database::new(Engine::Sqlite, name, [pool(1), pool(4)], options.clone(), ReadOnlyAt::default());
        let database = Database { group_sync, ..database }.up_to_date().await?;
        if let Err(error) = database.isolate_invalid_text().await {
            let error = database.failed(error);
            if !database.is_damage(&error) {
                return Err(error);
            }
            tracing::warn!("{error} `trainplan verify-store` says what to do.");
        }
        Ok(database)
    }

    /// Copies all readable runs, results and scores into a new SQLite file. Reads the tables without their indexes, whose pages may
    /// be damaged.
    pub(super) async fn copied_to(&self, path: &Path) -> Result<Database, StoreError> {
        let copy = Database::file(path).await?;
        let copied = async {
            let mut connection = copy.connect().await?;
            connection.execute("PRAGMA foreign_keys = OFF").await?;
            sqlx::query("ATTACH $1 AS damaged").bind(&self.name).execute(&mut connection).await?;
            for table in ["runs", "results", "scores"] {
                copy_rows(&mut connection, table).await?;
            }
            connection.close().await
        };
        copied.await.map_err(|error| copy.failed(error))?;
        Ok(copy)
    }

    /// Connects to PostgreSQL.
    pub(super) async fn server(url: &str) -> Result<Database, StoreError> {
        let name = without_password(url);
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(StoreError::Address {
                url: name,
                what: "It must look like postgres://USER@HOST/DATABASE".into(),
            });
        }
        let options = options(url, &name)?;
        let read_only_at = ReadOnlyAt::default();
        let pools = connections::pools(&options, MOST_CONNECTIONS, &read_only_at);
        Database::new(Engine::Postgres, name, pools, options, read_only_at).up_to_date().await
    }

    fn new(
        engine: Engine,
        name: String,
        [writer, readers]: [AnyPool; 2],
        options: AnyConnectOptions,
        read_only_at: ReadOnlyAt,
    ) -> Database {
        let (options, isolation) = (Arc::new(options), Arc::new(Semaphore::new(1)));
        Database { engine, name, writer, readers, options, isolation, read_only_at, group_sync: None }
    }

    async fn up_to_date(self) -> Result<Database, StoreError> {
        let migrated = retry_locked(self.engine, || async {
            self.reach().await?;
            migrate(&self.writer, self.engine, &STEPS).await
        });
        match migrated.await {
            Ok(()) => Ok(self),
            Err(MigrationError::Newer(version)) => {
                Err(StoreError::Newer { store: self.name, version, newest: STEPS.len() })
            }
            Err(MigrationError::Database(error)) => Err(self.failed(error)),
        }
    }

    /// Opens as many connections as any program needs at the same time. A pool would try for a long time and then not report
    /// why it failed.
    async fn reach(&self) -> sqlx::Result<()> {
        let needed = match self.engine {
            Engine::Sqlite => 1,
            Engine::Postgres => FEWEST_CONNECTIONS,
        };
        let mut open = Vec::new();
        for _ in 0..needed {
            open.push(self.connect().await?);
        }
        for connection in open {
            connection.close().await?;
        }
        Ok(())
    }

    /// Connects once.
    async fn connect(&self) -> sqlx::Result<AnyConnection> {
        let mut connection = AnyConnection::connect_with(&self.options).await?;
        if self.engine == Engine::Sqlite {
            connection.execute(PRAGMAS).await?;
        }
        Ok(connection)
    }

    /// Makes rows of SQLite readable whose text is not UTF-8 (see [`invalid_text`]), unless that is happening already.
    async fn isolate_invalid_text(&self) -> sqlx::Result<()> {
        let Ok(_permit) = self.isolation.try_acquire() else { return Ok(()) };
        let mut connection = self.connect().await?;
        let count = invalid_text::isolate(&mut connection).await?;
        if count > 0 {
            let (texts, are) = if count == 1 { ("text", "is") } else { ("texts", "are") };
            tracing::warn!(
                "{count} {texts} of the store {} {are} not UTF-8. `trainplan verify-store` lists the runs that this damages.",
                self.name
            );
        }
        connection.close().await
    }

    /// Begins a transaction that writes.
    pub(super) async fn write(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.writer.begin_with(self.engine.begin()).await.map_err(|error| self.failed(error))
    }

    /// Begins a transaction that writes, and excludes other such transactions with the same name until it
    /// ends.
    pub(super) async fn write_exclusive(&self, name: &str) -> Result<Transaction<'static, Any>, StoreError> {
        let mut writing = self.write().await?;
        // SQLite has only one writer at a time.
        if self.engine == Engine::Postgres {
            let lock = sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text").bind(name);
            lock.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        }
        Ok(writing)
    }

    /// Commits a transaction. It survives a loss of power once this returns.
    pub(super) async fn commit(&self, writing: Transaction<'static, Any>) -> Result<(), StoreError> {
        let committed = async {
            writing.commit().await?;
            match &self.group_sync {
                Some(group_sync) => group_sync.wait().await.map_err(sqlx::Error::Io),
                None => Ok(()),
            }
        };
        committed.await.map_err(|error| self.failed(error))
    }

    /// Commits a transaction without waiting for the disk. A loss of power may undo it, unless a later one that was committed
    /// with [`Database::commit`] survives; the end of this program does not.
    pub(super) async fn commit_without_sync(
        &self,
        mut writing: Transaction<'static, Any>,
    ) -> Result<(), StoreError> {
        let committed = async {
            if self.engine == Engine::Postgres {
                sqlx::query("SET LOCAL synchronous_commit = off").execute(&mut *writing).await?;
            }
            writing.commit().await
        };
        committed.await.map_err(|error| self.failed(error))
    }

    /// Returns the store's error for an error of the database.
    pub(super) fn failed(&self, error: sqlx::Error) -> StoreError {
        if matches!(&error, sqlx::Error::Decode(why) if why.is::<Utf8Error>()) {
            self.isolate_later();
        }
        let store = self.name.clone();
        let code = error.as_database_error().and_then(DatabaseError::code);
        match (&error, code.as_deref(), self.engine) {
            _ if self.engine.is_locked(&error) => StoreError::Locked { store },
            // SQLITE_FULL, and PostgreSQL's disk_full.
            (_, Some("13"), Engine::Sqlite) | (_, Some("53100"), Engine::Postgres) => {
                StoreError::Full { store }
            }
            // sequence_generator_limit_exceeded. Only changes are numbered.
            (_, Some("2200H"), Engine::Postgres) => StoreError::Exhausted { store },
            // read_only_sql_transaction.
            (_, Some("25006"), Engine::Postgres) => {
                *self.read_only_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                StoreError::ReadOnly { store }
            }
            // The server's limits on the time of a transaction, which end the connection.
            (_, Some("25P03" | "25P04"), Engine::Postgres) => StoreError::Gone { store, error },
            // too_many_connections.
            (_, Some("53300"), Engine::Postgres) => {
                StoreError::Refused { store, error, needed: FEWEST_CONNECTIONS }
            }
            // Class 57 is an operator's intervention, 53 a lack of resources, 08 a lost connection.
            (_, Some(code), Engine::Postgres)
                if ["57", "53", "08"].contains(&code.get(..2).unwrap_or_default()) =>
            {
                StoreError::Gone { store, error }
            }
            (sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::Tls(_), _, Engine::Postgres) => {
                StoreError::Gone { store, error }
            }
            _ => StoreError::Database { store, error },
        }
    }

    /// Returns whether an error means that pages of the SQLite file are damaged.
    pub(super) fn is_damage(&self, error: &StoreError) -> bool {
        let StoreError::Database { error, .. } = error else { return false };
        self.engine == Engine::Sqlite && is_corruption(error)
    }

    /// Looks for invalid text in the background, so that the next request finds none.
    fn isolate_later(&self) {
        let database = self.clone();
        tokio::spawn(async move {
            if let Err(error) = database.isolate_invalid_text().await {
                tracing::error!("the database can't be searched for invalid text: {error}");
            }
        });
    }
}

/// The most rows that are copied at once from a damaged SQLite file.
const COPIED: i64 = 1000;

/// Copies the rows of a table from the attached database `damaged`, and jumps over those that can't be read.
async fn copy_rows(connection: &mut AnyConnection, table: &str) -> sqlx::Result<()> {
    // A table's rows are ordered by their number, and so are their pages.
    let beyond = format!(
        "SELECT max(rowid) FROM (SELECT rowid FROM damaged.{table} NOT INDEXED WHERE rowid > $1 ORDER BY rowid LIMIT $2) AS next"
    );
    let insert = format!(
        "INSERT OR IGNORE INTO main.{table} SELECT * FROM damaged.{table} NOT INDEXED WHERE rowid > $1 AND rowid <= $2"
    );
    let (mut after, mut count) = (0, COPIED);
    loop {
        let last: sqlx::Result<Option<i64>> =
            sqlx::query_scalar(&beyond).bind(after).bind(count).fetch_one(&mut *connection).await;
        let copied = match last {
            Ok(None) => return Ok(()),
            Ok(Some(last)) => {
                let insert = sqlx::query(&insert).bind(after).bind(last).execute(&mut *connection).await;
                insert.map(|_| last)
            }
            Err(error) => Err(error),
        };
        match copied {
            Ok(last) => {
                after = last;
                count = COPIED.min(2 * count);
            }
            Err(error) if !is_corruption(&error) => return Err(error),
            Err(_) if count > 1 => count /= 2,
            Err(_) => match beyond_damage(connection, &beyond, after).await? {
                Some(next) => after = next,
                None => return Ok(()),
            },
        }
    }
}

/// Returns the smallest number from `after` on after which SQLite finds the next row. None if every further row is on a damaged
/// page.
async fn beyond_damage(
    connection: &mut AnyConnection,
    beyond: &str,
    after: i64,
) -> sqlx::Result<Option<i64>> {
    let mut can_go_on = async |number: i64| {
        let found: sqlx::Result<Option<i64>> =
            sqlx::query_scalar(beyond).bind(number).bind(1_i64).fetch_one(&mut *connection).await;
        match found {
            Ok(_) => Ok(true),
            Err(error) if is_corruption(&error) => Ok(false),
            Err(error) => Err(error),
        }
    };
    // The row itself may be damaged, in other pages.
    let (mut bad, mut jump) = (after, 1_i64);
    let mut good = loop {
        let Some(number) = after.checked_add(jump) else { return Ok(None) };
        if can_go_on(number).await? {
            break number;
        }
        bad = number;
        jump = jump.saturating_mul(2);
    };
    while good - bad > 1 {
        let middle = bad + (good - bad) / 2;
        if can_go_on(middle).await? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(Some(good))
}

/// Returns whether SQLite says that a page is damaged.
fn is_corruption(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    // SQLITE_CORRUPT. The upper bytes of an extended code give the reason.
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == 11)
}

/// A column's value, or none if it is not of this type: SQLite stores values of any type in every column, if another
/// program writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typed<T>(pub(super) Option<T>);

impl<T: Type<Any>> Type<Any> for Typed<T> {
    fn type_info() -> AnyTypeInfo {
        T::type_info()
    }

    fn compatible(_: &AnyTypeInfo) -> bool {
        true
    }
}

impl<'r, T: Decode<'r, Any>> Decode<'r, Any> for Typed<T> {
    fn decode(value: AnyValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Typed(T::decode(value).ok()))
    }
}

/// Warns that a row is left out, because one of its values has the wrong type.
pub(super) fn warn_left_out(table: &str, id: Option<&str>) {
    let id = id.unwrap_or("(invalid)");
    tracing::warn!(
        "the row with the id {id} of the table {table} is left out, because it has a value of the wrong type"
    );
}

/// A value of a column, which may be absent.
pub(super) trait ColumnValue {
    fn is_absent(&self) -> bool {
        false
    }
}

impl ColumnValue for String {}

impl ColumnValue for i64 {}

impl<T> ColumnValue for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// A statement that is assembled from parts. Values from outside are always bound, never part of the text.
#[derive(Default)]
pub(super) struct Statement<'a> {
    text: String,
    arguments: AnyArguments<'a>,
}

impl<'a> Statement<'a> {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Statement { text: text.into(), arguments: AnyArguments::default() }
    }

    /// Appends text of this program.
    pub(super) fn push(&mut self, text: impl Display) -> &mut Self {
        // Writing to a String never fails.
        let _ = write!(self.text, "{text}");
        self
    }

    /// Appends a value as a bound parameter: `$1` and so on, in both engines.
    pub(super) fn bind<T: Encode<'a, Any> + Type<Any> + 'a>(&mut self, value: T) -> &mut Self {
        // Texts and numbers can always be encoded. Otherwise, the database would report the missing
        // parameter.
        if self.arguments.add(value).is_ok() {
            let number = self.arguments.len();
            self.push(format_args!("${number}"));
        }
        self
    }

    /// Appends a value as the next item of a list in parentheses.
    pub(super) fn bind_item<T: Encode<'a, Any> + Type<Any> + 'a>(&mut self, value: T) -> &mut Self {
        self.separate().bind(value)
    }

    /// Appends a value of a column as the next item of a list in parentheses. An absent one becomes NULL in the text: sqlx 0.8
    /// declares another type for an absent number (`float4`) than for a present one (`float8`), and a connection keeps a
    /// statement with the types of its first parameters.
    pub(super) fn bind_column<T: ColumnValue + Encode<'a, Any> + Type<Any>>(
        &mut self,
        value: &'a T,
    ) -> &mut Self {
        match value.is_absent() {
            true => self.separate().push("NULL"),
            false => self.bind_item(value),
        }
    }

    /// Appends the comma between two items of a list in parentheses.
    fn separate(&mut self) -> &mut Self {
        if !self.text.ends_with('(') {
            self.push(", ");
        }
        self
    }

    /// Returns the statement.
    pub(super) fn query(&'a mut self) -> Query<'a, Any, AnyArguments<'a>> {
        sqlx::query_with(&self.text, std::mem::take(&mut self.arguments))
    }

    /// Returns the statement as a query for rows.
    pub(super) fn rows<T: for<'r> FromRow<'r, AnyRow>>(
        &'a mut self,
    ) -> QueryAs<'a, Any, T, AnyArguments<'a>> {
        sqlx::query_as_with(&self.text, std::mem::take(&mut self.arguments))
    }
}

/// Returns the address of an existing SQLite file.
fn sqlite_address(path: &Path) -> String {
    // Escapes characters with a meaning in addresses.
    let text = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("sqlite://{text}?mode=rw")
}

/// Creates an SQLite file with its first page, unless another program does so first.
async fn create(path: &Path, name: &str) -> Result<(), StoreError> {
    let failed = |error| StoreError::Database { store: name.to_owned(), error };
    let draft = path.with_extension(Uuid::now_v7().to_string());
    let made = async {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let options = options(&sqlite_address(&draft), name).map_err(|_| sqlx::Error::PoolClosed)?;
        let mut connection = AnyConnection::connect_with(&options).await?;
        // Any setting that the file stores makes its first page. This one names the program in bytes: "tpln".
        connection.execute("PRAGMA application_id = 1953524846").await?;
        connection.close().await?;
        match fs::hard_link(&draft, path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            // Some file systems have no hard links.
            Err(_) => Ok(fs::rename(&draft, path)?),
        }
    };
    let made = made.await;
    // It may not exist.
    let _ = fs::remove_file(&draft);
    made.map_err(failed)
}

fn options(url: &str, name: &str) -> Result<AnyConnectOptions, StoreError> {
    install_default_drivers();
    let options = AnyConnectOptions::from_str(url)
        .map_err(|error| StoreError::Address { url: name.to_owned(), what: error.to_string() })?;
    Ok(options.disable_statement_logging())
}

/// Returns an address in a form that may be shown.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "the database's address".into() };
    let (before, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match before.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => before.to_owned(),
    };
    // Parameters may contain a password too.
    format!("{scheme}://{host}{}", path.split('?').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn addresses_are_shown_without_passwords() {
        for (url, shown) in [
            ("postgres://ann:s3cret@db:5432/trainplan?sslmode=require", "postgres://ann@db:5432/trainplan"),
            ("postgres://db/trainplan?password=s3cret", "postgres://db/trainplan"),
            ("postgres://ann:a@b@db/x", "postgres://ann@db/x"),
            ("s3cret", "the database's address"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
