//! The steps of one format while the log is being read, in the order of the log.

use serde::{Deserialize, Serialize};

use super::steps::{Step, Steps};
use super::{Format, Pause};

/// A figure that must be a number and was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotFinite {
    /// Which figure.
    pub figure: Figure,
    /// The label of the first step that it happened in.
    pub first: u64,
    /// How often it happened.
    pub count: u64,
}

/// A figure whose NaN makes a run worthless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// The loss, NaN or infinite.
    Loss,
    /// The norm of the gradient, NaN. An infinite one is what loss scaling looks for, and skips.
    GradNorm,
}

/// What has been read so far of one format.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    pub(super) steps: Steps,
    pub(super) planned_last: Option<u64>,
    /// How often the labels fell back.
    pub(super) restarts: u64,
    /// How often a label came right after itself.
    pub(super) repeats: u64,
    pub(super) not_finite: Vec<NotFinite>,
    /// The line of the last step, by its offset.
    pub(super) last_offset: u64,
    /// The time in that line, in seconds since 1970.
    pub(super) last_at: Option<i64>,
    /// The longest pause so far.
    pub(super) pause: Option<Pause>,
}

impl Series {
    pub(super) fn push(&mut self, step: &Step, offset: u64) {
        let last = self.steps.label.last().copied();
        let repeated = last == Some(step.label);
        self.repeats += u64::from(repeated);
        self.restarts += u64::from(last.is_some_and(|last| step.label < last));
        // A redrawn bar must not cost memory.
        self.steps.set(self.steps.len() - usize::from(repeated), step);

        self.planned_last = step.planned_last;
        self.last_offset = offset;
        if step.loss.is_some_and(|loss| !loss.is_finite()) {
            self.note(Figure::Loss, step.label);
        }
        if step.grad_norm.is_some_and(f64::is_nan) {
            self.note(Figure::GradNorm, step.label);
        }
    }

    /// Keeps the pause before the next step, whose line has the time `at`, if it is the longest one.
    pub(super) fn note_pause(&mut self, next: &Step, at: Option<i64>) {
        let (Some(last), Some(last_at), Some(at)) = (self.steps.label.last(), self.last_at, at) else {
            return;
        };
        let pause = Pause::between((*last, last_at), next, at);
        self.pause = self.pause.into_iter().chain(pause).max_by_key(|pause| pause.seconds);
    }

    /// How many labels were printed again, later ones having taken the place of earlier ones. The bar of NeMo 1 is
    /// redrawn all the time, which means nothing.
    pub(super) fn settle(&mut self, format: Format) -> u64 {
        let before = self.steps.len();
        self.steps.settle();
        let replaced = (before - self.steps.len()) as u64;
        if format == Format::Nemo1 { replaced } else { replaced + self.repeats }
    }

    fn note(&mut self, figure: Figure, label: u64) {
        match self.not_finite.iter_mut().find(|noted| noted.figure == figure) {
            Some(noted) => noted.count += 1,
            None => self.not_finite.push(NotFinite { figure, first: label, count: 1 }),
        }
    }
}
