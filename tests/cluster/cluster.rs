//! Starts and ends the cluster, and causes faults in it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};
use trainplan_tests::{Run, run_of};

/// The properties of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    /// Number of nodes, with eight GPUs each.
    pub(crate) nodes: u16,
    /// Whether slurmdbd runs, so that `sacct` works.
    pub(crate) accounting: bool,
    /// Further lines of slurm.conf, such as `MinJobAge=2`.
    pub(crate) slurm_conf: &'a [&'a str],
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { nodes: 64, accounting: false, slurm_conf: &[] }
    }
}

/// A daemon that can fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Daemon {
    /// Includes the processes of its connections.
    Sshd,
    Slurmctld,
    /// Only with accounting.
    Slurmdbd,
    /// slurmd of the node with this number, counted from 1.
    Node(u16),
}

impl fmt::Display for Daemon {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sshd => formatter.write_str("sshd"),
            Self::Slurmctld => formatter.write_str("slurmctld"),
            Self::Slurmdbd => formatter.write_str("slurmdbd"),
            Self::Node(number) => write!(formatter, "n{number}"),
        }
    }
}

/// Waits for a value.
pub(crate) fn wait_for<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < limit, "no {what} within {limit:?}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// A running cluster. It ends when this value is dropped or this process ends.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    keeper: Child,
    /// The keeper's standard input, which keeps it alive, and its answers.
    line: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    /// Listens on the port before the cluster's ports, which reserves them.
    _claim: TcpListener,
}

impl Cluster {
    /// Starts a cluster, and waits until all its nodes are idle.
    pub(crate) fn start(options: &Options) -> Self {
        // Paths of sockets are limited to about 100 characters.
        let folder = tempfile::Builder::new().prefix("loop.").tempdir_in("/tmp").unwrap().keep();
        let extra: String = options.slurm_conf.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.join("extra.conf"), extra).unwrap();
        // For JobSubmitPlugins=lua: a site that replaces the comments of jobs.
        let plugin = "function slurm_job_submit(job, partitions, uid)\n  job.comment = \"of the site\"\n  return \
                      slurm.SUCCESS\nend\nfunction slurm_job_modify(job, record, partitions, uid)\n  return \
                      slurm.SUCCESS\nend\n";
        fs::write(folder.join("job_submit.lua"), plugin).unwrap();
        let (claim, port) = claim_ports(options.nodes);
        let mut keeper = Command::new("bash")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/cluster/keeper.sh"))
            .arg(&folder)
            .args([port.to_string(), options.nodes.to_string()])
            .arg(if options.accounting { "yes" } else { "no" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0) // Ctrl-C is for the tests; the keeper sees them end, and cleans up
            .spawn()
            .unwrap();
        let line = (keeper.stdin.take().unwrap(), BufReader::new(keeper.stdout.take().unwrap()));
        let cluster = Self { folder, keeper, line: Mutex::new(Some(line)), _claim: claim };
        assert_eq!(cluster.answer(None), "ready");
        cluster
    }

    /// Sends the keeper a command, if given, and waits for the next answer.
    fn answer(&self, command: Option<&str>) -> String {
        let mut line = self.line.lock().unwrap();
        let (commands, answers) = line.as_mut().unwrap();
        if let Some(command) = command {
            writeln!(commands, "{command}").unwrap();
        }
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    fn order(&self, command: &str) {
        assert_eq!(self.answer(Some(command)), "ok", "{command}");
    }

    /// Returns the cluster's folder. The home directory of root is `home` in it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a configuration for `ssh -F`. The cluster is `loop` and, behind a jump host, `far`.
    pub(crate) fn ssh_config(&self) -> PathBuf {
        self.folder.join("ssh/config")
    }

    /// Returns an ssh command with that configuration in batch mode.
    pub(crate) fn ssh(&self) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.ssh_config()).args(["-o", "BatchMode=yes"]).stdin(Stdio::null());
        ssh
    }

    /// Runs a shell command on the login node.
    pub(crate) fn run(&self, command: &str) -> Run {
        run_of(&self.ssh().args(["loop", command]).output().unwrap())
    }

    /// Returns the output of a command that must succeed, without the last line break.
    pub(crate) fn text(&self, command: &str) -> String {
        let run = self.run(command);
        assert_eq!(run.code, Some(0), "{command}: {}{}", run.stdout, run.stderr);
        run.stdout.trim_end().to_owned()
    }

    /// Suspends a daemon: its clients wait, as if the network were down.
    pub(crate) fn freeze(&self, daemon: Daemon) {
        self.order(&format!("freeze {daemon}"));
    }

    /// Resumes a frozen daemon.
    pub(crate) fn thaw(&self, daemon: Daemon) {
        self.order(&format!("thaw {daemon}"));
    }

    /// Ends a daemon: connections to it are refused. Running jobs and commands go on.
    pub(crate) fn stop(&self, daemon: Daemon) {
        self.order(&format!("stop {daemon}"));
    }

    /// Starts a stopped daemon and waits until it answers.
    pub(crate) fn start_again(&self, daemon: Daemon) {
        self.order(&format!("start {daemon}"));
    }

    /// Changes the login shell of root.
    pub(crate) fn login_shell(&self, program: &str) {
        self.order(&format!("shell {program}"));
    }

    /// Kills all connections at the cluster's end. New ones are accepted.
    pub(crate) fn hang_up(&self) {
        self.order("hang-up");
    }

    /// Kills the ssh master of this socket (`ControlPath`). The socket stays.
    pub(crate) fn kill_ssh_master(&self, socket: &Path) {
        let output = self.ssh().arg("-S").arg(socket).args(["-O", "check", "loop"]).output().unwrap();
        let said = run_of(&output).stderr;
        let process = said.split("pid=").nth(1).and_then(|rest| rest.split(')').next());
        let process = process.unwrap_or_else(|| panic!("no master: {said}"));
        assert!(Command::new("kill").args(["-KILL", process]).status().unwrap().success());
    }

    /// Returns the process id of the keeper. Without it the cluster ends.
    pub(crate) fn keeper(&self) -> u32 {
        self.keeper.id()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // When its standard input closes, the keeper and all processes of the cluster end.
        drop(self.line.lock().map(|mut line| line.take()));
        drop(self.keeper.wait());
    }
}

/// Reserves consecutive ports for a cluster, below the range that the system assigns to clients.
fn claim_ports(nodes: u16) -> (TcpListener, u16) {
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    (16_000..32_000)
        .step_by(100)
        .find_map(|start: u16| {
            let claim = TcpListener::bind(("127.0.0.1", start)).ok()?;
            (start + 1..start + 4 + nodes).all(is_free).then_some((claim, start + 1))
        })
        .unwrap()
}
