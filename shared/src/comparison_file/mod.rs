//! A comparison as a document: Markdown for a pull request, or one HTML file that opens without a network.
//!
//! Labels, paths, reasons and settings come from logs, so each format escapes every text.

mod chart;
mod html;
mod markdown;

use crate::compare::{Comparison, LabelledVerdict, RunFigures};
use crate::log::Window;
use crate::tables::{ComparedRun, ComparisonColumn, PageCell, PageHeading, PooledColumn, TextTable};

/// A comparison in the words and tables of a document.
#[derive(Debug, Clone)]
pub struct ComparisonDocument<'a> {
    comparison: &'a Comparison,
    /// The document's title.
    title: String,
    /// The verdicts, one for each mapping or run.
    verdicts: Vec<LabelledVerdict<'a>>,
    /// What to know about single runs.
    remarks: Vec<LabelledText>,
    headings: Vec<PageHeading>,
    /// The cells of each run, in the order of the headings.
    rows: Vec<Vec<PageCell>>,
    pooled: Option<TextTable>,
}

/// A sentence about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LabelledText {
    label: String,
    text: String,
}

impl<'a> ComparisonDocument<'a> {
    /// Returns the document of a comparison with the window that the reader chose.
    #[must_use]
    pub fn new(comparison: &'a Comparison, asked: Option<Window>) -> Self {
        let runs = ComparedRun::all(comparison, asked);
        let cells: Vec<Vec<PageCell>> = runs.iter().map(ComparisonColumn::page_cells).collect();
        let cell = |row: &[PageCell], key: &str| {
            row.iter().find(|cell| cell.key == key).cloned().unwrap_or_default()
        };
        let is_filled = |heading: &PageHeading| {
            !heading.is_optional || cells.iter().any(|row| !cell(row, heading.key).text.is_empty())
        };
        let headings: Vec<PageHeading> =
            ComparisonColumn::page_headings().into_iter().filter(is_filled).collect();
        let rows =
            cells.iter().map(|row| headings.iter().map(|heading| cell(row, heading.key)).collect()).collect();
        Self {
            title: match comparison.items.len() {
                0 => "No runs".to_owned(),
                1 => comparison.reference_label().to_owned(),
                _ => format!("Runs compared with {}", comparison.reference_label()),
            } + &endings(comparison),
            verdicts: comparison.verdicts(),
            remarks: remarks(comparison),
            headings,
            rows,
            pooled: (!comparison.pooled.is_empty())
                .then(|| PooledColumn::terminal(&comparison.pooled).without_empty_columns()),
            comparison,
        }
    }
}

/// Returns which runs ended early, to append to a title: `: hang hung after step 60`. Empty if none did.
fn endings(comparison: &Comparison) -> String {
    let labels = comparison.brief_labels();
    let ended = |item: &RunFigures| {
        let how = item.ended_early.as_ref()?;
        Some(match comparison.items.len() {
            1 => how.clone(),
            _ => format!("{} {how}", labels.shorten(&item.label)),
        })
    };
    let ended: Vec<String> = comparison.items.iter().filter_map(ended).collect();
    if ended.is_empty() { String::new() } else { format!(": {}", ended.join("; ")) }
}

/// Returns what to know about single runs. The verdicts and the tables before have the full labels.
fn remarks(comparison: &Comparison) -> Vec<LabelledText> {
    let labels = comparison.brief_labels();
    let remark =
        |label: &str, text: &str| LabelledText { label: labels.shorten(label), text: labels.shorten(text) };
    let of_items = comparison
        .items
        .iter()
        .flat_map(|item| item.remarks().into_iter().map(move |text| (item.label.as_str(), text)));
    let of_pairs = comparison.difference.each.iter().flat_map(|against| {
        let label = comparison.items.get(against.item).map_or("", |item| item.label.as_str());
        against.notes.iter().map(move |text| (label, text.clone()))
    });
    of_items.chain(of_pairs).map(|(label, text)| remark(label, &text)).collect()
}

#[cfg(test)]
mod tests;
