//! The campaigns that `trainplan search --campaign` writes.

use crate::search::{list, number};
use crate::{json, refusal};
use serde_json::Value;
use std::fs;
use trainplan_tests::trainplan;

#[test]
fn the_best_layouts_become_a_campaign_that_can_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let (file, clusters) = (folder.path().join("measure.campaign.toml"), folder.path().join("clusters.toml"));
    let clusters_text = "version = 1\n\n[cluster.alpha]\nssh = \"alpha-login\"\naccount = \"research\"\npartition = \
                         \"batch\"\ngpu = \"h100\"\n";
    fs::write(&clusters, clusters_text).unwrap();
    let (file, clusters) = (file.to_str().unwrap(), clusters.to_str().unwrap());
    let search = [
        "search",
        "--model",
        "llama3.1-8b",
        "--gpu",
        "h100",
        "--gpus",
        "64",
        "--top",
        "3",
        "--campaign",
        file,
        "--cluster",
        "alpha",
    ];
    let found = trainplan(search);
    let (best, said): (Value, _) = (serde_json::from_str(&found.stdout).unwrap(), found.stderr);
    let planned =
        trainplan(["run", file, "--clusters", clusters, "--dry-run", "--anyway", "--format", "json"]);
    assert!(matches!(planned.code, Some(0 | 3)), "{}", planned.stderr);
    let planned: Value = serde_json::from_str(&planned.stdout).unwrap();
    let runs = list(&planned);
    let layouts = list(&best["answers"][0]["layouts"]);
    assert_eq!(runs[0]["step_time_s"], layouts[0]["step_time_s"], "{planned}");
    let text = fs::read_to_string(file).unwrap();
    assert!(
        text.contains("Steps 35-44 or 41-50 are scored") && text.contains("[defaults]\nmax-steps = 50\n"),
        "{text}"
    );
    // Runs differ in more than the chunks of a stage, but for the published layout.
    let (published, searched): (Vec<&str>, Vec<&str>) =
        text.split("[[run]]").skip(1).partition(|run| run.contains("-published\""));
    assert_eq!((searched.len(), searched.len() + published.len()), (3, runs.len()), "{text}");
    assert_eq!(published.is_empty(), !said.contains("also measures the published layout"), "{said}");
    // Every layout that is measured is listed.
    let value = |run: &str, key: &str| -> u64 {
        let of_key = |line: &str| line.strip_prefix(key)?.strip_prefix(" = ")?.parse().ok();
        run.lines().find_map(of_key).unwrap_or(1)
    };
    for run in &searched {
        let is_run = |plan: &Value| {
            ["tp", "pp", "cp", "vp", "mbs"]
                .iter()
                .all(|key| plan["chosen"][*key].as_u64() == Some(value(run, key)))
        };
        assert!(layouts.iter().any(is_run), "{run} is not in {best}");
    }
    let of_variant = ["name = ", "vp = ", "pipeline-split = ", "time-limit = "];
    let mut layouts: Vec<String> = searched
        .iter()
        .map(|run| run.lines().filter(|line| !of_variant.iter().any(|key| line.starts_with(key))).collect())
        .collect();
    layouts.sort();
    layouts.dedup();
    assert_eq!(layouts.len(), 3, "{text}");
    // Half an hour to start, and 50 steps at the slow end.
    let slow_end = runs[0]["step_time_s"]["high"].as_f64().unwrap();
    let minutes = ((1800.0 + 50.0 * slow_end) / 300.0).ceil() as u32 * 5;
    let limit = format!("time-limit = \"{:02}:{:02}:00\"", minutes / 60, minutes % 60);
    assert!(searched[0].contains(&limit), "{limit} {text}");
    let again = refusal(&search);
    assert!(again.contains("The file already exists") && again.contains("--campaign"), "{again}");
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[test]
fn a_campaign_measures_the_published_layout_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("measure.campaign.toml");
    let question = ["search", "--model", "llama3.1-70b", "--gpu", "b200", "--gpus", "512", "--top", "2"];
    let found =
        trainplan([&question[..], &["--campaign", file.to_str().unwrap(), "--cluster", "alpha"]].concat());
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        found.stderr.contains("also measures the published layout of llama3.1-70b/b200/"),
        "{}",
        found.stderr
    );
    assert_eq!(text.matches("[[run]]").count(), 3, "{text}");
    let (before, published) = text.rsplit_once("[[run]]").unwrap();
    assert!(published.contains("-published\"") && published.contains("time-limit = "), "{published}");
    let explained = "# The published layout of llama3.1-70b/b200/";
    assert_ne!(published.contains("recipe = "), before.contains(explained), "{text}");
}

#[test]
fn the_published_layout_runs_with_its_own_script_where_that_is_possible() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("measure.campaign.toml");
    let question = [
        "search",
        "--model",
        "llama3.1-405b",
        "--gpu",
        "h100",
        "--gpus",
        "512",
        "--dtype",
        "bf16",
        "--lock",
        "cp=1",
        "--headroom",
        "0",
        "--top",
        "1",
        "--gbs",
    ];
    let write = |gbs: &str| {
        let _ = fs::remove_file(&file);
        let campaign = [gbs, "--campaign", file.to_str().unwrap(), "--cluster", "alpha"];
        trainplan([&question[..], &campaign].concat());
        fs::read_to_string(&file).unwrap()
    };
    let recipe = "llama3.1-405b/h100/bf16/512@25.04";
    let text = write("256");
    let (before, published) = text.rsplit_once("[[run]]").unwrap();
    assert!(before.ends_with(&format!("# The published layout, with the script of {recipe}.\n")), "{text}");
    assert!(published.contains(&format!("recipe = \"{recipe}\"")), "{text}");
    assert!(!published.contains("style = ") && !published.contains("stack = "), "{text}");
    // The script sets its own batch.
    let text = write("512");
    let (before, published) = text.rsplit_once("[[run]]").unwrap();
    let is_explained =
        before.contains(&format!("# The published layout of {recipe} with Megatron-LM, because"));
    assert_eq!(is_explained, published.contains("style = \"megatron-lm\""), "{text}");
}

#[test]
fn a_campaign_says_which_software_its_runs_use() {
    let folder = tempfile::tempdir().unwrap();
    let question = ["search", "--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "64", "--top", "1"];
    let write = |name: &str, more: &[&str]| {
        let file = folder.path().join(name);
        let campaign = ["--campaign", file.to_str().unwrap(), "--cluster", "alpha"];
        let written = trainplan([&question[..], &campaign, more].concat());
        (written.stderr, fs::read_to_string(file).unwrap())
    };
    // Of a dense model on few GPUs, the script runs what was predicted.
    let (said, text) = write("nvidia.toml", &[]);
    assert!(!said.contains("the runs use") && !text.contains("stack"), "{said} {text}");
    let (said, text) = write("other.toml", &["--stack", "torchtitan", "--cluster-factor", "1.1"]);
    assert!(said.contains("the search predicted torchtitan, but the runs use Megatron-LM."), "{said}");
    assert!(text.contains("stack = \"megatron-lm-0.14:") && !text.contains("cluster-factor"), "{text}");
}

#[test]
fn a_campaign_predicts_what_its_scripts_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("moe.campaign.toml");
    let (file, clusters) = (file.to_str().unwrap(), folder.path().join("clusters.toml"));
    fs::write(&clusters, "version = 1\n[cluster.alpha]\nssh = \"alpha\"\ngpu = \"b200\"\n").unwrap();
    let search = ["search", "--model", "mixtral-8x7b", "--gpu", "b200", "--gpus", "512", "--top", "1"];
    let best = json(&[&search[..], &["--campaign", file, "--cluster", "alpha"]].concat());
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("stack = \"megatron-bridge-26.06:experts=separate\""), "{text}");
    let of_script = json(&["run", file, "--clusters", clusters.to_str().unwrap(), "--dry-run"]);
    let of_script = of_script[0]["step_time_s"]["mid"].as_f64().unwrap();
    let searched = best["answers"][0]["layouts"][0]["step_time_s"]["mid"].as_f64().unwrap();
    let slower = of_script / searched;
    // A search counts the time of the script, too.
    assert!((0.94..1.06).contains(&slower), "{of_script} {searched}");
    let slower = number(&best["answers"][0]["script"]["slowdown"]);
    assert!((1.1..1.4).contains(&slower), "{slower}");
    // The launch of the plan with the planned software says the same.
    let command = best["answers"][0]["command"].as_str().unwrap().replace("estimate", "launch");
    let (command, _) = command.split_once(" --tokens ").unwrap();
    let words =
        command.split(' ').skip(1).chain(["--style", "megatron-lm", "--stack", "megatron-bridge-26.06"]);
    let launch: Vec<&str> = words.collect();
    let said = trainplan(&launch).stderr;
    assert!(said.contains("without fused kernels for experts: steps take"), "{said}");
    // That is the physical model's ratio; measured runs correct the estimate, but not that of other software.
    let (_, said_slower) = said.split_once("steps take about ").unwrap();
    let percent: f64 = said_slower.split(' ').next().unwrap().parse().unwrap();
    assert!(((1.0 + percent / 100.0) / slower - 1.0).abs() < 0.06, "{percent} {slower}");
}

#[test]
fn a_campaign_runs_the_planned_software_where_a_release_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("moe.campaign.toml");
    let (file, clusters) = (file.to_str().unwrap(), folder.path().join("clusters.toml"));
    fs::write(&clusters, "version = 1\n[cluster.alpha]\nssh = \"alpha\"\ngpu = \"b200\"\n").unwrap();
    let search = ["search", "--model", "qwen3-235b-a22b", "--gpu", "b200", "--gpus", "512", "--top", "2"];
    let written =
        trainplan([&search[..], &["--campaign", file, "--cluster", "alpha", "--format", "json"]].concat());
    assert!(!written.stderr.contains("Megatron-LM"), "{}", written.stderr);
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("release = \"bridge-main\"") && !text.contains("stack"), "{text}");
    // The release's own window.
    assert!(text.contains("# Steps 41-50 are scored"), "{text}");
    let best: Value = serde_json::from_str(&written.stdout).unwrap();
    let dry = json(&["run", file, "--clusters", clusters.to_str().unwrap(), "--dry-run"]);
    assert_eq!(dry[0]["step_time_s"], best["answers"][0]["layouts"][0]["step_time_s"]);
}

#[test]
fn a_campaign_runs_a_published_layout_with_the_release_that_publishes_it() {
    let folder = tempfile::tempdir().unwrap();
    let search = ["search", "--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "64"];
    let write = |name: &str, more: &[&str]| {
        let file = folder.path().join(name);
        let campaign = ["--campaign", file.to_str().unwrap(), "--cluster", "alpha"];
        trainplan([&search[..], &campaign, more].concat());
        fs::read_to_string(file).unwrap()
    };
    // The newest release with such a recipe is another one, with older software.
    let text = write("listed.toml", &["--lock", "fsdp=no", "--top", "3"]);
    assert!(text.contains("release = \"bridge-main\"") && !text.contains("megatron-lm"), "{text}");
    // A layout that no release runs.
    let text = write("sharded.toml", &["--lock", "fsdp=yes", "--top", "1"]);
    assert!(text.contains("style = \"megatron-lm\"") && text.contains("Turn FSDP off."), "{text}");
}
