//! Finds the entries of a list that contain what a user typed.

/// How a text contains a word that was typed, the best way first.
const AS_A_WORD: u8 = 0;
const AT_THE_BEGINNING: u8 = 1;
const WITHIN: u8 = 2;

/// Returns how a text contains a word: as one of its words, at the beginning of one, or within; none if it doesn't.
fn rank(text: &str, word: &str) -> Option<u8> {
    let own_words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '.');
    let starts = own_words.filter_map(|own| own.strip_prefix(word));
    let best = starts.map(|rest| if rest.is_empty() { AS_A_WORD } else { AT_THE_BEGINNING }).min();
    best.or_else(|| text.contains(word).then_some(WITHIN))
}

/// Returns the places of the texts that contain every word of `typed`. Those that contain them as whole words come first: "8b"
/// finds Llama 3.1 8B before Qwen3 14B, which has 14.8B parameters. Otherwise they keep their order.
#[must_use]
pub fn places_matching(texts: &[String], typed: &str) -> Vec<usize> {
    let typed = typed.to_ascii_lowercase();
    let worst_rank = |text: &String| {
        let text = text.to_ascii_lowercase();
        typed.split_whitespace().try_fold(AS_A_WORD, |worst, word| Some(rank(&text, word)?.max(worst)))
    };
    let ranks: Vec<Option<u8>> = texts.iter().map(worst_rank).collect();
    let mut found = Vec::new();
    for rank in [AS_A_WORD, AT_THE_BEGINNING, WITHIN] {
        found.extend((0..texts.len()).filter(|place| ranks[*place] == Some(rank)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_come_before_parts_of_words() {
        let texts = ["GH200", "Phi 14.8B", "Qwen3 8B-A1B", "H200", "Kimi K2"].map(str::to_owned);
        for (typed, places) in [
            ("h200", &[3, 0][..]),
            ("8B", &[2, 1]),
            ("qwen3 8", &[2]),
            ("", &[0, 1, 2, 3, 4]),
            ("mixtral", &[]),
        ] {
            assert_eq!(places_matching(&texts, typed), places, "{typed}");
        }
    }
}
