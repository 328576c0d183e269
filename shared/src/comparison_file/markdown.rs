//! The Markdown of a comparison, as GitHub and GitLab render it.

use super::ComparisonDocument;
use crate::compare::{ConfigurationRow, LabelledVerdict, RunFigures};
use crate::document::MADE_BY;
use crate::tables::PageCell;
use crate::text::markdown;
use std::fmt::Write as _;

impl ComparisonDocument<'_> {
    /// Returns the document as Markdown: the verdicts, the runs, and, folded, what differs between their settings.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!("### {}\n\n", markdown(&self.title));
        for LabelledVerdict { label, text: verdict, .. } in &self.verdicts {
            let _ = writeln!(text, "- **{}**: {}", markdown(label), markdown(verdict));
        }
        if !self.verdicts.is_empty() {
            text.push('\n');
        }
        text += &self.runs_in_markdown();
        if let Some(pooled) = &self.pooled {
            text += &format!("\n{}", pooled.to_markdown());
        }
        text += &folded("Differences of the settings", self.differing());
        let remarks =
            self.remarks.iter().map(|of| format!("- {}: {}\n", markdown(&of.label), markdown(&of.text)));
        text += &folded("Notes", Some(remarks.collect()).filter(|text: &String| !text.is_empty()));
        let method = match self.comparison.items.len() {
            0 | 1 => String::new(),
            _ => format!("{} ", markdown(&self.comparison.difference.method)),
        };
        let _ = writeln!(text, "\n<sub>{method}{}</sub>", markdown(MADE_BY));
        text
    }

    /// Returns the table of the runs: one row for each, with its details in small letters.
    fn runs_in_markdown(&self) -> String {
        let titles = std::iter::once("Run").chain(self.headings.iter().map(|heading| heading.title));
        let numbers = std::iter::once(false).chain(self.headings.iter().map(|heading| heading.is_number));
        let row = |(item, row): (&RunFigures, &Vec<PageCell>)| {
            std::iter::once(markdown(&item.label)).chain(row.iter().map(cell)).collect()
        };
        table(titles, numbers, self.comparison.items.iter().zip(&self.rows).map(row))
    }

    /// Returns the settings that differ, if any do.
    fn differing(&self) -> Option<String> {
        let differing = self.comparison.configuration.iter().filter(|setting| setting.differs);
        let differing: Vec<ConfigurationRow> = differing.map(ConfigurationRow::readable).collect();
        let labels = self.comparison.items.iter().map(|item| item.label.as_str());
        let row = |setting: &ConfigurationRow| {
            let name = format!("{}: {}", setting.group.title(), setting.label);
            let values = setting.values.iter().map(|value| markdown(value.as_deref().unwrap_or("–")));
            std::iter::once(markdown(&name)).chain(values).collect()
        };
        let titles = std::iter::once("Setting").chain(labels);
        let is_shown = self.comparison.items.len() > 1 && !differing.is_empty();
        is_shown.then(|| table(titles, std::iter::repeat(false), differing.iter().map(row)))
    }
}

/// Returns a table whose cells are Markdown already.
fn table<'t>(
    titles: impl Iterator<Item = &'t str>,
    numbers: impl Iterator<Item = bool>,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let titles: Vec<String> = titles.map(markdown).collect();
    let rules = numbers.take(titles.len()).map(|is_number| if is_number { "--:" } else { ":--" }.to_owned());
    let rules = rules.collect();
    [titles, rules].into_iter().chain(rows).map(line).collect()
}

fn cell(cell: &PageCell) -> String {
    let text = if cell.text.is_empty() { "–" } else { &cell.text };
    match cell.detail.as_str() {
        "" => markdown(text),
        detail => format!("{}<br><sub>{}</sub>", markdown(text), markdown(detail)),
    }
}

fn folded(summary: &str, text: Option<String>) -> String {
    text.map_or_else(String::new, |text| {
        format!("\n<details><summary>{summary}</summary>\n\n{text}\n</details>\n")
    })
}
