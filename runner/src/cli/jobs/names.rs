//! Runs and rounds by the names that users give them.

use crate::cli::{Failure, note};
use crate::journal::{Journal, Round, Run};
use std::collections::BTreeSet;

/// Returns whether a name is that of a round or its campaign.
pub(super) fn is_named(round: &Round, name: &str) -> bool {
    round.campaign == name || round.title() == name
}

/// Finds a run by its name (`large`, `large#2`, `nightly/large`) in the newest round of each campaign, by its name in
/// another round (`nightly@2/large`), or by the beginning of its id.
pub(super) async fn find(journal: &Journal, name: &str) -> Result<(Round, Run), Failure> {
    let mut fitting = fitting(journal, name).await?;
    match fitting.len() {
        1 => Ok(fitting.remove(0)),
        _ => Err(several(name, &fitting)),
    }
}

/// Returns the runs that a name may mean, at least one. Within a round, `large` is the run with this title, or else each
/// of its repeats.
async fn fitting(journal: &Journal, name: &str) -> Result<Vec<(Round, Run)>, Failure> {
    let (scope, title) = name.rsplit_once('/').map_or((None, name), |(scope, title)| (Some(scope), title));
    let (mut fitting, mut known) = (Vec::new(), Vec::new());
    for round in journal.rounds().await? {
        let in_scope = match scope {
            None => round.is_newest,
            Some(scope) => round.title() == scope || (round.is_newest && round.campaign == scope),
        };
        let (mut exact, mut alike) = (Vec::new(), Vec::new());
        for run in journal.runs(&round.id).await? {
            if (in_scope && run.plan.title() == title) || has_id(&run, name) {
                exact.push((round.clone(), run));
            } else if in_scope && run.plan.name == title {
                alike.push((round.clone(), run));
            } else {
                known.push(run.plan.title());
            }
        }
        fitting.extend(if exact.is_empty() { alike } else { exact });
    }
    if fitting.is_empty() {
        let nearest = trainplan_shared::problem::most_alike(title, known.iter().map(String::as_str));
        let nearest = nearest.map_or(String::new(), |nearest| format!(" Did you mean {nearest}?"));
        return Err(Failure::NoRun(format!(
            "Unknown run \"{name}\".{nearest} `trainplan jobs list` lists all."
        )));
    }
    Ok(fitting)
}

/// Returns whether a name is the beginning of a run's id.
fn has_id(run: &Run, name: &str) -> bool {
    name.len() >= 8 && run.id.starts_with(name)
}

/// Finds the run to cancel: if several fit the name, the only one that is not over. If a run is over in the newest round, the
/// same run of an older round counts instead.
pub(super) async fn find_open(journal: &Journal, name: &str) -> Result<(Round, Run), Failure> {
    let mut fitting = fitting(journal, name).await?;
    let mut open = Vec::new();
    for (round, run) in &fitting {
        if !run.status.is_over() {
            open.push((round.clone(), run.clone()));
        } else if !has_id(run, name) && !name.contains('@') {
            open.extend(still_open(journal, round, run).await?);
        }
    }
    // A later try of a repeat may fit the name too.
    let mut seen = BTreeSet::new();
    open.retain(|(_, run)| seen.insert(run.id.clone()));
    match (fitting.len(), open.len()) {
        (1, 0) => Ok(fitting.remove(0)),
        (1, 1) => Ok(open.remove(0)),
        (1, _) => Err(several(name, &open)),
        (_, 1) => {
            let (round, run) = open.remove(0);
            let left = full_name(&round, &run);
            note(&format!("Several runs match {name}. Only {left} is not over, so it is cancelled."));
            Ok((round, run))
        }
        _ => Err(several(name, &fitting)),
    }
}

/// Returns the runs of a campaign's unfinished rounds that are the same as one that is over, and are not over.
async fn still_open(journal: &Journal, of: &Round, over: &Run) -> Result<Vec<(Round, Run)>, Failure> {
    let mut open = Vec::new();
    for round in journal.rounds().await? {
        if round.ended_ms.is_none() && round.campaign == of.campaign {
            let runs = journal.runs(&round.id).await?.into_iter();
            let (name, repeat) = (&over.plan.name, over.plan.repeat);
            // Of the same repeat, a later try may go on.
            let same = runs
                .filter(|run| run.plan.name == *name && run.plan.repeat == repeat && !run.status.is_over());
            open.extend(same.map(|run| (round.clone(), run)));
        }
    }
    Ok(open)
}

/// Returns the name that no other run has: `nightly@2/large#1`.
fn full_name(round: &Round, run: &Run) -> String {
    format!("{}/{}", round.title(), run.plan.title())
}

fn several(name: &str, runs: &[(Round, Run)]) -> Failure {
    let which = |(round, run): &(Round, Run)| format!("{} ({})", full_name(round, run), run.id);
    let which: Vec<String> = runs.iter().map(which).collect();
    Failure::NoRun(format!(
        "Several runs match {name}. Use one of these:\n       {}",
        which.join("\n       ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DataDir;
    use crate::journal::tests::{plan, round};
    use crate::journal::{Event, Plan};

    #[tokio::test]
    async fn a_name_that_several_campaigns_use_means_none_of_them_unless_one_run_is_left_to_cancel() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(Some(folder.path().into())).unwrap();
        let journal = Journal::open(&data).await.unwrap();
        let of = |campaign: &str| Round { campaign: campaign.into(), ..round(campaign) };
        let repeat = |number: u32| Plan { repeat: number, repeats: 2, ..plan("a") };
        journal.begin(&of("kill"), &[("kill-a".to_owned(), plan("a"))]).await.unwrap();
        let repeats = [("s2-a-1".to_owned(), repeat(1)), ("s2-a-2".to_owned(), repeat(2))];
        journal.begin(&of("s2"), &repeats).await.unwrap();
        let stored = Event::Stored { result: "kill-a".into() };
        journal.write("kill-a", 2, &stored).await.unwrap();
        let all = ["kill@1/a (", "s2@1/a#1 (", "s2@1/a#2 ("];
        let refused = |found: Result<(Round, Run), Failure>| {
            let said = found.unwrap_err().to_string();
            assert!(
                said.starts_with("Several runs match a.") && all.iter().all(|run| said.contains(run)),
                "{said}"
            );
        };
        refused(find(&journal, "a").await);
        refused(find_open(&journal, "a").await);
        // The campaign tells which one is meant, over or not.
        assert_eq!(find_open(&journal, "kill/a").await.unwrap().1.id, "kill-a");

        journal.write("s2-a-2", 3, &stored).await.unwrap();
        refused(find(&journal, "a").await);
        assert_eq!(find_open(&journal, "a").await.unwrap().1.id, "s2-a-1");

        journal.write("s2-a-1", 4, &stored).await.unwrap();
        refused(find_open(&journal, "a").await);
    }
}
