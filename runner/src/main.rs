//! The `trainplan` program: plans LLM pre-training runs, launches them and compares the results.

mod cli;
mod conduct;
mod data;
mod doctor;
mod fetch;
mod history;
mod interruptions;
mod journal;
mod log_file;
mod migrations;
mod secrets;
mod serve;
mod slurm;
mod ssh;
mod store;
mod tls;
mod upload;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
