//! `trainplan serve`: the web app and the store over HTTP.

use super::data_dir::StoreArgs;
use super::{Failure, address};
use crate::serve::{ServeOptions, serve};
use crate::store::FEWEST_CONNECTIONS;
use axum::http::HeaderName;
use reqwest::Url;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use trainplan_shared::api::ServerLimits;
use trainplan_shared::history::Thresholds;

/// Serve the planner and the results over HTTP
///
/// On a loopback address (the default), every user of this machine may read. Uploading, sharing and deleting
/// require the token that the server prints. On other addresses, every request requires a token
/// (`trainplan token create`), unless --read or --login-header allows reading without one. docs/serving.md explains how to set up a server.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan serve
  trainplan serve --listen 127.0.0.1:9000
  trainplan serve --listen 0.0.0.0:8080 --behind-tls --database-url postgres://trainplan@db/trainplan --store s3://results/logs

Exit codes: 0 stopped on request; 1 failed; 2 invalid arguments.")]
pub(super) struct Args {
    /// Address to listen on; port 0 takes any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,
    #[command(flatten)]
    store: StoreArgs,
    /// Number of connections to PostgreSQL [default: a quarter of those that PostgreSQL allows, at least 4 and at most 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(i64::from(FEWEST_CONNECTIONS)..=1000))]
    database_connections: Option<u32>,
    /// Whether reading needs a token [default: public on a loopback address, otherwise private]
    #[arg(long, value_enum)]
    read: Option<Reading>,
    /// A proxy in front of the server provides TLS
    #[arg(long)]
    behind_tls: bool,
    /// Address of a proxy that is trusted to report the client's address and login (repeatable)
    #[arg(long, value_name = "ADDRESS")]
    trusted_proxy: Vec<IpAddr>,
    /// Header in which a trusted proxy passes the name of the logged-in user; logged-in users may read and
    /// share
    #[arg(long, value_name = "NAME")]
    login_header: Option<HeaderName>,
    /// Delete results and their logs that were received more than this many days before the newest result.
    /// Deletions begin three days after the first server with this option starts
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    retain_days: Option<u32>,
    /// Threshold for regressions, as in `trainplan check`: baseline-percent=90, sigma=off (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    threshold: Vec<String>,
    /// URL to which the server posts new and worsened regressions as JSON, except those of runs older than a week. If
    /// TRAINPLAN_WEBHOOK_SECRET is set, requests are signed with it (repeatable)
    #[arg(long, value_name = "URL")]
    webhook: Vec<String>,
    /// Allow webhook addresses outside the public internet, such as in your own network
    #[arg(long)]
    webhook_allow_private: bool,
    /// Public address of this server, used in links that people open, such as https://trainplan.example.org
    #[arg(long, value_name = "URL", value_parser = public_url)]
    public_url: Option<Url>,
    /// Maximum number of requests per minute from one caller
    #[arg(long, value_name = "N", default_value_t = ServerLimits::default().requests_per_minute)]
    requests_per_minute: NonZeroU32,
    /// Maximum size of a result file, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = ServerLimits::default().max_result_bytes)]
    max_result_bytes: usize,
    /// Maximum size of a raw log, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = ServerLimits::default().max_log_bytes)]
    max_log_bytes: u64,
    /// Maximum number of bytes that one token may upload per day (UTC)
    #[arg(long, value_name = "BYTES", default_value_t = ServerLimits::default().max_uploaded_bytes_per_day)]
    max_uploaded_bytes_per_day: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Reading {
    /// Everyone may read
    Public,
    /// Reading needs a token, a share link or a login at the proxy
    Private,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let pairs = self.threshold.iter().map(|text| text.split_once('=').unwrap_or((text, "")));
        let thresholds = Thresholds::parse(pairs)
            .map_err(|error| Failure::NoRun(format!("--threshold NAME=VALUE: {error}")))?;
        let options = ServeOptions {
            thresholds,
            place: self.store.place(),
            database_connections: self.database_connections,
            public: self.read.map(|read| read == Reading::Public),
            behind_tls: self.behind_tls,
            trusted_proxies: self.trusted_proxy,
            login_header: self.login_header,
            retain_days: self.retain_days,
            webhooks: self.webhook,
            webhook_allow_private: self.webhook_allow_private,
            // Only from the environment: every user of a machine can see arguments.
            webhook_secret: std::env::var("TRAINPLAN_WEBHOOK_SECRET").ok().filter(|text| !text.is_empty()),
            public_url: self.public_url,
            limits: ServerLimits {
                requests_per_minute: self.requests_per_minute,
                max_result_bytes: self.max_result_bytes,
                max_log_bytes: self.max_log_bytes,
                max_uploaded_bytes_per_day: self.max_uploaded_bytes_per_day,
                ..ServerLimits::default()
            },
        };
        let dir = self.store.dir()?;
        tokio::runtime::Runtime::new()?.block_on(serve(self.listen, dir, options)).map_err(Failure::from)
    }
}

fn public_url(text: &str) -> Result<Url, String> {
    let wanted = "use an address such as https://trainplan.example.org";
    let url = Url::parse(text).map_err(|error| format!("{error}; {wanted}"))?;
    let is_plain =
        matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    is_plain.then_some(url).ok_or_else(|| wanted.into())
}
