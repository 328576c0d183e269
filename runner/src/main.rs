//! The `trainplan` program: plans LLM pre-training and carries the plan out.

mod cli;
#[expect(dead_code, reason = "its first users are on their way")]
mod data;
mod serve;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
