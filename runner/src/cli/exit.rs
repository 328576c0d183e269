//! The exit codes of the program: every command uses these, and each has one meaning.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Success,
    Failed,
    Invalid,
    NoPlan,
    NotScored,
    Unreachable,
    Regression,
}

impl Exit {
    const ALL: [Exit; 7] = [
        Exit::Success,
        Exit::Failed,
        Exit::Invalid,
        Exit::NoPlan,
        Exit::NotScored,
        Exit::Unreachable,
        Exit::Regression,
    ];

    /// Returns the number that the shell sees. Scripts rely on it: never change one.
    pub(super) fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::Invalid => 2,
            Exit::NoPlan => 3,
            Exit::NotScored => 4,
            Exit::Unreachable => 5,
            Exit::Regression => 6,
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Exit::Success => "Success",
            Exit::Failed => "The command failed, or stopped before it was done",
            Exit::Invalid => "Invalid arguments or input",
            Exit::NoPlan => "No plan fits, or none reaches the goal",
            Exit::NotScored => "A run failed, or could not be scored",
            Exit::Unreachable => "The cluster or the server can't be reached",
            Exit::Regression => "A run became slower, or is slower than its reference",
        }
    }

    /// Returns the section of `--help` that lists every code.
    pub(super) fn help() -> String {
        Exit::ALL.iter().fold("Exit codes:".to_string(), |text, exit| {
            format!("{text}\n  {}  {}", exit.code(), exit.meaning())
        })
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_line_in_the_help_and_in_the_docs() {
        let docs = include_str!("../../../docs/running.md");
        for (code, exit) in Exit::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(exit.code()), code);
            assert!(Exit::help().contains(&format!("\n  {code}  {}", exit.meaning())));
            assert!(docs.contains(&format!("| {code} | {}", exit.meaning())), "{code} in docs/running.md");
        }
    }
}
