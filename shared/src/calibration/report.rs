//! The accuracy report: tables of held-out errors, a list of every row, and a scatter plot.

use super::{ErrorSummary, FittedInterval, Grouping, HeldOutRow, fitting, is_routed};
use crate::estimate::IntervalClass;
use crate::measurements::Measurement;
use crate::units::significant;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A line of the report's first table: its title, the grouping by which rows are held out, and the rows that
/// count.
type ReportLine = (&'static str, Grouping, fn(&Measurement) -> bool);

const LINES: &[ReportLine] = &[
    (DENSE, Grouping::Model, is_nvidia_dense),
    (DENSE, Grouping::ModelGpu, is_nvidia_dense),
    (DENSE, Grouping::Mapping, is_nvidia_dense),
    (ROUTED, Grouping::Model, is_nvidia_routed),
    (ROUTED, Grouping::Mapping, is_nvidia_routed),
    (VTRAIN_SINGLE, Grouping::Model, |row| row.source == "vtrain-single"),
    (VTRAIN_SINGLE, Grouping::Mapping, |row| row.source == "vtrain-single"),
    (VTRAIN_MULTI, Grouping::Model, |row| row.source == "vtrain-multi"),
    (VTRAIN_MULTI, Grouping::Mapping, |row| row.source == "vtrain-multi"),
    (CALCULON, Grouping::Model, |row| row.source == "megatron-seqsel"),
    (CALCULON, Grouping::Mapping, |row| row.source == "megatron-seqsel"),
    (SIMUMAX, Grouping::Model, |row| row.source == "simumax-b200"),
    (SIMUMAX, Grouping::Mapping, |row| row.source == "simumax-b200"),
];

const DENSE: &str = "dense, NVIDIA Megatron family";
const ROUTED: &str = "MoE, NVIDIA";
const VTRAIN_SINGLE: &str = "vTrain, single node";
const VTRAIN_MULTI: &str = "vTrain, multi-node";
const CALCULON: &str = "Calculon's points (megatron-seqsel)";
const SIMUMAX: &str = "SimuMax B200";

/// Whether a row ran on one of NVIDIA's Megatron stacks.
fn is_nvidia(row: &Measurement) -> bool {
    row.scenario.as_ref().is_ok_and(|scenario| scenario.options.stack.is_nvidia_megatron())
}

fn is_nvidia_dense(row: &Measurement) -> bool {
    is_nvidia(row) && !is_routed(row)
}

fn is_nvidia_routed(row: &Measurement) -> bool {
    is_nvidia(row) && is_routed(row)
}

fn percent(value: f64) -> String {
    format!("{:.2} %", value * 100.0)
}

/// Returns the report.
pub(super) fn markdown(
    judged: &[Vec<HeldOutRow<'_>>; 3],
    intervals: &[FittedInterval],
    rows: &[Measurement],
) -> String {
    let mut text = String::from(HEAD);
    for (title, by, counts) in LINES {
        let of = |value: fn(&HeldOutRow<'_>) -> f64| {
            let rows = judged[*by as usize].iter().filter(|one| counts(one.row));
            ErrorSummary::of(rows.map(|one| value(one) / one.step_time_s - 1.0))
        };
        if let (Some(modelled), Some(corrected)) = (of(|one| one.modelled_s), of(|one| one.corrected_s)) {
            let _ = writeln!(
                text,
                "| {title} | {} | {} | {} | {} | {} | {} | {} |",
                by.title(),
                modelled.n,
                percent(modelled.mape),
                percent(corrected.mape),
                percent(corrected.median),
                percent(corrected.p90),
                percent(corrected.bias),
            );
        }
    }
    text += SOURCES;
    let mut sources: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in &judged[Grouping::Mapping as usize] {
        sources.entry(&one.row.source).or_default().push(one.corrected_s / one.step_time_s - 1.0);
    }
    for (source, errors) in sources {
        if let Some(summary) = ErrorSummary::of(errors) {
            let ErrorSummary { n, mape, median, p90, bias } = summary;
            let [mape, median, p90, bias] = [mape, median, p90, bias].map(percent);
            let _ = writeln!(text, "| {source} | {n} | {mape} | {median} | {p90} | {bias} |");
        }
    }
    text += INTERVALS;
    for class in IntervalClass::ALL {
        if let Some(interval) = intervals.iter().find(|interval| interval.class == class) {
            let (low, high) = (percent(interval.low - 1.0), percent(interval.high - 1.0));
            let _ = writeln!(
                text,
                "| {} | {} | {low} … +{high} | {} |",
                class.title(),
                interval.n,
                percent(interval.coverage)
            );
        }
    }
    let inside: f64 = intervals.iter().map(|interval| interval.coverage * interval.n as f64).sum();
    let all: usize = intervals.iter().map(|interval| interval.n).sum();
    let _ = writeln!(text, "| all | {all} | | {} |", percent(inside / all.max(1) as f64));
    memory(&mut text, rows);
    text += ROWS;
    let by_model: BTreeMap<&str, &HeldOutRow<'_>> =
        judged[Grouping::Model as usize].iter().map(|one| (&*one.row.id, one)).collect();
    let mut listed: Vec<&HeldOutRow<'_>> = judged[Grouping::Mapping as usize].iter().collect();
    listed.sort_by(|a, b| a.row.id.cmp(&b.row.id));
    for one in listed {
        let row = one.row;
        let gpus = row.scenario.as_ref().map_or(0, |scenario| scenario.layout.gpus());
        let seconds = |value: f64| significant(value, 4);
        let error = |value: f64| format!("{:+.1} %", (value / one.step_time_s - 1.0) * 100.0);
        let without_model = by_model.get(&*row.id).map_or(f64::NAN, |other| other.modelled_s);
        let _ = writeln!(
            text,
            "| {} | {} {} | {} | {} | {} | {gpus} | {} | {} | {} | {} | {} | {} |",
            row.id,
            row.source,
            row.release,
            row.model,
            row.gpu,
            row.precision,
            seconds(one.step_time_s),
            seconds(one.modelled_s),
            seconds(one.corrected_s),
            error(one.corrected_s),
            seconds(without_model),
            error(without_model),
        );
    }
    text
}

const HEAD: &str = "\
# How accurate the estimate is

`trainplan calibrate` writes this report. A test repeats the calibration and fails if any figure differs.

Every figure is for rows that neither the constants nor the corrections had seen. *Modelled* is the physical model alone.
*Corrected* is the estimate of `trainplan estimate`: the physical model, corrected by measured runs of the same model,
never by a run of the same mapping in any release. A mapping is everything but the software release.

Rows are held out in three ways: by model (with all its GPUs, precisions and sources), by model and GPU, or by mapping
(twelve folds, listed in `shared/data/split.csv`). If a model is held out, no run can correct it, so both columns agree.
vTrain's models are an exception: many differ only in their number of layers, and such models correct each other.

Two inputs were not held out. The covariance between runs (the seven numbers of `shared/data/kinship.csv`) was chosen by
hand with a view to held-out mappings. SimuMax's machine is predicted with the matrix multiplication rate that its owner
published (`shared/data/machines.csv`), as with `--gemm-tflops`.

No model can be more accurate than repeated measurements: the same mapping, measured again in another release, differs by
2.5 % (dense) and 5.1 % (MoE; nine of ten within 23 %) on average.

![Predicted versus measured step times](accuracy.svg)

## Errors of the step time on held-out rows

| rows | held out by | n | mean abs. error, modelled | corrected | median | p90 | bias |
|---|---|--:|--:|--:|--:|--:|--:|
";

const SOURCES: &str = "
## By source

Corrected, held out by mapping.

| source | n | mean abs. error | median | p90 | bias |
|---|--:|--:|--:|--:|--:|
";

const MEMORY: &str = "
## Memory

Memory is counted, not fitted. `max_allocated` counts tensors only; the other kinds include reserved memory.

| source | kind | n | mean abs. error | largest |
|---|---|--:|--:|--:|
";

const ROWS: &str = "
## Every row

Seconds per step, held out by mapping and by model.

| row | source | model | GPU | precision | GPUs | measured | by mapping: modelled | corrected | error | by model: \
modelled | error |
|---|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|
";

const INTERVALS: &str = "
## Intervals

The interval of an estimate contains 80 % of measured over predicted step times for held-out rows of its class.
Interpolated: the model was measured on the same GPU (held out by mapping). Extrapolated: it was not (held out by model).
Coverage is the share of rows inside the interval that the rows of all other folds give; the tails are narrowed until it
reaches 80 %. vTrain's 990 tiny models are left out here.

| class | rows | interval | coverage |
|---|--:|--:|--:|
";

/// Appends the errors of memory. Memory is not fitted, so every row counts as held out.
fn memory(text: &mut String, rows: &[Measurement]) {
    *text += MEMORY;
    let mut kinds: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for row in rows {
        if let (Some(measured), Some(predicted)) = (row.memory_bytes, row.predicted_memory_bytes()) {
            let error = predicted / measured - 1.0;
            kinds.entry((&row.source, &row.memory_kind)).or_default().push(error);
        }
    }
    for ((source, kind), errors) in kinds {
        let largest = errors.iter().fold(0.0_f64, |largest, error| largest.max(error.abs()));
        if let Some(summary) = ErrorSummary::of(errors) {
            let (n, mape) = (summary.n, percent(summary.mape));
            let _ = writeln!(text, "| {source} | {kind} | {n} | {mape} | {} |", percent(largest));
        }
    }
    let (fit, not) = fitting(rows);
    let _ = writeln!(
        text,
        "\nOf {} timed rows, which therefore ran, {fit} fit by the estimate and {not} do not (their recomputation or \
         offloading is not known).\n\nFalse \"fits\" can't be counted: no measured pre-training run is known to have run out of \
         memory. One fine-tuning run (r2559) ran out of memory, and passed after its fragmentation was fixed.",
        fit + not
    );
}

/// Returns a scatter plot of predicted over measured step times on logarithmic axes, as SVG.
pub(super) fn scatter(judged: &[Vec<HeldOutRow<'_>>; 3]) -> String {
    const SIZE: f64 = 640.0;
    const EDGE: f64 = 56.0;
    let (low, high) = (libm::log10(0.03), libm::log10(300.0));
    let place = |value: f64| (libm::log10(value).clamp(low, high) - low) / (high - low) * (SIZE - 2.0 * EDGE);
    let x = |value: f64| EDGE + place(value);
    let y = |value: f64| SIZE - EDGE - place(value);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {SIZE}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>Predicted versus measured step times, held out by mapping</title>\n\
         <rect width=\"{SIZE}\" height=\"{SIZE}\" fill=\"#fff\"/>\n"
    );
    for tick in [0.1, 1.0, 10.0, 100.0] {
        let (across, up, end, start) = (x(tick), y(tick), SIZE - EDGE, EDGE);
        let _ = writeln!(
            text,
            "<path d=\"M{across:.1} {start}V{end}M{start} {up:.1}H{end}\" stroke=\"#ddd\" fill=\"none\"/>\n\
             <text x=\"{across:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick} s</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick} s</text>",
            end + 18.0,
            start - 6.0,
            up + 4.0,
        );
    }
    type Belongs = fn(&HeldOutRow<'_>) -> bool;
    let kinds: [(&str, &str, Belongs); 3] = [
        ("#9aa5b1", "other sources", |one| !is_nvidia(one.row)),
        ("#1f77b4", "NVIDIA, dense", |one| is_nvidia(one.row) && !is_routed(one.row)),
        ("#d62728", "NVIDIA, MoE", |one| is_nvidia(one.row) && is_routed(one.row)),
    ];
    for (place, (colour, name, belongs)) in kinds.iter().enumerate() {
        let _ = writeln!(text, "<g fill=\"{colour}\" fill-opacity=\"0.65\">");
        for one in judged[Grouping::Mapping as usize].iter().filter(|one| belongs(one)) {
            let _ = writeln!(
                text,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
                x(one.step_time_s),
                y(one.corrected_s)
            );
        }
        let top = EDGE + 20.0 * place as f64 + 8.0;
        let _ = writeln!(
            text,
            "<circle cx=\"{:.1}\" cy=\"{top:.1}\" r=\"5\"/></g>\n<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            EDGE + 14.0,
            EDGE + 26.0,
            top + 4.0
        );
    }
    let (near, far) = (0.03, 300.0);
    let _ = writeln!(
        text,
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#333\" stroke-dasharray=\"4 4\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">measured</text>\n\
         <text x=\"14\" y=\"{:.1}\" transform=\"rotate(-90 14 {:.1})\" text-anchor=\"middle\">predicted</text>\n</svg>",
        x(near),
        y(near),
        x(far),
        y(far),
        SIZE / 2.0,
        SIZE - 8.0,
        SIZE / 2.0,
        SIZE / 2.0,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_in_the_repository_has_this_prose() {
        let report = include_str!("../../../docs/accuracy.md");
        assert!(report.starts_with(HEAD));
        for section in [SOURCES, INTERVALS, ROWS] {
            assert!(report.contains(section), "{section}");
        }
        let mut section = String::new();
        memory(&mut section, crate::measurements::embedded());
        assert!(report.contains(&section), "{section}");
    }
}
