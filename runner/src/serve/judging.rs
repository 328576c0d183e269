//! Judges received runs one after another: whether each is a regression, and which webhooks to notify.

use super::Server;
use crate::history::point;
use crate::store::{Cursor, Query, Sort, StoreError, time};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use trainplan_shared::api::AlertMessage;
use trainplan_shared::history::TimeLine;
use uuid::Uuid;

/// How often to look for runs that a server received but did not judge before it ended.
const EVERY: Duration = Duration::from_secs(30);

/// The number of earlier runs that a run is compared with.
const BEFORE: u32 = 100;

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
    let query = Query {
        line: summary.line.clone(),
        cluster: key.cluster.clone(),
        sort: Sort::NEWEST_RUN,
        limit: Some(BEFORE),
        cursor: Cursor::after(&summary, Sort::NEWEST_RUN),
        ..Query::default()
    };
    let before = server.store.points(&query).await?.into_iter();
    let before = before.filter(|(other, _)| *other == key).map(|(_, point)| point);
    let points = before.chain([own]).collect();
    let thresholds = server.options.thresholds;
    let Ok(line) = tokio::task::spawn_blocking(move || TimeLine::of(key, points, &thresholds)).await else {
        return Ok(());
    };
    let before = line.points.iter().rev().skip(1).find(|point| point.measured_s().is_some());
    let is_old = summary.ran_at < time(Timestamp::now() - NEWS);
    let (mut told, mut untold) = (Vec::new(), Vec::new());
    for alert in line.alerts.iter().filter(|alert| alert.point == summary.id) {
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
        // A regression that persists is reported once.
        let persists = match before {
            Some(before) => server.store.has_alert(&before.id, alert.kind.id()).await?,
            None => false,
        };
        if persists || is_old { untold.push(message) } else { told.push(message) }
    }
    let alerts: Vec<&AlertMessage> = untold.iter().chain(told.iter().skip(1)).chain(told.first()).collect();
    if alerts.is_empty() {
        return Ok(());
    }
    // One message tells of a run, with the first alert.
    let texts: Vec<&str> = told.iter().map(|alert| alert.text.as_str()).collect();
    let message = told.first().map(|first| AlertMessage { text: texts.join("\n"), ..first.clone() });
    server.store.alert(run, &alerts, message.as_ref(), server.webhooks.urls()).await?;
    server.watch.notify();
    Ok(())
}
