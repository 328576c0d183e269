//! A link to a host, which is made again when it breaks.

use super::config::{ControlDir, ControlDirError};
use super::master::{Destination, Master, PROBING, ask_jump_host};
use super::script::Script;
use super::session::{Answer, Broken, exchange, offers_sftp};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Sessions at once. sshd takes ten of a connection by default, and a probe may come besides each.
const SESSIONS: usize = 4;

/// The pause after the first failure, doubled by each that follows, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How a link is made.
#[derive(Debug, Clone)]
pub(crate) struct LinkOptions {
    /// The profile that the host stands in, if it does: a person is told of that.
    pub(crate) cluster: Option<String>,
    /// How long a connection that nobody ends outlives its last use.
    pub(crate) idle: Duration,
    /// The user's own configuration, if it is not `~/.ssh/config`.
    pub(crate) ssh_config: Option<PathBuf>,
}

impl Default for LinkOptions {
    fn default() -> Self {
        LinkOptions { cluster: None, idle: Duration::from_secs(600), ssh_config: None }
    }
}

/// What a script did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    /// What it printed, as it is, and nothing that the login shell did.
    pub(crate) stdout: Vec<u8>,
    /// What it said besides, without the secrets that it was given.
    pub(crate) stderr: String,
    /// Its exit code.
    pub(crate) code: i32,
    /// How long it took, from here.
    pub(crate) duration: Duration,
}

/// Why a script did not give its output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkError {
    /// The host can't be reached. Nothing was started, so it is safe to try again.
    #[error("{why}")]
    Unreachable {
        /// What stood in the way.
        why: String,
        /// After which time trying again can do better; before, it gives the same error at once.
        retry_after: Duration,
    },
    /// The script may have run, or still run.
    #[error("{why}; it may have run, or still run")]
    Lost {
        /// What happened.
        why: String,
    },
    /// The host does not let us in, or can't run scripts: trying again alone won't help.
    #[error("{why}: {what_to_do}")]
    Refused {
        /// What it refused.
        why: String,
        /// What a person can do.
        what_to_do: String,
    },
}

/// What a link has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Scripts that were sent.
    pub(crate) commands: u64,
    /// Bytes that came back, frames and noise included.
    pub(crate) received: u64,
    /// How often a connection was made again.
    pub(crate) reconnects: u64,
}

/// A link to a host. Its clones are the same link; several tasks may use it at once.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shared>);

struct Shared {
    host: String,
    options: LinkOptions,
    permits: Semaphore,
    /// Held while a connection is made: the others wait for it.
    master: tokio::sync::Mutex<Option<Arc<Master>>>,
    trouble: Mutex<Trouble>,
    commands: AtomicU64,
    received: AtomicU64,
    connections: AtomicU64,
}

/// What went wrong since a script last ran to its end.
#[derive(Debug, Default)]
struct Trouble {
    failures: u32,
    ready_at: Option<Instant>,
    last: Option<LinkError>,
}

impl Link {
    /// A link to a host as ssh takes it. It connects when it is first used.
    pub(crate) fn new(host: &str, options: LinkOptions) -> Link {
        Link(Arc::new(Shared {
            host: host.to_string(),
            options,
            permits: Semaphore::new(SESSIONS),
            master: tokio::sync::Mutex::new(None),
            trouble: Mutex::default(),
            commands: AtomicU64::new(0),
            received: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        }))
    }

    /// Runs a script; `limit` is for the script itself, connecting and waiting for other sessions come besides.
    ///
    /// A script that may have started is never run again from here.
    ///
    /// # Errors
    /// Whether it may have run is in the kind of the error.
    pub(crate) async fn run(&self, script: &Script, limit: Duration) -> Result<Output, LinkError> {
        let shared = &*self.0;
        script.check().map_err(|why| LinkError::Refused {
            why: format!("{}: {}: {why}", shared.host, script.name()),
            what_to_do: "name it by letters, digits and _, and give it text without NUL".into(),
        })?;
        // Nobody closes the semaphore.
        let _permit = shared.permits.acquire().await;
        let mut stale = true;
        loop {
            let master = self.master().await?;
            let start = Instant::now();
            match exchange(master.session(), script, limit, &shared.received).await {
                Ok(Answer { stdout, stderr, code }) => {
                    shared.commands.fetch_add(1, Ordering::Relaxed);
                    *self.trouble() = Trouble::default();
                    let (bytes, ms) = (stdout.len(), start.elapsed().as_millis());
                    tracing::debug!(host = shared.host, script = script.name(), code, bytes, ms, "ran");
                    return Ok(Output { stdout, stderr, code, duration: start.elapsed() });
                }
                // The connection broke while nobody looked: that is found out now, and nothing has started.
                Err(Broken::NotStarted(_)) if stale && !master.is_there() => {
                    stale = false;
                    self.forget(&master).await;
                }
                Err(broken) => return Err(self.judge(script, limit, &master, broken).await),
            }
        }
    }

    /// Measures a round trip.
    ///
    /// # Errors
    /// There was none.
    pub(crate) async fn probe(&self, limit: Duration) -> Result<Duration, LinkError> {
        self.run(&Script::new("probe", "true"), limit).await.map(|output| output.duration)
    }

    /// Whether the host offers file transfer by sftp, which some sites turn off.
    ///
    /// # Errors
    /// There is no connection.
    pub(crate) async fn offers_sftp(&self) -> Result<bool, LinkError> {
        let _permit = self.0.permits.acquire().await;
        Ok(offers_sftp(self.master().await?.session()).await)
    }

    /// What it has cost so far.
    pub(crate) fn figures(&self) -> Figures {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Figures {
            commands: count(&self.0.commands),
            received: count(&self.0.received),
            reconnects: count(&self.0.connections).saturating_sub(1),
        }
    }

    /// The master to use, connected to if there is none.
    async fn master(&self) -> Result<Arc<Master>, LinkError> {
        let shared = &*self.0;
        let mut current = shared.master.lock().await;
        if let Some(master) = &*current {
            return Ok(Arc::clone(master));
        }
        if let Some(error) = self.trouble().stands_in_the_way() {
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
                Err(self.trouble().failed(error))
            }
        }
    }

    /// A master that lives already, the person's own if need be, else a new one.
    async fn connect(&self) -> Result<Master, LinkError> {
        let Shared { host, options, .. } = &*self.0;
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

    /// What a broken exchange means, once it is clear whether the connection is to blame.
    async fn judge(
        &self,
        script: &Script,
        limit: Duration,
        master: &Arc<Master>,
        broken: Broken,
    ) -> LinkError {
        let Shared { host, commands, received, .. } = &*self.0;
        let name = script.name();
        if !matches!(broken, Broken::NotStarted(_)) {
            commands.fetch_add(1, Ordering::Relaxed);
        }
        // A host without a shell for us does not answer a probe either; that is no fault of the connection.
        let works =
            matches!(broken, Broken::NoShell(_)) || master.is_there() && master.answers(received).await;
        let error = match broken {
            Broken::NoShell(why) => LinkError::Refused {
                why: format!("{host}: {name}: {why}"),
                what_to_do: "log in there by hand and see that `/bin/sh -s` works".into(),
            },
            Broken::NotStarted(why) => {
                LinkError::Unreachable { why: format!("{host}: {name}: {why}"), retry_after: PAUSE }
            }
            Broken::Lost(why) => {
                let why = if works { why } else { "the connection broke before the script ended".into() };
                LinkError::Lost { why: format!("{host}: {name}: {why}") }
            }
            Broken::Silent => {
                let link = match works {
                    true => "the host itself answers".to_string(),
                    false => format!("the host does not answer within {} s either", PROBING.as_secs()),
                };
                LinkError::Lost {
                    why: format!("{host}: {name}: no end within {:.0} s, and {link}", limit.as_secs_f64()),
                }
            }
        };
        if works {
            return error;
        }
        // Of several scripts over one connection, one counts its break.
        match self.forget(master).await {
            true => self.trouble().broke(error),
            false => in_time(error, Duration::ZERO),
        }
    }

    /// Gives a master up, unless another task has done so already.
    async fn forget(&self, master: &Arc<Master>) -> bool {
        let mut current = self.0.master.lock().await;
        let is_current = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, master));
        if is_current {
            *current = None;
            master.evict().await;
        }
        is_current
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Link").field(&self.0.host).finish()
    }
}

impl Trouble {
    /// Counts the break of a connection. The first may be made good at once; one that breaks again and again may not.
    fn broke(&mut self, error: LinkError) -> LinkError {
        if self.failures > 0 {
            return self.failed(error);
        }
        self.failures = 1;
        in_time(error, Duration::ZERO)
    }

    /// Counts a failure, and gives the error as the caller is to see it.
    fn failed(&mut self, error: LinkError) -> LinkError {
        let longest = matches!(error, LinkError::Refused { .. });
        let pause = if longest { LONGEST_PAUSE } else { pause(self.failures) };
        self.failures += 1;
        self.ready_at = Some(Instant::now() + pause);
        self.last = Some(error.clone());
        in_time(error, pause)
    }

    /// The last error for as long as a new try has to wait. A host that refuses us is asked no more often than one that
    /// is down: too many attempts, and it locks the user out.
    fn stands_in_the_way(&self) -> Option<LinkError> {
        let left = self.ready_at?.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        Some(match self.last.clone()? {
            // This script has not run.
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

/// The pause after so many failures before; somewhat random, so that runners that lost a host together do not come back
/// together.
fn pause(failures: u32) -> Duration {
    let full = PAUSE.saturating_mul(2u32.saturating_pow(failures.min(16))).min(LONGEST_PAUSE);
    full.mul_f64(0.5 + 0.5 * fastrand::f64())
}
