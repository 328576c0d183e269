//! Which of all plans is the best, and what is shown beside it.

use super::*;
use crate::estimate::Interval;
use crate::gpu_counts::GpuCounts;
use crate::search::{Candidate, LayoutSearch};

#[test]
fn numbers_of_gpus_have_the_same_spare_nodes_however_they_are_given() {
    let paid = |fields: &[(Field, &str)]| {
        let best = answer(&small(fields)).best().unwrap().clone();
        (best.gpus, best.time.paid_gpus)
    };
    for gpus in ["1024", "1024, 1024", "1024..1024"] {
        assert_eq!(paid(&[(Field::GpuRange, gpus)]), (1024, 1072), "{gpus}");
        assert_eq!(paid(&[(Field::GpuRange, gpus), (Field::SpareNodes, "0")]), (1024, 1024), "{gpus}");
    }
}

#[test]
fn the_fewest_gpus_that_do_only_as_predicted_are_known() {
    let enough = |gpus: &str, chance: &str| {
        let fields = [
            (Field::Model, "qwen3-235b-a22b"),
            (Field::Tokens, "10T"),
            (Field::GpuTypes, "b200"),
            (Field::Deadline, "60d"),
            (Field::GpuRange, gpus),
            (Field::Chance, chance),
        ];
        let question = ask(&fields);
        let found = answer(&question);
        (found.best().map(|run| run.gpus), found.enough_as_predicted(&question))
    };
    assert_eq!(enough("432, 480", "9-in-10"), (Some(480), Some(432)));
    assert_eq!(enough("480", "9-in-10"), (Some(480), None));
    // The expected days don't count measured software.
    assert_eq!(enough("432, 480", "even"), (Some(432), None));
}

#[test]
fn a_plan_is_a_scenario_with_the_same_step_time() {
    for model in ["llama3.1-70b", "qwen3-235b-a22b", "nemotron-h-8b"] {
        let question = ask(&[(Field::Model, model), (Field::Tokens, "2T"), (Field::GpuRange, "256")]);
        for offer in &question.offers {
            let answer = Survey::new(&question, offer).finish();
            for run in &answer.layouts {
                let predicted = run.spec(&question, offer).estimate().unwrap();
                assert_eq!(predicted.estimate.step_time_s, run.layout.step_time_s, "{model}");
                assert_eq!(predicted.estimate.memory.margin_bytes(), run.layout.memory.free_bytes);
                assert!((predicted.metrics.mfu.unwrap() / run.mfu - 1.0).abs() < 1e-9);
                let days = predicted.time_to_train_days.unwrap().mid;
                assert!((run.time.days_undisturbed.mid / days - 1.0).abs() < 1e-3 && run.days > days);
            }
        }
    }
}

#[test]
fn a_layout_of_which_more_is_known_comes_before_one_that_is_predicted_to_be_a_little_faster() {
    // NVIDIA's layout of 405B on 1,024 H100 was measured.
    let fields = [
        (Field::Model, "llama3.1-405b"),
        (Field::Tokens, "15T"),
        (Field::GpuTypes, "h100"),
        (Field::GpuRange, "1024"),
    ];
    let found = answer(&ask(&fields));
    let best = &found.layouts[0];
    let faster = found
        .layouts
        .iter()
        .find(|other| other.days < best.days && other.layout.confidence < best.layout.confidence);
    let faster = faster.expect("a layout that is predicted to be faster");
    assert!(best.time.high.days < faster.time.high.days);
    assert!(found.layouts.is_sorted_by(|one, other| one.time.high.days < other.time.high.days * 1.02));
}

#[test]
fn the_best_plan_is_the_first_of_the_layouts() {
    let base = [
        (Field::Model, "llama3.1-70b"),
        (Field::GpuTypes, "h100"),
        (Field::Tokens, "10T"),
        (Field::GpuRange, "1408"),
    ];
    let unmoved = answer(&ask(&base));
    let days = |run: &PlannedRun| run.time.high.days;
    let first = days(&unmoved.layouts[0]);
    let soonest = unmoved.layouts.iter().map(days).fold(first, f64::min);
    assert!(soonest < first - 0.1, "{soonest} {first}");
    // The first layout by rank misses this deadline, so that the best plan has another one.
    let limit = (soonest + first) / 2.0;
    let deadline = format!("{limit:.3}d");
    let fields: Vec<(Field, &str)> = base.into_iter().chain([(Field::Deadline, deadline.as_str())]).collect();
    let moved = answer(&ask(&fields));
    for found in [&moved, &unmoved] {
        assert_eq!(found.layouts.first(), found.best());
        let layouts: Vec<Candidate> = found.layouts.iter().map(|run| run.layout.candidate).collect();
        assert!(layouts[1..].iter().all(|layout| *layout != layouts[0]));
    }
    assert!(!unmoved.first_is_moved_up);
    assert!(moved.first_is_moved_up);
    assert_eq!(moved.layouts[1].layout.candidate, unmoved.layouts[0].layout.candidate);
    assert!(days(&moved.layouts[0]) <= limit + 0.001 && days(&moved.layouts[1]) > limit);
    // A budget that no plan meets leaves the plan in time the one that is shown, and whose cost is too high.
    let fields: Vec<(Field, &str)> = fields.into_iter().chain([(Field::Budget, "50k")]).collect();
    let found = answer(&ask(&fields));
    let Some(Unmet::TooExpensive { cost, .. }) = found.unmet else { panic!("{:?}", found.unmet) };
    let shown = found.shown().expect("a plan");
    assert_eq!((found.best(), shown.cost_with(Chance::NineInTen)), (None, Some(cost)));
    assert_eq!(shown.layout.candidate, moved.layouts[0].layout.candidate);
    assert_eq!(found.layouts.first(), Some(shown));
    assert!(found.first_is_moved_up && found.points.contains(shown));
}

#[test]
fn each_objective_chooses_its_own_plan() {
    let with = |objective: &str| answer(&small(&[(Field::Deadline, "200d"), (Field::Objective, objective)]));
    let [fewest, fastest, cheapest] =
        ["fewest-gpus", "fastest", "cheapest"].map(|objective| with(objective).best().unwrap().clone());
    assert!(fewest.gpus <= cheapest.gpus && cheapest.gpus <= fastest.gpus);
    assert!(fastest.days < fewest.days && cheapest.expected_cost <= fewest.expected_cost);
    assert!(cheapest.expected_cost <= fastest.expected_cost);
}

fn spread(cost: f64) -> Interval {
    Interval { low: cost * 0.9, mid: cost, high: cost * 1.1 }
}

#[test]
fn across_gpu_types_the_fewest_gpus_come_first_unless_they_clearly_cost_more() {
    let plan = |gpus, days, cost: Option<f64>| {
        let cost = cost.map(spread);
        Contender { gpus, days, cost, confidence: 0, doubt: 1.0 }
    };
    let priced = [plan(512, 50.0, Some(4e6)), plan(1024, 60.0, Some(3e6))];
    assert_eq!(Objective::FewestGpus.across_gpu_types(&priced), [1, 0]);
    assert_eq!(Objective::Cheapest.across_gpu_types(&priced), [1, 0]);
    assert_eq!(Objective::Fastest.across_gpu_types(&priced), [0, 1]);
    // The third clearly costs more than the second, but not more than the first.
    let overlapping =
        [plan(1024, 50.0, Some(3.3e6)), plan(2048, 60.0, Some(3e6)), plan(512, 50.0, Some(3.8e6))];
    assert_eq!(Objective::FewestGpus.across_gpu_types(&overlapping), [0, 1, 2]);
    let unpriced = [plan(1024, 60.0, Some(3e6)), plan(512, 50.0, None)];
    assert_eq!(Objective::FewestGpus.across_gpu_types(&unpriced), [1, 0]);
}

#[test]
fn of_plans_that_are_nearly_as_good_the_better_known_one_comes_first() {
    let plan = |days, cost, confidence| {
        let cost = Some(spread(cost));
        Contender { gpus: 512, days, cost, confidence, doubt: 1.0 }
    };
    let plans = [plan(50.0, 3.05e6, 1), plan(60.0, 3e6, 1), plan(58.0, 3.1e6, 2), plan(20.0, 4e6, 3)];
    assert_eq!(Objective::Cheapest.across_gpu_types(&plans), [2, 0, 1, 3]);
}

#[test]
fn the_plan_for_the_other_chance_is_faster_or_cheaper() {
    let mut named = 0;
    for days in ["15d", "20d", "30d", "45d", "60d"] {
        let answer = answer(&small(&[(Field::Deadline, days)]));
        let (Some(best), Some(other)) = (answer.best(), &answer.with_other_chance) else { continue };
        assert!(other.days <= best.days || other.expected_cost <= best.expected_cost, "{days}");
        named += 1;
    }
    assert!(named > 0);
}

#[test]
fn a_number_of_gpus_may_be_a_limit() {
    for text in ["up to 1,024", "<=1024", "≤ 1024", "..1024", "Up to 1024"] {
        assert_eq!(text.parse(), Ok(GpuCounts::UpTo(1024)), "{text}");
    }
    assert!("<=".parse::<GpuCounts>().is_err() && "up to 0".parse::<GpuCounts>().is_err());
}

#[test]
fn where_no_layout_works_the_smallest_change_is_named() {
    // Without recomputation or model parallelism, 405B never fit.
    let fields = [
        (Field::Model, "llama3.1-405b"),
        (Field::GpuTypes, "h100"),
        (Field::GpuRange, "512"),
        (Field::Lock, "tp=1,pp=1,fsdp=off"),
    ];
    let question = ask(&fields);
    let answer = answer(&question);
    assert_eq!(answer.unmet, Some(Unmet::NoLayout));
    let relaxation = &answer.relaxations[0];
    assert_eq!(relaxation.setting.field, Field::Lock);
    let changed = spec(&fields).with(relaxation.setting.field, &relaxation.setting.value).question().unwrap();
    let space = changed.space(&changed.offers[0]);
    assert!(!LayoutSearch::new(space).rank(512, 1).best.is_empty());
    // TP 16 would leave the NVLink domain. The nearest value that works is named, with the plan that it leads to.
    let fields = [
        (Field::Model, "llama3.1-70b"),
        (Field::GpuTypes, "h100"),
        (Field::Tokens, "10T"),
        (Field::Deadline, "60d"),
        (Field::Lock, "tp=16"),
    ];
    let found = super::answer(&ask(&fields));
    let [change] = &found.relaxations[..] else { panic!("{:?}", found.relaxations) };
    assert_eq!((change.setting.field, change.setting.value.as_str()), (Field::Lock, "tp=8"));
    let changed = super::answer(&spec(&fields).with(Field::Lock, "tp=8").question().unwrap());
    assert_eq!(changed.best(), Some(&change.run));
    // Too few GPUs: more are named.
    let question = ask(&[(Field::Model, "llama3.1-405b"), (Field::GpuTypes, "h100"), (Field::GpuRange, "8")]);
    let too_few = Survey::new(&question, &question.offers[0]).finish();
    assert_eq!(too_few.unmet, Some(Unmet::NoLayout));
    assert_eq!(too_few.relaxations[0].setting.field, Field::GpuRange);
    assert!(answer.counts.valid() > 0);
}

#[test]
fn a_number_of_gpus_without_a_layout_is_replaced_by_one_that_reaches_the_goal() {
    let on_seven = |deadline: &'static str| {
        [
            (Field::Model, "llama3.1-70b"),
            (Field::GpuTypes, "h100"),
            (Field::Tokens, "10T"),
            (Field::GpuRange, "7"),
            (Field::Deadline, deadline),
        ]
    };
    let fields = on_seven("60d");
    let found = answer(&ask(&fields));
    assert_eq!(found.unmet, Some(Unmet::NoLayout));
    let [change] = &found.relaxations[..] else { panic!("{:?}", found.relaxations) };
    assert_eq!(change.setting.field, Field::GpuRange);
    assert!(change.reaches_goal && change.run.time.high.days <= 60.0, "{}", change.run.time.high.days);
    assert_change_works(&fields, change);
    // If no number of GPUs is in time, the one that is named says so.
    let found = answer(&ask(&on_seven("0.05d")));
    let [change] = &found.relaxations[..] else { panic!("{:?}", found.relaxations) };
    assert!(!change.reaches_goal && change.run.days > 0.05);
}

#[test]
fn a_survey_finds_the_same_with_what_another_computed() {
    for model in ["llama3.1-8b", "qwen3-30b-a3b"] {
        let base = spec(&[
            (Field::Model, model),
            (Field::GpuTypes, "h100"),
            (Field::GpuRange, "64"),
            (Field::Tokens, "1T"),
            (Field::Deadline, "7d"),
        ]);
        let question = base.question().unwrap();
        let mut first = Survey::new(&question, &question.offers[0]);
        while first.step().is_ok() {}
        let assert_same = |changed: &Question, offer: &GpuOffer, change: &str| {
            let surveys = [first.again(changed, offer), Survey::new(changed, offer)];
            let [with_it, alone] = surveys.map(|survey| {
                let GpuAnswer { points, layouts, unmet, relaxations, .. } = survey.finish();
                (points, layouts, unmet, relaxations)
            });
            assert!(!alone.0.is_empty() && with_it == alone, "{model}, {change}: {with_it:?}, not {alone:?}");
        };
        for (field, text) in [
            (Field::Deadline, "60d"),
            (Field::Tokens, "100B"),
            (Field::GpuRange, "<=256"),
            (Field::BatchTokens, "2M"),
            (Field::Headroom, "20"),
            (Field::Lock, "tp=2"),
        ] {
            let changed = base.clone().with(field, text).question().unwrap();
            assert_same(&changed, &changed.offers[0], text);
        }
        let in_bf16 = question.offers[0].in_bf16().expect("another precision");
        assert_same(&question, &in_bf16, "BF16");
    }
}

#[test]
fn a_published_layout_stands_beside_the_best() {
    let question = ask(&[
        (Field::Model, "llama3.1-405b"),
        (Field::GpuTypes, "h100"),
        (Field::GpuRange, "512"),
        (Field::Gbs, "256"),
        (Field::Precisions, "fp8"),
        (Field::Stack, "nemo-2"),
    ]);
    let answer = answer(&question);
    let (recipe, run) = answer.published.as_ref().unwrap();
    assert_eq!((recipe.id.gpus, run.gpus), (512, 512));
    let best = answer.best().unwrap();
    assert!(best.layout.s_per_sequence() <= run.layout.s_per_sequence());
    assert_eq!(run.layout.candidate.tp, recipe.degrees.tp);
}

#[test]
fn a_range_of_batches_is_as_good_as_the_batches_in_it() {
    let base = [(Field::Model, "llama3.1-70b"), (Field::GpuTypes, "b200"), (Field::GpuRange, "768")];
    let days = |field: Field, text: &str| {
        let fields: Vec<(Field, &str)> = base.into_iter().chain([(field, text)]).collect();
        answer(&ask(&fields)).best().map_or(f64::INFINITY, |run| run.days)
    };
    let of_range = days(Field::BatchTokens, "6M..10M");
    for gbs in ["768", "960", "1024", "1152"] {
        assert!(of_range <= days(Field::Gbs, gbs) * 1.01, "{of_range} with the range, more than with {gbs}");
    }
}

#[test]
fn an_interleaved_pipeline_is_filled() {
    let fields = [(Field::Model, "llama3.1-70b"), (Field::GpuTypes, "b200"), (Field::GpuRange, "2048")];
    let answer = answer(&ask(&fields));
    assert!(!answer.layouts.is_empty());
    for run in &answer.layouts {
        let Candidate { gbs, mbs, tp, pp, cp, vp, .. } = run.layout.candidate;
        let ga = gbs / (mbs * (run.gpus / (tp * pp * cp)));
        assert!(vp == 1 || ga >= pp, "{}", run.layout.candidate);
    }
}
