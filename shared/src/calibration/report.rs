//! The accuracy report: tables of held-out errors, a list of every row, and a scatter plot.

use super::own_runs::OwnRuns;
use super::{
    DistantRows, ErrorSummary, FitCounts, FittedInterval, Grouping, HeldOutRow, Regret, fitting, is_nvidia,
    is_routed,
};
use crate::estimate::{Coordinate, Distance, Features, IntervalClass};
use crate::measurements::{Measurement, MeasurementUse};
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
    (ULTRA_SCALE, Grouping::Model, |row| row.source == "nanotron-ultrascale"),
    (ULTRA_SCALE, Grouping::Mapping, |row| row.source == "nanotron-ultrascale"),
    (SIMUMAX, Grouping::Model, |row| row.source == "simumax-b200"),
    (SIMUMAX, Grouping::Mapping, |row| row.source == "simumax-b200"),
];

const DENSE: &str = "dense, NVIDIA Megatron family";
const ROUTED: &str = "MoE, NVIDIA Megatron family";
const VTRAIN_SINGLE: &str = "vTrain, single node";
const VTRAIN_MULTI: &str = "vTrain, multi-node";
const CALCULON: &str = "Calculon's points (megatron-seqsel)";
const ULTRA_SCALE: &str = "Ultra-Scale sweep (nanotron)";
const SIMUMAX: &str = "SimuMax B200";

/// Whether a row ran on one of NVIDIA's Megatron stacks.
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
    distant: &DistantRows<'_>,
    intervals: &[FittedInterval],
    own_runs: &[OwnRuns],
    rows: &[Measurement],
) -> String {
    let mut text = String::from(HEAD);
    repeats(&mut text, rows);
    text += ERRORS;
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
            let [low, high] =
                [interval.low, interval.high].map(|end| format!("{:+.2} %", (end - 1.0) * 100.0));
            let _ = writeln!(
                text,
                "| {} | {} | {low} … {high} | {} |",
                class.title(),
                interval.n,
                percent(interval.coverage)
            );
        }
    }
    let inside: f64 = intervals.iter().map(|interval| interval.coverage * interval.n as f64).sum();
    let all: usize = intervals.iter().map(|interval| interval.n).sum();
    let _ = writeln!(text, "| all | {all} | | {} |", percent(inside / all.max(1) as f64));
    rarely_measured(&mut text, &judged[Grouping::Model as usize]);
    distances(&mut text, distant);
    choosing(&mut text, judged);
    own(&mut text, own_runs);
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

A row is a measured run in `shared/data/measurements.csv`. Every error of a step time is for *held-out* rows: they were
not used to fit the constants of the physical model, nor to correct it. Rows whose column `use` is `exclude` or `memory` have no
part in the step times; their notes say why. Most are runs of nanotron before a defect of its pipelines was fixed, or on nodes
whose network ran at a fraction of its rate.

*Modelled* is the prediction of the physical model alone. *Corrected* is what `trainplan estimate` prints: the
physical model's prediction, adjusted with measured runs of the same LLM. A *mapping* is a run's LLM, GPUs, precision,
layout, batch and recomputation: its configuration except the software release. In this report, a run's prediction is
never adjusted with runs of the same mapping.

Rows are held out in three ways: by model (all rows of a model together), by model and GPU (all rows of a model on one
GPU type), or by mapping (in twelve folds). `shared/data/split.csv` lists the folds. In the lines \"held out by model\",
no run of the predicted LLM is available, so *modelled* and *corrected* are nearly equal. The exception is an
LLM with a variant in the data that differs only in the number of layers. When the LLM is held out, the variant counts as
another model, so the variant's runs stay in. The correction counts the variant as the same LLM and uses those
runs, so *modelled* and *corrected* differ. Many LLMs in the data of vTrain, a published simulator study, are like this.

Two inputs of the predictions may carry information from held-out rows. First, the correction gives more weight to runs
that resemble the predicted one; the seven numbers behind these weights (`shared/data/kinship.csv`) were tuned by hand
while looking at the errors on held-out mappings. Second, the authors of SimuMax published the
matrix multiplication rate of their B200 machine (`shared/data/machines.csv`). The predictions of their runs use it, as
if it were passed with `--gemm-tflops`.
";

const ERRORS: &str = "
![Predicted versus measured step times](accuracy.svg)

## Errors of the step time on held-out rows

| runs | held out by | n | modelled: mean abs. error | corrected: mean abs. error | corrected: median | corrected: p90 | \
corrected: bias |
|---|---|--:|--:|--:|--:|--:|--:|
";

const SOURCES: &str = "
## By source

Errors of the corrected prediction, with rows held out by mapping.

| source | n | mean abs. error | median | p90 | bias |
|---|--:|--:|--:|--:|--:|
";

const CHOOSING: &str = "
## Choosing a layout

`trainplan search` looks for the layout with the shortest predicted time. How much slower is the layout it picks than
the one that is really fastest? To find out, we group runs that have the same LLM, GPUs, precision and software, and
differ only in layout, batch or recomputation. In each group, we choose the run with the shortest predicted time per
sequence. Its *regret* is how much longer its measured time is than that of the fastest run in the group. \"At random\" is
the mean regret of choosing a run at random. \"Pairs in the right order\" counts the pairs of runs within a group that are
predicted in the same order as measured, excluding pairs whose measured times differ by less than 2 %.

| runs | held out by | fastest chosen | pairs in the right order | mean regret | p90 | largest | at random |
|---|---|--:|--:|--:|--:|--:|--:|
";

const OWN_RUNS: &str = "
## Your own runs

`trainplan calibrate --cluster` computes factors from your own runs. How much do they help with software that nobody
measured? We take nanotron for such software: the physical model is fitted without its runs, and the factors come from a few of
them, drawn at random ten times. The errors are those of all its other runs.

| software described | own runs | mean abs. error | worst draw |
|---|--:|--:|--:|
";

const MEMORY: &str = "
## Memory

The memory estimate is counted from tensors; nothing in it is fitted. Measurements of allocated memory count tensors
only, reserved memory also the fragments between them, and the other kinds everything on the GPU. \"First\" and \"last\" are
pipeline stages.

| source | kind | n | mean abs. error | largest |
|---|---|--:|--:|--:|
";

const FITTING: &str = "
A run with a measured step time did fit in memory. Where the estimate says that it doesn't, it is not known which
recomputation or offloading the run used. The runs that ran out of memory are those of sweeps that also tried layouts that
are too large. \"Too close\" means that the margin is smaller than the error that the estimate may have (`memory_error` in
`stacks.csv`).

| source | worked: fits | too close | does not fit | ran out: does not fit | too close | fits |
|---|--:|--:|--:|--:|--:|--:|
";

/// Appends how many rows of mixtures of experts use what counts as rarely measured, in the order of [`Coordinate::RARE`].
fn rarely_measured(text: &mut String, by_model: &[HeldOutRow<'_>]) {
    let scenarios = by_model.iter().filter(|one| is_routed(one.row) && !one.row.is_tiny());
    let scenarios = scenarios.filter_map(|one| one.row.scenario.as_ref().ok());
    let rare: Vec<u32> = scenarios.map(|scenario| Features::of(&scenario.inputs()).rare()).collect();
    let users = |place: usize| {
        let bit = 1_u32 << (Coordinate::RARE.len() - 1 - place);
        rare.iter().filter(|bits| *bits & bit > 0).count()
    };
    let [cp, expert_tp, full, fsdp] = std::array::from_fn(users);
    let _ = writeln!(
        text,
        "\nOf the {} routed rows, {cp} use context parallelism, {expert_tp} expert tensor parallelism, {full} full recomputation \
         and {fsdp} FSDP.",
        rare.len()
    );
}

const DISTANCES: &str = "
Errors of the corrected prediction of the rows that are far from all others, by what is held out:

| unmeasured | held out | n | mean abs. error | p90 | bias |
|---|---|--:|--:|--:|--:|
";

/// Appends the errors of distant rows by their fold.
fn distances(text: &mut String, distant: &DistantRows<'_>) {
    *text += DISTANCES;
    for (distance, folds) in Distance::ALL.into_iter().zip(distant) {
        for (fold, rows) in folds {
            let errors = rows.iter().map(|one| one.corrected_s / one.step_time_s - 1.0);
            let Some(ErrorSummary { n, mape, p90, bias, .. }) = ErrorSummary::of(errors) else { continue };
            let [mape, p90, bias] = [mape, p90, bias].map(percent);
            let what = distance.title();
            let held_out = match distance {
                Distance::Scale => format!("above {} GPUs", fold.trim_start_matches('0')),
                _ => fold.clone(),
            };
            let _ = writeln!(text, "| {what} | {held_out} | {n} | {mape} | {p90} | {bias} |");
        }
    }
}

const ROWS: &str = "
## Every row

Step times in seconds: measured, predicted with rows held out by mapping, and predicted with rows held out by model.

| row | source | model | GPU | precision | GPUs | measured | by mapping: modelled | by mapping: corrected | error of \
corrected | by model: modelled | error of modelled |
|---|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|
";

const INTERVALS: &str = "
## Intervals

Predictions fall into classes (see the table below). *Routed* means a mixture of experts (MoE), *plain software* fuses no kernels except
attention. A prediction is *interpolated* if a similar layout of the LLM was measured on the same GPU type, with the same
software and as many bits; otherwise it is *extrapolated*. Rows are held out by mapping to measure the interpolated classes, and
by model to measure the extrapolated ones.

Measurements of other layouts correct a prediction, and part of a large correction may not apply to its layout. That *doubt* is
the correction's logarithm times the share of the error that the nearest run does not explain. The intervals widen with it, so that
they contain 80 % of the predictions with the most doubtful corrections too. The correction counts as at least what the nearest
run contributes: the error of that run's own held-out prediction (`surprise` in `shared/data/anchors.csv`), times its likeness.
Two runs that contradict each other may cancel in the correction, but not in the doubt. Held-out rows are judged in the same way:
the errors of the runs near them come from predictions that have seen neither.

The interval of an interpolated prediction grows from that of its class, for a measured layout, to that of the extrapolated class,
where the nearest measured layout has little in common with it. It grows as late as possible while it still contains 80 % of the predictions with the least
similar runs.

The other classes are those of predictions that are far from every measurement of any LLM:

- *Unmeasured GPU type*: nobody measured the GPU type, or the user changed its figures, such as its memory or network. All rows
  of one GPU type are held out together, and its speed factor is dropped.
- *Unmeasured NVIDIA release* and *unmeasured software*: nobody measured this release of NVIDIA's software or of
  Megatron-LM, or this other software, on the GPU's generation (Ampere, Hopper or Blackwell). A user's own software is always
  unmeasured. All rows of one software on one generation are held out together, and its step-time factor is dropped.
- *Unmeasured scale*: more than twice as many GPUs as in any measured run of the generation. Runs on 2 to 16 times as many GPUs
  as all runs of the fit are predicted, for fits to at most 16, 64 and 256 GPUs. A row may count more than once.

Each of these holds out rows that are far in this way only: of a GPU type, for example, those with software that was measured on
another type of the generation.

A prediction that is distant in several ways has the interval of its class, widened by each way: the squares of what the
logarithms of the distant classes' intervals exceed the extrapolated one's are added. Many rows count in several classes.

*Rarely measured parallelism* is context parallelism, expert tensor parallelism, full recomputation or FSDP of a routed model, if no
similar measured run of the LLM uses it. Such a prediction counts as extrapolated, and its interval is widened in the same way. The
rows of the class are all routed ones with such parallelism, held out by model. There are so few that it is a matter of chance on which side
of the predictions most lie, so each counts on both sides.

The interval of a class contains at least 80 % of the ratios of measured to predicted step time among its held-out rows.
The table shows it in percent below and above the prediction. Coverage is cross-validated: each fold is checked against
an interval computed from the other folds. If the cross-validated coverage of a class is below 80 %, its interval is
widened until the coverage reaches 80 %. The interval of mixtures of experts is not narrower than that of dense models, even if their few
rows scatter less. Distant classes have few folds, so their quantiles are stretched around the median
until the coverage of all folds, each by the others, reaches 80 %. The 990 single-node runs of vTrain, all of tiny models,
are used neither for the intervals nor for their coverage.

| class | rows | interval | coverage |
|---|--:|--:|--:|
";

/// Appends how much the step time of a mapping changes between consecutive releases of one source, if any row
/// has such a repetition. Runs that drop tokens do less work than others of their mapping.
fn repeats(text: &mut String, rows: &[Measurement]) {
    let mut series: BTreeMap<(&str, &str, &str, bool), Vec<&Measurement>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.is_for_fitting() || row.usage == Some(MeasurementUse::Repeat)) {
        if let (Ok(scenario), true) = (&row.scenario, is_nvidia(row)) {
            let drops = scenario.options.token_drop;
            series.entry((&row.source, &row.precision, &scenario.mapping, drops)).or_default().push(row);
        }
    }
    let (mut dense, mut routed) = (Vec::new(), Vec::new());
    for rows in series.values_mut() {
        rows.sort_by_key(|row| &row.release);
        for pair in rows.windows(2).filter(|pair| pair[0].release != pair[1].release) {
            if let (Some(before), Some(after)) = (pair[0].step_time_s, pair[1].step_time_s) {
                if is_routed(pair[0]) { &mut routed } else { &mut dense }.push(after / before - 1.0);
            }
        }
    }
    let largest = routed.iter().fold(0.0_f64, |largest, change: &f64| largest.max(change.abs()));
    if let (Some(dense), Some(routed)) = (ErrorSummary::of(dense), ErrorSummary::of(routed)) {
        let percent = |value: f64| format!("{:.1} %", value * 100.0);
        let _ = writeln!(
            text,
            "\nNo model can be more accurate than repeated measurements. When the same mapping is measured again in the \
             next release,\nthe step time changes by {} on average for dense models ({} pairs of rows) and by {} for MoE \
             models ({} pairs).\nNine of ten MoE pairs change by at most {}, but the largest change is {}.",
            percent(dense.mape),
            dense.n,
            percent(routed.mape),
            routed.n,
            percent(routed.p90),
            percent(largest),
        );
    }
}

/// Appends what trusting the search costs.
fn choosing(text: &mut String, judged: &[Vec<HeldOutRow<'_>>; 3]) {
    *text += CHOOSING;
    type Counts = fn(&Measurement) -> bool;
    let all: Counts = |_| true;
    let lines = [
        ("NVIDIA, dense", is_nvidia_dense as Counts),
        ("NVIDIA, MoE", is_nvidia_routed),
        ("vTrain, multi-node", |row| row.source == "vtrain-multi"),
        ("vTrain, single node", |row| row.source == "vtrain-single"),
        ("all", all),
    ];
    for by in [Grouping::Mapping, Grouping::Model] {
        for (title, counts) in lines {
            let rows = judged[by as usize].iter().filter(|one| counts(one.row));
            let Some(regret) = Regret::of(rows) else { continue };
            let Regret { groups, best_first, pairs, ordered, mean, p90, largest, random } = regret;
            let of = |part: usize, all: usize| format!("{part} of {all}");
            let _ = writeln!(
                text,
                "| {title} | {} | {} | {} | {} | {} | {} | {} |",
                by.title(),
                of(best_first, groups),
                of(ordered, pairs),
                percent(mean),
                percent(p90),
                percent(largest),
                percent(random),
            );
        }
    }
}

/// Appends how much a user's own runs improve predictions for unmeasured software, if it was tried.
fn own(text: &mut String, own_runs: &[OwnRuns]) {
    if !own_runs.is_empty() {
        *text += OWN_RUNS;
    }
    for OwnRuns { described, before, after, .. } in own_runs {
        let _ = writeln!(text, "| {described} | none | {} | |", percent(*before));
        for (runs, mean, worst) in after {
            let _ = writeln!(text, "| {described} | {runs} | {} | {} |", percent(*mean), percent(*worst));
        }
    }
}

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
    *text += FITTING;
    let counts = fitting(rows);
    for (source, counts) in &counts {
        let FitCounts { worked: [fits, close, not], ran_out: [missed, unsure, refused], .. } = *counts;
        if close + not + missed + unsure + refused > 0 {
            let _ =
                writeln!(text, "| {source} | {fits} | {close} | {not} | {refused} | {unsure} | {missed} |");
        }
    }
    *text += "\nEvery run of the other collections worked, and fits according to the estimate.\n";
    for (source, counts) in counts {
        let runs: usize = counts.ran_out.iter().sum();
        if runs == 0 {
            continue;
        }
        let [missed, unsure, _] = counts.ran_out.map(|count| percent(count as f64 / runs as f64));
        let [missed_layouts, unsure_layouts, _] = counts.ran_out_by_layout.map(percent);
        let all = (runs + counts.worked.iter().sum::<usize>()) as f64;
        let close = (counts.worked[1] + counts.ran_out[1]) as f64;
        let _ = writeln!(
            text,
            "\nOf the {runs} runs of {source} that ran out of memory, the estimate calls {missed} \"fits\" and {unsure} \"too \
             close\".\nIf each layout counts once, whatever its micro batch sizes, these are {missed_layouts} and \
             {unsure_layouts}. Of all its runs, {} are too\nclose to call.",
            percent(close / all)
        );
    }
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
        for section in [ERRORS, SOURCES, INTERVALS, OWN_RUNS, ROWS] {
            assert!(report.contains(section), "{section}");
        }
        for write in [repeats, memory] {
            let mut section = String::new();
            write(&mut section, crate::measurements::embedded());
            assert!(report.contains(&section), "{section}");
        }
    }
}
