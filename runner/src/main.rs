//! The `trainplan` program: plans LLM pre-training and carries the plan out.

mod cli;
mod conduct;
mod data;
mod doctor;
mod fetch;
mod journal;
mod serve;
mod slurm;
mod ssh;
mod store;
mod upload;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Whoever opens a TLS connection uses this one; nobody else has chosen one before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::run()
}
