//! Text from outside, made safe to show.

/// Returns the text with every control character replaced by U+FFFD, so that a terminal shows it and does nothing else.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Returns the text as Markdown that shows it unchanged, in one line: characters with a meaning are escaped.
pub fn markdown(text: &str) -> String {
    const SPECIAL: &str = r"\`*_|<[$~";
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if SPECIAL.contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Returns the text with its first letter as a capital.
pub fn capital(text: &str) -> String {
    let mut text = text.to_string();
    // The tables of other letters would make each program several kB larger.
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

/// Returns the text as HTML that shows it, in an element or in a quoted attribute.
pub fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}
