//! The connection of `trainplan connect`, which other commands use.

use crate::doctor::Person;
use crate::{Cluster, Daemon, Options};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use trainplan_tests::{Run, run_of};

const SMALL: Options = Options { nodes: 2, accounting: false, slurm_conf: &[] };
const DOCTOR: [&str; 3] = ["doctor", "--cluster", "alpha"];

/// Protects the user's key with a passphrase, which ssh asks for like a second factor.
fn lock_key(cluster: &Cluster) {
    let key = cluster.folder().join("ssh/user");
    let keygen =
        Command::new("ssh-keygen").args(["-q", "-p", "-P", "", "-N", "open sesame", "-f"]).arg(key).status();
    assert!(keygen.unwrap().success());
}

/// Runs `trainplan connect` and answers ssh's questions.
fn connect(person: &Person, folder: &Path, more: &[&str]) -> Run {
    let asked = folder.join("asked");
    let answers = folder.join("answers");
    let script = format!(
        "#!/bin/sh\necho \"$1\" >>'{}'\ncase $1 in *fingerprint*) echo yes ;; *) echo open sesame ;; esac\n",
        asked.display()
    );
    fs::write(&answers, script).unwrap();
    fs::set_permissions(&answers, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = person.command(&[&["connect", "--cluster", "alpha"], more].concat());
    command.env("SSH_ASKPASS", answers).env("SSH_ASKPASS_REQUIRE", "force");
    run_of(&command.output().unwrap())
}

#[test]
#[ignore = "needs root and Slurm"]
fn all_commands_use_the_connection_of_connect() {
    let cluster = Cluster::start(&SMALL);
    let folder = cluster.folder();
    let person = Person::of(&cluster, "");
    lock_key(&cluster);
    fs::write(folder.join("ssh/known_hosts"), "").unwrap();
    let refused = person.runs(&DOCTOR);
    assert!(refused.code == Some(5) && refused.stderr.contains("trainplan connect --cluster alpha"));

    let connected = connect(&person, folder, &["--for", "1h"]);
    println!("{}", connected.stderr);
    assert_eq!(connected.code, Some(0), "{}", connected.stderr);
    let asked = fs::read_to_string(folder.join("asked")).unwrap();
    assert!(asked.contains("SHA256:") && asked.contains("passphrase"), "{asked}");
    assert_eq!(person.leftovers().len(), 2, "{:?}", person.leftovers());
    for _ in 0..2 {
        let run = person.runs(&DOCTOR);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    assert!(connect(&person, folder, &[]).stderr.contains("is already connected"));
    assert_eq!(fs::read_to_string(folder.join("asked")).unwrap(), asked, "no question was asked again");

    // A frozen host is noticed, and the connection is given up.
    cluster.freeze(Daemon::Sshd);
    let start = Instant::now();
    let run = person.runs(&DOCTOR);
    println!("{:?}: {}", start.elapsed(), run.stderr);
    assert!(run.code == Some(5) && start.elapsed() < Duration::from_secs(22), "{}", run.stderr);
    person.has_left();
    cluster.thaw(Daemon::Sshd);
    let run = person.runs(&DOCTOR);
    assert!(run.code == Some(5) && run.stderr.contains("Permission denied"), "{}", run.stderr);

    assert_eq!(connect(&person, folder, &[]).code, Some(0));
    assert_eq!(person.runs(&DOCTOR).code, Some(0));
    let closed = connect(&person, folder, &["--close"]);
    assert!(closed.code == Some(0) && closed.stderr.contains("is closed"), "{}", closed.stderr);
    person.has_left();
    let closed = connect(&person, folder, &["--close"]);
    assert!(closed.code == Some(0) && closed.stderr.contains("No connection"), "{}", closed.stderr);

    cluster.stop(Daemon::Sshd);
    let failed = connect(&person, folder, &[]);
    assert!(failed.code == Some(5) && failed.stderr.contains("Connection refused"), "{}", failed.stderr);
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_master_of_the_users_ssh_is_used_and_stays_open() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "");
    let socket = cluster.folder().join("own");
    let config = cluster.folder().join("person/.ssh/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}Host loop\n  ControlPath {}\n", socket.display())).unwrap();
    let own = || {
        let status = cluster.ssh().args(["-M", "-N", "-f", "-S"]).arg(&socket).arg("loop").status().unwrap();
        assert!(status.success());
    };
    own();
    lock_key(&cluster);
    assert_eq!(person.runs(&DOCTOR).code, Some(0));
    assert!(socket.exists());
    assert_eq!(person.runs(&DOCTOR).code, Some(0));
    // The socket of a dead master does no harm.
    cluster.kill_ssh_master(&socket);
    let run = person.runs(&DOCTOR);
    assert!(run.code == Some(5) && run.stderr.contains("Permission denied"), "{}", run.stderr);
}

#[test]
#[ignore = "needs root and Slurm"]
fn jump_hosts_of_the_ssh_configuration_work() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "");
    let profiles = cluster.folder().join("person/clusters.toml");
    fs::write(&profiles, "version = 1\n[cluster.alpha]\nssh = \"far\"\n").unwrap();
    let start = Instant::now();
    let run = person.runs(&DOCTOR);
    println!("{:?}", start.elapsed());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    person.has_left();
    fs::write(cluster.folder().join("ssh/known_hosts"), "").unwrap();
    let run = person.runs(&DOCTOR);
    println!("{}", run.stderr);
    assert!(run.code == Some(5) && run.stderr.contains("known_hosts"), "{}", run.stderr);
}
