//! A server under test.

use super::client::{Client, wire};
use super::place::Place;
use super::{SOON, wait_for, wait_for_or};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};
use trainplan_tests::binary;

/// Options of a server under test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options<'a> {
    /// Additional arguments.
    pub(crate) arguments: &'a [&'a str],
    /// Additional environment variables.
    pub(crate) environment: &'a [(&'a str, &'a str)],
    /// A command that starts the server, such as `prlimit`, with its own arguments.
    pub(crate) by: &'a [&'a str],
}

/// A server that runs until this value is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) place: Place,
    pub(crate) address: SocketAddr,
    /// The token that it printed; empty if it is not on loopback.
    pub(crate) owner: String,
    child: Child,
    output: Arc<Mutex<String>>,
}

impl Server {
    /// Starts a server on a new local store.
    pub(crate) fn start() -> Server {
        Server::at(&Place::local())
    }

    /// Starts a server on a store, new or existing.
    pub(crate) fn at(place: &Place) -> Server {
        Server::with(place, &Options::default())
    }

    pub(crate) fn with(place: &Place, options: &Options) -> Server {
        Server::try_with(place, options).unwrap_or_else(|said| panic!("the server did not start: {said}"))
    }

    /// Starts a server; returns its output if it does not start.
    pub(crate) fn try_with(place: &Place, options: &Options) -> Result<Server, String> {
        let mut command = Command::new(options.by.first().map_or_else(binary, PathBuf::from));
        if let Some((_, arguments)) = options.by.split_first() {
            command.args(arguments).arg(binary());
        }
        command.arg("serve").arg("--data-dir").arg(place.dir());
        if !options.arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command
            .args(options.arguments)
            .envs(place.environment.iter().cloned())
            .envs(options.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn({
            let output = Arc::clone(&output);
            move || {
                for line in stderr.lines().map_while(Result::ok) {
                    let _ = writeln!(output.lock().unwrap(), "{line}");
                }
            }
        });
        let said = || output.lock().unwrap().clone();
        let start = wait_for_or(
            SOON,
            || {
                let (all, ended) = (said(), child.try_wait().unwrap().is_some());
                // Its output may arrive after its end.
                let start = announced(&all);
                if start.is_none() && ended {
                    thread::sleep(Duration::from_millis(100));
                    return Some(Err(said()));
                }
                start.map(Ok)
            },
            || format!("no server: {}", said()),
        );
        let (address, owner) = start?;
        Ok(Server { place: place.clone(), address, owner, child, output })
    }

    /// Returns its output so far.
    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it.
    pub(crate) fn kill(mut self) -> Place {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.place.clone()
    }

    /// Asks it to stop.
    pub(crate) fn tell_to_end(&self) {
        let status = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end; returns whether it succeeded.
    pub(crate) fn wait(mut self) -> bool {
        let status = wait_for("end", SOON, || self.child.try_wait().unwrap());
        status.success()
    }

    /// Restarts it on the same store.
    pub(crate) fn again(self) -> Server {
        let place = self.place.clone();
        self.tell_to_end();
        assert!(self.wait());
        Server::at(&place)
    }

    /// Returns a client with the token that the server printed.
    pub(crate) fn owner(&self) -> Client {
        Client::new(self.address, Some(&self.owner))
    }

    /// Returns a client without a token.
    pub(crate) fn anyone(&self) -> Client {
        Client::new(self.address, None)
    }

    /// Returns a client with this token.
    pub(crate) fn by(&self, token: &str) -> Client {
        Client::new(self.address, Some(token))
    }

    /// Opens a raw connection.
    pub(crate) fn wire(&self) -> TcpStream {
        wire(self.address)
    }

    /// Returns its peak memory in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Returns the processor time that it used so far, in ticks of 10 ms.
    pub(crate) fn processor_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        // After the name of the program: its state, then 10 other values.
        let (_, after) = stat.rsplit_once(')').unwrap();
        after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("-- the server at {} said:\n{}", self.address, self.output());
        }
    }
}

/// Returns the address and the token in the output of a starting server; an empty token if it prints none.
fn announced(said: &str) -> Option<(SocketAddr, String)> {
    if let Some((_, after)) = said.split_once("listens on ") {
        return Some((after.split_whitespace().next()?.parse().ok()?, String::new()));
    }
    let address = said.split_once("Trainplan is at http://")?.1.split_whitespace().next()?.parse().ok()?;
    let (token, _) = said.split_once("#token=")?.1.split_once('\n')?;
    Some((address, token.to_owned()))
}
