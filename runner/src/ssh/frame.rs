//! What a script printed, told from what the login shell printed around it.

/// The marks of one run. No output contains them by chance.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    nonce: String,
}

/// How far a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing of the script was seen.
    Before,
    /// The script has begun.
    Within,
    /// It ended with this code.
    Ended(i32),
}

impl Frame {
    pub(super) fn new() -> Frame {
        Frame { nonce: format!("{:032x}", fastrand::u128(..)) }
    }

    /// What the script prints before its output, as a format of `printf`.
    pub(super) fn begin(&self) -> String {
        format!(r"\n{} begin\n", self.nonce)
    }

    /// What it prints after, with its exit code as argument.
    pub(super) fn end(&self) -> String {
        format!(r"\n{} end %s\n", self.nonce)
    }
}

/// A stream as it arrives.
#[derive(Debug)]
pub(super) struct Gathered {
    begin: Vec<u8>,
    end: Vec<u8>,
    bytes: Vec<u8>,
    /// Where the script's own output begins and ends in them.
    from: Option<usize>,
    to: Option<usize>,
    code: Option<i32>,
    /// Up to where no mark can begin.
    searched: usize,
}

impl Gathered {
    pub(super) fn new(frame: &Frame) -> Gathered {
        Gathered {
            begin: format!("\n{} begin\n", frame.nonce).into_bytes(),
            end: format!("\n{} end ", frame.nonce).into_bytes(),
            bytes: Vec::new(),
            from: None,
            to: None,
            code: None,
            searched: 0,
        }
    }

    /// Takes what came.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Progress {
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

    pub(super) fn progress(&self) -> Progress {
        match (self.from, self.code) {
            (None, _) => Progress::Before,
            (Some(_), None) => Progress::Within,
            (Some(_), Some(code)) => Progress::Ended(code),
        }
    }

    /// How much came in all.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What the script itself printed; before it begins, what the login shell did.
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

    /// The last place where a mark of which only a part has come may begin.
    fn come_to(&self, mark: &[u8]) -> usize {
        (self.bytes.len() + 1).saturating_sub(mark.len()).max(self.searched)
    }
}
