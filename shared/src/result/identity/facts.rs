//! What a log and its name say about the run.

use super::arguments::{Precision, options, precision};
use super::torchtitan;
use crate::catalog::{Catalog, Model, Recipe};
use crate::field::Field;
use crate::layout::PipelineSplit;
use crate::log::{Arguments, Log, LogName};
use crate::precision::Dtype;
use crate::releases::{BridgeModel, ExperimentName, LoggedTflops, Release, ScriptContract};
use crate::result::shape::{ModelShape, ShapeMatch};
use crate::result::{JobSettings, SettingsFile};
use std::borrow::Cow;

/// What the log and its name say about the run.
pub(super) struct LogFacts {
    pub(super) release: Option<Release>,
    /// The experiment in the log's name.
    pub(super) experiment: String,
    /// Megatron-Bridge's own recipe that a folder is named after.
    pub(super) named_recipe: Option<&'static Recipe>,
    pub(super) model: Option<Cow<'static, Model>>,
    /// The id of the GPU type, which only torchtitan and llmb-run's configuration state.
    pub(super) gpu: Option<&'static str>,
    /// The model's shape, if the log lists its arguments.
    pub(super) shape: Option<ModelShape>,
    /// The models that the arguments fit, if there are several.
    pub(super) like_models: Vec<String>,
    /// Whether the log lists its arguments.
    pub(super) has_arguments: bool,
    pub(super) dtype: Option<Dtype>,
    /// A precision that has no [`Dtype`].
    pub(super) other_precision: Option<&'static str>,
    pub(super) named_gbs: Option<u32>,
    pub(super) printed_gbs: Option<u32>,
    /// GPUs, GBS, the layout and the model's size, in this order.
    pub(super) numbers: [(Field, Option<u32>); 11],
    /// Options that differ from the default.
    pub(super) options: Vec<(Field, String)>,
    /// Where the log's name and its arguments disagree, as sentences.
    pub(super) conflicts: Vec<String>,
    /// Where a file beside the log disagrees with the log, as sentences.
    pub(super) differences: Vec<String>,
}

pub(super) const GPUS: usize = 0;

pub(super) const GBS: usize = 1;

pub(super) const LAYOUT: usize = 2;

impl LogFacts {
    pub(super) fn of(path: &str, name: &LogName, log: &Log, settings: &JobSettings) -> Self {
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
        let launched_by: Option<Release> = settings.release().and_then(|release| release.parse().ok());
        let mut facts = Self {
            release: named.map(|recipe| recipe.id.release).or_else(|| release(path, name, log, launched_by)),
            experiment: name.experiment.clone(),
            named_recipe: named,
            model: model.map(Cow::Borrowed),
            gpu: None,
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
            differences: Vec::new(),
        };
        for (field, number) in &mut facts.numbers {
            let stated = differences.iter().find(|(stated, _)| stated == field).map(|(_, number)| *number);
            let of_recipe = named.map(|recipe| recipe.id.gpus).filter(|_| *field == Field::Gpus);
            *number = match *field {
                Field::Gbs => number.or(stated),
                _ => stated.or(of_recipe).or(*number),
            };
        }
        facts.add_setup(log);
        match log.arguments.is_empty() {
            true => facts.completed_by(settings),
            false => facts.with_arguments(&log.arguments),
        }
    }

    /// Adds what torchtitan stated before its steps, which counts more than the log's name.
    fn add_setup(&mut self, log: &Log) {
        let Some(setup) = &log.setup else { return };
        match torchtitan::model(setup) {
            Ok(model) => self.model = model.map(Cow::Borrowed).or_else(|| self.model.take()),
            Err(difference) => self.differences.push(difference),
        }
        self.gpu = torchtitan::gpu(setup).map(|gpu| gpu.id.as_str());
        self.dtype = torchtitan::dtype(setup).or(self.dtype);
        for (field, number) in &mut self.numbers {
            *number = torchtitan::number(setup, log.batch, *field).or(*number);
        }
        let recompute =
            torchtitan::recompute(setup).map(|recompute| (Field::Recompute, recompute.to_owned()));
        self.options.extend(recompute);
    }

    /// Adds what neither the log nor its name says, and notes where the files beside the log disagree with it.
    fn completed_by(mut self, settings: &JobSettings) -> Self {
        let (own_numbers, own_dtype) = (self.numbers, self.dtype);
        for file in SettingsFile::ALL {
            let mut disagrees = |what: &str, own: &str, other: &str| {
                self.differences.push(format!(
                    "The log or its name says {what} {own}, but {} says {other}. The log's value is used.",
                    file.pattern()
                ));
            };
            for ((field, number), (_, own)) in self.numbers.iter_mut().zip(own_numbers) {
                let Some(stated) = settings.number(file, *field) else { continue };
                number.get_or_insert(stated);
                // A log's name may say vp0.
                if let Some(own) = own.filter(|own| (*own).max(1) != stated) {
                    disagrees(field.label(), &own.to_string(), &stated.to_string());
                }
            }
            let Some(stated) = settings.dtype(file) else { continue };
            self.dtype.get_or_insert(stated);
            if let Some(own) = own_dtype.filter(|own| !own.may_be(stated)) {
                disagrees(Field::Dtype.label(), own.id(), stated.id());
            }
        }
        let gpu = settings.launched("gpu_type").and_then(|gpu| Catalog::embedded().gpu(gpu).ok());
        self.gpu = self.gpu.or(gpu.map(|gpu| gpu.id.as_str()));
        if self.model.is_none() {
            let launched = |key| settings.launched(key).map(str::to_owned);
            let (family, size) = (launched("model_name"), launched("model_size"));
            let name = LogName { model: family, size, ..LogName::default() };
            self.model = model(&name).map(Cow::Borrowed);
        }
        self
    }

    /// Returns whether two pipeline splits give every stage of the log's layout the same layers.
    pub(super) fn divides_alike(&self, one: &str, other: &str) -> bool {
        // A log's name may say vp0.
        let number = |field: Field| {
            self.numbers.iter().find(|(known, _)| *known == field)?.1.filter(|number| *number > 0)
        };
        let (Some(model), Some(pp)) = (&self.model, number(Field::Pp)) else { return false };
        let vp = number(Field::Vp).unwrap_or(1);
        let stages = |text: &str| {
            let split: PipelineSplit = text.parse().ok()?;
            split.stages(&model.architecture, pp, vp)
        };
        stages(one).is_some_and(|one| stages(other) == Some(one))
    }

    /// Replaces the facts of the name by those of the arguments.
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
                    format!("The log's name says {} {named}, but its arguments say {told}.", field.label()),
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

/// Returns the release, by the name of the experiment, else by a folder, else the one whose llmb-run launched it, else by the format of
/// a step.
fn release(path: &str, name: &LogName, log: &Log, launched_by: Option<Release>) -> Option<Release> {
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
    let by_folder = || folders(path).find_map(|folder| folder.parse().ok());
    by_name.or_else(by_folder).or(launched_by).or_else(by_lines)
}

/// Returns Megatron-Bridge's own recipe in the name of a folder, where our experiments have it, and the numbers in which the
/// run differs from it: `llama3_70b_pretrain_64gpu_h100_bf16_gpus512_tp2`.
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
