//! The files of `deploy/`, and what docs/serving.md says, against the program and the tools that read them.

use std::fs;
use std::path::Path;
use std::process::Command;
use trainplan_tests::trainplan;

/// The flags after the name of a command, in every line of a text that runs it.
fn flags<'a>(text: &'a str, command: &str) -> Vec<&'a str> {
    let arguments = text.lines().filter_map(|line| line.split_once(command)).map(|(_, rest)| rest);
    let words = arguments.flat_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-'));
    words.filter(|word| word.starts_with("--")).collect()
}

#[test]
fn every_flag_that_is_shown_is_there() {
    let shown = [
        include_str!("../../docs/serving.md"),
        include_str!("../../deploy/Dockerfile"),
        include_str!("../../deploy/compose.yaml"),
        include_str!("../../deploy/systemd/trainplan.service"),
        include_str!("../../deploy/systemd/trainplan-run@.service"),
        include_str!("../../deploy/systemd/trainplan-verify.service"),
    ]
    .join("\n");
    // The compose file, the image and the table of options name no program.
    let serve =
        ["trainplan serve", "    serve ", "CMD [\"serve\"", "| `"].map(|before| flags(&shown, before));
    assert!(serve.iter().all(|flags| !flags.is_empty()), "{serve:?}");
    let token = |verb| flags(&shown, &format!("trainplan token {verb}"));
    for (command, flags) in [
        (vec!["serve"], serve.concat()),
        (vec!["token", "create"], token("create")),
        (vec!["token", "list"], token("list")),
        (vec!["token", "revoke"], token("revoke")),
        (vec!["upload"], flags(&shown, "trainplan upload")),
        (vec!["run"], flags(&shown, "trainplan run /")),
        (vec!["verify-store"], flags(&shown, "trainplan verify-store")),
    ] {
        let help = trainplan(command.iter().chain(&["--help"]));
        assert_eq!(help.code, Some(0), "{command:?}");
        assert!(!flags.is_empty(), "{command:?}");
        for flag in flags {
            assert!(help.stdout.split_whitespace().any(|word| word == flag), "{command:?}: {flag}");
        }
    }
}

#[test]
fn the_guide_names_the_folder_and_every_file_that_the_units_read() {
    let guide = include_str!("../../docs/serving.md");
    let units = [
        include_str!("../../deploy/systemd/trainplan.service"),
        include_str!("../../deploy/systemd/trainplan-run@.service"),
        include_str!("../../deploy/systemd/trainplan-verify.service"),
    ];
    let files =
        units.iter().flat_map(|unit| unit.lines()).filter_map(|line| line.strip_prefix("EnvironmentFile=-"));
    let files: Vec<String> = files.map(|file| file.replace("%i", "NAME")).collect();
    assert_eq!(files.len(), 3);
    for file in files {
        assert!(guide.contains(&format!("`{file}`")), "{file}");
    }
    // Once, with one mode, and after the group exists.
    let created: Vec<_> = guide.match_indices("install -d ").collect();
    let folder = "install -d -m 750 -g trainplan /etc/trainplan";
    assert_eq!(created.len(), 1);
    assert!(
        guide[created[0].0..].starts_with(folder) && include_str!("../../scripts/try-units").contains(folder)
    );
    assert!(guide.find("systemd-sysusers &&").is_some_and(|users| users < created[0].0));
}

#[test]
fn systemd_understands_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return; // another system
    }
    // As they are installed, beside a program of that name and systemd's own units.
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    for folder in ["etc/systemd/system/trainplan.service.d", "usr/local/bin", "usr/lib/systemd"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    fs::copy("/bin/true", at("usr/local/bin/trainplan")).unwrap();
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/systemd");
    for unit in [
        "trainplan.service",
        "trainplan-run@.service",
        "trainplan-run@.timer",
        "trainplan-verify.service",
        "trainplan-verify.timer",
    ] {
        fs::copy(units.join(unit), at("etc/systemd/system").join(unit)).unwrap();
    }
    fs::copy(units.join("postgres.conf"), at("etc/systemd/system/trainplan.service.d/postgres.conf"))
        .unwrap();
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no", "--root"])
        .arg(root.path())
        .args(["trainplan.service", "trainplan-run@nightly.service", "trainplan-run@nightly.timer"])
        .args(["trainplan-verify.service", "trainplan-verify.timer"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verify.stderr);
    assert!(verify.status.success() && said.is_empty(), "{said}");
}
