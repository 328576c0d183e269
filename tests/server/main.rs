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

mod alerts;
mod api;
mod bounds;
mod document;
mod faults;
mod harness;
mod integrity;
mod load;
mod migrations;
mod security;
mod services;
mod upload;
