//! The answers: days to train, step time, tokens per second, MFU, and how they came about.

use super::estimate::Fit;
use super::{BROKEN, Basis, Outcome, Plan};
use crate::address::name_page;
use crate::components::copy::CopyButton;
use crate::components::field::{ChoiceField, ProblemText, TextField};
use crate::components::maths::Maths;
use leptos::prelude::*;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::explain::Line;
use trainplan_shared::field::Field;
use trainplan_shared::flops::{Convention, ModelFlops};
use trainplan_shared::metrics::{Metrics, PeakTflops};
use trainplan_shared::scenario::Scenario;
use trainplan_shared::units::{format_count, group_digits, significant};

/// The headline, the figures and their derivation.
#[component]
pub(super) fn Answers() -> impl IntoView {
    let plan = Plan::of_page();
    let has_problems =
        move || plan.problems.with(|problems| problems.iter().any(|problem| problem.field.is_of_scenario()));
    name_page(move || headline(plan));
    let link = Signal::derive(move || {
        plan.address.spec();
        window().location().href().unwrap_or_default()
    });
    view! {
        <section class="answers" aria-labelledby="headline">
            <header>
                <h1 id="headline">{move || headline(plan)}</h1>
                <CopyButton text=link label="Copy link" />
            </header>
            <p class="basis">{move || {
                let (word, sentence) = basis(plan);
                view! { <strong>{word}</strong> " " {sentence} }
            }}</p>
            <Show when=has_problems fallback=move || view! { <Figures /><Fit /> }>
                <div class="notice wrong">
                    <p>"This scenario can't run as it is:"</p>
                    <ul>
                        {move || plan.problems.get().into_iter().filter(|problem| problem.field.is_of_scenario()).map(|problem| view! {
                            <li><strong>{problem.field.label()} ":"</strong> " " <ProblemText problem address=plan.address /></li>
                        }).collect_view()}
                    </ul>
                </div>
            </Show>
            <div class="controls">
                <TokensField />
                <TextField field=Field::StepTime default=step_time_default(plan) numeric=false help="Seconds, or an MFU to assume, such as 40%." />
                <ChoiceField field=Field::Convention options=conventions() default=convention_default(plan) help="How model FLOPs are counted." />
            </div>
            <Show when=move || !has_problems()>
                <ScenarioSummary />
                <Maths title="Show the maths: from step time to days and MFU" lines=Signal::derive(move || plan.outcome.get().map_or(Vec::new(), |outcome| outcome.metrics.explain)) />
                <Maths title="Show the maths: model FLOPs of one sequence" lines=Signal::derive(move || flops_lines(plan)) />
            </Show>
        </section>
    }
}

/// The scenario in words, or the recipe's where there is none.
fn headline(plan: Plan) -> String {
    plan.scenario.with(|scenario| match scenario {
        Ok(scenario) => {
            let proxy = if scenario.is_proxy() {
                format!(" (proxy of {} layers)", scenario.architecture.layers)
            } else {
                String::new()
            };
            let gpus = group_digits(f64::from(scenario.layout.gpus()));
            format!(
                "{}{proxy} on {gpus} × {}, {}",
                scenario.model.title,
                scenario.gpu.name,
                scenario.dtype.title()
            )
        }
        Err(_) => plan
            .recipe
            .get()
            .map_or("A scenario of your own".into(), |recipe| Catalog::embedded().title(&recipe.0.id)),
    })
}

/// What the step time rests on: in a word, and in a sentence.
fn basis(plan: Plan) -> (&'static str, String) {
    plan.scenario.with(|scenario| {
        let Ok(scenario) = scenario else { return ("Not computed.", String::new()) };
        let waits = plan.helper.is_predicting();
        let percent = |metrics: Metrics| format!("{:.2} %", metrics.mfu.unwrap_or(0.0) * 100.0);
        match plan.outcome.get() {
            None if waits => ("Predicting …", String::new()),
            None => ("No step time.", format!("{BROKEN} Type a step time that you measured, or an MFU to assume.")),
            Some(Outcome { is_stale: true, .. }) => ("Predicting …", String::new()),
            Some(Outcome { basis: Basis::Published, .. }) => {
                let release = scenario.published_as().map(|recipe| format!("Release {}.", recipe.id.release));
                ("Published measurement.", release.unwrap_or_default())
            }
            Some(Outcome { basis: Basis::Given, .. }) => ("Your step time.", String::new()),
            Some(Outcome { basis: Basis::GivenMfu, metrics, .. }) => {
                ("Assumed.", format!("An MFU of {}: arithmetic, not a prediction.", percent(metrics)))
            }
            Some(Outcome { basis: Basis::Predicted { low, high }, metrics, .. }) => {
                let (from, to) = (metrics.step_time_s * low, metrics.step_time_s * high);
                let (from, to) = (significant(from, 3), significant(to, 3));
                let days = metrics.time_to_train_days.map(|days| format!(", {} to {} days in all", days_text(days * low), days_text(days * high)));
                ("Predicted.", format!("No recipe's document measured this. Four of five such runs are expected to take {from} to {to} s a step{}.", days.unwrap_or_default()))
            }
            Some(Outcome { basis: Basis::RecipeMfu, metrics, .. }) => {
                ("Assumed.", format!("{BROKEN} This is the MFU of the recipe it started from, {}: arithmetic, not a prediction.", percent(metrics)))
            }
        }
    })
}

/// The four figures.
#[component]
fn Figures() -> impl IntoView {
    let plan = Plan::of_page();
    let figure = move |value: fn(&Outcome) -> String| {
        move || plan.outcome.get().map_or("–".to_string(), |outcome| value(&outcome))
    };
    let days_label = move || match plan.outcome.get().map(|outcome| outcome.metrics) {
        Some(Metrics { time_to_train_days: None, .. }) => "Days to train: none for a proxy".into(),
        Some(metrics) => format!("Days to train {} tokens", format_count(metrics.tokens)),
        None => "Days to train".to_string(),
    };
    let days = figure(|outcome| outcome.metrics.time_to_train_days.map_or("–".into(), days_text));
    let is_stale =
        move || plan.outcome.with(|outcome| outcome.as_ref().is_some_and(|outcome| outcome.is_stale));
    view! {
        <dl class="figures" class:stale=is_stale aria-busy=move || is_stale().to_string() aria-live="polite">
            <div class="figure main"><dt>{days_label}</dt><dd data-figure="days">{days}</dd></div>
            <div class="figure"><dt>"Step time"</dt><dd data-figure="step-time">{figure(|outcome| format!("{} s", significant(outcome.metrics.step_time_s, 4)))}</dd></div>
            <div class="figure"><dt>"Tokens per second"</dt><dd data-figure="tokens-per-s">{figure(|outcome| group_digits(outcome.metrics.tokens_per_s))}</dd></div>
            <div class="figure"><dt>{move || mfu_label(plan)}</dt><dd data-figure="mfu">{figure(|outcome| format!("{:.2} %", outcome.metrics.mfu.unwrap_or(0.0) * 100.0))}</dd></div>
        </dl>
    }
}

/// MFU with how its FLOPs are counted, and what it divides by.
pub(super) fn mfu_label(plan: Plan) -> String {
    plan.scenario.with(|scenario| {
        let Ok(scenario) = scenario else { return "MFU".to_string() };
        let convention = ModelFlops::of(scenario).convention;
        format!("MFU, convention {convention}, of {} TFLOPS", PeakTflops::of(scenario).tflops)
    })
}

/// Two decimals, as the documents print days; whole days in thousands.
pub(super) fn days_text(days: f64) -> String {
    if days < 10_000.0 { format!("{days:.2}") } else { group_digits(days) }
}

/// Tokens to train: the usual counts at hand, any other by typing.
#[component]
fn TokensField() -> impl IntoView {
    let plan = Plan::of_page();
    let chip = move |text: &'static str| {
        let pressed = move || {
            let tokens = plan.spec.with(|spec| spec.tokens().ok());
            (tokens == trainplan_shared::units::parse_count(text)).to_string()
        };
        view! {
            <button type="button" class="chip" aria-pressed=pressed on:click=move |_| plan.address.set(Field::Tokens, text)>{text}</button>
        }
    };
    view! {
        <div class="tokens">
            <TextField field=Field::Tokens default="1T" numeric=false help="Such as 15T or 1.5e12." />
            <div class="chips" role="group" aria-label="Usual token counts">{chip("1T")}{chip("15T")}</div>
        </div>
    }
}

fn step_time_default(plan: Plan) -> Signal<String> {
    Signal::derive(move || {
        let Some(Outcome { metrics, basis, .. }) = plan.outcome.get() else { return "–".into() };
        let rounded = significant(metrics.step_time_s, 4);
        match basis {
            Basis::Published => format!("{} (published)", metrics.step_time_s),
            Basis::Predicted { .. } => format!("{rounded} (predicted)"),
            Basis::RecipeMfu => format!("{rounded} (assumed)"),
            Basis::Given | Basis::GivenMfu => String::new(),
        }
    })
}

fn conventions() -> Vec<(String, String)> {
    let (full, causal) = ("full: query groups, all of attention", "causal: half of attention");
    vec![(Convention::Full.to_string(), full.into()), (Convention::Causal.to_string(), causal.into())]
}

fn convention_default(plan: Plan) -> Signal<String> {
    Signal::derive(move || match plan.recipe.get() {
        Some(_) => "recipe: as its document does".into(),
        None => "full: query groups, all of attention".into(),
    })
}

fn flops_lines(plan: Plan) -> Vec<Line> {
    plan.scenario
        .with(|scenario| scenario.as_ref().map_or(Vec::new(), |scenario| ModelFlops::of(scenario).explain))
}

/// The layout with what follows from it, what the document prints, and what could be better.
#[component]
fn ScenarioSummary() -> impl IntoView {
    let plan = Plan::of_page();
    let rows = move || plan.scenario.with(|scenario| scenario.as_ref().map_or(Vec::new(), summary));
    let warnings =
        move || plan.scenario.with(|scenario| scenario.as_ref().map_or(Vec::new(), Scenario::warnings));
    let printed = move || plan.scenario.with(|scenario| scenario.as_ref().ok().and_then(printed));
    view! {
        {move || warnings().into_iter().map(|warning| view! { <p class="notice warn">{warning}</p> }).collect_view()}
        <dl class="facts">
            {move || rows().into_iter().map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> }).collect_view()}
        </dl>
        {move || printed().map(|printed| view! { <p class="printed">{printed}</p> })}
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
    let batch_text = format!(
        "GBS {} = MBS {} · DP {} · GA {}, {} tokens each",
        batch.gbs(),
        batch.mbs(),
        layout.dp(),
        batch.ga(),
        group_digits(batch.seq_len().into())
    );
    let mut rows = vec![("Layout", parallel), ("Batch", batch_text)];
    if layout.pp() > 1 {
        rows.push(("Layers per stage", runs(layout.stages())));
    }
    rows.push(("Tokens per step", group_digits(batch.tokens())));
    rows
}

/// Layers per stage with equal neighbours gathered: "15, 6 × 16, 15".
fn runs(stages: &[u32]) -> String {
    let gathered = stages.chunk_by(|a, b| a == b).map(|run| match run {
        [one] => one.to_string(),
        run => format!("{} × {}", run.len(), run[0]),
    });
    gathered.collect::<Vec<_>>().join(", ")
}

/// What the document prints beside our arithmetic.
fn printed(scenario: &Scenario) -> Option<String> {
    let baseline = scenario.baseline()?;
    let days = match baseline.printed_days_1t.as_str() {
        "" => "no days (a proxy)".into(),
        days => format!("{days} days for 1T tokens"),
    };
    Some(format!(
        "The document prints {} s, {} tokens/s, {} % MFU, {days}.",
        baseline.step_time_s,
        group_digits(baseline.printed_tokens()?),
        baseline.printed_mfu_pct
    ))
}
