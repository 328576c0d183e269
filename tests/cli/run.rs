use crate::jobs::OwnJournal;
use crate::terminal::on_terminal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use trainplan_tests::{Run, binary, run_of};

const CAMPAIGN: &str = r#"version = 1
name = "nightly"
cluster = "alpha"

[defaults]
repeats = 3

[defaults.env]
HF_TOKEN = { env = "THE_TOKEN" }

[[run]]
name = "large"
recipe = "llama3.1-405b/h100/fp8/512@25.04"
after = ["small"]

[[run]]
name = "small"
recipe = "llama3.1-8b/h100/bf16/8@25.04"
repeats = 1
env = { NOTE = "it's \"$(touch pwned)\" `id`; \\ $HOME" }
"#;

const CLUSTERS: &str = r#"version = 1

[cluster.alpha]
ssh = "alpha-login"
account = "research"
partition = "batch"
gpu = "h100"
env = { WANDB_API_KEY = { command = ["touch", "pwned"] } }

[cluster.alpha.release."25.04"]
install-path = "/lustre/llmb"
recipe-dir = { "llama3.1" = "/lustre/recipes" }
"#;

/// Returns the profile of a cluster that also has release 26.06.01.
fn with_newer_release() -> String {
    format!("{CLUSTERS}\n[cluster.alpha.release.\"26.06.01\"]\ninstall-path = \"/lustre/newer\"\n")
}

fn place(campaign: &str, clusters: &str) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a.campaign.toml"), campaign).unwrap();
    fs::write(place.path().join("clusters.toml"), clusters).unwrap();
    place
}

fn run_in(place: &TempDir, more: &[&str]) -> Run {
    let output = Command::new(binary())
        .args(["run", "a.campaign.toml"])
        .args(more)
        .current_dir(place)
        .env("THE_TOKEN", "hunter2")
        .env("XDG_CONFIG_HOME", place.path().join("config"))
        .output()
        .unwrap();
    run_of(&output)
}

fn dry_run(campaign: &str, clusters: &str, format: &str) -> Run {
    let place = place(campaign, clusters);
    let run = run_in(&place, &["--dry-run", "--clusters", "clusters.toml", "--format", format]);
    // No secret is read, and no program is run.
    assert!(!run.stdout.contains("hunter2") && !run.stderr.contains("hunter2"), "{}", run.stdout);
    assert!(!place.path().join("pwned").exists());
    run
}

fn refused(campaign: &str, clusters: &str) -> String {
    let run = dry_run(campaign, clusters, "table");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{}", run.stderr);
    run.stderr
}

#[test]
fn a_dry_run_prints_the_plan() {
    let run = dry_run(CAMPAIGN, CLUSTERS, "json");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let runs: Value = serde_json::from_str(&run.stdout).unwrap();
    let [large, small] = &runs.as_array().unwrap()[..] else { panic!("{runs}") };
    assert_eq!((large["run"].as_str(), small["run"].as_str()), (Some("large"), Some("small")));
    assert_eq!((large["repeats"].as_u64(), small["repeats"].as_u64()), (Some(3), Some(1)));
    assert_eq!(
        (&large["after_success"], &large["retries"], &large["exclude"]),
        (&Value::Array(vec![]), &0.into(), &Value::Null)
    );
    assert_eq!((&large["after"][0], &large["ssh"]), (&"small".into(), &"alpha-login".into()));
    assert_eq!((&large["cluster"], &large["campaign"]), (&"alpha".into(), &"nightly".into()));
    let number = |value: &Value| value.as_f64().unwrap();
    let step = &large["step_time_s"];
    assert!(number(&step["low"]) < number(&step["mid"]) && number(&step["mid"]) < number(&step["high"]));
    assert_eq!(large["estimate"]["step_time_s"], *step);
    let training_s = number(&large["training_time_s"]["mid"]);
    assert!((training_s / (50.0 * number(&step["mid"])) - 1.0).abs() < 1e-12);
    assert!((number(&large["gpu_hours"]["mid"]) / (training_s * 512.0 * 3.0 / 3600.0) - 1.0).abs() < 1e-12);
    assert_eq!(large["launch"]["commands"][0], "./launch.sh");
    assert_eq!(large["launch"]["cwd"], "/lustre/recipes");
    assert_eq!(large["launch"]["env"]["HF_TOKEN"], "$HF_TOKEN");
    assert_eq!(large["secrets"]["HF_TOKEN"]["env"], "THE_TOKEN");
    assert_eq!(large["secrets"]["WANDB_API_KEY"]["command"][0], "touch");
    assert_eq!((&large["fits"], &large["launch"]["needs"]), (&true.into(), &Value::Array(Vec::new())));
}

#[test]
fn a_run_can_wait_for_success_be_retried_and_avoid_nodes() {
    let campaign = CAMPAIGN
        .replacen("after = [\"small\"]", "after = [{ run = \"small\", on = \"success\" }]\nretries = 2", 1)
        .replacen("repeats = 3", "repeats = 3\nexclude = \"n3,n[7-9]\"", 1);
    let run = dry_run(&campaign, CLUSTERS, "json");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let runs: Value = serde_json::from_str(&run.stdout).unwrap();
    let (large, small) = (&runs[0], &runs[1]);
    assert_eq!((&large["after"][0], &large["after_success"][0]), (&"small".into(), &"small".into()));
    assert_eq!((&large["retries"], &small["retries"]), (&2.into(), &0.into()));
    assert_eq!((&large["exclude"], &small["exclude"]), (&"n3,n[7-9]".into(), &"n3,n[7-9]".into()));
    let told = dry_run(&campaign, CLUSTERS, "table").stdout;
    let order =
        "after small, if scored; up to 2 retries after a node failure or a preemption; not on n3,n[7-9]";
    assert!(told.contains(order), "{told}");
}

#[test]
fn the_upload_table_names_server_and_token() {
    let upload = "[upload]\nto = \"https://results.example\"\nlogs = false\n\n[defaults]";
    let campaign = CAMPAIGN.replacen("[defaults]", upload, 1);
    let plan: Value = serde_json::from_str(&dry_run(&campaign, CLUSTERS, "json").stdout).unwrap();
    let wanted = serde_json::json!({
        "to": "https://results.example", "token": { "env": "TRAINPLAN_TOKEN" }, "logs": false, "progress": true
    });
    assert_eq!((&plan[0]["upload"], &plan[1]["upload"]), (&wanted, &wanted));
    let table = dry_run(&campaign, CLUSTERS, "table").stdout;
    assert!(table.contains("result to https://results.example"), "{table}");
    // A missing token is reported before anything is submitted.
    let place =
        place(&campaign, &CLUSTERS.replace("WANDB", "X").replace("\"touch\", \"pwned\"", "\"echo\", \"x\""));
    let run = run_in(&place, &["--clusters", "clusters.toml", "--data-dir", "data"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("the token for https://results.example"), "{}", run.stderr);
    let old = CAMPAIGN.replacen("repeats = 1", "upload = \"https://results.example\"", 1);
    let said = refused(&old, CLUSTERS);
    assert!(said.contains("run.small.upload") && said.contains("table"), "{said}");
}

#[test]
fn the_table_has_every_run_and_its_script() {
    let run = dry_run(CAMPAIGN, CLUSTERS, "table");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for text in [
        "Campaign nightly on cluster alpha (ssh alpha-login).",
        "after small",
        "HF_TOKEN: secret, from the environment variable THE_TOKEN",
        "WANDB_API_KEY: secret, printed by \"touch\" \"pwned\"",
        "    export SBATCH_ACCOUNT=research",
        "    export HF_TOKEN=\"${HF_TOKEN}\"",
        "of training, without queueing and startup",
    ] {
        assert!(run.stdout.contains(text), "{text} is not in {}", run.stdout);
    }
    let rows = dry_run(CAMPAIGN, CLUSTERS, "csv").stdout;
    assert_eq!(csv::Reader::from_reader(rows.as_bytes()).records().map(Result::unwrap).count(), 2);
}

#[test]
fn a_dry_run_says_which_secrets_are_not_set() {
    let unset = CAMPAIGN.replace("THE_TOKEN", "NO_SUCH_TOKEN");
    let run = dry_run(&unset, CLUSTERS, "json");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stderr.matches("NO_SUCH_TOKEN is not set").count(), 1, "{}", run.stderr);
    let upload = CAMPAIGN.replace(
        "[defaults.env]",
        "[upload]\nto = \"https://results.example\"\ntoken = { env = \"NO_SUCH_TOKEN\" }\n\n[defaults.env]",
    );
    let said = dry_run(&upload, CLUSTERS, "json").stderr;
    assert!(
        said.contains("Can't get the token for https://results.example: the environment variable"),
        "{said}"
    );
    assert!(!dry_run(CAMPAIGN, CLUSTERS, "json").stderr.contains("Can't get"));
}

#[test]
fn a_dry_run_names_what_each_run_is_compared_with() {
    let campaign = CAMPAIGN.replace("llama3.1-405b/h100/fp8/512@25.04", "llama3.1-70b/h100/fp8/512@26.06.01");
    let run = dry_run(&campaign, &with_newer_release(), "json");
    let runs: Value = serde_json::from_str(&run.stdout).unwrap();
    let (scaled, published) = (&runs[0]["reference"], &runs[1]["reference"]);
    assert_eq!((&scaled["kind"], &scaled["gpus"]), (&"weak_scaled".into(), &64.into()), "{scaled}");
    assert_eq!(published["kind"], "published");
    let table = dry_run(&campaign, &with_newer_release(), "table").stdout;
    assert!(table.contains("  Reference: 19.7 s, published on 64 GPUs\n"), "{table}");
    let changed =
        CAMPAIGN.replace("after = [\"small\"]", "after = [\"small\"]\nmbs = 2\nstyle = \"megatron-lm\"");
    let runs: Value = serde_json::from_str(&dry_run(&changed, CLUSTERS, "json").stdout).unwrap();
    assert_eq!(runs[0]["reference"]["kind"], "predicted");
    assert_eq!(runs[0]["reference"]["step_time_s"], runs[0]["step_time_s"]);
    // Advice names keys of the file, not flags.
    let said = dry_run(&changed, CLUSTERS, "table").stderr;
    assert!(said.contains("It fits with mbs = 1") && !said.contains("--mbs"), "{said}");
}

#[test]
fn a_recipe_of_a_release_that_is_not_there_is_refused_with_the_recipes_that_can_run() {
    let campaign = CAMPAIGN.replace("llama3.1-405b/h100/fp8/512@25.04", "llama3.1-70b/h100/fp8/512@26.06.01");
    let said = refused(&campaign, CLUSTERS);
    assert!(said.contains("Release 26.06.01 isn't in the profile of cluster alpha"), "{said}");
    assert!(said.contains("Use llama3.1-70b/h100/fp8/512@25.04."), "{said}");
}

#[test]
fn the_dry_run_of_a_certification_is_a_campaign_with_its_references() {
    let place = place(CAMPAIGN, &with_newer_release());
    let run = |arguments: &[&str]| {
        let more = ["--dry-run", "--clusters", "clusters.toml"];
        let output = Command::new(binary())
            .args(arguments)
            .args(more)
            .current_dir(&place)
            .env("THE_TOKEN", "x")
            .output();
        run_of(&output.unwrap())
    };
    let certify = run(&["certify", "--cluster", "alpha", "--gpus", "64", "--release", "latest"]);
    assert_eq!(certify.code, Some(0), "{}", certify.stderr);
    let text = certify.stdout;
    assert!(text.starts_with("# The step time that each run is compared with:\n#   "), "{text}");
    let reference = "#   llama3.1-70b-fp8: 19.7 s, published (Megatron-Bridge 26.04.01, nemo:26.04.01)\n";
    assert!(text.contains(reference), "{text}");
    assert!(text.contains("), predicted\n"), "{text}");
    fs::write(place.path().join("certify.campaign.toml"), &text).unwrap();
    let planned = run(&["run", "certify.campaign.toml"]);
    assert!(matches!(planned.code, Some(0 | 3)), "{}", planned.stderr);
}

#[test]
fn a_certification_with_a_release_that_is_not_there_names_what_to_do() {
    let place = place(CAMPAIGN, CLUSTERS);
    let certify = |more: &[&str]| {
        let certify = ["certify", "--cluster", "alpha", "--gpus", "64", "--clusters", "clusters.toml"];
        let output = Command::new(binary()).args(certify).args(more).current_dir(&place).output();
        run_of(&output.unwrap())
    };
    let missing = certify(&["--release", "26.06.01"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(2), ""), "{}", missing.stderr);
    let said = missing.stderr;
    assert!(said.contains("Release 26.06.01 isn't in the profile of cluster alpha."), "{said}");
    assert!(said.contains("[cluster.alpha.release.\"26.06.01\"]"), "{said}");
    assert!(said.contains(" Use 25.04.") && !said.contains("campaign.toml"), "{said}");
    // The file of the profile's factors is missing: no release would help.
    let broken = CLUSTERS.replacen("gpu = \"h100\"", "gpu = \"h100\"\ncluster-factor = \"missing.json\"", 1);
    fs::write(place.path().join("clusters.toml"), broken).unwrap();
    let broken = certify(&["--release", "26.06.01"]);
    assert_eq!(broken.code, Some(2), "{}", broken.stderr);
    let said = broken.stderr;
    assert!(said.contains("missing.json") && !said.contains("campaign.toml"), "{said}");
}

#[test]
fn a_profile_can_name_the_file_of_a_probe() {
    let with = |factors: &str| {
        CLUSTERS.replacen("gpu = \"h100\"", &format!("gpu = \"h100\"\ncluster-factor = \"{factors}\""), 1)
    };
    let place = place(CAMPAIGN, &with("1,network=0.833,matmul=0.899"));
    // Its path is relative to the profiles.
    let folder = place.path().join("profiles");
    fs::create_dir_all(folder.join("probes")).unwrap();
    fs::write(folder.join("clusters.toml"), with("probes/alpha.json")).unwrap();
    let dry_run = |clusters: &str| run_in(&place, &["--dry-run", "--clusters", clusters, "--format", "json"]);
    let missing = dry_run("profiles/clusters.toml");
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(2), ""), "{}", missing.stderr);
    for text in [
        "cluster-factor (from cluster alpha)",
        "profiles/probes/alpha.json: The file can't be read: No such file",
    ] {
        assert!(missing.stderr.contains(text), "{}", missing.stderr);
    }

    let probe = include_str!("../../fuzz/corpus/probe/h100.json");
    fs::write(folder.join("probes/alpha.json"), probe).unwrap();
    let [typed, file] = ["clusters.toml", "profiles/clusters.toml"].map(dry_run);
    assert_eq!(file.code, Some(0), "{}", file.stderr);
    assert_eq!(file.stdout, typed.stdout);
    // Once for both runs.
    let note = "alpha.json: measured on h100; the same as --cluster-factor 1,network=0.833,matmul=0.899\n";
    assert_eq!(file.stderr.matches(note).count(), 1, "{}", file.stderr);
    let certify = [
        "certify",
        "--cluster",
        "alpha",
        "--gpus",
        "64",
        "--dry-run",
        "--clusters",
        "profiles/clusters.toml",
    ];
    let certify = run_of(&Command::new(binary()).args(certify).current_dir(&place).output().unwrap());
    assert!(certify.code == Some(0) && certify.stderr.contains(note), "{}", certify.stderr);

    fs::write(folder.join("probes/alpha.json"), probe.replace("H100 80GB HBM3", "B200")).unwrap();
    let other = dry_run("profiles/clusters.toml");
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("It was measured on b200, but this is about h100."), "{}", other.stderr);
}

#[test]
fn the_command_of_a_secret_stays_on_one_line_of_a_narrow_terminal() {
    let words = r#"["pass", "show", "wandb/teams/research/trainplan-on-alpha"]"#;
    let place = place(CAMPAIGN, &CLUSTERS.replace(r#"["touch", "pwned"]"#, words));
    let command = "\"$TRAINPLAN\" run a.campaign.toml --clusters clusters.toml --dry-run";
    let shown = on_terminal(60, &format!("cd {} && {command} 2>/dev/null", place.path().display()));
    let line = r#"  "pass" "show" "wandb/teams/research/trainplan-on-alpha""#;
    assert!(shown.lines().any(|shown| shown == line), "{shown}");
}

#[test]
fn special_characters_reach_the_launcher_unchanged() {
    let run = dry_run(CAMPAIGN, CLUSTERS, "json");
    let runs: Value = serde_json::from_str(&run.stdout).unwrap();
    let place = tempfile::tempdir().unwrap();
    let script = runs[1]["launch"]["script"].as_str().unwrap().replace("/lustre/recipes", ".");
    fs::write(place.path().join("launch.sh"), "#!/bin/sh\nprintf %s \"$NOTE\"\n").unwrap();
    let script = script.replace("./launch.sh", "sh ./launch.sh");
    let output = Command::new("sh")
        .args(["-c", &script])
        .envs([("HF_TOKEN", "x"), ("WANDB_API_KEY", "x")])
        .current_dir(&place)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "it's \"$(touch pwned)\" `id`; \\ $HOME");
    assert!(!place.path().join("pwned").exists());
}

#[test]
fn mistakes_of_both_files_are_reported_together() {
    let campaign = CAMPAIGN
        .replace("repeats = 3", "repeat = 3")
        .replace("llama3.1-405b/h100", "llama3.1-450b/h100")
        .replace("name = \"small\"", "name = \"large\"");
    let said = refused(&campaign, &CLUSTERS.replace("account", "acount").replace("alpha-login", "-oX=y"));
    // The golden files have the whole texts.
    for text in [
        "a.campaign.toml: line 6: defaults.repeat",
        "line 13: run.large.recipe",
        "llama3.1-405b/h100/fp8/512@25.04",
        "line 14: run.large.after",
        "line 17: run.large.name",
        "clusters.toml: line 4: cluster.alpha.ssh",
        "line 5: cluster.alpha.acount",
    ] {
        assert!(said.contains(text), "{text} is not in {said}");
    }
}

#[test]
fn invalid_campaigns_are_refused() {
    // The golden files have the whole texts.
    for (line, instead, wanted) in [
        ("version = 1", "version = 7", "line 1: version"),
        ("repeats = 3", "account = \"a\\n$(id)\"", "control character"),
        ("repeats = 3", "account = \"a b\"", "white space"),
        ("repeats = 3", "slurm-params = \"account=x\"", "Instead, use account"),
        ("repeats = 3", "model = \"none.json\"", "none.json"),
        ("{ env = \"THE_TOKEN\" }", "\"hunter2\"", "HF_TOKEN = { env = \"HF_TOKEN\" }"),
        ("\"alpha\"", "\"alhpa\"", "alpha"),
        ("repeats = 3", "repeats = 3 \"hunter2\"", "line 6"),
        ("repeats = 1", "reapeats = 1", "line 19: run.small.reapeats: Unknown key. Did you mean repeats?"),
        ("repeats = 1", "tp = 8", "run.small.gpus"),
    ] {
        assert!(CAMPAIGN.contains(line), "{line}");
        let said = refused(&CAMPAIGN.replacen(line, instead, 1), CLUSTERS);
        assert!(said.contains(wanted), "{wanted} is not in {said}");
    }
}

#[test]
fn a_run_that_does_not_fit_ends_with_3_and_the_whole_plan() {
    let own = "model = \"llama3.1-70b\"\ngpus = 8\ngbs = 8\nstyle = \"megatron-lm\"";
    let campaign = CAMPAIGN.replace("recipe = \"llama3.1-8b/h100/bf16/8@25.04\"", own);
    let run = dry_run(&campaign, CLUSTERS, "json");
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let runs: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&runs[0]["fits"], &runs[1]["fits"]), (&true.into(), &false.into()));
    assert_eq!((&runs[0]["verdict"], &runs[1]["verdict"]), (&"fits".into(), &"does-not-fit".into()));
    assert!(run.stderr.contains("MEGATRON_PATH must be set on alpha"), "{}", run.stderr);
    assert!(run.stderr.ends_with("error: Not enough GPU memory for small.\n"), "{}", run.stderr);
}

#[test]
fn a_run_that_is_too_close_to_call_is_a_warning_with_one_verdict() {
    let own = "model = \"deepseek-v3\"\ngpu = \"gb200\"\ngpus = 256\ndtype = \"mxfp8\"\npp = 4\nvp = 4\nep = 64\ngbs = 4096";
    let campaign = CAMPAIGN.replace("recipe = \"llama3.1-8b/h100/bf16/8@25.04\"", own).replace(
        "recipe = \"llama3.1-405b/h100/fp8/512@25.04\"",
        "recipe = \"llama3.1-405b/gb200/fp8/256@26.06.01\"",
    );
    let clusters = CLUSTERS.replace("gpu = \"h100\"\n", "");
    let run = dry_run(&campaign, &clusters, "json");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let runs: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&runs[1]["verdict"], &runs[1]["estimate"]["verdict"]),
        (&"too-close".into(), &"too-close".into())
    );
    let about_memory: Vec<&str> = run.stderr.lines().filter(|line| line.contains("GiB")).collect();
    let [said] = about_memory[..] else { panic!("{}", run.stderr) };
    assert!(said.starts_with("note: small: Memory is too close to call: stage 1 of 4 needs "), "{said}");
    let table = dry_run(&campaign, &clusters, "table");
    assert_eq!(table.code, Some(0), "{}", table.stderr);
    assert!(table.stdout.contains("too close") && !table.stdout.contains(" NO "), "{}", table.stdout);
}

#[test]
fn a_person_who_reads_the_plan_in_a_pipe_hears_of_the_table() {
    let place = place(CAMPAIGN, CLUSTERS);
    let read = |more: &str| {
        let command = "\"$TRAINPLAN\" run a.campaign.toml --clusters clusters.toml --dry-run";
        on_terminal(1000, &format!("cd {} && {command} {more} | cat >/dev/null", place.path().display()))
    };
    assert!(read("").contains("note: The output is JSON"), "{}", read(""));
    assert!(!read("--format json").contains("The output is JSON"));
    // A script gets no note.
    let run = run_in(&place, &["--dry-run", "--clusters", "clusters.toml"]);
    assert!(run.stdout.starts_with('[') && !run.stderr.contains("The output is JSON"), "{}", run.stderr);
}

#[test]
fn profiles_are_read_from_the_configuration_directory() {
    let place = place(CAMPAIGN, CLUSTERS);
    let run = run_in(&place, &["--dry-run"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("No cluster profiles yet."), "{}", run.stderr);
    let given = run_in(&place, &["--dry-run", "--clusters", "nope.toml"]);
    let wanted = "error: nope.toml: The file given with --clusters does not exist.\n";
    assert_eq!((given.code, given.stderr.as_str()), (Some(2), wanted));
    fs::create_dir_all(place.path().join("config/trainplan")).unwrap();
    fs::write(place.path().join("config/trainplan/clusters.toml"), CLUSTERS).unwrap();
    assert_eq!(run_in(&place, &["--dry-run"]).code, Some(0));
}

#[test]
fn a_missing_secret_stops_a_campaign_before_it_starts() {
    let place = place(&CAMPAIGN.replace("THE_TOKEN", "NO_SUCH_TOKEN"), CLUSTERS);
    let run = run_in(&place, &["--clusters", "clusters.toml", "--data-dir", "data"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("NO_SUCH_TOKEN"), "{}", run.stderr);
}

/// Returns the profile of a cluster whose host doesn't exist, with a secret that can be read.
fn unreachable() -> String {
    CLUSTERS
        .replace("alpha-login", "no-such-host.invalid")
        .replace("[\"touch\", \"pwned\"]", "[\"echo\", \"key\"]")
}

fn listed(place: &TempDir) -> Value {
    let data = place.path().join("data");
    let list = ["jobs", "list", "--all", "--format", "json", "--data-dir", data.to_str().unwrap()];
    serde_json::from_str(&trainplan_tests::trainplan(list).stdout).unwrap()
}

#[test]
fn no_round_begins_before_the_cluster_answers() {
    let place = place(CAMPAIGN, &unreachable());
    let run = run_in(&place, &["--clusters", "clusters.toml", "--data-dir", "data", "--patience", "0.1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(5), ""), "{}", run.stderr);
    let said = "Nothing is submitted until it answers. Trying again at least every 60 s until ";
    assert!(run.stderr.contains("no-such-host.invalid") && run.stderr.contains(said), "{}", run.stderr);
    assert_eq!(listed(&place).as_array().unwrap().len(), 0);
}

#[test]
fn a_process_that_detaches_counts_what_was_submitted() {
    let place = place(CAMPAIGN, &unreachable());
    let mut child = Command::new(binary())
        .args([
            "run",
            "a.campaign.toml",
            "--clusters",
            "clusters.toml",
            "--data-dir",
            "data",
            "--skip-checks",
        ])
        .current_dir(&place)
        .env("THE_TOKEN", "hunter2")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let told = lines.find(|line| line.contains("can't be reached: ")).unwrap();
    assert!(told.contains(". Trying again at least every 60 s until "), "{told}");
    let process = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &process]).status().unwrap().success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest:?}");
    let said = "error: Detached with 4 of 4 runs unfinished, none of them submitted. To continue, ";
    assert!(rest.iter().any(|line| line.starts_with(said)), "{rest:?}");
}

#[test]
fn a_time_limit_that_is_too_short_stops_a_campaign_before_it_starts() {
    let campaign = CAMPAIGN.replacen("repeats = 1\n", "repeats = 1\ntime-limit = \"00:05:00\"\n", 1);
    let place = place(&campaign, &unreachable());
    let files = ["--clusters", "clusters.toml", "--data-dir", "data"];
    let dry = run_in(&place, &[&files[..], &["--dry-run"]].concat());
    assert!(dry.code == Some(2) && dry.stdout.contains("\"run\""), "{}", dry.stderr);
    let noted = "so the time limit of 00:05:00 is too short. Set time-limit = \"00:";
    assert!(dry.stderr.contains(noted), "{}", dry.stderr);
    let dry = run_in(&place, &[&files[..], &["--dry-run", "--anyway"]].concat());
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    let more = [&files[..], &["--patience", "0"]].concat();
    let run = run_in(&place, &more);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{}", run.stderr);
    let said = "before their last step:\n       small: Set time-limit = \"00:";
    assert!(run.stderr.contains(said) && run.stderr.contains("add --anyway"), "{}", run.stderr);
    assert!(!place.path().join("data").exists());
    let anyway = run_in(&place, &[&more[..], &["--anyway"]].concat());
    assert_eq!(anyway.code, Some(5), "{}", anyway.stderr);
}

#[test]
fn an_unreachable_cluster_gives_exit_code_5_and_the_campaign_can_continue() {
    let place = place(CAMPAIGN, &unreachable());
    let more = [
        "--clusters",
        "clusters.toml",
        "--data-dir",
        "data",
        "--patience",
        "0.01",
        "--skip-checks",
        "--format",
        "json",
    ];
    let run = run_in(&place, &more);
    assert_eq!(run.code, Some(5), "{}", run.stderr);
    assert!(run.stderr.contains("no-such-host.invalid"), "{}", run.stderr);
    // Without the check, the round was begun, and nothing was submitted: the next process continues it.
    let again = run_in(&place, &more);
    assert_eq!(again.code, Some(5));
    assert!(again.stderr.contains("Continuing the round of"), "{}", again.stderr);
    // It has no jobs, so that a new round can take its place.
    let new = run_in(&place, &[&more[..], &["--new"]].concat());
    assert_eq!(new.code, Some(5), "{}", new.stderr);
    let runs = listed(&place);
    let of_round = |round: &str| -> Vec<(&str, bool)> {
        let runs = runs.as_array().unwrap().iter().filter(|run| run["round"] == round);
        runs.map(|run| (run["phase"].as_str().unwrap(), run["why"].is_string())).collect()
    };
    assert_eq!(of_round("nightly@1"), [("failed", true); 4]);
    assert_eq!(of_round("nightly@2"), [("planned", false); 4]);
}

#[test]
fn a_round_of_failed_runs_has_those_that_have_not_run_and_is_continued() {
    let place = place(CAMPAIGN, &unreachable());
    let files = ["--clusters", "clusters.toml", "--data-dir", "data", "--patience", "0.01", "--skip-checks"];
    let failed = [&files[..], &["--failed"]].concat();
    for other in ["--new", "--dry-run"] {
        assert_eq!(run_in(&place, &[&failed[..], &[other]].concat()).code, Some(2), "{other}");
    }
    let run = run_in(&place, &failed);
    assert_eq!(run.code, Some(5), "{}", run.stderr);
    for name in ["large#1", "large#2", "large#3", "small"] {
        assert!(run.stderr.contains(&format!("{name} starts. It has not run yet.")), "{}", run.stderr);
    }
    for more in [&failed[..], &files[..]] {
        let again = run_in(&place, more);
        assert_eq!(again.code, Some(5), "{}", again.stderr);
        let is_continued = again.stderr.contains("Continuing the round of");
        assert!(is_continued && !again.stderr.contains("starts."), "{}", again.stderr);
    }
    assert_eq!(listed(&place).as_array().unwrap().len(), 4);
}

#[test]
fn of_failed_runs_only_those_that_start_are_checked() {
    let campaign = CAMPAIGN.replacen("repeats = 1\n", "repeats = 1\ntime-limit = \"00:05:00\"\n", 1);
    let place = place(&campaign, &unreachable());
    let failed = |scored: &[Value], more: &[&str]| {
        let mut journal = OwnJournal::new();
        journal.ended_round("nightly", "alpha");
        for (number, plan) in scored.iter().enumerate() {
            let events = [
                json!({ "event": "parsed", "status": "scored", "step_time_s": 9.4 }),
                json!({ "event": "stored", "result": "good" }),
            ];
            journal.run_of_plan("alpha", &format!("run-{number}"), plan.clone(), &[], &events);
        }
        journal.write();
        let data = journal.data();
        let files = ["--failed", "--clusters", "clusters.toml", "--data-dir", &data, "--patience", "0"];
        run_in(&place, &[&files[..], more].concat())
    };
    let large = |repeat: u32| json!({ "name": "large", "gpus": 512, "repeat": repeat, "repeats": 3 });
    // Of the whole campaign, only the time limit of small is too short.
    let others = failed(&[json!({ "name": "small", "gpus": 8 })], &[]);
    assert_eq!(others.code, Some(5), "{}", others.stderr);
    assert!(others.stderr.contains("large#1 starts."), "{}", others.stderr);
    assert!(!others.stderr.contains("Set time-limit"), "{}", others.stderr);
    let itself = failed(&[large(1), large(2), large(3)], &[]);
    assert_eq!(itself.code, Some(2), "{}", itself.stderr);
    assert!(itself.stderr.contains("small: Set time-limit = \"00:"), "{}", itself.stderr);
    let anyway = failed(&[large(1), large(2), large(3)], &["--anyway"]);
    assert_eq!(anyway.code, Some(5), "{}", anyway.stderr);
}

#[test]
fn a_round_of_failed_runs_needs_only_their_secrets() {
    let other = "env = { OTHER = { env = \"UNSET_TOKEN\" }, NOTE = ";
    let place = place(&CAMPAIGN.replacen("env = { NOTE = ", other, 1), &unreachable());
    let mut journal = OwnJournal::new();
    journal.ended_round("nightly", "alpha");
    let scored = [
        json!({ "event": "parsed", "status": "scored", "step_time_s": 9.4 }),
        json!({ "event": "stored", "result": "good" }),
    ];
    journal.run_of_plan("alpha", "run-1", json!({ "name": "small", "gpus": 8 }), &[], &scored);
    journal.write();
    let data = journal.data();
    let run = |more: &[&str]| {
        let files =
            ["--clusters", "clusters.toml", "--data-dir", &data, "--patience", "0.01", "--skip-checks"];
        run_in(&place, &[&files[..], more].concat())
    };
    let begun = run(&["--failed"]);
    assert_eq!(begun.code, Some(5), "{}", begun.stderr);
    for more in [&["--failed"][..], &[]] {
        let again = run(more);
        assert_eq!(again.code, Some(5), "{}", again.stderr);
        assert!(again.stderr.contains("Continuing the round of"), "{}", again.stderr);
    }
    // A round of all runs needs that of small.
    let all = run(&["--new"]);
    assert_eq!(all.code, Some(2), "{}", all.stderr);
    assert!(all.stderr.contains("OTHER"), "{}", all.stderr);
}

#[test]
fn the_path_of_a_model_file_is_relative_to_the_campaign() {
    let config = r#"{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
        "intermediate_size": 8192, "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
        "vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": true}"#;
    let own = "model = \"config.json\"\ngpus = 8\ngbs = 8\nstyle = \"megatron-lm\"";
    let campaign = CAMPAIGN.replace("recipe = \"llama3.1-8b/h100/bf16/8@25.04\"", own);
    let place = place(&campaign, CLUSTERS);
    fs::create_dir(place.path().join("elsewhere")).unwrap();
    fs::write(place.path().join("config.json"), config).unwrap();
    let output = Command::new(binary())
        .args([
            "run",
            "../a.campaign.toml",
            "--dry-run",
            "--clusters",
            "../clusters.toml",
            "--format",
            "json",
        ])
        .current_dir(place.path().join("elsewhere"))
        .output()
        .unwrap();
    let run = run_of(&output);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let runs: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(runs[1]["estimate"]["scenario"]["layers"], 16);
}
