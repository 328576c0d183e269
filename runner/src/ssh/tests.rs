//! Tests quoting and frames with real shells, and the link with a real sshd on loopback.

use super::frame::{Frame, FramedStream, StreamProgress};
use super::quote::quote;
use super::{Link, LinkError, LinkOptions, Script};
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SHELLS: [&str; 3] = ["sh", "bash", "dash"];
const LIMIT: Duration = Duration::from_secs(20);

/// Runs a shell with the script on standard input, like a session.
fn shell(name: &str, script: &[u8]) -> Output {
    shell_in(name, script, &[])
}

fn shell_in(name: &str, script: &[u8], environment: &[(&str, &str)]) -> Output {
    let mut child = Command::new(format!("/bin/{name}"))
        .arg("-s")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let script = script.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&script));
    let output = child.wait_with_output().unwrap();
    let _ = writing.join();
    output
}

fn gathered(frame: &Frame, bytes: &[u8], chunk: usize) -> FramedStream {
    let mut gathered = FramedStream::new(frame);
    for part in bytes.chunks(chunk) {
        gathered.take(part);
    }
    gathered
}

/// Returns the framed output of a script that prints the payload and ends with the code.
fn framed(frame: &Frame, payload: &[u8], code: i32) -> Vec<u8> {
    let begin = frame.begin().replace(r"\n", "\n");
    let end = frame.end().replace(r"\n", "\n").replace("%s", &code.to_string());
    [begin.as_bytes(), payload, end.as_bytes()].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_shell_reads_a_quoted_value_unchanged(
        value in prop_oneof![
            prop::collection::vec(1u8..=255, 0..200),
            prop::collection::vec(prop::sample::select(br#"'"\$`!*?~#&;|<>(){}[] ab"#.to_vec()), 0..60),
            prop::collection::vec(prop::sample::select(b"\n\r\t'\\ ".to_vec()), 0..40),
        ]
    ) {
        let mut script = b"value=".to_vec();
        quote(&value, &mut script);
        script.extend_from_slice(b"\nprintf %s \"$value\"\n");
        for name in SHELLS {
            let output = shell(name, &script);
            prop_assert_eq!(&output.stdout, &value, "{}: {:?}", name, output.stderr);
        }
    }

    #[test]
    fn a_script_prints_the_value_of_its_variable(value in "[^\0]{0,80}", code in 0..=255i32) {
        let body = "printf %s \"$value\"; env | grep -c '^value=' >&2; exit \"$code\"";
        let script = Script::new("echo", body).set("value", value.as_str()).set("code", code.to_string());
        for name in SHELLS {
            let frame = Frame::new();
            let output = shell(name, &script.text(&frame));
            let printed = gathered(&frame, &output.stdout, 7);
            prop_assert_eq!(printed.progress(), StreamProgress::Ended(code));
            prop_assert_eq!(printed.into_output(), value.as_bytes());
            let said = gathered(&frame, &output.stderr, 7).into_output();
            prop_assert_eq!(&said, b"0\n", "only an exported one is seen by commands");
        }
    }

    #[test]
    fn a_truncated_script_does_nothing(cut in 0.0..1.0f64) {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        let body = "echo half >\"$trace\"\necho whole >\"$trace\"";
        let script = Script::new("cut", body).set("trace", trace.to_str().unwrap());
        let text = script.text(&Frame::new());
        // Without only its last line break it would still be complete.
        let text = &text[..((text.len() - 1) as f64 * cut) as usize];
        for name in SHELLS {
            shell(name, text);
            prop_assert!(!trace.exists());
        }
    }

    #[test]
    fn frames_are_found_in_chunks_of_any_size(
        before in prop::collection::vec(any::<u8>(), 0..100),
        payload in prop::collection::vec(any::<u8>(), 0..200),
        after in prop::collection::vec(any::<u8>(), 0..50),
        code in 0..=255i32,
        chunk in 1usize..80,
        cut in 0.0..1.0f64,
    ) {
        let frame = Frame::new();
        let whole = [before, framed(&frame, &payload, code), after.clone()].concat();
        let found = gathered(&frame, &whole, chunk);
        prop_assert_eq!(found.progress(), StreamProgress::Ended(code));
        prop_assert_eq!(found.into_output(), payload);
        // Without a complete end frame the script has not ended.
        let end = whole.len() - after.len();
        let cut = &whole[..(end as f64 * cut) as usize];
        prop_assert!(!matches!(gathered(&frame, cut, chunk).progress(), StreamProgress::Ended(_)));
    }
}

#[test]
fn frames_with_another_nonce_are_ignored() {
    let frame = Frame::new();
    let foreign = framed(&Frame::new(), b"x", 0);
    let found = gathered(&frame, &framed(&frame, &foreign, 3), 1000);
    assert_eq!((found.progress(), found.into_output()), (StreamProgress::Ended(3), foreign));
}

#[test]
fn a_secret_is_redacted_everywhere() {
    let script = Script::new("login", "true").secret("TOKEN", "hunter2!").set("NAME", "me");
    assert_eq!(format!("{script:?}"), r#"login { TOKEN: "(secret)", NAME: "me" }"#);
    assert_eq!(script.redact("+ TOKEN=hunter2! NAME=me"), "+ TOKEN=(secret) NAME=me");
    assert!(Script::new("x", "true").set("a b", "").check().is_err());
    assert!(Script::new("x", "true").set("a", "\0").check().is_err());
}

#[test]
fn slurm_is_found_if_only_a_login_shell_has_it_in_path() {
    let home = tempfile::tempdir().unwrap();
    let (tools, slurm) = (home.path().join("tools"), home.path().join("slurm"));
    fs::create_dir_all(&tools).unwrap();
    fs::create_dir_all(&slurm).unwrap();
    for tool in ["sh", "bash", "dash", "head", "tail"] {
        std::os::unix::fs::symlink(format!("/usr/bin/{tool}"), tools.join(tool)).unwrap();
    }
    fs::write(slurm.join("sbatch"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(slurm.join("sbatch"), fs::Permissions::from_mode(0o755)).unwrap();
    let profile = format!("echo welcome\nPATH={}:$PATH\nexport SLURM_CONF=/etc/site\n", slurm.display());
    fs::write(home.path().join(".bash_profile"), profile).unwrap();
    let frame = Frame::new();
    let script = Script::new("find", "command -v sbatch; echo \"$SLURM_CONF\"").text(&frame);
    let path = tools.display().to_string();
    for name in SHELLS {
        let output = shell_in(name, &script, &[("HOME", home.path().to_str().unwrap()), ("PATH", &path)]);
        let found = gathered(&frame, &output.stdout, 100).into_output();
        let expected = format!("{}/sbatch\n/etc/site\n", slurm.display());
        assert_eq!(String::from_utf8(found).unwrap(), expected, "{name}");
    }
}

/// An sshd whose connections can be frozen.
struct Sshd {
    folder: tempfile::TempDir,
    process: Child,
    port: u16,
}

impl Sshd {
    fn start() -> Sshd {
        let folder = tempfile::Builder::new().prefix("sshd.").tempdir_in("/tmp").unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        for key in ["host", "user"] {
            let keygen =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status();
            assert!(keygen.unwrap().success());
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = fs::read_to_string(at("host.pub")).unwrap();
        fs::write(at("known_hosts"), format!("[127.0.0.1]:{port} {host}")).unwrap();
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes \
             no\nPidFile none\n\
             UsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n",
            at("host"),
            at("user.pub")
        );
        fs::write(at("sshd_config"), config).unwrap();
        let config = format!(
            "Host here\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n \
             IdentityAgent none\n \
             UserKnownHostsFile {}\n GlobalKnownHostsFile /dev/null\n",
            at("user"),
            at("known_hosts")
        );
        fs::write(at("config"), config).unwrap();
        let _ = fs::create_dir("/run/sshd");
        let process = Sshd::launch(folder.path(), port);
        Sshd { folder, process, port }
    }

    fn launch(folder: &Path, port: u16) -> Child {
        let mut sshd = Command::new("/usr/sbin/sshd");
        sshd.args(["-D", "-f"]).arg(folder.join("sshd_config"));
        sshd.stdin(Stdio::null()).stderr(Stdio::null());
        let process = sshd.spawn().unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        process
    }

    fn link(&self) -> Link {
        let ssh_config = Some(self.folder.path().join("config"));
        Link::new("here", LinkOptions { ssh_config, ..LinkOptions::default() })
    }

    /// Signals the listening sshd and those of the connections.
    fn signal(&self, signal: &str) {
        let children = Command::new("pgrep").args(["-P", &self.process.id().to_string()]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        for process in children.split_whitespace().map(str::to_string).chain([self.process.id().to_string()])
        {
            Command::new("kill").args([signal, &process]).status().unwrap();
        }
    }

    fn masters(&self) -> Vec<String> {
        let pattern = format!("^ssh .*-M -S .*/m-{}-", std::process::id());
        let found = Command::new("pgrep").args(["-f", &pattern]).output().unwrap();
        String::from_utf8(found.stdout).unwrap().split_whitespace().map(str::to_string).collect()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.signal("-CONT");
        self.signal("-KILL");
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs sshd"]
async fn a_link_runs_scripts_and_reconnects() {
    let mut sshd = Sshd::start();
    let link = sshd.link();
    let folder = sshd.folder.path().to_path_buf();
    let start = Instant::now();
    let output = link.run(&Script::new("greet", "echo hello; echo there >&2; exit 7"), LIMIT).await.unwrap();
    println!("connected and ran in {:?}", start.elapsed());
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_str(), output.code),
        (&b"hello\n"[..], "there\n", 7)
    );

    // 40 scripts at once; four run at a time.
    let start = Instant::now();
    let runs = (0..40).map(|number| {
        let link = link.clone();
        tokio::spawn(async move {
            let script =
                Script::new("one", "sleep 0.1; printf %s \"$number\"").set("number", number.to_string());
            link.run(&script, LIMIT).await.unwrap().stdout == number.to_string().into_bytes()
        })
    });
    for run in runs.collect::<Vec<_>>() {
        assert!(run.await.unwrap());
    }
    println!("40 scripts of 0.1 s in {:?}", start.elapsed());
    assert!(start.elapsed() > Duration::from_millis(1000));

    // A large value both ways, bytes that are not UTF-8, and background processes that don't delay the
    // answer.
    let large = "x'\n".repeat(1 << 20);
    let start = Instant::now();
    let output =
        link.run(&Script::new("large", "printf %s \"$it\"").set("it", &*large), LIMIT).await.unwrap();
    println!("3 MiB there and back in {:?}", start.elapsed());
    assert_eq!(output.stdout, large.as_bytes());
    let script = Script::new("bytes", r"printf '\377\000\n'; sleep 30 & echo $!");
    let output = link.run(&script, LIMIT).await.unwrap();
    assert!(output.stdout.starts_with(b"\xff\0\n") && output.duration < Duration::from_secs(5));
    let flood = link.run(&Script::new("flood", "yes | head -c 80000000"), LIMIT).await;
    assert!(matches!(&flood, Err(LinkError::Lost { why }) if why.contains("64 MiB")), "{flood:?}");
    assert_eq!(link.figures().reconnects, 0);

    // A killed shell prints no end frame. Exit code 255 is valid.
    let killed = link.run(&Script::new("killed", "kill -9 $$"), LIMIT).await;
    assert!(matches!(killed, Err(LinkError::Lost { .. })), "{killed:?}");
    assert_eq!(link.figures().reconnects, 0);
    let killed = link.run(&Script::new("hang up", "kill -9 $PPID"), LIMIT).await;
    assert!(matches!(killed, Err(LinkError::Lost { .. })), "{killed:?}");
    assert_eq!(link.run(&Script::new("code", "exit 255"), LIMIT).await.unwrap().code, 255);
    // A script that takes too long is lost; the link stays.
    let slow = link.run(&Script::new("slow", "sleep 3"), Duration::from_secs(1)).await;
    assert!(matches!(&slow, Err(LinkError::Lost { why }) if why.contains("the host answers")), "{slow:?}");

    // The idle master is killed: the next script runs once, over a new one.
    let before = link.figures().reconnects;
    for process in sshd.masters() {
        Command::new("kill").args(["-KILL", &process]).status().unwrap();
    }
    let start = Instant::now();
    let count =
        Script::new("count", "echo x >>\"$file\"").set("file", folder.join("count").display().to_string());
    link.run(&count, LIMIT).await.unwrap();
    println!("master killed: ran again in {:?}", start.elapsed());
    assert_eq!(
        (link.figures().reconnects, fs::read_to_string(folder.join("count")).unwrap().len()),
        (before + 1, 2)
    );

    // The master of four scripts is killed: all are lost. After one break a new connection is tried at once.
    let runs: Vec<_> = (0..4)
        .map(|_| {
            let link = link.clone();
            tokio::spawn(async move { link.run(&Script::new("cut", "sleep 5"), LIMIT).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for process in sshd.masters() {
        Command::new("kill").args(["-KILL", &process]).status().unwrap();
    }
    for run in runs {
        let lost = run.await.unwrap();
        assert!(matches!(lost, Err(LinkError::Lost { .. })), "{lost:?}");
    }
    link.probe(LIMIT).await.unwrap();

    // The host freezes during a script: it is lost soon, before its own time limit.
    let freezing = link.clone();
    let late = Script::new("late", "sleep 2; echo x >>\"$file\"")
        .set("file", folder.join("late").display().to_string());
    let run = tokio::spawn(async move { freezing.run(&late, Duration::from_secs(600)).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    sshd.signal("-STOP");
    let start = Instant::now();
    let lost = run.await.unwrap();
    println!("frozen: {lost:?} after {:?}", start.elapsed());
    assert!(matches!(lost, Err(LinkError::Lost { .. })) && start.elapsed() < Duration::from_secs(15));
    let start = Instant::now();
    let down = link.run(&count, LIMIT).await;
    println!("still frozen: {down:?} after {:?}", start.elapsed());
    assert!(matches!(down, Err(LinkError::Unreachable { .. })) && start.elapsed() < Duration::from_secs(20));
    // Within the pause the error comes at once.
    let start = Instant::now();
    assert!(matches!(link.run(&count, LIMIT).await, Err(LinkError::Unreachable { .. })));
    assert!(start.elapsed() < Duration::from_millis(100));
    sshd.signal("-CONT");
    let back = loop {
        match link.run(&count, LIMIT).await {
            Ok(output) => break output,
            Err(LinkError::Unreachable { retry_after, .. }) => tokio::time::sleep(retry_after).await,
            Err(error) => panic!("{error}"),
        }
    };
    println!("back after {:?}: {:?}", start.elapsed(), back.duration);
    assert_eq!(fs::read_to_string(folder.join("count")).unwrap().len(), 4, "once before, once now");

    // After a script with a short limit, a probe finds out that the host is frozen.
    sshd.signal("-STOP");
    let start = Instant::now();
    let lost = link.run(&count, Duration::from_secs(1)).await;
    println!("frozen before: {lost:?} after {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(8));
    assert_eq!(sshd.masters(), [""; 0]);
    sshd.signal("-CONT");

    sshd.signal("-KILL");
    let _ = sshd.process.wait();
    let link = sshd.link();
    let start = Instant::now();
    let mut pauses = Vec::new();
    while pauses.len() < 3 {
        let Err(LinkError::Unreachable { why, retry_after }) = link.run(&count, LIMIT).await else {
            panic!()
        };
        assert!(why.contains("Connection refused"), "{why}");
        pauses.push(retry_after);
        tokio::time::sleep(retry_after).await;
    }
    println!("pauses {pauses:?} within {:?}; {:?}", start.elapsed(), link.figures());
    sshd.process = Sshd::launch(&folder, sshd.port);
    tokio::time::sleep(Duration::from_secs(5)).await;
    link.probe(LIMIT).await.unwrap();
    drop(link);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(sshd.masters(), [""; 0]);

    // The connection of a killed runner ends by itself.
    let ssh_config = Some(folder.join("config"));
    let link = Link::new("here", LinkOptions { ssh_config, idle: Duration::from_secs(2), cluster: None });
    link.probe(LIMIT).await.unwrap();
    std::mem::forget(link);
    assert_eq!(sshd.masters().len(), 1);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(sshd.masters(), [""; 0]);
}
