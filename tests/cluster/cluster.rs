//! The cluster: its start, its end, its faults.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};
use trainplan_tests::{Run, run_of};

/// What a cluster is started with.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    /// Nodes of eight GPUs each.
    pub(crate) nodes: u16,
    /// Whether jobs are kept by slurmdbd, so that `sacct` answers.
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
    /// With all its connections.
    Sshd,
    Slurmctld,
    /// Only with accounting.
    Slurmdbd,
    /// slurmd of the node of this number, from 1.
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

/// Waits until something is there.
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

/// A running cluster. It ends with this value, or with this process, however that ends.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    keeper: Child,
    /// The keeper's standard input, which it lives by, and its answers.
    line: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    /// The port before the cluster's own ones: who listens there may use those.
    _claim: TcpListener,
}

impl Cluster {
    /// Starts a cluster, and waits until all its nodes are idle.
    pub(crate) fn start(options: &Options) -> Self {
        // The path stays short: a socket's may not have more than some 100 characters.
        let folder = tempfile::Builder::new().prefix("loop.").tempdir_in("/tmp").unwrap().keep();
        let extra: String = options.slurm_conf.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.join("extra.conf"), extra).unwrap();
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

    /// Sends the keeper a command, if there is one, and waits for its answer.
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

    /// The folder that holds all there is of the cluster; root's home is `home` in it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// An ssh client's configuration, for `ssh -F`. The cluster is `loop`, and, behind a jump host, `far`.
    pub(crate) fn ssh_config(&self) -> PathBuf {
        self.folder.join("ssh/config")
    }

    /// ssh with that configuration, to which a command or options can be added. It asks nothing.
    pub(crate) fn ssh(&self) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.ssh_config()).args(["-o", "BatchMode=yes"]).stdin(Stdio::null());
        ssh
    }

    /// Runs a shell's command on the login node.
    pub(crate) fn run(&self, command: &str) -> Run {
        run_of(&self.ssh().args(["loop", command]).output().unwrap())
    }

    /// What a command that must succeed prints, without the last line's end.
    pub(crate) fn text(&self, command: &str) -> String {
        let run = self.run(command);
        assert_eq!(run.code, Some(0), "{command}: {}{}", run.stdout, run.stderr);
        run.stdout.trim_end().to_owned()
    }

    /// Stops the processes of a daemon where they are: who talks to it waits, as when the network is gone.
    pub(crate) fn freeze(&self, daemon: Daemon) {
        self.order(&format!("freeze {daemon}"));
    }

    /// Has a frozen daemon go on.
    pub(crate) fn thaw(&self, daemon: Daemon) {
        self.order(&format!("thaw {daemon}"));
    }

    /// Ends a daemon: who talks to it is refused. Jobs and commands that run go on.
    pub(crate) fn stop(&self, daemon: Daemon) {
        self.order(&format!("stop {daemon}"));
    }

    /// Starts a daemon that was stopped, and waits until it answers.
    pub(crate) fn start_again(&self, daemon: Daemon) {
        self.order(&format!("start {daemon}"));
    }

    /// Gives root another login shell.
    pub(crate) fn login_shell(&self, program: &str) {
        self.order(&format!("shell {program}"));
    }

    /// Kills every connection at the cluster's end; new ones are taken.
    pub(crate) fn hang_up(&self) {
        self.order("hang-up");
    }

    /// Kills, at our end, the ssh that shares its connection over this socket (`ControlPath`). The socket stays.
    pub(crate) fn kill_ssh_master(&self, socket: &Path) {
        let output = self.ssh().arg("-S").arg(socket).args(["-O", "check", "loop"]).output().unwrap();
        let said = run_of(&output).stderr;
        let process = said.split("pid=").nth(1).and_then(|rest| rest.split(')').next());
        let process = process.unwrap_or_else(|| panic!("no master: {said}"));
        assert!(Command::new("kill").args(["-KILL", process]).status().unwrap().success());
    }

    /// The process of the keeper, in whose absence all ends.
    pub(crate) fn keeper(&self) -> u32 {
        self.keeper.id()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Without its standard input the keeper ends, and with it all the cluster's processes.
        drop(self.line.lock().map(|mut line| line.take()));
        drop(self.keeper.wait());
    }
}

/// Finds ports for a cluster in a row. Each cluster, of this process or another, has a stretch of its own, below those
/// that the system gives to clients.
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
