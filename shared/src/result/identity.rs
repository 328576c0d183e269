//! Identifies a log: its name and its lines, matched with the published recipes.
//!
//! A log's name contains most of the run's configuration, a different part in each release, and never the GPU type. The
//! candidate recipes are narrowed down by everything that is known. What stays open is reported as a doubt, not guessed.
//! If two sources disagree, that is reported as a conflict, and the run is not compared.

use super::fields;
use crate::catalog::{Catalog, Model, Recipe};
use crate::field::Field;
use crate::log::{Log, LogName};
use crate::precision::Dtype;
use crate::releases::{ExperimentName, LoggedTflops, Release, ScriptContract};
use crate::spec::Spec;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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
}

impl Identity {
    /// Identifies a log. The fields that the user set (`said`) take precedence. A GPU type alone is usually set for many logs
    /// at once, to complete some of them: a log that is complete without it keeps its own.
    pub(super) fn of(path: &str, name: &LogName, log: &Log, said: &Spec) -> Self {
        let seen = LogFacts::of(path, name, log);
        let names = [Field::Recipe, Field::Model];
        if said.get(Field::Gpu).is_some() && names.iter().all(|field| said.get(*field).is_none()) {
            let alone = Self::by(&seen, &said.clone().with(Field::Gpu, ""));
            if alone.doubts.is_empty() {
                return alone;
            }
        }
        Self::by(&seen, said)
    }

    fn by(seen: &LogFacts, said: &Spec) -> Self {
        let mut identity = Self { release: seen.release, scenario: said.clone(), ..Self::default() };
        let recipe = match said.get(Field::Recipe) {
            Some(id) => Catalog::embedded().recipe(id).ok(),
            None => identity.find_recipe(seen),
        };
        if let Some(recipe) = recipe {
            identity.release = Some(recipe.id.release);
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
            None => seen.model.map(Cow::Borrowed),
        };
        let Some(model) = model else {
            self.doubts.push("The log doesn't name its model. Set the recipe or the model.".into());
            return None;
        };
        self.scenario.set(Field::Model, &model.id);
        let of_release =
            |recipe: &&Recipe| recipe.id.model == model.id && Some(recipe.id.release) == seen.release;
        let mut candidates: Vec<&'static Recipe> = catalog.recipes().iter().filter(of_release).collect();
        if candidates.is_empty() {
            if said.get(Field::Gpu).is_none() {
                let title = &model.title;
                self.doubts.push(format!(
                    "Couldn't match this {title} log to a recipe. Set the recipe, or GPU type, GPU count and GBS."
                ));
            }
            return None;
        }
        let gpu = said.get(Field::Gpu).and_then(|id| catalog.gpu_or_own(id).ok());
        let dtype = said.parse(Field::Dtype).ok().flatten().or(seen.dtype);
        prefer(&mut candidates, |recipe| gpu.as_ref().is_some_and(|gpu| gpu.id == recipe.id.gpu));
        prefer(&mut candidates, |recipe| dtype == Some(recipe.id.dtype));
        let wanted = seen.numbers.map(|(field, number)| (field, whole(&said, field).or(number)));
        let agrees = |recipe: &Recipe, (field, number): (Field, Option<u32>)| {
            number.is_none_or(|number| number == value(recipe, field))
        };
        prefer(&mut candidates, |recipe| wanted[LAYOUT..].iter().all(|fact| agrees(recipe, *fact)));
        match wanted[GPUS].1 {
            Some(gpus) => nearest(&mut candidates, gpus),
            None => candidates.retain(|recipe| recipe.scaling.is_some()),
        }
        prefer(&mut candidates, |recipe| agrees(recipe, wanted[GBS]));

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
        if let (Some(meant), Some(told)) = (meant, seen.model)
            && meant != told.id
        {
            self.note_conflict(Field::Model, &told.id, meant);
        }
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
                _ => self.scenario.set(field, told.to_string()),
            }
        }
        let Some(told) = seen.dtype else { return };
        let meant = said.parse(Field::Dtype).ok().flatten().or_else(|| recipe.map(|recipe| recipe.id.dtype));
        match meant {
            Some(meant) if meant == told => {}
            Some(meant) if recipe_is_said || said.get(Field::Dtype).is_some() => {
                self.note_conflict(Field::Dtype, told.id(), meant.id());
            }
            _ => self.scenario.set(Field::Dtype, told.id()),
        }
    }

    fn note_conflict(&mut self, field: Field, told: &str, meant: &str) {
        self.conflicts.push(format!("The log says {} {told}, but {meant} was set.", field.label()));
    }
}

/// What the log and its name say about the run.
struct LogFacts {
    release: Option<Release>,
    model: Option<&'static Model>,
    dtype: Option<Dtype>,
    named_gbs: Option<u32>,
    printed_gbs: Option<u32>,
    /// GPUs, GBS and the layout, in this order.
    numbers: [(Field, Option<u32>); 8],
}

const GPUS: usize = 0;
const GBS: usize = 1;
const LAYOUT: usize = 2;

impl LogFacts {
    fn of(path: &str, name: &LogName, log: &Log) -> Self {
        let printed_gbs = log.steps.global_batch_size().and_then(|gbs| u32::try_from(gbs).ok());
        Self {
            release: release(path, name, log),
            model: model(name),
            // In the first release only a folder's name has the precision.
            dtype: name.dtype.as_deref().into_iter().chain(folders(path)).find_map(|word| word.parse().ok()),
            named_gbs: name.gbs,
            printed_gbs,
            numbers: [
                (Field::Gpus, name.gpus),
                (Field::Gbs, printed_gbs.or(name.gbs)),
                (Field::Tp, name.tp),
                (Field::Pp, name.pp),
                (Field::Cp, name.cp),
                (Field::Vp, name.vp),
                (Field::Ep, name.ep),
                (Field::Mbs, name.mbs),
            ],
        }
    }
}

/// Returns the release, by the name of the experiment, else by a folder, else by the format of a step.
fn release(path: &str, name: &LogName, log: &Log) -> Option<Release> {
    // A launch by Megatron-LM is of no release, whatever its model is called.
    if name.experiment.starts_with("megatron-lm_") {
        return None;
    }
    let spells_layout = name.tp.is_some();
    let find = |is_of: &dyn Fn(&ScriptContract) -> bool| {
        Release::ALL.into_iter().find(|release| release.contract().scripts.iter().any(is_of))
    };
    let by_name = find(&|script| match script.experiment {
        ExperimentName::JobScript => name.experiment.starts_with("nemo_"),
        ExperimentName::WithLayout { family, .. } => spells_layout && name.model.as_deref() == Some(family),
        ExperimentName::Short => false,
    });
    let prints_tflops = !log.steps.tflops_per_gpu.is_empty();
    let by_lines = || {
        find(&|script| match (script.experiment, log.format) {
            (ExperimentName::JobScript, format) => format == Some(script.log),
            // Releases that are not known here name experiments of other models with their layout, too.
            (ExperimentName::WithLayout { .. }, _) => false,
            (ExperimentName::Short, _) if spells_layout => false,
            (ExperimentName::Short, Some(format)) => {
                format == script.log && prints_tflops == (script.logged_tflops != LoggedTflops::Absent)
            }
            (ExperimentName::Short, None) => name.model.is_some() && name.experiment.starts_with("pretrain_"),
        })
    };
    by_name.or_else(|| folders(path).find_map(|folder| folder.parse().ok())).or_else(by_lines)
}

fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.split(['/', '\\'])
}

/// Returns the model of a name: `nemotronh` and `56b` are nemotron-h-56b.
fn model(name: &LogName) -> Option<&'static Model> {
    let letters = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let wanted = letters(name.model.as_deref()?) + &letters(name.size.as_deref().unwrap_or_default());
    Catalog::embedded().models().iter().find(|model| letters(&model.id) == wanted)
}

/// Keeps the candidates that pass, unless none does.
fn prefer(candidates: &mut Vec<&'static Recipe>, passes: impl Fn(&Recipe) -> bool) {
    if candidates.iter().any(|recipe| passes(recipe)) {
        candidates.retain(|recipe| passes(recipe));
    }
}

/// Keeps the candidates with this GPU count, else those with the closest. A proxy matches only its own count.
fn nearest(candidates: &mut Vec<&'static Recipe>, gpus: u32) {
    candidates.retain(|recipe| recipe.scaling.is_some() || recipe.id.gpus == gpus);
    let sizes = candidates.iter().map(|recipe| recipe.id.gpus);
    if let Some(nearest) = sizes.min_by_key(|size| (size.abs_diff(gpus), *size)) {
        candidates.retain(|recipe| recipe.id.gpus == nearest);
    }
}

/// Returns what the candidates still differ in, as sentences.
fn differing(candidates: &[&Recipe]) -> Vec<String> {
    let questions = [
        ("GPU type", distinct(candidates, &|recipe| recipe.id.gpu.clone())),
        ("precision", distinct(candidates, &|recipe| recipe.id.dtype.to_string())),
        ("GPU count", distinct(candidates, &|recipe| recipe.id.gpus.to_string())),
        ("global batch size", distinct(candidates, &|recipe| recipe.gbs.to_string())),
    ];
    let open = questions.into_iter().filter(|(_, values)| values.len() > 1);
    open.map(|(what, values)| format!("The log doesn't contain the {what}. Set it to {}.", either(&values)))
        .collect()
}

/// Returns values as a choice: `a, b or c`.
fn either(values: &[String]) -> String {
    match values {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        values => values.concat(),
    }
}

/// Returns the candidates' values, each once.
fn distinct(candidates: &[&Recipe], of: &dyn Fn(&Recipe) -> String) -> Vec<String> {
    let mut values = Vec::new();
    for recipe in candidates {
        let value = of(recipe);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn whole(spec: &Spec, field: Field) -> Option<u32> {
    spec.whole(field, 1).ok().flatten()
}

/// The recipe's value of a number that [`LogFacts`] lists.
fn value(recipe: &Recipe, field: Field) -> u32 {
    let degrees = &recipe.degrees;
    match field {
        Field::Gpus => degrees.gpus,
        Field::Gbs => recipe.gbs,
        Field::Tp => degrees.tp,
        Field::Pp => degrees.pp,
        Field::Cp => degrees.cp,
        Field::Vp => degrees.vp,
        Field::Ep => degrees.ep,
        _ => recipe.mbs,
    }
}
