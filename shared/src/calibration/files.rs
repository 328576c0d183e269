//! The data files that a calibration writes.

use super::fit::FitPoint;
use super::held_out::{HeldOutErrors, thousandth};
use super::intervals::FittedInterval;
use super::is_routed;
use crate::estimate::{Anchors, Constant, MeasuredConfiguration, MeasuredRun};
use crate::units::significant;
use std::collections::BTreeMap;

/// The files that a calibration writes: data files and the report.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationFiles {
    /// `calibration.csv`: the fitted constants.
    pub constants: String,
    /// `anchors.csv`: the model's error on published runs.
    pub anchors: String,
    /// `anchor_runs.csv`.
    pub anchor_runs: String,
    /// `intervals.csv`: the intervals of held-out predictions.
    pub intervals: String,
    /// `measured_extent.csv`: what was measured of each software on each GPU type.
    pub extent: String,
    /// `held_out.csv`: the error of the prediction of each held-out run.
    pub held_out: String,
    /// `regret.csv`: what trusting a search costs.
    pub regret: String,
    /// `accuracy.md`: the report.
    pub report: String,
    /// `accuracy.svg`: predicted versus measured step times.
    pub scatter: String,
}

/// Formats the logarithm of a ratio with five digits.
pub(super) fn five(value: f64) -> String {
    format!("{value:.4e}")
}

/// Formats a weight with two decimals, which moves a prediction by less than 0.1 %: anchors.csv is part of every program that
/// predicts, so its size counts.
fn hundredth(value: f64) -> String {
    format!("{value:.2}")
}

/// Formats a number with seven digits, as in the data files.
pub(super) fn seven(value: f64) -> String {
    let text = format!("{value:.6e}");
    text.strip_suffix("e0").unwrap_or(&text).to_string()
}

const CONSTANTS_HEAD: &str = "\
# Constants of the step time. `prior` and `spread` (the standard deviation of the logarithm) were set before any run was
# examined. `value` is fitted to measurements.csv by `trainplan calibrate`, which rewrites this file.
";

const ANCHORS_HEAD: &str = "\
# Published runs that correct the model. `shape` and `gpu` are hashes of the architecture and of the GPU type. `place`: GPUs,
# TP, PP, CP, EP, expert TP, virtual pipeline, micro batch, gradient accumulation, sequence length, layers, recomputation (0 to
# 2), FSDP. `settings` is a hash of what else differs from the software's defaults. `pull` is the run's weight. `surprise`: by
# how many percent its prediction without its mapping was off, as a logarithm. Written by `trainplan calibrate`.
";

const ANCHOR_RUNS_HEAD: &str = "\
# The rows of anchors.csv in words. `releases` are those that measured the run. The other columns have a value for each of them,
# or `?`: seconds per step, tokens per second and GPU, the error of the prediction without the run's mapping, and where the run
# was published. Written by `trainplan calibrate`.
";

const HELD_OUT_HEAD: &str = "\
# The error of the prediction of each measured run: predicted over measured step time, minus 1. `mapping`: corrected by
# measured runs, none of them of the same mapping. `model`: by the physical model, fitted without any run of the model. As in
# docs/accuracy.md. Written by `trainplan calibrate`.
";

const INTERVALS_HEAD: &str = "\
# The interval of the ratio of measured to predicted step time that contains 80 % of the held-out rows of a class, if nothing is
# doubtful about their corrections. Otherwise the square of `per_doubt` times the doubt is added to those of the ends' logarithms.
# The larger `growth`, the later the interval of an interpolated prediction grows to that of an extrapolated one on the way from a
# measured layout to one that is hardly similar.
# `coverage` is the share of rows inside an interval computed from the other folds. Written by `trainplan calibrate`.
";

const EXTENT_HEAD: &str = "\
# What was measured of each software on each GPU type: the most GPUs of a run of a dense model and of a mixture of experts, 0
# without runs. Intervals are wider beyond it. Written by `trainplan calibrate`.
";

pub(super) fn constants_file(all: &[Constant], values: &[f64]) -> String {
    let mut text = String::from(CONSTANTS_HEAD);
    let rows = all.iter().zip(values).map(|(constant, value)| {
        [
            constant.name.clone(),
            seven(*value),
            constant.prior.to_string(),
            constant.spread.to_string(),
            constant.unit.clone(),
            constant.source.clone(),
        ]
    });
    text += &table(["name", "value", "prior", "spread", "unit", "source"], rows);
    text
}

pub(super) fn anchors_file(anchors: &Anchors) -> String {
    let mut text = String::from(ANCHORS_HEAD);
    let rows = anchors.runs().iter().map(|run| {
        let [shape, gpu, dtype, stack, place, settings] = run.features.cells();
        let surprise = match format!("{:.0}", run.surprise * 100.0) {
            none if none == "0" => String::new(),
            some => some,
        };
        [shape, gpu, dtype, stack, place, settings, hundredth(run.weight), surprise]
    });
    text += &table(["shape", "gpu", "dtype", "stack", "place", "settings", "pull", "surprise"], rows);
    text
}

pub(super) fn anchor_runs_file(anchors: &Anchors) -> String {
    let mut text = String::from(ANCHOR_RUNS_HEAD);
    let rows = anchors.runs().iter().map(|run| {
        let MeasuredConfiguration { what, runs } = run.record.configuration();
        let releases: Vec<&str> = runs.iter().map(|run| &*run.release).collect();
        let values = |write: fn(&MeasuredRun) -> String| runs.iter().map(write).collect::<Vec<_>>().join(" ");
        [
            what.clone(),
            releases.join("; "),
            values(|run| significant(run.step_time_s, 5)),
            values(|run| significant(run.tokens_per_s_per_gpu, 5)),
            values(|run| run.held_out_error.map_or_else(|| "?".to_string(), thousandth)),
            values(|run| run.url.clone().unwrap_or_else(|| "?".to_string())),
        ]
    });
    text += &table(["what", "releases", "step_time_s", "tokens", "held_out", "urls"], rows);
    text
}

pub(super) fn intervals_file(intervals: &[FittedInterval]) -> String {
    let mut text = String::from(INTERVALS_HEAD);
    let rows = intervals.iter().map(|interval| {
        [
            interval.class.title().to_string(),
            interval.n.to_string(),
            seven(interval.low),
            seven(interval.high),
            interval.per_doubt.to_string(),
            interval.growth.to_string(),
            format!("{:.3}", interval.coverage),
        ]
    });
    text += &table(["class", "n", "low", "high", "per_doubt", "growth", "coverage"], rows);
    text
}

/// Returns `measured_extent.csv`: of each GPU type and software, the most GPUs of a measured run.
pub(super) fn extent_file(points: &[FitPoint<'_>]) -> String {
    let mut extents: BTreeMap<(&str, &str), [u32; 2]> = BTreeMap::new();
    for point in points {
        let Ok(scenario) = &point.row.scenario else { continue };
        let Some(stack) = scenario.options.software.known() else { continue };
        let most = &mut extents.entry((&scenario.gpu.id, stack.id())).or_default()
            [usize::from(is_routed(point.row))];
        *most = scenario.layout.gpus().max(*most);
    }
    let rows = extents.into_iter().map(|((gpu, stack), [dense, routed])| {
        [gpu.to_string(), stack.to_string(), dense.to_string(), routed.to_string()]
    });
    String::from(EXTENT_HEAD) + &table(["gpu", "stack", "dense_gpus", "routed_gpus"], rows)
}

pub(super) fn held_out_file(errors: &HeldOutErrors) -> String {
    let mut text = String::from(HELD_OUT_HEAD);
    let rows =
        errors.iter().map(|(id, error)| [id.to_string(), thousandth(error.mapping), thousandth(error.model)]);
    text += &table(["id", "mapping", "model"], rows);
    text
}

/// Formats a table as CSV.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing text to memory can't fail.
    let _ = writer.write_record(header);
    for row in rows {
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_files_begin_with_the_comments_that_calibrate_writes() {
        assert!(include_str!("../../data/calibration.csv").starts_with(CONSTANTS_HEAD));
        assert!(include_str!("../../data/anchors.csv").starts_with(ANCHORS_HEAD));
        assert!(include_str!("../../data/intervals.csv").starts_with(INTERVALS_HEAD));
        assert!(include_str!("../../data/held_out.csv").starts_with(HELD_OUT_HEAD));
    }

    #[test]
    fn held_out_errors_read_back_as_written() {
        let embedded = HeldOutErrors::embedded();
        let file = include_str!("../../data/held_out.csv");
        assert!(held_out_file(&embedded) == file);
        let first = file.lines().find_map(|line| line.strip_prefix("r0001,")).unwrap();
        let (mapping, model) = first.split_once(',').unwrap();
        let error = embedded.get("r0001").unwrap();
        assert_eq!([thousandth(error.mapping), thousandth(error.model)], [mapping, model]);
        // No prediction is judged on rows that are not fitted.
        assert_eq!(embedded.get("r0002"), None);
    }
}
