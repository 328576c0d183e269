//! Runs that came in, judged one after another: whether each is slower than it should be, and who is to be told of it.

use super::Server;
use crate::history::point;
use crate::store::{Cursor, Query, Sort, StoreError, time};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use trainplan_shared::history::TimeLine;
use uuid::Uuid;

/// How often to look for what a server left that was ended before it judged.
const EVERY: Duration = Duration::from_secs(30);

/// A run is judged by so many before it.
const BEFORE: u32 = 100;

/// What ran longer ago is kept as an alert, and told nobody: somebody gathers old logs.
const NEWS: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Judges what comes in, for ever.
pub(super) async fn judge(server: Server) {
    loop {
        match judge_some(&server).await {
            Ok(0) => {
                // One that came since is waited for no longer than that.
                let _ = tokio::time::timeout(EVERY, server.came_in.notified()).await;
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("what came in can't be judged yet: {error}");
                tokio::time::sleep(EVERY).await;
            }
        }
    }
}

/// How many were judged.
async fn judge_some(server: &Server) -> Result<usize, StoreError> {
    let runs = server.store.unjudged().await?;
    for run in &runs {
        judge_one(server, *run).await?;
    }
    server.store.judged(&runs).await?;
    Ok(runs.len())
}

/// Looks whether a run is slower than it should be by what ran before it, and keeps what is to be told of it. Doing so twice
/// tells it once. What ran later may have come in already.
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
    let runs = server.store.list(&query).await?.items;
    let points = runs.iter().map(point).filter(|(other, _)| *other == key).map(|(_, point)| point);
    let points = points.chain([own]).collect();
    let thresholds = server.options.thresholds;
    let Ok(line) = tokio::task::spawn_blocking(move || TimeLine::of(key, points, &thresholds)).await else {
        return Ok(());
    };
    let before = line.points.iter().rev().skip(1).find(|point| point.measured_s().is_some());
    let is_old = summary.ran_at < time(Timestamp::now() - NEWS);
    for alert in line.alerts.iter().filter(|alert| alert.point == summary.id) {
        let body = serde_json::json!({
            "run": summary.id, "what": line.label, "kind": alert.kind, "text": alert.text, "at": alert.at,
            "measured_s": alert.measured_s, "expected_s": alert.expected_s, "limit_s": alert.limit_s,
        });
        // What was so the time before is no news.
        let was_so = match before {
            Some(before) => server.store.has_alert(&before.id, alert.kind.id()).await?,
            None => false,
        };
        let urls = if was_so || is_old { &[] } else { server.webhooks.urls() };
        server.store.alert(run, alert.kind.id(), &body.to_string(), urls).await?;
        server.stir();
    }
    Ok(())
}
