//! What the planner and the worker say to each other.

use super::Message;
use serde::{Deserialize, Serialize};

/// To the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForWorker {
    /// Predict the scenario that this query of the page's address describes.
    Predict {
        /// The query.
        query: String,
    },
    /// Say how to launch it.
    Launch {
        /// The query.
        query: String,
    },
    /// Read a model from a `config.json`.
    Import {
        /// What the file holds.
        text: String,
    },
}

/// To the page.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForPage {
    /// The worker listens now.
    Ready,
    /// What is predicted of the scenario of a query.
    Predicted {
        /// The query.
        query: String,
        /// What is predicted.
        prediction: Prediction,
    },
    /// How to launch the scenario of a query.
    Launched {
        /// The query.
        query: String,
        /// How.
        launched: Launched,
    },
    /// The model of a `config.json`, or what is wrong with the file.
    Imported(Result<Imported, String>),
}

impl Message for ForWorker {}
impl Message for ForPage {}

/// What is predicted of a scenario. Sentences are made where the numbers are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prediction {
    pub(crate) low_s: f64,
    pub(crate) mid_s: f64,
    pub(crate) high_s: f64,
    /// What the prediction rests on, in a sentence.
    pub(crate) basis: String,
    /// The measurements that it rests on, each in words, and how much it is like the scenario, in percent.
    pub(crate) anchors: Vec<String>,
    /// Where the seconds go: a bar for every part, in the group that it belongs to.
    pub(crate) time: Bars,
    pub(crate) fits: bool,
    /// Whether it fits, where and by how much, in a sentence.
    pub(crate) fit: String,
    /// Where it does not fit: changes with which it would.
    pub(crate) remedies: Vec<Remedy>,
    /// What GPUs hold, GiB: a bar for every stage of the pipeline.
    pub(crate) memory: Bars,
    pub(crate) capacity_gib: f64,
}

/// A change with which a scenario would fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remedy {
    /// In words.
    pub(crate) title: String,
    /// The flags of the fields to change.
    pub(crate) flags: Vec<String>,
    /// Their new values.
    pub(crate) values: Vec<String>,
}

/// Bars that are made of parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bars {
    /// The name of each bar.
    pub(crate) labels: Vec<String>,
    pub(crate) parts: Vec<Part>,
}

/// What every bar has of one thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// One for each bar.
    pub(crate) values: Vec<f64>,
}

/// How to launch a scenario, or why it can't be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Launched {
    /// Why there is no launch; or, beside one, why no release runs it.
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) launch: Option<Launch>,
}

/// A problem of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The flag of its field.
    pub(crate) flag: String,
    pub(crate) given: String,
    pub(crate) message: String,
    pub(crate) closest: Option<String>,
    pub(crate) suggestions: Vec<String>,
    pub(crate) allowed: Vec<String>,
}

/// The commands that start a scenario, with what to know of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) release: String,
    pub(crate) style: String,
    pub(crate) script: String,
    /// The run as a campaign file.
    pub(crate) campaign: String,
    /// The name of the script's file.
    pub(crate) name: String,
    /// What the script trains, which is not the plan: releases ship measurements.
    pub(crate) runs: String,
    /// Whether what it measures can stand beside a published number.
    pub(crate) comparable: String,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) prepare: Vec<Step>,
    pub(crate) check: Vec<Step>,
    pub(crate) directory: String,
    pub(crate) log: String,
}

/// What works otherwise than one would think.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Warning {
    pub(crate) text: String,
    /// What to do about it; may be empty.
    pub(crate) fix: String,
}

/// Something for a person to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) title: String,
    pub(crate) commands: Vec<String>,
    pub(crate) note: String,
}

/// A model that was read from a `config.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Imported {
    /// The text that the field takes for it.
    pub(crate) model: String,
    pub(crate) title: String,
    /// What was assumed because the file is silent.
    pub(crate) notes: Vec<String>,
    /// What was not understood.
    pub(crate) unknown: Vec<String>,
}
