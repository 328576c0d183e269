//! How a model is spread over GPUs.

use crate::architecture::{Architecture, AttentionKind};
use crate::field::Field;
use crate::problem::Problem;
use crate::units::{greatest_common_divisor, nearest_divisors, nearest_multiples};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The degrees of parallelism as someone wrote them down, not yet known to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degrees {
    /// GPUs in all.
    pub gpus: u32,
    /// Tensor parallel.
    pub tp: u32,
    /// Pipeline parallel.
    pub pp: u32,
    /// Context parallel.
    pub cp: u32,
    /// Expert parallel.
    pub ep: u32,
    /// Tensor parallel inside an expert.
    pub expert_tp: u32,
    /// Virtual pipeline: chunks of layers per stage.
    pub vp: u32,
    /// How layers fall on stages.
    pub split: PipelineSplit,
}

impl Default for Degrees {
    fn default() -> Degrees {
        Degrees { gpus: 1, tp: 1, pp: 1, cp: 1, ep: 1, expert_tp: 1, vp: 1, split: PipelineSplit::Even }
    }
}

/// Degrees of parallelism that fit the GPUs and the model; there is no other way to make one than [`Layout::new`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layout {
    gpus: u32,
    tp: u32,
    pp: u32,
    cp: u32,
    ep: u32,
    expert_tp: u32,
    vp: u32,
    split: PipelineSplit,
    /// Layers of each stage, first to last.
    stages: Vec<u32>,
}

impl Layout {
    /// Checks degrees against the GPUs and the architecture.
    ///
    /// # Errors
    /// Every degree that does not divide what it must, with the nearest values that do.
    pub fn new(degrees: &Degrees, architecture: &Architecture) -> Result<Layout, Vec<Problem>> {
        let Degrees { gpus, tp, pp, cp, ep, expert_tp, vp, ref split } = *degrees;
        let mut problems = zeros(degrees);
        if !problems.is_empty() {
            return Err(problems);
        }
        problems.extend(tp_problem(tp, architecture));
        problems.extend(expert_problems(degrees, architecture));
        if vp > 1 && pp == 1 {
            problems.push(
                Problem::clause(Field::Vp, vp, "needs a pipeline: PP is 1")
                    .nearest([1])
                    .allowed("1 unless PP > 1"),
            );
        }
        // Wide enough that no product of degrees wraps.
        let model_parallel = (u64::from(tp) * u64::from(pp)).saturating_mul(u64::from(cp));
        if !u64::from(gpus).is_multiple_of(model_parallel) {
            let what = format!("does not divide by TP·PP·CP = {tp}·{pp}·{cp} = {model_parallel}");
            let nearest = u32::try_from(model_parallel).map(|step| nearest_multiples(gpus, step));
            problems.push(Problem::clause(Field::Gpus, gpus, what).nearest(nearest.unwrap_or_default()));
        }
        let stages = match split.stages(architecture.layers, pp, vp) {
            Ok(stages) => stages,
            Err(problem) => {
                problems.push(problem);
                Vec::new()
            }
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Layout { gpus, tp, pp, cp, ep, expert_tp, vp, split: split.clone(), stages })
    }

    /// GPUs in all.
    pub fn gpus(&self) -> u32 {
        self.gpus
    }
    /// Tensor parallel.
    pub fn tp(&self) -> u32 {
        self.tp
    }
    /// Pipeline parallel.
    pub fn pp(&self) -> u32 {
        self.pp
    }
    /// Context parallel.
    pub fn cp(&self) -> u32 {
        self.cp
    }
    /// Expert parallel.
    pub fn ep(&self) -> u32 {
        self.ep
    }
    /// Tensor parallel inside an expert.
    pub fn expert_tp(&self) -> u32 {
        self.expert_tp
    }
    /// Virtual pipeline: chunks of layers per stage, 1 without interleaving.
    pub fn vp(&self) -> u32 {
        self.vp
    }
    /// Data parallel: GPUs / (TP·PP·CP).
    pub fn dp(&self) -> u32 {
        self.gpus / (self.tp * self.pp * self.cp)
    }
    /// How layers fall on stages.
    pub fn split(&self) -> &PipelineSplit {
        &self.split
    }
    /// Layers of each stage, first to last.
    pub fn stages(&self) -> &[u32] {
        &self.stages
    }

    /// What works but not as well as its neighbours would.
    pub fn warnings(&self, architecture: &Architecture) -> Vec<String> {
        let mut warnings = Vec::new();
        let chunks = self.pp * self.vp;
        let (layers, counted) = (architecture.layers, architecture.layers + 2);
        let uneven = match self.split {
            PipelineSplit::Even => !layers.is_multiple_of(chunks),
            PipelineSplit::Counted => !counted.is_multiple_of(chunks),
            PipelineSplit::Explicit(_) => false,
        };
        if uneven {
            let mut warning = format!(
                "{layers} layers do not fall evenly on PP·VP = {chunks} pipeline chunks: the fullest stage sets the pace"
            );
            if self.split == PipelineSplit::Even && counted.is_multiple_of(chunks) {
                warning +=
                    "; counting embedding and loss as a layer each (pipeline split `counted`) makes it even";
            }
            warnings.push(warning);
        }
        warnings
    }
}

/// How a model's layers fall on pipeline stages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PipelineSplit {
    /// Alike on every stage, as far as it goes.
    #[default]
    Even,
    /// Embedding and loss count as a layer each, so that the first and last stage hold one layer fewer.
    Counted,
    /// Layers of each stage, first to last.
    Explicit(Vec<u32>),
}

impl PipelineSplit {
    /// Layers of each of `pp` stages of `vp` chunks.
    fn stages(&self, layers: u32, pp: u32, vp: u32) -> Result<Vec<u32>, Problem> {
        let refuse = |what: String| Problem::clause(Field::PipelineSplit, self, what);
        let chunks = pp.saturating_mul(vp);
        match self {
            PipelineSplit::Explicit(stages) => {
                let total: u64 = stages.iter().map(|stage| u64::from(*stage)).sum();
                if stages.len() as u64 != u64::from(pp) {
                    return Err(refuse(format!("names {} stages where PP is {pp}", stages.len())));
                }
                if total != u64::from(layers) {
                    return Err(refuse(format!("holds {total} layers where the model has {layers}")));
                }
                Ok(stages.clone())
            }
            _ if chunks > layers.saturating_add(2) || (*self == PipelineSplit::Even && chunks > layers) => {
                Err(Problem::clause(
                    if vp > 1 { Field::Vp } else { Field::Pp },
                    if vp > 1 { vp } else { pp },
                    format!("makes PP·VP = {chunks} pipeline chunks of {layers} layers: some would be empty"),
                )
                .nearest(Some(if vp > 1 { layers / pp.max(1) } else { layers }).filter(|most| *most > 0)))
            }
            PipelineSplit::Even => Ok(even_stages(layers, pp, vp)),
            PipelineSplit::Counted => {
                let mut stages = even_stages(layers + 2, pp, vp);
                // The embedding stands before the first layer, the loss after the last.
                if let Some(first) = stages.first_mut() {
                    *first -= 1;
                }
                if let Some(last) = stages.last_mut() {
                    *last = last.saturating_sub(1);
                }
                Ok(stages)
            }
        }
    }
}

/// `layers` over `pp` stages of `vp` chunks; the chunks that take one more are the first in pipeline order.
fn even_stages(layers: u32, pp: u32, vp: u32) -> Vec<u32> {
    let chunks = pp * vp;
    let (each, rest) = (layers / chunks, layers % chunks);
    (0..pp).map(|stage| (0..vp).map(|round| each + u32::from(round * pp + stage < rest)).sum()).collect()
}

impl fmt::Display for PipelineSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipelineSplit::Even => f.write_str("even"),
            PipelineSplit::Counted => f.write_str("counted"),
            PipelineSplit::Explicit(stages) => {
                let stages: Vec<String> = stages.iter().map(u32::to_string).collect();
                f.write_str(&stages.join(","))
            }
        }
    }
}

impl FromStr for PipelineSplit {
    type Err = Problem;

    fn from_str(text: &str) -> Result<PipelineSplit, Problem> {
        match text.trim() {
            "even" => Ok(PipelineSplit::Even),
            "counted" => Ok(PipelineSplit::Counted),
            list => list
                .split(',')
                .map(|stage| stage.trim().parse().ok())
                .collect::<Option<Vec<u32>>>()
                .map(PipelineSplit::Explicit)
                .ok_or_else(|| {
                    Problem::clause(Field::PipelineSplit, text, "is no pipeline split")
                        .allowed("even, counted (embedding and loss count as a layer each), or the layers of each stage: 7,8,8,…")
                }),
        }
    }
}

impl Serialize for PipelineSplit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn zeros(degrees: &Degrees) -> Vec<Problem> {
    [
        (Field::Gpus, degrees.gpus),
        (Field::Tp, degrees.tp),
        (Field::Pp, degrees.pp),
        (Field::Cp, degrees.cp),
        (Field::Ep, degrees.ep),
        (Field::ExpertTp, degrees.expert_tp),
        (Field::Vp, degrees.vp),
    ]
    .into_iter()
    .filter(|(_, degree)| *degree == 0)
    .map(|(field, degree)| Problem::clause(field, degree, "is no degree").allowed("1 or more").nearest([1]))
    .collect()
}

fn tp_problem(tp: u32, architecture: &Architecture) -> Option<Problem> {
    let widths = architecture.tp_widths();
    let common = widths.iter().fold(0, |common, (_, width)| greatest_common_divisor(common, *width));
    if let Some((name, width)) = widths.iter().find(|(_, width)| !width.is_multiple_of(tp)) {
        return Some(
            Problem::clause(Field::Tp, tp, format!("does not divide the model's {name}, {width}"))
                .nearest(nearest_divisors(tp, common)),
        );
    }
    match architecture.attention.kind {
        // Beyond the query groups, ranks hold copies of a group: whole copies only.
        AttentionKind::Gqa { kv_heads, .. }
            if !kv_heads.is_multiple_of(tp) && !tp.is_multiple_of(kv_heads) =>
        {
            Some(
                Problem::clause(
                    Field::Tp,
                    tp,
                    format!("neither divides the model's {kv_heads} KV heads nor is a multiple"),
                )
                .nearest(nearest_divisors(tp, kv_heads)),
            )
        }
        _ => None,
    }
}

fn expert_problems(degrees: &Degrees, architecture: &Architecture) -> Vec<Problem> {
    let Degrees { gpus, pp, ep, expert_tp, .. } = *degrees;
    let Some(moe) = &architecture.moe else {
        return [(Field::Ep, ep), (Field::ExpertTp, expert_tp)]
            .into_iter()
            .filter(|(_, degree)| *degree > 1)
            .map(|(field, degree)| {
                Problem::clause(field, degree, "needs experts: the model has none").nearest([1])
            })
            .collect();
    };
    let mut problems = Vec::new();
    if !moe.experts.is_multiple_of(ep) {
        problems.push(
            Problem::clause(Field::Ep, ep, format!("does not divide the model's {} experts", moe.experts))
                .nearest(nearest_divisors(ep, moe.experts)),
        );
    }
    if !moe.ffn.is_multiple_of(expert_tp) {
        problems.push(
            Problem::clause(
                Field::ExpertTp,
                expert_tp,
                format!("does not divide an expert's FFN width {}", moe.ffn),
            )
            .nearest(nearest_divisors(expert_tp, moe.ffn)),
        );
    }
    let expert_parallel = (u64::from(expert_tp) * u64::from(ep)).saturating_mul(u64::from(pp));
    if !u64::from(gpus).is_multiple_of(expert_parallel) {
        let what = format!(
            "needs GPUs that divide by expert TP·EP·PP = {expert_tp}·{ep}·{pp} = {expert_parallel}; there are {gpus}"
        );
        problems.push(Problem::clause(Field::Ep, ep, what));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use proptest::prelude::*;

    fn model(id: &str) -> &'static Architecture {
        &Catalog::embedded().model(id).unwrap().architecture
    }

    fn refused(degrees: &Degrees, id: &str) -> Problem {
        Layout::new(degrees, model(id)).unwrap_err().remove(0)
    }

    #[test]
    fn gpus_that_do_not_divide_name_the_nearest() {
        let degrees = Degrees { gpus: 500, tp: 8, pp: 8, cp: 2, ..Degrees::default() };
        let problem = refused(&degrees, "llama3.1-405b");
        assert_eq!(
            (problem.field, problem.suggestions.as_slice()),
            (Field::Gpus, &["384".into(), "512".into()][..])
        );
        assert!(problem.to_string().contains("TP·PP·CP = 8·8·2 = 128"), "{problem}");
    }

    #[test]
    fn tp_must_cut_every_width() {
        let degrees = Degrees { gpus: 24, tp: 3, ..Degrees::default() };
        assert_eq!(refused(&degrees, "llama3.1-8b").suggestions, ["2", "4"]);
        // 16 is more than the 8 KV heads, and holds whole copies of them.
        let degrees = Degrees { gpus: 16, tp: 16, ..Degrees::default() };
        assert!(Layout::new(&degrees, model("llama3.1-8b")).is_ok());
        // Mamba's groups are cut as well.
        assert!(Layout::new(&degrees, model("nemotron-h-56b")).is_err());
    }

    #[test]
    fn experts_need_experts() {
        let degrees = Degrees { gpus: 8, ep: 8, ..Degrees::default() };
        assert_eq!(refused(&degrees, "llama3.1-8b").field, Field::Ep);
        let degrees = Degrees { gpus: 96, ep: 96, ..Degrees::default() };
        assert_eq!(refused(&degrees, "deepseek-v3").suggestions, ["64", "128"]);
    }

    #[test]
    fn the_405b_splits_evenly_only_when_embedding_and_loss_count() {
        let degrees = Degrees { gpus: 512, tp: 8, pp: 8, cp: 2, vp: 8, ..Degrees::default() };
        let even = Layout::new(&degrees, model("llama3.1-405b")).unwrap();
        assert!(even.warnings(model("llama3.1-405b"))[0].contains("counted"));
        let counted = Degrees { split: PipelineSplit::Counted, ..degrees };
        let counted = Layout::new(&counted, model("llama3.1-405b")).unwrap();
        assert_eq!(counted.stages(), [15, 16, 16, 16, 16, 16, 16, 15]);
        assert!(counted.warnings(model("llama3.1-405b")).is_empty());
    }

    #[test]
    fn an_explicit_split_holds_every_layer() {
        let split = |text: &str| Degrees {
            gpus: 64,
            pp: 4,
            ep: 8,
            split: text.parse().unwrap(),
            ..Degrees::default()
        };
        assert_eq!(
            Layout::new(&split("15,16,16,14"), model("deepseek-v3")).unwrap().stages(),
            [15, 16, 16, 14]
        );
        assert!(refused(&split("15,16,16,15"), "deepseek-v3").to_string().contains("62 layers"));
        assert!(refused(&split("30,31"), "deepseek-v3").to_string().contains("2 stages"));
    }

    proptest! {
        #[test]
        fn a_layout_uses_every_gpu_and_every_layer(
            gpus in 0u32..5000, tp in 0u32..20, pp in 0u32..20, cp in 0u32..5, vp in 0u32..13, counted: bool,
        ) {
            let split = if counted { PipelineSplit::Counted } else { PipelineSplit::Even };
            let architecture = model("llama3.1-405b");
            match Layout::new(&Degrees { gpus, tp, pp, cp, vp, split, ..Degrees::default() }, architecture) {
                Ok(layout) => {
                    prop_assert_eq!(layout.dp() * layout.tp() * layout.pp() * layout.cp(), gpus);
                    prop_assert_eq!(layout.stages().iter().sum::<u32>(), architecture.layers);
                }
                Err(problems) => prop_assert!(!problems.is_empty()),
            }
        }

        #[test]
        fn extreme_degrees_do_not_overflow(tp: u32, pp: u32, cp: u32, vp: u32, ep: u32, gpus: u32) {
            let degrees = Degrees { gpus, tp, pp, cp, vp, ep, ..Degrees::default() };
            let _ = Layout::new(&degrees, model("deepseek-v3"));
        }

        #[test]
        fn splits_round_trip(stages in proptest::collection::vec(0u32..100, 1..9)) {
            let split = PipelineSplit::Explicit(stages);
            prop_assert_eq!(split.to_string().parse::<PipelineSplit>().unwrap(), split);
        }
    }
}
