//! `trainplan doctor`, and the errors for a cluster that can't be reached.

use crate::cluster::wait_for;
use crate::{Cluster, Daemon, Options, Site};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trainplan_tests::{Run, binary, run_of};

const SMALL: Options = Options { nodes: 2, accounting: false, slurm_conf: &[] };

/// A user: a home directory with an ssh configuration and cluster profiles.
pub(crate) struct Person {
    home: PathBuf,
}

impl Person {
    /// Returns a user who can log in to the cluster.
    pub(crate) fn of(cluster: &Cluster, profile: &str) -> Self {
        let home = cluster.folder().join("person");
        fs::create_dir_all(home.join(".ssh")).unwrap();
        fs::create_dir_all(home.join("run")).unwrap();
        fs::copy(cluster.ssh_config(), home.join(".ssh/config")).unwrap();
        let profiles = format!("version = 1\n[cluster.alpha]\nssh = \"loop\"\n{profile}");
        fs::write(home.join("clusters.toml"), profiles).unwrap();
        Self { home }
    }

    /// Returns a trainplan command of this user.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).arg("--clusters").arg(self.home.join("clusters.toml"));
        command.env("HOME", &self.home).env("XDG_RUNTIME_DIR", self.home.join("run")).stdin(Stdio::null());
        command
    }

    pub(crate) fn runs(&self, arguments: &[&str]) -> Run {
        run_of(&self.command(arguments).output().unwrap())
    }

    fn doctor(&self) -> Report {
        self.doctor_with(&[])
    }

    /// Runs `trainplan doctor` with additional arguments.
    fn doctor_with(&self, more: &[&str]) -> Report {
        let run = self.runs(&[&["doctor", "--cluster", "alpha", "--format", "json"][..], more].concat());
        let value: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
        Report { run, findings: value["findings"].as_array().unwrap().clone() }
    }

    /// Waits until the user's connections are closed, shortly after their commands.
    pub(crate) fn has_left(&self) {
        wait_for("end of the connection", Duration::from_secs(15), || {
            self.leftovers().is_empty().then_some(())
        });
    }

    /// Returns the processes and sockets of the user's connections.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let ours = self.home.to_str().unwrap();
        let line = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).ok();
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| line(entry.unwrap()));
        let sockets = fs::read_dir(self.home.join("run/trainplan")).into_iter().flatten();
        let sockets = sockets.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        processes
            .filter(|line| line.starts_with("ssh") && line.contains(ours))
            .chain(sockets.filter(|name| !name.starts_with("config")))
            .collect()
    }
}

struct Report {
    run: Run,
    findings: Vec<Value>,
}

impl Report {
    /// Returns the verdict of a check and what was found.
    fn of(&self, check: &str) -> (&str, &str) {
        let finding = self.findings.iter().find(|finding| finding["check"] == check);
        let finding = finding.unwrap_or_else(|| panic!("no {check}: {}", self.run.stdout));
        (finding["verdict"].as_str().unwrap(), finding["seen"].as_str().unwrap())
    }

    fn all_but_ok(&self) -> Vec<&str> {
        let bad = self.findings.iter().filter(|finding| finding["verdict"] != "ok");
        bad.map(|finding| finding["check"].as_str().unwrap()).collect()
    }
}

fn profile(site: &Site) -> String {
    let top = |release| site.top(release).display().to_string();
    format!(
        "account = \"{}\"\npartition = \"{}\"\n\
         [cluster.alpha.release.\"24.11\"]\ninstall-path = \"{}\"\n\
         [cluster.alpha.release.\"25.04\"]\ninstall-path = \"{}\"\nrecipe-dir = {{ \"llama3.1\" = \"{}\" }}\n\
         [cluster.alpha.release.\"25.12\"]\ninstall-path = \"{}\"\n\
         [cluster.alpha.release.\"26.06.01\"]\ninstall-path = \"{}\"\n",
        Site::ACCOUNT,
        Site::PARTITION,
        top("24.11"),
        top("25.04"),
        site.recipe("25.04", "llama3.1").display(),
        top("25.12"),
        top("26.06.01"),
    )
}

#[test]
#[ignore = "needs root and Slurm"]
fn doctor_finds_no_problem_on_a_healthy_cluster() {
    let cluster = Cluster::start(&Options { accounting: true, ..SMALL });
    let site = Site::install(&cluster, &[]);
    let person = Person::of(&cluster, &profile(&site));
    let start = Instant::now();
    let table = person.runs(&["doctor", "--cluster", "alpha", "--format", "table"]);
    println!("{}{}took {:?}", table.stdout, table.stderr, start.elapsed());
    let report = person.doctor();
    assert_eq!(report.run.code, Some(0), "{}", report.run.stderr);
    assert_eq!(report.of("partition"), ("ok", "batch: up, 2 nodes, jobs up to any length"));
    assert_eq!(report.of("GPUs"), ("ok", "gpu:8 per node"));
    assert_eq!(report.of("accounting").0, "ok");
    assert!(report.of("release 25.04").1.contains("launch.sh for llama3.1"));
    assert!(report.of("release 25.12").1.contains("launch.sh in llmb_repo/nemotron4-340b"));
    assert!(report.of("release 26.06.01").1.contains("llmb_repo/gpt-oss/pretrain, llmb_repo/qwen3/pretrain"));
    assert_eq!(report.of("comments"), ("ok", "kept by a held job, which was cancelled"));
    assert_eq!(report.run.stderr, "");
    assert_eq!(cluster.text("squeue --noheader"), "");
    person.has_left();
}

#[test]
#[ignore = "needs root and Slurm"]
fn doctor_says_that_a_site_replaces_comments() {
    let cluster = Cluster::start(&Options { slurm_conf: &["JobSubmitPlugins=lua"], ..SMALL });
    let report = Person::of(&cluster, "").doctor();
    assert_eq!(report.of("comments"), ("warning", "a held job got the comment \"of the site\""));
    assert_eq!(cluster.text("squeue --noheader"), "");
    let table = Person::of(&cluster, "account = \"none\"\npartition = \"nowhere\"\n").doctor();
    assert!(
        table.of("comments").1.starts_with("can't be tested, because Slurm refused"),
        "{}",
        table.run.stdout
    );
}

#[test]
#[ignore = "needs root and Slurm"]
fn doctor_reports_problems() {
    let cluster = Cluster::start(&Options { slurm_conf: &["MinJobAge=5"], ..SMALL });
    let wrong = "partition = \"bach\"\ngpus-per-node = \"4\"\n[cluster.alpha.release.\"25.12\"]\ninstall-path = \"/nowhere\"\n\
                 [cluster.alpha.megatron-lm]\ninstall-path = \"/tmp\"\ncontainer-image = \"/lustre/nemo.sqsh\"\n";
    let person = Person::of(&cluster, wrong);
    let table = person.runs(&["doctor", "--cluster", "alpha", "--format", "table"]);
    println!("{}{}", table.stdout, table.stderr);
    let report = person.doctor();
    assert_eq!(report.run.code, Some(1), "{}", report.run.stderr);
    assert!(report.of("partition").0 == "problem" && report.of("partition").1.contains("bach"));
    assert_eq!(report.of("release 25.12"), ("problem", "not found: /nowhere"));
    assert_eq!(report.of("Megatron-LM"), ("problem", "not found: /lustre/nemo.sqsh"));
    assert_eq!(report.of("accounting"), ("warning", "Slurm accounting storage is disabled"));
    assert_eq!(report.of("job history").0, "warning");

    let person = Person::of(&cluster, "gpus-per-node = \"4\"\n");
    let report = person.doctor();
    assert_eq!(report.run.code, Some(0), "{}", report.run.stderr);
    assert!(report.of("partition").1.starts_with("batch (the default): up"));
    assert_eq!(report.of("GPUs"), ("warning", "gpu:8 per node"));

    cluster.freeze(Daemon::Slurmctld);
    let start = Instant::now();
    let report = person.doctor();
    println!("slurmctld frozen: {:?} after {:?}", report.of("slurmctld"), start.elapsed());
    assert_eq!((report.run.code, report.of("slurmctld").0), (Some(1), "problem"), "{}", report.run.stdout);
    cluster.thaw(Daemon::Slurmctld);

    cluster.stop(Daemon::Slurmctld);
    let report = person.doctor();
    assert_eq!((report.run.code, report.of("slurmctld").0), (Some(1), "problem"), "{}", report.run.stdout);
    println!("slurmctld stopped: {:?}", report.of("slurmctld"));
}

/// Makes a program that jobs find in their PATH.
fn stand_in(cluster: &Cluster, name: &str, script: &str) {
    let path = cluster.folder().join("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
#[ignore = "needs root and Slurm"]
fn doctor_checks_the_gpus_of_nodes_in_a_job() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "gpu = \"h100\"\n");
    let report = person.doctor_with(&["--check-gpus"]);
    assert_eq!(report.run.code, Some(1), "{}", report.run.stderr);
    let (verdict, seen) = report.of("nvidia-smi");
    assert!(verdict == "problem" && seen.ends_with(": not found"), "{}", report.run.stdout);

    // A driver that knows only the old name of a field, and perhaps a hot GPU with a lower power limit.
    let nvidia_smi = |faulty: &str| {
        let script = "case $1 in *event_reasons*) echo 'Field \"clocks_event_reasons.active\" is not a valid field to query.'; exit 2 ;; esac\n\
             for gpu in 0 1 2 3 4 5 6 7; do\n\
             power=700.00 reasons=0x0000000000000001\n\
             [ $SLURMD_NODENAME/$gpu != FAULTY ] || { power=500.00 reasons=0x0000000000000040; }\n\
             echo \"$gpu, NVIDIA H100 80GB HBM3, 345, 1980, $power, 700.00, 31, 4, 81559, 0, $reasons\"\n\
             done\n";
        stand_in(&cluster, "nvidia-smi", &script.replace("FAULTY", faulty));
    };
    nvidia_smi("none");
    let report = person.doctor_with(&["--check-gpus"]);
    assert_eq!(report.run.code, Some(0), "{}", report.run.stdout);
    assert_eq!(report.all_but_ok(), ["accounting"], "{}", report.run.stdout);
    assert_eq!(report.of("GPU count"), ("ok", "8 per node"));
    assert!(report.of("all-reduce").1.starts_with("not measured"), "{}", report.run.stdout);

    stand_in(
        &cluster,
        "all_reduce_perf",
        "[ \"$*\" = '-b 1G -e 1G -g 8' ] || exit 1\n\
         case $SLURMD_NODENAME in n1) rate=445.6 ;; *) rate=210 ;; esac\n\
         printf '# Out of bounds values : 0 OK\\n# Avg bus bandwidth    : %s\\n#\\n' $rate\n",
    );
    nvidia_smi("n2/3");
    let report = person.doctor_with(&["--check-gpus", "--nodes", "2"]);
    assert_eq!(report.of("GPU job").1, "ran on n1, n2");
    assert_eq!(report.of("GPU power"), ("warning", "n2 GPU 3: limit of 500 instead of 700 W"));
    let seen = "n2 GPU 3: hardware thermal slowdown at 31 °C, 345 MHz";
    assert_eq!(report.of("GPU slowdown"), ("warning", seen));
    assert_eq!(report.of("all-reduce"), ("warning", "n2: 210 GB/s"));
    assert_eq!(cluster.text("squeue --noheader; ls ~/.trainplan/probes"), "");
    person.has_left();
}

#[test]
#[ignore = "needs root and Slurm"]
fn doctor_cancels_its_job_when_it_is_interrupted() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "gpus-per-node = \"8\"\n");
    let other = cluster.text("sbatch --parsable --nodes=2 --gres=gpu:8 --wrap='sleep 600'");
    let mut command = person.command(&["doctor", "--cluster", "alpha", "--check-gpus"]);
    let mut doctor = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(doctor.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("The job waits in the queue.")));
    assert!(Command::new("kill").args(["-INT", &doctor.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.contains("interrupted, and its job cancelled")), "{rest:?}");
    assert_eq!(doctor.wait().unwrap().code(), Some(2));
    assert_eq!(cluster.text("squeue --noheader --format=%A"), other);
    person.has_left();
}

/// csh and fish parse command lines differently from sh, and many rc files print text.
#[test]
#[ignore = "needs root, Slurm, tcsh and fish"]
fn doctor_works_with_every_login_shell() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "");
    let home = cluster.folder().join("home");
    fs::create_dir_all(home.join(".config/fish")).unwrap();
    for (file, noise) in [
        (".bashrc", "echo welcome; echo noise >&2\n"),
        (".cshrc", "echo welcome\n"),
        (".config/fish/config.fish", "echo welcome\n"),
    ] {
        fs::write(home.join(file), noise).unwrap();
    }
    for shell in ["/bin/dash", "/bin/bash", "/bin/csh", "/usr/bin/tcsh", "/usr/bin/fish"] {
        cluster.login_shell(shell);
        let report = person.doctor();
        assert!(report.of("system").1.ends_with(shell), "{}", report.of("system").1);
        assert_eq!(report.all_but_ok(), ["accounting"], "{shell}: {}", report.run.stdout);
    }
    cluster.login_shell("/usr/sbin/nologin");
    let run = person.runs(&["doctor", "--cluster", "alpha"]);
    println!("{}", run.stderr);
    assert!(run.code == Some(5) && run.stderr.contains("not available"), "{}", run.stderr);
}

#[test]
#[ignore = "needs root and Slurm"]
fn doctor_reports_why_it_can_not_connect() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "");
    let doctor = ["doctor", "--cluster", "alpha"];
    let refused = |words: &[&str], limit: u64| {
        let start = Instant::now();
        let run = person.runs(&doctor);
        println!("{:?}: {}", start.elapsed(), run.stderr);
        assert_eq!((run.code, run.stdout.as_str()), (Some(5), ""), "{}", run.stderr);
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{}", run.stderr);
        assert!(start.elapsed() < Duration::from_secs(limit), "{:?}", start.elapsed());
        person.has_left();
    };
    cluster.stop(Daemon::Sshd);
    refused(&["loop: ", "Connection refused"], 2);
    cluster.start_again(Daemon::Sshd);

    cluster.freeze(Daemon::Sshd);
    refused(&["loop: ", "timed out"], 20);
    cluster.thaw(Daemon::Sshd);

    let known = cluster.folder().join("ssh/known_hosts");
    let right = fs::read_to_string(&known).unwrap();
    fs::write(&known, "").unwrap();
    refused(&["not in your known_hosts", "trainplan connect --cluster alpha"], 2);
    let other = fs::read_to_string(cluster.folder().join("ssh/user.pub")).unwrap();
    let port = right.split(' ').next().unwrap();
    let other: Vec<&str> = other.split(' ').take(2).collect();
    fs::write(&known, format!("{port} {}\n", other.join(" "))).unwrap();
    refused(&["does not match the one in your known_hosts", "ssh-keygen -R"], 2);
    fs::write(&known, right).unwrap();

    let keys = cluster.folder().join("ssh/authorized_keys");
    let key = fs::read_to_string(&keys).unwrap();
    fs::write(&keys, "").unwrap();
    refused(&["Permission denied", "trainplan connect --cluster alpha", "ssh-add"], 5);
    fs::write(&keys, key).unwrap();

    let directory = cluster.folder().join("person/run/trainplan");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    refused(&["not a directory that only you can use"], 2);
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(person.runs(&doctor).code, Some(0));
}
