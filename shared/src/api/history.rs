//! Step times over time.

use crate::history::TimeLine;
use serde::{Deserialize, Serialize};

/// Time lines of runs, each judged by the thresholds.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunHistories {
    /// One time line for each recipe or scenario on each cluster.
    pub series: Vec<TimeLine>,
    /// Whether older runs were left out because of the limit.
    pub is_cut: bool,
}
