//! Quoting for a POSIX shell.

/// Appends the bytes as one quoted word. None of them may be NUL.
///
/// Within single quotes only the single quote is special, so it is written outside of them.
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
