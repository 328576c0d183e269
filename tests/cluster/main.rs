//! Tests with a real sshd and Slurm on loopback.
//!
//! They need root, OpenSSH and Slurm, so they are ignored by default. Run them with `cargo test --package
//! trainplan-tests --test cluster -- --ignored`.

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
mod probe;
mod scale;
mod site;
mod upload;
mod workloads;

use cluster::{Cluster, Daemon, Options};
use site::Site;
