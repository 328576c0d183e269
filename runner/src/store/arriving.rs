//! Logs that are being uploaded, in pieces that survive broken connections.
//!
//! Each piece is a separate object, named by the run and its position in the raw log, and compressed
//! separately. So any of several servers can receive the next piece, and the complete log is the
//! concatenation of all pieces.

use super::blobs::{BlobError, Blobs, LogHash, PIECE, hex};
use super::pack;
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

/// The time after which the pieces of an unfinished upload are deleted.
const ABANDONED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The least bytes that a piece occupies.
const BLOCK: u64 = 4 << 10;

/// The uploaded pieces of a run's log.
#[derive(Debug, Clone)]
pub(crate) struct Arriving {
    blobs: Blobs,
    run: Uuid,
    /// The offset of the next piece in the raw log.
    offset: u64,
    /// The bytes that pieces stored since it was opened occupy.
    stored: u64,
}

/// A piece of a log, as it is stored.
#[derive(Debug)]
pub(crate) struct PackedPiece {
    packed: Vec<u8>,
    /// The number of its raw bytes.
    raw: u64,
}

impl PackedPiece {
    /// Returns the bytes that it occupies. A file occupies a block of the disk at least, and many small pieces would not count
    /// otherwise.
    pub(crate) fn size(&self) -> u64 {
        (self.packed.len() as u64).max(BLOCK)
    }
}

#[derive(Debug)]
struct Part {
    offset: u64,
    end: u64,
    key: Key,
}

impl Arriving {
    /// The largest piece in bytes, before compression.
    pub(crate) const PIECE: usize = PIECE;

    pub(super) async fn open(blobs: Blobs, run: Uuid) -> Result<Arriving, BlobError> {
        let mut arriving = Arriving { blobs, run, offset: 0, stored: 0 };
        arriving.offset = arriving.parts().await?.last().map_or(0, |part| part.end);
        Ok(arriving)
    }

    /// Returns the number of raw bytes that were uploaded.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the bytes that the pieces stored since it was opened occupy.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// Prepares the next piece of the raw log, to be stored.
    pub(crate) fn pack(&self, piece: &[u8]) -> Result<PackedPiece, BlobError> {
        let packed = pack(piece).map_err(|error| self.torn(error))?;
        Ok(PackedPiece { packed, raw: piece.len() as u64 })
    }

    /// Stores the next piece.
    pub(crate) async fn put(&mut self, piece: PackedPiece) -> Result<(), BlobError> {
        let (size, end) = (piece.size(), self.offset + piece.raw);
        let key = self.folder().join(format!("{:020}-{end:020}", self.offset));
        let put = self.blobs.objects.put(&key, piece.packed.into()).await;
        put.map_err(|error| self.blobs.failed(error))?;
        self.offset = end;
        self.stored += size;
        Ok(())
    }

    /// Joins the pieces into a blob if they have this hash; otherwise deletes them.
    ///
    /// # Errors
    /// [`BlobError::PiecesGone`] if another client deletes the pieces meanwhile; others if they don't have the hash, or can't be
    /// read or written.
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
            let packed = match packed {
                Ok(packed) => packed,
                Err(object_store::Error::NotFound { .. }) => {
                    blob.drop().await;
                    return Err(BlobError::PiecesGone);
                }
                Err(error) => return Err(self.blobs.failed(error)),
            };
            hash = self.hashed(hash, packed.clone()).await?;
            blob.write(packed).await?;
        }
        if parts.is_empty() {
            let nothing = pack(&[]).map_err(|error| self.torn(error))?;
            blob.write(nothing.into()).await?;
        }
        let is = hex(&hash.finalize());
        if is != sha256.as_str() {
            blob.drop().await;
            self.clear().await?;
            let name = "The upload".to_owned();
            return Err(BlobError::OtherLog { name, is, wanted: sha256.as_str().to_owned() });
        }
        blob.finish().await
    }

    /// Deletes the pieces.
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

    /// Deletes the pieces of abandoned uploads.
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

    /// Returns the longest chain of adjacent pieces from the start.
    async fn parts(&self) -> Result<Vec<Part>, BlobError> {
        let listed = self.blobs.objects.list(Some(&self.folder()));
        let listed: Vec<_> = listed.try_collect().await.map_err(|error| self.blobs.failed(error))?;
        Ok(farthest(listed.into_iter().filter_map(|meta| read(meta.location)).collect()))
    }

    /// Adds a piece to a hash, on the blocking pool.
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

/// Returns the chain of pieces that reaches farthest. After a broken connection, its server may still write
/// pieces while the next one continues: then pieces overlap, and some have no successor.
fn farthest(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_unstable_by_key(|part| Reverse(part.offset));
    // By the offset of a piece: the farthest end from there, and the piece that leads to it.
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
    fn pieces_without_a_successor_are_skipped() {
        // The interrupted server wrote up to 16 after the next one had begun at 8.
        assert_eq!(ends(&[(0, 8), (8, 16), (8, 12), (12, 20)]), [8, 12, 20]);
        assert_eq!(ends(&[(0, 8), (8, 10), (8, 16), (16, 18)]), [8, 16, 18]);
        assert_eq!(ends(&[(0, 4), (5, 9)]), [4]);
        assert_eq!(ends(&[(0, 0), (3, 9)]), [0; 0]);
        assert_eq!(ends(&[]), [0; 0]);
    }

    proptest! {
        #[test]
        fn stray_pieces_never_shorten_a_complete_chain(
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
