//! The figures of the shown plan: days to train, step time, tokens per second and MFU, cost, energy and failures.

use super::Plan;
use super::fit::lack;
use super::step_time::{PlannedStep, StepTimeSource};
use crate::deadline::from_today;
use crate::message::search::Spread;
use crate::message::{RunAsMeasured, WholeRun};
use crate::pages::plan::amounts::{cost_texts, count_text, count_texts, energy_range, money, time_text};
use crate::pages::plan::handover::{self, PlanFigures};
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::question::Chance;
use trainplan_shared::units::{
    days, duration_range, format_count, group_digits, parse_days, percent, readable, readable_range, seconds,
    significant,
};

/// Returns what the whole run takes; none if the step time is not predicted. The prediction's step time may differ from the
/// published or typed one, which has no run with failures.
pub(super) fn whole_run(plan: Plan) -> Option<WholeRun> {
    let is_predicted = plan.step.with(|step| {
        step.as_ref().is_some_and(|step| matches!(step.source, StepTimeSource::Predicted { .. }))
    });
    plan.calculator.prediction.latest().filter(|_| is_predicted)?.run.clone()
}

/// Returns what the whole run takes with measured software, if nobody measured that of the plan; none if the step time is not predicted.
pub(super) fn as_measured(plan: Plan) -> Option<RunAsMeasured> {
    whole_run(plan)?;
    plan.calculator.prediction.latest()?.as_measured.clone()
}

/// The figures of the plan: those of a step, and those of the whole run.
#[component]
pub(super) fn Figures() -> impl IntoView {
    let plan = Plan::of_page();
    let run = Memo::new(move |_| whole_run(plan));
    let figure = move |value: fn(&PlannedStep) -> String| {
        move || plan.step.with(|step| step.as_ref().map_or("–".to_string(), value))
    };
    let interval = move |write: fn(&PlannedStep) -> Option<String>| {
        let text = move || plan.step.with(|step| write(step.as_ref()?));
        move || text().map(|text| view! { " " <small class="whole">{text}</small> })
    };
    let days_label = move || match plan.step.get().map(|step| step.metrics) {
        Some(Metrics { time_to_train_days: None, .. }) => "Time to train: not defined for a proxy".into(),
        Some(metrics) => {
            let failures = if run.with(Option::is_some) { "with failures" } else { "without failures" };
            format!("{} tokens, {failures}", format_count(metrics.tokens))
        }
        None => "Time to train".to_string(),
    };
    let deadline = Memo::new(move |_| {
        let question = from_today(plan.question.get()).ok()?;
        question.get(Field::Deadline).and_then(parse_days)
    });
    // The steps are counted differently in the search, so a tiny excess is not a miss.
    let missed = move || {
        let is_over = |limit: &f64| run.get().is_some_and(|run| run.expected_days > limit * HARDLY_MORE);
        deadline.get().filter(is_over)
    };
    let budget = budget(plan);
    let measured = Memo::new(move |_| as_measured(plan));
    // The search tests measured software by its expected days, unless the question asks for a chance of 5 times in 10.
    let may_miss_as_measured = move || {
        let is_late = |limit: &f64| {
            measured.get().is_some_and(|measured| measured.run.expected_days > limit * HARDLY_MORE)
        };
        deadline.get().filter(|limit| is_by_slow_end(plan) && missed().is_none() && is_late(limit))
    };
    let may_miss = move || {
        let Some(run) = run.get() else { return false };
        let is_late = deadline.get().is_some_and(|limit| run.days.1 > limit * HARDLY_MORE);
        (is_late && is_by_slow_end(plan))
            || may_miss_as_measured().is_some()
            || overspent(plan, &run, budget.get()).is_some()
    };
    let main_days = move || match run.get() {
        Some(run) => {
            let range = duration_range(run.expected_days, run.days);
            (days(run.expected_days), Some(format!("({range})")))
        }
        None => plan.step.with(|step| match step {
            Some(step) => (days_without_failures(step), days_interval(step)),
            None => ("–".to_string(), None),
        }),
    };
    // The headline of the page says the same.
    Effect::new(move |_| {
        if plan.is_outdated() {
            return;
        }
        let step = plan.step.with(|step| step.as_ref().and_then(days_of_steps));
        let (days, cost) = match run.get() {
            Some(run) => (Some(whole_days(&run)), whole_cost(&run)),
            None => (step, None),
        };
        let lack = lack(plan);
        handover::name_figures(PlanFigures { plan: plan.spec.with(link::write), days, cost, lack });
    });
    let is_stale = move || plan.step.with(|step| step.as_ref().is_some_and(|step| step.is_stale));
    view! {
        <dl class="figures" class:stale=is_stale aria-busy=move || is_stale().to_string() aria-live="polite">
            <div class="figure main">
                <dt title=days_label>{days_label}</dt>
                // Green only if the plan holds every limit.
                <dd
                    data-figure="days"
                    class:late=move || missed().is_some() || lack(plan).is_some()
                    class:doubtful=may_miss
                >
                    {move || main_days().0} " " <small class="whole">{move || main_days().1}</small>
                    {move || missed().map(|limit| view! {
                        <span class="late">{format!("Misses the deadline of {}.", days(limit))}</span>
                    })}
                    {move || lack(plan).map(|_| view! { <span class="late">"But it doesn't fit in memory."</span> })}
                </dd>
            </div>
            <div class="figure"><dt>"Step time"</dt><dd data-figure="step-time">
                {figure(step_time)}
                {interval(step_interval)}
                {move || plan.measured().map(|measured| view! {
                    " " <small>{format!("measured: {}\u{a0}s", readable(measured.step_time_s))}</small>
                })}
            </dd></div>
            <div class="figure">
                <dt>"Tokens per second"</dt>
                <dd data-figure="tokens-per-s">
                    {figure(|step| count_text(step.metrics.tokens_per_s))}
                    {interval(tokens_interval)}
                </dd>
            </div>
            <div class="figure">
                <dt title=move || plan.mfu_label()>"MFU"</dt>
                <dd data-figure="mfu">
                    {figure(|step| percent(step.metrics.mfu.unwrap_or(0.0)).replace(' ', "\u{a0}"))}
                    {interval(mfu_interval)}
                </dd>
            </div>
        </dl>
        // A sentence would make its tile far higher than the others.
        {move || measured.get().map(|RunAsMeasured { software, run, .. }| {
            let limit = may_miss_as_measured();
            let misses = limit.map(|limit| format!(" May miss the deadline of {}.", days(limit)));
            let misses = misses.unwrap_or_default();
            let cost = whole_cost(&run).map(|cost| format!(", {}", cost_texts(cost, &run.currency).0));
            view! {
                <p class="with-software">
                    {format!(
                        "At the predicted speed. At the measured speed of {software}: {}{}.{misses}",
                        time_text(whole_days(&run)),
                        cost.unwrap_or_default()
                    )}
                </p>
            }
        })}
        {move || run.get().map(|run| {
            let without_failures = plan.step.with(|step| step.as_ref().map(days_without_failures));
            let without_failures = without_failures.unwrap_or_default();
            let overspent = overspent(plan, &run, budget.get());
            view! { <RunFigures run without_failures overspent /> }
        })}
    }
}

/// What the whole run takes, beside its days.
#[component]
fn RunFigures(
    run: WholeRun,
    without_failures: String,
    /// How it exceeds the budget of the question, as a sentence; none if it doesn't.
    overspent: Option<String>,
) -> impl IntoView {
    let is_over = overspent.is_some();
    let cost = whole_cost(&run).map(|cost| cost_texts(cost, &run.currency));
    let (low, high) = run.mwh;
    let (energy, energy_range) = energy_range(Spread { low, mid: (low + high) / 2.0, high });
    let failures = readable_range(run.failures, |count| group_digits(count.round()));
    let goodput = format!("{}–{}", significant(run.goodput.0 * 100.0, 3), percent(run.goodput.1));
    let form = run.purchase.clone().map_or(String::new(), |form| format!(", GPUs {form}"));
    view! {
        <dl class="figures">
            {cost.map(|(cost, range)| view! {
                <div class="figure">
                    <dt>"Cost"{form}</dt>
                    <dd data-figure="cost" class:late=is_over>
                        {cost} " " <small class="whole">"(" {range} ")"</small> {overspent.map(|text| view! { <span class="late">{text}</span> })}
                    </dd>
                </div>
            })}
            <div class="figure">
                <dt>"Energy"</dt>
                <dd data-figure="energy">{energy.replace(' ', "\u{a0}")} " " <small class="whole">"(" {energy_range} ")"</small></dd>
            </div>
            <div class="figure">
                <dt>"Expected failures"</dt>
                <dd data-figure="failures">{failures} " " <small>"goodput " <span class="whole">{goodput}</span></small></dd>
            </div>
            <div class="figure">
                <dt>"Time without failures"</dt>
                <dd data-figure="days-without-failures">{without_failures}</dd>
            </div>
        </dl>
    }
}

/// Returns the days of the whole run.
pub(super) fn whole_days(run: &WholeRun) -> Spread {
    let (low, high) = run.days;
    Spread { low, mid: run.expected_days, high }
}

/// Returns the cost of the whole run; none without a price.
pub(super) fn whole_cost(run: &WholeRun) -> Option<Spread> {
    run.cost.map(|[low, mid, high]| Spread { low, mid, high })
}

/// How many times its limit a figure may reach without a warning, because the search counts steps differently.
const HARDLY_MORE: f64 = 1.005;

/// Returns the budget of the question; none without one.
fn budget(plan: Plan) -> Memo<Option<f64>> {
    Memo::new(move |_| plan.question.with(|question| question.budget().ok().flatten()))
}

/// Whether the question requires plans that keep its limits even at the slow and expensive ends of their
/// ranges.
fn is_by_slow_end(plan: Plan) -> bool {
    plan.question.with(|question| question.raw(Field::Chance) != Chance::Even.id())
}

/// Returns that a run exceeds the budget, or keeps it only with a reservation that the budget doesn't pay for, as a sentence; none if it
/// surely keeps it.
fn overspent(plan: Plan, run: &WholeRun, budget: Option<f64>) -> Option<String> {
    let (cost, budget) = whole_cost(run).zip(budget)?;
    let over = money(budget, &run.currency);
    let limit = budget * HARDLY_MORE;
    let with_measured = as_measured(plan).and_then(|measured| whole_cost(&measured.run));
    let may_exceed = is_by_slow_end(plan)
        && (cost.high > limit || with_measured.is_some_and(|measured| measured.mid > limit));
    let needs_reservation = run.whole_term.is_some_and(|term| term > budget);
    match (cost.mid > limit, may_exceed) {
        (true, _) => Some(format!("Exceeds the budget of {over}.")),
        (false, true) => Some(format!("May exceed the budget of {over}.")),
        (false, false) if needs_reservation => {
            Some(format!("Within the budget of {over} only if you already hold the reservation."))
        }
        (false, false) => None,
    }
}

/// Returns the days of the steps alone, without failures and restarts; none for a proxy.
fn days_of_steps(step: &PlannedStep) -> Option<Spread> {
    let mid = step.metrics.time_to_train_days?;
    let (low, high) = match step.source {
        StepTimeSource::Predicted { low, high } => (low, high),
        _ => (1.0, 1.0),
    };
    Some(Spread { low: mid * low, mid, high: mid * high })
}

/// Returns the days of the steps alone, without failures and restarts.
fn days_without_failures(step: &PlannedStep) -> String {
    step.metrics.time_to_train_days.map_or("–".into(), days)
}

/// Returns the interval of predicted days without failures in parentheses.
fn days_interval(step: &PlannedStep) -> Option<String> {
    let Spread { low, mid, high } = days_of_steps(step)?;
    let is_predicted = matches!(step.source, StepTimeSource::Predicted { .. });
    is_predicted.then(|| format!("({})", duration_range(mid, (low, high))))
}

/// Returns the interval of the predicted tokens per second in parentheses.
fn tokens_interval(step: &PlannedStep) -> Option<String> {
    let StepTimeSource::Predicted { low, high } = step.source else { return None };
    let mid = step.metrics.tokens_per_s;
    let (_, range) = count_texts(Spread { low: mid / high, mid, high: mid / low });
    Some(format!("({range})"))
}

/// Returns the interval of the predicted step time, in seconds, in parentheses.
fn step_interval(step: &PlannedStep) -> Option<String> {
    let StepTimeSource::Predicted { low, high } = step.source else { return None };
    let mid = step.metrics.step_time_s;
    Some(format!("({})", readable_range((mid * low, mid * high), readable)))
}

/// Returns the interval of the predicted MFU, in percent, in parentheses.
fn mfu_interval(step: &PlannedStep) -> Option<String> {
    let StepTimeSource::Predicted { low, high } = step.source else { return None };
    let mid = step.metrics.mfu.unwrap_or(0.0) * 100.0;
    Some(format!("({})", readable_range((mid / high, mid / low), readable)))
}

/// Returns the step time with its unit: a published or typed one as it was given, any other one rounded.
pub(super) fn step_time(step: &PlannedStep) -> String {
    let given = step.metrics.step_time_s;
    match step.source {
        StepTimeSource::Published | StepTimeSource::Typed => format!("{given}\u{a0}s"),
        _ => seconds(given),
    }
}
