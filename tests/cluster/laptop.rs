//! A user's machine: a home directory with an ssh configuration, cluster profiles and trainplan's data.

use crate::{Cluster, Site};
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use std::{fmt, fs};
use tempfile::TempDir;
use trainplan_tests::{Run, binary, run_of};

use crate::cluster::wait_for;

/// A user's machine. It shares nothing with the home directory of this one.
#[derive(Debug)]
pub(crate) struct Laptop {
    home: TempDir,
}

impl Laptop {
    /// Returns a machine with a profile for the site. Its ssh knows the cluster as `loop`.
    pub(crate) fn new(cluster: &Cluster, site: &Site) -> Laptop {
        let home = tempfile::Builder::new().prefix("home.").tempdir_in("/tmp").unwrap();
        let laptop = Laptop { home };
        fs::create_dir_all(laptop.path(".ssh")).unwrap();
        fs::copy(cluster.ssh_config(), laptop.path(".ssh/config")).unwrap();
        let top = |release: &str| site.top(release).display().to_string();
        let recipe = |release: &str, directory: &str| site.recipe(release, directory).display().to_string();
        let (account, partition) = (Site::ACCOUNT, Site::PARTITION);
        let profiles = format!(
            "version = 1\n[cluster.loop]\nssh = \"loop\"\naccount = \"{account}\"\npartition = \"{partition}\"\ngpu = \"h100\"\n\
             [cluster.loop.env]\nHF_TOKEN = {{ env = \"THE_TOKEN\" }}\n\
             [cluster.loop.release.\"24.11\"]\ninstall-path = \"{}\"\n\
             [cluster.loop.release.\"25.04\"]\ninstall-path = \"{}\"\nrecipe-dir = {{ nemotron4 = \"{}\", \"llama3.1\" = \"{}\" }}\n\
             [cluster.loop.release.\"25.05\"]\ninstall-path = \"{}\"\nrecipe-dir = {{ nemotron-h = \"{}\" }}\n\
             [cluster.loop.release.\"25.12\"]\ninstall-path = \"{}\"\nrecipe-dir = {{ nemotron4 = \"{}\" }}\n\
             [cluster.loop.release.\"26.06.01\"]\ninstall-path = \"{}\"\n",
            top("24.11"),
            top("25.04"),
            recipe("25.04", "nemotron"),
            recipe("25.04", "llama3.1"),
            top("25.05"),
            recipe("25.05", "nemotronh"),
            top("25.12"),
            recipe("25.12", "nemotron4-340b"),
            top("26.06.01"),
        );
        laptop.write(".config/trainplan/clusters.toml", &profiles);
        laptop
    }

    /// Returns a path below the home directory.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes a file below the home directory.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Adds to the cluster profiles.
    pub(crate) fn profile(&self, text: &str) {
        let path = self.path(".config/trainplan/clusters.toml");
        let all = fs::read_to_string(&path).unwrap() + text;
        fs::write(path, all).unwrap();
    }

    /// Writes a campaign. Each run is a name and the lines of its entry.
    pub(crate) fn campaign(&self, name: &str, runs: &[(&str, &str)]) {
        let mut text = format!("version = 1\nname = \"{name}\"\ncluster = \"loop\"\n");
        for (run, lines) in runs {
            text.push_str(&format!("\n[[run]]\nname = \"{run}\"\n{lines}\n"));
        }
        self.write(&format!("{name}.campaign.toml"), &text);
    }

    /// Returns a trainplan command on this machine.
    pub(crate) fn trainplan(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path())
            .env("THE_TOKEN", "hf_sesame")
            .stdin(Stdio::null());
        command
    }

    /// Runs trainplan to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        run_of(&self.trainplan(arguments).output().unwrap())
    }

    /// Runs trainplan and parses its JSON output.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let run = self.run(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&run.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}{}", run.stdout, run.stderr))
    }

    /// Starts `trainplan run` on a campaign.
    pub(crate) fn start(&self, campaign: &str, more: &[&str]) -> Runner {
        let file = format!("{campaign}.campaign.toml");
        self.start_command(&["run", &file], more)
    }

    /// Starts `trainplan jobs follow` on a campaign.
    pub(crate) fn follow(&self, campaign: &str) -> Runner {
        self.start_command(&["jobs", "follow", campaign], &[])
    }

    fn start_command(&self, command: &[&str], more: &[&str]) -> Runner {
        let mut command = self.trainplan(&[command, &["--format", "json"]].concat());
        if !more.contains(&"--interval") {
            command.args(["--interval", "0.5"]);
        }
        let errors = fs::File::options().create(true).append(true).open(self.path("errors")).unwrap();
        let mut child = command.args(more).stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        Runner { child, events, seen: Events::default() }
    }

    /// Returns the standard error of all runners.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(self.path("errors")).unwrap_or_default()
    }

    /// Starts `trainplan serve`, and returns its answer for a path.
    pub(crate) fn get(&self, path: &str) -> Value {
        let mut command = self.trainplan(&["serve", "--listen", "127.0.0.1:0"]);
        let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let rest = line.unwrap().split_once("http://")?.1.to_string();
            Some(rest.split_whitespace().next().unwrap().to_string())
        });
        let address = address.unwrap();
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        drop(server.kill());
        drop(server.wait());
        // Lines that are not JSON are the sizes of chunks.
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let json: String = body.split("\r\n").filter(|part| part.len() > 8).collect();
        serde_json::from_str(&json).unwrap_or_else(|_| panic!("{answer}"))
    }

    /// Returns the runs that `jobs list` prints.
    pub(crate) fn runs(&self) -> Vec<Value> {
        self.json(&["jobs", "list"]).as_array().unwrap().clone()
    }

    /// Returns the events of a run.
    pub(crate) fn events(&self, run: &str) -> Vec<Value> {
        self.json(&["jobs", "show", run])["events"].as_array().unwrap().clone()
    }
}

/// Events. A failing test prints one per line.
#[derive(Default, Clone)]
pub(crate) struct Events(Vec<Value>);

impl std::ops::Deref for Events {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|event| writeln!(f, "{event}"))
    }
}

/// A running `trainplan run`. Dropping this kills it.
pub(crate) struct Runner {
    child: Child,
    events: Lines<BufReader<ChildStdout>>,
    seen: Events,
}

impl Runner {
    /// Returns the next event; none after the last.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let line = self.events.next()?.unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        self.seen.0.push(event.clone());
        Some(event)
    }

    /// Waits for an event with that name for which the condition holds.
    pub(crate) fn wait_for(&mut self, name: &str, mut holds: impl FnMut(&Value) -> bool) -> Value {
        loop {
            match self.next() {
                Some(event) if event["event"] == name && holds(&event) => return event,
                Some(_) => {}
                None => panic!("it ended without {name}: {:?}", self.seen),
            }
        }
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &process]).status().unwrap().success());
    }

    /// Returns its process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end. Returns its exit code and all its events.
    pub(crate) fn end(mut self) -> (Option<i32>, Events) {
        while self.next().is_some() {}
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.seen))
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns id, state and comment of every job in the accounting, which may be some seconds late.
pub(crate) fn accounted(cluster: &Cluster) -> Vec<(String, String, String)> {
    let text = cluster.text("sacct -X -n -P -a -S now-1days --format=JobIDRaw,State,Comment");
    text.lines()
        .map(|line| {
            let cells: Vec<&str> = line.splitn(3, '|').collect();
            (cells[0].to_string(), cells[1].to_string(), cells[2].to_string())
        })
        .collect()
}

/// Checks that Slurm had exactly so many jobs, and that each has another token.
pub(crate) fn assert_submitted_once(cluster: &Cluster, jobs: usize) {
    let all = wait_for("accounting", Duration::from_secs(20), || {
        let all = accounted(cluster);
        (all.len() >= jobs && all.iter().all(|(_, _, comment)| !comment.is_empty())).then_some(all)
    });
    assert_eq!(all.len(), jobs, "{all:#?}");
    let mut comments: Vec<&String> = all.iter().map(|(_, _, comment)| comment).collect();
    comments.sort();
    comments.dedup();
    assert_eq!(comments.len(), jobs, "{all:#?}");
}
