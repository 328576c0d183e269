//! The predicted step times of a scenario on other numbers of GPUs.

use crate::choices::choices;
use crate::estimate::Estimate;
use crate::field::Field;
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::spec::Spec;
use serde::{Deserialize, Serialize};

choices! {
    /// What happens to the global batch when a plan runs on more GPUs.
    BatchGrowth {
        /// It stays the same, so each GPU has less work: strong scaling.
        Fixed "fixed" "predicted, same batch",
        /// It grows with the GPUs, so each GPU has the same work: weak scaling.
        WithGpus "with-gpus" "predicted, batch grows with the GPUs",
    }
}

/// How many times fewer, and how many times more, GPUs are predicted.
const MOST_TIMES: u32 = 8;

/// The predicted step of a scenario on another number of GPUs. Only data parallelism differs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScaledStep {
    /// GPUs.
    pub gpus: u32,
    /// Global batch, sequences.
    pub gbs: u32,
    /// Step time, s.
    pub step_time_s: f64,
}

impl Spec {
    /// Returns the predicted steps of the scenario on an eighth to eight times its GPUs, by GPU count. Counts on which
    /// the layout or the batch does not work, or does not fit in memory, are left out.
    ///
    /// # Errors
    /// The fields do not describe a scenario.
    pub fn scaled_steps(&self, growth: BatchGrowth) -> Result<Vec<ScaledStep>, Vec<Problem>> {
        let scenario = self.scenario()?;
        let (layout, batch) = (&scenario.layout, &scenario.batch);
        let (dp, replica) = (layout.dp(), layout.gpus() / layout.dp());
        let mut steps = Vec::new();
        for replicas in replica_counts(dp, batch.gbs() / batch.mbs(), growth) {
            let gpus = u64::from(replica) * u64::from(replicas);
            let gbs = match growth {
                BatchGrowth::Fixed => u64::from(batch.gbs()),
                BatchGrowth::WithGpus => u64::from(batch.gbs() / dp) * u64::from(replicas),
            };
            let scaled = self.clone().with(Field::Gpus, gpus.to_string()).with(Field::Gbs, gbs.to_string());
            let Ok(scaled) = scaled.scenario() else { continue };
            let estimate = Estimate::of(&scaled);
            if is_run(&scaled) && estimate.memory.fits() {
                steps.push(ScaledStep {
                    gpus: scaled.layout.gpus(),
                    gbs: scaled.batch.gbs(),
                    step_time_s: estimate.step_time_s.mid,
                });
            }
        }
        Ok(steps)
    }
}

/// Returns numbers of replicas of the model around `dp`, ascending, with `dp` among them. A batch that stays is `batches`
/// micro batches, which the replicas must divide.
fn replica_counts(dp: u32, batches: u32, growth: BatchGrowth) -> Vec<u32> {
    let (least, most) = (dp.div_ceil(MOST_TIMES), dp.saturating_mul(MOST_TIMES));
    match growth {
        BatchGrowth::Fixed => {
            (least..=most.min(batches)).filter(|replicas| batches.is_multiple_of(*replicas)).collect()
        }
        BatchGrowth::WithGpus => {
            let doublings = (0..=2 * MOST_TIMES.ilog2()).map(|doubling| 1 << doubling);
            let mut counts: Vec<u32> =
                doublings.map(|times: u32| dp.saturating_mul(times) / MOST_TIMES).collect();
            counts.retain(|count| *count > 0);
            counts.dedup();
            counts
        }
    }
}

/// Whether the GPUs are whole nodes and the software can run the schedule.
fn is_run(scenario: &Scenario) -> bool {
    let (layout, software) = (&scenario.layout, scenario.options.software.properties());
    let is_whole = layout.gpus().is_multiple_of(scenario.gpu.gpus_per_node)
        || layout.gpus() < scenario.gpu.gpus_per_node;
    is_whole && (layout.vp() == 1 || software.allows_rounds(scenario.batch.ga(), layout.pp()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;

    fn steps(growth: BatchGrowth) -> Vec<ScaledStep> {
        link::read("r=llama3.1-405b/h100/fp8/512@25.04").spec.scaled_steps(growth).unwrap()
    }

    #[test]
    fn the_plan_itself_is_among_its_scaled_steps() {
        let spec = link::read("r=llama3.1-405b/h100/fp8/512@25.04").spec;
        let own = spec.estimate().unwrap();
        for growth in BatchGrowth::ALL {
            let steps = steps(growth);
            let at = steps.iter().find(|step| step.gpus == 512).unwrap();
            assert_eq!(at.gbs, own.scenario.batch.gbs());
            assert_eq!(at.step_time_s.to_bits(), own.estimate.step_time_s.mid.to_bits());
            assert!(steps.is_sorted_by_key(|step| step.gpus) && steps.len() >= 3, "{steps:?}");
        }
    }

    #[test]
    fn a_batch_that_stays_is_trained_faster_and_a_growing_one_no_faster() {
        let fixed = steps(BatchGrowth::Fixed);
        assert!(fixed.iter().all(|step| step.gbs == fixed[0].gbs));
        assert!(fixed.is_sorted_by(|few, many| few.step_time_s > many.step_time_s), "{fixed:?}");
        let growing = steps(BatchGrowth::WithGpus);
        let work = |step: &ScaledStep| f64::from(step.gbs) / f64::from(step.gpus);
        assert!(growing.iter().all(|step| work(step) == work(&growing[0])));
        assert!(growing.is_sorted_by(|few, many| few.step_time_s <= many.step_time_s), "{growing:?}");
    }
}
