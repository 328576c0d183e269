//! Helpers of the behaviour tests: runs of the binary under test.

mod served;

pub use served::Served;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Returns the binary under test: TRAINPLAN_BIN, or the one that `cargo build` put beside these tests.
///
/// # Panics
/// The binary does not exist.
#[expect(clippy::expect_used, clippy::panic, reason = "without a binary no test can run")]
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("TRAINPLAN_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    let binary = test.ancestors().nth(2).map(|folder| folder.join("trainplan")).filter(|path| path.exists());
    binary.unwrap_or_else(|| panic!("no binary to test: run `cargo build`, or name one in TRAINPLAN_BIN"))
}

/// The outcome of a run of the binary.
#[derive(Debug)]
pub struct Run {
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

/// Runs the binary and waits for its end.
///
/// # Panics
/// It can't be started.
#[expect(clippy::expect_used, reason = "without a binary no test can run")]
pub fn trainplan<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    let output = Command::new(binary()).args(arguments).output().expect("the binary starts");
    run_of(&output)
}

/// Converts the output of a process to text.
pub fn run_of(output: &Output) -> Run {
    Run {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
