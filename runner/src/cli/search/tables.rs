//! The result of a search for people.

use super::found::SearchedGpu;
use super::sentences::{
    assumptions, beside_measured, beside_measured_software, beside_published, by_script, considered,
    counted_split, faster_layout, in_time_as_measured, order, regret, restated, verdict,
};
use crate::cli::Failure;
use crate::cli::output::{prose, text_line, text_table};
use trainplan_shared::question::Question;
use trainplan_shared::tables::{LayoutColumn, PlanColumn, PlanRow};
use trainplan_shared::units::group_digits;

/// Prints the question, the answers, the verdict, and the layouts of each GPU type.
pub(super) fn print(question: &Question, found: &[SearchedGpu<'_>]) -> Result<(), Failure> {
    prose(&restated(question))?;
    prose(&assumptions(question))?;
    let best: Vec<PlanRow<'_>> = found.iter().filter_map(SearchedGpu::best).collect();
    if !best.is_empty() {
        text_line("")?;
        text_table(PlanColumn::terminal_table(&best))?;
    }
    prose(&format!("\n{}", verdict(found)))?;
    for found in found {
        layouts(found)?;
    }
    match regret(question) {
        Some(sentence) => prose(&format!("\n{sentence}")),
        None => Ok(()),
    }
}

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
        .chain(faster_layout(found))
        .chain(beside_published(found))
        .chain(beside_measured(found))
        .chain(in_time_as_measured(found))
        .chain(beside_measured_software(found));
    for sentence in sentences {
        prose(&sentence)?;
    }
    prose(&considered(&answer.counts))?;
    match answer.best() {
        Some(run) => text_line(&format!("The best plan in detail: {}", found.command(run))),
        None => Ok(()),
    }
}
