//! What the search found, as messages.

use crate::message::search::{
    AskedGoal, AskedGpu, AskedQuestion, FoundAnswer, FoundChange, FoundFamily, FoundPlan, Spread, Trust,
};
use trainplan_shared::estimate::Confidence;
use trainplan_shared::layout::PipelineSplit;
use trainplan_shared::link;
use trainplan_shared::precision::Dtype;
use trainplan_shared::question::{Goal, GpuAnswer, GpuOffer, PlannedRun, Question, Relaxation};
use trainplan_shared::search::Candidate;

/// Families of layouts that the page lists.
const LISTED_FAMILIES: usize = 10;

/// Layouts among which they are looked for. Many differ only in VP, the pipeline split or the batch.
pub(crate) const LISTED: usize = 6 * LISTED_FAMILIES;

const GIB: f64 = 1_073_741_824.0;

/// Returns the question as it was read.
pub(super) fn asked(question: &Question) -> AskedQuestion {
    let tokens = |gbs: Option<&u32>| f64::from(*gbs.unwrap_or(&0)) * f64::from(question.seq_len);
    AskedQuestion {
        model: question.model.title.clone(),
        tokens: question.tokens,
        batch_tokens: (tokens(question.gbs.sizes().first()), tokens(question.gbs.sizes().last())),
        batch_is_assumed: question.gbs.are_assumed(),
        goal: match question.goal {
            Goal::Deadline(days) => AskedGoal::Deadline(days),
            Goal::Budget(budget) => AskedGoal::Budget(budget),
            Goal::Open => AskedGoal::Open,
        },
        chance: (!matches!(question.goal, Goal::Open)).then_some(question.chance),
        max_cost: question.max_cost,
        longest_days: question.longest_days(),
        objective: Some(question.objective),
        currency: question.settings.currency.to_string(),
        offers: question.offers.iter().map(asked_gpu).collect(),
    }
}

fn asked_gpu(offer: &GpuOffer) -> AskedGpu {
    AskedGpu {
        id: offer.gpu.id.clone(),
        name: offer.gpu.name.clone(),
        memory_gib: offer.gpu.hbm_gb,
        price: offer.price.as_ref().map(|price| (price.per_gpu_hour.low, price.per_gpu_hour.high)),
        is_single_quote: offer.price.is_some_and(|price| price.is_single_quote()),
        purchase: offer.price.and_then(|price| price.source.purchase()),
        price_from: offer.price.and_then(|price| price.source.estimated_from()).map(str::to_string),
        whole_term: offer.price.and_then(|price| price.whole_term()).map(|term| (term.low, term.high)),
        on_demand_factor: offer.on_demand_factor().map(|[low, mid, high]| Spread { low, mid, high }),
        is_bf16_one_of_several: offer.in_bf16().is_some(),
        software: offer.options.software.title(),
    }
}

/// Returns a plan with the query of its scenario.
pub(crate) fn plan(question: &Question, offer: &GpuOffer, run: &PlannedRun) -> FoundPlan {
    let (layout, time) = (&run.layout, &run.time);
    let step = layout.step_time_s;
    let cost = run.cost.as_ref().map(|cost| Spread {
        low: cost.total.low,
        mid: run.expected_cost.unwrap_or(cost.total.low),
        high: cost.total.high,
    });
    let mwh = run.energy.mwh;
    FoundPlan {
        gpus: run.gpus,
        query: link::write(&run.spec(question, offer)),
        layout: layout.candidate.to_string(),
        precision: precision_text(layout.candidate.dtype),
        is_in_bf16: layout.candidate.dtype == Dtype::Bf16,
        step_s: Spread { low: step.low, mid: step.mid, high: step.high },
        batch_tokens: f64::from(layout.candidate.gbs) * f64::from(question.seq_len),
        days: days(run),
        cost,
        mwh: Spread { low: mwh.low, mid: (mwh.low + mwh.high) / 2.0, high: mwh.high },
        tokens_per_s_per_gpu: run.tokens_per_s_per_gpu,
        mfu: run.mfu,
        spare_gib: layout.memory.free_bytes / GIB,
        memory_error_gib: layout.memory.error_bytes / GIB,
        memory: layout.memory.verdict(),
        trust: match layout.confidence {
            // Nobody measured a GPU of the user's own.
            Confidence::High | Confidence::Medium if is_own(offer) => Trust::Modelled,
            Confidence::High => Trust::Measured,
            Confidence::Medium => Trust::Near,
            Confidence::Low => Trust::Modelled,
            Confidence::Lowest => Trust::Unmeasured,
        },
        goodput: (time.high.goodput, time.low.goodput),
        spare_nodes: time.spare_nodes,
        paid_gpus: time.paid_gpus,
        measured_software: None,
    }
}

/// Whether the GPU type is one of the user's own.
fn is_own(offer: &GpuOffer) -> bool {
    offer.gpu.id.contains(':')
}

/// Returns the title of a precision, which says that the second word is the scaling: `FP8 (current scaling)`.
fn precision_text(dtype: Dtype) -> String {
    match dtype.title().split_once(' ') {
        Some((width, scaling)) => format!("{width} ({scaling} scaling)"),
        None => dtype.title().to_string(),
    }
}

fn days(run: &PlannedRun) -> Spread {
    Spread { low: run.time.low.days, mid: run.days, high: run.time.high.days }
}

/// Returns the answer for a GPU type.
pub(crate) fn answer(question: &Question, offer: &GpuOffer, answer: &GpuAnswer) -> FoundAnswer {
    let plan = |run: &PlannedRun| plan(question, offer, run);
    let space = question.space(offer);
    let judged = |run: &PlannedRun| match answer.layout_missing_with(run, &space, question, offer) {
        Some((software, mut measured)) => {
            // Only its time and its cost are judged with other software.
            measured.layout.memory = run.layout.memory;
            FoundPlan { measured_software: Some(software.to_string()), ..plan(&measured) }
        }
        None => plan(run),
    };
    let counts = &answer.counts;
    FoundAnswer {
        plan: answer.shown().map(plan),
        layouts: families(&answer.layouts, judged),
        first_is_moved_up: answer.first_is_moved_up,
        published: answer.published.as_ref().map(|(recipe, run)| (recipe.id.to_string(), judged(run))),
        considered: counts.combinations,
        valid: counts.valid(),
        discarded: counts.reasons().map(|(rule, count)| (rule.title().to_string(), count)).collect(),
        with_measured_software: answer
            .with_measured_software
            .as_ref()
            .filter(|_| !is_own(offer))
            .map(|(software, run)| (software.title().to_string(), days(run))),
        enough_as_predicted: answer.enough_as_predicted(question),
        most_tokens: answer.most_tokens(question, offer).map(|most| (most.tokens, plan(&most.run))),
        with_other_chance: answer.with_other_chance.as_ref().map(plan),
        unmet: answer.unmet,
        changes: answer.relaxations.iter().map(change).collect(),
    }
}

/// Returns the layouts in families, the best first, at most as many as the page lists.
fn families(layouts: &[PlannedRun], plan: impl Fn(&PlannedRun) -> FoundPlan) -> Vec<FoundFamily> {
    let kind =
        |run: &PlannedRun| Candidate { vp: 1, split: &PipelineSplit::Even, gbs: 1, ..run.layout.candidate };
    let mut families: Vec<(Candidate, FoundFamily)> = Vec::new();
    for run in layouts {
        let its = kind(run);
        match families.iter().position(|(of, _)| *of == its) {
            Some(place) => families[place].1.others.push(plan(run)),
            None if families.len() < LISTED_FAMILIES => {
                families.push((its, FoundFamily { best: plan(run), others: Vec::new() }));
            }
            None => {}
        }
    }
    families.into_iter().map(|(_, family)| family).collect()
}

fn change(change: &Relaxation) -> FoundChange {
    FoundChange {
        key: change.setting.field.key().to_string(),
        value: change.setting.value.clone(),
        reaches_goal: change.reaches_goal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::field::Field;
    use trainplan_shared::question::Survey;

    #[test]
    fn a_precision_says_how_it_is_scaled() {
        let texts = [Dtype::Bf16, Dtype::Fp8Current, Dtype::Mxfp8].map(precision_text);
        assert_eq!(texts, ["BF16", "FP8 (current scaling)", "MXFP8"]);
    }

    #[test]
    fn a_price_and_the_number_of_layouts_are_those_of_the_command_line() {
        let spec = link::read("m=llama3.1-70b&t=1T&gs=b200,h100&nr=64&buy=on-demand").spec;
        let question = spec.question().expect("a question");
        let single: Vec<bool> = asked(&question).offers.iter().map(|gpu| gpu.is_single_quote).collect();
        assert_eq!(single, [true, false]);
        let offer = &question.offers[0];
        let [page, command_line] = [LISTED, 10].map(|listed| {
            let found = Survey::new(&question, offer).listing(listed).finish();
            let FoundAnswer { considered, valid, discarded, .. } = answer(&question, offer, &found);
            (considered, valid, discarded)
        });
        assert_eq!(page, command_line);
    }

    #[test]
    fn layouts_that_miss_the_goal_with_measured_software_have_its_figures() {
        let spec = link::read("m=qwen3-235b-a22b&t=10T&gs=b200&nr=432&by=60d").spec;
        let question = spec.question().expect("a question");
        let offer = &question.offers[0];
        let found = Survey::new(&question, offer).listing(LISTED).finish();
        let answer = answer(&question, offer, &found);
        let (planned, judged) = answer.plan.as_ref().zip(answer.judged()).expect("a plan");
        // Otherwise this shows nothing: choose a number of GPUs whose range ends in time.
        assert!(planned.days.high <= 60.0 && judged.days.mid > 60.0, "{planned:?}");
        assert_eq!(judged.measured_software.as_deref(), found.measured_software());
        let (software, measured) = found.with_measured_software.as_ref().expect("measured software");
        assert_eq!(judged.days, days(measured), "{software:?}");
        // Its cost is that of the same run.
        let cost = measured.cost.expect("a price").total;
        assert_eq!(judged.cost.map(|cost| (cost.low, cost.high)), Some((cost.low, cost.high)));
        assert_eq!((&judged.query, judged.spare_gib), (&planned.query, planned.spare_gib));
    }

    #[test]
    fn layouts_of_a_family_differ_only_in_vp_split_and_batch() {
        let spec = link::read("m=llama3.1-70b&t=1T&gs=h100&nr=256&bt=4M..8M").spec;
        let question = spec.question().expect("a question");
        let offer = &question.offers[0];
        let mut survey = Survey::new(&question, offer).listing(LISTED);
        while survey.step().is_ok() {}
        let answer = survey.answer();
        let families = families(&answer.layouts, |run| plan(&question, offer, run));
        assert_eq!(families[0].best, plan(&question, offer, &answer.layouts[0]));
        assert!(families.len() > 1 && families.len() <= LISTED_FAMILIES);
        let kind = |found: &FoundPlan| {
            let free = [Field::Vp, Field::PipelineSplit, Field::Gbs].into_iter();
            free.fold(link::read(&found.query).spec, |spec, field| spec.with(field, ""))
        };
        for (place, family) in families.iter().enumerate() {
            assert!(family.others.iter().all(|other| kind(other) == kind(&family.best)));
            assert!(families[..place].iter().all(|earlier| kind(&earlier.best) != kind(&family.best)));
        }
        assert!(families.iter().any(|family| !family.others.is_empty()));
    }
}
