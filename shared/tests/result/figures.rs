//! The figures of a report: the scored window, what the log itself prints, and predictions.

use crate::{log_of, nemo1, nemo2, report, run, run_said};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{Report, View};
use trainplan_shared::spec::Spec;

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
        "The window is 20–29 instead of the default, 35–44.",
        "No prediction, because the speed of MaxText isn't known. Set the software to see a prediction for it.",
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
    let told = "As logged: 6,144 tokens/s per GPU, 348 TFLOP/s per GPU, MFU 35.2 %.";
    assert!(alone.notes.contains(&told.to_owned()), "{:?}", alone.notes);
    let needed = "The log has no step time. To compute it, set the GPU count.";
    assert_eq!(
        (alone.status, alone.comparable.reasons.as_slice()),
        (Status::Scored, &[needed.to_owned()][..])
    );
    let counted = with(&[(Field::Gpus, "8")]);
    assert_eq!(counted.step_time_s.map(|time| time.mean), Some(8192.0 / 6144.0));
    let told = "As logged: 348 TFLOP/s per GPU, MFU 35.2 %.";
    assert!(counted.notes.contains(&told.to_owned()), "{:?}", counted.notes);
    assert!(counted.comparable.yes, "{:?}", counted.comparable);
    let known = [
        (Field::Model, "llama3.1-8b"),
        (Field::Gpu, "h100"),
        (Field::Gpus, "8"),
        (Field::Dtype, "bf16"),
        (Field::Fsdp, "on"),
    ];
    let spec = known.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
    let known = with(&known);
    assert!(known.mfu.is_some() && !known.notes.join(" ").contains("As logged"), "{:?}", known.notes);
    // Tests of torchtitan train on short sequences.
    let short = torchtitan().replace("sequence length 8192", "sequence length 64");
    let short = Report::of(&run("titan.log", &short), &View { spec, ..View::default() });
    assert_eq!(short.step_time_s.map(|time| time.mean), Some(64.0 / 6144.0));
    assert!(short.mfu.is_some() && short.tokens_per_s.is_some(), "{:?}", short.notes);
}

#[test]
fn the_tflops_of_bare_megatron_lines_are_told() {
    let step = |step: u64| {
        format!(
            " iteration {step:8}/      50 | consumed samples: {:12} | elapsed time per iteration (ms): 10000.0 | throughput per GPU \
             (TFLOP/s/GPU): 412.3 | global batch size:   512 | lm loss: 1.2E+01 |\n",
            512 * step
        )
    };
    let found = report("train.log", &(1..51).map(step).collect::<String>());
    assert_eq!((found.status, found.mfu), (Status::Scored, None));
    assert!(found.notes.contains(&"As logged: 412 TFLOP/s per GPU.".to_owned()), "{:?}", found.notes);
}

#[test]
fn a_logged_mfu_above_100_percent_is_implausible() {
    let log = torchtitan().replace("35.19%", "175.74%");
    let found = report("titan.log", &log);
    assert_eq!((found.status, found.comparable.yes), (Status::Implausible, false));
    let reason = found.reason.unwrap();
    assert!(reason.starts_with("The log reports an MFU of 176 %"), "{reason}");
    assert!(reason.contains("Set the model, the GPU type"), "{reason}");
    assert!(!found.notes.join(" ").contains("As logged"), "{:?}", found.notes);
    // torchtitan divided by the peak of another GPU.
    let known = [
        (Field::Model, "llama3.1-8b"),
        (Field::Gpu, "b200"),
        (Field::Gpus, "8"),
        (Field::Dtype, "bf16"),
        (Field::Fsdp, "on"),
    ];
    let spec = known.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
    let known = Report::of(&run("titan.log", &log), &View { spec, ..View::default() });
    assert_eq!((known.status, known.mfu.is_some()), (Status::Scored, true), "{:?}", known.reason);
}

#[test]
fn a_layout_that_nobody_stated_is_not_predicted_if_it_cannot_be_the_runs() {
    let with = |said: &[(Field, &str)]| {
        let known = [
            (Field::Model, "llama3.1-70b"),
            (Field::Gpu, "h100"),
            (Field::Gpus, "8"),
            (Field::Dtype, "bf16"),
        ];
        let spec =
            known.iter().chain(said).fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
        Report::of(
            &run("titan.log", &torchtitan().replace("6,144", "614")),
            &View { spec, ..View::default() },
        )
    };
    let open = with(&[]);
    assert_eq!((open.prediction, open.slowdown), (None, None));
    let why = "No prediction, because the log doesn't state the layout, and with TP 1, PP 1 and MBS 1, a GPU would need";
    assert!(open.notes.iter().any(|note| note.starts_with(why)), "{:?}", open.notes);
    // torchtitan always uses FSDP.
    assert_eq!(open.scenario.get(Field::Fsdp), Some("on"));
    assert!(with(&[(Field::Tp, "8"), (Field::Recompute, "full")]).prediction.is_some());

    let small = with(&[(Field::Model, "llama3.2-1b")]);
    assert!(small.prediction.is_some() && small.slowdown.is_none(), "{:?}", small.notes);
    let assumed = "The prediction assumes TP 1, PP 1 and MBS 1, because the log doesn't state the layout.";
    assert!(small.notes.iter().any(|note| note.starts_with(assumed)), "{:?}", small.notes);
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
