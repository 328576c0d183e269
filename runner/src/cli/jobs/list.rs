//! `trainplan jobs list`: the runs of rounds, with their states.

use super::names::is_named;
use super::unwatched;
use crate::cli::output::{self, Format};
use crate::cli::summary::{ListedState, Summary, counts, csv, table};
use crate::cli::{Failure, note, watch};
use crate::data::DataDir;
use crate::journal::{Journal, Round};

/// Which runs to list.
#[derive(Debug, clap::Args)]
pub(super) struct RunFilter {
    /// Only runs of this campaign, or of one of its rounds (nightly@2)
    #[arg(long, value_name = "NAME")]
    campaign: Option<String>,
    /// Only runs on this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only runs in one of these states
    #[arg(long, value_enum, value_name = "STATE", value_delimiter = ',')]
    state: Vec<ListedState>,
}

impl RunFilter {
    fn takes_round(&self, round: &Round) -> bool {
        self.campaign.as_ref().is_none_or(|name| is_named(round, name))
            && self.cluster.as_ref().is_none_or(|cluster| round.cluster == *cluster)
    }

    fn takes(&self, run: &Summary) -> bool {
        self.state.is_empty() || self.state.contains(&run.listed)
    }
}

pub(super) async fn list(
    data: &DataDir,
    all: bool,
    filter: &RunFilter,
    format: Format,
) -> Result<(), Failure> {
    let journal = Journal::open(data).await?;
    let mut rounds = journal.rounds().await?;
    let is_any = !rounds.is_empty();
    rounds.retain(|round| {
        let is_listed =
            all || round.is_newest || round.ended_ms.is_none() || filter.campaign == Some(round.title());
        is_listed && filter.takes_round(round)
    });
    let mut of_rounds = Vec::new();
    for round in rounds {
        let runs = journal.runs(&round.id).await?;
        of_rounds.push((round, runs));
    }
    let mut listed: Vec<(&Round, Vec<Summary>)> = Vec::new();
    for (round, runs) in &of_rounds {
        let unwatched = unwatched(&journal, round);
        let runs = runs.iter().map(|run| Summary::of(round, run, unwatched));
        listed.push((round, runs.filter(|run| filter.takes(run)).collect()));
    }
    listed.retain(|(_, runs)| !runs.is_empty());
    match format {
        Format::Json => {
            let every: Vec<&Summary> = listed.iter().flat_map(|(_, runs)| runs).collect();
            return output::json(&every);
        }
        Format::Csv => return csv(listed.iter().flat_map(|(_, runs)| runs)),
        Format::Table => {}
    }
    if !is_any {
        note("No campaigns have been run yet. Start one with `trainplan run CAMPAIGN`.");
    } else if listed.is_empty() {
        note("No run matches. `trainplan jobs list --all` lists the runs of all rounds.");
    }
    for (round, runs) in &listed {
        let state = match (round.ended_ms, journal.carried_out_by(round)) {
            (Some(ended), _) => format!("finished {}", watch::clock(ended)),
            (None, Some(holder)) => format!("run by process {holder}"),
            (None, None) => format!(
                "no process follows it. To continue, use `trainplan run` or `trainplan jobs follow {}`",
                round.title()
            ),
        };
        output::prose(&format!(
            "Campaign {} on cluster {}, started {}; {state}.\n",
            round.title(),
            round.cluster,
            watch::clock(round.begun_ms)
        ))?;
        table(runs)?;
        output::prose(&format!("{}\n", counts(runs)))?;
    }
    Ok(())
}
