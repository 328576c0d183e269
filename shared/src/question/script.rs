//! A plan as its launch script runs it: with other software than planned, its days, its cost and its memory are others.

use super::{GpuOffer, PlannedRun, Question};
use crate::estimate::{Estimate, Interval, MemoryEstimate};
use crate::field::Field;
use crate::launch::{Launch, LaunchOptions, ScriptSoftware, WarningTopic, launch_or_fall_back};
use crate::planning::Predicted;
use crate::problem::{Problem, one_of};
use crate::releases::Release;
use crate::scenario::Scenario;
use crate::search::RankedLayout;
use crate::spec::Spec;
use crate::stack::Software;

/// A whole run as its launch script runs it, where that differs noticeably from the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptRun {
    /// Number of GPUs.
    pub gpus: u32,
    /// Name of the GPU type.
    pub gpu: String,
    /// The software that was planned.
    pub planned: String,
    /// The software of the script. If it is the planned one, the script turns parts of it off.
    pub software: String,
    /// That software as a setting, for an estimate of the script.
    pub stack: Software,
    /// Step time as a multiple of the planned one.
    pub slowdown: f64,
    /// Days with the planned software.
    pub planned_days: Interval,
    /// Days with the script's software.
    pub days: Interval,
    /// Whether it may not fit in memory with the script's software, although it does with the planned one.
    pub may_lack_memory: bool,
}

/// What becomes of a deadline that a plan meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineEffect {
    /// It is met as planned, or missed anyway.
    Unchanged,
    /// The slow end of the range of days misses it.
    MayMiss,
    /// The expected days miss it.
    Misses,
}

impl ScriptRun {
    /// Returns how the script of a scenario's launch differs from the plan; none if its software is about as fast and it fits.
    /// `planned_days` are those with the planned software. The days are taken to grow like the step time.
    pub fn of(
        scenario: &Scenario,
        options: &LaunchOptions,
        launch: &Launch,
        planned_days: Interval,
    ) -> Option<ScriptRun> {
        // A plan that is short of memory itself is not the script's fault.
        let is_warned = launch.warnings.iter().any(|warning| warning.topic == WarningTopic::Memory);
        let may_lack_memory = is_warned && MemoryEstimate::of(&scenario.inputs()).fits();
        if launch.slowdown.is_none() && !may_lack_memory {
            return None;
        }
        let slowdown = launch.slowdown.unwrap_or(1.0);
        Some(ScriptRun {
            gpus: scenario.layout.gpus(),
            gpu: scenario.gpu.name.clone(),
            planned: scenario.options.software.title(),
            software: software(scenario, options, launch),
            stack: launch.software,
            slowdown,
            planned_days,
            days: planned_days.times(slowdown),
            may_lack_memory,
        })
    }

    /// Returns the prediction of a plan as its script runs it, with the memory of the script's software. `spec` describes the plan, and
    /// `planned` is its prediction. None if the script's software can't be planned.
    pub fn predict(&self, spec: &Spec, planned: &Predicted) -> Option<Predicted> {
        let spec = spec.clone().with(Field::Stack, self.stack.to_string());
        let with = spec.estimate().ok()?;
        // Nobody measured known software without a part of it: the measurements stay those of the planned software.
        let estimate = Estimate {
            step_time_s: planned.estimate.step_time_s.times(self.slowdown),
            breakdown: with.estimate.breakdown,
            memory: with.estimate.memory,
            evidence: planned.estimate.evidence.clone(),
        };
        Some(spec.predicted(with.scenario, with.metrics.tokens, estimate))
    }

    /// Returns what the script does to a deadline.
    pub fn effect_on(&self, deadline: f64) -> DeadlineEffect {
        let is_broken = |planned: f64, days: f64| planned <= deadline && days > deadline;
        if is_broken(self.planned_days.mid, self.days.mid) {
            DeadlineEffect::Misses
        } else if is_broken(self.planned_days.high, self.days.high) {
            DeadlineEffect::MayMiss
        } else {
            DeadlineEffect::Unchanged
        }
    }
}

/// Returns the name of the software that a script runs.
fn software(scenario: &Scenario, options: &LaunchOptions, launch: &Launch) -> String {
    if let Some(release) = launch.release {
        return release.software().stack.title().to_owned();
    }
    let script = ScriptSoftware::of(scenario, options);
    let lacks = script.lacks();
    match script.is_other() || lacks.is_empty() {
        true => "Megatron-LM".to_owned(),
        false => format!("Megatron-LM without {}", one_of(&lacks)),
    }
}

/// The launch script of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanScript {
    /// It runs the plan as predicted.
    AsPlanned,
    /// It runs other software, or may lack memory.
    Other(Box<ScriptedPlan>),
    /// No script can be written, for these reasons.
    Unavailable(Vec<Problem>),
}

impl PlanScript {
    /// Whether the script of a plan that reaches the goal does so too, and surely fits in memory if the plan does.
    pub fn reaches_goal(&self) -> bool {
        match self {
            PlanScript::AsPlanned => true,
            PlanScript::Other(plan) => plan.reaches_goal,
            PlanScript::Unavailable(_) => false,
        }
    }

    /// Returns the days that a plan counts as with this script; infinite if none can be written, or if it may lack memory.
    pub(super) fn counted_days(&self, plan: &PlannedRun) -> f64 {
        match self {
            PlanScript::AsPlanned => plan.counted_days(),
            PlanScript::Other(other) if !other.script.may_lack_memory => other.run.counted_days(),
            PlanScript::Other(_) | PlanScript::Unavailable(_) => f64::INFINITY,
        }
    }
}

/// A plan with what becomes of it by its launch script.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedPlan {
    /// How the script differs.
    pub script: ScriptRun,
    /// The whole run with the script's software.
    pub run: PlannedRun,
    /// Whether it reaches the goal with that, and surely fits in memory if the plan does.
    pub reaches_goal: bool,
}

impl PlannedRun {
    /// Returns the days that the plan counts as: those of the slow end, and more if it may not fit, as layouts are ranked.
    pub(super) fn counted_days(&self) -> f64 {
        self.time.high.days * self.layout.risk()
    }

    /// Returns the launch script of the plan.
    pub fn script(&self, question: &Question, offer: &GpuOffer) -> PlanScript {
        let planned_days = self.days_interval();
        let made = self.launch(question, offer);
        let differing = made.map(|(scenario, launch)| {
            ScriptRun::of(&scenario, &LaunchOptions::default(), &launch, planned_days)
        });
        match differing {
            Err(problems) => PlanScript::Unavailable(problems),
            Ok(None) => PlanScript::AsPlanned,
            Ok(Some(script)) => {
                let run = self.slowed(question, offer, script.slowdown);
                let script = ScriptRun { days: run.days_interval(), ..script };
                let reaches_goal = !script.may_lack_memory && question.reaches(&run);
                PlanScript::Other(Box::new(ScriptedPlan { script, run, reaches_goal }))
            }
        }
    }

    /// Returns the plan with steps that take `slowdown` times as long. Failures and saves are counted again.
    pub(super) fn slowed(&self, question: &Question, offer: &GpuOffer, slowdown: f64) -> PlannedRun {
        let step_time_s = self.layout.step_time_s.times(slowdown);
        let layout = RankedLayout { step_time_s, ..self.layout };
        let run = PlannedRun::new(question, offer, self.gpus, layout);
        PlannedRun { days_as_measured: self.days_as_measured, ..run }
    }

    /// Returns the release whose script launches the plan; none if Megatron-LM does.
    ///
    /// # Errors
    /// Why no script can be written.
    pub fn launching_release(
        &self,
        question: &Question,
        offer: &GpuOffer,
    ) -> Result<Option<Release>, Vec<Problem>> {
        self.launch(question, offer).map(|(_, launch)| launch.release)
    }

    /// Returns the plan's scenario and its launch.
    fn launch(&self, question: &Question, offer: &GpuOffer) -> Result<(Scenario, Launch), Vec<Problem>> {
        let scenario = self.spec(question, offer).scenario()?;
        let launch = launch_or_fall_back(&scenario, &LaunchOptions::default())?;
        Ok((scenario, launch))
    }

    /// Returns the days of the whole run with failures: the expected ones, and their range.
    pub fn days_interval(&self) -> Interval {
        Interval { low: self.time.low.days, mid: self.days, high: self.time.high.days }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_missed_only_if_the_plan_meets_it() {
        let interval = |mid: f64| Interval { low: mid * 0.9, mid, high: mid * 1.1 };
        let run = ScriptRun {
            gpus: 512,
            gpu: "B200".to_owned(),
            planned: "Megatron-Bridge".to_owned(),
            software: "Megatron-LM".to_owned(),
            stack: Software::default(),
            slowdown: 1.2,
            planned_days: interval(50.0),
            days: interval(60.0),
            may_lack_memory: false,
        };
        let effects = [45.0, 56.0, 62.0, 70.0].map(|deadline| run.effect_on(deadline));
        let [unmet, missed, late, met] = effects;
        assert_eq!([unmet, met], [DeadlineEffect::Unchanged; 2]);
        assert_eq!([missed, late], [DeadlineEffect::Misses, DeadlineEffect::MayMiss]);
    }
}
