//! The chart of all plans: GPUs against days, cost or energy.

use super::Planner;
use super::amounts::{cost_texts, energy_range, limit_text, money, time_text};
use super::bar::summary as question_line;
use super::deadline_rule::DeadlineRule;
use super::findings::Findings;
use super::handover::{self, PlanFigures};
use super::plan_chart::{ChartCursor, CursorStep, PlanChart, PlanLine, PlanPoint};
use super::state::Y_KEY;
use crate::components::chart::{Chart, ChartFrame, png};
use crate::components::copy::save_address;
use crate::components::gpu_mark::{GpuMark, GpuSign};
use crate::components::numbers::{Numbers, Table};
use crate::message::search::{AskedGoal, FoundPlan, Spread, Trust};
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::web_sys::Event;
use trainplan_shared::link;
use trainplan_shared::question::as_measured;
use trainplan_shared::units::group_digits;

/// What the chart shows over GPU counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrontQuantity {
    Days,
    Cost,
    Energy,
    CostPerTrillion,
}

impl FrontQuantity {
    const ALL: [FrontQuantity; 4] =
        [FrontQuantity::Days, FrontQuantity::Cost, FrontQuantity::Energy, FrontQuantity::CostPerTrillion];

    fn id(self) -> &'static str {
        match self {
            FrontQuantity::Days => "",
            FrontQuantity::Cost => "cost",
            FrontQuantity::Energy => "energy",
            FrontQuantity::CostPerTrillion => "per-1t",
        }
    }

    fn title(self) -> &'static str {
        match self {
            FrontQuantity::Days => "Days",
            FrontQuantity::Cost => "Cost",
            FrontQuantity::Energy => "Energy",
            FrontQuantity::CostPerTrillion => "Cost per 1T tokens",
        }
    }

    fn of(id: &str) -> FrontQuantity {
        FrontQuantity::ALL.into_iter().find(|each| each.id() == id).unwrap_or(FrontQuantity::Days)
    }

    fn value(self, plan: &FoundPlan, tokens: f64) -> Option<Spread> {
        match self {
            FrontQuantity::Days => Some(plan.days),
            FrontQuantity::Cost => plan.cost,
            FrontQuantity::Energy => Some(plan.mwh),
            FrontQuantity::CostPerTrillion => plan.cost.map(|cost| cost.times(1e12 / tokens)),
        }
    }

    /// Returns a value with its range.
    fn text(self, value: Spread, currency: &str) -> String {
        match self {
            FrontQuantity::Days => time_text(value),
            FrontQuantity::Energy => {
                let (mid, range) = energy_range(value);
                format!("{mid} ({range})")
            }
            FrontQuantity::Cost | FrontQuantity::CostPerTrillion => {
                let (cost, range) = cost_texts(value, currency);
                format!("{cost} ({range})")
            }
        }
    }

    fn axis(self, currency: &str) -> String {
        let currency = if currency.is_empty() { "USD" } else { currency };
        match self {
            FrontQuantity::Days => "Days".into(),
            FrontQuantity::Energy => "Energy, MWh".into(),
            FrontQuantity::Cost | FrontQuantity::CostPerTrillion => format!("{}, {currency}", self.title()),
        }
    }
}

/// The chart with the choice of its quantity, and its table.
#[component]
pub(super) fn Front() -> impl IntoView {
    let plan = Planner::of_page();
    let findings = plan.search.findings;
    let quantity = Memo::new(move |_| FrontQuantity::of(&plan.address.own(Y_KEY)));
    // While points stream in, the chart is drawn a few times only.
    let drawn = Memo::new(move |_| {
        findings.with(|findings| {
            let counts: usize = findings.offers.iter().map(|offer| offer.points.len() / 12).sum();
            (counts, findings.is_searching(), findings.is_done)
        })
    });
    let told = handover::shown_figures();
    let content = Memo::new(move |_| {
        drawn.get();
        let query = plan.state.spec.with(link::write);
        // Those of the previous plan until the new one is calculated.
        let told = told.get().filter(|told| told.plan == query);
        let shown = plan.shown.get();
        let shown = shown.map(|shown| ShownPlan { gpu: shown.id, gpus: shown.count, figures: told });
        findings.with_untracked(|findings| chart(findings, quantity.get(), shown))
    });
    let cursor = RwSignal::new(None::<ChartCursor>);
    let deadline = Memo::new(move |_| match (findings.with(Findings::goal), quantity.get()) {
        (AskedGoal::Deadline(days), FrontQuantity::Days) => Some(days),
        _ => None,
    });
    let chart = Signal::derive(move || {
        let has_handle = deadline.get().is_some();
        PlanChart { cursor: cursor.get(), has_handle, ..content.get() }.into()
    });
    let table = Signal::derive(move || {
        drawn.get();
        findings.with_untracked(|findings| table(findings, quantity.get()))
    });
    let summary = Signal::derive(move || {
        table.with(|table| {
            format!("Chart of {} by GPU count, for {}.", table.caption, table.head[1..].join(", "))
        })
    });
    let has_points = move || {
        drawn.get();
        findings.with_untracked(|findings| findings.offers.iter().any(|offer| !offer.points.is_empty()))
    };
    let pick = Callback::new(move |query: String| plan.state.choose(&query));
    let frame = RwSignal::new(None::<ChartFrame>);
    let drawn_at = Callback::new(move |at: ChartFrame| {
        // `try_`: the page may have been left meanwhile.
        if frame.try_get_untracked().flatten() != Some(at) {
            frame.try_set(Some(at));
        }
    });
    let at_cursor =
        move || cursor.get().and_then(|cursor| content.with(|content| content.at(cursor).cloned()));
    let key = move |event: KeyboardEvent| {
        let step = match event.key().as_str() {
            "ArrowLeft" => CursorStep::Back,
            "ArrowRight" => CursorStep::Forward,
            "ArrowUp" => CursorStep::Above,
            "ArrowDown" => CursorStep::Below,
            "Home" => CursorStep::First,
            "End" => CursorStep::Last,
            "Enter" | " " => {
                if let Some(point) = untrack(at_cursor) {
                    event.prevent_default();
                    pick.run(point.key);
                }
                return;
            }
            "Escape" => return cursor.set(None),
            _ => return,
        };
        event.prevent_default();
        leave_axes();
        let next = content.with_untracked(|content| {
            let from = cursor.get_untracked().filter(|cursor| content.at(*cursor).is_some());
            from.map(|from| content.step(from, step)).or_else(|| content.start())
        });
        cursor.set(next);
    };
    let hovered = RwSignal::new(Vec::<String>::new());
    let readout = move || {
        let point = at_cursor().filter(|_| hovered.with(Vec::is_empty))?;
        Some(format!("{}. {}. Enter shows this plan.", point.text, point.layout))
    };
    let hover = Callback::new(move |keys: Vec<String>| {
        // `try_`: the page may have been left meanwhile.
        hovered.try_set(keys);
    });
    let readings = move || {
        let points = |content: &PlanChart| {
            hovered.with(|keys| content.with_keys(keys).into_iter().map(reading).collect_view())
        };
        hovered
            .with(|keys| !keys.is_empty())
            .then(|| view! { <ul class="reading" aria-hidden="true">{content.with(points)}</ul> })
    };
    let is_reading = move || cursor.get().is_some() || hovered.with(|keys| !keys.is_empty());
    let png_failed = RwSignal::new(false);
    let save_png = move |_| {
        let chart = content.get_untracked().into();
        let title =
            format!("{} · {}", quantity.get_untracked().title(), plan.question.with_untracked(question_line));
        spawn_local(async move {
            let saved = png(&chart, &title).await.and_then(|image| save_address(&image, "plans.png"));
            png_failed.try_set(saved.is_err());
        });
    };
    view! {
        <section class="front panel-card" aria-labelledby="front-title" class:stale=move || plan.is_outdated()>
            <header>
                <h2 id="front-title">{move || format!("{} by number of GPUs", quantity.get().title())}</h2>
                <div class="segments" role="group" aria-label="Quantity">
                    {FrontQuantity::ALL.map(|each| view! {
                        <button
                            type="button"
                            aria-pressed=move || (quantity.get() == each).to_string()
                            on:click=move |_| plan.address.set_own(Y_KEY, each.id())
                        >{each.title()}</button>
                    })}
                </div>
            </header>
            <div class="chart-note">
                <p class:unseen=is_reading><small>
                    "The best plan on each number of GPUs. Select a point to see it."
                    {move || content.with(PlanChart::has_measured).then_some(" Filled points were measured.")}
                </small></p>
                {readings}
                <p aria-live="polite">{readout}</p>
            </div>
            <Show when=has_points fallback=|| view! { <div class="chart bone"></div> }>
                <div class="chart-box">
                    <div
                        class="chart-keys"
                        tabindex="0"
                        role="application"
                        aria-roledescription="chart"
                        aria-label="Plans by GPU count. Arrow keys move between points, Enter shows a plan."
                        on:keydown=key
                        on:blur=move |_| cursor.set(None)
                    >
                        <Chart chart summary pick hover drawn=drawn_at />
                    </div>
                    <DeadlineRule deadline frame />
                </div>
            </Show>
            <div class="chart-foot">
                <details>
                    <summary>"Show data"</summary>
                    <Numbers table by_number=true tall=true />
                </details>
                <button type="button" class="link" on:click=save_png>
                    {move || if png_failed.get() { "Saving failed" } else { "Save as PNG" }}
                </button>
            </div>
        </section>
    }
}

/// Makes Plotly clear its crosshair, and say so, as if the pointer left the axes. It may rest above them while keys are used.
fn leave_axes() {
    if let (Ok(Some(axes)), Ok(out)) = (document().query_selector(".front .nsewdrag"), Event::new("mouseout"))
    {
        // It fails only for an event that is being dispatched.
        let _ = axes.dispatch_event(&out);
    }
}

/// Returns what the page says about a point under the pointer.
fn reading((mark, point): (GpuMark, &PlanPoint)) -> impl IntoView + use<> {
    view! {
        <li><GpuSign mark /><strong>{point.text.clone()}</strong> " " <small>{point.layout.clone()}</small></li>
    }
}

/// Whether people would call a number of GPUs round: 1, 3, 5 or 7 times a power of two, as a search tries first.
const fn is_round(gpus: u32) -> bool {
    gpus != 0 && matches!(gpus >> gpus.trailing_zeros(), 1 | 3 | 5 | 7)
}

/// The plan that the page shows.
struct ShownPlan {
    /// The id of its GPU type.
    gpu: String,
    gpus: u32,
    /// None while they are calculated.
    figures: Option<PlanFigures>,
}

impl ShownPlan {
    /// Returns its value, if the details say it.
    fn value(&self, quantity: FrontQuantity, tokens: f64) -> Option<f64> {
        let figures = self.figures.as_ref()?;
        let plan = FoundPlan { days: figures.days?, cost: figures.cost, ..FoundPlan::default() };
        // They don't say the energy.
        let is_known = quantity != FrontQuantity::Energy;
        is_known.then(|| quantity.value(&plan, tokens)).flatten().map(|value| value.mid)
    }
}

fn chart(findings: &Findings, quantity: FrontQuantity, shown: Option<ShownPlan>) -> PlanChart {
    let tokens = findings.asked.as_ref().map_or(1e12, |asked| asked.tokens);
    let currency = findings.asked.as_ref().map_or("", |asked| asked.currency.as_str());
    let with_measured = |plan: &FoundPlan| {
        let (software, days, cost) = findings.with_measured_software(|found| found.query == plan.query)?;
        let measured = FoundPlan { days, cost, ..FoundPlan::default() };
        // Its energy is not known.
        let value = quantity.value(&measured, tokens).filter(|_| quantity != FrontQuantity::Energy)?;
        let (value, measured) = (quantity.text(value, currency), as_measured(Some(&software)));
        Some(format!(" at the predicted speed, {value} {measured}"))
    };
    let point = |(gpu, name): (&str, &str), plan: &FoundPlan| {
        let value = quantity.value(plan, tokens)?;
        Some(PlanPoint {
            gpus: plan.gpus.into(),
            value: value.mid,
            low: value.low,
            high: value.high,
            is_measured: plan.trust == Trust::Measured,
            has_marker: is_round(plan.gpus)
                || plan.trust == Trust::Measured
                || shown.as_ref().is_some_and(|shown| shown.gpu == gpu && shown.gpus == plan.gpus),
            text: format!(
                "{} × {name}: {}{}",
                group_digits(plan.gpus.into()),
                quantity.text(value, currency),
                with_measured(plan).unwrap_or_default()
            ),
            layout: format!("{} · {}", plan.precision, plan.layout),
            key: plan.query.clone(),
        })
    };
    let lines: Vec<PlanLine> = findings
        .offers
        .iter()
        .map(|offer| PlanLine {
            name: offer.gpu.name.clone(),
            mark: GpuMark::of(&offer.gpu.id),
            points: useful(&offer.points, findings.goal())
                .filter_map(|plan| point((&offer.gpu.id, &offer.gpu.name), plan))
                // Costs near the best plan jump with the spare nodes and the batch.
                .filter(|point| quantity == FrontQuantity::Days || point.has_marker)
                .collect(),
        })
        .filter(|line| !line.points.is_empty())
        .map(with_marked_ends)
        .collect();
    let limit = match (findings.goal(), quantity) {
        (AskedGoal::Deadline(days), FrontQuantity::Days) => Some((days, limit_text(days))),
        (_, FrontQuantity::Cost) => findings.budget().map(|budget| (budget, money(budget, currency))),
        _ => None,
    };
    let selected = shown.and_then(|shown| {
        let offer = findings.offers.iter().find(|offer| offer.gpu.id == shown.gpu)?;
        let point = offer.points.iter().find(|plan| plan.gpus == shown.gpus);
        let of_point = point.and_then(|plan| quantity.value(plan, tokens)).map(|value| value.mid);
        // The details count a fraction of a step more or less than the search.
        let is_another = |value: &f64| of_point.is_none_or(|point| (value / point - 1.0).abs() > 0.005);
        let value = shown.value(quantity, tokens).filter(is_another).or(of_point)?;
        Some((f64::from(shown.gpus), value))
    });
    PlanChart { lines, y_title: quantity.axis(currency), limit, selected, ..PlanChart::default() }
}

/// Marks the first and the last point of a line, so that it can be seen even if it is a single point.
fn with_marked_ends(mut line: PlanLine) -> PlanLine {
    if let Some(first) = line.points.first_mut() {
        first.has_marker = true;
    }
    if let Some(last) = line.points.last_mut() {
        last.has_marker = true;
    }
    line
}

/// Returns the plans to draw as points: those that beat every smaller number of GPUs, unless they take far longer than
/// the deadline, or many years.
fn useful(points: &[FoundPlan], goal: AskedGoal) -> impl Iterator<Item = &FoundPlan> {
    let most = match goal {
        AskedGoal::Deadline(days) => 20.0 * days,
        AskedGoal::Budget(_) | AskedGoal::Open => 3650.0,
    };
    let shortest = points.iter().map(|plan| plan.days.mid).fold(f64::INFINITY, f64::min);
    let mut best = f64::INFINITY;
    let beats = move |plan: &&FoundPlan| {
        let is_better = plan.days.mid < best;
        best = best.min(plan.days.mid);
        is_better
    };
    points.iter().filter(beats).filter(move |plan| plan.days.mid <= most.max(4.0 * shortest))
}

fn table(findings: &Findings, quantity: FrontQuantity) -> Table {
    let tokens = findings.asked.as_ref().map_or(1e12, |asked| asked.tokens);
    let currency = findings.asked.as_ref().map_or("", |asked| asked.currency.as_str());
    let goal = findings.goal();
    // Ascending. Sorting them at the end would make the program almost two kilobytes larger.
    let mut counts: Vec<u32> = Vec::new();
    for point in findings.offers.iter().flat_map(|offer| useful(&offer.points, goal)) {
        if let Err(place) = counts.binary_search(&point.gpus) {
            counts.insert(place, point.gpus);
        }
    }
    let cell = |points: &[FoundPlan], gpus: u32| {
        let point = points.iter().find(|point| point.gpus == gpus);
        let value = point.and_then(|point| quantity.value(point, tokens));
        value.map_or("–".to_string(), |value| quantity.text(value, currency))
    };
    let row = |gpus: u32| {
        let cells = findings.offers.iter().map(|offer| cell(&offer.points, gpus));
        std::iter::once(group_digits(gpus.into())).chain(cells).collect()
    };
    let names = findings.offers.iter().map(|offer| offer.gpu.name.clone());
    Table {
        caption: quantity.title().to_string(),
        head: std::iter::once("GPUs".to_string()).chain(names).collect(),
        rows: counts.into_iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{answered, plan};
    use super::*;

    #[test]
    fn each_gpu_type_is_a_line_and_the_deadline_a_rule() {
        let mut findings = answered(&[("H100", Some(plan(1024, 58.0, 4e6))), ("B200", None)]);
        findings.offers[0].points = vec![plan(512, 116.0, 4e6), plan(1024, 58.0, 4e6)];
        let shown = |figures| ShownPlan { gpu: "h100".into(), gpus: 512, figures };
        let days = chart(&findings, FrontQuantity::Days, Some(shown(None)));
        assert_eq!(days.lines.len(), 1);
        assert_eq!(days.limit, Some((60.0, "60 days".to_string())));
        assert_eq!(days.selected, Some((512.0, 116.0)));
        // A plan of the user's on as many GPUs is not on the line.
        let slower = plan(512, 140.0, 5e6);
        let figures =
            PlanFigures { plan: String::new(), days: Some(slower.days), cost: slower.cost, lack: None };
        let own = |quantity| chart(&findings, quantity, Some(shown(Some(figures.clone())))).selected;
        assert_eq!(own(FrontQuantity::Days), Some((512.0, 140.0)));
        assert_eq!(own(FrontQuantity::Cost), Some((512.0, 5e6)));
        let cost = chart(&findings, FrontQuantity::Cost, None);
        assert_eq!((cost.limit, cost.y_title.as_str()), (None, "Cost, USD"));
        let table = table(&findings, FrontQuantity::Days);
        assert_eq!(table.rows[0], ["512", "116 days (104–128)", "–"]);
    }

    #[test]
    fn only_round_counts_the_shown_plan_and_the_ends_have_markers() {
        let mut findings = answered(&[("H100", Some(plan(1016, 59.0, 4e6)))]);
        let counts = [512, 768, 1000, 1008, 1016, 1024, 1040];
        findings.offers[0].points =
            counts.iter().map(|gpus| plan(*gpus, 60_000.0 / f64::from(*gpus), 4e6)).collect();
        let shown = ShownPlan { gpu: "h100".into(), gpus: 1016, figures: None };
        let chart = chart(&findings, FrontQuantity::Days, Some(shown));
        let marked: Vec<f64> =
            chart.lines[0].points.iter().filter(|point| point.has_marker).map(|point| point.gpus).collect();
        assert_eq!(marked, [512.0, 768.0, 1016.0, 1024.0, 1040.0]);
    }

    #[test]
    fn useless_counts_are_left_out() {
        let points =
            [plan(8, 9000.0, 1.0), plan(512, 100.0, 1.0), plan(520, 180.0, 1.0), plan(1024, 55.0, 1.0)];
        let counts: Vec<u32> = useful(&points, AskedGoal::Deadline(60.0)).map(|plan| plan.gpus).collect();
        assert_eq!(counts, [512, 1024]);
    }
}
