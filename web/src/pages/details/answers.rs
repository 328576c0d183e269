//! The shown plan: days to train, step time, tokens per second and MFU, with their derivation.

use super::chosen::HEADLINE_ID;
use super::estimate::{Fit, LaunchFit, lack};
use super::step_time::{PlannedStep, StepTimeSource};
use super::{BROKEN, CatalogEntry, Plan};
use crate::address::name_page;
use crate::components::copy::CopyButton;
use crate::components::field::{ChoiceField, ProblemText, TextField};
use crate::components::maths::Maths;
use crate::deadline::from_today;
use crate::message::WholeRun;
use crate::message::search::Spread;
use crate::pages::plan::amounts::{cost_texts, count_text, count_texts, energy_range, money};
use crate::pages::plan::handover::{self, PlanFigures};
use crate::pages::plan::question::{has_scenario, with_plan};
use crate::pages::plan::state::MeasuredStep;
use leptos::prelude::*;
use trainplan_shared::catalog::{Catalog, Reference, ReferenceClass};
use trainplan_shared::convention::Convention;
use trainplan_shared::estimate::Interval;
use trainplan_shared::explain::Line;
use trainplan_shared::field::Field;
use trainplan_shared::flops::ModelFlops;
use trainplan_shared::link;
use trainplan_shared::message::Front;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::planning::RunPlan;
use trainplan_shared::question::Chance;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;
use trainplan_shared::units::{
    days, duration_range, format_count, group_digits, parse_days, percent, readable, readable_range, seconds,
    significant,
};

/// The headline, the figures and their derivation.
#[component]
pub(super) fn Answers() -> impl IntoView {
    let plan = Plan::of_page();
    let problems = move || {
        let problems = plan.problems.get().into_iter();
        problems.filter(|problem| problem.field.is_of_scenario()).collect::<Vec<_>>()
    };
    let has_problems = move || !problems().is_empty();
    name_page(move || headline(plan));
    // With every field of the question and of the plan, so that other defaults show the same one day.
    let link = Signal::derive(move || {
        let (typed, asked) = (plan.address.spec(), plan.question.get());
        let whole = match has_scenario(&typed) {
            true => typed,
            false => plan.spec.with(|shown| with_plan(&typed, &asked, shown)),
        };
        plan.address.link_to(&whole)
    });
    view! {
        <section class="answers" aria-labelledby=HEADLINE_ID>
            <header>
                <div>
                    <small>{move || kind(plan)} {move || brief(plan)}</small>
                    <h2 id=HEADLINE_ID tabindex="-1">{move || headline(plan)}</h2>
                </div>
                <CopyButton text=link label="Copy link" />
            </header>
            <Show when=has_problems>
                <div class="notice wrong" role="alert">
                    <ul>
                        {move || problems().into_iter().map(|problem| view! {
                            <li><ProblemText problem address=plan.address /></li>
                        }).collect_view()}
                    </ul>
                </div>
            </Show>
            <Figures />
            <p class="basis">{move || {
                let (lead, sentence) = basis(plan);
                // What the figures rest on, unless they rest on what the user typed.
                let figures = plan.step.with(|step| match step.as_ref().filter(|step| !step.is_stale)?.source {
                    StepTimeSource::Predicted { .. } => Some("are predicted"),
                    StepTimeSource::Published => Some("use the recipe’s published step time"),
                    _ => None,
                });
                match plan.measured().zip(figures) {
                    Some((MeasuredStep { step_time_s, source }, figures)) => view! {
                        <strong>{format!("Measured: {}\u{a0}s per step.", readable(step_time_s))}</strong>
                        {format!(" {source}. The figures above {figures}. {sentence}")}
                    }.into_any(),
                    None => view! { <strong>{lead}</strong> " " {sentence} }.into_any(),
                }
            }}</p>
            <Fit />
            <LaunchFit />
            <ScenarioSummary />
        </section>
    }
}

/// The fields of the time to train, with its derivation.
#[component]
pub(super) fn TimeFields() -> impl IntoView {
    let plan = Plan::of_page();
    let flops = Signal::derive(move || {
        plan.scenario.with(|scenario| {
            scenario.as_ref().map_or(Vec::new(), |scenario| ModelFlops::of(scenario).explain)
        })
    });
    let steps = Signal::derive(move || plan.step.with(|step| step.as_ref().map_or(Vec::new(), derivation)));
    let run = Signal::derive(move || run_derivation(plan).unwrap_or_default());
    view! {
        <div class="controls">
            <TextField
                field=Field::StepTime
                default=step_time_default(plan)
                help="Seconds per step, or an assumed MFU (40%)."
            />
            <ChoiceField
                field=Field::Convention
                options=conventions()
                default=convention_default(plan)
                help="How model FLOPs are counted."
            />
        </div>
        <Maths title="Show the maths: from step time to days and MFU" lines=steps />
        <Show when=move || run.with(|lines| !lines.is_empty())>
            <Maths title="Show the maths: failures, checkpoints and cost" lines=run />
        </Show>
        <Maths title="Show the maths: model FLOPs per sequence" lines=flops />
    }
}

/// Returns the derivation of the expected days and cost of the whole run; none if [`whole_run`] returns none.
fn run_derivation(plan: Plan) -> Option<Vec<Line>> {
    whole_run(plan)?;
    let prediction = plan.calculator.prediction.latest()?;
    let step_time_s = Interval { low: prediction.low_s, mid: prediction.mid_s, high: prediction.high_s };
    let settings = plan.spec.with(Spec::run_settings).ok()?;
    let tokens = plan.step.with(|step| step.as_ref().map(|step| step.metrics.tokens))?;
    plan.scenario.with(|scenario| {
        let scenario = scenario.as_ref().ok()?;
        Some(RunPlan::new(scenario, step_time_s, tokens, &settings).explain_expected(scenario, &settings))
    })
}

/// Returns where the shown plan comes from.
fn kind(plan: Plan) -> &'static str {
    match plan.address.with_spec(has_scenario) {
        true if plan.recipe.get().is_some() => "Your plan, from a published recipe",
        true => "Your plan",
        false => "Proposed plan",
    }
}

/// Returns the days and the cost of the shown plan, which stay in sight with its heading: ` · 53 days · $2.29M`.
fn brief(plan: Plan) -> String {
    if plan.cannot_run() {
        return String::new();
    }
    let run = whole_run(plan);
    let time = match &run {
        Some(run) => Some(days(run.expected_days)),
        None => plan.step.with(|step| step.as_ref()?.metrics.time_to_train_days.map(days)),
    };
    let cost = run.and_then(|run| Some(cost_texts(whole_cost(&run)?, &run.currency).0));
    time.into_iter().chain(cost).map(|figure| format!(" · {figure}")).collect()
}

/// Returns the title of the scenario; if it has problems, the title of its recipe.
fn headline(plan: Plan) -> String {
    plan.scenario.with(|scenario| match scenario {
        Ok(scenario) => scenario_title(scenario),
        Err(problems) if problems.is_empty() => "Proposed plan".to_string(),
        Err(_) => plan
            .recipe
            .get()
            .map_or("Custom plan".into(), |CatalogEntry(recipe)| Catalog::embedded().title(&recipe.id)),
    })
}

fn scenario_title(scenario: &Scenario) -> String {
    let proxy = match scenario.is_proxy() {
        true => format!(" (proxy of {} layers)", scenario.architecture.layers),
        false => String::new(),
    };
    let gpus = group_digits(scenario.layout.gpus().into());
    let (model, gpu, dtype) = (&scenario.model.title, &scenario.gpu.name, scenario.dtype.title());
    format!("{model}{proxy} on {gpus} × {gpu}, {dtype}")
}

/// Returns the source of the step time: a lead in bold, and a sentence that may be empty.
fn basis(plan: Plan) -> (&'static str, String) {
    plan.scenario.with(|scenario| match (scenario, plan.step.get()) {
        (Err(problems), _) if problems.is_empty() => ("Searching …", String::new()),
        (Err(_), _) => {
            ("This plan can't run. The figures above are those of the previous one.", String::new())
        }
        (Ok(scenario), Some(step)) => {
            let evidence = plan.calculator.prediction.latest().map(|prediction| prediction.basis.clone());
            step_basis(scenario, &step, &evidence.unwrap_or_default())
        }
        (Ok(_), None) if plan.calculator.is_predicting() => ("Predicting …", String::new()),
        (Ok(_), None) if plan.calculator.is_broken() => {
            ("No step time.", format!("{BROKEN} You can also type a measured step time or an assumed MFU."))
        }
        // A typing error: its field shows the message.
        (Ok(_), None) => ("", String::new()),
    })
}

/// Returns the source of a step time. `evidence` says what a prediction rests on.
fn step_basis(scenario: &Scenario, step: &PlannedStep, evidence: &str) -> (&'static str, String) {
    let metrics = &step.metrics;
    let mfu = || percent(metrics.mfu.unwrap_or(0.0)).replace(' ', "\u{a0}");
    let is_own_gpu = scenario.gpu.id.contains(':');
    let evidence = if is_own_gpu { "Nothing was measured on this custom GPU." } else { evidence };
    match step.source {
        _ if step.is_stale => ("Predicting …", String::new()),
        StepTimeSource::Published => {
            let source = scenario.baseline().map(|baseline| format!("Source: {}.", baseline.publication()));
            ("Published measurement.", source.unwrap_or_default())
        }
        StepTimeSource::Typed => ("Your step time.", String::new()),
        StepTimeSource::TypedMfu => {
            ("Assumed MFU.", format!("Calculated from an MFU of {}, not predicted.", mfu()))
        }
        StepTimeSource::Predicted { .. } => {
            ("Predicted, not measured.", format!("{evidence} Ranges are 80\u{a0}% intervals."))
        }
        StepTimeSource::RecipeMfu => {
            let mfu = mfu();
            ("Assumed MFU.", format!("{BROKEN} Calculated from the recipe's published MFU of {mfu} instead."))
        }
    }
}

/// Returns what the whole run takes; none if the step time is not predicted. The prediction's step time may differ from the
/// published or typed one, which has no run with failures.
fn whole_run(plan: Plan) -> Option<WholeRun> {
    let is_predicted = plan.step.with(|step| {
        step.as_ref().is_some_and(|step| matches!(step.source, StepTimeSource::Predicted { .. }))
    });
    plan.calculator.prediction.latest().filter(|_| is_predicted)?.run.clone()
}

/// The figures of the plan: those of a step, and those of the whole run.
#[component]
fn Figures() -> impl IntoView {
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
        Some(Metrics { time_to_train_days: None, .. }) => "Days to train: not defined for a proxy".into(),
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
    // The steps are counted otherwise than by the search: a hair more is not a miss.
    let missed = move || {
        let is_over = |limit: &f64| run.get().is_some_and(|run| run.expected_days > limit * HARDLY_MORE);
        deadline.get().filter(is_over)
    };
    let budget = budget(plan);
    let may_miss = move || {
        let Some(run) = run.get() else { return false };
        let is_late = deadline.get().is_some_and(|limit| run.days.1 > limit * HARDLY_MORE);
        (is_late && is_by_slow_end(plan)) || overspent(plan, &run, budget.get()).is_some()
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
                    {move || lack(plan).map(|_| view! { <span class="late">"If it fitted in memory."</span> })}
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
        {move || run.get().map(|run| {
            let without_failures = plan.step.with(|step| step.as_ref().map(days_without_failures));
            let without_failures = without_failures.unwrap_or_default();
            view! { <RunFigures run without_failures budget=budget.get() /> }
        })}
    }
}

/// What the whole run takes, beside its days.
#[component]
fn RunFigures(
    run: WholeRun,
    without_failures: String,
    /// The budget of the question.
    budget: Option<f64>,
) -> impl IntoView {
    let plan = Plan::of_page();
    let overspent = overspent(plan, &run, budget);
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
                <dt>"Without failures"</dt>
                <dd data-figure="days-without-failures">{without_failures}</dd>
            </div>
        </dl>
    }
}

fn whole_days(run: &WholeRun) -> Spread {
    let (low, high) = run.days;
    Spread { low, mid: run.expected_days, high }
}

/// Returns the cost of the whole run; none without a price.
fn whole_cost(run: &WholeRun) -> Option<Spread> {
    run.cost.map(|[low, mid, high]| Spread { low, mid, high })
}

/// How many times a limit a figure may be without a warning: the steps are counted otherwise than by the search.
const HARDLY_MORE: f64 = 1.005;

/// Returns the budget of the question; none without one.
fn budget(plan: Plan) -> Memo<Option<f64>> {
    Memo::new(move |_| plan.question.with(|question| question.budget().ok().flatten()))
}

/// Whether the question asks for plans that hold its limits at the slow and expensive ends of their ranges.
fn is_by_slow_end(plan: Plan) -> bool {
    plan.question.with(|question| question.raw(Field::Chance) != Chance::Even.id())
}

/// Returns by how much a run exceeds the budget, as a sentence; none if it doesn't.
fn overspent(plan: Plan, run: &WholeRun, budget: Option<f64>) -> Option<String> {
    let (cost, budget) = whole_cost(run).zip(budget)?;
    let over = money(budget, &run.currency);
    let limit = budget * HARDLY_MORE;
    match (cost.mid > limit, cost.high > limit && is_by_slow_end(plan)) {
        (true, _) => Some(format!("Exceeds the budget of {over}.")),
        (false, true) => Some(format!("May exceed the budget of {over}.")),
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
fn step_time(step: &PlannedStep) -> String {
    let given = step.metrics.step_time_s;
    match step.source {
        StepTimeSource::Published | StepTimeSource::Typed => format!("{given}\u{a0}s"),
        _ => seconds(given),
    }
}

fn step_time_default(plan: Plan) -> Signal<String> {
    Signal::derive(move || {
        let Some(step) = plan.step.get() else { return "–".into() };
        match step.source {
            StepTimeSource::Published => format!("{} (published)", step_time(&step)),
            StepTimeSource::Predicted { .. } => format!("{} (predicted)", step_time(&step)),
            StepTimeSource::RecipeMfu => format!("{} (assumed)", step_time(&step)),
            StepTimeSource::Typed | StepTimeSource::TypedMfu => String::new(),
        }
    })
}

const FULL: &str = "full: grouped queries, full attention";

fn conventions() -> Vec<(String, String)> {
    vec![
        (Convention::Full.to_string(), FULL.into()),
        (Convention::Causal.to_string(), "causal: grouped queries, half the attention".into()),
    ]
}

fn convention_default(plan: Plan) -> Signal<String> {
    Signal::derive(move || match plan.recipe.get() {
        Some(_) => "recipe: as published".into(),
        None => FULL.into(),
    })
}

fn derivation(step: &PlannedStep) -> Vec<Line> {
    step.metrics.explain.clone()
}

/// The warnings, the layout and batch with the numbers that follow from them, and the published figures.
#[component]
fn ScenarioSummary() -> impl IntoView {
    let plan = Plan::of_page();
    let rows = move || plan.scenario.with(|scenario| scenario.as_ref().map_or(Vec::new(), summary));
    let warnings =
        move || plan.scenario.with(|scenario| scenario.as_ref().map_or(Vec::new(), Scenario::warnings));
    let published = move || plan.scenario.with(|scenario| scenario.as_ref().ok().and_then(published));
    view! {
        {move || warnings().into_iter().map(|warning| view! {
            <p class="notice warn">{warning.text(Front::Page)}</p>
        }).collect_view()}
        <dl class="facts">
            {move || rows().into_iter().map(|(name, value)| view! {
                <div><dt>{name}</dt><dd>{value}</dd></div>
            }).collect_view()}
        </dl>
        {move || published().map(|published| view! { <p class="published">{published}</p> })}
    }
}

fn summary(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let (layout, batch) = (&scenario.layout, &scenario.batch);
    let mut parallel =
        format!("TP {} · PP {} · CP {} · DP {}", layout.tp(), layout.pp(), layout.cp(), layout.dp());
    if layout.ep() > 1 {
        parallel += &format!(" · EP {}", layout.ep());
    }
    if layout.vp() > 1 {
        parallel += &format!(" · VP {}", layout.vp());
    }
    if layout.expert_tp() > 1 {
        parallel += &format!(" · expert TP {}", layout.expert_tp());
    }
    if scenario.options.fsdp {
        parallel += " · FSDP";
    }
    let batch_text = format!(
        "GBS {} = MBS {} × DP {} × GA {}; {} tokens per sequence",
        group_digits(batch.gbs().into()),
        batch.mbs(),
        layout.dp(),
        batch.ga(),
        group_digits(batch.seq_len().into())
    );
    let mut rows = vec![("Layout", parallel), ("Batch", batch_text)];
    if layout.pp() > 1 {
        rows.push(("Layers per stage", layers_per_stage(layout.stages())));
    }
    rows.push(("Tokens per step", count_text(batch.tokens())));
    rows
}

/// Returns the layers of each stage, with equal neighbours grouped: "15, 6 × 16, 15".
fn layers_per_stage(stages: &[u32]) -> String {
    let groups = stages.chunk_by(|a, b| a == b).map(|group| match group {
        [one] => one.to_string(),
        group => format!("{} × {}", group.len(), group[0]),
    });
    groups.collect::<Vec<_>>().join(", ")
}

/// Returns the figures as they are published: for the scenario, or for the same layout at another GPU count.
fn published(scenario: &Scenario) -> Option<String> {
    let Reference { baseline, gpus, class } = scenario.reference()?;
    if class == ReferenceClass::WeakScaled {
        return Some(format!(
            "By weak scaling as published on {gpus} GPUs: {}\u{a0}s.",
            readable(baseline.step_time_s)
        ));
    }
    let mut figures = vec![
        format!("{}\u{a0}s", baseline.step_time_s),
        format!("{} tokens/s", group_digits(baseline.printed_tokens()?)),
    ];
    // Megatron-Bridge publishes no MFU and no days.
    if !baseline.printed_mfu_pct.is_empty() {
        figures.push(format!("{}\u{a0}% MFU", baseline.printed_mfu_pct));
    }
    match baseline.printed_days_1t.as_str() {
        "" if scenario.is_proxy() => figures.push("no days (a proxy)".into()),
        "" => {}
        days => figures.push(format!("{days} days for 1T tokens")),
    }
    Some(format!("As published: {}.", figures.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::details::step_time::{PredictionState, plan_step};

    fn scenario(link: &str) -> (Spec, Scenario) {
        let spec = trainplan_shared::link::read(link).spec;
        let scenario = spec.scenario().expect("a valid scenario");
        (spec, scenario)
    }

    fn sentence(link: &str) -> (&'static str, String) {
        let (spec, scenario) = scenario(link);
        let prediction = PredictionState::Ready { low_s: 11.0, mid_s: 12.0, high_s: 14.0 };
        let step = plan_step(&spec, &scenario, prediction, None).expect("a step time");
        step_basis(&scenario, &step, "High confidence.")
    }

    #[test]
    fn each_source_of_a_step_time_is_named() {
        for (link, lead, text) in [
            (
                "r=llama3.1-405b/h100/fp8/512@25.04",
                "Published measurement.",
                "Source: DGX Cloud recipes 25.04.",
            ),
            (
                "r=llama3.1-70b/h100/fp8/64@26.06.01",
                "Published measurement.",
                "Source: Megatron-Bridge 26.04.01.",
            ),
            ("r=llama3.1-405b/h100/fp8/512@25.04&st=9", "Your step time.", ""),
            (
                "r=llama3.1-405b/h100/fp8/512@25.04&st=40%25",
                "Assumed MFU.",
                "Calculated from an MFU of 40.0\u{a0}%, not predicted.",
            ),
            (
                "r=llama3.1-405b/h100/fp8/512@25.04&n=4096",
                "Predicted, not measured.",
                "High confidence. Ranges are 80\u{a0}% intervals.",
            ),
            (
                "r=llama3.1-405b/h100/bf16/64@25.04&mbs=2&n=128",
                "Predicted, not measured.",
                "High confidence. Ranges are 80\u{a0}% intervals.",
            ),
        ] {
            assert_eq!(sentence(link), (lead, text.to_string()), "{link}");
        }
    }

    #[test]
    fn equal_neighbouring_stages_are_grouped() {
        assert_eq!(layers_per_stage(&[15, 16, 16, 16, 15]), "15, 3 × 16, 15");
    }

    #[test]
    fn a_published_recipe_shows_the_figures_of_its_document() {
        let (_, scenario) = scenario("r=llama3.1-405b/h100/fp8/512@25.04");
        assert_eq!(scenario_title(&scenario), "Llama 3.1 405B on 512 × H100, FP8");
        let published = published(&scenario).expect("published figures");
        assert!(
            published.starts_with("As published: 12.37\u{a0}s, 169,535 tokens/s, 44.35\u{a0}% MFU"),
            "{published}"
        );
    }
}
