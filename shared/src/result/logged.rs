//! The figures that a log itself reports, and whether a GPU can reach them.

use super::{Comparability, Report};
use crate::field::Field;
use crate::log::{Stat, Status};
use crate::metrics::PeakTflops;
use crate::problem::all_of;
use crate::scenario::Scenario;
use crate::spec::Spec;
use crate::units::{group_digits, group_three_digits, percent};

impl Report {
    /// Returns the tokens per second per GPU and the MFU in the log; none if the log contradicts its settings.
    pub(crate) fn logged(&self) -> (Option<f64>, Option<f64>) {
        let plausible =
            |stat: Option<Stat>| stat.filter(|_| self.status != Status::Implausible).map(|stat| stat.mean);
        (plausible(self.logged_tokens_per_s_per_gpu), plausible(self.logged_mfu))
    }

    /// Notes the log's own figures where too little is known to compute them.
    pub(super) fn note_logged(&mut self) {
        let tokens = self.logged_tokens_per_s_per_gpu.filter(|_| self.tokens_per_s.is_none());
        let tflops = self.tflops_per_gpu.filter(|_| self.model_tflops_per_gpu.is_none());
        let mfu = self.logged_mfu.filter(|_| self.mfu.is_none());
        let tokens = tokens.map(|stat| format!("{} tokens/s per GPU", group_digits(stat.mean)));
        let tflops = tflops.map(|stat| format!("{} TFLOP/s per GPU", group_three_digits(stat.mean)));
        let mfu = mfu.map(|stat| format!("MFU {}", percent(stat.mean)));
        let figures: Vec<String> = tokens.into_iter().chain(tflops).chain(mfu).collect();
        if !figures.is_empty() {
            self.notes.push(format!("As logged: {}.", figures.join(", ")));
        }
    }

    /// Calls a log without step times not comparable, and says what they can be computed from.
    pub(super) fn need_step_time(&mut self, spec: &Spec) {
        if self.step_time_s.is_some() {
            return;
        }
        let needed = [(Field::Gpus, "GPU count"), (Field::Gbs, "GBS"), (Field::SeqLen, "sequence length")];
        let is_missing = |field: Field| spec.whole(field).ok().flatten().is_none();
        let missing: Vec<&str> =
            needed.into_iter().filter(|(field, _)| is_missing(*field)).map(|(_, what)| what).collect();
        let mut reasons = self.comparable.reasons.clone();
        reasons.push(match missing.is_empty() {
            true => "The log has no step time.".to_owned(),
            false => format!("The log has no step time. To compute it, set the {}.", all_of(&missing)),
        });
        self.comparable = Comparability::unless(reasons);
    }

    /// Returns a sentence that says that the log's MFU is above 100 %; none if it isn't.
    pub(super) fn impossible_mfu(&self) -> Option<String> {
        let logged = self.logged_mfu?.mean;
        (logged > 1.0).then(|| {
            format!(
                "The log reports an MFU of {}, and no GPU exceeds 100 %. torchtitan divides by the peak of an A100 if it doesn't \
                 know the GPU type.",
                percent(logged)
            )
        })
    }

    /// Returns a sentence that says that the log's TFLOPS exceed the peak of the scenario's GPU; none if they don't.
    pub(super) fn impossible_tflops(&self, scenario: &Scenario) -> Option<String> {
        let logged = self.tflops_per_gpu?.mean;
        let Scenario { gpu, dtype, .. } = scenario;
        // Documents may divide by another peak than the datasheet's.
        let datasheet = gpu.datasheet_tflops(*dtype).unwrap_or_default();
        let peak = PeakTflops::of(scenario).tflops.max(datasheet);
        (logged > peak).then(|| {
            format!(
                "The log reports {} TFLOP/s per GPU, above the {}'s {} peak of {}.",
                group_digits(logged),
                gpu.name,
                dtype.title(),
                group_digits(peak)
            )
        })
    }
}
