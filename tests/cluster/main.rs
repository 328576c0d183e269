//! A real cluster on loopback, sshd and Slurm, and what is tested against it.
//!
//! It needs root, OpenSSH and Slurm, so it runs only when asked for: `cargo test --package trainplan-tests --test
//! cluster -- --ignored`.

#![allow(missing_docs, reason = "a test's name says what it shows")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod by_hand;
mod campaign;
mod cluster;
mod doctor;
mod faults;
mod harness;
mod laptop;
mod link;
mod scale;
mod site;
mod upload;
mod workloads;

use cluster::{Cluster, Daemon, Options};
use site::Site;
