//! Why a GPU type has no plan, and what would help.

use super::currency;
use crate::cli::search::found::SearchedGpu;
use trainplan_shared::field::Field;
use trainplan_shared::message;
use trainplan_shared::message::Front;
use trainplan_shared::problem::one_of;
use trainplan_shared::question::{Chance, Goal, Relaxation, Unmet, as_measured};
use trainplan_shared::tables::cells;
use trainplan_shared::units::{duration, group_digits, readable_days, significant, time_unit};

/// Returns why a GPU type has no plan, and what would help.
pub(in crate::cli::search) fn unmet_sentence(unmet: Unmet, found: &SearchedGpu<'_>) -> String {
    let SearchedGpu { question, offer, answer, .. } = *found;
    let name = &offer.gpu.name;
    let reaches = answer.relaxations.iter().any(|change| change.reaches_goal);
    let changes: Vec<String> = answer.relaxations.iter().map(|change| change_text(change, reaches)).collect();
    let changed = || match &*changes {
        [] => String::new(),
        changes if reaches => format!(" It works {}.", one_of(changes)),
        changes => {
            format!(" A layout works {}, but no single change reaches the goal.", one_of(changes))
        }
    };
    let is_by_measured = answer.is_by_measured_software();
    let measured = || format!(" {}", as_measured(answer.measured_software()));
    match unmet {
        Unmet::NoLayout if changes.is_empty() => {
            format!("No layout works on {name}, and no single change helps.")
        }
        Unmet::NoLayout => format!("No layout works on {name}.{}", changed()),
        Unmet::TooSlow { days } => {
            let shown = answer.shown();
            let gpus = shown.map_or(0, |run| run.gpus);
            let (unit, of_day) = time_unit(days);
            let time = readable_days(days * of_day);
            let limit = match question.goal {
                // A plan that is late by hours is not "60 days, not 60".
                Goal::Deadline(limit) if time == readable_days(limit * of_day) => {
                    format!(", slightly more than {}", significant(limit * of_day, 4))
                }
                Goal::Deadline(limit) => format!(", not {}", significant(limit * of_day, 4)),
                Goal::Budget(_) | Goal::Open => String::new(),
            };
            let (within, by) = match question.chance {
                Chance::NineInTen if is_by_measured => ("takes", measured()),
                Chance::NineInTen => ("may take up to", String::new()),
                Chance::Even => ("takes", String::new()),
            };
            let is_last = answer.points.last().is_some_and(|run| run.gpus == gpus);
            let most = if is_last { ", the most that were searched" } else { "" };
            format!(
                "The nearest plan on {name} {within} {time} {unit}{by}{limit}, on {} GPUs{most}.{}",
                group_digits(gpus.into()),
                changed()
            )
        }
        Unmet::TooExpensive { cost, .. } => {
            let limit = match (question.max_cost, question.longest_days()) {
                (Some(_), _) => " that meets the deadline".to_string(),
                (None, Some(longest)) => format!(" that takes at most {} days", significant(longest, 4)),
                (None, None) => String::new(),
            };
            let (costs, by) = match question.chance {
                Chance::NineInTen if is_by_measured => ("costs", measured()),
                Chance::NineInTen => ("may cost up to", String::new()),
                Chance::Even => ("costs", String::new()),
            };
            format!(
                "The cheapest plan on {name}{limit} {costs} {}{by}.{}",
                cells::money(cost, currency(question)),
                changed()
            )
        }
        Unmet::NoPrice => message![
            format!("No price is known for the {name}, so no budget can be met: set "),
            message::Setting::new(Field::Price, format!("{}=2.95", offer.gpu.id)),
            ", for example."
        ]
        .text(Front::Search),
    }
}

/// Returns a change with the plan that works with it: "with --gpus 512 (61 days on 512 GPUs)". If other changes reach the goal, says
/// that the plan misses it.
pub(in crate::cli::search) fn change_text(change: &Relaxation, others_reach: bool) -> String {
    let setting = &change.setting;
    let text = match setting.value.is_empty() {
        true => message!["without ", setting.field],
        false => message!["with ", setting.clone()],
    };
    let (gpus, time) = (group_digits(change.run.gpus.into()), duration(change.run.days));
    let misses = if others_reach && !change.reaches_goal { ", which misses the goal" } else { "" };
    format!("{} ({time} on {gpus} GPUs{misses})", text.text(Front::Search))
}
