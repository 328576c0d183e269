//! The text around a marker that the reader of a format can see.

use memchr::{memchr2, memmem, memrchr2};

/// The longest text on either side of a marker that can belong to its record, in bytes. Known records are shorter than
/// 1 KiB.
pub(super) const REACH: usize = 4096;

/// A marker in its line. At most [`REACH`] bytes of the line are visible on either side, whichever way the log was split
/// into chunks.
pub(super) struct Hit<'a> {
    text: &'a [u8],
    /// The end of the previous marker; the text before it belongs to that record.
    floor: usize,
    start: usize,
    end: usize,
}

impl<'a> Hit<'a> {
    pub(super) fn new(text: &'a [u8], floor: usize, start: usize, length: usize) -> Self {
        Self { text, floor: floor.min(start), start, end: start + length }
    }

    /// Returns the rest of the line, up to the next marker of the same text, because a line can contain two records.
    /// If the end of the line is not visible, the line may be cut, so a number at the end is omitted.
    pub(super) fn after(&self) -> &'a [u8] {
        let (to, ended) = self.line_end();
        let rest = &self.text[self.end..to];
        if let Some(next) = memmem::find(rest, &self.text[self.start..self.end]) {
            return &rest[..next];
        }
        let number = rest.iter().rev().take_while(|byte| may_be_in_a_number(**byte)).count();
        if ended { rest } else { &rest[..rest.len() - number] }
    }

    /// Returns the text from the last `opening` before the marker, without it, to the end of [`after`](Self::after).
    pub(super) fn since(&self, opening: &[u8]) -> Option<&'a [u8]> {
        let from = self.line_start(self.floor);
        let opened = memmem::rfind(&self.text[from..self.start], opening)?;
        Some(&self.text[from + opened + opening.len()..self.end + self.after().len()])
    }

    /// Returns the text between the start of the line, or the previous marker, and the marker.
    pub(super) fn before(&self) -> &'a [u8] {
        &self.text[self.line_start(self.floor)..self.start]
    }

    /// Returns whether the end of the line is visible.
    pub(super) fn is_whole(&self) -> bool {
        self.line_end().1
    }

    /// Returns the whole line.
    pub(super) fn line(&self) -> &'a [u8] {
        &self.text[self.line_start(0)..self.line_end().0]
    }

    /// Returns the start of the line, or `floor` if that is later.
    fn line_start(&self, floor: usize) -> usize {
        let from = self.start.saturating_sub(REACH).max(floor);
        memrchr2(b'\n', b'\r', &self.text[from..self.start]).map_or(from, |at| from + at + 1)
    }

    /// Returns the end of the visible line, and whether the line ends there.
    fn line_end(&self) -> (usize, bool) {
        let to = self.text.len().min(self.start + REACH).max(self.end);
        let end = memchr2(b'\n', b'\r', &self.text[self.end..to]);
        (end.map_or(to, |at| self.end + at), end.is_some())
    }
}

fn may_be_in_a_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'+' | b'-' | b'e' | b'E')
}
