//! From what a person typed to a scenario: the command line, a link and the planner's form all hold a [`Spec`],
//! and so say the same of the same mistake.

use crate::architecture::Architecture;
use crate::batch::Batch;
use crate::catalog::{Catalog, Gpu, Model, Recipe, Scaling};
use crate::flops::{Convention, ModelFlops};
use crate::layout::{Degrees, Layout, PipelineSplit};
use crate::metrics::Metrics;
use crate::precision::Dtype;
use crate::problem::{Field, Problem};
use crate::scenario::{Change, Scenario};
use crate::units::parse_count;
use serde::Serialize;
use std::fmt::Display;
use std::str::FromStr;

/// Texts by field, as typed. They are few: a list in the order of the fields serves as well as a map, and weighs less
/// in the browser.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec(Vec<(Field, String)>);

impl Spec {
    /// What was typed into a field; blanks count as nothing.
    pub fn get(&self, field: Field) -> Option<&str> {
        Some(self.raw(field).trim()).filter(|text| !text.is_empty())
    }

    /// What was typed into a field to the letter, for the place that it was typed into.
    pub fn raw(&self, field: Field) -> &str {
        self.place(field).map_or("", |place| self.0[place].1.as_str())
    }

    /// Types into a field; an empty text clears it.
    pub fn set(&mut self, field: Field, text: impl Into<String>) {
        let text = text.into();
        match (self.place(field), text.trim().is_empty()) {
            (Ok(place), true) => drop(self.0.remove(place)),
            (Ok(place), false) => self.0[place].1 = text,
            (Err(_), true) => {}
            (Err(place), false) => self.0.insert(place, (field, text)),
        }
    }

    /// Where the field's text is, or where it would be.
    fn place(&self, field: Field) -> Result<usize, usize> {
        self.0.binary_search_by_key(&field, |(field, _)| *field)
    }

    /// The same with a field typed.
    #[must_use]
    pub fn with(mut self, field: Field, text: impl Into<String>) -> Spec {
        self.set(field, text);
        self
    }

    /// What remains when another scenario takes the place of this one: a step time was that of the old one and goes
    /// too.
    #[must_use]
    pub fn without_scenario(&self) -> Spec {
        let stays = |field: Field| !field.is_of_scenario() && field != Field::StepTime;
        Spec(self.0.iter().filter(|(field, _)| stays(*field)).cloned().collect())
    }

    /// Every typed field in order.
    pub fn iter(&self) -> impl Iterator<Item = (Field, &str)> {
        self.0.iter().map(|(field, text)| (*field, text.as_str()))
    }

    /// The field as a value of its type; none if nothing was typed.
    ///
    /// # Errors
    /// The type's own problem, under this field.
    pub fn parse<T: FromStr<Err = Problem>>(&self, field: Field) -> Result<Option<T>, Problem> {
        self.get(field).map(|text| text.parse().map_err(|problem| Problem { field, ..problem })).transpose()
    }

    /// The field as a whole number.
    ///
    /// # Errors
    /// It is none, or is below `least`.
    pub fn whole(&self, field: Field, least: u32) -> Result<Option<u32>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        let refuse =
            |what: &str| Problem::new(field, text, what).allowed(format!("a whole number, {least} or more"));
        match parse_count(text) {
            Some(count) if count.fract() != 0.0 => Err(refuse("is no whole number").nearest([count as u32])),
            Some(count) if count > f64::from(u32::MAX) => Err(refuse("is too large")),
            Some(count) if count < f64::from(least) => Err(refuse("is too small").nearest([least])),
            Some(count) => Ok(Some(count as u32)),
            None => Err(refuse("is no whole number")),
        }
    }

    /// The field as a positive count, which may have a suffix: `15T`.
    ///
    /// # Errors
    /// It is no such number.
    pub fn count(&self, field: Field) -> Result<Option<f64>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        match parse_count(text) {
            Some(count) if count > 0.0 => Ok(Some(count)),
            _ => Err(Problem::new(field, text, "is no positive number")
                .allowed("a number above 0, with K, M, B or T behind it if you like: 15T, 1e12, 12.37")),
        }
    }

    /// The scenario that the fields describe.
    ///
    /// With a recipe, empty fields keep its values, except that the global batch of a weak series follows the
    /// GPU count. Without one, model, GPU type, GPU count and GBS must be given; precision is BF16, the sequence
    /// is the model's usual one, and everything else is 1.
    ///
    /// # Errors
    /// Every field that can't be read or does not fit the others.
    pub fn scenario(&self) -> Result<Scenario, Vec<Problem>> {
        let catalog = Catalog::embedded();
        let recipe = match self.get(Field::Recipe).map(|id| catalog.recipe(id)).transpose() {
            Ok(recipe) => recipe,
            // Without its recipe the other fields mean nothing yet: their problems would only be noise.
            Err(problem) => return Err(vec![problem]),
        };
        let mut reader = Reader { spec: self, recipe, problems: Vec::new(), changes: Vec::new() };
        let draft = reader.draft(catalog);
        let (Some(draft), true) = (draft, reader.problems.is_empty()) else { return Err(reader.problems) };

        let layout = Layout::new(&draft.degrees, &draft.architecture)?;
        let batch = Batch::new(draft.seq_len, draft.mbs, draft.gbs, &layout)?;
        if draft.gpu.datasheet_tflops(draft.dtype).is_none() {
            let has = Dtype::ALL.into_iter().filter(|dtype| draft.gpu.datasheet_tflops(*dtype).is_some());
            let what = format!("is no precision of the {}", draft.gpu.name);
            let has: Vec<&str> = has.map(Dtype::id).collect();
            return Err(vec![Problem::new(Field::Dtype, draft.dtype, what).allowed(has.join(", "))]);
        }
        Ok(Scenario {
            model: draft.model,
            architecture: draft.architecture,
            gpu: draft.gpu,
            dtype: draft.dtype,
            layout,
            batch,
            recipe,
            changes: reader.changes,
            convention: draft.convention,
        })
    }

    /// The model FLOPs that the fields ask for. Without a recipe only the model must be given.
    ///
    /// # Errors
    /// Every field that can't be read or does not fit the others.
    pub fn model_flops(&self) -> Result<Counted, Vec<Problem>> {
        if self.get(Field::Recipe).is_some() {
            let scenario = self.scenario()?;
            let flops = ModelFlops::of(&scenario);
            return Ok(Counted {
                model: scenario.model,
                recipe: scenario.recipe,
                architecture: scenario.architecture,
                flops,
            });
        }
        let id = self.get(Field::Model).ok_or_else(|| vec![missing(Field::Model)])?;
        let model = Catalog::embedded().model(id).map_err(|problem| vec![problem])?;
        let one = |problem| vec![problem];
        let layers = self.whole(Field::Layers, 1).map_err(one)?.unwrap_or(model.architecture.layers);
        let seq_len = self.whole(Field::SeqLen, 1).map_err(one)?.unwrap_or(model.seq_len);
        let causal = match self.parse(Field::Convention).map_err(one)? {
            Some(Convention::Recipe) => return Err(vec![Convention::needs_recipe()]),
            Some(Convention::Causal) => true,
            Some(Convention::Full) | None => false,
        };
        let architecture = model.architecture.with_layers(layers).map_err(one)?;
        let flops = ModelFlops::by_blocks(&architecture, seq_len, causal);
        Ok(Counted { model, recipe: None, architecture, flops })
    }

    /// What the step time in the fields means, or the published one where none is given. Without recipe and model,
    /// sequence length and GBS still give tokens per second.
    ///
    /// # Errors
    /// Every field that can't be read or does not fit the others; no step time is given and none is published.
    pub fn metrics(&self) -> Result<Measured, Vec<Problem>> {
        let one = |problem| vec![problem];
        let given: Option<StepTime> = self.parse(Field::StepTime).map_err(one)?;
        if self.get(Field::Recipe).is_none() && self.get(Field::Model).is_none() {
            return self.metrics_of_tokens(given);
        }
        let scenario = self.scenario()?;
        let published = scenario.baseline().map(|baseline| StepTime::Seconds(baseline.step_time_s));
        let Some(step_time) = given.or(published) else {
            let assumed = scenario.recipe_mfu();
            let such_as = assumed
                .map_or(String::new(), |mfu| format!(", such as the recipe's own {:.2}%", mfu * 100.0));
            let problem = Problem::new(Field::StepTime, "", "is needed: none is published for this scenario");
            return Err(vec![problem.allowed(format!("seconds per step, or an MFU to assume{such_as}"))]);
        };
        let metrics = self.metrics_at(&scenario, step_time)?;
        let mut warnings = scenario.warnings();
        warnings.extend(metrics.warning());
        Ok(Measured {
            metrics,
            published: scenario.published_as(),
            basis: match (given, step_time) {
                (None, _) => Basis::Published,
                (Some(_), StepTime::Seconds(_)) => Basis::Given,
                (Some(_), StepTime::Mfu(_)) => Basis::AssumedMfu,
            },
            warnings,
        })
    }

    /// What a step time of the scenario means for the tokens in the fields.
    ///
    /// # Errors
    /// The tokens can't be read.
    pub fn metrics_at(&self, scenario: &Scenario, step_time: StepTime) -> Result<Metrics, Vec<Problem>> {
        let step_time_s = match step_time {
            StepTime::Seconds(seconds) => seconds,
            StepTime::Mfu(mfu) => Metrics::step_time_at(scenario, mfu),
        };
        Ok(Metrics::new(scenario, step_time_s, self.tokens().map_err(|problem| vec![problem])?))
    }

    /// Tokens to train, 10¹² where none are given.
    ///
    /// # Errors
    /// They are no positive number.
    pub fn tokens(&self) -> Result<f64, Problem> {
        Ok(self.count(Field::Tokens)?.unwrap_or(DEFAULT_TOKENS))
    }

    fn metrics_of_tokens(&self, given: Option<StepTime>) -> Result<Measured, Vec<Problem>> {
        let one = |problem| vec![problem];
        let seq_len = self.whole(Field::SeqLen, 1).map_err(one)?;
        let gbs = self.whole(Field::Gbs, 1).map_err(one)?;
        let step_time_s = match given {
            Some(StepTime::Seconds(seconds)) => Some(seconds),
            Some(StepTime::Mfu(_)) => return Err(vec![missing(Field::Recipe)]),
            None => None,
        };
        let (Some(seq_len), Some(gbs), Some(step_time_s)) = (seq_len, gbs, step_time_s) else {
            let missing = [
                (Field::SeqLen, seq_len.is_none()),
                (Field::Gbs, gbs.is_none()),
                (Field::StepTime, step_time_s.is_none()),
            ];
            return Err(missing
                .into_iter()
                .filter(|(_, is)| *is)
                .map(|(field, _)| self::missing(field))
                .collect());
        };
        let metrics = Metrics::of_tokens(seq_len, gbs, step_time_s, self.tokens().map_err(one)?);
        Ok(Measured { metrics, published: None, basis: Basis::Given, warnings: Vec::new() })
    }
}

/// Tokens to train where nobody says: what the documents compute.
pub const DEFAULT_TOKENS: f64 = 1e12;

/// Model FLOPs, and of what.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The model.
    pub model: &'static Model,
    /// The recipe that was given, if any.
    pub recipe: Option<&'static Recipe>,
    /// The shape that was counted, with fewer layers in a proxy.
    pub architecture: Architecture,
    /// Its FLOPs.
    pub flops: ModelFlops,
}

/// What a step time means, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What it means.
    pub metrics: Metrics,
    /// The recipe that the scenario is, if it is one.
    pub published: Option<&'static Recipe>,
    /// What the step time rests on.
    pub basis: Basis,
    /// What works in the scenario but not as well as its neighbours would.
    pub warnings: Vec<String>,
}

/// What a step time rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A document publishes it.
    Published,
    /// Someone gave it.
    Given,
    /// It follows from an MFU that someone assumes.
    AssumedMfu,
}

/// A step time, or the MFU that it shall follow from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepTime {
    /// Seconds per step.
    Seconds(f64),
    /// Model FLOPs utilization, a fraction.
    Mfu(f64),
}

impl FromStr for StepTime {
    type Err = Problem;

    fn from_str(text: &str) -> Result<StepTime, Problem> {
        let refuse = |what| {
            Problem::new(Field::StepTime, text, what)
                .allowed("seconds per step such as 12.37, or an MFU to assume such as 40%")
        };
        let (number, percent) = match text.trim().strip_suffix('%') {
            Some(number) => (number, true),
            None => (text, false),
        };
        // No suffixes here: a step time of 2M seconds is a slip.
        let plain = number.trim().chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-'));
        match parse_count(number).filter(|value| plain && *value > 0.0) {
            Some(mfu) if percent && mfu > 100.0 => Err(refuse("is more than the peak")),
            Some(mfu) if percent => Ok(StepTime::Mfu(mfu / 100.0)),
            Some(seconds) => Ok(StepTime::Seconds(seconds)),
            None => Err(refuse("is neither a time nor a percentage")),
        }
    }
}

/// Every value read, not yet known to fit each other.
struct Draft {
    model: &'static Model,
    architecture: Architecture,
    gpu: &'static Gpu,
    dtype: Dtype,
    degrees: Degrees,
    seq_len: u32,
    mbs: u32,
    gbs: u32,
    convention: Convention,
}

/// Reads fields against a recipe, gathering problems and changes.
struct Reader<'a> {
    spec: &'a Spec,
    recipe: Option<&'static Recipe>,
    problems: Vec<Problem>,
    changes: Vec<Change>,
}

impl Reader<'_> {
    fn draft(&mut self, catalog: &'static Catalog) -> Option<Draft> {
        let recipe = self.recipe;
        let id = recipe.map(|recipe| &recipe.id);
        let model = self.named(
            Field::Model,
            id.map(|id| id.model.as_str()),
            |text| catalog.model(text),
            |model| &model.id,
        );
        let gpu =
            self.named(Field::Gpu, id.map(|id| id.gpu.as_str()), |text| catalog.gpu(text), |gpu| &gpu.id);
        let dtype = self.value(Field::Dtype, id.map(|id| id.dtype).or(Some(Dtype::Bf16)));
        let base = recipe.map(|recipe| recipe.degrees.clone()).unwrap_or_default();
        let gpus = self.whole(Field::Gpus, recipe.map(|recipe| recipe.id.gpus));
        let mut degree = |field, base| self.whole(field, Some(base)).unwrap_or(base);
        let (tp, pp, cp) =
            (degree(Field::Tp, base.tp), degree(Field::Pp, base.pp), degree(Field::Cp, base.cp));
        let (ep, expert_tp) = (degree(Field::Ep, base.ep), degree(Field::ExpertTp, base.expert_tp));
        let vp = degree(Field::Vp, base.vp);
        let split = self.value(Field::PipelineSplit, Some(base.split)).unwrap_or(PipelineSplit::Even);
        let mbs = self.whole(Field::Mbs, recipe.map(|recipe| recipe.mbs).or(Some(1))).unwrap_or(1);
        let seq_len = recipe.map(|recipe| recipe.seq_len).or(model.map(|model| model.seq_len));
        let seq_len = self.whole(Field::SeqLen, seq_len);
        // Of another model than the recipe's, all layers are meant.
        let same_model = recipe.filter(|recipe| model.is_some_and(|model| model.id == recipe.id.model));
        let layers = same_model.map(|recipe| recipe.layers).or(model.map(|model| model.architecture.layers));
        let layers = self.whole(Field::Layers, layers);
        let gbs = self.global_batch(gpus);
        let default = if recipe.is_some() { Convention::Recipe } else { Convention::Full };
        let convention = match self.spec.parse(Field::Convention) {
            Ok(convention) => convention.unwrap_or(default),
            Err(problem) => {
                self.problems.push(problem);
                default
            }
        };
        let (model, gpu, gpus, seq_len, gbs) = (model?, gpu?, gpus?, seq_len?, gbs?);
        let architecture = match model.architecture.with_layers(layers?) {
            Ok(architecture) => architecture,
            Err(problem) => {
                self.problems.push(problem);
                return None;
            }
        };
        if convention == Convention::Recipe && recipe.is_none() {
            self.problems.push(Convention::needs_recipe());
        }
        let degrees = Degrees { gpus, tp, pp, cp, ep, expert_tp, vp, split };
        Some(Draft { model, architecture, gpu, dtype: dtype?, degrees, seq_len, mbs, gbs, convention })
    }

    /// The recipe's global batch; of a weak series, as much of it as the GPUs are of the recipe's.
    fn global_batch(&mut self, gpus: Option<u32>) -> Option<u32> {
        let Some(recipe) = self.recipe else { return self.whole(Field::Gbs, None) };
        let weak = recipe.scaling == Some(Scaling::Weak);
        if self.spec.get(Field::Gbs).is_some() || !weak || gpus.is_none_or(|gpus| gpus == recipe.id.gpus) {
            return self.whole(Field::Gbs, Some(recipe.gbs));
        }
        let gpus = u64::from(gpus?);
        let (batch, per) = (u64::from(recipe.gbs) * gpus, u64::from(recipe.id.gpus));
        match u32::try_from(batch / per) {
            Ok(gbs) if batch.is_multiple_of(per) => {
                self.note_change(Field::Gbs, recipe.gbs, gbs, true);
                Some(gbs)
            }
            // The GPU count is then refused by the layout, or GBS by the batch, with the nearest that work.
            _ => Some(recipe.gbs),
        }
    }

    fn named<T>(
        &mut self,
        field: Field,
        base: Option<&str>,
        find: impl Fn(&str) -> Result<&'static T, Problem>,
        id: impl Fn(&T) -> &str,
    ) -> Option<&'static T> {
        let Some(text) = self.spec.get(field).or(base) else {
            self.problems.push(missing(field));
            return None;
        };
        match find(text) {
            Ok(found) => {
                if let Some(base) = base {
                    self.note_change(field, base, id(found), false);
                }
                Some(found)
            }
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    fn value<T: FromStr<Err = Problem> + Display + PartialEq>(
        &mut self,
        field: Field,
        base: Option<T>,
    ) -> Option<T> {
        let typed = self.spec.parse(field);
        self.settle(field, typed, base)
    }

    fn whole(&mut self, field: Field, base: Option<u32>) -> Option<u32> {
        let typed = self.spec.whole(field, 1);
        self.settle(field, typed, base)
    }

    fn settle<T: Display>(
        &mut self,
        field: Field,
        typed: Result<Option<T>, Problem>,
        base: Option<T>,
    ) -> Option<T> {
        match (typed, base) {
            (Err(problem), _) => {
                self.problems.push(problem);
                None
            }
            (Ok(Some(typed)), base) => {
                if let (Some(base), true) = (base, self.recipe.is_some()) {
                    self.note_change(field, base, &typed, false);
                }
                Some(typed)
            }
            (Ok(None), Some(base)) => Some(base),
            (Ok(None), None) => {
                // A sequence length or layer count is only missing where its model is.
                if !matches!(field, Field::SeqLen | Field::Layers) {
                    self.problems.push(missing(field));
                }
                None
            }
        }
    }

    fn note_change(&mut self, field: Field, from: impl Display, to: impl Display, follows: bool) {
        let (from, to) = (from.to_string(), to.to_string());
        if from != to {
            self.changes.push(Change { field, from, to, follows });
        }
    }
}

fn missing(field: Field) -> Problem {
    Problem::new(field, "", "is needed where no recipe is given")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    #[test]
    fn every_recipe_is_a_scenario_that_derives_what_its_document_prints() {
        for recipe in Catalog::embedded().recipes() {
            let scenario = Spec::default().with(Field::Recipe, recipe.id.to_string()).scenario().unwrap();
            let (dp, ga) = (scenario.layout.dp(), scenario.batch.ga());
            assert_eq!((dp, ga), (recipe.printed_dp, recipe.printed_ga), "{}", recipe.id);
            assert_eq!(scenario.published_as().map(|published| &published.id), Some(&recipe.id));
            assert!(scenario.changes.is_empty() && scenario.warnings().is_empty(), "{}", recipe.id);
        }
    }

    #[test]
    fn the_batch_of_a_weak_series_follows_the_gpus() {
        let fields = [(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04"), (Field::Gpus, "1024")];
        let scenario = spec(&fields).scenario().unwrap();
        assert_eq!((scenario.batch.gbs(), scenario.batch.ga()), (512, 64));
        assert_eq!(scenario.changes.iter().map(|change| change.follows).collect::<Vec<_>>(), [false, true]);
        let published = scenario.published_as().unwrap();
        assert_eq!(published.id.to_string(), "llama3.1-405b/h100/fp8/1024@25.04");
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let fields = [
            (Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04"),
            (Field::Gpus, "many"),
            (Field::Gpu, "h1000"),
            (Field::Tp, "0"),
        ];
        let problems = spec(&fields).scenario().unwrap_err();
        let fields: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [Field::Gpu, Field::Gpus, Field::Tp]);
        assert_eq!(problems[2].nearest, ["1"]);
    }

    #[test]
    fn without_a_recipe_what_is_needed_is_named() {
        let problems = Spec::default().scenario().unwrap_err();
        let fields: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [Field::Model, Field::Gpu, Field::Gpus, Field::Gbs]);
    }

    #[test]
    fn a_step_time_is_seconds_or_an_mfu() {
        assert_eq!("12.37".parse(), Ok(StepTime::Seconds(12.37)));
        assert_eq!("44.5 %".parse(), Ok(StepTime::Mfu(0.445)));
        for text in ["0", "-1", "2M", "140%", "fast", "%", ""] {
            assert!(text.parse::<StepTime>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_unpublished_scenario_can_assume_its_recipes_mfu() {
        let fields = [(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04"), (Field::Gpus, "4096")];
        let problem = spec(&fields).metrics().unwrap_err().remove(0);
        assert_eq!(problem.field, Field::StepTime);
        assert!(problem.allowed.contains("44.35%"), "{problem}");
        let assumed = spec(&fields).with(Field::StepTime, "44.35%").metrics().unwrap();
        assert_eq!(assumed.basis, Basis::AssumedMfu);
        assert!((assumed.metrics.step_time_s - 12.37).abs() < 0.01, "weak scaling keeps the step time");
    }

    #[test]
    fn a_gpu_without_the_precision_is_refused() {
        let fields =
            [(Field::Model, "llama3.1-8b"), (Field::Gpu, "a100"), (Field::Gpus, "8"), (Field::Gbs, "128")];
        assert!(spec(&fields).scenario().is_ok());
        let problem = spec(&fields).with(Field::Dtype, "fp8").scenario().unwrap_err().remove(0);
        assert_eq!(problem.allowed, "bf16");
    }
}
