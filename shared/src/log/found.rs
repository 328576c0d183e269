//! Collects what the parser finds, and makes the log of it at the end.

use super::anchor::{Anchor, Hit};
use super::failure::Failures;
use super::megatron_bridge::{self, Memory, Utilisation};
use super::series::Series;
use super::steps::Step;
use super::{Checkpoint, Content, Format, Log, maxtext, nemo1, nemo2, paxml, torchtitan};

/// Everything that has been found in a log.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// The steps of each format, in the order of [`Format::ALL`]: what looks like a step of a second format is
    /// usually chatter.
    series: [Series; Format::ALL.len()],
    utilisations: Vec<Utilisation>,
    memory: Vec<Memory>,
    pub(super) checkpoints: Vec<Checkpoint>,
    pub(super) failures: Failures,
    pub(super) ended: bool,
    pub(super) profiled: bool,
    pub(super) traced: bool,
}

impl Found {
    /// Adds the step of a hit.
    pub(super) fn note(&mut self, anchor: Anchor, hit: &Hit, offset: u64) {
        let (format, step) = match anchor {
            Anchor::Nemo1 => (Format::Nemo1, nemo1::step(hit)),
            Anchor::Nemo2 => (Format::Nemo2, nemo2::step(hit)),
            Anchor::Iteration => (Format::MegatronBridge, megatron_bridge::step(hit)),
            Anchor::Torchtitan => (Format::Torchtitan, torchtitan::step(hit)),
            Anchor::Maxtext => (Format::Maxtext, maxtext::step(hit)),
            Anchor::Paxml => (Format::Paxml, paxml::step(hit, self.of(Format::Paxml).steps.len())),
            Anchor::Utilisation => {
                let before = self.of(Format::MegatronBridge).steps.len();
                self.utilisations.extend(megatron_bridge::utilisation(hit, before, offset));
                return;
            }
            Anchor::Memory => {
                self.note_memory(megatron_bridge::memory(hit));
                return;
            }
            _ => return,
        };
        if let Some(step) = step {
            self.of(format).push(&step, offset);
        }
    }

    fn of(&mut self, format: Format) -> &mut Series {
        &mut self.series[format as usize]
    }

    /// Several ranks may log the memory of the same step: the largest value counts.
    fn note_memory(&mut self, told: Option<Memory>) {
        let Some(told) = told else { return };
        let most = |one: Option<f64>, other| [one, other].into_iter().flatten().reduce(f64::max);
        match self.memory.last_mut().filter(|known| known.label == told.label) {
            Some(known) => {
                known.peak_bytes = most(known.peak_bytes, told.peak_bytes);
                known.allocated_bytes = most(known.allocated_bytes, told.allocated_bytes);
            }
            None => self.memory.push(told),
        }
    }

    /// Returns the finished log.
    pub(super) fn settle(mut self, bytes: u64, lines: u64, content: Content) -> Log {
        let counted = self.settle_megatron();
        // The most steps win; of equals, the first.
        let format = Format::ALL.into_iter().rev().max_by_key(|format| self.of(*format).steps.len());
        let format = format.filter(|format| !self.of(*format).steps.is_empty());
        let mut series = format.map(|format| std::mem::take(self.of(format))).unwrap_or_default();
        let duplicates = format.map_or(0, |format| series.settle(format));
        if format == Some(Format::MegatronBridge) {
            for memory in &self.memory {
                series.steps.set_memory(memory.label, memory.peak_bytes, memory.allocated_bytes);
            }
        }
        let mut failures = self.failures.noted;
        for failure in &mut failures {
            failure.after_last_step = format.is_none() || failure.last_offset > series.last_offset;
        }
        Log {
            bytes,
            lines,
            content,
            format,
            steps: series.steps,
            labels_counted: format == Some(Format::Paxml)
                || counted && format == Some(Format::MegatronBridge),
            planned_last: series.planned_last,
            ended: self.ended,
            duplicates,
            restarts: series.restarts,
            not_finite: series.not_finite,
            checkpoints: self.checkpoints,
            failures,
            harmless: self.failures.harmless,
            profiled: self.profiled,
            traced: self.traced,
        }
    }

    /// Brings the two ranks of Megatron-Bridge together. If the last rank is missing, its steps are those of
    /// rank 0, counted: then this is true.
    fn settle_megatron(&mut self) -> bool {
        let utilisations = std::mem::take(&mut self.utilisations);
        let series = self.of(Format::MegatronBridge);
        if !series.steps.is_empty() {
            megatron_bridge::pair(&mut series.steps, &utilisations);
            return false;
        }
        for (label, utilisation) in (1..).zip(utilisations) {
            let step = Step {
                label,
                step_time_s: utilisation.step_time_s,
                tflops_per_gpu: Some(utilisation.tflops_per_gpu),
                ..Step::default()
            };
            series.push(&step, utilisation.offset);
        }
        true
    }
}
