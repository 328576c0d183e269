//! The step series: what a log says of each step, in columns.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Span;

/// One figure of every step. Either no step has it, and the column is empty, or it is as long as the series.
/// It never holds NaN or infinity: such values of a log are absent here and reported by
/// [`Log::not_finite`](super::Log::not_finite).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Column(Vec<Option<f64>>);

impl Column {
    /// The figure of the step in `row`, if the log has it.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<f64> {
        self.0.get(row).copied().flatten()
    }

    /// Whether no step has the figure.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The figures there are in `rows`, in order.
    pub fn values(&self, rows: Range<usize>) -> impl Iterator<Item = f64> + '_ {
        rows.filter_map(|row| self.get(row))
    }

    /// The largest figure of the column.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.0.iter().flatten().copied().max_by(f64::total_cmp)
    }

    /// Writes a row. While parsing, a column is only as long as the last figure that it has.
    pub(super) fn set(&mut self, row: usize, figure: Option<f64>) {
        let figure = figure.filter(|figure| figure.is_finite());
        if figure.is_some() && row >= self.0.len() {
            self.0.resize(row + 1, None);
        }
        if let Some(place) = self.0.get_mut(row) {
            *place = figure;
        }
    }

    /// The same column with only `rows`, in their order.
    fn select(&self, rows: &[usize]) -> Self {
        let figures: Vec<_> = rows.iter().map(|row| self.get(*row)).collect();
        if figures.iter().any(Option::is_some) { Self(figures) } else { Self::default() }
    }
}

/// Every step of a run once, in the order of their labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steps {
    /// The iteration's number, as the log prints it: NeMo 2 and MaxText count from zero, the others from one.
    pub label: Vec<u64>,
    /// Seconds.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub step_time_s: Column,
    /// The training loss.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub loss: Column,
    /// The norm of the gradient, before clipping.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub grad_norm: Column,
    /// TFLOPS per GPU, as the framework counts FLOPs.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub tflops_per_gpu: Column,
    /// Tokens per second and GPU.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub tokens_per_s_per_gpu: Column,
    /// Model FLOPs utilization as the framework computes it, as a fraction.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub mfu: Column,
    /// The peak of allocated memory (torchtitan: reserved), on the rank that prints it.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub memory_peak_bytes: Column,
    /// The memory that is allocated when the line is printed.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub memory_allocated_bytes: Column,
    /// Samples that the run has seen up to and with this step.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub consumed_samples: Column,
    /// Sequences in a step.
    #[serde(skip_serializing_if = "Column::is_empty")]
    pub global_batch_size: Column,
}

impl Steps {
    /// The steps of a warm-up. Releases from 25.05 on score no earlier step.
    pub const WARM_UP_STEPS: u64 = 10;

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.label.len()
    }

    /// Returns whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.label.is_empty()
    }

    /// The first and the last label.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        Some(Span { first: *self.label.first()?, last: *self.label.last()? })
    }

    /// Returns the range of the steps after the first `warm_up`, but at least the second half of the steps; none without steps.
    #[must_use]
    pub fn after_warm_up(&self, warm_up: u64) -> Option<Span> {
        let whole = self.span()?;
        let warm_up = warm_up.min(whole.count() / 2);
        Some(Span { first: whole.first.saturating_add(warm_up), ..whole })
    }

    /// The rows whose labels lie in `span`.
    #[must_use]
    pub fn rows(&self, span: Span) -> Range<usize> {
        let from = self.label.partition_point(|label| *label < span.first);
        let to = self.label.partition_point(|label| *label <= span.last);
        from..to.max(from)
    }

    /// Returns a window of the last steps, at most ten and at most half of all: those before are warm-up. None if there are fewer
    /// than four steps, or if more than half of the window's numbers are missing.
    #[must_use]
    pub fn last_window(&self) -> Option<Span> {
        // As many steps as the releases score since 25.08.
        const MOST: usize = 10;
        let count = MOST.min(self.len() / 2);
        let window = Span { first: *self.label.get(self.len() - count)?, last: *self.label.last()? };
        (count > 1 && window.count() <= 2 * count as u64).then_some(window)
    }

    /// The labels that are missing between the first and the last.
    #[must_use]
    pub fn gaps(&self) -> Vec<Span> {
        self.label
            .windows(2)
            .filter(|pair| pair[1].saturating_sub(pair[0]) > 1)
            .map(|pair| Span { first: pair[0] + 1, last: pair[1] - 1 })
            .collect()
    }

    /// The global batch size in sequences: as printed, or else the growth of the consumed samples per step.
    #[must_use]
    pub fn global_batch_size(&self) -> Option<u64> {
        let printed = (0..self.len()).rev().find_map(|row| self.global_batch_size.get(row));
        let grown = || {
            (1..self.len())
                .rev()
                .filter(|row| self.label[row - 1].saturating_add(1) == self.label[*row])
                .find_map(|row| Some(self.consumed_samples.get(row)? - self.consumed_samples.get(row - 1)?))
        };
        printed.or_else(grown).filter(|size| (1.0..1e15).contains(size)).map(|size| size as u64)
    }

    /// Computes missing step times of a log that prints tokens per second. `tokens_per_gpu` is the tokens of a
    /// step divided by the number of GPUs.
    pub fn fill_step_times(&mut self, tokens_per_gpu: f64) {
        for row in 0..self.len() {
            if let (None, Some(rate)) = (self.step_time_s.get(row), self.tokens_per_s_per_gpu.get(row))
                && rate > 0.0
            {
                self.step_time_s.set(row, usable_time(tokens_per_gpu / rate));
            }
        }
        self.complete();
    }

    /// Writes a row, or one more.
    pub(super) fn set(&mut self, row: usize, step: &Step) {
        self.label.resize(self.len().max(row + 1), 0);
        self.label[row] = step.label;
        for (column, figure) in self.columns().into_iter().zip(step.figures()) {
            column.set(row, figure);
        }
    }

    /// Writes the memory of the step `label`, if there is such a step.
    pub(super) fn set_memory(&mut self, label: u64, peak_bytes: Option<f64>, allocated_bytes: Option<f64>) {
        if let Ok(row) = self.label.binary_search(&label) {
            self.memory_peak_bytes.set(row, peak_bytes);
            self.memory_allocated_bytes.set(row, allocated_bytes);
            self.complete();
        }
    }

    /// Leaves one row for each label, in the order of the labels: the last that was printed.
    pub(super) fn settle(&mut self) {
        let last: BTreeMap<u64, usize> =
            self.label.iter().enumerate().map(|(row, label)| (*label, row)).collect();
        let rows: Vec<usize> = last.values().copied().collect();
        for column in self.columns() {
            *column = column.select(&rows);
        }
        self.label = last.into_keys().collect();
    }

    /// Whether the labels ascend and every column is empty or whole: what was not read from a log may break this.
    pub(crate) fn is_sound(&mut self) -> bool {
        let rows = self.len();
        self.label.is_sorted_by(|one, next| one < next)
            && self.columns().iter().all(|column| column.is_empty() || column.0.len() == rows)
    }

    /// Makes every column that has a figure as long as the series.
    fn complete(&mut self) {
        let rows = self.len();
        for column in self.columns().into_iter().filter(|column| !column.is_empty()) {
            column.0.resize(rows, None);
        }
    }

    /// The columns, in the order of [`Step::figures`].
    fn columns(&mut self) -> [&mut Column; 10] {
        [
            &mut self.step_time_s,
            &mut self.loss,
            &mut self.grad_norm,
            &mut self.tflops_per_gpu,
            &mut self.tokens_per_s_per_gpu,
            &mut self.mfu,
            &mut self.memory_peak_bytes,
            &mut self.memory_allocated_bytes,
            &mut self.consumed_samples,
            &mut self.global_batch_size,
        ]
    }
}

/// A step as read from a line, in the units of [`Steps`]. Its loss may be NaN.
#[derive(Debug, Clone, Default)]
pub(super) struct Step {
    pub(super) label: u64,
    /// The label that the run is to end with.
    pub(super) planned_last: Option<u64>,
    pub(super) step_time_s: Option<f64>,
    pub(super) loss: Option<f64>,
    pub(super) grad_norm: Option<f64>,
    pub(super) tflops_per_gpu: Option<f64>,
    pub(super) tokens_per_s_per_gpu: Option<f64>,
    pub(super) mfu: Option<f64>,
    pub(super) memory_peak_bytes: Option<f64>,
    pub(super) memory_allocated_bytes: Option<f64>,
    pub(super) consumed_samples: Option<f64>,
    pub(super) global_batch_size: Option<f64>,
}

impl Step {
    fn figures(&self) -> [Option<f64>; 10] {
        [
            self.step_time_s.and_then(usable_time),
            self.loss,
            self.grad_norm,
            self.tflops_per_gpu.and_then(usable_figure),
            self.tokens_per_s_per_gpu.and_then(usable_figure),
            self.mfu.and_then(usable_figure),
            self.memory_peak_bytes.and_then(usable_figure),
            self.memory_allocated_bytes.and_then(usable_figure),
            self.consumed_samples.and_then(usable_figure),
            self.global_batch_size.and_then(usable_figure),
        ]
    }
}

/// The seconds that a step can take.
pub const STEP_TIMES: Range<f64> = 1e-6..1e9;

/// Rates, memory and batch sizes beyond this are not measurements.
pub(crate) const FIGURES: Range<f64> = 0.0..1e24;

fn usable_time(seconds: f64) -> Option<f64> {
    Some(seconds).filter(|seconds| STEP_TIMES.contains(seconds))
}

fn usable_figure(figure: f64) -> Option<f64> {
    Some(figure).filter(|figure| FIGURES.contains(figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(rows: &[(u64, f64)]) -> Steps {
        let mut steps = Steps::default();
        for (row, (label, step_time_s)) in rows.iter().enumerate() {
            steps.set(row, &Step { label: *label, step_time_s: Some(*step_time_s), ..Step::default() });
        }
        steps.settle();
        steps
    }

    #[test]
    fn settled_steps_are_in_order_and_the_last_of_each_label() {
        let steps = steps(&[(3, 1.0), (1, 2.0), (3, 3.0), (6, f64::NAN)]);
        assert_eq!(steps.label, [1, 3, 6]);
        assert_eq!(steps.step_time_s, Column(vec![Some(2.0), Some(3.0), None]));
        assert!(steps.loss.is_empty());
        assert_eq!(steps.gaps(), [Span { first: 2, last: 2 }, Span { first: 4, last: 5 }]);
        assert_eq!(steps.rows(Span { first: 2, last: 6 }), 1..3);
        assert_eq!(steps.rows(Span { first: 7, last: 5 }), 3..3);
    }

    #[test]
    fn the_last_window_leaves_out_the_warm_up() {
        let of = |labels: &[u64]| {
            let rows: Vec<(u64, f64)> = labels.iter().map(|label| (*label, 1.0)).collect();
            steps(&rows).last_window().map(|window| window.to_string())
        };
        let all: Vec<u64> = (0..30).collect();
        assert_eq!(of(&all).as_deref(), Some("20-29"));
        assert_eq!(of(&all[..7]).as_deref(), Some("4-6"));
        assert_eq!(of(&[0, 1, 9, 99]), None);
        assert_eq!(of(&all[..3]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn json_has_null_for_what_is_absent_and_comes_back_equal() {
        let steps = steps(&[(1, 2.5), (2, f64::INFINITY)]);
        let json = serde_json::to_string(&steps).unwrap();
        assert_eq!(json, r#"{"label":[1,2],"step_time_s":[2.5,null]}"#);
        assert_eq!(serde_json::from_str::<Steps>(&json).unwrap(), steps);
    }

    #[test]
    fn step_times_from_tokens_per_second() {
        let mut steps = Steps::default();
        let rate = |label, rate| Step { label, tokens_per_s_per_gpu: rate, ..Step::default() };
        for (row, step) in
            [rate(1, Some(100.0)), rate(2, Some(0.0)), rate(3, Some(200.0)), rate(4, None)].iter().enumerate()
        {
            steps.set(row, step);
        }
        steps.settle();
        steps.fill_step_times(400.0);
        assert_eq!(steps.step_time_s, Column(vec![Some(4.0), None, Some(2.0), None]));
    }

    #[test]
    fn a_column_is_empty_or_whole() {
        let mut steps = steps(&[(1, 2.0), (2, 2.0), (3, 2.0)]);
        steps.set_memory(2, Some(5.0), None);
        assert_eq!(steps.memory_peak_bytes, Column(vec![None, Some(5.0), None]));
        assert!(steps.memory_allocated_bytes.is_empty());
    }

    #[test]
    fn the_batch_size_is_printed_or_follows_from_the_samples() {
        let mut steps = Steps::default();
        for (row, label) in [4_u64, 5, 7].into_iter().enumerate() {
            let consumed_samples = Some(label as f64 * 256.0);
            steps.set(row, &Step { label, consumed_samples, ..Step::default() });
        }
        assert_eq!(steps.global_batch_size(), Some(256));
    }
}
