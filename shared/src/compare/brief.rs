//! Brief labels of runs, for the sentences after those that name the runs in full.

use std::mem;

/// The characters after which a label is divided.
const SEPARATORS: [char; 4] = ['/', '_', '-', '.'];

/// The long labels of runs, each with a brief one. A brief label lacks the beginning and the end that all labels share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BriefLabels(Vec<(String, String)>);

impl BriefLabels {
    /// Labels up to this length, in characters, are always written in full, as in the table of the runs. That of a release's recipe
    /// with its job is that long.
    pub const LONG: usize = 60;

    /// Returns the brief labels of runs that are shown together.
    #[must_use]
    pub fn of<'a>(labels: impl IntoIterator<Item = &'a str>) -> Self {
        let labels: Vec<&str> = labels.into_iter().collect();
        let parts: Vec<Vec<&str>> =
            labels.iter().map(|label| label.split_inclusive(SEPARATORS).collect()).collect();
        let (start, end) = shared_ends(&parts);
        let brief = |(label, parts): (&str, &Vec<&str>)| {
            let own = parts.get(start..parts.len() - end).unwrap_or_default().concat();
            (label.to_owned(), own.trim_end_matches(SEPARATORS).to_owned())
        };
        let is_long = |(label, brief): &(String, String)| {
            label.chars().count() > Self::LONG && brief.len() < label.len()
        };
        let mut pairs: Vec<(String, String)> =
            labels.into_iter().zip(&parts).map(brief).filter(is_long).collect();
        // A label may start with another one.
        pairs.sort_by_key(|(label, _)| std::cmp::Reverse(label.len()));
        Self(pairs)
    }

    /// Returns a text with brief labels, for a reader who has read the full ones.
    #[must_use]
    pub fn shorten(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (label, brief)| text.replace(label, brief))
    }

    /// Returns a text in which the first mention of each run has its full label, and later ones the brief label.
    #[must_use]
    pub fn shorten_repeated(&self, text: &str) -> String {
        let (mut shortened, mut rest, mut named) = (String::new(), text, vec![false; self.0.len()]);
        while let Some(letter) = rest.chars().next() {
            // The longest labels come first, so that the one at this place is not a part of another.
            let place = self.0.iter().position(|(label, _)| rest.starts_with(label.as_str()));
            let Some(place) = place else {
                shortened.push(letter);
                rest = &rest[letter.len_utf8()..];
                continue;
            };
            let (label, brief) = &self.0[place];
            shortened += if mem::replace(&mut named[place], true) { brief } else { label };
            rest = &rest[label.len()..];
        }
        shortened
    }
}

/// Returns how many parts all labels share at the beginning, less the last of these, and at the end. Something is left of each
/// label.
fn shared_ends(labels: &[Vec<&str>]) -> (usize, usize) {
    let Some((first, others)) = labels.split_first().filter(|(_, others)| !others.is_empty()) else {
        return (0, 0);
    };
    let least = labels.iter().map(Vec::len).min().unwrap_or(0);
    let start = (0..least.saturating_sub(1))
        .take_while(|place| others.iter().all(|other| other[*place] == first[*place]))
        .count();
    let end = (1..least - start)
        .take_while(|back| others.iter().all(|other| other[other.len() - back] == first[first.len() - back]))
        .count();
    (start.saturating_sub(1), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "pretrain_deepseek_v3_bf16_gpus256_tp2_pp8_cp1_vp4_ep64_etpNone_mbs1_gbs2048";
    const B: &str = "pretrain_deepseek_v3_bf16_gpus256_tp4_pp8_cp1_vp4_ep64_etpNone_mbs1_gbs2048";

    #[test]
    fn long_labels_are_cut_to_what_tells_them_apart() {
        let labels = BriefLabels::of([A, B]);
        assert_eq!(
            labels.shorten(&format!("{B}: slower than {A}.")),
            "gpus256_tp4: slower than gpus256_tp2."
        );
        let repeated = labels.shorten_repeated(&format!("{B} is slower than {A}. {B} runs at 93 %."));
        assert_eq!(repeated, format!("{B} is slower than {A}. gpus256_tp4 runs at 93 %."));
    }

    #[test]
    fn repeats_and_jobs_keep_their_endings() {
        let (one, two) = (format!("{A} (job 1)"), format!("{A} (job 2)"));
        let labels = BriefLabels::of([one.as_str(), &two]);
        assert_eq!(
            labels.shorten(&format!("{two} with 1 repeat: faster")),
            "mbs1_gbs2048 (job 2) with 1 repeat: faster"
        );
        let again = format!("{A} (2)");
        let labels = BriefLabels::of([A, again.as_str()]);
        assert_eq!(
            labels.shorten(&format!("{again}: the same as {A}.")),
            "mbs1_gbs2048 (2): the same as mbs1_gbs2048."
        );
        // A label within a longer one is not its mention.
        assert_eq!(
            labels.shorten_repeated(&format!("{again}: the same as {A}. {A}: slower.")),
            format!("{again}: the same as {A}. mbs1_gbs2048: slower.")
        );
    }

    #[test]
    fn short_labels_and_a_run_alone_stay_as_they_are() {
        for labels in [
            &["pretrain_llama3.1_405b_fp8_512 (job 2010)", "pretrain_llama3.1_405b_fp8_512 (job 2011)"][..],
            &[A],
            &[],
        ] {
            let text = format!("{}: slower.", labels.concat());
            let brief = BriefLabels::of(labels.iter().copied());
            assert_eq!((brief.shorten(&text), brief.shorten_repeated(&text)), (text.clone(), text));
        }
        // Labels without parts.
        let same = BriefLabels::of(["a".repeat(70).as_str(), &"b".repeat(70)]);
        assert_eq!(same, BriefLabels::default());
    }
}
