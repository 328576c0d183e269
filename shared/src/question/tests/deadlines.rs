//! Deadlines, and what would meet them.

use super::*;

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
        let question = ask(&fields);
        let answer = answer(&question);
        let missing_with = answer.layouts_missing_with(&question, &question.offers[0]);
        (answer, missing_with)
    };
    let (late, missing_with) = found("384");
    let Some(Unmet::TooSlow { days }) = late.unmet else { panic!("{:?}", late.unmet) };
    let range_end = late.shown().expect("a plan").time.high.days;
    // Otherwise this shows nothing: choose a number of GPUs whose range ends in time.
    assert!(range_end <= 60.0 && days > 60.0, "{range_end} {days}");
    let judged = missing_with.first().map(|(software, run)| (*software, run.gpus, run.days));
    assert_eq!(judged, Some((late.measured_software().expect("a title"), 384, days)));
    let (in_time, missing_with) = found("480");
    assert!(in_time.with_measured_software.is_some() && missing_with.is_empty());
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
        (Field::Deadline, "64d"),
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
