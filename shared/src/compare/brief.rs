//! Brief labels of runs, for the sentences after those that name the runs in full.

/// The characters after which a label is divided.
const SEPARATORS: [char; 4] = ['/', '_', '-', '.'];

/// The labels of runs that have a brief one. Runs that share a name are called by their jobs. Long labels are shortened by the
/// beginning and the end that all labels share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BriefLabels(Vec<BriefLabel>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct BriefLabel {
    label: String,
    brief: String,
    /// Whether it is brief because it is long, rather than because other runs share its name.
    is_long: bool,
    /// The place of the first run with its name. Once that is known, all of them are called by their jobs.
    first: usize,
}

impl BriefLabels {
    /// Labels up to this length, in characters, are written in full, as in the table of the runs, unless they differ by the job only.
    /// That of a release's recipe with its job is that long.
    pub const LONG: usize = 60;

    /// Returns the brief labels of runs that are shown together.
    #[must_use]
    pub fn of<'a>(labels: impl IntoIterator<Item = &'a str>) -> Self {
        let labels: Vec<&str> = labels.into_iter().collect();
        let parts: Vec<Vec<&str>> =
            labels.iter().map(|label| label.split_inclusive(SEPARATORS).collect()).collect();
        let (start, end) = shared_ends(&parts);
        let jobs: Vec<Option<(&str, &str)>> = labels.iter().map(|label| name_and_job(label)).collect();
        // Jobs of several clusters may have one number.
        let is_only = |job: &str| jobs.iter().flatten().filter(|(_, other)| *other == job).count() == 1;
        let by_job = |place: usize| {
            let (name, job) = jobs[place].filter(|&(_, job)| is_only(job))?;
            let has_name = |other: &usize| jobs[*other].is_some_and(|(other, _)| other == name);
            let mut alike = (0..jobs.len()).filter(has_name);
            let first = alike.next()?;
            alike.next().map(|_| (job.to_owned(), first))
        };
        let brief = |(place, label): (usize, &&str)| {
            let by_parts = || {
                let parts = &parts[place];
                let own = parts.get(start..parts.len() - end).unwrap_or_default().concat();
                let brief = own.trim_end_matches(SEPARATORS).to_owned();
                let is_long = label.chars().count() > Self::LONG && brief.len() < label.len();
                is_long.then_some((brief, place))
            };
            let job = by_job(place);
            let is_long = job.is_none();
            let (brief, first) = job.or_else(by_parts)?;
            Some(BriefLabel { label: (*label).to_owned(), brief, is_long, first })
        };
        let mut brief: Vec<BriefLabel> = labels.iter().enumerate().filter_map(brief).collect();
        // A label may start with another one.
        brief.sort_by_key(|one| std::cmp::Reverse(one.label.len()));
        Self(brief)
    }

    /// Returns a text with brief labels, for a reader who has read the full ones.
    #[must_use]
    pub fn shorten(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, one| text.replace(&one.label, &one.brief))
    }

    /// Returns a text in which the first mention of each run has its full label, and later ones the brief label. Among runs that
    /// share a name, only the first mentioned one is called by it.
    #[must_use]
    pub fn shorten_repeated(&self, text: &str) -> String {
        self.shorten_except_first(text, |_| true)
    }

    /// Returns a text like [`Self::shorten_repeated`], in which long labels are brief at their first mention, too, for a reader who
    /// finds the full ones elsewhere.
    #[must_use]
    pub fn shorten_long(&self, text: &str) -> String {
        self.shorten_except_first(text, |label| !label.is_long)
    }

    fn shorten_except_first(&self, text: &str, is_named: impl Fn(&BriefLabel) -> bool) -> String {
        let (mut shortened, mut rest, mut named) = (String::new(), text, Vec::new());
        while let Some(letter) = rest.chars().next() {
            // The longest labels come first, so that the one at this place is not a part of another.
            let Some(one) = self.0.iter().find(|one| rest.starts_with(one.label.as_str())) else {
                shortened.push(letter);
                rest = &rest[letter.len_utf8()..];
                continue;
            };
            if named.contains(&one.first) || !is_named(one) {
                shortened += &one.brief;
            } else {
                named.push(one.first);
                shortened += &one.label;
            }
            rest = &rest[one.label.len()..];
        }
        shortened
    }
}

/// Splits a label into the run's name and its job: `pretrain` and `job 12`. None without a job.
fn name_and_job(label: &str) -> Option<(&str, &str)> {
    let (name, job) = label.strip_suffix(')')?.rsplit_once(" (")?;
    job.starts_with("job ").then_some((name, job))
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
        assert_eq!(
            labels.shorten_long(&format!("{B} is slower than {A}.")),
            "gpus256_tp4 is slower than gpus256_tp2."
        );
    }

    #[test]
    fn runs_that_share_a_name_are_called_by_their_jobs() {
        let [one, two, three] = [1, 2, 3].map(|job| format!("pretrain_llama (job {job})"));
        let text = format!("Compared with {one}: {two} slower; {three} faster. {one} is the oldest.");
        let labels = BriefLabels::of([one.as_str(), &two, &three]);
        let repeated =
            "Compared with pretrain_llama (job 1): job 2 slower; job 3 faster. job 1 is the oldest.";
        assert_eq!(labels.shorten_repeated(&text), repeated);
        assert_eq!(labels.shorten_long(&text), repeated);
        assert_eq!(labels.shorten(&format!("{three}: slower")), "job 3: slower");
        // Another cluster has a job with this number.
        let other = "finetune (job 2)";
        let labels = BriefLabels::of([one.as_str(), &two, other]);
        assert_eq!(labels.shorten(&format!("{one}, {two}, {other}")), format!("job 1, {two}, {other}"));
    }

    #[test]
    fn repeats_and_jobs_keep_their_endings() {
        let (one, two) = (format!("{A} (job 1)"), format!("{A} (job 2)"));
        let labels = BriefLabels::of([one.as_str(), &two]);
        assert_eq!(labels.shorten(&format!("{two} + 1 repeat: faster")), "job 2 + 1 repeat: faster");
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
            &["pretrain_llama3.1_405b_fp8_512 (job 2010)", "pretrain_llama3.1_405b_fp8_256 (job 2011)"][..],
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
