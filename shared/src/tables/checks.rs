//! Time lines judged by each threshold: the table and the CSV file of `trainplan check`.

use super::{cells, number};
use crate::history::{ThresholdCheck, TimeLine, TimeLinePoint};

/// The newest run of a time line, judged by one threshold.
#[derive(Debug, Clone, Copy)]
pub struct CheckedTimeLine<'a> {
    /// The time line.
    pub line: &'a TimeLine,
    /// The check.
    pub check: &'a ThresholdCheck,
}

impl<'a> CheckedTimeLine<'a> {
    /// Returns a row for each check of each time line.
    pub fn all(lines: &'a [TimeLine]) -> Vec<Self> {
        lines.iter().flat_map(|line| line.checks.iter().map(move |check| Self { line, check })).collect()
    }

    fn newest(&self) -> Option<&TimeLinePoint> {
        self.line.points.last()
    }
}

columns! {
    /// The columns of a table of checks.
    CheckColumn of CheckedTimeLine<'_>;

    Outcome "outcome" {
        terminal "outcome" => |row| Some(row.check.outcome.id().to_owned());
        csv 0 "outcome" => |row| Some(row.check.outcome.id().to_owned());
    }
    TimeLine "time_line" {
        terminal "timeline" [wraps] => |row| Some(row.line.label.clone());
    }
    Threshold "threshold" {
        terminal "judged by" => |row| Some(row.check.kind.id().to_owned());
        csv 1 "judged_by" => |row| Some(row.check.kind.id().to_owned());
    }
    Recipe "recipe" {
        csv 2 "recipe" => |row| row.line.key.recipe.clone();
    }
    Scenario "scenario" {
        csv 3 "scenario" => |row| row.line.key.scenario.clone();
    }
    Cluster "cluster" {
        csv 4 "cluster" => |row| row.line.key.cluster.clone();
    }
    Measured "measured" {
        terminal "step s" [number] => |row| row.check.measured_s.map(cells::seconds);
        csv 7 "measured_s" => |row| number(row.check.measured_s);
    }
    Run "run" {
        terminal "newest run" [extra(1)] => |row| row.newest().map(|point| point.id.clone());
        csv 5 "id" => |row| row.newest().map(|point| point.id.clone());
    }
    At "at" {
        csv 6 "at" => |row| row.newest().map(|point| point.at.clone());
    }
    Expected "expected" {
        csv 8 "expected_s" => |row| number(row.check.expected_s);
    }
    Limit "limit" {
        csv 9 "limit_s" => |row| number(row.check.limit_s);
    }
    Why "why" {
        terminal "why" [wraps] => |row| Some(row.check.text.clone());
        csv 10 "text" => |row| Some(row.check.text.clone());
    }
}
