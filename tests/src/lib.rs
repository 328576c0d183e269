//! What the behaviour tests share: the binary under test.

mod served;

pub use served::Served;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The binary under test: TRAINPLAN_BIN, or the one that `cargo build` left beside these tests.
///
/// # Panics
/// There is none.
#[expect(clippy::expect_used, clippy::panic, reason = "without a binary no test can run")]
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("TRAINPLAN_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    let binary = test.ancestors().nth(2).map(|folder| folder.join("trainplan")).filter(|path| path.exists());
    binary.unwrap_or_else(|| panic!("no binary to test: run `cargo build`, or name one in TRAINPLAN_BIN"))
}

/// What a run of the binary gave.
#[derive(Debug)]
pub struct Run {
    /// Its exit code.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs the binary to its end.
///
/// # Panics
/// It can't be started.
#[expect(clippy::expect_used, reason = "without a binary no test can run")]
pub fn trainplan<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    let output = Command::new(binary()).args(arguments).output().expect("the binary starts");
    run_of(&output)
}

/// A finished process as text.
pub fn run_of(output: &Output) -> Run {
    Run {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
