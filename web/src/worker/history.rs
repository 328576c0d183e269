//! Step times over time, as the server judges them.

use super::server;
use super::typography::unbroken;
use crate::message::{RequestError, RunAlert, TimeLine, TimePoint};
use std::cmp::Reverse;
use trainplan_shared::api::{
    Acknowledgement, AcknowledgementRequest, AlertRecord, AlertRecords, RunHistories,
};
use trainplan_shared::history::{
    self, ChangePoint, CheckOutcome, ThresholdCheck, ThresholdKind, TimeLinePoint,
};
use trainplan_shared::result::{much_faster, sentence, steady_difference};
use trainplan_shared::text::{capital, short_id};
use trainplan_shared::units::{minute, signed, significant};
use web_sys::js_sys::Date;

/// The newest runs, in which the Results page looks for regressions. The History page asks for all.
const NEWEST: &str = "limit=1000";

/// The most runs whose alerts are asked for at once: a parameter of a query has room for 110 ids.
const RUNS: usize = 100;

/// Returns the time lines of a query: those with open regressions first, then those with acknowledged ones, then the longest.
pub(super) async fn read(query: &str) -> Result<Vec<TimeLine>, RequestError> {
    let RunHistories { series, .. } = server::get(&format!("/history?{query}")).await?;
    let mut lines: Vec<TimeLine> = series.iter().map(time_line).collect();
    // The Results page shows no earlier regressions.
    let mut alerts = if query == NEWEST { Vec::new() } else { alerts("").await? };
    // The list ends with the last 1,000, but an acknowledged regression may be older.
    let is_listed = |run: &&str| alerts.iter().any(|alert| alert.run == **run);
    let slow = lines.iter().filter_map(|line| line.slow_run.as_deref());
    let others: Vec<&str> = slow.filter(|run| !is_listed(run)).collect();
    for runs in others.chunks(RUNS) {
        alerts.extend(self::alerts(&format!("?ids={}", runs.join(","))).await?);
    }
    for line in &mut lines {
        for point in &mut line.points {
            point.is_alert |= alerts.iter().any(|alert| alert.run == point.id);
        }
        line.alert = line.slow_run.as_ref().and_then(|run| run_alert(&alerts, run));
    }
    lines.sort_by_key(|line| (!line.is_open(), !line.is_regression(), Reverse(line.points.len())));
    Ok(lines)
}

/// Returns the alerts of a query.
async fn alerts(query: &str) -> Result<Vec<AlertRecord>, RequestError> {
    let AlertRecords { items } = server::get(&format!("/alerts{query}")).await?;
    Ok(items)
}

/// Acknowledges the alerts of a run, or without a reason withdraws that.
pub(super) async fn acknowledge(run: &str, reason: Option<String>) -> Result<(), RequestError> {
    let path = format!("/runs/{run}/acknowledgement");
    match reason {
        None => server::delete(&path).await,
        Some(reason) => server::set(&path, &AcknowledgementRequest { reason }).await,
    }
}

/// Returns what the server keeps about the alerts of a run; none if it has none.
fn run_alert(alerts: &[AlertRecord], run: &str) -> Option<RunAlert> {
    let alert = alerts.iter().find(|alert| alert.run == run)?;
    let told = |Acknowledgement { at, by, name, reason }: &Acknowledgement| {
        format!("Acknowledged by {} at {}: {reason}", name.as_ref().unwrap_or(by), minute(at))
    };
    Some(RunAlert { run: run.into(), acknowledged: alert.acknowledged.as_ref().map(told) })
}

/// Returns the time lines, without their runs, that have a regression that nobody acknowledged.
pub(super) async fn regressions() -> Result<Vec<TimeLine>, RequestError> {
    let mut lines = read(NEWEST).await?;
    lines.retain(TimeLine::is_open);
    for line in &mut lines {
        line.points.clear();
    }
    Ok(lines)
}

fn time_line(series: &history::TimeLine) -> TimeLine {
    let points = series.points.iter().enumerate().map(|(place, point)| {
        let change = series.change_points.iter().find(|change| change.index == place);
        TimePoint {
            id: point.id.clone(),
            run: point.title.clone().unwrap_or_else(|| short_id(&point.id).to_string()),
            at_ms: Date::parse(&point.at),
            at: minute(&point.at),
            step_time_s: point.measured_s(),
            step_time: match (point.measured_s(), point.step_time_s) {
                (Some(seconds), _) => significant(seconds, 5),
                (None, Some(_)) => "not comparable".to_string(),
                (None, None) => "not scored".to_string(),
            },
            notes: notes(point, change),
            // A point that is not drawn needs no level.
            usual_s: point.measured_s().and_then(|_| usual(&series.change_points, place)),
            is_change: change.is_some(),
            is_alert: series.regressions().iter().any(|alert| alert.point == point.id),
        }
    });
    let (judged, judgements) = judgements(series).unzip();
    let newest_change = series.change_points.last().map(|change| change.point.clone());
    let exceeds_change = series.regressions().iter().any(|alert| alert.kind == ThresholdKind::Change);
    TimeLine {
        key: format!("{:?}", series.key),
        title: series.key.label(),
        recipe: series.key.recipe.clone(),
        cluster: series.key.cluster.clone(),
        points: points.collect(),
        published_s: series.points.iter().rev().find_map(|point| point.baseline_step_time_s),
        alert: None,
        slower: slower(series).map(|text| unbroken(&text)),
        slow_run: series.regressions().first().map(|alert| alert.point.clone()),
        not_judged: not_judged(series).map(|text| unbroken(&text)),
        first_changed: newest_change.filter(|_| exceeds_change),
        judged,
        judgements: judgements.unwrap_or_default(),
        summary: summary(series),
    }
}

/// Returns what the table says of a run beside its step time.
fn notes(point: &TimeLinePoint, change: Option<&ChangePoint>) -> String {
    let change = change.map(|change| {
        format!(
            "{}\u{a0}% from here on: {} s before, {} s after",
            signed(change.percent, 1),
            significant(change.before_s, 4),
            significant(change.after_s, 4)
        )
    });
    let scored = point.scored_s().zip(point.measured_s()).and_then(|(scored_s, measured_s)| {
        steady_difference(scored_s, measured_s)?;
        Some(format!("Scored {} s", significant(scored_s, 5)))
    });
    let reason = point.reason.as_deref().map(unbroken);
    [change, scored, reason].into_iter().flatten().collect::<Vec<_>>().join(". ")
}

/// Returns the step times of a time line in words.
fn summary(series: &history::TimeLine) -> String {
    let title = series.key.label();
    let times: Vec<(&str, f64)> =
        series.points.iter().filter_map(|point| Some((point.at.as_str(), point.measured_s()?))).collect();
    let at = |(at, seconds): &(&str, f64)| format!("{} s at {}", significant(*seconds, 4), minute(at));
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return format!("Chart of {title}: no scored runs.");
    };
    let missing = match series.points.len() - times.len() {
        0 => String::new(),
        missing => format!("; without a comparable step time: {missing}"),
    };
    let (first, last, changes) = (at(first), at(last), series.change_points.len());
    format!("Chart of the step time of {title} over time: {first}, {last}; changes: {changes}{missing}.")
}

/// Returns why the newest run has no comparable step time, as sentences; none if it has one.
fn not_judged(series: &history::TimeLine) -> Option<String> {
    let newest = series.points.last().filter(|newest| newest.measured_s().is_none())?;
    let what = match newest.step_time_s {
        None => "The newest run was not scored.",
        Some(_) => "The newest run is not comparable with others.",
    };
    Some(match &newest.reason {
        Some(reason) => format!("{what} {reason}"),
        None => what.to_string(),
    })
}

/// Returns by how much the newest run with a comparable step time is slower, and since when, as a sentence; none if it is not a
/// regression. Among the thresholds that it exceeds, the lasting change says most.
fn slower(series: &history::TimeLine) -> Option<String> {
    let exceeded = |kind: ThresholdKind| series.regressions().iter().find(|alert| alert.kind == kind);
    let kinds =
        [ThresholdKind::Change, ThresholdKind::Previous, ThresholdKind::Sigma, ThresholdKind::Baseline];
    let alert = kinds.into_iter().find_map(exceeded)?;
    let change = series.change_points.last().filter(|_| alert.kind == ThresholdKind::Change);
    let since = change.and_then(|change| change.at.get(..10)).map(|day| format!(" since {day}"));
    let (than, what) = match alert.kind {
        ThresholdKind::Baseline => (" than published".to_string(), "published"),
        _ => (since.unwrap_or_default(), "usual"),
    };
    Some(format!(
        "Slower{than}: {} s per step, {:.1} % above the {what} {} s.",
        significant(alert.measured_s, 4),
        100.0 * (alert.measured_s / alert.expected_s - 1.0),
        significant(alert.expected_s, 4)
    ))
}

/// Returns how many thresholds the newest comparable run exceeds, in words, and what each says, with the exceeded ones first; none if
/// none could judge it.
fn judgements(series: &history::TimeLine) -> Option<(String, Vec<String>)> {
    let could_judge = |check: &&ThresholdCheck| check.outcome != CheckOutcome::NotJudged;
    let checks = series.standing_checks().iter().filter(could_judge);
    let (exceeded, others): (Vec<&ThresholdCheck>, Vec<&ThresholdCheck>) =
        checks.partition(|check| check.outcome == CheckOutcome::Regression);
    let summary = match (exceeded.len(), exceeded.len() + others.len()) {
        (_, 0) => return None,
        (0, 1) => "within the limit".to_string(),
        (0, count) => format!("within all {count} limits"),
        (_, 1) => "limit exceeded".to_string(),
        (several, count) => format!("{several} of {count} limits exceeded"),
    };
    // A run of other work isn't slower, either.
    let speed = |check: &&ThresholdCheck| Some(100.0 * check.expected_s? / check.measured_s?);
    let baseline = others.iter().find(|check| check.kind == ThresholdKind::Baseline);
    let is_fast = baseline.and_then(speed).and_then(much_faster).is_some();
    let summary = if is_fast { summary + ", but much faster than published" } else { summary };
    let summary = match not_judged(series) {
        Some(_) => format!("Last comparable run: {summary}"),
        None => capital(&summary),
    };
    let exceeded = exceeded.iter().map(|check| format!("Exceeded: {}.", unbroken(&check.text)));
    let others = others.iter().map(|check| sentence(&unbroken(&check.text)));
    Some((summary, exceeded.chain(others).collect()))
}

/// Returns the usual step time at an index: the mean between the changes around it.
fn usual(changes: &[ChangePoint], place: usize) -> Option<f64> {
    let before = changes.iter().rev().find(|change| change.index <= place).map(|change| change.after_s);
    before.or_else(|| changes.first().map(|change| change.before_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time line with a run for each of these seconds per step; one of infinity was not scored.
    fn series(times: &[f64], published_s: Option<f64>) -> history::TimeLine {
        let point = |(run, seconds): (usize, &f64)| history::TimeLinePoint {
            id: format!("{run}"),
            at: format!("2026-05-{:02}T10:00:00Z", run + 1),
            step_time_s: Some(*seconds).filter(|seconds| seconds.is_finite()),
            comparable: seconds.is_finite(),
            reason: seconds.is_infinite().then(|| "It failed.".into()),
            baseline_step_time_s: published_s,
            ..history::TimeLinePoint::default()
        };
        let points = times.iter().enumerate().map(point).collect();
        history::TimeLine::of(history::TimeLineKey::default(), points, &history::Thresholds::default())
    }

    #[test]
    fn a_regression_is_told_while_later_runs_are_not_scored() {
        let slow = series(&[13.5], Some(12.37));
        assert_eq!(not_judged(&slow), None);
        let failed = series(&[13.5, f64::INFINITY], Some(12.37));
        assert_eq!(slower(&failed), slower(&slow));
        assert_eq!(not_judged(&failed).as_deref(), Some("The newest run was not scored. It failed."));
        assert_eq!(slower(&series(&[13.5, f64::INFINITY, 12.3], Some(12.37))), None);
    }

    #[test]
    fn a_regression_is_one_sentence() {
        let nights = [12.0, 12.1, 12.0, 12.1, 12.0, 12.1, 12.0, 12.1, 12.0, 12.7, 12.7, 12.7];
        let told = slower(&series(&nights, None)).expect("a regression");
        assert!(
            told.starts_with("Slower since 2026-05-10: 12.7 s per step, 5.4 % above the usual 12.04"),
            "{told}"
        );
        let published = slower(&series(&[13.5], Some(12.37)));
        let expected = "Slower than published: 13.5 s per step, 9.1 % above the published 12.37 s.";
        assert_eq!(published.as_deref(), Some(expected));
        assert_eq!(slower(&series(&[12.0], Some(12.37))), None);
    }

    #[test]
    fn a_run_that_is_much_faster_than_published_is_remarked() {
        let judged = |seconds: f64| judgements(&series(&[seconds], Some(12.37))).map(|(summary, _)| summary);
        assert_eq!(judged(12.0).as_deref(), Some("Within the limit"));
        assert_eq!(judged(10.0).as_deref(), Some("Within the limit, but much faster than published"));
    }
}
