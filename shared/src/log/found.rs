//! The records found so far, which make up the log in the end.

use super::arguments::ArgumentDump;
use super::failure::Failures;
use super::hit::Hit;
use super::marker::Marker;
use super::megatron_bridge::{self, Memory, Utilisation};
use super::nccl_lines::NcclLines;
use super::series::Series;
use super::steps::Step;
use super::{
    Checkpoint, Content, Format, Log, StatedBatch, StatedSetup, clock, maxtext, nemo1, nemo2, paxml,
    torchtitan,
};

/// The records found in a log.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// The steps of each format, in the order of [`Format::ALL`]. Apparent steps of a second format are usually other
    /// output.
    series: [Series; Format::ALL.len()],
    utilisations: Vec<Utilisation>,
    memory: Vec<Memory>,
    pub(super) checkpoints: Vec<Checkpoint>,
    pub(super) arguments: ArgumentDump,
    pub(super) scenario: Option<String>,
    pub(super) batch: Option<StatedBatch>,
    pub(super) setup: StatedSetup,
    pub(super) failures: Failures,
    pub(super) nccl: NcclLines,
    pub(super) ended: bool,
    pub(super) profiled: bool,
    pub(super) traced: bool,
}

impl Found {
    /// Adds the step of a hit.
    pub(super) fn note(&mut self, marker: Marker, hit: &Hit, offset: u64) {
        let (format, step) = match marker {
            Marker::Nemo1 => (Format::Nemo1, nemo1::step(hit)),
            Marker::Nemo2 => (Format::Nemo2, nemo2::step(hit)),
            Marker::Iteration => (Format::MegatronBridge, megatron_bridge::step(hit)),
            Marker::Torchtitan => (Format::Torchtitan, torchtitan::step(hit)),
            Marker::Maxtext => (Format::Maxtext, maxtext::step(hit)),
            Marker::Paxml => (Format::Paxml, paxml::step(hit, self.of(Format::Paxml).steps.len())),
            Marker::Utilisation => {
                let before = self.of(Format::MegatronBridge).steps.len();
                self.utilisations.extend(megatron_bridge::utilisation(hit, before, offset));
                return;
            }
            Marker::Memory => {
                self.note_memory(megatron_bridge::memory(hit));
                return;
            }
            _ => return,
        };
        if let Some(step) = step {
            let series = self.of(format);
            let at = clock::time(hit.before());
            series.note_pause(&step, at);
            series.push(&step, offset);
            series.last_at = at;
        }
    }

    fn of(&mut self, format: Format) -> &mut Series {
        &mut self.series[format as usize]
    }

    /// Adds the memory of a step. If several ranks log it, the largest value counts.
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
        let has_utilisations = !self.utilisations.is_empty();
        let counted = self.settle_megatron();
        // The format with the most steps; of equals, the first.
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
        let nccl = self.nccl.settle(format.map(|_| series.last_offset));
        Log {
            bytes,
            lines,
            content,
            format: match format {
                Some(Format::MegatronBridge) if !has_utilisations => Some(Format::MegatronLm),
                format => format,
            },
            steps: series.steps,
            labels_counted: format == Some(Format::Paxml)
                || counted && format == Some(Format::MegatronBridge),
            planned_last: series.planned_last,
            last_step_at: series.last_at,
            pause: series.pause,
            ended: self.ended,
            duplicates,
            restarts: series.restarts,
            not_finite: series.not_finite,
            arguments: self.arguments.settle(),
            scenario: self.scenario,
            batch: self.batch.filter(|_| format == Some(Format::Torchtitan)),
            setup: Some(self.setup)
                .filter(|setup| format == Some(Format::Torchtitan) && *setup != StatedSetup::default()),
            checkpoints: self.checkpoints,
            failures,
            harmless: self.failures.harmless,
            profiled: self.profiled,
            traced: self.traced,
            nccl,
        }
    }

    /// Combines the lines of Megatron-Bridge's two ranks. If the last rank's lines are missing, counts rank 0's lines as
    /// steps and returns true.
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
