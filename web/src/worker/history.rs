//! How step times went over time, as the server judges them.

use super::server;
use crate::message::{TimeLine, TimePoint, Trouble};
use std::cmp::Reverse;
use trainplan_shared::api::RunHistories;
use trainplan_shared::history::{self, ChangePoint, Outcome};
use trainplan_shared::units::{minute, significant};
use web_sys::js_sys::Date;

/// The runs among which regressions are looked for: more is asked for by who looks at the whole history.
const NEWEST: &str = "limit=1000";

/// The time lines of a query of the server's.
pub(super) async fn read(query: &str) -> Result<Vec<TimeLine>, Trouble> {
    let RunHistories { series, .. } = server::get(&format!("/history?{query}")).await?;
    let mut lines: Vec<TimeLine> = series.iter().map(time_line).collect();
    // Regressions first, then what there is most of.
    lines.sort_by_key(|line| (line.alerts.is_empty(), Reverse(line.points.len())));
    Ok(lines)
}

/// Those of the newest runs whose newest run is a regression, without their runs.
pub(super) async fn regressions() -> Result<Vec<TimeLine>, Trouble> {
    let mut lines = read(NEWEST).await?;
    lines.retain(|line| !line.alerts.is_empty());
    for line in &mut lines {
        line.points.clear();
    }
    Ok(lines)
}

fn time_line(series: &history::TimeLine) -> TimeLine {
    let points = series.points.iter().enumerate().map(|(place, point)| TimePoint {
        id: point.id.clone(),
        at_ms: Date::parse(&point.at),
        at: minute(&point.at),
        step_time_s: point.measured_s(),
        // What is not drawn has nothing to be held against.
        usual_s: point.measured_s().and_then(|_| usual(&series.change_points, place)),
        change: series.change_points.iter().find(|change| change.index == place).map(|change| {
            format!(
                "From here on {:+.1} %: {} s after {} s",
                change.percent,
                significant(change.after_s, 4),
                significant(change.before_s, 4)
            )
        }),
        is_alert: series.alerts.iter().any(|alert| alert.point == point.id),
    });
    TimeLine {
        key: format!("{:?}", series.key),
        title: series.key.label(),
        recipe: series.key.recipe.clone(),
        cluster: series.key.cluster.clone(),
        points: points.collect(),
        published_s: series.points.iter().rev().find_map(|point| point.baseline_step_time_s),
        checks: series
            .checks
            .iter()
            .filter(|check| check.outcome != Outcome::NotJudged)
            .map(|check| check.text.clone())
            .collect(),
        alerts: series.alerts.iter().map(|alert| alert.text.clone()).collect(),
    }
}

/// The step time between the changes before and after a place.
fn usual(changes: &[ChangePoint], place: usize) -> Option<f64> {
    let before = changes.iter().rev().find(|change| change.index <= place).map(|change| change.after_s);
    before.or_else(|| changes.first().map(|change| change.before_s))
}
