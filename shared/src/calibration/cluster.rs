//! How a cluster differs from the model, from its own measured runs.

use super::ErrorSummary;
use super::fit::{FittedModel, LeastSquares, LogPrior, ROUNDS};
use crate::cluster_factors::{ClusterFactor, ClusterFactors, RunScatter, USUAL_SCATTER as RUNS};
use crate::estimate::{
    Anchors, Breakdown, Constants, EvidenceKind, Inputs, Interval, IntervalTable, OF_80_PERCENT,
};
use crate::options::TrainingOptions;
use crate::range::ValueRange;
use serde::Serialize;

/// A measured run of the cluster.
#[derive(Debug, Clone, Copy)]
pub struct ClusterRun<'a> {
    /// Its name.
    pub name: &'a str,
    /// What ran.
    pub inputs: Inputs<'a>,
    /// Measured seconds per step.
    pub step_time_s: f64,
}

/// The factors of one cluster, fitted to its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClusterFit {
    /// The factors as a value of `--cluster-factor`, with [`ClusterFit::own_runs`].
    pub cluster_factor: String,
    /// Each factor that runs can determine, in the order of [`ClusterFactor::ALL`].
    pub factors: [FittedFactor; FITTED],
    /// The runs with their predictions.
    pub runs: Vec<JudgedRun>,
    /// Median of measured over predicted step times, without factors.
    pub median: f64,
    /// The assumed distance of one run from its prediction with the best factors, as a fraction.
    pub scatter: f64,
    /// Number of runs.
    pub n: usize,
    /// Number of runs that stay far from their predictions and have little influence.
    pub outliers: usize,
    /// Mean absolute error of the predictions without factors, as a fraction.
    pub error_before: f64,
    /// Mean absolute error of the prediction of each run with the factors of all others, as a fraction; none for one run.
    pub error_left_out: Option<f64>,
    /// How the runs change the interval of an estimate with these factors. None if the runs are too few, differ in GPU type,
    /// software or kind of model, or probably have wrong descriptions, or if the factors are 1 and the runs narrow no interval.
    #[serde(skip)]
    pub own_runs: Option<RunScatter>,
}

/// A run of a cluster with its predictions, in seconds per step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedRun {
    /// Its name.
    pub name: String,
    /// Measured.
    pub measured_s: f64,
    /// Predicted without factors.
    pub predicted_s: f64,
    /// Predicted with the factors.
    pub corrected_s: f64,
    /// Whether it stays far from its prediction, so that it had little influence.
    pub is_outlier: bool,
}

/// A factor of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FittedFactor {
    /// What it is on.
    pub factor: ClusterFactor,
    /// The best value, to three digits.
    pub value: f64,
    /// Its 80 % interval; none if the runs are too few to fit it.
    pub interval: Option<ValueRange>,
}

/// Prior standard deviation of the logarithm of the factor on the step time. Machines of one type were measured to differ by
/// up to 30 %, most by much less.
pub const MACHINE_SPREAD: f64 = 0.1;

/// Returns the prior standard deviation of the logarithm of another factor. Libraries, drivers and fabrics differ more in what
/// they add to a kernel, a transfer or a step than chips of one type differ in their clock.
fn spread(factor: ClusterFactor) -> f64 {
    match factor {
        ClusterFactor::Step => MACHINE_SPREAD,
        ClusterFactor::Host | ClusterFactor::Latency => 1.0,
        ClusterFactor::Network => 0.5,
        ClusterFactor::Matmul => 0.15,
        ClusterFactor::Fixed => 1.5,
        ClusterFactor::Memory | ClusterFactor::Nvlink | ClusterFactor::Fp8 => FIXED,
    }
}

/// Standard deviation of normally distributed numbers over the median of their distances from the median.
const OF_MEDIAN_DISTANCE: f64 = 1.4826;
/// Logarithm of measured over predicted, in units of [`RUNS`], beyond which a run is an outlier.
const FAR: f64 = 4.0;
/// The fewest runs to which all factors are fitted: each is left out once, and fewer than three others tell the host from the network by
/// chance.
const FEWEST_FOR_ALL: usize = 4;
/// Like [`RUNS`], with all factors: in layouts that differ, more than the factors differs from the model.
const IN_LAYOUTS: f64 = 0.15;
/// The fewest runs whose scatter says something about the next one.
const LEAST_FOR_SCATTER: usize = 3;

impl ClusterFit {
    /// Fits the factors to runs; `None` without runs. `constants` and `anchors` predict them.
    ///
    /// The priors of all factors are 1, so few runs change them little, and a factor that no run can determine
    /// stays 1.
    pub fn of(runs: &[ClusterRun<'_>], constants: &Constants, anchors: &Anchors) -> Option<ClusterFit> {
        let runs: Vec<Corrected<'_>> = runs
            .iter()
            .map(|run| Corrected { run: *run, correction: anchors.correction(&run.inputs).factor })
            .collect();
        if runs.is_empty() {
            return None;
        }
        // With few runs, or a wrong description of the software, factors can mislead. They count if they predict runs that they
        // have not seen better. All of them may be fitted to fewer runs than factors, because their priors hold those that no run tells.
        let possible: &[FactorChoice] = match runs.len() {
            1 => &[FactorChoice::Step],
            n if n < FEWEST_FOR_ALL => &[FactorChoice::None, FactorChoice::Step],
            _ => &[FactorChoice::None, FactorChoice::Step, FactorChoice::All],
        };
        let tried = possible.iter().map(|choice| {
            let errors = left_out(&runs, constants, *choice);
            (*choice, ErrorSummary::of(errors.iter().copied()).map_or(0.0, |summary| summary.mape), errors)
        });
        let (choice, error_left_out, errors) =
            tried.min_by(|(_, one, _), (_, other, _)| one.total_cmp(other))?;
        let problem = problem(&runs, constants, choice);
        let scatter = problem.noise;
        let values = fit(&problem);
        let spreads = problem.spreads(&values);
        let factors = std::array::from_fn(|place| {
            let factor = ClusterFactor::ALL[place];
            let value = values[factor as usize];
            let reach = libm::exp(OF_80_PERCENT * spreads[factor as usize]);
            let [low, value, high] = [value / reach, value, value * reach].map(three_digits);
            let interval = choice.includes(factor).then_some(ValueRange { low, high });
            FittedFactor { factor, value, interval }
        });
        let fitted = factors_of(&factors);
        let judged = runs.iter().map(|run| {
            let [none, own] = [&ClusterFactors::default(), &fitted].map(|of| run.log_ratio(of, constants));
            JudgedRun {
                name: run.run.name.to_string(),
                measured_s: run.run.step_time_s,
                predicted_s: run.run.step_time_s * libm::exp(none),
                corrected_s: run.run.step_time_s * libm::exp(own),
                is_outlier: own.abs() > FAR * RUNS,
            }
        });
        let judged: Vec<JudgedRun> = judged.collect();
        let mut fit = ClusterFit {
            cluster_factor: String::new(),
            factors,
            median: libm::exp(-median(&log_ratios(&runs, constants))),
            scatter,
            n: runs.len(),
            outliers: judged.iter().filter(|run| run.is_outlier).count(),
            runs: judged,
            error_before: ErrorSummary::of(
                runs.iter().map(|run| error(run, &ClusterFactors::default(), constants)),
            )?
            .mape,
            error_left_out: (runs.len() > 1).then_some(error_left_out),
            own_runs: None,
        };
        fit.own_runs = if fit.is_doubtful() { None } else { run_scatter(&runs, &errors) };
        // Without a change of the step time, only a narrower interval helps.
        let helps =
            |own: &RunScatter| !fitted.is_neutral() || runs.iter().any(|run| narrows(*own, &run.run.inputs));
        fit.own_runs = fit.own_runs.filter(helps);
        fit.cluster_factor = fitted.with_own_runs(fit.own_runs).to_string();
        Some(fit)
    }

    /// Returns the factors.
    pub fn factors(&self) -> ClusterFactors {
        factors_of(&self.factors)
    }

    /// Whether the factor on the step time is the only one that was fitted.
    pub fn is_only_step(&self) -> bool {
        self.factors.iter().all(|fitted| fitted.interval.is_some() == (fitted.factor == ClusterFactor::Step))
    }

    /// Whether the runs are probably described wrongly: half of them are outliers, or the step time is far from the estimate.
    pub fn is_doubtful(&self) -> bool {
        self.outliers * 2 >= self.n || !(0.5..2.0).contains(&self.factors().of(ClusterFactor::Step))
    }
}

/// A run with the correction by published runs, which no factor changes.
#[derive(Clone, Copy)]
struct Corrected<'a> {
    run: ClusterRun<'a>,
    correction: f64,
}

impl Corrected<'_> {
    /// Returns the logarithm of predicted over measured with some factors.
    fn log_ratio(&self, factors: &ClusterFactors, constants: &Constants) -> f64 {
        let options = TrainingOptions { cluster: *factors, ..*self.run.inputs.options };
        let inputs = Inputs { options: &options, ..self.run.inputs };
        let predicted = Breakdown::of(&inputs, constants).step_time_s()
            * self.correction
            * factors.of(ClusterFactor::Step);
        libm::log(predicted / self.run.step_time_s)
    }
}

/// The factors that a fit may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FactorChoice {
    None,
    Step,
    All,
}

impl FactorChoice {
    fn includes(self, factor: ClusterFactor) -> bool {
        match self {
            FactorChoice::None => false,
            FactorChoice::Step => factor == ClusterFactor::Step,
            FactorChoice::All => (factor as usize) < FITTED,
        }
    }
}

/// Returns fitted factors together with those that runs can't determine.
fn factors_of(fitted: &[FittedFactor; FITTED]) -> ClusterFactors {
    let of = |place: usize| fitted.get(place).map_or(1.0, |fitted| fitted.value);
    ClusterFactors::new(std::array::from_fn(of))
}

/// The number of factors that runs can determine; these come first. Step times don't separate memory and NVLink from kernels and
/// network, nor FP8 from BF16, but `trainplan probe` measures them.
const FITTED: usize = ClusterFactor::ALL.len() - 3;

/// Most groups of runs that are left out.
const GROUPS: usize = 20;

/// Returns how well runs of one GPU type, software and kind of model predict the next one, judged by the errors of their
/// predictions with factors from the other runs.
fn run_scatter(runs: &[Corrected<'_>], errors: &[f64]) -> Option<RunScatter> {
    let scope = |Corrected { run: ClusterRun { inputs, .. }, .. }: &Corrected<'_>| {
        RunScatter::scope_of(&inputs.gpu.id, &inputs.options.software, inputs.architecture.moe.is_some())
    };
    let first = scope(runs.first()?);
    if runs.len() < LEAST_FOR_SCATTER || runs.iter().any(|run| scope(run) != first) {
        return None;
    }
    let squares = errors.iter().map(|error| {
        let log = libm::log(1.0 + error);
        log * log
    });
    let scatter = three_digits((squares.sum::<f64>() / errors.len() as f64).sqrt());
    Some(RunScatter { runs: runs.len() as u32, scatter, scope: first })
}

/// Returns whether own runs, with factors of 1, make the interval of an estimate narrower, because nobody else measured the GPU type or
/// the software.
fn narrows(own: RunScatter, inputs: &Inputs<'_>) -> bool {
    /// Less by more than rounding.
    const NARROWER: f64 = 1.0 - 1e-9;
    let width = |own: Option<RunScatter>| {
        let options =
            TrainingOptions { cluster: ClusterFactors::default().with_own_runs(own), ..*inputs.options };
        let is_routed = inputs.architecture.moe.is_some();
        let layouts =
            IntervalTable::embedded().of_layouts(inputs.gpu, inputs.layout.gpus(), is_routed, &options);
        let Interval { low, high, .. } = layouts.around(1.0, EvidenceKind::Modelled, 1.0, 0.0, false);
        high / low
    };
    width(Some(own)) < width(None) * NARROWER
}

/// Returns the error of each run's prediction with factors from other runs, as a fraction: from all others, or, with many runs,
/// from those of other groups.
fn left_out(runs: &[Corrected<'_>], constants: &Constants, choice: FactorChoice) -> Vec<f64> {
    let groups = runs.len().min(GROUPS);
    let errors = (0..groups).flat_map(|group| {
        let places = || runs.iter().enumerate();
        let others: Vec<Corrected<'_>> =
            places().filter(|(place, _)| place % groups != group).map(|(_, run)| *run).collect();
        let factors = of_values(&fit(&problem(&others, constants, choice)));
        let own = places().filter(move |(place, _)| place % groups == group);
        own.map(move |(_, run)| error(run, &factors, constants))
    });
    errors.collect()
}

/// Returns the error of a run's prediction with some factors, as a fraction.
fn error(run: &Corrected<'_>, factors: &ClusterFactors, constants: &Constants) -> f64 {
    libm::exp(run.log_ratio(factors, constants)) - 1.0
}

/// Spread of a factor that a fit may not change.
const FIXED: f64 = 1e-6;

/// Returns the fit of the factors to runs.
fn problem<'a>(
    runs: &'a [Corrected<'a>],
    constants: &'a Constants,
    choice: FactorChoice,
) -> LeastSquares<ClusterRuns<'a>> {
    // If the runs differ from 1 by more than machines usually do, the prior of the step time is widened.
    let logs = log_ratios(runs, constants);
    let widened = if logs.is_empty() { 0.0 } else { median(&logs).abs() / 2.0 };
    let prior = |factor: ClusterFactor| match choice.includes(factor) {
        true if factor == ClusterFactor::Step => spread(factor).max(widened),
        true => spread(factor),
        false => FIXED,
    };
    LeastSquares {
        priors: ClusterFactor::ALL.map(|factor| LogPrior::new(1.0, prior(factor))).into(),
        weights: vec![1.0; runs.len()],
        noise: match choice {
            // So few may agree by chance with factors that are wrong for other layouts.
            FactorChoice::All if runs.len() <= FITTED => IN_LAYOUTS,
            FactorChoice::All => scatter(&logs, IN_LAYOUTS),
            FactorChoice::None | FactorChoice::Step => scatter(&logs, RUNS),
        },
        model: ClusterRuns { runs, constants },
    }
}

/// Returns the logarithms of predicted over measured, without factors.
fn log_ratios(runs: &[Corrected<'_>], constants: &Constants) -> Vec<f64> {
    runs.iter().map(|run| run.log_ratio(&ClusterFactors::default(), constants)).collect()
}

/// Returns the standard deviation of runs around their best factors, from the logarithms of predicted over measured: `usual`, or
/// less if the runs agree better.
///
/// `usual` counts as one run beside the scatter of the others: the scale of the posterior in Gelman et al., Bayesian Data Analysis,
/// 3rd edition, section 3.3. The scatter is measured by the median distance from the median, so that an outlier
/// hardly changes it.
fn scatter(logs: &[f64], usual: f64) -> f64 {
    if logs.len() < 2 {
        return usual;
    }
    let middle = median(logs);
    let distances: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
    let own = OF_MEDIAN_DISTANCE * median(&distances);
    let others = (logs.len() - 1) as f64;
    ((usual * usual + others * own * own) / (1.0 + others)).sqrt().min(usual)
}

/// The step times of a cluster's runs.
struct ClusterRuns<'a> {
    runs: &'a [Corrected<'a>],
    constants: &'a Constants,
}

impl FittedModel for ClusterRuns<'_> {
    fn log_ratios(&self, values: &[f64]) -> Vec<f64> {
        let factors = of_values(values);
        self.runs.iter().map(|run| run.log_ratio(&factors, self.constants)).collect()
    }
}

fn fit(problem: &LeastSquares<ClusterRuns<'_>>) -> Vec<f64> {
    problem.fit(&[1.0; ClusterFactor::ALL.len()], ROUNDS)
}

/// Returns the factors with fitted values.
fn of_values(values: &[f64]) -> ClusterFactors {
    ClusterFactors::new(ClusterFactor::ALL.map(|factor| values[factor as usize]))
}

fn three_digits(value: f64) -> f64 {
    format!("{value:.3}").parse().unwrap_or(value)
}

/// Returns the median.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    super::quantile(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements::{self, Measurement};
    use crate::options::TrainingOptions;

    /// Runs of the embedded measurements in many layouts, timed as predicted with some factors.
    fn fitted(factors: &str, count: usize) -> ClusterFit {
        fitted_to(factors, count, |_| true)
    }

    fn fitted_to(factors: &str, count: usize, is_chosen: impl Fn(&Measurement) -> bool) -> ClusterFit {
        let cluster: ClusterFactors = factors.parse().unwrap();
        let is_own = |row: &&Measurement| row.source == "nanotron-ultrascale" && is_chosen(row);
        let rows: Vec<&Measurement> = measurements::embedded().iter().filter(is_own).collect();
        let rows = rows.iter().step_by(37).filter_map(|row| row.scenario.as_ref().ok()).take(count);
        let constants = Constants::embedded();
        let runs: Vec<ClusterRun<'_>> = rows
            .map(|scenario| {
                let options = TrainingOptions { cluster, ..scenario.options };
                let inputs = Inputs { options: &options, ..scenario.inputs() };
                let correction = Anchors::embedded().correction(&inputs).factor;
                let step_time_s = Breakdown::of(&inputs, constants).step_time_s()
                    * correction
                    * cluster.of(ClusterFactor::Step);
                ClusterRun { name: "run", inputs: scenario.inputs(), step_time_s }
            })
            .collect();
        ClusterFit::of(&runs, constants, Anchors::embedded()).unwrap()
    }

    #[test]
    fn each_factor_lies_in_its_interval() {
        let text = "1.1,host=1.8,network=0.7,matmul=0.9";
        let (fit, truth) = (fitted(text, 20), text.parse::<ClusterFactors>().unwrap());
        assert!(fit.error_left_out.unwrap() < 0.02 && fit.error_before > 0.1, "{fit:?}");
        assert_eq!((fit.n, fit.outliers, fit.is_doubtful()), (20, 0, false));
        for FittedFactor { factor, interval, .. } in fit.factors {
            let ValueRange { low, high } = interval.unwrap();
            assert!(low < truth.of(factor) && truth.of(factor) < high, "{factor}: {fit:?}");
        }
        // Most of these runs wait for the host, so they tell its factor from the others.
        assert!(fit.factors[ClusterFactor::Host as usize].interval.unwrap().low > 1.2, "{fit:?}");
    }

    #[test]
    fn one_run_changes_only_the_step_time_and_more_runs_tell_more() {
        let (one, three, twenty) = (fitted("1.2", 1), fitted("1.2", 3), fitted("1.2", 20));
        assert!((1.05..1.15).contains(&one.factors().of(ClusterFactor::Step)), "{one:?}");
        assert_eq!(
            one.factors.map(|factor| factor.interval.is_some()),
            [true, false, false, false, false, false]
        );
        let left_out = |fit: &ClusterFit| fit.error_left_out.unwrap();
        assert!(left_out(&three) < one.error_before / 2.0 && left_out(&twenty) < left_out(&three) / 2.0);
        assert_eq!(one.error_left_out, None);
    }

    #[test]
    fn runs_that_agree_draw_the_factor_from_1_to_what_they_measured() {
        // As far apart as repeated runs are.
        let alike = [0.158, 0.162, 0.163, 0.164, 0.166, 0.172].map(|log: f64| -log);
        let apart = [0.0, 0.1, 0.15, 0.2, 0.3, 0.4].map(|log: f64| -log);
        assert!((0.03..0.05).contains(&scatter(&alike, RUNS)), "{}", scatter(&alike, RUNS));
        assert_eq!([scatter(&apart, RUNS), scatter(&alike[..1], RUNS), scatter(&[], RUNS)], [RUNS; 3]);
        // One outlier hardly makes them less alike.
        assert!(scatter(&[&alike[..], &[0.5][..]].concat(), RUNS) < 0.05);

        let [two, six] = [fitted("1.18", 2), fitted("1.18", 6)];
        let step = |fit: &ClusterFit| fit.factors[0];
        assert!(step(&two).value < step(&six).value && step(&six).value > 1.17, "{six:?}");
        let ValueRange { low, high } = step(&six).interval.unwrap();
        assert!(low < 1.18 && 1.18 < high && high / low < 1.06, "{six:?}");
        assert!(six.is_only_step() && (six.median - 1.18).abs() < 1e-9 && six.scatter < 0.05, "{six:?}");
    }

    #[test]
    fn runs_tell_how_exact_estimates_with_their_factors_are() {
        let of_one_software =
            |factors: &str, count: usize| fitted_to(factors, count, |row| row.release == "2025-01");
        let [six, twelve] = [6, 12].map(|count| of_one_software("1.18", count));
        let [of_six, of_twelve] = [&six, &twelve].map(|fit| fit.own_runs.unwrap());
        assert_eq!((of_six.runs, of_twelve.runs, of_six.scope), (6, 12, of_twelve.scope));
        assert!(of_six.scatter < 0.05 && of_twelve.spread() < of_six.spread(), "{of_six:?} {of_twelve:?}");
        let text: ClusterFactors = six.cluster_factor.parse().unwrap();
        assert_eq!(text, six.factors().with_own_runs(Some(of_six)));
        // Too few, or probably described wrongly.
        assert_eq!([of_one_software("1.18", 2).own_runs, of_one_software("10", 5).own_runs], [None; 2]);
        // Of two versions of the software.
        assert_eq!(fitted("1.18", 20).own_runs, None);
    }

    #[test]
    fn factors_of_1_have_own_runs_only_if_these_narrow_the_interval() {
        let own = RunScatter { runs: 6, scatter: 0.01, scope: 0 };
        let is_narrower = |software: &str| {
            let mut rows = measurements::embedded().iter().filter(|row| row.source == "nanotron-ultrascale");
            let scenario = rows.find_map(|row| row.scenario.as_ref().ok()).unwrap();
            let options = TrainingOptions { software: software.parse().unwrap(), ..scenario.options };
            let inputs = Inputs { options: &options, ..scenario.inputs() };
            let is_routed = inputs.architecture.moe.is_some();
            let scope = RunScatter::scope_of(&inputs.gpu.id, &options.software, is_routed);
            narrows(RunScatter { scope, ..own }, &inputs)
        };
        assert_eq!([is_narrower("nanotron:overlaps_tp=yes"), is_narrower("nanotron")], [true, false]);
        // Runs of measured software, as fast as predicted.
        let confirmed = fitted_to("1", 6, |row| row.release == "2025-01");
        assert_eq!((confirmed.own_runs, &*confirmed.cluster_factor), (None, "1"));
    }

    #[test]
    fn no_runs_make_no_factors_and_absurd_ones_are_doubtful() {
        assert!(ClusterFit::of(&[], Constants::embedded(), Anchors::embedded()).is_none());
        assert!(fitted("10", 5).is_doubtful());
    }
}
