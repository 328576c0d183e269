//! From what a user typed to a scenario, its FLOPs, its metrics, its estimate and the whole run.

mod estimate;
mod measure;
mod outline;
mod reader;
mod remedies;
mod run_plan;
mod run_settings;
mod scaled;
mod scenario;

pub use estimate::Predicted;
pub use measure::{CountedFlops, StepMetrics, StepTime, StepTimeSource};
pub use outline::Outline;
pub use remedies::Remedy;
pub use run_plan::RunPlan;
pub use run_settings::RunSettings;
pub use scaled::{BatchGrowth, ScaledStep};

use crate::field::Field;
use crate::message;
use crate::problem::Problem;

fn missing(field: Field) -> Problem {
    Problem::missing(field, message!["required without ", Field::Recipe])
}
