//! `trainplan token`: who may read and upload on a server.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::{Failure, note};
use crate::store::{Scope, Store, Token};
use jiff::{SignedDuration, Span};

/// Make, list and revoke the tokens of a server's store
///
/// A token is shown once, when it is made; the store keeps only its hash. Run this where the server's store is: with the same
/// --data-dir or --database-url.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan token create --name nightly --scope upload --expires 90d
  trainplan token list
  trainplan token revoke nightly

Exit codes: 0 done; 1 the store failed; 2 there is no such token.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a token, and print it: this once
    Create {
        /// Its name for people
        #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        name: String,
        /// What it allows
        #[arg(long, value_enum)]
        scope: Scope,
        /// For how long, such as 90d or 12h [default: until it is revoked]
        #[arg(long, value_name = "DURATION", value_parser = lasts)]
        expires: Option<SignedDuration>,
        /// The most bytes that it may upload in a day [default: as many as the server lets everyone]
        #[arg(long, value_name = "BYTES")]
        quota_bytes: Option<u64>,
        #[command(flatten)]
        store: StoreArgs,
        #[command(flatten)]
        format: FormatArg,
    },
    /// List all tokens, without their secrets
    List {
        #[command(flatten)]
        store: StoreArgs,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Revoke a token: it opens nothing any more
    Revoke {
        /// Its id, or its name
        #[arg(value_name = "TOKEN")]
        which: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        tokio::runtime::Runtime::new()?.block_on(async {
            match self.command {
                Command::Create { name, scope, expires, quota_bytes, store, format } => {
                    let store = store.open().await?;
                    let token = store.create_token(&name, scope, expires, quota_bytes).await?;
                    match format.choose() {
                        Format::Json => output::json(&token)?,
                        Format::Csv | Format::Table => output::text_line(&token.secret)?,
                    }
                    note("this is the only time that it is shown; a server or runner takes it as TRAINPLAN_TOKEN");
                    Ok(())
                }
                Command::List { store, format } => list(&store.existing().await?, format).await,
                Command::Revoke { which, store } => {
                    let revoked = store.existing().await?.revoke_token(&which).await?;
                    let token = revoked.ok_or_else(|| {
                        Failure::NoRun(format!(
                            "{which} names no token, or several: `trainplan token list` has them; give the id where several have \
                             one name"
                        ))
                    })?;
                    note(&format!("token {} ({}) is revoked", token.name, token.id));
                    Ok(())
                }
            }
        })
    }
}

async fn list(store: &Store, format: FormatArg) -> Result<(), Failure> {
    let tokens = store.tokens().await?;
    match format.choose() {
        Format::Json => output::json(&tokens)?,
        Format::Csv => output::csv(HEADER, tokens.iter().map(cells))?,
        Format::Table => output::table(HEADER, &[], tokens.iter().map(cells))?,
    }
    Ok(())
}

const HEADER: [&str; 7] = ["id", "name", "scope", "created", "expires", "revoked", "last used"];

fn cells(token: &Token) -> [String; 7] {
    let minute = |time: &str| time.get(..16).unwrap_or(time).replace('T', " ");
    let time = |time: &Option<String>| time.as_deref().map(minute).unwrap_or_default();
    [
        token.id.clone(),
        token.name.clone(),
        token.scope.id().into(),
        minute(&token.created_at),
        time(&token.expires_at),
        time(&token.revoked_at),
        time(&token.last_used_at),
    ]
}

/// Reads a time span.
fn lasts(text: &str) -> Result<SignedDuration, String> {
    const HOW: &str = "give a time such as 90d, 12h or 4w";
    let span: Span = text.parse().map_err(|_| HOW)?;
    let days = jiff::SpanRelativeTo::days_are_24_hours();
    let lasts = span.to_duration(days).map_err(|_| HOW.to_owned())?;
    if lasts.is_positive() { Ok(lasts) } else { Err(HOW.into()) }
}
