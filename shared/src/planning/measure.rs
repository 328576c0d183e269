//! What the fields ask for in numbers: model FLOPs, and what a step time means.

use super::missing;
use crate::architecture::Architecture;
use crate::catalog::{Catalog, Model, Recipe};
use crate::convention::Convention;
use crate::field::Field;
use crate::flops::ModelFlops;
use crate::metrics::{DEFAULT_TOKENS, Metrics};
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::spec::Spec;
use crate::units::parse_count;
use serde::Serialize;
use std::borrow::Cow;
use std::str::FromStr;

impl Spec {
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
        let model = Catalog::embedded().model_or_own(id).map_err(|problem| vec![problem])?;
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
            let problem =
                Problem::clause(Field::StepTime, "", "is needed: none is published for this scenario");
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

impl Scenario {
    /// The MFU that its recipe's published step time means, counted as this scenario counts; what one may assume of a
    /// change of the recipe until something better is known. On another GPU type or in another precision it says
    /// nothing.
    pub fn recipe_mfu(&self) -> Option<f64> {
        let recipe =
            self.recipe.filter(|recipe| recipe.id.gpu == self.gpu.id && recipe.id.dtype == self.dtype)?;
        let step_time_s = Catalog::embedded().baseline(&recipe.id)?.step_time_s;
        let spec = Spec::default().with(Field::Recipe, recipe.id.to_string());
        let published = spec.with(Field::Convention, self.convention.id()).scenario().ok()?;
        Metrics::new(&published, step_time_s, DEFAULT_TOKENS).mfu
    }
}

/// Model FLOPs, and of what.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The model.
    pub model: Cow<'static, Model>,
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
            Problem::clause(Field::StepTime, text, what)
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
        for text in ["0", "-1", "2M", "140%", "fast", "%", ""] {
            assert!(text.parse::<StepTime>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_unpublished_scenario_can_assume_its_recipes_mfu() {
        let fields = [(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04"), (Field::Gpus, "4096")];
        let problem = spec(&fields).metrics().unwrap_err().remove(0);
        assert_eq!(problem.field, Field::StepTime);
        assert!(problem.to_string().contains("44.35%"), "{problem}");
        let assumed = spec(&fields).with(Field::StepTime, "44.35%").metrics().unwrap();
        assert_eq!(assumed.basis, Basis::AssumedMfu);
        assert!((assumed.metrics.step_time_s - 12.37).abs() < 0.01, "weak scaling keeps the step time");
    }
}
