//! What launches the plans of a search: the same for its answer, its campaign and `trainplan launch`.

use crate::{csv, json};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn a_search_its_campaign_and_a_launch_name_the_same_launcher() {
    let folder = tempfile::tempdir().unwrap();
    let mut launchers = BTreeSet::new();
    for (place, question) in [
        // 26.06.01 publishes this layout, too, with older software.
        "--model llama3.1-8b --gpu h100 --gpus 64 --lock fsdp=no",
        "--model llama3.1-405b --gpu h100 --gpus 256",
        "--model llama3.1-70b --gpu b200 --gpus 256",
        // Full recomputation turns off parts of the software.
        "--model deepseek-v3 --gpu h100 --gpus 256",
        "--model mixtral-8x7b --gpu b200 --gpus 512",
        "--model llama3.1-8b --gpu h100 --gpus 64 --stack torchtitan",
        "--model llama3.1-8b --gpu h100 --gpus 64 --lock fsdp=no --stack megatron-lm-0.14",
        "--model llama3.1-8b --gpu h100 --gpus 64 --lock fsdp=no --stack megatron-bridge-26.02",
    ]
    .iter()
    .enumerate()
    {
        let file = folder.path().join(format!("{place}.campaign.toml"));
        let search: Vec<&str> =
            ["search"].into_iter().chain(question.split(' ')).chain(["--top", "1"]).collect();
        let campaign = ["--cluster", "alpha", "--campaign", file.to_str().unwrap()];
        let best = json(&[&search[..], &campaign[..]].concat());
        let (header, rows) = csv(&search);
        let column = header.iter().position(|title| title == "launched_with").unwrap();
        let launcher = rows[0][column].clone();

        let text = fs::read_to_string(&file).unwrap();
        let run = text.split("[[run]]").nth(1).unwrap();
        let named = match launcher.as_str() {
            "megatron-lm" => "style = \"megatron-lm\"".to_owned(),
            release => format!("release = \"{release}\""),
        };
        assert!(run.contains(&named), "{question}: {launcher}: {text}");

        let command = best["answers"][0]["launch_command"].as_str().unwrap();
        let launch = json(&command.split(' ').skip(1).collect::<Vec<_>>());
        let launched = launch["release"].as_str().unwrap_or("megatron-lm");
        assert_eq!(launched, launcher, "{question}");
        launchers.insert(launcher);
    }
    assert_eq!(launchers, BTreeSet::from(["26.06.01", "bridge-main", "megatron-lm"].map(String::from)));
}

#[test]
fn a_campaign_predicts_a_release_that_turns_off_parts_of_the_planned_software() {
    let folder = tempfile::tempdir().unwrap();
    let (file, clusters) = (folder.path().join("moe.campaign.toml"), folder.path().join("clusters.toml"));
    fs::write(&clusters, "version = 1\n[cluster.alpha]\nssh = \"alpha\"\ngpu = \"b300\"\n").unwrap();
    let (file, clusters) = (file.to_str().unwrap(), clusters.to_str().unwrap());
    let question = [
        "--model",
        "gpt-oss-20b",
        "--gpu",
        "b300",
        "--gpus",
        "64",
        "--dtype",
        "mxfp8",
        "--lock",
        "recompute=full,fsdp=no,mbs=1",
    ];
    let search = [&["search", "--top", "1"], &question[..]].concat();
    let best = json(&[&search[..], &["--campaign", file, "--cluster", "alpha"]].concat());
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("# Full recomputation turns off CUDA graphs"), "{text}");
    assert!(
        text.contains("release = \"bridge-main\"") && text.contains("stack = \"megatron-bridge-26.06:"),
        "{text}"
    );
    let dry = json(&["run", file, "--clusters", clusters, "--dry-run"]);
    let answer = &best["answers"][0];
    let slower = number(&dry[0]["step_time_s"]["mid"]) / number(&answer["layouts"][0]["step_time_s"]["mid"]);
    // The search counts the time of the script.
    assert!(number(&answer["script"]["slowdown"]) > 1.0 && (slower - 1.0).abs() < 0.06, "{slower} {answer}");
}
