//! The drawing of all plans: GPUs against days, cost or energy, with a line and a band for each GPU type.

use crate::components::chart::{Drawing, Figure, axis, behind, legend_text, series_colour};
use serde_json::{Value, json};

/// Plans over GPU counts, with a line and a band for each GPU type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PlanChart {
    pub(super) lines: Vec<PlanLine>,
    /// The quantity on the y axis, with its unit.
    pub(super) y_title: String,
    /// The value to stay below, with its label.
    pub(super) limit: Option<(f64, String)>,
    /// The highlighted point.
    pub(super) selected: Option<(f64, f64)>,
}

/// The plans of a GPU type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PlanLine {
    pub(super) name: String,
    /// The index of the colour, as in [`series_colour`].
    pub(super) colour: usize,
    pub(super) points: Vec<PlanPoint>,
}

/// A plan of a chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PlanPoint {
    pub(super) gpus: f64,
    /// The value, with the ends of its range.
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) is_measured: bool,
    /// The text beside the pointer.
    pub(super) text: String,
    /// What is given to the chart's `pick`.
    pub(super) key: String,
}

impl From<PlanChart> for Drawing {
    fn from(chart: PlanChart) -> Drawing {
        Drawing::Figure(Figure::new(move |ink| plans(&chart, ink)))
    }
}

/// Returns lines with bands, both axes logarithmic, each line with its name at its end. Texts have no bold parts: Plotly would
/// add inline styles for them, which the content security policy forbids.
fn plans(chart: &PlanChart, ink: &str) -> (Vec<Value>, Value) {
    let mut traces = Vec::new();
    for line in &chart.lines {
        let colour = series_colour(line.colour);
        let ahead = line.points.iter().map(|point| (point.gpus, point.high));
        let back = line.points.iter().rev().map(|point| (point.gpus, point.low));
        let (x, y): (Vec<f64>, Vec<f64>) = ahead.chain(back).unzip();
        traces.push(json!({
            "type": "scatter", "mode": "lines", "x": x, "y": y, "fill": "toself", "fillcolor": format!("{colour}26"),
            "line": { "width": 0 }, "hoverinfo": "skip",
        }));
    }
    for line in &chart.lines {
        let colour = series_colour(line.colour);
        let of = |value: fn(&PlanPoint) -> Value| line.points.iter().map(value).collect::<Value>();
        traces.push(json!({
            "type": "scatter", "mode": "lines+markers", "name": legend_text(&line.name),
            "x": of(|point| point.gpus.into()), "y": of(|point| point.value.into()),
            "text": of(|point| point.text.as_str().into()), "customdata": of(|point| point.key.as_str().into()),
            "hovertemplate": "%{text}", "line": { "color": colour, "width": 2 },
            "marker": {
                "color": colour, "size": 7, "line": { "width": 1.5, "color": colour },
                "symbol": of(|point| if point.is_measured { "circle".into() } else { "circle-open".into() }),
            },
        }));
    }
    if let Some((x, y)) = chart.selected {
        traces.push(json!({
            "type": "scatter", "mode": "markers", "x": [x], "y": [y], "hoverinfo": "skip",
            "marker": { "color": ink, "size": 17, "symbol": "circle-open", "line": { "width": 2 } },
        }));
    }
    let (mut x, mut y) = (axis("GPUs"), axis(&chart.y_title));
    for axis in [&mut x, &mut y] {
        axis["type"] = "log".into();
        axis["dtick"] = "D2".into();
        axis["tickformat"] = "~s".into();
    }
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let mut ticks: Vec<f64> = (0..24).map(|power| f64::from(1_u32 << power)).collect();
    ticks.retain(|tick| {
        points().any(|point| point.gpus <= *tick) && points().any(|point| point.gpus >= *tick)
    });
    if ticks.len() > 1 {
        x["tickvals"] = ticks.iter().copied().collect();
        x["ticktext"] = ticks.iter().map(|tick| short_count(*tick)).collect();
    }
    x["showspikes"] = true.into();
    x["spikemode"] = "across".into();
    x["spikethickness"] = (-1).into();
    x["spikedash"] = "dot".into();
    x["spikecolor"] = "rgb(128, 128, 128)".into();
    let mut notes: Vec<Value> = line_ends(chart)
        .into_iter()
        .map(|(line, x, y, shift)| {
            json!({
                "text": legend_text(&line.name), "x": log10(x), "y": log10(y),
                "xanchor": "left", "xshift": 8, "yshift": shift, "showarrow": false,
                "font": { "color": series_colour(line.colour) },
            })
        })
        .collect();
    let mut shapes = Vec::new();
    if let Some((limit, label)) = &chart.limit {
        shapes.push(json!({
            "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": limit, "y1": limit,
            "line": { "color": ink, "width": 1.5, "dash": "dash" },
        }));
        notes.push(json!({
            "text": legend_text(label), "xref": "paper", "x": 1, "xanchor": "right", "y": log10(*limit),
            "yanchor": "bottom", "showarrow": false,
        }));
    }
    let layout = json!({
        "xaxis": x, "yaxis": y, "hovermode": "x unified", "margin": { "l": 56, "r": 72, "t": 12, "b": 44 },
        "shapes": shapes, "annotations": notes, "hoverlabel": { "font": { "color": ink }, "bgcolor": behind(ink), "bordercolor": "rgb(128, 128, 128)" },
    });
    (traces, layout)
}

#[expect(clippy::disallowed_methods, reason = "the place of a label, not a result")]
fn log10(value: f64) -> f64 {
    value.max(f64::MIN_POSITIVE).log10()
}

/// Returns a power of two as people write GPU counts: `512`, `4k`.
fn short_count(count: f64) -> String {
    if count >= 1024.0 { format!("{}k", count / 1024.0) } else { count.to_string() }
}

/// Returns the last point of each line with the pixels by which its label is moved, so that labels don't overlap.
fn line_ends(chart: &PlanChart) -> Vec<(&PlanLine, f64, f64, i32)> {
    let last = |line: &'_ PlanLine| line.points.last().map(|point| (point.gpus, point.value));
    let mut ends: Vec<_> =
        chart.lines.iter().filter_map(|line| last(line).map(|(x, y)| (line, x, y, 0))).collect();
    ends.sort_by(|one, other| other.2.total_cmp(&one.2));
    let values = || chart.lines.iter().flat_map(|line| &line.points).map(|point| log10(point.value));
    let span = values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min);
    for index in 1..ends.len() {
        // About 320 px for the whole span, and 18 px for a line of text.
        let gap = (log10(ends[index - 1].2) - log10(ends[index].2)) / span.max(0.1) * 320.0;
        let above = f64::from(ends[index - 1].3);
        ends[index].3 = (above + gap - 18.0).min(0.0) as i32;
    }
    ends
}
