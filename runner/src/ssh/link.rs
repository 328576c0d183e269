//! A link to a host. Its connection is restored when it breaks.

use super::config::{ControlDir, ControlDirError};
use super::error::LinkError;
use super::master::{Destination, Master, PROBING, ask_jump_host};
use super::script::Script;
use super::session::{ExchangeError, SessionAnswer, exchange, offers_sftp};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The most sessions at once. sshd allows ten a connection by default, and each may need another one for a
/// probe.
const SESSIONS: usize = 4;

/// The pause after the first failure; each further failure doubles it, up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How a link connects.
#[derive(Debug, Clone)]
pub(crate) struct LinkOptions {
    /// The name of the host's profile, for messages.
    pub(crate) cluster: Option<String>,
    /// How long an idle connection stays open if it is not closed.
    pub(crate) idle: Duration,
    /// The user's ssh configuration, if it is not `~/.ssh/config`.
    pub(crate) ssh_config: Option<PathBuf>,
}

impl Default for LinkOptions {
    fn default() -> Self {
        LinkOptions { cluster: None, idle: Duration::from_secs(600), ssh_config: None }
    }
}

/// The output of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptOutput {
    /// Without what the login shell printed.
    pub(crate) stdout: Vec<u8>,
    /// Without the values of secrets.
    pub(crate) stderr: String,
    pub(crate) code: i32,
    /// Time from sending the script to the end of its output.
    pub(crate) duration: Duration,
}

/// What a link has transferred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LinkFigures {
    /// Number of scripts sent.
    pub(crate) commands: u64,
    /// Number of bytes received, with frames and the login shell's output.
    pub(crate) received: u64,
    /// Number of reconnections.
    pub(crate) reconnects: u64,
}

/// A link to a host. Clones share it, and several tasks may use it at once.
#[derive(Clone)]
pub(crate) struct Link(Arc<LinkState>);

struct LinkState {
    host: String,
    options: LinkOptions,
    permits: Semaphore,
    /// Locked while a connection is made, so that other tasks wait for it.
    master: tokio::sync::Mutex<Option<Arc<Master>>>,
    failures: Mutex<FailureHistory>,
    commands: AtomicU64,
    received: AtomicU64,
    connections: AtomicU64,
}

/// The failures since the last script that ran to its end.
#[derive(Debug, Default)]
struct FailureHistory {
    count: u32,
    ready_at: Option<Instant>,
    last: Option<LinkError>,
}

impl Link {
    /// Returns a link to a host, named as for ssh. It connects when it is first used.
    pub(crate) fn new(host: &str, options: LinkOptions) -> Link {
        Link(Arc::new(LinkState {
            host: host.to_string(),
            options,
            permits: Semaphore::new(SESSIONS),
            master: tokio::sync::Mutex::new(None),
            failures: Mutex::default(),
            commands: AtomicU64::new(0),
            received: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        }))
    }

    /// Runs a script. The limit does not include the time to connect, or to wait for other sessions.
    ///
    /// A script that may have started is not run again.
    ///
    /// # Errors
    /// The kind of the error says whether the script may have run.
    pub(crate) async fn run(&self, script: &Script, limit: Duration) -> Result<ScriptOutput, LinkError> {
        let shared = &*self.0;
        script.check().map_err(|why| LinkError::Refused {
            why: format!("{}: {}: {why}", shared.host, script.name()),
            what_to_do: "Use letters, digits and _ in the name of a variable, and no NUL in its value."
                .into(),
        })?;
        // The semaphore is never closed.
        let _permit = shared.permits.acquire().await;
        let mut stale = true;
        loop {
            let master = self.master().await?;
            let start = Instant::now();
            match exchange(master.session(), script, limit, &shared.received).await {
                Ok(SessionAnswer { stdout, stderr, code }) => {
                    shared.commands.fetch_add(1, Ordering::Relaxed);
                    *self.failures() = FailureHistory::default();
                    let (bytes, ms) = (stdout.len(), start.elapsed().as_millis());
                    tracing::debug!(host = shared.host, script = script.name(), code, bytes, ms, "ran");
                    return Ok(ScriptOutput { stdout, stderr, code, duration: start.elapsed() });
                }
                // The connection broke while it was idle. The script has not started.
                Err(ExchangeError::NotStarted(_)) if stale && !master.is_there() => {
                    stale = false;
                    self.forget(&master).await;
                }
                Err(broken) => return Err(self.judge(script, limit, &master, broken).await),
            }
        }
    }

    /// Measures the time of a round trip.
    pub(crate) async fn probe(&self, limit: Duration) -> Result<Duration, LinkError> {
        self.run(&Script::new("probe", "true"), limit).await.map(|output| output.duration)
    }

    /// Returns whether the host offers sftp. Some sites turn it off.
    pub(crate) async fn offers_sftp(&self) -> Result<bool, LinkError> {
        let _permit = self.0.permits.acquire().await;
        Ok(offers_sftp(self.master().await?.session()).await)
    }

    /// Returns what the link has transferred so far.
    pub(crate) fn figures(&self) -> LinkFigures {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        LinkFigures {
            commands: count(&self.0.commands),
            received: count(&self.0.received),
            reconnects: count(&self.0.connections).saturating_sub(1),
        }
    }

    /// Returns the master. Connects if necessary.
    async fn master(&self) -> Result<Arc<Master>, LinkError> {
        let shared = &*self.0;
        let mut current = shared.master.lock().await;
        if let Some(master) = &*current {
            return Ok(Arc::clone(master));
        }
        if let Some(error) = self.failures().too_early() {
            return Err(error);
        }
        match self.connect().await {
            Ok(master) => {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(host = shared.host, "connected");
                Ok(Arc::clone(current.insert(Arc::new(master))))
            }
            Err(error) => {
                tracing::debug!(host = shared.host, %error, "not connected");
                Err(self.failures().failed(error))
            }
        }
    }

    /// Adopts a master of `trainplan connect` or of the user's ssh if one works, else starts one.
    async fn connect(&self) -> Result<Master, LinkError> {
        let LinkState { host, options, .. } = &*self.0;
        let connect = match &options.cluster {
            Some(name) => format!("trainplan connect --cluster {name}"),
            None => format!("trainplan connect {host}"),
        };
        let here = |error: ControlDirError| LinkError::Refused {
            why: error.to_string(),
            what_to_do: error.what_to_do().into(),
        };
        let directory = ControlDir::open().map_err(here)?;
        directory.sweep();
        let config = directory.silent(options.ssh_config.as_deref()).map_err(here)?;
        let destination = Destination::of(host, &config).await.map_err(|failed| failed.of(host, &connect))?;
        let kept = directory.kept(&destination.identity);
        for socket in [Some(kept), destination.control_path].into_iter().flatten() {
            if let Some(master) = Master::adopt(socket).await {
                return Ok(master);
            }
        }
        match Master::start(host, &directory, &config, options.idle).await {
            Ok(master) => Ok(master),
            Err(failed) if destination.is_behind => {
                Err(ask_jump_host(failed, host, &config).await.of(host, &connect))
            }
            Err(failed) => Err(failed.of(host, &connect)),
        }
    }

    /// Turns a failed exchange into an error, after a test whether the connection is the cause.
    async fn judge(
        &self,
        script: &Script,
        limit: Duration,
        master: &Arc<Master>,
        broken: ExchangeError,
    ) -> LinkError {
        let LinkState { host, commands, received, .. } = &*self.0;
        let name = script.name();
        if !matches!(broken, ExchangeError::NotStarted(_)) {
            commands.fetch_add(1, Ordering::Relaxed);
        }
        // A host without a shell for the user can't answer a probe, though the connection works.
        let works = matches!(broken, ExchangeError::NoShell(_))
            || master.is_there() && master.answers(received).await;
        let error = match broken {
            ExchangeError::NoShell(why) => LinkError::Refused {
                why: format!("{host}: {name}: {why}"),
                what_to_do: "Log in there yourself and check that `/bin/sh -s` works.".into(),
            },
            ExchangeError::NotStarted(why) => {
                LinkError::Unreachable { why: format!("{host}: {name}: {why}"), retry_after: PAUSE }
            }
            ExchangeError::Lost(why) => {
                let why = if works { why } else { "the connection broke before the script ended".into() };
                LinkError::Lost { why: format!("{host}: {name}: {why}") }
            }
            ExchangeError::Silent => {
                let link = match works {
                    true => "but the host answers".to_string(),
                    false => format!("and the host does not answer within {} s", PROBING.as_secs()),
                };
                LinkError::Lost {
                    why: format!("{host}: {name}: not finished within {:.0} s, {link}", limit.as_secs_f64()),
                }
            }
        };
        if works {
            return error;
        }
        // If several scripts used the connection, its break counts once.
        match self.forget(master).await {
            true => self.failures().broke(error),
            false => in_time(error, Duration::ZERO),
        }
    }

    /// Ends a master. Returns false if another task has done so.
    async fn forget(&self, master: &Arc<Master>) -> bool {
        let mut current = self.0.master.lock().await;
        let is_current = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, master));
        if is_current {
            *current = None;
            master.evict().await;
        }
        is_current
    }

    fn failures(&self) -> MutexGuard<'_, FailureHistory> {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Link").field(&self.0.host).finish()
    }
}

impl FailureHistory {
    /// Counts the break of a connection. After the first one, a new connection is tried at once.
    fn broke(&mut self, error: LinkError) -> LinkError {
        if self.count > 0 {
            return self.failed(error);
        }
        self.count = 1;
        in_time(error, Duration::ZERO)
    }

    /// Counts a failure. Returns the error with the pause before the next try.
    fn failed(&mut self, error: LinkError) -> LinkError {
        let longest = matches!(error, LinkError::Refused { .. });
        let pause = if longest { LONGEST_PAUSE } else { pause(self.count) };
        self.count += 1;
        self.ready_at = Some(Instant::now() + pause);
        self.last = Some(error.clone());
        in_time(error, pause)
    }

    /// Returns the last error while it is too early for a new try. That holds for a refusal as well: too many
    /// attempts could lock the user out.
    fn too_early(&self) -> Option<LinkError> {
        let left = self.ready_at?.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        Some(match self.last.clone()? {
            // The present script has not been started.
            LinkError::Lost { why } => LinkError::Unreachable { why, retry_after: left },
            error => in_time(error, left),
        })
    }
}

fn in_time(error: LinkError, left: Duration) -> LinkError {
    match error {
        LinkError::Unreachable { why, .. } => LinkError::Unreachable { why, retry_after: left },
        error => error,
    }
}

/// Returns the pause after this many failures, with some randomness so that several runners don't reconnect
/// at once.
fn pause(failures: u32) -> Duration {
    let full = PAUSE.saturating_mul(2u32.saturating_pow(failures.min(16))).min(LONGEST_PAUSE);
    full.mul_f64(0.5 + 0.5 * fastrand::f64())
}
