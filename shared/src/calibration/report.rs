//! The accuracy report: held-out errors in tables, every row listed, and a picture.

use super::{By, ClassSpread, HeldOut, Summary, fitting, is_routed};
use crate::estimate::{Class, Memory};
use crate::measurements::Measurement;
use crate::units::significant;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A measure of the report: its name, how its rows are held out, which rows count, and whether the correction does.
struct Measure {
    title: &'static str,
    by: By,
    counts: fn(&Measurement) -> bool,
}

/// NVIDIA's own stacks on its own systems.
fn is_nvidia(row: &Measurement) -> bool {
    row.subject.as_ref().is_ok_and(|subject| subject.options.stack.is_nvidia_megatron())
}

const MEASURES: &[Measure] = &[
    Measure {
        title: "dense, NVIDIA Megatron family",
        by: By::Model,
        counts: |row| is_nvidia(row) && !is_routed(row),
    },
    Measure {
        title: "dense, NVIDIA Megatron family",
        by: By::ModelGpu,
        counts: |row| is_nvidia(row) && !is_routed(row),
    },
    Measure {
        title: "dense, NVIDIA Megatron family",
        by: By::Mapping,
        counts: |row| is_nvidia(row) && !is_routed(row),
    },
    Measure { title: "MoE, NVIDIA", by: By::Model, counts: |row| is_nvidia(row) && is_routed(row) },
    Measure { title: "MoE, NVIDIA", by: By::Mapping, counts: |row| is_nvidia(row) && is_routed(row) },
    Measure { title: "vTrain, single node", by: By::Model, counts: |row| row.source == "vtrain-single" },
    Measure { title: "vTrain, single node", by: By::Mapping, counts: |row| row.source == "vtrain-single" },
    Measure { title: "vTrain, multi-node", by: By::Model, counts: |row| row.source == "vtrain-multi" },
    Measure { title: "vTrain, multi-node", by: By::Mapping, counts: |row| row.source == "vtrain-multi" },
    Measure {
        title: "Calculon's points (megatron-seqsel)",
        by: By::Model,
        counts: |row| row.source == "megatron-seqsel",
    },
    Measure {
        title: "Calculon's points (megatron-seqsel)",
        by: By::Mapping,
        counts: |row| row.source == "megatron-seqsel",
    },
    Measure { title: "SimuMax B200", by: By::Model, counts: |row| row.source == "simumax-b200" },
    Measure { title: "SimuMax B200", by: By::Mapping, counts: |row| row.source == "simumax-b200" },
];

fn index(by: By) -> usize {
    By::ALL.iter().position(|one| *one == by).unwrap_or(0)
}

fn percent(value: f64) -> String {
    format!("{:.2} %", value * 100.0)
}

/// The report.
pub(super) fn markdown(
    judged: &[Vec<HeldOut<'_>>; 3],
    spreads: &[ClassSpread],
    rows: &[Measurement],
) -> String {
    let mut text = String::from(HEAD);
    text += "| measure | held out by | n | mean abs. error, modelled | and corrected | median | p90 | bias |\n|---|---|--:|--:|--:|--:|--:|--:|\n";
    for Measure { title, by, counts } in MEASURES {
        let of = |value: fn(&HeldOut<'_>) -> f64| {
            let rows = judged[index(*by)].iter().filter(|one| counts(one.row));
            Summary::of(rows.map(|one| value(one) / one.step_time_s - 1.0))
        };
        if let (Some(modelled), Some(anchored)) = (of(|one| one.modelled_s), of(|one| one.anchored_s)) {
            let _ = writeln!(
                text,
                "| {title} | {} | {} | {} | {} | {} | {} | {} |",
                by.title(),
                modelled.n,
                percent(modelled.mape),
                percent(anchored.mape),
                percent(anchored.median),
                percent(anchored.p90),
                percent(anchored.bias),
            );
        }
    }
    text += "\n## By source\n\nHeld out by mapping; corrected.\n\n| source | n | mean abs. error | median | p90 | bias |\n|---|--:|--:|--:|--:|--:|\n";
    let mut sources: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in &judged[index(By::Mapping)] {
        sources.entry(&one.row.source).or_default().push(one.anchored_s / one.step_time_s - 1.0);
    }
    for (source, errors) in sources {
        if let Some(summary) = Summary::of(errors) {
            let Summary { n, mape, median, p90, bias } = summary;
            let [mape, median, p90, bias] = [mape, median, p90, bias].map(percent);
            let _ = writeln!(text, "| {source} | {n} | {mape} | {median} | {p90} | {bias} |");
        }
    }
    text += INTERVALS;
    for class in Class::ALL {
        if let Some(spread) = spreads.iter().find(|spread| spread.class == class) {
            let (low, high) = (percent(spread.low - 1.0), percent(spread.high - 1.0));
            let _ = writeln!(
                text,
                "| {} | {} | {low} … +{high} | {} |",
                class.id(),
                spread.n,
                percent(spread.coverage)
            );
        }
    }
    let inside: f64 = spreads.iter().map(|spread| spread.coverage * spread.n as f64).sum();
    let all: usize = spreads.iter().map(|spread| spread.n).sum();
    let _ = writeln!(text, "| all | {all} | | {} |", percent(inside / all.max(1) as f64));
    memory(&mut text, rows);
    text += "\n## Every row\n\nSeconds per step, held out by mapping and by model.\n\n| row | source | model | GPU | precision | GPUs | measured | by mapping: modelled | corrected | error | by model: modelled | error |\n|---|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n";
    let by_model: BTreeMap<&str, &HeldOut<'_>> =
        judged[index(By::Model)].iter().map(|one| (&*one.row.id, one)).collect();
    let mut listed: Vec<&HeldOut<'_>> = judged[index(By::Mapping)].iter().collect();
    listed.sort_by(|a, b| a.row.id.cmp(&b.row.id));
    for one in listed {
        let row = one.row;
        let gpus = row.subject.as_ref().map_or(0, |subject| subject.layout.gpus());
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
            seconds(one.anchored_s),
            error(one.anchored_s),
            seconds(without_model),
            error(without_model),
        );
    }
    text
}

const HEAD: &str = "\
# How accurate the estimate is

Written by `trainplan calibrate`; the tests make these figures again from the frozen split and fail if they differ.

Every figure below is of rows that neither the constants nor the corrections had seen. *Modelled* is the physical model
alone, *corrected* is what `trainplan estimate` says: the model, moved by measured runs of the same shape where there are
any, never by a run of the same mapping in any release. Rows are held out by model (with all their GPUs, precisions and
sources), by model and GPU, or by mapping (twelve folds; `shared/data/split.csv` says which row is in which). Where a model
is held out nothing can correct it, so that both columns agree; vTrain's shapes differ in layers and width, and shapes of
another depth correct one another.

Two things were not held out: how much runs have in common (the seven numbers of `shared/data/kinship.csv`) was chosen by
hand while looking at held-out mappings, and SimuMax's box is predicted with the matrix multiplication rate that its owner
published of it (`shared/data/machines.csv`), as a user would by `--gemm-tflops`.

What no model can beat: the same mapping, measured again in another release, differs by 2.5 % (dense) and 5.1 % (MoE, nine
of ten within 23 %) on average.

![Predicted against measured](accuracy.svg)

## Held-out errors of the step time

";

const INTERVALS: &str = "
## Intervals

The interval of an estimate holds four of five measured over predicted step times of held-out rows of its class:
interpolated where the shape was measured on such GPUs (held out by mapping), extrapolated where it was not (held out by
model). Coverage counts each row against the interval that the rows of all other folds give; its tails are cut until that
is four of five. vTrain's 990 tiny models are left out here.

| class | rows | interval | coverage |
|---|--:|--:|--:|
";

/// Memory is not fitted: all its rows are held out.
fn memory(text: &mut String, rows: &[Measurement]) {
    *text += "\n## Memory\n\nClosed form, nothing fitted. `max_allocated` counts tensors; other kinds also hold what is reserved besides.\n\n| source | kind | n | mean abs. error | largest |\n|---|---|--:|--:|--:|\n";
    let mut kinds: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for row in rows {
        if let (Some(measured), Ok(subject)) = (row.memory_bytes, &row.subject) {
            let memory = Memory::of(&subject.inputs());
            let reserved =
                if row.memory_kind.contains("max_allocated") { 0.0 } else { memory.reserved_bytes };
            let error = (memory.total_bytes() + reserved) / measured - 1.0;
            kinds.entry((&row.source, &row.memory_kind)).or_default().push(error);
        }
    }
    for ((source, kind), errors) in kinds {
        let largest = errors.iter().fold(0.0_f64, |largest, error| largest.max(error.abs()));
        if let Some(summary) = Summary::of(errors) {
            let (n, mape) = (summary.n, percent(summary.mape));
            let _ = writeln!(text, "| {source} | {kind} | {n} | {mape} | {} |", percent(largest));
        }
    }
    let (fit, not) = fitting(rows);
    let _ = writeln!(
        text,
        "\nOf {} rows that were timed, and so ran, the estimate says of {fit} that they fit and of {not} that they do not \
         (their recomputation or offloading is not known).\n\nFalse \"fits\" can't be counted: the measurements hold no \
         pre-training run that is known to have run out of memory. The one that did, a fine-tuning run (r2559), passed once \
         fragmentation was mended.",
        fit + not
    );
}

/// Predicted against measured, on logarithmic axes.
pub(super) fn scatter(judged: &[Vec<HeldOut<'_>>; 3]) -> String {
    const SIZE: f64 = 640.0;
    const EDGE: f64 = 56.0;
    let (low, high) = (libm::log10(0.03), libm::log10(300.0));
    let place = |value: f64| (libm::log10(value).clamp(low, high) - low) / (high - low) * (SIZE - 2.0 * EDGE);
    let x = |value: f64| EDGE + place(value);
    let y = |value: f64| SIZE - EDGE - place(value);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {SIZE}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>Predicted against measured step times, held out by mapping</title>\n\
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
    type Belongs = fn(&HeldOut<'_>) -> bool;
    let kinds: [(&str, &str, Belongs); 3] = [
        ("#9aa5b1", "other sources", |one| !is_nvidia(one.row)),
        ("#1f77b4", "NVIDIA, dense", |one| is_nvidia(one.row) && !is_routed(one.row)),
        ("#d62728", "NVIDIA, MoE", |one| is_nvidia(one.row) && is_routed(one.row)),
    ];
    for (place, (colour, name, belongs)) in kinds.iter().enumerate() {
        let _ = writeln!(text, "<g fill=\"{colour}\" fill-opacity=\"0.65\">");
        for one in judged[index(By::Mapping)].iter().filter(|one| belongs(one)) {
            let _ = writeln!(
                text,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
                x(one.step_time_s),
                y(one.anchored_s)
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
