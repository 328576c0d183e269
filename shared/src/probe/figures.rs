//! The figures of a probe beside those of a machine in good order, and the factors that follow.

use super::kinds::ProbeFigureKind;
use super::slow_gpus::{SlowGpu, SlowNode, median, slow_gpus};
use super::{CollectiveRate, FreeMemory, Probe, ProbePrecision, ProbeScope};
use crate::catalog::{Catalog, Gpu};
use crate::cluster_factors::{ClusterFactor, ClusterFactors};
use serde::Serialize;

/// How a figure compares with those of a machine in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeVerdict {
    /// Within the range of such a machine, or hardly worse.
    Ok,
    /// Such a machine is faster.
    Slow,
    /// No machine of that GPU type reaches it, or the measurement failed.
    Implausible,
    /// Nobody knows what such a machine reaches.
    NotCompared,
}

/// The factor that follows from a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ProbeFactor {
    /// What it is on.
    pub factor: ClusterFactor,
    /// Its value; 1 changes nothing.
    pub value: f64,
}

/// A figure of a probe beside what a machine in good order reaches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ProbeFigure {
    /// What it is.
    pub figure: ProbeFigureKind,
    /// What was measured.
    pub measured: f64,
    /// What a machine in good order reaches at least, or for times at most; none if that is unknown.
    pub limit: Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// How many times as good as the limit it is: below 1 is slower.
    pub score: Option<f64>,
    /// How it compares.
    pub verdict: ProbeVerdict,
    /// The factor that follows; none if the figure is only compared, or implausible.
    pub factor: Option<ProbeFactor>,
}

/// A score above this is not slow: two measurements of the same machine differ by as much.
const SOUND: f64 = 0.98;

/// The most that a rate can be of the datasheet's. Reductions in the switches of NVLink exceed it a little.
const MOST_OF_DATASHEET: f64 = 1.2;

/// The least microseconds of a launch or a message.
const LEAST_US: f64 = 0.1;

/// Scores below this measured something else. [`ClusterFactors`] read no such factor.
const LEAST_SCORE: f64 = 0.1;

impl ProbeFigure {
    fn new(figure: ProbeFigureKind, measured: f64, gpu: Option<&Gpu>) -> ProbeFigure {
        let limit = gpu.and_then(|gpu| figure.limit(gpu));
        let datasheet = gpu.and_then(|gpu| figure.datasheet(gpu));
        let score = limit.map(|limit| if figure.is_time() { limit / measured } else { measured / limit });
        let is_beyond = match figure.is_time() {
            true => measured < LEAST_US,
            false => datasheet.is_some_and(|most| measured > MOST_OF_DATASHEET * most),
        };
        let verdict = match score {
            None => ProbeVerdict::NotCompared,
            Some(score) if is_beyond || score < LEAST_SCORE => ProbeVerdict::Implausible,
            Some(score) if score < SOUND => ProbeVerdict::Slow,
            Some(_) => ProbeVerdict::Ok,
        };
        // A factor on a time is the inverse of one on a rate.
        let slower = |score: f64| if figure.is_time() { 1.0 / score } else { score };
        let value = match verdict {
            ProbeVerdict::Ok => Some(1.0),
            ProbeVerdict::Slow => score.map(slower).map(three_decimals),
            ProbeVerdict::Implausible | ProbeVerdict::NotCompared => None,
        };
        ProbeFigure {
            figure,
            measured,
            limit: limit.map(three_decimals),
            unit: figure.unit(),
            score: score.filter(|score| score.is_finite()).map(three_decimals),
            verdict,
            factor: figure.factor().zip(value).map(|(factor, value)| ProbeFactor { factor, value }),
        }
    }

    /// Whether a machine in good order is faster.
    pub fn is_slow(&self) -> bool {
        self.verdict == ProbeVerdict::Slow
    }
}

fn three_decimals(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The result of a probe of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeReport {
    /// The GPU type; none if the catalog does not know it, and then nothing is compared.
    pub gpu: Option<String>,
    /// The figures that were measured.
    pub figures: Vec<ProbeFigure>,
    /// Figures that decide a factor and were not measured: estimates assume a machine in good order.
    pub missing: Vec<ProbeFigureKind>,
    /// GPUs that are slower than the others. Estimates assume that a run leaves them out.
    pub slow_gpus: Vec<SlowGpu>,
    /// Whether much less memory is free than the GPUs have: another process may use them.
    pub lacks_memory: bool,
    /// The factors as a value of `--cluster-factor`.
    pub cluster_factor: String,
}

/// The share of a GPU's memory that is free after the start, at least.
const FREE: f64 = 0.9;

impl ProbeReport {
    /// Compares a probe with machines in good order.
    pub fn of(probe: &Probe, catalog: &Catalog) -> ProbeReport {
        let gpu = probe.gpu_type(catalog);
        let mut figures: Vec<ProbeFigure> = ProbeFigureKind::ALL
            .into_iter()
            .filter_map(|kind| Some(ProbeFigure::new(kind, measured(probe, kind, gpu)?, gpu)))
            .collect();
        relate_fp8_to_bf16(&mut figures);
        let mut factors = [1.0; ClusterFactor::ALL.len()];
        for ProbeFactor { factor, value } in figures.iter().filter_map(|figure| figure.factor) {
            factors[factor as usize] = value;
        }
        let is_missing = |kind: &ProbeFigureKind| {
            let is_decisive = kind.factor().is_some() && gpu.is_some_and(|gpu| kind.limit(gpu).is_some());
            let is_joined = kind.crosses_nodes() && gpu.is_some_and(|gpu| is_one_domain(probe, gpu));
            // If FP8 was not measured, estimates scale it as BF16.
            let is_implied = *kind == ProbeFigureKind::Fp8Matmul;
            is_decisive && !is_joined && !is_implied && !figures.iter().any(|figure| figure.figure == *kind)
        };
        let share = |memory: FreeMemory| memory.free_bytes as f64 / (memory.total_bytes as f64).max(1.0);
        ProbeReport {
            gpu: gpu.map(|gpu| gpu.id.clone()),
            missing: ProbeFigureKind::ALL.into_iter().filter(is_missing).collect(),
            slow_gpus: if probe.accelerator == "cpu" { Vec::new() } else { slow_gpus(probe) },
            lacks_memory: probe.memory.is_some_and(|memory| share(memory) < FREE),
            cluster_factor: ClusterFactors::new(factors).to_string(),
            figures,
        }
    }

    /// Returns the slow GPUs by node, the node of the slowest first.
    pub fn slow_nodes(&self) -> Vec<SlowNode<'_>> {
        SlowNode::group(&self.slow_gpus)
    }

    /// Returns whether everything that was compared is as good as in a machine in good order; false if nothing was compared.
    pub fn is_sound(&self) -> bool {
        let is_fine =
            |figure: &ProbeFigure| matches!(figure.verdict, ProbeVerdict::Ok | ProbeVerdict::NotCompared);
        self.slow_gpus.is_empty()
            && !self.lacks_memory
            && self.figures.iter().any(|figure| figure.verdict == ProbeVerdict::Ok)
            && self.figures.iter().all(is_fine)
    }
}

/// Divides the factor on FP8 by that on BF16, because estimates scale FP8 by both.
fn relate_fp8_to_bf16(figures: &mut [ProbeFigure]) {
    let factor_of = |figures: &[ProbeFigure], kind| {
        figures.iter().find(|figure| figure.figure == kind).and_then(|figure| figure.factor)
    };
    let bf16 = factor_of(figures, ProbeFigureKind::Bf16Matmul).map_or(1.0, |factor| factor.value);
    let fp8 = figures.iter_mut().find(|figure| figure.figure == ProbeFigureKind::Fp8Matmul);
    if let Some(factor) = fp8.and_then(|figure| figure.factor.as_mut()) {
        factor.value = three_decimals(factor.value / bf16);
    }
}

/// Whether NVLink joins all nodes of a probe.
fn is_one_domain(probe: &Probe, gpu: &Gpu) -> bool {
    gpu.nvlink_domain > gpu.gpus_per_node
        && gpu.nvlink_domain >= probe.nodes.saturating_mul(probe.ranks_per_node)
}

/// The smallest message whose bandwidth counts, in bytes; latency dominates smaller ones.
const LARGE: u64 = 1_000_000;

/// Returns the measured figure of a kind; none if it was not measured.
fn measured(probe: &Probe, kind: ProbeFigureKind, gpu: Option<&Gpu>) -> Option<f64> {
    let best = |precision: ProbePrecision| {
        let rates = probe.matmuls.iter().filter(|rate| rate.precision == precision);
        rates.map(|rate| rate.tflops).reduce(f64::max)
    };
    // Where NVLink joins several nodes, groups of one GPU per node use it too.
    let joined = gpu.is_some_and(|gpu| is_one_domain(probe, gpu));
    let rates = |kind: &'static str, scope: ProbeScope| {
        let is_wanted = move |rate: &&CollectiveRate| rate.kind == kind && rate.scope == scope;
        probe.collectives.iter().filter(is_wanted)
    };
    match kind {
        kind if kind.crosses_nodes() && joined => None,
        ProbeFigureKind::Bf16Matmul => {
            let ranks: Vec<f64> = probe.ranks.iter().filter_map(|rank| rank.bf16_tflops).collect();
            median(ranks).or_else(|| best(ProbePrecision::Bf16))
        }
        ProbeFigureKind::Fp8Matmul => best(ProbePrecision::Fp8),
        ProbeFigureKind::Attention => {
            let both = probe.attention.iter().filter(|rate| rate.pass != "forward");
            both.map(|rate| rate.tflops).reduce(f64::max)
        }
        ProbeFigureKind::Memory => probe.memory_gbps,
        ProbeFigureKind::Launch => probe.launch_us,
        ProbeFigureKind::Latency => {
            // Larger messages take longer than their way.
            let small = rates("all-reduce", ProbeScope::Network).filter(|rate| rate.bytes < LARGE);
            let smallest = small.min_by_key(|rate| rate.bytes)?;
            // A small all-reduce goes up and down a tree.
            let steps = 2.0 * libm::log2(f64::from(smallest.ranks.max(2))).ceil();
            Some(smallest.time_s * 1e6 / steps)
        }
        kind => {
            let (collective, scope) = kind.collective()?;
            let large = rates(collective, scope).filter(|rate| rate.bytes >= LARGE);
            large.map(|rate| rate.bus_gbps).reduce(f64::max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{MatmulRate, RankRate};
    use proptest::prelude::*;

    fn probe(tflops: f64, memory_gbps: f64, launch_us: f64, network_gbps: f64) -> Probe {
        let collective = |scope, ranks, bytes, time_s, bus_gbps| CollectiveRate {
            kind: "all-reduce".into(),
            scope,
            ranks,
            bytes,
            time_s,
            bus_gbps,
        };
        let rank = |local_rank| RankRate {
            host: "n1".into(),
            local_rank,
            bf16_tflops: Some(tflops),
            memory_gbps: Some(memory_gbps),
            launch_us: Some(launch_us),
        };
        Probe {
            schema_version: 1,
            kind: "trainplan-probe".into(),
            cluster: None,
            gpu: None,
            measured_at: "2026-11-27T14:00:00Z".into(),
            device: "NVIDIA H100 80GB HBM3".into(),
            accelerator: "cuda".into(),
            torch: "2.6.0".into(),
            cuda: Some("12.6".into()),
            nccl: Some("2.21.5".into()),
            backend: Some("nccl".into()),
            nodes: 2,
            ranks_per_node: 8,
            memory: Some(FreeMemory { total_bytes: 85_024_112_640, free_bytes: 84_000_000_000 }),
            matmuls: vec![MatmulRate { precision: ProbePrecision::Bf16, m: 8192, n: 8192, k: 8192, tflops }],
            attention: Vec::new(),
            memory_gbps: Some(memory_gbps),
            launch_us: Some(launch_us),
            collectives: vec![
                collective(ProbeScope::Node, 8, 268_435_456, 1.3e-3, 360.0),
                collective(ProbeScope::Network, 2, 1024, 4e-5, 0.02),
                collective(ProbeScope::Network, 2, 268_435_456, 6e-3, network_gbps),
            ],
            ranks: (0..8).map(rank).collect(),
            skipped: Vec::new(),
            seconds: 120.0,
        }
    }

    fn report(probe: &Probe) -> ProbeReport {
        ProbeReport::of(probe, Catalog::embedded())
    }

    #[test]
    fn a_machine_in_good_order_changes_nothing() {
        let sound = report(&probe(750.0, 2_950.0, 5.0, 46.0));
        assert_eq!((sound.gpu.as_deref(), sound.cluster_factor.as_str()), (Some("h100"), "1"));
        assert!(sound.is_sound(), "{:?}", sound.figures);
    }

    #[test]
    fn a_slower_figure_becomes_the_factor_of_its_constant() {
        // 0.72 of 989 TFLOPS, 0.8 of 3,350 GB/s, 10 µs and 0.72 of 50 GB/s are what a machine in good order reaches.
        let slow = report(&probe(356.04, 1_340.0, 20.0, 18.0));
        assert_eq!(slow.cluster_factor, "1,host=2,network=0.5,matmul=0.5,memory=0.5");
        assert!(!slow.is_sound());
        let factors: ClusterFactors = slow.cluster_factor.parse().unwrap();
        assert_eq!(factors.of(ClusterFactor::Nvlink), 1.0);
    }

    #[test]
    fn the_factor_on_fp8_is_relative_to_that_on_bf16() {
        // 0.64 of 1,979 TFLOPS is what a machine in good order reaches in FP8.
        for (bf16, fp8, factors) in [
            (750.0, 633.28, "1,fp8=0.5"),
            (356.04, 633.28, "1,matmul=0.5"),
            (356.04, 1_300.0, "1,matmul=0.5,fp8=2"),
            (750.0, 1_300.0, "1"),
        ] {
            let mut one = probe(bf16, 2_950.0, 5.0, 46.0);
            let rate = MatmulRate { precision: ProbePrecision::Fp8, tflops: fp8, ..one.matmuls[0] };
            one.matmuls.push(rate);
            assert_eq!(report(&one).cluster_factor, factors, "{bf16} {fp8}");
        }
    }

    #[test]
    fn collectives_without_a_limit_are_shown_and_change_nothing() {
        let mut one = probe(750.0, 2_950.0, 5.0, 46.0);
        let gather =
            CollectiveRate { kind: "all-gather".into(), bus_gbps: 1.0, ..one.collectives[2].clone() };
        let small = CollectiveRate { bytes: 1024, bus_gbps: 9.0, ..gather.clone() };
        one.collectives.extend([gather, small]);
        let report = report(&one);
        let shown =
            report.figures.iter().find(|figure| figure.figure == ProbeFigureKind::NetworkGather).unwrap();
        assert_eq!((shown.measured, shown.limit, shown.factor), (1.0, None, None));
        assert_eq!(shown.verdict, ProbeVerdict::NotCompared);
        assert!(report.is_sound());
    }

    #[test]
    fn what_no_machine_reaches_is_implausible_and_changes_nothing() {
        let absurd = report(&probe(8_974.0, 50_000.0, 0.001, 1.0));
        let of = |kind| absurd.figures.iter().find(|figure| figure.figure == kind).unwrap();
        for kind in [
            ProbeFigureKind::Bf16Matmul,
            ProbeFigureKind::Memory,
            ProbeFigureKind::Launch,
            ProbeFigureKind::Network,
        ] {
            assert_eq!((of(kind).verdict, of(kind).factor), (ProbeVerdict::Implausible, None), "{kind}");
        }
        assert!(absurd.cluster_factor == "1" && !absurd.is_sound());
        // Hardly below the limit.
        let noise = report(&probe(709.0, 2_950.0, 5.0, 46.0));
        assert!(noise.is_sound() && noise.cluster_factor == "1", "{noise:?}");
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let mut one = probe(750.0, 2_950.0, 5.0, 46.0);
        // Only small messages.
        one.collectives.retain(|rate| rate.bytes < 4096);
        one.memory = Some(FreeMemory { total_bytes: 85_000_000_000, free_bytes: 20_000_000_000 });
        let report = report(&one);
        assert_eq!(report.missing, [ProbeFigureKind::Nvlink, ProbeFigureKind::Network]);
        assert!(report.lacks_memory && !report.is_sound());
    }

    #[test]
    fn one_slow_gpu_is_named_and_does_not_change_the_factors() {
        let mut one = probe(750.0, 2_950.0, 5.0, 46.0);
        one.ranks[3].bf16_tflops = Some(600.0);
        let report = report(&one);
        assert_eq!(report.cluster_factor, "1");
        assert_eq!((report.slow_gpus.len(), report.slow_gpus[0].local_rank), (1, 3));
        assert_eq!(report.slow_gpus[0].share, 0.8);
        assert!(!report.is_sound());
    }

    #[test]
    fn a_device_that_the_catalog_does_not_know_is_measured_but_not_compared() {
        let cpu = Probe { device: "cpu".into(), ..probe(0.3, 20.0, 3.0, 1.0) };
        let report = report(&cpu);
        assert_eq!((report.gpu.as_ref(), report.cluster_factor.as_str()), (None, "1"));
        assert!(report.figures.iter().all(|figure| figure.verdict == ProbeVerdict::NotCompared));
        assert!(report.missing.is_empty() && !report.is_sound());
    }

    #[test]
    fn the_type_is_found_by_name_and_memory() {
        let of = |device: &str, gb: u64| {
            let memory = Some(FreeMemory { total_bytes: gb * 1_000_000_000, free_bytes: 1 });
            let probe = Probe { device: device.into(), memory, ..probe(1.0, 1.0, 1.0, 1.0) };
            probe.gpu_type(Catalog::embedded()).map(|gpu| gpu.id.clone())
        };
        assert_eq!(of("NVIDIA A100-SXM4-80GB", 85).as_deref(), Some("a100"));
        assert_eq!(of("NVIDIA A100-SXM4-40GB", 42).as_deref(), Some("a100-40gb"));
        assert_eq!(of("NVIDIA GB200", 192).as_deref(), Some("gb200"));
        let silent =
            Probe { device: "NVIDIA A100-SXM4-80GB".into(), memory: None, ..probe(1.0, 1.0, 1.0, 1.0) };
        assert_eq!(silent.gpu_type(Catalog::embedded()).unwrap().id, "a100");
        assert_eq!(of("NVIDIA H100 PCIe", 80), None);
        assert_eq!(of("AMD Instinct MI300X", 192), None);
    }

    #[test]
    fn one_domain_of_nvlink_over_nodes_has_no_network() {
        let domain = Probe {
            device: "NVIDIA GB200".into(),
            nodes: 2,
            ranks_per_node: 4,
            ..probe(1_700.0, 7_000.0, 5.0, 600.0)
        };
        let report = report(&domain);
        assert!(!report.figures.iter().any(|figure| figure.figure == ProbeFigureKind::Network));
    }

    #[test]
    fn what_is_not_a_probe_is_refused() {
        let text = serde_json::to_string(&probe(750.0, 2_950.0, 5.0, 46.0)).unwrap();
        assert_eq!(Probe::parse(&text).unwrap(), probe(750.0, 2_950.0, 5.0, 46.0));
        let refusal = |text: &str| Probe::parse(text).unwrap_err().to_string();
        assert!(refusal("{}").contains("was not written by trainplan probe"));
        assert!(refusal(&text.replace("trainplan-probe", "x")).contains("kind is \"x\""));
        assert!(
            refusal(&text.replace("\"schema_version\":1", "\"schema_version\":2"))
                .contains("newer Trainplan")
        );
        assert!(
            refusal(&text.replace("\"launch_us\":5.0", "\"launch_us\":-5.0")).contains("launch_us is -5")
        );
    }

    proptest! {
        #[test]
        fn a_changed_file_is_refused_or_has_readable_factors(place in 0_usize..2_000, text in "\\PC{0,3}", cut in 0_usize..8) {
            let written = serde_json::to_string(&probe(750.0, 2_950.0, 5.0, 46.0)).unwrap();
            let place = place % written.len();
            let changed = format!("{}{text}{}", &written[..place], &written[(place + cut).min(written.len())..]);
            if let Ok(read) = Probe::parse(&changed) {
                let report = report(&read);
                prop_assert!(report.cluster_factor.parse::<ClusterFactors>().is_ok(), "{report:?}");
            }
        }
    }
}
