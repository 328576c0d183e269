//! The mappings of a comparison, each with its repeats pooled: the Compare page, `trainplan compare` and its files.

use super::cells;
use crate::compare::PooledRuns;
use crate::units::signed;

columns! {
    /// The columns of a table of pooled runs.
    PooledColumn of PooledRuns;

    Runs "runs" {
        terminal "repeats pooled" [wraps] => |pooled| Some(pooled.label.clone());
    }
    Mean "mean" {
        terminal "mean s" [number] => |pooled| Some(mean_and_interval(pooled).0);
    }
    Interval "interval" {
        terminal "95 % interval s" [extra(1)] => |pooled| {
            Some(mean_and_interval(pooled).1)
        };
    }
    RunToRun "run_to_run" {
        terminal "run to run %" [number, extra(2)] => |pooled| {
            pooled.run_to_run_percent.map(|percent| format!("{percent:.2}"))
        };
    }
    Change "change" {
        terminal "change %" [number] => |pooled| {
            Some(signed(pooled.against.as_ref()?.step_time?.percent, 2))
        };
    }
    Verdict "verdict" {
        terminal "verdict" [wraps] => |pooled| Some(pooled.against.as_ref()?.verdict.title().to_owned());
    }
}

fn mean_and_interval(pooled: &PooledRuns) -> (String, String) {
    cells::mean_and_interval(pooled.mean_s, pooled.low_s, pooled.high_s)
}
