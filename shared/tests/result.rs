//! Results: what a log is a run of, what is reported of it, and the file that keeps it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use trainplan_shared::catalog::{Catalog, Recipe, Release};
use trainplan_shared::field::Field;
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{FileError, Intake, Report, RunResult, Source, View, read, write};
use trainplan_shared::spec::Spec;

fn run_said(path: &str, log: &str, said: &Spec) -> RunResult {
    let mut intake = Intake::new(path, said);
    intake.feed(log.as_bytes());
    intake.finish()
}

fn run(path: &str, log: &str) -> RunResult {
    run_said(path, log, &Spec::default())
}

fn report(path: &str, log: &str) -> Report {
    Report::of(&run(path, log), &View::default())
}

/// Fifty steps as NeMo 2 prints them, of `time` each, of a batch of `gbs`.
fn nemo2(gbs: u32, time: &str, more: &str) -> String {
    let step = |label: u64| {
        format!(
            "Training epoch 0, iteration {label}/49 | global_batch_size: {gbs} | global_step: {label} | \
             reduced_train_loss: 11.5 | train_step_timing in s: {time}{more} | consumed_samples: {}\n",
            u64::from(gbs) * (label + 1)
        )
    };
    (0..50).map(step).collect()
}

/// As NeMo 1 prints them.
fn nemo1(time: &str) -> String {
    format!(
        "Epoch 0: : 100%|##########| 50/50 [07:57<00:00, reduced_train_loss=7.310, global_step=49.00, \
         train_step_timing in s={time}]\n"
    )
}

/// As Megatron-Bridge prints them, each `ms` milliseconds long.
fn bridge(gbs: u32, ms: &str) -> String {
    let step = |step: u64| {
        format!(
            "iteration {step}/50 | consumed samples: {} | elapsed time per iteration (ms): {ms} | global batch \
             size: {gbs} | lm loss: 1.2E+01 |\n",
            u64::from(gbs) * step
        )
    };
    (1..51).map(step).collect()
}

/// The name that a recipe's release gives its log, and its log.
fn log_of(recipe: &Recipe) -> (String, String) {
    let id = &recipe.id;
    let (family, size) = id.model.rsplit_once('-').unwrap();
    let family = family.replace('-', "");
    let (dtype, gpus) = (id.dtype, id.gpus);
    let degrees = &recipe.degrees;
    let vp = match degrees.vp {
        1 => "None".to_owned(),
        vp => vp.to_string(),
    };
    let layout = format!(
        "gpus{gpus}_tp{}_pp{}_cp{}_vp{vp}_mbs{}_gbs{}",
        degrees.tp, degrees.pp, degrees.cp, recipe.mbs, recipe.gbs
    );
    match id.release {
        Release::R24_11 => (
            format!("results/24.11/{dtype}/{size}/{gpus}/log-nemo_{family}_{size}_{gpus}_389757.out"),
            nemo1("350"),
        ),
        Release::R25_04 => (
            format!("experiments/x/log-acct.pretrain_{family}_{size}_{dtype}_{gpus}_389757_0.out"),
            nemo2(recipe.gbs, "350", ""),
        ),
        Release::R25_05 | Release::R25_12 => (
            format!("log-acct-x.pretrain_{family}_{size}_{dtype}_{layout}_389757_0.out"),
            nemo2(recipe.gbs, "350", " | TFLOPS_per_GPU: 800"),
        ),
        Release::R26_06_01 => {
            let id = id.to_string();
            let names = include_str!("launch/releases/26.06.01.tsv").lines();
            let of_recipe =
                names.map(|line| line.split('\t').collect::<Vec<_>>()).find(|cells| cells[0] == id);
            let experiment = of_recipe.unwrap()[1];
            (format!("log-acct-x.{experiment}_389757_0.out"), bridge(recipe.gbs, "350000.0"))
        }
        Release::BridgeMain | Release::Bridge060 => {
            let version = if id.release == Release::Bridge060 { "_v060" } else { "" };
            let id = id.to_string().replace("bridge-0.6.0", "bridge-main");
            let names = include_str!("launch/releases/bridge-main.tsv").lines();
            let of_recipe =
                names.map(|line| line.split('\t').collect::<Vec<_>>()).find(|cells| cells[0] == id);
            let name = of_recipe.unwrap()[1].replace("_config", version);
            (
                format!("experiments/{name}/{name}_1764000000/training/log-acct-x.training_389757_0.out"),
                bridge(recipe.gbs, "350000.0"),
            )
        }
    }
}

#[test]
fn a_gpu_type_is_said_for_the_logs_that_leave_it_open() {
    let said = Spec::default().with(Field::Gpu, "gb200");
    let known = Catalog::embedded().recipe("llama3.1-70b/h100/fp8/256@25.04").unwrap();
    let (path, log) = log_of(known);
    let told = Report::of(&run_said(&path, &log, &said), &View::default());
    assert_eq!((told.recipe, told.peak_tflops), (Some(known.id.to_string()), Some(1979.0)));
    // With the recipe named, it is meant for that very log.
    let said = said.with(Field::Recipe, known.id.to_string());
    let told = Report::of(&run_said(&path, &log, &said), &View::default());
    assert_eq!((told.recipe, told.peak_tflops), (None, Some(4900.0)));
}

#[test]
fn what_can_not_be_compared_says_why() {
    let recipe = Catalog::embedded().recipe("llama3.1-405b/h100/fp8/512@25.04").unwrap();
    let (path, log) = log_of(recipe);
    let run = run_said(&path, &log, &Spec::default());
    let other = Report::of(&run, &View { window: Some("35-44".parse().unwrap()), ..View::default() });
    assert!(other.notes.iter().any(|note| note.contains("its release scores last")), "{:?}", other.notes);

    let fast = log.replace("in s: 350", "in s: 0.1");
    let fast = Report::of(&run_said(&path, &fast, &Spec::default()), &View::default());
    assert!(
        fast.status == Status::Implausible
            && !fast.comparable.yes
            && fast.comparable.reasons[0].contains("A step time of 0.1 s is impossible"),
        "{:?}",
        fast.comparable
    );

    let short = log.lines().next().unwrap();
    let short = Report::of(&run_said(&path, short, &Spec::default()), &View::default());
    assert!(
        !short.comparable.yes && short.comparable.reasons == ["It was not scored."],
        "{:?}",
        short.comparable
    );
}

#[test]
fn the_logs_of_every_recipe_are_known_for_what_they_are() {
    for recipe in Catalog::embedded().recipes() {
        let (path, log) = log_of(recipe);
        let found = report(&path, &log);
        assert_eq!(found.status, Status::Scored, "{path}");
        let tokens_per_s = f64::from(recipe.seq_len) * f64::from(recipe.gbs) / 350.0;
        assert_eq!(found.tokens_per_s, Some(tokens_per_s), "{path}");
        // The names of 25.12 and 26.06.01 do not tell one GPU type from another.
        let said = Spec::default().with(Field::Gpu, &recipe.id.gpu);
        let told = Report::of(&run_said(&path, &log, &said), &View::default());
        for known in [&found, &told] {
            if known.recipe.is_none() {
                assert!(known.notes[0].contains("GPU type") && known.mfu.is_none(), "{:?}", known.notes);
            } else {
                assert_eq!(known.recipe, Some(recipe.id.to_string()), "{path}");
            }
        }
        assert!(told.mfu.is_some(), "{path}: {:?}", told.notes);
        let is_open = recipe.degrees.pp == 4 && recipe.id.release == Release::R25_12;
        assert!(found.recipe.is_some() || is_open || recipe.id.release == Release::R26_06_01);

        let baseline = Catalog::embedded().reference(recipe).map(|reference| reference.baseline);
        assert_eq!(
            told.baseline.map(|baseline| (baseline.step_time_s, baseline.speed_percent)),
            baseline
                .map(|it| (it.step_time_s, Some(100.0 * it.step_time_s / told.step_time_s.unwrap().mean))),
            "{path}"
        );
    }
}

#[test]
fn windows_are_those_of_the_release() {
    let window = |path: &str, log: &str| report(path, log).window.unwrap().to_string();
    assert_eq!(window("log-a.pretrain_llama3.1_70b_fp8_256_12345_0.out", &nemo2(512, "10", "")), "49-49");
    assert_eq!(window("anything.out", &nemo2(512, "10", "")), "49-49", "before TFLOPS were printed");
    assert_eq!(window("anything.out", &nemo2(512, "10", " | TFLOPS_per_GPU: 800")), "35-44");
    assert_eq!(window("anything.out", &nemo1("3.5")), "50-50");
    let hybrid = "log-a.pretrain_nemotronh_56b_fp8_gpus256_tp8_pp1_cp1_vpNone_mbs1_gbs768_7_0.out";
    assert_eq!(window(hybrid, &nemo2(768, "15.892", " | TFLOPS_per_GPU: 500")), "11-44");
    let own = View { window: Some("1-4".parse::<Window>().unwrap()), ..View::default() };
    let own = Report::of(&run(hybrid, &nemo2(768, "15.892", "")), &own);
    assert_eq!(own.window.unwrap().to_string(), "1-4");
}

#[test]
fn what_the_log_prints_counts_more_than_the_recipe() {
    // The sample row of the document of 25.05: twice the batch of the matrix.
    let path = "log-a.pretrain_nemotronh_56b_fp8_gpus128_tp8_pp1_cp1_vpNone_mbs1_gbs768_7_0.out";
    let found = report(path, &nemo2(768, "15.858", " | TFLOPS_per_GPU: 532.39"));
    assert_eq!((found.recipe, found.baseline), (None, None));
    assert!(found.comparable.yes && found.mfu.is_some());
    assert_eq!(found.tokens_per_s.map(f64::round), Some(396_737.0));
    assert_eq!(found.tflops_per_gpu, None);
    // With half the batch, the step time would be as predicted.
    assert!(found.notes[0].starts_with("The run is 1.91 times as fast as predicted"), "{:?}", found.notes);
    assert!(found.notes[1].ends_with("with GBS 768 instead of 384."), "{:?}", found.notes);
    assert!(found.notes[2].contains("TFLOPS are left out"), "{:?}", found.notes);
}

#[test]
fn a_run_of_no_published_size_starts_from_the_nearest() {
    let path = "log-a.pretrain_llama3.1_405b_fp8_4096_7_0.out";
    for gbs in [1024, 2048] {
        let found = report(path, &nemo2(gbs, "10", ""));
        assert_eq!(found.scenario.get(Field::Recipe), Some("llama3.1-405b/h100/fp8/2048@25.04"));
        assert_eq!(found.scenario.get(Field::Gpus), Some("4096"));
        assert_eq!(
            found.tokens_per_s,
            Some(8192.0 * f64::from(gbs) / 10.0),
            "as printed, not as it would follow"
        );
        assert_eq!((found.recipe, found.baseline, found.mfu.is_some()), (None, None, true));
    }
    // At 256 GPUs there is neither a proxy nor the whole model.
    let found = report("log-a.pretrain_llama3.1_405b_fp8_256_7_0.out", &nemo2(128, "10", ""));
    assert_eq!(found.scenario.get(Field::Recipe), Some("llama3.1-405b/h100/fp8/512@25.04"));
}

#[test]
fn a_name_and_a_log_that_disagree_are_not_compared() {
    let path = "log-a.pretrain_nemotronh_56b_fp8_gpus256_tp8_pp1_cp1_vpNone_mbs1_gbs768_7_0.out";
    let found = report(path, &nemo2(384, "15", ""));
    assert!(!found.comparable.yes);
    assert_eq!(found.comparable.reasons, ["The log's name says GBS 768, its lines say 384."]);
    assert_eq!(found.baseline, None);

    let said = Spec::default().with(Field::Recipe, "llama3.1-70b/h100/fp8/512@25.04");
    let path = "log-acct.pretrain_llama3.1_70b_bf16_256_12345_0.out";
    let found = Report::of(&run_said(path, &nemo2(1024, "10", ""), &said), &View::default());
    assert_eq!(found.recipe.as_deref(), Some("llama3.1-70b/h100/fp8/512@25.04"));
    assert_eq!(
        found.comparable.reasons,
        ["The log says GPUs 256, but 512 was set.", "The log says Precision bf16, but fp8 was set."]
    );
    let baseline = found.baseline.unwrap();
    assert_eq!((baseline.step_time_s, baseline.speed_percent), (10.07, None));
}

#[test]
fn what_slows_a_run_down_forbids_comparing_it() {
    let log = nemo2(512, "10", "");
    let reasons = |path: &str, log: &str| {
        let found = report(path, log);
        assert_eq!(found.baseline.unwrap().speed_percent, None);
        found.comparable.reasons.join(";")
    };
    assert!(reasons("log-a.pretrain_llama3.1_70b_fp8_256_nsys_12345_0.out", &log).contains("Nsight"));
    assert!(reasons("log-a.pretrain_llama3.1_70b_fp8_256_nccltrace_12345_0.out", &log).contains("NCCL"));
    let path = "log-a.pretrain_llama3.1_70b_fp8_256_12345_0.out";
    let load =
        "Global Checkpoint Load : Rank : 0 : Start time : 1.0s : Time spent in load_checkpoint: 9.712s\n";
    assert!(reasons(path, &(load.to_owned() + &log)).contains("loaded a checkpoint"));
    assert!(reasons(path, &log.replacen("11.5", "nan", 1)).contains("NaN"));
}

#[test]
fn more_may_be_said_of_a_saved_run_later() {
    let path = "log-a.pretrain_nemotron4_340b_fp8_gpus256_tp8_pp4_cp1_vp12_mbs1_gbs64_389757_0.out";
    let run = run(path, &nemo2(64, "3", " | TFLOPS_per_GPU: 1600"));
    let open = Report::of(&run, &View::default());
    assert_eq!((open.recipe, open.mfu), (None, None));
    assert_eq!(open.notes, ["The log doesn't contain the GPU type. Set it to gb200, gb300 or b200."]);
    assert_eq!(open.tokens_per_s, Some(4096.0 * 64.0 / 3.0));
    let view = View { spec: Spec::default().with(Field::Gpu, "b200"), ..View::default() };
    let told = Report::of(&run, &view);
    assert_eq!(told.recipe.as_deref(), Some("nemotron4-340b/b200/fp8/256@25.12"));
    assert!(told.mfu.is_some());
}

#[test]
fn a_stored_run_keeps_what_it_says_and_gets_what_another_reading_of_its_log_adds() {
    let known = run("log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out", &nemo2(128, "12.39", ""));
    let renamed = RunResult {
        source: Source { written_at: Some("2026-11-27T10:00:00Z".into()), ..known.source.clone() },
        ..run("train.log", &nemo2(128, "12.39", ""))
    };
    assert_eq!(known.id, renamed.id);
    let completed = known.clone().completed_by(&renamed);
    assert_eq!((&completed.identity, &completed.log), (&known.identity, &known.log));
    assert_eq!(completed.source.written_at, renamed.source.written_at);
    // The identity that the stored run lacks.
    let completed = renamed.clone().completed_by(&known);
    assert_eq!((&completed.identity, completed.id), (&known.identity, known.id));
    // What a newer parser read, with the identity that somebody set.
    let mut old = known.clone();
    old.provenance.parser_version -= 1;
    old.log.steps.label.clear();
    let completed = old.completed_by(&renamed);
    assert_eq!((&completed.log, &completed.provenance), (&renamed.log, &renamed.provenance));
    assert_eq!((&completed.identity, &completed.comparable), (&known.identity, &known.comparable));
}

#[test]
fn a_script_of_any_kind_states_its_scenario_in_the_log() {
    let stated = |line: &str| {
        run("train.log", &format!("+ echo 'trainplan scenario: m=x'\n{line}\n{}", bridge(128, "9400.0")))
    };
    let scenario = |line: &str| stated(line).identity.scenario;
    let said = scenario("node1: trainplan scenario: m=llama3.1-8b&gpu=h100&n=8&dtype=bf16");
    let told = [Field::Model, Field::Gpu, Field::Gpus, Field::Dtype, Field::Gbs].map(|field| said.get(field));
    assert_eq!(told, [Some("llama3.1-8b"), Some("h100"), Some("8"), Some("bf16"), Some("128")]);
    let report =
        Report::of(&stated("trainplan scenario: v=1&m=llama3.1-8b&gpu=h100&n=8&s=8192"), &View::default());
    assert!(report.mfu.is_some_and(|mfu| mfu > 0.0), "{:?}", report.notes);
    // A recipe fixes everything.
    let recipe = "llama3.1-8b/h100/fp8/8@25.04";
    assert_eq!(scenario(&format!("trainplan scenario: r={recipe}")).get(Field::Recipe), Some(recipe));
    // What the user sets counts more, and the other fields of the line stay unless it names another model.
    let line = format!("trainplan scenario: m=llama3.1-8b&gpu=h100&n=8\n{}", bridge(128, "9400.0"));
    let b200 = run_said("train.log", &line, &Spec::default().with(Field::Gpu, "b200")).identity.scenario;
    assert_eq!((b200.get(Field::Model), b200.get(Field::Gpu)), (Some("llama3.1-8b"), Some("b200")));
    let other =
        run_said("train.log", &line, &Spec::default().with(Field::Model, "llama3.1-70b")).identity.scenario;
    assert_eq!((other.get(Field::Model), other.get(Field::Gpu)), (Some("llama3.1-70b"), None));
    // An invalid, unnamed or torn line states nothing.
    for line in [
        "trainplan scenario: m=llama-9",
        "trainplan scenario: gpu=h100",
        "trainplan scenario: ",
        "trainplan scenario: m=llama3.1-8b&tp=0",
    ] {
        assert!(stated(line).identity.doubts.join(" ").contains("name its model"), "{line}");
    }
    let long = format!("trainplan scenario: m=llama3.1-8b&gpu=h100&x={}", "x".repeat(3000));
    assert!(stated(&long).identity.doubts.join(" ").contains("name its model"));
}

#[test]
fn a_model_that_no_release_here_publishes_needs_a_word() {
    let path = "log-a.pretrain_qwen3_235b_a22b_bf16_gpus64_tp1_pp8_cp1_ep32_12_0.out";
    let found = report(path, &nemo2(256, "3", " | TFLOPS_per_GPU: 600"));
    assert_eq!((found.status, found.tokens_per_s), (Status::Scored, None));
    assert_eq!(found.scenario.get(Field::Model), Some("qwen3-235b-a22b"));
    let (why, rest) = found.notes[0].split_once(" Nearest: ").unwrap();
    assert!(why.starts_with("Couldn't match this Qwen3 235B-A22B log to a recipe: "), "{why}");
    let (nearest, set) = rest.split_once(". Set ").unwrap();
    assert!(nearest.split("; ").count() == 3 && nearest.contains(" instead of "), "{nearest}");
    assert_eq!(set, "the recipe, or the GPU type, which the log lacks.");
    let found = report("renamed.log", &nemo2(256, "3", ""));
    assert_eq!((found.status, found.tokens_per_s), (Status::Scored, None));
    assert!(found.notes[0].contains("doesn't name its model"), "{:?}", found.notes);
}

#[test]
fn a_run_that_differs_from_its_recipe_is_not_the_recipe() {
    let folder = "deepseek_v3_pretrain_256gpu_gb300_fp8mx";
    let told = |differences: &str| {
        let path =
            format!("experiments/{folder}{differences}_1764000000/training/log-acct-x.training_389757_0.out");
        report(&path, &bridge(4096, "35000.0"))
    };
    assert!(told("").baseline.is_some());
    let other = told("_tp2");
    assert!(other.baseline.is_none() && other.mfu.is_some());
    assert_eq!(other.scenario.get(Field::Tp), Some("2"));
    assert_eq!(told("_gpus512").scenario.get(Field::Gpus), Some("512"));
}

#[test]
fn what_is_in_doubt_has_no_default() {
    // Only a folder tells the precision of 24.11.
    let known = |path: &str, gpu: &str| {
        let mut said = Spec::default();
        said.set(Field::Gpu, gpu);
        Report::of(&run_said(path, &nemo1("3.5"), &said), &View::default())
    };
    for gpu in ["", "h100"] {
        let open = known("log-nemo_nemotron4_340b_256_389757.out", gpu);
        assert_eq!(open.notes[0], "The log doesn't contain the precision. Set it to bf16 or fp8.");
        assert_eq!((open.tokens_per_s, open.mfu), (Some(4096.0 * 64.0 / 3.5), None));
        let told = known("fp8/log-nemo_nemotron4_340b_256_389757.out", gpu);
        assert_eq!(told.recipe.as_deref(), Some("nemotron4-340b/h100/fp8/256@24.11"));
    }
    let path = "log-a.pretrain_qwen3_235b_a22b_bf16_gpus64_tp1_pp8_cp1_ep8_12_0.out";
    let log = nemo2(256, "3", " | TFLOPS_per_GPU: 850");
    let told = Report::of(&run_said(path, &log, &Spec::default().with(Field::Gpu, "h100")), &View::default());
    assert!(
        matches!(&*told.notes, [_, note] if note.starts_with("The prediction assumes NeMo 2 (2025), because"))
    );
    let fast = "times as fast as predicted: check that the recipe, the GPU type and the GPU count are right.";
    assert!(told.notes[0].ends_with(fast), "{:?}", told.notes);
    assert!(told.convention.is_some());
    assert!(told.mfu.is_some());
}

#[test]
fn the_folder_tells_what_a_bare_name_does_not() {
    let log = nemo2(64, "3", "");
    let release = |path: &str| run(path, &log).identity.release.unwrap().to_string();
    assert_eq!(release("25.12/train.log"), "25.12");
    assert_eq!(release("train.log"), "25.04");
    let spelt = "25.05/log-a.pretrain_nemotron4_340b_fp8_gpus256_tp8_pp8_cp1_vp12_mbs1_gbs64_1_0.out";
    assert_eq!(release(spelt), "25.12");
}

/// Fifty steps as MaxText prints them, each 2.5 s long.
fn maxtext() -> String {
    let line = |step: u64| {
        format!(
            "completed step: {step}, seconds: 2.500, TFLOP/s/device: 455.8, Tokens/s/device: 6553.6, loss: 9.5\n"
        )
    };
    (0..50).map(line).collect()
}

#[test]
fn software_of_unknown_speed_is_neither_predicted_nor_diagnosed() {
    let said = [
        (Field::Model, "llama3.1-8b"),
        (Field::Gpu, "h100"),
        (Field::Gpus, "8"),
        (Field::Dtype, "bf16"),
        (Field::Fsdp, "on"),
        (Field::Gbs, "16"),
        (Field::Mbs, "2"),
    ];
    let spec = said.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
    let with = |stack: &str| {
        let spec = spec.clone().with(Field::Stack, stack);
        let view = View { window: "20-29".parse().ok(), spec, ..View::default() };
        Report::of(&run("maxtext.log", &maxtext()), &view)
    };
    let alone = with("");
    assert!(alone.mfu.is_some() && alone.prediction.is_none() && alone.slowdown.is_none());
    assert_eq!((alone.assumed_software, alone.scenario.get(Field::Stack)), (None, None));
    let notes = [
        "Scored by window 20–29 instead of the default, 35–44.",
        "There is no prediction, because the speed of MaxText isn't known. Set the software to see a prediction for it.",
    ];
    assert_eq!(alone.notes, notes);
    let other = with("megatron-bridge-26.06");
    assert!(other.prediction.is_some() && other.slowdown.is_none(), "{:?}", other.notes);
    let note = "The prediction is for Megatron-Bridge 26.06 and later, but MaxText wrote the log, and its speed isn't known.";
    assert!(other.notes.iter().any(|one| one == note), "{:?}", other.notes);
    // A user who describes the software knows what it does.
    let own = with("megatron-bridge-26.06:cuda_graphs=none");
    assert!(own.prediction.is_some() && !own.notes.join(" ").contains("isn't known"), "{:?}", own.notes);
}

/// Fifty steps as torchtitan prints them, and the batch that it states before.
fn torchtitan() -> String {
    let step = |step: u64| {
        format!(
            "step: {step:2}  loss:  8.12345  grad_norm:  1.2345  memory: 50.00GiB(62.00%)  tps: 6,144  tflops: 347.99  mfu: \
             35.19%\n"
        )
    };
    let steps: String = (1..51).map(step).collect();
    "Trainer is initialized with local batch size 1, global batch size 8, gradient accumulation steps 1, sequence length 8192, \
     total steps 50 (warmup 20)\n"
        .to_owned()
        + &steps
}

#[test]
fn the_logs_own_figures_are_told_where_none_can_be_computed() {
    let with = |said: &[(Field, &str)]| {
        let spec = said.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
        Report::of(&run("titan.log", &torchtitan()), &View { spec, ..View::default() })
    };
    let alone = with(&[]);
    assert_eq!(alone.logged_tokens_per_s_per_gpu.map(|stat| stat.mean), Some(6144.0));
    assert_eq!((alone.step_time_s, alone.mfu), (None, None));
    let told = "As logged: 6,144 tokens/s per GPU, MFU 35.2 %. The log has no step time. To compute it, set the GPU count.";
    assert_eq!(alone.notes[0], told);
    let counted = with(&[(Field::Gpus, "8")]);
    assert_eq!(counted.step_time_s.map(|time| time.mean), Some(8192.0 / 6144.0));
    assert_eq!(counted.notes[0], "As logged: MFU 35.2 %.");
    let known = [
        (Field::Model, "llama3.1-8b"),
        (Field::Gpu, "h100"),
        (Field::Gpus, "8"),
        (Field::Dtype, "bf16"),
        (Field::Fsdp, "on"),
    ];
    let known = with(&known);
    assert!(known.mfu.is_some() && !known.notes.join(" ").contains("As logged"), "{:?}", known.notes);
}

#[test]
fn tflops_above_the_peak_are_implausible() {
    let recipe = Catalog::embedded().recipe("nemotron4-340b/h100/fp8/256@25.12").unwrap();
    let (path, log) = log_of(recipe);
    let said = Spec::default().with(Field::Gpu, "h100");
    let with = |tflops: &str| {
        let log = log.replace("TFLOPS_per_GPU: 800", &format!("TFLOPS_per_GPU: {tflops}"));
        Report::of(&run_said(&path, &log, &said), &View::default())
    };
    assert_eq!(with("1900").status, Status::Scored);
    let above = with("2584");
    assert_eq!((above.status, above.mfu, above.comparable.yes), (Status::Implausible, None, false));
    let reason = above.reason.unwrap();
    let why = "The log reports 2,584 TFLOP/s per GPU, above the H100's FP8 peak of 1,979.";
    assert!(reason.starts_with(why) && reason.contains("Correct the recipe"), "{reason}");
}

#[test]
fn torchtitan_prints_no_step_time_but_tokens() {
    let log = "step: 50  loss:  8.12345  grad_norm:  1.2345  memory: 50.00GiB(62.00%)  tps: 1,024  tflops: 12.34  mfu: 1.2%\n";
    let path = "log-torchtitan_deepseek_v3_256gpus_12345_0.out";
    let last = View { window: Some(Window::Last), ..View::default() };
    let found = Report::of(&run(path, log), &last);
    assert_eq!((found.tokens_per_s, found.step_time_s), (Some(262_144.0), None));
    let said = [(Field::Gpu, "h100"), (Field::Gbs, "512"), (Field::SeqLen, "4096"), (Field::Ep, "64")];
    let spec = said.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
    let found = Report::of(&run(path, log), &View { spec, ..last });
    assert_eq!((found.tokens_per_s, found.step_time_s.map(|time| time.mean)), (Some(262_144.0), Some(8.0)));
    assert!(found.mfu.is_some(), "{:?}", found.notes);
}

/// Version 1, which every later program must read.
const VERSION_1: &str = include_str!("fixtures/version-1.result.json");

#[test]
fn version_1_is_read_for_ever() {
    let run = read(VERSION_1.as_bytes()).unwrap();
    assert_eq!((run.version, run.id.to_string().as_str()), (1, "1bd42e64-a37c-81a1-a605-f2835b77109b"));
    let report = Report::of(&run, &View::default());
    assert_eq!(report.status, Status::Scored);
    assert_eq!(report.recipe.as_deref(), Some("llama3.1-8b/h100/fp8/8@25.04"));
    assert_eq!((report.steps, report.step_time_s.unwrap().mean), (3, 12.39));
    assert_eq!(format!("{:.4}", report.mfu.unwrap()), "0.3093");
    assert_eq!((report.checkpoint.save_s, report.failures.len()), (Some(4.389), 1));
    // While it is the newest version, it is also what is written.
    assert_eq!(write(&run).unwrap(), VERSION_1);
}

#[test]
fn a_file_that_is_no_result_says_what_it_is() {
    let newer = VERSION_1.replacen("\"version\":1", "\"version\":2,\"colour\":3", 1);
    assert!(matches!(read(newer.as_bytes()), Err(FileError::Newer(2))));
    let more = VERSION_1.replacen("\"version\":1", "\"version\":1,\"colour\":3", 1);
    assert_eq!(read(more.as_bytes()).unwrap(), read(VERSION_1.as_bytes()).unwrap());
    for text in ["", "{}", "[]", "1", "null", "hello", "{\"version\":-1}"] {
        assert!(matches!(read(text.as_bytes()), Err(FileError::NotAResult(_))), "{text}");
    }
    assert!(matches!(read(b"{\"version\":1}"), Err(FileError::Damaged(_))));
    for (good, bad) in [("[47,48,49]", "[47,47,49]"), ("[47,48,49]", "[47,48]"), ("[47,48,49]", "[49,48,47]")]
    {
        assert!(matches!(read(VERSION_1.replacen(good, bad, 1).as_bytes()), Err(FileError::Steps)), "{bad}");
    }
    let cut = &VERSION_1.as_bytes()[..VERSION_1.len() / 2];
    assert!(read(cut).unwrap_err().to_string().contains("or the log itself"));
}

proptest! {
    #[test]
    fn a_saved_run_reports_what_the_log_did(
        path in "([a-z]{0,9}/)?(log-a.pretrain_(llama3.1_70b|nemotronh_56b)_(fp8|bf16)_(gpus)?(256|96)(_nsys)?_7_0.out|\\PC{0,20})",
        times in prop::collection::vec((1..100_000_u32, any::<bool>()), 0..60),
        gbs in prop::option::of(1..2000_u32),
        junk in prop::collection::vec(any::<u8>(), 0..200),
        said in prop::option::of(prop::sample::select(&["h100", "b200", "nonsense"][..])),
        window in prop::option::of((0..50_u64, 0..50_u64)),
    ) {
        let mut said_spec = Spec::default();
        said_spec.set(Field::Gpu, said.unwrap_or_default());
        let mut intake = Intake::new(path, &said_spec);
        intake.feed(&junk);
        for (label, (time, nan)) in times.iter().enumerate() {
            let gbs = gbs.map_or(String::new(), |gbs| format!(" | global_batch_size: {gbs}"));
            let loss = if *nan { "nan".to_owned() } else { (f64::from(*time) / 7.0).to_string() };
            intake.feed(
                format!(
                    "\nTraining epoch 0, iteration {label}/49{gbs} | reduced_train_loss: {loss} | \
                     train_step_timing in s: {}\n", f64::from(*time) / 3.0
                )
                .as_bytes(),
            );
        }
        let run = intake.finish();
        let window = window.map(|(from, more)| Window::labels(from, from + more).unwrap());
        let saved = write(&run).unwrap();
        let back = read(saved.as_bytes()).unwrap();
        prop_assert_eq!(&back, &run);
        prop_assert_eq!(write(&back).unwrap(), saved);
        for view in [
            View { window, ..View::default() },
            View { window, spec: Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04"), ..View::default() },
        ] {
            let (one, other) = (Report::of(&run, &view), Report::of(&back, &view));
            prop_assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&other).unwrap());
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let _ = read(&bytes);
        let mut changed = VERSION_1.as_bytes().to_vec();
        let at = at.index(changed.len());
        changed[at] = byte;
        if let Ok(run) = read(&changed) {
            let report = Report::of(&run, &View::default());
            prop_assert!(serde_json::to_string(&report).is_ok());
        }
    }
}
