//! What is known of a run's scenario, and whether a measurement is published for it.

use super::Publication;
use crate::catalog::{Baseline, Catalog, Recipe, Reference, ReferenceClass};
use crate::convention::Convention;
use crate::field::Field;
use crate::log::Log;
use crate::message::Front;
use crate::releases::{LoggedTflops, Release};
use crate::result::Identity;
use crate::scenario::{RecipeChange, Scenario};
use crate::spec::Spec;
use std::borrow::Cow;

/// The known part of a run's scenario.
pub(super) struct KnownScenario {
    pub(super) spec: Spec,
    pub(super) scenario: Option<Scenario>,
    pub(super) recipe: Option<&'static Recipe>,
    pub(super) baseline: Option<&'static Baseline>,
    pub(super) publication: Publication,
    pub(super) has_wrong_tflops: bool,
    pub(super) notes: Vec<String>,
}

impl KnownScenario {
    /// Returns what is known of a run with the scenario `spec`.
    pub(super) fn of(identity: &Identity, mut spec: Spec, convention: Option<Convention>) -> Self {
        if let Some(convention) = convention {
            spec.set(Field::Convention, convention.id());
        }
        let mut notes = identity.doubts.clone();
        // A default must not replace what is in doubt.
        let scenario = match spec.scenario() {
            _ if !notes.is_empty() => None,
            Ok(scenario) => Some(scenario),
            Err(problems) => {
                notes.extend(problems.iter().map(|problem| problem.text(Front::Page)));
                None
            }
        };
        let recipe = scenario.as_ref().and_then(Scenario::published_as);
        let reference = recipe.and_then(|recipe| Catalog::embedded().reference(recipe));
        let publication = match (&scenario, recipe, reference) {
            (_, Some(_), Some(Reference { class: ReferenceClass::Exact, .. })) => Publication::Measured,
            (_, Some(recipe), Some(Reference { class: ReferenceClass::WeakScaled, gpus, .. })) => {
                Publication::WeakScaled { recipe: recipe.id.to_string(), gpus }
            }
            (_, Some(recipe), None) => Publication::Unmeasured { recipe: recipe.id.to_string() },
            (Some(scenario), None, _) => changed(scenario).unwrap_or(Publication::Custom),
            (None, None, _) => Publication::Unknown,
        };
        notes.extend(publication.note());
        let of_model = |release: Release| {
            Some(release.contract().script_of(&scenario.as_ref()?.model.id)?.logged_tflops)
        };
        let has_wrong_tflops = identity.release.and_then(of_model) == Some(LoggedTflops::Invalid);
        let baseline = reference.map(|reference| reference.baseline);
        Self { spec, scenario, recipe, baseline, publication, has_wrong_tflops, notes }
    }

    /// Returns the number of GPUs, if it is known.
    pub(super) fn gpus(&self) -> Option<u32> {
        let of_scenario = self.scenario.as_ref().map(|scenario| scenario.layout.gpus());
        of_scenario.or_else(|| self.spec.whole(Field::Gpus).ok().flatten())
    }

    /// Returns the tokens of a step divided by the number of GPUs, if the batch and the GPUs are known.
    fn tokens_per_gpu(&self) -> Option<f64> {
        let whole = |field| self.spec.whole(field).ok().flatten().map(f64::from);
        let tokens = match &self.scenario {
            Some(scenario) => scenario.batch.tokens(),
            None => whole(Field::SeqLen)? * whole(Field::Gbs)?,
        };
        Some(tokens / f64::from(self.gpus()?))
    }

    /// Returns the log, with step times computed from tokens per second where it has no others.
    pub(super) fn with_step_times<'a>(&self, log: &'a Log) -> Cow<'a, Log> {
        match self.tokens_per_gpu() {
            Some(tokens_per_gpu)
                if log.steps.step_time_s.is_empty() && !log.steps.tokens_per_s_per_gpu.is_empty() =>
            {
                let mut log = log.clone();
                log.steps.fill_step_times(tokens_per_gpu);
                Cow::Owned(log)
            }
            _ => Cow::Borrowed(log),
        }
    }
}

/// Returns how a scenario differs from the recipe that the log or the user names; none without one.
fn changed(scenario: &Scenario) -> Option<Publication> {
    let change =
        |change: &RecipeChange| format!("{} {} instead of {}", change.field.label(), change.to, change.from);
    let recipe = scenario.recipe?.id.to_string();
    Some(Publication::Changed { recipe, changes: scenario.changes.iter().map(change).collect() })
}
