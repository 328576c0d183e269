//! The names of lines at their ends, which replace a legend.

use super::{ChartLine, LineChart};
use crate::components::chart::labels::{by_height, escaped, label_shifts, log10};
use crate::components::chart::{COLOURS, text_colour};
use serde_json::{Value, json};

/// Returns the names of the lines as annotations, each joined to the last point of its line, where other texts have the colour `ink`,
/// and the ends of the y axis, which is as many `pixels` high.
pub(super) fn end_labels(chart: &LineChart, ink: &str, pixels: f64) -> (Vec<Value>, [f64; 2]) {
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
