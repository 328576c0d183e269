//! Steps, Nsight profiles and NCCL traces, and what makes a measurement incomparable.

use super::choice::Style;
use super::offers;
use super::plan::{LaunchPlan, LaunchWarning, WarningTopic, given_fields};
use super::values::TimeLimit;
use super::word::ShellWord;
use crate::assumption::Assumption;
use crate::estimate::{Estimate, Interval};
use crate::field::Field;
use crate::message;
use crate::message::{Message, Setting};
use crate::problem::Problem;
use crate::releases::{ProfileRun, TraceRun};
use crate::units::significant;

pub(super) fn apply(plan: &mut LaunchPlan) {
    steps(plan);
    profile(plan);
    nccl_trace(plan);
    let (steps, scored) = (plan.steps, plan.script().scored_to);
    // A run that loads a checkpoint takes one step, regardless of the option.
    let takes_them = plan.options.max_steps.is_some() && plan.options.load_checkpoint.is_none();
    let shortened_by_choice = takes_them && plan.incomparable.is_empty();
    if steps < scored && shortened_by_choice {
        plan.incomparable
            .push(format!("{steps} steps end before step {scored}, the last that the release scores"));
    }
}

/// Warns if the job may not finish within the time limit; `slowdown` is of the script's software. A release's own limit is right for
/// its own recipes.
pub(super) fn check_time(plan: &mut LaunchPlan, slowdown: Option<f64>) {
    let Some(limit) = plan.time_limit().filter(|_| plan.on_slurm()) else { return };
    let is_usual = plan.options.time_limit.is_none() && plan.steps <= plan.script().steps;
    if is_usual && plan.scenario.published_as().is_some() {
        return;
    }
    let step_time_s = Estimate::of(plan.scenario).step_time_s.times(slowdown.unwrap_or(1.0));
    let published_s = plan.scenario.baseline().map(|baseline| baseline.step_time_s);
    plan.warnings.extend(short_limit(limit, plan.steps, step_time_s, published_s));
}

/// Returns the warning of a time limit that may be too short for the job: for a start as long as after a failure, and then its
/// steps, at the slow end of the prediction or at the step time published for exactly this layout.
pub(super) fn short_limit(
    limit: TimeLimit,
    steps: u32,
    step_time_s: Interval,
    published_s: Option<f64>,
) -> Option<LaunchWarning> {
    let training_s = step_time_s.times(f64::from(steps));
    let published_s = published_s.map_or(0.0, |step_s| step_s * f64::from(steps));
    let start_s = Assumption::RecoveryTime.value();
    let needed_s = start_s + published_s.max(training_s.high);
    let limit_s = f64::from(limit.seconds());
    if needed_s <= limit_s {
        return None;
    }
    let minutes = |seconds: f64| format!("{:.1}", seconds / 60.0);
    let training = if published_s > training_s.high {
        format!("At the published step time, {steps} steps take {} minutes", minutes(published_s))
    } else {
        let (mid, high) = (minutes(training_s.mid), minutes(training_s.high));
        format!("{steps} steps are predicted to take {mid} minutes (up to {high})")
    };
    let (topic, is) = match published_s.max(training_s.mid) > limit_s {
        true => (WarningTopic::TimeLimit, "is"),
        false => (WarningTopic::Script, "may be"),
    };
    let start = significant(start_s / 60.0, 2);
    let text = format!(
        "{training}, and the job is assumed to need {start} minutes to start, so the time limit of {limit} {is} too short."
    );
    let enough = Setting::new(Field::TimeLimit, TimeLimit::covering(needed_s));
    Some(LaunchWarning { topic, text: text.into(), fix: message!["Set ", enough, " or more."] })
}

fn steps(plan: &mut LaunchPlan) {
    if let Some(steps) = plan.options.max_steps {
        plan.set(Field::MaxSteps, ShellWord::of(steps));
    }
}

fn profile(plan: &mut LaunchPlan) {
    let options = plan.options;
    if !options.profile {
        let without_effect = given_fields(&[
            (Field::ProfileStartStep, options.profile_start_step.is_some()),
            (Field::ProfileStopStep, options.profile_stop_step.is_some()),
            (Field::GpuMetrics, options.gpu_metrics),
        ]);
        if let Some(fields) = without_effect {
            plan.warn(
                message!["Without a profile, "].and(fields).and(" has no effect."),
                message!["Set ", Field::Profile, "."],
            );
        }
        return;
    }
    let script = plan.script();
    let start = options.profile_start_step.unwrap_or(script.profile_start);
    let stop = options.profile_stop_step.unwrap_or(script.profile_stop);
    if start >= stop {
        plan.refuse(empty_window(plan, start, stop));
    }
    // llmb-run has its own flag.
    if plan.style != Style::LlmbRun {
        plan.set(Field::Profile, ShellWord::of("true"));
    }
    if options.profile_start_step.is_some() {
        plan.set(Field::ProfileStartStep, ShellWord::of(start));
    }
    if options.profile_stop_step.is_some() {
        plan.set(Field::ProfileStopStep, ShellWord::of(stop));
    }
    if options.gpu_metrics && !plan.set(Field::GpuMetrics, ShellWord::of("true")) {
        let message = Message::from(format!("Release {} doesn't support ", plan.release()));
        let problem = Problem::new(Field::GpuMetrics, "", message.and(Field::GpuMetrics).and("."));
        plan.refuse(offers::elsewhere(plan.scenario, problem));
    }
    plan.incomparable.push("Nsight Systems slows the profiled steps".into());
    if plan.rules().profile == ProfileRun::KeepsSteps {
        if stop > plan.steps {
            plan.refuse(late_window(plan, start, stop));
        }
        return;
    }
    if let Some(steps) = options.max_steps.filter(|steps| *steps != stop) {
        plan.warn(
            format!("A profiled run ends with the last profiled step: {stop} steps run, not {steps}."),
            match window_within(plan, steps) {
                Some(window) => message!["Set "].and(window).and(format!(" for {steps} steps.")),
                None => message!["Remove ", Field::MaxSteps, "."],
            },
        );
    }
    plan.steps = stop;
}

/// Returns the problem of a first profiled step that is not before the last. It is about the one that was
/// given, or the first if both were.
fn empty_window(plan: &LaunchPlan, start: u32, stop: u32) -> Problem {
    let options = plan.options;
    if options.profile_start_step.is_none() {
        let message = message![
            Setting::new(Field::ProfileStopStep, stop),
            format!(" is not after the first profiled step, by default {start}. Set a step after {start}")
        ];
        let message = match window_within(plan, stop) {
            Some(window) => message.and(", or ").and(window).and("."),
            None => message.and("."),
        };
        return Problem::new(Field::ProfileStopStep, stop, message);
    }
    let default = if options.profile_stop_step.is_none() { "by default " } else { "" };
    let message = message![
        Setting::new(Field::ProfileStartStep, start),
        format!(" is not before the last profiled step, {default}{stop}.")
    ];
    let nearest = stop.checked_sub(1).filter(|start| *start > 0);
    Problem::new(Field::ProfileStartStep, start, message).suggest(nearest)
}

/// Returns the problem of a run that ends before the last profiled step.
fn late_window(plan: &LaunchPlan, start: u32, stop: u32) -> Problem {
    let steps = plan.steps;
    let default = if plan.options.profile_stop_step.is_none() { "by default " } else { "" };
    let message = Message::from(format!(
        "The last profiled step, {default}{stop}, is after the run's last step, {steps}, so the profile \
         would be cut off."
    ));
    let problem = |message| Problem::new(Field::ProfileStopStep, stop, message);
    if start < steps {
        return problem(message).suggest([steps]);
    }
    problem(match window_within(plan, steps) {
        Some(window) => message.and(" Set ").and(window).and("."),
        None => message.and(format!(" Run {stop} steps or more.")),
    })
}

/// Returns the settings that profile the last of `steps` steps, if possible as many of them as by default.
/// `None` if the run is too short.
fn window_within(plan: &LaunchPlan, steps: u32) -> Option<Message> {
    let stop = Setting::new(Field::ProfileStopStep, steps);
    if plan.options.profile_start_step.is_some_and(|start| start < steps) {
        return Some(stop.into());
    }
    let script = plan.script();
    let start = steps.saturating_sub(script.profile_stop - script.profile_start).max(1);
    (start < steps).then(|| message![Setting::new(Field::ProfileStartStep, start), " and ", stop])
}

fn nccl_trace(plan: &mut LaunchPlan) {
    if !plan.options.nccl_trace {
        return;
    }
    if !plan.set(Field::NcclTrace, ShellWord::of("true")) {
        let message = message![
            format!("Release {} doesn't support ", plan.release()),
            Field::NcclTrace,
            format!(" for {}. Set ", plan.scenario.model.title),
            Setting::new(Field::MaxSteps, 5),
            " and the environment variables NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL,P2P,NET instead."
        ];
        plan.refuse(Problem::new(Field::NcclTrace, "", message));
        return;
    }
    plan.incomparable.push("logging every NCCL call slows the steps".into());
    let TraceRun::ReplacesRun(traced) = plan.rules().trace else { return };
    if plan.options.profile {
        let message = message![
            Field::NcclTrace,
            " and ",
            Field::Profile,
            " can't be combined: the release's script refuses both. Use a separate launch for each."
        ];
        plan.refuse(Problem::new(Field::NcclTrace, "", message));
        return;
    }
    for (field, given, fixed) in [
        (
            Field::MaxSteps,
            plan.options.max_steps.map(|steps| steps.to_string()),
            format!("{} steps", traced.steps),
        ),
        (
            Field::TimeLimit,
            plan.options.time_limit.map(|limit| limit.to_string()),
            format!("{} minutes", traced.minutes),
        ),
    ] {
        if let Some(given) = given {
            let text =
                message![format!("A traced run has {fixed} and ignores "), Setting::new(field, given), "."];
            plan.warn(text, "Remove it.");
        }
    }
    plan.steps = traced.steps;
}
