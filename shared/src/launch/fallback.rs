//! Why a script runs Megatron-LM directly, although the user didn't choose it.

use super::offers;
use crate::field::Field;
use crate::problem::Problem;
use crate::releases::Release;
use crate::scenario::Scenario;
use crate::stack::Stack;
use serde::Serialize;

/// Why no release launches a scenario, so that its script runs Megatron-LM directly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// The release that would launch such a scenario; `None` if none has a recipe for its model, GPU type and precision.
    pub release: Option<Release>,
    /// What prevents a launch with a release, with values that one launches.
    pub problems: Vec<Problem>,
}

impl Fallback {
    /// Returns the fallback of a scenario that no release launches because of these problems.
    pub(super) fn of(scenario: &Scenario, problems: Vec<Problem>) -> Fallback {
        Fallback { release: offers::nearest_release(scenario), problems }
    }

    /// Returns the fallback of a scenario whose software no release has; `None` if that is Megatron-LM.
    pub(super) fn for_software(scenario: &Scenario) -> Option<Fallback> {
        let software = scenario.options.software;
        (software.base() != Stack::MegatronLm014).then(|| {
            let message = format!("No release runs {}.", software.title());
            Fallback::of(scenario, vec![Problem::new(Field::Stack, software, message)])
        })
    }
}
