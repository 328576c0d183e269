//! One script over one session of a master.

use super::frame::{Frame, Gathered, Progress};
use super::script::{SHELL, Script};
use openssh::{Session, Stdio};
use std::error::Error;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// A session is open in a few round trips, or the link is not what it was.
const OPENING: Duration = Duration::from_secs(10);

/// What a script may print; far more than any should.
const MOST: usize = 64 << 20;

/// How long the standard error may lag behind the output, and the exit status behind both.
const LAG: Duration = Duration::from_secs(2);

/// What a script that ended left.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
    pub(super) code: i32,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Broken {
    /// No shell saw the script.
    NotStarted(String),
    /// The session was there and ended, without a shell that would have run it.
    NoShell(String),
    /// It may have run, or still run.
    Lost(String),
    /// The same, and nothing came for as long as was allowed.
    Silent,
}

/// Runs a script to its end frame. Whatever it leaves behind with open files does not hold the answer up.
pub(super) async fn exchange(
    session: &Session,
    script: &Script,
    limit: Duration,
    received: &AtomicU64,
) -> Result<Answer, Broken> {
    let frame = Frame::new();
    let text = script.text(&frame);
    let mut command = session.raw_command(SHELL);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let opened = timeout(OPENING.min(limit), command.spawn()).await;
    let mut child = match opened {
        Ok(Ok(child)) => child,
        Ok(Err(error)) => return Err(Broken::NotStarted(in_full(&error))),
        Err(_) => return Err(Broken::NotStarted("the connection has fallen silent".into())),
    };
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin().take(), child.stdout().take(), child.stderr().take())
    else {
        return Err(Broken::NotStarted("the session has no standard streams".into()));
    };
    let (mut printed, mut said) = (Gathered::new(&frame), Gathered::new(&frame));
    let mut sent = false;
    let talk = async {
        let writing = async {
            sent = stdin.write_all(&text).await.is_ok();
            drop(stdin);
        };
        let mut printing =
            std::pin::pin!(async { tokio::join!(writing, gather(stdout, &mut printed, received)).1 });
        let mut saying = std::pin::pin!(gather(stderr, &mut said, received));
        let mut all_said = false;
        let fits = loop {
            tokio::select! {
                fits = &mut printing => break fits,
                _ = &mut saying, if !all_said => all_said = true,
            }
        };
        if !all_said {
            let _ = timeout(LAG, saying).await;
        }
        fits
    };
    let Ok(fits) = timeout(limit, talk).await else { return Err(Broken::Silent) };
    if !fits {
        return Err(Broken::Lost(format!("it printed more than {} MiB", MOST >> 20)));
    }
    let progress = printed.progress();
    let stderr = script.redact(&String::from_utf8_lossy(&said.into_output()));
    if let Progress::Ended(code) = progress {
        return Ok(Answer { stdout: printed.into_output(), stderr, code });
    }
    // Not even what the session ends with can be believed: 255 is a lost link too, or a killed shell.
    let status = timeout(LAG, child.wait()).await.ok().and_then(Result::ok).and_then(|status| status.code());
    let stdout = printed.into_output();
    let last = [stderr.as_str(), &String::from_utf8_lossy(&stdout)].map(last_line).join(" ");
    let last = script.redact(last.trim());
    let last = if last.is_empty() { String::new() } else { format!("; the last that was said: {last}") };
    Err(match (progress, status) {
        (Progress::Before, _) if !sent => Broken::NotStarted(format!("the session ended at once{last}")),
        (Progress::Before, Some(code)) if code != 255 => {
            Broken::NoShell(format!("the login shell ended with code {code} and did not run /bin/sh{last}"))
        }
        _ => Broken::Lost(format!("the session ended before the script said that it had{last}")),
    })
}

/// Whether the host answers the greeting of the sftp protocol.
pub(super) async fn offers_sftp(session: &Session) -> bool {
    // A length, INIT, version 3; the answer is a length and VERSION.
    const INIT: [u8; 9] = [0, 0, 0, 5, 1, 0, 0, 0, 3];
    const VERSION: u8 = 2;
    let greeting = async {
        let mut subsystem = session.subsystem("sftp");
        let mut child = subsystem
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .await
            .ok()?;
        child.stdin().as_mut()?.write_all(&INIT).await.ok()?;
        let mut answer = [0; 5];
        child.stdout().as_mut()?.read_exact(&mut answer).await.ok()?;
        Some(answer[4] == VERSION)
    };
    timeout(OPENING, greeting).await.ok().flatten().unwrap_or(false)
}

/// Reads a stream up to its end frame, else to its end. Says whether it stayed within bounds.
async fn gather(mut stream: impl AsyncRead + Unpin, gathered: &mut Gathered, received: &AtomicU64) -> bool {
    let mut chunk = vec![0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        received.fetch_add(count as u64, Ordering::Relaxed);
        if matches!(gathered.take(&chunk[..count]), Progress::Ended(_)) {
            return true;
        }
        if gathered.len() > MOST {
            return false;
        }
    }
    true
}

/// An error with its causes.
pub(super) fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

fn last_line(text: &str) -> &str {
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    last.unwrap_or_default().trim_end_matches('.')
}
