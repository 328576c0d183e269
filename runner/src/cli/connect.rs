//! `trainplan connect`: opens a connection that later commands use.

use super::profiles;
use super::{Failure, note};
use crate::ssh::KeptConnection;
use std::path::PathBuf;
use trainplan_shared::campaign::Name;

/// Log in to a cluster that asks for a password or a second factor
///
/// Runs ssh in your terminal, with your configuration. Answer its questions: a password, a code, or whether
/// to trust an unknown host. The connection then stays open in the background, and all trainplan commands use
/// it. If your key is enough to log in, you don't need this command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan connect --cluster alpha
  trainplan connect --cluster alpha --for 12h
  trainplan connect me@login.example.org --close

Exit codes:
  0  Success
  2  Invalid arguments or profiles
  5  The cluster can't be reached")]
pub(super) struct Args {
    /// Host of a cluster without a profile, as you would pass it to ssh
    #[arg(value_name = "HOST", required_unless_present = "cluster", conflicts_with = "cluster")]
    host: Option<String>,
    /// Name of the cluster's profile
    #[arg(long, value_name = "NAME")]
    cluster: Option<Name>,
    /// File with your cluster profiles [default: ~/.config/trainplan/clusters.toml]
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// How long an unused connection stays open, such as 30m or 12h
    #[arg(long = "for", value_name = "TIME", default_value = "8h", value_parser = time, conflicts_with = "close")]
    persist: String,
    /// Close the connection
    #[arg(long)]
    close: bool,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let (host, named) = match (self.cluster, self.host) {
            (Some(name), _) => (profiles::cluster(&name, self.clusters)?.ssh, format!("--cluster {name}")),
            (None, host) => {
                let host = host.unwrap_or_default();
                (host.clone(), host)
            }
        };
        tokio::runtime::Runtime::new()?.block_on(async {
            let kept = KeptConnection::of(&host).await?;
            if self.close {
                match kept.close().await {
                    true => note(&format!("The connection to {host} is closed.")),
                    false => note(&format!("No connection to {host} is open.")),
                }
                return Ok(());
            }
            if kept.answers().await {
                note(&format!(
                    "{host} is already connected. To close the connection, use `trainplan connect {named} \
                     --close`."
                ));
                return Ok(());
            }
            // The socket of a broken connection would be in the way.
            kept.close().await;
            kept.open(&self.persist).await?;
            note(&format!(
                "{host} is connected. The connection closes when unused for {}, or by `trainplan connect \
                 {named} --close`.",
                self.persist
            ));
            Ok(())
        })
    }
}

/// Reads a time in the form of ssh.
fn time(text: &str) -> Result<String, &'static str> {
    let (number, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
    let counts = number.parse::<u32>().is_ok_and(|number| (1..100_000).contains(&number));
    let known = ["s", "m", "h", "d"].contains(&unit);
    if counts && known { Ok(text.to_string()) } else { Err("use a number with s, m, h or d, such as 8h") }
}
