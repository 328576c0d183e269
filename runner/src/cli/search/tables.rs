//! The result of a search for people.

use super::found::SearchedGpu;
use super::headline::headline;
use super::sentences::{
    as_fast_with_megatron_lm, assumptions, beside_measured, beside_measured_software, beside_published,
    by_script, considered, counted_split, faster_layout, in_time_as_measured, order, regret, restated,
    slower_with_more, verdict,
};
use crate::cli::Failure;
use crate::cli::output::{prose, text_line, text_table};
use trainplan_shared::deadline::date_of;
use trainplan_shared::question::Question;
use trainplan_shared::tables::{LayoutColumn, PlanColumn, PlanRow};
use trainplan_shared::units::group_digits;

/// Prints the answer in a sentence, the question, the best plan of each GPU type, best first, or the nearest one, their comparison, with
/// `lists_layouts` the layouts of each type, and the commands of the best plan.
pub(super) fn print(
    question: &Question,
    found: &[SearchedGpu<'_>],
    lists_layouts: bool,
) -> Result<(), Failure> {
    prose(&headline(found))?;
    let date = found.first().and_then(|first| date_of(first.typed));
    prose(&format!("\n{}", restated(question, date)))?;
    prose(&assumptions(question))?;
    let plans: Vec<PlanRow<'_>> = found.iter().filter_map(SearchedGpu::shown).collect();
    if !plans.is_empty() {
        text_line("")?;
        text_table(PlanColumn::terminal_table(&plans).without_empty_columns())?;
    }
    prose(&format!("\n{}", verdict(found)))?;
    for found in found {
        match lists_layouts || found.answer.shown().is_none() {
            true => layouts(found)?,
            false => doubts(found)?,
        }
    }
    if let Some(sentence) = regret(question) {
        prose(&format!("\n{sentence}"))?;
    }
    if !lists_layouts {
        text_line("\nOther layouts: add --top 5.")?;
    }
    let best = found.first().and_then(|first| Some((first, first.answer.best()?)));
    let Some((first, run)) = best else { return Ok(()) };
    text_line(&format!("\nIn detail: {}", first.command(run)))?;
    match first.launch_command(run) {
        Some(command) => text_line(&format!("Launch it: {command}")),
        None => Ok(()),
    }
}

/// Prints notes on the plan of a GPU type.
fn doubts(found: &SearchedGpu<'_>) -> Result<(), Failure> {
    let sentences: Vec<String> = by_script(found)
        .into_iter()
        .chain(as_fast_with_megatron_lm(found))
        .chain(faster_layout(found))
        .chain(slower_with_more(found))
        .chain(beside_measured(found))
        .chain(in_time_as_measured(found))
        .chain(beside_measured_software(found))
        .collect();
    match sentences.is_empty() {
        true => Ok(()),
        false => prose(&format!("\n{}: {}", found.offer.gpu.name, sentences.join(" "))),
    }
}

/// Prints the layouts of a GPU type, with notes.
fn layouts(found: &SearchedGpu<'_>) -> Result<(), Failure> {
    let SearchedGpu { offer, answer, .. } = *found;
    let rows = found.rows();
    match rows.first() {
        Some(first) => {
            let gpus = group_digits(first.run.gpus.into());
            text_line(&format!("\nLayouts on {gpus} × {}\n", offer.gpu.name))?;
            text_table(LayoutColumn::terminal_table(&rows).without_empty_columns())?;
            text_line("")?;
        }
        None => text_line(&format!("\nLayouts on {}\n", offer.gpu.name))?,
    }
    let sentences = order(answer)
        .into_iter()
        .chain(counted_split(&rows))
        .chain(by_script(found))
        .chain(as_fast_with_megatron_lm(found))
        .chain(faster_layout(found))
        .chain(slower_with_more(found))
        .chain(beside_published(found))
        .chain(beside_measured(found))
        .chain(in_time_as_measured(found))
        .chain(beside_measured_software(found));
    for sentence in sentences {
        prose(&sentence)?;
    }
    prose(&considered(&answer.counts))
}
