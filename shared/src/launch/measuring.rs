//! Steps, Nsight profiles and NCCL traces: what is measured, and what spoils the measurement.

use super::choice::Style;
use super::offers;
use super::plan::{Plan, flags_of};
use super::release::baseline;
use super::word::Word;
use crate::field::Field;
use crate::problem::Problem;
use crate::releases::{ProfileRun, TraceRun};

pub(super) fn apply(plan: &mut Plan) {
    steps(plan);
    profile(plan);
    nccl_trace(plan);
    let (steps, scored) = (plan.steps, plan.script().scored_to);
    // A run that loads a checkpoint takes one step, whatever is asked for.
    let takes_them = plan.options.max_steps.is_some() && plan.options.load_checkpoint.is_none();
    let shortened_by_choice = takes_them && plan.incomparable.is_empty();
    if steps < scored && shortened_by_choice {
        plan.incomparable
            .push(format!("{steps} steps end before step {scored}, to which the release scores a run"));
    }
}

/// Says when the published step time does not leave the steps enough time. Starting up comes on top of it.
pub(super) fn check_time(plan: &mut Plan) {
    let strong = plan.target.recipe.id.strong;
    let limit = plan.options.time_limit.or_else(|| plan.script().time_limit(strong));
    let (Some(limit), Some(baseline)) = (limit, baseline(plan)) else { return };
    let needed = f64::from(plan.steps) * baseline.step_time_s;
    if needed > f64::from(limit.seconds()) && plan.on_slurm() {
        let steps = plan.steps;
        let minutes = libm::ceil(needed / 60.0);
        plan.warn(
            format!(
                "At the published step time {steps} steps take {minutes} minutes, longer than the time \
                     limit {limit}."
            ),
            "Set a longer --time-limit, with room for the start of the job.",
        );
    }
}

fn steps(plan: &mut Plan) {
    if let Some(steps) = plan.options.max_steps {
        plan.set(Field::MaxSteps, Word::of(steps));
    }
}

fn profile(plan: &mut Plan) {
    let options = plan.options;
    if !options.profile {
        let without_effect = flags_of(&[
            (Field::ProfileStartStep, options.profile_start_step.is_some()),
            (Field::ProfileStopStep, options.profile_stop_step.is_some()),
            (Field::GpuMetrics, options.gpu_metrics),
        ]);
        if let Some(flags) = without_effect {
            let text = format!("A run that is not profiled has no use for {flags}.");
            plan.warn(text, "Give --profile, or leave it out.");
        }
        return;
    }
    let script = plan.script();
    let start = options.profile_start_step.unwrap_or(script.profile_start);
    let stop = options.profile_stop_step.unwrap_or(script.profile_stop);
    if start >= stop {
        plan.refuse(empty_window(plan, start, stop));
    }
    // llmb-run has a flag for it.
    if plan.style != Style::LlmbRun {
        plan.set(Field::Profile, Word::of("true"));
    }
    if options.profile_start_step.is_some() {
        plan.set(Field::ProfileStartStep, Word::of(start));
    }
    if options.profile_stop_step.is_some() {
        plan.set(Field::ProfileStopStep, Word::of(stop));
    }
    if options.gpu_metrics && !plan.set(Field::GpuMetrics, Word::of("true")) {
        let what = format!("can't be had from release {}, whose script passes none on", plan.release());
        plan.refuse(offers::elsewhere(plan.scenario, Problem::clause(Field::GpuMetrics, "", what)));
    }
    plan.incomparable.push("Nsight Systems slows the steps that it watches".into());
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
                Some(window) => format!("Set {window} for {steps} steps."),
                None => "Leave --max-steps out.".into(),
            },
        );
    }
    plan.steps = stop;
}

/// No step lies between the first and the last profiled one. The problem is of the one that was given, the
/// first if both were.
fn empty_window(plan: &Plan, start: u32, stop: u32) -> Problem {
    let options = plan.options;
    if options.profile_start_step.is_none() {
        let what = format!("is not after the first profiled step, {start}, the release's default");
        let earlier = window_within(plan, stop).map(|window| format!(", or {window}")).unwrap_or_default();
        let allowed = format!("steps after {start}{earlier}");
        return Problem::clause(Field::ProfileStopStep, stop, what).allowed(allowed);
    }
    let default = if options.profile_stop_step.is_none() { ", the release's default" } else { "" };
    let what = format!("is not before the last profiled step, {stop}{default}");
    let nearest = stop.checked_sub(1).filter(|start| *start > 0);
    Problem::clause(Field::ProfileStartStep, start, what).nearest(nearest)
}

/// The run ends before the last profiled step, where the release does not end it there by itself.
fn late_window(plan: &Plan, start: u32, stop: u32) -> Problem {
    let steps = plan.steps;
    let default = if plan.options.profile_stop_step.is_none() { " the release's default and" } else { "" };
    let what = format!("is{default} after the last step, {steps}: nothing would be profiled to its end");
    let problem = Problem::clause(Field::ProfileStopStep, stop, what);
    if start < steps {
        return problem.nearest([steps]);
    }
    problem.allowed(window_within(plan, steps).unwrap_or_else(|| format!("a run of {stop} steps or more")))
}

/// The options that profile the last ones of so many steps, as long as the release's own window where there
/// is room; none where there is room for no window.
fn window_within(plan: &Plan, steps: u32) -> Option<String> {
    if plan.options.profile_start_step.is_some_and(|start| start < steps) {
        return Some(format!("--profile-stop-step {steps}"));
    }
    let script = plan.script();
    let start = steps.saturating_sub(script.profile_stop - script.profile_start).max(1);
    (start < steps).then(|| format!("--profile-start-step {start} --profile-stop-step {steps}"))
}

fn nccl_trace(plan: &mut Plan) {
    if !plan.options.nccl_trace {
        return;
    }
    if !plan.set(Field::NcclTrace, Word::of("true")) {
        let what = format!("has no effect at release {}", plan.release());
        let other = "the scripts of Llama 3.1 at 25.04 and of Nemotron-H at 25.05; elsewhere the lines \
                     NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL,P2P,NET of --env, with --max-steps 5, have \
                     NCCL write the same";
        plan.refuse(Problem::clause(Field::NcclTrace, "", what).allowed(other));
        return;
    }
    plan.incomparable.push("writing down every NCCL call slows the steps".into());
    let TraceRun::ReplacesRun(traced) = plan.rules().trace else { return };
    if plan.options.profile {
        let what = "can't go with --profile: the script stops at both";
        plan.refuse(Problem::clause(Field::NcclTrace, "", what).allowed("one launch for each"));
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
            let text = format!("A traced run has {fixed}; --{} {given} has no effect.", field.flag());
            plan.warn(text, "Leave it out.");
        }
    }
    plan.steps = traced.steps;
}
