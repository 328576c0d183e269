//! How the best plan compares with published and measured runs.

use super::currency;
use crate::cli::search::found::SearchedGpu;
use trainplan_shared::benchmarks::BestMeasured;
use trainplan_shared::estimate::Interval;
use trainplan_shared::question::{
    Chance, Goal, PlannedRun, chance_text, enough_as_predicted, in_time_at_that_speed,
};
use trainplan_shared::tables::cells;
use trainplan_shared::units::{group_digits, significant};

/// Returns how the best layout compares with the published one.
pub(in crate::cli::search) fn beside_published(found: &SearchedGpu<'_>) -> Option<String> {
    let (recipe, published) = found.answer.published.as_ref()?;
    let best = found.answer.layouts.first()?;
    if best.layout.candidate == published.layout.candidate {
        return Some(format!("The best layout is the one published for {}.", recipe.id));
    }
    let Interval { low, mid, high } = best.speed_over(published);
    let whole = |ratio: f64| format!("{:.0}", (ratio - 1.0) * 100.0);
    Some(match low > 1.0 {
        true => format!(
            "The best layout is {} % faster than the one published for {} ({}–{} %).",
            whole(mid),
            recipe.id,
            whole(low),
            whole(high)
        ),
        false => format!(
            "With this batch, precision and software, the published layout of {} is predicted to take {} s per step, this one \
             {} s: the difference is within the uncertainty of ±{} %.",
            recipe.id,
            significant(published.layout.step_time_s.mid, 3),
            significant(best.layout.step_time_s.mid, 3),
            whole((high / mid).max(2.0 - low / mid))
        ),
    })
}

/// Returns how the best plan compares with the fastest run that anybody measured of the model on this GPU type, or that nobody can
/// have measured one.
pub(in crate::cli::search) fn beside_measured(found: &SearchedGpu<'_>) -> Option<String> {
    if found.offer.gpu.generation.is_planned() {
        return Some(format!(
            "The {} is not available yet, so nobody has measured it. The estimate rests on its published peaks.",
            found.offer.gpu.name
        ));
    }
    let measured = BestMeasured::of(&found.question.model.id, &found.offer.gpu.id)?;
    let best = found.answer.shown()?;
    Some(measured.compared(&found.offer.gpu.name, best.tokens_per_s_per_gpu, best.days))
}

/// Returns how long the best plan takes with software that was measured on this GPU type, if its own was not and is predicted to be
/// clearly faster, and how likely it then meets the deadline that it meets as predicted.
pub(in crate::cli::search) fn beside_measured_software(found: &SearchedGpu<'_>) -> Option<String> {
    let (software, run) = found.answer.with_measured_software.as_ref()?;
    let enough = found.answer.enough_as_predicted(found.question);
    let enough =
        enough.map_or(String::new(), |gpus| format!(" {}", enough_as_predicted(gpus, software.title())));
    let required = match found.question.chance {
        Chance::NineInTen => format!(", where {} is required", Chance::Even.title()),
        Chance::Even => String::new(),
    };
    let chance = match (found.question.goal, found.answer.best()) {
        (Goal::Deadline(limit), Some(_)) => {
            format!(", and meet the deadline {}{required}", chance_text(run.in_time_of_ten(limit)))
        }
        _ => String::new(),
    };
    Some(format!(
        "No published run of this model on {} used {}. At the measured speed of {}, which the nearest run used, the plan would take \
         {}{chance}.{enough}",
        found.offer.gpu.name,
        found.offer.options.software.title(),
        software.title(),
        cells::time(run.days, run.time.days())
    ))
}

/// Returns the fewest GPUs that are in time even at the fastest measured throughput, within the budget, if the best plan is not, with
/// their cost as predicted and at that throughput.
pub(in crate::cli::search) fn in_time_as_measured(found: &SearchedGpu<'_>) -> Option<String> {
    let Goal::Deadline(limit) = found.question.goal else { return None };
    let measured = BestMeasured::of(&found.question.model.id, &found.offer.gpu.id)?;
    let slowdown = |run: &PlannedRun| measured.exceeded(run.tokens_per_s_per_gpu).max(1.0);
    let is_in_time = |run: &&PlannedRun| run.days * slowdown(run) <= limit;
    let question = found.question;
    let is_within = |run: &PlannedRun| {
        let budget = question.budget().zip(run.cost_with(question.chance));
        budget.is_none_or(|(budget, cost)| cost * slowdown(run) <= budget)
    };
    let best = found.answer.best().filter(|run| !is_in_time(run))?;
    let points = &found.answer.points;
    let run = points.iter().find(|run| run.gpus > best.gpus && is_in_time(run) && is_within(run))?;
    let costs = run
        .expected_cost
        .map(|cost| [cost, cost * slowdown(run)].map(|cost| cells::money(cost, currency(question))));
    Some(format!("{} GPUs {}", group_digits(run.gpus.into()), in_time_at_that_speed(costs)))
}
