//! Tokens and share links.
//!
//! Secrets are random and returned once. The database keeps only their SHA-256, so that reading it grants no
//! access.

use super::database::{Typed, warn_left_out};
use super::{Store, StoreError, hex, now, time};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use sqlx::{Any, Transaction};
use std::collections::BTreeSet;
use subtle::ConstantTimeEq;
use trainplan_shared::api::{AccessToken, NewShareLink, NewToken, ShareLink, TokenScope};
use uuid::Uuid;

/// The number of random characters in a secret: 178 bits.
const RANDOM: usize = 30;

/// The prefixes of secrets, which let scanners recognize leaked ones.
const TOKEN: &str = "tp_";
const SHARE: &str = "tps_";

/// The prefix of the names of share-link creators who are logged in at a proxy. No token's id begins with it.
pub(crate) const LOGIN: &str = "login:";

/// What a valid secret grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// The token's scope.
    Token(AccessToken),
    /// Reading some runs.
    Share {
        /// The runs.
        runs: BTreeSet<Uuid>,
        /// When the share link expires.
        expires_at: String,
    },
}

/// What a request to revoke a token did.
#[derive(Debug)]
pub(crate) enum Revocation {
    /// The token is revoked.
    Revoked(AccessToken),
    /// No token has this id or name.
    Unknown,
    /// Several tokens have this name.
    Ambiguous,
}

#[derive(sqlx::FromRow)]
struct ShareRow {
    id: StoredText,
    runs: StoredText,
    created_by: StoredText,
    created_at: StoredText,
    expires_at: StoredText,
    /// The token that created it; none if the owner or a person did. When that token expires and was revoked.
    token_id: StoredTime,
    token_expires_at: StoredTime,
    token_revoked_at: StoredTime,
}

/// A text that is never absent.
type StoredText = Typed<String>;

/// A time that may be absent.
type StoredTime = Typed<Option<String>>;

#[derive(sqlx::FromRow)]
struct TokenRow {
    id: StoredText,
    name: StoredText,
    scope: StoredText,
    created_at: StoredText,
    expires_at: StoredTime,
    revoked_at: StoredTime,
    last_used_at: StoredTime,
    quota_bytes: Typed<Option<i64>>,
    sha256: StoredText,
}

const TOKEN_COLUMNS: &str =
    "id, name, scope, created_at, expires_at, revoked_at, last_used_at, quota_bytes, sha256";

impl Store {
    /// The largest quota of a token, in bytes per day: databases have no larger numbers.
    pub(crate) const LARGEST_QUOTA: u64 = i64::MAX as u64;

    /// Creates a token and returns it with its secret. A larger quota than [`Store::LARGEST_QUOTA`] becomes that one, and a
    /// lifetime beyond the year 9999 ends with that year.
    pub(crate) async fn create_token(
        &self,
        name: &str,
        scope: TokenScope,
        lifetime: Option<SignedDuration>,
        quota_bytes: Option<u64>,
    ) -> Result<NewToken, StoreError> {
        let secret = secret(TOKEN)?;
        let created = Timestamp::now();
        let token = AccessToken {
            id: Uuid::now_v7().to_string(),
            name: name.to_owned(),
            scope,
            created_at: time(created),
            // A lifetime that is too long must not become an unlimited one.
            expires_at: lifetime
                .map(|lifetime| time(created.checked_add(lifetime).unwrap_or(Timestamp::MAX))),
            revoked_at: None,
            last_used_at: None,
            quota_bytes: quota_bytes.map(|bytes| bytes.min(Self::LARGEST_QUOTA)),
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
            .bind(token.quota_bytes.and_then(|bytes| i64::try_from(bytes).ok()))
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(NewToken { secret, token })
    }

    /// Returns all tokens, newest first, including revoked and expired ones.
    pub(crate) async fn tokens(&self) -> Result<Vec<AccessToken>, StoreError> {
        let select = format!("SELECT {TOKEN_COLUMNS} FROM tokens ORDER BY created_at DESC, id DESC");
        let rows: Result<Vec<TokenRow>, _> = sqlx::query_as(&select).fetch_all(&self.database.readers).await;
        Ok(rows
            .map_err(|error| self.failed(error))?
            .into_iter()
            .filter_map(token)
            .map(|(token, _)| token)
            .collect())
    }

    /// Returns whether any token is valid.
    pub(crate) async fn has_tokens(&self) -> Result<bool, StoreError> {
        let tokens = self.tokens().await?;
        Ok(tokens.iter().any(|token| token.revoked_at.is_none() && !is_past(token.expires_at.as_deref())))
    }

    /// Revokes a token: the one with this id, or the only one with this name that is not revoked.
    pub(crate) async fn revoke_token(&self, which: &str) -> Result<Revocation, StoreError> {
        let tokens = self.tokens().await?;
        let is_named = |token: &&AccessToken| token.name == which && token.revoked_at.is_none();
        let named: Vec<&AccessToken> = tokens.iter().filter(is_named).collect();
        let found = match (tokens.iter().find(|token| token.id == which), &named[..]) {
            (Some(found), _) => found,
            (None, [only]) => *only,
            (None, []) => return Ok(Revocation::Unknown),
            (None, _) => return Ok(Revocation::Ambiguous),
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
        Ok(Revocation::Revoked(found.clone()))
    }

    /// Returns what a secret grants; none if it is unknown, expired or revoked.
    pub(crate) async fn access(&self, secret: &str) -> Result<Option<Access>, StoreError> {
        let hash = hash(secret);
        if secret.starts_with(SHARE) {
            // A share link is valid only as long as the token that created it.
            let select = "SELECT shares.sha256, runs, shares.expires_at, tokens.expires_at, tokens.revoked_at \
                FROM shares LEFT JOIN tokens ON tokens.id = created_by WHERE shares.sha256 = $1";
            let row: Option<(StoredText, StoredText, StoredText, StoredTime, StoredTime)> =
                sqlx::query_as(select)
                    .bind(&hash)
                    .fetch_optional(&self.database.readers)
                    .await
                    .map_err(|error| self.failed(error))?;
            let Some((Typed(Some(known)), Typed(Some(runs)), Typed(Some(expires_at)), ends, revoked)) = row
            else {
                return Ok(None);
            };
            if !is_same(&known, &hash) || is_past(Some(&expires_at)) || !is_valid(&ends, &revoked) {
                return Ok(None);
            }
            let runs = runs.split(',').filter_map(|id| id.parse().ok()).collect();
            return Ok(Some(Access::Share { runs, expires_at }));
        }
        let select = format!("SELECT {TOKEN_COLUMNS} FROM tokens WHERE sha256 = $1");
        let row: Option<TokenRow> = sqlx::query_as(&select)
            .bind(&hash)
            .fetch_optional(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        let Some((token, known)) = row.and_then(token) else { return Ok(None) };
        let is_good =
            is_same(&known, &hash) && token.revoked_at.is_none() && !is_past(token.expires_at.as_deref());
        if !is_good {
            return Ok(None);
        }
        self.note_use(&token).await;
        Ok(Some(Access::Token(token)))
    }

    /// Returns whether a token, by its id, is neither expired nor revoked.
    pub(crate) async fn is_usable(&self, id: &str) -> Result<bool, StoreError> {
        let select = sqlx::query_as("SELECT expires_at, revoked_at FROM tokens WHERE id = $1").bind(id);
        let row: Option<(StoredTime, StoredTime)> =
            select.fetch_optional(&self.database.readers).await.map_err(|error| self.failed(error))?;
        Ok(row.is_some_and(|(expires_at, revoked_at)| is_valid(&expires_at, &revoked_at)))
    }

    /// Adds bytes to what a token uploaded today (UTC) and returns the sum, which is 2^63 − 1 at most.
    pub(crate) async fn count_upload(&self, token: &str, bytes: u64) -> Result<u64, StoreError> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut writing = self.database.write().await?;
        // A larger sum would not fit into the column, and the statement would fail.
        let insert = "INSERT INTO uploaded (token, day, bytes) VALUES ($1, $2, $3) \
            ON CONFLICT (token, day) DO UPDATE SET bytes = \
            CASE WHEN uploaded.bytes > 9223372036854775807 - excluded.bytes THEN 9223372036854775807 \
            ELSE uploaded.bytes + excluded.bytes END RETURNING bytes";
        let insert = sqlx::query_scalar(insert).bind(token).bind(today()).bind(bytes);
        let all: i64 = insert.fetch_one(&mut *writing).await.map_err(|error| self.failed(error))?;
        // PostgreSQL locks the row until the commit ends, so the uploads of a token would wait for the disk one after another. A count
        // that is lost with the power costs nobody a result.
        self.database.commit_without_sync(writing).await?;
        Ok(all.unsigned_abs())
    }

    /// Adds bytes to what a token uploaded today (UTC), unless the sum would exceed a limit; returns whether it did.
    pub(crate) async fn charge_upload(&self, token: &str, bytes: u64, most: u64) -> Result<bool, StoreError> {
        if bytes > most {
            return Ok(false);
        }
        let number = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut writing = self.database.write().await?;
        let insert = "INSERT INTO uploaded (token, day, bytes) VALUES ($1, $2, $3) \
            ON CONFLICT (token, day) DO UPDATE SET bytes = uploaded.bytes + excluded.bytes \
            WHERE uploaded.bytes <= $4 - excluded.bytes RETURNING bytes";
        let insert = sqlx::query_scalar(insert).bind(token).bind(today()).bind(number(bytes));
        let insert = insert.bind(number(most)).fetch_optional(&mut *writing).await;
        let all: Option<i64> = insert.map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(all.is_some())
    }

    /// Deletes what tokens uploaded on earlier days.
    pub(super) async fn forget_uploaded(&self) -> Result<(), StoreError> {
        // Yesterday stays: the clocks of several servers differ a little.
        let yesterday = time(Timestamp::now() - SignedDuration::from_hours(24))[..10].to_owned();
        let mut writing = self.database.write().await?;
        let delete = sqlx::query("DELETE FROM uploaded WHERE day < $1").bind(yesterday);
        delete.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }

    /// Creates a share link and returns it with its secret; none if its creator has this many active ones.
    pub(crate) async fn create_share(
        &self,
        runs: &[Uuid],
        created_by: &str,
        lifetime: SignedDuration,
        most: u64,
    ) -> Result<Option<NewShareLink>, StoreError> {
        let secret = secret(SHARE)?;
        let created = Timestamp::now();
        let share = ShareLink {
            id: Uuid::now_v7().to_string(),
            runs: runs.iter().map(Uuid::to_string).collect(),
            created_by: created_by.to_owned(),
            created_at: time(created),
            expires_at: time(created.checked_add(lifetime).unwrap_or(created)),
        };
        let mut writing = self.database.write_exclusive(&format!("share links of {created_by}")).await?;
        let select = "SELECT count(*) FROM shares WHERE created_by = $1 AND expires_at > $2";
        let select = sqlx::query_scalar(select).bind(created_by).bind(&share.created_at);
        let count: i64 = select.fetch_one(&mut *writing).await.map_err(|error| self.failed(error))?;
        if count.unsigned_abs() >= most {
            return Ok(None);
        }
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
        Ok(Some(NewShareLink { secret, share }))
    }

    /// Deletes expired share links.
    pub(super) async fn forget_shares(&self) -> Result<(), StoreError> {
        let mut writing = self.database.write().await?;
        let delete = sqlx::query("DELETE FROM shares WHERE expires_at <= $1").bind(now());
        delete.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }

    /// Returns the active share links, newest first: those of one creator, or all.
    pub(crate) async fn shares(&self, created_by: Option<&str>) -> Result<Vec<ShareLink>, StoreError> {
        let select = "SELECT shares.id, runs, created_by, shares.created_at, shares.expires_at, \
            tokens.id AS token_id, tokens.expires_at AS token_expires_at, revoked_at AS token_revoked_at \
            FROM shares LEFT JOIN tokens ON tokens.id = created_by WHERE shares.expires_at > $1 \
            ORDER BY shares.created_at DESC, shares.id DESC";
        let rows: Result<Vec<ShareRow>, _> =
            sqlx::query_as(select).bind(now()).fetch_all(&self.database.readers).await;
        let rows = rows.map_err(|error| self.failed(error))?.into_iter();
        // A share link is valid only as long as the token that created it.
        let valid = rows.filter(|row| is_valid(&row.token_expires_at, &row.token_revoked_at));
        let shares = valid.filter_map(share);
        Ok(shares.filter(|share| created_by.is_none_or(|creator| share.created_by == creator)).collect())
    }

    /// Revokes a share link, if it is active and of this creator or any; returns whether it was.
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

    /// Takes a deleted run out of all share links, so that none shows it if it is uploaded again. A link without
    /// runs is revoked.
    pub(super) async fn unshare(
        &self,
        writing: &mut Transaction<'static, Any>,
        run: &str,
    ) -> Result<(), StoreError> {
        let failed = |error| self.failed(error);
        let select =
            sqlx::query_as("SELECT id, runs FROM shares WHERE runs LIKE $1").bind(format!("%{run}%"));
        let links: Vec<(String, String)> = select.fetch_all(&mut **writing).await.map_err(failed)?;
        for (id, runs) in links {
            let left: Vec<&str> = runs.split(',').filter(|shown| *shown != run).collect();
            let changed = if left.is_empty() {
                sqlx::query("DELETE FROM shares WHERE id = $1").bind(id).execute(&mut **writing).await
            } else {
                let update = sqlx::query("UPDATE shares SET runs = $2 WHERE id = $1").bind(id);
                update.bind(left.join(",")).execute(&mut **writing).await
            };
            changed.map_err(failed)?;
        }
        Ok(())
    }

    /// Records when a token was used. If that fails, the request continues.
    async fn note_use(&self, token: &AccessToken) {
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
            tracing::warn!("the use of a token could not be recorded: {error}");
        }
    }
}

/// Returns the day in UTC, as the store writes it.
fn today() -> String {
    Timestamp::now().to_string()[..10].to_owned()
}

/// Returns a row's token and the hash of its secret. A token whose row is damaged is left out, and grants nothing.
fn token(row: TokenRow) -> Option<(AccessToken, String)> {
    let id = row.id.0.clone();
    let token = sound_token(row);
    if token.is_none() {
        warn_left_out("tokens", id.as_deref());
    }
    token
}

fn sound_token(row: TokenRow) -> Option<(AccessToken, String)> {
    let token = AccessToken {
        id: row.id.0?,
        name: row.name.0?,
        scope: TokenScope::from_id(&row.scope.0?)?,
        created_at: row.created_at.0?,
        expires_at: row.expires_at.0?,
        revoked_at: row.revoked_at.0?,
        // The next use records it again.
        last_used_at: row.last_used_at.0.flatten(),
        quota_bytes: row.quota_bytes.0?.map(i64::unsigned_abs),
    };
    Some((token, row.sha256.0?))
}

/// Returns a row's share link. One whose row is damaged is left out.
fn share(row: ShareRow) -> Option<ShareLink> {
    let id = row.id.0.clone();
    let share = sound_share(row);
    if share.is_none() {
        warn_left_out("shares", id.as_deref());
    }
    share
}

fn sound_share(row: ShareRow) -> Option<ShareLink> {
    let mut created_by = row.created_by.0?;
    let is_of_token = row.token_id.0.flatten().is_some();
    // Earlier versions recorded the plain name of a person.
    if !is_of_token && created_by != "owner" && !created_by.starts_with(LOGIN) {
        created_by.insert_str(0, LOGIN);
    }
    Some(ShareLink {
        id: row.id.0?,
        runs: row.runs.0?.split(',').map(str::to_owned).collect(),
        created_by,
        created_at: row.created_at.0?,
        expires_at: row.expires_at.0?,
    })
}

/// Returns whether a token with these times works. A time of the wrong type ends it.
fn is_valid(expires_at: &StoredTime, revoked_at: &StoredTime) -> bool {
    matches!((expires_at, revoked_at), (Typed(Some(expires_at)), Typed(Some(None))) if !is_past(expires_at.as_deref()))
}

/// Returns whether a time is over, if there is one. An unreadable time is over: otherwise a secret would never expire.
fn is_past(time: Option<&str>) -> bool {
    time.is_some_and(|time| match time.parse::<Timestamp>() {
        Ok(time) => time <= Timestamp::now(),
        Err(_) => {
            tracing::warn!(
                "a token or share link is expired, because the time of its expiry can't be read: {time:?}"
            );
            true
        }
    })
}

/// Compares two hashes in constant time, so that response times reveal nothing about a guess.
fn is_same(known: &str, hash: &str) -> bool {
    known.as_bytes().ct_eq(hash.as_bytes()).into()
}

fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret))
}

/// Returns a new secret with this prefix.
pub(crate) fn secret(prefix: &str) -> Result<String, getrandom::Error> {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut secret = prefix.to_owned();
    let mut bytes = [0_u8; 2 * RANDOM];
    while secret.len() < prefix.len() + RANDOM {
        getrandom::fill(&mut bytes)?;
        // Bytes from 248 (the largest multiple of 62) on are skipped, so that all digits are equally likely.
        let digits =
            bytes.iter().filter(|byte| **byte < 248).filter_map(|byte| DIGITS.get(usize::from(byte % 62)));
        let missing = prefix.len() + RANDOM - secret.len();
        secret.extend(digits.take(missing).map(|digit| char::from(*digit)));
    }
    Ok(secret)
}
