//! Text from outside, made safe to show.

/// Returns the text with every control character replaced by U+FFFD, so that a terminal shows it and does nothing else.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Returns the last eight digits of a run's id, which are random. The first digits are the time in campaigns, so that runs of one
/// round share them. Every command that takes an id takes its last digits, too.
///
/// ```
/// assert_eq!(trainplan_shared::text::short_id("01a2239a-658e-7cc0-8f1d-5b3c0a9e77d2"), "0a9e77d2");
/// ```
pub fn short_id(id: &str) -> &str {
    id.get(id.len().saturating_sub(8)..).unwrap_or(id)
}

/// Returns whether a character shows nothing, or changes how other text is shown: control and format characters (categories Cc and
/// Cf), separators of lines, and characters that programs may ignore (`Default_Ignorable_Code_Point`), as of Unicode 16.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
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
