//! A results server for tests.

use crate::binary;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A `trainplan serve` on this machine with open reading, and a token for it. Dropping this kills it.
#[derive(Debug)]
pub struct Served {
    child: Child,
    /// The address, HOST:PORT.
    pub address: String,
    /// An admin token. It stays valid when the server is started again.
    pub token: String,
}

#[expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
impl Served {
    /// Starts a server with its store in a folder, on a free port.
    ///
    /// # Panics
    /// It does not start.
    pub fn start(data: &Path) -> Served {
        let folder = [Path::new("--data-dir"), data];
        let mut make = Command::new(binary());
        make.args(["token", "create", "--name", "t", "--scope", "admin", "--format", "csv"]).args(folder);
        let made = make.output().expect("the binary starts");
        let token = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let (child, address) = serve(data, "127.0.0.1:0");
        Served { child, address, token }
    }

    /// Kills it with SIGKILL.
    ///
    /// # Panics
    /// The process can't be killed.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }

    /// Starts it again at the same address.
    ///
    /// # Panics
    /// It does not start.
    pub fn start_again(&mut self, data: &Path) {
        (self.child, self.address) = serve(data, &self.address);
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends a request. Returns the head and the body of the answer.
    ///
    /// # Panics
    /// It does not answer.
    pub fn ask(&self, method: &str, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let (host, token) = (&self.address, &self.token);
        // HTTP 1.0 has no chunked encoding.
        write!(stream, "{method} {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n")
            .expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) => (head.to_ascii_lowercase(), body.to_owned()),
            None => panic!("not an HTTP answer: {answer}"),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn serve(data: &Path, listen: &str) -> (Child, String) {
    // With --behind-tls only created tokens are valid.
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", listen, "--behind-tls", "--read", "public", "--data-dir"]).arg(data);
    let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let address = lines.find_map(|line| {
        let line = line.ok()?;
        Some(line.split_once("listens on ")?.1.split_whitespace().next()?.to_owned())
    });
    // The server would end if its stderr were closed.
    std::thread::spawn(move || lines.for_each(drop));
    (child, address.expect("it says where it listens"))
}
