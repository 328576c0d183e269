use crate::{json, refusal};
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use trainplan_tests::{binary, run_of, trainplan};

#[test]
fn help_has_examples_that_work() {
    for command in ["recipes", "flops", "metrics", "search", "estimate", "launch", "licenses"] {
        let help = trainplan([command, "--help"]);
        assert_eq!(help.code, Some(0));
        let examples: Vec<&str> = help
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("Example"))
            .filter_map(|line| line.trim().strip_prefix("trainplan "))
            .collect();
        assert!(examples.len() >= 3, "{command}: {}", help.stdout);
        for example in examples {
            let arguments = example.split(" > ").next().unwrap_or_default().split(' ');
            let run = trainplan(arguments);
            assert_eq!(run.code, Some(0), "{example}: {}", run.stderr);
            assert!(!run.stdout.is_empty(), "{example}");
        }
    }
}

#[test]
fn the_commands_in_the_readme_and_the_planning_guide_work() {
    let readme = include_str!("../../README.md");
    let guide = include_str!("../../docs/planning.md");
    let commands: Vec<&str> =
        readme.lines().chain(guide.lines()).filter_map(|line| line.strip_prefix("trainplan ")).collect();
    assert!(commands.len() >= 20, "{commands:?}");
    let nowhere = tempfile::tempdir().unwrap();
    let profiles = nowhere.path().join(".config/trainplan");
    fs::create_dir_all(&profiles).unwrap();
    // The files shown in the README, each named in its first line.
    for file in readme.split("```toml\n# ").skip(1) {
        let (name, content) = file.split_once('\n').unwrap();
        let content = content.split("```").next().unwrap();
        fs::write(nowhere.path().join(name), content).unwrap();
        fs::write(profiles.join(name), content).unwrap();
    }
    for command in commands {
        let command = command.split(" #").next().unwrap();
        let mut words: Vec<&str> = command.split_whitespace().collect();
        // The folder is empty and no cluster exists: a command that needs a file or a cluster must say so.
        let expected = match words[..] {
            ["calibrate", _, "runs.csv", ..] => 1,
            ["parse" | "calibrate" | "check", ..] => 4,
            ["compare", ..] => 2,
            ["validate", ..] => 1,
            ["upload", ..] => 2,
            ["doctor" | "probe", ..] => 5,
            ["run", _] => {
                words.extend(["--patience", "0"]);
                5
            }
            ["certify", ..] if !words.contains(&"--dry-run") => {
                words.extend(["--patience", "0"]);
                5
            }
            ["serve"] => {
                words.push("--help"); // without it, serve would not end
                0
            }
            _ => 0,
        };
        let output = Command::new(binary())
            .args(words)
            .current_dir(&nowhere)
            .env("HOME", nowhere.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env("HF_TOKEN", "none")
            .output()
            .unwrap();
        let run = run_of(&output);
        assert_eq!(run.code, Some(expected), "{command}: {}", run.stderr);
    }
}

#[test]
fn wrong_use_exits_with_2_and_says_what_was_meant() {
    assert!(refusal(&["recipe"]).contains("recipes"));
    assert!(refusal(&["recipes", "--gpuz", "h100"]).contains("--gpu"));
    assert!(refusal(&["recipes", "--format", "xml"]).contains("json"));
}

#[test]
fn the_last_value_of_a_flag_counts() {
    let recipe = "llama3.1-70b/h100/fp8/256@25.04";
    let estimate = |more: &[&str]| json(&[&["estimate", "--recipe", recipe][..], more].concat());
    let last = estimate(&["--tp", "8", "--tokens", "2T", "--fsdp", "off", "--price", "3"]);
    let all = ["--tp", "4", "--tokens", "1T", "--fsdp", "on", "--price", "2"];
    let overridden = ["--tokens", "2T", "--tp", "8", "--price", "3", "--fsdp", "off"];
    assert_eq!(estimate(&[all, overridden].concat()), last);
    // So do switches, and the flags of every subcommand.
    let run = trainplan(["recipes", "--measured", "--measured", "--format", "csv", "--format", "json"]);
    assert!(run.code == Some(0) && run.stdout.starts_with('['), "{}", run.stderr);
    let nowhere = tempfile::tempdir().unwrap();
    let data = nowhere.path().to_str().unwrap();
    let list = ["jobs", "list", "--data-dir", "/nowhere", "--data-dir", data, "--format", "json"];
    let run = trainplan(list);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "[]"), "{}", run.stderr);
}

#[test]
fn flags_that_are_lists_add_up() {
    let search = |more: &[&str]| {
        let question = ["search", "--model", "llama3.1-8b", "--gpus", "64", "--tokens", "1T"];
        json(&[&question[..], more].concat())
    };
    let lists = search(&["--gpu", "h100,b200", "--dtype", "fp8", "--lock", "cp=1,tp=2"]);
    // The last precision replaces the first.
    let flags = ["--gpu", "h100", "--gpu", "b200", "--dtype", "bf16", "--dtype", "fp8"];
    // A lock replaces an earlier one on the same field.
    let locks = ["--lock", "tp=1,cp=1", "--lock", "tp=2"];
    assert_eq!(search(&[&flags[..], &locks[..]].concat()), lists);

    let launch = ["launch", "--recipe", "llama3.1-8b/h100/fp8/8@25.04", "--env", "ONE=1", "--env", "TWO=2"];
    let env = &json(&launch)["env"];
    assert!(!env["ONE"].is_null() && !env["TWO"].is_null(), "{env}");
}

#[test]
fn results_go_to_stdout_and_everything_else_to_stderr() {
    let run = trainplan(["metrics", "--recipe", "llama3.1-405b/h100/fp8/512", "--format", "json"]);
    assert!(run.stderr.starts_with("note: ") && run.stderr.contains("llama3.1-405b/h100/fp8/512@25.04"));
    assert!(run.stdout.starts_with('{') && run.stdout.trim_end().ends_with('}'));
    let full = trainplan(["metrics", "--recipe", "llama3.1-405b/h100/fp8/512@25.04", "--format", "json"]);
    assert_eq!(full.stderr, "");
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let mut child = Command::new(binary())
        .args(["recipes", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn completions_and_the_man_page_have_every_command() {
    let man = trainplan(["man"]).stdout;
    for shell in ["bash", "zsh", "fish"] {
        let completions = trainplan(["completions", shell]).stdout;
        for command in [
            "recipes", "flops", "metrics", "estimate", "launch", "run", "jobs", "doctor", "connect", "parse",
            "compare", "import", "results", "export", "reparse", "check", "serve", "token", "upload",
            "licenses",
        ] {
            assert!(completions.contains(command) && man.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn an_address_in_use_is_reported_with_a_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let run = trainplan(["serve", "--listen", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("is in use") && run.stderr.contains("--listen"), "{}", run.stderr);
}
