//! Prints a comparison: the runs as columns, the differences of their configurations, and the verdicts.

use super::super::Failure;
use super::super::output::{self, printable};
use super::super::parse::SharedRemark;
use trainplan_shared::compare::{
    BriefLabels, Comparison, ConfigurationRow, LabelledVerdict, RunComparison, RunFigures,
};
use trainplan_shared::problem::all_of;
use trainplan_shared::tables::{ComparedRun, ComparisonColumn, PooledColumn};

/// The longest value of the table, in characters.
const WIDEST: usize = 44;

pub(super) fn table(comparison: &Comparison) -> Result<(), Failure> {
    let items = &comparison.items;
    let header = |first: &str| -> Vec<String> {
        let labels = items.iter().map(|item| printable(&item.label));
        std::iter::once(first.to_owned()).chain(labels).collect()
    };
    let figures = ComparisonColumn::terminal(&ComparedRun::all(comparison, None));
    let known = figures.titles.iter().enumerate().filter_map(|(place, title)| {
        let values: Vec<Option<String>> = figures.rows.iter().map(|row| row[place].clone()).collect();
        values.iter().any(Option::is_some).then(|| row(title, &values))
    });
    output::wide_table(&header("run"), &[], known)?;

    let differing = comparison.configuration.iter().filter(|setting| setting.differs);
    let differing: Vec<ConfigurationRow> = differing.map(ConfigurationRow::readable).collect();
    if !differing.is_empty() {
        output::text_line("")?;
        let rows = differing.iter().map(|setting| {
            row(&format!("{}: {}", setting.group.title().to_lowercase(), setting.label), &setting.values)
        });
        output::wide_table(&header("differences"), &[], rows)?;
    }
    if !comparison.pooled.is_empty() {
        output::text_line("")?;
        output::text_table(PooledColumn::terminal_table(&comparison.pooled).without_empty_columns())?;
    }
    // The headings of the table are the full labels.
    let labels = comparison.brief_labels();
    verdicts(comparison, &labels)?;
    for (who, remark) in remarks_on_runs(items) {
        output::prose(&printable(&labels.shorten(&format!("  {who}: {remark}"))))?;
    }
    // Without two scored runs there is no interval to explain.
    if comparison.difference.each.iter().any(|pair| pair.step_time.is_some()) {
        output::prose(&format!("  {}", comparison.difference.method))?;
    }
    Ok(())
}

/// Returns what to know about the runs, each remark once, after the runs that it is about.
fn remarks_on_runs(items: &[RunFigures]) -> Vec<(String, String)> {
    let all: Vec<_> = items.iter().map(|item| (item.label.clone(), item.remarks())).collect();
    let who = |labels: &[&str]| match labels.len() {
        2 if items.len() == 2 => "Both runs".to_owned(),
        count if count > 2 && count == items.len() => format!("All {count} runs"),
        _ => all_of(labels),
    };
    let merged = SharedRemark::merged(&all);
    merged.iter().map(|remark| (who(&remark.names), remark.text.to_owned())).collect()
}

/// Prints the verdicts, with what to know about each run.
fn verdicts(comparison: &Comparison, labels: &BriefLabels) -> Result<(), Failure> {
    let verdicts = comparison.verdicts();
    if !verdicts.is_empty() {
        let reference = labels.shorten(comparison.reference_label());
        output::text_line(&format!("\nCompared with {}:", printable(&reference)))?;
    }
    for LabelledVerdict { label, text, run, .. } in verdicts {
        output::prose(&printable(&labels.shorten(&format!("  {label}: {text}"))))?;
        for remark in run.map(remarks).unwrap_or_default() {
            output::prose(&printable(&format!("    {remark}")))?;
        }
        let unknown = run.map(RunComparison::unknown_fields).unwrap_or_default();
        let flags: Vec<String> = unknown.iter().map(|field| format!("--{}", field.flag())).collect();
        if !flags.is_empty() {
            output::prose(&format!("    To compare them, set {}.", flags.join(", ")))?;
        }
    }
    Ok(())
}

/// Returns a row: a title and a value for each run, cut to [`WIDEST`].
fn row(name: &str, values: &[Option<String>]) -> Vec<String> {
    let value = |value: &Option<String>| {
        let text = printable(value.as_deref().unwrap_or("–"));
        match text.char_indices().nth(WIDEST) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    };
    std::iter::once(name.to_owned()).chain(values.iter().map(value)).collect()
}

fn remarks(against: &RunComparison) -> Vec<String> {
    let mut remarks = Vec::new();
    if let (Some(percent), false) = (against.tokens_per_s_per_gpu_percent, against.unlike.is_empty()) {
        remarks.push(format!("Tokens per second per GPU: {percent:+.2} %."));
    }
    if let Some(size) = against.effect_size {
        remarks.push(format!("The means differ by {:.1} standard deviations of a step.", size.abs()));
    }
    remarks.extend(against.notes.iter().cloned());
    remarks
}
