//! The kind of a file, judged by its beginning. It explains why nothing was found in the file.

use serde::{Deserialize, Serialize};

/// How much of the start is looked at.
const HEAD: usize = 1024;

/// What kind of file a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// No bytes.
    Empty,
    /// What a log should be.
    Text,
    /// Text in UTF-16, as some Windows tools write it.
    Utf16,
    /// Compressed by gzip.
    Gzip,
    /// Compressed by zstd.
    Zstd,
    /// No text.
    Binary,
}

impl Content {
    /// Judges a file by its start.
    fn of(head: &[u8]) -> Self {
        match head {
            [] => Self::Empty,
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Self::Utf16,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ if head.contains(&0) => Self::Binary,
            _ => Self::Text,
        }
    }
}

/// The start of a log, kept until there is enough of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Head(Vec<u8>);

impl Head {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let missing = HEAD - self.0.len();
        self.0.extend_from_slice(&bytes[..missing.min(bytes.len())]);
    }

    pub(super) fn content(&self) -> Content {
        Content::of(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_tells() {
        for (head, content) in [
            (&b""[..], Content::Empty),
            (b"Training", Content::Text),
            (b"\xff\xfeT\0", Content::Utf16),
            (b"\x1f\x8b\x08", Content::Gzip),
            (b"\x28\xb5\x2f\xfd\0", Content::Zstd),
            (b"\x7fELF\0", Content::Binary),
            (b"caf\xe9", Content::Text),
        ] {
            let mut kept = Head::default();
            head.iter().for_each(|byte| kept.feed(&[*byte]));
            assert_eq!(kept.content(), content);
        }
    }
}
