//! Notes on a report beyond its row of the table.

use super::super::output::printable;
use std::collections::HashMap;
use trainplan_shared::log::Status;
use trainplan_shared::problem::all_of;
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

/// A remark, and the logs or runs that it is about.
pub(in crate::cli) struct SharedRemark<'a> {
    /// Their names.
    pub(in crate::cli) names: Vec<&'a str>,
    /// The remark.
    pub(in crate::cli) text: &'a str,
}

impl<'a> SharedRemark<'a> {
    /// Returns each remark once, in the order in which they first occur. Each of `all` is a name with its remarks.
    pub(in crate::cli) fn merged(all: &'a [(String, Vec<String>)]) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::new();
        for (name, remarks) in all {
            for text in remarks {
                match merged.iter_mut().find(|known| known.text == text) {
                    Some(known) => known.names.push(name),
                    None => merged.push(Self { names: vec![name.as_str()], text }),
                }
            }
        }
        merged
    }

    /// Returns the remark as a line about some of `all` logs. Many logs are counted, not named.
    pub(in crate::cli) fn line(&self, all: usize) -> String {
        /// The most logs that are named.
        const NAMED: usize = 3;
        let who = match self.names.len() {
            2 if all == 2 => "Both logs".to_owned(),
            count if count > 2 && count == all => format!("All {all} logs"),
            count if count > NAMED => format!("{count} of {all} logs"),
            _ => all_of(&self.names),
        };
        format!("{who}: {}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_brief_as_they_can_be() {
        let paths =
            ["/lustre/a/x/train.log", "/lustre/b/x/train.log", "/lustre/b/x/other.log", "train.log", "-"];
        let brief = ["a/x/train.log", "b/x/train.log", "other.log", "train.log", "-"];
        assert_eq!(brief_paths(&paths), brief);
        assert_eq!(brief_paths(&["x/y.log", "x/y.log"]), ["x/y.log"; 2]);
    }

    #[test]
    fn equal_remarks_of_several_logs_are_one_line() {
        let lines = |logs: &[&[&str]]| {
            let remarks = |texts: &&[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let logs: Vec<(String, Vec<String>)> = logs
                .iter()
                .enumerate()
                .map(|(place, texts)| (format!("{place}.log"), remarks(texts)))
                .collect();
            SharedRemark::merged(&logs).iter().map(|remark| remark.line(logs.len())).collect::<Vec<_>>()
        };
        assert_eq!(lines(&[&["Noisy.", "Slow."]]), ["0.log: Noisy.", "0.log: Slow."]);
        assert_eq!(lines(&[&["Noisy."], &["Slow.", "Noisy."]]), ["Both logs: Noisy.", "1.log: Slow."]);
        assert_eq!(lines(&[&["Noisy."][..]; 9]), ["All 9 logs: Noisy."]);
        assert_eq!(
            lines(&[&["Noisy."], &[], &["Noisy."], &[], &["Noisy."]]),
            ["0.log, 2.log and 4.log: Noisy."]
        );
        assert_eq!(
            lines(&[&["Noisy."], &["Noisy."], &["Noisy."], &["Noisy."], &[]]),
            ["4 of 5 logs: Noisy."]
        );
    }
}
