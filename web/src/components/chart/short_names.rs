//! The short names of runs in legends.

use super::labels::LEGEND_LINE;

/// Returns a short and unique name for each run. Names that differ only by their jobs are the jobs. If a name is long, all of them lack
/// the beginning and the end that they share, except the last part of the beginning, where there is room for it. A name alone keeps
/// the end that fits into a line. A name that lost its beginning starts with an ellipsis.
pub(super) fn short_names(names: &[&str]) -> Vec<String> {
    let is_long = |name: &str, most: usize| name.chars().count() > most;
    let jobs: Vec<_> = names.iter().filter_map(|name| name_and_job(name)).collect();
    let parts: Vec<Vec<&str>> = names.iter().map(|name| parts(name)).collect();
    let short = match parts.as_slice() {
        [alone] => {
            let fits = |from: &usize| !is_long(&alone[*from..].concat(), LEGEND_LINE);
            let from = (0..alone.len()).find(fits).unwrap_or(alone.len().saturating_sub(1));
            vec![cut(alone, from, alone.len())]
        }
        _ if jobs.len() == names.len() && jobs.iter().all(|(name, _)| *name == jobs[0].0) => {
            jobs.into_iter().map(|(_, job)| job.to_string()).collect()
        }
        [first, others @ ..] if names.iter().any(|name| is_long(name, LONG)) => {
            // Something is left of each name.
            let most = parts.iter().map(Vec::len).min().unwrap_or(0).saturating_sub(1);
            let is_shared = |place: &usize| others.iter().all(|other| other[*place] == first[*place]);
            let start = (0..most).take_while(is_shared).count();
            let is_shared = |back: &usize| {
                others.iter().all(|other| other[other.len() - back] == first[first.len() - back])
            };
            let end = (1..=most - start).take_while(is_shared).count();
            let own = |parts: &Vec<&str>, from: usize| parts[from..parts.len() - end].concat();
            let has_room = |from: usize| !parts.iter().any(|parts| is_long(&own(parts, from), LONG));
            let from = start.checked_sub(1).filter(|from| has_room(*from)).unwrap_or(start);
            parts.iter().map(|parts| cut(parts, from, parts.len() - end)).collect()
        }
        _ => names.iter().copied().map(String::from).collect(),
    };
    numbered(short)
}

/// Returns the parts of a name from one place to another.
fn cut(parts: &[&str], from: usize, to: usize) -> String {
    let own = parts[from..to].concat();
    let trimmed = own.trim_end_matches(SEPARATORS);
    let ellipsis = if from > 0 { "…" } else { "" };
    format!("{ellipsis}{}", if trimmed.is_empty() { own.as_str() } else { trimmed })
}

/// Numbers the names that another one has: logs of several folders may have one name.
fn numbered(names: Vec<String>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::new();
    for name in names {
        let mut own = name.clone();
        let mut count = 1;
        while unique.contains(&own) {
            count += 1;
            own = format!("{name} ({count})");
        }
        unique.push(own);
    }
    unique
}

/// Names up to this length, in characters, stay whole if several runs are shown.
const LONG: usize = 20;

/// Splits the name of a run: `pretrain (job 12)` into `pretrain` and `job 12`.
fn name_and_job(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(')')?.rsplit_once(" (")
}

/// The characters after which a name is divided. A hyphen is inside a date or a word.
const SEPARATORS: [char; 3] = ['/', '_', '.'];

/// Divides a name after its separators, but not within a number or a version: `llama3.1_8b_71.out` into `llama3.1_`, `8b_`, `71.` and
/// `out`.
fn parts(name: &str) -> Vec<&str> {
    let mut before = None;
    let is_border = |(place, sign): (usize, char)| {
        let is_in_number = sign == '.' && name[place + 1..].starts_with(|next: char| next.is_ascii_digit());
        (SEPARATORS.contains(&sign) && !is_in_number).then_some(place + 1)
    };
    let ends = name.char_indices().filter_map(is_border).chain([name.len()]);
    let mut parts: Vec<&str> = ends.map(|end| &name[before.replace(end).unwrap_or(0)..end]).collect();
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_legend_are_what_tells_them_apart() {
        let name = |run: &str| format!("log-research.pretrain_{run}_0.out");
        let of = |runs: [&str; 2]| {
            let [first, second] = runs.map(name);
            short_names(&[&first, &second])
        };
        assert_eq!(
            of(["llama3.1_405b_fp8_512_2014", "llama3.1_405b_fp8_512_2015"]),
            ["…512_2014", "…512_2015"]
        );
        assert_eq!(
            of(["llama3.1_405b_fp8_512_71", "llama3.1_405b_bf16_512_72"]),
            ["…405b_fp8_512_71", "…405b_bf16_512_72"]
        );
        // With the last part that they share, the names would be long.
        assert_eq!(
            of(["llama3.1_405b_fp8_512_71", "llama3.1_70b_fp8_64_72"]),
            ["…405b_fp8_512_71", "…70b_fp8_64_72"]
        );
        let short_of = |ends: &[&str]| {
            let names: Vec<String> = ends.iter().map(|end| format!("{}_{end}", "long".repeat(20))).collect();
            short_names(&names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        assert_eq!(short_of(&["x_a_b", "x_a_b_c", "x_a_c"]), ["…a_b", "…a_b_c", "…a_c"]);
        let nights = ["a_nightly-2026-05-01.log", "a_nightly-2026-05-02.log"];
        assert_eq!(short_of(&nights), ["…nightly-2026-05-01", "…nightly-2026-05-02"]);
        for whole in [["run", "run-2"], ["nightly/a#1", "nightly/b#1 (job 3)"]] {
            assert_eq!(short_names(&whole), whole);
        }
        assert!(short_names(&[]).is_empty());
    }

    #[test]
    fn runs_of_one_name_are_called_by_their_jobs() {
        let of_job = |job: u32| format!("pretrain_llama3.1_405b_fp8_512 (job {job})");
        assert_eq!(short_names(&[&of_job(2010), &of_job(2011)]), ["job 2010", "job 2011"]);
        assert_eq!(short_names(&[&of_job(2010)]), ["…llama3.1_405b_fp8_512 (job 2010)"]);
    }

    #[test]
    fn a_run_alone_keeps_the_end_of_its_name() {
        let short = |name: &str| short_names(&[name]).concat();
        let log = "log-research.pretrain_llama3.1_405b_fp8_512_2014_0.out";
        assert_eq!(short(log), "…llama3.1_405b_fp8_512_2014_0.out");
        for whole in ["train.log", "_", &"a".repeat(50)] {
            assert_eq!(short(whole), whole);
        }
    }

    #[test]
    fn short_names_are_unique_and_never_empty() {
        let long = "long".repeat(20);
        for names in [
            ["train.log", "train.log", "train.log"].map(String::from),
            // The same without a separator at their ends.
            ["1_.out", "1..out", "1/.out"].map(|end| format!("{long}_{end}")),
            ["", "a", "b"].map(|start| format!("{start}_{long}")),
            ["__", "_", "/"].map(|end| format!("{long}{end}")),
        ] {
            let short = short_names(&names.each_ref().map(String::as_str));
            assert!(short.iter().all(|name| !name.is_empty()), "{short:?}");
            let is_new = |(place, name): (usize, &String)| !short[..place].contains(name);
            assert!(short.iter().enumerate().all(is_new), "{short:?}");
        }
        assert_eq!(short_names(&["train.log"; 2]), ["train.log", "train.log (2)"]);
    }
}
