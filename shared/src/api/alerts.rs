//! Alerts: runs that were slower than expected, listed by the server and sent to webhooks.

use crate::history::ThresholdKind;
use serde::{Deserialize, Serialize};

/// What an alert says. A webhook receives the same, with `link` added and `text` made to stand alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlertMessage {
    /// The run's id.
    pub run: String,
    /// The recipe or scenario, and its cluster.
    pub what: String,
    /// The threshold that the run exceeded.
    pub kind: ThresholdKind,
    /// A sentence with the numbers.
    pub text: String,
    /// When the run ran.
    pub at: String,
    /// The measured seconds per step.
    pub measured_s: f64,
    /// The expected seconds per step.
    pub expected_s: f64,
    /// The seconds per step above which a run is a regression.
    pub limit_s: f64,
}

/// A stored alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlertRecord {
    /// The alert's id.
    pub id: String,
    /// When the server found the regression.
    pub at: String,
    /// The run's id.
    pub run: String,
    /// The threshold, as in `alert.kind`; null if this version does not know it.
    pub kind: Option<ThresholdKind>,
    /// What the alert says; null if it can't be read.
    pub alert: Option<AlertMessage>,
    /// Who acknowledged it; null if nobody did.
    #[serde(default)]
    pub acknowledged: Option<Acknowledgement>,
}

/// Who acknowledged an alert, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Acknowledgement {
    /// When it was acknowledged.
    pub at: String,
    /// The id of the token, or the name of the person.
    pub by: String,
    /// The name of the token; null if a person acknowledged it.
    #[serde(default)]
    pub name: Option<String>,
    /// Why the run was slow, or what is done about it.
    pub reason: String,
}

/// A request to acknowledge the alerts of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AcknowledgementRequest {
    /// Why the run was slow, or what is done about it: 1 to 1000 bytes.
    pub reason: String,
}

/// A list of alerts.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlertRecords {
    /// The alerts, newest first.
    pub items: Vec<AlertRecord>,
}
