//! The prediction for the scenario that the fields describe, with its warnings.

use super::{Remedy, remedies};
use crate::catalog::{Baseline, Collection, Recipe};
use crate::estimate::{
    Confidence, Distance, Estimate, Interval, IntervalTable, MUCH_BY_SOFTWARE, MemoryEstimate,
};
use crate::field::Field;
use crate::message;
use crate::message::{Message, Setting};
use crate::metrics::Metrics;
use crate::options::Recompute;
use crate::problem::{Problem, one_of};
use crate::scenario::Scenario;
use crate::search::Unsupported;
use crate::spec::Spec;
use crate::units::{DAY_S, group_digits, percent, readable, signed};

/// A scenario with its prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// The scenario.
    pub scenario: Scenario,
    /// The prediction.
    pub estimate: Estimate,
    /// Throughput, MFU and time to train at the predicted step time.
    pub metrics: Metrics,
    /// Days to train without interruptions; `None` for a proxy.
    pub time_to_train_days: Option<Interval>,
    /// The recipe that equals the scenario, with its published measurement.
    pub published: Option<(&'static Recipe, &'static Baseline)>,
    /// Changes that make a scenario fit that does not, fastest first.
    pub remedies: Vec<Remedy>,
    /// Warnings about the scenario and its prediction, as sentences.
    pub warnings: Vec<Message>,
}

impl Predicted {
    /// Returns predicted over published step time, minus 1.
    pub fn off_published(&self) -> Option<f64> {
        self.published.map(|(_, baseline)| self.estimate.step_time_s.mid / baseline.step_time_s - 1.0)
    }

    /// Returns the error of the prediction of the published run without any measurement of its mapping, as in
    /// `docs/accuracy.md`: predicted over published step time, minus 1. The run itself corrects the prediction, so
    /// [`Predicted::off_published`] says nothing about its accuracy. None if no run is published, or none like it corrected
    /// the prediction.
    pub fn held_out_error(&self) -> Option<f64> {
        let (recipe, _) = self.published?;
        self.estimate.evidence.held_out_error(&recipe_release(recipe))
    }
}

/// Returns the release that measured a recipe, as anchors name it.
pub(crate) fn recipe_release(recipe: &Recipe) -> String {
    let (collection, release) = recipe.id.release.software().measured;
    Collection::with_release(collection, release)
}

impl Spec {
    /// Returns the prediction for the scenario that the fields describe.
    ///
    /// # Errors
    /// Every field that is invalid or contradicts other fields.
    pub fn estimate(&self) -> Result<Predicted, Vec<Problem>> {
        let (scenario, tokens) = match (self.scenario_or_all_problems(), self.tokens()) {
            (Ok(scenario), Ok(tokens)) => (scenario, tokens),
            (Ok(_), Err(problem)) => return Err(vec![problem]),
            (Err(problems), tokens) => return Err(problems.into_iter().chain(tokens.err()).collect()),
        };
        let estimate = Estimate::of(&scenario);
        Ok(self.predicted(scenario, tokens, estimate))
    }

    /// Returns the prediction that an estimate of a scenario gives. The fields are those of the scenario.
    pub(crate) fn predicted(&self, scenario: Scenario, tokens: f64, estimate: Estimate) -> Predicted {
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
        warnings.extend(metrics.warning().map(Message::from));
        warnings.extend(is_unsupported(&scenario));
        warnings.extend(does_not_fit(&scenario, &estimate.memory, &remedies));
        warnings.extend(is_unmeasured(&scenario, &estimate));
        warnings.extend(self.by_software(&scenario, &estimate));
        Predicted { scenario, estimate, metrics, time_to_train_days, published, remedies, warnings }
    }
}

impl Spec {
    /// Warns how uncertain the prediction is, because nobody measured the model with this software on this GPU
    /// type.
    fn by_software(&self, scenario: &Scenario, estimate: &Estimate) -> Option<Message> {
        let measured = estimate.evidence.measured_with?;
        let with = self.clone().with(Field::Stack, measured.id()).scenario().ok()?;
        let step_time_s = Estimate::of(&with).step_time_s.mid;
        let slower = step_time_s / estimate.step_time_s.mid - 1.0;
        (slower >= MUCH_BY_SOFTWARE).then(|| {
            format!(
                "No published run of this model on the {} used {}. With {}, as in the nearest run, a step is predicted to take {} s \
                 ({} longer).",
                scenario.gpu.name,
                scenario.options.software.title(),
                measured.title(),
                readable(step_time_s),
                percent(slower)
            )
            .into()
        })
    }
}

/// Warns that the software can't run the scenario.
fn is_unsupported(scenario: &Scenario) -> Option<Message> {
    let unsupported = remedies::unsupported(scenario)?;
    let software = scenario.options.software.title();
    let off = |field: Field| Setting::new(field, 1);
    let fsdp = |value: &str| Setting::new(Field::Fsdp, value);
    Some(match unsupported {
        Unsupported::Tensor(most) => {
            message![
                format!("{software} has a TP of at most {most}. Set "),
                Setting::new(Field::Tp, most),
                "."
            ]
        }
        Unsupported::Pipeline => {
            message![format!("{software} has no pipeline parallelism. Set "), off(Field::Pp), "."]
        }
        Unsupported::Context => {
            message![format!("{software} has no context parallelism. Set "), off(Field::Cp), "."]
        }
        Unsupported::Interleaving => {
            message![format!("{software} can't interleave pipeline stages. Set "), off(Field::Vp), "."]
        }
        Unsupported::Experts => {
            message![format!("{software} has no expert parallelism. Set "), off(Field::Ep), "."]
        }
        Unsupported::Fsdp => message![format!("{software} has no FSDP. Set "), fsdp("off"), "."],
        Unsupported::WithoutFsdp => message![format!("{software} always uses FSDP. Set "), fsdp("on"), "."],
        Unsupported::FsdpWithStages => message![
            format!("{software} can't combine FSDP with pipeline or context parallelism. Set "),
            fsdp("off"),
            ", or ",
            off(Field::Pp),
            " and ",
            off(Field::Cp),
            "."
        ],
    })
}

/// Warns that the scenario does not fit or is too close to call, with the changes that would make it fit.
fn does_not_fit(scenario: &Scenario, memory: &MemoryEstimate, remedies: &[Remedy]) -> Option<Message> {
    let mut message = Message::from(memory.shortage(&scenario.gpu.name)?);
    for (place, remedy) in remedies.iter().enumerate() {
        let step = format!(" ({} s per step)", readable(remedy.step_time_s));
        message = message.and(if place > 0 { ", or " } else { " It fits with " });
        message = message.and(remedy.changes(" ")).and(step);
    }
    Some(match (remedies.is_empty(), memory.fits()) {
        (true, true) => message,
        (true, false) => message.and(HOPELESS),
        (false, _) => message.and("."),
    })
}

const HOPELESS: &str = " No combination of up to three changes to micro batch size, recomputation, FSDP or parallelism \
                        makes it fit without doubling the step time. Use more GPUs.";

/// Warns that no similar run was measured. If no run of any model is similar, the warning says how it differs, and whether that
/// widens the interval.
fn is_unmeasured(scenario: &Scenario, estimate: &Estimate) -> Option<Message> {
    let gpu = &scenario.gpu;
    let software = scenario.options.software;
    let generation = gpu.generation.title();
    let is_routed = scenario.architecture.moe.is_some();
    let distances = Distance::all_of(gpu, scenario.layout.gpus(), is_routed, &software);
    let far = distances.iter().map(|distance| match (distance, gpu.id.split_once(':')) {
        (Distance::Gpu, Some((base, own))) => format!("Your GPU ({base} with {own}) was never measured"),
        (Distance::Gpu, None) => format!("The {} was never measured", gpu.name),
        (Distance::Release | Distance::Software, _) => match software.known() {
            Some(stack) => format!("{} was never measured on {generation} GPUs", stack.title()),
            None => "Your software was never measured".to_string(),
        },
        (Distance::Scale, _) => {
            let kind = if is_routed { "mixture of experts" } else { "dense model" };
            let than = match Distance::most_gpus(gpu.generation, is_routed) {
                0 => String::new(),
                most => format!("more than {} ", group_digits(f64::from(most))),
            };
            format!("No run of a {kind} on {than}{generation} GPUs was measured")
        }
    });
    let mut why: Vec<String> = far.collect();
    match estimate.evidence.confidence() {
        Confidence::High | Confidence::Medium if why.is_empty() => return None,
        Confidence::Low if why.is_empty() => why.push(format!(
            "No measured run of this model has a similar layout with this software and precision on the {}",
            gpu.name
        )),
        Confidence::Lowest => why.insert(0, "No measurement of this model is published".to_string()),
        _ => {}
    }
    if estimate.evidence.is_rare {
        why.push(format!("Few measured runs of MoE models use {}", rarely_measured(scenario)));
    }
    let Interval { low, mid, high } = estimate.step_time_s;
    let [low, high] = [low, high].map(|end| signed((end / mid - 1.0) * 100.0, 0));
    let why = why.join(". ");
    let is_wide =
        IntervalTable::embedded().is_wide(estimate.step_time_s, &scenario.inputs(), &estimate.evidence);
    Some(match is_wide {
        true => format!("{why}. The interval is therefore wide: {low} % to {high} %.").into(),
        false => format!("{why}. The 80 % interval is {low} % to {high} %.").into(),
    })
}

/// Returns the settings of an MoE scenario that few MoE runs were measured with.
fn rarely_measured(scenario: &Scenario) -> String {
    let (layout, options) = (&scenario.layout, &scenario.options);
    let uses = [
        (layout.cp() > 1, "CP"),
        (layout.expert_tp() > 1, "expert TP"),
        (options.recompute == Recompute::Full, "full recomputation"),
        (options.fsdp, "FSDP"),
    ];
    let used: Vec<&str> = uses.into_iter().filter(|(is_used, _)| *is_used).map(|(_, what)| what).collect();
    one_of(&used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::EvidenceKind;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    #[test]
    fn a_published_scenario_is_corrected_by_its_own_measurement() {
        let predicted = spec(&[(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04")]).estimate().unwrap();
        assert_eq!(predicted.estimate.evidence.kind, EvidenceKind::Published);
        assert!(predicted.off_published().unwrap().abs() < 0.4);
        assert!(predicted.estimate.memory.fits() && predicted.remedies.is_empty());
        assert_eq!(predicted.warnings, []);
        let days = predicted.time_to_train_days.unwrap();
        assert!(days.low < days.mid && days.mid < days.high);
        assert!((days.mid / predicted.metrics.time_to_train_days.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_published_scenario_has_the_error_of_a_prediction_that_has_not_seen_it() {
        let ids = ["llama3.1-405b/h100/fp8/512@25.04", "nemotron4-340b/h100/fp8/256@25.04"];
        for id in ids {
            let predicted = spec(&[(Field::Recipe, id)]).estimate().unwrap();
            let (seen, held_out) = (predicted.off_published().unwrap(), predicted.held_out_error().unwrap());
            assert!(held_out.abs() < 0.2 && (held_out - seen).abs() > 1e-4, "{id}: {held_out} {seen}");
        }
    }

    #[test]
    fn software_that_nobody_measured_on_a_gpu_is_told_from_the_layout() {
        let on = |stack| {
            let fields = [
                (Field::Model, "qwen3-235b-a22b"),
                (Field::Gpu, "b200"),
                (Field::Gpus, "256"),
                (Field::Dtype, "mxfp8"),
                (Field::Pp, "8"),
                (Field::Ep, "8"),
                (Field::Gbs, "2048"),
                (Field::PipelineSplit, "counted"),
                (Field::Stack, stack),
            ];
            let warnings = spec(&fields).estimate().unwrap().warnings;
            warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let text = on("megatron-bridge-26.06");
        assert!(
            text.contains("on the B200 used Megatron-Bridge 26.06 and later. With Megatron-Bridge 2"),
            "{text}"
        );
        assert!(!on("megatron-bridge-26.02").contains("No published run"));
    }

    #[test]
    fn a_layout_that_the_software_cannot_run_gets_a_warning() {
        let warnings = |more: &[(Field, &str)]| {
            let fields = [
                (Field::Model, "llama3.1-8b"),
                (Field::Gpu, "h100"),
                (Field::Gpus, "64"),
                (Field::Gbs, "128"),
            ];
            let warnings = spec(&[&fields, more].concat()).estimate().unwrap().warnings;
            warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let both = warnings(&[(Field::Fsdp, "on"), (Field::Pp, "2")]);
        assert!(
            both.contains("can't combine FSDP with pipeline or context parallelism. Set --fsdp off, or"),
            "{both}"
        );
        assert!(warnings(&[(Field::Stack, "nanotron"), (Field::Cp, "2")]).contains("Set --cp 1."));
        assert!(
            warnings(&[(Field::Stack, "torchtitan")]).contains("torchtitan always uses FSDP. Set --fsdp on.")
        );
        assert!(!warnings(&[(Field::Pp, "2")]).contains("Set --"));
    }

    #[test]
    fn an_unmeasured_scenario_gets_a_warning() {
        let fields = |model, gpu| {
            spec(&[(Field::Model, model), (Field::Gpu, gpu), (Field::Gpus, "64"), (Field::Gbs, "512")])
        };
        let warnings = |spec: Spec| {
            let warnings = spec.estimate().unwrap().warnings;
            warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let own = "own:layers=7,hidden=4096,ffn=14337,heads=32,kv_heads=8,head_dim=128,vocab=128256,gated=1,\
                   tied_embeddings=0,seq_len=8192";
        assert!(
            warnings(fields(own, "h100"))
                .contains("No measurement of this model is published. The 80 % interval is ")
        );
        let changed = warnings(fields("llama3.1-8b", "h100:hbm_gb=96"));
        assert!(
            changed.contains(
                "Your GPU (h100 with hbm_gb=96) was never measured. The interval is therefore wide: "
            ),
            "{changed}"
        );
        // A GPU that nobody measured has a wider interval than one on which only this layout was not.
        let width = |gpu| {
            let Interval { low, high, .. } =
                fields("llama3.1-8b", gpu).estimate().unwrap().estimate.step_time_s;
            high / low
        };
        assert!(width("h100:hbm_gb=96") > 1.1 * width("h100"));
        let far = warnings(
            fields("llama3.1-8b", "gh200-96gb")
                .with(Field::Stack, "nemo-2")
                .with(Field::Gpus, "65536")
                .with(Field::Gbs, "65536"),
        );
        assert!(far.contains("The GH200 96GB was never measured. No run of a dense model on more than 16,384 Hopper GPUs was measured. The interval"), "{far}");
        let planned = warnings(fields("llama3.1-8b", "vr200"));
        assert!(
            planned.contains(
                "The VR200 was never measured. Megatron-Bridge 26.06 and later was never measured on Rubin GPUs. No run of a dense \
                 model on Rubin GPUs was measured. The interval is therefore wide: "
            ),
            "{planned}"
        );
        let software =
            warnings(fields("llama3.1-8b", "b200").with(Field::Stack, "torchtitan").with(Field::Fsdp, "on"));
        assert!(
            software.contains("torchtitan was never measured on Blackwell GPUs. The interval"),
            "{software}"
        );
        let close = warnings(fields("llama3.1-8b", "h100").with(Field::Stack, "megatron-lm-0.14"));
        assert!(
            close.contains("Megatron-LM 0.14 was never measured on Hopper GPUs. The 80 % interval is "),
            "{close}"
        );
        let stack = fields("llama3.1-8b", "h100").with(Field::Stack, "nemo-2").with(Field::Cp, "2");
        assert!(!warnings(stack).contains("measured"));
        let rare = fields("mixtral-8x7b", "h100").with(Field::Ep, "8").with(Field::Cp, "2");
        let rare = warnings(rare.with(Field::Fsdp, "on"));
        assert!(
            rare.contains("Few measured runs of MoE models use CP or FSDP. The interval is therefore wide: "),
            "{rare}"
        );
        let distant = spec(&[(Field::Model, "llama3.1-70b"), (Field::Gpu, "h100")])
            .with(Field::Gpus, "64")
            .with(Field::Gbs, "512")
            .with(Field::Tp, "8")
            .with(Field::Recompute, "full");
        let distant = warnings(distant);
        assert!(
            distant.contains("similar layout with this software and precision on the H100."),
            "{distant}"
        );
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let problems =
            spec(&[(Field::Model, "llama3.1-8b"), (Field::Tokens, "many")]).estimate().unwrap_err();
        let fields: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [Field::Gpu, Field::Gpus, Field::Gbs, Field::Tokens]);
    }
}
