//! Runs scripts on a cluster's login node, over a connection that is restored when it breaks.
//!
//! The user's `ssh` makes the connection, with the user's configuration, keys and jump hosts. It stays open
//! as a master connection, with one session for each script. Scripts are piped to `/bin/sh`, whatever the
//! login shell is. Their output is framed: only an end frame, with the exit code, proves that a script ended.

mod config;
mod error;
mod frame;
mod kept;
mod link;
mod master;
mod quote;
mod script;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use error::LinkError;
pub(crate) use kept::{KeptConnection, KeptError};
pub(crate) use link::{LONGEST_PAUSE, Link, LinkOptions, ScriptOutput};
pub(crate) use script::Script;
