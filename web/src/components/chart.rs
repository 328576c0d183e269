//! Charts, drawn by Plotly. Its script comes with the first chart, after the page already answers.
//!
//! A chart is a picture for those who see it: whoever shows one puts the same numbers in a table beside it.

use crate::components::theme::Theme;
use crate::message::{Bars, Plot, PlotLevel, PlotLine};
use leptos::html::Div;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::js_sys::{Function, Promise, Reflect};
use leptos::web_sys::{HtmlElement, HtmlScriptElement};
use serde::Serialize as _;
use serde_json::{Value, json};
use serde_wasm_bindgen::Serializer;
use wasm_bindgen_futures::JsFuture;

/// What a chart draws.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Drawing {
    /// Lines.
    Lines(LineChart),
    /// Bars.
    Bars(BarChart),
}

impl From<LineChart> for Drawing {
    fn from(chart: LineChart) -> Drawing {
        Drawing::Lines(chart)
    }
}

/// Bars that lie below each other, each made of parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BarChart {
    /// The bars.
    pub(crate) bars: Bars,
    /// The unit of their values.
    pub(crate) unit: &'static str,
    /// How bars and their parts stand to each other.
    pub(crate) kind: BarKind,
}

/// How bars and their parts stand to each other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BarKind {
    /// Every bar begins where the one before it ends, and has one part.
    Waterfall,
    /// Parts follow each other, and none should reach beyond a limit.
    Stacked {
        /// What the limit is called.
        name: String,
        /// Where it is.
        limit: f64,
    },
}

/// Lines over GPU counts or over steps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LineChart {
    /// The lines.
    lines: Vec<ChartLine>,
    /// A point that stands out, with its name.
    mark: Option<(String, f64, f64)>,
    /// Points of a kind that stand out.
    marks: Vec<Marks>,
    /// Values that the lines have to be held against.
    levels: Vec<PlotLevel>,
    /// A stretch of x that matters more than the rest.
    window: Option<(f64, f64)>,
    /// What x is.
    x: X,
    /// What y is, with its unit.
    y_title: String,
    /// Whether y spans orders of magnitude.
    y_log: bool,
    /// From where to where y goes, if not from the least value to the greatest.
    range: Option<(f64, f64)>,
}

/// What lines run over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum X {
    /// Few GPU counts, by powers of two.
    Gpus,
    /// Many steps.
    Steps,
    /// Points in time.
    Time,
}

impl LineChart {
    /// Lines over GPU counts.
    pub(crate) fn over_gpus(lines: Vec<ChartLine>, y_title: &str, y_log: bool) -> LineChart {
        LineChart { y_log, ..LineChart::new(lines, X::Gpus, y_title) }
    }

    fn new(lines: Vec<ChartLine>, x: X, y_title: &str) -> LineChart {
        let (y_title, y_log) = (y_title.to_string(), false);
        let (mark, marks, levels, window, range) = (None, Vec::new(), Vec::new(), None, None);
        LineChart { lines, mark, marks, levels, window, x, y_title, y_log, range }
    }

    /// Runs of a plot over their steps.
    pub(crate) fn of_plot(plot: &Plot, y_title: &str, y_log: bool) -> LineChart {
        let line = |(index, line): (usize, &PlotLine)| ChartLine {
            name: line.name.clone(),
            group: index,
            style: index,
            points: line.steps.iter().copied().zip(line.values.iter().copied()).collect(),
            is_level: false,
        };
        let lines = plot.lines.iter().enumerate().map(line).collect();
        let (levels, window) = (plot.levels.clone(), plot.window);
        let range = LineChart::range(plot).filter(|_| !y_log);
        LineChart { levels, window, y_log, range, ..LineChart::new(lines, X::Steps, y_title) }
    }

    /// From where to where a chart of the plot should go because few values lie far above all others.
    pub(crate) fn range(plot: &Plot) -> Option<(f64, f64)> {
        let mut values: Vec<f64> = plot.lines.iter().flat_map(|line| &line.values).copied().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let usual = values[values.len() * 19 / 20];
        let ends = plot.levels.iter().map(|level| level.interval.unwrap_or((level.value, level.value)));
        let (low, high) = ends.fold((least, usual), |(low, high), (from, to)| (low.min(from), high.max(to)));
        let span = high - low;
        (most > high + 2.0 * span).then_some((low - 0.1 * span, high + 0.2 * span))
    }

    /// Lines over time, in milliseconds, with points that stand out and values to hold them against.
    pub(crate) fn over_time(
        lines: Vec<ChartLine>,
        marks: Vec<Marks>,
        levels: Vec<PlotLevel>,
        y_title: &str,
    ) -> LineChart {
        LineChart { marks, levels, ..LineChart::new(lines, X::Time, y_title) }
    }

    /// Has a point stand out, with its name.
    pub(crate) fn with_mark(self, mark: Option<(String, f64, f64)>) -> LineChart {
        LineChart { mark, ..self }
    }
}

/// Points of a kind that stand out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Marks {
    /// What they are called.
    pub(crate) name: &'static str,
    /// How they look, in Plotly's word.
    pub(crate) symbol: &'static str,
    /// Whether they are bad.
    pub(crate) is_bad: bool,
    /// Where they are.
    pub(crate) points: Vec<(f64, f64)>,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartLine {
    /// Its name in the legend.
    pub(crate) name: String,
    /// Lines of the same group share a colour.
    pub(crate) group: usize,
    /// Lines of one group differ by their style.
    pub(crate) style: usize,
    /// GPUs or step, and value.
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether a value holds until the next, and so the line goes in steps without marks.
    pub(crate) is_level: bool,
}

// Each stands out on white as well as on the dark ground: 3:1 or better.
const COLOURS: [&str; 8] =
    ["#2f7de1", "#dd6b20", "#16995a", "#c0399f", "#0891a8", "#d63c3c", "#8b5cf6", "#9a7209"];

// Dash and marker, so that colour alone tells nothing apart.
const STYLES: [(&str, &str); 4] =
    [("solid", "circle"), ("dot", "diamond"), ("dash", "square"), ("dashdot", "triangle-up")];

/// Draws a chart.
#[component]
pub(crate) fn Chart(
    /// What it shows.
    #[prop(into)]
    chart: Signal<Drawing>,
    /// The same in a sentence, for those who do not see it.
    #[prop(into)]
    summary: Signal<String>,
) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    let failed = RwSignal::new(false);
    Effect::new(move |_| {
        Theme::track();
        let chart = chart.get();
        let Some(place) = place.get() else { return };
        spawn_local(async move {
            if draw(&place, &chart).await.is_err() {
                // The page may have gone meanwhile.
                failed.try_set(true);
            }
        });
    });
    on_cleanup(move || {
        // Plotly listens to the window for as long as it is not told to stop.
        if let Some(place) = place.try_get_untracked().flatten() {
            let _ = plotly_function("purge").and_then(|purge| purge.call1(&JsValue::NULL, &place));
        }
    });
    view! {
        <div class="chart" class:bars=move || chart.with(|chart| matches!(chart, Drawing::Bars(_))) role="img" aria-label=summary node_ref=place></div>
        {move || failed.get().then(|| view! { <p class="error">"The chart could not be drawn; its numbers stand in the table."</p> })}
    }
}

async fn draw(place: &HtmlElement, chart: &Drawing) -> Result<(), JsValue> {
    load_plotly().await?;
    let ink = window().get_computed_style(place)?.ok_or(JsValue::NULL)?.get_property_value("color")?;
    let plot = plot(chart, &ink).serialize(&Serializer::json_compatible())?;
    let part = |name: &str| Reflect::get(&plot, &name.into());
    let arguments = [place.into(), part("data")?, part("layout")?, part("config")?];
    let drawn = plotly_function("react")?.apply(&JsValue::NULL, &arguments.into_iter().collect())?;
    JsFuture::from(drawn.dyn_into::<Promise>()?).await?;
    Ok(())
}

const GRID: &str = "rgba(128,128,128,0.25)";

/// Data, layout and configuration as Plotly takes them. The `plotly` crate would write the same and cost 50 kB
/// in the browser where this costs 7.
fn plot(chart: &Drawing, ink: &str) -> Value {
    let (traces, mut layout) = match chart {
        Drawing::Lines(chart) => lines(chart, ink),
        Drawing::Bars(chart) => bars(chart, ink),
    };
    layout["showlegend"] = true.into();
    layout["paper_bgcolor"] = "rgba(0,0,0,0)".into();
    layout["plot_bgcolor"] = "rgba(0,0,0,0)".into();
    layout["font"] = json!({ "family": "system-ui, sans-serif", "color": ink, "size": 13 });
    layout["legend"] = json!({ "orientation": "h", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom", "traceorder": "normal" });
    json!({ "data": traces, "layout": layout, "config": { "responsive": true, "displayModeBar": false, "showTips": false } })
}

/// An axis as every chart has it.
fn axis(title: &str) -> Value {
    json!({ "title": { "text": title }, "gridcolor": GRID, "zeroline": false, "automargin": true })
}

fn lines(chart: &LineChart, ink: &str) -> (Vec<Value>, Value) {
    let hover = match chart.x {
        X::Gpus => "%{y:,.4~g} at %{x} GPUs",
        X::Steps => "%{y:,.5~g} at step %{x}",
        X::Time => "%{y:,.5~g} at %{x}",
    };
    let mode = if chart.x == X::Steps { "lines" } else { "lines+markers" };
    let mut traces: Vec<Value> = chart.lines.iter().map(|line| trace(line, mode, hover)).collect();
    if let Some((name, x, y)) = &chart.mark {
        traces.push(json!({
            "type": "scatter", "mode": "markers", "name": name, "x": [x], "y": [y], "hovertemplate": hover,
            "marker": { "color": ink, "size": 15, "symbol": "circle-open", "line": { "width": 2 } },
        }));
    }
    traces.extend(chart.marks.iter().filter(|marks| !marks.points.is_empty()).map(|marks| {
        let (x, y): (Vec<f64>, Vec<f64>) = marks.points.iter().copied().unzip();
        let colour = if marks.is_bad { COLOURS[5] } else { ink };
        json!({
            "type": "scatter", "mode": "markers", "name": marks.name, "x": x, "y": y, "hovertemplate": hover,
            "marker": { "color": colour, "size": 14, "symbol": marks.symbol, "line": { "width": 2 } },
        })
    }));
    let mut x = axis(match chart.x {
        X::Gpus => "GPUs",
        X::Steps => "Step, as the log numbers it",
        X::Time => "When the run ran",
    });
    if chart.x == X::Time {
        x["type"] = "date".into();
    }
    if chart.x == X::Gpus {
        // A tick at every GPU count that was measured, and nowhere else; Plotly minds neither their order nor repeats.
        let points = chart.lines.iter().flat_map(|line| &line.points).map(|point| point.0);
        let counts: Vec<f64> = points.chain(chart.mark.as_ref().map(|mark| mark.1)).collect();
        x["type"] = "log".into();
        x["ticktext"] = counts.iter().map(f64::to_string).collect();
        x["tickvals"] = counts.into();
    }
    let mut y = axis(&chart.y_title);
    if chart.y_log {
        y["type"] = "log".into();
    }
    if let Some((low, high)) = chart.range {
        y["range"] = json!([low, high]);
    }
    if chart.y_log && chart.x == X::Gpus {
        // Ticks at 1, 2 and 5 of every decade.
        y["dtick"] = "D2".into();
        y["tickformat"] = "~s".into();
    } else if chart.x == X::Gpus {
        y["rangemode"] = "tozero".into();
    }
    let margin = json!({ "l": 56, "r": 12, "t": 12, "b": 48 });
    let mut shapes: Vec<Value> = chart.levels.iter().filter_map(interval).collect();
    if let Some((from, to)) = chart.window {
        shapes.push(json!({
            "type": "rect", "layer": "below", "x0": from - 0.5, "x1": to + 0.5, "yref": "paper", "y0": 0, "y1": 1,
            "fillcolor": GRID, "line": { "width": 0 },
        }));
    }
    traces.extend(chart.levels.iter().enumerate().map(|(index, of)| level(of, index, &chart.lines, ink)));
    (traces, json!({ "xaxis": x, "yaxis": y, "hovermode": "closest", "margin": margin, "shapes": shapes }))
}

/// A level from the first step to the last.
fn level(level: &PlotLevel, index: usize, lines: &[ChartLine], ink: &str) -> Value {
    let steps = || lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    let ends = [steps().fold(f64::INFINITY, f64::min), steps().fold(f64::NEG_INFINITY, f64::max)];
    let dashes = ["dash", "dot", "dashdot", "longdash"];
    json!({
        "type": "scatter", "mode": "lines", "name": plain(&level.name), "x": ends, "y": [level.value, level.value],
        "hovertemplate": "%{y:,.5~g}", "line": { "color": ink, "width": 1.5, "dash": dashes[index % dashes.len()] },
    })
}

/// The interval of a level, if it has one.
fn interval(level: &PlotLevel) -> Option<Value> {
    let (low, high) = level.interval?;
    Some(json!({
        "type": "rect", "layer": "below", "xref": "paper", "x0": 0, "x1": 1, "y0": low, "y1": high,
        "fillcolor": "rgba(22,153,90,0.18)", "line": { "width": 0 },
    }))
}

/// As many characters of a name stand on a line of the legend of a narrow page.
const LINE: usize = 34;

/// Plotly takes names for a kind of HTML, and log files have all kinds of names. It breaks no long ones, and would cut off
/// their ends, which tell runs apart.
fn plain(name: &str) -> String {
    let mut lines = vec![String::new()];
    for word in name.split_inclusive([' ', '/', '_', '-']) {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.chars().count() + word.chars().count() <= LINE => {
                *line += word;
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines.join("\n").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\n', "<br>")
}

fn bars(chart: &BarChart, ink: &str) -> (Vec<Value>, Value) {
    let Bars { labels, parts } = &chart.bars;
    let totals: Vec<f64> =
        (0..labels.len()).map(|bar| parts.iter().map(|part| part.values[bar]).sum()).collect();
    let mut x = axis(chart.unit);
    let mut y = axis("");
    y["type"] = "category".into();
    // The first on top.
    y["autorange"] = "reversed".into();
    y["showgrid"] = false.into();
    y["ticksuffix"] = "  ".into();
    let mut layout = json!({ "margin": { "l": 12, "r": 12, "t": 24, "b": 48 }, "bargap": 0.3 });
    layout["height"] = (28 * labels.len() + 140).into();
    let mut trace = json!({ "type": "bar", "orientation": "h", "y": labels });
    let hover = format!("%{{y}}: %{{x:.3~g}} {}", chart.unit);
    trace["hovertemplate"] = hover.into();
    match &chart.kind {
        BarKind::Waterfall => {
            let ends = totals.iter().scan(0.0, |end, total| {
                *end += total;
                Some(*end)
            });
            let starts: Vec<f64> = ends.zip(&totals).map(|(end, total)| end - total).collect();
            let whole: f64 = totals.iter().sum();
            // Room for the numbers behind the bars.
            x["range"] = json!([0, whole * 1.2]);
            layout["barmode"] = "overlay".into();
            trace["base"] = starts.into();
            trace["textposition"] = "outside".into();
            trace["cliponaxis"] = false.into();
        }
        BarKind::Stacked { name, limit } => {
            layout["barmode"] = "stack".into();
            layout["shapes"] = json!([{
                "type": "line", "x0": limit, "x1": limit, "yref": "paper", "y0": 0, "y1": 1,
                "line": { "color": ink, "width": 2, "dash": "dash" },
            }]);
            layout["annotations"] = json!([{
                "text": name, "x": limit, "yref": "paper", "y": 1, "yanchor": "bottom", "xanchor": "right", "showarrow": false,
            }]);
        }
    }
    layout["xaxis"] = x;
    layout["yaxis"] = y;
    let traces = parts.iter().zip(COLOURS).map(|(part, colour)| {
        let mut trace = trace.clone();
        trace["name"] = part.name.as_str().into();
        trace["x"] = part.values.as_slice().into();
        trace["marker"] = json!({ "color": colour });
        if chart.kind == BarKind::Waterfall {
            let text = part
                .values
                .iter()
                .map(|value| if *value > 0.0 { format!("{value:.2}") } else { String::new() });
            trace["text"] = text.collect();
        }
        trace
    });
    (traces.collect(), layout)
}

fn trace(line: &ChartLine, mode: &str, hover: &str) -> Value {
    let (x, y): (Vec<f64>, Vec<f64>) = line.points.iter().copied().unzip();
    let colour = COLOURS[line.group % COLOURS.len()];
    let (dash, symbol) = STYLES[line.style % STYLES.len()];
    let name = plain(&line.name);
    let (mode, shape) = if line.is_level { ("lines", "hv") } else { (mode, "linear") };
    json!({
        "type": "scatter", "mode": mode, "name": name, "x": x, "y": y, "hovertemplate": hover,
        "line": { "color": colour, "width": 2, "dash": dash, "shape": shape },
        "marker": { "color": colour, "size": 7, "symbol": symbol },
    })
}

/// A function of Plotly.
fn plotly_function(name: &str) -> Result<Function, JsValue> {
    let plotly = Reflect::get(&window(), &"Plotly".into())?;
    Reflect::get(&plotly, &name.into())?.dyn_into()
}

/// Waits until Plotly is there; the first who asks brings its script.
async fn load_plotly() -> Result<(), JsValue> {
    const SCRIPT_ID: &str = "plotly-script";
    if plotly_function("react").is_ok() {
        return Ok(());
    }
    let document = document();
    let script: HtmlScriptElement = match document.get_element_by_id(SCRIPT_ID) {
        Some(script) => script.dyn_into()?,
        None => {
            let meta = document.query_selector("meta[name=plotly-src]")?.ok_or(JsValue::NULL)?;
            let script: HtmlScriptElement = document.create_element("script")?.dyn_into()?;
            script.set_id(SCRIPT_ID);
            script.set_src(&meta.get_attribute("content").unwrap_or_default());
            document.head().ok_or(JsValue::NULL)?.append_child(&script)?;
            script
        }
    };
    let arrived = Promise::new(&mut |resolve, reject| {
        // Listening on a script that never answers changes nothing.
        let _ = script.add_event_listener_with_callback("load", &resolve);
        let _ = script.add_event_listener_with_callback("error", &reject);
    });
    JsFuture::from(arrived).await.map(|_| ())
}
