//! The help of every command, as a golden file each.

use crate::snapshots::GoldenFiles;
use std::process::Command;
use trainplan_tests::{binary, run_of};

fn help(command: &[String]) -> String {
    let output = Command::new(binary())
        .args(command)
        .arg("--help")
        .env_clear()
        .envs([("COLUMNS", "100"), ("NO_COLOR", "1"), ("HOME", "/home/user")])
        .output()
        .unwrap();
    let run = run_of(&output);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{command:?}");
    run.stdout
}

/// Returns the subcommands in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| line.starts_with("  "));
    // Descriptions are indented further.
    let names = list.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(String::from)
        .collect()
}

#[test]
fn golden_help() {
    let mut golden = GoldenFiles::new("help");
    let mut commands = vec![Vec::new()];
    while let Some(command) = commands.pop() {
        let text = help(&command);
        golden.check(&[vec!["trainplan".to_string()], command.clone()].concat().join("-"), &text);
        commands.extend(subcommands(&text).into_iter().map(|name| [command.clone(), vec![name]].concat()));
    }
    golden.finish();
}
