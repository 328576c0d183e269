//! Carrying a campaign out: begin a round or go on with one, and tell what became of it.

use super::super::data_dir::DataDirArg;
use super::super::output::{self, Format};
use super::super::summary::{self, Summary};
use super::super::watch::{self, Lines, Pause, Screen};
use super::super::{Failure, note};
use crate::conduct::{ConductOptions, Conductor, Ending, Observer, Order, RoundFigures, RunOutcome};
use crate::data::DataDir;
use crate::journal::{Journal, Plan, Round, Run, now_ms};
use crate::secrets;
use crate::slurm::sha256;
use crate::ssh::{Link, LinkOptions};
use crate::store::Store;
use crate::upload;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use trainplan_shared::campaign::{Campaign, Cluster, Planned, Upload};
use trainplan_shared::launch::{Style, TimeLimit};
use trainplan_shared::link;
use trainplan_shared::result::{Comparable, Launched, Predicted};
use uuid::Uuid;

/// How to carry out and to tell of it.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CarryArgs {
    #[command(flatten)]
    pub(in crate::cli) data: DataDirArg,
    /// Runs that may be in Slurm's hands at once
    #[arg(long, value_name = "RUNS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    at_once: u32,
    /// Seconds between two looks at the cluster, at least
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = interval)]
    interval: f64,
    /// Say that a run hangs after so many seconds without a step; ten times a step's time at least
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    hang_after: u64,
    /// End with code 5 when the cluster is out of reach for so many minutes; what runs there goes on [default: for ever on a
    /// terminal, else 60]
    #[arg(long, value_name = "MINUTES", value_parser = seconds)]
    patience: Option<f64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "give a number, 0 or more".into())
}

fn interval(text: &str) -> Result<f64, String> {
    seconds(text).ok().filter(|seconds| *seconds >= 0.2).ok_or_else(|| "give a number, 0.2 or more".into())
}

impl CarryArgs {
    fn options(&self) -> ConductOptions {
        let usual = if io::stderr().is_terminal() { None } else { Some(60.0) };
        ConductOptions {
            interval_s: self.interval,
            at_once: self.at_once as usize,
            hang_after_s: self.hang_after,
            patience: self
                .patience
                .or(usual)
                .map(|minutes| Duration::from_secs_f64((minutes * 60.0).min(1e9))),
        }
    }
}

/// Begins a round of a campaign, or goes on with the one that is not over.
pub(super) fn campaign(
    campaign: &Campaign,
    cluster: &Cluster,
    planned: &[Planned],
    args: &CarryArgs,
    new: bool,
    format: Format,
) -> Result<(), Failure> {
    let data = args.data.open()?;
    block_on(async {
        let journal = Journal::open(&data).await?;
        let _lock = journal.lock(campaign.name.as_str(), cluster.name.as_str())?;
        let plans: Vec<Plan> = planned.iter().flat_map(plans_of).collect();
        let all = plans.iter().flat_map(|plan| plan.secrets.iter().map(|(name, secret)| (name, secret)));
        secrets::check(all).await?;
        check_uploads(planned).await?;
        let text = serde_json::to_string(&plans).map_err(|error| Failure::Format(error.to_string()))?;
        let digest = sha256(&text);
        let open = journal.rounds().await?.into_iter().find(|round| {
            round.ended_ms.is_none()
                && round.campaign == campaign.name.as_str()
                && round.cluster == cluster.name.as_str()
        });
        let round = match open {
            Some(round) if !new => {
                let since = watch::clock(round.begun_ms);
                if round.sha256 != digest {
                    return Err(Failure::Changed { campaign: round.campaign, since });
                }
                note(&format!("going on with what was begun at {since}"));
                round
            }
            _ => {
                let round = Round {
                    id: Uuid::now_v7().to_string(),
                    campaign: campaign.name.to_string(),
                    cluster: cluster.name.to_string(),
                    ssh: cluster.ssh.clone(),
                    sha256: digest,
                    begun_ms: now_ms(),
                    seen_ms: None,
                    ended_ms: None,
                };
                let runs: Vec<(String, Plan)> =
                    plans.into_iter().map(|plan| (Uuid::now_v7().to_string(), plan)).collect();
                journal.begin(&round, &runs).await?;
                round
            }
        };
        carry(&data, &journal, round, args, format).await
    })
}

/// Sees whether servers will let us in, as far as that can be seen here.
async fn check_uploads(planned: &[Planned<'_>]) -> Result<(), Failure> {
    let uploads: BTreeSet<&Upload> = planned.iter().filter_map(|run| run.upload).collect();
    for upload in uploads {
        secrets::find(&upload::token_of(&upload.to), &upload.token).await?;
        if let Some(warning) = upload::goes_open(&upload.to) {
            note(&warning);
        }
    }
    Ok(())
}

/// Runs what waits to its end.
pub(in crate::cli) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(future);
    // A question that nobody answered would keep it.
    runtime.shutdown_background();
    done
}

/// Carries a round out, which is locked.
pub(in crate::cli) async fn carry(
    data: &DataDir,
    journal: &Journal,
    round: Round,
    args: &CarryArgs,
    format: Format,
) -> Result<(), Failure> {
    carry_until(data, journal, round, args, format, Vec::new()).await
}

/// Carries a round out, submitting nothing, until those of its runs are over; with none, until all are.
pub(in crate::cli) async fn carry_until(
    data: &DataDir,
    journal: &Journal,
    round: Round,
    args: &CarryArgs,
    format: Format,
    only: Vec<String>,
) -> Result<(), Failure> {
    let leaves_early = !only.is_empty();
    let store = Store::open(data).await?;
    let link =
        Link::new(&round.ssh, LinkOptions { cluster: Some(round.cluster.clone()), ..LinkOptions::default() });
    let live = matches!(format, Format::Table) && io::stderr().is_terminal();
    let screen = Screen::new(live);
    let pause = live.then(|| screen.pause());
    let mut reporter: Box<dyn Reporter> = match format {
        Format::Json => Box::new(Lines::new(&round.campaign)),
        _ => Box::new(screen),
    };
    let (orders, mut heard) = mpsc::unbounded_channel();
    let ears = tokio::spawn(hear(orders, pause));
    let mut conductor =
        Conductor::take_up(journal, &store, link.clone(), round.clone(), args.options()).await?.until(only);
    let ended = conductor.conduct(reporter.observer(), &mut heard).await;
    if let Ok(Ending::Over) = ended {
        conductor.finish_uploads(reporter.observer(), &mut heard).await;
    }
    ears.abort();
    reporter.finish();
    let figures = conductor.figures();
    // Another process may have sent a result of ours.
    let runs = journal.runs(&round.id).await?;
    tell(&round, &runs, format)?;
    tell_figures(&link, &figures);
    let others = journal.due().await?.iter().filter(|due| runs.iter().all(|run| run.id != due.run)).count();
    if others > 0 {
        note(&format!("{others} results of other rounds are still to be sent: `trainplan upload --pending`"));
    }
    match ended? {
        Ending::Over if runs.iter().all(|run| RunOutcome::of(run) == RunOutcome::Scored) => Ok(()),
        Ending::Over => Err(Failure::RunFailed),
        Ending::Left if leaves_early => Ok(()),
        Ending::Left => {
            let open = runs.iter().filter(|run| !run.status.is_over()).count();
            Err(Failure::Left { open, all: runs.len(), campaign: round.campaign })
        }
    }
}

/// An observer with an end.
trait Reporter {
    fn observer(&mut self) -> &mut dyn Observer;
    fn finish(&mut self) {}
}

impl Reporter for Lines {
    fn observer(&mut self) -> &mut dyn Observer {
        self
    }
}

impl Reporter for Screen {
    fn observer(&mut self) -> &mut dyn Observer {
        self
    }

    fn finish(&mut self) {
        Screen::finish(self);
    }
}

fn tell_figures(link: &Link, figures: &RoundFigures) {
    let sent = link.figures();
    tracing::info!(
        "{} remote commands ({} polls), {} bytes received, {} reconnections in {:.0} s",
        sent.commands,
        figures.polls,
        sent.received,
        sent.reconnects,
        figures.elapsed_s
    );
}

/// Takes Ctrl-C and the like: where a screen can be paused it asks what is meant, else it leaves.
async fn hear(orders: mpsc::UnboundedSender<Order>, pause: Option<Pause>) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    loop {
        let interrupted = tokio::select! {
            _ = interrupt.recv() => true,
            _ = terminate.recv() => false,
        };
        let Some(pause) = pause.as_ref().filter(|_| interrupted) else {
            let _ = orders.send(Order::Detach);
            return;
        };
        pause.begin().await;
        let asked = tokio::task::spawn_blocking(ask);
        let order = tokio::select! {
            answer = asked => answer.ok().flatten(),
            // A second Ctrl-C needs no answer.
            _ = interrupt.recv() => {
                let _ = writeln!(io::stderr());
                Some(Order::Detach)
            }
        };
        pause.end();
        if let Some(order) = order {
            let _ = orders.send(order);
            if order == Order::Detach {
                return;
            }
        }
    }
}

fn ask() -> Option<Order> {
    let _ = write!(
        io::stderr(),
        "\n  d  detach: leave now; jobs go on, what is not submitted waits for the next `trainplan run`\n  \
         q  quit: submit nothing more, leave when what runs is over\n  c  cancel: end every job, and wait until Slurm says so\n  \
         Enter alone goes on. Ctrl-C again detaches.\n  [d, q or c, and Enter] "
    );
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok()?;
    match answer.trim() {
        "d" => Some(Order::Detach),
        "q" => Some(Order::Quit),
        "c" => Some(Order::Cancel),
        _ => None,
    }
}

fn tell(round: &Round, runs: &[Run], format: Format) -> Result<(), Failure> {
    let summaries: Vec<Summary> = runs.iter().map(|run| Summary::of(round, run, None)).collect();
    match format {
        Format::Json => {
            for summary in &summaries {
                let line = serde_json::to_string(&Ended { event: "summary", summary })
                    .map_err(|error| Failure::Format(error.to_string()))?;
                output::text_line(&line)?;
            }
            Ok(())
        }
        Format::Csv | Format::Table => summary::table(&summaries),
    }
}

#[derive(Serialize)]
struct Ended<'a> {
    event: &'static str,
    #[serde(flatten)]
    summary: &'a Summary<'a>,
}

/// The plans of a run's repeats.
fn plans_of(planned: &Planned) -> Vec<Plan> {
    let Planned { run, launch, predicted, .. } = planned;
    let estimate = &predicted.estimate;
    let basis = estimate.evidence.kind.id();
    let is_job = launch.style == Style::MegatronLm;
    let script = if is_job { launch.script.with_first(STATE_LINES) } else { launch.script.to_string() };
    let plan = |repeat| Plan {
        name: run.name.to_string(),
        repeat,
        repeats: planned.repeats,
        after: run.after.iter().map(ToString::to_string).collect(),
        singleton: planned.singleton,
        queue_budget_s: planned.queue_budget.map(TimeLimit::seconds).map(u64::from),
        recipe: planned.recipe.clone(),
        scenario: link::write(&planned.spec),
        gpus: predicted.scenario.layout.gpus(),
        script: script.clone(),
        is_job,
        secrets: planned.env.secrets().map(|(name, secret)| (name.to_string(), secret.clone())).collect(),
        job_names: launch.outputs.jobs.clone(),
        experiment_dir: launch.outputs.experiment_dir.shell(),
        log_glob: launch.outputs.log_glob.shell(),
        launched: Launched {
            release: launch.release.map(|release| release.id().to_string()),
            style: launch.style.to_string(),
            script_sha256: sha256(&script),
            steps: launch.steps,
            comparable: Comparable { yes: launch.comparable.yes, reasons: launch.comparable.reasons.clone() },
        },
        predicted: Predicted {
            step_time_s: estimate.step_time_s,
            memory_bytes: estimate.memory.total_bytes(),
            capacity_bytes: estimate.memory.capacity_bytes,
            basis: basis.into(),
            calibration: concat!("trainplan ", env!("CARGO_PKG_VERSION")).into(),
        },
        baseline_s: predicted.published.map(|(_, baseline)| baseline.step_time_s),
        upload: planned.upload.cloned(),
    };
    (1..=planned.repeats).map(plan).collect()
}

/// Lines with which a job records when it starts and how it ends, for clusters whose Slurm forgets its jobs.
const STATE_LINES: &str = "\
if [ -n \"${TRAINPLAN_STATE:-}\" ]; then
    echo \"start $SLURM_JOB_ID $(date +%s)\" >>\"$TRAINPLAN_STATE\"
    trap 'code=$?; echo \"end $SLURM_JOB_ID $(date +%s) $code\" >>\"$TRAINPLAN_STATE\"' EXIT
fi
";
