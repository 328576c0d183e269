//! `trainplan jobs`: the runs of campaigns.

mod cancel;
mod failures;
mod fetch;
mod follow;
mod list;
mod names;
mod show;

use super::Failure;
use super::data_dir::DataDirArg;
use super::output::FormatArg;
use super::run::{CarryArgs, block_on};
use crate::journal::{Journal, Round};
use clap::Subcommand;
use list::RunFilter;
use std::path::PathBuf;

/// List, show, follow, cancel or fetch the runs of campaigns, and count their failures
///
/// Works from any terminal of this machine, whether or not `trainplan run` is active. RUN is a run's name (llama-8b),
/// a repeat of it (llama-8b#2 is the second), or, if several campaigns use the name, the name with its campaign
/// (nightly/llama-8b). The first 8 digits of an id also work. A name refers to the run in the campaign's newest round
/// (a round is one pass through the campaign). Rounds are numbered: nightly@2/llama-8b is the run in the second round
/// of nightly.
///
/// These commands don't read clusters.toml and have no --clusters option: each round keeps its cluster's ssh host.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan jobs list
  trainplan jobs show llama-405b
  trainplan jobs follow --log
  trainplan jobs follow nightly --on-end 'echo \"$TRAINPLAN_RUN $TRAINPLAN_OUTCOME\" | mail -s Trainplan me'
  trainplan jobs follow nightly --webhook https://hooks.example.com/trainplan
  trainplan jobs cancel llama-405b#2
  trainplan jobs fetch llama-405b --to results/
  trainplan jobs failures --cluster alpha

Exit codes:
  0  Success
  1  The command failed, or detached. Submitted jobs keep running
  2  Invalid arguments, or an unknown run
  4  A followed run failed, or could not be scored
  5  The cluster can't be reached. Submitted jobs keep running")]
pub(super) struct Args {
    #[command(subcommand)]
    command: JobsCommand,
}

#[derive(Debug, Subcommand)]
enum JobsCommand {
    /// List the runs of each campaign's newest round, and of unfinished rounds
    List {
        /// List the runs of all rounds
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        filter: RunFilter,
        #[command(flatten)]
        data: DataDirArg,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Show the events of a run, with their times and sources
    Show {
        /// Name of the run, or the beginning of its id
        #[arg(value_name = "RUN")]
        run: String,
        #[command(flatten)]
        data: DataDirArg,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Continue a campaign, or watch the process that is running it
    Follow {
        /// Name of the campaign, or of one of its rounds (nightly@2) [default: the newest unfinished one]
        #[arg(value_name = "CAMPAIGN")]
        campaign: Option<String>,
        #[command(flatten)]
        carry: CarryArgs,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Cancel runs, and wait until Slurm confirms it
    Cancel {
        /// Names of the runs, or the beginnings of their ids
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
        #[command(flatten)]
        carry: CarryArgs,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Fetch the files of a run from its cluster
    ///
    /// Files that were already fetched are skipped. If the command is interrupted, repeat it to continue.
    Fetch {
        /// Name of the run, or the beginning of its id
        #[arg(value_name = "RUN")]
        run: String,
        /// Folder for the files
        #[arg(long, value_name = "DIR", default_value = ".")]
        to: PathBuf,
        /// Fetch checkpoints as well, which can be terabytes
        #[arg(long)]
        checkpoints: bool,
        /// Fetch profiles as well
        #[arg(long)]
        profiles: bool,
        #[command(flatten)]
        data: DataDirArg,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Count the GPU-hours and interruptions of past runs, and print the failure rate to plan with
    ///
    /// Reads all rounds of the journal. Prints how the jobs ended, the interruptions per 1,000 GPU-hours with their
    /// exact 80 % interval, mean waiting times, and the --failure-rate to plan with.
    ///
    /// As in the published studies, an interruption is unplanned: a lost node, a preemption, a requeue, or a job that
    /// failed after its first step. A job that fails before its first step, runs out of memory, hits its time limit or
    /// is cancelled does not count. The logs of stored results show why a job failed.
    Failures {
        /// Only jobs on this cluster
        #[arg(long, value_name = "NAME")]
        cluster: Option<String>,
        #[command(flatten)]
        data: DataDirArg,
        #[command(flatten)]
        format: FormatArg,
    },
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            JobsCommand::List { all, filter, data, format } => {
                block_on(list::list(&data.open()?, all, &filter, format.choose()))
            }
            JobsCommand::Show { run, data, format } => {
                block_on(show::show(&data.open()?, &run, format.choose()))
            }
            JobsCommand::Follow { campaign, carry, format } => {
                block_on(follow::follow(campaign.as_deref(), &carry, format.choose()))
            }
            JobsCommand::Cancel { runs, carry, format } => {
                block_on(cancel::cancel(&runs, &carry, format.choose()))
            }
            JobsCommand::Failures { cluster, data, format } => {
                block_on(failures::failures(&data.open()?, cluster.as_deref(), format.choose()))
            }
            JobsCommand::Fetch { run, to, checkpoints, profiles, data, format } => {
                let what = (checkpoints, profiles);
                block_on(fetch::fetch_run(&data.open()?, &run, &to, what, format.choose()))
            }
        }
    }
}

/// Returns since when no process has observed a round's jobs; none if one does, or the round is over.
fn unwatched(journal: &Journal, round: &Round) -> Option<i64> {
    let free = round.ended_ms.is_none() && journal.carried_out_by(round).is_none();
    free.then(|| round.seen_ms.unwrap_or(round.begun_ms))
}
