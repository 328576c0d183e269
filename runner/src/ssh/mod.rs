//! The way to a cluster: scripts run on its login node, over a connection that is made again when it breaks.
//!
//! The user's own `ssh` makes the connection, with the user's own configuration, keys and jump hosts; it stays open as
//! a master, and every script is a session of it. A script comes over standard input to `/bin/sh`, whatever the login
//! shell is, and what it prints stands between frames: only an end frame says that it ended, and how.

mod config;
mod frame;
mod kept;
mod link;
mod master;
mod quote;
mod script;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use kept::{Kept, KeptError};
pub(crate) use link::Output;
pub(crate) use link::{Link, LinkError, LinkOptions};
pub(crate) use script::Script;
