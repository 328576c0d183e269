//! Release 26.06.01 calls Megatron-Bridge's launcher: what Trainplan says of a call is what the real scripts did. Megatron-Bridge's
//! own recipes are launched by its train.sh.

use crate::shell::{Place, SHELLS};
use crate::{launched, refused, warns};
use trainplan_shared::catalog::{Catalog, Release};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{Launch, LaunchOptions, launch, launch_or_fall_back};
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

const RECORDED: &str = include_str!("releases/26.06.01.tsv");

/// A recorded call.
struct Recorded {
    id: &'static str,
    experiment: &'static str,
    env: &'static str,
    arguments: &'static str,
}

fn recorded() -> impl Iterator<Item = Recorded> {
    RECORDED.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap();
        Recorded { id: cell(), experiment: cell(), env: cell(), arguments: cell() }
    })
}

#[test]
fn every_recipe_runs_with_the_arguments_that_its_script_gives() {
    let mut calls = 0;
    for Recorded { id, experiment, env, arguments } in recorded() {
        let made = launched(id, &[(Field::Account, "acct"), (Field::Partition, "part")]);
        let runs = made.runs.unwrap_or_else(|| panic!("{id} has no call"));
        let plain = runs.command.replace("${LLMB_INSTALL}", "$LLMB_INSTALL").replace(['\'', '"'], "");
        assert_eq!(plain.strip_prefix("python3 "), Some(arguments), "{id}");
        let set: Vec<String> = runs.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(set.join(" "), env, "{id}");
        assert_eq!(made.outputs.jobs, [experiment], "{id}");
        calls += 1;
    }
    let release: Release = "26.06.01".parse().unwrap();
    let recipes = Catalog::embedded().recipes().iter().filter(|recipe| recipe.id.release == release);
    assert_eq!((calls, recipes.count()), (288, 288));
}

#[test]
fn a_script_takes_another_layout_through_its_variables() {
    let made = launched("llama3.1-70b/h100/fp8/64@26.06.01", &[(Field::Tp, "2"), (Field::Gbs, "512")]);
    let set = |name: &str| made.env.get(name).map(ToString::to_string);
    assert_eq!((set("TP"), set("GBS"), set("PP")), (Some("2".into()), Some("512".into()), None));
    assert!(!made.comparable.yes && made.runs.is_none());
}

#[test]
fn what_a_script_forces_is_refused() {
    let problem = refused("gpt-oss-120b/b200/bf16/64@26.06.01", &[(Field::Ep, "64")]);
    assert_eq!((problem.field, problem.suggestions), (Field::Ep, vec!["8".to_owned()]));
}

#[test]
fn a_known_fault_is_a_warning() {
    assert!(warns(&launched("deepseek-v3/b200/fp8/256@26.06.01", &[]), "illegal memory access"));
    assert!(!warns(&launched("deepseek-v3/b300/fp8/256@26.06.01", &[]), "illegal memory access"));
    assert!(warns(&launched("deepseek-v3/b200/nvfp4/256@bridge-0.6.0", &[]), "illegal memory access"));
    assert!(!warns(&launched("deepseek-v3/b200/bf16/256@bridge-main", &[]), "illegal memory access"));
    // The variant has EP 8.
    assert!(!warns(
        &launched("deepseek-v3/b200/mxfp8/256+large_scale@bridge-main", &[]),
        "illegal memory access"
    ));
}

#[test]
fn a_readme_that_prints_another_layout_is_named() {
    let b200 = launched("llama3.1-405b/b200/fp8/256@26.06.01", &[]);
    assert!(warns(
        &b200,
        "The README of release 26.06.01 (llama3.1/README.md, line 56) lists --pp 8, --cp 2, --vp 8 for this recipe, \
         but Megatron-Bridge's configuration, from which its script starts, sets --pp 16, --cp 1, --vp 4."
    ));
    assert_eq!(b200.runs.unwrap().printed, ["pp=8", "cp=2", "vp=8"]);
    assert!(warns(
        &launched("gpt-oss-120b/gb300/bf16/144@26.06.01", &[]),
        "line 9) lists --ep 64, --mbs 4 for this recipe, but its script sets --ep 8, --mbs 5."
    ));
    let unlisted = launched("nemotron-3-super-120b/gb200/bf16/64@26.06.01", &[]);
    assert!(warns(&unlisted, "(nemotron3/README.md) has no row for this recipe"));
    // A value that the user set isn't named, and the other recipes agree with their README.
    let chosen = launched("llama3.1-70b/h100/fp8/64@26.06.01", &[(Field::Mbs, "2")]);
    assert!(warns(&launched("llama3.1-70b/h100/fp8/64@26.06.01", &[]), "lists --mbs 2"));
    assert!(!warns(&chosen, "README"));
    assert!(!warns(&launched("llama3.1-70b/h100/bf16/64@26.06.01", &[]), "README"));
}

const OWN: &str = include_str!("releases/bridge-main.tsv");

/// Returns the arguments that a recipe's launch gives train.sh.
fn train_sh(id: &str, fields: &[(Field, &str)]) -> Vec<String> {
    arguments(&launched(id, fields))
}

/// Returns the launch of a plan that names no recipe, written as on a command line: `model=llama3.1-8b gpus=8`.
fn planned(text: &str) -> Result<Launch, Vec<Problem>> {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    let spec =
        pairs.fold(Spec::default(), |spec, (flag, value)| spec.with(Field::from_flag(flag).unwrap(), value));
    launch(&spec.scenario()?, &LaunchOptions::from_spec(&spec)?)
}

/// Returns the arguments that a launch gives train.sh, as every shell does.
fn arguments(launch: &Launch) -> Vec<String> {
    let place = Place::new();
    place.stand_in("bridge/scripts/training/train.sh");
    let checkout = place.text("bridge");
    let env = [
        ("SLURM_ACCOUNT", "acct"),
        ("SLURM_PARTITION", "part"),
        ("HF_TOKEN", "a-secret"),
        ("NEMORUN_HOME", "/lustre/nemo run"),
        ("RECIPE_DIR", &checkout),
    ];
    let [first, others @ ..] = SHELLS.map(|shell| place.run(shell, &launch.script, &env));
    assert!(others.iter().all(|seen| seen.args == first.args));
    assert_eq!((first.program.as_str(), first.cwd), ("train.sh", place.path("bridge")));
    first.args.into_iter().map(|argument| argument.replace(&checkout, "CHECKOUT")).collect()
}

fn after<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let position = arguments.iter().position(|argument| argument == flag)?;
    arguments.get(position + 1).map(String::as_str)
}

#[test]
fn a_recipe_of_megatron_bridge_is_launched_whole() {
    let arguments = train_sh("deepseek-v3/gb300/mxfp8/256@bridge-main", &[]).join(" ");
    let expected = "--nodes 64 --gpus-per-node 4 --account acct --partition part \
        --container-image /lustre/nemo run/nvidia+nemo+26.08.sqsh --mount CHECKOUT:/opt/Megatron-Bridge \
        --srun-arg=--mpi=pmix --srun-arg=--no-container-mount-home --srun-arg=--container-writable --env HF_TOKEN \
        --experiment-name deepseek_v3_pretrain_256gpu_gb300_fp8mx \
        --recipe deepseek_v3_pretrain_256gpu_gb300_fp8mx_config --mode pretrain --max_steps 50";
    assert_eq!(arguments, expected);
}

#[test]
fn every_own_recipe_calls_its_function_on_its_nodes() {
    let mut recipes = 0;
    for line in OWN.lines().filter(|line| !line.starts_with('#')) {
        let [id, function, per_node, gbs, dp] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let made = launched(id, &[(Field::Account, "acct"), (Field::Partition, "part")]);
        let command = &made.commands[0];
        assert!(command.contains(&format!(" --recipe {function} --mode pretrain ")), "{command}");
        let recipe = Catalog::embedded().recipe(id).unwrap();
        let nodes = recipe.id.gpus / per_node.parse::<u32>().unwrap();
        assert!(command.contains(&format!(" --nodes {nodes} --gpus-per-node {per_node} ")), "{command}");
        assert_eq!((recipe.gbs.to_string().as_str(), recipe.dp().to_string().as_str()), (gbs, dp));
        assert_eq!(made.outputs.jobs, ["training"], "{id}");
        recipes += 1;
    }
    let release: Release = "bridge-main".parse().unwrap();
    let all = Catalog::embedded().recipes().iter().filter(|recipe| recipe.id.release == release);
    assert_eq!((recipes, all.count()), (291, 291));
}

#[test]
fn a_recipe_whose_data_has_another_length_is_launched_with_its_own() {
    for release in ["bridge-main", "bridge-0.6.0"] {
        let id = format!("gpt-oss-20b/gb200/nvfp4/8@{release}");
        // Without the option, run_recipe.py would train with the 4,096 tokens of the recipe's data.
        assert_eq!(after(&train_sh(&id, &[]), "-sl"), Some("8192"));
        let other = train_sh(&id, &[(Field::SeqLen, "4096")]);
        assert_eq!(after(&other, "-sl"), Some("4096"));
        assert_eq!(other.iter().filter(|argument| *argument == "-sl").count(), 1);
    }
    assert_eq!(after(&train_sh("gpt-oss-120b/gb200/bf16/64@bridge-main", &[]), "-sl"), None);
}

#[test]
fn version_0_6_0_is_launched_as_main_is_from_its_own_checkout() {
    let ids = ["deepseek-v3/gb300/mxfp8/256@bridge-main", "deepseek-v3/gb300/mxfp8/256@bridge-0.6.0"];
    let [main, old] = ids.map(|id| train_sh(id, &[]).join(" "));
    let experiment = "--experiment-name deepseek_v3_pretrain_256gpu_gb300_fp8mx";
    assert_eq!(old, main.replace(experiment, &format!("{experiment}_v060")));
    let checkouts = ids.map(|id| {
        let steps = launched(id, &[]).prepare.into_iter().flat_map(|step| step.commands);
        steps.filter(|command| command.contains(" checkout ")).collect::<Vec<_>>()
    });
    assert_eq!(
        checkouts,
        [["git -C Megatron-Bridge checkout 067f987df"], ["git -C Megatron-Bridge checkout v0.6.0"]]
    );
    // Its recipe for the B200 records a whole iteration in one CUDA graph, and main's doesn't.
    let full = [(Field::Recompute, "full")];
    let problem = refused("qwen3-30b-a3b/b200/mxfp8/8@bridge-0.6.0", &full);
    assert_eq!(problem.field, Field::Recompute);
    assert!(!launched("qwen3-30b-a3b/b200/mxfp8/8@bridge-main", &full).comparable.yes);
}

#[test]
fn megatron_bridge_takes_another_layout_batch_and_scale() {
    let id = "llama3.1-405b/h100/bf16/1024@bridge-main";
    let fields =
        [(Field::Gpus, "512"), (Field::Tp, "1"), (Field::Pp, "16"), (Field::Vp, "1"), (Field::Cp, "1")];
    let fields = [fields.as_slice(), &[(Field::Gbs, "1024"), (Field::Mbs, "2")]].concat();
    let arguments = train_sh(id, &fields);
    for (flag, value) in [
        ("--nodes", "64"),
        ("-tp", "1"),
        ("-pp", "16"),
        ("-cp", "1"),
        ("-mb", "2"),
        ("-gb", "1024"),
        ("--experiment-name", "llama31_405b_pretrain_512gpu_h100_bf16_tp1_pp16_cp1_vp1_mbs2_gbs1024"),
    ] {
        assert_eq!(after(&arguments, flag), Some(value), "{arguments:?}");
    }
    let overrides = &arguments[arguments.len() - 2..];
    assert_eq!(
        overrides,
        ["model.sequence_parallel=false", "model.virtual_pipeline_model_parallel_size=null"]
    );
    assert!(!arguments.contains(&"-vp".to_owned()));
    // The recipe's batch would follow the data parallelism of another layout.
    assert_eq!(after(&train_sh(id, &[(Field::Tp, "4")]), "-gb"), Some("1536"));
    assert!(!launched(id, &[(Field::Tp, "4")]).comparable.yes);
}

#[test]
fn the_ranks_of_an_nvlink_domain_divide_the_expert_parallelism() {
    let id = "qwen3-235b-a22b/gb300/mxfp8/256@bridge-main";
    let override_of = |fields: &[(Field, &str)]| {
        let arguments = train_sh(id, fields);
        arguments.into_iter().find(|argument| argument.starts_with("++env_vars."))
    };
    let ranks = |ranks: u32| Some(format!("++env_vars.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN={ranks}"));
    assert_eq!(override_of(&[(Field::Ep, "64")]), ranks(64));
    assert_eq!(override_of(&[(Field::Ep, "16")]), ranks(16));
    assert_eq!(override_of(&[(Field::Pp, "2"), (Field::Vp, "1")]), None);
}

const LAYOUT: &str = "model.pipeline_model_parallel_layout=";

fn listed_chunks(arguments: &[String]) -> Option<&str> {
    arguments.iter().find_map(|argument| argument.strip_prefix(LAYOUT))
}

#[test]
fn stages_with_other_chunks_than_the_recipe_lists_get_their_own_list() {
    let id = "deepseek-v3/gb300/mxfp8/256@bridge-main";
    // The recipe lists 16 chunks, which suit four stages of four chunks as well.
    let same = train_sh(id, &[(Field::Pp, "4"), (Field::Vp, "4")]);
    assert_eq!(
        (after(&same, "-pp"), after(&same, "-vp"), listed_chunks(&same)),
        (Some("4"), Some("4"), None)
    );
    let other = train_sh(id, &[(Field::Pp, "4"), (Field::Vp, "2")]);
    assert_eq!(listed_chunks(&other), Some("Et*8|t*8|t*8|t*8|t*8|t*8|t*8|t*5mL"));
    let name = "deepseek_v3_pretrain_256gpu_gb300_fp8mx_pp4_vp2";
    assert_eq!(after(&other, "--experiment-name"), Some(name));
    let single = train_sh(id, &[(Field::Pp, "1"), (Field::Vp, "1")]);
    assert_eq!(listed_chunks(&single), Some("null"));
}

#[test]
fn a_searched_layout_runs_with_megatron_bridge() {
    // Each recipe differs from these plans in what it recomputes, or in how it divides the layers.
    for (text, overrides) in [
        (
            "model=deepseek-v3 gpu=b200 gpus=1024 dtype=mxfp8 gbs=4096 pp=8 ep=16 vp=2 pipeline-split=8,8,8,8,8,8,8,5",
            "model.recompute_granularity=null model.recompute_method=null model.recompute_num_layers=null \
             model.recompute_modules=[]",
        ),
        (
            "model=deepseek-v3 gpu=gb300 gpus=256 dtype=mxfp8 gbs=4096 pp=2 ep=32 vp=8 pipeline-split=31,30",
            "model.pipeline_model_parallel_layout=\
             Et*3|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*2mL",
        ),
        (
            "model=qwen3-235b-a22b gpu=h100 gpus=64 dtype=fp8-current gbs=4096 mbs=2 pp=8 ep=8 vp=6 \
             pipeline-split=counted recompute=full",
            "model.sequence_parallel=false model.recompute_granularity=full model.recompute_method=uniform \
             model.recompute_num_layers=1 model.recompute_modules=[] model.cuda_graph_impl=none \
             comm_overlap.overlap_moe_expert_parallel_comm=false comm_overlap.delay_wgrad_compute=false",
        ),
        (
            "model=llama3.1-70b gpu=h100 gpus=64 dtype=fp8-current gbs=1024 tp=4 pp=8 vp=5 seq-len=4096",
            "model.pipeline_model_parallel_layout=null",
        ),
    ] {
        let launch = planned(text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
        assert_eq!(launch.release.map(Release::id), Some("bridge-main"), "{text}");
        let arguments = arguments(&launch);
        let set: Vec<&str> = arguments
            .iter()
            .map(String::as_str)
            .filter(|argument| argument.contains('=') && !argument.starts_with('-'))
            .collect();
        assert_eq!(set.join(" "), overrides, "{text}");
        assert!(!launch.comparable.yes, "{text}");
    }
}

#[test]
fn micro_batches_that_are_not_a_multiple_of_the_stages_run_in_groups() {
    let text = |gbs: u32| {
        format!("model=llama3.1-70b gpu=h100 gpus=64 dtype=fp8-current gbs={gbs} tp=4 pp=8 vp=5 seq-len=4096")
    };
    let group = |launch: &Launch| {
        let set = "model.microbatch_group_size_per_vp_stage=";
        arguments(launch).iter().find_map(|argument| argument.strip_prefix(set).map(String::from))
    };
    assert_eq!(group(&planned(&text(1024)).unwrap()), None);
    // Of 516 micro batches, groups of 8, 9 or 10 would leave fewer than the 8 stages need.
    let grouped = planned(&text(1032)).unwrap();
    assert_eq!(group(&grouped).as_deref(), Some("11"));
    assert!(warns(&grouped, "They run in groups of 11"));
    // Only Megatron-Bridge's own recipes take groups.
    let own =
        planned("model=llama3.1-70b gpu=h100 gpus=64 dtype=fp8 gbs=1032 tp=4 pp=8 vp=5 release=26.06.01");
    assert!(own.unwrap_err().iter().any(|problem| problem.to_string().contains("a multiple of PP 8")));
    let few = planned(&format!("{} release=bridge-main", text(8))).unwrap_err();
    assert!(few.iter().any(|problem| problem.to_string().contains("at least PP 8")), "{few:?}");
}

#[test]
fn a_scenario_that_no_release_launches_falls_back_to_megatron_lm() {
    let fall_back = |text: &str| {
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        let spec = pairs
            .fold(Spec::default(), |spec, (flag, value)| spec.with(Field::from_flag(flag).unwrap(), value));
        launch_or_fall_back(&spec.scenario().unwrap(), &LaunchOptions::from_spec(&spec).unwrap())
    };
    let unknown = "model=mixtral-8x7b gpu=h100 gpus=64 gbs=512 ep=8";
    let launch = fall_back(unknown).unwrap();
    let fallback = launch.fallback.unwrap();
    assert_eq!((launch.release, fallback.release), (None, None));
    assert!(!fallback.problems.is_empty());
    let published = "model=llama3.1-70b gpu=h100 gpus=64 dtype=bf16 gbs=128 tp=2 pp=8 cp=2 seq-len=4096";
    assert_eq!(fall_back(published).unwrap().fallback, None);
    // The collection's script fixes the sequence length, and Megatron-Bridge's recipes run other software.
    let own = format!("{published} stack=megatron-bridge-26.06:experts=separate");
    let fallback = fall_back(&own).unwrap().fallback.unwrap();
    assert!(fallback.release.is_some());
    assert!(fallback.problems.iter().all(|problem| problem.field.is_of_scenario()));
    // What somebody chose isn't replaced.
    assert!(fall_back(&format!("{unknown} release=26.06.01")).is_err());
    assert_eq!(fall_back(&format!("{unknown} style=megatron-lm")).unwrap().fallback, None);
}

#[test]
fn the_name_of_an_own_configuration_is_not_a_recipes() {
    let text = "model=deepseek-v3 gpu=b200 gpus=1024 dtype=mxfp8 gbs=4096 pp=8 ep=16 vp=2 pipeline-split=8,8,8,8,8,8,8,5";
    let launch = planned(text).unwrap();
    let name = "own_deepseek_v3_pretrain_256gpu_b200_fp8mx_gpus1024_recompute-modulesnone_ep16_gbs4096";
    assert_eq!(after(&arguments(&launch), "--experiment-name"), Some(name));
    assert!(launch.outputs.experiment_dir.shell().contains(&format!("/experiments/{name}/{name}_")));
}

#[test]
fn full_recomputation_turns_off_what_excludes_it() {
    let launch = planned("recipe=gpt-oss-20b/b300/mxfp8/64@bridge-main recompute=full").unwrap();
    assert!(launch.slowdown.is_some_and(|ratio| ratio > 1.0), "{:?}", launch.slowdown);
    assert!(warns(&launch, "Full recomputation turns off CUDA graphs in this script. Steps take about "));
    // One graph of a whole iteration with experts can't be turned off: Megatron-LM runs it.
    let graphed = "model=deepseek-v3 gpu=gb300 gpus=256 dtype=mxfp8 gbs=4096 pp=2 ep=32 vp=8 pipeline-split=32,29 recompute=full";
    assert!(planned(graphed).is_err());
}

#[test]
fn a_last_stage_with_multi_token_prediction_gets_a_better_division() {
    let text = "model=deepseek-v3 gpu=gb300 gpus=256 dtype=mxfp8 gbs=4096 pp=4 ep=32 vp=2";
    let launch = planned(&format!("{text} pipeline-split=even")).unwrap();
    assert!(warns(
        &launch,
        "also computes multi-token prediction and the loss, so every step waits for it. Set "
    ));
    assert!(warns(&launch, "--pipeline-split 16,16,16,13"));
    let better = planned(&format!("{text} pipeline-split=16,16,16,13")).unwrap();
    assert!(!warns(&better, "multi-token prediction"));
}

#[test]
fn a_scenario_without_a_release_finds_the_recipe_that_runs_its_software() {
    let fields = [
        (Field::Model, "llama3.1-70b"),
        (Field::Gpu, "h100"),
        (Field::Gpus, "64"),
        (Field::Dtype, "bf16"),
        (Field::Tp, "2"),
        (Field::Pp, "8"),
        (Field::Cp, "2"),
        (Field::Gbs, "128"),
        (Field::SeqLen, "4096"),
    ];
    let release = |more: &[(Field, &str)]| {
        let spec =
            fields.iter().chain(more).fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
        let options = LaunchOptions::from_spec(&spec).unwrap();
        launch(&spec.scenario().unwrap(), &options).map(|launch| launch.release.map(Release::id))
    };
    assert_eq!(release(&[]), Ok(Some("bridge-main")));
    // The collection's script fixes the sequence length.
    assert!(release(&[(Field::Release, "26.06.01")]).is_err());
    // Other software than that of the recipe, and a value that no recipe takes.
    assert!(release(&[(Field::Stack, "megatron-bridge-26.06:experts=separate")]).is_err());
    assert!(release(&[(Field::Fsdp, "on")]).is_err());
}

#[test]
fn the_release_that_has_the_planned_software_comes_before_the_usual_one() {
    // 26.06.01 and bridge-main publish this layout, the first with a measurement.
    let plan = "model=llama3.1-8b gpu=h100 gpus=64 dtype=fp8-current gbs=512";
    let launched = |more: &str| {
        let text = format!("{plan} {more}");
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        let spec = pairs
            .fold(Spec::default(), |spec, (flag, value)| spec.with(Field::from_flag(flag).unwrap(), value));
        let (scenario, options) = (spec.scenario().unwrap(), LaunchOptions::from_spec(&spec).unwrap());
        launch_or_fall_back(&scenario, &options).unwrap()
    };
    for (more, release) in [
        ("", Some("bridge-main")),
        ("stack=megatron-bridge-26.02", Some("26.06.01")),
        ("release=26.06.01", Some("26.06.01")),
        ("style=llmb-run", Some("26.06.01")),
        // Only the usual release has this option.
        ("profile=on", Some("26.06.01")),
        ("stack=torchtitan", None),
        ("stack=megatron-lm-0.14", None),
    ] {
        let launch = launched(more);
        assert_eq!(launch.release.map(Release::id), release, "{more}");
        assert_eq!(launch.fallback.is_some(), more == "stack=torchtitan", "{more}");
    }
    let fallback = launched("stack=torchtitan").fallback.unwrap();
    assert_eq!(fallback.problems[0].to_string(), "No release runs torchtitan.");
    assert!(fallback.release.is_some());
    // Both train dense models as fast.
    assert!(launched("release=26.06.01").slowdown.is_none() && launched("").slowdown.is_none());
}

#[test]
fn megatron_bridges_options_and_what_train_sh_can_not_do() {
    let id = "gpt-oss-120b/h100/bf16/64@bridge-main";
    let fields = [
        (Field::Mounts, "/data:/data,/cache"),
        (Field::ContainerImage, "/images/own.sqsh"),
        (Field::TimeLimit, "00:40:00"),
        (Field::SlurmParams, "qos=high;reservation=r1"),
        (Field::Env, "NCCL_DEBUG=INFO"),
        (Field::MaxSteps, "100"),
    ];
    let arguments = train_sh(id, &fields);
    for (flag, value) in [
        ("--container-image", "/images/own.sqsh"),
        ("--time", "00:40:00"),
        ("--additional-slurm-params", "qos=high;reservation=r1"),
        ("--max_steps", "100"),
    ] {
        assert_eq!(after(&arguments, flag), Some(value), "{arguments:?}");
    }
    let of = |flag: &str| {
        let pairs = arguments.windows(2).filter(|pair| pair[0] == flag);
        pairs.map(|pair| pair[1].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("--mount"), ["CHECKOUT:/opt/Megatron-Bridge", "/data:/data", "/cache"]);
    assert_eq!(of("--env"), ["HF_TOKEN", "NCCL_DEBUG"]);
    assert_eq!(refused(id, &[(Field::Profile, "on")]).field, Field::Profile);
    assert_eq!(refused(id, &[(Field::Mounts, "data:/data")]).field, Field::Mounts);
    assert_eq!(refused(id, &[(Field::SaveCheckpoint, "on")]).field, Field::SaveCheckpoint);
    assert_eq!(refused(id, &[(Field::NcclTrace, "on")]).field, Field::NcclTrace);
}
