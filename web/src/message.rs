//! What the Results page and its worker say to each other. A file that is handed over comes beside its message.

use serde::{Deserialize, Serialize};
use wasm_bindgen::JsValue;

/// To the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForWorker {
    /// Read the file that comes next.
    Take {
        /// What the page calls it.
        number: u32,
        /// Where it was.
        path: String,
    },
    /// Look at the results as this query of the page's address has it.
    View {
        /// The query.
        query: String,
    },
    /// Write files: `csv`, `json` or `results`.
    Save {
        /// Which.
        form: String,
    },
}

/// To the page.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForPage {
    /// The worker takes files now.
    Ready,
    /// So many bytes of the file are read.
    Progress(f64),
    /// The file is read.
    Read {
        /// What to show of it.
        row: Row,
        /// Its steps.
        curve: Curve,
    },
    /// What to show of every file, looked at in another way.
    Rows(Vec<Row>),
    /// The files that were asked for.
    Saved(Vec<Saved>),
}

/// What the page shows of a file. What is not known is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) number: u32,
    pub(crate) path: String,
    /// By its name on the command line: `scored`, `no_data`, …
    pub(crate) status: String,
    /// Why it is not scored, not comparable, or what else to know.
    pub(crate) remarks: Vec<String>,
    pub(crate) recipe: Option<String>,
    pub(crate) steps: f64,
    pub(crate) window: Option<String>,
    pub(crate) step_time_s: Option<f64>,
    pub(crate) step_time_std_s: Option<f64>,
    /// `population` or `sample`.
    pub(crate) std_kind: Option<String>,
    pub(crate) tokens_per_s: Option<f64>,
    /// A fraction.
    pub(crate) mfu: Option<f64>,
    pub(crate) convention: Option<String>,
    /// The speed in percent of the published one.
    pub(crate) speed_percent: Option<f64>,
}

/// Every step of a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Curve {
    /// As the log numbers them.
    pub(crate) labels: Vec<f64>,
    pub(crate) step_time_s: Vec<Option<f64>>,
    pub(crate) loss: Vec<Option<f64>>,
}

/// A file to save.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) name: String,
    pub(crate) text: String,
}

macro_rules! posted {
    ($message:ty) => {
        impl $message {
            /// An object to post.
            #[allow(dead_code, reason = "each side posts one kind of message and hears the other")]
            pub(crate) fn to_js(&self) -> Result<JsValue, JsValue> {
                Ok(serde_wasm_bindgen::to_value(self)?)
            }

            /// The message in what was posted.
            #[allow(dead_code, reason = "each side posts one kind of message and hears the other")]
            pub(crate) fn from_js(message: JsValue) -> Option<Self> {
                serde_wasm_bindgen::from_value(message).ok()
            }
        }
    };
}

posted!(ForWorker);
posted!(ForPage);
