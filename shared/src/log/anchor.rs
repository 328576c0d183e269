//! What the parser looks for, and the part of the log around it that a reader may see.

use memchr::{memchr2, memmem, memrchr2};

use super::{checkpoint, failure, maxtext, megatron_bridge, nemo1, nemo2, paxml, torchtitan};

/// How far from its anchor a record may reach, to either side. The longest known records stay under 1 KiB.
pub(super) const REACH: usize = 4096;

/// What an anchor announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Nemo1,
    Nemo2,
    Iteration,
    Utilisation,
    Memory,
    Torchtitan,
    Maxtext,
    Paxml,
    Checkpoint,
    Failure,
    Ended,
    Profiled,
    Traced,
}

/// Every anchor.
pub(super) fn all() -> Vec<(&'static [u8], Anchor)> {
    let mut anchors = vec![
        (nemo1::ANCHOR, Anchor::Nemo1),
        (nemo2::ANCHOR, Anchor::Nemo2),
        (megatron_bridge::ITERATION, Anchor::Iteration),
        (megatron_bridge::UTILISATION, Anchor::Utilisation),
        (megatron_bridge::MEMORY, Anchor::Memory),
        (torchtitan::ANCHOR, Anchor::Torchtitan),
        (maxtext::ANCHOR, Anchor::Maxtext),
        (paxml::ANCHOR, Anchor::Paxml),
        (b"`Trainer.fit` stopped: ", Anchor::Ended),
        (b"[after training is done]", Anchor::Ended),
        (b"Training completed", Anchor::Ended),
        (b"Capture range started in the application", Anchor::Profiled),
        (b"====== Start nsys profiling ======", Anchor::Profiled),
        (b": opCount ", Anchor::Traced),
    ];
    anchors.extend(checkpoint::ANCHORS.iter().map(|text| (*text, Anchor::Checkpoint)));
    anchors.extend(failure::SIGNATURES.iter().map(|(text, _)| (*text, Anchor::Failure)));
    anchors
}

/// An anchor in its line. What it shows depends on the log alone, never on how the log was cut into chunks: the
/// line, but at most [`REACH`] to either side.
pub(super) struct Hit<'a> {
    text: &'a [u8],
    /// Where the previous anchor ended: nothing before it belongs to this one.
    floor: usize,
    start: usize,
    end: usize,
}

impl<'a> Hit<'a> {
    pub(super) fn new(text: &'a [u8], floor: usize, start: usize, length: usize) -> Self {
        Self { text, floor: floor.min(start), start, end: start + length }
    }

    /// The rest of the line behind the anchor, up to the next of its kind: two records may be glued into a line.
    /// Where the line is not seen to end, it may have been cut, so a number that it ends with is left out.
    pub(super) fn after(&self) -> &'a [u8] {
        let (to, ended) = self.line_end();
        let rest = &self.text[self.end..to];
        if let Some(next) = memmem::find(rest, &self.text[self.start..self.end]) {
            return &rest[..next];
        }
        let number = rest.iter().rev().take_while(|byte| may_be_in_a_number(**byte)).count();
        if ended { rest } else { &rest[..rest.len() - number] }
    }

    /// From the last `opening` before the anchor, which is left out, to where [`after`](Self::after) ends.
    pub(super) fn since(&self, opening: &[u8]) -> Option<&'a [u8]> {
        let from = self.line_start(self.floor);
        let opened = memmem::rfind(&self.text[from..self.start], opening)?;
        Some(&self.text[from + opened + opening.len()..self.end + self.after().len()])
    }

    /// The whole line.
    pub(super) fn line(&self) -> &'a [u8] {
        &self.text[self.line_start(0)..self.line_end().0]
    }

    /// Where the line starts, or `floor` if that is later.
    fn line_start(&self, floor: usize) -> usize {
        let from = self.start.saturating_sub(REACH).max(floor);
        memrchr2(b'\n', b'\r', &self.text[from..self.start]).map_or(from, |at| from + at + 1)
    }

    /// How far the line goes, and whether it ends there.
    fn line_end(&self) -> (usize, bool) {
        let to = self.text.len().min(self.start + REACH).max(self.end);
        let end = memchr2(b'\n', b'\r', &self.text[self.end..to]);
        (end.map_or(to, |at| self.end + at), end.is_some())
    }
}

fn may_be_in_a_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'+' | b'-' | b'e' | b'E')
}
