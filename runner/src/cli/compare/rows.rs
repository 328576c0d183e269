//! A comparison for people: runs as columns, then what differs, then the verdict.

use super::super::Failure;
use super::super::output::{self, printable};
use trainplan_shared::compare::{Against, Comparison, Item};
use trainplan_shared::estimate::Interval;
use trainplan_shared::log::Stat;
use trainplan_shared::statistics::Sample;
use trainplan_shared::units::{group_digits, significant};

/// Values longer than this are cut in the table.
const WIDEST: usize = 44;

pub(super) fn table(comparison: &Comparison) -> Result<(), Failure> {
    let items = &comparison.items;
    let header = |first: &str| -> Vec<String> {
        let labels = items.iter().map(|item| printable(&item.label));
        std::iter::once(first.to_owned()).chain(labels).collect()
    };
    let known = FIGURES.iter().filter_map(|(name, figure)| {
        let values: Vec<Option<String>> = items.iter().map(figure).collect();
        values.iter().any(Option::is_some).then(|| row(name, &values))
    });
    output::wide_table(&header("run"), &[], known)?;

    let differing: Vec<_> = comparison.configuration.iter().filter(|setting| setting.differs).collect();
    if !differing.is_empty() {
        output::text_line("")?;
        let rows = differing.iter().map(|setting| {
            row(&format!("{}: {}", setting.group.title().to_lowercase(), setting.label), &setting.values)
        });
        output::wide_table(&header("what differs"), &[], rows)?;
    }
    if let Some(reference) = items.first().filter(|_| items.len() > 1) {
        output::text_line(&format!("\nAgainst {}:", printable(&reference.label)))?;
    }
    for against in &comparison.difference.each {
        let label = items.get(against.item).map_or("", |item| &item.label);
        output::text_line(&printable(&format!("  {label}: {}", against.text)))?;
        for remark in remarks(against) {
            output::text_line(&printable(&format!("    {remark}")))?;
        }
    }
    for item in items {
        let reasons = item.reason.iter().chain(&item.comparable.reasons).chain(&item.notes);
        for remark in reasons {
            output::text_line(&printable(&format!("  {}: {remark}", item.label)))?;
        }
    }
    match items.len() {
        0 | 1 => Ok(()),
        _ => output::text_line(&format!("  By {}.", comparison.difference.method)),
    }
}

/// A name and a value for each run, none of them too wide.
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

fn remarks(against: &Against) -> Vec<String> {
    let mut remarks = Vec::new();
    if let (Some(percent), false) = (against.tokens_per_s_per_gpu_percent, against.unlike.is_empty()) {
        remarks.push(format!("tokens per second and GPU: {percent:+.2} %"));
    }
    if let Some(size) = against.effect_size {
        remarks.push(format!("the means lie {:.1} standard deviations of a step apart", size.abs()));
    }
    remarks.extend(against.notes.iter().cloned());
    remarks
}

type Figure = fn(&Item) -> Option<String>;

/// The rows of the table.
const FIGURES: [(&str, Figure); 22] = [
    ("log", |item| Some(end_of(&item.path))),
    ("recipe", |item| item.recipe.clone()),
    ("cluster", |item| item.cluster.clone()),
    ("status", |item| Some(item.status.id().to_owned())),
    ("window", |item| item.window.clone()),
    ("step s", |item| item.step_time_s.map(step_time)),
    ("steady steps", |item| item.steady.map(|steady| format!("{}-{}", steady.first, steady.last))),
    ("  mean s", |item| sample(item).map(interval)),
    ("  median s", |item| sample(item).map(|sample| significant(sample.median, 5))),
    ("  5 % to 95 % s", |item| {
        sample(item).map(|sample| format!("{} to {}", significant(sample.p5, 5), significant(sample.p95, 5)))
    }),
    ("  least to most s", |item| {
        sample(item).map(|sample| format!("{} to {}", significant(sample.min, 5), significant(sample.max, 5)))
    }),
    ("tokens/s", |item| item.tokens_per_s.map(group_digits)),
    ("tokens/s/GPU", |item| item.tokens_per_s_per_gpu.map(group_digits)),
    ("MFU %", |item| item.mfu.map(|mfu| format!("{:.2}", mfu * 100.0))),
    ("  counted by", |item| {
        item.convention.zip(item.peak_tflops).map(|(convention, peak)| format!("{convention}, peak {peak}"))
    }),
    ("TFLOPS/GPU", |item| item.model_tflops_per_gpu.map(|tflops| significant(tflops, 4))),
    ("plan s", |item| {
        item.plan.map(|plan| {
            let Interval { low, mid, high } = plan.step_time_s;
            format!("{} ({} to {})", significant(mid, 4), significant(low, 4), significant(high, 4))
        })
    }),
    ("  against it %", |item| {
        item.plan.and_then(|plan| plan.error).map(|error| format!("{:+.1}", error * 100.0))
    }),
    ("published s", |item| item.baseline.map(|baseline| significant(baseline.step_time_s, 5))),
    ("  speed of it %", |item| {
        item.baseline.and_then(|baseline| baseline.speed_percent).map(|percent| format!("{percent:.1}"))
    }),
    ("loss", |item| {
        let ends = item.loss.first.zip(item.loss.last);
        ends.map(|(first, last)| format!("{} to {}", significant(first, 5), significant(last, 5)))
    }),
    ("peak memory GB", |item| item.memory.peak_bytes.map(|bytes| format!("{:.1}", bytes / 1e9))),
];

/// The end of a path, where what tells it from others stands.
fn end_of(path: &str) -> String {
    let start = path.char_indices().rev().nth(WIDEST - 2).map_or(0, |(start, _)| start);
    match path.get(start..) {
        Some(end) if start > 0 => format!("…{end}"),
        _ => path.to_owned(),
    }
}

fn sample(item: &Item) -> Option<Sample> {
    item.steady.map(|steady| steady.step_time_s)
}

fn step_time(stat: Stat) -> String {
    match stat.std.filter(|_| stat.n > 1) {
        Some(std) => {
            format!("{} ± {} ({})", significant(stat.mean, 5), significant(std, 2), stat.std_kind.id())
        }
        None => significant(stat.mean, 5),
    }
}

fn interval(sample: Sample) -> String {
    let mean = significant(sample.mean, 5);
    match (sample.low, sample.high) {
        (Some(low), Some(high)) => format!("{mean} ({} to {})", significant(low, 5), significant(high, 5)),
        _ => mean,
    }
}
