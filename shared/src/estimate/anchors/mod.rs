//! Published runs that correct the physical model.
//!
//! The model's error on one run is correlated with its error on similar runs: most for the same model on the
//! same GPU with the same precision, software and a similar layout. The correction is the best linear
//! prediction of the error from all measured runs of the model under that covariance (kriging). Runs of other
//! models have no influence.

mod bound;
mod features;

pub(crate) use bound::{Nearness, SimilarRuns};
pub(crate) use features::Coordinate;
pub use features::Features;
use features::{Place, differing_settings};

use super::{Anchor, Closeness, Confidence, Evidence, EvidenceKind, Inputs, Record};
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::precision::Dtype;
use crate::range::ValueRange;
use crate::stack::Stack;
use crate::words::words;
use std::cmp::Ordering;
use std::sync::LazyLock;

/// Anchors that an estimate lists, if fewer were measured on its GPU type.
const LISTED: usize = 5;

/// The parts of the variance of the model's logarithmic error that two runs of one model share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Covariance {
    /// Shared by all runs of the model.
    pub shape: f64,
    /// Added on the same GPU.
    pub gpu: f64,
    /// Added on the same GPU with numbers of the same width.
    pub width: f64,
    /// Added with the same software and numbers of the same width.
    pub stack: f64,
    /// Added for similar layouts; it falls exponentially with their distance.
    pub layout: f64,
    /// Distance at which that part has fallen to 1/e, in doublings of degrees and batch.
    pub reach: f64,
    /// Variance between repeated measurements of one run.
    pub noise: f64,
}

impl Covariance {
    /// Returns the embedded covariance (`kinship.csv`).
    pub fn embedded() -> Covariance {
        static EMBEDDED: LazyLock<Covariance> = LazyLock::new(|| {
            let parts: Vec<CovarianceRow> = embedded!("kinship.csv");
            let value =
                |name: &str| parts.iter().find(|part| part.name == name).map_or(f64::NAN, |part| part.value);
            Covariance {
                shape: value("shape"),
                gpu: value("gpu"),
                width: value("width"),
                stack: value("stack"),
                layout: value("layout"),
                reach: value("reach"),
                noise: value("noise"),
            }
        });
        *EMBEDDED
    }
}

/// A row of `kinship.csv`.
struct CovarianceRow {
    name: String,
    value: f64,
}

impl FromRow for CovarianceRow {
    fn from_row(row: &Row<'_>) -> Result<CovarianceRow, DataError> {
        Ok(CovarianceRow { name: row.string("name")?, value: row.number("value")? })
    }
}

/// The physical model's error on a measured run.
#[derive(Debug, Clone, PartialEq)]
pub struct Residual {
    /// What was measured, for display.
    pub record: Record,
    /// The properties that decide which runs it corrects.
    pub features: Features,
    /// Logarithm of measured over modelled step time.
    pub log_ratio: f64,
    /// How far its prediction without its own mapping was off, as a logarithm without its sign; 0 if that is not known.
    pub surprise: f64,
}

/// A measured run that corrects predictions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WeightedRun {
    /// What was measured, for display.
    pub(crate) record: Record,
    /// The properties that decide which runs it corrects.
    pub(crate) features: Features,
    /// Kriging weight: the sum of weight × covariance with a scenario is the scenario's correction.
    pub(crate) weight: f64,
    /// See [`Residual::surprise`].
    pub(crate) surprise: f64,
}

/// A row of `anchors.csv`.
impl FromRow for WeightedRun {
    fn from_row(row: &Row<'_>) -> Result<WeightedRun, DataError> {
        // A cell without digits is 0.
        let hexadecimal = |column: &str| {
            u32::from_str_radix(&format!("0{}", row.text(column)?), 16)
                .map_err(|_| row.error(words!("{column} is not a hexadecimal number")))
        };
        let mut place = Place::default();
        let mut numbers = row.text("place")?.split(' ');
        for (coordinate, own) in Coordinate::ALL.into_iter().zip(&mut place) {
            let text = numbers.next().unwrap_or_default();
            let number =
                text.parse().map_err(|_| row.error(words!("“{text}” in column place is not a number")))?;
            *own = coordinate.of_number(number);
        }
        Ok(WeightedRun {
            // The place is known when all rows are read.
            record: Record::Embedded(0),
            features: Features {
                shape: hexadecimal("shape")?,
                gpu: hexadecimal("gpu")?,
                dtype: row.value("dtype")?,
                software: row.optional("stack")?,
                place,
                settings: hexadecimal("settings")? as u16,
            },
            weight: row.number("pull")?,
            surprise: f64::from(row.optional::<u32>("surprise")?.unwrap_or(0)) / 100.0,
        })
    }
}

/// The correction of a prediction by measured runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Correction {
    /// Factor on the physical model's step time.
    pub(crate) factor: f64,
    /// How much of it may not apply: see [`Evidence::doubt`].
    pub(crate) doubt: f64,
    /// See [`Evidence::unlike`].
    pub(crate) unlike: f64,
    /// See [`Evidence::measured`].
    pub(crate) measured: Option<ValueRange>,
    /// See [`Evidence::is_rare`].
    pub(crate) is_rare: bool,
    /// How close the nearest run is.
    pub(crate) kind: EvidenceKind,
    /// How far the prediction can be trusted.
    pub(crate) confidence: Confidence,
}

/// Measured runs that correct predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct Anchors {
    covariance: Covariance,
    /// Sorted by the hash of their shape.
    runs: Vec<WeightedRun>,
}

impl Anchors {
    /// Computes the weights of measured runs.
    pub fn new(covariance: Covariance, mut residuals: Vec<Residual>) -> Anchors {
        residuals.sort_by_key(|residual| residual.features.shape);
        let mut weights = Vec::with_capacity(residuals.len());
        for group in residuals.chunk_by(|a, b| a.features.shape == b.features.shape) {
            weights.extend(solve(group, &covariance));
        }
        let runs = residuals.into_iter().zip(weights);
        let runs = runs.map(|(Residual { record, features, surprise, .. }, weight)| WeightedRun {
            record,
            features,
            weight,
            surprise,
        });
        Anchors { covariance, runs: runs.collect() }
    }

    /// Returns the embedded anchors.
    pub fn embedded() -> &'static Anchors {
        static EMBEDDED: LazyLock<Anchors> = LazyLock::new(|| {
            let mut runs: Vec<WeightedRun> = embedded!("anchors.csv");
            for (place, run) in runs.iter_mut().enumerate() {
                run.record = Record::Embedded(place);
            }
            Anchors { covariance: Covariance::embedded(), runs }
        });
        &EMBEDDED
    }

    /// Returns the runs.
    #[cfg(feature = "calibrate")]
    pub(crate) fn runs(&self) -> &[WeightedRun] {
        &self.runs
    }

    /// Iterates over the runs of the same model.
    fn of_shape<'a>(&'a self, features: &Features) -> impl Iterator<Item = &'a WeightedRun> + use<'a> {
        let shape = features.shape;
        let first = self.runs.partition_point(|run| run.features.shape < shape);
        self.runs[first..].iter().take_while(move |run| run.features.shape == shape)
    }

    /// Returns the runs that bound the corrections of all layouts of the model, GPU, precision and software in `inputs`.
    pub(crate) fn similar_runs(&self, inputs: &Inputs<'_>) -> SimilarRuns<'_> {
        SimilarRuns::new(self, inputs)
    }

    /// Returns the measurements that correct a prediction of `modelled_s`, and the correction.
    pub fn evidence(&self, inputs: &Inputs<'_>, modelled_s: f64) -> Evidence {
        let mut found: Vec<FoundRun<'_>> = Vec::new();
        let Compared { log_correction, doubt, unlike, measured, is_rare, kind } =
            self.compare(inputs, |one| found.push(one));
        let correction = libm::exp(log_correction);
        // An engineer looks for runs on the same GPU type first, even where the error of another GPU's run says more, because it
        // was measured with the same software.
        found.sort_by(|a, b| b.is_same_gpu.cmp(&a.is_same_gpu).then_with(|| nearer(a, b)));
        Evidence {
            kind,
            modelled_s,
            correction,
            doubt,
            unlike,
            measured,
            is_rare,
            measured_with: software_there(&found, inputs),
            other_settings: other_settings(&found, inputs),
            other_precision: other_precision(&found, inputs),
            cluster: inputs.options.cluster,
            anchors: nearest(&found),
        }
    }

    /// Returns the software of the nearest run of the model on the GPU type in `inputs`; none if a run there used the same software
    /// as `inputs`, or if there is none.
    pub(crate) fn measured_with(&self, inputs: &Inputs<'_>) -> Option<Stack> {
        let mut found: Vec<FoundRun<'_>> = Vec::new();
        self.compare(inputs, |one| found.push(one));
        software_there(&found, inputs)
    }

    /// Returns the correction of a prediction without the measurements behind it, for a search of many layouts.
    pub(crate) fn correction(&self, inputs: &Inputs<'_>) -> Correction {
        let mut is_measured = false;
        let Compared { log_correction, doubt, unlike, measured, is_rare, kind } =
            self.compare(inputs, |_| is_measured = true);
        Correction {
            factor: libm::exp(log_correction),
            doubt,
            unlike,
            measured,
            is_rare,
            kind,
            confidence: kind.confidence(is_measured),
        }
    }

    /// Compares a scenario with the measured runs of its model. `see` gets each of them.
    fn compare<'a>(&'a self, inputs: &Inputs<'_>, mut see: impl FnMut(FoundRun<'a>)) -> Compared {
        let features = Features::of(inputs);
        let variance = features.covariance(&features, &self.covariance);
        // A GPU or a software that the user changed was never measured.
        let is_own = inputs.gpu.id.contains(':') || inputs.options.software.known().is_none();
        let mut log_correction = 0.0;
        let mut nearest = Closeness::Distant;
        let mut most_alike = 0.0_f64;
        let mut surprise = 0.0;
        let own_rare = if inputs.architecture.moe.is_some() { features.rare() } else { 0 };
        let mut known_rare = 0;
        let mut measured: Option<ValueRange> = None;
        for run in self.of_shape(&features) {
            let common = run.features.covariance(&features, &self.covariance);
            let likeness = common / variance;
            log_correction += common * run.weight;
            let closeness = run.features.closeness(&features, likeness);
            nearest = nearest.min(closeness);
            if closeness == Closeness::Same {
                // The weights solve (covariance + noise) · weights = errors, and the correction is covariance · weights. So it misses
                // the run's own error by noise · weight.
                let own = ValueRange::of(libm::exp(self.covariance.noise * run.weight));
                measured = Some(measured.map_or(own, |range| range.hull(own)));
            }
            if likeness > most_alike {
                (most_alike, surprise) = (likeness, run.surprise);
            }
            if own_rare > 0 && closeness <= Closeness::Similar {
                known_rare |= run.features.rare();
            }
            see(FoundRun { run, likeness, closeness, is_same_gpu: run.features.gpu == features.gpu });
        }
        let is_rare = own_rare & !known_rare > 0;
        let kind = match nearest {
            // A similar run without a rarely measured setting says little about a layout with it.
            _ if is_own || is_rare => EvidenceKind::Modelled,
            Closeness::Same => EvidenceKind::Published,
            Closeness::OtherSettings | Closeness::Similar => EvidenceKind::Interpolated,
            Closeness::OtherSoftware | Closeness::Distant => EvidenceKind::Modelled,
        };
        let unlike = (1.0 - most_alike * most_alike).max(0.0);
        // What contradicts the nearest run may cancel its part of the correction, but not the doubt about it.
        let doubtful = log_correction.abs().max(most_alike * surprise);
        let measured = measured.filter(|_| kind == EvidenceKind::Published);
        Compared { log_correction, doubt: doubtful * unlike.sqrt(), unlike, measured, is_rare, kind }
    }
}

/// A scenario beside the measured runs of its model.
struct Compared {
    /// Logarithm of the factor on the physical model's step time.
    log_correction: f64,
    /// See [`Evidence::doubt`].
    doubt: f64,
    /// See [`Evidence::unlike`].
    unlike: f64,
    /// See [`Evidence::measured`].
    measured: Option<ValueRange>,
    /// See [`Evidence::is_rare`].
    is_rare: bool,
    kind: EvidenceKind,
}

/// A measured run beside a scenario of its model.
struct FoundRun<'a> {
    run: &'a WeightedRun,
    likeness: f64,
    closeness: Closeness,
    is_same_gpu: bool,
}

/// Returns the software of the nearest run on the scenario's GPU type; none if a run there used the scenario's software.
fn software_there(found: &[FoundRun<'_>], inputs: &Inputs<'_>) -> Option<Stack> {
    let software = Features::of(inputs).software;
    let there = || found.iter().filter(|one| one.is_same_gpu);
    let nearest = there().min_by(|a, b| nearer(a, b))?;
    there().all(|one| one.run.features.software != software).then_some(nearest.run.features.software)?
}

/// Returns the names of the settings in which a run of the scenario's layout and software differs, of the run that differs in the
/// fewest: see [`Evidence::other_settings`].
fn other_settings(found: &[FoundRun<'_>], inputs: &Inputs<'_>) -> Vec<&'static str> {
    let runs = found.iter().filter(|one| one.closeness == Closeness::OtherSettings);
    let differing = runs.map(|one| differing_settings(inputs, &one.run.features));
    differing.filter(|names| !names.is_empty()).min_by_key(Vec::len).unwrap_or_default()
}

/// Returns the precision of the nearest run in a similar layout, unless the scenario's was measured in one: see
/// [`Evidence::other_precision`].
fn other_precision(found: &[FoundRun<'_>], inputs: &Inputs<'_>) -> Option<[Dtype; 2]> {
    let similar = || found.iter().filter(|one| one.closeness <= Closeness::Similar);
    if similar().any(|one| one.run.features.dtype.may_be(inputs.dtype)) {
        return None;
    }
    let nearest = similar().min_by(|a, b| nearer(a, b))?;
    Some([nearest.run.features.dtype, inputs.dtype])
}

/// Compares two runs by how much each says about a scenario.
fn nearer(one: &FoundRun<'_>, other: &FoundRun<'_>) -> Ordering {
    other.likeness.total_cmp(&one.likeness).then(one.closeness.cmp(&other.closeness))
}

/// Returns the anchors to list from runs in the order of a list. Measurements of one mapping that are equally close are one
/// anchor. Runs on the scenario's GPU type are all listed, because users look for the one that they know.
fn nearest(found: &[FoundRun<'_>]) -> Vec<Anchor> {
    let mut listed: Vec<(&Features, Anchor)> = Vec::new();
    for FoundRun { run, likeness, closeness, is_same_gpu } in found {
        let WeightedRun { record, features: own, .. } = run;
        let is_full = listed.len() >= LISTED && !is_same_gpu;
        let mut known = listed.iter_mut();
        match known.find(|(features, one)| one.closeness == *closeness && features.is_same_mapping(own)) {
            Some((_, anchor)) => anchor.records.push(record.clone()),
            None if is_full => {}
            None => {
                let records = vec![record.clone()];
                let (layout, likeness, closeness) = (own.layout(), *likeness, *closeness);
                listed.push((own, Anchor { layout, closeness, likeness, records }));
            }
        }
    }
    listed.into_iter().map(|(_, anchor)| anchor).collect()
}

/// Returns the kriging weight of each run of one model: the inverse of their covariance matrix times the
/// residuals, by Cholesky decomposition.
fn solve(group: &[Residual], covariance: &Covariance) -> Vec<f64> {
    let n = group.len();
    let mut lower = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let mut sum = group[i].features.covariance(&group[j].features, covariance);
            if i == j {
                sum += covariance.noise;
            }
            for (left, right) in lower[i][..j].iter().zip(&lower[j][..j]) {
                sum -= left * right;
            }
            // Covariance plus noise is positive definite.
            lower[i][j] = if i == j { sum.max(f64::MIN_POSITIVE).sqrt() } else { sum / lower[j][j] };
        }
    }
    let mut weights: Vec<f64> = group.iter().map(|residual| residual.log_ratio).collect();
    for i in 0..n {
        for j in 0..i {
            weights[i] -= lower[i][j] * weights[j];
        }
        weights[i] /= lower[i][i];
    }
    for i in (0..n).rev() {
        for j in i + 1..n {
            weights[i] -= lower[j][i] * weights[j];
        }
        weights[i] /= lower[i][i];
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimate;
    use crate::field::Field;
    use crate::spec::Spec;

    fn spec(fields: &[(Field, &str)]) -> Spec {
        fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    fn evidence(spec: &Spec) -> Evidence {
        Estimate::of(&spec.scenario().unwrap()).evidence
    }

    /// As Megatron-Bridge 26.02 and 26.04 measured it.
    fn measured() -> Spec {
        spec(&[
            (Field::Model, "qwen3-235b-a22b"),
            (Field::Gpu, "b200"),
            (Field::Gpus, "256"),
            (Field::Dtype, "mxfp8"),
            (Field::Pp, "8"),
            (Field::Ep, "8"),
            (Field::Gbs, "8192"),
            (Field::PipelineSplit, "counted"),
            (Field::Stack, "megatron-bridge-26.02"),
        ])
    }

    #[test]
    fn only_a_run_with_the_same_settings_is_the_same() {
        let kind = |field, text| evidence(&measured().with(field, text)).kind;
        assert_eq!(evidence(&measured()).kind, EvidenceKind::Published);
        assert_eq!(kind(Field::Overlap, "on"), EvidenceKind::Published);
        for (field, other) in [
            (Field::Overlap, "off"),
            (Field::PipelineSplit, "even"),
            (Field::GemmTflops, "900"),
            (Field::ClusterFactor, "1.1"),
            (Field::Recompute, "selective"),
            (Field::Mbs, "2"),
        ] {
            assert_eq!(kind(field, other), EvidenceKind::Interpolated, "{field:?} {other}");
        }
        assert_eq!(kind(Field::Stack, "megatron-bridge-26.06"), EvidenceKind::Modelled);
        // Few mixtures of experts were measured with it, and no similar one of this model.
        assert_eq!(kind(Field::Recompute, "full"), EvidenceKind::Modelled);
    }

    #[test]
    fn switches_of_experts_do_not_count_for_dense_models() {
        // Lists of measured recipes say that the exchange between experts is exposed, even of dense models.
        for recipe in ["llama3.1-405b/gb300/fp8/256@26.06.01", "llama3.1-405b/gb300/nvfp4/256@26.06.01"] {
            assert_eq!(evidence(&spec(&[(Field::Recipe, recipe)])).kind, EvidenceKind::Published, "{recipe}");
        }
    }

    #[test]
    fn the_setting_that_differs_from_the_measured_run_is_named() {
        let summary = |field, text| evidence(&measured().with(field, text)).summary();
        for (field, other, named) in [
            (Field::Overlap, "off", "overlap"),
            (Field::PipelineSplit, "even", "pipeline split"),
            (Field::RecomputeModules, "layernorm", "recomputed modules"),
            (Field::GemmTflops, "900", "measured GEMM TFLOPS"),
            (Field::ClusterFactor, "1.1", "cluster factors"),
        ] {
            let text = summary(field, other);
            assert!(
                text.contains(&format!("with this software, but with other settings: {named}.")),
                "{text}"
            );
        }
        // Own runs that confirm the prediction change no setting.
        let confirmed =
            evidence(&measured().with(Field::ClusterFactor, "1,runs=6,scatter=0.02,scope=5d8c1a2b"));
        assert_eq!(confirmed.kind, EvidenceKind::Published);
        let both = measured().with(Field::ClusterFactor, "1.1").with(Field::PipelineSplit, "even");
        let text = evidence(&both).summary();
        assert!(text.contains("other settings: cluster factors, pipeline split."), "{text}");
        assert!(text.ends_with(" Calibrated with your cluster factor of 1.1."), "{text}");
    }

    #[test]
    fn a_similar_layout_in_another_precision_is_said_to_be_that() {
        let similar = spec(&[
            (Field::Model, "llama3.1-405b"),
            (Field::Gpu, "gb300"),
            (Field::Gpus, "512"),
            (Field::Dtype, "mxfp8"),
            (Field::Tp, "4"),
            (Field::Pp, "8"),
            (Field::Vp, "4"),
            (Field::PipelineSplit, "counted"),
            (Field::Gbs, "2048"),
        ]);
        let summary = |dtype| evidence(&similar.clone().with(Field::Dtype, dtype)).summary();
        let (measured, other) = (summary("fp8-current"), summary("mxfp8"));
        assert!(measured.contains("with this software and precision, in similar layouts."), "{measured}");
        assert!(other.contains("in a similar layout, but in FP8 current instead of MXFP8."), "{other}");
    }

    #[test]
    fn a_split_that_is_written_out_is_the_same_split() {
        let written = measured().with(Field::PipelineSplit, "11,12,12,12,12,12,12,11");
        assert_eq!(evidence(&written).kind, EvidenceKind::Published);
    }

    #[test]
    fn every_run_on_the_same_gpu_type_is_listed_nearest_first() {
        let newer = measured().with(Field::Stack, "megatron-bridge-26.06");
        let listed = evidence(&newer).anchors;
        let first = &listed[0];
        assert_eq!(first.closeness, Closeness::OtherSoftware);
        let releases: Vec<&str> = first.runs().map(|run| &*run.release).collect();
        assert_eq!(releases, ["Megatron-Bridge 26.04.01", "Megatron-Bridge 26.02"]);

        // In a layout far from these, the errors of runs on other GPUs with the same software are more alike.
        let scenario = newer.with(Field::Vp, "4").with(Field::Mbs, "8").scenario().unwrap();
        let distant = Estimate::of(&scenario).evidence.anchors;
        assert!(distant[0].what().contains(" B200") && distant.len() >= LISTED);

        let own = Features::of(&scenario.inputs());
        let on_b200 = Anchors::embedded().of_shape(&own).filter(|run| run.features.gpu == own.gpu);
        let all: usize = on_b200.map(|run| run.record.configuration().runs.len()).sum();
        for anchors in [listed, distant] {
            let on_b200 = anchors.iter().filter(|anchor| anchor.what().contains(" B200"));
            assert_eq!(on_b200.flat_map(Anchor::runs).count(), all);
        }
    }

    #[test]
    fn every_part_of_the_covariance_is_in_its_file() {
        let Covariance { shape, gpu, width, stack, layout, reach, noise } = Covariance::embedded();
        assert!([shape, gpu, width, stack, layout, reach, noise].iter().all(|value| *value > 0.0));
    }
}
