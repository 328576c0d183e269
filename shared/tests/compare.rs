//! Runs beside each other: verdicts, what may be compared, configuration and curves.

use proptest::prelude::*;
use trainplan_shared::compare::{
    Comparison, ComparisonOptions, ConfigurationRow, ReferenceLevelKind, Verdict,
};
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::result::{
    CampaignRun, Comparability, Intake, JobFiles, LaunchRecord, PredictionRecord, RunResult, SettingsFile,
    SlurmJob, View, read, write,
};
use trainplan_shared::spec::Spec;
use uuid::Uuid;

const LLAMA_8B: &str = "pretrain_llama3.1_8b_fp8_8";

/// The log of a run of `experiment` as NeMo 2 prints it, with these step times.
fn run(experiment: &str, job: u32, times: &[f64]) -> RunResult {
    let mut intake = Intake::new(format!("log-acct.{experiment}_{job}_0.out"), &Spec::default());
    for (step, time) in times.iter().enumerate() {
        let line = format!(
            "Training epoch 0, iteration {step}/{} | global_step: {step} | reduced_train_loss: {} | train_step_timing in s: \
             {time}\n",
            times.len() - 1,
            12.0 - step as f64 / 100.0,
        );
        intake.feed(line.as_bytes());
    }
    intake.finish()
}

/// Fifty step times around `mean`, a slow start before them.
fn times(mean: f64) -> Vec<f64> {
    let wobble = |step: u32| f64::from(step * 7919 % 13) / 13.0 - 0.46;
    (0..50).map(|step| mean * (1.0 + 0.01 * wobble(step)) + if step < 5 { 20.0 } else { 0.0 }).collect()
}

/// The same as one of `nightly`'s runs.
fn carried(run: RunResult, number: u128, name: &str, repeat: u32) -> RunResult {
    let carried = CampaignRun {
        campaign: "nightly".into(),
        round: None,
        run: name.into(),
        repeat,
        cluster: "alpha".into(),
        jobs: vec![SlurmJob { id: "77".into(), nodes: Some("n1".into()), ..SlurmJob::default() }],
        launch: LaunchRecord {
            release: Some("25.04".into()),
            style: "launch-sh".into(),
            script_sha256: "0".repeat(64),
            steps: 50,
            comparable: Comparability { yes: true, reasons: Vec::new() },
        },
        plan: PredictionRecord {
            step_time_s: Interval { low: 9.0, mid: 10.0, high: 12.0 },
            memory_bytes: 6e10,
            capacity_bytes: 8e10,
            basis: "published".into(),
            calibration: "trainplan 0.1.0".into(),
        },
    };
    run.of_run(Uuid::from_u128(number), carried)
}

fn compare(runs: &[&RunResult]) -> Comparison {
    Comparison::of(runs, &ComparisonOptions::default())
}

#[test]
fn a_slower_run_is_told_with_its_interval() {
    let (one, other) = (run(LLAMA_8B, 1, &times(10.0)), run(LLAMA_8B, 2, &times(10.5)));
    let comparison = compare(&[&one, &other]);
    let against = &comparison.difference.each[0];
    assert_eq!((against.verdict, comparison.verdict), (Verdict::Slower, Some(Verdict::Slower)));
    assert!(comparison.comparable && comparison.reason.is_none());
    let change = against.step_time.unwrap();
    assert!((change.percent - 5.0).abs() < 1e-9, "{change:?}");
    assert!(change.low > Some(4.5) && change.high < Some(5.5), "{change:?}");
    assert!((against.tokens_per_s_per_gpu_percent.unwrap() + 100.0 / 21.0).abs() < 1e-9);
    assert!(against.effect_size > Some(3.0) && (against.median_percent.unwrap() - 5.0).abs() < 1e-9);
    assert!(against.text.starts_with("slower: step time +5.00 % (+4."), "{}", against.text);
    // The slow start is left out of the difference, and the same steps of both count.
    let steady = comparison.items[1].steady.unwrap();
    assert_eq!((steady.first, steady.last, steady.step_time_s.n), (10, 49, 40));
    assert!(steady.step_time_s.max < 11.0);

    let faster = compare(&[&other, &one]);
    assert_eq!(faster.verdict, Some(Verdict::Faster));
    assert!(faster.difference.each[0].text.starts_with("faster: step time −4.76 %"));
}

#[test]
fn a_slow_phase_makes_a_comparison_inconclusive_and_is_the_reason() {
    let usual = |step: u32| 4.6 * (1.0 + 0.005 * (f64::from(step * 7919 % 13) / 13.0 - 0.46));
    let steady: Vec<f64> = (0..120).map(usual).collect();
    let slow = |step: u32| usual(step) * if (70..=90).contains(&step) { 1.4 } else { 1.0 };
    let slow: Vec<f64> = (0..120).map(slow).collect();
    let (steady, slow) = (run(LLAMA_8B, 1, &steady), run(LLAMA_8B, 2, &slow));
    let comparison = compare(&[&steady, &slow]);
    assert_eq!(comparison.verdict, Some(Verdict::Inconclusive));
    let text = &comparison.difference.each[0].text;
    assert!(text.starts_with("inconclusive: step time +7."), "{text}");
    let phase = "Steps 70–90 took 40 % longer than the others (4.6 s).";
    assert!(text.ends_with(&format!(" %). {phase}")), "{text}");
    assert!(comparison.difference.each[0].comparable);
    let turned = compare(&[&slow, &steady]);
    assert!(turned.difference.each[0].text.ends_with(&format!("The reference: {phase}")));
}

#[test]
fn small_or_uncertain_differences_count_as_none() {
    let one = run(LLAMA_8B, 1, &times(10.0));
    let small = compare(&[&one, &run(LLAMA_8B, 2, &times(10.05))]);
    assert_eq!(small.verdict, Some(Verdict::NoDifference));
    let text = &small.difference.each[0].text;
    assert!(text.starts_with("no difference of 1 % or more: step time +0.50 %"), "{text}");

    let strict = ComparisonOptions { margin_percent: 0.1, ..ComparisonOptions::default() };
    let strict = Comparison::of(&[&one, &run(LLAMA_8B, 2, &times(10.05))], &strict);
    assert_eq!(strict.verdict, Some(Verdict::Slower));

    let same = compare(&[&one, &one]);
    assert_eq!(same.verdict, Some(Verdict::NoDifference));
    assert!(same.difference.each[0].text.starts_with("no significant difference: step time +0.00 %"));
    assert_eq!(same.difference.each[0].notes, ["This is the same run as the reference."]);
    assert_eq!(same.items[1].label, format!("{LLAMA_8B} (2)"));
}

#[test]
fn different_workloads_are_reported_as_not_comparable() {
    let (one, other) = (run(LLAMA_8B, 1, &times(10.0)), run("pretrain_llama3.1_8b_fp8_16", 2, &times(10.2)));
    let comparison = compare(&[&one, &other]);
    assert_eq!((comparison.verdict, comparison.comparable), (Some(Verdict::NotComparable), false));
    let against = &comparison.difference.each[0];
    let unlike: Vec<&str> = against.unlike.iter().map(|unlike| unlike.key.as_str()).collect();
    assert_eq!(unlike, ["gbs", "gpus"]);
    let reason = comparison.reason.unwrap();
    assert!(
        reason.contains("Different workload: GBS 256 (reference 128), GPUs 16 (reference 8)."),
        "{reason}"
    );
    // With twice the batch on twice the GPUs, the tokens per second per GPU can still be compared.
    let tokens = against.tokens_per_s_per_gpu_percent.unwrap();
    assert!((tokens - 100.0 * (10.0 / 10.2 - 1.0)).abs() < 1e-9, "{tokens}");
    assert!(against.text.contains("step time +2.00 %"), "{}", against.text);

    let unknown = run("custom", 3, &times(10.0));
    let comparison = compare(&[&one, &unknown]);
    let reason = comparison.reason.unwrap();
    let all = "Model, Layers, Sequence length, GBS, GPU, GPUs, Precision.";
    assert!(reason.contains(&format!("Unknown for this run: {all}")), "{reason}");
    let other_way = compare(&[&unknown, &one]).reason.unwrap();
    assert!(other_way.contains(&format!("Unknown for the reference: {all}")), "{other_way}");
    let neither = compare(&[&unknown, &run("other", 4, &times(10.0))]).reason.unwrap();
    assert!(
        neither.contains("Unknown for both runs: Model, Sequence length, GBS, GPU, GPUs, Precision."),
        "{neither}"
    );
    assert!(!reason.contains("--"), "each front end says how to set the unknown fields: {reason}");
    assert_eq!(comparison.difference.each[0].unknown_fields()[..2], [Field::Model, Field::Layers]);
}

#[test]
fn logs_that_name_no_model_are_compared_if_they_print_the_same_batch() {
    let unnamed = |name: &str, gbs: u32, mean: f64| {
        let mut intake = Intake::new(name, &Spec::default());
        for (step, time) in times(mean).iter().enumerate() {
            let line = format!(
                "Training epoch 0, iteration {step}/49 | global_batch_size: {gbs} | train_step_timing in s: {time}\n"
            );
            intake.feed(line.as_bytes());
        }
        intake.finish()
    };
    let before = unnamed("before.log", 256, 10.0);
    let comparison = compare(&[&before, &unnamed("after.log", 256, 10.6)]);
    assert_eq!((comparison.verdict, comparison.comparable), (Some(Verdict::Slower), true));
    let assumed =
        "Unknown for both runs and assumed to be the same: Model, Sequence length, GPU, GPUs, Precision.";
    assert_eq!(comparison.difference.each[0].notes, [assumed]);

    let other_batch = compare(&[&before, &unnamed("after.log", 128, 10.6)]);
    assert_eq!(other_batch.verdict, Some(Verdict::NotComparable));
    let reason = other_batch.reason.unwrap();
    assert!(reason.contains("GBS 128 (reference 256). Unknown for both runs: Model,"), "{reason}");
}

#[test]
fn another_layout_or_cluster_is_what_comparisons_are_for() {
    let said = |tp: &str| {
        let spec = ["recipe=llama3.1-8b/h100/fp8/8@25.04", tp].map(|text| text.split_once('=').unwrap());
        let mut said = Spec::default();
        for (flag, text) in spec {
            said.set(trainplan_shared::field::Field::from_flag(flag).unwrap(), text);
        }
        let mut intake = Intake::new("a.log", &said);
        for (step, time) in times(10.0).iter().enumerate() {
            let line = format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {time}\n");
            intake.feed(line.as_bytes());
        }
        intake.finish()
    };
    let comparison = compare(&[&said("tp=1"), &said("tp=2")]);
    assert!(comparison.comparable, "{:?}", comparison.reason);
    let first = &comparison.configuration[0];
    assert_eq!((first.key.as_str(), first.differs), ("tp", true));
    assert_eq!(first.values, [Some("1".to_owned()), Some("2".to_owned())]);
}

#[test]
fn repeats_tell_how_sure_a_difference_between_runs_is() {
    let repeat = |number, repeat, mean| carried(run(LLAMA_8B, 9, &times(mean)), number, "a", repeat);
    let other = carried(run(LLAMA_8B, 9, &times(10.2)), 9, "b", 1);
    let one = repeat(1, 1, 10.0);
    assert_eq!(compare(&[&one, &other]).verdict, Some(Verdict::Slower));

    let repeats = [repeat(2, 2, 10.3), repeat(3, 3, 9.8)];
    let comparison = compare(&[&one, &other, &repeats[0], &repeats[1]]);
    let run_to_run = comparison.difference.run_to_run.unwrap();
    assert_eq!((run_to_run.runs, run_to_run.freedom), (3, 2.0));
    assert!((2.0..3.0).contains(&run_to_run.percent), "{run_to_run:?}");
    assert_eq!(comparison.difference.each[0].verdict, Verdict::Inconclusive);
    assert!(comparison.difference.method.contains("Run-to-run variation of "));
    let labels: Vec<&str> = comparison.items.iter().map(|item| item.label.as_str()).collect();
    assert_eq!(labels, ["nightly/a#1", "nightly/b#1", "nightly/a#2", "nightly/a#3"]);
}

/// A run of the same recipe with another tensor-parallel size, as its reader says.
fn with_tp(tp: &str, job: u32, mean: f64) -> RunResult {
    let said = Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04").with(Field::Tp, tp);
    run(LLAMA_8B, job, &times(mean)).identified(&said)
}

#[test]
fn runs_with_the_same_settings_are_pooled_as_repeats() {
    let (old, new) = ([10.0, 10.1, 9.95], [10.6, 10.5, 10.7]);
    let old: Vec<RunResult> = old.iter().zip(1..).map(|(mean, job)| with_tp("1", job, *mean)).collect();
    let new: Vec<RunResult> = new.iter().zip(11..).map(|(mean, job)| with_tp("2", job, *mean)).collect();
    let all: Vec<&RunResult> = old.iter().chain(&new).collect();
    let comparison = compare(&all);
    let [first, second] = comparison.pooled.as_slice() else { panic!("{:?}", comparison.pooled) };
    assert_eq!((first.items.as_slice(), second.items.as_slice()), (&[0, 1, 2][..], &[3, 4, 5][..]));
    assert_eq!(second.label, format!("{LLAMA_8B} (job 11) + 2 repeats"));
    assert!(first.against.is_none() && first.low_s < first.mean_s && first.mean_s < first.high_s);
    // Standard deviations of the logarithms: 0.763 % and 0.943 %; each from three runs.
    let run_to_run = comparison.difference.run_to_run.unwrap();
    assert_eq!((run_to_run.runs, run_to_run.freedom), (6, 4.0));
    assert!((run_to_run.percent - 0.858).abs() < 0.005, "{run_to_run:?}");
    assert!((first.run_to_run_percent.unwrap() - 0.763).abs() < 0.005, "{first:?}");
    let against = second.against.as_ref().unwrap();
    let change = against.step_time.unwrap();
    // exp(0.05682 ± 2.776 · 0.00858 · √(2/3)).
    assert!((change.percent - 5.83).abs() < 0.05 && (change.low.unwrap() - 3.80).abs() < 0.05, "{change:?}");
    assert_eq!((against.verdict, comparison.verdict), (Verdict::Slower, Some(Verdict::Slower)));
    assert!(
        comparison.difference.method.contains("Run-to-run variation of 0.86 %, from 6 runs, is included.")
    );

    // The order of the runs of a mapping doesn't matter, and a run listed twice counts once.
    let again: Vec<&RunResult> = [&old[0], &new[2], &old[2], &new[0], &old[1], &new[1], &new[1]].into();
    let again = compare(&again);
    assert_eq!(again.pooled[1].items, [1, 3, 5, 6]);
    let percent =
        |comparison: &Comparison| comparison.pooled[1].against.as_ref().unwrap().step_time.unwrap().percent;
    assert!((percent(&again) - percent(&comparison)).abs() < 1e-9);
}

#[test]
fn two_runs_alike_are_compared_and_three_show_their_spread() {
    let runs: Vec<RunResult> =
        [10.0, 10.4, 10.1].iter().zip(1..).map(|(mean, job)| with_tp("1", job, *mean)).collect();
    let two = compare(&[&runs[0], &runs[1]]);
    assert_eq!((two.verdict, two.pooled.len(), two.difference.run_to_run), (Some(Verdict::Slower), 0, None));
    let three = compare(&[&runs[0], &runs[1], &runs[2]]);
    assert_eq!(three.pooled.len(), 1);
    assert!(three.pooled[0].against.is_none() && !three.difference.includes_run_to_run);
    assert_eq!(
        three.pooled[0].label, "3 runs with the same settings",
        "each of them is compared with the first"
    );
    assert_eq!(three.difference.each[0].verdict, Verdict::Slower);
    assert!(three.difference.method.contains("vary by 2.04 %"), "{}", three.difference.method);
}

#[test]
fn the_reader_may_say_which_runs_are_repeats() {
    let mean = |job: u32, mean: f64| run(LLAMA_8B, job, &times(mean));
    let runs = [mean(1, 10.0), mean(2, 10.1), mean(3, 11.0), mean(4, 11.1)];
    let all: Vec<&RunResult> = runs.iter().collect();
    let sides = |second_side| {
        Comparison::of(&all, &ComparisonOptions { second_side, ..ComparisonOptions::default() })
    };
    let [first, second] = &sides(Some(2)).pooled[..] else { panic!("two sides") };
    assert_eq!((first.items.as_slice(), second.items.as_slice()), (&[0, 1][..], &[2, 3][..]));
    assert_eq!(second.against.as_ref().unwrap().verdict, Verdict::Slower);
    assert_eq!(sides(None).pooled.len(), 1, "their settings are the same");
    // Another workload is of no side's mean.
    let other = run("pretrain_llama3.1_8b_fp8_16", 9, &times(10.0));
    let with_other = [&runs[0], &runs[1], &runs[2], &runs[3], &other];
    let options = ComparisonOptions { second_side: Some(2), ..ComparisonOptions::default() };
    let comparison = Comparison::of(&with_other, &options);
    assert_eq!(comparison.pooled[1].items, [2, 3]);
    assert_eq!(comparison.verdict, Some(Verdict::Mixed));
}

#[test]
fn the_hashes_of_logs_only_tell_them_apart() {
    let (one, other) = (run(LLAMA_8B, 1, &times(10.0)), run(LLAMA_8B, 2, &times(10.5)));
    let hashes = |runs: &[&RunResult]| {
        let only = compare(runs).configuration.into_iter().filter(ConfigurationRow::only_tells_logs_apart);
        only.map(|row| row.key).collect::<Vec<_>>()
    };
    assert_eq!(hashes(&[&one, &other]), ["sha256"]);
    assert!(hashes(&[&one, &one]).is_empty() && hashes(&[&one]).is_empty());
}

#[test]
fn what_the_file_tells_of_its_launch_is_configuration() {
    let one = carried(run(LLAMA_8B, 1, &times(10.0)), 1, "a", 1);
    let other = run(LLAMA_8B, 2, &times(10.0));
    let comparison = compare(&[&one, &other]);
    let setting =
        |key: &str| comparison.configuration.iter().find(|setting| setting.key == key).unwrap().clone();
    assert_eq!(setting("launch.steps").values, [Some("50".to_owned()), None]);
    assert_eq!(setting("jobs.1.nodes").values, [Some("n1".to_owned()), None]);
    assert!(!setting("model").differs);
    let differing: Vec<bool> = comparison.configuration.iter().map(|setting| setting.differs).collect();
    assert!(differing.is_sorted_by(|one, next| one >= next));
    let plan = comparison.curves.levels.iter().find(|level| level.kind == ReferenceLevelKind::Plan).unwrap();
    assert_eq!((plan.item, plan.low_s, plan.high_s), (0, Some(9.0), Some(12.0)));
    assert_eq!(comparison.items[0].plan.unwrap().within, Some(true));
    // A plan, a prediction for the run without one, and two published ones.
    assert_eq!(comparison.curves.levels.len(), 4);
}

#[test]
fn megatron_bridges_configurations_are_compared_by_key() {
    let with = |job: u32, config: &str| {
        let file = SettingsFile::BridgeConfig;
        let job_files = JobFiles::default().with(file, file.read(config.as_bytes()));
        RunResult { job: job_files, ..run(LLAMA_8B, job, &times(10.0)) }
    };
    let one = with(1, "ddp:\n  overlap_grad_reduce: true\nmodel:\n  seq_length: 8192\n");
    let other = with(2, "ddp:\n  overlap_grad_reduce: false\nmodel:\n  fp4: null\n  seq_length: 8192\n");
    let listed = |runs: &[&RunResult]| -> Vec<(String, Vec<Option<String>>)> {
        let rows = compare(runs).configuration.into_iter();
        let of_config = rows.filter(|row| row.key.starts_with("config."));
        of_config.map(|row| (row.label, row.values)).collect()
    };
    let values = ["true", "false"].map(|value| Some(value.to_owned())).to_vec();
    assert_eq!(listed(&[&one, &other]), [("ddp.overlap_grad_reduce".to_owned(), values)]);
    // A run whose folder had no configuration differs in nothing that is known.
    assert_eq!(listed(&[&one, &run(LLAMA_8B, 3, &times(10.0))]), []);
    assert_eq!(read(write(&one).unwrap().as_bytes()).unwrap(), one);
}

#[test]
fn launches_and_environments_are_compared_by_key() {
    let with = |job: u32, launched: &str, environment: &str| {
        let (llmb, variables) = (SettingsFile::LlmbConfig, SettingsFile::Environment);
        let job_files = JobFiles::default()
            .with(llmb, llmb.read(launched.as_bytes()))
            .with(variables, variables.read(environment.as_bytes()));
        RunResult { job: job_files, ..run(LLAMA_8B, job, &times(10.0)) }
    };
    let one = with(1, "container_info:\n  images:\n  - nemo:26.02\n", "NCCL_ALGO=Ring\nNCCL_VERSION=2.28\n");
    let other = with(2, "container_info:\n  images:\n  - nemo:26.04\n", "NCCL_VERSION=2.28\nUCX_TLS=rc\n");
    let neither = run(LLAMA_8B, 3, &times(10.0));
    let listed = |runs: &[&RunResult]| -> Vec<(String, Vec<Option<String>>)> {
        let rows = compare(runs).configuration.into_iter();
        let of_files = rows.filter(|row| row.key.starts_with("llmb.") || row.key.starts_with("env."));
        of_files.map(|row| (row.label, row.values)).collect()
    };
    let row = |label: &str, values: [Option<&str>; 3]| {
        (label.to_owned(), values.map(|value| value.map(str::to_owned)).to_vec())
    };
    assert_eq!(
        listed(&[&one, &neither, &other]),
        [
            row("container_info.images", [Some("nemo:26.02"), None, Some("nemo:26.04")]),
            // The whole environment is known, so that what it lacks isn't set.
            row("NCCL_ALGO", [Some("Ring"), None, Some("not set")]),
            row("UCX_TLS", [Some("not set"), None, Some("rc")]),
        ]
    );
    assert_eq!(listed(&[&one, &neither]), []);
    assert_eq!(read(write(&one).unwrap().as_bytes()).unwrap(), one);
}

#[test]
fn runs_without_a_score_or_with_profiling_are_not_comparable() {
    let one = run(LLAMA_8B, 1, &times(10.0));
    for (other, why) in [
        (run(LLAMA_8B, 2, &[]), "It was not scored"),
        (run("pretrain_llama3.1_8b_fp8_8_nsys", 3, &times(10.0)), "Nsight Systems"),
        (run(LLAMA_8B, 4, &[10.0]), "One step"),
    ] {
        let comparison = compare(&[&one, &other]);
        assert_eq!(comparison.verdict, Some(Verdict::NotComparable), "{why}");
        let reason = comparison.reason.unwrap();
        assert!(reason.contains(why), "{reason}");
        let turned = compare(&[&other, &one]);
        assert_eq!(turned.verdict, Some(Verdict::NotComparable), "{why}");
    }
    let alone = compare(&[&one]);
    assert_eq!((alone.verdict, alone.comparable), (None, true));
    assert_eq!(alone.items[0].label, format!("{LLAMA_8B} (job 1)"));
    // A log that was read before it was whole is another run of the same job.
    let (torn, next) = (run(LLAMA_8B, 1, &[10.0]), run(LLAMA_8B, 2, &times(10.0)));
    let labels = compare(&[&one, &torn, &next]).items.into_iter().map(|item| item.label);
    let wanted = ["(job 1)", "(job 1) (2)", "(job 2)"].map(|end| format!("{LLAMA_8B} {end}"));
    assert_eq!(labels.collect::<Vec<_>>(), wanted);
    // Logs without a job in the directory of their experiment.
    let files = ["before", "after"].map(|file| {
        let path = format!("experiments/nemotron4_340b_fp8_gpus256/{file}.log");
        let mut intake = Intake::new(path, &Spec::default());
        intake.feed(
            format!("Training epoch 0, iteration 0/49 | train_step_timing in s: 12 | {file}\n").as_bytes(),
        );
        intake.finish()
    });
    let labels = compare(&[&files[0], &files[1]]).items.into_iter().map(|item| item.label);
    assert_eq!(labels.collect::<Vec<_>>(), ["before", "after"]);
    let nothing = compare(&[]);
    assert_eq!((nothing.verdict, nothing.comparable), (None, false));
}

#[test]
fn a_window_that_is_asked_for_is_the_one_that_counts() {
    let (one, other) = (run(LLAMA_8B, 1, &times(10.0)), run(LLAMA_8B, 2, &times(10.5)));
    let view = View { window: Some("35-44".parse().unwrap()), ..View::default() };
    let comparison =
        Comparison::of(&[&one, &other], &ComparisonOptions { view, ..ComparisonOptions::default() });
    let steady = comparison.items[0].steady.unwrap();
    assert_eq!((steady.first, steady.last, steady.step_time_s.n), (35, 44, 10));
    assert_eq!(comparison.items[0].step_time_s.map(|stat| stat.mean), Some(steady.step_time_s.mean));
    assert_eq!(comparison.verdict, Some(Verdict::Slower));
}

const GOLDEN: &str = include_str!("fixtures/version-1.compare.json");

#[test]
fn the_fixture_compared_with_a_changed_copy_of_itself() {
    let one = read(include_bytes!("fixtures/version-1.result.json")).unwrap();
    let text = write(&one).unwrap().replace("[12.41,12.4,12.39]", "[13.41,13.4,13.38]");
    let other = read(text.as_bytes()).unwrap();
    let made = serde_json::to_string_pretty(&compare(&[&one, &other])).unwrap() + "\n";
    if std::env::var_os("TRAINPLAN_BLESS").is_some() {
        std::fs::write("tests/fixtures/version-1.compare.json", &made).unwrap();
        return;
    }
    assert_eq!(made, GOLDEN, "TRAINPLAN_BLESS=1 writes it anew");
    let reread: Comparison = serde_json::from_str(GOLDEN).unwrap();
    assert_eq!(serde_json::to_string_pretty(&reread).unwrap() + "\n", GOLDEN);
}

fn any_run() -> impl Strategy<Value = RunResult> {
    let times = prop::collection::vec(
        prop_oneof![5 => 0.001..100.0_f64, 1 => Just(f64::NAN), 1 => Just(0.0), 1 => Just(f64::INFINITY), 1 => Just(1e300)],
        0..40,
    );
    let experiment = prop_oneof![
        Just(LLAMA_8B),
        Just("pretrain_llama3.1_8b_fp8_16"),
        Just("x"),
        Just("pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs512")
    ];
    (experiment, times, 0..4_u32, any::<bool>()).prop_map(|(experiment, times, job, ours)| {
        let run = run(experiment, job, &times);
        let id = run.id.as_u128();
        if ours { carried(run, id, "a", job) } else { run }
    })
}

proptest! {
    #[test]
    fn anything_can_be_compared(runs in prop::collection::vec(any_run(), 0..5), points in 0..50_usize, warm_up in 0..99_u64) {
        let runs: Vec<&RunResult> = runs.iter().collect();
        let options = ComparisonOptions { points, warm_up_steps: warm_up, ..ComparisonOptions::default() };
        let comparison = Comparison::of(&runs, &options);
        prop_assert_eq!(comparison.items.len(), runs.len());
        prop_assert_eq!(comparison.difference.each.len(), runs.len().saturating_sub(1));
        prop_assert!(comparison.configuration.iter().all(|setting| setting.values.len() == runs.len()));
        let json = serde_json::to_string(&comparison).unwrap();
        let again = serde_json::from_str::<Comparison>(&json).unwrap();
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), json);
        prop_assert_eq!(comparison, Comparison::of(&runs, &options));
    }

    #[test]
    fn the_order_of_the_others_changes_nothing_but_the_order(mut runs in prop::collection::vec(any_run(), 2..5)) {
        let told = |runs: &[RunResult]| {
            let comparison = compare(&runs.iter().collect::<Vec<_>>());
            let mut told: Vec<_> = comparison
                .difference
                .each
                .iter()
                .map(|against| (comparison.items[against.item].id.clone(), against.text.clone()))
                .collect();
            told.sort();
            (told, comparison.verdict)
        };
        let before = told(&runs);
        runs[1..].reverse();
        prop_assert_eq!(told(&runs), before);
    }

    #[test]
    fn turned_around_slower_is_faster(one in any_run(), other in any_run()) {
        let (there, back) = (compare(&[&one, &other]), compare(&[&other, &one]));
        let sides = (there.verdict.unwrap(), back.verdict.unwrap());
        let opposite = match sides.0 {
            Verdict::Slower => Verdict::Faster,
            Verdict::Faster => Verdict::Slower,
            same => same,
        };
        // What is just at the margin one way may be just below it the other way.
        let margin = there.difference.each[0].step_time.is_some_and(|change| (0.9..1.1).contains(&change.percent.abs()));
        prop_assert!(margin || sides.1 == opposite, "{:?}", sides);
    }
}
