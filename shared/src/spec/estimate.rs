//! What the fields ask to be predicted, and what a person should know of the answer.

use super::{Remedy, Spec};
use crate::catalog::{Baseline, Recipe};
use crate::estimate::{BasisKind, Estimate, Interval};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::units::{DAY_S, significant};

/// A scenario with its prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// The scenario.
    pub scenario: Scenario,
    /// Its prediction.
    pub estimate: Estimate,
    /// What the middle of the predicted step time means, for the tokens in the fields.
    pub metrics: Metrics,
    /// Days to train, without a pause; none for a proxy.
    pub time_to_train_days: Option<Interval>,
    /// The recipe that the scenario is, with its published measurement.
    pub published: Option<(&'static Recipe, &'static Baseline)>,
    /// Where it does not fit: the changes with which it would, the fastest first.
    pub remedies: Vec<Remedy>,
    /// What to know of the scenario and of its prediction.
    pub warnings: Vec<String>,
}

impl Predicted {
    /// Predicted over published step time, less one.
    pub fn off_published(&self) -> Option<f64> {
        self.published.map(|(_, baseline)| self.estimate.step_time_s.mid / baseline.step_time_s - 1.0)
    }
}

impl Spec {
    /// Predicts the scenario that the fields describe.
    ///
    /// # Errors
    /// Every field that can't be read or does not fit the others.
    pub fn estimate(&self) -> Result<Predicted, Vec<Problem>> {
        let (scenario, tokens) = match (self.scenario(), self.tokens()) {
            (Ok(scenario), Ok(tokens)) => (scenario, tokens),
            (Ok(_), Err(problem)) => return Err(vec![problem]),
            (Err(problems), tokens) => return Err(problems.into_iter().chain(tokens.err()).collect()),
        };
        let estimate = Estimate::of(&scenario);
        let metrics = Metrics::new(&scenario, estimate.step_time_s.mid, tokens);
        let steps = tokens / scenario.batch.tokens();
        let time_to_train_days =
            metrics.time_to_train_days.map(|_| estimate.step_time_s.times(steps / DAY_S));
        let published = scenario.published_as().zip(scenario.baseline());
        let remedies = match estimate.memory.fits() {
            true => Vec::new(),
            false => self.remedies(&scenario, estimate.step_time_s.mid),
        };
        let mut warnings = scenario.warnings();
        warnings.extend(metrics.warning());
        warnings.extend(does_not_fit(&scenario, &estimate, &remedies));
        warnings.extend(rests_on_little(&scenario, &estimate));
        Ok(Predicted { scenario, estimate, metrics, time_to_train_days, published, remedies, warnings })
    }
}

/// That a scenario does not fit, where, by how much, and what would make it fit.
fn does_not_fit(scenario: &Scenario, estimate: &Estimate, remedies: &[Remedy]) -> Option<String> {
    let memory = &estimate.memory;
    if memory.fits() {
        return None;
    }
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    let place = match memory.stages.len() {
        1 => "every GPU".to_string(),
        stages => format!("stage {} of {stages}", memory.peak_stage + 1),
    };
    let helps: Vec<String> = remedies
        .iter()
        .map(|remedy| format!("{remedy} (a step of {} s)", significant(remedy.step_time_s, 3)))
        .collect();
    let helps = match helps.is_empty() {
        true => "no one to three changes of MBS, recomputation, FSDP and degrees of parallelism were found that make it fit \
                 without doubling the step time: more GPUs might"
            .to_string(),
        false => format!("it would fit with {}", helps.join(", or with ")),
    };
    Some(format!(
        "does not fit: {place} needs {:.1} GiB where the {} has {:.1}, {:.1} too much; {helps}",
        gib(memory.total_bytes() + memory.reserved_bytes),
        scenario.gpu.name,
        gib(memory.capacity_bytes),
        gib(-memory.margin_bytes()),
    ))
}

/// That nobody measured anything near, or not on that very GPU.
fn rests_on_little(scenario: &Scenario, estimate: &Estimate) -> Option<String> {
    if estimate.basis.kind != BasisKind::Modelled {
        return None;
    }
    let Interval { low, mid, high } = estimate.step_time_s;
    let why = match scenario.gpu.id.split_once(':') {
        Some((base, own)) => format!("nobody measured your own GPU, the {base} with {own}"),
        None => format!(
            "no run like this one, of this shape on the {} by such software or in a layout nearby, is in the measurements",
            scenario.gpu.name
        ),
    };
    Some(format!(
        "{why}: the interval is wide, from {:+.0} % to {:+.0} %, as far as such predictions were off",
        (low / mid - 1.0) * 100.0,
        (high / mid - 1.0) * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    #[test]
    fn a_published_scenario_rests_on_its_own_measurement() {
        let predicted = spec(&[(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04")]).estimate().unwrap();
        assert_eq!(predicted.estimate.basis.kind, BasisKind::Published);
        assert!(predicted.off_published().unwrap().abs() < 0.4);
        assert!(predicted.estimate.memory.fits() && predicted.remedies.is_empty());
        assert_eq!(predicted.warnings, Vec::<String>::new());
        let days = predicted.time_to_train_days.unwrap();
        assert!(days.low < days.mid && days.mid < days.high);
        assert!((days.mid / predicted.metrics.time_to_train_days.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_nobody_measured_says_so() {
        let fields = |model, gpu| {
            spec(&[(Field::Model, model), (Field::Gpu, gpu), (Field::Gpus, "64"), (Field::Gbs, "512")])
        };
        let warnings = |spec: Spec| spec.estimate().unwrap().warnings.join("\n");
        let own = "own:layers=7,hidden=4096,ffn=14337,heads=32,kv_heads=8,head_dim=128,vocab=128256,gated=1,\
                   tied_embeddings=0,seq_len=8192";
        assert!(warnings(fields(own, "h100")).contains("no run like this one, of this shape on the H100"));
        let changed = warnings(fields("llama3.1-8b", "h100:hbm_gb=96"));
        assert!(changed.contains("your own GPU, the h100 with hbm_gb=96"), "{changed}");
        let stack = fields("llama3.1-8b", "h100").with(Field::Stack, "nemo-2").with(Field::Cp, "2");
        assert!(!warnings(stack).contains("no run like this one"));
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let problems =
            spec(&[(Field::Model, "llama3.1-8b"), (Field::Tokens, "many")]).estimate().unwrap_err();
        let fields: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [Field::Gpu, Field::Gpus, Field::Gbs, Field::Tokens]);
    }
}
