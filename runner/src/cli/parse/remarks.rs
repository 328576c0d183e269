//! Notes on a report beyond its row of the table.

use super::super::output::printable;
use std::collections::HashMap;
use trainplan_shared::log::Status;
use trainplan_shared::result::{Report, Slowdown};

/// Returns why a log was not scored or is not comparable, what could explain that it is slower than predicted, and its notes.
pub(in crate::cli) fn remarks(report: &Report) -> Vec<String> {
    // For a log that was not scored, the status reason is enough.
    let reasons = report.comparable.reasons.iter().filter(|_| report.status == Status::Scored);
    let reasons = reasons.map(|reason| format!("not comparable: {reason}"));
    let slowdown = report.slowdown.as_ref().map(Slowdown::sentence);
    let remarks = report.reason.iter().cloned().chain(reasons).chain(slowdown);
    remarks.chain(report.notes.iter().cloned()).map(|remark| printable(&remark)).collect()
}

/// Returns the shortest end of each path that no other path has: the file's name, with as many of its folders as it takes. The table has
/// the whole paths.
pub(super) fn brief_paths<'a>(paths: &[&'a str]) -> Vec<&'a str> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for end in paths.iter().flat_map(|&path| ends(path)) {
        *counts.entry(end).or_default() += 1;
    }
    let brief = |&path: &&'a str| ends(path).find(|end| counts.get(end) == Some(&1)).unwrap_or(path);
    paths.iter().map(brief).collect()
}

/// Returns the ends of a path that begin with a name, the shortest first, and the path itself last.
fn ends(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(move |(at, _)| &path[at + 1..]).filter(|end| !end.is_empty()).chain([path])
}

#[cfg(test)]
mod tests {
    use super::brief_paths;

    #[test]
    fn paths_are_as_brief_as_they_can_be() {
        let paths =
            ["/lustre/a/x/train.log", "/lustre/b/x/train.log", "/lustre/b/x/other.log", "train.log", "-"];
        let brief = ["a/x/train.log", "b/x/train.log", "other.log", "train.log", "-"];
        assert_eq!(brief_paths(&paths), brief);
        assert_eq!(brief_paths(&["x/y.log", "x/y.log"]), ["x/y.log"; 2]);
    }
}
