use crate::{json, refusal};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tempfile::TempDir;
use trainplan_tests::{binary, trainplan};

#[test]
fn the_script_runs_the_releases_own_launcher() {
    let stage = tempfile::tempdir().unwrap();
    let recipe = stage.path().join("recipes of ours");
    fs::create_dir_all(&recipe).unwrap();
    let launcher = recipe.join("launch.sh");
    fs::write(&launcher, "#!/bin/sh\npwd\nenv\n").unwrap();
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();

    let run = trainplan([
        "launch",
        "--recipe",
        "llama3.1-405b/h100/fp8/512@25.04",
        "--account",
        "research",
        "--partition",
        "batch",
    ]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let output = Command::new("sh")
        .args(["-c", &run.stdout])
        .env("STAGE_PATH", stage.path())
        .env("RECIPE_DIR", &recipe)
        .env("HF_TOKEN", "hf_secret")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.lines().next(), recipe.to_str());
    for variable in [
        "JOB_TOTAL_GPUS=512",
        "DTYPE=fp8",
        "MODEL_SIZE=405b",
        "SBATCH_ACCOUNT=research",
        "SBATCH_PARTITION=batch",
    ] {
        assert!(said.lines().any(|line| line == variable), "{variable} is not in {said}");
    }
    assert!(!run.stdout.contains("hf_secret"));
}

#[test]
fn the_script_says_what_it_needs() {
    let run = trainplan(["launch", "--recipe", "llama3.1-405b/h100/fp8/512@25.04"]);
    let output = Command::new("sh").args(["-c", &run.stdout]).env_clear().output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("STAGE_PATH"));
}

#[test]
fn errors_do_nothing_to_the_terminal() {
    for field in ["--model", "--recipe", "--install-path", "--venv", "--load-checkpoint", "--style", "--gbs"]
    {
        let run = trainplan(["launch", field, "/a\u{1b}[31mb $ x"]);
        assert_eq!(run.code, Some(2), "{field}");
        assert!(!run.stderr.chars().any(|c| c.is_control() && c != '\n'), "{field}: {:?}", run.stderr);
    }
}

#[test]
fn json_has_every_part() {
    let launch = json(&["launch", "--recipe", "nemotron4-340b/gb200/fp8/256@25.12"]);
    for field in ["prepare", "cwd", "commands", "env", "script", "outputs", "warnings"] {
        assert!(!launch[field].is_null(), "{field}");
    }
    assert_eq!(
        launch["commands"][0],
        "llmb-run submit -w pretrain_nemotron4-340b -s 340b --dtype fp8 --scale 256"
    );
    for field in ["experiment_dir", "log_glob", "profile_glob", "checkpoint_dir"] {
        assert!(launch["outputs"].get(field).is_some(), "{field}");
    }
}

#[test]
fn every_recipe_can_be_launched() {
    for recipe in json(&["recipes"]).as_array().unwrap() {
        let id = recipe["id"].as_str().unwrap();
        let run = trainplan(["launch", "--recipe", id]);
        assert_eq!(run.code, Some(0), "{id}: {}", run.stderr);
        assert!(run.stdout.starts_with("#!/bin/sh\n"));
    }
}

#[test]
fn a_change_that_the_release_fixes_is_refused_with_what_could_run_it() {
    let said = refusal(&["launch", "--recipe", "llama3.1-405b/h100/fp8/512@25.04", "--tp", "4"]);
    assert!(said.contains("--tp"), "{said}");
    let said = refusal(&["launch", "--recipe", "llama3.1-405b/h100/fp8/512@25.04", "--style", "llmb"]);
    assert!(said.contains("Did you mean llmb-run?"), "{said}");
}

const ROUTED: [&str; 11] =
    ["launch", "--model", "mixtral-8x7b", "--gpu", "h100", "--gpus", "64", "--gbs", "512", "--ep", "8"];

/// A place where a batch job can run: stand-ins for the programs it calls; torchrun prints what Megatron-LM would.
fn cluster() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let srun = r#"#!/bin/sh
while :; do
    case $1 in
    --output=*) log=${1#--output=} ;;
    -*) ;;
    *) break ;;
    esac
    shift
done
exec "$@" >> "$log" 2>&1
"#;
    let torchrun = r#"#!/bin/sh
printf '%s\n' "$@" > argv
step=1
while [ $step -le 50 ]; do
    echo " [2026-01-01 00:00:00] iteration $step/ 50 | consumed samples: $((512 * step)) |\
 elapsed time per iteration (ms): 4096.0 | throughput per GPU (TFLOP/s/GPU): 400.5 | learning rate: 1.0E-04 |\
 global batch size:   512 | lm loss: 1.1E+01 | loss scale: 1.0 | grad norm: 1.234 |\
 number of skipped iterations:   0 | number of nan iterations:   0 |"
    step=$((step + 1))
done
echo '[after training is done] datetime: 2026-01-01 00:00:00'
"#;
    for (name, text) in [("srun", srun), ("torchrun", torchrun), ("scontrol", "#!/bin/sh\necho node1\n")] {
        let path = place.path().join("bin").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    place
}

#[test]
fn what_no_release_runs_runs_by_megatron_lm_and_is_read_back() {
    let run = trainplan(ROUTED.iter().chain(&["--style", "megatron-lm"]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.starts_with("#!/bin/bash\n# Mixtral 8x7B") && run.stdout.contains("\n#SBATCH --nodes=8\n")
    );
    let place = cluster();
    let script = place.path().join("run.sh");
    fs::write(&script, &run.stdout).unwrap();
    let checked = Command::new("sh").arg("-n").arg(&script).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let path = format!("{}:/usr/bin:/bin", place.path().join("bin").display());
    let job = Command::new("bash")
        .arg(&script)
        .env_clear()
        .envs([("PATH", path.as_str()), ("SLURM_JOB_ID", "4711"), ("SLURM_JOB_NODELIST", "node[1-8]")])
        .env("MEGATRON_PATH", "/opt/megatron-lm")
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(job.status.success(), "{}", String::from_utf8_lossy(&job.stderr));
    let argv = fs::read_to_string(place.path().join("argv")).unwrap();
    assert!(argv.contains("\n/opt/megatron-lm/pretrain_gpt.py\n--num-layers\n32\n"), "{argv}");
    assert!(argv.contains("\n--rdzv-endpoint\nnode1:24711\n"), "{argv}");

    // As the launch itself says to read it.
    let launch = json(&[&ROUTED[..], &["--style", "megatron-lm"]].concat());
    let command = launch["check"][1]["commands"][0].as_str().unwrap().replace("trainplan ", "\"$0\" ");
    let read = Command::new("sh")
        .args(["-c", &format!("{command} --format json")])
        .arg(binary())
        .current_dir(place.path())
        .output()
        .unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
    let row = &rows[0];
    assert_eq!((row["status"].as_str(), row["steps"].as_u64()), (Some("scored"), Some(50)), "{row}");
    assert_eq!(row["step_time_s"]["mean"], 4.096);
    assert_eq!(row["tokens_per_s"], 512.0 * 4096.0 / 4.096);
    assert!(row["mfu"].as_f64().is_some_and(|mfu| mfu > 0.0), "{row}");

    // The log states what it is a log of, under any name.
    let log = row["path"].as_str().unwrap();
    fs::copy(place.path().join(log), place.path().join("own.log")).unwrap();
    let own = json(&["parse", &place.path().join("own.log").to_string_lossy()])[0].clone();
    assert_eq!(own["step_time_s"]["mean"], 4.096);
    let doubts = own["notes"].to_string();
    assert!(!doubts.contains("name its model") && !doubts.contains("GPU type"), "{doubts}");
}

#[test]
fn megatron_lm_has_every_part_of_a_launch() {
    let launch = json(&[&ROUTED[..], &["--style", "megatron-lm", "--profile", "--save-checkpoint"]].concat());
    for field in ["prepare", "cwd", "commands", "env", "script", "outputs", "warnings"] {
        assert!(!launch[field].is_null(), "{field}");
    }
    for field in ["experiment_dir", "log_glob", "profile_glob", "checkpoint_dir"] {
        assert!(launch["outputs"][field].as_str().is_some(), "{field}");
    }
    assert_eq!((launch["release"].as_str(), launch["style"].as_str()), (None, Some("megatron-lm")));
}

#[test]
fn a_refusal_names_the_way_without_a_release() {
    let released = [&ROUTED[..], &["--release", "25.12"]].concat();
    for arguments in [&released[..], &["launch", "--recipe", "llama3.1-405b/h100/fp8/512@25.04", "--tp", "4"]]
    {
        let said = refusal(arguments);
        assert!(said.contains("--style megatron-lm launches this scenario"), "{said}");
    }
}

#[test]
fn a_scenario_without_a_recipe_falls_back_to_megatron_lm_and_says_so() {
    let run = trainplan(ROUTED);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.starts_with("#!/bin/bash\n# Mixtral 8x7B"), "{}", run.stdout);
    let said = "note: NVIDIA publishes no recipe for Mixtral 8x7B on the H100";
    assert!(run.stderr.contains(said) && run.stderr.contains("Submit it with `sbatch`."), "{}", run.stderr);
    assert_eq!(run.stdout, trainplan(ROUTED.iter().chain(&["--style", "megatron-lm"])).stdout);
    let launch = json(&ROUTED);
    assert!(launch["fallback"]["release"].is_null() && launch["fallback"]["problems"].is_array(), "{launch}");
}
