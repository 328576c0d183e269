//! Plotly's traces and layout of a chart of lines.

use super::{ChartLine, LineChart, XAxis};
use crate::components::chart::gpu_ticks::spaced;
use crate::components::chart::labels::{escaped, legend_height, legend_text};
use crate::components::chart::{BAD, COLOURS, GRID, SI_PREFIXES, axis};
use crate::message::PlotLevel;
use serde_json::{Value, json};
use trainplan_shared::units::{group_digits, readable_days};

pub(super) fn lines(chart: &LineChart, ink: &str, (width, height): (f64, f64)) -> (Vec<Value>, Value) {
    let hover = match chart.x {
        XAxis::Gpus if chart.has_days => "%{text} at %{x} GPUs",
        XAxis::Gpus => "%{y:,.4~g} at %{x} GPUs",
        XAxis::Steps => "%{y:,.5~g} at step %{x}",
        XAxis::Time => "%{y:,.5~g} at %{x}",
        XAxis::Runs => "%{y:,.5~g}, run %{x}",
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
        let hover = if markers.has_values { hover } else { "%{x}" };
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
        XAxis::Runs => "Run, oldest first",
    });
    if chart.x == XAxis::Time {
        x["type"] = "date".into();
    }
    if matches!(chart.x, XAxis::Steps | XAxis::Runs) {
        // Plotly would divide a range of a few steps into fractions of a step.
        let (first, last) = ends(chart);
        if last - first <= FEW_STEPS {
            x["tickvals"] =
                (0..).map(|step| first + f64::from(step)).take_while(|step| *step <= last).collect();
        }
    }
    if chart.x == XAxis::Gpus {
        // A tick at measured GPU counts only.
        let points = chart.lines.iter().flat_map(|line| &line.points).map(|point| point.0);
        let counts = spaced(points.chain(chart.mark.as_ref().map(|mark| mark.1)).collect(), width);
        x["type"] = "log".into();
        x["ticktext"] = counts.iter().map(|count| group_digits(*count)).collect();
        x["tickvals"] = counts.into();
    }
    let is_narrow = width < LABELLED_WIDTH;
    let is_titled_above = is_narrow && chart.x == XAxis::Gpus;
    // A long title is higher than the axis of a narrow chart.
    let y_title = match (is_titled_above, is_narrow) {
        (true, _) => String::new(),
        (false, true) => chart.y_title.replacen(" per GPU", "<br>per GPU", 1),
        (false, false) => chart.y_title.clone(),
    };
    let mut y = axis(&y_title);
    // Its title would double the margin, even without a text.
    y["automargin"] = (!is_titled_above).into();
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
        y["tickformat"] = ",~r".into();
    }
    let (top, bottom) = if is_titled_above { (28, 48) } else { (12, 48) };
    let margin = json!({ "l": 56, "r": 12, "t": top, "b": bottom });
    let mut shapes: Vec<Value> = chart.levels.iter().filter_map(interval).collect();
    if let Some((from, to)) = chart.window {
        shapes.push(json!({
            "type": "rect", "layer": "below", "x0": from - 0.5, "x1": to + 0.5,
            "yref": "paper", "y0": 0, "y1": 1, "fillcolor": GRID, "line": { "width": 0 },
        }));
    }
    traces.extend(chart.levels.iter().enumerate().map(|(index, of)| level(of, index, chart, ink)));
    // Shapes have no place in a legend, so that each band is the name of an empty trace.
    let ranges = chart.levels.iter().filter(|level| level.interval.is_some());
    let ranges = ranges.map(|level| (format!("{} (range)", level.name), RANGE_COLOUR));
    let scored = chart.window.map(|window| (format!("Scored steps ({})", steps_in_words(window)), GRID));
    let bands: Vec<(String, &str)> = ranges.chain(scored).collect();
    traces.extend(bands.iter().map(|(name, colour)| {
        json!({
            "type": "scatter", "mode": "markers", "name": legend_text(name), "x": [null], "y": [null],
            "marker": { "color": colour, "size": 14, "symbol": "square" },
        })
    }));
    let labels = chart.labels.filter(|_| !is_narrow);
    let labels = labels.map(|labels| labels(chart, ink, (height - f64::from(top + bottom)).max(1.0)));
    let (notes, labelled_range) = labels.unzip();
    let mut notes = notes.unwrap_or_default();
    if let Some(range) = labelled_range {
        y["range"] = json!(range);
    }
    if is_titled_above {
        notes.push(json!({
            "text": escaped(&chart.y_title), "xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 1, "yanchor": "bottom",
            "showarrow": false,
        }));
    }
    let mut layout = json!({
        "xaxis": x, "yaxis": y, "hovermode": "closest", "margin": margin, "shapes": shapes,
        "showlegend": labelled_range.is_none(), "annotations": notes,
    });
    if chart.x != XAxis::Time && labelled_range.is_none() {
        let others = chart.levels.iter().map(|level| &*level.name);
        let others = others.chain(chart.mark.iter().map(|mark| &*mark.0));
        let others = others.chain(bands.iter().map(|band| &*band.0));
        let legend = legend_height(chart.lines.iter().map(|line| &*line.name).chain(others), width);
        let least = if is_narrow { LEAST_HEIGHT } else { LEAST_HEIGHT_WIDE };
        // Plotly cuts a legend that is higher than half of the chart.
        layout["meta"] = (least + legend).max(2 * legend + 20).into();
    }
    (traces, layout)
}

/// The least width, in pixels, at which lines have room for their names.
const LABELLED_WIDTH: f64 = 640.0;

/// The number of steps at which lines lose their markers.
const MARKED_STEPS: usize = 20;

/// The range of steps, at most, that has a tick at each step.
const FEW_STEPS: f64 = 8.0;

/// The least heights of a narrow chart and of a wide one without their legends, in pixels. They leave 160 and 100 to the lines. A
/// layout's `meta` has the least height with the legend.
const LEAST_HEIGHT: usize = 240;
const LEAST_HEIGHT_WIDE: usize = 160;

fn trace(line: &ChartLine, mode: &str, hover: &str) -> Value {
    let (x, y): (Vec<f64>, Vec<f64>) = line.points.iter().copied().unzip();
    let colour = COLOURS[line.group % COLOURS.len()];
    let (dash, symbol) = STYLES[line.style % STYLES.len()];
    let name = legend_text(&line.name);
    let (mode, shape) = if line.is_level { ("lines", "hv") } else { (mode, "linear") };
    json!({
        "type": "scatter", "mode": mode, "name": name, "x": x, "y": y, "hovertemplate": hover,
        // Plotly would cut names after 15 characters, and runs often differ only at the end.
        "hoverlabel": { "namelength": -1 },
        "line": { "color": colour, "width": 2, "dash": dash, "shape": shape },
        "marker": { "color": colour, "size": 7, "symbol": symbol },
    })
}

// Dash and marker, so that lines differ not only by colour.
const STYLES: [(&str, &str); 4] =
    [("solid", "circle"), ("dot", "diamond"), ("dash", "square"), ("dashdot", "triangle-up")];

/// Returns the first and the last x of a chart.
fn ends(chart: &LineChart) -> (f64, f64) {
    let lines = chart.lines.iter().map(|line| &line.points);
    let x = lines.chain(chart.markers.iter().map(|markers| &markers.points)).flatten().map(|point| point.0);
    x.fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), x| (first.min(x), last.max(x)))
}

/// Returns the trace of a level, from the first to the last x of the chart.
fn level(level: &PlotLevel, index: usize, chart: &LineChart, ink: &str) -> Value {
    let (first, last) = ends(chart);
    // A line of one point can't be seen.
    let margin = if first < last { 0.0 } else { 0.5 };
    let dashes = ["dash", "dot", "dashdot", "longdash"];
    json!({
        "type": "scatter", "mode": "lines", "name": legend_text(&level.name), "hovertemplate": "%{y:,.5~g}",
        "x": [first - margin, last + margin], "y": [level.value, level.value],
        "line": { "color": ink, "width": 1.5, "dash": dashes[index % dashes.len()] },
    })
}

/// The colour of the interval of a level.
const RANGE_COLOUR: &str = "rgba(22,153,90,0.28)";

/// Returns the steps from the first to the last: `49`, `35–44`.
fn steps_in_words((first, last): (f64, f64)) -> String {
    if first < last { format!("{first}–{last}") } else { first.to_string() }
}

/// Returns the shape of a level's interval, if it has one.
fn interval(level: &PlotLevel) -> Option<Value> {
    let (low, high) = level.interval?;
    Some(json!({
        "type": "rect", "layer": "below", "xref": "paper", "x0": 0, "x1": 1, "y0": low, "y1": high,
        "fillcolor": RANGE_COLOUR, "line": { "width": 0 },
    }))
}
