//! Converts stored runs into points of time lines.

use trainplan_shared::api::RunSummary;
use trainplan_shared::history::{TimeLineKey, TimeLinePoint};
use trainplan_shared::log::Status;

/// A stored run as a point, and its time line: that of its recipe, or else of its scenario, on its cluster.
pub(crate) fn point(run: &RunSummary) -> (TimeLineKey, TimeLinePoint) {
    let key = TimeLineKey {
        recipe: run.recipe.clone(),
        scenario: run.line.clone().filter(|_| run.recipe.is_none()),
        model: run.model.clone(),
        gpu: run.gpu.clone(),
        gpus: run.gpus,
        dtype: run.dtype.clone(),
        cluster: run.cluster.clone(),
    };
    let scored = run.step_time_s.filter(|_| run.status == Status::Scored);
    let point = TimeLinePoint {
        id: run.id.clone(),
        at: run.ran_at.clone(),
        step_time_s: scored.map(|stat| stat.mean),
        std_s: scored.and_then(|stat| stat.std),
        n: scored.map_or(0, |stat| stat.n),
        steady_mean_s: run.steady_mean_s.filter(|_| scored.is_some()),
        comparable: run.comparable,
        baseline_step_time_s: run.baseline.map(|baseline| baseline.step_time_s),
        reason: run.reason.clone(),
        title: run.name(),
        job: run.job,
        name: run.path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
    };
    (key, point)
}
