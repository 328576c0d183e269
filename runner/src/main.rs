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
mod probe;
mod secrets;
mod serve;
mod side_by_side;
mod slurm;
mod ssh;
mod store;
mod suspect_nodes;
mod tls;
mod upload;

use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;

/// Returns freed memory to the system. glibc keeps it for each of its arenas: three bursts of 20 uploads of 45 MB, which may
/// use 256 MiB at a time, took the server to 640 MB. With jemalloc it stays at 315 MB, and at 60 MB between the bursts.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    cli::run()
}
