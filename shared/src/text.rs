//! Text from outside, made safe to show.

/// Returns the text with every control character replaced by U+FFFD, so that a terminal shows it and does nothing else.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
