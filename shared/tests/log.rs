//! Logs of every format, generated so that plain arithmetic gives the answers, among everything else that ranks
//! write into the same file and in any chunks.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use trainplan_shared::log::{Format, Log, Parser, Score, Status, StdKind, Window, parse, score};

/// One step of a run: whole numbers, so that what is printed and what is expected are the same by construction.
#[derive(Debug, Clone)]
struct Step {
    /// In the smallest unit that the format prints: milliseconds, or hundredths.
    time: u32,
    /// Hundredths.
    loss: u32,
    /// Tenths of TFLOPS per GPU.
    tflops: u32,
    /// Tokens per second and GPU.
    tokens: u32,
}

fn step() -> impl Strategy<Value = Step> {
    (1..200_000_u32, 0..2_000_u32, 0..30_000_u32, 1..100_000_u32)
        .prop_map(|(time, loss, tflops, tokens)| Step { time, loss, tflops, tokens })
}

/// How many of the units that a format prints step times in make a second.
fn units(format: Format) -> f64 {
    if format == Format::Paxml { 100.0 } else { 1000.0 }
}

/// The records of the `row`th step of `count`. Each may be anywhere in a line.
fn records(format: Format, row: usize, count: usize, step: &Step) -> Vec<String> {
    let (number, samples) = (row + 1, 256 * (row + 1));
    let time = f64::from(step.time) / units(format);
    let loss = f64::from(step.loss) / 100.0;
    let tflops = f64::from(step.tflops) / 10.0;
    match format {
        Format::Nemo1 => vec![
            format!("Epoch 0: : {:3}%|##   | {row}/{count} [07:57<00:00, v_num=]", 100 * row / count),
            format!(
                "Epoch 0: : 100%|█████| {number}/{count} [07:57<00:00, reduced_train_loss={loss:.2}, \
                 global_step={row}.00, consumed_samples={samples}.0, train_step_timing in s={time:.3}]"
            ),
        ],
        Format::Nemo2 => vec![format!(
            "Training epoch 0, iteration {row}/{} | lr: 7.496e-06 | global_batch_size: 256 | global_step: {row} | \
             peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: {loss:.2} | \
             train_step_timing in s: {time:.3} | TFLOPS_per_GPU: {tflops:.1} | consumed_samples: {samples}",
            count - 1
        )],
        Format::MegatronBridge => vec![
            format!("Step Time : {time:.2}s GPU utilization: {tflops:.1}MODEL_TFLOP/s/GPU"),
            format!(
                " [2025-12-19 10:49:15] iteration {number:8}/{count:8} | consumed samples: {samples:12} | elapsed \
                 time per iteration (ms): {}.0 | learning rate: 3.0E-06 | global batch size:   256 | lm loss: \
                 {loss:.2} | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan \
                 iterations:   0 |",
                step.time
            ),
        ],
        Format::Torchtitan => vec![format!(
            "\x1b[31mstep: {number:2}  \x1b[32mloss: {loss:7.2}  \x1b[38;2;180;60;0mgrad_norm:  1.2345  \
             \x1b[36mmemory: 50.00GiB(62.00%)  \x1b[34mtps: {}  \x1b[36mtflops: {}  \x1b[35mmfu: 1.23%\x1b[39m",
            grouped(step.tokens, ""),
            grouped(step.tflops / 10, &format!(".{}", step.tflops % 10)),
        )],
        Format::Maxtext => vec![format!(
            "completed step: {row}, seconds: {time:.3}, TFLOP/s/device: {tflops:.1}, Tokens/s/device: {}.0, \
             total_weights: 1048576, loss: {loss:.2}",
            step.tokens
        )],
        Format::Paxml => {
            vec![format!("[PAX STATUS]: train_step() took {time:.2} seconds.")]
        }
        _ => unreachable!(),
    }
}

/// `1299` as `1,299`.
fn grouped(number: u32, fraction: &str) -> String {
    match number {
        0..1000 => format!("{number}{fraction}"),
        _ => format!("{},{:03}{fraction}", number / 1000, number % 1000),
    }
}

/// What no rank's chatter may change.
fn foreign() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(
        &[
            "[7] NCCL INFO AllReduce: opCount 2 sendbuff 0x7ffb4713c200 recvbuff 0x7ffb4713c200 count 1 datatype 1 \
             op 0 root 0 comm 0x55556b100660 [nranks=128] stream 0x5555630c58b0\n",
            "n1:98:1251 [3] NCCL INFO ncclCommInitRankConfig comm 0x55f01c18e490 rank 3 nranks 8 cudaDev 3 nvmlDev 3 \
             busId 59000 commId 0x5ae77eb5ea4ec1ee - Init START\n",
            "n1:98:1251 [3] NCCL INFO ncclCommInitRankConfig comm 0x55f01c18e490 rank 3 nranks 8 cudaDev 3 nvmlDev 3 \
             busId 59000 commId 0x5ae77eb5ea4ec1ee - Init COMPLETE\n",
            "n1:98:1251 [4] NCCL INFO comm 0x7f2b rank 4 nranks 8 cudaDev 4 busId 9b000 commId 0x5ae7 - Init START\n",
            "n1:98:1251 [3] NCCL INFO Channel 00/0 : 3[3] -> 8[0] [send] via NET/IB/0/GDRDMA\n",
            "n1:98:1251 [3] NCCL INFO Using network Socket\n",
            "n1:98:1251 [3] NCCL INFO NVLS multicast support is available on dev 3 (NVLS_NCHANNELS 16)\n",
            "[NeMo W 2025-04-11 14:48:45 nemo_logging:405] something is deprecated\r\n",
            "Training epoch 0, iteration 3/49 | lr: 1.5e-06 | global_batch_size: 256 | train_step_timing i\n",
            "Training epoch 0, iteration 3/49 | train_step_timing in s: \n",
            "Epoch 0: :  10%|#    | 3/50 [00:21<05:00, v_num=, train_step_timing in s=\n",
            " iteration        3/      50 | consumed samples:    768 | elapsed time per iteration (ms):\n",
            "Step Time : 5.74s GPU utilization: 97%\n",
            "validate step:  3  loss:  8.1234  memory: 50.00GiB(62.00%)  tps: 299\n",
            "completed step: 3, seconds:\n",
            "train_step() took long\n",
            "Experiment                       Status Time Mean (s) Time Std (s)\n",
            "pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs512_389757 Success 21.542 0.010 1600.74 0.78\n",
            "Training step time (seconds per step) | 2.66 | 2.66 | 2.67\n",
            "a prefix without an end: ",
            "\x1b[0m",
            "",
        ][..],
    )
    .prop_map(|text| text.as_bytes().to_vec());
    let junk = prop::collection::vec(any::<u8>(), 0..300);
    let trace = (1..1500_usize).prop_map(|lines| {
        b"n1:3:9 [7] NCCL INFO AllGather: opCount 2f sendbuff 0x7f count 1 [nranks=128] stream 0x5555630c58b0\n".repeat(lines)
    });
    prop_oneof![8 => known, 8 => junk, 1 => trace]
}

/// A log and where its chunks end.
#[derive(Clone)]
struct Case {
    format: Format,
    steps: Vec<Step>,
    log: Vec<u8>,
    chunks: Vec<usize>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?} in {:?}: {}", self.format, self.steps, self.chunks, self.log.escape_ascii())
    }
}

/// The formats that the parser reads.
const READ: [Format; 6] = [
    Format::Nemo1,
    Format::Nemo2,
    Format::MegatronBridge,
    Format::Torchtitan,
    Format::Maxtext,
    Format::Paxml,
];

fn case() -> impl Strategy<Value = Case> {
    let steps = prop::collection::vec(step(), 1..60);
    let after =
        prop::sample::select(&["", " ", "[rank3]: glued on", "[NeMo I 2025-04-11] glued on", "Epoch "][..]);
    let noise = prop::collection::vec((foreign(), after, any::<bool>()), 1..20);
    let chunks = prop::collection::vec(prop_oneof![1..10_usize, 1..5_000_usize, 60_000..70_000_usize], 1..20);
    (prop::sample::select(&READ[..]), steps, noise, chunks).prop_map(|(format, steps, noise, chunks)| {
        let rows = steps.iter().enumerate();
        let records = rows.flat_map(|(row, step)| records(format, row, steps.len(), step));
        let mut log = Vec::new();
        for (record, (before, after, carriage_return)) in records.zip(noise.iter().cycle()) {
            log.extend_from_slice(before);
            log.extend_from_slice(record.as_bytes());
            log.extend_from_slice(after.as_bytes());
            log.push(if *carriage_return { b'\r' } else { b'\n' });
        }
        Case { format, steps, log, chunks }
    })
}

fn in_chunks(log: &[u8], sizes: &[usize]) -> Log {
    let mut parser = Parser::new();
    let mut rest = log;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, later) = rest.split_at((*size).min(rest.len()));
        parser.feed(chunk);
        rest = later;
    }
    parser.finish()
}

fn column(get: impl Fn(usize) -> Option<f64>, count: usize) -> Vec<Option<f64>> {
    (0..count).map(get).collect()
}

fn expected(steps: &[Step], figure: impl Fn(&Step) -> f64) -> Vec<Option<f64>> {
    steps.iter().map(|step| Some(figure(step))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_steps_are_those_that_were_written(case in case()) {
        let Case { format, steps, log, chunks } = case;
        let count = steps.len();
        let log = in_chunks(&log, &chunks);
        prop_assert_eq!(log.format, Some(format));
        let first = format.first_label();
        prop_assert_eq!(&log.steps.label, &(first..first + count as u64).collect::<Vec<_>>());
        prop_assert_eq!((log.duplicates, log.restarts), (0, 0));

        let has_times = format != Format::Torchtitan;
        let times = column(|row| log.steps.step_time_s.get(row), count);
        if has_times {
            prop_assert_eq!(times, expected(&steps, |step| f64::from(step.time) / units(format)));
        } else {
            prop_assert!(log.steps.step_time_s.is_empty());
            prop_assert_eq!(
                column(|row| log.steps.tokens_per_s_per_gpu.get(row), count),
                expected(&steps, |step| f64::from(step.tokens))
            );
        }
        if format != Format::Paxml {
            prop_assert_eq!(column(|row| log.steps.loss.get(row), count), expected(&steps, |step| f64::from(step.loss) / 100.0));
        }
        if !matches!(format, Format::Paxml | Format::Nemo1) {
            prop_assert_eq!(
                column(|row| log.steps.tflops_per_gpu.get(row), count),
                expected(&steps, |step| f64::from(step.tflops) / 10.0)
            );
        }
        if matches!(format, Format::Nemo1 | Format::Nemo2 | Format::MegatronBridge) {
            prop_assert_eq!(
                log.steps.consumed_samples.get(count - 1),
                Some(256.0 * count as f64)
            );
            let planned = if format == Format::Nemo2 { count - 1 } else { count };
            prop_assert_eq!(log.planned_last, Some(planned as u64));
        }
    }

    #[test]
    fn chunks_do_not_matter(case in case(), cut in any::<prop::sample::Index>()) {
        // A cut log is a log too.
        let log = &case.log[..cut.index(case.log.len() + 1)];
        prop_assert_eq!(in_chunks(log, &case.chunks), parse(log));
    }

    #[test]
    fn the_score_is_plain_arithmetic(case in case(), from in 0..60_usize, length in 1..60_usize) {
        let first = case.format.first_label();
        let window = Window::labels(first + from as u64, first + (from + length - 1) as u64).unwrap();
        let log = parse(&case.log);
        let scored = score(&log, window, StdKind::Population);
        if from + length > case.steps.len() {
            prop_assert_eq!(scored.status, Status::Incomplete);
            prop_assert!(scored.reason.is_some());
        } else {
            prop_assert_eq!(scored.status, Status::Scored);
            prop_assert_eq!(scored.missing, 0);
            let inside = &case.steps[from..from + length];
            let (stat, unit) = match case.format {
                Format::Torchtitan => (scored.tokens_per_s_per_gpu, 1.0),
                format => (scored.step_time_s, units(format)),
            };
            let figure = |step: &Step| u64::from(if case.format == Format::Torchtitan { step.tokens } else { step.time });
            let n = length as u64;
            let sum: u64 = inside.iter().map(figure).sum();
            let squares: u128 = inside.iter().map(|step| u128::from(figure(step)).pow(2)).sum();
            let variance = (squares * u128::from(n) - u128::from(sum).pow(2)) as f64 / (n * n) as f64;
            let stat = stat.unwrap();
            prop_assert_eq!(stat.n, n);
            prop_assert!(close(stat.mean, sum as f64 / n as f64 / unit));
            prop_assert!((stat.std.unwrap() - variance.sqrt() / unit).abs() < 1e-6 * stat.mean);
        }
        prop_assert_eq!(json_and_back(&scored), scored);
    }

    #[test]
    fn any_bytes_have_a_score_with_a_reason_or_a_number(
        junk in prop::collection::vec(foreign(), 0..6), window in prop_oneof![Just("last"), Just("35-44")],
    ) {
        let log = parse(&junk.concat());
        let scored = score(&log, window.parse().unwrap(), StdKind::Sample);
        prop_assert!(scored.reason.is_some());
        prop_assert!(scored.step_time_s.is_none());
        prop_assert_eq!(json_and_back(&log), log);
    }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-12 * other.abs()
}

fn json_and_back<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

fn scored(log: &str, window: &str) -> (Log, Score) {
    let log = parse(log.as_bytes());
    let std_kind = log.format.map_or(StdKind::Sample, Format::std_kind);
    let score = score(&log, window.parse().unwrap(), std_kind);
    (log, score)
}

/// The documents' own example lines, scored as the documents do: 24.11, and 25.04 for Nemotron-4 and Llama 3.1.
#[test]
fn the_worked_lines_of_the_documents() {
    for (line, step_time_s, batch) in [
        (
            "Epoch 0: : 100%|██████████| 100/100 [07:57<00:00, reduced_train_loss=7.310, global_step=99.00, \
             consumed_samples=25600.0, train_step_timing in s=3.590]",
            3.59,
            None,
        ),
        (
            "Training epoch 0, iteration 49/49 | lr: 4.491e-06 | global_batch_size: 256 | global_step: 49 | \
             peak_memory_usage: 72972500992 | memory_allocated: 34466545664 | reduced_train_loss: 12.81 | \
             train_step_timing in s: 2.693 | consumed_samples: 12800",
            2.693,
            Some(256),
        ),
        (
            "Training epoch 0, iteration 49/49 | lr: 7.496e-06 | global_batch_size: 128 | global_step: 49 | \
             peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: 11.96 | \
             train_step_timing in s: 12.39 | consumed_samples: 6400",
            12.39,
            Some(128),
        ),
    ] {
        // As it stands in the log, and as `grep -r` prints it.
        for log in [format!("{line}\n"), format!("experiments/x/log-y.out:{line}")] {
            let (_, score) = scored(&log, "last");
            assert_eq!((score.status, score.reason), (Status::Scored, None));
            assert_eq!(
                score.step_time_s.map(|time| (time.mean, time.std, time.n)),
                Some((step_time_s, Some(0.0), 1))
            );
            assert_eq!(score.global_batch_size, batch);
        }
    }
}

/// The tables that the releases' scripts print hold means, not steps.
#[test]
fn the_tables_of_the_documents_are_no_steps() {
    let (log, score) = scored(
        "Train Step Timing and TFLOPS Analysis (iterations 35-44)\n\
         Experiment Status Time Mean (s) Time Std (s) TFLOPS_per_GPU Mean TFLOPS_per_GPU Std\n\
         pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs512_389757 Success 21.542 0.010 1600.74 0.78\n\
         pretrain_nemotronh_56b_fp8_gpus128_tp8_pp1_cp1_vpNone_mbs1_gbs768 Success 15.858 1.262 532.39 472.74\n\
         grep -r --include '*.out' train_step_timing experiments\n",
        "35-44",
    );
    assert!(log.steps.is_empty());
    assert_eq!(score.status, Status::NoData);
}

/// What Nsight and NeMo say as they begin to record: a profiled run is recognized by it, whatever its file is called.
#[test]
fn profiling_is_seen() {
    let steps =
        "Training epoch 0, iteration 0/49 | global_batch_size: 128 | train_step_timing in s: 12.39 |\n";
    assert!(!parse(steps.as_bytes()).profiled);
    for says in [
        "Capture range started in the application.",
        "[NeMo I 2025-06-01 12:00:00 nemo_logging:393] ====== Start nsys profiling ======",
    ] {
        let log = parse(format!("{steps}{says}\n{steps}").as_bytes());
        assert!(log.profiled, "{says}");
    }
}

/// The documents' own trace line: a traced run is recognized by it, whatever its file is called.
#[test]
fn a_trace_is_noticed() {
    let (log, score) = scored(
        "[7] NCCL INFO AllReduce: opCount 2 sendbuff 0x7ffb4713c200 recvbuff 0x7ffb4713c200 count 1 datatype 1 op 0 \
         root 0 comm 0x55556b100660 [nranks=128] stream 0x5555630c58b0\n\
         Training epoch 0, iteration 4/4 | train_step_timing in s: 12.39 | consumed_samples: 6400\n",
        "35-44",
    );
    assert!(log.traced);
    assert_eq!(score.status, Status::Incomplete);
    assert!(score.reason.is_some_and(|reason| reason.contains("without the trace")));
}
