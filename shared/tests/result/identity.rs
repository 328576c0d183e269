//! What a log is a run of, and what forbids comparing it.

use crate::{bridge, log_of, nemo1, nemo2, report, run, run_said};
use trainplan_shared::catalog::{Catalog, Release};
use trainplan_shared::field::Field;
use trainplan_shared::log::{Format, Status};
use trainplan_shared::result::{Report, View};
use trainplan_shared::spec::Spec;
use trainplan_shared::stack::Stack;

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
    assert!(other.notes.iter().any(|note| note.contains("the release scores last")), "{:?}", other.notes);

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
    // It lists no arguments, but no rank 0 of Megatron-Bridge wrote a line.
    assert_eq!(
        (report.format, report.assumed_software),
        (Some(Format::MegatronLm), Some(Stack::MegatronLm014))
    );
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
