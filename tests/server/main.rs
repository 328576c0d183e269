//! The results server and who sends to it, through the binary.

#![allow(missing_docs, reason = "a test's name says what it shows")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod upload;
