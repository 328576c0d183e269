//! Goodput: how long a real run takes, with failures, restarts and checkpoints.
//!
//! Failures strike at a constant rate, also during a restart, and each one loses the work since the last checkpoint
//! ([`checkpoint_goodput`]). Checkpoints are saved at the interval that loses the least time ([`daly_interval_s`]).
//! Published failure rates differ by a factor of six ([`FailureStudy`]), so a run has a range and no single answer
//! ([`RunTime`]).

mod checkpoint;
mod compute_optimal;
mod disruptions;
mod endless;
mod failures;
mod observed;
mod run_time;

pub use checkpoint::{checkpoint_goodput, daly_interval_s, expected_time_s, young_interval_s};
pub use compute_optimal::compute_optimal_tokens;
pub use disruptions::{Disruptions, Recovery, SaveTime, checkpoint_bytes};
pub use failures::{FailureRate, FailureStudy};
pub use observed::ObservedFailures;
pub(crate) use run_time::low_end;
pub use run_time::{RunCase, RunLoad, RunTime};
