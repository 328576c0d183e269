//! What decides how the model's errors on two runs correlate.

use super::Covariance;
use crate::architecture::Architecture;
use crate::cluster_factors::ClusterFactors;
use crate::estimate::Inputs;
use crate::estimate::evidence::{Closeness, SIMILAR};
use crate::layout::{Degrees, Layout, PipelineSplit};
use crate::options::{Modules, Recompute, TrainingOptions};
use crate::precision::Dtype;
use crate::stack::Stack;

/// The properties of a run that decide how its error correlates with others.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Hash of the architecture without its number of layers.
    pub(super) shape: u32,
    /// Hash of the GPU type.
    pub(super) gpu: u32,
    pub(super) dtype: Dtype,
    /// The known software, or an older one that trains the model alike ([`Stack::trained_like`]); none for a user's own, which has nothing
    /// in common with measured software.
    pub(super) software: Option<Stack>,
    /// The value of each coordinate, in the order of [`Coordinate::ALL`].
    pub(super) place: Place,
    /// Hash of everything else that changes the run; 0 for an even pipeline and the software's defaults. It decides whether
    /// two runs are the same, but not how their errors correlate.
    pub(super) settings: u16,
}

/// The value of each coordinate, in the order of [`Coordinate::ALL`].
pub(super) type Place = [f64; Coordinate::ALL.len()];

/// A property of a run that has a distance to the same property of another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coordinate {
    Gpus,
    Tp,
    Pp,
    Cp,
    Ep,
    ExpertTp,
    Vp,
    Mbs,
    Ga,
    SeqLen,
    Layers,
    Recompute,
    Fsdp,
}

impl Coordinate {
    pub(crate) const ALL: [Coordinate; 13] = [
        Coordinate::Gpus,
        Coordinate::Tp,
        Coordinate::Pp,
        Coordinate::Cp,
        Coordinate::Ep,
        Coordinate::ExpertTp,
        Coordinate::Vp,
        Coordinate::Mbs,
        Coordinate::Ga,
        Coordinate::SeqLen,
        Coordinate::Layers,
        Coordinate::Recompute,
        Coordinate::Fsdp,
    ];

    /// The coordinates in which few measured runs of mixtures of experts exceed a number: fewer than one in ten, as a test
    /// of the calibration checks.
    pub(crate) const RARE: [(Coordinate, u32); 4] = [
        (Coordinate::Cp, 1),
        (Coordinate::ExpertTp, 1),
        (Coordinate::Recompute, Recompute::Selective as u32),
        (Coordinate::Fsdp, 0),
    ];

    /// Whether few measured runs of mixtures of experts have such a number.
    pub(crate) fn is_rare(self, number: u32) -> bool {
        Coordinate::RARE.iter().any(|(rare, most)| *rare == self && number > *most)
    }

    /// Returns the number that decides it.
    fn number(self, inputs: &Inputs<'_>) -> u32 {
        let Inputs { architecture, layout, batch, options, .. } = inputs;
        match self {
            Coordinate::Gpus => layout.gpus(),
            Coordinate::Tp => layout.tp(),
            Coordinate::Pp => layout.pp(),
            Coordinate::Cp => layout.cp(),
            Coordinate::Ep => layout.ep(),
            Coordinate::ExpertTp => layout.expert_tp(),
            Coordinate::Vp => layout.vp(),
            Coordinate::Mbs => batch.mbs(),
            Coordinate::Ga => batch.ga(),
            Coordinate::SeqLen => batch.seq_len(),
            Coordinate::Layers => architecture.layers,
            Coordinate::Recompute => options.recompute as u32,
            Coordinate::Fsdp => u32::from(options.fsdp),
        }
    }

    /// Returns its value for a number: in doublings, apart from switches. One unit equals a doubling of a degree.
    pub(super) fn of_number(self, number: u32) -> f64 {
        let log = || libm::log2(f64::from(number.max(1)));
        match self {
            Coordinate::Recompute | Coordinate::Fsdp => f64::from(number),
            // Doubling these changes a run less than doubling a degree.
            Coordinate::Gpus => log() / 3.0,
            Coordinate::Ga | Coordinate::Layers => log() / 2.0,
            _ => log(),
        }
    }

    /// Returns its value.
    pub(super) fn of(self, inputs: &Inputs<'_>) -> f64 {
        self.of_number(self.number(inputs))
    }

    /// Returns the number that has this value.
    fn number_of(self, value: f64) -> f64 {
        let log = match self {
            Coordinate::Recompute | Coordinate::Fsdp => return value,
            Coordinate::Gpus => value * 3.0,
            Coordinate::Ga | Coordinate::Layers => value * 2.0,
            _ => value,
        };
        libm::exp2(log).round()
    }
}

impl Features {
    /// Returns its cells in `anchors.csv`: shape, GPU, precision, software, place, settings.
    #[cfg(feature = "calibrate")]
    pub(crate) fn cells(&self) -> [String; 6] {
        let numbers = Coordinate::ALL.map(|each| each.number_of(self.place[each as usize]).to_string());
        let settings = if self.settings == 0 { String::new() } else { format!("{:04x}", self.settings) };
        [
            format!("{:08x}", self.shape),
            format!("{:08x}", self.gpu),
            self.dtype.to_string(),
            self.software.map_or(String::new(), |software| software.to_string()),
            numbers.join(" "),
            settings,
        ]
    }

    /// Returns the features of an estimate's inputs.
    pub fn of(inputs: &Inputs<'_>) -> Features {
        let is_routed = inputs.architecture.moe.is_some();
        Features {
            shape: shape(inputs.architecture),
            gpu: hash(inputs.gpu.id.split(':').next().unwrap_or_default().bytes().map(u32::from)),
            dtype: inputs.dtype,
            software: inputs.options.software.known().map(|stack| stack.trained_like(is_routed)),
            place: Coordinate::ALL.map(|coordinate| coordinate.of(inputs)),
            settings: settings(inputs),
        }
    }

    /// Whether another run trains the same model, with any number of layers.
    #[cfg(feature = "calibrate")]
    pub(crate) fn has_shape_of(&self, other: &Features) -> bool {
        self.shape == other.shape
    }

    /// Returns the layout in one line, without degrees of 1: `TP 4 · PP 2 · MBS 1`.
    pub(super) fn layout(&self) -> String {
        let value = |coordinate: Coordinate| coordinate.number_of(self.place[coordinate as usize]);
        let mut text = String::new();
        let degrees = [
            ("TP", Coordinate::Tp),
            ("PP", Coordinate::Pp),
            ("VP", Coordinate::Vp),
            ("CP", Coordinate::Cp),
            ("EP", Coordinate::Ep),
        ];
        for (name, degree) in degrees.map(|(name, coordinate)| (name, value(coordinate))) {
            if degree > 1.0 {
                text += &format!("{name} {degree} · ");
            }
        }
        text += &format!("MBS {} · GA {}", value(Coordinate::Mbs), value(Coordinate::Ga));
        if self.place[Coordinate::Fsdp as usize] > 0.0 {
            text += " · FSDP";
        }
        let recomputed = self.place[Coordinate::Recompute as usize];
        let recompute = Recompute::ALL.into_iter().find(|one| f64::from(*one as u32) == recomputed);
        match recompute {
            None | Some(Recompute::None) => text,
            Some(some) => format!("{text} · {some} recompute"),
        }
    }

    /// Returns how close a measured run with these features is to a plan with those of `plan`. `fp8` of a recipe matches
    /// every kind of FP8, because its release chooses the kind.
    pub(super) fn closeness(&self, plan: &Features, likeness: f64) -> Closeness {
        let same_dtype = self.dtype.may_be(plan.dtype);
        let rest = |features: &Features| (features.shape, features.gpu);
        let same_layout = same_dtype && rest(self) == rest(plan) && self.place == plan.place;
        match (same_layout, self.software == plan.software, self.settings == plan.settings) {
            (true, true, true) => Closeness::Same,
            (true, true, false) => Closeness::OtherSettings,
            (true, false, _) => Closeness::OtherSoftware,
            _ if self.gpu == plan.gpu && likeness >= SIMILAR => Closeness::Similar,
            _ => Closeness::Distant,
        }
    }

    /// Returns what few measured runs of mixtures of experts use and this one does: a bit for each of [`Coordinate::RARE`].
    pub(crate) fn rare(&self) -> u32 {
        Coordinate::RARE.iter().fold(0, |bits, (coordinate, most)| {
            let is_rare = self.place[*coordinate as usize] > coordinate.of_number(*most);
            bits << 1 | u32::from(is_rare)
        })
    }

    /// Whether it is the same run, perhaps with other software or other settings.
    pub(super) fn is_same_mapping(&self, other: &Features) -> bool {
        let rest = |features: &Features| (features.shape, features.gpu, features.dtype);
        rest(self) == rest(other) && self.place == other.place
    }

    /// Returns the covariance of the model's errors on two runs of one model.
    pub(super) fn covariance(&self, other: &Features, parts: &Covariance) -> f64 {
        let Shared { always, similar } = self.shared(other, parts);
        if similar == 0.0 {
            return always;
        }
        let distance: f64 = self.place.iter().zip(&other.place).map(|(a, b)| (a - b).abs()).sum();
        always + similar * libm::exp(-distance / parts.reach)
    }

    /// Returns the parts of that covariance.
    pub(super) fn shared(&self, other: &Features, parts: &Covariance) -> Shared {
        let same_gpu = self.gpu == other.gpu;
        let same_width = self.dtype.width() == other.dtype.width();
        let same_software = self.software == other.software;
        let mut always = parts.shape;
        if same_gpu {
            always += parts.gpu;
        }
        if same_gpu && same_width {
            always += parts.width;
        }
        if same_software && same_width {
            always += parts.stack;
        }
        let similar = match (same_gpu && same_width, same_software) {
            (true, true) => parts.layout,
            (true, false) => 0.5 * parts.layout,
            (false, _) => 0.0,
        };
        Shared { always, similar }
    }
}

/// The parts of the covariance of the model's errors on two runs of one model.
pub(super) struct Shared {
    /// Whatever their layouts.
    pub(super) always: f64,
    /// Added for equal layouts. It falls exponentially with their distance.
    pub(super) similar: f64,
}

/// Returns a hash that is the same for architectures that differ only in their number of layers.
fn shape(architecture: &Architecture) -> u32 {
    use crate::architecture::AttentionKind::{Gqa, Mla};
    let attention = match architecture.attention.kind {
        Gqa { kv_heads, head_dim } => [kv_heads, head_dim, 0, 0, 0],
        Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => [q_lora, kv_lora, qk_nope, qk_rope, v_head],
    };
    let mlp = architecture.mlp.as_ref().map_or([0; 2], |mlp| [mlp.ffn, u32::from(mlp.gated)]);
    let moe = architecture
        .moe
        .as_ref()
        .map_or([0; 5], |moe| [moe.experts, moe.top_k, moe.ffn, moe.shared_ffn, moe.latent.unwrap_or(0)]);
    let mamba =
        architecture.mamba.as_ref().map_or([0; 3], |mamba| [mamba.heads, mamba.head_dim, mamba.state]);
    let rest = [architecture.hidden, architecture.vocab, architecture.attention.heads];
    let linear = architecture
        .linear
        .as_ref()
        .map(|linear| [linear.key_heads, linear.value_heads, linear.key_dim, linear.value_dim]);
    let linear = linear.into_iter().flatten();
    hash(rest.into_iter().chain(attention).chain(mlp).chain(moe).chain(mamba).chain(linear))
}

/// Returns a hash of what changes a run beside its place: the division of layers, and options that differ from those of the
/// software's recipes; 0 if there is nothing.
fn settings(inputs: &Inputs<'_>) -> u16 {
    let TrainingOptions { recompute, fsdp, software, .. } = *inputs.options;
    let usual = TrainingOptions { recompute, fsdp, software, ..TrainingOptions::default() };
    // Shorter than the other hashes, to keep anchors.csv small: few runs are equal in everything but this.
    ((of_options(inputs.options, inputs) ^ of_options(&usual, inputs) ^ of_division(inputs.layout)) >> 16)
        as u16
}

/// Returns a hash of options, by what they do, so that a switch which is set to the software's default counts as no difference.
fn of_options(options: &TrainingOptions, inputs: &Inputs<'_>) -> u32 {
    let Inputs { architecture, gpu, layout, .. } = inputs;
    let Modules { mlp, mla_up_proj, layernorm, moe_act, shared_experts, moe } = options.modules;
    let switches = [
        options.overlap,
        options.shares_sequence(),
        options.uses_cuda_graphs(architecture),
        architecture.moe.is_some() && options.hides_experts(layout),
        options.sends_once_per_domain() || layout.ep() * layout.expert_tp() <= gpu.nvlink_domain,
        options.overlaps_tp() || layout.tp() == 1,
        options.token_drop,
        options.reshard,
        options.cluster.is_neutral(),
        mlp,
        mla_up_proj,
        layernorm,
        moe_act,
        shared_experts,
        moe,
    ];
    let switches = switches.iter().fold(0, |bits, on| bits << 1 | u32::from(*on));
    let gemm_tflops = options.gemm_tflops.unwrap_or_default() as f32;
    // Not `offload_layers`: tables of measurements omit it, and list runs whose recipe is known to keep activations in CPU memory.
    hash([switches, options.zero_group.unwrap_or_default(), gemm_tflops.to_bits()].into_iter())
}

/// Returns a hash of how layers are divided among stages; 0 if evenly.
fn of_division(layout: &Layout) -> u32 {
    if layout.is_even() { 0 } else { hash(layout.stages().iter().copied()) }
}

/// A change of one setting that [`settings`] counts.
type SettingChange = fn(&mut TrainingOptions, &Inputs<'_>);

/// The settings that [`differing_settings`] can name, each with a change to its other value.
static CHANGES: [(&str, SettingChange); 16] = [
    ("overlap", |options, _| options.overlap = !options.overlap),
    ("CUDA graphs", |options, inputs| {
        options.switches.graphs = Some(!options.uses_cuda_graphs(inputs.architecture));
    }),
    ("overlap of tensor parallelism", |options, _| {
        options.switches.hidden_tp = Some(!options.overlaps_tp());
    }),
    ("overlap of the exchange between experts", |options, inputs| {
        options.switches.hidden_experts = Some(!options.hides_experts(inputs.layout));
    }),
    ("how tokens are sent to experts", |options, _| {
        options.switches.sent_once = Some(!options.sends_once_per_domain());
    }),
    ("sequence parallelism", |options, _| options.sequence_parallel = Some(!options.shares_sequence())),
    ("dropped tokens", |options, _| options.token_drop = !options.token_drop),
    ("FSDP's second gathering of weights", |options, _| options.reshard = !options.reshard),
    ("measured GEMM TFLOPS", |options, _| options.gemm_tflops = None),
    ("cluster factors", |options, _| options.cluster = ClusterFactors::default()),
    (RECOMPUTED, |options, _| options.modules.mlp = !options.modules.mlp),
    (RECOMPUTED, |options, _| options.modules.mla_up_proj = !options.modules.mla_up_proj),
    (RECOMPUTED, |options, _| options.modules.layernorm = !options.modules.layernorm),
    (RECOMPUTED, |options, _| options.modules.moe_act = !options.modules.moe_act),
    (RECOMPUTED, |options, _| options.modules.shared_experts = !options.modules.shared_experts),
    (RECOMPUTED, |options, _| options.modules.moe = !options.modules.moe),
];

const RECOMPUTED: &str = "recomputed modules";
const SPLIT: &str = "pipeline split";

/// Returns the names of the settings in which a measured run of the same layout and software differs from a scenario; none if more
/// than two settings and the pipeline split differ, or another one than those of [`CHANGES`].
///
/// Only the hash of the run's settings is known, so this tries which changes of the scenario produce it, fewest first.
pub(super) fn differing_settings(inputs: &Inputs<'_>, run: &Features) -> Vec<&'static str> {
    let layout = inputs.layout;
    let (own, own_division) = (of_options(inputs.options, inputs), of_division(layout));
    let difference = u32::from(run.settings ^ settings(inputs));
    // Hashes are joined by exclusive or, so that a change of a part changes the whole by as much.
    let splits = [PipelineSplit::Even, PipelineSplit::Counted, PipelineSplit::Weighed].map(|split| {
        let [gpus, tp, pp, cp] = [layout.gpus(), layout.tp(), layout.pp(), layout.cp()];
        let [ep, expert_tp, vp] = [layout.ep(), layout.expert_tp(), layout.vp()];
        let degrees = Degrees { gpus, tp, pp, cp, ep, expert_tp, vp, split };
        Layout::new(&degrees, inputs.architecture)
            .map_or(0, |other| (of_division(&other) ^ own_division) >> 16)
    });
    let is_reached = |changes: &[usize]| {
        let mut options = *inputs.options;
        changes.iter().for_each(|place| CHANGES[*place].1(&mut options, inputs));
        let rest = difference ^ ((of_options(&options, inputs) ^ own) >> 16);
        let is_by_split = rest != 0 && splits.contains(&rest);
        if rest != 0 && !is_by_split {
            return None;
        }
        let mut names: Vec<&'static str> = Vec::new();
        for name in changes.iter().map(|place| CHANGES[*place].0).chain(is_by_split.then_some(SPLIT)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Some(names)
    };
    let all = || 0..CHANGES.len();
    let one = || all().find_map(|place| is_reached(&[place]));
    let two = || all().find_map(|first| (0..first).find_map(|second| is_reached(&[second, first])));
    is_reached(&[]).or_else(one).or_else(two).unwrap_or_default()
}

/// The upper half of FNV-1a, which is the same on every machine.
fn hash(parts: impl Iterator<Item = u32>) -> u32 {
    let basis: u64 = 0xcbf2_9ce4_8422_2325;
    let all = parts.fold(basis, |hash, part| (hash ^ u64::from(part)).wrapping_mul(0x0100_0000_01b3));
    (all >> 32) as u32
}
