#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use super::*;
use crate::catalog::Catalog;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

const GOOD: &str = r#"
version = 1
name = "nightly"
cluster = "alpha"

[defaults]
max-steps = 50

[[run]]
name = "a"
recipe = "llama3.1-405b/h100/fp8/512@25.04"

[[run]]
name = "b"
after = "a"
recipe = "llama3.1-8b/h100/bf16/8@25.04"
time_limit = 00:20:00
"#;

const CLUSTERS: &str = r#"
version = 1
[cluster.alpha]
ssh = "me@alpha"
gpu = "h100"
account = "research"
partition = "batch"
env = { HF_TOKEN = { command = ["pass", "show", "hf"] } }
[cluster.alpha.release."25.04"]
install-path = "/lustre/llmb"
recipe-dir = { "llama3.1" = "/r/llama", "llama3.1-8b" = "/r/8b" }
"#;

fn said(problems: &[CampaignProblem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

/// Returns the problems of the valid campaign with one line replaced.
fn with(line: &str, instead: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    said(&Campaign::parse(&GOOD.replacen(line, instead, 1)).unwrap_err())
}

fn planned(campaign: &str, clusters: &str) -> Result<Vec<(String, String)>, String> {
    let (campaign, lines) = Campaign::parse_with_lines(campaign).map_err(|problems| said(&problems))?;
    let clusters = Clusters::parse(clusters).map_err(|problems| said(&problems))?;
    let cluster = clusters.get(&campaign.cluster).unwrap();
    let runs = plan(&campaign, &lines, cluster, Ok).map_err(|problems| said(&problems))?;
    Ok(runs.iter().map(|run| (run.run.name.to_string(), run.launch.script.to_string())).collect())
}

#[test]
fn a_campaign_is_read() {
    let campaign = Campaign::parse(GOOD).unwrap();
    let [a, b] = &campaign.runs[..] else { panic!("{campaign:?}") };
    assert_eq!(b.after, [After { run: a.name.clone(), on: AfterEnd::Any }]);
    assert_eq!(b.settings.spec.get(Field::TimeLimit), Some("00:20:00"));
    assert_eq!(campaign.spec(a).get(Field::MaxSteps), Some("50"));
}

#[test]
fn each_mistake_has_its_line_and_its_solution() {
    for (line, instead, wanted) in [
        (
            "version = 1",
            "version = 2",
            "line 2: version: This Trainplan reads version 1, not 2. Update Trainplan, or change the file to version = 1.",
        ),
        ("version = 1", "", "line 1: version: Missing: add version = 1."),
        (
            "name = \"nightly\"",
            "nam = \"nightly\"",
            "line 3: nam: Unknown key. Did you mean name? Allowed: version, name",
        ),
        (
            "name = \"nightly\"",
            "name = \"../up\"",
            "line 3: name: \"../up\" is not valid. A name has 1 to 64",
        ),
        (
            "max-steps = 50",
            "max-step = 50",
            "line 7: defaults.max-step: Unknown key. Did you mean max-steps?",
        ),
        ("max-steps = 50", "max-steps = \"many\"", "line 7: defaults.max-steps: "),
        (
            "max-steps = 50",
            "max-steps = [50]",
            "line 7: defaults.max-steps: Use a string, a number, true or false, not an array.",
        ),
        ("max-steps = 50", "max_steps = 50\nmax-steps = 5", "Duplicate key, already set on line 7."),
        ("max-steps = 50", "tp = 0", "line 7: defaults.tp: "),
        ("max-steps = 50", "singleton = 3", "line 7: defaults.singleton: Use true or false, not \"3\"."),
        ("max-steps = 50", "repeats = 0", "\"0\" is not a whole number from 1 to 1000."),
        (
            "max-steps = 50",
            "queue-budget = \"1h\"",
            "line 7: defaults.queue-budget: \"1h\" is not a time limit.",
        ),
        (
            "[defaults]",
            "[upload]\nto = \"ftp://x\"\n[defaults]",
            "line 7: upload.to: \"ftp://x\" is not valid. A server address looks like",
        ),
        (
            "[defaults]",
            "[upload]\nlogs = true\n[defaults]",
            "line 6: upload.to: Missing: the server's address",
        ),
        (
            "[defaults]",
            "[upload]\nto = \"https://x\"\nlog = true\n[defaults]",
            "line 8: upload.log: Unknown key. Did you mean logs?",
        ),
        (
            "[defaults]",
            "[upload]\nto = \"https://x\"\nlogs = 1\n[defaults]",
            "upload.logs: Use true or false, not \"1\".",
        ),
        (
            "cluster = \"alpha\"",
            "cluster = \"alpha\"\nupload = \"https://x\"",
            "line 5: upload: Use a table, not a string: upload = { to = \"https://results.example\" }. Its keys are to, token, logs and progress.",
        ),
        (
            "after = \"a\"",
            "upload = { to = \"x\" }",
            "line 15: run.b.upload.to: \"x\" is not valid. A server address",
        ),
        ("max-steps = 50", "upload = { to = \"https://x\" }", "line 7: defaults.upload: Unknown key."),
        ("max-steps = 50", "env = { \"A B\" = 1 }", "line 7: defaults.env.A B: A variable name has only"),
        ("max-steps = 50", "env = { A = \"x\\ny\" }", "The value of A contains a control character"),
        (
            "max-steps = 50",
            "env = { T = { file = \"x\" } }",
            "A secret must be a reference: { env = \"NAME\" }",
        ),
        ("fp8/512@25.04", "fp8/512@25.4", "line 11: run.a.recipe: "),
        ("405b/h100", "450b/h100", "Did you mean llama3.1-405b/h100/fp8/512@25.04?"),
        (
            "fp8/512@25.04",
            "fp8/1500@25.04",
            "line 11: run.a.recipe: Unknown recipe \"llama3.1-405b/h100/fp8/1500@25.04\". Did you mean \
             llama3.1-405b/h100/fp8/2048@25.04, llama3.1-405b/h100/fp8/1024@25.04 or llama3.1-405b/h100/fp8/512@25.04?",
        ),
        ("name = \"b\"", "name = \"a\"", "line 14: run.a.name: The run on line 10 is already called \"a\"."),
        ("name = \"b\"", "", "line 13: run.2.name: Missing: the run's name."),
        (
            "after = \"a\"",
            "after = [\"aa\"]",
            "line 15: run.b.after: This campaign has no run \"aa\". Did you mean a?",
        ),
        ("after = \"a\"", "after = \"b\"", "line 15: run.b.after: A run can't wait for itself."),
        (
            "name = \"a\"",
            "name = \"a\"\nafter = [\"b\"]",
            "These runs would wait forever: a waits for b waits for a.",
        ),
        ("after = \"a\"", "reapeats = 3", "line 15: run.b.reapeats: Unknown key. Did you mean repeats?"),
        ("after = \"a\"", "aftr = \"a\"", "line 15: run.b.aftr: Unknown key. Did you mean after?"),
        (
            "after = \"a\"",
            "upload = { to = \"https://x\", tokn = { env = \"T\" } }",
            "line 15: run.b.upload.tokn: Unknown key. Did you mean token?",
        ),
        (
            "after = \"a\"",
            "env = { T = { env = \"A\", fil = \"x\" } }",
            "A secret must be a reference: { env = \"NAME\" }",
        ),
        (
            "after = \"a\"",
            "after = { run = \"a\", un = \"success\" }",
            "line 15: run.b.after.un: Unknown key. Allowed: run, on.",
        ),
        (
            "after = \"a\"",
            "after = { run = \"a\", on = \"sucess\" }",
            "line 15: run.b.after.on: Unknown value \"sucess\". Did you mean success?",
        ),
        (
            "after = \"a\"",
            "after = { run = \"a\", onn = \"success\" }",
            "line 15: run.b.after.onn: Unknown key. Did you mean on?",
        ),
        (
            "after = \"a\"",
            "after = { run = \"a\", on = \"succeeded\" }",
            "Unknown value \"succeeded\". Did you mean success?",
        ),
        ("after = \"a\"", "after = { on = \"success\" }", "line 15: run.b.after: Missing: run = \"NAME\""),
        (
            "after = \"a\"",
            "after = [{ run = \"c\" }]",
            "line 15: run.b.after: This campaign has no run \"c\".",
        ),
        ("after = \"a\"", "after = 3", "Use names, or { run = \"NAME\", on = \"success\" }, not a number."),
        ("after = \"a\"", "retries = 11", "\"11\" is not a whole number from 0 to 10."),
        ("after = \"a\"", "exclude = \"n1;id\"", "A list of nodes looks like n3,n[7-9]."),
        (
            "after = \"a\"",
            "exclude = \"n[7-\"",
            "\"n[7-\" is not valid. A list of nodes looks like n3,n[7-9].",
        ),
        (
            "name = \"a\"",
            "name = \"a\"\nmodel = \"llama3.1-8b\"",
            "line 11: run.a.model: The run names two models: llama3.1-8b here, and llama3.1-405b by its recipe,",
        ),
        (
            "recipe = \"llama3.1-405b/h100/fp8/512@25.04\"",
            "model = \"llama-70b\"\ngpu = \"h100\"",
            "line 11: run.a.model: Unknown model \"llama-70b\". Did you mean llama3.1-70b or llama2-70b?",
        ),
        ("after = \"a\"", "account = \"a b\"", "contains white space"),
        ("after = \"a\"", "style = \"llmb\"", "Did you mean llmb-run?"),
        ("after = \"a\"", "gpus = 7", "line 15: run.b.gpus: "),
        ("[[run]]\nname = \"a\"", "[run]\nname = \"a\"", "line 13: Invalid TOML: "),
    ] {
        let said = with(line, instead);
        assert!(said.contains(wanted), "{instead}: {said}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = "version = 1\nname = \"a b\"\ncluster = 1\nx = 1\n[defaults]\ntp = \"x\"\n[[run]]\nrecipe = \"y\"\n\
                [[run]]\nname = \"b\"\nmodel = \"llama3.1-8b\"\ngpu = \"h1000\"\nafter = [\"c\"]\n";
    let problems = Campaign::parse(text).unwrap_err();
    let lines: Vec<u32> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [2, 4, 6, 7, 8, 12], "{}", said(&problems));
}

#[test]
fn runs_under_a_misspelt_key_are_not_missing_and_are_checked() {
    let said = said(
        &Campaign::parse(&GOOD.replace("[[run]]", "[[runs]]").replace("max-steps", "steps")).unwrap_err(),
    );
    assert!(said.contains("line 9: runs: Unknown key. Did you mean run?"), "{said}");
    assert!(said.contains("line 7: defaults.steps: Unknown key.") && !said.contains("Missing"), "{said}");
    let wrong = GOOD.replace("[[run]]", "[[runs]]").replace("after = \"a\"", "repeats = 0");
    let problems = Campaign::parse(&wrong).unwrap_err();
    assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [9, 15]);
}

#[test]
fn a_list_of_nodes_is_one_that_slurm_reads() {
    for list in ["n3", "n3,n[7-9]", "n[007-012,20]", "rack[0-7]node[1-4]-ib,login.example"] {
        assert_eq!(list.parse::<NodeList>().unwrap().as_str(), list);
    }
    for list in [
        "", "n[7-", "n7-]", "n[]", "n[9-7]", "n[a-c]", "n[+1]", "n[1,]", "n1,,n2", ",n1", "n[[1]]", "n1;id",
        "-x",
    ] {
        assert!(list.parse::<NodeList>().is_err(), "{list}");
    }
}

#[test]
fn mounts_can_be_a_list() {
    let list = GOOD.replace("max-steps = 50", "mounts = [\"/lustre:/lustre\", \"/data\"]");
    let campaign = Campaign::parse(&list).unwrap();
    assert_eq!(campaign.defaults.spec.get(Field::Mounts), Some("/lustre:/lustre,/data"));
    let said = with("max-steps = 50", "mounts = [\"/data\", [\"/lustre\"]]");
    assert!(
        said.contains("line 7: defaults.mounts: Use a string, a number, true or false, not an array."),
        "{said}"
    );
}

#[test]
fn a_secret_is_refused_and_never_repeated() {
    for secret in [
        "HF_TOKEN = \"hunter2\"",
        "MY_API_KEY = \"hunter2\"",
        "DB_PASSWORD = \"hunter2\"",
        "A = \"hf_hunter2hunter2hunter2\"",
        "A = { command = [\"echo\", \"hf_hunter2hunter2hunter2\"] }",
        "A = { env = \"hunter2 \" }",
        "HF_TOKEN = { env = \"A\", command = [\"hunter2\"] }",
        "HF_TOKEN = [\"hunter2\"]",
    ] {
        let said = with("max-steps = 50", &format!("env = {{ {secret} }}"));
        assert!(said.contains("env") && !said.contains("hunter2"), "{secret}: {said}");
    }
    for line in
        ["account = \"hf_hunter2hunter2hunter2\"", "acount = \"hunter2\"", "mounts = \"/a\" \"hunter2\""]
    {
        let said = with("max-steps = 50", line);
        assert!(!said.contains("hunter2"), "{line}: {said}");
    }
    for upload in ["to = \"https://me:hunter2@host\"", "to = \"https://x\"\ntoken = \"hunter2\""] {
        let said = with("[defaults]", &format!("[upload]\n{upload}\n[defaults]"));
        assert!(said.contains("upload.t") && !said.contains("hunter2"), "{upload}: {said}");
    }
    let reference = GOOD.replace("max-steps = 50", "env = { HF_TOKEN = \"$HF_TOKEN\", B = { env = \"B\" } }");
    assert!(Campaign::parse(&reference).is_ok());
}

#[test]
fn the_cluster_profile_fills_in_missing_settings() {
    let scripts = planned(GOOD, CLUSTERS).unwrap();
    for (name, script) in &scripts {
        for line in [
            "export SBATCH_ACCOUNT=research",
            "export STAGE_PATH=/lustre/llmb",
            "export HF_TOKEN=\"${HF_TOKEN}\"",
            if name == "a" { "cd /r/llama" } else { "cd /r/8b" },
        ] {
            assert!(script.lines().any(|found| found == line), "{line} is not in {script}");
        }
    }
    let alike =
        CLUSTERS.replace("{ \"llama3.1\" = \"/r/llama\", \"llama3.1-8b\" = \"/r/8b\" }", "\"/r/all\"");
    assert!(planned(GOOD, &alike).unwrap().iter().all(|(_, script)| script.contains("\ncd /r/all\n")));
    let own = GOOD.replace("after = \"a\"", "account = \"mine\"\nrecipe-dir = \"/mine\"");
    let script = &planned(&own, CLUSTERS).unwrap()[1].1;
    assert!(script.contains("SBATCH_ACCOUNT=mine\n") && script.contains("\ncd /mine\n"), "{script}");
}

#[test]
fn a_run_has_the_paths_that_it_needs_on_the_cluster() {
    const OWN: &str = r#"
[[run]]
name = "c"
model = "llama3.1-8b"
gpus = 16
tp = 2
mbs = 1
gbs = 64
seq-len = 8192
style = "megatron-lm"
container-image = "/images/nemo.sqsh"
load-checkpoint = "/lustre/checkpoints"
mounts = ["/raid:/data", "$OWN/data", "$HOME/data"]
env = { OWN = "/own" }
"#;
    let (campaign, lines) = Campaign::parse_with_lines(&format!("{GOOD}{OWN}"))
        .unwrap_or_else(|found| panic!("{}", said(&found)));
    let clusters = Clusters::parse(&format!("{CLUSTERS}venv = \"/lustre/venv\"\n")).unwrap();
    let cluster = clusters.get(&campaign.cluster).unwrap();
    let runs = plan(&campaign, &lines, cluster, Ok).unwrap_or_else(|found| panic!("{}", said(&found)));
    let [large, small, own] = [0, 1, 2].map(|run: usize| &runs[run].installation);
    let path = |kind: UsedPath, path: &str| (kind, path.to_string());
    assert_eq!(large.install_path.as_deref(), Some("/lustre/llmb"));
    assert_eq!(large.recipe_dirs, [("llama3.1-405b".to_string(), "/r/llama".to_string())]);
    assert_eq!(large.used, [path(UsedPath::Venv, "/lustre/venv")]);
    // Only the launch knows the value of OWN.
    let used = [
        path(UsedPath::Image, "/images/nemo.sqsh"),
        path(UsedPath::Checkpoint, "/lustre/checkpoints"),
        path(UsedPath::Mount, "/raid"),
        path(UsedPath::Mount, "\"${HOME}\"/data"),
    ];
    assert_eq!((own.release, &own.install_path, own.recipe_dirs.len()), (None, &None, 0));
    assert_eq!(own.used, used);
    // Runs of one installation are checked together.
    let mut both = large.clone();
    assert!(both.absorbs(small) && !both.absorbs(own));
    assert_eq!((both.recipe_dirs.len(), both.used.len()), (2, 1));
    // A profile lists the same of what is installed.
    let of_profile = cluster.installations();
    assert_eq!((of_profile.len(), &of_profile[0].used), (1, &large.used));
}

#[test]
fn a_run_for_other_gpus_is_refused_at_its_line() {
    let said = planned(GOOD, &CLUSTERS.replace("\"h100\"", "\"gb200\"")).unwrap_err();
    assert!(said.contains("line 11: run.a") || said.contains("line 9: run.a"), "{said}");
    assert!(said.contains("Cluster alpha has gb200 GPUs, but the run needs h100."), "{said}");
    let said = planned(&GOOD.replace("after = \"a\"", "tp = 2"), CLUSTERS).unwrap_err();
    assert!(said.contains("line 15: run.b.tp: "), "{said}");
}

#[test]
fn a_recipe_whose_release_is_not_there_is_refused_with_those_that_can_run() {
    let newer = GOOD.replace("fp8/512@25.04", "fp8/1024@26.06.01");
    let said = planned(&newer, CLUSTERS).unwrap_err();
    assert!(
        said.starts_with("line 11: run.a.recipe: Release 26.06.01 isn't in the profile of cluster alpha"),
        "{said}"
    );
    assert!(said.contains("[cluster.alpha.release.\"26.06.01\"]"), "{said}");
    assert!(said.ends_with(" Use llama3.1-405b/h100/fp8/1024@25.04.\n"), "{said}");
    // Its directory may also be set in another way.
    let installed =
        format!("{CLUSTERS}[cluster.alpha.release.\"26.06.01\"]\ninstall-path = \"/lustre/newer\"\n");
    let by_campaign = newer.replace("max-steps = 50", "install-path = \"/lustre/newer\"");
    for (campaign, clusters) in [(&newer, &*installed), (&by_campaign, CLUSTERS)] {
        planned(campaign, clusters).unwrap();
    }
    // No installed release has such a recipe: what must be set on the cluster is a warning.
    planned(&newer, &CLUSTERS.replace("25.04", "25.05")).unwrap();
}

#[test]
fn the_cluster_can_define_the_gpu() {
    let own = GOOD.replace(
        "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"",
        "model = \"llama3.1-8b\"\ngpus = 8\ngbs = 128\nstyle = \"megatron-lm\"",
    );
    assert!(planned(&own, CLUSTERS).is_ok());
    let said = planned(&own, &CLUSTERS.replace("gpu = \"h100\"", "")).unwrap_err();
    assert!(said.contains("run.b.gpu: "), "{said}");
}

#[test]
fn the_host_of_a_profile_may_have_a_port() {
    for (typed, host, command) in [
        ("alpha", "alpha", "ssh alpha"),
        ("alpha:2222", "ssh://alpha:2222", "ssh -p 2222 alpha"),
        ("me@alpha:2222", "ssh://me@alpha:2222", "ssh -p 2222 me@alpha"),
        ("ssh://me@alpha:2222", "ssh://me@alpha:2222", "ssh -p 2222 me@alpha"),
        ("ssh://me@alpha", "ssh://me@alpha", "ssh me@alpha"),
        ("me@[fe80::1%eth0]:22", "ssh://me@[fe80::1%eth0]:22", "ssh -p 22 me@fe80::1%eth0"),
        ("fe80::1", "fe80::1", "ssh fe80::1"),
    ] {
        let clusters = Clusters::parse(&CLUSTERS.replacen("me@alpha", typed, 1)).unwrap();
        let cluster = clusters.get(&"alpha".parse().unwrap()).unwrap();
        assert_eq!((cluster.ssh.as_str(), cluster.ssh_command().as_str()), (host, command));
    }
}

#[test]
fn a_profile_can_name_the_file_of_a_probe() {
    let named = CLUSTERS.replacen("gpu = \"h100\"", "cluster-factor = \"probes/alpha.json\"", 1);
    let clusters = Clusters::parse(&named).unwrap();
    let cluster = clusters.get(&"alpha".parse().unwrap()).unwrap();
    assert_eq!(cluster.spec.get(Field::ClusterFactor), Some("probes/alpha.json"));
}

#[test]
fn mistakes_in_profiles_have_their_lines() {
    for (line, instead, wanted) in [
        (
            "version = 1",
            "version = \"1\"",
            "This Trainplan reads version 1, not a string. Write version = 1.",
        ),
        ("[cluster.alpha]\n", "[clusters.alpha]\n", "line 3: clusters: Unknown key. Did you mean cluster?"),
        ("ssh = \"me@alpha\"\n", "", "cluster.alpha.ssh: Missing: the host for ssh"),
        ("me@alpha", "-oProxyCommand=id", "line 4: cluster.alpha.ssh: \"-oProxyCommand=id\" is not a host."),
        ("me@alpha", "a; id", "\"a; id\" is not a host."),
        ("me@alpha", "ssh://-oProxyCommand=id", "\"ssh://-oProxyCommand=id\" is not a host."),
        (
            "gpu = \"h100\"",
            "gpu = \"h10\"",
            "line 5: cluster.alpha.gpu: Unknown GPU \"h10\". Did you mean h100?",
        ),
        ("gpu = \"h100\"", "gpus-per-nod = 8", "Unknown key. Did you mean gpus-per-node?"),
        ("gpu = \"h100\"", "gres = \"all\"", "\"all\" doesn't request GPUs."),
        ("gpu = \"h100\"", "cluster-factor = -1", "line 5: cluster.alpha.cluster-factor: "),
        (
            "[cluster.alpha.release.\"25.04\"]",
            "[cluster.alpha.release.25.04]",
            "Unknown release \"25\". Put it in quotes.",
        ),
        (
            "\"/lustre/llmb\"",
            "\"llmb\"",
            "line 10: cluster.alpha.release.25.04.install-path: install-path \"llmb\" is not an absolute path.",
        ),
        ("\"/r/8b\"", "\"r\"", "recipe-dir.llama3.1-8b: recipe-dir \"r\" is not an absolute path."),
        (
            "\"llama3.1\"",
            "\"lama3.1\"",
            "No model with a recipe has this name or starts with it. Did you mean llama3.1-",
        ),
        ("{ command = [\"pass\", \"show\", \"hf\"] }", "\"hunter2\"", "HF_TOKEN = { env = \"HF_TOKEN\" }"),
    ] {
        assert!(CLUSTERS.contains(line), "{line}");
        let said = said(&Clusters::parse(&CLUSTERS.replacen(line, instead, 1)).unwrap_err());
        assert!(said.contains(wanted) && !said.contains("hunter2"), "{instead}: {said}");
    }
}

fn name() -> impl Strategy<Value = Name> {
    "[a-zA-Z0-9][a-zA-Z0-9._-]{0,12}".prop_map(|text| text.parse().unwrap())
}

fn secret() -> impl Strategy<Value = Secret> {
    prop_oneof![
        "[A-Z_]{1,8}".prop_map(Secret::Env),
        vec("[^\\x00]{1,10}", 0..3).prop_map(|more| Secret::Command([vec!["pass".into()], more].concat())),
    ]
}

fn env() -> impl Strategy<Value = Env> {
    let text = "\\PC{0,20}".prop_filter("it begins no reference", |text| !text.starts_with('$'));
    let setting = prop_oneof![text.prop_map(VariableValue::Text), secret().prop_map(VariableValue::Secret)];
    btree_map("X_[A-Z]{1,6}_Z", setting, 0..4).prop_map(Env)
}

fn settings() -> impl Strategy<Value = Settings> {
    let texts = (
        option::of("[^\\s\\x00-\\x1f\\x7f-\\u{9f}*?\\[$-][^\\s\\x00-\\x1f\\x7f-\\u{9f}*?\\[$]{0,10}"),
        option::of(1..500_u32),
        option::of(any::<bool>()),
        option::of(prop_oneof!["1:[0-5][0-9]:00", "2-00:00:00"]),
        option::of("/[^\\s\\x00-\\x1f\\x7f-\\u{9f}*?\\[$]{0,10}"),
    );
    let spec = texts.prop_map(|(account, steps, profile, limit, path)| {
        let fields = [
            (Field::Account, account),
            (Field::MaxSteps, steps.map(|steps| steps.to_string())),
            (Field::Profile, profile.map(|profile| profile.to_string())),
            (Field::TimeLimit, limit),
            (Field::InstallPath, path),
        ];
        fields
            .into_iter()
            .fold(Spec::default(), |spec, (field, text)| spec.with(field, text.unwrap_or_default()))
    });
    let budget = option::of((1..90_000_u32).prop_map(|seconds| {
        let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        text.parse().unwrap()
    }));
    let server = "https://[a-z]{1,9}(/[a-z\"\\\\]{0,5})?".prop_map(|text| text.parse().unwrap());
    let upload = (server, secret(), any::<bool>(), any::<bool>())
        .prop_map(|(to, token, logs, progress)| Upload { to, token, logs, progress });
    let exclude = option::of(
        "[a-z0-9][a-z0-9-]{0,5}(\\[[0-9]{1,3}(,[0-9]{1,3})?\\])?(,[a-z0-9]{1,4})?"
            .prop_map(|text| text.parse().unwrap()),
    );
    let retried = (option::of(0..=10_u32), exclude);
    (spec, env(), option::of(1..1000_u32), retried, option::of(any::<bool>()), budget, option::of(upload))
        .prop_map(|(spec, env, repeats, (retries, exclude), singleton, queue_budget, upload)| Settings {
            spec,
            env,
            repeats,
            retries,
            exclude,
            singleton,
            queue_budget,
            upload,
        })
}

fn campaign() -> impl Strategy<Value = Campaign> {
    let recipes = Catalog::embedded().recipes();
    let run = (0..recipes.len(), settings(), any::<bool>());
    (name(), name(), settings(), vec((name(), run), 1..5)).prop_map(move |(name, cluster, defaults, runs)| {
        let mut made: Vec<Run> = Vec::new();
        for (name, (recipe, mut settings, waits)) in runs {
            if made.iter().any(|run| run.name == name) {
                continue;
            }
            settings.spec.set(Field::Recipe, recipes[recipe].id.to_string());
            let ends = [AfterEnd::Any, AfterEnd::Success];
            let waited = made.iter().filter(|_| waits).zip(ends.into_iter().cycle());
            let after = waited.map(|(run, on)| After { run: run.name.clone(), on }).collect();
            made.push(Run { name, after, settings });
        }
        Campaign { name, cluster, defaults, runs: made }
    })
}

proptest! {
    #[test]
    fn a_written_campaign_is_read_back_equal(campaign in campaign()) {
        let text = campaign.to_text();
        let read = Campaign::parse(&text).map_err(|problems| TestCaseError::fail(format!("{text}\n{}", said(&problems))))?;
        prop_assert_eq!(&read, &campaign, "{}", text);
        prop_assert_eq!(read.to_text(), text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(version = 1\n)?(.|[\\[\\]={}\"',\n#]|name|run|env|cluster|defaults| = 1){0,60}") {
        for problems in [Campaign::parse(&text).err(), Clusters::parse(&text).err()].into_iter().flatten() {
            prop_assert!(!problems.is_empty());
            prop_assert!(!said(&problems).trim_end().chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}

#[test]
fn any_text_has_a_closest_name() {
    for (text, name) in
        [("Llama 3.1 70B", "Llama-3.1-70B"), ("h100:hbm_gb=96", "h100-hbm_gb-96"), ("—", "unnamed")]
    {
        assert_eq!(Name::closest(text).as_str(), name);
        assert_eq!(name.parse(), Ok(Name::closest(text)));
    }
    assert_eq!(Name::closest(&"x".repeat(99)).as_str().len(), 64);
}
