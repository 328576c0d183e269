//! The prediction of a scenario: numbers for charts, and sentences for the page.

use super::launch::script_run;
use crate::message::{
    Bars, EvidenceRun, FieldChange, Part, PredictedLine, Prediction, Remedy as ShownRemedy, RunAsMeasured,
    WholeRun,
};
use crate::worker::typography::unbroken;
use trainplan_shared::estimate::{
    Anchor, Estimate, MUCH_BY_SOFTWARE, MemoryEstimate, MemoryPart, MemoryVerdict, StageGroup, StageMemory,
    StepPart, StepPartGroup,
};
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::message::Front;
use trainplan_shared::planning::{BatchGrowth, Predicted, Remedy};
use trainplan_shared::spec::Spec;
use trainplan_shared::units::{capacity, gib, one_decimal, seconds};

const GIB: f64 = 1_073_741_824.0;

/// Bars in a chart at most.
const MOST_BARS: usize = 16;
/// Relative difference of two bars that a chart can show.
const FINEST: f64 = 0.002;

/// Returns the prediction for a query's scenario; `None` if the query has no valid scenario.
pub(crate) fn predict(query: &str) -> Option<Prediction> {
    let spec = link::read(query).spec;
    let planned = spec.estimate().ok()?;
    let held_out = planned.held_out_error();
    // A plan takes as long, and as much memory, as its launch script.
    let script = script_run(&spec, &planned.scenario).flatten();
    let by_script = script.and_then(|script| Some((script.predict(&spec, &planned)?, script)));
    let slowdown = by_script.as_ref().map_or(1.0, |(_, script)| script.slowdown);
    let script = by_script.as_ref();
    let script = script.map(|(_, script)| format!("the launch script, which runs {}", script.software));
    let whose = script.as_ref().map(|script| format!(" All figures are for {script}."));
    let software = script.unwrap_or_else(|| planned.scenario.options.software.title());
    let predicted = by_script.map_or(planned, |(predicted, _)| predicted);
    let as_measured = with_measured_software(&spec, &predicted);
    let run = whole_run(&spec, &predicted);
    let never_ends = run.as_ref().and_then(|run| Some([" ", run.never_ends.as_deref()?].concat()));
    let Predicted { estimate, remedies, .. } = predicted;
    Some(Prediction {
        low_s: estimate.step_time_s.low,
        mid_s: estimate.step_time_s.mid,
        high_s: estimate.step_time_s.high,
        basis: unbroken(
            &[estimate.evidence.summary(), whose.unwrap_or_default(), never_ends.unwrap_or_default()]
                .concat(),
        ),
        predicted_for: format!("Predicted for {software}."),
        evidence: estimate.evidence.anchors.iter().map(evidence_run).collect(),
        held_out,
        time: time(&estimate),
        modelled_s: estimate.breakdown.step_time_s(),
        memory_verdict: estimate.memory.verdict(),
        fit: fit(&estimate.memory),
        remedies: remedies.iter().map(remedy).collect(),
        memory: memory(&estimate.memory),
        capacity_gib: estimate.memory.capacity_bytes / GIB,
        scaling: BatchGrowth::ALL.map(|growth| scaling(&spec, growth, slowdown)).into(),
        run,
        as_measured,
    })
}

/// Returns the step time on other numbers of GPUs, where launch scripts are taken to be as much slower as that of the plan.
fn scaling(spec: &Spec, growth: BatchGrowth, slowdown: f64) -> PredictedLine {
    let mut steps = spec.scaled_steps(growth).unwrap_or_default();
    for step in &mut steps {
        step.step_time_s *= slowdown;
    }
    PredictedLine { growth, steps }
}

/// Returns what the whole run takes with the software of the nearest measured run of the model on the GPU type, if nobody measured the
/// plan's and that one is clearly slower than what the page shows, which may be the launch script of the plan.
fn with_measured_software(spec: &Spec, shown: &Predicted) -> Option<RunAsMeasured> {
    let software = shown.estimate.evidence.measured_with?;
    let spec = spec.clone().with(Field::Stack, software.id());
    let measured = spec.estimate().ok()?;
    let [fast_s, slow_s] = [shown, &measured].map(|predicted| predicted.estimate.step_time_s.mid);
    let run = whole_run(&spec, &measured).filter(|_| slow_s >= fast_s * (1.0 + MUCH_BY_SOFTWARE))?;
    Some(RunAsMeasured { software: software.title().to_string(), step_time_s: slow_s, run })
}

/// Returns what the whole run takes, at the price that a search would assume.
fn whole_run(spec: &Spec, predicted: &Predicted) -> Option<WholeRun> {
    let plan = spec.run_plan(predicted).ok()??;
    let settings = spec.run_settings().ok()?;
    let price = settings.usual_price(&predicted.scenario.gpu.id);
    let cost = price.map(|price| {
        let [range, expected] = [(&plan.time, price), (&plan.expected, price.middle())]
            .map(|(time, price)| settings.cost(time, plan.tokens, price, plan.energy.power).total);
        [range.low, expected.high, range.high]
    });
    let term = price.filter(|price| price.term_beyond(plan.expected_days).is_some());
    let term = term.and_then(|price| Some(price.whole_term()?.times(plan.time.paid_gpus.into()).low));
    Some(WholeRun {
        whole_term: term,
        expected_days: plan.expected_days,
        never_ends: plan.never_ends.as_ref().map(|why| why.text(Front::Page)),
        days: (plan.days.low, plan.days.high),
        cost,
        currency: plan.currency.clone(),
        purchase: price.and_then(|price| price.source.purchase()),
        mwh: (plan.energy.mwh.low, plan.energy.mwh.high),
        failures: (plan.failures.low, plan.failures.high),
        goodput: (plan.goodput.low, plan.goodput.high),
    })
}

fn evidence_run(anchor: &Anchor) -> EvidenceRun {
    EvidenceRun {
        what: anchor.records.first().map_or(String::new(), |record| record.configuration().what.clone()),
        layout: anchor.layout.clone(),
        runs: anchor.runs().cloned().collect(),
        closeness: anchor.closeness,
        likeness: anchor.likeness,
    }
}

/// The share of a step below which a part has no bar: it would not be seen.
const SHORTEST_SHOWN: f64 = 0.001;

/// One bar for each part of the step, in the part's group, and one for the correction by measured runs.
fn time(estimate: &Estimate) -> Bars {
    let breakdown = &estimate.breakdown;
    let shortest_s = breakdown.step_time_s() * SHORTEST_SHOWN;
    let spent: Vec<(StepPart, f64)> =
        breakdown.parts().into_iter().filter(|(_, seconds)| *seconds > shortest_s).collect();
    let group = |group: StepPartGroup| Part {
        name: group.title().to_string(),
        values: spent
            .iter()
            .map(|(part, seconds)| if part.group() == group { *seconds } else { 0.0 })
            .collect(),
    };
    let mut bars = Bars {
        labels: spent.iter().map(|(part, _)| part.title().to_string()).collect(),
        parts: StepPartGroup::ALL.map(group).into(),
    };
    let correction_s = estimate.correction_s();
    if correction_s.abs() > shortest_s {
        bars.labels.push("Correction".to_string());
        bars.parts.iter_mut().for_each(|part| part.values.push(0.0));
        let mut values = vec![0.0; spent.len()];
        values.push(correction_s);
        bars.parts.push(Part { name: "Correction by measured runs".to_string(), values });
    }
    bars
}

/// Returns whether the scenario fits, where it is fullest, and by how much.
fn fit(memory: &MemoryEstimate) -> String {
    let [needed, free] = [memory.needed_bytes(), memory.margin_bytes()].map(|bytes| bytes / GIB);
    let capacity = capacity(memory.capacity_bytes / GIB);
    let stage = memory.peak_stage + 1;
    match (memory.verdict(), memory.stages.len()) {
        (MemoryVerdict::Fits, 1) => format!("Fits, with {} of {capacity} free.", one_decimal(free)),
        (MemoryVerdict::Fits, stages) => {
            format!(
                "Fits, with {} of {capacity} free on the fullest stage ({stage} of {stages}).",
                one_decimal(free)
            )
        }
        (MemoryVerdict::TooClose, stages) => {
            let gpu = if stages > 1 { format!("stage {stage} of {stages}") } else { "a GPU".to_string() };
            format!(
                "Memory is too close to call: {gpu} needs about {} of {capacity}, and the estimate may be off by {}.",
                one_decimal(needed),
                gib(memory.error_bytes / GIB)
            )
        }
        (MemoryVerdict::DoesNotFit, 1) => {
            format!("Doesn't fit: a GPU needs {}; it has {capacity}.", gib(needed))
        }
        (MemoryVerdict::DoesNotFit, stages) => {
            format!("Doesn't fit: stage {stage} of {stages} needs {}; the GPU has {capacity}.", gib(needed))
        }
    }
}

/// Returns the changes as a chip: its title, and the fields to set.
fn remedy(remedy: &Remedy) -> ShownRemedy {
    let changes = remedy.changes.iter();
    ShownRemedy {
        title: format!(
            "{}: {} per step",
            remedy.changes(", ").text(Front::Page),
            seconds(remedy.step_time_s)
        ),
        changes: changes
            .map(|change| FieldChange { field: change.field, value: change.value.clone() })
            .collect(),
    }
}

/// One bar for each group of similar stages.
fn memory(memory: &MemoryEstimate) -> Bars {
    let bars = grouped(memory);
    let part = |name: &str, bytes: &dyn Fn(&StageMemory) -> f64| Part {
        name: name.to_string(),
        values: bars.iter().map(|bar| bytes(&bar.memory) / GIB).collect(),
    };
    let mut parts: Vec<Part> =
        MemoryPart::ALL.iter().map(|kind| part(kind.title(), &|stage| stage.part(*kind))).collect();
    parts.push(part("Reserved", &|_| memory.reserved_bytes));
    Bars { labels: bars.iter().map(StageGroup::title).collect(), parts }
}

/// Groups similar stages, more coarsely until there are few enough bars.
fn grouped(memory: &MemoryEstimate) -> Vec<StageGroup> {
    let mut tolerance = FINEST;
    loop {
        let groups = memory.stage_groups(tolerance);
        if groups.len() <= MOST_BARS || tolerance > 1.0 {
            return groups;
        }
        tolerance *= 2.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::estimate::Closeness;
    use trainplan_shared::message::Setting;
    use trainplan_shared::question::Survey;

    fn memory_of(stages: &[f64]) -> MemoryEstimate {
        let stage = |gib: &f64| StageMemory { weights: gib * GIB, ..StageMemory::default() };
        let fullest = stages.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        MemoryEstimate {
            stages: stages.iter().map(stage).collect(),
            peak_stage: fullest.0,
            capacity_bytes: 80.0 * GIB,
            reserved_bytes: 4.0 * GIB,
            error_bytes: 0.0,
        }
    }

    #[test]
    fn the_fit_names_the_fullest_stage() {
        let text = |stages: &[f64]| fit(&memory_of(stages));
        assert_eq!(text(&[50.0, 53.5]), "Fits, with 22.5 of 80\u{a0}GiB free on the fullest stage (2 of 2).");
        assert_eq!(
            text(&[124.0, 50.0]),
            "Doesn't fit: stage 1 of 2 needs 128.0\u{a0}GiB; the GPU has 80\u{a0}GiB."
        );
        assert_eq!(text(&[76.0]), "Fits, with 0.0 of 80\u{a0}GiB free.");
        assert_eq!(text(&[96.0]), "Doesn't fit: a GPU needs 100.0\u{a0}GiB; it has 80\u{a0}GiB.");
    }

    #[test]
    fn each_measured_run_behind_a_prediction_has_its_similarity_its_step_time_and_its_error() {
        let prediction = predict("r=llama3.1-405b/h100/fp8/512@25.04").expect("a recipe");
        let nearest = prediction.evidence.first().expect("a measured recipe");
        assert_eq!(nearest.closeness, Closeness::Same);
        assert!(nearest.what.contains("512 H100") && !nearest.layout.is_empty(), "{nearest:?}");
        let [run] = &*nearest.runs else { panic!("{nearest:?}") };
        assert_eq!((run.step_time_s, run.release.as_str()), (12.37, "DGX Cloud recipes 25.04"));
        assert!(run.held_out_error.is_some() && run.url.is_some(), "{nearest:?}");
        let on_h100 = prediction.evidence.iter().filter(|run| run.what.contains(" H100"));
        assert!(on_h100.is_sorted_by(|one, next| one.likeness >= next.likeness));
    }

    #[test]
    fn the_time_with_measured_software_is_named_where_nobody_measured_that_of_the_plan() {
        let question = link::read("m=qwen3-235b-a22b&t=10T&gs=b200&nr=432&by=60d").spec.question();
        let question = question.expect("a question");
        let offer = &question.offers[0];
        let answer = Survey::new(&question, offer).finish();
        let plan = answer.shown().expect("a plan").spec(&question, offer);
        let (software, run) = answer.with_measured_software.as_ref().expect("measured software");
        let predicted = |spec: &Spec| predict(&link::write(spec)).expect("a prediction");
        let of = |spec: &Spec| predicted(spec).as_measured;
        let named = of(&plan).expect("measured software");
        assert!(named.step_time_s >= predicted(&plan).mid_s * (1.0 + MUCH_BY_SOFTWARE), "{named:?}");
        assert_eq!(named.software, software.title());
        // The search counts the steps differently.
        assert!((named.run.expected_days / run.days - 1.0).abs() < 0.005, "{named:?} {}", run.days);
        assert_eq!(of(&plan.with(Field::Stack, software.id())), None);
    }

    #[test]
    fn a_prediction_names_its_software() {
        let prediction = predict("m=llama3.1-8b&gpu=h100&n=8&gbs=128&stack=torchtitan&fsdp=on");
        assert_eq!(prediction.expect("a prediction").predicted_for, "Predicted for torchtitan.");
    }

    #[test]
    fn the_bars_of_a_step_end_at_the_predicted_time() {
        let Prediction { time, modelled_s, mid_s, .. } =
            predict("r=llama3.1-405b/h100/fp8/512@25.04").expect("a recipe");
        let bars: Vec<f64> =
            (0..time.labels.len()).map(|bar| time.parts.iter().map(|part| part.values[bar]).sum()).collect();
        let correction_s = bars[bars.len() - 1];
        assert_eq!(time.labels[bars.len() - 1], "Correction");
        assert!(correction_s < 0.0 && (modelled_s + correction_s - mid_s).abs() < 1e-9, "{bars:?}");
        // Parts that are too short have no bar.
        assert!((bars.iter().sum::<f64>() / mid_s - 1.0).abs() < 0.01, "{bars:?}");
    }

    #[test]
    fn similar_stages_share_a_bar() {
        let bars = memory(&memory_of(&[60.0, 50.0, 50.05, 30.0]));
        assert_eq!(bars.labels, ["Stage 1", "Stages 2–3", "Stage 4"]);
        assert_eq!(bars.parts.last().unwrap().values, [4.0; 3]);
        let many: Vec<f64> = (10..70).map(f64::from).collect();
        assert!(memory(&memory_of(&many)).labels.len() <= MOST_BARS);
    }

    #[test]
    fn a_remedy_names_its_fields_by_their_labels() {
        let changes = vec![Setting::new(Field::Tp, 8), Setting::new(Field::Recompute, "full")];
        let shown = remedy(&Remedy { changes, step_time_s: 12.345 });
        assert_eq!(shown.title, "TP 8, Recompute full: 12.3\u{a0}s per step");
        let fields: Vec<Field> = shown.changes.iter().map(|change| change.field).collect();
        assert_eq!(fields, [Field::Tp, Field::Recompute]);
    }
}
