//! The releases of recipes: those of NVIDIA's recipe collection, and Megatron-Bridge's own recipes. Each has one file
//! with one [`ReleaseContract`]: what it runs, how it is set up, what its scripts do and what they leave behind.
//!
//! To add a release, add a file beside this one and two lines below: `mod rYY_MM;` and the entry in `releases!`.
//! The compiler asks for every value. The variables that its scripts read, its limits, recipes and baselines are
//! rows of the files in `data/`.

mod bridge;
mod bridge_0_6_0;
mod bridge_main;
mod contract;
mod r24_11;
mod r25_04;
mod r25_05;
mod r25_12;
mod r26_06_01;

pub(crate) use bridge::{BridgeForm, BridgeModel};
pub use contract::{
    BatchRule, ExperimentName, Fp8Scaling, LoggedTflops, ProfileRun, ReleaseContract, ReleaseSoftware,
    ScriptContract, SetupStep, TokenUse, TraceRun, TracedJob,
};

use crate::field::Field;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! releases {
    ($($(#[$doc:meta])* $variant:ident $id:literal $module:ident,)*) => {
        /// A release of recipes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Release { $($(#[$doc])* #[serde(rename = $id)] $variant,)* }

        impl Release {
            /// Every release: where several have a recipe, the last of them is the usual one. Those of the collection come from
            /// the oldest to the newest.
            pub const ALL: [Release; [$($id),*].len()] = [$(Release::$variant,)*];

            /// Returns the release's name, as in `llama3.1-8b/h100/bf16/8@25.04`.
            pub const fn id(self) -> &'static str {
                match self { $(Release::$variant => $id,)* }
            }

            /// Returns what the release runs.
            pub const fn software(self) -> &'static ReleaseSoftware {
                match self { $(Release::$variant => &$module::SOFTWARE,)* }
            }

            /// Returns how the release is set up and how its scripts behave.
            pub const fn contract(self) -> &'static ReleaseContract {
                match self { $(Release::$variant => &$module::CONTRACT,)* }
            }
        }
    };
}

releases! {
    /// Megatron-Bridge's own performance recipes at its version 0.6.0, launched by its train.sh.
    Bridge060 "bridge-0.6.0" bridge_0_6_0,
    /// Megatron-Bridge's own performance recipes on its main branch, launched by its train.sh.
    BridgeMain "bridge-main" bridge_main,
    /// November 2024: the recipe's script is the batch job.
    R24_11 "24.11" r24_11,
    /// April 2025: launch.sh under STAGE_PATH.
    R25_04 "25.04" r25_04,
    /// May 2025: launch.sh and llmb-run under LLMB_INSTALL.
    R25_05 "25.05" r25_05,
    /// December 2025: launch.sh and llmb-run under LLMB_INSTALL, on Slurm and Run:ai.
    R25_12 "25.12" r25_12,
    /// June 2026: launch.sh and llmb-run under LLMB_INSTALL, on Megatron-Bridge.
    R26_06_01 "26.06.01" r26_06_01,
}

impl Release {
    /// Returns the release whose rows in the data files also describe this one: what its scripts read, its limits, peaks and
    /// published results. Versions of Megatron-Bridge share the rows of its main branch. Every other release has its own.
    pub(crate) const fn described_as(self) -> Release {
        match self {
            Release::Bridge060 => Release::BridgeMain,
            release => release,
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Release {
    type Err = Problem;

    /// Reads a release's name, or `latest` for the newest of the collection.
    fn from_str(text: &str) -> Result<Release, Problem> {
        if text.trim() == "latest" {
            return Ok(Release::ALL[Release::ALL.len() - 1]);
        }
        Release::ALL
            .into_iter()
            .find(|release| release.id() == text.trim())
            .ok_or_else(|| Problem::unknown(Field::Release, text, Release::ALL.map(Release::id)))
    }
}
