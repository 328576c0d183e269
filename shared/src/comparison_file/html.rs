//! One HTML file with everything in it: it opens without a network, and runs no script.

use super::ComparisonDocument;
use super::chart::CurveChart;
use crate::compare::{ConfigurationRow, Curve};
use crate::document::{cell, or_dash, page, sentences, table};
use crate::text::{capital, html as escaped};
use crate::units::significant;
use std::collections::BTreeMap;

/// The most rows of a chart's table.
const ROWS: usize = 1000;

impl ComparisonDocument<'_> {
    /// Returns the document as an HTML file.
    #[must_use]
    pub fn to_html(&self) -> String {
        let labels: Vec<&str> = self.comparison.items.iter().map(|item| item.label.as_str()).collect();
        let curves = &self.comparison.curves;
        let charts = [
            CurveChart {
                title: "Step time, s",
                curves: &curves.step_time_s,
                levels: &curves.levels,
                labels: &labels,
            },
            CurveChart { title: "Loss", curves: &curves.loss, levels: &[], labels: &labels },
        ];
        let charts = charts.map(|chart| chart.to_html() + &data(&chart));
        let method = match labels.len() {
            0 | 1 => String::new(),
            _ => format!("<p class=\"soft\">{}</p>\n", escaped(&self.comparison.difference.method)),
        };
        let content = [
            sentences(self.verdicts.iter().map(|one| (one.label, one.text))),
            method,
            self.runs_in_html(),
            self.repeats(),
            charts.concat(),
            self.settings(),
            folded("Notes", sentences(self.remarks.iter().map(|of| (of.label.as_str(), of.text.as_str())))),
        ];
        page(&self.title, "", &content.concat())
    }

    fn runs_in_html(&self) -> String {
        let head = self.headings.iter().map(|heading| (escaped(heading.title), heading.is_number));
        let rows = self.comparison.items.iter().zip(&self.rows).map(|(item, row)| {
            let cells = row.iter().map(|of_run| cell(&of_run.text, &of_run.detail));
            std::iter::once(escaped(&item.label)).chain(cells).collect()
        });
        table("Runs", std::iter::once(("Run".to_owned(), false)).chain(head), rows)
    }

    fn repeats(&self) -> String {
        let Some(pooled) = &self.pooled else { return String::new() };
        let head =
            pooled.titles.iter().zip(&pooled.numbers).map(|(title, is_number)| (capital(title), *is_number));
        let rows = pooled.rows.iter().map(|row| {
            row.iter().map(|cell| escaped(or_dash(cell.as_deref().unwrap_or_default()))).collect()
        });
        table("Repeats", head, rows)
    }

    /// Returns the settings: those that differ, and, folded, those that agree.
    fn settings(&self) -> String {
        let settings = self.comparison.configuration.iter().map(ConfigurationRow::readable);
        let (differing, equal): (Vec<ConfigurationRow>, Vec<ConfigurationRow>) =
            settings.partition(|setting| setting.differs);
        let of = |caption: &str, settings: &[ConfigurationRow]| {
            let labels = self.comparison.items.iter().map(|item| (escaped(&item.label), false));
            let rows = settings.iter().map(|setting| {
                let name = format!("{}: {}", setting.group.title(), setting.label);
                let values =
                    setting.values.iter().map(|value| escaped(or_dash(value.as_deref().unwrap_or_default())));
                std::iter::once(escaped(&name)).chain(values).collect()
            });
            if settings.is_empty() {
                return String::new();
            }
            table(caption, std::iter::once(("Setting".to_owned(), false)).chain(labels), rows)
        };
        let all = of("Settings that differ", &differing);
        all + &folded("Settings that agree", of("Settings that agree", &equal))
    }
}

/// Returns the numbers of a chart, folded: a row for each step, or for every n-th step of a long run.
fn data(chart: &CurveChart<'_>) -> String {
    let mut steps: BTreeMap<u64, Vec<Option<f64>>> = BTreeMap::new();
    for (place, Curve { steps: of_curve, values, .. }) in chart.curves.iter().enumerate() {
        for (step, value) in of_curve.iter().zip(values) {
            let row = steps.entry(*step).or_insert_with(|| vec![None; chart.curves.len()]);
            row[place] = Some(*value);
        }
    }
    let every = steps.len().div_ceil(ROWS).max(1);
    let caption = match every {
        1 => format!("{} by step", chart.title),
        _ => format!("{} by step, one row in {every}", chart.title),
    };
    let label = |curve: &Curve| escaped(chart.labels.get(curve.item).copied().unwrap_or_default());
    let head = chart.curves.iter().map(|curve| (label(curve), true));
    let rows = steps.into_iter().step_by(every).map(|(step, values)| {
        let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| significant(value, 6));
        std::iter::once(step.to_string()).chain(values.into_iter().map(cell)).collect()
    });
    match chart.curves {
        [] => String::new(),
        _ => {
            folded("Show data", table(&caption, std::iter::once(("Step".to_owned(), true)).chain(head), rows))
        }
    }
}

fn folded(summary: &str, content: String) -> String {
    if content.is_empty() {
        return content;
    }
    format!("<details><summary>{summary}</summary>\n{content}</details>\n")
}
