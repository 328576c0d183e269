//! What the launch script makes of the best plan.

use crate::cli::search::found::SearchedGpu;
use trainplan_shared::message::Front;
use trainplan_shared::problem::all_of;
use trainplan_shared::question::{DeadlineEffect, Goal, PlanScript, Question, ScriptRun, ScriptedPlan};
use trainplan_shared::range::ValueRange;
use trainplan_shared::tables::cells;
use trainplan_shared::units::significant;

/// Returns which software the launch script of the plan runs, if that differs from the planned one. The plan has its time.
pub(in crate::cli::search) fn by_script(found: &SearchedGpu<'_>) -> Option<String> {
    let text = match found.script? {
        PlanScript::AsPlanned => return None,
        PlanScript::Unavailable(problems) => {
            let why: Vec<String> = problems.iter().map(|problem| problem.text(Front::Terminal)).collect();
            format!("No launch script can be written for the best plan: {}", why.join(" "))
        }
        PlanScript::Other(plan) => {
            let ScriptRun { software, planned, days, slowdown, .. } = &plan.script;
            let runs = match software == planned {
                true => format!("turns off parts of {planned}"),
                false => format!("runs {software}, not {planned}"),
            };
            let range = ValueRange { low: days.low, high: days.high };
            let effects = consequences(found.question, plan);
            let joined = |by: &str| match &*effects {
                [] => String::new(),
                effects => format!(", {by} {}", all_of(effects)),
            };
            match *slowdown == 1.0 {
                true => format!("The launch script {runs}. It is about as fast{}.", joined("but")),
                false => {
                    let (time, effects) = (cells::time(days.mid, range), joined("which"));
                    let is_counted = found.answer.shown() == Some(&plan.run);
                    let others = match is_counted {
                        true => " The other layouts are assumed to slow down by the same factor.",
                        false => "",
                    };
                    format!("The launch script {runs}: about {time}{effects}.{others}")
                }
            }
        }
    };
    Some(text)
}

/// Returns that the launch script of the best plan runs Megatron-LM in the place of NVIDIA's planned software, about as fast; none if it
/// runs that software, or if [`by_script`] says how it differs.
pub(in crate::cli::search) fn as_fast_with_megatron_lm(found: &SearchedGpu<'_>) -> Option<String> {
    let is_as_planned = matches!(found.script?, PlanScript::AsPlanned);
    let software = found.offer.options.software;
    let best = found.answer.best().filter(|_| is_as_planned && software.base().is_nvidia_megatron())?;
    let release = best.launching_release(found.question, found.offer).ok()?;
    release.is_none().then(|| {
        format!("The launch script runs Megatron-LM, not {}. It is about as fast.", software.title())
    })
}

/// Returns what a script with other software makes of a plan that reaches the goal: "misses the deadline".
fn consequences(question: &Question, ScriptedPlan { script, run, .. }: &ScriptedPlan) -> Vec<String> {
    let mut effects = Vec::new();
    if let Goal::Deadline(limit) = question.goal {
        match script.effect_on(limit) {
            DeadlineEffect::Unchanged => {}
            DeadlineEffect::MayMiss => effects.push("may miss the deadline".to_string()),
            DeadlineEffect::Misses => effects.push("misses the deadline".to_string()),
        }
    }
    if let Some(longest) = question.longest_days() {
        let limit = significant(longest, 4);
        if run.days > longest {
            effects.push(format!("takes longer than {limit} days"));
        } else if run.days_with(question.chance) > longest {
            effects.push(format!("may take longer than {limit} days"));
        }
    }
    if let Some(budget) = question.budget() {
        let exceeds = |cost: Option<f64>| cost.is_some_and(|cost| cost > budget);
        if exceeds(run.expected_cost) {
            effects.push("exceeds the budget".to_string());
        } else if exceeds(run.cost_with(question.chance)) {
            effects.push("may exceed the budget".to_string());
        }
    }
    if script.may_lack_memory {
        effects.push("may not fit in memory".to_string());
    }
    effects
}
