//! From what a user typed to a scenario, its FLOPs, its metrics and its estimate.

mod estimate;
mod measure;
mod remedies;
mod scenario;

pub use estimate::Predicted;
pub use measure::{CountedFlops, StepMetrics, StepTime, StepTimeSource};
pub use remedies::Remedy;

use crate::field::Field;
use crate::message;
use crate::problem::Problem;

fn missing(field: Field) -> Problem {
    Problem::missing(field, message!["required without ", Field::Recipe])
}
