//! `trainplan serve`: the web app and the store over HTTP.

use super::data_dir::StoreArgs;
use super::{Failure, address};
use crate::serve::{ServeOptions, serve};
use axum::http::HeaderName;
use reqwest::Url;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use trainplan_shared::api::ServerLimits;
use trainplan_shared::history::Thresholds;

/// Serve the planner and the results in a browser
///
/// On this machine's own address (the default) everyone here reads, and who has the token that is printed uploads, shares
/// and deletes. On any other address everything needs a token: `trainplan token create`. docs/serving.md has the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan serve
  trainplan serve --listen 127.0.0.1:9000
  trainplan serve --listen 0.0.0.0:8080 --behind-tls --database-url postgres://trainplan@db/trainplan --store s3://results/logs

Exit codes: 0 it was told to end; 1 it failed; 2 wrong use.")]
pub(super) struct Args {
    /// Address to listen on; port 0 takes any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,
    #[command(flatten)]
    store: StoreArgs,
    /// Who may read without a token: everyone, or nobody [default: everyone where only this machine listens]
    #[arg(long, value_enum)]
    read: Option<Reading>,
    /// A proxy in front speaks TLS with the world
    #[arg(long)]
    behind_tls: bool,
    /// Believe what this proxy says of who asks (more than once for several)
    #[arg(long, value_name = "ADDRESS")]
    trusted_proxy: Vec<IpAddr>,
    /// The header by which a trusted proxy names the person who is logged in: they may read
    #[arg(long, value_name = "NAME")]
    login_header: Option<HeaderName>,
    /// Delete results that were received more than so many days ago, with their logs
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    retain_days: Option<u32>,
    /// From when on a run is a regression, as `trainplan check` has it: baseline-percent=90, sigma=off (more than once for several)
    #[arg(long, value_name = "NAME=VALUE")]
    threshold: Vec<String>,
    /// Tell this address of every regression, by a POST of JSON (more than once for several); signed with
    /// TRAINPLAN_WEBHOOK_SECRET, where there is one
    #[arg(long, value_name = "URL")]
    webhook: Vec<String>,
    /// Let webhooks be in this network, and not only on the public internet
    #[arg(long)]
    webhook_allow_private: bool,
    /// Where people reach this server, such as https://trainplan.example.org: what webhooks tell links there
    #[arg(long, value_name = "URL", value_parser = public_url)]
    public_url: Option<Url>,
    /// How often one caller may ask in a minute
    #[arg(long, value_name = "N", default_value_t = ServerLimits::default().requests_per_minute)]
    requests_per_minute: NonZeroU32,
    /// The largest result file that is taken
    #[arg(long, value_name = "BYTES", default_value_t = ServerLimits::default().max_result_bytes)]
    max_result_bytes: usize,
    /// The largest raw log that is taken
    #[arg(long, value_name = "BYTES", default_value_t = ServerLimits::default().max_log_bytes)]
    max_log_bytes: u64,
    /// The most bytes that one token may upload in a day (UTC)
    #[arg(long, value_name = "BYTES", default_value_t = ServerLimits::default().max_uploaded_bytes_per_day)]
    max_uploaded_bytes_per_day: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Reading {
    /// Everyone reads
    Public,
    /// Reading needs a token, a link that was shared, or a login at the proxy
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
            public: self.read.map(|read| read == Reading::Public),
            behind_tls: self.behind_tls,
            trusted_proxies: self.trusted_proxy,
            login_header: self.login_header,
            retain_days: self.retain_days,
            webhooks: self.webhook,
            webhook_allow_private: self.webhook_allow_private,
            // From nowhere else: arguments are seen by all users of a machine.
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
    let wanted = "give an address of the web, such as https://trainplan.example.org";
    let url = Url::parse(text).map_err(|error| format!("{error}; {wanted}"))?;
    let is_plain =
        matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    is_plain.then_some(url).ok_or_else(|| wanted.into())
}
