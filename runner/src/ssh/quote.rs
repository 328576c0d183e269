//! A value as one word of a POSIX shell.

/// Appends the bytes as a word that every shell of the Bourne kind reads as exactly these bytes; none may be NUL.
///
/// Within single quotes nothing has a meaning but the quote itself, which is written outside of them.
pub(super) fn quote(value: &[u8], into: &mut Vec<u8>) {
    into.push(b'\'');
    for byte in value {
        match byte {
            b'\'' => into.extend_from_slice(br"'\''"),
            byte => into.push(*byte),
        }
    }
    into.push(b'\'');
}
