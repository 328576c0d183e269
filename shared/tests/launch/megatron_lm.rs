//! Launches with Megatron-LM: their flags are checked against the known ones, and their scripts run in real
//! shells.

use crate::shell::{Place, SHELLS, Seen};
use crate::{launched, warns};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use trainplan_shared::catalog::{Catalog, Model};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{Launch, LaunchOptions, ScriptSoftware, launch};
use trainplan_shared::log::{LogName, Role};
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

const STYLE: (Field, &str) = (Field::Style, "megatron-lm");
const LLAMA: &str = "llama3.1-405b/h100/fp8/512@25.04";
/// What Slurm tells a job.
const JOB: [(&str, &str); 3] =
    [("SLURM_JOB_ID", "4711"), ("SLURM_JOB_NODELIST", "node[1-2]"), ("MEGATRON_PATH", "/opt/megatron-lm")];

fn try_launch(fields: &[(Field, &str)]) -> Result<Launch, Vec<Problem>> {
    let spec = fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
    let spec = spec.with(STYLE.0, STYLE.1);
    launch(&spec.scenario()?, &LaunchOptions::from_spec(&spec)?)
}

/// The launch of fields, written as on a command line: `model=llama3.1-8b gpus=8`.
fn of(text: &str) -> Launch {
    try_launch(&fields(text)).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

/// The only problem of fields that can't be launched.
fn refused(text: &str) -> Problem {
    let problems = try_launch(&fields(text)).map(|launch| launch.script).unwrap_err();
    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    problems.into_iter().next().unwrap()
}

fn fields(text: &str) -> Vec<(Field, &str)> {
    let pairs = text.split(' ').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(flag, value)| (Field::from_flag(flag).unwrap(), value)).collect()
}

/// What a job's `srun` was called with.
fn srun(launch: &Launch, shell: &str, env: &[(&str, &str)]) -> Seen {
    let place = Place::new();
    let seen = place.run(shell, &launch.script, env);
    assert_eq!(seen.program, "srun");
    seen
}

/// The program and its flags, each with its values.
fn flags(launch: &Launch) -> (String, BTreeMap<String, Vec<String>>) {
    let args = srun(launch, "sh", &JOB).args;
    let program = args.iter().position(|arg| arg.ends_with(".py")).unwrap();
    let mut flags: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut last = String::new();
    for arg in &args[program + 1..] {
        if arg.starts_with("--") {
            let (flag, value) =
                arg.split_once('=').map_or((arg.as_str(), None), |(flag, value)| (flag, Some(value)));
            let values = value.map(String::from).into_iter().collect();
            assert!(flags.insert(flag.to_owned(), values).is_none(), "{flag} is there twice");
            last = flag.to_owned();
        } else {
            // Python's argparse takes it for a flag.
            assert!(!arg.starts_with('-'), "{last} {arg}");
            flags.get_mut(&last).unwrap().push(arg.clone());
        }
    }
    (args[program].clone(), flags)
}

fn value(launch: &Launch, flag: &str) -> Option<String> {
    flags(launch).1.get(flag).map(|values| values.join(" "))
}

/// What each flag of the data file takes.
fn known() -> BTreeMap<String, String> {
    let text = include_str!("../../data/megatron_lm_flags.csv");
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let mut columns = row.split(',').map(String::from);
        (columns.next().unwrap(), columns.next().unwrap())
    })
    .collect()
}

/// Whether a flag of that kind takes such a value.
fn takes(kind: &str, value: &str) -> bool {
    match kind {
        "int" => value.parse::<u32>().is_ok(),
        "float" => value.parse::<f64>().is_ok(),
        "text" => !value.is_empty(),
        "tuple" => value.split(',').all(|part| part.parse::<u32>().is_ok()),
        "list" => value.contains('[') && value.chars().all(|c| "0123456789[]()*+,".contains(c)),
        "stages" => value.chars().all(|c| "EtmL|*0123456789".contains(c)),
        "layers" => value.chars().all(|c| "M-E*".contains(c)),
        choices => choices.split(' ').any(|choice| choice == value),
    }
}

/// Scenarios that between them ask for everything.
const EVERYTHING: [&str; 14] = [
    "recipe=llama3.1-405b/h100/fp8/512@25.04 profile=yes save-checkpoint=yes load-checkpoint=/c recompute=full",
    "recipe=nemotron4-340b/h100/fp8/256@25.12 recompute=selective",
    "recipe=nemotron-h-56b/h100/fp8/256@25.05",
    "model=deepseek-v3 gpu=gb200 gpus=256 dtype=mxfp8 pp=4 vp=4 ep=64 gbs=2048",
    "model=deepseek-v2-lite gpu=h100 gpus=8 dtype=fp8-block gbs=64 ep=8 overlap=off recompute-modules=mlp,shared_experts",
    "model=gpt-oss-20b gpu=h100 gpus=64 gbs=512 fsdp=yes dtype=fp8",
    "model=gpt3-175b gpu=gb200 gpus=64 gbs=512 tp=4 pp=8 vp=3 dtype=nvfp4",
    "model=llama3.1-70b gpu=h100 gpus=64 gbs=96 tp=4 pp=4 vp=5 dtype=fp8-current",
    "model=llama3.1-70b gpu=h100 gpus=64 gbs=60 tp=4 pp=4 vp=5 dtype=fp8-delayed cp=2",
    "model=llama3.1-70b gpu=h100 gpus=64 gbs=64 tp=2 pp=8 vp=5 overlap=off",
    "model=nemotron-3-nano-30b gpu=h200 gpus=64 gbs=512 tp=2 ep=8",
    "model=llama4-maverick gpu=h100 gpus=128 gbs=128 ep=128",
    "model=mixtral-8x7b gpu=a100 gpus=16 gbs=64 ep=8 expert-tp=2 tp=2",
    "model=own:layers=4,hidden=1024,ffn=4096,heads=16,kv_heads=16,head_dim=64,vocab=1000,gated=0,tied_embeddings=1,\
     seq_len=1024,experts=8,top_k=2,moe_ffn=512,dense_layers=1,moe_layers=3,moe_latent=256 gpu=h100 gpus=8 gbs=8",
];

#[test]
fn every_flag_is_one_of_megatron_lm_with_what_it_takes() {
    let known = known();
    let all = Catalog::embedded().models().iter();
    // Megatron-LM would need the kinds of a hybrid's prediction layers.
    let is_open = |model: &&Model| model.architecture.mamba.is_some() && model.architecture.mtp_layers > 0;
    let (open, models): (Vec<&Model>, Vec<&Model>) = all.partition(is_open);
    for model in open {
        let problem = refused(&format!("model={} gpu=h100 gpus=128 gbs=128", model.id));
        assert_eq!(problem.field, Field::Model, "{}", model.id);
    }
    let models = models.into_iter();
    let plain = models.map(|model| format!("model={} gpu=h100 gpus=128 gbs=128", model.id));
    let mut emitted = BTreeSet::new();
    for text in EVERYTHING.into_iter().map(String::from).chain(plain) {
        let (program, flags) = flags(&of(&text));
        assert!(program.starts_with("/opt/megatron-lm/pretrain_"), "{program}");
        for (flag, values) in flags {
            let takes_what = known.get(&flag).unwrap_or_else(|| panic!("{text}: {flag} is not known"));
            let fits = match takes_what.as_str() {
                "" => values.is_empty(),
                "text text" => values.len() == 2,
                kind if kind.starts_with("some ") => {
                    !values.is_empty() && values.iter().all(|value| takes(&kind["some ".len()..], value))
                }
                kind => values.len() == 1 && takes(kind, &values[0]),
            };
            assert!(fits, "{text}: {flag} {values:?}");
            emitted.insert(flag);
        }
    }
    let never: Vec<&String> = known.keys().filter(|flag| !emitted.contains(*flag)).collect();
    assert!(never.is_empty(), "no scenario has {never:?}");
}

#[test]
fn a_recipe_is_passed_on_completely() {
    let launch = launched(LLAMA, &[STYLE, (Field::Account, "research"), (Field::TimeLimit, "1:00:00")]);
    for shell in SHELLS {
        let seen = srun(&launch, shell, &JOB);
        assert_eq!(seen.env["CUDA_DEVICE_MAX_CONNECTIONS"], "1");
        let torchrun = seen.args.iter().position(|arg| arg == "torchrun").unwrap();
        assert_eq!(
            seen.args[torchrun..torchrun + 12],
            [
                "torchrun",
                "--nnodes",
                "64",
                "--nproc-per-node",
                "8",
                "--rdzv-backend",
                "c10d",
                "--rdzv-id",
                "4711",
                "--rdzv-endpoint",
                "node1:24711",
                "/opt/megatron-lm/pretrain_gpt.py"
            ]
        );
    }
    let (_, flags) = flags(&launch);
    for (flag, wanted) in [
        ("--num-layers", "126"),
        ("--num-query-groups", "8"),
        ("--vocab-size", "128255"),
        ("--tensor-model-parallel-size", "8"),
        ("--pipeline-model-parallel-size", "8"),
        ("--num-virtual-stages-per-pipeline-rank", "8"),
        ("--context-parallel-size", "2"),
        ("--fp8-recipe", "delayed"),
        ("--train-iters", "50"),
    ] {
        assert_eq!(flags[flag], [wanted], "{flag}");
    }
    for flag in ["--sequence-parallel", "--account-for-loss-in-pipeline-split", "--swiglu", "--mock-data"] {
        assert!(flags.contains_key(flag), "{flag}");
    }
    let lines = directives(&launch);
    for line in ["--nodes=64", "--gpus-per-node=8", "--account=research", "--time=01:00:00", "--exclusive"] {
        assert!(lines.iter().any(|given| given == line), "{line} is not in {lines:?}");
    }
    assert!(launch.release.is_none() && launch.needs == ["MEGATRON_PATH"]);
    // The script does all that the recipe's software does.
    assert_eq!(launch.warnings, []);
    assert!(flags.contains_key("--tp-comm-overlap"));
    assert!(!launch.comparable.yes && launch.comparable.baseline.is_some());
}

#[test]
fn gradients_and_optimizer_are_stored_as_the_planned_software_does() {
    let launch = launched(LLAMA, &[STYLE]);
    let (_, given) = flags(&launch);
    assert!(given.contains_key("--grad-reduce-in-bf16"));
    assert!(!given.contains_key("--use-precision-aware-optimizer"), "FP8 keeps whole FP32 weights");
    let bf16 = launched(LLAMA, &[STYLE, (Field::Dtype, "bf16")]);
    assert!(flags(&bf16).1.contains_key("--use-precision-aware-optimizer"));
    // Megatron-LM's own gradients in FP32 are more than the recipe's GPUs hold beside all else.
    let own = launched(LLAMA, &[STYLE, (Field::Stack, "megatron-lm-0.14")]);
    assert!(!flags(&own).1.contains_key("--grad-reduce-in-bf16"));
    // It keeps BF16 weights beside those in FP8, and NVIDIA's software does not.
    assert!(given.contains_key("--fp8-param-gather") && !flags(&own).1.contains_key("--fp8-param-gather"));
    assert!(warns(&own, "Does not fit: stage "));
    assert!(warns(&own, "The script has Megatron-LM's default FP32 gradients and optimizer."));
}

#[test]
fn without_its_checkout_nothing_starts() {
    let place = Place::new();
    let output = place.execute("sh", &launched(LLAMA, &[STYLE]).script, &JOB[..2]);
    assert!(!output.status.success() && place.seen().is_none());
    assert!(String::from_utf8_lossy(&output.stderr).contains("MEGATRON_PATH: set it to your checkout"));
}

#[test]
fn the_log_has_the_announced_path_and_name() {
    let launch = of("model=qwen3-30b-a3b gpu=h100 gpus=64 gbs=512 ep=8 pp=2 dtype=fp8-current profile=yes");
    let place = Place::new();
    let seen = place.run("sh", &launch.script, &JOB);
    let log = seen.args.iter().find_map(|arg| arg.strip_prefix("--output=")).unwrap();
    std::fs::write(log, "").unwrap();
    let found = place.execute("sh", &format!("ls {}", launch.outputs.log_glob.shell()), &[]);
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(log.ends_with(found.trim_end()) && !found.is_empty(), "{log} {found}");
    let name = LogName::of(log);
    assert_eq!((name.role, name.job_id, name.restart), (Role::Training, Some(4711), Some(0)));
    assert_eq!((name.model.as_deref(), name.size.as_deref()), (Some("qwen3"), Some("30b_a3b")));
    assert_eq!((name.gpus, name.pp, name.ep, name.gbs), (Some(64), Some(2), Some(8), Some(512)));
    assert_eq!(name.dtype.as_deref(), Some("fp8-current"));
    let profile = launch.outputs.profile_glob.unwrap().shell();
    assert!(profile.starts_with("experiments/") && profile.ends_with("/profile_node*.nsys-rep"), "{profile}");
}

#[test]
fn uneven_stages_are_written_layer_by_layer() {
    for text in [
        "model=deepseek-v3 gpu=h100 gpus=256 gbs=2048 pp=16 vp=2 ep=16",
        "model=deepseek-v3 gpu=h100 gpus=256 gbs=2048 pp=4 vp=3 ep=64 pipeline-split=15,16,16,14",
        "model=llama3.1-405b gpu=h100 gpus=256 gbs=256 tp=8 pp=8 vp=5 pipeline-split=counted",
        "model=llama3.1-8b gpu=h100 gpus=24 gbs=24 pp=3",
    ] {
        let spec =
            fields(text).into_iter().fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
        let scenario = spec.scenario().unwrap();
        let layout = value(&of(text), "--pipeline-model-parallel-layout").unwrap();
        let (pp, mtp) = (scenario.layout.pp() as usize, scenario.architecture.mtp_layers as usize);
        assert!(layout.starts_with('E') && layout.ends_with(&format!("{}L", "m".repeat(mtp))), "{layout}");
        let mut stages = vec![0; pp];
        let chunks: Vec<&str> = layout.split('|').collect();
        assert_eq!(chunks.len() as u32, scenario.layout.pp() * scenario.layout.vp());
        for (chunk, layers) in chunks.into_iter().enumerate() {
            let layers = layers.trim_matches(['E', 'm', 'L']);
            let count = layers.strip_prefix("t*").map_or(layers.len() as u32, |count| count.parse().unwrap());
            stages[chunk % pp] += count;
        }
        assert_eq!(stages, scenario.layout.stages(), "{layout}");
    }
    // What the plain flags can say, they say.
    let even = of("model=llama3.1-8b gpu=h100 gpus=16 gbs=32 pp=4 vp=2");
    assert_eq!(value(&even, "--pipeline-model-parallel-layout"), None);
    assert_eq!(value(&even, "--num-virtual-stages-per-pipeline-rank"), Some("2".into()));
    let named = of("model=llama3.1-8b gpu=h100 gpus=16 gbs=32 pp=4 pipeline-split=8,8,8,8");
    assert_eq!(value(&named, "--pipeline-model-parallel-layout"), None);
}

#[test]
fn multi_token_prediction_shortens_the_last_stage() {
    let text = "model=deepseek-v3 gpu=h100 gpus=256 gbs=2048 pp=4 vp=4 ep=64";
    assert!(warns(&of(text), "Set --pipeline-split 16,16,16,13."));
    let better = of(&format!("{text} pipeline-split=16,16,16,13"));
    assert!(!warns(&better, "multi-token prediction"));
    // As in Megatron-Bridge's recipe for GB300: the last chunk has one layer, the prediction and the loss.
    let chunks = value(&better, "--pipeline-model-parallel-layout").unwrap();
    assert_eq!(chunks, format!("Et*4|{}tmL", "t*4|".repeat(14)));
}

#[test]
fn settings_of_a_recipe_with_fsdp_are_named() {
    let plan = "gpus=64 gbs=256 mbs=2 dtype=fp8-current fsdp=yes";
    assert!(warns(
        &of(&format!("model=llama3.1-70b gpu=gb300 {plan}")),
        ", a recipe with FSDP for this model and GPU type, runs with --offload-layers 20. This script doesn't"
    ));
    assert!(!warns(&of(&format!("model=llama3.1-70b gpu=h100 {plan}")), "a recipe with FSDP"));
}

#[test]
fn kinds_of_layers_are_counted() {
    let hybrid = of("model=nemotron-h-56b gpu=h100 gpus=64 gbs=64 tp=8");
    assert!(flags(&hybrid).0.ends_with("/pretrain_mamba.py"));
    let pattern = value(&hybrid, "--hybrid-override-pattern").unwrap();
    let count = |letter: char| pattern.matches(letter).count();
    assert_eq!((count('M'), count('-'), count('*'), pattern.len()), (54, 54, 10, 118));
    assert!(warns(&hybrid, "spread evenly") && warns(&hybrid, "--hybrid-layer-pattern"));
    let dense = of("model=nemotron-h-47b gpu=h100 gpus=64 gbs=64 tp=8");
    assert!(value(&dense, "--hybrid-override-pattern").unwrap().starts_with('-'));
    let routed = of("model=deepseek-v3 gpu=h100 gpus=256 gbs=256 ep=64");
    assert_eq!(value(&routed, "--moe-layer-freq"), Some("[0]*3+[1]*58".into()));
    assert_eq!(value(&routed, "--mtp-num-layers"), Some("1".into()));
    assert!(warns(&routed, "--moe-router-force-load-balancing"));
    let windowed = of("model=gpt-oss-120b gpu=h100 gpus=64 gbs=64 ep=64");
    assert_eq!(value(&windowed, "--window-size"), Some("127,0".into()));
    assert_eq!(value(&windowed, "--window-attn-skip-freq"), Some("([1]*1+[0]*1)*18".into()));
}

#[test]
fn every_version_trains_the_same_vocabulary() {
    let number = |launch: &Launch, flag: &str| value(launch, flag).unwrap().parse::<u32>().unwrap();
    for model in Catalog::embedded().models().iter().filter(|model| model.architecture.mamba.is_none()) {
        for tp in [1, 2, 4] {
            let Ok(launch) =
                try_launch(&fields(&format!("model={} gpu=h100 gpus=128 gbs=128 tp={tp}", model.id)))
            else {
                continue;
            };
            let multiple = number(&launch, "--make-vocab-size-divisible-by") * tp;
            // Megatron-Core 0.18 and later count no further token for the end of a document.
            let tokens = number(&launch, "--vocab-size");
            for tokens in [tokens, tokens + 1] {
                let wanted = model.architecture.vocab.next_multiple_of(tp);
                assert_eq!(tokens.next_multiple_of(multiple), wanted, "{} TP {tp}", model.id);
            }
        }
    }
}

#[test]
fn routers_are_the_models() {
    let launch = |model: &str| of(&format!("model={model} gpu=h100 gpus=256 gbs=256 ep=8"));
    let router = |model: &str| {
        let (_, flags) = flags(&launch(model));
        let of_router = flags
            .into_iter()
            .filter(|(flag, _)| flag.starts_with("--moe-router-") && *flag != "--moe-router-topk");
        of_router
            .map(|(flag, values)| {
                [&flag["--moe-router-".len()..]]
                    .into_iter()
                    .chain(values.iter().map(String::as_str))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        router("deepseek-v3"),
        [
            "bias-update-rate 1e-3",
            "dtype fp32",
            "enable-expert-bias",
            "force-load-balancing",
            "group-topk 4",
            "load-balancing-type seq_aux_loss",
            "num-groups 8",
            "score-function sigmoid",
            "topk-scaling-factor 2.5",
        ]
    );
    // DeepEP takes weights in FP32.
    assert_eq!(
        router("mixtral-8x7b"),
        ["dtype fp32", "force-load-balancing", "load-balancing-type aux_loss"]
    );
    assert_eq!(router("gpt-oss-20b"), ["force-load-balancing", "load-balancing-type aux_loss"]);
    let llama4 =
        ["dtype fp32", "force-load-balancing", "load-balancing-type aux_loss", "score-function sigmoid"];
    assert_eq!(router("llama4-scout"), llama4);
    assert!(router("kimi-k2").contains(&"topk-scaling-factor 2.827".to_string()));
    assert!(router("deepseek-v2").contains(&"pre-softmax".to_string()));
    assert!(
        warns(&launch("grok-1"), "router scores experts")
            && !warns(&launch("mixtral-8x7b"), "scores experts")
    );
    // Megatron-LM refuses a softmax over one expert.
    let single = EVERYTHING[13].replace("top_k=2", "top_k=1");
    assert!(value(&of(&single), "--moe-router-pre-softmax").is_some());
}

#[test]
fn nodes_of_an_nvlink_domain_are_segments() {
    let segment = |text: &str| {
        let lines = directives(&of(text));
        let lines = lines.iter().filter_map(|line| line.strip_prefix("--segment=")).collect::<Vec<_>>();
        assert!(lines.len() < 2, "{lines:?}");
        lines.first().map(ToString::to_string)
    };
    let dense = |gpus: u32| segment(&format!("model=llama3.1-70b gpu=gb200 gpus={gpus} gbs={gpus} tp=4"));
    for (gpus, nodes) in
        [(4, None), (64, Some("16")), (72, Some("18")), (256, Some("16")), (80, Some("10")), (148, None)]
    {
        assert_eq!(dense(gpus).as_deref(), nodes, "{gpus}");
    }
    // Groups of 8 nodes are not divided: 24 nodes are three segments of 8, not two of 12.
    let experts = "model=deepseek-v3 gpu=gb300 gpus=96 gbs=96 ep=32";
    assert_eq!(segment(experts).as_deref(), Some("8"));
    assert_eq!(segment(&format!("{experts} slurm-params=segment=4")).as_deref(), Some("4"));
    assert_eq!(segment("model=llama3.1-70b gpu=h100 gpus=64 gbs=64 tp=8"), None);
}

#[test]
fn attention_is_the_models() {
    let has_norm = |text: &str| flags(&of(text)).1.contains_key("--qk-layernorm");
    assert!(has_norm("model=qwen3-8b gpu=h100 gpus=8 gbs=128"));
    assert!(has_norm("model=qwen3-30b-a3b gpu=h100 gpus=8 gbs=512 ep=8"));
    assert!(!has_norm("model=llama3.1-8b gpu=h100 gpus=8 gbs=128"));
    let base = |model: &str| value(&of(&format!("model={model} gpu=h100 gpus=8 gbs=128")), "--rotary-base");
    assert_eq!(base("llama3.1-8b").as_deref(), Some("500000"));
    assert_eq!(base("qwen3-8b").as_deref(), Some("1000000"));
    assert_eq!(base("llama2-7b"), None, "Megatron-LM's default");
    assert_eq!(base("nemotron-h-8b"), None, "a hybrid without rotary positions");
}

#[test]
fn an_estimate_for_other_software_is_named() {
    let plan = "model=llama3.1-8b gpu=h100 gpus=8 gbs=128";
    assert!(warns(
        &of(&format!("{plan} stack=nanotron")),
        "is for nanotron, but this script runs Megatron-LM"
    ));
    for stack in ["megatron-lm-0.14", "megatron-bridge-25.11"] {
        assert!(!warns(&of(&format!("{plan} stack={stack}")), "runs Megatron-LM"), "{stack}");
    }
    let moe = of("model=qwen3-235b-a22b gpu=b200 gpus=512 gbs=4096 mbs=2 dtype=mxfp8 pp=4 ep=8 vp=12 \
                  pipeline-split=counted");
    assert!(warns(&moe, "The script runs Megatron-LM without fused kernels for experts: steps take about "));
    assert!(!warns(&moe, "CUDA graphs, ") && !warns(&moe, "sending tokens"));
}

#[test]
fn cuda_graphs_are_captured_where_megatron_lm_allows_it() {
    let plan = "model=nemotron4-15b gpu=h100 gpus=8 gbs=128";
    let graphed = format!("{plan} stack=megatron-bridge-26.02");
    let has = |text: &str| value(&of(text), "--cuda-graph-impl");
    let dense = of(&graphed);
    assert_eq!(has(&graphed).as_deref(), Some("transformer_engine"));
    // Whole layers, which is the default of all versions.
    assert_eq!(value(&dense, "--cuda-graph-scope"), None);
    assert!(value(&dense, "--te-rng-tracker").is_some() && !warns(&dense, "CUDA graphs"));
    assert_eq!(dense.env["PYTORCH_CUDA_ALLOC_CONF"].shell(), "expandable_segments:False");
    assert_eq!(dense.env["NCCL_GRAPH_REGISTER"].shell(), "0");
    assert_eq!(has(plan), has(&format!("{plan} stack={}", default_software())));
    assert_eq!(has(&format!("{plan} stack=megatron-lm-0.14")), None);
    assert_eq!(
        has(&format!("{plan} stack=megatron-lm-0.14:cuda_graphs=dense")).as_deref(),
        Some("transformer_engine")
    );
    for excluding in [
        "recompute=selective",
        "recompute=full",
        "fsdp=yes",
        "cp=2",
        "tp=2",
        "dtype=fp8-block",
        "env=PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    ] {
        let text = format!("{graphed} {excluding}");
        assert_eq!(has(&text), None, "{excluding}");
    }
    let sharded = of(&format!("{graphed} fsdp=yes"));
    assert!(!warns(&sharded, "CUDA graphs"), "no plan with FSDP assumes them");
    // The launch says why, also where that hardly costs time.
    let small = "model=llama3.2-1b gpu=b200 gpus=8 gbs=64 stack=megatron-bridge-26.02 cp=2";
    assert!(warns(&of(small), "CUDA graphs are off because context parallelism is not tested with them."));
    // Tensor parallelism without overlap permits graphs. Variables of the user stay.
    assert!(has(&format!("{graphed} tp=2 overlap=off")).is_some());
    let own = of(&format!("{graphed} env=PYTORCH_CUDA_ALLOC_CONF=backend:native"));
    assert_eq!(own.env["PYTORCH_CUDA_ALLOC_CONF"].shell(), "backend:native");
    assert!(value(&own, "--cuda-graph-impl").is_some());
    let experts = of("model=qwen3-30b-a3b gpu=h100 gpus=64 gbs=512 ep=8 stack=megatron-bridge-26.06");
    assert_eq!(value(&experts, "--cuda-graph-scope").as_deref(), Some("attn moe_router moe_preprocess"));
    assert!(warns(&experts, "need Megatron-Core 0.16"));
    // The software of 26.02 captures dense models only, unless recipes say otherwise.
    assert_eq!(has("model=mixtral-8x7b gpu=h100 gpus=64 gbs=512 ep=8 stack=megatron-bridge-26.02"), None);
}

fn default_software() -> String {
    let spec = fields("model=llama3.1-8b gpu=h100 gpus=8 gbs=128").into_iter();
    let spec = spec.fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
    spec.scenario().unwrap().options.software.to_string()
}

#[test]
fn parts_of_a_layer_are_recomputed() {
    let plan = "model=deepseek-v3 gpu=h100 gpus=256 gbs=256 ep=64";
    let modules = |text: &str| value(&of(&format!("{plan} {text}")), "--recompute-modules");
    assert_eq!(modules("recompute=selective"), None, "Megatron-LM's default");
    assert_eq!(modules("recompute-modules=moe_act,mlp").as_deref(), Some("mlp moe_act"));
    assert_eq!(
        modules("recompute=selective recompute-modules=mla_up_proj").as_deref(),
        Some("core_attn mla_up_proj")
    );
    let granularity = value(&of(&format!("{plan} recompute-modules=mlp")), "--recompute-granularity");
    assert_eq!(granularity.as_deref(), Some("selective"));
    for (text, says) in [
        ("recompute-modules=attention", "Allowed"),
        ("recompute-modules=mlp recompute=full", "has no effect"),
        ("recompute-modules=moe_act dtype=fp8-delayed", "with delayed scaling"),
    ] {
        let problem = refused(&format!("{plan} {text}"));
        assert_eq!(problem.field, Field::RecomputeModules);
        assert!(problem.to_string().contains(says), "{problem}");
    }
    let dense = refused("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 recompute-modules=moe_act");
    assert!(dense.to_string().contains("needs a mixture of experts"), "{dense}");
}

#[test]
fn activations_in_cpu_memory_are_refused() {
    for (text, says) in [
        ("offload-layers=32", "less than the 32 layers"),
        ("offload-layers=8 pp=2", "without pipeline parallelism"),
        ("offload-layers=8 recompute=full", "with recomputation"),
        ("offload-layers=8", "not every Megatron-LM"),
    ] {
        let problem = refused(&format!("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 {text}"));
        assert_eq!(problem.field, Field::OffloadLayers);
        assert!(problem.to_string().contains(says), "{problem}");
    }
}

#[test]
fn tokens_are_sent_once_to_each_nvlink_domain() {
    let launch = |text: &str| of(&format!("{text} stack=megatron-bridge-26.06"));
    let dispatcher = |launch: &Launch| value(launch, "--moe-token-dispatcher-type").unwrap();
    let deep_ep = launch("model=qwen3-30b-a3b gpu=h100 gpus=256 gbs=2048 pp=8 ep=16");
    assert_eq!(dispatcher(&deep_ep), "flex");
    assert!(value(&deep_ep, "--moe-enable-deepep").is_some());
    assert_eq!(value(&deep_ep, "--moe-router-dtype").as_deref(), Some("fp32"));
    assert!(warns(&deep_ep, "needs DeepEP") && warns(&deep_ep, "sends_once_per_domain=no"));
    assert!(deep_ep.prepare.iter().any(|step| step.note.to_string().contains("DeepEP")));
    let hybrid_ep = launch("model=deepseek-v3 gpu=gb200 gpus=256 gbs=2048 pp=4 vp=4 ep=64 dtype=mxfp8");
    assert_eq!(value(&hybrid_ep, "--moe-flex-dispatcher-backend").as_deref(), Some("hybridep"));
    assert_eq!(value(&hybrid_ep, "--moe-enable-deepep"), None);
    for (name, text) in
        [("NVLINK_DOMAIN_SIZE", "72"), ("USE_MNNVL", "1"), ("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN", "64")]
    {
        assert_eq!(hybrid_ep.env[name].shell(), text, "{name}");
    }
    for without in [
        // DeepEP is for Hopper and later.
        "model=mixtral-8x7b gpu=a100 gpus=16 gbs=64 ep=8",
        "model=mixtral-8x7b gpu=h100 gpus=16 gbs=64 ep=8 expert-tp=2 tp=2",
        "model=gpt-oss-20b gpu=h100 gpus=64 gbs=512 ep=8",
        "model=deepseek-v3 gpu=gb200 gpus=256 gbs=2048 ep=256",
    ] {
        let launch = launch(without);
        assert_eq!(dispatcher(&launch), "alltoall", "{without}");
        assert!(!warns(&launch, "deep_ep"), "{without}");
    }
    // The recipes of the model don't.
    let like_recipe = launch("model=qwen3-235b-a22b gpu=h100 gpus=256 gbs=2048 pp=8 ep=16");
    assert_eq!(dispatcher(&like_recipe), "alltoall");
    let plain = of("model=qwen3-30b-a3b gpu=h100 gpus=256 gbs=2048 pp=8 ep=16 stack=megatron-lm-0.14");
    assert_eq!(dispatcher(&plain), "alltoall");
}

#[test]
fn the_exchange_between_experts_overlaps_in_interleaved_pipelines() {
    const FLAG: &str = "--overlap-moe-expert-parallel-comm";
    let base = "model=qwen3-235b-a22b gpus=256 gbs=2048 pp=2 ep=16 stack=megatron-bridge-26.06";
    let hidden = of(&format!("{base} gpu=h100 vp=47"));
    assert!(value(&hidden, FLAG).is_some());
    assert_eq!(hidden.env["CUDA_DEVICE_MAX_CONNECTIONS"].shell(), "32");
    for without in [
        "gpu=h100",
        "gpu=h100 vp=47 recompute=full",
        "gpu=h100 vp=47 overlap=off",
        // One queue for tensor parallelism, many for this.
        "gpu=h100 vp=47 tp=2",
    ] {
        assert_eq!(value(&of(&format!("{base} {without}")), FLAG), None, "{without}");
    }
    assert!(value(&of(&format!("{base} gpu=b200 dtype=mxfp8 vp=47 tp=2")), FLAG).is_some());
    let planned = base.replace("megatron-bridge-26.06", "megatron-lm-0.14");
    assert_eq!(value(&of(&format!("{planned} gpu=h100 vp=47")), FLAG), None);
}

#[test]
fn a_plan_with_the_scripts_software_has_the_same_script_and_no_warning() {
    let stacks =
        ["", "megatron-bridge-26.06", "megatron-bridge-25.09", "nemo-1", "megatron-lm-0.14", "nanotron"];
    let own =
        "megatron-lm-0.14:overlaps_tp=yes,gradient_bytes=1,optimizer_bytes=11,weights=fp32,hides_experts=yes";
    for (text, stack) in
        EVERYTHING.iter().flat_map(|text| stacks.into_iter().chain([own]).map(move |stack| (text, stack)))
    {
        let given = fields(text).into_iter().chain((!stack.is_empty()).then_some((Field::Stack, stack)));
        let spec = given.fold(Spec::default(), |spec, (field, value)| spec.with(field, value));
        let spec = spec.with(STYLE.0, STYLE.1);
        let options = LaunchOptions::from_spec(&spec).unwrap();
        let scenario = spec.scenario().unwrap();
        let script = ScriptSoftware::of(&scenario, &options);
        let planned = spec.with(Field::Stack, script.software.to_string()).scenario().unwrap();
        let again = ScriptSoftware::of(&planned, &options);
        assert!(!again.differs() && again.software == script.software, "{text} {stack}: {again:?}");
        let [one, other] = [&scenario, &planned].map(|scenario| launch(scenario, &options).unwrap());
        assert_eq!(one.script, other.script, "{text} {stack}");
    }
}

#[test]
fn overlap_flags_follow_the_layout_and_the_gpu() {
    let has = |text: &str, flag: &str| value(&of(text), flag).is_some();
    let base = "model=llama3.1-70b gpus=64 gbs=128 tp=4";
    for (gpu, connections) in [("h100", true), ("a100", true), ("b200", false)] {
        let launch = of(&format!("{base} gpu={gpu}"));
        assert_eq!(launch.env.contains_key("CUDA_DEVICE_MAX_CONNECTIONS"), connections, "{gpu}");
    }
    let overlap = ["--overlap-grad-reduce", "--overlap-param-gather", "--tp-comm-overlap"];
    for flag in overlap {
        assert!(has(&format!("{base} gpu=h100"), flag), "{flag}");
        assert!(!has(&format!("{base} gpu=h100 overlap=off"), flag), "{flag}");
        // The script does what the planned software does.
        let own = format!("{base} gpu=h100 stack=megatron-lm-0.14");
        assert!(!has(&own, flag), "{flag}");
        assert!(has(&format!("{own}:overlaps_dp=yes,overlaps_tp=yes"), flag), "{flag}");
    }
    // It reaches no further than a node, and not into every format.
    assert!(!has(&format!("{base} gpu=gh200"), "--tp-comm-overlap"));
    for (dtype, on) in [
        ("fp8", true),
        ("fp8-delayed", true),
        ("fp8-current", true),
        ("fp8-block", false),
        ("mxfp8", true),
        ("nvfp4", false),
    ] {
        let gpu = if matches!(dtype, "mxfp8" | "nvfp4") { "b200" } else { "h100" };
        assert_eq!(has(&format!("{base} gpu={gpu} dtype={dtype}"), "--tp-comm-overlap"), on, "{dtype}");
    }
    // In MXFP8, only blocks of 128 overlap: here, a rank has 1,904 channels of the MLP.
    let unaligned = "model=own:layers=4,hidden=4096,ffn=7616,heads=32,kv_heads=32,head_dim=128,vocab=32000,gated=1,\
                     tied_embeddings=0,seq_len=4096 gpu=b200 gpus=8 gbs=8 tp=4";
    assert!(!has(&format!("{unaligned} dtype=mxfp8"), "--tp-comm-overlap"));
    assert!(has(&format!("{unaligned} dtype=fp8-current"), "--tp-comm-overlap"));
    let sharded = of("model=llama3.1-8b gpu=h100 gpus=16 gbs=16 cp=2 fsdp=yes");
    assert!(sharded.script.contains("\nunset CUDA_DEVICE_MAX_CONNECTIONS\n"));
    let seen = srun(&sharded, "sh", &[&JOB[..], &[("CUDA_DEVICE_MAX_CONNECTIONS", "1")]].concat());
    assert!(!seen.env.contains_key("CUDA_DEVICE_MAX_CONNECTIONS"));
    assert_eq!(value(&sharded, "--ckpt-format"), Some("fsdp_dtensor".into()));
    assert!(value(&sharded, "--init-model-with-meta-device").is_some());
}

#[test]
fn scenarios_that_megatron_lm_cannot_run_are_refused() {
    for (text, field, says) in [
        (
            "model=llama3.1-8b gpu=h100 gpus=16 gbs=16 pp=2 fsdp=yes",
            Field::Pp,
            "--pp 2 and --fsdp exclude each other",
        ),
        ("model=nemotron-h-56b gpu=h100 gpus=64 gbs=64 pp=4", Field::Pp, "layers unevenly"),
        ("model=nemotron-h-56b gpu=h100 gpus=64 gbs=64 pp=2 vp=59", Field::Vp, "supported for hybrids"),
        ("model=llama3.1-70b gpu=h100 gpus=64 gbs=32 pp=4 vp=2 tp=1", Field::Gbs, "Use 64"),
        ("model=llama3.1-8b gpu=h100 gpus=12 gbs=12", Field::Gpus, "Use 8 or 16"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 release=25.12", Field::Release, "your checkout"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 cluster-type=runai", Field::ClusterType, "Use slurm"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 gres=gpu:4", Field::Gres, "Use gpu:8"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 account=$ME", Field::Account, "SBATCH_ACCOUNT"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 env=run=1", Field::Env, "launch itself sets run"),
        (
            "model=llama3.1-8b gpu=h100 gpus=8 gbs=8 tp=2 env=CUDA_DEVICE_MAX_CONNECTIONS=8",
            Field::Env,
            "launch itself sets CUDA",
        ),
        (
            "model=llama3.1-8b gpu=h100 gpus=8 gbs=8 profile=yes max-steps=20 profile-stop-step=30",
            Field::ProfileStopStep,
            "Use 20",
        ),
        (
            "model=llama3.1-8b gpu=h100 gpus=8 gbs=8 mounts=data container-image=/i.sqsh",
            Field::Mounts,
            "absolute",
        ),
    ] {
        let problem = refused(text);
        assert!(problem.field == field && problem.to_string().contains(says), "{text}: {problem}");
    }
    let groups = of("model=llama3.1-70b gpu=h100 gpus=64 gbs=96 pp=4 vp=2");
    assert_eq!(value(&groups, "--microbatch-group-size-per-virtual-pipeline-stage"), Some("6".into()));
}

#[test]
fn options_without_effect_are_warned_about() {
    let says = |text: &str, warning: &str| {
        assert!(warns(&of(&format!("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 {text}")), warning), "{text}");
    };
    says("recipe-dir=/r", "--recipe-dir has no effect");
    says("mounts=/m", "Without a container, --mounts has no effect");
    says("venv=/v container-image=/i.sqsh", "In a container, --venv has no effect");
    says("gpu-metrics=yes", "Without a profile, --gpu-metrics has no effect");
    says("load-checkpoint=/c", "ends after step 50");
    let small = EVERYTHING[13];
    assert!(warns(&of(small), "more than the vocabulary of 1000"), "{small}");
    assert!(warns(&of("model=llama3.1-8b gpu=h100 gpus=16 gbs=16 tp=16"), "Megatron-Core before 0.16"));
    let image = [(Field::ContainerImage, "/i.sqsh")];
    assert!(warns(&launched(LLAMA, &image), "--container-image has no effect without --style megatron-lm"));
}

/// The options of a script's `#SBATCH` lines, read as sbatch reads them.
fn directives(launch: &Launch) -> Vec<String> {
    let lines = launch.script.lines().filter_map(|line| line.strip_prefix("#SBATCH"));
    lines.flat_map(arguments).collect()
}

/// White space parts, quotes group, `#` ends, and a backslash takes what follows, within quotes too:
/// `_get_argument` of Slurm's `sbatch/opt.c`.
fn arguments(line: &str) -> Vec<String> {
    let (mut arguments, mut argument) = (Vec::new(), None::<String>);
    let (mut quote, mut escaped) = (None, false);
    for c in line.chars() {
        let within = argument.is_some() || quote.is_some();
        match c {
            _ if escaped => {
                argument.get_or_insert_default().push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => argument.get_or_insert_default().push(c),
            '"' | '\'' => quote = Some(c),
            '#' => break,
            _ if c.is_ascii_whitespace() => {
                if within {
                    arguments.extend(argument.take());
                }
            }
            _ => argument.get_or_insert_default().push(c),
        }
    }
    assert!(quote.is_none(), "sbatch would miss a quote in {line}");
    arguments.extend(argument);
    arguments
}

/// What a shell, Slurm or a careless script might act on.
const ANYTHING: &str = r##"[ !"#$%&'()*+,\-./0-9:<=>?@A-Z\[\\\]^_`a-z{|}~éßλ字🙂]{0,24}"##;
/// The same without what a script that expands without quotes would take apart.
const UNSPLIT: &str = r##"[!"#%&'()+,.0-9:;<=>@A-Z\\\]^_`a-z{|}~éßλ字🙂][!"#$%&'()+,\-.0-9:;<=>@A-Z\\\]^_`a-z{|}~éßλ字🙂]{0,23}"##;
/// One path component of such characters.
const COMPONENT: &str = r##"[!"#%&'()+,\-0-9:;<=>@A-Z\\\]^_`a-z{|}~éßλ字🙂]{1,12}"##;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn hostile_values_reach_slurm_as_they_are(
        account in UNSPLIT, partition in UNSPLIT, params in proptest::collection::vec(ANYTHING, 1..6),
    ) {
        let params: Vec<String> = params.iter().map(|value| value.trim().to_string()).collect();
        let typed: String = params.iter().enumerate().map(|(i, value)| format!("x{i}={value};")).collect();
        let fields = [STYLE, (Field::Account, &account), (Field::Partition, &partition), (Field::SlurmParams, &typed)];
        let launch = launched(LLAMA, &fields);
        let lines = directives(&launch);
        let wanted = [format!("--account={}", account.trim()), format!("--partition={}", partition.trim())];
        let params = params.iter().enumerate().map(|(i, value)| format!("--x{i}={value}"));
        for line in wanted.into_iter().chain(params) {
            prop_assert!(lines.contains(&line), "{} is not in {:?}", line, lines);
        }
        // And nothing of them reaches the shell.
        for shell in SHELLS {
            prop_assert_eq!(srun(&launch, shell, &JOB).program, "srun");
        }
    }

    #[test]
    fn hostile_values_reach_the_run_as_they_are(
        root in COMPONENT, image in UNSPLIT, checkpoint in COMPONENT, mount in COMPONENT, value in ANYTHING,
    ) {
        prop_assume!(!image.contains('$') && (!value.starts_with('$') || value[1..].starts_with(['(', '\'', '"', ' '])));
        // These divide a list of mounts.
        let mounted = |path: &str| format!("/{}", path.replace([',', ':'], "_"));
        let (root, checkpoint, mount) = (mounted(&root), mounted(&checkpoint), format!("/{mount}"));
        let line = format!("V={value}");
        // Typed into a field of its own, white space at the ends is not part of a value.
        let last = format!("{line}\nLAST=1");
        let fields = [
            STYLE,
            (Field::InstallPath, &root),
            (Field::ContainerImage, &image),
            (Field::LoadCheckpoint, &checkpoint),
            (Field::Mounts, &mount),
            (Field::Env, &last),
        ];
        prop_assume!(mount.split(',').all(|part| part.starts_with('/')));
        let launch = launched(LLAMA, &fields);
        for shell in SHELLS {
            let seen = srun(&launch, shell, &JOB[..2]);
            prop_assert_eq!(&seen.env["V"], &value);
            prop_assert_eq!(&seen.env["MEGATRON_PATH"], &root);
            let container = format!("--container-image={}", image.trim());
            prop_assert!(seen.args.contains(&container), "{:?}", seen.args);
            let mounts = seen.args.iter().find_map(|arg| arg.strip_prefix("--container-mounts=")).unwrap();
            prop_assert!(mounts.ends_with(&format!(",{mount}")), "{}", mounts);
            let program = format!("{root}/pretrain_gpt.py");
            prop_assert!(seen.args.contains(&program), "{:?}", seen.args);
            let load = seen.args.iter().position(|arg| arg == "--load").unwrap();
            prop_assert_eq!(&seen.args[load + 1], &checkpoint);
        }
    }
}

#[test]
fn the_log_states_what_changes_the_prediction() {
    let stated = |text: &str| {
        let script = of(text).script.to_string();
        let (_, line) = script.split_once("echo 'trainplan scenario: ").unwrap();
        trainplan_shared::link::read(line.split_once('\'').unwrap().0).spec
    };
    let scenario = "model=llama3.1-70b gpu=h100 gpus=64 gbs=128 tp=4 pp=4 vp=5 stack=megatron-lm-0.14";
    let plain = stated(scenario);
    assert_eq!(plain.get(Field::Stack), Some("megatron-lm-0.14"));
    assert_eq!(plain.iter().count(), 3, "{plain:?}");
    let other = stated(&format!("{scenario} overlap=off recompute=full gemm-tflops=600 cluster-factor=1.2"));
    assert_eq!((other.get(Field::Overlap), other.get(Field::Recompute)), (Some("off"), Some("full")));
    assert_eq!((other.get(Field::GemmTflops), other.get(Field::ClusterFactor)), (Some("600"), Some("1.2")));
}
