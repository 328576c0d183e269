//! The database of a store: SQLite in a file, or PostgreSQL for several servers. Both are asked in the same words.

use super::StoreError;
use super::migrations::{MigrationError, NEWEST, migrate};
use sqlx::any::{AnyArguments, AnyConnectOptions, AnyPoolOptions, AnyRow, install_default_drivers};
use sqlx::error::DatabaseError;
use sqlx::query::{Query, QueryAs};
use sqlx::{
    Any, AnyConnection, AnyPool, Arguments, ConnectOptions, Connection, Encode, Executor, FromRow,
    Transaction, Type,
};
use std::fmt::{Display, Write as _};
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How long to wait while another program writes into an SQLite file. Entering a result takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait for PostgreSQL: whoever asked is better told at once, and asks again.
const ANSWER: Duration = Duration::from_secs(5);

/// A result that was entered outlives a power cut too, and readers do not wait for writers.
const PRAGMAS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 30000; \
    PRAGMA foreign_keys = ON; PRAGMA cache_size = -65536";

/// Which database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// Starts a transaction that writes. SQLite's takes the file at once: one that asks first and writes then could find
    /// it locked between the two.
    pub(super) fn begin(self) -> &'static str {
        match self {
            Kind::Sqlite => "BEGIN IMMEDIATE",
            Kind::Postgres => "BEGIN",
        }
    }

    /// A migration in this database's own words.
    pub(super) fn speak(self, sql: &str) -> String {
        let (blob, sequence) = match self {
            Kind::Sqlite => ("BLOB", "INTEGER PRIMARY KEY AUTOINCREMENT"),
            Kind::Postgres => ("BYTEA", "BIGSERIAL PRIMARY KEY"),
        };
        sql.replace(" BLOB ", &format!(" {blob} ")).replace(" SEQUENCE,", &format!(" {sequence},"))
    }
}

/// A database that is up to date.
#[derive(Debug, Clone)]
pub(super) struct Database {
    pub(super) kind: Kind,
    /// What to call it: its file, or its address without the password.
    pub(super) name: String,
    /// With SQLite one connection, so that this program's writers queue here and not at the file's lock.
    writer: AnyPool,
    pub(super) readers: AnyPool,
}

impl Database {
    /// Opens an SQLite file; makes it if there is none.
    pub(super) async fn file(path: &Path) -> Result<Database, StoreError> {
        // What has a meaning in an address loses it.
        let text = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let name = path.display().to_string();
        let options = options(&format!("sqlite://{text}?mode=rwc"), &name)?;
        let pool = |most| {
            AnyPoolOptions::new()
                .max_connections(most)
                .acquire_timeout(2 * PATIENCE)
                // SQLite ends a transaction itself where the disk is full, and the connection does not know.
                .before_acquire(|connection, _| {
                    let is_sound = !connection.is_in_transaction();
                    Box::pin(async move { Ok(is_sound) })
                })
                .after_connect(|connection, _| {
                    Box::pin(async { connection.execute(PRAGMAS).await.map(|_| ()) })
                })
                .connect_lazy_with(options.clone())
        };
        let database = Database { kind: Kind::Sqlite, name, writer: pool(1), readers: pool(4) };
        database.up_to_date(&options).await
    }

    /// Connects to PostgreSQL.
    pub(super) async fn server(url: &str) -> Result<Database, StoreError> {
        let name = without_password(url);
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(StoreError::Address { url: name, what: "give postgres://USER@HOST/DATABASE".into() });
        }
        let options = options(url, &name)?;
        let pool = AnyPoolOptions::new().max_connections(16).acquire_timeout(ANSWER);
        let pool = pool.connect_lazy_with(options.clone());
        let database = Database { kind: Kind::Postgres, name, writer: pool.clone(), readers: pool };
        database.up_to_date(&options).await
    }

    /// Brings the tables up to date. Where several programs open a new file at once, SQLite may call it locked at once
    /// instead of waiting: changing the journal's mode is not what it waits for.
    async fn up_to_date(self, options: &AnyConnectOptions) -> Result<Database, StoreError> {
        let begun = Instant::now();
        loop {
            let migrated = match self.can_connect(options).await {
                Ok(()) => migrate(&self.writer, self.kind).await,
                Err(error) => Err(MigrationError::Database(error)),
            };
            let error = match migrated {
                Ok(()) => return Ok(self),
                Err(MigrationError::Newer(version)) => {
                    return Err(StoreError::Newer { store: self.name, version, newest: NEWEST });
                }
                Err(MigrationError::Database(error)) => self.failed(error),
            };
            if !matches!(error, StoreError::Locked { .. }) || begun.elapsed() > PATIENCE {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A pool tries for long, and then does not say why it failed.
    async fn can_connect(&self, options: &AnyConnectOptions) -> sqlx::Result<()> {
        let mut connection = AnyConnection::connect_with(options).await?;
        if self.kind == Kind::Sqlite {
            connection.execute(PRAGMAS).await?;
        }
        connection.close().await
    }

    /// Starts to write; what is not committed was never written.
    pub(super) async fn write(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.writer.begin_with(self.kind.begin()).await.map_err(|error| self.failed(error))
    }

    /// Starts to write about a thing, by its name, that other writers leave alone until this is written.
    pub(super) async fn write_of(&self, name: &str) -> Result<Transaction<'static, Any>, StoreError> {
        let mut writing = self.write().await?;
        // SQLite has one writer in all.
        if self.kind == Kind::Postgres {
            let lock = sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text").bind(name);
            lock.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        }
        Ok(writing)
    }

    /// What the database's error means.
    pub(super) fn failed(&self, error: sqlx::Error) -> StoreError {
        let store = self.name.clone();
        let code = error.as_database_error().and_then(DatabaseError::code);
        match (&error, code.as_deref(), self.kind) {
            // SQLITE_BUSY, and its extended codes for a recovery and for a snapshot.
            (_, Some("5" | "261" | "517"), Kind::Sqlite) => StoreError::Locked { store },
            // SQLITE_FULL: there may be room later.
            (_, Some("13"), Kind::Sqlite) => StoreError::Gone { store, error },
            // Class 57 is an operator's doing, 53 too many connections or a full disk, 08 a lost connection.
            (_, Some(code), Kind::Postgres)
                if ["57", "53", "08"].contains(&code.get(..2).unwrap_or_default()) =>
            {
                StoreError::Gone { store, error }
            }
            (sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::Tls(_), _, Kind::Postgres) => {
                StoreError::Gone { store, error }
            }
            _ => StoreError::Database { store, error },
        }
    }
}

/// A statement that is put together. Whatever comes from outside is bound, never written into it.
#[derive(Default)]
pub(super) struct Statement<'a> {
    text: String,
    arguments: AnyArguments<'a>,
}

impl<'a> Statement<'a> {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Statement { text: text.into(), arguments: AnyArguments::default() }
    }

    /// Writes what this program says itself.
    pub(super) fn push(&mut self, text: impl Display) -> &mut Self {
        // Writing to a text does not fail.
        let _ = write!(self.text, "{text}");
        self
    }

    /// Binds a value at this place: `$1` and so on, as both databases have it.
    pub(super) fn bind<T: Encode<'a, Any> + Type<Any> + 'a>(&mut self, value: T) -> &mut Self {
        // Texts and numbers can always be encoded; if one could not, the database would miss it and say so.
        if self.arguments.add(value).is_ok() {
            let number = self.arguments.len();
            self.push(format_args!("${number}"));
        }
        self
    }

    /// Binds a value as the next item of a list in parentheses.
    pub(super) fn bind_item<T: Encode<'a, Any> + Type<Any> + 'a>(&mut self, value: T) -> &mut Self {
        if !self.text.ends_with('(') {
            self.push(", ");
        }
        self.bind(value)
    }

    /// The connection does not keep it: what it keeps has the types of the first time, and sqlx 0.8 tells PostgreSQL another
    /// type for a number that is missing (`float4`) than for one that is there (`float8`).
    pub(super) fn query(&'a mut self) -> Query<'a, Any, AnyArguments<'a>> {
        sqlx::query_with(&self.text, std::mem::take(&mut self.arguments)).persistent(false)
    }

    pub(super) fn rows<T: for<'r> FromRow<'r, AnyRow>>(
        &'a mut self,
    ) -> QueryAs<'a, Any, T, AnyArguments<'a>> {
        sqlx::query_as_with(&self.text, std::mem::take(&mut self.arguments))
    }
}

fn options(url: &str, name: &str) -> Result<AnyConnectOptions, StoreError> {
    install_default_drivers();
    let options = AnyConnectOptions::from_str(url)
        .map_err(|error| StoreError::Address { url: name.to_owned(), what: error.to_string() })?;
    Ok(options.disable_statement_logging())
}

/// An address that may be shown.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "the database's address".into() };
    let (before, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match before.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => before.to_owned(),
    };
    // Parameters may hold a password too.
    format!("{scheme}://{host}{}", path.split('?').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn an_address_is_shown_without_its_password() {
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
