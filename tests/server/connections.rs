//! Connections and requests beyond limits: too large, too many, too slow, or for another host.

use crate::harness::{
    Answer, Client, Options, Place, SOON, Server, carried, made, made_long, read_all, wait_for,
};
use serde_json::json;
use std::io::{self, Write};
use std::net::TcpStream;
use uuid::Uuid;

/// The first line of the answer to a request whose body may not be read to its end.
fn refused(server: &Server, head: &str, body: &[u8]) -> String {
    let mut wire = server.wire();
    // The server may stop reading at any time.
    let _ = write!(wire, "{head}Host: localhost\r\nAuthorization: Bearer {}\r\n\r\n", server.owner);
    let _ = wire.write_all(body);
    let _ = wire.flush();
    read_all(&mut wire).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_body_beyond_the_limit() {
    let small = Options {
        arguments: &["--max-result-bytes", "100000", "--max-log-bytes", "200000"],
        ..Options::default()
    };
    let server = Server::with(&Place::local(), &small);
    let (owner, id) = (server.owner(), made(12.39).run.id);
    assert_eq!(owner.put(&made(12.39).run).status, 201);
    let path = format!("/api/v1/runs/{}", Uuid::now_v7());
    let declared = format!("PUT {path} HTTP/1.1\r\nContent-Length: 99999999999\r\n");
    assert_eq!(refused(&server, &declared, &[b'x'; 150_000]), "HTTP/1.1 413 Payload Too Large");
    // Its size alone is enough: nothing has to arrive.
    assert_eq!(refused(&server, &declared, b""), "HTTP/1.1 413 Payload Too Large");
    let chunked = format!("PUT {path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n");
    let chunks = [b"10000\r\n".to_vec(), vec![b'x'; 1 << 16], b"\r\n".to_vec()].concat().repeat(3);
    assert_eq!(refused(&server, &chunked, &chunks), "HTTP/1.1 413 Payload Too Large");
    let log = format!("PUT /api/v1/runs/{id}/log HTTP/1.1\r\nUpload-Offset: 0\r\nUpload-Complete: ?1\r\n");
    let chunked = format!("{log}Transfer-Encoding: chunked\r\n");
    let chunks = [b"10000\r\n".to_vec(), vec![b'x'; 1 << 16], b"\r\n".to_vec()].concat().repeat(5);
    assert_eq!(refused(&server, &chunked, &chunks), "HTTP/1.1 413 Payload Too Large");
    let declared = format!("{log}Content-Length: 99999999999\r\n");
    assert_eq!(refused(&server, &declared, b""), "HTTP/1.1 413 Payload Too Large");
    let both = format!("{log}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
    let answer = refused(&server, &both, b"0\r\n\r\nGET /api/v1/tokens HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 4"), "a request inside of another: {answer}");
    let huge = Client::post(&owner, "/tokens", &json!({ "name": "x".repeat(100_000), "scope": "read" }));
    huge.problem(413);
    assert_eq!(owner.get("/runs").status, 200);
}

#[test]
fn a_header_beyond_every_limit() {
    let server = Server::start();
    // Thousands of connections may each send as much.
    for bytes in [200_000, 1 << 20] {
        let head = format!("GET /api/v1/limits HTTP/1.1\r\nX-Long: {}\r\n", "x".repeat(bytes));
        let answer = refused(&server, &head, b"");
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{bytes}: {answer}");
    }
    let head =
        format!("GET /api/v1/limits HTTP/1.1\r\nConnection: close\r\nX-Long: {}\r\n", "x".repeat(60_000));
    assert_eq!(refused(&server, &head, b""), "HTTP/1.1 200 OK");
    let head: String = (0..2000).map(|number| format!("X-{number}: x\r\n")).collect();
    let answer = refused(&server, &format!("GET /api/v1/limits HTTP/1.1\r\n{head}"), b"");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(server.anyone().get("/limits").status, 200);
}

#[test]
fn headers_somewhat_beyond_the_limit_are_answered_with_a_problem() {
    let server = Server::start();
    let ask = |bytes: usize| -> io::Result<String> {
        let (mut wire, long) = (server.wire(), "x".repeat(bytes));
        let head = "GET /api/v1/limits HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
        write!(wire, "{head}X-Long: {long}\r\n\r\n")?;
        io::read_to_string(wire)
    };
    assert!(ask(120_000).unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
    // Where the bytes arrive in unlucky pieces, hyper refuses them itself, and may do so before it received all of them.
    wait_for("problem", SOON, || {
        let answer = ask(131_100).ok().filter(|answer| !answer.is_empty())?;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        let is_problem = answer.contains("content-type: application/problem+json");
        (is_problem && answer.contains("\r\nx-request-id: ")).then_some(())
    });
}

#[test]
fn dns_rebinding() {
    let server = Server::start();
    assert_eq!(server.owner().put(&made(12.39).run).status, 201);
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "0.0.0.0", "x@localhost"]
    {
        for path in ["/runs", "//", "//healthz", "//metrics"] {
            let path = path
                .strip_prefix('/')
                .filter(|path| path.starts_with('/'))
                .map_or(format!("/api/v1{path}"), str::to_owned);
            let mut wire = server.wire();
            write!(wire, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
            assert!(read_all(&mut wire).starts_with("HTTP/1.1 403"), "{host} {path}");
        }
    }
    let mut wire = server.wire();
    write!(wire, "GET /api/v1/runs HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n").unwrap();
    assert!(read_all(&mut wire).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_missing_or_second_host() {
    let server = Server::start();
    let ask = |hosts: &str| {
        let mut wire = server.wire();
        write!(wire, "GET /api/v1/limits HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n").unwrap();
        read_all(&mut wire).lines().next().unwrap_or_default().to_owned()
    };
    let own = format!("Host: {}\r\n", server.address);
    assert_eq!(ask(&own), "HTTP/1.1 200 OK");
    assert_eq!(ask(""), "HTTP/1.1 400 Bad Request");
    assert_eq!(ask(&format!("{own}Host: evil.example\r\n")), "HTTP/1.1 400 Bad Request");
    assert_eq!(ask("Host: evil.example\r\n"), "HTTP/1.1 403 Forbidden");
}

#[test]
fn methods_of_any_name() {
    let server = Server::start();
    for number in 0..50 {
        let mut wire = server.wire();
        let head = "/api/v1/limits HTTP/1.1\r\nHost: localhost\r\nConnection: close";
        write!(wire, "INVENTED{number} {head}\r\n\r\n").unwrap();
        assert!(read_all(&mut wire).starts_with("HTTP/1.1 405 "));
    }
    // Metrics stay in memory, so a client must not be able to name any.
    let metrics = server.owner().get("//metrics").text();
    assert!(metrics.contains("method=\"other\"") && !metrics.contains("INVENTED"), "{metrics}");
}

#[test]
fn exceeding_the_rate_with_forged_addresses() {
    let few = Options { arguments: &["--requests-per-minute", "20"], ..Options::default() };
    let server = Server::with(&Place::local(), &few);
    let token = server.by(&server.place.token("read", &[]));
    let ask = |number: u32| {
        let spoofed = format!("10.0.0.{number}");
        let headers = [("x-forwarded-for", &*spoofed), ("forwarded", &spoofed), ("x-real-ip", &spoofed)];
        server.anyone().ask("GET", "/runs", &headers, None)
    };
    let answers: Vec<Answer> = (0..60).map(ask).collect();
    assert_eq!(answers[0].status, 200);
    // On a slow machine, the last requests may be in the next minute.
    let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
    refused.problem(429);
    assert!((1..=60).contains(&refused.header("retry-after").unwrap().parse::<u32>().unwrap()));
    // Each token has its own rate.
    assert_eq!(token.get("/runs").status, 200);
    drop(server);

    let behind = ["--read", "public", "--requests-per-minute", "20", "--trusted-proxy", "127.0.0.1"];
    let server = Server::with(&Place::local(), &Options { arguments: &behind, ..Options::default() });
    // A proxy appends the address that it saw.
    let ask = |number: u32, seen: &str| {
        let header = format!("10.0.0.{number}, {seen}");
        server.anyone().ask("GET", "/runs", &[("x-forwarded-for", &header)], None).status
    };
    assert!((0..60).any(|number| ask(number, "192.0.2.1") == 429));
    assert_eq!(ask(0, "192.0.2.2"), 200);
    // One host may own a whole IPv6 network.
    assert!((0..60).any(|number| ask(0, &format!("2001:db8:1:2::{number:x}")) == 429));
    assert_eq!(ask(0, "2001:db8:1:3::1"), 200);
}

#[test]
fn slow_clients() {
    let server = Server::start();
    let (owner, made) = (server.owner(), made_long(8 << 20));
    owner.put_all(&made);
    let id = made.run.id;
    let mut slow = Vec::new();
    let mut begin = |text: String| {
        let mut wire = server.wire();
        wire.write_all(text.as_bytes()).unwrap();
        slow.push(wire);
    };
    for _ in 0..100 {
        begin("GET /api/v1/runs HTTP/1.1\r\nHost: local".into());
        let head = format!("HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n", server.owner);
        let other = Uuid::now_v7();
        begin(format!("PUT /api/v1/runs/{other} {head}Content-Length: 60000000\r\n\r\nx"));
        begin(format!(
            "PUT /api/v1/runs/{id}/log {head}Upload-Offset: 0\r\nUpload-Complete: ?1\r\nContent-Length: 1000\r\n\r\nx"
        ));
        begin(format!("POST /api/v1/runs/{other}/progress {head}Content-Length: 1000\r\n\r\nx"));
    }
    // Clients that read nothing of a large answer: more of them than threads.
    for _ in 0..600 {
        begin(format!("GET /api/v1/runs/{id}/log HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    }
    // Other clients are not affected.
    let other = carried(12.0, "eos");
    owner.put_all(&other);
    assert_eq!(owner.get(&format!("/compare?ids={}", other.run.id)).status, 200);
    assert_eq!(owner.get(&format!("/runs/{}/log", other.run.id)).body, other.log);
    assert_eq!(owner.get(&format!("/runs/{}/log/lines", other.run.id)).status, 200);
    assert_eq!(server.anyone().get("//healthz").status, 200);
}

#[test]
fn more_connections_than_the_soft_limit() {
    let few = Options { by: &["prlimit", "--nofile=64:4096"], ..Options::default() };
    let server = Server::with(&Place::local(), &few);
    let idle: Vec<TcpStream> = (0..300).map(|_| server.wire()).collect();
    server.owner().put_all(&made(12.39));
    assert_eq!(idle.len(), 300);
}

#[test]
fn more_connections_than_open_files() {
    let options = Options { by: &["prlimit", "--nofile=300:300"], ..Options::default() };
    let server = Server::with(&Place::local(), &options);
    let owner = server.owner();
    // The client keeps its connection.
    assert_eq!(owner.get("/limits").status, 200);
    let idle: Vec<_> = (0..400).map(|_| server.wire()).collect();
    for _ in 0..10 {
        owner.put_all(&carried(12.0, "eos"));
    }
    assert_eq!(owner.all("").len(), 10);
    drop(idle);
}

#[test]
#[ignore = "waits for as long as the server has patience"]
fn stress_a_client_that_says_nothing_is_let_go() {
    let server = Server::start();
    let mut silent = server.wire();
    let mut half = server.wire();
    write!(half, "GET / HTTP/1.1\r\nHost").unwrap();
    let run = made(12.39).run;
    assert_eq!(server.owner().put(&run).status, 201);
    let path = format!("/api/v1/runs/{}", run.id);
    let head = format!(
        "Host: localhost\r\nAuthorization: Bearer {}\r\nUpload-Offset: 0\r\nUpload-Complete: ?0\r\nContent-Length: 9\r\n\r\n",
        server.owner
    );
    let requests = [
        "POST /api/v1/tokens".to_owned(),
        format!("PUT {path}"),
        format!("PUT {path}/log"),
        format!("POST {path}/progress"),
        format!("POST {path}/scores"),
    ];
    let bodies = requests.map(|request| {
        let mut body = server.wire();
        write!(body, "{request} HTTP/1.1\r\n{head} ").unwrap();
        (request, body)
    });
    for (request, mut body) in bodies {
        let answer = read_all(&mut body);
        assert!(answer.starts_with("HTTP/1.1 408"), "{request}: {answer}");
    }
    read_all(&mut half);
    read_all(&mut silent);
    let made = made_long(32 << 20);
    server.owner().put_all(&made);
    let sockets = || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().flatten();
        let links = open.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        links.filter(|to| to.to_string_lossy().starts_with("socket:")).count()
    };
    let idle = sockets();
    let mut unread = server.wire();
    write!(unread, "GET /api/v1/runs/{}/log HTTP/1.1\r\nHost: localhost\r\n\r\n", made.run.id).unwrap();
    wait_for("answer that nobody takes", SOON, || (sockets() > idle).then_some(()));
    wait_for("end of an answer that nobody takes", 5 * SOON, || (sockets() <= idle).then_some(()));
}
