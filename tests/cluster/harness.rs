//! Tests of the test cluster: its features, its faults and its removal.

use crate::cluster::wait_for;
use crate::{Cluster, Daemon, Options};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(30);

/// A small cluster.
const SMALL: Options = Options { nodes: 2, accounting: false, slurm_conf: &[] };

/// Returns the processes with the cluster's folder in their command line.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let line = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).ok();
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| line(entry.unwrap()));
    lines.filter(|line| line.contains(folder)).collect()
}

/// Returns whether a process with this cluster's configuration in its environment exists.
fn is_served(folder: &Path) -> bool {
    let setting = format!("SLURM_CONF={}/slurm.conf", folder.display());
    let environment = |entry: fs::DirEntry| fs::read(entry.path().join("environ")).ok();
    fs::read_dir("/proc").unwrap().filter_map(|entry| environment(entry.unwrap())).any(|environment| {
        environment.split(|byte| *byte == 0).any(|variable| variable == setting.as_bytes())
    })
}

fn is_gone(folder: &Path) -> bool {
    !folder.exists() && !is_served(folder) && processes_of(folder).is_empty()
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_job_has_64_nodes_and_512_gpus() {
    let start = Instant::now();
    let cluster = Cluster::start(&Options::default());
    let started = start.elapsed();
    assert_eq!(cluster.text("sinfo --noheader --format='%D %T %G'"), "64 idle gpu:8");
    let gpus = "srun --nodes=64 --ntasks-per-node=1 --gres=gpu:8 sh -c 'echo $CUDA_VISIBLE_DEVICES' | sort | uniq -c";
    let start = Instant::now();
    assert_eq!(cluster.text(gpus).trim(), "64 0,1,2,3,4,5,6,7");
    println!("started in {started:?}; a job on all nodes took {:?}", start.elapsed());

    let job = cluster.text("sbatch --parsable --nodes=64 --gres=gpu:8 --comment=token --wrap='sleep 100'");
    let queue = format!("squeue --noheader --jobs={job} --format='%T %D %k'");
    wait_for("job", SOON, || (cluster.text(&queue) == "RUNNING 64 token").then_some(()));
    cluster.text(&format!("scancel {job}"));
    wait_for("end of the job", SOON, || cluster.text(&queue).is_empty().then_some(()));
    let refusal = cluster.run("sacct");
    assert_eq!((refusal.code, refusal.stderr.trim()), (Some(1), "Slurm accounting storage is disabled"));
}

#[test]
#[ignore = "needs root and Slurm"]
fn the_accounting_lists_finished_jobs() {
    let start = Instant::now();
    let cluster = Cluster::start(&Options { accounting: true, slurm_conf: &["MinJobAge=2"], ..SMALL });
    println!("started in {:?}", start.elapsed());
    let job = cluster.text("sbatch --parsable --comment=token --wrap='exit 3'");
    let account = format!("sacct --jobs={job} -X -n -P --format=JobIDRaw,State,ExitCode,Comment");
    let expected = format!("{job}|FAILED|3:0|token");
    wait_for("account of the job", SOON, || (cluster.text(&account) == expected).then_some(()));

    // slurmctld keeps its records until slurmdbd is back.
    cluster.stop(Daemon::Slurmdbd);
    let refusal = cluster.run(&account);
    assert_eq!(refusal.code, Some(1), "{}", refusal.stdout);
    let job = cluster.text("sbatch --parsable --comment=later --wrap=true");
    cluster.start_again(Daemon::Slurmdbd);
    let account = format!("sacct --jobs={job} -X -n -P --format=JobIDRaw,State,ExitCode,Comment");
    let expected = format!("{job}|COMPLETED|0:0|later");
    wait_for("account of the job", SOON, || (cluster.text(&account) == expected).then_some(()));
}

#[test]
#[ignore = "needs root and Slurm"]
fn commands_run_in_the_clusters_folders() {
    let cluster = Cluster::start(&SMALL);
    let folder = cluster.folder();
    cluster.text("touch ~/mine && mktemp >/dev/null && touch /run/mine");
    assert!(folder.join("home/mine").exists());
    assert_eq!(fs::read_dir(folder.join("tmp")).unwrap().count(), 1);
    assert!(!Path::new("/run/mine").exists());
    // The same behind a jump host.
    let through = cluster.ssh().args(["far", "ls"]).output().unwrap();
    assert_eq!(through.stdout, b"mine\n");
    // A changed host key is refused.
    fs::write(folder.join("ssh/known_hosts"), "").unwrap();
    let refusal = cluster.run("true");
    assert!(
        refusal.code == Some(255) && refusal.stderr.contains("Host key verification failed"),
        "{refusal:?}"
    );
}

#[test]
#[ignore = "needs root and Slurm"]
fn clients_of_a_frozen_sshd_wait() {
    let cluster = Cluster::start(&SMALL);
    let folder = cluster.folder();
    let mut session = cluster
        .ssh()
        .args(["loop", "sleep 1; touch ~/done; echo said"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("session", SOON, || cluster.text("pgrep -c '^sleep' || true").starts_with('1').then_some(()));
    cluster.freeze(Daemon::Sshd);
    // The command continues without its connection.
    wait_for("work", SOON, || folder.join("home/done").exists().then_some(()));
    let refused = cluster.ssh().args(["-o", "ConnectTimeout=1", "loop", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(255) && said.contains("timed out"), "{said}");
    assert!(session.try_wait().unwrap().is_none());
    cluster.thaw(Daemon::Sshd);
    assert_eq!(session.wait_with_output().unwrap().stdout, b"said\n");

    cluster.stop(Daemon::Sshd);
    let refused = cluster.run("true");
    assert!(refused.code == Some(255) && refused.stderr.contains("Connection refused"), "{}", refused.stderr);
    cluster.start_again(Daemon::Sshd);
    assert_eq!(cluster.text("echo back"), "back");
}

#[test]
#[ignore = "needs root and Slurm"]
fn connections_can_be_killed_at_either_end() {
    let cluster = Cluster::start(&SMALL);
    let socket = cluster.folder().join("master");
    let master = || {
        let status = cluster.ssh().args(["-M", "-N", "-f", "-S"]).arg(&socket).arg("loop").status().unwrap();
        assert!(status.success());
    };
    let shared = |command: &str| {
        let mut ssh = cluster.ssh();
        ssh.args(["-o", "ProxyCommand=false", "-S"]).arg(&socket).args(["loop", command]);
        ssh.output().unwrap().status.code()
    };
    master();
    assert_eq!(shared("exit 3"), Some(3));
    cluster.hang_up();
    wait_for("end of the master", SOON, || (!socket.exists()).then_some(()));
    assert_eq!(shared("true"), Some(255));

    master();
    assert_eq!(shared("exit 3"), Some(3));
    cluster.kill_ssh_master(&socket);
    wait_for("end of the master", SOON, || (shared("true") == Some(255)).then_some(()));
    assert!(socket.exists(), "a killed master leaves its socket");
    assert_eq!(cluster.text("echo new"), "new");
}

#[test]
#[ignore = "needs root and Slurm"]
fn jobs_outlive_slurmctld() {
    let cluster = Cluster::start(&SMALL);
    let job = cluster.text("sbatch --parsable --nodes=2 --wrap='sleep 3; touch ~/done'");
    let queue = format!("squeue --noheader --jobs={job} --format=%T");
    wait_for("job", SOON, || (cluster.text(&queue) == "RUNNING").then_some(()));
    cluster.stop(Daemon::Slurmctld);
    let refusal = cluster.run("timeout 3 squeue");
    assert_ne!(refusal.code, Some(0), "{}", refusal.stdout);
    wait_for("work", SOON, || cluster.folder().join("home/done").exists().then_some(()));
    cluster.start_again(Daemon::Slurmctld);
    // slurmstepd reports the end of the job when it tries again.
    let show = format!("scontrol show job {job} | grep -o JobState=.*");
    wait_for("end of the job", Duration::from_secs(90), || {
        cluster.text(&show).starts_with("JobState=COMPLETED").then_some(())
    });
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_node_can_fail_and_return() {
    let cluster = Cluster::start(&SMALL);
    let lost = "sinfo --noheader --nodes=n2 --format=%T";
    cluster.stop(Daemon::Node(2));
    cluster.text("scontrol update nodename=n2 state=down reason=test");
    assert_eq!(cluster.text(lost), "down");
    cluster.start_again(Daemon::Node(2));
    wait_for("node", SOON, || (cluster.text(lost) == "idle").then_some(()));
}

#[test]
#[ignore = "needs root and Slurm"]
fn the_cluster_leaves_nothing_behind() {
    let clusters = [Cluster::start(&SMALL), Cluster::start(&SMALL), Cluster::start(&SMALL)];
    for cluster in &clusters {
        cluster.text("sbatch --wrap='setsid sleep 1000'; nohup sleep 1000 >/dev/null 2>&1 &");
        assert_eq!(cluster.text("sinfo --noheader --format=%D"), "2", "each has its own");
    }
    let [first, second, third] = clusters;

    let folder = first.folder().to_owned();
    assert!(is_served(&folder));
    drop(first);
    assert!(is_gone(&folder), "{:?}", processes_of(&folder));

    let folder = second.folder().to_owned();
    let panicked = thread::spawn(move || {
        assert!(!is_served(second.folder()), "on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(is_gone(&folder), "{:?}", processes_of(&folder));

    // If the keeper is killed, all processes end; only the folder stays.
    let folder = third.folder().to_owned();
    let children = format!("/proc/{0}/task/{0}/children", third.keeper());
    let namespace = fs::read_to_string(children).unwrap();
    assert!(Command::new("kill").args(["-KILL", namespace.trim()]).status().unwrap().success());
    wait_for("end", SOON, || is_gone(&folder).then_some(()));
}
