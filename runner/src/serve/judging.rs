//! Judges received runs one after another: whether each is a regression, and which webhooks to notify.

use super::Server;
use crate::history::point;
use crate::store::{Cursor, Query, Sort, StoreError, time};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use trainplan_shared::api::{AlertMessage, RunSummary};
use trainplan_shared::history::{Regression, TimeLine, TimeLineKey, TimeLinePoint};
use uuid::Uuid;

/// How often to look for runs that a server received but did not judge before it ended.
const EVERY: Duration = Duration::from_secs(30);

/// The least number of earlier runs that are read to compare a run with, and of later ones among which one that was judged is looked
/// for.
const BEYOND: u32 = 100;

/// Runs older than this cause alerts without notifications: they come from collections of old logs.
const NEWS: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Judges received runs, forever.
pub(super) async fn judge(server: Server) {
    loop {
        match judge_some(&server).await {
            Ok(0) => {
                let _ = tokio::time::timeout(EVERY, server.received.notified()).await;
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("received runs could not be judged and will be tried again: {error}");
                tokio::time::sleep(EVERY).await;
            }
        }
    }
}

/// Judges the runs that are due; returns how many those were.
async fn judge_some(server: &Server) -> Result<usize, StoreError> {
    let runs = server.store.unjudged().await?;
    for run in &runs {
        // A run that is deleted while it is judged does not keep the others from it.
        if let Err(error) = judge_one(server, *run).await
            && server.store.summary(*run).await?.is_some()
        {
            return Err(error);
        }
    }
    server.store.judged(&runs).await?;
    Ok(runs.len())
}

/// Judges a run by the runs that ran before it (later ones may have been received first), and stores its
/// alerts. Judging it again adds none.
async fn judge_one(server: &Server, run: Uuid) -> Result<(), StoreError> {
    let Some(summary) = server.store.summary(run).await? else { return Ok(()) };
    let (key, own) = point(&summary);
    if !key.is_one_scenario() {
        return Ok(());
    }
    let before = beyond(server, &key, &summary, Sort::NEWEST_RUN).await?.into_iter();
    let before = before.filter(|other| other.place() < own.place());
    let points = before.chain([own.clone()]).collect();
    let thresholds = server.options.thresholds;
    let Ok(line) = tokio::task::spawn_blocking(move || TimeLine::of(key, points, &thresholds)).await else {
        return Ok(());
    };
    let alerts: Vec<&Regression> = line.alerts.iter().filter(|alert| alert.point == summary.id).collect();
    if alerts.is_empty() {
        return Ok(());
    }
    let is_old = summary.ran_at < time(Timestamp::now() - NEWS)
        || is_overtaken(server, &line.key, &summary, &own).await?;
    let before = line.points.iter().rev().skip(1);
    let before: Vec<(&str, f64)> =
        before.filter_map(|point| Some((point.id.as_str(), point.measured_s()?))).collect();
    let ids: Vec<&str> = before.iter().map(|(id, _)| *id).collect();
    let (mut told, mut untold) = (Vec::new(), Vec::new());
    for alert in alerts {
        let alerted = server.store.with_alert(&ids, alert.kind.id()).await?;
        let regressed = before.iter().take_while(|(id, _)| alerted.iter().any(|other| other == id));
        let regressed: Vec<f64> = regressed.map(|(_, step_time_s)| *step_time_s).collect();
        let message = AlertMessage {
            run: summary.id.clone(),
            what: line.label.clone(),
            kind: alert.kind,
            text: alert.text.clone(),
            at: alert.at.clone(),
            measured_s: alert.measured_s,
            expected_s: alert.expected_s,
            limit_s: alert.limit_s,
        };
        let is_told = !is_old && is_news(&regressed, alert.measured_s, thresholds.margin_percent);
        if is_told { told.push(message) } else { untold.push(message) }
    }
    let alerts: Vec<&AlertMessage> = untold.iter().chain(told.iter().skip(1)).chain(told.first()).collect();
    // All alerts of a run are sent as one message, with the first of them.
    let texts: Vec<&str> = told.iter().map(|alert| alert.text.as_str()).collect();
    let message = told.first().map(|first| AlertMessage { text: texts.join("\n"), ..first.clone() });
    server.store.alert(run, &alerts, message.as_ref(), server.webhooks.urls()).await?;
    server.watch.notify();
    Ok(())
}

/// Returns the runs of a time line beyond a run in an order, and all runs of the same time.
async fn beyond(
    server: &Server,
    key: &TimeLineKey,
    run: &RunSummary,
    sort: Sort,
) -> Result<Vec<TimeLinePoint>, StoreError> {
    let compared = u32::try_from(server.options.thresholds.previous).unwrap_or(u32::MAX - 1);
    let query = Query {
        line: run.line.clone(),
        cluster: key.cluster.clone(),
        sort,
        // The run itself is one of those of its time.
        limit: Some(BEYOND.max(compared) + 1),
        cursor: Some(Cursor::before_equals(run, sort)),
        ..Query::default()
    };
    let points = server.store.points(&query).await?.into_iter();
    Ok(points.filter(|(other, _)| other == key).map(|(_, point)| point).collect())
}

/// Returns whether a run of the same time line that ran later was judged: people know a newer state then. Later runs that are yet to be
/// judged don't count: if this run began a regression, no message would be about them.
async fn is_overtaken(
    server: &Server,
    key: &TimeLineKey,
    run: &RunSummary,
    own: &TimeLinePoint,
) -> Result<bool, StoreError> {
    let after = beyond(server, key, run, Sort::OLDEST_RUN).await?.into_iter();
    let after = after.filter(|other| other.place() > own.place() && other.measured_s().is_some());
    let after: Vec<String> = after.map(|other| other.id).collect();
    server.store.is_any_judged(&after).await
}

/// Returns whether to send a message about a run of a regression: about the first one, and about each that is slower, by more than the
/// margin, than the last one that a message was about. `before` has the step times of the regression's earlier runs, newest first.
fn is_news(before: &[f64], step_time_s: f64, margin_percent: f64) -> bool {
    let is_worse = |told_s: f64, step_time_s: f64| step_time_s > told_s * (1.0 + margin_percent / 100.0);
    let told_s = before
        .iter()
        .rev()
        .copied()
        .reduce(|told_s, step_time_s| if is_worse(told_s, step_time_s) { step_time_s } else { told_s });
    told_s.is_none_or(|told_s| is_worse(told_s, step_time_s))
}

#[cfg(test)]
mod tests {
    use super::is_news;

    #[test]
    fn a_regression_is_told_once_and_again_whenever_it_gets_worse() {
        assert!(is_news(&[], 13.6, 1.0));
        assert!(!is_news(&[13.6], 13.6, 1.0));
        assert!(!is_news(&[13.6], 13.7, 1.0));
        assert!(is_news(&[13.6], 14.6, 1.0));
        assert!(!is_news(&[14.6, 13.6], 14.6, 1.0));
        // By less than the margin each time, but by more since the last message.
        assert!(is_news(&[13.7, 13.6], 13.8, 1.0));
        // Faster runs in between don't make a run as slow as before news.
        assert!(!is_news(&[13.6, 14.6], 14.6, 1.0));
    }
}
