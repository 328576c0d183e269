//! Prints a digest of the estimates of each hundred of 10,000 reproducible random scenarios, and one of 1,000 compared runs.
//! The lines must be the same on every platform, so that browser and terminal show the same figures. Its speed goes to stderr.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod host;

use std::hint::black_box;
use trainplan_shared::batch::Batch;
use trainplan_shared::catalog::{Catalog, Gpu, Model};
use trainplan_shared::cluster_factors::{ClusterFactor, ClusterFactors};
use trainplan_shared::cost::{CheckpointStorage, Price, RunCost};
use trainplan_shared::estimate::{Breakdown, Constants, Estimate, Inputs, Interval, peak_bytes};
use trainplan_shared::field::Field;
use trainplan_shared::goodput::{Disruptions, RunLoad, RunTime, checkpoint_bytes};
use trainplan_shared::history::{Thresholds, TimeLine, TimeLineKey, TimeLinePoint};
use trainplan_shared::layout::{Degrees, Layout};
use trainplan_shared::options::{Modules, Recompute, TrainingOptions};
use trainplan_shared::precision::Dtype;
use trainplan_shared::question::Survey;
use trainplan_shared::range::ValueRange;
use trainplan_shared::spec::Spec;
use trainplan_shared::stack::{Stack, Switches};
use trainplan_shared::statistics::{MeanDifference, Sample};

const DIGESTS: usize = 100;
const SCENARIOS_PER_DIGEST: usize = 100;

fn main() {
    let mut random = Random(2026);
    let mut scenarios = Vec::new();
    while scenarios.len() < DIGESTS * SCENARIOS_PER_DIGEST {
        scenarios.extend(Drawn::draw(&mut random));
    }
    for (number, scenarios) in scenarios.chunks(SCENARIOS_PER_DIGEST).enumerate() {
        let mut digest = Digest::default();
        for scenario in scenarios {
            digest.estimate(&scenario.inputs());
        }
        let first = number * SCENARIOS_PER_DIGEST;
        host::say(&format!("{first} to {}: {:016x}", first + SCENARIOS_PER_DIGEST - 1, digest.0));
    }
    host::say(&format!("runs against each other: {:016x}", runs_against_each_other(&mut random).0));
    for model in ["llama3.1-70b", "qwen3-30b-a3b", "nemotron-h-8b"] {
        host::say(&format!("plans of {model}: {:016x}", plans(model).0));
    }
    report_speed(&scenarios);
}

/// The statistics behind comparisons and histories.
fn runs_against_each_other(random: &mut Random) -> Digest {
    let mut digest = Digest::default();
    for _ in 0..1000 {
        let [one, other] = [random.step_times(), random.step_times()];
        let [from, to] = [Sample::of(&one).unwrap(), Sample::of(&other).unwrap()];
        for sample in [from, to] {
            digest.numbers([sample.mean, sample.median, sample.p95]);
            digest.numbers([sample.n_effective, sample.low, sample.high].into_iter().flatten());
        }
        let change = MeanDifference::between(&from, &to).unwrap();
        digest.numbers([Some(change.percent), change.low, change.high, change.p].into_iter().flatten());
        let points = one.iter().chain(&other).enumerate().map(|(place, time)| TimeLinePoint {
            id: place.to_string(),
            at: format!("{place:04}"),
            step_time_s: Some(*time),
            comparable: true,
            ..TimeLinePoint::default()
        });
        for found in
            TimeLine::of(TimeLineKey::default(), points.collect(), &Thresholds::default()).change_points
        {
            digest.numbers([found.index as f64, found.before_s, found.after_s, found.p]);
        }
    }
    digest
}

/// The search for a plan, with its days, cost and energy.
fn plans(model: &str) -> Digest {
    let mut digest = Digest::default();
    let question = Spec::default()
        .with(Field::Model, model)
        .with(Field::Tokens, "10T")
        .with(Field::GpuTypes, "h100,gb200")
        .with(Field::Deadline, "60d")
        .question()
        .unwrap();
    for offer in &question.offers {
        let answer = Survey::new(&question, offer).finish();
        for run in answer.points.iter().chain(&answer.layouts) {
            let Interval { low, mid, high } = run.layout.step_time_s;
            digest.numbers([f64::from(run.gpus), low, mid, high, run.layout.memory.free_bytes]);
            digest.numbers([run.days, run.mfu, run.time.days().low, run.time.days().high]);
            digest.numbers([run.energy.mwh.low, run.energy.mwh.high, run.expected_cost.unwrap_or_default()]);
        }
        let discarded = answer.counts.discarded.iter().map(|count| *count as f64);
        digest.numbers(discarded.chain([answer.counts.fitting as f64, answer.counts.slower as f64]));
    }
    digest
}

/// What a search asks of each layout that it looks at: step time and memory.
fn report_speed(scenarios: &[Drawn]) {
    const ROUNDS: usize = 20;
    let start = host::milliseconds();
    for _ in 0..ROUNDS {
        for scenario in scenarios {
            let inputs = scenario.inputs();
            black_box(Breakdown::of(&inputs, Constants::embedded()).step_time_s() + peak_bytes(&inputs));
        }
    }
    let seconds = (host::milliseconds() - start) / 1000.0;
    let rate = (ROUNDS * scenarios.len()) as f64 / seconds / 1e6;
    host::report(&format!("{} makes {rate:.2} million estimates per second on one core", host::NAME));
}

/// A scenario with all that its estimate borrows.
struct Drawn {
    model: &'static Model,
    gpu: &'static Gpu,
    dtype: Dtype,
    layout: Layout,
    batch: Batch,
    options: TrainingOptions,
}

impl Drawn {
    /// Draws one; none where what was drawn does not divide.
    fn draw(random: &mut Random) -> Option<Drawn> {
        let catalog = Catalog::embedded();
        let (model, gpu) = (random.of(catalog.models()), random.of(catalog.gpus()));
        let dtype = *random.of(&Dtype::ALL);
        gpu.datasheet_tflops(dtype)?;
        let is_routed = model.architecture.moe.is_some();
        let (tp, pp, cp) = (random.power(3), random.power(4), random.power(2));
        let degrees = Degrees {
            gpus: tp * pp * cp * random.power(9),
            tp,
            pp,
            cp,
            ep: if is_routed { random.power(6) } else { 1 },
            expert_tp: if is_routed { random.power(1) } else { 1 },
            vp: if pp > 1 { random.power(2) } else { 1 },
            ..Degrees::default()
        };
        let layout = Layout::new(&degrees, &model.architecture).ok()?;
        let mbs = random.power(2);
        let gbs = mbs * layout.dp() * (1 + random.below(64));
        let batch = Batch::new(1024 * random.power(7), mbs, gbs, &layout).ok()?;
        let options = TrainingOptions {
            recompute: *random.of(&Recompute::ALL),
            modules: Modules {
                mlp: random.seldom(),
                mla_up_proj: random.seldom(),
                layernorm: random.seldom(),
                moe_act: random.seldom(),
                shared_experts: random.seldom(),
                moe: random.seldom(),
            },
            fsdp: random.seldom(),
            reshard: !random.seldom(),
            offload_layers: if random.seldom() { random.below(model.architecture.layers) } else { 0 },
            zero_group: random.seldom().then(|| random.power(6)),
            sequence_parallel: random.seldom().then(|| random.seldom()),
            switches: Switches {
                graphs: random.seldom().then(|| random.seldom()),
                hidden_experts: random.seldom().then(|| random.seldom()),
                sent_once: random.seldom().then(|| random.seldom()),
                hidden_tp: random.seldom().then(|| random.seldom()),
            },
            token_drop: random.seldom(),
            overlap: !random.seldom(),
            software: (*random.of(&Stack::ALL)).into(),
            gemm_tflops: random.seldom().then(|| f64::from(300 + random.below(1000))),
            cluster: ClusterFactors::new(ClusterFactor::ALL.map(|_| random.factor())),
        };
        Some(Drawn { model, gpu, dtype, layout, batch, options })
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            architecture: &self.model.architecture,
            gpu: self.gpu,
            dtype: self.dtype,
            layout: &self.layout,
            batch: &self.batch,
            options: &self.options,
        }
    }
}

/// Knuth's linear congruential generator, of whose state the upper half is used.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32 % end
    }

    fn power(&mut self, most: u32) -> u32 {
        1 << self.below(most + 1)
    }

    fn seldom(&mut self) -> bool {
        self.below(4) == 0
    }

    /// A factor of a cluster, most often 1.
    fn factor(&mut self) -> f64 {
        if self.seldom() { 0.8 + f64::from(self.below(100)) / 200.0 } else { 1.0 }
    }

    /// Up to a hundred step times around one that is drawn too.
    fn step_times(&mut self) -> Vec<f64> {
        let (steps, mean) = (1 + self.below(100), 1.0 + f64::from(self.below(8)) / 8.0);
        (0..steps).map(|_| mean * (1.0 + f64::from(self.below(1000)) / 1e4)).collect()
    }

    fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u32) as usize]
    }
}

/// FNV-1a over the bits of numbers.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Everything that is predicted.
    fn estimate(&mut self, inputs: &Inputs<'_>) {
        let Estimate { step_time_s, breakdown, memory, evidence } = Estimate::from_embedded(inputs);
        self.numbers([step_time_s.low, step_time_s.mid, step_time_s.high]);
        self.numbers(breakdown.parts().map(|(_, seconds)| seconds));
        for stage in &memory.stages {
            self.numbers([stage.weights, stage.gradients, stage.optimizer]);
            self.numbers([stage.activations, stage.logits, stage.buffers]);
        }
        self.numbers([memory.peak_stage as f64, memory.capacity_bytes, memory.reserved_bytes]);
        self.numbers([peak_bytes(inputs), evidence.modelled_s, evidence.correction]);
        self.numbers(evidence.anchors.iter().map(|anchor| anchor.likeness));
        self.whole_run(inputs, step_time_s);
    }

    /// The time and the cost of training 10¹² tokens, with failures.
    fn whole_run(&mut self, inputs: &Inputs<'_>, step_time_s: Interval) {
        let load = RunLoad {
            gpus: inputs.layout.gpus(),
            gpus_per_node: inputs.gpu.gpus_per_node,
            step_time_s,
            steps: 1e12 / inputs.batch.tokens(),
            checkpoint_bytes: checkpoint_bytes(inputs.architecture.parameters()),
        };
        let run = RunTime::of(&load, &Disruptions::default());
        for case in [run.low, run.high] {
            self.numbers([case.mtbf_s, case.save_interval_s, case.goodput, case.days, case.failures]);
        }
        let price = Price::own(ValueRange { low: 1.99, high: 3.5 });
        let cost = RunCost::of(&run, 1e12, price, CheckpointStorage::assumed());
        self.numbers([cost.total.low, cost.total.high]);
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = f64>) {
        for byte in numbers.into_iter().flat_map(|number| number.to_bits().to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
