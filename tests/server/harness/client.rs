//! Clients of the API, the answers that they get, and the event stream.

use super::SOON;
use super::runs::{Made, file_of};
use crate::document;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;
use trainplan_shared::result::RunResult;
use ureq::http;
use uuid::Uuid;

pub(crate) fn wire(address: SocketAddr) -> TcpStream {
    let wire = TcpStream::connect(address).unwrap();
    wire.set_read_timeout(Some(2 * SOON)).unwrap();
    wire.set_write_timeout(Some(2 * SOON)).unwrap();
    wire
}

/// A client of the API, which checks each answer against the OpenAPI document.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
    agent: ureq::Agent,
}

/// An answer of the server.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>) -> Client {
        let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0);
        let config = config.timeout_global(Some(2 * SOON)).accept_encoding("identity");
        Client { address, token: token.map(str::to_owned), agent: config.build().into() }
    }

    /// Sends a request; `path` is below `/api/v1`, or below the root if it begins with `//`.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Answer {
        self.try_ask(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The same, for a server that may be gone.
    pub(crate) fn try_ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Answer, ureq::Error> {
        let answer = self.send(method, path, headers, body)?;
        document::check(method, path, &answer);
        Ok(answer)
    }

    /// The same, without checking the answer against the document.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Answer, ureq::Error> {
        let at = match path.strip_prefix("//") {
            Some(path) => format!("http://{}/{path}", self.address),
            None => format!("http://{}/api/v1{path}", self.address),
        };
        let mut request = http::Request::builder().method(method).uri(at);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = match body {
            Some(body) => self.agent.run(request.body(body)?),
            None => self.agent.run(request.body(())?),
        };
        let (head, mut body) = answer?.into_parts();
        let body = body.with_config().limit(u64::MAX).read_to_vec()?;
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], None)
    }

    /// Returns the JSON of a successful GET.
    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], Some(body.to_string().as_bytes()))
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, &[], None)
    }

    /// Uploads a result.
    pub(crate) fn put(&self, run: &RunResult) -> Answer {
        self.try_put(run).unwrap()
    }

    /// The same, for a server that may be gone.
    pub(crate) fn try_put(&self, run: &RunResult) -> Result<Answer, ureq::Error> {
        let file = file_of(run);
        self.try_ask("PUT", &format!("/runs/{}", run.id), &[("content-digest", &digest(&file))], Some(&file))
    }

    /// Uploads a piece of a log.
    pub(crate) fn put_log(&self, id: Uuid, offset: usize, is_last: bool, bytes: &[u8]) -> Answer {
        self.try_put_log(id, offset, is_last, bytes).unwrap()
    }

    pub(crate) fn try_put_log(
        &self,
        id: Uuid,
        offset: usize,
        is_last: bool,
        bytes: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let (offset, last) = (offset.to_string(), if is_last { "?1" } else { "?0" });
        let headers = [("upload-offset", offset.as_str()), ("upload-complete", last)];
        self.try_ask("PUT", &format!("/runs/{id}/log"), &headers, Some(bytes))
    }

    /// Returns the uploaded part of a log; none if it is complete.
    pub(crate) fn offset(&self, id: Uuid) -> Option<usize> {
        let answer = self.ask("HEAD", &format!("/runs/{id}/log"), &[], None);
        assert_eq!(answer.status, 200);
        match answer.header("upload-complete") {
            Some("?1") => None,
            Some("?0") => Some(answer.header("upload-offset").unwrap().parse().unwrap()),
            other => panic!("upload-complete: {other:?}"),
        }
    }

    /// Uploads a result and its log.
    pub(crate) fn put_all(&self, made: &Made) {
        assert_eq!(self.put(&made.run).status, 201);
        assert_eq!(self.put_log(made.run.id, 0, true, &made.log).status, 200);
    }

    /// Returns the ids on all pages of a list.
    pub(crate) fn all(&self, query: &str) -> Vec<String> {
        let mut all = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.json(&format!("/runs?{query}{cursor}"));
            all.extend(ids(&page));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={}", encoded(next)),
                None => return all,
            }
        }
    }

    /// Opens the event stream after the event with this number.
    pub(crate) fn watch(&self, last: Option<i64>) -> Events {
        self.watch_after(last.map(|last| last.to_string()).as_deref())
    }

    /// The same, after any text.
    pub(crate) fn watch_after(&self, last: Option<&str>) -> Events {
        let mut wire = wire(self.address);
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let last = last.map(|last| format!("Last-Event-ID: {last}\r\n"));
        let (token, last) = (token.unwrap_or_default(), last.unwrap_or_default());
        write!(wire, "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n{token}{last}\r\n", self.address).unwrap();
        let mut lines = BufReader::new(wire);
        let head = read_head(&mut lines);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        Events { lines }
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Returns the detail of a problem with this status.
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], status);
        problem["detail"].as_str().unwrap().to_owned()
    }
}

/// An open event stream.
pub(crate) struct Events {
    lines: BufReader<TcpStream>,
}

impl Events {
    /// Returns the next event: number, kind and run. None at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<(i64, String, String)> {
        let (mut seq, mut kind) = (0, String::new());
        let start = Instant::now();
        loop {
            // Keep-alive comments arrive forever.
            assert!(start.elapsed() < SOON, "no event within {SOON:?}");
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Chunk sizes and comments between the lines of events are not fields.
            match line.trim_end().split_once(": ") {
                Some(("id", value)) => seq = value.parse().unwrap(),
                Some(("event", value)) => kind = value.to_owned(),
                Some(("data", value)) => {
                    let data: Value = serde_json::from_str(value).unwrap();
                    return Some((seq, kind, data["id"].as_str().unwrap().to_owned()));
                }
                _ => {}
            }
        }
    }

    /// Returns the next event other than an alert, without its number.
    pub(crate) fn told(&mut self) -> (String, String) {
        loop {
            let (_, kind, id) = self.next().unwrap();
            if kind != "alert" {
                return (kind, id);
            }
        }
    }
}

/// Reads a response's head.
pub(crate) fn read_head(wire: &mut impl BufRead) -> String {
    let mut head = String::new();
    while wire.read_line(&mut head).unwrap() > 2 {}
    head
}

/// Reads a connection until the other side closes it.
pub(crate) fn read_all(wire: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let _ = wire.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

/// Returns the ids on a page of runs.
pub(crate) fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

/// Encodes a text for a query.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "%{byte:02X}");
        text
    })
}

/// Returns the `Content-Digest` of a body.
pub(crate) fn digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", BASE64_STANDARD.encode(Sha256::digest(body)))
}
