//! The capacity planner's question: which GPUs, how many, which layout, when done, at what cost.
//!
//! A [`Question`] includes every assumption. A [`Survey`] searches one GPU type count by count, so that a page can show
//! results as they come. A [`GpuAnswer`] is its result.

mod answer;
mod answering;
mod ask;
mod batches;
mod beyond;
mod by_script;
mod in_words;
mod judge;
mod limits;
mod most_tokens;
mod plan;
mod read;
mod relax;
mod script;
mod survey;
mod unmet;

pub use answer::{CLEARLY_FASTER, GpuAnswer, LITTLE_WASTE};
pub use ask::{Chance, Contender, Goal, GpuOffer, Objective, PrecisionChoice, Question, doubt};
pub use batches::GlobalBatches;
pub use beyond::BeyondBudget;
pub use in_words::{
    LimitsInWords, PlanInWords, as_measured, chance_as_measured, cost_in_words, enough_as_predicted,
    gpus_of_type, in_time_at_that_speed, limit_text,
};
pub use judge::{PlanFacts, chance_text, gpus_in_all, in_time_of_ten};
pub use limits::TrainableTokens;
pub use plan::PlannedRun;
pub use read::{USUAL_GPU_TYPES, split_gpu_types, usual_precisions};
pub use script::{DeadlineEffect, PlanScript, ScriptRun, ScriptedPlan};
pub use survey::{Finished, Survey};
pub use unmet::{Relaxation, Unmet};

#[cfg(test)]
mod tests;
