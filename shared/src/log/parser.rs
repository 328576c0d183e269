//! The parser: finds the markers in the bytes and passes each to the reader of its format.
//!
//! The buffer keeps the end of the log: the last bytes, where a marker may lack the rest of its line, and before them the
//! text that such a marker can refer to.

use memchr::memchr_iter;

use super::content::Head;
use super::found::Found;
use super::hit::{Hit, REACH};
use super::marker::{self, Marker};
use super::search::Search;
use super::{Log, checkpoint, stated, torchtitan};

/// The number of bytes to search at a time. It fits a fast cache; larger pieces are not faster.
const PIECE: usize = 64 * 1024;

/// Reads a whole log that is in memory.
#[must_use]
pub fn parse(bytes: &[u8]) -> Log {
    let mut parser = Parser::new();
    parser.feed(bytes);
    parser.finish()
}

/// Reads a log in chunks. To get the log so far, [finish](Parser::finish) a clone.
///
/// ```
/// let mut parser = trainplan_shared::log::Parser::new();
/// parser.feed(b"Training epoch 0, iteration 0/49 | train_step_tim");
/// parser.feed(b"ing in s: 12.39 | consumed_samples: 128\n");
/// assert_eq!(parser.finish().steps.step_time_s.get(0), Some(12.39));
/// ```
#[derive(Clone)]
pub struct Parser {
    search: Search,
    buffer: Vec<u8>,
    /// Where the buffer starts in the log.
    offset: u64,
    /// How many lines end in the log before `counted`, which is in the buffer.
    lines: u64,
    counted: usize,
    /// Up to where the buffer has been searched.
    searched: usize,
    /// Where the last marker ended in the buffer.
    floor: usize,
    head: Head,
    found: Found,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// Returns a parser at the start of a log.
    #[must_use]
    pub fn new() -> Self {
        Self {
            search: Search::new(marker::all()),
            buffer: Vec::new(),
            offset: 0,
            lines: 0,
            counted: 0,
            searched: 0,
            floor: 0,
            head: Head::default(),
            found: Found::default(),
        }
    }

    /// Reads the next bytes of the log.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.head.feed(bytes);
        for piece in bytes.chunks(PIECE) {
            self.buffer.extend_from_slice(piece);
            if self.buffer.len() < PIECE {
                continue;
            }
            self.search_to(self.buffer.len() - REACH);
            let settled = self.searched - REACH.min(self.searched);
            self.count_lines(settled);
            self.buffer.drain(..settled);
            self.offset += settled as u64;
            self.searched -= settled;
            self.floor = self.floor.saturating_sub(settled);
            self.counted -= settled;
        }
    }

    /// Returns the log. If it does not end with a line end, it may have been cut, so a number that it ends with
    /// is not taken for one.
    #[must_use]
    pub fn finish(mut self) -> Log {
        let end = self.buffer.len();
        self.search_to(end);
        self.count_lines(end);
        let unfinished = self.buffer.last().is_some_and(|byte| *byte != b'\n');
        self.found.settle(self.offset + end as u64, self.lines + u64::from(unfinished), self.head.content())
    }

    /// Searches the buffer for markers that start before `to`.
    fn search_to(&mut self, to: usize) {
        while let Some((at, text, marker)) = self.search.next(&self.buffer, self.searched, to) {
            if marker == Marker::Failure {
                self.count_lines(at);
            }
            let hit = Hit::new(&self.buffer, self.floor, at, text.len());
            let offset = self.offset + at as u64;
            match marker {
                Marker::Failure => self.found.failures.note(&hit, self.lines + 1, offset),
                Marker::Checkpoint => checkpoint::note(&hit, text, &mut self.found.checkpoints),
                Marker::Nccl => self.found.nccl.note(&hit, text, offset),
                Marker::Ended => self.found.ended = true,
                Marker::Arguments => self.found.arguments.open(),
                Marker::Argument => self.found.arguments.note(&hit),
                Marker::EndOfArguments => self.found.arguments.close(),
                Marker::PaddedVocabulary => self.found.arguments.note_vocabulary(&hit),
                // The last one counts: a trace of the script's commands shows the line before.
                Marker::Scenario => {
                    self.found.scenario = stated::scenario(&hit).or_else(|| self.found.scenario.take());
                }
                Marker::TorchtitanBatch => {
                    self.found.batch = torchtitan::batch(&hit).or(self.found.batch);
                }
                Marker::TorchtitanSetup => self.found.setup.note(&hit, text),
                Marker::Traced => {
                    self.found.traced = true;
                    self.found.nccl.note_call(&hit);
                }
                // Finding one is enough.
                Marker::Profiled => {
                    self.found.profiled = true;
                    self.search.forget(marker);
                }
                _ => self.found.note(marker, &hit, offset),
            }
            self.floor = at + text.len();
            self.searched = self.floor;
        }
        self.searched = self.searched.max(to);
    }

    /// Counts the lines that end before `to`.
    fn count_lines(&mut self, to: usize) {
        if let Some(uncounted) = self.buffer.get(self.counted..to) {
            self.lines += memchr_iter(b'\n', uncounted).count() as u64;
            self.counted = to;
        }
    }
}
