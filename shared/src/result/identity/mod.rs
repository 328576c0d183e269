//! Identifies a log: its name and its lines, matched with the published recipes.
//!
//! A log's name contains most of the run's configuration, a different part in each release, and never the GPU type. A
//! log of Megatron-LM lists its arguments, which take precedence over its name. The configurations of Megatron-Bridge and llmb-run beside
//! a log complete its name; llmb-run's has the GPU type. The candidate recipes are narrowed down by everything that is known. What stays
//! open is reported as a doubt, not guessed. If two sources disagree, that is reported as a conflict, and the run is not compared. If a
//! file beside the log disagrees with the log, that is only noted.

mod arguments;
mod candidates;
mod facts;
#[cfg(test)]
mod tests;
mod torchtitan;
mod unmatched;
mod values;

use super::{JobSettings, fields};
use crate::catalog::{Catalog, Recipe};
use crate::field::Field;
use crate::link;
use crate::log::{Log, LogName};
use crate::releases::Release;
use crate::scenario::Scenario;
use crate::spec::Spec;
use candidates::{differing, distinct, either, nearest, prefer};
use facts::{GBS, GPUS, LAYOUT, LogFacts};
use serde::{Deserialize, Serialize};
use unmatched::Unmatched;
use values::{is_kind_of, is_precision_of, is_same_option, option, value};

/// The identity of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The release that launched it, or whose log format it has.
    pub release: Option<Release>,
    /// The known part of the scenario: a recipe and the differences from it, or single fields.
    #[serde(with = "fields")]
    pub scenario: Spec,
    /// What is unknown, and what to set, as sentences.
    pub doubts: Vec<String>,
    /// Where two sources disagree, as sentences.
    pub conflicts: Vec<String>,
    /// Where a file beside the log disagrees with the log, which takes precedence, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
}

impl Identity {
    /// Identifies a log. The fields that the user set (`said`) take precedence. A GPU type alone is usually set for many logs
    /// at once, to complete some of them: a log that is complete without it keeps its own.
    ///
    /// The scenario that the job stated in its log completes what the user set, unless the user named the recipe or the model.
    pub(super) fn of(path: &str, name: &LogName, log: &Log, settings: &JobSettings, said: &Spec) -> Self {
        let seen = LogFacts::of(path, name, log, settings);
        let is_named = [Field::Recipe, Field::Model].iter().any(|field| said.get(*field).is_some());
        if let Some(stated) = log.scenario.as_deref().and_then(stated).filter(|_| !is_named) {
            let said = said.iter().fold(stated, |spec, (field, text)| spec.with(field, text));
            return Self::by(&seen, &said);
        }
        let names = [Field::Recipe, Field::Model];
        if said.get(Field::Gpu).is_some() && names.iter().all(|field| said.get(*field).is_none()) {
            let alone = Self::by(&seen, &said.clone().with(Field::Gpu, ""));
            if alone.doubts.is_empty() {
                return alone;
            }
        }
        Self::by(&seen, said)
    }

    /// Returns whether the scenario states more than an earlier one, and everything that it stated, in a field or through the recipe.
    /// Contradictions must be the same.
    pub(super) fn adds_to(&self, earlier: &Self) -> bool {
        let whole = self.scenario.scenario().ok();
        let states = |(field, stated): (Field, &str)| match (self.scenario.get(field), &whole) {
            (Some(own), _) => own == stated,
            (None, Some(whole)) => implies(whole, field, stated),
            (None, None) => false,
        };
        self.scenario != earlier.scenario
            && self.conflicts == earlier.conflicts
            && earlier.scenario.iter().all(states)
    }

    fn by(seen: &LogFacts, said: &Spec) -> Self {
        let (scenario, differences) = (said.clone(), seen.differences.clone());
        let mut identity = Self { release: seen.release, scenario, differences, ..Self::default() };
        let is_open = [Field::Recipe, Field::Gpu].iter().all(|field| said.get(*field).is_none());
        let gpu = seen.gpu.filter(|_| is_open);
        if let Some(gpu) = gpu {
            identity.scenario.set(Field::Gpu, gpu);
        }
        let recipe = match said.get(Field::Recipe) {
            Some(id) => Catalog::embedded().recipe(id).ok(),
            None => identity.find_recipe(seen),
        };
        if let Some(recipe) = recipe {
            identity.release = Some(recipe.id.release);
            if gpu == Some(recipe.id.gpu.as_str()) {
                identity.scenario.set(Field::Gpu, "");
            }
        }
        identity.fill(seen, recipe, said);
        identity
    }

    /// Returns the recipe that matches, or the closest one; none if several are equally close.
    fn find_recipe(&mut self, seen: &LogFacts) -> Option<&'static Recipe> {
        let catalog = Catalog::embedded();
        let said = self.scenario.clone();
        let model = match said.get(Field::Model) {
            Some(id) => catalog.model_or_own(id).ok(),
            None => seen.model.clone(),
        };
        let Some(model) = model else {
            self.doubts.push(match seen.like_models.as_slice() {
                [] => "The log doesn't name its model. Set the recipe or the model.".into(),
                alike => {
                    format!("The log's arguments fit several models. Set the model to {}.", either(alike))
                }
            });
            return None;
        };
        self.scenario.set(Field::Model, &model.id);
        let of_release =
            |recipe: &&Recipe| recipe.id.model == model.id && Some(recipe.id.release) == seen.release;
        let mut candidates: Vec<&'static Recipe> = catalog.recipes().iter().filter(of_release).collect();
        let dtype = said.parse(Field::Dtype).ok().flatten().or(seen.dtype);
        let wanted = seen.numbers.map(|(field, number)| (field, whole(&said, field).or(number)));
        if candidates.is_empty() {
            if said.get(Field::Gpu).is_none() {
                self.doubts.push(match seen.has_arguments {
                    true => NO_GPU_TYPE.to_owned(),
                    false => Unmatched {
                        model: &model,
                        release: seen.release,
                        experiment: &seen.experiment,
                        wanted: &wanted,
                        dtype,
                    }
                    .text(),
                });
            }
            return None;
        }
        let gpu = said.get(Field::Gpu).and_then(|id| catalog.gpu_or_own(id).ok());
        prefer(&mut candidates, |recipe| seen.named_recipe.is_some_and(|named| named.id == recipe.id));
        prefer(&mut candidates, |recipe| gpu.as_ref().is_some_and(|gpu| gpu.id == recipe.id.gpu));
        prefer(&mut candidates, |recipe| dtype.is_some_and(|dtype| is_precision_of(recipe, dtype)));
        let agrees = |recipe: &Recipe, (field, number): (Field, Option<u32>)| {
            number.is_none_or(|number| number == value(recipe, field))
        };
        prefer(&mut candidates, |recipe| wanted[LAYOUT..].iter().all(|fact| agrees(recipe, *fact)));
        match wanted[GPUS].1 {
            Some(gpus) => nearest(&mut candidates, gpus),
            None => candidates.retain(|recipe| recipe.scaling.is_some()),
        }
        prefer(&mut candidates, |recipe| agrees(recipe, wanted[GBS]));
        prefer(&mut candidates, |recipe| recipe.id.variant.is_none());

        let open = differing(&candidates);
        if open.is_empty() {
            let recipe = candidates.first().copied()?;
            self.scenario.set(Field::Recipe, recipe.id.to_string());
            if said.get(Field::Model).is_none() {
                self.scenario.set(Field::Model, "");
            }
            return Some(recipe);
        }
        self.doubts.extend(open);
        // Common values are enough for tokens per second. At another GPU count the batch would differ.
        let of_size = candidates.iter().all(|recipe| wanted[GPUS].1 == Some(recipe.id.gpus));
        let common = [
            (Field::SeqLen, true, distinct(&candidates, &|recipe| recipe.seq_len.to_string())),
            (Field::Gbs, of_size, distinct(&candidates, &|recipe| recipe.gbs.to_string())),
        ];
        for (field, holds, values) in common {
            if let (true, [only], None) = (holds, values.as_slice(), said.get(field)) {
                self.scenario.set(field, only);
            }
        }
        None
    }

    /// Adds the log's own values to the recipe and the user's fields, and notes contradictions.
    fn fill(&mut self, seen: &LogFacts, recipe: Option<&'static Recipe>, said: &Spec) {
        let recipe_is_said = said.get(Field::Recipe).is_some();
        let meant = said.get(Field::Model).or_else(|| recipe.map(|recipe| recipe.id.model.as_str()));
        self.check_model(seen, meant);
        self.conflicts.extend(seen.conflicts.iter().cloned());
        if let (Some(named), Some(printed)) = (seen.named_gbs, seen.printed_gbs)
            && named != printed
        {
            self.conflicts.push(format!("The log's name says GBS {named}, its lines say {printed}."));
        }
        for (field, told) in seen.numbers {
            let Some(told) = told else { continue };
            let meant = whole(said, field).or_else(|| recipe.map(|recipe| value(recipe, field)));
            let is_said = said.get(field).is_some();
            // A recipe's batch scales with the GPUs; the run's batch is the one in its lines.
            let is_batch = field == Field::Gbs && !is_said;
            let follows = is_batch && self.scenario.get(Field::Gpus).is_some();
            match meant {
                Some(meant) if meant == told && !follows => {}
                // A recipe set by the user fixes everything but the batch.
                Some(meant) if is_said || recipe_is_said && !is_batch => {
                    self.note_conflict(field, &told.to_string(), &meant.to_string());
                }
                // The layers follow from the model, unless the run has fewer of them.
                _ if field == Field::Layers && self.layers_of_model() == Some(told) => {}
                _ => self.scenario.set(field, told.to_string()),
            }
        }
        for (field, told) in &seen.options {
            let is_told = |meant: &str| {
                is_same_option(*field, meant, told)
                    || *field == Field::PipelineSplit && seen.divides_alike(meant, told)
            };
            match said.get(*field) {
                Some(meant) if is_told(meant) => {}
                Some(meant) => self.note_conflict(*field, told, meant),
                None if recipe_is_said && recipe.is_some_and(|recipe| is_told(&option(recipe, *field))) => {}
                None if recipe_is_said => {
                    self.conflicts
                        .push(format!("The log says {} {told}, but the recipe doesn't.", field.label()));
                }
                None => self.scenario.set(*field, told),
            }
        }
        if let (Some(precision), true) = (seen.other_precision, said.get(Field::Dtype).is_none()) {
            self.doubts.push(format!(
                "The log's precision is {precision}, which isn't supported. Set the precision whose peak the MFU should use."
            ));
        }
        let Some(told) = seen.dtype else { return };
        let meant = said.parse(Field::Dtype).ok().flatten().or_else(|| recipe.map(|recipe| recipe.id.dtype));
        match meant {
            _ if said.get(Field::Dtype).is_none()
                && recipe.is_some_and(|recipe| is_precision_of(recipe, told)) => {}
            Some(meant) if meant == told || seen.has_arguments && is_kind_of(told, meant) => {}
            Some(meant) if recipe_is_said || said.get(Field::Dtype).is_some() => {
                self.note_conflict(Field::Dtype, told.id(), meant.id());
            }
            _ => self.scenario.set(Field::Dtype, told.id()),
        }
    }

    /// Notes whether the log's model contradicts the one that was set.
    fn check_model(&mut self, seen: &LogFacts, meant: Option<&str>) {
        let Some(meant) = meant else { return };
        match (&seen.shape, Catalog::embedded().model_or_own(meant), &seen.model) {
            (Some(shape), Ok(model), _) => {
                let differences = shape.differences(&model.architecture);
                if !differences.is_empty() {
                    let (title, list) = (&model.title, differences.join(", "));
                    self.conflicts.push(format!("The log's arguments don't fit {title}: {list}."));
                }
            }
            (_, _, Some(told)) if meant != told.id => self.note_conflict(Field::Model, &told.id, meant),
            _ => {}
        }
    }

    /// Returns the layers of the scenario's model.
    fn layers_of_model(&self) -> Option<u32> {
        let catalog = Catalog::embedded();
        let recipe = self.scenario.get(Field::Recipe).and_then(|id| catalog.recipe(id).ok());
        let of_model = || {
            let model = catalog.model_or_own(self.scenario.get(Field::Model)?).ok()?;
            Some(model.architecture.layers)
        };
        of_model().or(recipe.map(|recipe| recipe.layers))
    }

    fn note_conflict(&mut self, field: Field, told: &str, meant: &str) {
        self.conflicts.push(format!("The log says {} {told}, but {meant} was set.", field.label()));
    }
}

/// Returns the scenario that a job stated in its log; none if it doesn't name a recipe or a model, or if it is invalid: the line
/// is a text like any other.
fn stated(query: &str) -> Option<Spec> {
    let read = link::read(query).spec;
    let of_scenario = read.iter().filter(|(field, _)| field.is_of_scenario());
    let spec = of_scenario.fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
    let names = spec.get(Field::Recipe).or(spec.get(Field::Model));
    let is_valid =
        spec.scenario().err().is_none_or(|problems| problems.iter().all(|one| one.given.is_empty()));
    (names.is_some() && is_valid).then_some(spec)
}

/// Returns whether a scenario has this value of a field. A recipe's precision may be named as its script runs it.
fn implies(scenario: &Scenario, field: Field, stated: &str) -> bool {
    let dtype = Spec::default().with(Field::Dtype, stated).parse(Field::Dtype).ok().flatten();
    let is_precision = |recipe| dtype.is_some_and(|dtype| is_precision_of(recipe, dtype));
    scenario.value(field).is_some_and(|value| is_same_option(field, &value, stated))
        || field == Field::Dtype && scenario.recipe.is_some_and(is_precision)
}

/// What is still needed of a log that lists its arguments.
const NO_GPU_TYPE: &str = "The log doesn't contain the GPU type, which the MFU needs: set it. Comparisons assume one type for all such logs.";

fn whole(spec: &Spec, field: Field) -> Option<u32> {
    spec.whole(field).ok().flatten()
}
