//! What a store accepts of a result: every text and list has a maximum, and every figure makes sense.

use super::{CampaignRun, Comparability, RunResult, SlurmJob};
use crate::estimate::Interval;
use crate::field::Field;
use crate::log::{
    FIGURES, Failure, LONGEST_HOST, MOST_CALL_KINDS, MOST_LISTED, MOST_LISTED_HOSTS, MOST_NETWORKS,
    MOST_SIZES, MOST_UNFINISHED, Nccl, STEP_TIMES, UnfinishedCommunicator,
};
use crate::units::group_digits;
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use thiserror::Error;

/// The most bytes of a name, such as a campaign's.
pub const LONGEST_NAME: usize = 200;

/// The most bytes of a path or of a scenario's field.
pub const LONGEST_PATH: usize = 4096;

/// The most bytes of a sentence or of a list of nodes.
const LONGEST_SENTENCE: usize = 8192;

/// The most bytes of a whole scenario: of all its fields, or as the query of a share link.
pub const LONGEST_SCENARIO: usize = 16_384;

/// A result that a store does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} {what}.")]
pub struct InvalidResult {
    /// The field's path in the result file.
    pub field: Cow<'static, str>,
    /// What is wrong with it, as the rest of a sentence.
    pub what: String,
}

/// The largest accepted size of a field of a result.
#[derive(Debug)]
pub struct Maximum {
    /// The field's path in the result file.
    pub field: &'static str,
    /// The largest size.
    pub most: usize,
    /// What is counted: bytes, or the items of a list.
    pub unit: &'static str,
    /// Returns the largest size in a result.
    size: fn(&RunResult) -> usize,
}

macro_rules! maxima {
    ($($field:literal: $most:expr, $unit:literal, $size:expr;)+) => {
        &[$(Maximum { field: $field, most: $most, unit: $unit, size: $size }),+]
    };
}

/// The largest accepted size of each text and list of a result.
pub const MAXIMA: &[Maximum] = maxima! {
    "source.path": LONGEST_PATH, "bytes", |run| run.source.path.len();
    "source.written_at": LONGEST_NAME, "bytes", |run| longest(&run.source.written_at);
    "source.began_at": LONGEST_NAME, "bytes", |run| longest(&run.source.began_at);
    "name.experiment": LONGEST_PATH, "bytes", |run| run.name.experiment.len();
    "name.model": LONGEST_NAME, "bytes", |run| longest(&run.name.model);
    "name.size": LONGEST_NAME, "bytes", |run| longest(&run.name.size);
    "name.dtype": LONGEST_NAME, "bytes", |run| longest(&run.name.dtype);
    "identity.scenario.recipe": LONGEST_NAME, "bytes", |run| {
        run.identity.scenario.get(Field::Recipe).map_or(0, str::len)
    };
    "identity.scenario": LONGEST_SCENARIO, "bytes", |run| {
        run.identity.scenario.iter().map(|(_, text)| text.len()).sum()
    };
    "identity.doubts": 100, "items", |run| run.identity.doubts.len();
    "identity.doubts[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.identity.doubts);
    "identity.conflicts": 100, "items", |run| run.identity.conflicts.len();
    "identity.conflicts[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.identity.conflicts);
    "comparable.reasons": 100, "items", |run| run.comparable.reasons.len();
    "comparable.reasons[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.comparable.reasons);
    "log.steps.label": 1_000_000, "items", |run| run.log.steps.len();
    "log.not_finite": 10, "items", |run| run.log.not_finite.len();
    "log.checkpoints": 100_000, "items", |run| run.log.checkpoints.len();
    "log.failures": 1000, "items", |run| run.log.failures.len();
    "log.failures[].ranks": 1000, "items", |run| {
        run.log.failures.iter().map(|failure| failure.ranks.len()).max().unwrap_or_default()
    };
    "log.failures[].text": LONGEST_SENTENCE, "bytes", |run| {
        longest(run.log.failures.iter().map(|failure| &failure.text))
    };
    "log.nccl.communicators": MOST_SIZES, "items", |run| nccl(run).map_or(0, |nccl| nccl.communicators.len());
    "log.nccl.unfinished": MOST_UNFINISHED, "items", |run| unfinished(run).len();
    "log.nccl.unfinished[].waiting": MOST_LISTED, "items", |run| {
        unfinished(run).iter().map(|one| one.waiting.len()).max().unwrap_or_default()
    };
    "log.nccl.unfinished[].missing": MOST_LISTED, "items", |run| {
        unfinished(run).iter().map(|one| one.missing.len()).max().unwrap_or_default()
    };
    "log.nccl.unfinished[].hosts": MOST_LISTED_HOSTS, "items", |run| {
        unfinished(run).iter().map(|one| one.hosts.len()).max().unwrap_or_default()
    };
    "log.nccl.unfinished[].hosts[]": LONGEST_HOST, "bytes", |run| {
        longest(unfinished(run).iter().flat_map(|one| &one.hosts))
    };
    "log.nccl.networks": MOST_NETWORKS, "items", |run| nccl(run).map_or(0, |nccl| nccl.networks.len());
    "log.nccl.networks[].name": LONGEST_NAME, "bytes", |run| {
        longest(nccl(run).into_iter().flat_map(|nccl| &nccl.networks).map(|network| &network.name))
    };
    "log.nccl.calls.kinds": MOST_CALL_KINDS, "items", |run| {
        nccl(run).and_then(|nccl| nccl.calls.as_ref()).map_or(0, |calls| calls.kinds.len())
    };
    "job.parts": 1000, "items", |run| run.job.parts.len();
    "job.parts[].name": LONGEST_NAME, "bytes", |run| longest(run.job.parts.iter().map(|part| &part.name));
    "job.failures": 1000, "items", |run| run.job.failures.len();
    "job.failures[].ranks": 1000, "items", |run| {
        run.job.failures.iter().map(|failure| failure.ranks.len()).max().unwrap_or_default()
    };
    "job.failures[].text": LONGEST_SENTENCE, "bytes", |run| {
        longest(run.job.failures.iter().map(|failure| &failure.text))
    };
    "job.failures[].file": LONGEST_NAME, "bytes", |run| {
        longest(run.job.failures.iter().filter_map(|failure| failure.file.as_ref()))
    };
    "log.arguments": 2000, "items", |run| run.log.arguments.iter().count();
    "log.arguments (names)": LONGEST_NAME, "bytes", |run| {
        longest(run.log.arguments.iter().map(|(name, _)| name))
    };
    "log.arguments (values)": LONGEST_PATH, "bytes", |run| {
        longest(run.log.arguments.iter().map(|(_, value)| value))
    };
    "log.scenario": LONGEST_SCENARIO, "bytes", |run| longest(&run.log.scenario);
    "provenance.program": LONGEST_NAME, "bytes", |run| run.provenance.program.len();
    "provenance.scored_at": LONGEST_NAME, "bytes", |run| longest(&run.provenance.scored_at);
    "carried.campaign": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.campaign));
    "carried.run": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.run));
    "carried.cluster": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.cluster));
    "carried.jobs": MOST_JOBS, "items", |run| jobs(run).count();
    "carried.jobs[].id": LONGEST_NAME, "bytes", |run| longest(jobs(run).map(|job| &job.id));
    "carried.jobs[].name": LONGEST_NAME, "bytes", |run| longest(jobs(run).map(|job| &job.name));
    "carried.jobs[].state": LONGEST_NAME, "bytes", |run| longest(jobs(run).map(|job| &job.state));
    "carried.jobs[].submitted": LONGEST_NAME, "bytes", |run| longest(jobs(run).filter_map(|job| job.submitted.as_ref()));
    "carried.jobs[].started": LONGEST_NAME, "bytes", |run| longest(jobs(run).filter_map(|job| job.started.as_ref()));
    "carried.jobs[].ended": LONGEST_NAME, "bytes", |run| longest(jobs(run).filter_map(|job| job.ended.as_ref()));
    "carried.jobs[].nodes": LONGEST_SENTENCE, "bytes", |run| longest(jobs(run).filter_map(|job| job.nodes.as_ref()));
    "carried.launch.release": LONGEST_NAME, "bytes", |run| {
        longest(carried(run).and_then(|carried| carried.launch.release.as_ref()))
    };
    "carried.launch.style": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.launch.style));
    "carried.launch.comparable.reasons": 100, "items", |run| launch_reasons(run).count();
    "carried.launch.comparable.reasons[]": LONGEST_SENTENCE, "bytes", |run| longest(launch_reasons(run));
    "carried.plan.basis": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.plan.basis));
    "carried.plan.calibration": LONGEST_NAME, "bytes", |run| {
        longest(carried(run).map(|carried| &carried.plan.calibration))
    };
};

/// Checks a result before a store accepts it.
///
/// # Errors
/// A text or list exceeds its maximum, a figure is not finite or not possible, a hash is not one, or a run is comparable despite
/// reasons against it.
pub fn admit(run: &RunResult) -> Result<(), InvalidResult> {
    for maximum in MAXIMA {
        let (size, Maximum { field, most, unit, .. }) = ((maximum.size)(run), maximum);
        if size > *most {
            let (size, most) = (group_digits(size as f64), group_digits(*most as f64));
            return Err(InvalidResult {
                field: (*field).into(),
                what: format!("has {size} {unit}; at most {most} are accepted"),
            });
        }
    }
    let refuse =
        |field: &'static str, what: &str| Err(InvalidResult { field: field.into(), what: what.to_owned() });
    let is_hash =
        |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hash(&run.source.sha256) {
        return refuse("source.sha256", "must be 64 hexadecimal digits in lower case");
    }
    for (field, at) in
        [("source.written_at", &run.source.written_at), ("source.began_at", &run.source.began_at)]
    {
        if at.as_ref().is_some_and(|at| !is_time(at)) {
            return refuse(field, TIME);
        }
    }
    if !is_consistent(&run.comparable) {
        return refuse("comparable.yes", "must be true without comparable.reasons, and false with them");
    }
    let steps = &run.log.steps;
    let all = 0..steps.len();
    if steps.step_time_s.values(all.clone()).any(|seconds| !STEP_TIMES.contains(&seconds)) {
        return refuse("log.steps.step_time_s", STEP_TIME);
    }
    for (field, column) in [
        ("log.steps.tflops_per_gpu", &steps.tflops_per_gpu),
        ("log.steps.tokens_per_s_per_gpu", &steps.tokens_per_s_per_gpu),
        ("log.steps.mfu", &steps.mfu),
    ] {
        if column.values(all.clone()).any(|figure| !FIGURES.contains(&figure)) {
            return refuse(field, "must be at least 0 and less than 1e24");
        }
    }
    for (field, column) in [
        ("log.steps.memory_peak_bytes", &steps.memory_peak_bytes),
        ("log.steps.memory_allocated_bytes", &steps.memory_allocated_bytes),
        ("log.steps.consumed_samples", &steps.consumed_samples),
        ("log.steps.global_batch_size", &steps.global_batch_size),
    ] {
        if !column.values(all.clone()).all(is_amount) {
            return refuse(field, AMOUNT);
        }
    }
    let mut durations = run.log.checkpoints.iter().filter_map(|checkpoint| checkpoint.duration_s);
    if !durations.all(|seconds| DURATIONS.contains(&seconds)) {
        return refuse("log.checkpoints[].duration_s", DURATION);
    }
    let mut idle = run.job.parts.iter().filter_map(|part| part.idle_s);
    if !idle.all(|seconds| DURATIONS.contains(&seconds)) {
        return refuse("job.parts[].idle_s", DURATION);
    }
    for (field, count) in [
        ("log.bytes", run.log.bytes),
        ("log.lines", run.log.lines),
        ("log.duplicates", run.log.duplicates),
        ("log.restarts", run.log.restarts),
        ("log.pause.seconds", run.log.pause.map_or(0, |pause| pause.seconds)),
        ("log.harmless", run.log.harmless),
        ("log.failures[] (counts and offsets)", largest_count(&run.log.failures)),
        ("job.failures[] (counts and offsets)", largest_count(&run.job.failures)),
    ] {
        if count > LARGEST_COUNT {
            return refuse(field, "must be at most 9,007,199,254,740,992");
        }
    }
    let Some(carried) = &run.carried else { return Ok(()) };
    if !is_hash(&carried.launch.script_sha256) {
        return refuse("carried.launch.script_sha256", "must be 64 hexadecimal digits in lower case");
    }
    if !is_consistent(&carried.launch.comparable) {
        return refuse(
            "carried.launch.comparable.yes",
            "must be true without carried.launch.comparable.reasons, and false with them",
        );
    }
    let Interval { low, mid, high } = carried.plan.step_time_s;
    if ![low, mid, high].iter().all(|seconds| STEP_TIMES.contains(seconds)) || low > mid || mid > high {
        return refuse("carried.plan.step_time_s", "must be positive seconds with low ≤ mid ≤ high");
    }
    let is_counted = |job: &SlurmJob| match (job.attempt, job.attempts) {
        (None, None) => true,
        (Some(attempt), Some(attempts)) => (1..=attempts).contains(&attempt),
        _ => false,
    };
    if !jobs(run).all(is_counted) {
        return refuse("carried.jobs[].attempt", "must be from 1 to carried.jobs[].attempts");
    }
    // It becomes the time at which the run ran.
    if carried.jobs.first().and_then(|job| job.started.as_ref()).is_some_and(|at| !is_time(at)) {
        return refuse("carried.jobs[].started", TIME);
    }
    for (field, bytes) in [
        ("carried.plan.memory_bytes", carried.plan.memory_bytes),
        ("carried.plan.capacity_bytes", carried.plan.capacity_bytes),
    ] {
        if !is_amount(bytes) {
            return refuse(field, AMOUNT);
        }
    }
    Ok(())
}

/// What a step time must be.
pub(crate) const STEP_TIME: &str = "must be at least 0.000001 and less than 1,000,000,000 seconds";

/// The most jobs of a run.
pub(crate) const MOST_JOBS: usize = 1000;

/// The largest accepted count or offset: JSON numbers are exact up to 2^53.
const LARGEST_COUNT: u64 = 1 << 53;

/// The seconds that saving a checkpoint, or a pause between two logs, can take.
const DURATIONS: Range<f64> = 0.0..1e9;

/// What a duration must be.
const DURATION: &str = "must be at least 0 and less than 1,000,000,000 seconds";

/// What a number of bytes or samples must be.
const AMOUNT: &str = "must be 0, or at least 1 and less than 1e24";

/// Returns whether a figure can be a number of bytes or samples.
fn is_amount(figure: f64) -> bool {
    FIGURES.contains(&figure) && (figure == 0.0 || figure >= 1.0)
}

/// Returns whether exactly the runs that can't be compared have a reason: lists go by the reasons.
fn is_consistent(comparable: &Comparability) -> bool {
    comparable.yes == comparable.reasons.is_empty()
}

/// Returns the largest number in a list of failures.
fn largest_count(failures: &[Failure]) -> u64 {
    let all = failures.iter().flat_map(|one| [one.count, one.line, one.offset, one.last_offset]);
    all.max().unwrap_or_default()
}

/// What a time must be.
pub(crate) const TIME: &str =
    "must be a time (RFC 3339) from 1970 to 2199 in UTC, such as 2026-11-21T12:00:00Z";

/// Returns whether a text is a time in RFC 3339, of a year from 1970 to 2199 in UTC.
pub(crate) fn is_time(text: &str) -> bool {
    let has_form = |text: &str, form: &str| {
        let is_like =
            |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
        text.len() == form.len() && text.bytes().zip(form.bytes()).all(is_like)
    };
    let (Some(time), Some(rest)) = (text.get(..19), text.get(19..)) else { return false };
    if !has_form(time, "0000-00-00T00:00:00") {
        return false;
    }
    let number = |text: Option<&str>| text.and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(u32::MAX);
    let (year, month, day) = (number(time.get(..4)), number(time.get(5..7)), number(time.get(8..10)));
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    let (hour, minute) = (number(time.get(11..13)), number(time.get(14..16)));
    let is_clock = hour < 24 && minute < 60 && number(time.get(17..)) <= 60;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() { "" } else { zone }
        }
        None => rest,
    };
    let (hours, minutes) = match zone {
        "Z" => (0, 0),
        _ if has_form(zone, "+00:00") || has_form(zone, "-00:00") => {
            (number(zone.get(1..3)), number(zone.get(4..)))
        }
        _ => return false,
    };
    let is_zone = hours < 24 && minutes < 60;
    // A zone differs from UTC by less than a day, so only the first and the last day of a year can be in another one.
    let (since_midnight, offset) = (60 * hour + minute, 60 * hours + minutes);
    let utc_year = match (month, day) {
        (1, 1) if zone.starts_with('+') && since_midnight < offset => year.saturating_sub(1),
        (12, 31) if zone.starts_with('-') && since_midnight + offset >= 24 * 60 => year + 1,
        _ => year,
    };
    (1970..2200).contains(&utc_year) && (1..=days).contains(&day) && is_clock && is_zone
}

/// The deepest nesting of arrays and objects in a result file.
pub const DEEPEST: usize = 64;

/// The most bytes of a name, text or number in a result file, in known and unknown fields.
pub const LONGEST_TEXT: usize = LONGEST_SCENARIO;

/// The most bytes of the unknown fields of a result file, or of its known fields if these have more.
pub const UNKNOWN_BYTES: usize = 1 << 20;

/// Checks what the file of a result contains in addition to `run`, which was read from it: fields of newer programs, which are
/// stored too.
///
/// # Errors
/// Arrays or objects are nested deeper than [`DEEPEST`], a text is longer than [`LONGEST_TEXT`], or all unknown fields together
/// are larger than [`UNKNOWN_BYTES`] and the known ones.
pub fn admit_file(run: &RunResult, file: &[u8]) -> Result<(), InvalidResult> {
    let mut all = FileExtent::default();
    all.read(file);
    if let Some(fault) = all.fault {
        return Err(fault);
    }
    // So many known bytes allow all others. A long result need not be written whole.
    let enough = all.bytes.div_ceil(2).min(all.bytes.saturating_sub(UNKNOWN_BYTES));
    let mut known = FileExtent { enough, ..FileExtent::default() };
    // A result that was read can be written, so this fails only then.
    if serde_json::to_writer(&mut known, run).is_err() {
        return Ok(());
    }
    let (unknown, most) = (all.bytes.saturating_sub(known.bytes), known.bytes.max(UNKNOWN_BYTES));
    if unknown <= most {
        return Ok(());
    }
    let of_known =
        |name: &str| known.fields.iter().find(|(known, _)| known == name).map_or(0, |(_, bytes)| *bytes);
    let excess = |(name, bytes): &&(String, usize)| bytes.saturating_sub(of_known(name));
    let largest = all.fields.iter().max_by_key(excess).map(|(name, _)| name.clone());
    let (unknown, most) = (group_digits(unknown as f64), group_digits(most as f64));
    Err(InvalidResult {
        field: largest.unwrap_or_default().into(),
        what: format!(
            "and other fields have {unknown} bytes that this version of Trainplan does not know; at most {most} are accepted"
        ),
    })
}

/// The most bytes of a field's name in a message.
const SHOWN_NAME: usize = 60;

/// The most fields of the file's object that are counted separately.
const COUNTED_FIELDS: usize = 200;

/// How large the parts of a JSON text are. The text was read as JSON before, so its syntax is not checked.
#[derive(Default)]
struct FileExtent {
    /// All bytes, except for blanks between values. An escaped character counts 1 or 2.
    bytes: usize,
    /// The bytes after which no more is written.
    enough: usize,
    /// The fields of the file's object, each with its bytes.
    fields: Vec<(String, usize)>,
    /// The first limit that was exceeded.
    fault: Option<InvalidResult>,
    within: Within,
    /// The bytes of the current text or number.
    token: usize,
    /// Whether the next text is a field's name.
    is_name: bool,
    /// The open arrays and objects.
    open: Vec<OpenValue>,
}

/// The place of the next byte.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Between values, or in a number or word.
    #[default]
    Nothing,
    Text,
    /// After a backslash in a text.
    Escape,
    /// In an escaped character, before so many digits.
    Digits(u8),
}

/// An array or object that is not closed yet.
struct OpenValue {
    is_object: bool,
    /// The beginning of the current field's name.
    name: Vec<u8>,
}

impl FileExtent {
    fn read(&mut self, text: &[u8]) {
        for byte in text {
            self.step(*byte);
            if self.fault.is_some() {
                return;
            }
        }
    }

    fn step(&mut self, byte: u8) {
        match self.within {
            Within::Nothing => self.step_outside(byte),
            Within::Text => match byte {
                b'"' => self.end_text(),
                b'\\' => self.within = Within::Escape,
                _ => self.count(1, byte),
            },
            Within::Escape if byte == b'u' => {
                self.within = Within::Digits(4);
                self.count(2, b'?');
            }
            Within::Escape => {
                self.within = Within::Text;
                self.count(1, byte);
            }
            Within::Digits(left) => {
                self.within = if left > 1 { Within::Digits(left - 1) } else { Within::Text };
            }
        }
    }

    fn step_outside(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'"' => {
                (self.within, self.token) = (Within::Text, 0);
                if self.is_name
                    && let Some(open) = self.open.last_mut()
                {
                    open.name.clear();
                }
                self.weigh(2);
            }
            b'{' | b'[' => {
                if self.open.len() == DEEPEST {
                    self.refuse(format!("is nested deeper than {DEEPEST} arrays and objects"));
                    return;
                }
                self.is_name = byte == b'{';
                self.open.push(OpenValue { is_object: self.is_name, name: Vec::new() });
                self.weigh(2);
            }
            b'}' | b']' => {
                self.open.pop();
                self.is_name = false;
            }
            b',' => {
                self.is_name = self.open.last().is_some_and(|open| open.is_object);
                self.token = 0;
                self.weigh(1);
            }
            b':' => {
                (self.is_name, self.token) = (false, 0);
                self.weigh(1);
            }
            _ => {
                self.count(1, byte);
                if self.token > LONGEST_TEXT {
                    self.refuse_token();
                }
            }
        }
    }

    fn end_text(&mut self) {
        self.within = Within::Nothing;
        if self.token > LONGEST_TEXT {
            self.refuse_token();
        } else if self.is_name && self.open.len() == 1 && self.fields.len() < COUNTED_FIELDS {
            self.fields.push((self.path(), 0));
        }
    }

    /// Counts bytes of a text or number.
    fn count(&mut self, bytes: usize, shown: u8) {
        self.token += bytes;
        if self.is_name
            && let Some(open) = self.open.last_mut()
            && open.name.len() < SHOWN_NAME
        {
            open.name.push(shown);
        }
        self.weigh(bytes);
    }

    fn weigh(&mut self, bytes: usize) {
        self.bytes += bytes;
        if let Some((_, all)) = self.fields.last_mut() {
            *all += bytes;
        }
    }

    fn refuse_token(&mut self) {
        let most = group_digits(LONGEST_TEXT as f64);
        self.refuse(format!("has a text or number of more than {most} bytes"));
    }

    fn refuse(&mut self, what: String) {
        let field = self.path().into();
        self.fault.get_or_insert(InvalidResult { field, what });
    }

    /// Returns the path of the current field, as `log.failures[].text`; of a deep one only the beginning.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in self.open.iter().take(8) {
            if !open.is_object {
                path.push_str("[]");
                continue;
            }
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&String::from_utf8_lossy(&open.name));
        }
        path
    }
}

impl io::Write for FileExtent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes >= self.enough {
            return Err(io::ErrorKind::Other.into());
        }
        self.read(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn carried(run: &RunResult) -> Option<&CampaignRun> {
    run.carried.as_ref()
}

fn jobs(run: &RunResult) -> impl Iterator<Item = &SlurmJob> {
    carried(run).into_iter().flat_map(|carried| &carried.jobs)
}

fn launch_reasons(run: &RunResult) -> impl Iterator<Item = &String> {
    carried(run).into_iter().flat_map(|carried| &carried.launch.comparable.reasons)
}

fn nccl(run: &RunResult) -> Option<&Nccl> {
    run.log.nccl.as_ref()
}

fn unfinished(run: &RunResult) -> &[UnfinishedCommunicator] {
    match nccl(run) {
        Some(nccl) => &nccl.unfinished,
        None => &[],
    }
}

/// Returns the bytes of the longest text.
fn longest<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> usize {
    texts.into_iter().map(|text| text.as_ref().len()).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{NcclCallKind, NcclCalls, NcclOperation};
    use crate::result::Intake;
    use crate::spec::Spec;

    #[test]
    fn the_result_of_a_log_with_impossible_figures_is_admitted_without_them() {
        let mut intake = Intake::new("x.out", &Spec::default());
        for (step, time) in [(0, "0.0"), (1, "1e-9"), (2, "-3"), (3, "1e12"), (4, "12.5")] {
            let line = format!(
                "Training epoch 0, iteration {step}/4 | global_batch_size: -1e30 | global_step: {step} | \
                 reduced_train_loss: 11.0 | train_step_timing in s: {time} | consumed_samples: -7\n"
            );
            intake.feed(line.as_bytes());
        }
        let run = intake.finish();
        assert_eq!(admit(&run), Ok(()));
        let steps = &run.log.steps;
        assert_eq!(steps.step_time_s.values(0..steps.len()).collect::<Vec<_>>(), [12.5]);
    }

    fn carried_out() -> CampaignRun {
        serde_json::from_value(serde_json::json!({
            "campaign": "nightly", "run": "llama-8b", "repeat": 1, "cluster": "alpha", "jobs": [],
            "launch": {
                "release": null, "style": "launch-sh", "script_sha256": "0".repeat(64), "steps": 50,
                "comparable": { "yes": true, "reasons": [] }
            },
            "plan": {
                "step_time_s": { "low": 9.0, "mid": 10.0, "high": 11.0 }, "memory_bytes": 6e10,
                "capacity_bytes": 8e10, "basis": "published", "calibration": "here"
            }
        }))
        .unwrap()
    }

    #[test]
    fn a_result_at_its_limits_is_admitted_and_one_beyond_is_not() {
        let mut run = Intake::new("x.out", &Spec::default()).finish();
        run.source.path = "x".repeat(LONGEST_PATH);
        assert_eq!(admit(&run), Ok(()));
        run.source.path.push('x');
        let error = admit(&run).unwrap_err().to_string();
        assert_eq!(error, "source.path has 4,097 bytes; at most 4,096 are accepted.");
        run.source.path.clear();
        let kind = NcclCallKind { operation: NcclOperation::Send, up_to_bytes: 1, count: 1, bytes: 1 };
        for (kinds, is_admitted) in [(MOST_CALL_KINDS, true), (MOST_CALL_KINDS + 1, false)] {
            let calls = NcclCalls { kinds: vec![kind; kinds], ..NcclCalls::default() };
            let mut run = run.clone();
            run.log.nccl = Some(Nccl { calls: Some(calls), ..Nccl::default() });
            assert_eq!(admit(&run).is_ok(), is_admitted, "{kinds} kinds of calls");
        }
        let job = |attempt, attempts| SlurmJob { attempt, attempts, ..SlurmJob::default() };
        for (attempt, attempts, is_admitted) in
            [(None, None, true), (Some(2), Some(3), true), (Some(4), Some(3), false), (Some(1), None, false)]
        {
            let carried = CampaignRun { jobs: vec![job(attempt, attempts)], ..carried_out() };
            let run = run.clone().of_run(run.id, carried);
            assert_eq!(admit(&run).is_ok(), is_admitted, "{attempt:?} of {attempts:?}");
        }
        for (at, is_admitted) in [
            ("2026-11-21T12:00:00Z", true),
            ("2024-02-29T23:59:59.123456Z", true),
            ("2026-11-21T12:00:00+01:00", true),
            ("1970-01-01T00:00:00Z", true),
            ("2199-12-31T23:59:59Z", true),
            ("2199-12-31T23:59:59-00:00", true),
            ("2199-12-31T23:58:59-00:01", true),
            ("2200-01-01T00:00:00+00:01", true),
            ("1970-01-01T14:00:00+14:00", true),
            ("1969-12-31T12:00:00-12:00", true),
            ("2199-12-31T23:59:59-23:59", false),
            ("2199-12-31T23:59:59-00:01", false),
            ("2200-01-01T00:00:00Z", false),
            ("2200-01-01T00:01:00+00:01", false),
            ("1970-01-01T00:00:00+14:00", false),
            ("1970-01-01T13:59:59+14:00", false),
            ("1969-12-31T11:59:59-12:00", false),
            ("0000-01-01T00:00:00+23:59", false),
            ("2026-11-21T12:00:00+24:00", false),
            ("2026-11-21T12:00:00+01:60", false),
            ("yesterday", false),
            ("", false),
            ("9999-12-31T23:59:59Z", false),
            ("2023-02-29T12:00:00Z", false),
            ("2026-13-01T12:00:00Z", false),
            ("2026-11-21T24:00:00Z", false),
            ("2026-11-21T12:00:00", false),
            ("2026-11-21T12:00:00.Z", false),
            ("2026-11-21T12:00:00ZZ", false),
            ("2026-11-21 12:00:00Z", false),
        ] {
            run.source.written_at = Some(at.into());
            assert_eq!(admit(&run).is_ok(), is_admitted, "{at}");
        }
        run.source.written_at = None;
        run.source.sha256 = run.source.sha256.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A");
        assert_eq!(admit(&run).unwrap_err().field, "source.sha256");
    }

    #[test]
    fn unknown_fields_are_admitted_up_to_their_limits() {
        let run = Intake::new("x.out", &Spec::default()).finish();
        let with = |field: &str, value: serde_json::Value| {
            let mut file = serde_json::to_value(&run).unwrap();
            file["log"][field] = value;
            admit_file(&run, serde_json::to_string_pretty(&file).unwrap().as_bytes())
        };
        let nested = |depth| (0..depth).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        let text = |bytes| serde_json::json!("\u{e9}".repeat(bytes / 2));
        for (value, is_admitted) in [
            (serde_json::json!({ "a": [1.5, null, true], "b\n\"": "\u{1}" }), true),
            // The file's object and its log enclose it.
            (nested(DEEPEST - 2), true),
            (nested(DEEPEST - 1), false),
            (text(LONGEST_TEXT), true),
            (text(LONGEST_TEXT + 2), false),
            (serde_json::json!(vec![12_345; 150_000]), true),
            (serde_json::json!(vec![12_345; 200_000]), false),
        ] {
            match with("new", value) {
                Ok(()) => assert!(is_admitted),
                Err(error) => assert!(!is_admitted && error.field.starts_with("log"), "{error}"),
            }
        }
        let deep = with("new", nested(1000)).unwrap_err().to_string();
        assert!(deep.starts_with("log.new[]") && deep.contains("deeper than 64"), "{deep}");
        let spaces = format!("{}{}", serde_json::to_string(&run).unwrap(), " ".repeat(4 << 20));
        assert_eq!(admit_file(&run, spaces.as_bytes()), Ok(()));
    }
}
