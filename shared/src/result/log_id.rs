//! The ids of results that were made from logs.

use uuid::{Builder, Uuid};

/// Returns the id of a log's result outside of campaigns, from the log's SHA-256 in hexadecimal; none if the text is not one.
#[must_use]
pub fn id_of_log(sha256: &str) -> Option<Uuid> {
    let is_hash = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    let start = u128::from_str_radix(sha256.get(..32).filter(|_| is_hash)?, 16).ok()?;
    Some(Builder::from_custom_bytes(start.to_be_bytes()).into_uuid())
}

/// Returns the first bytes of the hash as a UUID of version 8, the custom version of RFC 9562.
pub(super) fn id_of(hash: &[u8; 32]) -> Uuid {
    let mut start = [0; 16];
    start.copy_from_slice(&hash[..16]);
    Builder::from_custom_bytes(start).into_uuid()
}
