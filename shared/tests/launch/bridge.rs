//! Release 26.06.01 calls Megatron-Bridge's launcher: what Trainplan says of a call is what the real scripts did. Megatron-Bridge's
//! own recipes are launched by its train.sh.

use crate::shell::{Place, SHELLS};
use crate::{launched, refused, warns};
use trainplan_shared::catalog::{Catalog, Release};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{LaunchOptions, launch};
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
}

const OWN: &str = include_str!("releases/bridge-main.tsv");

/// Returns the arguments that a launch gives train.sh, as every shell does.
fn train_sh(id: &str, fields: &[(Field, &str)]) -> Vec<String> {
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
    let script = launched(id, fields).script;
    let [first, others @ ..] = SHELLS.map(|shell| place.run(shell, &script, &env));
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
    assert_eq!((recipes, all.count()), (258, 258));
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

#[test]
fn a_recipe_that_names_the_layers_of_its_stages_keeps_their_number() {
    let id = "deepseek-v3/gb300/mxfp8/256@bridge-main";
    let arguments = train_sh(id, &[(Field::Pp, "4"), (Field::Vp, "4")]);
    assert_eq!((after(&arguments, "-pp"), after(&arguments, "-vp")), (Some("4"), Some("4")));
    assert_eq!(refused(id, &[(Field::Pp, "4")]).field, Field::Pp);
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
