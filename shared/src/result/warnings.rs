//! Warnings about a measurement: few or slow steps, more speed than predicted, and TFLOPS in the log that contradict its step time.

use super::slow_period::SlowPeriod;
use super::{PlanComparison, Report, Scoring, steady_difference};
use crate::convention::Convention;
use crate::flops::ModelFlops;
use crate::log::{CheckpointAction, Format, Log, Stat};
use crate::problem::all_of;
use crate::scenario::Scenario;
use crate::units::{TERA, readable, significant};

/// The slow steps that a report warns of.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SlowSteps {
    /// Consecutive ones.
    pub(super) periods: Vec<SlowPeriod>,
    /// Every how many steps a slow one comes; none if they are not at regular intervals, or if none of them is
    /// among the steps by which the run is judged.
    pub(super) every: Option<u64>,
}

impl Report {
    /// Adds the warnings to the notes. Returns the slow steps. `is_chosen` says whether the user chose the window.
    pub(super) fn warn(
        &mut self,
        log: &Log,
        scenario: Option<&Scenario>,
        scoring: Scoring,
        is_chosen: bool,
    ) -> SlowSteps {
        self.warn_of_few_steps(log, is_chosen);
        self.notes.extend(self.unlike_steady_mean(scoring));
        let timed = self.window.filter(|_| self.step_time_s.is_some());
        let slow = timed.map_or_else(Vec::new, |window| SlowPeriod::all(&log.steps, window));
        self.warn_of_outliers(log, &slow);
        self.notes.extend(slow.iter().map(SlowPeriod::note));
        self.slow_steps = slow.first().map(SlowPeriod::sentence);
        let every = self.warn_of_period(log);
        let contradiction = scenario.and_then(|scenario| self.contradicting_tflops(log, scenario));
        self.notes.extend(contradiction);
        SlowSteps { periods: slow, every }
    }

    /// Warns if the score is the mean of few steps, and says what judges the run instead, or what to do.
    fn warn_of_few_steps(&mut self, log: &Log, is_chosen: bool) {
        let Some(scored) = self.step_time_s.map(|stat| stat.n).filter(|n| *n < Stat::FEW) else { return };
        let last = log.steps.last_window().filter(|window| window.count() >= Stat::FEW);
        let rest = match (self.steady.filter(|_| !is_chosen), last) {
            (Some(steady), _) => format!(", so the run is judged by the mean of {}.", steady.steps()),
            (None, Some(window)) => format!(". Score the window {window}."),
            (None, None) => ". Run more steps.".to_owned(),
        };
        let steps = if scored == 1 { "one step".to_owned() } else { format!("{scored} steps") };
        self.notes.push(format!("The score rests on {steps}, and single steps are noisy{rest}"));
    }

    /// Returns a sentence that says by how much the steady mean differs from the scored step time; none if they are alike.
    fn unlike_steady_mean(&self, scoring: Scoring) -> Option<String> {
        let (stat, steady, window) = (self.step_time_s?, self.steady?, self.window?);
        let difference = steady_difference(stat.mean, steady.mean_s)?;
        Some(format!(
            "{} scores {} ({} s). The steady mean, over {}, is {} s, {difference}.",
            scoring.rule(),
            window.with_noun(),
            significant(stat.mean, 4),
            steady.steps(),
            significant(steady.mean_s, 4)
        ))
    }

    /// Warns of scored steps that took much longer than the others: they are part of the mean. Those of a slow period are
    /// named with it.
    fn warn_of_outliers(&mut self, log: &Log, slow: &[SlowPeriod]) {
        /// How often the median is the time of an outlier.
        const FACTOR: f64 = 1.5;
        /// How many are named.
        const NAMED: usize = 5;
        let Some(window) = self.window.filter(|_| self.step_time_s.is_some()) else { return };
        let rows = log.steps.rows(window);
        let mut times: Vec<f64> = log.steps.step_time_s.values(rows.clone()).collect();
        times.sort_by(f64::total_cmp);
        let Some(median) = times.get(times.len() / 2) else { return };
        let is_outlier =
            |row: &usize| log.steps.step_time_s.get(*row).is_some_and(|time| time > FACTOR * median);
        let is_named =
            |label: &u64| slow.iter().any(|slow| (slow.steps.first..=slow.steps.last).contains(label));
        let outliers: Vec<usize> =
            rows.clone().filter(is_outlier).filter(|row| !is_named(&log.steps.label[*row])).collect();
        let others = rows.filter(|row| outliers.binary_search(row).is_err());
        let others: Vec<f64> = others.filter_map(|row| log.steps.step_time_s.get(row)).collect();
        let labels: Vec<String> = outliers.iter().map(|row| log.steps.label[*row].to_string()).collect();
        // The time of a single outlier says whether it was a pause.
        let single_s = outliers.first().and_then(|row| log.steps.step_time_s.get(*row)).unwrap_or_default();
        let steps = match &*labels {
            [] => return,
            [one] => format!("step {one} ({} s)", readable(single_s)),
            several if several.len() <= NAMED => format!("steps {}", all_of(several)),
            several => format!("{} steps ({}, …)", several.len(), several[..NAMED].join(", ")),
        };
        let them = if outliers.len() == 1 { "it" } else { "them" };
        self.notes.push(format!(
            "Of {} scored steps, {steps} took more than {FACTOR} times the median of {} s. Without {them}, the mean is {} s.",
            times.len(),
            significant(*median, 3),
            significant(others.iter().sum::<f64>() / others.len() as f64, 3)
        ));
    }

    /// Warns, before all other notes, if the run is much faster than predicted: its scenario is probably that of another run.
    pub(super) fn warn_of_speed(&mut self) {
        /// Better software and settings rarely gain more, in percent of the predicted speed.
        const MOST_PERCENT: f64 = 140.0;
        let Some(PlanComparison { speed_percent: Some(speed), within: Some(false), .. }) = self.prediction
        else {
            return;
        };
        if speed > MOST_PERCENT {
            let times = significant(speed / 100.0, 3);
            let warning = format!(
                "The run is {times} times as fast as predicted: check that the recipe, the GPU type and the GPU count are right."
            );
            self.notes.insert(0, warning);
        }
    }

    /// Notes slow steps at regular intervals, and their likely cause. Returns the interval if some of these steps are among those
    /// that judge the run.
    fn warn_of_period(&mut self, log: &Log) -> Option<u64> {
        /// How often the median is the time of a slow step.
        const FACTOR: f64 = 1.2;
        let steps = &log.steps;
        let mut times: Vec<f64> = steps.step_time_s.values(0..steps.len()).collect();
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).filter(|_| self.step_time_s.is_some())?;
        // The first step is slow for other reasons.
        let is_slow = |row: &usize| steps.step_time_s.get(*row).is_some_and(|time| time > FACTOR * median);
        let slow: Vec<u64> = (1..steps.len()).filter(is_slow).map(|row| steps.label[row]).collect();
        let [first, second, third, ..] = *slow else { return None };
        let period = second - first;
        if period < 2 || slow.windows(2).any(|two| two[1] - two[0] != period) {
            return None;
        }
        // A log that counts from 0 names a step by one less than its checkpoint.
        let saves = |step: &&u64| {
            log.checkpoints.iter().any(|checkpoint| {
                checkpoint.action == CheckpointAction::Save
                    && checkpoint.iteration.is_some_and(|iteration| iteration.abs_diff(**step) <= 1)
            })
        };
        let cause = match slow.iter().filter(saves).count() * 2 > slow.len() {
            true => "Checkpoints are saved at these steps",
            false => "Evaluation, garbage collection or logging may run at such intervals",
        };
        self.notes.push(format!(
            "Every {period} steps ({first}, {second}, {third}, …), a step takes more than {FACTOR} times the median. {cause}."
        ));
        let judged = self.judged_steps()?;
        slow.iter().any(|label| (judged.first..=judged.last).contains(label)).then_some(period)
    }

    /// Returns a sentence that says that the log's TFLOPS contradict its step time, because no convention of counting FLOPs
    /// explains the difference. None for logs whose TFLOPS may mean something else.
    fn contradicting_tflops(&self, log: &Log, scenario: &Scenario) -> Option<String> {
        /// The largest difference, as a fraction, that is left to details of counting.
        const TOLERANCE: f64 = 0.15;
        // These count model FLOPs as Megatron-LM does. The formulas of the others are not known here.
        if !matches!(self.format, Some(Format::Nemo2 | Format::MegatronBridge | Format::MegatronLm)) {
            return None;
        }
        // Without it, the scenario is already known not to fit.
        self.model_tflops_per_gpu?;
        let logged = self.tflops_per_gpu?.mean;
        let steps = &log.steps;
        // Step by step, because the mean TFLOPS are not those of the mean step time if a step is slow.
        let work = |row: usize| Some(steps.tflops_per_gpu.get(row)? * steps.step_time_s.get(row)?);
        let per_step: Vec<f64> = steps.rows(self.window?).filter_map(work).collect();
        let logged_work = TERA * per_step.iter().sum::<f64>() / per_step.len() as f64;
        let sequences = f64::from(scenario.batch.gbs()) / f64::from(scenario.layout.gpus());
        let counted = |convention: Convention| {
            let flops = ModelFlops::of(&Scenario { convention, ..scenario.clone() });
            [flops.for_mfu(), flops.per_sequence].map(|per_sequence| sequences * per_sequence)
        };
        let contradicts = |work: f64| (logged_work / work - 1.0).abs() > TOLERANCE;
        // Below one, the digit that formats print says little.
        if logged_work.is_nan()
            || logged < 1.0
            || !Convention::ALL.into_iter().flat_map(counted).all(contradicts)
        {
            return None;
        }
        let [work, _] = counted(scenario.convention);
        Some(format!(
            "The log reports {} TFLOP/s per GPU, but its step time gives {} for this model, GPU count and batch: check that \
             the recipe is right.",
            significant(logged, 3),
            significant(logged * work / logged_work, 3)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{LLAMA_70B, dump};
    use super::super::{Intake, Report, View};
    use crate::field::Field;
    use crate::spec::Spec;

    /// The notes on fifty steps of Llama 3.1 70B on 64 H100. `time` returns the seconds and the TFLOPS per GPU of a step.
    fn notes(time: impl Fn(u32) -> (f64, f64)) -> String {
        let step = |step: u32| {
            let (seconds, tflops) = time(step);
            format!(
                "iteration {step}/50 | consumed samples: {} | elapsed time per iteration (ms): {:.1} | throughput per GPU \
                 (TFLOP/s/GPU): {tflops:.1} | global batch size: 128 | lm loss: 1.2E+01 |\n",
                step * 128,
                1000.0 * seconds
            )
        };
        let mut intake = Intake::new("train.log", &Spec::default().with(Field::Gpu, "h100"));
        intake.feed(dump(&LLAMA_70B, &[]).as_bytes());
        intake.feed((1..51).map(step).collect::<String>().as_bytes());
        Report::of(&intake.finish(), &View::default()).notes.join(" ")
    }

    #[test]
    fn tflops_that_no_way_of_counting_explains_are_noted() {
        // The step time gives 396, with full attention.
        for tflops in [396.0, 370.0, 440.0] {
            let notes = notes(|_| (20.0, tflops));
            assert!(!notes.contains("TFLOP/s"), "{notes}");
        }
        for (tflops, said) in [(250.0, "250"), (699.0, "699")] {
            let notes = notes(|_| (20.0, tflops));
            let start = format!("The log reports {said} TFLOP/s per GPU, but its step time gives 39");
            assert!(notes.contains(&start) && notes.contains("check that the recipe is right."), "{notes}");
        }
        // One slow step changes the two means differently, but not the work of a step.
        let notes = notes(|step| if step == 40 { (200.0, 39.6) } else { (20.0, 396.0) });
        assert!(notes.contains("step 40 (200 s) took more than") && !notes.contains("TFLOP/s"), "{notes}");
        assert!(notes.contains("Without it, the mean is 20 s."), "{notes}");
    }

    #[test]
    fn the_steps_of_a_slow_period_are_named_once() {
        let slow = |step: u32| if (36..=38).contains(&step) { (34.0, 233.0) } else { (20.0, 396.0) };
        let notes = notes(slow);
        assert!(notes.contains("Steps 36–38 took 70 % longer than the others."), "{notes}");
        assert!(!notes.contains("took more than 1.5 times"), "{notes}");
    }
}
