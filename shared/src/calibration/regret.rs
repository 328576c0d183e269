//! How well held-out predictions choose among measured layouts: what trusting a search costs.

use super::{ErrorSummary, Grouping, HeldOutRow, is_nvidia, is_routed, table, thousandth};
use crate::measurements::MeasuredScenario;
use std::collections::BTreeMap;

/// Measured runs of one model on the same GPU count, with the same precision and software, in different
/// layouts.
struct Rivals<'a> {
    rows: Vec<&'a HeldOutRow<'a>>,
}

/// How predictions choose among rivals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regret {
    /// Groups of rivals.
    pub groups: usize,
    /// Groups whose fastest layout is predicted to be the fastest.
    pub best_first: usize,
    /// Pairs whose measured step times differ by more than 2 %.
    pub pairs: usize,
    /// Pairs whose faster layout is predicted to be the faster one.
    pub ordered: usize,
    /// Mean of the measured step time of the layout that is predicted to be fastest, over the fastest one's, minus 1.
    pub mean: f64,
    /// The same that nine groups of ten don't exceed.
    pub p90: f64,
    /// The largest.
    pub largest: f64,
    /// Mean of the measured step time of all layouts over the fastest one's, minus 1: what choosing at random costs.
    pub random: f64,
}

const HEAD: &str = "\
# What trusting a search costs: by how much the layout that is predicted to be the fastest is slower than the fastest of those
# that were measured. Of NVIDIA's software, with rows held out by mapping, as in docs/accuracy.md. `groups` of runs that differ
# only in their layouts; `mean` of the groups, and `p90`, which nine of ten don't exceed. Written by `trainplan calibrate`.
";

/// Returns `regret.csv`.
pub(super) fn file(judged: &[Vec<HeldOutRow<'_>>; 3]) -> String {
    let rows = [("dense", false), ("moe", true)].into_iter().filter_map(|(models, routed)| {
        let counts = |one: &&HeldOutRow<'_>| is_nvidia(one.row) && is_routed(one.row) == routed;
        let regret = Regret::of(judged[Grouping::Mapping as usize].iter().filter(counts))?;
        let Regret { groups, mean, p90, .. } = regret;
        Some([models.to_string(), groups.to_string(), thousandth(mean), thousandth(p90)])
    });
    format!("{HEAD}{}", table(["models", "groups", "mean", "p90"], rows))
}

/// Relative difference of two measured step times that is more than noise.
const NOISE: f64 = 0.02;

impl Regret {
    /// Returns how held-out predictions choose among their rows; none without rivals.
    pub fn of<'a>(judged: impl IntoIterator<Item = &'a HeldOutRow<'a>>) -> Option<Regret> {
        let groups = rivals(judged);
        let (mut best_first, mut pairs, mut ordered) = (0, 0, 0);
        let (mut regrets, mut random) = (Vec::new(), Vec::new());
        for Rivals { rows } in &groups {
            let least = |of: fn(&HeldOutRow<'_>) -> f64| {
                rows.iter().copied().min_by(|one, other| of(one).total_cmp(&of(other)))
            };
            let (Some(fastest), Some(chosen)) = (least(measured_s), least(predicted_s)) else { continue };
            regrets.push(measured_s(chosen) / measured_s(fastest) - 1.0);
            best_first += usize::from(chosen.row.id == fastest.row.id);
            let mean = rows.iter().map(|row| measured_s(row)).sum::<f64>() / rows.len() as f64;
            random.push(mean / measured_s(fastest) - 1.0);
            for (place, one) in rows.iter().enumerate() {
                for other in &rows[place + 1..] {
                    let ratio = measured_s(one) / measured_s(other);
                    if (ratio - 1.0).abs() > NOISE {
                        pairs += 1;
                        ordered += usize::from((ratio > 1.0) == (predicted_s(one) > predicted_s(other)));
                    }
                }
            }
        }
        let largest = regrets.iter().fold(0.0_f64, |largest, regret| largest.max(*regret));
        let summary = ErrorSummary::of(regrets)?;
        let random = ErrorSummary::of(random)?.mape;
        let groups = groups.len();
        Some(Regret {
            groups,
            best_first,
            pairs,
            ordered,
            mean: summary.mape,
            p90: summary.p90,
            largest,
            random,
        })
    }
}

/// Returns the measured seconds per sequence of the global batch, by which a search ranks layouts.
fn measured_s(row: &HeldOutRow<'_>) -> f64 {
    row.step_time_s / row.row.scenario.as_ref().map_or(1.0, |scenario| f64::from(scenario.batch.gbs()))
}

/// Returns the predicted seconds per sequence.
fn predicted_s(row: &HeldOutRow<'_>) -> f64 {
    row.corrected_s / row.step_time_s * measured_s(row)
}

/// Returns the groups of at least two layouts.
fn rivals<'a>(judged: impl IntoIterator<Item = &'a HeldOutRow<'a>>) -> Vec<Rivals<'a>> {
    let mut groups: BTreeMap<String, BTreeMap<&'a str, &'a HeldOutRow<'a>>> = BTreeMap::new();
    for one in judged {
        let Ok(scenario) = &one.row.scenario else { continue };
        let MeasuredScenario { shape, architecture, gpu, layout, batch, options, .. } = &**scenario;
        let (software, drops) = (options.software, options.token_drop);
        let what = format!("{shape} {} {} {}", architecture.layers, one.row.precision, batch.seq_len());
        let place = format!("{} {} {} {software} {drops}", gpu.id, gpu.nic_gbit, layout.gpus());
        groups.entry(format!("{what} {place}")).or_default().insert(&scenario.mapping, one);
    }
    let groups = groups.into_values().filter(|layouts| layouts.len() > 1);
    groups.map(|layouts| Rivals { rows: layouts.into_values().collect() }).collect()
}
