//! What the fields ask to be predicted, and what a person should know of the answer.

use super::{DEFAULT_TOKENS, Spec};
use crate::catalog::{Baseline, Recipe};
use crate::estimate::{BasisKind, Estimate, Inputs, Interval, fits};
use crate::layout::{Degrees, Layout};
use crate::metrics::Metrics;
use crate::options::{Options, Recompute};
use crate::problem::{Field, Problem};
use crate::scenario::Scenario;
use crate::units::DAY_S;

/// A scenario with its prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// The scenario.
    pub scenario: Scenario,
    /// Its prediction.
    pub estimate: Estimate,
    /// What the predicted step time means.
    pub metrics: Metrics,
    /// Days to train, without a pause; none for a proxy.
    pub time_to_train_days: Option<Interval>,
    /// The recipe that the scenario is, with its published measurement.
    pub published: Option<(&'static Recipe, &'static Baseline)>,
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
        let scenario = self.scenario()?;
        let tokens = self.count(Field::Tokens).map_err(|problem| vec![problem])?.unwrap_or(DEFAULT_TOKENS);
        let estimate = Estimate::of(&scenario);
        let metrics = Metrics::new(&scenario, estimate.step_time_s.mid, tokens);
        let steps = tokens / scenario.batch.tokens();
        let time_to_train_days =
            metrics.time_to_train_days.map(|_| estimate.step_time_s.times(steps / DAY_S));
        let published = scenario.published_as().zip(scenario.baseline());
        let mut warnings = scenario.warnings();
        warnings.extend(metrics.warning());
        warnings.extend(does_not_fit(&scenario, &estimate));
        warnings.extend(rests_on_little(&scenario, &estimate));
        Ok(Predicted { scenario, estimate, metrics, time_to_train_days, published, warnings })
    }
}

/// That a scenario does not fit, where, by how much, and what would make it fit.
fn does_not_fit(scenario: &Scenario, estimate: &Estimate) -> Option<String> {
    let memory = &estimate.memory;
    if memory.fits() {
        return None;
    }
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    let helps = remedies(scenario);
    let helps = match helps.is_empty() {
        true => "no single change of recomputation, FSDP, MBS, TP or PP would help: more GPUs, or several changes, might"
            .to_string(),
        false => format!("it would fit with {}", helps.join(", or with ")),
    };
    Some(format!(
        "does not fit: stage {} of {} needs {:.1} GiB where the {} has {:.1}, {:.1} too much; {helps}",
        memory.peak_stage + 1,
        memory.stages.len(),
        gib(memory.total_bytes() + memory.reserved_bytes),
        scenario.gpu.name,
        gib(memory.capacity_bytes),
        gib(-memory.margin_bytes()),
    ))
}

/// The single changes that make a scenario fit, cheapest first: at most three.
fn remedies(scenario: &Scenario) -> Vec<String> {
    let Scenario { layout, batch, options, architecture, .. } = scenario;
    let inputs = scenario.inputs();
    let mut helps = Vec::new();
    let mut try_one = |what: String, inputs: &Inputs<'_>| {
        if helps.len() < 3 && fits(inputs) {
            helps.push(what);
        }
    };
    for mbs in [batch.mbs() / 2, batch.mbs() / 4, 1] {
        if mbs == 0 || mbs >= batch.mbs() {
            continue;
        }
        if let Ok(batch) = crate::batch::Batch::new(batch.seq_len(), mbs, batch.gbs(), layout) {
            try_one(format!("--mbs {mbs}"), &Inputs { batch: &batch, ..inputs });
            break;
        }
    }
    if !options.fsdp {
        try_one("--fsdp".into(), &Inputs { options: &Options { fsdp: true, ..*options }, ..inputs });
    }
    if options.recompute != Recompute::Full {
        let options = Options { recompute: Recompute::Full, ..*options };
        try_one("--recompute full".into(), &Inputs { options: &options, ..inputs });
    }
    let degrees = Degrees {
        gpus: layout.gpus(),
        tp: layout.tp(),
        pp: layout.pp(),
        cp: layout.cp(),
        ep: layout.ep(),
        expert_tp: layout.expert_tp(),
        vp: layout.vp(),
        split: layout.split().clone(),
    };
    let wider = |factor: u32| {
        [
            (format!("--tp {}", degrees.tp * factor), Degrees { tp: degrees.tp * factor, ..degrees.clone() }),
            (format!("--pp {}", degrees.pp * factor), Degrees { pp: degrees.pp * factor, ..degrees.clone() }),
        ]
    };
    for (what, degrees) in [2, 4, 8, 16].into_iter().flat_map(wider) {
        // Beyond what NVLink joins, tensor parallelism is no advice.
        if degrees.tp > scenario.gpu.nvlink_domain.min(8) {
            continue;
        }
        let Ok(layout) = Layout::new(&degrees, architecture) else { continue };
        let Ok(batch) = crate::batch::Batch::new(batch.seq_len(), batch.mbs(), batch.gbs(), &layout) else {
            continue;
        };
        try_one(what, &Inputs { layout: &layout, batch: &batch, ..inputs });
    }
    helps
}

/// That nobody measured anything near.
fn rests_on_little(scenario: &Scenario, estimate: &Estimate) -> Option<String> {
    if estimate.basis.kind != BasisKind::Modelled {
        return None;
    }
    let Interval { low, mid, high } = estimate.step_time_s;
    Some(format!(
        "no run of {} on the {} is in the measurements: the estimate is the physical model's, within {:+.0} % and {:+.0} % \
         in eight of ten cases like it",
        scenario.model.title,
        scenario.gpu.name,
        (low / mid - 1.0) * 100.0,
        (high / mid - 1.0) * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    #[test]
    fn a_published_scenario_rests_on_its_own_measurement() {
        let predicted = spec(&[(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04")]).estimate().unwrap();
        assert_eq!(predicted.estimate.basis.kind, BasisKind::Published);
        assert!(predicted.off_published().unwrap().abs() < 0.05);
        assert!(predicted.estimate.memory.fits());
        let days = predicted.time_to_train_days.unwrap();
        assert!(days.low < days.mid && days.mid < days.high);
        assert!((days.mid / predicted.metrics.time_to_train_days.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_would_make_it_fit_does() {
        let fields = [
            (Field::Model, "llama3.1-70b"),
            (Field::Gpu, "h100"),
            (Field::Gpus, "64"),
            (Field::Gbs, "128"),
            (Field::Tp, "2"),
        ];
        let predicted = spec(&fields).estimate().unwrap();
        assert!(!predicted.estimate.memory.fits());
        let helps = remedies(&predicted.scenario);
        assert!(!helps.is_empty());
        for help in helps {
            let (flag, value) = help.split_once(' ').unwrap_or((&*help, "on"));
            let mended = spec(&fields).with(Field::from_flag(flag).unwrap(), value).estimate().unwrap();
            assert!(mended.estimate.memory.fits(), "{help}");
        }
    }
}
