//! The first date and time that a log prints at the start of a line: when its run began, by the log's own clock.

use super::admission::is_time;
use memchr::memchr2;

/// The part of a line that is searched, in bytes. A rank, a level or a bracket may be before the time.
const REACH: usize = 64;

/// The part of a log that is searched, in bytes.
const MOST: usize = 4 << 20;

/// The form of a time: `2026-05-10 10:00:12`, also with a `T`.
const FORM: &[u8] = b"0000-00-00 00:00:00";

/// Searches a log in chunks of any size.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstTime {
    /// The start of the current line.
    line: Vec<u8>,
    /// How many bytes were searched.
    searched: usize,
    found: Option<String>,
}

impl FirstTime {
    /// Reads the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = &bytes[..bytes.len().min(MOST - self.searched)];
        self.searched += rest.len();
        while self.found.is_none() && !rest.is_empty() {
            let end = memchr2(b'\n', b'\r', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            self.line.extend_from_slice(&line[..line.len().min(REACH - self.line.len())]);
            let Some(end) = end else { return };
            self.found = time_in(&self.line);
            self.line.clear();
            rest = &rest[end + 1..];
        }
    }

    /// Returns the time as RFC 3339. A log rarely names its time zone, so the time is taken as UTC.
    pub(super) fn settle(self) -> Option<String> {
        self.found.or_else(|| time_in(&self.line))
    }
}

/// Returns the first valid time in the start of a line.
fn time_in(line: &[u8]) -> Option<String> {
    let is_like = |text: &[u8]| {
        text.iter().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b' ' => matches!(byte, b' ' | b'T'),
            form => byte == form,
        })
    };
    let is_digit =
        |place: Option<usize>| place.and_then(|place| line.get(place)).is_some_and(u8::is_ascii_digit);
    let times = line.windows(FORM.len()).enumerate().filter(|&(place, text)| {
        // Digits before or after it belong to another number.
        is_like(text) && !is_digit(place.checked_sub(1)) && !is_digit(place.checked_add(FORM.len()))
    });
    let mut times = times.filter_map(|(_, text)| {
        let text = std::str::from_utf8(text).ok()?;
        Some(format!("{}Z", text.replace(' ', "T")))
    });
    times.find(|time| is_time(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(log: &str) -> Option<String> {
        let mut whole = FirstTime::default();
        whole.feed(log.as_bytes());
        let mut pieces = FirstTime::default();
        log.as_bytes().iter().for_each(|byte| pieces.feed(&[*byte]));
        let found = whole.settle();
        assert_eq!(found, pieces.settle(), "{log}");
        found
    }

    #[test]
    fn the_first_full_time_at_the_start_of_a_line_counts() {
        for (log, time) in [
            (
                " [2026-05-10 10:00:12] iteration 1/50 |\n [2026-05-10 10:00:24] iteration",
                Some("2026-05-10T10:00:12Z"),
            ),
            ("arguments\r\n0: [NeMo I 2025-04-02 03:04:05 log:9] rank 0\n", Some("2025-04-02T03:04:05Z")),
            ("[titan] 2025-01-02T03:04:05,678 - root - INFO", Some("2025-01-02T03:04:05Z")),
            // Neither a day that does not exist nor a part of a longer number is a time.
            ("2025-02-30 03:04:05\n2025-02-28 03:04:05\n", Some("2025-02-28T03:04:05Z")),
            ("92025-02-28 03:04:05\n2025-02-28 03:04:056\n", None),
            ("10:00:12 step 1\n2026-05-10 step 2\n", None),
            ("", None),
        ] {
            assert_eq!(first(log).as_deref(), time, "{log}");
        }
        // Dates further on in a line are part of a message.
        assert_eq!(first(&format!("{}2026-05-10 10:00:12\n", "x".repeat(REACH))), None);
    }

    #[test]
    fn only_the_start_of_a_log_is_searched() {
        let time = "2026-05-10 10:00:12\n";
        assert_eq!(
            first(&format!("{}{time}", "x\n".repeat(MOST / 2 - 10))).as_deref(),
            Some("2026-05-10T10:00:12Z")
        );
        assert_eq!(first(&format!("{}{time}", "x\n".repeat(MOST / 2))), None);
    }
}
