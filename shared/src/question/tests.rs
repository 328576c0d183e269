use super::*;
use crate::estimate::Distance;
use crate::field::Field;
use crate::gpu_counts::GpuCounts;
use crate::message::Front;
use crate::problem::Problem;
use crate::search::{Candidate, LayoutSearch};
use crate::spec::Spec;

fn spec(fields: &[(Field, &str)]) -> Spec {
    fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
}

fn ask(fields: &[(Field, &str)]) -> Question {
    spec(fields).question().unwrap()
}

fn refused(fields: &[(Field, &str)]) -> Vec<Problem> {
    spec(fields).question().unwrap_err()
}

/// Llama 3.1 8B on 1T tokens with the H100, and more.
fn small(more: &[(Field, &str)]) -> Question {
    let fields = [(Field::Model, "llama3.1-8b"), (Field::Tokens, "1T"), (Field::GpuTypes, "h100")];
    ask(&[&fields, more].concat())
}

#[test]
fn gpu_types_that_nobody_measured_are_compared_only_if_they_are_named() {
    let of = |fields: &[(Field, &str)]| {
        let question = ask(&[&[(Field::Model, "llama3.1-8b"), (Field::Tokens, "1T")], fields].concat());
        let is_far = |offer: &GpuOffer| {
            Distance::all_of(&offer.gpu, 8, false, &offer.options.software).contains(&Distance::Gpu)
        };
        question.offers.iter().map(is_far).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), [false, false]);
    assert_eq!(of(&[(Field::GpuTypes, "h100,vr200")]), [false, true]);
    let problems = refused(&[
        (Field::Model, "llama3.1-8b"),
        (Field::GpuTypes, "vr200"),
        (Field::Stack, "megatron-bridge-26.02"),
    ]);
    assert!(problems[0].to_string().contains("doesn't run on the VR200"), "{}", problems[0]);
}

#[test]
fn precisions_are_named_or_excluded() {
    let dtypes = |text: &str| {
        let question =
            ask(&[(Field::Model, "llama3.1-8b"), (Field::GpuTypes, "b200"), (Field::Precisions, text)]);
        question.offers[0].dtypes.iter().map(|dtype| dtype.id()).collect::<Vec<_>>().join(",")
    };
    let texts = ["", "bf16, nvfp4", "no fp8", "no nvfp4, mxfp8", "bf16,mxfp8,nvfp4,no bf16,no fp8"];
    assert_eq!(texts.map(dtypes), ["bf16,mxfp8", "bf16,nvfp4", "bf16", "bf16", "nvfp4"]);
    let problems = refused(&[(Field::Model, "llama3.1-8b"), (Field::Precisions, "no fp9")]);
    assert_eq!(problems[0].field, Field::Precisions);
    assert_eq!(refused(&[(Field::Model, "llama3.1-8b"), (Field::Precisions, "fp8,no fp8")]).len(), 2);
}

#[test]
fn precisions_can_be_chosen_that_any_gpu_type_computes_in() {
    let choices = |types: &str, text: &str| {
        let question =
            ask(&[(Field::Model, "llama3.1-8b"), (Field::GpuTypes, types), (Field::Precisions, text)]);
        let title = |choice: PrecisionChoice| {
            format!("{}{}", if choice.is_permitted { "+" } else { "-" }, choice.dtype.id())
        };
        question.precision_choices().into_iter().map(title).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(choices("a100", ""), "+bf16");
    assert_eq!(choices("h100", ""), "+bf16 +fp8-current -fp8-delayed -fp8-block");
    assert_eq!(
        choices("h100,b200", "bf16,mxfp8"),
        "+bf16 -fp8-current -fp8-delayed -fp8-block +mxfp8 -nvfp4"
    );
}

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

fn answer(question: &Question) -> GpuAnswer {
    Survey::new(question, &question.offers[0]).finish()
}

#[test]
fn a_deadline_is_met_by_the_fewest_gpus() {
    let question = small(&[(Field::Deadline, "20d")]);
    let answer = answer(&question);
    let best = answer.best().unwrap();
    assert!(best.time.high.days <= 20.0 && answer.unmet.is_none());
    // Every whole node below it was tried, down to the round count that is too slow.
    let below: Vec<&PlannedRun> = answer.points.iter().filter(|point| point.gpus < best.gpus).collect();
    assert!(!below.is_empty() && below.iter().all(|point| point.time.high.days > 20.0));
    assert_eq!(answer.layouts[0].layout, best.layout);
    assert!(answer.layouts.iter().all(|run| run.gpus == best.gpus));
    assert!(answer.points.is_sorted_by_key(|point| point.gpus));
}

#[test]
fn a_number_of_gpus_with_a_comma_is_not_taken_for_a_list() {
    let counts = |text: &str| small(&[(Field::GpuRange, text)]).counts;
    assert_eq!(counts("1,024"), GpuCounts::Only(vec![1024]));
    assert_eq!(counts("2,560"), GpuCounts::Only(vec![2560]));
    assert_eq!(counts("64,128,256"), GpuCounts::Only(vec![64, 128, 256]));
    assert_eq!(counts("512,768"), GpuCounts::Only(vec![512, 768]));
    assert_eq!(counts("16, 384"), GpuCounts::Only(vec![16, 384]));
    let fields = [(Field::Model, "llama3.1-8b"), (Field::GpuRange, "16,384")];
    let problem = refused(&fields).remove(0);
    assert!(problem.to_string().contains("Write 16384 or \"16, 384\"."), "{problem}");
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
fn a_deadline_that_cannot_be_met_names_the_fastest_plan() {
    let question = small(&[(Field::Deadline, "1d"), (Field::GpuRange, "8..64")]);
    let answer = answer(&question);
    let fastest = answer.points.iter().map(|point| point.time.high.days).fold(f64::INFINITY, f64::min);
    assert_eq!(answer.unmet, Some(Unmet::TooSlow { days: fastest }));
    assert!(answer.best().is_none() && !answer.layouts.is_empty() && answer.with_other_chance.is_none());
}

#[test]
fn a_plan_that_is_late_only_with_measured_software_is_judged_with_it() {
    let found = |gpus: &str| {
        let fields = [
            (Field::Model, "qwen3-235b-a22b"),
            (Field::GpuTypes, "b200"),
            (Field::Tokens, "10T"),
            (Field::Deadline, "60d"),
            (Field::GpuRange, gpus),
        ];
        answer(&ask(&fields))
    };
    let late = found("384");
    let Some(Unmet::TooSlow { days }) = late.unmet else { panic!("{:?}", late.unmet) };
    let range_end = late.shown().expect("a plan").time.high.days;
    // Otherwise this shows nothing: choose a number of GPUs whose range ends in time.
    assert!(range_end <= 60.0 && days > 60.0, "{range_end} {days}");
    let judged = late.missing_with().map(|(software, run)| (software, run.gpus, run.days));
    assert_eq!(judged, Some((late.measured_software().expect("a title"), 384, days)));
    let in_time = found("480");
    assert!(in_time.with_measured_software.is_some() && in_time.missing_with().is_none());
}

/// Returns the question with a change, and asserts that a plan reaches its goal.
fn assert_change_works(fields: &[(Field, &str)], change: &Relaxation) {
    let changed = spec(fields).with(change.setting.field, &change.setting.value).question().unwrap();
    let found = answer(&changed);
    let best =
        found.best().unwrap_or_else(|| panic!("{:?} does not work: {:?}", change.setting, found.unmet));
    // Which may be better than the plan that was tried.
    assert!(best.gpus <= change.run.gpus, "{:?}", change.setting);
}

#[test]
fn every_change_named_for_a_missed_deadline_works() {
    let fields = [
        (Field::Model, "llama3.1-8b"),
        (Field::GpuTypes, "h100"),
        (Field::Tokens, "1T"),
        (Field::Deadline, "7d"),
        (Field::GpuRange, "8..64"),
    ];
    let changes = answer(&ask(&fields)).relaxations;
    let changed: Vec<Field> = changes.iter().map(|change| change.setting.field).collect();
    assert_eq!(changed, [Field::GpuRange, Field::Deadline, Field::Tokens]);
    for change in &changes {
        assert_change_works(&fields, change);
    }
    // Far beyond what any number of GPUs reaches, more of them are not named.
    let changes = answer(&small(&[(Field::Deadline, "0.05d")])).relaxations;
    assert!(changes.iter().all(|change| change.setting.field != Field::GpuRange) && changes.len() == 2);
}

#[test]
fn every_change_named_for_a_budget_works() {
    // The cheapest plan for 10T is on a number of GPUs that a search for fewer tokens doesn't try.
    for (model, tokens, budget) in [("llama3.1-8b", "1T", "20k"), ("llama3.1-70b", "10T", "5M")] {
        let fields = [
            (Field::Model, model),
            (Field::GpuTypes, "h100"),
            (Field::Tokens, tokens),
            (Field::Budget, budget),
            (Field::Price, "3.5"),
        ];
        let changes = answer(&ask(&fields)).relaxations;
        let changed: Vec<Field> = changes.iter().map(|change| change.setting.field).collect();
        assert_eq!(changed, [Field::Budget, Field::Tokens]);
        for change in &changes {
            let changed = spec(&fields).with(change.setting.field, &change.setting.value).question().unwrap();
            assert!(answer(&changed).best().is_some(), "{:?}", change.setting);
        }
    }
}

#[test]
fn a_deadline_and_a_budget_are_both_met() {
    let fields = |deadline, budget| {
        [
            (Field::Model, "llama3.1-8b"),
            (Field::GpuTypes, "h100"),
            (Field::Tokens, "1T"),
            (Field::Price, "2"),
            (Field::Deadline, deadline),
            (Field::Budget, budget),
        ]
    };
    let ask = |deadline, budget| ask(&fields(deadline, budget));
    let found = answer(&ask("20d", "1M"));
    let best = found.best().unwrap();
    assert!(best.time.high.days <= 20.0 && best.cost.unwrap().total.high <= 1e6);
    assert_eq!(
        best.gpus,
        answer(&small(&[(Field::Deadline, "20d"), (Field::Price, "2")])).best().unwrap().gpus
    );
    // In time, but too expensive: the cheapest plan in time is named, and each change works.
    let both = fields("2d", "30k");
    let found = answer(&ask("2d", "30k"));
    let Some(Unmet::TooExpensive { cost, .. }) = found.unmet else { panic!("{:?}", found.unmet) };
    let in_time = found.points.iter().filter(|point| point.time.high.days <= 2.0);
    let costs = in_time.filter_map(|point| point.cost_with(Chance::NineInTen));
    assert_eq!(cost, costs.fold(f64::INFINITY, f64::min));
    let changed: Vec<Field> = found.relaxations.iter().map(|change| change.setting.field).collect();
    assert!(changed.starts_with(&[Field::Budget]), "{changed:?}");
    for change in &found.relaxations {
        let changed = spec(&both).with(change.setting.field, &change.setting.value).question().unwrap();
        assert!(answer(&changed).best().is_some(), "{:?}", change.setting);
    }
}

#[test]
fn a_plan_is_sought_for_each_chance_to_meet_the_deadline() {
    let with = |chance: &str| answer(&small(&[(Field::Deadline, "12d"), (Field::Chance, chance)]));
    let (sure, even) = (with("9-in-10"), with("even"));
    let gpus = |run: Option<&PlannedRun>| run.unwrap().gpus;
    assert!(sure.best().unwrap().time.high.days <= 12.0 && even.best().unwrap().days <= 12.0);
    assert!(gpus(sure.best()) > gpus(even.best()));
    // Each names the other one, which its own search came close to.
    assert_eq!(gpus(sure.with_other_chance.as_ref()), gpus(even.best()));
    assert_eq!(gpus(even.with_other_chance.as_ref()), gpus(sure.best()));
    assert_eq!(small(&[]).chance, Chance::NineInTen);
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
fn a_deadline_that_is_met_only_as_likely_as_not_may_be_asked_for_so() {
    let best =
        answer(&small(&[(Field::Deadline, "10d"), (Field::Chance, "even")])).best().unwrap().gpus.to_string();
    let fields = [
        (Field::Model, "llama3.1-8b"),
        (Field::GpuTypes, "h100"),
        (Field::Tokens, "1T"),
        (Field::Deadline, "10d"),
        (Field::GpuRange, best.as_str()),
    ];
    let found = answer(&ask(&fields));
    assert!(matches!(found.unmet, Some(Unmet::TooSlow { days }) if days > 10.0));
    let changed: Vec<Field> = found.relaxations.iter().map(|change| change.setting.field).collect();
    assert_eq!(changed, [Field::GpuRange, Field::Chance, Field::Deadline, Field::Tokens]);
    for change in &found.relaxations {
        let changed = spec(&fields).with(change.setting.field, &change.setting.value).question().unwrap();
        assert!(answer(&changed).best().is_some(), "{:?}", change.setting);
    }
}

#[test]
fn a_budget_buys_the_fastest_plan_that_it_covers_or_fewer_tokens() {
    let question = small(&[(Field::Budget, "200k"), (Field::Price, "2")]);
    let enough = answer(&question);
    assert!(enough.best().unwrap().cost.unwrap().total.high <= 200e3);
    let question = small(&[(Field::Budget, "2k"), (Field::Price, "2")]);
    let found = answer(&question);
    let Some(Unmet::TooExpensive { cost, tokens, gpus }) = found.unmet else { panic!("enough") };
    assert!(cost > 2e3 && tokens > 0.0 && tokens < 1e12);
    // The number of tokens that is named is the one of the change, on the GPUs of its plan.
    let change = found.relaxations.iter().find(|change| change.setting.field == Field::Tokens).unwrap();
    assert_eq!((crate::units::parse_count(&change.setting.value), change.run.gpus), (Some(tokens), gpus));
    let gh200 = small(&[(Field::Budget, "2k"), (Field::GpuTypes, "gh200")]);
    assert_eq!(answer(&gh200).unmet, Some(Unmet::NoPrice));
}

#[test]
fn a_budget_is_kept_as_likely_as_asked_for() {
    let on_demand = |chance: &str| {
        let fields = [
            (Field::Budget, "100k"),
            (Field::GpuRange, "64"),
            (Field::Purchase, "on-demand"),
            (Field::Chance, chance),
        ];
        answer(&small(&fields))
    };
    let of_ten = |run: &PlannedRun| run.within_budget_of_ten(100e3).unwrap();
    // H100s cost 1.99 to 6.16 an hour on demand: the expected cost is within the budget, the expensive end is not.
    let even = on_demand("even");
    let best = even.best().expect("a plan within the budget 5 times in 10");
    assert!(best.cost_with(Chance::Even).unwrap() <= 100e3 && (5..9).contains(&of_ten(best)));
    let sure = on_demand("9-in-10");
    assert!(matches!(sure.unmet, Some(Unmet::TooExpensive { cost, .. }) if cost > 100e3), "{:?}", sure.unmet);
    let changed: Vec<Field> = sure.relaxations.iter().map(|change| change.setting.field).collect();
    assert_eq!(changed, [Field::Budget, Field::Chance, Field::Tokens]);
    assert_eq!(sure.with_other_chance.as_ref().map(|run| run.gpus), Some(64));
    assert_eq!(small(&[(Field::Budget, "100k")]).chance, Chance::NineInTen);
}

#[test]
fn the_tokens_for_a_budget_are_the_same_wherever_they_are_named() {
    let fields = |tokens: &'static str| {
        [
            (Field::Model, "llama3.1-70b"),
            (Field::GpuTypes, "b200"),
            (Field::Price, "5"),
            (Field::Budget, "5M"),
            (Field::Objective, "most-tokens"),
            (Field::Tokens, tokens),
        ]
    };
    let most = ask(&fields("")).with_most_tokens().unwrap();
    // With fewer tokens, the best plan says how many its GPUs would train.
    let less = ask(&fields("1T"));
    let found = answer(&less);
    let more = found.most_tokens(&less, &less.offers[0]).expect("more tokens");
    assert!(more.tokens >= 1e12 && more.tokens <= most.tokens * 1.1 && less.reaches(&more.run));
    assert!(more.run.time.high.days <= 180.0, "{}", more.run.time.high.days);
    // With more, none are named that don't work.
    let too_many = ask(&fields("20T"));
    let Some(Unmet::TooExpensive { tokens, .. }) = answer(&too_many).unmet else { panic!("enough") };
    assert!(tokens <= most.tokens * 1.1, "{tokens} {}", most.tokens);
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
fn an_unmet_goal_is_explained_by_the_plan_that_is_shown() {
    for (deadline, budget) in [("20d", ""), ("60d", "50k"), ("", "50k")] {
        let fields = [
            (Field::Model, "llama3.1-70b"),
            (Field::GpuTypes, "h100"),
            (Field::Tokens, "10T"),
            (Field::GpuRange, "<=2048"),
            (Field::Deadline, deadline),
            (Field::Budget, budget),
        ];
        let found = answer(&ask(&fields));
        let shown = found.shown().expect("a plan");
        match found.unmet {
            Some(Unmet::TooSlow { days }) => assert_eq!(days, shown.days_with(Chance::NineInTen)),
            Some(Unmet::TooExpensive { cost, .. }) => {
                assert_eq!(Some(cost), shown.cost_with(Chance::NineInTen));
            }
            unmet => panic!("{deadline} {budget}: {unmet:?}"),
        }
        assert_eq!(found.layouts.first(), Some(shown), "{deadline} {budget}");
    }
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

#[test]
fn across_gpu_types_the_cost_stands_for_the_number_of_gpus() {
    let plan = |gpus, days, cost| Contender { gpus, days, cost, confidence: 0, doubt: 1.0 };
    let priced = [plan(512, 50.0, Some(4e6)), plan(1024, 60.0, Some(3e6))];
    assert_eq!(Objective::FewestGpus.across_gpu_types(&priced), [1, 0]);
    assert_eq!(Objective::Cheapest.across_gpu_types(&priced), [1, 0]);
    assert_eq!(Objective::Fastest.across_gpu_types(&priced), [0, 1]);
    let unpriced = [plan(1024, 60.0, Some(3e6)), plan(512, 50.0, None)];
    assert_eq!(Objective::FewestGpus.across_gpu_types(&unpriced), [1, 0]);
}

#[test]
fn of_plans_that_are_nearly_as_good_the_better_known_one_comes_first() {
    let plan =
        |days, cost, confidence| Contender { gpus: 512, days, cost: Some(cost), confidence, doubt: 1.0 };
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
fn without_a_price_the_plan_nearest_to_a_budget_takes_the_fewest_gpu_days() {
    let question = small(&[(Field::GpuTypes, "gh200"), (Field::Budget, "1M")]);
    let answer = answer(&question);
    assert!(matches!(answer.unmet, Some(Unmet::NoPrice)), "{:?}", answer.unmet);
    let shown = answer.layouts.first().expect("a layout").gpus;
    let gpu_days = |run: &&PlannedRun| run.days * f64::from(run.gpus);
    let in_time = answer.points.iter().filter(|run| question.is_in_time(run));
    let least = in_time.min_by(|one, other| gpu_days(one).total_cmp(&gpu_days(other))).expect("a plan");
    assert_eq!(shown, least.gpus);
}

#[test]
fn the_most_tokens_are_those_that_the_limits_allow() {
    let most = |fields: &[(Field, &str)]| {
        let model = [(Field::Model, "llama3.1-8b"), (Field::Objective, "most-tokens")];
        ask(&[&model, fields].concat()).with_most_tokens()
    };
    let works = |question: &Question| {
        question.offers.iter().any(|offer| Survey::new(question, offer).finish().best().is_some())
    };
    for limits in [
        &[(Field::Budget, "1M"), (Field::Deadline, "30d")][..],
        &[(Field::Budget, "1M")],
        &[(Field::Deadline, "30d"), (Field::GpuRange, "256")],
        &[(Field::Budget, "1M"), (Field::GpuRange, "64, 256"), (Field::Deadline, "60d")],
    ] {
        let question = most(limits).unwrap();
        assert!(works(&question), "{limits:?}: {}", question.tokens);
        // A fifth more is too much.
        let more = Question { tokens: question.tokens * 1.2, ..question };
        assert!(!works(&more), "{limits:?}: {}", more.tokens);
    }
    for unlimited in [&[][..], &[(Field::Deadline, "30d")], &[(Field::GpuRange, "64")]] {
        assert_eq!(most(unlimited).unwrap_err().field, Field::Objective, "{unlimited:?}");
    }
    assert!(!small(&[(Field::Objective, "most-tokens"), (Field::Budget, "1M")]).seeks_tokens());
}

#[test]
fn a_run_for_a_budget_takes_no_years() {
    // On demand, the cheapest plan is the one on the fewest GPUs.
    let fields = [
        (Field::Model, "llama3.1-70b"),
        (Field::Tokens, "10T"),
        (Field::GpuTypes, "b200"),
        (Field::Budget, "2M"),
        (Field::Purchase, "on-demand"),
    ];
    let found = answer(&ask(&fields));
    let Some(Unmet::TooExpensive { cost, tokens, .. }) = found.unmet else { panic!("{:?}", found.unmet) };
    assert!(cost > 2e6 && tokens < 10e12);
    assert!(found.layouts[0].time.high.days <= 180.0);
    // Numbers of GPUs that were asked for are not judged by their days.
    let few = spec(&fields).with(Field::GpuRange, "16").with(Field::Budget, "50M").question().unwrap();
    assert!(answer(&few).best().unwrap().days > 180.0);
}

#[test]
fn the_longest_time_for_a_budget_is_judged_by_the_chance_like_a_deadline() {
    let with = |chance: &str| {
        small(&[
            (Field::Budget, "1B"),
            (Field::Price, "2"),
            (Field::Objective, "cheapest"),
            (Field::Chance, chance),
        ])
    };
    let (sure, even) = (with("9-in-10"), with("even"));
    let best = answer(&sure).best().expect("a plan").clone();
    assert!(best.time.high.days <= 180.0);
    // As many tokens as its GPUs are expected to train in 179 days.
    let tokens = sure.tokens * 179.0 / best.days;
    let [sure, even] = [sure, even].map(|question| Question { tokens, ..question });
    let late = PlannedRun::new(&sure, &sure.offers[0], best.gpus, best.layout);
    assert!(late.days < 180.0 && late.time.high.days > 180.0, "{} {}", late.days, late.time.high.days);
    assert!(!sure.reaches(&late) && even.reaches(&late));
    // With fewer tokens, the slow end is in time too, by no more than the rounding takes.
    let enough = sure.within_limits(&sure.offers[0], &late).expect("fewer tokens");
    let days = enough.run.time.high.days;
    assert!(enough.tokens < tokens && days <= 180.0 && days > 145.0, "{} {days}", enough.tokens);
}

#[test]
fn a_budget_that_is_enough_for_years_names_tokens_that_take_less() {
    let fields = [
        (Field::Model, "llama3.1-8b"),
        (Field::GpuTypes, "h100"),
        (Field::Tokens, "10T"),
        (Field::GpuRange, "<=8"),
        (Field::Budget, "1B"),
        (Field::Price, "2"),
    ];
    let found = answer(&ask(&fields));
    assert!(matches!(found.unmet, Some(Unmet::TooSlow { days }) if days > 365.0), "{:?}", found.unmet);
    let [change] = &found.relaxations[..] else { panic!("{:?}", found.relaxations) };
    assert_eq!(change.setting.field, Field::Tokens);
    assert_change_works(&fields, change);
}

#[test]
fn the_most_tokens_for_a_budget_are_trained_in_time() {
    for (chance, budget) in [("9-in-10", "1M"), ("9-in-10", "5M"), ("even", "5M")] {
        let fields = [
            (Field::Model, "llama3.1-70b"),
            (Field::GpuTypes, "b200"),
            (Field::Price, "5"),
            (Field::Budget, budget),
            (Field::Objective, "most-tokens"),
            (Field::Chance, chance),
        ];
        let question = ask(&fields).with_most_tokens().unwrap();
        let found = answer(&question);
        let best = found.best().expect("a plan");
        assert!(best.days_with(question.chance) <= 180.0, "{chance}: {}", best.days_with(question.chance));
        assert!(best.cost_with(question.chance).expect("a price") <= question.budget().expect("a budget"));
    }
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
fn a_cost_on_demand_is_as_uncertain_as_the_one_that_it_comes_from() {
    let question = small(&[(Field::GpuRange, "64")]);
    let (offer, found) = (&question.offers[0], answer(&question));
    let run = found.best().expect("a plan");
    let (reserved, on_demand) = (run.cost.unwrap().total, run.on_demand_cost(offer).expect("a price"));
    assert!(on_demand.low < on_demand.mid && on_demand.mid < on_demand.high);
    assert!(on_demand.high / on_demand.low > reserved.high / reserved.low, "prices on demand differ");
    let own = small(&[(Field::GpuRange, "64"), (Field::Price, "2")]);
    assert_eq!(run.on_demand_cost(&own.offers[0]), None);
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
fn what_is_left_out_is_assumed_and_said_so() {
    let question = ask(&[(Field::Model, "llama3.1-70b")]);
    assert!(question.tokens_are_assumed && question.gbs.are_assumed());
    assert!((question.tokens / 1.41e12 - 1.0).abs() < 0.01, "{}", question.tokens);
    // 8 Mi tokens in sequences of 8,192.
    assert_eq!(question.gbs.sizes(), [1024]);
    let types: Vec<&str> = question.offers.iter().map(|offer| offer.gpu.id.as_str()).collect();
    assert_eq!(types, ["h100", "b200"]);
    assert_eq!((question.goal, question.objective), (Goal::Deadline(60.0), Objective::FewestGpus));
    assert!(question.goal_is_assumed);
    let counted = ask(&[(Field::Model, "llama3.1-70b"), (Field::GpuRange, "1024")]);
    assert_eq!((counted.goal, counted.goal_is_assumed), (Goal::Open, false));
}

#[test]
fn a_range_of_batches_holds_its_ends_and_powers_of_two() {
    let gbs = |text: &str| small(&[(Field::BatchTokens, text)]).gbs.sizes().to_vec();
    assert_eq!(
        (gbs("4M"), gbs("12M"), gbs("0.5M"), gbs("4M..16M"), gbs("3M..5M")),
        (vec![512], vec![1536], vec![64], vec![512, 1024, 2048], vec![384, 512, 640])
    );
    assert_eq!(small(&[(Field::Gbs, "768")]).gbs.sizes(), [768]);
}

#[test]
fn no_batch_is_larger_than_the_one_that_was_typed() {
    let gbs = |text: &str| small(&[(Field::BatchTokens, text)]).gbs;
    for text in [
        "3.3M",
        "7.7M",
        "7.9M",
        "3900000",
        "8000000",
        "8,000,000",
        "1M..7.8M",
        "1M..7999999",
        "<=7.8M",
        "<=4M",
    ] {
        let most = text.rsplit_once("..").map_or(text.trim_start_matches("<="), |(_, most)| most);
        let limit = if most == "4M" { 512.0 } else { crate::units::parse_count(most).unwrap() / 8192.0 };
        let batches = gbs(text);
        let largest = f64::from(*batches.sizes().last().unwrap());
        assert!(largest <= limit && largest > limit * 0.96, "{text}: {largest} of {limit}");
        for gpus in (8..2048).step_by(8) {
            assert!(batches.suited(gpus).iter().all(|size| f64::from(*size) <= limit), "{text} on {gpus}");
        }
    }
    assert_eq!(gbs("<=8M").sizes(), [256, 512, 1024]);
    assert_eq!(gbs("7.7M").sizes(), [928]);
}

#[test]
fn counts_are_whole_nodes() {
    let counts = |text: &str| text.parse::<GpuCounts>().unwrap().of_nodes(8);
    assert_eq!(counts("500..520"), [504, 512, 520]);
    assert_eq!(counts("1024,512"), [512, 1024]);
    assert_eq!(GpuCounts::UpTo(64).of_nodes(8), [8, 16, 24, 32, 40, 48, 56, 64]);
    for text in ["many", "0", "512..256", "1.5", ""] {
        assert!(text.parse::<GpuCounts>().is_err(), "{text}");
    }
}

#[test]
fn a_number_of_gpus_fills_whole_nodes_of_a_gpu_type() {
    let problems = refused(&[(Field::GpuTypes, "h100"), (Field::GpuRange, "513")]);
    assert_eq!(problems[0].text(Front::Page), "513 GPUs don't fill whole nodes of 8. Use 512 or 520.");
    assert_eq!(
        (problems[0].field, &*problems[0].suggestions),
        (Field::GpuRange, &["512".into(), "520".into()][..])
    );
    let of_several = refused(&[(Field::GpuTypes, "h100,gb200"), (Field::GpuRange, "66")]);
    assert_eq!(of_several[0].text(Front::Page), "66 GPUs don't fill whole nodes of 4. Use 64 or 68.");
    let with_typo = refused(&[(Field::GpuTypes, "h100,gb2000"), (Field::GpuRange, "516")]);
    assert!(with_typo.iter().all(|problem| problem.field != Field::GpuRange), "{with_typo:?}");
    for (gpus, count) in [("h100", "4"), ("h100", "512,1024"), ("h100,gb200", "516")] {
        let fields = [(Field::Model, "llama3.1-8b"), (Field::Tokens, "1T")];
        ask(&[&fields[..], &[(Field::GpuTypes, gpus), (Field::GpuRange, count)]].concat());
    }
}

#[test]
fn every_mistake_is_named_at_once() {
    let problems = refused(&[
        (Field::GpuTypes, "h1000"),
        (Field::Deadline, "soon"),
        (Field::GpuRange, "few"),
        (Field::Objective, "best"),
        (Field::Lock, "tp"),
        (Field::Price, "free"),
    ]);
    let mut fields: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
    fields.sort_unstable();
    let expected = [
        Field::Model,
        Field::Price,
        Field::GpuTypes,
        Field::GpuRange,
        Field::Deadline,
        Field::Objective,
        Field::Lock,
    ];
    assert_eq!(fields, expected);
    let old = refused(&[(Field::Model, "llama3.1-8b"), (Field::Stack, "nemo-1"), (Field::GpuTypes, "b200")]);
    assert!(old[0].to_string().contains("NeMo 1 (24.11 to 25.02) doesn't run on the B200"), "{}", old[0]);
    let fp8 =
        refused(&[(Field::Model, "llama3.1-8b"), (Field::GpuTypes, "a100"), (Field::Precisions, "fp8")]);
    assert_eq!(fp8[0].suggestions, ["bf16"]);
}

#[test]
fn a_lock_that_contradicts_the_model_is_refused_with_what_works() {
    let said = |model: &'static str, lock: &'static str| {
        refused(&[(Field::Model, model), (Field::Lock, lock)])[0].to_string()
    };
    assert_eq!(
        said("llama3.1-70b", "tp=3"),
        "The lock tp=3 can't be kept. The model's attention heads (64) can't be divided by TP 3. Use 2 or 4."
    );
    assert_eq!(
        said("deepseek-v3", "ep=7|9"),
        "The lock ep=7|9 can't be kept. The model's 256 experts can't be divided by EP 7. Use 4 or 8."
    );
    // One value that works is enough, and one that is excluded needn't.
    for lock in ["tp=3|8", "tp!=3"] {
        ask(&[(Field::Model, "llama3.1-70b"), (Field::Lock, lock)]);
    }
}

#[test]
fn own_gpus_keep_their_commas() {
    let question = small(&[(Field::GpuTypes, "h100:hbm_gb=96,hbm_tbps=2.4,b200")]);
    let types: Vec<&str> = question.offers.iter().map(|offer| offer.gpu.id.as_str()).collect();
    assert_eq!(types, ["h100:hbm_gb=96,hbm_tbps=2.4", "b200"]);
}

#[test]
fn an_assumed_batch_suits_every_usual_number_of_gpus() {
    for gpus in ["576", "768", "1000", "1536"] {
        let fields = [(Field::Model, "llama3.1-70b"), (Field::GpuTypes, "b200"), (Field::GpuRange, gpus)];
        let answer = answer(&ask(&fields));
        let run = answer.best().unwrap_or_else(|| panic!("{gpus} GPUs have a plan"));
        let change = f64::from(run.layout.candidate.gbs) / 1024.0 - 1.0;
        assert!(change.abs() <= 0.25, "{gpus}: {change}");
        let is_near = |gbs: u32| (f64::from(gbs) / 1024.0 - 1.0).abs() <= 0.25;
        assert!(answer.layouts.iter().all(|other| is_near(other.layout.candidate.gbs)), "{gpus}");
    }
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
fn a_limit_of_gpus_between_round_numbers_is_used() {
    let base = [
        (Field::Model, "llama3.1-70b"),
        (Field::GpuTypes, "b200"),
        (Field::Tokens, "10T"),
        (Field::Deadline, "60d"),
    ];
    let with = |gpus: &'static str| {
        let fields: Vec<(Field, &str)> = base.into_iter().chain([(Field::GpuRange, gpus)]).collect();
        answer(&ask(&fields))
    };
    let fewest = |gpus: &'static str| with(gpus).best().map(|run| run.gpus);
    // 512 GPUs are too few, and the next round number is 640.
    let every = fewest("512..640").expect("a plan");
    assert!(every < 616, "{every}");
    assert_eq!(fewest("<=616"), Some(every));
    assert_eq!(fewest("<=16000"), Some(every));
    // What is suggested is the smallest number that works.
    let suggested = |gpus: &'static str| {
        let of_gpus = |change: &Relaxation| change.setting.field == Field::GpuRange;
        with(gpus).relaxations.iter().find(|change| of_gpus(change)).map(|change| change.run.gpus)
    };
    assert_eq!(suggested("512"), Some(every));
    assert_eq!(suggested("<=560"), Some(every));
}

#[test]
fn a_rounder_number_of_gpus_is_planned_if_it_is_hardly_larger_than_the_fewest() {
    let fields = [
        (Field::Model, "llama3.1-70b"),
        (Field::GpuTypes, "b200"),
        (Field::Tokens, "10T"),
        (Field::Deadline, "62d"),
        (Field::GpuRange, "512..640"),
    ];
    let question = ask(&fields);
    let answer = answer(&question);
    let best = answer.best().expect("a plan");
    let in_time = || answer.points.iter().filter(|point| question.is_in_time(point));
    let fewest = in_time().next().expect("a plan in time");
    // Otherwise this shows nothing: choose a deadline with which a number is rounded up.
    assert!(best.gpus > fewest.gpus, "{}", best.gpus);
    assert!(best.is_little_more_than(fewest), "{} for {}", best.gpus, fewest.gpus);
    let roundness = |run: &PlannedRun| run.gpus.trailing_zeros();
    assert!(
        in_time().filter(|run| run.is_little_more_than(fewest)).all(|run| roundness(run) <= roundness(best))
    );
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

#[test]
fn the_expected_cost_is_the_product_of_the_figures_beside_it() {
    // Prices on demand are a range, whose middle is the geometric mean.
    for (purchase, price) in [("reserved", 1.30), ("on-demand", (1.99_f64 * 6.16).sqrt())] {
        let question = small(&[(Field::GpuRange, "64"), (Field::Purchase, purchase)]);
        let answer = Survey::new(&question, &question.offers[0]).finish();
        let run = answer.best().unwrap();
        let product = run.days * 24.0 * f64::from(run.time.paid_gpus) * price;
        // Kept checkpoints cost little.
        let ratio = run.expected_cost.unwrap() / product;
        assert!((1.0..1.01).contains(&ratio), "{purchase}: {ratio}");
        let total = run.cost.unwrap().total;
        assert!(total.low < run.expected_cost.unwrap() && run.expected_cost.unwrap() < total.high);
    }
}
