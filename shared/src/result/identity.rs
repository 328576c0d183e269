//! Identifies a log: its name and its lines, matched with the published recipes.
//!
//! A log's name contains most of the run's configuration, a different part in each release, and never the GPU type. A
//! log of Megatron-LM lists its arguments, which take precedence over its name. The candidate recipes are narrowed down by everything that is known. What stays open is reported as a doubt, not guessed.
//! If two sources disagree, that is reported as a conflict, and the run is not compared.

use super::fields;
use super::pipeline_split::pipeline_split;
use super::shape::{ModelShape, ShapeMatch};
use crate::catalog::{Catalog, Model, Recipe};
use crate::field::Field;
use crate::layout::PipelineSplit;
use crate::link;
use crate::log::{Arguments, Log, LogName};
use crate::options::Modules;
use crate::precision::Dtype;
use crate::problem::all_of;
use crate::releases::{BridgeModel, ExperimentName, LoggedTflops, Release, ScriptContract};
use crate::sorting::sorted;
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
    ///
    /// The scenario that the job stated in its log completes what the user set, unless the user named the recipe or the model.
    pub(super) fn of(path: &str, name: &LogName, log: &Log, said: &Spec) -> Self {
        let seen = LogFacts::of(path, name, log);
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
                    false => {
                        Unmatched { model: &model, release: seen.release, wanted: &wanted, dtype }.text()
                    }
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

/// What is still needed of a log that lists its arguments.
const NO_GPU_TYPE: &str = "The log doesn't contain the GPU type, which the MFU needs: set it. Comparisons assume one type for all such logs.";

/// A log of a model that matches no recipe.
struct Unmatched<'a> {
    model: &'a Model,
    release: Option<Release>,
    /// The known numbers, in the order of [`LogFacts::numbers`].
    wanted: &'a [(Field, Option<u32>)],
    dtype: Option<Dtype>,
}

impl Unmatched<'_> {
    /// The most recipes that are named.
    const MOST_NAMED: usize = 3;

    /// Returns why the log matches no recipe, which ones are nearest, and what to set, as sentences.
    fn text(&self) -> String {
        let title = &self.model.title;
        let why = match self.release {
            Some(release) => format!("release {release} has none for this model"),
            None => "its name and format are of no known release".to_owned(),
        };
        let is_unknown = |place: usize| self.wanted.get(place).is_none_or(|(_, number)| number.is_none());
        let needed = [(true, "GPU type"), (is_unknown(GPUS), "GPU count"), (is_unknown(GBS), "GBS")];
        let missing: Vec<&str> =
            needed.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, what)| what).collect();
        format!(
            "Couldn't match this {title} log to a recipe: {why}.{} Set the recipe, or the {}, which the log lacks.",
            self.nearest(),
            all_of(&missing)
        )
    }

    /// Returns a sentence that names the recipes of the model with the fewest differences from the log; nothing if it has none.
    fn nearest(&self) -> String {
        let of_model = Catalog::embedded().recipes().iter().filter(|recipe| recipe.id.model == self.model.id);
        let of_model: Vec<(usize, &Recipe)> =
            of_model.map(|recipe| (self.differences(recipe).len(), recipe)).collect();
        let nearest = sorted(&of_model, |(one, _), (other, _)| one.cmp(other));
        let name = |(_, recipe): &(usize, &Recipe)| match self.differences(recipe).as_slice() {
            [] => recipe.id.to_string(),
            some => format!("{} ({})", recipe.id, some.join(", ")),
        };
        let named: Vec<String> = nearest.iter().take(Self::MOST_NAMED).map(name).collect();
        if named.is_empty() { String::new() } else { format!(" Nearest: {}.", named.join("; ")) }
    }

    /// Returns the fields in which a recipe differs from what is known of the log: `GPUs 8 instead of 16`.
    fn differences(&self, recipe: &Recipe) -> Vec<String> {
        let numbers = self.wanted.iter().filter_map(|(field, number)| {
            let (own, wanted) = (value(recipe, *field), (*number)?);
            (own != wanted).then(|| format!("{} {own} instead of {wanted}", field.label()))
        });
        let dtype = self.dtype.filter(|dtype| !is_precision_of(recipe, *dtype));
        let dtype =
            dtype.map(|dtype| format!("{} {} instead of {dtype}", Field::Dtype.label(), recipe.id.dtype));
        numbers.chain(dtype).collect()
    }
}

/// What the log and its name say about the run.
struct LogFacts {
    release: Option<Release>,
    /// Megatron-Bridge's own recipe that a folder is named after.
    named_recipe: Option<&'static Recipe>,
    model: Option<Cow<'static, Model>>,
    /// The model's shape, if the log lists its arguments.
    shape: Option<ModelShape>,
    /// The models that the arguments fit, if there are several.
    like_models: Vec<String>,
    /// Whether the log lists its arguments.
    has_arguments: bool,
    dtype: Option<Dtype>,
    /// A precision that has no [`Dtype`].
    other_precision: Option<&'static str>,
    named_gbs: Option<u32>,
    printed_gbs: Option<u32>,
    /// GPUs, GBS, the layout and the model's size, in this order.
    numbers: [(Field, Option<u32>); 11],
    /// Options that differ from the default.
    options: Vec<(Field, String)>,
    /// Where the log's name and its arguments disagree, as sentences.
    conflicts: Vec<String>,
}

const GPUS: usize = 0;
const GBS: usize = 1;
const LAYOUT: usize = 2;

impl LogFacts {
    fn of(path: &str, name: &LogName, log: &Log) -> Self {
        let of_steps = log.steps.global_batch_size().and_then(|gbs| u32::try_from(gbs).ok());
        let printed_gbs = of_steps.or(log.batch.map(|batch| batch.global_batch_size));
        let named = named_recipe(path).filter(|_| log.arguments.is_empty());
        let (named, differences) =
            named.map_or((None, Vec::new()), |(recipe, differences)| (Some(recipe), differences));
        let catalog = Catalog::embedded();
        let model = match named {
            Some(recipe) => catalog.model(&recipe.id.model).ok(),
            None => model(name),
        };
        let mut facts = Self {
            release: named.map(|recipe| recipe.id.release).or_else(|| release(path, name, log)),
            named_recipe: named,
            model: model.map(Cow::Borrowed),
            dtype: named.map(|recipe| recipe.id.dtype).or_else(|| {
                // In the first release only a folder's name has the precision.
                name.dtype.as_deref().into_iter().chain(folders(path)).find_map(|word| word.parse().ok())
            }),
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
                (Field::ExpertTp, None),
                (Field::SeqLen, log.batch.map(|batch| batch.seq_len)),
                (Field::Layers, None),
            ],
            shape: None,
            like_models: Vec::new(),
            has_arguments: false,
            other_precision: None,
            options: Vec::new(),
            conflicts: Vec::new(),
        };
        for (field, number) in &mut facts.numbers {
            let stated = differences.iter().find(|(stated, _)| stated == field).map(|(_, number)| *number);
            let of_recipe = named.map(|recipe| recipe.id.gpus).filter(|_| *field == Field::Gpus);
            *number = match *field {
                Field::Gbs => number.or(stated),
                _ => stated.or(of_recipe).or(*number),
            };
        }
        if log.arguments.is_empty() { facts } else { facts.with_arguments(&log.arguments) }
    }

    /// Returns whether two pipeline splits give every stage of the log's layout the same layers.
    fn divides_alike(&self, one: &str, other: &str) -> bool {
        let number = |field: Field| self.numbers.iter().find(|(known, _)| *known == field)?.1;
        let (Some(model), Some(pp)) = (&self.model, number(Field::Pp)) else { return false };
        let vp = number(Field::Vp).unwrap_or(1);
        let stages = |text: &str| {
            let split: PipelineSplit = text.parse().ok()?;
            split.stages(&model.architecture, pp, vp).ok()
        };
        stages(one).is_some_and(|one| stages(other) == Some(one))
    }

    /// Replaces what the name says by what the arguments say.
    fn with_arguments(mut self, arguments: &Arguments) -> Self {
        self.has_arguments = true;
        // A log's size of a batch that ramps up is the last one.
        let gbs = self.printed_gbs.or_else(|| arguments.whole("global_batch_size"));
        let routes = arguments.text("num_experts").is_some();
        let (pp, vp) = ("pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size");
        let mut told = [
            (Field::Gpus, arguments.whole("world_size")),
            (Field::Gbs, gbs),
            (Field::Tp, arguments.whole("tensor_model_parallel_size")),
            (Field::Pp, arguments.whole(pp)),
            (Field::Cp, arguments.whole("context_parallel_size")),
            (Field::Vp, arguments.whole(vp).or(arguments.is_unset(vp).then_some(1))),
            (Field::Ep, arguments.whole("expert_model_parallel_size").filter(|_| routes)),
            (Field::Mbs, arguments.whole("micro_batch_size")),
            (Field::ExpertTp, arguments.whole("expert_tensor_parallel_size").filter(|_| routes)),
            (Field::SeqLen, arguments.whole("seq_length")),
            (Field::Layers, arguments.whole("num_layers")),
        ];
        for ((field, told), (_, named)) in told.iter_mut().zip(self.numbers) {
            *told = told.filter(|value| *value > 0);
            match (*told, named) {
                (Some(told), Some(named)) if told != named && *field != Field::Gbs => self.conflicts.push(
                    format!("The log's name says {} {named}, its arguments say {told}.", field.label()),
                ),
                (None, named) => *told = named,
                _ => {}
            }
        }
        self.numbers = told;
        self.options = options(arguments);
        match precision(arguments) {
            Precision::Known(dtype) => self.dtype = Some(dtype),
            Precision::Other(title) => (self.dtype, self.other_precision) = (None, Some(title)),
            Precision::Unknown => {}
        }
        self.shape = ModelShape::of(arguments);
        let Some(shape) = &self.shape else { return self };
        if let Some(named) = &self.model
            && shape.differences(&named.architecture).is_empty()
        {
            return self;
        }
        match shape.model() {
            ShapeMatch::One(model) => {
                if let Some(named) = self.model.replace(*model) {
                    let list = shape.differences(&named.architecture).join(", ");
                    self.conflicts.push(format!(
                        "The log's name says {}, but its arguments don't fit: {list}.",
                        named.title
                    ));
                }
            }
            ShapeMatch::Several(models) => {
                self.like_models = models.iter().map(|model| model.id.clone()).collect();
            }
            ShapeMatch::None => {}
        }
        self
    }
}

/// The precision in Megatron-LM's arguments.
enum Precision {
    Known(Dtype),
    Other(&'static str),
    Unknown,
}

fn precision(arguments: &Arguments) -> Precision {
    let either = |keys: [&str; 2]| keys.into_iter().find_map(|key| arguments.text(key));
    if either(["fp4", "fp4_format"]).is_some() {
        return Precision::Known(Dtype::Nvfp4);
    }
    if either(["fp8", "fp8_format"]).is_some() {
        return Precision::Known(match arguments.text("fp8_recipe") {
            Some("delayed") => Dtype::Fp8Delayed,
            Some("tensorwise") => Dtype::Fp8Current,
            Some("blockwise") => Dtype::Fp8Block,
            Some("mxfp8") => Dtype::Mxfp8,
            _ => Dtype::Fp8,
        });
    }
    match (arguments.flag("bf16"), arguments.flag("fp16")) {
        (Some(true), _) => Precision::Known(Dtype::Bf16),
        (_, Some(true)) => Precision::Other("FP16"),
        (Some(false), Some(false)) => Precision::Other("FP32"),
        _ => Precision::Unknown,
    }
}

/// Returns whether a log's precision is a recipe's: that of its id, or the one that its script runs.
fn is_precision_of(recipe: &Recipe, told: Dtype) -> bool {
    [recipe.id.dtype, recipe.runs()].contains(&told)
}

/// Returns whether a precision is what FP8 without a named scaling can mean.
fn is_kind_of(told: Dtype, meant: Dtype) -> bool {
    meant == Dtype::Fp8 && matches!(told, Dtype::Fp8Delayed | Dtype::Fp8Current)
}

/// Returns the options that differ from the default: recomputation, FSDP and the pipeline split.
fn options(arguments: &Arguments) -> Vec<(Field, String)> {
    let whole = |key| arguments.whole(key).unwrap_or(1);
    let mut options = Vec::new();
    // By blocks, the first layers of every chunk are recomputed; otherwise all of them.
    let chunks = u64::from(whole("pipeline_model_parallel_size"))
        * u64::from(whole("virtual_pipeline_model_parallel_size"));
    let blocks = u64::from(whole("recompute_num_layers")) * chunks;
    let is_whole =
        arguments.text("recompute_method") != Some("block") || blocks >= u64::from(whole("num_layers"));
    match arguments.text("recompute_granularity") {
        Some("full") if is_whole => options.push((Field::Recompute, "full".to_owned())),
        Some("selective") => {
            if arguments.text("recompute_modules").is_none_or(|list| list.contains("core_attn")) {
                options.push((Field::Recompute, "selective".to_owned()));
            }
            let modules = modules(arguments);
            if modules != Modules::default() {
                options.push((Field::RecomputeModules, modules.to_string()));
            }
        }
        _ => {}
    }
    let shards = arguments.text("data_parallel_sharding_strategy") == Some("optim_grads_params");
    if arguments.flag("use_megatron_fsdp") == Some(true) && shards {
        options.push((Field::Fsdp, "on".to_owned()));
    }
    options.extend(pipeline_split(arguments).map(|split| (Field::PipelineSplit, split.to_string())));
    options
}

/// Returns the parts of a layer, beside the core of attention, that selective recomputation includes: those of a list such as
/// `['core_attn', 'moe_act']`. Megatron-LM ignores parts that the model lacks.
fn modules(arguments: &Arguments) -> Modules {
    let list = arguments.text("recompute_modules").unwrap_or_default();
    let words = list.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    let known: Vec<&str> = words.filter(|word| Modules::NAMES.contains(word)).collect();
    let listed: Modules = known.join(",").parse().unwrap_or_default();
    let routes = arguments.text("num_experts").is_some();
    let shares = arguments.whole("moe_shared_expert_intermediate_size").is_some_and(|width| width > 0);
    let has_dense_layers =
        !routes || arguments.text("moe_layer_freq").is_some_and(|frequency| frequency != "1");
    Modules {
        mlp: listed.mlp && has_dense_layers,
        mla_up_proj: listed.mla_up_proj && arguments.flag("multi_latent_attention") == Some(true),
        layernorm: listed.layernorm,
        moe_act: listed.moe_act && routes,
        shared_experts: listed.shared_experts && routes && shares,
        moe: listed.moe && routes,
    }
}

/// Returns a recipe's value of an option that [`options`] can return, as text.
fn option(recipe: &Recipe, field: Field) -> String {
    match field {
        Field::Recompute => recipe.recompute.to_string(),
        Field::RecomputeModules => recipe.modules.to_string(),
        Field::PipelineSplit => recipe.degrees.split.to_string(),
        _ => if recipe.fsdp { "on" } else { "off" }.to_owned(),
    }
}

/// Returns whether two texts are the same value of an option. Lists of modules may have any order, and lists may have spaces.
fn is_same_option(field: Field, one: &str, other: &str) -> bool {
    let modules = |text: &str| text.parse::<Modules>().ok();
    let split = |text: &str| text.parse::<PipelineSplit>().ok();
    one == other
        || field == Field::RecomputeModules && modules(one) == modules(other)
        || field == Field::PipelineSplit && split(one) == split(other)
}

/// Returns the release, by the name of the experiment, else by a folder, else by the format of a step.
fn release(path: &str, name: &LogName, log: &Log) -> Option<Release> {
    // A launch by Megatron-LM is of no release, whatever its model is called. The releases' programs print no arguments.
    if name.is_of_megatron_lm() || !log.arguments.is_empty() {
        return None;
    }
    let spells_layout = name.tp.is_some();
    let find = |is_of: &dyn Fn(&ScriptContract) -> bool| {
        Release::ALL.into_iter().find(|release| release.contract().scripts.iter().any(is_of))
    };
    let by_bridge = BridgeModel::of_experiment(&name.experiment);
    let by_name = find(&|script| match script.experiment {
        ExperimentName::JobScript => name.experiment.starts_with("nemo_"),
        ExperimentName::WithLayout { family, .. } => {
            spells_layout && by_bridge.is_none() && name.model.as_deref() == Some(family)
        }
        ExperimentName::Bridge => by_bridge.is_some(),
        ExperimentName::BridgeRecipe | ExperimentName::Short => false,
    });
    let prints_tflops = !log.steps.tflops_per_gpu.is_empty();
    let by_lines = || {
        find(&|script| match (script.experiment, log.format) {
            (ExperimentName::JobScript, format) => format == Some(script.log),
            // Releases that are not known here name experiments of other models with their layout, too.
            (
                ExperimentName::WithLayout { .. } | ExperimentName::Bridge | ExperimentName::BridgeRecipe,
                _,
            ) => false,
            (ExperimentName::Short, _) if spells_layout => false,
            (ExperimentName::Short, Some(format)) => {
                format == script.log && prints_tflops == (script.logged_tflops != LoggedTflops::Absent)
            }
            (ExperimentName::Short, None) => name.model.is_some() && name.experiment.starts_with("pretrain_"),
        })
    };
    by_name.or_else(|| folders(path).find_map(|folder| folder.parse().ok())).or_else(by_lines)
}

/// Returns Megatron-Bridge's own recipe that a folder of a path is named after, as our experiments with it are, and the numbers
/// in which the run differs from it: `llama3_70b_pretrain_64gpu_h100_bf16_gpus512_tp2`.
fn named_recipe(path: &str) -> Option<(&'static Recipe, Vec<(Field, u32)>)> {
    const STATED: [Field; 9] = [
        Field::Gpus,
        Field::Tp,
        Field::Pp,
        Field::Cp,
        Field::Vp,
        Field::Ep,
        Field::Mbs,
        Field::Gbs,
        Field::SeqLen,
    ];
    let folders: Vec<&str> = folders(path).filter(|folder| folder.contains("_pretrain_")).collect();
    if folders.is_empty() {
        return None;
    }
    let number = |word: &str| {
        STATED.iter().find_map(|field| Some((*field, word.strip_prefix(field.flag())?.parse().ok()?)))
    };
    let named = Catalog::embedded().recipes().iter().filter_map(|recipe| {
        let name = recipe.id.bridge_experiment()?;
        let rest = folders.iter().find_map(|folder| folder.strip_prefix(name.as_str()))?;
        (rest.is_empty() || rest.starts_with('_')).then_some((recipe, rest))
    });
    // The name of a variant, or of another version, begins with that of the usual recipe.
    let (recipe, rest) = named.min_by_key(|(_, rest)| rest.len())?;
    Some((recipe, rest.split('_').filter_map(number).collect()))
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
    let named = BridgeModel::of_experiment(&name.experiment);
    let is_meant = |model: &&Model| match named {
        Some(named) => named.model == model.id,
        None => letters(&model.id) == wanted,
    };
    Catalog::embedded().models().iter().find(is_meant)
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
    spec.whole(field).ok().flatten()
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
        Field::ExpertTp => degrees.expert_tp,
        Field::SeqLen => recipe.seq_len,
        Field::Layers => recipe.layers,
        _ => recipe.mbs,
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{LLAMA_70B, dump};
    use super::super::{Intake, Publication, Report, View};
    use super::*;
    use crate::log::Format;
    use crate::stack::Stack;

    /// Fifty steps of 20 s of a batch.
    fn steps(gbs: u32) -> String {
        let step = |step: u32| {
            format!(
                "iteration {step}/50 | consumed samples: {} | elapsed time per iteration (ms): 20000.0 | global batch \
                 size: {gbs} | lm loss: 1.2E+01 |\n",
                step * gbs
            )
        };
        (1..51).map(step).collect()
    }

    fn report(path: &str, changes: &[(&str, &str)], said: &[(Field, &str)]) -> Report {
        let said = said.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
        let mut intake = Intake::new(path, &said);
        intake.feed(dump(&LLAMA_70B, changes).as_bytes());
        let gbs = changes.iter().find(|(key, _)| *key == "global_batch_size");
        intake.feed(steps(gbs.map_or(128, |(_, gbs)| gbs.parse().unwrap())).as_bytes());
        Report::of(&intake.finish(), &View::default())
    }

    const GPU: [(Field, &str); 1] = [(Field::Gpu, "h100")];

    #[test]
    fn arguments_are_the_whole_scenario_but_the_gpu_type() {
        let alone = report("train.log", &[], &[]);
        assert_eq!(alone.tokens_per_s.map(f64::round), Some(52_429.0));
        assert_eq!((alone.mfu, alone.notes.as_slice()), (None, [NO_GPU_TYPE.to_owned()].as_slice()));
        let told = report("train.log", &[], &GPU);
        assert!(told.mfu.is_some_and(|mfu| (0.39..0.41).contains(&mfu)), "{:?}", told.mfu);
        // No word of a recipe that nobody named, but of the software, which nobody named either.
        let assumed = "The prediction assumes Megatron-LM 0.14, because the log doesn't state the exact software. Set it \
                       if it was another.";
        assert!(told.comparable.yes && told.notes == [assumed], "{:?}", told.notes);
        assert_eq!(
            (told.format, told.assumed_software),
            (Some(Format::MegatronLm), Some(Stack::MegatronLm014))
        );
        assert_eq!(told.scenario.get(Field::Stack), Some("megatron-lm-0.14"));
        let named = report("train.log", &[], &[GPU[0], (Field::Stack, "megatron-lm-0.14")]);
        assert_eq!((named.prediction, named.assumed_software), (told.prediction, None));
        assert_eq!(named.notes, [] as [String; 0]);
        let other = report("train.log", &[], &[GPU[0], (Field::Stack, "megatron-bridge-26.06")]);
        assert_eq!(other.assumed_software, None);
        assert_ne!(other.prediction, told.prediction);
        let scenario = told.scenario.scenario().unwrap();
        assert_eq!(
            (scenario.model.id.as_str(), scenario.layout.gpus(), scenario.layout.vp()),
            ("llama3.1-70b", 64, 5)
        );
        assert_eq!(told.scenario.get(Field::Layers), None);
    }

    #[test]
    fn options_and_precisions_are_read() {
        let full = [
            ("recompute_granularity", "full"),
            ("recompute_method", "uniform"),
            ("recompute_num_layers", "1"),
        ];
        let said = report("train.log", &full, &GPU);
        assert_eq!(said.scenario.get(Field::Recompute), Some("full"));
        let part = [full[0], ("recompute_method", "block"), full[2]];
        assert_eq!(report("train.log", &part, &GPU).scenario.get(Field::Recompute), None);
        let selective = |modules: &str| {
            let list = [("recompute_granularity", "selective"), ("recompute_modules", modules)];
            let said = report("train.log", &list, &GPU).scenario;
            [Field::Recompute, Field::RecomputeModules].map(|field| said.get(field).map(str::to_owned))
        };
        assert_eq!(selective("['core_attn']"), [Some("selective".into()), None]);
        let both = [Some("selective".into()), Some("mlp,layernorm".into())];
        assert_eq!(selective("['core_attn', 'layernorm', 'mlp']"), both);
        // A dense model has no experts to recompute.
        assert_eq!(selective("['moe_act', 'layernorm']"), [None, Some("layernorm".into())]);
        for (recipe, dtype) in [("delayed", "fp8-delayed"), ("tensorwise", "fp8-current"), ("mxfp8", "mxfp8")]
        {
            let said = report("train.log", &[("fp8", "hybrid"), ("fp8_recipe", recipe)], &GPU);
            assert_eq!(said.scenario.get(Field::Dtype), Some(dtype));
        }
        let half = report("train.log", &[("bf16", "False"), ("fp16", "True")], &GPU);
        assert!(half.mfu.is_none() && half.notes[0].contains("FP16"), "{:?}", half.notes);
    }

    #[test]
    fn uneven_pipelines_are_read() {
        let split = |changes: &[(&str, &str)]| {
            let flat = [("virtual_pipeline_model_parallel_size", "None")];
            let changes: Vec<_> = flat.iter().chain(changes).copied().collect();
            report("train.log", &changes, &GPU).scenario.get(Field::PipelineSplit).map(str::to_owned)
        };
        let (first, last) = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers");
        assert_eq!(split(&[(first, "None"), (last, "None")]), None);
        assert_eq!(split(&[(first, "19"), (last, "21")]).as_deref(), Some("19,20,20,21"));
        assert_eq!(split(&[(last, "17")]).as_deref(), Some("21,21,21,17"));
        assert_eq!(split(&[(first, "20"), (last, "20")]), None, "even");
        assert_eq!(split(&[(first, "90")]), None, "more than all");
        assert_eq!(split(&[(first, "19")]), None, "61 layers on 3 stages");
        let loss = ("account_for_loss_in_pipeline_split", "True");
        let pp = |stages| ("pipeline_model_parallel_size", stages);
        assert_eq!(split(&[loss, pp("2")]).as_deref(), Some("counted"));
        assert_eq!(split(&[loss, pp("3"), ("world_size", "48")]).as_deref(), Some("27,27,26"));
        assert_eq!(split(&[loss, pp("8")]), None, "neither 81 nor 82 layers fill 8 stages");
        let layout = "pipeline_model_parallel_layout";
        assert_eq!(split(&[(layout, "None")]), None);
        assert_eq!(split(&[(layout, "Et*19|t*20|t*20|t*21L")]).as_deref(), Some("19,20,20,21"));
        let interleaved = [(layout, "Et*9|(t*10|)*6t*11L"), ("virtual_pipeline_model_parallel_size", "2")];
        assert_eq!(split(&interleaved).as_deref(), Some("19,20,20,21"));
        assert_eq!(split(&[(layout, "Et*20|(t*20|)*2,t*20L")]), None, "even");
        assert_eq!(split(&[(layout, "Et*20|t*20|t*20|t*21L")]), None, "81 layers");
        let reasons = |meant: &str| {
            let three = [
                (layout, "Et*27|t*26|t*27L"),
                pp("3"),
                ("virtual_pipeline_model_parallel_size", "None"),
                ("world_size", "48"),
            ];
            report("train.log", &three, &[GPU[0], (Field::PipelineSplit, meant)]).comparable.reasons
        };
        assert_eq!(reasons("27, 26, 27"), [] as [String; 0]);
        assert!(!reasons("counted").is_empty());
        let said = report(
            "train.log",
            &[(last, "17"), pp("4")],
            &[GPU[0], (Field::PipelineSplit, "21, 21, 21, 17")],
        );
        assert!(said.comparable.reasons.is_empty(), "{:?}", said.comparable.reasons);
    }

    #[test]
    fn arguments_of_a_recipe_are_recognised_as_the_recipe() {
        let same = [
            ("fp8", "hybrid"),
            ("fp8_recipe", "delayed"),
            ("global_batch_size", "2048"),
            ("pipeline_model_parallel_size", "8"),
            ("world_size", "1024"),
        ];
        let said = report("train.log", &same, &GPU);
        assert_eq!(said.recipe.as_deref(), Some("llama3.1-70b/h100/fp8/1024@25.04"), "{:?}", said.notes);
        assert!(said.baseline.is_some_and(|baseline| baseline.speed_percent.is_some()));
        // A log that is only similar to a recipe is not said to be a changed one.
        for change in [("micro_batch_size", "2"), ("fp8_recipe", "tensorwise")] {
            let other: Vec<_> =
                same.into_iter().filter(|(key, _)| *key != change.0).chain([change]).collect();
            let said = report("train.log", &other, &GPU);
            assert_eq!((said.recipe, said.publication), (None, Publication::Custom));
            assert!(!said.notes.join(" ").contains("is published for"), "{:?}", said.notes);
        }
    }

    #[test]
    fn a_recipe_that_the_arguments_contradict_is_not_compared() {
        let said = [(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04")];
        let report = report("train.log", &[], &said);
        let reasons = report.comparable.reasons.join(" ");
        assert!(reasons.contains("don't fit Llama 3.1 405B: hidden_size 8,192 (not 16,384)"), "{reasons}");
        assert!(reasons.contains("The log says GPUs 64, but 512 was set."), "{reasons}");
        assert!(reasons.contains("The log says Layers 80, but 126 was set."), "{reasons}");
        assert_eq!((report.mfu, report.tokens_per_s), (None, None));
        assert_eq!(report.baseline.and_then(|baseline| baseline.speed_percent), None);
    }

    #[test]
    fn a_name_that_the_arguments_contradict_is_reported() {
        let name = "log-megatron-lm_llama3.1_8b_bf16_gpus8_tp4_pp4_cp1_vp5_mbs1_gbs128_77_0.out";
        let reasons = report(name, &[], &GPU).comparable.reasons.join(" ");
        assert!(reasons.contains("The log's name says GPUs 8, its arguments say 64."), "{reasons}");
        assert!(
            reasons.contains("The log's name says Llama 3.1 8B, but its arguments don't fit"),
            "{reasons}"
        );
    }

    #[test]
    fn a_step_that_takes_much_longer_is_named() {
        let report = |slow: &[u32]| {
            let mut intake = Intake::new("train.log", &Spec::default());
            intake.feed(dump(&LLAMA_70B, &[]).as_bytes());
            let text = steps(128);
            for (step, line) in (1..).zip(text.lines()) {
                let line =
                    if slow.contains(&step) { line.replace("20000.0", "60000.0") } else { line.into() };
                intake.feed(format!("{line}\n").as_bytes());
            }
            Report::of(&intake.finish(), &View { window: "41-50".parse().ok(), ..View::default() })
                .notes
                .join(" ")
        };
        assert!(!report(&[]).contains("median") && !report(&[40]).contains("median"));
        let one = report(&[45]);
        let wanted = "Of 10 scored steps, step 45 took more than 1.5 times the median of 20 s. The mean includes such steps; without \
                      step 45 of 60.0 s, it is 20 s.";
        assert!(one.contains(wanted), "{one}");
        assert!(report(&[42, 45]).contains("steps 42 and 45 took"));
    }

    #[test]
    fn few_steps_are_noisy() {
        let run = |log: &str| {
            let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out", &Spec::default());
            intake.feed(log.as_bytes());
            intake.finish()
        };
        let step = |step: u32| {
            format!(
                "Training epoch 0, iteration {step}/49 | global_batch_size: 128 | train_step_timing in s: 9.4 |\n"
            )
        };
        let log = run(&(0..50).map(step).collect::<String>());
        let noisy = |window: Option<&str>| {
            let view = View { window: window.map(|window| window.parse().unwrap()), ..View::default() };
            let notes = Report::of(&log, &view).notes;
            notes.into_iter().find(|note| note.contains("Score the window 40-49.")).unwrap_or_default()
        };
        assert!(noisy(None).contains("rests on one step"), "release 25.04 scores the last step");
        assert!(noisy(Some("46-49")).contains("rests on 4 steps"));
        assert_eq!(noisy(Some("45-49")), "");
        assert_eq!(noisy(Some("11-44")), "");
    }
}
