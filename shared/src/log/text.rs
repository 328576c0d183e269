//! Reads fields from a line of arbitrary bytes.
//!
//! Numbers are taken as printed. A number that was cut or torn (`12.`, `1.6e`) is not a number: a missing value is
//! better than a wrong one.

use memchr::memmem;

/// Labels and counters beyond this are damage, not numbers: every JSON reader still holds them exactly.
const MOST_DIGITS: usize = 15;

/// The whole number that `text` starts with, after blanks, and what follows it.
pub(super) fn label(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = trim_blanks(text);
    let digits = count(text, u8::is_ascii_digit);
    if digits == 0 || digits > MOST_DIGITS {
        return None;
    }
    let value = text[..digits].iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    Some((value, &text[digits..]))
}

/// The number that `text` starts with, after blanks: `nan` and `inf` are numbers too.
pub(super) fn number(text: &[u8]) -> Option<f64> {
    let text = trim_blanks(text);
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let word = &text[sign..];
    let length = match word.get(..3) {
        Some(special) if special.eq_ignore_ascii_case(b"nan") || special.eq_ignore_ascii_case(b"inf") => 3,
        _ => decimal_length(word)?,
    };
    std::str::from_utf8(&text[..sign + length]).ok()?.parse().ok()
}

/// How long the decimal number is that `text` starts with; none where it has been torn.
fn decimal_length(text: &[u8]) -> Option<usize> {
    let whole = count(text, u8::is_ascii_digit);
    let mut length = whole;
    if text.get(length) == Some(&b'.') {
        let fraction = count(&text[length + 1..], u8::is_ascii_digit);
        if fraction == 0 {
            return None;
        }
        length += 1 + fraction;
    }
    if length == 0 {
        return None;
    }
    if matches!(text.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(length + 1), Some(b'+' | b'-')));
        let digits = text.get(length + 1 + sign..).map_or(0, |exponent| count(exponent, u8::is_ascii_digit));
        if digits > 0 {
            length += 1 + sign + digits;
        } else if !text.get(length + 1).is_some_and(u8::is_ascii_alphabetic) {
            // A torn exponent. With a letter behind it, it is a word that is glued on: `6400Epoch`.
            return None;
        }
    }
    Some(length)
}

/// The number of the field `key` in `record`, written `key: 1.5`, `key=1.5` or `key : 1.5`. The key must stand
/// alone: `loss` is not found in `reduced_train_loss`.
pub(super) fn field(record: &[u8], key: &[u8]) -> Option<f64> {
    memmem::find_iter(record, key)
        .filter(|at| *at == 0 || !is_word(record[at - 1]))
        .find_map(|at| value(&record[at + key.len()..]))
}

/// The number behind the separator that `text` starts with: `: 1.5`, `=1.5` or ` : 1.5`.
pub(super) fn value(text: &[u8]) -> Option<f64> {
    let text = trim_blanks(text);
    number(text.strip_prefix(b":").or_else(|| text.strip_prefix(b"="))?)
}

/// `text` without terminal colours.
pub(super) fn plain(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        if let (0x1b, Some(sequence)) = (first, tail.strip_prefix(b"[")) {
            let length = count(sequence, |byte| byte.is_ascii_digit() || *byte == b';');
            // The letter that ends the sequence goes with it.
            rest = sequence.get(length + 1..).unwrap_or_default();
        } else {
            plain.push(*first);
        }
    }
    plain
}

/// `text` without the commas that group digits: `1,299` becomes `1299`.
pub(super) fn ungrouped(text: &[u8]) -> Vec<u8> {
    let groups = |at: usize| {
        at > 0 && text[at - 1].is_ascii_digit() && count(&text[at + 1..], u8::is_ascii_digit) == 3
    };
    text.iter()
        .enumerate()
        .filter(|(at, byte)| **byte != b',' || !groups(*at))
        .map(|(_, byte)| *byte)
        .collect()
}

/// At most `most` characters of `text`, fit to be shown: valid, on one line, without colours.
pub(super) fn excerpt(text: &[u8], most: usize) -> String {
    let text = plain(text);
    let text = String::from_utf8_lossy(&text);
    let mut shown: String =
        text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect();
    shown.truncate(shown.trim_end().len());
    shown
}

fn trim_blanks(text: &[u8]) -> &[u8] {
    &text[count(text, |byte| matches!(byte, b' ' | b'\t'))..]
}

fn count(text: &[u8], wanted: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| wanted(byte)).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_as_printed() {
        for (text, value) in [
            ("12.39 |", 12.39),
            (" 1.601e+03", 1601.0),
            ("3.0E-06 |", 3.0e-6),
            ("12800", 12800.0),
            ("2e+3,", 2000.0),
            ("663.5MODEL_TFLOP/s/GPU", 663.5),
            ("-.5]", -0.5),
            ("99.00,", 99.0),
            ("6400Epoch", 6400.0),
        ] {
            assert_eq!(number(text.as_bytes()), Some(value), "{text}");
        }
        assert!(number(b" nan |").is_some_and(f64::is_nan));
        assert_eq!(number(b"-inf"), Some(f64::NEG_INFINITY));
    }

    #[test]
    fn a_torn_number_is_none() {
        for text in ["12.[rank3]", "1.6e", "1.6e+", "", " ", "-", ".", "None", "abc", "e5"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn labels_may_be_padded_but_not_endless() {
        assert_eq!(label(b"       1/      50").map(|(value, _)| value), Some(1));
        assert_eq!(label(b"999999999999999/").map(|(value, _)| value), Some(999_999_999_999_999));
        assert_eq!(label(b"9999999999999999/"), None);
        assert_eq!(label(b"x1"), None);
    }

    #[test]
    fn a_key_must_stand_alone() {
        let record =
            b"reduced_train_loss: 1 | max_memory_allocated: 2 | memory_allocated: 3 | loss : 4 | lr=5";
        assert_eq!(field(record, b"memory_allocated"), Some(3.0));
        assert_eq!(field(record, b"loss"), Some(4.0));
        assert_eq!(field(record, b"lr"), Some(5.0));
        assert_eq!(field(record, b"los"), None);
    }

    #[test]
    fn colours_go() {
        assert_eq!(plain(b"\x1b[31mstep:  1\x1b[38;2;180;60;0m, a"), b"step:  1, a");
        assert_eq!(plain(b"\x1b["), b"");
        assert_eq!(plain(b"\x1b"), b"\x1b");
    }

    #[test]
    fn only_commas_that_group_digits_go() {
        assert_eq!(ungrouped(b"1,234,567 a,123 1,23 1, 2,"), b"1234567 a,123 1,23 1, 2,");
    }

    #[test]
    fn an_excerpt_is_one_valid_line() {
        assert_eq!(excerpt(b" a\xff\x00b\tc ", 4), "a\u{fffd} b");
    }
}
