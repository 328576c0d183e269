//! Runs side by side: the Run and Compare pages, `trainplan compare` and its CSV file.

use super::{PageCell, cells, joined, number, whole};
use crate::compare::{Comparison, RunComparison, RunFigures};
use crate::log::{Span, Stat, Status, Window};
use crate::result::Scoring;
use crate::statistics::Sample;
use crate::units::{group_digits, readable, signed, significant};

/// One run of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct ComparedRun<'a> {
    /// The run.
    pub item: &'a RunFigures,
    /// Its difference from the reference; none of the reference itself.
    pub against: Option<&'a RunComparison>,
    /// How many runs the comparison has.
    pub runs: usize,
    /// The chosen window.
    pub asked: Option<Window>,
}

impl<'a> ComparedRun<'a> {
    /// Returns the runs of a comparison, in its order.
    pub fn all(comparison: &'a Comparison, asked: Option<Window>) -> Vec<Self> {
        let difference = &comparison.difference;
        let run = |(place, item)| Self {
            item,
            against: difference.each.iter().find(|against| against.item == place),
            runs: comparison.items.len(),
            asked,
        };
        comparison.items.iter().enumerate().map(run).collect()
    }

    fn sample(&self) -> Option<Sample> {
        self.item.steady.map(|steady| steady.step_time_s)
    }
}

columns! {
    /// The columns of a table of compared runs. On a terminal they are rows.
    ComparisonColumn of ComparedRun<'_>;

    Label "label" {
        csv 0 "label" => |run| Some(run.item.label.clone());
    }
    Id "id" {
        csv 1 "id" => |run| Some(run.item.id.clone());
    }
    Log "log" {
        terminal "log" => |run| Some(end_of(&run.item.path));
        csv 2 "path" => |run| Some(run.item.path.clone());
    }
    Campaign "campaign" {
        csv 3 "campaign" => |run| run.item.campaign.clone();
    }
    Run "run" {
        csv 4 "run" => |run| run.item.run.clone();
    }
    Repeat "repeat" {
        csv 5 "repeat" => |run| whole(run.item.repeat);
    }
    Recipe "recipe" {
        page "Recipe" => |run| {
            let cluster = run.item.cluster.as_ref().map(|cluster| format!("on {cluster}"));
            PageCell::new(run.item.recipe.clone(), cluster)
        };
        terminal "recipe" => |run| run.item.recipe.clone();
        csv 7 "recipe" => |run| run.item.recipe.clone();
    }
    Cluster "cluster" {
        terminal "cluster" => |run| run.item.cluster.clone();
        csv 6 "cluster" => |run| run.item.cluster.clone();
    }
    Gpus "gpus" {
        csv 8 "gpus" => |run| whole(run.item.gpus);
    }
    Status "status" {
        terminal "status" => |run| Some(cells::status(run.item.status, run.item.ending));
        csv 9 "status" => |run| Some(run.item.status.id().to_owned());
    }
    Window "window" {
        page "Scored" => |run| window(run, run.item.scored_span().map(Span::with_noun));
        terminal "window" => |run| run.item.window_words();
        csv 10 "window" => |run| plain_window(run.item);
    }
    Steps "steps" {
        csv 11 "steps" => |run| Some(run.item.steps.to_string());
    }
    StepTime "step_time" {
        page "Step time, s" [number, main, hint("The mean of the scored steps. If fewer than 5 are scored, the mean of all steps after the warm-up. Below it: the 95 % confidence interval of the steps that are compared, with their mean if it is another, and the scored step time if it differs by more than 1 %")] =>
            step_time;
        terminal "step s" => |run| run.item.judged_s.map(cells::seconds);
        csv 12 "step_time_s_mean" => |run| number(run.item.step_time_s.map(|stat| stat.mean));
    }
    JudgedTime "judged_time" {
        csv 54 "judged_s" => |run| number(run.item.judged_s);
    }
    Deviation "deviation" {
        terminal "scored s (mean ± std)" => |run| run.item.step_time_s.map(scored);
        csv 13 "step_time_s_std" => |run| number(run.item.step_time_s.and_then(|stat| stat.std));
    }
    DeviationKind "deviation_kind" {
        csv 14 "std_kind" => |run| run.item.step_time_s.map(|stat| stat.std_kind.id().to_owned());
    }
    ScoredSteps "scored_steps" {
        csv 15 "n" => |run| whole(run.item.step_time_s.map(|stat| stat.n));
    }
    SteadySteps "steady_steps" {
        terminal "steady steps" => |run| {
            run.item.steady.map(|steady| Span { first: steady.first, last: steady.last }.words())
        };
    }
    SteadyFirst "steady_first" {
        csv 16 "steady_first" => |run| whole(run.item.steady.map(|steady| steady.first));
    }
    SteadyLast "steady_last" {
        csv 17 "steady_last" => |run| whole(run.item.steady.map(|steady| steady.last));
    }
    SteadyMean "steady_mean" {
        terminal "  mean s (95 % interval)" => |run| Some(match mean(run.sample()?) {
            (mean, Some(interval)) => format!("{mean} ({interval})"),
            (mean, None) => mean,
        });
        csv 18 "steady_mean_s" => |run| number(run.sample().map(|sample| sample.mean));
    }
    SteadyLow "steady_low" {
        csv 19 "steady_low_s" => |run| number(run.sample().and_then(|sample| sample.low));
    }
    SteadyHigh "steady_high" {
        csv 20 "steady_high_s" => |run| number(run.sample().and_then(|sample| sample.high));
    }
    SteadyEffective "steady_effective" {
        csv 21 "steady_n_effective" => |run| number(run.sample().and_then(|sample| sample.n_effective));
    }
    SteadyMedian "steady_median" {
        terminal "  median s" => |run| run.sample().map(|sample| cells::seconds(sample.median));
        csv 23 "steady_median_s" => |run| number(run.sample().map(|sample| sample.median));
    }
    SteadyMiddle "steady_middle" {
        terminal "  5 % to 95 % s" => |run| run.sample().map(|sample| cells::seconds_range(sample.p5, sample.p95));
    }
    SteadyP5 "steady_p5" {
        csv 22 "steady_p5_s" => |run| number(run.sample().map(|sample| sample.p5));
    }
    SteadyP95 "steady_p95" {
        csv 24 "steady_p95_s" => |run| number(run.sample().map(|sample| sample.p95));
    }
    SteadyRange "steady_range" {
        terminal "  min to max s" => |run| run.sample().map(|sample| cells::seconds_range(sample.min, sample.max));
    }
    Change "change" {
        page "Against reference" [number, main] => change;
    }
    Tokens "tokens" {
        page "Tokens/s" [number] => |run| cells::or_logged(
            of_scored(run, PageCell::new(
                run.item.tokens_per_s.map(group_digits),
                run.item.tokens_per_s_per_gpu.map(cells::per_gpu),
            )),
            run.item.logged_tokens_per_s_per_gpu.map(cells::per_gpu),
        );
        terminal "tokens/s" => |run| of_scored_text(run, run.item.tokens_per_s.map(group_digits));
        csv 25 "tokens_per_s" => |run| number(run.item.tokens_per_s);
    }
    TokensPerGpu "tokens_per_gpu" {
        terminal "tokens/s/GPU" => |run| cells::or_logged_text(
            of_scored_text(run, run.item.tokens_per_s_per_gpu.map(group_digits)),
            run.item.logged_tokens_per_s_per_gpu.map(group_digits),
        );
        csv 26 "tokens_per_s_per_gpu" => |run| number(run.item.tokens_per_s_per_gpu);
    }
    Mfu "mfu" {
        page "MFU, %" [number, main] => |run| {
            let computed = cells::mfu(run.item.mfu, run.item.convention, run.item.peak_tflops);
            cells::or_logged(of_scored(run, computed), run.item.logged_mfu.map(|mfu| readable(100.0 * mfu)))
        };
        terminal "MFU %" => |run| cells::or_logged_text(
            of_scored_text(run, run.item.mfu.map(cells::percent)),
            run.item.logged_mfu.map(cells::percent),
        );
        csv 27 "mfu" => |run| number(run.item.mfu);
    }
    Counting "counting" {
        terminal "  counted by" => |run| cells::counting(run.item.convention, run.item.peak_tflops);
        csv 28 "convention" => |run| run.item.convention.map(|convention| convention.to_string());
    }
    Peak "peak" {
        csv 29 "peak_tflops" => |run| number(run.item.peak_tflops);
    }
    ModelTflops "model_tflops" {
        terminal "TFLOPS/GPU" => |run| {
            let text = |tflops| significant(tflops, 4);
            let logged = run.item.tflops_per_gpu.filter(|_| run.item.status != Status::Implausible);
            let computed = of_scored_text(run, run.item.model_tflops_per_gpu.map(text));
            cells::or_logged_text(computed, logged.map(text))
        };
        csv 30 "model_tflops_per_gpu" => |run| number(run.item.model_tflops_per_gpu);
    }
    PublishedTime "published_time" {
        terminal "published s" => |run| {
            run.item.baseline.map(|baseline| cells::seconds(baseline.step_time_s))
        };
        csv 35 "published_step_time_s" => |run| {
            number(run.item.baseline.map(|baseline| baseline.step_time_s))
        };
    }
    OfPublished "of_published" {
        page "Of published, %" [number, main, hint(cells::OF_PUBLISHED)] => |run| {
            let published =
                run.item.baseline.map(|baseline| format!("of {} s", cells::seconds(baseline.step_time_s)));
            PageCell::new(cells::of_published(run.item.baseline), published)
        };
        terminal "  relative speed, %" => |run| cells::of_published(run.item.baseline);
        csv 36 "speed_percent" => |run| {
            number(run.item.baseline.and_then(|baseline| baseline.speed_percent))
        };
    }
    ScoredOfPublished "scored_of_published" {
        csv 55 "scored_speed_percent" => |run| {
            number(run.item.baseline.and_then(|baseline| baseline.scored_speed_percent))
        };
    }
    Loss "loss" {
        page "Loss" [number] => |run| loss(run.item, 4).into();
        terminal "loss (first to last)" => |run| loss(run.item, 5);
    }
    Planned "planned" {
        page "Planned, s" [number, optional] => |run| cells::planned(run.item.plan, None);
        terminal "plan s (80 % interval)" => |run| run.item.plan.map(|plan| cells::interval(plan.step_time_s));
        csv 32 "plan_mid_s" => |run| number(run.item.plan.map(|plan| plan.step_time_s.mid));
    }
    PlannedLow "planned_low" {
        csv 31 "plan_low_s" => |run| number(run.item.plan.map(|plan| plan.step_time_s.low));
    }
    PlannedHigh "planned_high" {
        csv 33 "plan_high_s" => |run| number(run.item.plan.map(|plan| plan.step_time_s.high));
    }
    Predicted "predicted" {
        // With several runs, their measurements say more.
        page "Predicted, s" [number, optional, hint(cells::OF_PREDICTED)] => |run| {
            let software = cells::assuming(run.item.assumed_software);
            cells::planned(run.item.prediction.filter(|_| run.runs == 1), software)
        };
        terminal "predicted s (80 % interval)" => |run| {
            run.item.prediction.map(|prediction| cells::interval(prediction.step_time_s))
        };
        csv 49 "predicted_mid_s" => |run| {
            number(run.item.prediction.map(|prediction| prediction.step_time_s.mid))
        };
    }
    PredictedLow "predicted_low" {
        csv 48 "predicted_low_s" => |run| {
            number(run.item.prediction.map(|prediction| prediction.step_time_s.low))
        };
    }
    PredictedHigh "predicted_high" {
        csv 50 "predicted_high_s" => |run| {
            number(run.item.prediction.map(|prediction| prediction.step_time_s.high))
        };
    }
    PredictionError "prediction_error" {
        csv 51 "prediction_error" => |run| {
            number(run.item.prediction.and_then(|prediction| prediction.error))
        };
    }
    PlanError "plan_error" {
        terminal "  relative speed, %" => |run| {
            cells::of_predicted(run.item.plan.or(run.item.prediction))
        };
        csv 34 "plan_error" => |run| number(run.item.plan.and_then(|plan| plan.error));
    }
    OfPlan "of_plan" {
        csv 52 "plan_speed_percent" => |run| number(run.item.plan.and_then(|plan| plan.speed_percent));
    }
    OfPredicted "of_predicted" {
        csv 53 "predicted_speed_percent" => |run| {
            number(run.item.prediction.and_then(|prediction| prediction.speed_percent))
        };
    }
    ScoredOfPlan "scored_of_plan" {
        csv 56 "scored_plan_speed_percent" => |run| {
            number(run.item.plan.and_then(|plan| plan.scored_speed_percent))
        };
    }
    ScoredOfPredicted "scored_of_predicted" {
        csv 57 "scored_predicted_speed_percent" => |run| {
            number(run.item.prediction.and_then(|prediction| prediction.scored_speed_percent))
        };
    }
    PeakMemory "peak_memory" {
        terminal "peak memory GiB" => |run| run.item.memory.peak_bytes.map(cells::gib);
        csv 37 "memory_peak_bytes" => |run| number(run.item.memory.peak_bytes);
    }
    FirstLoss "first_loss" {
        csv 38 "loss_first" => |run| number(run.item.loss.first);
    }
    LastLoss "last_loss" {
        csv 39 "loss_last" => |run| number(run.item.loss.last);
    }
    Verdict "verdict" {
        csv 40 "verdict" => |run| {
            Some(run.against.map_or("reference", |against| against.verdict.id()).to_owned())
        };
    }
    ChangePercent "change_percent" {
        csv 41 "change_percent" => |run| {
            number(run.against.and_then(|against| against.step_time).map(|change| change.percent))
        };
    }
    ChangeLow "change_low" {
        csv 42 "change_low_percent" => |run| {
            number(run.against.and_then(|against| against.step_time).and_then(|change| change.low))
        };
    }
    ChangeHigh "change_high" {
        csv 43 "change_high_percent" => |run| {
            number(run.against.and_then(|against| against.step_time).and_then(|change| change.high))
        };
    }
    ChangeP "change_p" {
        csv 44 "p" => |run| {
            run.against.and_then(|against| against.step_time?.p).map(p_value)
        };
    }
    EffectSize "effect_size" {
        csv 45 "effect_size" => |run| number(run.against.and_then(|against| against.effect_size));
    }
    TokensChange "tokens_change" {
        csv 46 "tokens_per_s_per_gpu_percent" => |run| {
            number(run.against.and_then(|against| against.tokens_per_s_per_gpu_percent))
        };
    }
    WhyNotComparable "why_not_comparable" {
        csv 47 "not_comparable_because" => |run| {
            joined(run.against.map_or(&run.item.comparable.reasons, |against| &against.reasons))
        };
    }
}

/// Returns the scored steps for programs: `35-44`, `49`.
fn plain_window(item: &RunFigures) -> Option<String> {
    let window = item.window.as_deref()?;
    Some(match window.split_once('-') {
        Some((first, last)) if first == last => first.to_owned(),
        _ => window.to_owned(),
    })
}

/// The smallest p-value in a file. Smaller ones add no information.
const LEAST_P: f64 = 1e-16;

/// Returns a p-value with three digits: `0.0123`, `1.2e-9`.
fn p_value(p: f64) -> String {
    significant(p.max(LEAST_P), 3)
}

/// Returns the scored steps: of a run alone with how many steps the log has, beside other runs with who chose them.
fn window(run: &ComparedRun<'_>, scored: Option<String>) -> PageCell {
    if run.runs == 1 {
        let noun = if run.item.steps == 1 { "step" } else { "steps" };
        return PageCell::new(scored, Some(format!("of {} {noun}", group_digits(run.item.steps as f64))));
    }
    let release = run.item.release.as_deref().and_then(|release| release.parse().ok());
    let scoring = Scoring::of(run.asked, release);
    scored.map(|scored| format!("{scored} ({})", scoring.source())).into()
}

/// Returns by how much a step takes longer than one of the reference, and below it the interval and the verdict. A run that is not
/// comparable has the figures below, in small print.
fn change(run: &ComparedRun<'_>) -> PageCell {
    let Some(against) = run.against else {
        // A run alone has no reference.
        return (run.runs > 1).then(|| "reference".to_owned()).into();
    };
    let percent =
        against.step_time.map_or_else(|| "–".into(), |change| format!("{} %", signed(change.percent, 2)));
    let ends = against.step_time.and_then(|change| change.low.zip(change.high));
    let ends =
        ends.map_or(String::new(), |(low, high)| format!("{} to {} %, ", signed(low, 2), signed(high, 2)));
    let verdict = against.verdict.title();
    if against.comparable {
        return PageCell::new(Some(percent), Some(format!("{ends}{verdict}")));
    }
    let figures = format!("{percent}, {ends}");
    PageCell::new(Some(verdict.to_owned()), Some(figures.trim_end_matches(", ").to_owned()))
}

fn loss(item: &RunFigures, digits: usize) -> Option<String> {
    let (first, last) = item.loss.first.zip(item.loss.last)?;
    Some(format!("{} to {}", significant(first, digits), significant(last, digits)))
}

/// Returns the step time that judges the run, or else that of the compared steps. Below it are the interval of the compared steps,
/// and the scored step time if it differs.
fn step_time(run: &ComparedRun<'_>) -> PageCell {
    let RunFigures { step_time_s, judged_s, .. } = *run.item;
    let Some(sample) = run.sample() else { return cells::step_time(step_time_s, judged_s) };
    let (compared, interval) = mean(sample);
    let judged = judged_s.map(cells::seconds).filter(|judged| *judged != cells::seconds(sample.mean));
    let (text, compared) = match judged {
        None => (compared, interval),
        Some(judged) => {
            let interval = interval.map_or(String::new(), |interval| format!(" ({interval})"));
            (judged, Some(format!("compared {compared}{interval}")))
        }
    };
    let details: Vec<String> =
        compared.into_iter().chain(cells::scored_beside(step_time_s, judged_s)).collect();
    PageCell::new(Some(text), Some(details.join(", ")))
}

/// Marks a figure that follows from the scored step time, if the run is judged by a different one.
fn of_scored(run: &ComparedRun<'_>, cell: PageCell) -> PageCell {
    cells::of_scored(cell, run.item.step_time_s, run.item.judged_s)
}

/// Marks such a figure for a terminal.
fn of_scored_text(run: &ComparedRun<'_>, text: Option<String>) -> Option<String> {
    cells::of_scored_text(text, run.item.step_time_s, run.item.judged_s)
}

fn scored(stat: Stat) -> String {
    match stat.std.filter(|_| stat.n > 1) {
        Some(std) => {
            format!("{} ± {} ({})", cells::seconds(stat.mean), significant(std, 2), stat.std_kind.id())
        }
        None => cells::seconds(stat.mean),
    }
}

/// Returns the mean, and its interval if it has one.
fn mean(sample: Sample) -> (String, Option<String>) {
    match sample.low.zip(sample.high) {
        Some((low, high)) => {
            let (mean, interval) = cells::mean_and_interval(sample.mean, low, high);
            (mean, Some(interval))
        }
        None => (cells::seconds(sample.mean), None),
    }
}

/// The width in characters that a path has on a terminal.
const PATH_WIDTH: usize = 44;

/// Returns the end of a path, which differs between runs more than its start.
fn end_of(path: &str) -> String {
    let start = path.char_indices().rev().nth(PATH_WIDTH - 2).map_or(0, |(start, _)| start);
    match path.get(start..) {
        Some(end) if start > 0 => format!("…{end}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::LogColumn;
    use super::*;
    use crate::compare::ComparisonOptions;
    use crate::log::Status;
    use crate::result::{Intake, Report, RunResult, View};
    use crate::spec::Spec;
    use std::collections::HashMap;

    fn run(job: u32, ms: u32) -> RunResult {
        let name = format!("log-acct.pretrain_llama3.1_8b_fp8_8_{job}_0.out");
        let mut intake = Intake::new(name, &Spec::default());
        for step in 0..50 {
            let time = f64::from(ms + step % 7) / 1000.0;
            let line = format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {time} |\n");
            intake.feed(line.as_bytes());
        }
        intake.finish()
    }

    #[test]
    fn every_csv_row_agrees_with_the_comparison() {
        let runs = [run(1, 12_000), run(2, 12_600)];
        let comparison = Comparison::of(&runs.iter().collect::<Vec<_>>(), &ComparisonOptions::default());
        let text = ComparisonColumn::csv(&ComparedRun::all(&comparison, None)).to_csv().unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<HashMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
        assert!(rows.iter().all(|row| row.len() == 58), "a header is used twice: {text}");
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0]["verdict"].as_str(), rows[1]["verdict"].as_str()), ("reference", "slower"));
        assert_eq!(rows[0]["change_percent"], "");
        let change = comparison.difference.each[0].step_time.unwrap();
        assert_eq!(rows[1]["change_percent"].parse(), Ok(change.percent));
        assert_eq!(rows[1]["steady_first"], "10");
        assert_eq!(
            (rows[0]["window"].as_str(), comparison.items[0].window.as_deref()),
            ("49", Some("49-49"))
        );
        assert_eq!(rows[1]["id"], comparison.items[1].id);
        let predicted = comparison.items[1].prediction.map(|prediction| prediction.step_time_s.mid);
        assert_eq!(rows[1]["predicted_mid_s"].parse().ok(), predicted);
        assert_eq!(comparison.items[0].status, Status::Scored);
    }

    #[test]
    fn csv_cells_are_short_and_plain() {
        assert_eq!([0.012_345, 1.2e-9, 1e-200, 0.0].map(p_value), ["0.0123", "1.2e-9", "1e-16", "1e-16"]);
        let runs = [run(1, 12_000), run(2, 12_600)];
        let view = View { window: "35-44".parse().ok(), ..View::default() };
        let options = ComparisonOptions { view, ..ComparisonOptions::default() };
        let comparison = Comparison::of(&runs.iter().collect::<Vec<_>>(), &options);
        let text = ComparisonColumn::csv(&ComparedRun::all(&comparison, None)).to_csv().unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<HashMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
        assert_eq!(rows[1]["window"], "35-44");
        assert!(rows[1]["p"].len() < 12 && rows[1]["p"].parse::<f64>().is_ok(), "{text}");
        assert!(text.is_ascii(), "{text}");
    }

    #[test]
    fn figures_of_the_log_itself_are_labelled() {
        let mut intake = Intake::new("titan.log", &Spec::default());
        intake
            .feed(b"step: 44  loss:  8.1  memory: 50.00GiB(62.00%)  tps: 6,144  tflops: 348  mfu: 35.19%\n");
        let view = View { window: "last".parse().ok(), ..View::default() };
        let options = ComparisonOptions { view, ..ComparisonOptions::default() };
        let comparison = Comparison::of(&[&intake.finish()], &options);
        let alone = ComparedRun::all(&comparison, None)[0];
        for (column, text) in [(ComparisonColumn::Tokens, "6,144 per GPU"), (ComparisonColumn::Mfu, "35.2")] {
            let cell = column.page_cell(&alone).unwrap();
            assert_eq!((cell.text.as_str(), cell.detail.as_str()), (text, "as logged"));
        }
        for column in [ComparisonColumn::TokensPerGpu, ComparisonColumn::ModelTflops, ComparisonColumn::Mfu] {
            let text = column.terminal_cell(&alone).unwrap();
            assert!(text.ends_with(" as logged"), "{text}");
        }
    }

    #[test]
    fn a_run_whose_scored_step_is_not_typical_is_shown_by_its_steady_mean() {
        let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out", &Spec::default());
        for step in 0..50 {
            // 5 of the 40 steps from 10 on; release 25.04 scores step 49.
            let time = if step % 8 == 0 { 14.0 } else { 9.0 };
            let line = format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {time} |\n");
            intake.feed(line.as_bytes());
        }
        let result = intake.finish();
        let comparison = Comparison::of(&[&result], &ComparisonOptions::default());
        let alone = ComparedRun::all(&comparison, None)[0];
        let cell = |column: ComparisonColumn| column.page_cell(&alone).unwrap();
        let time = cell(ComparisonColumn::StepTime);
        assert!(time.text.starts_with("9.625") && time.detail.ends_with(", scored 9"), "{time:?}");
        assert!(cell(ComparisonColumn::Mfu).detail.ends_with(", scored"));
        let published_s = alone.item.baseline.unwrap().step_time_s;
        assert_eq!(cell(ComparisonColumn::OfPublished).text, format!("{:.1}", 100.0 * published_s / 9.625));
        // Its report has the same figures.
        let report = Report::of(&result, &View::default());
        let listed = LogColumn::OfPublished.page_cell(&report).unwrap();
        assert_eq!(listed.text, cell(ComparisonColumn::OfPublished).text);

        // Enough scored steps judge the run themselves.
        let view = View { window: "17-23".parse().ok(), ..View::default() };
        let options = ComparisonOptions { view, ..ComparisonOptions::default() };
        let comparison = Comparison::of(&[&result], &options);
        let alone = ComparedRun::all(&comparison, None)[0];
        let time = ComparisonColumn::StepTime.page_cell(&alone).unwrap();
        assert_eq!(time.text.trim_end_matches(['0', '.']), "9");
    }

    #[test]
    fn a_run_alone_is_compared_with_nothing() {
        let run = run(1, 12_000);
        let comparison = Comparison::of(&[&run], &ComparisonOptions::default());
        let alone = ComparedRun::all(&comparison, None)[0];
        assert_eq!(ComparisonColumn::Change.page_cell(&alone).unwrap().text, "");
        let window = ComparisonColumn::Window.page_cell(&alone).unwrap();
        assert_eq!((&*window.text, &*window.detail), ("step 49", "of 50 steps"));
        // Step 49 took 12 s, and the mean of the steps from 10 on is longer, by less than 1 %.
        let judged = ComparisonColumn::StepTime.page_cell(&alone).unwrap();
        let (low, high) = judged.detail.split_once('–').unwrap();
        assert!(judged.text == "12.003" && low < "12.003" && high > "12.003", "{judged:?}");
        let other = {
            let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_16_2_0.out", &Spec::default());
            intake.feed(b"Training epoch 0, iteration 0/0 | train_step_timing in s: 12 |\n");
            intake.finish()
        };
        let unlike = Comparison::of(&[&run, &other], &ComparisonOptions::default());
        let unlike = ComparedRun::all(&unlike, None);
        assert_eq!(ComparisonColumn::Change.page_cell(&unlike[1]).unwrap().text, "not comparable");
        let both = Comparison::of(&[&run, &run], &ComparisonOptions::default());
        let both = ComparedRun::all(&both, None);
        assert_eq!(ComparisonColumn::Change.page_cell(&both[0]).unwrap().text, "reference");
        let window = ComparisonColumn::Window.page_cell(&both[0]).unwrap();
        assert!(window.text.starts_with("step 49 (release ") && window.detail.is_empty(), "{window:?}");
        assert_eq!(ComparisonColumn::Change.page_cell(&both[1]).unwrap().text, "+0.00 %");
    }
}
