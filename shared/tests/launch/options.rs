//! What each option comes to at each release: the commands, and the warnings that say where a release does
//! otherwise.

use crate::{launched, warns};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{JobRequest, Launch, Style};

const SH: (Field, &str) = (Field::Style, "launch-sh");
const NEMOTRON: &str = "nemotron4-340b/h100/fp8/512@25.04";
const LLAMA: &str = "llama3.1-405b/h100/fp8/512@25.04";
const HYBRID: &str = "nemotron-h-56b/h100/fp8/256@25.05";
const BLACKWELL: &str = "nemotron4-340b/gb200/fp8/256@25.12";
const HOPPER: &str = "nemotron4-340b/h100/bf16/512@25.12";
const JOB_SCRIPT: &str = "nemotron4-340b/h100/fp8/128@24.11";

fn env(launch: &Launch, name: &str) -> Option<String> {
    launch.env.get(name).map(ToString::to_string)
}

fn reasons(launch: &Launch) -> String {
    assert_eq!(launch.comparable.yes, launch.comparable.reasons.is_empty());
    launch.comparable.reasons.join("; ")
}

#[test]
fn default_launches_have_no_avoidable_warnings() {
    for recipe in [JOB_SCRIPT, NEMOTRON, HOPPER] {
        assert!(launched(recipe, &[]).warnings.is_empty(), "{recipe}");
    }
    assert!(warns(&launched(LLAMA, &[]), "any user of that machine can see it"));
    assert!(warns(&launched(HYBRID, &[]), "TFLOPS_per_GPU in these logs are wrong"));
    assert!(warns(&launched(BLACKWELL, &[]), "runs FP8 current, although its document says FP8 delayed"));
}

#[test]
fn steps_and_time_limit_have_each_releases_names() {
    let fields = [(Field::MaxSteps, "100"), (Field::TimeLimit, "01:30:00"), SH];
    for (recipe, steps, limit) in [
        (NEMOTRON, "MAX_STEPS", "SBATCH_TIMELIMIT"),
        (LLAMA, "MAX_STEPS", "TIME_LIMIT"),
        (HYBRID, "MAX_STEPS", "TIME_LIMIT"),
        (BLACKWELL, "MAX_STEPS", "TIME_LIMIT"),
    ] {
        let launch = launched(recipe, &fields);
        assert_eq!((env(&launch, steps), env(&launch, limit)), (Some("100".into()), Some("01:30:00".into())));
        assert_eq!((launch.steps, reasons(&launch).as_str()), (100, ""));
    }
    let launch = launched(JOB_SCRIPT, &fields[..2]);
    assert_eq!(env(&launch, "RUN_CONF_MAX_STEPS"), Some("100".into()));
    assert!(launch.commands[0].contains(" '--time=01:30:00' "));
    // 200 steps of 15.892 seconds are 53 minutes.
    assert!(warns(
        &launched(HYBRID, &[(Field::MaxSteps, "200")]),
        "so the time limit of 00:25:00 is too short"
    ));
    assert!(warns(
        &launched(HYBRID, &[(Field::TimeLimit, "00:10:00")]),
        "so the time limit of 00:10:00 is too short"
    ));
    let short = launched(BLACKWELL, &[(Field::MaxSteps, "20")]);
    assert!(reasons(&short).contains("20 steps end before step 45"));
}

#[test]
fn a_profile_ends_the_run_at_its_last_step() {
    for (recipe, stop) in [(NEMOTRON, 25), (LLAMA, 25), (HYBRID, 50), (BLACKWELL, 50)] {
        let launch = launched(recipe, &[(Field::Profile, "yes"), SH]);
        assert_eq!((launch.steps, env(&launch, "ENABLE_PROFILE")), (stop, Some("true".into())));
        assert!(reasons(&launch).contains("Nsight"));
        let other = launched(recipe, &[(Field::Profile, "yes"), (Field::MaxSteps, "60"), SH]);
        assert!(other.steps == stop && warns(&other, &format!("{stop} steps run, not 60")));
    }
    // What is advised works.
    for (recipe, steps, advised) in
        [(BLACKWELL, "40", "35"), (NEMOTRON, "20", "15"), (LLAMA, "3", "1"), (HYBRID, "60", "55")]
    {
        let fields = [(Field::Profile, "yes"), (Field::MaxSteps, steps), SH];
        let advice = format!("Set --profile-start-step {advised} and --profile-stop-step {steps} for");
        assert!(warns(&launched(recipe, &fields), &advice), "{recipe}");
        let window = [(Field::ProfileStartStep, advised), (Field::ProfileStopStep, steps)];
        let fixed = launched(recipe, &[&fields[..], &window[..]].concat());
        assert!(fixed.steps.to_string() == steps && !warns(&fixed, "A profiled run ends"), "{recipe}");
    }
    let one = [(Field::Profile, "yes"), (Field::MaxSteps, "1"), SH];
    assert!(warns(&launched(BLACKWELL, &one), "Remove --max-steps"));
    let begun = [(Field::Profile, "yes"), (Field::MaxSteps, "40"), (Field::ProfileStartStep, "30"), SH];
    assert!(warns(&launched(BLACKWELL, &begun), "Set --profile-stop-step 40 for 40 steps."));
    // 24.11 alone runs on.
    let launch = launched(JOB_SCRIPT, &[(Field::Profile, "yes"), (Field::GpuMetrics, "yes")]);
    assert_eq!((launch.steps, env(&launch, "RUN_CONF_PROFILE_GPU_METRICS")), (50, Some("true".into())));
    assert!(
        launch.outputs.profile_glob.unwrap().shell().ends_with("/nsys/nemotron4-340b-fp8_128g_*.nsys-rep")
    );
    assert!(warns(
        &launched(BLACKWELL, &[(Field::ProfileStartStep, "3")]),
        "Without a profile, --profile-start-step has no effect"
    ));
}

#[test]
fn the_script_says_whether_the_run_is_comparable() {
    let says = |recipe, fields: &[(Field, &str)]| {
        launched(recipe, fields).script.lines().nth(2).unwrap_or_default().to_string()
    };
    let published = "# Benchmark: 50 training steps on synthetic data, same method as the published numbers.";
    let alone =
        |steps: &str| format!("# Runs {steps} on synthetic data; not comparable with a published number.");
    assert_eq!(says(NEMOTRON, &[]), published);
    assert_eq!(says(HYBRID, &[(Field::MaxSteps, "20")]), alone("20 training steps"));
    assert_eq!(says(BLACKWELL, &[(Field::LoadCheckpoint, "/c")]), alone("1 training step"));
    // It runs as the release's do, which published no number for it.
    let unpublished = [(Field::Release, "25.12"), SH];
    let launch = launched("nemotron4-340b/h100/fp8/256@25.04", &unpublished);
    assert_eq!(launch.comparable.baseline, None);
    assert_eq!(says("nemotron4-340b/h100/fp8/256@25.04", &unpublished), alone("50 training steps"));
}

#[test]
fn llmb_run_has_a_flag_for_the_profile() {
    let launch = launched(BLACKWELL, &[(Field::Profile, "yes"), (Field::ProfileStopStep, "48")]);
    assert!(launch.style == Style::LlmbRun && launch.commands[0].ends_with(" --scale 256 -p"));
    let settings = ["ENABLE_PROFILE", "PROFILE_STOP_STEP"].map(|name| env(&launch, name));
    assert_eq!(settings, [None, Some("48".into())]);
}

#[test]
fn llama_profiles_and_traces_in_jobs_of_their_own() {
    let experiment = "pretrain_llama3.1_405b_fp8_512";
    let both = launched(LLAMA, &[(Field::Profile, "yes"), (Field::NcclTrace, "yes")]);
    assert_eq!(
        both.outputs.jobs,
        [experiment.into(), format!("{experiment}_nsys"), format!("{experiment}_nccltrace")]
    );
    assert!(warns(&both, "the plain run is also cut to 25 steps") && warns(&both, "can't be combined"));
    let profiles = both.outputs.profile_glob.unwrap().shell();
    assert!(
        profiles.ends_with(&format!("/{experiment}_*/{experiment}_nsys/nsys_profile/profile_*.nsys-rep"))
    );
    let alone = launched(LLAMA, &[(Field::Profile, "yes"), (Field::Env, "DISABLE_PERFRUN=true")]);
    assert_eq!(alone.outputs.jobs, [format!("{experiment}_nsys")]);
    assert!(!warns(&alone, "second job") && alone.outputs.log_glob.shell().contains("_nsys/log"));
    // A trace leaves the plain run's steps alone.
    assert_eq!(launched(LLAMA, &[(Field::NcclTrace, "yes")]).steps, 50);
}

#[test]
fn outputs_follow_what_moves_them() {
    let launch = launched(LLAMA, &[(Field::Env, "NEMORUN_HOME=/fast/runs")]);
    assert!(launch.outputs.log_glob.shell().starts_with("/fast/runs/experiments/") && launch.comparable.yes);
    let launch = launched(JOB_SCRIPT, &[(Field::Env, "SRUN_OUTPUT=$HOME/my logs/%j_%j.out")]);
    assert_eq!(launch.outputs.log_glob.shell(), "\"${HOME}\"'/my logs/'*_*.out");
}

#[test]
fn a_trace_of_nemotron_h_replaces_the_run() {
    let fields = [(Field::NcclTrace, "yes"), (Field::MaxSteps, "50"), (Field::TimeLimit, "00:30:00"), SH];
    let launch = launched(HYBRID, &fields);
    assert_eq!((launch.steps, env(&launch, "ENABLE_NCCLTRACE")), (5, Some("true".into())));
    assert!(warns(&launch, "has 5 steps and ignores --max-steps 50"));
    assert!(warns(&launch, "has 15 minutes and ignores --time-limit 00:30:00"));
    assert!(launch.outputs.experiment_dir.to_string().contains("_mbs1_gbs768_nccltrace/"));
    assert!(reasons(&launch).contains("NCCL"));
}

#[test]
fn checkpoints_know_their_size_and_where_they_were_tested() {
    let save = [(Field::SaveCheckpoint, "yes")];
    let launch = launched(NEMOTRON, &save);
    assert!(
        launch.prepare.iter().any(|step| step.note.to_string().contains("4.4 TB"))
            && launch.warnings.is_empty()
    );
    let checkpoints = launch.outputs.checkpoint_dir.unwrap().shell();
    assert!(
        checkpoints.ends_with("/pretrain_nemotron4_340b_fp8_512/code/nemo_experiments/default/checkpoints")
    );
    for (recipe, tested) in [
        ("llama3.1-8b/h100/bf16/8@25.04", "16 to 128"),
        ("llama3.1-405b/h100/bf16/128@25.04", "512 to 2048"),
        ("nemotron4-340b/h100/bf16/256@25.12", "512 or more"),
        ("nemotron4-340b/gb300/bf16/256@25.12", "names no tested GPU count"),
    ] {
        assert!(warns(&launched(recipe, &save), tested), "{recipe}");
    }
    for recipe in ["llama3.1-70b/h100/fp8/128@25.04", "nemotron4-340b/b200/bf16/128@25.12"] {
        assert!(!warns(&launched(recipe, &save), "tested"), "{recipe}");
    }
    // Saving alone measures the steps as ever, except for the one recipe that overlaps the optimizer's step.
    assert!(launched("llama3.1-405b/h100/bf16/512@25.04", &save).comparable.yes);
    let overlap = launched(NEMOTRON, &save).comparable.reasons;
    assert!(overlap.iter().any(|reason| reason.contains("overlap")), "{overlap:?}");
}

#[test]
fn a_loaded_checkpoint_takes_one_step() {
    let load = |recipe, path: &str| launched(recipe, &[(Field::LoadCheckpoint, path), SH]);
    let launch = load(BLACKWELL, "/elsewhere/checkpoint");
    assert_eq!((launch.steps, launch.needs.contains(&"HF_TOKEN".into())), (1, true));
    assert!(reasons(&launch).contains("one step") && !warns(&launch, "tested"));
    let fields = [(Field::LoadCheckpoint, "/elsewhere/checkpoint"), (Field::MaxSteps, "20"), SH];
    let shorter = launched(BLACKWELL, &fields);
    assert_eq!((shorter.steps, reasons(&shorter)), (1, reasons(&launch)));
    assert!(warns(&shorter, "ignores --max-steps 20"));
    assert!(warns(&load("nemotron4-15b/h100/bf16/32@25.04", "$STAGE_PATH/c"), "tested on 64 or more"));
    assert!(!warns(&load(NEMOTRON, "$STAGE_PATH/c"), "mounts only"));
    assert!(warns(&load(NEMOTRON, "/lustre/c"), "mounts only $STAGE_PATH"));
    let both = [(Field::LoadCheckpoint, "$STAGE_PATH/c"), (Field::Profile, "yes")];
    let both = launched(LLAMA, &both);
    assert!(both.steps == 25 && warns(&both, "25 steps run, not one"));
    assert!(launch.check.iter().any(|step| step.commands[..]
        == [format!("grep 'Global Checkpoint Load' {}", launch.outputs.log_glob.shell())]));
}

#[test]
fn account_and_partition_go_where_the_style_reads_them() {
    let fields = [(Field::Account, "acct"), (Field::Partition, "batch"), (Field::Gres, "gpu"), SH];
    let launch = launched(BLACKWELL, &fields);
    assert_eq!(env(&launch, "SBATCH_GPUS_PER_NODE"), Some("4".into()));
    assert_eq!(
        (env(&launch, "SBATCH_ACCOUNT"), env(&launch, "SBATCH_PARTITION")),
        (Some("acct".into()), Some("batch".into()))
    );
    let by_llmb_run = launched(BLACKWELL, &fields[..3]);
    assert!(!by_llmb_run.script.contains("acct"));
    assert!(warns(
        &by_llmb_run,
        "This launch ignores --account, --partition, --gres: llmb-run reads LLMB_INSTALL/cluster_config.yaml instead. Set them \
         in that file, or use --style launch-sh, which uses these settings"
    ));
    for field in Style::LlmbRun.configures() {
        let value = match field {
            Field::Gres => "gpu:4",
            Field::RecipeDir => "/recipes",
            _ => "batch",
        };
        let launch = launched(BLACKWELL, &[(*field, value)]);
        assert!(
            warns(&launch, &format!("This launch ignores --{}: llmb-run reads", field.flag())),
            "{field:?}"
        );
    }
    let by_sbatch = launched(JOB_SCRIPT, &[fields[0], fields[1], (Field::Gres, "gpu:h100:8")]);
    assert_eq!(
        by_sbatch.commands,
        ["sbatch -A acct -p batch -N 16 '--gres=gpu:h100:8' \"${STAGE_PATH}\"/launch.sh"]
    );
    assert_eq!(
        launched(NEMOTRON, &[]).needs,
        ["STAGE_PATH", "SBATCH_ACCOUNT", "SBATCH_PARTITION", "RECIPE_DIR"]
    );
}

#[test]
fn slurm_parameters_are_carried_as_far_as_sbatch_reads_them() {
    let params = "qos=high;constraint=gpu&memory;nodelist=n1,n2;exclusive;requeue;wckey=w;signal=B:USR1@60";
    for (recipe, style) in [(BLACKWELL, "llmb-run"), (BLACKWELL, "launch-sh"), (NEMOTRON, "launch-sh")] {
        let launch = launched(recipe, &[(Field::SlurmParams, params), (Field::Style, style)]);
        let exported = ["SBATCH_QOS", "SBATCH_CONSTRAINT", "SBATCH_WCKEY", "SBATCH_SIGNAL"]
            .map(|name| env(&launch, name));
        assert_eq!(exported.map(Option::unwrap), ["high", "gpu&memory", "w", "B:USR1@60"]);
        assert!(warns(&launch, "can't pass on nodelist=n1,n2; requeue"));
        assert!(warns(&launch, &format!("jobs of release {} are always exclusive", launch.release.unwrap())));
    }
    let launch = launched(HYBRID, &[(Field::SlurmParams, "constraint=gpu&memory;exclusive"), SH]);
    assert!(warns(&launch, "exclusive is omitted") && !warns(&launch, "can't pass on"));
    assert_eq!(env(&launch, "SBATCH_EXCLUSIVE"), None);
    for recipe in [JOB_SCRIPT, NEMOTRON, BLACKWELL] {
        for (params, other) in
            [("nodelist=a,b,exclusive", "exclusive"), ("nodelist=n1,n2 constraint=x", "constraint=x")]
        {
            let launch = launched(recipe, &[(Field::SlurmParams, params)]);
            assert!(warns(&launch, &format!("as a single parameter, with {other} in its value")), "{recipe}");
            assert!(warns(&launch, &format!("put a semicolon before it: ;{other}")), "{recipe}");
        }
    }
    let launch = launched(JOB_SCRIPT, &[(Field::SlurmParams, params)]);
    assert!(
        launch.commands[0].contains(" '--constraint=gpu&memory' '--nodelist=n1,n2' --exclusive --requeue ")
    );
    assert!(launch.warnings.is_empty());
}

#[test]
fn a_launch_says_what_its_job_asks_slurm_for() {
    let fields = [
        (Field::Gres, "gpu"),
        (Field::SlurmParams, "wckey=w;qos=high"),
        (Field::TimeLimit, "02:00:00"),
        (Field::GpusPerNode, "8"),
    ];
    let asked = JobRequest {
        nodes: 64,
        gpus_per_node: 8,
        asks_for_gpus: true,
        time_limit: "02:00:00".parse().ok(),
        qos: vec!["high".into()],
    };
    assert_eq!(launched(NEMOTRON, &[&fields[..], &[SH]].concat()).job, asked);
    assert_eq!(launched(NEMOTRON, &[&fields[..], &[(Field::Style, "megatron-lm")]].concat()).job, asked);
    // llmb-run ignores GRES. A limit of the release's script counts like one that was set.
    let by_llmb_run = launched(BLACKWELL, &[(Field::Gres, "gpu"), (Field::Style, "llmb-run")]).job;
    assert!(!by_llmb_run.asks_for_gpus && by_llmb_run.time_limit.is_some());
    assert_eq!((by_llmb_run.nodes, by_llmb_run.gpus_per_node), (64, 4));
}

#[test]
fn nodes_follow_the_gpus_of_a_node() {
    assert!(launched("nemotron4-340b/h100/bf16/2048@24.11", &[]).commands[0].contains(" -N 256 "));
    // The release's batch counts nodes: four times the matrix where a node has two GPUs.
    let fields = [(Field::GpusPerNode, "2"), (Field::Gbs, "128")];
    let launch = launched(JOB_SCRIPT, &fields);
    assert!(launch.commands[0].contains(" -N 64 ") && reasons(&launch).contains("by nodes"));
    assert_eq!(env(&launch, "SLURM_GPUS_PER_NODE"), Some("2".into()));
    assert_eq!(env(&launched(LLAMA, &[(Field::GpusPerNode, "4")]), "GPUS_PER_NODE"), Some("4".into()));
    let across = launched(BLACKWELL, &[(Field::GpusPerNode, "4")]);
    assert!(reasons(&across).contains("with 4 GPUs per node, TP 8 spans nodes"), "{}", reasons(&across));
}

#[test]
fn the_job_script_names_its_files_by_the_gpus_that_it_is_told() {
    let outputs = launched(JOB_SCRIPT, &[(Field::Env, "SBATCH_GPUS=512")]).outputs;
    let log = outputs.log_glob.shell();
    assert!(log.contains("/512/log-nemo_nemotron4_") && log.ends_with("_512_*.out"), "{log}");
    assert!(outputs.experiment_dir.shell().ends_with("/512"));
}

#[test]
fn a_time_limit_covers_the_start_of_the_job_and_the_steps_of_this_layout() {
    const RECIPE: &str = "llama3.1-405b/gb200/fp8/256@26.06.01";
    let warning = |launch: &Launch| {
        let mut warnings = launch.warnings.iter();
        warnings.find(|warning| warning.to_string().contains("time limit of")).cloned()
    };
    // The published step time is of another layout, and shorter.
    let layout = [(Field::Tp, "8"), (Field::Pp, "8"), (Field::Vp, "8")];
    let with = |limit: &str| launched(RECIPE, &[&layout[..], &[(Field::TimeLimit, limit)]].concat());
    let short = warning(&with("00:50:00")).unwrap();
    let text = short.text.to_string();
    assert!(text.starts_with("50 steps are predicted to take ") && text.contains(" (up to "), "{text}");
    assert!(text.ends_with("so the time limit of 00:50:00 is too short."), "{text}");
    let enough = short.fix.settings().next().unwrap();
    assert_eq!((enough.field, warning(&with(&enough.value))), (Field::TimeLimit, None));
    // The steps end in time, but the job also has to start.
    let tight = warning(&launched(RECIPE, &[(Field::TimeLimit, "00:52:00")])).unwrap().text.to_string();
    assert!(tight.contains("assumed to need 10 minutes to start"), "{tight}");
    assert!(tight.ends_with("of 00:52:00 may be too short."), "{tight}");
    // NVIDIA chose the release's own limit for its recipe, not for other layouts or more steps.
    assert_eq!(warning(&launched(RECIPE, &[])), None);
    assert!(warning(&launched(RECIPE, &[(Field::MaxSteps, "500")])).is_some());
}

#[test]
fn a_time_limit_is_compared_with_the_steps_without_a_published_number_too() {
    let limit = (Field::TimeLimit, "00:05:00");
    let short = launched(
        "llama3.1-405b/h100/fp8/512@25.04",
        &[limit, (Field::Gbs, "1024"), (Field::Style, "megatron-lm")],
    );
    assert!(warns(&short, "50 steps are predicted to take"), "{:?}", short.warnings);
    let long = launched(
        "llama3.1-8b/h100/fp8/8@25.04",
        &[(Field::TimeLimit, "04:00:00"), (Field::Style, "megatron-lm")],
    );
    assert!(!warns(&long, "time limit"), "{:?}", long.warnings);
    let default = launched("llama3.1-8b/h100/fp8/8@25.04", &[(Field::Style, "megatron-lm")]);
    assert!(warns(&default, "the partition's default applies. Set --time-limit"), "{:?}", default.warnings);
}

#[test]
fn mounts_and_images_reach_the_script_that_reads_them() {
    let fields = [(Field::Mounts, "/data,$HOME/x:/x"), (Field::Env, "RUN_CONF_IMAGE=/images/other.sqsh"), SH];
    let launch = launched(BLACKWELL, &fields);
    assert!(launch.script.contains("export RUN_CONF_MOUNTS='/data,'\"${HOME}\"/x:/x\n"));
    assert!(reasons(&launch).contains("RUN_CONF_IMAGE changes what runs"));
    let inert =
        launched(BLACKWELL, &[(Field::Env, "ADDITIONAL_SLURM_PARAMS=a=b\nTP_COMM_OVERLAP=False"), SH]);
    assert!(warns(&inert, "ADDITIONAL_SLURM_PARAMS") && warns(&inert, "only a change of the script"));
    // Other releases read these.
    for (recipe, setting) in [
        (JOB_SCRIPT, "RUN_CONF_IMAGE=/i"),
        (JOB_SCRIPT, "GBS=64"),
        (JOB_SCRIPT, "MAX_STEPS=9"),
        (NEMOTRON, "GBS=64"),
        (NEMOTRON, "RUN_CONF_IMAGE=/i"),
    ] {
        let name = setting.split('=').next().unwrap();
        let launch = launched(recipe, &[(Field::Env, setting)]);
        assert!(warns(&launch, &format!("doesn't read {name}")), "{recipe} {setting}: {:?}", launch.warnings);
    }
    assert!(launched(NEMOTRON, &[(Field::Env, "NCCL_DEBUG=INFO")]).warnings.is_empty());
}

#[test]
fn unpublished_gpu_counts_are_launched_without_llmb_run() {
    let between = launched(HOPPER, &[(Field::Gpus, "768")]);
    assert_eq!(between.style, Style::LaunchSh);
    assert!(warns(&between, "llmb-run accepts only 256, 512, 1024 or 2048 GPUs, not 768"));
    assert!(
        warns(&between, "accepts 768 without a check")
            && reasons(&between).contains("no published number for 768 GPUs")
    );
    let above = launched(HOPPER, &[(Field::Gpus, "4096")]);
    assert!(above.style == Style::LlmbRun && warns(&above, "more than its largest scale"));
    assert!(warns(
        &launched("llama3.1-405b/h100/fp8/1024@25.04", &[(Field::Gpus, "256")]),
        "accepts 256 without a check"
    ));
}

#[test]
fn the_batch_of_25_12_can_be_given() {
    let launch = launched(HOPPER, &[(Field::Gbs, "512"), SH]);
    assert_eq!(env(&launch, "GBS"), Some("512".into()));
    assert!(reasons(&launch).contains("global batch size of 512"));
    assert!(launch.outputs.experiment_dir.to_string().contains("_gbs512/"));
    let strong = launched("nemotron4-340b/gb200/fp8/256/strong@25.12", &[]);
    assert_eq!((env(&strong, "STRONG_SCALING"), env(&strong, "GBS")), (Some("true".into()), None));
}

#[test]
fn another_release_may_run_the_same_scenario() {
    let launch = launched("nemotron4-340b/h100/fp8/256@25.04", &[(Field::Release, "25.12"), SH]);
    assert_eq!((launch.release.unwrap().id(), launch.comparable.baseline), ("25.12", None));
    let older = launched("nemotron4-340b/h100/fp8/256@25.12", &[(Field::Release, "24.11")]);
    assert_eq!(
        (older.style, older.comparable.baseline.as_deref()),
        (Style::Sbatch, Some("nemotron4-340b/h100/fp8/256@24.11"))
    );
    let a100 = launched("nemotron4-340b/h100/bf16/256@24.11", &[(Field::Gpu, "a100")]);
    assert!(reasons(&a100).contains("A100") && a100.comparable.baseline.is_none());
}

#[test]
fn llmb_run_warns_of_settings_that_its_configuration_can_override() {
    let launch = launched(BLACKWELL, &[(Field::MaxSteps, "60")]);
    assert!(warns(&launch, "passes on MAX_STEPS, unless an environment block"));
    assert!(
        !launched(BLACKWELL, &[(Field::InstallPath, "/llmb")])
            .warnings
            .iter()
            .any(|warning| warning.to_string().contains("passes on"))
    );
}

#[test]
fn a_python_environment_is_activated_in_any_shell() {
    let launch = launched(NEMOTRON, &[(Field::Venv, "$STAGE_PATH/venv")]);
    assert!(launch.script.contains("export PATH=\"${STAGE_PATH}\"/venv/bin:\"${PATH}\"\n"));
    assert!(!launch.prepare.iter().any(|step| step.title.starts_with("Before each launch")));
    assert!(launched(NEMOTRON, &[]).prepare.iter().any(|step| step.title.starts_with("Before each launch")));
}

#[test]
fn preparation_is_the_releases_own() {
    let titles = |recipe, fields: &[(Field, &str)]| {
        let steps = launched(recipe, fields).prepare;
        steps.into_iter().map(|step| format!("{} {}", step.title, step.note)).collect::<Vec<_>>().join("\n")
    };
    assert!(titles(LLAMA, &[]).contains("Llama 3.1 also needs Meta's consent"));
    assert!(!titles(NEMOTRON, &[]).contains("Hugging Face"));
    assert!(titles(HYBRID, &[]).contains("replaces STAGE_PATH"));
    assert!(titles(BLACKWELL, &[(Field::SaveCheckpoint, "yes")]).contains("Get a Hugging Face token"));
    let repaired = [(Field::ClusterType, "runai"), (Field::RecipeDir, "/repaired")];
    let runai = titles(BLACKWELL, &repaired);
    assert!(runai.contains("Log in to the cluster") && runai.contains("Set the recipe up for Run:ai"));
    let commands = launched(BLACKWELL, &repaired).prepare.into_iter().flat_map(|step| step.commands);
    assert!(commands.collect::<Vec<_>>().contains(&"export GPU_TYPE=gb200".to_string()));
}

#[test]
fn a_launch_is_json() {
    let launch = launched(BLACKWELL, &[(Field::Profile, "yes"), (Field::InstallPath, "~/llmb")]);
    let json = serde_json::to_value(&launch).unwrap();
    for field in [
        "prepare",
        "cwd",
        "commands",
        "env",
        "script",
        "outputs",
        "warnings",
        "comparable",
        "style",
        "release",
    ] {
        assert!(json.get(field).is_some(), "{field}");
    }
    assert_eq!((&json["style"], &json["release"]), (&"llmb-run".into(), &"25.12".into()));
    assert_eq!(json["env"]["LLMB_INSTALL"], "$HOME/llmb");
    assert!(json["outputs"]["profile_glob"].as_str().unwrap().starts_with("\"${HOME}\"/llmb/workloads/"));
    assert!(json["outputs"]["checkpoint_dir"].is_null());
    assert!(json["warnings"][0]["text"].is_string() && json["warnings"][0]["fix"].is_string());
}
