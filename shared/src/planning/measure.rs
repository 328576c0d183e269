//! Model FLOPs and the metrics of a step time, from fields.

use super::missing;
use crate::architecture::Architecture;
use crate::catalog::{Catalog, Model, Recipe};
use crate::convention::Convention;
use crate::field::Field;
use crate::flops::ModelFlops;
use crate::message;
use crate::message::Message;
use crate::metrics::{DEFAULT_TOKENS, Metrics};
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::spec::Spec;
use crate::units::parse_count;
use serde::Serialize;
use std::borrow::Cow;
use std::str::FromStr;

/// The least MFU that can be assumed, in percent.
const LEAST_MFU_PERCENT: f64 = 0.01;

impl Spec {
    /// Returns the model FLOPs of the scenario in the fields. Without a recipe, only the model is required.
    ///
    /// # Errors
    /// Every field that is invalid or contradicts others.
    pub fn model_flops(&self) -> Result<CountedFlops, Vec<Problem>> {
        if self.get(Field::Recipe).is_some() {
            let scenario = self.scenario()?;
            let flops = ModelFlops::of(&scenario);
            return Ok(CountedFlops {
                model: scenario.model,
                recipe: scenario.recipe,
                architecture: scenario.architecture,
                flops,
            });
        }
        let id = self.get(Field::Model).ok_or_else(|| vec![missing(Field::Model)])?;
        let model = Catalog::embedded().model_or_own(id).map_err(|problem| vec![problem])?;
        let one = |problem| vec![problem];
        let layers = self.whole(Field::Layers).map_err(one)?.unwrap_or(model.architecture.layers);
        let seq_len = self.whole(Field::SeqLen).map_err(one)?.unwrap_or(model.seq_len);
        let causal = match self.parse(Field::Convention).map_err(one)? {
            Some(Convention::Recipe) => return Err(vec![Convention::needs_recipe()]),
            Some(Convention::Causal) => true,
            Some(Convention::Full) | None => false,
        };
        let architecture = model.architecture.with_layers(layers).map_err(one)?;
        let flops = ModelFlops::by_blocks(&architecture, seq_len, causal);
        Ok(CountedFlops { model, recipe: None, architecture, flops })
    }

    /// Returns the metrics of the step time in the fields, or of the published one if there is none. Without recipe
    /// and model, sequence length and GBS still give tokens per second.
    ///
    /// # Errors
    /// Every field that is invalid or contradicts others; a step time that is neither given nor published.
    pub fn metrics(&self) -> Result<StepMetrics, Vec<Problem>> {
        let one = |problem| vec![problem];
        let given: Option<StepTime> = self.parse(Field::StepTime).map_err(one)?;
        if self.get(Field::Recipe).is_none() && self.get(Field::Model).is_none() {
            return self.metrics_of_tokens(given);
        }
        let scenario = self.scenario()?;
        let published = scenario.baseline().map(|baseline| StepTime::Seconds(baseline.step_time_s));
        let Some(step_time) = given.or(published) else {
            let assumed = scenario.recipe_mfu();
            let mfu = assumed.map_or("40%".to_string(), |mfu| format!("the recipe's {:.2}%", mfu * 100.0));
            let message = message![
                "No step time is published for this scenario. Set ",
                Field::StepTime,
                format!(" to seconds per step, or to an assumed MFU such as {mfu}."),
            ];
            return Err(vec![Problem::new(Field::StepTime, "", message)]);
        };
        let metrics = self.metrics_at(&scenario, step_time)?;
        let mut warnings = scenario.warnings();
        warnings.extend(metrics.warning().map(Message::from));
        Ok(StepMetrics {
            metrics,
            published: scenario.published_as(),
            basis: match (given, step_time) {
                (None, _) => StepTimeSource::Published,
                (Some(_), StepTime::Seconds(_)) => StepTimeSource::Given,
                (Some(_), StepTime::Mfu(_)) => StepTimeSource::AssumedMfu,
            },
            warnings,
        })
    }

    /// Returns the metrics of a step time of the scenario, for the tokens in the fields.
    ///
    /// # Errors
    /// The tokens are invalid.
    pub fn metrics_at(&self, scenario: &Scenario, step_time: StepTime) -> Result<Metrics, Vec<Problem>> {
        let step_time_s = match step_time {
            StepTime::Seconds(seconds) => seconds,
            StepTime::Mfu(mfu) => Metrics::step_time_at(scenario, mfu),
        };
        Ok(Metrics::new(scenario, step_time_s, self.tokens().map_err(|problem| vec![problem])?))
    }

    /// Returns the tokens to train; 10¹² if none are given.
    ///
    /// # Errors
    /// The text is not a number within the bounds of [`Field::Tokens`].
    pub fn tokens(&self) -> Result<f64, Problem> {
        Ok(self.typed_tokens()?.unwrap_or(DEFAULT_TOKENS))
    }

    /// Returns the tokens to train, if they are given.
    ///
    /// # Errors
    /// The text is not a number within the bounds of [`Field::Tokens`].
    pub fn typed_tokens(&self) -> Result<Option<f64>, Problem> {
        let with_suffix = |problem: Problem| {
            // 10 was meant to be 10T, and 500 to be 500B.
            let suffix = match parse_count(&problem.given) {
                Some(0.01..100.0) => "T",
                Some(100.0..1000.0) => "B",
                _ => return problem,
            };
            let meant = [problem.given.as_str(), suffix].concat();
            problem.suggest([meant])
        };
        self.count(Field::Tokens).map_err(|problem| problem.worded(with_suffix))
    }

    fn metrics_of_tokens(&self, given: Option<StepTime>) -> Result<StepMetrics, Vec<Problem>> {
        let one = |problem| vec![problem];
        let seq_len = self.whole(Field::SeqLen).map_err(one)?;
        let gbs = self.whole(Field::Gbs).map_err(one)?;
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
        Ok(StepMetrics { metrics, published: None, basis: StepTimeSource::Given, warnings: Vec::new() })
    }
}

impl Scenario {
    /// Returns the MFU of its recipe's published step time, with this scenario's FLOP counting: a first assumption for
    /// a changed recipe. None on another GPU type or in another precision.
    pub fn recipe_mfu(&self) -> Option<f64> {
        let recipe =
            self.recipe.filter(|recipe| recipe.id.gpu == self.gpu.id && recipe.id.dtype == self.dtype)?;
        let step_time_s = Catalog::embedded().baseline(&recipe.id)?.step_time_s;
        let spec = Spec::default().with(Field::Recipe, recipe.id.to_string());
        let published = spec.with(Field::Convention, self.convention.id()).scenario().ok()?;
        Metrics::new(&published, step_time_s, DEFAULT_TOKENS).mfu
    }
}

/// Model FLOPs and what they were counted for.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedFlops {
    /// The model.
    pub model: Cow<'static, Model>,
    /// The given recipe.
    pub recipe: Option<&'static Recipe>,
    /// The architecture; a proxy has fewer layers.
    pub architecture: Architecture,
    /// The FLOPs of a sequence.
    pub flops: ModelFlops,
}

/// The metrics of a step time, and the source of the step time.
#[derive(Debug, Clone, PartialEq)]
pub struct StepMetrics {
    /// The metrics.
    pub metrics: Metrics,
    /// The recipe that equals the scenario.
    pub published: Option<&'static Recipe>,
    /// The source of the step time.
    pub basis: StepTimeSource,
    /// Warnings about the scenario and the step time.
    pub warnings: Vec<Message>,
}

/// The source of a step time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepTimeSource {
    /// A published document.
    Published,
    /// The user.
    Given,
    /// An MFU that the user assumes.
    AssumedMfu,
}

/// A step time, or the MFU to compute it from.
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
        let (number, percent) = match text.trim().strip_suffix('%') {
            Some(number) => (number, true),
            None => (text, false),
        };
        // A suffix would be a slip: a step does not take 2M seconds.
        let is_plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | 'e' | 'E' | '-');
        match parse_count(number).filter(|_| number.trim().chars().all(is_plain)) {
            Some(mfu) if percent && mfu > 100.0 => {
                let message = format!("An MFU of {text} is above the GPU's peak. Use less, such as 40%.");
                Err(Problem::new(Field::StepTime, text, message))
            }
            Some(mfu) if percent && mfu >= LEAST_MFU_PERCENT => Ok(StepTime::Mfu(mfu / 100.0)),
            Some(seconds) if !percent && Field::StepTime.bounds().number(number, parse_count).is_some() => {
                Ok(StepTime::Seconds(seconds))
            }
            _ => Err(Field::StepTime.refuse(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    #[test]
    fn a_step_time_is_seconds_or_an_mfu() {
        assert_eq!("12.37".parse(), Ok(StepTime::Seconds(12.37)));
        assert_eq!("44.5 %".parse(), Ok(StepTime::Mfu(0.445)));
        assert_eq!("0.01%".parse(), Ok(StepTime::Mfu(LEAST_MFU_PERCENT / 100.0)));
        for text in ["0", "-1", "2M", "12,37", "0.009%", "140%", "fast", "%", ""] {
            assert!(text.parse::<StepTime>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_count_without_its_suffix_is_refused_with_the_likely_one() {
        let tokens = |text: &str| spec(&[(Field::Tokens, text)]).tokens();
        assert_eq!((tokens("1M"), tokens("")), (Ok(1e6), Ok(DEFAULT_TOKENS)));
        let suggested = |text: &str| tokens(text).unwrap_err().suggestions;
        assert_eq!(
            (suggested("10"), suggested("500"), suggested("5K")),
            (vec!["10T".into()], vec!["500B".into()], vec![])
        );
    }

    #[test]
    fn an_unpublished_scenario_can_assume_its_recipes_mfu() {
        let fields = [(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04"), (Field::Gpus, "4096")];
        let problem = spec(&fields).metrics().unwrap_err().remove(0);
        assert_eq!(problem.field, Field::StepTime);
        assert!(problem.to_string().contains("44.35%"), "{problem}");
        let assumed = spec(&fields).with(Field::StepTime, "44.35%").metrics().unwrap();
        assert_eq!(assumed.basis, StepTimeSource::AssumedMfu);
        assert!((assumed.metrics.step_time_s - 12.37).abs() < 0.01, "weak scaling keeps the step time");
    }
}
