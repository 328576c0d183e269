//! Runs a script in a session of a master.

use super::frame::{Frame, FramedStream, StreamProgress};
use super::script::{SHELL, Script};
use openssh::{Session, Stdio};
use std::error::Error;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Time limit for opening a session, which takes a few round trips.
const OPENING: Duration = Duration::from_secs(10);

/// The most output that is accepted of a script.
const MOST: usize = 64 << 20;

/// How late standard error may be after the output, and the exit status after both.
const LAG: Duration = Duration::from_secs(2);

/// The answer of a script that ended.
#[derive(Debug)]
pub(super) struct SessionAnswer {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
    pub(super) code: i32,
}

/// Why a script has no answer.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// No shell has read the script.
    NotStarted(String),
    /// The session ended without a shell that runs scripts.
    NoShell(String),
    /// The script may have run, or may still be running.
    Lost(String),
    /// The same, after the time limit.
    Silent,
}

/// Runs a script to its end frame. Background processes that it leaves do not delay the answer.
pub(super) async fn exchange(
    session: &Session,
    script: &Script,
    limit: Duration,
    received: &AtomicU64,
) -> Result<SessionAnswer, ExchangeError> {
    let frame = Frame::new();
    let text = script.text(&frame);
    let mut command = session.raw_command(SHELL);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let opened = timeout(OPENING.min(limit), command.spawn()).await;
    let mut child = match opened {
        Ok(Ok(child)) => child,
        Ok(Err(error)) => return Err(ExchangeError::NotStarted(in_full(&error))),
        Err(_) => return Err(ExchangeError::NotStarted("the connection does not answer".into())),
    };
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin().take(), child.stdout().take(), child.stderr().take())
    else {
        return Err(ExchangeError::NotStarted("the session has no standard streams".into()));
    };
    let (mut printed, mut said) = (FramedStream::new(&frame), FramedStream::new(&frame));
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
    let Ok(fits) = timeout(limit, talk).await else { return Err(ExchangeError::Silent) };
    if !fits {
        return Err(ExchangeError::Lost(format!("it printed more than {} MiB", MOST >> 20)));
    }
    let progress = printed.progress();
    let stderr = script.redact(&String::from_utf8_lossy(&said.into_output()));
    if let StreamProgress::Ended(code) = progress {
        return Ok(SessionAnswer { stdout: printed.into_output(), stderr, code });
    }
    // Exit status 255 may be the script's, a lost connection's or a killed shell's.
    let status = timeout(LAG, child.wait()).await.ok().and_then(Result::ok).and_then(|status| status.code());
    let stdout = printed.into_output();
    let last = [stderr.as_str(), &String::from_utf8_lossy(&stdout)].map(last_line).join(" ");
    let last = script.redact(last.trim());
    let last = if last.is_empty() { String::new() } else { format!(" (last output: {last})") };
    Err(match (progress, status) {
        (StreamProgress::Before, _) if !sent => {
            ExchangeError::NotStarted(format!("the session ended at once{last}"))
        }
        (StreamProgress::Before, Some(code)) if code != 255 => ExchangeError::NoShell(format!(
            "the login shell ended with exit code {code} and did not run /bin/sh{last}"
        )),
        _ => ExchangeError::Lost(format!("the session ended before the script did{last}")),
    })
}

/// Returns whether the host answers the greeting of the sftp protocol.
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

/// Reads a stream up to its end frame, or to its end. Returns whether its length is acceptable.
async fn gather(mut source: impl AsyncRead + Unpin, stream: &mut FramedStream, received: &AtomicU64) -> bool {
    let mut chunk = vec![0; 64 << 10];
    while let Ok(count @ 1..) = source.read(&mut chunk).await {
        received.fetch_add(count as u64, Ordering::Relaxed);
        if matches!(stream.take(&chunk[..count]), StreamProgress::Ended(_)) {
            return true;
        }
        if stream.len() > MOST {
            return false;
        }
    }
    true
}

/// Returns an error's message with its causes.
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
