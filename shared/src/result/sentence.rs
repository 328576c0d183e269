//! Sentences from the words of stored results and of servers.

/// Returns words as a sentence: the first letter in upper case, with a full stop. Results that were saved by older
/// programs hold clauses without either.
#[must_use]
pub fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if words.is_empty() || words.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn a_clause_becomes_a_sentence_and_a_sentence_stays_as_it_is() {
        assert_eq!(sentence("it loaded a checkpoint"), "It loaded a checkpoint.");
        assert_eq!(sentence("No GPU is faster than its peak."), "No GPU is faster than its peak.");
        assert_eq!(sentence(""), "");
    }
}
