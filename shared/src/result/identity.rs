//! What a log is a run of: its name and its lines, joined with what is published.
//!
//! The name of a log tells most of a run's configuration, a different part of it at every release, and never the GPU
//! type. So the recipes that the run may be are narrowed down by whatever is known. What remains open is said, not
//! guessed; what two sources tell differently is said too, and then nothing is compared.

use super::fields;
use crate::catalog::{Catalog, Model, Recipe};
use crate::field::Field;
use crate::log::{Log, Name};
use crate::precision::Dtype;
use crate::releases::{ExperimentName, LoggedTflops, Release, ScriptContract};
use crate::spec::Spec;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a log is a run of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The release that made it, or whose rules its log follows.
    pub release: Option<Release>,
    /// The scenario as far as it is known: a recipe and what differs from it, or else single fields.
    #[serde(with = "fields")]
    pub scenario: Spec,
    /// What remains open, and what to say to close it.
    pub doubts: Vec<String>,
    /// What is told in two ways.
    pub conflicts: Vec<String>,
}

impl Identity {
    /// Identifies a log, `said` counting for more than what it tells itself. A GPU type alone is said of many logs at
    /// once, to settle what some of them leave open: one that leaves nothing open keeps its own.
    pub(super) fn of(path: &str, name: &Name, log: &Log, said: &Spec) -> Self {
        let seen = Seen::of(path, name, log);
        let names = [Field::Recipe, Field::Model];
        if said.get(Field::Gpu).is_some() && names.iter().all(|field| said.get(*field).is_none()) {
            let alone = Self::by(&seen, &said.clone().with(Field::Gpu, ""));
            if alone.doubts.is_empty() {
                return alone;
            }
        }
        Self::by(&seen, said)
    }

    fn by(seen: &Seen, said: &Spec) -> Self {
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

    /// The recipe that it is, or that it comes nearest to; none if several are equally near.
    fn find_recipe(&mut self, seen: &Seen) -> Option<&'static Recipe> {
        let catalog = Catalog::embedded();
        let said = self.scenario.clone();
        let model = match said.get(Field::Model) {
            Some(id) => catalog.model_or_own(id).ok(),
            None => seen.model.map(Cow::Borrowed),
        };
        let Some(model) = model else {
            self.doubts.push("the log does not tell which model it trains: name its recipe or model".into());
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
                    "no known release publishes {title} in this way: name the recipe, or GPU type, GPUs and GBS"
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
        // What they agree on is enough for tokens per second. At another size they would have another batch.
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

    /// Puts in what the log tells beyond the recipe and beyond what was said; notes what contradicts either.
    fn fill(&mut self, seen: &Seen, recipe: Option<&'static Recipe>, said: &Spec) {
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
            self.conflicts.push(format!("its name says GBS {named}, its lines {printed}"));
        }
        for (field, told) in seen.numbers {
            let Some(told) = told else { continue };
            let meant = whole(said, field).or_else(|| recipe.map(|recipe| value(recipe, field)));
            let is_said = said.get(field).is_some();
            // The batch of a recipe follows the GPUs, that of the run is what its lines tell.
            let is_batch = field == Field::Gbs && !is_said;
            let follows = is_batch && self.scenario.get(Field::Gpus).is_some();
            match meant {
                Some(meant) if meant == told && !follows => {}
                // A recipe that was named stands for all but the batch.
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
        self.conflicts.push(format!("the log says {} {told}, and it was said to be {meant}", field.label()));
    }
}

/// What the log and its name tell.
struct Seen {
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

impl Seen {
    fn of(path: &str, name: &Name, log: &Log) -> Self {
        let printed_gbs = log.steps.global_batch_size().and_then(|gbs| u32::try_from(gbs).ok());
        Self {
            release: release(path, name, log),
            model: model(name),
            // The first release tells the precision by a folder alone.
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

/// The release by how it names its experiments, else by a folder, else by how its framework prints a step.
fn release(path: &str, name: &Name, log: &Log) -> Option<Release> {
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

/// The model that a name means: `nemotronh` and `56b` are nemotron-h-56b.
fn model(name: &Name) -> Option<&'static Model> {
    let letters = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let wanted = letters(name.model.as_deref()?) + &letters(name.size.as_deref().unwrap_or_default());
    Catalog::embedded().models().iter().find(|model| letters(&model.id) == wanted)
}

/// Keeps the candidates that pass, if any does.
fn prefer(candidates: &mut Vec<&'static Recipe>, passes: impl Fn(&Recipe) -> bool) {
    if candidates.iter().any(|recipe| passes(recipe)) {
        candidates.retain(|recipe| passes(recipe));
    }
}

/// Keeps the candidates of that size, or else those that come nearest. A proxy stands for no size but its own.
fn nearest(candidates: &mut Vec<&'static Recipe>, gpus: u32) {
    candidates.retain(|recipe| recipe.scaling.is_some() || recipe.id.gpus == gpus);
    let sizes = candidates.iter().map(|recipe| recipe.id.gpus);
    if let Some(nearest) = sizes.min_by_key(|size| (size.abs_diff(gpus), *size)) {
        candidates.retain(|recipe| recipe.id.gpus == nearest);
    }
}

/// In what the candidates still differ.
fn differing(candidates: &[&Recipe]) -> Vec<String> {
    let questions = [
        ("GPU type", distinct(candidates, &|recipe| recipe.id.gpu.clone())),
        ("precision", distinct(candidates, &|recipe| recipe.id.dtype.to_string())),
        ("number of GPUs", distinct(candidates, &|recipe| recipe.id.gpus.to_string())),
        ("global batch", distinct(candidates, &|recipe| recipe.gbs.to_string())),
    ];
    let open = questions.into_iter().filter(|(_, values)| values.len() > 1);
    open.map(|(what, values)| format!("the log does not tell the {what}: say which of {}", values.join(", ")))
        .collect()
}

/// The values of the candidates, each once.
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

/// The recipe's value of a number that [`Seen`] lists.
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
