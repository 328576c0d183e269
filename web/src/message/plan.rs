//! The messages between the planner and its worker.

use super::WorkerMessage;
use super::refusal::{Refusal, field_flag};
use super::search::{FoundByScripts, ScriptEffect};
use serde::{Deserialize, Serialize};
use trainplan_shared::estimate::{Closeness, MeasuredRun, MemoryVerdict};
use trainplan_shared::field::Field;
use trainplan_shared::launch::WarningTopic;
use trainplan_shared::planning::{BatchGrowth, ScaledStep};

/// A message from the planner to the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CalculatorRequest {
    /// Predict a scenario.
    Predict {
        /// The scenario, as the query of the page's address.
        query: String,
    },
    /// Write the launch script of a scenario.
    Launch {
        /// The scenario and its launch options, as the query of the page's address.
        query: String,
    },
    /// Compare what the launch scripts of plans run with what was planned.
    Scripts {
        /// Each plan, as a query, and its scenario with the options of the launch, as the query of the page's address.
        plans: Vec<(String, String)>,
    },
    /// Answer a question for some GPU types by the launch scripts of plans.
    ByScripts {
        /// The question, as the query of the page's address.
        query: String,
        /// The indices of the GPU types.
        offers: Vec<usize>,
    },
    /// Read a model from a `config.json`, or the factors of a cluster from the file of a probe.
    Import {
        /// The contents of the file.
        text: String,
        /// Its name; empty if the contents were pasted.
        name: String,
    },
}

/// A message from the worker to the planner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CalculatorReply {
    /// The worker has started and takes requests.
    Ready,
    /// The prediction of a scenario.
    Predicted {
        /// The query of the request.
        query: String,
        prediction: Box<Prediction>,
    },
    /// The launch of a scenario.
    Launched {
        /// The query of the request.
        query: String,
        launched: Launched,
    },
    /// What the launch scripts of plans do, each with the query of the plan.
    Scripts(Vec<(String, ScriptEffect)>),
    /// The answer for a GPU type by the launch scripts of plans.
    FoundByScripts(Box<FoundByScripts>),
    /// What a file describes, or the error in the file.
    Imported(Result<Imported, String>),
}

impl WorkerMessage for CalculatorRequest {}
impl WorkerMessage for CalculatorReply {}

/// The prediction of a scenario, with its sentences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prediction {
    pub(crate) low_s: f64,
    pub(crate) mid_s: f64,
    pub(crate) high_s: f64,
    /// The kind of measurements behind the prediction, as a sentence.
    pub(crate) basis: String,
    /// The software that is predicted, as a sentence.
    pub(crate) predicted_for: String,
    /// The measured runs behind the prediction, nearest first.
    pub(crate) evidence: Vec<EvidenceRun>,
    /// The error of the prediction of the published run without that run; none if no published run corrects the prediction.
    pub(crate) held_out: Option<f64>,
    /// The step time in seconds: a bar for each part by the physical model, coloured by its group, and one for the correction by
    /// measured runs.
    pub(crate) time: Bars,
    /// The step time by the physical model.
    pub(crate) modelled_s: f64,
    pub(crate) memory_verdict: MemoryVerdict,
    /// Whether it fits, and the fullest stage with its memory, as a sentence.
    pub(crate) fit: String,
    /// Changes that make the scenario fit; empty if it already fits.
    pub(crate) remedies: Vec<Remedy>,
    /// The memory of a GPU in GiB: a bar for each pipeline stage.
    pub(crate) memory: Bars,
    pub(crate) capacity_gib: f64,
    /// The step time on other numbers of GPUs.
    pub(crate) scaling: Vec<PredictedLine>,
    /// What the whole run takes; none for a proxy, or while a field of the run is invalid.
    pub(crate) run: Option<WholeRun>,
    /// What it takes with the software of the nearest measured run, if nobody measured the plan's and that one is clearly slower. A search
    /// judges plans by it too.
    pub(crate) as_measured: Option<RunAsMeasured>,
}

/// A whole run with software that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunAsMeasured {
    /// The title of the software.
    pub(crate) software: String,
    /// The expected seconds per step.
    pub(crate) step_time_s: f64,
    pub(crate) run: WholeRun,
}

/// A measured run behind a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EvidenceRun {
    /// Model, number and type of GPUs, and precision.
    pub(crate) what: String,
    pub(crate) layout: String,
    /// Its measurements: one, or one for each release that measured it.
    pub(crate) runs: Vec<MeasuredRun>,
    pub(crate) closeness: Closeness,
    /// How much it has in common with the scenario, from 0 to 1.
    pub(crate) likeness: f64,
}

/// What a whole run takes, with failures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WholeRun {
    /// Infinite if the run is not expected to end.
    pub(crate) expected_days: f64,
    /// Why it is not, as a sentence.
    pub(crate) never_ends: Option<String>,
    pub(crate) days: (f64, f64),
    /// Lowest, expected and highest; none without a price.
    pub(crate) cost: Option<[f64; 3]>,
    pub(crate) currency: String,
    /// How the GPUs are paid for, if the price is assumed.
    pub(crate) purchase: Option<String>,
    /// What the whole term of an assumed reservation costs at least, if it is longer than the run.
    #[serde(default)]
    pub(crate) whole_term: Option<f64>,
    pub(crate) mwh: (f64, f64),
    /// Failures expected in the run.
    pub(crate) failures: (f64, f64),
    /// The share of the time that trains.
    pub(crate) goodput: (f64, f64),
}

/// Predicted steps on several numbers of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PredictedLine {
    /// How the batch follows the GPUs.
    pub(crate) growth: BatchGrowth,
    /// By GPU count.
    pub(crate) steps: Vec<ScaledStep>,
}

/// A change that makes a scenario fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remedy {
    /// The new values with the step time.
    pub(crate) title: String,
    pub(crate) changes: Vec<FieldChange>,
}

/// A field with its new value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FieldChange {
    #[serde(with = "field_flag")]
    pub(crate) field: Field,
    pub(crate) value: String,
}

/// The bars of a chart, each made of the same parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bars {
    /// The names of the bars.
    pub(crate) labels: Vec<String>,
    pub(crate) parts: Vec<Part>,
}

/// A part of each bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// One value for each bar.
    pub(crate) values: Vec<f64>,
}

/// The launch of a scenario, or the reasons that prevent it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Launched {
    /// The problems that prevent a launch; beside a launch by Megatron-LM, those that prevent one by a
    /// release.
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) launch: Option<Launch>,
    /// The ids of the styles that launch the scenario by the chosen release, or by any if none is chosen.
    pub(crate) styles: Vec<String>,
    /// The ids of the releases that launch it in the chosen style, or in any.
    pub(crate) releases: Vec<String>,
}

/// The launch script of a scenario, with its warnings, steps and outputs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) release: String,
    pub(crate) style: String,
    pub(crate) script: String,
    /// The run as a campaign file.
    pub(crate) campaign: String,
    /// The script's file name.
    pub(crate) name: String,
    /// The number of steps and the data of the run, as a sentence. Releases ship benchmarks, not full
    /// training runs.
    pub(crate) runs: String,
    /// The call of Megatron-Bridge's launcher that the release's script makes; empty where that is not known.
    pub(crate) call: String,
    /// The parts of the layout that the release's recipe sets, so that the script doesn't name them, as a sentence; empty if there are none.
    pub(crate) by_recipe: String,
    /// Whether the run can be compared with a published number, as a sentence.
    pub(crate) comparable: String,
    /// Step time of the script as a multiple of the estimated one, if its software differs noticeably.
    pub(crate) slowdown: Option<f64>,
    /// Whether the script's run fits in memory.
    pub(crate) memory: MemoryVerdict,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) prepare: Vec<Step>,
    pub(crate) check: Vec<Step>,
    pub(crate) directory: String,
    pub(crate) log: String,
}

/// A warning about a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Warning {
    pub(crate) topic: WarningTopic,
    pub(crate) text: String,
    /// The action to take; may be empty.
    pub(crate) fix: String,
    /// The settings that take the action: each a flag and a value.
    pub(crate) settings: Vec<(String, String)>,
}

/// An instruction to follow before or after the launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) title: String,
    pub(crate) commands: Vec<String>,
    pub(crate) note: String,
}

/// What an imported file sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ImportedValue {
    /// The text for the model field, from a `config.json`.
    Model(String),
    /// The text for the field of the cluster's factors, from the file of a probe.
    Cluster {
        factors: String,
        /// The id of the GPU type that was measured.
        gpu: String,
    },
}

/// What an imported file describes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Imported {
    pub(crate) value: ImportedValue,
    pub(crate) title: String,
    /// The assumptions about values that the file does not state.
    pub(crate) notes: Vec<String>,
    /// The ignored fields.
    pub(crate) unknown: Vec<String>,
}
