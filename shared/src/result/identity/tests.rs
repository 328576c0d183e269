use super::*;
use crate::log::Format;
use crate::result::shape::tests::{LLAMA_70B, dump};
use crate::result::{Intake, JobFiles, Publication, Report, RunResult, SettingsFile, View};
use crate::stack::Stack;

/// Fifty steps of 20 s of a batch.
fn steps(gbs: u32) -> String {
    let step = |step: u32| {
        format!(
            "iteration {step}/50 | consumed samples: {} | elapsed time per iteration (ms): 20000.0 | global batch \
             size: {gbs} | lm loss: 1.2E+01 |\n",
            step * gbs
        )
    };
    (1..51).map(step).collect()
}

fn report(path: &str, changes: &[(&str, &str)], said: &[(Field, &str)]) -> Report {
    let said = said.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
    let mut intake = Intake::new(path, &said);
    intake.feed(dump(&LLAMA_70B, changes).as_bytes());
    let gbs = changes.iter().find(|(key, _)| *key == "global_batch_size");
    intake.feed(steps(gbs.map_or(128, |(_, gbs)| gbs.parse().unwrap())).as_bytes());
    Report::of(&intake.finish(), &View::default())
}

const GPU: [(Field, &str); 1] = [(Field::Gpu, "h100")];

#[test]
fn arguments_are_the_whole_scenario_but_the_gpu_type() {
    let alone = report("train.log", &[], &[]);
    assert_eq!(alone.tokens_per_s.map(f64::round), Some(52_429.0));
    assert_eq!((alone.mfu, alone.notes.as_slice()), (None, [NO_GPU_TYPE.to_owned()].as_slice()));
    let told = report("train.log", &[], &GPU);
    assert!(told.mfu.is_some_and(|mfu| (0.39..0.41).contains(&mfu)), "{:?}", told.mfu);
    // No word of a recipe that nobody named, but of the software, which nobody named either.
    let assumed = "The prediction assumes Megatron-LM 0.14, because the log doesn't state the exact software. Set it \
                   if the run used other software.";
    assert!(told.comparable.yes && told.notes == [assumed], "{:?}", told.notes);
    assert_eq!((told.format, told.assumed_software), (Some(Format::MegatronLm), Some(Stack::MegatronLm014)));
    assert_eq!(told.scenario.get(Field::Stack), Some("megatron-lm-0.14"));
    let named = report("train.log", &[], &[GPU[0], (Field::Stack, "megatron-lm-0.14")]);
    assert_eq!((named.prediction, named.assumed_software), (told.prediction, None));
    assert_eq!(named.notes, [] as [String; 0]);
    let other = report("train.log", &[], &[GPU[0], (Field::Stack, "megatron-bridge-26.06")]);
    assert_eq!(other.assumed_software, None);
    assert_ne!(other.prediction, told.prediction);
    let scenario = told.scenario.scenario().unwrap();
    assert_eq!(
        (scenario.model.id.as_str(), scenario.layout.gpus(), scenario.layout.vp()),
        ("llama3.1-70b", 64, 5)
    );
    assert_eq!(told.scenario.get(Field::Layers), None);
}

#[test]
fn options_and_precisions_are_read() {
    let full =
        [("recompute_granularity", "full"), ("recompute_method", "uniform"), ("recompute_num_layers", "1")];
    let said = report("train.log", &full, &GPU);
    assert_eq!(said.scenario.get(Field::Recompute), Some("full"));
    let part = [full[0], ("recompute_method", "block"), full[2]];
    assert_eq!(report("train.log", &part, &GPU).scenario.get(Field::Recompute), None);
    let selective = |modules: &str| {
        let list = [("recompute_granularity", "selective"), ("recompute_modules", modules)];
        let said = report("train.log", &list, &GPU).scenario;
        [Field::Recompute, Field::RecomputeModules].map(|field| said.get(field).map(str::to_owned))
    };
    assert_eq!(selective("['core_attn']"), [Some("selective".into()), None]);
    let both = [Some("selective".into()), Some("mlp,layernorm".into())];
    assert_eq!(selective("['core_attn', 'layernorm', 'mlp']"), both);
    // A dense model has no experts to recompute.
    assert_eq!(selective("['moe_act', 'layernorm']"), [None, Some("layernorm".into())]);
    for (recipe, dtype) in [("delayed", "fp8-delayed"), ("tensorwise", "fp8-current"), ("mxfp8", "mxfp8")] {
        let said = report("train.log", &[("fp8", "hybrid"), ("fp8_recipe", recipe)], &GPU);
        assert_eq!(said.scenario.get(Field::Dtype), Some(dtype));
    }
    let half = report("train.log", &[("bf16", "False"), ("fp16", "True")], &GPU);
    assert!(half.mfu.is_none() && half.notes[0].contains("FP16"), "{:?}", half.notes);
}

#[test]
fn uneven_pipelines_are_read() {
    let split = |changes: &[(&str, &str)]| {
        let flat = [("virtual_pipeline_model_parallel_size", "None")];
        let changes: Vec<_> = flat.iter().chain(changes).copied().collect();
        report("train.log", &changes, &GPU).scenario.get(Field::PipelineSplit).map(str::to_owned)
    };
    let (first, last) = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers");
    assert_eq!(split(&[(first, "None"), (last, "None")]), None);
    assert_eq!(split(&[(first, "19"), (last, "21")]).as_deref(), Some("19,20,20,21"));
    assert_eq!(split(&[(last, "17")]).as_deref(), Some("21,21,21,17"));
    assert_eq!(split(&[(first, "20"), (last, "20")]), None, "even");
    assert_eq!(split(&[(first, "90")]), None, "more than all");
    assert_eq!(split(&[(first, "19")]), None, "61 layers on 3 stages");
    let loss = ("account_for_loss_in_pipeline_split", "True");
    let pp = |stages| ("pipeline_model_parallel_size", stages);
    assert_eq!(split(&[loss, pp("2")]).as_deref(), Some("counted"));
    assert_eq!(split(&[loss, pp("3"), ("world_size", "48")]).as_deref(), Some("27,27,26"));
    assert_eq!(split(&[loss, pp("8")]), None, "neither 81 nor 82 layers fill 8 stages");
    let layout = "pipeline_model_parallel_layout";
    assert_eq!(split(&[(layout, "None")]), None);
    assert_eq!(split(&[(layout, "Et*19|t*20|t*20|t*21L")]).as_deref(), Some("19,20,20,21"));
    let interleaved = [(layout, "Et*9|(t*10|)*6t*11L"), ("virtual_pipeline_model_parallel_size", "2")];
    assert_eq!(split(&interleaved).as_deref(), Some("19,20,20,21"));
    assert_eq!(split(&[(layout, "Et*20|(t*20|)*2,t*20L")]), None, "even");
    assert_eq!(split(&[(layout, "Et*20|t*20|t*20|t*21L")]), None, "81 layers");
    let reasons = |meant: &str| {
        let three = [
            (layout, "Et*27|t*26|t*27L"),
            pp("3"),
            ("virtual_pipeline_model_parallel_size", "None"),
            ("world_size", "48"),
        ];
        report("train.log", &three, &[GPU[0], (Field::PipelineSplit, meant)]).comparable.reasons
    };
    assert_eq!(reasons("27, 26, 27"), [] as [String; 0]);
    assert!(!reasons("counted").is_empty());
    let said =
        report("train.log", &[(last, "17"), pp("4")], &[GPU[0], (Field::PipelineSplit, "21, 21, 21, 17")]);
    assert!(said.comparable.reasons.is_empty(), "{:?}", said.comparable.reasons);
}

#[test]
fn a_split_is_compared_although_the_name_says_no_chunks() {
    let name = "log-a.pretrain_llama3.1_70b_bf16_gpus64_tp4_pp4_cp1_vp0_mbs1_gbs128_7_0.out";
    let changes = [("decoder_last_pipeline_num_layers", "17"), ("virtual_pipeline_model_parallel_size", "0")];
    let reasons = report(name, &changes, &[GPU[0], (Field::PipelineSplit, "even")]).comparable.reasons;
    assert!(reasons.iter().any(|reason| reason.contains("21,21,21,17, but even was set")), "{reasons:?}");
}

#[test]
fn arguments_of_a_recipe_are_recognised_as_the_recipe() {
    let same = [
        ("fp8", "hybrid"),
        ("fp8_recipe", "delayed"),
        ("global_batch_size", "2048"),
        ("pipeline_model_parallel_size", "8"),
        ("world_size", "1024"),
    ];
    let said = report("train.log", &same, &GPU);
    assert_eq!(said.recipe.as_deref(), Some("llama3.1-70b/h100/fp8/1024@25.04"), "{:?}", said.notes);
    assert!(said.baseline.is_some_and(|baseline| baseline.speed_percent.is_some()));
    // A log that is only similar to a recipe is not said to be a changed one.
    for change in [("micro_batch_size", "2"), ("fp8_recipe", "tensorwise")] {
        let other: Vec<_> = same.into_iter().filter(|(key, _)| *key != change.0).chain([change]).collect();
        let said = report("train.log", &other, &GPU);
        assert_eq!((said.recipe, said.publication), (None, Publication::Custom));
        assert!(!said.notes.join(" ").contains("is published for"), "{:?}", said.notes);
    }
}

#[test]
fn a_recipe_that_the_arguments_contradict_is_not_compared() {
    let said = [(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04")];
    let report = report("train.log", &[], &said);
    let reasons = report.comparable.reasons.join(" ");
    assert!(reasons.contains("don't fit Llama 3.1 405B: hidden_size 8,192 (not 16,384)"), "{reasons}");
    assert!(reasons.contains("The log says GPUs 64, but 512 was set."), "{reasons}");
    assert!(reasons.contains("The log says Layers 80, but 126 was set."), "{reasons}");
    assert_eq!((report.mfu, report.tokens_per_s), (None, None));
    assert_eq!(report.baseline.and_then(|baseline| baseline.speed_percent), None);
}

#[test]
fn a_name_that_the_arguments_contradict_is_reported() {
    let name = "log-megatron-lm_llama3.1_8b_bf16_gpus8_tp4_pp4_cp1_vp5_mbs1_gbs128_77_0.out";
    let reasons = report(name, &[], &GPU).comparable.reasons.join(" ");
    assert!(reasons.contains("The log's name says GPUs 8, but its arguments say 64."), "{reasons}");
    assert!(reasons.contains("The log's name says Llama 3.1 8B, but its arguments don't fit"), "{reasons}");
}

#[test]
fn a_step_that_takes_much_longer_is_named() {
    let report = |slow: &[u32]| {
        let mut intake = Intake::new("train.log", &Spec::default());
        intake.feed(dump(&LLAMA_70B, &[]).as_bytes());
        let text = steps(128);
        for (step, line) in (1..).zip(text.lines()) {
            let line = if slow.contains(&step) { line.replace("20000.0", "60000.0") } else { line.into() };
            intake.feed(format!("{line}\n").as_bytes());
        }
        Report::of(&intake.finish(), &View { window: "41-50".parse().ok(), ..View::default() })
            .notes
            .join(" ")
    };
    assert!(!report(&[]).contains("median") && !report(&[40]).contains("median"));
    let one = report(&[45]);
    let wanted = "Of 10 scored steps, step 45 (60.0 s) took more than 1.5 times the median of 20 s. Without it, the mean is 20 s.";
    assert!(one.contains(wanted), "{one}");
    assert!(report(&[42, 45]).contains("steps 42 and 45 took"));
}

#[test]
fn few_steps_are_noisy() {
    let run = |log: &str| {
        let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out", &Spec::default());
        intake.feed(log.as_bytes());
        intake.finish()
    };
    let step = |step: u32| {
        format!(
            "Training epoch 0, iteration {step}/49 | global_batch_size: 128 | train_step_timing in s: 9.4 |\n"
        )
    };
    let log = run(&(0..50).map(step).collect::<String>());
    let noisy = |window: Option<&str>| {
        let view = View { window: window.map(|window| window.parse().unwrap()), ..View::default() };
        let notes = Report::of(&log, &view).notes;
        notes.into_iter().find(|note| note.contains("single steps are noisy")).unwrap_or_default()
    };
    // Release 25.04 scores the last step.
    let judged = "The score rests on one step, and single steps are noisy, so the run is judged by the mean of steps 10–49.";
    assert_eq!(noisy(None), judged);
    let chosen = "The score rests on 4 steps, and single steps are noisy. Score the window 40-49.";
    assert_eq!(noisy(Some("46-49")), chosen);
    assert_eq!(noisy(Some("45-49")), "");
    assert_eq!(noisy(Some("11-44")), "");
}

#[test]
fn the_configuration_beside_a_log_completes_what_the_log_lacks() {
    let text = "model:\n  context_parallel_size: 1\n  fp8: e4m3\n  fp8_recipe: blockwise\n  pipeline_model_parallel_size: 4\n  \
                seq_length: 8192\n  tensor_model_parallel_size: 2\ntrain:\n  global_batch_size: 256\n  micro_batch_size: 2\n";
    let job = JobFiles::default()
        .with(SettingsFile::BridgeConfig, SettingsFile::BridgeConfig.read(text.as_bytes()));
    let read = |job: &JobFiles, said: &[(Field, &str)]| -> RunResult {
        let own = [(Field::Model, "llama2-70b"), (Field::Gpu, "h100"), (Field::Gpus, "64")];
        let said =
            own.iter().chain(said).fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
        let mut intake = Intake::new("train.log", &said).with_job(job.clone());
        intake.feed(steps(128).as_bytes());
        intake.finish()
    };
    let run = read(&job, &[]);
    for (field, value) in [
        (Field::Tp, "2"),
        (Field::Pp, "4"),
        (Field::Mbs, "2"),
        (Field::SeqLen, "8192"),
        (Field::Dtype, "fp8-block"),
        // The log's own lines say it.
        (Field::Gbs, "128"),
    ] {
        assert_eq!(run.identity.scenario.get(field), Some(value), "{field:?}");
    }
    assert_eq!(run.identity.conflicts, [] as [String; 0]);
    let differs = "The log or its name says GBS 128, but configs/ConfigContainer.yaml says 256. The log's value is used.";
    assert_eq!(run.identity.differences, [differs]);
    let report = Report::of(&run, &View::default());
    assert!(report.notes.contains(&differs.to_owned()), "{report:?}");
    assert_eq!(read(&JobFiles::default(), &[]).identity.scenario.get(Field::Tp), None);
    let other = read(&job, &[(Field::Tp, "4")]).identity.conflicts;
    assert!(other.len() == 1 && other[0].contains("2, but 4 was set"), "{other:?}");
    // The files add to the scenario of the log alone, but not to one that contradicts them.
    let alone = read(&JobFiles::default(), &[]);
    assert!(run.completes(&alone) && !alone.completes(&run) && !run.completes(&run));
    assert!(!run.completes(&read(&JobFiles::default(), &[(Field::Tp, "4")])));
    // Nor is a scenario replaced that only the user changes.
    assert!(!read(&JobFiles::default(), &[(Field::Tp, "2")]).completes(&alone));
    // A view with other fields identifies the run again.
    let again = run.identified(&Spec::default().with(Field::Model, "llama2-13b"));
    assert_eq!(again.identity.scenario.get(Field::Tp), Some("2"));
}

#[test]
fn what_llmb_run_launched_identifies_a_log_that_says_nothing() {
    let read = |path: &str, gpu: &str, said: &Spec| -> RunResult {
        let text = format!(
            "workload_info:\n  gsw_version: '25.04'\nmodel_info:\n  model_name: llama3.1\n  model_size: 70b\n  dtype: fp8\n  \
             scale: 256\n  gpu_type: {gpu}\n"
        );
        let file = SettingsFile::LlmbConfig;
        let job = JobFiles::default().with(file, file.read(text.as_bytes()));
        let mut intake = Intake::new(path, said).with_job(job);
        intake.feed(steps(512).as_bytes());
        intake.finish()
    };
    let run = read("train.log", "h100", &Spec::default());
    let scenario = &run.identity.scenario;
    assert_eq!(scenario.get(Field::Recipe), Some("llama3.1-70b/h100/fp8/256@25.04"));
    assert_eq!((scenario.get(Field::Gpu), run.identity.differences.len()), (None, 0));
    assert_eq!(run.identity.doubts, [] as [String; 0]);
    // The recipe implies what an earlier reading stated field by field.
    let earlier = |gpus: &str| {
        let stated =
            [(Field::Model, "llama3.1-70b"), (Field::Dtype, "fp8"), (Field::Gbs, "512"), (Field::Gpus, gpus)];
        let scenario = stated.into_iter().fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
        Identity { scenario, ..Identity::default() }
    };
    assert!(run.identity.adds_to(&earlier("256")) && !run.identity.adds_to(&earlier("128")));
    // A GPU type without a recipe is that of the run.
    let other = read("train.log", "b200", &Spec::default()).identity.scenario;
    assert_eq!(other.get(Field::Gpu), Some("b200"));
    let own = read("train.log", "of_2027", &Spec::default()).identity.scenario;
    assert_eq!(own.get(Field::Gpu), None);
    let named = read("log-acct.pretrain_llama3.1_70b_bf16_128_7_0.out", "h100", &Spec::default()).identity;
    assert_eq!(named.scenario.get(Field::Recipe), Some("llama3.1-70b/h100/bf16/128@25.04"));
    let told = named.differences.join("\n");
    assert!(named.differences.len() == 2 && told.contains("128, but llmb-config_*.yaml says 256"), "{told}");
    assert!(told.contains("bf16, but llmb-config_*.yaml says fp8"), "{told}");
}

#[test]
fn a_misnamed_job_says_how_its_release_names_it() {
    let notes = |model: &str| {
        let path = format!(
            "log-acct.pretrain_{model}_fp8_cs_gpus64_tp1_pp1_cp1_vpNone_ep1_etpNone_mbs2_gbs256_123_0.out"
        );
        let mut intake = Intake::new(path, &Spec::default());
        intake.feed(steps(256).as_bytes());
        Report::of(&intake.finish(), &View::default()).notes.join(" ")
    };
    let misnamed = notes("llama31_70b");
    let said = "Couldn't match this Llama 3.1 70B log to a recipe: release 26.06.01 names jobs of this model \
                \"pretrain_llama3_70b_…\", but this name begins with \"pretrain_llama31_70b\". Nearest: ";
    assert!(misnamed.contains(said), "{misnamed}");
    let named = notes("llama3_70b");
    assert!(!named.contains("Couldn't match"), "{named}");
}
