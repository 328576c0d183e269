//! The command line: one file per command, data to stdout, everything else to stderr.

mod calibrate;
mod check;
mod compare;
mod connect;
mod data_dir;
mod doctor;
mod estimate;
mod export;
mod flops;
mod import;
mod jobs;
mod launch;
mod licenses;
mod metrics;
mod model_file;
mod output;
mod parse;
mod profiles;
mod recipes;
mod reparse;
mod results;
mod run;
mod scenario;
mod serve;
mod shell;
mod side_by_side;
mod stored;
mod summary;
mod token;
mod upload;
mod validate;
mod watch;

use crate::ssh::{KeptError, LinkError};
use clap::{Parser, Subcommand};
use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use trainplan_shared::problem::Problem;

/// Plans LLM pre-training runs.
///
/// Starts from published recipes: which layout on which GPUs, what was measured there, what that means in tokens per
/// second, MFU and days to train, and the commands that launch it.
#[derive(Debug, Parser)]
#[command(
    name = "trainplan",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  trainplan recipes --model llama3.1-405b
  trainplan metrics --recipe llama3.1-405b/h100/fp8/512 --tokens 15T
  trainplan estimate --recipe llama3.1-405b/h100/fp8/512 --tp 4 --pp 16
  trainplan launch --recipe llama3.1-405b/h100/fp8/512
  trainplan parse experiments/ --save results/
  trainplan compare before.log after.log
  trainplan import results/
  trainplan results list
  trainplan check
  trainplan run nightly.campaign.toml
  trainplan jobs list
  trainplan serve
  trainplan upload experiments/ --to https://results.example

Exit codes: 0 done; 1 failed; 2 wrong use or invalid input; 3 the plan does not fit; 4 a run failed,\nor nothing could be scored; 5 the cluster or the server can't be reached; 6 a regression was found."
)]
struct Cli {
    /// Say more of what is done on standard error; twice for every remote command
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, for as long as the program runs")]
enum Command {
    Recipes(recipes::Args),
    Flops(flops::Args),
    Metrics(metrics::Args),
    Estimate(estimate::Args),
    Launch(launch::Args),
    Run(run::Args),
    Jobs(jobs::Args),
    Connect(connect::Args),
    Doctor(doctor::Args),
    Parse(parse::Args),
    Compare(compare::Args),
    Import(import::Args),
    Results(results::Args),
    Export(export::Args),
    Reparse(reparse::Args),
    Check(check::Args),
    Validate(validate::Args),
    Calibrate(calibrate::Args),
    Serve(serve::Args),
    Token(token::Args),
    Upload(upload::Args),
    Licenses(licenses::Args),
    Completions(shell::Completions),
    Man(shell::Man),
}

/// Why a command ends without its result; each has its exit code.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// What was given can't be: exit code 2.
    #[error("{}", list(.0))]
    Invalid(Vec<Problem>),
    /// The server did not start or failed: exit code 1.
    #[error(transparent)]
    Serve(#[from] crate::serve::ServeError),
    /// stdout can't be written: exit code 1, and silence if its reader has left.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
    /// A result that can't be written in the format: exit code 1.
    #[error("cannot write the result: {0}")]
    Format(String),
    /// A file that can't be read or written: exit code 1.
    #[error("{}: {error}", path.display())]
    File {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file that does not hold what it should: exit code 2.
    #[error("{}: {what}", path.display())]
    Contents {
        /// Where.
        path: PathBuf,
        /// What is wrong, and what is wanted.
        what: String,
    },
    /// Several files that do not hold what they should: exit code 2.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n       "))]
    Several(Vec<Failure>),
    /// What can't be done as it is asked: exit code 2.
    #[error("{0}")]
    Refused(&'static str),
    /// There is no place for the store: exit code 1.
    #[error(transparent)]
    DataDir(#[from] crate::data::DataDirError),
    /// The store failed: exit code 1.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// Some results did not get into the store: exit code 1. The rows say why.
    #[error("{0} of {1} results could not be stored: each row says why")]
    NotStored(usize, usize),
    /// Some results are not on the server: exit code 1. The rows say why.
    #[error("{0} of {1} results are not on the server: each row says why")]
    NotUploaded(usize, usize),
    /// A result that can't be kept: exit code 1.
    #[error(transparent)]
    Save(#[from] parse::SaveError),
    /// The plan can't work: exit code 3. The result says by how much.
    #[error("this does not fit into the GPUs' memory")]
    DoesNotFit,
    /// No log gave a number: exit code 4. The rows say why.
    #[error("nothing could be scored: each row says why")]
    NothingScored,
    /// No run could be judged: exit code 4. The rows say why, if there are any.
    #[error("{0}")]
    NothingJudged(&'static str),
    /// Runs became slower: exit code 6. The rows say by how much.
    #[error("{0} of {1} time lines became slower: each row says by how much")]
    Regression(usize, usize),
    /// A threshold can't be: exit code 2.
    #[error("--{0}")]
    Threshold(#[from] trainplan_shared::history::ThresholdError),
    /// There is no such run: exit code 2.
    #[error("{0}")]
    NoRun(String),
    /// A campaign was changed while a round of it is not over: exit code 2.
    #[error(
        "{campaign} was changed since the round that was begun at {since}, which is not over: `trainplan jobs follow \
         {campaign}` goes on with that as it was, and --new begins another beside it"
    )]
    Changed {
        /// The campaign.
        campaign: String,
        /// When the round was begun.
        since: String,
    },
    /// A campaign was left by order: exit code 1, since not every run is over.
    #[error(
        "left with {open} of {all} runs not over; jobs go on, and `trainplan run` or `trainplan jobs follow {campaign}` goes on \
         with them"
    )]
    Left {
        /// Runs that are not over.
        open: usize,
        /// All runs.
        all: usize,
        /// The campaign.
        campaign: String,
    },
    /// The campaign is over, and a run of it has no score: exit code 4.
    #[error("not every run was scored: the table says why")]
    RunFailed,
    /// A cluster on which runs would fail: exit code 1. The findings say why.
    #[error("{0} found: see what to do")]
    Unfit(String),
    /// A cluster that does not answer: exit code 5.
    #[error(transparent)]
    Unreachable(#[from] LinkError),
    /// A cluster that did not answer for too long: exit code 5.
    #[error("{0}")]
    OutOfReach(String),
    /// A connection that a person was to make: exit code 5.
    #[error(transparent)]
    Unconnected(#[from] KeptError),
    /// The journal: exit code 1.
    #[error(transparent)]
    Journal(#[from] crate::journal::JournalError),
    /// Carrying out stopped: exit code 1.
    #[error(transparent)]
    Conduct(crate::conduct::ConductError),
    /// Fetching stopped: exit code 1.
    #[error(transparent)]
    Fetch(#[from] crate::fetch::FetchError),
    /// A secret can't be found: exit code 2.
    #[error(transparent)]
    Secret(#[from] crate::conduct::SecretError),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::Invalid(vec![problem])
    }
}

impl From<Vec<Problem>> for Failure {
    fn from(problems: Vec<Problem>) -> Failure {
        Failure::Invalid(problems)
    }
}

/// Parses the arguments, carries the command out, and says what went wrong.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    speak(cli.verbose);
    let failure = match execute(cli.command) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    match failure {
        Failure::Store(crate::store::StoreError::Gone { .. }) => complain(&failure, 5),
        // `trainplan recipes | head` has what it wanted.
        Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Failure::Invalid(_)
        | Failure::Contents { .. }
        | Failure::Several(_)
        | Failure::Refused(_)
        | Failure::NoRun(_)
        | Failure::Threshold(_)
        | Failure::Changed { .. }
        | Failure::DataDir(crate::data::DataDirError::Missing(_))
        | Failure::Secret(_) => complain(&failure, 2),
        Failure::Serve(_)
        | Failure::DataDir(_)
        | Failure::Store(_)
        | Failure::NotStored(..)
        | Failure::NotUploaded(..)
        | Failure::File { .. }
        | Failure::Output(_)
        | Failure::Format(_)
        | Failure::Save(_)
        | Failure::Unfit(_)
        | Failure::Left { .. }
        | Failure::Journal(_)
        | Failure::Conduct(_)
        | Failure::Fetch(_) => complain(&failure, 1),
        Failure::DoesNotFit => complain(&failure, 3),
        Failure::NothingScored | Failure::NothingJudged(_) | Failure::RunFailed => complain(&failure, 4),
        Failure::Regression(..) => complain(&failure, 6),
        Failure::Unreachable(_) | Failure::OutOfReach(_) | Failure::Unconnected(_) => complain(&failure, 5),
    }
}

/// Lets the program speak of what it does; RUST_LOG says more exactly of what.
fn speak(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(format!("trainplan={level}")));
    let colours = io::IsTerminal::is_terminal(&io::stderr()) && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colours).init();
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Recipes(args) => args.run(),
        Command::Flops(args) => args.run(),
        Command::Metrics(args) => args.run(),
        Command::Estimate(args) => args.run(),
        Command::Launch(args) => args.run(),
        Command::Run(args) => args.run(),
        Command::Jobs(args) => args.run(),
        Command::Connect(args) => args.run(),
        Command::Doctor(args) => args.run(),
        Command::Parse(args) => args.run(),
        Command::Compare(args) => args.run(),
        Command::Import(args) => args.run(),
        Command::Results(args) => args.run(),
        Command::Export(args) => args.run(),
        Command::Reparse(args) => args.run(),
        Command::Check(args) => args.run(),
        Command::Validate(args) => args.run(),
        Command::Calibrate(args) => args.run(),
        Command::Serve(args) => args.run(),
        Command::Token(args) => args.run(),
        Command::Upload(args) => args.run(),
        Command::Licenses(args) => args.run(),
        Command::Completions(args) => args.run(),
        Command::Man(args) => args.run(),
    }
}

/// Reads an address with a port; a host's name means its first address.
fn address(text: &str) -> Result<SocketAddr, String> {
    let wanted = "give HOST:PORT, such as 127.0.0.1:9000 or localhost:9000";
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {wanted}"))?;
    found.next().ok_or_else(|| format!("the host has no address; {wanted}"))
}

fn complain(failure: &Failure, code: u8) -> ExitCode {
    // If stderr is gone as well there is nobody left to tell.
    let _ = writeln!(io::stderr(), "error: {failure}");
    ExitCode::from(code)
}

/// Tells the user something that is no part of the result.
fn note(text: &str) {
    let _ = writeln!(io::stderr(), "note: {text}");
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n       ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
