//! Tokens, share links, and what a caller may do.

use crate::text::is_invisible;
use serde::{Deserialize, Serialize};

super::ids! {
    /// What a token allows. Each scope includes the ones before it.
    TokenScope {
        /// Read runs, logs, comparisons and history.
        Read "read",
        /// Upload results, logs and progress.
        Upload "upload",
        /// Delete runs and manage tokens.
        Admin "admin",
    }
}

/// Returns whether a token may have this name: 1 to 100 characters without invisible ones, which could make a name look like
/// another one.
#[must_use]
pub fn is_token_name(name: &str) -> bool {
    (1..=100).contains(&name.chars().count()) && !name.trim().is_empty() && !name.contains(is_invisible)
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AccessToken {
    /// The token's id.
    pub id: String,
    /// The name that its creator chose.
    pub name: String,
    /// What it allows.
    pub scope: TokenScope,
    /// When it was created.
    pub created_at: String,
    /// When it expires; null if it never does.
    pub expires_at: Option<String>,
    /// When it was revoked; null if it was not.
    pub revoked_at: Option<String>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<String>,
    /// The number of bytes that it may upload per day; null means the server's default.
    pub quota_bytes: Option<u64>,
}

/// A new token with its secret, which is returned only once.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewToken {
    /// The secret to send as `Authorization: Bearer SECRET`.
    pub secret: String,
    /// The token.
    #[serde(flatten)]
    pub token: AccessToken,
}

/// A list of tokens.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Tokens {
    /// The tokens, newest first.
    pub items: Vec<AccessToken>,
}

/// A request to create a token.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// A name: 1 to 100 printable characters.
    pub name: String,
    /// What the token allows.
    pub scope: TokenScope,
    /// The number of days until it expires: 1 to 36500; null for a token that never expires.
    pub expires_in_days: Option<u32>,
    /// The number of bytes that it may upload per day, at most 2^63 - 1; null for the server's default.
    pub quota_bytes: Option<u64>,
}

/// A share link, without its secret. It shows some runs to anyone who has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ShareLink {
    /// The link's id.
    pub id: String,
    /// The ids of the runs that it shows.
    pub runs: Vec<String>,
    /// Who created it: a token's id, `owner`, or `login:` with the name of a person who is logged in at the proxy.
    pub created_by: String,
    /// When it was created.
    pub created_at: String,
    /// When it expires.
    pub expires_at: String,
}

/// A new share link with its secret, which is returned only once.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewShareLink {
    /// The secret, for the address `/run?id=RUN#share=SECRET`.
    pub secret: String,
    /// The link.
    #[serde(flatten)]
    pub share: ShareLink,
}

/// A list of active share links.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ShareLinks {
    /// The links, newest first.
    pub items: Vec<ShareLink>,
}

/// A request to create a share link.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ShareLinkRequest {
    /// The ids of the runs to show, each once.
    pub ids: Vec<String>,
    /// The number of days until the link expires: 1 to 366.
    pub expires_in_days: u32,
}

/// The caller's name and rights.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallerAccess {
    /// The caller's name: a token's name, a person's login, `owner` or `anyone`.
    pub name: String,
    /// The caller's scope; null for a caller who may read only the runs of a share link, or nothing.
    pub scope: Option<TokenScope>,
    /// The ids of the runs that the caller's share link shows; null without a share link.
    pub runs: Option<Vec<String>>,
    /// When the caller's share link expires; null without a share link.
    pub until: Option<String>,
}
