//! Frames, which separate a script's output from that of the login shell.

/// The marks of one execution. They are random, so no output contains them by chance.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    nonce: String,
}

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamProgress {
    /// The script has not started.
    Before,
    /// The script has started.
    Within,
    /// The script ended with this exit code.
    Ended(i32),
}

impl Frame {
    pub(super) fn new() -> Frame {
        Frame { nonce: format!("{:032x}", fastrand::u128(..)) }
    }

    /// Returns what is printed before the script's output, as a format of `printf`.
    pub(super) fn begin(&self) -> String {
        format!(r"\n{} begin\n", self.nonce)
    }

    /// Returns what is printed after it, as a format with the exit code as argument.
    pub(super) fn end(&self) -> String {
        format!(r"\n{} end %s\n", self.nonce)
    }
}

/// A stream with frames, as it arrives.
#[derive(Debug)]
pub(super) struct FramedStream {
    begin: Vec<u8>,
    end: Vec<u8>,
    bytes: Vec<u8>,
    /// Where the script's output begins and ends in the bytes.
    from: Option<usize>,
    to: Option<usize>,
    code: Option<i32>,
    /// No mark begins before this position.
    searched: usize,
}

impl FramedStream {
    pub(super) fn new(frame: &Frame) -> FramedStream {
        FramedStream {
            begin: format!("\n{} begin\n", frame.nonce).into_bytes(),
            end: format!("\n{} end ", frame.nonce).into_bytes(),
            bytes: Vec::new(),
            from: None,
            to: None,
            code: None,
            searched: 0,
        }
    }

    /// Adds bytes that arrived.
    pub(super) fn take(&mut self, bytes: &[u8]) -> StreamProgress {
        self.bytes.extend_from_slice(bytes);
        if self.from.is_none() {
            self.from = self.search(&self.begin).map(|at| at + self.begin.len());
            self.searched = self.from.unwrap_or(self.come_to(&self.begin));
        }
        if self.from.is_some() && self.to.is_none() {
            self.to = self.search(&self.end);
            self.searched = self.to.unwrap_or(self.come_to(&self.end));
        }
        if let Some(to) = self.to.filter(|_| self.code.is_none()) {
            let code = &self.bytes[to + self.end.len()..];
            let line = code.iter().position(|byte| *byte == b'\n').map(|end| &code[..end]);
            self.code = line.and_then(|line| std::str::from_utf8(line).ok()?.parse().ok());
        }
        self.progress()
    }

    pub(super) fn progress(&self) -> StreamProgress {
        match (self.from, self.code) {
            (None, _) => StreamProgress::Before,
            (Some(_), None) => StreamProgress::Within,
            (Some(_), Some(code)) => StreamProgress::Ended(code),
        }
    }

    /// Returns the number of bytes that arrived.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the script's output; before the script starts, that of the login shell.
    pub(super) fn into_output(mut self) -> Vec<u8> {
        let from = self.from.unwrap_or(0);
        self.bytes.truncate(self.to.unwrap_or(self.bytes.len()));
        self.bytes.drain(..from);
        self.bytes
    }

    fn search(&self, mark: &[u8]) -> Option<usize> {
        let ahead = &self.bytes[self.searched..];
        ahead.windows(mark.len()).position(|window| window == mark).map(|at| self.searched + at)
    }

    /// Returns the first position where a mark may begin that has not arrived in full.
    fn come_to(&self, mark: &[u8]) -> usize {
        (self.bytes.len() + 1).saturating_sub(mark.len()).max(self.searched)
    }
}
