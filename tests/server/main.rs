//! The results server through its own front: HTTP against a running `trainplan serve`, on SQLite and a
//! folder, and on a real PostgreSQL and a real S3 server that the tests start themselves.
//!
//! `cargo test --package trainplan-tests --test server`; what takes longer: `make load`.

#![allow(missing_docs, reason = "a test's name says what it shows")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "figures, and what a server said when a test failed"
)]

mod access;
mod alerts;
mod bounds;
mod connections;
mod deletion;
mod document;
mod events;
mod fairness;
mod faults;
mod growth;
mod harness;
mod histories;
mod integrity;
mod lifecycle;
mod load;
mod logs;
mod matrix;
mod migrations;
mod requests;
mod results;
mod scores;
mod security;
mod services;
mod upload;
