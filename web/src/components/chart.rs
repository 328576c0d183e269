//! Charts, drawn by Plotly, whose script is loaded with the first chart.
//!
//! Each chart must have a table of the same data beside it, for people who can't see the chart.

use crate::components::theme::Theme;
use crate::message::{Bars, Part, Plot, PlotLevel, PlotLine};
use leptos::html::Div;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_bindgen::closure::Closure;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::js_sys::{Array, Function, Promise, Reflect};
use leptos::web_sys::{HtmlElement, HtmlScriptElement};
use serde::Serialize as _;
use serde_json::{Value, json};
use serde_wasm_bindgen::Serializer;
use std::sync::Arc;
use trainplan_shared::units::{group_digits, one_decimal, readable_days, short_seconds};
use wasm_bindgen_futures::JsFuture;

/// The content of a chart. It holds a function, so that each program contains only the kinds of charts that it draws.
#[derive(Clone)]
pub(crate) struct Drawing {
    draw: Arc<Draw>,
    /// Whether it is a chart of bars, which is as high as its bars need.
    has_bars: bool,
}

/// Makes Plotly's traces and layout from the colour of texts and the width of the chart in pixels.
type Draw = dyn Fn(&str, f64) -> TracesAndLayout + Send + Sync;

/// Plotly's traces, and its layout.
type TracesAndLayout = (Vec<Value>, Value);

impl Drawing {
    /// Returns a drawing whose traces and layout are made from the colour of texts and the width in pixels.
    pub(crate) fn new(draw: impl Fn(&str, f64) -> TracesAndLayout + Send + Sync + 'static) -> Drawing {
        Drawing { draw: Arc::new(draw), has_bars: false }
    }
}

impl From<LineChart> for Drawing {
    fn from(chart: LineChart) -> Drawing {
        Drawing::new(move |ink, width| lines(&chart, ink, width))
    }
}

impl From<BarChart> for Drawing {
    fn from(chart: BarChart) -> Drawing {
        Drawing { draw: Arc::new(move |ink, width| bars(&chart, ink, width)), has_bars: true }
    }
}

/// Horizontal bars, each made of parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BarChart {
    pub(crate) bars: Bars,
    /// The unit of the values.
    pub(crate) unit: &'static str,
    pub(crate) kind: BarKind,
}

/// The arrangement of bars and their parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BarKind {
    /// Each bar has one part and starts at the end of the bar before.
    Waterfall,
    /// The parts of a bar are stacked, and a line marks the limit of their sum.
    Stacked {
        /// The label of the limit.
        name: String,
        limit: f64,
    },
}

/// Lines over GPU counts or over steps.
#[derive(Debug, Clone)]
pub(crate) struct LineChart {
    lines: Vec<ChartLine>,
    /// A highlighted point, with its name.
    mark: Option<(String, f64, f64)>,
    /// Highlighted points.
    markers: Vec<ChartMarkers>,
    /// Values to compare the lines with, drawn as horizontal lines.
    levels: Vec<PlotLevel>,
    /// A shaded range of x.
    window: Option<(f64, f64)>,
    x: XAxis,
    /// The quantity on the y axis, with its unit.
    y_title: String,
    /// Whether the y axis is logarithmic.
    y_log: bool,
    /// The range of y, if it is not that of the values.
    range: Option<(f64, f64)>,
    /// Whether the values are days, which are written by a rule of their own.
    has_days: bool,
    /// Returns the names of the lines as annotations at their ends, which replace the legend where the chart is wide enough. A function,
    /// so that only the programs that use it contain it.
    labels: Option<fn(&LineChart) -> Vec<Value>>,
}

/// The quantity on the x axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum XAxis {
    /// GPU counts, on a logarithmic axis.
    Gpus,
    /// Training steps.
    Steps,
    /// Times, in milliseconds since 1970.
    Time,
}

impl LineChart {
    /// Returns a chart of lines over GPU counts.
    pub(crate) fn over_gpus(lines: Vec<ChartLine>, y_title: &str, y_log: bool) -> LineChart {
        LineChart { y_log, ..LineChart::new(lines, XAxis::Gpus, y_title) }
    }

    fn new(lines: Vec<ChartLine>, x: XAxis, y_title: &str) -> LineChart {
        let (y_title, y_log) = (y_title.to_string(), false);
        let (mark, markers, levels, window, range) = (None, Vec::new(), Vec::new(), None, None);
        LineChart {
            lines,
            mark,
            markers,
            levels,
            window,
            x,
            y_title,
            y_log,
            range,
            has_days: false,
            labels: None,
        }
    }

    /// Writes the values under the pointer as days, if they are.
    pub(crate) fn of_days(self, has_days: bool) -> LineChart {
        LineChart { has_days, ..self }
    }

    /// Returns a chart of the lines of a plot over steps.
    pub(crate) fn of_plot(plot: &Plot, y_title: &str, y_log: bool) -> LineChart {
        let names: Vec<&str> = plot.lines.iter().map(|line| line.name.as_str()).collect();
        let names = short_names(&names);
        let line = |(index, line): (usize, &PlotLine)| ChartLine {
            name: names[index].clone(),
            group: index,
            style: index,
            points: line.steps.iter().copied().zip(line.values.iter().copied()).collect(),
            is_level: false,
        };
        let lines = plot.lines.iter().enumerate().map(line).collect();
        let mut levels = plot.levels.clone();
        for level in &mut levels {
            for (line, short) in plot.lines.iter().zip(&names) {
                level.name = level.name.replace(&line.name, short);
            }
        }
        let window = plot.window;
        let range = LineChart::range(plot).filter(|_| !y_log);
        LineChart { levels, window, y_log, range, ..LineChart::new(lines, XAxis::Steps, y_title) }
    }

    /// Returns the range of y that leaves out outliers: if a few values, 5 % at most, are far above the
    /// others.
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

    /// Returns a chart of lines over time, in milliseconds since 1970, with highlighted points and horizontal
    /// lines.
    pub(crate) fn over_time(
        lines: Vec<ChartLine>,
        markers: Vec<ChartMarkers>,
        levels: Vec<PlotLevel>,
        y_title: &str,
    ) -> LineChart {
        LineChart { markers, levels, ..LineChart::new(lines, XAxis::Time, y_title) }
    }

    /// Writes the names of the lines at their ends, instead of a legend, where the chart is wide enough.
    pub(crate) fn with_labels(self) -> LineChart {
        LineChart { labels: Some(end_labels), ..self }
    }

    /// Adds a highlighted point with its name.
    pub(crate) fn with_mark(self, mark: Option<(String, f64, f64)>) -> LineChart {
        LineChart { mark, ..self }
    }
}

/// Returns names without the beginning and the end that all of them share, except the last part of the beginning. A name alone stays
/// whole.
fn short_names(names: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split_inclusive(SEPARATORS).collect()).collect();
    let whole = || names.iter().copied().map(String::from).collect();
    let Some((first, others)) = parts.split_first() else { return whole() };
    if others.iter().all(|other| other == first) {
        return whole();
    }
    let least = parts.iter().map(Vec::len).min().unwrap_or(0);
    // Something is left of each name.
    let start = (0..least.saturating_sub(1))
        .take_while(|place| others.iter().all(|other| other[*place] == first[*place]))
        .count();
    let end = (1..least - start)
        .take_while(|back| others.iter().all(|other| other[other.len() - back] == first[first.len() - back]))
        .count();
    let short = |parts: &Vec<&str>| parts[start.saturating_sub(1)..parts.len() - end].concat();
    parts.iter().map(|parts| short(parts).trim_end_matches(SEPARATORS).to_string()).collect()
}

/// The characters after which a name is divided.
const SEPARATORS: [char; 4] = ['/', '_', '-', '.'];

/// Highlighted points of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartMarkers {
    /// The name in the legend.
    pub(crate) name: &'static str,
    /// Plotly's name of the symbol.
    pub(crate) symbol: &'static str,
    /// Whether they are shown in the colour of errors.
    pub(crate) is_bad: bool,
    /// The x and y of each point.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartLine {
    /// The name in the legend.
    pub(crate) name: String,
    /// The index of the colour, which the lines of a group share.
    pub(crate) group: usize,
    /// The index of the dash and the marker.
    pub(crate) style: usize,
    /// The x and y of each point.
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether each value holds until the next one: a stepped line without markers.
    pub(crate) is_level: bool,
}

/// The colours of lines and parts: quieter than those of the GPU types, and none of them, so that a colour has one meaning on a
/// page. They have a contrast of at least 3:1 with the white and with the dark background, and of 4.5:1 with black texts.
pub(crate) const COLOURS: [&str; 8] =
    ["#9b7bb8", "#7d8a1f", "#b0607a", "#2e8b7a", "#b58863", "#8c8c8c", "#5a9e3a", "#6b8fb5"];

/// The colour of errors.
const BAD: &str = "#d63c3c";

// Dash and marker, so that lines differ not only by colour.
const STYLES: [(&str, &str); 4] =
    [("solid", "circle"), ("dot", "diamond"), ("dash", "square"), ("dashdot", "triangle-up")];

/// A chart.
#[component]
pub(crate) fn Chart(
    /// The content.
    #[prop(into)]
    chart: Signal<Drawing>,
    /// A description for screen readers.
    #[prop(into)]
    summary: Signal<String>,
    /// Called with the key of a point that is clicked.
    #[prop(optional)]
    pick: Option<Callback<String>>,
    /// Called with the keys of the points under the pointer, one for each line; with none when it leaves.
    #[prop(optional)]
    hover: Option<Callback<Vec<String>>>,
    /// Called with the place of the axes whenever they are drawn. Such a chart fits the paper in print.
    #[prop(optional)]
    drawn: Option<Callback<ChartFrame>>,
) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    let failed = RwSignal::new(false);
    let on_drawn = StoredValue::new_local(drawn.map(|drawn| {
        Closure::<dyn FnMut(JsValue)>::new(move |_: JsValue| {
            let Some(place) = place.try_get_untracked().flatten() else { return };
            // A failure cuts the chart in print.
            let _ = make_scalable(&place);
            if let Ok(frame) = frame(&place) {
                drawn.run(frame);
            }
        })
    }));
    // Plotly calls it for as long as the chart is shown.
    let on_click = StoredValue::new_local(pick.map(|pick| {
        Closure::<dyn FnMut(JsValue)>::new(move |event: JsValue| {
            if let Some(key) = keys(&event).into_iter().next() {
                pick.run(key);
            }
        })
    }));
    let on_hover = StoredValue::new_local(hover.map(|hover| {
        let enter = Closure::<dyn FnMut(JsValue)>::new(move |event: JsValue| hover.run(keys(&event)));
        (enter, Closure::<dyn FnMut()>::new(move || hover.run(Vec::new())))
    }));
    Effect::new(move |_| {
        Theme::track();
        let chart = chart.get();
        let Some(place) = place.get() else { return };
        spawn_local(async move {
            if draw(&place, &chart).await.is_err() {
                // `try_set`: the page may have been left meanwhile.
                failed.try_set(true);
                return;
            }
            on_click.try_with_value(|on_click| {
                if let Some(on_click) = on_click {
                    // A failure leaves the table, whose rows can be chosen too.
                    let _ = listen(&place, "plotly_click", on_click.as_ref());
                }
            });
            on_hover.try_with_value(|on_hover| {
                if let Some((enter, leave)) = on_hover {
                    // A failure leaves the table, which has the same values.
                    let _ = listen(&place, "plotly_hover", enter.as_ref());
                    let _ = listen(&place, "plotly_unhover", leave.as_ref());
                }
            });
            on_drawn.try_with_value(|on_drawn| {
                if let Some(on_drawn) = on_drawn {
                    // A failure leaves the chart without what is laid over it.
                    let _ = listen(&place, "plotly_afterplot", on_drawn.as_ref());
                    let _ =
                        on_drawn.as_ref().unchecked_ref::<Function>().call1(&JsValue::NULL, &JsValue::NULL);
                }
            });
        });
    });
    let has_bars = move || chart.with(|chart| chart.has_bars);
    on_cleanup(move || {
        // Otherwise Plotly keeps listening to resizes of the window.
        if let Some(place) = place.try_get_untracked().flatten() {
            let _ = plotly_function("purge").and_then(|purge| purge.call1(&JsValue::NULL, &place));
        }
    });
    view! {
        <div class="chart" class:bars=has_bars role="img" aria-label=summary node_ref=place></div>
        {move || failed.get().then(|| view! {
            <p class="error">"The chart couldn't be drawn. Its data is in the table below."</p>
        })}
    }
}

/// Calls `heard` for an event of the chart, and no earlier listener.
fn listen(place: &HtmlElement, event: &str, heard: &JsValue) -> Result<(), JsValue> {
    let method = |name: &str| Reflect::get(place, &name.into())?.dyn_into::<Function>();
    method("removeAllListeners")?.call1(place, &event.into())?;
    method("on")?.call2(place, &event.into(), heard)?;
    Ok(())
}

/// The place of a chart's axes in its element, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChartFrame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The values at the bottom and at the top; on a logarithmic axis, their logarithms to base 10.
    pub(crate) y: (f64, f64),
}

/// Reads the place of the axes of a drawn chart.
fn frame(place: &HtmlElement) -> Result<ChartFrame, JsValue> {
    let get = |of: &JsValue, name: &str| Reflect::get(of, &name.into());
    let number = |of: &JsValue, name: &str| get(of, name)?.as_f64().ok_or(JsValue::NULL);
    let layout = get(place, "_fullLayout")?;
    let (x, y) = (get(&layout, "xaxis")?, get(&layout, "yaxis")?);
    let range = get(&y, "range")?;
    Ok(ChartFrame {
        left: number(&x, "_offset")?,
        top: number(&y, "_offset")?,
        width: number(&x, "_length")?,
        height: number(&y, "_length")?,
        y: (number(&range, "0")?, number(&range, "1")?),
    })
}

/// Returns a chart as a PNG image in a data URL, in the colours of the page, with a title.
///
/// # Errors
/// Plotly isn't loaded, or the browser can't make the image.
pub(crate) async fn png(chart: &Drawing, title: &str) -> Result<String, JsValue> {
    const SIZE: (u32, u32) = (1200, 675);
    let body = document().body().ok_or(JsValue::NULL)?;
    let ink = window().get_computed_style(&body)?.ok_or(JsValue::NULL)?.get_property_value("color")?;
    let mut figure = plot(chart, &ink, SIZE.0.into());
    let layout = &mut figure["layout"];
    layout["paper_bgcolor"] = behind(&ink).into();
    layout["title"] = json!({ "text": escaped(title), "x": 0.02, "xanchor": "left", "font": { "size": 16 } });
    layout["margin"]["t"] = 64.into();
    let options = json!({ "format": "png", "width": SIZE.0, "height": SIZE.1, "scale": 2 });
    let serializer = Serializer::json_compatible();
    let (figure, options) = (figure.serialize(&serializer)?, options.serialize(&serializer)?);
    let image = plotly_function("toImage")?.call2(&JsValue::NULL, &figure, &options)?;
    JsFuture::from(image.dyn_into::<Promise>()?).await?.as_string().ok_or(JsValue::NULL)
}

/// Returns the keys of the points of an event, the nearest to the pointer first.
fn keys(event: &JsValue) -> Vec<String> {
    let get = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).ok();
    let key = |point: JsValue| get(&point, "customdata")?.as_string();
    let points = get(event, "points").map(|points| Array::from(&points));
    points.map_or(Vec::new(), |points| points.iter().filter_map(key).collect())
}

async fn draw(place: &HtmlElement, chart: &Drawing) -> Result<(), JsValue> {
    load_plotly().await?;
    let ink = window().get_computed_style(place)?.ok_or(JsValue::NULL)?.get_property_value("color")?;
    let plot = plot(chart, &ink, f64::from(place.client_width()));
    if let Some(height) = plot["layout"]["meta"].as_u64() {
        place.style().set_property("min-height", &format!("{height}px"))?;
    }
    let plot = plot.serialize(&Serializer::json_compatible())?;
    let part = |name: &str| Reflect::get(&plot, &name.into());
    let arguments = [place.into(), part("data")?, part("layout")?, part("config")?];
    let drawn = plotly_function("react")?.apply(&JsValue::NULL, &arguments.into_iter().collect())?;
    JsFuture::from(drawn.dyn_into::<Promise>()?).await?;
    Ok(())
}

/// Lets a drawn chart be scaled: print styles fit it to the paper.
fn make_scalable(place: &HtmlElement) -> Result<(), JsValue> {
    let layers = place.get_elements_by_class_name("main-svg");
    for layer in (0..layers.length()).filter_map(|index| layers.item(index)) {
        let size = |name: &str| layer.get_attribute(name).unwrap_or_default();
        layer.set_attribute("viewBox", &format!("0 0 {} {}", size("width"), size("height")))?;
    }
    Ok(())
}

const GRID: &str = "rgba(128,128,128,0.25)";

/// Returns Plotly's data, layout and configuration. The `plotly` crate would do the same, but it would make
/// the page 50 kB larger, where this takes 7 kB. `width` is that of the chart in pixels.
fn plot(chart: &Drawing, ink: &str, width: f64) -> Value {
    let (traces, mut layout) = (chart.draw)(ink, width);
    // Plotly would write 0.5 as 500m.
    if traces.iter().any(has_fraction) {
        let y = &mut layout["yaxis"];
        y["exponentformat"] = "none".into();
        y["separatethousands"] = true.into();
        if y["tickformat"] == SI_PREFIXES {
            y["tickformat"] = ",~r".into();
        }
    }
    layout["paper_bgcolor"] = "rgba(0,0,0,0)".into();
    layout["plot_bgcolor"] = "rgba(0,0,0,0)".into();
    layout["font"] = json!({ "family": "system-ui, sans-serif", "color": ink, "size": 13 });
    layout["legend"] = json!({
        "orientation": "h", "xref": "container", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom", "traceorder": "normal",
    });
    let config = json!({ "responsive": true, "displayModeBar": false, "showTips": false });
    json!({ "data": traces, "layout": layout, "config": config })
}

/// The format of ticks such as 20k.
const SI_PREFIXES: &str = "~s";

/// Returns whether a trace has a value below 1.
fn has_fraction(trace: &Value) -> bool {
    trace["y"]
        .as_array()
        .is_some_and(|values| values.iter().filter_map(Value::as_f64).any(|value| value < 1.0))
}

/// Returns an axis with the settings that all charts share.
pub(crate) fn axis(title: &str) -> Value {
    json!({ "title": { "text": title }, "gridcolor": GRID, "zeroline": false, "automargin": true })
}

/// The width of a GPU count below an axis, with a gap, in pixels.
const COUNT_WIDTH: f64 = 44.0;

/// Makes an axis logarithmic, with ticks at powers of two that fit a chart of a width in pixels.
pub(crate) fn count_gpus(axis: &mut Value, counts: impl Iterator<Item = f64>, width: f64) {
    let (least, most) =
        counts.fold((f64::INFINITY, 0.0_f64), |(least, most), count| (least.min(count), most.max(count)));
    let powers = (0..24).map(|power| f64::from(1_u32 << power));
    let powers: Vec<f64> = powers.filter(|power| (least..=most).contains(power)).collect();
    let most = ((width / COUNT_WIDTH) as usize).max(1);
    let ticks: Vec<f64> = powers.iter().copied().step_by(powers.len().div_ceil(most).max(1)).collect();
    axis["type"] = "log".into();
    if ticks.len() > 1 {
        axis["ticktext"] = ticks.iter().map(|tick| short_count(*tick)).collect();
        axis["tickvals"] = ticks.into();
    }
}

/// Returns a power of two as people write GPU counts: `512`, `4k`.
fn short_count(count: f64) -> String {
    if count >= 1024.0 { format!("{}k", count / 1024.0) } else { count.to_string() }
}

/// The least width, in pixels, at which lines have room for their names.
const LABELLED_WIDTH: f64 = 640.0;

fn lines(chart: &LineChart, ink: &str, width: f64) -> (Vec<Value>, Value) {
    let hover = match chart.x {
        XAxis::Gpus if chart.has_days => "%{text} at %{x} GPUs",
        XAxis::Gpus => "%{y:,.4~g} at %{x} GPUs",
        XAxis::Steps => "%{y:,.5~g} at step %{x}",
        XAxis::Time => "%{y:,.5~g} at %{x}",
    };
    let mode = |line: &ChartLine| match chart.x {
        XAxis::Steps if line.points.len() >= MARKED_STEPS => "lines",
        _ => "lines+markers",
    };
    let mut traces: Vec<Value> = chart.lines.iter().map(|line| trace(line, mode(line), hover)).collect();
    if let Some((name, x, y)) = &chart.mark {
        traces.push(json!({
            "type": "scatter", "mode": "markers", "name": name, "x": [x], "y": [y], "hovertemplate": hover,
            "marker": { "color": ink, "size": 15, "symbol": "circle-open", "line": { "width": 2 } },
        }));
    }
    if chart.has_days {
        let mark = chart.mark.iter().map(|mark| vec![mark.2]);
        let values = chart.lines.iter().map(|line| line.points.iter().map(|point| point.1).collect());
        for (trace, values) in traces.iter_mut().zip(values.chain(mark)) {
            trace["text"] = values.into_iter().map(readable_days).collect();
        }
    }
    traces.extend(chart.markers.iter().filter(|markers| !markers.points.is_empty()).map(|markers| {
        let (x, y): (Vec<f64>, Vec<f64>) = markers.points.iter().copied().unzip();
        let colour = if markers.is_bad { BAD } else { ink };
        json!({
            "type": "scatter", "mode": "markers", "name": markers.name, "x": x, "y": y,
            "hovertemplate": hover,
            "marker": { "color": colour, "size": 14, "symbol": markers.symbol, "line": { "width": 2 } },
        })
    }));
    let mut x = axis(match chart.x {
        XAxis::Gpus => "GPUs",
        XAxis::Steps => "Step (as numbered in the log)",
        XAxis::Time => "Time of the run",
    });
    if chart.x == XAxis::Time {
        x["type"] = "date".into();
    }
    if chart.x == XAxis::Steps {
        // Plotly would divide a range of a few steps into fractions of a step.
        let (first, last) = ends(&chart.lines);
        if last - first <= FEW_STEPS {
            x["tickvals"] =
                (0..).map(|step| first + f64::from(step)).take_while(|step| *step <= last).collect();
        }
    }
    if chart.x == XAxis::Gpus {
        // A tick at each measured GPU count only. Plotly accepts them unsorted and repeated.
        let points = chart.lines.iter().flat_map(|line| &line.points).map(|point| point.0);
        let counts: Vec<f64> = points.chain(chart.mark.as_ref().map(|mark| mark.1)).collect();
        x["type"] = "log".into();
        x["ticktext"] = counts.iter().map(|count| group_digits(*count)).collect();
        x["tickvals"] = counts.into();
    }
    let mut y = axis(&chart.y_title);
    if chart.y_log {
        y["type"] = "log".into();
    }
    if let Some((low, high)) = chart.range {
        y["range"] = json!([low, high]);
    }
    if chart.y_log && chart.x == XAxis::Gpus {
        // Ticks at 1, 2 and 5 of each decade.
        y["dtick"] = "D2".into();
        y["tickformat"] = SI_PREFIXES.into();
    } else if chart.x == XAxis::Gpus {
        y["rangemode"] = "tozero".into();
    }
    let margin = json!({ "l": 56, "r": 12, "t": 12, "b": 48 });
    let mut shapes: Vec<Value> = chart.levels.iter().filter_map(interval).collect();
    if let Some((from, to)) = chart.window {
        shapes.push(json!({
            "type": "rect", "layer": "below", "x0": from - 0.5, "x1": to + 0.5,
            "yref": "paper", "y0": 0, "y1": 1, "fillcolor": GRID, "line": { "width": 0 },
        }));
    }
    traces.extend(chart.levels.iter().enumerate().map(|(index, of)| level(of, index, &chart.lines, ink)));
    let labels = chart.labels.filter(|_| width >= LABELLED_WIDTH);
    let mut layout = json!({
        "xaxis": x, "yaxis": y, "hovermode": "closest", "margin": margin, "shapes": shapes,
        "showlegend": labels.is_none(), "annotations": labels.map_or(Vec::new(), |labels| labels(chart)),
    });
    if chart.x == XAxis::Steps && width < LABELLED_WIDTH {
        let levels = chart.levels.iter().map(|level| &*level.name);
        let legend = legend_height(chart.lines.iter().map(|line| &*line.name).chain(levels), width);
        // Plotly cuts a legend that is higher than half of the chart.
        layout["meta"] = (LEAST_HEIGHT + legend).max(2 * legend + 20).into();
    }
    (traces, layout)
}

/// The number of steps from which a line needs no markers.
const MARKED_STEPS: usize = 20;

/// The range of steps, at most, that has a tick at each step.
const FEW_STEPS: f64 = 8.0;

/// The least height of a narrow chart over steps without its legend, in pixels. It leaves 160 to the lines. A layout's `meta` has the
/// least height with the legend.
const LEAST_HEIGHT: usize = 240;

/// Returns the first and the last x of lines.
fn ends(lines: &[ChartLine]) -> (f64, f64) {
    let x = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    x.fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), x| (first.min(x), last.max(x)))
}

/// Returns the names of the lines as annotations at their last points.
fn end_labels(chart: &LineChart) -> Vec<Value> {
    let scaled = |value: f64| if chart.y_log { log10(value) } else { value };
    let ends = by_height(chart.lines.iter().filter_map(|line| {
        // Their points are in order of the GPU count.
        let (x, y) = *line.points.last()?;
        Some((line, x, y))
    }));
    let values = || chart.lines.iter().flat_map(|line| &line.points).map(|point| scaled(point.1));
    let least = values().fold(f64::MAX, f64::min);
    let least = if chart.y_log { least } else { least.min(0.0) };
    let heights: Vec<f64> = ends.iter().map(|end| scaled(end.2)).collect();
    let shifts = label_shifts(&heights, (least, values().fold(f64::MIN, f64::max)));
    let label = |((line, x, y), shift): (&(&ChartLine, f64, f64), i32)| {
        json!({
            "text": escaped(&line.name), "x": log10(*x), "y": scaled(*y), "xanchor": "left", "xshift": 8, "yshift": shift,
            "showarrow": false, "font": { "color": COLOURS[line.group % COLOURS.len()], "size": 12 },
        })
    };
    ends.iter().zip(shifts).map(label).collect()
}

#[expect(clippy::disallowed_methods, reason = "the place of a label, not a result")]
pub(crate) fn log10(value: f64) -> f64 {
    value.max(f64::MIN_POSITIVE).log10()
}

/// Returns the ends of lines, each with x and y, from the highest to the lowest. Sorting a few of them this way takes less code than
/// `sort_by`.
pub(crate) fn by_height<T>(ends: impl Iterator<Item = (T, f64, f64)>) -> Vec<(T, f64, f64)> {
    let mut sorted: Vec<(T, f64, f64)> = Vec::new();
    for end in ends {
        let place = sorted.iter().position(|other| other.2 < end.2).unwrap_or(sorted.len());
        sorted.insert(place, end);
    }
    sorted
}

/// The height of a label, and that of the axes, in pixels: about as they are drawn.
const LABEL_HEIGHT: f64 = 18.0;
const AXIS_HEIGHT: f64 = 340.0;

/// Returns the pixels by which labels at descending heights are moved up, so that they don't overlap. `ends` are the ends of the axis.
pub(crate) fn label_shifts(heights: &[f64], (bottom, top): (f64, f64)) -> Vec<i32> {
    let pixels = |height: &f64| (top - height) / (top - bottom).max(0.1) * AXIS_HEIGHT;
    let places: Vec<f64> = heights.iter().map(pixels).collect();
    places.iter().zip(spread(&places)).map(|(place, spread)| (place - spread).round() as i32).collect()
}

/// Returns the trace of a level, from the first to the last x of the lines.
fn level(level: &PlotLevel, index: usize, lines: &[ChartLine], ink: &str) -> Value {
    let (first, last) = ends(lines);
    // A line of one point can't be seen.
    let margin = if first < last { 0.0 } else { 0.5 };
    let dashes = ["dash", "dot", "dashdot", "longdash"];
    json!({
        "type": "scatter", "mode": "lines", "name": legend_text(&level.name), "hovertemplate": "%{y:,.5~g}",
        "x": [first - margin, last + margin], "y": [level.value, level.value],
        "line": { "color": ink, "width": 1.5, "dash": dashes[index % dashes.len()] },
    })
}

/// Returns the shape of a level's interval, if it has one.
fn interval(level: &PlotLevel) -> Option<Value> {
    let (low, high) = level.interval?;
    Some(json!({
        "type": "rect", "layer": "below", "xref": "paper", "x0": 0, "x1": 1, "y0": low, "y1": high,
        "fillcolor": "rgba(22,153,90,0.18)", "line": { "width": 0 },
    }))
}

/// Returns the places of labels that are [`LABEL_HEIGHT`] apart, as near as possible to the given ascending places: a group
/// of labels that would overlap is spread around its middle.
fn spread(places: &[f64]) -> Vec<f64> {
    // Each group: the sum of the places that its first label should have, and the number of its labels.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for place in places {
        groups.push((*place, 1));
        while let [.., (upper, above), (lower, below)] = groups[..] {
            let (first, second) = (upper / above as f64, lower / below as f64);
            if first + LABEL_HEIGHT * above as f64 <= second {
                break;
            }
            groups.truncate(groups.len() - 2);
            groups.push((upper + lower - LABEL_HEIGHT * (above * below) as f64, above + below));
        }
    }
    let of_group = |(sum, count): (f64, usize)| {
        (0..count).map(move |index| sum / count as f64 + LABEL_HEIGHT * index as f64)
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// The characters per line of the legend that fit on a narrow page.
const LEGEND_LINE: usize = 34;

/// Returns a background for texts in the colour `ink`, such as `rgb(20, 24, 32)`: that of the page's cards.
pub(crate) fn behind(ink: &str) -> &'static str {
    let red = ink.split(|sign: char| !sign.is_ascii_digit()).find(|digits| !digits.is_empty());
    match red.and_then(|red| red.parse::<u32>().ok()) {
        Some(128..) => "rgb(26, 30, 37)",
        _ => "rgb(255, 255, 255)",
    }
}

/// Returns a name escaped for Plotly, which reads names as HTML, and with line breaks: Plotly would cut off
/// the ends of long names, and runs often differ only there.
pub(crate) fn legend_text(name: &str) -> String {
    let mut lines = vec![String::new()];
    for word in name.split_inclusive([' ', '/', '_', '-']) {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.chars().count() + word.chars().count() <= LEGEND_LINE => {
                *line += word;
            }
            _ => lines.push(word.to_string()),
        }
    }
    escaped(&lines.join("\n")).replace('\n', "<br>")
}

/// Returns a text escaped for Plotly.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the height in pixels of a legend with these names beside axes of a width, about as Plotly draws it: in columns as
/// wide as the longest name, or as a line of it.
fn legend_height<'a>(names: impl Iterator<Item = &'a str> + Clone, width: f64) -> usize {
    const LINE: usize = 20;
    let longest = names.clone().map(|name| name.chars().count()).max().unwrap_or(0);
    let column = 45.0 + 7.5 * longest.min(LEGEND_LINE) as f64;
    let columns = ((width / column) as usize).max(1);
    LINE * names.count().div_ceil(columns) * longest.div_ceil(LEGEND_LINE).max(1)
}

/// The width of a bar's label, in pixels: about as it is drawn.
const LABEL_WIDTH: f64 = 60.0;

fn bars(chart: &BarChart, ink: &str, width: f64) -> (Vec<Value>, Value) {
    let Bars { labels, parts } = &chart.bars;
    let totals: Vec<f64> =
        (0..labels.len()).map(|bar| parts.iter().map(|part| part.values[bar]).sum()).collect();
    let mut x = axis(chart.unit);
    let mut y = axis("");
    y["type"] = "category".into();
    // The first bar on top.
    y["autorange"] = "reversed".into();
    y["showgrid"] = false.into();
    y["ticksuffix"] = "  ".into();
    let mut layout =
        json!({ "margin": { "l": 12, "r": 12, "t": 24, "b": 48 }, "bargap": 0.3, "showlegend": true });
    let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let of_axes = width - 40.0 - 7.0 * longest as f64;
    let longest_bar = totals.iter().copied().fold(0.0, f64::max);
    // Parts that can't be seen are left out, and the others keep their colours.
    let is_seen = |part: &Part| part.values.iter().any(|value| *value > 0.001 * longest_bar);
    let parts = || parts.iter().zip(COLOURS).filter(|(part, _)| is_seen(part));
    let legend = legend_height(parts().map(|(part, _)| &*part.name), of_axes);
    // Plotly cuts a legend that is higher than half of the chart.
    layout["height"] = (28 * labels.len() + 110 + legend).max(2 * legend + 20).into();
    let mut trace = json!({ "type": "bar", "orientation": "h", "y": labels });
    let whole: f64 = totals.iter().sum();
    let hover = format!("%{{y}}: %{{x:.3~g}} {}", chart.unit);
    trace["hovertemplate"] = hover.into();
    match &chart.kind {
        BarKind::Waterfall => {
            let ends = totals.iter().scan(0.0, |end, total| {
                *end += total;
                Some(*end)
            });
            let starts: Vec<f64> = ends.zip(&totals).map(|(end, total)| end - total).collect();
            // Room for the numbers to the right of the bars: a fifth of the axis, or more if it is short.
            x["range"] = json!([0, whole * (of_axes / (of_axes - LABEL_WIDTH).max(1.0)).clamp(1.2, 3.0)]);
            layout["barmode"] = "overlay".into();
            trace["base"] = starts.into();
            trace["textposition"] = "outside".into();
            trace["cliponaxis"] = false.into();
        }
        BarKind::Stacked { name, limit } => {
            layout["barmode"] = "stack".into();
            trace["textposition"] = "inside".into();
            trace["insidetextanchor"] = "middle".into();
            trace["textangle"] = 0.into();
            // Readable on each of the colours.
            trace["insidetextfont"] = json!({ "color": "#000" });
            layout["shapes"] = json!([{
                "type": "line", "x0": limit, "x1": limit, "yref": "paper", "y0": 0, "y1": 1,
                "line": { "color": ink, "width": 2, "dash": "dash" },
            }]);
            layout["annotations"] = json!([{
                "text": name, "x": limit, "xanchor": "right", "yref": "paper", "y": 1, "yanchor": "bottom",
                "showarrow": false,
            }]);
        }
    }
    layout["xaxis"] = x;
    layout["yaxis"] = y;
    let traces = parts().map(|(part, colour)| {
        let mut trace = trace.clone();
        trace["name"] = part.name.as_str().into();
        trace["x"] = part.values.as_slice().into();
        trace["marker"] = json!({ "color": colour });
        // Parts that can't be seen, or are too short for their label, have none.
        let (least, write): (f64, fn(f64) -> String) = match chart.kind {
            BarKind::Waterfall => (0.001 * whole, short_seconds),
            BarKind::Stacked { limit, .. } => {
                (limit.max(longest_bar) * LABEL_WIDTH / of_axes.max(1.0), one_decimal)
            }
        };
        let text = |value: &f64| if *value > least { write(*value) } else { String::new() };
        trace["text"] = part.values.iter().map(text).collect();
        trace
    });
    (traces.collect(), layout)
}

fn trace(line: &ChartLine, mode: &str, hover: &str) -> Value {
    let (x, y): (Vec<f64>, Vec<f64>) = line.points.iter().copied().unzip();
    let colour = COLOURS[line.group % COLOURS.len()];
    let (dash, symbol) = STYLES[line.style % STYLES.len()];
    let name = legend_text(&line.name);
    let (mode, shape) = if line.is_level { ("lines", "hv") } else { (mode, "linear") };
    json!({
        "type": "scatter", "mode": mode, "name": name, "x": x, "y": y, "hovertemplate": hover,
        "line": { "color": colour, "width": 2, "dash": dash, "shape": shape },
        "marker": { "color": colour, "size": 7, "symbol": symbol },
    })
}

/// Returns a function of Plotly.
fn plotly_function(name: &str) -> Result<Function, JsValue> {
    let plotly = Reflect::get(&window(), &"Plotly".into())?;
    Reflect::get(&plotly, &name.into())?.dyn_into()
}

/// Loads Plotly unless it is loaded or loading, and waits for it.
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
    let loaded = Promise::new(&mut |resolve, reject| {
        // These calls can't fail for a script element.
        let _ = script.add_event_listener_with_callback("load", &resolve);
        let _ = script.add_event_listener_with_callback("error", &reject);
    });
    JsFuture::from(loaded).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::gpu_mark::GpuMark;
    use trainplan_shared::catalog::Catalog;

    fn plot_of(values: Vec<f64>) -> Plot {
        let steps = (0..values.len()).map(|step| step as f64).collect();
        let line = PlotLine { name: "run".into(), steps, values };
        Plot { lines: vec![line], ..Plot::default() }
    }

    #[test]
    fn no_colour_is_that_of_a_gpu_type() {
        for gpu in Catalog::embedded().gpus() {
            assert!(!COLOURS.contains(&GpuMark::of(&gpu.id).colour), "{}", gpu.name);
        }
    }

    #[test]
    fn a_narrow_axis_has_fewer_gpu_counts() {
        let texts = |width: f64| {
            let mut x = axis("GPUs");
            count_gpus(&mut x, [8.0, 72.0, 4096.0].into_iter(), width);
            x["ticktext"].clone()
        };
        assert_eq!(texts(800.0), json!(["8", "16", "32", "64", "128", "256", "512", "1k", "2k", "4k"]));
        assert_eq!(texts(300.0), json!(["8", "32", "128", "512", "2k"]));
    }

    #[test]
    fn days_are_written_as_everywhere() {
        let line = ChartLine {
            name: "FP8".into(),
            group: 0,
            style: 0,
            points: vec![(512.0, 44.1)],
            is_level: false,
        };
        let chart =
            LineChart::over_gpus(vec![line], "Days", true).with_mark(Some(("This plan".into(), 512.0, 9.5)));
        let plot = plot(&chart.of_days(true).into(), "#000", 600.0);
        assert_eq!([0, 1].map(|trace| plot["data"][trace]["text"][0].clone()), [json!("44"), json!("9.50")]);
    }

    #[test]
    fn a_slow_first_step_is_left_out_of_the_range() {
        let mut values = vec![10.0; 100];
        values[0] = 100.0;
        values[1] = 10.5;
        let (low, high) = LineChart::range(&plot_of(values)).expect("a range");
        assert!(low <= 10.0 && high < 100.0, "{low} to {high}");
        assert_eq!(LineChart::range(&plot_of((0..100).map(f64::from).collect())), None);
        assert_eq!(LineChart::range(&plot_of(Vec::new())), None);
    }

    #[test]
    fn legend_texts_are_escaped_and_wrapped() {
        assert_eq!(legend_text("<b>&"), "&lt;b&gt;&amp;");
        let name = "pretrain_llama3.1_405b_fp8_512_and_a_long_suffix";
        assert_eq!(legend_text(name), "pretrain_llama3.1_405b_fp8_512_<br>and_a_long_suffix");
    }

    #[test]
    fn names_in_a_legend_are_what_tells_them_apart() {
        let name = |run: &str| format!("log-acct.pretrain_{run}_0.out");
        let [first, second] = [name("llama3.1_405b_fp8_512_71"), name("llama3.1_405b_bf16_512_72")];
        assert_eq!(short_names(&[&first, &second]), ["405b_fp8_512_71", "405b_bf16_512_72"]);
        assert_eq!(short_names(&[&first]), [&*first]);
        assert_eq!(short_names(&[&first, &first]), [&*first, &*first]);
        assert_eq!(short_names(&["x_a_b", "x_a_b_c", "x_a_c"]), ["a_b", "a_b_c", "a_c"]);
        assert_eq!(short_names(&["x_a_8 (job 1)", "x_a_8 (job 2)"]), ["a_8 (job 1)", "a_8 (job 2)"]);
        assert_eq!(short_names(&["run", "run-2"]), ["run", "run-2"]);
        assert!(short_names(&[]).is_empty());
    }

    #[test]
    fn few_steps_have_markers_and_a_tick_each() {
        let of = |count: usize| {
            plot(&LineChart::of_plot(&plot_of(vec![2.0; count]), "Loss", false).into(), "#000", 300.0)
        };
        let (few, many) = (of(3), of(40));
        assert_eq!(few["data"][0]["mode"], "lines+markers");
        assert_eq!(few["layout"]["xaxis"]["tickvals"], json!([0.0, 1.0, 2.0]));
        assert_eq!(many["data"][0]["mode"], "lines");
        assert_eq!(many["layout"]["xaxis"]["tickvals"], Value::Null);
    }

    #[test]
    fn a_narrow_chart_over_steps_is_higher_with_a_long_legend() {
        let height = |runs: u32, width: f64| {
            let line = |run: u32| PlotLine {
                name: format!("pretrain_llama3.1_405b_fp8_512_{run}"),
                ..plot_of(vec![2.0]).lines[0].clone()
            };
            let of_runs = Plot { lines: (0..runs).map(line).collect(), ..Plot::default() };
            plot(&LineChart::of_plot(&of_runs, "Loss", false).into(), "#000", width)["layout"]["meta"]
                .as_u64()
        };
        assert!(height(1, 300.0) < height(8, 300.0));
        assert_eq!(height(8, 1000.0), None);
    }

    #[test]
    fn ticks_below_one_have_no_prefix() {
        let format = |days: f64| {
            let points = vec![(512.0, days), (1024.0, 2000.0)];
            let line = ChartLine { name: "FP8".into(), group: 0, style: 0, points, is_level: false };
            plot(&LineChart::over_gpus(vec![line], "Days", true).into(), "#000", 600.0)["layout"]["yaxis"]["tickformat"].clone()
        };
        assert_eq!([format(0.4), format(4.0)], [json!(",~r"), json!("~s")]);
    }

    #[test]
    fn a_waterfall_begins_each_bar_at_the_end_of_the_one_before() {
        let parts = vec![Part { name: "Computing".into(), values: vec![2.0, 3.0, 0.0125, 0.001] }];
        let bars = Bars { labels: ["A", "B", "C", "D"].map(String::from).into(), parts };
        let chart = BarChart { bars, unit: "seconds", kind: BarKind::Waterfall };
        let plot = plot(&chart.into(), "#000", 600.0);
        assert_eq!(plot["data"][0]["base"], json!([0.0, 2.0, 5.0, 5.0125]));
        // The last part can't be seen.
        let labels = json!(["2.00\u{a0}s", "3.00\u{a0}s", "12.5\u{a0}ms", ""]);
        assert_eq!(plot["data"][0]["text"], labels);
    }

    #[test]
    fn long_parts_of_a_stack_have_labels_and_unseen_parts_are_left_out() {
        let part = |name: &str, value: f64| Part { name: name.into(), values: vec![value] };
        let parts = vec![part("Weights", 0.01), part("Optimizer", 50.0), part("Logits", 1.0)];
        let bars = Bars { labels: vec!["Every GPU".into()], parts };
        let kind = BarKind::Stacked { name: "80 GiB".into(), limit: 80.0 };
        let plot = plot(&BarChart { bars, unit: "GiB", kind }.into(), "#000", 600.0);
        let data = plot["data"].as_array().expect("traces");
        let texts: Vec<&Value> = data.iter().map(|trace| &trace["text"][0]).collect();
        assert_eq!(texts, [&json!("50.0"), &json!("")]);
        assert_eq!(data[0]["marker"]["color"], COLOURS[1]);
    }

    #[test]
    fn labels_are_spread_around_their_middle() {
        assert_eq!(spread(&[0.0, 100.0]), [0.0, 100.0]);
        assert_eq!(spread(&[100.0, 100.0]), [91.0, 109.0]);
        let many = spread(&[10.0, 11.0, 12.0, 13.0, 200.0]);
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_HEIGHT - 1e-9), "{many:?}");
        assert_eq!(many[4], 200.0);
    }

    #[test]
    fn a_narrow_chart_has_room_for_a_taller_legend() {
        let names = ["Weights", "Gradients", "Optimizer", "Activations", "Logits", "Reserved"];
        let height = |width| legend_height(names.into_iter(), width);
        assert_eq!((height(1000.0), height(300.0), height(50.0)), (20, 60, 120));
    }

    #[test]
    fn gpu_counts_are_ticks_of_a_logarithmic_axis() {
        let line = ChartLine {
            name: "FP8".into(),
            group: 0,
            style: 0,
            points: vec![(512.0, 1e5), (1024.0, 2e5)],
            is_level: false,
        };
        let mark = Some(("This plan".to_string(), 768.0, 1.5e5));
        let chart = LineChart::over_gpus(vec![line], "Tokens per second", true).with_mark(mark);
        let plot = plot(&chart.into(), "#000", 600.0);
        assert_eq!(plot["layout"]["xaxis"]["ticktext"], json!(["512", "1,024", "768"]));
        assert_eq!(plot["data"][1]["name"], "This plan");
    }
}
