//! The place of a server's store.

use crate::services::{POSTGRES, S3, files, number};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;
use trainplan_tests::{Run, binary, run_of};

/// The kind of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SQLite and a folder, in the data directory.
    Local,
    /// PostgreSQL and a bucket.
    Shared,
}

/// Makes a test of a function for each kind of store.
macro_rules! on_every_store {
    ($($test:ident)*) => {
        mod sqlite_and_folder { $( #[test] fn $test() { super::$test(crate::harness::Kind::Local); } )* }
        mod postgres_and_bucket { $( #[test] fn $test() { super::$test(crate::harness::Kind::Shared); } )* }
    };
}
pub(crate) use on_every_store;

/// The place of a server's store, with ways to inspect it from outside.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    dir: Arc<TempDir>,
    pub(crate) database: Option<String>,
    pub(crate) bucket: Option<String>,
    pub(super) environment: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn new(kind: Kind) -> Place {
        let place = Place::local();
        match kind {
            Kind::Local => place,
            Kind::Shared => {
                place.with_database(POSTGRES.database()).with_bucket(S3.place(), S3.environment())
            }
        }
    }

    pub(crate) fn local() -> Place {
        Place {
            dir: Arc::new(tempfile::tempdir().unwrap()),
            database: None,
            bucket: None,
            environment: Vec::new(),
        }
    }

    /// Returns a place with another directory, but the same database and bucket.
    pub(crate) fn beside(&self) -> Place {
        Place { dir: Arc::new(tempfile::tempdir().unwrap()), ..self.clone() }
    }

    /// Returns the place in a folder of this one.
    pub(crate) fn in_folder(folder: &Path) -> Place {
        Place { dir: Arc::new(tempfile::tempdir_in(folder).unwrap()), ..Place::local() }
    }

    pub(crate) fn with_database(self, address: String) -> Place {
        let mut environment = self.environment;
        environment.push(("TRAINPLAN_DATABASE_URL".into(), address.clone()));
        Place { database: Some(address), environment, ..self }
    }

    pub(crate) fn with_bucket(self, bucket: String, credentials: Vec<(String, String)>) -> Place {
        let mut environment = self.environment;
        environment.push(("TRAINPLAN_STORE".into(), bucket.clone()));
        environment.extend(credentials);
        Place { bucket: Some(bucket), environment, ..self }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the address of its database.
    pub(crate) fn address(&self) -> String {
        let file = || format!("sqlite://{}", self.dir().join("store.sqlite").display());
        self.database.clone().unwrap_or_else(file)
    }

    /// Returns the number that an SQL query yields in its database.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        number(&self.address(), sql).unwrap()
    }

    /// Returns the names of all files of raw logs and pieces, on disk or in the bucket.
    pub(crate) fn blobs(&self) -> Vec<String> {
        let name = |path: PathBuf| path.strip_prefix(self.blob_folder()).unwrap().display().to_string();
        // The S3 server stores metadata beside the objects.
        files(&self.blob_folder()).into_iter().map(name).filter(|name| !name.contains(".s3s")).collect()
    }

    /// Returns the folder of those files.
    pub(crate) fn blob_folder(&self) -> PathBuf {
        self.bucket.as_ref().map_or_else(|| self.dir().join("blobs"), |bucket| S3.folder(bucket))
    }

    /// Runs another command of the program on this store.
    pub(crate) fn trainplan(&self, arguments: &[&str]) -> Run {
        run_of(&self.command(arguments).output().unwrap())
    }

    /// Returns another command of the program on this store, which is not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).arg("--data-dir").arg(self.dir()).envs(self.environment.iter().cloned());
        command
    }

    /// Creates a token with the command line.
    pub(crate) fn token(&self, scope: &str, more: &[&str]) -> String {
        let create = ["token", "create", "--name", scope, "--scope", scope, "--format", "table"];
        let made = self.trainplan(&[&create[..], more].concat());
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        made.stdout.trim().to_owned()
    }
}
