//! Logs and what they measured: the Results page's dropped files, `trainplan parse` and its CSV file.

use super::{PageCell, cells, joined, number};
use crate::log::Span;
use crate::result::{PlanComparison, Report};
use crate::units::{group_digits, readable, significant};

columns! {
    /// The columns of a table of logs.
    LogColumn of Report;

    Status "status" {
        terminal "status" => |report| Some(cells::status(report.status, report.ending));
        csv 1 "status" => |report| Some(report.status.id().to_owned());
    }
    Reason "reason" {
        csv 2 "reason" => |report| report.reason.clone();
    }
    Format "format" {
        csv 3 "format" => |report| report.format.map(|format| format.title().to_owned());
    }
    Recipe "recipe" {
        page "Recipe" => cells::recipe_of;
        terminal "recipe" => |report| report.recipe.clone();
        csv 16 "recipe" => |report| report.recipe.clone();
    }
    Steps "steps" {
        page "Steps" [number] => |report| group_digits(report.steps as f64).into();
        csv 4 "steps" => |report| Some(report.steps.to_string());
    }
    Window "window" {
        page "Window" => |report| report.window.map(Span::words).into();
        terminal "window" [extra(4)] => |report| report.window.map(Span::words);
        csv 5 "window" => |report| report.window.map(|window| window.to_string());
    }
    StepTime "step_time" {
        page "Step time, s" [number, main, hint(cells::STEP_TIME)] => |report| {
            cells::step_time(report.step_time_s, report.judged_s)
        };
        terminal "step s" [number] => |report| report.judged_s.map(cells::seconds);
        csv 6 "step_time_s_mean" => |report| number(report.step_time_s.map(|stat| stat.mean));
    }
    ScoredTime "scored_time" {
        terminal "scored s" [number, extra(5)] => |report| report.step_time_s.map(|stat| cells::seconds(stat.mean));
    }
    JudgedTime "judged_time" {
        csv 39 "judged_s" => |report| number(report.judged_s);
    }
    Steady "steady" {
        csv 38 "steady_mean_s" => |report| number(report.steady.map(|steady| steady.mean_s));
    }
    Deviation "deviation" {
        terminal "std" [number, extra(6)] => |report| {
            let stat = report.step_time_s.filter(|stat| stat.n > 1)?;
            Some(format!("{} {}", significant(stat.std?, 2), stat.std_kind.id()))
        };
        csv 7 "step_time_s_std" => |report| number(report.step_time_s.and_then(|stat| stat.std));
    }
    DeviationKind "deviation_kind" {
        csv 8 "std_kind" => |report| report.step_time_s.map(|stat| stat.std_kind.id().to_owned());
    }
    ScoredSteps "scored_steps" {
        csv 9 "n" => |report| report.step_time_s.map(|stat| stat.n.to_string());
    }
    Tokens "tokens" {
        page "Tokens/s" [number] => tokens;
        terminal "tokens/s" [number, extra(2)] => |report| {
            let computed = report.tokens_per_s.map(group_digits);
            let computed = cells::of_scored_text(computed, report.step_time_s, report.judged_s);
            cells::or_logged_text(computed, report.logged().0.map(cells::per_gpu))
        };
        csv 10 "tokens_per_s" => |report| number(report.tokens_per_s);
    }
    Mfu "mfu" {
        page "MFU, %" [number, main] => mfu;
        terminal "MFU %" [number, extra(1)] => |report| {
            let computed = report.mfu.map(cells::percent);
            let computed = cells::of_scored_text(computed, report.step_time_s, report.judged_s);
            cells::or_logged_text(computed, report.logged().1.map(cells::percent))
        };
        csv 11 "mfu" => |report| number(report.mfu);
    }
    Counting "counting" {
        terminal "counted by" [extra(8)] => |report| cells::counting(report.convention, report.peak_tflops);
        csv 12 "convention" => |report| report.convention.map(|convention| convention.to_string());
    }
    Peak "peak" {
        csv 13 "peak_tflops" => |report| number(report.peak_tflops);
    }
    ModelTflops "model_tflops" {
        csv 14 "model_tflops_per_gpu" => |report| number(report.model_tflops_per_gpu);
    }
    LoggedTflops "logged_tflops" {
        csv 15 "logged_tflops_per_gpu" => |report| number(report.tflops_per_gpu.map(|stat| stat.mean));
    }
    PublishedTime "published_time" {
        csv 17 "published_step_time_s" => |report| number(report.baseline.map(|baseline| baseline.step_time_s));
    }
    OfPublished "of_published" {
        page "Of published, %" [number, main, hint(cells::OF_PUBLISHED)] => |report| {
            cells::of_published(report.baseline).into()
        };
        terminal "speed % of published" [number, extra(3)] => |report| {
            cells::of_published(report.baseline)
        };
        csv 18 "speed_percent" => |report| number(report.baseline.and_then(|baseline| baseline.speed_percent));
    }
    ScoredOfPublished "scored_of_published" {
        csv 40 "scored_speed_percent" => |report| {
            number(report.baseline.and_then(|baseline| baseline.scored_speed_percent))
        };
    }
    Predicted "predicted" {
        // The notes name the assumed software, and pages show a note that rows share once.
        page "Predicted, s" [number, optional, hint(cells::OF_PREDICTED)] => |report| {
            cells::planned(predicted(report), None)
        };
        terminal "predicted s" [number, extra(9)] => |report| {
            predicted(report).map(|predicted| cells::interval(predicted.step_time_s))
        };
        csv 35 "predicted_step_time_s" => |report| {
            number(predicted(report).map(|predicted| predicted.step_time_s.mid))
        };
    }
    PredictedLow "predicted_low" {
        csv 34 "predicted_low_s" => |report| {
            number(predicted(report).map(|predicted| predicted.step_time_s.low))
        };
    }
    PredictedHigh "predicted_high" {
        csv 36 "predicted_high_s" => |report| {
            number(predicted(report).map(|predicted| predicted.step_time_s.high))
        };
    }
    OfPredicted "of_predicted" {
        terminal "speed % of predicted" [number, extra(7)] => |report| {
            cells::of_predicted(predicted(report))
        };
        csv 37 "predicted_speed_percent" => |report| {
            number(predicted(report).and_then(|predicted| predicted.speed_percent))
        };
    }
    ScoredOfPredicted "scored_of_predicted" {
        csv 41 "scored_predicted_speed_percent" => |report| {
            number(predicted(report).and_then(|predicted| predicted.scored_speed_percent))
        };
    }
    Comparable "comparable" {
        csv 19 "comparable" => |report| Some(if report.comparable.yes { "yes" } else { "no" }.to_owned());
    }
    Id "id" {
        csv 20 "id" => |report| report.id.clone();
    }
    ParserVersion "parser_version" {
        csv 21 "parser_version" => |report| Some(report.parser_version.to_string());
    }
    LoggedTflopsDeviation "logged_tflops_deviation" {
        csv 22 "logged_tflops_per_gpu_std" => |report| number(report.tflops_per_gpu.and_then(|stat| stat.std));
    }
    WhyNotComparable "why_not_comparable" {
        csv 23 "not_comparable_because" => |report| joined(&report.comparable.reasons);
    }
    Notes "notes" {
        csv 24 "notes" => |report| joined(&report.notes);
    }
    Failures "failures" {
        csv 25 "failures" => |report| {
            let kinds = report.failures.iter().map(|failure| failure.kind.what().to_owned());
            joined(&kinds.collect::<Vec<_>>())
        };
    }
    CheckpointSaves "checkpoint_saves" {
        csv 26 "checkpoint_saves" => |report| Some(report.checkpoint.saves.to_string());
    }
    CheckpointSaveTime "checkpoint_save_time" {
        csv 27 "checkpoint_save_s" => |report| number(report.checkpoint.save_s);
    }
    CheckpointLoads "checkpoint_loads" {
        csv 28 "checkpoint_loads" => |report| Some(report.checkpoint.loads.to_string());
    }
    CheckpointLoadTime "checkpoint_load_time" {
        csv 29 "checkpoint_load_s" => |report| number(report.checkpoint.load_s);
    }
    PeakMemory "peak_memory" {
        csv 30 "memory_peak_bytes" => |report| number(report.memory.peak_bytes);
    }
    FirstLoss "first_loss" {
        csv 31 "loss_first" => |report| number(report.loss.first);
    }
    LastLoss "last_loss" {
        csv 32 "loss_last" => |report| number(report.loss.last);
    }
    GlobalBatch "global_batch" {
        csv 33 "global_batch_size" => |report| report.global_batch_size.map(|size| size.to_string());
    }
    Log "log" {
        terminal "log" [wraps] => |report| Some(report.path.clone());
        csv 0 "path" => |report| Some(report.path.clone());
    }
}

/// Returns the tokens per second, or else those per GPU in the log.
fn tokens(report: &Report) -> PageCell {
    let computed = report.tokens_per_s.map(group_digits).into();
    let computed = cells::of_scored(computed, report.step_time_s, report.judged_s);
    cells::or_logged(computed, report.logged().0.map(cells::per_gpu))
}

/// Returns the MFU, or else that in the log.
fn mfu(report: &Report) -> PageCell {
    let computed = cells::mfu(report.mfu, report.convention, None);
    let computed = cells::of_scored(computed, report.step_time_s, report.judged_s);
    cells::or_logged(computed, report.logged().1.map(|mfu| readable(100.0 * mfu)))
}

/// Returns the comparison with the plan, or else with the prediction for the scenario.
fn predicted(report: &Report) -> Option<PlanComparison> {
    report.plan.or(report.prediction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Intake, View};
    use crate::spec::Spec;

    #[test]
    fn figures_of_the_log_itself_are_labelled() {
        let mut intake = Intake::new("titan.log", &Spec::default());
        intake
            .feed(b"step: 44  loss:  8.1  memory: 50.00GiB(62.00%)  tps: 6,144  tflops: 348  mfu: 35.19%\n");
        let view = View { window: "last".parse().ok(), ..View::default() };
        let report = Report::of(&intake.finish(), &view);
        let cells = LogColumn::page_cells(&report);
        let cell =
            |column: LogColumn| cells.iter().find(|cell: &&PageCell| cell.key == column.key()).unwrap();
        assert_eq!(cell(LogColumn::Tokens).text, "6,144 per GPU");
        assert_eq!(cell(LogColumn::Mfu).text, "35.2");
        for column in [LogColumn::Tokens, LogColumn::Mfu] {
            assert_eq!(cell(column).detail, "as logged");
            let text = column.terminal_cell(&report).unwrap();
            assert!(text.ends_with(" as logged"), "{text}");
        }
    }

    #[test]
    fn the_step_time_is_the_one_that_judges_the_run_with_the_scored_one_below() {
        let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out", &Spec::default());
        for step in 0..50 {
            // 5 of the 40 steps from 10 on; release 25.04 scores step 49.
            let time = if step % 8 == 0 { 14.0 } else { 9.0 };
            let line = format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {time} |\n");
            intake.feed(line.as_bytes());
        }
        let report = Report::of(&intake.finish(), &View::default());
        let time = LogColumn::StepTime.page_cell(&report).unwrap();
        assert_eq!((time.text.as_str(), time.detail.as_str()), ("9.625", "scored 9"));
        let terminal =
            [LogColumn::StepTime, LogColumn::ScoredTime].map(|column| column.terminal_cell(&report).unwrap());
        assert_eq!(terminal, ["9.625", "9"]);
        for column in [LogColumn::Tokens, LogColumn::Mfu] {
            let cell = column.page_cell(&report).unwrap();
            assert!(cell.detail.ends_with("scored"), "{cell:?}");
            let text = column.terminal_cell(&report).unwrap();
            assert!(text.ends_with(" scored"), "{text}");
        }
        let number = |column: LogColumn| column.csv_cell(&report).unwrap().parse::<f64>().unwrap();
        assert_eq!([LogColumn::StepTime, LogColumn::JudgedTime].map(number), [9.0, 9.625]);
        for (judged, scored) in [
            (LogColumn::OfPublished, LogColumn::ScoredOfPublished),
            (LogColumn::OfPredicted, LogColumn::ScoredOfPredicted),
        ] {
            assert!((number(judged) * 9.625 / (number(scored) * 9.0) - 1.0).abs() < 1e-9);
            assert_eq!(judged.terminal_cell(&report), Some(format!("{:.1}", number(judged))));
        }
    }

    #[test]
    fn page_cells_are_found_by_the_keys_of_the_headings() {
        let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out", &Spec::default());
        intake.feed(b"Training epoch 0, iteration 49/49 | train_step_timing in s: 12.39 |\n");
        let report = Report::of(&intake.finish(), &View::default());
        let cells = LogColumn::page_cells(&report);
        let text = |column: LogColumn| {
            let cell = cells.iter().find(|cell: &&PageCell| cell.key == column.key()).unwrap();
            cell.text.as_str()
        };
        assert_eq!(text(LogColumn::StepTime), "12.39");
        assert_eq!(text(LogColumn::Recipe), "llama3.1-8b/h100/fp8/8@25.04");
        assert_eq!(text(LogColumn::Predicted).is_empty(), report.prediction.is_none());
        assert_eq!(cells.len(), LogColumn::page_headings().len());

        let csv = LogColumn::csv(std::slice::from_ref(&report)).to_csv().unwrap();
        let header = "path,status,reason,format,steps,window,step_time_s_mean,step_time_s_std,std_kind,n,";
        assert!(csv.starts_with(header), "{csv}");
        let terminal = LogColumn::terminal(std::slice::from_ref(&report));
        assert_eq!(terminal.titles[..3], ["status", "recipe", "window"]);
        assert_eq!(terminal.rows[0][3].as_deref(), Some("12.39"));
        assert!(terminal.numbers[3] && !terminal.numbers[0]);
    }
}
