//! `trainplan connect`: a connection that a person makes and that runs use.

use super::profiles;
use super::{Failure, note};
use crate::ssh::KeptConnection;
use std::path::PathBuf;
use trainplan_shared::campaign::Name;

/// Connect to a cluster that asks for a password or a second factor, once for all the runs of a day
///
/// ssh runs in your terminal, with your own configuration, and asks whatever it has to: a password, a code, whether a
/// host that it does not know is the one you mean. The connection then stays open in the background, and every command
/// of trainplan that needs the cluster goes through it. Clusters that let your key in need no such thing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan connect --cluster alpha
  trainplan connect --cluster alpha --for 12h
  trainplan connect me@login.example.org --close

Exit codes: 0 done; 2 wrong use or invalid profiles; 5 the cluster cannot be reached.")]
pub(super) struct Args {
    /// The host as ssh takes it, of a cluster without a profile
    #[arg(value_name = "HOST", required_unless_present = "cluster", conflicts_with = "cluster")]
    host: Option<String>,
    /// The cluster, by the name of its profile
    #[arg(long, value_name = "NAME")]
    cluster: Option<Name>,
    /// The profiles of your clusters [default: trainplan/clusters.toml in your configuration]
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// How long the connection stays open after its last use, such as 30m or 12h
    #[arg(long = "for", value_name = "TIME", default_value = "8h", value_parser = time, conflicts_with = "close")]
    persist: String,
    /// End the connection instead
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
                    true => note(&format!("the connection to {host} has ended")),
                    false => note(&format!("there is no connection to {host} to end")),
                }
                return Ok(());
            }
            if kept.answers().await {
                note(&format!("{host} is connected already; `trainplan connect {named} --close` ends that"));
                return Ok(());
            }
            // One whose host has fallen silent is in the way of a new one.
            kept.close().await;
            kept.open(&self.persist).await?;
            note(&format!(
                "{host} is connected; the connection ends {} after its last use, or by `trainplan connect {named} \
                 --close`",
                self.persist
            ));
            Ok(())
        })
    }
}

/// A time as ssh takes it.
fn time(text: &str) -> Result<String, &'static str> {
    let (number, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
    let counts = number.parse::<u32>().is_ok_and(|number| (1..100_000).contains(&number));
    let known = ["s", "m", "h", "d"].contains(&unit);
    if counts && known { Ok(text.to_string()) } else { Err("give a number and s, m, h or d, such as 8h") }
}
