//! The command line: one file per command, results to stdout, everything else to stderr.

mod calibrate;
mod catalog;
mod certify;
mod check;
mod compare;
mod connect;
mod data_dir;
mod doctor;
mod ended_run;
mod estimate;
mod exit;
mod export;
mod failure;
mod fields;
mod flops;
mod follow;
mod import;
mod jobs;
mod judged_run;
mod launch;
mod licenses;
mod metrics;
mod model_file;
mod output;
mod parse;
mod probe;
mod probe_file;
mod profiles;
mod recipes;
mod reparse;
mod results;
mod run;
mod scenario;
mod search;
mod serve;
mod shell;
mod stack_file;
mod stacks;
mod stored;
mod summary;
mod terminal;
mod token;
mod upload;
mod validate;
mod verify_store;
mod watch;
mod webhook;

use clap::{Parser, Subcommand};
use exit::Exit;
use failure::Failure;
use output::printable;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;
use std::sync::Mutex;

const EXAMPLES: &str = "\
Examples:
  trainplan search --model llama3.1-70b --gpu h100,b200 --tokens 10T --deadline 60d
  trainplan recipes --model llama3.1-405b
  trainplan estimate --recipe llama3.1-405b/h100/fp8/512 --tp 4 --pp 16
  trainplan launch --recipe llama3.1-405b/h100/fp8/512
  trainplan run nightly.campaign.toml
  trainplan certify --cluster alpha --gpus 64
  trainplan jobs list
  trainplan parse experiments/ --save results/
  trainplan compare before.log after.log
  trainplan serve
  trainplan upload experiments/ --to https://results.example

`trainplan COMMAND --help` shows the options and more examples of a command.
docs/running.md describes campaigns, docs/serving.md the results server.
";

/// Plan LLM pre-training runs, launch them on a cluster and compare the results
///
/// Searches GPU types, GPU counts and layouts for the best plan. You can start from a published recipe or
/// from your own model. Estimates step time, memory and days to train, writes the launch scripts, runs
/// campaigns on Slurm clusters over ssh, scores the logs and compares runs with their plan and with each
/// other.
#[derive(Debug, Parser)]
#[command(
    name = "trainplan",
    version,
    arg_required_else_help = true,
    // Wrapper scripts append flags to override their own.
    args_override_self = true,
    after_help = format!("{EXAMPLES}\n{}", Exit::help())
)]
struct Cli {
    /// Log actions to stderr (-vv also logs every remote command)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Recipes(recipes::Args),
    Models(catalog::ModelsArgs),
    Gpus(catalog::GpusArgs),
    Stacks(stacks::Args),
    Flops(flops::Args),
    Metrics(metrics::Args),
    Search(search::Args),
    Estimate(estimate::Args),
    Launch(launch::Args),
    Run(run::Args),
    Certify(certify::Args),
    Jobs(jobs::Args),
    Connect(connect::Args),
    Doctor(doctor::Args),
    Probe(probe::Args),
    Parse(parse::Args),
    Compare(compare::Args),
    Import(import::Args),
    Results(results::Args),
    Export(export::Args),
    Reparse(reparse::Args),
    VerifyStore(verify_store::Args),
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

/// Parses the arguments and runs the command. An error is printed to stderr.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse_from(with_negative_values(std::env::args_os()));
    start_logging(cli.verbose);
    let exit = match execute(cli.command) {
        Ok(()) => Exit::Success,
        Err(failure) => {
            let exit = failure.exit();
            if exit != Exit::Success {
                // If stderr is closed as well, the message has nowhere to go.
                let _ = writeln!(io::stderr(), "error: {}", safe(&failure.to_string()));
            }
            exit
        }
    };
    exit.into()
}

/// Returns the arguments with every negative number joined to the flag before it, as in `--price=-2`. Otherwise clap would take
/// `-2`, `-5d` or `-1T` for a flag, and its error would not list the allowed values.
fn with_negative_values(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_negative = |argument: &OsString| {
        let number = argument.to_str().and_then(|text| text.strip_prefix('-'));
        number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
    };
    let takes_value = |argument: &OsString| {
        argument.to_str().is_some_and(|text| text.len() > 2 && text.starts_with("--") && !text.contains('='))
    };
    let mut joined: Vec<OsString> = Vec::new();
    let mut are_values = false;
    for argument in arguments {
        // After "--", everything is a value.
        are_values |= argument.to_str() == Some("--");
        match joined.last_mut().filter(|flag| !are_values && is_negative(&argument) && takes_value(flag)) {
            Some(flag) => {
                flag.push("=");
                flag.push(argument);
            }
            None => joined.push(argument),
        }
    }
    joined
}

/// Logs to stderr: warnings, and more with `-v`. RUST_LOG overrides the level.
fn start_logging(verbose: u8) {
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
        Command::Models(args) => args.run(),
        Command::Gpus(args) => args.run(),
        Command::Stacks(args) => args.run(),
        Command::Flops(args) => args.run(),
        Command::Metrics(args) => args.run(),
        Command::Search(args) => args.run(),
        Command::Estimate(args) => args.run(),
        Command::Launch(args) => args.run(),
        Command::Run(args) => args.run(),
        Command::Certify(args) => args.run(),
        Command::Jobs(args) => args.run(),
        Command::Connect(args) => args.run(),
        Command::Doctor(args) => args.run(),
        Command::Probe(args) => args.run(),
        Command::Parse(args) => args.run(),
        Command::Compare(args) => args.run(),
        Command::Import(args) => args.run(),
        Command::Results(args) => args.run(),
        Command::Export(args) => args.run(),
        Command::Reparse(args) => args.run(),
        Command::VerifyStore(args) => args.run(),
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

/// Reads HOST:PORT. A host name stands for its first address.
fn address(text: &str) -> Result<SocketAddr, String> {
    let wanted = "use HOST:PORT, such as 127.0.0.1:9000 or localhost:9000";
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {wanted}"))?;
    found.next().ok_or_else(|| format!("the host has no address; {wanted}"))
}

/// Prints a note to stderr, beside the result.
fn note(text: &str) {
    let _ = writeln!(io::stderr(), "note: {}", safe(text));
}

/// Prints a note, unless this process has printed it: every run of a campaign reads the same files.
fn note_once(text: &str) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if PRINTED.lock().is_ok_and(|mut printed| printed.insert(text.to_string())) {
        note(text);
    }
}

/// Returns a text that may repeat what a user or a file said, so that it does nothing to the terminal.
fn safe(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn negative_numbers_are_values_of_the_flag_before_them() {
        for (typed, joined) in [
            ("search --price -2 --deadline -5d", "search --price=-2 --deadline=-5d"),
            ("search --tokens -1T --lock tp=1", "search --tokens=-1T --lock tp=1"),
            ("search --failure-rate -.5", "search --failure-rate=-.5"),
            // A flag, or a value that already has its place.
            ("search --price --budget 5M", "search --price --budget 5M"),
            ("search --price=1 -2", "search --price=1 -2"),
            ("search -v -2", "search -v -2"),
            ("parse -- --price -2", "parse -- --price -2"),
            ("parse -- -2", "parse -- -2"),
        ] {
            let words = typed.split(' ').map(OsString::from);
            let expected: Vec<OsString> = joined.split(' ').map(OsString::from).collect();
            assert_eq!(with_negative_values(words), expected);
        }
    }
}
