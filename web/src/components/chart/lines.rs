//! This file draws lines over GPU counts, over steps or over time. It also makes the ticks of GPU counts, the levels to compare
//! with, and the short names of runs.

use super::labels::{by_height, escaped, label_shifts, legend_height, legend_text, log10};
use super::{BAD, COLOURS, Drawing, GRID, SI_PREFIXES, axis, text_colour};
use crate::message::{Plot, PlotLevel, PlotLine};
use serde_json::{Value, json};
use trainplan_shared::compare::{BriefLabels, sustained_peak};
use trainplan_shared::units::{group_digits, readable_days};

/// Lines over GPU counts or over steps.
#[derive(Debug, Clone)]
pub(crate) struct LineChart {
    pub(super) lines: Vec<ChartLine>,
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
    pub(super) y_log: bool,
    /// The range of y, if it is not that of the values.
    range: Option<(f64, f64)>,
    /// Whether the values are days, which are written by a rule of their own.
    has_days: bool,
    /// Returns the names of the lines as annotations at their ends, which replace the legend where the chart is wide enough, and the
    /// ends of the y axis. A function, so that only the programs that use it contain it.
    labels: Option<PlaceLabels>,
}

/// Returns the annotations of a chart in a colour and of a height in pixels, and the ends of its y axis.
type PlaceLabels = fn(&LineChart, &str, f64) -> (Vec<Value>, [f64; 2]);

/// The quantity on the x axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum XAxis {
    /// GPU counts, on a logarithmic axis.
    Gpus,
    /// Training steps.
    Steps,
    /// Times, in milliseconds since 1970.
    Time,
    /// The numbers of runs, the oldest first.
    Runs,
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

    /// Returns the range of y if Plotly's own doesn't suit: it leaves out outliers, if a few values, 5 % at most, and at most two
    /// consecutive ones of a line, are far above the others; and that of step times is wide enough that noise looks small.
    pub(crate) fn range(plot: &Plot) -> Option<(f64, f64)> {
        let mut values: Vec<f64> = plot.lines.iter().flat_map(|line| &line.values).copied().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let sustained = plot.lines.iter().filter_map(|line| sustained_peak(&line.values));
        let usual = sustained.fold(values[values.len() * 19 / 20], f64::max);
        let ends = plot.levels.iter().map(|level| level.interval.unwrap_or((level.value, level.value)));
        let (low, high) = ends.fold((least, usual), |(low, high), (from, to)| (low.min(from), high.max(to)));
        let span = high - low;
        let (range, has_outliers) = match most > high + 2.0 * span {
            true => ((low - 0.1 * span, high + 0.2 * span), true),
            false => (padded(low, high.max(most)), false),
        };
        match plot.is_time {
            true => Some(around(values[values.len() / 2], range)),
            false => has_outliers.then_some(range),
        }
    }

    /// Returns a chart of step times over time, in milliseconds since 1970, or over the numbers of runs, with highlighted points and
    /// horizontal lines.
    pub(crate) fn over_time(
        lines: Vec<ChartLine>,
        markers: Vec<ChartMarkers>,
        levels: Vec<PlotLevel>,
        y_title: &str,
        is_numbered: bool,
    ) -> LineChart {
        let x = if is_numbered { XAxis::Runs } else { XAxis::Time };
        let points = lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let mut values: Vec<f64> = points.chain(levels.iter().map(|level| level.value)).collect();
        values.sort_by(f64::total_cmp);
        let ends = values.first().zip(values.last());
        let range = ends.map(|(low, high)| around(values[values.len() / 2], padded(*low, *high)));
        LineChart { markers, levels, range, ..LineChart::new(lines, x, y_title) }
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

/// Returns the ends of values with a margin.
fn padded(low: f64, high: f64) -> (f64, f64) {
    let margin = 0.1 * (high - low);
    (low - margin, high + margin)
}

/// Returns a range of step times that contains at least 10 % on both sides of `median`, because a narrower one would magnify noise. It
/// begins at 0 if that at most doubles it.
fn around(median: f64, (low, high): (f64, f64)) -> (f64, f64) {
    let (low, high) = (low.min(0.9 * median), high.max(1.1 * median));
    (if low < 0.5 * high { 0.0 } else { low }, high)
}

impl From<LineChart> for Drawing {
    fn from(chart: LineChart) -> Drawing {
        Drawing::new(move |ink, size| lines(&chart, ink, size))
    }
}

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

/// The width of a GPU count below an axis, with a gap, in pixels.
const COUNT_WIDTH: f64 = 44.0;

/// Returns a power of two as people write GPU counts: `512`, `4k`.
fn short_count(count: f64) -> String {
    if count >= 1024.0 { format!("{}k", count / 1024.0) } else { count.to_string() }
}

/// Returns the GPU counts whose labels have room below an axis, ascending. The axis is logarithmic, in a chart of a width in pixels.
fn spaced(mut counts: Vec<f64>, width: f64) -> Vec<f64> {
    /// The width of a count of five digits, with a gap, and that of the chart's margins.
    const LABEL: f64 = 56.0;
    const MARGINS: f64 = 80.0;
    counts.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (counts.first().copied(), counts.last().copied()) else {
        return counts;
    };
    let apart = (log10(last) - log10(first)) * LABEL / (width - MARGINS).max(LABEL);
    let mut ticks: Vec<f64> = Vec::new();
    for count in counts {
        if ticks.last().is_none_or(|tick| count > *tick && log10(count) - log10(*tick) >= apart) {
            ticks.push(count);
        }
    }
    ticks
}

fn lines(chart: &LineChart, ink: &str, (width, height): (f64, f64)) -> (Vec<Value>, Value) {
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
        XAxis::Runs => "Run, the oldest first",
    });
    if chart.x == XAxis::Time {
        x["type"] = "date".into();
    }
    if matches!(chart.x, XAxis::Steps | XAxis::Runs) {
        // Plotly would divide a range of a few steps into fractions of a step.
        let (first, last) = ends(&chart.lines);
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
    traces.extend(chart.levels.iter().enumerate().map(|(index, of)| level(of, index, &chart.lines, ink)));
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
    if chart.x != XAxis::Time && is_narrow {
        let others = chart.levels.iter().map(|level| &*level.name);
        let others = others.chain(chart.mark.iter().map(|mark| &*mark.0));
        let others = others.chain(bands.iter().map(|band| &*band.0));
        let legend = legend_height(chart.lines.iter().map(|line| &*line.name).chain(others), width);
        // Plotly cuts a legend that is higher than half of the chart.
        layout["meta"] = (LEAST_HEIGHT + legend).max(2 * legend + 20).into();
    }
    (traces, layout)
}

/// The least width, in pixels, at which lines have room for their names.
const LABELLED_WIDTH: f64 = 640.0;

/// The number of steps from which a line needs no markers.
const MARKED_STEPS: usize = 20;

/// The range of steps, at most, that has a tick at each step.
const FEW_STEPS: f64 = 8.0;

/// The least height of a narrow chart without its legend, in pixels. It leaves 160 to the lines. A layout's `meta` has the least
/// height with the legend.
const LEAST_HEIGHT: usize = 240;

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

// Dash and marker, so that lines differ not only by colour.
const STYLES: [(&str, &str); 4] =
    [("solid", "circle"), ("dot", "diamond"), ("dash", "square"), ("dashdot", "triangle-up")];

/// Returns the first and the last x of lines.
fn ends(lines: &[ChartLine]) -> (f64, f64) {
    let x = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    x.fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), x| (first.min(x), last.max(x)))
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

/// Returns names without the beginning and the end that all of them share, except the last part of the beginning. A name that lost its
/// beginning starts with an ellipsis. A name alone stays whole, and so do names that sentences write in full, too.
fn short_names(names: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split_inclusive(SEPARATORS).collect()).collect();
    let whole = || names.iter().copied().map(String::from).collect();
    let Some((first, others)) = parts.split_first() else { return whole() };
    let is_long = |name: &&str| name.chars().count() > BriefLabels::LONG;
    if others.iter().all(|other| other == first) || !names.iter().any(is_long) {
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
    let from = start.saturating_sub(1);
    let cut = if from > 0 { "…" } else { "" };
    let short = |parts: &Vec<&str>| parts[from..parts.len() - end].concat();
    parts.iter().map(|parts| format!("{cut}{}", short(parts).trim_end_matches(SEPARATORS))).collect()
}

/// The characters after which a name is divided. A hyphen is inside a date or a word.
const SEPARATORS: [char; 3] = ['/', '_', '.'];

/// Returns the names of the lines as annotations, each joined to the last point of its line, where other texts have the colour `ink`,
/// and the ends of the y axis, which is as many `pixels` high.
fn end_labels(chart: &LineChart, ink: &str, pixels: f64) -> (Vec<Value>, [f64; 2]) {
    let scaled = |value: f64| if chart.y_log { log10(value) } else { value };
    let ends = by_height(chart.lines.iter().filter_map(|line| {
        // Their points are in order of the GPU count.
        let (x, y) = *line.points.last()?;
        Some((line, x, y))
    }));
    let values = || chart.lines.iter().flat_map(|line| &line.points).map(|point| scaled(point.1));
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
    // The places of the labels need the axis as it is drawn. Plotly would choose another one for the labels.
    let margin = (most - least).max(0.02) * 0.06;
    let bottom = if chart.y_log { least - margin } else { 0.0 };
    let top = most + margin;
    let heights: Vec<f64> = ends.iter().map(|end| scaled(end.2)).collect();
    let shifts = label_shifts(&heights, (bottom, top), pixels);
    let label = |((line, x, y), shift): (&(&ChartLine, f64, f64), i32)| {
        let colour = COLOURS[line.group % COLOURS.len()];
        json!({
            "text": escaped(&line.name), "x": log10(*x), "y": scaled(*y), "xanchor": "left", "ax": 20, "ay": -shift,
            "arrowhead": 0, "arrowwidth": 1, "arrowcolor": colour, "standoff": 5,
            "font": { "color": text_colour(colour, ink), "size": 12 },
        })
    };
    (ends.iter().zip(shifts).map(label).collect(), [bottom, top])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::chart::plot;

    fn plot_of(values: Vec<f64>) -> Plot {
        let steps = (0..values.len()).map(|step| step as f64).collect();
        let line = PlotLine { name: "run".into(), steps, values };
        Plot { lines: vec![line], ..Plot::default() }
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
    fn a_narrow_axis_leaves_out_counts_that_would_overlap() {
        let counts = vec![1024.0, 512.0, 592.0, 4096.0, 512.0];
        assert_eq!(spaced(counts.clone(), 900.0), [512.0, 592.0, 1024.0, 4096.0]);
        assert_eq!(spaced(counts, 310.0), [512.0, 1024.0, 4096.0]);
        assert_eq!(spaced(vec![64.0, 64.0], 310.0), [64.0]);
        assert!(spaced(Vec::new(), 310.0).is_empty());
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
        let plot = plot(&chart.of_days(true).into(), "#000", (600.0, 400.0));
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
    fn the_range_of_step_times_does_not_magnify_noise() {
        let range = |values: &[f64]| LineChart::range(&Plot { is_time: true, ..plot_of(values.to_vec()) });
        assert_eq!(range(&[9.99, 10.0, 10.02]), Some((9.0, 11.0)));
        // A slow first step is still left out.
        let mut values = vec![10.0; 100];
        values[0] = 100.0;
        assert_eq!(range(&values), Some((9.0, 11.0)));
        let (low, high) = range(&[3.0, 12.0, 13.0]).expect("a range");
        assert!(low == 0.0 && high > 13.0, "{low} to {high}");
        assert_eq!(range(&[]), None);
    }

    #[test]
    fn consecutive_slow_steps_are_within_the_range() {
        let mut values = vec![10.0; 300];
        values[0] = 100.0;
        values[36..42].fill(13.5);
        let (_, high) = LineChart::range(&plot_of(values)).expect("a range");
        assert!((13.5..20.0).contains(&high), "{high}");
    }

    #[test]
    fn names_in_a_legend_are_what_tells_them_apart() {
        let name = |run: &str| format!("log-acct_of_the_platform_team.pretrain_{run}_0.out");
        let [first, second] = [name("llama3.1_405b_fp8_512_71"), name("llama3.1_405b_bf16_512_72")];
        assert_eq!(short_names(&[&first, &second]), ["…405b_fp8_512_71", "…405b_bf16_512_72"]);
        assert_eq!(short_names(&[&first]), [&*first]);
        assert_eq!(short_names(&[&first, &first]), [&*first, &*first]);
        let short_of = |ends: &[&str]| {
            let names: Vec<String> = ends.iter().map(|end| format!("{}_{end}", "long".repeat(20))).collect();
            short_names(&names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        assert_eq!(short_of(&["x_a_b", "x_a_b_c", "x_a_c"]), ["…a_b", "…a_b_c", "…a_c"]);
        assert_eq!(short_of(&["x_a_8 (job 1)", "x_a_8 (job 2)"]), ["…a_8 (job 1)", "…a_8 (job 2)"]);
        let nights = ["a_nightly-2026-05-01.log", "a_nightly-2026-05-02.log"];
        assert_eq!(short_of(&nights), ["…a_nightly-2026-05-01", "…a_nightly-2026-05-02"]);
        for whole in [
            ["run", "run-2"],
            ["pretrain_llama3.1_405b_fp8_512 (job 2010)", "pretrain_llama3.1_405b_fp8_512 (job 2011)"],
        ] {
            assert_eq!(short_names(&whole), whole);
        }
        assert!(short_names(&[]).is_empty());
    }

    #[test]
    fn names_of_lines_that_end_near_each_other_are_apart() {
        const HEIGHT: f64 = 320.0;
        let ends = [13_739.0, 335.7, 326.1, 293.4, 231.2, 211.6, 206.1];
        let line = |(group, end): (usize, f64)| ChartLine {
            name: format!("line {group}"),
            group,
            style: 0,
            points: vec![(512.0, 1000.0), (2048.0, end)],
            is_level: false,
        };
        for y_log in [true, false] {
            let lines = ends.into_iter().enumerate().map(line).collect();
            let chart = LineChart::over_gpus(lines, "Tokens per second", y_log).with_labels();
            let layout = plot(&chart.into(), "#000", (900.0, HEIGHT))["layout"].clone();
            let number = |value: &Value| value.as_f64().expect("a number");
            let margins = number(&layout["margin"]["t"]) + number(&layout["margin"]["b"]);
            let pixels = HEIGHT - margins;
            let [bottom, top] = [0, 1].map(|end| number(&layout["yaxis"]["range"][end]));
            let place =
                |note: &Value| (top - number(&note["y"])) / (top - bottom) * pixels + number(&note["ay"]);
            let notes = layout["annotations"].as_array().expect("labels");
            let places: Vec<f64> = notes.iter().map(place).collect();
            assert_eq!(places.len(), ends.len());
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 16.9), "{places:?}");
            assert!(places.iter().all(|place| (-1.0..=pixels + 1.0).contains(place)), "{places:?}");
        }
    }

    #[test]
    fn bands_are_in_the_legend() {
        let level = PlotLevel { name: "Predicted".into(), value: 2.0, interval: Some((1.5, 2.5)) };
        let banded = Plot { levels: vec![level], window: Some((35.0, 44.0)), ..plot_of(vec![2.0; 50]) };
        let drawn = plot(&LineChart::of_plot(&banded, "Step time, s", false).into(), "#000", (900.0, 400.0));
        let names: Vec<_> =
            drawn["data"].as_array().expect("traces").iter().map(|trace| trace["name"].clone()).collect();
        assert_eq!(names, ["run", "Predicted", "Predicted (range)", "Scored steps (35–44)"]);
        assert_eq!(drawn["layout"]["shapes"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn few_steps_have_markers_and_a_tick_each() {
        let of = |count: usize| {
            plot(
                &LineChart::of_plot(&plot_of(vec![2.0; count]), "Loss", false).into(),
                "#000",
                (300.0, 400.0),
            )
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
            plot(&LineChart::of_plot(&of_runs, "Loss", false).into(), "#000", (width, 400.0))["layout"]["meta"]
                .as_u64()
        };
        assert!(height(1, 300.0) < height(8, 300.0));
        assert_eq!(height(8, 1000.0), None);
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
        let plot = plot(&chart.into(), "#000", (600.0, 400.0));
        assert_eq!(plot["layout"]["xaxis"]["ticktext"], json!(["512", "768", "1,024"]));
        assert_eq!(plot["data"][1]["name"], "This plan");
    }
}
