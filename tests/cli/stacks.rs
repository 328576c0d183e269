//! A user's own software: as text, as a file, and what is printed of it.

use crate::{csv, json, refusal};
use std::fs;
use trainplan_tests::trainplan;

/// The documentation of own stacks, and the folder of its worked examples.
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/stacks.md");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/stacks");

const OWN: &str = "nanotron:attention=tuned,overlaps_tp=yes,optimizer_bytes=8";

/// A scenario with an example's software.
fn estimated(command: &str, stack: &str) -> serde_json::Value {
    let scenario = command.split(" --stack ").next().unwrap();
    let mut arguments: Vec<&str> = scenario.split(' ').skip(1).collect();
    arguments.extend(["--stack", stack]);
    json(&arguments)
}

#[test]
fn the_worked_examples_print_what_the_documentation_says() {
    let docs = fs::read_to_string(DOCS).unwrap();
    // Each command of an estimate, followed by a table of step time and memory with the base and the own software.
    let is_example =
        |block: &&str| block.lines().next().is_some_and(|line| line.contains("--stack docs/stacks/"));
    let examples: Vec<&str> = docs.split("```sh\n").filter(is_example).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let command = example.lines().next().unwrap();
        let (_, file) = command.split_once("--stack docs/stacks/").unwrap();
        let path = format!("{EXAMPLES}/{file}");
        let base = fs::read_to_string(&path).unwrap();
        let base = base
            .lines()
            .find_map(|line| line.strip_prefix("base = \""))
            .unwrap()
            .trim_end_matches('"')
            .to_string();
        let (of_base, of_own) = (estimated(command, &base), estimated(command, &path));
        let own = of_own["scenario"]["options"]["stack"].as_str().unwrap();
        assert!(own.starts_with(&format!("{base}:")), "{own}");
        assert!(docs.contains(&format!("`{own}`")), "{file}: the page should have its text: {own}");
        for (estimate, name) in [(&of_base, base.as_str()), (&of_own, file.split('.').next().unwrap())] {
            let step = &estimate["step_time_s"];
            let [low, mid, high] =
                ["low", "mid", "high"].map(|end| format!("{:.2}", step[end].as_f64().unwrap()));
            let [tensors, reserved] =
                ["total_bytes", "reserved_bytes"].map(|part| estimate["memory"][part].as_f64().unwrap());
            let gib = (tensors + reserved) / f64::from(1 << 30);
            let row = format!("| {name} | {mid} s ({low}–{high}) | {gib:.1} GiB |");
            assert!(example.contains(&row), "{file}: the row should be\n{row}\n{example}");
        }
    }
}

#[test]
fn a_file_is_the_software_of_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.stack.toml");
    let text = "base = \"nanotron\"\nname = \"Ours\"\noverlaps_tp = true\nattention = \"tuned\"\noptimizer_bytes = 8\n";
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let scenario = ["--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "8", "--gbs", "128", "--tp", "8"];
    let with = |command: &str, stack: &str| {
        let mut arguments = vec![command];
        arguments.extend(scenario);
        arguments.extend(["--stack", stack]);
        trainplan(arguments)
    };
    let (of_file, of_text) = (with("estimate", path), with("estimate", OWN));
    assert_eq!(of_file.stdout, of_text.stdout);
    assert!(
        of_file.stderr.contains(&format!("Ours is nanotron with attention=tuned, overlaps_tp=yes, optimizer_bytes=8. Without the file, give --stack {OWN}")),
        "{}",
        of_file.stderr
    );
    // The script is that of Megatron-LM, whatever software the estimate is for.
    let launch =
        trainplan(["launch", "--style", "megatron-lm"].iter().chain(&scenario).chain(&["--stack", path]));
    assert_eq!(launch.code, Some(0), "{}", launch.stderr);
    assert!(launch.stderr.contains("The plan is for nanotron with attention=tuned"), "{}", launch.stderr);
    let search = json(&["search", "--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "8", "--stack", path]);
    assert_eq!(search["question"]["stack"], OWN, "{search}");
}

#[test]
fn own_software_is_never_measured() {
    let recipe = ["estimate", "--recipe", "llama3.1-70b/h100/bf16/64@25.04", "--stack"];
    let with = |stack: &str| json(&recipe.iter().copied().chain([stack]).collect::<Vec<_>>());
    let (known, own) = (with("nemo-2"), with("nemo-2:early_dp=yes"));
    assert_eq!(known["basis"]["kind"], "published");
    assert_eq!(own["basis"]["kind"], "modelled");
    let width = |estimate: &serde_json::Value| {
        let end = |end: &str| estimate["step_time_s"][end].as_f64().unwrap();
        end("high") / end("low")
    };
    assert!(width(&own) > 1.15 * width(&known), "{} {}", width(&own), width(&known));
    // A text in which nothing differs is the known software.
    assert_eq!(with("nemo-2:early_dp=no"), known);
}

#[test]
fn validate_takes_own_software_for_rows_of_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let rows = "model,gpu,precision,framework,gpus,seq_len,tp,pp,cp,mbs,gbs,step_time_s\n\
                llama3.1-8b,H100,BF16,own,8,4096,8,1,1,1,128,9\n\
                llama3.1-8b,H100,BF16,nanotron,8,4096,8,1,1,1,128,9\n\
                llama3.1-8b,H100,BF16,\"nanotron:overlaps_tp=yes\",8,4096,8,1,1,1,128,9\n";
    fs::write(&path, rows).unwrap();
    let path = path.to_str().unwrap();
    let predicted = |stack: Option<&str>| {
        let flag = stack.map_or(vec![], |stack| vec!["--stack", stack]);
        let rows = json(&[vec!["validate", path], flag].concat())["rows"].clone();
        [0, 1, 2].map(|row: usize| (rows[row]["predicted_s"].as_f64(), rows[row]["reason"].clone()))
    };
    let [own, known, text] = predicted(Some("nanotron:overlaps_tp=yes"));
    assert_eq!(own, text);
    assert!(own.0 < known.0, "{own:?} {known:?}");
    let [unsaid, _, _] = predicted(None);
    assert_eq!((unsaid.0, unsaid.1.as_str().unwrap().contains("--stack")), (None, true));
}

#[test]
fn known_software_is_listed_with_its_properties() {
    let (header, rows) = csv(&["stacks"]);
    assert_eq!(header[..3], ["id", "title", "attention"]);
    let listed = json(&["stacks"]);
    assert_eq!(listed.as_array().unwrap().len(), rows.len());
    let nanotron = listed.as_array().unwrap().iter().find(|stack| stack["id"] == "nanotron").unwrap();
    assert_eq!(nanotron["properties"]["bucket_mib"], "25");
    let own = json(&["stacks", OWN]);
    assert_eq!((&own["id"], &own["properties"]["overlaps_tp"]), (&OWN.into(), &"yes".into()));
    let table = trainplan(["stacks", OWN, "--format", "table"]).stdout;
    let line = table.lines().find(|line| line.contains("optimizer_bytes")).unwrap();
    assert!(line.contains("8") && line.contains("12"), "{line}");
}

#[test]
fn every_mistake_in_a_stack_says_what_works() {
    let said = |stack: &str| {
        refusal(&[
            "estimate",
            "--model",
            "llama3.1-8b",
            "--gpu",
            "h100",
            "--gpus",
            "8",
            "--gbs",
            "128",
            "--stack",
            stack,
        ])
    };
    assert!(said("nanotrn:eager=no").contains("Did you mean nanotron? `trainplan stacks` lists all."));
    for (words, meant) in [
        ("megatron-lm", "megatron-lm-0.14, megatron-lm-2022 or megatron-lm-2021"),
        ("Megatron_Bridge", "megatron-bridge-26.06, megatron-bridge-26.02 or megatron-bridge-25.09"),
        ("megatron-bridge:eager=no", "megatron-bridge-26.06, megatron-bridge-26.02 or megatron-bridge-25.09"),
        // Misspelt words are in no id.
        ("torchtian", "torchtitan"),
        ("megatron_brige_26.06", "megatron-bridge-26.06"),
    ] {
        assert!(said(words).contains(&format!("Did you mean {meant}?")), "{words}: {}", said(words));
    }
    assert!(said("nanotron:eagr=no").contains("Did you mean eager? `trainplan stacks nanotron` lists all."));
    let bridge = said("megatron-bridge-26.06:overlap_tp=yes");
    assert!(bridge.contains("`trainplan stacks megatron-bridge-26.06` lists all."), "{bridge}");
    assert!(said("nanotron:eager=maybe").contains("must be yes or no, not \"maybe\""));
    assert!(said("nowhere.toml").contains("--stack nowhere.toml: The file can't be read: No such file"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.stack.toml");
    fs::write(&path, "name = \"Ours\"\nbase = \"nanotron\"\neagre = true\n").unwrap();
    assert!(said(path.to_str().unwrap()).contains("wrong.stack.toml: Line 3: Unknown property \"eagre\""));
}
