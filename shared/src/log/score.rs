//! Scores a log: the mean of a window of its steps, or why there is none.
//!
//! Every log gets a score. The reason says why a log can't be scored and what to do, or what to know about the
//! measurement.

use crate::choices::choices;
use crate::units::hours_and_minutes;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{
    Column, Content, Ending, Failure, FailureKind, Figure, Log, NotFinite, PARSER_VERSION, Span, Window,
};

/// The measurement of a log over a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Whether the log was scored.
    pub status: Status,
    /// Why it was not scored and what to do, or what to know about the measurement.
    pub reason: Option<String>,
    /// The steps that were scored, by the numbers in the log.
    pub window: Option<Span>,
    /// Seconds per step; none if the log doesn't have them, as with torchtitan.
    pub step_time_s: Option<Stat>,
    /// TFLOPS per GPU, as the framework counts FLOPs.
    pub tflops_per_gpu: Option<Stat>,
    /// Tokens per second and GPU.
    pub tokens_per_s_per_gpu: Option<Stat>,
    /// Model FLOPs utilization as the framework computes it, as a fraction.
    pub mfu: Option<Stat>,
    /// The number of steps of the window that the log lacks.
    pub missing: u64,
    /// The range of all steps in the log.
    pub labels: Option<Span>,
    /// The first loss in the log.
    pub loss_first: Option<f64>,
    /// The last loss in the log.
    pub loss_last: Option<f64>,
    /// The largest peak of allocated GPU memory in the log.
    pub memory_peak_bytes: Option<f64>,
    /// The largest allocated GPU memory in the log.
    pub memory_allocated_bytes: Option<f64>,
    /// The number of sequences per step.
    pub global_batch_size: Option<u64>,
    /// The version of the parser, [`PARSER_VERSION`].
    pub parser_version: u32,
}

choices! {
    /// Whether a log could be scored.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    Status {
        /// It was scored.
        Scored "scored",
        /// It was scored, but the loss or the gradient became NaN or infinite.
        Invalid "invalid",
        /// The log ends before the window ends, or lacks most of its steps.
        Incomplete "incomplete",
        /// It was scored, but the settings given for it contradict the log or are impossible at this speed.
        Implausible "implausible",
        /// A failure ended the run before the end of the window.
        Failed "failed",
        /// The job was cancelled before the end of the window.
        Cancelled "cancelled",
        /// The log has no step.
        NoData "no_data" "no data",
        /// The file is not text, or can't be read.
        Unreadable "unreadable",
    }
}

choices! {
    /// Which standard deviation: for ten steps the two differ by 5.4 %.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    StdKind {
        /// Divides by n, as NeMo's script does.
        Population "population",
        /// Divides by n - 1, as Megatron-Bridge's script does.
        Sample "sample",
    }
}

/// The mean of a quantity over the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Stat {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; none if it is the sample deviation of a single step.
    pub std: Option<f64>,
    /// Which standard deviation.
    pub std_kind: StdKind,
    /// The number of steps.
    pub n: u64,
}

impl Stat {
    /// Below this number of steps, one slow step moves the mean by more than most comparisons are about.
    pub const FEW: u64 = 5;

    /// Returns the mean of `values`, or none without values or if their sum overflows.
    #[must_use]
    pub fn of(values: &[f64], std_kind: StdKind) -> Option<Self> {
        let n = values.len() as f64;
        // Relative to the first value, so that equal values have a deviation of exactly 0.
        let first = values.first()?;
        let mean = first + values.iter().map(|value| value - first).sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let divisor = match std_kind {
            StdKind::Population => n,
            StdKind::Sample => n - 1.0,
        };
        let std = Some((squares / divisor).sqrt()).filter(|std| std.is_finite());
        mean.is_finite().then_some(Self { mean, std, std_kind, n: values.len() as u64 })
    }
}

/// Scores a log over a window. The releases' own scripts compute the standard deviation
/// [`Format::std_kind`](super::Format::std_kind).
#[must_use]
pub fn score(log: &Log, window: Window, std_kind: StdKind) -> Score {
    let steps = &log.steps;
    let mut score = Score {
        status: Status::NoData,
        reason: None,
        window: None,
        step_time_s: None,
        tflops_per_gpu: None,
        tokens_per_s_per_gpu: None,
        mfu: None,
        missing: 0,
        labels: steps.span(),
        loss_first: steps.loss.values(0..steps.len()).next(),
        loss_last: (0..steps.len()).rev().find_map(|row| steps.loss.get(row)),
        memory_peak_bytes: steps.memory_peak_bytes.max(),
        memory_allocated_bytes: steps.memory_allocated_bytes.max(),
        global_batch_size: steps.global_batch_size(),
        parser_version: PARSER_VERSION,
    };
    let Some(labels) = steps.span() else {
        let (status, reason) = without_steps(log);
        return Score { status, reason: Some(reason), ..score };
    };
    let wanted = match window {
        Window::Last => Span { first: labels.last, last: labels.last },
        Window::Labels(span) => span,
    };
    let rows = steps.rows(wanted);
    let measured = rows
        .clone()
        .filter(|row| steps.step_time_s.get(*row).or(steps.tokens_per_s_per_gpu.get(*row)).is_some())
        .count() as u64;
    score.missing = wanted.count() - measured;

    if let Some(reason) = cut_short(log, window, labels) {
        let status = status_of_cause(log).unwrap_or(Status::Incomplete);
        return Score { status, reason: Some(reason), ..score };
    }
    if measured * 2 < wanted.count() {
        let reason = format!(
            "The log has only {measured} of the {} steps {wanted}. Choose a window within {labels}, or log every step.",
            wanted.count()
        );
        return Score { status: Status::Incomplete, reason: Some(reason), ..score };
    }
    let stat =
        |column: &Column, rows: Range<usize>| Stat::of(&column.values(rows).collect::<Vec<_>>(), std_kind);
    score.status = if log.not_finite.is_empty() { Status::Scored } else { Status::Invalid };
    score.reason = remarks(log, wanted, measured, labels);
    score.window = Some(wanted);
    score.step_time_s = stat(&steps.step_time_s, rows.clone());
    score.tflops_per_gpu = stat(&steps.tflops_per_gpu, rows.clone());
    score.tokens_per_s_per_gpu = stat(&steps.tokens_per_s_per_gpu, rows.clone());
    score.mfu = stat(&steps.mfu, rows);
    score
}

/// Returns the status of a log whose run ended before the window did; none if the log doesn't name the cause. A hung run that was
/// cancelled failed.
fn status_of_cause(log: &Log) -> Option<Status> {
    let cause = log.cause()?;
    let is_cancelled = cause.kind == FailureKind::Cancelled && log.ending() == Some(Ending::Stopped);
    Some(if is_cancelled { Status::Cancelled } else { Status::Failed })
}

/// Returns why the log has no step.
fn without_steps(log: &Log) -> (Status, String) {
    let (status, reason) = match log.content {
        Content::Empty => {
            (Status::NoData, "The file is empty: the job has not started yet, or its disk is full.")
        }
        Content::Gzip => (Status::Unreadable, "The file is compressed. Decompress it with gunzip."),
        Content::Zstd => (Status::Unreadable, "The file is compressed. Decompress it with zstd -d."),
        Content::Utf16 => (Status::Unreadable, "The file is UTF-16. Save it as UTF-8."),
        Content::Binary => (Status::Unreadable, "The file is not text. Use the job's log-*.out."),
        Content::Text => {
            let status = status_of_cause(log).unwrap_or(Status::NoData);
            match cause(log) {
                Some(hung) if log.hang().is_some() => return (status, hung),
                Some(cause) => return (status, format!("The run failed before its first step: {cause}")),
                None => (
                    status,
                    "The log has no training step. Use the training log (log-*.out), or run the job again.",
                ),
            }
        }
    };
    (status, reason.to_owned())
}

/// Returns why the log ends before the window does; none if it does not.
fn cut_short(log: &Log, window: Window, labels: Span) -> Option<String> {
    let missed = match window {
        Window::Labels(span) if labels.last < span.last => format!("before the window {span} ends"),
        Window::Last if log.planned_last.is_some() && !log.is_complete() => "before the last step".to_owned(),
        _ => return None,
    };
    let reached = match log.planned_last {
        Some(planned) => format!("step {} of {planned}", labels.last),
        None => format!("step {}", labels.last),
    };
    let why = if let Some(cause) = cause(log) {
        cause
    } else if !log.checkpoints.is_empty() && labels.count() == 1 {
        "the run only loads or saves a checkpoint. Look at the checkpoint's time.".to_owned()
    } else if log.traced {
        "runs with an NCCL trace are short. Run it again without the trace.".to_owned()
    } else if log.is_complete() {
        return Some(format!(
            "The run has only {} steps, too few for this window. Score the last step, or pick a window within {labels}.",
            labels.count()
        ));
    } else {
        let fix = match log.steps.last_window().filter(|_| window != Window::Last) {
            Some(own) => format!("Wait for it, run it again, or score the window {own}."),
            None => "Wait for it, or run it again.".to_owned(),
        };
        format!("it is still running, was killed, or its log was cut off. {fix}")
    };
    Some(format!("The log ends at {reached}, {missed}: {why}"))
}

/// Returns what ended the run, where in the log, and what to do; none if the log doesn't say it. A hang is named before the
/// failure that it led to.
fn cause(log: &Log) -> Option<String> {
    let failure = log.cause();
    let event = failure.map(|failure| event(failure, log));
    match (log.hang(), failure, event) {
        (Some(hang), _, Some(event)) => Some(format!("{}, until {event}. {}", hang.what(), hang.advice())),
        (Some(hang), ..) => Some(format!("{}. If the job doesn't continue: {}", hang.what(), hang.advice())),
        (None, Some(failure), Some(event)) => Some(match log.stall_s() {
            Some(stall_s) => format!(
                "the run hung. No step was logged in the {} before {event}. {}",
                hours_and_minutes(stall_s),
                FailureKind::CollectiveTimeout.advice()
            ),
            None => format!("{event}. {}", failure.advice()),
        }),
        _ => None,
    }
}

/// Returns what happened, and where in the log.
fn event(failure: &Failure, log: &Log) -> String {
    let told = [failure.reporters(&log.failures), failure.connection()];
    let reporters: String =
        told.iter().filter(|some| !some.is_empty()).map(|some| format!(", {some}")).collect();
    let file = failure.file.iter().map(|file| format!(" of {file}")).collect::<String>();
    format!("{} (line {}{file}{reporters})", failure.kind.what(), failure.line)
}

/// Returns which figures became NaN or infinite and when, in a sentence; none if none did.
fn diverged(not_finite: &[NotFinite]) -> Option<String> {
    let name = |noted: &NotFinite| match noted.figure {
        Figure::Loss => "loss",
        Figure::GradNorm => "gradient norm",
    };
    let when = |noted: &NotFinite| match noted.count {
        1 => format!("at step {}", noted.first),
        count => format!("at step {} ({count} times in all)", noted.first),
    };
    let what = match not_finite {
        [] => return None,
        [one, other] if when(one) == when(other) => {
            format!("{} and the {} are NaN or infinite {}", name(one), name(other), when(one))
        }
        [first, others @ ..] => {
            let others = others.iter().map(|other| format!(", and the {} {}", name(other), when(other)));
            format!("{} is NaN or infinite {}{}", name(first), when(first), others.collect::<String>())
        }
    };
    Some(format!("The {what}, so the step times are not comparable."))
}

/// Returns what to know about the measurement.
fn remarks(log: &Log, wanted: Span, measured: u64, labels: Span) -> Option<String> {
    let mut remarks = Vec::new();
    remarks.extend(diverged(&log.not_finite));
    if measured < wanted.count() {
        remarks.push(format!("The log has only {measured} of the {} steps {wanted}.", wanted.count()));
    }
    if log.labels_counted {
        remarks.push("The log doesn't number its steps, so they are counted from 1.".to_owned());
    }
    if log.restarts > 0 {
        remarks.push("The run was restarted. Of steps that were repeated, the last entry counts.".to_owned());
    } else if log.duplicates > 0 {
        remarks.push(format!("{} steps were logged twice. The last entry counts.", log.duplicates));
    }
    if log.traced {
        remarks.push("NCCL was traced, which slows the run. Don't compare its step times.".to_owned());
    }
    if log.profiled {
        remarks.push("Nsight Systems profiled part of the run, which slows the profiled steps.".to_owned());
    }
    match (cause(log), log.planned_last) {
        (Some(cause), _) => {
            remarks.push(format!("After the window, the log ends at step {}: {cause}", labels.last));
        }
        (None, Some(planned)) if !log.is_complete() => {
            remarks.push(format!("The log ends at step {} of {planned}, and doesn't say why.", labels.last));
        }
        _ => {}
    }
    if remarks.is_empty() { None } else { Some(remarks.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::parse;

    /// Steps `labels` of a run that ends with step 49, each taking 2 s and a hundredth of its label.
    fn lines(labels: std::ops::RangeInclusive<u64>) -> String {
        labels
            .map(|label| {
                let time = 2.0 + label as f64 / 100.0;
                format!(
                    "Training epoch 0, iteration {label}/49 | global_step: {label} | reduced_train_loss: 11.5 | \
                     train_step_timing in s: {time:.2} | TFLOPS_per_GPU: 800 | consumed_samples: {}\n",
                    256 * (label + 1)
                )
            })
            .collect()
    }

    fn scored(log: &str, window: &str) -> Score {
        score(&parse(log.as_bytes()), window.parse().unwrap(), StdKind::Population)
    }

    fn reason(score: &Score) -> &str {
        score.reason.as_deref().unwrap_or_default()
    }

    #[test]
    fn a_whole_run() {
        let score = scored(&lines(0..=49), "35-44");
        assert_eq!((score.status, score.reason, score.missing), (Status::Scored, None, 0));
        assert_eq!(score.window, Some(Span { first: 35, last: 44 }));
        let time = score.step_time_s.unwrap();
        assert!((time.mean - 2.395).abs() < 1e-12);
        // The variance of ten numbers a hundredth apart is (10² - 1) / 12 hundredths².
        assert!((time.std.unwrap() - 8.25_f64.sqrt() / 100.0).abs() < 1e-12);
        assert_eq!(time.n, 10);
        assert_eq!(score.tflops_per_gpu.map(|stat| (stat.mean, stat.std)), Some((800.0, Some(0.0))));
        assert_eq!(score.global_batch_size, Some(256));
        assert_eq!((score.loss_first, score.loss_last), (Some(11.5), Some(11.5)));

        let last = scored(&lines(0..=49), "last");
        assert_eq!(last.window, Some(Span { first: 49, last: 49 }));
        assert_eq!(last.step_time_s.map(|time| time.mean), Some(2.49));
    }

    #[test]
    fn population_and_sample_deviation_differ() {
        let std = |kind| Stat::of(&[1.0, 2.0, 3.0], kind).and_then(|stat| stat.std);
        assert_eq!(std(StdKind::Population), Some((2.0_f64 / 3.0).sqrt()));
        assert_eq!(std(StdKind::Sample), Some(1.0));
        let one = |kind| Stat::of(&[1.0], kind).map(|stat| stat.std);
        assert_eq!((one(StdKind::Population), one(StdKind::Sample)), (Some(Some(0.0)), Some(None)));
        assert_eq!(Stat::of(&[], StdKind::Sample), None);
        assert_eq!(Stat::of(&[f64::MAX, -f64::MAX], StdKind::Sample), None);
    }

    #[test]
    fn a_run_that_fails_before_the_end_of_the_window_is_listed_with_its_cause() {
        let oom = "[rank3]: torch.OutOfMemoryError: CUDA out of memory.\nsrun: error: n1: task 3: Exited\n";
        let failed = scored(&(lines(0..=30) + oom), "35-44");
        assert_eq!((failed.status, failed.step_time_s), (Status::Failed, None));
        assert_eq!(
            reason(&failed),
            "The log ends at step 30 of 49, before the window 35-44 ends: a GPU ran out of memory (line 32, rank 3 on n1). \
             Lower the memory that a GPU needs: a smaller micro batch, higher TP, PP or CP, recomputation, FSDP or more GPUs."
        );
        assert_eq!(scored(&(lines(0..=30) + oom), "11-20").status, Status::Scored);
        assert_eq!(scored(&(lines(0..=30) + oom), "last").status, Status::Failed);

        let cut = scored(&lines(0..=30), "35-44");
        assert_eq!(cut.status, Status::Incomplete);
        assert!(reason(&cut).contains("still running"), "{}", reason(&cut));
    }

    #[test]
    fn a_hang_of_nccl_is_named_before_what_it_led_to() {
        let start = |rank: u32| {
            let (node, gpu) = (rank / 8, rank % 8);
            format!(
                "n{node}:98:12 [{gpu}] NCCL INFO comm 0x5 rank {rank} nranks 16 commId 0x7 - Init START\n"
            )
        };
        let hang: String = (0..16).filter(|rank| *rank != 13).map(start).collect();
        let limit =
            "slurmstepd: error: *** STEP 7.0 ON n0 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***\n";
        let what = "NCCL initialization didn't finish: rank 13 (likely on n1) of a communicator of 16 ranks never started";
        let advice = "Check its node and that node's network, exclude the node, and run again.";
        let ended = scored(&(hang.clone() + limit), "35-44");
        let why = format!("{what}, until the job hit its time limit (line 16). {advice}");
        assert_eq!((ended.status, reason(&ended)), (Status::Failed, &*why));
        let later = scored(&(lines(0..=30) + &hang + limit), "35-44");
        assert_eq!(later.status, Status::Failed);
        assert!(
            reason(&later).contains(&format!("before the window 35-44 ends: {what}")),
            "{}",
            reason(&later)
        );
        let open = scored(&hang, "35-44");
        assert_eq!(
            (open.status, reason(&open).starts_with(what)),
            (Status::NoData, true),
            "{}",
            reason(&open)
        );
        // What explains the hang is named instead of it.
        let oom = "[rank13]: torch.OutOfMemoryError: CUDA out of memory.\n";
        let explained = scored(&(hang + oom + limit), "35-44");
        assert!(reason(&explained).contains("a GPU ran out of memory"), "{}", reason(&explained));
    }

    #[test]
    fn a_cut_log_can_be_scored_by_its_own_steps() {
        let cut = scored(&lines(0..=29), "35-44");
        assert!(reason(&cut).ends_with("or score the window 20-29."), "{}", reason(&cut));
        assert_eq!(scored(&lines(0..=29), "20-29").status, Status::Scored);
        assert!(reason(&scored(&lines(0..=1), "35-44")).ends_with("Wait for it, or run it again."));
    }

    #[test]
    fn a_short_run_is_not_taken_for_a_cut_log() {
        let short = scored(&lines(0..=24).replace("/49", "/24"), "35-44");
        assert_eq!(short.status, Status::Incomplete);
        assert!(reason(&short).contains("The run has only 25 steps"), "{}", reason(&short));
        let loaded = scored(
            &("Global Checkpoint Load : Rank : 0 : Start time : 1.0s : Time spent in load_checkpoint: 9.712s\n"
                .to_owned()
                + &lines(0..=0).replace("/49", "/0")),
            "35-44",
        );
        assert!(reason(&loaded).contains("checkpoint"), "{}", reason(&loaded));
    }

    #[test]
    fn errors_after_the_last_step_are_ignored() {
        let noise = "RuntimeError: destroy failed\nsrun: error: n1: task 3: Exited with exit code 1\n";
        assert_eq!(scored(&(lines(0..=49) + noise), "35-44"), scored(&lines(0..=49), "35-44"));
        let early = lines(0..=46) + noise;
        let late = scored(&early, "35-44");
        assert_eq!(late.status, Status::Scored);
        assert!(reason(&late).starts_with("After the window, the log ends at step 46"), "{}", reason(&late));
    }

    #[test]
    fn a_log_can_state_that_training_is_over() {
        let over = lines(0..=48) + "`Trainer.fit` stopped: `max_steps=50` reached.\n";
        assert_eq!(scored(&over, "last").status, Status::Scored);
        assert_eq!(scored(&lines(0..=48), "last").status, Status::Incomplete);
    }

    #[test]
    fn missing_steps_are_reported() {
        let without = |labels: &[u64]| -> String {
            let dropped =
                |line: &&str| !labels.iter().any(|label| line.contains(&format!("iteration {label}/")));
            lines(0..=49).lines().filter(dropped).map(|line| format!("{line}\n")).collect()
        };
        let some = scored(&without(&[37, 41]), "35-44");
        assert_eq!((some.status, some.missing), (Status::Scored, 2));
        assert_eq!(some.step_time_s.map(|time| time.n), Some(8));
        assert_eq!(reason(&some), "The log has only 8 of the 10 steps 35-44.");
        let most = scored(&without(&[35, 36, 37, 38, 39, 40]), "35-44");
        assert_eq!((most.status, most.missing, most.step_time_s), (Status::Incomplete, 6, None));
    }

    #[test]
    fn a_loss_of_nan_makes_a_run_invalid() {
        let nan = scored(
            &lines(0..=49).replacen("reduced_train_loss: 11.5", "reduced_train_loss: nan", 3),
            "35-44",
        );
        assert_eq!(nan.status, Status::Invalid);
        assert!(
            reason(&nan).starts_with("The loss is NaN or infinite at step 0 (3 times"),
            "{}",
            reason(&nan)
        );
        assert!(nan.step_time_s.is_some());
        assert_eq!(nan.loss_first, Some(11.5));
    }

    #[test]
    fn a_loss_and_a_gradient_of_nan_are_one_sentence() {
        let of = |loss: u64, gradient: u64| {
            let noted = |figure, first| NotFinite { figure, first, count: 50 - first };
            diverged(&[noted(Figure::Loss, loss), noted(Figure::GradNorm, gradient)]).unwrap()
        };
        assert_eq!(
            of(48, 48),
            "The loss and the gradient norm are NaN or infinite at step 48 (2 times in all), so the step times are not \
             comparable."
        );
        assert_eq!(
            of(48, 47),
            "The loss is NaN or infinite at step 48 (2 times in all), and the gradient norm at step 47 (3 times in all), so the \
             step times are not comparable."
        );
        assert_eq!(
            of(49, 49),
            "The loss and the gradient norm are NaN or infinite at step 49, so the step times are not comparable."
        );
        assert_eq!(diverged(&[]), None);
    }

    #[test]
    fn a_restarted_run_counts_each_step_once() {
        let again = lines(0..=30) + &lines(20..=49).replace("TFLOPS_per_GPU: 800", "TFLOPS_per_GPU: 900");
        let log = parse(again.as_bytes());
        assert_eq!((log.restarts, log.duplicates, log.steps.len()), (1, 11, 50));
        let score = scored(&again, "11-44");
        assert_eq!(score.status, Status::Scored);
        assert!(reason(&score).contains("restarted"));
        assert_eq!(score.tflops_per_gpu.map(|stat| stat.n), Some(34));
        assert_eq!(log.steps.tflops_per_gpu.get(20), Some(900.0));
        assert_eq!(log.steps.tflops_per_gpu.get(19), Some(800.0));
    }

    #[test]
    fn a_log_without_steps_says_why() {
        for (bytes, status, words) in [
            (&b""[..], Status::NoData, "empty"),
            (b"hello\n", Status::NoData, "no training step"),
            (b"\x1f\x8b\x08\0", Status::Unreadable, "gunzip"),
            (b"\0\0\0", Status::Unreadable, "not text"),
            (b"sbatch: error: Cannot find GPU specification\n", Status::Failed, "GPUs per node"),
        ] {
            let score = score(&parse(bytes), Window::Last, StdKind::Sample);
            assert_eq!(score.status, status);
            assert!(reason(&score).contains(words), "{}", reason(&score));
        }
    }
}
