//! How the plan's layout scales over GPU counts, beside the published measurements of its model.

use super::Plan;
use super::predicted_for::predicted_for;
use crate::address::Address;
use crate::components::chart::{Chart, ChartLine, LineChart};
use crate::components::numbers::{Numbers, Table};
use leptos::prelude::*;
use std::collections::BTreeSet;
use trainplan_shared::catalog::{Catalog, RecipeId};
use trainplan_shared::convention::Convention;
use trainplan_shared::field::Field;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::planning::ScaledStep;
use trainplan_shared::scaling::{Quantity, ScalingSeries, SeriesPoint, series};
use trainplan_shared::scenario::Scenario;
use trainplan_shared::units::{
    DAY_S, group_digits, group_three_digits, readable, readable_days, significant,
};

/// The chart over GPU counts and its table: this plan's layout on other numbers of GPUs as predicted, and what is published
/// for its model on its GPU type.
#[component]
pub(super) fn Scaling() -> impl IntoView {
    let plan = Plan::of_page();
    // Per GPU, so that lines that grow alike don't hide each other.
    let quantity = Memo::new(move |_| {
        plan.spec
            .with(|spec| spec.parse(Field::Quantity).ok().flatten())
            .unwrap_or(Quantity::TokensPerSPerGpu)
    });
    let tokens = Memo::new(move |_| plan.spec.with(|spec| spec.tokens().ok()));
    let published = Memo::new(move |_| {
        plan.scenario.with(|scenario| scenario.as_ref().map_or(Vec::new(), |it| related(it, tokens.get())))
    });
    let lines = Memo::new(move |_| {
        let quantity = quantity.get();
        let measured = published.with(|published| measured_lines(published, quantity));
        measured.into_iter().chain(predicted_lines(plan, quantity)).collect::<Vec<ScalingLine>>()
    });
    let chart = Signal::derive(move || {
        let quantity = quantity.get();
        lines.with(|lines| chart(lines, quantity, mark(plan, quantity)).into())
    });
    let summary = Signal::derive(move || lines.with(|lines| summary_of(lines, quantity.get())));
    let table = Signal::derive(move || lines.with(|lines| table_of(lines, quantity.get())));
    view! {
        <section class="scaling" aria-label="Scaling">
            <Show
                when=move || lines.with(|lines| !lines.is_empty())
                fallback=|| view! { <p role="status">"Fix the marked field to see how the plan scales."</p> }
            >
                <QuantityChoice quantity />
                {predicted_for(plan, move |measured| {
                    let metrics = plan.step.get()?.metrics;
                    point_as_measured(&metrics, measured.step_time_s, quantity.get())
                })}
                <p class="hint">
                    "This layout on other numbers of GPUs: only data parallelism changes. GPU counts on which it can’t run or doesn’t fit are left out."
                    {move || published.with(Vec::is_empty).then_some(" No published runs of this model on this GPU type differ only in the number of GPUs, so there is no published scaling to compare with.")}
                </p>
                <Chart chart summary />
                <Numbers table by_number=true />
            </Show>
        </section>
    }
}

/// A line of the chart.
#[derive(Debug, Clone, PartialEq)]
struct ScalingLine {
    name: String,
    /// GPU counts with the value of the shown quantity.
    points: Vec<(u32, f64)>,
}

/// Returns the published series of a scenario's model on its GPU type: those of its recipe's scaling mode, if it has a
/// recipe of this model.
fn related(scenario: &Scenario, tokens: Option<f64>) -> Vec<ScalingSeries> {
    let own = scenario.recipe.filter(|recipe| recipe.id.model == scenario.model.id);
    let is_strong = own.is_some_and(|recipe| recipe.id.strong);
    let is_related = |other: &RecipeId| {
        other.model == scenario.model.id && other.gpu == scenario.gpu.id && other.strong == is_strong
    };
    series(Catalog::embedded().recipes().iter().filter(|recipe| is_related(&recipe.id)), tokens)
}

fn measured_lines(published: &[ScalingSeries], quantity: Quantity) -> Vec<ScalingLine> {
    let line = |series: &ScalingSeries| ScalingLine {
        name: short_title(series),
        points: series.points.iter().map(|point| (point.recipe.id.gpus, point.value(quantity))).collect(),
    };
    published.iter().map(line).collect()
}

/// Returns the predictions of the plan's layout on other numbers of GPUs.
fn predicted_lines(plan: Plan, quantity: Quantity) -> Vec<ScalingLine> {
    let Some(prediction) = plan.calculator.prediction.latest() else { return Vec::new() };
    let Some(step) = plan.step.get() else { return Vec::new() };
    let seq_len =
        plan.scenario.with(|scenario| scenario.as_ref().ok().map(|scenario| scenario.batch.seq_len()));
    let Some(seq_len) = seq_len else { return Vec::new() };
    let lines = prediction.scaling.iter().map(|line| {
        let points = line.steps.iter();
        let value = |scaled: &ScaledStep| scaled_value(scaled, seq_len, &step.metrics, quantity);
        ScalingLine {
            name: sentence_case(line.growth.title()),
            points: points.filter_map(|scaled| Some((scaled.gpus, value(scaled)?))).collect(),
        }
    });
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn sentence_case(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the value of a quantity at a scaled step. `plan` has the metrics of the same model and precision, so that its MFU
/// scales with the tokens per second and GPU.
fn scaled_value(scaled: &ScaledStep, seq_len: u32, plan: &Metrics, quantity: Quantity) -> Option<f64> {
    let tokens_per_s = f64::from(seq_len) * f64::from(scaled.gbs) / scaled.step_time_s;
    let per_gpu = tokens_per_s / f64::from(scaled.gpus);
    match quantity {
        Quantity::TokensPerS => Some(tokens_per_s),
        Quantity::TokensPerSPerGpu => Some(per_gpu),
        Quantity::StepTime => Some(scaled.step_time_s),
        Quantity::Days => plan.time_to_train_days.map(|_| plan.tokens / tokens_per_s / DAY_S),
        Quantity::MfuFull | Quantity::MfuRecipe => {
            Some(marked(plan, quantity)? * per_gpu / plan.tokens_per_s_per_gpu?)
        }
    }
}

/// Returns the name, GPU count and value of the plan's own point, if it has a value to compare with the
/// lines.
fn mark(plan: Plan, quantity: Quantity) -> Option<(String, f64, f64)> {
    let metrics = plan.step.get()?.metrics;
    let gpus = plan.scenario.with(|scenario| Some(f64::from(scenario.as_ref().ok()?.layout.gpus())))?;
    Some(("This plan".to_string(), gpus, marked(&metrics, quantity)?))
}

/// Returns the value of a quantity; an MFU only if it is counted by the convention of the lines.
fn marked(metrics: &Metrics, quantity: Quantity) -> Option<f64> {
    let mfu = |convention| metrics.mfu.filter(|_| metrics.convention == Some(convention));
    match quantity {
        Quantity::TokensPerS => Some(metrics.tokens_per_s),
        Quantity::TokensPerSPerGpu => metrics.tokens_per_s_per_gpu,
        Quantity::StepTime => Some(metrics.step_time_s),
        Quantity::Days => metrics.time_to_train_days,
        Quantity::MfuFull => mfu(Convention::Full).map(|mfu| mfu * 100.0),
        Quantity::MfuRecipe => mfu(Convention::Recipe).map(|mfu| mfu * 100.0),
    }
}

/// Returns the value of the plan's own point with steps of another time beside the predicted one, as a clause; none if the point has no
/// value.
fn point_as_measured(metrics: &Metrics, step_time_s: f64, quantity: Quantity) -> Option<String> {
    let predicted = marked(metrics, quantity)?;
    let slowdown = step_time_s / metrics.step_time_s;
    let (verb, slower, unit) = match quantity {
        Quantity::TokensPerS => ("reaches", predicted / slowdown, " tokens per second"),
        Quantity::TokensPerSPerGpu => ("reaches", predicted / slowdown, " tokens per second per GPU"),
        Quantity::MfuFull | Quantity::MfuRecipe => ("reaches an MFU of", predicted / slowdown, "\u{a0}%"),
        Quantity::StepTime => ("takes", predicted * slowdown, "\u{a0}s per step"),
        Quantity::Days => ("takes", predicted * slowdown, " days without failures"),
    };
    let write = |value: f64| match quantity {
        Quantity::StepTime => readable(value),
        _ => written(value, quantity),
    };
    Some(format!("this plan {verb} {}{unit} instead of {}", write(slower), write(predicted)))
}

fn chart(lines: &[ScalingLine], quantity: Quantity, mark: Option<(String, f64, f64)>) -> LineChart {
    let lines = lines.iter().enumerate().map(|(index, line)| ChartLine {
        name: line.name.clone(),
        group: index,
        style: index,
        points: line.points.iter().map(|(gpus, value)| (f64::from(*gpus), *value)).collect(),
        is_level: false,
    });
    LineChart::over_gpus(lines.collect(), quantity.axis(), quantity.spans_decades())
        .of_days(quantity == Quantity::Days)
        .with_mark(mark)
}

/// Returns the title without model and GPU, which the page's heading names.
fn short_title(series: &ScalingSeries) -> String {
    series.points.first().map_or(series.title.clone(), |point| {
        let id = &point.recipe.id;
        format!("Published, {}, release {}", id.dtype.title(), id.release)
    })
}

/// Returns a description of the chart for screen readers.
fn summary_of(lines: &[ScalingLine], quantity: Quantity) -> String {
    let lines = lines.iter().filter_map(|line| {
        let (first, last) = (line.points.first()?, line.points.last()?);
        let at = |(gpus, value): &(u32, f64)| format!("{} at {gpus} GPUs", written(*value, quantity));
        Some(format!("{}: {} to {}", line.name, at(first), at(last)))
    });
    format!("Chart of {} by GPU count. {}.", quantity.title(), lines.collect::<Vec<_>>().join("; "))
}

/// Returns a row for each GPU count, with a column for each line.
fn table_of(lines: &[ScalingLine], quantity: Quantity) -> Table {
    let counts = lines.iter().flat_map(|line| &line.points).map(|(gpus, _)| *gpus);
    let counts: BTreeSet<u32> = counts.collect();
    let cell = |line: &ScalingLine, gpus: u32| {
        let point = line.points.iter().find(|(count, _)| *count == gpus);
        point.map_or("–".to_string(), |(_, value)| written(*value, quantity))
    };
    let row = |gpus: u32| {
        let cells = lines.iter().map(|line| cell(line, gpus));
        std::iter::once(group_digits(f64::from(gpus))).chain(cells).collect()
    };
    Table {
        caption: quantity.title().to_string(),
        head: std::iter::once("GPUs".to_string()).chain(lines.iter().map(|line| line.name.clone())).collect(),
        rows: counts.into_iter().map(row).collect(),
    }
}

/// Returns a value: days rounded, everything else with the digits of a document.
fn written(value: f64, quantity: Quantity) -> String {
    match quantity {
        Quantity::TokensPerS | Quantity::TokensPerSPerGpu => group_three_digits(value),
        Quantity::StepTime => significant(value, 5),
        Quantity::MfuFull | Quantity::MfuRecipe => readable(value),
        Quantity::Days => readable_days(value),
    }
}

/// Returns a description of the chart for screen readers.
pub(crate) fn summary(measured: &[ScalingSeries], quantity: Quantity) -> String {
    let lines = measured.iter().filter_map(|series| {
        let (first, last) = (series.points.first()?, series.points.last()?);
        let at = |point: &SeriesPoint| format!("{} at {} GPUs", shown(point, quantity), point.recipe.id.gpus);
        Some(format!("{}: {} to {}", series.title, at(first), at(last)))
    });
    format!("Chart of {} by GPU count. {}.", quantity.title(), lines.collect::<Vec<_>>().join("; "))
}

/// Returns a point's value: days rounded, everything else with the digits of the document.
pub(crate) fn shown(point: &SeriesPoint, quantity: Quantity) -> String {
    written(point.value(quantity), quantity)
}

/// The choice of the quantity that the chart shows.
#[component]
pub(crate) fn QuantityChoice(quantity: Memo<Quantity>) -> impl IntoView {
    let address = Address::of_page();
    let choose = move |event| address.set(Field::Quantity, event_target_value(&event));
    view! {
        <div class="field inline">
            <label for="quantity">"Show"</label>
            <select id="quantity" on:change=choose>
                {Quantity::ALL.map(|each| view! {
                    <option value=each.id() prop:selected=move || quantity.get() == each>{each.title()}</option>
                }).collect_view()}
            </select>
        </div>
    }
}

/// The chart's data: a row for each GPU count, a column for each line.
#[component]
pub(crate) fn SeriesTable(measured: Signal<Vec<ScalingSeries>>, quantity: Signal<Quantity>) -> impl IntoView {
    let table = Signal::derive(move || measured.with(|measured| table(measured, quantity.get())));
    view! { <Numbers table by_number=true /> }
}

fn table(measured: &[ScalingSeries], quantity: Quantity) -> Table {
    let points = measured.iter().flat_map(|series| &series.points);
    let mut counts: Vec<u32> = points.map(|point| point.recipe.id.gpus).collect();
    counts.sort_unstable();
    counts.dedup();
    let cell = |series: &ScalingSeries, gpus: u32| {
        let point = series.points.iter().find(|point| point.recipe.id.gpus == gpus);
        point.map_or("–".to_string(), |point| shown(point, quantity))
    };
    let row = |gpus: u32| {
        let cells = measured.iter().map(|series| cell(series, gpus));
        std::iter::once(group_digits(gpus.into())).chain(cells).collect()
    };
    let titles = measured.iter().map(|series| series.title.clone());
    Table {
        caption: quantity.title().to_string(),
        head: std::iter::once("GPUs".to_string()).chain(titles).collect(),
        rows: counts.into_iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::link;

    fn scenario(query: &str) -> Scenario {
        link::read(query).spec.scenario().expect("a recipe")
    }

    #[test]
    fn a_chart_and_its_table_show_the_measurements_of_the_same_model_and_gpu() {
        let published = related(&scenario("r=llama3.1-405b/h100/fp8/512@25.04"), Some(1e12));
        let lines = measured_lines(&published, Quantity::StepTime);
        let table = table_of(&lines, Quantity::StepTime);
        assert_eq!(table.head.len(), lines.len() + 1);
        let row = table.rows.iter().find(|row| row[0] == "512").expect("512 GPUs");
        assert!(row.contains(&"12.37".to_string()), "{row:?}");
        let summary = summary_of(&lines, Quantity::StepTime);
        assert!(summary.starts_with("Chart of Step time, s by GPU count. Published, BF16"), "{summary}");
        // A plan without a recipe is compared with the same measurements.
        let own = scenario("m=llama3.1-405b&gpu=h100&n=448&tp=8&pp=7&gbs=512");
        assert_eq!(related(&own, Some(1e12)), published);
    }

    #[test]
    fn a_scaled_step_at_the_plan_has_the_plans_figures() {
        let scenario = scenario("r=llama3.1-405b/h100/fp8/512@25.04");
        let plan = Metrics::new(&scenario, 12.37, 1e12);
        let same = ScaledStep { gpus: 512, gbs: scenario.batch.gbs(), step_time_s: 12.37 };
        let value = |scaled: &ScaledStep, quantity| {
            scaled_value(scaled, scenario.batch.seq_len(), &plan, quantity).expect("a value")
        };
        for quantity in
            [Quantity::TokensPerS, Quantity::TokensPerSPerGpu, Quantity::Days, Quantity::MfuRecipe]
        {
            let expected = marked(&plan, quantity).expect("a value");
            assert!((value(&same, quantity) / expected - 1.0).abs() < 1e-12, "{quantity}");
        }
        // Twice the GPUs, half the step time: the same MFU.
        let twice = ScaledStep { gpus: 1024, step_time_s: 6.185, ..same };
        let mfu = |scaled| value(scaled, Quantity::MfuRecipe);
        assert!((mfu(&twice) / mfu(&same) - 1.0).abs() < 1e-12);
        assert_eq!(scaled_value(&same, 8192, &plan, Quantity::MfuFull), None);
    }

    #[test]
    fn the_point_of_a_plan_is_named_with_measured_software() {
        let metrics = Metrics::new(&scenario("r=llama3.1-405b/h100/fp8/512@25.04"), 12.0, 1e12);
        let clause = |quantity| point_as_measured(&metrics, 18.0, quantity);
        assert_eq!(
            clause(Quantity::StepTime).as_deref(),
            Some("this plan takes 18.0\u{a0}s per step instead of 12.0")
        );
        let predicted = metrics.tokens_per_s_per_gpu.expect("GPUs");
        let [slower, predicted] = [predicted / 1.5, predicted].map(group_three_digits);
        assert_eq!(
            clause(Quantity::TokensPerSPerGpu),
            Some(format!("this plan reaches {slower} tokens per second per GPU instead of {predicted}"))
        );
        assert_eq!(clause(Quantity::MfuFull), None);
    }

    #[test]
    fn a_plan_is_marked_with_an_mfu_only_if_the_convention_is_the_same() {
        let scenario = scenario("r=llama3.1-405b/h100/fp8/512@25.04");
        let metrics = Metrics::new(&scenario, 12.37, 1e12);
        assert_eq!(metrics.convention, Some(Convention::Recipe));
        assert_eq!(marked(&metrics, Quantity::StepTime), Some(12.37));
        assert_eq!(marked(&metrics, Quantity::MfuFull), None);
        let mfu = marked(&metrics, Quantity::MfuRecipe).expect("an MFU");
        assert!((mfu - 44.35).abs() < 0.01, "{mfu}");
    }
}
