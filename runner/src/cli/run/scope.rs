//! Which runs of a campaign a round has: all of them, or those without a score.

use super::super::summary::Summary;
use super::super::{Failure, note};
use crate::conduct::RunOutcome;
use crate::journal::{Journal, JournalError, Plan, Round, Run};
use std::collections::BTreeSet;

/// Which runs of its campaign a new round has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum RoundScope {
    /// All of them.
    All,
    /// Those without a score: they failed, or have not run. The others count as over and, if another run needs it, as scored.
    Failed {
        /// Whether those that were cancelled start, too.
        cancelled: bool,
        /// Whether they are submitted even if they are predicted not to fit in memory or in their time limits.
        anyway: bool,
    },
}

/// Returns the plans without a scored run on the cluster, and notes why each of them starts. Those whose run was cancelled start only
/// if `cancelled` says so, and those that need their scores only together with them.
///
/// # Errors
/// The newest run of a plan is not over: it belongs to an older round.
pub(super) async fn failed(
    journal: &Journal,
    campaign: &str,
    cluster: &str,
    plans: Vec<Plan>,
    cancelled: bool,
) -> Result<Vec<Plan>, Failure> {
    let newest = newest_runs(journal, campaign, cluster, &plans).await?;
    let full_title = |round: &Round, run: &Run| format!("{}/{}", round.title(), run.plan.title());
    let open = newest.iter().flatten().filter(|(_, run)| RunOutcome::of(run) == RunOutcome::Open);
    let open: Vec<String> = open.map(|(round, run)| full_title(round, run)).collect();
    if !open.is_empty() {
        return Err(Failure::NotOver { runs: open });
    }
    let of_plans = plans.into_iter().zip(newest);
    let unscored: Vec<(Plan, Option<(Round, Run)>)> =
        of_plans.filter(|(_, newest)| outcome(newest.as_ref()) != Some(RunOutcome::Scored)).collect();
    let left = unscored.iter().filter(|(_, newest)| !cancelled && was_cancelled(newest.as_ref()));
    let without_score = names_without_score(&unscored, left.map(|(plan, _)| plan.name.clone()).collect());
    let mut chosen = Vec::new();
    for (plan, newest) in unscored {
        let needed = plan.after_success.iter().find(|name| without_score.contains(*name));
        let why = match (&newest, needed) {
            (Some((round, run)), _) if !cancelled && was_cancelled(newest.as_ref()) => {
                let title = full_title(round, run);
                note(&format!(
                    "{title} was cancelled, so it doesn't start. To start it too, add --cancelled."
                ));
                continue;
            }
            (_, Some(needed)) => {
                note(&format!("{} doesn't start, because it needs a score of {needed}.", plan.title()));
                continue;
            }
            (None, _) => "It has not run yet.".to_string(),
            (Some((round, run)), _) if was_cancelled(newest.as_ref()) => {
                format!("{} was cancelled.", full_title(round, run))
            }
            (Some((round, run)), _) => {
                let why = Summary::of(round, run, None).why.map(|why| why.trim_end_matches('.'));
                let why = why.map_or(String::new(), |why| format!(": {why}"));
                format!("{} has no score{why}.", full_title(round, run))
            }
        };
        note(&format!("{} starts. {why}", plan.title()));
        chosen.push(plan);
    }
    Ok(chosen)
}

/// Returns the outcome of a plan's newest run; none if it has not run.
fn outcome(newest: Option<&(Round, Run)>) -> Option<RunOutcome> {
    newest.map(|(_, run)| RunOutcome::of(run))
}

fn was_cancelled(newest: Option<&(Round, Run)>) -> bool {
    outcome(newest) == Some(RunOutcome::Cancelled)
}

/// Returns these names, and the names of the unscored runs that need the score of one of them.
fn names_without_score<T>(unscored: &[(Plan, T)], mut names: BTreeSet<String>) -> BTreeSet<String> {
    loop {
        let needs = |plan: &Plan| plan.after_success.iter().any(|name| names.contains(name));
        let found = unscored.iter().find(|(plan, _)| needs(plan) && !names.contains(&plan.name));
        let Some((plan, _)) = found else { return names };
        names.insert(plan.name.clone());
    }
}

/// Returns the last try of each plan's run in the newest round that has it, with that round. None if no round of the campaign on the
/// cluster has it.
async fn newest_runs(
    journal: &Journal,
    campaign: &str,
    cluster: &str,
    plans: &[Plan],
) -> Result<Vec<Option<(Round, Run)>>, JournalError> {
    let mut newest: Vec<Option<(Round, Run)>> = vec![None; plans.len()];
    for round in journal.rounds().await? {
        if (round.campaign.as_str(), round.cluster.as_str()) != (campaign, cluster) {
            continue;
        }
        for run in journal.runs(&round.id).await? {
            for (plan, found) in plans.iter().zip(&mut newest) {
                let is_its = (&plan.name, plan.repeat) == (&run.plan.name, run.plan.repeat);
                let is_newer = found
                    .as_ref()
                    .is_none_or(|(of, other)| of.id == round.id && other.plan.is_retried_by(&run.plan));
                if is_its && is_newer {
                    *found = Some((round.clone(), run.clone()));
                }
            }
        }
        if newest.iter().all(Option::is_some) {
            break;
        }
    }
    Ok(newest)
}

/// Returns whether another version of the program began the round of these runs from the campaign of these plans. A round of failed runs
/// lacks only what earlier rounds have.
pub(super) async fn is_of_other_version(
    journal: &Journal,
    round: &Round,
    runs: &[Run],
    plans: &[Plan],
) -> Result<bool, JournalError> {
    let begun: Vec<&Plan> = runs.iter().map(|run| &run.plan).filter(|plan| plan.retry == 0).collect();
    let is_of_campaign = |begun: &&Plan| plans.iter().any(|now| begun.is_of_other_version(now));
    if !begun.iter().all(is_of_campaign) {
        return Ok(false);
    }
    let is_begun =
        |plan: &Plan| begun.iter().any(|begun| (&begun.name, begun.repeat) == (&plan.name, plan.repeat));
    let others: Vec<Plan> = plans.iter().filter(|plan| !is_begun(plan)).cloned().collect();
    let earlier = newest_runs(journal, &round.campaign, &round.cluster, &others).await?;
    Ok(earlier.iter().all(Option::is_some))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DataDir;
    use crate::journal::Event;
    use crate::journal::tests::{plan, round};
    use trainplan_shared::log::Status;

    async fn score(journal: &Journal, run: &str) {
        let parsed = Event::Parsed {
            status: Status::Scored,
            reason: None,
            step_time_s: Some(1.0),
            judged_s: Some(1.0),
            mfu: None,
            speed_percent: None,
            error: None,
            within: None,
        };
        for event in [parsed, Event::Stored { result: run.into() }] {
            journal.write(run, 2, &event).await.unwrap();
        }
    }

    async fn fail(journal: &Journal, run: &str) {
        journal.write(run, 2, &Event::Failed { why: "no log was found".into() }).await.unwrap();
    }

    fn repeat(name: &str, repeat: u32, retry: u32) -> Plan {
        Plan { repeat, repeats: 2, retry, retries: 1, ..plan(name) }
    }

    /// Returns the titles of the runs that start.
    async fn started(journal: &Journal, plans: &[Plan]) -> Result<Vec<String>, Failure> {
        let chosen = failed(journal, "nightly", "alpha", plans.to_vec(), false).await?;
        Ok(chosen.iter().map(Plan::title).collect())
    }

    #[tokio::test]
    async fn runs_start_again_until_their_newest_attempt_has_a_score() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&DataDir::open(Some(folder.path().into())).unwrap()).await.unwrap();
        let plans = [plan("a"), repeat("b", 1, 0), repeat("b", 2, 0), plan("c"), plan("d")];
        assert_eq!(started(&journal, &plans).await.unwrap(), ["a", "b#1", "b#2", "c", "d"]);

        // d was not in the campaign yet. A retry of b#2 has a score.
        let ids = ["a1", "b1", "b2", "c1"];
        let first: Vec<(String, Plan)> = ids.map(String::from).into_iter().zip(plans.clone()).collect();
        journal.begin(&round("one"), &first).await.unwrap();
        journal.add_run("one", "b2-retry", &repeat("b", 2, 1), 1).await.unwrap();
        for run in ["a1", "b2-retry"] {
            score(&journal, run).await;
        }
        for run in ["b1", "b2", "c1"] {
            fail(&journal, run).await;
        }
        journal.end("one", 3).await.unwrap();
        assert_eq!(started(&journal, &plans).await.unwrap(), ["b#1", "c", "d"]);

        // Another campaign or cluster doesn't count.
        let others = [
            Round { cluster: "beta".into(), ..round("beta") },
            Round { campaign: "weekly".into(), ..round("weekly") },
        ];
        for other in others {
            let run = format!("c-{}", other.id);
            journal.begin(&other, &[(run.clone(), plan("c"))]).await.unwrap();
            score(&journal, &run).await;
        }
        // A later round has three of the runs.
        let second = [("b3", repeat("b", 1, 0)), ("c2", plan("c")), ("d1", plan("d"))]
            .map(|(id, plan)| (String::from(id), plan));
        journal.begin(&round("two"), &second).await.unwrap();
        for run in ["b3", "d1"] {
            score(&journal, run).await;
        }
        let unfinished = started(&journal, &plans).await.unwrap_err();
        assert!(matches!(&unfinished, Failure::NotOver { runs } if runs.len() == 1), "{unfinished}");
        assert!(unfinished.to_string().contains("nightly@"), "{unfinished}");
        fail(&journal, "c2").await;
        assert_eq!(started(&journal, &plans).await.unwrap(), ["c"]);

        journal.begin(&round("three"), &[("c3".into(), plan("c"))]).await.unwrap();
        score(&journal, "c3").await;
        assert!(started(&journal, &plans).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn cancelled_runs_start_only_if_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&DataDir::open(Some(folder.path().into())).unwrap()).await.unwrap();
        let needs = |name: &str, needed: &str| Plan {
            after: vec![needed.into()],
            after_success: vec![needed.into()],
            ..plan(name)
        };
        // d needs a score of c, and c one of a, which was cancelled. e only waits for a.
        let waits = Plan { after: vec!["a".into()], ..plan("e") };
        let plans = [needs("d", "c"), plan("a"), plan("b"), needs("c", "a"), waits];
        let runs = plans.clone().map(|plan| (format!("{}1", plan.name), plan));
        journal.begin(&round("one"), &runs).await.unwrap();
        journal.write("a1", 2, &Event::CancelAsked { why: "asked".into() }).await.unwrap();
        for (run, _) in &runs {
            fail(&journal, run).await;
        }
        journal.end("one", 3).await.unwrap();
        assert_eq!(started(&journal, &plans).await.unwrap(), ["b", "e"]);
        let all = failed(&journal, "nightly", "alpha", plans.to_vec(), true).await.unwrap();
        assert_eq!(all.len(), 5);
    }

    #[tokio::test]
    async fn a_round_of_another_version_lacks_only_what_earlier_rounds_have() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&DataDir::open(Some(folder.path().into())).unwrap()).await.unwrap();
        let first = [("a1".to_string(), plan("a")), ("b1".to_string(), plan("b"))];
        journal.begin(&round("one"), &first).await.unwrap();
        journal.begin(&round("two"), &[("b2".to_string(), plan("b"))]).await.unwrap();
        let runs = journal.runs("two").await.unwrap();
        let newer = |name: &str| {
            let mut now = Plan { script: "#!/bin/sh\n:\n".into(), ..plan(name) };
            now.predicted.calibration = "newer".into();
            now
        };
        let changed = Plan { gpus: 16, ..newer("b") };
        for (plans, is_continued) in [
            (vec![newer("a"), newer("b")], true),
            (vec![newer("b")], true),
            // c was added to the campaign, b was changed or left out of it, or the version is the same.
            (vec![newer("a"), newer("b"), newer("c")], false),
            (vec![newer("a"), changed], false),
            (vec![newer("a")], false),
            (vec![plan("a"), plan("b")], false),
        ] {
            let told = is_of_other_version(&journal, &round("two"), &runs, &plans).await.unwrap();
            assert_eq!(told, is_continued, "{plans:?}");
        }
    }
}
