//! What commands print on terminals of several widths, by `script` of util-linux.

use std::process::{Command, Stdio};
use trainplan_tests::{binary, trainplan};

const SEARCH: &str = "search --model llama3.1-70b --gpu h100,b200 --gpus 1024 --tokens 10T";

/// Returns what a shell command prints on a terminal of this width. `$TRAINPLAN` is the binary.
pub(crate) fn on_terminal(columns: usize, command: &str) -> String {
    let output = Command::new("script")
        .args(["-qec", &format!("stty cols {columns}; {command}"), "/dev/null"])
        .env("TRAINPLAN", binary())
        .env("SHELL", "/bin/sh")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

/// Returns the stdout of a command on a terminal of this width.
fn stdout(columns: usize, arguments: &str) -> String {
    on_terminal(columns, &format!("\"$TRAINPLAN\" {arguments} 2>/dev/null"))
}

/// Checks that no line is wider, except for commands, which are pasted as a whole.
fn check_width(columns: usize, text: &str) {
    assert!(text.lines().count() > 2, "{text}");
    for line in text.lines().filter(|line| !line.contains(": trainplan ")) {
        assert!(line.chars().count() <= columns, "{line}");
    }
}

#[test]
fn tables_and_sentences_fit_into_80_columns() {
    for arguments in [
        "recipes",
        "recipes --model llama3.1-405b --measured",
        "models",
        "gpus",
        "stacks",
        "stacks nemo-2",
        "flops --recipe llama3.1-70b/h100/fp8/256@25.04",
        "metrics --recipe llama3.1-70b/h100/fp8/256@25.04",
        "estimate --recipe llama3.1-405b/h100/fp8/512@25.04 --tokens 15T",
        SEARCH,
        "search --model deepseek-v3 --gpu h100 --gpus 1024",
        "licenses",
    ] {
        check_width(80, &stdout(80, arguments));
    }
}

#[test]
fn a_narrow_terminal_keeps_the_most_important_columns_and_names_the_others() {
    let narrow = on_terminal(80, &format!("\"$TRAINPLAN\" {SEARCH} 2>&1"));
    let header = |text: &str| text.lines().find(|line| line.starts_with(" GPU ")).map(str::to_owned).unwrap();
    for (title, is_kept) in [("GPUs", true), ("days", true), ("cost", true), ("spare GiB", false)] {
        assert_eq!(header(&narrow).contains(title), is_kept, "{title}: {narrow}");
    }
    let note = narrow.lines().find(|line| line.starts_with("note: no room for ")).unwrap();
    assert!(note.contains("spare GiB") && note.ends_with("use a wider terminal"), "{note}");
    // A variable overrides the width that the terminal reports.
    let typed = on_terminal(1000, &format!("COLUMNS=80 \"$TRAINPLAN\" {SEARCH} 2>/dev/null"));
    assert_eq!(typed, stdout(80, SEARCH));
}

#[test]
fn a_file_or_a_wide_terminal_gets_every_column() {
    for arguments in ["recipes", "gpus", SEARCH] {
        let piped = trainplan(arguments.split(' ').chain(["--format", "table"])).stdout;
        assert_eq!(stdout(1000, arguments), piped, "{arguments}");
    }
    let piped = trainplan(SEARCH.split(' ').chain(["--format", "table"])).stdout;
    assert!(piped.contains("spare GiB") && piped.contains("confidence"), "{piped}");
}
