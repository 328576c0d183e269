//! Logs that arrive over a network that breaks: piece by piece, and each piece stays where it is until the log is whole.
//!
//! A piece is an object of its own, named by the run and by its place in the raw log, and compressed by itself: so any
//! of several servers can take the next one, and the whole is the pieces one after another.

use super::blobs::{BlobError, Blobs, LogHash, PIECE, hex};
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path as Key;
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

const FOLDER: &str = "arriving";

/// Who sends no more of a log for so long begins anew.
const ABANDONED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How hard zstd tries: more makes little smaller and takes much longer.
const LEVEL: i32 = 3;

/// The pieces of one run's log.
#[derive(Debug, Clone)]
pub(crate) struct Arriving {
    blobs: Blobs,
    run: Uuid,
    /// Where the next piece begins in the raw log.
    offset: u64,
}

#[derive(Debug)]
struct Part {
    offset: u64,
    end: u64,
    key: Key,
}

impl Arriving {
    /// The longest piece, before compression.
    pub(crate) const PIECE: usize = PIECE;

    pub(super) async fn open(blobs: Blobs, run: Uuid) -> Result<Arriving, BlobError> {
        let mut arriving = Arriving { blobs, run, offset: 0 };
        arriving.offset = arriving.parts().await?.last().map_or(0, |part| part.end);
        Ok(arriving)
    }

    /// How much of the raw log is here.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes the next piece. It is kept when this returns.
    pub(crate) async fn take(&mut self, piece: &[u8]) -> Result<(), BlobError> {
        if piece.is_empty() {
            return Ok(());
        }
        let packed = zstd::bulk::compress(piece, LEVEL).map_err(|error| self.torn(error))?;
        let end = self.offset + piece.len() as u64;
        let key = self.folder().join(format!("{:020}-{end:020}", self.offset));
        self.blobs.objects.put(&key, packed.into()).await.map_err(|error| self.blobs.failed(error))?;
        self.offset = end;
        Ok(())
    }

    /// Makes one blob of the pieces, if they are the log with this hash; otherwise they are thrown away.
    pub(super) async fn finish(&self, sha256: &LogHash) -> Result<(), BlobError> {
        let parts = self.parts().await?;
        let mut blob = self.blobs.begin(sha256);
        let mut hash = Sha256::new();
        for part in &parts {
            let found = self.blobs.objects.get(&part.key).await;
            let packed = match found {
                Ok(found) => found.bytes().await,
                Err(error) => Err(error),
            };
            let packed = packed.map_err(|error| self.blobs.failed(error))?;
            hash = self.hashed(hash, packed.clone()).await?;
            blob.write(packed).await?;
        }
        if parts.is_empty() {
            let nothing = zstd::bulk::compress(&[], LEVEL).map_err(|error| self.torn(error))?;
            blob.write(nothing.into()).await?;
        }
        let is = hex(&hash.finalize());
        if is != sha256.as_str() {
            blob.drop().await;
            self.clear().await?;
            let name = "what was sent".to_owned();
            return Err(BlobError::OtherLog { name, is, wanted: sha256.as_str().to_owned() });
        }
        blob.finish().await
    }

    /// Throws the pieces away.
    pub(crate) async fn clear(&self) -> Result<(), BlobError> {
        let folder = self.folder();
        let mut keys = self.blobs.objects.list(Some(&folder));
        while let Some(meta) = keys.try_next().await.map_err(|error| self.blobs.failed(error))? {
            match self.blobs.objects.delete(&meta.location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.blobs.failed(error)),
            }
        }
        Ok(())
    }

    /// Throws away the pieces of logs that nobody went on with.
    pub(super) async fn clear_abandoned(blobs: &Blobs) -> Result<(), BlobError> {
        let failed = |error| blobs.failed(error);
        let mut pieces = blobs.objects.list(Some(&Key::from(FOLDER)));
        while let Some(meta) = pieces.try_next().await.map_err(failed)? {
            let age = SystemTime::now().duration_since(meta.last_modified.into());
            if age.is_ok_and(|age| age > ABANDONED) {
                match blobs.objects.delete(&meta.location).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        Ok(())
    }

    /// The pieces that follow each other from the start, as far as any do.
    async fn parts(&self) -> Result<Vec<Part>, BlobError> {
        let listed = self.blobs.objects.list(Some(&self.folder()));
        let listed: Vec<_> = listed.try_collect().await.map_err(|error| self.blobs.failed(error))?;
        Ok(farthest(listed.into_iter().filter_map(|meta| read(meta.location)).collect()))
    }

    /// Hashing is work that would keep others waiting.
    async fn hashed(&self, mut hash: Sha256, packed: Bytes) -> Result<Sha256, BlobError> {
        let hashed = tokio::task::spawn_blocking(move || {
            hash.update(zstd::bulk::decompress(&packed, PIECE)?);
            Ok(hash)
        });
        hashed.await.map_err(io::Error::other).and_then(|hash| hash).map_err(|error| self.torn(error))
    }

    fn torn(&self, error: io::Error) -> BlobError {
        BlobError::Read { path: PathBuf::from(format!("{FOLDER}/{}", self.run)), error }
    }

    fn folder(&self) -> Key {
        Key::from_iter([FOLDER.to_owned(), self.run.to_string()])
    }
}

/// The chain of pieces that reaches farthest. Where a connection broke, whoever took from it may still have been writing
/// while its successor went on: then pieces overlap, and some lead nowhere.
fn farthest(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_unstable_by_key(|part| Reverse(part.offset));
    // By where a piece begins: how far one gets from there, and by which piece.
    let mut best: HashMap<u64, (u64, usize)> = HashMap::new();
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| part.end > part.offset) {
        let reach = best.get(&part.end).map_or(part.end, |(reach, _)| *reach);
        let known = best.entry(part.offset).or_insert((reach, index));
        if reach > known.0 {
            *known = (reach, index);
        }
    }
    let mut next = 0;
    let mut chain = Vec::new();
    while let Some((_, index)) = best.get(&next) {
        chain.push(*index);
        next = parts[*index].end;
    }
    let mut parts: Vec<Option<Part>> = parts.into_iter().map(Some).collect();
    chain.into_iter().filter_map(|index| parts[index].take()).collect()
}

fn read(key: Key) -> Option<Part> {
    let (offset, end) = key.filename()?.split_once('-')?;
    let (offset, end) = (offset.parse().ok()?, end.parse().ok()?);
    Some(Part { offset, end, key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(pieces: &[(u64, u64)]) -> Vec<u64> {
        let part = |(offset, end): &(u64, u64)| Part { offset: *offset, end: *end, key: Key::default() };
        farthest(pieces.iter().map(part).collect()).iter().map(|part| part.end).collect()
    }

    #[test]
    fn a_piece_that_leads_nowhere_is_passed_by() {
        // The one that was cut off wrote on to 16 after its successor had begun at 8.
        assert_eq!(ends(&[(0, 8), (8, 16), (8, 12), (12, 20)]), [8, 12, 20]);
        assert_eq!(ends(&[(0, 8), (8, 10), (8, 16), (16, 18)]), [8, 16, 18]);
        assert_eq!(ends(&[(0, 4), (5, 9)]), [4]);
        assert_eq!(ends(&[(0, 0), (3, 9)]), [0; 0]);
        assert_eq!(ends(&[]), [0; 0]);
    }

    proptest! {
        #[test]
        fn no_stray_piece_hides_a_whole_chain(
            lengths in prop::collection::vec(1_u64..9, 1..12),
            strays in prop::collection::vec((0_u64..60, 1_u64..20), 0..12),
        ) {
            let mut end = 0;
            let mut pieces: Vec<_> = lengths.iter().map(|length| { end += length; (end - length, end) }).collect();
            pieces.extend(strays.iter().map(|(offset, length)| (*offset, offset + length)));
            let chain = ends(&pieces);
            prop_assert!(*chain.last().unwrap() >= end);
            prop_assert!(chain.is_sorted());
        }
    }
}
