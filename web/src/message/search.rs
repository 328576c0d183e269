//! The messages between the planner and the worker that searches for plans.

use super::WorkerMessage;
use super::refusal::Refusal;
use serde::{Deserialize, Serialize};
use trainplan_shared::estimate::{MemoryMargin, MemoryVerdict};
use trainplan_shared::field::Field;
use trainplan_shared::message::Front;
use trainplan_shared::question::{Chance, Objective, PlanFacts, Unmet, gpus_in_all};

/// A question for the search worker. A newer one replaces it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SearchRequest {
    /// The page's number of the question.
    pub(crate) number: u32,
    /// The fields of the question, as a query of the page's address.
    pub(crate) query: String,
}

/// A message from the search worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SearchReply {
    /// The worker has started and takes questions.
    Ready,
    /// News of a question.
    News {
        /// The number of the question.
        number: u32,
        news: SearchNews,
    },
}

/// What the worker says about a question.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SearchNews {
    /// The question has problems; nothing is searched. The other worker words them: [`RefusalReply`].
    Refused,
    /// The question as it was read.
    Asked(AskedQuestion),
    /// The best plan on a number of GPUs.
    Point {
        /// The index of the GPU type.
        offer: usize,
        plan: Box<FoundPlan>,
    },
    /// The answer for a GPU type.
    Answered {
        /// The index of the GPU type.
        offer: usize,
        answer: Box<FoundAnswer>,
    },
    /// The best plan if only BF16 may be used; none if none reaches the goal.
    InBf16 {
        /// The index of the GPU type.
        offer: usize,
        plan: Option<Box<FoundPlan>>,
    },
    /// Everything is searched.
    Done,
}

/// A message from the other worker about a question that the search worker refused. It gets the same [`SearchRequest`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusalReply {
    /// The worker has started and takes questions.
    Ready,
    /// The problems of a question.
    Refused {
        /// The number of the question.
        number: u32,
        refusals: Vec<Refusal>,
    },
}

impl WorkerMessage for SearchRequest {}
impl WorkerMessage for SearchReply {}
impl WorkerMessage for RefusalReply {}

/// A question, with the assumptions behind it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedQuestion {
    /// The title of the model.
    pub(crate) model: String,
    pub(crate) tokens: f64,
    /// Tokens of a step, the least and the most.
    pub(crate) batch_tokens: (f64, f64),
    /// Whether the batch is assumed from the model's size.
    pub(crate) batch_is_assumed: bool,
    pub(crate) goal: AskedGoal,
    /// How likely a plan must meet the deadline and the budget; none without both.
    pub(crate) chance: Option<Chance>,
    /// The most that the run may cost, beside a deadline.
    pub(crate) max_cost: Option<f64>,
    /// The days that a run may take for a budget without a deadline; none if they are not limited.
    pub(crate) longest_days: Option<f64>,
    /// Which of the plans that reach the goal is best; none before a question was read.
    pub(crate) objective: Option<Objective>,
    /// The currency of the prices.
    pub(crate) currency: String,
    pub(crate) offers: Vec<AskedGpu>,
}

/// What the run must reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AskedGoal {
    /// To be done within days.
    Deadline(f64),
    /// To cost no more than a budget.
    Budget(f64),
    /// To be as fast as possible on the GPUs.
    #[default]
    Open,
}

/// A GPU type of a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedGpu {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) memory_gib: f64,
    /// The price of a GPU-hour, from lowest to highest; none if unknown.
    pub(crate) price: Option<(f64, f64)>,
    /// Whether the assumed price rests on a single quote, so that its range says nothing about other sellers.
    #[serde(default)]
    pub(crate) is_single_quote: bool,
    /// How the GPUs are paid for, and for how long they must be rented, if the price is assumed.
    pub(crate) purchase: Option<String>,
    /// The GPU type from whose price the assumed one is estimated.
    pub(crate) price_from: Option<String>,
    /// What a GPU costs for the whole term of the assumed reservation; none for other prices.
    pub(crate) whole_term: Option<(f64, f64)>,
    /// How many times as much a run costs on demand, if the price is the assumed one of a reservation.
    pub(crate) on_demand_factor: Option<Spread>,
    /// Whether BF16 is one of several precisions.
    pub(crate) is_bf16_one_of_several: bool,
    /// The training software that the plans use.
    pub(crate) software: String,
}

/// A plan: a layout on a number of GPUs, with what the whole run takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FoundPlan {
    pub(crate) gpus: u32,
    /// The fields of its scenario, as a query of the page's address.
    pub(crate) query: String,
    /// The layout in one line, such as `TP 4 · PP 2 · MBS 1`.
    pub(crate) layout: String,
    /// The title of its precision.
    pub(crate) precision: String,
    /// Whether that is BF16.
    #[serde(default)]
    pub(crate) is_in_bf16: bool,
    /// Seconds per step.
    pub(crate) step_s: Spread,
    /// Days with failures.
    pub(crate) days: Spread,
    pub(crate) cost: Option<Spread>,
    pub(crate) mwh: Spread,
    pub(crate) tokens_per_s_per_gpu: f64,
    /// Tokens of a step.
    pub(crate) batch_tokens: f64,
    /// Model FLOPs utilization, a fraction.
    pub(crate) mfu: f64,
    /// Free memory of the fullest GPU, in GiB.
    pub(crate) spare_gib: f64,
    /// How far that may be off.
    #[serde(default)]
    pub(crate) memory_error_gib: f64,
    /// Whether it fits, or is too close to call.
    pub(crate) memory: MemoryVerdict,
    pub(crate) trust: Trust,
    /// The share of the time that trains, from lowest to highest.
    pub(crate) goodput: (f64, f64),
    /// The GPUs to pay for: those that train and the spare ones.
    #[serde(default)]
    pub(crate) paid_gpus: u32,
    /// The title of the measured software whose time and cost these are, if that decides that the plan misses the goal; none if they are as
    /// predicted.
    #[serde(default)]
    pub(crate) measured_software: Option<String>,
    /// How many GPUs train if the spare ones must be among the named ones; none if the question doesn't need
    /// that.
    #[serde(default)]
    pub(crate) gpus_beside_spares: Option<u32>,
}

impl FoundPlan {
    /// Returns the plan with steps that take `slowdown` times as long.
    pub(crate) fn slowed(&self, slowdown: f64) -> FoundPlan {
        FoundPlan {
            step_s: self.step_s.times(slowdown),
            days: self.days.times(slowdown),
            cost: self.cost.map(|cost| cost.times(slowdown)),
            mwh: self.mwh.times(slowdown),
            tokens_per_s_per_gpu: self.tokens_per_s_per_gpu / slowdown,
            mfu: self.mfu / slowdown,
            ..self.clone()
        }
    }

    /// Returns what to doubt in it, as sentences; `needs_its_gpus` says that fewer GPUs would not do.
    pub(crate) fn cautions(&self, needs_its_gpus: bool) -> Vec<String> {
        let bytes = |gib: f64| gib * f64::from(1 << 30);
        let memory =
            MemoryMargin { free_bytes: bytes(self.spare_gib), error_bytes: bytes(self.memory_error_gib) };
        let (mfu, days, batch_tokens) = (self.mfu, self.days.mid, self.batch_tokens);
        let facts = PlanFacts { mfu, days, batch_tokens, memory, needs_its_gpus };
        facts.cautions().iter().map(|caution| caution.text(Front::Page)).collect()
    }

    /// Returns that its spare GPUs are in addition to those that were named, in words, with the changes of the question if they can't be;
    /// none if they may be.
    pub(crate) fn spares(&self) -> Option<(String, Vec<FoundChange>)> {
        let beside_spares = self.gpus_beside_spares?;
        let change = |field: Field, value: String| FoundChange {
            key: field.key().to_string(),
            value,
            reaches_goal: true,
        };
        let changes = vec![
            change(Field::GpuRange, beside_spares.to_string()),
            change(Field::SpareNodes, "0".to_string()),
        ];
        Some((gpus_in_all(self.gpus, self.paid_gpus) + ":", changes))
    }
}

/// A value with its range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) mid: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Whether the two ranges have a value in common.
    pub(crate) fn overlaps(self, other: Spread) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Returns the products with another range, end by end.
    pub(crate) fn product(self, other: Spread) -> Spread {
        Spread { low: self.low * other.low, mid: self.mid * other.mid, high: self.high * other.high }
    }

    /// Returns the range of a multiple.
    pub(crate) fn times(self, factor: f64) -> Spread {
        Spread { low: self.low * factor, mid: self.mid * factor, high: self.high * factor }
    }
}

/// How far a prediction can be trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trust {
    /// No run of the model was measured.
    #[default]
    Unmeasured,
    /// Only distant runs of the model were measured.
    Modelled,
    /// The model was measured on the same GPU in similar layouts.
    Near,
    /// This layout was measured.
    Measured,
}

/// What the search of a GPU type found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FoundAnswer {
    /// The best plan, or the one nearest to the goal, as predicted; none if no layout works.
    pub(crate) plan: Option<FoundPlan>,
    /// The best layouts on the plan's GPU count, its own first, with the figures that make them miss the
    /// goal.
    pub(crate) layouts: Vec<FoundFamily>,
    /// Whether that ranks below others, which are not in time.
    #[serde(default)]
    pub(crate) first_is_moved_up: bool,
    /// The layout of a published recipe on the plan's GPU count, with the recipe's id.
    pub(crate) published: Option<(String, FoundPlan)>,
    /// The number of layouts that were considered.
    pub(crate) considered: u64,
    /// The number of layouts that the software can run, if they fit in memory.
    pub(crate) valid: u64,
    /// Each reason to discard layouts, with their number.
    pub(crate) discarded: Vec<(String, u64)>,
    /// The title of the software of the nearest measured run on this GPU type, and the days of the best plan with it, if they are
    /// clearly more.
    #[serde(default)]
    pub(crate) with_measured_software: Option<(String, Spread)>,
    /// The fewest GPUs that would suffice as predicted, if the best plan has more because of that software.
    #[serde(default)]
    pub(crate) enough_as_predicted: Option<u32>,
    /// The most tokens, rounded down, that the deadline and the budget allow on the GPUs of the best plan, and the plan with them.
    #[serde(default)]
    pub(crate) most_tokens: Option<(f64, FoundPlan)>,
    /// The best plan if the goal had to be reached with the other chance.
    pub(crate) with_other_chance: Option<FoundPlan>,
    /// Why the goal is not reached; none if it is.
    pub(crate) unmet: Option<Unmet>,
    /// Changes of the question that make a plan work.
    pub(crate) changes: Vec<FoundChange>,
}

impl FoundAnswer {
    /// Returns the title of the software of [`FoundAnswer::with_measured_software`].
    pub(crate) fn measured_software(&self) -> Option<&str> {
        self.with_measured_software.as_ref().map(|(software, _)| &**software)
    }

    /// Returns the plan with the figures that decide whether it reaches the goal.
    pub(crate) fn judged(&self) -> Option<&FoundPlan> {
        self.layouts.first().map(|family| &family.best)
    }
}

/// How the launch script of a plan differs from the plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScriptEffect {
    /// Step time as a multiple of the planned one; 1 if its software is about as fast.
    pub(crate) slowdown: f64,
    /// Whether the plan may not fit in memory with its software.
    pub(crate) may_lack_memory: bool,
    /// Whether no script can be written.
    #[serde(default)]
    pub(crate) is_unavailable: bool,
    /// Whether it runs Megatron-LM in the place of NVIDIA's planned software.
    #[serde(default)]
    pub(crate) runs_megatron_lm: bool,
}

impl ScriptEffect {
    /// Whether the script changes nothing: it runs the plan as predicted, or no script can be written.
    pub(crate) fn is_none(self) -> bool {
        self.slowdown == 1.0 && !self.may_lack_memory
    }
}

/// The answer for a GPU type whose plans have the figures of their launch scripts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FoundByScripts {
    /// The question, as a query.
    pub(crate) query: String,
    /// The index of the GPU type.
    pub(crate) offer: usize,
    pub(crate) answer: FoundAnswer,
    /// The best plan on each number of GPUs, ascending.
    pub(crate) points: Vec<FoundPlan>,
    /// The best plan if only BF16 may be used.
    pub(crate) in_bf16: Option<Box<FoundPlan>>,
    /// How the launch script of the best plan differs from the plan.
    pub(crate) effect: ScriptEffect,
}

impl WorkerMessage for FoundByScripts {}

/// Layouts that differ only in how layers are divided among pipeline stages and their chunks (VP), and in the batch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FoundFamily {
    pub(crate) best: FoundPlan,
    /// The others, best first.
    pub(crate) others: Vec<FoundPlan>,
}

impl FoundFamily {
    /// Returns its layouts, best first.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &FoundPlan> {
        std::iter::once(&self.best).chain(&self.others)
    }
}

/// A change of the question that makes a plan work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FoundChange {
    /// The key of the field to change.
    pub(crate) key: String,
    /// Its new text; an empty one clears it.
    pub(crate) value: String,
    /// Whether the plan reaches the goal.
    pub(crate) reaches_goal: bool,
}
