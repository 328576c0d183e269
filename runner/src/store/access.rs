//! Who may do what: tokens for programs and people, and links that show some runs to whoever has them.
//!
//! A secret is random, shown once, and kept as its SHA-256 alone: whoever reads the database can't use it.

use super::{Store, StoreError, hex, now, time};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use subtle::ConstantTimeEq;
use utoipa::ToSchema;
use uuid::Uuid;

/// How many characters of a secret are random: 178 bits.
const RANDOM: usize = 30;

/// What tokens and shares start with, so that a leaked one is known for what it is.
const TOKEN: &str = "tp_";
const SHARE: &str = "tps_";

/// What a token lets its owner do; each scope allows what the ones before it do.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// Read runs, logs and all that follows from them.
    Read,
    /// Upload results, logs and progress as well.
    Upload,
    /// Delete runs and manage tokens as well.
    Admin,
}

impl Scope {
    const ALL: [Scope; 3] = [Scope::Read, Scope::Upload, Scope::Admin];

    /// Its name.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Upload => "upload",
            Scope::Admin => "admin",
        }
    }
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Token {
    /// Its name for the server.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// What it allows.
    pub(crate) scope: Scope,
    /// When it was made.
    pub(crate) created_at: String,
    /// When it ends; none means never.
    pub(crate) expires_at: Option<String>,
    /// When it was revoked, if it was.
    pub(crate) revoked_at: Option<String>,
    /// When it was last used, to the minute.
    pub(crate) last_used_at: Option<String>,
    /// The most bytes that it may upload in a day; none means as many as the server lets everyone.
    pub(crate) quota_bytes: Option<u64>,
}

/// A token that was just made: its secret is told now and never again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewToken {
    /// The secret.
    pub(crate) secret: String,
    /// All else.
    #[serde(flatten)]
    pub(crate) token: Token,
}

/// A link that shows some runs, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Share {
    /// Its name for the server.
    pub(crate) id: String,
    /// The runs.
    pub(crate) runs: Vec<String>,
    /// Who made it: a token's id.
    pub(crate) created_by: String,
    /// When it was made.
    pub(crate) created_at: String,
    /// When it ends.
    pub(crate) expires_at: String,
}

/// A share that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewShare {
    /// The secret.
    pub(crate) secret: String,
    /// All else.
    #[serde(flatten)]
    pub(crate) share: Share,
}

/// What a secret opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// What a token's scope allows.
    Token(Token),
    /// These runs, to read, until then.
    Share {
        /// The runs.
        runs: BTreeSet<Uuid>,
        /// When it ends.
        expires_at: String,
    },
}

type ShareRow = (String, String, String, String, String);

type TokenRow =
    (String, String, String, String, Option<String>, Option<String>, Option<String>, Option<i64>, String);

const TOKEN_COLUMNS: &str =
    "id, name, scope, created_at, expires_at, revoked_at, last_used_at, quota_bytes, sha256";

impl Store {
    /// Makes a token.
    pub(crate) async fn create_token(
        &self,
        name: &str,
        scope: Scope,
        lasts: Option<SignedDuration>,
        quota_bytes: Option<u64>,
    ) -> Result<NewToken, StoreError> {
        let secret = secret(TOKEN)?;
        let created = Timestamp::now();
        let token = Token {
            id: Uuid::now_v7().to_string(),
            name: name.to_owned(),
            scope,
            created_at: time(created),
            expires_at: lasts.and_then(|lasts| created.checked_add(lasts).ok()).map(time),
            revoked_at: None,
            last_used_at: None,
            quota_bytes,
        };
        let mut writing = self.database.write().await?;
        let insert = "INSERT INTO tokens (id, name, sha256, scope, created_at, expires_at, quota_bytes) \
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        sqlx::query(insert)
            .bind(&token.id)
            .bind(&token.name)
            .bind(hash(&secret))
            .bind(scope.id())
            .bind(&token.created_at)
            .bind(&token.expires_at)
            .bind(quota_bytes.and_then(|bytes| i64::try_from(bytes).ok()))
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(NewToken { secret, token })
    }

    /// All tokens, the newest first, revoked and expired ones too.
    pub(crate) async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let select = format!("SELECT {TOKEN_COLUMNS} FROM tokens ORDER BY created_at DESC, id DESC");
        let rows: Result<Vec<TokenRow>, _> = sqlx::query_as(&select).fetch_all(&self.database.readers).await;
        Ok(rows.map_err(|error| self.failed(error))?.into_iter().map(|row| token(row).0).collect())
    }

    /// Whether any token can be used.
    pub(crate) async fn has_tokens(&self) -> Result<bool, StoreError> {
        let tokens = self.tokens().await?;
        Ok(tokens.iter().any(|token| token.revoked_at.is_none() && !is_past(token.expires_at.as_deref())))
    }

    /// Revokes a token, by its id or its name where that is one token's alone. The token, if there is one.
    pub(crate) async fn revoke_token(&self, which: &str) -> Result<Option<Token>, StoreError> {
        let tokens = self.tokens().await?;
        let usable: Vec<&Token> = tokens.iter().filter(|token| token.revoked_at.is_none()).collect();
        let named: Vec<&&Token> = usable.iter().filter(|token| token.name == which).collect();
        let found = tokens.iter().find(|token| token.id == which);
        let Some(found) = found.or(if let [only] = named.as_slice() { Some(**only) } else { None }) else {
            return Ok(None);
        };
        let mut writing = self.database.write().await?;
        let update = sqlx::query("UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL");
        update
            .bind(&found.id)
            .bind(now())
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(Some(found.clone()))
    }

    /// What a secret opens now; none if nothing.
    pub(crate) async fn access(&self, secret: &str) -> Result<Option<Access>, StoreError> {
        let hash = hash(secret);
        if secret.starts_with(SHARE) {
            // A link ends with the token that made it.
            let select = "SELECT sha256, runs, expires_at FROM shares WHERE sha256 = $1 AND NOT EXISTS \
                (SELECT 1 FROM tokens WHERE tokens.id = created_by AND (revoked_at IS NOT NULL OR tokens.expires_at <= $2))";
            let row: Option<(String, String, String)> = sqlx::query_as(select)
                .bind(&hash)
                .bind(now())
                .fetch_optional(&self.database.readers)
                .await
                .map_err(|error| self.failed(error))?;
            return Ok(row
                .filter(|(known, _, expires_at)| is_same(known, &hash) && !is_past(Some(expires_at)))
                .map(|(_, runs, expires_at)| {
                    let runs = runs.split(',').filter_map(|id| id.parse().ok()).collect();
                    Access::Share { runs, expires_at }
                }));
        }
        let select = format!("SELECT {TOKEN_COLUMNS} FROM tokens WHERE sha256 = $1");
        let row: Option<TokenRow> = sqlx::query_as(&select)
            .bind(&hash)
            .fetch_optional(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        let Some((token, known)) = row.map(token) else { return Ok(None) };
        let is_good =
            is_same(&known, &hash) && token.revoked_at.is_none() && !is_past(token.expires_at.as_deref());
        if !is_good {
            return Ok(None);
        }
        self.note_use(&token).await;
        Ok(Some(Access::Token(token)))
    }

    /// Adds bytes to what a token uploaded today, and says how many that makes.
    pub(crate) async fn count_upload(&self, token: &str, bytes: u64) -> Result<u64, StoreError> {
        let day = Timestamp::now().to_string()[..10].to_owned();
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut writing = self.database.write().await?;
        let insert = "INSERT INTO uploaded (token, day, bytes) VALUES ($1, $2, $3) \
            ON CONFLICT (token, day) DO UPDATE SET bytes = uploaded.bytes + excluded.bytes RETURNING bytes";
        let insert = sqlx::query_scalar(insert).bind(token).bind(&day).bind(bytes);
        let all: i64 = insert.fetch_one(&mut *writing).await.map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(all.unsigned_abs())
    }

    /// Makes a link to some runs.
    pub(crate) async fn create_share(
        &self,
        runs: &[Uuid],
        created_by: &str,
        lasts: SignedDuration,
    ) -> Result<NewShare, StoreError> {
        let secret = secret(SHARE)?;
        let created = Timestamp::now();
        let share = Share {
            id: Uuid::now_v7().to_string(),
            runs: runs.iter().map(Uuid::to_string).collect(),
            created_by: created_by.to_owned(),
            created_at: time(created),
            expires_at: time(created.checked_add(lasts).unwrap_or(created)),
        };
        let mut writing = self.database.write().await?;
        let insert = "INSERT INTO shares (id, sha256, runs, created_by, created_at, expires_at) \
            VALUES ($1, $2, $3, $4, $5, $6)";
        sqlx::query(insert)
            .bind(&share.id)
            .bind(hash(&secret))
            .bind(share.runs.join(","))
            .bind(created_by)
            .bind(&share.created_at)
            .bind(&share.expires_at)
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(NewShare { secret, share })
    }

    /// The links that still work: of one token, or all of them; the newest first.
    pub(crate) async fn shares(&self, created_by: Option<&str>) -> Result<Vec<Share>, StoreError> {
        let select = "SELECT id, runs, created_by, created_at, expires_at FROM shares WHERE expires_at > $1 \
            ORDER BY created_at DESC, id DESC";
        let rows: Result<Vec<ShareRow>, _> =
            sqlx::query_as(select).bind(now()).fetch_all(&self.database.readers).await;
        let shares = rows.map_err(|error| self.failed(error))?.into_iter().map(
            |(id, runs, created_by, created_at, expires_at)| Share {
                id,
                runs: runs.split(',').map(str::to_owned).collect(),
                created_by,
                created_at,
                expires_at,
            },
        );
        Ok(shares.filter(|share| created_by.is_none_or(|token| share.created_by == token)).collect())
    }

    /// Ends a link: of one token, or anyone's. Whether there was one.
    pub(crate) async fn revoke_share(&self, id: &str, created_by: Option<&str>) -> Result<bool, StoreError> {
        if !self.shares(created_by).await?.iter().any(|share| share.id == id) {
            return Ok(false);
        }
        let mut writing = self.database.write().await?;
        let deleted = sqlx::query("DELETE FROM shares WHERE id = $1").bind(id).execute(&mut *writing).await;
        deleted.map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(true)
    }

    /// Notes that a token was used. That it could not be noted is no reason to refuse it.
    async fn note_use(&self, token: &Token) {
        let minute = |time: &str| time.get(..16).map(str::to_owned);
        let now = now();
        if token.last_used_at.as_deref().and_then(minute) == minute(&now) {
            return;
        }
        let noted = async {
            let mut writing = self.database.write().await?;
            let update = sqlx::query("UPDATE tokens SET last_used_at = $2 WHERE id = $1");
            update
                .bind(&token.id)
                .bind(&now)
                .execute(&mut *writing)
                .await
                .map_err(|error| self.failed(error))?;
            self.commit(writing).await
        };
        if let Err(error) = noted.await {
            tracing::warn!("a token's use can't be noted: {error}");
        }
    }
}

fn token(row: TokenRow) -> (Token, String) {
    let (id, name, scope, created_at, expires_at, revoked_at, last_used_at, quota_bytes, sha256) = row;
    // What this program does not know allows nothing more than reading.
    let scope = Scope::ALL.into_iter().find(|known| known.id() == scope).unwrap_or(Scope::Read);
    let quota_bytes = quota_bytes.map(i64::unsigned_abs);
    let token = Token { id, name, scope, created_at, expires_at, revoked_at, last_used_at, quota_bytes };
    (token, sha256)
}

fn is_past(time: Option<&str>) -> bool {
    time.is_some_and(|time| *time <= *now())
}

/// The database has found it by its hash already; that no part of the comparison tells by its time how much of a guess
/// is right costs nothing.
fn is_same(known: &str, hash: &str) -> bool {
    known.as_bytes().ct_eq(hash.as_bytes()).into()
}

pub(crate) fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret))
}

/// A new secret.
pub(crate) fn secret(prefix: &str) -> Result<String, getrandom::Error> {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut secret = prefix.to_owned();
    let mut bytes = [0_u8; 2 * RANDOM];
    while secret.len() < prefix.len() + RANDOM {
        getrandom::fill(&mut bytes)?;
        // What lies beyond the last whole 62 is left out, so that no digit is likelier than another.
        let digits =
            bytes.iter().filter(|byte| **byte < 248).filter_map(|byte| DIGITS.get(usize::from(byte % 62)));
        let missing = prefix.len() + RANDOM - secret.len();
        secret.extend(digits.take(missing).map(|digit| char::from(*digit)));
    }
    Ok(secret)
}
