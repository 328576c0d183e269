//! The time of a whole run, as a range.

use super::{
    Disruptions, FailureRate, Recovery, SaveTime, checkpoint_goodput, daly_interval_s, endless,
    young_interval_s,
};
use crate::assumption::Assumption;
use crate::estimate::Interval;
use crate::explain::Line;
use crate::message::Message;
use crate::range::ValueRange;
use crate::units::{DAY_S, HOUR_S, significant};
use serde::Serialize;

/// What a run has to do, and on how many GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunLoad {
    /// GPUs that train.
    pub gpus: u32,
    /// GPUs per node.
    pub gpus_per_node: u32,
    /// Seconds per step.
    pub step_time_s: Interval,
    /// Steps; the last one can be a part of a step.
    pub steps: f64,
    /// Size of a checkpoint, in bytes.
    pub checkpoint_bytes: f64,
}

impl RunLoad {
    /// Returns the time with failures at the predicted step time and the middle of the failure rates: both of its ends are the same.
    pub fn expected(&self, disruptions: &Disruptions) -> RunTime {
        let failure_rate = FailureRate::Own(ValueRange::of(disruptions.failure_rate.middle()));
        let mid = self.step_time_s.mid;
        let load = RunLoad { step_time_s: Interval { low: mid, mid, high: mid }, ..*self };
        RunTime::of(&load, &Disruptions { failure_rate, ..*disruptions })
    }
}

/// One end of the range: a step time with a failure rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunCase {
    /// Seconds per step.
    pub step_time_s: f64,
    /// Failures per GPU-hour.
    pub failures_per_gpu_hour: f64,
    /// Mean time between failures of the job, in seconds; infinite without failures.
    pub mtbf_s: f64,
    /// Training time between two saves, in seconds: whole steps.
    pub save_interval_s: f64,
    /// The share of the time that trains, with saves and failures only.
    pub checkpoint_goodput: f64,
    /// The share of the time that trains, with overheads as well: days without disruptions over days; 0 if failures come too often
    /// for the run to end.
    pub goodput: f64,
    /// Days; infinite if the run doesn't end.
    pub days: f64,
    /// Failures expected in the run; infinite if it doesn't end.
    pub failures: f64,
}

/// The time of a whole run.
///
/// The low case has the lower end of the step time and the lowest failure rate, the high case the upper ends of both. So
/// the range is wider than the 80 % interval of the step time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunTime {
    /// GPUs that train.
    pub gpus: u32,
    /// Spare nodes.
    pub spare_nodes: u32,
    /// GPUs that are paid for: those that train and those of spare nodes.
    pub paid_gpus: u32,
    /// Size of a checkpoint, in bytes.
    pub checkpoint_bytes: f64,
    /// Seconds that a save blocks training.
    pub save_s: f64,
    /// Seconds from a failure until training continues.
    pub recovery_s: f64,
    /// Days of training without any disruption.
    pub days_undisturbed: Interval,
    /// The fastest and most reliable case.
    pub low: RunCase,
    /// The slowest and least reliable case.
    pub high: RunCase,
}

impl RunTime {
    /// Returns the time of a run. It allocates nothing, so that a search can call it for every candidate.
    pub fn of(load: &RunLoad, disruptions: &Disruptions) -> RunTime {
        let spare_nodes = disruptions.spare_nodes(load.gpus.div_ceil(load.gpus_per_node.max(1)));
        let save_s = disruptions.save.seconds(load.checkpoint_bytes, load.gpus);
        let recovery_s = disruptions.recovery.seconds();
        let rate = disruptions.failure_rate.per_gpu_hour();
        let case = |step_time_s: f64, rate: f64| {
            RunCase::new(load, step_time_s, rate, save_s, recovery_s, disruptions.overhead)
        };
        RunTime {
            gpus: load.gpus,
            spare_nodes,
            paid_gpus: load.gpus.saturating_add(spare_nodes.saturating_mul(load.gpus_per_node)),
            checkpoint_bytes: load.checkpoint_bytes,
            save_s,
            recovery_s,
            days_undisturbed: load.step_time_s.times(load.steps / DAY_S),
            low: case(load.step_time_s.low, rate.low),
            high: case(load.step_time_s.high, rate.high),
        }
    }

    /// Returns why the run never ends, not even in the low case, as a sentence; none if it may end.
    pub fn never_ends(&self) -> Option<Message> {
        let RunCase { mtbf_s, save_interval_s, days, .. } = self.low;
        let attempt_s = self.recovery_s + save_interval_s + self.save_s;
        let what = "a restart and the work until the next save take";
        days.is_infinite().then(|| endless::never_ends(self.gpus, mtbf_s, what, attempt_s))
    }

    /// Returns the days with failures, saves and overheads.
    pub fn days(&self) -> ValueRange {
        ValueRange::between(self.low.days, self.high.days)
    }

    /// Returns the share of the time that trains.
    pub fn goodput(&self) -> ValueRange {
        ValueRange::between(self.low.goodput, self.high.goodput)
    }

    /// Returns the failures expected in the run.
    pub fn failures(&self) -> ValueRange {
        ValueRange::between(self.low.failures, self.high.failures)
    }

    /// Returns the training time between two saves, in seconds.
    pub fn save_interval_s(&self) -> ValueRange {
        ValueRange::between(self.low.save_interval_s, self.high.save_interval_s)
    }

    /// Returns the hours that GPUs are paid for, spare ones included.
    pub fn paid_gpu_hours(&self) -> ValueRange {
        self.days().times(24.0 * f64::from(self.paid_gpus))
    }

    /// Returns the derivation of the high case, with the numbers of the low case as a note where they differ.
    pub fn explain(&self, disruptions: &Disruptions) -> Vec<Line> {
        let RunTime { gpus, save_s, recovery_s, low, high, .. } = *self;
        let text = |value: f64| significant(value, 4);
        let other = |low: f64, high: f64, unit: &str| low_end(&text(low), &text(high), unit);
        let cited = |source: &str, other: String| match other.is_empty() {
            true => source.to_string(),
            false => format!("{source}; {other}"),
        };
        let mut lines = vec![
            Line::new("failure rate", "", "", high.failures_per_gpu_hour, "failures per GPU-hour")
                .note(disruptions.failure_rate.source()),
            Line::new(
                "time between failures M",
                "1 / (rate · GPUs)",
                format!("1 / ({} · {gpus})", text(high.failures_per_gpu_hour)),
                high.mtbf_s / HOUR_S,
                "h",
            )
            .note(other(low.mtbf_s / HOUR_S, high.mtbf_s / HOUR_S, "h")),
            self.save_line(disruptions.save),
            Line::new("recovery R", "detection + restart + loading + queue", "", recovery_s, "s").note(
                match disruptions.recovery == Recovery::assumed() {
                    true => Assumption::RecoveryTime.source().note(),
                    false => "yours".to_string(),
                },
            ),
            Line::new(
                "interval between saves τ",
                "√(2δM)·(1 + √(δ/2M)/3 + δ/18M) − δ, in whole steps",
                format!(
                    "{} steps of {} s",
                    text(high.save_interval_s / high.step_time_s),
                    text(high.step_time_s)
                ),
                high.save_interval_s,
                "s",
            )
            .note(cited(
                &format!("Daly 2006; Young's √(2δM) is {} s", text(young_interval_s(save_s, high.mtbf_s))),
                other(low.save_interval_s, high.save_interval_s, "s"),
            )),
            Line::new(
                "goodput with failures and saves",
                "τ / (M·e^(R/M)·(e^((τ+δ)/M) − 1))",
                format!("τ {} s, δ {} s, R {} s", text(high.save_interval_s), text(save_s), text(recovery_s)),
                high.checkpoint_goodput * 100.0,
                "%",
            )
            .note(cited(
                "Daly 2006",
                other(low.checkpoint_goodput * 100.0, high.checkpoint_goodput * 100.0, "%"),
            )),
        ];
        lines.push(
            Line::new(
                "days with failures",
                "days without · (1 + overhead) / goodput",
                format!(
                    "{} · (1 + {}) / {}",
                    text(self.days_undisturbed.high),
                    text(disruptions.overhead),
                    text(high.checkpoint_goodput)
                ),
                high.days,
                "days",
            )
            .note(other(low.days, high.days, "days")),
        );
        lines.push(
            Line::new("failures in the run", "days with failures / M", "", high.failures, "failures")
                .note(other(low.failures, high.failures, "failures")),
        );
        let share = disruptions.spare_share;
        lines.push(Line::new("spare nodes", "share · nodes", "", f64::from(self.spare_nodes), "nodes").note(
            match share {
                share if share == Assumption::SpareNodes.value() => Assumption::SpareNodes.source().note(),
                0.0 => "none beside the given GPUs".to_string(),
                _ => "yours".to_string(),
            },
        ));
        lines
    }

    fn save_line(&self, save: SaveTime) -> Line {
        let gigabytes = significant(self.checkpoint_bytes / 1e9, 4);
        match save {
            SaveTime::Seconds(seconds) => Line::new("save δ", "", "", seconds, "s").note("yours"),
            SaveTime::Bandwidth(bytes_per_s) => Line::new(
                "save δ",
                "checkpoint / bandwidth",
                format!("{gigabytes} GB / {} GB/s", significant(bytes_per_s / 1e9, 4)),
                self.save_s,
                "s",
            )
            .note(Assumption::CheckpointSize.source().note()),
            SaveTime::Assumed => {
                let bandwidth = Assumption::SaveBandwidth;
                Line::new(
                    "save δ",
                    "checkpoint / (bandwidth · GPUs)",
                    format!("{gigabytes} GB / ({} GB/s · {})", bandwidth.value(), self.gpus),
                    self.save_s,
                    "s",
                )
                .note(bandwidth.source().note())
            }
        }
    }
}

/// Returns the note that names the number of the low case; empty if it is the same as that of the high case.
pub(crate) fn low_end(low: &str, high: &str, unit: &str) -> String {
    match low == high {
        true => String::new(),
        false => format!("low end: {low} {unit}").trim_end().to_string(),
    }
}

impl RunCase {
    fn new(
        load: &RunLoad,
        step_time_s: f64,
        rate: f64,
        save_s: f64,
        recovery_s: f64,
        overhead: f64,
    ) -> RunCase {
        let mtbf_s = HOUR_S / (rate * f64::from(load.gpus));
        let days_undisturbed = step_time_s * load.steps / DAY_S;
        // At least one step, at most the run.
        let steps = (daly_interval_s(save_s, mtbf_s) / step_time_s).round();
        let save_interval_s = steps.min(load.steps).max(1.0) * step_time_s;
        let checkpoint_goodput = checkpoint_goodput(save_interval_s, save_s, recovery_s, mtbf_s);
        let without_failures = save_interval_s / (save_interval_s + save_s);
        let ends = endless::ends(checkpoint_goodput, without_failures);
        let goodput = if ends { checkpoint_goodput / (1.0 + overhead) } else { 0.0 };
        let days = if goodput > 0.0 { days_undisturbed / goodput } else { f64::INFINITY };
        let failures = if mtbf_s.is_infinite() { 0.0 } else { days * DAY_S / mtbf_s };
        RunCase {
            step_time_s,
            failures_per_gpu_hour: rate,
            mtbf_s,
            save_interval_s,
            checkpoint_goodput,
            goodput,
            days,
            failures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goodput::{FailureRate, checkpoint_bytes};
    use proptest::prelude::*;

    fn load(gpus: u32, step_time_s: f64, days: f64) -> RunLoad {
        RunLoad {
            gpus,
            gpus_per_node: 8,
            step_time_s: Interval { low: step_time_s * 0.95, mid: step_time_s, high: step_time_s * 1.05 },
            steps: days * DAY_S / step_time_s,
            checkpoint_bytes: checkpoint_bytes(405e9),
        }
    }

    #[test]
    fn llama_3_trains_for_nine_tenths_of_its_time() {
        // 54 days on 16,384 H100 at its own rate: 419 failures, and an effective time of over 90 %.
        let run = RunTime::of(&load(16_384, 7.0, 50.0), &Disruptions::default());
        assert!((run.low.mtbf_s / HOUR_S - 3.1).abs() < 0.01);
        assert!(run.low.goodput > 0.9 && run.low.goodput < 0.96, "{}", run.low.goodput);
        assert!((run.low.failures - 419.0 * run.low.days / 54.0).abs() < 4.0, "{}", run.low.failures);
        assert!(run.high.goodput < 0.7, "{}", run.high.goodput);
        assert_eq!((run.spare_nodes, run.paid_gpus), (102, 16_384 + 816));
    }

    #[test]
    fn goodput_turns_days_back_into_days_without_disruptions() {
        let disruptions = Disruptions { overhead: 0.03, ..Disruptions::default() };
        let run = RunTime::of(&load(512, 12.0, 30.0), &disruptions);
        assert!((run.low.days * run.low.goodput / run.days_undisturbed.low - 1.0).abs() < 1e-12);
        assert!((run.high.days * run.high.goodput / run.days_undisturbed.high - 1.0).abs() < 1e-12);
        assert!(run.high.save_interval_s < run.low.save_interval_s);
    }

    #[test]
    fn without_failures_one_save_at_the_end_is_enough() {
        let failure_rate = FailureRate::Own(ValueRange::of(0.0));
        let run = RunTime::of(&load(64, 10.0, 2.0), &Disruptions { failure_rate, ..Disruptions::default() });
        assert_eq!((run.low.failures, run.high.failures), (0.0, 0.0));
        assert!(run.goodput().low > 0.99 && run.goodput().high <= 1.0);
    }

    #[test]
    fn a_run_that_fails_without_end_has_infinite_days() {
        let failure_rate = FailureRate::Own(ValueRange { low: 1e-5, high: 1.0 });
        let disruptions = Disruptions { failure_rate, ..Disruptions::default() };
        let run = RunTime::of(&load(100_000, 10.0, 30.0), &disruptions);
        assert!(run.low.days.is_finite() && run.high.days.is_infinite() && run.high.failures.is_infinite());
        assert!(run.explain(&disruptions).iter().all(|line| !line.value.is_nan()));
    }

    #[test]
    fn a_run_that_takes_a_thousand_times_as_long_never_ends() {
        let at = |rate: f64| {
            let failure_rate = FailureRate::Own(ValueRange::of(rate));
            RunTime::of(&load(512, 10.0, 30.0), &Disruptions { failure_rate, ..Disruptions::default() })
        };
        let [slow, endless] = [at(0.02), at(1.0)];
        assert!(
            slow.low.days.is_finite() && slow.low.goodput > 0.001 && slow.never_ends().is_none(),
            "{slow:?}"
        );
        assert!(endless.low.days.is_infinite() && endless.low.checkpoint_goodput > 0.0, "{endless:?}");
        assert_eq!(endless.goodput(), ValueRange::of(0.0));
        let why = endless.never_ends().unwrap().to_string();
        assert!(
            why.starts_with("A job on 512 GPUs fails every 7.03 s on average, but a restart and"),
            "{why}"
        );
        // A save that takes long, without failures, does not count.
        let failure_rate = FailureRate::Own(ValueRange::of(0.0));
        let save = SaveTime::Seconds(86_400.0);
        let disruptions = Disruptions { failure_rate, save, ..Disruptions::default() };
        assert!(RunTime::of(&load(8, 1.0, 1.0 / 86_400.0), &disruptions).low.days.is_finite());
    }

    #[test]
    fn the_derivation_names_both_studies_and_ends_with_the_result() {
        let disruptions = Disruptions::default();
        let run = RunTime::of(&load(512, 12.0, 30.0), &disruptions);
        let lines = run.explain(&disruptions);
        assert!(lines[0].note.contains("Llama 3 405B") && lines[0].note.contains("Meta RSC"));
        let days = lines.iter().find(|line| line.name == "days with failures").unwrap();
        assert_eq!(days.value, run.days().high);
    }

    proptest! {
        #[test]
        fn a_worse_cluster_is_never_faster(
            gpus in 1u32..100_000, step_time_s in 0.1f64..100.0, days in 0.1f64..300.0,
            rate in 1e-7f64..1e-3, restart_s in 0.0f64..7200.0, save_s in 0.0f64..600.0,
            overhead in 0.0f64..0.5, more in 1.1f64..5.0,
        ) {
            let load = load(gpus, step_time_s, days);
            let at = |rate: f64, restart_s: f64, save_s: f64, overhead: f64| {
                let disruptions = Disruptions {
                    failure_rate: FailureRate::Own(ValueRange::of(rate)),
                    recovery: Recovery { restart_s, queue_s: 0.0 },
                    save: SaveTime::Seconds(save_s),
                    overhead,
                    spare_share: 0.05,
                };
                RunTime::of(&load, &disruptions)
            };
            let run = at(rate, restart_s, save_s, overhead);
            prop_assert!(run.days().low >= run.days_undisturbed.low);
            prop_assert!((0.0..=1.0).contains(&run.goodput().low));
            // Daly's interval, in whole steps, is not exactly the best one.
            let slowest = run.high.days * 0.99;
            prop_assert!(at(rate * more, restart_s, save_s, overhead).high.days >= slowest);
            prop_assert!(at(rate, restart_s * more, save_s, overhead).high.days >= slowest);
            prop_assert!(at(rate, restart_s, save_s * more, overhead).high.days >= slowest);
            prop_assert!(at(rate, restart_s, save_s, overhead * more).high.days >= slowest);
        }
    }
}
