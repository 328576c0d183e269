//! The result of a search as Markdown, for a pull request or a design document.

use super::TOP_OF_TABLE;
use super::found::{SearchedGpu, command_of_flags};
use super::headline::headline;
use super::sentences::{
    as_fast_with_megatron_lm, assumptions, beside_measured, beside_measured_software, beside_published,
    by_script, considered, counted, counted_split, faster_layout, in_time_as_measured, order, regret,
    restated, slower_with_more, verdict,
};
use crate::cli::Failure;
use crate::cli::output::text;
use std::fmt::Write as _;
use trainplan_shared::deadline::date_of;
use trainplan_shared::field::Field;
use trainplan_shared::message::Front;
use trainplan_shared::question::Question;
use trainplan_shared::tables::{LayoutColumn, PlanColumn, PlanRow};
use trainplan_shared::text::markdown;
use trainplan_shared::units::group_digits;

/// Prints the question, the best plans, the verdict, the layouts of each GPU type, the assumptions, and the command that
/// gives the same answer.
pub(super) fn print(question: &Question, found: &[SearchedGpu<'_>]) -> Result<(), Failure> {
    let date = found.first().and_then(|first| date_of(first.typed));
    let mut page =
        format!("**{}**\n\n{}\n\n", markdown(&headline(found)), markdown(&restated(question, date)));
    let plans: Vec<PlanRow<'_>> = found.iter().filter_map(SearchedGpu::shown).collect();
    if !plans.is_empty() {
        let _ = writeln!(page, "{}", PlanColumn::terminal(&plans).without_empty_columns().to_markdown());
    }
    let _ = writeln!(page, "**{}**", markdown(&verdict(found)));
    for found in found {
        layouts(&mut page, found);
    }
    if let Some(sentence) = regret(question) {
        let _ = writeln!(page, "\n{}", markdown(&sentence));
    }
    let launch = found.first().and_then(|first| first.launch_command(first.answer.best()?));
    if let Some(command) = launch {
        let _ = writeln!(page, "\nLaunch the best plan:\n\n```sh\n{command}\n```");
    }
    let _ = writeln!(page, "\n### Assumptions\n\n{}\n", markdown(&assumptions(question)));
    if let Some(found) = found.first() {
        let version = env!("CARGO_PKG_VERSION");
        let top = match found.top {
            top if top == usize::from(TOP_OF_TABLE) => String::new(),
            top => format!(" --top {top}"),
        };
        // On another day, the date of a deadline would be another question.
        let days = date.and_then(|_| question.spec.get(Field::Deadline));
        let asked =
            days.map_or_else(|| found.typed.clone(), |days| found.typed.clone().with(Field::Deadline, days));
        let command =
            command_of_flags("search", asked.iter().map(|(field, text)| (field.search_flag(), text)));
        let _ = writeln!(
            page,
            "Computed by Trainplan {version}:\n\n```sh\n{command}{top} --format markdown\n```"
        );
    }
    text(&page)
}

fn layouts(page: &mut String, found: &SearchedGpu<'_>) {
    let SearchedGpu { question, offer, answer, .. } = *found;
    let rows = found.rows();
    let name = markdown(&offer.gpu.name);
    let _ = match rows.first() {
        Some(first) => {
            let gpus = group_digits(first.run.gpus.into());
            let table = LayoutColumn::terminal(&rows).without_empty_columns().to_markdown();
            writeln!(page, "\n### Layouts on {gpus} × {name}\n\n{table}")
        }
        None => writeln!(page, "\n### Layouts on {name}\n"),
    };
    // The rules that discarded layouts matter most if no layout is left.
    let counts = if rows.is_empty() { considered(&answer.counts) } else { counted(&answer.counts) };
    let beside = by_script(found)
        .into_iter()
        .chain(as_fast_with_megatron_lm(found))
        .chain(faster_layout(found))
        .chain(slower_with_more(found))
        .chain(beside_published(found))
        .chain(beside_measured(found))
        .chain(in_time_as_measured(found))
        .chain(beside_measured_software(found));
    let sentences = order(answer).into_iter().chain(counted_split(&rows)).chain(beside).chain([counts]);
    let _ = writeln!(page, "{}", markdown(&sentences.collect::<Vec<_>>().join(" ")));
    let Some(run) = answer.best() else { return };
    for caution in run.cautions(question) {
        let _ = writeln!(page, "\nNote: {}", markdown(&caution.text(Front::Search)));
    }
    let _ = writeln!(page, "\nThe best plan in detail:\n\n```sh\n{}\n```", found.command(run));
}
