//! What a result file may contain that this program doesn't know: fields of newer programs.

use super::InvalidResult;
use super::maxima::LONGEST_SCENARIO;
use crate::result::RunResult;
use crate::units::group_digits;
use std::io;

/// The deepest nesting of arrays and objects in a result file.
pub const DEEPEST: usize = 64;

/// The most bytes of a name, text or number in a result file, in known and unknown fields.
pub const LONGEST_TEXT: usize = LONGEST_SCENARIO;

/// The most bytes of the unknown fields of a result file, or of its known fields if these have more.
pub const UNKNOWN_BYTES: usize = 1 << 20;

/// The most texts, lists and objects of a result file, and the most numbers in a row. No field has a larger maximum.
const MOST_PARTS: usize = 2_000_000;
const MOST_NUMBERS: usize = 1_000_000;

/// The parts of a result file, which determine the memory that reading it takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileParts {
    /// The number of texts, lists and objects.
    pub values: usize,
    /// The bytes of all texts, as they are written in the file.
    pub text_bytes: usize,
    /// The number of commas outside of texts. Each list has at most one number more than commas.
    pub commas: usize,
    /// The most commas between numbers in a row.
    pub longest_row: usize,
}

/// Counts the parts of a result file, which need not be valid JSON. Maxima of fields are compared only once the whole result was
/// read, and an empty text or a digit takes many times as much memory then as in the file.
///
/// # Errors
/// There are more than 2,000,000 texts, lists and objects, or a list has more than 1,000,000 numbers in a row.
pub fn count_parts(file: &[u8]) -> Result<FileParts, InvalidResult> {
    let refuse = |most: usize, what: &str| {
        let what = format!("has more than {} {what}", group_digits(most as f64));
        Err(InvalidResult { field: "the file".into(), what })
    };
    let mut parts = FileParts::default();
    let mut row = 0;
    let mut rest = file.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => {
                (parts.values, row) = (parts.values + 1, 0);
                let before = rest.len();
                while let Some(byte) = rest.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => _ = rest.next(),
                        _ => {}
                    }
                }
                parts.text_bytes += before - rest.len();
            }
            b'[' | b'{' => (parts.values, row) = (parts.values + 1, 0),
            b']' | b'}' => row = 0,
            b',' => {
                row += 1;
                parts.commas += 1;
                parts.longest_row = parts.longest_row.max(row);
            }
            _ => {}
        }
        if parts.values > MOST_PARTS {
            return refuse(MOST_PARTS, "texts, lists and objects");
        }
        if row >= MOST_NUMBERS {
            return refuse(MOST_NUMBERS, "numbers in a row");
        }
    }
    Ok(parts)
}

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
    // If this many bytes are known, all unknown fields are allowed, so a long result doesn't have to be
    // written whole.
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
    /// In an escaped character, before this many more digits.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Intake;
    use crate::spec::Spec;

    #[test]
    fn parts_and_numbers_are_counted_outside_of_texts() {
        let values = |file: &[u8]| count_parts(file).map(|parts| parts.values);
        // The bytes of a text include its closing quote.
        let parts = FileParts { values: 7, text_bytes: 9, commas: 4, longest_row: 2 };
        assert_eq!(count_parts(br#"{"a[\"{": [1, 2, "", [{}]], "b": null}"#), Ok(parts));
        assert_eq!(values(b"\"[[[["), Ok(1));
        let list =
            |numbers: usize| format!("[{}0],[{}0]", "0,".repeat(numbers - 1), "0,".repeat(numbers - 1));
        let commas = 2 * (MOST_NUMBERS - 1) + 1;
        let parts = FileParts { values: 2, text_bytes: 0, commas, longest_row: MOST_NUMBERS - 1 };
        assert_eq!(count_parts(list(MOST_NUMBERS).as_bytes()), Ok(parts));
        let long = count_parts(list(MOST_NUMBERS + 1).as_bytes()).unwrap_err().to_string();
        assert_eq!(long, "the file has more than 1,000,000 numbers in a row.");
        assert_eq!(values(&b"[".repeat(MOST_PARTS)), Ok(MOST_PARTS));
        assert!(values(&b"[".repeat(MOST_PARTS + 1)).is_err());
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
