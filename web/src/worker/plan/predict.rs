//! The prediction of a scenario, as numbers for charts and sentences for people.

use crate::message::{Bars, Part, Prediction, Remedy as ShownRemedy};
use trainplan_shared::estimate::{Anchor, Basis, BasisKind, Breakdown, Memory, StageMemory};
use trainplan_shared::link;
use trainplan_shared::spec::{Predicted, Remedy};
use trainplan_shared::units::significant;

const GIB: f64 = 1_073_741_824.0;

/// More bars than this would be hard to tell apart.
const MOST_BARS: usize = 16;

/// What is predicted of a query's scenario; none where it describes none.
pub(crate) fn predict(query: &str) -> Option<Prediction> {
    let Predicted { estimate, remedies, .. } = link::read(query).spec.estimate().ok()?;
    Some(Prediction {
        low_s: estimate.step_time_s.low,
        mid_s: estimate.step_time_s.mid,
        high_s: estimate.step_time_s.high,
        basis: basis(&estimate.basis),
        anchors: estimate.basis.anchors.iter().map(anchor).collect(),
        time: time(&estimate.breakdown),
        fits: estimate.memory.fits(),
        fit: fit(&estimate.memory),
        remedies: remedies.iter().map(remedy).collect(),
        memory: memory(&estimate.memory),
        capacity_gib: estimate.memory.capacity_bytes / GIB,
    })
}

fn basis(basis: &Basis) -> String {
    let percent = (basis.correction - 1.0) * 100.0;
    let by = format!("correct the physical model by {percent:+.1} %");
    match (basis.kind, basis.anchors.is_empty()) {
        (BasisKind::Published, _) => {
            format!("Measured: runs of this very mapping, and others like it, {by}.")
        }
        (BasisKind::Interpolated, _) => {
            format!("Interpolated: measured runs of this model on such GPUs, in other mappings, {by}.")
        }
        (BasisKind::Modelled, false) => {
            format!("Modelled: no run like this one was measured. Others of this model, further off, {by}.")
        }
        (BasisKind::Modelled, true) => {
            "Modelled: nobody measured this model, so this is the physical model alone.".to_string()
        }
    }
}

fn anchor(anchor: &Anchor) -> String {
    format!("{}: {:.0} % alike", anchor.what, anchor.likeness * 100.0)
}

/// What each part is called on a chart, and the group that it belongs to.
fn named(part: &str) -> (&str, usize) {
    match part {
        "matmul" => ("Matrix products", 0),
        "attention" => ("Attention", 0),
        "memory bound" => ("Memory-bound", 0),
        "tensor parallel" => ("Tensor parallel", 1),
        "context parallel" => ("Context parallel", 1),
        "expert parallel" => ("Expert parallel", 1),
        "pipeline parallel" => ("Stage to stage", 1),
        "data parallel" => ("Data parallel", 1),
        "bubble" => ("Pipeline bubble", 2),
        "host" => ("Kernel launches", 2),
        "optimizer" => ("Optimizer", 3),
        "other" => ("Other", 3),
        other => (other, 3),
    }
}

fn time(breakdown: &Breakdown) -> Bars {
    const GROUPS: [&str; 4] = ["Computing", "Exposed communication", "Waiting", "Once a step"];
    let spent: Vec<(&str, usize, f64)> = breakdown
        .parts()
        .into_iter()
        .filter(|(_, seconds)| *seconds > 0.0)
        .map(|(part, seconds)| (named(part).0, named(part).1, seconds))
        .collect();
    let group = |(index, name): (usize, &str)| Part {
        name: name.to_string(),
        values: spent
            .iter()
            .map(|(_, group, seconds)| if *group == index { *seconds } else { 0.0 })
            .collect(),
    };
    Bars {
        labels: spent.iter().map(|(name, ..)| (*name).to_string()).collect(),
        parts: GROUPS.into_iter().enumerate().map(group).collect(),
    }
}

fn fit(memory: &Memory) -> String {
    let margin = memory.margin_bytes() / GIB;
    let capacity = memory.capacity_bytes / GIB;
    let place = match memory.stages.len() {
        1 => String::new(),
        stages => format!(" on stage {} of {stages}, the fullest", memory.peak_stage + 1),
    };
    match memory.fits() {
        true => format!("Fits: {margin:.1} of {capacity:.0} GiB are left{place}."),
        false => format!("Does not fit: {:.1} GiB more than {capacity:.0} are needed{place}.", -margin),
    }
}

fn remedy(remedy: &Remedy) -> ShownRemedy {
    let changes = remedy.changes.iter();
    let title: Vec<String> =
        changes.clone().map(|(field, value)| format!("{} {value}", field.label())).collect();
    ShownRemedy {
        title: format!("{}: {} s a step", title.join(", "), significant(remedy.step_time_s, 4)),
        flags: changes.clone().map(|(field, _)| field.flag().to_string()).collect(),
        values: changes.map(|(_, value)| value.clone()).collect(),
    }
}

fn memory(memory: &Memory) -> Bars {
    let bars = gathered(&memory.stages);
    let part = |name: &str, bytes: &dyn Fn(&StageMemory) -> f64| Part {
        name: name.to_string(),
        values: bars.iter().map(|(_, _, stage)| bytes(stage) / GIB).collect(),
    };
    Bars {
        labels: bars.iter().map(|(first, last, _)| label(*first, *last, memory.stages.len())).collect(),
        parts: vec![
            part("Weights", &|stage| stage.weights),
            part("Gradients", &|stage| stage.gradients),
            part("Optimizer", &|stage| stage.optimizer),
            part("Activations", &|stage| stage.activations),
            part("Logits", &|stage| stage.logits),
            part("Buffers", &|stage| stage.buffers),
            part("Reserved", &|_| memory.reserved_bytes),
        ],
    }
}

fn label(first: usize, last: usize, stages: usize) -> String {
    match (first, last) {
        _ if stages == 1 => "Every GPU".to_string(),
        _ if first == last => format!("Stage {}", first + 1),
        _ => format!("Stages {}–{}", first + 1, last + 1),
    }
}

/// Neighbouring stages that hold as much as one: the first and the last of them, and what the fullest holds. What counts
/// as much is as fine as a chart can show.
fn gathered(stages: &[StageMemory]) -> Vec<(usize, usize, &StageMemory)> {
    let mut tolerance = 0.002;
    loop {
        let mut bars: Vec<(usize, usize, &StageMemory)> = Vec::new();
        for (index, stage) in stages.iter().enumerate() {
            match bars.last_mut() {
                Some((_, last, held)) if (stage.total() / held.total() - 1.0).abs() < tolerance => {
                    *last = index;
                    if stage.total() > held.total() {
                        *held = stage;
                    }
                }
                _ => bars.push((index, index, stage)),
            }
        }
        if bars.len() <= MOST_BARS || tolerance > 1.0 {
            return bars;
        }
        tolerance *= 2.0;
    }
}
