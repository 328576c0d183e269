use crate::{json, refusal};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use trainplan_tests::trainplan;

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
    assert!(said.contains("nearest: llmb-run"), "{said}");
}
