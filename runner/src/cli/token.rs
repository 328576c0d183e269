//! `trainplan token`: tokens of a results server.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::{Failure, note};
use crate::store::{Revocation, Store};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jiff::{SignedDuration, Span};
use trainplan_shared::api::{AccessToken, TokenScope, is_token_name};

/// Create, list and revoke access tokens of a results server
///
/// A token's secret is printed once, when the token is created; the store keeps only its hash. Run this
/// command where the server's store is, with the same --data-dir or --database-url.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan token create --name nightly --scope upload --expires 90d
  trainplan token list
  trainplan token revoke nightly

Exit codes: 0 success; 1 the store failed; 2 no such token.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TokenCommand {
    /// Create a token and print its secret
    Create {
        /// Name of the token: 1 to 100 printable characters
        #[arg(long, value_name = "NAME", value_parser = token_name)]
        name: String,
        /// What the token allows
        #[arg(long, value_parser = scopes())]
        scope: TokenScope,
        /// Lifetime, such as 90d or 12h [default: unlimited]
        #[arg(long, value_name = "DURATION", value_parser = lasts)]
        expires: Option<SignedDuration>,
        /// Bytes that the token may upload per day [default: the server's limit]
        #[arg(long, value_name = "BYTES")]
        quota_bytes: Option<u64>,
        #[command(flatten)]
        store: StoreArgs,
        #[command(flatten)]
        format: FormatArg,
    },
    /// List all tokens, without secrets
    List {
        #[command(flatten)]
        store: StoreArgs,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Revoke a token and its share links
    Revoke {
        /// Id or name of the token
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
                TokenCommand::Create { name, scope, expires, quota_bytes, store, format } => {
                    let store = store.open().await?;
                    let token = store.create_token(&name, scope, expires, quota_bytes).await?;
                    match format.choose() {
                        Format::Json => output::json(&token)?,
                        Format::Csv | Format::Table => output::text_line(&token.secret)?,
                    }
                    note("Copy the secret now; it won't be shown again. Pass it to other commands as TRAINPLAN_TOKEN.");
                    Ok(())
                }
                TokenCommand::List { store, format } => list(&store.existing().await?, format).await,
                TokenCommand::Revoke { which, store } => {
                    let why = match store.existing().await?.revoke_token(&which).await? {
                        Revocation::Revoked(token) => {
                            note(&format!("Revoked token {} ({}).", token.name, token.id));
                            return Ok(());
                        }
                        Revocation::Unknown => {
                            format!("No valid token has the id or name {which}. `trainplan token list` lists all.")
                        }
                        Revocation::Ambiguous => {
                            format!("Several tokens have the name {which}. Use an id; `trainplan token list` lists all.")
                        }
                    };
                    Err(Failure::NoRun(why))
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

fn cells(token: &AccessToken) -> [String; 7] {
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

/// Returns the parser of scopes, with their meaning for --help.
fn scopes() -> impl TypedValueParser<Value = TokenScope> {
    let help = |scope| match scope {
        TokenScope::Read => "Read runs, logs, comparisons and history",
        TokenScope::Upload => "Also upload results, logs and progress",
        TokenScope::Admin => "Also delete runs, score them again and manage tokens",
    };
    let values = TokenScope::ALL.iter().map(|scope| PossibleValue::new(scope.id()).help(help(*scope)));
    PossibleValuesParser::new(values).try_map(|id| TokenScope::from_id(&id).ok_or("unknown scope"))
}

/// Reads the name of a token.
fn token_name(text: &str) -> Result<String, &'static str> {
    let name = text.trim();
    if is_token_name(name) { Ok(name.to_owned()) } else { Err("enter 1 to 100 printable characters") }
}

/// Reads a positive duration.
fn lasts(text: &str) -> Result<SignedDuration, String> {
    const HOW: &str = "enter a duration such as 90d, 12h or 4w";
    let span: Span = text.parse().map_err(|_| HOW)?;
    let days = jiff::SpanRelativeTo::days_are_24_hours();
    let lasts = span.to_duration(days).map_err(|_| HOW.to_owned())?;
    if lasts.is_positive() { Ok(lasts) } else { Err(HOW.into()) }
}
