//! The `trainplan` program: plans LLM pre-training and carries the plan out.

mod cli;
mod data;
mod serve;
mod store;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
