//! This file draws horizontal bars, each made of parts.

use super::labels::{legend_height, legend_text};
use super::{COLOURS, Drawing, STACK_COLOURS, axis};
use crate::message::{Bars, Part};
use serde_json::{Value, json};
use std::sync::Arc;
use trainplan_shared::units::{one_decimal, short_seconds};

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
    /// Each bar has one part and starts at the end of the bar before. It goes back if its value is negative.
    Waterfall {
        /// What shares refer to.
        whole: f64,
    },
    /// The parts of a bar are stacked, and a line marks the limit of their sum.
    Stacked {
        /// The label of the limit.
        name: String,
        limit: f64,
    },
}

impl From<BarChart> for Drawing {
    fn from(chart: BarChart) -> Drawing {
        Drawing {
            draw: Arc::new(move |ink: &str, (width, _): (f64, f64)| bars(&chart, ink, width)),
            has_bars: true,
        }
    }
}

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
    // The parts of a stack are others than those of a waterfall, and the page shows both.
    let parts = match chart.kind {
        BarKind::Waterfall { .. } => longer_than(0.001 * longest_bar, parts, COLOURS),
        BarKind::Stacked { .. } => stack(longest_bar, parts),
    };
    let legend = legend_height(parts.iter().map(|(part, _)| &*part.name), of_axes);
    // Plotly cuts a legend that is higher than half of the chart.
    layout["height"] = (28 * labels.len() + 110 + legend).max(2 * legend + 20).into();
    let mut trace = json!({ "type": "bar", "orientation": "h", "y": labels });
    let ends: Vec<f64> = totals
        .iter()
        .scan(0.0, |end, total| {
            *end += total;
            Some(*end)
        })
        .collect();
    let farthest = ends.iter().copied().fold(0.0, f64::max);
    let hover = format!("%{{y}}: %{{x:.3~g}} {}", chart.unit);
    trace["hovertemplate"] = hover.into();
    match &chart.kind {
        BarKind::Waterfall { .. } => {
            let starts: Vec<f64> = ends.iter().zip(&totals).map(|(end, total)| end - total).collect();
            // Room for the numbers to the right of the bars: a fifth of the axis, or more if it is short.
            x["range"] = json!([0, farthest * (of_axes / (of_axes - LABEL_WIDTH).max(1.0)).clamp(1.2, 3.0)]);
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
    let traces = parts.iter().map(|(part, colour)| {
        let mut trace = trace.clone();
        trace["name"] = legend_text(&part.name).into();
        trace["x"] = part.values.as_slice().into();
        trace["marker"] = json!({ "color": colour });
        // Parts that can't be seen, or are too short for their label, have none.
        let (least, write): (f64, fn(f64) -> String) = match chart.kind {
            BarKind::Waterfall { .. } => (0.001 * farthest, short_seconds),
            BarKind::Stacked { limit, .. } => {
                (limit.max(longest_bar) * LABEL_WIDTH / of_axes.max(1.0), one_decimal)
            }
        };
        let text = |value: &f64| if value.abs() > least { write(*value) } else { String::new() };
        trace["text"] = part.values.iter().map(text).collect();
        trace
    });
    (traces.collect(), layout)
}

/// The width of a bar's label, in pixels: about as it is drawn.
const LABEL_WIDTH: f64 = 60.0;

/// The share of the longest bar below which a part of a stack is hard to see.
const SLIVER: f64 = 0.01;

/// A part with its colour.
type ColouredPart = (Part, &'static str);

/// Returns the parts with a value above `least`. Each has its own colour, whichever others are left out.
fn longer_than(least: f64, parts: &[Part], colours: [&'static str; 8]) -> Vec<ColouredPart> {
    let coloured = parts.iter().zip(colours);
    let long = coloured.filter(|(part, _)| part.values.iter().any(|value| value.abs() > least));
    long.map(|(part, colour)| (part.clone(), colour)).collect()
}

/// Returns the parts of a stack. Those that are slivers in every bar are drawn as one part, so that each bar keeps its length.
fn stack(longest_bar: f64, parts: &[Part]) -> Vec<ColouredPart> {
    let is_sliver = |part: &Part| part.values.iter().all(|value| *value < SLIVER * longest_bar);
    let all = longer_than(0.0, parts, STACK_COLOURS);
    let (slivers, mut long): (Vec<_>, Vec<_>) = all.into_iter().partition(|(part, _)| is_sliver(part));
    match &*slivers {
        [] | [_] => long.extend(slivers),
        [(first, colour), ..] => {
            let names: Vec<&str> = slivers.iter().map(|(part, _)| &*part.name).collect();
            let sum = |bar: usize| slivers.iter().map(|(part, _)| part.values[bar]).sum::<f64>();
            let values = (0..first.values.len()).map(sum).collect();
            long.push((Part { name: format!("Other: {}", names.join(", ")), values }, *colour));
        }
    }
    long
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::chart::plot;

    #[test]
    fn a_waterfall_begins_each_bar_at_the_end_of_the_one_before() {
        let values = vec![2.0, 3.0, 0.0125, 0.001, 0.0];
        let correction = vec![0.0, 0.0, 0.0, 0.0, -0.5];
        let parts = vec![
            Part { name: "Computing".into(), values },
            Part { name: "Correction".into(), values: correction },
        ];
        let bars = Bars { labels: ["A", "B", "C", "D", "E"].map(String::from).into(), parts };
        let chart = BarChart { bars, unit: "seconds", kind: BarKind::Waterfall { whole: 5.0 } };
        let plot = plot(&chart.into(), "#000", (600.0, 400.0));
        let starts: Vec<f64> =
            plot["data"][1]["base"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        for (start, expected) in starts.iter().zip([0.0, 2.0, 5.0, 5.0125, 5.0135]) {
            assert!((start - expected).abs() < 1e-9, "{starts:?}");
        }
        // The fourth part can't be seen, and the last one goes back.
        let labels = json!(["2.00\u{a0}s", "3.00\u{a0}s", "12.5\u{a0}ms", "", ""]);
        assert_eq!(plot["data"][0]["text"], labels);
        assert_eq!(plot["data"][1]["text"], json!(["", "", "", "", "−0.500\u{a0}s"]));
        assert!(plot["layout"]["xaxis"]["range"][1].as_f64().unwrap() > 1.2 * 5.01);
    }

    #[test]
    fn long_parts_of_a_stack_have_labels_and_slivers_are_one_part() {
        let part = |name: &str, values: [f64; 2]| Part { name: name.into(), values: values.into() };
        let parts = vec![
            part("Weights", [0.25, 0.125]),
            part("Gradients", [0.0, 0.0]),
            part("Optimizer", [50.0, 40.0]),
            part("Logits", [0.0, 1.0]),
            part("Buffers", [0.5, 0.25]),
        ];
        let bars = Bars { labels: ["Stage 1", "Stage 2"].map(String::from).into(), parts };
        let kind = BarKind::Stacked { name: "80 GiB".into(), limit: 80.0 };
        let plot = plot(&BarChart { bars, unit: "GiB", kind }.into(), "#000", (600.0, 400.0));
        let data = plot["data"].as_array().expect("traces");
        let of = |key: &str| data.iter().map(|trace| trace[key].clone()).collect::<Vec<_>>();
        assert_eq!(of("name"), [json!("Optimizer"), json!("Logits"), json!("Other: Weights, Buffers")]);
        assert_eq!(of("x"), [json!([50.0, 40.0]), json!([0.0, 1.0]), json!([0.75, 0.375])]);
        assert_eq!(of("text"), [json!(["50.0", "40.0"]), json!(["", ""]), json!(["", ""])]);
        assert_eq!(data[0]["marker"]["color"], STACK_COLOURS[2]);
    }

    #[test]
    fn a_single_sliver_keeps_its_name() {
        let part = |name: &str, value: f64| Part { name: name.into(), values: vec![value] };
        let names =
            |parts: &[Part]| stack(50.0, parts).into_iter().map(|(part, _)| part.name).collect::<Vec<_>>();
        assert_eq!(names(&[part("Logits", 0.25), part("Optimizer", 50.0)]), ["Optimizer", "Logits"]);
        assert_eq!(names(&[part("Logits", 0.0), part("Optimizer", 50.0)]), ["Optimizer"]);
    }
}
