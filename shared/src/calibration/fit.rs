//! The fit: robust least squares on the logarithm of the step time, with priors on the constants.
//!
//! Sums run in the order of the rows, so that every processor gets the same bits.

use crate::catalog::Generation;
use crate::estimate::{Breakdown, Constant, Constants};
use crate::measurements::{MeasuredScenario, Measurement};
use crate::precision::{Dtype, Width};

/// Noise of a measurement, as the standard deviation of the logarithm of its step time.
const NOISE: f64 = 0.05;
/// Rounds after which a fit that starts from the priors has converged.
pub const ROUNDS: usize = 60;
/// Rounds after which a fit that starts from nearby values has converged.
pub(super) const ROUNDS_FROM_NEAR: usize = 12;

/// Residuals count linearly beyond this many standard deviations.
const ROBUST: f64 = 1.5;

/// A row that is fitted.
#[derive(Debug, Clone, Copy)]
pub struct FitPoint<'a> {
    /// The row.
    pub row: &'a Measurement,
    /// Measured step time, s.
    pub step_time_s: f64,
    /// Weight in the fit.
    pub weight: f64,
}

/// Returns the rows that can be fitted, weighted by 1/√n with n rows of the same model and GPU.
pub fn points<'a>(rows: impl Iterator<Item = &'a Measurement>) -> Vec<FitPoint<'a>> {
    let usable: Vec<(&Measurement, f64, String)> = rows
        .filter_map(|row| {
            let scenario = row.scenario.as_ref().ok()?;
            Some((row, row.step_time_s?, format!("{} {}", scenario.shape, scenario.gpu.id)))
        })
        .collect();
    usable
        .iter()
        .map(|(row, step_time_s, group)| {
            let alike = usable.iter().filter(|(.., other)| other == group).count();
            FitPoint { row, step_time_s: *step_time_s, weight: 1.0 / (alike as f64).sqrt() }
        })
        .collect()
}

/// Returns the step time of a row by the physical model, s.
pub fn predict(row: &Measurement, constants: &Constants) -> Option<f64> {
    let scenario = row.scenario.as_ref().ok()?;
    Some(Breakdown::of(&scenario.inputs(), constants).step_time_s())
}

/// Returns the values of `all` that fit `points` best, from `start`.
pub fn fit(all: &[Constant], start: &[f64], points: &[FitPoint<'_>], rounds: usize) -> Vec<f64> {
    let problem = LeastSquares {
        priors: all.iter().map(|constant| LogPrior::new(constant.prior, constant.spread)).collect(),
        weights: points.iter().map(|point| point.weight).collect(),
        noise: NOISE,
        model: StepTimes { all, points },
    };
    problem.fit(start, rounds)
}

/// The step times of the fitted rows.
struct StepTimes<'a> {
    all: &'a [Constant],
    points: &'a [FitPoint<'a>],
}

impl StepTimes<'_> {
    fn log_ratio(point: &FitPoint<'_>, constants: &Constants) -> f64 {
        predict(point.row, constants).map_or(0.0, |time| libm::log(time / point.step_time_s))
    }
}

impl FittedModel for StepTimes<'_> {
    fn log_ratios(&self, values: &[f64]) -> Vec<f64> {
        let constants = Constants::from_values(self.all, values);
        self.points.iter().map(|point| StepTimes::log_ratio(point, &constants)).collect()
    }

    fn log_ratios_moved(&self, values: &[f64], place: usize, before: &[f64]) -> Vec<f64> {
        let constants = Constants::from_values(self.all, values);
        let name = &*self.all[place].name;
        let moved = |(point, before): (&FitPoint<'_>, &f64)| match &point.row.scenario {
            Ok(scenario) if is_used(name, scenario) => StepTimes::log_ratio(point, &constants),
            _ => *before,
        };
        self.points.iter().zip(before).map(moved).collect()
    }
}

/// Returns whether the step time of a scenario depends on the constant with that name. It may include constants that are not
/// used, but never misses one.
fn is_used(constant: &str, scenario: &MeasuredScenario) -> bool {
    let (layout, options, dtype) = (&scenario.layout, &scenario.options, scenario.dtype);
    let generation = scenario.gpu.generation;
    if let Some(id) = constant.strip_prefix("gpu ") {
        return scenario.gpu.id.split(':').next() == Some(id);
    }
    if let Some(id) = constant.strip_prefix("stack ") {
        let is_routed = scenario.architecture.moe.is_some();
        return options.software.base().trained_like(is_routed).id() == id;
    }
    match constant {
        "gemm_ampere" | "attention_ampere" => generation == Generation::Ampere,
        "gemm_hopper" | "attention_hopper" | "attention_hopper_old" => generation == Generation::Hopper,
        "gemm_blackwell" | "attention_blackwell" | "nvlink_blackwell" | "blackwell_before_2509" => {
            generation >= Generation::Blackwell
        }
        "nvlink" => generation < Generation::Blackwell,
        "gemm_fp8_hopper" => dtype.width() == Width::Fp8 && generation < Generation::Blackwell,
        "gemm_fp8_blackwell" => dtype.width() == Width::Fp8 && generation >= Generation::Blackwell,
        "gemm_nvfp4" | "passes_nvfp4" => dtype == Dtype::Nvfp4,
        "passes_fp8" | "passes_mxfp8" => dtype != Dtype::Bf16,
        "experts"
        | "experts_narrow"
        | "experts_before_2606"
        | "unfused_before_2606"
        | "passes_before_2509"
        | "imbalance"
        | "passes_routed"
        | "route_s"
        | "route_host_s"
        | "exchange_nvlink"
        | "exchange_network"
        | "ep_exposed" => scenario.architecture.moe.is_some(),
        "passes_scan" => scenario.architecture.mamba.is_some() || scenario.architecture.linear.is_some(),
        "kernels_eager" | "host_eager" => options.software.properties().eager,
        "host_tp" | "tp_exposed" => layout.tp() > 1,
        "pp_exposed" => layout.pp() > 1,
        "passes_ring" | "cp_exposed" => layout.cp() > 1,
        "fsdp_exposed" => options.fsdp,
        _ => true,
    }
}

/// What is known of a positive value before the fit: its logarithm is normally distributed.
pub(super) struct LogPrior {
    mean: f64,
    spread: f64,
}

impl LogPrior {
    /// Returns the prior around `value`; `spread` is the standard deviation of the logarithm.
    pub(super) fn new(value: f64, spread: f64) -> LogPrior {
        LogPrior { mean: libm::log(value), spread }
    }
}

/// What is fitted: predictions that depend on values.
pub(super) trait FittedModel {
    /// Returns the logarithm of predicted over measured, of each measurement.
    fn log_ratios(&self, values: &[f64]) -> Vec<f64>;

    /// Like [`FittedModel::log_ratios`], of values that differ only at `place` from those that gave `before`.
    fn log_ratios_moved(&self, values: &[f64], _place: usize, _before: &[f64]) -> Vec<f64> {
        self.log_ratios(values)
    }
}

/// A fit of positive values to measurements: robust least squares on logarithms.
pub(super) struct LeastSquares<M> {
    pub(super) priors: Vec<LogPrior>,
    /// The weight of each measurement.
    pub(super) weights: Vec<f64>,
    /// Noise of a measurement, as the standard deviation of its logarithm.
    pub(super) noise: f64,
    pub(super) model: M,
}

impl<M: FittedModel> LeastSquares<M> {
    /// Returns the values that fit best, by Levenberg–Marquardt from `start`.
    pub(super) fn fit(&self, start: &[f64], rounds: usize) -> Vec<f64> {
        let mut x: Vec<f64> = start.iter().map(|value| libm::log(*value)).collect();
        let mut damping = 1e-3;
        let mut cost = self.objective(&x);
        for _ in 0..rounds {
            let (matrix, gradient) = self.normal_equations(&cost, &x);
            let mut better = false;
            for _ in 0..8 {
                let Some(step) = solve(&matrix, &gradient, damping) else {
                    damping *= 10.0;
                    continue;
                };
                let next: Vec<f64> = x.iter().zip(&step).map(|(x, step)| x - step.clamp(-0.7, 0.7)).collect();
                let next_cost = self.objective(&next);
                if next_cost.total < cost.total {
                    better = cost.total - next_cost.total > 1e-7 * cost.total;
                    (x, cost) = (next, next_cost);
                    damping = (damping / 5.0).max(1e-9);
                    break;
                }
                damping *= 5.0;
            }
            if !better {
                break;
            }
        }
        x.iter().map(|x| libm::exp(*x)).collect()
    }

    /// Returns how far each of the best values may be off: the standard deviation of its logarithm.
    pub(super) fn spreads(&self, values: &[f64]) -> Vec<f64> {
        let x: Vec<f64> = values.iter().map(|value| libm::log(*value)).collect();
        let (matrix, _) = self.normal_equations(&self.objective(&x), &x);
        let spread = |(place, prior): (usize, &LogPrior)| {
            let mut unit = vec![0.0; x.len()];
            unit[place] = 1.0;
            solve(&matrix, &unit, 0.0).map_or(prior.spread, |column| column[place].sqrt())
        };
        self.priors.iter().enumerate().map(spread).collect()
    }

    fn objective(&self, x: &[f64]) -> Objective {
        let log_ratios = self.model.log_ratios(&exponentials(x));
        let residuals: Vec<f64> = log_ratios.iter().map(|log_ratio| log_ratio / self.noise).collect();
        let mut total = 0.0;
        for (residual, weight) in residuals.iter().zip(&self.weights) {
            let size = residual.abs();
            let loss = if size < ROBUST { size * size } else { ROBUST * (2.0 * size - ROBUST) };
            total += weight * loss;
        }
        for (prior, x) in self.priors.iter().zip(x) {
            let off = (x - prior.mean) / prior.spread;
            total += off * off;
        }
        Objective { total, log_ratios, residuals }
    }

    fn normal_equations(&self, at: &Objective, x: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let count = x.len();
        const STEP: f64 = 1e-5;
        let mut columns = Vec::with_capacity(count);
        for index in 0..count {
            let mut moved = x.to_vec();
            moved[index] += STEP;
            let shifted = self.model.log_ratios_moved(&exponentials(&moved), index, &at.log_ratios);
            let pairs = shifted.iter().zip(&at.residuals);
            let slopes = pairs.map(|(after, before)| (after / self.noise - before) / STEP);
            columns.push(slopes.collect::<Vec<f64>>());
        }
        let weights: Vec<f64> = at
            .residuals
            .iter()
            .zip(&self.weights)
            .map(|(residual, weight)| weight * (ROBUST / residual.abs().max(1e-12)).min(1.0))
            .collect();
        let mut matrix = vec![vec![0.0; count]; count];
        let mut gradient = vec![0.0; count];
        for a in 0..count {
            for b in a..count {
                let mut sum = 0.0;
                for row in 0..weights.len() {
                    sum += weights[row] * columns[a][row] * columns[b][row];
                }
                matrix[a][b] = sum;
                matrix[b][a] = sum;
            }
            for row in 0..weights.len() {
                gradient[a] += weights[row] * columns[a][row] * at.residuals[row];
            }
            let LogPrior { mean, spread } = self.priors[a];
            matrix[a][a] += 1.0 / (spread * spread);
            gradient[a] += (x[a] - mean) / (spread * spread);
        }
        (matrix, gradient)
    }
}

/// The objective at one set of values.
struct Objective {
    total: f64,
    /// The logarithms of predicted over measured.
    log_ratios: Vec<f64>,
    /// The same in units of the noise.
    residuals: Vec<f64>,
}

fn exponentials(x: &[f64]) -> Vec<f64> {
    x.iter().map(|x| libm::exp(*x)).collect()
}

/// Solves the damped equations by Cholesky decomposition; `None` if they are not positive definite.
fn solve(matrix: &[Vec<f64>], right: &[f64], damping: f64) -> Option<Vec<f64>> {
    let n = right.len();
    let mut lower = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let mut sum = matrix[i][j] * if i == j { 1.0 + damping } else { 1.0 };
            for (left, right) in lower[i][..j].iter().zip(&lower[j][..j]) {
                sum -= left * right;
            }
            if i == j {
                if sum <= 0.0 {
                    return None;
                }
                lower[i][i] = sum.sqrt();
            } else {
                lower[i][j] = sum / lower[j][j];
            }
        }
    }
    let mut y = vec![0.0; n];
    for i in 0..n {
        let mut sum = right[i];
        for j in 0..i {
            sum -= lower[i][j] * y[j];
        }
        y[i] = sum / lower[i][i];
    }
    for i in (0..n).rev() {
        let mut sum = y[i];
        for j in i + 1..n {
            sum -= lower[j][i] * y[j];
        }
        y[i] = sum / lower[i][i];
    }
    Some(y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements::embedded;

    #[test]
    fn no_step_time_depends_on_a_constant_that_it_does_not_use() {
        let all = Constant::all();
        let values: Vec<f64> = all.iter().map(|constant| constant.value).collect();
        let rows = || points(embedded().iter().filter(|row| row.is_for_fitting()));
        let base = Constants::from_values(&all, &values);
        let usual: Vec<Option<f64>> = rows().iter().map(|point| predict(point.row, &base)).collect();
        let mut unused = 0;
        for (place, constant) in all.iter().enumerate() {
            let mut moved = values.clone();
            moved[place] *= 3.0;
            let moved = Constants::from_values(&all, &moved);
            for (point, usual) in rows().iter().zip(&usual) {
                if point.row.scenario.as_ref().is_ok_and(|scenario| !is_used(&constant.name, scenario)) {
                    assert_eq!(predict(point.row, &moved), *usual, "{} of {}", constant.name, point.row.id);
                    unused += 1;
                }
            }
        }
        assert!(unused > rows().len() * all.len() / 2, "{unused}");
    }
}
