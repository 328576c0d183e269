//! The short names of runs whose names have much in common.

/// Returns the names without their common beginning, except its last part, and without their common end. A shortened beginning
/// becomes an ellipsis. A single name stays whole, and so do names that sentences also write in full, unless only their jobs
/// differ.
pub(super) fn short_names(names: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split_inclusive(SEPARATORS).collect()).collect();
    let whole = || names.iter().copied().map(String::from).collect();
    let Some((first, others)) = parts.split_first() else { return whole() };
    let is_long = |name: &&str| name.chars().count() > LONG;
    if others.iter().all(|other| other == first) {
        return whole();
    }
    if !names.iter().any(is_long) {
        let jobs: Option<Vec<(&str, &str)>> = names.iter().map(|name| name_and_job(name)).collect();
        return match jobs {
            Some(jobs) if jobs.iter().all(|(name, _)| *name == jobs[0].0) => {
                jobs.into_iter().map(|(_, job)| job.to_string()).collect()
            }
            _ => whole(),
        };
    }
    let least = parts.iter().map(Vec::len).min().unwrap_or(0);
    // Something is left of each name.
    let start = (0..least.saturating_sub(1))
        .take_while(|place| others.iter().all(|other| other[*place] == first[*place]))
        .count();
    let end = (1..least - start)
        .take_while(|back| others.iter().all(|other| other[other.len() - back] == first[first.len() - back]))
        .count();
    let from = start.saturating_sub(1);
    let cut = if from > 0 { "…" } else { "" };
    let short = |parts: &Vec<&str>| parts[from..parts.len() - end].concat();
    parts.iter().map(|parts| format!("{cut}{}", short(parts).trim_end_matches(SEPARATORS))).collect()
}

/// Names up to this length, in characters, stay whole.
const LONG: usize = 60;

/// Splits the name of a run: `pretrain (job 12)` into `pretrain` and `job 12`.
fn name_and_job(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(')')?.rsplit_once(" (")
}

/// The characters after which a name is divided. A hyphen is inside a date or a word.
const SEPARATORS: [char; 3] = ['/', '_', '.'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_legend_are_what_tells_them_apart() {
        let name = |run: &str| format!("log-acct_of_the_platform_team.pretrain_{run}_0.out");
        let [first, second] = [name("llama3.1_405b_fp8_512_71"), name("llama3.1_405b_bf16_512_72")];
        assert_eq!(short_names(&[&first, &second]), ["…405b_fp8_512_71", "…405b_bf16_512_72"]);
        assert_eq!(short_names(&[&first]), [&*first]);
        assert_eq!(short_names(&[&first, &first]), [&*first, &*first]);
        let short_of = |ends: &[&str]| {
            let names: Vec<String> = ends.iter().map(|end| format!("{}_{end}", "long".repeat(20))).collect();
            short_names(&names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        assert_eq!(short_of(&["x_a_b", "x_a_b_c", "x_a_c"]), ["…a_b", "…a_b_c", "…a_c"]);
        assert_eq!(short_of(&["x_a_8 (job 1)", "x_a_8 (job 2)"]), ["…a_8 (job 1)", "…a_8 (job 2)"]);
        let nights = ["a_nightly-2026-05-01.log", "a_nightly-2026-05-02.log"];
        assert_eq!(short_of(&nights), ["…a_nightly-2026-05-01", "…a_nightly-2026-05-02"]);
        let of_job = |job: u32| format!("pretrain_llama3.1_405b_fp8_512 (job {job})");
        assert_eq!(short_names(&[&of_job(2010), &of_job(2011)]), ["job 2010", "job 2011"]);
        for whole in [["run", "run-2"], ["nightly/a#1", "nightly/b#1 (job 3)"]] {
            assert_eq!(short_names(&whole), whole);
        }
        assert!(short_names(&[]).is_empty());
    }
}
