//! Budgets, costs, and the most tokens that limits allow.

use super::*;

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
            let found = answer(&changed);
            let best = found.best().unwrap_or_else(|| panic!("{:?} does not work", change.setting));
            // With fewer tokens, the best plan may be on other GPUs than the one that trains the most.
            assert!(change.setting.field != Field::Tokens || best.gpus == change.run.gpus, "{}", best.gpus);
        }
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
        let launched = |offer: &GpuOffer| Survey::new(question, offer).finish_as_launched().0;
        question.offers.iter().any(|offer| launched(offer).best().is_some())
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
fn the_most_tokens_are_within_the_bounds_of_the_field() {
    let fields = [
        (Field::Model, "llama3.2-1b"),
        (Field::GpuTypes, "b200"),
        (Field::GpuRange, "16384"),
        (Field::Deadline, "60d"),
        (Field::BatchTokens, "64M"),
        (Field::Objective, "most-tokens"),
    ];
    let question = ask(&fields).with_most_tokens().unwrap();
    assert!((9e14..=1e15).contains(&question.tokens), "{}", question.tokens);
    assert_eq!(question.spec.question().map(|question| question.tokens), Ok(question.tokens));
    // A deadline within which a plan trains so many tokens: too few are not named.
    let question = small(&[(Field::GpuRange, "8"), (Field::Gbs, "8")]);
    let (offer, found) = (&question.offers[0], answer(&question));
    let run = found.layouts.first().expect("a layout");
    let named = |tokens: f64| {
        let days = run.days_with(question.chance) * tokens / question.tokens;
        let question = Question { goal: Goal::Deadline(days), ..question.clone() };
        question.within_limits(offer, run).map(|enough| enough.tokens)
    };
    assert!(named(3e9).is_some_and(|tokens| tokens <= 3e9), "{:?}", named(3e9));
    assert_eq!(named(5e5), None);
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
